/* SPDX-License-Identifier: MIT */
/*
 * The soft system: /dev/vfio/vfio, groups, device cdevs, /dev/iommu and the
 * sysfs that leads to them, answered in this process as Linux 7.3 answers
 * them. A machine says what the answers are about: page size, aperture,
 * reserved windows, devices, limits.
 */
#ifndef DMAMAP_SOFT_H
#define DMAMAP_SOFT_H

#include "system.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the look-ups of a mapped BAR step. */
enum dmamap_pfnmap_stride {
	DMAMAP_PFNMAP_LEAF, /**< by the level that maps it: Linux 6.15 and later */
	DMAMAP_PFNMAP_PAGE, /**< by the base page: before */
};

/** struct dmamap_machine_window - A reserved range of IOVAs with its name. */
struct dmamap_machine_window {
	uint64_t first;
	uint64_t last;
	const char *label;
};

#define DMAMAP_MACHINE_BARS 6

/**
 * struct dmamap_machine_device - One PCI function, bound to vfio-pci.
 * @bdf: "0000:00:03.0"
 * @group: IOMMU group number: /dev/vfio/GROUP
 * @cdev: /dev/vfio/devices/vfioN
 * @vendor, @device: ids in its config space
 * @class_code: 24 bits
 * @bar_size: bytes, 0 or a power of two; a BAR of more than 2 GiB is 64-bit
 *	and takes the next one's place too
 * @bar_address: the BAR's bus address, a multiple of its size
 */
struct dmamap_machine_device {
	char bdf[16];
	unsigned group;
	unsigned cdev;
	uint16_t vendor;
	uint16_t device;
	uint32_t class_code;
	uint64_t bar_size[DMAMAP_MACHINE_BARS];
	uint64_t bar_address[DMAMAP_MACHINE_BARS];
};

/**
 * struct dmamap_machine - What a soft system is about.
 * @page_shift: 12, 14 or 16
 * @aperture_bits: IOVAs that the IOMMU translates: 39, 48, 57 ...
 * @leaf_sizes: bitmap of the IOMMU's page sizes; must hold the page size
 * @windows, @n_windows: reserved ranges of every device; followed until the
 *	system is created, then copied
 * @devices, @n_devices: copied too
 * @dma_entry_limit: type1's module parameter
 * @pfnmap_stride: see above
 */
struct dmamap_machine {
	unsigned page_shift;
	unsigned aperture_bits;
	uint64_t leaf_sizes;
	const struct dmamap_machine_window *windows;
	size_t n_windows;
	const struct dmamap_machine_device *devices;
	size_t n_devices;
	uint64_t dma_entry_limit;
	enum dmamap_pfnmap_stride pfnmap_stride;
};

/**
 * dmamap_machine_default() - 4 KiB pages, a 48-bit aperture, 4K/2M/1G leaves,
 * the Intel MSI window, 65535 entries, and one function, 0000:00:03.0 in
 * group 7, with a BAR0 of 16 MiB and a BAR2 of 32 GiB (sparse: only what is
 * written takes memory).
 */
DMAMAP_API void dmamap_machine_default(struct dmamap_machine *machine);

/**
 * dmamap_system_soft() - A soft system for @machine (NULL: the default).
 *
 * Return: 0; -EINVAL a machine that cannot be, @why says what; -ENOMEM, or
 * what memfd_create and mmap give for the BARs.
 */
DMAMAP_API int dmamap_system_soft(const struct dmamap_machine *machine,
	struct dmamap_system **system, struct dmamap_reason *why);

/**
 * dmamap_soft_declare() - Take a range of this process's memory, and the file
 * behind it, as if it were present and made of pages of one size. For shapes
 * that the machine at hand cannot back, such as 32 GiB of 1 GiB pages: mapping
 * them works and counts as it would, nothing is populated.
 * @address, @length: the range; multiples of the page size declared
 * @fd: the file that is mapped there, for IOMMU_IOAS_MAP_FILE; -1: none
 * @page_shift: log2 of the page size
 *
 * Return: 0; -EINVAL misaligned, or @system is no soft one; -ENOMEM.
 */
DMAMAP_API int dmamap_soft_declare(
	struct dmamap_system *system, void *address, uint64_t length, int fd, unsigned page_shift);
/** dmamap_soft_undeclare() - Forget the declaration that starts at @address. */
DMAMAP_API void dmamap_soft_undeclare(struct dmamap_system *system, void *address);

/** dmamap_soft_access() - An access as the device behind @device_fd (an open
 * device of this system) has it: DMA as the device would do it. The engine's
 * rules hold; destroy it before the device is closed or detached.
 *
 * Return: 0; -EBADF no device of this system; -ENODEV it is attached to
 * nothing; -ENOMEM. */
DMAMAP_API int dmamap_soft_access(
	struct dmamap_system *system, int device_fd, struct dmamap_access **access);

#ifdef __cplusplus
}
#endif

#endif
