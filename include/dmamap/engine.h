/* SPDX-License-Identifier: MIT */
/*
 * The engine: IOVA to host memory.
 *
 *	space	which IOVA ranges are mapped (areas), which may be
 *	table	the page table that a device walks; a space has any number
 *	access	one thread's way to translate, read and write through a table
 *	memory	what backs an area: it says, for an offset, where the bytes are
 *	pins	which pages of a memory are in use, and how often
 *
 * Threads. Calls that change a space (map, unmap, copy, reserve, tables) take
 * that space's lock and may come from any thread. Accesses take no lock: they
 * run beside every change. When dmamap_unmap() returns, no access to the
 * range that it removed is in flight and none can start (RCU: the caller waits
 * for accesses that were under way, and only where some other thread has an
 * access to one of the space's tables).
 *
 * Errors. Every call returns 0 or -errno, never aborts, prints or exits, and
 * changes nothing when it fails. Calls that can refuse take a reason, which
 * may be NULL.
 *
 * Ranges are (first, last), both included, in bytes. "shift" is log2 of a
 * size in bytes.
 */
#ifndef DMAMAP_ENGINE_H
#define DMAMAP_ENGINE_H

#include <stdbool.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dmamap_space;
struct dmamap_table;
struct dmamap_access;
struct dmamap_memory;

/* ---------------------------------------------------------------- reasons */

/* The engine's kinds of refusal; the numbers are named in engine/reason.c. */
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_backwards;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_misaligned;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_no_access;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_memory_range;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_memory_read_only;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_overlap;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_area_limit;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_reserved;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_aperture;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_cut;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_gap;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_leaf;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_no_iova;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_in_use;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_populate;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_host;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_not_mapped;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_prot;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_segments;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_format_invalid;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_within_access;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_other_thread;
DMAMAP_API extern const struct dmamap_reason_kind dmamap_reason_no_memory;

/* --------------------------------------------------------------- counters */

/**
 * struct dmamap_counters - Work done so far. Times need them to be explained.
 * @maps: areas mapped
 * @unmaps: areas unmapped
 * @lookups: runs asked of memory objects while tables were filled: the steps
 *	that a kernel takes through pinning or page-table walks
 * @leaves: leaves written, by log2 of their size
 * @leaves_cleared: leaves cleared, by log2 of their size
 * @tables: page-table pages in use now, root included
 * @table_bytes: bytes in them
 * @table_bytes_held: bytes of table memory taken from the system, free ones
 *	included
 * @area_bytes: bytes held for the areas' bookkeeping, free ones included
 * @areas: areas mapped now
 * @waits: unmaps and dirty reads that had to wait for other threads' accesses
 *
 * Counters only grow, but for @tables, @table_bytes*, @area_bytes and @areas.
 */
struct dmamap_counters {
	uint64_t maps;
	uint64_t unmaps;
	uint64_t lookups;
	uint64_t leaves[64];
	uint64_t leaves_cleared[64];
	uint64_t tables;
	uint64_t table_bytes;
	uint64_t table_bytes_held;
	uint64_t area_bytes;
	uint64_t areas;
	uint64_t waits;
};

/* ----------------------------------------------------------------- memory */

/**
 * struct dmamap_lookup - One question to a memory object, and its answer.
 * @offset: in: first byte asked for, counted from the memory's start
 * @last: in: last byte that the fill will ask for; at least @offset
 * @prot: in: what the device may do (DMAMAP_READ, DMAMAP_WRITE)
 * @why: in: where a refusal's reason goes, or NULL
 * @host: out: host address of the byte at @offset
 * @length: out: bytes from there that follow one another in host memory and
 *	were found by this one look-up; at least 1, may reach past @last
 * @contiguous: out: log2 of the size up to which aligned blocks of the run
 *	are one piece for a device: a leaf under the hardware rule is never
 *	larger. 12 for 4 KiB pages; 63 for a BAR, which is one piece throughout
 * @state: the memory's own, zero at the first look-up of a fill and kept for
 *	the next ones, so that a memory need not search twice
 */
