/* SPDX-License-Identifier: MIT */
/*
 * What IOMMUFD pins of a memory, and who is charged for it
 * (drivers/iommu/iommufd/pages.c). A page is pinned, and charged, once for as
 * long as any page table has it: through several HWPTs, IOASes that share it by
 * IOMMU_IOAS_COPY, or areas that were cut. So each memory counts its fills (the
 * engine's pins), and what a fill pins or its end unpins is charged here.
 */
#ifndef DMAMAP_SOFT_PINS_H
#define DMAMAP_SOFT_PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "dmamap/engine.h"

struct soft_system;
struct soft_process;
struct soft_memory;

/* Which counter has a limit. VmPin (soft_process.pinned) counts in every mode. */
enum soft_pins_mode {
	SOFT_PINS_FREE,	   /* none: CAP_IPC_LOCK when it was mapped, or a dma-buf */
	SOFT_PINS_USER,	   /* the user's, for all of its processes */
	SOFT_PINS_PROCESS, /* the process's, as type1 counts */
};

#define SOFT_PINS_MODES 3

/* Guarded by system->pins_lock, but for what is set before the memory is shared. */
struct soft_pins {
	struct soft_system *system;
	struct soft_process *process;
	struct dmamap_pins pages;
	enum soft_pins_mode mode;
	bool counted; /* soft_pins_move() has met it */
};

/* For the calling process, of zeros; @free: nothing is charged, whoever it is. */
void soft_pins_init(struct soft_pins *pins, struct soft_system *system, bool free);
void soft_pins_fini(struct soft_pins *pins);
/* Before an area that @tables have filled is made two: room for what their clearing needs. */
int soft_pins_split(struct soft_pins *pins, unsigned tables);
/* It was not made two after all. */
void soft_pins_unsplit(struct soft_pins *pins, unsigned tables);
/* Charge the calling process for what others are charged for: all of the @n, or none. */
int soft_pins_move(struct soft_system *system, struct soft_pins *const *pins, size_t n);

/* Whether a table has the byte @offset, so that its page needs no pinning any more. *@last comes
 * down to where that changes. */
bool soft_memory_pinned(const struct soft_memory *memory, uint64_t offset, uint64_t *last);
/* What the engine tells of memories that have pins. */
int soft_memory_filled(
	struct dmamap_memory *memory, uint64_t offset, uint64_t last, struct dmamap_reason *why);
void soft_memory_cleared(struct dmamap_memory *memory, uint64_t offset, uint64_t last);

#endif
