/* SPDX-License-Identifier: MIT */
/*
 * The bounce domain as its files see it: bounce.c makes it, bounce_stream.c
 * maps, bounce_pages.c has the file's memory, bounce_coherent.c what is shared
 * and the IOTLB, bounce_umem.c the gate and the memory behind it.
 *
 * Three things are kept of each unit or page, each with its own rule:
 *
 *	unit[]	which mapping a unit is part of. Written by the mapping's owner,
 *		within the gate; umem reads it with the gate closed. Its state is
 *		atomic, since counters look at it at any time
 *	page[]	whether the file has memory for a page. Set once, by whoever
 *		comes first (compare and swap), never cleared. Whoever sees it
 *		set may use the page: its memory came first
 *	base	where streaming bytes are now: the file or umem. Read within the
 *		gate, changed with the gate closed
 *
 * The gate. Copies run within a read section (RCU) and take no lock. To close
 * it, umem sets gate_closed and waits for the sections that are open; who comes
 * then waits for gate_lock. gate_lock also guards umem's own calls.
 *
 * Lock order: gate_lock, then iotlb_lock. The caches' locks are taken within
 * neither.
 */
#ifndef DMAMAP_ENGINE_BOUNCE_DOMAIN_H
#define DMAMAP_ENGINE_BOUNCE_DOMAIN_H

#include <pthread.h>

#include "dmamap/bounce.h"
#include "dmamap/engine.h"
#include "engine/iova_cache.h"

#define UNIT_PROT  3ull
#define UNIT_HEAD  4ull /* a mapping begins here */
#define UNIT_SHIFT 3	/* above: bytes from the unit's start to the mapping's end */

struct unit {
	char *buffer;	/* the driver's byte at the unit's start */
	uint64_t state; /* 0: free */
};

struct dmamap_bounce {
	/* Set at creation, and never again. */
	char *file;
	unsigned page_shift, unit_shift;
	uint64_t bounce_size;
	uint64_t largest; /* in units */
	bool scrub;
	unsigned quirks;
	uint64_t file_size;
	int fd;
	uint64_t host_page;
	struct unit *unit;
	unsigned char *page;

	bool announced;	  /* atomic: the bounce buffer is in the IOTLB */
	bool gate_closed; /* atomic */
	char *base;

	struct iova_cache stream;   /* in units */
	struct iova_cache coherent; /* in pages */

	pthread_mutex_t gate_lock; /* guards umem */
	void *umem;		   /* NULL: none */

	pthread_mutex_t iotlb_lock; /* guards iotlb, and changes of announced */
	struct dmamap_range *iotlb; /* ascending */
	unsigned iotlb_n;

	/* All atomic. */
	uint64_t full, too_large, no_memory, pages;
};

static inline uint64_t unit_state(const struct dmamap_bounce *bounce, uint64_t index)
{
	return __atomic_load_n(&bounce->unit[index].state, __ATOMIC_RELAXED);
}

static inline void unit_set_state(struct dmamap_bounce *bounce, uint64_t index, uint64_t state)
{
	__atomic_store_n(&bounce->unit[index].state, state, __ATOMIC_RELAXED);
}

/** file_open() - Make the file and map it. Return: 0 or -errno. */
int file_open(struct dmamap_bounce *bounce);
void file_close(struct dmamap_bounce *bounce);
/** file_fill() - Memory for @size bytes at @offset, multiples of the page. Return: 0 or -ENOMEM. */
int file_fill(struct dmamap_bounce *bounce, uint64_t offset, uint64_t size);
/** file_drop() - Give memory back: the bytes are zero for all who map them. */
int file_drop(struct dmamap_bounce *bounce, uint64_t offset, uint64_t size);

/** pages_allocate() - Return: the first page that there is no memory for, @last + 1: all are there.
 */
uint64_t pages_allocate(struct dmamap_bounce *bounce, uint64_t first, uint64_t last);

/** iotlb_announce() - The bounce buffer enters the IOTLB. Return: 0 or -ENOMEM. */
int iotlb_announce(struct dmamap_bounce *bounce, struct dmamap_reason *why);

/** gate_wait() - Wait until the gate is open. Outside read sections. */
void gate_wait(struct dmamap_bounce *bounce);

#endif
