/* SPDX-License-Identifier: MIT */
/* What the machine is: its devices, and whether a condition holds. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/capability.h>

#include "cli/units.h"
#include "conditions.h"
#include "run.h"

#define PCI "/sys/bus/pci/devices"

static ssize_t read_file(struct dmamap_system *system, const char *path, char *text, size_t size)
{
	int fd = system->ops->open(system, path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = system->ops->read(system, fd, text, size - 1);
	system->ops->close(system, fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

static uint16_t read_id(struct dmamap_system *system, const char *bdf, const char *name)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), PCI "/%s/%s", bdf, name);
	return read_file(system, path, text, sizeof(text)) > 0 ? (uint16_t)strtoul(text, NULL, 0)
							       : 0;
}

static bool link_end(
	struct dmamap_system *system, const char *bdf, const char *link, char *name, size_t size)
{
	char path[128], target[256];
	const char *slash;

	snprintf(path, sizeof(path), PCI "/%s/%s", bdf, link);
	if (system->ops->readlink(system, path, target, sizeof(target)) < 0)
		return false;
	slash = strrchr(target, '/');
	slash = slash ? slash + 1 : target;
	if (strlen(slash) >= size)
		return false;
	strcpy(name, slash);
	return true;
}

static void find_cdev(struct dmamap_system *system, struct pci_device *device)
{
	char path[128], name[32];

	snprintf(path, sizeof(path), PCI "/%s/vfio-dev", device->bdf);
	for (unsigned i = 0; system->ops->list(system, path, i, name, sizeof(name)) > 0; i++)
		if (!strncmp(name, "vfio", 4))
			snprintf(device->cdev, sizeof(device->cdev), "/dev/vfio/devices/%s", name);
}

int facts_devices(struct replay *replay)
{
	struct dmamap_system *system = replay->sides[0].system;
	char name[64], driver[64], group[20];

	for (unsigned i = 0; system->ops->list(system, PCI, i, name, sizeof(name)) > 0; i++) {
		struct pci_device *device = &replay->devices[replay->n_devices];

		if (replay->n_devices == DEVICES_MAX || strlen(name) >= sizeof(device->bdf))
			continue;
		if (!link_end(system, name, "driver", driver, sizeof(driver)) ||
			(!strstr(driver, "vfio-pci") && !strstr(driver, "vfio_pci")) ||
			!link_end(system, name, "iommu_group", group, sizeof(group)))
			continue;
		strcpy(device->bdf, name);
		snprintf(device->group, sizeof(device->group), "/dev/vfio/%s", group);
		device->vendor = read_id(system, name, "vendor");
		device->device = read_id(system, name, "device");
		find_cdev(system, device);
		replay->n_devices++;
	}
	for (unsigned i = 0; i < DEVICES_MAX; i++)
		replay->device_things[i] = replay->group_things[i] = -1;
	for (size_t i = 0; i < replay->file->n_things; i++) {
		const struct case_thing *thing = &replay->file->things[i];
		const char *dot = strchr(thing->name, '.');

		if (thing->kind == THING_DEVICE)
			replay->device_things[thing->device] = (int32_t)i;
		else if (thing->kind == THING_GROUP && dot && !strcmp(dot, ".group") &&
			 thing->name[0] == 'd' &&
			 strspn(thing->name + 1, "0123456789") == (size_t)(dot - thing->name - 1))
			replay->group_things[thing->device] = (int32_t)i;
	}
	return replay->n_devices ? 0 : -ENODEV;
}

/* ------------------------------------------------------------------ conditions */

static bool compare(const struct case_condition *condition, uint64_t value)
{
	switch (condition->compare) {
	case '<':
		return value < condition->value;
	case '>':
		return value > condition->value;
	case 'l':
		return value <= condition->value;
	case 'g':
		return value >= condition->value;
	default:
		return value == condition->value;
	}
}

static unsigned groups(const struct replay *replay)
{
	unsigned n = 0;

	for (unsigned i = 0; i < replay->n_devices; i++) {
		bool known = false;

		for (unsigned j = 0; j < i; j++)
			known |= !strcmp(replay->devices[i].group, replay->devices[j].group);
		n += !known;
	}
	return n;
}

