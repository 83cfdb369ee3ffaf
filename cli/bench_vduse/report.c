/* SPDX-License-Identifier: MIT */
/* The rows, and what their counts say about their times. */
#include "report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/units.h"

#define FIXED_SHIFT 12

/* vduse: use fixed 4KB bounce pages for non-4KB page size */
static const struct vduse_published publications[] = {
	{{2, 4}, 90900, 96100, 44.4, 47.0, 5.7},
	{{4, 4}, 120300, 125400, 58.8, 61.1, 4.2},
	{{8, 8}, 131100, 153100, 64.0, 74.7, 16.8},
	{{16, 8}, 143000, 190000, 69.8, 92.7, 32.9},
};

/* ------------------------------------------------------------------------------- rows */

static void plan_disks(struct vduse_report *report, const struct vduse_options *options)
{
	static const char *const names[VDUSE_DISKS] = {"(1)", "(2)"};

	report->n_disks = options->n_commands ? options->n_commands : 1;
	for (unsigned i = 0; i < report->n_disks; i++)
		report->disks[i] = (struct vduse_disk){.command = options->commands[i],
			.name = report->n_disks > 1 ? names[i] : ""};
}

/* @side of its pair. */
static void plan_row(struct vduse_report *report, struct vduse_row *row, unsigned side)
{
	static const char *const names[] = {"native", "4K"};

	if (report->n_disks > 1) {
		row->disk = &report->disks[side];
		row->side = row->disk->name;
		row->unit_shift = FIXED_SHIFT;
	} else {
		row->disk = &report->disks[0];
		row->side = names[side];
		row->unit_shift = side ? FIXED_SHIFT : row->page_shift;
	}
}

int vduse_report_plan(struct vduse_report *report, const struct vduse_options *options,
	struct complaint *complaint)
{
	report->options = options;
	plan_disks(report, options);
	report->rows = calloc(2u * options->n_pages * options->n_shapes, sizeof(*report->rows));
	if (!report->rows)
		return complain(complaint, "out of memory");
	for (unsigned i = 0; i < options->n_pages * options->n_shapes * 2; i++) {
		struct vduse_row *row = &report->rows[i];

		row->page_shift = options->pages[i / 2 / options->n_shapes];
		row->shape = options->shapes[i / 2 % options->n_shapes];
		plan_row(report, row, i % 2);
		row->runs = calloc(options->runs, sizeof(*row->runs));
		report->n_rows++;
		if (!row->runs)
			return complain(complaint, "out of memory");
	}
	return 0;
}

void vduse_report_free(struct vduse_report *report)
{
	for (unsigned i = 0; i < report->n_rows; i++)
		free(report->rows[i].runs);
	free(report->rows);
}

uint64_t vduse_bytes_needed(const struct vduse_options *options)
{
	uint64_t needed = 0;

	for (unsigned i = 0; i < options->n_shapes; i++) {
		uint64_t bytes = (uint64_t)options->shapes[i].jobs * options->shapes[i].depth *
				 options->size;

		needed = bytes > needed ? bytes : needed;
	}
	return needed;
}

const char *vduse_note(const struct vduse_report *report)
{
	if (report->options->n_commands)
		return "each interrupt of the command is a call over a socket, which no kernel "
		       "needs: compare with other commands only";
	return "times are this process's: driver, daemon and copies share its CPUs; they predict "
	       "nothing about a kernel";
}

void vduse_row_add(struct vduse_row *row, const struct vduse_run *run)
{
	unsigned at = row->n++;

	for (; at && row->runs[at - 1].ops_milli > run->ops_milli; at--)
		row->runs[at] = row->runs[at - 1];
	row->runs[at] = *run;
}

const struct vduse_run *vduse_row_middle(const struct vduse_row *row)
{
	return row->n ? &row->runs[(row->n - 1) / 2] : NULL;
}

const char *vduse_row_granule(const struct vduse_row *row)
{
	return row->disk->name[0] ? "4K" : row->side;
}

