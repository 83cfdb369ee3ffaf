/* SPDX-License-Identifier: MIT */
/*
 * Locked memory of type1: who is charged how much, when that is refused, and
 * that all of it comes back. The limits are this process's own, and CAP_IPC_LOCK
 * is put down for the tests that need to be refused. Sources:
 * vfio_pin_pages_remote() and vfio_change_dma_owner() in
 * drivers/vfio/vfio_iommu_type1.c, __account_locked_vm() in mm/util.c.
 */
#include <linux/capability.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "soft/account.h"
#include "tests/soft/rig.h"

static struct rlimit limit_before;
static struct __user_cap_data_struct caps_before[_LINUX_CAPABILITY_U32S_3];

static void set_caps(const struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static void may_lock(bool may)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memcpy(data, caps_before, sizeof(data));
	if (!may)
		data[0].effective &= ~(1U << CAP_IPC_LOCK);
	set_caps(data);
}

static void set_limit(uint64_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = limit_before.rlim_max};

	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

/* A machine of two groups behind two IOMMUs, whose limit is this process's. */
static void start_rig(struct rig *rig)
{
	struct dmamap_machine_iommu iommus[2];
	struct dmamap_machine machine;

	dmamap_machine_default(&machine);
	iommus[0] = iommus[1] = machine.iommus[0];
	iommus[1].aperture_bits = 39;
	rig_start_iommus(rig, iommus, 2, machine.as_kernel, DMAMAP_MEMLOCK_PROCESS);
	rig_group(rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
}

static int start(void **state)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	static struct rig rig;

	assert_int_equal(syscall(SYS_capget, &header, caps_before), 0);
	getrlimit(RLIMIT_MEMLOCK, &limit_before);
	may_lock(false);
	start_rig(&rig);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state);
	setrlimit(RLIMIT_MEMLOCK, &limit_before);
	may_lock(true);
	return 0;
}

static uint64_t locked(struct rig *rig)
{
	struct dmamap_soft_charge charge;

	assert_int_equal(dmamap_soft_charged(rig->system, 0, &charge), 0);
	assert_int_equal(charge.pinned, 0);
	assert_int_equal(charge.user, 0);
	return charge.locked;
}

/* cloud-hypervisor 165: up to the limit, not a page more, and again after an unmap. */
static void up_to_the_limit(void **state)
{
	struct rig *rig = *state;
	char *memory = rig_memory(4 * MIB, false);
	uint64_t size = 4 * MIB;

	set_limit(4 * MIB);
	assert_int_equal(rig_map(rig, 0, memory, 4 * MIB, RW), 0);
	assert_int_equal(locked(rig), 4 * MIB);
	assert_gives(rig, rig_map(rig, 4 * MIB, memory, PAGE, RW), ENOMEM, "memlock");
	assert_string_equal(rig_sentence(rig),
		"4 KiB cannot be locked: the process may lock 4 MiB (RLIMIT_MEMLOCK, no "
		"CAP_IPC_LOCK) and is charged 4 MiB; each container and IOAS counts for itself");
	assert_int_equal(locked(rig), 4 * MIB);
	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(locked(rig), 0);
	assert_gives(rig, rig_map(rig, 0, memory, 4 * MIB + PAGE, RW), ENOMEM, "memlock");
	assert_int_equal(locked(rig), 0);
	assert_int_equal(rig_map(rig, 0, memory, 4 * MIB, RW), 0);
	/* A limit counts in whole pages, and as it is at the call. */
	set_limit(4 * MIB + 2 * PAGE - 1);
	assert_int_equal(rig_map(rig, 4 * MIB, memory, PAGE, RW), 0);
	assert_gives(rig, rig_map(rig, 5 * MIB, memory, PAGE, RW), ENOMEM, "memlock");
	/* One that is lower than the charge. */
	set_limit(0);
	assert_gives(rig, rig_map(rig, 5 * MIB, memory, PAGE, RW), ENOMEM, "memlock");
}

