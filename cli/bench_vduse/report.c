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

int vduse_report_plan(struct vduse_report *report, const struct vduse_options *options,
	struct complaint *complaint)
{
	report->options = options;
	report->rows = calloc(2u * options->n_pages * options->n_shapes, sizeof(*report->rows));
	if (!report->rows)
		return complain(complaint, "out of memory");
	for (unsigned i = 0; i < options->n_pages * options->n_shapes * 2; i++) {
		struct vduse_row *row = &report->rows[i];

		row->page_shift = options->pages[i / 2 / options->n_shapes];
		row->unit_shift = i % 2 ? FIXED_SHIFT : row->page_shift;
		row->shape = options->shapes[i / 2 % options->n_shapes];
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
	if (report->options->command)
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

bool vduse_row_native(const struct vduse_report *report, const struct vduse_row *row)
{
	return (row - report->rows) % 2 == 0;
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

const struct vduse_published *vduse_published(
	const struct vduse_report *report, const struct vduse_row *row)
{
	const struct vduse_options *options = report->options;

	if (row->page_shift != 16 || options->size != 512 || options->reads)
		return NULL;
	for (size_t i = 0; i < sizeof(publications) / sizeof(publications[0]); i++)
		if (publications[i].shape.jobs == row->shape.jobs &&
			publications[i].shape.depth == row->shape.depth)
			return &publications[i];
	return NULL;
}

/* ------------------------------------------------------------------------------- gain */

double vduse_gain(const struct vduse_row *native, const struct vduse_row *fixed)
{
	double from = (double)vduse_row_middle(native)->ops_milli;

	return from > 0 ? ((double)vduse_row_middle(fixed)->ops_milli / from - 1) * 100 : 0;
}

/* As times: picoseconds of a request. */
static struct stats times(const struct vduse_row *row, uint64_t *samples)
{
	for (unsigned i = 0; i < row->n; i++)
		samples[i] = row->runs[i].ops_milli ? 1000000000000000 / row->runs[i].ops_milli
						    : UINT64_MAX;
	return stats_of(samples, row->n);
}

enum stats_change vduse_change(const struct vduse_row *native, const struct vduse_row *fixed)
{
	uint64_t *samples = calloc((size_t)native->n + fixed->n + 1, sizeof(*samples));
	enum stats_change change = STATS_UNKNOWN;

	if (samples) {
		struct stats base = times(native, samples);
		struct stats now = times(fixed, samples + native->n);

		change = stats_compare(&base, &now);
	}
	free(samples);
	return change;
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

/* Where requests waited for units: in which of the two, and for how many. */
static bool explain_waiting(
	const struct vduse_row *row, const char *name, char sentence[VDUSE_SENTENCE])
{
	uint64_t in_flight = (uint64_t)row->shape.jobs * row->shape.depth;
	char units[UNITS_TEXT], fit[UNITS_TEXT], all[UNITS_TEXT], requeued[UNITS_TEXT];

	if (!vduse_row_middle(row)->driver.requeued)
		return false;
	say(sentence,
		"%s's %s units hold %s requests of the %s in flight, the others waited (%s "
		"requeues); ",
		name, units_count(units, row->units), units_count(fit, vduse_row_requests(row)),
		units_count(all, in_flight),
		units_count(requeued, vduse_row_middle(row)->driver.requeued));
	return true;
}

void vduse_explain(const struct vduse_row *native, const struct vduse_row *fixed,
	char sentence[VDUSE_SENTENCE])
{
	const struct vduse_run *a = vduse_row_middle(native), *b = vduse_row_middle(fixed);
	double slow_a = vduse_run_per_1000(a, a->bounce.slow);
	double slow_b = vduse_run_per_1000(b, b->bounce.slow);
	char text[4][UNITS_TEXT];
	bool waited;

	sentence[0] = '\0';
	if (native->unit_shift == fixed->unit_shift) {
		say(sentence, "both units are 4K: what differs is noise");
		return;
	}
	if (vduse_change(native, fixed) == STATS_SAME)
		say(sentence, "within the noise of the runs; ");
	else if (vduse_change(native, fixed) == STATS_UNKNOWN)
		say(sentence, "too few runs to know the noise; ");
	waited = explain_waiting(native, "native", sentence);
	if (!explain_waiting(fixed, "4K", sentence)) {
		if (waited)
			say(sentence, "4K has room for %s; ",
				units_count(text[0], vduse_row_requests(fixed)));
		else
			say(sentence, "no request waited for units; ");
	}
	say(sentence,
		"in 1,000 requests the caches ran empty %s times with native units and %s "
		"with 4K",
		units_rate(text[0], slow_a), units_rate(text[1], slow_b));
	if (a->bounce.flushes || b->bounce.flushes)
		say(sentence, " (flushed in all %s and %s times)",
			units_count(text[0], a->bounce.flushes),
			units_count(text[1], b->bounce.flushes));
	say(sentence, "; pages touched: %s and %s", units_count(text[2], a->bounce.pages),
		units_count(text[3], b->bounce.pages));
}
