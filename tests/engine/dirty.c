/* SPDX-License-Identifier: MIT */
/* Dirty tracking, rule by rule. Its races are in concurrent.c, random calls in model.c. */
#include <errno.h>

#include "engine/space.h"
#include "tests/check.h"

#define PAGE   4096ull
#define K(n)   ((n)*1024ull)
#define M(n)   ((n)*1024ull * 1024)
#define LEAVES 16u

struct fixture {
	struct dmamap_space *space;
	struct dmamap_table *table; /* leaves of 4K, 16K and 2M */
	struct dmamap_access *access;
	struct dmamap_memory *memory; /* 4 MiB */
	char *host;
	struct dmamap_range found[LEAVES];
	unsigned n;
	struct dmamap_reason why;
};

static void map(struct fixture *f, uint64_t iova, uint64_t length, unsigned prot)
{
	struct dmamap_map map = {
		.first = iova, .last = iova + length - 1, .memory = f->memory, .prot = prot};

	assert_int_equal(dmamap_map(f->space, &map, NULL), 0);
}

static void unmap(struct fixture *f, uint64_t iova, uint64_t length)
{
	assert_int_equal(dmamap_unmap(f->space, iova, iova + length - 1, NULL, NULL), 0);
}

static int setup(void **state)
{
	struct dmamap_table_config config = {.leaf_sizes = 1 << 12 | 1 << 14 | 1 << 21};
	struct fixture *f = calloc(1, sizeof(*f));

	f->host = aligned_alloc(M(2), M(4));
	assert_int_equal(dmamap_memory_user(f->host, M(4), 3, 0, &f->memory, NULL), 0);
	assert_int_equal(dmamap_space_create(NULL, &f->space), 0);
	assert_int_equal(dmamap_table_create(f->space, &config, &f->table, NULL), 0);
	assert_int_equal(dmamap_access_create(f->table, &f->access), 0);
	/* Leaves: 2M from 0; 4K, three of 16K and 4K from 4M + 12K. */
	map(f, 0, M(2), 3);
	map(f, M(4) + K(12), K(56), 3);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	dmamap_access_destroy(f->access);
	dmamap_space_destroy(f->space);
	assert_int_equal(f->memory->refs, 1);
	dmamap_memory_put(f->memory);
	free(f->host);
	free(f);
	return 0;
}

static void found(void *argument, uint64_t first, uint64_t last)
{
	struct fixture *f = argument;

	/* No assertion: the space is locked, and would stay so. */
	if (f->n < LEAVES)
		f->found[f->n] = (struct dmamap_range){first, last};
	f->n++;
}

/* How many leaves are dirty in a range. */
static unsigned dirty(struct fixture *f, uint64_t first, uint64_t last, unsigned flags)
{
	f->n = 0;
	assert_int_equal(dmamap_table_dirty_read(f->table, first, last, flags, found, f), 0);
	return f->n;
}

static void write_at(struct fixture *f, uint64_t iova, uint64_t length)
{
	static const char zeros[K(64)];

	assert_int_equal(dmamap_write(f->access, iova, zeros, length, NULL), 0);
}

static void only_while_tracked(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(dmamap_table_dirty_read(f->table, 0, UINT64_MAX, 0, found, f), -EINVAL);
	write_at(f, 0, 1);
	dmamap_table_dirty_start(f->table);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
	assert_int_equal(dmamap_table_dirty_read(f->table, 1, 0, 0, found, f), -EINVAL);
	write_at(f, 0, 1);
	assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 1);
	/* Starting again cleans, and so do stopping and starting. */
	dmamap_table_dirty_start(f->table);
	assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 0);
	write_at(f, 0, 1);
	dmamap_table_dirty_stop(f->table);
	assert_int_equal(dmamap_table_dirty_read(f->table, 0, UINT64_MAX, 0, found, f), -EINVAL);
	write_at(f, 0, 1);
	dmamap_table_dirty_start(f->table);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
}

