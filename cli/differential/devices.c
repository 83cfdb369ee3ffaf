/* SPDX-License-Identifier: MIT */
/*
 * The calls of an opened device. None that would make it do something that no
 * soft device does: no writes to its BARs, no interrupt of its own, and of its
 * config space only what every function has.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/differential/world.h"

static struct world_thing *on_device(struct world *world, const char *verb)
{
	struct world_thing *device = world_pick(world, WORLD_DEVICE);

	if (device)
		script_add(&world->script, "%s %s", verb, device->name);
	return device;
}

static void device_info(struct world *world)
{
	if (!on_device(world, "device_info"))
		return;
	world_extras(world, 16, 24);
	world_end(world);
}

static void region_info(struct world *world)
{
	struct dice *dice = &world->dice;

	if (!on_device(world, "region_info"))
		return;
	script_add(&world->script, " %" PRIu64,
		dice_chance(dice, 30) ? UINT32_MAX : (uint64_t)dice_below(dice, 11));
	if (dice_chance(dice, 300))
		script_add(&world->script, " argsz=%u", 4 * dice_below(dice, 20));
	world_end(world);
}

static void irq_info(struct world *world)
{
	struct dice *dice = &world->dice;

	if (!on_device(world, "irq_info"))
		return;
	script_add(&world->script, " %" PRIu64,
		dice_chance(dice, 30) ? UINT32_MAX : (uint64_t)dice_below(dice, 7));
	world_extras(world, 16, 16);
	world_end(world);
}

/* An eventfd, a number that is none, or a descriptor of another kind. */
static void add_event(struct world *world)
{
	struct world_thing *event = world_pick(world, WORLD_EVENTFD);
	struct dice *dice = &world->dice;

	if (event && dice_chance(dice, 750))
		script_add(&world->script, "%s", event->name);
	else
		script_add(&world->script, "%s", dice_chance(dice, 850) ? "-1" : "0x7fffffff");
}

static void set_irqs(struct world *world)
{
	static const char *const actions[] = {"trigger", "trigger", "trigger", "trigger", "mask",
		"unmask", "mask,unmask", "0x80"};
	static const char *const kinds[] = {"none", "bool", "eventfd", "eventfd", "eventfd"};
	struct dice *dice = &world->dice;
	const char *kind = DICE_OF(dice, kinds);
	unsigned count = dice_below(dice, 4);
	struct world_thing *event;

	if (dice_chance(dice, 300)) {
		event = world_name(world, WORLD_EVENTFD, "e", 0);
		if (event)
			world_line(world, "eventfd %s", event->name);
	}
	if (!on_device(world, "set_irqs"))
		return;
	script_add(&world->script, " index=%u start=%u count=%u", dice_below(dice, 6),
		dice_chance(dice, 800) ? 0 : dice_below(dice, 40), count);
	if (dice_chance(dice, 950))
		script_add(&world->script, " flags=%s,%s", kind, DICE_OF(dice, actions));
	else
		script_add(&world->script, " flags=%u", dice_below(dice, 128));
	if (kind[0] != 'n' && !dice_chance(dice, 30)) {
		script_add(&world->script, " data=");
		for (unsigned i = 0; i < count; i++) {
			if (i)
				script_add(&world->script, ",");
			if (kind[0] == 'e')
				add_event(world);
			else
				script_add(&world->script, "%u", dice_below(dice, 2));
		}
		if (!count)
			script_add(&world->script, "none");
	}
	world_extras(world, 20, 20);
	world_end(world);
}

static void signalled(struct world *world)
{
	struct world_thing *event = world_pick(world, WORLD_EVENTFD);

	if (event)
		world_line(world, "signalled %s", event->name);
}

/* Files that are no devices do not read. */
static void read_other(struct world *world)
{
	struct world_thing *file =
		world_pick(world, WORLD_CONTAINERS | WORLD_IOMMUFD | WORLD_GROUP);

	if (file)
		world_line(world, "read %s offset=0 size=4", file->name);
}

static void reset(struct world *world)
{
	struct world_thing *device = world_pick(world, WORLD_DEVICE);

	if (device && !world->host->machine->devices[device->device].reset)
		world_line(world, "reset %s", device->name);
}

static void hot_reset(struct world *world)
{
	struct dice *dice = &world->dice;
	bool info = dice_chance(dice, 700);

	if (!on_device(world, info ? "hot_reset_info" : "hot_reset"))
		return;
	if (dice_chance(dice, 200))
		script_add(&world->script, " flags=%u", dice_below(dice, 4));
	if (!info && dice_chance(dice, 300))
		script_add(&world->script, " count=%u", dice_below(dice, 3));
	if (info && dice_chance(dice, 300))
		script_add(&world->script, " argsz=%u", 4 * dice_below(dice, 10));
	world_end(world);
}

