/* SPDX-License-Identifier: MIT */
/*
 * The disk that the runs use. There are two kinds: the built-in one, vduse-blk's
 * in this process (own_disk.c), and a command's, a program that takes the soft
 * system for the kernel (command_disk.c). They differ in how the disk comes and
 * goes, and in whose time it works; all the rest is the same.
 */
#ifndef BENCH_VDUSE_DISK_H
#define BENCH_VDUSE_DISK_H

#include "report.h"

struct bench_disk;

#define DISK_TEXT 512

/**
 * struct bench_disk_kind - What each does for a run.
 * @start: make the disk on @system and attach it. @which: what is known of it. 0, or
 *	-1 with a complaint; @stop is called either way
 * @stop: end it; the device is detached. @failed: what the disk printed will be
 *	asked for. 0, or -1 with a complaint
 * @alive: whether it still serves; by the watcher's thread too, but not beside
 *	@start and @stop. @how: out, a clause: how it ended
 * @cpu_time: nanoseconds that it has had of the CPUs since it started; false: it is
 *	not known, or it cannot be told from the driver's. Not beside @alive
 * @said: a clause about what went wrong on its side; "": nothing known
 */
struct bench_disk_kind {
	int (*start)(struct bench_disk *disk, const struct vduse_disk *which,
		struct dmamap_system *system, const struct dmamap_vdpa_config *config,
		struct dmamap_vdpa **vdpa, struct complaint *complaint);
	int (*stop)(struct bench_disk *disk, bool failed, struct complaint *complaint);
	bool (*alive)(struct bench_disk *disk, char how[DISK_TEXT]);
	bool (*cpu_time)(struct bench_disk *disk, uint64_t *nanoseconds);
	void (*said)(struct bench_disk *disk, char text[DISK_TEXT]);
	void (*free)(struct bench_disk *disk);
};

/** struct bench_disk - Each kind embeds this as its first member. */
struct bench_disk {
	const struct bench_disk_kind *kind;
	struct vduse_report *report;
};

/** own_disk_make() - The image is there for all runs. Return: 0; -1 with a complaint. */
int own_disk_make(
	struct bench_disk **disk, struct vduse_report *report, struct complaint *complaint);

/**
 * command_disk_make() - A command is started for each run.
 * @refused: told of each call of one that was refused, by another thread; or NULL
 *
 * Return: 0; -1 with a complaint.
 */
int command_disk_make(struct bench_disk **disk, struct vduse_report *report,
	void (*refused)(const struct vduse_disk *by, const char *sentence),
	struct complaint *complaint);
/** command_disk_drop() - In a signal's handler, before the process ends: the command
 * ends as well, and leaves nothing behind. */
void command_disk_drop(void);

#endif