char *vduse_row_text(const struct vduse_row *row, char text[VDUSE_ROW_TEXT])
{
	snprintf(text, VDUSE_ROW_TEXT, "%uK pages, %uK units, %ux%u%s%s",
		1u << (row->page_shift - 10), 1u << (row->unit_shift - 10), row->shape.jobs,
		row->shape.depth, row->disk->name[0] ? ", command " : "", row->disk->name);
	return text;
}

uint64_t vduse_row_needed(const struct vduse_row *row)
{
	return (uint64_t)row->shape.jobs * row->shape.depth * row->request_units;
}

uint64_t vduse_row_requests(const struct vduse_row *row)
{
	return row->request_units ? row->units / row->request_units : 0;
}

bool vduse_row_failed(const struct vduse_row *row)
{
	for (unsigned i = 0; i < row->n; i++)
		if (row->runs[i].result.failed || row->runs[i].result.mismatches ||
			row->runs[i].driver.bad)
			return true;
	return false;
}

double vduse_run_per_1000(const struct vduse_run *run, uint64_t count)
{
	return run->driver.completed ? (double)count * 1000 / (double)run->driver.completed : 0;
}

double vduse_run_cpu(const struct vduse_run *run)
{
	return run->cpu_requests ? (double)run->cpu_ns / (double)run->cpu_requests : 0;
}

const struct vduse_published *vduse_published(
	const struct vduse_report *report, const struct vduse_row *row)
{
	const struct vduse_options *options = report->options;

	if (report->n_disks > 1 || row->page_shift != 16 || options->size != 512 || options->reads)
		return NULL;
	for (size_t i = 0; i < sizeof(publications) / sizeof(publications[0]); i++)
		if (publications[i].shape.jobs == row->shape.jobs &&
			publications[i].shape.depth == row->shape.depth)
			return &publications[i];
	return NULL;
}

/* ------------------------------------------------------------------------------ pairs */

double vduse_ratio(const struct vduse_row *first, const struct vduse_row *second)
{
	double by = (double)vduse_row_middle(second)->ops_milli;

	return by > 0 ? (double)vduse_row_middle(first)->ops_milli / by : 0;
}

double vduse_gain(const struct vduse_row *first, const struct vduse_row *second)
{
	double ratio = vduse_ratio(second, first);

	return ratio > 0 ? (ratio - 1) * 100 : 0;
}

double vduse_cpu_ratio(const struct vduse_row *first, const struct vduse_row *second)
{
	double by = vduse_run_cpu(vduse_row_middle(second));

	return by > 0 ? vduse_run_cpu(vduse_row_middle(first)) / by : 0;
}

/* Picoseconds of a request: as small, the better. */
static uint64_t run_time(const struct vduse_run *run)
{
	return run->ops_milli ? 1000000000000000 / run->ops_milli : UINT64_MAX;
}

static uint64_t run_cpu(const struct vduse_run *run)
{
	return (uint64_t)(vduse_run_cpu(run) * 1000);
}

static struct stats samples_of(
	const struct vduse_row *row, uint64_t (*of)(const struct vduse_run *run), uint64_t *samples)
{
	for (unsigned i = 0; i < row->n; i++)
		samples[i] = of(&row->runs[i]);
	return stats_of(samples, row->n);
}

static enum stats_change compare(const struct vduse_row *first, const struct vduse_row *second,
	uint64_t (*of)(const struct vduse_run *run))
{
	uint64_t *samples = calloc((size_t)first->n + second->n + 1, sizeof(*samples));
	enum stats_change change = STATS_UNKNOWN;

	if (samples) {
		struct stats base = samples_of(first, of, samples);
		struct stats now = samples_of(second, of, samples + first->n);

		change = stats_compare(&base, &now);
	}
	free(samples);
	return change;
}

enum stats_change vduse_change(const struct vduse_row *first, const struct vduse_row *second)
{
	return compare(first, second, run_time);
}

enum stats_change vduse_cpu_change(const struct vduse_row *first, const struct vduse_row *second)
{
	if (!vduse_cpu_ratio(first, second))
		return STATS_UNKNOWN;
	return compare(first, second, run_cpu);
}

static void say(char sentence[VDUSE_SENTENCE], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(char sentence[VDUSE_SENTENCE], const char *format, ...)
{
	size_t length = strlen(sentence);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence + length, VDUSE_SENTENCE - length, format, arguments);
	va_end(arguments);
}

