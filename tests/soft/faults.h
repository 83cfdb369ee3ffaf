/* SPDX-License-Identifier: MIT */
/* Memory that runs out, for calls of the soft system. */
#ifndef TESTS_SOFT_FAULTS_H
#define TESTS_SOFT_FAULTS_H

#include "tests/faults.h"
#include "tests/soft/rig.h"

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
