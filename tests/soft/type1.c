/* SPDX-License-Identifier: MIT */
/*
 * Type1's rules for MAP_DMA, UNMAP_DMA and GET_INFO, each with its errno and
 * the reason that goes with it. Source: drivers/vfio/vfio_iommu_type1.c.
 */
#include "tests/soft/rig.h"

static char *memory;

static int start(void **state, unsigned long type)
{
	static struct rig rig;

	memory = rig_memory(4 * MIB, true);
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", type);
	*state = &rig;
	return 0;
}

static int start_v2(void **state)
{
	return start(state, VFIO_TYPE1v2_IOMMU);
}

static int start_v1(void **state)
{
	return start(state, VFIO_TYPE1_IOMMU);
}

static int stop(void **state)
{
	rig_stop(*state);
	return 0;
}

/* vfio_iommu_type1_map_dma() and vfio_dma_do_map(), top to bottom. */
static void map_refusals(void **state)
{
	static const struct {
		uint32_t argsz, flags;
		uint64_t va_offset, iova, size;
		int error;
		const char *reason;
	} rows[] = {
		{31, RW, 0, 0, PAGE, EINVAL, "argsz"},
		{32, RW | 8, 0, 0, PAGE, EINVAL, "flags"},
		{32, RW, 0, 0, 0, EINVAL, "length_zero"},
		{32, RW, 0, ~0ULL << 12, 2 * PAGE, EOVERFLOW, "wrap"},
		{32, 0, 0, ~0ULL << 12, 2 * PAGE, EOVERFLOW, "wrap"},
		{32, 0, 0, 0, PAGE, EINVAL, "no_access"},
		{32, RW | VFIO_DMA_MAP_FLAG_VADDR, 0, 0, PAGE, EINVAL, "flags_together"},
		{32, RW, 0, 0x800, PAGE, EINVAL, "misaligned"},
		{32, RW, 0x800, 0, PAGE, EINVAL, "misaligned"},
		{32, RW, 0, 0, 0x800, EINVAL, "misaligned"},
		{32, VFIO_DMA_MAP_FLAG_VADDR, 0, 0, PAGE, ENOENT, "vaddr_nothing"},
		{32, VFIO_DMA_MAP_FLAG_VADDR, 0, 16 * MIB, PAGE, EINVAL, "vaddr_valid"},
		{32, RW, 0, 16 * MIB, PAGE, EEXIST, "overlap"},
		{32, RW, 0, 0xfedff000, 2 * PAGE, EINVAL, "reserved"},
		{32, RW, 0, 1ULL << 48, PAGE, EINVAL, "aperture"},
		{32, RW, 0, (1ULL << 48) - PAGE, 2 * PAGE, EINVAL, "aperture"},
		{32, RW, 0, ~0ULL << 12, PAGE, EINVAL, "aperture"},
		{32, RW, 0, 15 * MIB, (1ULL << 48), EEXIST, "overlap"},
	};
	struct rig *rig = *state;

	assert_int_equal(rig_map(rig, 16 * MIB, memory, PAGE, RW), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct vfio_iommu_type1_dma_map map = {
			.argsz = rows[i].argsz,
			.flags = rows[i].flags,
			.vaddr = (uintptr_t)memory + rows[i].va_offset,
			.iova = rows[i].iova,
			.size = rows[i].size,
		};

		assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_MAP_DMA, &map),
			rows[i].error, rows[i].reason);
	}
	assert_gives(
		rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_MAP_DMA, NULL), EFAULT, "pointer");
	assert_int_equal(rig_counters(rig).areas, 1);
}

/* vaddr + size wraps: EOVERFLOW too, and before the protection is looked at. */
static void map_address_wraps(void **state)
{
	struct rig *rig = *state;

	assert_gives(
		rig, rig_map(rig, 0, (void *)~(uintptr_t)4095, 2 * PAGE, 0), EOVERFLOW, "wrap");
}

