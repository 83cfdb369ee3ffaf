/* SPDX-License-Identifier: MIT */
/*
 * The bounce domain's streaming rules, one test each: sizes, directions, what
 * is refused, and failures. "7.3" is Linux 7.3.4,
 * drivers/vdpa/vdpa_user/iova_domain.c. The device is a mapping of the domain's
 * file, as a device in another process has it.
 */
#include <errno.h>

#include "tests/engine/bounce.h"

#define NATIVE	 16, 16 /* 64 KiB pages, and units as large */
#define FIXED_4K 16, 12

/* ------------------------------------------------------------------ sizes */

/* Maps until nothing fits; returns how many did. */
static unsigned fill(struct dmamap_bounce *bounce, uint64_t size)
{
	static char buffer[64 * KIB];
	uint64_t iova;
	unsigned n = 0;

	/* Without a copy: only the units count. */
	while (!dmamap_bounce_map(
		bounce, buffer, size, DMAMAP_READ, DMAMAP_BOUNCE_SKIP_SYNC, &iova, &why))
		n++;
	return n;
}

static unsigned fit(unsigned page_shift, unsigned unit_shift, uint64_t size)
{
	struct dmamap_bounce *bounce = make(
		&(struct dmamap_bounce_config){.page_shift = page_shift, .unit_shift = unit_shift});
	unsigned n = fill(bounce, size);

	assert_ptr_equal(why.kind, &dmamap_reason_bounce_full);
	assert_int_equal(why.error, ENOSPC);
	assert_int_equal(count(bounce).live_units, n);
	assert_int_equal(count(bounce).full, 1);
	assert_int_equal(count(bounce).flushes, 1);
	dmamap_bounce_destroy(bounce);
	return n;
}

/* Commit 3fc3068e7247: 64 KiB pages, 64 MiB, requests of 4 KiB held open. Unit 0 is wasted. */
static void fixed_units_hold_sixteen_times_as_much(void **state)
{
	(void)state;
	assert_int_equal(fit(NATIVE, 4 * KIB), 1023);
	assert_int_equal(fit(FIXED_4K, 4 * KIB), 16383);
	assert_int_equal(fit(14, 14, 4 * KIB), 4095);
	assert_int_equal(fit(12, 12, 4 * KIB), 16383);
}

/* A virtio-blk request of 512 bytes with an indirect table: all or nothing. */
static bool map_request(struct dmamap_bounce *bounce, char *memory)
{
	static const struct {
		uint64_t size;
		unsigned prot;
	} parts[] = {{16, DMAMAP_READ}, {512, DMAMAP_READ}, {1, DMAMAP_WRITE}, {48, DMAMAP_READ}};
	uint64_t iova[4];

	for (unsigned i = 0; i < 4; i++) {
		if (!dmamap_bounce_map(bounce, memory, parts[i].size, parts[i].prot,
			    DMAMAP_BOUNCE_SKIP_SYNC, &iova[i], &why))
			continue;
		while (i--)
			unmap(bounce, iova[i], parts[i].size);
		return false;
	}
	return true;
}

/* facts of VDUSE: 4 units a request; 255 requests at 64 KiB units, 4,095 at 4 KiB. */
static void a_block_request_takes_four_units(void **state)
{
	static const struct {
		unsigned unit_shift, requests;
	} rows[] = {{16, 255}, {12, 4095}};
	static char memory[512];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct dmamap_bounce *bounce = make(&(struct dmamap_bounce_config){
			.page_shift = 16, .unit_shift = rows[i].unit_shift});
		unsigned n = 0;

		while (map_request(bounce, memory))
			n++;
		assert_int_equal(n, rows[i].requests);
		assert_int_equal(count(bounce).live_units, 4 * n);
		dmamap_bounce_destroy(bounce);
	}
}

