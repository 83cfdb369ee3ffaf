/* SPDX-License-Identifier: MIT */
/*
 * Mapping in an IOAS: where an area may lie, where one is put that may lie
 * anywhere, sharing memory, and unmapping (drivers/iommu/iommufd/io_pagetable.c).
 *
 * The engine makes the checks of the common case, in type1's order. What it
 * refuses is looked at again here, in IOMMUFD's: reserved comes before mapped,
 * and both before what memory allows.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/soft.h"

static const struct soft_memory *memory_of(const struct dmamap_area *area)
{
	return (const struct soft_memory *)area->memory;
}

/* ---------------------------------------------------------- a place that is given */

static bool is_usable(const struct dmamap_range *usable, size_t n, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < n; i++)
		if (first <= usable[i].last && usable[i].first <= last)
			return true;
	return false;
}

/* All that is ever reserved are the machine's windows and what is outside its apertures. */
static int refuse_reserved(const struct soft_system *system, const struct dmamap_range *usable,
	size_t n, uint64_t iova, uint64_t last)
{
	uint64_t end = UINT64_MAX;

	for (size_t i = 0; i < system->machine.n_iommus; i++) {
		const struct dmamap_machine_iommu *iommu = &system->machine.iommus[i];

		for (size_t j = 0; j < iommu->n_windows; j++) {
			const struct dmamap_machine_window *window = &iommu->windows[j];

			if (iova <= window->last && window->first <= last &&
				!is_usable(usable, n, window->first, window->last))
				return DMAMAP_REFUSE(soft_why(), &dmamap_reason_reserved, EINVAL,
					window->label, iova, last, window->first, window->last);
		}
	}
	if (n)
		end = usable[n - 1].last + 1;
	return DMAMAP_REFUSE(soft_why(), &dmamap_reason_reserved, EINVAL, "outside the aperture",
		iova, last, end, UINT64_MAX);
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
		error = refuse_reserved(ioas->space.system, usable, n, iova, last);
	} else if (dmamap_area_find(ioas->space.space, iova, last, &area)) {
		error = DMAMAP_REFUSE(soft_why(), &dmamap_reason_overlap, EEXIST, NULL, iova, last,
			area.first, area.last);
	}
	free(usable);
	return error;
}

/* ----------------------------------------------------- a place that is to be found */

static uint64_t power_of_two_above(uint64_t length)
{
	return length <= 1 ? 1 : 1ULL << (64 - __builtin_clzll(length - 1));
}

/*
 * Where @length bytes go at or after @from, in [from, last]: aligned, and with
 * @phase OR-ed in, which is not quite the same as congruent to it.
 */
static bool fits(uint64_t from, uint64_t last, uint64_t length, uint64_t alignment, uint64_t phase,
	uint64_t *iova)
{
	uint64_t start;

	if (__builtin_add_overflow(from, alignment - 1, &start))
		return false;
	start = (start & ~(alignment - 1)) | phase;
	if (start >= last || last - start < length - 1)
		return false;
	*iova = start;
	return true;
}

/* Hole by hole: for memory that starts inside a page, and for single bytes. */
static int find_by_hole(
	struct soft_ioas *ioas, uint64_t length, uint64_t alignment, uint64_t phase, uint64_t *iova)
{
	struct dmamap_range *ranges;
	struct dmamap_area area;
	size_t n;
	int error = soft_ioas_searched(ioas, &ranges, &n);

	if (error)
		return error;
	error = -ENOSPC;
	for (size_t i = 0; i < n && error; i++) {
		uint64_t from = ranges[i].first, last = ranges[i].last, end;

		/* An allowed range is tried as a whole first: that decides where its search begins.
		 */
		if (!fits(from, last, length, alignment, phase, &from))
			continue;
		while (error && from <= last) {
			bool used = dmamap_area_find(ioas->space.space, from, last, &area);

			end = used ? area.first - 1 : last;
			if ((!used || area.first > from) &&
				fits(from, end, length, alignment, phase, iova))
				error = 0;
			if (!used || area.last >= last)
				break;
			from = area.last + 1;
		}
	}
	free(ranges);
	return error ? DMAMAP_REFUSE(
			       soft_why(), &dmamap_reason_no_iova, ENOSPC, NULL, length, alignment)
		     : 0;
}

