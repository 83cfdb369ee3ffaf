/* SPDX-License-Identifier: MIT */
/*
 * VDUSE's requests: each with the rules of drivers/vdpa/vdpa_user/vduse_dev.c in
 * Linux 7.3.4, in the function that a test's comment names.
 */
#include <fcntl.h>
#include <sys/eventfd.h>

#include "dmamap/vdpa.h"
#include "soft/vduse.h"
#include "tests/soft/vduse_daemon.h"

union config {
	struct vduse_dev_config is;
	uint8_t bytes[sizeof(struct vduse_dev_config) + 64];
};

/* A block device of two queues that can be made. */
static union config usual(const char *name)
{
	union config config = {
		.is.device_id = VIRTIO_ID_BLOCK,
		.is.features = PLAIN,
		.is.vq_num = 2,
		.is.vq_align = 4096,
		.is.config_size = 64,
	};

	strcpy(config.is.name, name);
	return config;
}

struct setup {
	struct rig rig;
	int control;
	int device; /* "d", open; -1: it is not made */
};

static int start(void **state)
{
	static struct setup setup;

	rig_start(&setup.rig, NULL);
	setup.control = rig_open(&setup.rig, "/dev/vduse/control");
	assert_true(setup.control >= 0);
	setup.device = -1;
	*state = &setup;
	return 0;
}

static int stop(void **state)
{
	struct setup *setup = *state;

	rig_close(&setup->rig, &setup->device);
	rig_close(&setup->rig, &setup->control);
	rig_stop(&setup->rig);
	return 0;
}

static int control(struct setup *setup, unsigned long request, void *argument)
{
	return rig_ioctl(&setup->rig, setup->control, request, argument);
}

static int device(struct setup *setup, unsigned long request, void *argument)
{
	return rig_ioctl(&setup->rig, setup->device, request, argument);
}

static int create(struct setup *setup, const union config *config)
{
	return control(setup, VDUSE_CREATE_DEV, (void *)(uintptr_t)config);
}

static int destroy(struct setup *setup, const char *name)
{
	char all[VDUSE_NAME_MAX] = "";

	strcpy(all, name);
	return control(setup, VDUSE_DESTROY_DEV, all);
}

static void version_is(struct setup *setup, uint64_t version)
{
	assert_int_equal(control(setup, VDUSE_SET_API_VERSION, &version), 0);
}

/* "d" is made and opened. */
static void make(struct setup *setup, const union config *config)
{
	assert_int_equal(create(setup, config), 0);
	setup->device = rig_open(&setup->rig, "/dev/vduse/d");
	assert_true(setup->device >= 0);
}

static void make_usual(struct setup *setup)
{
	union config config = usual("d");

	make(setup, &config);
}

static void set_up_queues(struct setup *setup, unsigned n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct vduse_vq_config queue = {.index = i, .max_size = 8};

		assert_int_equal(device(setup, VDUSE_VQ_SETUP, &queue), 0);
	}
}

/* ----------------------------------------------------------- the control file */

/* vduse_ioctl(): GET on a fresh file switches it to the newest version. */
static void a_file_that_asks_for_the_version_has_the_newest(void **state)
{
	struct setup *setup = *state;
	union config config = usual("d");
	uint64_t version = 7;

	assert_int_equal(control(setup, VDUSE_GET_API_VERSION, &version), 0);
	assert_int_equal(version, 1);
	assert_gives(&setup->rig, create(setup, &config), EINVAL, "vduse_value");
	config.is.ngroups = config.is.nas = 1;
	assert_int_equal(create(setup, &config), 0);
	assert_int_equal(destroy(setup, "d"), 0);
}

/* vduse_ioctl(): who never asked has version 0, which later GETs tell. */
static void a_file_that_never_asked_has_version_0(void **state)
{
	struct setup *setup = *state;
	union config config = usual("d");
	uint64_t version = 7;

	config.is.nas = 1;
	assert_gives(&setup->rig, create(setup, &config), EINVAL, "vduse_value");
	assert_int_equal(control(setup, VDUSE_GET_API_VERSION, &version), 0);
	assert_int_equal(version, 0);
}

