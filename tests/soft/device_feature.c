/* SPDX-License-Identifier: MIT */
/*
 * VFIO_DEVICE_FEATURE (vfio_ioctl_device_feature() in drivers/vfio/vfio_main.c,
 * vfio_check_feature() in include/linux/vfio.h, drivers/vfio/pci/).
 */
#include "tests/soft/function.h"

#define GET   VFIO_DEVICE_FEATURE_GET
#define SET   VFIO_DEVICE_FEATURE_SET
#define PROBE VFIO_DEVICE_FEATURE_PROBE

enum {
	TOKEN = VFIO_DEVICE_FEATURE_PCI_VF_TOKEN,
	MIGRATION = VFIO_DEVICE_FEATURE_MIGRATION,
	LOW = VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY,
	LOW_WAKEUP = VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY_WITH_WAKEUP,
	HIGH = VFIO_DEVICE_FEATURE_LOW_POWER_EXIT,
	BUF = VFIO_DEVICE_FEATURE_DMA_BUF,
};

/* struct vfio_device_feature with its data. */
struct feature {
	struct {
		uint32_t argsz, flags;
	} header;
	union {
		struct vfio_device_low_power_entry_with_wakeup entry;
		struct {
			uint32_t region_index, open_flags, flags, nr_ranges;
			struct vfio_region_dma_range dma_ranges[2];
		} buf;
		uint8_t bytes[64];
	};
};

static void checks(void **state)
{
	static const struct {
		uint32_t argsz, flags;
		int error;
		const char *reason;
	} rows[] = {
		{7, GET, EINVAL, "argsz"},
		{8, 1u << 20 | GET | SET, EINVAL, "flags"},
		{8, GET | SET, EINVAL, "flags_together"},
		{8, GET | SET | 9999, EINVAL, "flags_together"},
		{8, GET | MIGRATION, ENOTTY, "feature"},
		{8, PROBE | MIGRATION, ENOTTY, "feature"},
		{8, PROBE | VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE, ENOTTY, "feature"},
		{8, PROBE | VFIO_DEVICE_FEATURE_DMA_LOGGING_START, ENOTTY, "feature"},
		{8, PROBE | VFIO_DEVICE_FEATURE_DMA_LOGGING_STOP, ENOTTY, "feature"},
		{8, PROBE | VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT, ENOTTY, "feature"},
		{8, PROBE | VFIO_DEVICE_FEATURE_MIG_DATA_SIZE, ENOTTY, "feature"},
		{8, PROBE | VFIO_DEVICE_FEATURE_BUS_MASTER, ENOTTY, "feature"},
		{8, PROBE | VFIO_DEVICE_FEATURE_MIG_PRECOPY_INFOv2, EINVAL, "feature_migration"},
		{8, PROBE | 13, ENOTTY, "feature"},
		{8, PROBE | 0xffff, ENOTTY, "feature"},
		/* A token is only for functions that can have virtual ones. */
		{24, SET | TOKEN, ENOTTY, "feature"},
		/* Which operations each one has. */
		{8, GET | LOW, EINVAL, "feature_operation"},
		{8, PROBE | GET | LOW, EINVAL, "feature_operation"},
		{8, PROBE | GET | SET | HIGH, EINVAL, "feature_operation"},
		{8, LOW, EINVAL, "feature_operation"},
		{8, SET | BUF, EINVAL, "feature_operation"},
		{8, BUF, EINVAL, "feature_operation"},
		{15, SET | LOW_WAKEUP, EINVAL, "argsz"},
		{23, GET | BUF, EINVAL, "argsz"},
		/* A probe stops after that, whatever the size. */
		{8, PROBE | LOW, 0, ""},
		{8, PROBE | SET | LOW_WAKEUP, 0, ""},
		{8, PROBE | HIGH, 0, ""},
		{8, PROBE | GET | BUF, 0, ""},
	};
	struct dmamap_machine_device function = function_default();
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct feature user = {.header = {rows[i].argsz, rows[i].flags}};

		assert_gives(&rig, device_call(&rig, VFIO_DEVICE_FEATURE, &user), rows[i].error,
			rows[i].reason);
	}
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_FEATURE, NULL), EFAULT, "pointer");
	rig_stop(&rig);
}

