/* SPDX-License-Identifier: MIT */
/* Values as text, for statements and for what came of them. */
#ifndef REPLAY_PRINT_H
#define REPLAY_PRINT_H

#include "verbs.h"

/** struct line - Text that grows up to @size - 1 bytes; @n is how long all of it is. */
struct line {
	char *text;
	size_t size;
	size_t n;
};

void line_text(struct line *line, const char *text);
void line_char(struct line *line, char c);
/** line_number() - As the field's numbers are shown. */
void line_number(struct line *line, enum field_show show, uint64_t number);
/** line_named() - Flags or a choice by their names, the rest as a number. */
void line_named(struct line *line, const struct field *field, uint64_t number);
void line_bytes(struct line *line, const uint8_t *bytes, size_t n);
/** line_call() - A statement without its result. */
void line_call(
	struct line *line, const struct case_file *file, const struct case_statement *statement);
void line_statement(
	struct line *line, const struct case_file *file, const struct case_statement *statement);

#endif
