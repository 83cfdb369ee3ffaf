/* SPDX-License-Identifier: MIT */
/*
 * The work counted on both systems, side by side: which rows belong together,
 * which counts stand for the same thing, and what the kernel's have to be.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include "result.h"

/** work_known() - This event was counted in this row. */
bool work_known(const struct result *result, enum kernel_event event);

/**
 * work_lookups() - The steps in which a map gets at the memory: soft's
 * look-ups; on Linux the calls that pin, of the function that the mode uses.
 *
 * Return: false where they were not counted.
 */
bool work_lookups(const struct result *result, uint64_t *lookups);

/**
 * work_twin() - The soft row that a Linux row is to be compared with: the
 * same variant, and for a BAR the stride of that kernel; NULL: there is none,
 * or it mapped another size, or it did not run.
 */
const struct result *work_twin(const struct report *report, const struct result *result);

/** What can be compared of two rows. */
enum work_pair { WORK_STEPS, WORK_MAPS, WORK_UNMAPS, WORK_PAIRS };

/** How the kernel's count stands to what it has to be. */
enum work_verdict {
	WORK_UNKNOWN, /**< not counted, or memory's adjacency decides */
	WORK_EQUAL,
	WORK_DIFFERS, /**< and should not */
};

/**
 * work_compare() - One count of a Linux row.
 * @count: out: the kernel's
 *
 * Return: WORK_UNKNOWN with *@count UINT64_MAX where it was not counted.
 */
enum work_verdict work_compare(const struct result *soft, const struct result *result,
	enum work_pair pair, uint64_t *count);

/** work_rule() - What links the two systems' counts, line by line; NULL: no more. */
const char *work_rule(const struct report *report, unsigned index);

#endif
