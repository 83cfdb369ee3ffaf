/* SPDX-License-Identifier: MIT */
/*
 * Locked memory of IOMMUFD: three modes, each page once however often it is
 * mapped, charged when a page table first has it and until none has. Sources:
 * incr_user_locked_vm(), update_mm_locked_vm() and iopt_alloc_pages() in
 * drivers/iommu/iommufd/pages.c, iommufd_ioas_change_process() in ioas.c.
 */
#include <linux/capability.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "soft/soft.h"
#include "tests/soft/rig.h"

#define FIXED (IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)

static struct rlimit limit_before;
static struct __user_cap_data_struct caps_before[_LINUX_CAPABILITY_U32S_3];
static char *memory;

static void may_lock(bool may)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memcpy(data, caps_before, sizeof(data));
	if (!may)
		data[0].effective &= ~(1U << CAP_IPC_LOCK);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static void set_limit(uint64_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = limit_before.rlim_max};

	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static int start(void **state)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct dmamap_machine machine;
	static struct rig rig;

	dmamap_machine_default(&machine);
	assert_int_equal(syscall(SYS_capget, &header, caps_before), 0);
	getrlimit(RLIMIT_MEMLOCK, &limit_before);
	may_lock(false);
	memory = rig_memory(8 * MIB, true);
	rig_start(&rig, &machine);
	rig_cdev(&rig, true);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	struct dmamap_soft_charge charge;
	struct rig *rig = *state;

	rig_close(rig, &rig->device);
	rig_close(rig, &rig->container);
	/* All of it comes back, whatever the test did. */
	for (unsigned process = 0; process < 2; process++) {
		assert_int_equal(dmamap_soft_charged(rig->system, process, &charge), 0);
		assert_int_equal(charge.locked | charge.pinned | charge.user, 0);
	}
	rig_stop(rig);
	setrlimit(RLIMIT_MEMLOCK, &limit_before);
	may_lock(true);
	munmap(memory, 8 * MIB);
	return 0;
}

static void assert_charged(
	struct rig *rig, unsigned process, uint64_t locked, uint64_t user, uint64_t pinned)
{
	struct dmamap_soft_charge charge;

	assert_int_equal(dmamap_soft_charged(rig->system, process, &charge), 0);
	assert_int_equal(charge.locked, locked);
	assert_int_equal(charge.user, user);
	assert_int_equal(charge.pinned, pinned);
}

/* The user's counter, up to the limit; a refused mapping leaves nothing. */
static void user_mode(void **state)
{
	struct rig *rig = *state;
	uint64_t size = PAGE;

	set_limit(4 * MIB);
	assert_int_equal(rig_ioas_map(rig, 0, memory, 4 * MIB, RW), 0);
	assert_charged(rig, 0, 0, 4 * MIB, 4 * MIB);
	assert_gives(
		rig, rig_ioas_map(rig, 4 * MIB, memory + 4 * MIB, PAGE, RW), ENOMEM, "memlock");
	assert_int_equal(rig_counters(rig).areas, 1);
	/* The same memory again is another pinning of it. */
	assert_gives(rig, rig_ioas_map(rig, 4 * MIB, memory, PAGE, RW), ENOMEM, "memlock");
	/* What is not there comes before what is too much. */
	assert_gives(rig, rig_ioas_map(rig, 4 * MIB, NULL, 8 * MIB, RW), EFAULT, "hole");
	size = 4 * MIB;
	assert_int_equal(rig_ioas_unmap(rig, 0, &size), 0);
	assert_charged(rig, 0, 0, 0, 0);
	assert_gives(rig, rig_ioas_map(rig, 0, memory, 4 * MIB + PAGE, RW), ENOMEM, "memlock");
	assert_charged(rig, 0, 0, 0, 0);
	assert_int_equal(rig_ioas_map(rig, 0, memory, PAGE, READ), 0);
	assert_charged(rig, 0, 0, PAGE, PAGE);
}

