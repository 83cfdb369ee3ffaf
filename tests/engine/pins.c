/* SPDX-License-Identifier: MIT */
/*
 * Counts of pages against a flat array of counters: any adds, removals, splits
 * and questions, with memory that runs out now and then. What fails changes
 * nothing; removals take no memory.
 */
#include <errno.h>

#include "dmamap/engine.h"
#include "engine/pool.h"
#include "tests/check.h"

#define PAGES  80u
#define RANGES 40u
#define STEPS  60000u

/* Ranges that are still to be removed, and what they add up to. */
struct flat {
	struct {
		unsigned first, last;
	} range[RANGES];
	unsigned n;
	unsigned count[PAGES];
	uint64_t base; /* the page of count[0] */
};

/* Adds or takes away one range. How many pages became pinned, or ceased to be. */
static unsigned flat_change(struct flat *flat, unsigned first, unsigned last, bool more)
{
	unsigned pages = 0;

	for (unsigned i = first; i <= last; i++) {
		pages += flat->count[i] == !more;
		flat->count[i] += more ? 1U : -1U;
	}
	return pages;
}

/* Every answer about @page, however far is looked. */
static void ask(const struct dmamap_pins *pins, const struct flat *flat, unsigned page)
{
	unsigned end = page;
	uint64_t last = UINT64_MAX;

	while (end + 1 < PAGES && flat->count[end + 1] == flat->count[page])
		end++;
	assert_int_equal(dmamap_pins_at(pins, flat->base + page, &last), flat->count[page]);
	/* Behind the array there is nothing. */
	if (end + 1 == PAGES && !flat->count[page])
		assert_true(last == UINT64_MAX);
	else
		assert_true(last == flat->base + end);
	for (unsigned to = page; to < PAGES; to++) {
		last = flat->base + to;
		dmamap_pins_at(pins, flat->base + page, &last);
		assert_true(last == flat->base + (to < end ? to : end));
	}
}

static void compare(const struct dmamap_pins *pins, const struct flat *flat)
{
	unsigned pinned = 0;
	uint64_t last;

	for (unsigned page = 0; page < PAGES; page++) {
		last = UINT64_MAX;
		assert_int_equal(dmamap_pins_at(pins, flat->base + page, &last), flat->count[page]);
		pinned += flat->count[page] > 0;
	}
	assert_int_equal(pins->pinned, pinned);
	if (flat->base) {
		last = UINT64_MAX;
		assert_int_equal(dmamap_pins_at(pins, 0, &last), 0);
		for (unsigned page = 0; page < PAGES; page++)
			if (flat->count[page]) {
				assert_true(last == flat->base + page - 1);
				return;
			}
		assert_true(last == UINT64_MAX);
	}
}

static bool add(struct dmamap_pins *pins, struct flat *flat, struct random *random)
{
	unsigned first = (unsigned)random_below(random, PAGES);
	unsigned last = first + (unsigned)random_below(random, PAGES - first);
	uint64_t pinned = 0;
	int rc;

	if (flat->n == RANGES)
		return true;
	/* Often one that is there: while all are the same, no memory is taken. */
	if (flat->n && random_below(random, 4)) {
		unsigned same = (unsigned)random_below(random, flat->n);

		first = flat->range[same].first;
		last = flat->range[same].last;
	}
	rc = dmamap_pins_add(pins, flat->base + first, flat->base + last, &pinned);
	if (rc) {
		assert_int_equal(rc, -ENOMEM);
		return false;
	}
	assert_int_equal(pinned, flat_change(flat, first, last, true));
	flat->range[flat->n].first = first;
	flat->range[flat->n++].last = last;
	return true;
}

/* With memory that has run out. */
static void remove_any(struct dmamap_pins *pins, struct flat *flat, struct random *random)
{
	unsigned i, first, last;

	if (!flat->n)
		return;
	i = (unsigned)random_below(random, flat->n);
	first = flat->range[i].first;
	last = flat->range[i].last;
	flat->range[i] = flat->range[--flat->n];
	engine_fail_nth = 1;
	assert_int_equal(dmamap_pins_remove(pins, flat->base + first, flat->base + last),
		flat_change(flat, first, last, false));
	assert_int_equal(engine_fail_nth, 1);
	engine_fail_nth = 0;
}

/* Cuts one range in up to four parts; or prepares for it, and leaves it whole. */
static bool split(struct dmamap_pins *pins, struct flat *flat, struct random *random)
{
	unsigned more = (unsigned)random_below(random, 4);
	bool undo = !random_below(random, 4);
	unsigned i;
	int rc;

	if (!flat->n || flat->n + more > RANGES)
		return true;
	i = (unsigned)random_below(random, flat->n);
	if (flat->range[i].last - flat->range[i].first < more)
		return true;
	rc = dmamap_pins_split(pins, more);
	if (rc) {
		assert_int_equal(rc, -ENOMEM);
		return false;
	}
	if (undo) {
		dmamap_pins_unsplit(pins, more);
		return true;
	}
	/* Each cut leaves enough pages behind it for those that follow. */
	for (; more; more--) {
		unsigned first = flat->range[i].first;
		unsigned room = flat->range[i].last - first + 1 - more;
		unsigned last = first + (unsigned)random_below(random, room);

		flat->range[flat->n].first = first;
		flat->range[flat->n++].last = last;
		flat->range[i].first = last + 1;
	}
	return true;
}

/* Pages at the start, in the middle, and at the end of what there can be. */
static const uint64_t bases[] = {0, 1ULL << 36, UINT64_MAX - PAGES};

