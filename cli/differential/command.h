/* SPDX-License-Identifier: MIT */
/* dmamap replay --random: the systems, the machine, and what is said of it all. */
#ifndef DIFFERENTIAL_COMMAND_H
#define DIFFERENTIAL_COMMAND_H

#include "cli/complaint.h"
#include "cli/replay/run.h"

/** differential_command() - Return: the exit status. */
int differential_command(const struct replay_options *options);

#endif
