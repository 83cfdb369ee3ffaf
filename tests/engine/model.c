/* SPDX-License-Identifier: MIT */
/*
 * Random calls on the engine beside a model that cannot be wrong: flat arrays
 * that say for each page which area has it and which host page is behind.
 *
 * Pages lie in a few windows of the 64-bit space, chosen so that the edges are
 * in them: the bottom, a border between large leaves, the middle, the top.
 * Each call's result is compared, and what a device sees. Allocations fail at
 * random, after which nothing may have changed.
 */
#include <errno.h>

#include "engine/space.h"
#include "tests/check.h"

#define PAGES	   640u
#define WINDOWS	   4u
#define HOST_PAGES 1024u

struct page {
	unsigned area; /* 0: nothing is mapped */
	unsigned host; /* page in the memory object */
	unsigned prot;
};

struct shape {
	const char *name;
	struct dmamap_table_config table;
	unsigned tables;
};

struct world {
	const struct shape *shape;
	struct random *random;
	unsigned granule_shift;
	uint64_t base[WINDOWS];
	struct page page[WINDOWS][PAGES];
	struct page before[WINDOWS][PAGES];
	unsigned next_area;
	char *host;
	struct dmamap_memory *memory;
	struct dmamap_space *space;
	struct dmamap_table *table[2];
	struct dmamap_access *access[2];
	uint64_t areas;
	uint64_t failed;
};

static const struct shape shapes[] = {
	{"4K host", {.granule_shift = 12, .output = DMAMAP_OUTPUT_HOST}, 1},
	{"4K hardware", {.granule_shift = 12, .output = DMAMAP_OUTPUT_HARDWARE}, 1},
	{"AMDv1: every power of two",
		{.granule_shift = 12,
			.leaf_sizes = 0x7ffffffffff000,
			.output = DMAMAP_OUTPUT_HARDWARE},
		1},
	{"2K, one size", {.granule_shift = 11, .leaf_sizes = 1 << 11}, 1},
	{"16K", {.granule_shift = 14, .output = DMAMAP_OUTPUT_HARDWARE}, 1},
	{"64K, contiguous runs",
		{.granule_shift = 16, .leaf_sizes = 1ull << 16 | 1ull << 21 | 1ull << 29}, 1},
	{"4K in 16K nodes", {.granule_shift = 12, .node_shift = 14}, 1},
	{"two tables", {.granule_shift = 12}, 2},
};

static uint64_t granule(const struct world *world)
{
	return (uint64_t)1 << world->granule_shift;
}

static uint64_t page_iova(const struct world *world, unsigned window, unsigned page)
{
	return world->base[window] + ((uint64_t)page << world->granule_shift);
}

static bool lies_free(const struct world *world, unsigned window, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		if (world->page[window][i].area)
			return false;
	return true;
}

/* Whether some area has pages on both sides of the edge below @page. */
static bool cuts(const struct world *world, unsigned window, unsigned page)
{
	return page && page < PAGES && world->page[window][page].area &&
	       world->page[window][page].area == world->page[window][page - 1].area;
}

static void set_pages(struct world *world, unsigned window, unsigned from, unsigned n,
	unsigned host, unsigned prot)
{
	unsigned area = ++world->next_area;

	for (unsigned i = 0; i < n; i++)
		world->page[window][from + i] = (struct page){area, host + i, prot};
	world->areas++;
}

/* ------------------------------------------------------------------ calls */