static void the_version_is_one_file_s_own(void **state)
{
	struct setup *setup = *state;
	int other = rig_open(&setup->rig, "/dev/vduse/control");
	uint64_t version = 2;

	assert_gives(&setup->rig, control(setup, VDUSE_SET_API_VERSION, &version), EINVAL,
		"vduse_version");
	version_is(setup, 0);
	assert_int_equal(rig_ioctl(&setup->rig, other, VDUSE_GET_API_VERSION, &version), 0);
	assert_int_equal(version, 1);
	assert_int_equal(control(setup, VDUSE_GET_API_VERSION, &version), 0);
	assert_int_equal(version, 0);
	rig_close(&setup->rig, &other);
}

static void features_are_the_two_that_there_are(void **state)
{
	struct setup *setup = *state;
	uint64_t features = 0;

	assert_int_equal(control(setup, VDUSE_GET_FEATURES, &features), 0);
	assert_int_equal(features, 3);
	assert_int_equal(control(setup, VDUSE_SET_FEATURES, &features), 0);
	features = 4;
	assert_gives(&setup->rig, control(setup, VDUSE_SET_FEATURES, &features), EINVAL,
		"vduse_features");
}

/* vduse_ioctl(): unknown requests are EINVAL there, and ENOTTY at a device. */
static void unknown_requests(void **state)
{
	struct setup *setup = *state;
	uint64_t nothing = 0;

	assert_gives(&setup->rig, control(setup, VDUSE_VQ_GET_INFO, &nothing), EINVAL, "request");
	make_usual(setup);
	assert_gives(&setup->rig, device(setup, VDUSE_GET_FEATURES, &nothing), ENOTTY, "request");
	/* Of a device of version 0 there is no newer one. */
	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_GET_FD2, &nothing), ENOTTY, "request");
	assert_gives(&setup->rig,
		(int)setup->rig.system->ops->read(
			setup->rig.system, setup->control, &nothing, sizeof(nothing)),
		EINVAL, "no_io");
}

static void bad_pointers_are_told(void **state)
{
	static const unsigned long at_control[] = {VDUSE_GET_API_VERSION, VDUSE_SET_API_VERSION,
		VDUSE_CREATE_DEV, VDUSE_DESTROY_DEV, VDUSE_GET_FEATURES, VDUSE_SET_FEATURES};
	static const unsigned long at_device[] = {VDUSE_IOTLB_GET_FD, VDUSE_DEV_GET_FEATURES,
		VDUSE_DEV_SET_CONFIG, VDUSE_VQ_SETUP, VDUSE_VQ_GET_INFO, VDUSE_VQ_SETUP_KICKFD,
		VDUSE_VQ_INJECT_IRQ, VDUSE_IOTLB_REG_UMEM, VDUSE_IOTLB_DEREG_UMEM,
		VDUSE_IOTLB_GET_INFO};
	struct setup *setup = *state;
	void *nowhere = (void *)16;

	for (size_t i = 0; i < LENGTH(at_control); i++)
		assert_gives(
			&setup->rig, control(setup, at_control[i], nowhere), EFAULT, "pointer");
	version_is(setup, 0);
	make_usual(setup);
	for (size_t i = 0; i < LENGTH(at_device); i++)
		assert_gives(&setup->rig, device(setup, at_device[i], nowhere), EFAULT, "pointer");
}

#define FIELD(field)                                                                               \
	offsetof(struct vduse_dev_config, field), sizeof(((struct vduse_dev_config *)0)->field)
#define F_WCE  BIT(VIRTIO_BLK_F_CONFIG_WCE)
#define F_CTRL BIT(VIRTIO_NET_F_CTRL_VQ)