struct dmamap_lookup {
	uint64_t offset;
	uint64_t last;
	unsigned prot;
	struct dmamap_reason *why;
	uint64_t host;
	uint64_t length;
	unsigned contiguous;
	uint64_t state[4];
};

/**
 * struct dmamap_memory_ops - What a kind of memory does.
 * @lookup: answer one question; 0 or -errno. Called with the space's lock
 *	held: it must not call back into a space
 * @release: the last reference is gone: free the object. May run in any
 *	thread that drops a reference, outside every lock of the engine
 * @filled: NULL, or told that one table has taken in the bytes @offset to
 *	@last, once for each area and table; a negative errno refuses, and the
 *	fill is undone. For who charges or counts what is pinned. Called with
 *	the space's lock held, as @lookup
 * @cleared: told that one table gave up the bytes @offset to @last, which may
 *	be a part of what @filled was told (after dmamap_area_split()); never
 *	for a fill that was refused. NULL exactly where @filled is. Called with
 *	the space's lock held, while the memory has a reference, and before
 *	accesses that are under way have been waited for
 *
 * What @filled accepted and @cleared took back add up, byte by byte, to the
 * areas and tables that there are, also after calls that failed. An area in a
 * space without a table is not told of.
 */
struct dmamap_memory_ops {
	int (*lookup)(struct dmamap_memory *memory, struct dmamap_lookup *lookup);
	void (*release)(struct dmamap_memory *memory);
	int (*filled)(struct dmamap_memory *memory, uint64_t offset, uint64_t last,
		struct dmamap_reason *why);
	void (*cleared)(struct dmamap_memory *memory, uint64_t offset, uint64_t last);
};

/**
 * struct dmamap_memory - What backs an area. A kind of memory of one's own
 * embeds this as its first member and starts it with dmamap_memory_init().
 * @ops: what the kind does
 * @length: bytes
 * @prot: what areas may ask for at most
 * @refs: the engine's; one for the creator and one for each area
 * @next: the engine's
 *
 * The address is a multiple of 8, as malloc() gives it.
 */
struct dmamap_memory {
	const struct dmamap_memory_ops *ops;
	uint64_t length;
	unsigned prot;
	unsigned refs;
	struct dmamap_memory *next;
};

/** dmamap_memory_init() - Start a memory object with one reference. */
DMAMAP_API void dmamap_memory_init(struct dmamap_memory *memory,
	const struct dmamap_memory_ops *ops, uint64_t length, unsigned prot);
/** dmamap_memory_get() - Take a reference; any thread. */
DMAMAP_API void dmamap_memory_get(struct dmamap_memory *memory);
/** dmamap_memory_put() - Drop one; the last one releases it. NULL is fine. */
DMAMAP_API void dmamap_memory_put(struct dmamap_memory *memory);

/**
 * dmamap_memory_user() - Memory of this process, by address.
 * @address: first byte; any alignment
 * @length: bytes, at least 1, not past the end of the address space
 * @prot: DMAMAP_WRITE needs memory that the process may write
 * @page_shift: size of the pages that back it, where leaves must not span
 *	pages (the hardware rule); 0: one piece
 * @memory: out: one reference
 * @why: reason or NULL
 *
 * Populates the range with one call to the kernel (MADV_POPULATE_READ or
 * _WRITE, Linux 5.14), which also proves that all of it is there and may be
 * used so. The memory stays the caller's and must stay mapped until no area
 * uses it: a device reads and writes at these addresses.
 *
 * Return: 0; -EFAULT a hole, or memory that cannot be read or written as
 * asked; -EINVAL length 0, a wrap, no prot; -ENOMEM.
 */
DMAMAP_API int dmamap_memory_user(void *address, uint64_t length, unsigned prot,
	unsigned page_shift, struct dmamap_memory **memory, struct dmamap_reason *why);

/**
 * dmamap_memory_file() - A file that the caller has mapped, found page by page
 * of the file's own page size, as Linux finds a memfd's folios.
 * @mapping: where the caller mapped it (its first byte is the file's byte
 *	@start); must stay mapped until the memory is released
 * @start: the mapping's place in the file; decides where pages begin
 * @length: bytes
 * @prot: what the mapping allows
 * @page_shift: the file's page size: 12 for a memfd of 4 KiB pages, 21 or 30
 *	on hugetlbfs
 * @memory: out: one reference
 *
 * Return: 0; -EINVAL length 0, a wrap, @page_shift over 62; -ENOMEM.
 */