/* With CAP_IPC_LOCK when it is mapped, nothing is counted but VmPin. */
static void free_mode(void **state)
{
	struct rig *rig = *state;

	set_limit(PAGE);
	may_lock(true);
	assert_int_equal(rig_ioas_map(rig, 0, memory, MIB, RW), 0);
	may_lock(false);
	assert_charged(rig, 0, 0, 0, MIB);
	assert_gives(rig, rig_ioas_map(rig, MIB, memory, MIB, RW), ENOMEM, "memlock");
	/* Every further table that it fills is free as well. */
	assert_int_equal(rig_ioas_copy(rig, rig->ioas, 0, MIB, 2 * MIB), 0);
	assert_charged(rig, 0, 0, 0, MIB);
}

/* RLIMIT_MODE 1: the process's counter, as type1. The mode itself needs a privilege to set. */
static void process_mode(void **state)
{
	struct rig *rig = *state;
	struct soft_file *file = soft_file_find(soft_system_from(rig->system), rig->container);

	soft_iommufd_from(file)->charge_process = true;
	soft_file_put(file);
	set_limit(MIB);
	assert_int_equal(rig_ioas_map(rig, 0, memory, MIB, RW), 0);
	assert_charged(rig, 0, MIB, 0, MIB);
	assert_gives(rig, rig_ioas_map(rig, MIB, memory, PAGE, RW), ENOMEM, "memlock");
	/* Process 1 has a counter of its own. */
	assert_int_equal(dmamap_soft_process(rig->system, 1), 0);
	assert_int_equal(rig_ioas_map(rig, MIB, memory, PAGE, RW), 0);
	assert_charged(rig, 1, PAGE, 0, PAGE);
	assert_int_equal(dmamap_soft_process(rig->system, 0), 0);
}

/* Pages are pinned when a page table first has them, and charged then. */
static void at_attach(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_ioctl(rig, rig->device, VFIO_DEVICE_DETACH_IOMMUFD_PT,
				 &(struct vfio_device_detach_iommufd_pt){.argsz = 8}),
		0);
	set_limit(2 * MIB);
	assert_int_equal(rig_ioas_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(rig_ioas_map(rig, MIB, memory, MIB, RW), 0);
	assert_int_equal(rig_ioas_map(rig, 2 * MIB, memory, PAGE, RW), 0);
	assert_charged(rig, 0, 0, 0, 0);
	/* The third area is too much: all is undone. */
	assert_gives(rig, rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), ENOMEM, "memlock");
	assert_charged(rig, 0, 0, 0, 0);
	assert_int_equal(rig_ioas_unmap(rig, 2 * MIB, &(uint64_t){PAGE}), 0);
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
	assert_charged(rig, 0, 0, 2 * MIB, 2 * MIB);
	assert_int_equal(rig_ioctl(rig, rig->device, VFIO_DEVICE_DETACH_IOMMUFD_PT,
				 &(struct vfio_device_detach_iommufd_pt){.argsz = 8}),
		0);
	assert_charged(rig, 0, 0, 0, 0);
}

