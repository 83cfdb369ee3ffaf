/* SPDX-License-Identifier: MIT */
/* Sizes, times and counts are read and written as people expect. */
#include <errno.h>

#include "cli/units.h"
#include "tests/check.h"

static void sizes_are_read(void **state)
{
	static const struct {
		const char *text;
		int error;
		uint64_t bytes;
	} cases[] = {
		{"0", 0, 0},
		{"4096", 0, 4096},
		{"0x1000", 0, 4096},
		{"4k", 0, 4096},
		{"256M", 0, 256ull << 20},
		{"32G", 0, 32ull << 30},
		{"32GiB", 0, 32ull << 30},
		{"1T", 0, 1ull << 40},
		{"15E", 0, 15ull << 60},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"16E", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"M", -EINVAL, 0},
		{"1X", -EINVAL, 0},
		{"1MM", -EINVAL, 0},
		{"1.5G", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 0;

		assert_int_equal(units_parse_size(cases[i].text, &bytes), cases[i].error);
		if (!cases[i].error)
			assert_int_equal(bytes, cases[i].bytes);
	}
}

static void numbers_take_no_suffix(void **state)
{
	uint64_t number;

	(void)state;
	assert_int_equal(units_parse_number("17", &number), 0);
	assert_int_equal(number, 17);
	assert_int_equal(units_parse_number("17k", &number), -EINVAL);
	assert_int_equal(units_parse_number("99999999999999999999", &number), -ERANGE);
}

static void sizes_are_written(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(units_size(text, 0), "0 bytes");
	assert_string_equal(units_size(text, 4096), "4 KiB");
	assert_string_equal(units_size(text, 3ull << 29), "1.5 GiB");
	assert_string_equal(units_size(text, 32ull << 30), "32 GiB");
	assert_string_equal(units_size(text, UINT64_MAX), "16.0 EiB");
	assert_string_equal(units_short(text, 512), "512");
	assert_string_equal(units_short(text, 256ull << 20), "256M");
	assert_string_equal(units_short(text, 1536), "1.5K");
}

static void times_have_three_digits(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},
		{999, "999 ns"},
		{1000, "1.00 us"},
		{9994, "9.99 us"},
		{9995, "10.0 us"},
		{99949, "99.9 us"},
		{99950, "100 us"},
		{999499, "999 us"},
		{999500, "1.00 ms"},
		{1234567890, "1.23 s"},
		{60000000000, "60.0 s"},
		{3600000000000, "3600 s"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[UNITS_TEXT];

		assert_string_equal(units_time(text, cases[i].ns), cases[i].text);
	}
}

static void counts_have_separators(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(units_count(text, 0), "0");
	assert_string_equal(units_count(text, 999), "999");
	assert_string_equal(units_count(text, 1000), "1,000");
	assert_string_equal(units_count(text, 8388608), "8,388,608");
	assert_string_equal(units_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void rates_stay_short(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(units_rate(text, 0), "0");
	assert_string_equal(units_rate(text, 0.0001), "<0.001");
	assert_string_equal(units_rate(text, 0.012345), "0.0123");
	assert_string_equal(units_rate(text, 999.4), "999");
	assert_string_equal(units_rate(text, 149700.4), "149,700");
}

/* What is written so is the same number when it is read. */
static void exact(void **state)
{
	static const uint64_t numbers[] = {0, 1, 1023, 1024, 4096, 4097, 2 << 20, (2 << 20) + 1024,
		1ULL << 40, 15ULL << 60, UINT64_MAX};
	char text[UNITS_TEXT];
	uint64_t again;

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_int_equal(units_parse_size(units_exact(text, numbers[i]), &again), 0);
		assert_int_equal(again, numbers[i]);
	}
	assert_string_equal(units_exact(text, 2 << 20), "2M");
	assert_string_equal(units_exact(text, 1025), "1025");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(numbers_take_no_suffix),
		cmocka_unit_test(sizes_are_written),
		cmocka_unit_test(times_have_three_digits),
		cmocka_unit_test(counts_have_separators),
		cmocka_unit_test(rates_stay_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
