/* SPDX-License-Identifier: MIT */
/*
 * What is usual: the shape that Linux 7.3 gives to each kind of IOMMU, QEMU's
 * PCI functions, and the machines of the lab. Facts alone; each with where it
 * comes from. drivers/iommu is meant where a file is named without a folder.
 */
#include <string.h>

#include "machine/machine.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define KIB	  (1ULL << 10)
#define MIB	  (1ULL << 20)
#define GIB	  (1ULL << 30)
/* All powers of two from 2^first to 2^last. */
#define SIZES(first, last) (~0ULL << (first) & ~0ULL >> (63 - (last)))

/* type1's default for its parameter dma_entry_limit (drivers/vfio/vfio_iommu_type1.c). */
#define ENTRY_LIMIT 65535

/* intel/iommu.c: IOAPIC_RANGE_START, _END. */
static const struct dmamap_machine_window intel_windows[] = {
	{0xfee00000, 0xfeefffff, "MSI window of intel-iommu"},
};

/* amd/iommu.c: MSI_RANGE_START, HT_RANGE_START and their ends. */
static const struct dmamap_machine_window amd_windows[] = {
	{0xfee00000, 0xfeefffff, "MSI window of amd-iommu"},
	{0xfd00000000, 0xffffffffff, "HyperTransport range"},
};

/* arm/arm-smmu-v3/arm-smmu-v3.h: MSI_IOVA_BASE, MSI_IOVA_LENGTH. */
static const struct dmamap_machine_window smmuv3_windows[] = {
	{0x8000000, 0x80fffff, "software MSI window"},
};

/*
 * virtio-iommu.c takes the windows from the device: QEMU's names this one on a
 * PC. Where a device names none, Linux has the same as for SMMUv3.
 */
static const struct dmamap_machine_window virtio_windows[] = {
	{0xfee00000, 0xfeefffff, "MSI window of virtio-iommu"},
};

/*
 * Apertures and leaf sizes as the page tables have them:
 *
 *	intel	second stage (legacy mode): 48 bits where the hardware has four
 *		levels, 4K, 2M and 1G (intel/iommu.c, generic_pt/fmt/vtdss.h)
 *	amd	v1 table: it grows up to 64 bits, every power of two from 4K to 2P
 *		but 512G (amd/init.c, amd/amd_iommu_types.h AMD_IOMMU_PGSIZES)
 *	smmuv3	stage 1: 48 bits, the page and the block of its granule; 1G with
 *		4K alone (io-pgtable-arm.c, arm_lpae_restrict_pgsizes)
 *	virtio	what the device says; QEMU: 64 bits, every power of two from 4K
 *
 * Coherent: Intel with snoop control (ecap.SC), AMD always; SMMUv3 only where
 * firmware declares it (CANWBS), virtio never. Dirty tracking needs Intel's
 * scalable mode, AMD's HD or Arm's HTTU: none is taken for granted.
 */
static const struct {
	unsigned aperture_bits;
	uint64_t leaf_sizes; /* 0: by the page size */
	const struct dmamap_machine_window *windows;
	size_t n_windows;
	bool coherent;
} models[] = {
	[DMAMAP_IOMMU_INTEL] = {48, 4 * KIB | 2 * MIB | GIB, intel_windows, LENGTH(intel_windows),
		true},
	[DMAMAP_IOMMU_AMD] = {64, SIZES(12, 51) & ~(512 * GIB), amd_windows, LENGTH(amd_windows),
		true},
	[DMAMAP_IOMMU_SMMUV3] = {48, 0, smmuv3_windows, LENGTH(smmuv3_windows), false},
	[DMAMAP_IOMMU_VIRTIO] = {64, SIZES(12, 63), virtio_windows, LENGTH(virtio_windows), false},
};

/* The page and the leaf of the level above; with 4 KiB pages one more. */
static uint64_t leaves_of_page(unsigned page_shift)
{
	uint64_t page = 1ULL << page_shift;

	return page | page << (page_shift - 3) | (page_shift == 12 ? GIB : 0);
}

void machine_preset_iommu(
	enum dmamap_iommu_model model, unsigned page_shift, struct dmamap_machine_iommu *iommu)
{
	uint64_t leaves = models[model].leaf_sizes;

	*iommu = (struct dmamap_machine_iommu){
		.model = model,
		.aperture_bits = models[model].aperture_bits,
		.windows = models[model].windows,
		.n_windows = models[model].n_windows,
		.coherent = models[model].coherent,
		/* Where the hardware has no leaf of the page: as if it had been made for it. */
		.leaf_sizes = leaves >> page_shift & 1 ? leaves : leaves_of_page(page_shift),
	};
}

const char *machine_preset_label(enum dmamap_iommu_model model, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < models[model].n_windows; i++) {
		const struct dmamap_machine_window *window = &models[model].windows[i];

		if (window->first == first && window->last == last)
			return window->label;
	}
	/* virtio-iommu's other one. */
	if (model == DMAMAP_IOMMU_VIRTIO)
		return machine_preset_label(DMAMAP_IOMMU_SMMUV3, first, last);
	return NULL;
}

/*
 * QEMU's functions, as hw/misc/pci-testdev.c, hw/misc/edu.c, hw/net/e1000e.c and
 * hw/nvme/ctrl.c make them. pci-testdev's BAR 2 is there as large as membar=
 * says. Without power management or function reset, on the root bus, Linux has
 * no way to reset pci-testdev and edu.
 */
