/* SPDX-License-Identifier: MIT */
/*
 * The log of what is in flight, and how a queue goes on from it. Two counters
 * in the header say how far taking and publishing had got; each is written
 * after the entries that it counts, so that after a kill it is right, or late
 * by one step that the entries (taking) or the ring (publishing) tell of.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/virtqueue.h"

const struct dmamap_reason_kind virtqueue_reason_log = {.name = "virtqueue_log",
	.text = "the log of what was in flight does not fit: {t} ({0d}, {1d})"};

static int unfit(struct dmamap_reason *why, const char *what, uint64_t first, uint64_t second)
{
	return DMAMAP_REFUSE(why, &virtqueue_reason_log, EPROTO, what, first, second);
}

bool dmamap_virtqueue_log_live(const void *log)
{
	return ((const struct log_header *)log)->magic == LOG_MAGIC;
}

void dmamap_virtqueue_log_clear(void *log)
{
	((struct log_header *)log)->magic = 0;
}

void log_attach(struct dmamap_virtqueue *queue, void *log)
{
	unsigned char *at = log;

	queue->log = log;
	at += sizeof(struct log_header);
	queue->entries = (struct log_entry *)(void *)at;
	if (!queue->config.packed)
		return;
	at += (size_t)queue->size * sizeof(struct log_entry);
	queue->saved_near = (struct vring_packed_desc *)(void *)at;
	queue->saved_far = queue->saved_near + (size_t)queue->size * SAVED_NEAR;
}

static void free_all(struct dmamap_virtqueue *queue)
{
	queue->n_free = 0;
	for (uint32_t slot = queue->size; slot--;)
		if (log_state(&queue->entries[slot]) == LOG_FREE)
			queue->free_slots[queue->n_free++] = (uint16_t)slot;
}

void log_start(struct dmamap_virtqueue *queue)
{
	queue->log->magic = 0;
	log_barrier();
	memset(queue->entries, 0, (size_t)queue->size * sizeof(struct log_entry));
	queue->log->size = queue->size;
	queue->log->packed = queue->config.packed;
	queue->log->taken = queue->available;
	queue->log->given = queue->used;
	log_barrier();
	queue->log->magic = LOG_MAGIC;
	queue->staged_used = queue->used;
	queue->ring_free = queue->size;
	free_all(queue);
}

/* --------------------------------------------------------------------- resuming */

/* qsort hands nothing on. */
static _Thread_local const struct log_entry *sorted;

static int by_word(const void *a, const void *b)
{
	uint64_t x = sorted[*(const uint16_t *)a].word, y = sorted[*(const uint16_t *)b].word;

	return x < y ? -1 : x > y;
}

static int by_sequence(const void *a, const void *b)
{
	uint64_t x = sorted[*(const uint16_t *)a].sequence;
	uint64_t y = sorted[*(const uint16_t *)b].sequence;

	return x < y ? -1 : x > y;
}

/* The slots in @state, in order, to @slots; how many. Entries that cannot be are -EPROTO. */
static int collect(const struct dmamap_virtqueue *queue, enum log_state state, uint16_t *slots,
	struct dmamap_reason *why)
{
	int n = 0;

	for (uint32_t slot = 0; slot < queue->size; slot++) {
		const struct log_entry *entry = &queue->entries[slot];

		if (log_state(entry) == LOG_STATES)
			return unfit(why, "an entry's state", slot, entry->word);
		if (log_state(entry) != state)
			continue;
		if (!entry->count || entry->count > (queue->config.packed ? queue->size : 1) ||
			(!queue->config.packed && entry->id != slot))
			return unfit(why, "an entry's descriptors", slot, entry->count);
		slots[n++] = (uint16_t)slot;
	}
	sorted = queue->entries;
	qsort(slots, (size_t)n, sizeof(*slots), state == LOG_GIVEN ? by_sequence : by_word);
	return n;
}

