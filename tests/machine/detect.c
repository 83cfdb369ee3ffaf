/* SPDX-License-Identifier: MIT */
/*
 * The machine at hand, found in a sysfs of paper: what Linux shows on the lab's
 * machines, and what other hardware would show. The soft system's own sysfs is
 * tested in tests/soft/.
 */
#include <errno.h>
#include <unistd.h>

#include "machine/machine.h"
#include "tests/check.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* A file, a link ("-> target") or a directory ("name name/"); @size for bytes. */
struct paper {
	const char *path, *text;
	size_t size;
};

struct tree {
	struct dmamap_system system;
	const struct paper
		*sheets[4]; /* later ones replace earlier ones; each ends with a NULL path */
	size_t position[64];
	const struct paper *open[64];
};

static const struct paper *find(struct tree *tree, const char *path)
{
	for (int i = 3; i >= 0; i--)
		for (const struct paper *p = tree->sheets[i]; p && p->path; p++)
			if (!strcmp(p->path, path))
				return p->text ? p : NULL;
	return NULL;
}

static int paper_open(struct dmamap_system *system, const char *path, int flags)
{
	struct tree *tree = (struct tree *)system;
	const struct paper *paper = find(tree, path);

	assert_int_equal(flags, 0);
	if (!paper)
		return -ENOENT;
	/* As sysfs answers for what can only be written. */
	if (!strcmp(paper->text, "write"))
		return -EINVAL;
	for (int fd = 0; fd < 64; fd++) {
		if (tree->open[fd])
			continue;
		tree->open[fd] = paper;
		tree->position[fd] = 0;
		return fd;
	}
	return -EMFILE;
}

static int paper_close(struct dmamap_system *system, int fd)
{
	((struct tree *)system)->open[fd] = NULL;
	return 0;
}

/* In pieces, as any read may be. */
static ssize_t paper_read(struct dmamap_system *system, int fd, void *buffer, size_t size)
{
	struct tree *tree = (struct tree *)system;
	const struct paper *paper = tree->open[fd];
	size_t all = paper->size ? paper->size : strlen(paper->text);
	size_t n = all - tree->position[fd];

	n = n < size ? n : size;
	n = n < 100 ? n : 100;
	memcpy(buffer, paper->text + tree->position[fd], n);
	tree->position[fd] += n;
	return (ssize_t)n;
}

static ssize_t paper_readlink(
	struct dmamap_system *system, const char *path, char *buffer, size_t size)
{
	const struct paper *paper = find((struct tree *)system, path);

	if (!paper || strncmp(paper->text, "-> ", 3))
		return -ENOENT;
	return snprintf(buffer, size, "%s", paper->text + 3);
}

static ssize_t paper_list(
	struct dmamap_system *system, const char *path, unsigned index, char *name, size_t size)
{
	const struct paper *paper = find((struct tree *)system, path);
	const char *at = paper ? paper->text : "";

	for (; *at && index; index--)
		at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
	if (!*at)
		return -ENOENT;
	return snprintf(name, size, "%.*s", (int)strcspn(at, " "), at);
}

static const struct dmamap_system_ops paper_ops = {
	.name = "paper",
	.open = paper_open,
	.close = paper_close,
	.read = paper_read,
	.readlink = paper_readlink,
	.list = paper_list,
};

#define PCI    "/sys/bus/pci/devices/"
#define IOMMU  "/sys/class/iommu/"
#define DRIVER "/sys/bus/pci/drivers/vfio-pci"
#define MODULE "/sys/module/vfio_iommu_type1/parameters/"
#define NONE   "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"

/* An endpoint with power management, MSI of 1 and MSI-X of 5, as QEMU's e1000e has them. */
static const char e1000e_config[256] = {
	[0x06] = 0x10,
	[0x34] = (char)0xc8,
	[0x3d] = 1,
	[0xc8] = 0x01,
	[0xc9] = (char)0xd0,
	[0xd0] = 0x05,
	[0xd1] = (char)0xe0,
	[0xd2] = (char)0x80,
	[0xe0] = 0x10,
	[0xe1] = (char)0xa0,
	[0xa0] = 0x11,
	[0xa2] = 0x04,
	[0xa4] = 0x03,
	[0xa5] = 0x20,
};