static void call_map(struct world *world)
{
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned n =
		1 + (unsigned)random_below(world->random, random_below(world->random, 2) ? 4 : 80);
	unsigned from = (unsigned)random_below(world->random, PAGES - n + 1);
	unsigned host = (unsigned)random_below(world->random, HOST_PAGES - n + 1);
	unsigned prot = (unsigned)random_below(world->random, 4);
	struct dmamap_map map = {
		.first = page_iova(world, window, from),
		.last = page_iova(world, window, from) + n * granule(world) - 1,
		.memory = world->memory,
		.offset = host * granule(world),
		.prot = prot,
	};
	struct dmamap_reason why = {0};
	bool free = lies_free(world, window, from, n);
	bool fails = random_below(world->random, 8) == 0;
	int rc;

	engine_fail_nth = fails ? 1 + (int)random_below(world->random, 6) : 0;
	rc = dmamap_map(world->space, &map, &why);
	engine_fail_nth = 0;
	if (!free) {
		assert_int_equal(rc, -EEXIST);
		assert_ptr_equal(why.kind, &dmamap_reason_overlap);
	} else if (rc && fails) {
		assert_int_equal(rc, -ENOMEM);
		world->failed++;
	} else {
		assert_int_equal(rc, 0);
		set_pages(world, window, from, n, host, prot);
	}
}

static void call_unmap(struct world *world)
{
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned n = 1 + (unsigned)random_below(world->random, 100);
	unsigned from = (unsigned)random_below(world->random, PAGES - n + 1);
	uint64_t first = page_iova(world, window, from), bytes = 1, expected = 0;
	unsigned area = 0;
	int rc;

	rc = dmamap_unmap(world->space, first, first + n * granule(world) - 1, &bytes, NULL);
	if (cuts(world, window, from) || cuts(world, window, from + n)) {
		assert_int_equal(rc, -EINVAL);
		assert_int_equal(bytes, 1);
		return;
	}
	assert_int_equal(rc, 0);
	for (unsigned i = from; i < from + n; i++) {
		struct page *page = &world->page[window][i];

		if (page->area) {
			expected += granule(world);
			world->areas -= page->area != area;
			area = page->area;
		}
		*page = (struct page){0};
	}
	assert_int_equal(bytes, expected);
}

