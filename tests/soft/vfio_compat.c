/* SPDX-License-Identifier: MIT */
/*
 * VFIO's calls on an IOMMUFD, where they differ from type1. Source:
 * drivers/iommu/iommufd/vfio_compat.c.
 */
#include "tests/soft/rig.h"

static char *memory;

static int start(void **state, unsigned long type)
{
	static struct rig rig;

	memory = rig_memory(4 * MIB, true);
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/iommu", type);
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

static void map_refusals(void **state)
{
	static const struct {
		uint32_t argsz, flags;
		uint64_t va_offset, iova, size;
		int error;
		const char *reason;
	} rows[] = {
		{31, RW, 0, 0, PAGE, EINVAL, "argsz"},
		{32, VFIO_DMA_MAP_FLAG_VADDR, 0, 0, PAGE, EINVAL, "flags"},
		{32, RW, 0, 0, 0, EINVAL, "length_zero"},
		{32, RW, 0, ~0ULL << 12, 2 * PAGE, EOVERFLOW, "wrap"},
		{32, RW, 0, 0x800, PAGE, EINVAL, "misaligned"},
		{32, RW, 0x800, 0, PAGE, EINVAL, "misaligned"},
		{32, RW, 0, 0xfedff000, 2 * PAGE, EINVAL, "reserved"},
		{32, RW, 0, MIB, PAGE, EEXIST, "overlap"},
		/* IOMMUFD lets no access pass, and the page table does not. */
		{32, 0, 0, MIB, PAGE, EEXIST, "overlap"},
		{32, 0, 0, 0, PAGE, EINVAL, "no_access"},
	};
	struct rig *rig = *state;

	assert_int_equal(rig_map(rig, MIB, memory, PAGE, READ), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct vfio_iommu_type1_dma_map map = {rows[i].argsz, rows[i].flags,
			(uintptr_t)memory + rows[i].va_offset, rows[i].iova, rows[i].size};

		assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_MAP_DMA, &map),
			rows[i].error, rows[i].reason);
	}
}

/* iommufd_vfio_map_dma() asks for no access: nobody minds until a page table is filled. */
static void no_access(void **state)
{
	struct rig *rig = *state;
	uint64_t size = PAGE;

	rig_close(rig, &rig->device);
	assert_int_equal(rig_map(rig, 0, memory, PAGE, 0), 0);
	assert_int_equal(rig_map(rig, PAGE, NULL, PAGE, 0), 0);
	/* A page that is not there is met first, where it comes first. */
	rig->device = rig_ioctl(rig, rig->group, VFIO_GROUP_GET_DEVICE_FD, "0000:00:03.0");
	assert_int_equal(rig->device, -EINVAL);
	assert_string_equal(rig_reason(rig), "no_access");
	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	rig->device = rig_ioctl(rig, rig->group, VFIO_GROUP_GET_DEVICE_FD, "0000:00:03.0");
	assert_int_equal(rig->device, -EFAULT);
	rig->device = -1;
}

/* Nothing mapped is 0 with size 0; a cut is ENOENT, with what went before it as the size. */
static void unmap_v2(void **state)
{
	struct rig *rig = *state;
	uint64_t size = MIB;

	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(size, 0);
	assert_gives(rig, rig_unmap(rig, 0, &size, 0), EINVAL, "length_zero");
	size = PAGE;
	assert_gives(rig, rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), EINVAL, "unmap_all");
	assert_gives(rig, rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_VADDR), EINVAL, "flags");
	assert_int_equal(size, PAGE);
	assert_int_equal(rig_map(rig, 0, memory, 2 * PAGE, RW), 0);
	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	size = MIB + PAGE;
	assert_gives(rig, rig_unmap(rig, 0, &size, 0), ENOENT, "cut");
	assert_int_equal(size, 2 * PAGE);
	size = ~0ULL << 12;
	assert_gives(rig, rig_unmap(rig, 8 * MIB, &size, 0), EOVERFLOW, "wrap");
	assert_int_equal(size, 0);
	assert_int_equal(rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(size, 4 * PAGE);
}

