/* SPDX-License-Identifier: MIT */
/*
 * The memory of one type1 mapping: this process's, BARs included. The first
 * table that is filled with it finds it as the kernel pins it: one look-up
 * answers for as many pages as one pin call takes (a page full of page
 * pointers, 512 at 4 KiB; 1 with disable_hugepages), and a BAR by its leaves.
 *
 * What was found is remembered, as the kernel remembers what it pinned: a
 * table that comes later is filled with that, whatever became of the
 * addresses since, and nobody is charged again.
 *
 * Pages are charged in their order, BARs not at all, while they are found: the
 * limit refuses a mapping only when it is met before the first page that
 * faults (vfio_pin_pages_remote() in vfio_iommu_type1.c). The charge ends with
 * the memory, which the mapping alone holds: a mapping that could not be made
 * has none.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "soft/type1.h"

/* A fill's state: how it finds memory, where it was found last, and what may be charged. */
enum { FILL_KIND, FILL_EXTENT, FILL_LIMIT, FILL_BAR_FIRST };
enum { FILL_FINDS = 1, FILL_KNOWS = 2, FILL_LIMIT_KNOWN = 4 };

/* How contiguous a BAR is: one piece throughout. */
#define WHOLE 63

static uint64_t last_va(const struct type1_dma *dma)
{
	return dma->va + dma->memory.length - 1;
}

static bool is_known(const struct type1_dma *dma)
{
	return dma->n_extents && dma->extents[dma->n_extents - 1].last == last_va(dma);
}

/* ------------------------------------------------------------- accounting */

/*
 * The limit and the capability are asked for once a mapping, and the one first
 * that decided this thread's last mapping: a system call costs as much as all
 * the rest of a small one.
 */
static _Thread_local bool exempt_last;

static void find_limit(const struct soft_system *system, uint64_t *state)
{
	exempt_last = exempt_last && soft_may_lock(system);
	state[FILL_LIMIT] = exempt_last ? UINT64_MAX : soft_lock_limit(system);
	state[FILL_KIND] |= FILL_LIMIT_KNOWN;
}

/* How many of @pages may still be charged. */
static uint64_t room_for(struct type1_dma *dma, uint64_t pages, uint64_t *state)
{
	const struct soft_system *system = dma->type1->space.system;
	uint64_t locked = atomic_load_explicit(&dma->process->locked, memory_order_relaxed);

	if (!(state[FILL_KIND] & FILL_LIMIT_KNOWN))
		find_limit(system, state);
	if (state[FILL_LIMIT] >= locked && pages <= state[FILL_LIMIT] - locked)
		return pages;
	exempt_last = soft_may_lock(system);
	if (exempt_last) {
		state[FILL_LIMIT] = UINT64_MAX;
		return pages;
	}
	return state[FILL_LIMIT] > locked ? state[FILL_LIMIT] - locked : 0;
}

static int charge(struct type1_dma *dma, uint64_t pages, uint64_t limit, struct dmamap_reason *why)
{
	struct soft_system *system = dma->type1->space.system;
	struct dmamap_reason charged;
	int error = soft_charge(system, &dma->process->locked, pages, limit, &charged);

	if (!error) {
		dma->locked += pages;
		return 0;
	}
	/* Say it of the whole mapping, not of the pages where it came to the limit. */
	return DMAMAP_REFUSE(why, &soft_reason_memlock, ENOMEM, charged.label, dma->memory.length,
		charged.number[1] - (dma->locked << system->machine.page_shift), charged.number[2]);
}

int type1_dma_charge_current(struct type1_dma *dma)
{
	struct soft_system *system = dma->type1->space.system;
	struct soft_process *process = soft_process_current(system);
	uint64_t limit;
	int error;

	if (process == dma->process)
		return 0;
	limit = soft_may_lock(system) ? UINT64_MAX : soft_lock_limit(system);
	error = dma->locked ? soft_charge(system, &process->locked, dma->locked, limit, soft_why())
			    : 0;
	if (error)
		return error;
	soft_uncharge(&dma->process->locked, dma->locked);
	dma->process = process;
	return 0;
}

/* ---------------------------------------------------------------- finding */

static int remember(struct type1_dma *dma, const struct type1_extent *extent)
{
	struct type1_extent *latest = dma->n_extents ? &dma->extents[dma->n_extents - 1] : NULL;

	if (latest && latest->contiguous == extent->contiguous && latest->shift == extent->shift) {
		latest->last = extent->last;
		return 0;
	}
	if (dma->n_extents == dma->room) {
		uint32_t room = dma->room * 4;
		struct type1_extent *extents = malloc(room * sizeof(*extents));

		if (!extents)
			return -ENOMEM;
		for (uint32_t i = 0; i < dma->n_extents; i++)
			extents[i] = dma->extents[i];
		if (dma->extents != &dma->only)
			free(dma->extents);
		dma->extents = extents;
		dma->room = room;
	}
	dma->extents[dma->n_extents++] = *extent;
	return 0;
}

