/* SPDX-License-Identifier: MIT */
/*
 * An IOAS: its life, from where IOVAs may be taken, what is reserved, and how
 * finely all of it is aligned (drivers/iommu/iommufd/io_pagetable.c). What is
 * mapped is in ioas_map.c. Without a device there is no page table: areas are
 * kept, and nothing about their memory is looked up.
 *
 * ioas->lock makes one call follow the other, so that what was checked still
 * holds when the engine is called. The engine knows no difference between the
 * list that ALLOW_IOVAS sets and where an IOVA is never allocated (the first
 * and the last page); so it always has a list, made anew when one of the two
 * changes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/soft.h"

/* ------------------------------------------------------------- life and death */

int soft_ioas_create(struct soft_iommufd *iommufd, struct soft_ioas **ioas)
{
	struct soft_ioas *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "an IOAS", 0);
	made->iommufd = iommufd;
	error = soft_space_init(&made->space, iommufd->file.system, 0);
	if (error)
		goto free_made;
	pthread_mutex_init(&made->lock, NULL);
	error = soft_ioas_refresh(made);
	if (!error)
		error = soft_object_reserve(iommufd, &made->object, SOFT_OBJECT_IOAS);
	if (error)
		goto fini_space;
	*ioas = made;
	return 0;
fini_space:
	pthread_mutex_destroy(&made->lock);
	soft_space_fini(&made->space);
free_made:
	free(made);
	return error;
}

void soft_ioas_destroy(struct soft_ioas *ioas)
{
	soft_space_fini(&ioas->space);
	pthread_mutex_destroy(&ioas->lock);
	free(ioas->allowed);
	free(ioas);
}

int soft_ioas_get(struct soft_iommufd *iommufd, uint32_t id, struct soft_ioas **ioas)
{
	struct soft_object *object;
	int error = soft_object_get(iommufd, id, SOFT_OBJECT_IOAS, &object);

	*ioas = (struct soft_ioas *)object;
	return error;
}

/* --------------------------------------------------------------- alignment */

uint64_t soft_ioas_alignment(struct soft_ioas *ioas)
{
	uint64_t page = soft_page_size(ioas->space.system);
	uint64_t tables = dmamap_space_alignment(ioas->space.space);

	return ioas->small_pages_only && page > tables ? page : tables;
}

int soft_ioas_check_alignment(struct soft_ioas *ioas, uint64_t alignment)
{
	struct dmamap_area area;
	uint64_t first = 0, odd;

	if (alignment <= soft_ioas_alignment(ioas))
		return 0;
	while (dmamap_area_find(ioas->space.space, first, UINT64_MAX, &area)) {
		odd = ((const struct soft_memory *)area.memory)->phase + area.offset;
		odd &= alignment - 1;
		if (odd)
			return SOFT_REFUSE(
				offset_misaligned, EADDRINUSE, NULL, area.first, area.last, odd);
		if ((area.first | (area.last + 1)) & (alignment - 1))
			return SOFT_REFUSE(area_misaligned, EADDRINUSE, NULL, area.first, area.last,
				alignment);
		if (area.last == UINT64_MAX)
			break;
		first = area.last + 1;
	}
	return 0;
}

/* ------------------------------------------------------ allowed and reserved */

int soft_ioas_searched(struct soft_ioas *ioas, struct dmamap_range **out, size_t *n)
{
	uint64_t page = soft_page_size(ioas->space.system);
	struct dmamap_range *ranges;
	size_t n_ranges, kept = 0;
	int error;

	if (ioas->n_allowed) {
		n_ranges = ioas->n_allowed;
		ranges = malloc(n_ranges * sizeof(*ranges));
		if (!ranges)
			return SOFT_REFUSE(no_memory, ENOMEM, "allowed ranges", n_ranges);
		memcpy(ranges, ioas->allowed, n_ranges * sizeof(*ranges));
	} else {
		error = soft_space_ranges(&ioas->space, &ranges, &n_ranges);
		if (error)
			return error;
	}
	for (size_t i = 0; i < n_ranges; i++) {
		struct dmamap_range one = ranges[i];

		if (one.first < page)
			one.first = page;
		if (one.last > UINT64_MAX - page)
			one.last = UINT64_MAX - page;
		if (one.first >= one.last)
			continue;
		/* Neighbours are one place to look in. */
		if (kept && ranges[kept - 1].last + 1 == one.first)
			ranges[kept - 1].last = one.last;
		else
			ranges[kept++] = one;
	}
	*out = ranges;
	*n = kept;
	return 0;
}

