/* SPDX-License-Identifier: MIT */
/* A space's rules, one by one: what is refused, why, and that nothing changes then. */
#include <errno.h>

#include "engine/space.h"
#include "tests/check.h"

#define K(n) ((n)*1024ull)
#define M(n) ((n)*1024ull * 1024)
#define G(n) ((n)*1024ull * 1024 * 1024)

struct fixture {
	struct dmamap_space *space;
	struct dmamap_table *table;
	struct dmamap_memory *memory; /* 1 GiB of addresses, nothing behind */
	struct dmamap_reason why;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(dmamap_space_create(NULL, &f->space), 0);
	assert_int_equal(dmamap_table_create(f->space, NULL, &f->table, NULL), 0);
	assert_int_equal(dmamap_memory_file((void *)G(64), 0, G(1), 3, 62, &f->memory), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	dmamap_space_destroy(f->space);
	/* Every area has given its reference back. */
	assert_int_equal(f->memory->refs, 1);
	dmamap_memory_put(f->memory);
	free(f);
	return 0;
}

static int map(struct fixture *f, uint64_t iova, uint64_t length)
{
	struct dmamap_map map = {
		.first = iova, .last = iova + length - 1, .memory = f->memory, .prot = 3};

	return dmamap_map(f->space, &map, &f->why);
}

static int unmap(struct fixture *f, uint64_t iova, uint64_t length, uint64_t *bytes)
{
	return dmamap_unmap(f->space, iova, iova + length - 1, bytes, &f->why);
}

static uint64_t areas(struct fixture *f)
{
	struct dmamap_counters counters;

	dmamap_space_counters(f->space, &counters);
	return counters.areas;
}

/* libvfio-user 50, 463; cloud-hypervisor 6845. */
static void overlap(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0x1000, 0x2000), 0);
	assert_refused(map(f, 0x2000, 0x1000), &f->why, EEXIST, &dmamap_reason_overlap);
	assert_int_equal(f->why.number[2], 0x1000);
	assert_int_equal(f->why.number[3], 0x2fff);
	assert_refused(map(f, 0, 0x2000), &f->why, EEXIST, &dmamap_reason_overlap);
	assert_refused(map(f, 0, 0x10000), &f->why, EEXIST, &dmamap_reason_overlap);
	assert_int_equal(map(f, 0, 0x1000), 0);
	assert_int_equal(map(f, 0x3000, 0x1000), 0);
	assert_int_equal(areas(f), 3);
}

static void ranges_and_memory(void **state)
{
	struct fixture *f = *state;
	struct dmamap_map bad = {.first = 0x1000, .last = 0xfff, .memory = f->memory, .prot = 3};
	struct dmamap_memory *far;

	assert_refused(
		dmamap_map(f->space, &bad, &f->why), &f->why, EINVAL, &dmamap_reason_backwards);
	assert_refused(map(f, 0x1000, 0x1001), &f->why, EINVAL, &dmamap_reason_misaligned);
	assert_refused(map(f, 0x1800, 0x1000), &f->why, EINVAL, &dmamap_reason_misaligned);
	assert_refused(map(f, 0, G(1) + K(4)), &f->why, EINVAL, &dmamap_reason_memory_range);
	bad = (struct dmamap_map){.last = 0xfff, .memory = f->memory, .offset = G(1), .prot = 3};
	assert_refused(
		dmamap_map(f->space, &bad, &f->why), &f->why, EINVAL, &dmamap_reason_memory_range);
	bad = (struct dmamap_map){.last = 0xfff, .memory = f->memory, .prot = 4};
	assert_refused(
		dmamap_map(f->space, &bad, &f->why), &f->why, EINVAL, &dmamap_reason_no_access);
	assert_int_equal(dmamap_memory_file((void *)(1ull << 56), 0, M(1), 3, 62, &far), 0);
	bad = (struct dmamap_map){.last = 0xfff, .memory = far, .prot = 3};
	assert_refused(dmamap_map(f->space, &bad, &f->why), &f->why, EFAULT, &dmamap_reason_host);
	dmamap_memory_put(far);
	f->memory->prot = DMAMAP_READ;
	assert_refused(map(f, 0, 0x1000), &f->why, EPERM, &dmamap_reason_memory_read_only);
	assert_int_equal(areas(f), 0);
}

