/* SPDX-License-Identifier: MIT */
/*
 * VFIO_DEVICE_RESET, VFIO_DEVICE_GET_PCI_HOT_RESET_INFO and
 * VFIO_DEVICE_PCI_HOT_RESET (drivers/vfio/pci/vfio_pci_core.c; which function
 * and which bus can be reset: drivers/pci/pci.c).
 */
#include "tests/soft/function.h"

/* struct vfio_pci_hot_reset_info and struct vfio_pci_hot_reset with their lists. */
struct info {
	struct {
		uint32_t argsz, flags, count;
	} header;
	struct vfio_pci_dependent_device devices[4];
};

struct reset {
	struct {
		uint32_t argsz, flags, count;
	} header;
	int32_t fds[4];
};

static int get_info(struct rig *rig, uint32_t argsz, struct info *info)
{
	memset(info, 0xaa, sizeof(*info));
	info->header.argsz = argsz;
	return device_call(rig, VFIO_DEVICE_GET_PCI_HOT_RESET_INFO, info);
}

static int reset(struct rig *rig, uint32_t flags, uint32_t count, int one, int two)
{
	struct reset user = {{12 + 4 * count, flags, count}, {one, two}};

	return device_call(rig, VFIO_DEVICE_PCI_HOT_RESET, &user);
}

/* A function on the root bus: by itself, or not at all. */
static void on_root_bus(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct info info;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	assert_int_equal(device_call(&rig, VFIO_DEVICE_RESET, NULL), 0);
	assert_gives(&rig, get_info(&rig, 11, &info), EINVAL, "argsz");
	assert_gives(&rig, get_info(&rig, 12, &info), ENODEV, "reset_root");
	assert_int_equal(info.header.count, 0xaaaaaaaa);
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_GET_PCI_HOT_RESET_INFO, NULL), EFAULT,
		"pointer");
	assert_gives(&rig, reset(&rig, 1, 0, 0, 0), EINVAL, "flags");
	/* Through its cdev no groups can be given. */
	assert_gives(&rig, reset(&rig, 0, 1, 0, 0), EINVAL, "reset_groups");
	assert_gives(&rig, reset(&rig, 0, 0, 0, 0), ENODEV, "reset_root");
	assert_gives(&rig,
		device_call(
			&rig, VFIO_DEVICE_PCI_HOT_RESET, &(struct vfio_pci_hot_reset){.argsz = 11}),
		EINVAL, "argsz");
	rig_stop(&rig);

	function.reset = false;
	function_start(&rig, &function);
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_RESET, NULL), EINVAL, "reset_none");
	rig_stop(&rig);
}

/* Two functions of bus 1 in two groups, and one of bus 2. */
static void start_three(struct rig *rig)
{
	static struct dmamap_machine_device functions[3];
	struct dmamap_machine machine;

	dmamap_machine_default(&machine);
	for (unsigned i = 0; i < 3; i++) {
		functions[i] = function_default();
		functions[i].bar_address[0] += i << 24;
		functions[i].bar_address[2] += (uint64_t)i << 24;
		functions[i].group = 7 + i;
		functions[i].cdev = i;
	}
	strcpy(functions[0].bdf, "0000:01:00.0");
	strcpy(functions[1].bdf, "0000:01:01.3");
	strcpy(functions[2].bdf, "0000:02:00.0");
	machine.devices = functions;
	machine.n_devices = 3;
	rig_start(rig, &machine);
}

