/* SPDX-License-Identifier: MIT */
/*
 * The plan on machines that lack something: a system made by hand answers as
 * such a machine does, and each lack gets a sentence that says what to do.
 */
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "cli/bench/memory.h"
#include "cli/bench/plan.h"
#include "tests/check.h"

/* struct poor - What a machine has, and what opening a file gives. */
static struct poor {
	struct dmamap_system system;
	const char *driver;
	int open_vfio;
	int open_iommu;
} poor;

static int poor_open(struct dmamap_system *system, const char *path, int flags)
{
	(void)system;
	(void)flags;
	return strcmp(path, "/dev/iommu") ? poor.open_vfio : poor.open_iommu;
}

static ssize_t poor_readlink(
	struct dmamap_system *system, const char *path, char *buffer, size_t size)
{
	(void)system;
	if (strstr(path, "/driver") && poor.driver)
		return snprintf(buffer, size, "../drivers/%s", poor.driver);
	if (strstr(path, "/iommu_group"))
		return snprintf(buffer, size, "../iommu_groups/7");
	return -ENOENT;
}

static ssize_t poor_list(
	struct dmamap_system *system, const char *path, unsigned index, char *name, size_t size)
{
	(void)system;
	if (index)
		return -ENOENT;
	if (!strcmp(path, "/sys/bus/pci/devices"))
		return snprintf(name, size, "0000:00:03.0");
	return snprintf(name, size, "vfio0");
}

static int poor_close(struct dmamap_system *system, int fd)
{
	(void)system;
	(void)fd;
	return 0;
}

static int poor_reason(struct dmamap_system *system, struct dmamap_reason *reason)
{
	(void)system;
	(void)reason;
	return -ENOENT;
}

static const struct dmamap_system_ops poor_ops = {
	.name = "linux",
	.open = poor_open,
	.close = poor_close,
	.readlink = poor_readlink,
	.list = poor_list,
	.reason = poor_reason,
};

