/* SPDX-License-Identifier: MIT */
/*
 * Areas: searching, inserting and removing in the B+-tree of areas.h. Finding
 * free space is in areas_hole.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/areas.h"

_Static_assert(sizeof(struct areas_leaf) <= (1 << AREAS_NODE_SHIFT), "a leaf is one node");
_Static_assert(sizeof(struct areas_inner) <= (1 << AREAS_NODE_SHIFT), "an inner node is one node");

/* A node with less than this is joined with a neighbour, if both then leave room. */
#define LEAF_FEW     (AREAS_LEAF / 4)
#define LEAF_JOINED  (AREAS_LEAF * 3 / 4)
#define INNER_FEW    (AREAS_INNER / 4)
#define INNER_JOINED (AREAS_INNER * 3 / 4)

void areas_start(struct areas *areas)
{
	memset(areas, 0, sizeof(*areas));
	pool_start(&areas->pool, AREAS_NODE_SHIFT);
}

void areas_stop(struct areas *areas)
{
	pool_stop(&areas->pool);
	areas_start(areas);
}

static unsigned leaf_count(const struct areas_leaf *leaf)
{
	return leaf->to - leaf->from;
}

/* The child that has @iova. The loop has no branch to mispredict. */
static unsigned inner_index(const struct areas_inner *inner, uint64_t iova)
{
	unsigned base = 0, n = inner->n;

	while (n > 1) {
		unsigned half = n / 2;

		base = inner->low[base + half] <= iova ? base + half : base;
		n -= half;
	}
	return base;
}

/* The first slot whose area begins after @iova; @to: none. */
static unsigned leaf_upper(const struct areas_leaf *leaf, uint64_t iova)
{
	unsigned base = leaf->from, n = leaf_count(leaf);

	if (!n || leaf->first[base] > iova)
		return base;
	while (n > 1) {
		unsigned half = n / 2;

		base = leaf->first[base + half] <= iova ? base + half : base;
		n -= half;
	}
	return base + 1;
}

/*
 * Brings what is about to be used of a node, all lines at once: of an inner
 * node what a search reads, of a leaf everything, since what is found there is
 * changed next. One wait for memory instead of one for each step.
 */
static void fetch(const void *node, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 64)
		__builtin_prefetch((const char *)node + at);
}

/* Points the finger at the leaf where @iova belongs. The tree is not empty. */
static struct areas_leaf *descend(struct areas *areas, uint64_t iova)
{
	struct areas_finger *finger = &areas->finger;
	void *node = areas->root;

	if (areas_near(areas, iova))
		return finger->leaf;
	finger->low = 0;
	finger->high = UINT64_MAX;
	for (unsigned level = areas->depth; level-- > 0;) {
		struct areas_inner *inner = node;
		unsigned i = inner_index(inner, iova);

		finger->up[level].node = inner;
		finger->up[level].index = i;
		if (i)
			finger->low = inner->low[i];
		if (i + 1 < inner->n)
			finger->high = inner->low[i + 1] - 1;
		node = inner->child[i];
		if (!level)
			__builtin_prefetch(&inner->gap[i]);
		fetch(node,
			level ? offsetof(struct areas_inner, child) : sizeof(struct areas_leaf));
	}
	finger->leaf = node;
	return node;
}

static void forget_finger(struct areas *areas)
{
	areas->finger.leaf = NULL;
}

struct areas_place areas_next(struct areas_place place)
{
	if (++place.slot < place.leaf->to)
		return place;
	place.leaf = place.leaf->next;
	place.slot = place.leaf ? place.leaf->from : 0;
	return place;
}

struct areas_place areas_seek(struct areas *areas, uint64_t iova)
{
	struct areas_place place = {NULL, 0};

	if (!areas->root)
		return place;
	place.leaf = descend(areas, iova);
	place.slot = leaf_upper(place.leaf, iova);
	if (place.slot > place.leaf->from) {
		if (place.leaf->last[place.slot - 1] >= iova)
			place.slot--;
	} else if (place.leaf->prev && place.leaf->prev->last[place.leaf->prev->to - 1] >= iova) {
		place.leaf = place.leaf->prev;
		place.slot = place.leaf->to - 1u;
	}
	if (place.slot == place.leaf->to) {
		place.leaf = place.leaf->next;
		place.slot = place.leaf ? place.leaf->from : 0;
	}
	return place;
}

