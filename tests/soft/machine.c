/* SPDX-License-Identifier: MIT */
/* Machines that can be and cannot be, and what other shapes change. */
#include "tests/soft/rig.h"

static struct dmamap_machine machine;
static struct dmamap_machine_device device;
static struct dmamap_machine_iommu iommu;
static struct dmamap_machine_window window;

static int start(void **state)
{
	(void)state;
	dmamap_machine_default(&machine);
	machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
	device = machine.devices[0];
	machine.devices = &device;
	iommu = machine.iommus[0];
	window = iommu.windows[0];
	iommu.windows = &window;
	machine.iommus = &iommu;
	return 0;
}

static void cannot_be(const char *what)
{
	struct dmamap_system *system = NULL;
	struct dmamap_reason why = {0};

	assert_int_equal(dmamap_system_soft(&machine, &system, &why), -EINVAL);
	assert_null(system);
	assert_string_equal(why.kind->name, "machine");
	assert_string_equal(why.label, what);
	start(NULL);
}

static void refusals(void **state)
{
	struct dmamap_machine_device twice[2];

	(void)state;
	machine.page_shift = 13;
	cannot_be("page shift");
	iommu.aperture_bits = 12;
	cannot_be("aperture width");
	iommu.aperture_bits = 65;
	cannot_be("aperture width");
	iommu.leaf_sizes = 1ULL << 21;
	cannot_be("bitmap of page sizes");
	machine.pfnmap_stride = 7;
	cannot_be("pfnmap stride");
	window.last = window.first - 1;
	cannot_be("reserved window");
	iommu.model = 9;
	cannot_be("IOMMU model");
	machine.n_iommus = 0;
	cannot_be("number of IOMMUs");
	device.iommu = 1;
	cannot_be("device's IOMMU");
	strcpy(device.bdf, "00:03.0");
	cannot_be("PCI address");
	device.class_code = 0x1000000;
	cannot_be("class code");
	device.bar_size[0] = 3 * MIB;
	cannot_be("BAR size");
	device.bar_address[0] = MIB;
	cannot_be("BAR address");
	device.bar_size[3] = MIB;
	device.bar_address[3] = MIB;
	cannot_be("BAR after a 64-bit one");
	twice[0] = twice[1] = device;
	machine.devices = twice;
	machine.n_devices = 2;
	cannot_be("repeated PCI address");
	twice[0] = twice[1] = device;
	strcpy(twice[1].bdf, "0000:00:04.0");
	machine.devices = twice;
	machine.n_devices = 2;
	cannot_be("repeated cdev number");
}

/* Windows of another kind of IOMMU, and an entry limit: cloud-hypervisor 8902, CVE-2019-3882. */
static void limits(void **state)
{
	char *memory = rig_memory(4 * PAGE, true);
	struct rig rig;

	(void)state;
	machine.dma_entry_limit = 3;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_map(&rig, i * MIB, memory, PAGE, RW), 0);
	assert_gives(&rig, rig_map(&rig, 3 * MIB, memory, PAGE, RW), ENOSPC, "area_limit");
	/* Overlap is seen before the limit, and the limit before what is reserved. */
	assert_gives(&rig, rig_map(&rig, MIB, memory, PAGE, RW), EEXIST, "overlap");
	assert_gives(&rig, rig_map(&rig, 0xfee00000, memory, PAGE, RW), ENOSPC, "area_limit");
	rig_stop(&rig);
	machine.dma_entry_limit = 0;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_gives(&rig, rig_map(&rig, 0, memory, PAGE, RW), ENOSPC, "area_limit");
	rig_stop(&rig);
}

/* 64 KiB pages: pages are the unit everywhere, and one look-up takes 8192 of them. */
static void large_pages(void **state)
{
	struct dmamap_counters counters;
	char *memory = rig_memory(64 * MIB, true);
	struct vfio_iommu_type1_info info = {.argsz = sizeof(info)};
	struct rig rig;

	(void)state;
	machine.page_shift = 16;
	iommu.leaf_sizes = 1ULL << 12 | 1ULL << 16 | 1ULL << 29;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_gives(&rig, rig_map(&rig, PAGE, memory, 64 * KIB, RW), EINVAL, "misaligned");
	assert_int_equal(rig_map(&rig, 0, memory, 64 * MIB, RW), 0);
	counters = rig_counters(&rig);
	assert_int_equal(counters.lookups, 1);
	assert_int_equal(counters.leaves[16], 1024);
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_IOMMU_GET_INFO, &info), 0);
	assert_int_equal(info.iova_pgsizes, 1ULL << 16 | 1ULL << 29);
	rig_stop(&rig);
}

/* A BAR smaller than a page: mapped as a page where nothing can share it. */
static void small_bar(void **state)
{
	struct vfio_region_info info = {.argsz = sizeof(info), .index = 1};
	struct rig rig;
	void *va;

	(void)state;
	device.bar_size[1] = 256;
	device.bar_address[1] = 0xd0000000;
	rig_start(&rig, &machine);
	rig_cdev(&rig, true);
	assert_int_equal(rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_REGION_INFO, &info), 0);
	assert_int_equal(info.size, 256);
	assert_int_equal(info.flags, 7);
	assert_int_equal(rig.system->ops->mmap(rig.system, NULL, PAGE, PROT_READ, MAP_SHARED,
				 rig.device, 1ULL << 40, &va),
		0);
	assert_int_equal(rig.system->ops->munmap(rig.system, va, 1), 0);
	rig_stop(&rig);
	device.bar_address[1] = 0xd0000100;
	rig_start(&rig, &machine);
	rig_cdev(&rig, true);
	assert_int_equal(rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_REGION_INFO, &info), 0);
	assert_int_equal(info.flags, 3);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(refusals, start),
		cmocka_unit_test_setup(limits, start),
		cmocka_unit_test_setup(large_pages, start),
		cmocka_unit_test_setup(small_bar, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
