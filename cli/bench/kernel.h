/* SPDX-License-Identifier: MIT */
/*
 * What the running kernel does during a map or an unmap, counted by probes on
 * it. Probes cost time: they are open for a run of their own and closed while
 * anything is timed.
 */
#ifndef BENCH_KERNEL_H
#define BENCH_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/** What is counted: the events of the IOMMU core, and calls of functions. */
enum kernel_event {
	KERNEL_MAP_EVENT,   /**< one for each iommu_map() that succeeded */
	KERNEL_UNMAP_EVENT, /**< one for each iommu_unmap() */
	KERNEL_PIN_REMOTE,  /**< a step of type1: pages that are pinned, or a BAR that is not */
	KERNEL_PIN_FAST,    /**< a step of IOMMU_IOAS_MAP */
	KERNEL_PIN_FOLIOS,  /**< a step of IOMMU_IOAS_MAP_FILE */
	KERNEL_PFNMAP,	    /**< a look-up of a BAR in the process's page table */
	KERNEL_IOMMU_MAP,   /**< a range handed to the IOMMU */
	KERNEL_LOOKUP,	    /**< a look-up in the IOMMU's page table */
	KERNEL_EVENTS
};

/** kernel_event_names - "iommu:map" for an event, "iommu_map" for a function. */
extern const char *const kernel_event_names[KERNEL_EVENTS];

/**
 * struct kernel_places - Where the kernel shows what can be counted.
 * @tracefs: where it may be mounted; the first that has the event counts
 * @mount: without one of these, mount it where nobody else sees it
 * @kprobe_type: file with the number of the kprobe event source
 */
struct kernel_places {
	const char *tracefs[2];
	bool mount;
	const char *kprobe_type;
};

/** kernel_places - Of the running machine. */
extern const struct kernel_places kernel_places;

#define KERNEL_WHY 128

/**
 * struct kernel_counters - Open probes.
 * @fds: -1: not counted
 * @why: and why not; empty: it is counted
 */
struct kernel_counters {
	int fds[KERNEL_EVENTS];
	char why[KERNEL_EVENTS][KERNEL_WHY];
};

/**
 * kernel_open() - Set the probes; they count the calling thread alone.
 * kernel_close() is due whatever it returns.
 *
 * Return: how many of them count.
 */
unsigned kernel_open(struct kernel_counters *counters, const struct kernel_places *places);

/** kernel_read() - All counts since kernel_open(); 0 where not counted. */
void kernel_read(const struct kernel_counters *counters, uint64_t counts[KERNEL_EVENTS]);

void kernel_close(struct kernel_counters *counters);

#endif
