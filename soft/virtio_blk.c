/* SPDX-License-Identifier: MIT */
/*
 * The virtio-blk driver: from a device that is attached to a disk that takes
 * requests. Which steps the daemon sees, and in which order, is as in Linux 7.3:
 * register_virtio_device() and virtio_dev_probe() of drivers/virtio/virtio.c,
 * virtio_vdpa_setup_vq(), and virtblk_probe(), virtblk_read_limits() and
 * virtblk_setup_cmd() of drivers/block/virtio_blk.c.
 *
 * Where Linux would go on with a disk whose daemon refused DRIVER_OK, and wait
 * for ever, this one gives up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/virtio_blk.h"

#define BIT(n) (1ull << (n))

/*
 * What virtio-blk takes, and the ring with it (vring_transport_features()). Of
 * NOTIFICATION_DATA a vDPA device gets no data, and ORDER_PLATFORM asks for the
 * barriers that are there. Linux takes IN_ORDER and ZONED as well.
 */
#define DRIVEN                                                                                     \
	(BIT(VIRTIO_BLK_F_SEG_MAX) | BIT(VIRTIO_BLK_F_SIZE_MAX) | BIT(VIRTIO_BLK_F_GEOMETRY) |     \
		BIT(VIRTIO_BLK_F_RO) | BIT(VIRTIO_BLK_F_BLK_SIZE) | BIT(VIRTIO_BLK_F_FLUSH) |      \
		BIT(VIRTIO_BLK_F_TOPOLOGY) | BIT(VIRTIO_BLK_F_MQ) | BIT(VIRTIO_BLK_F_DISCARD) |    \
		BIT(VIRTIO_BLK_F_WRITE_ZEROES) | BIT(VIRTIO_BLK_F_SECURE_ERASE) |                  \
		BIT(VIRTIO_RING_F_INDIRECT_DESC) | BIT(VIRTIO_RING_F_EVENT_IDX) |                  \
		BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_F_ACCESS_PLATFORM) |                          \
		BIT(VIRTIO_F_RING_PACKED) | BIT(VIRTIO_F_ORDER_PLATFORM) |                         \
		BIT(VIRTIO_F_NOTIFICATION_DATA))

#define SEGMENT_SIZE	65536u /* BLK_MAX_SEGMENT_SIZE: where the disk says 0 */
#define SEGMENT_LEAST	4096u  /* BLK_MIN_SEGMENT_SIZE */
#define BLOCK_SIZE_MOST 65536u /* BLK_MAX_BLOCK_SIZE */

static void add_status(struct dmamap_blk *blk, uint8_t status)
{
	soft_vduse_set_status(blk->driver, soft_vduse_get_status(blk->driver) | status);
}

/* virtio_features_ok(): a device of before 1.0 is not asked. */
static int negotiate(struct dmamap_blk *blk, const struct dmamap_blk_config *config)
{
	uint64_t features = blk->driver->device->features & DRIVEN & ~config->refuse;

	soft_vduse_set_features(blk->driver, features);
	blk->info.features = features;
	if (!(features & BIT(VIRTIO_F_VERSION_1)))
		return 0;
	add_status(blk, VIRTIO_CONFIG_S_FEATURES_OK);
	if (soft_vduse_get_status(blk->driver) & VIRTIO_CONFIG_S_FEATURES_OK)
		return 0;
	return SOFT_REFUSE(vduse_feature_refused, ENODEV, "its daemon said so: FEATURES_OK",
		features, VIRTIO_F_VERSION_1);
}

static bool has(const struct dmamap_blk *blk, unsigned feature)
{
	return blk->info.features & BIT(feature);
}

/* What vdpa_dev_probe() has against a device, before its driver does anything. */
static int check_device(struct soft_vduse_driver *driver)
{
	struct soft_vduse_device *device = driver->device;

	if (device->device_id != VIRTIO_ID_BLOCK)
		return SOFT_REFUSE(vduse_id, ENODEV, NULL, device->device_id);
	for (uint32_t i = 0; i < device->n_queues; i++)
		if (soft_vduse_queue_size(driver, i))
			return 0;
	return SOFT_REFUSE(vduse_queue_unset, EINVAL, device->name, 0);
}

