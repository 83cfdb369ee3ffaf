/* SPDX-License-Identifier: MIT */
/*
 * What /sys and /proc tell about the machine as a whole: its IOMMUs with their
 * capability registers, what each group has reserved, the parameters of type1
 * and IOMMUFD, the kernel's release and the page size. dmamap_machine_detect()
 * finds the machine through it, as it does through Linux's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/soft.h"

#define IOMMUS "/sys/class/iommu"

/* As the drivers name them: dmar0, ivhd0, smmu3.ADDRESS, and what a virtio device is on. */
static void iommu_name(const struct dmamap_machine *machine, size_t index, char name[64])
{
	/* Where QEMU's arm64 machine has its first ones. */
	const uint64_t first_smmu = 0x9050000, smmu_size = 0x20000;
	const size_t first_virtio = 0xa000000, virtio_size = 0x200;

	switch (machine->iommus[index].model) {
	case DMAMAP_IOMMU_INTEL:
		snprintf(name, 64, "dmar%zu", index);
		break;
	case DMAMAP_IOMMU_AMD:
		snprintf(name, 64, "ivhd%zu", index);
		break;
	case DMAMAP_IOMMU_SMMUV3:
		snprintf(name, 64, "smmu3.0x%016" PRIx64, first_smmu + index * smmu_size);
		break;
	default:
		snprintf(name, 64, "%zx.virtio_mmio", first_virtio + index * virtio_size);
	}
}

/*
 * The registers that say what a machine says, in the places that Linux reads
 * (intel/iommu.h, amd/amd_iommu_types.h): VT-d's MGAW, SAGAW and super pages;
 * snoop control, and for dirty tracking scalable mode with a second stage.
 */
static uint64_t intel_cap(const struct dmamap_machine_iommu *iommu)
{
	uint64_t mgaw = iommu->aperture_bits - 1;
	uint64_t sagaw = iommu->aperture_bits > 48 ? 8 : iommu->aperture_bits > 39 ? 4 : 2;

	return mgaw << 16 | sagaw << 8 | (iommu->leaf_sizes >> 21 & 1) << 34 |
	       (iommu->leaf_sizes >> 30 & 1) << 35;
}

static uint64_t intel_ecap(const struct dmamap_machine_iommu *iommu)
{
	const uint64_t walks_coherently = 1, snoop_control = 1 << 7;
	const uint64_t scalable = 1ULL << 43, second_stage = 1ULL << 46, dirty = 1ULL << 45;
	const uint64_t pasid_walks_coherently = 1ULL << 48;

	return walks_coherently | (iommu->coherent ? snoop_control : 0) |
	       (iommu->dirty ? scalable | second_stage | dirty | pasid_walks_coherently : 0);
}

/* EFR: how many levels the table may have, and hardware dirty bits. */
static uint64_t amd_efr(const struct dmamap_machine_iommu *iommu)
{
	uint64_t levels = iommu->aperture_bits > 57 ? 2 : iommu->aperture_bits > 48 ? 1 : 0;

	return levels << 10 | (uint64_t)iommu->dirty << 52;
}

static int iommu_text(const struct dmamap_machine *machine, const char *path, char *to, size_t size)
{
	for (size_t i = 0; i < machine->n_iommus; i++) {
		const struct dmamap_machine_iommu *iommu = &machine->iommus[i];
		char name[64];
		size_t length;

		iommu_name(machine, i, name);
		length = strlen(name);
		if (strncmp(path, name, length) || path[length] != '/')
			continue;
		path += length + 1;
		if (iommu->model == DMAMAP_IOMMU_INTEL && !strcmp(path, "intel-iommu/cap"))
			return snprintf(to, size, "%" PRIx64 "\n", intel_cap(iommu));
		if (iommu->model == DMAMAP_IOMMU_INTEL && !strcmp(path, "intel-iommu/ecap"))
			return snprintf(to, size, "%" PRIx64 "\n", intel_ecap(iommu));
		if (iommu->model == DMAMAP_IOMMU_AMD && !strcmp(path, "amd-iommu/features"))
			return snprintf(to, size, "%" PRIx64 ":0\n", amd_efr(iommu));
		return -1;
	}
	return -1;
}

/* The kernel's word for a window: MSI ones are known by their labels. */
static const char *region_type(const char *label)
{
	static const char *const types[] = {"direct", "direct-relaxable", "reserved", "msi"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(label, types[i]))
			return types[i];
	return strstr(label, "MSI") ? "msi" : "reserved";
}

