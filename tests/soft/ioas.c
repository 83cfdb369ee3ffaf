/* SPDX-License-Identifier: MIT */
/*
 * The native calls on an IOAS, without and with a device. Sources:
 * drivers/iommu/iommufd/ioas.c and io_pagetable.c.
 */
#include "tests/soft/rig.h"

static char *memory;

static int start(void **state, bool attach)
{
	static struct rig rig;

	memory = rig_memory(4 * MIB, true);
	rig_start(&rig, NULL);
	rig_cdev(&rig, attach);
	*state = &rig;
	return 0;
}

static int start_bare(void **state)
{
	return start(state, false);
}

static int start_attached(void **state)
{
	return start(state, true);
}

static int stop(void **state)
{
	rig_stop(*state);
	return 0;
}

#define FIXED (IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)
#define ANY   (IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)

static int copy(struct rig *rig, uint32_t from, uint64_t src, uint64_t length, uint64_t *dst,
	uint32_t flags)
{
	struct iommu_ioas_copy user = {
		.size = sizeof(user),
		.flags = flags,
		.dst_ioas_id = rig->ioas,
		.src_ioas_id = from,
		.length = length,
		.dst_iova = *dst,
		.src_iova = src,
	};
	int error = rig_ioctl(rig, rig->container, IOMMU_IOAS_COPY, &user);

	*dst = user.dst_iova;
	return error;
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

/* iommufd_ioas_map(), iopt_map_user_pages(), iopt_check_iova(), top to bottom. */
static void map_refusals(void **state)
{
	static const struct {
		uint32_t flags;
		uint64_t offset, length, iova;
		int error;
		const char *reason;
	} rows[] = {
		{FIXED | 8, 0, PAGE, 0, EOPNOTSUPP, "flags"},
		{FIXED, 0, PAGE, UINT64_MAX, EOVERFLOW, "too_large"},
		{FIXED, 0, UINT64_MAX, 0, EOVERFLOW, "too_large"},
		{IOMMU_IOAS_MAP_FIXED_IOVA, 0, PAGE, 0, EINVAL, "no_access"},
		{FIXED, 0, UINT64_MAX - 1, 0, EOVERFLOW, "wrap"},
		{FIXED, 0, 0, 0, EINVAL, "length_zero"},
		{FIXED, 0, 0x800, 0, EINVAL, "misaligned"},
		{FIXED, 0, PAGE, 0x800, EINVAL, "misaligned"},
		{FIXED, 0x800, PAGE, 0, EINVAL, "misaligned"},
		{FIXED, 0, 2 * PAGE, ~0ULL << 12, EOVERFLOW, "wrap"},
		{FIXED, 0, 2 * PAGE, 0xfedff000, EINVAL, "reserved"},
		{FIXED, 0, PAGE, 1ULL << 48, EINVAL, "reserved"},
		{FIXED, 0, PAGE, MIB, EEXIST, "overlap"},
		/* Reserved comes before mapped: this one is both. */
		{FIXED, 0, 2 * PAGE, 0xfeeff000, EINVAL, "reserved"},
		{FIXED, 0x800, PAGE, MIB, EEXIST, "overlap"},
	};
	struct rig *rig = *state;
	uint64_t iova = MIB;

	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, FIXED), 0);
	iova = 0xfef00000;
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, FIXED), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		iova = rows[i].iova;
		assert_gives(rig,
			rig_ioas_map_as(rig, (uintptr_t)memory + rows[i].offset, rows[i].length,
				&iova, rows[i].flags),
			rows[i].error, rows[i].reason);
	}
	rig->ioas = 77;
	assert_gives(rig, rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, FIXED), ENOENT,
		"object_unknown");
	assert_gives(rig, rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, FIXED | 8),
		EOPNOTSUPP, "flags");
	assert_int_equal(rig_counters(rig).areas, 2);
}

/* Without a page table anything goes: odd addresses, the last byte, no memory behind it. */
static void map_bare(void **state)
{
	struct rig *rig = *state;
	uint64_t iova = 3, length = 7;

	assert_int_equal(rig_ioas_map_as(rig, 0x1001, 7, &iova, FIXED), 0);
	iova = UINT64_MAX - 9;
	assert_int_equal(rig_ioas_map_as(rig, 0x1001, 10, &iova, FIXED), 0);
	assert_int_equal(rig_ioas_unmap(rig, 3, &length), 0);
	assert_int_equal(length, 7);
	length = UINT64_MAX;
	assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	assert_int_equal(length, 10);
}