/* init_vq() and virtblk_read_limits() */
static int read_config(struct dmamap_blk *blk, const struct dmamap_blk_config *config)
{
	struct virtio_blk_config *is = &blk->config;
	struct dmamap_blk_info *info = &blk->info;
	struct dmamap_bounce_info bounce;
	unsigned generation;

	do {
		generation = atomic_load(&blk->driver->device->generation);
		soft_vduse_get_config(blk->driver, 0, is, sizeof(*is));
	} while (generation != atomic_load(&blk->driver->device->generation));
	dmamap_bounce_info(soft_vduse_queue_bounce(blk->driver, 0), &bounce);
	blk->unit = bounce.unit_size;
	blk->largest = bounce.units * bounce.unit_size;
	info->sectors = is->capacity;
	info->block_size = has(blk, VIRTIO_BLK_F_BLK_SIZE) && is->blk_size ? is->blk_size : SECTOR;
	info->read_only = has(blk, VIRTIO_BLK_F_RO);
	info->segments = has(blk, VIRTIO_BLK_F_SEG_MAX) && is->seg_max ? is->seg_max : 1;
	/* Linux has it that all of a ring can be one request. */
	if (info->segments > UINT16_MAX - 2)
		info->segments = UINT16_MAX - 2;
	info->segment_size = bounce.largest;
	if (has(blk, VIRTIO_BLK_F_SIZE_MAX)) {
		uint32_t most = is->size_max ? is->size_max : SEGMENT_SIZE;

		info->segment_size = most < info->segment_size ? most : info->segment_size;
	}
	blk->n_queues = has(blk, VIRTIO_BLK_F_MQ) ? is->num_queues : 1;
	if (!blk->n_queues)
		return SOFT_REFUSE(vduse_value, EINVAL, "num_queues", 0, 1, UINT16_MAX);
	if (config->queues && config->queues < blk->n_queues)
		blk->n_queues = config->queues;
	return 0;
}

/* virtblk_read_limits() and blk_validate_limits(), which see the disk when its queues are there. */
static int check_limits(const struct dmamap_blk *blk)
{
	const struct virtio_blk_config *is = &blk->config;
	uint32_t size = blk->info.block_size;
	const struct {
		const char *what;
		uint64_t value;
		bool good;
	} erase[] = {
		{"secure_erase_sector_alignment", is->secure_erase_sector_alignment,
			is->secure_erase_sector_alignment},
		{"max_secure_erase_sectors", is->max_secure_erase_sectors,
			is->max_secure_erase_sectors},
		{"max_secure_erase_seg", is->max_secure_erase_seg, is->max_secure_erase_seg},
	};

	for (unsigned i = 0; i < 3 && has(blk, VIRTIO_BLK_F_SECURE_ERASE); i++)
		if (!erase[i].good)
			return SOFT_REFUSE(vduse_value, EINVAL, erase[i].what, 0, 1, UINT32_MAX);
	if (size < SECTOR || size > BLOCK_SIZE_MOST || size & (size - 1))
		return SOFT_REFUSE(vduse_value, EINVAL, "blk_size", size, SECTOR, BLOCK_SIZE_MOST);
	if (has(blk, VIRTIO_BLK_F_SIZE_MAX) && is->size_max && is->size_max < SEGMENT_LEAST)
		return SOFT_REFUSE(
			vduse_value, EINVAL, "size_max", is->size_max, SEGMENT_LEAST, UINT32_MAX);
	return 0;
}

/*
 * create_affinity_masks(): each queue has its part of the processors, as on a
 * machine whose processors are all alike; where there are more queues than
 * processors, the last ones have them all.
 */
static void spread(struct dmamap_blk *blk)
{
	unsigned cpus = soft_vduse_cpus(), first = 0;
	unsigned groups = blk->n_queues < cpus ? blk->n_queues : cpus;
	cpu_set_t mask;

	for (unsigned i = 0; i < blk->n_queues; i++) {
		unsigned n = cpus / groups + (i < cpus % groups);

		if (i < groups) {
			CPU_ZERO(&mask);
			for (unsigned end = first + n; first < end; first++)
				CPU_SET(first, &mask);
		} else {
			soft_vduse_cpus_all(&mask);
		}
		soft_vduse_set_queue_affinity(blk->driver, i, &mask);
	}
}

static void config_changed(void *who)
{
	/* The size is read when it is asked for. */
	(void)who;
}

