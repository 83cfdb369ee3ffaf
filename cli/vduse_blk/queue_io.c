/* SPDX-License-Identifier: MIT */
/*
 * Carrying a request out: one step at a time, each an operation of io_uring,
 * until all its bytes or ranges are through. A transfer that the kernel cut
 * short goes on where it stopped. Memory that is not aligned as O_DIRECT needs
 * it goes through a bounce buffer, of which there are few: the next one waits.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/uio.h>

#include "queue.h"

#define AT_ONCE (128u << 10) /* the largest transfer that the thread may wait for */
#define ZEROES	(256u << 10)

/* Alike for every process: pages of it take no memory. */
static const unsigned char zeroes[ZEROES] __attribute__((aligned(65536)));

static void step(struct queue *queue, uint32_t slot);

/* ------------------------------------------------------------------------ lists */

static void push(struct queue *queue, struct io_list *list, uint32_t slot)
{
	queue->ios[slot].next = QUEUE_NONE;
	if (list->first == QUEUE_NONE)
		list->first = slot;
	else
		queue->ios[list->last].next = slot;
	list->last = slot;
}

static uint32_t pop(struct queue *queue, struct io_list *list)
{
	uint32_t slot = list->first;

	if (slot != QUEUE_NONE)
		list->first = queue->ios[slot].next;
	return slot;
}

/* ---------------------------------------------------------------- giving it back */

static void give(struct queue *queue, uint32_t slot, uint32_t bytes)
{
	queue->busy--;
	if (!queue->ring_gone)
		dmamap_virtqueue_give(queue->virtqueue, slot, bytes);
}

static void release_buffer(struct queue *queue, struct io *io)
{
	if (io->buffer != QUEUE_NONE)
		queue->free_buffers |= 1u << io->buffer;
	io->buffer = QUEUE_NONE;
}

static uint32_t written(const struct io *io)
{
	const struct request *request = &io->request;
	bool to_driver = request->verb == VERB_READ || request->verb == VERB_ID;

	if (!request->status)
		return 0;
	if (!to_driver || io->result != VIRTIO_BLK_S_OK || request->bytes >= UINT32_MAX)
		return 1;
	return (uint32_t)request->bytes + 1;
}

static void finish(struct queue *queue, uint32_t slot, uint8_t result)
{
	struct io *io = &queue->ios[slot];

	io->result = result;
	release_buffer(queue, io);
	if (io->request.status) {
		touch(queue, slot);
		*(volatile unsigned char *)io->request.status = result;
		untouch(queue);
	}
	if (queue->settings->delay_ns) {
		io->due = queue_now() + queue->settings->delay_ns;
		push(queue, &queue->delayed, slot);
		return;
	}
	give(queue, slot, written(io));
}

uint64_t io_due(struct queue *queue, uint64_t now)
{
	while (queue->delayed.first != QUEUE_NONE) {
		uint32_t slot = queue->delayed.first;

		if (queue->ios[slot].due > now)
			return queue->ios[slot].due;
		pop(queue, &queue->delayed);
		give(queue, slot, written(&queue->ios[slot]));
	}
	return 0;
}

void io_waiting(struct queue *queue)
{
	while (queue->free_buffers && queue->waiting.first != QUEUE_NONE)
		step(queue, pop(queue, &queue->waiting));
}

void io_faulted(struct queue *queue, uint32_t slot)
{
	count(&queue->counters.refused, 1);
	release_buffer(queue, &queue->ios[slot]);
	give(queue, slot, 0);
}

/* ---------------------------------------------------------------------- transfers */

static struct io_uring_sqe *next_sqe(struct queue *queue)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&queue->ring);

	if (!sqe) {
		/* The ring has room for every slot: only what was not yet submitted fills it. */
		io_uring_submit(&queue->ring);
		sqe = io_uring_get_sqe(&queue->ring);
	}
	return sqe;
}

static void hand_over(struct io_uring_sqe *sqe, uint32_t slot)
{
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data64(sqe, slot);
}

static void sync_image(struct queue *queue, uint32_t slot)
{
	struct io_uring_sqe *sqe = next_sqe(queue);

	io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
	hand_over(sqe, slot);
}

/*
 * All bytes or ranges are through. A driver that did not take the feature with
 * which it could flush relies on it that what was written lasts (virtio 1.2, 5.2.6.2).
 */
static void through(struct queue *queue, uint32_t slot)
{
	struct io *io = &queue->ios[slot];

	if (!queue->stable || io->request.verb == VERB_READ) {
		finish(queue, slot, VIRTIO_BLK_S_OK);
		return;
	}
	io->syncing = true;
	count(&queue->counters.synced, 1);
	sync_image(queue, slot);
}

