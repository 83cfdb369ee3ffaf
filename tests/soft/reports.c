/* SPDX-License-Identifier: MIT */
/*
 * Public reports reduced to calls: what programs ran into with the kernel or
 * with another implementation, and what the answer must be. The report is named
 * at each test.
 */
#include "tests/soft/rig.h"

#define V1 VFIO_TYPE1_IOMMU
#define V2 VFIO_TYPE1v2_IOMMU

/* Memory that need not be there: declared, so that the reports' own sizes can be used. */
static char *declared(struct rig *rig, uint64_t size)
{
	char *room = mmap(NULL, size + 4 * MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = (char *)(((uintptr_t)room + 2 * MIB - 1) & ~(2 * MIB - 1));

	assert_ptr_not_equal(room, MAP_FAILED);
	assert_int_equal(dmamap_soft_declare(rig->system, at, size, -1, 21), 0);
	return at;
}

static char *open_type1(struct rig *rig, unsigned long type, uint64_t size)
{
	rig_start(rig, NULL);
	rig_group(rig, "/dev/vfio/vfio", type);
	return declared(rig, size);
}

static char *open_ioas(struct rig *rig, const struct dmamap_machine *machine, uint64_t size)
{
	rig_start(rig, machine);
	rig_cdev(rig, true);
	return declared(rig, size);
}

/* spdk/spdk issue 1705: part of a v1 mapping is not unmapped, and says size 0. */
static void spdk_1705(void **state)
{
	struct rig rig;
	char *memory = open_type1(&rig, V1, 512 * MIB);
	uint64_t size = 0x400000;

	(void)state;
	assert_int_equal(rig_map(&rig, 0x200000200000, memory, 0x14200000, RW), 0);
	assert_int_equal(rig_unmap(&rig, 0x20000a400000, &size, 0), 0);
	assert_int_equal(size, 0);
	assert_gives(&rig, rig_map(&rig, 0x20000a400000, memory, 0x400000, RW), EEXIST, "overlap");
	rig_stop(&rig);
	memory = open_type1(&rig, V2, 512 * MIB);
	size = 0x400000;
	assert_int_equal(rig_map(&rig, 0x200000200000, memory, 0x14200000, RW), 0);
	assert_gives(&rig, rig_unmap(&rig, 0x20000a400000, &size, 0), EINVAL, "cut");
	assert_int_equal(rig_counters(&rig).areas, 1);
	rig_stop(&rig);
}

/* spdk 3193, 2075: unmapping nothing. */
static void spdk_3193(void **state)
{
	(void)state;
	for (unsigned long type = V1; type <= V2; type += V2 - V1) {
		uint64_t size = 2 * MIB;
		struct rig rig;

		open_type1(&rig, type, 2 * MIB);
		assert_int_equal(rig_unmap(&rig, 2 * MIB, &size, 0), 0);
		assert_int_equal(size, 0);
		rig_stop(&rig);
	}
}

static uint32_t entries_left(struct rig *rig)
{
	struct {
		struct vfio_iommu_type1_info info;
		char migration[32];
		struct vfio_iommu_type1_info_dma_avail avail;
		char rest[52];
	} user = {.info.argsz = sizeof(user)};

	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &user), 0);
	assert_int_equal(user.avail.header.id, VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL);
	return user.avail.avail;
}

/* spdk 915, 1142; kata 11721: the entry limit, which an IOAS does not have. */
static void kata_11721(void **state)
{
	struct rig rig;
	char *memory = open_type1(&rig, V2, 2 * MIB);
	uint64_t size = PAGE;

	(void)state;
	for (uint64_t i = 0; i < 65535; i++)
		assert_int_equal(rig_map(&rig, i * 2 * PAGE, memory, PAGE, RW), 0);
	assert_int_equal(entries_left(&rig), 0);
	assert_gives(&rig, rig_map(&rig, GIB, memory, PAGE, RW), ENOSPC, "area_limit");
	assert_int_equal(rig_unmap(&rig, 0, &size, 0), 0);
	assert_int_equal(entries_left(&rig), 1);
	assert_int_equal(rig_map(&rig, GIB, memory, PAGE, RW), 0);
	rig_stop(&rig);
	memory = open_ioas(&rig, NULL, 2 * MIB);
	for (uint64_t i = 0; i < 65537; i++)
		assert_int_equal(rig_ioas_map(&rig, i * 2 * PAGE, memory, PAGE, RW), 0);
	rig_stop(&rig);
}

/* libevpl pull 86: MAP_DMA before SET_IOMMU. */
static void libevpl_86(void **state)
{
	char *memory = rig_memory(PAGE, true);
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig.container = rig_open(&rig, "/dev/vfio/vfio");
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &rig.container), 0);
	assert_gives(&rig, rig_map(&rig, 0, memory, PAGE, RW), EINVAL, "iommu_unset");
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)V2), 0);
	assert_int_equal(rig_map(&rig, 0, memory, PAGE, RW), 0);
	rig_stop(&rig);
}

