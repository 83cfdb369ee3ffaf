/* SPDX-License-Identifier: MIT */
/*
 * How process memory and BARs are found: the look-ups are counted as the kernel
 * makes them (one per pin call, one per pfnmap leaf), and leaves are as large
 * as memory and IOVA allow. Sources: vaddr_get_pfns() in vfio_iommu_type1.c,
 * pfn_reader_user_pin() in iommufd/pages.c.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include "soft/soft.h"
#include "tests/soft/rig.h"

#define BAR_SIZE (32 * GIB)

struct work {
	uint64_t lookups, leaves_1g, leaves_2m, leaves_4k;
};

static struct work since(struct rig *rig, const struct dmamap_counters *before)
{
	struct dmamap_counters now = rig_counters(rig);

	return (struct work){
		now.lookups - before->lookups,
		now.leaves[30] - before->leaves[30],
		now.leaves[21] - before->leaves[21],
		now.leaves[12] - before->leaves[12],
	};
}

/* Maps at an IOVA and says what it took. */
static struct work map_type1(struct rig *rig, uint64_t iova, const void *va, uint64_t size)
{
	struct dmamap_counters before = rig_counters(rig);

	assert_int_equal(rig_map(rig, iova, va, size, RW), 0);
	return since(rig, &before);
}

static struct work map_ioas(struct rig *rig, uint64_t iova, const void *va, uint64_t size)
{
	struct dmamap_counters before = rig_counters(rig);

	assert_int_equal(rig_ioas_map(rig, iova, va, size, RW), 0);
	return since(rig, &before);
}

#define assert_work(call, a, b, c, d)                                                              \
	do {                                                                                       \
		struct work got = call;                                                            \
		assert_int_equal(got.lookups, a);                                                  \
		assert_int_equal(got.leaves_1g, b);                                                \
		assert_int_equal(got.leaves_2m, c);                                                \
		assert_int_equal(got.leaves_4k, d);                                                \
	} while (0)

/* 512 page pointers fit a page: 64 MiB are 32 steps, present or not. */
static void type1_steps(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_work(map_type1(&rig, 0, rig_memory(64 * MIB, true), 64 * MIB), 32, 0, 0, 16384);
	assert_work(map_type1(&rig, GIB, rig_memory(64 * MIB, false), 64 * MIB), 32, 0, 0, 16384);
	rig_stop(&rig);
}

/* 64 KiB of page pointers: 8192 pages a step. */
static void iommufd_steps(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	assert_work(map_ioas(&rig, 0, rig_memory(64 * MIB, true), 64 * MIB), 2, 0, 0, 16384);
	rig_stop(&rig);
}

static char *huge(uint64_t length)
{
	char *memory = rig_memory(length, false);

	madvise(memory, length, MADV_HUGEPAGE);
	memset(memory, 1, length);
	return memory;
}

static bool have_thp(char *memory)
{
	/* All 8 MiB are huge, or the machine has none to give. */
	struct soft_extent extent;
	struct rig rig;
	bool have;

	rig_start(&rig, NULL);
	assert_int_equal(soft_pages_populate(soft_system_from(rig.system), (uintptr_t)memory,
				 (uintptr_t)memory + 8 * MIB - 1, true, &extent, NULL),
		0);
	have = extent.contiguous == 21 && extent.last == (uintptr_t)memory + 8 * MIB - 1;
	rig_stop(&rig);
	return have;
}

/* A transparent huge page is one piece for the IOMMU, where the IOVA is congruent to it. */
static void huge_leaves(void **state)
{
	char *memory = huge(8 * MIB);
	struct rig rig;

	(void)state;
	if (!have_thp(memory)) {
		printf("no transparent huge page was to be had: "
		       "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\n");
		skip();
	}
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_work(map_type1(&rig, GIB, memory, 8 * MIB), 4, 0, 4, 0);
	assert_work(map_type1(&rig, 2 * GIB + PAGE, memory, 8 * MIB), 4, 0, 0, 2048);
	/* Started inside a block: small to its end, then blocks, then small again. */
	assert_work(map_type1(&rig, 3 * GIB - 2 * MIB + PAGE, memory + PAGE, 8 * MIB - 2 * PAGE), 4,
		0, 2, 1022);
	rig_stop(&rig);
}

