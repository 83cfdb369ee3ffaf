/* SPDX-License-Identifier: MIT */
/* A case as a whole: made, read from a file, looked into, destroyed. */
#include "case.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parse.h"

struct case_file *case_create(const char *path)
{
	struct case_file *file = calloc(1, sizeof(*file));
	struct case_parser *parser = calloc(1, sizeof(*parser));
	struct complaint complaint;

	if (!file || !parser) {
		free(file);
		free(parser);
		return NULL;
	}
	file->parser = parser;
	parser->file = file;
	parser->line = 1;
	parser->complaint = &complaint;
	parser->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	file->path = arena_text(&parser->arena, path, strlen(path));
	/* Thing 0: this process, which has no name that could be written. */
	if (!file->path || parse_add_thing(parser, "", 0, THING_PROCESS, 0) < 0) {
		case_destroy(file);
		return NULL;
	}
	return file;
}

void case_destroy(struct case_file *file)
{
	if (!file)
		return;
	arena_free(&file->parser->arena);
	names_free(&file->parser->things);
	names_free(&file->parser->variables);
	free(file->parser->savers);
	free(file->parser);
	free(file->statements);
	free(file->things);
	free(file->variables);
	free(file);
}

static char *read_all(FILE *in, size_t *length)
{
	size_t room = 1 << 16, n = 0, got;
	char *text = malloc(room), *larger;

	while (text && (got = fread(text + n, 1, room - n, in))) {
		n += got;
		if (n < room)
			continue;
		room *= 2;
		larger = realloc(text, room);
		if (!larger)
			free(text);
		text = larger;
	}
	*length = n;
	return text;
}

struct case_file *case_read(const char *path, struct complaint *complaint)
{
	bool standard = !strcmp(path, "-");
	struct case_file *file = NULL;
	char *text = NULL;
	size_t length;
	FILE *in = standard ? stdin : fopen(path, "re");

	if (!in) {
		complain(complaint, "%s cannot be read (%s); give the name of a case file", path,
			strerror(errno));
		return NULL;
	}
	errno = 0;
	text = read_all(in, &length);
	if (!text || ferror(in)) {
		complain(complaint, "%s cannot be read (%s); give the name of a case file", path,
			strerror(errno ? errno : ENOMEM));
		goto out;
	}
	file = case_create(path);
	if (!file)
		complain(complaint, "%s: no memory for so large a case; split it", path);
	if (file && (case_append(file, text, length, complaint) || case_finish(file, complaint))) {
		case_destroy(file);
		file = NULL;
	}
out:
	free(text);
	if (!standard)
		fclose(in);
	return file;
}

const struct case_argument *case_argument(
	const struct case_statement *statement, unsigned field, bool output)
{
	unsigned first = output ? statement->n_inputs : 0;
	unsigned end = statement->n_inputs + (output ? statement->n_outputs : 0);

	for (unsigned i = first; i < end; i++)
		if (statement->arguments[i].field == field)
			return &statement->arguments[i];
	return NULL;
}
