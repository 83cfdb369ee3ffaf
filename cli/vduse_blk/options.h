/* SPDX-License-Identifier: MIT */
/* The command line of dmamap vduse-blk, read and checked. */
#ifndef VDUSE_BLK_OPTIONS_H
#define VDUSE_BLK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/complaint.h"
#include "image.h"

/**
 * struct blk_options - As given, with the defaults filled in.
 * @size: make the image with that size; 0: it is there
 * @poll_us, @delay_us: as in struct queue_settings
 */
struct blk_options {
	const char *name;
	const char *file;
	const char *log;
	const char *serial;
	uint64_t size;
	unsigned queues;
	unsigned queue_size;
	unsigned poll_us;
	unsigned delay_us;
	enum image_direct direct;
	bool read_only;
	bool packed;
	bool no_umem;
	bool attach;
	bool help;
};

/** blk_options_parse() - Return: 0; -1 with a complaint. */
int blk_options_parse(
	struct blk_options *options, int argc, char **argv, struct complaint *complaint);
void blk_options_help(FILE *out);

#endif
