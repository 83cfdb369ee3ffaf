/* SPDX-License-Identifier: MIT */
/* The file of the queues' logs. Memory of a file outlives a killed process as it is. */
#include "inflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dmamap/virtqueue.h"

#define HEADER_BYTES 4096u
#define MAGIC	     "dmamap vduse-blk"
#define VERSION	     2u

/* Compared as a whole, so it has no holes. */
struct header {
	char magic[24];
	char boot[40];
	char name[256];
	uint64_t device;
	uint64_t inode;
	uint64_t image_bytes;
	uint32_t version;
	uint32_t n_queues;
	uint32_t size;
	uint32_t packed;
	uint32_t block;
	uint32_t reserved;
};

static void read_boot(char boot[40])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, boot, 36) != 36)
		memset(boot, 0, 40);
	close(fd);
}

static void fill(struct header *header, const struct inflight_config *config)
{
	*header = (struct header){
		.magic = MAGIC,
		.device = config->image->device,
		.inode = config->image->inode,
		.image_bytes = config->image->bytes,
		.version = VERSION,
		.n_queues = config->n_queues,
		.size = config->size,
		.packed = config->packed,
		.block = config->image->block,
	};
	snprintf(header->name, sizeof(header->name), "%s", config->name);
	read_boot(header->boot);
}

static int choose_path(
	struct inflight *log, const struct inflight_config *config, struct complaint *complaint)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	int n;

	if (!access("/run", W_OK))
		folder = "/run";
	else if (!folder || !*folder)
		folder = "/tmp";
	n = config->path
		    ? snprintf(log->path, PATH_MAX, "%s", config->path)
		    : snprintf(log->path, PATH_MAX, "%s/dmamap-vduse-%s.log", folder, config->name);
	return n < PATH_MAX ? 0
			    : complain(complaint,
				      "the log's path has %d characters: too many; "
				      "name another with --log",
				      n);
}

static int open_file(struct inflight *log, struct complaint *complaint)
{
	struct stat stat;

	/* The name can be guessed: a link, or another user's file, is not followed. */
	log->fd = open(log->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (log->fd < 0)
		return complain(complaint,
			"%s: the log cannot be opened (%s); name another with --log", log->path,
			strerror(errno));
	if (fstat(log->fd, &stat) || !S_ISREG(stat.st_mode) || stat.st_uid != geteuid())
		return complain(complaint,
			"%s: is no file of this user's; name another log with --log", log->path);
	if (flock(log->fd, LOCK_EX | LOCK_NB))
		return complain(complaint,
			"%s: another process uses this file; name another log with --log",
			log->path);
	return 0;
}

/*
 * Whether the file may be a log, and is this disk's. What is no log, or that of a
 * disk that may still be waited for, is not written to.
 */
static int look(struct inflight *log, const struct header *wanted, struct complaint *complaint)
{
	struct header found = {0};
	ssize_t n = pread(log->fd, &found, sizeof(found), 0);

	log->empty = !n;
	if (!n)
		return 0;
	if (n != sizeof(found) || memcmp(found.magic, wanted->magic, sizeof(found.magic)))
		return complain(complaint,
			"%s: is there, and is no log of vduse-blk; name another with --log",
			log->path);
	/* Of before the machine was started: nothing of that is left. */
	if (memcmp(found.boot, wanted->boot, sizeof(found.boot)))
		return 0;
	found.name[sizeof(found.name) - 1] = '\0';
	if (strcmp(found.name, wanted->name))
		return complain(complaint,
			"%s: is the log of %s, which did not end; name another with --log, or "
			"remove this one if that disk is gone",
			log->path, found.name);
	log->kept = !memcmp(&found, wanted, sizeof(found));
	return 0;
}

/* Its blocks are there from the start, so that taking a request cannot find the disk full:
 * but for the end of a packed queue's, which long chains alone need. */
static int make_room(struct inflight *log, const struct inflight_config *config)
{
	uint64_t bytes = dmamap_virtqueue_log_dense(config->size, config->packed);
	int error = 0;

	if (ftruncate(log->fd, (off_t)log->bytes))
		return -errno;
	for (unsigned i = 0; i < config->n_queues && !error; i++)
		error = -posix_fallocate(
			log->fd, (off_t)(HEADER_BYTES + log->stride * i), (off_t)bytes);
	return error;
}

/* The header comes first, for by it the file is known to be a log. */
static int start_anew(const struct inflight *log, const struct header *header)
{
	if (ftruncate(log->fd, 0))
		return -errno;
	if (pwrite(log->fd, header, sizeof(*header), 0) != sizeof(*header))
		return errno ? -errno : -ENOSPC;
	return 0;
}

int inflight_open(
	struct inflight *log, const struct inflight_config *config, struct complaint *complaint)
{
	struct header header;
	uint64_t stride = dmamap_virtqueue_log_size(config->size, config->packed);
	int error = 0;

	*log = (struct inflight){.fd = -1};
	fill(&header, config);
	if (choose_path(log, config, complaint) || open_file(log, complaint) ||
		look(log, &header, complaint))
		goto close;
	log->stride = (size_t)((stride + 63) & ~(uint64_t)63);
	log->bytes = HEADER_BYTES + log->stride * config->n_queues;
	log->kept &= config->keep;
	if (config->must && !log->kept) {
		complain(complaint,
			"a driver is attached to %s, and %s is not the log of what was in flight: "
			"give the same image, --log and other options as before, or run vdpa dev "
			"del %s",
			config->name, log->path, config->name);
		goto close;
	}
	if (!log->kept)
		error = start_anew(log, &header);
	if (!error)
		error = make_room(log, config);
	if (error) {
		complain(complaint, "%s: no room for the log (%s); name another with --log",
			log->path, strerror(-error));
		goto close;
	}
	log->memory = mmap(NULL, log->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, log->fd, 0);
	if (log->memory == MAP_FAILED) {
		log->memory = NULL;
		complain(
			complaint, "%s: the log cannot be mapped (%s)", log->path, strerror(errno));
		goto close;
	}
	return 0;

close:
	inflight_close(log, log->empty);
	return -1;
}

void *inflight_queue(const struct inflight *log, unsigned index)
{
	return log->memory + HEADER_BYTES + log->stride * index;
}

void inflight_close(struct inflight *log, bool remove)
{
	if (log->memory)
		munmap(log->memory, log->bytes);
	if (remove && log->fd >= 0)
		unlink(log->path);
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
	log->memory = NULL;
}
