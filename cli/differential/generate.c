/* SPDX-License-Identifier: MIT */
/*
 * A sequence begins in one of a few modes and keeps to it: most of its calls
 * are those that the mode makes sense of, a few are any others. It is short
 * enough that what went wrong can be found, and now and then long enough that
 * much is mapped.
 */
#include "cli/differential/generate.h"

#include <stdio.h>

unsigned world_device(struct world *world)
{
	const struct dmamap_machine *machine = world->host->machine;
	unsigned device = dice_below(&world->dice, (unsigned)machine->n_devices);

	/* A device with a reset is reset whenever it is opened, and that takes its time. */
	for (unsigned i = 0;
		i < 8 && machine->devices[device].reset && !dice_chance(&world->dice, 8); i++)
		device = dice_below(&world->dice, (unsigned)machine->n_devices);
	return device;
}

/* The names that a whole set-up gives to what it opens. */
static void name_device(struct world *world, unsigned device, bool group)
{
	struct world_thing *thing = world_name(world, WORLD_DEVICE, "d", device);

	world->opened |= 1ULL << device;
	if (thing)
		snprintf(thing->name, sizeof(thing->name), "d%u", device);
	thing = group ? world_name(world, WORLD_GROUP, "d", device) : NULL;
	if (thing)
		snprintf(thing->name, sizeof(thing->name), "d%u.group", device);
}

static void set_up_container(struct world *world, bool compat)
{
	struct dice *dice = &world->dice;
	unsigned first = world_device(world), second = world_device(world);
	bool two = second != first && dice_chance(dice, 150);
	struct world_thing *container =
		world_name(world, compat ? WORLD_COMPAT : WORLD_CONTAINER, "c", 0);

	if (!container)
		return;
	script_add(&world->script, "container %s %stype1%s d%u", container->name,
		compat ? "compat_" : "", dice_chance(dice, 350) ? "" : "v2", first);
	if (two)
		script_add(&world->script, " d%u", second);
	script_end(&world->script);
	name_device(world, first, true);
	if (two)
		name_device(world, second, true);
}

static void set_up_iommufd(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *iommufd = world_name(world, WORLD_IOMMUFD, "f", 0);
	unsigned n = 1 + dice_below(dice, 3);

	if (!iommufd)
		return;
	world_line(world, "iommufd %s", iommufd->name);
	if (dice_chance(dice, 60))
		world_line(world, "option %s option=rlimit_mode op=set value=1", iommufd->name);
	for (unsigned i = 0; i < n; i++) {
		struct world_thing *ioas = world_name(world, WORLD_IOAS, "i", 0);

		if (!ioas)
			return;
		ioas->file = (unsigned)(iommufd - world->things);
		ioas->attached = dice_chance(dice, i ? 200 : 700);
		script_add(&world->script, "ioas %s %s", ioas->name, iommufd->name);
		if (ioas->attached) {
			unsigned device = world_device(world);

			script_add(&world->script, " d%u", device);
			name_device(world, device, false);
		}
		script_end(&world->script);
	}
}

void world_set_up(struct world *world)
{
	unsigned kind = dice_below(&world->dice, 100);

	if (kind < 55 || !world->host->iommufd)
		set_up_container(world, false);
	else if (kind < 70)
		set_up_container(world, true);
	else
		set_up_iommufd(world);
}

/* How often each kind of call comes, of 1000; the rest are lives. */
struct mix {
	unsigned container, iommufd, device, memory;
};

static struct mix begin(struct world *world)
{
	unsigned kind = dice_below(&world->dice, 100);

	if (kind < 12)
		return (struct mix){150, world->host->iommufd ? 150 : 0, 200, 20};
	if (kind < 50 || !world->host->iommufd) {
		set_up_container(world, false);
		return (struct mix){930, 0, 45, 8};
	}
	if (kind < 65) {
		set_up_container(world, true);
		return (struct mix){890, 40, 45, 8};
	}
	set_up_iommufd(world);
	return (struct mix){10, 940, 25, 8};
}

void generate(struct world *world, const struct world_host *host, uint64_t seed, uint64_t number,
	uint64_t limit)
{
	struct dice *dice = &world->dice;
	struct mix mix;
	uint64_t lines;
	unsigned kind;

	world_start(world, host, seed, number);
	lines = 20 + dice_below(dice, 130);
	if (dice_chance(dice, 80))
		lines = 400;
	if (dice_chance(dice, 4))
		lines = 4000;
	mix = begin(world);
	if (lines > limit)
		lines = limit;
	while (world->script.n < lines && !world->script.failed) {
		kind = dice_below(dice, 1000);
		if (kind < mix.container)
			world_choose(world, world_container_calls);
		else if ((kind -= mix.container) < mix.iommufd)
			world_choose(world, world_iommufd_calls);
		else if ((kind -= mix.iommufd) < mix.device)
			world_choose(world, world_device_calls);
		else if ((kind -= mix.device) < mix.memory)
			world_choose(world, world_memory_calls);
		else
			world_choose(world, world_life_calls);
	}
}
