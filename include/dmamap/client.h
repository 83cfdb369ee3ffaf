/* SPDX-License-Identifier: MIT */
/*
 * The client: the user's side of VFIO and IOMMUFD, written once over struct
 * dmamap_system. A mode says which of the kernel's interfaces it speaks; the
 * calls are the same in each.
 *
 * Threads: one client is used by one thread at a time. Errors: 0 or -errno.
 * Where a call takes a reason, it is the client's own (no such device), or
 * the system's where the system knows it.
 */
#ifndef DMAMAP_CLIENT_H
#define DMAMAP_CLIENT_H

#include "system.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct dmamap_mode - One way to the kernel's DMA mapping. The names are those
 * of the kernel's VFIO selftests, and one more for IOMMU_IOAS_MAP_FILE.
 * @name: "vfio_type1_iommu", "vfio_type1v2_iommu", "iommufd_compat_type1",
 *	"iommufd_compat_type1v2", "iommufd", "iommufd_file"
 * @type1: VFIO_TYPE1_IOMMU or VFIO_TYPE1v2_IOMMU for SET_IOMMU; 0: native
 *	IOMMUFD with a device cdev
 * @container: the file that it opens: "/dev/vfio/vfio" or "/dev/iommu"
 * @maps_files: maps a file and an offset instead of an address
 */
struct dmamap_mode {
	const char *name;
	unsigned type1;
	const char *container;
	bool maps_files;
};

#define DMAMAP_MODES 6
DMAMAP_API extern const struct dmamap_mode dmamap_modes[DMAMAP_MODES];

/** dmamap_mode_find() - By name, or NULL. */
DMAMAP_API const struct dmamap_mode *dmamap_mode_find(const char *name);

struct dmamap_client;

/**
 * dmamap_client_device() - The first PCI function that is bound to vfio-pci.
 * @bdf: out, "0000:00:03.0"
 *
 * Return: 0; -ENODEV none.
 */
DMAMAP_API int dmamap_client_device(struct dmamap_system *system, char bdf[16]);

/**
 * dmamap_client_open() - Open a device in a mode, ready for mapping.
 * @bdf: PCI address; "00:03.0" is taken as in domain 0000
 * @why: says what is missing and what to do: no such device, not bound to
 *	vfio-pci, no /dev/iommu, no permission, group busy
 *
 * Return: 0; -ENODEV, -EACCES, -ENOENT, -EBUSY ... as the system gave it.
 */
DMAMAP_API int dmamap_client_open(struct dmamap_system *system, const struct dmamap_mode *mode,
	const char *bdf, struct dmamap_client **client, struct dmamap_reason *why);
/** dmamap_client_close() - Close all of it; what is mapped is unmapped. NULL is fine. */
DMAMAP_API void dmamap_client_close(struct dmamap_client *client);

/** dmamap_client_mode(), dmamap_client_system() - What it was opened with. */
DMAMAP_API const struct dmamap_mode *dmamap_client_mode(const struct dmamap_client *client);
DMAMAP_API struct dmamap_system *dmamap_client_system(const struct dmamap_client *client);
/** dmamap_client_device_fd() - The open device; stays the client's. */
DMAMAP_API int dmamap_client_device_fd(const struct dmamap_client *client);

/**
 * dmamap_client_map() - Map memory of this process for DMA at a fixed IOVA.
 * @va, @length: multiples of the page size
 * @prot: DMAMAP_READ, DMAMAP_WRITE or both
 *
 * One ioctl and nothing else, so that its time is the mapping's. A mode that
 * maps files gives -EOPNOTSUPP. Return: 0, or as the system gave it.
 */
DMAMAP_API int dmamap_client_map(struct dmamap_client *client, void *va, uint64_t length,
	uint64_t iova, unsigned prot, struct dmamap_reason *why);

/**
 * dmamap_client_map_file() - Map part of a memfd or hugetlbfs file.
 * @start: byte in the file
 *
 * As dmamap_client_map(); only in the mode "iommufd_file", others give
 * -EOPNOTSUPP.
 */
DMAMAP_API int dmamap_client_map_file(struct dmamap_client *client, int fd, uint64_t start,
	uint64_t length, uint64_t iova, unsigned prot, struct dmamap_reason *why);

/**
 * dmamap_client_unmap() - Unmap by IOVA range, one ioctl.
 * @length: bytes; 0 with @iova 0: everything
 * @unmapped: out: bytes that the system says it unmapped; NULL is fine
 */
DMAMAP_API int dmamap_client_unmap(struct dmamap_client *client, uint64_t iova, uint64_t length,
	uint64_t *unmapped, struct dmamap_reason *why);

/**
 * dmamap_client_ranges() - The IOVA ranges that the system allows, ascending.
 * @ranges, @n: room; @n 0 with NULL asks for the number alone
 *
 * Return: how many there are, or -errno.
 */
DMAMAP_API ssize_t dmamap_client_ranges(
	struct dmamap_client *client, struct dmamap_range *ranges, size_t n);

/**
 * dmamap_client_iova_allocate() - Take a free IOVA range inside the allowed
 * ones. Bookkeeping of the client's own: the same in every mode. Give it back
 * with dmamap_client_iova_free() after unmapping.
 * @alignment: a power of two
 *
 * Return: 0; -ENOSPC; -EINVAL.
 */
DMAMAP_API int dmamap_client_iova_allocate(struct dmamap_client *client, uint64_t length,
	uint64_t alignment, uint64_t *iova, struct dmamap_reason *why);
/** dmamap_client_iova_free() - A range that was allocated. */
DMAMAP_API void dmamap_client_iova_free(
	struct dmamap_client *client, uint64_t iova, uint64_t length);

/**
 * struct dmamap_bar - A BAR as mapped into this process.
 * @va, @length: where
 * @index: which
 */
struct dmamap_bar {
	void *va;
	uint64_t length;
	unsigned index;
};

/**
 * dmamap_client_bar_size() - Bytes of BAR @index that can be mapped with mmap.
 *
 * Return: 0 and *@size (0: none, or no mmap); -errno.
 */
DMAMAP_API int dmamap_client_bar_size(struct dmamap_client *client, unsigned index, uint64_t *size);

/**
 * dmamap_client_bar_mmap() - Map a whole BAR, at an address with the best
 * alignment: the BAR's size, at most 1 GiB (a BAR is aligned to its size, so
 * that the address is congruent to the BAR's own).
 * @offset: bytes past that alignment, a multiple of the page size: 0, or what
 *	spoils the congruence on purpose
 *
 * Return: 0; -ENODEV no such BAR or not mappable; -errno.
 */
DMAMAP_API int dmamap_client_bar_mmap(struct dmamap_client *client, unsigned index, uint64_t offset,
	struct dmamap_bar *bar, struct dmamap_reason *why);
/** dmamap_client_bar_munmap() - Undo it. */
DMAMAP_API int dmamap_client_bar_munmap(struct dmamap_client *client, struct dmamap_bar *bar);

#ifdef __cplusplus
}
#endif

#endif
