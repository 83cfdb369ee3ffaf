/* SPDX-License-Identifier: MIT */
/*
 * The machine at hand, through a system's files: /sys/class/iommu for IOMMUs,
 * the functions bound to vfio-pci, their groups' reserved regions, the
 * parameters of type1 and IOMMUFD, and the kernel's release. Where sysfs is
 * silent the usual is taken, and a bit says so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/machine.h"

#define IOMMUS	 "/sys/class/iommu"
#define VFIO_PCI "/sys/bus/pci/drivers/vfio-pci"
#define GROUPS	 "/sys/kernel/iommu_groups"
#define TYPE1	 "/sys/module/vfio_iommu_type1/parameters"
#define IOMMUFD	 "/sys/module/iommufd/parameters"
#define RELEASE	 "/proc/sys/kernel/osrelease"
#define AUXV	 "/proc/self/auxv"
#define IVRS	 "/sys/firmware/acpi/tables/IVRS"

#define ASSUME(finder, what) ((finder)->assumed |= 1u << ASSUMED_##what)

struct finder {
	struct dmamap_system *system;
	struct dmamap_machine machine;
	char names[MACHINE_IOMMUS][64]; /* of its IOMMUs, in sysfs */
	uint32_t assumed;
	struct dmamap_reason *why;
};

static const char *const clauses[ASSUMPTIONS] = {
	[ASSUMED_APERTURE] = "the aperture is what an IOMMU of its kind usually has",
	[ASSUMED_LEAVES] = "the leaf sizes are what an IOMMU of its kind usually has",
	[ASSUMED_DIRTY] = "no dirty tracking",
	[ASSUMED_COHERENT] = "cache coherency is not enforced",
	[ASSUMED_SCALABLE] = "Intel's scalable mode is in use where the hardware has it",
	[ASSUMED_WINDOWS] = "an IOMMU without a device on vfio-pci reserves what its kind does",
	[ASSUMED_ISOLATED] = "interrupts are isolated where unsafe ones are not allowed",
	[ASSUMED_TYPE1] = "type1's parameters are its defaults: its module shows none",
	[ASSUMED_MSI] =
		"plain PCI without MSI and MSI-X: config space could not be read (that needs root)",
	[ASSUMED_CDEV] = "cdevs are numbered from 0: the kernel makes none",
	[ASSUMED_KERNEL] = "the kernel behaves as Linux 7.3: its release could not be read",
};

const char *dmamap_machine_assumption(unsigned bit)
{
	return bit < ASSUMPTIONS ? clauses[bit] : NULL;
}

/* ------------------------------------------------------------------- files */

