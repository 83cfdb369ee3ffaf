/* SPDX-License-Identifier: MIT */
/*
 * The disk's life as its driver directs it. Status 0 stops every queue and
 * forgets all; DRIVER_OK starts them. A queue is made ready to run before the
 * kernel is told that the status was taken, so that a driver that set it up
 * wrongly hears of it, and runs after that, since only then it may interrupt.
 */
#include "device.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "abi/virtio.h"

#define VENDOR	     0x646d6170u /* "dmap" */
#define SEGMENT_MOST (1u << 20)
#define RANGE_MOST   (1u << 22) /* sectors: 2 GiB */
#define NEEDED	     ((1ull << VIRTIO_F_VERSION_1) | (1ull << VIRTIO_F_ACCESS_PLATFORM))

/*
 * @status: the last one that was taken; the message thread's
 * @stop: an eventfd that ends the message thread; @ended: one that it writes
 */
struct device {
	struct device_settings settings;
	const struct image *image;
	struct disk disk;
	struct dmamap_vduse *vduse;
	struct inflight inflight;
	struct queue_settings queue_settings;
	struct queue *queues;
	unsigned n_started;
	uint8_t status;
	bool running;
	uint64_t quiet_until;
	long taken_over;
	pthread_t thread;
	bool threaded;
	int stop;
	int ended;
	atomic_bool broken;
};

/* ----------------------------------------------------------------- what is offered */

static uint64_t bit(unsigned number)
{
	return 1ull << number;
}

static uint64_t features(const struct device *device)
{
	uint64_t offered = NEEDED | bit(VIRTIO_RING_F_EVENT_IDX) |
			   bit(VIRTIO_RING_F_INDIRECT_DESC) | bit(VIRTIO_BLK_F_SIZE_MAX) |
			   bit(VIRTIO_BLK_F_SEG_MAX) | bit(VIRTIO_BLK_F_BLK_SIZE) |
			   bit(VIRTIO_BLK_F_TOPOLOGY) | bit(VIRTIO_BLK_F_FLUSH);

	if (device->settings.n_queues > 1)
		offered |= bit(VIRTIO_BLK_F_MQ);
	if (device->settings.packed)
		offered |= bit(VIRTIO_F_RING_PACKED);
	if (device->disk.read_only)
		offered |= bit(VIRTIO_BLK_F_RO);
	if (device->disk.discard)
		offered |= bit(VIRTIO_BLK_F_DISCARD);
	if (device->disk.write_zeroes)
		offered |= bit(VIRTIO_BLK_F_WRITE_ZEROES);
	return offered;
}

/* Header and status take two of a queue's descriptors; a chain is never longer than it. */
static uint32_t segments(const struct device *device)
{
	return device->settings.queue_size > 2 ? device->settings.queue_size - 2 : 1;
}

static void fill_space(const struct device *device, struct virtio_blk_config *space)
{
	const struct image *image = device->image;
	uint32_t block = image->block, physical = image->physical;
	uint8_t exponent = 0;

	while (block << exponent < physical && exponent < 8)
		exponent++;
	*space = (struct virtio_blk_config){
		.capacity = device->disk.sectors,
		.size_max = SEGMENT_MOST,
		.seg_max = segments(device),
		.blk_size = block,
		.physical_block_exp = exponent,
		.min_io_size = (uint16_t)(1u << exponent),
		.opt_io_size = 0,
		.num_queues = (uint16_t)device->settings.n_queues,
		.max_discard_sectors = RANGE_MOST,
		.max_discard_seg = REQUEST_RANGES,
		.discard_sector_alignment = (block << exponent) / SECTOR,
		.max_write_zeroes_sectors = RANGE_MOST,
		.max_write_zeroes_seg = REQUEST_RANGES,
		.write_zeroes_may_unmap = image->discards,
	};
}

static void fill_disk(struct device *device)
{
	const struct image *image = device->image;
	const char *serial =
		device->settings.serial ? device->settings.serial : device->settings.name;

	device->disk = (struct disk){
		.sectors = image->bytes / SECTOR,
		.most_sectors = RANGE_MOST,
		.read_only = image->read_only,
		.discard = image->discards,
		/* Where ranges cannot be zeroed, zeroes are written. */
		.write_zeroes = !image->read_only,
	};
	memcpy(device->disk.id, serial, strnlen(serial, sizeof(device->disk.id)));
}

