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
#define MAGIC	     "dmamap vduse-blk 1"

/* Compared as a whole, so it has no holes. */
struct header {
	char magic[24];
	char boot[40];
	uint64_t device;
	uint64_t inode;
	uint64_t image_bytes;
	uint32_t n_queues;
	uint32_t size;
	uint64_t packed;
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

static void fill(struct header *header, const struct image *image, unsigned n_queues, uint32_t size,
	bool packed)
{
	*header = (struct header){
		.magic = MAGIC,
		.device = image->device,
		.inode = image->inode,
		.image_bytes = image->bytes,
		.n_queues = n_queues,
		.size = size,
		.packed = packed,
	};
	read_boot(header->boot);
}

static void usual_path(char path[PATH_MAX], const char *name)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");

	if (!access("/run", W_OK))
		folder = "/run";
	else if (!folder)
		folder = "/tmp";
	snprintf(path, PATH_MAX, "%s/dmamap-vduse-%s.log", folder, name);
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
			"%s: another process uses this log; name another with --log", log->path);
	return 0;
}

int inflight_open(struct inflight *log, const char *path, const char *name,
	const struct image *image, unsigned n_queues, uint32_t size, bool packed, bool keep,
	bool must, struct complaint *complaint)
{
	struct header header, found = {0};
	uint64_t stride = dmamap_virtqueue_log_size(size, packed);

	*log = (struct inflight){.fd = -1};
	if (path)
		snprintf(log->path, sizeof(log->path), "%s", path);
	else
		usual_path(log->path, name);
	if (open_file(log, complaint))
		goto close;
	fill(&header, image, n_queues, size, packed);
	log->stride = (size_t)((stride + 63) & ~(uint64_t)63);
	log->bytes = HEADER_BYTES + log->stride * n_queues;
	log->kept = keep && pread(log->fd, &found, sizeof(found), 0) == sizeof(found) &&
		    !memcmp(&found, &header, sizeof(header));
	if (must && !log->kept) {
		complain(complaint,
			"a driver is attached to %s, and %s is not the log of what was in flight: "
			"give the same image and --log as before, or run vdpa dev del %s",
			name, log->path, name);
		goto close;
	}
	/* Much of a packed ring's log stays a hole; the rest must not find the disk full. */
	if (!log->kept && (ftruncate(log->fd, 0) || ftruncate(log->fd, (off_t)log->bytes) ||
				  (!packed && posix_fallocate(log->fd, 0, (off_t)log->bytes)))) {
		complain(complaint, "%s: no room for the log (%s); name another with --log",
			log->path, strerror(errno ? errno : ENOSPC));
		goto close;
	}
	log->memory = mmap(NULL, log->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, log->fd, 0);
	if (log->memory == MAP_FAILED) {
		log->memory = NULL;
		complain(
			complaint, "%s: the log cannot be mapped (%s)", log->path, strerror(errno));
		goto close;
	}
	if (!log->kept)
		memcpy(log->memory, &header, sizeof(header));
	return 0;

close:
	inflight_close(log, false);
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
