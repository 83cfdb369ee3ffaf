/* SPDX-License-Identifier: MIT */
/*
 * The client over a system that fails on purpose: which errno and which reason
 * come back, and that nothing stays open. The errnos are those of the calls
 * that fail; what the client adds are the sentences.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "fake.h"

static int open_as(struct fake *fake, const char *mode, const char *bdf,
	struct dmamap_client **client, struct dmamap_reason *why)
{
	return dmamap_client_open(&fake->system, dmamap_mode_find(mode), bdf, client, why);
}

static void open_ok(struct fake *fake, const char *mode, struct dmamap_client **client)
{
	assert_int_equal(open_as(fake, mode, FAKE_BDF, client, NULL), 0);
}

static void assert_says(const struct dmamap_reason *why, const char *kind, const char *words)
{
	char sentence[1024];

	assert_non_null(why->kind);
	assert_string_equal(why->kind->name, kind);
	dmamap_reason_format(why, sentence, sizeof(sentence));
	if (!strstr(sentence, words))
		fail_msg("\"%s\" does not say \"%s\"", sentence, words);
	/* Every place was filled in. */
	assert_null(strchr(sentence, '{'));
}

/* ------------------------------------------------------------------ open */

struct refusal {
	const char *mode;
	const char *path;
	unsigned long request;
	int error;
	const char *kind;
	const char *words;
};

#define TYPE1	"vfio_type1v2_iommu"
#define COMPAT	"iommufd_compat_type1"
#define IOMMUFD "iommufd"

static const struct refusal refusals[] = {
	{TYPE1, "/dev/vfio/vfio", 0, ENOENT, "no_container", "modprobe vfio"},
	{TYPE1, "/dev/vfio/vfio", 0, ENODEV, "no_container", "there is no /dev/vfio/vfio"},
	{TYPE1, "/dev/vfio/vfio", 0, EACCES, "permission", "ls -l /dev/vfio/vfio"},
	{TYPE1, "/dev/vfio/vfio", 0, EMFILE, "open_failed", "errno 24"},
	{COMPAT, "/dev/iommu", 0, ENOENT, "no_iommu", "CONFIG_IOMMUFD"},
	{IOMMUFD, "/dev/iommu", 0, ENOENT, "no_iommu", "modprobe iommufd"},
	{IOMMUFD, "/dev/iommu", 0, EACCES, "permission", "no permission to open /dev/iommu"},
	{TYPE1, "/dev/vfio/7", 0, ENOENT, "no_group_file", "/dev/vfio/7"},
	{TYPE1, "/dev/vfio/7", 0, EACCES, "permission", "/dev/vfio/7"},
	{COMPAT, "/dev/vfio/7", 0, EBUSY, "busy", "/dev/vfio/7 is in use"},
	{IOMMUFD, "/dev/vfio/devices/vfio0", 0, ENOENT, "no_cdev_file", "devtmpfs"},
	{IOMMUFD, "/dev/vfio/devices/vfio0", 0, EBUSY, "busy", "vfio0 is in use"},
	{IOMMUFD, "/dev/vfio/devices/vfio0", 0, EACCES, "permission", "vfio0"},
	{TYPE1, NULL, VFIO_GROUP_GET_STATUS, EFAULT, "step", "VFIO_GROUP_GET_STATUS"},
	{COMPAT, NULL, VFIO_GROUP_SET_CONTAINER, EINVAL, "step", "SET_CONTAINER failed, errno 22"},
	{TYPE1, NULL, VFIO_SET_IOMMU, ENODEV, "no_type1", "no VFIO_TYPE1v2_IOMMU"},
	{COMPAT, NULL, VFIO_SET_IOMMU, EPERM, "unsafe_interrupts", "allow_unsafe_interrupts=1"},
	{TYPE1, NULL, VFIO_SET_IOMMU, EBUSY, "device_busy", "another program"},
	{TYPE1, NULL, VFIO_GROUP_GET_DEVICE_FD, EBUSY, "device_busy", "GET_DEVICE_FD"},
	{TYPE1, NULL, VFIO_IOMMU_GET_INFO, EINVAL, "step", "IOVA ranges"},
	{IOMMUFD, NULL, VFIO_DEVICE_BIND_IOMMUFD, EPERM, "unsafe_interrupts", "BIND_IOMMUFD"},
	{IOMMUFD, NULL, VFIO_DEVICE_BIND_IOMMUFD, EINVAL, "step", "BIND_IOMMUFD failed"},
	{IOMMUFD, NULL, IOMMU_IOAS_ALLOC, ENOMEM, "step", "IOMMU_IOAS_ALLOC failed, errno 12"},
	{IOMMUFD, NULL, VFIO_DEVICE_ATTACH_IOMMUFD_PT, EBUSY, "device_busy", "ATTACH"},
	{IOMMUFD, NULL, IOMMU_IOAS_IOVA_RANGES, EFAULT, "step", "IOVA ranges"},
};

