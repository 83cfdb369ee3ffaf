/* SPDX-License-Identifier: MIT */
/*
 * The kernel's work beside soft's, in reports made by hand: which rows are
 * paired, what the kernel's counts have to be, and what each output shows. The
 * counts are those of Linux 7.3 in type1's loops (docs/dmamap-bench.1.scd).
 */
#include <json-c/json.h>

#include "cli/bench/print.h"
#include "cli/bench/work.h"
#include "tests/check.h"

#define ROWS	   8
#define GIB	   ((uint64_t)1 << 30)
#define BAR	   (32 * GIB)
#define PAGES	   (BAR / 4096)
#define LINUX	   1
#define SOFT	   0
#define FILE_PAGES 8192

static struct variant variants[VARIANTS_MAX];

static void start(struct report *report, int stride)
{
	*report = (struct report){.n_systems = 2, .runs = 1, .seed = 1};
	report->results = calloc(ROWS, sizeof(*report->results));
	report->systems[SOFT] = (struct system_info){.name = "soft",
		.device = "0000:00:03.0",
		.page_size = 4096,
		.leaf_sizes = 1ull << 12 | 1ull << 21 | 1ull << 30,
		.stride = -1};
	report->systems[LINUX] = (struct system_info){.name = "linux",
		.device = "0000:00:04.0",
		.page_size = 4096,
		.stride = stride,
		.probed = true};
}

static struct result *add(
	struct report *report, unsigned system, const char *name, uint64_t size, uint64_t page_size)
{
	struct result *result = &report->results[report->n_results++];
	size_t n = variants_list(variants);
	size_t v = 0;

	while (v < n && strcmp(variants[v].name, name))
		v++;
	assert_true(v < n);
	*result = (struct result){.system = &report->systems[system],
		.variant = &variants[v],
		.stride = -1,
		.size = size,
		.page_size = page_size,
		.huge_bytes = UINT64_MAX,
		.n = 1};
	result->samples = calloc(1, sizeof(*result->samples));
	return result;
}

static struct result *add_soft(struct report *report, const char *name, uint64_t size,
	uint64_t page_size, int stride, uint64_t lookups)
{
	struct result *result = add(report, SOFT, name, size, page_size);

	result->stride = stride;
	result->counted = true;
	result->work.lookups = lookups;
	return result;
}

static struct result *add_linux(struct report *report, const char *name, uint64_t size,
	uint64_t page_size, enum kernel_event pin, uint64_t steps)
{
	struct result *result = add(report, LINUX, name, size, page_size);

	result->probed = true;
	result->kernel.map[pin] = steps;
	return result;
}

static void count_maps(struct result *result, uint64_t maps, uint64_t lookups)
{
	result->kernel.map[KERNEL_MAP_EVENT] = maps;
	result->kernel.map[KERNEL_IOMMU_MAP] = maps;
	result->kernel.unmap[KERNEL_UNMAP_EVENT] = maps;
	result->kernel.unmap[KERNEL_LOOKUP] = lookups;
}

/* The aligned BAR on a kernel, beside both of soft's strides. */
static struct result *make_bar(struct report *report, int stride, uint64_t steps)
{
	static const char name[] = "vfio_type1v2_iommu_bar";
	struct result *soft[2];
	struct result *result;

	start(report, stride);
	soft[0] = add_soft(report, name, BAR, 0, DMAMAP_PFNMAP_LEAF, 32);
	soft[1] = add_soft(report, name, BAR, 0, DMAMAP_PFNMAP_PAGE, PAGES);
	for (unsigned i = 0; i < 2; i++)
		soft[i]->work.leaves[30] = soft[i]->work.cleared[30] = 32;
	result = add_linux(report, name, BAR, 0, KERNEL_PIN_REMOTE, steps);
	result->kernel.map[KERNEL_PFNMAP] = 2 * steps;
	count_maps(result, 1, PAGES);
	return result;
}

