/* SPDX-License-Identifier: MIT */
/*
 * Random calls on the engine beside a model that cannot be wrong: flat arrays
 * that say for each page which area has it and which host page is behind.
 *
 * Pages lie in a few windows of the 64-bit space, chosen so that the edges are
 * in them: the bottom, a border between large leaves, the middle, the top.
 * Each call's result is compared, what a device sees, which leaves are dirty,
 * and how often the memory was told of each page that a table has it. Tables of
 * several shapes come and go. Allocations fail at random, and the memory
 * refuses, after which nothing may have changed.
 */
#include <errno.h>

#include "engine/space.h"
#include "tests/check.h"

#define PAGES	   640u
#define WINDOWS	   4u
#define HOST_PAGES 1024u
#define TABLES	   3u
#define UNITS	   16u /* most smallest leaves in a page */

struct page {
	unsigned area; /* 0: nothing is mapped */
	unsigned host; /* page in the memory object */
	unsigned prot;
};

struct shape {
	const char *name;
	unsigned tables;
	struct dmamap_table_config table[TABLES];
};

/* The memory: how many tables and areas it was told of, page by page. */
struct backing {
	struct dmamap_memory memory;
	char *host;
	unsigned granule_shift;
	unsigned told[HOST_PAGES];
	unsigned refuse; /* this many fills from now is refused; 0: none */
	bool released;
};

/* One table as the model has it. */
struct view {
	struct dmamap_table *table; /* NULL: gone for now */
	struct dmamap_access *access;
	bool tracked;
	bool dirty[WINDOWS][PAGES * UNITS];
};

struct world {
	const struct shape *shape;
	struct random *random;
	unsigned granule_shift; /* the largest */
	unsigned unit_shift;	/* the smallest */
	uint64_t base[WINDOWS];
	struct page page[WINDOWS][PAGES];
	unsigned next_area;
	struct backing backing;
	struct dmamap_space *space;
	struct view view[TABLES];
	uint64_t areas;
	uint64_t failed, refused, found;
};

#define HARDWARE DMAMAP_OUTPUT_HARDWARE
static const struct shape shapes[] = {
	{"4K host", 1, {{.granule_shift = 12, .output = DMAMAP_OUTPUT_HOST}}},
	{"4K hardware", 1, {{.granule_shift = 12, .output = HARDWARE}}},
	{"AMDv1: every power of two", 1,
		{{.granule_shift = 12, .leaf_sizes = 0x7ffffffffff000, .output = HARDWARE}}},
	{"2K, one size", 1, {{.granule_shift = 11, .leaf_sizes = 1 << 11}}},
	{"16K", 1, {{.granule_shift = 14, .output = HARDWARE}}},
	{"64K, contiguous runs", 1,
		{{.granule_shift = 16, .leaf_sizes = 1ull << 16 | 1ull << 21 | 1ull << 29}}},
	{"4K in 16K nodes", 1, {{.granule_shift = 12, .node_shift = 14}}},
	{"two tables", 2, {{.granule_shift = 12}, {.granule_shift = 12}}},
	{"Intel, AMD and Arm", 3,
		{{.granule_shift = 12, .iova_bits = 57, .output = HARDWARE},
			{.granule_shift = 12, .leaf_sizes = 0x7ffffffffff000, .output = HARDWARE},
			{.granule_shift = 16,
				.leaf_sizes = 1ull << 16 | 1ull << 21 | 1ull << 29,
				.iova_bits = 48,
				.output = HARDWARE}}},
	{"4K, 16K and 64K", 3,
		{{.granule_shift = 16, .iova_bits = 52}, {.granule_shift = 14, .iova_bits = 49},
			{.granule_shift = 12}}},
};

/* ----------------------------------------------------------------- memory */

static int backing_lookup(struct dmamap_memory *memory, struct dmamap_lookup *lookup)
{
	lookup->host = (uintptr_t)((struct backing *)memory)->host + lookup->offset;
	lookup->length = memory->length - lookup->offset;
	lookup->contiguous = 63;
	return 0;
}

