/* SPDX-License-Identifier: MIT */
/*
 * Space, table and access as the engine's files see them.
 *
 * Locking. space->lock guards the areas, the ranges, the list of tables, each
 * table's writers and its list of accesses. It is never held while memory is
 * released or read sections are waited for. Two spaces' locks are never held
 * together: a copy takes references first, then maps.
 *
 * An access is its thread's own, but for owner, which the lock guards.
 */
#ifndef DMAMAP_ENGINE_SPACE_H
#define DMAMAP_ENGINE_SPACE_H

#include <pthread.h>

#include "dmamap/engine.h"
#include "engine/areas.h"
#include "engine/pagetable.h"
#include "engine/ranges.h"

#define MEMORY_PROT 7ul

struct dmamap_space {
	pthread_mutex_t lock;
	struct areas areas;
	struct ranges ranges;
	struct dmamap_table *tables;
	uint64_t area_limit;
	uint64_t granule; /* the largest of the tables, 1: no table */
	uint64_t last;	  /* the lowest of the tables' last IOVAs */
	uint64_t maps, unmaps, waits;
	unsigned accesses;   /* of all tables */
	const void *owner;   /* the thread that all of them belong to; NULL: several threads */
	unsigned waiting;    /* calls that wait for accesses and then free nodes */
	pthread_cond_t idle; /* waiting is 0 */
	struct dmamap_counters gone; /* what destroyed tables had done */
};

struct dmamap_table {
	struct pagetable pt;
	struct dmamap_space *space;
	struct dmamap_table *next;
	struct dmamap_access *accesses;
	uint64_t told; /* areas whose memory was told that this table is filled */
};

struct dmamap_access {
	/* What the last translation found, while the table's generation lasts. */
	uint64_t first, span; /* bytes but one */
	uint64_t host;
	uint64_t generation;
	unsigned prot;
	unsigned depth;		   /* of enter */
	struct dmamap_reason *why; /* where a slow translation's reason goes */
	const void *owner;	   /* thread_id() of its thread */
	struct dmamap_table *table;
	struct dmamap_access *next, *prev;
};

/* What tells this thread from every other that runs. */
static inline const void *thread_id(void)
{
#if defined(__x86_64__)
	const void *id;

	__asm__("movq %%fs:0, %0" : "=r"(id));
	return id;
#elif defined(__powerpc64__)
	const void *id;

	__asm__("mr %0, 13" : "=r"(id));
	return id;
#else
	return __builtin_thread_pointer();
#endif
}

static inline struct dmamap_memory *area_memory(const struct area *area)
{
	return (struct dmamap_memory *)(uintptr_t)(area->memory & ~MEMORY_PROT);
}

static inline unsigned area_prot(const struct area *area)
{
	return area->memory & MEMORY_PROT;
}

/* Whether another thread may be within an access to one of the space's tables. */
static inline bool others_read(const struct dmamap_space *space)
{
	return space->accesses && space->owner != thread_id();
}

/**
 * table_fill() - Write an area's leaves and tell its memory. On failure some
 * leaves are left: clear them. The memory need not be told then.
 */
int table_fill(struct dmamap_table *table, const struct area *area, struct dmamap_reason *why);

/**
 * tables_cleared() - Tell an area's memory, while it has a reference, that the
 * tables from @table up to @end, excluded, give it up. Where area_tells().
 */
void tables_cleared(
	const struct area *area, struct dmamap_table *table, const struct dmamap_table *end);

/* Whether an area's memory wants to be told. */
static inline bool area_tells(const struct area *area)
{
	return area_memory(area) && __builtin_expect(area_memory(area)->ops->cleared != NULL, 0);
}

#endif
