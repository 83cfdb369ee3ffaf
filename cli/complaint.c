/* SPDX-License-Identifier: MIT */
/* A complaint: the one sentence that a user gets for bad input. */
#include "complaint.h"

#include <stdarg.h>
#include <stdio.h>

int complain(struct complaint *complaint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(complaint->text, sizeof(complaint->text), format, arguments);
	va_end(arguments);
	return -1;
}
