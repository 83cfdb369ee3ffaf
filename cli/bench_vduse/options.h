/* SPDX-License-Identifier: MIT */
/* What the user asked for: the command line of dmamap bench vduse, read and checked. */
#ifndef BENCH_VDUSE_OPTIONS_H
#define BENCH_VDUSE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/complaint.h"

enum vduse_format { VDUSE_JSON, VDUSE_CSV, VDUSE_FORMATS };

/** struct vduse_shape - A load: so many threads, each with so many requests in flight. */
struct vduse_shape {
	unsigned jobs;
	unsigned depth;
};

#define VDUSE_PAGES  3	/**< 4K, 16K, 64K */
#define VDUSE_SHAPES 16 /**< that can be given */
#define VDUSE_DISKS  2	/**< a command each */

/**
 * struct vduse_options - As given, with the defaults filled in.
 * @pages, @n_pages: log2 of the page sizes, in the order given
 * @file: the image, or NULL: it is in memory
 * @commands, @n_commands: program and arguments that make a disk, each NULL-terminated;
 *	0: the built-in disk, which @delay_ns, @queues and @file are of; 2: they are
 *	compared
 * @name: of each command's device; NULL: its first one
 * @verbose: show which of the commands' calls are refused
 * @requests: of each job; 0: @seconds decide
 * @output: where each format goes: NULL: not asked for, "-": standard output
 */
struct vduse_options {
	bool help;
	unsigned pages[VDUSE_PAGES];
	unsigned n_pages;
	struct vduse_shape shapes[VDUSE_SHAPES];
	unsigned n_shapes;
	bool reads;
	uint32_t size;
	uint64_t bounce;
	uint64_t delay_ns;
	unsigned queues;
	const char *file;
	char **commands[VDUSE_DISKS];
	unsigned n_commands;
	const char *name;
	bool verbose;
	unsigned runs;
	unsigned seconds;
	uint64_t requests;
	bool verify;
	const char *output[VDUSE_FORMATS];
};

/** vduse_options_parse() - Return: 0; -1 with a complaint. */
int vduse_options_parse(
	struct vduse_options *options, int argc, char **argv, struct complaint *complaint);
void vduse_options_help(FILE *out);

#endif