static void a_bar_is_paired_by_the_kernels_stride(void **state)
{
	static const struct {
		int stride;
		uint64_t lookups;
	} cases[] = {{DMAMAP_PFNMAP_LEAF, 32}, {DMAMAP_PFNMAP_PAGE, PAGES}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct report report;
		struct result *result = make_bar(&report, cases[i].stride, cases[i].lookups);
		const struct result *soft = work_twin(&report, result);

		assert_non_null(soft);
		assert_int_equal(soft->work.lookups, cases[i].lookups);
		/* Only what ran, on the same size, on memory that was there. */
		result->size /= 2;
		assert_null(work_twin(&report, result));
		result->size *= 2;
		report.results[i].declared = true;
		assert_null(work_twin(&report, result));
		report.results[i].declared = false;
		report.results[i].status = STATUS_FAILED;
		assert_null(work_twin(&report, result));
		report_free(&report);
	}
}

static void expect(const struct report *report, const struct result *result, enum work_pair pair,
	enum work_verdict verdict)
{
	const struct result *soft = work_twin(report, result);
	uint64_t count;

	assert_non_null(soft);
	assert_int_equal(work_compare(soft, result, pair, &count), verdict);
}

static void a_bars_counts_are_determined(void **state)
{
	struct report report;
	struct result *result = make_bar(&report, DMAMAP_PFNMAP_LEAF, 32);

	(void)state;
	for (unsigned pair = 0; pair < WORK_PAIRS; pair++)
		expect(&report, result, pair, WORK_EQUAL);
	result->kernel.map[KERNEL_PIN_REMOTE]++;
	expect(&report, result, WORK_STEPS, WORK_DIFFERS);
	count_maps(result, 2, PAGES + 1);
	expect(&report, result, WORK_MAPS, WORK_DIFFERS);
	expect(&report, result, WORK_UNMAPS, WORK_DIFFERS);
	report_free(&report);
}

/* 64 MiB of base pages lay in 495 runs: pages + runs - 1 look-ups at unmap. */
static void plain_memory_keeps_type1s_rules(void **state)
{
	static const char name[] = "vfio_type1v2_iommu_anonymous_populate";
	struct report report;
	struct result *result;

	(void)state;
	start(&report, DMAMAP_PFNMAP_LEAF);
	add_soft(&report, name, 64 << 20, 4096, -1, 32);
	result = add_linux(&report, name, 64 << 20, 4096, KERNEL_PIN_REMOTE, 32);
	count_maps(result, 495, 16878);
	expect(&report, result, WORK_STEPS, WORK_EQUAL);
	expect(&report, result, WORK_MAPS, WORK_UNKNOWN);
	expect(&report, result, WORK_UNMAPS, WORK_EQUAL);
	result->kernel.unmap[KERNEL_LOOKUP]--;
	expect(&report, result, WORK_UNMAPS, WORK_DIFFERS);
	/* The number of runs is not known without the event, and so nothing else. */
	strcpy(report.systems[LINUX].uncounted[KERNEL_UNMAP_EVENT], "why");
	expect(&report, result, WORK_UNMAPS, WORK_UNKNOWN);
	/* A step more is nothing that must not be. */
	result->kernel.map[KERNEL_PIN_REMOTE]++;
	expect(&report, result, WORK_STEPS, WORK_UNKNOWN);
	report_free(&report);
}