/* Sixteen units of 4 KiB share a page of 64 KiB, allocated with the first of them. */
static void units_share_a_page(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	static char buffer[16];
	uint64_t iova[17];

	(void)state;
	for (unsigned i = 0; i < 17; i++) {
		iova[i] = map(bounce, buffer, sizeof(buffer), DMAMAP_READ);
		assert_int_equal(iova[i] % (4 * KIB), 0);
		if (i)
			assert_int_equal(iova[i], iova[i - 1] - 4 * KIB); /* top down */
		assert_int_equal(count(bounce).pages, i < 16 ? 1 : 2);
	}
	assert_int_equal(iova[0], MIB - 4 * KIB);
	assert_int_equal(count(bounce).live_pages, 2);
	for (unsigned i = 0; i < 17; i++)
		unmap(bounce, iova[i], sizeof(buffer));
	assert_int_equal(count(bounce).live_units, 0);
	assert_int_equal(count(bounce).live_pages, 0);
	assert_int_equal(count(bounce).pages, 2); /* kept (7.3) */
	dmamap_bounce_destroy(bounce);
}

/* iova.c of 7.3: places are aligned to the size, and sizes below 32 units to a power of two. */
static void places_are_aligned(void **state)
{
	static const struct {
		uint64_t size, align, takes; /* in units */
	} rows[] = {{1, 1, 1}, {2, 2, 2}, {3, 4, 4}, {5, 8, 8}, {17, 32, 32}, {32, 32, 32},
		{33, 64, 33}, {100, 128, 100}};
	struct dmamap_bounce *bounce = make(NULL);
	static char buffer[100 * 4096];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t before = count(bounce).live_units;
		uint64_t iova = map(bounce, buffer, rows[i].size * 4 * KIB, DMAMAP_READ);

		assert_int_equal(iova % (rows[i].align * 4 * KIB), 0);
		assert_int_equal(count(bounce).live_units - before, rows[i].takes);
		unmap(bounce, iova, rows[i].size * 4 * KIB);
		assert_int_equal(count(bounce).live_units, before);
	}
	dmamap_bounce_destroy(bounce);
}

/* Reports on swiotlb: a pool that is full is one thing, a request that never fits another. */
static void full_is_not_too_large(void **state)
{
	struct dmamap_bounce *bounce = make(&(struct dmamap_bounce_config){.bounce_size = MIB});
	struct dmamap_bounce_info info;
	static char buffer[MIB];
	uint64_t iova;

	(void)state;
	dmamap_bounce_info(bounce, &info);
	assert_int_equal(info.units, 255);
	assert_int_equal(info.largest, 512 * KIB);
	assert_refused(dmamap_bounce_map(bounce, buffer, 512 * KIB + 1, 3, 0, &iova, &why), &why,
		E2BIG, &dmamap_reason_bounce_too_large);
	assert_says("524289 bytes are more than 512 KiB, the largest mapping that a bounce buffer "
		    "of 1 MiB has room for (its place is aligned to its size)");
	assert_int_equal(map(bounce, buffer, 512 * KIB, DMAMAP_READ), 512 * KIB);
	map(bounce, buffer, 4 * KIB, DMAMAP_READ);
	assert_refused(dmamap_bounce_map(bounce, buffer, 300 * KIB, 3, 0, &iova, &why), &why,
		ENOSPC, &dmamap_reason_bounce_full);
	assert_says("307200 bytes need 75 bounce units of 4 KiB: 129 of 255 are in use, and no "
		    "aligned run of 75 is free");
	assert_int_equal(count(bounce).too_large, 1);
	assert_int_equal(count(bounce).full, 1);
	assert_int_equal(count(bounce).no_memory, 0);
	dmamap_bounce_destroy(bounce);
}

