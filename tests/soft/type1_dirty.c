/* SPDX-License-Identifier: MIT */
/*
 * Dirty pages of type1: VFIO_IOMMU_DIRTY_PAGES, and unmapping with a bitmap.
 * Every page that is mapped is dirty, always. Source:
 * drivers/vfio/vfio_iommu_type1.c.
 */
#include "tests/soft/rig.h"

static char *memory;

static int start(void **state)
{
	static struct rig rig;

	memory = rig_memory(MIB, true);
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state);
	return 0;
}

static int dirty(struct rig *rig, uint32_t flags)
{
	struct vfio_iommu_type1_dirty_bitmap user = {.argsz = 8, .flags = flags};

	return rig_ioctl(rig, rig->container, VFIO_IOMMU_DIRTY_PAGES, &user);
}

static int tracking(struct rig *rig, bool on)
{
	return dirty(
		rig, on ? VFIO_IOMMU_DIRTY_PAGES_FLAG_START : VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP);
}

static int get(struct rig *rig, uint64_t iova, uint64_t pages, void *bits, uint64_t bytes)
{
	struct {
		uint32_t argsz, flags;
		struct vfio_iommu_type1_dirty_bitmap_get range;
	} user = {
		.argsz = sizeof(user),
		.flags = VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP,
		.range = {iova, pages * PAGE, {PAGE, bytes, bits}},
	};

	return rig_ioctl(rig, rig->container, VFIO_IOMMU_DIRTY_PAGES, &user);
}

static int unmap(struct rig *rig, uint64_t iova, uint64_t pages, void *bits, uint64_t bytes,
	uint64_t *unmapped)
{
	struct {
		uint32_t argsz, flags;
		uint64_t iova, size;
		struct vfio_bitmap bitmap;
	} user = {
		.argsz = sizeof(user),
		.flags = VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP,
		.iova = iova,
		.size = pages * PAGE,
		.bitmap = {PAGE, bytes, bits},
	};
	int error = rig_ioctl(rig, rig->container, VFIO_IOMMU_UNMAP_DMA, &user);

	*unmapped = user.size;
	return error;
}

/* vfio_iommu_type1_dirty_pages(), top to bottom. */
static void refusals(void **state)
{
	static const struct {
		uint32_t argsz, flags;
		int error;
		const char *reason;
	} rows[] = {
		{7, VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP, EINVAL, "argsz"},
		{8, 0, EINVAL, "flags"},
		{8, 8, EINVAL, "flags"},
		{8, VFIO_IOMMU_DIRTY_PAGES_FLAG_START | VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP, EINVAL,
			"flags"},
		{8, VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP, EINVAL, "argsz"},
		{47, VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP, EINVAL, "argsz"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct vfio_iommu_type1_dirty_bitmap user = {
			.argsz = rows[i].argsz, .flags = rows[i].flags};

		assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_DIRTY_PAGES, &user),
			rows[i].error, rows[i].reason);
	}
	assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_DIRTY_PAGES, NULL), EFAULT,
		"pointer");
}

