/* SPDX-License-Identifier: MIT */
/*
 * The packed ring: one ring of descriptors that driver and device write in
 * turn. Two bits of a descriptor say whose it is, and change their meaning with
 * each round ("wrap"). A buffer has an id, whose slots are kept here; the device
 * gives it back in the next place that it comes to. The functions that end in
 * _packed of drivers/virtio/virtio_ring.c in Linux 7.3.
 *
 * Where an indirect table or what it names cannot be mapped, the buffer is tried
 * without one, which takes one map less. When that fails too Linux's answer is
 * EIO, which ends the request, and not the ENOMEM that would have it tried
 * again: a bounce buffer that is full for a moment is an I/O error there. Who is
 * attached as_kernel has it so.
 */
#include <errno.h>

#include "soft/virtio_ring.h"

#define AVAIL_BIT (1u << VRING_PACKED_DESC_F_AVAIL)
#define USED_BIT  (1u << VRING_PACKED_DESC_F_USED)
#define WRAP_BIT  (1u << VRING_PACKED_EVENT_F_WRAP_CTR)

/* What makes a descriptor the device's in this round. */
static uint16_t available(bool wrap)
{
	return wrap ? AVAIL_BIT : USED_BIT;
}

static int allocate(struct soft_ring *ring, uint64_t areas[3], struct vduse_vq_state *begin)
{
	uint64_t event = sizeof(struct vring_packed_desc_event);
	void *memory[3];
	int error =
		soft_ring_memory(ring, ring->num * sizeof(struct vring_packed_desc), &memory[0]);

	if (!error)
		error = soft_ring_memory(ring, event, &memory[1]);
	if (!error)
		error = soft_ring_memory(ring, event, &memory[2]);
	if (error)
		return error;
	ring->packed.desc = memory[0];
	ring->packed.driver = memory[1];
	ring->packed.device = memory[2];
	ring->packed.avail_wrap = ring->packed.used_wrap = true;
	for (unsigned i = 0; i < 3; i++)
		areas[i] = ring->memory[i].iova;
	begin->packed.last_avail_counter = begin->packed.last_used_counter = 1;
	return 0;
}

/* --------------------------------------------------------------------- add */

/* @n descriptors from the place on are shown, the first one, of @flags, last. */
static void show(struct soft_ring *ring, unsigned n, uint16_t flags)
{
	uint16_t *head = &ring->packed.desc[ring->avail_index].flags;
	unsigned place = ring->avail_index + n;

	flags |= available(ring->packed.avail_wrap);
	if (place >= ring->num) {
		place -= ring->num;
		ring->packed.avail_wrap = !ring->packed.avail_wrap;
	}
	ring->avail_index = (uint16_t)place;
	ring->added = (uint16_t)(ring->added + n);
	soft_ring_release(head, flags);
}

static int add_indirect(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	union soft_ring_desc *table, void *token)
{
	const struct soft_ring_piece whole = {table, n * (uint32_t)sizeof(*table), false};
	struct vring_packed_desc *desc = &ring->packed.desc[ring->avail_index];
	uint16_t id = ring->free_head;
	struct soft_ring_slot *slot = &ring->slots[id];
	unsigned mapped = 0;

	for (; mapped < n; mapped++) {
		struct vring_packed_desc *one = &table[mapped].packed;

		if (soft_ring_map(ring, &pieces[mapped], &one->addr))
			goto unmap;
		one->len = pieces[mapped].size;
		one->id = 0;
		one->flags = pieces[mapped].write ? VRING_DESC_F_WRITE : 0;
	}
	if (soft_ring_map(ring, &whole, &slot->iova))
		goto unmap;
	slot->size = whole.size;
	desc->addr = slot->iova;
	desc->len = slot->size;
	desc->id = id;
	soft_ring_take_slots(ring, 1, n, table, token);
	show(ring, 1, VRING_DESC_F_INDIRECT);
	return 0;
unmap:
	soft_ring_unmap_table(ring, table, mapped);
	return -ENOMEM;
}

static uint16_t flags_of(const struct soft_ring_piece *piece, bool last)
{
	return (uint16_t)((piece->write ? VRING_DESC_F_WRITE : 0) | (last ? 0 : VRING_DESC_F_NEXT));
}

