/* SPDX-License-Identifier: MIT */
/*
 * VFIO_IOMMU_GET_INFO of type1: page sizes, and a chain of capabilities that is
 * left out, not refused, where the caller has no room for it
 * (vfio_iommu_type1_get_info() in drivers/vfio/vfio_iommu_type1.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/vfio.h"
#include "soft/type1.h"

/* The largest dirty bitmap that the kernel takes: 2^31 pages, one bit each. */
#define DIRTY_BITMAP_MAX (1ULL << 28)

/* Every capability's size is a multiple of 8. */
#define ROOM_OF(type) ((sizeof(struct type) + 7) & ~7ULL)

static uint32_t entries_left(struct soft_type1 *type1)
{
	struct dmamap_counters counters;

	dmamap_space_counters(type1->space.space, &counters);
	return (uint32_t)(type1->space.system->machine.dma_entry_limit - counters.areas);
}

/* Migration, entries left, IOVA ranges; "next" counts from the info's start. */
static size_t build_caps(struct soft_type1 *type1, char *to, size_t at)
{
	size_t n = type1->n_usable, start = at;
	struct vfio_iommu_type1_info_cap_migration migration = {
		.header = {VFIO_IOMMU_TYPE1_INFO_CAP_MIGRATION, 1, 0},
		.pgsize_bitmap = type1_page(type1),
		.max_dirty_bitmap_size = DIRTY_BITMAP_MAX,
	};
	struct vfio_iommu_type1_info_dma_avail avail = {
		.header = {VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, 1, 0},
		.avail = entries_left(type1),
	};
	struct vfio_iommu_type1_info_cap_iova_range range = {
		.header = {VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, 1, 0},
		.nr_iovas = (uint32_t)n,
	};

	migration.header.next = (uint32_t)(at + sizeof(migration));
	memcpy(to, &migration, sizeof(migration));
	at += sizeof(migration);
	avail.header.next = n ? (uint32_t)(at + ROOM_OF(vfio_iommu_type1_info_dma_avail)) : 0;
	memcpy(to + (at - start), &avail, sizeof(avail));
	at += ROOM_OF(vfio_iommu_type1_info_dma_avail);
	if (n) {
		memcpy(to + (at - start), &range, sizeof(range));
		at += sizeof(range);
	}
	for (size_t i = 0; i < n; i++, at += sizeof(struct vfio_iova_range)) {
		struct vfio_iova_range one = {type1->usable[i].first, type1->usable[i].last};

		memcpy(to + (at - start), &one, sizeof(one));
	}
	return at - start;
}

int type1_get_info(struct soft_type1 *type1, void *argument)
{
	size_t size = END_OF(vfio_iommu_type1_info, iova_pgsizes), caps_size;
	struct vfio_iommu_type1_info info = {0};
	char *caps;
	int error = soft_copy_in(&info, argument, size, "vfio_iommu_type1_info");

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_iommu_type1_info", info.argsz, size);
	size = info.argsz < sizeof(info) ? info.argsz : sizeof(info);
	caps = calloc(1, 64 + type1->n_usable * sizeof(struct vfio_iova_range));
	if (!caps)
		return SOFT_REFUSE(no_memory, ENOMEM, "capabilities", 0);
	caps_size = build_caps(type1, caps, sizeof(info));
	info.flags = VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS;
	info.iova_pgsizes = type1->page_sizes;
	if (info.argsz < sizeof(info) + caps_size) {
		info.argsz = (uint32_t)(sizeof(info) + caps_size);
	} else {
		error = soft_copy_out(
			(char *)argument + sizeof(info), caps, caps_size, "capabilities");
		info.cap_offset = sizeof(info);
	}
	if (!error)
		error = soft_copy_out(argument, &info, size, "vfio_iommu_type1_info");
	free(caps);
	return error;
}
