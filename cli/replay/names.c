/* SPDX-License-Identifier: MIT */
/*
 * Names while a case is parsed: things, which statements make, the machine's
 * own, and variables, which keep what a call gave.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define THINGS_MAX 65536 /* a process is a thing, in 16 bits */

static const struct {
	unsigned kind;
	const char *name;
} kind_names[] = {
	{THING_DEVICE, "a device"},
	{THING_DEVICE_FILE, "an opened device"},
	{THING_GROUP, "a group"},
	{THING_CONTAINER, "a container"},
	{THING_IOMMUFD, "an IOMMUFD"},
	{THING_IOAS, "an IOAS"},
	{THING_HWPT, "an HWPT"},
	{THING_MEMORY, "memory"},
	{THING_EVENTFD, "an eventfd"},
	{THING_PROCESS, "a process"},
	{THING_FILE, "a file"},
};

#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

const char *parse_kind_name(unsigned kinds, char text[PARSE_KINDS])
{
	unsigned left = (unsigned)__builtin_popcount(kinds);
	size_t n = 0;

	if (left > 4)
		return "an open file";
	text[0] = '\0';
	for (size_t i = 0; i < KINDS; i++) {
		if (!(kinds & kind_names[i].kind))
			continue;
		left--;
		n += (size_t)snprintf(text + n, PARSE_KINDS - n, "%s%s", kind_names[i].name,
			left > 1 ? ", "
			: left	 ? " or "
				 : "");
	}
	return text;
}

int64_t parse_add_thing(struct case_parser *parser, const char *name, size_t length,
	enum thing_kind kind, unsigned device)
{
	struct case_file *file = parser->file;
	struct case_thing *things = file->things;

	if (file->n_things == THINGS_MAX)
		return parse_fail(
			parser, name, "a case has at most %d names; use one again", THINGS_MAX);
	if (file->n_things == parser->things_room) {
		things = reallocarray(things, 2 * parser->things_room + 16, sizeof(*things));
		if (!things)
			return parse_no_memory(parser);
		file->things = things;
		parser->things_room = 2 * parser->things_room + 16;
	}
	things[file->n_things] = (struct case_thing){
		.name = arena_text(&parser->arena, name, length), .kind = kind, .device = device};
	if (!things[file->n_things].name || names_set(&parser->things, things[file->n_things].name,
						    length, (uint32_t)file->n_things))
		return parse_no_memory(parser);
	return (int64_t)file->n_things++;
}

/* "d0" to "d99", and "d0.group": the machine's own, which no statement makes. */
static bool machine_name(const char *name, size_t length, enum thing_kind *kind, unsigned *device)
{
	static const char group[] = ".group";
	size_t digits = 0;

	if (name[0] != 'd')
		return false;
	*device = 0;
	while (1 + digits < length && digits < 2 && isdigit((unsigned char)name[1 + digits]))
		*device = *device * 10 + (unsigned)(name[1 + digits++] - '0');
	if (!digits || (digits == 2 && name[1] == '0'))
		return false;
	*kind = THING_DEVICE;
	if (length == 1 + digits)
		return true;
	*kind = THING_GROUP;
	return length == digits + sizeof(group) &&
	       !memcmp(name + 1 + digits, group, sizeof(group) - 1);
}

int64_t parse_thing(struct case_parser *parser, const char *name, size_t length)
{
	int64_t index = names_find(&parser->things, name, length);
	enum thing_kind kind;
	unsigned device;

	if (index >= 0)
		return index;
	if (machine_name(name, length, &kind, &device))
		return parse_add_thing(parser, name, length, kind, device);
	return parse_fail(parser, name,
		"nothing before this line makes %.*s; make it first, or mend the name",
		(int)(length > 60 ? 60 : length), name);
}

int parse_new_thing(
	struct case_parser *parser, const struct field *field, struct case_argument *argument)
{
	const char *name = parser->at, *end = parse_name_end(parser, name);
	size_t length = (size_t)(end - name);
	char kinds[PARSE_KINDS];
	enum thing_kind kind;
	unsigned device;
	int64_t index;