static bool in_fixed(const struct queue *queue, const struct iovec *part)
{
	uintptr_t at = (uintptr_t)part->iov_base, from = (uintptr_t)queue->fixed.iov_base;

	return at - from < queue->fixed.iov_len &&
	       part->iov_len <= queue->fixed.iov_len - (at - from);
}

static unsigned char *bounce(const struct queue *queue, const struct io *io)
{
	return queue->bounce + (size_t)io->buffer * BOUNCE_BYTES;
}

static bool is_aligned(const struct queue *queue, const struct request *request)
{
	uintptr_t bits = 0;

	for (uint32_t i = 0; i < request->n_data; i++)
		bits |= (uintptr_t)request->data[i].iov_base | request->data[i].iov_len;
	return !(bits & (queue->settings->image->memory_align - 1));
}

/* Copies to or from the start of the request's parts. */
static void copy(struct queue *queue, uint32_t slot, size_t bytes, bool to_parts)
{
	struct io *io = &queue->ios[slot];
	const struct iovec *part = io->request.data;
	unsigned char *buffer = bounce(queue, io);

	touch(queue, slot);
	for (; bytes; part++) {
		size_t now = part->iov_len < bytes ? part->iov_len : bytes;

		memcpy(to_parts ? part->iov_base : buffer, to_parts ? buffer : part->iov_base, now);
		buffer += now;
		bytes -= now;
	}
	untouch(queue);
}

static void transfer_bounced(struct queue *queue, uint32_t slot)
{
	struct io *io = &queue->ios[slot];
	uint64_t left = io->request.bytes - io->done, offset = io->request.offset + io->done;
	struct io_uring_sqe *sqe;

	io->moving = left < BOUNCE_BYTES ? (uint32_t)left : BOUNCE_BYTES;
	if (io->request.verb == VERB_WRITE)
		copy(queue, slot, io->moving, false);
	sqe = next_sqe(queue);
	if (io->request.verb == VERB_WRITE)
		io_uring_prep_write(sqe, 0, bounce(queue, io), io->moving, offset);
	else
		io_uring_prep_read(sqe, 0, bounce(queue, io), io->moving, offset);
	hand_over(sqe, slot);
}

/* For a file that cannot start a transfer without waiting: wait here. */
static void transfer_at_once(struct queue *queue, uint32_t slot)
{
	struct io *io = &queue->ios[slot];
	struct request *request = &io->request;
	int fd = queue->settings->image->fd;
	ssize_t n;

	while (io->done < request->bytes) {
		off_t offset = (off_t)(request->offset + io->done);

		n = request->verb == VERB_WRITE
			    ? pwritev(fd, request->data, (int)request->n_data, offset)
			    : preadv(fd, request->data, (int)request->n_data, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			count(&queue->counters.failed, 1);
			finish(queue, slot, VIRTIO_BLK_S_IOERR);
			return;
		}
		io->done += (uint64_t)n;
		request_skip(&request->data, &request->n_data, (uint64_t)n);
	}
	through(queue, slot);
}

static void transfer(struct queue *queue, uint32_t slot)
{
	struct io *io = &queue->ios[slot];
	struct request *request = &io->request;
	const struct image *image = queue->settings->image;
	bool write = request->verb == VERB_WRITE;
	uint64_t offset = request->offset + io->done;
	struct io_uring_sqe *sqe;

	if (io->buffer != QUEUE_NONE) {
		transfer_bounced(queue, slot);
		return;
	}
	if (image->memory_align > 1 && !is_aligned(queue, request)) {
		if (!queue->free_buffers) {
			push(queue, &queue->waiting, slot);
			return;
		}
		io->buffer = (uint32_t)__builtin_ctz(queue->free_buffers);
		queue->free_buffers &= ~(1u << io->buffer);
		count(&queue->counters.bounced, 1);
		transfer_bounced(queue, slot);
		return;
	}
	if ((write ? image->writes_wait : image->reads_wait) && request->bytes <= AT_ONCE) {
		transfer_at_once(queue, slot);
		return;
	}
	sqe = next_sqe(queue);
	if (request->n_data != 1 || request->data->iov_len > INT32_MAX) {
		if (write)
			io_uring_prep_writev(sqe, 0, request->data, request->n_data, offset);
		else
			io_uring_prep_readv(sqe, 0, request->data, request->n_data, offset);
	} else if (in_fixed(queue, request->data)) {
		void *at = request->data->iov_base;
		unsigned n = (unsigned)request->data->iov_len;

		if (write)
			io_uring_prep_write_fixed(sqe, 0, at, n, offset, 0);
		else
			io_uring_prep_read_fixed(sqe, 0, at, n, offset, 0);
	} else {
		void *at = request->data->iov_base;
		unsigned n = (unsigned)request->data->iov_len;

		if (write)
			io_uring_prep_write(sqe, 0, at, n, offset);
		else
			io_uring_prep_read(sqe, 0, at, n, offset);
	}
	hand_over(sqe, slot);
}

