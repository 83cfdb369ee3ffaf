/* SPDX-License-Identifier: MIT */
/* Putting a machine together, copying it, and taking it apart again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

/* The const of a machine's pointers is for its users; here it is the owner's. */
#define OWN(pointer) ((void *)(uintptr_t)(pointer))

static int no_memory(struct dmamap_reason *why)
{
	return DMAMAP_REFUSE(why, &machine_reason_machine_no_memory, ENOMEM, "a machine", 0);
}

struct dmamap_machine_iommu *machine_iommu(struct dmamap_machine *machine, size_t index)
{
	return (struct dmamap_machine_iommu *)OWN(machine->iommus) + index;
}

struct dmamap_machine_device *machine_device(struct dmamap_machine *machine, size_t index)
{
	return (struct dmamap_machine_device *)OWN(machine->devices) + index;
}

void machine_drop_windows(struct dmamap_machine_iommu *iommu)
{
	for (size_t i = 0; i < iommu->n_windows; i++)
		free(OWN(iommu->windows[i].label));
	free(OWN(iommu->windows));
	iommu->windows = NULL;
	iommu->n_windows = 0;
}

void machine_drop_iommus(struct dmamap_machine *machine)
{
	for (size_t i = 0; i < machine->n_iommus; i++)
		machine_drop_windows(machine_iommu(machine, i));
	free(OWN(machine->iommus));
	machine->iommus = NULL;
	machine->n_iommus = 0;
}

void machine_drop_devices(struct dmamap_machine *machine)
{
	free(OWN(machine->devices));
	machine->devices = NULL;
	machine->n_devices = 0;
}

int machine_add_window(struct dmamap_machine_iommu *iommu, uint64_t first, uint64_t last,
	const char *label, struct dmamap_reason *why)
{
	struct dmamap_machine_window *windows =
		realloc(OWN(iommu->windows), (iommu->n_windows + 1) * sizeof(*windows));
	char *name;

	if (!windows)
		return no_memory(why);
	iommu->windows = windows;
	name = strdup(label ? label : "reserved");
	if (!name)
		return no_memory(why);
	windows[iommu->n_windows++] = (struct dmamap_machine_window){first, last, name};
	return 0;
}

/* An IOMMU like @like, with windows of its own. */
static int add_iommu(struct dmamap_machine *machine, const struct dmamap_machine_iommu *like,
	struct dmamap_reason *why)
{
	struct dmamap_machine_iommu *iommus =
		realloc(OWN(machine->iommus), (machine->n_iommus + 1) * sizeof(*iommus));
	struct dmamap_machine_iommu *iommu;
	int error = 0;

	if (!iommus)
		return no_memory(why);
	machine->iommus = iommus;
	iommu = &iommus[machine->n_iommus++];
	*iommu = *like;
	iommu->windows = NULL;
	iommu->n_windows = 0;
	for (size_t i = 0; i < like->n_windows && !error; i++)
		error = machine_add_window(iommu, like->windows[i].first, like->windows[i].last,
			like->windows[i].label, why);
	return error;
}

int machine_add_iommu(
	struct dmamap_machine *machine, enum dmamap_iommu_model model, struct dmamap_reason *why)
{
	struct dmamap_machine_iommu preset;

	machine_preset_iommu(model, machine->page_shift, &preset);
	return add_iommu(machine, &preset, why);
}

int machine_add_device(struct dmamap_machine *machine, const struct dmamap_machine_device *device,
	struct dmamap_reason *why)
{
	struct dmamap_machine_device *devices =
		realloc(OWN(machine->devices), (machine->n_devices + 1) * sizeof(*devices));

	if (!devices)
		return no_memory(why);
	machine->devices = devices;
	devices[machine->n_devices++] = *device;
	return 0;
}

int dmamap_machine_copy(struct dmamap_machine *machine, const struct dmamap_machine *from,
	struct dmamap_reason *why)
{
	struct dmamap_machine made = *from;
	enum machine_scope scope;
	size_t index;
	int error = machine_check(from, &scope, &index, why);