static void open_says_what_failed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];
		struct dmamap_client *client = NULL;
		struct dmamap_reason why = {0};
		struct fake fake;

		fake_init(&fake);
		fake.path = r->path;
		fake.request = r->request;
		fake.error = -r->error;
		assert_int_equal(open_as(&fake, r->mode, FAKE_BDF, &client, &why), -r->error);
		assert_int_equal(why.error, r->error);
		assert_says(&why, r->kind, r->words);
		assert_null(client);
		assert_int_equal(fake.open_now, 0);
	}
}

static void open_failing_at_each_call_leaks_nothing(void **state)
{
	(void)state;
	for (unsigned m = 0; m < DMAMAP_MODES; m++) {
		struct dmamap_client *client = NULL;
		struct fake fake;
		int error;

		for (unsigned nth = 1;; nth++) {
			fake_init(&fake);
			fake.nth = nth;
			error = dmamap_client_open(
				&fake.system, &dmamap_modes[m], FAKE_BDF, &client, NULL);
			if (!error)
				break;
			assert_true(error < 0);
			assert_int_equal(fake.open_now, 0);
		}
		/* The one that was to fail is past the end. */
		assert_true(fake.calls < fake.nth && fake.nth > 8);
		dmamap_client_close(client);
		assert_int_equal(fake.open_now, 0);
	}
}

static void a_device_that_is_not_there(void **state)
{
	static const char *const bad[] = {"", "hello", "00:03", "00:03.8", "00:20.0", "0:0:03.0 ",
		" 00:03.0", "+0:03.0", "0000:00:03.0x", "00:03.0.0"};
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct fake fake;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fake_init(&fake);
		assert_int_equal(open_as(&fake, TYPE1, bad[i], &client, &why), -EINVAL);
		assert_says(&why, "address", "0000:00:03.0");
		assert_int_equal(fake.opened, 0);
	}
	fake_init(&fake);
	assert_int_equal(open_as(&fake, IOMMUFD, "0000:00:09.0", &client, &why), -ENODEV);
	assert_says(&why, "device",
		"no PCI device 0000:00:09.0 (there are 0000:00:00.0, 0000:00:03.0, 0000:00:04.0 "
		"and 2 more)");
	assert_int_equal(fake.opened, 0);
}

static void a_short_address_is_in_domain_0(void **state)
{
	struct dmamap_client *client;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	assert_int_equal(open_as(&fake, TYPE1, "00:03.0", &client, NULL), 0);
	dmamap_client_close(client);
	assert_int_equal(fake.open_now, 0);
}

static void a_device_with_another_driver(void **state)
{
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	fake.driver = "e1000e";
	assert_int_equal(open_as(&fake, TYPE1, FAKE_BDF, &client, &why), -ENODEV);
	assert_says(&why, "other_driver", FAKE_BDF " is bound to e1000e, not to vfio-pci");
	assert_says(&why, "other_driver", "driver_override");
	fake.driver = NULL;
	assert_int_equal(open_as(&fake, TYPE1, FAKE_BDF, &client, &why), -ENODEV);
	assert_says(&why, "no_driver", "echo " FAKE_BDF " > /sys/bus/pci/drivers_probe");
	assert_int_equal(fake.opened, 0);
	fake.driver = "mlx5_vfio_pci";
	open_ok(&fake, TYPE1, &client);
	dmamap_client_close(client);
}