/* GET_BITMAP's own checks; the order shows where two rules are broken. */
static void get_refusals(void **state)
{
	static uint64_t bits[2];
	const uint64_t pointer = (uintptr_t)bits;
	const struct {
		uint64_t iova, size, pgsize, bytes, data;
		int error;
		const char *reason;
	} rows[] = {
		{0, 0, PAGE, 8, pointer, EINVAL, "length_zero"},
		{~0ULL << 12, 2 * PAGE, 1, 0, ~0ULL, EOVERFLOW, "wrap"},
		{0, PAGE, PAGE, 8, ~0ULL, EINVAL, "pointer"},
		{0, PAGE, PAGE, 8, 1ULL << 63, EINVAL, "pointer"},
		{0, PAGE, PAGE, ~0ULL, pointer, EINVAL, "pointer"},
		{0, PAGE, 2 * PAGE, 8, pointer, EINVAL, "bitmap_size"},
		{0, PAGE, PAGE, 0, pointer, EINVAL, "bitmap_size"},
		{0, PAGE, PAGE, (1ULL << 28) + 1, pointer, EINVAL, "bitmap_size"},
		{0, PAGE, PAGE, 7, pointer, EINVAL, "bitmap_size"},
		{0, 65 * PAGE, PAGE, 15, pointer, EINVAL, "bitmap_size"},
		{0, 2 * PAGE, 2 * PAGE, 8, pointer, EINVAL, "bitmap_page"},
		{0x800, PAGE, PAGE, 8, pointer, EINVAL, "misaligned"},
		{0, PAGE + 0x800, PAGE, 8, pointer, EINVAL, "misaligned"},
		{0, PAGE, PAGE, 8, pointer, EINVAL, "tracking_off"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct {
			uint32_t argsz, flags;
			struct vfio_iommu_type1_dirty_bitmap_get range;
		} user = {
			.argsz = sizeof(user),
			.flags = VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP,
			.range = {rows[i].iova, rows[i].size,
				{rows[i].pgsize, rows[i].bytes,
					(uint64_t *)(uintptr_t)rows[i].data}},
		};

		assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_DIRTY_PAGES, &user),
			rows[i].error, rows[i].reason);
	}
	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	assert_gives(rig, get(rig, MIB + PAGE, 4, bits, 8), EINVAL, "cut");
	assert_gives(rig, get(rig, MIB - PAGE, 4, bits, 8), EINVAL, "cut");
	/* A bitmap that cannot be written: seen only when there is something to write. */
	assert_int_equal(get(rig, 2 * MIB, 4, (void *)8, 8), 0);
	assert_gives(rig, get(rig, MIB, 4, (void *)8, 8), EFAULT, "pointer");
}

/* START and STOP may come twice. */
static void start_and_stop(void **state)
{
	struct rig *rig = *state;
	uint64_t bits = 0;

	assert_int_equal(tracking(rig, false), 0);
	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(get(rig, 0, 1, &bits, 8), 0);
	assert_int_equal(tracking(rig, false), 0);
	assert_int_equal(tracking(rig, false), 0);
	assert_gives(rig, get(rig, 0, 1, &bits, 8), EINVAL, "tracking_off");
}

/* All that is mapped reads as dirty, each time; words without a mapping are left alone. */
static void all_is_dirty(void **state)
{
	struct rig *rig = *state;
	uint64_t bits[4];

	assert_int_equal(rig_map(rig, 0, memory, 64 * PAGE, RW), 0);
	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(rig_map(rig, 192 * PAGE, memory, 3 * PAGE, READ), 0);
	for (unsigned again = 0; again < 2; again++) {
		memset(bits, 0x55, sizeof(bits));
		assert_int_equal(get(rig, 0, 256, bits, 32), 0);
		assert_int_equal(bits[0], UINT64_MAX);
		assert_int_equal(bits[1], 0x5555555555555555);
		assert_int_equal(bits[2], 0x5555555555555555);
		/* What follows a mapping in its last word is overwritten. */
		assert_int_equal(bits[3], 7);
	}
}

/* update_user_bitmap(): mappings that share a word; what was in its first one stays there. */
static void shared_words(void **state)
{
	struct rig *rig = *state;
	uint64_t bits[3] = {1, 0, 0};

	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(rig_map(rig, 2 * PAGE, memory, 2 * PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 60 * PAGE, memory, 70 * PAGE, RW), 0);
	assert_int_equal(get(rig, 0, 192, bits, 24), 0);
	assert_int_equal(bits[0], 0xf00000000000000d);
	assert_int_equal(bits[1], UINT64_MAX);
	assert_int_equal(bits[2], 3);
	/* The kernel ORs the whole word in, bits behind the mapping too. */
	assert_int_equal(rig_map(rig, MIB + 4 * PAGE, memory, 2 * PAGE, RW), 0);
	bits[0] = 1ULL << 40;
	assert_int_equal(get(rig, MIB, 6, bits, 8), 0);
	assert_int_equal(bits[0], 0x30 | 1ULL << 40);
}

