/* SPDX-License-Identifier: MIT */
/*
 * A queue of the virtio-blk driver: requests go in, and come out on its thread,
 * as virtio_queue_rq() and virtblk_done() of drivers/block/virtio_blk.c do with
 * block/blk-mq.c around them.
 *
 * A request that finds no room waits, and all that come later wait behind it:
 * for room in the ring until one completes, for room in the bounce buffer until
 * then or for 3 ms (BLK_MQ_RESOURCE_DELAY), whichever is first. Nobody else
 * tries them meanwhile; Linux also does so when the next request comes.
 *
 * Maps are made by who submits, and unmapped by the queue's thread: as in Linux,
 * where the interrupt's CPU is often another.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soft/virtio_blk.h"

#define RESOURCE_DELAY 3000000 /* ns */

static void append(struct blk_list *list, struct dmamap_blk_request *request)
{
	blk_state(request)->next = NULL;
	if (list->first)
		blk_state(list->last)->next = request;
	else
		list->first = request;
	list->last = request;
}

static void pop(struct blk_list *list)
{
	list->first = blk_state(list->first)->next;
}

static void wake(struct blk_queue *queue)
{
	pthread_mutex_lock(&queue->wake_lock);
	queue->woken = true;
	pthread_cond_signal(&queue->wake);
	pthread_mutex_unlock(&queue->wake_lock);
}

/* By the daemon's thread. */
static void interrupted(void *who)
{
	struct blk_queue *queue = who;

	atomic_fetch_add_explicit(&queue->interrupts, 1, memory_order_relaxed);
	wake(queue);
}

/* ------------------------------------------------------------------- adding */

/* virtblk_add_req() */
static int add(struct blk_queue *queue, struct dmamap_blk_request *request)
{
	struct blk_state *state = blk_state(request);
	struct soft_ring_piece *pieces = queue->pieces;
	unsigned n = 0;

	pieces[n++] = (struct soft_ring_piece){&state->header, sizeof(state->header), false};
	for (uint32_t at = 0; at < state->size; at += state->segment) {
		uint32_t left = state->size - at;

		pieces[n++] = (struct soft_ring_piece){(char *)state->data + at,
			left < state->segment ? left : state->segment, !state->to_device};
	}
	pieces[n++] = (struct soft_ring_piece){&state->status, sizeof(state->status), true};
	return soft_ring_add(&queue->ring, pieces, n, state->table, request);
}

/* 0: it is in the ring or has ended; or Linux's error, and it is as before. Lock held. */
static int try(struct blk_queue *queue, struct dmamap_blk_request *request)
{
	int error = add(queue, request);

	queue->memory_short = error == -ENOMEM;
	queue->counters.requeued += error == -ENOMEM;
	queue->counters.ring_full += error == -ENOSPC;
	if (error == -EIO) {
		blk_state(request)->error = -EIO;
		append(&queue->ended, request);
		error = 0;
	}
	return error;
}

static void tell(struct blk_queue *queue, bool wanted)
{
	if (wanted)
		soft_vduse_kick(queue->blk->driver, queue->index);
}

/* Lock held. */
static bool kick_wanted(struct blk_queue *queue)
{
	bool wanted = soft_ring_kick_wanted(&queue->ring);

	queue->counters.kicks += wanted;
	return wanted;
}

void blk_queue_submit(struct blk_queue *queue, struct dmamap_blk_request *request)
{
	bool first, kick = false, ended;
	int error = 0;

	pthread_mutex_lock(&queue->lock);
	queue->counters.submitted++;
	first = !queue->waiting.first;
	if (first) {
		error = try(queue, request);
		kick = kick_wanted(queue);
	}
	if (!first || error)
		append(&queue->waiting, request);
	ended = queue->ended.first;
	pthread_mutex_unlock(&queue->lock);
	tell(queue, kick);
	/* For the delay to run, or to end it. */
	if (error || ended)
		wake(queue);
}

/* Lock held. */
static bool try_waiting(struct blk_queue *queue)
{
	int error = 0;

	queue->memory_short = false;
	while (queue->waiting.first) {
		struct dmamap_blk_request *request = queue->waiting.first;
		struct dmamap_blk_request *next = blk_state(request)->next;

		error = try(queue, request);
		if (error)
			break;
		/* Ended ones were linked anew. */
		queue->waiting.first = next;
	}
	return kick_wanted(queue);
}

/* --------------------------------------------------------------- completing */