static void configurations(void **state)
{
	static const struct {
		struct dmamap_bounce_config config;
		const char *what;
	} bad[] = {
		{{.page_shift = 13}, "the bounce domain's page_shift cannot be 13"},
		{{.page_shift = 64}, "the bounce domain's page_shift cannot be 64"},
		{{.page_shift = 16, .unit_shift = 14},
			"the bounce domain's unit_shift cannot be 14"},
		{{.bounce_size = 1152 * MIB},
			"the bounce domain's bounce_size cannot be 1207959552"},
		{{.iova_limit = 1ull << 36},
			"the bounce domain's iova_limit cannot be 68719476736"},
		{{.caches = 3}, "the bounce domain's caches cannot be 3"},
		{{.caches = 8192}, "the bounce domain's caches cannot be 8192"},
		{{.magazine = 65537}, "the bounce domain's magazine cannot be 65537"},
		{{.quirks = 4}, "the bounce domain's quirks cannot be 4"},
	};
	struct dmamap_bounce *bounce;
	uint64_t iova;
	void *address;
	char byte = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_refused(dmamap_bounce_create(&bad[i].config, &bounce, &why), &why, EINVAL,
			&dmamap_reason_bounce_config);
		assert_says(bad[i].what);
	}
	/* vduse_dev.c of 7.3: each of many address spaces gets a part, which may be nothing. */
	bounce = make(&(struct dmamap_bounce_config){.bounce_size = 1});
	assert_refused(dmamap_bounce_map(bounce, &byte, 1, 3, 0, &iova, &why), &why, E2BIG,
		&dmamap_reason_bounce_too_large);
	dmamap_bounce_destroy(bounce);
	bounce = make(&(struct dmamap_bounce_config){.bounce_size = 1152 * MIB - 2});
	assert_int_equal(dmamap_bounce_coherent_alloc(bounce, 1, &iova, &address, &why), -E2BIG);
	assert_ptr_equal(why.kind, &dmamap_reason_coherent_no_range);
	dmamap_bounce_destroy(bounce);
	dmamap_bounce_destroy(NULL);
}

/* -------------------------------------------------------------- directions */

static void bytes_go_where_the_direction_allows(void **state)
{
	(void)state;
	for (unsigned prot = DMAMAP_READ; prot <= (DMAMAP_READ | DMAMAP_WRITE); prot++) {
		struct dmamap_bounce *bounce = make_small(false);
		unsigned char *device = device_of(bounce);
		/* Unaligned, and longer than a unit. */
		unsigned char memory[6001], *buffer = memory + 1;
		const uint64_t size = 6000;
		uint64_t iova;
		struct dmamap_bounce_counters counters;

		memset(memory, 'd', sizeof(memory));
		iova = map(bounce, buffer, size, prot);
		assert_int_equal(iova % (8 * KIB), 0);
		/* Only what the device may read is there, and nothing beside it. */
		assert_true(all(device + iova, prot & DMAMAP_READ ? 'd' : 0, size));
		assert_true(all(device + iova + size, 0, 8 * KIB - size));
		memset(device + iova, 'v', size);
		unmap(bounce, iova, size);
		assert_true(all(buffer, prot & DMAMAP_WRITE ? 'v' : 'd', size));
		assert_int_equal(memory[0], 'd');
		/* All of it is gone. */
		assert_true(all(device, 0, MIB));
		counters = count(bounce);
		assert_int_equal(counters.to_device, prot & DMAMAP_READ ? size : 0);
		assert_int_equal(counters.from_device, prot & DMAMAP_WRITE ? size : 0);
		device_gone(device);
		dmamap_bounce_destroy(bounce);
	}
}

/* A sync copies a part, the way that the mapping allows (7.3, sync_single_for_*). */
static void syncs_copy_parts(void **state)
{
	(void)state;
	for (unsigned prot = DMAMAP_READ; prot <= (DMAMAP_READ | DMAMAP_WRITE); prot++) {
		struct dmamap_bounce *bounce = make_small(false);
		unsigned char *device = device_of(bounce);
		unsigned char buffer[10000];
		/* Begins in the second unit, ends in the third. */
		const uint64_t at = 5000, part = 4000;
		uint64_t iova;

		memset(buffer, 'd', sizeof(buffer));
		iova = map(bounce, buffer, sizeof(buffer), prot);
		memset(buffer, 'e', sizeof(buffer));
		assert_int_equal(dmamap_bounce_sync_for_device(bounce, iova + at, part, &why), 0);
		assert_true(all(device + iova, prot & DMAMAP_READ ? 'd' : 0, at));
		assert_true(all(device + iova + at, prot & DMAMAP_READ ? 'e' : 0, part));
		assert_true(all(device + iova + at + part, prot & DMAMAP_READ ? 'd' : 0,
			sizeof(buffer) - at - part));
		memset(device + iova, 'v', sizeof(buffer));
		assert_int_equal(dmamap_bounce_sync_for_cpu(bounce, iova + at, part, &why), 0);
		assert_true(all(buffer, 'e', at));
		assert_true(all(buffer + at, prot & DMAMAP_WRITE ? 'v' : 'e', part));
		assert_true(all(buffer + at + part, 'e', sizeof(buffer) - at - part));
		assert_int_equal(dmamap_bounce_unmap(bounce, iova, sizeof(buffer),
					 DMAMAP_BOUNCE_SKIP_SYNC, &why),
			0);
		assert_true(all(buffer, 'e', at)); /* nothing came back */
		assert_true(all(device, 0, MIB));
		assert_int_equal(
			count(bounce).to_device, prot & DMAMAP_READ ? sizeof(buffer) + part : 0);
		assert_int_equal(count(bounce).from_device, prot & DMAMAP_WRITE ? part : 0);
		device_gone(device);
		dmamap_bounce_destroy(bounce);
	}
}

