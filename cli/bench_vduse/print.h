/* SPDX-License-Identifier: MIT */
/* The outputs: each prints a whole report and changes nothing. One file of source each. */
#ifndef BENCH_VDUSE_PRINT_H
#define BENCH_VDUSE_PRINT_H

#include "report.h"

void vduse_print_table(FILE *out, const struct vduse_report *report);
void vduse_print_csv(FILE *out, const struct vduse_report *report);
/** vduse_print_json() - Return: 0; -ENOMEM. */
int vduse_print_json(FILE *out, const struct vduse_report *report);

/** vduse_print_words() - A command as a shell would read it; @quote is printed twice. */
void vduse_print_words(FILE *out, char *const words[], char quote);

#endif
