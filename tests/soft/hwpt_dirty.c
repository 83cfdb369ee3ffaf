/* SPDX-License-Identifier: MIT */
/*
 * Dirty tracking of an HWPT: which bits the caller finds, and what is refused.
 * Sources: drivers/iommu/iommufd/hw_pagetable.c, io_pagetable.c and
 * iova_bitmap.c, drivers/iommu/generic_pt/iommu_pt.h.
 */
#include "tests/soft/rig.h"

#define ROOM (4 * PAGE)

static char *memory;
static uint8_t *bits; /* ROOM bytes, and nothing behind them */
static uint32_t hwpt;
static struct dmamap_access *device;

static int start(void **state)
{
	static struct rig rig;
	struct dmamap_machine machine;
	struct dmamap_machine_iommu iommu;
	struct iommu_hwpt_alloc user = {.size = sizeof(user)};
	uint32_t pt;

	dmamap_machine_default(&machine);
	iommu = machine.iommus[0];
	iommu.dirty = true;
	machine.iommus = &iommu;
	memory = rig_memory(8 * MIB, true);
	bits = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(bits + ROOM, PAGE, PROT_NONE);
	rig_start(&rig, &machine);
	rig_cdev(&rig, false);
	user.dev_id = 1;
	user.pt_id = rig.ioas;
	user.flags = IOMMU_HWPT_ALLOC_DIRTY_TRACKING;
	assert_int_equal(rig_ioctl(&rig, rig.container, IOMMU_HWPT_ALLOC, &user), 0);
	pt = hwpt = user.out_hwpt_id;
	assert_int_equal(rig_attach(&rig, rig.device, &pt), 0);
	assert_int_equal(dmamap_soft_access(rig.system, rig.device, &device), 0);
	/* Small pages from 1 MiB, a large one at 4 MiB. */
	assert_int_equal(rig_ioas_map(&rig, MIB, memory, MIB, RW), 0);
	assert_int_equal(dmamap_soft_declare(rig.system, memory + 2 * MIB, 2 * MIB, -1, 21), 0);
	assert_int_equal(rig_ioas_map(&rig, 4 * MIB, memory + 2 * MIB, 2 * MIB, RW), 0);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	dmamap_access_destroy(device);
	rig_stop(*state);
	munmap(bits, ROOM + PAGE);
	return 0;
}

static int track(struct rig *rig, uint32_t id, uint32_t flags)
{
	struct iommu_hwpt_set_dirty_tracking user = {
		.size = sizeof(user), .flags = flags, .hwpt_id = id};

	return rig_ioctl(rig, rig->container, IOMMU_HWPT_SET_DIRTY_TRACKING, &user);
}

static int get(
	struct rig *rig, uint64_t iova, uint64_t length, uint64_t page, void *data, uint32_t flags)
{
	struct iommu_hwpt_get_dirty_bitmap user = {
		.size = sizeof(user),
		.hwpt_id = hwpt,
		.flags = flags,
		.iova = iova,
		.length = length,
		.page_size = page,
		.data = (uintptr_t)data,
	};

	return rig_ioctl(rig, rig->container, IOMMU_HWPT_GET_DIRTY_BITMAP, &user);
}

static void dma(uint64_t iova)
{
	assert_int_equal(dmamap_write(device, iova, "w", 1, NULL), 0);
}

/* How many bits are set, and where the first one is. */
static unsigned count(unsigned *first)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ROOM * 8; i++)
		if (bits[i / 8] >> i % 8 & 1 && !n++ && first)
			*first = i;
	return n;
}

