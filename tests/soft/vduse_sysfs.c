/* SPDX-License-Identifier: MIT */
/*
 * /sys/class/vduse/NAME, with the rules of drivers/vdpa/vdpa_user/vduse_dev.c in
 * Linux 7.3.4 and of what reads numbers and masks there (lib/kstrtox.c,
 * lib/bitmap-str.c, fs/kernfs/file.c).
 */
#include "soft/vduse.h"
#include "tests/soft/virtio_disk.h"

#define TIMEOUT	 "/sys/class/vduse/d/msg_timeout"
#define SIZE	 "/sys/class/vduse/d/bounce_size"
#define AFFINITY "/sys/class/vduse/d/vq%u/irq_cb_affinity"

/* A device with two queues that nobody serves; not attached. */
static int start(void **state)
{
	struct setup *setup = prepare();

	daemon_create(&setup->daemon);
	daemon_start(&setup->daemon);
	*state = setup;
	return 0;
}

static int stop(void **state)
{
	struct setup *setup = *state;

	if (setup->vdpa)
		finish(setup);
	else {
		daemon_finish(&setup->daemon);
		rig_stop(&setup->rig);
	}
	return 0;
}

/* @error 0: it takes the text. */
static void set(
	struct setup *setup, const char *path, const char *text, int error, const char *reason)
{
	struct dmamap_system *system = setup->rig.system;
	int fd = rig_open(&setup->rig, path);
	ssize_t n;

	assert_true(fd >= 0);
	n = system->ops->write(system, fd, text, strlen(text));
	assert_int_equal(n, error ? -error : (int)strlen(text));
	assert_string_equal(rig_reason(&setup->rig), reason);
	rig_close(&setup->rig, &fd);
}

static void is_set_to(struct setup *setup, const char *path, const char *text)
{
	struct dmamap_system *system = setup->rig.system;
	char was[512] = "";
	int fd = rig_open(&setup->rig, path);

	assert_int_equal(system->ops->read(system, fd, was, sizeof(was)), strlen(text));
	assert_string_equal(was, text);
	assert_int_equal(system->ops->read(system, fd, was, sizeof(was)), 0);
	rig_close(&setup->rig, &fd);
}

/* bounce_size_store() */
static void the_bounce_size_is_set_before_it_is_attached(void **state)
{
	struct setup *setup = *state;
	struct dmamap_bounce_info info;

	is_set_to(setup, SIZE, "67108864\n");
	set(setup, SIZE, "1048575", EINVAL, "vduse_value");
	set(setup, SIZE, "1073741825", EINVAL, "vduse_value");
	set(setup, SIZE, "2097153\n", 0, "");
	is_set_to(setup, SIZE, "2097152\n");
	assert_int_equal(dmamap_vdpa_attach(setup->rig.soft, "d", NULL, &setup->vdpa), 0);
	dmamap_bounce_info(dmamap_vdpa_bounce(setup->vdpa, 0), &info);
	assert_int_equal(info.bounce_size, 2 * MIB);
	assert_null(dmamap_vdpa_bounce(setup->vdpa, 1));
	/* Before what is written is looked at. */
	set(setup, SIZE, "2097152", EPERM, "vduse_attached");
	set(setup, SIZE, "no number", EPERM, "vduse_attached");
	/* The domain stays, and so does the rule. */
	assert_int_equal(dmamap_vdpa_detach(setup->vdpa), 0);
	setup->vdpa = NULL;
	set(setup, SIZE, "2097152", EPERM, "vduse_attached");
}

