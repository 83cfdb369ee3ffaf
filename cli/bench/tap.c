/* SPDX-License-Identifier: MIT */
/*
 * TAP version 13, as the kernel's selftests print it: a plan, each test with
 * its number, diagnostics behind "#", and the totals at the end. A refusal
 * that has to be is a pass.
 */
#include "print.h"
#include "cli/units.h"
#include "work.h"

static void print_times(FILE *out, const struct result *result)
{
	char text[UNITS_TEXT];
	uint64_t lookups;

	fprintf(out, "# %s", result->declared ? "declared, " : "");
	for (unsigned phase = 0; phase < PHASES; phase++)
		if (result_times(result, phase))
			fprintf(out, "%s %s, ", phase_names[phase],
				units_time(text, result_stats(result, phase).median));
	fprintf(out, "%s", units_size(text, result->size));
	if (work_lookups(result, &lookups))
		fprintf(out, ", %s look-ups", units_count(text, lookups));
	fprintf(out, " (times: %s)\n", print_note(result->system));
}

void print_tap(FILE *out, const struct report *report)
{
	size_t counts[4] = {0};

	fprintf(out, "TAP version 13\n1..%zu\n", report->n_results);
	for (size_t i = 0; i < report->n_systems; i++)
		fprintf(out, "# %s: %s%s\n", report->systems[i].name,
			report->systems[i].absent[0] ? "not measured: " : "times are ",
			report->systems[i].absent[0] ? report->systems[i].absent
						     : print_note(&report->systems[i]));
	for (size_t i = 0; i < report->n_results; i++) {
		const struct result *result = &report->results[i];
		char name[RESULT_NAME];
		char error[24];

		result_name(result, name);
		counts[result->status]++;
		fprintf(out, "#  RUN           %s.%s ...\n", result->system->name, name);
		if (result->status == STATUS_RUN)
			print_times(out, result);
		else if (result->error)
			fprintf(out, "# %s %s: %s\n", status_names[result->status],
				result_error_name(result->error, error), result->reason);
		if (result->status == STATUS_SKIPPED)
			fprintf(out, "ok %zu %s.%s # SKIP %s%s%s\n", i + 1, result->system->name,
				name, result->reason, result->hint[0] ? "; try: " : "",
				result->hint);
		else
			fprintf(out, "%s %zu %s.%s\n",
				result->status == STATUS_FAILED ? "not ok" : "ok", i + 1,
				result->system->name, name);
	}
	if (report->signal)
		fprintf(out, "# interrupted by signal %d\n", report->signal);
	fprintf(out, "# Totals: pass:%zu fail:%zu xfail:0 xpass:0 skip:%zu error:0\n",
		counts[STATUS_RUN] + counts[STATUS_REFUSED], counts[STATUS_FAILED],
		counts[STATUS_SKIPPED]);
}
