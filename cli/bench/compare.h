/* SPDX-License-Identifier: MIT */
/* This run against an earlier one that --json wrote. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include "print.h"

struct base;

/** base_read() - Return: 0 and *base; -1 with a complaint. */
int base_read(const char *path, struct base **base, struct complaint *complaint);
/** base_free() - NULL is fine. */
void base_free(struct base *base);

/**
 * compare_print() - A line for each result that both have: for each phase the
 * ratio of the medians, and whether it is beyond the noise of both.
 * @threshold: in percent
 *
 * Return: how many phases are slower by more than @threshold and beyond the
 * noise.
 */
size_t compare_print(FILE *out, const struct base *base, const struct report *report,
	double threshold, const struct style *style);

#endif
