/* SPDX-License-Identifier: MIT */
/*
 * Each random sequence runs in a child of its own, so that it starts with both
 * systems fresh, leaves nothing behind, and may even crash: that is a mismatch
 * like any other, and so is a call that does not come back. The systems are made
 * once, and each child has its own copy of them by being forked. A sequence with
 * a mismatch is shrunk, each attempt in a child as well.
 */
#include "cli/differential/differential.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/differential/generate.h"
#include "cli/differential/shrink.h"

#define HUNG_SECONDS   30
#define SHRINK_TRIALS  600
#define SHRINK_SECONDS 120 /* a trial can take long: where it waits for a device */
#define KINDS	       64  /* different mismatches; then it ends */

struct run {
	struct differential *differential;
	struct verdict *verdict; /* shared with the children */
	struct world world;
	double started;
	uint64_t told;
	double shrink_until;
	/* Of the mismatch that is shrunk. */
	enum verdict_kind kind;
	char sign[sizeof(((struct verdict *)0)->sign)];
	char signs[KINDS][sizeof(((struct verdict *)0)->sign)];
	uint64_t seen[KINDS];
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Once a second is enough. */
static void tell(struct run *run, bool last)
{
	struct differential *differential = run->differential;
	double seconds = now() - run->started;
	uint64_t calls = run->verdict->calls;

	if (!differential->progress || (!last && (uint64_t)seconds == run->told))
		return;
	run->told = (uint64_t)seconds;
	fprintf(differential->progress,
		"\r%" PRIu64 " of %" PRIu64 " calls, %.0f a second, %" PRIu64 " mismatches%s",
		calls, differential->calls, seconds > 0 ? (double)calls / seconds : 0,
		differential->mismatches, last ? "\n" : " ");
	fflush(differential->progress);
}

/* ---------------------------------------------------------------- children */

static void on_alarm(int signal)
{
	(void)signal; /* it ends waitpid() */
}

/* Where in the kernel a child waits, for who looks into it; root may know. */
static void print_stack(struct run *run, pid_t child)
{
	FILE *out = run->differential->out, *stack;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/stack", (int)child);
	stack = fopen(path, "r");
	if (!stack)
		return;
	while (fgets(line, sizeof(line), stack))
		fprintf(out, "# in the kernel: %s", line);
	fclose(stack);
	fflush(out);
}

/*
 * Waits for a child, however it ends; one that makes no call any more is ended. One that
 * does not end even then is left alone, and nothing more can be done.
 */
static int await(struct run *run, pid_t child)
{
	struct verdict *verdict = run->verdict;
	uint64_t seen = UINT64_MAX;
	int status;

	for (;;) {
		alarm(HUNG_SECONDS);
		if (waitpid(child, &status, 0) == child)
			break;
		if (verdict->kind == VERDICT_HUNG)
			return -EBUSY;
		if (seen == verdict->calls) {
			print_stack(run, child);
			kill(child, SIGKILL);
			verdict->kind = VERDICT_HUNG;
		}
		seen = verdict->calls;
	}
	alarm(0);
	if (verdict->kind == VERDICT_HUNG) {
		snprintf(verdict->what, sizeof(verdict->what),
			"the call did not come back within %d s", HUNG_SECONDS);
	} else if (WIFSIGNALED(status)) {
		verdict->kind = VERDICT_CRASHED;
		verdict->number = WTERMSIG(status);
		snprintf(verdict->what, sizeof(verdict->what), "the soft system died: %s",
			strsignal(verdict->number));
	} else if (WEXITSTATUS(status)) {
		/* A sanitizer's way. */
		verdict->kind = VERDICT_CRASHED;
		snprintf(verdict->what, sizeof(verdict->what), "the soft system ended with %d",
			WEXITSTATUS(status));
	}
	return 0;
}

/* A crash has the sign of the verb that it was in. */
static void sign_crash(struct verdict *verdict, const struct script *script)
{
	const char *line = verdict->line < script->n ? script_line(script, verdict->line) : "";

	if (verdict->kind == VERDICT_CRASHED)
		snprintf(verdict->sign, sizeof(verdict->sign), "%.*s: signal %d",
			(int)strcspn(line, " "), line, verdict->number);
	else if (verdict->kind == VERDICT_HUNG)
		snprintf(verdict->sign, sizeof(verdict->sign), "%.*s: hung",
			(int)strcspn(line, " "), line);
}

static int run_child(struct run *run, const struct script *script, FILE *answers)
{
	struct verdict *verdict = run->verdict;
	pid_t child;
	int r;

	verdict->kind = VERDICT_SAME;
	verdict->line = 0;
	verdict->number = 0;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		pair_run(&run->differential->pair, script, verdict, answers);
		if (answers)
			fflush(answers);
		_exit(0);
	}
	r = await(run, child);
	sign_crash(verdict, script);
	return r;
}

/* --------------------------------------------------------------- shrinking */

static bool shows(void *context, const struct script *script)
{
	struct run *run = context;

	return now() < run->shrink_until && !run_child(run, script, NULL) &&
	       run->verdict->kind == run->kind && !strcmp(run->verdict->sign, run->sign);
}

/* The lines after the one that showed it have nothing to do with it. */
static void copy_until(struct script *to, const struct script *from, uint32_t last)
{
	for (size_t i = 0; i < from->n && i <= last; i++) {
		script_add(to, "%s", script_line(from, i));
		script_end(to);
	}
}

