/* SPDX-License-Identifier: MIT */
/*
 * The thread of a queue: what it waits for, and in which order it does things.
 *
 * It looks before it sleeps, for as long as that has paid lately: the window
 * grows when a kick came soon after it went to sleep, and shrinks when looking
 * was in vain.
 */
#include "queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

/* In user_data, above every slot. */
#define DATA_WAKE (1ull << 32)
#define DATA_KICK (2ull << 32)

#define POLL_LEAST_NS 2000u
#define OWED_NS	      1000000u
/* A driver that is wrong over and over does not fill the user's log. */
#define QUIET_NS 10000000000ull

/* Taken at once: enough for one call and one interrupt to be cheap, few enough that
 * the driver has something to do meanwhile. */
#define BATCH 32u

static const char stops[] = "stops until the driver resets it";
static const struct dmamap_reason_kind too_large = {.name = "queue_too_large",
	.text = "the driver made it of {0d} entries, and {1d} are offered"};
static const struct dmamap_reason_kind gone = {
	.name = "queue_gone", .text = "the memory of ring {0d} is gone"};

uint64_t queue_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* ---------------------------------------------------------------- telling the user */

bool queue_may_say(uint64_t *quiet_until)
{
	uint64_t now = queue_now();

	if (now < *quiet_until)
		return false;
	*quiet_until = now + QUIET_NS;
	return true;
}

/* Return: whether it was said. */
static bool say_reason(struct queue *queue, const char *what, const struct dmamap_reason *why)
{
	char reason[512], sentence[640];

	if (!queue_may_say(&queue->quiet_until))
		return false;
	dmamap_reason_format(why, reason, sizeof(reason));
	snprintf(sentence, sizeof(sentence), "queue %u %s: %s", queue->index, what, reason);
	queue->settings->say(queue->settings->who, sentence);
	return true;
}

/* -------------------------------------------------------------------- the kernel's ring */

static int make_ring(struct queue *queue)
{
	/* From the best that kernels know to what all of them do. */
	static const unsigned flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		0,
	};
	unsigned entries = queue->settings->size + 8;
	int error = -EINVAL;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && error == -EINVAL; i++) {
		struct io_uring_params params = {.flags = flags[i] | IORING_SETUP_CLAMP};

		error = io_uring_queue_init_params(entries, &queue->ring, &params);
	}
	if (error)
		return error;
	error = io_uring_register_files(&queue->ring, &queue->settings->image->fd, 1);
	if (error)
		io_uring_queue_exit(&queue->ring);
	return error;
}

/* Let the kernel keep the pages of umem, where O_DIRECT would take them for each transfer. */
static void fix_buffer(struct queue *queue)
{
	struct iovec memory;
	unsigned generation;

	dmamap_vduse_umem(queue->settings->vduse, &memory, &generation);
	queue->generation = dmamap_vduse_umem_generation(queue->settings->vduse);
	if (queue->fixed.iov_base)
		io_uring_unregister_buffers(&queue->ring);
	queue->fixed = (struct iovec){NULL, 0};
	if (generation && !io_uring_register_buffers(&queue->ring, &memory, 1))
		queue->fixed = memory;
}

static void arm(struct queue *queue, int fd, uint64_t *value, uint64_t data, bool *armed)
{
	struct io_uring_sqe *sqe;

	if (*armed)
		return;
	sqe = io_uring_get_sqe(&queue->ring);
	if (!sqe)
		return;
	io_uring_prep_read(sqe, fd, value, sizeof(*value), 0);
	io_uring_sqe_set_data64(sqe, data);
	*armed = true;
}

/* Everything that is done, without waiting. Return: whether there was anything. */
static bool reap(struct queue *queue)
{
	struct io_uring_cqe *cqe;
	bool any = false;

	while (!io_uring_peek_cqe(&queue->ring, &cqe)) {
		uint64_t data = io_uring_cqe_get_data64(cqe);
		int result = cqe->res;

		/* First, for what follows may not come back. */
		io_uring_cqe_seen(&queue->ring, cqe);
		any = true;
		if (data == DATA_WAKE)
			queue->wake_armed = false;
		else if (data == DATA_KICK)
			queue->kick_armed = false;
		else
			io_went(queue, (uint32_t)data, result);
	}
	return any;
}