/* Who has CAP_IPC_LOCK is counted, and not refused. */
static void with_the_capability(void **state)
{
	struct rig *rig = *state;
	char *memory = rig_memory(MIB, false);

	if (!(caps_before[0].effective & 1U << CAP_IPC_LOCK)) {
		printf("this process has no CAP_IPC_LOCK\n");
		skip();
	}
	set_limit(PAGE);
	may_lock(true);
	assert_int_equal(rig_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(locked(rig), MIB);
	may_lock(false);
	assert_gives(rig, rig_map(rig, MIB, memory, PAGE, RW), ENOMEM, "memlock");
}

/* A machine without a limit counts as well. */
static void without_a_limit(void **state)
{
	struct dmamap_machine machine;
	struct rig rig;

	(void)state;
	set_limit(PAGE);
	dmamap_machine_default(&machine);
	machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
	rig_start(&rig, &machine);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_int_equal(rig_map(&rig, 0, rig_memory(MIB, false), MIB, RW), 0);
	assert_int_equal(locked(&rig), MIB);
	rig_stop(&rig);
}

/* Pages are charged in their order: what comes first, the limit or the fault, is said. */
static void fault_or_limit(void **state)
{
	struct rig *rig = *state;
	char *memory = rig_memory(1024 * PAGE, false);
	static const struct {
		unsigned hole, limit;
		int error;
	} rows[] = {
		{4, 8, EFAULT},
		{4, 5, EFAULT},
		{4, 4, EFAULT},
		{4, 3, ENOMEM},
		{1, 0, ENOMEM},
		{0, 0, EFAULT},
		/* Past the first 512 pages, which are pinned together. */
		{600, 599, ENOMEM},
		{600, 600, EFAULT},
		{512, 511, ENOMEM},
		{512, 512, EFAULT},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		mprotect(memory + rows[i].hole * PAGE, PAGE, PROT_NONE);
		set_limit(rows[i].limit * PAGE);
		assert_gives(rig, rig_map(rig, 0, memory, 1024 * PAGE, RW), rows[i].error,
			rows[i].error == ENOMEM ? "memlock" : "memory_access");
		assert_int_equal(locked(rig), 0);
		mprotect(memory + rows[i].hole * PAGE, PAGE, PROT_READ | PROT_WRITE);
	}
}

/* The same within one file mapping, whose end only the fault tells. */
static void end_of_file(void **state)
{
	struct rig *rig = *state;
	int fd = memfd_create("short", 0);
	char *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	set_limit(4 * PAGE);
	assert_gives(rig, rig_map(rig, 0, memory, 8 * PAGE, RW), EFAULT, "memory_fault");
	set_limit(3 * PAGE);
	assert_gives(rig, rig_map(rig, 0, memory, 8 * PAGE, RW), ENOMEM, "memlock");
	assert_int_equal(locked(rig), 0);
	munmap(memory, 8 * PAGE);
	close(fd);
}

/* BARs are not charged, nor are they where memory follows them. */
static void bars_are_free(void **state)
{
	struct rig *rig = *state;
	char *bar = rig_bar(rig, 0, 16 * MIB, 0), *memory;

	set_limit(2 * PAGE);
	assert_int_equal(rig_map(rig, 0, bar, 16 * MIB, RW), 0);
	assert_int_equal(locked(rig), 0);
	/* Half of the BAR's mapping becomes memory: too much of it, then not. */
	memory = bar + 8 * MIB;
	assert_int_equal(rig->system->ops->munmap(rig->system, memory, 8 * MIB), 0);
	assert_ptr_equal(mmap(memory, 4 * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		memory);
	assert_gives(rig, rig_map(rig, GIB, bar, 8 * MIB + 3 * PAGE, RW), ENOMEM, "memlock");
	assert_int_equal(rig_map(rig, GIB, bar, 8 * MIB + 2 * PAGE, RW), 0);
	assert_int_equal(locked(rig), 2 * PAGE);
}

/* Memory that was declared counts as if it were there. */
static void declared_counts(void **state)
{
	struct rig *rig = *state;
	char *memory = rig_memory(4 * MIB, false);

	assert_int_equal(dmamap_soft_declare(rig->system, memory, 4 * MIB, -1, 21), 0);
	set_limit(MIB);
	assert_gives(rig, rig_map(rig, 0, memory, 2 * MIB, RW), ENOMEM, "memlock");
	assert_int_equal(rig_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(locked(rig), MIB);
}

/* kubevirt pull 17805: two containers charge twice. */
static void two_containers(void **state)
{
	struct rig *rig = *state;
	struct rig other = *rig;
	char *memory = rig_memory(MIB, false);

	set_limit(MIB + 512 * KIB);
	other.container = rig_open(&other, "/dev/vfio/vfio");
	other.group = rig_open(&other, "/dev/vfio/8");
	assert_int_equal(
		rig_ioctl(&other, other.group, VFIO_GROUP_SET_CONTAINER, &other.container), 0);
	assert_int_equal(rig_ioctl(&other, other.container, VFIO_SET_IOMMU, (void *)3UL), 0);
	assert_int_equal(rig_map(rig, 0, memory, MIB, RW), 0);
	assert_gives(rig, rig_map(&other, 0, memory, MIB, RW), ENOMEM, "memlock");
	assert_string_equal(rig_sentence(rig),
		"1 MiB cannot be locked: the process may lock 1536 KiB (RLIMIT_MEMLOCK, no "
		"CAP_IPC_LOCK) and is charged 1 MiB; each container and IOAS counts for itself");
	set_limit(2 * MIB);
	assert_int_equal(rig_map(&other, 0, memory, MIB, RW), 0);
	assert_int_equal(locked(rig), 2 * MIB);
	rig_close(&other, &other.group);
	assert_int_equal(locked(rig), MIB);
	rig_close(&other, &other.container);
}

/* Two domains of one container charge once, whether they were there before or come later. */
static void two_domains(void **state)
{
	struct rig *rig = *state;
	char *memory = rig_memory(2 * MIB, false);
	int second = rig_open(rig, "/dev/vfio/8");

	set_limit(2 * MIB);
	assert_int_equal(rig_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(rig_ioctl(rig, second, VFIO_GROUP_SET_CONTAINER, &rig->container), 0);
	assert_int_equal(locked(rig), MIB);
	assert_int_equal(rig_map(rig, MIB, memory + MIB, MIB, RW), 0);
	assert_int_equal(locked(rig), 2 * MIB);
	assert_gives(rig, rig_map(rig, 2 * MIB, memory, PAGE, RW), ENOMEM, "memlock");
	rig_close(rig, &second);
	assert_int_equal(locked(rig), 2 * MIB);
}

/* The last group takes the charge with it, invalid addresses or not. */
static void container_gone(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_map(rig, 0, rig_memory(MIB, false), MIB, RW), 0);
	assert_int_equal(rig_map(rig, MIB, rig_memory(MIB, false), MIB, RW), 0);
	assert_int_equal(rig_unmap(rig, 0, &(uint64_t){MIB}, VFIO_DMA_UNMAP_FLAG_VADDR), 0);
	rig_close(rig, &rig->device);
	rig_close(rig, &rig->group);
	assert_int_equal(locked(rig), 0);
}

/* What is refused for another cause is not charged. */
static void refused_otherwise(void **state)
{
	struct rig *rig = *state;
	char *memory = rig_memory(MIB, false);

	assert_int_equal(rig_map(rig, 0, memory, PAGE, RW), 0);
	assert_gives(rig, rig_map(rig, 0, memory, MIB, RW), EEXIST, "overlap");
	assert_gives(rig, rig_map(rig, 0xfee00000, memory, MIB, RW), EINVAL, "reserved");
	assert_int_equal(locked(rig), PAGE);
}

/* A new owner needs room for all of it; else nothing has changed. */
static void new_owner(void **state)
{
	struct rig *rig = *state;
	char *memory = rig_memory(MIB, false);
	struct dmamap_soft_charge charge;

	set_limit(MIB);
	assert_int_equal(rig_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(rig_unmap(rig, 0, &(uint64_t){MIB}, VFIO_DMA_UNMAP_FLAG_VADDR), 0);
	assert_int_equal(dmamap_soft_process(rig->system, 5), 0);
	assert_int_equal(rig_map(rig, MIB, memory, PAGE, RW), 0);
	assert_gives(rig, rig_map(rig, 0, memory, MIB, VFIO_DMA_MAP_FLAG_VADDR), ENOMEM, "memlock");
	dmamap_soft_charged(rig->system, 5, &charge);
	assert_int_equal(charge.locked, PAGE);
	assert_int_equal(locked(rig), MIB);
	assert_int_equal(rig_unmap(rig, MIB, &(uint64_t){PAGE}, 0), 0);
	assert_int_equal(rig_map(rig, 0, memory, MIB, VFIO_DMA_MAP_FLAG_VADDR), 0);
	assert_int_equal(locked(rig), 0);
	/* The process itself again: no charge is asked, so that no limit matters. */
	set_limit(0);
	assert_int_equal(rig_unmap(rig, 0, &(uint64_t){MIB}, VFIO_DMA_UNMAP_FLAG_VADDR), 0);
	assert_int_equal(rig_map(rig, 0, memory, MIB, VFIO_DMA_MAP_FLAG_VADDR), 0);
	assert_int_equal(dmamap_soft_process(rig->system, 0), 0);
	assert_int_equal(rig_unmap(rig, 0, &(uint64_t){MIB}, 0), 0);
	dmamap_soft_charged(rig->system, 5, &charge);
	assert_int_equal(charge.locked, 0);
}

/* Calls that are about no soft system, and processes that never called. */
static void processes(void **state)
{
	struct rig *rig = *state;
	struct dmamap_soft_charge charge;

	assert_int_equal(dmamap_soft_process(NULL, 1), -EINVAL);
	assert_int_equal(dmamap_soft_charged(NULL, 1, &charge), -EINVAL);
	assert_int_equal(dmamap_soft_charged(rig->system, 77, &charge), 0);
	assert_int_equal(charge.locked, 0);
}

/* Threads start as process 0; two containers charge it at once, exactly. */
struct worker {
	struct rig rig;
	char *memory;
};

static void *map_and_unmap(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < 2000; i++) {
		uint64_t size = 3 * PAGE;
		int error = rig_map(&worker->rig, (i % 7) * MIB, worker->memory, 3 * PAGE, RW);

		if (!error && i % 7)
			rig_unmap(&worker->rig, (i % 7) * MIB, &size, 0);
	}
	return NULL;
}

static void at_once(void **state)
{
	struct rig *rig = *state;
	struct worker workers[2] = {{.rig = *rig}, {.rig = *rig}};
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		workers[i].memory = rig_memory(3 * PAGE, true);
	workers[1].rig.container = rig_open(rig, "/dev/vfio/vfio");
	workers[1].rig.group = rig_open(rig, "/dev/vfio/8");
	assert_int_equal(rig_ioctl(rig, workers[1].rig.group, VFIO_GROUP_SET_CONTAINER,
				 &workers[1].rig.container),
		0);
	assert_int_equal(rig_ioctl(rig, workers[1].rig.container, VFIO_SET_IOMMU, (void *)3UL), 0);
	set_limit(10 * PAGE);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, map_and_unmap, &workers[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	/* Each keeps the mapping at 0, and both find no room for more than one beside them. */
	assert_int_equal(locked(rig), 6 * PAGE);
	rig_close(rig, &workers[1].rig.group);
	rig_close(rig, &workers[1].rig.container);
	assert_int_equal(locked(rig), 3 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(up_to_the_limit, start, stop),
		cmocka_unit_test_setup_teardown(with_the_capability, start, stop),
		cmocka_unit_test_setup_teardown(without_a_limit, start, stop),
		cmocka_unit_test_setup_teardown(fault_or_limit, start, stop),
		cmocka_unit_test_setup_teardown(end_of_file, start, stop),
		cmocka_unit_test_setup_teardown(bars_are_free, start, stop),
		cmocka_unit_test_setup_teardown(declared_counts, start, stop),
		cmocka_unit_test_setup_teardown(two_containers, start, stop),
		cmocka_unit_test_setup_teardown(two_domains, start, stop),
		cmocka_unit_test_setup_teardown(container_gone, start, stop),
		cmocka_unit_test_setup_teardown(refused_otherwise, start, stop),
		cmocka_unit_test_setup_teardown(new_owner, start, stop),
		cmocka_unit_test_setup_teardown(processes, start, stop),
		cmocka_unit_test_setup_teardown(at_once, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
