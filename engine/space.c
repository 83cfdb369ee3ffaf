/* SPDX-License-Identifier: MIT */
/*
 * Space: mapping and unmapping, all or nothing.
 *
 * A mapping takes what memory it needs as it goes; whatever fails, the leaves
 * and areas that were made are taken back by the same steps as in unmapping,
 * which allocate nothing and cannot fail.
 *
 * Taking back ends in three steps. Under the lock, leaves are cleared, areas
 * removed and references dropped; what then is without owner goes on lists
 * (struct ending). Outside the lock, accesses that may still see it are waited
 * for. Then page-table nodes and memory objects are freed.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/rcu.h"
#include "engine/space.h"

struct ending {
	void *retired;		    /* page-table nodes */
	struct dmamap_memory *dead; /* memory without a reference */
};

static void drop(struct ending *ending, struct dmamap_memory *memory)
{
	if (memory && !__atomic_sub_fetch(&memory->refs, 1, __ATOMIC_ACQ_REL)) {
		memory->next = ending->dead;
		ending->dead = memory;
	}
}

/* Unlocks the space and frees what is on the lists. */
static void finish(struct dmamap_space *space, struct ending *ending, bool cleared)
{
	struct dmamap_memory *memory;

	if (cleared && others_read(space)) {
		space->waits++;
		space->waiting++;
		pthread_mutex_unlock(&space->lock);
		read_sections_wait();
		pthread_mutex_lock(&space->lock);
		if (!--space->waiting)
			pthread_cond_broadcast(&space->idle);
	}
	pagetable_free(ending->retired);
	pthread_mutex_unlock(&space->lock);
	while ((memory = ending->dead)) {
		ending->dead = memory->next;
		memory->ops->release(memory);
	}
}

/* Clears the leaves and removes the areas of a range whose ends cut no area. */
static uint64_t take_back(
	struct dmamap_space *space, uint64_t first, uint64_t last, struct ending *ending)
{
	struct area taken[AREAS_LEAF];
	uint64_t bytes = 0;
	unsigned n;

	for (struct dmamap_table *table = space->tables; table; table = table->next)
		pagetable_unmap(&table->pt, first, last, &ending->retired);
	while ((n = areas_take(&space->areas, first, last, taken))) {
		space->unmaps += n;
		for (unsigned i = 0; i < n; i++) {
			bytes += taken[i].last - taken[i].first + 1;
			if (area_tells(&taken[i]))
				tables_cleared(&taken[i], space->tables, NULL);
			drop(ending, area_memory(&taken[i]));
		}
		/* A sum of 2^64 is 0 in 64 bits: say as much as they can. */
		if (!bytes)
			bytes = UINT64_MAX;
	}
	return bytes;
}

/* The same for one area, which has been found. */
static uint64_t take_one(
	struct dmamap_space *space, struct areas_place place, struct ending *ending)
{
	struct area area = areas_at(place);

	for (struct dmamap_table *table = space->tables; table; table = table->next)
		pagetable_unmap(&table->pt, area.first, area.last, &ending->retired);
	areas_remove(&space->areas, place);
	space->unmaps++;
	if (area_tells(&area))
		tables_cleared(&area, space->tables, NULL);
	drop(ending, area_memory(&area));
	return area.last - area.first == UINT64_MAX ? UINT64_MAX : area.last - area.first + 1;
}

/* Brings the page table's entry while the areas are searched, unless the last call was near. */
static void fetch(const struct dmamap_space *space, uint64_t iova)
{
	if (space->tables && !areas_near(&space->areas, iova))
		pagetable_fetch(&space->tables->pt, iova);
}

/* ---------------------------------------------------------------- mapping */

