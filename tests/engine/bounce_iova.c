/* SPDX-License-Identifier: MIT */
/*
 * IOVAs of the bounce domain: the allocator against a flat model, and how many
 * the caches hold and where they go (Linux 7.3, drivers/iommu/iova.c).
 */
#include <pthread.h>

#include "engine/iova_cache.h"
#include "engine/pool.h"
#include "tests/check.h"

/* -------------------------------------------------------------- allocator */

#define UNITS_MOST 700u

/* The highest free run of @n units whose start is a multiple of @n rounded up; 0: none. */
static uint64_t model_find(const bool *used, uint64_t first, uint64_t last, uint64_t n)
{
	uint64_t align = 1;

	while (align < n)
		align *= 2;
	for (uint64_t at = last + 1; at-- > first;) {
		bool room = at % align == 0 && at + n <= last + 1;

		for (uint64_t i = at; room && i < at + n; i++)
			room = !used[i];
		if (room)
			return at;
	}
	return 0;
}

static void allocator_against_model(struct random *random, uint64_t first, uint64_t last)
{
	struct iova_units units;
	bool used[UNITS_MOST] = {0};
	struct {
		uint64_t first, n;
	} run[UNITS_MOST];
	unsigned runs = 0, failed = 0;

	assert_int_equal(iova_units_start(&units, first, last), 0);
	for (unsigned step = 0; step < 6000; step++) {
		/* Mostly full, at times mostly empty. */
		bool take = random_below(random, 16) < (step / 500 % 2 ? 6 : 10);

		if (take) {
			uint64_t n = 1 + random_below(random, random_below(random, 8) ? 8 : 200);
			uint64_t at, wanted;

			n = iova_rounded(n);
			wanted = model_find(used, first, last, n);
			if (!iova_units_take(&units, n, &at)) {
				assert_int_equal(wanted, 0);
				failed++;
				continue;
			}
			assert_int_equal(at, wanted);
			for (uint64_t i = at; i < at + n; i++)
				used[i] = true;
			run[runs].first = at;
			run[runs++].n = n;
		} else if (runs) {
			unsigned which = (unsigned)random_below(random, runs);

			iova_units_give(&units, run[which].first, run[which].n);
			for (uint64_t i = 0; i < run[which].n; i++)
				used[run[which].first + i] = false;
			run[which] = run[--runs];
		}
	}
	assert_true(failed > 0);
	iova_units_stop(&units);
}

static void the_highest_aligned_run_is_taken(void **state)
{
	static const struct {
		uint64_t first, last;
	} rows[] = {{1, 15}, {1, 63}, {1, 64}, {1, 255}, {1, 689}, {64, 127}, {65, 130}, {500, 699},
		{129, 690}};
	struct random random = random_start("allocator");

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		allocator_against_model(&random, rows[i].first, rows[i].last);
}

/* Whatever an empty allocator says is its largest run, it has, and none larger. */
static void the_largest_run(void **state)
{
	struct random random = random_start("largest");

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		uint64_t first = 1 + random_below(&random, 300);
		uint64_t last = first + random_below(&random, UNITS_MOST - first) - 1;
		struct iova_units units;
		uint64_t largest, at;

		assert_int_equal(iova_units_start(&units, first, last), 0);
		largest = iova_units_largest(&units);
		assert_int_equal(largest == 0, last < first);
		if (largest) {
			assert_true(iova_units_take(&units, largest, &at));
			assert_true(at >= first && at + largest <= last + 1);
			iova_units_give(&units, at, largest);
		}
		for (uint64_t n = largest + 1; n < UNITS_MOST; n++)
			assert_false(iova_units_take(&units, n, &at));
		assert_false(iova_units_take(&units, UINT64_MAX, &at));
		iova_units_stop(&units);
	}
}

/* ----------------------------------------------------------------- caches */

static struct iova_cache cache;
static uint64_t held[4096];

static void get(unsigned n, uint64_t size)
{
	for (unsigned i = 0; i < n; i++)
		assert_true(iova_cache_get(&cache, size, 0, &held[i]));
}

static void put(unsigned n, uint64_t size)
{
	for (unsigned i = 0; i < n; i++)
		iova_cache_put(&cache, held[i], size, 0);
}

static struct iova_counts counts(void)
{
	struct iova_counts now;

	iova_cache_counts(&cache, &now);
	return now;
}

/* Once its units are in magazines, a thread never asks the allocator again. */
static void steady_threads_stay_in_their_caches(void **state)
{
	(void)state;
	for (unsigned order = 0; order < IOVA_ORDERS; order++) {
		uint64_t size = (uint64_t)1 << order;

		assert_int_equal(iova_cache_start(&cache, 1, 65535, 4, 127), 0);
		get(600, size);
		put(600, size); /* two magazines, and three in the depot */
		assert_int_equal(counts().slow, 600);
		for (unsigned i = 0; i < 20; i++) {
			get(600, size);
			assert_int_equal(counts().live, 600 * size);
			put(600, size);
		}
		assert_int_equal(counts().slow, 600);
		assert_int_equal(counts().fast, 20 * 600);
		assert_int_equal(counts().live, 0);
		assert_int_equal(cache.flushes, 0);
		iova_cache_stop(&cache);
	}
}

