/* SPDX-License-Identifier: MIT */
/*
 * The table: a row for each result, grouped by system and mode, in 100
 * columns. What a number needs to be understood stands under its row; the
 * commands that enable what was skipped are collected at the end.
 */
#include <inttypes.h>
#include <string.h>

#include "print.h"
#include "cli/units.h"
#include "work.h"

#define HINTS 32

/* struct table - The state of printing one. */
struct table {
	FILE *out;
	const struct report *report;
	const struct style *style;
	const char *hints[HINTS];
	unsigned n_hints;
};

/* Explanations start here: right of where names start, and left enough for their length. */
#define INDENT 16
/* Where the column of leaves ends, and the table. */
#define LEAVES_END 94
#define WIDTH	   100

static void print_header(const struct table *table)
{
	const struct report *report = table->report;
	char size[UNITS_TEXT];
	char runs[PRINT_RUNS];

	for (size_t i = 0; i < report->n_systems; i++) {
		const struct system_info *system = &report->systems[i];

		if (system->absent[0])
			fprintf(table->out, "%s: not measured: %s\n", system->name, system->absent);
		else
			fprintf(table->out, "%s: device %s, %s pages\n", system->name,
				system->device, units_size(size, system->page_size));
	}
	fprintf(table->out, "%s; medians; seed %" PRIu64 "; %s, %s, %u CPUs\n",
		print_runs(report, runs), report->seed, report->host.kernel, report->host.cpu,
		report->host.cpus);
}

/* The three largest leaf sizes: "1G/2M/4K". */
static unsigned leaf_shifts(const struct system_info *system, unsigned shifts[3])
{
	unsigned n = 0;

	for (unsigned shift = 63; shift > 0 && n < 3; shift--)
		if (system->leaf_sizes >> shift & 1)
			shifts[n++] = shift;
	return n;
}

/* Was a map counted by probes on this system, where leaves are not to be seen? */
static bool any_maps(const struct table *table, const struct system_info *system)
{
	for (size_t i = 0; i < table->report->n_results; i++)
		if (table->report->results[i].system == system &&
			work_known(&table->report->results[i], KERNEL_MAP_EVENT))
			return true;
	return false;
}

/* What the times mean stands right above them. */
static void print_columns(const struct table *table, const struct system_info *system)
{
	unsigned shifts[3];
	unsigned n = leaf_shifts(system, shifts);
	char leaves[48] = "";
	char note[256];

	for (unsigned i = 0; i < n; i++) {
		char size[UNITS_TEXT];

		snprintf(leaves + strlen(leaves), sizeof(leaves) - strlen(leaves), "%s%s",
			i ? "/" : "", units_short(size, (uint64_t)1 << shifts[i]));
	}
	if (any_maps(table, system))
		snprintf(leaves, sizeof(leaves), "%s", kernel_event_names[KERNEL_MAP_EVENT]);
	snprintf(note, sizeof(note), "%s: times are %s", system->name, print_note(system));
	fprintf(table->out, "\n%s%-*s%s\n", ink_on(table->style, INK_HEAD), LEAVES_END - 6, note,
		n ? "leaves" : "");
	fprintf(table->out, "%-32s %5s %7s %7s %7s %7s", "", "size", "mmap", "map", "unmap",
		"munmap");
	fprintf(table->out, " %9s %13s %5s", "look-ups", leaves, "table");
	if (table->style->wide)
		fprintf(table->out, " %9s %9s", "map/page", "map GiB/s");
	fprintf(table->out, "%s\n", ink_off(table->style, INK_HEAD));
}

static void print_time(const struct table *table, const struct result *result, enum phase phase)
{
	char text[UNITS_TEXT];

	if (result_times(result, phase))
		units_time(text, result_stats(result, phase).median);
	fprintf(table->out, " %7s", result_times(result, phase) ? text : "-");
}

static void print_work(const struct table *table, const struct result *result)
{
	unsigned shifts[3];
	unsigned n = leaf_shifts(result->system, shifts);
	char text[UNITS_TEXT];
	char leaves[112] = "";
	uint64_t lookups;

	if (!result->counted) {
		fprintf(table->out, " %9s",
			work_lookups(result, &lookups) ? units_count(text, lookups) : "-");
		fprintf(table->out, " %13s %5s",
			work_known(result, KERNEL_MAP_EVENT)
				? units_count(text, result->kernel.map[KERNEL_MAP_EVENT])
				: "-",
			"-");
		return;
	}
	for (unsigned i = 0; i < n; i++)
		snprintf(leaves + strlen(leaves), sizeof(leaves) - strlen(leaves), "%s%s",
			i ? "/" : "", units_count(text, result->work.leaves[shifts[i]]));
	fprintf(table->out, " %9s", units_count(text, result->work.lookups));
	fprintf(table->out, " %13s %5s", leaves, units_short(text, result->work.table_bytes));
}