/* Whole leaves, also where the range has a part of them, ascending. */
static void whole_leaves(void **state)
{
	struct fixture *f = *state;

	dmamap_table_dirty_start(f->table);
	write_at(f, M(1) + 5, 1);
	write_at(f, M(4) + K(16) - 1, 2);
	write_at(f, M(4) + K(60), 1);
	assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 4);
	assert_int_equal(f->found[0].first, 0);
	assert_int_equal(f->found[0].last, M(2) - 1);
	assert_int_equal(f->found[1].first, M(4) + K(12));
	assert_int_equal(f->found[1].last, M(4) + K(16) - 1);
	assert_int_equal(f->found[2].first, M(4) + K(16));
	assert_int_equal(f->found[2].last, M(4) + K(32) - 1);
	assert_int_equal(f->found[3].first, M(4) + K(48));
	assert_int_equal(f->found[3].last, M(4) + K(64) - 1);
	/* Within the third leaf, past the byte that was written. */
	assert_int_equal(dirty(f, M(4) + K(31), M(4) + K(31), 0), 1);
	assert_int_equal(f->found[0].first, M(4) + K(16));
	/* Only what was read is clean. */
	assert_int_equal(dirty(f, M(2) - 1, M(4) + K(40), 0), 2);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 1);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
	/* Clean without asking. */
	write_at(f, 0, 1);
	assert_int_equal(dmamap_table_dirty_read(f->table, 0, 0, 0, NULL, NULL), 0);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
}

/* What an access remembers does not hide a write, however often it is made. */
static void each_write_counts(void **state)
{
	struct fixture *f = *state;
	char byte;

	write_at(f, M(4) + K(16), 1);
	dmamap_table_dirty_start(f->table);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(dmamap_read(f->access, M(4) + K(16), &byte, 1, NULL), 0);
		assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
		write_at(f, M(4) + K(16), 1);
		write_at(f, M(4) + K(20), 1);
		assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 1);
		assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 1);
	}
}

/* dmamap_translate() for a write counts as a write of all that was asked for. */
static void translating_for_a_write(void **state)
{
	struct fixture *f = *state;
	struct dmamap_segment segment;

	dmamap_table_dirty_start(f->table);
	dmamap_access_enter(f->access);
	assert_int_equal(
		dmamap_translate(f->access, M(4) + K(12), K(56), DMAMAP_READ, &segment, 1, NULL),
		1);
	assert_int_equal(segment.length, K(56));
	dmamap_access_leave(f->access);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
	dmamap_access_enter(f->access);
	assert_int_equal(dmamap_translate(f->access, M(4) + K(12), K(56), 3, &segment, 1, NULL), 1);
	assert_ptr_equal(segment.host, f->host);
	assert_int_equal(segment.length, K(56));
	dmamap_access_leave(f->access);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 5);
}

/* A clean leaf allows what its area allows, and reasons say so. */
static void protection_stays(void **state)
{
	struct fixture *f = *state;
	char byte = 0;

	dmamap_table_dirty_start(f->table);
	map(f, M(8), PAGE, DMAMAP_READ);
	map(f, M(8) + PAGE, PAGE, DMAMAP_WRITE);
	map(f, M(8) + 2 * PAGE, PAGE, 0);
	assert_refused(dmamap_write(f->access, M(8), &byte, 1, &f->why), &f->why, EPERM,
		&dmamap_reason_prot);
	assert_int_equal(f->why.number[1], DMAMAP_READ);
	assert_refused(dmamap_read(f->access, M(8) + PAGE, &byte, 1, &f->why), &f->why, EPERM,
		&dmamap_reason_prot);
	assert_int_equal(f->why.number[1], DMAMAP_WRITE);
	assert_refused(dmamap_write(f->access, M(8) + 2 * PAGE, &byte, 1, &f->why), &f->why, EPERM,
		&dmamap_reason_prot);
	assert_int_equal(f->why.number[1], 0);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
	/* Bytes before a fault are written, and their leaf is dirty. */
	assert_int_equal(dmamap_write(f->access, M(8) + 2 * PAGE - 1, "ab", 2, NULL), -EPERM);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 1);
	assert_int_equal(f->found[0].first, M(8) + PAGE);
}

