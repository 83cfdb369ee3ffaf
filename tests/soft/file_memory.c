/* SPDX-License-Identifier: MIT */
/*
 * IOMMU_IOAS_MAP_FILE: the file's own pages are found, page by page. Sources:
 * iopt_map_file_pages() in io_pagetable.c, memfd_pin_folios() in mm/gup.c.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/soft/rig.h"

static int map_file(
	struct rig *rig, int fd, uint64_t start, uint64_t length, uint64_t iova, uint32_t flags)
{
	struct iommu_ioas_map_file map = {
		.size = sizeof(map),
		.flags = flags,
		.ioas_id = rig->ioas,
		.fd = fd,
		.start = start,
		.length = length,
		.iova = iova,
	};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &map);
}

#define FIXED (IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE)

static int new_file(uint64_t size, unsigned flags)
{
	int fd = memfd_create("file", MFD_CLOEXEC | flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

/* One look-up for each page of the file; holes get their pages; bytes are the file's. */
static void pages_of_a_memfd(void **state)
{
	struct dmamap_counters before, after;
	struct dmamap_access *access;
	int fd = new_file(4 * MIB, 0);
	struct stat file;
	struct rig rig;
	char bytes[4];

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(pwrite(fd, "abcd", 4, MIB), 4);
	before = rig_counters(&rig);
	assert_int_equal(map_file(&rig, fd, MIB, 2 * MIB, GIB, FIXED), 0);
	after = rig_counters(&rig);
	assert_int_equal(after.lookups - before.lookups, 512);
	assert_int_equal(after.leaves[12] - before.leaves[12], 512);
	assert_int_equal(fstat(fd, &file), 0);
	assert_int_equal(file.st_blocks, 2 * MIB / 512);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_read(access, GIB, bytes, 4, NULL), 0);
	assert_memory_equal(bytes, "abcd", 4);
	assert_int_equal(dmamap_write(access, GIB + MIB, "efgh", 4, NULL), 0);
	assert_int_equal(pread(fd, bytes, 4, 2 * MIB), 4);
	assert_memory_equal(bytes, "efgh", 4);
	dmamap_access_destroy(access);
	/* The descriptor may go: the mapping has the file. */
	close(fd);
	assert_int_equal(rig_ioas_unmap(&rig, GIB, &(uint64_t){2 * MIB}), 0);
	rig_stop(&rig);
}

/* What is checked at once, in the kernel's order, and what only when it is pinned. */
static void refusals(void **state)
{
	int fd = new_file(MIB, 0), pipes[2];
	struct rig rig;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_gives(&rig, map_file(&rig, fd, 0, MIB, 0, 8), EOPNOTSUPP, "flags");
	assert_gives(&rig, map_file(&rig, fd, 0, MIB, UINT64_MAX, FIXED), EOVERFLOW, "too_large");
	assert_gives(&rig, map_file(&rig, fd, 0, UINT64_MAX, 0, FIXED), EOVERFLOW, "too_large");
	assert_gives(&rig, map_file(&rig, fd, 0, MIB, 0, IOMMU_IOAS_MAP_FIXED_IOVA), EINVAL,
		"no_access");
	assert_gives(&rig, map_file(&rig, fd, 0, 0, 0, FIXED), EINVAL, "length_zero");
	assert_gives(&rig, map_file(&rig, fd, ~0ULL - 10, MIB, 0, FIXED), EOVERFLOW, "wrap");
	assert_gives(&rig, map_file(&rig, 9999, 0, MIB, 0, FIXED), EBADF, "bad_fd");
	assert_gives(&rig, map_file(&rig, fd, 0x800, PAGE, 0, FIXED), EINVAL, "misaligned");
	assert_gives(&rig, map_file(&rig, pipes[0], 0, PAGE, 0, FIXED), EINVAL, "file_kind");
	assert_gives(&rig, map_file(&rig, fd, MIB, PAGE, 0, FIXED), EINVAL, "file_end");
	assert_gives(&rig, map_file(&rig, fd, 0, MIB + PAGE, 0, FIXED), EINVAL, "file_end");
	assert_gives(
		&rig, map_file(&rig, fd, 0, 1ULL << 46, 1ULL << 46, FIXED), EINVAL, "file_end");
	assert_int_equal(rig_counters(&rig).areas, 0);
	assert_int_equal(map_file(&rig, fd, 0, MIB, 0, FIXED), 0);
	rig_stop(&rig);
	rig_start(&rig, NULL);
	rig_cdev(&rig, false);
	assert_int_equal(map_file(&rig, pipes[0], 0, PAGE, 0, FIXED), 0);
	assert_gives(
		&rig, rig_attach(&rig, rig.device, &(uint32_t){rig.ioas}), EINVAL, "file_kind");
	rig_stop(&rig);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
}

/* memfd_pin_folios looks neither at how a descriptor was opened nor at seals. */
static void read_only_descriptor(void **state)
{
	int fd = new_file(MIB, 0), again;
	char path[64];
	struct rig rig;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(map_file(&rig, again, 0, MIB, 0, FIXED), 0);
	rig_stop(&rig);
	close(again);
	close(fd);
}

