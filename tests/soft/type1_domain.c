/* SPDX-License-Identifier: MIT */
/*
 * Several groups in one container: who shares a domain, what a new domain is
 * filled with, which IOVAs are left, and who may not join. Sources:
 * vfio_iommu_type1_attach_group() and _detach_group() in
 * drivers/vfio/vfio_iommu_type1.c, container.c.
 */
#include "tests/soft/rig.h"

#define V2 VFIO_TYPE1v2_IOMMU

static const struct dmamap_machine_window msi = {0xfee00000, 0xfeefffff, "MSI window"};
static const struct dmamap_machine_window low = {0, 0xfffff, "low memory"};
static const struct dmamap_machine_window all = {0, UINT64_MAX, "everything"};

static const struct dmamap_machine_iommu wide = {
	.model = DMAMAP_IOMMU_INTEL,
	.aperture_bits = 48,
	.leaf_sizes = 1ULL << 12 | 1ULL << 21 | 1ULL << 30,
	.windows = &msi,
	.n_windows = 1,
	.coherent = true,
};

static void start_as(
	struct rig *rig, const struct dmamap_machine_iommu *iommus, unsigned n, unsigned kernel)
{
	rig_start_iommus(rig, iommus, n, kernel, DMAMAP_MEMLOCK_UNLIMITED);
}

static void start(struct rig *rig, const struct dmamap_machine_iommu *iommus, unsigned n)
{
	start_as(rig, iommus, n, DMAMAP_KERNEL(7, 3));
}

static int open_group(struct rig *rig, unsigned number)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/vfio/%u", number);
	fd = rig_open(rig, path);
	assert_true(fd >= 0);
	return fd;
}

static int join(struct rig *rig, int group)
{
	return rig_ioctl(rig, group, VFIO_GROUP_SET_CONTAINER, &rig->container);
}

static int leave(struct rig *rig, int group)
{
	return rig_ioctl(rig, group, VFIO_GROUP_UNSET_CONTAINER, NULL);
}

/* The container with group 7 alone. */
static void open_first(struct rig *rig)
{
	rig->container = rig_open(rig, "/dev/vfio/vfio");
	rig->group = open_group(rig, 7);
	assert_int_equal(join(rig, rig->group), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_SET_IOMMU, (void *)V2), 0);
}

struct info {
	struct vfio_iommu_type1_info info;
	char before_ranges[48];
	struct vfio_info_cap_header header;
	uint32_t n, reserved;
	struct vfio_iova_range range[8];
};

static struct info info_of(struct rig *rig)
{
	struct info info = {.info.argsz = sizeof(info)};

	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, &info), 0);
	assert_int_equal(info.header.id, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE);
	return info;
}

/* The usable ranges, as pairs. */
static void assert_ranges(struct rig *rig, unsigned n, const uint64_t *pairs)
{
	struct info info = info_of(rig);

	assert_int_equal(info.n, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(info.range[i].start, pairs[2 * i]);
		assert_int_equal(info.range[i].end, pairs[2 * i + 1]);
	}
}

#define RANGES(rig, ...)                                                                           \
	assert_ranges(rig, sizeof((uint64_t[]){__VA_ARGS__}) / 16, (uint64_t[]){__VA_ARGS__})

/* How many tables have a 2 MiB leaf for a mapping that is one: as many as there are domains. */
static uint64_t domains(struct rig *rig)
{
	static char *memory;
	uint64_t before = rig_counters(rig).leaves[21], size = 2 * MIB;

	if (!memory)
		memory = rig_memory(2 * MIB, false);
	assert_int_equal(dmamap_soft_declare(rig->system, memory, 2 * MIB, -1, 21), 0);
	assert_int_equal(rig_map(rig, 2 * GIB, memory, 2 * MIB, RW), 0);
	assert_int_equal(rig_unmap(rig, 2 * GIB, &size, 0), 0);
	return rig_counters(rig).leaves[21] - before;
}

