/* SPDX-License-Identifier: MIT */
/* The report for people: times and counts of each row, then each pair compared, and why. */
#include <inttypes.h>
#include <string.h>

#include "cli/units.h"
#include "print.h"

#define SENTENCE_WIDTH 98

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
	if (report->options->n_commands)
		return "";
	if (!report->options->file)
		return " in memory";
	return report->direct ? " in a file, O_DIRECT" : " in a file, cached";
}

static void print_disk(FILE *out, const struct vduse_report *report, const struct vduse_disk *disk,
	const char *noun)
{
	char text[UNITS_TEXT];

	if (disk->queues)
		fprintf(out, ", %u queue%s of %u, %s of %s%s", disk->queues, plural(disk->queues),
			disk->queue_size, noun, units_size(text, disk->bytes), image_kind(report));
}

static void print_disks(FILE *out, const struct vduse_report *report)
{
	const struct vduse_disk *a = &report->disks[0], *b = &report->disks[1];

	if (report->n_disks == 1) {
		print_disk(out, report, a, "disk");
	} else if (a->bytes == b->bytes && a->queues == b->queues &&
		   a->queue_size == b->queue_size) {
		print_disk(out, report, a, "disks");
	} else {
		print_disk(out, report, a, "disk (1)");
		print_disk(out, report, b, "disk (2)");
	}
}

