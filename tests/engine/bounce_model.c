/* SPDX-License-Identifier: MIT */
/*
 * The bounce domain against a flat model: random calls of all kinds, with
 * allocations that fail at random and a device that writes anywhere. The model
 * has an array for the file's bounce buffer and one for umem, a list of
 * mappings, and the buffers as they must be. After each call that moves bytes
 * the arrays are compared with what a device sees, every byte of it.
 */
#include <errno.h>

#include "engine/iova_units.h"
#include "tests/engine/bounce.h"

#define MAPPINGS  96u
#define COHERENTS 8u

struct shape {
	const char *name;
	struct dmamap_bounce_config config;
	unsigned steps;
};

static const struct shape shapes[] = {
	{"4K", {.bounce_size = 128 * KIB}, 1500},
	{"4K kept", {.bounce_size = 128 * KIB, .keep_stale = true}, 1500},
	{"16K pages", {.page_shift = 14, .bounce_size = 256 * KIB, .magazine = 2}, 2000},
	{"16K units", {.page_shift = 14, .unit_shift = 14, .bounce_size = 256 * KIB}, 2000},
	{"64K pages", {.page_shift = 16, .bounce_size = 512 * KIB, .magazine = 3}, 1500},
	{"64K pages kept",
		{.page_shift = 16, .bounce_size = 512 * KIB, .caches = 1, .keep_stale = true},
		1500},
	{"64K units", {.page_shift = 16, .unit_shift = 16, .bounce_size = 512 * KIB}, 1500},
	{"no power of two", {.bounce_size = 172 * KIB, .magazine = 1}, 2000},
};

struct mapping {
	uint64_t iova, size;
	unsigned prot;
	unsigned char *buffer; /* the driver's */
	unsigned char *wanted; /* what must be in it */
};

struct coherent {
	uint64_t iova, size;
	unsigned char *address;
	unsigned char fill;
};

struct world {
	struct random *random;
	struct dmamap_bounce *bounce;
	struct dmamap_bounce_info info;
	bool scrub;
	unsigned char *device;	   /* the file, as the device maps it */
	unsigned char *umem;	   /* the device's own memory */
	unsigned char *model_file; /* what must be in either */
	unsigned char *model_umem;
	bool in_umem, announced;
	struct mapping mapping[MAPPINGS];
	unsigned mappings;
	struct coherent coherent[COHERENTS];
	unsigned coherents;
	struct dmamap_bounce_counters counts; /* as far as the model has them */
	unsigned faults;
};

static unsigned char *model_base(struct world *world)
{
	return world->in_umem ? world->model_umem : world->model_file;
}

static uint64_t units_of(const struct world *world, uint64_t size)
{
	return (size + world->info.unit_size - 1) / world->info.unit_size;
}

/* Which units are taken, what rounding adds included; which ones mappings reach. */
static void units_in_use(const struct world *world, bool *taken, bool *reached)
{
	uint64_t units = world->info.bounce_size / world->info.unit_size;

	memset(taken, 0, units);
	memset(reached, 0, units);
	for (unsigned i = 0; i < world->mappings; i++) {
		const struct mapping *mapping = &world->mapping[i];
		uint64_t first = mapping->iova / world->info.unit_size;
		uint64_t n = units_of(world, mapping->size);

		for (uint64_t u = first; u < first + iova_rounded(n); u++) {
			assert_true(u > 0 && u < units);
			assert_false(taken[u]); /* no two mappings meet */
			taken[u] = true;
			reached[u] = u < first + n;
		}
	}
}

static bool room_for(const struct world *world, uint64_t size)
{
	static bool taken[256], reached[256];
	uint64_t units = world->info.bounce_size / world->info.unit_size;
	uint64_t n = iova_rounded(units_of(world, size)), align = 1;

	units_in_use(world, taken, reached);
	while (align < n)
		align *= 2;
	for (uint64_t first = align; first + n <= units; first += align) {
		bool room = true;

		for (uint64_t u = first; u < first + n; u++)
			room = room && !taken[u];
		if (room)
			return true;
	}
	return false;
}

