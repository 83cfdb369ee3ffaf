/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer's target for the parser of cases: whatever the bytes, it reads a
 * case or complains, and what it read prints as a case that is the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tests/replay/cases.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool good;

	if (!cases_round_trip((const char *)data, size, &good))
		abort();
	return 0;
}
