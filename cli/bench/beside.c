/* SPDX-License-Identifier: MIT */
/*
 * The kernel's work beside the soft system's: a row for each variant that was
 * counted on both, and below them the rules that link the two. Also what was
 * left out of the counting, and why.
 */
#include <string.h>

#include "print.h"
#include "cli/units.h"
#include "work.h"

#define NAME_WIDTH 32
#define WIDTH	   100

/* struct beside - The state of printing it. */
struct beside {
	FILE *out;
	const struct report *report;
	const struct style *style;
	const struct result *last;
};

static void print_head(const struct beside *beside)
{
	static const char *const lines[3][6] = {
		{"map", "", "", "", "unmap"},
		{"look-ups", "steps", "leaves", "maps", "leaves", "look-ups"},
		{"soft", "linux", "soft", "linux", "soft", "linux"},
	};

	fprintf(beside->out,
		"%swork, counted on linux by probes, in a run of its own beside the timed ones\n",
		ink_on(beside->style, INK_HEAD));
	for (unsigned i = 0; i < 3; i++) {
		fprintf(beside->out, "%-*s", NAME_WIDTH, "");
		for (unsigned j = 0; j < 6 && lines[i][j]; j++)
			fprintf(beside->out, " %9s%s", lines[i][j], j % 2 && j < 5 ? "  " : "");
		fputc('\n', beside->out);
	}
	fprintf(beside->out, "%s", ink_off(beside->style, INK_HEAD));
}

static uint64_t sum(const uint64_t leaves[64])
{
	uint64_t all = 0;

	for (unsigned shift = 0; shift < 64; shift++)
		all += leaves[shift];
	return all;
}

static void print_pair(const struct beside *beside, const struct result *soft,
	const struct result *result, enum work_pair pair, uint64_t soft_count)
{
	static const char marks[] = {
		[WORK_UNKNOWN] = ' ', [WORK_EQUAL] = '=', [WORK_DIFFERS] = '!'};
	char text[UNITS_TEXT];
	uint64_t count;
	enum work_verdict verdict = work_compare(soft, result, pair, &count);
	enum ink ink = verdict == WORK_DIFFERS ? INK_BAD : INK_PLAIN;

	fprintf(beside->out, " %9s", units_count(text, soft_count));
	fprintf(beside->out, " %s%9s %c%s", ink_on(beside->style, ink),
		count == UINT64_MAX ? "-" : units_count(text, count), marks[verdict],
		ink_off(beside->style, ink));
}

static void print_row(struct beside *beside, const struct result *soft, const struct result *result)
{
	const struct variant *variant = result->variant;
	const char *prefault = prefault_name(variant->prefault);
	const struct variant *last = beside->last ? beside->last->variant : NULL;
	bool same_mode = last && last->mode == variant->mode;
	bool same = same_mode && last->memory == variant->memory;
	char size[UNITS_TEXT];

	if (!same_mode)
		fprintf(beside->out, "%s%s%s\n", ink_on(beside->style, INK_HEAD),
			variant->mode->name, ink_off(beside->style, INK_HEAD));
	fprintf(beside->out, "%-2s%-21s %-8s", "", same ? "" : variant->memory->name,
		prefault ? prefault : units_short(size, result->size));
	print_pair(beside, soft, result, WORK_STEPS, soft->work.lookups);
	print_pair(beside, soft, result, WORK_MAPS, sum(soft->work.leaves));
	print_pair(beside, soft, result, WORK_UNMAPS, sum(soft->work.cleared));
	fputc('\n', beside->out);
	beside->last = result;
}

/* All counts that one reason keeps away, below it, in lines that the table has room for. */
static void print_names(
	const struct beside *beside, const struct system_info *system, const char *why)
{
	static const char head[] = "  not counted:";
	size_t column = strlen(head);

	fputs(head, beside->out);
	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		const char *name = kernel_event_names[i];

		if (strcmp(system->uncounted[i], why))
			continue;
		if (column + 1 + strlen(name) > WIDTH) {
			fprintf(beside->out, "\n%*s", (int)strlen(head), "");
			column = strlen(head);
		}
		column += (size_t)fprintf(beside->out, " %s", name);
	}
	fputc('\n', beside->out);
}

/* Each reason for which something was not counted; how many there are. */
static unsigned print_left_out(const struct beside *beside, const struct system_info *system)
{
	unsigned reasons = 0;

	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		const char *why = system->uncounted[i];
		unsigned first = 0;

		while (strcmp(system->uncounted[first], why))
			first++;
		if (!why[0] || first < i)
			continue;
		fprintf(beside->out, "%s: %s\n", system->name, why);
		print_names(beside, system, why);
		reasons++;
	}
	return reasons;
}

void print_beside(FILE *out, const struct report *report, const struct style *style)
{
	struct beside beside = {.out = out, .report = report, .style = style};
	unsigned lines = 0;
	const char *rule;

	for (size_t i = 0; i < report->n_results; i++) {
		const struct result *result = &report->results[i];
		const struct result *soft = result->probed ? work_twin(report, result) : NULL;

		if (!soft)
			continue;
		if (!lines++)
			print_head(&beside);
		print_row(&beside, soft, result);
	}
	for (unsigned i = 0; lines && (rule = work_rule(report, i)); i++)
		fprintf(out, "%s%s%s\n", ink_on(style, INK_DIM), rule, ink_off(style, INK_DIM));
	for (size_t i = 0; i < report->n_systems; i++)
		if (report->systems[i].probed)
			lines += print_left_out(&beside, &report->systems[i]);
	if (lines)
		fputc('\n', out);
}
