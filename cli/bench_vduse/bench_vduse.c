/* SPDX-License-Identifier: MIT */
/*
 * dmamap bench vduse: how fast a disk over VDUSE is with bounce units of a page
 * and of 4K, or two disks beside each other, and why. The steps: read the options, plan the rows,
 * run them, print the report.
 */
#include "bench_vduse.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/print.h"
#include "cli/command.h"
#include "print.h"
#include "run.h"

struct session {
	struct vduse_options options;
	struct vduse_report report;
	struct output outputs[VDUSE_FORMATS];
	struct complaint complaint;
};

/* By another thread; over the line of progress, where there is one. */
static void show_refusal(const struct vduse_disk *by, const char *sentence)
{
	fprintf(stderr, "%srefused%s%s: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
		by->name[0] ? " " : "", by->name, sentence);
}

/* One line on the terminal, written over again and again, and gone at the end. */
static void show_progress(const struct vduse_row *row, unsigned done, unsigned total)
{
	char text[VDUSE_ROW_TEXT];

	fprintf(stderr, "\r\033[K[%u/%u] %s", done, total, vduse_row_text(row, text));
	fflush(stderr);
}

static int measure(struct session *session)
{
	struct vduse_report *report = &session->report;
	bool terminal = isatty(STDERR_FILENO);
	const struct vduse_listener listener = {
		.progress = terminal ? show_progress : NULL,
		.refused = session->options.verbose ? show_refusal : NULL,
	};
	int error;

	/* Before the measuring, so that no minute is spent on what cannot be written down. */
	for (unsigned format = 0; format < VDUSE_FORMATS; format++)
		if (session->options.output[format] &&
			output_open(&session->outputs[format], session->options.output[format],
				&session->complaint))
			return -1;
	report->started = time(NULL);
	host_read(&report->host);
	if (vduse_report_plan(report, &session->options, &session->complaint))
		return -1;
	error = vduse_run_all(report, &listener, &session->complaint);
	if (terminal)
		fputs("\r\033[K", stderr);
	return error;
}

static bool on_stdout(const struct vduse_options *options)
{
	for (unsigned format = 0; format < VDUSE_FORMATS; format++)
		if (options->output[format] && !strcmp(options->output[format], "-"))
			return true;
	return false;
}

static int print_formats(struct session *session)
{
	int error = 0;

	for (unsigned format = 0; format < VDUSE_FORMATS && !error; format++) {
		struct output *output = &session->outputs[format];

		if (!output->file)
			continue;
		if (format == VDUSE_CSV)
			vduse_print_csv(output->file, &session->report);
		else if (vduse_print_json(output->file, &session->report))
			error = complain(&session->complaint, "out of memory");
		if (output_close(output, &session->complaint))
			error = -1;
	}
	return error;
}

/* Prints everything; returns the exit status, or -1 with a complaint. */
static int print_all(struct session *session)
{
	const struct vduse_report *report = &session->report;

	if (!on_stdout(&session->options))
		vduse_print_table(stdout, report);
	if (print_formats(session))
		return -1;
	if (report->signal)
		return EXIT_SIGNAL + report->signal;
	for (unsigned i = 0; i < report->n_rows; i++)
		if (vduse_row_failed(&report->rows[i]))
			return EXIT_FOUND;
	return EXIT_DONE;
}

/* What a command printed, if something went wrong with it. */
static void show_printed(const struct session *session)
{
	const char *line = session->report.printed;

	if (*line)
		fprintf(stderr, "%s printed:\n", session->report.printer);
	while (*line) {
		size_t length = strcspn(line, "\n");

		fprintf(stderr, "    %.*s\n", (int)length, line);
		line += length + (line[length] == '\n');
	}
}

int bench_vduse_command(int argc, char **argv)
{
	struct session *session = calloc(1, sizeof(*session));
	struct complaint ignored;
	int status = -1;

	if (!session)
		return EXIT_USAGE;
	if (vduse_options_parse(&session->options, argc, argv, &session->complaint))
		goto complain;
	if (session->options.help) {
		vduse_options_help(stdout);
		status = EXIT_DONE;
	} else if (!measure(session)) {
		status = print_all(session);
	}
complain:
	if (status < 0) {
		fprintf(stderr, "dmamap bench vduse: %s\n", session->complaint.text);
		status = EXIT_USAGE;
	}
	show_printed(session);
	for (unsigned format = 0; format < VDUSE_FORMATS; format++)
		output_close(&session->outputs[format], &ignored);
	vduse_report_free(&session->report);
	free(session);
	return status;
}
