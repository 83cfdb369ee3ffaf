/* SPDX-License-Identifier: MIT */
/*
 * Areas: the lowest hole that fits, led by the bounds of areas.h, and the
 * check of the whole structure that tests run.
 */
#include "engine/areas.h"

struct search {
	uint64_t low, high, span, alignment, phase;
	uint64_t found;
	bool past; /* nothing further up can fit */
};

/* Whether the hole [from, to] has room; what lies outside low to high does not count. */
static bool fits(struct search *search, uint64_t from, uint64_t to)
{
	uint64_t start = from > search->low ? from : search->low;
	uint64_t pad = (search->phase - start) & (search->alignment - 1);

	if (to > search->high)
		to = search->high;
	if (start > to || to - start < pad)
		return false;
	start += pad;
	if (to - start < search->span)
		return false;
	search->found = start;
	return true;
}

/* @bound becomes the largest gap that is really there. */
static bool search_leaf(const struct areas_leaf *leaf, struct search *search, uint64_t *bound)
{
	uint64_t free = leaf->prev ? leaf->prev->last[leaf->prev->to - 1] + 1 : 0;
	uint64_t most = 0;

	for (unsigned slot = leaf->from; slot < leaf->to; slot++) {
		uint64_t gap = leaf->first[slot] - free;

		if (free > search->high) {
			search->past = true;
			return false;
		}
		if (gap > search->span && fits(search, free, leaf->first[slot] - 1))
			return true;
		most = gap > most ? gap : most;
		free = leaf->last[slot] + 1;
	}
	*bound = most;
	return false;
}

static bool search_node(void *node, unsigned level, struct search *search, uint64_t *bound)
{
	struct areas_inner *inner = node;
	uint64_t most = 0;
	unsigned i = 0;

	if (!level)
		return search_leaf(node, search, bound);
	while (i + 1 < inner->n && inner->low[i + 1] <= search->low)
		i++;
	for (; i < inner->n; i++) {
		if (inner->gap[i] > search->span &&
			search_node(inner->child[i], level - 1, search, &inner->gap[i]))
			return true;
		if (search->past)
			return false;
	}
	for (i = 0; i < inner->n; i++)
		most = inner->gap[i] > most ? inner->gap[i] : most;
	*bound = most;
	return false;
}

bool areas_hole(struct areas *areas, uint64_t low, uint64_t high, uint64_t span, uint64_t alignment,
	uint64_t phase, uint64_t *first)
{
	struct search search = {
		.low = low, .high = high, .span = span, .alignment = alignment, .phase = phase};
	uint64_t bound, end;

	if (!areas->root) {
		if (!fits(&search, 0, UINT64_MAX))
			return false;
		*first = search.found;
		return true;
	}
	end = areas->tail->last[areas->tail->to - 1];
	if (low <= end && search_node(areas->root, areas->depth, &search, &bound)) {
		*first = search.found;
		return true;
	}
	if (search.past || end == UINT64_MAX || !fits(&search, end + 1, UINT64_MAX))
		return false;
	*first = search.found;
	return true;
}

/* ------------------------------------------------------------------ check */

struct check {
	const char *broken;
	struct areas_leaf *leaf; /* the one expected next */
	bool any;
	uint64_t last; /* of the area before */
	uint64_t count, nodes;
};

static uint64_t check_leaf(
	struct areas_leaf *leaf, uint64_t low, uint64_t high, struct check *check)
{
	uint64_t most = 0;

	if (leaf != check->leaf)
		check->broken = "leaves are not chained in order";
	if (leaf->from >= leaf->to || leaf->to > AREAS_LEAF)
		check->broken = "a leaf is empty or overfull";
	for (unsigned slot = leaf->from; slot < leaf->to && !check->broken; slot++) {
		uint64_t gap = leaf->first[slot] - (check->any ? check->last + 1 : 0);

		if (leaf->last[slot] < leaf->first[slot])
			check->broken = "an area ends before it begins";
		if (check->any && leaf->first[slot] <= check->last)
			check->broken = "areas overlap or are out of order";
		if (leaf->first[slot] < low || leaf->first[slot] > high)
			check->broken = "an area is in a leaf where it does not belong";
		most = gap > most ? gap : most;
		check->any = true;
		check->last = leaf->last[slot];
		check->count++;
	}
	check->leaf = leaf->next;
	return most;
}

static uint64_t check_node(
	void *node, unsigned level, uint64_t low, uint64_t high, struct check *check)
{
	struct areas_inner *inner = node;
	uint64_t most = 0;

	check->nodes++;
	if (!level)
		return check_leaf(node, low, high, check);
	if (!inner->n || inner->n > AREAS_INNER)
		check->broken = "an inner node is empty or overfull";
	for (unsigned i = 0; i < inner->n && !check->broken; i++) {
		uint64_t from = i ? inner->low[i] : low;
		uint64_t to = i + 1 < inner->n ? inner->low[i + 1] - 1 : high;
		uint64_t gap;

		if (from > to || from < low || to > high) {
			check->broken = "an inner node's bounds are out of order";
			break;
		}
		gap = check_node(inner->child[i], level - 1, from, to, check);
		if (gap > inner->gap[i])
			check->broken = "a gap is larger than its bound";
		most = gap > most ? gap : most;
	}
	return most;
}

const char *areas_check(struct areas *areas)
{
	struct check check = {.leaf = areas->head};

	if (areas->root)
		check_node(areas->root, areas->depth, 0, UINT64_MAX, &check);
	if (!check.broken && check.leaf)
		check.broken = "a leaf is chained but not in the tree";
	if (!check.broken && check.count != areas->count)
		check.broken = "the count of areas is wrong";
	if (!check.broken && check.nodes != areas->pool.live)
		check.broken = "a node is lost";
	return check.broken;
}
