/* SPDX-License-Identifier: MIT */
/*
 * The work counted on both systems, side by side. Where the layout of memory
 * is determined (a BAR, one page alone) each of the kernel's counts follows
 * from the size. Elsewhere the adjacency of pages in physical memory decides
 * how often a range is handed to the IOMMU; what still must hold is said by
 * the rules below, which come from type1's and IOMMUFD's own loops.
 */
#include "work.h"

#include <string.h>

/* IOMMUFD pins at most as many pages a call as fit in 64 KiB of eight-byte pointers. */
#define FILE_PAGES 8192
/* Its batch of runs has 64 KiB as well: 12 bytes for each. Both are smaller where memory is short.
 */
#define BATCH_RUNS 5461

bool work_known(const struct result *result, enum kernel_event event)
{
	return result->probed && !result->system->uncounted[event][0];
}

bool work_lookups(const struct result *result, uint64_t *lookups)
{
	const struct variant *variant = result->variant;
	enum kernel_event event = KERNEL_PIN_REMOTE;

	if (result->counted) {
		*lookups = result->work.lookups;
		return true;
	}
	if (variant->mode->maps_files)
		event = KERNEL_PIN_FOLIOS;
	else if (variant_is_iommufd(variant))
		event = KERNEL_PIN_FAST;
	*lookups = result->kernel.map[event];
	return work_known(result, event);
}

const struct result *work_twin(const struct report *report, const struct result *result)
{
	for (size_t i = 0; i < report->n_results; i++) {
		const struct result *soft = &report->results[i];

		if (soft->system != result->system && soft->variant == result->variant &&
			soft->counted && soft->status == STATUS_RUN && !soft->declared &&
			soft->size == result->size &&
			(soft->stride < 0 || soft->stride == result->system->stride))
			return soft;
	}
	return NULL;
}

/* Is it one physically contiguous range, whatever memory looks like? */
static bool determined(const struct result *result)
{
	return result->variant->memory->source == MEMORY_BAR ||
	       (result->size == result->page_size &&
		       (!result->variant->memory->thp || result->huge_bytes == result->size));
}

/* Every page is mapped alone: /dev/iommu as type1 (version 1) has no large pages. */
static bool small_pages(const struct result *result)
{
	return !strcmp(result->variant->mode->name, "iommufd_compat_type1");
}

static enum work_verdict compare_steps(
	const struct result *soft, const struct result *result, uint64_t count)
{
	uint64_t must = soft->work.lookups;

	if (result->variant->mode->maps_files)
		must = (result_pages(result) + FILE_PAGES - 1) / FILE_PAGES;
	if (count == must)
		return WORK_EQUAL;
	return determined(result) ? WORK_DIFFERS : WORK_UNKNOWN;
}

static enum work_verdict compare_maps(const struct result *result, uint64_t count)
{
	if (small_pages(result))
		return count == result_pages(result) ? WORK_EQUAL : WORK_DIFFERS;
	if (!determined(result))
		return WORK_UNKNOWN;
	return count == 1 ? WORK_EQUAL : WORK_DIFFERS;
}

/*
 * Type1 sees where a run ends by the first page behind it, and looks that up
 * again. IOMMUFD does so only where its batch of runs is full.
 */
static enum work_verdict compare_unmaps(const struct result *result, uint64_t count)
{
	uint64_t unmaps = result->kernel.unmap[KERNEL_UNMAP_EVENT];
	uint64_t maps = result->kernel.map[KERNEL_MAP_EVENT];
	uint64_t pages = result_pages(result);

	if (determined(result))
		return count == pages ? WORK_EQUAL : WORK_DIFFERS;
	if (!variant_is_iommufd(result->variant)) {
		if (!work_known(result, KERNEL_UNMAP_EVENT) || !unmaps)
			return WORK_UNKNOWN;
		return count == pages + unmaps - 1 ? WORK_EQUAL : WORK_DIFFERS;
	}
	if (small_pages(result) || !work_known(result, KERNEL_MAP_EVENT) || !maps)
		return count == pages ? WORK_EQUAL : WORK_UNKNOWN;
	return count == pages + (maps - 1) / BATCH_RUNS ? WORK_EQUAL : WORK_UNKNOWN;
}

enum work_verdict work_compare(const struct result *soft, const struct result *result,
	enum work_pair pair, uint64_t *count)
{
	bool known;

	if (pair == WORK_STEPS) {
		known = work_lookups(result, count);
	} else if (pair == WORK_MAPS) {
		known = work_known(result, KERNEL_MAP_EVENT);
		*count = result->kernel.map[KERNEL_MAP_EVENT];
	} else {
		known = work_known(result, KERNEL_LOOKUP);
		*count = result->kernel.unmap[KERNEL_LOOKUP];
	}
	if (!known) {
		*count = UINT64_MAX;
		return WORK_UNKNOWN;
	}
	if (pair == WORK_STEPS)
		return compare_steps(soft, result, *count);
	return pair == WORK_MAPS ? compare_maps(result, *count) : compare_unmaps(result, *count);
}

/* Has the report a row of this kind that was counted on the kernel? */
static bool any_row(const struct report *report, bool (*is)(const struct result *result))
{
	for (size_t i = 0; i < report->n_results; i++)
		if (report->results[i].probed && is(&report->results[i]))
			return true;
	return false;
}

static bool any(const struct result *result)
{
	(void)result;
	return true;
}

static bool is_type1(const struct result *result)
{
	return !variant_is_iommufd(result->variant);
}

static bool is_iommufd(const struct result *result)
{
	return variant_is_iommufd(result->variant);
}

static bool is_file(const struct result *result)
{
	return result->variant->mode->maps_files;
}

static const struct {
	bool (*is)(const struct result *result);
	const char *text;
} rules[] = {
	{any, "steps: calls that pin pages, or try to, as with a BAR; as many as soft's look-ups"},
	{is_file,
		"  a file's step pins up to 8,192 base pages; soft looks up each page of its size"},
	{any, "maps: iommu:map events; a physically contiguous run is one, whatever its leaves"},
	{small_pages, "  in iommufd_compat_type1 every base page is one: it has no large leaves"},
	{is_type1, "look-ups: type1 unmaps by every base page, whatever the leaf, and 1 for each "
		   "further run"},
	{is_iommufd, "look-ups: IOMMUFD unmaps by every base page, and 1 each 5,461 runs (a full "
		     "batch)"},
	{any, "= as it has to be; ! not as it has to be; no mark: the memory's layout decides"},
};

const char *work_rule(const struct report *report, unsigned index)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (any_row(report, rules[i].is) && !index--)
			return rules[i].text;
	return NULL;
}
