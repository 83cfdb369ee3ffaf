/* SPDX-License-Identifier: MIT */
/*
 * The driver's side of a virtqueue, as simple as can be: rings in memory of
 * this process, one request at a time made available and taken back. It is
 * honest; a test that lies writes to the rings by itself.
 */
#ifndef DMAMAP_TESTS_RING_DRIVER_H
#define DMAMAP_TESTS_RING_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/virtio.h"
#include "dmamap/virtqueue.h"

#define RING_MOST 64u

/* Where the driver's memory lies for the device, in two regions that touch. */
#define RING_IOVA   0x100000ull /* rings: READ and WRITE */
#define RING_BYTES  0x10000ull
#define DATA_IOVA   (RING_IOVA + RING_BYTES)
#define DATA_BYTES  0x40000ull
#define CONST_IOVA  (DATA_IOVA + DATA_BYTES) /* the device may only read it */
#define CONST_BYTES 0x1000ull

/* A part of a request. */
struct ring_part {
	uint64_t iova;
	uint32_t length;
	bool writable;
};

/*
 * @dma: first, so that it is found from it
 * @memory: RING_BYTES + DATA_BYTES + CONST_BYTES
 */
struct ring_driver {
	struct dmamap_dma dma;
	unsigned char *memory;
	uint32_t size;
	bool packed;
	bool event_index;
	uint16_t available; /* packed: place */
	uint16_t used;
	uint16_t told; /* what the device was asked about */
	uint16_t free_ids[RING_MOST];
	uint32_t n_free_ids;
	uint32_t n_free;
	uint32_t counts[RING_MOST]; /* entries of each id */
	uint16_t parts_of[RING_MOST][RING_MOST];
	uint16_t free_descs[RING_MOST];
};

/* @memory is zeroed, and the driver's from now on. */
void ring_driver_start(struct ring_driver *driver, unsigned char *memory, uint32_t size,
	bool packed, bool event_index);
/* The configuration of a queue for it. */
void ring_driver_config(struct ring_driver *driver, struct dmamap_virtqueue_config *config);

/* Make a request available: its id, or -1: no room. @indirect: by a table at that IOVA. */
int ring_driver_add(
	struct ring_driver *driver, const struct ring_part *parts, uint32_t n, uint64_t indirect);
/* The next used request: its id, or -1; -2: the device broke the rules. */
int ring_driver_get(struct ring_driver *driver, uint32_t *written);

/* Ask for an interrupt at the next used request, or for none. */
void ring_driver_want_interrupt(struct ring_driver *driver, bool wanted);
/* Whether the device asked for a kick, for what was made available since this was asked. */
bool ring_driver_must_kick(struct ring_driver *driver);

void *ring_driver_at(const struct ring_driver *driver, uint64_t iova);
struct vring_desc *ring_driver_desc(const struct ring_driver *driver);
struct vring_avail *ring_driver_avail(const struct ring_driver *driver);
struct vring_used *ring_driver_used(const struct ring_driver *driver);
struct vring_packed_desc *ring_driver_packed(const struct ring_driver *driver);

#endif
