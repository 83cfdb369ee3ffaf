/* SPDX-License-Identifier: MIT */
/*
 * What the virtqueue's files share. The rings are the driver's memory: loads
 * and stores on them are single and atomic where the driver may write at the
 * same time, and whatever was loaded is checked before it is used. The log is
 * the device's own memory, yet may come from a file: what a resumed queue finds
 * in it is checked as well.
 */
#ifndef DMAMAP_CLIENT_VIRTQUEUE_H
#define DMAMAP_CLIENT_VIRTQUEUE_H

#include "abi/virtio.h"
#include "dmamap/virtqueue.h"

#define REGIONS 4u /* bounce memory, and a queue's areas */

enum log_state { LOG_FREE, LOG_TAKEN, LOG_GIVEN, LOG_STATES };

/*
 * One request. Everything else is written before @word, which is one store, so
 * that a process killed between any two stores leaves a log that is whole.
 * @word: order of taking << 2 | enum log_state
 * @sequence: LOG_GIVEN: the how many-th to be given back
 * @written: LOG_GIVEN: its length
 * @id: what the driver calls it
 * @count: ring entries that it takes: packed only, else 1
 */
struct log_entry {
	uint64_t word;
	uint64_t sequence;
	uint32_t written;
	uint16_t id;
	uint16_t count;
};

/*
 * @magic: LOG_MAGIC once the rest counts
 * @taken: order of the last that was taken << 16 | place after it. An entry
 *	whose order is one above was taken, though this was not yet written
 * @given: how many were published << 16 | place after them, likewise
 */
struct log_header {
	uint64_t magic;
	uint32_t size;
	uint32_t packed;
	uint64_t taken;
	uint64_t given;
	uint64_t reserved[4];
};

#define LOG_MAGIC 0x31676f6c71762d64ull

/*
 * The descriptors of a packed queue's requests: their ring entries may be
 * overwritten while they are in flight. The first few lie together.
 */
#define SAVED_NEAR 4u

/*
 * @available, @used: places; packed ones as WRAP | place
 * @seen: split: the available index as last loaded
 * @staged: how many were given and not published; their slots in @staged_slots
 * @staged_used: the place after them
 * @free_slots: packed: a stack of slots; split: NULL, a slot is its head's index
 * @n_free: how many slots are not in flight
 * @ring_free: packed: ring entries that are not in flight
 * @resumed: slots to be handed out again, in order; @n_resumed, @next_resumed
 * @broken: the ring made no sense
 */
struct dmamap_virtqueue {
	struct dmamap_dma *dma;
	const struct virtqueue_ring *ring;
	uint32_t size;
	bool indirect;
	bool event_index;
	bool broken;
	uint16_t available;
	uint16_t used;
	uint16_t seen;
	uint16_t staged_used;
	uint32_t staged;
	uint32_t in_flight;
	union {
		struct vring_desc *split_desc;
		struct vring_packed_desc *packed_desc;
	};
	union {
		struct vring_avail *split_avail;
		struct vring_packed_desc_event *driver_event;
	};
	union {
		struct vring_used *split_used;
		struct vring_packed_desc_event *device_event;
	};
	struct log_header *log;
	struct log_entry *entries;
	struct vring_packed_desc *saved_near;
	struct vring_packed_desc *saved_far;
	uint64_t order;
	uint64_t sequence;
	uint16_t first_flags;
	uint32_t ring_free;
	uint32_t n_free;
	uint16_t *free_slots;
	uint16_t *staged_slots;
	uint16_t *resumed;
	uint32_t n_resumed;
	uint32_t next_resumed;
	struct dmamap_dma_region regions[REGIONS];
	unsigned n_regions;
	unsigned next_region;
	struct dmamap_virtqueue_config config;
	void *private_log;
	uint64_t private_log_size;
};

#define WRAP 0x8000u /* in a packed place */

/*
 * What differs between split and packed.
 * @areas: bytes of the three areas, and their alignment
 * @start: take @used from the ring where it is kept there
 * @take: as dmamap_virtqueue_take(), but for resumed ones
 * @stage: write the used entry of @slot at @staged_used, and move that on
 * @show: make the staged ones visible
 * @shown: a log is resumed: whether those staged from @used on, @count entries
 *	of the ring in all, were shown already; -EPROTO neither is so
 * @interrupt: whether the driver wants one for going from @old to @used
 */
