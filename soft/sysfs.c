/* SPDX-License-Identifier: MIT */
/*
 * The part of /sys that leads from a PCI address to the VFIO files, and the
 * directories of those. Paths are parsed where they are asked for; nothing is
 * kept. A file's content is put into a memfd, so that reading it is reading.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/pci.h"
#include "soft/vduse.h"

#define PCI_DEVICES "/sys/bus/pci/devices"
#define VFIO_PCI    "/sys/bus/pci/drivers/vfio-pci"
#define GROUPS	    "/sys/kernel/iommu_groups"

/* The path below @directory, without the slash; NULL: elsewhere. */
static const char *below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	if (strncmp(path, directory, length))
		return NULL;
	if (!path[length])
		return path + length;
	return path[length] == '/' ? path + length + 1 : NULL;
}

/* The device of ".../devices/BDF/rest"; *rest is what follows. */
static struct soft_device *device_at(
	struct soft_system *system, const char *path, const char **rest)
{
	const char *name = below(path, PCI_DEVICES);

	for (size_t i = 0; name && i < system->n_devices; i++) {
		*rest = below(name, system->devices[i].is.bdf);
		if (*rest)
			return &system->devices[i];
	}
	return NULL;
}

static int no_file(const char *path)
{
	return SOFT_REFUSE(no_file, ENOENT, path, 0);
}

static int print_line(char *to, size_t size, uint64_t first, uint64_t length, unsigned flags)
{
	return snprintf(to, size, "0x%016llx 0x%016llx 0x%016llx\n", (unsigned long long)first,
		(unsigned long long)(length ? first + length - 1 : 0),
		(unsigned long long)(length ? flags : 0));
}

/* As the kernel prints them: first and last address and flags of 6 BARs and the ROM. */
static int print_resource(const struct soft_device *device, char *to, size_t size)
{
	/* IORESOURCE_SIZEALIGN with MEM or IO, and what the BAR's register has. */
	const unsigned memory = 0x40200, io = 0x40101, wide = 0x100004, prefetch = 0x2008;
	const unsigned rom = 0x46200;
	int n = 0;

	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		const struct soft_bar *bar = &device->bars[i];
		unsigned flags = soft_bar_flags(&device->is, i);

		n += print_line(to + n, size - (size_t)n, bar->address, bar->size,
			flags & DMAMAP_BAR_IO
				? io
				: memory | (flags & DMAMAP_BAR_64 ? wide : 0) |
					  (flags & DMAMAP_BAR_PREFETCH ? prefetch : 0));
	}
	n += print_line(to + n, size - (size_t)n, device->is.rom_size ? SOFT_ROM_ADDRESS : 0,
		device->is.rom_size, rom);
	return n;
}

static int device_text(struct soft_device *device, const char *name, char *to, size_t size)
{
	if (!strcmp(name, "vendor"))
		return snprintf(to, size, "0x%04x\n", device->is.vendor);
	if (!strcmp(name, "device"))
		return snprintf(to, size, "0x%04x\n", device->is.device);
	if (!strcmp(name, "class"))
		return snprintf(to, size, "0x%06x\n", device->is.class_code);
	if (!strcmp(name, "resource"))
		return print_resource(device, to, size);
	if (!strcmp(name, "config"))
		return soft_config_copy(device, to, size);
	/* Only to be written, in Linux; here it can be seen that it is there. */
	if (!strcmp(name, "reset") && device->is.reset)
		return 0;
	return -1;
}

static void text_release(struct soft_file *file)
{
	free(file);
}

static const struct soft_file_ops text_ops = {
	.name = "text",
	.release = text_release,
};

int soft_sysfs_open(struct soft_system *system, const char *path)
{
	const char *rest;
	struct soft_device *device = device_at(system, path, &rest);
	struct soft_file *file;
	char text[SOFT_CONFIG_LARGEST];
	int fd, length = device ? device_text(device, rest, text, sizeof(text)) : -1;

	if (length < 0)
		length = soft_machine_text(system, path, text, sizeof(text));
	if (length < 0)
		return no_file(path);
	file = calloc(1, sizeof(*file));
	if (!file)
		return SOFT_REFUSE(no_memory, ENOMEM, path, 0);
	soft_file_init(file, &text_ops, system);
	fd = soft_file_install(file, "dmamap:sysfs");
	if (fd < 0) {
		soft_file_put(file);
		return fd;
	}
	if (pwrite(fd, text, (size_t)length, 0) != length) {
		int error = errno;

		soft_file_close(system, fd);
		return SOFT_REFUSE(no_memory, error, path, 0);
	}
	return fd;
}

