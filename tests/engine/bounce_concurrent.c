/* SPDX-License-Identifier: MIT */
/*
 * Threads in one bounce domain: they map and unmap beside each other, beside
 * umem that comes and goes, and beside coherent memory, in a buffer so small
 * that caches are flushed all the time. Every byte is checked on its way:
 *
 *	what the driver gave is what a sync or the device finds, wherever the
 *	buffer has moved in between; what the device wrote is what unmap brings
 *
 * A device that changes its umem stops its own accesses first: here a lock of
 * the test, which only the device's side takes.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/engine/bounce.h"

#define WORKERS 4u
#define HELD	14u /* mappings of a worker at a time */
#define ROUNDS	3000u
#define SIZE	(256 * KIB)

static struct dmamap_bounce *bounce;
static unsigned char *device_base, *device_file; /* device_base: under device_lock */
static pthread_rwlock_t device_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool stop;
static atomic_ulong maps, full, moves, from_device, to_device;

struct held {
	unsigned char buffer[9000];
	uint64_t iova, size;
	unsigned prot;
	unsigned char fill;
};

/* The device reads what it is given, or answers. */
static void device(struct held *held)
{
	pthread_rwlock_rdlock(&device_lock);
	if (held->prot & DMAMAP_READ && !all(device_base + held->iova, held->fill, held->size))
		fail_msg("the device does not see what the driver gave");
	if (held->prot & DMAMAP_WRITE) {
		held->fill ^= 0xff;
		memset(device_base + held->iova, held->fill, held->size);
	}
	pthread_rwlock_unlock(&device_lock);
}

/* Without the device: the driver gets back what it gave. */
static void there_and_back(struct held *held)
{
	uint64_t part = held->size / 2;

	memset(held->buffer, 0, held->size);
	sched_yield();
	if (dmamap_bounce_sync_for_cpu(bounce, held->iova + part, held->size - part, NULL))
		fail_msg("sync");
	if (!all(held->buffer + part, held->fill, held->size - part) || !all(held->buffer, 0, part))
		fail_msg("a part that was given does not come back");
	atomic_fetch_add(&from_device, held->size - part);
}

static bool start(struct held *held, struct random *random)
{
	int rc;

	held->size = 1 + random_below(random, random_below(random, 4) ? 512 : 9000);
	held->prot = 1 + (unsigned)random_below(random, 3);
	held->fill = (unsigned char)(1 + random_below(random, 254));
	memset(held->buffer, held->fill, held->size);
	rc = dmamap_bounce_map(bounce, held->buffer, held->size, held->prot, 0, &held->iova, NULL);
	if (rc == -ENOSPC) {
		atomic_fetch_add(&full, 1);
		held->size = 0;
		return false;
	}
	if (rc)
		fail_msg("map: %d", rc);
	atomic_fetch_add(&maps, 1);
	atomic_fetch_add(&to_device, held->prot & DMAMAP_READ ? held->size : 0);
	return true;
}

static void end(struct held *held)
{
	if (!held->size)
		return;
	if (held->prot == 3 && held->iova & 4096)
		there_and_back(held);
	else
		device(held);
	if (dmamap_bounce_unmap(bounce, held->iova, held->size, 0, NULL))
		fail_msg("unmap");
	if (held->prot & DMAMAP_WRITE)
		atomic_fetch_add(&from_device, held->size);
	if (!all(held->buffer, held->fill, held->size))
		fail_msg("unmap does not bring what the device wrote");
	held->size = 0;
}

static void *worker(void *argument)
{
	struct random random = {(uintptr_t)argument * 2 + 1};
	struct held *held = calloc(HELD, sizeof(*held));

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct held *one = &held[random_below(&random, HELD)];

		end(one);
		if (!start(one, &random))
			sched_yield();
	}
	for (unsigned i = 0; i < HELD; i++)
		end(&held[i]);
	free(held);
	return NULL;
}

static void *mover(void *argument)
{
	unsigned char *umem = argument;

	while (!atomic_load(&stop)) {
		bool there = device_base == umem;
		int rc;

		pthread_rwlock_wrlock(&device_lock);
		if (there)
			rc = dmamap_bounce_umem_remove(bounce, NULL);
		else
			rc = dmamap_bounce_umem_add(bounce, umem, SIZE, NULL);
		if (rc && (rc != -EINVAL || there))
			fail_msg("umem: %d", rc);
		if (!rc) {
			device_base = there ? device_file : umem;
			atomic_fetch_add(&moves, 1);
		}
		pthread_rwlock_unlock(&device_lock);
		sched_yield();
	}
	if (device_base == umem && dmamap_bounce_umem_remove(bounce, NULL))
		fail_msg("umem_remove");
	return NULL;
}

