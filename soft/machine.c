/* SPDX-License-Identifier: MIT */
/*
 * Machines: the default one, and which ones can be. A system keeps its own
 * copy of all that it was given.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/soft.h"

/* Linux type1's default for its parameter dma_entry_limit (vfio_iommu_type1.c). */
#define DEFAULT_ENTRY_LIMIT 65535

static const struct dmamap_machine_window default_windows[] = {
	{0xfee00000, 0xfeefffff, "MSI window of intel-iommu"},
};

static const struct dmamap_machine_device default_devices[] = {
	{
		.bdf = "0000:00:03.0",
		.group = 7,
		.cdev = 0,
		.vendor = 0x1b36,
		.device = 0x0005,
		.class_code = 0x00ff00,
		.bar_size = {[0] = 16ULL << 20, [2] = 32ULL << 30},
		.bar_address = {[0] = 0xc0000000, [2] = 0x380000000000},
	},
};

void dmamap_machine_default(struct dmamap_machine *machine)
{
	*machine = (struct dmamap_machine){
		.page_shift = 12,
		.aperture_bits = 48,
		.leaf_sizes = 1ULL << 12 | 1ULL << 21 | 1ULL << 30,
		.windows = default_windows,
		.n_windows = 1,
		.devices = default_devices,
		.n_devices = 1,
		.dma_entry_limit = DEFAULT_ENTRY_LIMIT,
		.pfnmap_stride = DMAMAP_PFNMAP_LEAF,
	};
}

static int refuse(struct dmamap_reason *why, const char *field, uint64_t value)
{
	return DMAMAP_REFUSE(why, &soft_reason_machine, EINVAL, field, value);
}

static int check_bars(const struct dmamap_machine_device *device, struct dmamap_reason *why)
{
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		uint64_t size = device->bar_size[i], address = device->bar_address[i];

		if (!size)
			continue;
		if (size < 16 || size & (size - 1))
			return refuse(why, "BAR size", size);
		if (!address || address & (size - 1) || address + size - 1 < address)
			return refuse(why, "BAR address", address);
		if (size <= 2ULL << 30 && address + size - 1 <= UINT32_MAX)
			continue;
		/* 64-bit: it takes the next register too. */
		if (i + 1 == DMAMAP_MACHINE_BARS || device->bar_size[i + 1])
			return refuse(why, "BAR after a 64-bit one", i + 1);
		i++;
	}
	return 0;
}

static int check_devices(const struct dmamap_machine *machine, struct dmamap_reason *why)
{
	for (size_t i = 0; i < machine->n_devices; i++) {
		const struct dmamap_machine_device *device = &machine->devices[i];

		if (!memchr(device->bdf, '\0', sizeof(device->bdf)) ||
			strlen(device->bdf) != strlen("0000:00:00.0"))
			return refuse(why, "PCI address", i);
		if (device->class_code > 0xffffff)
			return refuse(why, "class code", device->class_code);
		for (size_t j = 0; j < i; j++) {
			if (!strcmp(machine->devices[j].bdf, device->bdf))
				return refuse(why, "repeated PCI address", i);
			if (machine->devices[j].cdev == device->cdev)
				return refuse(why, "repeated cdev number", device->cdev);
		}
		if (check_bars(device, why))
			return -EINVAL;
	}
	return 0;
}

static int check(const struct dmamap_machine *machine, struct dmamap_reason *why)
{
	if (machine->page_shift != 12 && machine->page_shift != 14 && machine->page_shift != 16)
		return refuse(why, "page shift", machine->page_shift);
	if (machine->aperture_bits <= machine->page_shift || machine->aperture_bits > 64)
		return refuse(why, "aperture width", machine->aperture_bits);
	if (!(machine->leaf_sizes & 1ULL << machine->page_shift))
		return refuse(why, "bitmap of page sizes", machine->leaf_sizes);
	if (machine->pfnmap_stride != DMAMAP_PFNMAP_LEAF &&
		machine->pfnmap_stride != DMAMAP_PFNMAP_PAGE)
		return refuse(why, "pfnmap stride", machine->pfnmap_stride);
	for (size_t i = 0; i < machine->n_windows; i++)
		if (machine->windows[i].last < machine->windows[i].first)
			return refuse(why, "reserved window", machine->windows[i].first);
	return check_devices(machine, why);
}

int soft_machine_copy(
	struct dmamap_machine *to, const struct dmamap_machine *from, struct dmamap_reason *why)
{
	struct dmamap_machine_device *devices;
	struct dmamap_machine_window *windows;
	int error = check(from, why);

	if (error)
		return error;
	*to = *from;
	to->windows = windows = calloc(from->n_windows + 1, sizeof(*windows));
	to->devices = devices = calloc(from->n_devices + 1, sizeof(*devices));
	if (!windows || !devices)
		goto no_memory;
	if (from->n_devices)
		memcpy(devices, from->devices, from->n_devices * sizeof(*devices));
	for (size_t i = 0; i < from->n_windows; i++) {
		windows[i] = from->windows[i];
		windows[i].label =
			strdup(from->windows[i].label ? from->windows[i].label : "reserved");
		if (!windows[i].label)
			goto no_memory;
	}
	return 0;
no_memory:
	soft_machine_free(to);
	return DMAMAP_REFUSE(why, &soft_reason_no_memory, ENOMEM, "a machine", 0);
}

void soft_machine_free(struct dmamap_machine *machine)
{
	for (size_t i = 0; machine->windows && i < machine->n_windows; i++)
		free((void *)(uintptr_t)machine->windows[i].label);
	free((void *)(uintptr_t)machine->windows);
	free((void *)(uintptr_t)machine->devices);
	machine->windows = NULL;
	machine->devices = NULL;
}
