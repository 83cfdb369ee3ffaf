/* SPDX-License-Identifier: MIT */
/*
 * The driver's side of a VDUSE device of the soft system. A daemon makes a
 * device on /dev/vduse/control and serves it through /dev/vduse/NAME; this is
 * what Linux does with it then:
 *
 *	dmamap_vdpa_attach()	as "vdpa dev add name NAME mgmtdev vduse" does
 *	dmamap_blk_probe()	the virtio-blk driver finds the disk, through
 *				virtio-vdpa and the bounce domain
 *	dmamap_blk_submit()	a request of it; dmamap_blk_load() many
 *	dmamap_blk_remove()	the driver goes
 *	dmamap_vdpa_detach()	as "vdpa dev del NAME" does
 *
 * In virtio-blk's place dmamap_vhost_open() takes a device of any kind, as a
 * program does that opens /dev/vhost-vdpa-N: it gives the daemon memory of its
 * own, asks how far it has got, and suspends it.
 *
 * All of them but submit and wait ask the daemon and wait for its answer, so
 * that it is served by another thread, or another process.
 *
 * Errors are -errno. Why a call failed is the system's reason.
 */
#ifndef DMAMAP_VDPA_H
#define DMAMAP_VDPA_H

#include <stdbool.h>

#include "bounce.h"
#include "system.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dmamap_vdpa;
struct dmamap_blk;
struct dmamap_vhost;

/* ---------------------------------------------------------------- device */

/**
 * struct dmamap_vdpa_config - How a device is attached. 0 takes the value in
 * brackets.
 * @as_kernel: DMAMAP_KERNEL(7, 3) has that release's faults and leaves bytes of
 *	ended mappings in the bounce buffer; (6, 12) the latter, and units of a
 *	page. With either a request that finds no room in the bounce buffer ends
 *	with -EIO where its ring is packed [what is right]
 * @page_shift: log2 of the driver's page [the machine's]
 * @unit_shift: log2 of the bounce unit: 12 or @page_shift [as @as_kernel has
 *	it; 12]
 * @bounce_size: 1 MiB to 1 GiB, rounded down to a page [the device's, as its
 *	sysfs file bounce_size has it: 64 MiB]
 * @timeout_ms: how long a message may go unanswered before the device is
 *	broken; UINT32_MAX: for ever [the device's, as msg_timeout has it: 30 s]
 * @caches, @magazine: of the bounce domain (struct dmamap_bounce_config)
 */
struct dmamap_vdpa_config {
	unsigned as_kernel;
	unsigned page_shift;
	unsigned unit_shift;
	uint64_t bounce_size;
	uint32_t timeout_ms;
	unsigned caches;
	unsigned magazine;
};

/**
 * dmamap_vdpa_attach() - Take a device that a daemon has made.
 * @config: NULL for the defaults
 *
 * Return: 0; -EINVAL no device has that name, a queue of it was not set up, a
 * value cannot be, or @system is no soft one; -EEXIST it is attached; -EPERM
 * @bounce_size is given and the device was attached before with another;
 * -ENOMEM.
 */
DMAMAP_API int dmamap_vdpa_attach(struct dmamap_system *system, const char *name,
	const struct dmamap_vdpa_config *config, struct dmamap_vdpa **vdpa);

/** dmamap_vdpa_detach() - Give it back. Return: 0; -EBUSY a driver has it. */
DMAMAP_API int dmamap_vdpa_detach(struct dmamap_vdpa *vdpa);

/** dmamap_vdpa_broken() - Whether the daemon failed to answer: it is so for ever. */
DMAMAP_API bool dmamap_vdpa_broken(const struct dmamap_vdpa *vdpa);

/**
 * dmamap_vdpa_bounce() - The bounce domain of an address space (0 is all that
 * there is, for most), for its counters; NULL: there is no such space. It is
 * the device's, and there while it is attached.
 */
DMAMAP_API struct dmamap_bounce *dmamap_vdpa_bounce(struct dmamap_vdpa *vdpa, unsigned space);