/* Linux 6.12 has neither dma-bufs nor that about migration. */
static void older_kernel(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct feature user = {.header = {8, PROBE | BUF}};
	struct dmamap_machine machine;
	struct rig rig;

	(void)state;
	dmamap_machine_default(&machine);
	machine.as_kernel = DMAMAP_KERNEL(6, 12);
	function_start_on(&rig, &machine, &function);
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_FEATURE, &user), ENOTTY, "feature");
	user.header.flags = PROBE | VFIO_DEVICE_FEATURE_MIG_PRECOPY_INFOv2;
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_FEATURE, &user), ENOTTY, "feature");
	user.header.flags = PROBE | LOW;
	assert_int_equal(device_call(&rig, VFIO_DEVICE_FEATURE, &user), 0);
	rig_stop(&rig);
}

static int power(struct rig *rig, uint32_t feature, int fd)
{
	struct feature user = {
		.header = {16, SET | feature},
		.entry.wakeup_eventfd = fd,
	};

	return device_call(rig, VFIO_DEVICE_FEATURE, &user);
}

/* Low power lasts until it is left; with an eventfd until the device is used. */
static void low_power(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct rig rig;
	uint32_t id;

	(void)state;
	function_start(&rig, &function);
	assert_int_equal(power(&rig, HIGH, 0), 0);
	assert_int_equal(power(&rig, LOW, 0), 0);
	assert_gives(&rig, power(&rig, LOW, 0), EINVAL, "low_power");
	assert_gives(&rig, power(&rig, LOW_WAKEUP, fd), EINVAL, "low_power");
	/* Reading and writing wakes it, for as long as that takes. */
	assert_int_equal(number(&rig, REGION(0), 4), 0);
	assert_gives(&rig, power(&rig, LOW, 0), EINVAL, "low_power");
	assert_int_equal(power(&rig, HIGH, 0), 0);
	assert_gives(&rig, power(&rig, LOW_WAKEUP, -1), EINVAL, "value");
	assert_gives(&rig, power(&rig, LOW_WAKEUP, 9999), EBADF, "bad_fd");
	assert_gives(&rig, power(&rig, LOW_WAKEUP, rig.device), EINVAL, "eventfd");
	assert_int_equal(power(&rig, LOW_WAKEUP, fd), 0);
	assert_int_equal(signals(fd), 0);
	assert_int_equal(number(&rig, REGION(0), 4), 0);
	assert_int_equal(signals(fd), 1);
	/* And so does a call, the next entry among them. */
	assert_int_equal(power(&rig, LOW_WAKEUP, fd), 0);
	assert_int_equal(power(&rig, LOW, 0), 0);
	assert_int_equal(signals(fd), 1);
	/* Closing leaves it. */
	rig_close(&rig, &rig.device);
	rig.device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_int_equal(rig_bind(&rig, rig.device, rig.container, &id), 0);
	assert_int_equal(power(&rig, LOW, 0), 0);
	rig_stop(&rig);
	close(fd);
}

/* vfio_pci_vmf_insert_pfn(): in low power a BAR cannot be made present. */
static void low_power_bar(void **state)
{
	uint64_t size = 4 * MIB;
	struct rig rig;
	void *bar;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	bar = rig_bar(&rig, 2, size, 0);
	assert_int_equal(power(&rig, LOW, 0), 0);
	assert_gives(&rig, rig_map(&rig, 0, bar, size, RW), EFAULT, "bar_off");
	assert_int_equal(power(&rig, HIGH, 0), 0);
	assert_int_equal(rig_map(&rig, 0, bar, size, RW), 0);
	rig_stop(&rig);
	munmap(bar, size);
}