static void same_as_a_flat_array(void **state)
{
	struct random random = random_start("pins");

	(void)state;
	for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
		struct flat flat = {.base = bases[b]};
		struct dmamap_pins pins = {0};
		unsigned failures = 0, empty = 0;
		bool grow = true;

		for (unsigned step = 0; step < STEPS / 3; step++) {
			unsigned what = (unsigned)random_below(&random, 8);
			bool done = true;

			if (!random_below(&random, 16))
				grow = !grow;
			engine_fail_nth = !random_below(&random, 3);
			if (what == 7)
				done = split(&pins, &flat, &random);
			else if (grow == (what < 5))
				done = add(&pins, &flat, &random);
			else
				remove_any(&pins, &flat, &random);
			engine_fail_nth = 0;
			failures += !done;
			empty += !flat.n;
			compare(&pins, &flat);
			ask(&pins, &flat, (unsigned)random_below(&random, PAGES));
		}
		/* All of it was met. */
		assert_true(failures > 10);
		assert_true(empty > 10);
		while (flat.n) {
			remove_any(&pins, &flat, &random);
			compare(&pins, &flat);
		}
		/* The last removal has freed what was held. */
		assert_null(pins.edges);
	}
}

/* All fills of most memories are of the whole of it. */
static void one_range_takes_no_memory(void **state)
{
	struct dmamap_pins pins = {0};
	uint64_t pinned;

	(void)state;
	engine_fail_nth = 1;
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(dmamap_pins_add(&pins, 7, 1000, &pinned), 0);
		assert_int_equal(pinned, i ? 0 : 994);
	}
	for (unsigned i = 100; i-- > 0;)
		assert_int_equal(dmamap_pins_remove(&pins, 7, 1000), i ? 0 : 994);
	/* And so does the next one, which is another. */
	assert_int_equal(dmamap_pins_add(&pins, 0, UINT64_MAX - 1, NULL), 0);
	assert_true(pins.pinned == UINT64_MAX);
	/* A second one does. */
	assert_int_equal(dmamap_pins_add(&pins, 0, 0, NULL), -ENOMEM);
	engine_fail_nth = 1;
	assert_int_equal(dmamap_pins_split(&pins, 0), 0);
	assert_int_equal(dmamap_pins_split(&pins, 1), -ENOMEM);
	assert_int_equal(engine_fail_nth, 0);
	assert_true(dmamap_pins_remove(&pins, 0, UINT64_MAX - 1) == UINT64_MAX);
	assert_null(pins.edges);
}

/* As many edges as there can be: single pages apart; one range without every second page. */
static void most_edges(void **state)
{
	struct dmamap_pins pins = {0};
	uint64_t last;

	(void)state;
	for (uint64_t page = 0; page < PAGES; page += 2)
		assert_int_equal(dmamap_pins_add(&pins, page, page, NULL), 0);
	engine_fail_nth = 1;
	for (uint64_t page = 0; page < PAGES; page += 2)
		assert_int_equal(dmamap_pins_remove(&pins, page, page), 1);
	engine_fail_nth = 0;
	assert_int_equal(dmamap_pins_add(&pins, 0, PAGES - 1, NULL), 0);
	assert_int_equal(dmamap_pins_split(&pins, PAGES - 1), 0);
	engine_fail_nth = 1;
	for (uint64_t page = 1; page < PAGES; page += 2)
		assert_int_equal(dmamap_pins_remove(&pins, page, page), 1);
	for (uint64_t page = 0; page < PAGES; page++) {
		last = UINT64_MAX;
		assert_int_equal(dmamap_pins_at(&pins, page, &last), !(page & 1));
		assert_true(last == (page == PAGES - 1 ? UINT64_MAX : page));
	}
	for (uint64_t page = 0; page < PAGES; page += 2)
		assert_int_equal(dmamap_pins_remove(&pins, page, page), 1);
	assert_int_equal(engine_fail_nth, 1);
	engine_fail_nth = 0;
	assert_null(pins.edges);
}

static void refuses(void **state)
{
	struct dmamap_pins pins = {0};
	uint64_t last = UINT64_MAX;

	(void)state;
	assert_int_equal(dmamap_pins_add(&pins, 2, 1, NULL), -EINVAL);
	assert_int_equal(dmamap_pins_add(&pins, 0, UINT64_MAX, NULL), -EINVAL);
	assert_int_equal(pins.pinned, 0);
	assert_int_equal(dmamap_pins_at(&pins, 0, &last), 0);
	assert_true(last == UINT64_MAX);
}

/* Whatever is in it, it is as new, and holds nothing (LeakSanitizer sees that). */
static void clears(void **state)
{
	struct dmamap_pins pins = {0};
	uint64_t last = UINT64_MAX;

	(void)state;
	dmamap_pins_clear(&pins);
	/* Room may be asked for before there is a range. */
	assert_int_equal(dmamap_pins_split(&pins, 3), 0);
	assert_int_equal(dmamap_pins_at(&pins, 0, &last), 0);
	assert_true(last == UINT64_MAX);
	dmamap_pins_unsplit(&pins, 3);
	for (uint64_t page = 0; page < 50; page++)
		assert_int_equal(dmamap_pins_add(&pins, page, 2 * page, NULL), 0);
	assert_int_equal(pins.pinned, 99);
	dmamap_pins_clear(&pins);
	assert_int_equal(pins.pinned, 0);
	last = UINT64_MAX;
	assert_int_equal(dmamap_pins_at(&pins, 30, &last), 0);
	assert_true(last == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_a_flat_array),
		cmocka_unit_test(one_range_takes_no_memory),
		cmocka_unit_test(most_edges),
		cmocka_unit_test(refuses),
		cmocka_unit_test(clears),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
