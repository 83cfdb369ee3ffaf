/* SPDX-License-Identifier: MIT */
/*
 * A device's file: binding and attaching through the cdev, and its name through
 * a group. Sources: drivers/vfio/device_cdev.c, vfio_main.c, iommufd.c.
 */
#include "tests/soft/function.h"

/* Before BIND nothing works; vfio_df_ioctl_bind_iommufd(), top to bottom. */
static void bind_refusals(void **state)
{
	struct {
		struct vfio_device_bind_iommufd bind;
		uint64_t more;
	} user = {.bind.argsz = 15};
	struct rig rig;
	uint32_t id;
	void *out;
	char byte;
	int second;

	(void)state;
	rig_start(&rig, NULL);
	rig.container = rig_open(&rig, "/dev/iommu");
	rig.device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_INFO, NULL), EINVAL,
		"device_unbound");
	assert_gives(&rig, get(&rig, CONFIG, &byte, 1), EINVAL, "device_unbound");
	assert_gives(&rig,
		rig.system->ops->mmap(
			rig.system, NULL, PAGE, PROT_READ, MAP_SHARED, rig.device, 0, &out),
		EINVAL, "device_unbound");
	assert_gives(&rig, rig_attach(&rig, rig.device, &(uint32_t){1}), EINVAL, "device_unbound");
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_BIND_IOMMUFD, &user), EINVAL,
		"argsz");
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_BIND_IOMMUFD, NULL), EFAULT,
		"pointer");
	user.bind.argsz = sizeof(user);
	user.more = 1;
	assert_gives(
		&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_BIND_IOMMUFD, &user), E2BIG, "tail");
	user.more = 0;
	user.bind.iommufd = -1;
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_BIND_IOMMUFD, &user), EINVAL,
		"value");
	user.bind.iommufd = rig.container;
	user.bind.flags = 2;
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_BIND_IOMMUFD, &user), EINVAL,
		"flags");
	user.bind.flags = VFIO_DEVICE_BIND_FLAG_TOKEN;
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_BIND_IOMMUFD, &user), EFAULT,
		"pointer");
	assert_gives(&rig, rig_bind(&rig, rig.device, 9999, &id), EBADF, "bad_fd");
	assert_gives(&rig, rig_bind(&rig, rig.device, rig.device, &id), EBADFD, "wrong_fd");
	assert_int_equal(rig_bind(&rig, rig.device, rig.container, &id), 0);
	assert_int_equal(id, 1);
	assert_gives(&rig, rig_bind(&rig, rig.device, rig.container, &id), EINVAL, "device_bound");
	second = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_gives(&rig, rig_bind(&rig, second, rig.container, &id), EINVAL, "device_bound");
	/* While it is bound its group is closed to others. */
	assert_gives(&rig, rig_open(&rig, "/dev/vfio/7"), EBUSY, "group_cdev");
	rig_close(&rig, &rig.device);
	assert_int_equal(rig_bind(&rig, second, rig.container, &id), 0);
	rig_close(&rig, &second);
	rig.group = rig_open(&rig, "/dev/vfio/7");
	assert_true(rig.group >= 0);
	second = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_gives(&rig, rig_bind(&rig, second, rig.container, &id), EBUSY, "group_open");
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* What came from a group is not bound, attached or detached by hand. */
static void group_derived(void **state)
{
	struct vfio_device_detach_iommufd_pt detach = {.argsz = 8};
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_gives(&rig, rig_bind(&rig, rig.device, rig.container, &(uint32_t){0}), EINVAL,
		"device_by_group");
	assert_gives(&rig, rig_attach(&rig, rig.device, &(uint32_t){1}), ENOTTY, "request");
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach),
		ENOTTY, "request");
	rig_stop(&rig);
}

/* ATTACH gives the page table's id, again replaces, DETACH always works. */
static void attach(void **state)
{
	struct vfio_device_attach_iommufd_pt user = {.argsz = 11, .pt_id = 1};
	struct vfio_device_detach_iommufd_pt detach = {.argsz = 7};
	struct iommu_destroy destroy = {.size = sizeof(destroy)};
	uint32_t pt, first, other;
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, false);
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &user),
		EINVAL, "argsz");
	user.argsz = 12;
	user.flags = 2;
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &user),
		EINVAL, "flags");
	pt = 99;
	assert_gives(&rig, rig_attach(&rig, rig.device, &pt), ENOENT, "object_unknown");
	pt = 1; /* the device itself */
	assert_gives(&rig, rig_attach(&rig, rig.device, &pt), EINVAL, "object_type");
	pt = rig.ioas;
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_not_equal(pt, rig.ioas);
	first = pt;
	/* In use: neither the IOAS nor the page table nor the device can be destroyed. */
	destroy.id = rig.ioas;
	assert_gives(&rig, rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), EBUSY,
		"object_busy");
	destroy.id = first;
	assert_gives(&rig, rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), EBUSY,
		"object_busy");
	destroy.id = 1;
	assert_gives(&rig, rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), EBUSY,
		"object_busy");
	/* Attaching to where it is: nothing changes, by either id. */
	pt = rig.ioas;
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_equal(pt, first);
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_equal(pt, first);
	other = pt = rig_ioas_alloc(&rig);
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_not_equal(pt, first);
	destroy.id = rig.ioas;
	assert_int_equal(rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), 0);
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach),
		EINVAL, "argsz");
	detach.argsz = 8;
	assert_int_equal(rig_ioctl(&rig, rig.device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0);
	assert_int_equal(rig_ioctl(&rig, rig.device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0);
	destroy.id = other;
	assert_int_equal(rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), 0);
	assert_int_equal(
		dmamap_soft_access(rig.system, rig.device, &(struct dmamap_access *){0}), -ENODEV);
	rig_stop(&rig);
}