/* The lowest place for @span + 1 bytes inside allowed, outside reserved ranges and areas. */
static int find_iova(struct dmamap_space *space, uint64_t span, uint64_t alignment, uint64_t phase,
	uint64_t *first, struct dmamap_reason *why)
{
	static const struct dmamap_range all = {0, UINT64_MAX};
	const struct ranges *ranges = &space->ranges;
	const struct dmamap_range *allowed = ranges->allowed ? ranges->allowed : &all;
	size_t n = ranges->allowed ? ranges->n_allowed : 1;
	size_t hole = 0;

	if (alignment < space->granule)
		alignment = space->granule;
	if (alignment & (alignment - 1) || phase >= alignment)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_misaligned, EINVAL, NULL, phase, span, alignment);
	for (size_t i = 0; i < n; i++) {
		uint64_t from = allowed[i].first;
		uint64_t to = allowed[i].last < space->last ? allowed[i].last : space->last;

		while (hole < ranges->n_merged && ranges->merged[hole].last < from)
			hole++;
		for (; from <= to; hole++) {
			bool cut = hole < ranges->n_merged && ranges->merged[hole].first <= to;
			uint64_t end = !cut ? to : ranges->merged[hole].first - 1;

			if ((!cut || ranges->merged[hole].first > from) &&
				areas_hole(&space->areas, from, end, span, alignment, phase, first))
				return 0;
			if (!cut || ranges->merged[hole].last >= to)
				break;
			from = ranges->merged[hole].last + 1;
		}
	}
	return DMAMAP_REFUSE(why, &dmamap_reason_no_iova, ENOSPC, NULL, span + 1, alignment);
}

/* Whether @n areas may be made there; *@behind is the place of the first one. */
static int check_free(struct dmamap_space *space, uint64_t first, uint64_t last, size_t n,
	struct areas_place *behind, struct dmamap_reason *why)
{
	struct areas_place place = areas_seek(&space->areas, first);
	const struct reserved_range *reserved;

	*behind = place;

	if (place.leaf && areas_at(place).first <= last)
		return DMAMAP_REFUSE(why, &dmamap_reason_overlap, EEXIST, NULL, first, last,
			areas_at(place).first, areas_at(place).last);
	if (space->area_limit && space->areas.count + n > space->area_limit)
		return DMAMAP_REFUSE(why, &dmamap_reason_area_limit, ENOSPC, NULL,
			space->areas.count, space->area_limit);
	reserved = ranges_reserved(&space->ranges, first, last);
	if (reserved)
		return DMAMAP_REFUSE(why, &dmamap_reason_reserved, EINVAL, reserved->label, first,
			last, reserved->first, reserved->last);
	if (last > space->last)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_aperture, EINVAL, NULL, first, last, space->last);
	return 0;
}

/* Checks the place of a mapping of @n areas, or finds one. */
static int choose_place(struct dmamap_space *space, struct dmamap_map *map, size_t n,
	struct areas_place *behind, struct dmamap_reason *why)
{
	uint64_t mask = space->granule - 1;
	uint64_t span = map->last - map->first;
	int rc;

	if (map->last < map->first)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_backwards, EINVAL, NULL, map->first, map->last);
	if (map->flags & DMAMAP_MAP_ALLOCATE) {
		if (mask & (span + 1))
			return DMAMAP_REFUSE(why, &dmamap_reason_misaligned, EINVAL, NULL,
				map->first, map->last, space->granule);
		rc = find_iova(space, span, map->alignment ? map->alignment : space->granule,
			map->phase, &map->first, why);
		if (rc)
			return rc;
		map->last = map->first + span;
	}
	if (mask & (map->first | (map->last + 1)))
		return DMAMAP_REFUSE(why, &dmamap_reason_misaligned, EINVAL, NULL, map->first,
			map->last, space->granule);
	return check_free(space, map->first, map->last, n, behind, why);
}

/* Fills every table with an area. On failure leaves are left, but no memory that was told. */
static int fill_tables(
	struct dmamap_space *space, const struct area *area, struct dmamap_reason *why)
{
	for (struct dmamap_table *table = space->tables; table; table = table->next) {
		int rc = table_fill(table, area, why);

		if (rc) {
			if (area_tells(area))
				tables_cleared(area, space->tables, table);
			return rc;
		}
	}
	return 0;
}

