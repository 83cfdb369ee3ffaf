/* SPDX-License-Identifier: MIT */
/* What dmamap bench vduse says of its runs: the middle one, the two sides, and the sentence. */
#include "tests/check.h"

#include "cli/bench_vduse/report.h"

static const struct vduse_options options = {
	.pages = {16},
	.n_pages = 1,
	.shapes = {{16, 8}, {16, 32}},
	.n_shapes = 2,
	.size = 512,
	.runs = 3,
};

static void start_with(struct vduse_report *report, const struct vduse_options *is)
{
	struct complaint complaint;

	*report = (struct vduse_report){0};
	assert_int_equal(vduse_report_plan(report, is, &complaint), 0);
	assert_int_equal(report->n_rows, 4);
	for (unsigned i = 0; i < 4; i++) {
		report->rows[i].units = i % 2 ? 16383 : 1023;
		report->rows[i].request_units = 4;
	}
}

static void start(struct vduse_report *report)
{
	start_with(report, &options);
}

static void add(struct vduse_row *row, uint64_t iops, uint64_t slow, uint64_t requeued)
{
	vduse_row_add(row, &(struct vduse_run){.ops_milli = iops * 1000,
				   .driver = {.completed = 2000, .requeued = requeued},
				   .bounce = {.slow = slow, .flushes = slow / 1000, .pages = 100}});
}

static void rows_are_pairs(void **state)
{
	struct vduse_report report;

	(void)state;
	start(&report);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(report.rows[i].unit_shift, i % 2 ? 12 : 16);
		assert_int_equal(report.rows[i].shape.depth, i < 2 ? 8 : 32);
		assert_string_equal(report.rows[i].side, i % 2 ? "4K" : "native");
		assert_string_equal(vduse_row_granule(&report.rows[i]), i % 2 ? "4K" : "native");
		assert_ptr_equal(report.rows[i].disk, &report.disks[0]);
	}
	assert_int_equal(vduse_row_needed(&report.rows[0]), 512);
	assert_int_equal(vduse_row_needed(&report.rows[2]), 2048);
	/* As the arithmetic of 64 MiB has it. */
	assert_int_equal(vduse_row_requests(&report.rows[0]), 255);
	assert_int_equal(vduse_row_requests(&report.rows[1]), 4095);
	assert_non_null(vduse_published(&report, &report.rows[0]));
	assert_int_equal(vduse_published(&report, &report.rows[0])->fixed, 190000);
	assert_null(vduse_published(&report, &report.rows[2]));
	vduse_report_free(&report);
}

/* What is published is consistent with itself. */
static void what_is_published(void **state)
{
	static const struct vduse_shape shapes[] = {{2, 4}, {4, 4}, {8, 8}, {16, 8}};
	struct vduse_options reads = options;
	struct vduse_report report;

	(void)state;
	start(&report);
	for (unsigned i = 0; i < 4; i++) {
		const struct vduse_published *there;

		report.rows[0].shape = shapes[i];
		there = vduse_published(&report, &report.rows[0]);
		assert_non_null(there);
		assert_true(there->fixed * 1.0 / there->native > 1 + (there->gain - 0.1) / 100);
		assert_true(there->fixed * 1.0 / there->native < 1 + (there->gain + 0.1) / 100);
		assert_true(there->mib_native * 2048 > there->native * 0.995);
		assert_true(there->mib_native * 2048 < there->native * 1.005);
		assert_true(there->mib_fixed * 2048 > there->fixed * 0.995);
		assert_true(there->mib_fixed * 2048 < there->fixed * 1.005);
	}
	reads.reads = true;
	report.options = &reads;
	assert_null(vduse_published(&report, &report.rows[0]));
	reads.reads = false;
	reads.size = 4096;
	assert_null(vduse_published(&report, &report.rows[0]));
	vduse_report_free(&report);
}

static void the_middle_run_stands_for_all(void **state)
{
	struct vduse_report report;
	struct vduse_row *row;

	(void)state;
	start(&report);
	row = &report.rows[0];
	assert_null(vduse_row_middle(row));
	add(row, 300, 3, 0);
	add(row, 100, 1, 0);
	assert_int_equal(vduse_row_middle(row)->bounce.slow, 1);
	add(row, 200, 2, 0);
	assert_int_equal(vduse_row_middle(row)->ops_milli, 200000);
	assert_int_equal(vduse_row_middle(row)->bounce.slow, 2);
	assert_false(vduse_row_failed(row));
	row->runs[2].result.mismatches = 1;
	assert_true(vduse_row_failed(row));
	vduse_report_free(&report);
}

static void explain(struct vduse_report *report, const char *const *wanted, bool noise)
{
	char sentence[VDUSE_SENTENCE];

	vduse_explain(&report->rows[0], &report->rows[1], sentence);
	printf("%s\n", sentence);
	for (; *wanted; wanted++)
		assert_non_null(strstr(sentence, *wanted));
	assert_int_equal(strstr(sentence, "noise") != NULL, noise);
}