	if (error)
		return error;
	made.iommus = NULL;
	made.n_iommus = 0;
	made.devices = NULL;
	made.n_devices = 0;
	for (size_t i = 0; i < from->n_iommus && !error; i++)
		error = add_iommu(&made, &from->iommus[i], why);
	for (size_t i = 0; i < from->n_devices && !error; i++)
		error = machine_add_device(&made, &from->devices[i], why);
	if (error)
		dmamap_machine_free(&made);
	else
		*machine = made;
	return error;
}

void dmamap_machine_free(struct dmamap_machine *machine)
{
	machine_drop_iommus(machine);
	machine_drop_devices(machine);
}

unsigned machine_free_group(const struct dmamap_machine *machine)
{
	unsigned group = 7;

	for (size_t i = 0; i < machine->n_devices; i++) {
		if (machine->devices[i].group != group)
			continue;
		group++;
		i = (size_t)-1;
	}
	return group;
}

unsigned machine_free_cdev(const struct dmamap_machine *machine)
{
	unsigned cdev = 0;

	for (size_t i = 0; i < machine->n_devices; i++) {
		if (machine->devices[i].cdev != cdev)
			continue;
		cdev++;
		i = (size_t)-1;
	}
	return cdev;
}

bool machine_bar_is_wide(const struct dmamap_machine_device *device, unsigned bar)
{
	uint64_t size = device->bar_size[bar];

	return size && !(device->bar_flags[bar] & DMAMAP_BAR_IO) &&
	       (size > 2ULL << 30 || device->bar_address[bar] + size - 1 > UINT32_MAX);
}

unsigned machine_bar_extra(const struct dmamap_machine_device *device, unsigned bar)
{
	unsigned flags = device->bar_flags[bar];

	if (!device->bar_size[bar])
		return 0;
	if (flags & DMAMAP_BAR_IO)
		return DMAMAP_BAR_IO;
	return flags & DMAMAP_BAR_PREFETCH && machine_bar_is_wide(device, bar) ? 0 : flags;
}

/* Ports and memory are addressed apart. */
static bool is_io(const struct dmamap_machine_device *device, unsigned bar)
{
	return device->bar_flags[bar] & DMAMAP_BAR_IO;
}

/* The end of a BAR that has one of these addresses, of all that are placed; 0: none. */
static uint64_t taken(const struct dmamap_machine *machine, bool io, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < machine->n_devices; i++) {
		const struct dmamap_machine_device *device = &machine->devices[i];

		for (unsigned bar = 0; bar < DMAMAP_MACHINE_BARS; bar++) {
			uint64_t address = device->bar_address[bar];
			uint64_t end = address + device->bar_size[bar] - 1;

			if (device->bar_size[bar] && is_io(device, bar) == io && address &&
				address <= last && end >= first)
				return end;
		}
	}
	return 0;
}

/* Room from *@next on, aligned to the size and to any page; 0: none up to @last. */
static uint64_t place(
	const struct dmamap_machine *machine, bool io, uint64_t size, uint64_t *next, uint64_t last)
{
	uint64_t alignment = size < 65536 && !io ? 65536 : size, address = *next;

	for (;;) {
		uint64_t end;

		if (address > UINT64_MAX - alignment)
			return 0;
		address = (address + alignment - 1) & ~(alignment - 1);
		if (address > last || size - 1 > last - address)
			return 0;
		end = taken(machine, io, address, address + size - 1);
		if (!end) {
			*next = address + size;
			return address;
		}
		if (end == UINT64_MAX)
			return 0;
		address = end + 1;
	}
}

void machine_place_bars(struct dmamap_machine *machine)
{
	/* Above the memory of a machine of 3 GiB, below the interrupt controllers. */
	uint64_t low = 0xc0000000, high = 0x380000000000, ports = 0xc000;

	for (size_t i = 0; i < machine->n_devices; i++) {
		struct dmamap_machine_device *device = machine_device(machine, i);

		for (unsigned bar = 0; bar < DMAMAP_MACHINE_BARS; bar++) {
			uint64_t size = device->bar_size[bar], *address = &device->bar_address[bar];

			/* What is no size is refused later. */
			if (!size || size & (size - 1) || *address)
				continue;
			if (is_io(device, bar))
				*address = place(machine, true, size, &ports, 0xffff);
			else if (size <= 256ULL << 20)
				*address = place(machine, false, size, &low, 0xfdffffff);
			if (!*address && !is_io(device, bar))
				*address = place(machine, false, size, &high, UINT64_MAX);
		}
	}
}
