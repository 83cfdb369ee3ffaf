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

/** complain_more() - Add to the sentence. */
void complain_more(struct complaint *complaint, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct dmamap_system;

/**
 * complain_call() - That a call of this thread failed: what that means, and the
 * system's reason for it, or the errno's text where there is none.
 *
 * Return: -1, always.
 */
int complain_call(struct complaint *complaint, struct dmamap_system *system, int error,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
