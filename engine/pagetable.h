/* SPDX-License-Identifier: MIT */
/*
 * Page table: a radix tree from IOVA to host address.
 *
 * Levels count from the leaves: an item of a node at level L spans
 * 2^(granule + L * bits) bytes. The root's level grows with the highest IOVA
 * that is mapped, so that a space of 48 bits is not walked as one of 64.
 *
 * An entry is one word, so that it changes at once:
 *
 *	0			nothing
 *	node | TABLE		a node of the level below
 *	host << 8 | (k + 1) << 4 | prot
 *				a leaf: the host address of this item's first
 *				byte (any byte: host memory is below 2^56), what
 *				a device may do, and k: the leaf is one of 2^k
 *				items that were mapped as one larger leaf
 *
 * Every item of such a larger leaf holds its own address, so that readers need
 * not know of k.
 *
 * While writes are tracked (dirty.c), a leaf that may be written to but was
 * not has CLEAN in place of WRITE: the first write goes the slow way.
 *
 * A node knows how many of its entries are in use (its pool word). The last
 * one out frees the node, so that an empty range holds no memory.
 *
 * Locking. Writers hold the space's lock. Readers (pagetable_walk) hold none;
 * they are within an RCU read section (rcu.h). Entries are written and read
 * atomically; a node is complete before it is linked, and is freed by the
 * caller of pagetable_unmap() only when readers that may see it are gone. The
 * one thing that readers change is CLEAN to WRITE (pagetable_mark).
 */
#ifndef DMAMAP_ENGINE_PAGETABLE_H
#define DMAMAP_ENGINE_PAGETABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "dmamap/engine.h"
#include "engine/pool.h"

#define PT_READ	      DMAMAP_READ
#define PT_WRITE      DMAMAP_WRITE
#define PT_PROT	      3u
#define PT_TABLE      4u
#define PT_CLEAN      8u
#define PT_LEAF	      0xf0u /* k + 1: not 0 in a leaf, 0 in all else */
#define PT_LEAF_SHIFT 4
#define PT_HOST_SHIFT 8

struct pagetable {
	uint64_t root;	     /* node | log2 of what its items span, 0: empty; atomic */
	uint64_t generation; /* grows when a leaf goes away; atomic */
	uint8_t granule_shift;
	uint8_t level;	/* of the root */
	uint8_t bits;	/* log2 of the entries of a node */
	uint8_t output; /* enum dmamap_output */
	bool splits;	/* some leaf size takes several items */
	bool tracks;	/* writes are tracked: new leaves begin clean */
	uint64_t leaf_sizes;
	uint64_t last;	      /* the last IOVA that it translates */
	uint8_t level_of[64]; /* of a leaf size */
	struct pool pool;
	uint64_t lookups;
	uint64_t leaves[64];
	uint64_t cleared[64];
};

/** pagetable_start() - 0, or -EINVAL and a reason: a shape that cannot be. */
int pagetable_start(
	struct pagetable *pt, const struct dmamap_table_config *config, struct dmamap_reason *why);
/** pagetable_sizes() - Leaves are of these sizes from now on; none is below the granule. */
void pagetable_sizes(struct pagetable *pt, uint64_t sizes);
/** pagetable_stop() - Free everything; no reader is left. */
void pagetable_stop(struct pagetable *pt);

/**
 * pagetable_map() - Write leaves for a range that has none.
 * @iova, @last: multiples of the granule (@last + 1)
 * @host: host address of the first byte; under the hardware rule congruent to
 *	@iova modulo the granule
 * @largest: log2 of the largest leaf wanted
 *
 * Return: 0, or -ENOMEM with some leaves written: pagetable_unmap() the range.
 */
int pagetable_map(struct pagetable *pt, uint64_t iova, uint64_t last, uint64_t host, unsigned prot,
	unsigned largest);

/**
 * pagetable_unmap() - Clear every leaf in a range; leaves do not straddle its
 * ends. Never fails.
 * @retired: a list, NULL at first, that nodes which are no longer linked are
 *	added to; several tables may share it
 */
