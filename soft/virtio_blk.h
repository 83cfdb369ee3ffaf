/* SPDX-License-Identifier: MIT */
/* What the files of the virtio-blk driver share. */
#ifndef DMAMAP_SOFT_VIRTIO_BLK_H
#define DMAMAP_SOFT_VIRTIO_BLK_H

#include "dmamap/vdpa.h"
#include "soft/virtio_ring.h"

#define SECTOR 512u
/* Header, one piece of data, status: their indirect table is in the request. */
#define FEW_PIECES 3u

/* request->driver */
struct blk_state {
	struct virtio_blk_outhdr header;
	struct virtio_blk_discard_write_zeroes range;
	union soft_ring_desc few[FEW_PIECES];
	union soft_ring_desc *table; /* few, or allocated */
	struct dmamap_blk_request *next;
	void *data;
	uint32_t size, segment;
	bool to_device;
	uint8_t status;
	int error; /* that the driver ends it with */
};
_Static_assert(sizeof(struct blk_state) <= sizeof(((struct dmamap_blk_request *)0)->driver),
	"a request has room for the driver's state");

static inline struct blk_state *blk_state(struct dmamap_blk_request *request)
{
	return (struct blk_state *)(void *)request->driver;
}

/* Requests in order. */
struct blk_list {
	struct dmamap_blk_request *first, *last;
};

struct blk_queue {
	struct dmamap_blk *blk;
	unsigned index;
	pthread_t thread;
	pthread_mutex_t lock;
	struct soft_ring ring;		     /* lock */
	struct soft_ring_piece *pieces;	     /* lock: room for one request's */
	struct blk_list waiting;	     /* lock: for room */
	struct blk_list ended;		     /* lock: without the device */
	bool memory_short;		     /* lock: that is what the first one waits for */
	struct dmamap_blk_counters counters; /* lock; but interrupts */
	_Atomic uint64_t interrupts;
	pthread_mutex_t wake_lock;
	pthread_cond_t wake;
	bool woken;   /* wake_lock */
	bool stopped; /* wake_lock */
};

struct dmamap_blk {
	struct soft_vduse_driver *driver;
	struct virtio_blk_config config;
	struct dmamap_blk_info info;
	uint64_t largest; /* bytes of the bounce buffer that a request may take */
	uint64_t unit;
	unsigned n_queues;
	struct blk_queue *queues;
};

/* soft/virtio_blk_queue.c. */
int blk_queue_start(struct dmamap_blk *blk, unsigned index);
/* No request waits for the device any more. */
void blk_queue_break(struct blk_queue *queue);
/* The device was reset. All that is left ends with -EIO. */
void blk_queue_stop(struct blk_queue *queue);
/* Its ring goes too. */
void blk_queue_destroy(struct blk_queue *queue);
void blk_queue_submit(struct blk_queue *queue, struct dmamap_blk_request *request);

#endif
