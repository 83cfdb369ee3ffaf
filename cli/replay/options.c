/* SPDX-License-Identifier: MIT */
/* The command line of dmamap replay, read and checked. */
#include <getopt.h>
#include <string.h>

#include "cli/option.h"
#include "cli/units.h"
#include "replay.h"

enum {
	OPT_SYSTEM = 256,
	OPT_MACHINE,
	OPT_JSON,
	OPT_TAP,
	OPT_STATEMENTS,
	OPT_RANDOM,
	OPT_SEED,
	OPT_SAVE
};

static const struct option long_options[] = {
	{"system", required_argument, NULL, OPT_SYSTEM},
	{"machine", required_argument, NULL, OPT_MACHINE},
	{"quiet", no_argument, NULL, 'q'},
	{"json", no_argument, NULL, OPT_JSON},
	{"tap", no_argument, NULL, OPT_TAP},
	{"statements", no_argument, NULL, OPT_STATEMENTS},
	{"random", required_argument, NULL, OPT_RANDOM},
	{"seed", required_argument, NULL, OPT_SEED},
	{"save", required_argument, NULL, OPT_SAVE},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

void replay_help(FILE *out)
{
	fputs("dmamap replay: run cases of calls, and say why each refused one was refused\n"
	      "\n"
	      "usage: dmamap replay [OPTION...] FILE...      (-: standard input)\n"
	      "       dmamap replay [OPTION...] --random CALLS\n"
	      "\n"
	      "      --system WHICH  soft (default), or linux: the running kernel, with the soft\n"
	      "                      system beside it, and every difference between the two\n"
	      "      --machine SPEC  soft: the machine that it is; linux: what is known of the\n"
	      "                      machine beside what the kernel shows. key=value,..., or "
	      "@FILE\n"
	      "                      (dmamap help machine)\n"
	      "  -q, --quiet         print what fails, and the last line\n"
	      "      --json          all of it, as data; schema: docs/replay-json.md\n"
	      "      --tap           a line for each case, as the kernel's selftests print\n"
	      "      --statements    what a case can be made of; the format: docs/case-format.md\n"
	      "      --random CALLS  so many random calls on two systems: linux and soft, or two "
	      "soft\n"
	      "                      ones that are alike; what differs is shrunk to a case\n"
	      "      --seed N        the same calls again (the seed is printed)\n"
	      "      --save PREFIX   write these cases to PREFIX-1.case, PREFIX-2.case...\n"
	      "\n"
	      "Exit status: 0 all cases passed or were skipped, or no mismatch; 1 one failed; 2 "
	      "bad input.\n",
		out);
}

int replay_options_read(
	int argc, char **argv, struct replay_options *options, struct complaint *complaint)
{
	int opt, formats = 0;

	*options = (struct replay_options){0};
	opterr = 0;
	optind = 1;
	while ((opt = getopt_long(argc, argv, ":qh", long_options, NULL)) != -1) {
		switch (opt) {
		case OPT_SYSTEM:
			options->linux_system = !strcmp(optarg, "linux");
			if (!options->linux_system && strcmp(optarg, "soft") != 0)
				return complain(complaint,
					"--system %s: there is no such system; give soft or linux",
					optarg);
			break;
		case OPT_MACHINE:
			options->machine = optarg;
			break;
		case OPT_RANDOM:
			if (units_parse_number(optarg, &options->random) || !options->random)
				return complain(complaint,
					"--random %s: give a number of calls, such as 10000",
					optarg);
			break;
		case OPT_SEED:
			options->has_seed = true;
			if (units_parse_number(optarg, &options->seed))
				return complain(complaint,
					"--seed %s: give a number, as it was printed", optarg);
			break;
		case OPT_SAVE:
			options->save = optarg;
			break;
		case 'q':
			options->quiet = true;
			break;
		case OPT_JSON:
			options->format = FORMAT_JSON;
			formats++;
			break;
		case OPT_TAP:
			options->format = FORMAT_TAP;
			formats++;
			break;
		case OPT_STATEMENTS:
			return OPTIONS_STATEMENTS;
		case 'h':
			return OPTIONS_HELP;
		default:
			return option_unknown(argv, opt, "replay", complaint);
		}
	}
	if (formats > 1)
		return complain(complaint, "only one output at a time; give --json or --tap");
	options->files = argv + optind;
	options->n_files = argc - optind;
	if (options->random && (options->n_files || formats))
		return complain(complaint,
			"--random makes the calls and its own report; leave out %s",
			options->n_files ? "the files" : "--json and --tap");
	if (!options->random && (options->has_seed || options->save))
		return complain(complaint, "--seed and --save are for --random; give it too");
	if (options->random)
		return OPTIONS_RANDOM;
	if (!options->n_files)
		return complain(complaint,
			"no case is given; name a file, such as tests/cases/msi-window.case");
	return OPTIONS_RUN;
}
