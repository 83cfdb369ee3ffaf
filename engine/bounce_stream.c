/* SPDX-License-Identifier: MIT */
/*
 * Streaming DMA: a mapping is a run of bounce units and a copy.
 *
 * Every unit of a mapping knows where the driver's bytes are and how many are
 * left, so that a sync may begin at any of them; the first one says that it is
 * the first, so that only a whole mapping can be unmapped. Units are next to
 * one another in the buffer and in the driver's memory, so that there is one
 * copy, whatever the mapping's size.
 *
 * When a mapping ends its bytes are cleared. This keeps units that are free all
 * zero (but for what the device wrote), so nothing need be cleared at the start.
 */
#include <errno.h>
#include <string.h>

#include "engine/bounce_domain.h"
#include "engine/rcu.h"

/* Out of the way of calls that go well. */
#define RARE __attribute__((noinline, cold))

static inline void gate_enter(struct dmamap_bounce *bounce)
{
	read_section_enter();
	while (__builtin_expect(__atomic_load_n(&bounce->gate_closed, __ATOMIC_ACQUIRE), 0)) {
		read_section_leave();
		gate_wait(bounce);
		read_section_enter();
	}
}

static inline void gate_leave(void)
{
	read_section_leave();
}

static RARE int refuse_request(
	uint64_t size, unsigned prot, unsigned flags, struct dmamap_reason *why)
{
	return DMAMAP_REFUSE(why, &dmamap_reason_bounce_request, EINVAL, NULL, size, prot, flags);
}

static RARE int refuse_place(const struct dmamap_reason_kind *kind, uint64_t iova, uint64_t size,
	struct dmamap_reason *why)
{
	return DMAMAP_REFUSE(why, kind, EINVAL, NULL, iova, size);
}

static RARE int refuse_within_access(struct dmamap_reason *why)
{
	return DMAMAP_REFUSE(why, &dmamap_reason_within_access, EDEADLK, NULL, 0);
}

static RARE int refuse_full(
	struct dmamap_bounce *bounce, uint64_t size, uint64_t n, struct dmamap_reason *why)
{
	struct iova_counts counts = {0};

	n = iova_rounded(n);
	__atomic_add_fetch(&bounce->full, 1, __ATOMIC_RELAXED);
	if (why)
		iova_cache_counts(&bounce->stream, &counts);
	return DMAMAP_REFUSE(why, &dmamap_reason_bounce_full, ENOSPC, NULL, size, n,
		1ull << bounce->unit_shift, counts.live,
		(bounce->bounce_size >> bounce->unit_shift) - 1);
}

static RARE int refuse_too_large(
	struct dmamap_bounce *bounce, uint64_t size, struct dmamap_reason *why)
{
	__atomic_add_fetch(&bounce->too_large, 1, __ATOMIC_RELAXED);
	return DMAMAP_REFUSE(why, &dmamap_reason_bounce_too_large, E2BIG, NULL, size,
		bounce->largest << bounce->unit_shift, bounce->bounce_size);
}

static inline void mark_units(struct dmamap_bounce *bounce, uint64_t first, char *buffer,
	uint64_t size, uint64_t low_bits)
{
	uint64_t unit = (uint64_t)1 << bounce->unit_shift;

	for (;; first++) {
		bounce->unit[first].buffer = buffer;
		unit_set_state(bounce, first, size << UNIT_SHIFT | low_bits);
		if (size <= unit)
			break;
		buffer += unit;
		size -= unit;
		low_bits &= ~UNIT_HEAD;
	}
}

/* Memory for the pages of a mapping, from @page on, the first that has none. */
static RARE int add_pages(
	struct dmamap_bounce *bounce, uint64_t page, char *buffer, uint64_t iova, uint64_t size)
{
	uint64_t last = (iova + size - 1) >> bounce->page_shift;

	page = pages_allocate(bounce, page, last);
	if (page > last)
		return 0;
	/* Marked, but neither to be unmapped nor copied: without HEAD and access. */
	if (page > iova >> bounce->page_shift && bounce->quirks & DMAMAP_BOUNCE_QUIRK_FAILED_MAP)
		mark_units(bounce, iova >> bounce->unit_shift, buffer,
			(page << bounce->page_shift) - iova, 0);
	return -ENOMEM;
}

static inline int get_pages(
	struct dmamap_bounce *bounce, char *buffer, uint64_t iova, uint64_t size)
{
	uint64_t page = iova >> bounce->page_shift;
	uint64_t last = (iova + size - 1) >> bounce->page_shift;

	for (; page <= last; page++)
		if (__builtin_expect(!__atomic_load_n(&bounce->page[page], __ATOMIC_ACQUIRE), 0))
			return add_pages(bounce, page, buffer, iova, size);
	return 0;
}

/* The IOVA of a map that failed goes back, and nothing was copied. */
static RARE int put_back(
	struct dmamap_bounce *bounce, int rc, uint64_t first, uint64_t n, uint64_t copied)
{
	__atomic_add_fetch(&bounce->no_memory, 1, __ATOMIC_RELAXED);
	iova_cache_note(&bounce->stream, -copied, 0);
	iova_cache_put(&bounce->stream, first, n, 0);
	return rc;
}

