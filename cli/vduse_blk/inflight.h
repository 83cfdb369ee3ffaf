/* SPDX-License-Identifier: MIT */
/*
 * The file in which the queues' logs live, so that they outlive the process. It
 * says which disk and which boot it is of: the log of another one is no log.
 */
#ifndef VDUSE_BLK_INFLIGHT_H
#define VDUSE_BLK_INFLIGHT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/complaint.h"
#include "image.h"

/**
 * struct inflight_config - Whose log it is, and what becomes of an older one.
 * @path: NULL: the usual one of @name
 * @keep: take what it holds, if it fits; else start anew
 * @must: what it holds must fit, for a driver waits for that
 */
struct inflight_config {
	const char *path;
	const char *name;
	const struct image *image;
	unsigned n_queues;
	uint32_t size;
	bool packed;
	bool keep;
	bool must;
};

/**
 * struct inflight - The open file.
 * @kept: it was there, and is this disk's
 * @empty: there was nothing in it
 */
struct inflight {
	int fd;
	char path[PATH_MAX];
	unsigned char *memory;
	size_t bytes;
	size_t stride;
	bool kept;
	bool empty;
};

/**
 * inflight_open() - Open the file, or make it. A file that is no log, or that
 * of a disk of another name that did not end, is left as it is.
 *
 * Return: 0; -1 with a complaint.
 */
int inflight_open(
	struct inflight *log, const struct inflight_config *config, struct complaint *complaint);
/** inflight_queue() - The log of one queue. */
void *inflight_queue(const struct inflight *log, unsigned index);
/** inflight_close() - @remove: nothing is in flight, and nobody will ask. */
void inflight_close(struct inflight *log, bool remove);

#endif
