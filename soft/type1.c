/* SPDX-License-Identifier: MIT */
/*
 * Type1 and type1v2: MAP_DMA and UNMAP_DMA of a VFIO container, with the checks
 * of drivers/vfio/vfio_iommu_type1.c in their order. The two versions differ in
 * what unmap makes of a mapping that the range cuts.
 *
 * The container's lock is held throughout: one call after the other, as the
 * kernel has it.
 *
 * A mapping whose address was made invalid (VADDR) keeps its pages and its
 * charge; it gets another address, maybe of another process, which then pays.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/vfio.h"
#include "soft/type1.h"

/* Type 6 was v2 whose domains could nest in another's, which only an SMMU could do. */
#define TYPE1_NESTING 6

static bool has_nesting(const struct soft_system *system)
{
	return system->machine.as_kernel < DMAMAP_KERNEL(6, 13);
}

int soft_type1_create(struct soft_system *system, unsigned long type, struct soft_type1 **type1)
{
	struct soft_type1 *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "type1", 0);
	made->v2 = type != VFIO_TYPE1_IOMMU;
	made->nesting = type == TYPE1_NESTING;
	made->page_sizes = -soft_page_size(system);
	error = soft_space_init(&made->space, system, (uint32_t)system->machine.dma_entry_limit);
	if (error) {
		free(made);
		return error;
	}
	*type1 = made;
	return 0;
}

void soft_type1_destroy(struct soft_type1 *type1)
{
	soft_space_fini(&type1->space);
	free(type1->usable);
	free(type1);
}

static int domains_are_coherent(const struct soft_type1 *type1)
{
	for (const struct type1_domain *domain = type1->domains; domain; domain = domain->next)
		if (!domain->iommu->coherent)
			return 0;
	return 1;
}

int soft_type1_extension(
	const struct soft_system *system, const struct soft_type1 *type1, unsigned long extension)
{
	switch (extension) {
	case VFIO_TYPE1_IOMMU:
	case VFIO_TYPE1v2_IOMMU:
	case VFIO_UNMAP_ALL:
		return 1;
	case TYPE1_NESTING:
		return has_nesting(system);
	case VFIO_UPDATE_VADDR:
		return type1 ? 1 : 0;
	case VFIO_DMA_CC_IOMMU:
		return type1 ? domains_are_coherent(type1) : 0;
	default:
		return 0;
	}
}

/* -------------------------------------------------------------------- map */

static int add_mapping(
	struct soft_type1 *type1, const struct vfio_iommu_type1_dma_map *user, unsigned prot)
{
	uint64_t last = user->iova + (user->size - 1);
	const struct dmamap_area area = {.first = user->iova, .last = last};
	struct dmamap_map map = {.first = user->iova, .last = last, .prot = prot};
	struct type1_dma *dma;
	int error = type1_dma_create(type1, user->vaddr, user->size, prot, &dma);

	if (error)
		return error;
	map.memory = &dma->memory;
	error = dmamap_map(type1->space.space, &map, soft_why());
	dmamap_memory_put(map.memory);
	if (error)
		return error;
	for (struct type1_domain *domain = type1->domains; domain; domain = domain->next)
		if (last > domain->reached)
			domain->reached = last;
	if (!type1->tracking)
		return 0;
	error = type1_bitmap_fits(type1, &area);
	if (error)
		dmamap_unmap(type1->space.space, user->iova, last, NULL, NULL);
	return error;
}

/* The checks that come before the usable ranges, for a call that those refuse. */
static int check_before(struct soft_type1 *type1, uint64_t first, uint64_t last)
{
	uint32_t limit = (uint32_t)type1->space.system->machine.dma_entry_limit;
	bool unseen = last == UINT64_MAX && type1_ends_wrap(type1);
	struct dmamap_counters counters;
	struct dmamap_area area;

	if (!unseen && dmamap_area_find(type1->space.space, first, last, &area))
		return DMAMAP_REFUSE(soft_why(), &dmamap_reason_overlap, EEXIST, NULL, first, last,
			area.first, area.last);
	dmamap_space_counters(type1->space.space, &counters);
	if (counters.areas >= limit)
		return DMAMAP_REFUSE(
			soft_why(), &dmamap_reason_area_limit, ENOSPC, NULL, counters.areas, limit);
	return 0;
}

