/* SPDX-License-Identifier: MIT */
/* Statements as text: what is parsed from it again is the same. */
#include "print.h"

#include <inttypes.h>
#include <string.h>

#include "cli/units.h"
#include "conditions.h"

void line_char(struct line *line, char c)
{
	if (line->n + 1 < line->size) {
		line->text[line->n] = c;
		line->text[line->n + 1] = '\0';
	}
	line->n++;
}

void line_text(struct line *line, const char *text)
{
	while (*text)
		line_char(line, *text++);
}

static void hexadecimal(struct line *line, uint64_t number)
{
	char digits[20];
	unsigned n = sizeof(digits) - 1;

	digits[n] = '\0';
	do
		digits[--n] = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	digits[--n] = 'x';
	digits[--n] = '0';
	line_text(line, digits + n);
}

void line_number(struct line *line, enum field_show show, uint64_t number)
{
	char text[UNITS_TEXT];

	if (number == UINT64_MAX)
		line_text(line, "max");
	else if (number < 10)
		line_char(line, (char)('0' + number));
	else if (show == SHOW_HEX)
		hexadecimal(line, number);
	else if (show == SHOW_SIZE && number >= 1000000 && number & 1023)
		hexadecimal(line, number);
	else if (show == SHOW_SIZE)
		line_text(line, units_exact(text, number));
	else if (number <= INT64_MAX)
		snprintf(text, sizeof(text), "%" PRIu64, number), line_text(line, text);
	else
		hexadecimal(line, number);
}

static bool is_choice(const struct field *field)
{
	return field->kind == FIELD_CHOICE;
}

void line_named(struct line *line, const struct field *field, uint64_t number)
{
	bool first = true;

	for (const struct field_name *name = field->names; name && name->name; name++) {
		if (is_choice(field) ? number != name->value
				     : !name->value || (number & name->value) != name->value)
			continue;
		if (!first)
			line_char(line, ',');
		line_text(line, name->name);
		first = false;
		number &= ~name->value;
		if (is_choice(field))
			return;
	}
	if (!number && !first)
		return;
	if (!first)
		line_char(line, ',');
	if (number < 10)
		line_char(line, (char)('0' + number));
	else
		hexadecimal(line, number);
}

void line_bytes(struct line *line, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char count[UNITS_TEXT];
	bool plain = false; /* what came before was not repeated */

	if (!n)
		line_text(line, "none");
	for (size_t i = 0; i < n;) {
		size_t same = 1;

		while (i + same < n && bytes[i + same] == bytes[i])
			same++;
		if (same < 5)
			same = 1;
		if (i && (same > 1 || !plain))
			line_char(line, ',');
		line_char(line, digits[bytes[i] >> 4]);
		line_char(line, digits[bytes[i] & 15]);
		plain = same == 1;
		if (!plain) {
			snprintf(count, sizeof(count), "*%zu", same);
			line_text(line, count);
		}
		i += same;
	}
}

static void print_terms(struct line *line, const struct case_file *file, const struct field *field,
	const struct case_argument *argument)
{
	for (uint32_t i = 0; i < argument->n; i++) {
		const struct case_term *term = &argument->terms[i];

		if (i || term->sign == '-')
			line_char(line, term->sign);
		if (term->kind == TERM_THING) {
			line_text(line, file->things[term->value].name);
		} else if (term->kind == TERM_VARIABLE) {
			line_char(line, '$');
			line_text(line, file->variables[term->value]);
		} else {
			line_number(line, field->show, term->value);
		}
	}
}

static void print_sum(struct line *line, const struct case_file *file, const struct field *field,
	const struct case_argument *argument)
{
	if (argument->kind == VALUE_TERMS)
		print_terms(line, file, field, argument);
	else
		line_number(line, field->show, argument->number);
}

