/* SPDX-License-Identifier: MIT */
/*
 * IOVA units: the one allocator behind the caches. It hands out runs of units
 * (a unit is the smallest IOVA range, its number is its IOVA divided by its
 * size), from the top down, each aligned to its length rounded up to a power
 * of two: a caller may then tell from an IOVA alone what it may cross.
 *
 * A bitmap: 64 MiB of 4 KiB units is 2 KiB, so that a search is a few cache
 * lines. Linux keeps ranges in a red-black tree instead (drivers/iommu/iova.c,
 * 7.3): its IOVA spaces are large and sparse, a bounce buffer is small and full.
 */
#ifndef DMAMAP_ENGINE_IOVA_UNITS_H
#define DMAMAP_ENGINE_IOVA_UNITS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Runs of 1, 2, 4 ... 32 units are found from a hint, and are what caches hold. */
#define IOVA_ORDERS 6u

struct iova_units {
	uint64_t first, last; /* of the units that there are; last < first: none */
	pthread_mutex_t lock; /* guards what follows */
	uint64_t *word;	      /* a set bit: in use, or no unit of ours */
	/* No word above it has a free run of that order; -1: none at all has. */
	int64_t hint[IOVA_ORDERS];
};

/** iova_units_start() - Units @first to @last, all free. Return: 0 or -ENOMEM. */
int iova_units_start(struct iova_units *units, uint64_t first, uint64_t last);
void iova_units_stop(struct iova_units *units);

/** iova_units_take() - A run of @n units, at least 1; false: there is none. Any thread. */
bool iova_units_take(struct iova_units *units, uint64_t n, uint64_t *first);
/** iova_units_give() - Give a run back. Any thread. */
void iova_units_give(struct iova_units *units, uint64_t first, uint64_t n);

/** iova_units_largest() - The longest run that an empty allocator has; alignment decides. */
uint64_t iova_units_largest(const struct iova_units *units);

/* log2 of @n rounded up to a power of two. */
static inline unsigned iova_order(uint64_t n)
{
	return n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;
}

/* Units that a request for @n takes. */
static inline uint64_t iova_rounded(uint64_t n)
{
	unsigned order = iova_order(n);

	return order < IOVA_ORDERS ? (uint64_t)1 << order : n;
}

#endif
