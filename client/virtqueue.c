/* SPDX-License-Identifier: MIT */
/*
 * A virtqueue as its user sees it: taking, giving back and publishing, the same
 * for both kinds of ring. A request goes through the log's three states: taken
 * (to be done again after a crash), given (done, and only to be told of again),
 * free once the driver has been shown it.
 */
#include "client/virtqueue.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SIZE_LIMIT 32768u

#define KIND(id, sentence)                                                                         \
	static const struct dmamap_reason_kind id = {.name = "virtqueue_" #id, .text = sentence}

KIND(bad_size, "a queue cannot have {0d} entries");
KIND(unaligned, "area {t} at iova {0x} is not a multiple of {1d}");
KIND(unmapped,
	"area {t} at iova {0x}, {1d} bytes, is not mapped in one piece, with the rights it needs");
KIND(stopped, "the ring made no sense before, and was not reset since");

/*
 * Two queues' threads may use the same memory one after the other: a driver
 * takes it back from one and gives it to the other. ThreadSanitizer does not see
 * that order where the driver looks at the rings through another mapping.
 */
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
static char through_driver;
#define FROM_DRIVER() __tsan_acquire(&through_driver)
#define TO_DRIVER()   __tsan_release(&through_driver)
#else
#define FROM_DRIVER() ((void)0)
#define TO_DRIVER()   ((void)0)
#endif

static const char *const area_names[3] = {"descriptors", "driver", "device"};

uint64_t dmamap_virtqueue_log_dense(uint32_t size, bool packed)
{
	uint64_t near = packed ? (uint64_t)size * SAVED_NEAR * sizeof(struct vring_packed_desc) : 0;

	return sizeof(struct log_header) + (uint64_t)size * sizeof(struct log_entry) + near;
}

uint64_t dmamap_virtqueue_log_size(uint32_t size, bool packed)
{
	uint64_t far = packed ? (uint64_t)size * size * sizeof(struct vring_packed_desc) : 0;

	return dmamap_virtqueue_log_dense(size, packed) + far;
}

/* ------------------------------------------------------------------- memory */

unsigned char *virtqueue_address(
	struct dmamap_virtqueue *queue, uint64_t iova, unsigned prot, uint64_t *run)
{
	struct dmamap_dma_region *region = NULL, found;

	for (unsigned i = 0; i < queue->n_regions; i++) {
		if (iova - queue->regions[i].first <=
				queue->regions[i].last - queue->regions[i].first &&
			iova >= queue->regions[i].first) {
			region = &queue->regions[i];
			break;
		}
	}
	if (!region) {
		if (queue->dma->find(queue->dma, iova, &found))
			return NULL;
		region = &queue->regions[queue->next_region];
		*region = found;
		queue->next_region = (queue->next_region + 1) % REGIONS;
		if (queue->n_regions < REGIONS)
			queue->n_regions++;
	}
	if ((region->prot & prot) != prot)
		return NULL;
	/* 0 stands for all 2^64, which nothing asks for: a length has 32 bits. */
	*run = region->last - iova + 1;
	if (!*run)
		*run = UINT64_MAX;
	return region->va + (iova - region->first);
}

static int map_area(struct dmamap_virtqueue *queue, unsigned index, uint64_t iova, uint64_t bytes,
	uint32_t align, void **address, struct dmamap_reason *why)
{
	/* The device writes to its own area only. */
	unsigned prot = DMAMAP_READ;
	uint64_t run;

	if (index == 2 || (index == 0 && queue->config.packed))
		prot |= DMAMAP_WRITE;
	if (iova & (align - 1))
		return DMAMAP_REFUSE(why, &unaligned, EINVAL, area_names[index], iova, align);
	*address = virtqueue_address(queue, iova, prot, &run);
	if (!*address || run < bytes)
		return DMAMAP_REFUSE(why, &unmapped, EFAULT, area_names[index], iova, bytes);
	return 0;
}

static int map_areas(struct dmamap_virtqueue *queue, struct dmamap_reason *why)
{
	const struct dmamap_virtqueue_config *config = &queue->config;
	uint64_t bytes[3];
	uint32_t align[3];
	void *address[3];
	int error;

	queue->n_regions = queue->next_region = 0;
	queue->ring->areas(queue, bytes, align);
	error = map_area(queue, 0, config->descriptors, bytes[0], align[0], &address[0], why);
	if (!error)
		error = map_area(queue, 1, config->driver, bytes[1], align[1], &address[1], why);
	if (!error)
		error = map_area(queue, 2, config->device, bytes[2], align[2], &address[2], why);
	if (error)
		return error;
	queue->split_desc = address[0];
	queue->split_avail = address[1];
	queue->split_used = address[2];
	return 0;
}

int dmamap_virtqueue_remap(struct dmamap_virtqueue *queue, struct dmamap_reason *why)
{
	int error = map_areas(queue, why);

	if (error)
		queue->broken = true;
	return error;
}

/* ------------------------------------------------------- creating, destroying */

static int check_size(const struct dmamap_virtqueue_config *config, struct dmamap_reason *why)
{
	uint32_t size = config->size;

	if (!size || size > SIZE_LIMIT || (!config->packed && (size & (size - 1))))
		return DMAMAP_REFUSE(why, &bad_size, EINVAL, NULL, size);
	return 0;
}

static int allocate(struct dmamap_virtqueue *queue)
{
	const struct dmamap_virtqueue_config *config = &queue->config;
	void *log = config->log;

	queue->free_slots = calloc(queue->size, sizeof(uint16_t));
	queue->staged_slots = calloc(queue->size, sizeof(uint16_t));
	queue->resumed = calloc(queue->size, sizeof(uint16_t));
	if (!queue->free_slots || !queue->staged_slots || !queue->resumed)
		return -ENOMEM;
	if (!log) {
		queue->private_log_size = dmamap_virtqueue_log_size(queue->size, config->packed);
		log = mmap(NULL, queue->private_log_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (log == MAP_FAILED)
			return -ENOMEM;
		queue->private_log = log;
	}
	log_attach(queue, log);
	return 0;
}

int dmamap_virtqueue_create(const struct dmamap_virtqueue_config *config,
	struct dmamap_virtqueue **out, struct dmamap_reason *why)
{
	struct dmamap_virtqueue *queue;
	int error = check_size(config, why);

	*out = NULL;
	if (error)
		return error;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	*out = queue;
	queue->config = *config;
	queue->dma = config->dma;
	queue->ring = config->packed ? &virtqueue_packed : &virtqueue_split;
	queue->size = config->size;
	queue->indirect = config->indirect;
	queue->event_index = config->event_index;
	queue->available = config->available;
	queue->used = config->used;
	error = -EINVAL;
	if (config->packed && ((config->available & ~WRAP & 0xffff) >= config->size ||
				      (config->used & ~WRAP & 0xffff) >= config->size)) {
		DMAMAP_REFUSE(why, &virtqueue_reason_head, EINVAL, NULL,
			config->available & ~WRAP & 0xffff, config->size);
		goto destroy;
	}
	error = allocate(queue);
	if (!error)
		error = map_areas(queue, why);
	if (error)
		goto destroy;
	if (config->resume) {
		error = log_resume(queue, why);
		if (error)
			goto destroy;
	} else {
		queue->ring->start(queue);
		log_start(queue);
	}
	queue->seen = queue->available;
	return 0;

destroy:
	*out = NULL;
	dmamap_virtqueue_destroy(queue);
	return error;
}

void dmamap_virtqueue_destroy(struct dmamap_virtqueue *queue)
{
	if (!queue)
		return;
	if (queue->private_log)
		munmap(queue->private_log, queue->private_log_size);
	free(queue->free_slots);
	free(queue->staged_slots);
	free(queue->resumed);
	free(queue);
}

/* --------------------------------------------------------------- the requests */

int dmamap_virtqueue_take(struct dmamap_virtqueue *queue, uint32_t *slot, struct dmamap_reason *why)
{
	int taken;

	if (queue->next_resumed < queue->n_resumed) {
		*slot = queue->resumed[queue->next_resumed++];
		return 1;
	}
	if (queue->broken)
		return DMAMAP_REFUSE(why, &stopped, EPROTO, NULL, 0);
	taken = queue->ring->take(queue, slot, why);
	if (taken == 1) {
		queue->in_flight++;
		FROM_DRIVER();
	}
	return taken;
}

int dmamap_virtqueue_walk(
	struct dmamap_virtqueue *queue, struct dmamap_chain *chain, struct dmamap_reason *why)
{
	chain->n_read = chain->n_write = 0;
	chain->read_bytes = chain->write_bytes = 0;
	chain->last = NULL;
	return queue->ring->walk(queue, chain, why);
}

void dmamap_virtqueue_give(struct dmamap_virtqueue *queue, uint32_t slot, uint32_t written)
{
	struct log_entry *entry = &queue->entries[slot];

	entry->sequence = queue->sequence++;
	entry->written = written;
	log_barrier();
	entry->word = (entry->word & ~(uint64_t)3) | LOG_GIVEN;
	log_barrier();
	queue->ring->stage(queue, entry);
	queue->staged_slots[queue->staged++] = (uint16_t)slot;
}

bool dmamap_virtqueue_publish(struct dmamap_virtqueue *queue)
{
	uint16_t old = queue->used;

	if (!queue->staged)
		return false;
	TO_DRIVER();
	queue->ring->show(queue);
	log_barrier();
	queue->used = queue->staged_used;
	queue->log->given = queue->sequence << 16 | queue->used;
	log_barrier();
	for (uint32_t i = 0; i < queue->staged; i++) {
		struct log_entry *entry = &queue->entries[queue->staged_slots[i]];

		entry->word &= ~(uint64_t)3;
		if (queue->config.packed) {
			queue->ring_free += entry->count;
			queue->free_slots[queue->n_free++] = queue->staged_slots[i];
		}
	}
	queue->in_flight -= queue->staged;
	queue->staged = 0;
	/* The driver writes when to tell it, then looks; here it is the other way round. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return queue->ring->interrupt(queue, old);
}

bool dmamap_virtqueue_waiting(struct dmamap_virtqueue *queue)
{
	if (queue->next_resumed < queue->n_resumed)
		return true;
	return !queue->broken && queue->ring->waiting(queue);
}

bool dmamap_virtqueue_listen(struct dmamap_virtqueue *queue)
{
	queue->ring->listen(queue);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return dmamap_virtqueue_waiting(queue);
}

void dmamap_virtqueue_mute(struct dmamap_virtqueue *queue)
{
	queue->ring->mute(queue);
}

uint32_t dmamap_virtqueue_in_flight(const struct dmamap_virtqueue *queue)
{
	return queue->in_flight;
}

void dmamap_virtqueue_places(
	const struct dmamap_virtqueue *queue, uint16_t *available, uint16_t *used)
{
	*available = queue->available;
	*used = queue->used;
}
