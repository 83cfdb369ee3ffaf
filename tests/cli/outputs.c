/* SPDX-License-Identifier: MIT */
/* Every output of a report made by hand: what has to be in each of them. */
#include <errno.h>
#include <unistd.h>

#include <json-c/json.h>

#include "cli/bench/compare.h"
#include "cli/bench/print.h"
#include "tests/check.h"

#define RESULTS 5
#define RUNS	4

static const char note[] = "made by hand for a test";
static struct variant variants[VARIANTS_MAX];

static const struct variant *find(const char *name)
{
	size_t n = variants_list(variants);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(variants[i].name, name))
			return &variants[i];
	fail_msg("no variant %s", name);
	return NULL;
}

static void add(struct report *report, const char *name, enum status status, uint64_t map_ns)
{
	struct result *result = &report->results[report->n_results++];

	*result = (struct result){
		.system = &report->systems[0],
		.variant = find(name),
		.stride = -1,
		.status = status,
		.size = 256 << 20,
		.page_size = 4096,
		.alignment = 256 << 20,
		.huge_bytes = UINT64_MAX,
	};
	if (status != STATUS_RUN)
		return;
	result->samples = calloc(RUNS, sizeof(*result->samples));
	result->n = RUNS;
	for (unsigned i = 0; i < RUNS; i++)
		result->samples[i] = (struct sample){
			.ns = {1000000 + i, map_ns + i, 3000 + i, 4000 + i},
			.va = 0x7f0000000000,
			.iova = 0x10000000,
		};
	result->counted = true;
	result->work.lookups = 65536;
	result->work.leaves[12] = 65536;
	result->work.table_bytes = 528384;
}

static void make(struct report *report, uint64_t map_ns)
{
	struct result *bar;

	*report = (struct report){.seed = 1, .runs = RUNS, .n_systems = 1};
	host_read(&report->host);
	report->systems[0] = (struct system_info){
		.name = "soft",
		.note = note,
		.device = "0000:00:03.0",
		.page_size = 4096,
		.leaf_sizes = 1ull << 12 | 1ull << 21 | 1ull << 30,
	};
	report->results = calloc(RESULTS, sizeof(*report->results));
	add(report, "vfio_type1v2_iommu_anonymous_populate", STATUS_RUN, map_ns);
	add(report, "vfio_type1v2_iommu_memfd_hugetlb_1gb_demand", STATUS_RUN, map_ns);
	report->results[1].declared = true;
	add(report, "vfio_type1v2_iommu_bar_misaligned_4kb", STATUS_RUN, map_ns);
	bar = &report->results[2];
	bar->size = 32ull << 30;
	bar->stride = DMAMAP_PFNMAP_LEAF;
	bar->work.lookups = 8388608;
	for (unsigned i = 0; i < RUNS; i++)
		bar->samples[i].va += 4096;
	add(report, "iommufd_bar", STATUS_REFUSED, 0);
	report->results[3].error = EFAULT;
	strcpy(report->results[3].reason, "no pages, \"none\" at all");
	add(report, "iommufd_memfd_hugetlb_2mb_demand", STATUS_SKIPPED, 0);
	strcpy(report->results[4].reason, "no 2 MiB huge pages");
	strcpy(report->results[4].hint, "echo 128 > nr_hugepages");
}

static char *print(const struct report *report, void (*printer)(FILE *, const struct report *))
{
	/* Static: gcc 12 takes the text for a pointer to these two, and warns of their end. */
	static char *text;
	static size_t size;
	FILE *file = open_memstream(&text, &size);

	printer(file, report);
	fclose(file);
	return text;
}

static void table(FILE *out, const struct report *report)
{
	print_table(out, report, &(struct style){.color = false});
}

static void wide_table(FILE *out, const struct report *report)
{
	print_table(out, report, &(struct style){.color = true, .wide = true});
}

static void verbose(FILE *out, const struct report *report)
{
	print_verbose(out, report, &(struct style){.color = false});
}

static void json(FILE *out, const struct report *report)
{
	assert_int_equal(print_json(out, report), 0);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void every_output_says_what_the_times_are(void **state)
{
	void (*const printers[])(FILE *, const struct report *) = {
		table, wide_table, verbose, json, print_csv, print_tap};

	(void)state;
	for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++) {
		struct report report;
		char *text;

		make(&report, 2000);
		text = print(&report, printers[i]);
		assert_non_null(strstr(text, note));
		free(text);
		report_free(&report);
	}
}