static int backing_filled(
	struct dmamap_memory *memory, uint64_t offset, uint64_t last, struct dmamap_reason *why)
{
	struct backing *backing = (struct backing *)memory;

	if (backing->refuse && !--backing->refuse)
		return DMAMAP_REFUSE(why, &dmamap_reason_no_memory, EDQUOT, "this", 0);
	for (; offset < last; offset += (uint64_t)1 << backing->granule_shift)
		backing->told[offset >> backing->granule_shift]++;
	return 0;
}

static void backing_cleared(struct dmamap_memory *memory, uint64_t offset, uint64_t last)
{
	struct backing *backing = (struct backing *)memory;

	assert_true(memory->refs > 0);
	for (; offset < last; offset += (uint64_t)1 << backing->granule_shift)
		assert_true(backing->told[offset >> backing->granule_shift]-- > 0);
}

static void backing_release(struct dmamap_memory *memory)
{
	struct backing *backing = (struct backing *)memory;

	for (unsigned i = 0; i < HOST_PAGES; i++)
		assert_int_equal(backing->told[i], 0);
	backing->released = true;
}

static const struct dmamap_memory_ops backing_ops = {
	.lookup = backing_lookup,
	.release = backing_release,
	.filled = backing_filled,
	.cleared = backing_cleared,
};

/* Lets the next call fail, sometimes: an allocation, or the memory's word. Returns how. */
static int start_fault(struct world *world, unsigned chance, unsigned allocations)
{
	if (random_below(world->random, chance))
		return 0;
	if (random_below(world->random, 3)) {
		engine_fail_nth = 1 + (int)random_below(world->random, allocations);
		return -ENOMEM;
	}
	world->backing.refuse = 1 + (unsigned)random_below(world->random, 2 * world->shape->tables);
	return -EDQUOT;
}

/* Whether the call that gave @rc failed as was asked for. */
static bool end_fault(struct world *world, int fault, int rc)
{
	engine_fail_nth = 0;
	world->backing.refuse = 0;
	if (!rc || rc != fault)
		return false;
	world->failed += fault == -ENOMEM;
	world->refused += fault == -EDQUOT;
	return true;
}

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

/* ------------------------------------------------------------------ dirty */

static unsigned units(const struct world *world)
{
	return 1u << (world->granule_shift - world->unit_shift);
}

/* The leaf of a table that has a unit: its first unit, and how many it has; false: none. */
static bool find_leaf(const struct world *world, const struct view *view, unsigned window,
	unsigned unit, unsigned *first, unsigned *n)
{
	uint64_t iova = world->base[window] + ((uint64_t)unit << world->unit_shift);
	struct pagetable_hit hit;
	unsigned shift;

	if (!pagetable_walk(&view->table->pt, iova, &hit))
		return false;
	shift = hit.shift + pagetable_leaf_items(hit.entry);
	iova &= ~(((uint64_t)1 << shift) - 1);
	*first = (unsigned)((iova - world->base[window]) >> world->unit_shift);
	*n = shift < world->unit_shift ? 1 : 1u << (shift - world->unit_shift);
	return true;
}

static void set_dirty(struct world *world, struct view *view, unsigned window, uint64_t iova,
	uint64_t last, bool dirty)
{
	unsigned unit = (unsigned)((iova - world->base[window]) >> world->unit_shift);
	unsigned to = (unsigned)((last - world->base[window]) >> world->unit_shift);
	unsigned first, n;

	if (!view->tracked)
		return;
	for (; unit <= to; unit = first + n) {
		assert_true(find_leaf(world, view, window, unit, &first, &n));
		memset(&view->dirty[window][first], dirty, n);
	}
}

/* What is mapped or unmapped is clean, in every table. */
static void forget_dirt(struct world *world, unsigned window, unsigned from, unsigned n)
{
	for (unsigned i = 0; i < world->shape->tables; i++)
		memset(&world->view[i].dirty[window][from * units(world)], 0, n * units(world));
}

struct expected {
	struct dmamap_range leaf[PAGES * UNITS];
	unsigned n, seen;
};