/* What is at an address, up to @last at most. */
struct quest {
	struct type1_dma *dma;
	uint64_t va, last;
	uint64_t *state; /* of the fill; NULL: nobody fills, and nobody pays */
	struct dmamap_reason *why;
};

static int find_bar(
	const struct quest *quest, const struct soft_vma *vma, struct type1_extent *extent)
{
	struct type1_dma *dma = quest->dma;
	const struct dmamap_machine *machine = &dma->type1->space.system->machine;
	const struct soft_bar *bar = &vma->device->bars[vma->bar];
	unsigned wanted = dma->memory.prot & DMAMAP_WRITE ? PROT_WRITE : PROT_READ;
	struct dmamap_bar_view view = {
		.host = (char *)bar->host + vma->offset,
		.address = bar->address + vma->offset,
		.va = vma->first,
		.length = vma->last - vma->first + 1,
		.page_shift = machine->page_shift,
		.strides = 1ULL << machine->page_shift,
	};
	int error;

	if (!(vma->prot & wanted))
		return DMAMAP_REFUSE(quest->why, &soft_reason_memory_access, EFAULT,
			wanted == PROT_WRITE ? "written" : "read", vma->first, vma->last);
	if (!atomic_load_explicit(&vma->device->memory_on, memory_order_relaxed))
		return DMAMAP_REFUSE(quest->why, &soft_reason_bar_off, EFAULT, vma->device->is.bdf,
			quest->va, vma->bar);
	if (machine->pfnmap_stride == DMAMAP_PFNMAP_LEAF && !machine->disable_hugepages)
		view.strides |= 1ULL << soft_pmd_shift(dma->type1->space.system) |
				1ULL << (3 * machine->page_shift - 6);
	dmamap_memory_put(dma->bar);
	dma->bar = NULL;
	error = dmamap_memory_bar(&view, DMAMAP_READ | DMAMAP_WRITE, &dma->bar);
	if (error)
		return DMAMAP_REFUSE(
			quest->why, &soft_reason_no_memory, -error, "a BAR's mapping", 0);
	if (quest->state)
		quest->state[FILL_BAR_FIRST] = vma->first;
	extent->last = vma->last < quest->last ? vma->last : quest->last;
	extent->shift = (uintptr_t)view.host - vma->first;
	extent->contiguous = WHOLE;
	return 0;
}

/* Memory of the process: made present, unless it was declared, and charged to it. */
static int find_pages(
	const struct quest *quest, const struct soft_vma *declared, struct type1_extent *extent)
{
	struct type1_dma *dma = quest->dma;
	struct soft_system *system = dma->type1->space.system;
	unsigned shift = system->machine.page_shift;
	uint64_t last = declared && declared->last < quest->last ? declared->last : quest->last;
	uint64_t pages = ((last - quest->va) >> shift) + 1;
	uint64_t room = quest->state ? room_for(dma, pages, quest->state) : pages;
	struct soft_extent found;
	int error;

	/* One page more than may be charged has to be there: a fault before it comes first. */
	if (room < pages)
		last = quest->va + ((room + 1) << shift) - 1;
	if (declared) {
		found.last = last;
		found.contiguous = declared->page_shift;
	} else {
		error = soft_pages_populate(system, quest->va, last,
			dma->memory.prot & DMAMAP_WRITE, &found, quest->why);
		if (error)
			return error;
	}
	extent->last = found.last;
	extent->shift = 0;
	extent->contiguous = found.contiguous;
	if (!quest->state)
		return 0;
	pages = ((found.last - quest->va) >> shift) + 1;
	return charge(dma, pages, quest->state[FILL_LIMIT], quest->why);
}

/* Find out what is at the first address that is not known, and remember it. */
static int find_next(struct type1_dma *dma, uint64_t *state, struct dmamap_reason *why)
{
	uint64_t va = dma->n_extents ? dma->extents[dma->n_extents - 1].last + 1 : dma->va;
	struct quest quest = {dma, va, last_va(dma), state, why};
	struct type1_extent extent;
	struct soft_vma vma;
	uint64_t next;
	int error;

	if (!soft_vma_find(&dma->type1->space.system->vmas, va, &vma, &next)) {
		if (quest.last >= next)
			quest.last = next - 1;
		error = find_pages(&quest, NULL, &extent);
	} else if (vma.device) {
		error = find_bar(&quest, &vma, &extent);
	} else {
		error = find_pages(&quest, &vma, &extent);
	}
	if (error)
		return error;
	error = remember(dma, &extent);
	return error ? DMAMAP_REFUSE(why, &soft_reason_no_memory, ENOMEM, "a mapping", 0) : 0;
}

