/* SPDX-License-Identifier: MIT */
/*
 * The measuring. Each run has a system, a disk and a driver of its own, so that
 * no count and no page is left from the one before. The disk is vduse-blk's own,
 * its queues are threads of this process, and so are the driver's jobs.
 *
 * The bounce domain does not know how many units were in use at most; a watcher
 * looks, every few milliseconds, and takes what is certain of what it sees. It is also the one
 * thread that takes signals.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/virtio.h"
#include "cli/bench/interrupt.h"
#include "cli/units.h"
#include "cli/vduse_blk/device.h"
#include "cli/vduse_blk/guard.h"
#include "dmamap/soft.h"

#define NAME	    "bench"
#define QUEUE_SIZE  256
#define POLL_NS	    32000 /* vduse-blk's */
#define DISK_LEAST  (64ull << 20)
#define WATCH_NS    5000000
#define PATIENCE_MS 3000

/* @lock guards all but the thread. */
struct watcher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool started;
	bool ended;
	struct dmamap_bounce *bounce;
	uint64_t map_units; /* of the longest map */
	uint64_t most;
};

struct bench {
	struct vduse_report *report;
	struct complaint *complaint;
	struct image image;
	struct watcher watcher;
	char said[512];
};

/* One run's. */
struct stage {
	struct dmamap_system *system;
	struct device *device;
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
};

static bool stopped(void)
{
	return interrupt_signal();
}

/* ---------------------------------------------------------------------------- watcher */

static void signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(how, &set, NULL);
}

/*
 * Threads map and unmap while their counts are added up, so that the sum of
 * units can be too high: by the maps of that time, at most. Those are known
 * from counts before and after. Lock held.
 */
static void look(struct watcher *watcher)
{
	struct dmamap_bounce_counters before, during, after;
	uint64_t maps, unsure;

	if (!watcher->bounce)
		return;
	dmamap_bounce_counters(watcher->bounce, &before);
	dmamap_bounce_counters(watcher->bounce, &during);
	dmamap_bounce_counters(watcher->bounce, &after);
	maps = after.fast + after.slow - before.fast - before.slow;
	unsure = maps * watcher->map_units;
	if (during.live_units > unsure && during.live_units - unsure > watcher->most)
		watcher->most = during.live_units - unsure;
}

static void *watch(void *argument)
{
	struct watcher *watcher = argument;
	struct timespec until;

	signals(SIG_UNBLOCK);
	pthread_mutex_lock(&watcher->lock);
	while (!watcher->ended) {
		look(watcher);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WATCH_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&watcher->wake, &watcher->lock, &until);
	}
	pthread_mutex_unlock(&watcher->lock);
	return NULL;
}

static uint64_t watch_this(
	struct watcher *watcher, struct dmamap_bounce *bounce, uint64_t map_units)
{
	uint64_t most;

	pthread_mutex_lock(&watcher->lock);
	most = watcher->most;
	watcher->most = 0;
	watcher->bounce = bounce;
	watcher->map_units = map_units;
	pthread_mutex_unlock(&watcher->lock);
	return most;
}

static int watcher_start(struct bench *bench)
{
	struct watcher *watcher = &bench->watcher;
	int error;

	pthread_mutex_init(&watcher->lock, NULL);
	pthread_cond_init(&watcher->wake, NULL);
	error = pthread_create(&watcher->thread, NULL, watch, watcher);
	if (error)
		return complain(bench->complaint, "no thread can be made (%s)", strerror(error));
	watcher->started = true;
	return 0;
}

static void watcher_end(struct watcher *watcher)
{
	if (!watcher->started)
		return;
	pthread_mutex_lock(&watcher->lock);
	watcher->ended = true;
	pthread_cond_signal(&watcher->wake);
	pthread_mutex_unlock(&watcher->lock);
	pthread_join(watcher->thread, NULL);
}

/* ------------------------------------------------------------------------------ image */

static uint64_t disk_needed(const struct vduse_options *options)
{
	uint64_t needed = DISK_LEAST;

	for (unsigned i = 0; i < options->n_shapes; i++) {
		uint64_t bytes = (uint64_t)options->shapes[i].jobs * options->shapes[i].depth *
				 options->size;

		needed = bytes > needed ? bytes : needed;
	}
	return needed;
}

