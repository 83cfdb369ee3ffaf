/* SPDX-License-Identifier: MIT */
/*
 * A complaint: the one sentence that a user gets for bad input. It names the
 * input and says what to do.
 */
#ifndef CLI_COMPLAINT_H
#define CLI_COMPLAINT_H

struct complaint {
	char text[768];
};

/** complain() - Write the sentence. Return: -1, always. */
int complain(struct complaint *complaint, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
