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

/* ------------------------------------------------------------------ dirty */

/*
 * Writers beside one that reads what is dirty and makes it clean. Pages STEADY
 * to STEADY_LAST stay mapped, in leaves of one and of four pages; the others come
 * and go. The first word of a page counts writes through dmamap_translate(),
 * the second those through dmamap_write(); each page has one writer.
 *
 * Two promises are held to. Whoever copies the dirty leaves after each read
 * has every write that had ended before it. And a write that begins after one
 * read and ends before the next is in the next.
 */
#define WRITERS	     2u
#define DIRTY_PAGES  16u
#define STEADY	     4u /* pages from here on stay mapped */
#define DIRTY_ROUNDS 1500u

struct written {
	atomic_ulong began, ended;
};

static struct written by_segment[DIRTY_PAGES], by_write[DIRTY_PAGES];
static atomic_bool writers_stop;
static struct dmamap_table *dirty_table;
static uint64_t *words; /* a page each */

static uint64_t dirty_iova(unsigned page)
{
	return ((uint64_t)1 << 39) + page * PAGE;
}

static atomic_ulong *word_of(unsigned page, unsigned n)
{
	return (atomic_ulong *)&words[page * PAGE / sizeof(uint64_t) + n];
}

static void map_page(
	struct dmamap_space *shared, struct dmamap_memory *backing, unsigned page, unsigned n)
{
	struct dmamap_map map = {.first = dirty_iova(page),
		.last = dirty_iova(page + n) - 1,
		.memory = backing,
		.offset = page * PAGE,
		.prot = 3};

	if (dmamap_map(shared, &map, NULL))
		fail_msg("map");
}

static bool write_segment(struct dmamap_access *access, unsigned page, unsigned long value)
{
	struct dmamap_segment segment;
	int rc;

	dmamap_access_enter(access);
	rc = dmamap_translate(access, dirty_iova(page), 8, DMAMAP_WRITE, &segment, 1, NULL);
	if (rc == 1) {
		/* The longer a section is open, the more reads fall into it. */
		if (value % 16 == 0)
			sched_yield();
		assert_ptr_equal(segment.host, word_of(page, 0));
		atomic_store_explicit(word_of(page, 0), value, memory_order_relaxed);
	} else if (rc != -EFAULT || page >= STEADY) {
		fail_msg("translate: %d", rc);
	}
	dmamap_access_leave(access);
	return rc == 1;
}

static void *dirty_writer(void *argument)
{
	unsigned which = (unsigned)(uintptr_t)argument;
	struct random random = {which * 2 + 3};
	struct dmamap_access *access;

	assert_int_equal(dmamap_access_create(dirty_table, &access), 0);
	while (!atomic_load(&writers_stop)) {
		unsigned page =
			(unsigned)random_below(&random, DIRTY_PAGES / WRITERS) * WRITERS + which;
		bool segment = random_below(&random, 2);
		struct written *written = segment ? &by_segment[page] : &by_write[page];
		uint64_t value = atomic_load(&written->began) + 1;
		int rc = 0;

		atomic_store(&written->began, value);
		if (segment)
			rc = write_segment(access, page, value) ? 0 : -EFAULT;
		else
			rc = dmamap_write(access, dirty_iova(page) + 8, &value, 8, NULL);
		if (rc && (rc != -EFAULT || page >= STEADY))
			fail_msg("write: %d", rc);
		atomic_store(&written->ended, value);
		/* Stay away at times, so that leaves stay clean for a while. */
		if (random_below(&random, 64) == 0)
			sched_yield();
	}
	dmamap_access_destroy(access);
	return NULL;
}

static void found_page(void *argument, uint64_t first, uint64_t last)
{
	bool *found = argument;

	for (uint64_t iova = first; iova < last; iova += PAGE)
		found[(iova - dirty_iova(0)) / PAGE] = true;
}

static void found_nothing(void *argument, uint64_t first, uint64_t last)
{
	(void)argument;
	fail_msg("an unmapped leaf is dirty: %llx-%llx", (unsigned long long)first,
		(unsigned long long)last);
}

/* Pages below STEADY come and go; what is unmapped is not dirty, whoever writes beside. */
static void *dirty_mapper(void *argument)
{
	struct dmamap_space *shared = argument;
	struct dmamap_memory *backing;
	struct random random = {11};

	assert_int_equal(dmamap_memory_user(words, DIRTY_PAGES * PAGE, 3, 0, &backing, NULL), 0);
	while (!atomic_load(&writers_stop)) {
		unsigned page = (unsigned)random_below(&random, STEADY);

		map_page(shared, backing, page, 1);
		sched_yield();
		if (dmamap_unmap(shared, dirty_iova(page), dirty_iova(page + 1) - 1, NULL, NULL))
			fail_msg("unmap");
		/* Tracking is off at times: then there is nothing to read. */
		dmamap_table_dirty_read(dirty_table, dirty_iova(page), dirty_iova(page + 1) - 1,
			DMAMAP_DIRTY_KEEP, found_nothing, NULL);
	}
	dmamap_memory_put(backing);
	return NULL;
}