/* libvfio-user 504; cloud-hypervisor 8594; dpdk. */
static void unmap_takes_whole_areas(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes = 77;

	assert_int_equal(map(f, 0, M(4)), 0);
	assert_refused(unmap(f, M(1), M(1), &bytes), &f->why, EINVAL, &dmamap_reason_cut);
	assert_refused(unmap(f, 0, M(1), &bytes), &f->why, EINVAL, &dmamap_reason_cut);
	assert_refused(unmap(f, M(2), M(8), &bytes), &f->why, EINVAL, &dmamap_reason_cut);
	assert_int_equal(bytes, 77);
	assert_int_equal(map(f, M(8), M(1)), 0);
	/* The first is whole, the second is cut: both stay. */
	assert_refused(unmap(f, 0, M(8) + K(4), &bytes), &f->why, EINVAL, &dmamap_reason_cut);
	assert_int_equal(areas(f), 2);
	assert_int_equal(unmap(f, 0, M(16), &bytes), 0);
	assert_int_equal(bytes, M(5));
	assert_int_equal(unmap(f, 0, M(16), &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_refused(dmamap_unmap(f->space, 1, 0, &bytes, &f->why), &f->why, EINVAL,
		&dmamap_reason_backwards);
}

/* libvfio-user 593: everything, the last page of the 64-bit space included. */
static void top_of_the_space(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes;

	assert_int_equal(map(f, 0 - K(4), K(4)), 0);
	assert_int_equal(map(f, 0, K(4)), 0);
	assert_int_equal(map(f, 0xfef00000, K(4)), 0);
	/* Kernel type1 history: a range that reaches exactly 2^64. */
	assert_int_equal(dmamap_unmap(f->space, 0xfef00000, UINT64_MAX, &bytes, NULL), 0);
	assert_int_equal(bytes, K(8));
	assert_int_equal(dmamap_unmap(f->space, 0, UINT64_MAX, &bytes, NULL), 0);
	assert_int_equal(bytes, K(4));
}

/* CVE-2019-3882: the entry limit counts areas, and unmapping makes room. */
static void area_limit(void **state)
{
	struct dmamap_space_config config = {.area_limit = 3};
	struct fixture *f = *state;
	struct dmamap_space *old = f->space;
	char text[80];

	assert_int_equal(dmamap_space_create(&config, &f->space), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(map(f, i * K(4), K(4)), 0);
	assert_refused(map(f, K(12), K(4)), &f->why, ENOSPC, &dmamap_reason_area_limit);
	assert_int_equal(f->why.number[0], 3);
	/* A copy of several areas can be refused below the limit: the two numbers are two. */
	f->why.number[0] = 2;
	dmamap_reason_format(&f->why, text, sizeof(text));
	assert_string_equal(text, "2 areas are mapped, and the limit is 3");
	/* An overlap is found before the limit, as in Linux. */
	assert_refused(map(f, K(8), K(4)), &f->why, EEXIST, &dmamap_reason_overlap);
	assert_int_equal(unmap(f, 0, K(4), NULL), 0);
	assert_int_equal(map(f, K(12), K(4)), 0);
	dmamap_space_destroy(f->space);
	f->space = old;
}

static void reserved_ranges(void **state)
{
	struct fixture *f = *state;
	struct dmamap_range usable[4];
	int one, two;

	assert_int_equal(dmamap_space_usable(f->space, usable, 4), 1);
	assert_int_equal(usable[0].last, UINT64_MAX);
	assert_int_equal(
		dmamap_space_reserve(f->space, 0xfee00000, 0xfeefffff, &one, "MSI", NULL), 0);
	assert_int_equal(
		dmamap_space_reserve(f->space, 0xfee00000, 0xfeefffff, &two, "MSI", NULL), 0);
	assert_int_equal(
		dmamap_space_reserve(f->space, 1ull << 48, UINT64_MAX, &one, "aperture", NULL), 0);
	assert_int_equal(dmamap_space_usable(f->space, usable, 4), 2);
	assert_int_equal(usable[0].last, 0xfedfffff);
	assert_int_equal(usable[1].first, 0xfef00000);
	assert_int_equal(usable[1].last, (1ull << 48) - 1);
	assert_int_equal(dmamap_space_usable(f->space, NULL, 0), 2);

	assert_int_equal(map(f, 0xfedff000, 0x1000), 0);
	assert_refused(map(f, 0xfee00000, 0x1000), &f->why, EINVAL, &dmamap_reason_reserved);
	assert_string_equal(f->why.label, "MSI");
	assert_refused(map(f, 0xfeeff000, 0x2000), &f->why, EINVAL, &dmamap_reason_reserved);
	assert_int_equal(map(f, 0xfef00000, 0x1000), 0);
	assert_refused(
		map(f, (1ull << 48) - 0x1000, 0x2000), &f->why, EINVAL, &dmamap_reason_reserved);

	/* An area is in the way of a new reserved range. */
	assert_refused(
		dmamap_space_reserve(f->space, 0xfef00000, 0xfef00fff, &two, "RMRR", &f->why),
		&f->why, EADDRINUSE, &dmamap_reason_in_use);
	assert_refused(dmamap_space_reserve(f->space, 2, 1, &two, "RMRR", &f->why), &f->why, EINVAL,
		&dmamap_reason_backwards);

	/* The window stays while one of its owners is there. */
	dmamap_space_unreserve(f->space, &one);
	assert_refused(map(f, 0xfee00000, 0x1000), &f->why, EINVAL, &dmamap_reason_reserved);
	dmamap_space_unreserve(f->space, &two);
	assert_int_equal(map(f, 0xfee00000, 0x1000), 0);
	assert_int_equal(map(f, 0 - K(4), K(4)), 0);
}

static void allowed_ranges(void **state)
{
	struct fixture *f = *state;
	struct dmamap_range allowed[] = {{M(8), M(9) - 1}, {M(1), M(2) - 1}};
	struct dmamap_range overlapping[] = {{0, M(4)}, {M(2), M(8)}};
	struct dmamap_range single[] = {{5, 5}};
	struct dmamap_map map = {
		.last = K(512) - 1, .memory = f->memory, .prot = 3, .flags = DMAMAP_MAP_ALLOCATE};

	assert_int_equal(dmamap_space_allow(f->space, allowed, 2, NULL), 0);
	assert_refused(dmamap_space_allow(f->space, overlapping, 2, &f->why), &f->why, EINVAL,
		&dmamap_reason_in_use);
	assert_refused(dmamap_space_allow(f->space, single, 1, &f->why), &f->why, EINVAL,
		&dmamap_reason_backwards);
	assert_refused(dmamap_space_reserve(f->space, M(1), M(1), f, "RMRR", &f->why), &f->why,
		EADDRINUSE, &dmamap_reason_in_use);
	assert_int_equal(dmamap_space_reserve(f->space, M(16), M(17), f, "RMRR", NULL), 0);
	overlapping[0] = (struct dmamap_range){M(12), M(20)};
	assert_refused(dmamap_space_allow(f->space, overlapping, 1, &f->why), &f->why, EADDRINUSE,
		&dmamap_reason_in_use);

	/* The old list stays after refusals: two in the lower, two in the upper, then none. */
	for (unsigned i = 0; i < 4; i++) {
		map.first = 0, map.last = K(512) - 1;
		assert_int_equal(dmamap_map(f->space, &map, NULL), 0);
		assert_int_equal(map.first, (i < 2 ? M(1) : M(8)) + i % 2 * K(512));
	}
	map.first = 0, map.last = K(4) - 1;
	assert_refused(
		dmamap_map(f->space, &map, &f->why), &f->why, ENOSPC, &dmamap_reason_no_iova);
	assert_int_equal(dmamap_space_allow(f->space, NULL, 0, NULL), 0);
	assert_int_equal(dmamap_map(f->space, &map, NULL), 0);
	assert_int_equal(map.first, 0);
}

/* First fit from below, past reserved ranges, by alignment and phase. */
static void allocation(void **state)
{
	struct fixture *f = *state;
	uint64_t iova;

	assert_int_equal(dmamap_space_reserve(f->space, 0, K(4) - 1, f, "zero page", NULL), 0);
	assert_int_equal(dmamap_space_reserve(f->space, M(2), M(3) - 1, f, "window", NULL), 0);
	assert_int_equal(dmamap_iova_find(f->space, K(4), 0, 0, &iova, NULL), 0);
	assert_int_equal(iova, K(4));
	assert_int_equal(dmamap_iova_find(f->space, M(2), M(1), 0, &iova, NULL), 0);
	assert_int_equal(iova, M(3));
	assert_int_equal(dmamap_iova_find(f->space, K(8), M(1), K(64), &iova, NULL), 0);
	assert_int_equal(iova, K(64));
	assert_refused(dmamap_iova_find(f->space, K(4), K(12), 0, &iova, &f->why), &f->why, EINVAL,
		&dmamap_reason_misaligned);
	assert_refused(dmamap_iova_find(f->space, K(4), K(4), K(4), &iova, &f->why), &f->why,
		EINVAL, &dmamap_reason_misaligned);
	assert_refused(dmamap_iova_find(f->space, 0, K(4), 0, &iova, &f->why), &f->why, EINVAL,
		&dmamap_reason_backwards);
	assert_refused(dmamap_iova_find(f->space, UINT64_MAX - K(4), K(4), 0, &iova, &f->why),
		&f->why, ENOSPC, &dmamap_reason_no_iova);
	/* The last page can be had too. */
	assert_int_equal(dmamap_space_allow(f->space,
				 (struct dmamap_range[]){{0 - K(4), UINT64_MAX}}, 1, NULL),
		0);
	assert_int_equal(dmamap_iova_find(f->space, K(4), 0, 0, &iova, NULL), 0);
	assert_int_equal(iova, 0 - K(4));
}

/* libvfn pull 40: allocated IOVA space is reused, memory is flat. */
static void allocation_is_reused(void **state)
{
	struct fixture *f = *state;
	struct dmamap_counters before, after;

	for (unsigned round = 0; round < 20000; round++) {
		struct dmamap_map map = {.last = K(64) - 1,
			.memory = f->memory,
			.prot = 3,
			.flags = DMAMAP_MAP_ALLOCATE};

		assert_int_equal(dmamap_map(f->space, &map, NULL), 0);
		assert_int_equal(map.first, 0);
		assert_int_equal(dmamap_unmap(f->space, map.first, map.last, NULL, NULL), 0);
		if (round == 10)
			dmamap_space_counters(f->space, &before);
	}
	dmamap_space_counters(f->space, &after);
	assert_int_equal(before.table_bytes_held, after.table_bytes_held);
	assert_int_equal(before.area_bytes, after.area_bytes);
}

static void copy(void **state)
{
	struct fixture *f = *state;
	struct dmamap_space *other;
	struct dmamap_area area;
	struct dmamap_map map = {.first = G(4), .prot = DMAMAP_READ};

	assert_int_equal(dmamap_space_create(NULL, &other), 0);
	assert_int_equal(dmamap_space_reserve(other, G(8), G(9), f, "window", NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct dmamap_map m = {.first = M(i),
			.last = M(i + 1) - 1,
			.memory = f->memory,
			.offset = M(10 * i),
			.prot = 3};

		assert_int_equal(dmamap_map(f->space, &m, NULL), 0);
	}
	/* From inside the first to inside the third: three areas, the memory shared. */
	assert_int_equal(dmamap_copy(f->space, K(512), M(2) + K(4) - 1, other, &map, &f->why), 0);
	assert_int_equal(map.last, G(4) + M(1) + K(516) - 1);
	assert_true(dmamap_area_find(other, G(4), G(4), &area));
	assert_int_equal(area.offset, K(512));
	assert_int_equal(area.last, G(4) + K(512) - 1);
	assert_int_equal(area.prot, DMAMAP_READ);
	assert_true(dmamap_area_find(other, G(4) + M(1) + K(512), UINT64_MAX, &area));
	assert_int_equal(area.offset, M(20));
	assert_int_equal(area.last, map.last);
	assert_int_equal(f->memory->refs, 1 + 3 + 3);

	assert_refused(dmamap_copy(f->space, M(2), M(4) - 1, other, &map, &f->why), &f->why, ENOENT,
		&dmamap_reason_gap);
	assert_int_equal(f->why.number[2], M(3));
	assert_refused(dmamap_copy(f->space, 0, M(1) - 1, other, &map, &f->why), &f->why, EEXIST,
		&dmamap_reason_overlap);
	map.first = G(8) - K(4);
	assert_refused(dmamap_copy(f->space, 0, M(1) - 1, other, &map, &f->why), &f->why, EINVAL,
		&dmamap_reason_reserved);
	f->memory->prot = DMAMAP_READ;
	map = (struct dmamap_map){.prot = DMAMAP_WRITE};
	assert_refused(dmamap_copy(f->space, 0, M(1) - 1, other, &map, &f->why), &f->why, EPERM,
		&dmamap_reason_memory_read_only);
	map = (struct dmamap_map){.prot = DMAMAP_READ, .flags = DMAMAP_MAP_ALLOCATE};
	assert_int_equal(dmamap_copy(f->space, 0, M(3) - 1, other, &map, &f->why), 0);
	assert_int_equal(map.first, 0);
	assert_int_equal(map.last, M(3) - 1);
	f->memory->prot = 3;
	dmamap_space_destroy(other);
}

static void split(void **state)
{
	struct fixture *f = *state;
	struct dmamap_table_config small = {.leaf_sizes = 1 << 12};
	struct dmamap_area area;
	uint64_t bytes;

	assert_int_equal(map(f, M(2), M(4)), 0);
	/* The area is two leaves of 2 MiB: it can be cut between them only. */
	assert_refused(
		dmamap_area_split(f->space, M(3), &f->why), &f->why, EINVAL, &dmamap_reason_leaf);
	assert_int_equal(f->why.number[1], M(2));
	assert_int_equal(dmamap_area_split(f->space, M(4), &f->why), 0);
	assert_int_equal(areas(f), 2);
	assert_true(dmamap_area_find(f->space, M(4), UINT64_MAX, &area));
	assert_int_equal(area.first, M(4));
	assert_int_equal(area.offset, M(2));
	assert_int_equal(unmap(f, M(4), M(2), &bytes), 0);
	assert_int_equal(bytes, M(2));
	/* At a border or where nothing is, there is nothing to cut. */
	assert_int_equal(dmamap_area_split(f->space, M(2), NULL), 0);
	assert_int_equal(dmamap_area_split(f->space, M(16), NULL), 0);
	assert_int_equal(areas(f), 1);

	dmamap_table_destroy(f->table);
	assert_int_equal(dmamap_table_create(f->space, &small, &f->table, NULL), 0);
	assert_int_equal(dmamap_area_split(f->space, M(3) + K(4), NULL), 0);
	assert_null(areas_check(&f->space->areas));
	assert_int_equal(unmap(f, M(2), M(1) + K(4), &bytes), 0);
	assert_int_equal(bytes, M(1) + K(4));
	assert_int_equal(areas(f), 1);
}

/* A table made late has every area; one that cannot have them is refused and leaves no trace. */
static void tables_come_and_go(void **state)
{
	struct fixture *f = *state;
	struct dmamap_table_config coarse = {.granule_shift = 16}, narrow = {.iova_bits = 39};
	struct dmamap_table *table;
	struct dmamap_counters counters;

	assert_int_equal(dmamap_space_alignment(f->space), 4096);
	assert_int_equal(map(f, K(64), K(64)), 0);
	assert_int_equal(dmamap_table_create(f->space, &coarse, &table, NULL), 0);
	dmamap_table_counters(table, &counters);
	assert_int_equal(counters.leaves[16], 1);
	assert_int_equal(dmamap_space_alignment(f->space), 65536);
	assert_refused(map(f, K(4), K(4)), &f->why, EINVAL, &dmamap_reason_misaligned);
	dmamap_table_destroy(table);
	assert_int_equal(dmamap_space_alignment(f->space), 4096);
	assert_int_equal(map(f, K(4), K(4)), 0);
	assert_refused(dmamap_table_create(f->space, &coarse, &table, &f->why), &f->why, EADDRINUSE,
		&dmamap_reason_misaligned);

	assert_int_equal(dmamap_table_create(f->space, &narrow, &table, NULL), 0);
	assert_int_equal(map(f, (1ull << 39) - K(4), K(4)), 0);
	assert_refused(map(f, 1ull << 39, K(4)), &f->why, EINVAL, &dmamap_reason_aperture);
	assert_refused(
		map(f, (1ull << 39) - K(8), K(4) * 3), &f->why, EEXIST, &dmamap_reason_overlap);
	dmamap_table_destroy(table);
	assert_int_equal(map(f, 1ull << 39, K(4)), 0);
	assert_refused(dmamap_table_create(f->space, &narrow, &table, &f->why), &f->why, EINVAL,
		&dmamap_reason_aperture);
	/* What destroyed tables did still counts. */
	dmamap_space_counters(f->space, &counters);
	assert_int_equal(counters.leaves[16], 1);
}

/* A memory whose third look-up fails: what was mapped before it is taken back. */
struct failing {
	struct dmamap_memory memory;
	unsigned lookups;
};

static int failing_lookup(struct dmamap_memory *memory, struct dmamap_lookup *lookup)
{
	struct failing *failing = (struct failing *)memory;

	if (++failing->lookups == 3)
		return -EFAULT;
	lookup->host = G(64) + 2 * lookup->offset;
	lookup->length = K(4);
	lookup->contiguous = 12;
	return 0;
}

static void failing_release(struct dmamap_memory *memory)
{
	(void)memory;
}

static void failure_half_way(void **state)
{
	static const struct dmamap_memory_ops ops = {
		.lookup = failing_lookup, .release = failing_release};
	struct fixture *f = *state;
	struct failing failing = {.lookups = 0};
	struct dmamap_map m = {
		.first = M(1), .last = M(2) - 1, .memory = &failing.memory, .prot = 3};
	struct dmamap_counters counters;
	struct dmamap_access *access;
	struct dmamap_segment segment;

	dmamap_memory_init(&failing.memory, &ops, M(1), 3);
	assert_int_equal(dmamap_map(f->space, &m, NULL), -EFAULT);
	assert_int_equal(failing.lookups, 3);
	assert_int_equal(failing.memory.refs, 1);
	dmamap_space_counters(f->space, &counters);
	assert_int_equal(counters.areas, 0);
	assert_int_equal(counters.maps, 0);
	assert_int_equal(counters.tables, 0);
	assert_int_equal(counters.leaves[12], counters.leaves_cleared[12]);
	assert_int_equal(dmamap_access_create(f->table, &access), 0);
	assert_int_equal(dmamap_translate(access, M(1), 1, 1, &segment, 1, NULL), -EFAULT);
	dmamap_access_destroy(access);
}

/* Memory that counts what it is told, and refuses one of its fills. */
struct telling {
	struct dmamap_memory memory;
	int64_t bytes;
	unsigned filled, cleared;
	unsigned refuse; /* this fill is refused */
	bool gone;	 /* told when no reference was left */
};

static int telling_lookup(struct dmamap_memory *memory, struct dmamap_lookup *lookup)
{
	(void)memory;
	lookup->host = G(64) + lookup->offset;
	lookup->length = G(1);
	lookup->contiguous = 63;
	return 0;
}

static int telling_filled(
	struct dmamap_memory *memory, uint64_t offset, uint64_t last, struct dmamap_reason *why)
{
	struct telling *telling = (struct telling *)memory;

	if (telling->refuse && !--telling->refuse)
		return DMAMAP_REFUSE(why, &dmamap_reason_no_memory, EDQUOT, "a charge", 0);
	telling->bytes += (int64_t)(last - offset + 1);
	telling->filled++;
	return 0;
}

static void telling_cleared(struct dmamap_memory *memory, uint64_t offset, uint64_t last)
{
	struct telling *telling = (struct telling *)memory;

	telling->gone |= !memory->refs;
	telling->bytes -= (int64_t)(last - offset + 1);
	telling->cleared++;
}

/* One call for each area and table, undone exactly when something fails. */
static void memory_is_told(void **state)
{
	static const struct dmamap_memory_ops ops = {
		.lookup = telling_lookup,
		.release = failing_release,
		.filled = telling_filled,
		.cleared = telling_cleared,
	};
	struct fixture *f = *state;
	struct dmamap_table_config coarse = {.granule_shift = 16};
	struct telling t = {.filled = 0};
	struct dmamap_map m = {.first = M(1), .last = M(2) - 1, .memory = &t.memory, .prot = 3};
	struct dmamap_map to = {.first = M(4), .prot = 3};
	struct dmamap_table *second, *third;

	dmamap_memory_init(&t.memory, &ops, M(1), 3);
	assert_int_equal(dmamap_table_create(f->space, &coarse, &second, NULL), 0);
	/* Refused by the second of two tables: the first one is undone. */
	t.refuse = 2;
	assert_refused(
		dmamap_map(f->space, &m, &f->why), &f->why, EDQUOT, &dmamap_reason_no_memory);
	assert_int_equal(t.filled, 1);
	assert_int_equal(t.cleared, 1);
	assert_int_equal(t.bytes, 0);
	assert_int_equal(areas(f), 0);
	assert_int_equal(dmamap_map(f->space, &m, NULL), 0);
	assert_int_equal(t.bytes, 2 * M(1));
	/* A cut changes no sum; what is copied is told part by part. */
	assert_int_equal(dmamap_area_split(f->space, M(1) + K(256), NULL), 0);
	assert_int_equal(t.filled, 3);
	t.refuse = 4;
	assert_refused(dmamap_copy(f->space, M(1) + K(128), M(2) - 1, f->space, &to, &f->why),
		&f->why, EDQUOT, &dmamap_reason_no_memory);
	assert_int_equal(t.bytes, 2 * M(1));
	assert_int_equal(t.cleared, 4);
	assert_int_equal(dmamap_copy(f->space, M(1) + K(128), M(2) - 1, f->space, &to, NULL), 0);
	assert_int_equal(t.bytes, 2 * (M(1) + K(896)));
	/* A table over four areas, refused at the third, then had and destroyed. */
	t.refuse = 3;
	assert_refused(dmamap_table_create(f->space, NULL, &third, &f->why), &f->why, EDQUOT,
		&dmamap_reason_no_memory);
	assert_int_equal(t.bytes, 2 * (M(1) + K(896)));
	assert_int_equal(dmamap_table_create(f->space, NULL, &third, NULL), 0);
	assert_int_equal(t.bytes, 3 * (M(1) + K(896)));
	dmamap_table_destroy(second);
	assert_int_equal(t.bytes, 2 * (M(1) + K(896)));
	assert_int_equal(unmap(f, M(1), K(256), NULL), 0);
	assert_int_equal(t.bytes, 2 * (K(768) + K(896)));
	dmamap_table_destroy(third);
	dmamap_table_destroy(f->table);
	assert_int_equal(t.bytes, 0);
	/* Areas stay, and an area without a table is not told of. */
	assert_int_equal(areas(f), 3);
	assert_int_equal(unmap(f, 0, M(16), NULL), 0);
	/* The cut made two parts of one in each of two tables. */
	assert_int_equal(t.cleared, t.filled + 2);
	assert_int_equal(t.memory.refs, 1);
	assert_false(t.gone);
}

/* Areas without memory keep IOVAs, and no device gets through. */
static void areas_without_memory(void **state)
{
	struct fixture *f = *state;
	struct dmamap_map m = {.first = M(1), .last = M(2) - 1, .prot = 3};
	struct dmamap_area area;

	assert_int_equal(dmamap_map(f->space, &m, NULL), 0);
	assert_refused(map(f, M(1), K(4)), &f->why, EEXIST, &dmamap_reason_overlap);
	assert_true(dmamap_area_find(f->space, 0, UINT64_MAX, &area));
	assert_null(area.memory);
	assert_false(dmamap_area_find(f->space, 0, M(1) - 1, &area));
	/* No leaf is in the way of a cut, but areas are multiples of the granule. */
	assert_refused(dmamap_area_split(f->space, M(1) + 5, &f->why), &f->why, EINVAL,
		&dmamap_reason_misaligned);
	assert_int_equal(areas(f), 1);
	assert_false(dmamap_area_find(f->space, M(2), UINT64_MAX, &area));
}

/* libvfio-user 588, kata 11721: many areas are ordinary. */
static void a_million_areas(void **state)
{
	struct fixture *f = *state;
	struct dmamap_counters counters;
	uint64_t bytes;

	for (unsigned i = 0; i < 1000000; i++)
		if (map(f, (uint64_t)i * 7919 % 1000000 * K(8), K(4)))
			fail_msg("area %u", i);
	dmamap_space_counters(f->space, &counters);
	assert_int_equal(counters.areas, 1000000);
	assert_true(counters.area_bytes + counters.table_bytes <= 1000000 * 88ull);
	assert_int_equal(dmamap_unmap(f->space, 0, UINT64_MAX, &bytes, NULL), 0);
	assert_int_equal(bytes, 1000000 * K(4));
	assert_null(areas_check(&f->space->areas));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(overlap),
		TEST(ranges_and_memory),
		TEST(unmap_takes_whole_areas),
		TEST(top_of_the_space),
		TEST(area_limit),
		TEST(reserved_ranges),
		TEST(allowed_ranges),
		TEST(allocation),
		TEST(allocation_is_reused),
		TEST(copy),
		TEST(split),
		TEST(tables_come_and_go),
		TEST(failure_half_way),
		TEST(memory_is_told),
		TEST(areas_without_memory),
		TEST(a_million_areas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