/* vduse_validate_config() and features_is_valid() */
static void what_a_device_may_be_made_of(void **state)
{
	static const struct {
		uint64_t version;
		uint32_t id;
		size_t offset, size;
		uint64_t value;
		const char *reason; /* NULL: it is made */
	} rows[] = {
		{0, VIRTIO_ID_BLOCK, offsetof(struct vduse_dev_config, reserved) + 40, 4, 1,
			"reserved_field"},
		{0, VIRTIO_ID_BLOCK, FIELD(ngroups), 1, "vduse_value"},
		{0, VIRTIO_ID_BLOCK, FIELD(nas), 1, "vduse_value"},
		{1, VIRTIO_ID_BLOCK, FIELD(ngroups), 0, "vduse_value"},
		{1, VIRTIO_ID_BLOCK, FIELD(ngroups), 0x10000, "vduse_value"},
		{1, VIRTIO_ID_BLOCK, FIELD(ngroups), 0xffff, NULL},
		{1, VIRTIO_ID_BLOCK, FIELD(nas), 0, "vduse_value"},
		{1, VIRTIO_ID_BLOCK, FIELD(nas), 0x10000, "vduse_value"},
		{0, VIRTIO_ID_BLOCK, FIELD(vq_align), 2, "vduse_align"},
		{0, VIRTIO_ID_BLOCK, FIELD(vq_align), 4, NULL},
		{0, VIRTIO_ID_BLOCK, FIELD(vq_align), 12, "vduse_align"},
		{0, VIRTIO_ID_BLOCK, FIELD(vq_align), 8192, "vduse_align"},
		{0, VIRTIO_ID_BLOCK, FIELD(config_size), 4097, "vduse_value"},
		{0, VIRTIO_ID_BLOCK, FIELD(vq_num), 0x10000, "vduse_value"},
		{0, VIRTIO_ID_BLOCK, FIELD(vq_num), 0, NULL},
		{0, VIRTIO_ID_BLOCK, offsetof(struct vduse_dev_config, name), 1, 0,
			"vduse_unnamed"},
		{0, 3, FIELD(vendor_id), 0, "vduse_id"},
		{0, VIRTIO_ID_FS, FIELD(vendor_id), 0, NULL},
		{0, VIRTIO_ID_BLOCK, FIELD(features), BIT(VIRTIO_F_VERSION_1),
			"vduse_feature_wanted"},
		{0, VIRTIO_ID_BLOCK, FIELD(features), BIT(VIRTIO_F_ACCESS_PLATFORM), NULL},
		{0, VIRTIO_ID_BLOCK, FIELD(features), PLAIN | F_WCE, "vduse_feature_refused"},
		{0, VIRTIO_ID_FS, FIELD(features), PLAIN | F_WCE | F_CTRL, NULL},
		{0, VIRTIO_ID_NET, FIELD(features), PLAIN | F_CTRL, "vduse_feature_refused"},
		{0, VIRTIO_ID_NET, FIELD(features), BIT(VIRTIO_F_ACCESS_PLATFORM),
			"vduse_feature_wanted"},
	};
	struct setup *setup = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		union config config = usual("d");

		version_is(setup, rows[i].version);
		config.is.device_id = rows[i].id;
		config.is.ngroups = config.is.nas = rows[i].version ? 1 : 0;
		memcpy((char *)&config.is + rows[i].offset, &rows[i].value, rows[i].size);
		if (rows[i].reason) {
			assert_gives(&setup->rig, create(setup, &config), EINVAL, rows[i].reason);
		} else {
			assert_int_equal(create(setup, &config), 0);
			assert_int_equal(destroy(setup, "d"), 0);
		}
	}
}

/* vduse_create_dev(): the capability is asked for before the name. */
static void a_net_device_needs_net_admin(void **state)
{
	struct setup *setup = *state;
	union config config = usual("d");
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[128];

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "CapEff: %llx", &caps);
	if (status)
		fclose(status);
	assert_int_equal(create(setup, &config), 0);
	config.is.device_id = VIRTIO_ID_NET;
	/* 12: CAP_NET_ADMIN */
	if (caps & BIT(12))
		assert_gives(&setup->rig, create(setup, &config), EEXIST, "vduse_exists");
	else
		assert_gives(&setup->rig, create(setup, &config), EPERM, "capability");
	assert_int_equal(destroy(setup, "d"), 0);
}

