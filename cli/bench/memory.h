/* SPDX-License-Identifier: MIT */
/*
 * Memory of each kind, made and unmade in steps that are timed apart:
 *
 *	prepare	a file where there is one, and a place in the address space
 *	mmap	the memory itself, present where asked		timed: phase mmap
 *	munmap	it is gone, and free again for the machine	timed: phase munmap
 *
 * A BAR goes through the client instead, which knows the device.
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include "dmamap/client.h"
#include "variants.h"

/**
 * struct memory - Zero before the first use.
 * @va, @size: where it is, or will be
 * @fd: the memfd, or -1
 * @declared: a sparse file that stands for the kind
 */
struct memory {
	const struct memory_kind *kind;
	void *va;
	uint64_t size;
	int fd;
	bool declared;
	struct dmamap_bar bar;
};

/** memory_alignment() - What the VA and the IOVA are aligned to: as @size allows, at most 1 GiB. */
uint64_t memory_alignment(uint64_t size, uint64_t page_size);

/**
 * memory_prepare() - Not timed. For a BAR there is nothing to do.
 *
 * Return: 0 or -errno, and nothing is left.
 */
int memory_prepare(struct memory *memory, const struct memory_kind *kind, uint64_t size,
	uint64_t alignment, bool declared);
/** memory_mmap() - Put it there; @populate makes every page present. Return: 0 or -errno. */
int memory_mmap(struct memory *memory, bool populate);
/** memory_munmap() - Take it away and close its file, so that the pages are free. */
int memory_munmap(struct memory *memory);
/** memory_release() - Whatever is left, after any of the calls above. */
void memory_release(struct memory *memory);

/** memory_huge_bytes() - How much is on transparent huge pages now; UINT64_MAX: unknown. */
uint64_t memory_huge_bytes(const struct memory *memory);

#endif
