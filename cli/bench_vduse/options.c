/* SPDX-License-Identifier: MIT */
/* What the user asked for: the command line of dmamap bench vduse, read and checked. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/option.h"
#include "cli/units.h"
#include "dmamap/bounce.h"

#define RUNS	      3
#define RUNS_MOST     1000
#define SECONDS_MOST  3600
#define REQUESTS_MOST 1000000000u
#define QUEUES	      2
#define QUEUES_MOST   64
#define JOBS_MOST     64
#define DEPTH_MOST    128
#define DELAY_MOST    10000000000ull
#define BOUNCE_LEAST  (1ull << 20)
#define BOUNCE_MOST   (1ull << 30)

enum {
	OPT_PAGE_SIZE = 256,
	OPT_LOAD,
	OPT_OP,
	OPT_SIZE,
	OPT_BOUNCE,
	OPT_DELAY,
	OPT_QUEUES,
	OPT_FILE,
	OPT_NAME,
	OPT_VERBOSE,
	OPT_RUNS,
	OPT_SECONDS,
	OPT_REQUESTS,
	OPT_VERIFY,
	OPT_JSON,
	OPT_CSV
};

static const struct option long_options[] = {
	{"page-size", required_argument, NULL, OPT_PAGE_SIZE},
	{"load", required_argument, NULL, OPT_LOAD},
	{"op", required_argument, NULL, OPT_OP},
	{"size", required_argument, NULL, OPT_SIZE},
	{"bounce", required_argument, NULL, OPT_BOUNCE},
	{"delay", required_argument, NULL, OPT_DELAY},
	{"queues", required_argument, NULL, OPT_QUEUES},
	{"file", required_argument, NULL, OPT_FILE},
	{"name", required_argument, NULL, OPT_NAME},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"requests", required_argument, NULL, OPT_REQUESTS},
	{"verify", no_argument, NULL, OPT_VERIFY},
	{"json", optional_argument, NULL, OPT_JSON},
	{"csv", optional_argument, NULL, OPT_CSV},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Of Linux commit 3fc3068e7247, and one that fills 64 MiB of 64K units. */
static const struct vduse_shape usual_shapes[] = {{2, 4}, {4, 4}, {8, 8}, {16, 8}, {16, 32}};

void vduse_options_help(FILE *out)
{
	fputs("dmamap bench vduse: a disk over VDUSE, with bounce units of a page and of 4K\n"
	      "\n"
	      "usage: dmamap bench vduse [OPTION...] [-- COMMAND [ARGUMENT...]]...\n"
	      "\n"
	      "The disk is vduse-blk's in this process, or that of COMMAND: any VDUSE daemon, "
	      "which\n"
	      "needs no kernel for it. It is started anew for each run, and its disk is "
	      "overwritten.\n"
	      "Two of them are compared: -- COMMAND1 [ARGUMENT...] -- COMMAND2 [ARGUMENT...].\n"
	      "\n"
	      "What to measure\n"
	      "      --page-size SIZE  the driver's page: 4K, 16K or 64K; may be given again\n"
	      "                        (default: 16K and 64K)\n"
	      "      --load JxD        J jobs with D requests in flight each; may be given again\n"
	      "                        (default: 2x4, 4x4, 8x8, 16x8 and 16x32)\n"
	      "      --op WHICH        write (default) or read\n"
	      "      --size SIZE       of a request: 512 (default), 4K or 64K\n"
	      "      --bounce SIZE     the bounce buffer, 1M to 1G (default: 64M)\n"
	      "      --runs N          how often each row runs (default: 3)\n"
	      "      --seconds N       how long each run takes (default: 1)\n"
	      "      --requests N      so many of each job instead, however long they take\n"
	      "      --verify          compare all that was written with what comes back\n"
	      "\n"
	      "The built-in disk\n"
	      "      --delay TIME      each request is given back that much later, as a slow\n"
	      "                        disk would: us, ms or s\n"
	      "      --queues N        of the disk, 256 requests each (default: 2)\n"
	      "      --file FILE       the image, made for the bench and gone after it; with\n"
	      "                        --op read it may be there (default: 64M of memory)\n"
	      "\n"
	      "The disk of COMMAND, which must stay in the foreground and end by SIGTERM\n"
	      "      --name NAME       of its device (default: the first that there is)\n"
	      "      --verbose         show each of its calls that is refused, and why\n"
	      "\n"
	      "What to print (the table, without one of these)\n"
	      "      --json[=FILE]     all of it, as data; schema: docs/bench-vduse-json.md\n"
	      "      --csv[=FILE]      a line for each run\n"
	      "\n"
	      "Exit status: 0 done; 1 a request failed, or bytes came back wrong; 2 bad input;\n"
	      "130 interrupted.\n",
		out);
}