/* All that the device and the drivers see is as the model has it. */
static void compare(struct world *world)
{
	uint64_t size = world->info.bounce_size;
	uint64_t per_page = world->info.page_size / world->info.unit_size, live_pages = 0;
	static bool taken[256], reached[256];
	struct dmamap_bounce_counters now = count(world->bounce);

	assert_memory_equal(world->device, world->model_file, size);
	assert_memory_equal(world->umem, world->model_umem, size);
	for (unsigned i = 0; i < world->mappings; i++)
		assert_memory_equal(
			world->mapping[i].buffer, world->mapping[i].wanted, world->mapping[i].size);
	for (unsigned i = 0; i < world->coherents; i++)
		assert_true(all(world->device + world->coherent[i].iova, world->coherent[i].fill,
			world->coherent[i].size));
	units_in_use(world, taken, reached);
	world->counts.live_units = 0;
	for (uint64_t u = 0; u < size / world->info.unit_size; u++)
		world->counts.live_units += taken[u];
	for (uint64_t u = 0; u < size / world->info.unit_size; u += per_page) {
		bool live = false;

		for (uint64_t i = u; i < u + per_page; i++)
			live = live || reached[i];
		live_pages += live;
	}
	assert_int_equal(now.live_units, world->counts.live_units);
	assert_int_equal(now.live_pages, live_pages);
	assert_true(now.pages >= live_pages && now.pages <= size / world->info.page_size);
	assert_int_equal(now.to_device, world->counts.to_device);
	assert_int_equal(now.from_device, world->counts.from_device);
	assert_int_equal(now.full, world->counts.full);
	assert_int_equal(now.too_large, world->counts.too_large);
	assert_int_equal(now.no_memory, world->counts.no_memory);
}

/* --------------------------------------------------------------- the calls */

static void do_map(struct world *world)
{
	struct random *random = world->random;
	struct mapping mapping = {.prot = 1 + (unsigned)random_below(random, 3)};
	unsigned flags = random_below(random, 8) ? 0 : DMAMAP_BOUNCE_SKIP_SYNC;
	int fault = random_below(random, 8) ? 0 : 1;
	int rc;

	if (world->mappings == MAPPINGS)
		return;
	mapping.size =
		1 + random_below(random,
			    random_below(random, 4) ? 6000 : world->info.bounce_size * 9 / 16);
	mapping.buffer = malloc(mapping.size);
	mapping.wanted = malloc(mapping.size);
	assert_true(mapping.buffer && mapping.wanted);
	for (uint64_t i = 0; i < mapping.size; i++)
		mapping.buffer[i] = (unsigned char)random_next(random);
	memcpy(mapping.wanted, mapping.buffer, mapping.size);
	engine_fail_nth = fault;
	rc = dmamap_bounce_map(world->bounce, mapping.buffer, mapping.size, mapping.prot, flags,
		&mapping.iova, &why);
	fault = fault && !engine_fail_nth;
	engine_fail_nth = 0;
	if (rc)
		assert_int_equal(why.error, -rc);
	if (units_of(world, mapping.size) * world->info.unit_size > world->info.largest) {
		assert_int_equal(rc, -E2BIG);
		world->counts.too_large++;
	} else if (!room_for(world, mapping.size)) {
		assert_int_equal(rc, -ENOSPC);
		world->counts.full++;
	} else {
		world->announced = true;
		assert_int_equal(rc, fault ? -ENOMEM : 0);
		world->counts.no_memory += fault;
		world->faults += fault;
	}
	if (rc) {
		free(mapping.buffer);
		free(mapping.wanted);
		return;
	}
	if (mapping.prot & DMAMAP_READ && !flags) {
		memcpy(model_base(world) + mapping.iova, mapping.wanted, mapping.size);
		world->counts.to_device += mapping.size;
	}
	world->mapping[world->mappings++] = mapping;
}

