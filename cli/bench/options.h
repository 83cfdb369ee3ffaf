/* SPDX-License-Identifier: MIT */
/* What the user asked for: the command line of dmamap bench, read and checked. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/complaint.h"

enum options_action { ACTION_BENCH, ACTION_LIST, ACTION_HELP };
enum options_systems { SYSTEMS_FOUND, SYSTEMS_SOFT, SYSTEMS_LINUX, SYSTEMS_ALL };
enum options_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/** The machine-readable outputs. */
enum options_format { FORMAT_JSON, FORMAT_CSV, FORMAT_TAP, FORMATS };

/**
 * struct options - As given, with the defaults filled in.
 * @globs, @n_globs: -t; point into argv
 * @machine: --machine, as given; NULL: the default
 * @device: PCI address, or NULL
 * @bar: which BAR; -1: the largest
 * @size: 0: each kind of memory has its own
 * @runs: how often each variant runs at most
 * @runs_given: exactly so often, however long it takes
 * @strides: bitmap of enum dmamap_pfnmap_stride
 * @count: Linux: a run of its own counts the kernel's work
 * @output: where each format goes: NULL: not asked for, "-": standard output
 * @compare: file to compare with, or NULL
 * @threshold: by how many percent a phase may be slower
 */
struct options {
	enum options_action action;
	const char **globs;
	size_t n_globs;
	enum options_systems systems;
	const char *machine;
	const char *device;
	int bar;
	uint64_t size;
	unsigned runs;
	bool runs_given;
	uint64_t seed;
	bool sparse;
	unsigned strides;
	bool count;
	bool verbose;
	const char *output[FORMATS];
	const char *compare;
	double threshold;
	enum options_color color;
};

/**
 * options_parse() - Read argv.
 * @page_size: the running machine's, for --size
 *
 * Return: 0, and options_free() is due; -1 with a complaint.
 */
int options_parse(struct options *options, int argc, char **argv, uint64_t page_size,
	struct complaint *complaint);
void options_free(struct options *options);

void options_help(FILE *out);

#endif
