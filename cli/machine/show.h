/* SPDX-License-Identifier: MIT */
/* What dmamap machine has to show, and the ways to show it. */
#ifndef CLI_MACHINE_SHOW_H
#define CLI_MACHINE_SHOW_H

#include <stdio.h>

#include "dmamap/machine.h"

/**
 * struct shown - A machine and where it comes from.
 * @system: "soft" or "linux"
 * @assumed: bits of dmamap_machine_assumption()
 */
struct shown {
	const char *system;
	struct dmamap_machine machine;
	uint32_t assumed;
};

void show_table(FILE *out, const struct shown *shown);
/** show_json() - Return: 0; -ENOMEM. */
int show_json(FILE *out, const struct shown *shown);

#endif
