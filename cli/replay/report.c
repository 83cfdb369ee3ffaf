/* SPDX-License-Identifier: MIT */
/*
 * What is printed while a case runs. As text, each call is a line with its
 * result, and below it, indented, why it was refused, what to do, and what is
 * wrong. The JSON has the same, a call an object (docs/replay-json.md).
 */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_ ((size_t)64 << 10)

struct report {
	struct replay *replay;
	FILE *out;
	char *line;
	bool headed;
	size_t calls;
};

struct report *report_create(struct replay *replay, FILE *out)
{
	struct report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->line = malloc(LINE_MAX_);
	if (!report->line) {
		free(report);
		return NULL;
	}
	report->replay = replay;
	report->out = out;
	return report;
}

void report_destroy(struct report *report)
{
	if (report)
		free(report->line);
	free(report);
}

static struct line start_line(struct report *report)
{
	report->line[0] = '\0';
	return (struct line){report->line, LINE_MAX_, 0};
}

/* -------------------------------------------------------------------- values */

/* Whether the kernel wrote to a field, or it is there only as an output. */
static bool changed(struct replay *replay, const struct case_statement *statement,
	struct outcome *outcome, unsigned index, const struct output *output)
{
	const struct field *field = &statement->verb->fields[index];

	if (output->kind == OUTPUT_NONE || !replay->show_changes)
		return false;
	if (outcome->have >> index & 1)
		return true;
	if (outcome->result < 0 && !field->size)
		return false;
	if (field->size)
		return outcome->before && memcmp(outcome->before + field->offset,
						  outcome->structure + field->offset, field->size);
	/* Lists that are empty say nothing that somebody would miss. */
	return field->role != ROLE_DATA && outcome->before &&
	       (output->n || output->kind == OUTPUT_NUMBER);
}

static bool shown(struct report *report, const struct case_statement *statement,
	struct outcome *outcome, unsigned index, struct output *output)
{
	const struct field *field = &statement->verb->fields[index];

	if (!(field->use & USE_OUT) || field->role == ROLE_REASON)
		return false;
	output_get(report->replay, statement, outcome, index, output);
	return case_argument(statement, index, true) ||
	       changed(report->replay, statement, outcome, index, output);
}

static void result_text(
	struct line *line, const struct case_statement *statement, const struct outcome *outcome)
{
	char number[32];
	const char *name;

	if (outcome->fault) {
		line_text(line, "fault");
	} else if (outcome->result < 0) {
		name = strerrorname_np((int)-outcome->result);
		line_text(line, name ? name : strerror((int)-outcome->result));
	} else {
		snprintf(number, sizeof(number), "%" PRId64,
			statement->verb->flags & VERB_OPENS ? 0 : outcome->result);
		line_text(line, number);
	}
	if (outcome->step) {
		line_text(line, " of ");
		line_text(line, outcome->step);
	}
}

/* ---------------------------------------------------------------------- text */

static const char *prefix(const struct report *report)
{
	return report->replay->options->format == FORMAT_TAP ? "# " : "";
}

static void head(struct report *report)
{
	const struct case_file *file = report->replay->file;

	if (report->headed)
		return;
	report->headed = true;
	fprintf(report->out, "%s%s: %s\n", prefix(report), file->path,
		file->title ? file->title : "no title");
	if (file->source)
		fprintf(report->out, "%s    from %s\n", prefix(report), file->source);
}

static void print_reason(struct report *report, const struct outcome *outcome)
{
	char text[512];

	if (!outcome->has_reason)
		return;
	dmamap_reason_format(&outcome->reason, text, sizeof(text));
	fprintf(report->out, "%s    %s\n", prefix(report), text);
	if (advice(&outcome->reason, text, sizeof(text)))
		fprintf(report->out, "%s    %s\n", prefix(report), text);
}

static void call_text(struct report *report, const struct case_statement *statement,
	struct outcome *outcome, const struct finding *findings, unsigned n)
{
	struct line line = start_line(report);
	char where[32];
	bool quiet =
		report->replay->options->quiet || report->replay->options->format == FORMAT_TAP;

