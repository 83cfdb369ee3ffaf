/* SPDX-License-Identifier: MIT */
/* IOVA cache: magazines and depots. See iova_cache.h. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "engine/iova_cache.h"
#include "engine/pool.h"

/* Threads are numbered as they come: as many as there are slots each have their own. */
static unsigned threads;
static __thread unsigned thread_number; /* 0: not numbered yet */

static __attribute__((noinline)) unsigned number_thread(void)
{
	unsigned number;

	do
		number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	while (!number);
	thread_number = number;
	return number;
}

static __attribute__((noinline)) void slot_wait(struct iova_slot *slot)
{
	unsigned tries = 0;

	/* Its owner may have lost its processor. */
	while (__atomic_load_n(&slot->lock, __ATOMIC_RELAXED))
		if (++tries % 64 == 0)
			sched_yield();
}

static inline void slot_lock(struct iova_slot *slot)
{
	while (__builtin_expect(__atomic_exchange_n(&slot->lock, 1, __ATOMIC_ACQUIRE) != 0, 0))
		slot_wait(slot);
}

static inline void slot_unlock(struct iova_slot *slot)
{
	__atomic_store_n(&slot->lock, 0, __ATOMIC_RELEASE);
}

/* The calling thread's slot, locked. */
static inline struct iova_slot *slot_enter(struct iova_cache *cache)
{
	unsigned number = thread_number ? thread_number : number_thread();
	struct iova_slot *slot = &cache->slot[number & (cache->slots - 1)];

	slot_lock(slot);
	return slot;
}

int iova_cache_start(
	struct iova_cache *cache, uint64_t first, uint64_t last, unsigned slots, unsigned magazine)
{
	*cache = (struct iova_cache){.slots = slots, .magazine = magazine};
	if (iova_units_start(&cache->units, first, last))
		return -ENOMEM;
	if (fail_now() || posix_memalign((void **)&cache->slot, _Alignof(struct iova_slot),
				  slots * sizeof(struct iova_slot))) {
		iova_units_stop(&cache->units);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < slots; i++)
		cache->slot[i] = (struct iova_slot){0};
	pthread_mutex_init(&cache->depot_lock, NULL);
	return 0;
}

void iova_cache_stop(struct iova_cache *cache)
{
	for (unsigned order = 0; order < IOVA_ORDERS; order++) {
		struct magazine *magazine, *next;

		for (unsigned i = 0; i < cache->slots; i++) {
			free(cache->slot[i].stock[order].loaded);
			free(cache->slot[i].stock[order].before);
		}
		for (magazine = cache->depot[order]; magazine; magazine = next) {
			next = magazine->next;
			free(magazine);
		}
	}
	pthread_mutex_destroy(&cache->depot_lock);
	free(cache->slot);
	iova_units_stop(&cache->units);
}

static struct magazine *depot_pop(struct iova_cache *cache, unsigned order)
{
	struct magazine *magazine;

	pthread_mutex_lock(&cache->depot_lock);
	magazine = cache->depot[order];
	if (magazine) {
		cache->depot[order] = magazine->next;
		magazine->n = cache->magazine;
	}
	pthread_mutex_unlock(&cache->depot_lock);
	return magazine;
}

static void depot_push(struct iova_cache *cache, unsigned order, struct magazine *magazine)
{
	pthread_mutex_lock(&cache->depot_lock);
	magazine->next = cache->depot[order];
	cache->depot[order] = magazine;
	pthread_mutex_unlock(&cache->depot_lock);
}

/* Loads a magazine with something in it; false: the thread and the depot have none. */
static __attribute__((noinline)) bool reload(
	struct iova_cache *cache, struct iova_slot *slot, unsigned order)
{
	struct magazine *loaded = slot->stock[order].loaded, *full;

	if (slot->stock[order].before && slot->stock[order].before->n) {
		slot->stock[order].loaded = slot->stock[order].before;
		slot->stock[order].before = loaded;
		return true;
	}
	full = depot_pop(cache, order);
	if (!full)
		return false;
	slot->stock[order].loaded = full;
	free(loaded);
	return true;
}

/* Loads a magazine with room; false: no memory for one. */
static __attribute__((noinline)) bool unload(
	struct iova_cache *cache, struct iova_slot *slot, unsigned order)
{
	struct magazine *loaded = slot->stock[order].loaded, *before = slot->stock[order].before;
	struct magazine *empty;