/* One IOMMU, one domain. */
static void one_iommu(void **state)
{
	struct rig rig;
	int second;

	(void)state;
	start(&rig, &wide, 1);
	open_first(&rig);
	assert_int_equal(domains(&rig), 1);
	second = open_group(&rig, 8);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(domains(&rig), 1);
	assert_int_equal(leave(&rig, rig.group), 0);
	assert_int_equal(domains(&rig), 1);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* Which IOMMUs take each other's domains, by the model's rule for attaching one. */
static void who_shares(void **state)
{
	enum { INTEL = DMAMAP_IOMMU_INTEL, AMD = DMAMAP_IOMMU_AMD, SMMU = DMAMAP_IOMMU_SMMUV3 };
	static const struct {
		struct {
			unsigned model, bits;
			uint64_t sizes;
			bool coherent;
		} first, second;
		unsigned domains;
	} rows[] = {
		{{INTEL, 48, 0x40201000, true}, {INTEL, 48, 0x40201000, true}, 1},
		/* A wide domain is too much for a narrow unit, not the other way round. */
		{{INTEL, 48, 0x40201000, true}, {INTEL, 39, 0x40201000, true}, 2},
		{{INTEL, 39, 0x40201000, true}, {INTEL, 48, 0x40201000, true}, 1},
		{{INTEL, 48, 0x40201000, true}, {INTEL, 48, 0x201000, true}, 2},
		{{INTEL, 48, 0x201000, true}, {INTEL, 48, 0x40201000, true}, 1},
		{{INTEL, 48, 0x40201000, true}, {INTEL, 48, 0x40201000, false}, 2},
		{{AMD, 64, 0x40201000, true}, {AMD, 48, 0x201000, true}, 1},
		{{SMMU, 48, 0x40201000, true}, {SMMU, 48, 0x40201000, true}, 2},
		{{DMAMAP_IOMMU_VIRTIO, 48, 0x40201000, false},
			{DMAMAP_IOMMU_VIRTIO, 48, 0x40201000, false}, 2},
		{{INTEL, 48, 0x40201000, true}, {AMD, 48, 0x40201000, true}, 2},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct dmamap_machine_iommu iommus[2] = {
			{.model = rows[i].first.model,
				.aperture_bits = rows[i].first.bits,
				.leaf_sizes = rows[i].first.sizes,
				.coherent = rows[i].first.coherent},
			{.model = rows[i].second.model,
				.aperture_bits = rows[i].second.bits,
				.leaf_sizes = rows[i].second.sizes,
				.coherent = rows[i].second.coherent},
		};
		struct rig rig;
		int second;

		start(&rig, iommus, 2);
		open_first(&rig);
		second = open_group(&rig, 8);
		assert_int_equal(join(&rig, second), 0);
		assert_int_equal(domains(&rig), rows[i].domains);
		rig_close(&rig, &second);
		rig_stop(&rig);
	}
}

/* Linux 6.12: a VT-d unit takes a wider domain, too, in which nothing was ever out of its reach. */
static void who_shares_in_6_12(void **state)
{
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	char *memory = rig_memory(PAGE, true);

	(void)state;
	iommus[1].aperture_bits = 39;
	for (unsigned far = 0; far < 2; far++) {
		struct rig rig;
		int second;

		start_as(&rig, iommus, 2, DMAMAP_KERNEL(6, 12));
		open_first(&rig);
		if (far) {
			assert_int_equal(rig_map(&rig, 1ULL << 39, memory, PAGE, RW), 0);
			assert_int_equal(rig_unmap(&rig, 1ULL << 39, &(uint64_t){PAGE}, 0), 0);
		}
		second = open_group(&rig, 8);
		assert_int_equal(join(&rig, second), 0);
		assert_int_equal(domains(&rig), 1 + far);
		/* With the domain the wide aperture comes back, otherwise it does not. */
		assert_int_equal(leave(&rig, second), 0);
		RANGES(&rig, 0, 0xfedfffff, 0xfef00000, far ? (1ULL << 48) - 1 : (1ULL << 39) - 1);
		rig_close(&rig, &second);
		rig_stop(&rig);
	}
}

/* DMA_CC: all domains enforce coherency, or the container does not. */
static void coherency(void **state)
{
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	struct rig rig;
	int second;

	(void)state;
	iommus[1].coherent = false;
	start(&rig, iommus, 2);
	open_first(&rig);
	second = open_group(&rig, 8);
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_CHECK_EXTENSION, (void *)4), 1);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_CHECK_EXTENSION, (void *)4), 0);
	assert_int_equal(leave(&rig, second), 0);
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_CHECK_EXTENSION, (void *)4), 1);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* vfio_iommu_replay(): a new domain has all that is mapped, also what can be found no more. */
static void replay(void **state)
{
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	char *memory = rig_memory(2 * MIB, true), *gone = rig_memory(PAGE, true), bytes[4];
	struct dmamap_counters counters;
	struct dmamap_access *access;
	struct rig rig;
	int second, device;
	void *bar;

	(void)state;
	iommus[1].aperture_bits = 39;
	start(&rig, iommus, 2);
	open_first(&rig);
	rig.device = rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:03.0");
	bar = rig_bar(&rig, 2, 2 * GIB, 0);
	assert_int_equal(rig_map(&rig, 0, memory, 2 * MIB, RW), 0);
	assert_int_equal(rig_map(&rig, 2 * MIB, gone, PAGE, RW), 0);
	assert_int_equal(rig_map(&rig, 4 * GIB, bar, 2 * GIB, RW), 0);
	memcpy(memory + MIB, "abc", 4);
	/* What was pinned is remembered, not looked for: the BAR's mapping may be gone. */
	assert_int_equal(rig.system->ops->munmap(rig.system, bar, 2 * GIB), 0);
	mprotect(gone, PAGE, PROT_NONE);
	counters = rig_counters(&rig);
	second = open_group(&rig, 8);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(rig_counters(&rig).leaves[30] - counters.leaves[30], 2);
	assert_int_equal(rig_counters(&rig).leaves[12], 2 * counters.leaves[12]);
	assert_int_equal(rig_counters(&rig).maps, counters.maps);
	device = rig_ioctl(&rig, second, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:04.0");
	assert_int_equal(dmamap_soft_access(rig.system, device, &access), 0);
	assert_int_equal(dmamap_read(access, MIB, bytes, 4, NULL), 0);
	assert_string_equal(bytes, "abc");
	assert_int_equal(dmamap_write(access, 4 * GIB + MIB, "xyz", 4, NULL), 0);
	dmamap_access_destroy(access);
	/* The first group's devices reach the same, and keep it when the second leaves. */
	rig_close(&rig, &device);
	assert_int_equal(leave(&rig, second), 0);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &access), 0);
	assert_int_equal(dmamap_read(access, 4 * GIB + MIB, bytes, 4, NULL), 0);
	assert_string_equal(bytes, "xyz");
	dmamap_access_destroy(access);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* The aperture is what all domains share, and as wide as the rest again when one leaves. */
