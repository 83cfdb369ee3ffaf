/* SPDX-License-Identifier: MIT */
/*
 * A ring, driver's side: what drivers/virtio/virtio_ring.c does for virtio-vdpa in
 * Linux 7.3. The ring is coherent memory; every piece of a buffer is mapped for
 * streaming, alone, and so is an indirect table after it was filled. A buffer of
 * several pieces takes an indirect table whenever one is free for it.
 *
 * Whatever the device writes into the ring is checked; what it is to do is kept
 * in memory that it does not see (slots), so that it cannot change what is
 * unmapped.
 *
 * The device is another thread or process that has the same pages: indices are
 * released and acquired, and a full barrier is between telling how far we are
 * and looking whether the other side wants to hear of it.
 */
#include "soft/virtio_ring.h"

#include <errno.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ memory */

int soft_ring_memory(struct soft_ring *ring, uint64_t bytes, void **address)
{
	struct soft_ring_memory *memory = &ring->memory[ring->n_memory];
	int error = dmamap_bounce_coherent_alloc(
		ring->bounce, bytes, &memory->iova, address, soft_why());

	if (error) {
		soft_why()->error = ENOMEM;
		return -ENOMEM;
	}
	memory->bytes = bytes;
	ring->n_memory++;
	return 0;
}

static void free_memory(struct soft_ring *ring)
{
	while (ring->n_memory) {
		const struct soft_ring_memory *memory = &ring->memory[--ring->n_memory];

		dmamap_bounce_coherent_free(ring->bounce, memory->iova, memory->bytes, NULL);
	}
	free(ring->slots);
	ring->slots = NULL;
}

static int allocate(struct soft_ring *ring, uint64_t areas[3], struct vduse_vq_state *begin)
{
	int error = ring->layout->allocate(ring, areas, begin);

	if (error)
		return error;
	ring->slots = calloc(ring->num, sizeof(*ring->slots));
	if (!ring->slots)
		return SOFT_REFUSE(no_memory, ENOMEM, "a ring", ring->num);
	for (unsigned i = 0; i < ring->num; i++)
		ring->slots[i].next = (uint16_t)(i + 1 < ring->num ? i + 1 : SOFT_RING_NO_SLOT);
	ring->n_free = (uint16_t)ring->num;
	return 0;
}

/* virtio_vdpa_setup_vq() */
int soft_ring_create(
	struct soft_ring *ring, struct soft_vduse_driver *driver, unsigned index, uint64_t features)
{
	bool packed = features >> VIRTIO_F_RING_PACKED & 1;
	struct vduse_vq_state begin = {0};
	struct dmamap_reason why;
	uint64_t areas[3];
	int error = 0;

	if (index >= driver->device->n_queues)
		return SOFT_REFUSE(vduse_queue, ENOENT, NULL, index, driver->device->n_queues);
	*ring = (struct soft_ring){
		.driver = driver,
		.bounce = soft_vduse_queue_bounce(driver, index),
		.layout = packed ? &soft_ring_packed : &soft_ring_split,
		.index = index,
		.num = soft_vduse_queue_size(driver, index),
		.indirect = features >> VIRTIO_RING_F_INDIRECT_DESC & 1,
		.event = features >> VIRTIO_RING_F_EVENT_IDX & 1,
	};
	if (soft_vduse_get_queue_ready(driver, index))
		return SOFT_REFUSE(
			vduse_queue_unset, ENOENT, driver->device->name, (uint64_t)index);
	if (!ring->num)
		error = SOFT_REFUSE(
			vduse_queue_unset, ENOENT, driver->device->name, (uint64_t)index);
	if (!error)
		error = allocate(ring, areas, &begin);
	if (error) {
		/* Asking the device is no reason of its own. */
		why = *soft_why();
		free_memory(ring);
		soft_vduse_set_queue_ready(driver, index, false);
		*soft_why() = why;
		return error;
	}
	soft_vduse_set_queue(driver, index, ring->num, areas[0], areas[1], areas[2]);
	soft_vduse_set_queue_state(driver, index, &begin);
	soft_vduse_set_queue_ready(driver, index, true);
	return 0;
}