DMAMAP_API int dmamap_memory_file(void *mapping, uint64_t start, uint64_t length, unsigned prot,
	unsigned page_shift, struct dmamap_memory **memory);

/**
 * struct dmamap_bar_view - How a program sees a device's BAR.
 * @host: where the bytes are in this process (need not be @va)
 * @address: the BAR's own address (bus address) at @host
 * @va: where the program mapped it; with @length this is the whole mapping
 * @length: bytes
 * @page_shift: base page size, 12, 14 or 16
 * @strides: bitmap of log2 sizes at which the processor's page table can map
 *	it (bit 12, 21 and 30 on x86-64). A look-up at @va + offset steps to
 *	the end of the largest block for which va and address are congruent
 *	and which lies wholly within the mapping (Linux 6.15 and later). A
 *	bitmap of only the base page gives the rule before 6.15: one page a
 *	look-up
 */
struct dmamap_bar_view {
	void *host;
	uint64_t address;
	uint64_t va;
	uint64_t length;
	unsigned page_shift;
	uint64_t strides;
};

/**
 * dmamap_memory_bar() - A device's BAR, or a part of it, as a program mapped
 * it. One contiguous piece for leaves, whatever the look-ups cost.
 *
 * Return: 0; -EINVAL length 0, @va or @address not congruent modulo the base
 * page, a stride below the base page; -ENOMEM.
 */
DMAMAP_API int dmamap_memory_bar(
	const struct dmamap_bar_view *view, unsigned prot, struct dmamap_memory **memory);

/* ------------------------------------------------------------------- pins */

struct dmamap_pins_edges;

/**
 * struct dmamap_pins - For each page of a memory, how many ranges have it.
 * @pinned: how many pages at least one range has; to be read
 * @edges, @first, @last, @ranges: the engine's
 *
 * A page is pinned, and charged, once, however many tables and areas have it:
 * from the first one on, until none has. A VMM whose guest has several IOMMU
 * domains, and any memory object that is told of fills, counts them here:
 * filled() adds a range, cleared() removes it, and what is pinned is exact
 * after failures too. To pin page by page, walk the range before it is added
 *
 *	for (page = first;; page = end + 1) {
 *		end = last;
 *		if (!dmamap_pins_at(&pins, page, &end))
 *			pin(page, end);
 *		if (end == last)
 *			break;
 *	}
 *
 * and in the same way, to unpin what none has any more, after it was removed.
 *
 * Pages are numbers, of pages or of any other unit, but for UINT64_MAX: so
 * that 64 bits hold how many there are. It starts as zeros. There is no lock
 * in it: the caller's own guards it, where more than one thread comes by (a
 * space's lock is not enough for a memory that several spaces have).
 *
 * As long as all ranges are the same one, no memory is taken. With n different
 * ranges there are up to 2n places where the count changes: finding one takes
 * log n steps, and adding or removing also moves those that lie behind.
 */
struct dmamap_pins {
	uint64_t pinned;
	struct dmamap_pins_edges *edges;
	uint64_t first;
	uint64_t last;
	size_t ranges;
};

/**
 * dmamap_pins_add() - One more range has the pages @first to @last.
 * @pinned: out: how many of them no range had before. NULL is fine
 *
 * Return: 0; -EINVAL last < first, or @last is UINT64_MAX; -ENOMEM. On failure
 * all is as it was.
 */
DMAMAP_API int dmamap_pins_add(
	struct dmamap_pins *pins, uint64_t first, uint64_t last, uint64_t *pinned);

/**
 * dmamap_pins_remove() - A range that was added, or a part of one that was
 * split, is gone. Takes no memory and does not fail: it undoes an add as well.
 * Only what was added may be removed, each once; this is not checked.
 *
 * Return: how many of the pages no range has any more.
 */
DMAMAP_API uint64_t dmamap_pins_remove(struct dmamap_pins *pins, uint64_t first, uint64_t last);