static int by_first(const void *a, const void *b)
{
	const struct dmamap_machine_window *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* The devices of a group have one IOMMU. */
static int group_text(const struct soft_system *system, unsigned group, char *to, size_t size)
{
	const struct dmamap_machine_iommu *iommu = NULL;
	struct dmamap_machine_window *sorted;
	size_t length = 0;

	for (size_t i = 0; i < system->n_devices && !iommu; i++)
		if (system->devices[i].is.group == group)
			iommu = &system->machine.iommus[system->devices[i].is.iommu];
	sorted = iommu ? malloc((iommu->n_windows + 1) * sizeof(*sorted)) : NULL;
	if (!sorted)
		return -1;
	if (iommu->n_windows)
		memcpy(sorted, iommu->windows, iommu->n_windows * sizeof(*sorted));
	qsort(sorted, iommu->n_windows, sizeof(*sorted), by_first);
	to[0] = '\0';
	for (size_t i = 0; i < iommu->n_windows && length < size; i++)
		length += (size_t)snprintf(to + length, size - length,
			"0x%016" PRIx64 " 0x%016" PRIx64 " %s\n", sorted[i].first, sorted[i].last,
			region_type(sorted[i].label));
	free(sorted);
	return (int)(length < size ? length : size - 1);
}

/* The auxiliary vector, as far as it is about the machine: AT_PAGESZ (6), AT_NULL. */
static int auxv_text(const struct soft_system *system, char *to)
{
	const unsigned long words[] = {6, (unsigned long)soft_page_size(system), 0, 0};

	memcpy(to, words, sizeof(words));
	return sizeof(words);
}

int soft_machine_text(struct soft_system *system, const char *path, char *to, size_t size)
{
	const struct dmamap_machine *machine = &system->machine;
	const struct {
		const char *path;
		bool on;
	} switches[] = {
		{"/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts",
			machine->allow_unsafe_interrupts},
		{"/sys/module/iommufd/parameters/allow_unsafe_interrupts",
			machine->allow_unsafe_interrupts},
		{"/sys/module/vfio_iommu_type1/parameters/disable_hugepages",
			machine->disable_hugepages},
	};
	unsigned group;
	int end = 0;

	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		if (!strcmp(path, switches[i].path))
			return snprintf(to, size, "%c\n", switches[i].on ? 'Y' : 'N');
	if (!strcmp(path, "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit"))
		return snprintf(to, size, "%" PRIu64 "\n", machine->dma_entry_limit);
	if (!strcmp(path, "/proc/sys/kernel/osrelease"))
		return snprintf(to, size, "%u.%u.0-dmamap\n", machine->as_kernel >> 8,
			machine->as_kernel & 0xff);
	if (!strcmp(path, "/proc/self/auxv"))
		return auxv_text(system, to);
	if (sscanf(path, "/sys/kernel/iommu_groups/%9u/reserved_regions%n", &group, &end) == 1 &&
		end && !path[end])
		return group_text(system, group, to, size);
	if (!strncmp(path, IOMMUS "/", strlen(IOMMUS) + 1))
		return iommu_text(machine, path + strlen(IOMMUS) + 1, to, size);
	return -1;
}

void soft_machine_iommu_link(const struct soft_device *device, char *to, size_t size)
{
	char name[64];

	iommu_name(&device->system->machine, device->is.iommu, name);
	snprintf(to, size, "../../virtual/iommu/%s", name);
}

/* An IOMMU's parent, by which a virtio one is known. */
bool soft_machine_link(struct soft_system *system, const char *path, char *to, size_t size)
{
	const struct dmamap_machine *machine = &system->machine;

	for (size_t i = 0; i < machine->n_iommus; i++) {
		char name[64], link[128];

		iommu_name(machine, i, name);
		snprintf(link, sizeof(link), IOMMUS "/%s/device", name);
		if (machine->iommus[i].model != DMAMAP_IOMMU_VIRTIO || strcmp(path, link))
			continue;
		snprintf(to, size, "../../virtio%zu", i);
		return true;
	}
	return false;
}

bool soft_machine_list(struct soft_system *system, const char *path, unsigned index, char name[64])
{
	if (strcmp(path, IOMMUS))
		return false;
	name[0] = '\0';
	if (index < system->machine.n_iommus)
		iommu_name(&system->machine, index, name);
	return true;
}