static int start_queues(struct dmamap_blk *blk)
{
	struct soft_vduse_callback callback = {config_changed, blk};
	unsigned started = 0;
	int error = 0;

	blk->queues = calloc(blk->n_queues, sizeof(*blk->queues));
	if (!blk->queues)
		return SOFT_REFUSE(no_memory, ENOMEM, "queues", blk->n_queues);
	for (; started < blk->n_queues && !error; started++) {
		error = blk_queue_start(blk, started);
		if (error)
			break;
	}
	blk->info.queues = blk->n_queues;
	if (!error) {
		blk->info.queue_size = blk->queues[0].ring.num;
		spread(blk);
		soft_vduse_set_config_callback(blk->driver, &callback);
		error = check_limits(blk);
	}
	if (!error) {
		add_status(blk, VIRTIO_CONFIG_S_DRIVER_OK);
		if (soft_vduse_get_status(blk->driver) & VIRTIO_CONFIG_S_DRIVER_OK)
			return 0;
		error = SOFT_REFUSE(
			vduse_refused, ENODEV, blk->driver->device->name, VDUSE_SET_STATUS);
	}
	for (unsigned i = 0; i < started; i++) {
		blk_queue_stop(&blk->queues[i]);
		blk_queue_destroy(&blk->queues[i]);
	}
	free(blk->queues);
	return error;
}

int dmamap_blk_probe(
	struct dmamap_vdpa *vdpa, const struct dmamap_blk_config *given, struct dmamap_blk **out)
{
	static const struct dmamap_blk_config usual;
	struct soft_vduse_driver *driver = soft_vduse_driver_from(vdpa);
	const struct dmamap_blk_config *config = given ? given : &usual;
	struct dmamap_blk *blk;
	int error = check_device(driver);

