/* SPDX-License-Identifier: MIT */
/* From text to the conditions of "needs" and "when". */
#include <ctype.h>
#include <string.h>

#include "conditions.h"
#include "parse.h"

static int condition_value(struct case_parser *parser, const struct condition_row *row,
	struct case_condition *condition)
{
	const char *at = parser->at;
	uint64_t minor = 0;

	if (row->value == CONDITION_WORD) {
		for (unsigned i = 0; i < 2; i++) {
			size_t length = strlen(condition_systems[i]);

			if ((size_t)(parser->end - at) >= length &&
				!memcmp(at, condition_systems[i], length)) {
				condition->value = i;
				parser->at += length;
				return 0;
			}
		}
		return parse_fail(
			parser, at, "the system is soft or linux; write %s", row->example);
	}
	/* A version is no sum: 6.12 is two numbers. */
	if (parse_constant(parser, &condition->value))
		return -1;
	if (row->value == CONDITION_NUMBER)
		return 0;
	if (parser->at < parser->end && *parser->at == '.') {
		parser->at++;
		if (parse_constant(parser, &minor))
			return -1;
	}
	if (condition->value > 255 || minor > 255)
		return parse_fail(
			parser, at, "that is no version of a kernel; write %s", row->example);
	condition->value = condition->value << 8 | minor;
	return 0;
}

static int parse_condition(struct case_parser *parser, struct case_condition *condition)
{
	const char *name = parser->at, *end = name;
	const struct condition_row *row = NULL;

	while (end < parser->end && (isalnum((unsigned char)*end) || *end == '_'))
		end++;
	memset(condition, 0, sizeof(*condition));
	for (unsigned i = 0; i < CONDITIONS && !row; i++) {
		row = &condition_rows[i];
		condition->what = (uint8_t)i;
		if (strlen(row->name) != (size_t)(end - name) ||
			memcmp(row->name, name, (size_t)(end - name)))
			row = NULL;
	}
	if (!row)
		return parse_fail(parser, name,
			"%.*s is no condition; docs/case-format.md lists them: root, kernel>=6.15 "
			"...",
			(int)(end - name), name);
	parser->at = end;
	if (row->value == CONDITION_ALONE)
		return 0;
	if (end < parser->end && strchr("=<>", *end) && *end) {
		condition->compare = *end++;
		if (condition->compare != '=' && end < parser->end && *end == '=') {
			condition->compare = condition->compare == '<' ? 'l' : 'g';
			end++;
		}
	}
	if (!condition->compare || (row->value == CONDITION_WORD && condition->compare != '='))
		return parse_fail(
			parser, end, "a comparison is wanted here; write %s", row->example);
	parser->at = end;
	return condition_value(parser, row, condition);
}

/* Conditions of one word, with commas. Appends to the @n that are there. */
int parse_conditions(struct case_parser *parser, struct case_condition *conditions, unsigned *n)
{
	for (;;) {
		if (*n == PARSE_CONDITIONS)
			return parse_fail(parser, parser->at,
				"a statement has at most %d conditions; leave some out",
				PARSE_CONDITIONS);
		if (parse_condition(parser, &conditions[*n]))
			return -1;
		++*n;
		if (parse_at_end(parser))
			return 0;
		if (*parser->at != ',')
			return parse_fail(parser, parser->at,
				"a comma or a blank follows a condition; write %s",
				condition_rows[conditions[*n - 1].what].example);
		parser->at++;
	}
}
