/* SPDX-License-Identifier: MIT */
/* The page table alone: which leaves are chosen, in every shape, and that nothing stays. */
#include <errno.h>

#include "engine/pagetable.h"
#include "tests/check.h"

#define K(n) ((n)*1024ull)
#define M(n) ((n)*1024ull * 1024)
#define G(n) ((n)*1024ull * 1024 * 1024)

static uint64_t leaves_of(const struct pagetable *pt)
{
	uint64_t n = 0;

	for (unsigned shift = 0; shift < 64; shift++)
		n += pt->leaves[shift];
	return n;
}

static void start(struct pagetable *pt, uint64_t sizes, enum dmamap_output output)
{
	struct dmamap_table_config config = {.leaf_sizes = sizes, .output = output};

	assert_int_equal(pagetable_start(pt, &config, NULL), 0);
}

static void unmap(struct pagetable *pt, uint64_t first, uint64_t last)
{
	void *retired = NULL;

	pagetable_unmap(pt, first, last, &retired);
	pagetable_free(retired);
}

static void stop(struct pagetable *pt)
{
	unmap(pt, 0, UINT64_MAX);
	assert_int_equal(pt->pool.live, 0);
	for (unsigned shift = 0; shift < 64; shift++)
		assert_int_equal(pt->leaves[shift], pt->cleared[shift]);
	pagetable_stop(pt);
}

static uint64_t host_of(const struct pagetable *pt, uint64_t iova)
{
	struct pagetable_hit hit;
	uint64_t item;

	assert_true(pagetable_walk(pt, iova, &hit));
	item = (uint64_t)1 << hit.shift;
	return (hit.entry >> PT_HOST_SHIFT) + (iova & (item - 1));
}

static bool is_mapped(const struct pagetable *pt, uint64_t iova)
{
	struct pagetable_hit hit;

	return pagetable_walk(pt, iova, &hit);
}

/* Kernel generic_pt test "pgsize_boundary": the output is not congruent beyond 64 KiB. */
static void size_changes_at_a_boundary(void **state)
{
	struct pagetable pt;

	(void)state;
	start(&pt, 1 << 12 | 1 << 21 | 1 << 30, DMAMAP_OUTPUT_HARDWARE);
	assert_int_equal(pagetable_map(&pt, 0xfef80000, 0xfef9ffff, 0x208b95d000, 3, 63), 0);
	assert_int_equal(pt.leaves[12], 32);
	assert_int_equal(leaves_of(&pt), 32);
	assert_int_equal(host_of(&pt, 0xfef80000), 0x208b95d000);
	assert_int_equal(host_of(&pt, 0xfef9f123), 0x208b97c123);
	assert_false(is_mapped(&pt, 0xfef7ffff));
	assert_false(is_mapped(&pt, 0xfefa0000));
	stop(&pt);
}

/* Kernel generic_pt test "mixed": 14 x 2M, 3 x 1G, 3 x 2M. */
static void mixed_sizes(void **state)
{
	struct pagetable pt;

	(void)state;
	start(&pt, 1 << 12 | 1 << 21 | 1 << 30, DMAMAP_OUTPUT_HARDWARE);
	assert_int_equal(pagetable_map(&pt, 0x3fe400000, 0x4c0600000 - 1, 0x3fe400000, 3, 63), 0);
	assert_int_equal(pt.leaves[21], 17);
	assert_int_equal(pt.leaves[30], 3);
	assert_int_equal(leaves_of(&pt), 20);
	for (uint64_t iova = 0x3fe400000; iova < 0x4c0600000; iova += M(1))
		assert_int_equal(host_of(&pt, iova), iova);
	stop(&pt);
}

/* The same run under both output rules: host leaves go by the IOVA alone. */
static void output_rules(void **state)
{
	struct pagetable host, hardware;

	(void)state;
	start(&host, 0, DMAMAP_OUTPUT_HOST);
	start(&hardware, 0, DMAMAP_OUTPUT_HARDWARE);
	assert_int_equal(pagetable_map(&host, G(4), G(6) - 1, G(8) + K(4), 3, 63), 0);
	assert_int_equal(pagetable_map(&hardware, G(4), G(6) - 1, G(8) + K(4), 3, 63), 0);
	assert_int_equal(host.leaves[30], 2);
	assert_int_equal(leaves_of(&host), 2);
	assert_int_equal(hardware.leaves[12], G(2) / K(4));
	assert_int_equal(host_of(&host, G(5) + 77), G(9) + K(4) + 77);
	assert_int_equal(host_of(&hardware, G(5) + 77), G(9) + K(4) + 77);
	stop(&host);
	stop(&hardware);
}

