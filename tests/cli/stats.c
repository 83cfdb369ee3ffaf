/* SPDX-License-Identifier: MIT */
/* Median, min, p90 and max of samples, and when two sets differ beyond their noise. */
#include "cli/bench/stats.h"
#include "tests/check.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void nothing_gives_zeros(void **state)
{
	struct stats stats = stats_of(NULL, 0);

	(void)state;
	assert_int_equal(stats.n, 0);
	assert_int_equal(stats.median, 0);
	assert_int_equal(stats.max, 0);
	assert_true(stats_noise(&stats) == 0);
}

static void one_sample_is_all_of_them(void **state)
{
	uint64_t samples[] = {7};
	struct stats stats = stats_of(samples, N(samples));

	(void)state;
	assert_int_equal(stats.min, 7);
	assert_int_equal(stats.median, 7);
	assert_int_equal(stats.p90, 7);
	assert_int_equal(stats.max, 7);
}

static void order_does_not_matter(void **state)
{
	uint64_t samples[] = {50, 10, 30, 20, 40};
	struct stats stats = stats_of(samples, N(samples));

	(void)state;
	assert_int_equal(stats.min, 10);
	assert_int_equal(stats.median, 30);
	assert_int_equal(stats.p90, 50);
	assert_int_equal(stats.max, 50);
	assert_true(stats_noise(&stats) > 1.33 && stats_noise(&stats) < 1.34);
}

static void p90_leaves_one_tenth_above(void **state)
{
	uint64_t ten[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	uint64_t eleven[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

	(void)state;
	assert_int_equal(stats_of(ten, N(ten)).p90, 9);
	assert_int_equal(stats_of(eleven, N(eleven)).p90, 10);
}

static void even_median_does_not_overflow(void **state)
{
	uint64_t samples[] = {UINT64_MAX, UINT64_MAX - 2};

	(void)state;
	assert_int_equal(stats_of(samples, N(samples)).median, UINT64_MAX - 1);
}

static void bands_that_touch_are_the_same(void **state)
{
	struct stats base = {.n = 5, .min = 100, .median = 110, .p90 = 120};
	struct stats touches = {.n = 5, .min = 120, .median = 130, .p90 = 140};
	struct stats above = {.n = 5, .min = 121, .median = 130, .p90 = 140};
	struct stats below = {.n = 5, .min = 80, .median = 90, .p90 = 99};

	(void)state;
	assert_int_equal(stats_compare(&base, &touches), STATS_SAME);
	assert_int_equal(stats_compare(&base, &above), STATS_SLOWER);
	assert_int_equal(stats_compare(&base, &below), STATS_FASTER);
}

static void few_samples_say_nothing(void **state)
{
	struct stats base = {.n = 5, .min = 100, .median = 110, .p90 = 120};
	struct stats few = {.n = STATS_ENOUGH - 1, .min = 1000, .median = 1000, .p90 = 1000};

	(void)state;
	assert_int_equal(stats_compare(&base, &few), STATS_UNKNOWN);
	assert_int_equal(stats_compare(&few, &base), STATS_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_gives_zeros),
		cmocka_unit_test(one_sample_is_all_of_them),
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(p90_leaves_one_tenth_above),
		cmocka_unit_test(even_median_does_not_overflow),
		cmocka_unit_test(bands_that_touch_are_the_same),
		cmocka_unit_test(few_samples_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
