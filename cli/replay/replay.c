/* SPDX-License-Identifier: MIT */
/*
 * dmamap replay: each case runs in a process of its own, so that it starts with
 * clean limits and descriptors, leaves nothing behind, and may even crash.
 */
#include "replay.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/differential/command.h"
#include "report.h"

struct totals {
	unsigned passed, failed, skipped, bad;
};

/* In the case's own process. Return: the verdict is in @progress, or it is bad. */
static void run_file(
	const struct replay_options *options, const char *path, struct progress *progress)
{
	struct complaint complaint = {""};
	struct case_file *file = case_read(path, &complaint);
	char *text = NULL;
	size_t length = 0;
	FILE *out = stdout;
	int error = -1;

	/* An object of JSON is printed whole, or not at all. */
	if (options->format == FORMAT_JSON)
		out = open_memstream(&text, &length);
	if (file && out)
		error = run_case(file, options, progress, out, &complaint);
	if (out && out != stdout) {
		fclose(out);
		if (!error)
			fwrite(text, 1, length, stdout);
		free(text);
	}
	if (error) {
		progress->verdict = CASE_BAD;
		snprintf(progress->reason, sizeof(progress->reason), "%s", complaint.text);
	}
	case_destroy(file);
	if (fflush(stdout) || ferror(stdout)) {
		progress->verdict = CASE_BAD;
		snprintf(progress->reason, sizeof(progress->reason),
			"standard output cannot be written (%s); send it elsewhere",
			strerror(errno ? errno : EIO));
	}
}

/* The case's object, where its process could not print it. */
static void json_gone(const char *path, const char *verdict, const struct progress *progress)
{
	fputs("{\"file\": ", stdout);
	report_json_text(stdout, path);
	printf(", \"calls\": [], \"verdict\": \"%s\", \"why\": ", verdict);
	report_json_text(stdout, progress->reason);
	fputc('}', stdout);
}

static void tap_line(unsigned number, const char *path, const struct progress *progress)
{
	const char *title = progress->title;

	printf("%sok %u - %s%s%.*s",
		progress->verdict == CASE_FAILED || progress->verdict == CASE_BAD ? "not " : "",
		number, path, *title ? ": " : "", (int)strcspn(title, "#"), title);
	if (progress->verdict == CASE_SKIPPED)
		printf(" # SKIP %s", progress->reason);
	putchar('\n');
}

static void count(struct totals *totals, const struct progress *progress)
{
	totals->passed += progress->verdict == CASE_PASSED;
	totals->failed += progress->verdict == CASE_FAILED;
	totals->skipped += progress->verdict == CASE_SKIPPED;
	totals->bad += progress->verdict == CASE_BAD;
}

static void print_crash(const struct replay_options *options, const char *path, int status,
	struct progress *progress)
{
	progress->verdict = CASE_FAILED;
	if (WIFSIGNALED(status))
		snprintf(progress->reason, sizeof(progress->reason),
			"line %u: the process of the case crashed (%s)", progress->line,
			strsignal(WTERMSIG(status)));
	else
		snprintf(progress->reason, sizeof(progress->reason),
			"line %u: the process of the case ended with status %d", progress->line,
			WEXITSTATUS(status));
	if (options->format == FORMAT_JSON)
		json_gone(path, "crashed", progress);
	else
		printf("%s%s: %s\n", options->format == FORMAT_TAP ? "# " : "", path,
			progress->reason);
}

static int replay_file(const struct replay_options *options, int index, struct totals *totals,
	struct progress *progress)
{
	const char *path = options->files[index];
	int status;
	pid_t pid;

	memset(progress, 0, sizeof(*progress));
	if (options->format == FORMAT_JSON && index)
		fputs(",\n", stdout);
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		fprintf(stderr, "dmamap replay: no process for %s (%s)\n", path, strerror(errno));
		return -1;
	}
	if (!pid) {
		run_file(options, path, progress);
		exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) || progress->verdict == CASE_RUNNING) {
		print_crash(options, path, status, progress);
	} else if (progress->verdict == CASE_BAD) {
		fprintf(stderr, "dmamap replay: %s\n", progress->reason);
		if (options->format == FORMAT_JSON)
			json_gone(path, "bad", progress);
	}
	if (options->format == FORMAT_TAP)
		tap_line((unsigned)index + 1, path, progress);
	count(totals, progress);
	return 0;
}

static void print_totals(const struct replay_options *options, const struct totals *totals)
{
	if (options->format == FORMAT_JSON)
		printf("\n], \"passed\": %u, \"failed\": %u, \"skipped\": %u, \"bad\": %u}\n",
			totals->passed, totals->failed, totals->skipped, totals->bad);
	else if (options->format == FORMAT_TEXT)
		printf("%u case%s passed, %u failed, %u skipped\n", totals->passed,
			totals->passed == 1 ? "" : "s", totals->failed, totals->skipped);
}

int replay_command(int argc, char **argv)
{
	struct replay_options options;
	struct complaint complaint;
	struct totals totals = {0};
	struct progress *progress;

	switch (replay_options_read(argc, argv, &options, &complaint)) {
	case OPTIONS_HELP:
		replay_help(stdout);
		return EXIT_DONE;
	case OPTIONS_STATEMENTS:
		verb_list(stdout);
		return EXIT_DONE;
	case OPTIONS_RANDOM:
		return differential_command(&options);
	case OPTIONS_RUN:
		break;
	default:
		fprintf(stderr, "dmamap replay: %s\n", complaint.text);
		return EXIT_USAGE;
	}
	progress = mmap(
		NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED) {
		fprintf(stderr, "dmamap replay: no memory\n");
		return EXIT_USAGE;
	}
	if (options.format == FORMAT_TAP)
		printf("TAP version 13\n1..%d\n", options.n_files);
	else if (options.format == FORMAT_JSON)
		printf("{\"schema\": {\"name\": \"dmamap-replay\", \"version\": 1}, \"system\": "
		       "\"%s\", \"cases\": [\n",
			options.linux_system ? "linux" : "soft");
	for (int i = 0; i < options.n_files; i++) {
		if (replay_file(&options, i, &totals, progress))
			totals.bad++;
	}
	print_totals(&options, &totals);
	munmap(progress, sizeof(*progress));
	if (totals.bad)
		return EXIT_USAGE;
	return totals.failed ? EXIT_FOUND : EXIT_DONE;
}
