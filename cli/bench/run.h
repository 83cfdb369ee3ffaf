/* SPDX-License-Identifier: MIT */
/*
 * The runs: every row of a plan is measured, again and again in a shuffled
 * order, so that whatever drifts in the machine meets all rows alike.
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "plan.h"

/** struct run_progress - Told before each measurement; NULL: nobody is. */
typedef void (*run_progress)(const struct result *result, size_t done, size_t total);

/**
 * run_plan() - Measure all rows of the report that have STATUS_RUN. Ends early
 * when a signal came. Huge pages that it reserved are given back.
 *
 * Return: 0; -ENOMEM.
 */
int run_plan(const struct plan *plan, const struct options *options, struct report *report,
	run_progress progress);

#endif
