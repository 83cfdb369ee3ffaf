/* SPDX-License-Identifier: MIT */
/*
 * What a random sequence knows of itself while it is written: which things
 * have names, which ranges of IOVAs were used, what the machine's edges are.
 * From that come values that are likely to hit something: a range that was
 * mapped, its neighbour, the last page below a window.
 *
 * Nothing here knows what a call answered. A value that depends on an answer
 * (an IOVA that was allocated) is written as a variable of the case.
 */
#ifndef DIFFERENTIAL_WORLD_H
#define DIFFERENTIAL_WORLD_H

#include "cli/differential/dice.h"
#include "cli/differential/script.h"
#include "dmamap/soft.h"

/** What a name stands for; a bit each. */
enum world_kind {
	WORLD_CONTAINER = 1 << 0, /**< on /dev/vfio/vfio */
	WORLD_COMPAT = 1 << 1,	  /**< /dev/iommu as a container */
	WORLD_IOMMUFD = 1 << 2,
	WORLD_IOAS = 1 << 3,
	WORLD_HWPT = 1 << 4,
	WORLD_GROUP = 1 << 5,
	WORLD_DEVICE = 1 << 6, /**< an opened device, or a machine's: its last opened file */
	WORLD_EVENTFD = 1 << 7,
};

#define WORLD_CONTAINERS (WORLD_CONTAINER | WORLD_COMPAT)

/** struct world_thing - @device: its number; @file: index of the thing that it belongs to. */
struct world_thing {
	char name[12];
	enum world_kind kind;
	unsigned device;
	unsigned file;
	bool attached; /**< an IOAS: a device was attached when it was made */
	bool closed;
};

/** struct world_range - A range of IOVAs: @base is a number, or a variable's name; @space is
 * what it was mapped in, the container or IOAS. */
struct world_range {
	char base[20];
	uint64_t size;
	const struct world_thing *space;
};

#define WORLD_THINGS 48
#define WORLD_RANGES 24
#define WORLD_EDGES  24

/** What the host has, which not every machine does. */
struct world_host {
	const struct dmamap_machine *machine;
	bool iommufd;	 /**< /dev/iommu and cdevs */
	bool huge_pages; /**< of 2 MiB, a few of them free */
	bool dma;	 /**< device @dma_device does DMA on command */
	unsigned dma_device;
};

struct world {
	const struct world_host *host;
	struct dice dice;
	struct script script;
	struct world_thing things[WORLD_THINGS];
	unsigned n_things;
	struct world_range ranges[WORLD_RANGES];
	unsigned n_ranges; /**< ever */
	uint64_t edges[WORLD_EDGES];
	unsigned n_edges;
	uint64_t page;
	unsigned memories; /**< a bit for each that is there */
	unsigned n_variables;
	unsigned n_bars;
	unsigned n_dmas, n_files, n_maps;
	uint64_t opened; /**< a bit for each device that a whole set-up opened */
	unsigned odd;	 /**< how many of a thousand values are not whole pages */
};

/** world_start() - An empty sequence. */
void world_start(
	struct world *world, const struct world_host *host, uint64_t seed, uint64_t stream);

/** world_name() - A new thing; NULL: there are enough. */
struct world_thing *world_name(
	struct world *world, enum world_kind kind, const char *letter, unsigned device);
/** world_pick() - A random thing of these kinds, mostly an open one; NULL: there is none. */
struct world_thing *world_pick(struct world *world, unsigned kinds);
/** world_close() - The thing is closed, and with it what belongs to it. */
void world_close(struct world *world, struct world_thing *thing);
/** world_remember() - A range that may be used again: @base is a number or a variable's output. */
void world_remember(
	struct world *world, const struct world_thing *space, const char *base, uint64_t size);

/** world_size() - Bytes: mostly some pages, at most @room where it is to work. */
uint64_t world_size(struct world *world, uint64_t room);
/** world_iova() - Where a range of @size could be in a space; @base gets its text. */
void world_iova(struct world *world, const struct world_thing *space, uint64_t size, char *base,
	size_t base_size);
/** world_old_range() - One that was used, exactly, mostly in this space; false: there is none. */
bool world_old_range(struct world *world, const struct world_thing *space, char *base,
	size_t base_size, uint64_t *size);
/** world_memory() - A place in some memory, made where it is not there yet; @room: bytes
 * from there on. */
void world_memory(struct world *world, char *address, size_t address_size, uint64_t *room);
/** world_memory_file() - The same in a memfd: its name and a start. */
void world_memory_file(struct world *world, const char **file, uint64_t *start, uint64_t *room);

/** world_line() - A whole line. */
#define world_line(world, ...)                                                                     \
	(script_add(&(world)->script, __VA_ARGS__), script_end(&(world)->script))

/** world_extras() - What any call may have too much or too little of: a structure of the
 * wrong size, a tail, a bad pointer; seldom. Sizes are those of the structure. */
void world_extras(struct world *world, unsigned minimum, unsigned full);

/** world_end() - The call's line is whole; seldom, a key that the call has and that was not
 * given gets some number. */
void world_end(struct world *world);

/** struct world_choice - A call, and how often: the sum of all is the whole. */
struct world_choice {
	unsigned weight;
	void (*write)(struct world *world);
};

/** world_choose() - One of them; the table ends with weight 0. */
void world_choose(struct world *world, const struct world_choice *choices);

/** world_device() - The number of a device, mostly of one that is opened at once. */
unsigned world_device(struct world *world);
/** world_set_up() - A container or an IOMMUFD with devices, whole. */
void world_set_up(struct world *world);

extern const struct world_choice world_container_calls[], world_iommufd_calls[],
	world_device_calls[], world_life_calls[], world_memory_calls[];

#endif
