/* SPDX-License-Identifier: MIT */
/* What the user asked for: the command line of dmamap bench, read and checked. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dmamap/soft.h"
#include "cli/option.h"
#include "cli/units.h"

#define RUNS_DEFAULT 5
#define RUNS_MAX     100000

enum {
	OPT_LIST = 256,
	OPT_SYSTEM,
	OPT_MACHINE,
	OPT_DEVICE,
	OPT_BAR,
	OPT_SIZE,
	OPT_RUNS,
	OPT_SEED,
	OPT_SPARSE,
	OPT_STRIDE,
	OPT_NO_COUNT,
	OPT_VERBOSE,
	OPT_JSON,
	OPT_CSV,
	OPT_TAP,
	OPT_COMPARE,
	OPT_THRESHOLD,
	OPT_COLOR
};

static const struct option long_options[] = {
	{"test", required_argument, NULL, 't'},
	{"list", no_argument, NULL, OPT_LIST},
	{"system", required_argument, NULL, OPT_SYSTEM},
	{"machine", required_argument, NULL, OPT_MACHINE},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"bar", required_argument, NULL, OPT_BAR},
	{"size", required_argument, NULL, OPT_SIZE},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"seed", required_argument, NULL, OPT_SEED},
	{"sparse", no_argument, NULL, OPT_SPARSE},
	{"stride", required_argument, NULL, OPT_STRIDE},
	{"no-count", no_argument, NULL, OPT_NO_COUNT},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"json", optional_argument, NULL, OPT_JSON},
	{"csv", optional_argument, NULL, OPT_CSV},
	{"tap", optional_argument, NULL, OPT_TAP},
	{"compare", required_argument, NULL, OPT_COMPARE},
	{"threshold", required_argument, NULL, OPT_THRESHOLD},
	{"color", required_argument, NULL, OPT_COLOR},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

void options_help(FILE *out)
{
	fputs("dmamap bench: time DMA mapping: every mode, memory and prefault\n"
	      "\n"
	      "usage: dmamap bench [OPTION...]\n"
	      "       dmamap bench vduse [OPTION...]   a disk over VDUSE: see its --help\n"
	      "\n"
	      "What to measure\n"
	      "  -t, --test GLOB     variants whose name matches; may be given again\n"
	      "      --list          print the names, measure nothing\n"
	      "      --system WHICH  soft, linux or all (default: soft, and linux where a device\n"
	      "                      is given or found)\n"
	      "      --machine SPEC  soft: what it is about, key=value,... or @FILE, such as\n"
	      "                      iommu=amd (dmamap help machine)\n"
	      "      --device BDF    the kernel's device, bound to vfio-pci (dmamap help device)\n"
	      "      --bar N         the BAR to map (default: the largest)\n"
	      "      --stride WHICH  soft: how BAR look-ups step: leaf (Linux 6.15 and later),\n"
	      "                      page (before), both (default)\n"
	      "      --size SIZE     bytes of memory to map: K, M, G, T; a BAR is mapped whole\n"
	      "                      (default: 256M, and 1G where pages are as large)\n"
	      "      --sparse        memory that this machine cannot back is declared: map and\n"
	      "                      unmap only, soft only\n"
	      "      --no-count      linux: without the run that counts the kernel's work\n"
	      "      --runs N        how often, exactly (default: 5, fewer where time is short)\n"
	      "      --seed N        fixes the order of the runs (default: 1)\n"
	      "\n"
	      "What to print (the table, without one of these)\n"
	      "      --verbose       every run and every statistic, in words\n"
	      "      --json[=FILE]   all of it, as data; schema: docs/bench-json.md\n"
	      "      --csv[=FILE]    a line for each result\n"
	      "      --tap[=FILE]    as the kernel's selftests print\n"
	      "      --compare FILE  ratios to a run that --json wrote\n"
	      "      --threshold PCT with --compare: exit 1 where a phase is slower by more, and\n"
	      "                      beyond the noise (default: 10)\n"
	      "      --color WHEN    auto, always or never\n"
	      "\n"
	      "Exit status: 0 done; 1 a variant failed, or is slower than --threshold; 2 bad\n"
	      "input; 130 interrupted.\n",
		out);
}

static int parse_size(uint64_t page_size, uint64_t *size, struct complaint *complaint)
{
	char text[UNITS_TEXT];
	int error = units_parse_size(optarg, size);

	if (error == -EINVAL)
		return complain(complaint,
			"--size %s: that is no size; give a number and K, M, G or T, such as 256M",
			optarg);
	if (error || *size > (uint64_t)1 << 62)
		return complain(
			complaint, "--size %s: larger than any address space; give less", optarg);
	if (!*size)
		return complain(complaint, "--size %s: nothing to map; give at least one page (%s)",
			optarg, units_short(text, page_size));
	if (*size % page_size)
		return complain(complaint,
			"--size %s: not a multiple of the page; give a multiple of %s", optarg,
			units_short(text, page_size));
	return 0;
}

static int parse_threshold(double *threshold, struct complaint *complaint)
{
	char *end;

	*threshold = strtod(optarg, &end);
	if (end == optarg || (*end && strcmp(end, "%")) || !isfinite(*threshold) || *threshold < 0)
		return complain(complaint,
			"--threshold %s: that is no percentage; give one such as 10", optarg);
	return 0;
}

static int parse_one(
	struct options *options, int opt, uint64_t page_size, struct complaint *complaint)
{
	static const char *const systems[] = {"soft", "linux", "all"};
	static const char *const strides[] = {"leaf", "page", "both"};
	static const char *const colors[] = {"auto", "always", "never"};
	uint64_t number;
	unsigned choice;

	switch (opt) {
	case 'h':
		options->action = ACTION_HELP;
		return 0;
	case 't':
		options->globs[options->n_globs++] = optarg;
		return 0;
	case OPT_LIST:
		options->action = ACTION_LIST;
		return 0;
	case OPT_SYSTEM:
		if (option_choice(long_options, opt, systems, 3, &choice, complaint))
			return -1;
		options->systems = SYSTEMS_SOFT + choice;
		return 0;
	case OPT_MACHINE:
		options->machine = optarg;
		return 0;
	case OPT_DEVICE:
		options->device = optarg;
		return 0;
	case OPT_BAR:
		if (option_number(
			    long_options, opt, 0, DMAMAP_MACHINE_BARS - 1, &number, complaint))
			return -1;
		options->bar = (int)number;
		return 0;
	case OPT_SIZE:
		return parse_size(page_size, &options->size, complaint);
	case OPT_RUNS:
		if (option_number(long_options, opt, 1, RUNS_MAX, &number, complaint))
			return -1;
		options->runs = (unsigned)number;
		options->runs_given = true;
		return 0;
	case OPT_SEED:
		return option_number(long_options, opt, 0, UINT64_MAX, &options->seed, complaint);
	case OPT_SPARSE:
		options->sparse = true;
		return 0;
	case OPT_STRIDE:
		if (option_choice(long_options, opt, strides, 3, &choice, complaint))
			return -1;
		options->strides = choice == 2 ? 3 : 1u << choice;
		return 0;
	case OPT_NO_COUNT:
		options->count = false;
		return 0;
	case OPT_VERBOSE:
		options->verbose = true;
		return 0;
	case OPT_JSON:
	case OPT_CSV:
	case OPT_TAP:
		options->output[opt - OPT_JSON] = optarg ? optarg : "-";
		return 0;
	case OPT_COMPARE:
		options->compare = optarg;
		return 0;
	case OPT_THRESHOLD:
		return parse_threshold(&options->threshold, complaint);
	case OPT_COLOR:
		if (option_choice(long_options, opt, colors, 3, &choice, complaint))
			return -1;
		options->color = COLOR_AUTO + choice;
		return 0;
	default:
		return -1;
	}
}

static int check(const struct options *options, struct complaint *complaint)
{
	unsigned on_stdout = 0;

	for (unsigned format = 0; format < FORMATS; format++)
		on_stdout += options->output[format] && !strcmp(options->output[format], "-");
	if (options->machine && options->systems == SYSTEMS_LINUX)
		return complain(complaint,
			"--machine is what the soft system is about; leave it, or "
			"--system linux, out");
	if (on_stdout + options->verbose > 1)
		return complain(complaint, "only one output can go to standard output; give the "
					   "others a file, such as --json=run.json");
	return 0;
}

int options_parse(struct options *options, int argc, char **argv, uint64_t page_size,
	struct complaint *complaint)
{
	int opt;

	*options = (struct options){
		.bar = -1,
		.runs = RUNS_DEFAULT,
		.seed = 1,
		.strides = 3,
		.count = true,
		.threshold = 10,
		.globs = calloc((size_t)argc + 1, sizeof(*options->globs)),
	};
	if (!options->globs)
		return complain(complaint, "out of memory");
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":t:h", long_options, NULL)) != -1) {
		int error;

		if (opt == '?' || opt == ':')
			error = option_unknown(argv, opt, "bench", complaint);
		else
			error = parse_one(options, opt, page_size, complaint);
		if (error)
			goto fail;
	}
	if (optind < argc) {
		complain(complaint, "%s: an option was expected; to pick variants: -t '%s'",
			argv[optind], argv[optind]);
		goto fail;
	}
	if (check(options, complaint))
		goto fail;
	return 0;
fail:
	options_free(options);
	return -1;
}

void options_free(struct options *options)
{
	free(options->globs);
	options->globs = NULL;
}
