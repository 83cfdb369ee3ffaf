/* SPDX-License-Identifier: MIT */
/*
 * The device's side of a virtqueue, split or packed, over memory that a driver
 * shares with it. The driver is never trusted: every index, length, chain and
 * address is checked against the mapping before it is used, a descriptor is
 * read once, and a ring that makes no sense stops that queue and nothing else.
 *
 * What was taken and not yet given back is written to a log as it happens. A
 * process that is killed leaves the log behind, where it lives in a shared
 * file, and the next one goes on from there: what was taken is handed out
 * again in the old order, what was finished is given back without being done
 * again.
 *
 * Threads: one queue is used by one thread at a time; queues share nothing.
 */
#ifndef DMAMAP_VIRTQUEUE_H
#define DMAMAP_VIRTQUEUE_H

#include <stdbool.h>
#include <sys/uio.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct dmamap_dma_region - A range of IOVAs and where this process sees it.
 * @first, @last: IOVAs, both included
 * @va: where @first is
 * @prot: what the device may do there: DMAMAP_READ, DMAMAP_WRITE
 */
struct dmamap_dma_region {
	uint64_t first;
	uint64_t last;
	unsigned char *va;
	unsigned prot;
};

/**
 * struct dmamap_dma - What turns IOVAs into addresses. A queue keeps the
 * regions it was told in a cache of its own.
 * @find: the region that holds @iova; 0, or -EFAULT: there is none. Any thread
 */
struct dmamap_dma {
	int (*find)(struct dmamap_dma *dma, uint64_t iova, struct dmamap_dma_region *region);
};

/**
 * struct dmamap_virtqueue_config - A queue as the driver set it up.
 * @dma: what its addresses mean
 * @size: entries: a power of two where split, 1 to 32768
 * @packed, @indirect, @event_index: what was negotiated
 * @descriptors, @driver, @device: IOVAs of its three areas
 * @available, @used: where to start. Split: @available is the index of the
 *	available ring, and the used ring's own index counts. Packed: place in
 *	the low 15 bits, wrap counter in the top one
 * @log: room of dmamap_virtqueue_log_size(), zeroed when new, which outlives
 *	the process if it is to be of use; NULL: a private one
 * @resume: go on from what @log holds; else the log is started anew
 */
struct dmamap_virtqueue_config {
	struct dmamap_dma *dma;
	uint32_t size;
	bool packed;
	bool indirect;
	bool event_index;
	uint64_t descriptors;
	uint64_t driver;
	uint64_t device;
	uint16_t available;
	uint16_t used;
	void *log;
	bool resume;
};

struct dmamap_virtqueue;

/** dmamap_virtqueue_log_live() - Whether a log of a queue at work is there, from
 * dmamap_virtqueue_create() to dmamap_virtqueue_log_clear(). */
DMAMAP_API bool dmamap_virtqueue_log_live(const void *log);
/** dmamap_virtqueue_log_clear() - The driver reset the queue: nothing of it is left. */
DMAMAP_API void dmamap_virtqueue_log_clear(void *log);

/** dmamap_virtqueue_log_size() - Bytes of a queue's log. */
DMAMAP_API uint64_t dmamap_virtqueue_log_size(uint32_t size, bool packed);
/** dmamap_virtqueue_log_dense() - How many of them, from its start, are in use
 * all the time. The rest is for chains in a packed ring of more than four
 * descriptors, so that a sparse file is small. */
DMAMAP_API uint64_t dmamap_virtqueue_log_dense(uint32_t size, bool packed);

/**
 * dmamap_virtqueue_create() - Begin to serve a queue.
 * @queue: out; NULL after an error. It is there before the driver's memory is
 *	looked at, so that who catches the fault of memory that is gone can
 *	destroy it
 *
 * Return: 0; -EINVAL a size or alignment that cannot be; -EFAULT an area is
 * not mapped as it must be; -EPROTO the log contradicts itself or the ring, or
 * is another queue's; -ENOMEM.
 */