/* vduse_create_dev(), vduse_devnode(): a name is a node, where "/" is "!". */
static void names(void **state)
{
	struct setup *setup = *state;
	union config config = usual("d");
	int fd;

	assert_int_equal(create(setup, &config), 0);
	assert_gives(&setup->rig, create(setup, &config), EEXIST, "vduse_exists");
	config = usual("control");
	assert_gives(&setup->rig, create(setup, &config), EEXIST, "vduse_exists");
	config = usual("a/b");
	assert_int_equal(create(setup, &config), 0);
	config = usual("a!b");
	assert_gives(&setup->rig, create(setup, &config), EEXIST, "vduse_exists");
	fd = rig_open(&setup->rig, "/dev/vduse/a!b");
	assert_true(fd >= 0);
	rig_close(&setup->rig, &fd);
	memset(config.is.name, 'x', sizeof(config.is.name));
	assert_int_equal(create(setup, &config), 0);
	config.is.name[VDUSE_NAME_MAX - 1] = 'y';
	assert_gives(&setup->rig, create(setup, &config), EEXIST, "vduse_exists");
	assert_gives(&setup->rig, rig_open(&setup->rig, "/dev/vduse/e"), ENOENT, "vduse_none");
}

/* vduse_destroy_dev() */
static void a_device_that_is_in_use_stays(void **state)
{
	struct setup *setup = *state;
	struct dmamap_vdpa *vdpa;

	assert_gives(&setup->rig, destroy(setup, "d"), EINVAL, "vduse_none");
	make_usual(setup);
	assert_gives(&setup->rig, destroy(setup, "d"), EBUSY, "vduse_used");
	set_up_queues(setup, 2);
	assert_int_equal(dmamap_vdpa_attach(setup->rig.soft, "d", NULL, &vdpa), 0);
	rig_close(&setup->rig, &setup->device);
	assert_gives(&setup->rig, destroy(setup, "d"), EBUSY, "vduse_used");
	assert_int_equal(dmamap_vdpa_detach(vdpa), 0);
	assert_int_equal(destroy(setup, "d"), 0);
}

/* vduse_dev_open(), vduse_dev_release() */
static void one_daemon_at_a_time(void **state)
{
	struct setup *setup = *state;
	int copy;

	make_usual(setup);
	assert_gives(&setup->rig, rig_open(&setup->rig, "/dev/vduse/d"), EBUSY, "vduse_open");
	rig_close(&setup->rig, &setup->device);
	setup->device = rig_open(&setup->rig, "/dev/vduse/d");
	assert_true(setup->device >= 0);
	/* It is open as long as any duplicate of its descriptor is. */
	copy = dup(setup->device);
	rig_close(&setup->rig, &setup->device);
	assert_gives(&setup->rig, rig_open(&setup->rig, "/dev/vduse/d"), EBUSY, "vduse_open");
	close(copy);
	setup->device = rig_open(&setup->rig, "/dev/vduse/d");
	assert_true(setup->device >= 0);
}

/* ---------------------------------------------------------------- the device */

/* vduse_dev_ioctl(), VDUSE_VQ_SETUP */
static void what_a_queue_may_be(void **state)
{
	struct setup *setup = *state;
	struct vduse_vq_config queue = {.index = 2, .max_size = 8};

	make_usual(setup);
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_SETUP, &queue), EINVAL, "vduse_queue");
	queue.index = 1;
	queue.group = 1;
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_SETUP, &queue), EINVAL, "vduse_group");
	queue.group = 0;
	queue.reserved1 = 1;
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_SETUP, &queue), EINVAL, "reserved_field");
	queue.reserved1 = 0;
	queue.reserved2[9] = 1;
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_SETUP, &queue), EINVAL, "reserved_field");
	queue.reserved2[9] = 0;
	/* 0 is no size, and takes it back. */
	queue.max_size = 0;
	assert_int_equal(device(setup, VDUSE_VQ_SETUP, &queue), 0);
}