/* ------------------------------------------------------------------ disk */

/**
 * struct dmamap_blk_config - How the driver works. 0 takes the value in brackets.
 * @queues: how many it uses, at most [all that the disk has]
 * @refuse: features, as bits of virtio, that it does not take though it could
 *	(INDIRECT_DESC is bit 28, EVENT_IDX 29, RING_PACKED 34) [none]
 */
struct dmamap_blk_config {
	unsigned queues;
	uint64_t refuse;
};

/**
 * dmamap_blk_probe() - The virtio-blk driver takes the device.
 *
 * It drives packed rings where they are offered, else split ones; it goes
 * through the device's reset, ACKNOWLEDGE, DRIVER, FEATURES_OK and DRIVER_OK as
 * virtio's core, virtio-vdpa and virtio-blk of Linux 7.3 do, and starts one
 * thread a queue for its completions.
 *
 * Return: 0; -ENODEV it is no block device, or its daemon refused the features
 * or did not answer; -EBUSY a driver has it; -EINVAL a configuration that
 * cannot be, or no queue has a size; -ENOENT the configuration has more queues
 * than the device; -ENOMEM no memory, or none for the rings.
 */
DMAMAP_API int dmamap_blk_probe(
	struct dmamap_vdpa *vdpa, const struct dmamap_blk_config *config, struct dmamap_blk **blk);

/**
 * dmamap_blk_remove() - The driver goes. The device is reset, and requests that
 * are left end with -EIO. NULL is fine.
 */
DMAMAP_API void dmamap_blk_remove(struct dmamap_blk *blk);

/**
 * dmamap_blk_break() - The disk is taken to be gone, as Linux's
 * virtio_break_device() has it: requests that are under way, and all that come,
 * end with -EIO. A daemon that died or hangs keeps nobody waiting then. Any
 * thread may call it, beside submits; what is left is dmamap_blk_remove().
 */
DMAMAP_API void dmamap_blk_break(struct dmamap_blk *blk);

/**
 * struct dmamap_blk_info - What the disk is.
 * @features: negotiated, as bits of virtio
 * @sectors: of 512 bytes
 * @block_size: what requests are multiples of
 * @queues, @queue_size: how many, and how many descriptors each has
 * @segments: most pieces of one request's data
 * @segment_size: bytes of a piece, at most
 * @read_only: it takes no writes
 */
struct dmamap_blk_info {
	uint64_t features;
	uint64_t sectors;
	uint32_t block_size;
	unsigned queues;
	unsigned queue_size;
	unsigned segments;
	uint64_t segment_size;
	bool read_only;
};

DMAMAP_API void dmamap_blk_info(const struct dmamap_blk *blk, struct dmamap_blk_info *info);

enum dmamap_blk_op {
	DMAMAP_BLK_READ,
	DMAMAP_BLK_WRITE,
	DMAMAP_BLK_FLUSH,
	DMAMAP_BLK_DISCARD,
	DMAMAP_BLK_WRITE_ZEROES,
	DMAMAP_BLK_UNMAP, /**< WRITE_ZEROES with the flag UNMAP */
	DMAMAP_BLK_GET_ID,
};

/**
 * struct dmamap_blk_request - One request, the caller's until it is submitted,
 * and again when @done is called.
 * @op: what
 * @sector: where; of 512 bytes
 * @sectors: how many, for DISCARD, WRITE_ZEROES and UNMAP
 * @data: READ, WRITE: @size bytes; GET_ID: @size bytes for it (the disk has 20).
 *	DISCARD and its like: NULL, or @size bytes that are the request's ranges
 *	as virtio has them, in the place of @sector and @sectors
 * @segment: bytes of a piece that @data is cut into; 0: one piece
 * @done: called once, from the queue's thread, or the one that removes the
 *	driver. It may submit
 * @result: out: 0; -EIO; -EOPNOTSUPP the disk does not do that
 * @driver: the driver's own
 */
