/* SPDX-License-Identifier: MIT */
/*
 * Page table: filling and clearing. See pagetable.h.
 *
 * A run is filled node by node: one descent finds the node, one loop writes
 * all of the run's entries in it. The cost is per leaf, not per call, and the
 * descent is shared by up to a whole node.
 */
#include <errno.h>
#include <string.h>

#include "engine/pagetable.h"

static unsigned floor_log2(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n);
}

static unsigned trailing_zeros(uint64_t n)
{
	return n ? (unsigned)__builtin_ctzll(n) : 64;
}

int pagetable_start(
	struct pagetable *pt, const struct dmamap_table_config *config, struct dmamap_reason *why)
{
	unsigned granule = config->granule_shift ? config->granule_shift : 12;
	unsigned node = config->node_shift ? config->node_shift : granule < 12 ? 12 : granule;
	unsigned iova_bits = config->iova_bits ? config->iova_bits : 64;
	uint64_t sizes = config->leaf_sizes;

	if (granule < 11 || granule > 16)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_format_invalid, EINVAL, "granule shift", granule);
	if (node < 12 || node > 16)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_format_invalid, EINVAL, "node shift", node);
	if (iova_bits < granule || iova_bits > 64)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_format_invalid, EINVAL, "input width", iova_bits);
	if (sizes & (((uint64_t)1 << granule) - 1))
		return DMAMAP_REFUSE(why, &dmamap_reason_format_invalid, EINVAL,
			"leaf size, smaller than its granule,",
			sizes & (((uint64_t)1 << granule) - 1));
	memset(pt, 0, sizeof(*pt));
	pt->granule_shift = (uint8_t)granule;
	pt->bits = (uint8_t)(node - 3);
	pt->output = (uint8_t)config->output;
	pt->last = iova_bits == 64 ? UINT64_MAX : ((uint64_t)1 << iova_bits) - 1;
	if (!sizes)
		for (unsigned shift = granule; shift <= 30; shift += pt->bits)
			sizes |= (uint64_t)1 << shift;
	for (unsigned shift = granule; shift < 64; shift++)
		pt->level_of[shift] = (uint8_t)((shift - granule) / pt->bits);
	pagetable_sizes(pt, sizes);
	pool_start(&pt->pool, node);
	return 0;
}

void pagetable_sizes(struct pagetable *pt, uint64_t sizes)
{
	pt->leaf_sizes = sizes | (uint64_t)1 << pt->granule_shift;
	/* Never taken back: leaves of several items may be there. */
	for (unsigned shift = pt->granule_shift; shift < 64; shift++)
		if (sizes >> shift & 1 && (shift - pt->granule_shift) % pt->bits)
			pt->splits = true;
}

void pagetable_stop(struct pagetable *pt)
{
	pool_stop(&pt->pool);
	pt->root = 0;
}

static void store(uint64_t *entry, uint64_t value)
{
	__atomic_store_n(entry, value, __ATOMIC_RELEASE);
}

typedef uint64_t pair __attribute__((vector_size(16), may_alias));

/*
 * Writes @n entries, the next one @step more than the one before.
 *
 * Two entries go out with each 16-byte store. To a reader an entry still
 * changes at once: x86-64 and arm64 never split an aligned 16-byte vector
 * store within one of its 8-byte halves.
 */
