/* SPDX-License-Identifier: MIT */
/*
 * The way into /dev/iommu: commands by number and size, objects by id, and its
 * options. Source: drivers/iommu/iommufd/main.c.
 */
#include "tests/soft/rig.h"

static int start(void **state)
{
	static struct rig rig;

	rig_start(&rig, NULL);
	rig.container = rig_open(&rig, "/dev/iommu");
	assert_true(rig.container >= 0);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state);
	return 0;
}

/* iommufd_fops_ioctl(), top to bottom. */
static void dispatch(void **state)
{
	struct {
		struct iommu_ioas_alloc alloc;
		uint32_t more[2];
	} user = {.alloc.size = sizeof(user)};
	struct rig *rig = *state;
	int fd = rig->container;

	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_IOAS_ALLOC, NULL), EFAULT, "pointer");
	/* Known by number with another direction or type, after its size; unknown by number. */
	assert_gives(
		rig, rig_ioctl(rig, fd, _IOWR(IOMMUFD_TYPE, 0x81, int), &user), ENOTTY, "request");
	assert_gives(rig, rig_ioctl(rig, fd, _IO('x', 0x81), NULL), EFAULT, "pointer");
	assert_gives(rig, rig_ioctl(rig, fd, _IO(IOMMUFD_TYPE, 0x96), NULL), ENOTTY, "request");
	assert_gives(rig, rig_ioctl(rig, fd, _IO(IOMMUFD_TYPE, 0x50), &user), ENOTTY, "request");
	assert_gives(rig, rig_ioctl(rig, fd, _IO(IOMMUFD_TYPE, 0xa5), &user), ENOTTY, "request");
	user.alloc.size = 11;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_IOAS_ALLOC, &user), EINVAL, "argsz");
	user.alloc.size = sizeof(user);
	user.more[1] = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_IOAS_ALLOC, &user), E2BIG, "tail");
	user.more[1] = 0;
	user.alloc.flags = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_IOAS_ALLOC, &user), EOPNOTSUPP, "flags");
	user.alloc.flags = 0;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_IOAS_ALLOC, &user), 0);
	assert_int_equal(user.alloc.out_ioas_id, 1);
	/* A size that the structure does not have is a fault where memory ends. */
	user.alloc.size = 0x7fffffff;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_IOAS_ALLOC, &user), E2BIG, "tail");
}

/* cmd_length of the kernel's selftest: each command's least size, and what may follow it. */
static void lengths(void **state)
{
	static const struct {
		unsigned long request;
		uint32_t least, size;
	} rows[] = {
		{IOMMU_DESTROY, 8, 8},
		{IOMMU_IOAS_ALLOC, 12, 12},
		{IOMMU_IOAS_ALLOW_IOVAS, 24, 24},
		{IOMMU_IOAS_COPY, 40, 40},
		{IOMMU_IOAS_IOVA_RANGES, 32, 32},
		{IOMMU_IOAS_MAP, 40, 40},
		{IOMMU_IOAS_UNMAP, 24, 24},
		{IOMMU_OPTION, 24, 24},
		{IOMMU_VFIO_IOAS, 12, 12},
		{IOMMU_HWPT_ALLOC, 24, 48},
		{IOMMU_GET_HW_INFO, 32, 40},
		{IOMMU_HWPT_SET_DIRTY_TRACKING, 16, 16},
		{IOMMU_HWPT_GET_DIRTY_BITMAP, 48, 48},
		{IOMMU_HWPT_INVALIDATE, 32, 32},
		{IOMMU_FAULT_QUEUE_ALLOC, 16, 16},
		{IOMMU_IOAS_MAP_FILE, 40, 40},
		{IOMMU_VIOMMU_ALLOC, 24, 40},
		{IOMMU_VDEVICE_ALLOC, 24, 24},
		{IOMMU_IOAS_CHANGE_PROCESS, 8, 8},
		{IOMMU_VEVENTQ_ALLOC, 28, 32},
		{IOMMU_HW_QUEUE_ALLOC, 40, 40},
		{IOMMU_IOAS_NOIOMMU_GET_PA, 40, 40},
	};
	struct rig *rig = *state;

	assert_int_equal(LENGTH(rows), _IOC_NR(IOMMU_IOAS_NOIOMMU_GET_PA) - IOMMUFD_CMD_BASE + 1);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		union {
			uint32_t size;
			uint8_t bytes[64];
		} user = {.size = rows[i].least - 1};
		int exact, longer;

		assert_gives(rig, rig_ioctl(rig, rig->container, rows[i].request, &user), EINVAL,
			"argsz");
		user.size = rows[i].size + 1;
		user.bytes[rows[i].size] = 0xff;
		assert_gives(
			rig, rig_ioctl(rig, rig->container, rows[i].request, &user), E2BIG, "tail");
		user.size = rows[i].size;
		exact = rig_ioctl(rig, rig->container, rows[i].request, &user);
		memset(&user, 0, sizeof(user));
		user.size = rows[i].size + 1;
		longer = rig_ioctl(rig, rig->container, rows[i].request, &user);
		assert_int_equal(exact, longer);
		assert_int_not_equal(exact, -ENOTTY);
	}
}