/*
 * Makes areas of @pieces, one behind the other from @first on, and fills the
 * tables. On failure leaves and areas are left: take_back() them. An area is
 * among the areas only when all tables have it, so that what take_back() tells
 * memory is what memory was told here.
 */
static int insert(struct dmamap_space *space, uint64_t first, struct area *pieces, size_t n,
	const struct areas_place *behind, struct dmamap_reason *why)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		pieces[i].last = first + (pieces[i].last - pieces[i].first);
		pieces[i].first = first;
		rc = fill_tables(space, &pieces[i], why);
		if (rc)
			return rc;
		if (areas_insert(&space->areas, &pieces[i], i ? NULL : behind)) {
			if (area_tells(&pieces[i]))
				tables_cleared(&pieces[i], space->tables, NULL);
			return DMAMAP_REFUSE(why, &dmamap_reason_no_memory, ENOMEM, "an area", n);
		}
		if (area_memory(&pieces[i]))
			dmamap_memory_get(area_memory(&pieces[i]));
		space->maps++;
		first = pieces[i].last + 1;
	}
	return 0;
}

static int map_pieces(struct dmamap_space *space, struct dmamap_map *map, struct area *pieces,
	size_t n, struct dmamap_reason *why)
{
	struct dmamap_map place = *map;
	struct areas_place behind;
	struct ending ending = {0};
	uint64_t maps, unmaps;
	int rc;

	pthread_mutex_lock(&space->lock);
	fetch(space, place.first);
	rc = choose_place(space, &place, n, &behind, why);
	if (rc) {
		pthread_mutex_unlock(&space->lock);
		return rc;
	}
	maps = space->maps;
	unmaps = space->unmaps;
	rc = insert(space, place.first, pieces, n, &behind, why);
	if (rc) {
		take_back(space, place.first, place.last, &ending);
		space->maps = maps;
		space->unmaps = unmaps;
		finish(space, &ending, true);
		return rc;
	}
	pthread_mutex_unlock(&space->lock);
	map->first = place.first;
	map->last = place.last;
	return 0;
}

static int check_prot(const struct dmamap_memory *memory, unsigned prot, struct dmamap_reason *why)
{
	if (prot & ~(DMAMAP_READ | DMAMAP_WRITE))
		return DMAMAP_REFUSE(why, &dmamap_reason_no_access, EINVAL, NULL, prot);
	if (memory && prot & ~memory->prot)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_memory_read_only, EPERM, NULL, memory->prot, prot);
	return 0;
}

int dmamap_map(struct dmamap_space *space, struct dmamap_map *map, struct dmamap_reason *why)
{
	struct dmamap_memory *memory = map->memory;
	uint64_t span = map->last - map->first;
	struct area area = {map->first, map->last, (uintptr_t)memory | map->prot, map->offset};
	int rc;

	if (map->last < map->first)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_backwards, EINVAL, NULL, map->first, map->last);
	if (memory && (map->offset >= memory->length || span > memory->length - 1 - map->offset))
		return DMAMAP_REFUSE(why, &dmamap_reason_memory_range, EINVAL, NULL, map->offset,
			map->offset + span, memory->length);
	rc = check_prot(memory, map->prot, why);
	if (rc)
		return rc;
	return map_pieces(space, map, &area, 1, why);
}

/* -------------------------------------------------------------- unmapping */

/*
 * Whether the range cuts no area: 1: it does not, and there is something; 0: nothing is there.
 * *@lowest is the place of the lowest area.
 */
static int check_cut(struct dmamap_space *space, uint64_t first, uint64_t last,
	struct areas_place *lowest, struct dmamap_reason *why)
{
	struct areas_place place = areas_seek(&space->areas, first);
	struct area area;

	*lowest = place;
	if (!place.leaf)
		return 0;
	area = areas_at(place);
	if (area.first > last)
		return 0;
	if (area.first >= first && area.last < last) {
		place = areas_seek(&space->areas, last);
		if (!place.leaf)
			return 1;
		area = areas_at(place);
		if (area.first > last)
			return 1;
	}
	if (area.first < first || area.last > last)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_cut, EINVAL, NULL, first, last, area.first, area.last);
	return 1;
}