static int open_memory(struct bench *bench, uint64_t bytes)
{
	char path[64];
	int fd = memfd_create("dmamap-bench", MFD_CLOEXEC), error;

	if (fd < 0)
		return complain(bench->complaint, "no descriptor is left (%s)", strerror(errno));
	/* All of it now: no run pays for its pages. */
	error = posix_fallocate(fd, 0, (off_t)bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (error)
		error = complain(bench->complaint,
			"no memory for the image (%s); give a --file, or a smaller --load",
			strerror(error));
	else
		error = image_open(
			&bench->image, path, 0, false, DIRECT_OFF, PATIENCE_MS, bench->complaint);
	close(fd);
	return error;
}

/* Never one that is there. */
static int make_file(struct bench *bench, uint64_t bytes)
{
	const char *path = bench->report->options->file;
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600), error;

	if (fd < 0)
		return complain(bench->complaint,
			"--file %s: cannot be made (%s); name a place where you may write", path,
			strerror(errno));
	error = posix_fallocate(fd, 0, (off_t)bytes);
	close(fd);
	if (!error)
		return 0;
	unlink(path);
	return complain(bench->complaint, "--file %s: no room (%s); name another place", path,
		strerror(error));
}

static int open_file(struct bench *bench, uint64_t bytes)
{
	const struct vduse_options *options = bench->report->options;
	char have[UNITS_TEXT], needed[UNITS_TEXT];
	struct stat stat;
	bool there = !lstat(options->file, &stat);
	int error;

	if (there && !options->reads)
		return complain(bench->complaint,
			"--file %s: it is there, and would be overwritten; give a name that is "
			"free, or --op read",
			options->file);
	if (!there && make_file(bench, bytes))
		return -1;
	error = image_open(
		&bench->image, options->file, 0, there, DIRECT_AUTO, PATIENCE_MS, bench->complaint);
	/* Gone with the process, however that ends. */
	if (!there)
		unlink(options->file);
	if (error)
		return -1;
	if (options->size % bench->image.block)
		return complain(bench->complaint,
			"--file %s: its blocks are of %s there; give a --size that is a multiple",
			options->file, units_short(have, bench->image.block));
	if (bench->image.bytes < bytes)
		return complain(bench->complaint, "--file %s: has %s; the load takes at least %s",
			options->file, units_size(have, bench->image.bytes),
			units_size(needed, bytes));
	return 0;
}

static int open_image(struct bench *bench)
{
	struct vduse_report *report = bench->report;
	uint64_t bytes = disk_needed(report->options);
	int error = report->options->file ? open_file(bench, bytes) : open_memory(bench, bytes);

	report->disk_bytes = bench->image.bytes;
	report->direct = bench->image.direct;
	return error;
}

/* ------------------------------------------------------------------------------ a run */

static void hear(void *who, const char *sentence)
{
	struct bench *bench = who;

	snprintf(bench->said, sizeof(bench->said), "%s", sentence);
}

/* Nobody takes this disk over: its log has no name, once it is open. */
static int open_disk(struct bench *bench, struct stage *stage)
{
	const struct vduse_options *options = bench->report->options;
	const char *parent = getenv("TMPDIR");
	char folder[256], log[272];
	const struct device_settings settings = {
		.name = NAME,
		.log = log,
		.n_queues = options->queues,
		.queue_size = QUEUE_SIZE,
		.poll_ns = POLL_NS,
		.delay_ns = options->delay_ns,
		.patience_ms = PATIENCE_MS,
		.say = hear,
		.who = bench,
	};
	int error;

	snprintf(folder, sizeof(folder), "%s/dmamap-bench-XXXXXX",
		parent && parent[0] && strlen(parent) < 200 ? parent : "/tmp");
	if (!mkdtemp(folder))
		return complain(bench->complaint,
			"%s cannot be made (%s); set TMPDIR to a folder where you may write",
			folder, strerror(errno));
	snprintf(log, sizeof(log), "%s/log", folder);
	error = device_open(
		&stage->device, stage->system, &settings, &bench->image, bench->complaint);
	unlink(log);
	rmdir(folder);
	return error ? error : device_run(stage->device, bench->complaint);
}

/* What the system said of the call that failed. */
static int complain_call(
	struct bench *bench, const struct stage *stage, const char *what, int error)
{
	struct dmamap_reason why = {0};
	char text[512];