/* TYPE1 has small pages only, and cuts a mapping where an unmap wants it cut. */
static void unmap_v1(void **state)
{
	struct rig *rig = *state;
	struct dmamap_access *access;
	uint64_t size = MIB;
	char byte;

	assert_int_equal(dmamap_soft_declare(rig->system, memory, 2 * MIB, -1, 21), 0);
	assert_int_equal(rig_map(rig, 2 * MIB, memory, 2 * MIB, RW), 0);
	assert_int_equal(rig_counters(rig).leaves[12], 512);
	/* The middle goes, both sides stay mapped as they were. */
	assert_int_equal(rig_unmap(rig, 2 * MIB + 64 * KIB, &size, 0), 0);
	assert_int_equal(size, MIB);
	assert_int_equal(rig_counters(rig).areas, 2);
	assert_int_equal(rig_counters(rig).leaves[12], 512);
	memory[64 * KIB - 1] = 'a';
	memory[64 * KIB + MIB] = 'b';
	assert_int_equal(dmamap_soft_access(rig->system, rig->device, &access), 0);
	assert_int_equal(dmamap_read(access, 2 * MIB + 64 * KIB - 1, &byte, 1, NULL), 0);
	assert_int_equal(byte, 'a');
	assert_int_equal(dmamap_read(access, 2 * MIB + 64 * KIB, &byte, 1, NULL), -EFAULT);
	assert_int_equal(dmamap_read(access, 3 * MIB + 64 * KIB, &byte, 1, NULL), 0);
	assert_int_equal(byte, 'b');
	dmamap_access_destroy(access);
	/* Not within a page: nothing is cut, and the size stays as it was passed. */
	size = 0x800;
	assert_gives(rig, rig_unmap(rig, 2 * MIB, &size, 0), EINVAL, "misaligned");
	assert_int_equal(size, 0x800);
	assert_int_equal(rig_counters(rig).areas, 2);
	size = 4 * MIB;
	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(size, MIB);
}

/* Two capabilities, entries without limit first; what fits of them is written. */
static void info(void **state)
{
	struct {
		struct vfio_iommu_type1_info info;
		struct vfio_iommu_type1_info_dma_avail avail;
		uint32_t pad;
		struct vfio_info_cap_header ranges;
		uint32_t nr_iovas, reserved;
		struct vfio_iova_range range[2];
	} user = {.info.argsz = sizeof(user)};
	struct rig *rig = *state;

	assert_int_equal(sizeof(user), 88);
	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &user), 0);
	assert_int_equal(user.info.argsz, 88);
	assert_int_equal(user.info.cap_offset, 24);
	assert_int_equal(user.info.iova_pgsizes, 0x40201000);
	assert_int_equal(user.avail.header.id, VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL);
	assert_int_equal(user.avail.header.next, 40);
	assert_int_equal(user.avail.avail, UINT32_MAX);
	assert_int_equal(user.ranges.id, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE);
	assert_int_equal(user.ranges.next, 0);
	assert_int_equal(user.nr_iovas, 2);
	assert_int_equal(user.range[1].end, 0xffffffffffff);
	memset(&user, 0, sizeof(user));
	user.info.argsz = 44;
	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &user), 0);
	assert_int_equal(user.info.argsz, 88);
	assert_int_equal(user.info.cap_offset, 0);
	assert_int_equal(user.avail.avail, UINT32_MAX);
	assert_int_equal(user.nr_iovas, 0);
	user.info.argsz = 15;
	assert_gives(
		rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &user), EINVAL, "argsz");
}

static void others(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_GET_API_VERSION, NULL), 0);
	assert_gives(rig, rig_ioctl(rig, rig->container, VFIO_IOMMU_DIRTY_PAGES, NULL), ENOTTY,
		"request");
	/* The group may be given back while a device is open; the device keeps the IOMMUFD. */
	assert_int_equal(rig_ioctl(rig, rig->group, VFIO_GROUP_UNSET_CONTAINER, NULL), 0);
	assert_int_equal(rig_map(rig, 0, memory, PAGE, RW), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(map_refusals, start_v2, stop),
		cmocka_unit_test_setup_teardown(no_access, start_v2, stop),
		cmocka_unit_test_setup_teardown(unmap_v2, start_v2, stop),
		cmocka_unit_test_setup_teardown(unmap_v1, start_v1, stop),
		cmocka_unit_test_setup_teardown(info, start_v2, stop),
		cmocka_unit_test_setup_teardown(others, start_v2, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