/* Where to look for an IOVA: aligned as its memory is, at most to a huge page. */
static int choose_place(
	struct soft_ioas *ioas, uint64_t origin, uint64_t length, struct dmamap_map *map)
{
	uint64_t page = soft_page_size(ioas->space.system), phase = origin & (page - 1);
	uint64_t largest = 1ULL << soft_pmd_shift(ioas->space.system), wanted;
	uint64_t needed = soft_ioas_alignment(ioas);
	int error;

	if (length >= UINT64_MAX / 2)
		return SOFT_REFUSE(too_large, EOVERFLOW, "length", length);
	wanted = power_of_two_above(length);
	if (origin && wanted > (origin & -origin))
		wanted = origin & -origin;
	if (wanted > largest)
		wanted = largest;
	if (wanted < needed)
		return SOFT_REFUSE(misaligned, EINVAL, "the memory's start", origin, needed);
	if (ioas->nothing_allowed)
		return DMAMAP_REFUSE(
			soft_why(), &dmamap_reason_no_iova, ENOSPC, NULL, length, wanted);
	map->first = 0;
	if (phase || length == 1) {
		error = find_by_hole(ioas, length, wanted, phase, &map->first);
		if (error)
			return error;
	} else {
		map->flags = DMAMAP_MAP_ALLOCATE;
		map->alignment = wanted;
	}
	map->last = map->first + (length - 1);
	return 0;
}