/* ------------------------------------------------------------------------- a round */

static void interrupt(struct queue *queue)
{
	queue->owes_interrupt =
		dmamap_vduse_interrupt(queue->settings->vduse, queue->index) == -EINVAL;
	count(&queue->counters.interrupts, 1);
}

static bool take(struct queue *queue)
{
	struct dmamap_reason why = {0};
	uint32_t slot;
	bool any = false;
	int taken;

	for (uint32_t n = 0; n < BATCH; n++) {
		struct dmamap_chain chain;
		int walked;

		taken = dmamap_virtqueue_take(queue->virtqueue, &slot, &why);
		if (taken <= 0) {
			if (taken < 0 && !queue->ring_dead) {
				queue->ring_dead = true;
				say_reason(queue, stops, &why);
			}
			break;
		}
		any = true;
		queue->busy++;
		chain.slot = slot;
		chain.max = queue->settings->parts;
		chain.parts = queue->ios[slot].parts;
		chain.last = NULL;
		queue->ios[slot].buffer = QUEUE_NONE;
		touch(queue, slot);
		walked = dmamap_virtqueue_walk(queue->virtqueue, &chain, &why);
		untouch(queue);
		if (walked && !queue->complained)
			queue->complained = say_reason(
				queue, "refused a request, others are only counted", &why);
		if (queue->generation != dmamap_vduse_umem_generation(queue->settings->vduse) &&
			queue->settings->image->direct)
			fix_buffer(queue);
		io_begin(queue, slot, &chain, walked);
	}
	return any;
}

/* One round of work. Return: whether there was any. */
static bool work(struct queue *queue, bool taking)
{
	uint32_t before, after;
	bool any = false;

	if (taking && !queue->ring_dead)
		any = take(queue);
	io_waiting(queue);
	if (io_uring_sq_ready(&queue->ring))
		io_uring_submit(&queue->ring);
	any |= reap(queue);
	io_due(queue, queue->delayed.first == QUEUE_NONE ? 0 : queue_now());
	before = dmamap_virtqueue_in_flight(queue->virtqueue);
	if (!queue->ring_gone && dmamap_virtqueue_publish(queue->virtqueue))
		interrupt(queue);
	after = dmamap_virtqueue_in_flight(queue->virtqueue);
	if (after != before) {
		count(&queue->counters.batches, 1);
		any = true;
	}
	atomic_store_explicit(&queue->counters.in_flight, after, memory_order_relaxed);
	if (queue->owes_interrupt)
		interrupt(queue);
	return any;
}

/* Sleep until the kernel has something, or until @until; 0: as long as it takes. */
static void sleep_until(struct queue *queue, uint64_t until)
{
	struct io_uring_cqe *cqe;
	struct __kernel_timespec wait;
	uint64_t now;

	arm(queue, queue->wake, &queue->wakeup_value, DATA_WAKE, &queue->wake_armed);
	if (queue->ready)
		arm(queue, queue->kick, &queue->kick_value, DATA_KICK, &queue->kick_armed);
	if (!until) {
		io_uring_submit_and_wait(&queue->ring, 1);
		return;
	}
	now = queue_now();
	if (until <= now)
		return;
	wait.tv_sec = (long long)((until - now) / 1000000000u);
	wait.tv_nsec = (long long)((until - now) % 1000000000u);
	io_uring_submit_and_wait_timeout(&queue->ring, &cqe, 1, &wait, NULL);
}

/* When something is due by the clock; 0: nothing is. */
static uint64_t next_due(struct queue *queue)
{
	uint64_t due = 0;

	if (queue->delayed.first != QUEUE_NONE)
		due = queue->ios[queue->delayed.first].due;
	if (queue->owes_interrupt && (!due || queue_now() + OWED_NS < due))
		due = queue_now() + OWED_NS;
	return due;
}

/* Looks for work, as long as that has paid. Return: whether it came. */
static bool look(struct queue *queue)
{
	uint64_t start, now;

	if (!queue->poll_ns)
		return false;
	start = now = queue_now();
	while (now - start < queue->poll_ns && !atomic_load(&queue->look)) {
		if (dmamap_virtqueue_waiting(queue->virtqueue) || io_uring_cq_ready(&queue->ring) ||
			IO_URING_READ_ONCE(*queue->ring.sq.kflags) &
				(IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW))
			return true;
		if (queue->delayed.first != QUEUE_NONE &&
			queue->ios[queue->delayed.first].due <= now)
			return true;
		relax();
		now = queue_now();
	}
	/* In vain: look for half as long next time, and then not at all. */
	queue->poll_ns /= 2;
	if (queue->poll_ns < POLL_LEAST_NS)
		queue->poll_ns = 0;
	return false;
}