static void print_conditions(FILE *out, const struct vduse_report *report)
{
	const struct vduse_options *options = report->options;
	const struct host *host = &report->host;
	char size[UNITS_TEXT], text[UNITS_TEXT];

	fprintf(out, "soft: %sthe virtio-blk driver in this process; %s\n",
		options->n_commands ? "" : "vduse-blk and ",
		"dmamap's bounce domain, 3 ms to retry where it is full");
	for (unsigned i = 0; i < options->n_commands; i++) {
		fprintf(out, "disk%s%s: a process of its own, ", report->n_disks > 1 ? " " : "",
			report->disks[i].name);
		vduse_print_words(out, options->commands[i], '\0');
		fputc('\n', out);
	}
	fprintf(out, "%s of %s, bounce buffer %s%s", options->reads ? "reads" : "writes",
		options->size < 1024 ? "512 bytes" : units_size(size, options->size),
		units_size(text, options->bounce), report->n_disks > 1 ? " in units of 4K" : "");
	print_disks(out, report);
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

/* Only a command's CPU time is known. */
static void print_head(FILE *out, const struct vduse_report *report)
{
	bool commands = report->options->n_commands;

	fprintf(out, "%*s", commands ? 72 : 61, commands ? "CPU" : "");
	fprintf(out, "%14s\n", "bounce units");
	fprintf(out, "%-4s  %-7s  %-6s  %9s  %7s  %8s  %8s", "page",
		report->n_disks > 1 ? "disk" : "unit", "load", "IOPS", "MiB/s", "p50", "p99");
	if (commands)
		fprintf(out, "  %9s", "a request");
	fprintf(out, "  %6s  %6s  %6s  %10s  %8s  %8s  %6s\n", "most", "needed", "of", "slow paths",
		"flushes", "requeues", "pages");
}

static char *cpu_text(char text[UNITS_TEXT], const struct vduse_run *run)
{
	return run->cpu_requests ? units_time(text, (uint64_t)(vduse_run_cpu(run) + 0.5))
				 : strcpy(text, "-");
}

static void print_row(
	FILE *out, const struct vduse_report *report, const struct vduse_row *row, bool first)
{
	const struct vduse_run *run = vduse_row_middle(row);
	const struct dmamap_blk_result *result;
	char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], d[UNITS_TEXT];
	double mib;

	fprintf(out, "%-4s  %-7s  %-6s", first ? units_short(a, 1ull << row->page_shift) : "",
		row->side, load_name(b, row));
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
	if (report->options->n_commands)
		fprintf(out, "  %9s", cpu_text(a, run));
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

/* ------------------------------------------------------------------------------ pairs */

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

static char *thousands_of(char text[UNITS_TEXT], const struct vduse_row *row)
{
	return thousands(text, (double)vduse_row_middle(row)->ops_milli / 1000);
}

static void print_units_head(FILE *out)
{
	fprintf(out, "\nWhat 4K units gain, in IOPS\n");
	fprintf(out, "%14s%-31s    %s\n", "", "  Linux commit 3fc3068e7247 (1)", "  here");
	fprintf(out, "%-4s  %-6s  %9s  %9s  %8s    %9s  %9s  %8s\n", "page", "load", "native", "4K",
		"gain", "native", "4K", "gain");
}

static void print_units(FILE *out, const struct vduse_report *report,
	const struct vduse_row *native, const struct vduse_row *fixed)
{
	const struct vduse_published *there = vduse_published(report, native);
	char a[UNITS_TEXT], b[UNITS_TEXT];

	if (there)
		fprintf(out, "  %9s  %9s  %+6.1f %%", thousands(a, there->native),
			thousands(b, there->fixed), there->gain);
	else
		fprintf(out, "  %9s  %9s  %8s", "-", "-", "-");
	fprintf(out, "    %9s  %9s  %+6.1f %%\n", thousands_of(a, native), thousands_of(b, fixed),
		vduse_gain(native, fixed));
}

static void print_disks_head(FILE *out)
{
	fprintf(out, "\nThe two disks\n");
	fprintf(out, "%14s%-31s    %s\n", "", "  IOPS", "  CPU a request");
	fprintf(out, "%-4s  %-6s  %9s  %9s  %8s    %9s  %9s  %8s\n", "page", "load", "(1)", "(2)",
		"(1)/(2)", "(1)", "(2)", "(1)/(2)");
}

static void print_two_disks(
	FILE *out, const struct vduse_row *first, const struct vduse_row *second)
{
	double cpu = vduse_cpu_ratio(first, second);
	char a[UNITS_TEXT], b[UNITS_TEXT];

	fprintf(out, "  %9s  %9s  %8.2f", thousands_of(a, first), thousands_of(b, second),
		vduse_ratio(first, second));
	fprintf(out, "    %9s  %9s", cpu_text(a, vduse_row_middle(first)),
		cpu_text(b, vduse_row_middle(second)));
	if (cpu > 0)
		fprintf(out, "  %8.2f\n", cpu);
	else
		fprintf(out, "  %8s\n", "-");
}

static void print_pairs(FILE *out, const struct vduse_report *report)
{
	bool two = report->n_disks > 1;
	char sentence[VDUSE_SENTENCE], page[UNITS_TEXT], load[UNITS_TEXT];

	(two ? print_disks_head : print_units_head)(out);
	for (unsigned i = 0; i + 1 < report->n_rows; i += 2) {
		const struct vduse_row *first = &report->rows[i], *second = first + 1;

		if (!first->n || !second->n)
			continue;
		fprintf(out, "%-4s  %-6s", units_short(page, 1ull << first->page_shift),
			load_name(load, first));
		if (two)
			print_two_disks(out, first, second);
		else
			print_units(out, report, first, second);
		vduse_explain(first, second, sentence);
		print_sentence(out, sentence);
	}
	if (!two)
		fprintf(out,
			"\n(1) 512-byte writes on arm64 with 64K pages, QEMU's daemon, fio; it "
			"gives no other loads.\n");
}

void vduse_print_table(FILE *out, const struct vduse_report *report)
{
	unsigned measured = 0;

	print_conditions(out, report);
	print_head(out, report);
	for (unsigned i = 0; i < report->n_rows; i++) {
		measured += report->rows[i].n;
		print_row(out, report, &report->rows[i], i % (2 * report->options->n_shapes) == 0);
	}
	print_verified(out, report);
	if (measured)
		print_pairs(out, report);
	fprintf(out, "%u runs, %.1f s\n", measured, report->seconds);
	if (report->signal)
		fprintf(out, "interrupted by SIG%s: what was complete is above\n",
			sigabbrev_np(report->signal));
}