/* kubevirt pull 17805: once for all page tables, IOASes and copies; again for another mapping. */
static void once(void **state)
{
	struct iommu_hwpt_alloc hwpt = {.size = sizeof(hwpt), .dev_id = 1};
	struct rig *rig = *state;
	uint32_t other = rig_ioas_alloc(rig);

	hwpt.pt_id = rig->ioas;
	set_limit(MIB);
	assert_int_equal(rig_ioas_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_HWPT_ALLOC, &hwpt), 0);
	assert_charged(rig, 0, 0, MIB, MIB);
	assert_int_equal(rig_ioas_copy(rig, rig->ioas, 0, MIB, MIB), 0);
	assert_int_equal(rig_ioas_copy(rig, rig->ioas, 0x80000, 0x80000, 4 * MIB), 0);
	assert_int_equal(rig_ioas_copy(rig, other, 0x40000, 0x40000, 0), 0);
	hwpt.pt_id = other;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_HWPT_ALLOC, &hwpt), 0);
	assert_charged(rig, 0, 0, MIB, MIB);
	/* The first half goes everywhere, but for what the other IOAS has of it. */
	assert_int_equal(rig_ioas_unmap(rig, 0, &(uint64_t){MIB}), 0);
	assert_charged(rig, 0, 0, MIB, MIB);
	assert_int_equal(rig_ioas_unmap(rig, MIB, &(uint64_t){MIB}), 0);
	assert_charged(rig, 0, 0, 0xc0000, 0xc0000);
	assert_int_equal(rig_ioas_unmap(rig, 4 * MIB, &(uint64_t){0x80000}), 0);
	assert_charged(rig, 0, 0, 0x40000, 0x40000);
	rig->ioas = other;
	assert_int_equal(rig_ioas_unmap(rig, 0, &(uint64_t){0x40000}), 0);
	assert_charged(rig, 0, 0, 0, 0);
}

/* iopt_area_split(): pieces of a mapping give back what is theirs. */
static void cuts(void **state)
{
	struct rig *rig = *state;
	uint64_t size = PAGE;

	rig_close(rig, &rig->device);
	rig_close(rig, &rig->container);
	rig_group(rig, "/dev/iommu", VFIO_TYPE1_IOMMU);
	assert_int_equal(rig_map(rig, 0, memory, 16 * PAGE, RW), 0);
	for (uint64_t page = 1; page < 16; page += 2) {
		size = PAGE;
		assert_int_equal(rig_unmap(rig, page * PAGE, &size, 0), 0);
		assert_charged(rig, 0, 0, (16 - page / 2 - 1) * PAGE, (16 - page / 2 - 1) * PAGE);
	}
	size = 0;
	assert_int_equal(rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(size, 8 * PAGE);
	rig_close(rig, &rig->device);
	rig_close(rig, &rig->group);
}

static int change(struct rig *rig)
{
	struct iommu_ioas_change_process user = {.size = sizeof(user)};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_CHANGE_PROCESS, &user);
}

/* openvmm pull 3868: files go to the calling process with their charge, addresses stay. */
static void change_process(void **state)
{
	struct iommu_ioas_change_process reserved = {.size = sizeof(reserved), .__reserved = 1};
	struct iommu_ioas_map_file file = {
		.size = sizeof(file), .flags = FIXED, .length = MIB, .iova = 0};
	struct rig *rig = *state;
	uint64_t size = PAGE;

	file.ioas_id = rig->ioas;
	file.fd = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file.fd, MIB), 0);
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_CHANGE_PROCESS, &reserved),
		EOPNOTSUPP, "reserved_field");
	assert_int_equal(change(rig), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &file), 0);
	assert_int_equal(rig_ioas_copy(rig, rig_ioas_alloc(rig), 0, MIB, 0), 0);
	assert_int_equal(rig_ioas_map(rig, MIB, memory, PAGE, RW), 0);
	assert_charged(rig, 0, 0, MIB + PAGE, MIB + PAGE);
	assert_int_equal(dmamap_soft_process(rig->system, 1), 0);
	assert_gives(rig, change(rig), EINVAL, "not_file");
	assert_int_equal(rig_ioas_unmap(rig, MIB, &size), 0);
	/* The new one is charged while the old one still is. */
	set_limit(2 * MIB - PAGE);
	assert_gives(rig, change(rig), ENOMEM, "memlock");
	assert_charged(rig, 0, 0, MIB, MIB);
	assert_charged(rig, 1, 0, MIB, 0);
	set_limit(2 * MIB);
	assert_int_equal(change(rig), 0);
	assert_charged(rig, 0, 0, MIB, 0);
	assert_charged(rig, 1, 0, MIB, MIB);
	assert_int_equal(change(rig), 0);
	assert_int_equal(dmamap_soft_process(rig->system, 0), 0);
	size = MIB;
	assert_int_equal(rig_ioas_unmap(rig, 0, &size), 0);
	assert_charged(rig, 1, 0, 0, 0);
	close(file.fd);
}