static bool has_file(const struct replay *replay, const char *path)
{
	struct dmamap_system *system = replay->sides[0].system;
	int fd = system->ops->open(system, path, O_RDWR);

	if (fd >= 0)
		system->ops->close(system, fd);
	return fd >= 0;
}

/* A page that can be had now, and is given back. */
static bool has_huge(unsigned shift)
{
	void *at = mmap(NULL, (size_t)1 << shift, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)(shift << 26), -1, 0);

	if (at == MAP_FAILED)
		return false;
	munmap(at, (size_t)1 << shift);
	return true;
}

static bool has_dma(const struct replay *replay)
{
	bool edu = replay->sides[0].soft;

	for (unsigned i = 0; i < replay->n_devices; i++)
		edu |= edu_is(&replay->devices[i]);
	return edu;
}

/* The first device stands for all: cases that ask are about d0. */
static bool has_dirty(const struct replay *replay)
{
	const struct dmamap_machine *machine = &replay->machine;

	return machine->n_devices && machine->devices[0].iommu < machine->n_iommus &&
	       machine->iommus[machine->devices[0].iommu].dirty;
}

static bool number_holds(const struct case_condition *condition, const char *what, uint64_t value,
	char *why, size_t size)
{
	char number[UNITS_TEXT];

	snprintf(why, size, "%s %s", what, units_exact(number, value));
	return compare(condition, value);
}

bool facts_hold(
	const struct replay *replay, const struct case_condition *condition, char *why, size_t size)
{
	bool soft = replay->sides[0].soft;
	unsigned kernel = replay->machine.as_kernel;

	switch ((enum condition)condition->what) {
	case CONDITION_SYSTEM:
		snprintf(
			why, size, "only for --system %s", condition_systems[condition->value & 1]);
		return condition->value == !soft;
	case CONDITION_KERNEL:
		snprintf(why, size, "%s %u.%u",
			soft ? "the soft system answers as Linux" : "the kernel is Linux",
			kernel >> 8, kernel & 0xff);
		return compare(condition, kernel);
	case CONDITION_IOMMUFD:
		snprintf(why, size, "there is no /dev/iommu, or no device has a cdev");
		return has_file(replay, "/dev/iommu") && replay->n_devices &&
		       replay->devices[0].cdev[0];
	case CONDITION_VFIO:
		snprintf(why, size, "there is no /dev/vfio/vfio");
		return has_file(replay, "/dev/vfio/vfio");
	case CONDITION_DEVICES:
		return number_holds(
			condition, "devices in the machine:", replay->n_devices, why, size);
	case CONDITION_GROUPS:
		return number_holds(condition, "groups in the machine:", groups(replay), why, size);
	case CONDITION_DMA:
		snprintf(why, size, "no device does DMA on command (QEMU's edu does)");
		return has_dma(replay);
	case CONDITION_DIRTY:
		snprintf(why, size, "the IOMMU does not track dirty pages");
		return has_dirty(replay);
	case CONDITION_ROOT:
		snprintf(why, size, "only for root");
		return !geteuid();
	case CONDITION_IPC_LOCK:
		snprintf(why, size, "the process has no CAP_IPC_LOCK");
		return replay->processes[0].capabilities >> CAP_IPC_LOCK & 1;
	case CONDITION_SYS_RESOURCE:
		snprintf(why, size, "the process has no CAP_SYS_RESOURCE");
		return replay->processes[0].capabilities >> CAP_SYS_RESOURCE & 1;
	case CONDITION_PROCESSES:
		return true;
	case CONDITION_HUGETLB_2MB:
		snprintf(why, size, "no free huge page of 2 MiB");
		return has_huge(21);
	case CONDITION_HUGETLB_1GB:
		snprintf(why, size, "no free huge page of 1 GiB");
		return has_huge(30);
	case CONDITION_PAGE:
		return number_holds(condition, "the page size is", replay->page_size, why, size);
	case CONDITION_X86_64:
		snprintf(why, size, "only for x86-64");
#ifdef __x86_64__
		return true;
#else
		return false;
#endif
	case CONDITION_AARCH64:
		snprintf(why, size, "only for arm64");
#ifdef __aarch64__
		return true;
#else
		return false;
#endif
	default:
		return false;
	}
}