/* The neighbours of the MSI window are ordinary, the last page of the aperture too. */
static void map_edges(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_map(rig, 0xfedff000, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 0xfef00000, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, (1ULL << 48) - PAGE, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 0, memory, PAGE, RW), 0);
}

/* pin_user_pages: a hole, read-only memory for a writing device, no access at all. */
static void map_memory_faults(void **state)
{
	struct rig *rig = *state;
	char *two = rig_memory(4 * PAGE, true);

	munmap(two + 2 * PAGE, PAGE);
	assert_gives(rig, rig_map(rig, 0, two, 4 * PAGE, RW), EFAULT, "hole");
	assert_int_equal(rig_counters(rig).areas, 0);
	assert_int_equal(rig_map(rig, 0, two, 2 * PAGE, RW), 0);
	mprotect(two, PAGE, PROT_READ);
	assert_gives(rig, rig_map(rig, MIB, two, PAGE, RW), EFAULT, "memory_access");
	assert_gives(rig, rig_map(rig, MIB, two, PAGE, WRITE), EFAULT, "memory_access");
	assert_int_equal(rig_map(rig, MIB, two, PAGE, READ), 0);
	mprotect(two, PAGE, PROT_NONE);
	assert_gives(rig, rig_map(rig, 2 * MIB, two, PAGE, READ), EFAULT, "memory_access");
}

/* vfio_iommu_type1_unmap_dma() and vfio_dma_do_unmap(), top to bottom. */
static void unmap_refusals(void **state)
{
	static const struct {
		uint32_t argsz, flags;
		uint64_t iova, size;
		int error;
		const char *reason;
	} rows[] = {
		{23, 0, 0, PAGE, EINVAL, "argsz"},
		{24, 8, 0, PAGE, EINVAL, "flags"},
		{24, VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP | VFIO_DMA_UNMAP_FLAG_ALL, 0, 0, EINVAL,
			"flags_together"},
		{47, VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP, 0, PAGE, EINVAL, "argsz"},
		{24, 0, 0x800, PAGE, EINVAL, "misaligned"},
		{24, VFIO_DMA_UNMAP_FLAG_ALL, 0, PAGE, EINVAL, "unmap_all"},
		{24, VFIO_DMA_UNMAP_FLAG_ALL, PAGE, 0, EINVAL, "unmap_all"},
		{24, 0, 0, 0, EINVAL, "length_zero"},
		{24, 0, 0, 0x800, EINVAL, "misaligned"},
		{24, 0, ~0ULL << 12, 2 * PAGE, EOVERFLOW, "wrap"},
		{24, VFIO_DMA_UNMAP_FLAG_VADDR, 0x800, PAGE, EINVAL, "misaligned"},
		{24, VFIO_DMA_UNMAP_FLAG_VADDR, MIB + PAGE, PAGE, EINVAL, "cut"},
		{24, VFIO_DMA_UNMAP_FLAG_VADDR | VFIO_DMA_UNMAP_FLAG_ALL, MIB, 0, EINVAL,
			"unmap_all"},
		{24, 0, MIB, PAGE, EINVAL, "cut"},
		{24, 0, MIB + PAGE, 8 * PAGE, EINVAL, "cut"},
		{24, 0, 0, MIB + PAGE, EINVAL, "cut"},
	};
	struct rig *rig = *state;

	assert_int_equal(rig_map(rig, MIB, memory, 2 * PAGE, RW), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct vfio_iommu_type1_dma_unmap unmap = {
			.argsz = rows[i].argsz,
			.flags = rows[i].flags,
			.iova = rows[i].iova,
			.size = rows[i].size,
		};

		assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_UNMAP_DMA, &unmap),
			rows[i].error, rows[i].reason);
		/* A failed unmap leaves the size as it was passed. */
		assert_int_equal(unmap.size, rows[i].size);
	}
	assert_gives(
		rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_UNMAP_DMA, NULL), EFAULT, "pointer");
	assert_int_equal(rig_counters(rig).areas, 1);
}

