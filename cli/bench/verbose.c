/* SPDX-License-Identifier: MIT */
/*
 * The long text: for each result every run, as the kernel's mapping test
 * prints it (the mmap time; then host address, size, IOVA and map time), and
 * every statistic. Each line of declared memory says so itself, so that no
 * line can be quoted without it.
 */
#include <inttypes.h>

#include "print.h"
#include "cli/units.h"

static const char *tail(const struct result *result)
{
	return result->declared ? "  [declared]" : "";
}

static void print_run(FILE *out, const struct result *result, size_t i)
{
	const struct sample *sample = &result->samples[i];
	char text[UNITS_TEXT];

	fprintf(out, "  run %zu: mmap %s%s\n", i + 1,
		result_times(result, PHASE_MMAP) ? units_time(text, sample->ns[PHASE_MMAP])
						 : "not timed, nothing is populated",
		tail(result));
	fprintf(out,
		"  run %zu: mapped host 0x%" PRIx64 ", size 0x%" PRIx64 " (%s), iova 0x%" PRIx64,
		i + 1, sample->va, result->size, units_size(text, result->size), sample->iova);
	fprintf(out, ", in %s%s\n", units_time(text, sample->ns[PHASE_MAP]), tail(result));
	fprintf(out, "  run %zu: unmapped in %s", i + 1, units_time(text, sample->ns[PHASE_UNMAP]));
	if (result_times(result, PHASE_MUNMAP))
		fprintf(out, ", munmap %s", units_time(text, sample->ns[PHASE_MUNMAP]));
	fprintf(out, "%s\n", tail(result));
}

static void print_stats(FILE *out, const struct result *result)
{
	char text[UNITS_TEXT];

	fprintf(out, "  %-8s %9s %9s %9s %9s %7s %10s %10s%s\n", "", "median", "min", "p90", "max",
		"noise", "per page", "GiB/s", tail(result));
	for (unsigned phase = 0; phase < PHASES; phase++) {
		struct stats stats = result_stats(result, phase);

		if (!stats.n)
			continue;
		fprintf(out, "  %-8s %9s", phase_names[phase], units_time(text, stats.median));
		fprintf(out, " %9s", units_time(text, stats.min));
		fprintf(out, " %9s", units_time(text, stats.p90));
		fprintf(out, " %9s", units_time(text, stats.max));
		fprintf(out, " %5.0f %%", stats_noise(&stats) * 100);
		fprintf(out, " %7s ns", units_rate(text, result_page_ns(result, stats.median)));
		fprintf(out, " %10s%s\n", units_rate(text, result_gib_s(result, stats.median)),
			tail(result));
	}
}

static void print_leaves(FILE *out, const uint64_t leaves[64])
{
	bool any = false;
	char count[UNITS_TEXT];
	char size[UNITS_TEXT];

	for (unsigned shift = 64; shift-- > 0;) {
		if (!leaves[shift])
			continue;
		fprintf(out, "%s%s of %s", any ? ", " : "", units_count(count, leaves[shift]),
			units_size(size, (uint64_t)1 << shift));
		any = true;
	}
	if (!any)
		fprintf(out, "none");
}

/* All that was hit in one phase. */
static void print_kernel_phase(FILE *out, const struct result *result, const char *phase,
	const uint64_t counts[KERNEL_EVENTS])
{
	const char *comma = "";
	char count[UNITS_TEXT];

	fprintf(out, "  %s, counted: ", phase);
	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		if (!counts[i])
			continue;
		fprintf(out, "%s%s %s", comma, kernel_event_names[i],
			units_count(count, counts[i]));
		comma = ", ";
	}
	fprintf(out, "%s%s\n", comma[0] ? "" : "nothing", tail(result));
}

static void print_work(FILE *out, const struct result *result)
{
	char count[UNITS_TEXT];
	char size[UNITS_TEXT];

	if (result->probed) {
		print_kernel_phase(out, result, phase_names[PHASE_MAP], result->kernel.map);
		print_kernel_phase(out, result, phase_names[PHASE_UNMAP], result->kernel.unmap);
		return;
	}
	if (!result->counted) {
		fprintf(out, "  work: not counted%s%s%s\n",
			result->unprobed[0] ? ": " : " on this system", result->unprobed,
			tail(result));
		return;
	}
	fprintf(out, "  map: %s look-ups; leaves: ", units_count(count, result->work.lookups));
	print_leaves(out, result->work.leaves);
	fprintf(out, "; table: %s in %s page%s%s\n", units_size(size, result->work.table_bytes),
		units_count(count, result->work.tables), result->work.tables == 1 ? "" : "s",
		tail(result));
	fprintf(out, "  unmap: leaves cleared: ");
	print_leaves(out, result->work.cleared);
	fprintf(out, "%s\n", tail(result));
}

static void print_result(FILE *out, const struct result *result, const struct style *style)
{
	char name[RESULT_NAME];
	char text[256];

	fprintf(out, "%s%s %s%s%s\n", ink_on(style, INK_HEAD), result->system->name,
		result_name(result, name), ink_off(style, INK_HEAD), tail(result));
	if (result->status != STATUS_RUN) {
		fprintf(out, "  %s", status_names[result->status]);
		if (result->error)
			fprintf(out, " %s", result_error_name(result->error, text));
		fprintf(out, ": %s%s\n", result->reason, tail(result));
		if (result->hint[0])
			fprintf(out, "  try: %s\n", result->hint);
		fputc('\n', out);
		return;
	}
	fprintf(out, "  times: %s%s\n", print_note(result->system), tail(result));
	for (size_t i = 0; i < result->n; i++)
		print_run(out, result, i);
	print_stats(out, result);
	print_work(out, result);
	for (unsigned i = 0; result_explain(result, i, text, sizeof(text)); i++)
		fprintf(out, "  %s%s\n", text, tail(result));
	fputc('\n', out);
}

void print_verbose(FILE *out, const struct report *report, const struct style *style)
{
	const struct host *host = &report->host;
	char size[UNITS_TEXT];

	fprintf(out, "host %s: %s, %s, %u CPUs, %s pages, ", host->name, host->kernel, host->cpu,
		host->cpus, units_size(size, host->page_size));
	fprintf(out, "%s of memory, transparent huge pages: %s; seed %" PRIu64 "\n",
		units_size(size, host->memory), host->thp[0] ? host->thp : "none", report->seed);
	for (size_t i = 0; i < report->n_systems; i++)
		if (report->systems[i].absent[0])
			fprintf(out, "%s: not measured: %s\n", report->systems[i].name,
				report->systems[i].absent);
	fputc('\n', out);
	for (size_t i = 0; i < report->n_results; i++)
		print_result(out, &report->results[i], style);
	print_beside(out, report, style);
	print_summary(out, report, style);
}