static ssize_t cut(const char *text, char *to, size_t size)
{
	size_t length = strlen(text);

	if (!size)
		return SOFT_REFUSE(length_zero, EINVAL, "a buffer", 0);
	if (length >= size)
		length = size - 1;
	memcpy(to, text, length);
	to[length] = '\0';
	return (ssize_t)length;
}

ssize_t soft_sysfs_readlink(struct soft_system *system, const char *path, char *buffer, size_t size)
{
	const char *rest;
	const struct soft_device *device = device_at(system, path, &rest);
	char target[96];

	if (soft_machine_link(system, path, target, sizeof(target)))
		return cut(target, buffer, size);
	if (!device)
		return no_file(path);
	if (!*rest)
		snprintf(target, sizeof(target), "../../../devices/pci%.7s/%.12s", device->is.bdf,
			device->is.bdf);
	else if (!strcmp(rest, "iommu_group"))
		snprintf(target, sizeof(target), "../../../kernel/iommu_groups/%u",
			device->group->number);
	else if (!strcmp(rest, "iommu"))
		soft_machine_iommu_link(device, target, sizeof(target));
	else if (!strcmp(rest, "driver"))
		snprintf(target, sizeof(target), "../../../bus/pci/drivers/vfio-pci");
	else if (!strcmp(rest, "subsystem"))
		snprintf(target, sizeof(target), "../../../bus/pci");
	else
		return no_file(path);
	return cut(target, buffer, size);
}

/* The @index-th device, of one group or of all. */
static const struct soft_device *nth_device(
	struct soft_system *system, const struct soft_group *group, unsigned index)
{
	for (size_t i = 0; i < system->n_devices; i++)
		if ((!group || system->devices[i].group == group) && !index--)
			return &system->devices[i];
	return NULL;
}

static const struct soft_group *group_at(struct soft_system *system, const char *path)
{
	for (size_t i = 0; i < system->n_groups; i++) {
		char directory[64];

		snprintf(directory, sizeof(directory), GROUPS "/%u/devices",
			system->groups[i].number);
		if (!strcmp(path, directory))
			return &system->groups[i];
	}
	return NULL;
}

/* Directories that hold names of devices; false: another directory. */
static bool list_devices(
	struct soft_system *system, const char *path, unsigned index, const char **name)
{
	const struct soft_group *group = group_at(system, path);
	const struct soft_device *device;

	if (!group && strcmp(path, PCI_DEVICES) && strcmp(path, VFIO_PCI))
		return false;
	device = nth_device(system, group, index);
	*name = device ? device->is.bdf : NULL;
	return true;
}

static bool list_vfio(struct soft_system *system, const char *path, unsigned index, char name[16])
{
	const char *rest;
	const struct soft_device *device = device_at(system, path, &rest);

	name[0] = '\0';
	if (device && !strcmp(rest, "vfio-dev")) {
		if (!index)
			snprintf(name, 16, "vfio%u", device->is.cdev);
		return true;
	}
	if (!strcmp(path, "/dev/vfio/devices")) {
		device = nth_device(system, NULL, index);
		if (device)
			snprintf(name, 16, "vfio%u", device->is.cdev);
		return true;
	}
	if (strcmp(path, "/dev/vfio"))
		return false;
	if (index < 2)
		snprintf(name, 16, "%s", index ? "devices" : "vfio");
	else if (index - 2 < system->n_groups)
		snprintf(name, 16, "%u", system->groups[index - 2].number);
	return true;
}

ssize_t soft_sysfs_list(
	struct soft_system *system, const char *path, unsigned index, char *name, size_t size)
{
	const char *found = NULL;
	char own[VDUSE_NAME_MAX];

	if (!list_devices(system, path, index, &found)) {
		if (!list_vfio(system, path, index, own) &&
			!soft_vduse_list(system, path, index, own) &&
			!soft_machine_list(system, path, index, own))
			return no_file(path);
		found = own[0] ? own : NULL;
	}
	return found ? cut(found, name, size) : -ENOENT;
}
