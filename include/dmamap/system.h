/* SPDX-License-Identifier: MIT */
/*
 * A system answers the kernel's own interface: the files below /dev/vfio and
 * /dev/vduse, /dev/iommu, and the sysfs files that lead to them. There are two: Linux
 * passes each call on, the soft system answers it in this process. Whoever
 * calls through here need not know which one it is.
 *
 * Threads: any call from any thread. Errors: what the kernel would set in
 * errno comes back as -errno; the calls never print or exit.
 */
#ifndef DMAMAP_SYSTEM_H
#define DMAMAP_SYSTEM_H

#include <sys/types.h>

#include "common.h"
#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dmamap_system;

/**
 * struct dmamap_system_ops - What a system does. Arguments and results are
 * those of the system call of the same name, but for -errno instead of -1.
 * @name: "linux" or "soft"
 * @note: what its times mean, one clause for output ("the engine's own work,
 *	no IOMMU is programmed and no page is pinned"), or NULL: nothing to add
 * @open: @flags as open(2); O_CLOEXEC is always added. The descriptor is a
 *	real one of this process on either system, to be closed with @close
 * @mmap: like mmap(2), the address through @out
 * @readlink: the target, cut to @size and NUL-terminated; returns its length
 * @list: the @index-th name in a directory, in a stable order: its length, or
 *	-ENOENT past the end
 * @counters: the work done so far by everything in the system; -EOPNOTSUPP
 *	where nobody counts
 * @reason: why the calling thread's last failed call was refused; -ENOENT
 *	where nobody knows
 * @destroy: close what is open and free it
 */
struct dmamap_system_ops {
	const char *name;
	const char *note;
	int (*open)(struct dmamap_system *system, const char *path, int flags);
	int (*close)(struct dmamap_system *system, int fd);
	int (*ioctl)(struct dmamap_system *system, int fd, unsigned long request, void *argument);
	ssize_t (*read)(struct dmamap_system *system, int fd, void *buffer, size_t size);
	ssize_t (*write)(struct dmamap_system *system, int fd, const void *buffer, size_t size);
	ssize_t (*pread)(
		struct dmamap_system *system, int fd, void *buffer, size_t size, uint64_t offset);
	ssize_t (*pwrite)(struct dmamap_system *system, int fd, const void *buffer, size_t size,
		uint64_t offset);
	int (*mmap)(struct dmamap_system *system, void *address, size_t length, int prot, int flags,
		int fd, uint64_t offset, void **out);
	int (*munmap)(struct dmamap_system *system, void *address, size_t length);
	ssize_t (*readlink)(
		struct dmamap_system *system, const char *path, char *buffer, size_t size);
	ssize_t (*list)(struct dmamap_system *system, const char *path, unsigned index, char *name,
		size_t size);
	int (*counters)(struct dmamap_system *system, struct dmamap_counters *counters);
	int (*reason)(struct dmamap_system *system, struct dmamap_reason *reason);
	void (*destroy)(struct dmamap_system *system);
};

/** struct dmamap_system - A system embeds this as its first member. */
struct dmamap_system {
	const struct dmamap_system_ops *ops;
};

/**
 * dmamap_system_linux() - The running kernel, by plain system calls.
 *
 * Return: 0 and *@system, to be destroyed by its @destroy; -ENOMEM.
 */
DMAMAP_API int dmamap_system_linux(struct dmamap_system **system);

/** dmamap_system_destroy() - Destroy either kind. NULL is fine. */
DMAMAP_API void dmamap_system_destroy(struct dmamap_system *system);

#ifdef __cplusplus
}
#endif

#endif