static void found_dirty(void *argument, uint64_t first, uint64_t last)
{
	struct expected *expected = argument;

	assert_true(expected->seen < expected->n);
	assert_int_equal(first, expected->leaf[expected->seen].first);
	assert_int_equal(last, expected->leaf[expected->seen].last);
	expected->seen++;
}

/* Reads what is dirty: exactly the leaves that the model has, in order. */
static void call_dirty(struct world *world, struct view *view)
{
	static struct expected expected;
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned from = (unsigned)random_below(world->random, PAGES * units(world));
	unsigned to = from + (unsigned)random_below(world->random, PAGES * units(world) - from);
	unsigned flags = random_below(world->random, 2) ? DMAMAP_DIRTY_KEEP : 0;
	bool asks = random_below(world->random, 8);
	uint64_t unit = (uint64_t)1 << world->unit_shift;
	uint64_t first = world->base[window] + from * unit + random_below(world->random, unit);
	uint64_t last = world->base[window] + to * unit + unit - 1;

	expected.n = expected.seen = 0;
	for (unsigned at = from, leaf, n; view->tracked && at <= to; at++) {
		if (!find_leaf(world, view, window, at, &leaf, &n))
			continue;
		at = leaf + n - 1;
		if (!view->dirty[window][leaf])
			continue;
		expected.leaf[expected.n++] =
			(struct dmamap_range){world->base[window] + leaf * unit,
				world->base[window] + (leaf + n) * unit - 1};
		if (!flags)
			memset(&view->dirty[window][leaf], 0, n);
	}
	assert_int_equal(dmamap_table_dirty_read(view->table, first, last, flags,
				 asks ? found_dirty : NULL, &expected),
		view->tracked ? 0 : -EINVAL);
	assert_int_equal(expected.seen, asks ? expected.n : 0);
	world->found += expected.seen;
}

