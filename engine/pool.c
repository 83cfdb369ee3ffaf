/* SPDX-License-Identifier: MIT */
/*
 * Pool: chunks of 2 MiB, cut into nodes of one size. See pool.h.
 *
 * The first chunk of a pool stays small (FIRST_BYTES) and asks for no huge
 * page: most address spaces are small, and a program may have thousands.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine/pool.h"

#define FIRST_BYTES 65536u
#define FIRST_SLOTS 8u

int engine_fail_nth;

void *engine_calloc(size_t n, size_t size)
{
	return fail_now() ? NULL : calloc(n, size);
}

void pool_start(struct pool *pool, unsigned shift)
{
	size_t slots = POOL_CHUNK >> shift;
	size_t header = sizeof(struct pool_chunk) + slots * sizeof(uintptr_t);

	*pool = (struct pool){
		.shift = shift,
		.header = (unsigned)((header + ((size_t)1 << shift) - 1) >> shift),
	};
}

/* The system aligns mappings to its page only: take twice as much and trim. */
static void *map_chunk(void)
{
	char *base, *chunk;

	base = mmap(NULL, 2 * POOL_CHUNK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	chunk = (char *)(((uintptr_t)base + POOL_CHUNK - 1) & ~(POOL_CHUNK - 1));
	if (chunk > base)
		munmap(base, (size_t)(chunk - base));
	munmap(chunk + POOL_CHUNK, POOL_CHUNK - (size_t)(chunk - base));
	return chunk;
}

static void room_link(struct pool *pool, struct pool_chunk *chunk)
{
	chunk->prev = NULL;
	chunk->next = pool->room;
	if (pool->room)
		pool->room->prev = chunk;
	pool->room = chunk;
}

static void room_unlink(struct pool *pool, struct pool_chunk *chunk)
{
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		pool->room = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
}

static struct pool_chunk *add_chunk(struct pool *pool)
{
	uint32_t slots = (uint32_t)(POOL_CHUNK >> pool->shift);
	struct pool_chunk *chunk = map_chunk();

	if (!chunk)
		return NULL;
	/*
	 * Only a hint: without huge pages it is slower, and still right. It comes
	 * before the first touch, which decides what the chunk is made of.
	 */
	madvise(chunk, POOL_CHUNK, pool->all ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (pool->all) {
		chunk->limit = slots;
		pool->held += POOL_CHUNK;
	} else {
		uint32_t first = FIRST_BYTES >> pool->shift;

		chunk->limit = pool->header + (first > FIRST_SLOTS ? first : FIRST_SLOTS);
		pool->held += (uint64_t)chunk->limit << pool->shift;
	}
	chunk->pool = pool;
	chunk->used = pool->header;
	chunk->next_all = pool->all;
	if (pool->all)
		pool->all->prev_all = chunk;
	pool->all = chunk;
	room_link(pool, chunk);
	return chunk;
}

static void drop_chunk(struct pool *pool, struct pool_chunk *chunk)
{
	bool whole = chunk->limit == (uint32_t)(POOL_CHUNK >> pool->shift);

	room_unlink(pool, chunk);
	if (chunk->prev_all)
		chunk->prev_all->next_all = chunk->next_all;
	else
		pool->all = chunk->next_all;
	if (chunk->next_all)
		chunk->next_all->prev_all = chunk->prev_all;
	pool->held -= whole ? POOL_CHUNK : (uint64_t)chunk->limit << pool->shift;
	munmap(chunk, POOL_CHUNK);
}

void pool_stop(struct pool *pool)
{
	struct pool_chunk *chunk, *next;

	for (chunk = pool->all; chunk; chunk = next) {
		next = chunk->next_all;
		munmap(chunk, POOL_CHUNK);
	}
	pool_start(pool, pool->shift);
}

void *pool_get(struct pool *pool)
{
	struct pool_chunk *chunk = pool->room;
	uint32_t slot;

	if (fail_now())
		return NULL;
	if (!chunk) {
		chunk = add_chunk(pool);
		if (!chunk)
			return NULL;
	}
	if (chunk == pool->empty)
		pool->empty = NULL;
	if (chunk->free) {
		slot = chunk->free;
		chunk->free = (uint32_t)chunk->word[slot];
		chunk->word[slot] = 0;
	} else {
		slot = chunk->used++;
	}
	chunk->live++;
	pool->live++;
	if (!chunk->free && chunk->used == chunk->limit)
		room_unlink(pool, chunk);
	return (char *)chunk + ((uintptr_t)slot << pool->shift);
}

void pool_put(struct pool *pool, void *node)
{
	uintptr_t address = (uintptr_t)node;
	struct pool_chunk *chunk = (struct pool_chunk *)(address & ~(POOL_CHUNK - 1));
	uint32_t slot = (uint32_t)((address & (POOL_CHUNK - 1)) >> pool->shift);

	if (!chunk->free && chunk->used == chunk->limit)
		room_link(pool, chunk);
	chunk->word[slot] = chunk->free;
	chunk->free = slot;
	chunk->live--;
	pool->live--;
	if (chunk->live)
		return;
	if (pool->empty)
		drop_chunk(pool, chunk);
	else
		pool->empty = chunk;
}