/* DMA_ATTR_SKIP_CPU_SYNC: the device sees nothing until a sync. */
static void a_map_without_copy(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	unsigned char *device = device_of(bounce);
	unsigned char buffer[100];
	uint64_t iova;

	(void)state;
	memset(buffer, 'd', sizeof(buffer));
	assert_int_equal(dmamap_bounce_map(bounce, buffer, sizeof(buffer), DMAMAP_READ,
				 DMAMAP_BOUNCE_SKIP_SYNC, &iova, &why),
		0);
	assert_true(all(device, 0, MIB));
	assert_int_equal(dmamap_bounce_sync_for_device(bounce, iova, sizeof(buffer), &why), 0);
	assert_true(all(device + iova, 'd', sizeof(buffer)));
	unmap(bounce, iova, sizeof(buffer));
	assert_true(all(device, 0, MIB));
	device_gone(device);
	dmamap_bounce_destroy(bounce);
}

/* 7.3 keeps bytes after unmap, and gives a short write's rest to the next driver. */
static void stale_bytes_stay_where_they_are_kept(void **state)
{
	struct dmamap_bounce *bounce = make_small(true);
	unsigned char *device = device_of(bounce);
	unsigned char secret[512], other[512];
	uint64_t iova;

	(void)state;
	memset(secret, 's', sizeof(secret));
	memset(other, 'o', sizeof(other));
	iova = map(bounce, secret, sizeof(secret), DMAMAP_READ);
	unmap(bounce, iova, sizeof(secret));
	assert_true(all(device + iova, 's', sizeof(secret)));
	assert_int_equal(map(bounce, other, sizeof(other), DMAMAP_WRITE), iova);
	device[iova] = 'v';
	unmap(bounce, iova, sizeof(other));
	assert_int_equal(other[0], 'v');
	assert_true(all(other + 1, 's', sizeof(other) - 1));
	device_gone(device);
	dmamap_bounce_destroy(bounce);
}