/* Starts tracking, again where it is on; sometimes stops it. */
static void call_track(struct world *world, struct view *view)
{
	memset(view->dirty, 0, sizeof(view->dirty));
	view->tracked = random_below(world->random, 3);
	if (view->tracked)
		dmamap_table_dirty_start(view->table);
	else
		dmamap_table_dirty_stop(view->table);
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
		.memory = &world->backing.memory,
		.offset = host * granule(world),
		.prot = prot,
	};
	struct dmamap_reason why = {0};
	bool free = lies_free(world, window, from, n);
	int fault = start_fault(world, 4, 6);
	int rc = dmamap_map(world->space, &map, &why);

	if (end_fault(world, fault, rc)) {
		assert_ptr_equal(why.kind, &dmamap_reason_no_memory);
	} else if (!free) {
		assert_int_equal(rc, -EEXIST);
		assert_ptr_equal(why.kind, &dmamap_reason_overlap);
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
	forget_dirt(world, window, from, n);
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
		.memory = &world->backing.memory,
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
	bool gap = false;
	uint64_t first = page_iova(world, source, from);
	int fault, rc;

	for (unsigned i = 0; i < n; i++) {
		pages[i] = world->page[source][from + i];
		gap = gap || !pages[i].area;
	}
	fault = start_fault(world, 4, 6);
	rc = dmamap_copy(
		world->space, first, first + n * granule(world) - 1, world->space, &map, NULL);
	if (end_fault(world, fault, rc)) {
		assert_false(gap);
	} else if (gap) {
		assert_int_equal(rc, -ENOENT);
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
static void call_translate(struct world *world, struct view *view)
{
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned n = 1 + (unsigned)random_below(world->random, 10);
	unsigned from = (unsigned)random_below(world->random, PAGES - n + 1);
	unsigned prot = 1 + (unsigned)random_below(world->random, 3);
	uint64_t skip = random_below(world->random, granule(world));
	uint64_t iova = page_iova(world, window, from) + skip;
	uint64_t length = n * granule(world) - skip, expected = 0;
	struct dmamap_access *access = view->access;
	struct dmamap_segment segments[12];
	unsigned page = from;
	unsigned good;
	int rc, error = 0;

	for (good = 0; good < n; good++) {
		if (!world->page[window][from + good].area)
			error = -EFAULT;
		else if (prot & ~world->page[window][from + good].prot)
			error = -EPERM;
		if (error)
			break;
	}
	if (prot & DMAMAP_WRITE && good)
		set_dirty(
			world, view, window, iova, page_iova(world, window, from + good) - 1, true);
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
			char *host = world->backing.host +
				     world->page[window][page].host * granule(world) +
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
static void call_write(struct world *world, struct view *view)
{
	char *host = world->backing.host;
	unsigned window = (unsigned)random_below(world->random, WINDOWS);
	unsigned from = (unsigned)random_below(world->random, PAGES - 1);
	const struct page *page = &world->page[window][from];
	uint64_t mark = random_next(world->random), seen = 0;
	/* Across a page border. */
	uint64_t iova = page_iova(world, window, from + 1) - 4;
	int rc = dmamap_write(view->access, iova, &mark, 8, NULL);

	if (page[0].area && page[0].prot & DMAMAP_WRITE) {
		set_dirty(world, view, window, iova, iova + 3, true);
		if (!rc)
			set_dirty(world, view, window, iova + 4, iova + 7, true);
	}
	if (!page[0].area || !page[1].area) {
		assert_true(rc == -EFAULT || rc == -EPERM);
		return;
	}
	if (!(page[0].prot & page[1].prot & DMAMAP_WRITE)) {
		assert_int_equal(rc, -EPERM);
		return;
	}
	assert_int_equal(rc, 0);
	memcpy(&seen, host + (page[0].host + 1) * granule(world) - 4, 4);
	memcpy((char *)&seen + 4, host + page[1].host * granule(world), 4);
	assert_int_equal(seen, mark);
	if (!(page[0].prot & page[1].prot & DMAMAP_READ))
		return;
	seen = 0;
	assert_int_equal(dmamap_read(view->access, iova, &seen, 8, NULL), 0);
	assert_int_equal(seen, mark);
}

static void drop_table(struct view *view)
{
	dmamap_access_destroy(view->access);
	dmamap_table_destroy(view->table);
	memset(view, 0, sizeof(*view));
}

/* Makes a table that is not there, over all areas; returns 0 or why not. */
static int make_table(struct world *world, unsigned which)
{
	struct view *view = &world->view[which];
	int rc = dmamap_table_create(world->space, &world->shape->table[which], &view->table, NULL);

	engine_fail_nth = 0;
	if (rc)
		view->table = NULL;
	else
		assert_int_equal(dmamap_access_create(view->table, &view->access), 0);
	return rc;
}

/* ------------------------------------------------------------------ world */

/* What the memory was told is what is mapped, once for each table. */
static void check_told(const struct world *world)
{
	static unsigned expected[HOST_PAGES];
	unsigned tables = 0;

	for (unsigned i = 0; i < world->shape->tables; i++)
		tables += world->view[i].table != NULL;
	memset(expected, 0, sizeof(expected));
	for (unsigned window = 0; window < WINDOWS; window++)
		for (unsigned i = 0; i < PAGES; i++)
			if (world->page[window][i].area)
				expected[world->page[window][i].host] += tables;
	assert_memory_equal(expected, world->backing.told, sizeof(expected));
}

static void check_world(struct world *world)
{
	struct dmamap_counters counters;
	const char *broken = areas_check(&world->space->areas);

	check_told(world);

	if (broken)
		fail_msg("%s", broken);
	dmamap_space_counters(world->space, &counters);
	assert_int_equal(counters.areas, world->areas);
	assert_int_equal(counters.maps - counters.unmaps, world->areas);
}

static void start_world(struct world *world, const struct shape *shape, struct random *random)
{
	struct backing *backing = &world->backing;
	uint64_t size, last = UINT64_MAX;

	*world = (struct world){.shape = shape, .random = random, .unit_shift = 63};
	for (unsigned i = 0; i < shape->tables; i++) {
		const struct dmamap_table_config *table = &shape->table[i];

		if (table->granule_shift > world->granule_shift)
			world->granule_shift = table->granule_shift;
		if (table->granule_shift < world->unit_shift)
			world->unit_shift = table->granule_shift;
		if (table->iova_bits && ((uint64_t)1 << table->iova_bits) - 1 < last)
			last = ((uint64_t)1 << table->iova_bits) - 1;
	}
	assert_true(units(world) <= UNITS);
	size = PAGES * granule(world);
	world->base[0] = 0;
	world->base[1] = ((uint64_t)1 << 30) - size / 2 / granule(world) * granule(world);
	world->base[2] = ((uint64_t)1 << 47) + (1 << 21) - 7 * granule(world);
	world->base[3] = last + 1 - size;
	backing->granule_shift = world->granule_shift;
	assert_int_equal(
		posix_memalign((void **)&backing->host, 1 << 21, HOST_PAGES * granule(world)), 0);
	memset(backing->host, 0, HOST_PAGES * granule(world));
	dmamap_memory_init(&backing->memory, &backing_ops, HOST_PAGES * granule(world), 3);
	assert_int_equal(dmamap_space_create(NULL, &world->space), 0);
	for (unsigned i = 0; i < shape->tables; i++)
		assert_int_equal(make_table(world, i), 0);
}

/* With one table that was there all the time, each leaf that was written has been cleared. */
static void check_leaves(struct world *world)
{
	struct dmamap_counters counters;
	uint64_t written = 0;

	assert_int_equal(dmamap_unmap(world->space, 0, UINT64_MAX, NULL, NULL), 0);
	memset(world->page, 0, sizeof(world->page));
	world->areas = 0;
	check_world(world);
	dmamap_space_counters(world->space, &counters);
	assert_int_equal(counters.tables, 0);
	assert_int_equal(world->backing.memory.refs, 1);
	for (unsigned shift = 0; shift < 64; shift++) {
		written += counters.leaves[shift];
		assert_int_equal(counters.leaves[shift], counters.leaves_cleared[shift]);
	}
	assert_true(written > 0);
}

static void stop_world(struct world *world)
{
	if (world->shape->tables == 1)
		check_leaves(world);
	/* Else areas go with tables, and the last of them with the space. */
	for (unsigned i = 0; i < world->shape->tables; i++) {
		dmamap_access_destroy(world->view[i].access);
		world->view[i].access = NULL;
		if (i)
			drop_table(&world->view[i]);
		check_told(world);
	}
	dmamap_space_destroy(world->space);
	assert_false(world->backing.released);
	dmamap_memory_put(&world->backing.memory);
	assert_true(world->backing.released);
	free(world->backing.host);
}

static void call_table(struct world *world, unsigned which)
{
	int fault, rc;

	if (world->view[which].table) {
		drop_table(&world->view[which]);
		return;
	}
	fault = start_fault(world, 2, 40);
	rc = make_table(world, which);
	if (!end_fault(world, fault, rc))
		assert_int_equal(rc, 0);
}

static void run_call(struct world *world)
{
	unsigned which = (unsigned)random_below(world->random, world->shape->tables);
	unsigned kind = (unsigned)random_below(world->random, 16);
	struct view *view = &world->view[which];

	if (world->shape->tables > 1 && random_below(world->random, view->table ? 200 : 20) == 0)
		call_table(world, which);
	else if (kind < 3)
		call_map(world);
	else if (kind == 3)
		call_allocate(world);
	else if (kind == 4)
		call_copy(world);
	else if (kind < 7)
		call_unmap(world);
	else if (kind == 7)
		call_split(world);
	else if (!view->table)
		return;
	else if (kind < 10)
		call_translate(world, view);
	else if (kind < 13)
		call_write(world, view);
	else if (kind < 15)
		call_dirty(world, view);
	else if (random_below(world->random, 16) == 0)
		call_track(world, view);
}

static void run_shape(const struct shape *shape, struct random *random)
{
	struct world *world = malloc(sizeof(*world));

	start_world(world, shape, random);
	for (unsigned i = 0; i < 40000; i++) {
		run_call(world);
		if (i % 64 == 0)
			check_world(world);
	}
	printf("%s: %llu failed allocations, %llu refusals, %llu dirty leaves\n", shape->name,
		(unsigned long long)world->failed, (unsigned long long)world->refused,
		(unsigned long long)world->found);
	assert_true(world->failed > 10 && world->refused > 5 && world->found > 100);
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