static void a_device_without_group_or_cdev(void **state)
{
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	fake.group = NULL;
	assert_int_equal(open_as(&fake, COMPAT, FAKE_BDF, &client, &why), -ENOENT);
	assert_says(&why, "no_group", FAKE_BDF " has no IOMMU group");
	/* Its cdev needs no group. */
	open_ok(&fake, IOMMUFD, &client);
	dmamap_client_close(client);
	fake.cdev = NULL;
	assert_int_equal(open_as(&fake, IOMMUFD, FAKE_BDF, &client, &why), -ENOENT);
	assert_says(&why, "no_cdev", "CONFIG_VFIO_DEVICE_CDEV");
	assert_int_equal(fake.open_now, 0);
}

static void a_group_that_is_not_viable(void **state)
{
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	fake.not_viable = true;
	assert_int_equal(open_as(&fake, TYPE1, FAKE_BDF, &client, &why), -EBUSY);
	assert_says(&why, "not_viable", "/sys/kernel/iommu_groups/7/devices");
	assert_int_equal(fake.open_now, 0);
}

static void the_first_device_of_vfio_pci(void **state)
{
	struct fake fake;
	char bdf[16];

	(void)state;
	fake_init(&fake);
	assert_int_equal(dmamap_client_device(&fake.system, bdf), 0);
	assert_string_equal(bdf, FAKE_BDF);
	fake.driver = "e1000e";
	assert_int_equal(dmamap_client_device(&fake.system, bdf), -ENODEV);
}

/* ------------------------------------------------------------------- map */

static void map_and_unmap_are_one_ioctl(void **state)
{
	struct dmamap_client *client;
	uint64_t unmapped;
	struct fake fake;

	(void)state;
	for (unsigned m = 0; m < DMAMAP_MODES; m++) {
		const struct dmamap_mode *mode = &dmamap_modes[m];
		unsigned before;

		fake_init(&fake);
		open_ok(&fake, mode->name, &client);
		before = fake.calls;
		if (mode->maps_files)
			assert_int_equal(dmamap_client_map_file(client, 5, 0x7000, 0x2000, 0x3000,
						 DMAMAP_READ, NULL),
				0);
		else
			assert_int_equal(dmamap_client_map(client, (void *)0x7000, 0x2000, 0x3000,
						 DMAMAP_READ, NULL),
				0);
		assert_int_equal(fake.calls, before + 1);
		/* Address, IOVA and size, or flags, id and fd, address, length, IOVA. */
		assert_int_equal(fake.argument[mode->type1 ? 1 : 2], 0x7000);
		assert_int_equal(fake.argument[mode->type1 ? 2 : 4], 0x3000);
		assert_int_equal(fake.argument[3], 0x2000);
		assert_int_equal(fake.argument[0] >> 32,
			mode->type1 ? VFIO_DMA_MAP_FLAG_READ
				    : IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_FIXED_IOVA);
		assert_int_equal(dmamap_client_unmap(client, 0x3000, 0x2000, &unmapped, NULL), 0);
		assert_int_equal(fake.calls, before + 2);
		assert_int_equal(unmapped, 0x2000);
		assert_int_equal(fake.argument[1], 0x3000);
		assert_int_equal(dmamap_client_unmap(client, 0, 0, &unmapped, NULL), 0);
		assert_int_equal(fake.calls, before + 3);
		assert_int_equal(fake.argument[1], 0);
		assert_int_equal(fake.argument[2], mode->type1 ? 0 : UINT64_MAX);
		if (mode->type1)
			assert_int_equal(fake.argument[0] >> 32, VFIO_DMA_UNMAP_FLAG_ALL);
		dmamap_client_close(client);
	}
}

