/* SPDX-License-Identifier: MIT */
/*
 * Counting and charging of pinned pages: pins.h says what is counted.
 *
 * The kernel reads the limit of the process that mapped; the soft system's
 * processes share this one's.
 */
#include "soft/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/soft.h"

/* An edge for each end of a fill, and room to change the function before neighbours are joined. */
#define EDGES(fills) (2 * (fills) + 2)

/* From @page on, up to the next edge, @tables have it. Before the first edge none has. */
struct edge {
	uint64_t page;
	unsigned tables;
};

struct soft_edges {
	unsigned n, room;
	struct edge edge[];
};

void soft_pins_init(struct soft_pins *pins, struct soft_system *system, bool free)
{
	pins->system = system;
	pins->process = soft_process_current(system);
	pins->mode = free || soft_may_lock(system) ? SOFT_PINS_FREE : SOFT_PINS_USER;
}

void soft_pins_fini(struct soft_pins *pins)
{
	free(pins->edges);
}

/* Edges in place of the one range, with room for @more fills. Lock held. */
static int make_edges(struct soft_pins *pins, unsigned more)
{
	unsigned room = EDGES(pins->fills + more);
	struct soft_edges *old = pins->edges, *edges;

	if (old && room <= old->room)
		return 0;
	room *= 2;
	edges = realloc(old, sizeof(*edges) + room * sizeof(edges->edge[0]));
	if (!edges)
		return -ENOMEM;
	edges->room = room;
	if (!old) {
		edges->n = 2;
		edges->edge[0] = (struct edge){pins->first, pins->fills};
		edges->edge[1] = (struct edge){pins->last + 1, 0};
	}
	pins->edges = edges;
	return 0;
}

/* The edge at @page, made if need be. */
static unsigned edge_at(struct soft_edges *edges, uint64_t page)
{
	struct edge *edge = edges->edge;
	unsigned low = 0, high = edges->n;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (edge[middle].page < page)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < edges->n && edge[low].page == page)
		return low;
	memmove(&edge[low + 1], &edge[low], (edges->n - low) * sizeof(*edge));
	edge[low] = (struct edge){page, low ? edge[low - 1].tables : 0};
	edges->n++;
	return low;
}

/* Edges between equal counts go. */
static void join(struct soft_edges *edges)
{
	unsigned kept = 0, before = 0;

	for (unsigned i = 0; i < edges->n; i++) {
		if (edges->edge[i].tables == before)
			continue;
		before = edges->edge[i].tables;
		edges->edge[kept++] = edges->edge[i];
	}
	edges->n = kept;
}

/* One fill more or less. How many pages became pinned, or ceased to be. */
static uint64_t change(struct soft_pins *pins, uint64_t first, uint64_t last, bool more)
{
	struct soft_edges *edges = pins->edges;
	uint64_t pages = 0;
	unsigned from, to;

	pins->fills += more ? 1U : -1U;
	if (!edges)
		return pins->fills == more ? last - first + 1 : 0;
	from = edge_at(edges, first);
	to = edge_at(edges, last + 1);
	for (unsigned i = from; i < to; i++) {
		struct edge *edge = &edges->edge[i];

		if (more ? !edge->tables : edge->tables == 1)
			pages += edge[1].page - edge->page;
		edge->tables += more ? 1U : -1U;
	}
	join(edges);
	if (!pins->fills) {
		free(edges);
		pins->edges = NULL;
	}
	return pages;
}

/* So that one more fill can be counted, and its end. */
static int make_room(struct soft_pins *pins, uint64_t first, uint64_t last)
{
	if (!pins->fills) {
		pins->first = first;
		pins->last = last;
	}
	if (!pins->edges && pins->first == first && pins->last == last)
		return 0;
	return make_edges(pins, 1);
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
	error = make_room(pins, first, last);
	if (error) {
		DMAMAP_REFUSE(why, &soft_reason_no_memory, ENOMEM, "counting pinned pages",
			last - first + 1);
		goto unlock;
	}
	pages = change(pins, first, last, true);
	if (pages)
		error = charge(pins->system, pins->mode, pins->process, pages, why);
	if (error)
		change(pins, first, last, false);
	else
		pins->pages += pages;
unlock:
	pthread_mutex_unlock(lock);
	return error;
}

static void clear(struct soft_pins *pins, uint64_t first, uint64_t last)
{
	uint64_t pages;

	pthread_mutex_lock(&pins->system->pins_lock);
	pages = change(pins, first, last, false);
	pins->pages -= pages;
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
	uint64_t page = page_of(memory, offset), end = UINT64_MAX;
	bool pinned = false;

	pthread_mutex_lock(&pins->system->pins_lock);
	if (pins->edges) {
		for (unsigned i = 0; i < pins->edges->n; i++) {
			const struct edge *edge = &pins->edges->edge[i];

			if (edge->page > page) {
				end = edge->page - 1;
				break;
			}
			pinned = edge->tables;
		}
	} else if (pins->fills && page <= pins->last) {
		pinned = page >= pins->first;
		end = pinned ? pins->last : pins->first - 1;
	}
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
	error = tables ? make_edges(pins, tables) : 0;
	if (!error)
		pins->fills += tables;
	pthread_mutex_unlock(&pins->system->pins_lock);
	return error ? SOFT_REFUSE(no_memory, ENOMEM, "counting pinned pages", tables) : 0;
}

void soft_pins_unsplit(struct soft_pins *pins, unsigned tables)
{
	pthread_mutex_lock(&pins->system->pins_lock);
	pins->fills -= tables;
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
			pages[pins[i]->mode] += pins[i]->pages;
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
		uncharge(system, pins[i]->mode, pins[i]->process, pins[i]->pages);
		pins[i]->process = to;
	}
	pthread_mutex_unlock(&system->pins_lock);
	return error;
}