static void narrowing(void **state)
{
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	char *memory = rig_memory(PAGE, true);
	struct rig rig;
	int second;

	(void)state;
	iommus[1].aperture_bits = 39;
	start(&rig, iommus, 2);
	open_first(&rig);
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, (1ULL << 48) - 1);
	second = open_group(&rig, 8);
	assert_int_equal(join(&rig, second), 0);
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, (1ULL << 39) - 1);
	assert_gives(&rig, rig_map(&rig, 1ULL << 39, memory, PAGE, RW), EINVAL, "aperture");
	assert_string_equal(rig_sentence(&rig),
		"iova 0x8000000000-0x8000000fff ends past 0x7fffffffff, the last of the 39-bit "
		"aperture");
	assert_int_equal(rig_map(&rig, (1ULL << 39) - PAGE, memory, PAGE, RW), 0);
	assert_int_equal(leave(&rig, second), 0);
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, (1ULL << 48) - 1);
	assert_int_equal(rig_map(&rig, 1ULL << 39, memory, PAGE, RW), 0);
	/* What is mapped now is too far up for the other. */
	assert_gives(&rig, join(&rig, second), EINVAL, "group_aperture");
	assert_string_equal(rig_sentence(&rig),
		"group 8 cannot join: the mapping 0x8000000000-0x8000000fff ends past "
		"0x7fffffffff, the last of its IOMMU's 39-bit aperture");
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, (1ULL << 48) - 1);
	assert_int_equal(rig_unmap(&rig, 1ULL << 39, &(uint64_t){PAGE}, 0), 0);
	assert_int_equal(join(&rig, second), 0);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* A group that is served by an old, narrow domain keeps that aperture. */
