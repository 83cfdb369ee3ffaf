/* SPDX-License-Identifier: MIT */
/* The calls of an IOMMUFD: its areas of IOVAs, its objects, who is attached to what. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/differential/world.h"

static const char *const bad_ids[] = {"0", "99", "1", "2", "3", "max", "0x7fffffff", "0x80000000"};

/* Begins "VERB I"; false where there is no IOAS. */
static struct world_thing *on_ioas(struct world *world, const char *verb)
{
	struct world_thing *ioas = world_pick(world, WORLD_IOAS);

	if (!ioas)
		return NULL;
	/* Without devices nothing need be a whole page. */
	world->odd = ioas->attached ? 15 : 60;
	script_add(&world->script, "%s %s", verb, ioas->name);
	return ioas;
}

static struct world_thing *on_iommufd(struct world *world, const char *verb)
{
	struct world_thing *iommufd = world_pick(world, WORLD_IOMMUFD | WORLD_COMPAT);

	if (iommufd)
		script_add(&world->script, "%s %s", verb, iommufd->name);
	return iommufd;
}

/* Seldom another object than the one that the call is about. */
static void another_id(struct world *world, const char *key)
{
	struct dice *dice = &world->dice;

	if (dice_chance(dice, 15))
		script_add(&world->script, " %s=%s", key, DICE_OF(dice, bad_ids));
}

/* Where a map goes: a fixed IOVA, or one that is allocated and kept under a name. */
static void place(struct world *world, const struct world_thing *ioas, uint64_t size)
{
	static const char *const flags[] = {"read", "read", "write", "fixed,read", "fixed,write",
		"fixed", "0", "read,write,0x8", "fixed,read,write"};
	struct dice *dice = &world->dice;
	char base[64];

	if (dice_chance(dice, 700)) {
		world_iova(world, ioas, size, base, sizeof(base));
		script_add(&world->script, " iova=%s", base);
		world_remember(world, ioas, base, size);
		if (dice_chance(dice, 120))
			script_add(&world->script, " flags=%s", DICE_OF(dice, flags));
		return;
	}
	if (dice_chance(dice, 200))
		script_add(&world->script, " flags=%s", DICE_OF(dice, flags));
	script_add(&world->script, " save=v%u", world->n_variables);
	snprintf(base, sizeof(base), "$v%u.iova", world->n_variables++);
	world_remember(world, ioas, base, size);
}

static void map(struct world *world)
{
	struct world_thing *ioas;
	char address[48];
	uint64_t room, size;

	world_memory(world, address, sizeof(address), &room);
	size = world_size(world, room);
	ioas = on_ioas(world, "map");
	if (!ioas)
		return;
	script_add(&world->script, " va=%s size=0x%" PRIx64, address, size);
	place(world, ioas, size);
	another_id(world, "ioas");
	world_extras(world, 40, 40);
	world_end(world);
}

static void map_file(struct world *world)
{
	struct world_thing *ioas;
	struct dice *dice = &world->dice;
	uint64_t start, room, size;
	const char *file;
	char name[16];

	world_memory_file(world, &file, &start, &room);
	size = world_size(world, room);
	ioas = on_ioas(world, "map_file");
	if (!ioas)
		return;
	if (world->n_files && dice_chance(dice, 400)) {
		snprintf(name, sizeof(name), "b%u", dice_below(dice, world->n_files));
		file = name;
		start = dice_chance(dice, 700) ? 0 : world->page;
	} else if (dice_chance(dice, 30)) {
		file = dice_chance(dice, 500) ? "-1" : "0x7fffffff";
	}
	script_add(
		&world->script, " file=%s start=0x%" PRIx64 " size=0x%" PRIx64, file, start, size);
	place(world, ioas, size);
	another_id(world, "ioas");
	world_extras(world, 40, 40);
	world_end(world);
}