DMAMAP_API int dmamap_virtqueue_create(const struct dmamap_virtqueue_config *config,
	struct dmamap_virtqueue **queue, struct dmamap_reason *why);
/** dmamap_virtqueue_destroy() - Leaves rings and log as they are. NULL is fine. */
DMAMAP_API void dmamap_virtqueue_destroy(struct dmamap_virtqueue *queue);

/**
 * dmamap_virtqueue_remap() - Forget what IOVAs mean and look the areas up
 * again. No chain may be in use.
 *
 * Return: 0; -EFAULT, and only destroying is left.
 */
DMAMAP_API int dmamap_virtqueue_remap(struct dmamap_virtqueue *queue, struct dmamap_reason *why);

/**
 * struct dmamap_chain - One request's memory.
 * @slot: out: its place among those in flight, below the queue's size
 * @parts: room for @max parts, the caller's; out: those the device may read,
 *	then those it may write
 * @n_read, @n_write: out: how many of each
 * @read_bytes, @write_bytes: out: their lengths together
 * @last: out: the very last byte that the device may write, where a status
 *	usually goes; also of a refused chain, if that much is certain; else NULL
 */
struct dmamap_chain {
	uint32_t slot;
	uint32_t max;
	struct iovec *parts;
	uint32_t n_read;
	uint32_t n_write;
	uint64_t read_bytes;
	uint64_t write_bytes;
	unsigned char *last;
};

/**
 * dmamap_virtqueue_take() - Take the next request, which is logged as in flight.
 * @slot: out
 *
 * Return: 1; 0 there is none; -EPROTO the ring makes no sense, and does not
 * again until the driver resets it.
 */
DMAMAP_API int dmamap_virtqueue_take(
	struct dmamap_virtqueue *queue, uint32_t *slot, struct dmamap_reason *why);

/**
 * dmamap_virtqueue_walk() - Find the memory of @chain->slot, which was taken.
 *
 * Return: 0; -EPROTO its descriptors make no sense; -EFAULT some are not
 * mapped; -E2BIG more parts than @chain->max. A refused one has still to be
 * given back.
 */
DMAMAP_API int dmamap_virtqueue_walk(
	struct dmamap_virtqueue *queue, struct dmamap_chain *chain, struct dmamap_reason *why);

/**
 * dmamap_virtqueue_give() - Give a request back; the driver sees it after the
 * next dmamap_virtqueue_publish(). From here on it is not done again, whatever
 * becomes of this process.
 * @written: bytes written to it
 */
DMAMAP_API void dmamap_virtqueue_give(
	struct dmamap_virtqueue *queue, uint32_t slot, uint32_t written);

/** dmamap_virtqueue_publish() - Show the driver all that was given back.
 *
 * Return: whether it wants an interrupt. */
DMAMAP_API bool dmamap_virtqueue_publish(struct dmamap_virtqueue *queue);

/** dmamap_virtqueue_listen() - Ask the driver to kick from now on.
 *
 * Return: whether there is something to take already. */
DMAMAP_API bool dmamap_virtqueue_listen(struct dmamap_virtqueue *queue);
/** dmamap_virtqueue_mute() - Let it not kick: the queue is looked at anyway. */
DMAMAP_API void dmamap_virtqueue_mute(struct dmamap_virtqueue *queue);
/** dmamap_virtqueue_waiting() - Whether there is something to take. */
DMAMAP_API bool dmamap_virtqueue_waiting(struct dmamap_virtqueue *queue);

/** dmamap_virtqueue_in_flight() - How many were taken and not published. */
DMAMAP_API uint32_t dmamap_virtqueue_in_flight(const struct dmamap_virtqueue *queue);

/** dmamap_virtqueue_places() - Where it has got to, as dmamap_virtqueue_config
 * has it. */
DMAMAP_API void dmamap_virtqueue_places(
	const struct dmamap_virtqueue *queue, uint16_t *available, uint16_t *used);

#ifdef __cplusplus
}
#endif

#endif
