/* SPDX-License-Identifier: MIT */
/*
 * A machine: what a soft system is about, and what the machine at hand is. Page
 * size, IOMMUs with aperture, leaf sizes and reserved windows, PCI functions
 * with groups, BARs and interrupts, limits, and the kernel whose rules hold. It
 * is read from text, written as text, and found through a system's sysfs; the
 * text is described in docs/machine-format.md.
 *
 * Memory. A machine that parse, load, copy or detect made owns all that it
 * points at: dmamap_machine_free() it. One that was filled by hand, or by
 * dmamap_machine_default(), owns nothing and is never freed. A system takes a
 * copy of the one that it is given.
 */
#ifndef DMAMAP_MACHINE_H
#define DMAMAP_MACHINE_H

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

/** The IOMMU hardware that a machine has; decides the details of its answers. */
enum dmamap_iommu_model {
	DMAMAP_IOMMU_INTEL,  /**< VT-d */
	DMAMAP_IOMMU_AMD,    /**< AMD-Vi with the v1 page table */
	DMAMAP_IOMMU_SMMUV3, /**< Arm SMMUv3, stage 1 */
	DMAMAP_IOMMU_VIRTIO, /**< virtio-iommu */
};

/**
 * struct dmamap_machine_iommu - One IOMMU unit and what its devices can reach.
 * @model: see above
 * @aperture_bits: IOVAs that it translates: 39, 48, 57 ... 64
 * @leaf_sizes: bitmap of its page sizes; must hold the page size
 * @windows, @n_windows: ranges reserved for each of its devices
 * @coherent: it enforces cache coherency against a device's no-snoop
 *	(VFIO_DMA_CC_IOMMU is 1). Nothing is refused where it does not; a device
 *	that is not coherent at all cannot be bound to vfio-pci
 * @dirty: it can track dirty pages (IOMMU_HWPT_ALLOC_DIRTY_TRACKING)
 */
struct dmamap_machine_iommu {
	enum dmamap_iommu_model model;
	unsigned aperture_bits;
	uint64_t leaf_sizes;
	const struct dmamap_machine_window *windows;
	size_t n_windows;
	bool coherent;
	bool dirty;
};

#define DMAMAP_MACHINE_BARS 6

#define DMAMAP_BAR_IO	    1u /**< ports, not memory (IORESOURCE_IO, 0x100) */
#define DMAMAP_BAR_64	    2u /**< 64-bit, whatever its size (IORESOURCE_MEM_64, 0x100000) */
#define DMAMAP_BAR_PREFETCH 4u /**< prefetchable (IORESOURCE_PREFETCH, 0x2000) */

/**
 * struct dmamap_machine_device - One PCI function, bound to vfio-pci.
 * @bdf: "0000:00:03.0"
 * @iommu: which of the machine's IOMMUs translates for it; the devices of a
 *	group have the same one
 * @group: IOMMU group number: /dev/vfio/GROUP
 * @cdev: /dev/vfio/devices/vfioN
 * @vendor, @device: ids in its config space
 * @class_code: 24 bits
 * @bar_size: bytes, 0 or a power of two; a BAR of more than 2 GiB is 64-bit
 *	and takes the next one's place too
 * @bar_address: the BAR's bus address, a multiple of its size
 * @bar_flags: DMAMAP_BAR_*, as in the last column of sysfs's "resource"
 * @rom_size: bytes of its ROM BAR, 0: no ROM that can be read
 * @express: it has a PCI Express capability, and 4 KiB of config space
 * @intx: it has a pin interrupt
 * @msi, @msix: vectors, 0: no such capability; MSI a power of two up to 32,
 *	MSI-X up to 2048
 * @msix_bar, @msix_offset: where the MSI-X table is: in that BAR, or the first
 *	one after it that has room there
 * @reset: it can be reset (VFIO_DEVICE_RESET): sysfs has a file "reset"
 */
struct dmamap_machine_device {
	char bdf[16];
	unsigned iommu;
	unsigned group;
	unsigned cdev;
	uint16_t vendor;
	uint16_t device;
	uint32_t class_code;
	uint64_t bar_size[DMAMAP_MACHINE_BARS];
	uint64_t bar_address[DMAMAP_MACHINE_BARS];
	uint8_t bar_flags[DMAMAP_MACHINE_BARS];
	uint32_t rom_size;
	bool express;
	bool intx;
	unsigned msi;
	unsigned msix;
	unsigned msix_bar;
	uint32_t msix_offset;
	bool reset;
};

/** A kernel's version as one number, for comparison. */
#define DMAMAP_KERNEL(major, minor) ((unsigned)(major) << 8 | (unsigned)(minor))

/** Whose limit on locked memory holds. */
enum dmamap_memlock {
	DMAMAP_MEMLOCK_PROCESS,	  /**< RLIMIT_MEMLOCK and CAP_IPC_LOCK of the calling process */
	DMAMAP_MEMLOCK_UNLIMITED, /**< none: all is counted, nothing refused */
};

