/* SPDX-License-Identifier: MIT */
/*
 * The split ring, driver's side: what drivers/virtio/virtio_ring.c does for
 * virtio-vdpa in Linux 7.3. The ring is coherent memory; every piece of a buffer
 * is mapped for streaming, alone, and so is an indirect table after it was
 * filled. A buffer of several pieces takes an indirect table whenever one is
 * free for it.
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

#define NO_SLOT UINT16_MAX

static uint16_t acquire(const uint16_t *index)
{
	return __atomic_load_n(index, __ATOMIC_ACQUIRE);
}

static void release(uint16_t *index, uint16_t value)
{
	__atomic_store_n(index, value, __ATOMIC_RELEASE);
}

static uint16_t *used_event(const struct soft_ring *ring)
{
	return &ring->avail->ring[ring->num];
}

static const uint16_t *avail_event(const struct soft_ring *ring)
{
	return (const uint16_t *)(const void *)&ring->used->ring[ring->num];
}

/* ------------------------------------------------------------------ memory */

/* vring_size(): where the used ring begins, and how much all of it is. */
static uint64_t used_offset(unsigned num, uint32_t align)
{
	uint64_t end = num * sizeof(struct vring_desc) + (3 + num) * sizeof(uint16_t);

	return (end + align - 1) & ~((uint64_t)align - 1);
}

static uint64_t ring_bytes(unsigned num, uint32_t align)
{
	return used_offset(num, align) + 3 * sizeof(uint16_t) +
	       num * sizeof(struct vring_used_elem);
}

/* As large as there is memory for, and of a page in any case (vring_alloc_queue_split()). */
static int allocate(struct soft_ring *ring, uint32_t align)
{
	struct dmamap_bounce_info info;
	int error;

	dmamap_bounce_info(ring->bounce, &info);
	/* Linux gives a ring of another size to nobody. */
	if (ring->num & (ring->num - 1))
		return SOFT_REFUSE(misaligned, ENOMEM, "a split ring's size", ring->num, 2);
	do {
		ring->bytes = ring_bytes(ring->num, align);
		error = dmamap_bounce_coherent_alloc(
			ring->bounce, ring->bytes, &ring->iova, &ring->memory, soft_why());
	} while (error && ring->bytes > info.page_size && (ring->num /= 2));
	if (error) {
		soft_why()->error = ENOMEM;
		return -ENOMEM;
	}
	ring->slots = calloc(ring->num, sizeof(*ring->slots));
	if (ring->slots)
		return 0;
	dmamap_bounce_coherent_free(ring->bounce, ring->iova, ring->bytes, NULL);
	return SOFT_REFUSE(no_memory, ENOMEM, "a ring", ring->num);
}

int soft_ring_create(
	struct soft_ring *ring, struct soft_vduse_driver *driver, unsigned index, uint64_t features)
{
	static const struct vduse_vq_state begin;
	uint32_t align = driver->device->vq_align;
	uint64_t used;
	int error;

	*ring = (struct soft_ring){
		.driver = driver,
		.bounce = soft_vduse_queue_bounce(driver, index),
		.index = index,
		.num = soft_vduse_queue_size(driver, index),
		.indirect = features >> VIRTIO_RING_F_INDIRECT_DESC & 1,
		.event = features >> VIRTIO_RING_F_EVENT_IDX & 1,
	};
	if (soft_vduse_get_queue_ready(driver, index) || !ring->num)
		return SOFT_REFUSE(
			vduse_queue_unset, ENOENT, driver->device->name, (uint64_t)index);
	error = allocate(ring, align);
	if (error)
		return error;
	used = used_offset(ring->num, align);
	ring->desc = ring->memory;
	ring->avail = (void *)&ring->desc[ring->num];
	ring->used = (void *)((char *)ring->memory + used);
	ring->n_free = (uint16_t)ring->num;
	for (unsigned i = 0; i < ring->num; i++)
		ring->slots[i].next = (uint16_t)(i + 1 < ring->num ? i + 1 : NO_SLOT);
	soft_vduse_set_queue(driver, index, ring->num, ring->iova,
		ring->iova + ring->num * sizeof(struct vring_desc), ring->iova + used);
	soft_vduse_set_queue_state(driver, index, &begin);
	soft_vduse_set_queue_ready(driver, index, true);
	return 0;
}

void soft_ring_destroy(struct soft_ring *ring)
{
	if (!ring->slots)
		return;
	soft_vduse_set_queue_ready(ring->driver, ring->index, false);
	dmamap_bounce_coherent_free(ring->bounce, ring->iova, ring->bytes, NULL);
	free(ring->slots);
	ring->slots = NULL;
}

/* --------------------------------------------------------------------- add */

static int map(
	struct soft_ring *ring, void *address, uint32_t size, bool write, struct vring_desc *desc)
{
	desc->len = size;
	return dmamap_bounce_map(ring->bounce, address, size, write ? DMAMAP_WRITE : DMAMAP_READ, 0,
		       &desc->addr, NULL)
		       ? -ENOMEM
		       : 0;
}

static void unmap(struct soft_ring *ring, uint64_t iova, uint32_t size)
{
	dmamap_bounce_unmap(ring->bounce, iova, size, 0, NULL);
}

