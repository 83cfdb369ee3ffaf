/* SPDX-License-Identifier: MIT */
/*
 * Readers beside changes. The guarantee under test: when unmap has returned, no
 * access to that range is under way and none starts. The mapper proves it by
 * poisoning each page right after its unmap returns: a device that still
 * copies from it would read the poison.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "engine/space.h"
#include "tests/check.h"

#define PAGE   4096ull
#define PAGES  8u
#define POISON 0x5a

static struct dmamap_space *space;
static struct dmamap_table *table;
static struct dmamap_memory *memory;
static char *host;
static atomic_bool stop;
static atomic_ulong hits, misses;

static uint64_t iova_of(unsigned page)
{
	return ((uint64_t)1 << 40) + page * PAGE * 3;
}

static void *reader(void *argument)
{
	struct random random = {(uintptr_t)argument * 2 + 1};
	struct dmamap_access *access;
	char buffer[PAGE];

	assert_int_equal(dmamap_access_create(table, &access), 0);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		unsigned page = (unsigned)random_below(&random, PAGES);
		int rc = dmamap_read(access, iova_of(page), buffer, sizeof(buffer), NULL);

		if (rc) {
			assert_int_equal(rc, -EFAULT);
			atomic_fetch_add_explicit(&misses, 1, memory_order_relaxed);
			continue;
		}
		atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed);
		/* Each page holds its number; a poisoned byte means a read past an unmap. */
		for (unsigned i = 0; i < sizeof(buffer); i++)
			if (buffer[i] != (char)page)
				fail_msg("page %u: byte %u is %d", page, i, buffer[i]);
	}
	dmamap_access_destroy(access);
	return NULL;
}

static void *mapper(void *argument)
{
	struct random random = {(uintptr_t)argument * 2 + 7};
	/* Mappers share the pages by parity, so that each poisons only its own. */
	unsigned parity = (uintptr_t)argument & 1;

	for (unsigned i = 0; i < 3000; i++) {
		unsigned page = (unsigned)random_below(&random, PAGES / 2) * 2 + parity;
		struct dmamap_map map = {.first = iova_of(page),
			.last = iova_of(page) + PAGE - 1,
			.memory = memory,
			.offset = page * PAGE,
			.prot = 3};
		uint64_t bytes;

		memset(host + page * PAGE, (int)page, PAGE);
		if (dmamap_map(space, &map, NULL))
			fail_msg("map");
		if (i % 2)
			sched_yield(); /* let a reader in */
		if (dmamap_unmap(space, map.first, map.last, &bytes, NULL) || bytes != PAGE)
			fail_msg("unmap");
		memset(host + page * PAGE, POISON, PAGE);
	}
	return NULL;
}

static void unmap_waits_for_readers(void **state)
{
	pthread_t readers[2], mappers[2];
	struct dmamap_counters counters;

	(void)state;
	host = aligned_alloc(PAGE, PAGES * PAGE);
	memset(host, POISON, PAGES * PAGE);
	assert_int_equal(dmamap_memory_user(host, PAGES * PAGE, 3, 0, &memory, NULL), 0);
	assert_int_equal(dmamap_space_create(NULL, &space), 0);
	assert_int_equal(dmamap_table_create(space, NULL, &table, NULL), 0);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&readers[i], NULL, reader, (void *)i);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&mappers[i], NULL, mapper, (void *)i);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(mappers[i], NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	dmamap_space_counters(space, &counters);
	printf("%lu hits, %lu misses, %llu waits\n", atomic_load(&hits), atomic_load(&misses),
		(unsigned long long)counters.waits);
	assert_int_equal(counters.areas, 0);
	assert_int_equal(counters.tables, 0);
	assert_true(counters.waits > 0 && atomic_load(&misses) > 0 && atomic_load(&hits) > 100);
	dmamap_space_destroy(space);
	dmamap_memory_put(memory);
	free(host);
}

static atomic_bool tables_stop;

static void *churn_tables(void *argument)
{
	struct dmamap_space *shared = argument;

	while (!atomic_load(&tables_stop)) {
		struct dmamap_table *extra;
		struct dmamap_access *access;

		if (dmamap_table_create(shared, NULL, &extra, NULL))
			fail_msg("table");
		if (dmamap_access_create(extra, &access))
			fail_msg("access");
		dmamap_access_destroy(access);
		dmamap_table_destroy(extra);
	}
	return NULL;
}

/* Tables and accesses come and go beside maps and unmaps in the same space. */
static void tables_beside_maps(void **state)
{
	struct dmamap_space *shared;
	struct dmamap_memory *file;
	pthread_t thread;

	(void)state;
	assert_int_equal(dmamap_memory_file((void *)(1ull << 40), 0, 1 << 30, 3, 62, &file), 0);
	assert_int_equal(dmamap_space_create(NULL, &shared), 0);
	pthread_create(&thread, NULL, churn_tables, shared);
	for (unsigned i = 0; i < 3000; i++) {
		struct dmamap_map map = {.last = 64 * PAGE - 1,
			.memory = file,
			.prot = 3,
			.flags = DMAMAP_MAP_ALLOCATE};

		assert_int_equal(dmamap_map(shared, &map, NULL), 0);
		if (i % 8 == 7)
			assert_int_equal(dmamap_unmap(shared, 0, UINT64_MAX, NULL, NULL), 0);
	}
	atomic_store(&tables_stop, true);
	pthread_join(thread, NULL);
	dmamap_space_destroy(shared);
	assert_int_equal(file->refs, 1);
	dmamap_memory_put(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unmap_waits_for_readers),
		cmocka_unit_test(tables_beside_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
