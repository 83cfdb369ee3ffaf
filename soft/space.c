/* SPDX-License-Identifier: MIT */
/*
 * What every IOVA space of the soft system has in common, be it a type1
 * container's or an IOAS's: the machine's page-table shape, the ranges that no
 * device can reach, and work counters that outlive it.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/soft.h"

int soft_space_init(struct soft_space *space, struct soft_system *system, uint64_t area_limit)
{
	const struct dmamap_space_config config = {.area_limit = area_limit};
	int error = dmamap_space_create(&config, &space->space);

	if (error)
		return SOFT_REFUSE(no_memory, -error, "an IOVA space", 0);
	space->system = system;
	space->previous = NULL;
	pthread_mutex_lock(&system->spaces_lock);
	space->next = system->spaces;
	if (space->next)
		space->next->previous = space;
	system->spaces = space;
	pthread_mutex_unlock(&system->spaces_lock);
	return 0;
}

static void add_work(struct dmamap_counters *to, const struct dmamap_counters *from)
{
	to->maps += from->maps;
	to->unmaps += from->unmaps;
	to->lookups += from->lookups;
	to->waits += from->waits;
	for (unsigned i = 0; i < 64; i++) {
		to->leaves[i] += from->leaves[i];
		to->leaves_cleared[i] += from->leaves_cleared[i];
	}
}

void soft_space_fini(struct soft_space *space)
{
	struct soft_system *system = space->system;
	struct dmamap_counters counters;

	/* Unmapped first, so that this is counted as well. */
	dmamap_unmap(space->space, 0, UINT64_MAX, NULL, NULL);
	pthread_mutex_lock(&system->spaces_lock);
	dmamap_space_counters(space->space, &counters);
	add_work(&system->gone, &counters);
	if (space->previous)
		space->previous->next = space->next;
	else
		system->spaces = space->next;
	if (space->next)
		space->next->previous = space->previous;
	pthread_mutex_unlock(&system->spaces_lock);
	dmamap_space_destroy(space->space);
	space->space = NULL;
}

int soft_counters(struct soft_system *system, struct dmamap_counters *counters)
{
	pthread_mutex_lock(&system->spaces_lock);
	*counters = system->gone;
	for (struct soft_space *space = system->spaces; space; space = space->next) {
		struct dmamap_counters one;

		dmamap_space_counters(space->space, &one);
		add_work(counters, &one);
		counters->tables += one.tables;
		counters->table_bytes += one.table_bytes;
		counters->table_bytes_held += one.table_bytes_held;
		counters->area_bytes += one.area_bytes;
		counters->areas += one.areas;
	}
	pthread_mutex_unlock(&system->spaces_lock);
	return 0;
}

uint64_t soft_space_leaf_sizes(const struct soft_space *space,
	const struct dmamap_machine_iommu *iommu, bool small_pages_only)
{
	uint64_t page = soft_page_size(space->system);

	return small_pages_only ? iommu->leaf_sizes & (2 * page - 1) : iommu->leaf_sizes;
}

uint64_t soft_space_granule(
	const struct soft_space *space, const struct dmamap_machine_iommu *iommu)
{
	uint64_t page = soft_page_size(space->system),
		 least = iommu->leaf_sizes & -iommu->leaf_sizes;

	return least < page ? least : page;
}

int soft_space_table(struct soft_space *space, const struct dmamap_machine_iommu *iommu,
	bool small_pages_only, struct dmamap_table **table)
{
	const struct dmamap_table_config config = {
		.granule_shift = (unsigned)__builtin_ctzll(soft_space_granule(space, iommu)),
		.leaf_sizes = soft_space_leaf_sizes(space, iommu, small_pages_only),
		.iova_bits = iommu->aperture_bits,
		.output = DMAMAP_OUTPUT_HARDWARE,
	};

	return dmamap_table_create(space->space, &config, table, soft_why());
}

int soft_space_reserve_windows(
	struct soft_space *space, const struct dmamap_machine_iommu *iommu, const void *owner)
{
	for (size_t i = 0; i < iommu->n_windows; i++) {
		const struct dmamap_machine_window *window = &iommu->windows[i];
		int error = dmamap_space_reserve(space->space, window->first, window->last, owner,
			window->label, soft_why());

		if (error) {
			dmamap_space_unreserve(space->space, owner);
			return error;
		}
	}
	return 0;
}

int soft_space_reserve_aperture(
	struct soft_space *space, const struct dmamap_machine_iommu *iommu, const void *owner)
{
	unsigned bits = iommu->aperture_bits;

	if (bits >= 64)
		return 0;
	return dmamap_space_reserve(
		space->space, 1ULL << bits, UINT64_MAX, owner, "outside the aperture", soft_why());
}

int soft_space_ranges(struct soft_space *space, struct dmamap_range **ranges, size_t *n)
{
	*n = dmamap_space_usable(space->space, NULL, 0);
	*ranges = malloc((*n ? *n : 1) * sizeof(**ranges));
	if (!*ranges)
		return SOFT_REFUSE(no_memory, ENOMEM, "IOVA ranges", 0);
	dmamap_space_usable(space->space, *ranges, *n);
	return 0;
}