static void write_case(struct run *run, FILE *file, uint64_t sequence, const struct script *script)
{
	struct verdict *verdict = run->verdict;

	fprintf(file,
		"format 1\ntitle  %s\nsource random calls, seed %" PRIu64 ", sequence %" PRIu64
		"\n\n",
		run->sign, run->differential->seed, sequence);
	fflush(file);
	run_child(run, script, file);
	if ((verdict->kind == VERDICT_CRASHED || verdict->kind == VERDICT_HUNG) &&
		verdict->line < script->n)
		fprintf(file, "%s\n", script_line(script, verdict->line));
	fprintf(file, "# %s\n",
		verdict->kind == run->kind ? verdict->what : "it does not happen again");
}

static bool copy_file(FILE *from, FILE *to)
{
	char buffer[4096];
	size_t n;

	rewind(from);
	while ((n = fread(buffer, 1, sizeof(buffer), from)) > 0)
		fwrite(buffer, 1, n, to);
	return !ferror(from) && !ferror(to);
}

static int save(const struct differential *differential, FILE *from)
{
	char path[4096];
	FILE *file;
	bool good;

	if (!differential->save)
		return 0;
	snprintf(path, sizeof(path), "%s-%u.case", differential->save, differential->kinds);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	good = copy_file(from, file);
	return fclose(file) || !good ? -EIO : 0;
}

/* A mismatch of a new kind: its case is printed and saved. */
static int report(struct run *run, uint64_t sequence)
{
	struct differential *differential = run->differential;
	uint64_t calls = run->verdict->calls;
	struct shrink small = {.shows = shows, .context = run, .budget = SHRINK_TRIALS};
	FILE *file = tmpfile();
	int r;

	if (!file)
		return -errno;
	fprintf(differential->out, "sequence %" PRIu64 ": %s\n", sequence, run->sign);
	fflush(differential->out);
	/* What a child wrote before it died must be there. */
	setvbuf(file, NULL, _IONBF, 0);
	run->shrink_until = now() + SHRINK_SECONDS;
	copy_until(&small.script, &run->world.script, run->verdict->line);
	if (!small.script.failed && shows(run, &small.script))
		shrink(&small);
	write_case(run, file, sequence, &small.script);
	script_free(&small.script);
	run->verdict->calls = calls;

	if (differential->progress)
		fputc('\n', differential->progress);
	copy_file(file, differential->out);
	fputc('\n', differential->out);
	fflush(differential->out);
	r = save(differential, file);
	fclose(file);
	return r;
}

/* Whether a mismatch of this kind was seen already; it is from now on. */
static bool known(struct run *run)
{
	unsigned *kinds = &run->differential->kinds, i;

	for (i = 0; i < *kinds; i++)
		if (!strcmp(run->signs[i], run->sign))
			break;
	if (run->seen[i]++)
		return true;
	memcpy(run->signs[(*kinds)++], run->sign, sizeof(run->sign));
	return false;
}

static int run_sequences(struct run *run)
{
	struct differential *differential = run->differential;
	struct verdict *verdict = run->verdict;
	int r = 0;

	for (uint64_t sequence = 0;
		!r && verdict->calls < differential->calls && differential->kinds < KINDS;
		sequence++) {
		generate(&run->world, &differential->host, differential->seed, sequence,
			differential->calls - verdict->calls);
		r = run->world.script.failed ? -ENOMEM : run_child(run, &run->world.script, NULL);
		tell(run, false);
		if (verdict->no_dma && differential->host.dma) {
			fputs("the device does no DMA any more: none from here on\n",
				differential->out);
			differential->host.dma = false;
		}
		if (r == -EBUSY)
			fprintf(differential->out,
				"sequence %" PRIu64 ", %s: it cannot even be ended: %s\n", sequence,
				verdict->sign, script_line(&run->world.script, verdict->line));
		if (r || verdict->kind == VERDICT_SAME)
			continue;
		differential->mismatches++;
		run->kind = verdict->kind;
		memcpy(run->sign, verdict->sign, sizeof(run->sign));
		if (!known(run))
			r = report(run, sequence);
	}
	return r;
}

static void print_kinds(const struct run *run)
{
	const struct differential *differential = run->differential;

	for (unsigned i = 0; i < differential->kinds; i++)
		fprintf(differential->out, "%6" PRIu64 " x %s\n", run->seen[i], run->signs[i]);
}

int differential_run(struct differential *differential)
{
	struct run *run = calloc(1, sizeof(*run));
	const struct sigaction action = {.sa_handler = on_alarm};
	struct sigaction before;
	int r;

	if (!run)
		return -ENOMEM;
	run->verdict = mmap(NULL, sizeof(*run->verdict), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run->verdict == MAP_FAILED) {
		free(run);
		return -ENOMEM;
	}
	run->differential = differential;
	run->started = now();
	sigaction(SIGALRM, &action, &before);
	r = run_sequences(run);
	sigaction(SIGALRM, &before, NULL);
	differential->made = run->verdict->calls;
	differential->seconds = now() - run->started;
	tell(run, true);
	print_kinds(run);
	script_free(&run->world.script);
	munmap(run->verdict, sizeof(*run->verdict));
	free(run);
	return r;
}