/* cloud-hypervisor 6845, kata 10582: the same range twice. */
static void cloud_hypervisor_6845(void **state)
{
	struct rig rig;
	char *memory = open_type1(&rig, V2, GIB);

	(void)state;
	assert_int_equal(rig_map(&rig, 0x100000000, memory, GIB, RW), 0);
	assert_gives(&rig, rig_map(&rig, 0x100000000, memory, GIB, RW), EEXIST, "overlap");
	rig_stop(&rig);
}

/* cloud-hypervisor 8902, 8896: the hole that AMD keeps below 1 TiB. */
static void cloud_hypervisor_8902(void **state)
{
	const struct dmamap_machine_window hole = {0xfd00000000, 0xffffffffff, "HyperTransport"};
	struct dmamap_machine_iommu iommu;
	struct dmamap_machine machine;
	struct rig rig;
	char *memory;

	(void)state;
	dmamap_machine_default(&machine);
	iommu = machine.iommus[0];
	machine.iommus = &iommu;
	iommu.windows = &hole;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", V2);
	memory = declared(&rig, 2 * MIB);
	assert_int_equal(rig_map(&rig, 0xfcfffff000, memory, PAGE, RW), 0);
	assert_gives(&rig, rig_map(&rig, 0xfcffffe000, memory, PAGE * 4, RW), EEXIST, "overlap");
	assert_gives(&rig, rig_map(&rig, 0xfffffff000, memory, PAGE * 2, RW), EINVAL, "reserved");
	assert_non_null(strstr(rig_sentence(&rig), "HyperTransport"));
	rig_stop(&rig);
	memory = open_ioas(&rig, &machine, 2 * MIB);
	assert_gives(
		&rig, rig_ioas_map(&rig, 0xfcfffff000, memory, PAGE * 2, RW), EINVAL, "reserved");
	assert_int_equal(rig_ioas_map(&rig, 0xfcfffff000, memory, PAGE, RW), 0);
	rig_stop(&rig);
}

/* unvme issue 4; cloud-hypervisor pull 7030; LookingGlass 1184: 39 bits of IOVA. */
static void aperture_39(void **state)
{
	static const struct {
		uint64_t iova, size;
		int error;
	} rows[] = {
		{0x8800000000, PAGE, EINVAL},
		{0x800000000, PAGE, 0},
		{(1ULL << 39) - PAGE, PAGE, 0},
		{1ULL << 39, PAGE, EINVAL},
		{(1ULL << 39) - 2 * PAGE, 4 * PAGE, EEXIST},
		{0x382000000000, 0x10000000, EINVAL},
	};
	struct dmamap_machine_iommu iommu;
	struct dmamap_machine machine;
	struct rig rig;
	char *memory;

	(void)state;
	dmamap_machine_default(&machine);
	iommu = machine.iommus[0];
	machine.iommus = &iommu;
	iommu.aperture_bits = 39;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", V2);
	memory = declared(&rig, 256 * MIB);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		assert_int_equal(
			rig_map(&rig, rows[i].iova, memory, rows[i].size, RW), -rows[i].error);
		if (rows[i].error == EINVAL)
			assert_non_null(strstr(rig_sentence(&rig), "aperture"));
	}
	rig_stop(&rig);
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", V2);
	memory = declared(&rig, 2 * MIB);
	assert_gives(
		&rig, rig_map(&rig, (1ULL << 39) - PAGE, memory, 2 * PAGE, RW), EINVAL, "aperture");
	rig_stop(&rig);
}

/* cloud-hypervisor 8895, kata 12289: a BAR's address on an IOAS, and in a container. */
static void cloud_hypervisor_8895(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_gives(&rig, rig_ioas_map(&rig, 0, rig_bar(&rig, 0, 16 * MIB, 0), 16 * MIB, RW),
		EFAULT, "bar_pinned");
	rig_stop(&rig);
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", V2);
	assert_int_equal(rig_map(&rig, 0, rig_bar(&rig, 0, 16 * MIB, 0), 16 * MIB, RW), 0);
	rig_stop(&rig);
}

/* cloud-hypervisor pull 8594: one unmap over two mappings and the hole between. */
static void cloud_hypervisor_8594(void **state)
{
	struct rig rig;
	char *memory = open_type1(&rig, V2, 2 * MIB);
	uint64_t size = 3 * MIB;

	(void)state;
	assert_int_equal(rig_map(&rig, 0, memory, MIB, RW), 0);
	assert_int_equal(rig_map(&rig, 2 * MIB, memory, MIB, RW), 0);
	assert_int_equal(rig_unmap(&rig, 0, &size, 0), 0);
	assert_int_equal(size, 2 * MIB);
	rig_stop(&rig);
}