/* Nothing is written to the ring before all is mapped. */
static int add_direct(
	struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n, void *token)
{
	uint16_t id = ring->free_head, at = id;
	bool wrap = ring->packed.avail_wrap;
	unsigned place = ring->avail_index;

	for (unsigned i = 0; i < n; i++, at = ring->slots[at].next) {
		if (soft_ring_map(ring, &pieces[i], &ring->slots[at].iova)) {
			soft_ring_unmap_slots(ring, id, i);
			return -ENOMEM;
		}
		ring->slots[at].size = pieces[i].size;
	}
	at = id;
	for (unsigned i = 0; i < n; i++, at = ring->slots[at].next) {
		struct vring_packed_desc *desc = &ring->packed.desc[place];

		desc->addr = ring->slots[at].iova;
		desc->len = ring->slots[at].size;
		desc->id = id;
		if (i)
			__atomic_store_n(&desc->flags,
				flags_of(&pieces[i], i + 1 == n) | available(wrap),
				__ATOMIC_RELAXED);
		if (++place == ring->num) {
			place = 0;
			wrap = !wrap;
		}
	}
	soft_ring_take_slots(ring, n, n, NULL, token);
	show(ring, n, flags_of(&pieces[0], n == 1));
	return 0;
}

static int add(struct soft_ring *ring, const struct soft_ring_piece *pieces, unsigned n,
	union soft_ring_desc *table, void *token)
{
	int error;

	if (table && !add_indirect(ring, pieces, n, table, token))
		return 0;
	if (ring->n_free < n)
		return -ENOSPC;
	error = add_direct(ring, pieces, n, token);
	return error && ring->driver->as_kernel ? -EIO : error;
}

static bool kick_wanted(struct soft_ring *ring)
{
	const struct vring_packed_desc_event *device = ring->packed.device;
	uint16_t now = ring->avail_index, flags = soft_ring_acquire(&device->flags), place, event;

	if (flags != VRING_PACKED_EVENT_FLAG_DESC)
		return flags != VRING_PACKED_EVENT_FLAG_DISABLE;
	place = __atomic_load_n(&device->off_wrap, __ATOMIC_RELAXED);
	event = (uint16_t)(place & ~WRAP_BIT);
	if (!(place & WRAP_BIT) == ring->packed.avail_wrap)
		event = (uint16_t)(event - ring->num);
	return vring_need_event(event, now, (uint16_t)(now - ring->added));
}

/* --------------------------------------------------------------------- get */

static int64_t next_used(const struct soft_ring *ring)
{
	const struct vring_packed_desc *desc = &ring->packed.desc[ring->used_index];
	uint16_t flags = soft_ring_acquire(&desc->flags);
	bool used = flags & USED_BIT;

	if (!(flags & AVAIL_BIT) == used || used != ring->packed.used_wrap)
		return -1;
	/* Once: it is in memory that the device can write. */
	return __atomic_load_n(&desc->id, __ATOMIC_RELAXED);
}

static void pass_used(struct soft_ring *ring, unsigned descriptors)
{
	unsigned place = ring->used_index + descriptors;

	if (place >= ring->num) {
		place -= ring->num;
		ring->packed.used_wrap = !ring->packed.used_wrap;
	}
	ring->used_index = (uint16_t)place;
}

static void set_flags(struct soft_ring *ring, uint16_t flags)
{
	ring->packed.event_flags = flags;
	soft_ring_release(&ring->packed.driver->flags, flags);
}

static void quiet(struct soft_ring *ring)
{
	if (ring->packed.event_flags == VRING_PACKED_EVENT_FLAG_DISABLE)
		return;
	/* The device's place has to go all around before it comes to the event's again. */
	if (ring->event)
		ring->packed.event_flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	else
		set_flags(ring, VRING_PACKED_EVENT_FLAG_DISABLE);
}

static void listen(struct soft_ring *ring)
{
	uint16_t wrap = ring->packed.used_wrap ? WRAP_BIT : 0;

	if (ring->event)
		soft_ring_release(&ring->packed.driver->off_wrap, ring->used_index | wrap);
	if (ring->packed.event_flags == VRING_PACKED_EVENT_FLAG_DISABLE)
		set_flags(ring, ring->event ? VRING_PACKED_EVENT_FLAG_DESC
					    : VRING_PACKED_EVENT_FLAG_ENABLE);
}

const struct soft_ring_layout soft_ring_packed = {
	allocate, add, kick_wanted, next_used, pass_used, quiet, listen};