static void copy(struct world *world)
{
	struct world_thing *from = world_pick(world, WORLD_IOAS), *ioas;
	char base[64];
	uint64_t size;

	ioas = from ? on_ioas(world, "copy") : NULL;
	if (!ioas)
		return;
	if (!dice_chance(&world->dice, 700) ||
		!world_old_range(world, from, base, sizeof(base), &size)) {
		size = world_size(world, 1 << 18);
		world_iova(world, from, size, base, sizeof(base));
	}
	script_add(&world->script, " from=%s from_iova=%s size=0x%" PRIx64, from->name, base, size);
	place(world, ioas, size);
	another_id(world, "ioas");
	world_extras(world, 40, 40);
	world_end(world);
}

static void unmap(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *ioas = on_ioas(world, "unmap");
	char base[64];
	uint64_t size;

	if (!ioas)
		return;
	if (dice_chance(dice, 30)) {
		script_add(&world->script, " iova=0 size=max");
	} else {
		if (!dice_chance(dice, 700) ||
			!world_old_range(world, ioas, base, sizeof(base), &size)) {
			size = world_size(world, 1 << 20);
			world_iova(world, ioas, size, base, sizeof(base));
		}
		script_add(&world->script, " iova=%s size=0x%" PRIx64, base, size);
	}
	another_id(world, "ioas");
	world_extras(world, 24, 24);
	world_end(world);
}

static void iova_ranges(struct world *world)
{
	struct dice *dice = &world->dice;

	if (!on_ioas(world, "iova_ranges"))
		return;
	if (dice_chance(dice, 400))
		script_add(&world->script, " room=%u", dice_below(dice, 4));
	if (dice_chance(dice, 30))
		script_add(&world->script, " at=%s", dice_chance(dice, 500) ? "null" : "-4K");
	another_id(world, "ioas");
	world_extras(world, 32, 32);
	world_end(world);
}

static void allow_iovas(struct world *world)
{
	static const char *const lists[] = {"none", "0..0xffffffff", "0x100000..0x1ffffff",
		"0..max", "0x10000..0x1ffff,0x100000..0x4fffff",
		"0x100000..0x4fffff,0x10000..0x1ffff", "0..0xfffff,0xfffff..0x1fffff",
		"0..0xfffff,0x100000..0x1fffff", "0x1000..0x1000", "0x2000..0x1000",
		"0x1000000..0xffffffffffff", "0xfee00000..0xfeefffff", "0xfef00000..0xfff00000",
		"0x123..0x123456", "0..2^48"};
	struct dice *dice = &world->dice;

	if (!on_ioas(world, "allow_iovas"))
		return;
	script_add(&world->script, " ranges=%s", DICE_OF(dice, lists));
	if (dice_chance(dice, 30))
		script_add(&world->script, " at=%s", dice_chance(dice, 500) ? "null" : "-4K");
	another_id(world, "ioas");
	world_extras(world, 24, 24);
	world_end(world);
}

static void option(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *ioas = world_pick(world, WORLD_IOAS);
	bool huge = dice_chance(dice, 800);

	if (!on_iommufd(world, "option"))
		return;
	if (dice_chance(dice, 30))
		script_add(&world->script, " option=%u", 2 + dice_below(dice, 3));
	else
		script_add(&world->script, " option=%s", huge ? "huge_pages" : "rlimit_mode");
	if (dice_chance(dice, 20))
		script_add(&world->script, " op=2");
	else
		script_add(&world->script, " op=%s", dice_chance(dice, 600) ? "set" : "get");
	if (huge && ioas && !dice_chance(dice, 50))
		script_add(&world->script, " object=%s", ioas->name);
	else
		another_id(world, "object");
	if (dice_chance(dice, 600))
		script_add(&world->script, " value=%u", dice_below(dice, 3));
	world_extras(world, 24, 24);
	world_end(world);
}

static void vfio_ioas(struct world *world)
{
	static const char *const ops[] = {"get", "get", "set", "set", "clear", "3"};
	struct dice *dice = &world->dice;
	struct world_thing *ioas = world_pick(world, WORLD_IOAS | WORLD_HWPT);

	if (!on_iommufd(world, "vfio_ioas"))
		return;
	script_add(&world->script, " op=%s", DICE_OF(dice, ops));
	if (ioas && !dice_chance(dice, 100))
		script_add(&world->script, " ioas=%s", ioas->name);
	else
		another_id(world, "ioas");
	world_extras(world, 12, 12);
	world_end(world);
}