static void lacks_are_explained(void **state)
{
	static const struct {
		const char *bdf, *driver;
		int open_vfio, open_iommu;
		const char *mode;
		const char *names, *says;
	} cases[] = {
		{"0000:00:09.0", "vfio-pci", 0, 0, "vfio_type1_iommu", "0000:00:09.0",
			"no PCI device"},
		{"left", "vfio-pci", 0, 0, "iommufd", "left", "write it like 0000:00:03.0"},
		{"00:03.0", "nvme", 0, 0, "vfio_type1_iommu", "bound to nvme", "vfio-pci"},
		{"00:03.0", NULL, 0, 0, "iommufd", "bound to no driver", "modprobe vfio-pci"},
		{"00:03.0", "vfio-pci", -EACCES, 0, "vfio_type1v2_iommu", "no permission",
			"run as root"},
		{"00:03.0", "vfio-pci", 0, -EACCES, "iommufd", "/dev/iommu", "run as root"},
		{"00:03.0", "vfio-pci", 0, -ENOENT, "iommufd", "no /dev/iommu", "modprobe iommufd"},
		{"00:03.0", "vfio-pci", -ENOENT, 0, "vfio_type1_iommu", "/dev/vfio/vfio",
			"modprobe vfio"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct variant variant = {
			.mode = dmamap_mode_find(cases[i].mode), .memory = &memory_kinds[0]};
		size_t mode = (size_t)(variant.mode - dmamap_modes);
		struct plan_system system = {0};

		poor = (struct poor){
			{&poor_ops}, cases[i].driver, cases[i].open_vfio, cases[i].open_iommu};
		assert_int_equal(
			plan_probe(&system, &poor.system, cases[i].bdf, -1, &variant, 1), 0);
		assert_false(system.opens[mode]);
		if (!strstr(system.why[mode], cases[i].names) ||
			!strstr(system.why[mode], cases[i].says))
			fail_msg("case %zu: %s", i, system.why[mode]);
	}
}

/* Memory that is not there is declared only where that was asked for, and only on soft. */
static void only_sparse_declares(void **state)
{
	struct system_info soft = {.name = "soft"};
	struct system_info kernel = {.name = "linux"};
	struct options options = {.sparse = false};
	struct result row = {.system = &soft, .status = STATUS_RUN};

	(void)state;
	plan_unbacked(&row, &options, "no pages", "echo 1 > there");
	assert_int_equal(row.status, STATUS_SKIPPED);
	assert_string_equal(row.reason, "no pages");
	assert_string_equal(row.hint, "echo 1 > there; or --sparse");
	assert_false(row.declared);

	row = (struct result){.system = &soft, .status = STATUS_RUN};
	options.sparse = true;
	plan_unbacked(&row, &options, "no pages", NULL);
	assert_int_equal(row.status, STATUS_RUN);
	assert_true(row.declared);

	row = (struct result){.system = &kernel, .status = STATUS_RUN};
	plan_unbacked(&row, &options, "no pages", NULL);
	assert_int_equal(row.status, STATUS_SKIPPED);
	assert_false(row.declared);
}

/* A kernel pins what it maps: the limit is compared with the largest mapping of memory. */
static void low_memlock_is_explained(void **state)
{
	struct variant memory = {.mode = dmamap_mode_find("iommufd"), .memory = &memory_kinds[0]};
	struct variant bar = {.mode = dmamap_mode_find("vfio_type1_iommu"),
		.memory = &memory_kinds[MEMORY_KINDS - 1]};
	struct options options = {.size = 16 << 20};
	struct host host = {.memlock = 8 << 20};
	struct complaint complaint = {""};

	(void)state;
	assert_int_equal(plan_memlock(&memory, 1, &options, &host, &complaint), -1);
	assert_non_null(strstr(complaint.text, "is 8 MiB, and mapping 16 MiB"));
	assert_non_null(strstr(complaint.text, "ulimit -l unlimited"));
	assert_int_equal(plan_memlock(&bar, 1, &options, &host, &complaint), 0);
	options.size = 8 << 20;
	assert_int_equal(plan_memlock(&memory, 1, &options, &host, &complaint), 0);
	options.size = 0;
	host.memlock = UINT64_MAX;
	assert_int_equal(plan_memlock(&memory, 1, &options, &host, &complaint), 0);
}

/* The host's numbers are those of a machine: not zero, and not more than there is. */
static void host_is_read(void **state)
{
	struct host host;

	(void)state;
	host_read(&host);
	assert_int_equal(host.page_size, sysconf(_SC_PAGESIZE));
	assert_true(host.cpus >= 1);
	assert_true(host.available > 0 && host.available <= host.memory);
	assert_true(host_usable(&host) < host.available);
	assert_true(host.kernel[0] && host.cpu[0] && host.name[0]);
}

static void alignment_follows_the_size(void **state)
{
	(void)state;
	assert_int_equal(memory_alignment(4096, 4096), 4096);
	assert_int_equal(memory_alignment(3 * 4096, 4096), 2 * 4096);
	assert_int_equal(memory_alignment(256 << 20, 4096), 256 << 20);
	assert_int_equal(memory_alignment(32ull << 30, 65536), 1 << 30);
}

/* Each kind of plain memory comes at its alignment, can be written, and goes again. */
static void memory_comes_aligned_and_goes(void **state)
{
	uint64_t size = 4 << 20;

	(void)state;
	for (size_t i = 0; i < MEMORY_KINDS; i++) {
		const struct memory_kind *kind = &memory_kinds[i];
		struct memory memory;

		if (kind->source == MEMORY_BAR || kind->huge_shift)
			continue;
		assert_int_equal(memory_prepare(&memory, kind, size, size, false), 0);
		assert_int_equal(memory_mmap(&memory, true), 0);
		assert_int_equal((uintptr_t)memory.va % size, 0);
		assert_int_equal(memory.fd >= 0, kind->source == MEMORY_MEMFD);
		memset(memory.va, 0x5a, size);
		assert_int_equal(memory_munmap(&memory), 0);
		memory_release(&memory);
	}
}

/* "anonymous" is base pages for certain, whatever the machine's setting is. */
static void anonymous_has_no_huge_page(void **state)
{
	uint64_t size = 8 << 20;
	struct memory memory;

	(void)state;
	assert_int_equal(memory_prepare(&memory, &memory_kinds[0], size, size, false), 0);
	assert_int_equal(memory_mmap(&memory, true), 0);
	assert_int_equal(memory_huge_bytes(&memory), 0);
	memory_release(&memory);
}

/* Declared memory takes no memory, however large it is. */
static void declared_memory_is_sparse(void **state)
{
	uint64_t size = 32ull << 30;
	struct memory memory;

	(void)state;
	assert_int_equal(memory_prepare(&memory, &memory_kinds[6], size, 1 << 30, true), 0);
	assert_int_equal(memory_mmap(&memory, true), 0);
	assert_true(memory.fd >= 0);
	assert_int_equal((uintptr_t)memory.va % (1 << 30), 0);
	memory_release(&memory);
}

static void a_kernels_stride_follows_its_release(void **state)
{
	(void)state;
	assert_int_equal(plan_kernel_stride("Linux 6.12.107+deb13-amd64"), DMAMAP_PFNMAP_PAGE);
	assert_int_equal(plan_kernel_stride("Linux 6.14.11"), DMAMAP_PFNMAP_PAGE);
	assert_int_equal(plan_kernel_stride("Linux 6.15.0-rc1"), DMAMAP_PFNMAP_LEAF);
	assert_int_equal(plan_kernel_stride("Linux 7.3.4-amd64"), DMAMAP_PFNMAP_LEAF);
	assert_int_equal(plan_kernel_stride("Linux 5.14.0"), DMAMAP_PFNMAP_PAGE);
	assert_int_equal(plan_kernel_stride("somewhere else"), -1);
	assert_int_equal(plan_kernel_stride(""), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lacks_are_explained),
		cmocka_unit_test(only_sparse_declares),
		cmocka_unit_test(low_memlock_is_explained),
		cmocka_unit_test(host_is_read),
		cmocka_unit_test(a_kernels_stride_follows_its_release),
		cmocka_unit_test(alignment_follows_the_size),
		cmocka_unit_test(memory_comes_aligned_and_goes),
		cmocka_unit_test(anonymous_has_no_huge_page),
		cmocka_unit_test(declared_memory_is_sparse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
