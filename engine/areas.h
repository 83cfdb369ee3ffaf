/* SPDX-License-Identifier: MIT */
/*
 * Areas: the mapped ranges of a space, in a B+-tree ordered by IOVA.
 *
 * Areas never overlap, so that ordering by first IOVA orders everything. A leaf
 * of 2 KiB holds up to 63 areas of 32 bytes each in four columns; a search
 * reads one column. With every area in a node of its own, a tree of a million
 * costs a cache miss at each of 20 levels; here it is two.
 *
 * Free space. For each child an inner node holds a bound: no gap before an
 * area in that subtree is larger ("before": down to the area that precedes
 * it, in whatever leaf). Taking space makes gaps smaller and needs no upkeep;
 * giving it back raises bounds on the way up. A search for free space skips
 * what the bounds rule out, and corrects each bound that promised too much, so
 * that the lowest fitting hole is found in O(log n) of amortised work.
 *
 * The finger remembers the way to the last leaf that was used, with the range
 * of IOVAs that belong there: work in order of IOVA does not descend again.
 *
 * The tree has no lock: the space's lock guards it.
 */
#ifndef DMAMAP_ENGINE_AREAS_H
#define DMAMAP_ENGINE_AREAS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/pool.h"

#define AREAS_NODE_SHIFT 11
#define AREAS_LEAF	 63u
#define AREAS_INNER	 85u
#define AREAS_DEPTH	 16u

struct areas_leaf {
	struct areas_leaf *prev, *next;
	uint16_t from, to; /* records are in the columns' slots [from, to) */
	uint64_t first[AREAS_LEAF];
	uint64_t last[AREAS_LEAF];
	uint64_t memory[AREAS_LEAF]; /* pointer | prot */
	uint64_t offset[AREAS_LEAF];
};

struct areas_inner {
	uint16_t n;
	uint64_t low[AREAS_INNER]; /* child i has IOVAs from low[i]; low[0] counts as 0 */
	void *child[AREAS_INNER];
	uint64_t gap[AREAS_INNER];
};

/* The way to a leaf; IOVAs low to high belong there. Level 0 is above the leaf. */
struct areas_finger {
	struct areas_leaf *leaf; /* NULL: no way is known */
	uint64_t low, high;
	struct {
		struct areas_inner *node;
		unsigned index;
	} up[AREAS_DEPTH];
};

struct areas {
	void *root; /* a leaf when depth is 0; NULL: empty */
	unsigned depth;
	unsigned ascending; /* inserts in a row, each right behind the one before */
	unsigned slot;	    /* of the last insert */
	uint64_t count;
	struct areas_leaf *head, *tail;
	struct areas_finger finger;
	struct pool pool;
};

struct area {
	uint64_t first, last;
	uint64_t memory; /* pointer | prot */
	uint64_t offset;
};

/* A record's place; leaf NULL: past the end. Valid until the tree changes. */
struct areas_place {
	struct areas_leaf *leaf;
	unsigned slot;
};

void areas_start(struct areas *areas);
void areas_stop(struct areas *areas);

/** areas_seek() - The lowest area whose last is at least @iova. */
struct areas_place areas_seek(struct areas *areas, uint64_t iova);
/** areas_next() - The area that follows. */
struct areas_place areas_next(struct areas_place place);

/** areas_near() - Whether @iova belongs where the last call worked. */
static inline bool areas_near(const struct areas *areas, uint64_t iova)
{
	const struct areas_finger *finger = &areas->finger;

	return finger->leaf && finger->low <= iova && iova <= finger->high;
}

static inline struct area areas_at(struct areas_place place)
{
	const struct areas_leaf *leaf = place.leaf;

	return (struct area){leaf->first[place.slot], leaf->last[place.slot],
		leaf->memory[place.slot], leaf->offset[place.slot]};
}

/**
 * areas_insert() - @area must not overlap another.
 * @behind: what areas_seek() gives for @area's first, where it is known, so
 *	that it need not be found again; else NULL
 *
 * Return: 0 or -ENOMEM.
 */
int areas_insert(struct areas *areas, const struct area *area, const struct areas_place *behind);

/** areas_remove() - Remove one area. Allocates nothing, cannot fail. */
void areas_remove(struct areas *areas, struct areas_place place);

/**
 * areas_take() - Remove areas that begin in [first, last], at most one leaf of
 * them: those that begin lowest. Allocates nothing, cannot fail.
 * @out: room for AREAS_LEAF areas
 *
 * Return: how many were removed; 0: none is left there.
 */
unsigned areas_take(struct areas *areas, uint64_t first, uint64_t last, struct area *out);

/**
 * areas_hole() - The lowest free range of @span + 1 bytes within [low, high]
 * that starts at @phase modulo @alignment (a power of two).
 */
bool areas_hole(struct areas *areas, uint64_t low, uint64_t high, uint64_t span, uint64_t alignment,
	uint64_t phase, uint64_t *first);

/** areas_check() - For tests: whether every rule of the structure holds; NULL or what is broken. */
const char *areas_check(struct areas *areas);

#endif
