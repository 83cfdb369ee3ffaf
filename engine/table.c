/* SPDX-License-Identifier: MIT */
/*
 * Tables of a space: how an area's memory becomes leaves, and the life of
 * spaces and tables.
 *
 * Filling asks the memory for runs (each question is counted as a look-up) and
 * joins runs that follow one another, so that a leaf may be larger than what
 * one look-up found: a BAR that is found page by page still ends in the
 * largest leaves that its IOVA allows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rcu.h"
#include "engine/space.h"

/* No memory has this byte, so that what follows a leaf in host memory never is at 0. */
#define HOST_LAST (((uint64_t)1 << (64 - PT_HOST_SHIFT)) - 1)

struct run {
	uint64_t iova, host, length;
	unsigned contiguous;
};

static int write_run(
	struct dmamap_table *table, const struct run *run, unsigned prot, struct dmamap_reason *why)
{
	struct pagetable *pt = &table->pt;
	bool hardware = pt->output == DMAMAP_OUTPUT_HARDWARE;
	uint64_t granule = (uint64_t)1 << pt->granule_shift;
	uint64_t last = run->iova + run->length - 1;

	if (((run->iova | run->length) & (granule - 1)) ||
		(hardware && (run->iova ^ run->host) & (granule - 1)))
		return DMAMAP_REFUSE(why, &dmamap_reason_misaligned, EINVAL, NULL, run->host,
			run->host + run->length - 1, granule);
	if (run->host + run->length - 1 >= HOST_LAST)
		return DMAMAP_REFUSE(why, &dmamap_reason_host, EFAULT, NULL, run->host,
			run->host + run->length - 1);
	if (pagetable_map(pt, run->iova, last, run->host, prot, hardware ? run->contiguous : 63))
		return DMAMAP_REFUSE(
			why, &dmamap_reason_no_memory, ENOMEM, "a page table", run->iova);
	return 0;
}

static int write_leaves(struct dmamap_table *table, struct dmamap_memory *memory,
	const struct area *area, struct dmamap_reason *why)
{
	bool hardware = table->pt.output == DMAMAP_OUTPUT_HARDWARE;
	struct run run = {.iova = area->first};
	struct dmamap_lookup lookup = {
		.offset = area->offset,
		.last = area->offset + (area->last - area->first),
		.prot = area_prot(area),
		.why = why,
	};
	uint64_t left = area->last - area->first; /* bytes but one */
	int rc;

	for (;;) {
		uint64_t length;
		bool joins;

		table->pt.lookups++;
		rc = memory->ops->lookup(memory, &lookup);
		if (rc)
			return rc;
		length = lookup.length - 1 < left ? lookup.length : left + 1;
		joins = run.length && lookup.host == run.host + run.length &&
			(!hardware || lookup.contiguous == run.contiguous);
		if (joins) {
			run.length += length;
		} else {
			if (run.length) {
				rc = write_run(table, &run, area_prot(area), why);
				if (rc)
					return rc;
			}
			run.iova += run.length;
			run.host = lookup.host;
			run.length = length;
			run.contiguous = lookup.contiguous;
		}
		if (length > left)
			return write_run(table, &run, area_prot(area), why);
		left -= length;
		lookup.offset += length;
	}
}

int table_fill(struct dmamap_table *table, const struct area *area, struct dmamap_reason *why)
{
	struct dmamap_memory *memory = area_memory(area);
	int rc;

	if (!memory)
		return 0;
	rc = write_leaves(table, memory, area, why);
	if (rc || !memory->ops->filled)
		return rc;
	rc = memory->ops->filled(
		memory, area->offset, area->offset + (area->last - area->first), why);
	if (!rc)
		table->told++;
	return rc;
}

/* ------------------------------------------------------------------ space */

int dmamap_space_create(const struct dmamap_space_config *config, struct dmamap_space **out)
{
	struct dmamap_space *space = engine_calloc(1, sizeof(*space));

	if (!space)
		return -ENOMEM;
	pthread_mutex_init(&space->lock, NULL);
	pthread_cond_init(&space->idle, NULL);
	areas_start(&space->areas);
	space->area_limit = config ? config->area_limit : 0;
	space->granule = 1;
	space->last = UINT64_MAX;
	*out = space;
	return 0;
}

void dmamap_space_destroy(struct dmamap_space *space)
{
	if (!space)
		return;
	dmamap_unmap(space, 0, UINT64_MAX, NULL, NULL);
	while (space->tables)
		dmamap_table_destroy(space->tables);
	areas_stop(&space->areas);
	ranges_stop(&space->ranges);
	pthread_cond_destroy(&space->idle);
	pthread_mutex_destroy(&space->lock);
	free(space);
}

static void add_table(const struct dmamap_table *table, struct dmamap_counters *counters)
{
	const struct pagetable *pt = &table->pt;

	counters->lookups += pt->lookups;
	for (unsigned shift = 0; shift < 64; shift++) {
		counters->leaves[shift] += pt->leaves[shift];
		counters->leaves_cleared[shift] += pt->cleared[shift];
	}
	counters->tables += pt->pool.live;
	counters->table_bytes += pt->pool.live << pt->pool.shift;
	counters->table_bytes_held += pt->pool.held;
}

