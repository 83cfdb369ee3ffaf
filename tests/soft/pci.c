/* SPDX-License-Identifier: MIT */
/*
 * What a function tells of itself: VFIO_DEVICE_GET_INFO and
 * VFIO_DEVICE_GET_REGION_INFO (drivers/vfio/pci/vfio_pci_core.c,
 * vfio_get_region_info() in drivers/vfio/vfio_main.c).
 */
#include "tests/soft/function.h"

/* vfio_pci_ioctl_get_info(): what is written is as long as argsz says, up to 24 bytes. */
static void info(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct {
		struct vfio_device_info info;
		uint32_t after;
	} user;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	memset(&user, 0xaa, sizeof(user));
	user.info.argsz = 15;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_GET_INFO, &user), EINVAL, "argsz");
	user.info.argsz = 16;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_INFO, &user), 0);
	assert_int_equal(user.info.flags, VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
	assert_int_equal(user.info.num_regions, 9);
	assert_int_equal(user.info.num_irqs, 5);
	assert_int_equal(user.info.cap_offset, 0xaaaaaaaa);
	user.info.argsz = 18;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_INFO, &user), 0);
	assert_int_equal(user.info.cap_offset, 0xaaaa0000);
	user.info.argsz = 1000;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_INFO, &user), 0);
	assert_int_equal(user.info.argsz, 1000);
	assert_int_equal(user.info.cap_offset, 0);
	assert_int_equal(user.info.pad, 0);
	assert_int_equal(user.after, 0xaaaaaaaa);
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_GET_INFO, NULL), EFAULT, "pointer");
	assert_gives(&rig, device_call(&rig, 0x4242, NULL), ENOTTY, "request");
	rig_stop(&rig);

	function.reset = false;
	function_start(&rig, &function);
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_INFO, &user), 0);
	assert_int_equal(user.info.flags, VFIO_DEVICE_FLAGS_PCI);
	rig_stop(&rig);
}

/* Each region; ports and what is smaller than a page, and not at its start, cannot be mapped. */
static void regions(void **state)
{
	static const struct {
		uint32_t index, flags;
		uint64_t size;
	} rows[] = {
		{0, 7, 64 * KIB},
		{1, 3, 64},
		{2, 7, 4 * MIB},
		{3, 0, 0},
		{4, 3, 256},
		{5, 7, 512},
		{VFIO_PCI_ROM_REGION_INDEX, 1, 256 * KIB},
		{VFIO_PCI_CONFIG_REGION_INDEX, 3, 4096},
	};
	struct dmamap_machine_device function = function_default();
	struct vfio_region_info info;
	struct rig rig;

	(void)state;
	function.msix = 0;
	function.bar_size[4] = 256;
	function.bar_address[4] = 0xc0100100;
	function.bar_size[5] = 512;
	function.bar_address[5] = 0xc0200000;
	function.rom_size = 256 * KIB;
	function.express = true;
	function_start(&rig, &function);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		info = (struct vfio_region_info){
			.argsz = 32, .index = rows[i].index, .cap_offset = 77};
		assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &info), 0);
		assert_int_equal(info.size, rows[i].size);
		assert_int_equal(info.flags, rows[i].flags);
		assert_int_equal(info.offset, REGION(rows[i].index));
		/* Without capabilities it comes back as it was. */
		assert_int_equal(info.cap_offset, 77);
		assert_int_equal(info.argsz, 32);
	}
	info.argsz = 31;
	info.index = 9;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &info), EINVAL, "argsz");
	info.argsz = 32;
	for (info.index = VFIO_PCI_VGA_REGION_INDEX; info.index < 12; info.index++)
		assert_gives(&rig, device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &info), EINVAL,
			"region");
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, nowhere()), EFAULT, "pointer");
	rig_stop(&rig);

	/* Another BAR in the same page: it is not this function's to map. */
	function.bar_size[4] = 512;
	function.bar_address[4] = 0xc0200200;
	function_start(&rig, &function);
	info = (struct vfio_region_info){.argsz = 32, .index = 5};
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &info), 0);
	assert_int_equal(info.flags, 3);
	rig_stop(&rig);
}

/* vfio_info_add_capability(): the MSI-X table's BAR may be mapped with it. */
static void msix_mappable(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct {
		struct vfio_region_info info;
		struct vfio_info_cap_header header;
	} user;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	memset(&user, 0xaa, sizeof(user));
	user.info.argsz = 39;
	user.info.index = 0;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &user), 0);
	assert_int_equal(user.info.flags, 15);
	assert_int_equal(user.info.argsz, 40);
	assert_int_equal(user.info.cap_offset, 0);
	assert_int_equal(user.header.id, 0xaaaa);
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &user), 0);
	assert_int_equal(user.info.cap_offset, 32);
	assert_int_equal(user.header.id, VFIO_REGION_INFO_CAP_MSIX_MAPPABLE);
	assert_int_equal(user.header.version, 1);
	assert_int_equal(user.header.next, 0);
	user.info.index = 2;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &user), 0);
	assert_int_equal(user.info.flags, 7);
	rig_stop(&rig);

	/* In the first BAR from the one that is named on that has room for it. */
	function.msix_offset = 1 * MIB;
	function_start(&rig, &function);
	user.info.argsz = 40;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_REGION_INFO, &user), 0);
	assert_int_equal(user.info.flags, 15);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info),
		cmocka_unit_test(regions),
		cmocka_unit_test(msix_mappable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
