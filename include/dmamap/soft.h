/* SPDX-License-Identifier: MIT */
/*
 * The soft system: /dev/vfio/vfio, groups, device cdevs, /dev/iommu and the
 * sysfs that leads to them, answered in this process as Linux 7.3 answers
 * them. A machine says what the answers are about: page size, aperture,
 * reserved windows, devices, limits.
 */
#ifndef DMAMAP_SOFT_H
#define DMAMAP_SOFT_H

#include "machine.h"
#include "system.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * dmamap_system_soft() - A soft system for @machine (NULL: the default).
 *
 * Return: 0; -EINVAL a machine that cannot be, @why says what; -ENOMEM, or
 * what memfd_create and mmap give for the BARs.
 */
DMAMAP_API int dmamap_system_soft(const struct dmamap_machine *machine,
	struct dmamap_system **system, struct dmamap_reason *why);

/**
 * dmamap_soft_declare() - Take a range of this process's memory, and the file
 * behind it, as if it were present and made of pages of one size. For shapes
 * that the machine at hand cannot back, such as 32 GiB of 1 GiB pages: mapping
 * them works and counts as it would, nothing is populated.
 * @address, @length: the range; multiples of the page size declared
 * @fd: the file that is mapped there, for IOMMU_IOAS_MAP_FILE; -1: none
 * @page_shift: log2 of the page size
 *
 * Return: 0; -EINVAL misaligned, or @system is no soft one; -ENOMEM.
 */
DMAMAP_API int dmamap_soft_declare(
	struct dmamap_system *system, void *address, uint64_t length, int fd, unsigned page_shift);
/** dmamap_soft_undeclare() - Forget the declaration that starts at @address. */
DMAMAP_API void dmamap_soft_undeclare(struct dmamap_system *system, void *address);

/** dmamap_soft_process() - From now on the calling thread's calls on @system
 * are made by process @process: what it maps is charged to that one. Every
 * thread starts as process 0. Memory stays this process's, and so do limits
 * and capabilities: a shared mapping is what a second process would see.
 *
 * Return: 0; -EINVAL @system is no soft one; -ENOMEM.
 */
DMAMAP_API int dmamap_soft_process(struct dmamap_system *system, unsigned process);

/** dmamap_soft_exit() - Process @process is gone: IOMMUFD cannot pin what it
 * mapped any more, where that is not pinned yet. What it opened stays open; a
 * process of that number that makes calls later is another one.
 *
 * Return: 0; -EINVAL @system is no soft one; -ESRCH there is no such process,
 * or it is this thread's, or the first one. */
DMAMAP_API int dmamap_soft_exit(struct dmamap_system *system, unsigned process);

/** struct dmamap_soft_charge - What a process has locked, in bytes.
 * @locked: counted against RLIMIT_MEMLOCK for the process (VmLck)
 * @pinned: pinned by IOMMUFD, whatever is counted where (VmPin)
 * @user: counted for the user that the process belongs to, by all of them
 */
struct dmamap_soft_charge {
	uint64_t locked;
	uint64_t pinned;
	uint64_t user;
};

/** dmamap_soft_charged() - As it is now. Return: 0; -EINVAL no soft system. */
DMAMAP_API int dmamap_soft_charged(
	struct dmamap_system *system, unsigned process, struct dmamap_soft_charge *charge);

/** dmamap_soft_access() - An access as the device behind @device_fd (an open
 * device of this system) has it: DMA as the device would do it. The engine's
 * rules hold; destroy it before the device is closed or detached.
 *
 * Return: 0; -EBADF no device of this system; -ENODEV it is attached to
 * nothing; -ENOMEM. */
DMAMAP_API int dmamap_soft_access(
	struct dmamap_system *system, int device_fd, struct dmamap_access **access);

/* ---------------------------------------------------- for other processes */

/** struct dmamap_soft_refusal - A call of another process that was refused.
 * @call: "open", "ioctl", "read" or "write"
 * @path: open: what; else NULL
 * @request: ioctl: its number; else 0
 * @error: the errno that it got, positive
 * @reason: why; NULL: nobody knows
 */
struct dmamap_soft_refusal {
	const char *call;
	const char *path;
	unsigned request;
	int error;
	const struct dmamap_reason *reason;
};

struct dmamap_soft_server;

/** dmamap_soft_serve() - Answer other processes' calls on the system's VDUSE
 * files (/dev/vduse and /sys/class/vduse), so that a daemon is a process of its
 * own, which may die and come back. What VFIO and IOMMUFD map is memory of who
 * calls: they are for this process alone. Who asks is taken to have this
 * process's privileges.
 * @path: of a Unix socket that is made, in a folder that only those may enter
 *	who may ask; less than 108 bytes
 * @refused: called for each refusal, by the server's thread; NULL: nobody asks.
 *	It must not call the system
 * @server: out; to be ended before the system is destroyed, by any thread, once
 *
 * A thread of the server's answers, one call after the other; what this process
 * does with the system may go on beside it.
 *
 * Return: 0; -EINVAL no soft system, or no such path; -EADDRINUSE, or what
 * else bind(2) gives for it; -ENOMEM; -EAGAIN no thread. */
DMAMAP_API int dmamap_soft_serve(struct dmamap_system *system, const char *path,
	void (*refused)(void *who, const struct dmamap_soft_refusal *refusal), void *who,
	struct dmamap_soft_server **server);

/** dmamap_soft_serve_end() - Stop, and close what was opened that way; the
 * socket is removed. NULL is fine. */
DMAMAP_API void dmamap_soft_serve_end(struct dmamap_soft_server *server);

/** dmamap_system_remote() - The soft system that is served at @path, as a system
 * of this process. Descriptors are real ones, which dup(2), fork(2) and exec(2)
 * pass on; messages of an open device are in its descriptor, for poll(2) and
 * io_uring too. It needs nobody at @path yet: a call then is -ENODEV. Memory
 * that the daemon registers (umem) becomes shared with the other process: it
 * must be private memory without a file, or shared memory whose file the
 * process may open in /proc/self/map_files; other is -ENOMEM.
 *
 * Any thread may call; the calls of one process go one after the other, but for
 * a read that waits for a message. The child of a fork shares the files, and
 * makes a system of its own if another thread may have been in a call.
 *
 * Why a call was refused is what the other process hears; @reason has it here only
 * where the call came to nobody. Counters are the other process's too.
 *
 * Return: 0; -EINVAL a path that is none; -ENOMEM. */
DMAMAP_API int dmamap_system_remote(const char *path, struct dmamap_system **system);

#ifdef __cplusplus
}
#endif

#endif