/* What the kernel checks before it looks at the IOVA's surroundings; fills in @map. */
static int prepare(struct soft_ioas *ioas, uint64_t origin, uint64_t length, uint64_t iova,
	bool allocate, struct dmamap_map *map)
{
	uint64_t align = soft_ioas_alignment(ioas);

	if (!length)
		return SOFT_REFUSE(length_zero, EINVAL, "a mapping", 0);
	if (length & (align - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "length", length, align);
	if (allocate)
		return choose_place(ioas, origin, length, map);
	if (iova & (align - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "iova", iova, align);
	map->first = iova;
	if (__builtin_add_overflow(iova, length - 1, &map->last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "iova", iova, length);
	return 0;
}

/* That there is a place at all, for what is refused when it has one. */
static int check_place(struct soft_ioas *ioas, const struct dmamap_map *map)
{
	uint64_t first;

	if (!(map->flags & DMAMAP_MAP_ALLOCATE))
		return check_fixed(ioas, map->first, map->last);
	return dmamap_iova_find(ioas->space.space, map->last - map->first + 1, map->alignment, 0,
		&first, soft_why());
}

/* ----------------------------------------------------------------- mapping */

/* The engine's checks come in type1's order; where that matters, look again. */
static int map_in_order(struct soft_ioas *ioas, struct dmamap_map *map)
{
	int error = dmamap_map(ioas->space.space, map, soft_why()), first = 0;

	if (error == -EEXIST && !(map->flags & DMAMAP_MAP_ALLOCATE))
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

	if (ioas->iommufd->charge_process && soft->pins->mode == SOFT_PINS_USER)
		soft->pins->mode = SOFT_PINS_PROCESS;
	pthread_mutex_lock(&ioas->lock);
	error = prepare(ioas, soft->origin, length, *iova, allocate, &map);
	if (error)
		goto out;
	align = soft_ioas_alignment(ioas);
	if (soft->phase & (align - 1)) {
		error = check_place(ioas, &map);
		if (!error)
			error = SOFT_REFUSE(
				misaligned, EINVAL, "the memory's start", soft->origin, align);
		goto out;
	}
	if (soft_memory_revoked(soft))
		map.prot = 0;
	error = map_in_order(ioas, &map);
	if (!error)
		*iova = map.first;
out:
	pthread_mutex_unlock(&ioas->lock);
	return error;
}

/* -------------------------------------------------------------------- copy */

/* What a copy is made of: a part of each area of the source, in turn. */
struct source {
	struct soft_ioas *ioas;
	uint64_t first, last;
};

/* The area with the byte @at; false: the source has a gap there, or ends. */
static bool source_area(const struct source *source, uint64_t at, struct dmamap_area *area)
{
	if (!dmamap_area_find(source->ioas->space.space, at, source->last, area) ||
		area->first > at)
		return false;
	area->offset += at - area->first;
	area->first = at;
	if (area->last > source->last)
		area->last = source->last;
	return true;
}

/* Whether it is mapped without a gap; where its first byte is in memory, and if some is revoked. */
static int check_source(const struct source *source, uint64_t *origin, bool *revoked)
{
	struct dmamap_area area;
	uint64_t at = source->first;

	*revoked = false;
	while (source_area(source, at, &area)) {
		if (at == source->first)
			*origin = memory_of(&area)->origin + area.offset;
		*revoked |= soft_memory_revoked(memory_of(&area));
		if (area.last == source->last)
			return 0;
		at = area.last + 1;
	}
	return DMAMAP_REFUSE(
		soft_why(), &dmamap_reason_gap, ENOENT, NULL, source->first, source->last, at);
}

int soft_ioas_check_source(struct soft_ioas *ioas, uint64_t first, uint64_t last)
{
	struct source source = {ioas, first, last};
	uint64_t origin;
	bool revoked;
	int error;

	pthread_mutex_lock(&ioas->lock);
	error = check_source(&source, &origin, &revoked);
	pthread_mutex_unlock(&ioas->lock);
	return error;
}

/* Each piece's memory must allow the access, and start where the IOAS's alignment wants it. */
static int check_pieces(const struct source *source, unsigned prot, uint64_t align)
{
	struct dmamap_area area;

	for (uint64_t at = source->first; source_area(source, at, &area); at = area.last + 1) {
		uint64_t origin = memory_of(&area)->origin + area.offset;

		if (prot & DMAMAP_WRITE && !(area.memory->prot & DMAMAP_WRITE))
			return DMAMAP_REFUSE(soft_why(), &dmamap_reason_memory_read_only, EPERM,
				NULL, area.memory->prot, prot);
		if ((memory_of(&area)->phase + area.offset) & (align - 1))
			return SOFT_REFUSE(misaligned, EINVAL, "the memory's start", origin, align);
		if (area.last == source->last)
			break;
	}
	return 0;
}

/* Piece by piece, since revoked ones map nothing. */
static int copy_pieces(const struct source *source, struct soft_ioas *to, struct dmamap_map *map)
{
	uint64_t length = map->last - map->first + 1;
	struct dmamap_map piece = {.first = map->first};
	struct dmamap_area area;
	int error = 0;

	if (map->flags & DMAMAP_MAP_ALLOCATE) {
		error = dmamap_iova_find(
			to->space.space, length, map->alignment, 0, &piece.first, soft_why());
		map->first = piece.first;
	}
	for (uint64_t at = source->first; !error && source_area(source, at, &area);
		at = area.last + 1) {
		piece.last = piece.first + (area.last - area.first);
		piece.memory = area.memory;
		piece.offset = area.offset;
		piece.prot = soft_memory_revoked(memory_of(&area)) ? 0 : map->prot;
		error = dmamap_map(to->space.space, &piece, soft_why());
		if (error || area.last == source->last)
			break;
		piece.first = piece.last + 1;
	}
	if (error && piece.first > map->first)
		dmamap_unmap(to->space.space, map->first, piece.first - 1, NULL, NULL);
	return error;
}

/* Two IOASes' locks, by ascending ids. */
static void lock_both(struct soft_ioas *one, struct soft_ioas *other)
{
	if (one->object.id > other->object.id) {
		struct soft_ioas *higher = one;

		one = other;
		other = higher;
	}
	pthread_mutex_lock(&one->lock);
	if (other != one)
		pthread_mutex_lock(&other->lock);
}

int soft_ioas_copy_range(struct soft_ioas *from, uint64_t first, uint64_t last,
	struct soft_ioas *to, uint64_t *iova, unsigned prot, bool allocate)
{
	struct source source = {from, first, last};
	struct dmamap_map map = {.prot = prot};
	uint64_t origin = 0;
	bool revoked;
	int error;

	lock_both(from, to);
	error = check_source(&source, &origin, &revoked);
	if (!error)
		error = prepare(to, origin, last - first + 1, *iova, allocate, &map);
	if (!error)
		error = check_place(to, &map);
	if (!error)
		error = check_pieces(&source, prot, soft_ioas_alignment(to));
	if (error)
		goto out;
	if (revoked)
		error = copy_pieces(&source, to, &map);
	else
		error = dmamap_copy(
			from->space.space, first, last, to->space.space, &map, soft_why());
	if (!error)
		*iova = map.first;
out:
	pthread_mutex_unlock(&to->lock);
	if (from != to)
		pthread_mutex_unlock(&from->lock);
	return error;
}

/* ------------------------------------------------------------------- unmap */

static int unmap(struct soft_ioas *ioas, uint64_t first, uint64_t last, uint64_t *unmapped)
{
	int error = dmamap_unmap(ioas->space.space, first, last, unmapped, soft_why());

	for (struct soft_hwpt *hwpt = ioas->hwpts; hwpt && !error; hwpt = hwpt->next)
		soft_hwpt_forget_dirty(hwpt, first, last);
	return error;
}

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
		error = unmap(ioas, first, last, unmapped);
		goto out;
	}
	if (area.first > first)
		error = unmap(ioas, first, area.first - 1, unmapped);
	if (error)
		goto out;
cut:
	error = DMAMAP_REFUSE(
		soft_why(), &dmamap_reason_cut, ENOENT, NULL, first, last, area.first, area.last);
out:
	pthread_mutex_unlock(&ioas->lock);
	return error;
}

/* Makes @last the end of an area, where it is inside one. */
static int cut(struct soft_ioas *ioas, uint64_t last)
{
	uint64_t align = soft_ioas_alignment(ioas), start = last + 1, origin;
	const struct soft_memory *memory;
	struct dmamap_area area;
	unsigned tables = 0;
	int error;

	if (!dmamap_area_find(ioas->space.space, last, last, &area))
		return 0;
	/* A first area of one byte is not made: Linux takes that for no cut at all. */
	if (last == area.first || last == area.last)
		return 0;
	memory = memory_of(&area);
	if (memory->kind == SOFT_MEMORY_DMABUF)
		return SOFT_REFUSE(dmabuf_cut, EOPNOTSUPP, NULL, start, area.first, area.last);
	origin = memory->origin + area.offset + (start - area.first);
	if ((start | origin) & (align - 1))
		return SOFT_REFUSE(
			misaligned, EINVAL, "the cut of a mapping at iova", start, align);
	for (const struct soft_hwpt *hwpt = ioas->hwpts; hwpt; hwpt = hwpt->next)
		tables++;
	error = soft_pins_split(memory->pins, tables);
	if (error)
		return error;
	error = dmamap_area_split(ioas->space.space, start, soft_why());
	if (error)
		soft_pins_unsplit(memory->pins, tables);
	return error;
}

int soft_ioas_cut(struct soft_ioas *ioas, uint64_t iova, uint64_t size)
{
	int error = 0;

	pthread_mutex_lock(&ioas->iommufd->attach);
	pthread_mutex_lock(&ioas->lock);
	if (ioas->small_pages_only) {
		error = cut(ioas, iova + size - 1);
		if (!error && iova)
			error = cut(ioas, iova - 1);
	}
	pthread_mutex_unlock(&ioas->lock);
	pthread_mutex_unlock(&ioas->iommufd->attach);
	return error;
}

/* --------------------------------------------------------------- revoking */

/* Areas of dma-bufs that are revoked stay, and no device reaches anything there. */
static void revoke_areas(struct soft_ioas *ioas)
{
	struct dmamap_area area;
	uint64_t first = 0;

	while (dmamap_area_find(ioas->space.space, first, UINT64_MAX, &area)) {
		struct dmamap_map map = {
			.first = area.first,
			.last = area.last,
			.memory = area.memory,
			.offset = area.offset,
		};

		if (area.prot && soft_memory_revoked(memory_of(&area))) {
			dmamap_memory_get(area.memory);
			dmamap_unmap(ioas->space.space, area.first, area.last, NULL, NULL);
			dmamap_map(ioas->space.space, &map, NULL);
			dmamap_memory_put(area.memory);
		}
		if (area.last == UINT64_MAX)
			break;
		first = area.last + 1;
	}
}

void soft_iommufd_revoke(struct soft_iommufd *iommufd)
{
	struct soft_object *object = NULL;
	uint32_t id = 0;

	while ((object = soft_object_next(iommufd, SOFT_OBJECT_IOAS, id))) {
		struct soft_ioas *ioas = (struct soft_ioas *)object;

		id = object->id;
		pthread_mutex_lock(&ioas->lock);
		revoke_areas(ioas);
		pthread_mutex_unlock(&ioas->lock);
		soft_object_put(iommufd, object);
	}
}