/* Kernels without PROCMAP_QUERY and PAGEMAP_SCAN give the same answers another way. */
static void plain_way(void **state)
{
	char *memory = huge(8 * MIB), *small = rig_memory(4 * MIB, false);
	bool thp = have_thp(memory);
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	atomic_store(&soft_system_from(rig.system)->proc.plain, true);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_work(map_type1(&rig, 0, small, 4 * MIB), 2, 0, 0, 1024);
	munmap(small + MIB, PAGE);
	assert_gives(&rig, rig_map(&rig, GIB, small, 2 * MIB, RW), EFAULT, "hole");
	mprotect(small, MIB, PROT_READ);
	assert_gives(&rig, rig_map(&rig, GIB, small, MIB, RW), EFAULT, "memory_access");
	assert_int_equal(rig_map(&rig, GIB, small, MIB, READ), 0);
	if (thp) {
		/* A mapping of its own, by its madvise, and huge throughout. */
		assert_work(map_type1(&rig, 2 * GIB, memory, 8 * MIB), 4, 0, 4, 0);
	}
	rig_stop(&rig);
}

/*
 * A file that is written back may not be written to by a device for long, since
 * its file system would not know (check_vma_flags() in mm/gup.c); a private
 * mapping of it may, and a file that is only in memory.
 */
static void shared_files(void **state)
{
	char path[] = "./dmamap-shared-XXXXXX";
	int fds[2] = {mkstemp(path), memfd_create("shared", 0)};
	struct statfs system;
	struct rig rig;
	char *shared[2], *private;

	(void)state;
	unlink(path);
	assert_int_equal(fstatfs(fds[0], &system), 0);
	if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
		printf("no file system of this folder is ever written back\n");
		skip();
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ftruncate(fds[i], 4 * PAGE), 0);
		shared[i] = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
	}
	private = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[0], 0);
	for (unsigned plain = 0; plain < 2; plain++) {
		rig_start(&rig, NULL);
		atomic_store(&soft_system_from(rig.system)->proc.plain, plain);
		rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
		assert_gives(
			&rig, rig_map(&rig, 0, shared[0], 4 * PAGE, RW), EFAULT, "memory_file");
		assert_int_equal(rig_map(&rig, 0, shared[0], 4 * PAGE, READ), 0);
		assert_int_equal(rig_map(&rig, MIB, private, 4 * PAGE, RW), 0);
		assert_int_equal(rig_map(&rig, 2 * MIB, shared[1], 4 * PAGE, RW), 0);
		rig_stop(&rig);
		rig_start(&rig, NULL);
		rig_cdev(&rig, true);
		assert_gives(&rig, rig_ioas_map(&rig, 0, shared[0], 4 * PAGE, RW), EFAULT,
			"memory_file");
		assert_int_equal(rig_ioas_map(&rig, 0, shared[1], 4 * PAGE, RW), 0);
		rig_stop(&rig);
	}
	for (unsigned i = 0; i < 2; i++) {
		munmap(shared[i], 4 * PAGE);
		close(fds[i]);
	}
	munmap(private, 4 * PAGE);
}

/* Ranges with and without pages, in one mapping: absent ones are made present. */
static void mixed_presence(void **state)
{
	char *memory = rig_memory(16 * MIB, false);
	unsigned char present[4096];
	struct rig rig;

	(void)state;
	for (unsigned i = 0; i < 4096; i += 3)
		memory[i * PAGE] = 1;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	/* Pages that are present and absent are pinned together. */
	assert_work(map_type1(&rig, 0, memory, 16 * MIB), 8, 0, 0, 4096);
	assert_int_equal(mincore(memory, 16 * MIB, present), 0);
	for (unsigned i = 0; i < 4096; i++)
		assert_true(present[i] & 1);
	rig_stop(&rig);
}

/* A page that was only read is the shared page of zeroes; a device must not get that. */
static void zero_page(void **state)
{
	char *memory = rig_memory(PAGE, false);
	struct dmamap_access *access;
	volatile char seen;
	struct rig rig;

	(void)state;
	seen = *memory;
	(void)seen;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_int_equal(rig_map(&rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_write(access, 8, "x", 1, NULL), 0);
	assert_int_equal(memory[8], 'x');
	dmamap_access_destroy(access);
	rig_stop(&rig);
}

/* A file's mapping past the file's end faults, and nothing stays of the map. */
static void past_the_files_end(void **state)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	struct rig rig;
	char *va;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGE), 0);
	va = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (unsigned plain = 0; plain < 2; plain++) {
		rig_start(&rig, NULL);
		atomic_store(&soft_system_from(rig.system)->proc.plain, plain);
		rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
		assert_gives(&rig, rig_map(&rig, 0, va, 2 * PAGE, RW), EFAULT, "memory_fault");
		assert_int_equal(rig_counters(&rig).areas, 0);
		assert_int_equal(rig_map(&rig, 0, va, PAGE, RW), 0);
		rig_stop(&rig);
	}
	munmap(va, 2 * PAGE);
	close(fd);
}

