/* SPDX-License-Identifier: MIT */
/*
 * A virtqueue as its driver has it: what split and packed rings share is in
 * soft/virtio_ring.c, each one's own in soft/virtio_split.c and
 * soft/virtio_packed.c. One thread at a time: whoever uses a ring has its lock.
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

/* Of an indirect table; both kinds begin with address and length. */
union soft_ring_desc {
	struct vring_desc split;
	struct vring_packed_desc packed;
};

/* What the device must not change of what it was given: by descriptor of a split ring, by id of a
 * packed one. */
struct soft_ring_slot {
	void *token;		     /* of the buffer whose head this is; NULL: none */
	union soft_ring_desc *table; /* its indirect table, mapped; NULL: descriptors of the ring */
	uint16_t pieces;
	uint16_t next; /* free, or of the same buffer */
	uint64_t iova; /* what this descriptor maps */
	uint32_t size;
};

#define SOFT_RING_NO_SLOT UINT16_MAX

struct soft_ring;

/* How a ring lies in memory. */
struct soft_ring_layout {
	/* Its memory; where its three areas are, and the state that a device begins with. */
	int (*allocate)(struct soft_ring *ring, uint64_t areas[3], struct vduse_vq_state *begin);
	int (*add)(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
		union soft_ring_desc *table, void *token);
	bool (*kick_wanted)(struct soft_ring *ring);
	/* The head that the device names next, whatever it is; -1: none. */
	int64_t (*next_used)(const struct soft_ring *ring);
	/* It had @descriptors of the ring. */
	void (*pass_used)(struct soft_ring *ring, unsigned descriptors);
	void (*quiet)(struct soft_ring *ring);
	void (*listen)(struct soft_ring *ring);
};

extern const struct soft_ring_layout soft_ring_split, soft_ring_packed;

struct soft_ring_memory {
	uint64_t iova, bytes;
};

struct soft_ring {
	struct soft_vduse_driver *driver;
	struct dmamap_bounce *bounce;
	const struct soft_ring_layout *layout;
	unsigned index;
	unsigned num;
	bool indirect, event;
	bool bad;  /* the device named what was not there */
	bool full; /* split: the device is told of it, wanted or not */
	struct soft_ring_memory memory[3];
	unsigned n_memory;
	union {
		struct {
			struct vring_desc *desc;
			struct vring_avail *avail;
			struct vring_used *used;
		} split;
		struct {
			struct vring_packed_desc *desc;
			struct vring_packed_desc_event *driver, *device;
			bool avail_wrap, used_wrap;
			uint16_t
				event_flags; /* those of *driver, but for a write that was spared */
		} packed;
	};
	struct soft_ring_slot *slots;
	uint16_t free_head;
	uint16_t n_free;
	uint16_t avail_index;
	uint16_t used_index;
	uint16_t added; /* since the device was told of any */
};

/* The ring is told to the device, and ready. -ENOENT: the device has no such queue, or it no size;
 * -ENOMEM. */
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
	union soft_ring_desc *table, void *token);
/* Whether the device wants to hear of what was added. */
bool soft_ring_kick_wanted(struct soft_ring *ring);
/* A buffer that the device is done with: its token, or NULL. */
void *soft_ring_get(struct soft_ring *ring);
/* Any buffer that the device has: its token, or NULL: none. */
void *soft_ring_take_back(struct soft_ring *ring);
/* Do without interrupts; have one for the next buffer, and false: there is one already. */
void soft_ring_quiet(struct soft_ring *ring);
bool soft_ring_listen(struct soft_ring *ring);

/* For the layouts: memory that the device has as well; its number is the next of ring->memory. */
int soft_ring_memory(struct soft_ring *ring, uint64_t bytes, void **address);
/* A piece is mapped, and where it is kept in a slot; -ENOMEM. */
int soft_ring_map(struct soft_ring *ring, const struct soft_ring_piece *piece, uint64_t *iova);
/* @n pieces of the slots from @head on, or of a table. */
void soft_ring_unmap_slots(struct soft_ring *ring, uint16_t head, unsigned n);
void soft_ring_unmap_table(struct soft_ring *ring, const union soft_ring_desc *table, unsigned n);
/* The @n slots from free_head on are a buffer's. */
void soft_ring_take_slots(struct soft_ring *ring, unsigned n, unsigned pieces,
	union soft_ring_desc *table, void *token);

static inline uint16_t soft_ring_acquire(const uint16_t *index)
{
	return __atomic_load_n(index, __ATOMIC_ACQUIRE);
}

static inline void soft_ring_release(uint16_t *index, uint16_t value)
{
	__atomic_store_n(index, value, __ATOMIC_RELEASE);
}

#endif