/* pfn_reader_user_pin(): what a process mapped cannot be pinned any more when it is gone. */
static void gone(void **state)
{
	struct vfio_device_detach_iommufd_pt detach = {.argsz = sizeof(detach)};
	struct iommu_ioas_map_file file = {
		.size = sizeof(file), .flags = FIXED, .length = MIB, .iova = GIB};
	struct rig *rig = *state;
	uint64_t size = MIB;

	file.ioas_id = rig->ioas;
	file.fd = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file.fd, MIB), 0);
	set_limit(2 * MIB);
	assert_int_equal(dmamap_soft_exit(rig->system, 1), -ESRCH);
	assert_int_equal(dmamap_soft_process(rig->system, 1), 0);
	assert_int_equal(dmamap_soft_exit(rig->system, 1), -ESRCH);
	assert_int_equal(rig_ioas_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &file), 0);
	assert_int_equal(dmamap_soft_process(rig->system, 0), 0);
	assert_int_equal(dmamap_soft_exit(rig->system, 1), 0);
	/* What is pinned stays so. The user is the same, whoever is gone. */
	assert_charged(rig, 0, 0, 2 * MIB, 0);
	assert_charged(rig, 1, 0, 2 * MIB, 0);
	assert_int_equal(rig_ioctl(rig, rig->device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach), 0);
	assert_charged(rig, 0, 0, 0, 0);
	assert_gives(
		rig, rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), EFAULT, "process_gone");
	assert_int_equal(rig_ioas_unmap(rig, 0, &size), 0);
	/* A file needs no process. */
	assert_int_equal(rig_attach(rig, rig->device, &(uint32_t){rig->ioas}), 0);
	assert_charged(rig, 0, 0, MIB, 0);
	/* Another one of that number starts with nothing. */
	assert_int_equal(dmamap_soft_process(rig->system, 1), 0);
	assert_charged(rig, 1, 0, MIB, 0);
	assert_int_equal(dmamap_soft_process(rig->system, 0), 0);
	close(file.fd);
}

/* Two threads map, copy and unmap beside each other: the counter comes back to nothing. */
struct churn {
	struct rig *rig;
	uint64_t base;
};

static void *churn(void *argument)
{
	const struct churn *is = argument;

	for (unsigned i = 0; i < 300; i++) {
		uint64_t size = 4 * MIB;

		if (rig_ioas_map(is->rig, is->base, memory, MIB, RW))
			continue;
		rig_ioas_copy(is->rig, is->rig->ioas, is->base, MIB / 2, is->base + MIB);
		rig_ioas_unmap(is->rig, is->base, &size);
	}
	return NULL;
}

static void beside(void **state)
{
	struct rig *rig = *state;
	struct churn churns[] = {{rig, GIB}, {rig, 2 * GIB}};
	pthread_t threads[2];

	set_limit(3 * MIB / 2);
	for (size_t i = 0; i < LENGTH(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, &churns[i]), 0);
	for (size_t i = 0; i < LENGTH(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(rig_ioas_unmap(rig, 0, &(uint64_t){UINT64_MAX}), 0);
	assert_charged(rig, 0, 0, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(user_mode, start, stop),
		cmocka_unit_test_setup_teardown(free_mode, start, stop),
		cmocka_unit_test_setup_teardown(process_mode, start, stop),
		cmocka_unit_test_setup_teardown(at_attach, start, stop),
		cmocka_unit_test_setup_teardown(once, start, stop),
		cmocka_unit_test_setup_teardown(cuts, start, stop),
		cmocka_unit_test_setup_teardown(change_process, start, stop),
		cmocka_unit_test_setup_teardown(gone, start, stop),
		cmocka_unit_test_setup_teardown(beside, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