static void explain_noise(const struct vduse_row *first, const struct vduse_row *second,
	char sentence[VDUSE_SENTENCE])
{
	enum stats_change change = vduse_change(first, second);
	bool cpu_same = vduse_cpu_change(first, second) == STATS_SAME;

	if (change == STATS_UNKNOWN)
		say(sentence, "too few runs to know the noise; ");
	else if (first->disk == second->disk && change == STATS_SAME)
		say(sentence, "within the noise of the runs; ");
	else if (change == STATS_SAME || cpu_same)
		say(sentence, "%s within the noise of the runs; ",
			!cpu_same	       ? "IOPS"
			: change == STATS_SAME ? "IOPS and CPU"
					       : "CPU");
}

/* Where requests waited for units: in which of the two, and for how many. */
static bool explain_waiting(const struct vduse_row *row, char sentence[VDUSE_SENTENCE])
{
	uint64_t in_flight = (uint64_t)row->shape.jobs * row->shape.depth;
	char units[UNITS_TEXT], fit[UNITS_TEXT], all[UNITS_TEXT], requeued[UNITS_TEXT];

	if (!vduse_row_middle(row)->driver.requeued)
		return false;
	say(sentence,
		"%s's %s units hold %s requests of the %s in flight, the others waited (%s "
		"requeues); ",
		row->side, units_count(units, row->units),
		units_count(fit, vduse_row_requests(row)), units_count(all, in_flight),
		units_count(requeued, vduse_row_middle(row)->driver.requeued));
	return true;
}

/* Two units of one disk: what the bounce domain did. */
static void explain_units(
	const struct vduse_run *a, const struct vduse_run *b, char sentence[VDUSE_SENTENCE])
{
	char text[2][UNITS_TEXT];

	say(sentence,
		"in 1,000 requests the caches ran empty %s times with native units and %s "
		"with 4K",
		units_rate(text[0], vduse_run_per_1000(a, a->bounce.slow)),
		units_rate(text[1], vduse_run_per_1000(b, b->bounce.slow)));
	if (a->bounce.flushes || b->bounce.flushes)
		say(sentence, " (flushed in all %s and %s times)",
			units_count(text[0], a->bounce.flushes),
			units_count(text[1], b->bounce.flushes));
	say(sentence, "; pages touched: %s and %s", units_count(text[0], a->bounce.pages),
		units_count(text[1], b->bounce.pages));
}

/* Two disks: how often each woke the driver, and was woken. */
static void explain_disks(
	const struct vduse_run *a, const struct vduse_run *b, char sentence[VDUSE_SENTENCE])
{
	char text[4][UNITS_TEXT];

	say(sentence, "in 1,000 requests: %s and %s interrupts, %s and %s kicks",
		units_rate(text[0], vduse_run_per_1000(a, a->driver.interrupts)),
		units_rate(text[1], vduse_run_per_1000(b, b->driver.interrupts)),
		units_rate(text[2], vduse_run_per_1000(a, a->driver.kicks)),
		units_rate(text[3], vduse_run_per_1000(b, b->driver.kicks)));
}

void vduse_explain(const struct vduse_row *first, const struct vduse_row *second,
	char sentence[VDUSE_SENTENCE])
{
	const struct vduse_run *a = vduse_row_middle(first), *b = vduse_row_middle(second);
	bool one_disk = first->disk == second->disk, waited;
	char text[UNITS_TEXT];

	sentence[0] = '\0';
	if (one_disk && first->unit_shift == second->unit_shift) {
		say(sentence, "both units are 4K: what differs is noise");
		return;
	}
	explain_noise(first, second, sentence);
	waited = explain_waiting(first, sentence);
	if (!explain_waiting(second, sentence)) {
		if (waited)
			say(sentence, "%s has room for %s; ", second->side,
				units_count(text, vduse_row_requests(second)));
		else
			say(sentence, "no request waited for units; ");
	}
	if (one_disk)
		explain_units(a, b, sentence);
	else
		explain_disks(a, b, sentence);
}
