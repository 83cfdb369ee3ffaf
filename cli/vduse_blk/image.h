/* SPDX-License-Identifier: MIT */
/*
 * The image: a file or block device that is the disk, opened so that nobody
 * else writes to it. The lock belongs to the open file, and requests under way
 * hold that as well: who gets the lock after a process was killed knows that
 * nothing of it is still being written.
 */
#ifndef VDUSE_BLK_IMAGE_H
#define VDUSE_BLK_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/complaint.h"

enum image_direct { DIRECT_AUTO, DIRECT_ON, DIRECT_OFF };

/**
 * struct image - An open image.
 * @bytes: its size
 * @block: what a disk made of it can have as its block: transfers are aligned so
 * @physical: what it is best written in
 * @direct: past the page cache; then @memory_align is what memory must be
 *	aligned to, addresses and lengths, a power of two
 * @reads_wait, @writes_wait: the kernel hands these to a thread that waits for
 *	them, so that a small one is done faster at once
 * @discards, @zeroes: holes can be punched; ranges can be zeroed
 * @made: it was not there before
 */
struct image {
	int fd;
	uint64_t bytes;
	uint64_t device;
	uint64_t inode;
	uint32_t block;
	uint32_t physical;
	uint32_t memory_align;
	bool direct;
	bool read_only;
	bool reads_wait;
	bool writes_wait;
	bool discards;
	bool zeroes;
	bool made;
};

/**
 * image_open() - Open @path, or make it where @size is given and it is not there
 * or empty.
 * @size: 0: as it is
 * @patience_ms: how long to wait for the lock
 *
 * Return: 0; -1 with a complaint.
 */
int image_open(struct image *image, const char *path, uint64_t size, bool read_only,
	enum image_direct direct, unsigned patience_ms, struct complaint *complaint);
void image_close(struct image *image);

#endif
