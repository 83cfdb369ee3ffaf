/* SPDX-License-Identifier: MIT */
/*
 * What comes of a script that is run on two systems at once. A verdict lies in
 * memory that the process which runs the script shares with the one that waits
 * for it: it is there even if the script was the end of the former.
 */
#ifndef DIFFERENTIAL_VERDICT_H
#define DIFFERENTIAL_VERDICT_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/differential/script.h"
#include "dmamap/soft.h"

enum verdict_kind {
	VERDICT_SAME,
	VERDICT_DIFFERENT,
	VERDICT_CRASHED, /**< by the signal @number */
	VERDICT_HUNG,
	VERDICT_INVALID, /**< the script does not parse, or cannot be run here */
};

/**
 * struct verdict
 * @calls: made so far; who waits may look at it meanwhile
 * @line: of the script, the one that is run now or was the last
 * @no_dma: the device that does DMA on command does it no more
 * @sign: what differed, without its values: the same fault has the same sign
 * @what: the same in full, or why the script is invalid
 */
struct verdict {
	_Atomic uint64_t calls;
	_Atomic uint32_t line;
	enum verdict_kind kind;
	int number;
	bool no_dma;
	char sign[128];
	char what[1024];
};

/**
 * struct pair - The two systems.
 * @reference: the one that is right: Linux, or a soft system in its place
 * @soft: the soft one
 * @machine: the soft one's
 */
struct pair {
	struct dmamap_system *reference;
	struct dmamap_system *soft;
	const struct dmamap_machine *machine;
};

/**
 * pair_run() - Run a script on both until something differs. Both must be as they
 * were made, and are not any more: to be called in a process of its own.
 * @verdict: @calls is added to
 * @answers: NULL, or where the lines are written with the reference's answers
 */
void pair_run(const struct pair *pair, const struct script *script, struct verdict *verdict,
	FILE *answers);

#endif
