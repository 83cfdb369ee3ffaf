/* SPDX-License-Identifier: MIT */
/*
 * The result model: what was measured, as data. Measuring fills it, every
 * output reads it, and neither knows the other.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <time.h>

#include "dmamap/soft.h"
#include "host.h"
#include "kernel.h"
#include "stats.h"
#include "variants.h"

enum phase { PHASE_MMAP, PHASE_MAP, PHASE_UNMAP, PHASE_MUNMAP, PHASES };
extern const char *const phase_names[PHASES];

enum status {
	STATUS_RUN,	/**< measured */
	STATUS_SKIPPED, /**< not tried: something is missing */
	STATUS_REFUSED, /**< refused, as it has to be */
	STATUS_FAILED,	/**< refused or broken, and it should not be */
};
extern const char *const status_names[4];

/** The strides of a BAR's look-ups, by enum dmamap_pfnmap_stride. */
#define STRIDES 2
extern const char *const stride_names[STRIDES];

/**
 * struct system_info - A system as an output shows it.
 * @name: "soft" or "linux"
 * @note: what its times mean, or NULL
 * @device: PCI address of the function used
 * @absent: why nothing ran on it; empty: it was used
 * @page_size: its base page
 * @leaf_sizes: bitmap of its IOMMU's page sizes; 0: not known
 * @stride: of its look-ups of BARs, index of stride_names; -1: its rows differ
 * @probed: its work was to be counted by probes (Linux)
 * @uncounted: why not, by enum kernel_event; empty: it is counted
 */
struct system_info {
	const char *name;
	const char *note;
	char device[16];
	char absent[256];
	uint64_t page_size;
	uint64_t leaf_sizes;
	int stride;
	bool probed;
	char uncounted[KERNEL_EVENTS][KERNEL_WHY];
};

/** struct sample - One run: the time of each phase, and where it was. */
struct sample {
	uint64_t ns[PHASES];
	uint64_t va;
	uint64_t iova;
};

/**
 * struct work - Counters of one map and its unmap.
 * @leaves, @cleared: by log2 of their size
 * @tables, @table_bytes: page-table pages that the map added
 */
struct work {
	uint64_t lookups;
	uint64_t leaves[64];
	uint64_t cleared[64];
	uint64_t tables;
	uint64_t table_bytes;
};

/**
 * struct kernel_work - What probes counted in one map and its unmap, in a run
 * that was not timed; 0 where system_info.uncounted has a reason.
 */
struct kernel_work {
	uint64_t map[KERNEL_EVENTS];
	uint64_t unmap[KERNEL_EVENTS];
};

/**
 * struct result - One variant on one system.
 * @stride: index of stride_names where it matters, otherwise -1
 * @declared: on memory that is not there (see dmamap_soft_declare()): the
 *	phases mmap and munmap were not timed
 * @error: errno of a refusal or failure, positive, or 0
 * @reason: why it was skipped, refused or failed
 * @hint: what enables it, or empty
 * @size: bytes mapped
 * @page_size: of the memory; 0 for a BAR
 * @alignment: of the VA (before a BAR's offset) and the IOVA
 * @huge_bytes: how much came as transparent huge pages; UINT64_MAX: unknown
 * @samples, @n: the runs
 * @counted: @work is known
 * @probed: @kernel is known
 * @unprobed: why not, where this row alone has none
 */
struct result {
	const struct system_info *system;
	const struct variant *variant;
	int stride;
	bool declared;
	enum status status;
	int error;
	char reason[512];
	char hint[160];
	uint64_t size;
	uint64_t page_size;
	uint64_t alignment;
	uint64_t huge_bytes;
	struct sample *samples;
	size_t n;
	bool counted;
	struct work work;
	bool probed;
	struct kernel_work kernel;
	char unprobed[KERNEL_WHY];
};

/**
 * struct report - All of a bench.
 * @size: --size, 0: each kind's own
 * @runs: runs asked for
 * @signal: ended early by this signal, or 0
 */
struct report {
	struct host host;
	time_t started;
	double seconds;
	uint64_t seed;
	uint64_t size;
	unsigned runs;
	bool sparse;
	int signal;
	struct system_info systems[2];
	size_t n_systems;
	struct result *results;
	size_t n_results;
};

/** result_times() - Was this phase timed? */
bool result_times(const struct result *result, enum phase phase);
/** result_stats() - Of one phase; n is 0 where it was not timed. */
struct stats result_stats(const struct result *result, enum phase phase);
/** result_name() - The variant's name, with the stride where there is one: "..._bar.leaf". */
#define RESULT_NAME 96
char *result_name(const struct result *result, char name[RESULT_NAME]);
/** result_pages() - Base pages mapped. */
uint64_t result_pages(const struct result *result);
/** result_page_ns(), result_gib_s() - A time by page, and as throughput; 0 for no time. */
double result_page_ns(const struct result *result, uint64_t ns);
double result_gib_s(const struct result *result, uint64_t ns);

/**
 * result_explain() - What makes this result what it is, from its own numbers.
 * @index: 0 and up
 *
 * Return: false when there is no more to say.
 */
bool result_explain(const struct result *result, unsigned index, char *text, size_t size);

/** result_error_name() - "EFAULT" for an errno; "errno 999" for an unknown one. */
const char *result_error_name(int error, char buffer[24]);

void report_free(struct report *report);

#endif