int soft_ioas_refresh(struct soft_ioas *ioas)
{
	struct dmamap_range *ranges;
	size_t n;
	int error = soft_ioas_searched(ioas, &ranges, &n);

	if (error)
		return error;
	ioas->nothing_allowed = !n;
	error = dmamap_space_allow(ioas->space.space, ranges, n, soft_why());
	free(ranges);
	return error;
}

/* The first allowed range that is not wholly free of reserved IOVAs. */
static int check_allowed(struct soft_ioas *ioas, const struct dmamap_range *allowed, size_t n)
{
	const struct dmamap_range *bad = NULL;
	struct dmamap_range *usable;
	size_t n_usable, j;
	int error;

	if (!n)
		return 0;
	error = soft_space_ranges(&ioas->space, &usable, &n_usable);
	if (error)
		return error;
	for (size_t i = 0; i < n && !bad; i++) {
		for (j = 0; j < n_usable; j++)
			if (usable[j].first <= allowed[i].first &&
				allowed[i].last <= usable[j].last)
				break;
		if (j == n_usable)
			bad = &allowed[i];
	}
	free(usable);
	return bad ? SOFT_REFUSE(range_reserved, EADDRINUSE, NULL, bad->first, bad->last) : 0;
}

int soft_ioas_reserve(struct soft_ioas *ioas, const void *owner,
	const struct dmamap_machine_iommu *iommu,
	int (*reserve)(struct soft_space *space, const struct dmamap_machine_iommu *iommu,
		const void *owner))
{
	int error;

	/* Our own list would keep reserved ranges away: it comes back after them. */
	dmamap_space_allow(ioas->space.space, NULL, 0, NULL);
	error = reserve(&ioas->space, iommu, owner);
	if (!error)
		error = check_allowed(ioas, ioas->allowed, ioas->n_allowed);
	if (!error)
		error = soft_ioas_refresh(ioas);
	if (!error)
		return 0;
	soft_ioas_unreserve(ioas, owner);
	return error;
}

void soft_ioas_unreserve(struct soft_ioas *ioas, const void *owner)
{
	dmamap_space_unreserve(ioas->space.space, owner);
	/* Out of memory: the old list stays, which allows less. */
	soft_ioas_refresh(ioas);
}

int soft_ioas_allow(struct soft_ioas *ioas, struct dmamap_range *ranges, size_t n)
{
	struct dmamap_range *old;
	size_t n_old;
	int error;

	pthread_mutex_lock(&ioas->lock);
	error = check_allowed(ioas, ranges, n);
	if (error)
		goto out;
	old = ioas->allowed;
	n_old = ioas->n_allowed;
	ioas->allowed = ranges;
	ioas->n_allowed = n;
	error = soft_ioas_refresh(ioas);
	if (error) {
		ioas->allowed = old;
		ioas->n_allowed = n_old;
		goto out;
	}
	ranges = old;
out:
	pthread_mutex_unlock(&ioas->lock);
	free(ranges);
	return error;
}

/* ----------------------------------------------------------------- options */

int soft_ioas_huge_pages(struct soft_ioas *ioas, bool on)
{
	struct dmamap_area area;
	int error = 0;

	pthread_mutex_lock(&ioas->iommufd->attach);
	pthread_mutex_lock(&ioas->lock);
	if (ioas->small_pages_only == !on)
		goto out;
	if (!on) {
		if (ioas->hwpts && dmamap_area_find(ioas->space.space, 0, UINT64_MAX, &area))
			error = SOFT_REFUSE(large_pages, EINVAL, NULL, area.first, area.last);
		if (!error)
			error = soft_ioas_check_alignment(ioas, soft_page_size(ioas->space.system));
		if (error)
			goto out;
	}
	ioas->small_pages_only = !on;
	/* What is mapped keeps its leaves. */
	for (struct soft_hwpt *hwpt = ioas->hwpts; hwpt; hwpt = hwpt->next)
		dmamap_table_leaf_sizes(
			hwpt->table, soft_space_leaf_sizes(&ioas->space, hwpt->iommu, !on));
out:
	pthread_mutex_unlock(&ioas->lock);
	pthread_mutex_unlock(&ioas->iommufd->attach);
	return error;
}
