/* SPDX-License-Identifier: MIT */
/*
 * Random calls on a type1 container against a model that is as plain as the
 * rules: a sorted array of mappings, searched from the start. Errnos, sizes that
 * come back, entries left, charges and dirty bits must agree. The rules are
 * those of drivers/vfio/vfio_iommu_type1.c.
 */
#include "tests/soft/rig.h"

#define PAGES	  96 /* IOVAs that calls are about, around the MSI window's end */
#define BASE	  0xfeef0000ULL
#define FIRST_OK  16 /* the first page behind the window */
#define LIMIT	  12
#define PROCESSES 2
#define CALLS	  30000

struct mapping {
	unsigned first, last; /* pages */
	bool invalid;
	unsigned process;
};

struct model {
	struct mapping mappings[LIMIT];
	unsigned n;
	bool v2, tracking;
	unsigned process;
};

static struct rig rig;
static struct model model;
static char *memory;

static void remove_mapping(unsigned i)
{
	model.n--;
	for (; i < model.n; i++)
		model.mappings[i] = model.mappings[i + 1];
}

static struct mapping *lowest(unsigned first, unsigned last)
{
	for (unsigned i = 0; i < model.n; i++)
		if (model.mappings[i].first <= last && model.mappings[i].last >= first)
			return &model.mappings[i];
	return NULL;
}

static int model_map(unsigned first, unsigned last)
{
	unsigned i = model.n;

	if (lowest(first, last))
		return -EEXIST;
	if (model.n == LIMIT)
		return -ENOSPC;
	if (first < FIRST_OK)
		return -EINVAL;
	for (; i && model.mappings[i - 1].first > first; i--)
		model.mappings[i] = model.mappings[i - 1];
	model.mappings[i] = (struct mapping){first, last, false, model.process};
	model.n++;
	return 0;
}

static int model_map_vaddr(unsigned first, unsigned last)
{
	struct mapping *mapping = lowest(first, last);

	if (!mapping)
		return -ENOENT;
	if (!mapping->invalid || mapping->first != first || mapping->last != last)
		return -EINVAL;
	mapping->invalid = false;
	mapping->process = model.process;
	return 0;
}

static bool cut(unsigned first, unsigned last)
{
	struct mapping *at_first = lowest(first, first), *at_last = lowest(last, last);

	return (at_first && at_first->first != first) || (at_last && at_last->last != last);
}

static int model_unmap(unsigned first, unsigned last, uint32_t flags, unsigned *pages)
{
	bool all = flags & VFIO_DMA_UNMAP_FLAG_ALL, vaddr = flags & VFIO_DMA_UNMAP_FLAG_VADDR;
	unsigned found = 0;

	*pages = 0;
	if (all) {
		first = 0;
		last = PAGES;
	} else if (model.v2 && cut(first, last)) {
		return -EINVAL;
	}
	for (unsigned i = 0; i < model.n;) {
		struct mapping *mapping = &model.mappings[i];

		if (mapping->last < first || mapping->first > last) {
			i++;
			continue;
		}
		if (!model.v2 && mapping->first < first)
			break;
		if (vaddr && mapping->invalid) {
			/* Those found before it become valid again. */
			for (; found; found--)
				model.mappings[i - found].invalid = false;
			*pages = 0;
			return -EINVAL;
		}
		*pages += mapping->last - mapping->first + 1;
		if (vaddr) {
			mapping->invalid = true;
			found++;
			i++;
		} else {
			remove_mapping(i);
		}
	}
	return 0;
}

/* ------------------------------------------------------------ both at once */

static void check_state(void)
{
	struct dmamap_soft_charge charge;

	assert_int_equal(rig_counters(&rig).areas, model.n);
	for (unsigned process = 0; process < PROCESSES; process++) {
		uint64_t pages = 0;

		for (unsigned i = 0; i < model.n; i++)
			if (model.mappings[i].process == process)
				pages += model.mappings[i].last - model.mappings[i].first + 1;
		assert_int_equal(dmamap_soft_charged(rig.system, process, &charge), 0);
		assert_int_equal(charge.locked, pages * PAGE);
	}
}