void dmamap_space_counters(struct dmamap_space *space, struct dmamap_counters *counters)
{
	pthread_mutex_lock(&space->lock);
	*counters = space->gone;
	for (struct dmamap_table *table = space->tables; table; table = table->next)
		add_table(table, counters);
	counters->maps = space->maps;
	counters->unmaps = space->unmaps;
	counters->waits = space->waits;
	counters->areas = space->areas.count;
	counters->area_bytes = space->areas.pool.held;
	pthread_mutex_unlock(&space->lock);
}

/* ------------------------------------------------------------------ table */

/* The strictest of all tables. Under the lock. */
static void set_limits(struct dmamap_space *space)
{
	space->granule = 1;
	space->last = UINT64_MAX;
	for (struct dmamap_table *table = space->tables; table; table = table->next) {
		uint64_t granule = (uint64_t)1 << table->pt.granule_shift;

		if (granule > space->granule)
			space->granule = granule;
		if (table->pt.last < space->last)
			space->last = table->pt.last;
	}
}

void tables_cleared(
	const struct area *area, struct dmamap_table *table, const struct dmamap_table *end)
{
	struct dmamap_memory *memory = area_memory(area);
	uint64_t last = area->offset + (area->last - area->first);

	for (; table != end; table = table->next) {
		table->told--;
		memory->ops->cleared(memory, area->offset, last);
	}
}

/*
 * Tells memory that the table gives everything up. The areas that it has told
 * of are all, or when it could not be filled the lowest ones.
 */
static void clear_all(struct dmamap_table *table)
{
	struct areas_place place = areas_seek(&table->space->areas, 0);

	for (; table->told; place = areas_next(place)) {
		struct area area = areas_at(place);

		if (area_tells(&area))
			tables_cleared(&area, table, table->next);
	}
}

static int fill_all(struct dmamap_table *table, struct dmamap_reason *why)
{
	struct areas_place place = areas_seek(&table->space->areas, 0);
	uint64_t granule = (uint64_t)1 << table->pt.granule_shift;

	for (; place.leaf; place = areas_next(place)) {
		struct area area = areas_at(place);
		int rc;

		if ((area.first | (area.last + 1)) & (granule - 1))
			return DMAMAP_REFUSE(why, &dmamap_reason_misaligned, EADDRINUSE, NULL,
				area.first, area.last, granule);
		if (area.last > table->pt.last)
			return DMAMAP_REFUSE(why, &dmamap_reason_aperture, EINVAL, NULL, area.first,
				area.last, table->pt.last);
		rc = table_fill(table, &area, why);
		if (rc)
			return rc;
	}
	return 0;
}

int dmamap_table_create(struct dmamap_space *space, const struct dmamap_table_config *config,
	struct dmamap_table **out, struct dmamap_reason *why)
{
	static const struct dmamap_table_config defaults;
	struct dmamap_table *table = engine_calloc(1, sizeof(*table));
	int rc;

	if (!table)
		return DMAMAP_REFUSE(why, &dmamap_reason_no_memory, ENOMEM, "a page table", 0);
	rc = pagetable_start(&table->pt, config ? config : &defaults, why);
	if (rc) {
		free(table);
		return rc;
	}
	table->space = space;
	pthread_mutex_lock(&space->lock);
	rc = fill_all(table, why);
	if (rc) {
		clear_all(table);
	} else {
		table->next = space->tables;
		space->tables = table;
		set_limits(space);
	}
	pthread_mutex_unlock(&space->lock);
	if (rc) {
		pagetable_stop(&table->pt);
		free(table);
		return rc;
	}
	*out = table;
	return 0;
}

void dmamap_table_leaf_sizes(struct dmamap_table *table, uint64_t leaf_sizes)
{
	pthread_mutex_lock(&table->space->lock);
	pagetable_sizes(&table->pt, leaf_sizes & ~(((uint64_t)1 << table->pt.granule_shift) - 1));
	pthread_mutex_unlock(&table->space->lock);
}

void dmamap_table_destroy(struct dmamap_table *table)
{
	struct dmamap_space *space;
	struct dmamap_table **link;

	if (!table)
		return;
	space = table->space;
	pthread_mutex_lock(&space->lock);
	/* An unmap that waits for accesses to other tables still holds nodes of this one. */
	while (space->waiting)
		pthread_cond_wait(&space->idle, &space->lock);
	clear_all(table);
	for (link = &space->tables; *link != table; link = &(*link)->next)
		;
	*link = table->next;
	set_limits(space);
	pagetable_stop(&table->pt);
	add_table(table, &space->gone);
	pthread_mutex_unlock(&space->lock);
	free(table);
}

void dmamap_table_counters(struct dmamap_table *table, struct dmamap_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	pthread_mutex_lock(&table->space->lock);
	add_table(table, counters);
	pthread_mutex_unlock(&table->space->lock);
}