/* Attaching needs whole pages, in IOVA and in memory, and nothing where it cannot reach. */
static void attach_refusals(void **state)
{
	static const struct {
		uint64_t va_offset, iova, length;
		const char *reason;
	} rows[] = {
		{0, 0x800, PAGE, "area_misaligned"},
		{0, 0, 0x800, "area_misaligned"},
		{0x10, 0, PAGE, "offset_misaligned"},
		{0, 0xfee00000, PAGE, "in_use"},
		{0, 1ULL << 48, PAGE, "in_use"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		uint64_t iova = rows[i].iova, length = rows[i].length;
		uint32_t pt = rig->ioas;

		assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory + rows[i].va_offset, length,
					 &iova, FIXED),
			0);
		assert_gives(rig, rig_attach(rig, rig->device, &pt), EADDRINUSE, rows[i].reason);
		/* Nothing stays reserved, and the id of the page table is free again. */
		iova = 0xfee01000;
		assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, FIXED), 0);
		length = UINT64_MAX;
		assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	}
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
}

/* iopt_alloc_iova(): first fit, as aligned as the address is, never page 0. */
static void allocate(void **state)
{
	struct rig *rig = *state;
	uint64_t iova = 0;

	assert_int_equal(rig_ioas_map_as(rig, 0x201000, PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0x1000);
	assert_int_equal(rig_ioas_map_as(rig, 0x204000, 4 * PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0x4000);
	/* At most a huge page; the next multiple of 2 MiB, though 1 GiB would be there. */
	assert_int_equal(rig_ioas_map_as(rig, 0x40000000, 4 * MIB, &iova, ANY), 0);
	assert_int_equal(iova, 0x200000);
	assert_int_equal(rig_ioas_map_as(rig, 0x201000, 2 * PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0x2000);
	assert_gives(rig, rig_ioas_map_as(rig, 0, 1ULL << 63, &iova, ANY), EOVERFLOW, "too_large");
	/* A fixed IOVA is never given to another. */
	iova = 0x8000;
	assert_int_equal(rig_ioas_map_as(rig, 0x1000, PAGE, &iova, FIXED), 0);
	assert_int_equal(rig_ioas_map_as(rig, 0x1000, PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0x9000);
}

/* With a device: not in its windows, and not for memory that starts inside a page. */
static void allocate_attached(void **state)
{
	struct iommu_iova_range range = {0xfed00000, 0xfedfffff};
	struct rig *rig = *state;
	uint64_t iova = 0;

	assert_gives(rig, rig_ioas_map_as(rig, (uintptr_t)memory + 0x800, PAGE, &iova, ANY), EINVAL,
		"misaligned");
	assert_int_equal(allow(rig, &range, 1), 0);
	for (unsigned i = 0; i < 256; i++)
		assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0xfedff000);
	assert_gives(
		rig, rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, ANY), ENOSPC, "no_iova");
}

/* iommufd_ioas_allow_iovas(); a fixed IOVA need not be allowed. */
static void allowed(void **state)
{
	struct iommu_iova_range ranges[2] = {{0x100000, 0x1fffff}, {0x1fffff, 0x2fffff}};
	struct iommu_ioas_allow_iovas reserved = {.size = sizeof(reserved), .__reserved = 1};
	struct rig *rig = *state;
	uint64_t iova = 0;

	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_ALLOW_IOVAS, &reserved),
		EOPNOTSUPP, "reserved_field");
	assert_gives(rig, allow(rig, ranges, 2), EINVAL, "range_overlap");
	assert_gives(rig, allow(rig, NULL, 1), EFAULT, "pointer");
	ranges[1] = (struct iommu_iova_range){5, 5};
	assert_gives(rig, allow(rig, ranges, 2), EINVAL, "range_order");
	ranges[1] = (struct iommu_iova_range){0xfee00000, 0xfee00fff};
	assert_gives(rig, allow(rig, ranges, 2), EADDRINUSE, "range_reserved");
	ranges[1] = (struct iommu_iova_range){0x1000, 0x1fff};
	assert_int_equal(allow(rig, ranges, 2), 0);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0x1000);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0x100000);
	iova = 0x4000;
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, FIXED), 0);
	assert_int_equal(allow(rig, NULL, 0), 0);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, ANY), 0);
	assert_int_equal(iova, 0x2000);
	/* Only page 0 allowed: nothing is. */
	ranges[0] = (struct iommu_iova_range){0, 0xfff};
	assert_int_equal(allow(rig, ranges, 1), 0);
	assert_gives(
		rig, rig_ioas_map_as(rig, (uintptr_t)memory, PAGE, &iova, ANY), ENOSPC, "no_iova");
}