static int result_of(const struct blk_state *state)
{
	if (state->error)
		return state->error;
	switch (state->status) {
	case VIRTIO_BLK_S_OK:
		return 0;
	case VIRTIO_BLK_S_UNSUPP:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

/* Without the lock: done() may submit. */
static void end(struct blk_list *list)
{
	while (list->first) {
		struct dmamap_blk_request *request = list->first;
		struct blk_state *state = blk_state(request);

		pop(list);
		if (state->table != state->few)
			free(state->table);
		request->result = result_of(state);
		request->done(request);
	}
}

static void move(struct blk_list *from, struct blk_list *to)
{
	while (from->first) {
		struct dmamap_blk_request *request = from->first;

		pop(from);
		append(to, request);
	}
}

/* All that the device has: it will not, or must not, answer for it. Lock held. */
static void take_back(struct blk_queue *queue, struct blk_list *done)
{
	struct dmamap_blk_request *request;

	while ((request = soft_ring_take_back(&queue->ring))) {
		blk_state(request)->error = -EIO;
		append(done, request);
	}
}

/* Lock held. */
static void collect(struct blk_queue *queue, struct blk_list *done)
{
	struct dmamap_blk_request *request;

	do {
		soft_ring_quiet(&queue->ring);
		while ((request = soft_ring_get(&queue->ring)))
			append(done, request);
	} while (!soft_ring_listen(&queue->ring) && !queue->ring.bad);
	if (queue->ring.bad) {
		queue->counters.bad++;
		take_back(queue, done);
	}
}

static void count(struct blk_queue *queue, const struct blk_list *done)
{
	for (struct dmamap_blk_request *one = done->first; one; one = blk_state(one)->next) {
		queue->counters.completed++;
		queue->counters.failed += result_of(blk_state(one)) != 0;
	}
}

static void work(struct blk_queue *queue)
{
	struct blk_list done = {0};
	bool kick = false;

	pthread_mutex_lock(&queue->lock);
	if (!queue->ring.bad)
		collect(queue, &done);
	if (queue->waiting.first && (done.first || queue->memory_short || queue->ring.bad))
		kick = try_waiting(queue);
	move(&queue->ended, &done);
	count(queue, &done);
	pthread_mutex_unlock(&queue->lock);
	tell(queue, kick);
	end(&done);
}

/* ------------------------------------------------------------------ thread */

/* false: it is to end. */
static bool wait(struct blk_queue *queue, bool memory_short)
{
	struct timespec until;
	bool stopped;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += RESOURCE_DELAY;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&queue->wake_lock);
	while (!queue->woken && !queue->stopped && !error) {
		if (memory_short)
			error = pthread_cond_timedwait(&queue->wake, &queue->wake_lock, &until);
		else
			pthread_cond_wait(&queue->wake, &queue->wake_lock);
	}
	queue->woken = false;
	stopped = queue->stopped;
	pthread_mutex_unlock(&queue->wake_lock);
	return !stopped;
}

static void *serve(void *argument)
{
	struct blk_queue *queue = argument;
	bool memory_short = false;

	while (wait(queue, memory_short)) {
		work(queue);
		pthread_mutex_lock(&queue->lock);
		memory_short = queue->waiting.first && queue->memory_short;
		pthread_mutex_unlock(&queue->lock);
	}
	return NULL;
}

int blk_queue_start(struct dmamap_blk *blk, unsigned index)
{
	struct blk_queue *queue = &blk->queues[index];
	struct soft_vduse_callback callback = {interrupted, queue};
	pthread_condattr_t monotonic;
	int error;

	queue->blk = blk;
	queue->index = index;
	queue->pieces = calloc(blk->info.segments + 2, sizeof(*queue->pieces));
	if (!queue->pieces)
		return SOFT_REFUSE(no_memory, ENOMEM, "a queue", index);
	pthread_mutex_init(&queue->lock, NULL);
	pthread_mutex_init(&queue->wake_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&queue->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	error = soft_ring_create(&queue->ring, blk->driver, index, blk->info.features);
	if (error)
		goto free_queue;
	soft_vduse_set_queue_callback(blk->driver, index, &callback, -1);
	error = -pthread_create(&queue->thread, NULL, serve, queue);
	if (!error)
		return 0;
	error = SOFT_REFUSE(no_memory, ENOMEM, "a queue's thread", index);
	callback = (struct soft_vduse_callback){0};
	soft_vduse_set_queue_callback(blk->driver, index, &callback, -1);
	soft_ring_destroy(&queue->ring);
free_queue:
	pthread_cond_destroy(&queue->wake);
	pthread_mutex_destroy(&queue->wake_lock);
	pthread_mutex_destroy(&queue->lock);
	free(queue->pieces);
	return error;
}

void blk_queue_break(struct blk_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->ring.bad = true;
	take_back(queue, &queue->ended);
	pthread_mutex_unlock(&queue->lock);
	wake(queue);
}

void blk_queue_stop(struct blk_queue *queue)
{
	struct blk_list done = {0};

	pthread_mutex_lock(&queue->wake_lock);
	queue->stopped = true;
	pthread_cond_signal(&queue->wake);
	pthread_mutex_unlock(&queue->wake_lock);
	pthread_join(queue->thread, NULL);
	pthread_mutex_lock(&queue->lock);
	queue->ring.bad = true;
	take_back(queue, &done);
	for (struct dmamap_blk_request *one = queue->waiting.first; one; one = blk_state(one)->next)
		blk_state(one)->error = -EIO;
	move(&queue->waiting, &done);
	move(&queue->ended, &done);
	count(queue, &done);
	pthread_mutex_unlock(&queue->lock);
	end(&done);
}

void blk_queue_destroy(struct blk_queue *queue)
{
	soft_ring_destroy(&queue->ring);
	pthread_cond_destroy(&queue->wake);
	pthread_mutex_destroy(&queue->wake_lock);
	pthread_mutex_destroy(&queue->lock);
	free(queue->pieces);
}