/* Without a device nothing is looked up; attaching does it, and its errors come up. */
static void populated_on_attach(void **state)
{
	char *memory = rig_memory(4 * MIB, false);
	unsigned char present[1024];
	struct rig rig;
	uint32_t pt;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, false);
	assert_work(map_ioas(&rig, 0, memory, 4 * MIB), 0, 0, 0, 0);
	assert_int_equal(mincore(memory, 4 * MIB, present), 0);
	assert_int_equal(present[7] & 1, 0);
	/* Not there at all: fine as long as nobody looks. */
	assert_int_equal(rig_ioas_map(&rig, GIB, (void *)(3 * PAGE), PAGE, RW), 0);
	pt = rig.ioas;
	assert_gives(&rig, rig_attach(&rig, rig.device, &pt), EFAULT, "hole");
	assert_int_equal(rig_ioas_unmap(&rig, GIB, &(uint64_t){PAGE}), 0);
	pt = rig.ioas;
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_equal(rig_counters(&rig).leaves[12], 1024);
	assert_int_equal(mincore(memory, 4 * MIB, present), 0);
	assert_int_equal(present[7] & 1, 1);
	assert_int_equal(rig_ioas_map(&rig, GIB, (void *)(3 * PAGE), PAGE, RW), -EFAULT);
	rig_stop(&rig);
}

/*
 * Look-ups step by the level at which VA and BAR address are congruent, leaves
 * are as the IOVA is: 2^18 pages a GiB, 512 blocks of 2 MiB.
 */
static void bar_strides(void **state)
{
	static const struct {
		enum dmamap_pfnmap_stride stride;
		uint64_t shift, lookups;
	} rows[] = {
		{DMAMAP_PFNMAP_LEAF, 0, 32},
		/* 31 GiB and 510 blocks of 2 MiB at both ends together, by blocks throughout. */
		{DMAMAP_PFNMAP_LEAF, 2 * MIB, 16384},
		{DMAMAP_PFNMAP_LEAF, 4 * KIB, 8388608},
		{DMAMAP_PFNMAP_PAGE, 0, 8388608},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct dmamap_machine machine;
		struct rig rig;
		void *va;

		dmamap_machine_default(&machine);
		machine.pfnmap_stride = rows[i].stride;
		rig_start(&rig, &machine);
		rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
		va = rig_bar(&rig, 2, BAR_SIZE, rows[i].shift);
		assert_work(map_type1(&rig, 64 * GIB, va, BAR_SIZE), rows[i].lookups, 32, 0, 0);
		rig.system->ops->munmap(rig.system, va, BAR_SIZE);
		rig_stop(&rig);
	}
}

/* The IOVA off by 2 MiB: the same look-ups, smaller leaves. */
static void bar_iova(void **state)
{
	struct rig rig;
	void *va;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	va = rig_bar(&rig, 2, 4 * GIB, 0);
	assert_work(map_type1(&rig, 64 * GIB + 2 * MIB, va, 4 * GIB), 4, 0, 2048, 0);
	rig_stop(&rig);
}

/* A BAR cannot be pinned: every way of IOMMUFD refuses it, with a page table. */
static void bar_on_iommufd(void **state)
{
	struct rig rig;
	void *va;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	va = rig_bar(&rig, 0, 16 * MIB, 0);
	assert_gives(&rig, rig_ioas_map(&rig, 0, va, 16 * MIB, RW), EFAULT, "bar_pinned");
	rig_stop(&rig);
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/iommu", VFIO_TYPE1v2_IOMMU);
	va = rig_bar(&rig, 0, 16 * MIB, 0);
	assert_gives(&rig, rig_map(&rig, 0, va, 16 * MIB, RW), EFAULT, "bar_pinned");
	rig_stop(&rig);
}

/* follow_fault_pfn: not through a read-only mapping, not with memory decoding off. */
static void bar_refusals(void **state)
{
	uint16_t command = 0;
	struct rig rig;
	char *va;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	va = rig_bar(&rig, 0, 16 * MIB, 0);
	assert_int_equal(
		rig.system->ops->pwrite(rig.system, rig.device, &command, 2, (7ULL << 40) + 4), 2);
	assert_gives(&rig, rig_map(&rig, 0, va, 16 * MIB, RW), EFAULT, "bar_off");
	command = 2;
	rig.system->ops->pwrite(rig.system, rig.device, &command, 2, (7ULL << 40) + 4);
	/* Past its end: whatever is there is looked at on its own, and there is nothing. */
	munmap(va + 16 * MIB, PAGE);
	assert_gives(&rig, rig_map(&rig, 0, va, 16 * MIB + PAGE, RW), EFAULT, "hole");
	assert_int_equal(rig_map(&rig, 0, va, 16 * MIB, RW), 0);
	assert_int_equal(rig.system->ops->mmap(rig.system, va, 16 * MIB, PROT_READ,
				 MAP_SHARED | MAP_FIXED, rig.device, 0, (void **)&va),
		0);
	assert_gives(&rig, rig_map(&rig, GIB, va, 16 * MIB, RW), EFAULT, "memory_access");
	assert_int_equal(rig_map(&rig, GIB, va, 16 * MIB, READ), 0);
	rig_stop(&rig);
}

