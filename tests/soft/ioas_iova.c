/* SPDX-License-Identifier: MIT */
/*
 * Where IOMMUFD puts memory that may lie anywhere, and how fine IOVAs may be.
 * Sources: iopt_alloc_iova() and iopt_table_add_domain() in
 * drivers/iommu/iommufd/io_pagetable.c; the cases area_auto_iova, area_allowed,
 * reserved_overflow, ioas_iova_alloc, ioas_align_change and copy_sweep of
 * tools/testing/selftests/iommu/iommufd.c, as far as they need no test
 * operations.
 */
#include "tests/soft/rig.h"

#define ANY   (IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)
#define FIXED (IOMMU_IOAS_MAP_FIXED_IOVA | ANY)

static char *memory;

static int start(void **state)
{
	static struct rig rig;

	memory = rig_memory(4 * MIB, true);
	rig_start(&rig, NULL);
	rig_cdev(&rig, false);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state);
	munmap(memory, 4 * MIB);
	return 0;
}

static int allow(struct rig *rig, const struct iommu_iova_range *ranges, uint32_t n)
{
	struct iommu_ioas_allow_iovas user = {
		.size = sizeof(user),
		.ioas_id = rig->ioas,
		.num_iovas = n,
		.allowed_iovas = (uintptr_t)ranges,
	};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_ALLOW_IOVAS, &user);
}

/* ------------------------------------------------- the rule, as simply as can be */

struct used {
	uint64_t first, last;
};

#define MOST 400

/* Kept sorted. */
static struct used used[MOST];
static size_t n_used;

static uint64_t align_of(uint64_t va, uint64_t length)
{
	uint64_t align = 1;

	while (align < length)
		align *= 2;
	if (va && align > (va & -va))
		align = va & -va;
	return align > 2 * MIB ? 2 * MIB : align;
}

/* The first hole of an allowed range that takes it; 0: none. */
static uint64_t expected(
	const struct iommu_iova_range *ranges, size_t n, uint64_t va, uint64_t length)
{
	uint64_t align = align_of(va, length), phase = va % PAGE;

	for (size_t i = 0; i < n; i++) {
		/* The search begins where the range alone would have it. */
		uint64_t from = ((ranges[i].start + align - 1) & ~(align - 1)) | phase;

		for (size_t j = 0; j <= n_used; j++) {
			uint64_t last = ranges[i].last, at;

			if (j < n_used && used[j].last < from)
				continue;
			if (j < n_used && used[j].first <= last)
				last = used[j].first - 1;
			at = ((from + align - 1) & ~(align - 1)) | phase;
			if (last >= from && at < last && last - at >= length - 1)
				return at;
			if (j < n_used)
				from = used[j].last + 1;
		}
	}
	return 0;
}

static void add(uint64_t first, uint64_t last)
{
	size_t i = n_used++;

	for (; i && used[i - 1].first > first; i--)
		used[i] = used[i - 1];
	used[i] = (struct used){first, last};
}

static void at_random(void **state)
{
	static const struct iommu_iova_range ranges[] = {
		{0x10000, 0x1ffff}, {0x30001, 0x30001 + 0x7000}, {0x41000, 0x5fffe}};
	struct random random = random_start("IOVA allocation");
	struct rig *rig = *state;

	n_used = 0;
	assert_int_equal(allow(rig, ranges, LENGTH(ranges)), 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t length = random_below(&random, 4) ? 1 + random_below(&random, 0x80)
							   : 1 + random_below(&random, 0x3000);
		uint64_t va = (uintptr_t)memory + random_below(&random, 4 * MIB - 0x4000);
		uint64_t want, iova = 0;
		int error;

		if (random_below(&random, 2))
			va &= ~(PAGE - 1) >> random_below(&random, 9) << random_below(&random, 9);
		if (n_used == MOST || random_below(&random, 20) == 0) {
			size_t gone = random_below(&random, n_used ? n_used : 1);
			uint64_t size;

			if (!n_used)
				continue;
			size = used[gone].last - used[gone].first + 1;
			assert_int_equal(rig_ioas_unmap(rig, used[gone].first, &size), 0);
			memmove(&used[gone], &used[gone + 1],
				(n_used - gone - 1) * sizeof(used[0]));
			n_used--;
			continue;
		}
		want = expected(ranges, LENGTH(ranges), va, length);
		error = rig_ioas_map_as(rig, va, length, &iova, ANY);
		if (!want) {
			assert_int_equal(error, -ENOSPC);
			continue;
		}
		assert_int_equal(error, 0);
		assert_int_equal(iova, want);
		add(iova, iova + length - 1);
	}
}

/* ------------------------------------------------------------------ single rules */

