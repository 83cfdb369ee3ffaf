/* SPDX-License-Identifier: MIT */
/*
 * An IOAS: what is mapped, from where IOVAs may be taken, and what is reserved
 * (drivers/iommu/iommufd/io_pagetable.c). Without a device there is no page
 * table: areas are kept, and nothing about their memory is looked up.
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

static uint64_t alignment(struct soft_ioas *ioas)
{
	uint64_t page = soft_page_size(ioas->space.system);
	uint64_t tables = dmamap_space_alignment(ioas->space.space);

	return ioas->small_pages_only && page > tables ? page : tables;
}

uint64_t soft_ioas_alignment(struct soft_ioas *ioas)
{
	uint64_t value;

	pthread_mutex_lock(&ioas->lock);
	value = alignment(ioas);
	pthread_mutex_unlock(&ioas->lock);
	return value;
}

/* ------------------------------------------------------ allowed and reserved */

/* The engine's list: what is allowed, or else usable, without the first and the last page. */
static int refresh(struct soft_ioas *ioas)
{
	uint64_t page = soft_page_size(ioas->space.system);
	struct dmamap_range *ranges;
	size_t n, kept = 0;
	int error;

	if (ioas->n_allowed) {
		n = ioas->n_allowed;
		ranges = malloc(n * sizeof(*ranges));
		if (!ranges)
			return SOFT_REFUSE(no_memory, ENOMEM, "allowed ranges", n);
		memcpy(ranges, ioas->allowed, n * sizeof(*ranges));
	} else {
		error = soft_space_ranges(&ioas->space, &ranges, &n);
		if (error)
			return error;
	}
	for (size_t i = 0; i < n; i++) {
		if (ranges[i].first < page)
			ranges[i].first = page;
		if (ranges[i].last > UINT64_MAX - page)
			ranges[i].last = UINT64_MAX - page;
		if (ranges[i].first < ranges[i].last)
			ranges[kept++] = ranges[i];
	}
	ioas->nothing_allowed = !kept;
	error = dmamap_space_allow(ioas->space.space, ranges, kept, soft_why());
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
	int (*reserve)(struct soft_space *space, const void *owner))
{
	int error;

	/* Our own list would keep reserved ranges away: it comes back after them. */
	dmamap_space_allow(ioas->space.space, NULL, 0, NULL);
	error = reserve(&ioas->space, owner);
	if (!error)
		error = check_allowed(ioas, ioas->allowed, ioas->n_allowed);
	if (!error)
		error = refresh(ioas);
	if (!error)
		return 0;
	dmamap_space_unreserve(ioas->space.space, owner);
	refresh(ioas);
	return error;
}

void soft_ioas_unreserve(struct soft_ioas *ioas, const void *owner)
{
	dmamap_space_unreserve(ioas->space.space, owner);
	/* Out of memory: the old list stays, which allows less. */
	refresh(ioas);
}

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
	error = refresh(made);
	if (!error)
		error = soft_object_add(iommufd, &made->object, SOFT_OBJECT_IOAS);
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

/* ----------------------------------------------------------------- mapping */

/* All that is ever reserved are the machine's windows and what is outside its aperture. */
static int refuse_reserved(const struct soft_system *system, uint64_t iova, uint64_t last)
{
	const struct dmamap_machine *machine = &system->machine;

	for (size_t i = 0; i < machine->n_windows; i++) {
		const struct dmamap_machine_window *window = &machine->windows[i];

		if (iova <= window->last && window->first <= last)
			return DMAMAP_REFUSE(soft_why(), &dmamap_reason_reserved, EINVAL,
				window->label, iova, last, window->first, window->last);
	}
	return DMAMAP_REFUSE(soft_why(), &dmamap_reason_reserved, EINVAL, "outside the aperture",
		iova, last, 1ULL << (machine->aperture_bits & 63), UINT64_MAX);
}

/* A fixed IOVA's own rules, in the kernel's order: reserved comes before mapped. */
static int check_fixed(struct soft_ioas *ioas, uint64_t iova, uint64_t last)
{
	struct dmamap_range *usable;
	struct dmamap_area area;
	size_t n, i;
	int error = soft_space_ranges(&ioas->space, &usable, &n);

	if (error)
		return error;
	for (i = 0; i < n; i++)
		if (usable[i].first <= iova && last <= usable[i].last)
			break;
	if (i == n) {
		error = refuse_reserved(ioas->space.system, iova, last);
	} else if (dmamap_area_find(ioas->space.space, iova, last, &area)) {
		error = DMAMAP_REFUSE(soft_why(), &dmamap_reason_overlap, EEXIST, NULL, iova, last,
			area.first, area.last);
	}
	free(usable);
	return error;
}

