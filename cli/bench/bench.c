/* SPDX-License-Identifier: MIT */
/*
 * dmamap bench: how long DMA mapping takes, for every mode, memory and
 * prefault. The steps: read the options, plan the rows, run them, print the
 * report. All that is in other files; here is their order, and the exit
 * status. dmamap bench vduse is a bench of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/bench_vduse/bench_vduse.h"
#include "cli/command.h"
#include "compare.h"
#include "host.h"
#include "hugepages.h"
#include "interrupt.h"
#include "options.h"
#include "plan.h"
#include "print.h"
#include "run.h"

/* struct session - All that one bench holds. */
struct session {
	struct options options;
	struct plan plan;
	struct report report;
	struct output outputs[FORMATS];
	struct base *base;
	struct complaint complaint;
};

static void list(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_variants; i++)
		puts(plan->variants[i].name);
}

/* One line on the terminal, written over again and again, and gone at the end. */
static void show_progress(const struct result *result, size_t done, size_t total)
{
	char name[RESULT_NAME];

	fprintf(stderr, "\r\033[K[%zu/%zu] %s %s", done, total, result->system->name,
		result_name(result, name));
	fflush(stderr);
}

static struct style style_of(const struct options *options)
{
	const char *no_color = getenv("NO_COLOR");
	const char *columns = getenv("COLUMNS");
	bool terminal = isatty(STDOUT_FILENO);
	struct winsize size = {0};
	struct style style;

	style.color = options->color == COLOR_ALWAYS ||
		      (options->color == COLOR_AUTO && terminal && !(no_color && no_color[0]));
	if (columns)
		size.ws_col = (unsigned short)atoi(columns);
	else if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		size.ws_col = 0;
	style.wide = size.ws_col >= PRINT_WIDE;
	return style;
}

static bool on_stdout(const struct options *options)
{
	for (unsigned format = 0; format < FORMATS; format++)
		if (options->output[format] && !strcmp(options->output[format], "-"))
			return true;
	return false;
}

/* Before the measuring, so that no minute is spent on what cannot be written down. */
static int open_files(struct session *session)
{
	const struct options *options = &session->options;

	if (options->compare && base_read(options->compare, &session->base, &session->complaint))
		return -1;
	for (unsigned format = 0; format < FORMATS; format++)
		if (options->output[format] &&
			output_open(&session->outputs[format], options->output[format],
				&session->complaint))
			return -1;
	return 0;
}

static int measure(struct session *session)
{
	const struct options *options = &session->options;
	struct report *report = &session->report;
	bool terminal = isatty(STDERR_FILENO);

	report->started = time(NULL);
	report->seed = options->seed;
	report->size = options->size;
	report->runs = options->runs;
	report->sparse = options->sparse;
	if (plan_make(&session->plan, options, report, &session->complaint) || open_files(session))
		return -1;
	interrupt_catch(hugepages_restore);
	if (run_plan(&session->plan, options, report, terminal ? show_progress : NULL))
		return complain(&session->complaint, "out of memory");
	if (terminal)
		fputs("\r\033[K", stderr);
	return 0;
}

static int print_formats(struct session *session)
{
	int error = 0;

	for (unsigned format = 0; format < FORMATS && !error; format++) {
		struct output *output = &session->outputs[format];

		if (!output->file)
			continue;
		if (format == FORMAT_CSV)
			print_csv(output->file, &session->report);
		else if (format == FORMAT_TAP)
			print_tap(output->file, &session->report);
		else if (print_json(output->file, &session->report))
			error = complain(&session->complaint, "out of memory");
		if (output_close(output, &session->complaint))
			error = -1;
	}
	return error;
}

static bool any_failed(const struct report *report)
{
	for (size_t i = 0; i < report->n_results; i++)
		if (report->results[i].status == STATUS_FAILED)
			return true;
	return false;
}

/* Prints everything; returns the exit status, or -1 with a complaint. */
static int print_all(struct session *session)
{
	const struct options *options = &session->options;
	const struct report *report = &session->report;
	struct style style = style_of(options);
	bool taken = on_stdout(options);
	size_t slow = 0;

	if (!taken && options->verbose)
		print_verbose(stdout, report, &style);
	else if (!taken)
		print_table(stdout, report, &style);
	if (print_formats(session))
		return -1;
	/* Colours were chosen for standard output. */
	if (taken)
		style.color = options->color == COLOR_ALWAYS;
	if (session->base)
		slow = compare_print(
			taken ? stderr : stdout, session->base, report, options->threshold, &style);
	if (report->signal)
		return EXIT_SIGNAL + report->signal;
	return any_failed(report) || slow ? EXIT_FOUND : EXIT_DONE;
}

static void session_free(struct session *session)
{
	struct complaint ignored;

	for (unsigned format = 0; format < FORMATS; format++)
		output_close(&session->outputs[format], &ignored);
	base_free(session->base);
	report_free(&session->report);
	plan_free(&session->plan);
	options_free(&session->options);
}

int bench_command(int argc, char **argv)
{
	struct session *session;
	int status = -1;

	if (argc > 1 && !strcmp(argv[1], "vduse"))
		return bench_vduse_command(argc - 1, argv + 1);
	session = calloc(1, sizeof(*session));
	if (!session)
		return EXIT_USAGE;
	host_read(&session->report.host);
	if (options_parse(&session->options, argc, argv, session->report.host.page_size,
		    &session->complaint))
		goto complain;
	if (session->options.action == ACTION_HELP) {
		options_help(stdout);
		status = EXIT_DONE;
		goto free_session;
	}
	if (plan_variants(&session->plan, &session->options, &session->complaint))
		goto complain;
	if (session->options.action == ACTION_LIST) {
		list(&session->plan);
		status = EXIT_DONE;
		goto free_session;
	}
	if (!measure(session))
		status = print_all(session);
complain:
	if (status < 0) {
		fprintf(stderr, "dmamap bench: %s\n", session->complaint.text);
		status = EXIT_USAGE;
	}
free_session:
	session_free(session);
	free(session);
	return status;
}
