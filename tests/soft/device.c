/* SPDX-License-Identifier: MIT */
/*
 * A device's file: binding and attaching through the cdev, and what vfio-pci
 * shows of the function. Sources: drivers/vfio/device_cdev.c, vfio_main.c,
 * drivers/vfio/pci/.
 */
#include "tests/soft/rig.h"

#define CONFIG (7ULL << 40)

static ssize_t get(struct rig *rig, uint64_t offset, void *to, size_t size)
{
	return rig->system->ops->pread(rig->system, rig->device, to, size, offset);
}

static ssize_t put(struct rig *rig, uint64_t offset, const void *from, size_t size)
{
	return rig->system->ops->pwrite(rig->system, rig->device, from, size, offset);
}

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
	user.flags = VFIO_DEVICE_ATTACH_PASID;
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &user),
		EOPNOTSUPP, "not_provided");
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

static void info(void **state)
{
	struct vfio_device_info info = {.argsz = 15};
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_gives(
		&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_INFO, &info), EINVAL, "argsz");
	info.argsz = sizeof(info);
	assert_int_equal(rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_INFO, &info), 0);
	assert_int_equal(info.flags, VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
	assert_int_equal(info.num_regions, 9);
	assert_int_equal(info.num_irqs, 5);
	assert_int_equal(rig_ioctl(&rig, rig.device, VFIO_DEVICE_RESET, NULL), 0);
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_SET_IRQS, NULL), ENOTTY,
		"not_provided");
	assert_gives(&rig, rig_ioctl(&rig, rig.device, 0x4242, NULL), ENOTTY, "request");
	rig_stop(&rig);
}

static void regions(void **state)
{
	static const struct {
		uint32_t index, flags;
		uint64_t size;
	} rows[] = {
		{0, 7, 16 * MIB},
		{1, 0, 0},
		{2, 7, 32 * GIB},
		{3, 0, 0},
		{VFIO_PCI_ROM_REGION_INDEX, 0, 0},
		{VFIO_PCI_CONFIG_REGION_INDEX, 3, 256},
	};
	struct vfio_region_info info = {.argsz = 31};
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_REGION_INFO, &info), EINVAL,
		"argsz");
	info.argsz = sizeof(info);
	for (uint32_t i = VFIO_PCI_VGA_REGION_INDEX; i < 11; i++) {
		info.index = i;
		assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_REGION_INFO, &info),
			EINVAL, "region");
	}
	for (size_t i = 0; i < LENGTH(rows); i++) {
		info = (struct vfio_region_info){.argsz = sizeof(info), .index = rows[i].index};
		assert_int_equal(
			rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_REGION_INFO, &info), 0);
		assert_int_equal(info.size, rows[i].size);
		assert_int_equal(info.flags, rows[i].flags);
		assert_int_equal(info.offset, (uint64_t)rows[i].index << 40);
	}
	rig_stop(&rig);
}

static void irqs(void **state)
{
	static const struct {
		uint32_t count, flags;
	} rows[] = {{0, 7}, {0, 9}, {0, 9}, {1, 9}, {1, 9}};
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	for (uint32_t i = 0; i < LENGTH(rows); i++) {
		struct vfio_irq_info info = {.argsz = sizeof(info), .index = i};

		assert_int_equal(rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_IRQ_INFO, &info), 0);
		assert_int_equal(info.count, rows[i].count);
		assert_int_equal(info.flags, rows[i].flags);
	}
	assert_gives(&rig,
		rig_ioctl(&rig, rig.device, VFIO_DEVICE_GET_IRQ_INFO,
			&(struct vfio_irq_info){.argsz = 16, .index = 5}),
		EINVAL, "irq");
	rig_stop(&rig);
}

