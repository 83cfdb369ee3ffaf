/* SPDX-License-Identifier: MIT */
/*
 * The outputs: each prints a whole report to a file and changes nothing. One
 * file of source each: table.c, verbose.c, json.c, csv.c, tap.c; beside.c is a
 * part of the first two.
 */
#ifndef BENCH_PRINT_H
#define BENCH_PRINT_H

#include <stdio.h>

#include "cli/complaint.h"
#include "result.h"

/**
 * struct style - How text for people looks.
 * @color: escape sequences are welcome
 * @wide: there are at least PRINT_WIDE columns
 */
struct style {
	bool color;
	bool wide;
};

#define PRINT_WIDE 120

/** What a piece of text is, and so its colour. */
enum ink { INK_PLAIN, INK_HEAD, INK_DIM, INK_GOOD, INK_WARN, INK_BAD };

/** ink_on(), ink_off() - The escape sequences, or "". */
const char *ink_on(const struct style *style, enum ink ink);
const char *ink_off(const struct style *style, enum ink ink);

void print_table(FILE *out, const struct report *report, const struct style *style);
void print_verbose(FILE *out, const struct report *report, const struct style *style);
/** print_json() - Return: 0; -ENOMEM. */
int print_json(FILE *out, const struct report *report);
void print_csv(FILE *out, const struct report *report);
void print_tap(FILE *out, const struct report *report);

/** print_note() - What a system's times mean, never NULL. */
const char *print_note(const struct system_info *system);
/** print_runs() - "5 runs", or "2 to 5 runs" where time was short. */
#define PRINT_RUNS 64
char *print_runs(const struct report *report, char text[PRINT_RUNS]);
/** print_summary() - The last lines for people: how many ran, and how it ended. */
void print_summary(FILE *out, const struct report *report, const struct style *style);

/**
 * print_beside() - The kernel's counted work beside soft's, and what was not
 * counted; nothing where the kernel's was not to be counted.
 */
void print_beside(FILE *out, const struct report *report, const struct style *style);

/** struct output - A file that is written to. */
struct output {
	FILE *file;
	const char *name;
};

/** output_open() - @path "-" is standard output. Return: 0; -1 with a complaint. */
int output_open(struct output *output, const char *path, struct complaint *complaint);
/** output_close() - All is written, or -1 with a complaint. */
int output_close(struct output *output, struct complaint *complaint);

#endif