static void store_run(uint64_t *slot, uint64_t n, uint64_t entry, uint64_t step)
{
	uint64_t i = 0;

#ifndef DMAMAP_SANITIZED /* which knows atomic operations only */
	pair two, by = {2 * step, 2 * step};

	if (n && (uintptr_t)slot & 8) {
		store(slot, entry);
		entry += step;
		i = 1;
	}
	two = (pair){entry, entry + step};
	/* What was written before the entries is seen before them. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (; i + 2 <= n; i += 2, two += by)
		*(volatile pair *)&slot[i] = two;
	entry = two[0];
#endif
	for (; i < n; i++, entry += step)
		store(&slot[i], entry);
}

static void set_root(struct pagetable *pt, uint64_t *node, unsigned level)
{
	pt->level = (uint8_t)level;
	store(&pt->root, (uintptr_t)node | pagetable_item_shift(pt, level));
}

/* Puts roots on top until one spans @iova and is at least of @level. */
static int grow_root(struct pagetable *pt, uint64_t iova, unsigned level)
{
	if (!pt->root) {
		uint64_t *node = pool_get(&pt->pool);

		if (!node)
			return -ENOMEM;
		while (!pagetable_spans(pt, level, iova))
			level++;
		set_root(pt, node, level);
		return 0;
	}
	while (pt->level < level || !pagetable_spans(pt, pt->level, iova)) {
		uint64_t *node = pool_get(&pt->pool);

		if (!node)
			return -ENOMEM;
		node[0] = (uintptr_t)pagetable_node(pt->root) | PT_TABLE;
		*pool_word(&pt->pool, node) = 1;
		set_root(pt, node, pt->level + 1u);
	}
	return 0;
}

/* The node at @level that holds @iova's item, with the nodes above it. */
static uint64_t *make_node(struct pagetable *pt, uint64_t iova, unsigned level)
{
	uint64_t *node, *child;
	unsigned l;

	if (!pt->root || pt->level < level || !pagetable_spans(pt, pt->level, iova))
		if (grow_root(pt, iova, level))
			return NULL;
	node = pagetable_node(pt->root);
	for (l = pt->level; l > level; l--) {
		uint64_t *entry = &node[pagetable_index(pt, l, iova)];

		if (*entry) {
			node = pagetable_node(*entry);
			continue;
		}
		child = pool_get(&pt->pool);
		if (!child)
			return NULL;
		store(entry, (uintptr_t)child | PT_TABLE);
		++*pool_word(&pt->pool, node);
		node = child;
	}
	return node;
}

/* The largest leaf that fits at @iova, of at most 2^@largest bytes. */
static unsigned best_leaf(
	const struct pagetable *pt, uint64_t iova, uint64_t last, uint64_t host, unsigned largest)
{
	uint64_t place = pt->output == DMAMAP_OUTPUT_HARDWARE ? iova | host : iova;
	uint64_t room = last - iova;
	unsigned limit = room == UINT64_MAX ? 63 : floor_log2(room + 1);
	unsigned aligned = trailing_zeros(place);

	if (limit > aligned)
		limit = aligned;
	if (limit > largest)
		limit = largest;
	return floor_log2(pt->leaf_sizes & (((uint64_t)2 << limit) - 1));
}

/*
 * The last IOVA up to which leaves of 2^@shift bytes go: where a larger size
 * begins to fit, or the node ends, or the run.
 */
static uint64_t run_end(const struct pagetable *pt, uint64_t iova, uint64_t last, uint64_t host,
	unsigned shift, unsigned largest)
{
	uint64_t larger = shift == 63 ? 0 : pt->leaf_sizes >> (shift + 1);
	unsigned node_shift = pagetable_item_shift(pt, pt->level_of[shift] + 1u);
	uint64_t end = last;

	if (node_shift < 64) {
		uint64_t node_end = iova | (((uint64_t)1 << node_shift) - 1);

		end = node_end < end ? node_end : end;
	}
	if (larger) {
		unsigned next = shift + 1 + trailing_zeros(larger);
		uint64_t mask = ((uint64_t)1 << next) - 1;
		bool fits = pt->output == DMAMAP_OUTPUT_HOST || !((iova ^ host) & mask);

		if (fits && next <= largest && (iova | mask) < end)
			end = iova | mask;
	}
	return end;
}

int pagetable_map(struct pagetable *pt, uint64_t iova, uint64_t last, uint64_t host, unsigned prot,
	unsigned largest)
{
	if (pt->tracks && prot & PT_WRITE)
		prot ^= PT_WRITE ^ PT_CLEAN;
	for (;;) {
		unsigned shift = best_leaf(pt, iova, last, host, largest);
		unsigned level = pt->level_of[shift];
		unsigned item_shift = pagetable_item_shift(pt, level);
		unsigned split = shift - item_shift;
		uint64_t end = run_end(pt, iova, last, host, shift, largest);
		uint64_t leaves = ((end - iova) >> shift) + 1;
		uint64_t items, entry, step, *slot, *node;

		/* A tail too short for one more leaf of this size is the next turn's. */
		if ((end - iova + 1) & (((uint64_t)1 << shift) - 1) && end - iova != UINT64_MAX)
			leaves--;
		items = leaves << split;
		node = make_node(pt, iova, level);
		if (!node)
			return -ENOMEM;
		slot = &node[pagetable_index(pt, level, iova)];
		entry = host << PT_HOST_SHIFT | (split + 1) << PT_LEAF_SHIFT | prot;
		step = (uint64_t)1 << item_shift << PT_HOST_SHIFT;
		store_run(slot, items, entry, step);
		*pool_word(&pt->pool, node) += items;
		pt->leaves[shift] += leaves;
		iova += leaves << shift;
		if (iova - 1 == last)
			return 0;
		host += leaves << shift;
	}
}

/* Puts a node that readers may still see on a list that hangs on the nodes' words. */
static void retire(struct pagetable *pt, uint64_t *node, void **retired)
{
	*pool_word(&pt->pool, node) = (uintptr_t)*retired;
	*retired = node;
}

/* Clears leaves of any kind from @slot on; returns how many entries were in use. */
static unsigned clear_mixed(struct pagetable *pt, uint64_t *slot, unsigned n, unsigned level)
{
	unsigned item_shift = pagetable_item_shift(pt, level);
	unsigned cleared = 0, run = 0, split = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t entry = pagetable_peek(&slot[i]);
		unsigned k = pagetable_leaf_items(entry);

		if (!entry)
			continue;
		if (k != split) {
			pt->cleared[item_shift + split] += run >> split;
			cleared += run;
			run = 0;
			split = k;
		}
		store(&slot[i], 0);
		run++;
	}
	pt->cleared[item_shift + split] += run >> split;
	return cleared + run;
}

