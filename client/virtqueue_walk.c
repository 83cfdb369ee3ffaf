/* SPDX-License-Identifier: MIT */
/*
 * Putting a chain together out of descriptors that the driver wrote. A
 * descriptor that is not mapped refuses the chain, but does not hide where it
 * ends: the walk goes on, so that a status can be written for the driver.
 */
#include <errno.h>

#include "client/virtqueue.h"

#define KIND(id, sentence)                                                                         \
	static const struct dmamap_reason_kind id = {.name = "virtqueue_" #id, .text = sentence}
#define SHARED(id, sentence)                                                                       \
	const struct dmamap_reason_kind virtqueue_reason_##id = {                                  \
		.name = "virtqueue_" #id, .text = sentence}

SHARED(jump, "the available index went from {0d} to {1d}, further than the {2d} entries");
SHARED(head, "{0d} is no place in a ring of {1d} entries");
SHARED(twice, "descriptor {0d} was made available while it was in flight");
SHARED(next, "a descriptor's next one is {0d}, outside its table of {1d}");
SHARED(loop, "the chain that starts at descriptor {0d} does not end within {1d} descriptors");
SHARED(long, "the chain at place {0d} is longer than the {1d} of {2d} entries that are free");
KIND(parts, "a request has more than {0d} parts");
KIND(empty, "a descriptor for iova {0x} has no bytes");
KIND(order, "a descriptor to be read, iova {0x}, follows one to be written");
KIND(fault_read, "iova {0x}, {1d} bytes, is not mapped for the device to read");
KIND(fault_write, "iova {0x}, {1d} bytes, is not mapped for the device to write");
KIND(indirect, "an indirect table of {1d} bytes at iova {0x}: it was not negotiated, is within "
	       "another, or has a next descriptor");
KIND(table_size, "an indirect table of {1d} bytes at iova {0x}: that is no number of descriptors");

/* The error that refuses the chain, though the walk goes on: the first one stays. */
static void keep(struct walk *walk, int error)
{
	if (!walk->error)
		walk->error = error;
}

static int add_parts(struct walk *walk, uint64_t iova, uint32_t length, bool writable)
{
	struct dmamap_chain *chain = walk->chain;
	unsigned prot = writable ? DMAMAP_WRITE : DMAMAP_READ;

	while (length) {
		uint32_t n = chain->n_read + chain->n_write;
		uint64_t run;
		unsigned char *address = virtqueue_address(walk->queue, iova, prot, &run);

		if (!address)
			return -EFAULT;
		if (n == chain->max)
			return -E2BIG;
		if (run > length)
			run = length;
		chain->parts[n] = (struct iovec){address, run};
		if (writable) {
			chain->n_write++;
			chain->write_bytes += run;
			chain->last = address + run - 1;
		} else {
			chain->n_read++;
			chain->read_bytes += run;
		}
		iova += run;
		length -= (uint32_t)run;
		/* Past the last IOVA there is nothing. */
		if (length && !iova)
			return -EFAULT;
	}
	return 0;
}

int walk_add(struct walk *walk, uint64_t iova, uint32_t length, bool writable)
{
	struct dmamap_chain *chain = walk->chain;
	int error;

	if (walk->steps++ == chain->max)
		return DMAMAP_REFUSE(walk->why, &parts, E2BIG, NULL, chain->max);
	if (!length) {
		if (!walk->error)
			keep(walk, DMAMAP_REFUSE(walk->why, &empty, EPROTO, NULL, iova));
		return 0;
	}
	if (!writable && chain->n_write) {
		if (!walk->error)
			keep(walk, DMAMAP_REFUSE(walk->why, &order, EPROTO, NULL, iova));
		chain->last = NULL;
		return 0;
	}
	error = add_parts(walk, iova, length, writable);
	if (error == -E2BIG)
		return DMAMAP_REFUSE(walk->why, &parts, E2BIG, NULL, chain->max);
	if (error) {
		if (!walk->error)
			keep(walk, DMAMAP_REFUSE(walk->why, writable ? &fault_write : &fault_read,
					   EFAULT, NULL, iova, length));
		chain->last = NULL;
	}
	return 0;
}

const unsigned char *walk_table(struct walk *walk, uint64_t iova, uint32_t length, bool allowed)
{
	uint32_t n = length / (uint32_t)sizeof(struct vring_desc);
	const unsigned char *table;
	uint64_t run;

	if (!allowed) {
		walk->error = DMAMAP_REFUSE(walk->why, &indirect, EPROTO, NULL, iova, length);
		return NULL;
	}
	if (!n || length % sizeof(struct vring_desc)) {
		walk->error = DMAMAP_REFUSE(walk->why, &table_size, EPROTO, NULL, iova, length);
		return NULL;
	}
	table = virtqueue_address(walk->queue, iova, DMAMAP_READ, &run);
	if (!table || run < length) {
		walk->error = DMAMAP_REFUSE(walk->why, &fault_read, EFAULT, NULL, iova, length);
		return NULL;
	}
	return table;
}