/* A host address need not be page aligned at all under the host rule. */
static void any_host_address(void **state)
{
	struct pagetable pt;

	(void)state;
	start(&pt, 0, DMAMAP_OUTPUT_HOST);
	assert_int_equal(pagetable_map(&pt, M(2), M(4) - 1, 0x7f0123456789, 1, 63), 0);
	assert_int_equal(pt.leaves[21], 1);
	assert_int_equal(host_of(&pt, M(3)), 0x7f0123456789 + M(1));
	stop(&pt);
}

/* Leaves of several items (AMD's every power of two, Arm's contiguous runs) are counted as one. */
static void leaves_of_several_items(void **state)
{
	struct pagetable pt;

	(void)state;
	start(&pt, 0x7ffffffff000, DMAMAP_OUTPUT_HARDWARE);
	assert_int_equal(pagetable_map(&pt, K(4), M(8) - 1, K(4), 3, 63), 0);
	for (unsigned shift = 12; shift < 23; shift++)
		assert_int_equal(pt.leaves[shift], 1);
	assert_int_equal(leaves_of(&pt), 11);
	for (uint64_t iova = K(4); iova < M(8); iova += K(4))
		assert_int_equal(host_of(&pt, iova), iova);
	stop(&pt);
}

static void largest_is_a_bound(void **state)
{
	struct pagetable pt;

	(void)state;
	start(&pt, 0, DMAMAP_OUTPUT_HARDWARE);
	assert_int_equal(pagetable_map(&pt, G(1), G(2) - 1, G(1), 3, 21), 0);
	assert_int_equal(pt.leaves[21], 512);
	assert_int_equal(pt.leaves[30], 0);
	stop(&pt);
}

/* The last page of the 64-bit space, and all of the space at once. */
static void top_of_the_space(void **state)
{
	struct pagetable pt;
	uint64_t last_page = 0 - K(4);

	(void)state;
	start(&pt, 0, DMAMAP_OUTPUT_HOST);
	assert_int_equal(pagetable_map(&pt, last_page, UINT64_MAX, G(1), 3, 63), 0);
	assert_int_equal(host_of(&pt, UINT64_MAX), G(1) + K(4) - 1);
	assert_false(is_mapped(&pt, last_page - 1));
	assert_false(is_mapped(&pt, 0));
	unmap(&pt, last_page, UINT64_MAX);
	assert_false(is_mapped(&pt, UINT64_MAX));
	stop(&pt);

	start(&pt, 1ull << 57, DMAMAP_OUTPUT_HOST);
	assert_int_equal(pagetable_map(&pt, 0, UINT64_MAX, 0, 3, 63), 0);
	assert_int_equal(pt.leaves[57], 128);
	assert_true(is_mapped(&pt, 0) && is_mapped(&pt, UINT64_MAX));
	stop(&pt);
}

/* The root grows with the highest IOVA, and what was mapped stays. */
static void root_grows(void **state)
{
	static const unsigned high[] = {20, 29, 38, 47, 56, 63};
	struct pagetable pt;

	(void)state;
	start(&pt, 1 << 12, DMAMAP_OUTPUT_HOST);
	assert_int_equal(pagetable_map(&pt, 0, K(4) - 1, K(4), 3, 63), 0);
	assert_int_equal(pt.pool.live, 1);
	for (unsigned i = 0; i < 6; i++) {
		uint64_t iova = (uint64_t)1 << high[i];

		assert_int_equal(pagetable_map(&pt, iova, iova + K(4) - 1, iova >> 8, 3, 63), 0);
		for (unsigned j = 0; j <= i; j++)
			assert_int_equal(
				host_of(&pt, (uint64_t)1 << high[j]), (uint64_t)1 << high[j] >> 8);
		assert_int_equal(host_of(&pt, 1), K(4) + 1);
	}
	stop(&pt);
}