void soft_ring_destroy(struct soft_ring *ring)
{
	if (!ring->slots)
		return;
	soft_vduse_set_queue_ready(ring->driver, ring->index, false);
	free_memory(ring);
}

/* --------------------------------------------------------------------- maps */

int soft_ring_map(struct soft_ring *ring, const struct soft_ring_piece *piece, uint64_t *iova)
{
	return dmamap_bounce_map(ring->bounce, piece->address, piece->size,
		       piece->write ? DMAMAP_WRITE : DMAMAP_READ, 0, iova, NULL)
		       ? -ENOMEM
		       : 0;
}

static void unmap(struct soft_ring *ring, uint64_t iova, uint32_t size)
{
	dmamap_bounce_unmap(ring->bounce, iova, size, 0, NULL);
}

void soft_ring_unmap_slots(struct soft_ring *ring, uint16_t head, unsigned n)
{
	for (uint16_t at = head; n--; at = ring->slots[at].next)
		unmap(ring, ring->slots[at].iova, ring->slots[at].size);
}

void soft_ring_unmap_table(struct soft_ring *ring, const union soft_ring_desc *table, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		unmap(ring, table[i].split.addr, table[i].split.len);
}

/* ----------------------------------------------------------------- add and get */

void soft_ring_take_slots(struct soft_ring *ring, unsigned n, unsigned pieces,
	union soft_ring_desc *table, void *token)
{
	struct soft_ring_slot *head = &ring->slots[ring->free_head];
	uint16_t last = ring->free_head;

	for (unsigned i = 1; i < n; i++)
		last = ring->slots[last].next;
	ring->free_head = ring->slots[last].next;
	ring->slots[last].next = SOFT_RING_NO_SLOT;
	ring->n_free = (uint16_t)(ring->n_free - n);
	head->table = table;
	head->pieces = (uint16_t)pieces;
	head->token = token;
}

int soft_ring_add(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	union soft_ring_desc *table, void *token)
{
	if (ring->bad)
		return -EIO;
	/* Linux's limit for an indirect table is the same: some place must be free. */
	if (!ring->indirect || n < 2 || !ring->n_free)
		table = NULL;
	return ring->layout->add(ring, pieces, n, table, token);
}

bool soft_ring_kick_wanted(struct soft_ring *ring)
{
	bool wanted;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	wanted = ring->layout->kick_wanted(ring) || ring->full;
	ring->added = 0;
	ring->full = false;
	return wanted;
}

/* Of the slots of one buffer, back to the free ones. */
static void *detach(struct soft_ring *ring, uint16_t head)
{
	struct soft_ring_slot *slot = &ring->slots[head];
	unsigned n = slot->table ? 1 : slot->pieces;
	void *token = slot->token;
	uint16_t last = head;

	soft_ring_unmap_slots(ring, head, n);
	if (slot->table)
		soft_ring_unmap_table(ring, slot->table, slot->pieces);
	for (unsigned i = 1; i < n; i++)
		last = ring->slots[last].next;
	slot->token = NULL;
	slot->table = NULL;
	ring->slots[last].next = ring->free_head;
	ring->free_head = head;
	ring->n_free = (uint16_t)(ring->n_free + n);
	return token;
}

void *soft_ring_get(struct soft_ring *ring)
{
	int64_t head = ring->bad ? -1 : ring->layout->next_used(ring);
	unsigned descriptors;
	void *token;

	if (head < 0)
		return NULL;
	if (head >= ring->num || !ring->slots[head].token) {
		ring->bad = true;
		return NULL;
	}
	descriptors = ring->slots[head].table ? 1 : ring->slots[head].pieces;
	token = detach(ring, (uint16_t)head);
	ring->layout->pass_used(ring, descriptors);
	return token;
}

void *soft_ring_take_back(struct soft_ring *ring)
{
	for (unsigned i = 0; ring->slots && i < ring->num; i++)
		if (ring->slots[i].token)
			return detach(ring, (uint16_t)i);
	return NULL;
}

void soft_ring_quiet(struct soft_ring *ring)
{
	ring->layout->quiet(ring);
}

bool soft_ring_listen(struct soft_ring *ring)
{
	ring->layout->listen(ring);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ring->layout->next_used(ring) < 0;
}