	if (error)
		return error;
	if (atomic_exchange(&driver->bound, true))
		return SOFT_REFUSE(vduse_bound, EBUSY, driver->device->name, driver->device->key);
	blk = calloc(1, sizeof(*blk));
	if (!blk) {
		error = SOFT_REFUSE(no_memory, ENOMEM, "a disk", 0);
		goto unbind;
	}
	blk->driver = driver;
	soft_vduse_reset(driver);
	add_status(blk, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	add_status(blk, VIRTIO_CONFIG_S_DRIVER);
	error = negotiate(blk, config);
	if (!error)
		error = read_config(blk, config);
	if (!error)
		error = start_queues(blk);
	if (!error) {
		*out = blk;
		return 0;
	}
	if (dmamap_vdpa_broken(vdpa))
		error = SOFT_REFUSE(vduse_broken, ENODEV, driver->device->name, 0);
	else
		add_status(blk, VIRTIO_CONFIG_S_FAILED);
	free(blk);
unbind:
	atomic_store(&driver->bound, false);
	return error;
}

void dmamap_blk_remove(struct dmamap_blk *blk)
{
	if (!blk)
		return;
	soft_vduse_reset(blk->driver);
	for (unsigned i = 0; i < blk->n_queues; i++)
		blk_queue_stop(&blk->queues[i]);
	for (unsigned i = 0; i < blk->n_queues; i++)
		blk_queue_destroy(&blk->queues[i]);
	/* It is there again, for the next driver. */
	add_status(blk, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	atomic_store(&blk->driver->bound, false);
	free(blk->queues);
	free(blk);
}

void dmamap_blk_break(struct dmamap_blk *blk)
{
	for (unsigned i = 0; i < blk->n_queues; i++)
		blk_queue_break(&blk->queues[i]);
}

void dmamap_blk_info(const struct dmamap_blk *blk, struct dmamap_blk_info *info)
{
	*info = blk->info;
	soft_vduse_get_config(blk->driver, 0, &info->sectors, sizeof(info->sectors));
}

void dmamap_blk_counters(struct dmamap_blk *blk, struct dmamap_blk_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	for (unsigned i = 0; i < blk->n_queues; i++) {
		struct blk_queue *queue = &blk->queues[i];
		const struct dmamap_blk_counters *one = &queue->counters;

		pthread_mutex_lock(&queue->lock);
		counters->submitted += one->submitted;
		counters->completed += one->completed;
		counters->failed += one->failed;
		counters->requeued += one->requeued;
		counters->ring_full += one->ring_full;
		counters->kicks += one->kicks;
		counters->bad += one->bad;
		pthread_mutex_unlock(&queue->lock);
		counters->interrupts +=
			atomic_load_explicit(&queue->interrupts, memory_order_relaxed);
	}
}

/* ----------------------------------------------------------------- requests */

static const struct {
	uint32_t type;
	bool to_device; /* the data */
	bool ranges;
	bool sectors; /* data is whole ones */
	uint32_t flags;
} ops[] = {
	[DMAMAP_BLK_READ] = {VIRTIO_BLK_T_IN, false, false, true, 0},
	[DMAMAP_BLK_WRITE] = {VIRTIO_BLK_T_OUT, true, false, true, 0},
	[DMAMAP_BLK_FLUSH] = {VIRTIO_BLK_T_FLUSH, true, false, false, 0},
	[DMAMAP_BLK_DISCARD] = {VIRTIO_BLK_T_DISCARD, true, true, false, 0},
	[DMAMAP_BLK_WRITE_ZEROES] = {VIRTIO_BLK_T_WRITE_ZEROES, true, true, false, 0},
	[DMAMAP_BLK_UNMAP] = {VIRTIO_BLK_T_WRITE_ZEROES, true, true, false,
		VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP},
	[DMAMAP_BLK_GET_ID] = {VIRTIO_BLK_T_GET_ID, false, false, false, 0},
};

/* What a mapping takes of the bounce buffer. */
static uint64_t units_of(const struct dmamap_blk *blk, uint64_t size)
{
	uint64_t units = (size + blk->unit - 1) / blk->unit;

	if (units > 1 && units < 32)
		units = 1ull << (64 - __builtin_clzll(units - 1));
	return units * blk->unit;
}

static int check_size(const struct dmamap_blk *blk, const struct blk_state *state, uint64_t pieces)
{
	uint64_t largest = state->segment < state->size ? state->segment : state->size;
	uint64_t takes = units_of(blk, largest) * pieces + 2 * blk->unit +
			 units_of(blk, (pieces + 2) * sizeof(struct vring_desc));

	if (pieces > blk->info.segments || largest > blk->info.segment_size || takes > blk->largest)
		return SOFT_REFUSE(vduse_value, E2BIG, "the pieces' number, of the largest bytes,",
			pieces, largest, blk->info.segments);
	return 0;
}

static int prepare(struct dmamap_blk *blk, struct dmamap_blk_request *request)
{
	struct blk_state *state = blk_state(request);
	uint64_t pieces = 0;
	int error;

	memset(state, 0, sizeof(*state));
	if ((unsigned)request->op >= sizeof(ops) / sizeof(ops[0]))
		return SOFT_REFUSE(value, EINVAL, "op", (unsigned)request->op);
	state->header.type = ops[request->op].type;
	state->to_device = ops[request->op].to_device;
	state->data = request->data;
	state->size = request->data ? request->size : 0;
	if (ops[request->op].ranges && !request->data) {
		state->range.sector = request->sector;
		state->range.num_sectors = request->sectors;
		state->range.flags = ops[request->op].flags;
		state->data = &state->range;
		state->size = sizeof(state->range);
	} else if (ops[request->op].sectors) {
		state->header.sector = request->sector;
		if (!state->size || state->size % SECTOR)
			return SOFT_REFUSE(misaligned, EINVAL, "size", state->size, SECTOR);
	}
	state->segment = request->segment ? request->segment : state->size;
	if (state->size)
		pieces = (state->size + (uint64_t)state->segment - 1) / state->segment;
	error = check_size(blk, state, pieces);
	if (error)
		return error;
	state->table = state->few;
	if (pieces + 2 > FEW_PIECES && blk->queues[0].ring.indirect)
		state->table = calloc(pieces + 2, sizeof(*state->table));
	return state->table ? 0 : SOFT_REFUSE(no_memory, ENOMEM, "a request", pieces);
}

int dmamap_blk_submit(struct dmamap_blk *blk, unsigned queue, struct dmamap_blk_request *request)
{
	int error;

	if (queue >= blk->n_queues)
		return SOFT_REFUSE(vduse_queue, EINVAL, NULL, queue, blk->n_queues);
	error = prepare(blk, request);
	if (!error)
		blk_queue_submit(&blk->queues[queue], request);
	return error;
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool done; /* lock */
};

static void wake_waiter(struct dmamap_blk_request *request)
{
	struct waiter *waiter = request->owner;

	pthread_mutex_lock(&waiter->lock);
	waiter->done = true;
	pthread_cond_signal(&waiter->wake);
	pthread_mutex_unlock(&waiter->lock);
}

int dmamap_blk_do(struct dmamap_blk *blk, unsigned queue, struct dmamap_blk_request *request)
{
	struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
	int error;

	request->done = wake_waiter;
	request->owner = &waiter;
	error = dmamap_blk_submit(blk, queue, request);
	if (error)
		return error;
	pthread_mutex_lock(&waiter.lock);
	while (!waiter.done)
		pthread_cond_wait(&waiter.wake, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	pthread_cond_destroy(&waiter.wake);
	pthread_mutex_destroy(&waiter.lock);
	return request->result;
}