/* A list that never ends: two capabilities that name each other. MSI of 8. */
static const char circle_config[256] = {[0x06] = 0x10,
	[0x34] = 0x40,
	[0x40] = 0x01,
	[0x41] = 0x50,
	[0x50] = 0x05,
	[0x51] = 0x40,
	[0x52] = 0x06};

/* Of the lab's 39-bit machine: the functions of a PC, and what type1's module shows. */
static const struct paper pc[] = {
	{"/proc/sys/kernel/osrelease", "7.3.4+deb13-amd64\n", 0},
	{MODULE "allow_unsafe_interrupts", "Y\n", 0},
	{MODULE "disable_hugepages", "N\n", 0},
	{MODULE "dma_entry_limit", "65535\n", 0},
	{DRIVER, "0000:00:04.0 0000:00:07.0 bind module new_id remove_id uevent unbind", 0},
	{PCI "0000:00:04.0/iommu_group", "-> ../../../kernel/iommu_groups/1", 0},
	{PCI "0000:00:04.0/iommu", "-> ../../virtual/iommu/dmar0", 0},
	{PCI "0000:00:04.0/vfio-dev", "vfio0", 0},
	{PCI "0000:00:04.0/vendor", "0x1b36\n", 0},
	{PCI "0000:00:04.0/device", "0x0005\n", 0},
	{PCI "0000:00:04.0/class", "0x00ff00\n", 0},
	{PCI "0000:00:04.0/resource",
		"0x00000000feb84000 0x00000000feb84fff 0x0000000000040200\n"
		"0x000000000000c000 0x000000000000c0ff 0x0000000000040101\n"
		"0x0000000800000000 0x0000000fffffffff 0x000000000014220c\n" NONE NONE NONE NONE,
		0},
	{PCI "0000:00:04.0/config", circle_config, 64},
	{PCI "0000:00:07.0/iommu_group", "-> ../../../kernel/iommu_groups/4", 0},
	{PCI "0000:00:07.0/iommu", "-> ../../virtual/iommu/dmar0", 0},
	{PCI "0000:00:07.0/vfio-dev", "vfio3", 0},
	{PCI "0000:00:07.0/vendor", "0x8086\n", 0},
	{PCI "0000:00:07.0/device", "0x10d3\n", 0},
	{PCI "0000:00:07.0/class", "0x020000\n", 0},
	{PCI "0000:00:07.0/resource",
		"0x00000000feb40000 0x00000000feb5ffff 0x0000000000040200\n"
		"0x00000000feb60000 0x00000000feb7ffff 0x0000000000040200\n"
		"0x000000000000c240 0x000000000000c25f 0x0000000000040101\n"
		"0x00000000feb80000 0x00000000feb83fff 0x0000000000040200\n" NONE NONE
		"0x00000000feb00000 0x00000000feb3ffff 0x0000000000046200\n",
		0},
	{PCI "0000:00:07.0/config", e1000e_config, 256},
	{PCI "0000:00:07.0/reset", "write", 0},
	{"/sys/kernel/iommu_groups/1/reserved_regions",
		"0x00000000fee00000 0x00000000feefffff msi\n", 0},
	{"/sys/kernel/iommu_groups/4/reserved_regions",
		"0x0000000000000000 0x0000000000ffffff direct-relaxable\n"
		"0x000000007f000000 0x000000007fffffff direct\n"
		"0x00000000fee00000 0x00000000feefffff msi\n",
		0},
	{NULL, NULL, 0},
};

/* QEMU's intel-iommu with aw-bits=39, as the lab's kernel printed it. */
static const struct paper intel39[] = {
	{"/sys/class/iommu", "dmar0", 0},
	{IOMMU "dmar0/intel-iommu/cap", "d2008c22260286\n", 0},
	{IOMMU "dmar0/intel-iommu/ecap", "f42\n", 0},
	{NULL, NULL, 0},
};

static struct tree tree_of(const struct paper *first, const struct paper *second)
{
	return (struct tree){
		.system = {.ops = &paper_ops},
		.sheets = {pc, first, second},
	};
}