static uint64_t power_of_two_above(uint64_t length)
{
	return length <= 1 ? 1 : 1ULL << (64 - __builtin_clzll(length - 1));
}

/* Where to look for an IOVA: aligned as its memory is, at most to a huge page. */
static int choose_alignment(
	struct soft_ioas *ioas, uint64_t origin, uint64_t length, struct dmamap_map *map)
{
	uint64_t page = soft_page_size(ioas->space.system), phase = origin & (page - 1);
	uint64_t largest = 1ULL << soft_pmd_shift(ioas->space.system), wanted;

	if (!length || length >= UINT64_MAX / 2)
		return SOFT_REFUSE(too_large, EOVERFLOW, "length", length);
	wanted = power_of_two_above(length);
	if (origin && wanted > (origin & -origin))
		wanted = origin & -origin;
	if (wanted > largest)
		wanted = largest;
	if (wanted < alignment(ioas))
		return SOFT_REFUSE(
			misaligned, EINVAL, "the memory's start", origin, alignment(ioas));
	if (ioas->nothing_allowed)
		return DMAMAP_REFUSE(
			soft_why(), &dmamap_reason_no_iova, ENOSPC, NULL, length, wanted);
	map->flags = DMAMAP_MAP_ALLOCATE;
	map->first = 0;
	map->last = length - 1;
	/* Memory that starts inside a page gets an IOVA that does so too. */
	map->alignment = phase ? page : wanted;
	map->phase = phase;
	return 0;
}

