/* SPDX-License-Identifier: MIT */
/* Ranges: reserved and allowed IOVAs. See ranges.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/pool.h"
#include "engine/ranges.h"

void ranges_stop(struct ranges *ranges)
{
	free(ranges->reserved);
	free(ranges->merged);
	free(ranges->allowed);
	*ranges = (struct ranges){0};
}

static int by_first(const void *a, const void *b)
{
	const struct dmamap_range *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

void ranges_sort(struct dmamap_range *array, size_t n)
{
	/* qsort() may not be given NULL, even for nothing. */
	if (n)
		qsort(array, n, sizeof(*array), by_first);
}

static void merge(struct ranges *ranges)
{
	struct dmamap_range *merged = ranges->merged;
	size_t n = 0;

	for (size_t i = 0; i < ranges->n_reserved; i++)
		merged[i] =
			(struct dmamap_range){ranges->reserved[i].first, ranges->reserved[i].last};
	ranges_sort(merged, ranges->n_reserved);
	for (size_t i = 0; i < ranges->n_reserved; i++) {
		struct dmamap_range *before = n ? &merged[n - 1] : NULL;

		/* One that ends at the top of the space joins all that follow. */
		if (before && (before->last == UINT64_MAX || merged[i].first <= before->last + 1)) {
			if (merged[i].last > before->last)
				before->last = merged[i].last;
		} else {
			merged[n++] = merged[i];
		}
	}
	ranges->n_merged = n;
}

int ranges_reserve(struct ranges *ranges, const struct reserved_range *range)
{
	if (ranges->n_reserved == ranges->room_reserved) {
		size_t room = ranges->room_reserved ? 2 * ranges->room_reserved : 4;
		struct reserved_range *reserved;
		struct dmamap_range *merged;

		reserved = engine_calloc(room, sizeof(*reserved));
		merged = engine_calloc(room, sizeof(*merged));
		if (!reserved || !merged) {
			free(reserved);
			free(merged);
			return -ENOMEM;
		}
		if (ranges->n_reserved)
			memcpy(reserved, ranges->reserved, ranges->n_reserved * sizeof(*reserved));
		free(ranges->reserved);
		free(ranges->merged);
		ranges->reserved = reserved;
		ranges->merged = merged;
		ranges->room_reserved = room;
	}
	ranges->reserved[ranges->n_reserved++] = *range;
	merge(ranges);
	return 0;
}

void ranges_unreserve(struct ranges *ranges, const void *owner)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranges->n_reserved; i++)
		if (ranges->reserved[i].owner != owner)
			ranges->reserved[kept++] = ranges->reserved[i];
	ranges->n_reserved = kept;
	merge(ranges);
}

/* The first of ascending disjoint ranges that does not end before @first; @n: none. */
static size_t seek(const struct dmamap_range *array, size_t n, uint64_t first)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;

		if (array[middle].last < first)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

const struct reserved_range *ranges_reserved(
	const struct ranges *ranges, uint64_t first, uint64_t last)
{
	size_t i = seek(ranges->merged, ranges->n_merged, first);

	if (i == ranges->n_merged || ranges->merged[i].first > last)
		return NULL;
	for (i = 0; i < ranges->n_reserved; i++)
		if (ranges->reserved[i].first <= last && ranges->reserved[i].last >= first)
			break;
	return &ranges->reserved[i];
}

const struct dmamap_range *ranges_allowed(
	const struct ranges *ranges, uint64_t first, uint64_t last)
{
	size_t i = seek(ranges->allowed, ranges->n_allowed, first);

	if (i == ranges->n_allowed || ranges->allowed[i].first > last)
		return NULL;
	return &ranges->allowed[i];
}

size_t ranges_usable(const struct ranges *ranges, struct dmamap_range *out, size_t n)
{
	uint64_t from = 0;
	size_t found = 0;

	for (size_t i = 0; i < ranges->n_merged; i++) {
		const struct dmamap_range *hole = &ranges->merged[i];

		if (hole->first > from) {
			if (found < n)
				out[found] = (struct dmamap_range){from, hole->first - 1};
			found++;
		}
		if (hole->last == UINT64_MAX)
			return found;
		from = hole->last + 1;
	}
	if (found < n)
		out[found] = (struct dmamap_range){from, UINT64_MAX};
	return found + 1;
}
