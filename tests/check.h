/* SPDX-License-Identifier: MIT */
/*
 * What the tests share: cmocka's headers, a random generator whose seed is
 * printed and can be given, and a check of refusals with their reasons.
 */
#ifndef DMAMAP_TESTS_CHECK_H
#define DMAMAP_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "dmamap/common.h"

struct random {
	uint64_t state;
};

/* The seed is DMAMAP_SEED, or the time; either is printed. */
static inline struct random random_start(const char *what)
{
	const char *given = getenv("DMAMAP_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

	printf("%s: seed %llu (again: DMAMAP_SEED=%llu)\n", what, (unsigned long long)seed,
		(unsigned long long)seed);
	return (struct random){seed * 2 + 1};
}

static inline uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Below @n. */
static inline uint64_t random_below(struct random *random, uint64_t n)
{
	return random_next(random) % n;
}

/* That a call was refused with this errno, by this rule. */
#define assert_refused(call, why, errno_value, wanted_kind)                                        \
	do {                                                                                       \
		(why)->kind = NULL;                                                                \
		assert_int_equal(call, -(errno_value));                                            \
		assert_ptr_equal((why)->kind, wanted_kind);                                        \
		assert_int_equal((why)->error, errno_value);                                       \
	} while (0)

#endif