static void unmapping_forgets(void **state)
{
	struct fixture *f = *state;

	dmamap_table_dirty_start(f->table);
	write_at(f, M(4) + K(12), K(56));
	unmap(f, M(4) + K(12), K(56));
	assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 0);
	map(f, M(4) + K(12), K(56), 3);
	assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 0);
	write_at(f, M(4) + K(12), 1);
	assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 1);
}

/* A writer that found a leaf marks it only while it is still there: nothing comes back. */
static void marks_after_an_unmap(void **state)
{
	struct fixture *f = *state;
	struct pagetable_hit hit, again;

	dmamap_table_dirty_start(f->table);
	assert_true(pagetable_walk(&f->table->pt, M(4) + K(12), &hit));
	unmap(f, M(4) + K(12), K(56));
	again = hit;
	assert_false(pagetable_mark(&again));
	assert_false(pagetable_walk(&f->table->pt, M(4) + K(12), &again));
	/* Other memory is there by now: not what this writer found. */
	f->memory->prot = DMAMAP_READ;
	map(f, M(4) + K(12), K(4), DMAMAP_READ);
	assert_false(pagetable_mark(&hit));
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
	f->memory->prot = 3;
}

/* Tables are tracked one by one, and a device of another one is not seen. */
static void one_table_of_several(void **state)
{
	struct fixture *f = *state;
	struct dmamap_table *other;
	struct dmamap_access *access;

	assert_int_equal(dmamap_table_create(f->space, NULL, &other, NULL), 0);
	assert_int_equal(dmamap_access_create(other, &access), 0);
	dmamap_table_dirty_start(f->table);
	assert_int_equal(dmamap_table_dirty_read(other, 0, UINT64_MAX, 0, found, f), -EINVAL);
	assert_int_equal(dmamap_write(access, 0, "", 1, NULL), 0);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
	dmamap_table_dirty_start(other);
	write_at(f, M(4) + K(12), 1);
	assert_int_equal(dmamap_table_dirty_read(other, 0, UINT64_MAX, 0, found, f), 0);
	assert_int_equal(f->n, 0);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 1);
	dmamap_access_destroy(access);
	dmamap_table_destroy(other);
}

/* Cleaning waits for accesses, as unmapping does. */
static void within_an_access(void **state)
{
	struct fixture *f = *state;

	dmamap_table_dirty_start(f->table);
	dmamap_access_enter(f->access);
	write_at(f, 0, 1);
	assert_int_equal(dmamap_table_dirty_read(f->table, 0, UINT64_MAX, 0, found, f), -EDEADLK);
	assert_int_equal(f->n, 0);
	assert_int_equal(dirty(f, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP), 1);
	dmamap_access_leave(f->access);
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 1);
}

static void top_of_the_space(void **state)
{
	struct fixture *f = *state;

	dmamap_table_dirty_start(f->table);
	map(f, 0 - M(4), M(4), 3);
	write_at(f, UINT64_MAX, 1);
	assert_int_equal(dirty(f, UINT64_MAX, UINT64_MAX, 0), 1);
	assert_int_equal(f->found[0].first, 0 - M(2));
	assert_int_equal(f->found[0].last, UINT64_MAX);
	write_at(f, 0 - M(4), 1);
	assert_int_equal(dirty(f, M(64), UINT64_MAX, 0), 1);
	assert_int_equal(f->found[0].last, 0 - M(2) - 1);
	unmap(f, 0 - M(4), M(4));
	/* The root may span less than the range. */
	assert_int_equal(dirty(f, 0, UINT64_MAX, 0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(only_while_tracked),
		TEST(whole_leaves),
		TEST(each_write_counts),
		TEST(translating_for_a_write),
		TEST(protection_stays),
		TEST(unmapping_forgets),
		TEST(marks_after_an_unmap),
		TEST(one_table_of_several),
		TEST(within_an_access),
		TEST(top_of_the_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
