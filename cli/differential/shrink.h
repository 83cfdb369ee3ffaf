/* SPDX-License-Identifier: MIT */
/*
 * Shrinking: from a script that shows something to a small one that still
 * does. Lines go first, in ever smaller pieces; then words and keys; then
 * values become plainer ones. Whatever does not show it any more, or does not
 * even parse, is put back.
 */
#ifndef DIFFERENTIAL_SHRINK_H
#define DIFFERENTIAL_SHRINK_H

#include "cli/differential/script.h"

/**
 * struct shrink - What to shrink, and how to see whether it is still so.
 * @script: becomes smaller; it shows what it is about
 * @shows: whether another one shows it too
 * @budget: how often @shows may be asked
 */
struct shrink {
	struct script script;
	bool (*shows)(void *context, const struct script *script);
	void *context;
	unsigned budget;
	struct script trial; /* own use */
};

/** shrink() - As far as the budget goes. */
void shrink(struct shrink *shrink);

#endif