/* What the kernel checks before it looks at the IOVA's surroundings; fills in @map. */
static int prepare(struct soft_ioas *ioas, uint64_t origin, uint64_t length, uint64_t iova,
	bool allocate, struct dmamap_map *map)
{
	uint64_t align = alignment(ioas);

	if (!length)
		return SOFT_REFUSE(length_zero, EINVAL, "a mapping", 0);
	if (length & (align - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "length", length, align);
	if (allocate)
		return choose_alignment(ioas, origin, length, map);
	if (iova & (align - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "iova", iova, align);
	map->first = iova;
	if (__builtin_add_overflow(iova, length - 1, &map->last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "iova", iova, length);
	return 0;
}

/* The engine's checks come in type1's order; where that matters, look again. */
static int in_order(struct soft_ioas *ioas, const struct dmamap_map *map, int error)
{
	int first;

	if ((error != -EEXIST && error != -EPERM) || map->flags & DMAMAP_MAP_ALLOCATE)
		return error;
	first = check_fixed(ioas, map->first, map->last);
	return first ? first : error;
}

int soft_ioas_map_memory(struct soft_ioas *ioas, struct dmamap_memory *memory, uint64_t length,
	uint64_t *iova, unsigned prot, bool allocate)
{
	const struct soft_memory *soft = (const struct soft_memory *)memory;
	struct dmamap_map map = {.memory = memory, .prot = prot};
	uint64_t align;
	int error;

	pthread_mutex_lock(&ioas->lock);
	error = prepare(ioas, soft->origin, length, *iova, allocate, &map);
	if (error)
		goto out;
	align = alignment(ioas);
	if (soft->phase & (align - 1)) {
		if (!allocate)
			error = check_fixed(ioas, map.first, map.last);
		if (!error)
			error = SOFT_REFUSE(
				misaligned, EINVAL, "the memory's start", soft->origin, align);
		goto out;
	}
	error = in_order(ioas, &map, dmamap_map(ioas->space.space, &map, soft_why()));
	if (error)
		goto out;
	*iova = map.first;
	if (soft->phase)
		ioas->odd_memory = true;
out:
	pthread_mutex_unlock(&ioas->lock);
	return error;
}

/* -------------------------------------------------------------------- copy */

/* Whether a range is mapped without a gap; where its first byte is in memory. */
static int check_source(
	struct soft_ioas *ioas, uint64_t first, uint64_t last, uint64_t *origin, uint64_t *phases)
{
	uint64_t page = soft_page_size(ioas->space.system), at = first;
	struct dmamap_area area;

	*phases = 0;
	while (dmamap_area_find(ioas->space.space, at, last, &area) && area.first <= at) {
		uint64_t start = ((const struct soft_memory *)area.memory)->origin + area.offset +
				 (at - area.first);

		if (at == first)
			*origin = start;
		*phases |= start & (page - 1);
		if (area.last >= last)
			return 0;
		at = area.last + 1;
	}
	return DMAMAP_REFUSE(soft_why(), &dmamap_reason_gap, ENOENT, NULL, first, last, at);
}

int soft_ioas_check_source(struct soft_ioas *ioas, uint64_t first, uint64_t last)
{
	uint64_t origin, phases;

	return check_source(ioas, first, last, &origin, &phases);
}

int soft_ioas_copy_range(struct soft_ioas *from, uint64_t first, uint64_t last,
	struct soft_ioas *to, uint64_t *iova, unsigned prot, bool allocate)
{
	uint64_t origin = 0, phases, length = last - first + 1;
	struct dmamap_map map = {.prot = prot};
	int error;

	pthread_mutex_lock(&to->lock);
	error = check_source(from, first, last, &origin, &phases);
	if (!error)
		error = prepare(to, origin, length, *iova, allocate, &map);
	if (error)
		goto out;
	if (phases & (alignment(to) - 1)) {
		if (!allocate)
			error = check_fixed(to, map.first, map.last);
		if (!error)
			error = SOFT_REFUSE(
				misaligned, EINVAL, "the memory's start", origin, alignment(to));
		goto out;
	}
	error = in_order(to, &map,
		dmamap_copy(from->space.space, first, last, to->space.space, &map, soft_why()));
	if (error)
		goto out;
	*iova = map.first;
	if (phases)
		to->odd_memory = true;
out:
	pthread_mutex_unlock(&to->lock);
	return error;
}

/* ------------------------------------------------------------------- unmap */

int soft_ioas_unmap_range(struct soft_ioas *ioas, uint64_t first, uint64_t last, uint64_t *unmapped)
{
	struct dmamap_area area;
	int error = 0;

	*unmapped = 0;
	pthread_mutex_lock(&ioas->lock);
	/* Areas go one after the other until one is met that the range cuts. */
	if (!dmamap_area_find(ioas->space.space, first, last, &area))
		goto out;
	if (area.first < first)
		goto cut;
	if (!dmamap_area_find(ioas->space.space, last, last, &area) || area.last == last) {
		error = dmamap_unmap(ioas->space.space, first, last, unmapped, soft_why());
		goto out;
	}
	if (area.first > first)
		error = dmamap_unmap(
			ioas->space.space, first, area.first - 1, unmapped, soft_why());
	if (error)
		goto out;
cut:
	error = DMAMAP_REFUSE(
		soft_why(), &dmamap_reason_cut, ENOENT, NULL, first, last, area.first, area.last);
out:
	pthread_mutex_unlock(&ioas->lock);
	return error;
}

/* ----------------------------------------------------------------- options */

/* Whether every area could be in pages of the smallest size. */
static int check_pages(struct soft_ioas *ioas)
{
	uint64_t page = soft_page_size(ioas->space.system), first = 0, odd;
	struct dmamap_area area;

	while (dmamap_area_find(ioas->space.space, first, UINT64_MAX, &area)) {
		odd = ((const struct soft_memory *)area.memory)->phase + area.offset;
		odd = (odd | area.first | (area.last + 1)) & (page - 1);
		if (odd)
			return SOFT_REFUSE(
				offset_misaligned, EADDRINUSE, NULL, area.first, area.last, odd);
		if (area.last == UINT64_MAX)
			break;
		first = area.last + 1;
	}
	return 0;
}

int soft_ioas_huge_pages(struct soft_ioas *ioas, bool on)
{
	struct dmamap_table *table;
	struct dmamap_area area;
	bool mapped;
	int error = 0;

	pthread_mutex_lock(&ioas->iommufd->attach);
	pthread_mutex_lock(&ioas->lock);
	if (ioas->small_pages_only == !on)
		goto out;
	mapped = dmamap_area_find(ioas->space.space, 0, UINT64_MAX, &area);
	if (!on && ioas->hwpt && mapped) {
		error = SOFT_REFUSE(large_pages, EINVAL, NULL, 0);
		goto out;
	}
	if (!on)
		error = check_pages(ioas);
	/* A page table of the other shape takes the place of the empty one. */
	if (!error && ioas->hwpt && !mapped) {
		error = soft_space_table(&ioas->space, !on, &table);
		if (!error) {
			dmamap_table_destroy(ioas->hwpt->table);
			ioas->hwpt->table = table;
		}
	}
	if (!error)
		ioas->small_pages_only = !on;
out:
	pthread_mutex_unlock(&ioas->lock);
	pthread_mutex_unlock(&ioas->iommufd->attach);
	return error;
}

/* ------------------------------------------------------------ allowed ranges */

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
	error = refresh(ioas);
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
