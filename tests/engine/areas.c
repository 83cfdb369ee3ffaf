/* SPDX-License-Identifier: MIT */
/* The tree of areas against a flat array, and its own rules after each step. */
#include <errno.h>

#include "engine/areas.h"
#include "tests/check.h"

#define SLOTS 3000u
#define UNIT  0x1000ull

/* A flat array of units: which area's number has each, 0: none. */
struct flat {
	unsigned owner[SLOTS];
	uint64_t base;
	unsigned next;
};

static uint64_t unit_iova(const struct flat *flat, unsigned unit)
{
	return flat->base + unit * UNIT;
}

static bool flat_free(const struct flat *flat, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		if (flat->owner[i])
			return false;
	return true;
}

static void check(struct areas *areas)
{
	const char *broken = areas_check(areas);

	if (broken)
		fail_msg("%s", broken);
}

static void compare(struct areas *areas, const struct flat *flat)
{
	struct areas_place place = areas_seek(areas, 0);
	unsigned unit = 0;

	for (; place.leaf; place = areas_next(place)) {
		struct area area = areas_at(place);

		while (!flat->owner[unit])
			unit++;
		assert_int_equal(area.first, unit_iova(flat, unit));
		assert_int_equal(area.offset, flat->owner[unit]);
		while (unit < SLOTS && flat->owner[unit] == area.offset)
			unit++;
		assert_int_equal(area.last, unit_iova(flat, unit) - 1);
	}
	while (unit < SLOTS)
		assert_int_equal(flat->owner[unit++], 0);
}

static void insert(struct areas *areas, struct flat *flat, unsigned from, unsigned n)
{
	struct area area = {unit_iova(flat, from), unit_iova(flat, from + n) - 1, 8, ++flat->next};

	assert_int_equal(areas_insert(areas, &area, NULL), 0);
	for (unsigned i = from; i < from + n; i++)
		flat->owner[i] = flat->next;
}

static void take(struct areas *areas, struct flat *flat, unsigned from, unsigned n)
{
	struct area out[AREAS_LEAF];
	unsigned taken, expected = 0, got = 0;

	for (unsigned i = from; i < from + n; i++)
		if (flat->owner[i] && (!i || flat->owner[i - 1] != flat->owner[i]))
			expected++;
	while ((taken = areas_take(
			areas, unit_iova(flat, from), unit_iova(flat, from + n) - 1, out))) {
		for (unsigned i = 0; i < taken; i++) {
			unsigned unit = (unsigned)((out[i].first - flat->base) / UNIT);
			unsigned owner = flat->owner[unit];

			assert_int_equal(out[i].offset, owner);
			for (; unit < SLOTS && flat->owner[unit] == owner; unit++)
				flat->owner[unit] = 0;
		}
		got += taken;
	}
	assert_int_equal(got, expected);
}

static void hole(
	struct areas *areas, const struct flat *flat, unsigned low, unsigned n, unsigned alignment)
{
	uint64_t found = 0, first = 0;
	bool any = false;

	for (unsigned i = low; i + n <= SLOTS && !any; i++) {
		if (unit_iova(flat, i) % (alignment * UNIT) == 0 && flat_free(flat, i, n)) {
			any = true;
			first = unit_iova(flat, i);
		}
	}
	assert_int_equal(areas_hole(areas, unit_iova(flat, low), unit_iova(flat, SLOTS) - 1,
				 n * UNIT - 1, alignment * UNIT, 0, &found),
		any);
	if (any)
		assert_int_equal(found, first);
}

static void random_calls(uint64_t base, struct random *random, unsigned calls)
{
	struct flat *flat = calloc(1, sizeof(*flat));
	struct areas areas;

	flat->base = base;
	areas_start(&areas);
	for (unsigned i = 0; i < calls; i++) {
		/* Phases that fill and phases that empty, so that every shape is seen. */
		bool filling = i / 2000 % 2 == 0;
		unsigned from = (unsigned)random_below(random, SLOTS - 16);
		unsigned n = 1 + (unsigned)random_below(random, 3);
		unsigned kind = (unsigned)random_below(random, 8);

		if (kind < (filling ? 6 : 2)) {
			if (flat_free(flat, from, n))
				insert(&areas, flat, from, n);
		} else if (kind < 7) {
			take(&areas, flat, from, n * (1 + (unsigned)random_below(random, 2)));
		} else {
			hole(&areas, flat, from, n * 4, 1u << random_below(random, 4));
		}
		if (i % 16 == 0)
			check(&areas);
		if (i % 512 == 0)
			compare(&areas, flat);
	}
	compare(&areas, flat);
	take(&areas, flat, 0, SLOTS);
	check(&areas);
	assert_int_equal(areas.count, 0);
	assert_int_equal(areas.pool.live, 0);
	areas_stop(&areas);
	free(flat);
}