/* Features that put a device to sleep are asked for, not used: what wakes it is not ours. */
static void feature(struct world *world)
{
	static const char *const flags[] = {"probe", "probe,get", "probe,set", "get", "set",
		"get,set", "probe,get,set", "0", "0x100000"};
	static const char *const bytes[] = {"00", "01000000", "00*8", "00*16", "00*64"};
	struct dice *dice = &world->dice;
	unsigned what = dice_below(dice, 14);
	bool sleeps = what >= 3 && what <= 5;

	if (!on_device(world, "feature"))
		return;
	script_add(&world->script, " %u flags=%s", what, sleeps ? "probe" : DICE_OF(dice, flags));
	if (dice_chance(dice, 600))
		script_add(&world->script, " bytes=%s", DICE_OF(dice, bytes));
	world_extras(world, 8, 16);
	world_end(world);
}

/* What every function has: ids, command, status, class, header type, BARs. */
static void config(struct world *world)
{
	static const struct {
		unsigned offset, size;
	} fields[] = {{0, 2}, {2, 2}, {0, 4}, {4, 2}, {10, 2}, {14, 1}, {0x10, 4}, {0x14, 4},
		{0x18, 4}, {0x1c, 4}, {0x20, 4}, {0x24, 4}, {0x10, 8}, {0x3d, 1}, {1, 2}, {3, 4}};
	static const unsigned commands[] = {0, 2, 4, 6, 6, 6, 0x406};
	struct dice *dice = &world->dice;
	unsigned which = dice_below(dice, sizeof(fields) / sizeof(fields[0]));

	if (dice_chance(dice, 60)) {
		if (on_device(world, "write"))
			world_line(world, " region=7 offset=4 size=2 value=%u",
				DICE_OF(dice, commands));
	} else if (dice_chance(dice, 50)) {
		if (on_device(world, "read"))
			world_line(world, " region=%u offset=0x%" PRIx64 " size=%u",
				dice_below(dice, 12), (uint64_t)4096 << dice_below(dice, 24),
				dice_below(dice, 9));
	} else if (on_device(world, "read")) {
		world_line(world, " region=7 offset=%u size=%u", fields[which].offset,
			fields[which].size);
	}
}

static void bar(struct world *world)
{
	const struct dmamap_machine *machine = world->host->machine;
	struct dice *dice = &world->dice;
	struct world_thing *device = world_pick(world, WORLD_DEVICE);
	unsigned index = dice_below(dice, DMAMAP_MACHINE_BARS);

	if (!device || device->name[0] != 'd' || world->n_bars == 4 ||
		machine->devices[device->device].bar_size[index] < 1 << 20)
		return;
	world_line(world, "bar bar%u d%u %u size=1M", world->n_bars++, device->device, index);
}

/*
 * What a device writes lands where it is mapped, what it reads comes from there,
 * and what is not mapped is out of its reach. QEMU's edu takes its time for each,
 * so that these are few. The IOVA is one that nothing else is mapped at: that a
 * write lands elsewhere could not be told from a fault.
 */
static void dma(struct world *world)
{
	struct dice *dice = &world->dice;
	struct world_thing *space = world_pick(world, WORLD_CONTAINERS | WORLD_IOAS);
	unsigned device = world->host->dma_device, value = 1 + dice_below(dice, 255);
	uint64_t iova = 0x60000000 + ((uint64_t)world->n_dmas++ << 20), room, size, offset;
	const char *flags = "", *at = "ram";
	char address[48];

	if (!world->host->dma || !space || !(world->opened & 1ULL << device))
		return;
	/* It makes "ram" where that is not there yet. */
	do
		world_memory(world, address, sizeof(address), &room);
	while (strncmp(address, at, 3) != 0);
	size = world->page * (1 + dice_below(dice, 4));
	offset = dice_below(dice, (unsigned)size - 32);
	if (dice_chance(dice, 200))
		flags = space->kind == WORLD_IOAS ? " flags=fixed,read" : " flags=read";
	world_line(world, "map %s va=%s iova=0x%" PRIx64 " size=0x%" PRIx64 "%s", space->name, at,
		iova, size, flags);
	world_line(world, "dma_write d%u iova=0x%" PRIx64 " size=%u value=%u at=%s+0x%" PRIx64,
		device, iova + offset, 1 + dice_below(dice, 32), value, at, offset);
	if (dice_chance(dice, 500))
		world_line(world, "dma_read d%u iova=0x%" PRIx64 " size=1 value=%u", device,
			iova + offset, value);
	world_line(world, "unmap %s iova=0x%" PRIx64 " size=0x%" PRIx64, space->name, iova, size);
	if (dice_chance(dice, 300))
		world_line(world,
			"dma_write d%u iova=0x%" PRIx64 " size=4 value=7 at=%s+0x%" PRIx64, device,
			iova + offset, at, offset);
}