void pagetable_unmap(struct pagetable *pt, uint64_t first, uint64_t last, void **retired);
/** pagetable_fetch() - Bring the entry of @iova, which a change is about to need. */
void pagetable_fetch(const struct pagetable *pt, uint64_t iova);
/** pagetable_free() - Free a list of nodes that no reader can see any more. */
void pagetable_free(void *retired);

/** struct pagetable_hit - A leaf: entry @index of @node, an item of 2^@shift bytes. */
struct pagetable_hit {
	uint64_t *node;
	unsigned index;
	unsigned shift;
	uint64_t entry;
};

static inline unsigned pagetable_item_shift(const struct pagetable *pt, unsigned level)
{
	return pt->granule_shift + level * pt->bits;
}

static inline unsigned pagetable_index(const struct pagetable *pt, unsigned level, uint64_t iova)
{
	return (unsigned)(iova >> pagetable_item_shift(pt, level)) & ((1u << pt->bits) - 1);
}

/* Whether a root of this level spans @iova. */
static inline bool pagetable_spans(const struct pagetable *pt, unsigned level, uint64_t iova)
{
	unsigned shift = pagetable_item_shift(pt, level + 1);

	return shift >= 64 || !(iova >> shift);
}

/* Log2 of the items of a leaf. */
static inline unsigned pagetable_leaf_items(uint64_t entry)
{
	return (unsigned)(entry >> PT_LEAF_SHIFT & 15) - 1;
}

/* What a device may do with a leaf, clean or not. */
static inline unsigned pagetable_prot(uint64_t entry)
{
	return (entry | (entry & PT_CLEAN) / (PT_CLEAN / PT_WRITE)) & PT_PROT;
}

/* An entry, read by a writer while readers may mark it. */
static inline uint64_t pagetable_peek(const uint64_t *entry)
{
	return __atomic_load_n(entry, __ATOMIC_RELAXED);
}

/* What an entry, or the root, points to. */
static inline uint64_t *pagetable_node(uint64_t entry)
{
	return (uint64_t *)(uintptr_t)(entry & ~(uint64_t)4095);
}

/*
 * The walk, for nodes of 2^@bits entries. The IOVA is turned so that the root's
 * index is on top, and moved up by one index at each level: with a constant
 * @bits that needs no variable shift on the way.
 */
static inline __attribute__((always_inline)) bool pagetable_walk_nodes(
	uint64_t entry, uint64_t iova, unsigned bits, struct pagetable_hit *hit)
{
	unsigned shift = entry & 63, turn = (64 - bits - shift) & 63;
	uint64_t path = iova & ~(uint64_t)2047;
	uint64_t *node;
	unsigned index;

	*hit = (struct pagetable_hit){0};
	if (!entry || iova >> shift >> bits)
		return false;
	path = path << turn | path >> (-turn & 63);
	node = pagetable_node(entry);
	for (;; shift -= bits, path <<= bits) {
		index = (unsigned)(path >> (64 - bits));
		entry = __atomic_load_n(&node[index], __ATOMIC_ACQUIRE);
		if (!(entry & PT_TABLE))
			break;
		/* No other flag is set: this folds into the address of the next load. */
		node = (uint64_t *)(uintptr_t)(entry - PT_TABLE);
	}
	*hit = (struct pagetable_hit){node, index, shift, entry};
	return entry != 0;
}

/** pagetable_walk() - Find the leaf of @iova; within a read section. */
static inline bool pagetable_walk(
	const struct pagetable *pt, uint64_t iova, struct pagetable_hit *hit)
{
	uint64_t root = __atomic_load_n(&pt->root, __ATOMIC_ACQUIRE);

	if (pt->bits == 9)
		return pagetable_walk_nodes(root, iova, 9, hit);
	return pagetable_walk_nodes(root, iova, pt->bits, hit);
}

/**
 * pagetable_mark() - A device is about to write to a clean leaf: make it dirty.
 * Within the read section that found it.
 *
 * Return: false: the entry is no longer what was found; look again.
 */
static inline bool pagetable_mark(struct pagetable_hit *hit)
{
	uint64_t clean = hit->entry, dirty = clean ^ PT_CLEAN ^ PT_WRITE;

	if (!__atomic_compare_exchange_n(&hit->node[hit->index], &clean, dirty, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	hit->entry = dirty;
	return true;
}

#endif