static void same_as_a_flat_array(void **state)
{
	struct random random = random_start("areas");

	(void)state;
	random_calls(0, &random, 60000);
	random_calls(0x7ffffff000, &random, 20000);
	random_calls(0 - SLOTS * UNIT, &random, 20000);
}

/* In order, from the top, and every other one: the tree packs, and empties to nothing. */
static void orders(void **state)
{
	enum { N = 40000 };
	static const char *const order[] = {"upwards", "downwards", "stride"};

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		struct areas areas;
		struct area out[AREAS_LEAF];

		areas_start(&areas);
		for (unsigned i = 0; i < N; i++) {
			unsigned at = kind == 0 ? i : kind == 1 ? N - 1 - i : i * 17 % N;
			struct area area = {at * UNIT, at * UNIT + UNIT - 1, 8, at};

			assert_int_equal(areas_insert(&areas, &area, NULL), 0);
		}
		check(&areas);
		assert_int_equal(areas.count, N);
		printf("%s: %.1f bytes an area in %llu nodes\n", order[kind],
			(double)(areas.pool.live << AREAS_NODE_SHIFT) / N,
			(unsigned long long)areas.pool.live);
		assert_true(areas.pool.live << AREAS_NODE_SHIFT <= N * 72);
		for (unsigned i = 0; i < N; i++) {
			unsigned at = kind == 0 ? i : kind == 1 ? N - 1 - i : i * 17 % N;

			assert_int_equal(areas_take(&areas, at * UNIT, at * UNIT, out), 1);
			assert_int_equal(out[0].offset, at);
			if (i % 1000 == 0)
				check(&areas);
		}
		assert_int_equal(areas.pool.live, 0);
		areas_stop(&areas);
	}
}

/* What was large and is sparse now gives its nodes back. */
static void sparse_gives_memory_back(void **state)
{
	enum { N = 40000 };
	struct areas areas;
	struct area out[AREAS_LEAF];

	(void)state;
	areas_start(&areas);
	for (unsigned i = 0; i < N; i++) {
		struct area area = {i * UNIT, i * UNIT + UNIT - 1, 8, i};

		assert_int_equal(areas_insert(&areas, &area, NULL), 0);
	}
	for (unsigned i = 0; i < N; i++)
		if (i % 100)
			assert_int_equal(areas_take(&areas, i * UNIT, i * UNIT, out), 1);
	check(&areas);
	assert_int_equal(areas.count, N / 100);
	assert_true(areas.pool.live < 3 * N / 100 / (AREAS_LEAF / 4));
	areas_stop(&areas);
}

/* Each insert again and again, with its first, second ... allocation failing. */
static void no_memory(void **state)
{
	struct areas areas;
	unsigned failures = 0;

	(void)state;
	areas_start(&areas);
	for (unsigned i = 0; i < 4000; i++) {
		unsigned at = i * 17 % 4000;
		struct area area = {at * UNIT, at * UNIT + UNIT - 1, 8, at};

		for (int nth = 1;; nth++) {
			int rc;

			engine_fail_nth = nth;
			rc = areas_insert(&areas, &area, NULL);
			engine_fail_nth = 0;
			if (!rc)
				break;
			failures++;
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(areas.count, i);
			check(&areas);
		}
	}
	check(&areas);
	assert_int_equal(areas.count, 4000);
	assert_true(failures >= areas.pool.live);
	areas_stop(&areas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_a_flat_array),
		cmocka_unit_test(orders),
		cmocka_unit_test(sparse_gives_memory_back),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
