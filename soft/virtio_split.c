/* SPDX-License-Identifier: MIT */
/*
 * The split ring: descriptors that are the driver's, and two rings of their
 * numbers, the driver's and the device's. The functions that end in _split of
 * drivers/virtio/virtio_ring.c in Linux 7.3.
 */
#include <errno.h>

#include "soft/virtio_ring.h"

static uint16_t *used_event(const struct soft_ring *ring)
{
	return &ring->split.avail->ring[ring->num];
}

static const uint16_t *avail_event(const struct soft_ring *ring)
{
	return (const uint16_t *)(const void *)&ring->split.used->ring[ring->num];
}

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
static int allocate(struct soft_ring *ring, uint64_t areas[3], struct vduse_vq_state *begin)
{
	uint32_t align = ring->driver->device->vq_align;
	struct dmamap_bounce_info info;
	void *memory;
	uint64_t bytes;
	int error;

	(void)begin;
	dmamap_bounce_info(ring->bounce, &info);
	/* Linux gives a ring of another size to nobody. */
	if (ring->num & (ring->num - 1))
		return SOFT_REFUSE(misaligned, ENOMEM, "a split ring's size", ring->num, 2);
	do {
		bytes = ring_bytes(ring->num, align);
		error = soft_ring_memory(ring, bytes, &memory);
	} while (error && bytes > info.page_size && (ring->num /= 2));
	if (error)
		return error;
	ring->split.desc = memory;
	ring->split.avail = (void *)&ring->split.desc[ring->num];
	ring->split.used = (void *)((char *)memory + used_offset(ring->num, align));
	areas[0] = ring->memory[0].iova;
	areas[1] = areas[0] + ring->num * sizeof(struct vring_desc);
	areas[2] = areas[0] + used_offset(ring->num, align);
	return 0;
}

/* --------------------------------------------------------------------- add */

static uint16_t flags_of(const struct soft_ring_piece *piece, bool last)
{
	return (uint16_t)((piece->write ? VRING_DESC_F_WRITE : 0) | (last ? 0 : VRING_DESC_F_NEXT));
}

static int add_indirect(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	union soft_ring_desc *table)
{
	const struct soft_ring_piece whole = {table, n * (uint32_t)sizeof(*table), false};
	struct soft_ring_slot *slot = &ring->slots[ring->free_head];
	unsigned mapped = 0;

	for (; mapped < n; mapped++) {
		struct vring_desc *desc = &table[mapped].split;

		if (soft_ring_map(ring, &pieces[mapped], &desc->addr))
			goto unmap;
		desc->len = pieces[mapped].size;
		desc->flags = flags_of(&pieces[mapped], mapped + 1 == n);
		desc->next = (uint16_t)(mapped + 1);
	}
	if (soft_ring_map(ring, &whole, &slot->iova))
		goto unmap;
	slot->size = whole.size;
	ring->split.desc[ring->free_head] = (struct vring_desc){
		.addr = slot->iova, .len = slot->size, .flags = VRING_DESC_F_INDIRECT};
	return 0;
unmap:
	soft_ring_unmap_table(ring, table, mapped);
	return -ENOMEM;
}

static int add_direct(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n)
{
	uint16_t at = ring->free_head;

	for (unsigned i = 0; i < n; i++, at = ring->slots[at].next) {
		struct soft_ring_slot *slot = &ring->slots[at];

		if (soft_ring_map(ring, &pieces[i], &slot->iova)) {
			soft_ring_unmap_slots(ring, ring->free_head, i);
			return -ENOMEM;
		}
		slot->size = pieces[i].size;
		ring->split.desc[at] = (struct vring_desc){
			.addr = slot->iova,
			.len = slot->size,
			.flags = flags_of(&pieces[i], i + 1 == n),
			.next = i + 1 < n ? slot->next : 0,
		};
	}
	return 0;
}

static int add(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	union soft_ring_desc *table, void *token)
{
	uint16_t head = ring->free_head;
	unsigned descriptors = table ? 1 : n;
	int error;

	if (ring->n_free < descriptors) {
		ring->full = true;
		return -ENOSPC;
	}
	error = table ? add_indirect(ring, pieces, n, table) : add_direct(ring, pieces, n);
	if (error)
		return error;
	soft_ring_take_slots(ring, descriptors, n, table, token);
	ring->split.avail->ring[ring->avail_index & (ring->num - 1)] = head;
	soft_ring_release(&ring->split.avail->idx, ++ring->avail_index);
	ring->added++;
	return 0;
}

static bool kick_wanted(struct soft_ring *ring)
{
	uint16_t now = ring->avail_index, before = (uint16_t)(now - ring->added);

	if (ring->event)
		return vring_need_event(soft_ring_acquire(avail_event(ring)), now, before);
	return !(soft_ring_acquire(&ring->split.used->flags) & VRING_USED_F_NO_NOTIFY);
}

/* --------------------------------------------------------------------- get */

static int64_t next_used(const struct soft_ring *ring)
{
	const struct vring_used *used = ring->split.used;

	if (soft_ring_acquire(&used->idx) == ring->used_index)
		return -1;
	/* Once: it is in memory that the device can write. */
	return __atomic_load_n(
		&used->ring[ring->used_index & (ring->num - 1)].id, __ATOMIC_RELAXED);
}

static void pass_used(struct soft_ring *ring, unsigned descriptors)
{
	(void)descriptors;
	ring->used_index++;
}

static void quiet(struct soft_ring *ring)
{
	if (ring->event)
		/* One that is behind: the device's index has to go all around first. */
		soft_ring_release(used_event(ring), (uint16_t)(ring->used_index - 1));
	else
		soft_ring_release(&ring->split.avail->flags, VRING_AVAIL_F_NO_INTERRUPT);
}

static void listen(struct soft_ring *ring)
{
	if (ring->event)
		soft_ring_release(used_event(ring), ring->used_index);
	else
		soft_ring_release(&ring->split.avail->flags, 0);
}

const struct soft_ring_layout soft_ring_split = {
	allocate, add, kick_wanted, next_used, pass_used, quiet, listen};
