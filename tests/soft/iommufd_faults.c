/* SPDX-License-Identifier: MIT */
/*
 * IOMMUFD without memory: the same calls again and again, with the n-th
 * allocation failing, until none fails. A call that fails changes nothing, and
 * succeeds when it is made again: areas, charges and object ids are as before.
 */
#include "tests/soft/faults.h"

#define FIXED (IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)

/* What can be seen: what is mapped, and who is charged. */
struct seen {
	uint64_t areas;
	struct dmamap_soft_charge charge[2];
};

static struct seen look(struct rig *rig)
{
	struct seen seen = {.areas = rig_counters(rig).areas};

	for (unsigned process = 0; process < 2; process++)
		assert_int_equal(
			dmamap_soft_charged(rig->system, process, &seen.charge[process]), 0);
	return seen;
}

/* Without memory the first time, it must work the second time. */
#define MUST(rig, call)                                                                            \
	do {                                                                                       \
		unsigned left = fail_nth;                                                          \
		struct seen before, after;                                                         \
		int error;                                                                         \
                                                                                                   \
		fail_nth = 0;                                                                      \
		before = look(rig);                                                                \
		fail_nth = left;                                                                   \
		error = call;                                                                      \
		if (error < 0) {                                                                   \
			assert_int_equal(error, -ENOMEM);                                          \
			assert_true(failed);                                                       \
			after = look(rig);                                                         \
			assert_memory_equal(&before, &after, sizeof(before));                      \
			error = call;                                                              \
		}                                                                                  \
		assert_true(error >= 0);                                                           \
	} while (0)

static void start(struct rig *rig)
{
	struct dmamap_machine_iommu iommus[2];
	struct dmamap_machine machine;

	dmamap_machine_default(&machine);
	iommus[0] = iommus[1] = machine.iommus[0];
	iommus[0].dirty = iommus[1].dirty = true;
	iommus[1].aperture_bits = 39;
	rig_start_iommus(rig, iommus, 2, machine.as_kernel, DMAMAP_MEMLOCK_UNLIMITED);
}

static int ioas_alloc(struct rig *rig, uint32_t *id)
{
	struct iommu_ioas_alloc user = {.size = sizeof(user)};
	int error = rig_ioctl(rig, rig->container, IOMMU_IOAS_ALLOC, &user);

	*id = user.out_ioas_id;
	return error;
}

static int hwpt_alloc(struct rig *rig, uint32_t *id)
{
	struct iommu_hwpt_alloc user = {.size = sizeof(user),
		.dev_id = 1,
		.pt_id = rig->ioas,
		.flags = IOMMU_HWPT_ALLOC_DIRTY_TRACKING};
	int error = rig_ioctl(rig, rig->container, IOMMU_HWPT_ALLOC, &user);

	*id = user.out_hwpt_id;
	return error;
}

static int map_any(struct rig *rig, const void *va, uint64_t length)
{
	struct iommu_ioas_map user = {.size = sizeof(user),
		.flags = FIXED & ~IOMMU_IOAS_MAP_FIXED_IOVA,
		.ioas_id = rig->ioas,
		.user_va = (uintptr_t)va,
		.length = length};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP, &user);
}

static int map_file(struct rig *rig, int fd, uint64_t iova)
{
	struct iommu_ioas_map_file user = {.size = sizeof(user),
		.flags = FIXED,
		.ioas_id = rig->ioas,
		.fd = fd,
		.length = MIB,
		.iova = iova};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &user);
}

static int get_dirty(struct rig *rig, uint32_t hwpt)
{
	uint64_t bits[8] = {0};
	struct iommu_hwpt_get_dirty_bitmap user = {.size = sizeof(user),
		.hwpt_id = hwpt,
		.length = MIB,
		.page_size = PAGE,
		.data = (uintptr_t)bits};

	return rig_ioctl(rig, rig->container, IOMMU_HWPT_GET_DIRTY_BITMAP, &user);
}

static int allow(struct rig *rig)
{
	struct iommu_iova_range range = {16 * MIB, 64 * MIB};
	struct iommu_ioas_allow_iovas user = {.size = sizeof(user),
		.ioas_id = rig->ioas,
		.num_iovas = 1,
		.allowed_iovas = (uintptr_t)&range};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_ALLOW_IOVAS, &user);
}