/* Aligned as the memory is and the length would have it, at most to a huge page; never at 0. */
static void alignment(void **state)
{
	static const struct {
		uint64_t va, length, align;
	} rows[] = {
		{1ULL << 31, PAGE, PAGE},
		{1ULL << 31, 3 * PAGE, 4 * PAGE},
		{1ULL << 31, GIB, 2 * MIB},
		{0x7000, 16 * PAGE, PAGE},
		{0x8000, 16 * PAGE, 8 * PAGE},
		{0, 64 * PAGE, 64 * PAGE},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		uint64_t iova = 7, size = UINT64_MAX, hole = PAGE;

		/* Something small is in the way, so that alignment shows. */
		assert_int_equal(rig_ioas_map_as(rig, PAGE, PAGE, &hole, FIXED), 0);
		assert_int_equal(rig_ioas_map_as(rig, rows[i].va, rows[i].length, &iova, ANY), 0);
		assert_int_equal(iova, rows[i].align > PAGE ? rows[i].align : 2 * PAGE);
		assert_int_equal(rig_ioas_unmap(rig, 0, &size), 0);
	}
}

static void refusals(void **state)
{
	struct rig *rig = *state;
	uint64_t iova = 0;

	assert_gives(
		rig, rig_ioas_map_as(rig, 0, UINT64_MAX / 2, &iova, ANY), EOVERFLOW, "too_large");
	assert_gives(rig, rig_ioas_map_as(rig, 0, UINT64_MAX / 2 - 1, &iova, ANY), 0, "");
	assert_int_equal(rig_ioas_map_as(rig, 0, 1ULL << 62, &iova, ANY), 0);
	assert_gives(rig, rig_ioas_map_as(rig, 0, 1ULL << 62, &iova, ANY), ENOSPC, "no_iova");
	/* Unaligned memory, where whole pages are wanted. */
	assert_int_equal(rig_ioas_unmap(rig, 0, &(uint64_t){UINT64_MAX}), 0);
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
	assert_gives(rig, rig_ioas_map_as(rig, 0x10800, 0x800, &iova, ANY), EINVAL, "misaligned");
	assert_gives(rig, rig_ioas_map_as(rig, 0x10800, PAGE, &iova, ANY), EINVAL, "misaligned");
}

/* The kernel ORs the offset into a page into what it has aligned: not always the same offset. */
static void not_congruent(void **state)
{
	struct iommu_iova_range range = {0x10000, 0x11fff};
	struct rig *rig = *state;
	uint64_t iova = 0;

	assert_int_equal(allow(rig, &range, 1), 0);
	assert_int_equal(rig_ioas_map_as(rig, 0x20c00, 0x100, &iova, ANY), 0);
	assert_int_equal(iova, 0x10c00);
	assert_int_equal(rig_ioas_map_as(rig, 0x20c00, 0x100, &iova, ANY), 0);
	assert_int_equal(iova, 0x10d00);
	/* A range of one byte, or the last byte of one, is never taken. */
	range = (struct iommu_iova_range){0x20000, 0x20001};
	assert_int_equal(allow(rig, &range, 1), 0);
	assert_int_equal(rig_ioas_map_as(rig, 0x30000, 1, &iova, ANY), 0);
	assert_int_equal(iova, 0x20000);
	assert_gives(rig, rig_ioas_map_as(rig, 0x30000, 1, &iova, ANY), ENOSPC, "no_iova");
}

/* Allowed ranges that touch are one; the first and the last page are never given. */
static void allowed(void **state)
{
	struct iommu_iova_range ranges[] = {{0x30000, 0x33fff}, {0x20000, 0x2ffff}};
	struct rig *rig = *state;
	uint64_t iova = 0;

	assert_int_equal(allow(rig, ranges, 2), 0);
	assert_int_equal(rig_ioas_map_as(rig, 0x1001000, 0x14000, &iova, ANY), 0);
	assert_int_equal(iova, 0x20000);
	assert_gives(rig, rig_ioas_map_as(rig, 0x1001000, PAGE, &iova, ANY), ENOSPC, "no_iova");
	ranges[0] = (struct iommu_iova_range){0, PAGE - 1};
	assert_int_equal(allow(rig, ranges, 1), 0);
	assert_gives(rig, rig_ioas_map_as(rig, 0x1001000, PAGE, &iova, ANY), ENOSPC, "no_iova");
	ranges[0] = (struct iommu_iova_range){UINT64_MAX - 2 * PAGE + 1, UINT64_MAX};
	assert_int_equal(allow(rig, ranges, 1), 0);
	assert_gives(rig, rig_ioas_map_as(rig, 0x1001000, 2 * PAGE, &iova, ANY), ENOSPC, "no_iova");
	assert_int_equal(rig_ioas_map_as(rig, 0x1001000, PAGE / 2, &iova, ANY), 0);
	/* A fixed one may lie anywhere. */
	iova = 0x100000;
	assert_int_equal(rig_ioas_map_as(rig, 0x1001000, PAGE, &iova, FIXED), 0);
}