static void table_fits_in_100_columns(void **state)
{
	struct report report;
	char *text;
	char *line;
	char *rest;

	(void)state;
	make(&report, 2000);
	text = print(&report, table);
	/* The head has names of processors and may be longer. */
	rest = strstr(text, "\n\n");
	assert_non_null(rest);
	while ((line = strsep(&rest, "\n")))
		if (!strstr(line, " declared"))
			assert_true(strlen(line) <= 100);
	free(text);
	report_free(&report);
}

static void table_has_numbers_reasons_and_hints(void **state)
{
	static const char *const words[] = {
		"anonymous",
		"populate",
		"256M",
		"1.00 ms",
		"2.00 us",
		"65,536",
		"0/0/65,536",
		"516K",
		" declared\n",
		"32G",
		"8,388,608",
		"the VA is 4 KiB off the BAR's address modulo 1 GiB: every page is looked up alone",
		"refused EFAULT: no pages",
		"skipped: no 2 MiB huge pages [1]",
		"[1] echo 128 > nr_hugepages",
		"3 run, 1 skipped, 1 refused as they must be, 0 failed",
	};
	struct report report;
	char *text;

	(void)state;
	make(&report, 2000);
	text = print(&report, table);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(text, words[i]))
			fail_msg("no \"%s\" in:\n%s", words[i], text);
	assert_null(strchr(text, '\033'));
	free(text);
	text = print(&report, wide_table);
	assert_non_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "map/page"));
	free(text);
	report_free(&report);
}

/* No line of a declared result can be quoted without the word. */
static void verbose_says_declared_on_every_line(void **state)
{
	struct report report;
	char *text;
	char *line;
	char *rest;
	bool inside = false;
	unsigned lines = 0;

	(void)state;
	make(&report, 2000);
	text = print(&report, verbose);
	assert_non_null(strstr(text, "mapped host 0x7f0000000000, size 0x10000000 (256 MiB), "
				     "iova 0x10000000, in 2.00 us"));
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		if (line[0] != ' ')
			inside = strstr(line, "hugetlb_1gb");
		lines += inside;
		if (inside)
			assert_non_null(strstr(line, "declared"));
	}
	assert_true(lines > 10);
	free(text);
	report_free(&report);
}

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no field %s", key);
	return value;
}

static void json_has_every_sample(void **state)
{
	struct report report;
	struct json_object *root;
	struct json_object *result;
	struct json_object *map;
	char *text;

	(void)state;
	make(&report, 2000);
	text = print(&report, json);
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_string_equal(
		json_object_get_string(get(get(root, "schema"), "name")), "dmamap-bench");
	assert_int_equal(json_object_get_int(get(get(root, "schema"), "version")), 1);
	assert_string_equal(
		json_object_get_string(get(get(root, "host"), "kernel")), report.host.kernel);
	assert_int_equal(json_object_array_length(get(root, "results")), RESULTS);
	result = json_object_array_get_idx(get(root, "results"), 0);
	map = get(get(result, "phases"), "map");
	assert_int_equal(json_object_array_length(get(map, "samples_ns")), RUNS);
	assert_int_equal(json_object_get_uint64(get(map, "min_ns")), 2000);
	assert_int_equal(json_object_get_uint64(get(map, "max_ns")), 2003);
	assert_int_equal(
		json_object_get_uint64(get(get(get(result, "counters"), "leaves"), "4096")), 65536);
	assert_string_equal(json_object_get_string(get(result, "note")), note);
	result = json_object_array_get_idx(get(root, "results"), 1);
	assert_true(json_object_get_boolean(get(result, "declared")));
	assert_null(get(get(result, "phases"), "mmap"));
	result = json_object_array_get_idx(get(root, "results"), 2);
	assert_string_equal(json_object_get_string(get(result, "pfnmap_stride")), "leaf");
	result = json_object_array_get_idx(get(root, "results"), 3);
	assert_string_equal(json_object_get_string(get(result, "status")), "refused");
	assert_string_equal(json_object_get_string(get(result, "error")), "EFAULT");
	json_object_put(root);
	free(text);
	report_free(&report);
}

/* Fields of one line, by RFC 4180. */
static unsigned fields(const char *line)
{
	unsigned n = 1;
	bool quoted = false;

	for (; *line; line++) {
		if (*line == '"')
			quoted = !quoted;
		n += *line == ',' && !quoted;
	}
	return n;
}