static void each_iommufd_mode_has_its_own_step(void **state)
{
	static const struct {
		const char *name;
		uint64_t size;
		uint64_t page_size;
		uint64_t soft;
		enum kernel_event pin;
		uint64_t steps;
		uint64_t maps;
	} cases[] = {
		{"iommufd_anonymous_hugetlb_2mb_populate", 2 << 20, 2 << 20, 1, KERNEL_PIN_FAST, 1,
			1},
		{"iommufd_compat_type1v2_anonymous_demand", 4096, 4096, 1, KERNEL_PIN_FAST, 1, 1},
		{"iommufd_compat_type1_anonymous_hugetlb_2mb_demand", 2 << 20, 2 << 20, 1,
			KERNEL_PIN_FAST, 1, 512},
		/* Pages of the file on soft; calls of 8,192 base pages on Linux. */
		{"iommufd_file_memfd_hugetlb_1gb_populate", GIB, GIB, 1, KERNEL_PIN_FOLIOS,
			GIB / 4096 / FILE_PAGES, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct report report;
		struct result *result;
		uint64_t lookups;

		start(&report, DMAMAP_PFNMAP_LEAF);
		add_soft(&report, cases[i].name, cases[i].size, cases[i].page_size, -1,
			cases[i].soft);
		result = add_linux(&report, cases[i].name, cases[i].size, cases[i].page_size,
			cases[i].pin, cases[i].steps);
		count_maps(result, cases[i].maps, cases[i].size / 4096);
		assert_true(work_lookups(result, &lookups));
		assert_int_equal(lookups, cases[i].steps);
		for (unsigned pair = 0; pair < WORK_PAIRS; pair++)
			expect(&report, result, pair, WORK_EQUAL);
		/* Another function's count is none of this mode's. */
		strcpy(report.systems[LINUX].uncounted[cases[i].pin], "why");
		result->kernel.map[cases[i].pin] = 0;
		result->kernel.map[KERNEL_PIN_REMOTE] = 7;
		assert_false(work_lookups(result, &lookups));
		report_free(&report);
	}
}

/* 128 MiB of base pages in 28,830 runs, as counted on Linux 7.3: five full batches. */
static void iommufd_looks_up_again_where_its_batch_is_full(void **state)
{
	static const char name[] = "iommufd_memfd_demand";
	struct report report;
	struct result *result;

	(void)state;
	start(&report, DMAMAP_PFNMAP_LEAF);
	add_soft(&report, name, 128 << 20, 4096, -1, 4);
	result = add_linux(&report, name, 128 << 20, 4096, KERNEL_PIN_FAST, 4);
	count_maps(result, 28830, 32773);
	expect(&report, result, WORK_STEPS, WORK_EQUAL);
	expect(&report, result, WORK_MAPS, WORK_UNKNOWN);
	expect(&report, result, WORK_UNMAPS, WORK_EQUAL);
	/* Short of memory, it has smaller batches. */
	result->kernel.unmap[KERNEL_LOOKUP]++;
	expect(&report, result, WORK_UNMAPS, WORK_UNKNOWN);
	report_free(&report);
}

static char *print(const struct report *report, void (*printer)(FILE *, const struct report *))
{
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

static void verbose(FILE *out, const struct report *report)
{
	print_verbose(out, report, &(struct style){.color = false});
}

static void json(FILE *out, const struct report *report)
{
	assert_int_equal(print_json(out, report), 0);
}

static void the_table_shows_both_in_100_columns(void **state)
{
	static const char *const words[] = {
		"32G       -       -       -       -        32             1     -",
		"32        32 =        32         1 =        32 8,388,608 =",
		"look-ups: type1 unmaps by every base page, whatever the leaf",
		"linux: no such thing\n  not counted: pin_user_pages_fast memfd_pin_folios\n",
	};
	struct report report;
	char *text;
	char *rest;
	char *line;

	(void)state;
	make_bar(&report, DMAMAP_PFNMAP_LEAF, 32);
	/* Not timed here: the counts alone are looked at. */
	for (size_t i = 0; i < report.n_results; i++)
		report.results[i].n = 0;
	strcpy(report.systems[LINUX].uncounted[KERNEL_PIN_FAST], "no such thing");
	strcpy(report.systems[LINUX].uncounted[KERNEL_PIN_FOLIOS], "no such thing");
	text = print(&report, table);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(text, words[i]))
			fail_msg("no \"%s\" in:\n%s", words[i], text);
	assert_null(strstr(text, "IOMMUFD unmaps"));
	rest = strstr(text, "\n\n");
	while ((line = strsep(&rest, "\n")))
		assert_true(strlen(line) <= 100);
	free(text);
	report.results[2].kernel.map[KERNEL_PIN_REMOTE] = 33;
	text = print(&report, table);
	assert_non_null(strstr(text, "32        33 !"));
	free(text);
	/* With every count gone, the reason is still there, and fits. */
	for (unsigned i = 0; i < KERNEL_EVENTS; i++)
		strcpy(report.systems[LINUX].uncounted[i], "nobody may count");
	text = print(&report, table);
	assert_non_null(
		strstr(text, "linux: nobody may count\n  not counted: iommu:map iommu:unmap"));
	rest = strstr(text, "\n\n");
	while ((line = strsep(&rest, "\n")))
		assert_true(strlen(line) <= 100);
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

static void data_has_every_count_and_every_reason(void **state)
{
	struct report report;
	struct json_object *root;
	struct json_object *result;
	struct json_object *probes;
	char *text;

	(void)state;
	make_bar(&report, DMAMAP_PFNMAP_PAGE, PAGES);
	strcpy(report.systems[LINUX].uncounted[KERNEL_PIN_FAST], "no such thing");
	text = print(&report, json);
	root = json_tokener_parse(text);
	assert_non_null(root);
	probes = get(json_object_array_get_idx(get(root, "systems"), 0), "probes");
	assert_null(probes);
	probes = get(json_object_array_get_idx(get(root, "systems"), 1), "probes");
	assert_int_equal(json_object_array_length(get(probes, "counted")), KERNEL_EVENTS - 1);
	assert_string_equal(
		json_object_get_string(get(get(probes, "left_out"), "pin_user_pages_fast")),
		"no such thing");
	result = json_object_array_get_idx(get(root, "results"), 0);
	assert_null(get(result, "kernel_counters"));
	result = get(json_object_array_get_idx(get(root, "results"), 2), "kernel_counters");
	assert_int_equal(json_object_get_uint64(get(result, "lookups")), PAGES);
	assert_int_equal(
		json_object_get_uint64(get(get(result, "map"), "follow_pfnmap_start")), 2 * PAGES);
	assert_int_equal(
		json_object_get_uint64(get(get(result, "unmap"), "iommu_iova_to_phys")), PAGES);
	assert_false(json_object_object_get_ex(get(result, "map"), "pin_user_pages_fast", NULL));
	json_object_put(root);
	free(text);

	text = print(&report, print_csv);
	assert_non_null(strstr(text, ",map_iommu:map,unmap_iommu:map,"));
	/* iommu:map, iommu:unmap, pin_user_pages_remote, none of _fast; map and unmap each. */
	assert_non_null(strstr(text, ",1,0,0,1,8388608,0,,,0,0,16777216,0,1,0,0,8388608\n"));
	free(text);

	text = print(&report, verbose);
	assert_non_null(
		strstr(text, "  map, counted: iommu:map 1, pin_user_pages_remote 8,388,608, "
			     "follow_pfnmap_start 16,777,216, iommu_map 1\n"));
	assert_non_null(
		strstr(text, "  unmap, counted: iommu:unmap 1, iommu_iova_to_phys 8,388,608\n"));
	free(text);

	text = print(&report, print_tap);
	assert_non_null(strstr(text, "32 GiB, 8,388,608 look-ups (times: the running kernel"));
	free(text);
	report_free(&report);
}

static void without_probes_nothing_is_said(void **state)
{
	struct report report;
	struct result *result = make_bar(&report, DMAMAP_PFNMAP_LEAF, 32);
	char *text;

	(void)state;
	result->probed = false;
	report.systems[LINUX].probed = false;
	text = print(&report, table);
	assert_null(strstr(text, "work, counted"));
	assert_null(strstr(text, "steps"));
	assert_null(strstr(text, "not counted"));
	assert_null(strstr(text, "iommu:map"));
	free(text);
	text = print(&report, verbose);
	assert_non_null(strstr(text, "  work: not counted on this system\n"));
	strcpy(result->unprobed, "it failed");
	free(text);
	text = print(&report, verbose);
	assert_non_null(strstr(text, "  work: not counted: it failed\n"));
	free(text);
	report_free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bar_is_paired_by_the_kernels_stride),
		cmocka_unit_test(a_bars_counts_are_determined),
		cmocka_unit_test(plain_memory_keeps_type1s_rules),
		cmocka_unit_test(each_iommufd_mode_has_its_own_step),
		cmocka_unit_test(iommufd_looks_up_again_where_its_batch_is_full),
		cmocka_unit_test(the_table_shows_both_in_100_columns),
		cmocka_unit_test(data_has_every_count_and_every_reason),
		cmocka_unit_test(without_probes_nothing_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
