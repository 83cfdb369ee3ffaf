/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out: a test does the same calls again and again, with the
 * n-th allocation of its own thread failing, until none fails. A program that
 * links faults.c is linked with --wrap for malloc, calloc, realloc and
 * aligned_alloc, so that every allocation of the soft system and of the engine
 * comes by there.
 */
#ifndef TESTS_SOFT_FAULTS_H
#define TESTS_SOFT_FAULTS_H

#include "tests/soft/rig.h"

/* Counts down to the allocation that fails; 0: none does. */
extern _Thread_local unsigned fail_nth;
/* It did. */
extern _Thread_local bool failed;

/*
 * Without memory the first time, a call must work the second time, and leave no
 * descriptor behind in between: what it gives then.
 */
#define FAULTS_MUST(call)                                                                          \
	({                                                                                         \
		unsigned descriptors = rig_descriptors();                                          \
		int result = call;                                                                 \
                                                                                                   \
		if (result < 0) {                                                                  \
			assert_int_equal(result, -ENOMEM);                                         \
			assert_true(failed);                                                       \
			assert_int_equal(rig_descriptors(), descriptors);                          \
			result = call;                                                             \
		}                                                                                  \
		assert_true(result >= 0);                                                          \
		result;                                                                            \
	})

#endif