/* ------------------------------------------------------------------- gaps */

/* Free bytes before the area in @slot; the one before it may be in another leaf. */
static uint64_t gap_before(const struct areas_leaf *leaf, unsigned slot)
{
	if (slot > leaf->from)
		return leaf->first[slot] - leaf->last[slot - 1] - 1;
	if (leaf->prev)
		return leaf->first[slot] - leaf->prev->last[leaf->prev->to - 1] - 1;
	return leaf->first[slot];
}

static uint64_t leaf_gap(const struct areas_leaf *leaf)
{
	uint64_t most = 0;

	for (unsigned slot = leaf->from; slot < leaf->to; slot++) {
		uint64_t gap = gap_before(leaf, slot);

		most = gap > most ? gap : most;
	}
	return most;
}

static uint64_t inner_gap(const struct areas_inner *inner)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < inner->n; i++)
		most = inner->gap[i] > most ? inner->gap[i] : most;
	return most;
}

/* The finger's leaf has a gap of this size: raise the bounds above it. */
static void raise_bounds(struct areas *areas, uint64_t gap)
{
	for (unsigned level = 0; level < areas->depth; level++) {
		struct areas_inner *inner = areas->finger.up[level].node;
		uint64_t *bound = &inner->gap[areas->finger.up[level].index];

		if (*bound >= gap)
			return;
		*bound = gap;
	}
}

/* ---------------------------------------------------------------- columns */

static void move(struct areas_leaf *leaf, unsigned to, unsigned from, unsigned n)
{
	memmove(&leaf->first[to], &leaf->first[from], n * sizeof(uint64_t));
	memmove(&leaf->last[to], &leaf->last[from], n * sizeof(uint64_t));
	memmove(&leaf->memory[to], &leaf->memory[from], n * sizeof(uint64_t));
	memmove(&leaf->offset[to], &leaf->offset[from], n * sizeof(uint64_t));
}

static void append(struct areas_leaf *to, const struct areas_leaf *from, unsigned slot, unsigned n)
{
	memcpy(&to->first[to->to], &from->first[slot], n * sizeof(uint64_t));
	memcpy(&to->last[to->to], &from->last[slot], n * sizeof(uint64_t));
	memcpy(&to->memory[to->to], &from->memory[slot], n * sizeof(uint64_t));
	memcpy(&to->offset[to->to], &from->offset[slot], n * sizeof(uint64_t));
	to->to = (uint16_t)(to->to + n);
}

/* Makes room before @slot by moving the shorter side; returns the free slot. */
static unsigned open_slot(struct areas_leaf *leaf, unsigned slot)
{
	unsigned below = slot - leaf->from, above = leaf->to - slot;

	if (leaf->from && (leaf->to == AREAS_LEAF || below < above)) {
		move(leaf, leaf->from - 1u, leaf->from, below);
		leaf->from--;
		return slot - 1;
	}
	move(leaf, slot + 1, slot, above);
	leaf->to++;
	return slot;
}

/* Takes slots out by moving the shorter side; returns the slot of what was behind them. */
static unsigned close_slots(struct areas_leaf *leaf, unsigned slot, unsigned n)
{
	unsigned below = slot - leaf->from, above = leaf->to - slot - n;

	if (below < above) {
		move(leaf, leaf->from + n, leaf->from, below);
		leaf->from = (uint16_t)(leaf->from + n);
		return slot + n;
	}
	move(leaf, slot, slot + n, above);
	leaf->to = (uint16_t)(leaf->to - n);
	return slot;
}

/* -------------------------------------------------------------- inserting */

static void inner_insert(
	struct areas_inner *inner, unsigned at, uint64_t low, void *child, uint64_t gap)
{
	unsigned n = inner->n - at;

	memmove(&inner->low[at + 1], &inner->low[at], n * sizeof(inner->low[0]));
	memmove(&inner->child[at + 1], &inner->child[at], n * sizeof(inner->child[0]));
	memmove(&inner->gap[at + 1], &inner->gap[at], n * sizeof(inner->gap[0]));
	inner->low[at] = low;
	inner->child[at] = child;
	inner->gap[at] = gap;
	inner->n++;
}