/* vfio_pci_fill_devs(): ids in the caller's IOMMUFD, or what they are there. */
static void by_cdev(void **state)
{
	struct info info;
	struct rig rig;
	uint32_t id;
	int second;

	(void)state;
	start_three(&rig);
	rig_cdev(&rig, false);
	assert_gives(&rig, get_info(&rig, 12, &info), ENOSPC, "reset_room");
	assert_int_equal(info.header.count, 2);
	assert_int_equal(info.header.flags, 0);
	assert_gives(&rig, get_info(&rig, 27, &info), ENOSPC, "reset_room");
	assert_int_equal(get_info(&rig, 28, &info), 0);
	assert_int_equal(info.header.argsz, 28);
	assert_int_equal(info.header.count, 2);
	assert_int_equal(info.header.flags, VFIO_PCI_HOT_RESET_FLAG_DEV_ID);
	assert_int_equal(info.devices[0].devid, 1);
	assert_int_equal(info.devices[0].segment, 0);
	assert_int_equal(info.devices[0].bus, 1);
	assert_int_equal(info.devices[0].devfn, 0);
	assert_int_equal(info.devices[1].devid, (uint32_t)VFIO_PCI_DEVID_NOT_OWNED);
	assert_int_equal(info.devices[1].devfn, 11);
	assert_int_equal(info.devices[2].devid, 0xaaaaaaaa);
	assert_gives(&rig, reset(&rig, 0, 0, 0, 0), EINVAL, "reset_owner");
	second = rig_open(&rig, "/dev/vfio/devices/vfio1");
	assert_int_equal(rig_bind(&rig, second, rig.container, &id), 0);
	assert_int_equal(get_info(&rig, 28, &info), 0);
	assert_int_equal(info.header.flags,
		VFIO_PCI_HOT_RESET_FLAG_DEV_ID | VFIO_PCI_HOT_RESET_FLAG_DEV_ID_OWNED);
	assert_int_equal(info.devices[1].devid, id);
	assert_int_equal(reset(&rig, 0, 0, 0, 0), 0);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* iommufd_ctx_has_group(): one that is not open, in a group that is in the IOMMUFD. */
static void owned_by_group(void **state)
{
	struct dmamap_machine_device functions[2] = {function_default(), function_default()};
	struct dmamap_machine machine;
	struct info info;
	struct rig rig;

	(void)state;
	dmamap_machine_default(&machine);
	strcpy(functions[0].bdf, "0000:01:00.0");
	strcpy(functions[1].bdf, "0000:01:00.1");
	functions[1].cdev = 1;
	machine.devices = functions;
	machine.n_devices = 2;
	rig_start(&rig, &machine);
	rig_cdev(&rig, false);
	assert_int_equal(get_info(&rig, 28, &info), 0);
	assert_int_equal(info.devices[1].devid, VFIO_PCI_DEVID_OWNED);
	assert_int_equal(info.header.flags,
		VFIO_PCI_HOT_RESET_FLAG_DEV_ID | VFIO_PCI_HOT_RESET_FLAG_DEV_ID_OWNED);
	assert_int_equal(reset(&rig, 0, 0, 0, 0), 0);
	rig_stop(&rig);
}

/* vfio_pci_ioctl_pci_hot_reset_groups(): the files of all groups that are on the bus. */
static void by_group(void **state)
{
	struct info info;
	struct rig rig;
	int second, third;

	(void)state;
	start_three(&rig);
	rig.container = rig_open(&rig, "/dev/vfio/vfio");
	rig.group = rig_open(&rig, "/dev/vfio/7");
	second = rig_open(&rig, "/dev/vfio/8");
	third = rig_open(&rig, "/dev/vfio/9");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &rig.container), 0);
	assert_int_equal(
		rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)VFIO_TYPE1v2_IOMMU), 0);
	rig.device = rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:01:00.0");
	assert_true(rig.device >= 0);
	assert_int_equal(get_info(&rig, 28, &info), 0);
	assert_int_equal(info.header.flags, 0);
	assert_int_equal(info.devices[0].group_id, 7);
	assert_int_equal(info.devices[1].group_id, 8);
	assert_gives(&rig, reset(&rig, 0, 0, 0, 0), EINVAL, "reset_groups");
	assert_gives(&rig, reset(&rig, 0, 3, rig.group, second), EINVAL, "reset_many");
	assert_gives(&rig, reset(&rig, 0, 1, 9999, 0), EBADF, "bad_fd");
	assert_gives(&rig, reset(&rig, 0, 2, rig.group, rig.container), EINVAL, "wrong_fd");
	assert_gives(&rig, reset(&rig, 0, 1, STDERR_FILENO, 0), EINVAL, "wrong_fd");
	assert_gives(&rig, reset(&rig, 0, 1, rig.group, 0), EINVAL, "reset_owner");
	assert_non_null(strstr(rig_sentence(&rig), "0000:01:01.3 in group 8"));
	assert_gives(&rig, reset(&rig, 0, 2, rig.group, third), EINVAL, "reset_owner");
	assert_int_equal(reset(&rig, 0, 2, rig.group, second), 0);
	rig_close(&rig, &second);
	rig_close(&rig, &third);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_root_bus),
		cmocka_unit_test(by_cdev),
		cmocka_unit_test(owned_by_group),
		cmocka_unit_test(by_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