	if (before && before->n < cache->magazine) {
		slot->stock[order].loaded = before;
		slot->stock[order].before = loaded;
		return true;
	}
	empty = engine_calloc(1, sizeof(*empty) + cache->magazine * sizeof(empty->unit[0]));
	if (!empty)
		return false;
	if (loaded && !before)
		slot->stock[order].before = loaded;
	else if (loaded)
		depot_push(cache, order, loaded);
	slot->stock[order].loaded = empty;
	return true;
}

static void empty_magazine(struct iova_cache *cache, struct magazine *magazine, unsigned order)
{
	while (magazine && magazine->n)
		iova_units_give(&cache->units, magazine->unit[--magazine->n], (uint64_t)1 << order);
}

/* All that is in stock goes back to the allocator. */
static void flush(struct iova_cache *cache)
{
	struct magazine *magazine;

	__atomic_add_fetch(&cache->flushes, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < cache->slots; i++) {
		struct iova_slot *slot = &cache->slot[i];

		slot_lock(slot);
		for (unsigned order = 0; order < IOVA_ORDERS; order++) {
			empty_magazine(cache, slot->stock[order].loaded, order);
			empty_magazine(cache, slot->stock[order].before, order);
		}
		slot_unlock(slot);
	}
	for (unsigned order = 0; order < IOVA_ORDERS; order++) {
		while ((magazine = depot_pop(cache, order))) {
			empty_magazine(cache, magazine, order);
			free(magazine);
		}
	}
}

static __attribute__((noinline)) bool get_slow(
	struct iova_cache *cache, uint64_t n, uint64_t copied, uint64_t *first)
{
	struct iova_slot *slot;

	if (!iova_units_take(&cache->units, n, first)) {
		flush(cache);
		if (!iova_units_take(&cache->units, n, first))
			return false;
	}
	slot = slot_enter(cache);
	slot->counts.slow++;
	slot->counts.live += n;
	slot->counts.copied[0] += copied;
	slot_unlock(slot);
	return true;
}

bool iova_cache_get(struct iova_cache *cache, uint64_t n, uint64_t copied, uint64_t *first)
{
	unsigned order = iova_order(n);
	struct iova_slot *slot;
	struct magazine *magazine;

	n = iova_rounded(n);
	if (order >= IOVA_ORDERS)
		return get_slow(cache, n, copied, first);
	slot = slot_enter(cache);
	magazine = slot->stock[order].loaded;
	if (!magazine || !magazine->n) {
		if (!reload(cache, slot, order)) {
			slot_unlock(slot);
			return get_slow(cache, n, copied, first);
		}
		magazine = slot->stock[order].loaded;
	}
	*first = magazine->unit[--magazine->n];
	slot->counts.fast++;
	slot->counts.live += n;
	slot->counts.copied[0] += copied;
	slot_unlock(slot);
	return true;
}

void iova_cache_put(struct iova_cache *cache, uint64_t first, uint64_t n, uint64_t copied)
{
	unsigned order = iova_order(n);
	struct iova_slot *slot;
	struct magazine *magazine;

	n = iova_rounded(n);
	slot = slot_enter(cache);
	slot->counts.live -= n;
	slot->counts.copied[1] += copied;
	if (order >= IOVA_ORDERS)
		goto slow;
	magazine = slot->stock[order].loaded;
	if (!magazine || magazine->n == cache->magazine) {
		if (!unload(cache, slot, order))
			goto slow;
		magazine = slot->stock[order].loaded;
	}
	magazine->unit[magazine->n++] = (uint32_t)first;
	slot_unlock(slot);
	return;
slow:
	slot_unlock(slot);
	iova_units_give(&cache->units, first, n);
}

void iova_cache_note(struct iova_cache *cache, uint64_t at_get, uint64_t at_put)
{
	struct iova_slot *slot = slot_enter(cache);

	slot->counts.copied[0] += at_get;
	slot->counts.copied[1] += at_put;
	slot_unlock(slot);
}

void iova_cache_counts(struct iova_cache *cache, struct iova_counts *counts)
{
	*counts = (struct iova_counts){0};
	for (unsigned i = 0; i < cache->slots; i++) {
		struct iova_slot *slot = &cache->slot[i];

		slot_lock(slot);
		counts->live += slot->counts.live;
		counts->fast += slot->counts.fast;
		counts->slow += slot->counts.slow;
		counts->copied[0] += slot->counts.copied[0];
		counts->copied[1] += slot->counts.copied[1];
		slot_unlock(slot);
	}
	/* A mapping that moved between threads may have been seen at its end only. */
	if ((int64_t)counts->live < 0)
		counts->live = 0;
}