static RARE int refuse_memory(uint64_t size, struct dmamap_reason *why)
{
	return DMAMAP_REFUSE(why, &dmamap_reason_no_memory, ENOMEM, "bounce pages", size);
}

int dmamap_bounce_map(struct dmamap_bounce *bounce, void *buffer, uint64_t size, unsigned prot,
	unsigned flags, uint64_t *iova, struct dmamap_reason *why)
{
	uint64_t n = ((size - 1) >> bounce->unit_shift) + 1, first, at;
	uint64_t copied = prot & DMAMAP_READ && !(flags & DMAMAP_BOUNCE_SKIP_SYNC) ? size : 0;
	int rc;

	if (!size || prot - 1 > 2 || flags & ~DMAMAP_BOUNCE_SKIP_SYNC)
		return refuse_request(size, prot, flags, why);
	if (urcu_bp_read_ongoing())
		return refuse_within_access(why);
	if (n > bounce->largest)
		return refuse_too_large(bounce, size, why);
	if (!iova_cache_get(&bounce->stream, n, copied, &first))
		return refuse_full(bounce, size, n, why);
	at = first << bounce->unit_shift;
	if (!__atomic_load_n(&bounce->announced, __ATOMIC_ACQUIRE)) {
		rc = iotlb_announce(bounce, why);
		if (rc)
			return put_back(bounce, rc, first, n, copied);
	}
	gate_enter(bounce);
	rc = get_pages(bounce, buffer, at, size);
	if (rc) {
		gate_leave();
		return put_back(bounce, refuse_memory(size, why), first, n, copied);
	}
	mark_units(bounce, first, buffer, size, UNIT_HEAD | prot);
	if (copied)
		memcpy(bounce->base + at, buffer, size);
	gate_leave();
	*iova = at;
	return 0;
}

int dmamap_bounce_unmap(struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, unsigned flags,
	struct dmamap_reason *why)
{
	uint64_t first = iova >> bounce->unit_shift, n, state, copied;

	if (flags & ~DMAMAP_BOUNCE_SKIP_SYNC)
		return refuse_request(size, 0, flags, why);
	if (urcu_bp_read_ongoing())
		return refuse_within_access(why);
	if (iova >= bounce->bounce_size || size > bounce->bounce_size ||
		iova != first << bounce->unit_shift)
		goto not_mapped;
	gate_enter(bounce);
	state = unit_state(bounce, first);
	if ((state & ~UNIT_PROT) != (size << UNIT_SHIFT | UNIT_HEAD)) {
		gate_leave();
		goto not_mapped;
	}
	copied = state & DMAMAP_WRITE && !(flags & DMAMAP_BOUNCE_SKIP_SYNC) ? size : 0;
	if (copied)
		memcpy(bounce->unit[first].buffer, bounce->base + iova, size);
	if (bounce->scrub)
		memset(bounce->base + iova, 0, size);
	n = ((size - 1) >> bounce->unit_shift) + 1;
	for (uint64_t i = 0; i < n; i++)
		unit_set_state(bounce, first + i, 0);
	gate_leave();
	iova_cache_put(&bounce->stream, first, n, copied);
	return 0;
not_mapped:
	return refuse_place(&dmamap_reason_bounce_not_mapped, iova, size, why);
}

/* Copies what lies in one mapping, if it allows @access. */
static int sync_range(struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, unsigned access,
	struct dmamap_reason *why)
{
	uint64_t offset = iova & (((uint64_t)1 << bounce->unit_shift) - 1);
	struct unit *unit;
	uint64_t state, left;

	if (urcu_bp_read_ongoing())
		return refuse_within_access(why);
	if (iova >= bounce->bounce_size)
		return 0;
	unit = &bounce->unit[iova >> bounce->unit_shift];
	gate_enter(bounce);
	state = unit_state(bounce, iova >> bounce->unit_shift);
	left = state >> UNIT_SHIFT;
	if (!(state & UNIT_PROT) || !size || offset >= left || size > left - offset) {
		gate_leave();
		return refuse_place(&dmamap_reason_bounce_past_mapping, iova, size, why);
	}
	if (state & access & DMAMAP_READ)
		memcpy(bounce->base + iova, unit->buffer + offset, size);
	else if (state & access & DMAMAP_WRITE)
		memcpy(unit->buffer + offset, bounce->base + iova, size);
	gate_leave();
	if (state & access)
		iova_cache_note(&bounce->stream, access & DMAMAP_READ ? size : 0,
			access & DMAMAP_WRITE ? size : 0);
	return 0;
}

int dmamap_bounce_sync_for_device(
	struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, struct dmamap_reason *why)
{
	return sync_range(bounce, iova, size, DMAMAP_READ, why);
}

int dmamap_bounce_sync_for_cpu(
	struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, struct dmamap_reason *why)
{
	return sync_range(bounce, iova, size, DMAMAP_WRITE, why);
}