/**
 * dmamap_pins_split() - @more removals will be needed than ranges were added:
 * a range that is to be removed in three parts takes 2. Call it before an area
 * is split (dmamap_area_split()), once for each table that was filled with it.
 * No page's count changes. dmamap_pins_unsplit() takes it back, if nothing was
 * split after all.
 *
 * Return: 0; -ENOMEM: all is as it was.
 */
DMAMAP_API int dmamap_pins_split(struct dmamap_pins *pins, unsigned more);
DMAMAP_API void dmamap_pins_unsplit(struct dmamap_pins *pins, unsigned more);

/**
 * dmamap_pins_at() - How many ranges have @page.
 * @last: in: how far to look, at least @page; out: the last page, no further
 *	than that, up to which the answer is the same
 *
 * O(log n).
 */
DMAMAP_API size_t dmamap_pins_at(const struct dmamap_pins *pins, uint64_t page, uint64_t *last);

/** dmamap_pins_clear() - Remove all ranges and free what is held: it is zeros again. */
DMAMAP_API void dmamap_pins_clear(struct dmamap_pins *pins);

/* ------------------------------------------------------------------ space */

/**
 * struct dmamap_space_config - How a space starts.
 * @area_limit: most areas at a time; 0: no limit. Linux type1: 65535
 */
struct dmamap_space_config {
	uint64_t area_limit;
};

/**
 * dmamap_space_create() - An empty address space: all 2^64 IOVAs allowed, none
 * reserved, no table.
 * @config: NULL for the defaults
 *
 * Return: 0 or -ENOMEM.
 */
DMAMAP_API int dmamap_space_create(
	const struct dmamap_space_config *config, struct dmamap_space **space);

/**
 * dmamap_space_destroy() - Unmap everything, destroy the tables, free it.
 * Accesses must be gone. NULL is fine.
 */
DMAMAP_API void dmamap_space_destroy(struct dmamap_space *space);

/** dmamap_space_counters() - A snapshot, the tables' counters added. */
DMAMAP_API void dmamap_space_counters(struct dmamap_space *space, struct dmamap_counters *counters);

/**
 * dmamap_space_reserve() - Keep IOVAs from being mapped: outside a device's
 * aperture, or a window such as the MSI doorbell's.
 * @first, @last: the range; it may overlap other reserved ranges
 * @owner: who asks; dmamap_space_unreserve() takes all of an owner's back.
 *	Not followed
 * @label: what it is, for reasons ("MSI window"); copied, cut to 31 bytes
 *
 * Return: 0; -EADDRINUSE an area or an allowed range is there; -EINVAL
 * last < first; -ENOMEM.
 */
DMAMAP_API int dmamap_space_reserve(struct dmamap_space *space, uint64_t first, uint64_t last,
	const void *owner, const char *label, struct dmamap_reason *why);

/** dmamap_space_unreserve() - Take back every range that @owner reserved. */
DMAMAP_API void dmamap_space_unreserve(struct dmamap_space *space, const void *owner);

/**
 * dmamap_space_allow() - Say from where IOVAs may be allocated. Replaces the
 * list. It binds allocation only: a fixed IOVA may lie outside it, as in
 * Linux (io_pagetable.c), and the list keeps reserved ranges away.
 * @ranges: need not be sorted; may not overlap. NULL with @n 0: all IOVAs
 *
 * Return: 0; -EINVAL first >= last, or two ranges overlap; -EADDRINUSE a
 * reserved range is there; -ENOMEM. On failure the old list stays.
 */
DMAMAP_API int dmamap_space_allow(struct dmamap_space *space, const struct dmamap_range *ranges,
	size_t n, struct dmamap_reason *why);

/**
 * dmamap_space_usable() - The ranges that are not reserved, ascending, merged.
 * @ranges: out: up to @n of them; may be NULL with @n 0
 *
 * Return: how many there are in all, which may be more than @n.
 */
DMAMAP_API size_t dmamap_space_usable(
	struct dmamap_space *space, struct dmamap_range *ranges, size_t n);

/** dmamap_space_alignment() - The largest granule of the space's tables; 1
 * without a table. first and last + 1 of every area are multiples of it. */