static void do_unmap(struct world *world)
{
	unsigned which = (unsigned)random_below(world->random, world->mappings + 1);
	unsigned flags = random_below(world->random, 8) ? 0 : DMAMAP_BOUNCE_SKIP_SYNC;
	struct mapping mapping = world->mapping[which];

	if (which == world->mappings)
		return;
	/* The unmap's magazine may find no memory: nobody is to notice. */
	engine_fail_nth = random_below(world->random, 4) ? 0 : 1;
	assert_int_equal(
		dmamap_bounce_unmap(world->bounce, mapping.iova, mapping.size, flags, &why), 0);
	engine_fail_nth = 0;
	if (mapping.prot & DMAMAP_WRITE && !flags) {
		memcpy(mapping.wanted, model_base(world) + mapping.iova, mapping.size);
		world->counts.from_device += mapping.size;
	}
	assert_memory_equal(mapping.buffer, mapping.wanted, mapping.size);
	if (world->scrub)
		memset(model_base(world) + mapping.iova, 0, mapping.size);
	free(mapping.buffer);
	free(mapping.wanted);
	world->mapping[which] = world->mapping[--world->mappings];
}

static void do_sync(struct world *world)
{
	struct random *random = world->random;
	struct mapping *mapping = &world->mapping[random_below(random, world->mappings + 1)];
	bool for_device = random_below(random, 2);
	uint64_t at, size;
	int rc;

	if (mapping == &world->mapping[world->mappings])
		return;
	at = random_below(random, mapping->size);
	size = 1 + random_below(random, mapping->size - at + (random_below(random, 8) == 0));
	for (uint64_t i = 0; i < mapping->size && for_device; i++)
		mapping->buffer[i] = mapping->wanted[i] = (unsigned char)random_next(random);
	if (for_device)
		rc = dmamap_bounce_sync_for_device(world->bounce, mapping->iova + at, size, &why);
	else
		rc = dmamap_bounce_sync_for_cpu(world->bounce, mapping->iova + at, size, &why);
	assert_int_equal(rc, size > mapping->size - at ? -EINVAL : 0);
	if (rc)
		return;
	if (for_device && mapping->prot & DMAMAP_READ) {
		memcpy(model_base(world) + mapping->iova + at, mapping->wanted + at, size);
		world->counts.to_device += size;
	} else if (!for_device && mapping->prot & DMAMAP_WRITE) {
		memcpy(mapping->wanted + at, model_base(world) + mapping->iova + at, size);
		world->counts.from_device += size;
	}
}

/* What is no mapping: each of these is refused, and changes nothing. */
static void do_wrong(struct world *world)
{
	struct random *random = world->random;
	uint64_t iova = random_below(random, world->info.bounce_size);
	uint64_t size = 1 + random_below(random, 9000);

	if (random_below(random, 2) && world->mappings) {
		const struct mapping *mapping =
			&world->mapping[random_below(random, world->mappings)];

		iova = mapping->iova + random_below(random, 2) * world->info.unit_size;
		size = mapping->size + random_below(random, 2);
	}
	for (unsigned i = 0; i < world->mappings; i++)
		if (world->mapping[i].iova == iova && world->mapping[i].size == size)
			return;
	assert_refused(dmamap_bounce_unmap(world->bounce, iova, size, 0, &why), &why, EINVAL,
		&dmamap_reason_bounce_not_mapped);
}

static void do_device(struct world *world)
{
	uint64_t at = random_below(world->random, world->info.bounce_size - 100);
	unsigned char byte = (unsigned char)random_next(world->random);
	bool umem = random_below(world->random, 2);

	/* In what is the bounce buffer now, and at times in what is not. */
	memset((umem ? world->umem : world->device) + at, byte, 100);
	memset((umem ? world->model_umem : world->model_file) + at, byte, 100);
}

static void do_umem(struct world *world)
{
	uint64_t page = world->info.page_size, unit = world->info.unit_size;
	static bool taken[256], reached[256];
	unsigned char *from = model_base(world);
	unsigned char *to = world->in_umem ? world->model_file : world->model_umem;
	int rc;

	if (world->in_umem)
		rc = dmamap_bounce_umem_remove(world->bounce, &why);
	else
		rc = dmamap_bounce_umem_add(
			world->bounce, world->umem, world->info.bounce_size, &why);
	assert_int_equal(rc, world->in_umem || world->announced ? 0 : -EINVAL);
	if (rc)
		return;
	units_in_use(world, taken, reached);
	for (uint64_t at = 0; at < world->info.bounce_size; at += page) {
		bool live = false;

		for (uint64_t u = at / unit; u < (at + page) / unit; u++)
			live = live || reached[u];
		if (!live)
			continue;
		memcpy(to + at, from + at, page);
		for (uint64_t u = at / unit; u < (at + page) / unit && world->scrub; u++)
			if (!world->in_umem || reached[u])
				memset(from + u * unit, 0, unit);
	}
	world->in_umem = !world->in_umem;
}

