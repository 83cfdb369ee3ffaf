/* SPDX-License-Identifier: MIT */
/*
 * What subcommands share in reading their options with getopt_long, whose
 * optarg and optind are used here: values, and what is said of bad ones.
 */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include <getopt.h>
#include <stdint.h>

#include "complaint.h"

/** option_name() - The long name of the option with the value @opt, or "". */
const char *option_name(const struct option *options, int opt);

/** option_number() - optarg as a number from @least to @most; 0, or -1 and a complaint. */
int option_number(const struct option *options, int opt, uint64_t least, uint64_t most,
	uint64_t *number, struct complaint *complaint);

/** option_count() - The same for a small number. */
int option_count(const struct option *options, int opt, unsigned least, unsigned most,
	unsigned *count, struct complaint *complaint);

/** option_choice() - Which of @n words optarg is; 0, or -1 and a complaint. */
int option_choice(const struct option *options, int opt, const char *const *choices, unsigned n,
	unsigned *choice, struct complaint *complaint);

/**
 * option_unknown() - What getopt_long() gave '?' or ':' for.
 * @command: whose --help has more, such as "bench vduse"
 *
 * Return: -1, always.
 */
int option_unknown(char **argv, int opt, const char *command, struct complaint *complaint);

#endif