DMAMAP_API uint64_t dmamap_space_alignment(struct dmamap_space *space);

/* ---------------------------------------------------------- map and unmap */

/** Choose the IOVA: first fit, ascending. */
#define DMAMAP_MAP_ALLOCATE 1u

/**
 * struct dmamap_map - One mapping to make.
 * @first, @last: the IOVAs; with DMAMAP_MAP_ALLOCATE, last - first + 1 is the
 *	length and both are set to the range that was taken
 * @memory: what backs it; the area takes a reference of its own. NULL keeps
 *	the IOVAs without memory: no device can reach anything there
 * @offset: where in @memory the area starts, bytes
 * @prot: DMAMAP_READ, DMAMAP_WRITE or both; at most what @memory allows.
 *	0 maps memory that no device can reach
 * @flags: DMAMAP_MAP_ALLOCATE or 0
 * @alignment: with DMAMAP_MAP_ALLOCATE: a power of two; 0 for the space's own
 * @phase: with DMAMAP_MAP_ALLOCATE: first is congruent to it modulo
 *	@alignment; below @alignment
 */
struct dmamap_map {
	uint64_t first;
	uint64_t last;
	struct dmamap_memory *memory;
	uint64_t offset;
	unsigned prot;
	unsigned flags;
	uint64_t alignment;
	uint64_t phase;
};

/**
 * dmamap_map() - Map one area and fill every table of the space, or none.
 *
 * Checked in this order: the range (-EINVAL last < first, or misaligned for
 * a table), the memory (-EINVAL outside it, -EPERM more access than it
 * allows), -EEXIST an area overlaps, -ENOSPC the area limit, -EINVAL a
 * reserved range overlaps or a table's aperture ends before. Then the
 * memory's own errors (-EFAULT, what its filled() refuses with), and -ENOMEM.
 * With DMAMAP_MAP_ALLOCATE, -ENOSPC no hole is large enough.
 */
DMAMAP_API int dmamap_map(
	struct dmamap_space *space, struct dmamap_map *map, struct dmamap_reason *why);

/**
 * dmamap_unmap() - Remove every area that lies within the range. Holes are
 * fine, and so is a range without any area.
 * @unmapped: out: bytes removed; 2^64 is given as UINT64_MAX. NULL is fine
 *
 * Return: 0; -EINVAL last < first, or an area lies partly outside the range:
 * then nothing is removed; -EDEADLK called from within an access that this
 * thread has entered.
 */
DMAMAP_API int dmamap_unmap(struct dmamap_space *space, uint64_t first, uint64_t last,
	uint64_t *unmapped, struct dmamap_reason *why);

/**
 * dmamap_copy() - Map what another space has mapped, sharing its memory.
 * @from: the other space; may be @space itself
 * @first, @last: the part of @from, covered by areas without a gap; it may
 *	begin and end inside areas, and one area is made for each
 * @map: where to and with what protection; memory and offset are ignored,
 *	last is set from first and the length
 *
 * All or nothing. Return: as dmamap_map(), and -ENOENT a gap in @from.
 */
DMAMAP_API int dmamap_copy(struct dmamap_space *from, uint64_t first, uint64_t last,
	struct dmamap_space *space, struct dmamap_map *map, struct dmamap_reason *why);

/**
 * struct dmamap_area - One area, as it was when asked.
 * @memory: no reference is taken: valid while the area is mapped
 */
struct dmamap_area {
	uint64_t first;
	uint64_t last;
	struct dmamap_memory *memory;
	uint64_t offset;
	unsigned prot;
};

/**
 * dmamap_area_find() - The lowest area with a byte in the range.
 *
 * Return: true and @area, or false. O(log n).
 */
DMAMAP_API bool dmamap_area_find(
	struct dmamap_space *space, uint64_t first, uint64_t last, struct dmamap_area *area);