int type1_dma_survey(struct type1_dma *dma)
{
	int error = 0;

	while (!error && !is_known(dma))
		error = find_next(dma, NULL, NULL);
	return error;
}

/* Where a BAR's next stride ends is the engine's rule. */
static int bar_stride(struct type1_dma *dma, uint64_t va, struct dmamap_lookup *lookup)
{
	uint64_t offset = lookup->offset, last = lookup->last;
	int error;

	lookup->offset = va - lookup->state[FILL_BAR_FIRST];
	lookup->last = lookup->offset + (last - offset);
	if (lookup->last > dma->bar->length - 1)
		lookup->last = dma->bar->length - 1;
	error = dma->bar->ops->lookup(dma->bar, lookup);
	lookup->offset = offset;
	lookup->last = last;
	return error;
}

/* Bytes that one pin call takes: a page full of page pointers, or one page. */
static uint64_t pin_step(const struct type1_dma *dma)
{
	const struct dmamap_machine *machine = &dma->type1->space.system->machine;

	if (machine->disable_hugepages)
		return 1ULL << machine->page_shift;
	return (1ULL << 2 * machine->page_shift) / sizeof(void *);
}

/* The extent that holds @va, known or found now for as many pages as are pinned at once. */
static int find_extent(struct type1_dma *dma, uint64_t va, struct dmamap_lookup *lookup)
{
	uint64_t at = lookup->state[FILL_EXTENT], step = pin_step(dma);
	int error;

	while (at < dma->n_extents && dma->extents[at].last < va)
		at++;
	if (at == dma->n_extents) {
		error = find_next(dma, lookup->state, lookup->why);
		if (error)
			return error;
		at = dma->n_extents - 1;
	}
	/* More of the same kind makes the last extent longer. */
	while (at == dma->n_extents - 1 && !is_known(dma) && dma->extents[at].contiguous != WHOLE &&
		dma->extents[at].last - va + 1 < step) {
		error = find_next(dma, lookup->state, lookup->why);
		if (error)
			return error;
	}
	lookup->state[FILL_EXTENT] = at;
	return 0;
}

static int dma_lookup(struct dmamap_memory *memory, struct dmamap_lookup *lookup)
{
	struct type1_dma *dma = (struct type1_dma *)memory;
	uint64_t va = dma->va + lookup->offset;
	const struct type1_extent *extent;
	int error;

	if (!lookup->state[FILL_KIND])
		lookup->state[FILL_KIND] = is_known(dma) ? FILL_KNOWS : FILL_FINDS;
	error = find_extent(dma, va, lookup);
	if (error)
		return error;
	extent = &dma->extents[lookup->state[FILL_EXTENT]];
	lookup->host = va + extent->shift;
	lookup->length = extent->last - va + 1;
	lookup->contiguous = extent->contiguous;
	if (lookup->state[FILL_KIND] & FILL_KNOWS)
		return 0;
	if (extent->contiguous == WHOLE)
		return bar_stride(dma, va, lookup);
	if (lookup->length > pin_step(dma))
		lookup->length = pin_step(dma);
	return 0;
}

static void dma_release(struct dmamap_memory *memory)
{
	struct type1_dma *dma = (struct type1_dma *)memory;

	soft_uncharge(&dma->process->locked, dma->locked);
	if (dma->vaddr_invalid)
		dma->type1->invalid--;
	dmamap_memory_put(dma->bar);
	if (dma->extents != &dma->only)
		free(dma->extents);
	free(dma);
}

static const struct dmamap_memory_ops dma_ops = {
	.lookup = dma_lookup,
	.release = dma_release,
};

int type1_dma_create(struct soft_type1 *type1, uint64_t va, uint64_t length, unsigned prot,
	struct type1_dma **dma)
{
	struct type1_dma *made = calloc(1, sizeof(*made));

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a mapping", length);
	/* What is pinned for writing may be read too; without WRITE it may not be written. */
	dmamap_memory_init(&made->memory, &dma_ops, length,
		prot & DMAMAP_WRITE ? DMAMAP_READ | DMAMAP_WRITE : DMAMAP_READ);
	made->type1 = type1;
	made->va = va;
	made->extents = &made->only;
	made->room = 1;
	made->process = soft_process_current(type1->space.system);
	*dma = made;
	return 0;
}
