/* SPDX-License-Identifier: MIT */
/* From text to statements: lines, words, verbs, results. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conditions.h"

/* ------------------------------------------------------------------ errors */

int parse_fail(struct case_parser *parser, const char *at, const char *format, ...)
{
	char what[512];
	const char *line = parser->text;
	unsigned number = parser->first_line;
	va_list arguments;

	for (const char *c = parser->text; c < at; c++) {
		if (*c == '\n') {
			line = c + 1;
			number++;
		}
	}
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	/* Whatever stands in the file, the message is one line of text. */
	for (char *c = what; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return complain(parser->complaint, "%s:%u:%u: %s", parser->file->path, number,
		(unsigned)(at - line + 1), what);
}

int parse_no_memory(struct case_parser *parser)
{
	return complain(parser->complaint, "%s: no memory for so large a case; split it",
		parser->file->path);
}

/* ------------------------------------------------------------------- words */

/* A backslash that ends a line. */
static size_t continues(const struct case_parser *parser, const char *at)
{
	if (at == parser->end || *at != '\\')
		return 0;
	if (parser->end - at > 1 && at[1] == '\n')
		return 2;
	if (parser->end - at > 2 && at[1] == '\r' && at[2] == '\n')
		return 3;
	return 0;
}

static bool word_ends(const struct case_parser *parser, const char *at)
{
	return at == parser->end || *at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' ||
	       continues(parser, at);
}

bool parse_at_end(const struct case_parser *parser)
{
	return word_ends(parser, parser->at);
}

const char *parse_word_end(const struct case_parser *parser, const char *at)
{
	while (!word_ends(parser, at))
		at++;
	return at;
}

const char *parse_name_end(const struct case_parser *parser, const char *at)
{
	if (at == parser->end || !(isalpha((unsigned char)*at) || *at == '_'))
		return at;
	while (at < parser->end) {
		/* A point is part of a name, two are between the ends of a range. */
		bool point = *at == '.' && parser->end - at > 1 &&
			     (isalnum((unsigned char)at[1]) || at[1] == '_');

		if (!isalnum((unsigned char)*at) && *at != '_' && !point)
			break;
		at++;
	}
	return at;
}

/* To the next word of the statement; false: there is none. */
static bool next_word(struct case_parser *parser)
{
	for (;;) {
		size_t continued;

		while (parser->at < parser->end &&
			(*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\r'))
			parser->at++;
		continued = continues(parser, parser->at);
		if (!continued)
			break;
		parser->at += continued;
		parser->line++;
	}
	return parser->at < parser->end && *parser->at != '\n' && *parser->at != '#';
}

/* Past the end of the line; what is left of it is a comment. */
static void next_line(struct case_parser *parser)
{
	const char *end = memchr(parser->at, '\n', (size_t)(parser->end - parser->at));

	parser->at = end ? end + 1 : parser->end;
	parser->line++;
}

static bool word_is(const struct case_parser *parser, const char *word)
{
	size_t length = strlen(word);

	return (size_t)(parse_word_end(parser, parser->at) - parser->at) == length &&
	       !memcmp(parser->at, word, length);
}

/* --------------------------------------------------------------- statements */

static struct case_argument *new_argument(struct case_parser *parser, int field)
{
	struct case_argument *argument;

	if (parser->n == PARSE_ARGUMENTS) {
		parse_fail(parser, parser->at, "a statement has at most %d arguments; split it",
			PARSE_ARGUMENTS);
		return NULL;
	}
	argument = &parser->arguments[parser->n++];
	memset(argument, 0, sizeof(*argument));
	argument->field = (uint8_t)field;
	return argument;
}

/* The rest of the line without the blanks around it; continued lines join with one. */
static int parse_rest(struct case_parser *parser, struct case_argument *argument)
{
	const char *start = parser->at, *end = start;
	char *text;
	size_t n = 0;

	while (end < parser->end && *end != '\n') {
		size_t continued = continues(parser, end);

		end += continued ? continued : 1;
	}
	text = arena_take(&parser->arena, (size_t)(end - start) + 1);
	if (!text)
		return parse_no_memory(parser);
	while (parser->at < end) {
		size_t continued = continues(parser, parser->at);

		parser->line += continued != 0;
		/* Blanks before the first word are none of it, whatever they are made of. */
		if (!continued && !iscntrl((unsigned char)*parser->at) && *parser->at != ' ')
			text[n++] = *parser->at;
		else if (n)
			text[n++] = ' ';
		parser->at += continued ? continued : 1;
	}
	while (n && text[n - 1] == ' ')
		n--;
	text[n] = '\0';
	if (!n)
		return parse_fail(
			parser, end, "%s needs a text; write it here", parser->verb->name);
	/* It would be read as a line that goes on. */
	if (n && text[n - 1] == '\\')
		return parse_fail(parser, end, "a line that goes on has nothing after it; end it");
	argument->kind = VALUE_TEXT;
	argument->n = (uint32_t)n;
	argument->text = text;
	return 0;
}

static bool is_key(const struct case_parser *parser)
{
	const char *end = parse_word_end(parser, parser->at);
	const char *name_end = parse_name_end(parser, parser->at);

	return name_end > parser->at && name_end < end && *name_end == '=';
}

static int parse_word(struct case_parser *parser, int index)
{
	const struct field *field = &parser->verb->fields[index];
	struct case_argument *argument = new_argument(parser, index);

	if (!argument)
		return -1;
	if (field->kind == FIELD_NEW)
		return parse_new_thing(parser, field, argument);
	if (field->kind == FIELD_REST)
		return parse_rest(parser, argument);
	if (field->kind == FIELD_SAVE)
		return parse_save(parser, argument);
	return parse_value(parser, field, argument);
}

/* Whether the next word can be one for this field. The rest of a line is whatever it is. */
static bool word_follows(struct case_parser *parser, const struct field *field)
{
	bool word = next_word(parser);

	if (field->kind == FIELD_REST)
		return parser->at < parser->end && *parser->at != '\n';
	return word && !word_is(parser, "=>") && !is_key(parser);
}

/* The words, in the order of the verb's fields. */
static int parse_words(struct case_parser *parser)
{
	const struct verb *verb = parser->verb;

	for (int i = 0; verb->fields[i].name && verb->fields[i].use & USE_WORD; i++) {
		const struct field *field = &verb->fields[i];
		bool many = field->use & USE_MANY, taken = false;

		while (word_follows(parser, field)) {
			if (parse_word(parser, i))
				return -1;
			taken = true;
			if (!many)
				break;
		}
		if (!taken && field->use & USE_REQUIRED)
			return parse_fail(parser, parser->at, "%s needs its %s here; write it",
				verb->name, field->name);
		if (i == 0 && verb->literal) {
			if (!next_word(parser) || !word_is(parser, verb->literal))
				return parse_fail(
					parser, parser->at, "write %s here", verb->literal);
			parser->at += strlen(verb->literal);
		}
	}
	return 0;
}

/* What is a key's alone is said once; the same key among the outputs is another. */
static int check_twice(struct case_parser *parser, const char *at, unsigned from)
{
	unsigned last = parser->n - 1;

	for (unsigned i = from; i < last; i++)
		if (parser->arguments[i].field == parser->arguments[last].field)
			return parse_fail(parser, at, "%s is given twice; leave one out",
				parser->verb->fields[parser->arguments[last].field].name);
	return 0;
}

static int unknown_key(struct case_parser *parser, const char *key, size_t length, unsigned use)
{
	char keys[300];
	size_t n = 0;

	keys[0] = '\0';
	for (const struct field *field = parser->verb->fields; field->name; field++)
		if (field->use & use && n < sizeof(keys))
			n += (size_t)snprintf(
				keys + n, sizeof(keys) - n, "%s%s", n ? ", " : "", field->name);
	return parse_fail(parser, key, "%s has no %s %.*s; there are %s", parser->verb->name,
		use & USE_OUT ? "output" : "key", (int)(length > 60 ? 60 : length), key,
		keys[0] ? keys : "none");
}

/* One KEY=VALUE, or a switch. */
static int parse_key(struct case_parser *parser, unsigned use, unsigned from)
{
	const char *key = parser->at, *end = parse_name_end(parser, key);
	size_t length = (size_t)(end - key);
	int field = verb_field(parser->verb, key, length, use);
	struct case_argument *argument;
	int error;

	if (end == key)
		return parse_fail(
			parser, key, "a key is wanted here; write KEY=VALUE, or => RESULT");
	if (field < 0)
		return unknown_key(parser, key, length, use);
	argument = new_argument(parser, field);
	if (!argument)
		return -1;
	if (parser->verb->fields[field].kind == FIELD_SWITCH) {
		parser->at = end;
		argument->number = 1;
		return parse_at_end(parser) ? check_twice(parser, key, from)
					    : parse_fail(parser, end,
						      "%.*s stands alone; leave out what follows",
						      (int)length, key);
	}
	if (end == parser->end || *end != '=')
		return parse_fail(parser, end, "%.*s wants a value; write %.*s=VALUE", (int)length,
			key, (int)length, key);
	parser->at = end + 1;
	if (parser->verb->fields[field].kind == FIELD_SAVE)
		error = parse_save(parser, argument);
	else
		error = parse_value(parser, &parser->verb->fields[field], argument);
	return error ? error : check_twice(parser, key, from);
}

static int find_errno(const char *name, size_t length)
{
	static const struct {
		const char *name;
		int number;
	} aliases[] = {
		{"EWOULDBLOCK", EWOULDBLOCK}, {"EDEADLOCK", EDEADLOCK}, {"ENOTSUP", ENOTSUP}};
	const char *known;

	for (int i = 1; i < 256; i++) {
		known = strerrorname_np(i);
		if (known && strlen(known) == length && !memcmp(known, name, length))
			return i;
	}
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strlen(aliases[i].name) == length && !memcmp(aliases[i].name, name, length))
			return aliases[i].number;
	return 0;
}

static int parse_result(struct case_parser *parser, struct case_statement *statement)
{
	const char *word = parser->at, *end = parse_word_end(parser, word);
	uint64_t number;

	if (word_is(parser, "?")) {
		statement->result_kind = RESULT_ANY;
	} else if (word_is(parser, "ok")) {
		statement->result_kind = RESULT_OK;
	} else if (word_is(parser, "fault")) {
		if (parser->verb->action != ACTION_DMA_READ &&
			parser->verb->action != ACTION_DMA_WRITE)
			return parse_fail(parser, word,
				"only dma_read and dma_write can fault; write an errno such as "
				"EFAULT");
		statement->result_kind = RESULT_FAULT;
	} else if (*word == 'E') {
		statement->result_kind = RESULT_ERROR;
		statement->result = find_errno(word, (size_t)(end - word));
		if (!statement->result)
			return parse_fail(parser, word,
				"there is no errno %.*s; write one such as EINVAL",
				(int)(end - word > 40 ? 40 : end - word), word);
	} else if (isdigit((unsigned char)*word)) {
		if (parse_constant(parser, &number))
			return -1;
		if (parser->at != end || number > INT64_MAX)
			return parse_fail(parser, word,
				"the result is one number; write it, ok, ? or an errno");
		if (number && !(parser->verb->flags & VERB_RETURNS))
			return parse_fail(parser, word,
				"%s returns 0 or an errno; write 0, ok, ? or an errno",
				parser->verb->name);
		statement->result_kind = RESULT_NUMBER;
		statement->result = (int64_t)number;
	} else {
		return parse_fail(parser, word,
			"this is no result; write ok, 0, a number, ? or an errno such as EINVAL");
	}
	parser->at = end;
	return 0;
}

/* The form of the verb that fits: by its literal, or by what its target is. */
static int choose_form(struct case_parser *parser, const struct verb *const *forms, size_t n)
{
	const char *start = parser->at;
	uint32_t line = parser->line;
	const char *name, *end, *second = NULL;
	int64_t thing;
	unsigned kind = 0;

	parser->verb = forms[0];
	parser->targets = 0;
	for (size_t i = 0; i < n; i++) {
		int target = verb_role(forms[i], ROLE_TARGET);

		parser->targets |= target < 0 ? 0 : forms[i]->fields[target].things;
	}
	if (n == 1)
		return 0;
	if (next_word(parser)) {
		name = parser->at;
		end = parse_name_end(parser, name);
		thing = names_find(&parser->things, name, (size_t)(end - name));
		kind = thing < 0 ? 0 : parser->file->things[thing].kind;
		parser->at = parse_word_end(parser, name);
		second = next_word(parser) ? parser->at : NULL;
	}
	for (size_t i = 0; i < n; i++) {
		const struct verb *form = forms[i];
		int target = verb_role(form, ROLE_TARGET);

		if (form->literal ? second && word_is(parser, form->literal)
				  : target == 0 && form->fields[0].things & kind) {
			parser->verb = form;
			parser->at = start;
			parser->line = line;
			return 0;
		}
	}
	if (forms[0]->literal) {
		char literals[128];
		size_t length = 0;

		for (size_t i = 0; i < n && length < sizeof(literals); i++)
			length += (size_t)snprintf(literals + length, sizeof(literals) - length,
				"%s%s", i ? ", " : "", forms[i]->literal);
		return parse_fail(parser, parser->at, "after the name, %s takes one of %s",
			forms[0]->name, literals);
	}
	/* The first form complains about the word that does not fit. */
	parser->at = start;
	parser->line = line;
	return 0;
}

static int find_verb(struct case_parser *parser)
{
	const char *name = parser->at, *end = parse_word_end(parser, name);
	const struct verb *const *forms;
	size_t n = verb_find(name, (size_t)(end - name), &forms);

	if (!n)
		return parse_fail(parser, name,
			"there is no statement %.*s; dmamap replay --statements lists them",
			(int)(end - name > 40 ? 40 : end - name), name);
	parser->at = end;
	return choose_form(parser, forms, n);
}

static int check_required(struct case_parser *parser)
{
	for (int i = 0; parser->verb->fields[i].name; i++) {
		bool given = !(parser->verb->fields[i].use & USE_REQUIRED) ||
			     !(parser->verb->fields[i].use & USE_IN);

		for (unsigned j = 0; j < parser->n && !given; j++)
			given = parser->arguments[j].field == i;
		if (!given)
			return parse_fail(parser, parser->at, "%s needs %s=; write it here",
				parser->verb->name, parser->verb->fields[i].name);
	}
	return 0;
}

/* "when" and "as", in this order. */
static int parse_prefixes(struct case_parser *parser, struct case_statement *statement,
	struct case_condition *conditions, unsigned *n_conditions)
{
	static const struct field process = {
		.name = "as", .kind = FIELD_THING, .things = THING_PROCESS};
	struct case_argument argument = {0};

	if (word_is(parser, "when")) {
		parser->at += 4;
		if (!next_word(parser))
			return parse_fail(parser, parser->at,
				"when wants a condition; write one such as kernel>=6.15");
		if (parse_conditions(parser, conditions, n_conditions))
			return -1;
		if (!next_word(parser))
			return parse_fail(
				parser, parser->at, "when wants a statement; write it here");
	}
	if (word_is(parser, "as")) {
		parser->at += 2;
		if (!next_word(parser))
			return parse_fail(parser, parser->at, "as wants a process; name it here");
		if (parse_value(parser, &process, &argument))
			return -1;
		statement->process = (uint16_t)argument.index;
		if (!next_word(parser))
			return parse_fail(
				parser, parser->at, "as wants a statement; write it here");
	}
	return 0;
}

static int keep(struct case_parser *parser, struct case_statement *statement,
	const struct case_condition *conditions, unsigned n_conditions)
{
	struct case_file *file = parser->file;
	struct case_statement *statements = file->statements;
	struct case_argument *arguments = NULL;
	struct case_condition *copies = NULL;

	if (parser->n) {
		arguments = arena_take(&parser->arena, parser->n * sizeof(*arguments));
		if (!arguments)
			return parse_no_memory(parser);
		memcpy(arguments, parser->arguments, parser->n * sizeof(*arguments));
	}
	if (n_conditions) {
		copies = arena_take(&parser->arena, n_conditions * sizeof(*copies));
		if (!copies)
			return parse_no_memory(parser);
		memcpy(copies, conditions, n_conditions * sizeof(*copies));
	}
	if (file->n_statements == parser->statements_room) {
		size_t room = 2 * parser->statements_room + 64;

		if (file->n_statements >= UINT32_MAX / 4)
			return parse_no_memory(parser);
		statements = reallocarray(statements, room, sizeof(*statements));
		if (!statements)
			return parse_no_memory(parser);
		file->statements = statements;
		parser->statements_room = room;
	}
	statement->verb = parser->verb;
	statement->arguments = arguments;
	statement->conditions = copies;
	statement->n_conditions = (uint8_t)n_conditions;
	statements[file->n_statements++] = *statement;
	return 0;
}

/* What a statement means for the case as a whole. */
static int heed(struct case_parser *parser, struct case_statement *statement, const char *start)
{
	struct case_file *file = parser->file;
	const char *text = parser->n ? parser->arguments[0].text : NULL;

	switch (parser->verb->action) {
	case ACTION_FORMAT:
		if (parser->arguments[0].kind != VALUE_NUMBER || parser->arguments[0].number != 1)
			return parse_fail(
				parser, start, "this dmamap reads format 1 only; write format 1");
		if (file->n_statements)
			return parse_fail(
				parser, start, "format is the first statement; move it up");
		break;
	case ACTION_TITLE:
		file->title = text;
		break;
	case ACTION_SOURCE:
		file->source = text;
		break;
	case ACTION_MACHINE:
		if (file->machine) {
			size_t n = strlen(file->machine) + strlen(text) + 2;
			char *both = arena_take(&parser->arena, n);

			if (!both)
				return parse_no_memory(parser);
			snprintf(both, n, "%s,%s", file->machine, text);
			file->machine = both;
		} else {
			file->machine = text;
		}
		break;
	case ACTION_LOOP:
		if (parser->n_loops == PARSE_LOOPS)
			return parse_fail(parser, start, "loops nest at most %d deep; unroll one",
				PARSE_LOOPS);
		parser->loops[parser->n_loops++] = (uint32_t)file->n_statements;
		/* The counter's own name, where none is given. */
		if (parser->n == 1) {
			struct case_argument *counter = new_argument(parser, 1);
			int64_t index;

			if (!counter)
				return -1;
			index = parse_add_variable(parser, "i", 1, NULL);
			counter->kind = VALUE_VARIABLE;
			counter->index = (uint32_t)index;
			if (index < 0)
				return -1;
			statement->n_inputs++;
		}
		break;
	case ACTION_END:
		if (!parser->n_loops)
			return parse_fail(
				parser, start, "there is no loop for this end; leave it out");
		file->statements[parser->loops[--parser->n_loops]].body_end =
			(uint32_t)file->n_statements;
		statement->body_end = parser->loops[parser->n_loops];
		break;
	default:
		break;
	}
	return 0;
}

/* All keys up to the result, then the result and the outputs. */
static int parse_keys(struct case_parser *parser, struct case_statement *statement)
{
	unsigned from = parser->n;

	while (next_word(parser) && !word_is(parser, "=>"))
		if (parse_key(parser, USE_IN, from))
			return -1;
	statement->n_inputs = (uint8_t)parser->n;
	if (check_required(parser))
		return -1;
	if (!next_word(parser))
		return 0;
	if (parser->verb->flags & VERB_CONTROL)
		return parse_fail(
			parser, parser->at, "%s has no result; leave it out", parser->verb->name);
	parser->at += 2;
	if (!next_word(parser))
		return parse_fail(parser, parser->at,
			"a result follows =>; write ok, 0, a number, ? or an errno such as EINVAL");
	if (parse_result(parser, statement))
		return -1;
	from = parser->n;
	while (next_word(parser))
		if (parse_key(parser, USE_OUT, from))
			return -1;
	statement->n_outputs = (uint8_t)(parser->n - from);
	return 0;
}

static int parse_statement(struct case_parser *parser)
{
	struct case_condition conditions[PARSE_CONDITIONS];
	struct case_statement statement = {.line = parser->line};
	const char *start = parser->at;
	unsigned n_conditions = 0;

	parser->n = 0;
	if (parse_prefixes(parser, &statement, conditions, &n_conditions) || find_verb(parser))
		return -1;
	if (parser->verb->flags & VERB_CONTROL && parser->at > start + strlen(parser->verb->name))
		return parse_fail(parser, start, "%s stands alone; leave out when and as",
			parser->verb->name);
	if (parser->verb->action == ACTION_NEEDS) {
		while (next_word(parser))
			if (parse_conditions(parser, conditions, &n_conditions))
				return -1;
		if (!n_conditions)
			return parse_fail(parser, parser->at,
				"needs wants a condition; write one such as kernel>=6.15");
	} else if (parse_words(parser) || parse_keys(parser, &statement)) {
		return -1;
	}
	if (next_word(parser))
		return parse_fail(parser, parser->at, "%s takes no more words; leave this out",
			parser->verb->name);
	return heed(parser, &statement, start) || keep(parser, &statement, conditions, n_conditions)
		       ? -1
		       : 0;
}

/* ---------------------------------------------------------------- the whole */

int case_append(
	struct case_file *file, const char *text, size_t length, struct complaint *complaint)
{
	struct case_parser *parser = file->parser;

	parser->text = parser->at = text;
	parser->end = text + length;
	parser->first_line = parser->line;
	parser->complaint = complaint;
	while (parser->at < parser->end) {
		if (next_word(parser) && parse_statement(parser))
			return -1;
		next_line(parser);
	}
	return 0;
}

int case_finish(struct case_file *file, struct complaint *complaint)
{
	struct case_parser *parser = file->parser;

	if (!parser->n_loops)
		return 0;
	return complain(complaint, "%s:%u:1: the loop has no end; write end after its statements",
		file->path, file->statements[parser->loops[parser->n_loops - 1]].line);
}
