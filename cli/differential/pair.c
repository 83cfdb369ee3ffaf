/* SPDX-License-Identifier: MIT */
/*
 * The runner of cases (cli/replay) with two systems side by side: each
 * statement on the reference, then on the soft system. Nothing is expected of
 * the answers but that they are the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/differential/verdict.h"
#include "cli/replay/run.h"

static void differs(struct verdict *verdict, const char *sign, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void differs(struct verdict *verdict, const char *sign, const char *format, ...)
{
	va_list arguments;

	snprintf(verdict->sign, sizeof(verdict->sign), "%s", sign);
	va_start(arguments, format);
	vsnprintf(verdict->what, sizeof(verdict->what), format, arguments);
	va_end(arguments);
	verdict->kind = VERDICT_DIFFERENT;
}

static void invalid(struct verdict *verdict, const char *why)
{
	verdict->kind = VERDICT_INVALID;
	snprintf(verdict->sign, sizeof(verdict->sign), "invalid");
	snprintf(verdict->what, sizeof(verdict->what), "%s", why);
}

static const char *result_text(const struct case_statement *statement,
	const struct outcome *outcome, char *text, size_t size)
{
	const char *name = outcome->result < 0 ? strerrorname_np((int)-outcome->result) : NULL;
	bool opened = statement->verb->flags & VERB_OPENS;

	if (outcome->fault)
		return "fault";
	if (name)
		return name;
	snprintf(text, size, "%" PRId64, opened && outcome->result > 0 ? 0 : outcome->result);
	return text;
}

/* Numbers of descriptors are nobody's answer. */
static bool same_result(const struct case_statement *statement, const struct outcome *one,
	const struct outcome *other)
{
	bool handle = statement->verb->flags & (VERB_OPENS | VERB_HANDLE);

	return one->fault == other->fault &&
	       (one->result == other->result || (handle && one->result >= 0 && other->result >= 0));
}

/* Whether a field is an answer, and differs. */
static bool output_differs(
	struct replay *replay, const struct case_statement *statement, unsigned i)
{
	const struct field *field = &statement->verb->fields[i];
	struct output one, other;

	if (!(field->use & USE_OUT) || field->use & USE_KEPT || field->role == ROLE_REASON)
		return false;
	output_get(replay, statement, &replay->outcomes[0], i, &one);
	output_get(replay, statement, &replay->outcomes[1], i, &other);
	return !output_equal(&one, &other);
}

static const char *output_text(struct replay *replay, const struct case_statement *statement,
	unsigned side, unsigned i, char *text, size_t size)
{
	struct line line = {text, size, 0};
	struct output output;

	output_get(replay, statement, &replay->outcomes[side], i, &output);
	text[0] = '\0';
	output_print(&line, &statement->verb->fields[i], &output);
	return text;
}

/* What is done to the process itself is no answer of a system's. */
static bool is_answer(const struct case_statement *statement)
{
	switch (statement->verb->action) {
	case ACTION_LIMIT:
	case ACTION_CAPABILITY:
	case ACTION_MEMORY:
	case ACTION_MUNMAP:
	case ACTION_PROTECT:
	case ACTION_EVENTFD:
		return false;
	default:
		return true;
	}
}

static void compare(
	struct replay *replay, const struct case_statement *statement, struct verdict *verdict)
{
	const struct outcome *one = &replay->outcomes[0], *other = &replay->outcomes[1];
	const struct field *fields = statement->verb->fields;
	char a[160], b[160], sign[sizeof(verdict->sign)];

	if (one->uncounted || other->uncounted) {
		verdict->no_dma |= one->result == -ETIMEDOUT;
		return;
	}
	/* That a real device reads something else can also mean that it reads nothing. */
	if (statement->verb->action == ACTION_DMA_READ &&
		(one->fault || one->said[0]) == (other->fault || other->said[0]))
		return;
	if (!same_result(statement, one, other)) {
		const char *first = result_text(statement, one, a, sizeof(a));
		const char *second = result_text(statement, other, b, sizeof(b));

		snprintf(sign, sizeof(sign), "%.40s: %.30s, not %.30s", statement->verb->name,
			one->result > 0 ? "a number" : first,
			other->result > 0 ? "a number" : second);
		differs(verdict, sign, "soft says %s%s%s", second, other->step ? " of " : "",
			other->step ? other->step : "");
		return;
	}
	for (unsigned i = 0; fields[i].name; i++) {
		if (!output_differs(replay, statement, i))
			continue;
		snprintf(sign, sizeof(sign), "%.40s: another %.30s%s", statement->verb->name,
			fields[i].name, one->result < 0 ? " with an error" : "");
		differs(verdict, sign, "soft says %s=%s", fields[i].name,
			output_text(replay, statement, 1, i, b, sizeof(b)));
		return;
	}
}