/* The text of what is found, static; *assumed as it is told. */
static const char *found(struct tree *tree, uint32_t *assumed)
{
	static char text[8192];
	struct dmamap_machine machine;
	struct dmamap_reason why = {0};
	int error = dmamap_machine_detect(&tree->system, &machine, assumed, &why);

	if (error) {
		dmamap_reason_format(&why, text, sizeof(text));
		fail_msg("%d: %s", error, text);
	}
	dmamap_machine_print(&machine, ',', text, sizeof(text));
	dmamap_machine_free(&machine);
	for (unsigned i = 0; i < LENGTH(tree->open); i++)
		assert_null(tree->open[i]);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
}

static void lab_intel39(void **state)
{
	struct tree tree = tree_of(intel39, NULL);
	uint32_t assumed = 0;
	const char *text = found(&tree, &assumed);

	(void)state;
	assert_has(text, "as-kernel=7.3,pfnmap-stride=leaf,memlock=process,entry-limit=65535,"
			 "huge-pages=on,unsafe-interrupts=on,isolated-msi=off,iommu=intel,"
			 "aperture=39,leaves=4K/2M/1G,coherent=off,dirty=off,no-reserve,"
			 "reserve=0xfee00000-0xfeefffff:MSI window of intel-iommu,"
			 "reserve=0x7f000000-0x7fffffff:direct,device=0000:00:04.0,iommu=0,group=1,"
			 "cdev=0,vendor=0x1b36,device-id=0x0005,class=0x00ff00,bar0=4K@0xfeb84000,"
			 "bar1=256@0xc000:io,bar2=32G@0x800000000,bar3=0,bar4=0,bar5=0,rom=0,"
			 "express=off,intx=off,msi=0,msix=0,msix-bar=0,msix-offset=0x0,reset=off,"
			 "device=0000:00:07.0,iommu=0,group=4,cdev=3,vendor=0x8086,"
			 "device-id=0x10d3,class=0x020000,bar0=128K@0xfeb40000,"
			 "bar1=128K@0xfeb60000,bar2=32@0xc240:io,bar3=16K@0xfeb80000,bar4=0,"
			 "bar5=0,rom=256K,express=on,intx=on,msi=1,msix=5,msix-bar=3,"
			 "msix-offset=0x2000,reset=on");
	/* The first function's config space ends after its header. */
	assert_int_equal(assumed, 1u << ASSUMED_ISOLATED | 1u << ASSUMED_MSI);
}

