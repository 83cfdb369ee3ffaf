/* SPDX-License-Identifier: MIT */
/*
 * A mapping's address is taken back and given anew (UNMAP and MAP with VADDR):
 * it keeps its pages meanwhile. Sources: vfio_dma_do_unmap(), vfio_dma_do_map()
 * and vfio_change_dma_owner() in drivers/vfio/vfio_iommu_type1.c.
 */
#include "tests/soft/rig.h"

#define VADDR	  VFIO_DMA_UNMAP_FLAG_VADDR
#define MAP_VADDR VFIO_DMA_MAP_FLAG_VADDR

static char *memory;

static int start_type(void **state, unsigned long type)
{
	static struct rig rig;

	memory = rig_memory(MIB, true);
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", type);
	*state = &rig;
	return 0;
}

static int start(void **state)
{
	return start_type(state, VFIO_TYPE1v2_IOMMU);
}

static int start_v1(void **state)
{
	return start_type(state, VFIO_TYPE1_IOMMU);
}

static int stop(void **state)
{
	rig_stop(*state);
	return 0;
}

static int invalidate(struct rig *rig, uint64_t iova, uint64_t *size)
{
	return rig_unmap(rig, iova, size, VADDR);
}

/* Both sides' refusals, as a real Linux 7.3 gives them. */
static void sequence(void **state)
{
	struct rig *rig = *state;
	uint64_t size = 4 * PAGE;

	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	assert_gives(rig, rig_map(rig, 2 * MIB, memory, PAGE, MAP_VADDR), ENOENT, "vaddr_nothing");
	assert_gives(rig, rig_map(rig, MIB, memory, 4 * PAGE, MAP_VADDR), EINVAL, "vaddr_valid");
	assert_int_equal(invalidate(rig, MIB, &size), 0);
	assert_int_equal(size, 4 * PAGE);
	assert_gives(rig, invalidate(rig, MIB, &size), EINVAL, "vaddr_invalid");
	assert_int_equal(size, 4 * PAGE);
	/* Not the whole mapping, or more than it. */
	assert_gives(rig, rig_map(rig, MIB, memory, 3 * PAGE, MAP_VADDR), EINVAL, "vaddr_inexact");
	assert_gives(rig, rig_map(rig, MIB + PAGE, memory, 3 * PAGE, MAP_VADDR), EINVAL,
		"vaddr_inexact");
	assert_gives(rig, rig_map(rig, MIB, memory, 5 * PAGE, MAP_VADDR), EINVAL, "vaddr_inexact");
	assert_gives(rig, rig_map(rig, MIB, memory + 1, 4 * PAGE, MAP_VADDR), EINVAL, "misaligned");
	/* It is mapped as ever. */
	assert_gives(rig, rig_map(rig, MIB, memory, 4 * PAGE, RW), EEXIST, "overlap");
	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, MAP_VADDR), 0);
	assert_gives(rig, rig_map(rig, MIB, memory, 4 * PAGE, MAP_VADDR), EINVAL, "vaddr_valid");
	assert_int_equal(rig_counters(rig).areas, 1);
}

/* Several at once; one that is invalid already leaves all as they were. */
static void all_or_none(void **state)
{
	struct rig *rig = *state;
	uint64_t size = PAGE;

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(rig_map(rig, i * 2 * PAGE, memory, PAGE, RW), 0);
	assert_int_equal(invalidate(rig, 4 * PAGE, &size), 0);
	size = 7 * PAGE;
	assert_gives(rig, invalidate(rig, 0, &size), EINVAL, "vaddr_invalid");
	assert_gives(rig, rig_map(rig, 0, memory, PAGE, MAP_VADDR), EINVAL, "vaddr_valid");
	assert_gives(rig, rig_map(rig, 2 * PAGE, memory, PAGE, MAP_VADDR), EINVAL, "vaddr_valid");
	assert_gives(rig, rig_map(rig, 6 * PAGE, memory, PAGE, MAP_VADDR), EINVAL, "vaddr_valid");
	assert_int_equal(rig_map(rig, 4 * PAGE, memory, PAGE, MAP_VADDR), 0);
	size = 0;
	assert_int_equal(rig_unmap(rig, 0, &size, VADDR | VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(size, 4 * PAGE);
	/* Nothing there is no error. */
	size = PAGE;
	assert_int_equal(invalidate(rig, MIB, &size), 0);
	assert_int_equal(size, 0);
}

/* v1: a range that starts inside a mapping takes nothing back, one that ends in it all. */
static void of_v1(void **state)
{
	struct rig *rig = *state;
	uint64_t size = PAGE;

	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, RW), 0);
	assert_int_equal(invalidate(rig, MIB + PAGE, &size), 0);
	assert_int_equal(size, 0);
	size = PAGE;
	assert_int_equal(invalidate(rig, MIB, &size), 0);
	assert_int_equal(size, 4 * PAGE);
	size = PAGE;
	assert_gives(rig, invalidate(rig, MIB, &size), EINVAL, "vaddr_invalid");
	assert_int_equal(rig_map(rig, MIB, memory, 4 * PAGE, MAP_VADDR), 0);
}