/* Clears entries that are leaves of one item or nothing; returns how many were in use. */
static unsigned clear_run(uint64_t *slot, unsigned n)
{
	const uint64_t one_item = (uint64_t)1 << PT_LEAF_SHIFT;
	uint64_t used = 0;
	unsigned i = 0;

#ifndef DMAMAP_SANITIZED /* see store_run() */
	pair counts = {0, 0};

	if (n && (uintptr_t)slot & 8) {
		used = slot[0] / one_item & 1;
		store(&slot[0], 0);
		i = 1;
	}
	for (; i + 2 <= n; i += 2) {
		counts += *(pair *)&slot[i] / one_item & 1;
		*(volatile pair *)&slot[i] = (pair){0, 0};
	}
	used += counts[0] + counts[1];
#endif
	for (; i < n; i++) {
		used += pagetable_peek(&slot[i]) / one_item & 1;
		store(&slot[i], 0);
	}
	return (unsigned)used;
}

static unsigned clear_leaves(struct pagetable *pt, uint64_t *slot, unsigned n, unsigned level)
{
	unsigned used;

	if (pt->splits)
		return clear_mixed(pt, slot, n, level);
	used = clear_run(slot, n);
	pt->cleared[pagetable_item_shift(pt, level)] += used;
	return used;
}

static void clear(struct pagetable *pt, uint64_t *node, unsigned level, uint64_t first,
	uint64_t last, void **retired)
{
	unsigned from = pagetable_index(pt, level, first);
	unsigned to = pagetable_index(pt, level, last);
	uintptr_t *live = pool_word(&pt->pool, node);

	if (!*live)
		return;
	if (!level) {
		*live -= clear_leaves(pt, &node[from], to - from + 1, 0);
		return;
	}
	/* Only the bits of first and last below this level's item matter further down. */
	for (unsigned i = from; i <= to; i++) {
		uint64_t *child;
		unsigned run = 0;

		while (i + run <= to && pagetable_peek(&node[i + run]) & PT_LEAF)
			run++;
		if (run) {
			*live -= clear_leaves(pt, &node[i], run, level);
			i += run - 1;
			continue;
		}
		if (!node[i])
			continue;
		child = pagetable_node(node[i]);
		clear(pt, child, level - 1, i == from ? first : 0, i == to ? last : UINT64_MAX,
			retired);
		if (*pool_word(&pt->pool, child))
			continue;
		store(&node[i], 0);
		retire(pt, child, retired);
		--*live;
	}
}

/* The lowest node on the way to @iova, which the root spans; NULL: there is none. */
static uint64_t *lowest_node(const struct pagetable *pt, uint64_t iova)
{
	uint64_t entry = pt->root, mask = ((uint64_t)1 << pt->bits) - 1;

	for (unsigned shift = entry & 63; shift != pt->granule_shift; shift -= pt->bits) {
		entry = pagetable_peek(&pagetable_node(entry)[iova >> shift & mask]);
		if (!(entry & PT_TABLE))
			return NULL;
	}
	return pagetable_node(entry);
}

/*
 * The usual case, without recursion: leaves in one node of the lowest level,
 * which keeps others. False: there is more to do, or all of it.
 */
static bool clear_within_node(struct pagetable *pt, uint64_t first, uint64_t last)
{
	uint64_t *node;
	unsigned from, n;

	if ((first ^ last) >> pt->granule_shift >> pt->bits)
		return false;
	node = lowest_node(pt, first);
	if (!node)
		return false;
	from = pagetable_index(pt, 0, first);
	n = pagetable_index(pt, 0, last) - from + 1;
	*pool_word(&pt->pool, node) -= clear_leaves(pt, &node[from], n, 0);
	return *pool_word(&pt->pool, node) != 0;
}

void pagetable_fetch(const struct pagetable *pt, uint64_t iova)
{
	uint64_t *node;

	if (!pt->root || !pagetable_spans(pt, pt->level, iova))
		return;
	node = lowest_node(pt, iova);
	if (node)
		__builtin_prefetch(&node[pagetable_index(pt, 0, iova)], 1);
}

void pagetable_unmap(struct pagetable *pt, uint64_t first, uint64_t last, void **retired)
{
	unsigned level = pt->level;
	uint64_t *root = pagetable_node(pt->root);

	if (!root || !pagetable_spans(pt, level, first))
		return;
	if (!pagetable_spans(pt, level, last))
		last = ((uint64_t)1 << pagetable_item_shift(pt, level + 1)) - 1;
	if (!clear_within_node(pt, first, last)) {
		clear(pt, root, level, first, last, retired);
		if (!*pool_word(&pt->pool, root)) {
			store(&pt->root, 0);
			retire(pt, root, retired);
		}
	}
	/* Last: a reader that sees the new generation sees no leaf of the old one. */
	store(&pt->generation, pt->generation + 1);
}

void pagetable_free(void *retired)
{
	while (retired) {
		struct pool *pool = pool_of(retired);
		uintptr_t *word = pool_word(pool, retired);
		void *next = (void *)*word;

		*word = 0;
		pool_put(pool, retired);
		retired = next;
	}
}
