/* SPDX-License-Identifier: MIT */
/*
 * Memory of this process, found as the kernel finds it when it pins: one
 * look-up answers for as many pages as one pin call of the kernel takes. That
 * is a page full of page pointers for type1 (512 at 4 KiB), and 64 KiB of them
 * (8192) for IOMMUFD. The address of the process stands for the physical one.
 *
 * Three kinds of range may follow one another: a BAR (type1 takes it, IOMMUFD
 * cannot pin it), memory that was declared, and ordinary memory, which is made
 * present here. What a range is, is found out once and kept in the look-up's
 * state; the BAR's rule is the engine's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "soft/soft.h"

struct process_memory {
	struct soft_memory soft;
	struct soft_system *system;
	uint64_t va;
	enum soft_pinning pinning;
	/* The BAR mapping met last. Only fills of one space come here with BARs: its lock guards.
	 */
	struct dmamap_memory *bar;
	uint64_t bar_first, bar_last;
};

/* The look-up's state: a range that is known, and what its leaves may be. */
enum { KNOWN_FIRST, KNOWN_LAST, KNOWN_CONTIGUOUS };

static int bar_view(struct process_memory *memory, const struct soft_vma *vma, uint64_t va,
	struct dmamap_lookup *lookup)
{
	struct soft_system *system = memory->system;
	const struct soft_bar *bar = &vma->device->bars[vma->bar];
	unsigned page_shift = system->machine.page_shift;
	struct dmamap_bar_view view = {
		.host = (char *)bar->host + vma->offset,
		.address = bar->address + vma->offset,
		.va = vma->first,
		.length = vma->last - vma->first + 1,
		.page_shift = page_shift,
		.strides = 1ULL << page_shift,
	};
	unsigned wanted = memory->soft.base.prot & DMAMAP_WRITE ? PROT_WRITE : PROT_READ;

	if (memory->pinning == SOFT_PIN_IOMMUFD)
		return DMAMAP_REFUSE(lookup->why, &soft_reason_bar_pinned, EFAULT, NULL, va);
	if (!(vma->prot & wanted))
		return DMAMAP_REFUSE(lookup->why, &soft_reason_memory_access, EFAULT,
			wanted == PROT_WRITE ? "written" : "read", vma->first, vma->last);
	if (!atomic_load_explicit(&vma->device->memory_on, memory_order_relaxed))
		return DMAMAP_REFUSE(lookup->why, &soft_reason_bar_off, EFAULT, vma->device->is.bdf,
			va, vma->bar);
	if (system->machine.pfnmap_stride == DMAMAP_PFNMAP_LEAF)
		view.strides |= 1ULL << soft_pmd_shift(system) | 1ULL << (3 * page_shift - 6);
	dmamap_memory_put(memory->bar);
	memory->bar = NULL;
	memory->bar_first = vma->first;
	memory->bar_last = vma->last;
	return dmamap_memory_bar(&view, DMAMAP_READ | DMAMAP_WRITE, &memory->bar);
}

static int bar_lookup(struct process_memory *memory, uint64_t va, struct dmamap_lookup *lookup)
{
	uint64_t offset = lookup->offset, last = lookup->last;
	uint64_t room = memory->bar_last - va;
	int error;

	lookup->offset = va - memory->bar_first;
	lookup->last = lookup->offset + (last - offset < room ? last - offset : room);
	error = memory->bar->ops->lookup(memory->bar, lookup);
	lookup->offset = offset;
	lookup->last = last;
	return error;
}

/* Find out what is at @va and how far it goes. */
static int survey(
	struct process_memory *memory, uint64_t va, uint64_t last, struct dmamap_lookup *lookup)
{
	struct soft_extent extent;
	struct soft_vma vma;
	uint64_t next;
	int error;

	if (soft_vma_find(&memory->system->vmas, va, &vma, &next)) {
		if (vma.device)
			return bar_view(memory, &vma, va, lookup);
		extent.last = vma.last;
		extent.contiguous = vma.page_shift;
	} else {
		if (last >= next)
			last = next - 1;
		error = soft_pages_populate(memory->system, va, last,
			memory->soft.base.prot & DMAMAP_WRITE, &extent, lookup->why);
		if (error)
			return error;
	}
	lookup->state[KNOWN_FIRST] = va;
	lookup->state[KNOWN_LAST] = extent.last;
	lookup->state[KNOWN_CONTIGUOUS] = extent.contiguous;
	return 0;
}

static bool in_bar(const struct process_memory *memory, uint64_t va)
{
	return memory->bar && va >= memory->bar_first && va <= memory->bar_last;
}

static int process_lookup(struct dmamap_memory *base, struct dmamap_lookup *lookup)
{
	struct process_memory *memory = (struct process_memory *)base;
	unsigned page_shift = memory->system->machine.page_shift;
	uint64_t va = memory->va + lookup->offset, last = memory->va + lookup->last;
	uint64_t pages, run_last;
	int error;

	if (in_bar(memory, va))
		return bar_lookup(memory, va, lookup);
	if (!lookup->state[KNOWN_CONTIGUOUS] || va < lookup->state[KNOWN_FIRST] ||
		va > lookup->state[KNOWN_LAST]) {
		error = survey(memory, va, last, lookup);
		if (error)
			return error;
		if (in_bar(memory, va))
			return bar_lookup(memory, va, lookup);
	}
	pages = memory->pinning == SOFT_PIN_TYPE1 ? (1ULL << page_shift) / sizeof(void *)
						  : 65536 / sizeof(void *);
	run_last = (va | ((1ULL << page_shift) - 1)) + ((pages - 1) << page_shift);
	if (run_last > lookup->state[KNOWN_LAST] || run_last < va)
		run_last = lookup->state[KNOWN_LAST];
	lookup->host = va;
	lookup->length = run_last - va + 1;
	lookup->contiguous = (unsigned)lookup->state[KNOWN_CONTIGUOUS];
	return 0;
}

static void process_release(struct dmamap_memory *base)
{
	struct process_memory *memory = (struct process_memory *)base;

	dmamap_memory_put(memory->bar);
	free(memory);
}

static const struct dmamap_memory_ops process_ops = {
	.lookup = process_lookup,
	.release = process_release,
};

int soft_memory_process(struct soft_system *system, uint64_t va, uint64_t length, unsigned prot,
	enum soft_pinning pinning, struct dmamap_memory **memory)
{
	struct process_memory *made = calloc(1, sizeof(*made));

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a mapping", length);
	/* Pages that are pinned for writing may be read too; without WRITE they may not be written.
	 */
	dmamap_memory_init(&made->soft.base, &process_ops, length,
		prot & DMAMAP_WRITE ? DMAMAP_READ | DMAMAP_WRITE : DMAMAP_READ);
	made->soft.phase = (unsigned)(va & (soft_page_size(system) - 1));
	made->soft.origin = va;
	made->system = system;
	made->va = va;
	made->pinning = pinning;
	*memory = &made->soft.base;
	return 0;
}