ssize_t machine_read_file(struct dmamap_system *system, const char *path, char *text, size_t size)
{
	int fd = system->ops->open(system, path, 0);
	size_t length = 0;
	ssize_t n = 0;

	text[0] = '\0';
	if (fd < 0)
		return fd;
	while (length + 1 < size) {
		n = system->ops->read(system, fd, text + length, size - 1 - length);
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	system->ops->close(system, fd);
	text[length] = '\0';
	return n < 0 ? n : (ssize_t)length;
}

bool machine_read_link(struct dmamap_system *system, const char *path, char name[64])
{
	char target[512];
	ssize_t n = system->ops->readlink(system, path, target, sizeof(target));
	const char *slash;

	if (n < 0)
		return false;
	slash = strrchr(target, '/');
	slash = slash ? slash + 1 : target;
	return snprintf(name, 64, "%.63s", slash) > 0 && strlen(slash) < 64;
}

/* "Y" or "N"; false: no such parameter. */
static bool read_switch(struct finder *finder, const char *path, bool *on)
{
	char text[16];

	if (machine_read_file(finder->system, path, text, sizeof(text)) <= 0)
		return false;
	*on = text[0] == 'Y';
	return true;
}

/* -------------------------------------------------------------- the kernel */

static void find_page(struct finder *finder)
{
	/* The auxiliary vector is pairs of words; AT_PAGESZ is 6. */
	unsigned long words[128] = {0};
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
	ssize_t n = machine_read_file(finder->system, AUXV, (char *)words, sizeof(words));

	for (size_t i = 0; n > 0 && i + 1 < (size_t)n / sizeof(words[0]); i += 2)
		if (words[i] == 6)
			page = words[i + 1];
	finder->machine.page_shift = (unsigned)__builtin_ctzl(page);
}

static void find_kernel(struct finder *finder)
{
	struct dmamap_machine *machine = &finder->machine;
	unsigned major, minor;
	char text[256];

	if (machine_read_file(finder->system, RELEASE, text, sizeof(text)) > 0 &&
		sscanf(text, "%3u.%3u", &major, &minor) == 2 && major < 256 && minor < 256)
		machine->as_kernel = DMAMAP_KERNEL(major, minor);
	else
		ASSUME(finder, KERNEL);
	machine->pfnmap_stride = machine_kernel_stride(machine->as_kernel);
}

static void find_parameters(struct finder *finder)
{
	struct dmamap_machine *machine = &finder->machine;
	char text[32];
	bool on;

	if (read_switch(finder, TYPE1 "/disable_hugepages", &on))
		machine->disable_hugepages = on;
	if (machine_read_file(finder->system, TYPE1 "/dma_entry_limit", text, sizeof(text)) > 0)
		machine->dma_entry_limit = strtoull(text, NULL, 10);
	else
		ASSUME(finder, TYPE1);
	if (!read_switch(finder, TYPE1 "/allow_unsafe_interrupts", &on) &&
		!read_switch(finder, IOMMUFD "/allow_unsafe_interrupts", &on))
		on = false;
	machine->allow_unsafe_interrupts = on;
	machine->isolated_msi = !on;
	ASSUME(finder, ISOLATED);
}

/* ------------------------------------------------------------------ IOMMUs */

static uint64_t read_hex(struct finder *finder, const char *name, const char *file)
{
	char path[160], text[64];

	snprintf(path, sizeof(path), IOMMUS "/%s/%s", name, file);
	if (machine_read_file(finder->system, path, text, sizeof(text)) <= 0)
		return 0;
	return strtoull(text, NULL, 16);
}

static unsigned bits(uint64_t value, unsigned first, unsigned last)
{
	return (unsigned)(value << (63 - last) >> (63 - last) >> first);
}

/* The second stage: how many levels both widths allow (intel/iommu.c, compute_vasz_lg2_ss). */
static unsigned second_stage(uint64_t cap)
{
	unsigned mgaw = bits(cap, 16, 21) + 1, sagaw = bits(cap, 8, 12);
	static const unsigned widths[] = {57, 48, 39};

	for (unsigned i = 0; i < 3; i++) {
		unsigned less = widths[i] - 9;

		if (mgaw > less && sagaw >= 8u >> i)
			return mgaw < widths[i] ? mgaw : widths[i];
	}
	return 0;
}

/*
 * In scalable mode Linux takes the first stage where there is one: half of its
 * width, since addresses are sign-extended. Bits of cap and ecap as in
 * intel/iommu.h.
 */
static void detail_intel(
	struct finder *finder, const char *name, struct dmamap_machine_iommu *iommu)
{
	uint64_t cap = read_hex(finder, name, "intel-iommu/cap");
	uint64_t ecap = read_hex(finder, name, "intel-iommu/ecap");
	bool scalable = bits(ecap, 43, 43), first = scalable && bits(ecap, 47, 47);
	unsigned mgaw = bits(cap, 16, 21) + 1, aperture = second_stage(cap);
	unsigned larger = bits(cap, 34, 35);

	if (first) {
		unsigned width = mgaw > 48 && bits(cap, 60, 60) ? 57 : 48;

		aperture = (mgaw < width ? mgaw : width) - 1;
		larger = 1 | bits(cap, 56, 56) << 1;
	}
	if (!cap || !aperture) {
		ASSUME(finder, APERTURE);
		ASSUME(finder, LEAVES);
	} else {
		iommu->aperture_bits = aperture;
		iommu->leaf_sizes &= ~(1ULL << 21 | 1ULL << 30);
		iommu->leaf_sizes |= (uint64_t)(larger & 1) << 21 | (uint64_t)(larger >> 1) << 30;
	}
	iommu->coherent = bits(ecap, 7, 7);
	iommu->dirty = scalable && bits(ecap, 45, 45) && bits(ecap, 48, 48);
	if (scalable)
		ASSUME(finder, SCALABLE);
}

/* The firmware's word on all of them; false: only root may read it, or there is none. */
static bool read_ivinfo(struct finder *finder, uint32_t *info)
{
	/* The header of an ACPI table is 36 bytes; then comes IVinfo. */
	char table[41];

	if (machine_read_file(finder->system, IVRS, table, sizeof(table)) < 40)
		return false;
	memcpy(info, table + 36, sizeof(*info));
	return true;
}

/*
 * EFR: HATS is bits 11:10, HDSUP bit 52 (amd/amd_iommu_types.h). amd/init.c makes the
 * aperture of HATS before it reads the hardware: where the firmware does not say that it gives
 * EFR as well (IVinfo's bit 0), that is 0. VASize (21:15) may make it smaller.
 */
static void detail_amd(struct finder *finder, const char *name, struct dmamap_machine_iommu *iommu)
{
	uint64_t efr = read_hex(finder, name, "amd-iommu/features");
	unsigned levels = bits(efr, 10, 11), most = 0;
	uint32_t info = 1;

	if (!read_ivinfo(finder, &info))
		ASSUME(finder, APERTURE);
	else
		most = bits(info, 15, 21);
	if (!(info & 1))
		levels = 0;
	iommu->aperture_bits = levels == 0 ? 48 : levels == 1 ? 57 : 64;
	if (most && most < iommu->aperture_bits)
		iommu->aperture_bits = most;
	iommu->dirty = bits(efr, 52, 52);
	/* A leaf is at most half of the aperture (generic_pt's get_info). */
	iommu->leaf_sizes &= (1ULL << (iommu->aperture_bits - 1)) - 1;
	/* The command line may take some away. */
	ASSUME(finder, LEAVES);
}

/* An SMMUv3 and a virtio-iommu show nothing of themselves. */
static void detail_nothing(
	struct finder *finder, const char *name, struct dmamap_machine_iommu *iommu)
{
	(void)name;
	(void)iommu;
	ASSUME(finder, APERTURE);
	ASSUME(finder, LEAVES);
	ASSUME(finder, DIRTY);
	ASSUME(finder, COHERENT);
}

/* By its name; a virtio-iommu is called as what it is on, and known by what it is a device of. */
static const struct kind {
	const char *prefix;
	enum dmamap_iommu_model model;
	void (*detail)(struct finder *finder, const char *name, struct dmamap_machine_iommu *iommu);
} kinds[] = {
	{"dmar", DMAMAP_IOMMU_INTEL, detail_intel},
	{"ivhd", DMAMAP_IOMMU_AMD, detail_amd},
	{"smmu3.", DMAMAP_IOMMU_SMMUV3, detail_nothing},
	{"virtio", DMAMAP_IOMMU_VIRTIO, detail_nothing},
};

static const struct kind *kind_of(struct finder *finder, const char *name)
{
	char path[160], parent[64];

	snprintf(path, sizeof(path), IOMMUS "/%s/device", name);
	if (!machine_read_link(finder->system, path, parent))
		parent[0] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *tells = kinds[i].model == DMAMAP_IOMMU_VIRTIO ? parent : name;

		if (!strncmp(tells, kinds[i].prefix, strlen(kinds[i].prefix)))
			return &kinds[i];
	}
	return NULL;
}