static void call_unmap(struct random *random, unsigned first, unsigned last)
{
	static const uint32_t flags[] = {0, 0, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL,
		VFIO_DMA_UNMAP_FLAG_VADDR, VFIO_DMA_UNMAP_FLAG_VADDR,
		VFIO_DMA_UNMAP_FLAG_VADDR | VFIO_DMA_UNMAP_FLAG_ALL};
	uint32_t flag = flags[random_below(random, LENGTH(flags))];
	bool all = flag & VFIO_DMA_UNMAP_FLAG_ALL;
	uint64_t asked = all ? 0 : (last - first + 1) * PAGE, size = asked;
	unsigned pages;
	int expected = model_unmap(first, last, flag, &pages);

	assert_int_equal(rig_unmap(&rig, all ? 0 : BASE + first * PAGE, &size, flag), expected);
	assert_int_equal(size, expected ? asked : pages * PAGE);
}

static void call_dirty(unsigned first, unsigned last)
{
	uint64_t bits[2] = {0}, expected[2] = {0};
	struct {
		uint32_t argsz, flags;
		struct vfio_iommu_type1_dirty_bitmap_get range;
	} user = {
		.argsz = sizeof(user),
		.flags = VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP,
		.range = {BASE + first * PAGE, (last - first + 1) * PAGE, {PAGE, 16, bits}},
	};
	int error = !model.v2 ? -EACCES : !model.tracking || cut(first, last) ? -EINVAL : 0;

	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_IOMMU_DIRTY_PAGES, &user), error);
	for (unsigned page = first; page <= last && !error; page++)
		if (lowest(page, page))
			expected[(page - first) / 64] |= 1ULL << (page - first) % 64;
	/* Bits of pages that are not mapped may be left from an earlier call: see type1_dirty.c. */
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(bits[i] & expected[i], expected[i]);
}

static void call_tracking(bool on)
{
	struct vfio_iommu_type1_dirty_bitmap user = {
		.argsz = 8,
		.flags = on ? VFIO_IOMMU_DIRTY_PAGES_FLAG_START : VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP,
	};

	assert_int_equal(rig_ioctl(&rig, rig.container, VFIO_IOMMU_DIRTY_PAGES, &user),
		model.v2 ? 0 : -EACCES);
	model.tracking = model.v2 && on;
}

static void one_call(struct random *random)
{
	unsigned first = (unsigned)random_below(random, PAGES);
	unsigned last = first + (unsigned)random_below(random, 12);
	const char *va = memory + random_below(random, 16) * PAGE;
	struct mapping *some = model.n ? &model.mappings[random_below(random, model.n)] : NULL;

	if (last >= PAGES)
		last = PAGES - 1;
	/* Often exactly what is there. */
	if (some && random_below(random, 2)) {
		first = some->first;
		last = some->last;
	}
	switch (random_below(random, 10)) {
	case 0:
	case 1:
	case 2:
	case 3:
		assert_int_equal(
			rig_map(&rig, BASE + first * PAGE, va, (last - first + 1) * PAGE, RW),
			model_map(first, last));
		break;
	case 4:
	case 5:
		assert_int_equal(rig_map(&rig, BASE + first * PAGE, va, (last - first + 1) * PAGE,
					 VFIO_DMA_MAP_FLAG_VADDR),
			model_map_vaddr(first, last));
		break;
	case 6:
		call_dirty(first, last);
		break;
	case 7:
		if (!random_below(random, 4))
			call_tracking(!model.tracking);
		model.process = (unsigned)random_below(random, PROCESSES);
		assert_int_equal(dmamap_soft_process(rig.system, model.process), 0);
		break;
	default:
		call_unmap(random, first, last);
		break;
	}
}

static void against_the_model(void **state)
{
	struct random random = random_start("against_the_model");

	(void)state;
	memory = rig_memory((PAGES + 16) * PAGE, true);
	for (unsigned v2 = 0; v2 < 2; v2++) {
		struct dmamap_machine machine;

		dmamap_machine_default(&machine);
		machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
		machine.dma_entry_limit = LIMIT;
		rig_start(&rig, &machine);
		rig_group(&rig, "/dev/vfio/vfio", v2 ? VFIO_TYPE1v2_IOMMU : VFIO_TYPE1_IOMMU);
		model = (struct model){.v2 = v2};
		for (unsigned call = 0; call < CALLS; call++) {
			one_call(&random);
			if (call % 16 == 0)
				check_state();
		}
		dmamap_soft_process(rig.system, 0);
		rig_stop(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
