/* SPDX-License-Identifier: MIT */
/* Growing lines: every write is into memory that is there, or nothing is written. */
#include "cli/differential/script.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void script_clear(struct script *script)
{
	script->length = script->open = 0;
	script->n = 0;
	script->failed = false;
}

void script_free(struct script *script)
{
	free(script->text);
	free(script->starts);
	*script = (struct script){0};
}

/* Doubles what is too small. */
static bool grow(void **memory, size_t *room, size_t wanted, size_t size)
{
	size_t more = *room ? *room : 256;
	void *grown;

	while (more < wanted)
		more *= 2;
	if (more == *room)
		return true;
	grown = reallocarray(*memory, more, size);
	if (!grown)
		return false;
	*memory = grown;
	*room = more;
	return true;
}

void script_add(struct script *script, const char *format, ...)
{
	va_list arguments;
	int length;

	for (;;) {
		size_t left = script->room - script->length;

		va_start(arguments, format);
		length = vsnprintf(script->text + script->length, left, format, arguments);
		va_end(arguments);
		if (length >= 0 && (size_t)length < left)
			break;
		if (length < 0 || !grow((void **)&script->text, &script->room,
					  script->length + (size_t)length + 1, 1)) {
			script->failed = true;
			return;
		}
	}
	script->length += (size_t)length;
}

void script_end(struct script *script)
{
	if (script->failed ||
		!grow((void **)&script->starts, &script->lines_room, script->n + 1,
			sizeof(*script->starts)) ||
		!grow((void **)&script->text, &script->room, script->length + 1, 1)) {
		script->failed = true;
		return;
	}
	script->starts[script->n++] = script->open;
	script->text[script->length++] = '\0';
	script->open = script->length;
}