static const struct refusal map_refusals[] = {
	{TYPE1, NULL, VFIO_IOMMU_MAP_DMA, ENOMEM, "map_memlock", "ulimit -l"},
	{TYPE1, NULL, VFIO_IOMMU_MAP_DMA, EFAULT, "map_fault", "not mapped"},
	{TYPE1, NULL, VFIO_IOMMU_MAP_DMA, EEXIST, "map_exists", "iova 0x10000-0x1ffff overlaps"},
	{TYPE1, NULL, VFIO_IOMMU_MAP_DMA, ENOSPC, "map_entries", "dma_entry_limit"},
	{TYPE1, NULL, VFIO_IOMMU_MAP_DMA, EOVERFLOW, "map_wrap", "64 bits"},
	{TYPE1, NULL, VFIO_IOMMU_MAP_DMA, EINVAL, "map_invalid", "0x10000 bytes at iova 0x10000"},
	{TYPE1, NULL, VFIO_IOMMU_MAP_DMA, EOPNOTSUPP, "map_unsupported", "64 KiB at 0x40000000"},
	{IOMMUFD, NULL, IOMMU_IOAS_MAP, EFAULT, "map_fault_iommufd", "or is a device's"},
	{IOMMUFD, NULL, IOMMU_IOAS_MAP, EEXIST, "map_exists", "overlaps"},
	{"iommufd_file", NULL, IOMMU_IOAS_MAP_FILE, EBADF, "map_file_fd", "no open file"},
	{"iommufd_file", NULL, IOMMU_IOAS_MAP_FILE, ENOTTY, "map_no_command", "Linux 6.13"},
};

static int map_any(
	struct dmamap_client *client, uint64_t length, uint64_t iova, struct dmamap_reason *why)
{
	if (dmamap_client_mode(client)->maps_files)
		return dmamap_client_map_file(
			client, 5, 0x40000000, length, iova, DMAMAP_READ, why);
	return dmamap_client_map(client, (void *)0x40000000, length, iova, DMAMAP_READ, why);
}

static void map_says_what_failed(void **state)
{
	struct dmamap_client *client;
	struct fake fake;

	(void)state;
	for (size_t i = 0; i < sizeof(map_refusals) / sizeof(map_refusals[0]); i++) {
		const struct refusal *r = &map_refusals[i];
		struct dmamap_reason why = {0};

		fake_init(&fake);
		open_ok(&fake, r->mode, &client);
		fake.request = r->request;
		fake.error = -r->error;
		assert_int_equal(map_any(client, 0x10000, 0x10000, &why), -r->error);
		assert_says(&why, r->kind, r->words);
		assert_int_equal(map_any(client, 0x10000, 0x10000, NULL), -r->error);
		dmamap_client_close(client);
	}
}

static void invalid_is_explained_by_alignment_and_ranges(void **state)
{
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	open_ok(&fake, TYPE1, &client);
	fake.request = VFIO_IOMMU_MAP_DMA;
	fake.error = -EINVAL;
	assert_int_equal(map_any(client, 0x10000, 0x10001, &why), -EINVAL);
	assert_says(&why, "unaligned", "iova 0x10001");
	assert_int_equal(map_any(client, 0x20000, 0xfedf0000, &why), -EINVAL);
	assert_says(&why, "outside", "0xfedf0000-0xfee0ffff is not within");
	assert_says(&why, "outside", "nearest is 0x0-0xfedfffff");
	assert_int_equal(map_any(client, 0x10000, FAKE_APERTURE + 1, &why), -EINVAL);
	assert_says(&why, "outside", "nearest is 0xfef00000-0x7fffffffff");
	/* One that wraps ends at a low IOVA, and is no less outside. */
	assert_int_equal(map_any(client, 0x20000, -(uint64_t)0x10000, &why), -EINVAL);
	assert_says(&why, "outside", "0xffffffffffff0000-0xffff is not within");
	dmamap_client_close(client);
}

