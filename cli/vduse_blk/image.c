/* SPDX-License-Identifier: MIT */
/*
 * Opening the image: making it, locking it, and finding out what it can do
 * without changing it.
 */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "cli/units.h"
#include "request.h"

#define RETRY_MS 20u
/* Alignments that a driver or file system may ask for. */
#define ALIGN_LEAST 512u
#define ALIGN_MOST  65536u

/* statx's answer about O_DIRECT, which older headers do not have (Linux 6.1). */
#define STATX_DIRECT		  0x2000u
#define STATX_DIRECT_MEMORY_ALIGN 152
#define STATX_DIRECT_OFFSET_ALIGN 156

/*
 * What is neither a file nor a disk is not even opened: that of a FIFO waits for
 * whoever writes to it. One that is not there yet is made, empty.
 */
static int open_file(
	struct image *image, const char *path, uint64_t size, struct complaint *complaint)
{
	int flags = (image->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
	struct stat status;

	if (!stat(path, &status)) {
		if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
			return complain(
				complaint, "%s: is neither a file nor a block device", path);
		image->fd = open(path, flags);
	} else if (errno == ENOENT && size) {
		image->fd = open(path, flags | O_CREAT | O_EXCL, 0600);
		image->made = image->fd >= 0;
		if (image->fd < 0)
			return complain(complaint, "%s: cannot be made (%s)", path,
				errno == ENOENT ? "its folder is not there" : strerror(errno));
	}
	if (image->fd >= 0)
		return 0;
	if (errno == ENOENT)
		return complain(complaint, "%s: there is no such file; --size SIZE makes it", path);
	return complain(complaint, "%s: cannot be opened (%s)%s", path, strerror(errno),
		!image->read_only && (errno == EROFS || errno == EACCES || errno == EPERM)
			? "; --read-only may do"
			: "");
}

/*
 * Give an empty file its size: its blocks are there from the start, as a disk does
 * not run out of room, and the size comes last, so that a file is whole or empty.
 */
static int fill(struct image *image, const char *path, uint64_t size, struct complaint *complaint)
{
	char text[UNITS_TEXT];
	struct stat status;
	int error;

	if (!size || fstat(image->fd, &status) || !S_ISREG(status.st_mode) || status.st_size)
		return 0;
	do
		error = fallocate(image->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) ? errno : 0;
	while (error == EINTR);
	if (error == EOPNOTSUPP || error == ENOSYS)
		error = 0;
	if (!error && ftruncate(image->fd, (off_t)size))
		error = errno;
	if (!error)
		return 0;
	if (image->made)
		unlink(path);
	else if (ftruncate(image->fd, 0))
		error = errno;
	return complain(complaint, "%s: no room for %s here (%s); give a smaller --size", path,
		units_size(text, size), strerror(error));
}

static int lock(const struct image *image, const char *path, unsigned patience_ms,
	struct complaint *complaint)
{
	struct timespec pause = {.tv_nsec = RETRY_MS * 1000000l};
	unsigned waited = 0;

