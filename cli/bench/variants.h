/* SPDX-License-Identifier: MIT */
/*
 * The variants: mode x memory x prefault. What differs between kinds of
 * memory is in a table; the variants are its product with the client's modes.
 */
#ifndef BENCH_VARIANTS_H
#define BENCH_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>

#include "dmamap/client.h"

enum memory_source { MEMORY_ANONYMOUS, MEMORY_MEMFD, MEMORY_BAR };

/**
 * struct memory_kind - A kind of memory to map.
 * @name: part of the variant's name
 * @huge_shift: log2 of its hugetlb page; 0: no hugetlb
 * @thp: transparent huge pages are asked for, otherwise they are kept away
 * @offset: BARs: bytes by which the VA is moved off the best alignment
 * @size: how much is mapped where --size says nothing; a BAR is mapped whole
 */
struct memory_kind {
	const char *name;
	enum memory_source source;
	unsigned huge_shift;
	bool thp;
	uint64_t offset;
	uint64_t size;
};

#define MEMORY_KINDS 10
extern const struct memory_kind memory_kinds[MEMORY_KINDS];

/** When memory is made present: by the map (demand), or before it in the mmap phase. */
enum prefault { PREFAULT_NONE, PREFAULT_DEMAND, PREFAULT_POPULATE };

/** prefault_name() - "demand", "populate", or NULL for BARs, which have none. */
const char *prefault_name(enum prefault prefault);

/** struct variant - @name is MODE_MEMORY_PREFAULT, or MODE_MEMORY for a BAR. */
struct variant {
	char name[80];
	const struct dmamap_mode *mode;
	const struct memory_kind *memory;
	enum prefault prefault;
};

/** At most: not every kind has two prefaults. */
#define VARIANTS_MAX (DMAMAP_MODES * MEMORY_KINDS * 2)

/** variants_list() - All of them, in the order of output. Return: how many. */
size_t variants_list(struct variant variants[VARIANTS_MAX]);

/**
 * variants_pick() - Keep those that match one of the globs, in place.
 * @missed: out: the first glob that matches none, or NULL
 *
 * Without globs all are kept. Return: how many are kept.
 */
size_t variants_pick(struct variant *variants, size_t n, const char *const *globs, size_t n_globs,
	const char **missed);

/** variant_is_iommufd() - The mode goes through /dev/iommu. */
bool variant_is_iommufd(const struct variant *variant);

/**
 * struct variant_rule - What is known before a call is made, or about its
 * errno, by kind of variant.
 */
struct variant_rule {
	const char *reason;
	const char *hint;
};

/** variant_impossible() - Why the variant makes no sense; NULL: it does. */
const struct variant_rule *variant_impossible(const struct variant *variant);

/** variant_refusal() - Why the kernel refuses it with this errno (positive); NULL: it should not.
 */
const struct variant_rule *variant_refusal(const struct variant *variant, int error);

/** variant_refused() - There is an errno for which variant_refusal() has a rule. */
bool variant_refused(const struct variant *variant);

#endif