int dmamap_unmap(struct dmamap_space *space, uint64_t first, uint64_t last, uint64_t *unmapped,
	struct dmamap_reason *why)
{
	struct ending ending = {0};
	struct areas_place lowest;
	uint64_t bytes = 0;
	int rc;

	if (last < first)
		return DMAMAP_REFUSE(why, &dmamap_reason_backwards, EINVAL, NULL, first, last);
	pthread_mutex_lock(&space->lock);
	fetch(space, first);
	rc = check_cut(space, first, last, &lowest, why);
	if (rc > 0 && space->accesses && urcu_bp_read_ongoing())
		rc = DMAMAP_REFUSE(why, &dmamap_reason_within_access, EDEADLK, NULL, first, last);
	if (rc < 0) {
		pthread_mutex_unlock(&space->lock);
		return rc;
	}
	if (rc && lowest.leaf->last[lowest.slot] == last)
		bytes = take_one(space, lowest, &ending);
	else if (rc)
		bytes = take_back(space, first, last, &ending);
	finish(space, &ending, rc);
	if (unmapped)
		*unmapped = bytes;
	return 0;
}

/* Whether no leaf of a table lies across @iova. */
static int check_leaf(const struct dmamap_table *table, uint64_t iova, struct dmamap_reason *why)
{
	struct pagetable_hit hit;
	uint64_t leaf;

	if (!pagetable_walk(&table->pt, iova, &hit))
		return 0;
	leaf = (uint64_t)1 << hit.shift << pagetable_leaf_items(hit.entry);
	if (iova & (leaf - 1))
		return DMAMAP_REFUSE(why, &dmamap_reason_leaf, EINVAL, NULL, iova, leaf);
	return 0;
}

int dmamap_area_split(struct dmamap_space *space, uint64_t iova, struct dmamap_reason *why)
{
	struct areas_place place;
	struct area upper;
	int rc = 0;

	pthread_mutex_lock(&space->lock);
	place = areas_seek(&space->areas, iova);
	if (!place.leaf || areas_at(place).first >= iova)
		goto unlock;
	for (struct dmamap_table *table = space->tables; table && !rc; table = table->next)
		rc = check_leaf(table, iova, why);
	/* An area without memory has no leaves. */
	if (!rc && iova & (space->granule - 1))
		rc = DMAMAP_REFUSE(why, &dmamap_reason_misaligned, EINVAL, NULL,
			areas_at(place).first, iova - 1, space->granule);
	if (!rc && space->area_limit && space->areas.count >= space->area_limit)
		rc = DMAMAP_REFUSE(why, &dmamap_reason_area_limit, ENOSPC, NULL, space->areas.count,
			space->area_limit);
	if (rc)
		goto unlock;
	upper = areas_at(place);
	upper.offset += iova - upper.first;
	upper.first = iova;
	place.leaf->last[place.slot] = iova - 1;
	if (areas_insert(&space->areas, &upper, NULL)) {
		place.leaf->last[place.slot] = upper.last;
		rc = DMAMAP_REFUSE(why, &dmamap_reason_no_memory, ENOMEM, "an area", 1);
		goto unlock;
	}
	if (area_memory(&upper))
		dmamap_memory_get(area_memory(&upper));
	space->maps++;
	/* What was one area in each table's count is two. */
	if (area_tells(&upper))
		for (struct dmamap_table *table = space->tables; table; table = table->next)
			table->told++;
unlock:
	pthread_mutex_unlock(&space->lock);
	return rc;
}

/* ---------------------------------------------------------------- copying */

/* Cuts [first, last] out of the areas as @pieces, with references; returns how many or -errno. */
static ssize_t cut_pieces(struct dmamap_space *from, uint64_t first, uint64_t last, unsigned prot,
	struct area **out, struct dmamap_reason *why)
{
	struct areas_place start = areas_seek(&from->areas, first), place = start;
	struct area *pieces;
	uint64_t next = first;
	size_t n = 0;