static unsigned number_hint(struct table *table, const char *hint)
{
	unsigned i = 0;

	while (i < table->n_hints && strcmp(table->hints[i], hint))
		i++;
	if (i == HINTS)
		return 0;
	table->hints[i] = hint;
	if (i == table->n_hints)
		table->n_hints++;
	return i + 1;
}

/* Why there are no numbers: behind the row's name, or below it where that is too long. */
static void print_other(struct table *table, const struct result *result)
{
	static const enum ink inks[] = {INK_PLAIN, INK_DIM, INK_DIM, INK_BAD};
	enum ink ink = inks[result->status];
	char status[48];
	char number[16] = "";
	char name[24];
	size_t length;

	snprintf(status, sizeof(status), "%s%s%s", status_names[result->status],
		result->error ? " " : "",
		result->error ? result_error_name(result->error, name) : "");
	if (result->hint[0])
		snprintf(number, sizeof(number), " [%u]", number_hint(table, result->hint));
	length = strlen(status) + strlen(": ") + strlen(result->reason) + strlen(number);
	fprintf(table->out, " %s%s", ink_on(table->style, ink), status);
	if (length > WIDTH - 33)
		fprintf(table->out, "%s\n%*s%s", number, INDENT, "", result->reason);
	else
		fprintf(table->out, ": %s%s", result->reason, number);
	fprintf(table->out, "%s\n", ink_off(table->style, ink));
}

static const char *column_name(const struct result *result)
{
	const char *prefault = prefault_name(result->variant->prefault);

	if (prefault)
		return prefault;
	return result->stride >= 0 ? stride_names[result->stride] : "";
}

static void print_row(struct table *table, const struct result *result, bool first)
{
	char text[256];
	char size[UNITS_TEXT];
	char memory[32];

	snprintf(memory, sizeof(memory), "  %-21s", first ? result->variant->memory->name : "");
	fprintf(table->out, "%-23s %-8s", memory, column_name(result));
	if (result->status != STATUS_RUN) {
		print_other(table, result);
		return;
	}
	fprintf(table->out, " %5s", units_short(size, result->size));
	for (unsigned phase = 0; phase < PHASES; phase++)
		print_time(table, result, phase);
	print_work(table, result);
	if (table->style->wide) {
		uint64_t map = result_stats(result, PHASE_MAP).median;

		fprintf(table->out, " %6s ns", units_rate(text, result_page_ns(result, map)));
		fprintf(table->out, " %9s", units_rate(text, result_gib_s(result, map)));
	}
	fprintf(table->out, "%s\n", result->declared ? " declared" : "");
	for (unsigned i = 0; result_explain(result, i, text, sizeof(text)); i++)
		fprintf(table->out, "%*s%s%s%s\n", INDENT, "", ink_on(table->style, INK_DIM), text,
			ink_off(table->style, INK_DIM));
}

void print_table(FILE *out, const struct report *report, const struct style *style)
{
	struct table table = {.out = out, .report = report, .style = style};
	const struct result *last = NULL;

	print_header(&table);
	for (size_t i = 0; i < report->n_results; i++) {
		const struct result *result = &report->results[i];
		bool same_system = last && last->system == result->system;
		bool same_mode = same_system && last->variant->mode == result->variant->mode;

		if (!same_system)
			print_columns(&table, result->system);
		if (!same_mode)
			fprintf(out, "%s%s%s\n", ink_on(style, INK_HEAD),
				result->variant->mode->name, ink_off(style, INK_HEAD));
		print_row(&table, result,
			!same_mode || last->variant->memory != result->variant->memory);
		last = result;
	}
	fprintf(out, "\n");
	print_beside(out, report, style);
	for (unsigned i = 0; i < table.n_hints; i++)
		fprintf(out, "[%u] %s\n", i + 1, table.hints[i]);
	print_summary(out, report, style);
}