/* iommufd_hwpt_set_dirty_tracking(), iommufd_hwpt_get_dirty_bitmap(), in their order. */
static void refusals(void **state)
{
	static const struct {
		struct iommu_hwpt_get_dirty_bitmap user;
		int error;
		const char *reason;
	} rows[] = {
		{{.flags = 2}, EOPNOTSUPP, "flags"},
		{{.__reserved = 1}, EOPNOTSUPP, "reserved_field"},
		{{.hwpt_id = 77}, ENOENT, "object_unknown"},
		{{.length = 0, .page_size = 0}, EINVAL, "length_zero"},
		{{.iova = ~0ULL << 12, .length = 2 * PAGE}, EOVERFLOW, "wrap"},
		{{.iova = 0x800, .length = PAGE}, EINVAL, "misaligned"},
		{{.iova = 0, .length = 0x800}, EINVAL, "misaligned"},
		{{.iova = 0, .length = PAGE, .page_size = 0}, EINVAL, "value"},
		{{.iova = PAGE, .length = PAGE, .page_size = 2 * PAGE}, EINVAL, "misaligned"},
	};
	struct iommu_hwpt_alloc plain = {.size = sizeof(plain)};
	struct rig *rig = *state;

	assert_gives(rig, track(rig, hwpt, 2), EOPNOTSUPP, "flags");
	assert_gives(rig, track(rig, rig->ioas, 1), ENOENT, "object_unknown");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct iommu_hwpt_get_dirty_bitmap user = rows[i].user;

		user.size = sizeof(user);
		if (!user.hwpt_id)
			user.hwpt_id = hwpt;
		assert_gives(rig,
			rig_ioctl(rig, rig->container, IOMMU_HWPT_GET_DIRTY_BITMAP, &user),
			rows[i].error, rows[i].reason);
	}
	/* One that was not made for it: its range is looked at first. */
	plain.dev_id = 1;
	plain.pt_id = rig->ioas;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_HWPT_ALLOC, &plain), 0);
	assert_gives(rig, track(rig, plain.out_hwpt_id, 1), EOPNOTSUPP, "hwpt_untracked");
	hwpt = plain.out_hwpt_id;
	assert_gives(rig, get(rig, 0, 0, PAGE, bits, 0), EINVAL, "length_zero");
	assert_gives(rig, get(rig, 0, PAGE, PAGE, bits, 0), EOPNOTSUPP, "hwpt_untracked");
}

/* Written leaves have their bits, which are OR-ed in; a second look finds them clean. */
static void bit_by_bit(void **state)
{
	struct rig *rig = *state;
	unsigned first = 0;

	dma(MIB);
	assert_int_equal(track(rig, hwpt, 1), 0);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
	dma(MIB + 3 * PAGE + 5);
	dma(MIB + 200 * PAGE);
	bits[0] = 1;
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 1), 0);
	assert_int_equal(bits[0], 1 | 1 << 3);
	assert_int_equal(bits[25], 1);
	memset(bits, 0, ROOM);
	/* Kept by NO_CLEAR; and a part of the range is a bitmap of its own. */
	assert_int_equal(get(rig, MIB + 2 * PAGE, 4 * PAGE, PAGE, bits, 0), 0);
	assert_int_equal(count(&first), 1);
	assert_int_equal(first, 1);
	memset(bits, 0, ROOM);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(&first), 1);
	assert_int_equal(first, 200);
	memset(bits, 0, ROOM);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
	/* Reads are no writes; starting again cleans. */
	assert_int_equal(dmamap_read(device, MIB, &(char){0}, 1, NULL), 0);
	dma(MIB);
	assert_int_equal(track(rig, hwpt, 1), 0);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
	/* What is mapped while tracking is on is tracked: libvfio-user pull 518. */
	assert_int_equal(rig_ioas_map(rig, 2 * MIB, memory, PAGE, RW), 0);
	dma(2 * MIB);
	assert_int_equal(get(rig, 2 * MIB, PAGE, PAGE, bits, 0), 0);
	assert_int_equal(count(&first), 1);
	assert_int_equal(first, 0);
}

/* Other sizes of page than the leaf's: a bit for several, several bits for one. */
static void page_sizes(void **state)
{
	struct rig *rig = *state;
	unsigned first;

	assert_int_equal(track(rig, hwpt, 1), 0);
	dma(MIB + 5 * PAGE);
	assert_int_equal(get(rig, MIB, MIB, 16 * PAGE, bits, 1), 0);
	assert_int_equal(bits[0], 1);
	memset(bits, 0, ROOM);
	assert_int_equal(get(rig, MIB, MIB, 512, bits, 1), 0);
	assert_int_equal(count(&first), 8);
	assert_int_equal(first, 40);
	memset(bits, 0, ROOM);
	/* A leaf of 2 MiB is dirty as a whole. */
	dma(4 * MIB + 77 * PAGE);
	assert_int_equal(get(rig, 4 * MIB, 2 * MIB, PAGE, bits, 1), 0);
	assert_int_equal(count(&first), 512);
	assert_int_equal(first, 0);
}

