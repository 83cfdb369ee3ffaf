/* SPDX-License-Identifier: MIT */
/*
 * Any call from any thread: mapping and unmapping in one container and one
 * IOAS, files opened and closed, BARs mapped and unmapped, while a device does
 * DMA. What each thread did alone is what is there at the end.
 */
#include "tests/soft/rig.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS	300

struct worker {
	struct rig *rig;
	unsigned number;
	char *memory;
	bool native;
	unsigned failures;
};

static int map_one(struct worker *worker, uint64_t iova)
{
	return worker->native ? rig_ioas_map(worker->rig, iova, worker->memory, 4 * PAGE, RW)
			      : rig_map(worker->rig, iova, worker->memory, 4 * PAGE, RW);
}

static int unmap_one(struct worker *worker, uint64_t iova, uint64_t *size)
{
	return worker->native ? rig_ioas_unmap(worker->rig, iova, size)
			      : rig_unmap(worker->rig, iova, size, 0);
}

/* Each thread has a GiB of its own; one of its ranges it fights for with the others. */
static void *map_and_unmap(void *argument)
{
	struct worker *worker = argument;
	uint64_t base = (worker->number + 1) * GIB;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t iova = base + i % 16 * MIB, size = 4 * PAGE;
		int error;

		worker->failures += map_one(worker, iova) != 0;
		worker->failures += map_one(worker, iova) != -EEXIST;
		worker->failures += strcmp(rig_reason(worker->rig), "overlap") != 0;
		error = map_one(worker, 0);
		worker->failures += error && error != -EEXIST;
		if (!error)
			worker->failures += unmap_one(worker, 0, &size) || size != 4 * PAGE;
		size = 4 * PAGE;
		worker->failures += unmap_one(worker, iova, &size) || size != 4 * PAGE;
	}
	return NULL;
}

/* Descriptors and BAR mappings come and go beside it. */
static void *open_and_close(void *argument)
{
	struct worker *worker = argument;
	struct dmamap_system *system = worker->rig->system;

	for (unsigned i = 0; i < ROUNDS; i++) {
		int fd = system->ops->open(system, i & 1 ? "/dev/iommu" : "/dev/vfio/vfio", 0);
		struct dmamap_counters counters;
		void *va;

		worker->failures += fd < 0 || system->ops->close(system, fd);
		worker->failures += system->ops->mmap(system, NULL, MIB, PROT_READ, MAP_SHARED,
					    worker->rig->device, 0, &va) != 0;
		worker->failures += system->ops->munmap(system, va, MIB) != 0;
		worker->failures += system->ops->counters(system, &counters) != 0;
	}
	return NULL;
}

static void *do_dma(void *argument)
{
	struct worker *worker = argument;
	struct dmamap_access *access;
	uint64_t value = 0;

	if (dmamap_soft_access(worker->rig->system, worker->rig->device, &access)) {
		worker->failures++;
		return NULL;
	}
	for (unsigned i = 0; i < 20 * ROUNDS; i++) {
		/* Mapped or not, it is the thread's memory or a fault. */
		int error = dmamap_read(access, GIB + i % 16 * MIB, &value, sizeof(value), NULL);

		worker->failures += error && error != -EFAULT;
		worker->failures += !error && value != 0x5a5a5a5a5a5a5a5a;
	}
	dmamap_access_destroy(access);
	return NULL;
}

static void run(struct rig *rig, bool native)
{
	struct worker workers[THREADS + 2];
	pthread_t threads[THREADS + 2];

	for (unsigned i = 0; i < THREADS + 2; i++) {
		workers[i] = (struct worker){rig, i, rig_memory(4 * PAGE, true), native, 0};
		assert_int_equal(pthread_create(&threads[i], NULL,
					 i < THREADS	? map_and_unmap
					 : i == THREADS ? open_and_close
							: do_dma,
					 &workers[i]),
			0);
	}
	for (unsigned i = 0; i < THREADS + 2; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].failures, 0);
	}
	assert_int_equal(rig_counters(rig).areas, 0);
	assert_int_equal(rig_counters(rig).maps, rig_counters(rig).unmaps);
}

static void container(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_group(&rig, "/dev/vfio/vfio", VFIO_TYPE1v2_IOMMU);
	run(&rig, false);
	rig_stop(&rig);
}

static void ioas(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	rig_cdev(&rig, true);
	run(&rig, true);
	rig_stop(&rig);
}

/* One thread's reason is not another's. */
static void *fail_otherwise(void *argument)
{
	struct rig *rig = argument;

	rig_ioctl(rig, -5, 0, NULL);
	return NULL;
}

static void reasons(void **state)
{
	pthread_t thread;
	struct rig rig;

	(void)state;
	rig_start(&rig, NULL);
	assert_gives(&rig, rig_open(&rig, "/nowhere"), ENOENT, "no_file");
	assert_int_equal(pthread_create(&thread, NULL, fail_otherwise, &rig), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(rig_reason(&rig), "no_file");
	rig.container = rig_open(&rig, "/dev/iommu");
	assert_string_equal(rig_reason(&rig), "");
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(container),
		cmocka_unit_test(ioas),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
