/* SPDX-License-Identifier: MIT */
/*
 * Memory that a driver shares may vanish while it is looked at: a page of the
 * kernel's that is not there, a file that was cut. The signal that this gives
 * is caught where a queue looks at such memory, and the queue goes on.
 *
 *	if (GUARD_SET())
 *		... the memory was not there; what was under way is in the queue
 */
#ifndef VDUSE_BLK_GUARD_H
#define VDUSE_BLK_GUARD_H

#include <setjmp.h>
#include <stdbool.h>

struct guard {
	sigjmp_buf place;
	volatile bool set;
};

extern _Thread_local struct guard guard;

/** guard_install() - For the whole process, once. */
void guard_install(void);
/** guard_clear() - From here on a fault is a fault again. */
static inline void guard_clear(void)
{
	guard.set = false;
}

/** GUARD_SET() - 0; and nonzero again when memory was not there. Its function must
 * not return before guard_clear(). */
#define GUARD_SET() (guard.set = true, sigsetjmp(guard.place, 0))

#endif
