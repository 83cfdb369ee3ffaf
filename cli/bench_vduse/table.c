/* SPDX-License-Identifier: MIT */
/* The report for people: times and counts of each row, then what 4K units gain, and why. */
#include <inttypes.h>
#include <string.h>

#include "cli/units.h"
#include "print.h"

#define SENTENCE_WIDTH 98

static const char *granule(const struct vduse_report *report, const struct vduse_row *row)
{
	return vduse_row_native(report, row) ? "native" : "4K";
}

static char *load_name(char text[UNITS_TEXT], const struct vduse_row *row)
{
	snprintf(text, UNITS_TEXT, "%ux%u", row->shape.jobs, row->shape.depth);
	return text;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void vduse_print_words(FILE *out, char *const words[], char quote)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";

	for (unsigned i = 0; words[i]; i++) {
		const char *at = words[i];
		bool quoted = !*at || at[strspn(at, plain)];

		fputs(i ? " " : "", out);
		fputs(quoted ? "'" : "", out);
		for (; *at; at++) {
			if (*at == '\'')
				fputs("'\\'", out);
			else if (*at == quote)
				fputc(quote, out);
			fputc(*at, out);
		}
		fputs(quoted ? "'" : "", out);
	}
}

static const char *image_kind(const struct vduse_report *report)
{
	if (report->options->command)
		return "";
	if (!report->options->file)
		return " in memory";
	return report->direct ? " in a file, O_DIRECT" : " in a file, cached";
}

static void print_conditions(FILE *out, const struct vduse_report *report)
{
	const struct vduse_options *options = report->options;
	const struct host *host = &report->host;
	char size[UNITS_TEXT], text[UNITS_TEXT];

	fprintf(out, "soft: %sthe virtio-blk driver in this process; %s\n",
		options->command ? "" : "vduse-blk and ",
		"dmamap's bounce domain, 3 ms to retry where it is full");
	if (options->command) {
		fputs("disk: a process of its own, ", out);
		vduse_print_words(out, options->command, '\0');
		fputc('\n', out);
	}
	fprintf(out, "%s of %s, bounce buffer %s", options->reads ? "reads" : "writes",
		options->size < 1024 ? "512 bytes" : units_size(size, options->size),
		units_size(text, options->bounce));
	if (report->queues)
		fprintf(out, ", %u queue%s of %u, disk of %s%s", report->queues,
			plural(report->queues), report->queue_size,
			units_size(text, report->disk_bytes), image_kind(report));
	if (options->delay_ns)
		fprintf(out, ", %s later", units_time(text, options->delay_ns));
	fprintf(out, "\n%u run%s of ", options->runs, plural(options->runs));
	if (options->requests)
		fprintf(out, "%s request%s a job", units_count(text, options->requests),
			plural(options->requests));
	else
		fprintf(out, "%u s", options->seconds);
	fprintf(out, ", the middle one is shown; %s, %s, %u CPU%s\n", host->kernel, host->cpu,
		host->cpus, plural(host->cpus));
	fprintf(out, "%s\n\n", vduse_note(report));
}

static void print_head(FILE *out)
{
	fprintf(out, "%48s%20s\n", "", "bounce units");
	fprintf(out, "%-4s  %-7s  %-6s  %9s  %7s  %8s  %8s", "page", "unit", "load", "IOPS",
		"MiB/s", "p50", "p99");
	fprintf(out, "  %6s  %6s  %6s  %10s  %8s  %8s  %6s\n", "most", "needed", "of", "slow paths",
		"flushes", "requeues", "pages");
}

static void print_row(
	FILE *out, const struct vduse_report *report, const struct vduse_row *row, bool first)
{
	const struct vduse_run *run = vduse_row_middle(row);
	const struct dmamap_blk_result *result;
	char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], d[UNITS_TEXT];
	double mib;

	fprintf(out, "%-4s  %-7s  %-6s", first ? units_short(a, 1ull << row->page_shift) : "",
		granule(report, row), load_name(b, row));
	if (!run) {
		fprintf(out, "  not measured\n");
		return;
	}
	result = &run->result;
	mib = result->nanoseconds
		      ? (double)result->bytes * 1e9 / (double)result->nanoseconds / (1 << 20)
		      : 0;
	fprintf(out, "  %9s  %7.1f  %8s  %8s", units_count(a, run->ops_milli / 1000), mib,
		units_time(b, result->latency.p50), units_time(c, result->latency.p99));
	fprintf(out, "  %6s  %6s  %6s  %10s", units_count(a, run->most_units),
		units_count(b, vduse_row_needed(row)), units_count(c, row->units),
		units_count(d, run->bounce.slow));
	fprintf(out, "  %8s  %8s  %6s\n", units_count(a, run->bounce.flushes),
		units_count(b, run->driver.requeued), units_count(c, run->bounce.pages));
}

