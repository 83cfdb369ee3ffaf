/* SPDX-License-Identifier: MIT */
/*
 * Comma-separated values (RFC 4180, but for the line end): a line for each
 * result, the same columns in each; what does not apply is empty.
 */
#include <inttypes.h>
#include <string.h>

#include "print.h"
#include "work.h"

/* Leaf sizes that have a column of their own. */
static const struct {
	const char *name;
	unsigned shift;
} leaf_columns[] = {
	{"4k", 12}, {"16k", 14}, {"64k", 16}, {"2m", 21}, {"32m", 25}, {"512m", 29}, {"1g", 30}};

#define LEAF_COLUMNS (sizeof(leaf_columns) / sizeof(leaf_columns[0]))

static void print_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputs("\",", out);
}

static void print_head(FILE *out)
{
	fputs("system,note,name,mode,memory,prefault,pfnmap_stride,declared,status,error,reason,"
	      "hint,size,page_size,runs",
		out);
	for (unsigned phase = 0; phase < PHASES; phase++) {
		const char *name = phase_names[phase];

		fprintf(out, ",%s_median_ns,%s_min_ns,%s_p90_ns,%s_max_ns", name, name, name, name);
		fprintf(out, ",%s_ns_per_page,%s_gib_per_s", name, name);
	}
	fputs(",lookups,table_bytes", out);
	for (unsigned i = 0; i < LEAF_COLUMNS; i++)
		fprintf(out, ",leaves_%s", leaf_columns[i].name);
	for (unsigned i = 0; i < KERNEL_EVENTS; i++)
		fprintf(out, ",map_%s,unmap_%s", kernel_event_names[i], kernel_event_names[i]);
	fputc('\n', out);
}

static void print_phase(FILE *out, const struct result *result, enum phase phase)
{
	struct stats stats = result_stats(result, phase);

	if (!stats.n) {
		fputs(",,,,,,", out);
		return;
	}
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, stats.median, stats.min,
		stats.p90, stats.max);
	fprintf(out, ",%.6g,%.6g", result_page_ns(result, stats.median),
		result_gib_s(result, stats.median));
}

static void print_work(FILE *out, const struct result *result)
{
	uint64_t lookups;

	fputc(',', out);
	if (work_lookups(result, &lookups))
		fprintf(out, "%" PRIu64, lookups);
	fputc(',', out);
	if (result->counted)
		fprintf(out, "%" PRIu64, result->work.table_bytes);
	for (unsigned i = 0; i < LEAF_COLUMNS; i++) {
		fputc(',', out);
		if (result->counted)
			fprintf(out, "%" PRIu64, result->work.leaves[leaf_columns[i].shift]);
	}
	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		if (work_known(result, i))
			fprintf(out, ",%" PRIu64 ",%" PRIu64, result->kernel.map[i],
				result->kernel.unmap[i]);
		else
			fputs(",,", out);
	}
}

void print_csv(FILE *out, const struct report *report)
{
	print_head(out);
	for (size_t i = 0; i < report->n_results; i++) {
		const struct result *result = &report->results[i];
		const struct variant *variant = result->variant;
		const char *prefault = prefault_name(variant->prefault);
		char error[24];

		print_text(out, result->system->name);
		print_text(out, print_note(result->system));
		print_text(out, variant->name);
		print_text(out, variant->mode->name);
		print_text(out, variant->memory->name);
		fprintf(out, "%s,%s,%s,", prefault ? prefault : "",
			result->stride >= 0 ? stride_names[result->stride] : "",
			result->declared ? "declared" : "");
		fprintf(out, "%s,%s,", status_names[result->status],
			result->error ? result_error_name(result->error, error) : "");
		print_text(out, result->reason);
		print_text(out, result->hint);
		fprintf(out, "%" PRIu64 ",%" PRIu64 ",%zu", result->size, result->page_size,
			result->n);
		for (unsigned phase = 0; phase < PHASES; phase++)
			print_phase(out, result, phase);
		print_work(out, result);
		fputc('\n', out);
	}
}
