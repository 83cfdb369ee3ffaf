/* SPDX-License-Identifier: MIT */
/* What a device sees: segments, faults, and reads and writes across borders. */
#include <errno.h>
#include <pthread.h>

#include "engine/space.h"
#include "tests/check.h"

#define PAGE 4096ull

struct fixture {
	struct dmamap_space *space;
	struct dmamap_table *table;
	struct dmamap_access *access;
	struct dmamap_memory *memory;
	struct dmamap_segment segment[8];
	struct dmamap_reason why;
	char *host; /* 16 pages */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->host = aligned_alloc(PAGE, 16 * PAGE);
	for (unsigned i = 0; i < 16 * PAGE; i++)
		f->host[i] = (char)(i / PAGE);
	assert_int_equal(dmamap_space_create(NULL, &f->space), 0);
	assert_int_equal(dmamap_table_create(f->space, NULL, &f->table, NULL), 0);
	assert_int_equal(dmamap_access_create(f->table, &f->access), 0);
	assert_int_equal(dmamap_memory_user(f->host, 16 * PAGE, 3, 0, &f->memory, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	dmamap_access_destroy(f->access);
	dmamap_space_destroy(f->space);
	dmamap_memory_put(f->memory);
	free(f->host);
	free(f);
	return 0;
}

static void map(struct fixture *f, uint64_t iova, unsigned page, unsigned n, unsigned prot)
{
	struct dmamap_map map = {.first = iova,
		.last = iova + n * PAGE - 1,
		.memory = f->memory,
		.offset = page * PAGE,
		.prot = prot};

	assert_int_equal(dmamap_map(f->space, &map, NULL), 0);
}

static int translate(struct fixture *f, uint64_t iova, uint64_t length, unsigned prot, unsigned n)
{
	int rc;

	dmamap_access_enter(f->access);
	rc = dmamap_translate(f->access, iova, length, prot, f->segment, n, &f->why);
	dmamap_access_leave(f->access);
	return rc;
}

/* spdk 2101: four adjacent maps of scattered memory, one device read of 16 KiB. */
static void scattered_memory(void **state)
{
	static const unsigned pages[] = {9, 3, 12, 1};
	struct fixture *f = *state;
	char buffer[4 * PAGE];

	for (unsigned i = 0; i < 4; i++)
		map(f, i * PAGE, pages[i], 1, 3);
	assert_int_equal(translate(f, 0, 4 * PAGE, DMAMAP_READ, 8), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(f->segment[i].host, f->host + pages[i] * PAGE);
		assert_int_equal(f->segment[i].length, PAGE);
	}
	assert_int_equal(dmamap_read(f->access, 0, buffer, sizeof(buffer), NULL), 0);
	for (unsigned i = 0; i < sizeof(buffer); i++)
		assert_int_equal(buffer[i], pages[i / PAGE]);
	assert_refused(
		translate(f, 0, 4 * PAGE, DMAMAP_READ, 3), &f->why, E2BIG, &dmamap_reason_segments);
	assert_refused(translate(f, 0, 1, DMAMAP_READ, 0), &f->why, E2BIG, &dmamap_reason_segments);
}

/* Memory that goes on across areas and across page-table nodes is one segment. */
static void adjacent_memory_is_one_segment(void **state)
{
	struct fixture *f = *state;
	uint64_t border = 1ull << 39;

	map(f, border - 2 * PAGE, 0, 2, 3);
	map(f, border, 2, 3, 3);
	assert_int_equal(translate(f, border - 2 * PAGE + 7, 5 * PAGE - 14, 3, 1), 1);
	assert_ptr_equal(f->segment[0].host, f->host + 7);
	assert_int_equal(f->segment[0].length, 5 * PAGE - 14);
}

static void faults(void **state)
{
	struct fixture *f = *state;
	char buffer[64] = {0};

	map(f, PAGE, 0, 1, DMAMAP_READ);
	map(f, 2 * PAGE, 1, 1, DMAMAP_WRITE);
	map(f, 4 * PAGE, 2, 1, 0);
	assert_refused(translate(f, 0, 1, 1, 8), &f->why, EFAULT, &dmamap_reason_not_mapped);
	assert_refused(
		translate(f, 3 * PAGE - 1, 2, 2, 8), &f->why, EFAULT, &dmamap_reason_not_mapped);
	assert_int_equal(f->why.number[0], 3 * PAGE);
	assert_refused(translate(f, PAGE, 1, 2, 8), &f->why, EPERM, &dmamap_reason_prot);
	assert_refused(translate(f, 2 * PAGE, 1, 1, 8), &f->why, EPERM, &dmamap_reason_prot);
	assert_refused(translate(f, 4 * PAGE, 1, 1, 8), &f->why, EPERM, &dmamap_reason_prot);
	assert_refused(
		translate(f, UINT64_MAX, 2, 1, 8), &f->why, EFAULT, &dmamap_reason_backwards);
	assert_int_equal(translate(f, 0, 0, 1, 8), 0);
	/* The remembered region must not hide a protection or an end. */
	assert_int_equal(translate(f, PAGE, 1, 1, 8), 1);
	assert_refused(translate(f, PAGE, 1, 2, 8), &f->why, EPERM, &dmamap_reason_prot);
	assert_int_equal(translate(f, PAGE, 1, 1, 8), 1);
	assert_refused(translate(f, 2 * PAGE - 1, 2, 1, 8), &f->why, EPERM, &dmamap_reason_prot);
	/* Bytes before a fault are copied, as on a bus. */
	assert_refused(dmamap_write(f->access, 3 * PAGE - 4, "abcdefgh", 8, &f->why), &f->why,
		EFAULT, &dmamap_reason_not_mapped);
	assert_memory_equal(f->host + 2 * PAGE - 4, "abcd", 4);
	assert_refused(dmamap_write(f->access, PAGE, buffer, 1, &f->why), &f->why, EPERM,
		&dmamap_reason_prot);
	assert_int_equal(dmamap_read(f->access, 0, buffer, 0, NULL), 0);
}

static void top_of_the_space(void **state)
{
	struct fixture *f = *state;
	char byte = 0;

	map(f, 0 - PAGE, 5, 1, 3);
	assert_int_equal(translate(f, 0 - PAGE, PAGE, 3, 8), 1);
	assert_int_equal(f->segment[0].length, PAGE);
	assert_int_equal(dmamap_read(f->access, UINT64_MAX, &byte, 1, NULL), 0);
	assert_int_equal(byte, 5);
	assert_int_equal(dmamap_read(f->access, UINT64_MAX, &byte, 2, NULL), -EFAULT);
}

/* What is remembered is forgotten with the area, and a new one there is found. */
static void unmap_is_seen(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 16; i++) {
		map(f, PAGE, i, 1, 3);
		assert_int_equal(translate(f, PAGE, 8, 3, 8), 1);
		assert_ptr_equal(f->segment[0].host, f->host + i * PAGE);
		assert_int_equal(dmamap_unmap(f->space, PAGE, 2 * PAGE - 1, NULL, NULL), 0);
		assert_int_equal(translate(f, PAGE, 8, 3, 8), -EFAULT);
	}
}

static void *other(void *argument)
{
	struct fixture *f = argument;
	struct dmamap_reason why = {0};
	char byte;

	assert_refused(dmamap_read(f->access, PAGE, &byte, 1, &why), &why, EXDEV,
		&dmamap_reason_other_thread);
	assert_refused(dmamap_translate(f->access, PAGE, 1, 1, f->segment, 8, &why), &why, EXDEV,
		&dmamap_reason_other_thread);
	dmamap_access_bind(f->access);
	assert_int_equal(dmamap_read(f->access, PAGE, &byte, 1, NULL), 0);
	return NULL;
}

static void accesses_are_a_threads_own(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	char byte;

	map(f, PAGE, 5, 1, 3);
	assert_int_equal(dmamap_read(f->access, PAGE, &byte, 1, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, other, f), 0);
	pthread_join(thread, NULL);
	assert_int_equal(dmamap_read(f->access, PAGE, &byte, 1, NULL), -EXDEV);
	dmamap_access_bind(f->access);
	assert_int_equal(dmamap_read(f->access, PAGE, &byte, 1, NULL), 0);
}

/* An unmap inside the caller's own access would wait for itself. */
static void unmap_within_an_access(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes = 9;

	map(f, PAGE, 5, 1, 3);
	dmamap_access_enter(f->access);
	dmamap_access_enter(f->access);
	dmamap_access_leave(f->access);
	assert_refused(dmamap_unmap(f->space, 0, UINT64_MAX, &bytes, &f->why), &f->why, EDEADLK,
		&dmamap_reason_within_access);
	dmamap_access_leave(f->access);
	assert_int_equal(dmamap_unmap(f->space, 0, UINT64_MAX, &bytes, NULL), 0);
	assert_int_equal(bytes, PAGE);
}

/* gvisor 14031: a device sees what the process sees at that address. */
static void memory_is_by_address(void **state)
{
	struct fixture *f = *state;
	char byte = 0;

	map(f, 0, 0, 16, 3);
	f->host[3 * PAGE + 5] = 99;
	assert_int_equal(dmamap_read(f->access, 3 * PAGE + 5, &byte, 1, NULL), 0);
	assert_int_equal(byte, 99);
	byte = 44;
	assert_int_equal(dmamap_write(f->access, 15 * PAGE, &byte, 1, NULL), 0);
	assert_int_equal(f->host[15 * PAGE], 44);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(scattered_memory),
		TEST(adjacent_memory_is_one_segment),
		TEST(faults),
		TEST(top_of_the_space),
		TEST(unmap_is_seen),
		TEST(accesses_are_a_threads_own),
		TEST(unmap_within_an_access),
		TEST(memory_is_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
