/* SPDX-License-Identifier: MIT */
/*
 * A dma-buf of a BAR, and IOMMUFD's mappings of it. Sources:
 * drivers/vfio/pci/vfio_pci_dmabuf.c, the dma-buf part of
 * drivers/iommu/iommufd/pages.c.
 */
#include <fcntl.h>

#include "soft/soft.h"
#include "tests/soft/rig.h"

#define FIXED (IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)

static struct soft_device *function(struct rig *rig)
{
	return &soft_system_from(rig->system)->devices[0];
}

static int create(struct rig *rig, unsigned bar, const struct vfio_region_dma_range *ranges,
	size_t n, unsigned flags)
{
	struct soft_device *device = function(rig);
	int fd;

	soft_why()->kind = NULL;
	pthread_mutex_lock(&device->lock);
	fd = soft_dmabuf_create(device, bar, ranges, n, flags);
	pthread_mutex_unlock(&device->lock);
	return fd;
}

/* By the command register, as a user does it. */
static void memory_decoding(struct rig *rig, bool on)
{
	const uint64_t command = ((uint64_t)VFIO_PCI_CONFIG_REGION_INDEX << 40) + 4;
	uint16_t value = on ? 2 : 0;

	assert_int_equal(rig->system->ops->pwrite(rig->system, rig->device, &value, 2, command), 2);
}

static int start(void **state)
{
	static struct rig rig;

	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	memory_decoding(&rig, true);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state);
	return 0;
}

static int map(struct rig *rig, int fd, uint64_t from, uint64_t length, uint64_t iova)
{
	struct iommu_ioas_map_file user = {
		.size = sizeof(user),
		.flags = FIXED,
		.ioas_id = rig->ioas,
		.fd = fd,
		.start = from,
		.length = length,
		.iova = iova,
	};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &user);
}

static int read_byte(struct rig *rig, uint64_t iova, char *byte)
{
	struct dmamap_access *access;
	int error;

	assert_int_equal(dmamap_soft_access(rig->system, rig->device, &access), 0);
	error = dmamap_read(access, iova, byte, 1, NULL);
	dmamap_access_destroy(access);
	return error;
}

/* validate_dmabuf_input(), vfio_pci_core_fill_phys_vec(). */
static void ranges(void **state)
{
	static const struct {
		struct vfio_region_dma_range range[2];
		int error;
		const char *reason;
	} rows[] = {
		{{{0, PAGE}, {0, 0}}, EINVAL, "length_zero"},
		{{{0x800, PAGE}, {0, PAGE}}, EINVAL, "misaligned"},
		{{{0, 0x800}, {0, PAGE}}, EINVAL, "misaligned"},
		{{{0, ~0ULL << 12}, {0, PAGE}}, EINVAL, "wrap"},
		{{{0, 1ULL << 63}, {0, PAGE}}, EINVAL, "too_large"},
		{{{~0ULL << 12, PAGE}, {0, PAGE}}, EOVERFLOW, "wrap"},
		{{{0, PAGE}, {16 * MIB, PAGE}}, EINVAL, "bar_end"},
		{{{0, 16 * MIB + PAGE}, {0, PAGE}}, EINVAL, "bar_end"},
	};
	struct rig *rig = *state;
	int fd;

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_gives(
			rig, create(rig, 0, rows[i].range, 2, 0), rows[i].error, rows[i].reason);
	fd = create(rig, 0, rows[0].range, 1, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	rig_close(rig, &fd);
	fd = create(rig, 0, rows[0].range, 1, 0);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	rig_close(rig, &fd);
}

/* iopt_map_file_pages() on one: its size, what it is, and that it maps the BAR's own bytes. */
static void mapping(void **state)
{
	struct vfio_region_dma_range two[] = {{MIB, MIB}, {4 * MIB, MIB}};
	struct rig *rig = *state;
	char *bar = function(rig)->bars[0].host, byte;
	int one = create(rig, 0, two, 1, 0), both = create(rig, 0, two, 2, 0);
	struct iommu_ioas_change_process change = {.size = sizeof(change)};
	uint64_t length = 2 * MIB;

	assert_gives(rig, map(rig, one, 0, MIB + PAGE, 0), EINVAL, "file_end");
	assert_gives(rig, map(rig, one, MIB, PAGE, 0), EINVAL, "file_end");
	assert_gives(rig, map(rig, one, 0, 0, 0), EINVAL, "length_zero");
	assert_gives(rig, map(rig, one, UINT64_MAX - 5, PAGE, 0), EOVERFLOW, "wrap");
	assert_gives(rig, map(rig, both, 0, MIB, 0), EOPNOTSUPP, "dmabuf_ranges");
	assert_gives(rig, map(rig, one, 0x800, PAGE, 0), EINVAL, "misaligned");
	assert_int_equal(map(rig, one, 0, MIB, 0), 0);
	assert_int_equal(map(rig, one, PAGE, PAGE, MIB), 0);
	bar[MIB + 3] = 'B';
	bar[MIB + PAGE] = 'C';
	assert_int_equal(read_byte(rig, 3, &byte), 0);
	assert_int_equal(byte, 'B');
	assert_int_equal(read_byte(rig, MIB, &byte), 0);
	assert_int_equal(byte, 'C');
	/* Only files can go to another process; nobody is charged. */
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_CHANGE_PROCESS, &change),
		EINVAL, "not_file");
	/* Mappings outlive the descriptor. */
	rig_close(rig, &one);
	rig_close(rig, &both);
	assert_int_equal(read_byte(rig, 3, &byte), 0);
	assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	assert_int_equal(length, MIB + PAGE);
}

