/* SPDX-License-Identifier: MIT */
/*
 * One list of tests, run in each of the six modes on the soft system. Where
 * the kernel's interfaces differ, the table of modes has what each answers
 * (Linux 7.3: vfio_iommu_type1.c, iommufd's io_pagetable.c and
 * vfio_compat.c).
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "dmamap/dmamap.h"

#define BDF	 "0000:00:03.0"
#define PAGE	 UINT64_C(4096)
#define MIB	 (UINT64_C(1) << 20)
#define GIB	 (UINT64_C(1) << 30)
#define APERTURE (UINT64_C(1) << 48)
#define WINDOW	 UINT64_C(0xfee00000)
#define MEMORY	 (4 * MIB)
#define RW	 (DMAMAP_READ | DMAMAP_WRITE)

/*
 * @nothing: an unmap of a range without any mapping
 * @cut: an unmap of a mapping's first page of two, and how many bytes it says
 * @bar: a BAR's address
 */
struct expected {
	int nothing;
	int cut;
	uint64_t cut_unmapped;
	int bar;
};

static const struct expected expected[DMAMAP_MODES] = {
	/* Version 1 takes all of a mapping whose first byte is in the range. */
	{0, 0, 2 * PAGE, 0},
	{0, -EINVAL, 0, 0},
	/* Version 1 on an IOMMUFD cuts the mapping in two (iopt_cut_iova). */
	{0, 0, PAGE, -EFAULT},
	{0, -ENOENT, 0, -EFAULT},
	{-ENOENT, -ENOENT, 0, -EFAULT},
	{-ENOENT, -ENOENT, 0, -EOPNOTSUPP},
};

struct fixture {
	const struct dmamap_mode *mode;
	const struct expected *expected;
	struct dmamap_system *system;
	struct dmamap_client *client;
	int fd;
	char *memory;
	unsigned open_before;
};

static unsigned open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}

static int setup(void **state)
{
	static struct fixture f;
	const struct dmamap_mode *mode = *state;

	f = (struct fixture){
		.mode = mode,
		.expected = &expected[mode - dmamap_modes],
		.open_before = open_files(),
	};
	f.fd = memfd_create("client_list", MFD_CLOEXEC);
	if (f.fd < 0 || ftruncate(f.fd, MEMORY))
		return -1;
	f.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	if (f.memory == MAP_FAILED)
		return -1;
	if (dmamap_system_soft(NULL, &f.system, NULL))
		return -1;
	if (dmamap_client_open(f.system, mode, BDF, &f.client, NULL))
		return -1;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	dmamap_client_close(f->client);
	dmamap_system_destroy(f->system);
	munmap(f->memory, MEMORY);
	close(f->fd);
	if (open_files() != f->open_before) {
		print_error("%u files are open, %u were before\n", open_files(), f->open_before);
		return -1;
	}
	return 0;
}

/* Map part of the fixture's memory in the way of its mode. */
static int map(struct fixture *f, uint64_t start, uint64_t length, uint64_t iova, unsigned prot)
{
	struct dmamap_reason why = {0};
	int error;

	if (f->mode->maps_files)
		error = dmamap_client_map_file(f->client, f->fd, start, length, iova, prot, &why);
	else
		error = dmamap_client_map(f->client, f->memory + start, length, iova, prot, &why);
	/* Every refusal has a reason, and its errno. */
	assert_int_equal(why.error, -error);
	if (error)
		assert_non_null(why.kind);
	return error;
}

static int unmap(struct fixture *f, uint64_t iova, uint64_t length, uint64_t *unmapped)
{
	struct dmamap_reason why = {0};
	int error = dmamap_client_unmap(f->client, iova, length, unmapped, &why);

	assert_int_equal(why.error, -error);
	if (error)
		assert_non_null(why.kind);
	return error;
}

static void assert_unmaps(struct fixture *f, uint64_t iova, uint64_t length, uint64_t bytes)
{
	uint64_t unmapped = 0;

	assert_int_equal(unmap(f, iova, length, &unmapped), 0);
	assert_int_equal(unmapped, bytes);
}

/* ------------------------------------------------------------------ tests */

static void a_client_knows_what_it_was_opened_with(void **state)
{
	struct fixture *f = *state;
	char bdf[16];

	assert_ptr_equal(dmamap_client_mode(f->client), f->mode);
	assert_ptr_equal(dmamap_mode_find(f->mode->name), f->mode);
	assert_ptr_equal(dmamap_client_system(f->client), f->system);
	assert_true(dmamap_client_device_fd(f->client) >= 0);
	assert_int_equal(dmamap_client_device(f->system, bdf), 0);
	assert_string_equal(bdf, BDF);
}

