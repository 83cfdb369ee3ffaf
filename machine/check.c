/* SPDX-License-Identifier: MIT */
/* Which machines can be. */
#include <errno.h>
#include <string.h>

#include "machine/machine.h"

static int refuse(struct dmamap_reason *why, const char *field, uint64_t value)
{
	return DMAMAP_REFUSE(why, &machine_reason_machine, EINVAL, field, value);
}

static int check_bars(const struct dmamap_machine_device *device, struct dmamap_reason *why)
{
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		uint64_t size = device->bar_size[i], address = device->bar_address[i];

		if (!size)
			continue;
		if (size < (device->bar_flags[i] & DMAMAP_BAR_IO ? 4 : 16) || size & (size - 1))
			return refuse(why, "BAR size", size);
		if (!address || address & (size - 1) || address + size - 1 < address)
			return refuse(why, "BAR address", address);
		if (device->bar_flags[i] & DMAMAP_BAR_IO) {
			if (address + size - 1 > UINT32_MAX)
				return refuse(why, "BAR address", address);
			continue;
		}
		if (!machine_bar_is_wide(device, i) && !(device->bar_flags[i] & DMAMAP_BAR_64))
			continue;
		/* 64-bit: it takes the next register too. */
		if (i + 1 == DMAMAP_MACHINE_BARS || device->bar_size[i + 1])
			return refuse(why, "BAR after a 64-bit one", i + 1);
		i++;
	}
	return 0;
}

static int check_device(
	const struct dmamap_machine *machine, size_t index, struct dmamap_reason *why)
{
	const struct dmamap_machine_device *device = &machine->devices[index];
	const char *end = memchr(device->bdf, '\0', sizeof(device->bdf));
	char bdf[16];

	/* The short form is for text. */
	if (!end || end - device->bdf < 12 ||
		!machine_read_bdf(device->bdf, (size_t)(end - device->bdf), bdf))
		return refuse(why, "PCI address", index);
	if (device->iommu >= machine->n_iommus)
		return refuse(why, "device's IOMMU", device->iommu);
	if (device->class_code > 0xffffff)
		return refuse(why, "class code", device->class_code);
	if (device->msi > 32 || device->msi & (device->msi - 1))
		return refuse(why, "number of MSI vectors", device->msi);
	if (device->msix > 2048)
		return refuse(why, "number of MSI-X vectors", device->msix);
	if (device->msix_bar >= DMAMAP_MACHINE_BARS)
		return refuse(why, "BAR of the MSI-X table", device->msix_bar);
	if (device->msix_offset & 7)
		return refuse(why, "offset of the MSI-X table", device->msix_offset);
	if (device->rom_size & (device->rom_size - 1) ||
		(device->rom_size && device->rom_size < 2048))
		return refuse(why, "ROM size", device->rom_size);
	for (size_t i = 0; i < index; i++) {
		const struct dmamap_machine_device *other = &machine->devices[i];

		if (!strcmp(other->bdf, device->bdf))
			return refuse(why, "repeated PCI address", index);
		if (other->cdev == device->cdev)
			return refuse(why, "repeated cdev number", device->cdev);
		if (other->group == device->group && other->iommu != device->iommu)
			return refuse(why, "group behind two IOMMUs", device->group);
	}
	return check_bars(device, why);
}

static int check_iommu(const struct dmamap_machine *machine,
	const struct dmamap_machine_iommu *iommu, struct dmamap_reason *why)
{
	if (iommu->model > DMAMAP_IOMMU_VIRTIO)
		return refuse(why, "IOMMU model", iommu->model);
	if (iommu->aperture_bits <= machine->page_shift || iommu->aperture_bits > 64)
		return refuse(why, "aperture width", iommu->aperture_bits);
	if (!(iommu->leaf_sizes & 1ULL << machine->page_shift))
		return refuse(why, "bitmap of page sizes", iommu->leaf_sizes);
	for (size_t i = 0; i < iommu->n_windows; i++)
		if (iommu->windows[i].last < iommu->windows[i].first)
			return refuse(why, "reserved window", iommu->windows[i].first);
	return 0;
}

int machine_check(const struct dmamap_machine *machine, enum machine_scope *scope, size_t *index,
	struct dmamap_reason *why)
{
	int error = 0;

	*scope = MACHINE_WHOLE;
	*index = 0;
	if (machine->page_shift != 12 && machine->page_shift != 14 && machine->page_shift != 16)
		return refuse(why, "page shift", machine->page_shift);
	if (machine->pfnmap_stride != DMAMAP_PFNMAP_LEAF &&
		machine->pfnmap_stride != DMAMAP_PFNMAP_PAGE)
		return refuse(why, "pfnmap stride", machine->pfnmap_stride);
	if (!machine->n_iommus)
		return refuse(why, "number of IOMMUs", 0);
	*scope = MACHINE_IOMMU;
	for (*index = 0; *index < machine->n_iommus; ++*index) {
		error = check_iommu(machine, &machine->iommus[*index], why);
		if (error)
			return error;
	}
	*scope = MACHINE_DEVICE;
	for (*index = 0; *index < machine->n_devices; ++*index) {
		error = check_device(machine, *index, why);
		if (error)
			return error;
	}
	return 0;
}