/* One of three sizes. */
static int parse_one_size(int opt, const char *list, const uint64_t sizes[3], uint64_t *size,
	struct complaint *complaint)
{
	if (!units_parse_size(optarg, size))
		for (unsigned i = 0; i < 3; i++)
			if (*size == sizes[i])
				return 0;
	return complain(complaint, "--%s %s: no such choice; give %s",
		option_name(long_options, opt), optarg, list);
}

static int parse_page(struct vduse_options *options, struct complaint *complaint)
{
	static const uint64_t sizes[3] = {4096, 16384, 65536};
	uint64_t size;

	if (parse_one_size(OPT_PAGE_SIZE, "4K, 16K or 64K", sizes, &size, complaint))
		return -1;
	for (unsigned i = 0; i < options->n_pages; i++)
		if (options->pages[i] == (unsigned)__builtin_ctzll(size))
			return complain(
				complaint, "--page-size %s: given twice; once is enough", optarg);
	options->pages[options->n_pages++] = (unsigned)__builtin_ctzll(size);
	return 0;
}

static int parse_load(struct vduse_options *options, struct complaint *complaint)
{
	char jobs[16];
	const char *x = strchr(optarg, 'x');
	size_t length = x ? (size_t)(x - optarg) : 0;
	uint64_t j, d;

	if (length && length < sizeof(jobs)) {
		memcpy(jobs, optarg, length);
		jobs[length] = '\0';
	}
	if (!length || length >= sizeof(jobs) || units_parse_number(jobs, &j) ||
		units_parse_number(x + 1, &d))
		return complain(complaint,
			"--load %s: that is no load; give jobs and depth, such as 16x8", optarg);
	if (!j || j > JOBS_MOST || !d || d > DEPTH_MOST)
		return complain(complaint,
			"--load %s: out of range; give 1 to %d jobs and a depth of 1 to %d", optarg,
			JOBS_MOST, DEPTH_MOST);
	if (options->n_shapes == VDUSE_SHAPES)
		return complain(
			complaint, "--load %s: too many; give at most %d", optarg, VDUSE_SHAPES);
	for (unsigned i = 0; i < options->n_shapes; i++)
		if (options->shapes[i].jobs == j && options->shapes[i].depth == d)
			return complain(
				complaint, "--load %s: given twice; once is enough", optarg);
	options->shapes[options->n_shapes++] = (struct vduse_shape){(unsigned)j, (unsigned)d};
	return 0;
}

static int parse_size(uint32_t *size, struct complaint *complaint)
{
	static const uint64_t sizes[3] = {512, 4096, 65536};
	uint64_t found;

	if (parse_one_size(OPT_SIZE, "512, 4K or 64K", sizes, &found, complaint))
		return -1;
	*size = (uint32_t)found;
	return 0;
}

static int parse_bounce(uint64_t *bounce, struct complaint *complaint)
{
	int error = units_parse_size(optarg, bounce);

	if (error == -EINVAL)
		return complain(complaint,
			"--bounce %s: that is no size; give a number and K, M or G, such as 64M",
			optarg);
	if (error || *bounce < BOUNCE_LEAST || *bounce > BOUNCE_MOST)
		return complain(complaint, "--bounce %s: out of range; give 1M to 1G", optarg);
	if (*bounce % 65536)
		return complain(complaint,
			"--bounce %s: no multiple of the largest page; give one of 64K", optarg);
	return 0;
}

static int parse_delay(uint64_t *ns, struct complaint *complaint)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	size_t digits = strspn(optarg, "0123456789");
	unsigned long long number;

	for (size_t i = 0; digits && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(optarg + digits, units[i].name))
			continue;
		errno = 0;
		number = strtoull(optarg, NULL, 10);
		if (errno || number > DELAY_MOST / units[i].ns)
			return complain(
				complaint, "--delay %s: out of range; give at most 10s", optarg);
		*ns = number * units[i].ns;
		return 0;
	}
	return complain(complaint,
		"--delay %s: that is no time; give a number and us, ms or s, such as 500us",
		optarg);
}

