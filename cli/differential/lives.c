/* SPDX-License-Identifier: MIT */
/*
 * Beginnings and ends: files opened and closed in any order, groups put into
 * containers, devices bound and attached; and what happens to memory, limits
 * and capabilities meanwhile.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/differential/world.h"

static void open_file(struct world *world)
{
	static const struct {
		enum world_kind kind;
		const char *letter, *word;
		unsigned weight;
	} files[] = {
		{WORLD_CONTAINER, "c", "container", 15},
		{WORLD_COMPAT, "c", "compat", 10},
		{WORLD_IOMMUFD, "f", "iommufd", 15},
		{WORLD_GROUP, "g", "group", 30},
		{WORLD_DEVICE, "x", "cdev", 30},
	};
	unsigned left = dice_below(&world->dice, 100), i = 0;
	unsigned device = world_device(world);
	struct world_thing *thing;

	while (left >= files[i].weight)
		left -= files[i++].weight;
	/* A kernel without IOMMUFD has no cdevs either. */
	if (files[i].kind & (WORLD_DEVICE | WORLD_COMPAT | WORLD_IOMMUFD) && !world->host->iommufd)
		return;
	thing = world_name(world, files[i].kind, files[i].letter, device);
	if (!thing)
		return;
	script_add(&world->script, "open %s %s", thing->name, files[i].word);
	if (files[i].kind & (WORLD_GROUP | WORLD_DEVICE))
		script_add(&world->script, " d%u", device);
	world_end(world);
}

static void device_fd(struct world *world)
{
	struct world_thing *group = world_pick(world, WORLD_GROUP), *device;

	if (!group)
		return;
	device = world_name(world, WORLD_DEVICE, "x", group->device);
	if (!device)
		return;
	script_add(&world->script, "device_fd %s %s d%u", device->name, group->name,
		dice_chance(&world->dice, 950) ? group->device : world_device(world));
	if (dice_chance(&world->dice, 20))
		script_add(&world->script, " name=0000:ff:1f.7");
	world_end(world);
}

static void set_container(struct world *world)
{
	struct world_thing *group = world_pick(world, WORLD_GROUP);
	struct world_thing *to = world_pick(world, WORLD_CONTAINERS | WORLD_IOMMUFD);

	if (!group)
		return;
	if (dice_chance(&world->dice, 40))
		to = world_pick(world, WORLD_GROUP | WORLD_DEVICE | WORLD_EVENTFD);
	if (to)
		world_line(world, "set_container %s %s", group->name, to->name);
	else
		world_line(world, "set_container %s -1", group->name);
}

static void unset_container(struct world *world)
{
	struct world_thing *group = world_pick(world, WORLD_GROUP);

	if (group)
		world_line(world, "unset_container %s", group->name);
}

static void set_iommu(struct world *world)
{
	struct world_thing *container = world_pick(world, WORLD_CONTAINERS);

	if (container)
		world_line(world, "set_iommu %s %s", container->name,
			dice_chance(&world->dice, 300) ? "type1" : "type1v2");
}

static void group_status(struct world *world)
{
	struct world_thing *group = world_pick(world, WORLD_GROUP);

	if (!group)
		return;
	script_add(&world->script, "group_status %s", group->name);
	world_extras(world, 8, 8);
	world_end(world);
}

static void bind_device(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *device = world_pick(world, WORLD_DEVICE);
	struct world_thing *iommufd = world_pick(world, WORLD_IOMMUFD | WORLD_COMPAT);

	if (!device || !world->host->iommufd)
		return;
	if (dice_chance(dice, 40))
		iommufd = world_pick(world, ~0U);
	script_add(&world->script, "bind %s %s", device->name,
		iommufd && iommufd->kind & (WORLD_IOMMUFD | WORLD_CONTAINERS | WORLD_GROUP)
			? iommufd->name
			: "-1");
	if (dice_chance(dice, 20))
		script_add(&world->script, " flags=%u", 1 + dice_below(dice, 2));
	world_extras(world, 16, 24);
	world_end(world);
}

static void close_file(struct world *world)
{
	struct world_thing *thing =
		world_pick(world, WORLD_CONTAINERS | WORLD_IOMMUFD | WORLD_GROUP | WORLD_DEVICE);

	/* What follows on a closed container is all the same: seldom. */
	if (!thing || thing->closed ||
		(thing->kind & (WORLD_CONTAINERS | WORLD_IOMMUFD) &&
			!dice_chance(&world->dice, 300)))
		return;
	world_line(world, "close %s", thing->name);
	world_close(world, thing);
}

const struct world_choice world_life_calls[] = {
	{200, open_file},
	{120, device_fd},
	{150, set_container},
	{40, unset_container},
	{120, set_iommu},
	{60, group_status},
	{150, bind_device},
	{130, close_file},
	{20, world_set_up},
	{0, NULL},
};

/* ------------------------------------------------------------------ memory */

/* The pages stay mapped for devices, whatever becomes of the process's memory. */
static void cut_memory(struct world *world)
{
	struct dice *dice = &world->dice;
	char address[48];
	uint64_t room;

	world_memory(world, address, sizeof(address), &room);
	/* Whole pages of our own memory only. */
	if (address[0] < 'c' || address[0] > 't' || room % world->page || room < 4 * world->page ||
		strncmp(address, "null", 4) == 0 || strncmp(address, "max", 3) == 0)
		return;
	if (dice_chance(dice, 300))
		world_line(world, "munmap %s+4K size=4K", address);
	else
		world_line(world, "protect %s size=8K prot=%s", address,
			dice_chance(dice, 500) ? "r" : "rw");
}

static void limit(struct world *world)
{
	static const char *const limits[] = {"0", "4K", "64K", "100K", "128K", "1M", "max", "max"};
	struct dice *dice = &world->dice;

	if (dice_chance(dice, 500))
		world_line(world, "capability ipc_lock=%s", dice_chance(dice, 600) ? "off" : "on");
	else if (dice_chance(dice, 50))
		world_line(
			world, "capability sys_resource=%s", dice_chance(dice, 500) ? "off" : "on");
	else
		world_line(world, "limit memlock=%s", DICE_OF(dice, limits));
}

static void charged(struct world *world)
{
	world_line(world, "charged");
}

const struct world_choice world_memory_calls[] = {
	{30, cut_memory},
	{30, limit},
	{40, charged},
	{0, NULL},
};