static void print_verified(FILE *out, const struct vduse_report *report)
{
	uint64_t verified = 0, mismatches = 0, failed = 0;
	char text[UNITS_TEXT];

	for (unsigned i = 0; i < report->n_rows; i++) {
		for (unsigned r = 0; r < report->rows[i].n; r++) {
			const struct dmamap_blk_result *result = &report->rows[i].runs[r].result;

			verified += result->verified;
			mismatches += result->mismatches;
			failed += result->failed;
		}
	}
	if (report->options->verify)
		fprintf(out, "%s blocks compared, ", units_count(text, verified));
	if (report->options->verify)
		fprintf(out, "%s wrong\n", mismatches ? units_count(text, mismatches) : "none");
	if (failed)
		fprintf(out, "%s requests failed\n", units_count(text, failed));
}

/* ------------------------------------------------------------------------------- gain */

/* Broken at blanks, each line indented. */
static void print_sentence(FILE *out, const char *sentence)
{
	while (*sentence) {
		size_t length = strlen(sentence);

		if (length > SENTENCE_WIDTH) {
			length = SENTENCE_WIDTH;
			while (length > 1 && sentence[length] != ' ')
				length--;
		}
		fprintf(out, "      %.*s\n", (int)length, sentence);
		sentence += length;
		while (*sentence == ' ')
			sentence++;
	}
}

static char *thousands(char text[UNITS_TEXT], double ops)
{
	snprintf(text, UNITS_TEXT, "%.1fk", ops / 1000);
	return text;
}

static void print_pair(FILE *out, const struct vduse_report *report, const struct vduse_row *native,
	const struct vduse_row *fixed)
{
	const struct vduse_published *there = vduse_published(report, native);
	char sentence[VDUSE_SENTENCE], a[UNITS_TEXT], b[UNITS_TEXT];

	fprintf(out, "%-4s  %-6s", units_short(a, 1ull << native->page_shift),
		load_name(b, native));
	if (there)
		fprintf(out, "  %9s  %9s  %+6.1f %%", thousands(a, there->native),
			thousands(b, there->fixed), there->gain);
	else
		fprintf(out, "  %9s  %9s  %8s", "-", "-", "-");
	fprintf(out, "    %9s  %9s  %+6.1f %%\n",
		thousands(a, (double)vduse_row_middle(native)->ops_milli / 1000),
		thousands(b, (double)vduse_row_middle(fixed)->ops_milli / 1000),
		vduse_gain(native, fixed));
	vduse_explain(native, fixed, sentence);
	print_sentence(out, sentence);
}

static void print_gain(FILE *out, const struct vduse_report *report)
{
	fprintf(out, "\nWhat 4K units gain, in IOPS\n");
	fprintf(out, "%14s%-31s    %s\n", "", "  Linux commit 3fc3068e7247 (1)", "  here");
	fprintf(out, "%-4s  %-6s  %9s  %9s  %8s    %9s  %9s  %8s\n", "page", "load", "native", "4K",
		"gain", "native", "4K", "gain");
	for (unsigned i = 0; i + 1 < report->n_rows; i += 2)
		if (report->rows[i].n && report->rows[i + 1].n)
			print_pair(out, report, &report->rows[i], &report->rows[i + 1]);
	fprintf(out, "\n(1) 512-byte writes on arm64 with 64K pages, QEMU's daemon, fio; it gives "
		     "no other loads.\n");
}

void vduse_print_table(FILE *out, const struct vduse_report *report)
{
	unsigned measured = 0;

	print_conditions(out, report);
	print_head(out);
	for (unsigned i = 0; i < report->n_rows; i++) {
		measured += report->rows[i].n;
		print_row(out, report, &report->rows[i], i % (2 * report->options->n_shapes) == 0);
	}
	print_verified(out, report);
	if (measured)
		print_gain(out, report);
	fprintf(out, "%u runs, %.1f s\n", measured, report->seconds);
	if (report->signal)
		fprintf(out, "interrupted by SIG%s: what was complete is above\n",
			sigabbrev_np(report->signal));
}