/* How far taking had got, from the header and the one entry that it may not know yet. */
static void resume_taking(struct dmamap_virtqueue *queue, int n)
{
	queue->order = queue->log->taken >> 16;
	queue->available = (uint16_t)queue->log->taken;
	if (n) {
		const struct log_entry *newest = &queue->entries[queue->resumed[n - 1]];

		if (newest->word >> 2 == queue->order + 1) {
			queue->order++;
			queue->available =
				queue->config.packed
					? place_after(queue, queue->available, newest->count)
					: (uint16_t)(queue->available + 1);
			queue->log->taken = queue->order << 16 | queue->available;
		}
	}
}

/*
 * What was given back: before the header's count, it was published. From there
 * on it is one batch, of which the ring says whether it was shown.
 */
static int resume_giving(struct dmamap_virtqueue *queue, int n, struct dmamap_reason *why)
{
	uint16_t *slots = queue->staged_slots;
	uint32_t count = 0;
	int first = 0, was_shown;

	queue->sequence = queue->log->given >> 16;
	queue->used = queue->staged_used = (uint16_t)queue->log->given;
	while (first < n && queue->entries[slots[first]].sequence < queue->sequence)
		queue->entries[slots[first++]].word &= ~(uint64_t)3;
	for (int i = first; i < n; i++) {
		if (queue->entries[slots[i]].sequence != queue->sequence + (uint64_t)(i - first))
			return unfit(why, "the count of those given back",
				queue->entries[slots[i]].sequence, queue->sequence);
		count += queue->entries[slots[i]].count;
	}
	was_shown = queue->ring->shown(queue, count);
	if (was_shown < 0)
		return unfit(why, "the ring's used index", queue->used, count);
	if (first == n)
		return 0;
	queue->sequence += (uint64_t)(n - first);
	if (was_shown) {
		queue->used = queue->config.packed ? place_after(queue, queue->used, count)
						   : (uint16_t)(queue->used + count);
		queue->staged_used = queue->used;
		queue->log->given = queue->sequence << 16 | queue->used;
		log_barrier();
		for (int i = first; i < n; i++)
			queue->entries[slots[i]].word &= ~(uint64_t)3;
		return 0;
	}
	for (int i = first; i < n; i++) {
		queue->ring->stage(queue, &queue->entries[slots[i]]);
		slots[queue->staged++] = slots[i];
	}
	return 0;
}

/* Entries of the ring that requests hold. */
static uint32_t in_use(const struct dmamap_virtqueue *queue)
{
	uint32_t n = 0;

	for (uint32_t slot = 0; slot < queue->size; slot++)
		if (log_state(&queue->entries[slot]) != LOG_FREE)
			n += queue->entries[slot].count;
	return n;
}

int log_resume(struct dmamap_virtqueue *queue, struct dmamap_reason *why)
{
	struct log_header *log = queue->log;
	uint32_t busy;
	int taken, given, error;

	if (log->magic != LOG_MAGIC || log->size != queue->size ||
		log->packed != queue->config.packed)
		return unfit(why, "it is another queue's", log->size, queue->size);
	if (queue->config.packed &&
		((log->taken & 0x7fff) >= queue->size || (log->given & 0x7fff) >= queue->size))
		return unfit(why, "its places", log->taken & 0x7fff, log->given & 0x7fff);
	taken = collect(queue, LOG_TAKEN, queue->resumed, why);
	if (taken < 0)
		return taken;
	given = collect(queue, LOG_GIVEN, queue->staged_slots, why);
	if (given < 0)
		return given;
	/* Before a place is counted on by it. */
	busy = in_use(queue);
	if (busy > queue->size)
		return unfit(why, "more in flight than there are entries", busy, queue->size);
	resume_taking(queue, taken);
	error = resume_giving(queue, given, why);
	if (error)
		return error;
	queue->n_resumed = (uint32_t)taken;
	queue->in_flight = (uint32_t)taken + queue->staged;
	queue->ring_free = queue->size - in_use(queue);
	free_all(queue);
	return 0;
}
