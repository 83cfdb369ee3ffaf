/* SPDX-License-Identifier: MIT */
/*
 * The built-in disk: vduse-blk's own, whose queues are threads of this process.
 * Its image is made once, in memory or a file; each run makes a device of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/vduse_blk/device.h"
#include "cli/vduse_blk/guard.h"
#include "disk.h"

#define NAME	    "bench"
#define QUEUE_SIZE  256
#define POLL_NS	    32000 /* vduse-blk's */
#define DISK_LEAST  (64ull << 20)
#define PATIENCE_MS 3000

struct own_disk {
	struct bench_disk disk;
	struct image image;
	struct device *device;
	char said[DISK_TEXT];
};

/* ------------------------------------------------------------------------------ image */

static int open_memory(struct image *image, uint64_t bytes, struct complaint *complaint)
{
	char path[64];
	int fd = memfd_create("dmamap-bench", MFD_CLOEXEC), error;

	if (fd < 0)
		return complain(complaint, "no descriptor is left (%s)", strerror(errno));
	/* All of it now: no run pays for its pages. */
	error = posix_fallocate(fd, 0, (off_t)bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (error)
		error = complain(complaint,
			"no memory for the image (%s); give a --file, or a smaller --load",
			strerror(error));
	else
		error = image_open(image, path, 0, false, DIRECT_OFF, PATIENCE_MS, complaint);
	close(fd);
	return error;
}

/* Never one that is there. */
static int make_file(const char *path, uint64_t bytes, struct complaint *complaint)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600), error;

	if (fd < 0)
		return complain(complaint,
			"--file %s: cannot be made (%s); name a place where you may write", path,
			strerror(errno));
	error = posix_fallocate(fd, 0, (off_t)bytes);
	close(fd);
	if (!error)
		return 0;
	unlink(path);
	return complain(
		complaint, "--file %s: no room (%s); name another place", path, strerror(error));
}

static int open_file(struct image *image, const struct vduse_options *options, uint64_t bytes,
	struct complaint *complaint)
{
	struct stat stat;
	bool there = !lstat(options->file, &stat);
	int error;

	if (there && !options->reads)
		return complain(complaint,
			"--file %s: it is there, and would be overwritten; give a name that is "
			"free, or --op read",
			options->file);
	if (!there && make_file(options->file, bytes, complaint))
		return -1;
	error = image_open(image, options->file, 0, there, DIRECT_AUTO, PATIENCE_MS, complaint);
	/* Gone with the process, however that ends. */
	if (!there)
		unlink(options->file);
	return error;
}

/* ------------------------------------------------------------------------------ a run */

static void hear(void *who, const char *sentence)
{
	struct own_disk *own = who;

	snprintf(own->said, sizeof(own->said), "%s", sentence);
}

/* Nobody takes this disk over: its log has no name, once it is open. */
static int open_device(
	struct own_disk *own, struct dmamap_system *system, struct complaint *complaint)
{
	const struct vduse_options *options = own->disk.report->options;
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
		.who = own,
	};
	int error;

	snprintf(folder, sizeof(folder), "%s/dmamap-bench-XXXXXX",
		parent && parent[0] && strlen(parent) < 200 ? parent : "/tmp");
	if (!mkdtemp(folder))
		return complain(complaint,
			"%s cannot be made (%s); set TMPDIR to a folder where you may write",
			folder, strerror(errno));
	snprintf(log, sizeof(log), "%s/log", folder);
	error = device_open(&own->device, system, &settings, &own->image, complaint);
	unlink(log);
	rmdir(folder);
	return error ? error : device_run(own->device, complaint);
}

static int start(struct bench_disk *disk, const struct vduse_disk *which,
	struct dmamap_system *system, const struct dmamap_vdpa_config *config,
	struct dmamap_vdpa **vdpa, struct complaint *complaint)
{
	struct own_disk *own = (struct own_disk *)disk;
	int error;

	(void)which;
	own->said[0] = '\0';
	if (open_device(own, system, complaint))
		return -1;
	error = dmamap_vdpa_attach(system, NAME, config, vdpa);
	return error ? complain_call(complaint, system, error, "the disk cannot be attached") : 0;
}

static int stop(struct bench_disk *disk, bool failed, struct complaint *complaint)
{
	struct own_disk *own = (struct own_disk *)disk;

	(void)failed;
	(void)complaint;
	if (own->device)
		device_close(own->device);
	own->device = NULL;
	return 0;
}

static bool alive(struct bench_disk *disk, char how[DISK_TEXT])
{
	if (!device_broken(((struct own_disk *)disk)->device))
		return true;
	snprintf(how, DISK_TEXT, "the system gave it up");
	return false;
}

/* Its threads are the driver's process's. */
static bool cpu_time(struct bench_disk *disk, uint64_t *nanoseconds)
{
	(void)disk;
	(void)nanoseconds;
	return false;
}

static void said(struct bench_disk *disk, char text[DISK_TEXT])
{
	snprintf(text, DISK_TEXT, "%s", ((struct own_disk *)disk)->said);
}

static void free_own(struct bench_disk *disk)
{
	image_close(&((struct own_disk *)disk)->image);
	free(disk);
}

int own_disk_make(
	struct bench_disk **disk, struct vduse_report *report, struct complaint *complaint)
{
	static const struct bench_disk_kind kind = {start, stop, alive, cpu_time, said, free_own};
	const struct vduse_options *options = report->options;
	uint64_t bytes = vduse_bytes_needed(options);
	struct own_disk *own = calloc(1, sizeof(*own));
	int error;

	if (!own)
		return complain(complaint, "out of memory");
	own->disk = (struct bench_disk){&kind, report};
	bytes = bytes > DISK_LEAST ? bytes : DISK_LEAST;
	guard_install();
	error = options->file ? open_file(&own->image, options, bytes, complaint)
			      : open_memory(&own->image, bytes, complaint);
	if (error) {
		free(own);
		return -1;
	}
	report->direct = own->image.direct;
	*disk = &own->disk;
	return 0;
}