/* v2: several mappings and holes at once are fine; nothing is 0 with size 0. */
static void unmap_v2(void **state)
{
	struct rig *rig = *state;
	uint64_t size = 8 * MIB;

	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(size, 0);
	assert_int_equal(rig_map(rig, MIB, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 3 * MIB, memory, 2 * PAGE, RW), 0);
	size = 8 * MIB;
	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(size, 3 * PAGE);
	assert_int_equal(rig_map(rig, (1ULL << 48) - PAGE, memory, PAGE, RW), 0);
	size = 0;
	assert_int_equal(rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(size, PAGE);
	assert_int_equal(rig_counters(rig).areas, 0);
}

/* v1: a range inside a mapping removes nothing; its first page removes all of it. */
static void unmap_v1(void **state)
{
	struct rig *rig = *state;
	uint64_t size = PAGE;

	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	assert_int_equal(rig_unmap(rig, MIB + PAGE, &size, 0), 0);
	assert_int_equal(size, 0);
	size = PAGE;
	assert_int_equal(rig_unmap(rig, MIB, &size, 0), 0);
	assert_int_equal(size, 4 * PAGE);
	/* Starting before a mapping and ending inside it removes it whole, too. */
	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	size = MIB + PAGE;
	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(size, 4 * PAGE);
}

/* As a real Linux 7.3 with intel-iommu gives it. */
static void info_whole(void **state)
{
	struct rig *rig = *state;
	struct {
		struct vfio_iommu_type1_info info;
		struct vfio_iommu_type1_info_cap_migration migration;
		struct vfio_iommu_type1_info_dma_avail avail;
		uint32_t pad;
		struct vfio_info_cap_header ranges;
		uint32_t nr_iovas, reserved;
		struct vfio_iova_range range[2];
	} user = {.info.argsz = sizeof(user)};

	assert_int_equal(sizeof(user), 120);
	assert_int_equal(rig_map(rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &user), 0);
	assert_int_equal(user.info.argsz, 120);
	assert_int_equal(user.info.flags, VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS);
	assert_int_equal(user.info.iova_pgsizes, 0x40201000);
	assert_int_equal(user.info.cap_offset, 24);
	assert_int_equal(user.migration.header.id, 2);
	assert_int_equal(user.migration.header.next, 56);
	assert_int_equal(user.migration.pgsize_bitmap, PAGE);
	assert_int_equal(user.migration.max_dirty_bitmap_size, 1ULL << 28);
	assert_int_equal(user.avail.header.id, 3);
	assert_int_equal(user.avail.header.next, 72);
	assert_int_equal(user.avail.avail, 65534);
	assert_int_equal(user.ranges.id, 1);
	assert_int_equal(user.ranges.next, 0);
	assert_int_equal(user.nr_iovas, 2);
	assert_int_equal(user.range[0].start, 0);
	assert_int_equal(user.range[0].end, 0xfedfffff);
	assert_int_equal(user.range[1].start, 0xfef00000);
	assert_int_equal(user.range[1].end, 0xffffffffffff);
}

/* Too small: the size that is needed, no chain, and no error. */
static void info_small(void **state)
{
	struct rig *rig = *state;
	struct vfio_iommu_type1_info info = {.argsz = 15};

	assert_gives(
		rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &info), EINVAL, "argsz");
	info.argsz = sizeof(info);
	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &info), 0);
	assert_int_equal(info.argsz, 120);
	assert_int_equal(info.cap_offset, 0);
}

/* What type1 v1 knows no answer to. */
static void v1_unknown(void **state)
{
	struct rig *rig = *state;

	assert_gives(
		rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_ENABLE, NULL), ENOTTY, "request");
}

/* v1 with a range that starts inside a mapping leaves even those that lie wholly in it. */
static void unmap_v1_several(void **state)
{
	struct rig *rig = *state;
	uint64_t size = 4 * MIB;

	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 2 * MIB, memory, 4 * PAGE, RW), 0);
	assert_int_equal(rig_unmap(rig, MIB + PAGE, &size, 0), 0);
	assert_int_equal(size, 0);
	size = 2 * MIB + PAGE;
	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(size, 8 * PAGE);
	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	size = 0;
	assert_int_equal(rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(size, 4 * PAGE);
}

