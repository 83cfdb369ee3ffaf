/* SPDX-License-Identifier: MIT */
/* The command line: what is taken, and the sentence for what is not. */
#include "cli/bench/options.h"
#include "tests/check.h"

#define WORDS 8

static int parse(struct options *options, struct complaint *complaint, const char *const *words)
{
	char *argv[WORDS + 2] = {(char *)(uintptr_t) "bench"};
	int argc = 1;

	memset(complaint, 0, sizeof(*complaint));
	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc - 1];
	return options_parse(options, argc, argv, 4096, complaint);
}

static void defaults_are_as_documented(void **state)
{
	struct options options;
	struct complaint complaint;

	(void)state;
	assert_int_equal(parse(&options, &complaint, (const char *const[]){NULL}), 0);
	assert_int_equal(options.action, ACTION_BENCH);
	assert_int_equal(options.systems, SYSTEMS_FOUND);
	assert_int_equal(options.n_globs, 0);
	assert_int_equal(options.size, 0);
	assert_int_equal(options.seed, 1);
	assert_int_equal(options.runs, 5);
	assert_false(options.runs_given);
	assert_int_equal(options.strides, 3);
	assert_int_equal(options.bar, -1);
	assert_true(options.count);
	assert_true(options.threshold == 10);
	options_free(&options);
}

static void values_are_taken(void **state)
{
	struct options options;
	struct complaint complaint;

	(void)state;
	assert_int_equal(parse(&options, &complaint,
				 (const char *const[]){"-t", "a*", "--test=b", "--size=2M",
					 "--runs=3", "--json=x.json", "--csv", NULL}),
		0);
	assert_int_equal(options.n_globs, 2);
	assert_string_equal(options.globs[0], "a*");
	assert_string_equal(options.globs[1], "b");
	assert_int_equal(options.size, 2 << 20);
	assert_int_equal(options.runs, 3);
	assert_true(options.runs_given);
	assert_string_equal(options.output[FORMAT_JSON], "x.json");
	assert_string_equal(options.output[FORMAT_CSV], "-");
	assert_null(options.output[FORMAT_TAP]);
	options_free(&options);

	assert_int_equal(parse(&options, &complaint,
				 (const char *const[]){"--system", "linux", "--stride", "page",
					 "--threshold", "2.5%", "--bar=0", "--no-count", NULL}),
		0);
	assert_int_equal(options.systems, SYSTEMS_LINUX);
	assert_int_equal(options.strides, 2);
	assert_true(options.threshold == 2.5);
	assert_int_equal(options.bar, 0);
	assert_false(options.count);
	options_free(&options);
}

/* Each complaint names the input and says what to do. */
static void bad_input_gets_a_sentence(void **state)
{
	static const struct {
		const char *words[WORDS];
		const char *names;
		const char *says;
	} cases[] = {
		{{"--size", "0"}, "--size 0", "at least one page"},
		{{"--size", "5000"}, "--size 5000", "multiple of 4K"},
		{{"--size", "many"}, "--size many", "such as 256M"},
		{{"--size", "-4096"}, "--size -4096", "such as 256M"},
		{{"--size", "16E"}, "--size 16E", "give less"},
		{{"--runs", "0"}, "--runs 0", "give 1 to"},
		{{"--runs", "x"}, "--runs x", "give one such as"},
		{{"--seed", "99999999999999999999"}, "--seed 9999", "give 0 to"},
		{{"--bar", "6"}, "--bar 6", "give 0 to 5"},
		{{"--system", "mac"}, "--system mac", "soft, linux or all"},
		{{"--stride", "odd"}, "--stride odd", "leaf, page or both"},
		{{"--color=maybe"}, "--color maybe", "auto, always or never"},
		{{"--threshold", "ten"}, "--threshold ten", "such as 10"},
		{{"--threshold", "-1"}, "--threshold -1", "such as 10"},
		{{"--threshold", "nan"}, "--threshold nan", "such as 10"},
		{{"--nonsense"}, "--nonsense", "--help"},
		{{"-x"}, "-x", "--help"},
		{{"--size"}, "--size", "needs a value"},
		{{"-t"}, "-t", "needs a value"},
		{{"anonymous"}, "anonymous", "-t"},
		{{"--json", "--csv"}, "standard output", "--json="},
		{{"--verbose", "--tap"}, "standard output", "--json="},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options options;
		struct complaint complaint;

		assert_int_equal(parse(&options, &complaint, cases[i].words), -1);
		assert_non_null(strstr(complaint.text, cases[i].names));
		assert_non_null(strstr(complaint.text, cases[i].says));
		assert_null(strchr(complaint.text, '\n'));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_as_documented),
		cmocka_unit_test(values_are_taken),
		cmocka_unit_test(bad_input_gets_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
