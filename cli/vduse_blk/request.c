/* SPDX-License-Identifier: MIT */
/*
 * Reading a request. A driver may cut it into parts as it likes, so header and
 * ranges are gathered and the status is the very last byte, wherever it lies.
 */
#include "request.h"

#include <string.h>

static const struct {
	uint32_t type;
	enum verb verb;
} verbs[] = {
	{VIRTIO_BLK_T_IN, VERB_READ},
	{VIRTIO_BLK_T_OUT, VERB_WRITE},
	{VIRTIO_BLK_T_FLUSH, VERB_FLUSH},
	{VIRTIO_BLK_T_DISCARD, VERB_DISCARD},
	{VIRTIO_BLK_T_WRITE_ZEROES, VERB_ZEROES},
	{VIRTIO_BLK_T_GET_ID, VERB_ID},
};

void request_skip(struct iovec **parts, uint32_t *n, uint64_t bytes)
{
	while (*n && bytes >= (*parts)->iov_len) {
		bytes -= (*parts)->iov_len;
		(*parts)++;
		(*n)--;
	}
	if (bytes) {
		(*parts)->iov_base = (unsigned char *)(*parts)->iov_base + bytes;
		(*parts)->iov_len -= bytes;
	}
}

/* Copies once, so that what is checked is what is used. */
static void gather(struct iovec **parts, uint32_t *n, void *to, size_t bytes)
{
	unsigned char *at = to;

	while (bytes) {
		size_t now = (*parts)->iov_len < bytes ? (*parts)->iov_len : bytes;

		memcpy(at, (*parts)->iov_base, now);
		__asm__ volatile("" : : : "memory");
		at += now;
		bytes -= now;
		request_skip(parts, n, now);
	}
}

/* Leaves the parts as they are: find_data() counts from their start. */
static void read_header(const struct dmamap_chain *chain, struct virtio_blk_outhdr *header)
{
	struct iovec *parts = chain->parts, cut;
	size_t got = 0;

	for (; got < sizeof(*header); parts++) {
		cut = *parts;
		if (cut.iov_len > sizeof(*header) - got)
			cut.iov_len = sizeof(*header) - got;
		memcpy((unsigned char *)header + got, cut.iov_base, cut.iov_len);
		got += cut.iov_len;
	}
	__asm__ volatile("" : : : "memory");
}

static bool fits(const struct disk *disk, uint64_t sector, uint64_t sectors)
{
	return sector <= disk->sectors && sectors <= disk->sectors - sector;
}

static uint8_t read_ranges(struct request *request, const struct disk *disk)
{
	struct virtio_blk_discard_write_zeroes range;
	bool zeroes = request->verb == VERB_ZEROES;

	if (!(zeroes ? disk->write_zeroes : disk->discard))
		return VIRTIO_BLK_S_UNSUPP;
	if (!request->bytes || request->bytes % sizeof(range) ||
		request->bytes / sizeof(range) > REQUEST_RANGES)
		return VIRTIO_BLK_S_IOERR;
	request->n_ranges = (uint32_t)(request->bytes / sizeof(range));
	for (uint32_t i = 0; i < request->n_ranges; i++) {
		gather(&request->data, &request->n_data, &range, sizeof(range));
		/* The one flag is not DISCARD's. */
		if (range.flags & ~(zeroes ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0u))
			return VIRTIO_BLK_S_UNSUPP;
		if (range.num_sectors > disk->most_sectors ||
			!fits(disk, range.sector, range.num_sectors))
			return VIRTIO_BLK_S_IOERR;
		request->ranges[i] = (struct range){
			.offset = range.sector * SECTOR,
			.bytes = (uint64_t)range.num_sectors * SECTOR,
			.unmap = !zeroes || range.flags & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
		};
	}
	return VIRTIO_BLK_S_OK;
}

static uint8_t check_transfer(
	struct request *request, const struct disk *disk, const struct virtio_blk_outhdr *header)
{
	if (!request->bytes || request->bytes % SECTOR)
		return VIRTIO_BLK_S_IOERR;
	if (!fits(disk, header->sector, request->bytes / SECTOR))
		return VIRTIO_BLK_S_IOERR;
	request->offset = header->sector * SECTOR;
	return VIRTIO_BLK_S_OK;
}

/* READ and GET_ID are written to, all others are read from. */
static void find_data(struct request *request, struct dmamap_chain *chain, bool to_driver)
{
	struct iovec *parts = chain->parts + (to_driver ? chain->n_read : 0);
	uint32_t n = to_driver ? chain->n_write : chain->n_read;

	request->bytes = (to_driver ? chain->write_bytes : chain->read_bytes) -
			 (to_driver ? 1 : sizeof(struct virtio_blk_outhdr));
	if (to_driver) {
		/* The status is not data. */
		if (!--parts[n - 1].iov_len)
			n--;
	} else {
		request_skip(&parts, &n, sizeof(struct virtio_blk_outhdr));
	}
	request->data = parts;
	request->n_data = n;
}

uint8_t request_read(
	struct request *request, const struct disk *disk, struct dmamap_chain *chain, int walked)
{
	struct virtio_blk_outhdr header;
	bool to_driver;

	request->verb = VERBS;
	request->n_data = request->n_ranges = 0;
	request->bytes = 0;
	request->status = chain->last;
	if (walked || !request->status || chain->read_bytes < sizeof(header))
		return VIRTIO_BLK_S_IOERR;
	read_header(chain, &header);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (verbs[i].type == header.type)
			request->verb = verbs[i].verb;
	if (request->verb == VERBS)
		return VIRTIO_BLK_S_UNSUPP;
	to_driver = request->verb == VERB_READ || request->verb == VERB_ID;
	find_data(request, chain, to_driver);
	if (disk->read_only && request->verb != VERB_READ && request->verb != VERB_ID &&
		request->verb != VERB_FLUSH)
		return VIRTIO_BLK_S_IOERR;
	switch (request->verb) {
	case VERB_READ:
	case VERB_WRITE:
		return check_transfer(request, disk, &header);
	case VERB_DISCARD:
	case VERB_ZEROES:
		return read_ranges(request, disk);
	case VERB_FLUSH:
	case VERB_ID:
	case VERBS:
		break;
	}
	return VIRTIO_BLK_S_OK;
}

uint64_t request_answer_id(const struct request *request, const struct disk *disk)
{
	uint64_t room = request->bytes < sizeof(disk->id) ? request->bytes : sizeof(disk->id);
	const char *from = disk->id;

	for (uint32_t i = 0; i < request->n_data && from < disk->id + room; i++) {
		size_t left = (size_t)(disk->id + room - from);
		size_t now = request->data[i].iov_len < left ? request->data[i].iov_len : left;

		memcpy(request->data[i].iov_base, from, now);
		from += now;
	}
	return room;
}
