/* SPDX-License-Identifier: MIT */
/*
 * The sentences are in the header's table; here is what they become, and each
 * thread's own last reason. It is per thread and not per system: the last
 * failed call of a thread is the one that it may ask about.
 */
#include "soft/reason.h"

#define SOFT_DEFINE_REASON(id, sentence)                                                           \
	const struct dmamap_reason_kind soft_reason_##id = {.name = #id, .text = sentence};
SOFT_REASONS(SOFT_DEFINE_REASON)

static _Thread_local struct dmamap_reason last;

struct dmamap_reason *soft_why(void)
{
	return &last;
}