	if (quiet && !n)
		return;
	head(report);
	line_text(&line, prefix(report));
	line_text(&line, report->replay->file->path);
	snprintf(where, sizeof(where), ":%u: ", statement->line);
	line_text(&line, where);
	line_call(&line, report->replay->file, statement);
	line_text(&line, "  => ");
	if (outcome->uncounted)
		line_text(&line, "not counted here");
	else
		result_text(&line, statement, outcome);
	for (unsigned i = 0; statement->verb->fields[i].name; i++) {
		struct output output;

		if (!shown(report, statement, outcome, i, &output))
			continue;
		line_char(&line, ' ');
		line_text(&line, statement->verb->fields[i].name);
		line_char(&line, '=');
		output_print(&line, &statement->verb->fields[i], &output);
	}
	line_char(&line, '\n');
	fwrite(line.text, 1, strlen(line.text), report->out);
	if (line.n >= line.size)
		fputc('\n', report->out);
	if (outcome->result < 0 || outcome->fault)
		print_reason(report, outcome);
	for (unsigned i = 0; i < n; i++)
		fprintf(report->out, "%s    %s: %s\n", prefix(report),
			findings[i].disagree ? "DISAGREE" : "FAILED", findings[i].text);
}

/* ---------------------------------------------------------------------- JSON */

/* Bytes of the UTF-8 character that starts here; 0: it is none. */
static unsigned utf8_length(const char *text)
{
	unsigned char c = (unsigned char)text[0];
	unsigned n = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	for (unsigned i = 1; i < n; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 0;
	/* Too long for what they say, halves of pairs, and what is past the last one. */
	if ((c == 0xe0 && (unsigned char)text[1] < 0xa0) ||
		(c == 0xed && (unsigned char)text[1] > 0x9f) ||
		(c == 0xf0 && (unsigned char)text[1] < 0x90) ||
		(c == 0xf4 && (unsigned char)text[1] > 0x8f))
		return 0;
	return n;
}

void report_json_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; text && *text; text++) {
		unsigned char c = (unsigned char)*text;
		unsigned n = c < 0x80 ? 0 : utf8_length(text);

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (n)
			fwrite(text, 1, n, out);
		else if (c < 0x20 || c >= 0x7f)
			/* What is no text shows as the character of that number. */
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
		text += n ? n - 1 : 0;
	}
	fputc('"', out);
}

static void json_output(FILE *out, const struct output *output)
{
	switch (output->kind) {
	case OUTPUT_NUMBER:
		fprintf(out, "%" PRIu64, output->number);
		break;
	case OUTPUT_LIST:
		fputc('[', out);
		for (size_t i = 0; i < output->n; i++)
			fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "",
				output->ranges[i].first, output->ranges[i].last);
		fputc(']', out);
		break;
	case OUTPUT_BYTES:
		fputc('"', out);
		for (size_t i = 0; i < output->n; i++)
			fprintf(out, "%02x", output->bytes[i]);
		fputc('"', out);
		break;
	default:
		fputs("null", out);
		break;
	}
}

static void json_head(struct report *report)
{
	const struct case_file *file = report->replay->file;

	if (report->headed)
		return;
	report->headed = true;
	fputs("{\"file\": ", report->out);
	report_json_text(report->out, file->path);
	if (file->title) {
		fputs(", \"title\": ", report->out);
		report_json_text(report->out, file->title);
	}
	if (file->source) {
		fputs(", \"source\": ", report->out);
		report_json_text(report->out, file->source);
	}
	fputs(", \"calls\": [", report->out);
}

static void json_reason(struct report *report, const struct outcome *outcome)
{
	char text[512];

	if (!outcome->has_reason)
		return;
	fputs(", \"reason\": {\"kind\": ", report->out);
	report_json_text(report->out, outcome->reason.kind->name);
	dmamap_reason_format(&outcome->reason, text, sizeof(text));
	fputs(", \"text\": ", report->out);
	report_json_text(report->out, text);
	if (advice(&outcome->reason, text, sizeof(text))) {
		fputs(", \"advice\": ", report->out);
		report_json_text(report->out, text);
	}
	fputc('}', report->out);
}

