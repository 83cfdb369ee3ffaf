/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and PCI addresses as a machine's text has them. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

static const char units[] = "KMGTPE";

bool machine_read_number(const char *text, bool sizes, uint64_t *number)
{
	unsigned shift = 0;
	const char *unit;
	char *end;

	/* strtoull takes a sign and leading blanks; a number here has neither. */
	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*number = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	if (errno)
		return false;
	if (*end && sizes) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return false;
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
		if (*end == 'i')
			end++;
		if (*end == 'B')
			end++;
	}
	if (*end || (shift && *number >> (64 - shift)))
		return false;
	*number <<= shift;
	return true;
}

static bool hex_digits(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)text[i]) || isupper((unsigned char)text[i]))
			return false;
	return true;
}

bool machine_read_bdf(const char *text, size_t length, char bdf[16])
{
	static const char first_domain[] = "0000:";
	size_t domain = length == strlen("00:00.0") ? strlen(first_domain) : 0;

	if (length + domain != strlen("0000:00:00.0"))
		return false;
	memcpy(bdf, first_domain, domain);
	memcpy(bdf + domain, text, length);
	bdf[12] = '\0';
	return hex_digits(bdf, 4) && bdf[4] == ':' && hex_digits(bdf + 5, 2) && bdf[7] == ':' &&
	       hex_digits(bdf + 8, 2) && bdf[10] == '.' && bdf[11] >= '0' && bdf[11] <= '7';
}

void machine_write_size(uint64_t bytes, char text[24])
{
	unsigned unit = 0;

	while (unit < 6 && bytes && !(bytes & 1023)) {
		bytes >>= 10;
		unit++;
	}
	if (unit)
		snprintf(text, 24, "%" PRIu64 "%c", bytes, units[unit - 1]);
	else
		snprintf(text, 24, "%" PRIu64, bytes);
}