/* msg_timeout_store(), kstrtouint() */
static void the_timeout_is_set_at_any_time(void **state)
{
	struct setup *setup = *state;
	char zeros[64];

	is_set_to(setup, TIMEOUT, "30\n");
	set(setup, TIMEOUT, "+7\n", 0, "");
	is_set_to(setup, TIMEOUT, "7\n");
	set(setup, TIMEOUT, "-1", EINVAL, "vduse_number");
	set(setup, TIMEOUT, " 1", EINVAL, "vduse_number");
	set(setup, TIMEOUT, "1\n\n", EINVAL, "vduse_number");
	set(setup, TIMEOUT, "1 s", EINVAL, "vduse_number");
	set(setup, TIMEOUT, "\n", EINVAL, "vduse_number");
	set(setup, TIMEOUT, "4294967296", ERANGE, "vduse_number");
	/* What does not fit into 64 bits is not read to its end. */
	set(setup, TIMEOUT, "4294967296x", EINVAL, "vduse_number");
	set(setup, TIMEOUT, "18446744073709551616x", ERANGE, "vduse_number");
	is_set_to(setup, TIMEOUT, "7\n");
	/* Of any length. */
	memset(zeros, '0', sizeof(zeros));
	strcpy(zeros + sizeof(zeros) - 4, "12\n");
	set(setup, TIMEOUT, zeros, 0, "");
	is_set_to(setup, TIMEOUT, "12\n");
}

/* sysfs_kf_write(), kernfs_fop_write_iter() */
static void what_is_no_write(void **state)
{
	struct setup *setup = *state;
	struct dmamap_system *system = setup->rig.system;
	int fd = rig_open(&setup->rig, TIMEOUT);
	char *page = calloc(1, 3 * PAGE);

	assert_int_equal(system->ops->write(system, fd, "", 0), 0);
	is_set_to(setup, TIMEOUT, "30\n");
	assert_gives(
		&setup->rig, (int)system->ops->write(system, fd, (void *)16, 2), EFAULT, "pointer");
	/* A page of it, where the rest is not looked at. */
	memset(page, '0', 3 * PAGE);
	page[PAGE - 1] = '5';
	page[PAGE] = 'x';
	assert_int_equal(system->ops->write(system, fd, page, 3 * PAGE), PAGE);
	is_set_to(setup, TIMEOUT, "5\n");
	/* It ends at a NUL, and may be written anywhere. */
	assert_int_equal(system->ops->pwrite(system, fd, "6\0x", 3, 100), 3);
	is_set_to(setup, TIMEOUT, "6\n");
	free(page);
	rig_close(&setup->rig, &fd);
}

static void files_that_are_not_there(void **state)
{
	static const char *const paths[] = {"/sys/class/vduse/d", "/sys/class/vduse/d/vq0",
		"/sys/class/vduse/d/vq2/irq_cb_affinity", "/sys/class/vduse/d/vq00/irq_cb_affinity",
		"/sys/class/vduse/d/vq+1/irq_cb_affinity", "/sys/class/vduse/d/vq0/bounce_size",
		"/sys/class/vduse/d/irq_cb_affinity", "/sys/class/vduse/d/vq0/irq_cb_affinity/",
		"/sys/class/vduse/e/msg_timeout"};
	struct setup *setup = *state;

	for (size_t i = 0; i < LENGTH(paths); i++)
		assert_gives(&setup->rig, rig_open(&setup->rig, paths[i]), ENOENT, "no_file");
}

/* kernfs_get_active_of() */
static void a_device_that_is_gone(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_system *system;
	char text[8];
	int fd;

	(void)state;
	daemon_create(&setup->daemon);
	fd = rig_open(&setup->rig, TIMEOUT);
	system = setup->rig.system;
	daemon_finish(&setup->daemon);
	assert_gives(&setup->rig, (int)system->ops->read(system, fd, text, sizeof(text)), ENODEV,
		"vduse_gone");
	assert_gives(
		&setup->rig, (int)system->ops->write(system, fd, "1", 1), ENODEV, "vduse_gone");
	rig_close(&setup->rig, &fd);
	rig_stop(&setup->rig);
}

/* What a mask of all processors looks like. */
static void full_mask(char *text, unsigned cpus)
{
	unsigned in_group = (cpus - 1) % 32 + 1;

	text += sprintf(text, "%0*x", (int)(in_group + 3) / 4,
		in_group == 32 ? UINT32_MAX : (1u << in_group) - 1);
	for (unsigned left = (cpus - 1) / 32; left; left--)
		text += sprintf(text, ",ffffffff");
	strcpy(text, "\n");
}