/**
 * dmamap_area_split() - Make two areas of the one that @iova lies within, so
 * that @iova begins the second. What is mapped stays as it is. Linux does so
 * for unmaps of VFIO_TYPE1_IOMMU on an IOMMUFD (iopt_cut_iova).
 *
 * Return: 0, also where @iova is at no area's inside; -EINVAL a leaf of some
 * table lies across it, or it is no multiple of dmamap_space_alignment();
 * -ENOSPC the area limit; -ENOMEM.
 */
DMAMAP_API int dmamap_area_split(
	struct dmamap_space *space, uint64_t iova, struct dmamap_reason *why);

/**
 * dmamap_iova_find() - Where dmamap_map() would put @length bytes now.
 *
 * Return: 0 and *@first; -ENOSPC, -EINVAL as dmamap_map().
 */
DMAMAP_API int dmamap_iova_find(struct dmamap_space *space, uint64_t length, uint64_t alignment,
	uint64_t phase, uint64_t *first, struct dmamap_reason *why);

/* ------------------------------------------------------------------ table */

/** Where a leaf may point. */
enum dmamap_output {
	/** Anywhere: for emulators and VMMs; the largest leaves that the IOVA allows. */
	DMAMAP_OUTPUT_HOST,
	/** At multiples of the leaf's size and within one piece of memory: what an IOMMU needs. */
	DMAMAP_OUTPUT_HARDWARE,
};

/**
 * struct dmamap_table_config - The shape of a page table. Zero takes the
 * value in brackets.
 * @granule_shift: smallest leaf: 11 to 16 [12]
 * @node_shift: bytes of one table page: 12 to 16 [the granule, at least 12];
 *	512 entries at 12, 2048 at 14, 8192 at 16
 * @leaf_sizes: bitmap of sizes, bit n for 2^n bytes; none below the granule,
 *	which is always one [every level of the radix up to 1 GiB at 4 KiB]
 * @iova_bits: width of the input: granule to 64 [64]
 * @output: where leaves may point [host]
 */
struct dmamap_table_config {
	unsigned granule_shift;
	unsigned node_shift;
	uint64_t leaf_sizes;
	unsigned iova_bits;
	enum dmamap_output output;
};

/**
 * dmamap_table_create() - Give the space one more page table and fill it with
 * every area that is mapped.
 *
 * Return: 0; -EINVAL a shape that cannot be, or areas beyond its aperture;
 * -EADDRINUSE areas that are no multiple of its granule; what filling gives:
 * the memory's own errors, -EINVAL memory that the hardware rule does not allow
 * at this granule, -ENOMEM. On failure nothing of it is left.
 */
DMAMAP_API int dmamap_table_create(struct dmamap_space *space,
	const struct dmamap_table_config *config, struct dmamap_table **table,
	struct dmamap_reason *why);

/**
 * dmamap_table_leaf_sizes() - From now on fill with leaves of these sizes: a
 * bitmap, as in the configuration; the granule always is one of them. What is
 * mapped keeps its leaves.
 */
DMAMAP_API void dmamap_table_leaf_sizes(struct dmamap_table *table, uint64_t leaf_sizes);

/** dmamap_table_destroy() - Its accesses must be gone. NULL is fine. */
DMAMAP_API void dmamap_table_destroy(struct dmamap_table *table);

/**
 * dmamap_table_dirty_start() - From now on remember which leaves devices write
 * to. Nothing is dirty at first; started already, all is clean again.
 * dmamap_table_dirty_stop() ends it, and forgets.
 *
 * A device's write marks the whole leaf, as an IOMMU does: a write that began
 * before the call returned may be remembered or not, one that began after it
 * is. What was not remembered has reached memory when the call returns: it
 * waits for accesses, as dmamap_unmap() does, unless this thread is within one.
 *
 * Writes through host pointers of dmamap_translate() with DMAMAP_WRITE count
 * as writes of the whole range that was asked for; where it fails, of the part
 * before the fault. What is unmapped is forgotten, what is mapped begins clean.
 *
 * While it is on, the first write to each clean leaf goes the slow way; all
 * else is as fast as ever.
 */
DMAMAP_API void dmamap_table_dirty_start(struct dmamap_table *table);
DMAMAP_API void dmamap_table_dirty_stop(struct dmamap_table *table);

/** Leave what is dirty dirty. */
#define DMAMAP_DIRTY_KEEP 1u

