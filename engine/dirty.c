/* SPDX-License-Identifier: MIT */
/*
 * Dirty tracking: which leaves devices have written to.
 *
 * A leaf that may be written to has PT_WRITE; while its table is tracked, a
 * leaf that was not written to has PT_CLEAN instead. A write to it then misses
 * whatever an access remembers and fails the fast look into the page table, as
 * a write to read-only memory does; the slow way, walk() in access.c, puts
 * PT_WRITE back and so marks the leaf. Later writes find PT_WRITE and are as
 * fast as ever. So tracking costs nothing while it is off, and one slow
 * translation for each leaf that becomes dirty while it is on.
 *
 * A leaf of several items is marked item by item, and is dirty when one of
 * them is.
 *
 * Races. All that is here holds the space's lock, as maps and unmaps do; only
 * marking does not. It is one compare-and-swap of an entry that was found, from
 * clean to dirty.
 *
 *	Mark and unmap. Unmapping stores 0. A mark before it is overwritten; a
 *	mark after it fails, and the writer looks again and finds nothing. A
 *	cleared leaf cannot come back. Where the same leaf was mapped again in
 *	between, it is the new one that is written to, and marked.
 *
 *	Write and clean. Marking comes before the bytes are written, so a mark
 *	may be read and cleaned while its write is still to come. Cleaning
 *	therefore ends as unmapping does: leaves first, then the generation, so
 *	that no remembered run allows a write any more, then a wait for the read
 *	sections that were open. When it returns, what was marked before is in
 *	memory, and what is written later marks again: whoever copies the memory
 *	after the call misses nothing. This also covers segments of
 *	dmamap_translate(), which are written to until the section ends.
 *
 *	Write and start. Starting cleans every leaf in the same way. A write
 *	without a mark has reached memory when it returns.
 *
 *	Write and stop. Stopping turns clean into writable, as marking does: who
 *	comes first does not matter. Remembered runs only allow too little.
 *
 *	Cleaning needs no compare-and-swap: it changes dirty entries only, and
 *	marking changes clean ones only. Nor does stopping, see there.
 */
#include <errno.h>

#include "engine/rcu.h"
#include "engine/space.h"

#define ONE_ITEM (1u << PT_LEAF_SHIFT)

/* A walk over leaves that puts bit @to in place of @from in their entries. */
struct sweep {
	const struct pagetable *pt;
	unsigned from, to;
	bool changed;
	void (*found)(void *argument, uint64_t first, uint64_t last); /* NULL: nobody asks */
	void *argument;
};

/* The @n entries of one leaf; whether one of them has the bit. */
static bool sweep_leaf(const struct sweep *sweep, uint64_t *slot, unsigned n)
{
	bool has = false;

	for (unsigned i = 0; i < n; i++) {
		uint64_t entry = __atomic_load_n(&slot[i], __ATOMIC_ACQUIRE);

		if (!(entry & sweep->from))
			continue;
		has = true;
		if (sweep->to != sweep->from)
			__atomic_store_n(
				&slot[i], entry ^ sweep->from ^ sweep->to, __ATOMIC_RELEASE);
	}
	return has;
}

/*
 * @base is the node's first IOVA. Of @first and @last only this level's index
 * and the bits below it matter.
 */
static void sweep_node(struct sweep *sweep, uint64_t *node, unsigned level, uint64_t base,
	uint64_t first, uint64_t last)
{
	unsigned from = pagetable_index(sweep->pt, level, first);
	unsigned to = pagetable_index(sweep->pt, level, last);
	unsigned shift = pagetable_item_shift(sweep->pt, level);
	unsigned next;

	for (unsigned i = from; i <= to; i = next) {
		uint64_t entry = pagetable_peek(&node[i]);
		unsigned items;

		next = i + 1;
		/* Most of a large table: nothing, or a leaf of one item without the bit. */
		if (!(entry & (PT_TABLE | sweep->from)) && (entry & PT_LEAF) <= ONE_ITEM)
			continue;
		if (entry & PT_TABLE) {
			sweep_node(sweep, pagetable_node(entry), level - 1,
				base + ((uint64_t)i << shift), i == from ? first : 0,
				i == to ? last : UINT64_MAX);
			continue;
		}
		/* The whole leaf, also where the range begins or ends inside. */
		items = 1u << pagetable_leaf_items(entry);
		i &= ~(items - 1);
		next = i + items;
		if (!sweep_leaf(sweep, &node[i], items))
			continue;
		sweep->changed = sweep->to != sweep->from;
		if (sweep->found)
			sweep->found(sweep->argument, base + ((uint64_t)i << shift),
				base + ((uint64_t)next << shift) - 1);
	}
}

static void sweep_range(struct sweep *sweep, uint64_t first, uint64_t last)
{
	const struct pagetable *pt = sweep->pt;

	if (!pt->root || !pagetable_spans(pt, pt->level, first))
		return;
	if (!pagetable_spans(pt, pt->level, last))
		last = ((uint64_t)1 << pagetable_item_shift(pt, pt->level + 1u)) - 1;
	sweep_node(sweep, pagetable_node(pt->root), pt->level, 0, first, last);
}

/* Leaves of @table have become clean: from here on no access writes without a mark. Unlocks. */
static void settle(struct dmamap_table *table, bool cleaned)
{
	struct dmamap_space *space = table->space;
	bool waits = cleaned && others_read(space) && !urcu_bp_read_ongoing();

	if (cleaned)
		__atomic_store_n(&table->pt.generation, table->pt.generation + 1, __ATOMIC_RELEASE);
	space->waits += waits;
	pthread_mutex_unlock(&space->lock);
	if (waits)
		read_sections_wait();
}

void dmamap_table_dirty_start(struct dmamap_table *table)
{
	struct sweep sweep = {.pt = &table->pt, .from = PT_WRITE, .to = PT_CLEAN};

	pthread_mutex_lock(&table->space->lock);
	table->pt.tracks = true;
	sweep_range(&sweep, 0, UINT64_MAX);
	settle(table, sweep.changed);
}

void dmamap_table_dirty_stop(struct dmamap_table *table)
{
	struct sweep sweep = {.pt = &table->pt, .from = PT_CLEAN, .to = PT_WRITE};

	pthread_mutex_lock(&table->space->lock);
	table->pt.tracks = false;
	/* A mark between an entry's load and its store wrote the same value. */
	sweep_range(&sweep, 0, UINT64_MAX);
	pthread_mutex_unlock(&table->space->lock);
}

int dmamap_table_dirty_read(struct dmamap_table *table, uint64_t first, uint64_t last,
	unsigned flags, void (*found)(void *argument, uint64_t first, uint64_t last),
	void *argument)
{
	bool keep = flags & DMAMAP_DIRTY_KEEP;
	struct sweep sweep = {
		.pt = &table->pt,
		.from = PT_WRITE,
		.to = keep ? PT_WRITE : PT_CLEAN,
		.found = found,
		.argument = argument,
	};
	int rc = 0;

	if (last < first)
		return -EINVAL;
	pthread_mutex_lock(&table->space->lock);
	if (!table->pt.tracks)
		rc = -EINVAL;
	else if (!keep && table->space->accesses && urcu_bp_read_ongoing())
		rc = -EDEADLK;
	else
		sweep_range(&sweep, first, last);
	settle(table, sweep.changed);
	return rc;
}