struct virtqueue_ring {
	void (*areas)(const struct dmamap_virtqueue *queue, uint64_t bytes[3], uint32_t align[3]);
	void (*start)(struct dmamap_virtqueue *queue);
	int (*take)(struct dmamap_virtqueue *queue, uint32_t *slot, struct dmamap_reason *why);
	int (*walk)(struct dmamap_virtqueue *queue, struct dmamap_chain *chain,
		struct dmamap_reason *why);
	void (*stage)(struct dmamap_virtqueue *queue, const struct log_entry *entry);
	void (*show)(struct dmamap_virtqueue *queue);
	int (*shown)(const struct dmamap_virtqueue *queue, uint32_t count);
	bool (*interrupt)(struct dmamap_virtqueue *queue, uint16_t old);
	bool (*waiting)(struct dmamap_virtqueue *queue);
	void (*listen)(struct dmamap_virtqueue *queue);
	void (*mute)(struct dmamap_virtqueue *queue);
};

extern const struct virtqueue_ring virtqueue_split;
extern const struct virtqueue_ring virtqueue_packed;

/* A place @count entries on in a packed ring. */
static inline uint16_t place_after(
	const struct dmamap_virtqueue *queue, uint16_t place, uint32_t count)
{
	uint32_t index = (place & ~WRAP) + count;

	if (index < queue->size)
		return (uint16_t)(index | (place & WRAP));
	return (uint16_t)((index - queue->size) | (~place & WRAP));
}

/* ------------------------------------------------------------------- memory */

/* The address of @iova and, in *@run, how many bytes lie on from there; NULL: not mapped so. */
unsigned char *virtqueue_address(
	struct dmamap_virtqueue *queue, uint64_t iova, unsigned prot, uint64_t *run);

/* A chain being put together; errors that leave its end certain are kept, not returned. */
struct walk {
	struct dmamap_virtqueue *queue;
	struct dmamap_chain *chain;
	struct dmamap_reason *why;
	uint32_t steps;
	int error;
};

/* Returns -errno where there is no going on. */
int walk_add(struct walk *walk, uint64_t iova, uint32_t length, bool writable);
/* The indirect table at @iova: its address, or NULL and walk->error. */
const unsigned char *walk_table(struct walk *walk, uint64_t iova, uint32_t length, bool allowed);

/* Reads 16 bytes of the driver's once: what was checked is what is used. */
#define LOAD_ONCE(to, from)                                                                        \
	do {                                                                                       \
		__builtin_memcpy(&(to), (from), sizeof(to));                                       \
		__asm__ volatile("" : "+m"(to));                                                   \
	} while (0)

/* ---------------------------------------------------------------------- log */

static inline enum log_state log_state(const struct log_entry *entry)
{
	return (enum log_state)(entry->word & 3);
}

/* The order of two stores, as a killed process leaves them. */
static inline void log_barrier(void)
{
	__asm__ volatile("" : : : "memory");
}

void log_attach(struct dmamap_virtqueue *queue, void *log);
void log_start(struct dmamap_virtqueue *queue);
int log_resume(struct dmamap_virtqueue *queue, struct dmamap_reason *why);

/* Where descriptor @index of a packed queue's @slot is kept. */
static inline struct vring_packed_desc *log_saved(
	struct dmamap_virtqueue *queue, uint32_t slot, uint32_t index)
{
	if (index < SAVED_NEAR)
		return &queue->saved_near[(size_t)slot * SAVED_NEAR + index];
	return &queue->saved_far[(size_t)slot * queue->size + index];
}

/* @slot was taken: @place is the one after it. */
static inline void log_taken(
	struct dmamap_virtqueue *queue, uint32_t slot, uint16_t id, uint16_t count, uint16_t place)
{
	struct log_entry *entry = &queue->entries[slot];

	entry->id = id;
	entry->count = count;
	queue->order++;
	log_barrier();
	entry->word = queue->order << 2 | LOG_TAKEN;
	log_barrier();
	queue->log->taken = queue->order << 16 | place;
	log_barrier();
}

/* -------------------------------------------------------------------- reasons */

extern const struct dmamap_reason_kind virtqueue_reason_jump;
extern const struct dmamap_reason_kind virtqueue_reason_head;
extern const struct dmamap_reason_kind virtqueue_reason_twice;
extern const struct dmamap_reason_kind virtqueue_reason_next;
extern const struct dmamap_reason_kind virtqueue_reason_loop;
extern const struct dmamap_reason_kind virtqueue_reason_long;
extern const struct dmamap_reason_kind virtqueue_reason_log;

#endif
