/* SPDX-License-Identifier: MIT */
/*
 * Access: how a device's thread reaches memory, beside every change and
 * without a lock.
 *
 * A read section (RCU) brackets each use. Whoever takes a mapping away first
 * clears its leaves, then waits for the sections that were open: what a
 * section finds stays valid until it ends.
 *
 * The last run that was found is remembered with the table's generation,
 * which grows with each unmap. A section that still sees the old generation
 * was open before the unmap, which then waits for it; one that starts later
 * sees the new generation and looks again.
 *
 * A write to a clean leaf (dirty.c) finds that the leaf does not allow it, and
 * marks it in walk(). Nothing else here knows that writes are tracked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rcu.h"
#include "engine/space.h"

#ifdef RCU_TSAN
char rcu_readers_done, rcu_writer_done;
#endif

/* Who all accesses belong to. Under the space's lock. */
static void set_owner(struct dmamap_space *space)
{
	const void *owner = NULL;
	bool one = true;

	space->accesses = 0;
	for (struct dmamap_table *table = space->tables; table; table = table->next) {
		for (struct dmamap_access *access = table->accesses; access;
			access = access->next) {
			one = one && (!owner || owner == access->owner);
			owner = access->owner;
			space->accesses++;
		}
	}
	space->owner = one ? owner : NULL;
}

int dmamap_access_create(struct dmamap_table *table, struct dmamap_access **out)
{
	struct dmamap_access *access = engine_calloc(1, sizeof(*access));

	if (!access)
		return -ENOMEM;
	access->table = table;
	access->generation = UINT64_MAX; /* nothing is remembered */
	access->owner = thread_id();
	pthread_mutex_lock(&table->space->lock);
	access->next = table->accesses;
	if (access->next)
		access->next->prev = access;
	table->accesses = access;
	set_owner(table->space);
	pthread_mutex_unlock(&table->space->lock);
	*out = access;
	return 0;
}

void dmamap_access_destroy(struct dmamap_access *access)
{
	struct dmamap_space *space;

	if (!access)
		return;
	space = access->table->space;
	pthread_mutex_lock(&space->lock);
	if (access->prev)
		access->prev->next = access->next;
	else
		access->table->accesses = access->next;
	if (access->next)
		access->next->prev = access->prev;
	set_owner(space);
	pthread_mutex_unlock(&space->lock);
	free(access);
}

void dmamap_access_bind(struct dmamap_access *access)
{
	struct dmamap_space *space = access->table->space;

	pthread_mutex_lock(&space->lock);
	access->owner = thread_id();
	set_owner(space);
	pthread_mutex_unlock(&space->lock);
}

void dmamap_access_enter(struct dmamap_access *access)
{
	if (!access->depth++)
		read_section_enter();
}

void dmamap_access_leave(struct dmamap_access *access)
{
	if (!--access->depth)
		read_section_leave();
}

static void remember(struct dmamap_access *access, uint64_t generation, uint64_t first,
	uint64_t last, uint64_t entry)
{
	access->first = first;
	access->span = last - first;
	access->host = entry >> PT_HOST_SHIFT;
	access->prot = entry & PT_PROT;
	access->generation = generation;
}

/* Remembers the run of host memory from @iova's leaf on, up to @last, that the page table gives. */
static int walk(struct dmamap_access *access, uint64_t generation, uint64_t iova, uint64_t last,
	unsigned prot, struct dmamap_reason *why)
{
	const struct pagetable *pt = &access->table->pt;
	struct pagetable_hit hit;
	uint64_t item, end, next;
	unsigned allowed;

	do {
		if (!pagetable_walk(pt, iova, &hit))
			return DMAMAP_REFUSE(why, &dmamap_reason_not_mapped, EFAULT, NULL, iova);
		allowed = pagetable_prot(hit.entry);
		if (prot & ~allowed)
			return DMAMAP_REFUSE(
				why, &dmamap_reason_prot, EPERM, NULL, iova, allowed, prot);
	} while (prot & ~(unsigned)hit.entry && !pagetable_mark(&hit));
	item = (uint64_t)1 << hit.shift;
	end = iova | (item - 1);
	/* Neighbours that go on where this leaf ends are one run with it. */
	next = hit.entry + (item << PT_HOST_SHIFT);
	while (end < last && ++hit.index < 1u << pt->bits) {
		uint64_t entry = __atomic_load_n(&hit.node[hit.index], __ATOMIC_ACQUIRE);

		if ((entry ^ next) & ~(uint64_t)PT_LEAF)
			break;
		end += item;
		next = entry + (item << PT_HOST_SHIFT);
	}
	remember(access, generation, iova & ~(item - 1), end, hit.entry);
	return 0;
}

/*
 * Whether the remembered run holds @iova, may be used so, and is still true.
 * The distance is compared, not both ends: when IOVAs come at random, nearly
 * all are outside, but on either side as often as on the other, which no
 * branch predictor can know.
 */
static inline bool remembered(
	const struct dmamap_access *access, uint64_t generation, uint64_t iova, unsigned prot)
{
	return iova - access->first <= access->span && access->generation == generation &&
	       !(prot & ~access->prot);
}

/* The last IOVA of the remembered run. */
static inline uint64_t remembered_last(const struct dmamap_access *access)
{
	return access->first + access->span;
}

static inline uint64_t current_generation(const struct dmamap_access *access)
{
	return __atomic_load_n(&access->table->pt.generation, __ATOMIC_ACQUIRE);
}

