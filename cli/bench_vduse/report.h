/* SPDX-License-Identifier: MIT */
/*
 * What was measured, and what can be said about it. A row is a disk, a page
 * size, a bounce unit and a load; it has several runs, and is shown as the one
 * in the middle, times and counts of the same run. Rows come in pairs of two
 * sides, which are compared: native unit and 4K of one disk, or two disks.
 */
#ifndef BENCH_VDUSE_REPORT_H
#define BENCH_VDUSE_REPORT_H

#include <time.h>

#include "cli/bench/host.h"
#include "cli/bench/stats.h"
#include "dmamap/vdpa.h"
#include "options.h"

/**
 * struct vduse_disk - One that is measured, and how the driver found it last.
 * @command: that makes it; NULL: the built-in one
 * @name: "(1)" or "(2)" where there are two; else ""
 * @bytes, @queues, @queue_size: 0: the driver found none
 */
struct vduse_disk {
	char **command;
	const char *name;
	uint64_t bytes;
	unsigned queues;
	unsigned queue_size;
};

/**
 * struct vduse_run - One run of a row: what came of it, and what the layers counted.
 * @cpu_ns, @cpu_requests: what the disk had of the CPUs during the load, for so many
 *	requests, with those that verify; 0 requests: it is not known
 */
struct vduse_run {
	struct dmamap_blk_result result;
	struct dmamap_blk_counters driver;
	struct dmamap_bounce_counters bounce;
	uint64_t most_units; /**< in use at a time for certain, of what was seen */
	uint64_t ops_milli;  /**< requests in 1,000 seconds */
	uint64_t cpu_ns;
	uint64_t cpu_requests;
};

/**
 * struct vduse_row - @runs, @n: complete ones, by speed.
 * @side: its name in the pair: "native", "4K"; "(1)", "(2)"
 * @units: that the bounce buffer has; @request_units: that a request takes
 */
struct vduse_row {
	struct vduse_disk *disk;
	const char *side;
	unsigned page_shift;
	unsigned unit_shift;
	struct vduse_shape shape;
	uint64_t units;
	uint64_t request_units;
	struct vduse_run *runs;
	unsigned n;
};

#define VDUSE_PRINTED 2048

/**
 * struct vduse_report - @rows: the two sides in turn. @signal: ended early by it, or 0.
 * @printed: by a command, @printer, in the last run that failed: its last lines
 */
struct vduse_report {
	const struct vduse_options *options;
	struct host host;
	time_t started;
	double seconds;
	int signal;
	struct vduse_disk disks[VDUSE_DISKS];
	unsigned n_disks;
	bool direct; /**< past the page cache */
	const char *printer;
	char printed[VDUSE_PRINTED];
	struct vduse_row *rows;
	unsigned n_rows;
};

/** vduse_report_plan() - Make the rows. Return: 0; -1 with a complaint. */
int vduse_report_plan(struct vduse_report *report, const struct vduse_options *options,
	struct complaint *complaint);
void vduse_report_free(struct vduse_report *report);

/** vduse_bytes_needed() - Of the disk, for the largest load. */
uint64_t vduse_bytes_needed(const struct vduse_options *options);

/** vduse_note() - What the times mean; every output says so. */
const char *vduse_note(const struct vduse_report *report);

/** vduse_row_add() - Keep a complete run. There is room for all of them. */
void vduse_row_add(struct vduse_row *row, const struct vduse_run *run);
/** vduse_row_middle() - The run that stands for the row; NULL: there is none. */
const struct vduse_run *vduse_row_middle(const struct vduse_row *row);
/** vduse_row_granule() - "native" or "4K". */
const char *vduse_row_granule(const struct vduse_row *row);
/** vduse_row_text() - "16K pages, 4K units, 2x4", and the command where there are two. */
#define VDUSE_ROW_TEXT 64
char *vduse_row_text(const struct vduse_row *row, char text[VDUSE_ROW_TEXT]);
/** vduse_row_needed() - Units that all requests of the load take at a time, room or not. */
uint64_t vduse_row_needed(const struct vduse_row *row);
/** vduse_row_requests() - Requests that fit into the bounce buffer at a time, at most. */
uint64_t vduse_row_requests(const struct vduse_row *row);
/** vduse_row_failed() - Whether a request of any run failed or brought wrong bytes. */
bool vduse_row_failed(const struct vduse_row *row);

/** vduse_run_per_1000() - So many in 1,000 requests. */
double vduse_run_per_1000(const struct vduse_run *run, uint64_t count);
/** vduse_run_cpu() - Nanoseconds of CPU time a request; 0: not known. */
double vduse_run_cpu(const struct vduse_run *run);

/**
 * struct vduse_published - What Linux commit 3fc3068e7247 gives: 512-byte
 * writes, 64 KiB pages, arm64, QEMU's daemon.
 */
struct vduse_published {
	struct vduse_shape shape;
	unsigned native; /**< requests in a second */
	unsigned fixed;
	double mib_native;
	double mib_fixed;
	double gain; /**< percent, as printed there */
};

/** vduse_published() - For a pair of rows; NULL: there is nothing. */
const struct vduse_published *vduse_published(
	const struct vduse_report *report, const struct vduse_row *row);

/* Of the two sides of a pair, both of which have runs. */

/** vduse_gain() - By how many percent @second is faster than @first. */
double vduse_gain(const struct vduse_row *first, const struct vduse_row *second);
/** vduse_ratio() - IOPS of @first by those of @second; 0: there is none. */
double vduse_ratio(const struct vduse_row *first, const struct vduse_row *second);
/** vduse_cpu_ratio() - CPU time a request, in the same way. */
double vduse_cpu_ratio(const struct vduse_row *first, const struct vduse_row *second);
/** vduse_change() - Whether @second is the faster one; SAME: within the noise of the runs. */
enum stats_change vduse_change(const struct vduse_row *first, const struct vduse_row *second);
/** vduse_cpu_change() - Whether @second takes less CPU time, as FASTER. */
enum stats_change vduse_cpu_change(const struct vduse_row *first, const struct vduse_row *second);

/** vduse_explain() - One sentence about the difference, from the counts. */
#define VDUSE_SENTENCE 640
void vduse_explain(const struct vduse_row *first, const struct vduse_row *second,
	char sentence[VDUSE_SENTENCE]);

#endif