/* Moves the upper part of @inner to @right; returns where @right begins. */
static uint64_t inner_split(struct areas_inner *inner, struct areas_inner *right, unsigned at)
{
	unsigned n = inner->n - at;

	memcpy(right->low, &inner->low[at], n * sizeof(inner->low[0]));
	memcpy(right->child, &inner->child[at], n * sizeof(inner->child[0]));
	memcpy(right->gap, &inner->gap[at], n * sizeof(inner->gap[0]));
	right->n = (uint16_t)n;
	inner->n = (uint16_t)at;
	return right->low[0];
}

/*
 * Adds @child behind the finger's path at @level, splitting what is full.
 * @spare has one node for each split and one for a new root.
 */
static void insert_child(
	struct areas *areas, unsigned level, uint64_t low, void *child, uint64_t gap, void **spare)
{
	for (; level < areas->depth; level++) {
		struct areas_inner *inner = areas->finger.up[level].node;
		unsigned at = areas->finger.up[level].index + 1;
		struct areas_inner *right;
		uint64_t right_low;
		unsigned cut;

		if (inner->n < AREAS_INNER) {
			inner_insert(inner, at, low, child, gap);
			return;
		}
		/* At the far end the left part stays full: what grows upwards packs. */
		cut = at == inner->n ? inner->n - 1u : inner->n / 2u;
		right = *spare++;
		right_low = inner_split(inner, right, cut);
		if (at > cut)
			inner_insert(right, at - cut, low, child, gap);
		else
			inner_insert(inner, at, low, child, gap);
		low = right_low;
		child = right;
		gap = inner_gap(right);
	}
	struct areas_inner *root = *spare;

	root->n = 2;
	root->low[0] = 0;
	root->child[0] = areas->root;
	root->gap[0] = areas->depth ? inner_gap(areas->root) : leaf_gap(areas->root);
	root->low[1] = low;
	root->child[1] = child;
	root->gap[1] = gap;
	areas->root = root;
	areas->depth++;
}

/*
 * Splits the full leaf under the finger at @slot. All memory is taken before
 * anything changes.
 */
static int split_leaf(struct areas *areas, unsigned slot)
{
	struct areas_leaf *leaf = areas->finger.leaf, *right;
	void *spare[AREAS_DEPTH + 2];
	unsigned wanted = 1, n = 0, level = 0;
	uint64_t low;

	while (level < areas->depth && areas->finger.up[level].node->n == AREAS_INNER)
		level++, wanted++;
	if (level == areas->depth)
		wanted++;
	if (areas->depth + 1 >= AREAS_DEPTH)
		return -ENOMEM;
	while (n < wanted) {
		spare[n] = pool_get(&areas->pool);
		if (!spare[n])
			goto undo;
		n++;
	}
	right = spare[0];
	low = slot == leaf->to ? leaf->last[slot - 1] + 1 : leaf->first[slot];
	right->from = right->to = 0;
	append(right, leaf, slot, leaf->to - slot);
	leaf->to = (uint16_t)slot;
	right->prev = leaf;
	right->next = leaf->next;
	if (leaf->next)
		leaf->next->prev = right;
	else
		areas->tail = right;
	leaf->next = right;
	insert_child(areas, 0, low, right, leaf_gap(right), spare + 1);
	forget_finger(areas);
	return 0;
undo:
	while (n)
		pool_put(&areas->pool, spare[--n]);
	return -ENOMEM;
}

static int first_leaf(struct areas *areas)
{
	struct areas_leaf *leaf = pool_get(&areas->pool);

	if (!leaf)
		return -ENOMEM;
	leaf->prev = leaf->next = NULL;
	leaf->from = leaf->to = 0;
	areas->root = areas->head = areas->tail = leaf;
	areas->depth = 0;
	forget_finger(areas);
	return 0;
}

