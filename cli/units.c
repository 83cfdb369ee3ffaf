/* SPDX-License-Identifier: MIT */
/* Numbers as people write and read them: sizes, times and counts. */
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffixes[] = "KMGTPE";

static int parse(const char *text, char **end, uint64_t *number)
{
	/* strtoull takes a sign and leading blanks; a size has neither. */
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return errno == ERANGE ? -ERANGE : 0;
}

int units_parse_number(const char *text, uint64_t *number)
{
	char *end;
	int error = parse(text, &end, number);

	if (error)
		return error;
	return *end ? -EINVAL : 0;
}

int units_parse_size(const char *text, uint64_t *bytes)
{
	char *end;
	const char *suffix;
	int error = parse(text, &end, bytes);
	unsigned shift = 0;

	if (error)
		return error;
	if (*end) {
		suffix = strchr(suffixes, toupper((unsigned char)*end));
		if (!suffix)
			return -EINVAL;
		shift = 10 * (unsigned)(suffix - suffixes + 1);
		end++;
		/* "GiB" and "GB" are read as what their writer most likely meant. */
		if (*end == 'i')
			end++;
		if (*end == 'B')
			end++;
		if (*end)
			return -EINVAL;
	}
	if (shift && *bytes >> (64 - shift))
		return -ERANGE;
	*bytes <<= shift;
	return 0;
}

/* The largest unit of which there is at least one; one digit after the point where it is not whole.
 */
static void scale(uint64_t bytes, char text[UNITS_TEXT], unsigned *unit)
{
	for (*unit = 0; *unit < 6 && bytes >> (10 * (*unit + 1)); (*unit)++)
		;
	if (bytes & ((1ull << (10 * *unit)) - 1))
		snprintf(text, UNITS_TEXT, "%.1f", (double)bytes / (double)(1ull << (10 * *unit)));
	else
		snprintf(text, UNITS_TEXT, "%" PRIu64, bytes >> (10 * *unit));
}

char *units_size(char text[UNITS_TEXT], uint64_t bytes)
{
	static const char *const names[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	char number[UNITS_TEXT];
	unsigned unit;

	scale(bytes, number, &unit);
	snprintf(text, UNITS_TEXT, "%.20s %s", number, names[unit]);
	return text;
}

char *units_short(char text[UNITS_TEXT], uint64_t bytes)
{
	char number[UNITS_TEXT];
	unsigned unit;

	scale(bytes, number, &unit);
	if (unit)
		snprintf(text, UNITS_TEXT, "%.20s%c", number, suffixes[unit - 1]);
	else
		snprintf(text, UNITS_TEXT, "%.20s", number);
	return text;
}

char *units_exact(char text[UNITS_TEXT], uint64_t number)
{
	unsigned unit = 0;

	while (number && unit < 6 && !(number & 1023)) {
		number >>= 10;
		unit++;
	}
	if (unit)
		snprintf(text, UNITS_TEXT, "%" PRIu64 "%c", number, suffixes[unit - 1]);
	else
		snprintf(text, UNITS_TEXT, "%" PRIu64, number);
	return text;
}

char *units_time(char text[UNITS_TEXT], uint64_t ns)
{
	static const char *const names[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	unsigned unit = 0;

	/* 999.5 would be written as 1000. */
	while (unit < 3 && value >= 999.5) {
		value /= 1000;
		unit++;
	}
	snprintf(text, UNITS_TEXT, "%.*f %s",
		!unit || value >= 99.95 ? 0
		: value >= 9.995	? 1
					: 2,
		value, names[unit]);
	return text;
}

char *units_count(char text[UNITS_TEXT], uint64_t count)
{
	char digits[UNITS_TEXT];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *out = text;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return text;
}

char *units_rate(char text[UNITS_TEXT], double rate)
{
	if (rate >= 999.5)
		return units_count(text, (uint64_t)(rate + 0.5));
	if (rate > 0 && rate < 0.001)
		snprintf(text, UNITS_TEXT, "<0.001");
	else
		snprintf(text, UNITS_TEXT, "%.3g", rate);
	return text;
}
