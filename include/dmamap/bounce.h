/* SPDX-License-Identifier: MIT */
/*
 * The bounce domain: DMA for a device that is a program.
 *
 * A driver's buffers are anywhere in its memory, and the device, another
 * process, must see no more of it than it is given. So each buffer that is
 * mapped for streaming DMA gets a place in a bounce buffer, which the device
 * maps, and its bytes are copied there and back: this is what Linux does for
 * VDUSE (drivers/vdpa/vdpa_user/iova_domain.c; rules below are of 7.3.4, where
 * nothing else is said). What driver and device share for long (rings) is
 * coherent memory instead, which is not copied.
 *
 *	streaming	IOVA 0 to bounce_size - 1: bounce units, size-aligned,
 *			handed out from the top. Unit 0 never is, so that IOVA 0
 *			means nothing
 *	coherent	from bounce_size to iova_limit, handed out from the top
 *	file		one sparse file (a memfd) behind both; a byte's offset in
 *			it is its IOVA. The device maps it; it cannot be resized
 *	IOTLB		which ranges the device may map: the bounce buffer, from the
 *			first streaming map on, and each coherent allocation
 *	umem		memory that the device gives to be the bounce buffer in the
 *			file's place
 *
 * A unit is 4 KiB, or a page of the domain's. Where pages are larger than
 * units, units share pages: a page is allocated, all zero, when the first of
 * its units is mapped, and kept until the domain goes.
 *
 * What the device can see. Of a live mapping: its bytes, those that the driver
 * gave for reading. Beside mappings: nothing but zeros and what the device
 * itself wrote, since bytes are cleared when their mapping ends, and where they
 * move to or from umem. (Linux leaves them: a device that keeps the buffer
 * mapped reads on. @keep_stale does so.) A device may at any time write
 * anywhere in the buffer: the driver takes from it the bytes of mappings that
 * are for writing, and no others.
 *
 * Threads. Every call may come from any thread and run beside every other one,
 * but for dmamap_bounce_destroy(). Maps and unmaps on different threads do not
 * meet, as long as there are as many caches as threads; a cache outlives its
 * thread, and a flush finds what it holds. umem_add and umem_remove wait for
 * copies that are under way and hold up new ones. A mapping is its owner's: who
 * unmaps it does so once, and no other call on it runs beside that. Streaming
 * calls and umem calls are refused within dmamap_access_enter() and leave: they
 * could wait for each other.
 *
 * Errors are -errno, and what fails changes nothing. All sizes and IOVAs are in
 * bytes.
 */
#ifndef DMAMAP_BOUNCE_H
#define DMAMAP_BOUNCE_H

#include <stdbool.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dmamap_bounce;

/* The domain's kinds of refusal; the numbers are named in engine/reason.c. */
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_bounce_config;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_bounce_request;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_bounce_full;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_bounce_too_large;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_bounce_not_mapped;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_bounce_past_mapping;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_coherent_full;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_coherent_too_large;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_coherent_no_range;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_coherent_not_there;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_iotlb_full;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_umem_no_map;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_umem_shape;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_umem_there;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_umem_none;

/* ----------------------------------------------------------------- domain */

#define DMAMAP_BOUNCE_SIZE	 (64ull << 20)	       /**< what VDUSE takes, unless told */
#define DMAMAP_BOUNCE_IOVA_LIMIT ((1152ull << 20) - 1) /**< of every VDUSE device */
#define DMAMAP_BOUNCE_IOTLB_MOST 2048u /**< ranges; vduse's max_iotlb_entries, as it is shipped */

/** Known faults of Linux, to be had again; OR them together. */
enum dmamap_bounce_quirk {
	/**
	 * The coherent range starts at as many pages as the bounce buffer has
	 * units of 4 KiB: at 16 times its end with 64 KiB pages, at 4 times with
	 * 16 KiB. Bounce buffers from 72 MiB (64 KiB pages) or 288 MiB (16 KiB)
	 * on leave nothing of it.
	 */
	DMAMAP_BOUNCE_QUIRK_COHERENT_START = 1,
	/**
	 * A map that fails for want of a page leaves the units before that page
	 * marked as mapped, until they are mapped again: umem calls copy their pages.
	 */
	DMAMAP_BOUNCE_QUIRK_FAILED_MAP = 2,
	/** All that Linux 7.3 has. */
	DMAMAP_BOUNCE_QUIRKS_7_3 = 3,
};

/**
 * struct dmamap_bounce_config - How a domain is made. 0 takes the value in
 * brackets.
 * @page_shift: log2 of the driver side's page: 12, 14 or 16 [12]
 * @unit_shift: log2 of the bounce unit: 12, as Linux has since 6.19, or
 *	@page_shift, as before [12]
 * @bounce_size: the bounce buffer, up to 1 GiB in Linux; rounded up to a page
 *	[64 MiB]. One of a single unit is allowed, and maps nothing
 * @iova_limit: the last IOVA, over @bounce_size and below 64 GiB [1152 MiB - 1]
 * @caches: how many threads have a cache of IOVAs of their own: a power of
 *	two, at most 4096 [64]. Threads beyond share
 * @magazine: IOVAs in a magazine, of which a cache has two for each of six
 *	lengths; at most 65536 [127]
 * @keep_stale: leave the bytes of ended mappings where they are, as Linux does
 *	[false: clear them]
 * @quirks: enum dmamap_bounce_quirk [none]
 */