/* record_dirty(), iova_bitmap_set(): bits behind the range, and none for what began before it. */
static void around_the_range(void **state)
{
	struct rig *rig = *state;
	unsigned first;

	assert_int_equal(track(rig, hwpt, 1), 0);
	dma(4 * MIB);
	/* One byte of bitmap is asked for; the leaf's 64 are in pages that are pinned. */
	assert_int_equal(get(rig, 4 * MIB, 8 * PAGE, PAGE, bits, 1), 0);
	assert_int_equal(count(&first), 512);
	memset(bits, 0, ROOM);
	/* The pinned pages end before the leaf's bits do: so many are set. */
	assert_int_equal(get(rig, 4 * MIB, PAGE, PAGE, bits + ROOM - 16, 1), 0);
	assert_int_equal(count(&first), 128);
	memset(bits, 0, ROOM);
	/* An unaligned bitmap has one more page pinned than it takes. */
	assert_int_equal(get(rig, 4 * MIB, PAGE, PAGE, bits + PAGE - 16, 1), 0);
	assert_int_equal(count(&first), 512);
	memset(bits, 0, ROOM);
	/* Cleaned though not reported. */
	assert_int_equal(get(rig, 4 * MIB + PAGE, PAGE, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
	assert_int_equal(get(rig, 4 * MIB, 2 * MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
}

/* __iommu_read_and_clear_dirty(): up to the first gap; what goes wrong does not show. */
static void gaps(void **state)
{
	struct rig *rig = *state;
	unsigned first;

	assert_int_equal(track(rig, hwpt, 1), 0);
	dma(MIB + PAGE);
	dma(4 * MIB);
	assert_int_equal(get(rig, 0, 8 * MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
	assert_int_equal(get(rig, MIB, 7 * MIB, PAGE, bits, 1), 0);
	assert_int_equal(count(&first), 1);
	assert_int_equal(first, 1);
	/* A bitmap that is not there: 0, and the leaves are clean. */
	assert_int_equal(get(rig, MIB, MIB, PAGE, NULL, 0), 0);
	memset(bits, 0, ROOM);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
	/* One whose second page is not there: the first has its bits. */
	dma(MIB);
	dma(MIB + 255 * PAGE);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits + ROOM - 8, 0), 0);
	assert_int_equal(count(&first), 1);
	assert_int_equal(first, (ROOM - 8) * 8);
}

/* Hardware keeps its bits when tracking stops, until they are read or unmapped. */
static void after_the_end(void **state)
{
	struct rig *rig = *state;
	unsigned first;

	assert_int_equal(track(rig, hwpt, 0), 0);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 0), 0);
	assert_int_equal(track(rig, hwpt, 1), 0);
	dma(MIB + PAGE);
	dma(MIB + 2 * PAGE);
	dma(4 * MIB);
	assert_int_equal(track(rig, hwpt, 0), 0);
	dma(MIB + 9 * PAGE);
	assert_int_equal(rig_ioas_unmap(rig, 4 * MIB, &(uint64_t){2 * MIB}), 0);
	assert_int_equal(rig_ioas_map(rig, 4 * MIB, memory, 2 * MIB, RW), 0);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 1), 0);
	assert_int_equal(count(&first), 2);
	assert_int_equal(first, 1);
	memset(bits, 0, ROOM);
	assert_int_equal(get(rig, MIB, 2 * PAGE, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 1);
	assert_int_equal(track(rig, hwpt, 0), 0);
	memset(bits, 0, ROOM);
	assert_int_equal(get(rig, MIB, MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(&first), 1);
	assert_int_equal(first, 2);
	memset(bits, 0, ROOM);
	assert_int_equal(get(rig, 4 * MIB, 2 * MIB, PAGE, bits, 0), 0);
	assert_int_equal(count(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refusals, start, stop),
		cmocka_unit_test_setup_teardown(bit_by_bit, start, stop),
		cmocka_unit_test_setup_teardown(page_sizes, start, stop),
		cmocka_unit_test_setup_teardown(around_the_range, start, stop),
		cmocka_unit_test_setup_teardown(gaps, start, stop),
		cmocka_unit_test_setup_teardown(after_the_end, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
