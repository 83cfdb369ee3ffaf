/* SPDX-License-Identifier: MIT */
/*
 * Ranges: which IOVAs are reserved, and from which ones may be allocated.
 *
 * Reserved ranges have owners and labels, and may overlap each other: two
 * devices often bring the same MSI window. They are few, change seldom and are
 * asked at each mapping, so that they are kept twice: as given, and merged
 * into ascending disjoint ranges for the question.
 *
 * No lock: the space's lock guards them.
 */
#ifndef DMAMAP_ENGINE_RANGES_H
#define DMAMAP_ENGINE_RANGES_H

#include <stdbool.h>

#include "dmamap/engine.h"

struct reserved_range {
	uint64_t first, last;
	const void *owner;
	char label[32];
};

struct ranges {
	struct reserved_range *reserved;
	size_t n_reserved, room_reserved;
	struct dmamap_range *merged; /* has room for as many as reserved */
	size_t n_merged;
	struct dmamap_range *allowed; /* ascending; NULL: all */
	size_t n_allowed;
};

void ranges_stop(struct ranges *ranges);
/** ranges_sort() - By first. */
void ranges_sort(struct dmamap_range *array, size_t n);
/** ranges_reserve() - 0 or -ENOMEM; nothing else is checked. */
int ranges_reserve(struct ranges *ranges, const struct reserved_range *range);
void ranges_unreserve(struct ranges *ranges, const void *owner);
/** ranges_reserved() - A reserved range with a byte in [first, last], or NULL. */
const struct reserved_range *ranges_reserved(
	const struct ranges *ranges, uint64_t first, uint64_t last);
/** ranges_allowed() - An allowed range (of a list that was set) with a byte there, or NULL. */
const struct dmamap_range *ranges_allowed(
	const struct ranges *ranges, uint64_t first, uint64_t last);
/** ranges_usable() - As dmamap_space_usable(). */
size_t ranges_usable(const struct ranges *ranges, struct dmamap_range *out, size_t n);

#endif