struct dmamap_bounce_config {
	unsigned page_shift;
	unsigned unit_shift;
	uint64_t bounce_size;
	uint64_t iova_limit;
	unsigned caches;
	unsigned magazine;
	bool keep_stale;
	unsigned quirks;
};

/**
 * dmamap_bounce_create() - A domain with nothing mapped.
 * @config: NULL for the defaults
 *
 * The file takes address space of @iova_limit and memory as it is used.
 *
 * Return: 0; -EINVAL a value that cannot be; -ENOMEM memory or address space;
 * -EMFILE, -ENFILE no file.
 */
DMAMAP_API int dmamap_bounce_create(const struct dmamap_bounce_config *config,
	struct dmamap_bounce **bounce, struct dmamap_reason *why);

/** dmamap_bounce_destroy() - Mappings end with it, without a copy. NULL is fine. */
DMAMAP_API void dmamap_bounce_destroy(struct dmamap_bounce *bounce);

/**
 * struct dmamap_bounce_info - What a domain came to be; it never changes.
 * @page_size: bytes of a page
 * @unit_size: bytes of a unit
 * @bounce_size: bytes of the bounce buffer; IOVAs from here on are not bounced
 * @units: units that can be mapped at a time: all but the first
 * @largest: the longest mapping that an empty buffer has room for: its place
 *	is aligned to its size, so this is half of a power of two. (Linux
 *	promises drivers @bounce_size, and fails beyond this.)
 * @coherent: the coherent range; last < first: there is none
 */
struct dmamap_bounce_info {
	uint64_t page_size;
	uint64_t unit_size;
	uint64_t bounce_size;
	uint64_t units;
	uint64_t largest;
	struct dmamap_range coherent;
};

DMAMAP_API void dmamap_bounce_info(
	const struct dmamap_bounce *bounce, struct dmamap_bounce_info *info);

/**
 * dmamap_bounce_file() - The file descriptor that the device maps, from the
 * offset that the IOTLB gives. The domain's: duplicate it to keep or pass it.
 */
DMAMAP_API int dmamap_bounce_file(const struct dmamap_bounce *bounce);

/* -------------------------------------------------------------- streaming */

/** The bytes need not be copied now: they are not of interest, or a sync does it. */
#define DMAMAP_BOUNCE_SKIP_SYNC 1u

/**
 * dmamap_bounce_map() - Give the device a buffer.
 * @buffer: the driver's memory, any alignment; stays valid, and its owner keeps
 *	off it, until unmap
 * @size: at least 1. Takes size / unit_size units, rounded up, and below 32 of
 *	them to a power of two
 * @prot: what the device does: DMAMAP_READ (DMA_TO_DEVICE: copied there now and
 *	by sync_for_device), DMAMAP_WRITE (DMA_FROM_DEVICE: copied back by
 *	sync_for_cpu and unmap) or both (DMA_BIDIRECTIONAL)
 * @flags: DMAMAP_BOUNCE_SKIP_SYNC (DMA_ATTR_SKIP_CPU_SYNC) or 0
 * @iova: out: where the device finds it; a multiple of unit_size
 *
 * All of a DMAMAP_WRITE mapping is copied back, whatever the device has written
 * of it: the rest is zeros, of a device that keeps to its mappings.
 *
 * Return: 0; -ENOSPC no units are free just now; -E2BIG none ever are for so
 * many bytes; -ENOMEM no memory for the pages, or no room in the IOTLB (Linux
 * knows one error for the three: the driver sees ENOMEM); -EINVAL @size 0, a
 * @prot or @flags that there is not; -EDEADLK within an access.
 */
DMAMAP_API int dmamap_bounce_map(struct dmamap_bounce *bounce, void *buffer, uint64_t size,
	unsigned prot, unsigned flags, uint64_t *iova, struct dmamap_reason *why);

/**
 * dmamap_bounce_unmap() - Take it back.
 * @iova, @size: as mapped
 * @flags: DMAMAP_BOUNCE_SKIP_SYNC or 0
 *
 * Return: 0; -EINVAL no such mapping begins there (Linux trusts its drivers),
 * or a flag that there is not; -EDEADLK within an access.
 */
DMAMAP_API int dmamap_bounce_unmap(struct dmamap_bounce *bounce, uint64_t iova, uint64_t size,
	unsigned flags, struct dmamap_reason *why);

/**
 * dmamap_bounce_sync_for_device() - Copy a part of a mapping's buffer to the
 * device, where it may read: what the driver wrote is now seen.
 * dmamap_bounce_sync_for_cpu() - Copy a part back, where the device may write.
 * @iova, @size: within one mapping. In the coherent range nothing is done
 *
 * Return: 0; -EINVAL the range is not within a mapping; -EDEADLK within an
 * access.
 */