struct dmamap_blk_request {
	enum dmamap_blk_op op;
	uint64_t sector;
	uint32_t sectors;
	uint32_t size;
	void *data;
	uint32_t segment;
	int result;
	void (*done)(struct dmamap_blk_request *request);
	void *owner;
	uint64_t driver[24];
};

/**
 * dmamap_blk_submit() - Give the disk a request. Where the ring has no room or
 * the bounce buffer none, it waits its turn, as in Linux's blk-mq: for a
 * completion, or in the latter case for 3 ms at most, over and over.
 *
 * Return: 0; -EINVAL no such queue or operation, or no data where some must be;
 * -E2BIG more or larger pieces than the disk takes, or the bounce buffer;
 * -ENOMEM. Nothing is done then.
 */
DMAMAP_API int dmamap_blk_submit(
	struct dmamap_blk *blk, unsigned queue, struct dmamap_blk_request *request);

/** dmamap_blk_do() - Submit, and wait for the result; it takes @done and @owner. */
DMAMAP_API int dmamap_blk_do(
	struct dmamap_blk *blk, unsigned queue, struct dmamap_blk_request *request);

/**
 * struct dmamap_blk_counters - What the driver has done on all queues.
 * @submitted, @completed: requests
 * @failed: completed with another result than 0
 * @requeued: times that a request found no room in the bounce buffer (-ENOMEM
 *	to Linux's driver)
 * @ring_full: times that one found none in the ring
 * @kicks: times that the daemon was told of requests
 * @interrupts: times that it told of completions
 * @bad: completions that named no request; the queue takes no more after one
 */
struct dmamap_blk_counters {
	uint64_t submitted;
	uint64_t completed;
	uint64_t failed;
	uint64_t requeued;
	uint64_t ring_full;
	uint64_t kicks;
	uint64_t interrupts;
	uint64_t bad;
};

DMAMAP_API void dmamap_blk_counters(struct dmamap_blk *blk, struct dmamap_blk_counters *counters);

/* ------------------------------------------------------------------ load */

/**
 * struct dmamap_blk_load - Jobs that keep requests in flight, as fio's. 0 takes
 * the value in brackets.
 * @jobs: threads [1]; job n uses queue n modulo the queues, and its own part of
 *	the disk
 * @depth: requests in flight, each [1]
 * @size: bytes of a request, a multiple of the disk's blocks [its block]
 * @segment: of a request's data, as in struct dmamap_blk_request [one piece]
 * @reads: percent of requests that read [0: all write]
 * @sequential: one after the other, not in random places
 * @requests: of each job [as many as @milliseconds have]
 * @milliseconds: how long, at most; 0 with @requests: as long as they take
 * @first, @bytes: part of the disk that is used [all]
 * @verify: what is written says where it belongs and when it was written;
 *	what is read, and in the end all that was written, is compared
 * @seed: of places and data
 * @stop: asked before each request, by any job's thread: true ends it all early
 *	[nothing does]
 */
struct dmamap_blk_load {
	unsigned jobs;
	unsigned depth;
	uint32_t size;
	uint32_t segment;
	unsigned reads;
	bool sequential;
	uint64_t requests;
	unsigned milliseconds;
	uint64_t first;
	uint64_t bytes;
	bool verify;
	uint64_t seed;
	bool (*stop)(void);
};

/**
 * struct dmamap_blk_result - What came of it.
 * @requests, @bytes: completed, without what was read to verify in the end
 * @failed: requests with another result than 0
 * @mismatches: blocks that had other bytes than were written
 * @verified: blocks that were compared
 * @nanoseconds: from the first submit to the last completion
 * @latency: from submit to completion, in nanoseconds, at the percentile; each
 *	within 1.6 %
 */
struct dmamap_blk_result {
	uint64_t requests;
	uint64_t bytes;
	uint64_t failed;
	uint64_t mismatches;
	uint64_t verified;
	uint64_t nanoseconds;
	struct {
		uint64_t p50, p90, p99, p999, most;
	} latency;
};