/**
 * struct dmamap_machine - What a soft system is about.
 * @page_shift: 12, 14 or 16
 * @iommus, @n_iommus: at least one
 * @devices, @n_devices: what is bound to vfio-pci
 * @as_kernel: the Linux whose answers these are: DMAMAP_KERNEL(7, 3), or
 *	DMAMAP_KERNEL(6, 12) for what was different there
 * @memlock: see above
 * @dma_entry_limit: type1's module parameter of that name
 * @disable_hugepages: type1's: pin one page at a time
 * @allow_unsafe_interrupts: type1's and IOMMUFD's; false: a device is refused
 *	(EPERM) where @isolated_msi is false
 * @isolated_msi: the machine keeps its devices' interrupts apart
 * @pfnmap_stride: how BARs are looked up; the default follows @as_kernel
 */
struct dmamap_machine {
	unsigned page_shift;
	const struct dmamap_machine_iommu *iommus;
	size_t n_iommus;
	const struct dmamap_machine_device *devices;
	size_t n_devices;
	unsigned as_kernel;
	enum dmamap_memlock memlock;
	uint64_t dma_entry_limit;
	bool disable_hugepages;
	bool allow_unsafe_interrupts;
	bool isolated_msi;
	enum dmamap_pfnmap_stride pfnmap_stride;
};

/**
 * dmamap_machine_default() - 4 KiB pages, one Intel IOMMU with a 48-bit
 * aperture, 4K/2M/1G leaves and the MSI window, the process's own limit on
 * locked memory, 65535 entries, Linux 7.3, and one function, 0000:00:03.0 in
 * group 7, with a BAR0 of 16 MiB and a BAR2 of 32 GiB (sparse: only what is
 * written takes memory).
 */
DMAMAP_API void dmamap_machine_default(struct dmamap_machine *machine);

/**
 * dmamap_machine_parse() - Read a machine from text: "key=value" items, between
 * commas or on lines, with # comments (docs/machine-format.md).
 * @base: what is not named stays as here; NULL: the default machine
 * @text: may be empty
 * @machine: out, to be freed; untouched on failure
 * @why: names line, column and key, and what could have been given. Its first
 *	two numbers are the line and the column, both from 1, but for a machine
 *	that cannot be as a whole (kind "machine")
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
DMAMAP_API int dmamap_machine_parse(const struct dmamap_machine *base, const char *text,
	struct dmamap_machine *machine, struct dmamap_reason *why);

/**
 * dmamap_machine_load() - As dmamap_machine_parse(), where a @spec that starts
 * with '@' names a file that has the text.
 *
 * Return: as parse; and what opening and reading the file give.
 */
DMAMAP_API int dmamap_machine_load(const struct dmamap_machine *base, const char *spec,
	struct dmamap_machine *machine, struct dmamap_reason *why);

/**
 * dmamap_machine_copy() - A copy that owns all of it, of a machine that can be.
 *
 * Return: 0; -EINVAL a machine that cannot be, @why says what; -ENOMEM.
 */
DMAMAP_API int dmamap_machine_copy(struct dmamap_machine *machine,
	const struct dmamap_machine *from, struct dmamap_reason *why);
/** dmamap_machine_free() - What parse, load, copy or detect made. Twice is fine. */
DMAMAP_API void dmamap_machine_free(struct dmamap_machine *machine);

/**
 * dmamap_machine_print() - Write a machine as text that parse reads, with every
 * default spelled out.
 * @separator: ',' for one line, '\n' for a file
 * @buffer, @size: where to, NUL-terminated, cut to @size; NULL and 0 are fine
 *
 * Return: the length of the whole text, as snprintf does.
 */
DMAMAP_API size_t dmamap_machine_print(
	const struct dmamap_machine *machine, char separator, char *buffer, size_t size);

/** dmamap_machine_model_name() - "intel", "amd", "smmuv3" or "virtio". */
DMAMAP_API const char *dmamap_machine_model_name(enum dmamap_iommu_model model);

/**
 * dmamap_machine_detect() - Describe the machine that a system's sysfs shows:
 * the functions that are bound to vfio-pci, the IOMMUs, the kernel, limits.
 * Nothing is opened but files to read.
 * @machine: out, to be freed; untouched on failure
 * @assumed: out: bits of dmamap_machine_assumption(): what sysfs does not tell
 *	and was taken to be as usual; NULL is fine
 *
 * Return: 0; -ENODEV there is no IOMMU, or none that is known; -EINVAL what was
 * found cannot be a machine of ours; -ENOMEM.
 */
DMAMAP_API int dmamap_machine_detect(struct dmamap_system *system, struct dmamap_machine *machine,
	uint32_t *assumed, struct dmamap_reason *why);

/** dmamap_machine_assumption() - What bit @bit of @assumed says, as a clause; NULL: no such bit. */
DMAMAP_API const char *dmamap_machine_assumption(unsigned bit);

#ifdef __cplusplus
}
#endif

#endif
