/* SPDX-License-Identifier: MIT */
/*
 * The parser's state, and what its parts give each other: parse.c has lines,
 * words and statements, value.c what stands in them, names.c names.
 *
 * It works on the text in place, from left to right, once. A word ends at a
 * blank; a backslash at the end of a line is a blank. Every error says where
 * it is; finding the line and the column of that place is left until then.
 */
#ifndef REPLAY_PARSE_H
#define REPLAY_PARSE_H

#include "arena.h"
#include "case.h"
#include "verbs.h"

#define PARSE_ARGUMENTS	 96
#define PARSE_LOOPS	 16
#define PARSE_CONDITIONS 16

struct case_parser {
	struct case_file *file;
	struct arena arena;
	struct names things;	    /* name -> index into file->things */
	struct names variables;	    /* name -> index into file->variables */
	const struct verb **savers; /* of each variable: who keeps it; NULL: a loop */
	size_t statements_room, things_room, variables_room;
	uint32_t loops[PARSE_LOOPS]; /* statements that wait for their end */
	unsigned n_loops;
	uint64_t page_size;
	uint32_t line; /* the number of the one at hand */

	/* Of one call of case_append(). */
	const char *text, *end, *at;
	uint32_t first_line;
	struct complaint *complaint;

	/* Of the statement at hand. */
	const struct verb *verb;
	unsigned targets; /* which things all forms of the verb can be about */
	struct case_argument arguments[PARSE_ARGUMENTS];
	unsigned n;
};

/* Complain about the text at @at. Return: -1. */
int parse_fail(struct case_parser *parser, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int parse_no_memory(struct case_parser *parser);

/* Whether the word is at its end. */
bool parse_at_end(const struct case_parser *parser);
/* How far the word goes that starts at @at. */
const char *parse_word_end(const struct case_parser *parser, const char *at);
/* How far the name goes that starts at @at; @at itself: there is none. */
const char *parse_name_end(const struct case_parser *parser, const char *at);

/* The value of a field, which is the whole rest of the word. */
int parse_value(
	struct case_parser *parser, const struct field *field, struct case_argument *argument);
/* A number without names: a size, a version. */
int parse_constant(struct case_parser *parser, uint64_t *number);
/* The thing of that name: its index, or -1 with a complaint. */
int64_t parse_thing(struct case_parser *parser, const char *name, size_t length);
int64_t parse_add_thing(struct case_parser *parser, const char *name, size_t length,
	enum thing_kind kind, unsigned device);
/* A variable of that name, kept by @saver. Its index, or -1. */
int64_t parse_add_variable(
	struct case_parser *parser, const char *name, size_t length, const struct verb *saver);
/* The name that a thing gets, and the name that save= or a loop gives. */
int parse_new_thing(
	struct case_parser *parser, const struct field *field, struct case_argument *argument);
int parse_save(struct case_parser *parser, struct case_argument *argument);
/* Conditions of one word, with commas; appended to the @n that are there. */
int parse_conditions(struct case_parser *parser, struct case_condition *conditions, unsigned *n);
/* "a container or an IOAS", for messages. */
#define PARSE_KINDS 128
const char *parse_kind_name(unsigned kinds, char text[PARSE_KINDS]);

#endif