	if (end == name || parse_word_end(parser, end) != end)
		return parse_fail(parser, end,
			"%s gets a name here: a letter, then letters, digits, _ and points",
			parse_kind_name(field->things, kinds));
	if (machine_name(name, length, &kind, &device) ||
		(length == 3 && !memcmp(name, "max", 3)) ||
		(length == 4 && (!memcmp(name, "page", 4) || !memcmp(name, "null", 4) ||
					!memcmp(name, "none", 4))))
		return parse_fail(parser, name, "%.*s has a meaning already; take another name",
			(int)length, name);
	index = names_find(&parser->things, name, length);
	if (index < 0)
		index = parse_add_thing(parser, name, length, (enum thing_kind)field->things, 0);
	else if (parser->file->things[index].kind != field->things)
		return parse_fail(parser, name, "%.*s is %s already; take another name",
			(int)length, name,
			parse_kind_name(parser->file->things[index].kind, kinds));
	if (index < 0)
		return -1;
	parser->at = end;
	argument->kind = VALUE_THING;
	argument->index = (uint32_t)index;
	return 0;
}

/* The variable of that name, kept by @saver; the same statement again has the same. */
int64_t parse_add_variable(
	struct case_parser *parser, const char *name, size_t length, const struct verb *saver)
{
	struct case_file *file = parser->file;
	char *copy = arena_text(&parser->arena, name, length);

	if (file->n_variables == parser->variables_room) {
		size_t room = 2 * parser->variables_room + 16;
		const char **variables =
			reallocarray(file->variables, room, sizeof(*file->variables));
		const struct verb **savers;

		if (!variables)
			return parse_no_memory(parser);
		file->variables = variables;
		savers = reallocarray(parser->savers, room, sizeof(*savers));
		if (!savers)
			return parse_no_memory(parser);
		parser->savers = savers;
		parser->variables_room = room;
	}
	if (!copy || names_set(&parser->variables, copy, length, (uint32_t)file->n_variables))
		return parse_no_memory(parser);
	file->variables[file->n_variables] = copy;
	parser->savers[file->n_variables] = saver;
	return (int64_t)file->n_variables++;
}

bool case_keeps(const struct field *field)
{
	return field->use & USE_OUT && (field->kind == FIELD_NUMBER || field->kind == FIELD_FLAGS ||
					       field->kind == FIELD_CHOICE);
}

/* The call's variables follow one another: $a, then $a.OUTPUT in the fields' order. */
static int save_outputs(
	struct case_parser *parser, const char *name, size_t length, struct case_argument *argument)
{
	int64_t index = names_find(&parser->variables, name, length);
	char output[128];

	argument->kind = VALUE_VARIABLE;
	if (index >= 0 && parser->savers[index] == parser->verb) {
		argument->index = (uint32_t)index;
		return 0;
	}
	index = parse_add_variable(parser, name, length, parser->verb);
	if (index < 0)
		return -1;
	argument->index = (uint32_t)index;
	for (const struct field *field = parser->verb->fields; field->name; field++) {
		if (!case_keeps(field))
			continue;
		snprintf(output, sizeof(output), "%.*s.%s", (int)length, name, field->name);
		if (parse_add_variable(parser, output, strlen(output), parser->verb) < 0)
			return -1;
	}
	return 0;
}

int parse_save(struct case_parser *parser, struct case_argument *argument)
{
	const char *name = parser->at, *end = parse_name_end(parser, name);
	int64_t index;

	/* Without points, so that an output's name cannot be a call's. */
	if (end == name || parse_word_end(parser, end) != end ||
		memchr(name, '.', (size_t)(end - name)) || end - name > 60)
		return parse_fail(
			parser, end, "a name is wanted here: a letter, then letters, digits and _");
	parser->at = end;
	if (parser->verb->action != ACTION_LOOP)
		return save_outputs(parser, name, (size_t)(end - name), argument);
	index = parse_add_variable(parser, name, (size_t)(end - name), NULL);
	argument->kind = VALUE_VARIABLE;
	argument->index = (uint32_t)index;
	return index < 0 ? -1 : 0;
}