/* irq_cb_affinity_show(), irq_cb_affinity_store(), bitmap_parse() */
static void the_affinity_of_a_queue_s_interrupts(void **state)
{
	struct setup *setup = *state;
	unsigned cpus = soft_vduse_cpus();
	char all[512], one[512], path[64], other[64], text[600];

	full_mask(all, cpus);
	snprintf(path, sizeof(path), AFFINITY, 0);
	snprintf(other, sizeof(other), AFFINITY, 1);
	is_set_to(setup, path, all);
	set(setup, path, "1\n", 0, "");
	/* As wide as all of them are. */
	for (unsigned i = 0; i <= strlen(all); i++)
		one[i] = all[i] == ',' || all[i] == '\n' || !all[i] ? all[i] : '0';
	one[strlen(one) - 2] = '1';
	is_set_to(setup, path, one);
	is_set_to(setup, other, all);
	set(setup, path, all, 0, "");
	is_set_to(setup, path, all);
	/* To the end of the line, with spaces around groups. */
	set(setup, path, " 01 \nand more", 0, "");
	is_set_to(setup, path, one);
	set(setup, path, "0", EINVAL, "vduse_number");
	set(setup, path, "\n", EINVAL, "vduse_number");
	set(setup, path, "0x1", EINVAL, "vduse_number");
	set(setup, path, "g", EINVAL, "vduse_number");
	set(setup, path, "000000001", EOVERFLOW, "vduse_number");
	/* One group more than there are processors for, though it is 0. */
	snprintf(text, sizeof(text), "0,%s", all);
	set(setup, path, text, EOVERFLOW, "vduse_number");
	if (cpus % 32) {
		char *at = text + sprintf(text, "%x", 1u << cpus % 32);

		for (unsigned group = 0; group < cpus / 32; group++)
			at += sprintf(at, ",0");
		set(setup, path, text, EOVERFLOW, "vduse_number");
	}
	is_set_to(setup, path, one);
}

static uint64_t low_bits(struct setup *setup, unsigned queue)
{
	struct dmamap_system *system = setup->rig.system;
	char path[64], text[512] = "";
	const char *low;
	int fd;

	snprintf(path, sizeof(path), AFFINITY, queue);
	fd = rig_open(&setup->rig, path);
	assert_true(system->ops->read(system, fd, text, sizeof(text) - 1) > 0);
	rig_close(&setup->rig, &fd);
	low = strrchr(text, ',');
	return strtoull(low ? low + 1 : text, NULL, 16);
}

/* virtio_vdpa_find_vqs(): each queue has its part of the processors; a reset leaves it. */
static void the_driver_spreads_its_queues(void **state)
{
	struct setup *setup = *state;
	unsigned cpus = soft_vduse_cpus();
	uint64_t first, second, all = cpus >= 32 ? UINT32_MAX : (1ull << cpus) - 1;

	assert_int_equal(dmamap_vdpa_attach(setup->rig.soft, "d", NULL, &setup->vdpa), 0);
	probe(setup, 0);
	first = low_bits(setup, 0);
	second = low_bits(setup, 1);
	if (cpus == 1) {
		assert_int_equal(first & second, 1);
	} else {
		assert_true(first && !(first & second));
		assert_true(cpus > 32 || (first | second) == all);
	}
	dmamap_blk_remove(setup->blk);
	setup->blk = NULL;
	assert_int_equal(low_bits(setup, 0), first);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(the_bounce_size_is_set_before_it_is_attached),
		TEST(the_timeout_is_set_at_any_time),
		TEST(what_is_no_write),
		TEST(files_that_are_not_there),
		cmocka_unit_test(a_device_that_is_gone),
		TEST(the_affinity_of_a_queue_s_interrupts),
		TEST(the_driver_spreads_its_queues),
	};

	return cmocka_run_group_tests_name("vduse sysfs", tests, NULL, NULL);
}