static int find_iommus(struct finder *finder)
{
	struct dmamap_machine *machine = &finder->machine;
	struct dmamap_system *system = finder->system;
	char name[64];
	int error;

	for (unsigned i = 0; system->ops->list(system, IOMMUS, i, name, sizeof(name)) > 0; i++) {
		const struct kind *kind = kind_of(finder, name);

		if (!kind || machine->n_iommus == MACHINE_IOMMUS)
			continue;
		error = machine_add_iommu(machine, kind->model, finder->why);
		if (error)
			return error;
		snprintf(finder->names[machine->n_iommus - 1], 64, "%s", name);
		kind->detail(finder, name, machine_iommu(machine, machine->n_iommus - 1));
	}
	if (machine->n_iommus)
		return 0;
	return DMAMAP_REFUSE(finder->why, &machine_reason_machine_no_iommu, ENODEV, IOMMUS, 0);
}

/* ----------------------------------------------------------------- devices */

/* The number of @name, or one more than there are: it belongs to none that is known. */
static unsigned iommu_of(const struct finder *finder, const char *name)
{
	unsigned i = 0;

	while (i < finder->machine.n_iommus && strcmp(finder->names[i], name))
		i++;
	return i;
}

static int find_devices(struct finder *finder)
{
	struct dmamap_machine *machine = &finder->machine;
	struct dmamap_system *system = finder->system;
	char name[256], bdf[16], iommu[64];
	int error;

	for (unsigned i = 0; system->ops->list(system, VFIO_PCI, i, name, sizeof(name)) > 0; i++) {
		struct dmamap_machine_device device = {.cdev = machine_free_cdev(machine)};

		/* The driver's own files are there too, and functions that are gone by now. */
		if (strlen(name) != 12 || !machine_read_bdf(name, 12, bdf) ||
			machine->n_devices == MACHINE_DEVICES ||
			machine_detect_device(system, bdf, &device, iommu, &finder->assumed))
			continue;
		device.iommu = iommu_of(finder, iommu);
		if (device.iommu == machine->n_iommus)
			continue;
		error = machine_add_device(machine, &device, finder->why);
		if (error)
			return error;
	}
	return 0;
}

