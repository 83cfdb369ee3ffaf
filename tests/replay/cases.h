/* SPDX-License-Identifier: MIT */
/* What the parser's tests and its fuzzer share: a case read, printed and read again. */
#ifndef TESTS_REPLAY_CASES_H
#define TESTS_REPLAY_CASES_H

#include <stdbool.h>
#include <stddef.h>

/** cases_print() - All statements of a text as lines, to be freed; NULL: it is no case, and
 * @complaint (of 768 bytes) says why. */
char *cases_print(const char *text, size_t length, char *complaint);

/** cases_round_trip() - What a case prints as is a case, and prints as the same again.
 * False: a fault in the parser or the printer. @good: it was a case. */
bool cases_round_trip(const char *text, size_t length, bool *good);

#endif
