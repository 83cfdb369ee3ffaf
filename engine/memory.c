/* SPDX-License-Identifier: MIT */
/*
 * Memory: what backs an area, as one extent. The three kinds (user memory, a
 * file, a BAR) differ in the extent's numbers only: where the bytes are, the
 * alignment by which look-ups step, and how large a piece is one for a device.
 *
 * A look-up steps to the end of the largest block that the mapping can be
 * found by: none for user memory (one piece), the file's pages, or for a BAR
 * the largest page-table level at which the program's address is congruent to
 * the BAR's own and whose block lies within the mapping.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmamap/engine.h"
#include "engine/pool.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

struct extent {
	struct dmamap_memory memory;
	uint64_t host;	  /* of the first byte */
	uint64_t place;	  /* what decides where blocks begin: an address or a file offset */
	uint64_t strides; /* bitmap of log2 block sizes; 0: one piece */
	unsigned contiguous;
};

void dmamap_memory_init(struct dmamap_memory *memory, const struct dmamap_memory_ops *ops,
	uint64_t length, unsigned prot)
{
	*memory = (struct dmamap_memory){.ops = ops, .length = length, .prot = prot, .refs = 1};
}

void dmamap_memory_get(struct dmamap_memory *memory)
{
	__atomic_add_fetch(&memory->refs, 1, __ATOMIC_RELAXED);
}

void dmamap_memory_put(struct dmamap_memory *memory)
{
	if (memory && !__atomic_sub_fetch(&memory->refs, 1, __ATOMIC_ACQ_REL))
		memory->ops->release(memory);
}

static int extent_lookup(struct dmamap_memory *memory, struct dmamap_lookup *lookup)
{
	struct extent *extent = (struct extent *)memory;
	uint64_t last = memory->length - 1;
	uint64_t at = extent->place + lookup->offset;
	uint64_t strides = extent->strides;

	while (strides) {
		unsigned shift = 63 - (unsigned)__builtin_clzll(strides);
		uint64_t mask = ((uint64_t)1 << shift) - 1;
		bool whole = (at & ~mask) >= extent->place &&
			     (at | mask) <= extent->place + memory->length - 1;

		strides &= ~((uint64_t)1 << shift);
		/* The smallest stride holds at the ends too, cut short. */
		if (!whole && strides)
			continue;
		if ((at | mask) - extent->place < last)
			last = (at | mask) - extent->place;
		break;
	}
	lookup->host = extent->host + lookup->offset;
	lookup->length = last - lookup->offset + 1;
	lookup->contiguous = extent->contiguous;
	return 0;
}

static void extent_release(struct dmamap_memory *memory)
{
	free(memory);
}

static const struct dmamap_memory_ops extent_ops = {
	.lookup = extent_lookup,
	.release = extent_release,
};

static int extent_create(
	const struct extent *shape, uint64_t length, unsigned prot, struct dmamap_memory **memory)
{
	struct extent *extent = engine_calloc(1, sizeof(*extent));

	if (!extent)
		return -ENOMEM;
	*extent = *shape;
	dmamap_memory_init(&extent->memory, &extent_ops, length, prot);
	*memory = &extent->memory;
	return 0;
}

int dmamap_memory_user(void *address, uint64_t length, unsigned prot, unsigned page_shift,
	struct dmamap_memory **memory, struct dmamap_reason *why)
{
	uint64_t first = (uintptr_t)address, last = first + length - 1;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int advice = prot & DMAMAP_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (!length || last < first || page_shift > 62)
		return DMAMAP_REFUSE(why, &dmamap_reason_backwards, EINVAL, NULL, first, last);
	if (!prot || prot & ~(DMAMAP_READ | DMAMAP_WRITE))
		return DMAMAP_REFUSE(why, &dmamap_reason_no_access, EINVAL, NULL, prot);
	if (fail_now())
		return -ENOMEM;
	while (madvise((void *)(uintptr_t)(first & ~(page - 1)),
		(size_t)((last | (page - 1)) - (first & ~(page - 1)) + 1), advice)) {
		char label[96];

		if (errno == EINTR || errno == EAGAIN)
			continue;
		snprintf(label, sizeof(label), "populating it gives %s",
			errno == ENOMEM ? "a hole, or no memory" : strerrorname_np(errno));
		return DMAMAP_REFUSE(why, &dmamap_reason_populate, EFAULT, label, first, last);
	}
	return extent_create(
		&(struct extent){
			.host = first,
			.place = first,
			.strides = page_shift ? (uint64_t)1 << page_shift : 0,
			.contiguous = page_shift ? page_shift : 63,
		},
		length, prot, memory);
}

int dmamap_memory_file(void *mapping, uint64_t start, uint64_t length, unsigned prot,
	unsigned page_shift, struct dmamap_memory **memory)
{
	uint64_t host = (uintptr_t)mapping;

	if (!length || host + length - 1 < host || start + length - 1 < start || page_shift > 62)
		return -EINVAL;
	return extent_create(
		&(struct extent){
			.host = host,
			.place = start,
			.strides = (uint64_t)1 << page_shift,
			.contiguous = page_shift,
		},
		length, prot, memory);
}

int dmamap_memory_bar(
	const struct dmamap_bar_view *view, unsigned prot, struct dmamap_memory **memory)
{
	uint64_t page = (uint64_t)1 << view->page_shift;
	uint64_t strides = page;

	if (!view->length || view->va + view->length - 1 < view->va ||
		view->address + view->length - 1 < view->address || view->page_shift > 62 ||
		(view->va ^ view->address) & (page - 1) || view->strides & (page - 1))
		return -EINVAL;
	for (uint64_t left = view->strides; left; left &= left - 1) {
		uint64_t block = left & -left;

		if (!((view->va ^ view->address) & (block - 1)))
			strides |= block;
	}
	return extent_create(
		&(struct extent){
			.host = (uintptr_t)view->host,
			.place = view->va,
			.strides = strides,
			.contiguous = 63,
		},
		view->length, prot, memory);
}