/* ------------------------------------------------------------------- all the queues */

static void want_all(struct device *device, enum queue_wanted wanted)
{
	for (unsigned i = 0; i < device->n_started; i++)
		queue_want(&device->queues[i], wanted);
	for (unsigned i = 0; i < device->n_started; i++)
		queue_reached(&device->queues[i], wanted);
}

static void stop_all(struct device *device)
{
	if (!device->running)
		return;
	want_all(device, QUEUE_STOP);
	device->running = false;
}

static void run_all(struct device *device)
{
	device->running = true;
	for (unsigned i = 0; i < device->n_started; i++)
		queue_want(&device->queues[i], QUEUE_RUN);
}

static void say(struct device *device, const char *what, const struct dmamap_reason *why)
{
	char reason[512], sentence[640];

	if (!queue_may_say(&device->quiet_until))
		return;
	dmamap_reason_format(why, reason, sizeof(reason));
	snprintf(sentence, sizeof(sentence), "%s: %s", what, reason);
	device->settings.say(device->settings.who, sentence);
}

/* Get every queue ready to run. Return: 0; -errno. */
static int prepare_all(struct device *device, bool resume, struct dmamap_reason *why)
{
	for (unsigned i = 0; i < device->n_started; i++) {
		struct queue *queue = &device->queues[i];
		bool live = resume && dmamap_virtqueue_log_live(queue->log);
		int error = queue_prepare(queue, live, why);

		if (!error)
			error = dmamap_vduse_kick(device->vduse, i, queue->kick);
		if (error) {
			why->error = -error;
			return error;
		}
	}
	return 0;
}

/* The driver is gone: nothing that it made is left. */
static void reset(struct device *device)
{
	stop_all(device);
	for (unsigned i = 0; i < device->n_started; i++) {
		queue_drop(&device->queues[i]);
		dmamap_virtqueue_log_clear(device->queues[i].log);
		dmamap_vduse_kick(device->vduse, i, -1);
	}
	dmamap_vduse_forget(device->vduse, 0, UINT64_MAX);
}

/* ---------------------------------------------------------------------- messages */

static bool take_status(struct device *device, uint8_t status)
{
	struct dmamap_reason why = {0};
	uint64_t taken;

	if (!status) {
		reset(device);
		return true;
	}
	if (status & VIRTIO_CONFIG_S_FEATURES_OK &&
		!(device->status & VIRTIO_CONFIG_S_FEATURES_OK) &&
		(dmamap_vduse_features(device->vduse, &taken) || (taken & NEEDED) != NEEDED))
		return false;
	if (status & VIRTIO_CONFIG_S_DRIVER_OK && !device->running &&
		prepare_all(device, false, &why)) {
		say(device, "the driver's queues cannot be served", &why);
		reset(device);
		return false;
	}
	return true;
}

static bool remap(struct device *device, uint64_t first, uint64_t last)
{
	struct dmamap_reason why = {0};
	bool running = device->running, good = true;

	stop_all(device);
	dmamap_vduse_forget(device->vduse, first, last);
	for (unsigned i = 0; i < device->n_started; i++) {
		struct queue *queue = &device->queues[i];

		if (queue->virtqueue && dmamap_virtqueue_remap(queue->virtqueue, &why)) {
			say(device, "a queue's memory is not mapped any more", &why);
			good = false;
		}
	}
	if (running)
		run_all(device);
	return good;
}

static void places(struct device *device, struct dmamap_vduse_message *message)
{
	struct queue *queue = &device->queues[message->queue];
	struct dmamap_virtqueue_config config;
	bool running = device->running;

	stop_all(device);
	if (queue->virtqueue) {
		dmamap_virtqueue_places(queue->virtqueue, &message->available, &message->used);
	} else if (dmamap_vduse_queue(device->vduse, message->queue, &config) == 1) {
		message->available = config.available;
		message->used = config.used;
	}
	if (running)
		run_all(device);
}