/* What was promised to programs cannot be reserved for a device. */
static void allowed_before_attach(void **state)
{
	struct iommu_iova_range range = {0xfee00000, 0xfee01fff};
	struct rig *rig = *state;

	assert_int_equal(allow(rig, &range, 1), 0);
	assert_gives(rig, rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), EADDRINUSE,
		"range_reserved");
	range = (struct iommu_iova_range){UINT64_MAX - 100, UINT64_MAX};
	assert_int_equal(allow(rig, &range, 1), 0);
	assert_gives(rig, rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), EADDRINUSE,
		"range_reserved");
	assert_int_equal(allow(rig, NULL, 0), 0);
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
}

/* The first call usually has no room: EMSGSIZE, with the number and the alignment. */
static void iova_ranges(void **state)
{
	struct iommu_iova_range ranges[2] = {0};
	struct rig *rig = *state;
	struct iommu_ioas_iova_ranges user = {.size = sizeof(user), .ioas_id = rig->ioas};

	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), EMSGSIZE,
		"ranges_room");
	assert_int_equal(user.num_iovas, 2);
	assert_int_equal(user.out_iova_alignment, PAGE);
	user.num_iovas = 1;
	user.allowed_iovas = (uintptr_t)ranges;
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), EMSGSIZE,
		"ranges_room");
	assert_int_equal(ranges[0].last, 0xfedfffff);
	assert_int_equal(ranges[1].last, 0);
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), 0);
	assert_int_equal(ranges[1].start, 0xfef00000);
	assert_int_equal(ranges[1].last, 0xffffffffffff);
	user.allowed_iovas = 16;
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), EFAULT,
		"pointer");
	user.__reserved = 1;
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), EOPNOTSUPP,
		"reserved_field");
}

static void iova_ranges_bare(void **state)
{
	struct iommu_iova_range range;
	struct rig *rig = *state;
	struct iommu_ioas_iova_ranges user = {
		.size = sizeof(user),
		.ioas_id = rig->ioas,
		.num_iovas = 1,
		.allowed_iovas = (uintptr_t)&range,
	};

	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), 0);
	assert_int_equal(range.start, 0);
	assert_int_equal(range.last, UINT64_MAX);
	assert_int_equal(user.out_iova_alignment, 1);
}

/* iommufd_ioas_copy(), iopt_get_pages(), iopt_map_pages(). */
static void copies(void **state)
{
	struct rig *rig = *state;
	uint32_t from = rig->ioas;
	uint64_t iova = 0x100000, dst;
	struct iommu_destroy destroy = {.size = sizeof(destroy), .id = from};
	struct dmamap_access *access;

	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, 4 * PAGE, &iova, FIXED), 0);
	iova = 0x104000;
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory + MIB, PAGE, &iova,
				 FIXED & ~IOMMU_IOAS_MAP_WRITEABLE),
		0);
	rig->ioas = rig_ioas_alloc(rig);
	dst = 0;
	assert_gives(rig, copy(rig, from, 0x100000, 0, &dst, FIXED), EINVAL, "length_zero");
	assert_gives(rig, copy(rig, from, 0x100000, 6 * PAGE, &dst, FIXED), ENOENT, "gap");
	assert_gives(rig, copy(rig, from, UINT64_MAX - 10, PAGE, &dst, FIXED), EOVERFLOW, "wrap");
	assert_gives(rig, copy(rig, from, UINT64_MAX, PAGE, &dst, FIXED), EOVERFLOW, "too_large");
	assert_gives(rig, copy(rig, 99, 0x100000, PAGE, &dst, FIXED), ENOENT, "object_unknown");
	assert_gives(rig, copy(rig, from, 0x100000, PAGE, &dst, FIXED | 8), EOPNOTSUPP, "flags");
	assert_gives(rig, copy(rig, from, 0x100000, PAGE, &dst, IOMMU_IOAS_MAP_FIXED_IOVA), EINVAL,
		"no_access");
	/* Pages that were pinned for reading cannot be written through a copy. */
	assert_gives(
		rig, copy(rig, from, 0x103000, 2 * PAGE, &dst, FIXED), EPERM, "memory_read_only");
	assert_int_equal(
		copy(rig, from, 0x103000, 2 * PAGE, &dst, FIXED & ~IOMMU_IOAS_MAP_WRITEABLE), 0);
	assert_gives(rig, copy(rig, from, 0x103000, 2 * PAGE, &dst, FIXED), EEXIST, "overlap");
	/* Two areas came of it: one of them cannot be cut, and both can go. */
	assert_int_equal(rig_counters(rig).areas, 4);
	/* The bytes are the source's, also after that is gone. */
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
	assert_int_equal(copy(rig, from, 0x101000, 3 * PAGE, &dst, ANY), 0);
	assert_int_equal(dst, 0x2000);
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_DESTROY, &destroy), 0);
	assert_int_equal(dmamap_soft_access(rig->system, rig->device, &access), 0);
	assert_int_equal(dmamap_write(access, 0x2000, "copy", 4, NULL), 0);
	assert_memory_equal(memory + PAGE, "copy", 4);
	dmamap_access_destroy(access);
	assert_gives(rig, copy(rig, rig->ioas, 0x2800, PAGE, &dst, ANY), EINVAL, "misaligned");
}

