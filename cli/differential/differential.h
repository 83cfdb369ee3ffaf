/* SPDX-License-Identifier: MIT */
/* Random calls on two systems: do they answer alike? */
#ifndef DIFFERENTIAL_DIFFERENTIAL_H
#define DIFFERENTIAL_DIFFERENTIAL_H

#include "cli/differential/verdict.h"
#include "cli/differential/world.h"

/**
 * struct differential - What to do, and what came of it.
 * @pair: the two systems, fresh
 * @host: what the sequences may use
 * @calls: how many to make
 * @save: "PREFIX": a mismatch's case is written to PREFIX-N.case; NULL: not
 * @out: where each mismatch's case and the sum are printed
 * @progress: a line that tells of it on a terminal, or NULL
 * @made, @mismatches, @kinds, @seconds: the outcome; kinds are mismatches of
 *	different signs, each of which was shrunk
 */
struct differential {
	struct pair pair;
	struct world_host host;
	uint64_t seed;
	uint64_t calls;
	const char *save;
	FILE *out;
	FILE *progress;
	uint64_t made;
	uint64_t mismatches;
	unsigned kinds;
	double seconds;
};

/**
 * differential_run() - Make the calls, shrink what differs.
 * Return: 0, whatever came of it; -errno: it could not be done.
 */
int differential_run(struct differential *differential);

#endif