/* A range that ends with the last byte of 64 bits is an ordinary one. */
static void unmap_to_the_top(void **state)
{
	struct rig *rig = *state;
	uint64_t size = 0xffffffff01100000;

	assert_int_equal(rig_map(rig, 0xfef00000, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, 0xfef08000, memory, PAGE, RW), 0);
	assert_int_equal(rig_unmap(rig, 0xfef00000, &size, 0), 0);
	assert_int_equal(size, 2 * PAGE);
}

/* disable_hugepages: one page a look-up, and no large leaf. */
static void without_huge_pages(void **state)
{
	struct dmamap_machine machine;
	struct dmamap_counters counters;
	struct rig rig;
	char *bar;

	(void)state;
	dmamap_machine_default(&machine);
	machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
	machine.disable_hugepages = true;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	memory = rig_memory(2 * MIB, false);
	assert_int_equal(dmamap_soft_declare(rig.system, memory, 2 * MIB, -1, 21), 0);
	assert_int_equal(rig_map(&rig, 0, memory, 2 * MIB, RW), 0);
	bar = rig_bar(&rig, 0, 16 * MIB, 0);
	assert_int_equal(rig_map(&rig, 16 * MIB, bar, 2 * MIB, RW), 0);
	counters = rig_counters(&rig);
	assert_int_equal(counters.lookups, 1024);
	assert_int_equal(counters.leaves[12], 1024);
	assert_int_equal(counters.leaves[21], 0);
	rig_stop(&rig);
}

/* Linux 6.12: overflows are -EINVAL, and a range that ends with the last byte meets nothing. */
static void as_6_12(void **state)
{
	struct dmamap_machine machine;
	struct rig rig;
	uint64_t size = 0xffffffff01100000;

	(void)state;
	memory = rig_memory(MIB, true);
	dmamap_machine_default(&machine);
	machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
	machine.as_kernel = DMAMAP_KERNEL(6, 12);
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_gives(&rig, rig_map(&rig, ~0ULL << 12, memory, 2 * PAGE, RW), EINVAL, "wrap");
	assert_gives(
		&rig, rig_map(&rig, 0, (void *)~(uintptr_t)4095, 2 * PAGE, RW), EINVAL, "wrap");
	assert_int_equal(rig_map(&rig, 0xfef00000, memory, 2 * PAGE, RW), 0);
	assert_int_equal(rig_unmap(&rig, 0xfef00000, &size, 0), 0);
	assert_int_equal(size, 0);
	size = 0xffffffff01100000 - PAGE;
	assert_gives(&rig, rig_unmap(&rig, 0xfef01000, &size, 0), EINVAL, "cut");
	size = 2 * PAGE;
	assert_gives(&rig, rig_unmap(&rig, ~0ULL << 12, &size, 0), EINVAL, "wrap");
	assert_gives(
		&rig, rig_map(&rig, 0xfef00000, NULL, 0xffffffff01100000, RW), EINVAL, "aperture");
	size = 0;
	assert_int_equal(rig_unmap(&rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(size, 2 * PAGE);
	rig_stop(&rig);
}

/* Linux 6.12 has type 6, which an SMMU takes and others refuse. */
static void nesting_in_6_12(void **state)
{
	struct dmamap_machine_iommu iommu;
	struct dmamap_machine machine;
	struct rig rig;

	(void)state;
	dmamap_machine_default(&machine);
	iommu = machine.iommus[0];
	machine.iommus = &iommu;
	machine.as_kernel = DMAMAP_KERNEL(6, 12);
	rig_start(&rig, &machine);
	rig.container = rig_open(&rig, "/dev/vfio/vfio");
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &rig.container), 0);
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_CHECK_EXTENSION, (void *)6UL), 1);
	assert_gives(&rig, rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)6UL), EINVAL,
		"group_nesting");
	rig_stop(&rig);
	iommu.model = DMAMAP_IOMMU_SMMUV3;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", 6);
	rig_stop(&rig);
}