static int change_process(struct rig *rig)
{
	struct iommu_ioas_change_process user = {.size = sizeof(user)};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_CHANGE_PROCESS, &user);
}

static int fault_alloc(struct rig *rig, int *fd)
{
	struct iommu_fault_alloc user = {.size = sizeof(user)};
	int error = rig_ioctl(rig, rig->container, IOMMU_FAULT_QUEUE_ALLOC, &user);

	*fd = error ? -1 : (int)user.out_fault_fd;
	return error;
}

static void use(struct rig *rig, char *memory, int fd, unsigned nth)
{
	struct iommu_destroy destroy = {.size = sizeof(destroy)};
	uint64_t all = UINT64_MAX;
	uint32_t id, hwpt, pt;
	int second, faults;

	rig->device = rig_open(rig, "/dev/vfio/devices/vfio0");
	second = rig_open(rig, "/dev/vfio/devices/vfio1");
	failed = false;
	fail_nth = nth;
	MUST(rig, rig->container = rig_open(rig, "/dev/iommu"));
	MUST(rig, rig_bind(rig, rig->device, rig->container, &id));
	assert_int_equal(id, 1);
	MUST(rig, ioas_alloc(rig, &rig->ioas));
	assert_int_equal(rig->ioas, 2);
	MUST(rig, rig_ioas_map(rig, 0, memory, MIB, RW));
	MUST(rig, rig_ioas_map(rig, MIB, memory, MIB, READ));
	MUST(rig, hwpt_alloc(rig, &hwpt));
	assert_int_equal(hwpt, 3);
	pt = hwpt;
	MUST(rig, rig_attach(rig, rig->device, &pt));
	MUST(rig, allow(rig));
	MUST(rig, map_any(rig, memory, MIB));
	MUST(rig, map_any(rig, memory + 2 * MIB, MIB));
	MUST(rig, rig_ioas_copy(rig, rig->ioas, 16 * MIB, 2 * MIB, 2 * MIB));
	MUST(rig, rig_bind(rig, second, rig->container, &id));
	assert_int_equal(id, 4);
	pt = rig->ioas;
	MUST(rig, rig_attach(rig, second, &pt));
	assert_int_equal(pt, 5);
	MUST(rig, get_dirty(rig, hwpt));
	MUST(rig, fault_alloc(rig, &faults));
	MUST(rig, rig_ioas_unmap(rig, 0, &all));
	MUST(rig, map_file(rig, fd, 0));
	MUST(rig, rig_ioas_copy(rig, rig->ioas, 0, MIB / 2, 4 * MIB));
	assert_int_equal(dmamap_soft_process(rig->system, 1), 0);
	MUST(rig, change_process(rig));
	assert_int_equal(dmamap_soft_process(rig->system, 0), 0);
	fail_nth = 0;
	assert_int_equal(rig_counters(rig).areas, 2);
	assert_int_equal(look(rig).charge[1].pinned, MIB);
	assert_int_equal(look(rig).charge[0].pinned, 0);
	rig_close(rig, &faults);
	rig_close(rig, &second);
	destroy.id = 5;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_DESTROY, &destroy), -ENOENT);
}

static void each_allocation(void **state)
{
	unsigned nth = 0;

	(void)state;
	do {
		char *memory = rig_memory(4 * MIB, true);
		int fd = memfd_create("file", MFD_CLOEXEC);
		struct dmamap_soft_charge charge;
		struct rig rig;

		assert_int_equal(ftruncate(fd, MIB), 0);
		start(&rig);
		/* There before memory runs out: nobody undoes that. */
		assert_int_equal(dmamap_soft_process(rig.system, 1), 0);
		assert_int_equal(dmamap_soft_process(rig.system, 0), 0);
		use(&rig, memory, fd, ++nth);
		rig_close(&rig, &rig.device);
		rig_close(&rig, &rig.container);
		assert_int_equal(dmamap_soft_charged(rig.system, 1, &charge), 0);
		assert_int_equal(charge.pinned | charge.locked | charge.user, 0);
		rig_stop(&rig);
		munmap(memory, 4 * MIB);
		close(fd);
	} while (failed);
	/* The calls above allocate many times. */
	assert_in_range(nth, 40, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
