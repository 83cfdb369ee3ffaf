/* SPDX-License-Identifier: MIT */
/* The measuring: every row in turn, round after round. */
#ifndef BENCH_VDUSE_RUN_H
#define BENCH_VDUSE_RUN_H

#include "report.h"

/**
 * vduse_run_all() - Run the planned rows. A signal ends it early: the run that it
 * falls into is left out.
 * @progress: told before each run, or NULL
 *
 * Return: 0; -1 with a complaint.
 */
int vduse_run_all(struct vduse_report *report,
	void (*progress)(const struct vduse_row *row, unsigned done, unsigned total),
	struct complaint *complaint);

#endif
