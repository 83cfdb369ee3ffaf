/* SPDX-License-Identifier: MIT */
/*
 * Containers and groups: who may open and attach what, and in which order.
 * Sources: drivers/vfio/container.c and group.c.
 */
#include <fcntl.h>

#include "tests/soft/rig.h"

/* The extensions, before SET_IOMMU and after. */
static void extensions(void **state)
{
	static const struct {
		unsigned long extension;
		int before, after, iommufd;
	} rows[] = {
		{VFIO_TYPE1_IOMMU, 1, 1, 1},
		{VFIO_TYPE1v2_IOMMU, 1, 1, 1},
		{VFIO_DMA_CC_IOMMU, 0, 1, 1},
		{6, 0, 0, 0},
		{VFIO_NOIOMMU_IOMMU, 0, 0, 0},
		{VFIO_UNMAP_ALL, 1, 1, 1},
		{VFIO_UPDATE_VADDR, 0, 1, 0},
		{1ULL << 32 | VFIO_TYPE1_IOMMU, 0, 0, 0},
		{99, 0, 0, 0},
	};
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig.container = rig_open(&rig, "/dev/vfio/vfio");
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_GET_API_VERSION, NULL), 0);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_CHECK_EXTENSION,
					 (void *)rows[i].extension),
			rows[i].before);
	rig_close(&rig, &rig.container);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_CHECK_EXTENSION,
					 (void *)rows[i].extension),
			rows[i].after);
	rig_stop(&rig);
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/iommu", VFIO_TYPE1v2_IOMMU);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_CHECK_EXTENSION,
					 (void *)rows[i].extension),
			rows[i].iommufd);
	rig_stop(&rig);
}

/* SET_IOMMU: a group first, a type that a driver takes, and only once. */
static void set_iommu(void **state)
{
	struct rig rig;
	int fd;

	(void)state;
	rig_start(&rig, NULL);
	fd = rig.container = rig_open(&rig, "/dev/vfio/vfio");
	assert_gives(
		&rig, rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)1UL), EINVAL, "container_empty");
	assert_gives(&rig, rig_map(&rig, 0, NULL, PAGE, RW), EINVAL, "iommu_unset");
	assert_gives(&rig, rig_ioctl(&rig, fd, 0x1234, NULL), EINVAL, "iommu_unset");
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &fd), 0);
	assert_gives(&rig, rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)6UL), ENODEV, "iommu_type");
	assert_gives(&rig, rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)8UL), ENODEV, "iommu_type");
	assert_gives(&rig, rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)4UL), ENODEV, "iommu_type");
	assert_gives(&rig, rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)10UL), ENODEV, "iommu_type");
	/* vfio_ioctl_set_iommu() asks by CHECK_EXTENSION, which has more than types. */
	assert_gives(&rig, rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)9UL), EINVAL, "iommu_type");
	assert_int_equal(rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)3UL), 0);
	assert_gives(&rig, rig_ioctl(&rig, fd, VFIO_SET_IOMMU, (void *)3UL), EINVAL, "iommu_set");
	assert_gives(&rig, rig_ioctl(&rig, fd, 0x1234, NULL), ENOTTY, "request");
	rig_stop(&rig);
}

/* A group's status, and what SET_CONTAINER takes. */
static void group_states(void **state)
{
	struct vfio_group_status status = {.argsz = 8};
	struct rig rig;
	int fd, other = open("/dev/null", O_RDONLY), bad = 9999;

	(void)state;
	rig_start(&rig, NULL);
	fd = rig.container = rig_open(&rig, "/dev/vfio/vfio");
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_STATUS, &status), 0);
	assert_int_equal(status.flags, VFIO_GROUP_FLAGS_VIABLE);
	status.argsz = 7;
	assert_gives(
		&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_STATUS, &status), EINVAL, "argsz");
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_UNSET_CONTAINER, NULL), EINVAL,
		"group_unset");
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, NULL), EFAULT,
		"pointer");
	assert_gives(
		&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &bad), EBADF, "bad_fd");
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &other), EBADFD,
		"wrong_fd");
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &rig.group), EBADFD,
		"wrong_fd");
	assert_gives(&rig,
		rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:03.0"),
		EINVAL, "group_unset");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &fd), 0);
	status.argsz = 8;
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_STATUS, &status), 0);
	assert_int_equal(status.flags, VFIO_GROUP_FLAGS_VIABLE | VFIO_GROUP_FLAGS_CONTAINER_SET);
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &fd), EINVAL,
		"group_set");
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &other), EINVAL,
		"group_set");
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_DEVICE_RESET, NULL), ENOTTY, "request");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_UNSET_CONTAINER, NULL), 0);
	rig_stop(&rig);
	close(other);
}

/* GET_DEVICE_FD by name: of this group, after SET_IOMMU, with nothing behind it. */
static void device_fd(void **state)
{
	static const struct {
		const char *name;
		int error;
		const char *reason;
	} rows[] = {
		{"0000:00:04.0", ENODEV, "device_name"},
		{"0000:00:03.0x", ENODEV, "device_name"},
		{"0000:00:03.0 vf_token=bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3", EINVAL,
			"device_token"},
		{"0000:00:03.0 what", EINVAL, "device_option"},
		{"0000:00:03.0", EINVAL, "iommu_unset"},
	};
	struct rig rig;
	int second;

	(void)state;
	rig_start(&rig, NULL);
	rig.container = rig_open(&rig, "/dev/vfio/vfio");
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &rig.container), 0);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_gives(&rig,
			rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)rows[i].name),
			rows[i].error, rows[i].reason);
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, NULL), EFAULT,
		"pointer");
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)3UL), 0);
	rig.device = rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:03.0 ");
	assert_true(rig.device >= 0);
	/* A device is in use, so the group keeps its container. It may be opened again. */
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_UNSET_CONTAINER, NULL), EBUSY,
		"group_used");
	second = rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:03.0");
	assert_true(second >= 0);
	rig_close(&rig, &rig.device);
	assert_gives(&rig, rig_ioctl(&rig, rig.group, VFIO_GROUP_UNSET_CONTAINER, NULL), EBUSY,
		"group_used");
	rig_close(&rig, &second);
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_UNSET_CONTAINER, NULL), 0);
	rig_stop(&rig);
}