/* A replaced page table's device sees what the new IOAS has. */
static void replace_moves_dma(void **state)
{
	char *one = rig_memory(PAGE, true), *two = rig_memory(PAGE, true);
	struct dmamap_access *access;
	struct rig rig;
	uint32_t pt;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(rig_ioas_map(&rig, 0, one, PAGE, RW), 0);
	rig.ioas = pt = rig_ioas_alloc(&rig);
	assert_int_equal(rig_ioas_map(&rig, 0, two, PAGE, RW), 0);
	/* An area where the device cannot reach: the old attachment stays. */
	assert_int_equal(rig_ioas_map(&rig, 0xfee00000, two, PAGE, RW), 0);
	assert_gives(&rig, rig_attach(&rig, rig.device, &pt), EADDRINUSE, "in_use");
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_write(access, 0, "1", 1, NULL), 0);
	dmamap_access_destroy(access);
	assert_int_equal(rig_ioas_unmap(&rig, 0xfee00000, &(uint64_t){PAGE}), 0);
	pt = rig.ioas;
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_write(access, 0, "2", 1, NULL), 0);
	dmamap_access_destroy(access);
	assert_int_equal(one[0], '1');
	assert_int_equal(two[0], '2');
	rig_stop(&rig);
}

/* Two functions of one group: one owner, one page table, moved together. */
static void group_of_two(void **state)
{
	struct dmamap_machine_device devices[2];
	struct dmamap_machine machine;
	char *memory = rig_memory(PAGE, true);
	struct iommu_destroy destroy = {.size = sizeof(destroy)};
	struct dmamap_access *access;
	uint32_t first, id, pt, other;
	struct rig rig;
	int second, iommufd;

	(void)state;
	dmamap_machine_default(&machine);
	devices[0] = devices[1] = machine.devices[0];
	strcpy(devices[1].bdf, "0000:00:03.1");
	devices[1].cdev = 1;
	machine.devices = devices;
	machine.n_devices = 2;
	rig_start(&rig, &machine);
	rig_cdev(&rig, true);
	second = rig_open(&rig, "/dev/vfio/devices/vfio1");
	iommufd = rig_open(&rig, "/dev/iommu");
	assert_gives(&rig, rig_bind(&rig, second, iommufd, &id), EPERM, "group_owned");
	assert_int_equal(rig_bind(&rig, second, rig.container, &id), 0);
	first = rig.ioas;
	other = pt = rig_ioas_alloc(&rig);
	assert_gives(&rig, rig_attach(&rig, second, &pt), EINVAL, "group_elsewhere");
	pt = first;
	assert_int_equal(rig_attach(&rig, second, &pt), 0);
	/* One moves, and the other with it: the first IOAS is free. */
	rig.ioas = pt = other;
	assert_int_equal(rig_ioas_map(&rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	destroy.id = first;
	assert_int_equal(rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), 0);
	assert_int_equal(dmamap_soft_access(rig.system, second, &access), 0);
	assert_int_equal(dmamap_write(access, 0, "2", 1, NULL), 0);
	dmamap_access_destroy(access);
	assert_int_equal(memory[0], '2');
	/* The page table stays until both are gone. */
	rig_close(&rig, &rig.device);
	destroy.id = other;
	assert_gives(&rig, rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), EBUSY,
		"object_busy");
	rig_close(&rig, &second);
	assert_int_equal(rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), 0);
	rig_close(&rig, &iommufd);
	rig_stop(&rig);
}

/* vfio_df_check_token(), vfio_pci_core_match(): what may follow a device's address. */
static void names(void **state)
{
	static const struct {
		const char *name;
		int error;
		const char *reason;
	} rows[] = {
		{"0000:00:03.1", ENODEV, "device_name"},
		{"0000:00:03.", ENODEV, "device_name"},
		{"0000:00:03.00", ENODEV, "device_name"},
		{"0000:00:03.0\tvf_token=", ENODEV, "device_name"},
		{"0000:00:03.0 token", EINVAL, "device_option"},
		{"0000:00:03.0 vf_token=", EINVAL, "device_uuid"},
		{"0000:00:03.0 vf_token=bd8d9d2b-5a5f-4f5a-a211-f591514ba1f", EINVAL,
			"device_uuid"},
		{"0000:00:03.0 vf_token=bd8d9d2b-5a5f-4f5a-a211_f591514ba1f3", EINVAL,
			"device_uuid"},
		{"0000:00:03.0 vf_token=gd8d9d2b-5a5f-4f5a-a211-f591514ba1f3", EINVAL,
			"device_uuid"},
		{"0000:00:03.0 vf_token=bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3 "
		 "vf_token=bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3",
			EINVAL, "device_option"},
		/* All is well with it, but for whom it is. */
		{"0000:00:03.0   vf_token=BD8D9D2B-5a5f-4f5a-a211-f591514ba1f3  ", EINVAL,
			"device_token"},
	};
	struct rig rig;
	int fd;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_gives(&rig,
			rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)rows[i].name),
			rows[i].error, rows[i].reason);
	/* Opened again through its group, with spaces after it. */
	fd = rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:03.0   ");
	assert_true(fd >= 0);
	rig_close(&rig, &fd);
	rig_stop(&rig);
}

