/* SPDX-License-Identifier: MIT */
/*
 * The Linux system: each operation is the system call of the same name, with
 * -errno for its result. It keeps no state, so that calls from any thread are
 * as independent as the kernel makes them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmamap/system.h"

static int linux_open(struct dmamap_system *system, const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	(void)system;
	return fd < 0 ? -errno : fd;
}

static int linux_close(struct dmamap_system *system, int fd)
{
	(void)system;
	return close(fd) ? -errno : 0;
}

static int linux_ioctl(struct dmamap_system *system, int fd, unsigned long request, void *argument)
{
	int result = ioctl(fd, request, argument);

	(void)system;
	return result < 0 ? -errno : result;
}

static ssize_t linux_read(struct dmamap_system *system, int fd, void *buffer, size_t size)
{
	ssize_t n = read(fd, buffer, size);

	(void)system;
	return n < 0 ? -errno : n;
}

static ssize_t linux_write(struct dmamap_system *system, int fd, const void *buffer, size_t size)
{
	ssize_t n = write(fd, buffer, size);

	(void)system;
	return n < 0 ? -errno : n;
}

static ssize_t linux_pread(
	struct dmamap_system *system, int fd, void *buffer, size_t size, uint64_t offset)
{
	ssize_t n = pread(fd, buffer, size, (off_t)offset);

	(void)system;
	return n < 0 ? -errno : n;
}

static ssize_t linux_pwrite(
	struct dmamap_system *system, int fd, const void *buffer, size_t size, uint64_t offset)
{
	ssize_t n = pwrite(fd, buffer, size, (off_t)offset);

	(void)system;
	return n < 0 ? -errno : n;
}

static int linux_mmap(struct dmamap_system *system, void *address, size_t length, int prot,
	int flags, int fd, uint64_t offset, void **out)
{
	void *va = mmap(address, length, prot, flags, fd, (off_t)offset);

	(void)system;
	if (va == MAP_FAILED)
		return -errno;
	*out = va;
	return 0;
}

static int linux_munmap(struct dmamap_system *system, void *address, size_t length)
{
	(void)system;
	return munmap(address, length) ? -errno : 0;
}

static ssize_t linux_readlink(
	struct dmamap_system *system, const char *path, char *buffer, size_t size)
{
	ssize_t n;

	(void)system;
	if (!size)
		return -EINVAL;
	n = readlink(path, buffer, size - 1);
	if (n < 0)
		return -errno;
	buffer[n] = '\0';
	return n;
}

static int shown(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

/* By bytes, not by locale: the same order whoever runs it. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static ssize_t linux_list(
	struct dmamap_system *system, const char *path, unsigned index, char *name, size_t size)
{
	struct dirent **entries;
	ssize_t result = -ENOENT;
	int n = scandir(path, &entries, shown, by_name);

	(void)system;
	if (n < 0)
		return -errno;
	if (index < (unsigned)n) {
		size_t length = strlen(entries[index]->d_name);

		if (length < size) {
			memcpy(name, entries[index]->d_name, length + 1);
			result = (ssize_t)length;
		} else {
			result = -ENAMETOOLONG;
		}
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return result;
}

static int linux_counters(struct dmamap_system *system, struct dmamap_counters *counters)
{
	(void)system;
	(void)counters;
	return -EOPNOTSUPP;
}

static int linux_reason(struct dmamap_system *system, struct dmamap_reason *reason)
{
	(void)system;
	(void)reason;
	return -ENOENT;
}

static void linux_destroy(struct dmamap_system *system)
{
	free(system);
}

static const struct dmamap_system_ops linux_ops = {
	.name = "linux",
	.open = linux_open,
	.close = linux_close,
	.ioctl = linux_ioctl,
	.read = linux_read,
	.write = linux_write,
	.pread = linux_pread,
	.pwrite = linux_pwrite,
	.mmap = linux_mmap,
	.munmap = linux_munmap,
	.readlink = linux_readlink,
	.list = linux_list,
	.counters = linux_counters,
	.reason = linux_reason,
	.destroy = linux_destroy,
};

int dmamap_system_linux(struct dmamap_system **system)
{
	*system = malloc(sizeof(**system));
	if (!*system)
		return -ENOMEM;
	(*system)->ops = &linux_ops;
	return 0;
}