static int map_new(
	struct soft_type1 *type1, const struct vfio_iommu_type1_dma_map *user, unsigned prot)
{
	uint64_t last = user->iova + (user->size - 1);
	bool none = !(uint32_t)type1->space.system->machine.dma_entry_limit;
	int unusable = type1_check_usable(type1, user->iova, last), error;

	/* The engine checks for EEXIST and ENOSPC, too; it takes a limit of 0 for none. */
	if (!unusable && !none)
		return add_mapping(type1, user, prot);
	error = check_before(type1, user->iova, last);
	return error ? error : type1_check_usable(type1, user->iova, last);
}

/*
 * The same bytes at another address, which the caller vouches for: devices are
 * led there, since the old address may soon be gone. Where nothing can be
 * found at the new one the old one stays, as the kernel's pages would.
 */
static void move_mapping(struct soft_type1 *type1, const struct dmamap_area *area, uint64_t va)
{
	struct type1_dma *old = type1_dma_of(area), *dma;
	struct dmamap_map map = {.first = area->first, .last = area->last, .prot = area->prot};

	if (old->va == va ||
		type1_dma_create(type1, va, area->last - area->first + 1, area->prot, &dma))
		return;
	if (type1_dma_survey(dma)) {
		dmamap_memory_put(&dma->memory);
		return;
	}
	dma->process = old->process;
	dma->stale[0] = old->stale[0];
	dma->stale[1] = old->stale[1];
	dmamap_memory_get(&old->memory);
	dmamap_unmap(type1->space.space, area->first, area->last, NULL, NULL);
	map.memory = &dma->memory;
	if (!dmamap_map(type1->space.space, &map, NULL)) {
		dma->locked = old->locked;
		old->locked = 0;
	} else {
		map.memory = &old->memory;
		dmamap_map(type1->space.space, &map, NULL);
	}
	dmamap_memory_put(&dma->memory);
	dmamap_memory_put(&old->memory);
}

/* MAP with VADDR: vfio_change_dma_owner(), and the new address. */
static int map_vaddr(struct soft_type1 *type1, const struct vfio_iommu_type1_dma_map *user)
{
	uint64_t last = user->iova + (user->size - 1);
	struct dmamap_area area;
	struct type1_dma *dma;
	int error;

	if ((last == UINT64_MAX && type1_ends_wrap(type1)) ||
		!dmamap_area_find(type1->space.space, user->iova, last, &area))
		return SOFT_REFUSE(vaddr_nothing, ENOENT, NULL, user->iova);
	if (area.first != user->iova || area.last != last)
		return SOFT_REFUSE(
			vaddr_inexact, EINVAL, NULL, user->iova, last, area.first, area.last);
	dma = type1_dma_of(&area);
	if (!dma->vaddr_invalid)
		return SOFT_REFUSE(vaddr_valid, EINVAL, NULL, area.first, area.last);
	error = type1_dma_charge_current(dma);
	if (error)
		return error;
	dma->vaddr_invalid = false;
	type1->invalid--;
	move_mapping(type1, &area, user->vaddr);
	return 0;
}

static int check_page(uint64_t value, uint64_t page, const char *what)
{
	return value & (page - 1) ? SOFT_REFUSE(misaligned, EINVAL, what, value, page) : 0;
}

