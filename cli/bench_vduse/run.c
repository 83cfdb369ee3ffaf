/* SPDX-License-Identifier: MIT */
/*
 * The measuring. Each run has a system, a disk and a driver of its own, so that
 * no count and no page is left from the one before. The driver's jobs are
 * threads of this process; whose the disk is, disk.h says.
 */
#include "run.h"

#include <string.h>
#include <time.h>

#include "abi/virtio.h"
#include "cli/bench/interrupt.h"
#include "cli/units.h"
#include "disk.h"
#include "dmamap/soft.h"
#include "watcher.h"

/* To answer a message of the driver's: who has not then is not waited for again. */
#define ANSWER_MS 5000

struct bench {
	struct vduse_report *report;
	struct complaint *complaint;
	struct bench_disk *disk;
	struct watcher watcher;
};

/* One run's. @failed: a request did. */
struct stage {
	struct dmamap_system *system;
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
	bool failed;
};

/* -------------------------------------------------------------------------- the stage */

/* With what the disk's side knows of it. Return: -1. */
static int add_said(const struct bench *bench)
{
	char text[DISK_TEXT];

	bench->disk->kind->said(bench->disk, text);
	complain_more(bench->complaint, "%s%s", text[0] ? "; " : "", text);
	return -1;
}

static int add_how(const struct bench *bench)
{
	char how[DISK_TEXT];

	if (!bench->disk->kind->alive(bench->disk, how))
		complain_more(bench->complaint, "; %s", how);
	return add_said(bench);
}

/* Whether the loads can be run on it. */
static int check_disk(
	const struct bench *bench, struct vduse_disk *disk, const struct dmamap_blk_info *info)
{
	const struct vduse_options *options = bench->report->options;
	uint64_t bytes = info->sectors * 512, needed = vduse_bytes_needed(options);
	char have[UNITS_TEXT], size[UNITS_TEXT];

	if (info->read_only && !options->reads)
		return complain(bench->complaint, "the disk is read-only; give --op read");
	if (options->size % info->block_size)
		return complain(bench->complaint,
			"--size %s: the disk's blocks are of %s; give a multiple of that",
			units_short(size, options->size), units_short(have, info->block_size));
	if (bytes < needed)
		return complain(bench->complaint,
			"the disk has %s, and the load takes at least %s; give a larger disk, or a "
			"smaller --load or --size",
			units_size(have, bytes), units_size(size, needed));
	disk->bytes = bytes;
	disk->queues = info->queues;
	disk->queue_size = info->queue_size;
	return 0;
}

static int set_stage(struct bench *bench, struct stage *stage, const struct vduse_row *row)
{
	const struct dmamap_vdpa_config config = {
		.page_shift = row->page_shift,
		.unit_shift = row->unit_shift,
		.bounce_size = bench->report->options->bounce,
		.timeout_ms = ANSWER_MS,
	};
	struct bench_disk *disk = bench->disk;
	struct dmamap_machine machine;
	struct dmamap_blk_info info;
	int error;

	dmamap_machine_default(&machine);
	/* A daemon's umem is more than most may lock. */
	machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
	if (dmamap_system_soft(&machine, &stage->system, NULL))
		return complain(bench->complaint, "out of memory");
	if (disk->kind->start(
		    disk, row->disk, stage->system, &config, &stage->vdpa, bench->complaint))
		return add_said(bench);
	error = dmamap_blk_probe(stage->vdpa, NULL, &stage->blk);
	if (error) {
		complain_call(bench->complaint, stage->system, error,
			"the driver does not take the disk");
		return add_how(bench);
	}
	dmamap_blk_info(stage->blk, &info);
	return check_disk(bench, row->disk, &info);
}

/* What went wrong before is the complaint; else what does here. */
static int clear_stage(struct bench *bench, struct stage *stage, int error)
{
	struct complaint other;

	dmamap_blk_remove(stage->blk);
	if (stage->vdpa)
		dmamap_vdpa_detach(stage->vdpa);
	if (stage->system && bench->disk->kind->stop(bench->disk, error || stage->failed,
				     error ? &other : bench->complaint))
		error = -1;
	dmamap_system_destroy(stage->system);
	return error;
}

/* ------------------------------------------------------------------------------ a run */

/* Header, status and table take a unit each; IOVAs of less than 32 units are of a power of two. */
static void measure_units(
	struct vduse_row *row, const struct vduse_options *options, const struct stage *stage)
{
	struct dmamap_bounce_info bounce;
	struct dmamap_blk_info disk;
	uint64_t data;

	dmamap_bounce_info(dmamap_vdpa_bounce(stage->vdpa, 0), &bounce);
	dmamap_blk_info(stage->blk, &disk);
	data = (options->size + bounce.unit_size - 1) / bounce.unit_size;
	while (data < 32 && data & (data - 1))
		data++;
	row->units = bounce.units;
	row->request_units = 2 + data + (disk.features >> VIRTIO_RING_F_INDIRECT_DESC & 1);
}

static uint64_t completed(const struct stage *stage)
{
	struct dmamap_blk_counters counters;

	dmamap_blk_counters(stage->blk, &counters);
	return counters.completed;
}