static void rest(struct queue *queue)
{
	uint64_t slept;

	if (look(queue))
		return;
	if (!queue->ring_dead && dmamap_virtqueue_listen(queue->virtqueue)) {
		dmamap_virtqueue_mute(queue->virtqueue);
		return;
	}
	count(&queue->counters.sleeps, 1);
	slept = queue_now();
	sleep_until(queue, next_due(queue));
	slept = queue_now() - slept;
	if (!queue->ring_dead)
		dmamap_virtqueue_mute(queue->virtqueue);
	/* It came so soon that looking would have found it. */
	if (slept < queue->settings->poll_ns)
		queue->poll_ns = queue->poll_ns ? queue->poll_ns * 2 < queue->settings->poll_ns
							  ? queue->poll_ns * 2
							  : queue->settings->poll_ns
						: POLL_LEAST_NS * 2;
}

/* ------------------------------------------------------------------------- running */

/* What a fault was about, and what becomes of it. */
static void faulted(struct queue *queue)
{
	struct dmamap_reason why = {0};
	uint32_t slot = queue->touching;

	queue->touching = QUEUE_NONE;
	if (slot != QUEUE_NONE) {
		io_faulted(queue, slot);
		return;
	}
	if (!queue->ring_dead) {
		DMAMAP_REFUSE(&why, &gone, EFAULT, NULL, queue->index);
		say_reason(queue, stops, &why);
	}
	queue->ring_dead = queue->ring_gone = true;
}

static void run(struct queue *queue)
{
	if (GUARD_SET())
		faulted(queue);
	if (queue->resume) {
		/* The driver may have missed the last one of the process before. */
		queue->resume = false;
		interrupt(queue);
	}
	while (!atomic_load(&queue->look))
		if (!work(queue, true))
			rest(queue);
	/* What a process before began, and was not yet taken up again, stays for later. */
	for (;;) {
		if (work(queue, false))
			continue;
		if (!queue->busy)
			break;
		sleep_until(queue, next_due(queue));
	}
	guard_clear();
	queue->owes_interrupt = false;
}

/* Without a virtqueue: a kick may mean that there is one now. */
static void await(struct queue *queue)
{
	while (!atomic_load(&queue->look) && !queue->virtqueue) {
		struct dmamap_reason why = {0};
		bool kicked = queue->kick_armed;
		int error;

		sleep_until(queue, 0);
		reap(queue);
		kicked = kicked && !queue->kick_armed;
		error = kicked ? queue_prepare(queue, false, &why) : 0;
		if (error) {
			why.error = -error;
			say_reason(queue, "cannot be served", &why);
		}
	}
}

static enum queue_wanted wanted(struct queue *queue)
{
	enum queue_wanted result;

	pthread_mutex_lock(&queue->lock);
	atomic_store(&queue->look, false);
	queue->state = result = queue->wanted;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	return result;
}

static void *thread(void *argument)
{
	struct queue *queue = argument;
	enum queue_wanted now;
	int error = make_ring(queue);

	pthread_mutex_lock(&queue->lock);
	queue->error = error;
	queue->threaded = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	if (error)
		return NULL;
	while ((now = wanted(queue)) != QUEUE_EXIT) {
		queue->ready = now == QUEUE_RUN;
		if (now == QUEUE_RUN && queue->virtqueue)
			run(queue);
		else if (now == QUEUE_RUN)
			await(queue);
		else
			while (!atomic_load(&queue->look)) {
				sleep_until(queue, 0);
				reap(queue);
			}
	}
	/* Closing the ring lets go of the image, but only some time later. */
	io_uring_unregister_files(&queue->ring);
	io_uring_queue_exit(&queue->ring);
	return NULL;
}

/* --------------------------------------------------------------- from other threads */