/*
 * A file sealed against writing is pinned all the same. Linux lets the device write to it; we
 * may not, and give the device a copy of what it writes.
 */
static void sealed(void **state)
{
	int fd = new_file(MIB, MFD_ALLOW_SEALING);
	struct dmamap_access *access;
	struct rig rig;
	char bytes[4];

	(void)state;
	assert_int_equal(pwrite(fd, "abcd", 4, 0), 4);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(
		map_file(&rig, fd, 0, MIB, 0, IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE),
		0);
	assert_int_equal(map_file(&rig, fd, 0, MIB, GIB, FIXED), 0);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_write(access, GIB + 1, "xy", 2, NULL), 0);
	assert_int_equal(dmamap_read(access, GIB, bytes, 4, NULL), 0);
	assert_memory_equal(bytes, "axyd", 4);
	assert_int_equal(dmamap_read(access, 0, bytes, 4, NULL), 0);
	assert_memory_equal(bytes, "abcd", 4);
	dmamap_access_destroy(access);
	rig_stop(&rig);
	close(fd);
}

/* memfd_pin_folios looks at the file's size when it pins, and at whole pages. */
static void grows(void **state)
{
	int fd = new_file(PAGE, 0);
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, false);
	assert_int_equal(map_file(&rig, fd, 0, MIB, 0, FIXED), 0);
	assert_gives(&rig, rig_attach(&rig, rig.device, &(uint32_t){rig.ioas}), EINVAL, "file_end");
	assert_int_equal(ftruncate(fd, MIB - 1), 0);
	assert_gives(&rig, rig_attach(&rig, rig.device, &(uint32_t){rig.ioas}), EINVAL, "file_end");
	assert_int_equal(ftruncate(fd, MIB), 0);
	assert_int_equal(rig_attach(&rig, rig.device, &(uint32_t){rig.ioas}), 0);
	/* And may shrink again, for what is mapped next. */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_gives(&rig, map_file(&rig, fd, 0, PAGE, GIB, FIXED), EINVAL, "file_end");
	rig_stop(&rig);
	close(fd);
}

/* However often a file is mapped, it takes one descriptor of ours. */
static void one_descriptor(void **state)
{
	int fd = new_file(MIB, 0);
	unsigned before;
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	before = rig_descriptors();
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(map_file(&rig, fd, 0, PAGE, i * PAGE, FIXED), 0);
	assert_int_equal(rig_descriptors(), before + 1);
	assert_int_equal(rig_ioas_unmap(&rig, 0, &(uint64_t){UINT64_MAX}), 0);
	assert_int_equal(rig_descriptors(), before);
	rig_stop(&rig);
	close(fd);
}

/* 32 pages of 1 GiB: 32 look-ups and 32 leaves, whatever the caller's address is. */
static void declared_file(void **state)
{
	struct dmamap_counters before, after;
	int fd = new_file(32 * GIB, 0);
	struct stat file;
	struct rig rig;
	char *room, *va;

	(void)state;
	room = mmap(NULL, 2 * GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	va = (char *)(((uintptr_t)room + GIB - 1) & ~(GIB - 1));
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_int_equal(dmamap_soft_declare(rig.system, va, GIB, fd, 30), 0);
	before = rig_counters(&rig);
	assert_int_equal(map_file(&rig, fd, 0, 32 * GIB, 64 * GIB, FIXED), 0);
	after = rig_counters(&rig);
	assert_int_equal(after.lookups - before.lookups, 32);
	assert_int_equal(after.leaves[30] - before.leaves[30], 32);
	assert_int_equal(fstat(fd, &file), 0);
	assert_int_equal(file.st_blocks, 0);
	rig_stop(&rig);
	munmap(room, 2 * GIB);
	close(fd);
}

/* Real huge pages, where the machine has one free. */
static void hugetlb_file(void **state)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | 21u << 26);
	struct dmamap_counters before, after;
	void *probe;
	struct rig rig;

	(void)state;
	if (fd < 0 || ftruncate(fd, 2 * MIB)) {
		printf("this kernel has no hugetlb pages of 2 MiB\n");
		skip();
	}
	probe = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (probe == MAP_FAILED) {
		printf("no 2 MiB huge page is free: echo 4 > "
		       "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\n");
		close(fd);
		skip();
	}
	munmap(probe, 2 * MIB);
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	before = rig_counters(&rig);
	assert_int_equal(map_file(&rig, fd, 0, 2 * MIB, GIB, FIXED), 0);
	/* Part of a page: the whole page is pinned, the part is mapped. */
	assert_int_equal(map_file(&rig, fd, MIB, MIB, 2 * GIB + MIB, FIXED), 0);
	after = rig_counters(&rig);
	assert_int_equal(after.lookups - before.lookups, 2);
	assert_int_equal(after.leaves[21] - before.leaves[21], 1);
	assert_int_equal(after.leaves[12] - before.leaves[12], 256);
	rig_stop(&rig);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_a_memfd),
		cmocka_unit_test(refusals),
		cmocka_unit_test(read_only_descriptor),
		cmocka_unit_test(sealed),
		cmocka_unit_test(grows),
		cmocka_unit_test(one_descriptor),
		cmocka_unit_test(declared_file),
		cmocka_unit_test(hugetlb_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
