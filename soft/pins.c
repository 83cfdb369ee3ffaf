/* SPDX-License-Identifier: MIT */
/*
 * Charging of pinned pages: pins.h says what is counted.
 *
 * The kernel reads the limit of the process that mapped; the soft system's
 * processes share this one's.
 */
#include "soft/pins.h"

#include <errno.h>

#include "soft/soft.h"

void soft_pins_init(struct soft_pins *pins, struct soft_system *system, bool free)
{
	pins->system = system;
	pins->process = soft_process_current(system);
	pins->mode = free || soft_may_lock(system) ? SOFT_PINS_FREE : SOFT_PINS_USER;
}

void soft_pins_fini(struct soft_pins *pins)
{
	dmamap_pins_clear(&pins->pages);
}

static int charge(struct soft_system *system, enum soft_pins_mode mode,
	struct soft_process *process, uint64_t pages, struct dmamap_reason *why)
{
	_Atomic uint64_t *counter =
		mode == SOFT_PINS_USER ? &system->accounts.user : &process->locked;
	int error = 0;

	if (mode == SOFT_PINS_PROCESS && atomic_load(&process->gone))
		return DMAMAP_REFUSE(why, &soft_reason_process_uncharged, EINVAL, NULL,
			process->number, pages << system->machine.page_shift);
	if (mode != SOFT_PINS_FREE)
		error = soft_charge(system, counter, pages, soft_lock_limit(system), why);
	if (!error)
		atomic_fetch_add_explicit(&process->pinned, pages, memory_order_relaxed);
	return error;
}

static void uncharge(struct soft_system *system, enum soft_pins_mode mode,
	struct soft_process *process, uint64_t pages)
{
	if (mode == SOFT_PINS_USER)
		soft_uncharge(&system->accounts.user, pages);
	else if (mode == SOFT_PINS_PROCESS)
		soft_uncharge(&process->locked, pages);
	atomic_fetch_sub_explicit(&process->pinned, pages, memory_order_relaxed);
}

static int fill(struct soft_pins *pins, uint64_t first, uint64_t last, struct dmamap_reason *why)
{
	pthread_mutex_t *lock = &pins->system->pins_lock;
	uint64_t pages;
	int error;

	pthread_mutex_lock(lock);
	error = dmamap_pins_add(&pins->pages, first, last, &pages);
	if (error) {
		error = DMAMAP_REFUSE(why, &soft_reason_no_memory, ENOMEM, "counting pinned pages",
			last - first + 1);
		goto unlock;
	}
	if (pages)
		error = charge(pins->system, pins->mode, pins->process, pages, why);
	if (error)
		dmamap_pins_remove(&pins->pages, first, last);
unlock:
	pthread_mutex_unlock(lock);
	return error;
}

static void clear(struct soft_pins *pins, uint64_t first, uint64_t last)
{
	uint64_t pages;

	pthread_mutex_lock(&pins->system->pins_lock);
	pages = dmamap_pins_remove(&pins->pages, first, last);
	if (pages)
		uncharge(pins->system, pins->mode, pins->process, pages);
	pthread_mutex_unlock(&pins->system->pins_lock);
}

static uint64_t page_of(const struct soft_memory *memory, uint64_t offset)
{
	return (memory->phase + offset) >> memory->pins->system->machine.page_shift;
}

bool soft_memory_pinned(const struct soft_memory *memory, uint64_t offset, uint64_t *last)
{
	const struct soft_pins *pins = memory->pins;
	unsigned shift = pins->system->machine.page_shift;
	uint64_t end = UINT64_MAX;
	bool pinned;

	pthread_mutex_lock(&pins->system->pins_lock);
	pinned = dmamap_pins_at(&pins->pages, page_of(memory, offset), &end);
	pthread_mutex_unlock(&pins->system->pins_lock);
	if (end != UINT64_MAX)
		end = ((end + 1) << shift) - 1 - memory->phase;
	if (*last > end)
		*last = end;
	return pinned;
}

int soft_memory_filled(
	struct dmamap_memory *base, uint64_t offset, uint64_t last, struct dmamap_reason *why)
{
	const struct soft_memory *memory = (const struct soft_memory *)base;

	return fill(memory->pins, page_of(memory, offset), page_of(memory, last), why);
}

void soft_memory_cleared(struct dmamap_memory *base, uint64_t offset, uint64_t last)
{
	const struct soft_memory *memory = (const struct soft_memory *)base;

	clear(memory->pins, page_of(memory, offset), page_of(memory, last));
}

int soft_pins_split(struct soft_pins *pins, unsigned tables)
{
	int error;

	pthread_mutex_lock(&pins->system->pins_lock);
	error = dmamap_pins_split(&pins->pages, tables);
	pthread_mutex_unlock(&pins->system->pins_lock);
	return error ? SOFT_REFUSE(no_memory, ENOMEM, "counting pinned pages", tables) : 0;
}

void soft_pins_unsplit(struct soft_pins *pins, unsigned tables)
{
	pthread_mutex_lock(&pins->system->pins_lock);
	dmamap_pins_unsplit(&pins->pages, tables);
	pthread_mutex_unlock(&pins->system->pins_lock);
}

/* What nobody is charged for stays where it was counted. */
static bool moves(const struct soft_pins *pins, const struct soft_process *to)
{
	return pins->mode != SOFT_PINS_FREE && pins->process != to;
}

int soft_pins_move(struct soft_system *system, struct soft_pins *const *pins, size_t n)
{
	struct soft_process *to = soft_process_current(system);
	uint64_t pages[SOFT_PINS_MODES] = {0};
	unsigned mode;
	int error = 0;

	pthread_mutex_lock(&system->pins_lock);
	/* The same memory may be in the list more than once. */
	for (size_t i = 0; i < n; i++) {
		if (moves(pins[i], to) && !pins[i]->counted)
			pages[pins[i]->mode] += pins[i]->pages.pinned;
		pins[i]->counted = true;
	}
	/* The new one is charged while the old ones still are, as in the kernel. */
	for (mode = 0; mode < SOFT_PINS_MODES && !error; mode++)
		if (pages[mode])
			error = charge(system, mode, to, pages[mode], soft_why());
	if (error)
		for (mode--; mode-- > 0;)
			if (pages[mode])
				uncharge(system, mode, to, pages[mode]);
	for (size_t i = 0; i < n; i++) {
		pins[i]->counted = false;
		if (error || !moves(pins[i], to))
			continue;
		uncharge(system, pins[i]->mode, pins[i]->process, pins[i]->pages.pinned);
		pins[i]->process = to;
	}
	pthread_mutex_unlock(&system->pins_lock);
	return error;
}