/* A token at BIND: fetched, then refused; it comes before the IOMMUFD is looked at. */
static void bind_token(void **state)
{
	uint8_t uuid[16] = {0};
	struct vfio_device_bind_iommufd bind = {
		.argsz = sizeof(bind),
		.flags = VFIO_DEVICE_BIND_FLAG_TOKEN,
		.iommufd = 9999,
		.token_uuid_ptr = (uintptr_t)uuid,
	};
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig.device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_BIND_IOMMUFD, &bind), EINVAL, "device_token");
	/* Without the pointer's field it is NULL. */
	bind.argsz = 16;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_BIND_IOMMUFD, &bind), EFAULT, "pointer");
	bind.flags = 0;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_BIND_IOMMUFD, &bind), EBADF, "bad_fd");
	rig_stop(&rig);
}

/* Before Linux 6.17 BIND had no flags and looked at 16 bytes; before 6.15 there was no PASID. */
static void older_kernel(void **state)
{
	struct {
		struct vfio_device_bind_iommufd bind;
		uint64_t more;
	} user = {.bind = {.argsz = sizeof(user), .token_uuid_ptr = 1}, .more = 1};
	struct vfio_device_attach_iommufd_pt attach = {
		.argsz = 16, .flags = VFIO_DEVICE_ATTACH_PASID};
	struct dmamap_machine machine;
	struct rig rig;

	(void)state;
	dmamap_machine_default(&machine);
	machine.as_kernel = DMAMAP_KERNEL(6, 12);
	rig_start(&rig, &machine);
	rig.container = rig_open(&rig, "/dev/iommu");
	rig.device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	user.bind.flags = VFIO_DEVICE_BIND_FLAG_TOKEN;
	user.bind.iommufd = rig.container;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_BIND_IOMMUFD, &user), EINVAL, "flags");
	user.bind.flags = 0;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_BIND_IOMMUFD, &user), 0);
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), EINVAL, "flags");
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_DETACH_IOMMUFD_PT, &attach), EINVAL, "flags");
	rig_stop(&rig);
}

/* vfio_iommufd_physical_pasid_attach_ioas(), for a function without PASIDs. */
static void pasids(void **state)
{
	struct vfio_device_attach_iommufd_pt attach = {
		.argsz = 15, .flags = VFIO_DEVICE_ATTACH_PASID};
	struct vfio_device_detach_iommufd_pt detach = {
		.argsz = 11, .flags = VFIO_DEVICE_DETACH_PASID, .pasid = 5};
	struct rig rig;
	uint32_t pt;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, false);
	attach.pt_id = 99;
	attach.pasid = 5;
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), EINVAL, "argsz");
	attach.argsz = 16;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), ENOENT,
		"object_unknown");
	attach.pt_id = 1;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), EINVAL,
		"object_type");
	attach.pt_id = rig.ioas;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), EINVAL,
		"hwpt_pasid");
	attach.pasid = 1u << 31;
	attach.pt_id = 99;
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), ENOSPC, "value");
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), EINVAL, "argsz");
	detach.argsz = 12;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0);
	/* Number 0 is the device's own DMA, attached and detached under that name alone. */
	attach.pasid = 0;
	attach.pt_id = rig.ioas;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), 0);
	assert_int_not_equal(attach.pt_id, rig.ioas);
	pt = rig.ioas;
	assert_gives(&rig, rig_attach(&rig, rig.device, &pt), EBUSY, "attached");
	/* Again is a replacement. */
	assert_int_equal(device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), 0);
	detach.pasid = 0;
	detach.flags = 0;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0);
	assert_gives(&rig, rig_attach(&rig, rig.device, &pt), EBUSY, "attached");
	detach.flags = VFIO_DEVICE_DETACH_PASID;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0);
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	attach.pt_id = rig.ioas;
	assert_gives(
		&rig, device_call(&rig, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach), EBUSY, "attached");
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bind_refusals),
		cmocka_unit_test(group_derived),
		cmocka_unit_test(attach),
		cmocka_unit_test(replace_moves_dma),
		cmocka_unit_test(group_of_two),
		cmocka_unit_test(names),
		cmocka_unit_test(bind_token),
		cmocka_unit_test(older_kernel),
		cmocka_unit_test(pasids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
