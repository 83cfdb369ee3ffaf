/* SPDX-License-Identifier: MIT */
/*
 * A split virtqueue as its driver has it (soft/virtio_ring.c). One thread at a
 * time: whoever uses a ring has its lock.
 */
#ifndef DMAMAP_SOFT_VIRTIO_RING_H
#define DMAMAP_SOFT_VIRTIO_RING_H

#include "soft/vduse.h"

/* A piece of the driver's memory. */
struct soft_ring_piece {
	void *address;
	uint32_t size;
	bool write; /* by the device; these come last */
};

struct soft_ring_slot {
	void *token;		  /* of the buffer whose head this is; NULL: none */
	struct vring_desc *table; /* its indirect table, mapped; NULL: descriptors of the ring */
	uint16_t pieces;
	uint16_t next; /* free, or of the same buffer */
	uint64_t iova; /* what this descriptor maps */
	uint32_t size;
};

struct soft_ring {
	struct soft_vduse_driver *driver;
	struct dmamap_bounce *bounce;
	unsigned index;
	unsigned num;
	bool indirect, event;
	bool bad; /* the device named what was not there */
	void *memory;
	uint64_t iova, bytes;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct soft_ring_slot *slots;
	uint16_t free_head;
	uint16_t n_free;
	uint16_t avail_index;
	uint16_t used_index;
	uint16_t added; /* since the device was told of any */
};

/* The ring is told to the device, and ready. -ENOENT: the queue has no size; -ENOMEM. */
int soft_ring_create(struct soft_ring *ring, struct soft_vduse_driver *driver, unsigned index,
	uint64_t features);
/* The device was reset. What is in the ring stays mapped until soft_ring_take_back(). */
void soft_ring_destroy(struct soft_ring *ring);

/*
 * Put a buffer of @n pieces in. @table: room for @n descriptors, where the ring
 * takes indirect ones; it stays the ring's until the buffer is got. Linux's
 * errors: -ENOSPC no descriptors are free, -ENOMEM it cannot be mapped now, -EIO
 * the ring is bad.
 */
int soft_ring_add(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	struct vring_desc *table, void *token);
/* Whether the device wants to hear of what was added. */
bool soft_ring_kick_wanted(struct soft_ring *ring);
/* A buffer that the device is done with: its token, or NULL. */
void *soft_ring_get(struct soft_ring *ring);
/* Any buffer that the device has: its token, or NULL: none. */
void *soft_ring_take_back(struct soft_ring *ring);
/* Do without interrupts; have one for the next buffer, and false: there is one already. */
void soft_ring_quiet(struct soft_ring *ring);
bool soft_ring_listen(struct soft_ring *ring);

#endif