int areas_insert(struct areas *areas, const struct area *area, const struct areas_place *behind)
{
	struct areas_leaf *leaf;
	unsigned slot;

	if (!areas->root && first_leaf(areas))
		return -ENOMEM;
	leaf = descend(areas, area->first);
	if (!behind)
		slot = leaf_upper(leaf, area->first);
	else
		slot = behind->leaf == leaf ? behind->slot : leaf->to;
	areas->ascending = slot == areas->slot + 1 ? areas->ascending + 1 : 0;
	if (leaf_count(leaf) == AREAS_LEAF) {
		bool packs = slot == leaf->to && (!leaf->next || areas->ascending > 8);

		if (split_leaf(areas, packs ? slot : AREAS_LEAF / 2))
			return -ENOMEM;
		leaf = descend(areas, area->first);
		slot = leaf_upper(leaf, area->first);
	}
	slot = open_slot(leaf, slot);
	leaf->first[slot] = area->first;
	leaf->last[slot] = area->last;
	leaf->memory[slot] = area->memory;
	leaf->offset[slot] = area->offset;
	areas->slot = slot;
	areas->count++;
	/* Before an area that has a follower here there was a larger gap, which is in the bound. */
	if (slot + 1u == leaf->to)
		raise_bounds(areas, gap_before(leaf, slot));
	return 0;
}

/* --------------------------------------------------------------- removing */

static void inner_remove(struct areas_inner *inner, unsigned at)
{
	unsigned n = inner->n - at - 1u;

	memmove(&inner->low[at], &inner->low[at + 1], n * sizeof(inner->low[0]));
	memmove(&inner->child[at], &inner->child[at + 1], n * sizeof(inner->child[0]));
	memmove(&inner->gap[at], &inner->gap[at + 1], n * sizeof(inner->gap[0]));
	inner->n--;
}

/* A root with one child is none; the finger's path has changed. */
static void lower_root(struct areas *areas)
{
	while (areas->depth && ((struct areas_inner *)areas->root)->n == 1) {
		struct areas_inner *root = areas->root;

		areas->root = root->child[0];
		areas->depth--;
		pool_put(&areas->pool, root);
	}
	forget_finger(areas);
}

/* Removes the finger's leaf from the inner nodes, and those that this empties. */
static void remove_leaf(struct areas *areas)
{
	unsigned level;

	for (level = 0; level < areas->depth; level++) {
		struct areas_inner *inner = areas->finger.up[level].node;

		inner_remove(inner, areas->finger.up[level].index);
		if (inner->n)
			break;
		pool_put(&areas->pool, inner);
	}
	if (level == areas->depth) {
		areas->root = NULL;
		areas->depth = 0;
	}
	lower_root(areas);
}

static void unlink_leaf(struct areas *areas, struct areas_leaf *leaf)
{
	if (leaf->prev)
		leaf->prev->next = leaf->next;
	else
		areas->head = leaf->next;
	if (leaf->next)
		leaf->next->prev = leaf->prev;
	else
		areas->tail = leaf->prev;
	pool_put(&areas->pool, leaf);
}

static void leaf_to_front(struct areas_leaf *leaf)
{
	move(leaf, 0, leaf->from, leaf_count(leaf));
	leaf->to = (uint16_t)leaf_count(leaf);
	leaf->from = 0;
}

/* Moves what child @i + 1 of @parent has to child @i; the caller takes it out of @parent. */
static void join_inner(struct areas *areas, struct areas_inner *parent, unsigned i)
{
	struct areas_inner *left = parent->child[i], *right = parent->child[i + 1];

	/* low[0] counts as 0 in its own node; among others it is what the parent says. */
	right->low[0] = parent->low[i + 1];
	memcpy(&left->low[left->n], right->low, right->n * sizeof(right->low[0]));
	memcpy(&left->child[left->n], right->child, right->n * sizeof(right->child[0]));
	memcpy(&left->gap[left->n], right->gap, right->n * sizeof(right->gap[0]));
	left->n = (uint16_t)(left->n + right->n);
	parent->gap[i] = parent->gap[i] > parent->gap[i + 1] ? parent->gap[i] : parent->gap[i + 1];
	pool_put(&areas->pool, right);
}

/*
 * The left one of two neighbours, one of them child @index, that together
 * have at most @most; false: there are none. @count counts one child.
 */