static void do_coherent(struct world *world)
{
	struct random *random = world->random;
	unsigned which = (unsigned)random_below(random, COHERENTS);
	struct coherent *coherent = &world->coherent[which];
	struct dmamap_iotlb_entry entry;

	if (which < world->coherents) {
		assert_int_equal(dmamap_bounce_coherent_free(
					 world->bounce, coherent->iova, coherent->size, &why),
			0);
		assert_true(all(world->device + coherent->iova, world->scrub ? 0 : coherent->fill,
			coherent->size));
		*coherent = world->coherent[--world->coherents];
		return;
	}
	coherent = &world->coherent[world->coherents];
	coherent->size = 1 + random_below(random, 20000);
	engine_fail_nth = random_below(random, 4) ? 0 : 1;
	if (dmamap_bounce_coherent_alloc(world->bounce, coherent->size, &coherent->iova,
		    (void **)&coherent->address, &why)) {
		assert_int_equal(why.error, ENOMEM);
		assert_int_equal(engine_fail_nth, 0);
		world->faults++;
		return;
	}
	engine_fail_nth = 0;
	assert_int_equal(coherent->iova % world->info.page_size, 0);
	assert_true(coherent->iova >= world->info.coherent.first);
	assert_true(coherent->iova + coherent->size - 1 <= world->info.coherent.last);
	assert_true(
		dmamap_bounce_iotlb_find(world->bounce, coherent->iova, coherent->iova, &entry));
	assert_int_equal(entry.first, coherent->iova);
	assert_int_equal(entry.last, coherent->iova + coherent->size - 1);
	assert_true(all(coherent->address, 0, coherent->size));
	coherent->fill = (unsigned char)random_next(random);
	memset(coherent->address, coherent->fill, coherent->size);
	world->coherents++;
}

static void do_reset(struct world *world)
{
	struct dmamap_iotlb_entry entry;

	dmamap_bounce_reset(world->bounce);
	world->announced = false;
	assert_false(
		dmamap_bounce_iotlb_find(world->bounce, 0, world->info.bounce_size - 1, &entry));
}

/* ----------------------------------------------------------------- the run */

static const struct {
	void (*call)(struct world *world);
	unsigned weight;
} calls[] = {
	{do_map, 12},
	{do_unmap, 10},
	{do_sync, 6},
	{do_wrong, 2},
	{do_device, 4},
	{do_umem, 2},
	{do_coherent, 2},
	{do_reset, 1},
};

static void run(const struct shape *shape, struct random *random)
{
	struct world world = {.random = random, .scrub = !shape->config.keep_stale};
	uint64_t size;

	world.bounce = make(&shape->config);
	dmamap_bounce_info(world.bounce, &world.info);
	size = world.info.bounce_size;
	world.device = device_of(world.bounce);
	world.umem = aligned_alloc(64 * KIB, 512 * KIB);
	world.model_file = calloc(1, size);
	world.model_umem = calloc(1, size);
	assert_true(world.umem && world.model_file && world.model_umem);
	memset(world.umem, 0, size);
	for (unsigned step = 0; step < shape->steps; step++) {
		uint64_t pick = random_below(random, 39);
		unsigned which = 0;

		/* Runs full, and at times empty. */
		if (step % 1024 > 960)
			do_unmap(&world);
		for (; pick >= calls[which].weight; which++)
			pick -= calls[which].weight;
		calls[which].call(&world);
		if (step % 4 == 0)
			compare(&world);
	}
	while (world.mappings)
		do_unmap(&world);
	compare(&world);
	assert_true(world.counts.full && world.counts.too_large && world.faults);
	dmamap_bounce_destroy(world.bounce);
	device_gone(world.device);
	free(world.umem);
	free(world.model_file);
	free(world.model_umem);
}

static void random_calls(void **state)
{
	struct random random = random_start("model");

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		printf("%s\n", shapes[i].name);
		run(&shapes[i], &random);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_calls)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
