/* SPDX-License-Identifier: MIT */
/* What the disk has done: a line that renews itself, and the sum at the end. */
#ifndef VDUSE_BLK_STATUS_H
#define VDUSE_BLK_STATUS_H

#include <stdint.h>
#include <stdio.h>

#include "device.h"

/** struct status - Sums over all queues at one time. */
struct status {
	uint64_t time;
	uint64_t requests[VERBS];
	uint64_t bytes[VERBS];
	uint64_t refused, failed, batches, interrupts, sleeps, bounced, in_flight;
	bool umem;
};

void status_read(struct status *status, const struct device *device);
/** status_line() - What happened from @old to @now, a second or so later. */
void status_line(FILE *out, const struct status *old, const struct status *now);
/** status_clear() - The line is gone, for other text. */
void status_clear(FILE *out);
/** status_sum() - All of it, in a few words. */
void status_sum(FILE *out, const struct status *status);

#endif