/* Makes the remembered run one that holds @iova and allows @prot. */
static inline int find(struct dmamap_access *access, uint64_t iova, uint64_t last, unsigned prot,
	struct dmamap_reason *why)
{
	uint64_t generation = current_generation(access);

	if (remembered(access, generation, iova, prot))
		return 0;
	return walk(access, generation, iova, last, prot, why);
}

static int translate_more(struct dmamap_access *access, uint64_t iova, uint64_t last, unsigned prot,
	struct dmamap_segment *segments, unsigned n, struct dmamap_reason *why)
{
	unsigned used = 0;

	for (;;) {
		int rc = find(access, iova, last, prot, why);
		uint64_t end, host;

		if (rc)
			return rc;
		end = remembered_last(access) < last ? remembered_last(access) : last;
		host = access->host + (iova - access->first);
		if (used &&
			(uintptr_t)segments[used - 1].host + segments[used - 1].length == host) {
			segments[used - 1].length += end - iova + 1;
		} else {
			if (used == n)
				return DMAMAP_REFUSE(why, &dmamap_reason_segments, E2BIG, NULL, n);
			segments[used++] =
				(struct dmamap_segment){(void *)(uintptr_t)host, end - iova + 1};
		}
		if (end == last)
			return (int)used;
		iova = end + 1;
	}
}

static int not_ours(struct dmamap_reason *why)
{
	return DMAMAP_REFUSE(why, &dmamap_reason_other_thread, EXDEV, NULL, 0);
}

static int wraps(uint64_t iova, uint64_t length, struct dmamap_reason *why)
{
	return DMAMAP_REFUSE(why, &dmamap_reason_backwards, EFAULT, NULL, iova, iova + length - 1);
}

/* All that is not one remembered run. */
static __attribute__((noinline)) int translate_slow(struct dmamap_access *access, uint64_t iova,
	uint64_t length, unsigned prot, struct dmamap_segment *segments, unsigned n)
{
	struct dmamap_reason *why = access->why;
	uint64_t last = iova + length - 1;
	int rc;

	if (!length)
		return 0;
	if (last < iova)
		return wraps(iova, length, why);
	dmamap_access_enter(access);
	rc = translate_more(access, iova, last, prot, segments, n, why);
	dmamap_access_leave(access);
	return rc;
}

int dmamap_translate(struct dmamap_access *access, uint64_t iova, uint64_t length, unsigned prot,
	struct dmamap_segment *segments, unsigned n, struct dmamap_reason *why)
{
	uint64_t generation = current_generation(access);
	uint64_t skip = iova - access->first;
	struct pagetable_hit hit;

	if (__builtin_expect(access->owner != thread_id(), 0))
		return not_ours(why);
	/* The page table is not read here, so that no section of our own is needed. */
	if (remembered(access, generation, iova, prot)) {
		if (__builtin_expect(length - 1 > access->span - skip || !n, 0))
			goto slow;
		segments[0].host = (void *)(uintptr_t)(access->host + skip);
		segments[0].length = length;
		return 1;
	}
	/* One leaf has all of it, and the caller has entered: what a miss usually is. */
	if (__builtin_expect(
		    access->depth && n && pagetable_walk(&access->table->pt, iova, &hit), 1)) {
		uint64_t mask = ((uint64_t)1 << hit.shift) - 1;

		if (__builtin_expect(length - 1 > (~iova & mask) || prot & ~(unsigned)hit.entry, 0))
			goto slow;
		remember(access, generation, iova & ~mask, iova | mask, hit.entry);
		segments[0].host =
			(void *)(uintptr_t)((hit.entry >> PT_HOST_SHIFT) + (iova & mask));
		segments[0].length = length;
		return 1;
	}
slow:
	/* Not an argument: one more than there are registers would cost the fast way its own. */
	access->why = why;
	return translate_slow(access, iova, length, prot, segments, n);
}

/* Copies between IOVAs and @buffer; @write: towards the IOVAs. */
static int copy(struct dmamap_access *access, uint64_t iova, char *buffer, uint64_t length,
	bool write, struct dmamap_reason *why)
{
	uint64_t last = iova + length - 1;
	int rc;

	if (access->owner != thread_id())
		return not_ours(why);
	if (!length)
		return 0;
	if (last < iova)
		return wraps(iova, length, why);
	dmamap_access_enter(access);
	for (;;) {
		uint64_t end;
		void *host;

		rc = find(access, iova, last, write ? DMAMAP_WRITE : DMAMAP_READ, why);
		if (rc)
			break;
		end = remembered_last(access) < last ? remembered_last(access) : last;
		host = (void *)(uintptr_t)(access->host + (iova - access->first));
		if (write)
			memcpy(host, buffer, end - iova + 1);
		else
			memcpy(buffer, host, end - iova + 1);
		if (end == last)
			break;
		buffer += end - iova + 1;
		iova = end + 1;
	}
	dmamap_access_leave(access);
	return rc;
}

int dmamap_read(struct dmamap_access *access, uint64_t iova, void *buffer, uint64_t length,
	struct dmamap_reason *why)
{
	return copy(access, iova, buffer, length, false, why);
}

int dmamap_write(struct dmamap_access *access, uint64_t iova, const void *buffer, uint64_t length,
	struct dmamap_reason *why)
{
	return copy(access, iova, (char *)buffer, length, true, why);
}