/* One read of what is dirty, and a copy of it; @all: tracking starts again, all is copied. */
static unsigned dirty_round(unsigned long *copy, bool all)
{
	static unsigned long before[DIRTY_PAGES], began[DIRTY_PAGES];
	bool found[DIRTY_PAGES] = {0};
	unsigned n = 0;

	for (unsigned i = STEADY; i < DIRTY_PAGES; i++)
		before[i] = atomic_load(&by_segment[i].ended);
	if (all) {
		dmamap_table_dirty_start(dirty_table);
		memset(found, true, sizeof(found));
	} else {
		unsigned long ended[DIRTY_PAGES];

		for (unsigned i = STEADY; i < DIRTY_PAGES; i++)
			ended[i] = atomic_load(&by_write[i].ended);
		if (dmamap_table_dirty_read(dirty_table, 0, UINT64_MAX, 0, found_page, found))
			fail_msg("read");
		for (unsigned i = STEADY; i < DIRTY_PAGES; i++)
			if (ended[i] > began[i] && !found[i])
				fail_msg("page %u: a write between two reads is not found", i);
	}
	for (unsigned i = STEADY; i < DIRTY_PAGES; i++)
		began[i] = atomic_load(&by_write[i].began);
	for (unsigned i = STEADY; i < DIRTY_PAGES; i++) {
		n += found[i];
		if (found[i])
			copy[i] = atomic_load_explicit(word_of(i, 0), memory_order_relaxed);
		if (copy[i] < before[i])
			fail_msg("page %u: write %lu ended, the copy has %lu", i, before[i],
				copy[i]);
	}
	return n;
}

static void no_write_is_lost(void **state)
{
	struct dmamap_table_config config = {.leaf_sizes = 1 << 12 | 1 << 14};
	unsigned long copy[DIRTY_PAGES] = {0};
	pthread_t writers[WRITERS], mapper_thread;
	struct dmamap_space *shared;
	struct dmamap_memory *backing;
	struct dmamap_counters counters;
	unsigned long found = 0;

	(void)state;
	words = aligned_alloc(PAGE, DIRTY_PAGES * PAGE);
	memset(words, 0, DIRTY_PAGES * PAGE);
	assert_int_equal(dmamap_memory_user(words, DIRTY_PAGES * PAGE, 3, 0, &backing, NULL), 0);
	assert_int_equal(dmamap_space_create(NULL, &shared), 0);
	assert_int_equal(dmamap_table_create(shared, &config, &dirty_table, NULL), 0);
	map_page(shared, backing, STEADY, 8);
	for (unsigned i = STEADY + 8; i < DIRTY_PAGES; i++)
		map_page(shared, backing, i, 1);
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, dirty_writer, (void *)i);
	pthread_create(&mapper_thread, NULL, dirty_mapper, shared);
	for (unsigned round = 0; round < DIRTY_ROUNDS; round++) {
		bool all = round % 64 == 0;
		unsigned n;

		if (round % 128 == 64)
			dmamap_table_dirty_stop(dirty_table);
		n = dirty_round(copy, all);
		found += all ? 0 : n;
		/* Let writers in, but not after each read that found some. */
		while (!all && n == 0 && !(n = dirty_round(copy, false)))
			sched_yield();
	}
	atomic_store(&writers_stop, true);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	pthread_join(mapper_thread, NULL);
	found += dirty_round(copy, false);
	for (unsigned i = STEADY; i < DIRTY_PAGES; i++)
		assert_int_equal(copy[i], *word_of(i, 0));
	printf("%lu dirty pages found in %u reads\n", found, DIRTY_ROUNDS);
	assert_true(found > 100);
	assert_int_equal(dmamap_unmap(shared, 0, UINT64_MAX, NULL, NULL), 0);
	dmamap_space_counters(shared, &counters);
	assert_int_equal(counters.tables, 0);
	for (unsigned shift = 0; shift < 64; shift++)
		assert_int_equal(counters.leaves[shift], counters.leaves_cleared[shift]);
	assert_int_equal(counters.leaves[14], 2);
	dmamap_space_destroy(shared);
	dmamap_memory_put(backing);
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unmap_waits_for_readers),
		cmocka_unit_test(tables_beside_maps),
		cmocka_unit_test(no_write_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