/* What both have locked for this process. */
static void compare_charges(struct replay *replay, struct verdict *verdict)
{
	struct dmamap_soft_charge one = {0}, other = {0};

	if (replay->sides[0].soft) {
		dmamap_soft_charged(replay->sides[0].system, 0, &one);
	} else {
		process_charge(&replay->processes[0], &one.locked, &one.pinned);
	}
	dmamap_soft_charged(replay->sides[1].system, 0, &other);
	if (one.locked != other.locked)
		differs(verdict, "charged: another locked",
			"locked is %" PRIu64 "K, soft says %" PRIu64 "K", one.locked >> 10,
			other.locked >> 10);
	else if (one.pinned != other.pinned)
		differs(verdict, "charged: another pinned",
			"pinned is %" PRIu64 "K, soft says %" PRIu64 "K", one.pinned >> 10,
			other.pinned >> 10);
}

/* The line as one of a case: with the reference's result, and with what differs. */
static void answer(struct replay *replay, const struct case_statement *statement, FILE *out)
{
	const struct outcome *outcome = &replay->outcomes[0];
	char text[4096];
	struct line line = {text, sizeof(text), 0};

	text[0] = '\0';
	line_call(&line, replay->file, statement);
	fprintf(out, "%s", text);
	if (outcome->result || outcome->fault)
		fprintf(out, "  => %s", result_text(statement, outcome, text, sizeof(text)));
	for (unsigned i = 0, n = 0; statement->verb->fields[i].name; i++) {
		if (!output_differs(replay, statement, i))
			continue;
		fprintf(out, "%s %s=%s", n++ || outcome->result ? "" : "  => 0",
			statement->verb->fields[i].name,
			output_text(replay, statement, 0, i, text, sizeof(text)));
	}
	fputc('\n', out);
}

/* The script as a case; NULL: it is none, or there is no memory. */
static struct case_file *parse(const struct script *script, struct verdict *verdict)
{
	struct case_file *file = case_create("random");
	struct complaint complaint = {"no memory"};

	for (size_t i = 0; file && i < script->n; i++) {
		const char *line = script_line(script, i);

		if (!case_append(file, line, strlen(line), &complaint) &&
			file->n_statements == i + 1)
			continue;
		case_destroy(file);
		file = NULL;
	}
	if (!file)
		invalid(verdict, complaint.text);
	return file;
}

void pair_run(const struct pair *pair, const struct script *script, struct verdict *verdict,
	FILE *answers)
{
	const struct replay_options options = {.format = FORMAT_TAP, .quiet = true};
	struct progress progress = {.verdict = CASE_RUNNING};
	struct case_file *file = parse(script, verdict);
	struct replay *replay = file ? calloc(1, sizeof(*replay)) : NULL;

	if (!replay)
		return;
	replay->file = file;
	replay->options = &options;
	replay->progress = &progress;
	replay->machine = *pair->machine;
	replay->sides[0].system = pair->reference;
	replay->sides[0].soft = strcmp(pair->reference->ops->name, "linux") != 0;
	replay->sides[1].system = pair->soft;
	replay->sides[1].soft = true;
	replay->n_sides = 2;
	if (run_state(replay, stdout) || facts_devices(replay)) {
		invalid(verdict, "there is no memory, or no device");
		return;
	}
	for (size_t i = 0; i < file->n_statements && verdict->kind == VERDICT_SAME; i++) {
		const struct case_statement *statement = &file->statements[i];

		verdict->line = (uint32_t)i;
		verdict->calls++;
		run_sides(replay, statement);
		if (progress.verdict == CASE_SKIPPED)
			invalid(verdict, progress.reason);
		else if (statement->verb->action == ACTION_CHARGED)
			compare_charges(replay, verdict);
		else if (is_answer(statement))
			compare(replay, statement, verdict);
		if (answers)
			answer(replay, statement, answers);
	}
}