/**
 * dmamap_blk_load() - Run it, and wait for its end.
 *
 * Return: 0, whatever the requests' results are; -EINVAL a load that cannot be:
 * sizes that are no multiple, parts of the disk that are smaller than @depth
 * requests; -E2BIG; -ENOMEM; -EAGAIN no threads.
 */
DMAMAP_API int dmamap_blk_load(struct dmamap_blk *blk, const struct dmamap_blk_load *load,
	struct dmamap_blk_result *result);

/* ------------------------------------------------- memory of the driver's own */

/**
 * dmamap_vhost_open() - Take the device, as the user of /dev/vhost-vdpa-N: the
 * device is reset. Calls may come from any thread; one that asks the daemon
 * holds up the others.
 *
 * Return: 0; -EBUSY a driver has it; -EIO the daemon refused the reset, or is
 * broken; -ENOMEM.
 */
DMAMAP_API int dmamap_vhost_open(struct dmamap_vdpa *vdpa, struct dmamap_vhost **vhost);

/**
 * dmamap_vhost_close() - Reset the device and give it back. As in Linux the
 * daemon is not told that the maps are gone; they are in its IOTLB until another
 * driver maps something, or the device is attached anew. NULL is fine.
 */
DMAMAP_API void dmamap_vhost_close(struct dmamap_vhost *vhost);

/**
 * struct dmamap_vhost_info - What the device is.
 * @device_id: virtio's number of its kind
 * @features: offered, as bits of virtio
 * @config_size: bytes of its configuration
 * @queues, @groups, @spaces: how many of each
 * @queue_size: how large a queue may be, at most
 * @status: as it is now
 */
struct dmamap_vhost_info {
	uint32_t device_id;
	uint64_t features;
	uint32_t config_size;
	unsigned queues;
	unsigned groups;
	unsigned spaces;
	unsigned queue_size;
	uint8_t status;
};

DMAMAP_API void dmamap_vhost_info(struct dmamap_vhost *vhost, struct dmamap_vhost_info *info);

/**
 * dmamap_vhost_set_status() - SET_STATUS of it; 0 resets the device. One that
 * the daemon refuses is not an error: look whether it was taken.
 *
 * Return: 0; -EINVAL bits are missing that were set; -EIO of a reset, which
 * takes place all the same.
 */
DMAMAP_API int dmamap_vhost_set_status(struct dmamap_vhost *vhost, uint8_t status);

/** dmamap_vhost_set_features() - Any bits: the daemon's to refuse, with
 * FEATURES_OK. Return: 0; -EBUSY that is set already. */
DMAMAP_API int dmamap_vhost_set_features(struct dmamap_vhost *vhost, uint64_t features);

/** dmamap_vhost_get_config() - A part of it. Return: 0; -EINVAL it has no such part. */
DMAMAP_API int dmamap_vhost_get_config(
	struct dmamap_vhost *vhost, uint32_t offset, void *to, uint32_t size);

/** dmamap_vhost_set_config_call() - An eventfd for its interrupt, -1: none; a
 * reset takes it away. Return: 0; -EBADF, -EINVAL no eventfd. */
DMAMAP_API int dmamap_vhost_set_config_call(struct dmamap_vhost *vhost, int call);

/**
 * struct dmamap_vhost_map - A range of the driver's memory.
 * @first, @last: IOVAs, both included
 * @fd, @offset: the file that it is in, and where; the file is duplicated
 * @prot: what the daemon may do: DMAMAP_READ, DMAMAP_WRITE, or both
 */
struct dmamap_vhost_map {
	uint64_t first;
	uint64_t last;
	int fd;
	uint64_t offset;
	unsigned prot;
};