/*
 * bitmap_shift_left() moves a mapping's bits in place, and bitmap_clear() then
 * clears only as many as it has pages: those behind show in the next answer.
 */
static void moved_bits_stay(void **state)
{
	struct rig *rig = *state;
	uint64_t bits = 0;

	assert_int_equal(rig_map(rig, 4 * PAGE, memory, 8 * PAGE, RW), 0);
	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(get(rig, 4 * PAGE, 8, &bits, 8), 0);
	assert_int_equal(bits, 0xff);
	bits = 0;
	assert_int_equal(get(rig, 0, 12, &bits, 8), 0);
	assert_int_equal(bits, 0xff0);
	bits = 0;
	assert_int_equal(get(rig, 4 * PAGE, 8, &bits, 8), 0);
	assert_int_equal(bits, 0xfff);
	/* A new start has none of them. */
	assert_int_equal(tracking(rig, false), 0);
	assert_int_equal(tracking(rig, true), 0);
	bits = 0;
	assert_int_equal(get(rig, 4 * PAGE, 8, &bits, 8), 0);
	assert_int_equal(bits, 0xff);
}

/* The same in the way that the kernel does it, over mappings and windows at random. */
static void like_the_kernel(void **state)
{
	static uint64_t kernel[8], user[8], expected[8];
	struct random random = random_start("like_the_kernel");
	struct rig *rig = *state;

	for (unsigned round = 0; round < 200; round++) {
		uint64_t start = 64 + random_below(&random, 64), size = PAGE;
		unsigned n = 1 + (unsigned)random_below(&random, 200);

		memset(kernel, 0, sizeof(kernel));
		assert_int_equal(rig_map(rig, start * PAGE, memory, n * PAGE, RW), 0);
		assert_int_equal(tracking(rig, true), 0);
		for (unsigned call = 0; call < 6; call++) {
			unsigned offset = (unsigned)random_below(&random, 64), shift = offset % 64;
			unsigned words = (n + shift + 63) / 64, k;

			for (k = 0; k < 8; k++)
				user[k] = expected[k] = random_next(&random);
			for (k = 0; k < n; k++)
				kernel[k / 64] |= 1ULL << k % 64;
			for (k = words; shift && k--;)
				kernel[k] = kernel[k] << shift |
					    (k ? kernel[k - 1] >> (64 - shift) : 0);
			if (shift)
				kernel[0] |= user[0];
			memcpy(expected, kernel, words * 8);
			for (k = 0; k < n; k++)
				kernel[k / 64] &= ~(1ULL << k % 64);
			assert_int_equal(
				get(rig, (start - offset) * PAGE, n + offset, user, sizeof(user)),
				0);
			assert_memory_equal(user, expected, sizeof(user));
		}
		assert_int_equal(tracking(rig, false), 0);
		assert_int_equal(rig_unmap(rig, start * PAGE, (size = n * PAGE, &size), 0), 0);
	}
}