/* The sentences name what decided. */
static void sentences(void **state)
{
	struct rig *rig = *state;

	rig_map(rig, 0xfedff000, memory, 2 * PAGE, RW);
	assert_string_equal(rig_sentence(rig),
		"iova 0xfedff000-0xfee00fff overlaps reserved 0xfee00000-0xfeefffff "
		"(MSI window of intel-iommu)");
	rig_map(rig, 1ULL << 48, memory, PAGE, RW);
	assert_string_equal(rig_sentence(rig),
		"iova 0x1000000000000-0x1000000000fff ends past 0xffffffffffff, the last of the "
		"48-bit aperture");
}

/* Structures that are not on the stack are safe to get wrong, too. */
static void pointers(void **state)
{
	struct rig *rig = *state;
	struct vfio_iommu_type1_dma_map *map =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vfio_iommu_type1_dma_unmap *unmap = (void *)((char *)map + PAGE);

	munmap(unmap, PAGE);
	unmap = (void *)((char *)unmap - 16);
	assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_UNMAP_DMA, unmap), EFAULT,
		"pointer");
	*map = (struct vfio_iommu_type1_dma_map){32, RW, (uintptr_t)memory, 0, PAGE};
	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_IOMMU_MAP_DMA, map), 0);
	munmap(map, PAGE);
	assert_gives(
		rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_MAP_DMA, map), EFAULT, "pointer");
}

/* Bytes that a device writes land in memory, and what is unmapped is out of its reach. */
static void device_access(void **state)
{
	struct rig *rig = *state;
	struct dmamap_reason why = {0};
	struct dmamap_access *access;
	char bytes[16] = "written by DMA";
	uint64_t size = 4 * PAGE;

	assert_int_equal(rig_map(rig, GIB, memory, 4 * PAGE, RW), 0);
	assert_int_equal(dmamap_soft_access(rig->system, rig->device, &access), 0);
	assert_int_equal(dmamap_write(access, GIB + PAGE - 4, bytes, sizeof(bytes), &why), 0);
	assert_memory_equal(memory + PAGE - 4, bytes, sizeof(bytes));
	memcpy(memory + 3 * PAGE, "read by a DMA", 14);
	assert_int_equal(dmamap_read(access, GIB + 3 * PAGE, bytes, 14, &why), 0);
	assert_string_equal(bytes, "read by a DMA");
	assert_int_equal(rig_unmap(rig, GIB, &size, 0), 0);
	assert_int_equal(dmamap_read(access, GIB, bytes, 1, &why), -EFAULT);
	dmamap_access_destroy(access);
	assert_int_equal(dmamap_soft_access(rig->system, rig->container, &access), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(map_refusals, start_v2, stop),
		cmocka_unit_test_setup_teardown(map_address_wraps, start_v2, stop),
		cmocka_unit_test_setup_teardown(map_edges, start_v2, stop),
		cmocka_unit_test_setup_teardown(map_memory_faults, start_v2, stop),
		cmocka_unit_test_setup_teardown(unmap_refusals, start_v2, stop),
		cmocka_unit_test_setup_teardown(unmap_v2, start_v2, stop),
		cmocka_unit_test_setup_teardown(unmap_v1, start_v1, stop),
		cmocka_unit_test_setup_teardown(info_whole, start_v2, stop),
		cmocka_unit_test_setup_teardown(info_small, start_v2, stop),
		cmocka_unit_test_setup_teardown(v1_unknown, start_v1, stop),
		cmocka_unit_test_setup_teardown(unmap_v1_several, start_v1, stop),
		cmocka_unit_test_setup_teardown(unmap_to_the_top, start_v2, stop),
		cmocka_unit_test(without_huge_pages),
		cmocka_unit_test(as_6_12),
		cmocka_unit_test(nesting_in_6_12),
		cmocka_unit_test_setup_teardown(sentences, start_v2, stop),
		cmocka_unit_test_setup_teardown(pointers, start_v2, stop),
		cmocka_unit_test_setup_teardown(device_access, start_v2, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
