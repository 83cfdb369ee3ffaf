/* SPDX-License-Identifier: MIT */
/*
 * Type1 and type1v2: MAP_DMA, UNMAP_DMA and GET_INFO of a VFIO container, with
 * the checks of drivers/vfio/vfio_iommu_type1.c in their order. The two
 * versions differ in what unmap makes of a mapping that the range cuts.
 *
 * The container's lock is held throughout: one call after the other, as the
 * kernel has it. Not provided: dirty tracking and changing addresses (VADDR),
 * and no memory is charged to RLIMIT_MEMLOCK.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/vfio.h"
#include "soft/soft.h"

#define END_OF(type, field) (offsetof(struct type, field) + sizeof(((struct type *)0)->field))

/* The largest dirty bitmap that the kernel takes: 2^31 pages, one bit each. */
#define DIRTY_BITMAP_MAX (1ULL << 28)

struct soft_type1 {
	struct soft_space space;
	struct dmamap_table *table;
	bool v2;
};

int soft_type1_create(struct soft_system *system, bool v2, struct soft_type1 **type1)
{
	struct soft_type1 *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "type1", 0);
	made->v2 = v2;
	error = soft_space_init(&made->space, system, system->machine.dma_entry_limit);
	if (error)
		goto free_made;
	error = soft_space_reserve_aperture(&made->space, made);
	if (!error)
		error = soft_space_reserve_windows(&made->space, made);
	if (!error)
		error = soft_space_table(&made->space, false, &made->table);
	if (error)
		goto fini_space;
	*type1 = made;
	return 0;
fini_space:
	soft_space_fini(&made->space);
free_made:
	free(made);
	return error;
}

void soft_type1_destroy(struct soft_type1 *type1)
{
	soft_space_fini(&type1->space);
	free(type1);
}

int soft_type1_access(struct soft_type1 *type1, struct dmamap_access **access)
{
	return dmamap_access_create(type1->table, access);
}

int soft_type1_extension(const struct soft_type1 *type1, unsigned long extension)
{
	switch (extension) {
	case VFIO_TYPE1_IOMMU:
	case VFIO_TYPE1v2_IOMMU:
	case VFIO_UNMAP_ALL:
		return 1;
	case VFIO_DMA_CC_IOMMU:
		return type1 ? 1 : 0;
	default:
		/* VFIO_UPDATE_VADDR too: it is not provided, and so not promised. */
		return 0;
	}
}