static void a_device_is_open_once(void **state)
{
	struct fixture *f = *state;
	struct dmamap_client *second = NULL;
	struct dmamap_reason why = {0};

	for (unsigned m = 0; m < DMAMAP_MODES; m++) {
		bool groups = f->mode->type1 && dmamap_modes[m].type1;
		int error = dmamap_client_open(f->system, &dmamap_modes[m], BDF, &second, &why);

		/* A second open of a group; or a group beside its device's cdev. */
		if (groups || f->mode->type1 || dmamap_modes[m].type1)
			assert_int_equal(error, -EBUSY);
		else
			assert_int_equal(error, -EINVAL);
		assert_non_null(why.kind);
		assert_null(second);
	}
}

static void ranges_are_the_aperture_without_the_msi_window(void **state)
{
	struct fixture *f = *state;
	struct dmamap_range ranges[3] = {0};

	assert_int_equal(dmamap_client_ranges(f->client, NULL, 0), 2);
	assert_int_equal(dmamap_client_ranges(f->client, ranges, 3), 2);
	assert_int_equal(ranges[0].first, 0);
	assert_int_equal(ranges[0].last, WINDOW - 1);
	assert_int_equal(ranges[1].first, WINDOW + MIB);
	assert_int_equal(ranges[1].last, APERTURE - 1);
}

static void what_is_mapped_is_unmapped(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, MEMORY, GIB, RW), 0);
	assert_unmaps(f, GIB, MEMORY, MEMORY);
	assert_int_equal(map(f, PAGE, PAGE, 0, DMAMAP_READ), 0);
	assert_unmaps(f, 0, PAGE, PAGE);
}

static void the_device_reaches_what_is_mapped(void **state)
{
	struct fixture *f = *state;
	struct dmamap_access *access;
	char buffer[8] = "";

	assert_int_equal(map(f, PAGE, 2 * PAGE, GIB, RW), 0);
	assert_int_equal(map(f, 4 * PAGE, PAGE, 2 * GIB, DMAMAP_READ), 0);
	assert_int_equal(
		dmamap_soft_access(f->system, dmamap_client_device_fd(f->client), &access), 0);
	assert_int_equal(dmamap_write(access, GIB + PAGE - 4, "boundary", 8, NULL), 0);
	assert_memory_equal(f->memory + 2 * PAGE - 4, "boundary", 8);
	memcpy(f->memory + 4 * PAGE, "readonly", 8);
	assert_int_equal(dmamap_read(access, 2 * GIB, buffer, 8, NULL), 0);
	assert_memory_equal(buffer, "readonly", 8);
	assert_int_equal(dmamap_write(access, 2 * GIB, "x", 1, NULL), -EPERM);
	assert_unmaps(f, GIB, 2 * PAGE, 2 * PAGE);
	assert_int_equal(dmamap_read(access, GIB, buffer, 8, NULL), -EFAULT);
	dmamap_access_destroy(access);
}

static void a_second_map_of_an_iova_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, 2 * PAGE, GIB, RW), 0);
	assert_int_equal(map(f, 0, 2 * PAGE, GIB, RW), -EEXIST);
	assert_int_equal(map(f, 0, 2 * PAGE, GIB + PAGE, RW), -EEXIST);
	assert_int_equal(map(f, 0, 2 * PAGE, GIB - PAGE, RW), -EEXIST);
	assert_int_equal(map(f, 0, PAGE, GIB + 2 * PAGE, RW), 0);
	assert_unmaps(f, GIB, 3 * PAGE, 3 * PAGE);
}

static void an_unmap_of_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t unmapped = 0;

	assert_int_equal(unmap(f, GIB, PAGE, &unmapped), f->expected->nothing);
	assert_int_equal(unmapped, 0);
}

static void an_unmap_that_cuts_a_mapping(void **state)
{
	struct fixture *f = *state;
	uint64_t unmapped = 0;

	assert_int_equal(map(f, 0, 2 * PAGE, GIB, RW), 0);
	assert_int_equal(unmap(f, GIB, PAGE, &unmapped), f->expected->cut);
	if (!f->expected->cut)
		assert_int_equal(unmapped, f->expected->cut_unmapped);
	/* The rest is there, or all of it, or nothing. */
	assert_unmaps(f, 0, 0, 2 * PAGE - f->expected->cut_unmapped);
}

static void an_unmap_of_more_than_is_mapped(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, PAGE, GIB, RW), 0);
	assert_int_equal(map(f, 0, PAGE, GIB + 2 * PAGE, RW), 0);
	assert_unmaps(f, GIB - PAGE, 5 * PAGE, 2 * PAGE);
}