/* DMA to a BAR reaches the BAR, seen through its mapping and through the device's file. */
static void bar_bytes(void **state)
{
	struct dmamap_access *access;
	struct rig rig;
	char byte = 0;
	char *va;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	va = rig_bar(&rig, 2, BAR_SIZE, 4 * KIB);
	assert_int_equal(rig_map(&rig, 0x4000000000, va + GIB, 2 * MIB, RW), 0);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_write(access, 0x4000000000 + 5, "y", 1, NULL), 0);
	assert_int_equal(va[GIB + 5], 'y');
	assert_int_equal(
		rig.system->ops->pread(rig.system, rig.device, &byte, 1, (2ULL << 40) + GIB + 5),
		1);
	assert_int_equal(byte, 'y');
	dmamap_access_destroy(access);
	rig_stop(&rig);
}

/* Memory around a BAR's mapping is ordinary, and one map may take all three. */
static void bar_between(void **state)
{
	struct rig rig;
	char *all, *va;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	all = rig_memory(6 * MIB, true);
	assert_int_equal(
		rig.system->ops->mmap(rig.system, all + 2 * MIB, 2 * MIB, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED, rig.device, 0, (void **)&va),
		0);
	/* 512 pages, a block, 512 pages. */
	assert_work(map_type1(&rig, 0, all, 6 * MIB), 3, 0, 1, 1024);
	/* The middle of the mapping gone: what is left is smaller than a block. */
	assert_int_equal(rig.system->ops->munmap(rig.system, va + MIB, PAGE), 0);
	assert_gives(&rig, rig_map(&rig, GIB, va, 2 * MIB, RW), EFAULT, "hole");
	assert_work(map_type1(&rig, GIB, va, MIB), 256, 0, 0, 256);
	rig_stop(&rig);
}

/* Declared memory counts as what it was declared to be, and is never touched. */
static void declared(void **state)
{
	int fd = memfd_create("declared", MFD_CLOEXEC);
	unsigned char present = 1;
	struct rig rig;
	char *room, *va;

	(void)state;
	assert_int_equal(ftruncate(fd, 32 * GIB), 0);
	room = mmap(NULL, 33 * GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	va = (char *)(((uintptr_t)room + GIB - 1) & ~(GIB - 1));
	assert_ptr_equal(mmap(va, 32 * GIB, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0),
		va);
	rig_start(&rig, NULL);
	assert_int_equal(dmamap_soft_declare(rig.system, va + PAGE, GIB, fd, 30), -EINVAL);
	assert_int_equal(dmamap_soft_declare(rig.system, va, 32 * GIB, fd, 30), 0);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	assert_work(map_type1(&rig, GIB * 64, va, 32 * GIB), 16384, 32, 0, 0);
	assert_int_equal(mincore(va, PAGE, &present), 0);
	assert_int_equal(present & 1, 0);
	assert_int_equal(rig_unmap(&rig, GIB * 64, &(uint64_t){32 * GIB}, 0), 0);
	dmamap_soft_undeclare(rig.system, va);
	assert_work(map_type1(&rig, GIB * 64, va, MIB), 1, 0, 0, 256);
	rig_stop(&rig);
	munmap(room, 33 * GIB);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(type1_steps),
		cmocka_unit_test(iommufd_steps),
		cmocka_unit_test(huge_leaves),
		cmocka_unit_test(plain_way),
		cmocka_unit_test(shared_files),
		cmocka_unit_test(mixed_presence),
		cmocka_unit_test(zero_page),
		cmocka_unit_test(past_the_files_end),
		cmocka_unit_test(populated_on_attach),
		cmocka_unit_test(bar_strides),
		cmocka_unit_test(bar_iova),
		cmocka_unit_test(bar_on_iommufd),
		cmocka_unit_test(bar_refusals),
		cmocka_unit_test(bar_bytes),
		cmocka_unit_test(bar_between),
		cmocka_unit_test(declared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