/* libvfio-user 50, 463: overlap in part. */
static void libvfio_user_463(void **state)
{
	struct rig rig;
	char *memory = open_type1(&rig, V2, 2 * MIB);

	(void)state;
	assert_int_equal(rig_map(&rig, 0, memory, 0x2000, RW), 0);
	assert_gives(&rig, rig_map(&rig, 0x1000, memory, 0x2000, RW), EEXIST, "overlap");
	rig_stop(&rig);
}

/* libvfio-user 504 / pull 559: unmapping the middle. */
static void libvfio_user_504(void **state)
{
	struct rig rig;
	char *memory = open_type1(&rig, V2, 4 * MIB);
	uint64_t size = MIB;

	(void)state;
	assert_int_equal(rig_map(&rig, 0, memory, 4 * MIB, RW), 0);
	assert_gives(&rig, rig_unmap(&rig, MIB, &size, 0), EINVAL, "cut");
	rig_stop(&rig);
	memory = open_type1(&rig, V1, 4 * MIB);
	size = MIB;
	assert_int_equal(rig_map(&rig, 0, memory, 4 * MIB, RW), 0);
	assert_int_equal(rig_unmap(&rig, MIB, &size, 0), 0);
	assert_int_equal(size, 0);
	rig_stop(&rig);
	memory = open_ioas(&rig, NULL, 4 * MIB);
	size = MIB;
	assert_int_equal(rig_ioas_map(&rig, 0, memory, 4 * MIB, RW), 0);
	assert_gives(&rig, rig_ioas_unmap(&rig, MIB, &size), ENOENT, "cut");
	rig_stop(&rig);
}

/* libvfio-user 593: everything at once, the last page of 64 bits included. */
static void libvfio_user_593(void **state)
{
	struct dmamap_machine_iommu iommu;
	struct dmamap_machine machine;
	uint64_t size = 0;
	struct rig rig;
	char *memory;

	(void)state;
	dmamap_machine_default(&machine);
	iommu = machine.iommus[0];
	machine.iommus = &iommu;
	iommu.aperture_bits = 64;
	iommu.n_windows = 0;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", V2);
	memory = declared(&rig, 2 * MIB);
	assert_int_equal(rig_map(&rig, ~0ULL << 12, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(&rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(rig_unmap(&rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(size, 2 * PAGE);
	rig_stop(&rig);
	memory = open_ioas(&rig, &machine, 2 * MIB);
	assert_int_equal(rig_ioas_map(&rig, ~0ULL << 12, memory, PAGE, RW), 0);
	assert_int_equal(rig_ioas_map(&rig, 0, memory, PAGE, RW), 0);
	size = UINT64_MAX;
	assert_int_equal(rig_ioas_unmap(&rig, 0, &size), 0);
	assert_int_equal(size, 2 * PAGE);
	rig_stop(&rig);
}

/* kernel type1 history: an unmap that ends exactly at 2^64. */
static void ends_at_the_top(void **state)
{
	struct rig rig;
	char *memory = open_type1(&rig, V2, 2 * MIB);
	uint64_t size = 0xffffffff01100000;

	(void)state;
	assert_int_equal(rig_map(&rig, 0xfef00000, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(&rig, 0x100000000, memory, PAGE, RW), 0);
	assert_int_equal(rig_unmap(&rig, 0xfef00000, &size, 0), 0);
	assert_int_equal(size, 0x2000);
	rig_stop(&rig);
	memory = open_ioas(&rig, NULL, 2 * MIB);
	assert_int_equal(rig_ioas_map(&rig, 0xfef00000, memory, PAGE, RW), 0);
	assert_int_equal(rig_ioas_map(&rig, 0x100000000, memory, PAGE, RW), 0);
	size = 0xffffffff01100000;
	assert_int_equal(rig_ioas_unmap(&rig, 0xfef00000, &size), 0);
	assert_int_equal(size, 0x2000);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spdk_1705),
		cmocka_unit_test(spdk_3193),
		cmocka_unit_test(kata_11721),
		cmocka_unit_test(libevpl_86),
		cmocka_unit_test(cloud_hypervisor_6845),
		cmocka_unit_test(cloud_hypervisor_8902),
		cmocka_unit_test(aperture_39),
		cmocka_unit_test(cloud_hypervisor_8895),
		cmocka_unit_test(cloud_hypervisor_8594),
		cmocka_unit_test(libvfio_user_463),
		cmocka_unit_test(libvfio_user_504),
		cmocka_unit_test(libvfio_user_593),
		cmocka_unit_test(ends_at_the_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
