/* SPDX-License-Identifier: MIT */
/* Memory objects: how far one look-up steps, and what cannot back an area. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmamap/engine.h"
#include "tests/check.h"

#define K(n)	   ((n)*1024ull)
#define M(n)	   ((n)*1024ull * 1024)
#define G(n)	   ((n)*1024ull * 1024 * 1024)
#define ALL_LEVELS (1ull << 12 | 1ull << 21 | 1ull << 30)

static uint64_t count_lookups(struct dmamap_memory *memory, uint64_t *contiguous)
{
	struct dmamap_lookup lookup = {.last = memory->length - 1, .prot = 3};
	uint64_t n = 0;

	for (;; n++) {
		assert_int_equal(memory->ops->lookup(memory, &lookup), 0);
		assert_true(lookup.length > 0);
		*contiguous = lookup.contiguous;
		if (lookup.length > lookup.last - lookup.offset)
			return n + 1;
		lookup.offset += lookup.length;
	}
}

static uint64_t bar_lookups(uint64_t va, uint64_t address, uint64_t length, uint64_t strides)
{
	struct dmamap_bar_view view = {.host = (void *)G(1),
		.address = address,
		.va = va,
		.length = length,
		.page_shift = 12,
		.strides = strides};
	struct dmamap_memory *memory;
	uint64_t contiguous, n;

	assert_int_equal(dmamap_memory_bar(&view, 3, &memory), 0);
	n = count_lookups(memory, &contiguous);
	assert_int_equal(contiguous, 63);
	dmamap_memory_put(memory);
	return n;
}

/*
 * Linux 6.15, vfio_iommu_type1.c: the step is the level at which the VA is
 * congruent to the BAR's address, and whose block lies in the mapping.
 */
static void bar_steps_by_congruence(void **state)
{
	uint64_t bar = 0x380000000000, va = 0x7e0000000000;

	(void)state;
	assert_int_equal(bar_lookups(va, bar, G(32), ALL_LEVELS), 32);
	/* 2 MiB off: no 1 GiB block is congruent. */
	assert_int_equal(bar_lookups(va + M(2), bar, G(32), ALL_LEVELS), 16384);
	assert_int_equal(bar_lookups(va + K(4), bar, G(32), ALL_LEVELS), 8388608);
	/* Before 6.15: a page at a time, however well it lies. */
	assert_int_equal(bar_lookups(va, bar, G(32), 1 << 12), 8388608);
	/* Congruent, but the mapping begins inside a block: smaller steps up to its end. */
	assert_int_equal(
		bar_lookups(va + G(1) - M(4), bar + G(1) - M(4), G(2) + M(4), ALL_LEVELS), 2 + 2);
	assert_int_equal(
		bar_lookups(va + M(2) - K(8), bar + M(2) - K(8), K(8) + M(2) + K(4), ALL_LEVELS),
		2 + 1 + 1);
}

static void bars_that_cannot_be(void **state)
{
	struct dmamap_bar_view good = {.host = (void *)G(1),
		.address = G(4),
		.va = G(8),
		.length = M(2),
		.page_shift = 12,
		.strides = ALL_LEVELS};
	struct dmamap_bar_view view;
	struct dmamap_memory *memory = NULL;

	(void)state;
	view = good, view.length = 0;
	assert_int_equal(dmamap_memory_bar(&view, 3, &memory), -EINVAL);
	view = good, view.va += 1;
	assert_int_equal(dmamap_memory_bar(&view, 3, &memory), -EINVAL);
	view = good, view.va = 0 - M(1);
	assert_int_equal(dmamap_memory_bar(&view, 3, &memory), -EINVAL);
	view = good, view.address = 0 - M(1);
	assert_int_equal(dmamap_memory_bar(&view, 3, &memory), -EINVAL);
	view = good, view.strides = 1 << 11;
	assert_int_equal(dmamap_memory_bar(&view, 3, &memory), -EINVAL);
	assert_null(memory);
}

static void file_steps_by_its_pages(void **state)
{
	struct dmamap_memory *memory;
	uint64_t contiguous;

	(void)state;
	assert_int_equal(dmamap_memory_file((void *)G(64), 0, G(32), 3, 30, &memory), 0);
	assert_int_equal(count_lookups(memory, &contiguous), 32);
	assert_int_equal(contiguous, 30);
	dmamap_memory_put(memory);
	/* Starting inside a page of the file: pages begin where the file says. */
	assert_int_equal(dmamap_memory_file((void *)G(64), M(1), M(4), 3, 21, &memory), 0);
	assert_int_equal(count_lookups(memory, &contiguous), 3);
	dmamap_memory_put(memory);
	assert_int_equal(dmamap_memory_file((void *)G(64), 0, 0, 3, 21, &memory), -EINVAL);
	assert_int_equal(dmamap_memory_file((void *)G(64), UINT64_MAX, 2, 3, 21, &memory), -EINVAL);
	assert_int_equal(dmamap_memory_file((void *)UINT64_MAX, 0, 2, 3, 21, &memory), -EINVAL);
	assert_int_equal(dmamap_memory_file((void *)G(64), 0, M(2), 3, 63, &memory), -EINVAL);
}

static void user_memory_is_there(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 16;
	unsigned char present[16];
	struct dmamap_memory *memory;
	uint64_t contiguous;
	char *p = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(dmamap_memory_user(p + 5, 4 * page, 3, 0, &memory, NULL), 0);
	assert_int_equal(count_lookups(memory, &contiguous), 1);
	assert_int_equal(mincore(p, n * page, present), 0);
	/* Five pages: the range begins inside one. */
	for (size_t i = 0; i < n; i++)
		assert_int_equal(present[i] & 1, i < 5);
	dmamap_memory_put(memory);
	munmap(p, n * page);
}

static void user_memory_that_is_not(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct dmamap_reason why;
	struct dmamap_memory *memory = NULL;
	char *p = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	munmap(p + 2 * page, page);
	assert_refused(dmamap_memory_user(p, 4 * page, 1, 0, &memory, &why), &why, EFAULT,
		&dmamap_reason_populate);
	assert_refused(dmamap_memory_user(p, page, 2, 0, &memory, &why), &why, EFAULT,
		&dmamap_reason_populate);
	assert_refused(dmamap_memory_user(p, 0, 1, 0, &memory, &why), &why, EINVAL,
		&dmamap_reason_backwards);
	assert_refused(dmamap_memory_user((void *)-page, 2 * page, 1, 0, &memory, &why), &why,
		EINVAL, &dmamap_reason_backwards);
	assert_refused(dmamap_memory_user(p, page, 0, 0, &memory, &why), &why, EINVAL,
		&dmamap_reason_no_access);
	assert_null(memory);
	assert_int_equal(dmamap_memory_user(p, 2 * page, 1, 0, &memory, &why), 0);
	dmamap_memory_put(memory);
	munmap(p, 4 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bar_steps_by_congruence),
		cmocka_unit_test(bars_that_cannot_be),
		cmocka_unit_test(file_steps_by_its_pages),
		cmocka_unit_test(user_memory_is_there),
		cmocka_unit_test(user_memory_that_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
