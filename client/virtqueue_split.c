/* SPDX-License-Identifier: MIT */
/*
 * The split ring: a table of descriptors, a ring of heads that the driver
 * fills, and a ring of used heads that the device fills. A request's slot is
 * the index of its first descriptor, so that a head that is in flight already
 * shows at once.
 */
#include <errno.h>

#include "client/virtqueue.h"

static void areas(const struct dmamap_virtqueue *queue, uint64_t bytes[3], uint32_t align[3])
{
	uint64_t size = queue->size;
	unsigned event = queue->event_index ? 2 : 0;

	bytes[0] = size * sizeof(struct vring_desc);
	bytes[1] = sizeof(struct vring_avail) + size * sizeof(uint16_t) + event;
	bytes[2] = sizeof(struct vring_used) + size * sizeof(struct vring_used_elem) + event;
	align[0] = VRING_DESC_ALIGN_SIZE;
	align[1] = VRING_AVAIL_ALIGN_SIZE;
	align[2] = VRING_USED_ALIGN_SIZE;
}

static void start(struct dmamap_virtqueue *queue)
{
	queue->used = __atomic_load_n(&queue->split_used->idx, __ATOMIC_RELAXED);
}

/* The two indices that lie behind the rings. */
static uint16_t *used_event(const struct dmamap_virtqueue *queue)
{
	return &queue->split_avail->ring[queue->size];
}

static uint16_t *available_event(const struct dmamap_virtqueue *queue)
{
	return (uint16_t *)(void *)&queue->split_used->ring[queue->size];
}

static int take(struct dmamap_virtqueue *queue, uint32_t *slot, struct dmamap_reason *why)
{
	uint16_t head;

	if (queue->seen == queue->available) {
		queue->seen = __atomic_load_n(&queue->split_avail->idx, __ATOMIC_ACQUIRE);
		if (queue->seen == queue->available)
			return 0;
	}
	if ((uint16_t)(queue->seen - queue->available) > queue->size) {
		queue->broken = true;
		return DMAMAP_REFUSE(why, &virtqueue_reason_jump, EPROTO, NULL, queue->available,
			queue->seen, queue->size);
	}
	head = __atomic_load_n(
		&queue->split_avail->ring[queue->available & (queue->size - 1)], __ATOMIC_RELAXED);
	if (head >= queue->size) {
		queue->broken = true;
		return DMAMAP_REFUSE(why, &virtqueue_reason_head, EPROTO, NULL, head, queue->size);
	}
	if (log_state(&queue->entries[head]) != LOG_FREE) {
		queue->broken = true;
		return DMAMAP_REFUSE(why, &virtqueue_reason_twice, EPROTO, NULL, head);
	}
	*slot = head;
	log_taken(queue, head, head, 1, (uint16_t)(queue->available + 1));
	queue->available++;
	return 1;
}

static int walk(
	struct dmamap_virtqueue *queue, struct dmamap_chain *chain, struct dmamap_reason *why)
{
	const unsigned char *table = (const unsigned char *)queue->split_desc;
	struct walk state = {.queue = queue, .chain = chain, .why = why};
	uint32_t n = queue->size, index = chain->slot;
	bool indirect = false;

	for (uint32_t steps = 0;; steps++) {
		struct vring_desc desc;
		int error;

		if (steps == n) {
			state.error = DMAMAP_REFUSE(
				why, &virtqueue_reason_loop, EPROTO, NULL, chain->slot, n);
			break;
		}
		LOAD_ONCE(desc, table + (size_t)index * sizeof(desc));
		if (desc.flags & VRING_DESC_F_INDIRECT) {
			table = walk_table(&state, desc.addr, desc.len,
				queue->indirect && !indirect && !(desc.flags & VRING_DESC_F_NEXT));
			if (!table)
				break;
			indirect = true;
			n = desc.len / (uint32_t)sizeof(desc);
			index = 0;
			steps = UINT32_MAX;
			continue;
		}
		error = walk_add(&state, desc.addr, desc.len, desc.flags & VRING_DESC_F_WRITE);
		if (error) {
			state.error = error;
			break;
		}
		if (!(desc.flags & VRING_DESC_F_NEXT))
			return state.error;
		index = desc.next;
		if (index >= n) {
			state.error =
				DMAMAP_REFUSE(why, &virtqueue_reason_next, EPROTO, NULL, index, n);
			break;
		}
	}
	/* The end was not reached, so what was last is not known. */
	chain->last = NULL;
	return state.error;
}

static void stage(struct dmamap_virtqueue *queue, const struct log_entry *entry)
{
	struct vring_used_elem *elem =
		&queue->split_used->ring[queue->staged_used & (queue->size - 1)];

	__atomic_store_n(&elem->id, entry->id, __ATOMIC_RELAXED);
	__atomic_store_n(&elem->len, entry->written, __ATOMIC_RELAXED);
	queue->staged_used++;
}

static void show(struct dmamap_virtqueue *queue)
{
	__atomic_store_n(&queue->split_used->idx, queue->staged_used, __ATOMIC_RELEASE);
}

static int shown(const struct dmamap_virtqueue *queue, uint32_t count)
{
	uint16_t now = __atomic_load_n(&queue->split_used->idx, __ATOMIC_RELAXED);

	if (now == queue->used)
		return 0;
	return now == (uint16_t)(queue->used + count) ? 1 : -EPROTO;
}

static bool interrupt(struct dmamap_virtqueue *queue, uint16_t old)
{
	uint16_t event;

	if (!queue->event_index)
		return !(__atomic_load_n(&queue->split_avail->flags, __ATOMIC_RELAXED) &
			 VRING_AVAIL_F_NO_INTERRUPT);
	event = __atomic_load_n(used_event(queue), __ATOMIC_RELAXED);
	return vring_need_event(event, queue->used, old);
}

static bool waiting(struct dmamap_virtqueue *queue)
{
	return __atomic_load_n(&queue->split_avail->idx, __ATOMIC_ACQUIRE) != queue->available;
}

static void listen(struct dmamap_virtqueue *queue)
{
	if (queue->event_index)
		__atomic_store_n(available_event(queue), queue->available, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&queue->split_used->flags, 0, __ATOMIC_RELAXED);
}

/* With an event index the old one stands, and lies behind: there is nothing to do. */
static void mute(struct dmamap_virtqueue *queue)
{
	if (!queue->event_index)
		__atomic_store_n(
			&queue->split_used->flags, VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED);
}

const struct virtqueue_ring virtqueue_split = {
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