static void print_value(struct line *line, const struct case_file *file, const struct field *field,
	const struct case_argument *argument)
{
	switch (argument->kind) {
	case VALUE_NUMBER:
		if (field->names)
			line_named(line, field, argument->number);
		else
			line_number(line, field->show, argument->number);
		break;
	case VALUE_TERMS:
		print_terms(line, file, field, argument);
		break;
	case VALUE_ITEMS:
		if (!argument->n)
			line_text(line, "none");
		for (uint32_t i = 0; i < argument->n; i++) {
			if (i)
				line_char(line, ',');
			print_sum(line, file, field, &argument->items[i].first);
			if (!argument->items[i].range)
				continue;
			line_text(line, "..");
			print_sum(line, file, field, &argument->items[i].last);
		}
		break;
	case VALUE_THING:
		line_text(line, file->things[argument->index].name);
		break;
	case VALUE_VARIABLE:
		line_text(line, file->variables[argument->index]);
		break;
	case VALUE_TEXT:
		line_text(line, argument->text);
		break;
	case VALUE_BYTES:
		line_bytes(line, argument->bytes, argument->n);
		break;
	default:
		line_char(line, '?');
		break;
	}
}

static void print_conditions(
	struct line *line, const struct case_statement *statement, char between)
{
	char text[64];

	for (unsigned i = 0; i < statement->n_conditions; i++) {
		if (i)
			line_char(line, between);
		condition_print(&statement->conditions[i], text, sizeof(text));
		line_text(line, text);
	}
}

static void print_result(struct line *line, const struct case_statement *statement)
{
	char number[UNITS_TEXT];

	line_text(line, " => ");
	switch (statement->result_kind) {
	case RESULT_NUMBER:
		snprintf(number, sizeof(number), "%" PRId64, statement->result);
		line_text(line, number);
		break;
	case RESULT_ERROR:
		line_text(line, strerrorname_np((int)statement->result));
		break;
	case RESULT_ANY:
		line_char(line, '?');
		break;
	case RESULT_FAULT:
		line_text(line, "fault");
		break;
	default:
		line_text(line, "ok");
		break;
	}
}

void line_call(
	struct line *line, const struct case_file *file, const struct case_statement *statement)
{
	const struct verb *verb = statement->verb;
	bool needs = verb->action == ACTION_NEEDS;

	if (statement->n_conditions && !needs) {
		line_text(line, "when ");
		print_conditions(line, statement, ',');
		line_char(line, ' ');
	}
	if (statement->process) {
		line_text(line, "as ");
		line_text(line, file->things[statement->process].name);
		line_char(line, ' ');
	}
	line_text(line, verb->name);
	if (needs) {
		line_char(line, ' ');
		print_conditions(line, statement, ' ');
	}
	for (unsigned i = 0; i < statement->n_inputs; i++) {
		const struct case_argument *argument = &statement->arguments[i];
		const struct field *field = &verb->fields[argument->field];

		line_char(line, ' ');
		if (!(field->use & USE_WORD)) {
			line_text(line, field->name);
			if (field->kind == FIELD_SWITCH)
				continue;
			line_char(line, '=');
		}
		print_value(line, file, field, argument);
		if (i == 0 && verb->literal) {
			line_char(line, ' ');
			line_text(line, verb->literal);
		}
	}
}

void line_statement(
	struct line *line, const struct case_file *file, const struct case_statement *statement)
{
	line_call(line, file, statement);
	if (statement->result_kind != RESULT_NONE)
		print_result(line, statement);
	for (unsigned i = 0; i < statement->n_outputs; i++) {
		const struct case_argument *argument =
			&statement->arguments[statement->n_inputs + i];
		const struct field *field = &statement->verb->fields[argument->field];

		line_char(line, ' ');
		line_text(line, field->name);
		line_char(line, '=');
		print_value(line, file, field, argument);
	}
}

size_t case_print(const struct case_file *file, const struct case_statement *statement,
	char *buffer, size_t size)
{
	struct line line = {.text = buffer, .size = size};

	if (size)
		buffer[0] = '\0';
	line_statement(&line, file, statement);
	return line.n;
}