static void ioas_alloc(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *iommufd = world_pick(world, WORLD_IOMMUFD | WORLD_COMPAT);
	struct world_thing *ioas = iommufd ? world_name(world, WORLD_IOAS, "i", 0) : NULL;

	if (!ioas)
		return;
	ioas->file = (unsigned)(iommufd - world->things);
	script_add(&world->script, "ioas_alloc %s %s", ioas->name, iommufd->name);
	if (dice_chance(dice, 20))
		script_add(&world->script, " flags=1");
	world_extras(world, 12, 12);
	world_end(world);
}

static void destroy(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *thing = world_pick(world, WORLD_IOAS | WORLD_HWPT);
	struct world_thing *iommufd;

	if (thing && dice_chance(dice, 850)) {
		script_add(&world->script, "destroy %s", thing->name);
	} else {
		iommufd = on_iommufd(world, "destroy");
		if (!iommufd)
			return;
		script_add(&world->script, " id=%s", DICE_OF(dice, bad_ids));
	}
	world_extras(world, 8, 8);
	world_end(world);
}

/* A device that is open, or one of the machine's: its last opened file. */
static const char *some_device(struct world *world)
{
	struct world_thing *device = world_pick(world, WORLD_DEVICE);

	return device ? device->name : "d0";
}

static void attach(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *to = world_pick(world, WORLD_IOAS | WORLD_HWPT);

	if (!to)
		return;
	script_add(&world->script, "attach %s %s", some_device(world), to->name);
	if (dice_chance(dice, 15))
		script_add(&world->script, " flags=%s pasid=1",
			dice_chance(dice, 500) ? "pasid" : "2");
	world_extras(world, 12, 16);
	world_end(world);
}

static void detach(struct world *world)
{
	struct dice *dice = &world->dice;

	script_add(&world->script, "detach %s", some_device(world));
	if (dice_chance(dice, 20))
		script_add(&world->script, " flags=%s pasid=1",
			dice_chance(dice, 500) ? "pasid" : "2");
	world_extras(world, 8, 12);
	world_end(world);
}

static void hwpt_alloc(struct world *world)
{
	static const char *const flags[] = {"nest_parent", "dirty_tracking", "dirty_tracking",
		"fault_id", "pasid", "nest_parent,dirty_tracking", "0x20", "0x80000000"};
	struct dice *dice = &world->dice;
	struct world_thing *iommufd = world_pick(world, WORLD_IOMMUFD);
	struct world_thing *parent = world_pick(world, WORLD_IOAS | WORLD_HWPT);
	const char *device = some_device(world);
	struct world_thing *hwpt = iommufd ? world_name(world, WORLD_HWPT, "h", 0) : NULL;

	if (!hwpt)
		return;
	hwpt->file = (unsigned)(iommufd - world->things);
	script_add(&world->script, "hwpt_alloc %s %s device=%s pt=%s", hwpt->name, iommufd->name,
		dice_chance(dice, 20) ? DICE_OF(dice, bad_ids) : device,
		parent && !dice_chance(dice, 20) ? parent->name : DICE_OF(dice, bad_ids));
	if (dice_chance(dice, 250))
		script_add(&world->script, " flags=%s", DICE_OF(dice, flags));
	if (dice_chance(dice, 20))
		script_add(&world->script, " data_len=%u", 8 * dice_below(dice, 3));
	if (dice_chance(dice, 20))
		script_add(&world->script, " data_type=%u", 3 + dice_below(dice, 3));
	world_extras(world, 24, 48);
	world_end(world);
}