	while (flock(image->fd, (image->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return complain(
				complaint, "%s: cannot be locked (%s)", path, strerror(errno));
		if (waited >= patience_ms)
			return complain(complaint,
				"%s: another process uses this image; end that one first", path);
		nanosleep(&pause, NULL);
		waited += RETRY_MS;
	}
	return 0;
}

static int measure(
	struct image *image, const char *path, uint64_t size, struct complaint *complaint)
{
	char is[UNITS_TEXT], wanted[UNITS_TEXT];
	struct stat stat;

	if (fstat(image->fd, &stat))
		return complain(complaint, "%s: cannot be looked at (%s)", path, strerror(errno));
	image->device = stat.st_dev;
	image->inode = stat.st_ino;
	image->block = SECTOR;
	image->physical = 4096;
	if (S_ISBLK(stat.st_mode)) {
		int logical = 0;
		unsigned physical = 0;

		if (ioctl(image->fd, BLKGETSIZE64, &image->bytes))
			return complain(complaint, "%s: has no size (%s)", path, strerror(errno));
		image->device = stat.st_rdev;
		if (!ioctl(image->fd, BLKSSZGET, &logical) && logical >= (int)SECTOR)
			image->block = (uint32_t)logical;
		if (!ioctl(image->fd, BLKPBSZGET, &physical) && physical >= SECTOR)
			image->physical = physical;
	} else if (S_ISREG(stat.st_mode)) {
		image->bytes = (uint64_t)stat.st_size;
	} else {
		return complain(complaint, "%s: is neither a file nor a block device", path);
	}
	if (size && size != image->bytes)
		return complain(complaint,
			"%s: is there and has %s, not the %s of --size; leave --size out", path,
			units_size(is, image->bytes), units_size(wanted, size));
	if (!image->bytes)
		return complain(complaint,
			"%s: is empty; --size SIZE gives it one, with all its blocks", path);
	if (image->bytes % SECTOR)
		return complain(complaint,
			"%s: its %llu bytes are no number of 512-byte sectors; make it so with "
			"truncate -s %%512",
			path, (unsigned long long)image->bytes);
	return 0;
}

/* --------------------------------------------------------------------- O_DIRECT */

/*
 * Whether the kernel starts a transfer without waiting for it. A file system
 * that does not know how says so before it looks at the memory, which is one
 * that nothing can be read from or written to.
 */
static bool starts(const struct image *image, bool write)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *nowhere = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec part = {nowhere, image->block};
	ssize_t n;

	if (nowhere == MAP_FAILED)
		return true;
	n = write ? pwritev2(image->fd, &part, 1, 0, RWF_NOWAIT)
		  : preadv2(image->fd, &part, 1, 0, RWF_NOWAIT);
	n = n < 0 ? -errno : n;
	munmap(nowhere, page);
	return n != -EOPNOTSUPP;
}

/* The least alignment with which a read goes through. */
static uint32_t try_alignment(int fd, uint64_t bytes)
{
	void *memory;
	uint32_t align;

	if (posix_memalign(&memory, ALIGN_MOST, ALIGN_MOST))
		return 0;
	for (align = ALIGN_LEAST; align <= ALIGN_MOST; align *= 2) {
		uint64_t offset = bytes > align ? align : 0;

		if (pread(fd, memory, align, (off_t)offset) > 0)
			break;
	}
	free(memory);
	return align <= ALIGN_MOST ? align : 0;
}

static uint32_t word_at(const struct statx *statx_result, size_t offset)
{
	uint32_t word;

	memcpy(&word, (const char *)statx_result + offset, sizeof(word));
	return word;
}

/* Whether O_DIRECT works, and with what alignment. */
static bool try_direct(struct image *image)
{
	int flags = fcntl(image->fd, F_GETFL);
	uint32_t memory = 0, offset = 0;
	struct statx result = {0};

	if (flags < 0 || fcntl(image->fd, F_SETFL, flags | O_DIRECT))
		return false;
	if (!statx(image->fd, "", AT_EMPTY_PATH, STATX_DIRECT, &result) &&
		result.stx_mask & STATX_DIRECT) {
		memory = word_at(&result, STATX_DIRECT_MEMORY_ALIGN);
		offset = word_at(&result, STATX_DIRECT_OFFSET_ALIGN);
	} else {
		memory = offset = try_alignment(image->fd, image->bytes);
	}
	if (!memory || !offset || memory & (memory - 1) || offset & (offset - 1) ||
		offset > ALIGN_MOST || memory > ALIGN_MOST || image->bytes % offset) {
		fcntl(image->fd, F_SETFL, flags);
		return false;
	}
	image->direct = true;
	image->memory_align = memory;
	if (offset > image->block)
		image->block = offset;
	return true;
}

static int choose_direct(struct image *image, const char *path, enum image_direct direct,
	struct complaint *complaint)
{
	image->memory_align = 1;
	if (direct == DIRECT_OFF) {
		image->block = SECTOR;
		return 0;
	}
	if (!try_direct(image) && direct == DIRECT_ON)
		return complain(complaint,
			"%s: O_DIRECT is nothing for its file system, or for its %llu bytes; leave "
			"--direct on out",
			path, (unsigned long long)image->bytes);
	/* One that only pretends, such as tmpfs, has no use for it. */
	if (image->direct && direct == DIRECT_AUTO && !starts(image, false)) {
		fcntl(image->fd, F_SETFL, fcntl(image->fd, F_GETFL) & ~O_DIRECT);
		image->direct = false;
		image->memory_align = 1;
	}
	if (!image->direct)
		image->block = SECTOR;
	return 0;
}

/* ------------------------------------------------------------------- abilities */

/* Behind the end, so that nothing is changed; block devices say so when asked in earnest. */
static bool can(const struct image *image, int mode)
{
	struct stat stat;

	if (image->read_only)
		return false;
	if (!fstat(image->fd, &stat) && S_ISBLK(stat.st_mode))
		return true;
	return !fallocate(image->fd, mode | FALLOC_FL_KEEP_SIZE,
		(off_t)((image->bytes + 65535) / 65536 * 65536), 65536);
}

int image_open(struct image *image, const char *path, uint64_t size, bool read_only,
	enum image_direct direct, unsigned patience_ms, struct complaint *complaint)
{
	*image = (struct image){.fd = -1, .read_only = read_only};
	if (open_file(image, path, size, complaint) || lock(image, path, patience_ms, complaint) ||
		fill(image, path, size, complaint) || measure(image, path, size, complaint) ||
		choose_direct(image, path, direct, complaint)) {
		image_close(image);
		return -1;
	}
	image->discards = can(image, FALLOC_FL_PUNCH_HOLE);
	/* What cannot be zeroed by range is written as zeroes. */
	image->zeroes = can(image, FALLOC_FL_ZERO_RANGE);
	image->reads_wait = !image->direct && !starts(image, false);
	image->writes_wait = !image->direct && !image->read_only && !starts(image, true);
	return 0;
}

void image_close(struct image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	image->fd = -1;
}