static int map(struct soft_type1 *type1, const struct vfio_iommu_type1_dma_map *user)
{
	struct soft_system *system = type1->space.system;
	uint64_t page = soft_page_size(system), iova_last, va_last;
	bool vaddr = user->flags & VFIO_DMA_MAP_FLAG_VADDR;
	struct dmamap_memory *memory;
	struct dmamap_area area;
	struct dmamap_map map;
	unsigned prot = 0;
	int error;

	if (!user->size)
		return SOFT_REFUSE(length_zero, EINVAL, "VFIO_IOMMU_MAP_DMA", 0);
	if (__builtin_add_overflow(user->iova, user->size - 1, &iova_last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "iova", user->iova, user->size);
	if (__builtin_add_overflow(user->vaddr, user->size - 1, &va_last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "vaddr", user->vaddr, user->size);
	if (user->flags & VFIO_DMA_MAP_FLAG_READ)
		prot |= DMAMAP_READ;
	if (user->flags & VFIO_DMA_MAP_FLAG_WRITE)
		prot |= DMAMAP_WRITE;
	if (!prot && !vaddr)
		return DMAMAP_REFUSE(soft_why(), &dmamap_reason_no_access, EINVAL, NULL, 0);
	if (prot && vaddr)
		return SOFT_REFUSE(flags_together, EINVAL, "VADDR with READ or WRITE", user->flags);
	if ((user->size | user->iova | user->vaddr) & (page - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "size | iova | vaddr",
			user->size | user->iova | user->vaddr, page);
	if (vaddr) {
		if (!dmamap_area_find(type1->space.space, user->iova, iova_last, &area))
			return SOFT_REFUSE(vaddr_nothing, ENOENT, NULL, user->iova);
		return SOFT_REFUSE(vaddr_valid, EINVAL, NULL, area.first, area.last);
	}
	if (!system->machine.dma_entry_limit)
		return DMAMAP_REFUSE(soft_why(), &dmamap_reason_area_limit, ENOSPC, NULL, 0);
	error = soft_memory_process(system, user->vaddr, user->size, prot, SOFT_PIN_TYPE1, &memory);
	if (error)
		return error;
	/* From here the engine's order is type1's: EEXIST, ENOSPC, EINVAL, EFAULT. */
	map = (struct dmamap_map){
		.first = user->iova,
		.last = iova_last,
		.memory = memory,
		.prot = prot,
	};
	error = dmamap_map(type1->space.space, &map, soft_why());
	dmamap_memory_put(memory);
	return error;
}

static int map_dma(struct soft_type1 *type1, void *argument)
{
	const uint32_t known =
		VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE | VFIO_DMA_MAP_FLAG_VADDR;
	struct vfio_iommu_type1_dma_map user;
	const size_t minimum = END_OF(vfio_iommu_type1_dma_map, size);
	int error = soft_copy_in(&user, argument, minimum, "vfio_iommu_type1_dma_map");

	if (error)
		return error;
	if (user.argsz < minimum)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_iommu_type1_dma_map", user.argsz, minimum);
	if (user.flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_IOMMU_MAP_DMA", user.flags, known);
	return map(type1, &user);
}

/* v2: the range may neither start nor end inside a mapping. */
static int check_cut(struct soft_type1 *type1, uint64_t iova, uint64_t iova_last)
{
	struct dmamap_area area;

	if (dmamap_area_find(type1->space.space, iova, iova, &area) && area.first != iova)
		goto cut;
	if (dmamap_area_find(type1->space.space, iova_last, iova_last, &area) &&
		area.last != iova_last)
		goto cut;
	return 0;
cut:
	return DMAMAP_REFUSE(soft_why(), &dmamap_reason_cut, EINVAL, NULL, iova, iova_last,
		area.first, area.last);
}

/* v1: a range that does not start a mapping removes nothing; one that does, all of it. */
static int unmap_v1(struct soft_type1 *type1, uint64_t iova, uint64_t iova_last, uint64_t *unmapped)
{
	struct dmamap_area area;

	*unmapped = 0;
	if (!dmamap_area_find(type1->space.space, iova, iova_last, &area) || area.first < iova)
		return 0;
	if (dmamap_area_find(type1->space.space, iova_last, iova_last, &area))
		iova_last = area.last;
	return dmamap_unmap(type1->space.space, iova, iova_last, unmapped, soft_why());
}

static int unmap(
	struct soft_type1 *type1, const struct vfio_iommu_type1_dma_unmap *user, uint64_t *unmapped)
{
	uint64_t page = soft_page_size(type1->space.system), iova_last = UINT64_MAX;
	bool all = user->flags & VFIO_DMA_UNMAP_FLAG_ALL;
	int error;

	if (user->iova & (page - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "iova", user->iova, page);
	if (all && (user->iova || user->size))
		return SOFT_REFUSE(unmap_all, EINVAL, NULL, user->iova, user->size);
	if (!all && !user->size)
		return SOFT_REFUSE(length_zero, EINVAL, "VFIO_IOMMU_UNMAP_DMA", 0);
	if (user->size & (page - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "size", user->size, page);
	if (!all && __builtin_add_overflow(user->iova, user->size - 1, &iova_last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "iova", user->iova, user->size);
	if (user->flags & VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP)
		return SOFT_REFUSE(tracking_off, EINVAL, NULL, 0);
	if (user->flags & VFIO_DMA_UNMAP_FLAG_VADDR)
		return SOFT_REFUSE(not_provided, EOPNOTSUPP, "VFIO_DMA_UNMAP_FLAG_VADDR", 0);
	if (!type1->v2)
		return unmap_v1(type1, user->iova, iova_last, unmapped);
	if (!all) {
		error = check_cut(type1, user->iova, iova_last);
		if (error)
			return error;
	}
	return dmamap_unmap(type1->space.space, user->iova, iova_last, unmapped, soft_why());
}

static int check_bitmap(const struct vfio_bitmap *bitmap, uint64_t size)
{
	/* A page size of 0 has no meaning in the kernel either. */
	uint64_t pages = bitmap->pgsize ? size >> __builtin_ctzll(bitmap->pgsize) : 0;

	if (!pages || !bitmap->size || bitmap->size > DIRTY_BITMAP_MAX ||
		bitmap->size < (pages / 64 + (pages % 64 != 0)) * 8)
		return SOFT_REFUSE(bitmap_size, EINVAL, NULL, bitmap->size, pages);
	return 0;
}

static int unmap_dma(struct soft_type1 *type1, void *argument)
{
	const uint32_t known = VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP | VFIO_DMA_UNMAP_FLAG_VADDR |
			       VFIO_DMA_UNMAP_FLAG_ALL;
	const size_t minimum = END_OF(vfio_iommu_type1_dma_unmap, size);
	struct vfio_iommu_type1_dma_unmap user;
	struct vfio_bitmap bitmap;
	bool dirty;
	int error = soft_copy_in(&user, argument, minimum, "vfio_iommu_type1_dma_unmap");

	if (error)
		return error;
	if (user.argsz < minimum)
		return SOFT_REFUSE(
			argsz, EINVAL, "vfio_iommu_type1_dma_unmap", user.argsz, minimum);
	if (user.flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_IOMMU_UNMAP_DMA", user.flags, known);
	dirty = user.flags & VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP;
	if (dirty && user.flags & (VFIO_DMA_UNMAP_FLAG_ALL | VFIO_DMA_UNMAP_FLAG_VADDR))
		return SOFT_REFUSE(
			flags_together, EINVAL, "a dirty bitmap with ALL or VADDR", user.flags);
	if (dirty) {
		if (user.argsz < minimum + sizeof(bitmap))
			return SOFT_REFUSE(argsz, EINVAL, "an unmap with a bitmap", user.argsz,
				minimum + sizeof(bitmap));
		error = soft_copy_in(
			&bitmap, (char *)argument + minimum, sizeof(bitmap), "vfio_bitmap");
		if (!error)
			error = check_bitmap(&bitmap, user.size);
		if (error)
			return error;
	}
	error = unmap(type1, &user, &user.size);
	if (error)
		return error;
	return soft_copy_out(argument, &user, minimum, "vfio_iommu_type1_dma_unmap");
}

static int dirty_get(void *argument, size_t at, uint32_t argsz)
{
	struct vfio_iommu_type1_dirty_bitmap_get get;
	uint64_t last;
	int error;

	if (argsz - at < sizeof(get))
		return SOFT_REFUSE(argsz, EINVAL, "vfio_iommu_type1_dirty_bitmap_get", argsz,
			at + sizeof(get));
	error = soft_copy_in(
		&get, (char *)argument + at, sizeof(get), "vfio_iommu_type1_dirty_bitmap_get");
	if (error)
		return error;
	if (!get.size)
		return SOFT_REFUSE(length_zero, EINVAL, "a dirty bitmap", 0);
	if (__builtin_add_overflow(get.iova, get.size - 1, &last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "iova", get.iova, get.size);
	error = check_bitmap(&get.bitmap, get.size);
	return error ? error : SOFT_REFUSE(tracking_off, EINVAL, NULL, 0);
}

static int dirty_pages(struct soft_type1 *type1, void *argument)
{
	const uint32_t known = VFIO_IOMMU_DIRTY_PAGES_FLAG_START |
			       VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP |
			       VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP;
	const size_t minimum = END_OF(vfio_iommu_type1_dirty_bitmap, flags);
	struct vfio_iommu_type1_dirty_bitmap user;
	int error;

	if (!type1->v2)
		return SOFT_REFUSE(dirty_v1, EACCES, NULL, 0);
	error = soft_copy_in(&user, argument, minimum, "vfio_iommu_type1_dirty_bitmap");
	if (error)
		return error;
	if (user.argsz < minimum)
		return SOFT_REFUSE(
			argsz, EINVAL, "vfio_iommu_type1_dirty_bitmap", user.argsz, minimum);
	if (user.flags & ~known || __builtin_popcount(user.flags) != 1)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_IOMMU_DIRTY_PAGES", user.flags, known);
	if (user.flags & VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP)
		return 0;
	if (user.flags & VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP)
		return dirty_get(argument, minimum, user.argsz);
	return SOFT_REFUSE(not_provided, EOPNOTSUPP, "VFIO_IOMMU_DIRTY_PAGES_FLAG_START", 0);
}

/* The chain: migration, entries left, IOVA ranges; "next" counts from the info's start. */
static size_t build_caps(
	struct soft_type1 *type1, char *to, size_t at, const struct dmamap_range *ranges, size_t n)
{
	const struct dmamap_machine *machine = &type1->space.system->machine;
	struct dmamap_counters counters;
	struct vfio_iommu_type1_info_cap_migration migration = {
		.header = {VFIO_IOMMU_TYPE1_INFO_CAP_MIGRATION, 1, 0},
		.pgsize_bitmap = 1ULL << machine->page_shift,
		.max_dirty_bitmap_size = DIRTY_BITMAP_MAX,
	};
	struct vfio_iommu_type1_info_dma_avail avail = {
		.header = {VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, 1, 0},
	};
	struct vfio_iommu_type1_info_cap_iova_range range = {
		.header = {VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, 1, 0},
		.nr_iovas = (uint32_t)n,
	};
	size_t start = at;

	dmamap_space_counters(type1->space.space, &counters);
	avail.avail = (uint32_t)(machine->dma_entry_limit - counters.areas);
	migration.header.next = (uint32_t)(at + sizeof(migration));
	memcpy(to, &migration, sizeof(migration));
	at += sizeof(migration);
	if (n)
		avail.header.next = (uint32_t)(at + 16);
	memcpy(to + (at - start), &avail, sizeof(avail));
	at += 16;
	if (n) {
		memcpy(to + (at - start), &range, sizeof(range));
		at += sizeof(range);
		for (size_t i = 0; i < n; i++, at += sizeof(struct vfio_iova_range)) {
			struct vfio_iova_range one = {ranges[i].first, ranges[i].last};

			memcpy(to + (at - start), &one, sizeof(one));
		}
	}
	return at - start;
}

static int get_info(struct soft_type1 *type1, void *argument)
{
	const struct dmamap_machine *machine = &type1->space.system->machine;
	size_t size = END_OF(vfio_iommu_type1_info, iova_pgsizes), n, caps_size;
	struct vfio_iommu_type1_info info = {0};
	struct dmamap_range *ranges;
	char *caps = NULL;
	int error = soft_copy_in(&info, argument, size, "vfio_iommu_type1_info");

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_iommu_type1_info", info.argsz, size);
	if (info.argsz < sizeof(info))
		size = info.argsz;
	else
		size = sizeof(info);
	error = soft_space_ranges(&type1->space, &ranges, &n);
	if (error)
		return error;
	caps = calloc(1, 64 + n * sizeof(struct vfio_iova_range));
	if (!caps) {
		error = SOFT_REFUSE(no_memory, ENOMEM, "capabilities", 0);
		goto out;
	}
	caps_size = build_caps(type1, caps, sizeof(info), ranges, n);
	info.flags = VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS;
	/* Sizes below the page are hidden: a page is made of them. */
	info.iova_pgsizes = machine->leaf_sizes & ~(soft_page_size(type1->space.system) - 1);
	if (info.argsz < sizeof(info) + caps_size) {
		info.argsz = (uint32_t)(sizeof(info) + caps_size);
	} else {
		error = soft_copy_out(
			(char *)argument + sizeof(info), caps, caps_size, "capabilities");
		info.cap_offset = sizeof(info);
	}
	if (!error)
		error = soft_copy_out(argument, &info, size, "vfio_iommu_type1_info");
out:
	free(caps);
	free(ranges);
	return error;
}

int soft_type1_ioctl(struct soft_type1 *type1, unsigned request, void *argument)
{
	switch (request) {
	case VFIO_IOMMU_GET_INFO:
		return get_info(type1, argument);
	case VFIO_IOMMU_MAP_DMA:
		return map_dma(type1, argument);
	case VFIO_IOMMU_UNMAP_DMA:
		return unmap_dma(type1, argument);
	case VFIO_IOMMU_DIRTY_PAGES:
		return dirty_pages(type1, argument);
	default:
		return SOFT_REFUSE(request, ENOTTY, "type1", request);
	}
}