static void get_hw_info(struct world *world)
{
	struct dice *dice = &world->dice;
	const char *device = some_device(world);

	if (!on_iommufd(world, "get_hw_info"))
		return;
	script_add(&world->script, " device=%s",
		dice_chance(dice, 30) ? DICE_OF(dice, bad_ids) : device);
	if (dice_chance(dice, 100))
		script_add(&world->script, " flags=%u", dice_below(dice, 3));
	if (dice_chance(dice, 100))
		script_add(&world->script, " data_len=%u", dice_below(dice, 24));
	world_extras(world, 32, 40);
	world_end(world);
}

static void set_dirty(struct world *world)
{
	static const char *const flags[] = {"enable", "enable", "0", "2"};
	struct world_thing *hwpt = world_pick(world, WORLD_HWPT);

	if (!hwpt)
		return;
	script_add(
		&world->script, "set_dirty %s flags=%s", hwpt->name, DICE_OF(&world->dice, flags));
	another_id(world, "hwpt");
	world_extras(world, 16, 16);
	world_end(world);
}

static void get_dirty(struct world *world)
{
	static const char *const page_sizes[] = {"0", "1", "2K", "8K", "2M", "0x1800", "max"};
	struct dice *dice = &world->dice;
	struct world_thing *hwpt = world_pick(world, WORLD_HWPT);
	char base[64];
	uint64_t size;

	if (!hwpt || !world_old_range(world, hwpt, base, sizeof(base), &size))
		return;
	if (dice_chance(dice, 300)) {
		size = world_size(world, 1 << 20);
		world_iova(world, hwpt, size, base, sizeof(base));
	}
	script_add(&world->script, "get_dirty %s iova=%s size=0x%" PRIx64, hwpt->name, base, size);
	if (dice_chance(dice, 150))
		script_add(&world->script, " pgsize=%s", DICE_OF(dice, page_sizes));
	if (dice_chance(dice, 300))
		script_add(&world->script, " flags=%s", dice_chance(dice, 900) ? "no_clear" : "2");
	if (dice_chance(dice, 20))
		script_add(&world->script, " bitmap=null");
	another_id(world, "hwpt");
	world_extras(world, 48, 48);
	world_end(world);
}

static void get_pa(struct world *world)
{
	struct world_thing *ioas = on_ioas(world, "get_pa");
	char base[64];
	uint64_t size;

	if (!ioas)
		return;
	if (!world_old_range(world, ioas, base, sizeof(base), &size)) {
		size = world_size(world, 1 << 20);
		world_iova(world, ioas, size, base, sizeof(base));
	}
	script_add(&world->script, " iova=%s size=0x%" PRIx64, base, size);
	another_id(world, "ioas");
	world_extras(world, 40, 40);
	world_end(world);
}

static void change_process(struct world *world)
{
	if (!on_iommufd(world, "change_process"))
		return;
	world_extras(world, 8, 8);
	world_end(world);
}

/* Numbers just outside of the commands, and commands with another size. Not those up to 0x3b9f:
 * whether they are looked at depends on the kernel's self-tests (CONFIG_IOMMUFD_TEST). */
static void unknown(struct world *world)
{
	static const char *const requests[] = {
		"0x3b7f", "0x3b80", "0x3b81", "0x3ba1", "0x3b00", "0x3bff", "0x40083b80", "0x5401"};

	if (!on_iommufd(world, "ioctl"))
		return;
	script_add(&world->script, " request=%s size=64 bytes=%s", DICE_OF(&world->dice, requests),
		dice_chance(&world->dice, 500) ? "40000000" : "08000000");
	world_end(world);
}

const struct world_choice world_iommufd_calls[] = {
	{260, map},
	{200, unmap},
	{60, map_file},
	{60, copy},
	{40, iova_ranges},
	{20, allow_iovas},
	{20, option},
	{15, vfio_ioas},
	{12, ioas_alloc},
	{10, destroy},
	{25, attach},
	{15, detach},
	{15, hwpt_alloc},
	{8, get_hw_info},
	{6, set_dirty},
	{10, get_dirty},
	{8, change_process},
	{4, get_pa},
	{4, unknown},
	{0, NULL},
};