static void the_counts_explain(void **state)
{
	struct vduse_report report;

	(void)state;
	/* No request waited, but the caches ran empty. */
	start(&report);
	for (unsigned i = 0; i < 3; i++) {
		add(&report.rows[0], 1000 + i, 6000, 0);
		add(&report.rows[1], 1500 + i, 4, 0);
	}
	assert_int_equal(vduse_change(&report.rows[0], &report.rows[1]), STATS_FASTER);
	assert_true(vduse_gain(&report.rows[0], &report.rows[1]) > 49);
	assert_true(vduse_gain(&report.rows[0], &report.rows[1]) < 51);
	explain(&report,
		(const char *const[]){"no request waited", "empty 3,000 times", "and 2 with 4K",
			"6 and 0 times", "100 and 100", NULL},
		false);
	/* Exhaustion is said first. */
	report.rows[0].shape.depth = report.rows[1].shape.depth = 32;
	report.rows[0].runs[1].driver.requeued = 77;
	explain(&report,
		(const char *const[]){"1,023 units hold 255 requests of the 512 in flight",
			"77 requeues", "4K has room for 4,095", NULL},
		false);
	vduse_report_free(&report);
	/* A gain inside the noise is called that. */
	start(&report);
	for (unsigned i = 0; i < 3; i++) {
		add(&report.rows[0], 1000 + 500 * i, 0, 0);
		add(&report.rows[1], 1200 + 500 * i, 0, 0);
	}
	explain(&report, (const char *const[]){"within the noise", NULL}, true);
	vduse_report_free(&report);
	/* And nobody knows it of one run. */
	start(&report);
	add(&report.rows[0], 1000, 0, 0);
	add(&report.rows[1], 2000, 0, 0);
	explain(&report, (const char *const[]){"too few runs", NULL}, true);
	vduse_report_free(&report);
}

static void add_disk(struct vduse_row *row, uint64_t iops, uint64_t cpu_ns, uint64_t interrupts)
{
	vduse_row_add(row, &(struct vduse_run){.ops_milli = iops * 1000,
				   .cpu_ns = cpu_ns * 1500,
				   .cpu_requests = 1500,
				   .driver = {.completed = 2000,
					   .interrupts = interrupts,
					   .kicks = interrupts * 2}});
}

static void two_commands_are_the_sides(void **state)
{
	char *first[] = {(char[]){"a"}, NULL}, *second[] = {(char[]){"b"}, NULL};
	struct vduse_options two = options;
	struct vduse_report report;
	char text[VDUSE_ROW_TEXT];

	(void)state;
	two.commands[0] = first;
	two.commands[1] = second;
	two.n_commands = 2;
	start_with(&report, &two);
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(report.rows[i].disk->command, i % 2 ? second : first);
		assert_string_equal(report.rows[i].side, i % 2 ? "(2)" : "(1)");
		assert_string_equal(vduse_row_granule(&report.rows[i]), "4K");
		assert_int_equal(report.rows[i].page_shift, 16);
		assert_int_equal(report.rows[i].unit_shift, 12);
		assert_null(vduse_published(&report, &report.rows[i]));
	}
	assert_string_equal(
		vduse_row_text(&report.rows[3], text), "64K pages, 4K units, 16x32, command (2)");
	for (unsigned i = 0; i < 3; i++) {
		add_disk(&report.rows[0], 3000 + i, 8000 + i * 10, 1000);
		add_disk(&report.rows[1], 1500 + i, 2000 + i * 10, 500);
	}
	assert_true(vduse_ratio(&report.rows[0], &report.rows[1]) > 1.99);
	assert_true(vduse_ratio(&report.rows[0], &report.rows[1]) < 2.01);
	assert_true(vduse_gain(&report.rows[0], &report.rows[1]) < -49);
	assert_true(vduse_cpu_ratio(&report.rows[0], &report.rows[1]) > 3.9);
	assert_true(vduse_cpu_ratio(&report.rows[0], &report.rows[1]) < 4.1);
	assert_int_equal(vduse_change(&report.rows[0], &report.rows[1]), STATS_SLOWER);
	assert_int_equal(vduse_cpu_change(&report.rows[0], &report.rows[1]), STATS_FASTER);
	explain(&report,
		(const char *const[]){"500 and 250 interrupts", "1,000 and 500 kicks", NULL},
		false);
	/* One that used as much in one of its runs as the other did. */
	report.rows[1].runs[0].cpu_ns = 8005 * 1500;
	explain(&report, (const char *const[]){"CPU within the noise", NULL}, true);
	report.rows[1].runs[0].ops_milli = 3001000;
	explain(&report, (const char *const[]){"IOPS and CPU within the noise", NULL}, true);
	report.rows[1].runs[0].cpu_ns = 1990 * 1500;
	explain(&report, (const char *const[]){"IOPS within the noise", NULL}, true);
	/* What is not known is no ratio. */
	report.rows[1].runs[1].cpu_requests = 0;
	assert_true(vduse_cpu_ratio(&report.rows[0], &report.rows[1]) == 0);
	assert_int_equal(vduse_cpu_change(&report.rows[0], &report.rows[1]), STATS_UNKNOWN);
	vduse_report_free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_pairs),
		cmocka_unit_test(what_is_published),
		cmocka_unit_test(the_middle_run_stands_for_all),
		cmocka_unit_test(the_counts_explain),
		cmocka_unit_test(two_commands_are_the_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
