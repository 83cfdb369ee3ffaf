/* SPDX-License-Identifier: MIT */
/* What a set of samples says: middle, spread, and when two sets differ. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct stats - Of @n samples; all 0 without any.
 * @median: the middle one, or the mean of the middle two
 * @p90: the smallest sample that at least 90 % of them do not exceed
 */
struct stats {
	size_t n;
	uint64_t min;
	uint64_t median;
	uint64_t p90;
	uint64_t max;
};

/** stats_of() - Sorts @samples. */
struct stats stats_of(uint64_t *samples, size_t n);

/** stats_noise() - The width of the band from min to p90, as a part of the median. */
double stats_noise(const struct stats *stats);

enum stats_change { STATS_SAME, STATS_FASTER, STATS_SLOWER, STATS_UNKNOWN };

/** Fewer samples than this say nothing about noise. */
#define STATS_ENOUGH 3

/**
 * stats_compare() - Is @now beyond the noise of both? Each set's noise is the
 * band from its min to its p90: they differ where the bands have no point in
 * common.
 *
 * Return: STATS_UNKNOWN with fewer than STATS_ENOUGH samples in one of them.
 */
enum stats_change stats_compare(const struct stats *base, const struct stats *now);

#endif
