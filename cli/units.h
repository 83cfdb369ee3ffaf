/* SPDX-License-Identifier: MIT */
/* Numbers as people write and read them: sizes, times and counts. */
#ifndef CLI_UNITS_H
#define CLI_UNITS_H

#include <stdint.h>

#define UNITS_TEXT 32

/**
 * units_parse_size() - "256M", "1g", "4096", "0x1000": K, M, G, T are powers of 1024.
 *
 * Return: 0; -EINVAL no such number; -ERANGE more than 64 bits.
 */
int units_parse_size(const char *text, uint64_t *bytes);
/** units_parse_number() - A decimal or 0x number. Return: 0; -EINVAL; -ERANGE. */
int units_parse_number(const char *text, uint64_t *number);

/* Each writes to the caller's buffer and returns it. */
char *units_size(char text[UNITS_TEXT], uint64_t bytes);  /**< "256 MiB", "1.5 GiB" */
char *units_short(char text[UNITS_TEXT], uint64_t bytes); /**< "256M", "1.5G" */
/** "2M", "4097": whatever the number, what is read from it again is the same. */
char *units_exact(char text[UNITS_TEXT], uint64_t number);
char *units_time(char text[UNITS_TEXT], uint64_t ns);	  /**< "12.3 us", three digits */
char *units_count(char text[UNITS_TEXT], uint64_t count); /**< "8,388,608" */
/** Three digits: "0.0123", "45.6", "149,700"; "<0.001" for less. */
char *units_rate(char text[UNITS_TEXT], double rate);

#endif