static void unmap_says_what_failed(void **state)
{
	static const struct refusal rules[] = {
		{TYPE1, NULL, VFIO_IOMMU_UNMAP_DMA, EINVAL, "unmap_cut", "cuts a mapping"},
		{COMPAT, NULL, VFIO_IOMMU_UNMAP_DMA, ENOENT, "unmap_nothing", "no whole mapping"},
		{IOMMUFD, NULL, IOMMU_IOAS_UNMAP, ENOENT, "unmap_nothing", "no whole mapping"},
		{IOMMUFD, NULL, IOMMU_IOAS_UNMAP, EBUSY, "unmap_busy", "in use by the kernel"},
		{IOMMUFD, NULL, IOMMU_IOAS_UNMAP, EOVERFLOW, "map_wrap", "64 bits"},
	};
	struct dmamap_client *client;
	struct fake fake;

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct dmamap_reason why = {0};
		uint64_t unmapped = 77;

		fake_init(&fake);
		open_ok(&fake, rules[i].mode, &client);
		fake.request = rules[i].request;
		fake.error = -rules[i].error;
		assert_int_equal(dmamap_client_unmap(client, 0x10000, 0x10000, &unmapped, &why),
			-rules[i].error);
		assert_int_equal(unmapped, 77);
		assert_says(&why, rules[i].kind, rules[i].words);
		dmamap_client_close(client);
	}
}

static void the_systems_reason_comes_first_unless_it_is_an_older_calls(void **state)
{
	static const struct dmamap_reason_kind kind = {"known", "the system knows {0x}"};
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	open_ok(&fake, TYPE1, &client);
	fake.request = VFIO_IOMMU_MAP_DMA;
	fake.error = -EINVAL;
	fake.reason = (struct dmamap_reason){&kind, EINVAL, {5}, ""};
	assert_int_equal(map_any(client, 0x10000, 0x10001, &why), -EINVAL);
	assert_says(&why, "known", "knows 0x5");
	fake.reason.error = EEXIST;
	assert_int_equal(map_any(client, 0x10000, 0x10001, &why), -EINVAL);
	assert_says(&why, "unaligned", "0x10001");
	dmamap_client_close(client);
}

static void a_mode_maps_files_or_addresses(void **state)
{
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct fake fake;
	unsigned before;

	(void)state;
	for (unsigned m = 0; m < DMAMAP_MODES; m++) {
		fake_init(&fake);
		open_ok(&fake, dmamap_modes[m].name, &client);
		before = fake.calls;
		if (dmamap_modes[m].maps_files)
			assert_int_equal(
				dmamap_client_map(client, &fake, 0x1000, 0, DMAMAP_READ, &why),
				-EOPNOTSUPP);
		else
			assert_int_equal(
				dmamap_client_map_file(client, 0, 0, 0x1000, 0, DMAMAP_READ, &why),
				-EOPNOTSUPP);
		assert_says(&why, dmamap_modes[m].maps_files ? "files" : "no_files",
			dmamap_modes[m].name);
		assert_int_equal(fake.calls, before);
		dmamap_client_close(client);
	}
}

/* ---------------------------------------------------------- ranges, IOVA */

static void ranges_are_found_in_the_capability_chain(void **state)
{
	static const struct {
		enum fake_chain chain;
		ssize_t n;
		struct dmamap_range last;
	} chains[] = {
		{FAKE_RANGES, 2, {0xfef00000, FAKE_APERTURE}},
		{FAKE_NO_RANGES, 1, {0, UINT64_MAX}},
		{FAKE_LOOP, 1, {0, UINT64_MAX}},
		{FAKE_PAST_END, 1, {0, UINT64_MAX}},
		{FAKE_CUT, 1, {0, UINT64_MAX}},
		{FAKE_TOO_MANY, -EPROTO, {0, 0}},
	};
	struct dmamap_range ranges[3] = {0};
	struct dmamap_client *client;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	open_ok(&fake, TYPE1, &client);
	for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		fake.chain = chains[i].chain;
		assert_int_equal(dmamap_client_ranges(client, NULL, 0), chains[i].n);
		assert_int_equal(dmamap_client_ranges(client, ranges, 3), chains[i].n);
		if (chains[i].n > 0) {
			assert_int_equal(ranges[chains[i].n - 1].first, chains[i].last.first);
			assert_int_equal(ranges[chains[i].n - 1].last, chains[i].last.last);
		}
	}
	/* Room for one: one is written. */
	ranges[1] = (struct dmamap_range){1, 2};
	fake.chain = FAKE_RANGES;
	assert_int_equal(dmamap_client_ranges(client, ranges, 1), 2);
	assert_int_equal(ranges[1].first, 1);
	dmamap_client_close(client);
}