/* ------------------------------------------------------------------------- ranges */

/* The next piece of the next range; false: there is none left. */
static bool range_step(struct queue *queue, uint32_t slot)
{
	const struct image *image = queue->settings->image;
	struct io *io = &queue->ios[slot];
	struct io_uring_sqe *sqe;
	const struct range *range;
	uint64_t left;
	int mode = FALLOC_FL_KEEP_SIZE;

	for (;; io->range++, io->done = 0, io->by_zeroes = false) {
		if (io->range == io->request.n_ranges)
			return false;
		range = &io->request.ranges[io->range];
		left = range->bytes - io->done;
		if (left)
			break;
	}
	if (range->unmap && image->discards)
		mode |= FALLOC_FL_PUNCH_HOLE;
	else if (image->zeroes)
		mode |= FALLOC_FL_ZERO_RANGE;
	else
		io->by_zeroes = true;
	sqe = next_sqe(queue);
	if (io->by_zeroes) {
		io->moving = left < ZEROES ? (uint32_t)left : ZEROES;
		io_uring_prep_write(sqe, 0, zeroes, io->moving, range->offset + io->done);
	} else {
		io_uring_prep_fallocate(sqe, 0, mode, (off_t)range->offset, (off_t)range->bytes);
	}
	hand_over(sqe, slot);
	return true;
}

/* What the kernel made of a piece. Return: whether to go on. */
static bool range_went(struct io *io, int result)
{
	if (io->by_zeroes) {
		if (result <= 0)
			return false;
		io->done += (uint64_t)result;
		return true;
	}
	if (result == -EOPNOTSUPP && io->request.verb == VERB_ZEROES) {
		io->by_zeroes = true;
		return true;
	}
	/* A discard is a hint. */
	if (result < 0 && !(result == -EOPNOTSUPP && io->request.verb == VERB_DISCARD))
		return false;
	io->done = io->request.ranges[io->range].bytes;
	return true;
}

/* --------------------------------------------------------------------------- steps */

static void step(struct queue *queue, uint32_t slot)
{
	struct io *io = &queue->ios[slot];

	switch (io->request.verb) {
	case VERB_READ:
	case VERB_WRITE:
		if (io->done < io->request.bytes)
			transfer(queue, slot);
		else
			through(queue, slot);
		return;
	case VERB_DISCARD:
	case VERB_ZEROES:
		if (!range_step(queue, slot))
			through(queue, slot);
		return;
	case VERB_FLUSH:
		sync_image(queue, slot);
		return;
	case VERB_ID:
	case VERBS:
		break;
	}
	finish(queue, slot, VIRTIO_BLK_S_OK);
}

void io_begin(struct queue *queue, uint32_t slot, struct dmamap_chain *chain, int walked)
{
	struct io *io = &queue->ios[slot];
	uint8_t status;

	io->done = 0;
	io->range = 0;
	io->buffer = QUEUE_NONE;
	io->by_zeroes = io->syncing = false;
	touch(queue, slot);
	status = request_read(&io->request, queue->settings->disk, chain, walked);
	if (status == VIRTIO_BLK_S_OK && io->request.verb == VERB_ID)
		io->request.bytes = request_answer_id(&io->request, queue->settings->disk);
	untouch(queue);
	if (status != VIRTIO_BLK_S_OK) {
		count(&queue->counters.refused, 1);
		finish(queue, slot, status);
		return;
	}
	count(&queue->counters.requests[io->request.verb], 1);
	count(&queue->counters.bytes[io->request.verb], io->request.bytes);
	step(queue, slot);
}

void io_went(struct queue *queue, uint32_t slot, int result)
{
	struct io *io = &queue->ios[slot];
	struct request *request = &io->request;
	bool good = result >= 0;

	if (result == -EINTR || result == -EAGAIN) {
		if (io->syncing)
			sync_image(queue, slot);
		else
			step(queue, slot);
		return;
	}
	switch (io->syncing ? VERB_FLUSH : request->verb) {
	case VERB_READ:
	case VERB_WRITE:
		/* Nothing at all: the image became shorter. */
		good = result > 0;
		if (!good)
			break;
		if (io->buffer != QUEUE_NONE && request->verb == VERB_READ)
			copy(queue, slot, (size_t)result, true);
		io->done += (uint64_t)result;
		request_skip(&request->data, &request->n_data, (uint64_t)result);
		break;
	case VERB_DISCARD:
	case VERB_ZEROES:
		good = range_went(io, result);
		break;
	case VERB_FLUSH:
	case VERB_ID:
	case VERBS:
		if (good) {
			finish(queue, slot, VIRTIO_BLK_S_OK);
			return;
		}
		break;
	}
	if (good) {
		step(queue, slot);
		return;
	}
	count(&queue->counters.failed, 1);
	finish(queue, slot, VIRTIO_BLK_S_IOERR);
}