/**
 * dmamap_table_dirty_read() - Which leaves with a byte in the range were
 * written to, ascending; they are clean afterwards, without DMAMAP_DIRTY_KEEP.
 * @flags: DMAMAP_DIRTY_KEEP or 0
 * @found: called for each dirty leaf with its first and last IOVA, which may
 *	lie outside the range; with the space's lock held, so it must not call
 *	into the space. NULL: only make clean
 *
 * A write that runs beside it is seen by this read or by a later one, never
 * lost: when leaves have become clean, the call waits for accesses as
 * dmamap_unmap() does, so that whoever copies what was found after it returns
 * has every write that is not found again.
 *
 * The work is in what is mapped, not in the range. Return: 0; -EINVAL last <
 * first, or tracking is off; -EDEADLK without DMAMAP_DIRTY_KEEP, from within an
 * access that this thread has entered: then nothing is read.
 */
DMAMAP_API int dmamap_table_dirty_read(struct dmamap_table *table, uint64_t first, uint64_t last,
	unsigned flags, void (*found)(void *argument, uint64_t first, uint64_t last),
	void *argument);

/** dmamap_table_counters() - A snapshot of one table's work; the areas' fields are 0. */
DMAMAP_API void dmamap_table_counters(struct dmamap_table *table, struct dmamap_counters *counters);

/* ----------------------------------------------------------------- access */

/**
 * dmamap_access_create() - One thread's way through a table. It remembers the
 * last region that it found.
 *
 * An access belongs to the thread that created it; dmamap_access_bind() moves
 * it to another. Unmaps by the one thread that has all of a space's accesses
 * need not wait.
 *
 * Return: 0 or -ENOMEM.
 */
DMAMAP_API int dmamap_access_create(struct dmamap_table *table, struct dmamap_access **access);
/** dmamap_access_destroy() - Outside enter and leave. NULL is fine. */
DMAMAP_API void dmamap_access_destroy(struct dmamap_access *access);
/** dmamap_access_bind() - From now on the calling thread's. Outside enter and leave. */
DMAMAP_API void dmamap_access_bind(struct dmamap_access *access);

/**
 * dmamap_access_enter() - From here to dmamap_access_leave(), segments that
 * this access translates stay valid: an unmap of them waits. Nests. Keep it
 * short, and call nothing that changes a space in between.
 */
DMAMAP_API void dmamap_access_enter(struct dmamap_access *access);
/** dmamap_access_leave() - Segments may be gone from here on. */
DMAMAP_API void dmamap_access_leave(struct dmamap_access *access);

/** struct dmamap_segment - @length bytes of host memory at @host. */
struct dmamap_segment {
	void *host;
	uint64_t length;
};

/**
 * dmamap_translate() - Find the host memory behind an IOVA range.
 * @iova, @length: the range; length 0 gives no segment
 * @prot: what the device is about to do
 * @segments: out: what follows one another in host memory is one segment
 * @n: room at @segments
 *
 * Segments are valid only between enter and leave of @access. Return: how
 * many; -EFAULT not mapped, or a wrap; -EPERM mapped without @prot; -E2BIG
 * more than @n; -EXDEV not this thread's access.
 */
DMAMAP_API int dmamap_translate(struct dmamap_access *access, uint64_t iova, uint64_t length,
	unsigned prot, struct dmamap_segment *segments, unsigned n, struct dmamap_reason *why);

/**
 * dmamap_read() - A device's read: copy from IOVAs into @buffer. Bytes before
 * a fault have been copied, as on a bus.
 *
 * Return: 0; -EFAULT, -EPERM, -EXDEV as dmamap_translate().
 */
DMAMAP_API int dmamap_read(struct dmamap_access *access, uint64_t iova, void *buffer,
	uint64_t length, struct dmamap_reason *why);

/** dmamap_write() - A device's write: copy @buffer to IOVAs; otherwise as dmamap_read(). */
DMAMAP_API int dmamap_write(struct dmamap_access *access, uint64_t iova, const void *buffer,
	uint64_t length, struct dmamap_reason *why);

#ifdef __cplusplus
}
#endif

#endif
