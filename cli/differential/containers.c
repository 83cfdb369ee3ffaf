/* SPDX-License-Identifier: MIT */
/* The calls of a VFIO container, of type1 and of an IOMMUFD that stands in for it. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/differential/world.h"

static struct world_thing *some_container(struct world *world)
{
	/* An IOMMUFD answers these calls too, when an IOAS is named for them. */
	unsigned kinds =
		dice_chance(&world->dice, 20) ? WORLD_CONTAINERS | WORLD_IOMMUFD : WORLD_CONTAINERS;

	return world_pick(world, kinds);
}

/* Begins "VERB C"; false where there is no container. */
static bool on_container(struct world *world, const char *verb)
{
	struct world_thing *container = some_container(world);

	if (container)
		script_add(&world->script, "%s %s", verb, container->name);
	return container;
}

static void map(struct world *world)
{
	static const char *const flags[] = {
		"read", "read", "read", "write", "0", "read,vaddr", "0x8", "read,write,0x80000000"};
	struct dice *dice = &world->dice;
	struct world_thing *container = some_container(world);
	bool again = false;
	char base[64], address[48];
	uint64_t room, size;

	if (!container)
		return;
	/* The memory may have to be made first: its lines stand before. */
	world_memory(world, address, sizeof(address), &room);
	if (dice_chance(dice, 40))
		again = world_old_range(world, container, base, sizeof(base), &size);
	if (!again) {
		size = world_size(world, room);
		world_iova(world, container, size, base, sizeof(base));
	}
	script_add(&world->script, "map %s va=%s iova=%s size=0x%" PRIx64, container->name, address,
		base, size);
	if (again) {
		script_add(&world->script, " flags=vaddr");
	} else {
		world_remember(world, container, base, size);
		if (dice_chance(dice, 170))
			script_add(&world->script, " flags=%s", DICE_OF(dice, flags));
	}
	world_extras(world, 32, 32);
	world_end(world);
}

/* Begins "VERB C ... iova= size=" with a range that was mapped, mostly. */
static bool on_range(struct world *world, const char *verb, const char *more)
{
	struct world_thing *container = some_container(world);
	char base[64];
	uint64_t size;

	if (!container)
		return false;
	if (!dice_chance(&world->dice, 600) ||
		!world_old_range(world, container, base, sizeof(base), &size)) {
		size = world_size(world, 1 << 20);
		world_iova(world, container, size, base, sizeof(base));
	}
	script_add(&world->script, "%s %s%s iova=%s size=0x%" PRIx64, verb, container->name, more,
		base, size);
	return true;
}

/* What the bitmap should be like, and seldom is not. No page size of 0: Linux looks for the
 * lowest bit of it, which is anything. */
static void bitmap(struct world *world)
{
	static const char *const page_sizes[] = {"1", "2K", "8K", "2M", "0x1800", "max"};
	static const char *const sizes[] = {"0", "1", "7", "8", "16", "4K", "256M+8", "max"};
	static const char *const addresses[] = {"null", "-4K", "0xffff888000000000"};
	struct dice *dice = &world->dice;

	if (dice_chance(dice, 60))
		script_add(&world->script, " pgsize=%s", DICE_OF(dice, page_sizes));
	if (dice_chance(dice, 60))
		script_add(&world->script, " bitmap_size=%s", DICE_OF(dice, sizes));
	if (dice_chance(dice, 20))
		script_add(&world->script, " bitmap=%s", DICE_OF(dice, addresses));
}

static void unmap_all(struct world *world)
{
	if (!on_container(world, "unmap"))
		return;
	script_add(&world->script, " iova=0 size=0 flags=%s",
		dice_chance(&world->dice, 700) ? "all" : "all,vaddr");
	world_extras(world, 24, 24);
	world_end(world);
}

static void unmap(struct world *world)
{
	static const char *const flags[] = {"vaddr", "vaddr", "vaddr", "vaddr", "all", "all,vaddr",
		"all,get_dirty_bitmap", "get_dirty_bitmap,vaddr", "0x8"};
	struct dice *dice = &world->dice;

	if (!on_range(world, "unmap", ""))
		return;
	if (dice_chance(dice, 60)) {
		script_add(&world->script, " flags=get_dirty_bitmap");
		bitmap(world);
		world_extras(world, 48, 48);
	} else {
		if (dice_chance(dice, 80))
			script_add(&world->script, " flags=%s", DICE_OF(dice, flags));
		world_extras(world, 24, 24);
	}
	world_end(world);
}

static void dirty_get(struct world *world)
{
	if (!on_range(world, "dirty", " flags=get"))
		return;
	bitmap(world);
	world_extras(world, 8, 40);
	world_end(world);
}

static void dirty_switch(struct world *world)
{
	static const char *const flags[] = {"start", "start", "start", "start", "stop", "stop", "0",
		"start,stop", "start,get", "0x8"};

	if (!on_container(world, "dirty"))
		return;
	script_add(&world->script, " flags=%s", DICE_OF(&world->dice, flags));
	world_extras(world, 8, 40);
	world_end(world);
}

static void get_info(struct world *world)
{
	static const unsigned sizes[] = {0, 8, 15, 16, 17, 20, 23, 24, 25, 40, 55, 56, 71, 72, 87,
		88, 103, 104, 119, 120, 121, 4096};
	struct dice *dice = &world->dice;

	if (!on_container(world, "get_info"))
		return;
	if (dice_chance(dice, 500))
		script_add(&world->script, " argsz=%u", DICE_OF(dice, sizes));
	if (dice_chance(dice, 10))
		script_add(&world->script, " argument=null");
	world_end(world);
}

static void check_extension(struct world *world)
{
	struct dice *dice = &world->dice;

	if (!on_container(world, "check_extension"))
		return;
	if (dice_chance(dice, 950))
		script_add(&world->script, " %u", dice_below(dice, 16));
	else
		script_add(&world->script, " 0xffffffffffffffff");
	world_end(world);
}

static void api_version(struct world *world)
{
	if (on_container(world, "api_version"))
		world_end(world);
}

static void set_iommu(struct world *world)
{
	static const char *const types[] = {
		"type1", "type1v2", "nesting", "noiommu", "0", "spapr", "99"};

	if (!on_container(world, "set_iommu"))
		return;
	script_add(&world->script, " %s", DICE_OF(&world->dice, types));
	world_end(world);
}

/* Requests that a container does not have. */
static void unknown(struct world *world)
{
	static const char *const requests[] = {"0x3b68", "0x3b6b", "0x3b73", "0x3b77", "0x3b7a",
		"0x3b81", "0x3bff", "0x3b00", "0x5401"};

	if (!on_container(world, "ioctl"))
		return;
	script_add(&world->script, " request=%s size=64", DICE_OF(&world->dice, requests));
	world_end(world);
}

const struct world_choice world_container_calls[] = {
	{330, map},
	{245, unmap},
	{12, unmap_all},
	{40, dirty_get},
	{20, dirty_switch},
	{30, get_info},
	{20, check_extension},
	{3, api_version},
	{6, set_iommu},
	{4, unknown},
	{0, NULL},
};