static void groups_are_those_that_were_declared(void **state)
{
	struct setup *setup = *state;
	union config config = usual("d");
	struct vduse_vq_config queue = {.index = 0, .max_size = 8, .group = 2};

	version_is(setup, 1);
	config.is.ngroups = 2;
	config.is.nas = 1;
	make(setup, &config);
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_SETUP, &queue), EINVAL, "vduse_group");
	queue.group = 1;
	assert_int_equal(device(setup, VDUSE_VQ_SETUP, &queue), 0);
}

/* vduse_dev_ioctl(), VDUSE_DEV_SET_CONFIG */
static void what_a_configuration_may_be_set_to(void **state)
{
	struct setup *setup = *state;
	union {
		struct vduse_config_data is;
		uint8_t bytes[sizeof(struct vduse_config_data) + 128];
	} data = {.is = {.offset = 65, .length = 1}};

	make_usual(setup);
	assert_gives(&setup->rig, device(setup, VDUSE_DEV_SET_CONFIG, &data), EINVAL,
		"vduse_config_data");
	data.is = (struct vduse_config_data){.offset = 64, .length = 0};
	assert_gives(&setup->rig, device(setup, VDUSE_DEV_SET_CONFIG, &data), EINVAL,
		"vduse_config_data");
	data.is = (struct vduse_config_data){.offset = 60, .length = 5};
	assert_gives(&setup->rig, device(setup, VDUSE_DEV_SET_CONFIG, &data), EINVAL,
		"vduse_config_data");
	data.is = (struct vduse_config_data){.offset = 60, .length = 4};
	assert_int_equal(device(setup, VDUSE_DEV_SET_CONFIG, &data), 0);
}

/* copy_from_user(): what was there before the pointer goes bad is set, and zeros behind it. */
static void a_configuration_that_ends_early(void **state)
{
	struct setup *setup = *state;
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(
		NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	union config config = usual("d");
	struct vduse_config_data *data;
	struct dmamap_vdpa *vdpa;
	uint8_t seen[8];

	assert_true(memory != MAP_FAILED);
	assert_int_equal(munmap(memory + page, (size_t)page), 0);
	memset(config.bytes + sizeof(config.is), 0x55, 64);
	make(setup, &config);
	set_up_queues(setup, 2);
	assert_int_equal(dmamap_vdpa_attach(setup->rig.soft, "d", NULL, &vdpa), 0);
	data = (void *)(memory + page - sizeof(*data) - 4);
	*data = (struct vduse_config_data){.offset = 1, .length = 6};
	memset((uint8_t *)data + sizeof(*data), 0x77, 4);
	assert_gives(&setup->rig, device(setup, VDUSE_DEV_SET_CONFIG, data), EFAULT, "pointer");
	soft_vduse_get_config(soft_vduse_driver_from(vdpa), 0, seen, sizeof(seen));
	assert_memory_equal(seen, "\x55\x77\x77\x77\x77\0\0\x55", 8);
	assert_int_equal(dmamap_vdpa_detach(vdpa), 0);
	munmap(memory, (size_t)page);
}

/* vduse_dev_ioctl(), VDUSE_VQ_GET_INFO: what is not told stays as it was passed. */
static void a_queue_that_no_driver_has(void **state)
{
	struct setup *setup = *state;
	struct vduse_vq_info info;

	make_usual(setup);
	memset(&info, 0xff, sizeof(info));
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_GET_INFO, &info), EINVAL, "vduse_queue");
	info.index = 1;
	assert_int_equal(device(setup, VDUSE_VQ_GET_INFO, &info), 0);
	assert_int_equal(info.num, 0);
	assert_int_equal(info.desc_addr, 0);
	assert_int_equal(info.split.avail_index, 0);
	assert_int_equal(info.packed.last_avail_idx, 0xffff);
	assert_int_equal(info.ready, 0);
}