static void json_findings(
	struct report *report, const struct finding *findings, unsigned n, bool disagree)
{
	bool first = true;

	fprintf(report->out, ", \"%s\": [", disagree ? "disagreements" : "failures");
	for (unsigned i = 0; i < n; i++) {
		if (findings[i].disagree != disagree)
			continue;
		if (!first)
			fputs(", ", report->out);
		report_json_text(report->out, findings[i].text);
		first = false;
	}
	fputc(']', report->out);
}

static void call_json(struct report *report, const struct case_statement *statement,
	struct outcome *outcome, const struct finding *findings, unsigned n)
{
	FILE *out = report->out;
	struct line line = start_line(report);
	bool first = true;

	if (report->replay->options->quiet && !n)
		return;
	json_head(report);
	line_call(&line, report->replay->file, statement);
	fprintf(out, "%s\n  {\"line\": %u, \"call\": ", report->calls++ ? "," : "",
		statement->line);
	report_json_text(out, line.text);
	if (outcome->uncounted) {
		fputs(", \"result\": null", out);
	} else {
		line = start_line(report);
		result_text(&line, statement, outcome);
		fprintf(out, ", \"result\": %" PRId64 ", \"result_text\": ",
			outcome->result > 0 && statement->verb->flags & VERB_OPENS
				? 0
				: outcome->result);
		report_json_text(out, line.text);
	}
	fputs(", \"outputs\": {", out);
	for (unsigned i = 0; statement->verb->fields[i].name; i++) {
		struct output output;

		if (!shown(report, statement, outcome, i, &output))
			continue;
		fprintf(out, "%s\"%s\": ", first ? "" : ", ", statement->verb->fields[i].name);
		json_output(out, &output);
		first = false;
	}
	fputc('}', out);
	if (outcome->result < 0 || outcome->fault)
		json_reason(report, outcome);
	json_findings(report, findings, n, false);
	json_findings(report, findings, n, true);
	fputc('}', out);
}

void report_call(struct report *report, const struct case_statement *statement,
	struct outcome *outcome, const struct finding *findings, unsigned n)
{
	if (report->replay->options->format == FORMAT_JSON)
		call_json(report, statement, outcome, findings, n);
	else
		call_text(report, statement, outcome, findings, n);
}

void report_end(struct report *report)
{
	const struct progress *progress = report->replay->progress;
	static const char *const verdicts[] = {[CASE_RUNNING] = "running",
		[CASE_PASSED] = "passed",
		[CASE_FAILED] = "failed",
		[CASE_SKIPPED] = "skipped",
		[CASE_BAD] = "bad"};
	const char *verdict = verdicts[progress->verdict];

	if (report->replay->options->format == FORMAT_JSON) {
		json_head(report);
		fprintf(report->out, "%s], \"verdict\": \"%s\"", report->calls ? "\n " : "",
			verdict);
		if (progress->reason[0]) {
			fputs(", \"why\": ", report->out);
			report_json_text(report->out, progress->reason);
		}
		fprintf(report->out,
			", \"calls_made\": %" PRIu64 ", \"failures\": %" PRIu64
			", \"disagreements\": %" PRIu64 "}",
			progress->calls, progress->failures, progress->disagreements);
		return;
	}
	if (report->replay->options->format == FORMAT_TAP ||
		(report->replay->options->quiet && progress->verdict == CASE_PASSED))
		return;
	head(report);
	if (progress->verdict == CASE_SKIPPED)
		fprintf(report->out, "%s: skipped: %s\n", report->replay->file->path,
			progress->reason);
	else
		fprintf(report->out, "%s: %s, %" PRIu64 " call%s\n", report->replay->file->path,
			verdict, progress->calls, progress->calls == 1 ? "" : "s");
}
