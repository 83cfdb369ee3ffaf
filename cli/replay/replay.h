/* SPDX-License-Identifier: MIT */
/* The command line of dmamap replay. */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include <stdio.h>

#include "cli/complaint.h"
#include "run.h"

enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_STATEMENTS, OPTIONS_RANDOM };

/** replay_options_read() - Return: what to do; -1 with a complaint. */
int replay_options_read(
	int argc, char **argv, struct replay_options *options, struct complaint *complaint);
void replay_help(FILE *out);

#endif
