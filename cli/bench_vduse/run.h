/* SPDX-License-Identifier: MIT */
/* The measuring: every row in turn, round after round. */
#ifndef BENCH_VDUSE_RUN_H
#define BENCH_VDUSE_RUN_H

#include "report.h"

/**
 * struct vduse_listener - Who hears what goes on; each may be NULL.
 * @progress: told before each run
 * @refused: told of each call of a command's that was refused, by another thread
 */
struct vduse_listener {
	void (*progress)(const struct vduse_row *row, unsigned done, unsigned total);
	void (*refused)(const struct vduse_disk *by, const char *sentence);
};

/**
 * vduse_run_all() - Run the planned rows. A signal ends it early: the run that it
 * falls into is left out.
 *
 * Return: 0; -1 with a complaint.
 */
int vduse_run_all(struct vduse_report *report, const struct vduse_listener *listener,
	struct complaint *complaint);

#endif