/* Config space: ids, bus mastering off at open, BARs that can be sized and not moved. */
static void config_space(void **state)
{
	uint32_t ones = ~0u, value, command = 0x7, low, high;
	uint8_t bytes[256];
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(get(&rig, CONFIG, bytes, 256), 256);
	memcpy(&value, bytes, 4);
	assert_int_equal(value, 0x00051b36);
	assert_int_equal(bytes[0x0a] | bytes[0x0b] << 8, 0x00ff);
	assert_int_equal(bytes[4] & 0x4, 0);
	assert_int_equal(bytes[bytes[0x34]], 0x13);
	assert_int_equal(put(&rig, CONFIG + 4, &command, 2), 2);
	assert_int_equal(get(&rig, CONFIG + 4, &value, 2), 2);
	assert_int_equal(value & 7, 7);
	/* Ids cannot be written. */
	assert_int_equal(put(&rig, CONFIG, &ones, 4), 4);
	assert_int_equal(get(&rig, CONFIG, &value, 4), 4);
	assert_int_equal(value, 0x00051b36);
	assert_int_equal(put(&rig, CONFIG + 0x10, &ones, 4), 4);
	assert_int_equal(get(&rig, CONFIG + 0x10, &value, 4), 4);
	assert_int_equal(value, (uint32_t) ~(16 * MIB - 1));
	put(&rig, CONFIG + 0x18, &ones, 4);
	put(&rig, CONFIG + 0x1c, &ones, 4);
	get(&rig, CONFIG + 0x18, &low, 4);
	get(&rig, CONFIG + 0x1c, &high, 4);
	assert_int_equal(low, 0xc);
	assert_int_equal(~((uint64_t)high << 32 | (low & ~15u)) + 1, 32 * GIB);
	assert_gives(&rig, get(&rig, CONFIG + 255, bytes, 2), EFAULT, "region_end");
	assert_gives(&rig, get(&rig, CONFIG, NULL, 4), EFAULT, "pointer");
	/* Opened again it starts anew. */
	rig_close(&rig, &rig.device);
	rig.device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_int_equal(rig_bind(&rig, rig.device, rig.container, &value), 0);
	assert_int_equal(get(&rig, CONFIG + 4, &value, 2), 2);
	assert_int_equal(value & 7, 2);
	rig_stop(&rig);
}

/* BARs through read and write: cut at their end, EIO while decoding is off. */
static void bar_access(void **state)
{
	uint16_t off = 0;
	struct rig rig;
	char bytes[16];

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(put(&rig, 16 * MIB - 4, "abcdefgh", 8), 4);
	assert_int_equal(get(&rig, 16 * MIB - 4, bytes, 8), 4);
	assert_memory_equal(bytes, "abcd", 4);
	assert_gives(&rig, get(&rig, 16 * MIB, bytes, 1), EINVAL, "region_end");
	assert_gives(&rig, get(&rig, 1ULL << 40, bytes, 1), EINVAL, "region_end");
	assert_gives(&rig, get(&rig, 6ULL << 40, bytes, 1), EINVAL, "region");
	assert_gives(&rig, get(&rig, 9ULL << 40, bytes, 1), EINVAL, "region");
	assert_int_equal(rig.system->ops->read(rig.system, rig.device, bytes, 8), 8);
	put(&rig, CONFIG + 4, &off, 2);
	assert_gives(&rig, get(&rig, 0, bytes, 1), EIO, "bar_off");
	rig_stop(&rig);
}

/* vfio_pci_core_mmap(). */
static void mmap_refusals(void **state)
{
	static const struct {
		size_t length;
		int flags;
		uint64_t offset;
		const char *reason;
	} rows[] = {
		{0, MAP_SHARED, 0, "length_zero"},
		{PAGE, MAP_SHARED, 1, "misaligned"},
		{PAGE, MAP_SHARED, 9ULL << 40, "region"},
		{PAGE, MAP_PRIVATE, 0, "mmap_shared"},
		{PAGE, MAP_SHARED, 6ULL << 40, "region_mmap"},
		{PAGE, MAP_SHARED, CONFIG, "region_mmap"},
		{PAGE, MAP_SHARED, 1ULL << 40, "region_mmap"},
		{16 * MIB + PAGE, MAP_SHARED, 0, "region_end"},
		{16 * MIB, MAP_SHARED, PAGE, "region_end"},
	};
	struct rig rig;
	void *out;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_gives(&rig,
			rig.system->ops->mmap(rig.system, NULL, rows[i].length, PROT_READ,
				rows[i].flags, rig.device, rows[i].offset, &out),
			EINVAL, rows[i].reason);
	rig_stop(&rig);
}

static void features(void **state)
{
	static const struct {
		uint32_t argsz, flags;
		int error;
		const char *reason;
	} rows[] = {
		{7, VFIO_DEVICE_FEATURE_GET, EINVAL, "argsz"},
		{8, 1u << 20, EINVAL, "flags"},
		{8, VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_SET, EINVAL, "flags_together"},
		{8, VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_MIGRATION, ENOTTY,
			"not_provided"},
	};
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		uint32_t user[2] = {rows[i].argsz, rows[i].flags};

		assert_gives(&rig, rig_ioctl(&rig, rig.device, VFIO_DEVICE_FEATURE, user),
			rows[i].error, rows[i].reason);
	}
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
		cmocka_unit_test(info),
		cmocka_unit_test(regions),
		cmocka_unit_test(irqs),
		cmocka_unit_test(config_space),
		cmocka_unit_test(bar_access),
		cmocka_unit_test(mmap_refusals),
		cmocka_unit_test(features),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