/* cap and ecap of other hardware: intel/iommu.h has the bits. */
static void intel(void **state)
{
	static const struct {
		const char *cap, *ecap, *part;
		bool scalable;
	} rows[] = {
		/* QEMU, aw-bits=48. */
		{"d2008c222f0686\n", "f42\n", "aperture=48,leaves=4K/2M/1G,coherent=off,dirty=off",
			false},
		/* A laptop's: four levels can be walked, but the width is 39 bits; snoop control.
		 */
		{"1c0000c40660462\n", "f020de\n",
			"aperture=39,leaves=4K/2M/1G,coherent=on,dirty=off", false},
		/* The same without larger leaves. */
		{"1c0000040660462\n", "f020de\n", "aperture=39,leaves=4K,coherent=on,dirty=off",
			false},
		/* Five levels, 57 bits; dirty bits, but no coherent walk. */
		{"c00380e06\n", "280000000080\n",
			"aperture=57,leaves=4K/2M/1G,coherent=on,dirty=off", true},
		{"400380606\n", "1280000000080\n", "aperture=48,leaves=4K/2M,coherent=on,dirty=on",
			true},
		/* A first stage of four levels, then of five. */
		{"100000c002f0606\n", "1880000000080\n", "aperture=47,leaves=4K/2M/1G,coherent=on",
			true},
		{"1000000c00380e06\n", "1880000000080\n", "aperture=56,leaves=4K/2M,coherent=on",
			true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct paper other[] = {
			{IOMMU "dmar0/intel-iommu/cap", rows[i].cap, 0},
			{IOMMU "dmar0/intel-iommu/ecap", rows[i].ecap, 0},
			{NULL, NULL, 0},
		};
		struct tree tree = tree_of(intel39, other);
		uint32_t assumed = 0;

		assert_has(found(&tree, &assumed), rows[i].part);
		assert_int_equal(assumed >> ASSUMED_SCALABLE & 1, rows[i].scalable);
		assert_false(assumed & 1u << ASSUMED_APERTURE);
	}
}

/* AMD's features file has EFR and EFR2; 0x29d3 is QEMU's. IVinfo is behind a header of 36 bytes:
 * without EFR in the table (bit 0) there are four levels, and VASize (21:15) is the most. */
static void amd(void **state)
{
	static const struct {
		const char *features, *ivinfo, *part;
	} rows[] = {
		{"29d3:0\n", NULL,
			"aperture=64,leaves=4K-256G/1T-2P,coherent=on,dirty=off,no-reserve,"
			"reserve=0xfee00000-0xfeefffff:MSI window of amd-iommu,"
			"reserve=0xfd00000000-0xffffffffff:HyperTransport range,device="},
		{"10000000000000:0\n", NULL,
			"aperture=48,leaves=4K-256G/1T-64T,coherent=on,dirty=on,"},
		{"400:0\n", NULL, "aperture=57,"},
		{"29d3:0\n", "\x02\x01\x20\x01", "aperture=48,"},
		{"29d3:0\n", "\x03\x01\x20\x01", "aperture=64,"},
		{"29d3:0\n", "\x03\x01\x14\x01", "aperture=40,leaves=4K-256G,"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char table[64];
		const struct paper other[] = {
			{"/sys/class/iommu", "ivhd0", 0},
			{"/sys/firmware/acpi/tables/IVRS", table, 0},
			{IOMMU "ivhd0/amd-iommu/features", rows[i].features, 0},
			{PCI "0000:00:04.0/iommu", "-> ../0000:00:01.0/iommu/ivhd0", 0},
			{PCI "0000:00:07.0/iommu", "-> ../0000:00:01.0/iommu/ivhd0", 0},
			{"/sys/kernel/iommu_groups/1/reserved_regions",
				"0x00000000fee00000 0x00000000feefffff msi\n"
				"0x000000fd00000000 0x000000ffffffffff reserved\n",
				0},
			{"/sys/kernel/iommu_groups/4/reserved_regions", "", 0},
			{NULL, NULL, 0},
		};
		struct tree tree = tree_of(other, NULL);
		uint32_t assumed = 0;

		snprintf(table, sizeof(table), "%036d%s", 0, rows[i].ivinfo ? rows[i].ivinfo : "");
		assert_has(found(&tree, &assumed), rows[i].part);
		assert_int_equal(assumed >> ASSUMED_APERTURE & 1, !rows[i].ivinfo);
		assert_true(assumed & 1u << ASSUMED_LEAVES);
		assert_false(assumed & 1u << ASSUMED_DIRTY);
	}
}

/* IOMMUs that show nothing; one of another kind is left out, with its functions. */
static void others(void **state)
{
	static const struct paper other[] = {
		{"/sys/class/iommu", "0000:00:01.0 apple-dart0 smmu3.0x0000000009050000", 0},
		{IOMMU "0000:00:01.0/device", "-> ../../../virtio0", 0},
		{PCI "0000:00:04.0/iommu", "-> /x/smmu3.0x0000000009050000", 0},
		{PCI "0000:00:07.0/iommu", "-> /x/apple-dart0", 0},
		{"/sys/kernel/iommu_groups/1/reserved_regions",
			"0x0000000008000000 0x00000000080fffff msi\n", 0},
		{NULL, NULL, 0},
	};
	struct tree tree = tree_of(other, NULL);
	uint32_t assumed = 0;
	const char *text = found(&tree, &assumed);

	(void)state;
	assert_has(text, "iommu=virtio,aperture=64,");
	assert_has(text, "MSI window of virtio-iommu,iommu=smmuv3,aperture=48,");
	assert_has(text, "reserve=0x8000000-0x80fffff:software MSI window,device=");
	assert_has(text, "device=0000:00:04.0,iommu=1,");
	assert_null(strstr(text, "0000:00:07.0"));
	assert_int_equal(assumed, 1u << ASSUMED_APERTURE | 1u << ASSUMED_LEAVES |
					  1u << ASSUMED_DIRTY | 1u << ASSUMED_COHERENT |
					  1u << ASSUMED_WINDOWS | 1u << ASSUMED_ISOLATED |
					  1u << ASSUMED_MSI);
}

/* A kernel of long ago without modules that show parameters, without cdevs. */
static void old(void **state)
{
	static const struct paper other[] = {
		{"/proc/sys/kernel/osrelease", "6.12.117\n", 0},
		{MODULE "allow_unsafe_interrupts", NULL, 0},
		{MODULE "disable_hugepages", "Y\n", 0},
		{MODULE "dma_entry_limit", NULL, 0},
		{"/sys/module/iommufd/parameters/allow_unsafe_interrupts", "N\n", 0},
		{PCI "0000:00:04.0/vfio-dev", NULL, 0},
		{PCI "0000:00:07.0/vfio-dev", NULL, 0},
		{PCI "0000:00:07.0/config", circle_config, 256},
		{NULL, NULL, 0},
	};
	struct tree tree = tree_of(intel39, other);
	uint32_t assumed = 0;
	const char *text = found(&tree, &assumed);

	(void)state;
	assert_has(text, "as-kernel=6.12,pfnmap-stride=page,memlock=process,entry-limit=65535,"
			 "huge-pages=off,unsafe-interrupts=off,isolated-msi=on,");
	assert_has(text, "device=0000:00:07.0,iommu=0,group=4,cdev=1,");
	assert_has(text, "express=off,intx=off,msi=8,msix=0,msix-bar=0,msix-offset=0x0,reset=on");
	assert_int_equal(assumed, 1u << ASSUMED_ISOLATED | 1u << ASSUMED_MSI | 1u << ASSUMED_CDEV |
					  1u << ASSUMED_TYPE1);
}

/* No function on vfio-pci: a machine without devices. The page is this process's. */
static void nothing_bound(void **state)
{
	static const struct paper other[] = {
		{DRIVER, NULL, 0},
		{"/proc/sys/kernel/osrelease", "unknown\n", 0},
		{NULL, NULL, 0},
	};
	struct tree tree = tree_of(intel39, other);
	uint32_t assumed = 0;
	const char *text = found(&tree, &assumed);
	char page[48];

	(void)state;
	snprintf(page, sizeof(page), "page=%ldK,as-kernel=7.3,", sysconf(_SC_PAGESIZE) >> 10);
	assert_has(text, page);
	assert_has(text, "intel-iommu,no-device");
	assert_int_equal(
		assumed, 1u << ASSUMED_ISOLATED | 1u << ASSUMED_WINDOWS | 1u << ASSUMED_KERNEL);
}

static void refusals(void **state)
{
	static const struct paper none[] = {
		{"/sys/class/iommu", "apple-dart0", 0}, {NULL, NULL, 0}};
	/* The group's other function is behind another IOMMU. */
	static const struct paper two[] = {
		{"/sys/class/iommu", "dmar0 dmar1", 0},
		{PCI "0000:00:07.0/iommu", "-> ../../virtual/iommu/dmar1", 0},
		{PCI "0000:00:07.0/iommu_group", "-> ../../../kernel/iommu_groups/1", 0},
		{NULL, NULL, 0},
	};
	struct dmamap_machine machine = {.page_shift = 99};
	struct dmamap_reason why = {0};
	struct tree tree = tree_of(none, NULL);
	char text[256];

	(void)state;
	assert_refused(dmamap_machine_detect(&tree.system, &machine, NULL, &why), &why, ENODEV,
		&machine_reason_machine_no_iommu);
	dmamap_reason_format(&why, text, sizeof(text));
	assert_string_equal(text,
		"no IOMMU is on (/sys/class/iommu has none that is known); turn it "
		"on in the firmware and boot with intel_iommu=on or the like");
	tree = tree_of(intel39, two);
	assert_refused(dmamap_machine_detect(&tree.system, &machine, NULL, &why), &why, EINVAL,
		&machine_reason_machine);
	assert_string_equal(why.label, "group behind two IOMMUs");
	assert_int_equal(machine.page_shift, 99);
}

static void assumptions(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < ASSUMPTIONS; bit++)
		assert_true(strlen(dmamap_machine_assumption(bit)) > 10);
	assert_null(dmamap_machine_assumption(ASSUMPTIONS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lab_intel39),
		cmocka_unit_test(intel),
		cmocka_unit_test(amd),
		cmocka_unit_test(others),
		cmocka_unit_test(old),
		cmocka_unit_test(nothing_bound),
		cmocka_unit_test(refusals),
		cmocka_unit_test(assumptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
