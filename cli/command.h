/* SPDX-License-Identifier: MIT */
/* The subcommands of dmamap: each takes its own argv and returns the exit status. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/** What an exit status means, in every subcommand. */
enum command_exit {
	EXIT_DONE = 0,	   /**< done, and as it should be */
	EXIT_FOUND = 1,	   /**< done, and something failed or got slower */
	EXIT_USAGE = 2,	   /**< not done: bad input, or the machine lacks what was asked for */
	EXIT_SIGNAL = 128, /**< plus the signal's number */
};

int bench_command(int argc, char **argv);
int replay_command(int argc, char **argv);
int machine_command(int argc, char **argv);
int vduse_blk_command(int argc, char **argv);

#endif