/* Coherent memory, the IOTLB and counters, beside all that. */
static void *other(void *argument)
{
	struct random random = {(uintptr_t)argument * 2 + 1};

	while (!atomic_load(&stop)) {
		uint64_t size = 1 + random_below(&random, 70000), iova;
		struct dmamap_bounce_counters counters;
		struct dmamap_iotlb_entry entry;
		unsigned char *memory;

		if (dmamap_bounce_coherent_alloc(bounce, size, &iova, (void **)&memory, NULL))
			fail_msg("coherent_alloc");
		if (!all(memory, 0, size))
			fail_msg("coherent memory is not zero");
		memset(memory, 'c', size);
		if (!dmamap_bounce_iotlb_find(bounce, iova, iova + size - 1, &entry) ||
			entry.first != iova || entry.last != iova + size - 1)
			fail_msg("iotlb");
		dmamap_bounce_counters(bounce, &counters);
		if (counters.live_units > SIZE / 4096 || counters.pages > SIZE / 65536)
			fail_msg("%llu units, %llu pages", (unsigned long long)counters.live_units,
				(unsigned long long)counters.pages);
		sched_yield();
		if (dmamap_bounce_coherent_free(bounce, iova, size, NULL))
			fail_msg("coherent_free");
	}
	return NULL;
}

static void run(const struct dmamap_bounce_config *config)
{
	pthread_t workers[WORKERS], others[2], move;
	unsigned char *umem = aligned_alloc(64 * KIB, SIZE);
	struct dmamap_bounce_counters counters;

	memset(umem, 0, SIZE);
	atomic_store(&stop, false);
	maps = full = moves = from_device = to_device = 0;
	bounce = make(config);
	device_base = device_file = device_of(bounce);
	for (uintptr_t i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, worker, (void *)i);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&others[i], NULL, other, (void *)i);
	pthread_create(&move, NULL, mover, umem);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(others[i], NULL);
	pthread_join(move, NULL);
	counters = count(bounce);
	printf("%lu maps, %lu times full, %lu moves, %llu flushes, %llu fast, %llu slow\n", maps,
		full, moves, (unsigned long long)counters.flushes,
		(unsigned long long)counters.fast, (unsigned long long)counters.slow);
	assert_true(maps > 1000 && full > 0 && moves > 10 && counters.flushes > 0);
	assert_int_equal(counters.fast + counters.slow, maps);
	assert_int_equal(counters.full, full);
	assert_int_equal(counters.to_device, to_device);
	assert_int_equal(counters.from_device, from_device);
	assert_int_equal(counters.live_units, 0);
	assert_int_equal(counters.live_pages, 0);
	/* Nothing stays behind, in either place: the device wrote within mappings only. */
	assert_true(all(device_file, 0, SIZE) && all(umem, 0, SIZE));
	/* All units are free: half of them are one run. */
	assert_int_equal(map(bounce, umem, SIZE / 2, DMAMAP_READ), SIZE / 2);
	device_gone(device_file);
	dmamap_bounce_destroy(bounce);
	free(umem);
}

static void threads_meet_in_a_small_buffer(void **state)
{
	(void)state;
	run(&(struct dmamap_bounce_config){.page_shift = 16, .bounce_size = SIZE, .magazine = 4});
}

/* Fewer caches than threads: they share, and lose nothing. */
static void threads_share_caches(void **state)
{
	(void)state;
	run(&(struct dmamap_bounce_config){
		.page_shift = 16, .bounce_size = SIZE, .caches = 2, .magazine = 1});
}

/* Pages are published by whoever comes first, and counted once. */
static pthread_barrier_t together;

static void *first_map(void *argument)
{
	static char buffer[16];
	uint64_t *iova = argument;

	pthread_barrier_wait(&together);
	if (dmamap_bounce_map(bounce, buffer, sizeof(buffer), DMAMAP_READ, 0, iova, NULL))
		fail_msg("map");
	return NULL;
}

static void threads_meet_in_a_new_page(void **state)
{
	pthread_t threads[WORKERS];
	uint64_t iova[WORKERS];

	(void)state;
	pthread_barrier_init(&together, NULL, WORKERS);
	for (unsigned round = 0; round < 50; round++) {
		bounce = make_small(false);
		for (unsigned i = 0; i < WORKERS; i++)
			pthread_create(&threads[i], NULL, first_map, &iova[i]);
		for (unsigned i = 0; i < WORKERS; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(count(bounce).pages, 1);
		for (unsigned i = 0; i < WORKERS; i++)
			unmap(bounce, iova[i], 16);
		dmamap_bounce_destroy(bounce);
	}
	pthread_barrier_destroy(&together);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_meet_in_a_small_buffer),
		cmocka_unit_test(threads_share_caches),
		cmocka_unit_test(threads_meet_in_a_new_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
