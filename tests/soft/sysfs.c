/* SPDX-License-Identifier: MIT */
/* The way from a PCI address to the VFIO files, through sysfs and /dev. */
#include "tests/soft/rig.h"

#define DEVICE "/sys/bus/pci/devices/0000:00:03.0"

static const char *read_file(struct rig *rig, const char *path)
{
	static char text[1024];
	int fd = rig_open(rig, path);
	ssize_t n;

	assert_true(fd >= 0);
	n = rig->system->ops->read(rig->system, fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_int_equal(rig->system->ops->pread(rig->system, fd, text, 2, 0), 2);
	rig_close(rig, &fd);
	return text;
}

static void files(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	assert_string_equal(read_file(&rig, DEVICE "/vendor"), "0x1b36\n");
	assert_string_equal(read_file(&rig, DEVICE "/device"), "0x0005\n");
	assert_string_equal(read_file(&rig, DEVICE "/class"), "0x00ff00\n");
	assert_non_null(strstr(
		read_file(&rig, DEVICE "/resource"), "\n0x0000380000000000 0x00003807ffffffff 0x"));
	assert_gives(&rig, rig_open(&rig, DEVICE "/nothing"), ENOENT, "no_file");
	assert_gives(&rig, rig_open(&rig, "/sys/bus/pci/devices/0000:00:03.00/vendor"), ENOENT,
		"no_file");
	rig_stop(&rig);
}

static void links(void **state)
{
	static const struct {
		const char *path, *target;
	} rows[] = {
		{DEVICE "/iommu_group", "../../../kernel/iommu_groups/7"},
		{DEVICE "/driver", "../../../bus/pci/drivers/vfio-pci"},
		{DEVICE, "../../../devices/pci0000:00/0000:00:03.0"},
	};
	struct rig rig;
	char target[96];

	(void)state;
	rig_start(&rig, NULL);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		assert_int_equal(
			rig.system->ops->readlink(rig.system, rows[i].path, target, sizeof(target)),
			strlen(rows[i].target));
		assert_string_equal(target, rows[i].target);
	}
	assert_int_equal(rig.system->ops->readlink(rig.system, DEVICE "/driver", target, 6), 5);
	assert_string_equal(target, "../..");
	assert_gives(&rig,
		rig.system->ops->readlink(rig.system, DEVICE "/vendor", target, sizeof(target)),
		ENOENT, "no_file");
	rig_stop(&rig);
}

static void directories(void **state)
{
	static const struct {
		const char *path;
		const char *names[4];
	} rows[] = {
		{"/sys/bus/pci/devices", {"0000:00:03.0"}},
		{"/sys/bus/pci/drivers/vfio-pci", {"0000:00:03.0"}},
		{"/sys/kernel/iommu_groups/7/devices", {"0000:00:03.0"}},
		{DEVICE "/vfio-dev", {"vfio0"}},
		{"/dev/vfio", {"vfio", "devices", "7"}},
		{"/dev/vfio/devices", {"vfio0"}},
	};
	struct rig rig;
	char name[32];

	(void)state;
	rig_start(&rig, NULL);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		unsigned n;

		for (n = 0; rows[i].names[n]; n++) {
			assert_int_equal(rig.system->ops->list(
						 rig.system, rows[i].path, n, name, sizeof(name)),
				strlen(rows[i].names[n]));
			assert_string_equal(name, rows[i].names[n]);
		}
		assert_int_equal(
			rig.system->ops->list(rig.system, rows[i].path, n, name, sizeof(name)),
			-ENOENT);
	}
	assert_gives(&rig, rig.system->ops->list(rig.system, "/etc", 0, name, sizeof(name)), ENOENT,
		"no_file");
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(links),
		cmocka_unit_test(directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