/**
 * dmamap_vhost_map() - Show the daemon a range more: UPDATE_IOTLB, unless within
 * a batch.
 * @space: which address space; 0 for most devices
 *
 * Return: 0; -EINVAL no such space, another one's batch, a range or @prot that
 * cannot be; -EEXIST it overlaps one that is there; -ENOSPC there are 2048; -EIO
 * the daemon refused it, and sees nothing now; -EBADF, -ENOMEM, -EMFILE.
 */
DMAMAP_API int dmamap_vhost_map(
	struct dmamap_vhost *vhost, uint32_t space, const struct dmamap_vhost_map *map);

/** dmamap_vhost_unmap() - Take all ranges away that have a byte in @first to
 * @last: UPDATE_IOTLB, unless within a batch, whose answer does not matter.
 *
 * Return: 0; -EINVAL nothing was ever mapped there, or another one's batch. */
DMAMAP_API int dmamap_vhost_unmap(
	struct dmamap_vhost *vhost, uint32_t space, uint64_t first, uint64_t last);

/** dmamap_vhost_batch() - Begin a batch of maps and unmaps of a space, or end it
 * with one UPDATE_IOTLB, whose answer does not matter. Return: as unmap. */
DMAMAP_API int dmamap_vhost_batch(struct dmamap_vhost *vhost, uint32_t space, bool begin);

/**
 * dmamap_vhost_set_group_space() - Move a group of queues: SET_VQ_GROUP_ASID.
 *
 * Return: 0; -EINVAL there is no such group or space, or the device's API is of
 * version 0; -ENOBUFS there are not even so many queues; -EBUSY DRIVER_OK is
 * set; -EIO the daemon refused.
 */
DMAMAP_API int dmamap_vhost_set_group_space(
	struct dmamap_vhost *vhost, unsigned group, uint32_t space);

/**
 * struct dmamap_vhost_queue - Where the driver has a queue.
 * @size: entries; a power of two
 * @descriptors, @driver, @device: IOVAs of its areas
 * @available, @used: where to start; as in struct dmamap_virtqueue_config
 * @call: an eventfd for its interrupts, -1: none
 */
struct dmamap_vhost_queue {
	uint32_t size;
	uint64_t descriptors;
	uint64_t driver;
	uint64_t device;
	uint16_t available;
	uint16_t used;
	int call;
};

/** dmamap_vhost_set_queue() - Return: 0; -ENOBUFS there is no such queue; -EINVAL
 * a size that cannot be, or DRIVER_OK is set and it is not suspended; -EBADF or
 * -EINVAL @call is no eventfd. */
DMAMAP_API int dmamap_vhost_set_queue(
	struct dmamap_vhost *vhost, unsigned queue, const struct dmamap_vhost_queue *is);

/** dmamap_vhost_get_queue() - How far the daemon has got: GET_VQ_STATE. Of a split
 * ring @used is told as @available is.
 *
 * Return: 0; -ENOBUFS there is no such queue; -EIO the daemon refused. */
DMAMAP_API int dmamap_vhost_get_queue(
	struct dmamap_vhost *vhost, unsigned queue, uint16_t *available, uint16_t *used);

/** dmamap_vhost_enable() - A queue is ready, or is not any more; with
 * VDUSE_F_QUEUE_READY a daemon that refuses breaks the device. Return: 0; -ENOBUFS. */
DMAMAP_API int dmamap_vhost_enable(struct dmamap_vhost *vhost, unsigned queue, bool on);

/** dmamap_vhost_kick() - Tell the daemon to look at a queue. Return: 0; -ENOBUFS. */
DMAMAP_API int dmamap_vhost_kick(struct dmamap_vhost *vhost, unsigned queue);

/** dmamap_vhost_suspend() - SUSPEND: no kicks or interrupts until a reset. Without
 * DRIVER_OK nothing is done.
 *
 * Return: 0; -EOPNOTSUPP the device was made without VDUSE_F_SUSPEND; -EIO the
 * daemon refused. */
DMAMAP_API int dmamap_vhost_suspend(struct dmamap_vhost *vhost);

#ifdef __cplusplus
}
#endif

#endif
