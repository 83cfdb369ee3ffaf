/* SPDX-License-Identifier: MIT */
/*
 * IOMMUFD's calls beside each other: whatever the order, results are those of
 * some order, nothing is lost, and locks are taken as soft/soft.h says (for
 * ThreadSanitizer to see).
 */
#include <pthread.h>

#include "abi/vfio.h"
#include "soft/soft.h"
#include "tests/soft/rig.h"

#define TURNS 300
#define FIXED (IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)

static struct rig rig;
static char *memory;
static int file, dmabuf;
static uint32_t other;
static atomic_uint unexpected;

/* Only these may come of a call, for who runs beside others. */
static void allow(int error, int one, int two)
{
	if (error < 0 && error != -one && error != -two)
		atomic_fetch_add(&unexpected, 1);
}

static int map_file(int fd, uint64_t iova, uint64_t length)
{
	struct iommu_ioas_map_file user = {.size = sizeof(user),
		.flags = FIXED,
		.ioas_id = rig.ioas,
		.fd = fd,
		.length = length,
		.iova = iova};

	return rig_ioctl(&rig, rig.container, IOMMU_IOAS_MAP_FILE, &user);
}

static int copy(uint32_t from, uint64_t src, uint32_t to, uint64_t dst, uint64_t length)
{
	struct iommu_ioas_copy user = {.size = sizeof(user),
		.flags = FIXED,
		.dst_ioas_id = to,
		.src_ioas_id = from,
		.length = length,
		.dst_iova = dst,
		.src_iova = src};

	return rig_ioctl(&rig, rig.container, IOMMU_IOAS_COPY, &user);
}

static void *maps(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < TURNS; i++) {
		uint64_t all = 4 * MIB;

		allow(rig_ioas_map(&rig, GIB, memory, MIB, RW), 0, 0);
		allow(map_file(file, GIB + MIB, MIB), 0, 0);
		allow(copy(rig.ioas, GIB, other, 0, 2 * MIB), EEXIST, 0);
		allow(copy(other, 0, rig.ioas, GIB + 2 * MIB, MIB), ENOENT, 0);
		allow(rig_ioas_unmap(&rig, GIB, &all), 0, 0);
	}
	return NULL;
}

static void *unmaps_other(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < TURNS; i++) {
		struct iommu_ioas_unmap user = {
			.size = sizeof(user), .ioas_id = other, .length = UINT64_MAX};
		struct iommu_ioas_change_process change = {.size = sizeof(change)};

		allow(rig_ioctl(&rig, rig.container, IOMMU_IOAS_CHANGE_PROCESS, &change), EINVAL,
			0);
		allow(rig_ioctl(&rig, rig.container, IOMMU_IOAS_UNMAP, &user), 0, 0);
	}
	return NULL;
}

static void *attaches(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < TURNS; i++) {
		struct vfio_device_detach_iommufd_pt detach = {.argsz = sizeof(detach)};
		struct iommu_hwpt_alloc hwpt = {
			.size = sizeof(hwpt), .dev_id = 1, .pt_id = i % 2 ? other : rig.ioas};
		struct iommu_destroy destroy = {.size = sizeof(destroy)};
		uint32_t pt = i % 3 ? rig.ioas : other;

		allow(rig_attach(&rig, rig.device, &pt), 0, 0);
		allow(rig_ioctl(&rig, rig.container, IOMMU_HWPT_ALLOC, &hwpt), 0, 0);
		pt = hwpt.out_hwpt_id;
		/* Somebody may have guessed it. */
		allow(rig_attach(&rig, rig.device, &pt), ENOENT, 0);
		allow(rig_ioctl(&rig, rig.device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0, 0);
		destroy.id = hwpt.out_hwpt_id;
		allow(rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), EBUSY, ENOENT);
	}
	return NULL;
}

/* A dma-buf that comes and goes under its mappings. */
static void *revokes(void *argument)
{
	struct soft_device *device = &soft_system_from(rig.system)->devices[0];

	(void)argument;
	for (unsigned i = 0; i < TURNS; i++) {
		uint64_t size = MIB;

		allow(map_file(dmabuf, 2 * GIB, MIB), ENODEV, EEXIST);
		pthread_mutex_lock(&device->lock);
		soft_dmabuf_move(device, i % 2);
		pthread_mutex_unlock(&device->lock);
		if (i % 3)
			allow(rig_ioas_unmap(&rig, 2 * GIB, &size), ENOENT, 0);
	}
	return NULL;
}

/* Ids that may be anything, and options that may be refused. */
static void *guesses(void *argument)
{
	uint64_t bits[8];

	(void)argument;
	for (unsigned i = 0; i < TURNS * 4; i++) {
		struct iommu_option option = {.size = sizeof(option),
			.option_id = IOMMU_OPTION_HUGE_PAGES,
			.object_id = rig.ioas,
			.val64 = i % 2};
		struct iommu_hwpt_set_dirty_tracking track = {
			.size = sizeof(track), .hwpt_id = 5 + i % 4, .flags = i % 2};
		struct iommu_hwpt_get_dirty_bitmap dirty = {.size = sizeof(dirty),
			.hwpt_id = 5 + i % 4,
			.iova = GIB,
			.length = 2 * MIB,
			.page_size = PAGE,
			.data = (uintptr_t)bits};
		struct iommu_destroy destroy = {.size = sizeof(destroy), .id = 5 + i % 4};

		allow(rig_ioctl(&rig, rig.container, IOMMU_OPTION, &option), EINVAL, 0);
		allow(rig_ioctl(&rig, rig.container, IOMMU_HWPT_SET_DIRTY_TRACKING, &track),
			EOPNOTSUPP, ENOENT);
		allow(rig_ioctl(&rig, rig.container, IOMMU_HWPT_GET_DIRTY_BITMAP, &dirty),
			EOPNOTSUPP, ENOENT);
		if (i % 16 == 0)
			allow(rig_ioctl(&rig, rig.container, IOMMU_DESTROY, &destroy), EBUSY,
				ENOENT);
	}
	return NULL;
}

static void beside(void **state)
{
	static void *(*const runs[])(void *) = {maps, unmaps_other, attaches, revokes, guesses};
	struct vfio_region_dma_range range = {0, MIB};
	struct dmamap_soft_charge charge;
	pthread_t threads[LENGTH(runs)];
	struct soft_device *device;

	(void)state;
	memory = rig_memory(4 * MIB, true);
	file = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file, MIB), 0);
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	other = rig_ioas_alloc(&rig);
	device = &soft_system_from(rig.system)->devices[0];
	pthread_mutex_lock(&device->lock);
	atomic_store(&device->memory_on, true);
	dmabuf = soft_dmabuf_create(device, 0, &range, 1, 0);
	pthread_mutex_unlock(&device->lock);
	for (size_t i = 0; i < LENGTH(runs); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, runs[i], NULL), 0);
	for (size_t i = 0; i < LENGTH(runs); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(unexpected, 0);
	rig_close(&rig, &dmabuf);
	rig_close(&rig, &rig.device);
	rig_close(&rig, &rig.container);
	assert_int_equal(dmamap_soft_charged(rig.system, 0, &charge), 0);
	assert_int_equal(charge.pinned | charge.locked | charge.user, 0);
	rig_stop(&rig);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