/* iopt_unmap_iova_range(): areas before one that is cut are gone when it fails. */
static void unmaps(void **state)
{
	struct rig *rig = *state;
	uint64_t length = PAGE, iova;

	assert_gives(rig, rig_ioas_unmap(rig, 0, &length), ENOENT, "unmap_nothing");
	length = 0;
	assert_gives(rig, rig_ioas_unmap(rig, 0, &length), EINVAL, "length_zero");
	length = UINT64_MAX - 1;
	assert_gives(rig, rig_ioas_unmap(rig, PAGE, &length), EOVERFLOW, "wrap");
	length = UINT64_MAX;
	assert_gives(rig, rig_ioas_unmap(rig, PAGE, &length), EOVERFLOW, "too_large");
	assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	assert_int_equal(length, 0);
	for (iova = 0x10000; iova < 0x50000; iova += 0x10000)
		assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, 0x8000, &iova, FIXED), 0);
	length = 0x34000;
	assert_gives(rig, rig_ioas_unmap(rig, 0, &length), ENOENT, "cut");
	assert_int_equal(length, 0x34000);
	assert_int_equal(rig_counters(rig).areas, 2);
	length = 0x4000;
	assert_gives(rig, rig_ioas_unmap(rig, 0x34000, &length), ENOENT, "cut");
	length = 0x20000;
	assert_gives(rig, rig_ioas_unmap(rig, 0x34000, &length), ENOENT, "cut");
	assert_int_equal(rig_counters(rig).areas, 2);
	length = 0x100000;
	assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	assert_int_equal(length, 0x10000);
}

/* With huge pages off there is one size of leaf, and the page is the alignment. */
static void huge_pages(void **state)
{
	struct iommu_option option = {
		.size = sizeof(option),
		.option_id = IOMMU_OPTION_HUGE_PAGES,
		.op = IOMMU_OPTION_OP_GET,
	};
	struct rig *rig = *state;
	uint64_t iova = 0x800, length = UINT64_MAX;

	option.object_id = rig->ioas;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_OPTION, &option), 0);
	assert_int_equal(option.val64, 1);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, 0x800, &iova, FIXED), 0);
	option.op = IOMMU_OPTION_OP_SET;
	option.val64 = 0;
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_OPTION, &option), EADDRINUSE,
		"area_misaligned");
	assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_OPTION, &option), 0);
	assert_gives(rig, rig_ioas_map_as(rig, (uintptr_t)memory, 0x800, &iova, FIXED), EINVAL,
		"misaligned");
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
	/* Declared as one huge page, mapped as small ones. */
	iova = 2 * MIB;
	assert_int_equal(dmamap_soft_declare(rig->system, memory, 2 * MIB, -1, 21), 0);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, 2 * MIB, &iova, FIXED), 0);
	assert_int_equal(rig_counters(rig).leaves[12], 512);
	assert_int_equal(rig_counters(rig).leaves[21], 0);
	option.val64 = 2;
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_OPTION, &option), EINVAL, "value");
	length = UINT64_MAX;
	assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	option.val64 = 1;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_OPTION, &option), 0);
	assert_int_equal(rig_ioas_map_as(rig, (uintptr_t)memory, 2 * MIB, &iova, FIXED), 0);
	assert_int_equal(rig_counters(rig).leaves[21], 1);
	option.val64 = 0;
	assert_gives(
		rig, rig_ioctl(rig, rig->container, IOMMU_OPTION, &option), EINVAL, "large_pages");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(map_refusals, start_attached, stop),
		cmocka_unit_test_setup_teardown(map_bare, start_bare, stop),
		cmocka_unit_test_setup_teardown(attach_refusals, start_bare, stop),
		cmocka_unit_test_setup_teardown(allocate, start_bare, stop),
		cmocka_unit_test_setup_teardown(allocate_attached, start_attached, stop),
		cmocka_unit_test_setup_teardown(allowed, start_attached, stop),
		cmocka_unit_test_setup_teardown(allowed_before_attach, start_bare, stop),
		cmocka_unit_test_setup_teardown(iova_ranges, start_attached, stop),
		cmocka_unit_test_setup_teardown(iova_ranges_bare, start_bare, stop),
		cmocka_unit_test_setup_teardown(copies, start_bare, stop),
		cmocka_unit_test_setup_teardown(unmaps, start_attached, stop),
		cmocka_unit_test_setup_teardown(huge_pages, start_bare, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