/* vfio_pci_core_feature_dma_buf(), validate_dmabuf_input(): in their order. */
static void dmabuf_refusals(void **state)
{
	static const struct {
		uint32_t region, flags, n;
		struct vfio_region_dma_range ranges[2];
		int error;
		const char *reason;
	} rows[] = {
		{9, 1, 0, {{0}}, EINVAL, "length_zero"},
		{9, 1, 1, {{0}}, EINVAL, "flags"},
		{6, 0, 1, {{0}}, ENODEV, "dmabuf_region"},
		{3, 0, 1, {{0}}, ENODEV, "dmabuf_region"},
		{0, 0, 262145, {{0}}, ENOMEM, "dmabuf_many"},
		{0, 0, 1, {{0, 0}}, EINVAL, "length_zero"},
		{0, 0, 1, {{1, PAGE}}, EINVAL, "misaligned"},
		{0, 0, 1, {{0, PAGE + 1}}, EINVAL, "misaligned"},
		{0, 0, 2, {{0, 1ULL << 63}, {0, 1ULL << 63}}, EINVAL, "wrap"},
		{0, 0, 1, {{0, 1ULL << 63}}, EINVAL, "too_large"},
		{1, 0, 1, {{0, PAGE}}, EINVAL, "dmabuf_io"},
	};
	struct dmamap_machine_device function = function_default();
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct feature user = {.header = {sizeof(user), GET | BUF}};

		user.buf.region_index = rows[i].region;
		user.buf.flags = rows[i].flags;
		user.buf.nr_ranges = rows[i].n;
		memcpy(user.buf.dma_ranges, rows[i].ranges, sizeof(rows[i].ranges));
		assert_gives(&rig, device_call(&rig, VFIO_DEVICE_FEATURE, &user), rows[i].error,
			rows[i].reason);
	}
	rig_stop(&rig);
}

static int map_dmabuf(struct rig *rig, int fd, uint64_t iova)
{
	struct iommu_ioas_map_file map = {
		.size = sizeof(map),
		.flags = IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE |
			 IOMMU_IOAS_MAP_WRITEABLE,
		.ioas_id = rig->ioas,
		.fd = fd,
		.start = PAGE,
		.length = PAGE,
		.iova = iova,
	};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &map);
}

/* vfio_pci_dma_buf_move(): what takes memory away from a user takes it from his DMA too. */
static void dmabuf_revoked(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct feature user = {.header = {sizeof(user), GET | BUF}};
	struct dmamap_access *access;
	uint64_t iova = 0x10000;
	unsigned power_at;
	struct rig rig;
	uint32_t pt;
	int fd;

	(void)state;
	function.express = true;
	function_start(&rig, &function);
	pt = rig.ioas;
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	power_at = capability(&rig, 0x01) + 4;
	user.buf.region_index = 2;
	user.buf.nr_ranges = 1;
	user.buf.dma_ranges[0] = (struct vfio_region_dma_range){MIB, 2 * PAGE};
	fd = device_call(&rig, VFIO_DEVICE_FEATURE, &user);
	assert_true(fd >= 0);
	for (unsigned way = 0; way < 5; way++, iova += PAGE) {
		assert_int_equal(map_dmabuf(&rig, fd, iova), 0);
		assert_int_equal(dmamap_write(access, iova, &way, 1, NULL), 0);
		assert_int_equal(number(&rig, REGION(2) + MIB + PAGE, 1), way);
		switch (way) {
		case 0:
			set_number(&rig, CONFIG + 4, 1, 2);
			break;
		case 1:
			set_number(&rig, CONFIG + power_at, 3, 2);
			break;
		case 2:
			assert_int_equal(power(&rig, LOW, 0), 0);
			break;
		case 3:
			assert_int_equal(device_call(&rig, VFIO_DEVICE_RESET, NULL), 0);
			break;
		default:
			set_number(&rig, CONFIG + capability(&rig, 0x10) + 8, 0x8000, 2);
		}
		assert_true(dmamap_write(access, iova, "x", 1, NULL) < 0);
		/* A reset gives it back at once; the others when they end. */
		assert_int_equal(map_dmabuf(&rig, fd, 0), way < 3 ? -ENODEV : 0);
		set_number(&rig, CONFIG + 4, 3, 2);
		set_number(&rig, CONFIG + power_at, 0, 2);
		assert_int_equal(power(&rig, HIGH, 0), 0);
		rig_ioas_unmap(&rig, 0, &(uint64_t){PAGE});
	}
	dmamap_access_destroy(access);
	/* The device is closed: it is for ever. */
	rig_close(&rig, &rig.device);
	assert_int_equal(map_dmabuf(&rig, fd, iova), -ENODEV);
	rig_close(&rig, &fd);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks),
		cmocka_unit_test(older_kernel),
		cmocka_unit_test(low_power),
		cmocka_unit_test(low_power_bar),
		cmocka_unit_test(dmabuf_refusals),
		cmocka_unit_test(dmabuf_revoked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
