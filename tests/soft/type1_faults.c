/* SPDX-License-Identifier: MIT */
/*
 * Type1 without memory: the same calls again and again, with the n-th
 * allocation failing, until none fails. A call that fails changes nothing, and
 * succeeds when it is made again.
 */
#include "tests/soft/faults.h"

/* What can be seen of a container: its mappings, and who is charged. */
struct seen {
	uint64_t areas, locked[2];
};

static struct seen look(struct rig *rig)
{
	struct seen seen = {.areas = rig_counters(rig).areas};
	unsigned before = fail_nth;

	fail_nth = 0;
	for (unsigned process = 0; process < 2; process++) {
		struct dmamap_soft_charge charge;

		assert_int_equal(dmamap_soft_charged(rig->system, process, &charge), 0);
		seen.locked[process] = charge.locked;
	}
	fail_nth = before;
	return seen;
}

/* Without memory the first time, it must work the second time. */
#define MUST(rig, call)                                                                            \
	do {                                                                                       \
		struct seen before = look(rig), after;                                             \
		int error = call;                                                                  \
                                                                                                   \
		if (error < 0) {                                                                   \
			assert_int_equal(error, -ENOMEM);                                          \
			assert_true(failed);                                                       \
			after = look(rig);                                                         \
			assert_memory_equal(&before, &after, sizeof(before));                      \
			error = call;                                                              \
		}                                                                                  \
		assert_int_equal(error, 0);                                                        \
	} while (0)

static const struct dmamap_machine_window low = {0x100000, 0x1fffff, "a window"};

static void start(struct rig *rig)
{
	struct dmamap_machine_iommu iommus[2];
	struct dmamap_machine machine;

	dmamap_machine_default(&machine);
	iommus[0] = iommus[1] = machine.iommus[0];
	iommus[1].aperture_bits = 39;
	iommus[1].windows = &low;
	rig_start_iommus(rig, iommus, 2, machine.as_kernel, DMAMAP_MEMLOCK_UNLIMITED);
}

/* Ordinary memory and some of larger pages, so that a mapping has several extents. */
static char *make_memory(struct rig *rig)
{
	char *memory = rig_memory(16 * PAGE, true);

	for (unsigned i = 2; i < 16; i += 4)
		assert_int_equal(
			dmamap_soft_declare(rig->system, memory + i * PAGE, 2 * PAGE, -1, 13), 0);
	return memory;
}

static int set_container(struct rig *rig, int group)
{
	return rig_ioctl(rig, group, VFIO_GROUP_SET_CONTAINER, &rig->container);
}

static int get_info(struct rig *rig)
{
	char user[256] = {0};
	uint32_t argsz = sizeof(user);

	memcpy(user, &argsz, sizeof(argsz));
	return rig_ioctl(rig, rig->container, VFIO_IOMMU_GET_INFO, user);
}

static int unmap_all(struct rig *rig, uint32_t flags)
{
	uint64_t size = 0;

	return rig_unmap(rig, 0, &size, flags | VFIO_DMA_UNMAP_FLAG_ALL);
}

static void use(struct rig *rig, char *memory, unsigned nth)
{
	struct rig other = {.group = rig_open(rig, "/dev/vfio/8")};
	struct dmamap_soft_charge charge;

	rig->container = rig_open(rig, "/dev/vfio/vfio");
	rig->group = rig_open(rig, "/dev/vfio/7");
	failed = false;
	fail_nth = nth;
	MUST(rig, set_container(rig, rig->group));
	MUST(rig, rig_ioctl(rig, rig->container, VFIO_SET_IOMMU, (void *)3UL));
	MUST(rig, rig_map(rig, 16 * MIB, memory, 16 * PAGE, RW));
	MUST(rig, rig_map(rig, 1ULL << 38, memory, 2 * PAGE, READ));
	MUST(rig, get_info(rig));
	MUST(rig, set_container(rig, other.group));
	MUST(rig, rig_map(rig, GIB, memory, 4 * PAGE, RW));
	MUST(rig, unmap_all(rig, VFIO_DMA_UNMAP_FLAG_VADDR));
	MUST(rig, dmamap_soft_process(rig->system, 1));
	/* Without memory the address stays the old one, which is no failure. */
	MUST(rig, rig_map(rig, 16 * MIB, memory, 16 * PAGE, VFIO_DMA_MAP_FLAG_VADDR));
	MUST(rig, rig_map(rig, GIB, memory + 4 * PAGE, 4 * PAGE, VFIO_DMA_MAP_FLAG_VADDR));
	assert_int_equal(rig_counters(rig).areas, 3);
	MUST(rig, rig_ioctl(rig, other.group, VFIO_GROUP_UNSET_CONTAINER, NULL));
	MUST(rig, unmap_all(rig, 0));
	fail_nth = 0;
	dmamap_soft_process(rig->system, 0);
	for (unsigned process = 0; process < 2; process++) {
		dmamap_soft_charged(rig->system, process, &charge);
		assert_int_equal(charge.locked, 0);
	}
	rig_close(rig, &other.group);
}

static void each_allocation(void **state)
{
	unsigned nth = 0;

	(void)state;
	do {
		struct rig rig;
		char *memory;

		start(&rig);
		memory = make_memory(&rig);
		use(&rig, memory, ++nth);
		rig_stop(&rig);
		munmap(memory, 16 * PAGE);
	} while (failed);
	/* The calls above allocate some twenty times. */
	assert_true(nth > 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