static void the_last_page_of_the_aperture(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, PAGE, APERTURE - PAGE, RW), 0);
	assert_unmaps(f, APERTURE - PAGE, PAGE, PAGE);
	assert_int_equal(map(f, 0, PAGE, APERTURE, RW), -EINVAL);
	assert_int_equal(map(f, 0, 2 * PAGE, APERTURE - PAGE, RW), -EINVAL);
	assert_int_equal(map(f, 0, PAGE, -PAGE, RW), -EINVAL);
}

static void past_the_end_of_64_bits(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, 2 * PAGE, -PAGE, RW), -EOVERFLOW);
	assert_int_equal(unmap(f, -PAGE, 2 * PAGE, NULL), -EOVERFLOW);
}

static void the_msi_window_is_reserved(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, PAGE, WINDOW, RW), -EINVAL);
	assert_int_equal(map(f, 0, 2 * PAGE, WINDOW - PAGE, RW), -EINVAL);
	assert_int_equal(map(f, 0, 2 * PAGE, WINDOW + MIB - PAGE, RW), -EINVAL);
	assert_int_equal(map(f, 0, PAGE, WINDOW - PAGE, RW), 0);
	assert_int_equal(map(f, 0, PAGE, WINDOW + MIB, RW), 0);
	assert_unmaps(f, WINDOW - PAGE, MIB + 2 * PAGE, 2 * PAGE);
}

static void sizes_and_places_are_whole_pages(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, 0, GIB, RW), -EINVAL);
	assert_int_equal(map(f, 0, PAGE - 1, GIB, RW), -EINVAL);
	assert_int_equal(map(f, 0, PAGE, GIB + 512, RW), -EINVAL);
	assert_int_equal(map(f, 512, PAGE, GIB, RW), -EINVAL);
	assert_unmaps(f, 0, 0, 0);
}

static void a_map_without_protection_gives_a_device_nothing(void **state)
{
	struct fixture *f = *state;
	struct dmamap_access *access;
	int error = map(f, 0, PAGE, GIB, 0);
	char byte;

	/* IOMMUFD's container leaves it to the IOMMU's driver, and these differ. */
	if (error || !f->mode->type1 || strcmp(f->mode->container, "/dev/iommu"))
		assert_int_equal(error, -EINVAL);
	assert_int_equal(
		dmamap_soft_access(f->system, dmamap_client_device_fd(f->client), &access), 0);
	assert_int_equal(dmamap_read(access, GIB, &byte, 1, NULL), error ? -EFAULT : -EPERM);
	dmamap_access_destroy(access);
	assert_unmaps(f, 0, 0, error ? 0 : PAGE);
}