/* Return: 0; -errno: there will be no more messages. */
static int answer(struct device *device, struct dmamap_vduse_message *message)
{
	bool good = true;
	int error;

	switch (message->type) {
	case DMAMAP_VDUSE_STATUS:
		good = take_status(device, message->status);
		break;
	case DMAMAP_VDUSE_IOTLB:
		good = remap(device, message->first, message->last);
		break;
	case DMAMAP_VDUSE_QUEUE_STATE:
		places(device, message);
		break;
	case DMAMAP_VDUSE_UNKNOWN:
		good = false;
		break;
	}
	error = dmamap_vduse_reply(device->vduse, message, good);
	if (message->type == DMAMAP_VDUSE_STATUS && good) {
		device->status = message->status;
		if (message->status & VIRTIO_CONFIG_S_DRIVER_OK && !device->running)
			run_all(device);
	}
	/* Who asked may have been killed meanwhile. */
	return error == -ENOENT ? 0 : error;
}

static int handle_one(struct device *device)
{
	struct dmamap_vduse_message message;
	int error = dmamap_vduse_receive(device->vduse, &message);

	if (error)
		return error == -EAGAIN || error == -EINTR ? 0 : error;
	return answer(device, &message);
}

static void *message_thread(void *argument)
{
	struct device *device = argument;
	struct pollfd files[2] = {
		{.fd = dmamap_vduse_fd(device->vduse), .events = POLLIN},
		{.fd = device->stop, .events = POLLIN},
	};
	uint64_t one = 1;

	for (;;) {
		if (poll(files, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		if (files[1].revents)
			return NULL;
		/* An error without a message: the kernel waited in vain, and gave up. */
		if (files[0].revents & POLLIN ? handle_one(device) : files[0].revents)
			break;
	}
	atomic_store(&device->broken, true);
	while (write(device->ended, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	return NULL;
}

/* --------------------------------------------------------------- opening, closing */

static int create(struct device *device, struct dmamap_system *system, struct complaint *complaint)
{
	struct dmamap_reason why = {0};
	struct virtio_blk_config space;
	struct dmamap_vduse_config config = {
		.name = device->settings.name,
		.device_id = VIRTIO_ID_BLOCK,
		.vendor_id = VENDOR,
		.features = features(device),
		.n_queues = device->settings.n_queues,
		.queue_size = (uint16_t)device->settings.queue_size,
		.space = &space,
		/* As far as write_zeroes_may_unmap. */
		.space_size = offsetof(struct virtio_blk_config, max_secure_erase_sectors),
		.umem = device->settings.umem,
		.patience_ms = device->settings.patience_ms,
	};
	char text[640];
	int error;

	fill_space(device, &space);
	error = dmamap_vduse_create(system, &config, &device->vduse, &why);
	if (!error)
		return 0;
	why.error = -error;
	dmamap_reason_format(&why, text, sizeof(text));
	return complain(complaint, "%s", text);
}

static int start_queues(struct device *device, struct complaint *complaint)
{
	const struct device_settings *settings = &device->settings;

	device->queue_settings = (struct queue_settings){
		.vduse = device->vduse,
		.image = device->image,
		.disk = &device->disk,
		.size = device->settings.queue_size,
		.parts = segments(device) + 2,
		.poll_ns = device->settings.poll_ns,
		.delay_ns = device->settings.delay_ns,
		.say = device->settings.say,
		.who = device->settings.who,
	};
	device->queues = calloc(device->settings.n_queues, sizeof(*device->queues));
	if (!device->queues)
		return complain(complaint, "not enough memory");
	for (unsigned i = 0; i < device->settings.n_queues; i++, device->n_started++) {
		int error = queue_start(&device->queues[i], &device->queue_settings, i,
			inflight_queue(&device->inflight, i));

		if (error == -ENOSYS || error == -EPERM)
			return complain(complaint,
				"io_uring cannot be used here (%s): see "
				"/proc/sys/kernel/io_uring_disabled, and what a container forbids",
				strerror(-error));
		if (error)
			return complain(complaint,
				"queue %u of %u cannot be made (%s); %stake fewer --queues", i,
				settings->n_queues, strerror(-error),
				error == -ENOMEM   ? "raise ulimit -l, or "
				: error == -EMFILE ? "raise ulimit -n, or "
				: error == -EAGAIN ? "raise ulimit -u, or "
						   : "");
	}
	return 0;
}

/* Whether a driver has set queues up, and so may wait for what was in flight. */
static bool any_ready(struct device *device)
{
	struct dmamap_virtqueue_config config;

	for (unsigned i = 0; i < device->settings.n_queues; i++)
		if (dmamap_vduse_queue(device->vduse, i, &config) == 1)
			return true;
	return false;
}

static int open_log(struct device *device, struct complaint *complaint)
{
	const struct device_settings *settings = &device->settings;
	bool found = dmamap_vduse_found(device->vduse);
	const struct inflight_config config = {
		.path = settings->log,
		.name = settings->name,
		.image = device->image,
		.n_queues = settings->n_queues,
		.size = settings->queue_size,
		.packed = settings->packed,
		.keep = found,
		.must = found && any_ready(device),
	};

	return inflight_open(&device->inflight, &config, complaint);
}

int device_open(struct device **out, struct dmamap_system *system,
	const struct device_settings *settings, const struct image *image,
	struct complaint *complaint)
{
	struct device *device = calloc(1, sizeof(*device));

	if (!device)
		return complain(complaint, "not enough memory");
	device->settings = *settings;
	device->image = image;
	device->taken_over = -1;
	device->inflight.fd = -1;
	device->stop = eventfd(0, EFD_CLOEXEC);
	device->ended = eventfd(0, EFD_CLOEXEC);
	fill_disk(device);
	if (device->stop < 0 || device->ended < 0) {
		complain(complaint, "no descriptor is left (%s)", strerror(errno));
		goto close;
	}
	if (create(device, system, complaint) || open_log(device, complaint) ||
		start_queues(device, complaint))
		goto close;
	*out = device;
	return 0;

close:
	device_close(device);
	return -1;
}

static int resume(struct device *device, struct complaint *complaint)
{
	struct dmamap_reason why = {0};
	char text[512];

	if (prepare_all(device, true, &why)) {
		dmamap_reason_format(&why, text, sizeof(text));
		return complain(
			complaint, "%s cannot be taken over: %s", device->settings.name, text);
	}
	for (unsigned i = 0; i < device->n_started; i++)
		if (device->queues[i].virtqueue)
			device->taken_over +=
				dmamap_virtqueue_in_flight(device->queues[i].virtqueue);
	device->status = VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK;
	run_all(device);
	return 0;
}

/*
 * A driver that the process before was just about to forget is forgotten, not
 * resumed: some of its logs may be cleared already, and what lies in the rings
 * would be taken for new. Other messages are answered once the queues run.
 */
static int take_over(struct device *device, struct complaint *complaint)
{
	struct pollfd file = {.fd = dmamap_vduse_fd(device->vduse), .events = POLLIN};
	struct dmamap_vduse_message message;
	bool asked = poll(&file, 1, 0) == 1 && file.revents & POLLIN &&
		     !dmamap_vduse_receive(device->vduse, &message);
	bool leaves = asked && message.type == DMAMAP_VDUSE_STATUS && !message.status;

	device->taken_over = 0;
	if (!leaves && any_ready(device) && resume(device, complaint))
		return -1;
	/* Where the device is broken, the message thread finds that out. */
	if (asked)
		answer(device, &message);
	return 0;
}

int device_run(struct device *device, struct complaint *complaint)
{
	int error;

	if (dmamap_vduse_found(device->vduse) && take_over(device, complaint))
		return -1;
	error = pthread_create(&device->thread, NULL, message_thread, device);
	if (error)
		return complain(complaint, "no thread can be made (%s)", strerror(error));
	device->threaded = true;
	return 0;
}

int device_close(struct device *device)
{
	uint64_t one = 1;
	int error = 0;

	if (device->threaded) {
		while (write(device->stop, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_join(device->thread, NULL);
	}
	stop_all(device);
	for (unsigned i = 0; i < device->n_started; i++)
		queue_end(&device->queues[i]);
	free(device->queues);
	if (device->vduse)
		error = dmamap_vduse_destroy(device->vduse);
	inflight_close(&device->inflight, device->vduse && !error);
	if (device->stop >= 0)
		close(device->stop);
	if (device->ended >= 0)
		close(device->ended);
	free(device);
	return error;
}

int device_ended(const struct device *device)
{
	return device->ended;
}

bool device_broken(const struct device *device)
{
	return atomic_load(&device->broken);
}

bool device_umem(const struct device *device)
{
	struct iovec memory;
	unsigned generation;

	dmamap_vduse_umem(device->vduse, &memory, &generation);
	return generation;
}

unsigned device_queues(const struct device *device)
{
	return device->n_started;
}

const struct queue_counters *device_counters(const struct device *device, unsigned index)
{
	return &device->queues[index].counters;
}

long device_taken_over(const struct device *device)
{
	return device->taken_over;
}