static void csv_lines_have_the_same_columns(void **state)
{
	struct report report;
	char *text;
	char *line;
	char *rest;
	unsigned head = 0;
	unsigned lines = 0;

	(void)state;
	make(&report, 2000);
	text = print(&report, print_csv);
	assert_non_null(strstr(text, "\"no pages, \"\"none\"\" at all\""));
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		if (!lines++)
			head = fields(line);
		assert_int_equal(fields(line), head);
	}
	assert_int_equal(lines, RESULTS + 1);
	free(text);
	report_free(&report);
}

static void tap_keeps_its_plan(void **state)
{
	struct report report;
	char *text;

	(void)state;
	make(&report, 2000);
	report.results[0].status = STATUS_FAILED;
	text = print(&report, print_tap);
	assert_memory_equal(text, "TAP version 13\n1..5\n", 20);
	assert_int_equal(count(text, "\nok "), 4);
	assert_int_equal(count(text, "\nnot ok 1 soft.vfio_type1v2_iommu_anonymous_populate\n"), 1);
	assert_non_null(strstr(text, "ok 3 soft.vfio_type1v2_iommu_bar_misaligned_4kb.leaf\n"));
	assert_non_null(strstr(text, " # SKIP no 2 MiB huge pages; try: echo 128"));
	assert_non_null(strstr(text, "# Totals: pass:3 fail:1 xfail:0 xpass:0 skip:1 error:0\n"));
	free(text);
	report_free(&report);
}

/* Write one report as JSON, compare another with it; the text and the number of slow phases. */
static size_t compare(uint64_t then_ns, uint64_t now_ns, double threshold, char **text)
{
	char path[] = "/tmp/dmamap-compare-XXXXXX";
	struct complaint complaint;
	struct report report;
	struct base *base;
	size_t slow;
	size_t size;
	FILE *file = fdopen(mkstemp(path), "w");

	make(&report, then_ns);
	assert_int_equal(print_json(file, &report), 0);
	fclose(file);
	report_free(&report);
	assert_int_equal(base_read(path, &base, &complaint), 0);
	make(&report, now_ns);
	file = open_memstream(text, &size);
	slow = compare_print(file, base, &report, threshold, &(struct style){.color = false});
	fclose(file);
	base_free(base);
	report_free(&report);
	unlink(path);
	return slow;
}

static void comparison_counts_what_is_slower(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(compare(2000, 2000, 10, &text), 0);
	assert_non_null(strstr(text, "1.000  "));
	assert_non_null(strstr(text, "3 compared, 0 phases slower"));
	free(text);
	/* Twice as slow, in each of the three results that ran; mmap and the others as before. */
	assert_int_equal(compare(2000, 4000, 10, &text), 3);
	assert_int_equal(count(text, "1.999 !") + count(text, "2.000 !"), 3);
	free(text);
	assert_int_equal(compare(2000, 4000, 150, &text), 0);
	assert_int_equal(count(text, " +"), 3 + 1); /* and the legend */
	free(text);
	assert_int_equal(compare(4000, 2000, 10, &text), 0);
	assert_int_equal(count(text, "0.500 -"), 3);
	free(text);
	/* Slower, but within the noise of three nanoseconds. */
	assert_int_equal(compare(2000, 2002, 0, &text), 0);
	free(text);
}

static void another_size_is_not_compared(void **state)
{
	char path[] = "/tmp/dmamap-compare-XXXXXX";
	struct complaint complaint;
	struct report report;
	struct base *base;
	char *text;
	size_t size;
	FILE *file = fdopen(mkstemp(path), "w");

	(void)state;
	make(&report, 2000);
	assert_int_equal(print_json(file, &report), 0);
	fclose(file);
	assert_int_equal(base_read(path, &base, &complaint), 0);
	report.results[0].size *= 2;
	file = open_memstream(&text, &size);
	assert_int_equal(compare_print(file, base, &report, 10, &(struct style){0}), 0);
	fclose(file);
	assert_non_null(strstr(text, "not compared: another size"));
	assert_non_null(strstr(text, "2 compared"));
	free(text);
	base_free(base);
	report_free(&report);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_output_says_what_the_times_are),
		cmocka_unit_test(table_fits_in_100_columns),
		cmocka_unit_test(table_has_numbers_reasons_and_hints),
		cmocka_unit_test(verbose_says_declared_on_every_line),
		cmocka_unit_test(json_has_every_sample),
		cmocka_unit_test(csv_lines_have_the_same_columns),
		cmocka_unit_test(tap_keeps_its_plan),
		cmocka_unit_test(comparison_counts_what_is_slower),
		cmocka_unit_test(another_size_is_not_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