/* One opener; devices keep their group open; a BAR's mapping keeps the device. */
static void busy(void **state)
{
	struct rig rig;
	void *va;
	int fd;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_gives(&rig, rig_open(&rig, "/dev/vfio/7"), EBUSY, "group_open");
	rig_close(&rig, &rig.group);
	assert_gives(&rig, rig_open(&rig, "/dev/vfio/7"), EBUSY, "group_open");
	va = rig_bar(&rig, 0, 16 * MIB, 0);
	rig_close(&rig, &rig.device);
	assert_gives(&rig, rig_open(&rig, "/dev/vfio/7"), EBUSY, "group_open");
	/* Half of the mapping gone is not enough. */
	assert_int_equal(rig.system->ops->munmap(rig.system, va, 8 * MIB), 0);
	assert_gives(&rig, rig_open(&rig, "/dev/vfio/7"), EBUSY, "group_open");
	fd = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_gives(&rig, rig_bind(&rig, fd, rig.container, &(uint32_t){0}), EBUSY, "group_open");
	assert_int_equal(rig.system->ops->munmap(rig.system, va, 16 * MIB), 0);
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_true(rig.group >= 0);
	rig_close(&rig, &fd);
	rig_stop(&rig);
}

/* The last group that leaves takes all mappings with it, and SET_IOMMU may come again. */
static void last_group_leaves(void **state)
{
	char *memory = rig_memory(PAGE, true);
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_int_equal(rig_map(&rig, 0, memory, PAGE, RW), 0);
	rig_close(&rig, &rig.device);
	rig_close(&rig, &rig.group);
	assert_int_equal(rig_counters(&rig).areas, 0);
	assert_int_equal(rig_counters(&rig).unmaps, 1);
	assert_gives(&rig, rig_map(&rig, 0, memory, PAGE, RW), EINVAL, "iommu_unset");
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &rig.container), 0);
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)1UL), 0);
	rig_stop(&rig);
}

/* Two groups share a container; the mappings stay while one is left. */
static void two_groups(void **state)
{
	struct dmamap_machine_device devices[2];
	char *memory = rig_memory(PAGE, true);
	struct dmamap_machine machine;
	struct rig rig;
	int second;

	(void)state;
	dmamap_machine_default(&machine);
	devices[0] = devices[1] = machine.devices[0];
	strcpy(devices[1].bdf, "0000:00:04.0");
	devices[1].group = 8;
	devices[1].cdev = 1;
	machine.devices = devices;
	machine.n_devices = 2;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	second = rig_open(&rig, "/dev/vfio/8");
	assert_int_equal(rig_ioctl(&rig, second, VFIO_GROUP_SET_CONTAINER, &rig.container), 0);
	assert_int_equal(rig_map(&rig, 0, memory, PAGE, RW), 0);
	rig_close(&rig, &rig.device);
	rig_close(&rig, &rig.group);
	assert_int_equal(rig_counters(&rig).areas, 1);
	rig_close(&rig, &second);
	assert_int_equal(rig_counters(&rig).areas, 0);
	rig_stop(&rig);
}

/* Whatever the order of closing, every descriptor comes back. */
static void no_descriptor_leaks(void **state)
{
	unsigned before = rig_descriptors();
	struct rig rig;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		rig_start(&rig, NULL);
		rig_group(&rig, i & 1 ? "/dev/vfio/vfio" : "/dev/iommu", VFIO_TYPE1v2_IOMMU);
		rig_bar(&rig, 0, 16 * MIB, 0);
		assert_int_equal(rig_map(&rig, 0, rig_memory(PAGE, false), PAGE, RW), 0);
		if (i == 2)
			dmamap_system_destroy(rig.system);
		else
			rig_stop(&rig);
		assert_int_equal(rig_descriptors(), before);
	}
}

/* Descriptors that are none of ours. */
static void strange_descriptors(void **state)
{
	struct rig rig;
	int null = open("/dev/null", O_RDONLY);

	(void)state;
	rig_start(&rig, NULL);
	assert_gives(&rig, rig_ioctl(&rig, null, VFIO_GET_API_VERSION, NULL), EBADF, "bad_fd");
	assert_gives(&rig, rig_ioctl(&rig, -1, VFIO_GET_API_VERSION, NULL), EBADF, "bad_fd");
	assert_gives(&rig, rig.system->ops->close(rig.system, null), EBADF, "bad_fd");
	assert_gives(&rig, rig_open(&rig, "/dev/vfio/8"), ENOENT, "no_file");
	assert_gives(&rig, rig_open(&rig, "/dev/vfio/devices/vfio9"), ENOENT, "no_file");
	assert_int_equal(close(null), 0);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extensions),
		cmocka_unit_test(set_iommu),
		cmocka_unit_test(group_states),
		cmocka_unit_test(device_fd),
		cmocka_unit_test(busy),
		cmocka_unit_test(last_group_leaves),
		cmocka_unit_test(two_groups),
		cmocka_unit_test(no_descriptor_leaks),
		cmocka_unit_test(strange_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