static int run_load(struct bench *bench, struct stage *stage, const struct vduse_row *row,
	const struct dmamap_blk_load *load, struct vduse_run *run)
{
	struct bench_disk *disk = bench->disk;
	uint64_t cpu_before, cpu_after, requests = completed(stage);
	bool broke, known = disk->kind->cpu_time(disk, &cpu_before);
	char text[VDUSE_ROW_TEXT];
	int error;

	watcher_begin(&bench->watcher, disk, stage->vdpa, stage->blk, row->request_units - 2);
	error = dmamap_blk_load(stage->blk, load, &run->result);
	broke = watcher_stop(&bench->watcher, &run->most_units);
	if (error) {
		complain_call(bench->complaint, stage->system, error, "the load cannot be run");
		return add_how(bench);
	}
	if (broke) {
		complain(bench->complaint, "the disk stopped answering (%s)",
			vduse_row_text(row, text));
		return add_how(bench);
	}
	if (known && disk->kind->cpu_time(disk, &cpu_after)) {
		run->cpu_requests = completed(stage) - requests;
		run->cpu_ns = cpu_after - cpu_before;
	}
	return 0;
}

/*
 * A read on each queue. A daemon makes itself ready with the first request
 * (vduse-blk takes the bounce buffer over): a command's time for it, in a
 * process of its own, is no part of the load's.
 */
static int warm_up(struct bench *bench, struct stage *stage, const struct vduse_row *row)
{
	struct dmamap_blk_load load = {
		.depth = 1, .reads = 100, .requests = 1, .stop = watcher_stopped};
	struct dmamap_blk_info info;
	struct vduse_run run;
	uint64_t blocks;

	if (!row->disk->command)
		return 0;
	dmamap_blk_info(stage->blk, &info);
	blocks = info.sectors * 512 / info.block_size;
	load.jobs = info.queues < blocks ? info.queues : (unsigned)blocks;
	return run_load(bench, stage, row, &load, &run);
}

static int measure(struct bench *bench, struct stage *stage, struct vduse_row *row, unsigned round)
{
	const struct vduse_options *options = bench->report->options;
	const struct dmamap_blk_load load = {
		.jobs = row->shape.jobs,
		.depth = row->shape.depth,
		.size = options->size,
		.reads = options->reads ? 100 : 0,
		.requests = options->requests,
		.milliseconds = options->seconds * 1000,
		.bytes = row->disk->bytes / options->size * options->size,
		.verify = options->verify,
		.seed = round + 1,
		.stop = watcher_stopped,
	};
	struct vduse_run run = {0};

	measure_units(row, options, stage);
	if (warm_up(bench, stage, row) || run_load(bench, stage, row, &load, &run))
		return -1;
	dmamap_blk_counters(stage->blk, &run.driver);
	dmamap_bounce_counters(dmamap_vdpa_bounce(stage->vdpa, 0), &run.bounce);
	if (run.result.nanoseconds)
		run.ops_milli = (uint64_t)((double)run.result.requests * 1e12 /
					   (double)run.result.nanoseconds);
	stage->failed = run.result.failed || run.result.mismatches;
	if (!interrupt_signal())
		vduse_row_add(row, &run);
	return 0;
}

static int run_row(struct bench *bench, struct vduse_row *row, unsigned round)
{
	struct stage stage = {0};
	int error = set_stage(bench, &stage, row);

	if (!error)
		error = measure(bench, &stage, row, round);
	return clear_stage(bench, &stage, error);
}

/* In every other round the second side comes first, so that neither always has the warmer
 * machine. */
static int run_rounds(struct bench *bench,
	void (*progress)(const struct vduse_row *row, unsigned done, unsigned total))
{
	struct vduse_report *report = bench->report;
	unsigned runs = report->options->runs;

	for (unsigned round = 0; round < runs; round++) {
		for (unsigned i = 0; i < report->n_rows; i++) {
			struct vduse_row *row = &report->rows[i ^ (round & 1)];
			int error;

			if (progress)
				progress(row, round * report->n_rows + i, runs * report->n_rows);
			error = run_row(bench, row, round);
			/* Whatever failed in it then. */
			if (interrupt_signal())
				return 0;
			if (error && row->disk->name[0])
				complain_more(
					bench->complaint, "; that was command %s", row->disk->name);
			if (error)
				return -1;
		}
	}
	return 0;
}

static double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int vduse_run_all(struct vduse_report *report, const struct vduse_listener *listener,
	struct complaint *complaint)
{
	struct bench bench = {.report = report, .complaint = complaint};
	double began = seconds_now();
	int error;

	interrupt_catch(command_disk_drop);
	error = watcher_start(&bench.watcher, complaint);
	if (!error)
		error = report->options->n_commands ? command_disk_make(&bench.disk, report,
							      listener->refused, complaint)
						    : own_disk_make(&bench.disk, report, complaint);
	if (!error)
		error = run_rounds(&bench, listener->progress);
	watcher_end(&bench.watcher);
	if (bench.disk)
		bench.disk->kind->free(bench.disk);
	report->signal = interrupt_signal();
	report->seconds = seconds_now() - began;
	return error;
}