void queue_want(struct queue *queue, enum queue_wanted wanted_now)
{
	uint64_t one = 1;

	pthread_mutex_lock(&queue->lock);
	queue->wanted = wanted_now;
	atomic_store(&queue->look, true);
	pthread_mutex_unlock(&queue->lock);
	while (write(queue->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void queue_reached(struct queue *queue, enum queue_wanted wanted_now)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->state != wanted_now)
		pthread_cond_wait(&queue->changed, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
}

int queue_prepare(struct queue *queue, bool resume, struct dmamap_reason *why)
{
	struct dmamap_virtqueue_config config;
	uint64_t features;
	int error = dmamap_vduse_features(queue->settings->vduse, &features);

	if (!error)
		error = dmamap_vduse_queue(queue->settings->vduse, queue->index, &config);
	if (error <= 0)
		return error;
	if (config.size > queue->settings->size)
		return DMAMAP_REFUSE(
			why, &too_large, EINVAL, NULL, config.size, queue->settings->size);
	config.log = queue->log;
	config.resume = queue->resume = resume;
	queue->ring_dead = queue->ring_gone = false;
	/* A driver that cannot flush trusts that what was written stays. */
	queue->stable = !(features >> VIRTIO_BLK_F_FLUSH & 1);
	if (GUARD_SET()) {
		queue_drop(queue);
		return DMAMAP_REFUSE(why, &gone, EFAULT, NULL, queue->index);
	}
	error = dmamap_virtqueue_create(&config, &queue->virtqueue, why);
	guard_clear();
	return error;
}

void queue_drop(struct queue *queue)
{
	dmamap_virtqueue_destroy(queue->virtqueue);
	queue->virtqueue = NULL;
}

static int allocate(struct queue *queue)
{
	const struct queue_settings *settings = queue->settings;

	queue->ios = calloc(settings->size, sizeof(*queue->ios));
	queue->parts = calloc((size_t)settings->size * settings->parts, sizeof(*queue->parts));
	if (!queue->ios || !queue->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < settings->size; i++)
		queue->ios[i].parts = queue->parts + (size_t)i * settings->parts;
	if (settings->image->memory_align > 1) {
		/* Touched when it is first needed. */
		queue->bounce = mmap(NULL, (size_t)BOUNCE_BUFFERS * BOUNCE_BYTES,
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (queue->bounce == MAP_FAILED) {
			queue->bounce = NULL;
			return -ENOMEM;
		}
		queue->free_buffers = (1u << BOUNCE_BUFFERS) - 1;
	}
	queue->wake = eventfd(0, EFD_CLOEXEC);
	queue->kick = eventfd(0, EFD_CLOEXEC);
	return queue->wake < 0 || queue->kick < 0 ? -errno : 0;
}

int queue_start(
	struct queue *queue, const struct queue_settings *settings, unsigned index, void *log)
{
	int error;

	*queue = (struct queue){
		.settings = settings,
		.index = index,
		.log = log,
		.wake = -1,
		.kick = -1,
		.touching = QUEUE_NONE,
		.waiting = {QUEUE_NONE, QUEUE_NONE},
		.delayed = {QUEUE_NONE, QUEUE_NONE},
	};
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
	error = allocate(queue);
	if (error)
		goto end;
	error = -pthread_create(&queue->thread, NULL, thread, queue);
	if (error)
		goto end;
	pthread_mutex_lock(&queue->lock);
	while (!queue->threaded)
		pthread_cond_wait(&queue->changed, &queue->lock);
	error = queue->error;
	pthread_mutex_unlock(&queue->lock);
	if (!error)
		return 0;
	pthread_join(queue->thread, NULL);
	queue->threaded = false;
end:
	queue_end(queue);
	return error;
}

void queue_end(struct queue *queue)
{
	if (queue->threaded) {
		queue_want(queue, QUEUE_EXIT);
		pthread_join(queue->thread, NULL);
	}
	queue_drop(queue);
	if (queue->wake >= 0)
		close(queue->wake);
	if (queue->kick >= 0)
		close(queue->kick);
	if (queue->bounce)
		munmap(queue->bounce, (size_t)BOUNCE_BUFFERS * BOUNCE_BYTES);
	free(queue->ios);
	free(queue->parts);
	pthread_mutex_destroy(&queue->lock);
	pthread_cond_destroy(&queue->changed);
}