static bool neighbours(const struct areas_inner *parent, unsigned index,
	unsigned (*count)(const struct areas_inner *parent, unsigned i), unsigned most,
	unsigned *left)
{
	unsigned i = index ? index - 1 : 0;

	for (; i <= index && i + 1 < parent->n; i++) {
		if (count(parent, i) + count(parent, i + 1) <= most) {
			*left = i;
			return true;
		}
	}
	return false;
}

static unsigned count_areas(const struct areas_inner *parent, unsigned i)
{
	return leaf_count(parent->child[i]);
}

static unsigned count_children(const struct areas_inner *parent, unsigned i)
{
	return ((const struct areas_inner *)parent->child[i])->n;
}

/*
 * Joins nodes that have become small, from the finger's leaf upwards, so that
 * a tree which was large and is now sparse gives its memory back.
 */
static void join_small(struct areas *areas)
{
	struct areas_leaf *left, *right;
	struct areas_inner *parent;
	unsigned i;

	if (!areas->depth || leaf_count(areas->finger.leaf) >= LEAF_FEW)
		return;
	parent = areas->finger.up[0].node;
	if (!neighbours(parent, areas->finger.up[0].index, count_areas, LEAF_JOINED, &i))
		return;
	left = parent->child[i];
	right = parent->child[i + 1];
	leaf_to_front(left);
	append(left, right, right->from, leaf_count(right));
	parent->gap[i] = parent->gap[i] > parent->gap[i + 1] ? parent->gap[i] : parent->gap[i + 1];
	unlink_leaf(areas, right);
	inner_remove(parent, i + 1);
	for (unsigned level = 1; level < areas->depth && parent->n < INNER_FEW; level++) {
		parent = areas->finger.up[level].node;
		if (!neighbours(parent, areas->finger.up[level].index, count_children, INNER_JOINED,
			    &i))
			break;
		join_inner(areas, parent, i);
		inner_remove(parent, i + 1);
	}
	lower_root(areas);
}

/* The gap before the first area of @leaf has grown. */
static void raise_next(struct areas *areas, struct areas_leaf *leaf)
{
	if (!leaf)
		return;
	descend(areas, leaf->first[leaf->from]);
	raise_bounds(areas, gap_before(leaf, leaf->from));
}

/* Removes @n areas from @slot of the finger's leaf on. */
static void remove_run(struct areas *areas, unsigned slot, unsigned n)
{
	struct areas_leaf *leaf = areas->finger.leaf, *next = leaf->next;

	areas->count -= n;
	areas->ascending = 0;
	areas->slot = AREAS_LEAF;
	slot = close_slots(leaf, slot, n);
	if (!leaf_count(leaf)) {
		unlink_leaf(areas, leaf);
		remove_leaf(areas);
		raise_next(areas, next);
		return;
	}
	/* The gap before the area behind them has grown, wherever that one is. */
	if (slot < leaf->to) {
		raise_bounds(areas, gap_before(leaf, slot));
	} else {
		raise_next(areas, next);
		descend(areas, leaf->first[leaf->from]);
	}
	join_small(areas);
}

void areas_remove(struct areas *areas, struct areas_place place)
{
	descend(areas, place.leaf->first[place.slot]);
	remove_run(areas, place.slot, 1);
}

unsigned areas_take(struct areas *areas, uint64_t first, uint64_t last, struct area *out)
{
	struct areas_leaf *leaf;
	unsigned slot, n;

	if (!areas->root)
		return 0;
	leaf = descend(areas, first);
	slot = first ? leaf_upper(leaf, first - 1) : leaf->from;
	if (slot == leaf->to) {
		/* The lowest area from @first on may begin in a later leaf. */
		if (!leaf->next || leaf->next->first[leaf->next->from] > last)
			return 0;
		leaf = descend(areas, leaf->next->first[leaf->next->from]);
		slot = leaf->from;
	}
	for (n = 0; slot + n < leaf->to && leaf->first[slot + n] <= last; n++)
		out[n] = areas_at((struct areas_place){leaf, slot + n});
	if (n)
		remove_run(areas, slot, n);
	return n;
}