/* Every shape: random runs of one range beside an array, then nothing is left. */
static void every_shape(void **state)
{
	static const struct dmamap_table_config shapes[] = {
		{.granule_shift = 11, .leaf_sizes = 0xfffff800},
		{.granule_shift = 12},
		{.granule_shift = 12,
			.leaf_sizes = 0x7fffffff000,
			.output = DMAMAP_OUTPUT_HARDWARE},
		{.granule_shift = 13, .leaf_sizes = 1 << 13 | 1 << 16 | 1 << 25},
		{.granule_shift = 14,
			.leaf_sizes = 1 << 14 | 1 << 21 | 1 << 25,
			.output = DMAMAP_OUTPUT_HARDWARE},
		{.granule_shift = 16, .leaf_sizes = 1 << 16 | 1 << 21 | 1 << 29},
		{.granule_shift = 16, .node_shift = 12, .iova_bits = 48},
	};
	struct random random = random_start("pagetable");

	(void)state;
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		unsigned granule = shapes[s].granule_shift;
		static uint64_t host[4096];
		struct pagetable pt;

		memset(host, 0, sizeof(host));
		assert_int_equal(pagetable_start(&pt, &shapes[s], NULL), 0);
		for (unsigned round = 0; round < 3000; round++) {
			unsigned from = (unsigned)random_below(&random, 4096);
			unsigned n = 1 + (unsigned)random_below(&random, 4096 - from);
			bool busy = false;

			n = round % 3 ? n % 64 + 1 : n;
			n = from + n > 4096 ? 4096 - from : n;
			for (unsigned i = from; i < from + n; i++)
				busy = busy || host[i];
			if (!busy) {
				uint64_t to = (1 + random_below(&random, 1 << 20)) << granule;

				assert_int_equal(
					pagetable_map(&pt, (uint64_t)from << granule,
						((uint64_t)(from + n) << granule) - 1, to, 3, 63),
					0);
				for (unsigned i = 0; i < n; i++)
					host[from + i] = to + ((uint64_t)i << granule);
			} else {
				/* Grow to whole runs: leaves must not straddle the ends. */
				while (from && host[from - 1])
					from--, n++;
				while (from + n < 4096 && host[from + n])
					n++;
				unmap(&pt, (uint64_t)from << granule,
					((uint64_t)(from + n) << granule) - 1);
				memset(&host[from], 0, n * sizeof(host[0]));
			}
			for (unsigned probe = 0; probe < 32; probe++) {
				unsigned i = (unsigned)random_below(&random, 4096);

				assert_int_equal(is_mapped(&pt, (uint64_t)i << granule), !!host[i]);
				if (host[i])
					assert_int_equal(
						host_of(&pt, (uint64_t)i << granule), host[i]);
			}
		}
		stop(&pt);
	}
}

static void shapes_that_cannot_be(void **state)
{
	static const struct dmamap_table_config shapes[] = {
		{.granule_shift = 10},
		{.granule_shift = 17},
		{.node_shift = 11},
		{.node_shift = 17},
		{.iova_bits = 65},
		{.granule_shift = 16, .iova_bits = 15},
		{.granule_shift = 16, .leaf_sizes = 1 << 12},
	};
	struct dmamap_reason why;
	struct pagetable pt;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		assert_refused(pagetable_start(&pt, &shapes[i], &why), &why, EINVAL,
			&dmamap_reason_format_invalid);
}

/* With the n-th allocation failing, undoing leaves no node behind. */
static void no_memory(void **state)
{
	struct pagetable pt;
	int nth, rc;

	(void)state;
	start(&pt, 1 << 12, DMAMAP_OUTPUT_HOST);
	for (nth = 1;; nth++) {
		engine_fail_nth = nth;
		rc = pagetable_map(&pt, G(600) - M(3), G(600) + M(3) - 1, 0, 3, 63);
		engine_fail_nth = 0;
		if (!rc)
			break;
		assert_int_equal(rc, -ENOMEM);
		unmap(&pt, G(600) - M(3), G(600) + M(3) - 1);
		assert_int_equal(pt.pool.live, 0);
	}
	assert_true(nth > 6);
	stop(&pt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_changes_at_a_boundary),
		cmocka_unit_test(mixed_sizes),
		cmocka_unit_test(output_rules),
		cmocka_unit_test(any_host_address),
		cmocka_unit_test(leaves_of_several_items),
		cmocka_unit_test(largest_is_a_bound),
		cmocka_unit_test(top_of_the_space),
		cmocka_unit_test(root_grows),
		cmocka_unit_test(every_shape),
		cmocka_unit_test(shapes_that_cannot_be),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