static const struct {
	const char *name;
	struct dmamap_machine_device is;
} functions[] = {
	{"", {.vendor = 0x1b36, .device = 0x0005, .class_code = 0x00ff00, .reset = true}},
	{"pci-testdev", {.vendor = 0x1b36,
				.device = 0x0005,
				.class_code = 0x00ff00,
				.bar_size = {[0] = 4 * KIB, [1] = 256},
				.bar_flags = {[1] = DMAMAP_BAR_IO}}},
	{"edu", {.vendor = 0x1234,
			.device = 0x11e8,
			.class_code = 0x00ff00,
			.bar_size = {[0] = MIB},
			.intx = true,
			.msi = 1}},
	{"e1000e", {.vendor = 0x8086,
			   .device = 0x10d3,
			   .class_code = 0x020000,
			   .bar_size = {[0] = 128 * KIB, [1] = 128 * KIB, [2] = 32, [3] = 16 * KIB},
			   .bar_flags = {[2] = DMAMAP_BAR_IO},
			   .rom_size = 256 * KIB,
			   .express = true,
			   .intx = true,
			   .msi = 1,
			   .msix = 5,
			   .msix_bar = 3,
			   .reset = true}},
	{"nvme", {.vendor = 0x1b36,
			 .device = 0x0010,
			 .class_code = 0x010802,
			 .bar_size = {[0] = 16 * KIB},
			 .bar_flags = {[0] = DMAMAP_BAR_64},
			 .express = true,
			 .intx = true,
			 .msix = 65,
			 .msix_offset = 0x2000,
			 .reset = true}},
};

const struct dmamap_machine_device *machine_preset_device(const char *name)
{
	for (size_t i = 0; i < LENGTH(functions); i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i].is;
	return NULL;
}

/* The functions of a PC of the lab, with the addresses that its firmware gives. */
#define PC_DEVICES                                                                                 \
	"device=0000:00:04.0:pci-testdev,group=1,bar0=4K@0xfeb84000,bar1=256@0xc000:io,"           \
	"bar2=32G@0x800000000\n"                                                                   \
	"device=0000:00:05.0:pci-testdev,group=2,bar0=4K@0xfeb85000,bar1=256@0xc100:io,"           \
	"bar2=1G@0x1000000000\n"                                                                   \
	"device=0000:00:06.0:edu,group=3,bar0=1M@0xfea00000\n"                                     \
	"device=0000:00:07.0:e1000e,group=4,bar0=128K@0xfeb40000,bar1=128K@0xfeb60000,"            \
	"bar2=32@0xc240:io,bar3=16K@0xfeb80000\n"                                                  \
	"device=0000:00:08.0:nvme,group=5,bar0=16K@0x180000000:64\n"

/*
 * The lab's machines, lab/machines/. QEMU's intel-iommu has no snoop control
 * unless asked for, and interrupt remapping is off there.
 */
static const struct {
	const char *name, *text;
} machines[] = {
	{"q35-intel48", "iommu=intel,aperture=48,coherent=off\n" PC_DEVICES},
	{"q35-intel39", "iommu=intel,aperture=39,coherent=off\n" PC_DEVICES},
	/* QEMU gives the kernel no EFR in the IVRS table: four levels, leaves up to half of that.
	 */
	{"q35-amd", "iommu=amd,aperture=48,leaves=4K-256G/1T-64T\n" PC_DEVICES},
	{"q35-virtio", "iommu=virtio\n" PC_DEVICES},
	{"virt-smmuv3", "iommu=smmuv3\n"
			"device=0000:00:04.0:pci-testdev,group=1,bar2=32G\n"
			"device=0000:00:05.0:pci-testdev,group=2,bar2=1G\n"
			"device=0000:00:06.0:edu,group=3\n"
			"device=0000:00:07.0:e1000e,group=4\n"},
};

const char *machine_preset_text(const char *name)
{
	for (size_t i = 0; i < LENGTH(machines); i++)
		if (!strcmp(machines[i].name, name))
			return machines[i].text;
	return NULL;
}

enum dmamap_pfnmap_stride machine_kernel_stride(unsigned kernel)
{
	return kernel >= DMAMAP_KERNEL(6, 15) ? DMAMAP_PFNMAP_LEAF : DMAMAP_PFNMAP_PAGE;
}

static const struct dmamap_machine_device default_devices[] = {
	{
		.bdf = "0000:00:03.0",
		.group = 7,
		.cdev = 0,
		.vendor = 0x1b36,
		.device = 0x0005,
		.class_code = 0x00ff00,
		.bar_size = {[0] = 16 * MIB, [2] = 32 * GIB},
		.bar_address = {[0] = 0xc0000000, [2] = 0x380000000000},
		.reset = true,
	},
};

static const struct dmamap_machine_iommu default_iommus[] = {
	{
		.model = DMAMAP_IOMMU_INTEL,
		.aperture_bits = 48,
		.leaf_sizes = 4 * KIB | 2 * MIB | GIB,
		.windows = intel_windows,
		.n_windows = LENGTH(intel_windows),
		.coherent = true,
	},
};

void dmamap_machine_default(struct dmamap_machine *machine)
{
	*machine = (struct dmamap_machine){
		.page_shift = 12,
		.iommus = default_iommus,
		.n_iommus = LENGTH(default_iommus),
		.devices = default_devices,
		.n_devices = LENGTH(default_devices),
		.as_kernel = DMAMAP_KERNEL(7, 3),
		.memlock = DMAMAP_MEMLOCK_PROCESS,
		.allow_unsafe_interrupts = true,
		.dma_entry_limit = ENTRY_LIMIT,
		.pfnmap_stride = DMAMAP_PFNMAP_LEAF,
	};
}