/* Any pieces of any areas, to the byte, while there is no page table. */
static void sweep(void **state)
{
	struct rig *rig = *state;
	uint32_t to = rig_ioas_alloc(rig), from = rig->ioas;

	/* [0x1000, 0x1800), [0x1800, 0x1c00), a gap, [0x2000, 0x3000) */
	assert_int_equal(
		rig_ioas_map_as(rig, (uintptr_t)memory, 0x800, &(uint64_t){0x1000}, FIXED), 0);
	assert_int_equal(
		rig_ioas_map_as(rig, (uintptr_t)memory + 0x33, 0x400, &(uint64_t){0x1800}, FIXED),
		0);
	assert_int_equal(
		rig_ioas_map_as(rig, (uintptr_t)memory, 0x1000, &(uint64_t){0x2000}, FIXED), 0);
	for (uint64_t first = 0xe00; first < 0x3200; first += 0x1ff)
		for (uint64_t last = first; last < 0x3200; last += 0x1ff) {
			bool whole = (first >= 0x1000 && last < 0x1c00) ||
				     (first >= 0x2000 && last < 0x3000);
			uint64_t size = UINT64_MAX;

			assert_int_equal(rig_ioas_copy(rig, to, first, last - first + 1, 0x5001),
				whole ? 0 : -ENOENT);
			rig->ioas = to;
			assert_int_equal(rig_ioas_unmap(rig, 0, &size), 0);
			assert_int_equal(size, whole ? last - first + 1 : 0);
			rig->ioas = from;
		}
}

static uint64_t alignment_of(struct rig *rig)
{
	struct iommu_iova_range range[8];
	struct iommu_ioas_iova_ranges user = {
		.size = sizeof(user),
		.ioas_id = rig->ioas,
		.num_iovas = 8,
		.allowed_iovas = (uintptr_t)range,
	};

	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), 0);
	return user.out_iova_alignment;
}

/* It grows with page tables and without large pages, where what is mapped lets it, and shrinks. */
static void granularity(void **state)
{
	struct rig *rig = *state;
	struct vfio_device_detach_iommufd_pt detach = {.argsz = sizeof(detach)};

	assert_int_equal(alignment_of(rig), 1);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, 1, &(uint64_t){PAGE}, FIXED), 0);
	assert_gives(rig, rig_huge_pages(rig, false), EADDRINUSE, "area_misaligned");
	assert_gives(rig, rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), EADDRINUSE,
		"area_misaligned");
	assert_int_equal(alignment_of(rig), 1);
	assert_int_equal(rig_ioas_unmap(rig, 0, &(uint64_t){UINT64_MAX}), 0);
	assert_int_equal(rig_huge_pages(rig, false), 0);
	assert_int_equal(alignment_of(rig), PAGE);
	assert_int_equal(rig_huge_pages(rig, true), 0);
	assert_int_equal(alignment_of(rig), 1);
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
	assert_int_equal(alignment_of(rig), PAGE);
	assert_int_equal(rig_ioctl(rig, rig->device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0);
	assert_int_equal(alignment_of(rig), 1);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, 1, &(uint64_t){PAGE}, FIXED), 0);
}

/* Pages of 64 KiB above an IOMMU of 4 KiB: parts of a page are mapped, and it is pinned once. */
static void below_a_page(void **state)
{
	struct dmamap_machine machine;
	struct dmamap_machine_iommu iommu;
	struct dmamap_soft_charge charge;
	struct dmamap_access *access;
	struct rig rig;
	char byte;

	(void)state;
	dmamap_machine_default(&machine);
	machine.page_shift = 16;
	machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
	iommu = machine.iommus[0];
	iommu.leaf_sizes |= 1ULL << 16;
	machine.iommus = &iommu;
	rig_start(&rig, &machine);
	rig_cdev(&rig, true);
	assert_int_equal(alignment_of(&rig), PAGE);
	assert_int_equal(
		rig_ioas_map_as(&rig, (uintptr_t)memory + 3 * PAGE, PAGE, &(uint64_t){PAGE}, FIXED),
		0);
	assert_int_equal(rig_ioas_map_as(&rig, (uintptr_t)memory + 15 * PAGE, 2 * PAGE,
				 &(uint64_t){8 * PAGE}, FIXED),
		0);
	assert_gives(&rig,
		rig_ioas_map_as(&rig, (uintptr_t)memory + 7, PAGE, &(uint64_t){GIB}, FIXED), EINVAL,
		"misaligned");
	assert_int_equal(dmamap_soft_charged(rig.system, 0, &charge), 0);
	assert_int_equal(charge.pinned, 3 * 64 * KIB);
	memory[16 * PAGE] = 'p';
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_read(access, 9 * PAGE, &byte, 1, NULL), 0);
	assert_int_equal(byte, 'p');
	dmamap_access_destroy(access);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(at_random, start, stop),
		cmocka_unit_test_setup_teardown(alignment, start, stop),
		cmocka_unit_test_setup_teardown(refusals, start, stop),
		cmocka_unit_test_setup_teardown(not_congruent, start, stop),
		cmocka_unit_test_setup_teardown(allowed, start, stop),
		cmocka_unit_test_setup_teardown(sweep, start, stop),
		cmocka_unit_test_setup_teardown(granularity, start, stop),
		cmocka_unit_test_setup_teardown(below_a_page, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
