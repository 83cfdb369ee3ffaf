/* SPDX-License-Identifier: MIT */
/* The reasons' data; what they say is in reason.h. */
#include "machine/reason.h"

#define DEFINE(id, sentence)                                                                       \
	const struct dmamap_reason_kind machine_reason_##id = {.name = #id, .text = sentence};
MACHINE_REASONS(DEFINE)
