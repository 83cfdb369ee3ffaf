/* SPDX-License-Identifier: MIT */
/* A random sequence of calls: what is set up, then calls that fit it, mostly. */
#ifndef DIFFERENTIAL_GENERATE_H
#define DIFFERENTIAL_GENERATE_H

#include "cli/differential/world.h"

/**
 * generate() - Sequence number @number of a seed; its lines are in world->script.
 * @limit: at most about so many lines
 */
void generate(struct world *world, const struct world_host *host, uint64_t seed, uint64_t number,
	uint64_t limit);

#endif