static int map(struct soft_type1 *type1, const struct vfio_iommu_type1_dma_map *user)
{
	bool vaddr = user->flags & VFIO_DMA_MAP_FLAG_VADDR;
	uint64_t page = type1_page(type1), last;
	unsigned prot = 0;
	int error;

	if (!user->size)
		return SOFT_REFUSE(length_zero, EINVAL, "VFIO_IOMMU_MAP_DMA", 0);
	if (__builtin_add_overflow(user->iova, user->size - 1, &last))
		return SOFT_REFUSE(wrap, type1_overflow(type1), "iova", user->iova, user->size);
	if (__builtin_add_overflow(user->vaddr, user->size - 1, &last))
		return SOFT_REFUSE(wrap, type1_overflow(type1), "vaddr", user->vaddr, user->size);
	if (user->flags & VFIO_DMA_MAP_FLAG_READ)
		prot |= DMAMAP_READ;
	if (user->flags & VFIO_DMA_MAP_FLAG_WRITE)
		prot |= DMAMAP_WRITE;
	if (!prot && !vaddr)
		return DMAMAP_REFUSE(soft_why(), &dmamap_reason_no_access, EINVAL, NULL, 0);
	if (prot && vaddr)
		return SOFT_REFUSE(flags_together, EINVAL, "VADDR with READ or WRITE", user->flags);
	error = check_page(user->iova, page, "iova");
	if (!error)
		error = check_page(user->vaddr, page, "vaddr");
	if (!error)
		error = check_page(user->size, page, "size");
	if (error)
		return error;
	return vaddr ? map_vaddr(type1, user) : map_new(type1, user, prot);
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

/* ------------------------------------------------------------------ unmap */

int type1_check_cut(struct soft_type1 *type1, uint64_t first, uint64_t last)
{
	struct dmamap_area area;

	if (dmamap_area_find(type1->space.space, first, first, &area) && area.first != first)
		goto cut;
	if (dmamap_area_find(type1->space.space, last, last, &area) && area.last != last)
		goto cut;
	return 0;
cut:
	return DMAMAP_REFUSE(
		soft_why(), &dmamap_reason_cut, EINVAL, NULL, first, last, area.first, area.last);
}

/* An unmap that passed the checks: what to do with the mappings from @first to @last. */
struct unmapping {
	uint64_t first, last;
	bool all;
	bool invalidate;		  /* only the addresses */
	const struct vfio_bitmap *bitmap; /* NULL: not asked for */
};

static bool next_area(const struct soft_type1 *type1, const struct unmapping *unmapping,
	uint64_t from, struct dmamap_area *area)
{
	if (!dmamap_area_find(type1->space.space, from, unmapping->last, area))
		return false;
	/* v1: what starts before the range is left alone, and ends the matter. */
	return type1->v2 || area->first >= unmapping->first;
}

static void set_invalid(struct soft_type1 *type1, const struct dmamap_area *area, bool invalid)
{
	type1_dma_of(area)->vaddr_invalid = invalid;
	type1->invalid += invalid ? 1 : -1ULL;
}

/* One that is invalid already: all are again as they were. */
static int invalidate(
	struct soft_type1 *type1, const struct unmapping *unmapping, uint64_t *invalidated)
{
	struct dmamap_area area, done;
	uint64_t from = unmapping->first, undo = unmapping->first;

	while (next_area(type1, unmapping, from, &area)) {
		if (type1_dma_of(&area)->vaddr_invalid)
			goto undo;
		set_invalid(type1, &area, true);
		*invalidated += area.last - area.first + 1;
		if (area.last >= unmapping->last)
			break;
		from = area.last + 1;
	}
	return 0;
undo:
	while (dmamap_area_find(type1->space.space, undo, unmapping->last, &done) &&
		done.first != area.first) {
		set_invalid(type1, &done, false);
		undo = done.last + 1;
	}
	return SOFT_REFUSE(vaddr_invalid, EINVAL, NULL, area.first, area.last);
}

/* One by one: a bitmap that cannot be written ends it, with what was before it unmapped. */
static int unmap_dirty(
	struct soft_type1 *type1, const struct unmapping *unmapping, uint64_t *unmapped)
{
	struct dmamap_area area;
	int error = 0;

	while (!error &&
		dmamap_area_find(type1->space.space, unmapping->first, unmapping->last, &area)) {
		error = type1_bitmap_write(type1, unmapping->bitmap, unmapping->first, &area);
		if (!error)
			error = dmamap_unmap(
				type1->space.space, area.first, area.last, NULL, soft_why());
		if (!error)
			*unmapped += area.last - area.first + 1;
	}
	return error;
}

static int unmap_range(struct soft_type1 *type1, struct unmapping *unmapping, uint64_t *unmapped)
{
	bool unseen = !unmapping->all && unmapping->last == UINT64_MAX && type1_ends_wrap(type1);
	struct dmamap_area area;
	int error;

	if (type1->v2 && !unmapping->all &&
		(unmapping->invalidate || unmapping->bitmap || unseen)) {
		error = type1_check_cut(type1, unmapping->first, unmapping->last);
		if (error)
			return error;
	}
	*unmapped = 0;
	if (unseen)
		return 0;
	if (unmapping->invalidate)
		return invalidate(type1, unmapping, unmapped);
	if (unmapping->bitmap)
		return unmap_dirty(type1, unmapping, unmapped);
	if (!type1->v2) {
		/* v1: a range that starts no mapping removes nothing; one that does, all of it. */
		if (!next_area(type1, unmapping, unmapping->first, &area))
			return 0;
		if (dmamap_area_find(type1->space.space, unmapping->last, unmapping->last, &area))
			unmapping->last = area.last;
	}
	error = dmamap_unmap(
		type1->space.space, unmapping->first, unmapping->last, unmapped, soft_why());
	/* The kernel's sum of 2^64 is 0. */
	if (!error && *unmapped == UINT64_MAX)
		*unmapped = 0;
	return error;
}

static int unmap(struct soft_type1 *type1, const struct vfio_iommu_type1_dma_unmap *user,
	const struct vfio_bitmap *bitmap, uint64_t *unmapped)
{
	struct unmapping unmapping = {
		.first = user->iova,
		.last = UINT64_MAX,
		.all = user->flags & VFIO_DMA_UNMAP_FLAG_ALL,
		.invalidate = user->flags & VFIO_DMA_UNMAP_FLAG_VADDR,
		.bitmap = bitmap,
	};
	uint64_t page = type1_page(type1);
	int error = check_page(user->iova, page, "iova");

	if (error)
		return error;
	if (unmapping.all && (user->iova || user->size))
		return SOFT_REFUSE(unmap_all, EINVAL, NULL, user->iova, user->size);
	if (!unmapping.all && !user->size)
		return SOFT_REFUSE(length_zero, EINVAL, "VFIO_IOMMU_UNMAP_DMA", 0);
	error = check_page(user->size, page, "size");
	if (error)
		return error;
	if (!unmapping.all && __builtin_add_overflow(user->iova, user->size - 1, &unmapping.last))
		return SOFT_REFUSE(wrap, type1_overflow(type1), "iova", user->iova, user->size);
	if (bitmap && !type1->tracking)
		return SOFT_REFUSE(tracking_off, EINVAL, NULL, 0);
	if (bitmap && bitmap->pgsize != page)
		return SOFT_REFUSE(bitmap_page, EINVAL, NULL, bitmap->pgsize, page);
	return unmap_range(type1, &unmapping, unmapped);
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
			error = type1_bitmap_check(&bitmap, user.size);
		if (error)
			return error;
	}
	error = unmap(type1, &user, dirty ? &bitmap : NULL, &user.size);
	if (error)
		return error;
	return soft_copy_out(argument, &user, minimum, "vfio_iommu_type1_dma_unmap");
}

int soft_type1_ioctl(struct soft_type1 *type1, unsigned request, void *argument)
{
	switch (request) {
	case VFIO_IOMMU_GET_INFO:
		return type1_get_info(type1, argument);
	case VFIO_IOMMU_MAP_DMA:
		return map_dma(type1, argument);
	case VFIO_IOMMU_UNMAP_DMA:
		return unmap_dma(type1, argument);
	case VFIO_IOMMU_DIRTY_PAGES:
		return type1_dirty_pages(type1, argument);
	default:
		return SOFT_REFUSE(request, ENOTTY, "type1", request);
	}
}