static void iovas_come_from_the_allowed_ranges(void **state)
{
	const uint64_t gib = UINT64_C(1) << 30;
	struct dmamap_client *client;
	struct dmamap_reason why;
	uint64_t iova;
	struct fake fake;

	(void)state;
	for (unsigned m = 0; m < DMAMAP_MODES; m++) {
		fake_init(&fake);
		open_ok(&fake, dmamap_modes[m].name, &client);
		/* 3 GiB fit below the window at 0xfee00000, then nothing of 1 GiB does. */
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(
				dmamap_client_iova_allocate(client, gib, gib, &iova, NULL), 0);
			assert_int_equal(iova, i * gib);
		}
		assert_int_equal(dmamap_client_iova_allocate(client, gib, gib, &iova, NULL), 0);
		assert_int_equal(iova, 4 * gib);
		dmamap_client_iova_free(client, gib, gib);
		assert_int_equal(dmamap_client_iova_allocate(client, gib, gib, &iova, NULL), 0);
		assert_int_equal(iova, gib);
		/* 39 bits: 512 GiB with a hole in it. */
		assert_int_equal(
			dmamap_client_iova_allocate(client, 510 * gib, gib, &iova, &why), -ENOSPC);
		assert_says(&why, "no_iova", "510 GiB");
		assert_int_equal(dmamap_client_iova_allocate(client, 0, gib, &iova, &why), -EINVAL);
		assert_says(&why, "iova_size", "length above 0");
		assert_int_equal(dmamap_client_iova_allocate(client, gib, 3, &iova, &why), -EINVAL);
		assert_int_equal(dmamap_client_iova_allocate(client, gib, 0, &iova, &why), -EINVAL);
		dmamap_client_close(client);
	}
}

static void without_a_list_the_last_page_is_an_iova(void **state)
{
	struct dmamap_client *client;
	uint64_t iova;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	fake.chain = FAKE_NO_RANGES;
	open_ok(&fake, TYPE1, &client);
	assert_int_equal(dmamap_client_iova_allocate(
				 client, UINT64_C(1) << 63, UINT64_C(1) << 63, &iova, NULL),
		0);
	assert_int_equal(dmamap_client_iova_allocate(
				 client, UINT64_C(1) << 63, UINT64_C(1) << 63, &iova, NULL),
		0);
	assert_int_equal(iova, UINT64_C(1) << 63);
	dmamap_client_iova_free(client, iova, UINT64_C(1) << 63);
	assert_int_equal(
		dmamap_client_iova_allocate(client, 4096, UINT64_C(1) << 63, &iova, NULL), 0);
	assert_int_equal(iova, UINT64_C(1) << 63);
	dmamap_client_close(client);
}

/* ------------------------------------------------------------------- BAR */

static void assert_no_memory_at(void *va)
{
	unsigned char page;

	assert_int_equal(mincore(va, 1, &page), -1);
	assert_int_equal(errno, ENOMEM);
}

static void a_bar_is_mapped_at_its_alignment(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), mib = 1 << 20;
	const uint64_t offsets[] = {0, page, mib, 5 * mib};
	struct dmamap_client *client;
	struct dmamap_bar bar;
	uint64_t size;
	struct fake fake;
	void *va;

	(void)state;
	fake_init(&fake);
	open_ok(&fake, IOMMUFD, &client);
	assert_int_equal(dmamap_client_bar_size(client, 0, &size), 0);
	assert_int_equal(size, 4 * mib);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		assert_int_equal(dmamap_client_bar_mmap(client, 0, offsets[i], &bar, NULL), 0);
		assert_int_equal(((uintptr_t)bar.va - offsets[i]) % (4 * mib), 0);
		assert_int_equal(bar.length, 4 * mib);
		memset(bar.va, 1, bar.length);
		va = bar.va;
		assert_int_equal(dmamap_client_bar_munmap(client, &bar), 0);
		assert_null(bar.va);
		assert_no_memory_at(va);
		assert_no_memory_at((char *)va + 4 * mib - page);
	}
	dmamap_client_close(client);
}

