/* SPDX-License-Identifier: MIT */
/* Ctrl-C and its like: the first asks for an end, the second ends at once. */
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/command.h"

static atomic_int caught; /* other threads ask */
static void (*clean_up)(void);

static void handle(int number)
{
	if (caught) {
		clean_up();
		_exit(EXIT_SIGNAL + number);
	}
	caught = number;
}

void interrupt_catch(void (*clean)(void))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

	clean_up = clean;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old;

		/* What the parent had ignored (nohup) stays ignored. */
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

int interrupt_signal(void)
{
	return caught;
}
