/* SPDX-License-Identifier: MIT */
/* The soft system's sysfs says all that a machine is: what is found is what was put in. */
#include "tests/soft/rig.h"

static const char *printed(const struct dmamap_machine *machine)
{
	static char text[2][16384];
	static unsigned turn;
	char *to = text[turn++ % 2];

	dmamap_machine_print(machine, '\n', to, sizeof(text[0]));
	return to;
}

static void same(void **state)
{
	static const char *const texts[] = {
		"",
		"machine=q35-intel48",
		"machine=q35-intel39,as-kernel=6.12",
		"machine=q35-amd",
		"machine=q35-virtio",
		"machine=virt-smmuv3",
		"page=16K",
		"page=64K,iommu=smmuv3,aperture=48",
		"iommu=intel,aperture=57,leaves=4K/2M,coherent=off,dirty=on",
		"iommu=intel,aperture=39,leaves=4K",
		"iommu=amd,aperture=48,leaves=4K-256G/1T-64T,dirty=on,iommu=intel,aperture=45,"
		"iommu=virtio,iommu=smmuv3,"
		"device=00:04.0,iommu=0,device=00:05.0,iommu=1,device=00:06.0,iommu=2,"
		"device=00:07.0,iommu=3",
		"no-device",
		"device=00:03.0,group=7,cdev=3,device=00:03.1,group=7,cdev=1,device=01:00.0,cdev=0",
		"huge-pages=off,entry-limit=3",
		"unsafe-interrupts=off,isolated-msi=on",
		"reserve=0x1000-0x1fff:direct,no-reserve,reserve=0x2000-0x2fff:reserved,"
		"reserve=0xfffffffffffff000-0xffffffffffffffff:msi",
		"device=00:04.0,bar0=1M:64:prefetch,bar2=1M:prefetch,bar4=64G:64,rom=64K,express="
		"on,"
		"intx=on,msi=32,msix=2048,msix-bar=2,msix-offset=0x8000,reset=off",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(texts); i++) {
		struct dmamap_machine machine, found;
		struct dmamap_reason why = {0};
		struct rig rig;
		uint32_t assumed = 0;
		unsigned descriptors;

		assert_int_equal(dmamap_machine_parse(NULL, texts[i], &machine, &why), 0);
		rig_start(&rig, &machine);
		descriptors = rig_descriptors();
		assert_int_equal(dmamap_machine_detect(rig.system, &found, &assumed, &why), 0);
		assert_int_equal(rig_descriptors(), descriptors);
		assert_string_equal(printed(&machine), printed(&found));
		dmamap_machine_free(&found);
		dmamap_machine_free(&machine);
		rig_stop(&rig);
	}
}

/* A system of what was found in one answers as that one does: a copy of a copy. */
static void again(void **state)
{
	struct dmamap_machine first, second;
	struct dmamap_reason why = {0};
	struct rig rig;

	(void)state;
	assert_int_equal(dmamap_machine_parse(NULL,
				 "machine=q35-amd,no-device,iommu=amd,"
				 "device=00:03.0,group=7,cdev=0",
				 &first, &why),
		0);
	rig_start(&rig, &first);
	dmamap_machine_free(&first);
	assert_int_equal(dmamap_machine_detect(rig.system, &second, NULL, &why), 0);
	rig_stop(&rig);
	rig_start(&rig, &second);
	dmamap_machine_free(&second);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_int_equal(rig_map(&rig, 0xfcfffff000, rig_memory(2 * PAGE, true), PAGE, RW), 0);
	assert_gives(&rig, rig_map(&rig, 0xfd00000000, rig_memory(2 * PAGE, true), PAGE, RW),
		EINVAL, "reserved");
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same),
		cmocka_unit_test(again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
