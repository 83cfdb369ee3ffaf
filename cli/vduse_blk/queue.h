/* SPDX-License-Identifier: MIT */
/*
 * A queue of the disk: one thread, one io_uring, no lock. The thread takes what
 * the driver made available, hands all of it to the kernel with one call, and
 * gives back what is done with one interrupt. While there is work it looks for
 * more by itself; when there is none it asks the driver to kick, and sleeps.
 *
 * The thread lives as long as the process. Whoever handles VDUSE's messages
 * tells it to run or to stop, and it answers once that is so: a stopped queue
 * has nothing in flight, and its virtqueue may be replaced.
 */
#ifndef VDUSE_BLK_QUEUE_H
#define VDUSE_BLK_QUEUE_H

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>

#include "dmamap/vduse_client.h"
#include "image.h"
#include "request.h"

/**
 * struct queue_settings - What all queues of a disk share.
 * @size: requests at most
 * @parts: memory parts of a request at most
 * @poll_ns: for how long a queue looks for work before it sleeps, at most
 * @delay_ns: how much later than it could each request is given back
 * @say: tell the user one sentence
 */
struct queue_settings {
	struct dmamap_vduse *vduse;
	const struct image *image;
	const struct disk *disk;
	uint32_t size;
	uint32_t parts;
	uint64_t poll_ns;
	uint64_t delay_ns;
	void (*say)(void *who, const char *sentence);
	void *who;
};

/** The counters of a queue: written by its thread alone, read by any. */
struct queue_counters {
	_Atomic uint64_t requests[VERBS];
	_Atomic uint64_t bytes[VERBS];
	_Atomic uint64_t refused;    /**< malformed */
	_Atomic uint64_t failed;     /**< the image gave an error */
	_Atomic uint64_t batches;    /**< publications of finished requests */
	_Atomic uint64_t interrupts; /**< that the driver wanted */
	_Atomic uint64_t sleeps;
	_Atomic uint64_t synced;  /**< for a driver that cannot ask for it */
	_Atomic uint64_t bounced; /**< through aligned memory, for O_DIRECT */
	_Atomic uint64_t in_flight;
};

#define QUEUE_NONE UINT32_MAX

/*
 * A request under way. Its place is its slot, so that nothing is allocated.
 * @done: bytes of @request that are through
 * @range: which range of a DISCARD or WRITE_ZEROES
 * @moving: bytes in the bounce buffer
 * @buffer: which bounce buffer; QUEUE_NONE
 * @due: when it may be given back
 * @syncing: its bytes are through, and are being made to last
 * @next: in a list
 */
struct io {
	struct request request;
	struct iovec *parts;
	uint64_t done;
	uint64_t due;
	uint32_t range;
	uint32_t moving;
	uint32_t buffer;
	uint32_t next;
	uint8_t result;
	bool by_zeroes;
	bool syncing;
};

/* First in, first out, of slots. */
struct io_list {
	uint32_t first;
	uint32_t last;
};

/* Memory of one alignment, for transfers whose own is not good enough. */
#define BOUNCE_BUFFERS 8u
#define BOUNCE_BYTES   (256u << 10)

enum queue_wanted { QUEUE_STOP, QUEUE_RUN, QUEUE_EXIT };

/*
 * @wanted: by whoever handles messages; @state: by the thread; both under @lock,
 *	with @changed. @wake, an eventfd, makes the thread look
 * @kick: the driver's eventfd
 * @virtqueue: the thread's while it runs; NULL: the driver has not made it ready
 * @stable: what was written is made to last before the driver hears of it
 * @touching: the slot whose memory is looked at, for a fault; QUEUE_NONE: the ring's
 * @ring_dead: nothing more is taken; @ring_gone: nor given back, for it is not there
 * @complained: of a malformed request; @quiet_until: nothing is said
 * @busy: slots under way; @waiting: for a bounce buffer; @delayed: done, not yet due
 * @fixed: the memory that the ring knows as its buffer 0; @generation of it
 */
struct queue {
	const struct queue_settings *settings;
	unsigned index;
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum queue_wanted wanted;
	enum queue_wanted state;
	atomic_bool look;
	int wake;
	int kick;
	int error;
	bool ready;

	struct dmamap_virtqueue *virtqueue;
	void *log;
	bool resume;
	bool stable;
	bool owes_interrupt;
	bool ring_dead;
	bool ring_gone;
	bool complained;
	uint64_t quiet_until;

	struct io_uring ring;
	bool wake_armed;
	bool kick_armed;
	struct io *ios;
	struct iovec *parts;
	uint32_t touching;
	uint32_t busy;
	struct io_list waiting;
	struct io_list delayed;
	unsigned char *bounce;
	uint32_t free_buffers; /* bitmap */
	struct iovec fixed;
	unsigned generation;
	uint64_t poll_ns;
	uint64_t wakeup_value;
	uint64_t kick_value;
	struct queue_counters counters;
};

/** queue_start() - Make the thread, stopped. @log: the queue's. Return: 0; -errno. */
int queue_start(
	struct queue *queue, const struct queue_settings *settings, unsigned index, void *log);
/** queue_end() - The thread is gone; what the driver had in flight is done. */
void queue_end(struct queue *queue);

/** queue_want() - Tell it; does not wait. queue_reached() waits until it is so. */
void queue_want(struct queue *queue, enum queue_wanted wanted);
void queue_reached(struct queue *queue, enum queue_wanted wanted);

/**
 * queue_prepare() - Make the virtqueue of a stopped queue, if the driver has
 * made it ready.
 * @resume: go on from the log
 *
 * Return: 0; -errno.
 */
int queue_prepare(struct queue *queue, bool resume, struct dmamap_reason *why);
/** queue_drop() - Forget the virtqueue of a stopped queue. */
void queue_drop(struct queue *queue);

/* ------------------------------------------------------------ of the thread */

/** io_begin() - Start on a taken request: @walked as dmamap_virtqueue_walk() gave. */
void io_begin(struct queue *queue, uint32_t slot, struct dmamap_chain *chain, int walked);
/** io_went() - The kernel has done what it was given for @slot: @result as a system call's. */
void io_went(struct queue *queue, uint32_t slot, int result);
/** io_due() - Give back what was delayed and is due. Return: when the next is; 0: none. */
uint64_t io_due(struct queue *queue, uint64_t now);
/** io_waiting() - Go on with those that wait for a bounce buffer, if there is one. */
void io_waiting(struct queue *queue);
/** io_faulted() - The memory of @slot is not there: give it back without a status. */
void io_faulted(struct queue *queue, uint32_t slot);

/* Around looking at the memory of @slot: all that was written before is in place. */
static inline void touch(struct queue *queue, uint32_t slot)
{
	queue->touching = slot;
	__asm__ volatile("" : : : "memory");
}

static inline void untouch(struct queue *queue)
{
	__asm__ volatile("" : : : "memory");
	queue->touching = QUEUE_NONE;
}

uint64_t queue_now(void);
/** queue_may_say() - Whether to tell the user of a driver that is wrong: not within 10
 * seconds of the last time. */
bool queue_may_say(uint64_t *quiet_until);

static inline void count(_Atomic uint64_t *counter, uint64_t n)
{
	/* One writer: a load and a store are enough. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

#endif
