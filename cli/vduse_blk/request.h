/* SPDX-License-Identifier: MIT */
/*
 * One virtio-blk request as the driver wrote it, read and checked: the header,
 * what it is about, where its data is. Whatever the driver wrote, a request
 * that passes lies within the disk and its data within the mapping; one that
 * does not has the status to answer it with.
 */
#ifndef VDUSE_BLK_REQUEST_H
#define VDUSE_BLK_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/virtio.h"
#include "dmamap/virtqueue.h"

#define SECTOR	       512u
#define REQUEST_RANGES 16u /* of a DISCARD or WRITE_ZEROES */

/**
 * struct disk - What a request must fit.
 * @sectors: of 512 bytes
 * @most_sectors: of one range of a DISCARD or WRITE_ZEROES
 * @discard, @write_zeroes: are offered
 * @id: for GET_ID, padded with zeroes
 */
struct disk {
	uint64_t sectors;
	uint32_t most_sectors;
	bool read_only;
	bool discard;
	bool write_zeroes;
	char id[VIRTIO_BLK_ID_BYTES];
};

enum verb { VERB_READ, VERB_WRITE, VERB_FLUSH, VERB_DISCARD, VERB_ZEROES, VERB_ID, VERBS };

/** struct range - Bytes of the disk. @unmap: they may become a hole. */
struct range {
	uint64_t offset;
	uint64_t bytes;
	bool unmap;
};

/**
 * struct request - A request to be carried out.
 * @data, @n_data, @bytes: its data, within the chain's parts
 * @offset: READ, WRITE: byte of the disk
 * @ranges, @n_ranges: DISCARD, WRITE_ZEROES
 * @status: where its status goes; NULL: there is no place for it
 */
struct request {
	enum verb verb;
	uint32_t n_data;
	uint32_t n_ranges;
	struct iovec *data;
	uint64_t bytes;
	uint64_t offset;
	unsigned char *status;
	struct range ranges[REQUEST_RANGES];
};

/**
 * request_read() - Read and check one.
 * @chain: its memory; parts are cut to the data
 * @walked: what dmamap_virtqueue_walk() gave
 *
 * Return: VIRTIO_BLK_S_OK: carry it out; else the status that answers it.
 */
uint8_t request_read(
	struct request *request, const struct disk *disk, struct dmamap_chain *chain, int walked);

/** request_answer_id() - Fill in GET_ID's data. Return: how many bytes. */
uint64_t request_answer_id(const struct request *request, const struct disk *disk);

/** request_skip() - Take the first @bytes off a list of parts. */
void request_skip(struct iovec **parts, uint32_t *n, uint64_t bytes);

#endif