/* Linux 6.12 has no command behind the fault queue's, and reads nothing of one. */
static void before_files(void **state)
{
	struct iommu_ioas_change_process user = {.size = sizeof(user)};
	struct dmamap_machine machine;
	struct rig rig;

	(void)state;
	dmamap_machine_default(&machine);
	machine.as_kernel = DMAMAP_KERNEL(6, 12);
	rig_start(&rig, &machine);
	rig.container = rig_open(&rig, "/dev/iommu");
	assert_gives(&rig, rig_ioctl(&rig, rig.container, IOMMU_IOAS_CHANGE_PROCESS, &user), ENOTTY,
		"request");
	assert_gives(
		&rig, rig_ioctl(&rig, rig.container, IOMMU_IOAS_MAP_FILE, NULL), ENOTTY, "request");
	assert_gives(&rig, rig_ioctl(&rig, rig.container, IOMMU_FAULT_QUEUE_ALLOC, NULL), EFAULT,
		"pointer");
	rig_stop(&rig);
}

/* The lowest free id is taken; a bad answer pointer leaves no object behind. */
static void ids(void **state)
{
	struct iommu_destroy destroy = {.size = sizeof(destroy), .id = 2};
	struct iommu_ioas_alloc *read_only =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig *rig = *state;
	int fd = rig->container;

	for (uint32_t i = 1; i <= 20; i++)
		assert_int_equal(rig_ioas_alloc(rig), i);
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_DESTROY, &destroy), 0);
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_DESTROY, &destroy), ENOENT, "object_unknown");
	destroy.id = 0;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_DESTROY, &destroy), ENOENT, "object_unknown");
	read_only->size = sizeof(*read_only);
	mprotect(read_only, PAGE, PROT_READ);
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_IOAS_ALLOC, read_only), EFAULT, "pointer");
	assert_int_equal(rig_ioas_alloc(rig), 2);
	munmap(read_only, PAGE);
}

/* CAP_SYS_RESOURCE of this process. */
static bool may_set_limits(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long long effective = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	fclose(file);
	return effective & 1ULL << 24;
}

static void options(void **state)
{
	struct iommu_option option = {.size = sizeof(option), .op = IOMMU_OPTION_OP_GET};
	struct rig *rig = *state;
	int fd = rig->container;

	option.val64 = 9;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_OPTION, &option), 0);
	assert_int_equal(option.val64, 0);
	option.__reserved = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), EOPNOTSUPP, "reserved_field");
	option.__reserved = 0;
	option.object_id = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), EOPNOTSUPP, "reserved_field");
	option.object_id = 0;
	option.op = 7;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), EOPNOTSUPP, "value");
	option.option_id = 7;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), EOPNOTSUPP, "value");
	option.option_id = IOMMU_OPTION_HUGE_PAGES;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), ENOENT, "object_unknown");
	option = (struct iommu_option){
		.size = sizeof(option), .op = IOMMU_OPTION_OP_SET, .val64 = 1};
	if (!may_set_limits()) {
		assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), EPERM, "capability");
		return;
	}
	option.val64 = 2;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), EINVAL, "value");
	option.val64 = 1;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_OPTION, &option), 0);
	rig_ioas_alloc(rig);
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_OPTION, &option), EBUSY, "objects_exist");
	option.op = IOMMU_OPTION_OP_GET;
	option.val64 = 0;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_OPTION, &option), 0);
	assert_int_equal(option.val64, 1);
}