static bool has_window(const struct dmamap_machine_iommu *iommu, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < iommu->n_windows; i++)
		if (iommu->windows[i].first == first && iommu->windows[i].last == last)
			return true;
	return false;
}

/* The group's reserved regions, as lines of "first last type". VFIO ignores relaxable ones. */
static int add_regions(struct finder *finder, struct dmamap_machine_iommu *iommu, unsigned group)
{
	char path[64], text[4096], *rest = text, *line;

	snprintf(path, sizeof(path), GROUPS "/%u/reserved_regions", group);
	if (machine_read_file(finder->system, path, text, sizeof(text)) < 0)
		return 0;
	while ((line = strsep(&rest, "\n"))) {
		unsigned long long first, last;
		const char *label;
		char type[32];
		int error;

		if (sscanf(line, "%llx %llx %31s", &first, &last, type) != 3 ||
			!strcmp(type, "direct-relaxable") || has_window(iommu, first, last))
			continue;
		label = machine_preset_label(iommu->model, first, last);
		error = machine_add_window(iommu, first, last, label ? label : type, finder->why);
		if (error)
			return error;
	}
	return 0;
}

static int find_windows(struct finder *finder)
{
	struct dmamap_machine *machine = &finder->machine;

	for (size_t i = 0; i < machine->n_iommus; i++) {
		struct dmamap_machine_iommu *iommu = machine_iommu(machine, i);
		bool used = false;

		for (size_t j = 0; j < machine->n_devices; j++) {
			int error;

			if (machine->devices[j].iommu != i)
				continue;
			if (!used)
				machine_drop_windows(iommu);
			used = true;
			error = add_regions(finder, iommu, machine->devices[j].group);
			if (error)
				return error;
		}
		if (!used)
			ASSUME(finder, WINDOWS);
	}
	return 0;
}

int dmamap_machine_detect(struct dmamap_system *system, struct dmamap_machine *machine,
	uint32_t *assumed, struct dmamap_reason *why)
{
	struct finder *finder = calloc(1, sizeof(*finder));
	enum machine_scope scope;
	size_t index;
	int error;

	if (!finder)
		return DMAMAP_REFUSE(
			why, &machine_reason_machine_no_memory, ENOMEM, "finding a machine", 0);
	finder->system = system;
	finder->why = why;
	dmamap_machine_default(&finder->machine);
	finder->machine.iommus = NULL;
	finder->machine.n_iommus = 0;
	finder->machine.devices = NULL;
	finder->machine.n_devices = 0;
	find_page(finder);
	find_kernel(finder);
	find_parameters(finder);
	error = find_iommus(finder);
	if (!error)
		error = find_devices(finder);
	if (!error)
		error = find_windows(finder);
	if (!error)
		error = machine_check(&finder->machine, &scope, &index, why);
	if (error)
		dmamap_machine_free(&finder->machine);
	else
		*machine = finder->machine;
	if (!error && assumed)
		*assumed = finder->assumed;
	free(finder);
	return error;
}
