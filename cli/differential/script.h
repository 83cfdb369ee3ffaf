/* SPDX-License-Identifier: MIT */
/*
 * A script: the lines of a case while it is being made. They stand in one
 * buffer, each with a NUL at its end instead of a newline.
 */
#ifndef DIFFERENTIAL_SCRIPT_H
#define DIFFERENTIAL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct script {
	char *text;
	size_t length, room;
	size_t open;	/**< where the line that is being written starts */
	size_t *starts; /**< of the lines */
	size_t n, lines_room;
	bool failed; /**< there was no memory: the script is not whole */
};

/** script_clear() - No lines; the memory is kept. */
void script_clear(struct script *script);
void script_free(struct script *script);
/** script_add() - More of the line that is being written. */
void script_add(struct script *script, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/** script_end() - The line is whole. */
void script_end(struct script *script);

static inline const char *script_line(const struct script *script, size_t index)
{
	return script->text + script->starts[index];
}

#endif
