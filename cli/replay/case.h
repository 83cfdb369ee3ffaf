/* SPDX-License-Identifier: MIT */
/*
 * A case as data: what the parser makes of a file (docs/case-format.md), what
 * the runner runs, and what the printer turns into the same text again.
 *
 * A statement is a verb and its arguments. Verbs are data (verbs.h): each has
 * fields, which are its words, its keys and its outputs alike, and an argument
 * is a field with a value. Values are checked against the field's kind when
 * they are parsed, so that the runner meets no value that it cannot use.
 *
 * Names are numbers after parsing: a thing (a container, a memory) or a
 * variable (what save= keeps, a loop's counter) is an index into its table.
 * All that belongs to a case lives in its arena and goes with it.
 */
#ifndef REPLAY_CASE_H
#define REPLAY_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/complaint.h"

struct verb;
struct case_file;

/** What a name stands for; a bit each, so that a field can take several. */
enum thing_kind {
	THING_DEVICE = 1 << 0,	    /**< d0: the machine's device, and the file opened last */
	THING_DEVICE_FILE = 1 << 1, /**< an opened device */
	THING_GROUP = 1 << 2,	    /**< an opened group, d0.group included */
	THING_CONTAINER = 1 << 3,
	THING_IOMMUFD = 1 << 4,
	THING_IOAS = 1 << 5,
	THING_HWPT = 1 << 6,
	THING_MEMORY = 1 << 7, /**< memory or a mapped BAR */
	THING_EVENTFD = 1 << 8,
	THING_PROCESS = 1 << 9,
	THING_FILE = 1 << 10, /**< any other open file: path=, a dma-buf */
};

/** struct case_thing - A name, and what it is a name of. */
struct case_thing {
	const char *name;
	enum thing_kind kind;
	unsigned device; /**< THING_DEVICE, and a device's group: its number */
};

/** How a value is written, and which member of its union holds it. */
enum value_kind {
	VALUE_NUMBER,	/**< number */
	VALUE_TERMS,	/**< terms, @n of them: a sum, or a lone name */
	VALUE_ITEMS,	/**< items, @n of them: a list */
	VALUE_THING,	/**< index: the thing that is made, or that the call is about */
	VALUE_VARIABLE, /**< index: what save= keeps, or a loop's counter */
	VALUE_TEXT,	/**< text, NUL-terminated: the rest of a line, a path */
	VALUE_BYTES,	/**< bytes, @n of them */
	VALUE_ANY,	/**< "?" */
};

enum term_kind { TERM_NUMBER, TERM_THING, TERM_VARIABLE };

/**
 * struct case_term - One operand of a sum of products, in the order written.
 * @sign: '+' or '-' starts a summand, '*' multiplies it
 * @value: the number, or the index of the thing or variable
 */
struct case_term {
	char sign;
	uint8_t kind;
	uint64_t value;
};

/**
 * struct case_argument - A field and its value.
 * @field: index into the verb's fields
 * @kind: enum value_kind
 * @n: see enum value_kind
 */
struct case_argument {
	uint8_t field;
	uint8_t kind;
	uint32_t n;
	union {
		uint64_t number;
		uint32_t index;
		const struct case_term *terms;
		const struct case_item *items;
		const char *text;
		const uint8_t *bytes;
	};
};

/** struct case_item - Of a list: @first alone, or @first..@last (@range). Each is
 * VALUE_NUMBER or VALUE_TERMS; their @field is not used. */
struct case_item {
	struct case_argument first;
	struct case_argument last;
	bool range;
};

/** What must come of a call; RESULT_NONE: it must succeed. */
enum result_kind {
	RESULT_NONE,
	RESULT_OK,
	RESULT_NUMBER, /**< @result */
	RESULT_ERROR,  /**< errno @result */
	RESULT_ANY,
	RESULT_FAULT,
};

/** struct case_condition - Of needs and when: a name, a comparison, a value. */
struct case_condition {
	uint8_t what; /**< index into the table of conditions */
	char compare; /**< '=', '<', '>', 'l' (<=), 'g' (>=); 0: the name alone */
	uint64_t value;
};

/**
 * struct case_statement - One line.
 * @arguments: @n_inputs words and keys, as written, then @n_outputs outputs
 * @conditions: of "when", or of needs; @n_conditions
 * @process: thing of "as"; 0: this process (thing 0 is it)
 * @body_end: of loop: the index of its end; of end: that of its loop
 */
struct case_statement {
	const struct verb *verb;
	const struct case_argument *arguments;
	const struct case_condition *conditions;
	uint32_t line;
	uint32_t body_end;
	int64_t result;
	uint16_t process;
	uint8_t result_kind;
	uint8_t n_conditions;
	uint8_t n_inputs;
	uint8_t n_outputs;
};

/** struct case_file - A parsed case. Read it; only the parser changes it. */
struct case_file {
	const char *path;
	const char *title;   /**< NULL: none */
	const char *source;  /**< NULL: none */
	const char *machine; /**< SPECs of all machine statements, joined with commas; NULL: none */
	struct case_statement *statements;
	size_t n_statements;
	struct case_thing *things;
	size_t n_things;
	const char **variables;
	size_t n_variables;
	struct case_parser *parser;
};

/**
 * case_create() - An empty case.
 * @path: for messages; copied
 *
 * Return: NULL where there is no memory.
 */
struct case_file *case_create(const char *path);
void case_destroy(struct case_file *file);

/**
 * case_append() - Parse whole lines and append their statements: a file at once, or a
 * generated statement at a time.
 * @text: @length bytes; need not end in a newline or NUL
 * @complaint: "FILE:LINE:COLUMN: what is wrong; what to write"
 *
 * Return: 0; -1 with the complaint, and what came before the bad line stays.
 */
int case_append(
	struct case_file *file, const char *text, size_t length, struct complaint *complaint);

/**
 * case_finish() - What can only be said at the end: a loop without end.
 * Return: 0; -1 with the complaint.
 */
int case_finish(struct case_file *file, struct complaint *complaint);

/** case_read() - case_create(), case_append() of the whole file ("-": standard
 * input), case_finish(). Return: NULL with the complaint. */
struct case_file *case_read(const char *path, struct complaint *complaint);

/**
 * case_print() - One statement as a line without a newline. Parsing what all statements of a
 * case print as gives an equal case.
 * @buffer: cut to @size, NUL-terminated
 *
 * Return: the length of the whole line, as snprintf does.
 */
size_t case_print(const struct case_file *file, const struct case_statement *statement,
	char *buffer, size_t size);

/** case_argument() - The argument of that field, or NULL. */
const struct case_argument *case_argument(
	const struct case_statement *statement, unsigned field, bool output);

#endif