/* vduse_kickfd_setup() */
static void what_a_kick_may_be(void **state)
{
	struct setup *setup = *state;
	struct vduse_vq_eventfd kick = {.index = 2, .fd = -1};
	int plain = open("/dev/null", O_RDWR | O_CLOEXEC);

	make_usual(setup);
	assert_gives(
		&setup->rig, device(setup, VDUSE_VQ_SETUP_KICKFD, &kick), EINVAL, "vduse_queue");
	kick = (struct vduse_vq_eventfd){.index = 1, .fd = plain};
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_SETUP_KICKFD, &kick), EINVAL, "eventfd");
	close(plain);
	kick.fd = 9999;
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_SETUP_KICKFD, &kick), EBADF, "bad_fd");
	/* Nothing is done for it, and it is no error. */
	kick.fd = -2;
	assert_int_equal(device(setup, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	kick.fd = VDUSE_EVENTFD_DEASSIGN;
	assert_int_equal(device(setup, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	kick.fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(device(setup, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	close(kick.fd);
}

/* vduse_dev_queue_irq_work() */
static void interrupts_need_a_driver(void **state)
{
	struct setup *setup = *state;
	uint32_t queue = 2;

	make_usual(setup);
	assert_gives(
		&setup->rig, device(setup, VDUSE_VQ_INJECT_IRQ, &queue), EINVAL, "vduse_queue");
	queue = 0;
	assert_gives(&setup->rig, device(setup, VDUSE_VQ_INJECT_IRQ, &queue), EINVAL, "vduse_idle");
	assert_gives(&setup->rig, device(setup, VDUSE_DEV_INJECT_CONFIG_IRQ, NULL), EINVAL,
		"vduse_idle");
}

/* ---------------------------------------------------------------------- attach */

/* vdpa_dev_add() */
static void what_can_be_attached(void **state)
{
	struct setup *setup = *state;
	struct dmamap_system *system = setup->rig.soft;
	struct dmamap_vdpa *vdpa, *again;

	assert_gives(
		&setup->rig, dmamap_vdpa_attach(system, "d", NULL, &vdpa), EINVAL, "vduse_none");
	make_usual(setup);
	set_up_queues(setup, 1);
	assert_gives(&setup->rig, dmamap_vdpa_attach(system, "d", NULL, &vdpa), EINVAL,
		"vduse_queue_unset");
	set_up_queues(setup, 2);
	assert_int_equal(dmamap_vdpa_attach(system, "d", NULL, &vdpa), 0);
	assert_gives(&setup->rig, dmamap_vdpa_attach(system, "d", NULL, &again), EEXIST,
		"vduse_attached");
	assert_int_equal(dmamap_vdpa_detach(vdpa), 0);
	assert_int_equal(dmamap_vdpa_attach(system, "d", NULL, &vdpa), 0);
	assert_int_equal(dmamap_vdpa_detach(vdpa), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(a_file_that_asks_for_the_version_has_the_newest),
		TEST(a_file_that_never_asked_has_version_0),
		TEST(the_version_is_one_file_s_own),
		TEST(features_are_the_two_that_there_are),
		TEST(unknown_requests),
		TEST(bad_pointers_are_told),
		TEST(what_a_device_may_be_made_of),
		TEST(a_net_device_needs_net_admin),
		TEST(names),
		TEST(a_device_that_is_in_use_stays),
		TEST(one_daemon_at_a_time),
		TEST(what_a_queue_may_be),
		TEST(groups_are_those_that_were_declared),
		TEST(what_a_configuration_may_be_set_to),
		TEST(a_configuration_that_ends_early),
		TEST(a_queue_that_no_driver_has),
		TEST(what_a_kick_may_be),
		TEST(interrupts_need_a_driver),
		TEST(what_can_be_attached),
	};

	return cmocka_run_group_tests_name("vduse", tests, NULL, NULL);
}
