/* SPDX-License-Identifier: MIT */
/* One function that is bound to vfio-pci, as its folder in sysfs describes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

#define DEVICES "/sys/bus/pci/devices"

/* Flags of a resource, as include/linux/ioport.h numbers them. */
#define RESOURCE_IO	  0x00000100
#define RESOURCE_MEMORY	  0x00000200
#define RESOURCE_PREFETCH 0x00002000
#define RESOURCE_64	  0x00100000
#define RESOURCE_UNSET	  0x20000000

/* Config space: where its pieces are, by the PCI specification. */
enum { CONFIG_STATUS = 0x06, CONFIG_CAPABILITIES = 0x34, CONFIG_PIN = 0x3d, CONFIG_HEADER = 64 };
enum { CAPABILITY_MSI = 0x05, CAPABILITY_EXPRESS = 0x10, CAPABILITY_MSIX = 0x11 };
#define STATUS_CAPABILITIES 0x10

static const char *path_of(char path[96], const char *bdf, const char *file)
{
	snprintf(path, 96, DEVICES "/%.12s/%s", bdf, file);
	return path;
}

static uint64_t read_number(struct dmamap_system *system, const char *bdf, const char *file)
{
	char path[96], text[32];

	machine_read_file(system, path_of(path, bdf, file), text, sizeof(text));
	return strtoull(text, NULL, 0);
}

/* Lines of first, last and flags: six BARs, the ROM, and what bridges have. */
static void read_bars(
	struct dmamap_system *system, const char *bdf, struct dmamap_machine_device *device)
{
	char path[96], text[2048], *rest = text, *line;

	machine_read_file(system, path_of(path, bdf, "resource"), text, sizeof(text));
	for (unsigned i = 0; i <= DMAMAP_MACHINE_BARS && (line = strsep(&rest, "\n")); i++) {
		unsigned long long first, last, flags;

		if (sscanf(line, "%llx %llx %llx", &first, &last, &flags) != 3 || !first ||
			!(flags & (RESOURCE_MEMORY | RESOURCE_IO)) || flags & RESOURCE_UNSET)
			continue;
		if (i == DMAMAP_MACHINE_BARS) {
			device->rom_size = (uint32_t)(last - first + 1);
			continue;
		}
		device->bar_size[i] = last - first + 1;
		device->bar_address[i] = first;
		device->bar_flags[i] = (flags & RESOURCE_IO ? DMAMAP_BAR_IO : 0) |
				       (flags & RESOURCE_64 ? DMAMAP_BAR_64 : 0) |
				       (flags & RESOURCE_PREFETCH ? DMAMAP_BAR_PREFETCH : 0);
		device->bar_flags[i] = (uint8_t)machine_bar_extra(device, i);
	}
}

/* Of a capability's 8 bytes: how many vectors, and the BAR and place of their table. */
static void read_table(const uint8_t *capability, struct dmamap_machine_device *device)
{
	uint32_t place = capability[4] | (uint32_t)capability[5] << 8 |
			 (uint32_t)capability[6] << 16 | (uint32_t)capability[7] << 24;

	device->msix = ((capability[2] | (unsigned)capability[3] << 8) & 0x7ff) + 1;
	device->msix_bar = place & 7;
	device->msix_offset = place & ~7u;
}

static void read_interrupts(struct dmamap_system *system, const char *bdf,
	struct dmamap_machine_device *device, uint32_t *assumed)
{
	uint8_t config[4096];
	char path[96];
	ssize_t n = machine_read_file(
		system, path_of(path, bdf, "config"), (char *)config, sizeof(config));
	unsigned at;

	if (n > CONFIG_PIN)
		device->intx = config[CONFIG_PIN] != 0;
	/* Without root the file ends after the header. */
	if (n <= CONFIG_HEADER) {
		*assumed |= 1u << ASSUMED_MSI;
		return;
	}
	if (!(config[CONFIG_STATUS] & STATUS_CAPABILITIES))
		return;
	at = config[CONFIG_CAPABILITIES] & ~3u;
	/* A list of the 192 bytes behind the header: longer than 48 is a circle. */
	for (unsigned left = 48; at >= CONFIG_HEADER && at + 4 <= (size_t)n && left; left--) {
		unsigned control = config[at + 2] | (unsigned)config[at + 3] << 8;

		if (config[at] == CAPABILITY_MSI)
			device->msi = 1u << (control >> 1 & 7);
		else if (config[at] == CAPABILITY_EXPRESS)
			device->express = true;
		else if (config[at] == CAPABILITY_MSIX && at + 8 <= (size_t)n)
			read_table(config + at, device);
		at = config[at + 1] & ~3u;
	}
}

int machine_detect_device(struct dmamap_system *system, const char *bdf,
	struct dmamap_machine_device *device, char iommu[64], uint32_t *assumed)
{
	char path[96], name[64];
	int fd;

	if (!machine_read_link(system, path_of(path, bdf, "iommu_group"), name) ||
		sscanf(name, "%9u", &device->group) != 1 ||
		!machine_read_link(system, path_of(path, bdf, "iommu"), iommu))
		return -ENODEV;
	snprintf(device->bdf, sizeof(device->bdf), "%.12s", bdf);
	if (system->ops->list(system, path_of(path, bdf, "vfio-dev"), 0, name, sizeof(name)) <= 0 ||
		sscanf(name, "vfio%9u", &device->cdev) != 1)
		*assumed |= 1u << ASSUMED_CDEV;
	device->vendor = (uint16_t)read_number(system, bdf, "vendor");
	device->device = (uint16_t)read_number(system, bdf, "device");
	device->class_code = (uint32_t)read_number(system, bdf, "class") & 0xffffff;
	read_bars(system, bdf, device);
	read_interrupts(system, bdf, device, assumed);
	/* It can only be written, so that any other error says that it is there. */
	fd = system->ops->open(system, path_of(path, bdf, "reset"), 0);
	device->reset = fd != -ENOENT;
	if (fd >= 0)
		system->ops->close(system, fd);
	return 0;
}