/* Runs of 64 units and more are not kept; of 17 to 31, they are kept as 32. */
static void what_is_kept(void **state)
{
	(void)state;
	assert_int_equal(iova_cache_start(&cache, 1, 4095, 1, 127), 0);
	get(1, 33);
	put(1, 33);
	get(1, 33);
	put(1, 33);
	assert_int_equal(counts().slow, 2);
	get(1, 17);
	assert_int_equal(counts().live, 32);
	put(1, 17);
	get(1, 32);
	assert_int_equal(counts().slow, 3);
	assert_int_equal(counts().fast, 1);
	put(1, 32);
	iova_cache_stop(&cache);
}

static void *put_all(void *argument)
{
	(void)argument;
	put(600, 1);
	return NULL;
}

static void *get_all(void *argument)
{
	(void)argument;
	get(600, 1);
	return NULL;
}

static void on_another_thread(void *(*what)(void *))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, what, NULL), 0);
	pthread_join(thread, NULL);
}

/* One thread maps, another unmaps: full magazines come back through the depot. */
static void the_depot_carries_units_between_threads(void **state)
{
	uint64_t slow;

	(void)state;
	assert_int_equal(iova_cache_start(&cache, 1, 65535, 64, 127), 0);
	get(600, 1);
	on_another_thread(put_all);
	slow = counts().slow;
	get(600, 1);
	/* It kept one magazine of 127 and one of 92; three are in the depot. */
	assert_int_equal(counts().slow - slow, 600 - 3 * 127);
	assert_int_equal(counts().live, 600);
	iova_cache_stop(&cache);
}

static pthread_barrier_t turn;

static void *put_in_turn(void *argument)
{
	unsigned rounds = *(unsigned *)argument;

	for (unsigned i = 0; i < rounds; i++) {
		pthread_barrier_wait(&turn);
		put(50, 1);
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

/*
 * Maps on one thread, unmaps on another, as block requests that complete
 * elsewhere: the allocator is asked for what is mapped and for what the other
 * thread keeps, two magazines, and then never again.
 */
static void a_steady_stream_between_threads(void **state)
{
	unsigned rounds = 400;
	uint64_t warm = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(iova_cache_start(&cache, 1, 16383, 64, 127), 0);
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&thread, NULL, put_in_turn, &rounds);
	for (unsigned i = 0; i < rounds; i++) {
		get(50, 1);
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
		if (i == 127) /* every place of a magazine was the first once */
			warm = counts().slow;
	}
	pthread_join(thread, NULL);
	assert_true(warm > 0 && warm <= 50 + 2 * 127);
	assert_int_equal(counts().slow, warm);
	assert_int_equal(counts().fast, rounds * 50 - warm);
	assert_int_equal(cache.flushes, 0);
	pthread_barrier_destroy(&turn);
	iova_cache_stop(&cache);
}

/* What other threads hold is found when nothing is left, by one flush. */
static void a_flush_finds_what_is_held(void **state)
{
	(void)state;
	assert_int_equal(iova_cache_start(&cache, 1, 600, 64, 127), 0);
	on_another_thread(get_all);
	put(600, 1); /* two magazines here, three in the depot */
	on_another_thread(get_all);
	assert_int_equal(cache.flushes, 1);
	assert_int_equal(counts().live, 600);
	assert_int_equal(counts().fast, 3 * 127);
	assert_int_equal(counts().slow, 600 + 600 - 3 * 127);
	assert_false(iova_cache_get(&cache, 1, 0, &held[600]));
	assert_int_equal(cache.flushes, 2);
	put(600, 1);
	/* A longer run is made of short ones that are in stock. */
	assert_true(iova_cache_get(&cache, 256, 0, &held[0]));
	assert_int_equal(cache.flushes, 3);
	iova_cache_stop(&cache);
}

/* Sizes are parameters: with magazines of one, two are kept and the rest is in the depot. */
static void magazines_of_one(void **state)
{
	(void)state;
	assert_int_equal(iova_cache_start(&cache, 1, 100, 1, 1), 0);
	for (unsigned i = 0; i < 50; i++) {
		get(100, 1);
		put(100, 1);
	}
	assert_int_equal(counts().slow, 100);
	assert_int_equal(counts().fast, 4900);
	iova_cache_stop(&cache);
}

static void bytes_are_counted(void **state)
{
	(void)state;
	assert_int_equal(iova_cache_start(&cache, 1, 100, 1, 127), 0);
	for (unsigned i = 0; i < 2; i++) { /* slow, then fast */
		assert_true(iova_cache_get(&cache, 1, 10, &held[0]));
		iova_cache_put(&cache, held[0], 1, 7);
	}
	iova_cache_note(&cache, 100, 50);
	iova_cache_note(&cache, -10ull, 0);
	assert_int_equal(counts().copied[0], 110);
	assert_int_equal(counts().copied[1], 64);
	iova_cache_stop(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_highest_aligned_run_is_taken),
		cmocka_unit_test(the_largest_run),
		cmocka_unit_test(steady_threads_stay_in_their_caches),
		cmocka_unit_test(what_is_kept),
		cmocka_unit_test(the_depot_carries_units_between_threads),
		cmocka_unit_test(a_steady_stream_between_threads),
		cmocka_unit_test(a_flush_finds_what_is_held),
		cmocka_unit_test(magazines_of_one),
		cmocka_unit_test(bytes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