static int add_indirect(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	struct vring_desc *table)
{
	struct soft_ring_slot *slot = &ring->slots[ring->free_head];
	struct vring_desc *desc = &ring->desc[ring->free_head], whole = {0};
	unsigned mapped = 0;

	for (; mapped < n; mapped++) {
		const struct soft_ring_piece *piece = &pieces[mapped];

		if (map(ring, piece->address, piece->size, piece->write, &table[mapped]))
			goto unmap_all;
		table[mapped].flags = (uint16_t)((piece->write ? VRING_DESC_F_WRITE : 0) |
						 (mapped + 1 < n ? VRING_DESC_F_NEXT : 0));
		table[mapped].next = (uint16_t)(mapped + 1);
	}
	if (map(ring, table, n * (uint32_t)sizeof(*table), false, &whole))
		goto unmap_all;
	whole.flags = VRING_DESC_F_INDIRECT;
	*desc = whole;
	slot->table = table;
	slot->pieces = (uint16_t)n;
	slot->iova = whole.addr;
	slot->size = whole.len;
	ring->free_head = slot->next;
	slot->next = NO_SLOT;
	ring->n_free--;
	return 0;
unmap_all:
	while (mapped--)
		unmap(ring, table[mapped].addr, table[mapped].len);
	return -ENOMEM;
}

static int add_direct(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n)
{
	uint16_t head = ring->free_head, at = head, last = head;
	unsigned mapped = 0;

	for (; mapped < n; mapped++, at = ring->slots[at].next) {
		const struct soft_ring_piece *piece = &pieces[mapped];
		struct vring_desc desc = {0};

		if (map(ring, piece->address, piece->size, piece->write, &desc))
			goto unmap_all;
		desc.flags = (uint16_t)((piece->write ? VRING_DESC_F_WRITE : 0) |
					(mapped + 1 < n ? VRING_DESC_F_NEXT : 0));
		desc.next = mapped + 1 < n ? ring->slots[at].next : 0;
		ring->desc[at] = desc;
		ring->slots[at].iova = desc.addr;
		ring->slots[at].size = desc.len;
		last = at;
	}
	ring->slots[head].table = NULL;
	ring->slots[head].pieces = (uint16_t)n;
	ring->free_head = at;
	ring->slots[last].next = NO_SLOT;
	ring->n_free = (uint16_t)(ring->n_free - n);
	return 0;
unmap_all:
	for (at = head; mapped--; at = ring->slots[at].next)
		unmap(ring, ring->slots[at].iova, ring->slots[at].size);
	return -ENOMEM;
}

int soft_ring_add(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	struct vring_desc *table, void *token)
{
	uint16_t head = ring->free_head;
	bool indirect = ring->indirect && n > 1 && ring->n_free;
	int error;

	if (ring->bad)
		return -EIO;
	if (ring->n_free < (indirect ? 1 : n))
		return -ENOSPC;
	error = indirect ? add_indirect(ring, pieces, n, table) : add_direct(ring, pieces, n);
	if (error)
		return error;
	ring->slots[head].token = token;
	ring->avail->ring[ring->avail_index & (ring->num - 1)] = head;
	release(&ring->avail->idx, ++ring->avail_index);
	ring->added++;
	return 0;
}

bool soft_ring_kick_wanted(struct soft_ring *ring)
{
	uint16_t now = ring->avail_index, before = (uint16_t)(now - ring->added);

	if (!ring->added)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ring->added = 0;
	if (ring->event)
		return vring_need_event(acquire(avail_event(ring)), now, before);
	return !(acquire(&ring->used->flags) & VRING_USED_F_NO_NOTIFY);
}

/* --------------------------------------------------------------------- get */

/* Of the slots of one buffer, back to the free ones. */
static void *detach(struct soft_ring *ring, uint16_t head)
{
	struct soft_ring_slot *slot = &ring->slots[head];
	void *token = slot->token;
	uint16_t last = head, freed = 1;

	if (slot->table) {
		unmap(ring, slot->iova, slot->size);
		for (unsigned i = 0; i < slot->pieces; i++)
			unmap(ring, slot->table[i].addr, slot->table[i].len);
	} else {
		for (;; last = ring->slots[last].next, freed++) {
			unmap(ring, ring->slots[last].iova, ring->slots[last].size);
			if (ring->slots[last].next == NO_SLOT)
				break;
		}
	}
	slot->token = NULL;
	slot->table = NULL;
	ring->slots[last].next = ring->free_head;
	ring->free_head = head;
	ring->n_free = (uint16_t)(ring->n_free + freed);
	return token;
}

void *soft_ring_get(struct soft_ring *ring)
{
	const struct vring_used_elem *used = &ring->used->ring[ring->used_index & (ring->num - 1)];
	uint32_t head;
	void *token;

	if (ring->bad || acquire(&ring->used->idx) == ring->used_index)
		return NULL;
	/* Once: it is in memory that the device can write. */
	head = __atomic_load_n(&used->id, __ATOMIC_RELAXED);
	if (head >= ring->num || !ring->slots[head].token) {
		ring->bad = true;
		return NULL;
	}
	token = detach(ring, (uint16_t)head);
	ring->used_index++;
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
	if (ring->event)
		/* One that is behind: the device's index has to go all around first. */
		release(used_event(ring), (uint16_t)(ring->used_index - 1));
	else
		release(&ring->avail->flags, VRING_AVAIL_F_NO_INTERRUPT);
}

bool soft_ring_listen(struct soft_ring *ring)
{
	if (ring->event)
		release(used_event(ring), ring->used_index);
	else
		release(&ring->avail->flags, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return acquire(&ring->used->idx) == ring->used_index;
}
