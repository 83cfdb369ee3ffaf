/* SPDX-License-Identifier: MIT */
/* The signal of memory that is not there, and the way back to who looked. */
#include "guard.h"

#include <signal.h>
#include <stddef.h>

_Thread_local struct guard guard;

static void handle(int number)
{
	if (guard.set)
		siglongjmp(guard.place, 1);
	/* Nobody expects it: let it do what it does without a handler. */
	signal(number, SIG_DFL);
	raise(number);
}

void guard_install(void)
{
	/* It is never returned from, so it must not stay blocked. */
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}