	if (stage->system->ops->reason(stage->system, &why))
		return complain(bench->complaint, "%s (%s)", what, strerror(-error));
	dmamap_reason_format(&why, text, sizeof(text));
	return complain(bench->complaint, "%s: %s%s%s", what, text, bench->said[0] ? "; " : "",
		bench->said);
}

static int set_stage(struct bench *bench, struct stage *stage, const struct vduse_row *row)
{
	const struct dmamap_vdpa_config config = {
		.page_shift = row->page_shift,
		.unit_shift = row->unit_shift,
		.bounce_size = bench->report->options->bounce,
	};
	int error;

	if (dmamap_system_soft(NULL, &stage->system, NULL))
		return complain(bench->complaint, "out of memory");
	if (open_disk(bench, stage))
		return -1;
	error = dmamap_vdpa_attach(stage->system, NAME, &config, &stage->vdpa);
	if (error)
		return complain_call(bench, stage, "the disk cannot be attached", error);
	error = dmamap_blk_probe(stage->vdpa, NULL, &stage->blk);
	if (error)
		return complain_call(bench, stage, "the driver does not take the disk", error);
	return 0;
}

static void clear_stage(struct stage *stage)
{
	dmamap_blk_remove(stage->blk);
	if (stage->vdpa)
		dmamap_vdpa_detach(stage->vdpa);
	if (stage->device)
		device_close(stage->device);
	dmamap_system_destroy(stage->system);
}

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

static int measure(struct bench *bench, struct stage *stage, struct vduse_row *row, unsigned round)
{
	const struct vduse_options *options = bench->report->options;
	struct dmamap_bounce *bounce = dmamap_vdpa_bounce(stage->vdpa, 0);
	const struct dmamap_blk_load load = {
		.jobs = row->shape.jobs,
		.depth = row->shape.depth,
		.size = options->size,
		.reads = options->reads ? 100 : 0,
		.requests = options->requests,
		.milliseconds = options->seconds * 1000,
		.bytes = bench->image.bytes / options->size * options->size,
		.verify = options->verify,
		.seed = round + 1,
		.stop = stopped,
	};
	struct vduse_run run = {0};
	int error;

	measure_units(row, options, stage);
	watch_this(&bench->watcher, bounce, row->request_units - 2);
	error = dmamap_blk_load(stage->blk, &load, &run.result);
	run.most_units = watch_this(&bench->watcher, NULL, 0);
	if (error)
		return complain_call(bench, stage, "the load cannot be run", error);
	dmamap_blk_counters(stage->blk, &run.driver);
	dmamap_bounce_counters(bounce, &run.bounce);
	if (run.result.nanoseconds)
		run.ops_milli = (uint64_t)((double)run.result.requests * 1e12 /
					   (double)run.result.nanoseconds);
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
	clear_stage(&stage);
	return error;
}

/* In every other round 4K comes before native, so that neither always has the warmer machine. */
static int run_rounds(struct bench *bench,
	void (*progress)(const struct vduse_row *row, unsigned done, unsigned total))
{
	struct vduse_report *report = bench->report;
	unsigned runs = report->options->runs;

	for (unsigned round = 0; round < runs; round++) {
		for (unsigned i = 0; i < report->n_rows; i++) {
			struct vduse_row *row = &report->rows[i ^ (round & 1)];

			if (interrupt_signal())
				return 0;
			if (progress)
				progress(row, round * report->n_rows + i, runs * report->n_rows);
			if (run_row(bench, row, round))
				return -1;
		}
	}
	return 0;
}

static double seconds_now(void)
{
	return (double)queue_now() / 1e9;
}

int vduse_run_all(struct vduse_report *report,
	void (*progress)(const struct vduse_row *row, unsigned done, unsigned total),
	struct complaint *complaint)
{
	struct bench bench = {.report = report, .complaint = complaint, .image.fd = -1};
	double began = seconds_now();
	int error = -1;

	guard_install();
	interrupt_catch();
	/* All threads but the watcher take them so. */
	signals(SIG_BLOCK);
	if (!watcher_start(&bench) && !open_image(&bench))
		error = run_rounds(&bench, progress);
	watcher_end(&bench.watcher);
	signals(SIG_UNBLOCK);
	image_close(&bench.image);
	report->signal = interrupt_signal();
	report->seconds = seconds_now() - began;
	return error;
}