	for (;; place = areas_next(place)) {
		struct area area;

		if (!place.leaf || (area = areas_at(place)).first > next)
			return DMAMAP_REFUSE(
				why, &dmamap_reason_gap, ENOENT, NULL, first, last, next);
		n++;
		if (area.last >= last)
			break;
		next = area.last + 1;
	}
	pieces = engine_calloc(n, sizeof(*pieces));
	if (!pieces)
		return DMAMAP_REFUSE(why, &dmamap_reason_no_memory, ENOMEM, "a copy", n);
	place = start;
	for (size_t i = 0; i < n; i++, place = areas_next(place)) {
		struct area *piece = &pieces[i];

		*piece = areas_at(place);
		if (piece->first < first) {
			piece->offset += first - piece->first;
			piece->first = first;
		}
		if (piece->last > last)
			piece->last = last;
		piece->memory = (piece->memory & ~MEMORY_PROT) | prot;
	}
	for (size_t i = 0; i < n; i++) {
		int rc = check_prot(area_memory(&pieces[i]), prot, why);

		if (rc) {
			free(pieces);
			return rc;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (area_memory(&pieces[i]))
			dmamap_memory_get(area_memory(&pieces[i]));
	*out = pieces;
	return (ssize_t)n;
}

int dmamap_copy(struct dmamap_space *from, uint64_t first, uint64_t last,
	struct dmamap_space *space, struct dmamap_map *map, struct dmamap_reason *why)
{
	struct area *pieces = NULL;
	ssize_t n;
	int rc;

	if (last < first)
		return DMAMAP_REFUSE(why, &dmamap_reason_backwards, EINVAL, NULL, first, last);
	pthread_mutex_lock(&from->lock);
	n = cut_pieces(from, first, last, map->prot, &pieces, why);
	pthread_mutex_unlock(&from->lock);
	if (n < 0)
		return (int)n;
	if (map->flags & DMAMAP_MAP_ALLOCATE)
		map->first = 0;
	map->last = map->first + (last - first);
	rc = map_pieces(space, map, pieces, (size_t)n, why);
	for (ssize_t i = 0; i < n; i++)
		dmamap_memory_put(area_memory(&pieces[i]));
	free(pieces);
	return rc;
}

/* -------------------------------------------------------------- questions */

bool dmamap_area_find(
	struct dmamap_space *space, uint64_t first, uint64_t last, struct dmamap_area *out)
{
	struct areas_place place;
	bool found;

	pthread_mutex_lock(&space->lock);
	place = areas_seek(&space->areas, first);
	found = place.leaf && areas_at(place).first <= last;
	if (found) {
		struct area area = areas_at(place);

		*out = (struct dmamap_area){
			area.first, area.last, area_memory(&area), area.offset, area_prot(&area)};
	}
	pthread_mutex_unlock(&space->lock);
	return found;
}

int dmamap_iova_find(struct dmamap_space *space, uint64_t length, uint64_t alignment,
	uint64_t phase, uint64_t *first, struct dmamap_reason *why)
{
	int rc;

	if (!length)
		return DMAMAP_REFUSE(why, &dmamap_reason_backwards, EINVAL, NULL, 0, UINT64_MAX);
	pthread_mutex_lock(&space->lock);
	rc = find_iova(
		space, length - 1, alignment ? alignment : space->granule, phase, first, why);
	pthread_mutex_unlock(&space->lock);
	return rc;
}

uint64_t dmamap_space_alignment(struct dmamap_space *space)
{
	uint64_t granule;

	pthread_mutex_lock(&space->lock);
	granule = space->granule;
	pthread_mutex_unlock(&space->lock);
	return granule;
}

/* ----------------------------------------------------------------- ranges */

int dmamap_space_reserve(struct dmamap_space *space, uint64_t first, uint64_t last,
	const void *owner, const char *label, struct dmamap_reason *why)
{
	struct reserved_range range = {.first = first, .last = last, .owner = owner};
	const struct dmamap_range *allowed;
	struct areas_place place;
	int rc = 0;

	if (last < first)
		return DMAMAP_REFUSE(why, &dmamap_reason_backwards, EINVAL, NULL, first, last);
	for (size_t i = 0; label && label[i] && i + 1 < sizeof(range.label); i++)
		range.label[i] = label[i];
	pthread_mutex_lock(&space->lock);
	place = areas_seek(&space->areas, first);
	allowed = ranges_allowed(&space->ranges, first, last);
	if (place.leaf && areas_at(place).first <= last)
		rc = DMAMAP_REFUSE(why, &dmamap_reason_in_use, EADDRINUSE, "an area", first, last,
			areas_at(place).first, areas_at(place).last);
	else if (allowed)
		rc = DMAMAP_REFUSE(why, &dmamap_reason_in_use, EADDRINUSE, "an allowed range",
			first, last, allowed->first, allowed->last);
	else if (ranges_reserve(&space->ranges, &range))
		rc = DMAMAP_REFUSE(why, &dmamap_reason_no_memory, ENOMEM, "a reserved range", 1);
	pthread_mutex_unlock(&space->lock);
	return rc;
}

void dmamap_space_unreserve(struct dmamap_space *space, const void *owner)
{
	pthread_mutex_lock(&space->lock);
	ranges_unreserve(&space->ranges, owner);
	pthread_mutex_unlock(&space->lock);
}

/* A sorted copy of an allowed list, or -EINVAL. */
static int sort_allowed(const struct dmamap_range *ranges, size_t n, struct dmamap_range **out,
	struct dmamap_reason *why)
{
	struct dmamap_range *sorted = engine_calloc(n, sizeof(*sorted));

	if (!sorted)
		return DMAMAP_REFUSE(why, &dmamap_reason_no_memory, ENOMEM, "allowed ranges", n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = ranges[i];
	ranges_sort(sorted, n);
	for (size_t i = 0; i < n; i++) {
		if (sorted[i].first >= sorted[i].last) {
			DMAMAP_REFUSE(why, &dmamap_reason_backwards, EINVAL, NULL, sorted[i].first,
				sorted[i].last);
			goto refused;
		}
		if (i && sorted[i].first <= sorted[i - 1].last) {
			DMAMAP_REFUSE(why, &dmamap_reason_in_use, EINVAL, "another allowed range",
				sorted[i].first, sorted[i].last, sorted[i - 1].first,
				sorted[i - 1].last);
			goto refused;
		}
	}
	*out = sorted;
	return 0;
refused:
	free(sorted);
	return -EINVAL;
}

int dmamap_space_allow(struct dmamap_space *space, const struct dmamap_range *ranges, size_t n,
	struct dmamap_reason *why)
{
	struct dmamap_range *sorted = NULL;
	const struct reserved_range *reserved;
	int rc = n ? sort_allowed(ranges, n, &sorted, why) : 0;

	if (rc)
		return rc;
	pthread_mutex_lock(&space->lock);
	for (size_t i = 0; i < n && !rc; i++) {
		reserved = ranges_reserved(&space->ranges, sorted[i].first, sorted[i].last);
		if (reserved)
			rc = DMAMAP_REFUSE(why, &dmamap_reason_in_use, EADDRINUSE, reserved->label,
				sorted[i].first, sorted[i].last, reserved->first, reserved->last);
	}
	if (!rc) {
		struct dmamap_range *old = space->ranges.allowed;

		space->ranges.allowed = sorted;
		space->ranges.n_allowed = n;
		sorted = old;
	}
	pthread_mutex_unlock(&space->lock);
	free(sorted);
	return rc;
}

size_t dmamap_space_usable(struct dmamap_space *space, struct dmamap_range *ranges, size_t n)
{
	size_t found;

	pthread_mutex_lock(&space->lock);
	found = ranges_usable(&space->ranges, ranges, n);
	pthread_mutex_unlock(&space->lock);
	return found;
}
