/* SPDX-License-Identifier: MIT */
/* What a set of samples says: middle, spread, and when two sets differ. */
#include "stats.h"

#include <stdlib.h>

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

struct stats stats_of(uint64_t *samples, size_t n)
{
	struct stats stats = {.n = n};

	if (!n)
		return stats;
	qsort(samples, n, sizeof(*samples), by_value);
	stats.min = samples[0];
	stats.max = samples[n - 1];
	stats.p90 = samples[(n * 9 + 9) / 10 - 1];
	if (n % 2)
		stats.median = samples[n / 2];
	else
		stats.median = samples[n / 2 - 1] + (samples[n / 2] - samples[n / 2 - 1]) / 2;
	return stats;
}

double stats_noise(const struct stats *stats)
{
	return stats->median ? (double)(stats->p90 - stats->min) / (double)stats->median : 0;
}

enum stats_change stats_compare(const struct stats *base, const struct stats *now)
{
	if (base->n < STATS_ENOUGH || now->n < STATS_ENOUGH)
		return STATS_UNKNOWN;
	if (now->min > base->p90)
		return STATS_SLOWER;
	if (now->p90 < base->min)
		return STATS_FASTER;
	return STATS_SAME;
}
