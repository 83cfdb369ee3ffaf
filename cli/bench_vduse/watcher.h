/* SPDX-License-Identifier: MIT */
/*
 * A thread beside the load. The bounce domain does not know how many units were
 * in use at most; it looks, every few milliseconds, and takes what is certain of
 * what it sees. It ends a load whose disk will not answer any more. It is also
 * the one thread that takes signals.
 */
#ifndef BENCH_VDUSE_WATCHER_H
#define BENCH_VDUSE_WATCHER_H

#include <pthread.h>

#include "disk.h"

/** struct watcher - @lock guards all but the thread. */
struct watcher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool started;
	bool ended;
	struct bench_disk *disk; /**< of the load; NULL: there is none */
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
	uint64_t map_units; /**< of the longest map */
	uint64_t most;
	unsigned late; /**< looks since a signal came */
	unsigned idle; /**< looks since a request was completed */
	uint64_t completed;
	bool broke;
};

/** watcher_start() - This thread, and all that it makes from now on, take no signals.
 * Return: 0; -1 with a complaint. */
int watcher_start(struct watcher *watcher, struct complaint *complaint);
void watcher_end(struct watcher *watcher);

/** watcher_begin() - A load begins. */
void watcher_begin(struct watcher *watcher, struct bench_disk *disk, struct dmamap_vdpa *vdpa,
	struct dmamap_blk *blk, uint64_t map_units);
/** watcher_stop() - It is over. @most: out, units. Return: whether it had to be ended, as
 * nobody answered. */
bool watcher_stop(struct watcher *watcher, uint64_t *most);

/** watcher_stopped() - For the load: whether it is to make no more requests. */
bool watcher_stopped(void);

#endif