static void narrow_domain_stays(void **state)
{
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	struct rig rig;
	int second;

	(void)state;
	iommus[0].aperture_bits = 39;
	start(&rig, iommus, 2);
	open_first(&rig);
	second = open_group(&rig, 8);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(leave(&rig, rig.group), 0);
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, (1ULL << 39) - 1);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* Windows of all groups are left out; one that a mapping lies on keeps its group away. */
static void windows(void **state)
{
	static const struct dmamap_machine_window more[] = {
		{0xfee00000, 0xfeefffff, "MSI window"},
		{0xfd00000000, 0xffffffffff, "HyperTransport"},
	};
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	char *memory = rig_memory(2 * PAGE, true);
	struct rig rig;
	int second;

	(void)state;
	iommus[1].windows = more;
	iommus[1].n_windows = 2;
	start(&rig, iommus, 2);
	open_first(&rig);
	second = open_group(&rig, 8);
	assert_int_equal(rig_map(&rig, 0xfd00000000 - PAGE, memory, 2 * PAGE, RW), 0);
	assert_gives(&rig, join(&rig, second), EINVAL, "group_window");
	assert_string_equal(rig_sentence(&rig),
		"group 8 cannot join: the mapping 0xfcfffff000-0xfd00000fff overlaps "
		"0xfd00000000-0xffffffffff, which is reserved for it (HyperTransport)");
	assert_int_equal(rig_unmap(&rig, 0, &(uint64_t){0}, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(domains(&rig), 1);
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, 0xfcffffffff, 1ULL << 40, (1ULL << 48) - 1);
	assert_gives(
		&rig, rig_map(&rig, 0xfd00000000 - PAGE, memory, 2 * PAGE, RW), EINVAL, "reserved");
	assert_int_equal(leave(&rig, second), 0);
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, (1ULL << 48) - 1);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* vfio_iommu_resv_refresh() keeps the list's ends: a window there stays with the domain. */
static void window_at_the_end(void **state)
{
	struct dmamap_machine_iommu iommus[3] = {wide, wide, wide};
	char *memory = rig_memory(PAGE, true);
	struct rig rig;
	int second, third;

	(void)state;
	iommus[1].windows = &low;
	iommus[2].aperture_bits = 39;
	start(&rig, iommus, 3);
	open_first(&rig);
	second = open_group(&rig, 8);
	third = open_group(&rig, 9);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(leave(&rig, second), 0);
	RANGES(&rig, 0x100000, 0xfedfffff, 0xfef00000, (1ULL << 48) - 1);
	assert_gives(&rig, rig_map(&rig, 0, memory, PAGE, RW), EINVAL, "unusable");
	/* A domain that comes and goes puts it right. */
	assert_int_equal(join(&rig, third), 0);
	assert_int_equal(leave(&rig, third), 0);
	RANGES(&rig, 0, 0xfedfffff, 0xfef00000, (1ULL << 48) - 1);
	rig_close(&rig, &second);
	rig_close(&rig, &third);
	rig_stop(&rig);
}

/* Apertures that do not meet, and windows that leave nothing. */
static void nothing_left(void **state)
{
	static const struct dmamap_machine_window below = {0, (1ULL << 40) - 1, "below"};
	struct dmamap_machine_iommu iommus[3] = {wide, wide, wide};
	struct rig rig;
	int second, third;

	(void)state;
	iommus[0].windows = &below;
	iommus[1].aperture_bits = 39;
	iommus[2].windows = &all;
	start(&rig, iommus, 3);
	open_first(&rig);
	second = open_group(&rig, 8);
	third = open_group(&rig, 9);
	assert_gives(&rig, join(&rig, second), EINVAL, "group_disjoint");
	assert_gives(&rig, join(&rig, third), EINVAL, "group_nothing");
	/* Refused, they may go elsewhere. */
	assert_gives(&rig, leave(&rig, second), EINVAL, "group_unset");
	rig_close(&rig, &second);
	rig_close(&rig, &third);
	rig_stop(&rig);
}

/* vfio_update_pgsize_bitmap(): page sizes of all domains, those below the page hidden. */
static void page_sizes(void **state)
{
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	struct rig rig;
	int second;

	(void)state;
	iommus[0].model = DMAMAP_IOMMU_AMD;
	iommus[0].leaf_sizes = ~0ULL << 11 & ((1ULL << 40) - 1);
	start(&rig, iommus, 2);
	open_first(&rig);
	assert_int_equal(info_of(&rig).info.iova_pgsizes, 0xfffffff000);
	second = open_group(&rig, 8);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(info_of(&rig).info.iova_pgsizes, 0x40201000);
	assert_int_equal(leave(&rig, second), 0);
	assert_int_equal(info_of(&rig).info.iova_pgsizes, 0xfffffff000);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* Attaching could mean pinning: not while an address is invalid. */
static void busy_while_invalid(void **state)
{
	char *memory = rig_memory(PAGE, true);
	struct rig rig;
	int second;

	(void)state;
	start(&rig, &wide, 1);
	open_first(&rig);
	second = open_group(&rig, 8);
	assert_int_equal(rig_map(&rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(rig_unmap(&rig, 0, &(uint64_t){PAGE}, VFIO_DMA_UNMAP_FLAG_VADDR), 0);
	assert_gives(&rig, join(&rig, second), EBUSY, "group_vaddr");
	assert_int_equal(rig_unmap(&rig, 0, &(uint64_t){PAGE}, 0), 0);
	assert_int_equal(join(&rig, second), 0);
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* SET_IOMMU gives what the groups' attaching gives, and leaves nothing of it. */
static void set_iommu(void **state)
{
	struct dmamap_machine_iommu iommus[2] = {wide, wide};
	struct rig rig;
	int second;

	(void)state;
	iommus[1].windows = &all;
	start(&rig, iommus, 2);
	rig.container = rig_open(&rig, "/dev/vfio/vfio");
	second = open_group(&rig, 8);
	rig.group = open_group(&rig, 7);
	assert_int_equal(join(&rig, second), 0);
	assert_int_equal(join(&rig, rig.group), 0);
	assert_gives(&rig, rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)V2), EINVAL,
		"group_nothing");
	assert_gives(&rig, rig_map(&rig, 0, NULL, PAGE, RW), EINVAL, "iommu_unset");
	assert_int_equal(leave(&rig, second), 0);
	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)V2), 0);
	assert_gives(&rig, join(&rig, second), EINVAL, "group_nothing");
	rig_close(&rig, &second);
	rig_stop(&rig);
}