static int parse_one(struct vduse_options *options, int opt, struct complaint *complaint)
{
	static const char *const ops[] = {"read", "write"};
	unsigned op;

	switch (opt) {
	case OPT_PAGE_SIZE:
		return parse_page(options, complaint);
	case OPT_LOAD:
		return parse_load(options, complaint);
	case OPT_OP:
		if (option_choice(long_options, opt, ops, 2, &op, complaint))
			return -1;
		options->reads = !op;
		return 0;
	case OPT_SIZE:
		return parse_size(&options->size, complaint);
	case OPT_BOUNCE:
		return parse_bounce(&options->bounce, complaint);
	case OPT_DELAY:
		return parse_delay(&options->delay_ns, complaint);
	case OPT_QUEUES:
		return option_count(long_options, opt, 1, QUEUES_MOST, &options->queues, complaint);
	case OPT_FILE:
		options->file = optarg;
		return 0;
	case OPT_NAME:
		options->name = optarg;
		return 0;
	case OPT_VERBOSE:
		options->verbose = true;
		return 0;
	case OPT_RUNS:
		return option_count(long_options, opt, 1, RUNS_MOST, &options->runs, complaint);
	case OPT_SECONDS:
		return option_count(
			long_options, opt, 1, SECONDS_MOST, &options->seconds, complaint);
	case OPT_REQUESTS:
		return option_number(
			long_options, opt, 1, REQUESTS_MOST, &options->requests, complaint);
	case OPT_VERIFY:
		options->verify = true;
		return 0;
	case OPT_JSON:
	case OPT_CSV:
		options->output[opt - OPT_JSON] = optarg ? optarg : "-";
		return 0;
	default:
		options->help = true;
		return 0;
	}
}

/* Each disk has options of its own. */
static int check_disk(const struct vduse_options *options, struct complaint *complaint)
{
	const struct {
		const char *name;
		bool given;
		bool commands;
	} own[] = {
		{"delay", options->delay_ns, false},
		{"queues", options->queues, false},
		{"file", options->file, false},
		{"name", options->name, true},
		{"verbose", options->verbose, true},
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (!own[i].given || own[i].commands == !!options->n_commands)
			continue;
		if (options->n_commands)
			return complain(complaint,
				"--%s is the built-in disk's, and %s makes its own; leave one out",
				own[i].name, options->commands[0][0]);
		return complain(complaint,
			"--%s is for the disk of a command; give one after --, or leave it out",
			own[i].name);
	}
	return 0;
}

static int check(struct vduse_options *options, struct complaint *complaint)
{
	const char *json = options->output[VDUSE_JSON], *csv = options->output[VDUSE_CSV];

	if (options->seconds && options->requests)
		return complain(complaint, "--seconds and --requests both say when a run ends; "
					   "give one");
	if (options->verify && options->reads)
		return complain(complaint, "--verify compares what was written, and --op read "
					   "writes nothing; leave one out");
	if (json && csv && !strcmp(json, "-") && !strcmp(csv, "-"))
		return complain(complaint, "only one output can go to standard output; give the "
					   "other a file, such as --json=run.json");
	if (check_disk(options, complaint))
		return -1;
	if (!options->queues)
		options->queues = QUEUES;
	if (!options->seconds && !options->requests)
		options->seconds = 1;
	if (!options->n_pages) {
		options->pages[options->n_pages++] = 14;
		options->pages[options->n_pages++] = 16;
	}
	if (!options->n_shapes) {
		options->n_shapes = sizeof(usual_shapes) / sizeof(usual_shapes[0]);
		memcpy(options->shapes, usual_shapes, sizeof(usual_shapes));
	}
	return 0;
}

/* Each "--" begins one, and ends the one before it. */
static int take_commands(struct vduse_options *options, char **words, struct complaint *complaint)
{
	for (;;) {
		if (!words[0] || !words[0][0] || !strcmp(words[0], "--"))
			return complain(complaint, "--: a command was expected after it");
		if (options->n_commands == VDUSE_DISKS)
			return complain(complaint,
				"-- %s: one command too many; give one, or two to compare",
				words[0]);
		options->commands[options->n_commands++] = words;
		while (*words && strcmp(*words, "--"))
			words++;
		if (!*words)
			return 0;
		*words++ = NULL;
	}
}

int vduse_options_parse(
	struct vduse_options *options, int argc, char **argv, struct complaint *complaint)
{
	const char *value = NULL;
	int opt;

	*options = (struct vduse_options){
		.size = 512,
		.bounce = DMAMAP_BOUNCE_SIZE,
		.runs = RUNS,
	};
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
		value = optarg;
		if (opt == ':' || opt == '?')
			return option_unknown(argv, opt, "bench vduse", complaint);
		if (parse_one(options, opt, complaint))
			return -1;
		if (options->help)
			return 0;
	}
	/* Unless it is the value of an option. */
	if (!strcmp(argv[optind - 1], "--") && argv[optind - 1] != value) {
		if (take_commands(options, argv + optind, complaint))
			return -1;
	} else if (optind < argc) {
		return complain(complaint,
			"%s: an option was expected; a load is --load, such as --load 16x8, and a "
			"command comes after --",
			argv[optind]);
	}
	return check(options, complaint);
}