DMAMAP_API int dmamap_bounce_sync_for_device(
	struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, struct dmamap_reason *why);
DMAMAP_API int dmamap_bounce_sync_for_cpu(
	struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, struct dmamap_reason *why);

/* --------------------------------------------------------------- coherent */

/**
 * dmamap_bounce_coherent_alloc() - Memory that driver and device share: zeroed
 * pages of the file.
 * @size: at least 1
 * @iova: out: where the device finds it; a multiple of page_size
 * @address: out: where the driver finds it
 *
 * Return: 0; -ENOSPC no IOVAs are free; -E2BIG too large for the range, or there
 * is none; -ENOMEM no memory, or no room in the IOTLB; -EINVAL @size 0.
 */
DMAMAP_API int dmamap_bounce_coherent_alloc(struct dmamap_bounce *bounce, uint64_t size,
	uint64_t *iova, void **address, struct dmamap_reason *why);

/**
 * dmamap_bounce_coherent_free() - Give it back; @iova and @size as allocated.
 * Its pages leave the file: a device that keeps them mapped sees zeros, with
 * keep_stale what they held, until they are allocated again.
 *
 * Return: 0; -EINVAL there is no such allocation.
 */
DMAMAP_API int dmamap_bounce_coherent_free(
	struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, struct dmamap_reason *why);

/* ------------------------------------------------------------------ IOTLB */

/**
 * struct dmamap_iotlb_entry - A range that the device may map.
 * @first, @last: its IOVAs. A coherent range ends with the bytes asked for, not
 *	with their page
 * @offset: of @first in the file
 * @prot: DMAMAP_READ and DMAMAP_WRITE, always
 * @umem: this is the bounce buffer: umem can replace it
 */
struct dmamap_iotlb_entry {
	uint64_t first;
	uint64_t last;
	uint64_t offset;
	unsigned prot;
	bool umem;
};

/** dmamap_bounce_iotlb_find() - The lowest entry with a byte in @first to @last; false: none. */
DMAMAP_API bool dmamap_bounce_iotlb_find(struct dmamap_bounce *bounce, uint64_t first,
	uint64_t last, struct dmamap_iotlb_entry *entry);

/**
 * dmamap_bounce_reset() - The device was reset: the bounce buffer leaves the
 * IOTLB until the next streaming map. Mappings, coherent memory and umem stay.
 */
DMAMAP_API void dmamap_bounce_reset(struct dmamap_bounce *bounce);

/* ------------------------------------------------------------------- umem */

/**
 * dmamap_bounce_umem_add() - Make the device's own memory the bounce buffer.
 * @address: a multiple of page_size; writable, and stays mapped until it is
 *	removed
 * @size: all of the bounce buffer
 *
 * A page with a live mapping is copied whole from the file, others are left as
 * they are; pages of the file are cleared then. The file's bounce pages have no
 * use while umem is there.
 *
 * Return: 0; -EINVAL nothing was ever mapped for streaming (since reset), or
 * @size or @address is not as it must be; -EEXIST there is umem; -EFAULT a hole
 * in it, or not writable; -EDEADLK within an access.
 */
DMAMAP_API int dmamap_bounce_umem_add(
	struct dmamap_bounce *bounce, void *address, uint64_t size, struct dmamap_reason *why);

/**
 * dmamap_bounce_umem_remove() - Go back to the file. A page with a live mapping
 * is copied back whole, and its mapped units are cleared in umem.
 *
 * Return: 0; -ENOENT there is no umem; -EDEADLK within an access.
 */
DMAMAP_API int dmamap_bounce_umem_remove(struct dmamap_bounce *bounce, struct dmamap_reason *why);

/* --------------------------------------------------------------- counters */

/**
 * struct dmamap_bounce_counters - What a domain has done; the last three are
 * how it is now.
 * @fast: streaming IOVAs that a cache had
 * @slow: those that the one allocator had to be asked for, under its lock
 * @flushes: times that all caches were emptied, since it had none
 * @full: maps refused since no unit was free, after a flush
 * @too_large: maps refused since the bounce buffer never has room for them
 * @no_memory: maps refused since there was no memory
 * @to_device, @from_device: bytes copied
 * @live_units: units that mappings take up, with what rounding adds
 * @live_pages: pages in use: with a unit that is mapped
 * @pages: pages that are allocated, the most that ever were
 */
struct dmamap_bounce_counters {
	uint64_t fast;
	uint64_t slow;
	uint64_t flushes;
	uint64_t full;
	uint64_t too_large;
	uint64_t no_memory;
	uint64_t to_device;
	uint64_t from_device;
	uint64_t live_units;
	uint64_t live_pages;
	uint64_t pages;
};

/**
 * dmamap_bounce_counters() - What was done so far. Looks at every unit: for
 * reports, not for each request. @live_units and @live_pages are exact when
 * nobody maps or unmaps meanwhile; beside such calls what moves between caches
 * may be counted twice or not at all.
 */
DMAMAP_API void dmamap_bounce_counters(
	struct dmamap_bounce *bounce, struct dmamap_bounce_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