static void what_is_not_mapped_is_refused(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	static char buffer[12 * KIB];
	uint64_t iova, none;

	(void)state;
	assert_refused(dmamap_bounce_map(bounce, buffer, 0, 3, 0, &none, &why), &why, EINVAL,
		&dmamap_reason_bounce_request);
	assert_refused(dmamap_bounce_map(bounce, buffer, 1, 0, 0, &none, &why), &why, EINVAL,
		&dmamap_reason_bounce_request);
	assert_refused(dmamap_bounce_map(bounce, buffer, 1, 4, 0, &none, &why), &why, EINVAL,
		&dmamap_reason_bounce_request);
	assert_refused(dmamap_bounce_map(bounce, buffer, 1, 3, 2, &none, &why), &why, EINVAL,
		&dmamap_reason_bounce_request);
	assert_refused(dmamap_bounce_map(bounce, buffer, UINT64_MAX, 3, 0, &none, &why), &why,
		E2BIG, &dmamap_reason_bounce_too_large);
	iova = map(bounce, buffer, 9000, 3);
	{
		const struct {
			uint64_t iova, size;
		} bad[] = {{iova, 8999}, {iova, 9001}, {iova, 0}, {iova, UINT64_MAX},
			{iova, 9000 + (1ull << 61)}, {iova + 1, 9000}, {iova + 4096, 9000 - 4096},
			{iova - 4096, 9000}, {0, 9000}, {MIB, 9000}, {UINT64_MAX, 1}};

		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			assert_refused(
				dmamap_bounce_unmap(bounce, bad[i].iova, bad[i].size, 0, &why),
				&why, EINVAL, &dmamap_reason_bounce_not_mapped);
	}
	assert_refused(dmamap_bounce_unmap(bounce, iova, 9000, 2, &why), &why, EINVAL,
		&dmamap_reason_bounce_request);
	assert_refused(dmamap_bounce_sync_for_cpu(bounce, iova + 8999, 2, &why), &why, EINVAL,
		&dmamap_reason_bounce_past_mapping);
	assert_refused(dmamap_bounce_sync_for_cpu(bounce, iova + 9000, 1, &why), &why, EINVAL,
		&dmamap_reason_bounce_past_mapping);
	assert_refused(dmamap_bounce_sync_for_device(bounce, iova, 0, &why), &why, EINVAL,
		&dmamap_reason_bounce_past_mapping);
	assert_refused(dmamap_bounce_sync_for_device(bounce, iova, UINT64_MAX, &why), &why, EINVAL,
		&dmamap_reason_bounce_past_mapping);
	assert_refused(dmamap_bounce_sync_for_device(bounce, 0, 1, &why), &why, EINVAL,
		&dmamap_reason_bounce_past_mapping);
	/* 7.3: beyond the bounce buffer there is nothing to sync. */
	assert_int_equal(dmamap_bounce_sync_for_device(bounce, MIB, 1, &why), 0);
	assert_int_equal(dmamap_bounce_sync_for_cpu(bounce, UINT64_MAX, 1, &why), 0);
	unmap(bounce, iova, 9000);
	assert_refused(dmamap_bounce_unmap(bounce, iova, 9000, 0, &why), &why, EINVAL,
		&dmamap_reason_bounce_not_mapped);
	dmamap_bounce_destroy(bounce);
}

/* It could wait for umem_add, which waits for the access. */
static void not_within_an_access(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	struct dmamap_space *space;
	struct dmamap_table *table;
	struct dmamap_access *access;
	static char buffer[16];
	uint64_t iova = map(bounce, buffer, sizeof(buffer), 3), none;
	const struct dmamap_reason_kind *kind = &dmamap_reason_within_access;

	(void)state;
	assert_int_equal(dmamap_space_create(NULL, &space), 0);
	assert_int_equal(dmamap_table_create(space, NULL, &table, NULL), 0);
	assert_int_equal(dmamap_access_create(table, &access), 0);
	dmamap_access_enter(access);
	assert_refused(
		dmamap_bounce_map(bounce, buffer, 16, 3, 0, &none, &why), &why, EDEADLK, kind);
	assert_refused(dmamap_bounce_unmap(bounce, iova, 16, 0, &why), &why, EDEADLK, kind);
	assert_refused(dmamap_bounce_sync_for_cpu(bounce, iova, 16, &why), &why, EDEADLK, kind);
	assert_refused(dmamap_bounce_sync_for_device(bounce, iova, 16, &why), &why, EDEADLK, kind);
	assert_refused(dmamap_bounce_umem_add(bounce, buffer, MIB, &why), &why, EDEADLK, kind);
	assert_refused(dmamap_bounce_umem_remove(bounce, &why), &why, EDEADLK, kind);
	dmamap_access_leave(access);
	unmap(bounce, iova, 16);
	dmamap_access_destroy(access);
	dmamap_space_destroy(space);
	dmamap_bounce_destroy(bounce);
}

/* ---------------------------------------------------------------- failures */

/* Creation with each of its allocations failing in turn. */
static void create_fails_whole(void **state)
{
	struct dmamap_bounce *bounce;
	int nth = 0, rc;

	(void)state;
	do {
		engine_fail_nth = ++nth;
		rc = dmamap_bounce_create(NULL, &bounce, &why);
		if (rc) {
			assert_int_equal(rc, -ENOMEM);
			assert_ptr_equal(why.kind, &dmamap_reason_no_memory);
		}
	} while (rc);
	engine_fail_nth = 0;
	assert_int_equal(nth, 10); /* nine of them, and one more succeeds */
	dmamap_bounce_destroy(bounce);
}