/* iopt_revoke_notify(): the areas stay, and nothing is reached there, not even afterwards. */
static void revoking(void **state)
{
	struct vfio_region_dma_range range = {0, MIB};
	struct iommu_ioas_copy copy = {.size = sizeof(copy), .flags = FIXED, .length = 2 * MIB};
	struct rig *rig = *state;
	char *memory = rig_memory(MIB, true), byte;
	int fd = create(rig, 0, &range, 1, 0), late;
	uint64_t length = UINT64_MAX;

	assert_int_equal(map(rig, fd, 0, MIB, 0), 0);
	assert_int_equal(rig_ioas_map(rig, MIB, memory, MIB, RW), 0);
	memory_decoding(rig, false);
	assert_true(read_byte(rig, 0, &byte) < 0);
	assert_int_equal(read_byte(rig, MIB, &byte), 0);
	assert_int_equal(rig_counters(rig).areas, 2);
	assert_gives(rig, map(rig, fd, 0, MIB, 16 * MIB), ENODEV, "dmabuf_revoked");
	/* It can be copied, and maps nothing there either; what is beside it does. */
	copy.src_ioas_id = copy.dst_ioas_id = rig->ioas;
	copy.dst_iova = 32 * MIB;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_COPY, &copy), 0);
	assert_true(read_byte(rig, 32 * MIB, &byte) < 0);
	assert_int_equal(read_byte(rig, 33 * MIB, &byte), 0);
	/* One that is made now is revoked until decoding is back. */
	late = create(rig, 0, &range, 1, 0);
	assert_gives(rig, map(rig, late, 0, MIB, 16 * MIB), ENODEV, "dmabuf_revoked");
	memory_decoding(rig, true);
	assert_true(read_byte(rig, 0, &byte) < 0);
	assert_int_equal(map(rig, fd, 0, MIB, 16 * MIB), 0);
	assert_int_equal(map(rig, late, 0, MIB, 17 * MIB), 0);
	assert_int_equal(read_byte(rig, 16 * MIB, &byte), 0);
	assert_int_equal(rig_ioas_unmap(rig, 0, &length), 0);
	assert_int_equal(length, 6 * MIB);
	rig_close(rig, &late);
	rig_close(rig, &fd);
}

/* vfio_pci_dma_buf_cleanup(): a closed device's stay revoked for ever. */
static void closing(void **state)
{
	struct vfio_region_dma_range range = {0, MIB};
	struct rig *rig = *state;
	int fd = create(rig, 0, &range, 1, 0);
	uint32_t id;

	assert_int_equal(map(rig, fd, 0, MIB, 0), 0);
	pthread_mutex_lock(&function(rig)->lock);
	soft_dmabuf_cleanup(function(rig));
	pthread_mutex_unlock(&function(rig)->lock);
	rig_close(rig, &rig->device);
	rig->device = rig_open(rig, "/dev/vfio/devices/vfio0");
	assert_int_equal(rig_bind(rig, rig->device, rig->container, &id), 0);
	memory_decoding(rig, true);
	assert_gives(rig, map(rig, fd, 0, MIB, MIB), ENODEV, "dmabuf_revoked");
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
	assert_true(read_byte(rig, 0, &(char){0}) < 0);
	rig_close(rig, &fd);
}

/* Through VFIO's calls, TYPE1: a dma-buf cannot be cut (iopt_area_split()). */
static void no_cut(void **state)
{
	struct vfio_region_dma_range range = {0, MIB};
	struct iommu_vfio_ioas get = {.size = sizeof(get), .op = IOMMU_VFIO_IOAS_GET};
	struct rig rig;
	uint64_t size = PAGE;
	int fd;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/iommu", VFIO_TYPE1_IOMMU);
	memory_decoding(&rig, true);
	fd = create(&rig, 0, &range, 1, 0);
	assert_int_equal(rig_ioctl(&rig, rig.container, IOMMU_VFIO_IOAS, &get), 0);
	rig.ioas = get.ioas_id;
	assert_int_equal(map(&rig, fd, 0, MIB, 0), 0);
	assert_gives(&rig, rig_unmap(&rig, PAGE, &size, 0), EOPNOTSUPP, "dmabuf_cut");
	size = MIB;
	assert_int_equal(rig_unmap(&rig, 0, &size, 0), 0);
	rig_close(&rig, &fd);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranges, start, stop),
		cmocka_unit_test_setup_teardown(mapping, start, stop),
		cmocka_unit_test_setup_teardown(revoking, start, stop),
		cmocka_unit_test_setup_teardown(closing, start, stop),
		cmocka_unit_test(no_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
