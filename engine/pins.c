/* SPDX-License-Identifier: MIT */
/*
 * Pins: for each page of a memory, how many ranges have it. A step function of
 * the page, kept as its edges, ascending; while all ranges are one and the same,
 * as for most memories, that range is enough and no memory is taken.
 *
 * Removing cannot fail, so its room is there before. What is counted is a sum
 * of as many ranges as are to be removed, and an edge is at an end of one of
 * them: two for each are enough, also before neighbours are joined. Adding makes
 * room for one range, a split for the parts.
 *
 * Edges between equal counts are joined where they arise: a change raises or
 * lowers all between its own two edges alike, so that only these can become
 * equal to what is before them.
 *
 * No lock: the owner's lock guards it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dmamap/engine.h"
#include "engine/pool.h"

/* From @page on, up to the next edge, @ranges have it. Before the first edge none has. */
struct edge {
	uint64_t page;
	size_t ranges;
};

struct dmamap_pins_edges {
	size_t n, room;
	struct edge edge[];
};

/* Edges in place of the one range, with room for @more ranges. */
static int make_room(struct dmamap_pins *pins, size_t more)
{
	size_t room = 2 * (pins->ranges + more);
	struct dmamap_pins_edges *old = pins->edges, *edges;

	if (old && room <= old->room)
		return 0;
	room *= 2;
	edges = fail_now() ? NULL : realloc(old, sizeof(*edges) + room * sizeof(edges->edge[0]));
	if (!edges)
		return -ENOMEM;
	edges->room = room;
	if (!old) {
		edges->n = pins->ranges ? 2 : 0;
		edges->edge[0] = (struct edge){pins->first, pins->ranges};
		edges->edge[1] = (struct edge){pins->last + 1, 0};
	}
	pins->edges = edges;
	return 0;
}

/* How many edges are not past @page: the last of them says who has it. */
static size_t edges_until(const struct dmamap_pins_edges *edges, uint64_t page)
{
	size_t low = 0, high = edges->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (edges->edge[middle].page <= page)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* In how many ranges is what lies before the edge @at. */
static size_t ranges_before(const struct dmamap_pins_edges *edges, size_t at)
{
	return at ? edges->edge[at - 1].ranges : 0;
}

/* The edge at @page, made if need be. */
static size_t edge_at(struct dmamap_pins_edges *edges, uint64_t page)
{
	size_t at = edges_until(edges, page);
	struct edge *edge = &edges->edge[at];

	if (at && edge[-1].page == page)
		return at - 1;
	memmove(&edge[1], &edge[0], (edges->n - at) * sizeof(*edge));
	*edge = (struct edge){page, ranges_before(edges, at)};
	edges->n++;
	return at;
}

static void join(struct dmamap_pins_edges *edges, size_t at)
{
	struct edge *edge = &edges->edge[at];

	if (edge->ranges != ranges_before(edges, at))
		return;
	edges->n--;
	memmove(&edge[0], &edge[1], (edges->n - at) * sizeof(*edge));
}

/* One range more or less. How many pages became pinned, or ceased to be. */
static uint64_t change(struct dmamap_pins *pins, uint64_t first, uint64_t last, bool more)
{
	struct dmamap_pins_edges *edges = pins->edges;
	uint64_t pages = 0;
	size_t from, to;

	pins->ranges += more ? 1 : (size_t)-1;
	if (!edges)
		return pins->ranges == more ? last - first + 1 : 0;
	from = edge_at(edges, first);
	to = edge_at(edges, last + 1);
	for (size_t i = from; i < to; i++) {
		struct edge *edge = &edges->edge[i];

		if (edge->ranges == !more)
			pages += edge[1].page - edge->page;
		edge->ranges += more ? 1 : (size_t)-1;
	}
	join(edges, to);
	join(edges, from);
	return pages;
}

int dmamap_pins_add(struct dmamap_pins *pins, uint64_t first, uint64_t last, uint64_t *pinned)
{
	uint64_t pages;
	int rc = 0;

	if (last < first || last == UINT64_MAX)
		return -EINVAL;
	if (!pins->ranges) {
		pins->first = first;
		pins->last = last;
	}
	if (pins->edges || pins->first != first || pins->last != last)
		rc = make_room(pins, 1);
	if (rc)
		return rc;
	pages = change(pins, first, last, true);
	pins->pinned += pages;
	if (pinned)
		*pinned = pages;
	return 0;
}

uint64_t dmamap_pins_remove(struct dmamap_pins *pins, uint64_t first, uint64_t last)
{
	uint64_t pages = change(pins, first, last, false);

	pins->pinned -= pages;
	if (!pins->ranges)
		dmamap_pins_clear(pins);
	return pages;
}

int dmamap_pins_split(struct dmamap_pins *pins, unsigned more)
{
	int rc = more ? make_room(pins, more) : 0;

	if (!rc)
		pins->ranges += more;
	return rc;
}

void dmamap_pins_unsplit(struct dmamap_pins *pins, unsigned more)
{
	pins->ranges -= more;
}

size_t dmamap_pins_at(const struct dmamap_pins *pins, uint64_t page, uint64_t *last)
{
	uint64_t end = UINT64_MAX;
	size_t ranges = 0;

	if (pins->edges) {
		size_t next = edges_until(pins->edges, page);

		ranges = ranges_before(pins->edges, next);
		if (next < pins->edges->n)
			end = pins->edges->edge[next].page - 1;
	} else if (pins->ranges && page <= pins->last) {
		ranges = page < pins->first ? 0 : pins->ranges;
		end = ranges ? pins->last : pins->first - 1;
	}
	if (*last > end)
		*last = end;
	return ranges;
}

void dmamap_pins_clear(struct dmamap_pins *pins)
{
	free(pins->edges);
	*pins = (struct dmamap_pins){0};
}
