/* SPDX-License-Identifier: MIT */
/* The variants: mode x memory x prefault. */
#include "variants.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

const struct memory_kind memory_kinds[MEMORY_KINDS] = {
	{.name = "anonymous", .source = MEMORY_ANONYMOUS, .size = 256 * MIB},
	{.name = "anonymous_thp", .source = MEMORY_ANONYMOUS, .thp = true, .size = 256 * MIB},
	{.name = "anonymous_hugetlb_2mb",
		.source = MEMORY_ANONYMOUS,
		.huge_shift = 21,
		.size = 256 * MIB},
	{.name = "anonymous_hugetlb_1gb",
		.source = MEMORY_ANONYMOUS,
		.huge_shift = 30,
		.size = GIB},
	{.name = "memfd", .source = MEMORY_MEMFD, .size = 256 * MIB},
	{.name = "memfd_hugetlb_2mb", .source = MEMORY_MEMFD, .huge_shift = 21, .size = 256 * MIB},
	{.name = "memfd_hugetlb_1gb", .source = MEMORY_MEMFD, .huge_shift = 30, .size = GIB},
	{.name = "bar", .source = MEMORY_BAR},
	{.name = "bar_misaligned_2mb", .source = MEMORY_BAR, .offset = 2 * MIB},
	{.name = "bar_misaligned_4kb", .source = MEMORY_BAR, .offset = 4096},
};

const char *prefault_name(enum prefault prefault)
{
	static const char *const names[] = {NULL, "demand", "populate"};

	return names[prefault];
}

static void make(struct variant *variant, const struct dmamap_mode *mode,
	const struct memory_kind *memory, enum prefault prefault)
{
	const char *name = prefault_name(prefault);

	*variant = (struct variant){.mode = mode, .memory = memory, .prefault = prefault};
	snprintf(variant->name, sizeof(variant->name), "%s_%s%s%s", mode->name, memory->name,
		name ? "_" : "", name ? name : "");
}

size_t variants_list(struct variant variants[VARIANTS_MAX])
{
	size_t n = 0;

	for (size_t mode = 0; mode < DMAMAP_MODES; mode++) {
		for (size_t kind = 0; kind < MEMORY_KINDS; kind++) {
			const struct memory_kind *memory = &memory_kinds[kind];

			if (memory->source == MEMORY_BAR) {
				make(&variants[n++], &dmamap_modes[mode], memory, PREFAULT_NONE);
				continue;
			}
			make(&variants[n++], &dmamap_modes[mode], memory, PREFAULT_DEMAND);
			make(&variants[n++], &dmamap_modes[mode], memory, PREFAULT_POPULATE);
		}
	}
	return n;
}

size_t variants_pick(struct variant *variants, size_t n, const char *const *globs, size_t n_globs,
	const char **missed)
{
	size_t kept = 0;

	*missed = NULL;
	for (size_t glob = 0; glob < n_globs && !*missed; glob++) {
		size_t i = 0;

		while (i < n && fnmatch(globs[glob], variants[i].name, 0))
			i++;
		if (i == n)
			*missed = globs[glob];
	}
	for (size_t i = 0; i < n; i++) {
		bool matches = !n_globs;

		for (size_t glob = 0; glob < n_globs && !matches; glob++)
			matches = !fnmatch(globs[glob], variants[i].name, 0);
		if (matches)
			variants[kept++] = variants[i];
	}
	return kept;
}

bool variant_is_iommufd(const struct variant *variant)
{
	return !strcmp(variant->mode->container, "/dev/iommu");
}

static const struct variant_rule takes_memfd = {
	"IOMMU_IOAS_MAP_FILE takes a memfd",
	"-t 'iommufd_file_memfd*' (this mode), -t 'iommufd_anonymous*' (this memory)",
};

static const struct variant_rule pins_pages = {
	"IOMMUFD pins pages, and a BAR's mapping has none to pin",
	"-t 'vfio_type1*_bar*' maps BARs",
};

const struct variant_rule *variant_impossible(const struct variant *variant)
{
	if (variant->mode->maps_files && variant->memory->source != MEMORY_MEMFD)
		return &takes_memfd;
	return NULL;
}

const struct variant_rule *variant_refusal(const struct variant *variant, int error)
{
	if (variant->memory->source == MEMORY_BAR && variant_is_iommufd(variant) && error == EFAULT)
		return &pins_pages;
	return NULL;
}

bool variant_refused(const struct variant *variant)
{
	return variant_refusal(variant, EFAULT);
}
