/* SPDX-License-Identifier: MIT */
/* The command line of dmamap vduse-blk, read and checked. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cli/option.h"
#include "cli/units.h"

#define QUEUES_MOST	64
#define QUEUES_USUAL	8
#define QUEUE_SIZE	256
#define QUEUE_SIZE_MOST 1024
#define POLL_US		32
#define POLL_US_MOST	1000000
#define DELAY_US_MOST	10000000

enum {
	OPT_NAME = 256,
	OPT_FILE,
	OPT_SIZE,
	OPT_READ_ONLY,
	OPT_DIRECT,
	OPT_QUEUES,
	OPT_QUEUE_SIZE,
	OPT_PACKED,
	OPT_NO_UMEM,
	OPT_SERIAL,
	OPT_LOG,
	OPT_ATTACH,
	OPT_POLL,
	OPT_DELAY
};

static const struct option long_options[] = {
	{"name", required_argument, NULL, OPT_NAME},
	{"file", required_argument, NULL, OPT_FILE},
	{"size", required_argument, NULL, OPT_SIZE},
	{"read-only", no_argument, NULL, OPT_READ_ONLY},
	{"direct", required_argument, NULL, OPT_DIRECT},
	{"queues", required_argument, NULL, OPT_QUEUES},
	{"queue-size", required_argument, NULL, OPT_QUEUE_SIZE},
	{"packed", no_argument, NULL, OPT_PACKED},
	{"no-umem", no_argument, NULL, OPT_NO_UMEM},
	{"serial", required_argument, NULL, OPT_SERIAL},
	{"log", required_argument, NULL, OPT_LOG},
	{"attach", no_argument, NULL, OPT_ATTACH},
	{"poll", required_argument, NULL, OPT_POLL},
	{"delay", required_argument, NULL, OPT_DELAY},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

void blk_options_help(FILE *out)
{
	fputs("dmamap vduse-blk: serve a file as a virtio disk, over VDUSE\n"
	      "\n"
	      "usage: dmamap vduse-blk --name NAME --file IMAGE [OPTION...]\n"
	      "\n"
	      "      --name NAME       the device's name, /dev/vduse/NAME\n"
	      "      --file IMAGE      a raw image, or a block device\n"
	      "      --size SIZE       make the image, with all its blocks: K, M, G, T\n"
	      "      --read-only       writes are refused\n"
	      "      --attach          put it on the vDPA bus, as vdpa dev add does, and take it\n"
	      "                        off at the end\n"
	      "      --serial TEXT     what the disk says its id is, 20 characters (default: "
	      "NAME)\n"
	      "\n"
	      "How it works\n"
	      "      --direct WHEN     past the page cache: auto (default: where the file allows\n"
	      "                        it), on or off\n"
	      "      --queues N        one thread each (default: one a CPU, at most 8)\n"
	      "      --queue-size N    requests in flight a queue, a power of two (default: 256)\n"
	      "      --packed          offer packed rings as well\n"
	      "      --no-umem         leave the bounce memory to the kernel\n"
	      "      --poll US         look that long for work before sleeping, where it pays;\n"
	      "                        0: never (default: 32)\n"
	      "      --delay US        give each request back that much later, as a slow disk "
	      "would\n"
	      "      --log FILE        what is in flight, for the next process if this one is\n"
	      "                        killed (default: dmamap-vduse-NAME.log in /run,\n"
	      "                        XDG_RUNTIME_DIR or /tmp)\n"
	      "\n"
	      "It ends on SIGINT or SIGTERM, when all that was begun is done. After a kill, the\n"
	      "same command goes on where the last one was.\n"
	      "\n"
	      "Exit status: 0 ended by a signal; 1 the kernel gave the device up; 2 bad input.\n",
		out);
}

static int parse_size(uint64_t *size, struct complaint *complaint)
{
	int error = units_parse_size(optarg, size);

	if (error == -EINVAL)
		return complain(complaint,
			"--size %s: that is no size; give a number and K, M, G or T, such as 1G",
			optarg);
	if (error || *size > INT64_MAX)
		return complain(complaint, "--size %s: larger than any file; give less", optarg);
	if (!*size || *size % 512)
		return complain(complaint,
			"--size %s: a disk is made of sectors; give a multiple of 512", optarg);
	return 0;
}

static int parse_direct(enum image_direct *direct, struct complaint *complaint)
{
	static const char *const choices[] = {"auto", "on", "off"};
	unsigned choice;

	if (option_choice(long_options, OPT_DIRECT, choices, 3, &choice, complaint))
		return -1;
	*direct = (enum image_direct)choice;
	return 0;
}

static int parse_queue_size(unsigned *size, struct complaint *complaint)
{
	if (option_count(long_options, OPT_QUEUE_SIZE, 4, QUEUE_SIZE_MOST, size, complaint))
		return -1;
	if (*size & (*size - 1))
		return complain(complaint, "--queue-size %s: no power of two; give one such as 256",
			optarg);
	return 0;
}

static int parse_one(struct blk_options *options, int opt, struct complaint *complaint)
{
	switch (opt) {
	case OPT_NAME:
		options->name = optarg;
		return 0;
	case OPT_FILE:
		options->file = optarg;
		return 0;
	case OPT_SIZE:
		return parse_size(&options->size, complaint);
	case OPT_READ_ONLY:
		options->read_only = true;
		return 0;
	case OPT_DIRECT:
		return parse_direct(&options->direct, complaint);
	case OPT_QUEUES:
		return option_count(long_options, opt, 1, QUEUES_MOST, &options->queues, complaint);
	case OPT_QUEUE_SIZE:
		return parse_queue_size(&options->queue_size, complaint);
	case OPT_PACKED:
		options->packed = true;
		return 0;
	case OPT_NO_UMEM:
		options->no_umem = true;
		return 0;
	case OPT_SERIAL:
		options->serial = optarg;
		return 0;
	case OPT_LOG:
		options->log = optarg;
		return 0;
	case OPT_ATTACH:
		options->attach = true;
		return 0;
	case OPT_POLL:
		return option_count(
			long_options, opt, 0, POLL_US_MOST, &options->poll_us, complaint);
	case OPT_DELAY:
		return option_count(
			long_options, opt, 0, DELAY_US_MOST, &options->delay_us, complaint);
	default:
		options->help = true;
		return 0;
	}
}

static int check(const struct blk_options *options, struct complaint *complaint)
{
	if (!options->name)
		return complain(
			complaint, "a device needs a name; give --name NAME, such as --name disk0");
	if (!options->file)
		return complain(complaint,
			"a disk needs an image; give --file IMAGE, with --size SIZE to make it");
	if (options->size && options->read_only)
		return complain(complaint, "--size makes an image, and --read-only is for one that "
					   "is there; give one");
	if (options->serial && strlen(options->serial) > 20)
		return complain(complaint, "--serial %s: too long; give at most 20 characters",
			options->serial);
	return 0;
}

int blk_options_parse(
	struct blk_options *options, int argc, char **argv, struct complaint *complaint)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int opt;

	*options = (struct blk_options){
		.queues = cpus < 1		? 1
			  : cpus > QUEUES_USUAL ? QUEUES_USUAL
						: (unsigned)cpus,
		.queue_size = QUEUE_SIZE,
		.poll_us = POLL_US,
	};
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == ':' || opt == '?')
			return option_unknown(argv, opt, "vduse-blk", complaint);
		if (parse_one(options, opt, complaint))
			return -1;
		if (options->help)
			return 0;
	}
	if (optind < argc)
		return complain(complaint, "%s: an option was expected; an image is --file %s",
			argv[optind], argv[optind]);
	return check(options, complaint);
}
