/* SPDX-License-Identifier: MIT */
/*
 * What the files of type1 share: the container's address space, the domains
 * that translate it, and the memory of one mapping (the kernel's vfio_iommu,
 * vfio_domain and vfio_dma). The container's lock guards all of it.
 *
 *	type1.c		the ioctls: map, unmap
 *	type1_info.c	GET_INFO
 *	type1_dirty.c	dirty pages
 *	type1_domain.c	groups join and leave; which IOVAs are usable
 *	type1_memory.c	what backs a mapping, and what it is charged
 */
#ifndef DMAMAP_SOFT_TYPE1_H
#define DMAMAP_SOFT_TYPE1_H

#include <errno.h>

#include "soft/soft.h"

/* One IOMMU's page table and the groups behind it. */
struct type1_domain {
	struct type1_domain *next;
	const struct dmamap_machine_iommu *iommu;
	struct dmamap_table *table;
	uint64_t reached; /* the last IOVA that was ever mapped; 0: none */
	struct soft_group **groups;
	size_t n_groups;
};

struct soft_type1 {
	struct soft_space space;
	bool v2;
	bool nesting;
	bool tracking;		      /* of dirty pages */
	uint64_t page_sizes;	      /* that every domain has */
	uint64_t invalid;	      /* mappings whose address is invalid */
	struct type1_domain *domains; /* the newest first */
	struct dmamap_range *usable;  /* IOVAs, sorted; a mapping lies in one of them */
	size_t n_usable;
};

/* The memory of one mapping; its address is the area's memory. */
struct type1_dma {
	struct dmamap_memory memory;
	struct soft_type1 *type1;
	uint64_t va;
	struct soft_process *process; /* who is charged */
	uint64_t locked;	      /* for how many pages */
	uint64_t stale[2];	      /* type1_dirty.c */
	struct dmamap_memory *bar;    /* the BAR's mapping that was found last */

	/* What is known of the memory, from its start on. */
	struct type1_extent *extents;
	uint32_t n_extents, room;
	struct type1_extent {
		uint64_t last;	/* address */
		uint64_t shift; /* what to add to an address, to have the host's */
		unsigned contiguous;
	} only; /* most have one */
	bool vaddr_invalid;
};

int type1_dma_create(struct soft_type1 *type1, uint64_t va, uint64_t length, unsigned prot,
	struct type1_dma **dma);
/* Find all of the memory now, free of charge: filling a table cannot fail for its sake then. */
int type1_dma_survey(struct type1_dma *dma);
/* The current process pays for it from now on, if it may lock that much. */
int type1_dma_charge_current(struct type1_dma *dma);

static inline struct type1_dma *type1_dma_of(const struct dmamap_area *area)
{
	return (struct type1_dma *)area->memory;
}

/* Whether IOVAs may be mapped by the usable ranges: -EINVAL says what is in the way. */
int type1_check_usable(struct soft_type1 *type1, uint64_t first, uint64_t last);
/* v2: a range may neither start nor end inside a mapping. */
int type1_check_cut(struct soft_type1 *type1, uint64_t first, uint64_t last);

int type1_get_info(struct soft_type1 *type1, void *argument);
int type1_dirty_pages(struct soft_type1 *type1, void *argument);
/* Copy a bitmap's description in and check its size for @size bytes of IOVAs. */
struct vfio_bitmap;
int type1_bitmap_check(const struct vfio_bitmap *bitmap, uint64_t size);
/* Write the bits of one mapping to the user's bitmap, whose bit 0 is @base. */
int type1_bitmap_write(struct soft_type1 *type1, const struct vfio_bitmap *bitmap, uint64_t base,
	const struct dmamap_area *area);
/* The mapping is too large for a bitmap: -EINVAL. */
int type1_bitmap_fits(const struct soft_type1 *type1, const struct dmamap_area *area);

/* The smallest page that the domains have. */
static inline uint64_t type1_page(const struct soft_type1 *type1)
{
	return type1->page_sizes & -type1->page_sizes;
}

/*
 * Before 6.18 a range that wraps is -EINVAL, and one that ends with the last
 * byte of 64 bits meets no mapping: its end is 0 in the comparisons.
 */
static inline bool type1_ends_wrap(const struct soft_type1 *type1)
{
	return type1->space.system->machine.as_kernel < DMAMAP_KERNEL(6, 18);
}

static inline int type1_overflow(const struct soft_type1 *type1)
{
	return type1_ends_wrap(type1) ? EINVAL : EOVERFLOW;
}

#define END_OF(type, field) (offsetof(struct type, field) + sizeof(((struct type *)0)->field))

#endif
