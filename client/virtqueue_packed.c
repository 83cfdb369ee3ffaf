/* SPDX-License-Identifier: MIT */
/*
 * The packed ring: one ring of descriptors that driver and device write in
 * turn, told apart by two bits that are compared with a counter of laps. A
 * request's ring entries may be overwritten while it is in flight, so its
 * descriptors are copied to the log when it is taken, and only the copy is
 * looked at.
 */
#include <errno.h>

#include "client/virtqueue.h"

#define AVAIL_BIT (1u << VRING_PACKED_DESC_F_AVAIL)
#define USED_BIT  (1u << VRING_PACKED_DESC_F_USED)

static void areas(const struct dmamap_virtqueue *queue, uint64_t bytes[3], uint32_t align[3])
{
	bytes[0] = (uint64_t)queue->size * sizeof(struct vring_packed_desc);
	bytes[1] = sizeof(struct vring_packed_desc_event);
	bytes[2] = sizeof(struct vring_packed_desc_event);
	align[0] = 16;
	align[1] = 4;
	align[2] = 4;
}

/* Both places were given. */
static void start(struct dmamap_virtqueue *queue)
{
	(void)queue;
}

/* The driver has filled this one: AVAIL is its lap, USED is not. */
static bool is_available(uint16_t flags, uint16_t place)
{
	bool wrap = place & WRAP;

	return !!(flags & AVAIL_BIT) == wrap && !!(flags & USED_BIT) != wrap;
}

static uint16_t flags_at(const struct dmamap_virtqueue *queue, uint16_t place)
{
	return __atomic_load_n(&queue->packed_desc[place & ~WRAP].flags, __ATOMIC_ACQUIRE);
}

/* An unshown entry has not been overwritten: USED is the lap's once it was. */
static int shown(const struct dmamap_virtqueue *queue, uint32_t count)
{
	(void)count;
	return !!(flags_at(queue, queue->used) & USED_BIT) == !!(queue->used & WRAP);
}

static int take(struct dmamap_virtqueue *queue, uint32_t *slot, struct dmamap_reason *why)
{
	uint16_t place = queue->available;
	uint32_t count = 0;
	struct vring_packed_desc desc;

	if (!is_available(flags_at(queue, place), place))
		return 0;
	/* An indirect table takes one entry, so slots run out no earlier than entries. */
	if (!queue->ring_free)
		goto too_long;
	*slot = queue->free_slots[queue->n_free - 1];
	do {
		if (count == queue->ring_free)
			goto too_long;
		LOAD_ONCE(desc, &queue->packed_desc[place & ~WRAP]);
		*log_saved(queue, *slot, count++) = desc;
		place = place_after(queue, place, 1);
	} while (desc.flags & VRING_DESC_F_NEXT);
	queue->n_free--;
	queue->ring_free -= count;
	log_taken(queue, *slot, desc.id, (uint16_t)count, place);
	queue->available = place;
	return 1;

too_long:
	queue->broken = true;
	return DMAMAP_REFUSE(why, &virtqueue_reason_long, EPROTO, NULL, queue->available & ~WRAP,
		queue->ring_free, queue->size);
}

static int walk_indirect(struct walk *walk, const struct vring_packed_desc *desc)
{
	const struct dmamap_virtqueue *queue = walk->queue;
	const unsigned char *table = walk_table(
		walk, desc->addr, desc->len, queue->indirect && !(desc->flags & VRING_DESC_F_NEXT));
	uint32_t n = desc->len / (uint32_t)sizeof(*desc);

	if (!table)
		return walk->error;
	for (uint32_t i = 0; i < n; i++) {
		struct vring_packed_desc entry;
		int error;

		LOAD_ONCE(entry, table + (size_t)i * sizeof(entry));
		if (entry.flags & VRING_DESC_F_INDIRECT)
			walk_table(walk, entry.addr, entry.len, false);
		error = entry.flags & VRING_DESC_F_INDIRECT
				? walk->error
				: walk_add(walk, entry.addr, entry.len,
					  entry.flags & VRING_DESC_F_WRITE);
		if (error)
			return error;
	}
	return 0;
}