static uint64_t address_space_pages(void)
{
	unsigned long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	return pages;
}

static void mapping_bars_uses_up_no_address_space(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), mib = 1 << 20;
	struct dmamap_client *client;
	struct dmamap_bar bar;
	struct fake fake;
	uint64_t before;

	(void)state;
	fake_init(&fake);
	open_ok(&fake, IOMMUFD, &client);
	before = address_space_pages();
	/* Each needs 5 MiB beside the BAR to be aligned, in front or behind. */
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(dmamap_client_bar_mmap(client, 0, mib, &bar, NULL), 0);
		assert_int_equal(dmamap_client_bar_munmap(client, &bar), 0);
	}
	assert_true(address_space_pages() * page < before * page + 16 * mib);
	dmamap_client_close(client);
}

static void a_bar_that_cannot_be_mapped(void **state)
{
	struct dmamap_client *client;
	struct dmamap_reason why;
	struct dmamap_bar bar;
	uint64_t size = 1;
	struct fake fake;

	(void)state;
	fake_init(&fake);
	open_ok(&fake, TYPE1, &client);
	/* 1: no mmap; 2: none; 6: the ROM, 7: config space. */
	for (unsigned index = 1; index < 9; index++) {
		assert_int_equal(dmamap_client_bar_mmap(client, index, 0, &bar, &why), -ENODEV);
		assert_says(&why, "bar", FAKE_BDF " has no BAR");
	}
	assert_int_equal(dmamap_client_bar_size(client, 1, &size), 0);
	assert_int_equal(size, 0);
	assert_int_equal(dmamap_client_bar_size(client, 6, &size), -EINVAL);
	assert_int_equal(dmamap_client_bar_mmap(client, 0, 1, &bar, &why), -EINVAL);
	assert_says(&why, "bar_offset", "BAR 0");
	assert_int_equal(dmamap_client_bar_mmap(client, 0, -(uint64_t)65536, &bar, &why), -ENOMEM);
	assert_says(&why, "bar_no_room", "4 MiB");
	/* What was reserved for it is given back. */
	fake.mmap_fails = true;
	assert_int_equal(dmamap_client_bar_mmap(client, 0, 0, &bar, &why), -EINVAL);
	assert_says(&why, "bar_mmap", "errno 22");
	assert_no_memory_at(fake.held);
	dmamap_client_close(client);
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	dmamap_client_close(NULL);
	dmamap_system_destroy(NULL);
	assert_null(dmamap_mode_find("vfio"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_says_what_failed),
		cmocka_unit_test(open_failing_at_each_call_leaks_nothing),
		cmocka_unit_test(a_device_that_is_not_there),
		cmocka_unit_test(a_short_address_is_in_domain_0),
		cmocka_unit_test(a_device_with_another_driver),
		cmocka_unit_test(a_device_without_group_or_cdev),
		cmocka_unit_test(a_group_that_is_not_viable),
		cmocka_unit_test(the_first_device_of_vfio_pci),
		cmocka_unit_test(map_and_unmap_are_one_ioctl),
		cmocka_unit_test(map_says_what_failed),
		cmocka_unit_test(invalid_is_explained_by_alignment_and_ranges),
		cmocka_unit_test(unmap_says_what_failed),
		cmocka_unit_test(the_systems_reason_comes_first_unless_it_is_an_older_calls),
		cmocka_unit_test(a_mode_maps_files_or_addresses),
		cmocka_unit_test(ranges_are_found_in_the_capability_chain),
		cmocka_unit_test(iovas_come_from_the_allowed_ranges),
		cmocka_unit_test(without_a_list_the_last_page_is_an_iova),
		cmocka_unit_test(a_bar_is_mapped_at_its_alignment),
		cmocka_unit_test(mapping_bars_uses_up_no_address_space),
		cmocka_unit_test(a_bar_that_cannot_be_mapped),
		cmocka_unit_test(closing_nothing_is_fine),
	};

	return cmocka_run_group_tests_name("client errors", tests, NULL, NULL);
}