/* Which IOAS the VFIO calls use. */
static void vfio_ioas(void **state)
{
	struct iommu_vfio_ioas user = {.size = sizeof(user), .op = IOMMU_VFIO_IOAS_GET};
	struct iommu_destroy destroy = {.size = sizeof(destroy)};
	struct rig *rig = *state;
	int fd = rig->container;

	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), ENODEV, "no_compat_ioas");
	assert_gives(rig, rig_map(rig, 0, NULL, PAGE, RW), ENODEV, "no_compat_ioas");
	assert_gives(
		rig, rig_ioctl(rig, fd, VFIO_SET_IOMMU, (void *)3UL), ENODEV, "no_compat_ioas");
	assert_gives(rig, rig_ioctl(rig, fd, VFIO_SET_IOMMU, (void *)6UL), EINVAL, "iommu_type");
	assert_gives(rig, rig_ioctl(rig, fd, VFIO_CHECK_EXTENSION, (void *)4UL), ENODEV,
		"no_compat_ioas");
	user.op = IOMMU_VFIO_IOAS_SET;
	user.ioas_id = 5;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), ENOENT, "object_unknown");
	destroy.id = user.ioas_id = rig_ioas_alloc(rig);
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), 0);
	user.op = IOMMU_VFIO_IOAS_GET;
	user.ioas_id = 0;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), 0);
	assert_int_equal(user.ioas_id, destroy.id);
	/* To be the VFIO calls' IOAS is no use: it can be destroyed, and is none any more. */
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_DESTROY, &destroy), 0);
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), ENODEV, "no_compat_ioas");
	user.op = IOMMU_VFIO_IOAS_CLEAR;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), 0);
	user.op = 3;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), EOPNOTSUPP, "value");
	user.__reserved = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VFIO_IOAS, &user), EOPNOTSUPP, "reserved_field");
}

/* iommufd_fops_mmap(), and files that cannot be read. */
static void no_mmap(void **state)
{
	static const struct {
		size_t length;
		int prot, flags, error;
		const char *reason;
	} rows[] = {
		/* mm/mmap.c has made whole pages of the length before (seen on 7.3.4). */
		{PAGE + 1, PROT_READ, MAP_SHARED, ENXIO, "no_io"},
		{PAGE, PROT_READ, MAP_PRIVATE, EINVAL, "mmap_shared"},
		{PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, EPERM, "no_io"},
		{PAGE, PROT_READ, MAP_SHARED, ENXIO, "no_io"},
	};
	struct rig *rig = *state;
	const struct dmamap_system_ops *ops = rig->system->ops;
	char byte;
	void *out;
	int fd;

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_gives(rig,
			ops->mmap(rig->system, NULL, rows[i].length, rows[i].prot, rows[i].flags,
				rig->container, 0, &out),
			rows[i].error, rows[i].reason);
	assert_gives(rig, ops->read(rig->system, rig->container, &byte, 1), EINVAL, "no_io");
	fd = rig_open(rig, "/dev/vfio/vfio");
	assert_gives(rig, ops->mmap(rig->system, NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0, &out),
		ENODEV, "no_io");
	assert_gives(rig, ops->pwrite(rig->system, fd, &byte, 1, 0), EINVAL, "no_io");
	rig_close(rig, &fd);
}

/* A device keeps its IOMMUFD after the descriptor is closed, and DMA goes on. */
static void outlives_its_descriptor(void **state)
{
	char *memory = rig_memory(PAGE, true);
	struct dmamap_access *access;
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(rig_ioas_map(&rig, 0, memory, PAGE, RW), 0);
	rig_close(&rig, &rig.container);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_write(access, 0, "z", 1, NULL), 0);
	assert_int_equal(memory[0], 'z');
	dmamap_access_destroy(access);
	rig_close(&rig, &rig.device);
	assert_int_equal(rig_counters(&rig).areas, 0);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dispatch, start, stop),
		cmocka_unit_test_setup_teardown(lengths, start, stop),
		cmocka_unit_test(before_files),
		cmocka_unit_test_setup_teardown(ids, start, stop),
		cmocka_unit_test_setup_teardown(options, start, stop),
		cmocka_unit_test_setup_teardown(vfio_ioas, start, stop),
		cmocka_unit_test_setup_teardown(no_mmap, start, stop),
		cmocka_unit_test(outlives_its_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
