/* SPDX-License-Identifier: MIT */
/* A complaint: the one sentence that a user gets for bad input. */
#include "complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dmamap/system.h"

int complain(struct complaint *complaint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(complaint->text, sizeof(complaint->text), format, arguments);
	va_end(arguments);
	return -1;
}

static void add(struct complaint *complaint, const char *format, va_list arguments)
{
	size_t length = strlen(complaint->text);

	vsnprintf(complaint->text + length, sizeof(complaint->text) - length, format, arguments);
}

void complain_more(struct complaint *complaint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(complaint, format, arguments);
	va_end(arguments);
}

int complain_call(struct complaint *complaint, struct dmamap_system *system, int error,
	const char *format, ...)
{
	struct dmamap_reason why = {0};
	char text[512];
	va_list arguments;

	complaint->text[0] = '\0';
	va_start(arguments, format);
	add(complaint, format, arguments);
	va_end(arguments);
	if (system->ops->reason(system, &why)) {
		complain_more(complaint, " (%s)", strerror(-error));
	} else {
		dmamap_reason_format(&why, text, sizeof(text));
		complain_more(complaint, ": %s", text);
	}
	return -1;
}