static void memory_that_is_not_there(void **state)
{
	struct fixture *f = *state;
	char *hole = mmap(NULL, 2 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(hole, MAP_FAILED);
	if (f->mode->maps_files) {
		assert_int_equal(map(f, MEMORY - PAGE, 2 * PAGE, GIB, RW), -EINVAL);
		assert_int_equal(
			dmamap_client_map_file(f->client, -1, 0, PAGE, GIB, RW, NULL), -EBADF);
	} else {
		/* Read-only memory for a device that writes, then none at all. */
		assert_int_equal(
			dmamap_client_map(f->client, hole, 2 * MIB, GIB, RW, NULL), -EFAULT);
		munmap(hole + MIB, PAGE);
		assert_int_equal(
			dmamap_client_map(f->client, hole, 2 * MIB, GIB, DMAMAP_READ, NULL),
			-EFAULT);
	}
	/* Nothing stays half mapped. */
	assert_unmaps(f, 0, 0, 0);
	munmap(hole, 2 * MIB);
}

static void files_are_for_one_mode(void **state)
{
	struct fixture *f = *state;

	if (f->mode->maps_files)
		assert_int_equal(
			dmamap_client_map(f->client, f->memory, PAGE, GIB, RW, NULL), -EOPNOTSUPP);
	else
		assert_int_equal(dmamap_client_map_file(f->client, f->fd, 0, PAGE, GIB, RW, NULL),
			-EOPNOTSUPP);
}

static void a_bar_is_mapped_for_dma_by_type1_only(void **state)
{
	struct fixture *f = *state;
	static const struct {
		unsigned index;
		uint64_t size, alignment;
	} bars[] = {{0, 16 * MIB, 16 * MIB}, {2, 32 * GIB, GIB}};
	struct dmamap_bar bar;
	uint64_t size;

	for (unsigned i = 0; i < 2; i++) {
		for (uint64_t offset = 0; offset <= PAGE; offset += PAGE) {
			int error;

			assert_int_equal(
				dmamap_client_bar_size(f->client, bars[i].index, &size), 0);
			assert_int_equal(size, bars[i].size);
			assert_int_equal(dmamap_client_bar_mmap(
						 f->client, bars[i].index, offset, &bar, NULL),
				0);
			assert_int_equal(bar.length, size);
			assert_int_equal((uintptr_t)bar.va % bars[i].alignment, offset);
			error = dmamap_client_map(f->client, bar.va, 2 * MIB, GIB, RW, NULL);
			assert_int_equal(error, f->expected->bar);
			if (!error)
				assert_unmaps(f, GIB, 2 * MIB, 2 * MIB);
			assert_int_equal(dmamap_client_bar_munmap(f->client, &bar), 0);
		}
	}
	assert_int_equal(dmamap_client_bar_size(f->client, 1, &size), 0);
	assert_int_equal(size, 0);
	assert_int_equal(dmamap_client_bar_mmap(f->client, 1, 0, &bar, NULL), -ENODEV);
}

static void iovas_are_allocated_and_given_back(void **state)
{
	struct fixture *f = *state;
	uint64_t a, b, c;

	assert_int_equal(dmamap_client_iova_allocate(f->client, 2 * MIB, 2 * MIB, &a, NULL), 0);
	assert_int_equal(dmamap_client_iova_allocate(f->client, 2 * MIB, 2 * MIB, &b, NULL), 0);
	assert_int_not_equal(a, b);
	assert_int_equal(a % (2 * MIB) + b % (2 * MIB), 0);
	assert_int_equal(map(f, 0, 2 * MIB, a, RW), 0);
	assert_int_equal(map(f, 2 * MIB, 2 * MIB, b, RW), 0);
	assert_unmaps(f, a, 2 * MIB, 2 * MIB);
	dmamap_client_iova_free(f->client, a, 2 * MIB);
	assert_int_equal(dmamap_client_iova_allocate(f->client, 2 * MIB, 2 * MIB, &c, NULL), 0);
	assert_int_equal(c, a);
	/* The window and the aperture's end are kept out. */
	assert_int_equal(dmamap_client_iova_allocate(f->client, 4 * GIB, PAGE, &c, NULL), 0);
	assert_int_equal(c, WINDOW + MIB);
	assert_int_equal(dmamap_client_iova_allocate(f->client, APERTURE, PAGE, &c, NULL), -ENOSPC);
}

static void a_thousand_maps_and_one_unmap(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(map(f, i % 16 * PAGE, PAGE, GIB + i * 2 * PAGE, RW), 0);
	assert_int_equal(map(f, 0, PAGE, GIB + 999 * 2 * PAGE, RW), -EEXIST);
	assert_unmaps(f, 0, 0, 1000 * PAGE);
	assert_unmaps(f, 0, 0, 0);
	assert_int_equal(map(f, 0, PAGE, GIB, RW), 0);
}

static void a_closed_client_leaves_nothing_mapped(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, MEMORY, GIB, RW), 0);
	dmamap_client_close(f->client);
	assert_int_equal(dmamap_client_open(f->system, f->mode, BDF, &f->client, NULL), 0);
	assert_int_equal(map(f, 0, MEMORY, GIB, RW), 0);
}

#define TEST(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct {
	const char *name;
	CMUnitTestFunction function;
} list[] = {
	TEST(a_client_knows_what_it_was_opened_with),
	TEST(a_device_is_open_once),
	TEST(ranges_are_the_aperture_without_the_msi_window),
	TEST(what_is_mapped_is_unmapped),
	TEST(the_device_reaches_what_is_mapped),
	TEST(a_second_map_of_an_iova_is_refused),
	TEST(an_unmap_of_nothing),
	TEST(an_unmap_that_cuts_a_mapping),
	TEST(an_unmap_of_more_than_is_mapped),
	TEST(the_last_page_of_the_aperture),
	TEST(past_the_end_of_64_bits),
	TEST(the_msi_window_is_reserved),
	TEST(sizes_and_places_are_whole_pages),
	TEST(a_map_without_protection_gives_a_device_nothing),
	TEST(memory_that_is_not_there),
	TEST(files_are_for_one_mode),
	TEST(a_bar_is_mapped_for_dma_by_type1_only),
	TEST(iovas_are_allocated_and_given_back),
	TEST(a_thousand_maps_and_one_unmap),
	TEST(a_closed_client_leaves_nothing_mapped),
};

#define N (sizeof(list) / sizeof(list[0]))

int main(void)
{
	static struct CMUnitTest tests[DMAMAP_MODES * N];
	static char names[DMAMAP_MODES * N][96];

	for (unsigned i = 0; i < DMAMAP_MODES * N; i++) {
		const struct dmamap_mode *mode = &dmamap_modes[i / N];

		snprintf(names[i], sizeof(names[i]), "%s.%s", mode->name, list[i % N].name);
		tests[i] = (struct CMUnitTest){
			names[i], list[i % N].function, setup, teardown, (void *)(uintptr_t)mode};
	}
	return _cmocka_run_group_tests("client on soft", tests, DMAMAP_MODES * N, NULL, NULL);
}
