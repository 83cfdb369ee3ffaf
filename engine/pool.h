/* SPDX-License-Identifier: MIT */
/*
 * Pool: memory for the engine's nodes, all of one size in one pool.
 *
 * Nodes come out of aligned chunks of 2 MiB, so that the system can back them
 * with huge pages (first touch of a page table then costs a 38th), and so that
 * a node's chunk is found by masking its address. Each node has one word beside
 * it in the chunk's header, for what must not be written into the node itself:
 * readers may still look at a page-table node that is waiting to be freed.
 *
 * A node that was never used is zero. A node that is put back is handed out
 * again as it was left: page tables leave it zero, area nodes do not care.
 *
 * The pool has no lock: its owner's lock guards it.
 */
#ifndef DMAMAP_ENGINE_POOL_H
#define DMAMAP_ENGINE_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_CHUNK_SHIFT 21
#define POOL_CHUNK	 ((uintptr_t)1 << POOL_CHUNK_SHIFT)

struct pool;

struct pool_chunk {
	struct pool *pool;
	struct pool_chunk *next_all, *prev_all;
	struct pool_chunk *next, *prev; /* chunks with room */
	uint32_t live;
	uint32_t used;	/* slots handed out at least once */
	uint32_t limit; /* slots that may be */
	uint32_t free;	/* first slot put back, 0: none */
	uintptr_t word[];
};

struct pool {
	unsigned shift;	 /* log2 of the node size */
	unsigned header; /* slots that the header takes */
	struct pool_chunk *all;
	struct pool_chunk *room;
	struct pool_chunk *empty; /* one empty chunk is kept, so that a lone node does not thrash */
	uint64_t live;
	uint64_t held; /* bytes taken from the system */
};

/** pool_start() - Nodes of 2^@shift bytes, aligned to it; 9 to 16. Takes no memory. */
void pool_start(struct pool *pool, unsigned shift);
/** pool_stop() - Give all memory back, nodes in use included. */
void pool_stop(struct pool *pool);
/** pool_get() - A node, or NULL: no memory. */
void *pool_get(struct pool *pool);
/** pool_put() - Put a node back. Its word's value is lost. */
void pool_put(struct pool *pool, void *node);

/** pool_word() - The word beside a node; zero when the node is handed out. */
static inline uintptr_t *pool_word(const struct pool *pool, const void *node)
{
	uintptr_t address = (uintptr_t)node;
	struct pool_chunk *chunk = (struct pool_chunk *)(address & ~(POOL_CHUNK - 1));

	return &chunk->word[(address & (POOL_CHUNK - 1)) >> pool->shift];
}

/** pool_of() - The pool that a node came from. */
static inline struct pool *pool_of(const void *node)
{
	return ((struct pool_chunk *)((uintptr_t)node & ~(POOL_CHUNK - 1)))->pool;
}

/*
 * For tests: the n-th allocation of the engine in this process from now on
 * fails, 0: none does. Every allocation goes through fail_now() once.
 */
extern int engine_fail_nth;

static inline int fail_now(void)
{
	return __builtin_expect(engine_fail_nth != 0, 0) && --engine_fail_nth == 0;
}

/** engine_calloc() - calloc() that tests can make fail. */
void *engine_calloc(size_t n, size_t size);

#endif
