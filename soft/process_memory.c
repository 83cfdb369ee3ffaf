/* SPDX-License-Identifier: MIT */
/*
 * Memory of this process, found as IOMMUFD finds it when it pins: one look-up
 * answers for as many pages as one pin call takes, 64 KiB of page pointers
 * (8192). The address of the process stands for the physical one. (Type1 pins
 * in its own way: soft/type1_memory.c.)
 *
 * Ranges of several kinds may follow one another: memory that was declared, and
 * ordinary memory, which is made present here; a BAR cannot be pinned. What a
 * range is, is found out once and kept in the look-up's state.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/soft.h"

#define PIN_BYTES 65536

struct process_memory {
	struct soft_memory soft;
	struct soft_pins pins;
	struct soft_system *system;
	uint64_t va;
};

/* The look-up's state: a range that is known, and what its leaves may be. */
enum { KNOWN_FIRST, KNOWN_LAST, KNOWN_CONTIGUOUS };

/* What is at @va, made present, and how far it goes. */
static int find(struct process_memory *memory, uint64_t va, uint64_t last,
	struct soft_extent *extent, struct dmamap_reason *why)
{
	struct soft_vma vma;
	uint64_t next;

	if (atomic_load_explicit(&memory->pins.process->gone, memory_order_relaxed))
		return DMAMAP_REFUSE(why, &soft_reason_process_gone, EFAULT, NULL,
			memory->pins.process->number, va, last);
	if (!soft_vma_find(&memory->system->vmas, va, &vma, &next))
		return soft_pages_populate(memory->system, va, last < next ? last : next - 1,
			memory->soft.base.prot & DMAMAP_WRITE, extent, why);
	if (vma.device)
		return DMAMAP_REFUSE(why, &soft_reason_bar_pinned, EFAULT, NULL, va);
	extent->last = vma.last;
	extent->contiguous = vma.page_shift;
	return 0;
}

/* Pages that some table has are taken from there, whatever became of the process's. */
static int survey(struct process_memory *memory, struct dmamap_lookup *lookup)
{
	uint64_t offset = lookup->offset, last = lookup->last;
	struct soft_extent extent;
	bool pinned = soft_memory_pinned(&memory->soft, offset, &last);
	int error = find(memory, memory->va + offset, memory->va + last, &extent, lookup->why);

	if (error && !pinned)
		return error;
	if (error) {
		extent.last = memory->va + last;
		extent.contiguous = memory->system->machine.page_shift;
	}
	lookup->state[KNOWN_FIRST] = memory->va + offset;
	lookup->state[KNOWN_LAST] = extent.last;
	lookup->state[KNOWN_CONTIGUOUS] = extent.contiguous;
	return 0;
}

/*
 * A page table refuses a leaf without access; virtio-iommu's driver passes it on. Which of
 * the machine's IOMMUs it is for is not known here: one that refuses is enough.
 */
static bool needs_access(const struct soft_system *system)
{
	for (size_t i = 0; i < system->machine.n_iommus; i++)
		if (system->machine.iommus[i].model != DMAMAP_IOMMU_VIRTIO)
			return true;
	return false;
}

static int process_lookup(struct dmamap_memory *base, struct dmamap_lookup *lookup)
{
	struct process_memory *memory = (struct process_memory *)base;
	unsigned page_shift = memory->system->machine.page_shift;
	uint64_t va = memory->va + lookup->offset, last = memory->va + lookup->last;
	uint64_t run_last;
	int error;

	if (!lookup->state[KNOWN_CONTIGUOUS] || va < lookup->state[KNOWN_FIRST] ||
		va > lookup->state[KNOWN_LAST]) {
		error = survey(memory, lookup);
		if (error)
			return error;
	}
	run_last = (va | ((1ULL << page_shift) - 1)) +
		   ((PIN_BYTES / sizeof(void *) - 1) << page_shift);
	if (run_last > lookup->state[KNOWN_LAST] || run_last < va)
		run_last = lookup->state[KNOWN_LAST];
	/* VFIO's calls on an IOMMUFD may ask for no access: that fails when the pages are there. */
	if (!lookup->prot && run_last >= last && needs_access(memory->system))
		return DMAMAP_REFUSE(lookup->why, &dmamap_reason_no_access, EINVAL, NULL, 0);
	lookup->host = va;
	lookup->length = run_last - va + 1;
	lookup->contiguous = (unsigned)lookup->state[KNOWN_CONTIGUOUS];
	return 0;
}

static void process_release(struct dmamap_memory *base)
{
	struct process_memory *memory = (struct process_memory *)base;

	soft_pins_fini(&memory->pins);
	free(memory);
}

static const struct dmamap_memory_ops process_ops = {
	.lookup = process_lookup,
	.release = process_release,
	.filled = soft_memory_filled,
	.cleared = soft_memory_cleared,
};

int soft_memory_process(struct soft_system *system, uint64_t va, uint64_t length, unsigned prot,
	struct dmamap_memory **memory)
{
	struct process_memory *made = calloc(1, sizeof(*made));

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a mapping", length);
	/* Pages that are pinned for writing may be read too; without WRITE they may not be written.
	 */
	dmamap_memory_init(&made->soft.base, &process_ops, length,
		prot & DMAMAP_WRITE ? DMAMAP_READ | DMAMAP_WRITE : DMAMAP_READ);
	made->soft.kind = SOFT_MEMORY_PROCESS;
	made->soft.pins = &made->pins;
	soft_pins_init(&made->pins, system, false);
	made->soft.phase = (unsigned)(va & (soft_page_size(system) - 1));
	made->soft.origin = va;
	made->system = system;
	made->va = va;
	*memory = &made->soft.base;
	return 0;
}
