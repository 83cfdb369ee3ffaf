/* SPDX-License-Identifier: MIT */
/*
 * IOVA cache: per-thread stocks of IOVA units in front of one allocator, so
 * that threads that map and unmap do not meet.
 *
 * Units that are given back go into the magazine (a short stack) that the
 * thread has loaded; when it and the one before are full, one goes to the depot
 * of its order, where a thread with two empty ones finds it. Only when that
 * has none either is the allocator asked; and when the allocator has nothing,
 * what all threads and depots hold is given back to it, once, and it is asked
 * again. Runs of up to 32 units are kept, each order apart; lengths below 32
 * are rounded up to a power of two, so that a run fits whoever asks next.
 * (The numbers and rules are those of Linux 7.3, drivers/iommu/iova.c.)
 *
 * Unlike there, threads stand for processors, and no timer shrinks the depots:
 * they hold no more than the bounce buffer has, and a failure empties them.
 *
 * Locking, in this order: a slot's lock guards its magazines and counts, the
 * depot's lock its lists, the allocator's lock the bitmap. No two slots' locks
 * are held together. A slot's lock is held for some instructions only, so it
 * spins. Threads with the same slot are slower and as right.
 */
#ifndef DMAMAP_ENGINE_IOVA_CACHE_H
#define DMAMAP_ENGINE_IOVA_CACHE_H

#include "engine/iova_units.h"

#define IOVA_MAGAZINE 127u
#define IOVA_SLOTS    64u

struct magazine {
	union {
		uint64_t n;	       /* in a slot: units in stock */
		struct magazine *next; /* in a depot, where all are full */
	};
	uint32_t unit[];
};

/* What one slot counts; see dmamap_bounce_counters for the meaning. */
struct iova_counts {
	uint64_t live; /* of one slot it may wrap: another one gave back */
	uint64_t fast;
	uint64_t slow;
	uint64_t copied[2]; /* the caller's bytes: at getting, at putting */
};

struct iova_slot {
	unsigned lock;
	struct iova_counts counts;
	struct {
		struct magazine *loaded, *before;
	} stock[IOVA_ORDERS];
} __attribute__((aligned(128)));

struct iova_cache {
	struct iova_units units;
	struct iova_slot *slot;
	unsigned slots;	   /* a power of two */
	unsigned magazine; /* units in a full one */
	pthread_mutex_t depot_lock;
	struct magazine *depot[IOVA_ORDERS];
	uint64_t flushes; /* atomic */
};

/**
 * iova_cache_start() - Units @first to @last, all free, nothing in stock.
 * @slots: a power of two; @magazine: at least 1.
 *
 * Return: 0 or -ENOMEM.
 */
int iova_cache_start(
	struct iova_cache *cache, uint64_t first, uint64_t last, unsigned slots, unsigned magazine);
void iova_cache_stop(struct iova_cache *cache);

/**
 * iova_cache_get() - A run of @n units; false: there is none, flushed too.
 * @copied: bytes that the caller copies on the occasion: added to its counts
 */
bool iova_cache_get(struct iova_cache *cache, uint64_t n, uint64_t copied, uint64_t *first);
/** iova_cache_put() - Give it back; @n and @copied as above. */
void iova_cache_put(struct iova_cache *cache, uint64_t first, uint64_t n, uint64_t copied);
/** iova_cache_note() - Bytes that were copied, or (2^64 - n) that were not, on no such occasion. */
void iova_cache_note(struct iova_cache *cache, uint64_t at_get, uint64_t at_put);
/** iova_cache_counts() - The sum over all slots. */
void iova_cache_counts(struct iova_cache *cache, struct iova_counts *counts);

#endif