/* Interrupts that are not isolated need the administrator's word. */
static void unsafe_interrupts(void **state)
{
	struct dmamap_machine machine;
	struct rig rig;

	(void)state;
	dmamap_machine_default(&machine);
	for (unsigned i = 0; i < 4; i++) {
		machine.allow_unsafe_interrupts = i & 1;
		machine.isolated_msi = i & 2;
		rig_start(&rig, &machine);
		rig.container = rig_open(&rig, "/dev/vfio/vfio");
		rig.group = open_group(&rig, 7);
		assert_int_equal(join(&rig, rig.group), 0);
		if (i)
			assert_int_equal(
				rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)V2), 0);
		else
			assert_gives(&rig,
				rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)V2), EPERM,
				"group_msi");
		rig_stop(&rig);
	}
}

/* iommu_group_claim_dma_owner(): a group whose device is bound elsewhere is not to be had. */
static void owned_elsewhere(void **state)
{
	struct rig rig;
	int iommufd, device;

	(void)state;
	start(&rig, &wide, 1);
	rig.container = rig_open(&rig, "/dev/vfio/vfio");
	rig.group = open_group(&rig, 7);
	iommufd = rig_open(&rig, "/dev/iommu");
	assert_int_equal(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &iommufd), 0);
	device = rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:03.0");
	assert_true(device >= 0);
	/* The IOMMUFD may be unset under an open device; the device keeps the group's DMA. */
	assert_int_equal(leave(&rig, rig.group), 0);
	assert_gives(&rig, join(&rig, rig.group), EPERM, "group_owned");
	rig_close(&rig, &device);
	assert_int_equal(join(&rig, rig.group), 0);
	rig_close(&rig, &iommufd);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_iommu),
		cmocka_unit_test(who_shares),
		cmocka_unit_test(who_shares_in_6_12),
		cmocka_unit_test(coherency),
		cmocka_unit_test(replay),
		cmocka_unit_test(narrowing),
		cmocka_unit_test(narrow_domain_stays),
		cmocka_unit_test(windows),
		cmocka_unit_test(window_at_the_end),
		cmocka_unit_test(nothing_left),
		cmocka_unit_test(page_sizes),
		cmocka_unit_test(busy_while_invalid),
		cmocka_unit_test(set_iommu),
		cmocka_unit_test(unsafe_interrupts),
		cmocka_unit_test(owned_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