/* vfio_dma_bitmap_alloc(): a mapping of more than INT_MAX pages has no bitmap. */
static void too_many_pages(void **state)
{
	const uint64_t pages = 1ULL << 31;
	struct rig *rig = *state;
	uint64_t size = 0, room = pages * PAGE + GIB;
	char *va = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = (char *)(((uintptr_t)va + GIB - 1) & ~(GIB - 1));

	if (va == MAP_FAILED) {
		printf("no 8 TiB of addresses are to be had\n");
		skip();
	}
	assert_int_equal(dmamap_soft_declare(rig->system, at, pages * PAGE, -1, 30), 0);
	assert_int_equal(rig_map(rig, 1ULL << 40, at, pages * PAGE, RW), 0);
	assert_gives(rig, tracking(rig, true), EINVAL, "bitmap_pages");
	assert_gives(rig, get(rig, 0, 1, &size, 8), EINVAL, "tracking_off");
	assert_int_equal(rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(tracking(rig, true), 0);
	assert_gives(rig, rig_map(rig, 1ULL << 40, at, pages * PAGE, RW), EINVAL, "bitmap_pages");
	assert_int_equal(rig_counters(rig).areas, 0);
	assert_int_equal(rig_map(rig, 1ULL << 40, at, (pages - 1) * PAGE, RW), 0);
	munmap(va, room);
}

/* UNMAP with a bitmap: checked before the range, answered mapping by mapping. */
static void unmap_with_bitmap(void **state)
{
	struct rig *rig = *state;
	uint64_t bits[2] = {0}, unmapped;

	assert_gives(rig, unmap(rig, 0, 1, bits, 4, &unmapped), EINVAL, "bitmap_size");
	assert_gives(rig, unmap(rig, 0, 1, (void *)~0ULL, 8, &unmapped), EINVAL, "pointer");
	/* No bit would be needed for no page: refused before the size is. */
	assert_gives(rig, unmap(rig, 0x800, 0, bits, 8, &unmapped), EINVAL, "bitmap_size");
	assert_gives(rig, unmap(rig, 0x800, 1, bits, 8, &unmapped), EINVAL, "misaligned");
	assert_gives(rig, unmap(rig, 0, 1, bits, 8, &unmapped), EINVAL, "tracking_off");
	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(rig_map(rig, PAGE, memory, 2 * PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 70 * PAGE, memory, PAGE, RW), 0);
	assert_gives(rig, unmap(rig, 2 * PAGE, 8, bits, 8, &unmapped), EINVAL, "cut");
	assert_int_equal(unmapped, 8 * PAGE);
	assert_int_equal(unmap(rig, 0, 128, bits, 16, &unmapped), 0);
	assert_int_equal(unmapped, 3 * PAGE);
	assert_int_equal(bits[0], 6);
	assert_int_equal(bits[1], 1ULL << 6);
	assert_int_equal(rig_counters(rig).areas, 0);
	assert_int_equal(unmap(rig, 0, 64, (void *)8, 8, &unmapped), 0);
	assert_int_equal(unmapped, 0);
}

/* What came before a bitmap's bad page is unmapped, and the size is not told. */
static void unmap_to_a_hole(void **state)
{
	struct rig *rig = *state;
	char *two = rig_memory(2 * PAGE, true);
	uint64_t unmapped;

	munmap(two + PAGE, PAGE);
	assert_int_equal(tracking(rig, true), 0);
	assert_int_equal(rig_map(rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 64 * PAGE, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 128 * PAGE, memory, PAGE, RW), 0);
	assert_gives(rig, unmap(rig, 0, 192, two + PAGE - 8, 24, &unmapped), EFAULT, "pointer");
	assert_int_equal(unmapped, 192 * PAGE);
	assert_int_equal(*(uint64_t *)(two + PAGE - 8), 1);
	assert_int_equal(rig_counters(rig).areas, 2);
}

/* v1 has no tracking, whatever it is asked. */
static void none_in_v1(void **state)
{
	struct rig rig;
	uint64_t bits = 0, unmapped;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1_IOMMU);
	assert_gives(&rig, rig_ioctl(&rig, rig.container, VFIO_IOMMU_DIRTY_PAGES, NULL), EACCES,
		"dirty_v1");
	assert_gives(&rig, unmap(&rig, 0, 1, &bits, 8, &unmapped), EINVAL, "tracking_off");
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refusals, start, stop),
		cmocka_unit_test_setup_teardown(get_refusals, start, stop),
		cmocka_unit_test_setup_teardown(start_and_stop, start, stop),
		cmocka_unit_test_setup_teardown(all_is_dirty, start, stop),
		cmocka_unit_test_setup_teardown(shared_words, start, stop),
		cmocka_unit_test_setup_teardown(moved_bits_stay, start, stop),
		cmocka_unit_test_setup_teardown(like_the_kernel, start, stop),
		cmocka_unit_test_setup_teardown(too_many_pages, start, stop),
		cmocka_unit_test_setup_teardown(unmap_with_bitmap, start, stop),
		cmocka_unit_test_setup_teardown(unmap_to_a_hole, start, stop),
		cmocka_unit_test(none_in_v1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