static int walk(
	struct dmamap_virtqueue *queue, struct dmamap_chain *chain, struct dmamap_reason *why)
{
	struct walk state = {.queue = queue, .chain = chain, .why = why};
	uint32_t count = queue->entries[chain->slot].count;

	for (uint32_t i = 0; i < count; i++) {
		const struct vring_packed_desc *desc = log_saved(queue, chain->slot, i);
		int error = desc->flags & VRING_DESC_F_INDIRECT
				    ? walk_indirect(&state, desc)
				    : walk_add(&state, desc->addr, desc->len,
					      desc->flags & VRING_DESC_F_WRITE);

		if (error) {
			chain->last = NULL;
			return error;
		}
	}
	return state.error;
}

static void stage(struct dmamap_virtqueue *queue, const struct log_entry *entry)
{
	struct vring_packed_desc *desc = &queue->packed_desc[queue->staged_used & ~WRAP];
	uint16_t flags = (uint16_t)((queue->staged_used & WRAP ? AVAIL_BIT | USED_BIT : 0) |
				    (entry->written ? VRING_DESC_F_WRITE : 0));

	__atomic_store_n(&desc->id, entry->id, __ATOMIC_RELAXED);
	__atomic_store_n(&desc->len, entry->written, __ATOMIC_RELAXED);
	/* The driver looks at them in order: the first one's flags show them all. */
	if (queue->staged_used == queue->used)
		queue->first_flags = flags;
	else
		__atomic_store_n(&desc->flags, flags, __ATOMIC_RELEASE);
	queue->staged_used = place_after(queue, queue->staged_used, entry->count);
}

static void show(struct dmamap_virtqueue *queue)
{
	__atomic_store_n(&queue->packed_desc[queue->used & ~WRAP].flags, queue->first_flags,
		__ATOMIC_RELEASE);
}

static bool interrupt(struct dmamap_virtqueue *queue, uint16_t old)
{
	uint16_t flags = __atomic_load_n(&queue->driver_event->flags, __ATOMIC_RELAXED);
	uint16_t event, from = old & ~WRAP & 0xffff, to = queue->used & ~WRAP & 0xffff;

	if (flags != VRING_PACKED_EVENT_FLAG_DESC || !queue->event_index)
		return flags != VRING_PACKED_EVENT_FLAG_DISABLE;
	event = __atomic_load_n(&queue->driver_event->off_wrap, __ATOMIC_RELAXED);
	/* All three in the numbers of the lap that @used is in. */
	if ((event ^ queue->used) & WRAP)
		event = (uint16_t)((event & ~WRAP) - queue->size);
	else
		event &= (uint16_t)~WRAP;
	if (to <= from)
		from = (uint16_t)(from - queue->size);
	return vring_need_event(event, to, from);
}

static bool waiting(struct dmamap_virtqueue *queue)
{
	return is_available(flags_at(queue, queue->available), queue->available);
}

static void listen(struct dmamap_virtqueue *queue)
{
	uint16_t flags = VRING_PACKED_EVENT_FLAG_ENABLE;

	if (queue->event_index) {
		__atomic_store_n(
			&queue->device_event->off_wrap, queue->available, __ATOMIC_RELAXED);
		flags = VRING_PACKED_EVENT_FLAG_DESC;
	}
	__atomic_store_n(&queue->device_event->flags, flags, __ATOMIC_RELEASE);
}

static void mute(struct dmamap_virtqueue *queue)
{
	__atomic_store_n(
		&queue->device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE, __ATOMIC_RELAXED);
}

const struct virtqueue_ring virtqueue_packed = {
	.areas = areas,
	.start = start,
	.take = take,
	.walk = walk,
	.stage = stage,
	.show = show,
	.shown = shown,
	.interrupt = interrupt,
	.waiting = waiting,
	.listen = listen,
	.mute = mute,
};
