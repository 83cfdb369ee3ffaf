/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer's target for what a driver shares with the disk: rings, tables and
 * requests. The input is the driver's memory, and what it does between the
 * device's steps: whatever that is, the device reads and writes nothing
 * outside, gives everything back that it took, and carries out only requests
 * that lie on the disk.
 *
 * byte 0: bit 0 packed, bit 1 event index, bit 2 indirect, bit 3 read-only; bit 4 the
 * device is killed in each step, and the next one goes on from its log; bit 5 the log
 * is written over as well
 * byte 1: log2 of the size, or the size where packed, from its low 4 bits
 * byte 2: how many steps
 * from 3: the driver's memory; what follows it is written over it, two bytes of
 * place and two of value a step
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/vduse_blk/request.h"
#include "dmamap/virtqueue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small, so that a byte of the input often matters; the areas lie at fixed places. */
#define MEMORY_IOVA  0x10000u
#define MEMORY_BYTES 2048u
#define DRIVER_AREA  512u
#define DEVICE_AREA  768u
#define SIZE_MOST    16u
#define PARTS	     6u
#define SECTORS	     64u

/* @memory: of exactly the right size, so that AddressSanitizer sees a step outside. */
struct world {
	struct dmamap_dma dma;
	unsigned char *memory;
};

/* Two regions that touch, of which the second cannot be written. */
static int find(struct dmamap_dma *dma, uint64_t iova, struct dmamap_dma_region *region)
{
	struct world *world = (struct world *)dma;
	uint64_t half = MEMORY_BYTES - 256;

	if (iova < MEMORY_IOVA || iova - MEMORY_IOVA >= MEMORY_BYTES)
		return -EFAULT;
	if (iova - MEMORY_IOVA < half)
		*region = (struct dmamap_dma_region){MEMORY_IOVA, MEMORY_IOVA + half - 1,
			world->memory, DMAMAP_READ | DMAMAP_WRITE};
	else
		*region = (struct dmamap_dma_region){MEMORY_IOVA + half,
			MEMORY_IOVA + MEMORY_BYTES - 1, world->memory + half, DMAMAP_READ};
	return 0;
}

static void check(bool good)
{
	if (!good)
		abort();
}

/* What passed lies where it may; it is touched, so that the sanitizer looks as well. */
static void carry_out(const struct request *request, const struct disk *disk)
{
	unsigned char sink = 0;

	switch (request->verb) {
	case VERB_READ:
	case VERB_WRITE:
		check(request->bytes && !(request->bytes % SECTOR));
		check(request->offset + request->bytes <= disk->sectors * SECTOR);
		for (uint32_t i = 0; i < request->n_data; i++) {
			if (request->verb == VERB_READ)
				memset(request->data[i].iov_base, 0x5a, request->data[i].iov_len);
			else
				for (size_t at = 0; at < request->data[i].iov_len; at++)
					sink ^= ((unsigned char *)request->data[i].iov_base)[at];
		}
		__asm__ volatile("" : : "r"(sink));
		break;
	case VERB_DISCARD:
	case VERB_ZEROES:
		check(request->n_ranges && request->n_ranges <= REQUEST_RANGES);
		for (uint32_t i = 0; i < request->n_ranges; i++)
			check(request->ranges[i].offset + request->ranges[i].bytes <=
				disk->sectors * SECTOR);
		break;
	case VERB_ID:
		request_answer_id(request, disk);
		break;
	case VERB_FLUSH:
	case VERBS:
		break;
	}
	check(!disk->read_only || request->verb == VERB_READ || request->verb == VERB_ID ||
		request->verb == VERB_FLUSH);
}

/* @killed: before half of it is given back, and any of that is shown */
static void serve(struct dmamap_virtqueue *queue, const struct disk *disk, bool killed)
{
	struct iovec parts[PARTS];
	uint32_t slot, held[SIZE_MOST], n_held = 0;
	struct dmamap_reason why;

	while (n_held < SIZE_MOST && dmamap_virtqueue_take(queue, &slot, &why) == 1) {
		struct dmamap_chain chain = {.slot = slot, .max = PARTS, .parts = parts};
		struct request request;
		uint8_t status;
		int walked = dmamap_virtqueue_walk(queue, &chain, &why);

		status = request_read(&request, disk, &chain, walked);
		if (status == VIRTIO_BLK_S_OK)
			carry_out(&request, disk);
		if (request.status)
			*request.status = status;
		held[n_held++] = slot;
	}
	check(n_held <= dmamap_virtqueue_in_flight(queue));
	if (killed) {
		while (n_held > 1)
			dmamap_virtqueue_give(queue, held[n_held -= 2], 1);
		return;
	}
	while (n_held)
		dmamap_virtqueue_give(queue, held[--n_held], 1);
	dmamap_virtqueue_publish(queue);
	check(!dmamap_virtqueue_in_flight(queue));
}

/* What the driver does between two steps: into its memory, and the log where that counts. */
static const uint8_t *write_over(struct world *world, unsigned char *log, size_t log_bytes,
	const uint8_t *at, const uint8_t *end)
{
	for (; end - at >= 4; at += 4) {
		size_t place = (at[0] | at[1] << 8) % (MEMORY_BYTES + log_bytes - 1);

		if (place < MEMORY_BYTES - 1)
			memcpy(world->memory + place, at + 2, 2);
		else if (place >= MEMORY_BYTES)
			memcpy(log + place - MEMORY_BYTES, at + 2, 2);
		if (at[1] & 0x80)
			return at + 4;
	}
	return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct dmamap_virtqueue_config config = {
		.dma = &world.dma,
		.descriptors = MEMORY_IOVA,
		.driver = MEMORY_IOVA + DRIVER_AREA,
		.device = MEMORY_IOVA + DEVICE_AREA,
	};
	struct disk disk = {.sectors = SECTORS,
		.most_sectors = SECTORS,
		.discard = true,
		.write_zeroes = true,
		.id = "fuzz"};
	struct dmamap_virtqueue *queue;
	size_t given, log_bytes;
	const uint8_t *more;
	bool killed;

	if (size < 3)
		return 0;
	config.packed = data[0] & 1;
	config.event_index = data[0] & 2;
	config.indirect = data[0] & 4;
	disk.read_only = data[0] & 8;
	killed = data[0] & 16;
	config.size = config.packed ? data[1] % 16 + 1u : 1u << (data[1] % 5);
	config.available = config.used = config.packed ? 0x8000 : 0;
	log_bytes = (size_t)dmamap_virtqueue_log_size(config.size, config.packed);
	world.dma.find = find;
	world.memory = malloc(MEMORY_BYTES);
	config.log = calloc(1, log_bytes);
	check(world.memory && config.log);
	given = size - 3 < MEMORY_BYTES ? size - 3 : MEMORY_BYTES;
	memset(world.memory, 0, MEMORY_BYTES);
	memcpy(world.memory, data + 3, given);
	more = data + 3 + given;
	if (dmamap_virtqueue_create(&config, &queue, NULL))
		goto free;
	config.resume = true;
	for (unsigned steps = data[2] % 16 + 1u; steps--;) {
		if (!dmamap_virtqueue_listen(queue))
			dmamap_virtqueue_mute(queue);
		serve(queue, &disk, killed);
		more = write_over(
			&world, config.log, data[0] & 32 ? log_bytes : 0, more, data + size);
		if (!killed)
			continue;
		dmamap_virtqueue_destroy(queue);
		if (dmamap_virtqueue_create(&config, &queue, NULL))
			goto free;
	}
	dmamap_virtqueue_destroy(queue);
free:
	free(config.log);
	free(world.memory);
	return 0;
}