/* Allocation inside one window: the lowest hole that the model finds too. */
static void call_allocate(struct world *world)
{
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned n = 1 + (unsigned)random_below(world->random, 24);
	uint64_t alignment = granule(world) << random_below(world->random, 4);
	struct dmamap_range allowed = {page_iova(world, window, 0),
		page_iova(world, window, 0) + PAGES * granule(world) - 1};
	struct dmamap_map map = {
		.last = n * granule(world) - 1,
		.memory = world->memory,
		.prot = DMAMAP_READ | DMAMAP_WRITE,
		.flags = DMAMAP_MAP_ALLOCATE,
		.alignment = alignment,
	};
	unsigned at;
	int rc;

	assert_int_equal(dmamap_space_allow(world->space, &allowed, 1, NULL), 0);
	rc = dmamap_map(world->space, &map, NULL);
	assert_int_equal(dmamap_space_allow(world->space, NULL, 0, NULL), 0);
	for (at = 0; at + n <= PAGES; at++)
		if (page_iova(world, window, at) % alignment == 0 &&
			lies_free(world, window, at, n))
			break;
	if (at + n > PAGES) {
		assert_int_equal(rc, -ENOSPC);
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(map.first, page_iova(world, window, at));
	assert_int_equal(map.last, map.first + n * granule(world) - 1);
	set_pages(world, window, at, n, 0, map.prot);
}

static void call_copy(struct world *world)
{
	unsigned source = (unsigned)random_below(world->random, WINDOWS);
	unsigned target = (unsigned)random_below(world->random, WINDOWS);
	unsigned n = 1 + (unsigned)random_below(world->random, 12);
	unsigned from = (unsigned)random_below(world->random, PAGES - n + 1);
	unsigned to = (unsigned)random_below(world->random, PAGES - n + 1);
	struct page pages[12];
	struct dmamap_map map = {
		.first = page_iova(world, target, to),
		.prot = (unsigned)random_below(world->random, 4),
	};
	bool gap = false, fails = random_below(world->random, 6) == 0;
	uint64_t first = page_iova(world, source, from);
	int rc;

	for (unsigned i = 0; i < n; i++) {
		pages[i] = world->page[source][from + i];
		gap = gap || !pages[i].area;
	}
	engine_fail_nth = fails ? 1 + (int)random_below(world->random, 6) : 0;
	rc = dmamap_copy(
		world->space, first, first + n * granule(world) - 1, world->space, &map, NULL);
	engine_fail_nth = 0;
	if (gap) {
		assert_int_equal(rc, -ENOENT);
	} else if (rc == -ENOMEM && fails) {
		world->failed++;
	} else if (!lies_free(world, target, to, n)) {
		assert_int_equal(rc, -EEXIST);
	} else {
		assert_int_equal(rc, 0);
		for (unsigned i = 0, run = 0; i < n; i += run) {
			for (run = 1; i + run < n && pages[i + run].area == pages[i].area; run++)
				;
			set_pages(world, target, to + i, run, pages[i].host, map.prot);
		}
	}
}

/* Cuts an area in two, where no leaf lies across. */
static void call_split(struct world *world)
{
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned at = (unsigned)random_below(world->random, PAGES);
	struct dmamap_reason why = {0};
	unsigned area;
	int rc = dmamap_area_split(world->space, page_iova(world, window, at), &why);

	if (!cuts(world, window, at)) {
		assert_int_equal(rc, 0);
		return;
	}
	if (rc) {
		assert_int_equal(rc, -EINVAL);
		assert_ptr_equal(why.kind, &dmamap_reason_leaf);
		assert_true(why.number[1] > granule(world));
		return;
	}
	area = world->page[window][at].area;
	world->areas++;
	world->next_area++;
	for (; at < PAGES && world->page[window][at].area == area; at++)
		world->page[window][at].area = world->next_area;
}

/* A device's look at some pages: every byte is where the model says. */
static void call_translate(struct world *world, unsigned which)
{
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned n = 1 + (unsigned)random_below(world->random, 10);
	unsigned from = (unsigned)random_below(world->random, PAGES - n + 1);
	unsigned prot = 1 + (unsigned)random_below(world->random, 3);
	uint64_t skip = random_below(world->random, granule(world));
	uint64_t iova = page_iova(world, window, from) + skip;
	uint64_t length = n * granule(world) - skip, expected = 0;
	struct dmamap_access *access = world->access[which];
	struct dmamap_segment segments[12];
	unsigned page = from;
	int rc, error = 0;

	for (unsigned i = from; i < from + n && !error; i++) {
		if (!world->page[window][i].area)
			error = -EFAULT;
		else if (prot & ~world->page[window][i].prot)
			error = -EPERM;
	}
	dmamap_access_enter(access);
	rc = dmamap_translate(access, iova, length, prot, segments, 12, NULL);
	if (error) {
		assert_int_equal(rc, error);
		dmamap_access_leave(access);
		return;
	}
	assert_true(rc > 0);
	for (int i = 0; i < rc; i++) {
		uint64_t done = 0;

		/* Segments are maximal: a next one does not go on where this one ends. */
		if (i)
			assert_ptr_not_equal(segments[i].host,
				(char *)segments[i - 1].host + segments[i - 1].length);
		while (done < segments[i].length) {
			uint64_t step = granule(world) - (expected + skip) % granule(world);
			char *host = world->host + world->page[window][page].host * granule(world) +
				     (expected + skip) % granule(world);

			assert_ptr_equal((char *)segments[i].host + done, host);
			done += step;
			expected += step;
			page++;
		}
	}
	assert_int_equal(expected, length);
	dmamap_access_leave(access);
}

/* A device writes, and what it wrote is in the host page that the model names. */
static void call_write(struct world *world, unsigned which)
{
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned from = (unsigned)random_below(world->random, PAGES - 1);
	const struct page *page = &world->page[window][from];
	uint64_t mark = random_next(world->random), seen = 0;
	/* Across a page border. */
	uint64_t iova = page_iova(world, window, from + 1) - 4;
	int rc = dmamap_write(world->access[which], iova, &mark, 8, NULL);

	if (!page[0].area || !page[1].area) {
		assert_true(rc == -EFAULT || rc == -EPERM);
		return;
	}
	if (!(page[0].prot & page[1].prot & DMAMAP_WRITE)) {
		assert_int_equal(rc, -EPERM);
		return;
	}
	assert_int_equal(rc, 0);
	memcpy(&seen, world->host + (page[0].host + 1) * granule(world) - 4, 4);
	memcpy((char *)&seen + 4, world->host + page[1].host * granule(world), 4);
	assert_int_equal(seen, mark);
	if (!(page[0].prot & page[1].prot & DMAMAP_READ))
		return;
	seen = 0;
	assert_int_equal(dmamap_read(world->access[which], iova, &seen, 8, NULL), 0);
	assert_int_equal(seen, mark);
}

/* ------------------------------------------------------------------ world */

static void check_world(struct world *world)
{
	struct dmamap_counters counters;
	const char *broken = areas_check(&world->space->areas);

	if (broken)
		fail_msg("%s", broken);
	dmamap_space_counters(world->space, &counters);
	assert_int_equal(counters.areas, world->areas);
	assert_int_equal(counters.maps - counters.unmaps, world->areas);
}

static void start_world(struct world *world, const struct shape *shape, struct random *random)
{
	uint64_t size;

	*world = (struct world){.shape = shape, .random = random};
	world->granule_shift = shape->table.granule_shift;
	size = PAGES * granule(world);
	world->base[0] = 0;
	world->base[1] = ((uint64_t)1 << 30) - size / 2 / granule(world) * granule(world);
	world->base[2] = ((uint64_t)1 << 47) + (1 << 21) - 7 * granule(world);
	world->base[3] = 0 - size;
	assert_int_equal(
		posix_memalign((void **)&world->host, 1 << 21, HOST_PAGES * granule(world)), 0);
	memset(world->host, 0, HOST_PAGES * granule(world));
	assert_int_equal(dmamap_memory_user(world->host, HOST_PAGES * granule(world), 3, 0,
				 &world->memory, NULL),
		0);
	assert_int_equal(dmamap_space_create(NULL, &world->space), 0);
	for (unsigned i = 0; i < shape->tables; i++) {
		assert_int_equal(
			dmamap_table_create(world->space, &shape->table, &world->table[i], NULL),
			0);
		assert_int_equal(dmamap_access_create(world->table[i], &world->access[i]), 0);
	}
}

static void stop_world(struct world *world)
{
	struct dmamap_counters counters;
	uint64_t cleared = 0, written = 0;

	assert_int_equal(dmamap_unmap(world->space, 0, UINT64_MAX, NULL, NULL), 0);
	world->areas = 0;
	check_world(world);
	dmamap_space_counters(world->space, &counters);
	assert_int_equal(counters.tables, 0);
	assert_int_equal(world->memory->refs, 1);
	for (unsigned shift = 0; shift < 64; shift++) {
		written += counters.leaves[shift];
		cleared += counters.leaves_cleared[shift];
		assert_int_equal(counters.leaves[shift], counters.leaves_cleared[shift]);
	}
	assert_true(written > 0 && cleared == written);
	for (unsigned i = 0; i < world->shape->tables; i++)
		dmamap_access_destroy(world->access[i]);
	dmamap_space_destroy(world->space);
	dmamap_memory_put(world->memory);
	free(world->host);
}

static void run_shape(const struct shape *shape, struct random *random)
{
	struct world *world = malloc(sizeof(*world));

	start_world(world, shape, random);
	for (unsigned i = 0; i < 30000; i++) {
		unsigned which = (unsigned)random_below(random, shape->tables);

		switch (random_below(random, 11)) {
		case 0 ... 2:
			call_map(world);
			break;
		case 3:
			call_allocate(world);
			break;
		case 4:
			call_copy(world);
			break;
		case 5 ... 6:
			call_unmap(world);
			break;
		case 7 ... 8:
			call_translate(world, which);
			break;
		case 9:
			call_write(world, which);
			break;
		case 10:
			call_split(world);
			break;
		}
		if (i % 64 == 0)
			check_world(world);
	}
	printf("%s: %llu failed allocations\n", shape->name, (unsigned long long)world->failed);
	assert_true(world->failed > 10);
	stop_world(world);
	free(world);
}

static void same_as_flat_arrays(void **state)
{
	struct random random = random_start("model");

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		run_shape(&shapes[i], &random);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_flat_arrays)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
