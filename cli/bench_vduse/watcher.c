/* SPDX-License-Identifier: MIT */
/* The thread beside the load; see watcher.h. */
#include "watcher.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "cli/bench/interrupt.h"

#define LOOK_NS 5000000
#define LATE_NS 3000000000  /* that requests may take after a signal */
#define IDLE_NS 30000000000 /* that all of them may take */

/* The load's question has no argument. */
static atomic_bool broken;

static void signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(how, &set, NULL);
}

/*
 * Threads map and unmap while their counts are added up, so that the sum of
 * units can be too high: by the maps of that time, at most. Those are known
 * from counts before and after. Lock held.
 */
static void look_at_units(struct watcher *watcher)
{
	struct dmamap_bounce *bounce = dmamap_vdpa_bounce(watcher->vdpa, 0);
	struct dmamap_bounce_counters before, during, after;
	uint64_t maps, unsure;

	dmamap_bounce_counters(bounce, &before);
	dmamap_bounce_counters(bounce, &during);
	dmamap_bounce_counters(bounce, &after);
	maps = after.fast + after.slow - before.fast - before.slow;
	unsure = maps * watcher->map_units;
	if (during.live_units > unsure && during.live_units - unsure > watcher->most)
		watcher->most = during.live_units - unsure;
}

/* Lock held. */
static bool is_hopeless(struct watcher *watcher)
{
	struct dmamap_blk_counters counters;
	char how[DISK_TEXT];

	/* Its locks are the load's: not at every look. */
	if (watcher->idle++ % (IDLE_NS / LOOK_NS / 16) == 0) {
		dmamap_blk_counters(watcher->blk, &counters);
		if (counters.completed != watcher->completed)
			watcher->idle = 1;
		watcher->completed = counters.completed;
	}
	watcher->late += interrupt_signal() != 0;
	return watcher->idle > IDLE_NS / LOOK_NS || watcher->late > LATE_NS / LOOK_NS ||
	       !watcher->disk->kind->alive(watcher->disk, how);
}

/* Lock held. */
static void look_at_disk(struct watcher *watcher)
{
	if (watcher->broke || !is_hopeless(watcher))
		return;
	watcher->broke = true;
	atomic_store(&broken, true);
	dmamap_blk_break(watcher->blk);
}

static void *watch(void *argument)
{
	struct watcher *watcher = argument;
	struct timespec until;

	signals(SIG_UNBLOCK);
	pthread_mutex_lock(&watcher->lock);
	while (!watcher->ended) {
		if (watcher->disk) {
			look_at_units(watcher);
			look_at_disk(watcher);
		}
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&watcher->wake, &watcher->lock, &until);
	}
	pthread_mutex_unlock(&watcher->lock);
	return NULL;
}

int watcher_start(struct watcher *watcher, struct complaint *complaint)
{
	int error;

	signals(SIG_BLOCK);
	pthread_mutex_init(&watcher->lock, NULL);
	pthread_cond_init(&watcher->wake, NULL);
	error = pthread_create(&watcher->thread, NULL, watch, watcher);
	if (error)
		return complain(complaint, "no thread can be made (%s)", strerror(error));
	watcher->started = true;
	return 0;
}

void watcher_end(struct watcher *watcher)
{
	if (watcher->started) {
		pthread_mutex_lock(&watcher->lock);
		watcher->ended = true;
		pthread_cond_signal(&watcher->wake);
		pthread_mutex_unlock(&watcher->lock);
		pthread_join(watcher->thread, NULL);
	}
	signals(SIG_UNBLOCK);
}

void watcher_begin(struct watcher *watcher, struct bench_disk *disk, struct dmamap_vdpa *vdpa,
	struct dmamap_blk *blk, uint64_t map_units)
{
	pthread_mutex_lock(&watcher->lock);
	watcher->disk = disk;
	watcher->vdpa = vdpa;
	watcher->blk = blk;
	watcher->map_units = map_units;
	watcher->most = 0;
	watcher->idle = 0;
	watcher->completed = 0;
	watcher->broke = false;
	atomic_store(&broken, false);
	pthread_mutex_unlock(&watcher->lock);
}

bool watcher_stop(struct watcher *watcher, uint64_t *most)
{
	bool broke;

	pthread_mutex_lock(&watcher->lock);
	watcher->disk = NULL;
	*most = watcher->most;
	broke = watcher->broke;
	pthread_mutex_unlock(&watcher->lock);
	return broke;
}

bool watcher_stopped(void)
{
	return interrupt_signal() || atomic_load_explicit(&broken, memory_order_relaxed);
}