/* Devices reach the pages all the time, in the end at the new address. */
static void devices_go_on(void **state)
{
	struct rig *rig = *state;
	int fd = memfd_create("vaddr", 0);
	struct dmamap_access *access;
	char *first, *second, bytes[8];

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	first = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	strcpy(first + PAGE, "first");
	assert_int_equal(rig_map(rig, MIB, first, 4 * PAGE, RW), 0);
	assert_int_equal(dmamap_soft_access(rig->system, rig->device, &access), 0);
	assert_int_equal(invalidate(rig, MIB, &(uint64_t){4 * PAGE}), 0);
	assert_int_equal(dmamap_read(access, MIB + PAGE, bytes, 6, NULL), 0);
	assert_string_equal(bytes, "first");
	second = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(rig_map(rig, MIB, second, 4 * PAGE, MAP_VADDR), 0);
	munmap(first, 4 * PAGE);
	assert_int_equal(dmamap_read(access, MIB + PAGE, bytes, 6, NULL), 0);
	assert_string_equal(bytes, "first");
	assert_int_equal(dmamap_write(access, MIB + 2 * PAGE, "second", 7, NULL), 0);
	assert_string_equal(second + 2 * PAGE, "second");
	/* Nobody looks at the new address: what is not there changes nothing. */
	assert_int_equal(invalidate(rig, MIB, &(uint64_t){4 * PAGE}), 0);
	assert_int_equal(rig_map(rig, MIB, (void *)PAGE, 4 * PAGE, MAP_VADDR), 0);
	assert_int_equal(dmamap_read(access, MIB + 2 * PAGE, bytes, 7, NULL), 0);
	assert_string_equal(bytes, "second");
	dmamap_access_destroy(access);
	close(fd);
}

/* An invalid mapping can be unmapped; then groups may join again, which is what is counted. */
static void unmapped_while_invalid(void **state)
{
	struct rig *rig = *state;
	uint64_t size = 0;

	assert_int_equal(rig_map(rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, MIB, memory, PAGE, RW), 0);
	assert_int_equal(rig_unmap(rig, 0, &size, VADDR | VFIO_DMA_UNMAP_FLAG_ALL), 0);
	size = PAGE;
	assert_int_equal(rig_unmap(rig, 0, &size, 0), 0);
	assert_int_equal(size, PAGE);
	assert_int_equal(rig_map(rig, 0, memory, PAGE, RW), 0);
	assert_int_equal(rig_map(rig, MIB, memory, PAGE, MAP_VADDR), 0);
	assert_int_equal(rig_counters(rig).areas, 2);
}

/* Charges: the process that gives the new address pays, if it may lock as much. */
static void another_process(void **state)
{
	struct rig *rig = *state;
	struct dmamap_soft_charge charge;
	uint64_t size = 0;

	assert_int_equal(rig_map(rig, 0, memory, 4 * PAGE, RW), 0);
	assert_int_equal(rig_map(rig, MIB, memory, PAGE, RW), 0);
	assert_int_equal(rig_unmap(rig, 0, &size, VADDR | VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(dmamap_soft_charged(rig->system, 0, &charge), 0);
	assert_int_equal(charge.locked, 5 * PAGE);
	assert_int_equal(dmamap_soft_process(rig->system, 1), 0);
	assert_int_equal(rig_map(rig, 0, memory + 8 * PAGE, 4 * PAGE, MAP_VADDR), 0);
	dmamap_soft_charged(rig->system, 0, &charge);
	assert_int_equal(charge.locked, PAGE);
	dmamap_soft_charged(rig->system, 1, &charge);
	assert_int_equal(charge.locked, 4 * PAGE);
	/* Unmapped by whomever: it is given back to who paid. */
	assert_int_equal(dmamap_soft_process(rig->system, 0), 0);
	size = 0;
	assert_int_equal(rig_unmap(rig, 0, &size, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	for (unsigned process = 0; process < 3; process++) {
		dmamap_soft_charged(rig->system, process, &charge);
		assert_int_equal(charge.locked, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sequence, start, stop),
		cmocka_unit_test_setup_teardown(all_or_none, start, stop),
		cmocka_unit_test_setup_teardown(of_v1, start_v1, stop),
		cmocka_unit_test_setup_teardown(devices_go_on, start, stop),
		cmocka_unit_test_setup_teardown(unmapped_while_invalid, start, stop),
		cmocka_unit_test_setup_teardown(another_process, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