/*
 * No memory for a page: the map takes nothing. 7.3 leaves the units before that
 * page marked, so that umem calls copy their pages until they are mapped again.
 */
static void map_without_a_page(void **state)
{
	static char buffer[128 * KIB];

	(void)state;
	for (unsigned quirk = 0; quirk < 2; quirk++) {
		struct dmamap_bounce *bounce = make(&(struct dmamap_bounce_config){.page_shift = 16,
			.bounce_size = 256 * KIB,
			.quirks = quirk ? DMAMAP_BOUNCE_QUIRK_FAILED_MAP : 0});
		unsigned char *umem = make_umem();
		uint64_t iova;

		/* The last page gets no memory, and its units are in a cache for 64 KiB. */
		engine_fail_nth = 1;
		assert_refused(dmamap_bounce_map(bounce, buffer, 64 * KIB, 3, 0, &iova, &why), &why,
			ENOMEM, &dmamap_reason_no_memory);
		/* So the page before it is the first that gets some. */
		iova = map(bounce, buffer, 1, DMAMAP_READ);
		assert_int_equal(iova, 188 * KIB);
		unmap(bounce, iova, 1);
		/* Of these two pages, one is there. */
		engine_fail_nth = 1;
		assert_refused(dmamap_bounce_map(bounce, buffer, 128 * KIB, 3, 0, &iova, &why),
			&why, ENOMEM, &dmamap_reason_no_memory);
		assert_int_equal(engine_fail_nth, 0);
		assert_int_equal(count(bounce).no_memory, 2);
		assert_int_equal(count(bounce).live_units, 0);
		assert_int_equal(count(bounce).to_device, 1);
		assert_int_equal(count(bounce).pages, 1);
		assert_int_equal(count(bounce).live_pages, quirk);
		assert_int_equal(
			dmamap_bounce_unmap(bounce, 128 * KIB, 64 * KIB, 0, &why), -EINVAL);
		assert_int_equal(dmamap_bounce_sync_for_cpu(bounce, 128 * KIB, 1, &why), -EINVAL);
		assert_int_equal(dmamap_bounce_umem_add(bounce, umem, 256 * KIB, &why), 0);
		assert_true(all(umem + 128 * KIB, quirk ? 0 : 'u', 64 * KIB));
		assert_int_equal(dmamap_bounce_umem_remove(bounce, &why), 0);
		/* Memory is there again. */
		iova = map(bounce, buffer, 128 * KIB, DMAMAP_READ);
		unmap(bounce, iova, 128 * KIB);
		assert_int_equal(count(bounce).live_pages, 0);
		free(umem);
		dmamap_bounce_destroy(bounce);
	}
}

/* Without memory for a magazine, units go straight back: nothing is lost. */
static void unmap_without_a_magazine(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	static char buffer[16];
	uint64_t iova = map(bounce, buffer, sizeof(buffer), 3);

	(void)state;
	engine_fail_nth = 1;
	unmap(bounce, iova, sizeof(buffer));
	assert_int_equal(engine_fail_nth, 0);
	assert_int_equal(map(bounce, buffer, sizeof(buffer), 3), iova);
	assert_int_equal(count(bounce).slow, 2);
	assert_int_equal(count(bounce).fast, 0);
	dmamap_bounce_destroy(bounce);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_units_hold_sixteen_times_as_much),
		cmocka_unit_test(a_block_request_takes_four_units),
		cmocka_unit_test(units_share_a_page),
		cmocka_unit_test(places_are_aligned),
		cmocka_unit_test(full_is_not_too_large),
		cmocka_unit_test(configurations),
		cmocka_unit_test(bytes_go_where_the_direction_allows),
		cmocka_unit_test(syncs_copy_parts),
		cmocka_unit_test(a_map_without_copy),
		cmocka_unit_test(stale_bytes_stay_where_they_are_kept),
		cmocka_unit_test(what_is_not_mapped_is_refused),
		cmocka_unit_test(not_within_an_access),
		cmocka_unit_test(create_fails_whole),
		cmocka_unit_test(map_without_a_page),
		cmocka_unit_test(unmap_without_a_magazine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