/* Of a BAR; mostly one that is there. */
static void dma_buf(struct world *world)
{
	const struct dmamap_machine *machine = world->host->machine;
	struct dice *dice = &world->dice;
	struct world_thing *device = world_pick(world, WORLD_DEVICE);
	unsigned index = dice_below(dice, DMAMAP_MACHINE_BARS + 1);

	if (!device || world->n_files == 8)
		return;
	for (unsigned i = 0; i < 4 && index < DMAMAP_MACHINE_BARS &&
			     machine->devices[device->device].bar_size[index] < 4 * world->page;
		i++)
		index = dice_below(dice, DMAMAP_MACHINE_BARS);
	script_add(
		&world->script, "dma_buf b%u %s index=%u", world->n_files++, device->name, index);
	switch (dice_below(dice, 8)) {
	case 0:
		script_add(&world->script, " ranges=0x0..0x1fff,0x4000..0x7fff");
		break;
	case 1:
		script_add(&world->script, " ranges=0x0..0x%x", 0xfff + dice_below(dice, 3));
		break;
	case 2:
		script_add(&world->script, " ranges=0x1000..0x%x", 0x1000000);
		break;
	case 3:
		script_add(&world->script, " ranges=none");
		break;
	default:
		script_add(&world->script, " ranges=0x%x..0x%x", dice_below(dice, 2) << 12,
			0x1fff + (dice_below(dice, 2) << 13));
		break;
	}
	if (dice_chance(dice, 60))
		script_add(&world->script, " open_flags=%u", dice_below(dice, 4));
	if (dice_chance(dice, 30))
		script_add(&world->script, " buf_flags=1");
	world_extras(world, 24, 24);
	world_end(world);
}

/* mmap of a region: its index stands in the offset from bit 40 on. */
static void map_region(struct world *world)
{
	/* Nothing so large that it matters how much memory the machine has. */
	static const char *const sizes[] = {"4K", "4K", "8K", "64K", "1M", "4K+1", "0", "64M"};
	struct dice *dice = &world->dice;
	struct world_thing *file =
		world_pick(world, WORLD_DEVICE | WORLD_CONTAINERS | WORLD_IOMMUFD | WORLD_GROUP);

	if (!file || world->n_maps == 8)
		return;
	script_add(&world->script, "mmap m%u %s offset=0x%" PRIx64 " size=%s", world->n_maps++,
		file->name,
		((uint64_t)dice_below(dice, 10) << 40) +
			(dice_chance(dice, 300) ? world->page * dice_below(dice, 40) : 0),
		DICE_OF(dice, sizes));
	if (dice_chance(dice, 150))
		script_add(&world->script, " flags=private");
	if (dice_chance(dice, 300))
		script_add(&world->script, " prot=%s", dice_chance(dice, 700) ? "r" : "none");
	script_end(&world->script);
}

/* Writes when the eventfd is signalled, which nobody does. Not on kernels that let it write
 * before the first BAR (docs/kernel-findings.md). */
static void ioeventfd(struct world *world)
{
	static const char *const offsets[] = {
		"0", "2^40", "7*2^40", "2*2^40+8", "2^40-4", "6*2^40", "1", "max", "2*2^40+4096"};
	static const char *const widths[] = {"1", "2", "4", "4", "8", "0", "3", "16"};
	struct dice *dice = &world->dice;
	struct world_thing *event = world_pick(world, WORLD_EVENTFD);

	if (world->host->machine->as_kernel < DMAMAP_KERNEL(7, 3) || !on_device(world, "ioeventfd"))
		return;
	script_add(&world->script, " offset=%s value=1 flags=%s fd=%s", DICE_OF(dice, offsets),
		DICE_OF(dice, widths), event && dice_chance(dice, 800) ? event->name : "-1");
	world_extras(world, 32, 32);
	world_end(world);
}

static void unknown(struct world *world)
{
	static const char *const requests[] = {
		"0x3b72", "0x3b73", "0x3b79", "0x3b80", "0x3b00", "0x5401", "0x3b64", "0x3b67"};

	if (!on_device(world, "ioctl"))
		return;
	world_line(world, " request=%s size=64", DICE_OF(&world->dice, requests));
}

const struct world_choice world_device_calls[] = {
	{60, device_info},
	{150, region_info},
	{100, irq_info},
	{250, set_irqs},
	{60, signalled},
	{10, reset},
	{20, hot_reset},
	{120, feature},
	{120, config},
	{60, bar},
	{8, dma},
	{40, dma_buf},
	{30, map_region},
	{30, ioeventfd},
	{5, read_other},
	{20, unknown},
	{0, NULL},
};
