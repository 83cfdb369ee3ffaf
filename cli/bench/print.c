/* SPDX-License-Identifier: MIT */
/* What the outputs share: colours, files that may be full, and common sentences. */
#include "print.h"

#include <errno.h>
#include <string.h>

static const char *const inks[] = {
	[INK_PLAIN] = "",
	[INK_HEAD] = "\033[1m",
	[INK_DIM] = "\033[2m",
	[INK_GOOD] = "\033[32m",
	[INK_WARN] = "\033[33m",
	[INK_BAD] = "\033[31m",
};

const char *ink_on(const struct style *style, enum ink ink)
{
	return style->color ? inks[ink] : "";
}

const char *ink_off(const struct style *style, enum ink ink)
{
	return style->color && ink != INK_PLAIN ? "\033[0m" : "";
}

const char *print_note(const struct system_info *system)
{
	return system->note ? system->note : "the running kernel's work";
}

char *print_runs(const struct report *report, char text[PRINT_RUNS])
{
	size_t least = SIZE_MAX;
	size_t most = 0;

	for (size_t i = 0; i < report->n_results; i++) {
		size_t n = report->results[i].n;

		if (!n)
			continue;
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	if (!most)
		snprintf(text, PRINT_RUNS, "no runs");
	else if (least == most)
		snprintf(text, PRINT_RUNS, "%zu run%s", most, most > 1 ? "s" : "");
	else
		snprintf(text, PRINT_RUNS, "%zu to %zu runs", least, most);
	return text;
}

void print_summary(FILE *out, const struct report *report, const struct style *style)
{
	size_t counts[4] = {0};

	for (size_t i = 0; i < report->n_results; i++)
		counts[report->results[i].status]++;
	fprintf(out, "%zu run, %zu skipped, %zu refused as they must be, ", counts[STATUS_RUN],
		counts[STATUS_SKIPPED], counts[STATUS_REFUSED]);
	fprintf(out, "%s%zu failed%s, %.1f s\n",
		ink_on(style, counts[STATUS_FAILED] ? INK_BAD : INK_PLAIN), counts[STATUS_FAILED],
		ink_off(style, counts[STATUS_FAILED] ? INK_BAD : INK_PLAIN), report->seconds);
	if (report->signal)
		fprintf(out, "%sinterrupted by SIG%s: what was complete is above%s\n",
			ink_on(style, INK_WARN), sigabbrev_np(report->signal),
			ink_off(style, INK_WARN));
}

int output_open(struct output *output, const char *path, struct complaint *complaint)
{
	if (!strcmp(path, "-")) {
		*output = (struct output){stdout, "standard output"};
		return 0;
	}
	*output = (struct output){fopen(path, "we"), path};
	if (!output->file)
		return complain(complaint,
			"%s cannot be written (%s); name a file in a place where you may write",
			path, strerror(errno));
	return 0;
}

int output_close(struct output *output, struct complaint *complaint)
{
	bool failed;
	int error;

	if (!output->file)
		return 0;
	errno = 0;
	failed = fflush(output->file) || ferror(output->file);
	error = errno;
	if (output->file != stdout && fclose(output->file) && !failed) {
		failed = true;
		error = errno;
	}
	output->file = NULL;
	if (!failed)
		return 0;
	return complain(complaint, "%s is incomplete (%s); make room, or write elsewhere",
		output->name, strerror(error ? error : EIO));
}
