/* SPDX-License-Identifier: MIT */
/* Names, ranges and edges, and the values that come from them. */
#include "cli/differential/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/replay/verbs.h"

#define KB(n) ((uint64_t)(n) << 10)
#define MB(n) ((uint64_t)(n) << 20)

/* Memories are small, so that a kernel maps them fast; each has one peculiarity. */
static const struct memory {
	const char *name;
	unsigned weight;
	uint64_t size;
	const char *kind;  /* the rest of the statement */
	const char *after; /* one more statement */
	bool huge;	   /* needs huge pages */
	bool file;
} memories[] = {
	{"ram", 30, KB(128), "", NULL, false, false},
	{"shared", 5, KB(64), " shared", NULL, false, false},
	{"readonly", 6, KB(64), " prot=r", NULL, false, false},
	{"nothing", 3, KB(64), " prot=none", NULL, false, false},
	{"holed", 5, KB(128), "", "munmap holed+64K size=4K", false, false},
	{"guarded", 3, KB(128), "", "protect guarded+64K size=64K prot=r", false, false},
	{"large", 4, MB(4), " align=2M", NULL, false, false},
	{"thp", 2, MB(4), " kind=thp", NULL, false, false},
	{"file", 8, KB(256), " kind=memfd", NULL, false, true},
	{"huge", 2, MB(2), " kind=hugetlb_2mb", NULL, true, false},
	{"hugefile", 3, MB(2), " kind=memfd_hugetlb_2mb", NULL, true, true},
};

#define MEMORIES (sizeof(memories) / sizeof(memories[0]))

static void edge(struct world *world, uint64_t at)
{
	for (unsigned i = 0; i < world->n_edges; i++)
		if (world->edges[i] == at)
			return;
	if (world->n_edges < WORLD_EDGES)
		world->edges[world->n_edges++] = at;
}

void world_start(struct world *world, const struct world_host *host, uint64_t seed, uint64_t stream)
{
	const struct dmamap_machine *machine = host->machine;
	struct script script = world->script;

	script_clear(&script);
	*world = (struct world){.host = host, .script = script, .odd = 15};
	dice_start(&world->dice, seed, stream);
	world->page = 1ULL << machine->page_shift;
	edge(world, 0); /* and 2^64 */
	edge(world, 1ULL << 63);
	for (size_t i = 0; i < machine->n_iommus; i++) {
		const struct dmamap_machine_iommu *iommu = &machine->iommus[i];

		if (iommu->aperture_bits < 64)
			edge(world, 1ULL << iommu->aperture_bits);
		for (size_t k = 0; k < iommu->n_windows; k++) {
			edge(world, iommu->windows[k].first);
			edge(world, iommu->windows[k].last + 1);
		}
	}
	edge(world, MB(2));
	edge(world, MB(1024));
	edge(world, MB(4096));
	edge(world, 1ULL << 39);
}

struct world_thing *world_name(
	struct world *world, enum world_kind kind, const char *letter, unsigned device)
{
	struct world_thing *thing;

	if (world->n_things == WORLD_THINGS)
		return NULL;
	thing = &world->things[world->n_things];
	*thing = (struct world_thing){.kind = kind, .device = device};
	snprintf(thing->name, sizeof(thing->name), "%s%u", letter, world->n_things);
	world->n_things++;
	return thing;
}

struct world_thing *world_pick(struct world *world, unsigned kinds)
{
	struct world_thing *found = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < world->n_things; i++) {
		struct world_thing *thing = &world->things[i];

		if (!(thing->kind & kinds))
			continue;
		/* What was closed answers the same to everything: seldom. */
		if (thing->closed && !dice_chance(&world->dice, 50))
			continue;
		if (dice_below(&world->dice, ++n) == 0)
			found = thing;
	}
	return found;
}

void world_close(struct world *world, struct world_thing *thing)
{
	thing->closed = true;
	for (unsigned i = 0; i < world->n_things; i++)
		if (world->things[i].kind & (WORLD_IOAS | WORLD_HWPT) &&
			&world->things[world->things[i].file] == thing)
			world->things[i].closed = true;
}

void world_remember(
	struct world *world, const struct world_thing *space, const char *base, uint64_t size)
{
	struct world_range *range;

	/* A sum is not remembered, so that sums do not grow; nor is what cannot have worked. */
	if (!size || strlen(base) >= sizeof(range->base))
		return;
	range = &world->ranges[world->n_ranges++ % WORLD_RANGES];
	strcpy(range->base, base);
	range->size = size;
	range->space = space;
}

static const struct world_range *some_range(struct world *world, const struct world_thing *space)
{
	unsigned n = world->n_ranges < WORLD_RANGES ? world->n_ranges : WORLD_RANGES;
	const struct world_range *range = NULL;

	if (!n)
		return NULL;
	/* What is of another space hits nothing, or by chance. */
	for (unsigned i = 0; i < 6; i++) {
		range = &world->ranges[dice_below(&world->dice, n)];
		if (range->space == space)
			break;
	}
	return range;
}

bool world_old_range(struct world *world, const struct world_thing *space, char *base,
	size_t base_size, uint64_t *size)
{
	const struct world_range *range = some_range(world, space);

	if (!range)
		return false;
	snprintf(base, base_size, "%s", range->base);
	*size = range->size;
	return true;
}

/* Sizes that are no whole pages, or reach too far, are wrong for almost every call. */
uint64_t world_size(struct world *world, uint64_t room)
{
	struct dice *dice = &world->dice;
	const uint64_t page = world->page;
	const uint64_t strange[] = {0, 1, 512, page - 1, page + 1, page + 512, UINT64_MAX,
		UINT64_MAX - page + 1, 1ULL << 63, 1ULL << 48, (1ULL << 32) + page, UINT64_MAX / 2,
		MB(1024)};
	const uint64_t good[] = {page, page, page, page, page, 2 * page, 2 * page, 3 * page,
		4 * page, 8 * page, 16 * page, KB(64), KB(64), MB(2), MB(2) - page, room, room};
	uint64_t size;

	if (dice_chance(dice, 25))
		return DICE_OF(dice, strange);
	if (dice_chance(dice, 15))
		return MB(2) + page;
	size = dice_chance(dice, 250) ? page * (1 + dice_below(dice, 16)) : DICE_OF(dice, good);
	if (room && size > room && !dice_chance(dice, 20))
		size = room;
	if (dice_chance(dice, world->odd))
		size = dice_chance(dice, 500) ? size - 1 : size + 512;
	return size;
}

/* So far from where a range began: to be inside it, to touch it, to cross its ends. Modulo
 * 2^64, as IOVAs are. */
static uint64_t from_range(struct world *world, uint64_t old, uint64_t new)
{
	struct dice *dice = &world->dice;
	const uint64_t page = world->page;
	const uint64_t deltas[] = {0, 0, 0, 0, old, old, 0 - new, old - page, page - new, page,
		0 - page, old + page, old / 2 & ~(page - 1), 0 - new - page};

	return DICE_OF(dice, deltas);
}

static void print_sum(char *text, size_t size, const char *base, uint64_t delta)
{
	if (!delta)
		snprintf(text, size, "%s", base);
	else if (delta >> 63)
		snprintf(text, size, "%s-0x%" PRIx64, base, 0 - delta);
	else
		snprintf(text, size, "%s+0x%" PRIx64, base, delta);
}

void world_iova(struct world *world, const struct world_thing *space, uint64_t size, char *base,
	size_t base_size)
{
	struct dice *dice = &world->dice;
	const struct world_range *range = some_range(world, space);
	const uint64_t odd[] = {1, 512, world->page - 1, UINT64_MAX};
	uint64_t iova;

	if (range && dice_chance(dice, 450)) {
		uint64_t delta = from_range(world, range->size, size);

		if (dice_chance(dice, world->odd))
			delta += DICE_OF(dice, odd);
		if (range->base[0] == '$') {
			print_sum(base, base_size, range->base, delta);
			return;
		}
		/* As one number: sums of sums would grow. */
		sscanf(range->base, "%" SCNx64, &iova);
		iova += delta;
	} else if (dice_chance(dice, 450)) {
		iova = world->edges[dice_below(dice, world->n_edges)] + from_range(world, 0, size);
	} else if (dice_chance(dice, 900)) {
		iova = MB(1) * dice_below(dice, 32) + KB(64) * dice_below(dice, 4);
	} else {
		iova = dice_next(dice) & ~(world->page - 1);
	}
	if (dice_chance(dice, world->odd))
		iova += DICE_OF(dice, odd);
	snprintf(base, base_size, "0x%" PRIx64, iova);
}

static bool usable(const struct world *world, const struct memory *memory, bool file)
{
	return (!memory->huge || world->host->huge_pages) && (!file || memory->file);
}

static const struct memory *some_memory(struct world *world, bool file)
{
	unsigned sum = 0, left, which = 0;

	for (size_t i = 0; i < MEMORIES; i++)
		sum += usable(world, &memories[i], file) ? memories[i].weight : 0;
	left = dice_below(&world->dice, sum);
	for (;; which++) {
		if (!usable(world, &memories[which], file))
			continue;
		if (left < memories[which].weight)
			break;
		left -= memories[which].weight;
	}
	if (!(world->memories & 1U << which)) {
		world->memories |= 1U << which;
		world_line(world, "memory %s %" PRIu64 "K%s", memories[which].name,
			memories[which].size >> 10, memories[which].kind);
		if (memories[which].after)
			world_line(world, "%s", memories[which].after);
	}
	return &memories[which];
}

/* A place in so many bytes: mostly the start, sometimes the last page or what is after it. */
static uint64_t some_offset(struct world *world, uint64_t size)
{
	struct dice *dice = &world->dice;
	unsigned pages = (unsigned)(size / world->page);
	uint64_t offset = 0;

	if (dice_chance(dice, 400))
		offset = world->page * dice_below(dice, pages);
	else if (dice_chance(dice, 80))
		offset = size - world->page;
	if (dice_chance(dice, world->odd))
		offset += dice_chance(dice, 500) ? 512 : world->page - 1;
	return offset;
}

void world_memory(struct world *world, char *address, size_t address_size, uint64_t *room)
{
	static const char *const bad[] = {"null", "0x1000", "2^47-4K", "2^47-8K", "2^47", "-4K",
		"max", "0xffff888000000000", "0x7fffffffe000"};
	struct dice *dice = &world->dice;
	const struct memory *memory;
	uint64_t offset;

	if (dice_chance(dice, 15)) {
		snprintf(address, address_size, "%s", DICE_OF(dice, bad));
		*room = MB(1);
		return;
	}
	if (world->n_bars && dice_chance(dice, 80)) {
		snprintf(address, address_size, "bar%u+0x%" PRIx64, dice_below(dice, world->n_bars),
			world->page * dice_below(dice, 4));
		*room = KB(64);
		return;
	}
	memory = some_memory(world, false);
	offset = some_offset(world, memory->size);
	*room = memory->size - offset;
	snprintf(address, address_size, offset ? "%s+0x%" PRIx64 : "%s", memory->name, offset);
}

void world_memory_file(struct world *world, const char **file, uint64_t *start, uint64_t *room)
{
	const struct memory *memory = some_memory(world, true);

	*file = memory->name;
	*start = some_offset(world, memory->size);
	*room = memory->size - *start;
	if (dice_chance(&world->dice, 10))
		*start = UINT64_MAX - world->page + 1;
}

void world_extras(struct world *world, unsigned minimum, unsigned full)
{
	struct dice *dice = &world->dice;
	const unsigned sizes[] = {0, 4, minimum - 1, minimum - 4, minimum, minimum + 1, minimum + 4,
		full - 1, full, full + 1, full + 8, 4096};

	if (dice_chance(dice, 40))
		script_add(&world->script, " argsz=%u", DICE_OF(dice, sizes));
	else if (dice_chance(dice, 4))
		script_add(&world->script, " argsz=%u tail=1", full + 8);
	else if (dice_chance(dice, 4))
		script_add(&world->script, " argument=%s", dice_chance(dice, 500) ? "null" : "-4K");
}

/* The form of the verb that takes such a thing as its first word. */
static const struct verb *find_verb(const char *line)
{
	static const struct {
		char letter;
		unsigned kinds;
	} letters[] = {{'c', THING_CONTAINER}, {'f', THING_IOMMUFD}, {'i', THING_IOAS},
		{'h', THING_HWPT}, {'g', THING_GROUP}, {'d', THING_DEVICE},
		{'x', THING_DEVICE_FILE}};
	size_t length = strcspn(line, " ");
	const struct verb *const *forms;
	size_t n = verb_find(line, length, &forms);
	char letter = line[length] ? line[length + 1] : 0;

	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
			if (letter == letters[i].letter &&
				forms[k]->fields[0].things & letters[i].kinds)
				return forms[k];
	return NULL;
}

/* Whether a number may be anything there. Page sizes of bitmaps may not: see containers.c. */
static bool any_number(const struct field *field)
{
	return field->kind == FIELD_NUMBER && field->use & USE_IN && field->role != ROLE_TAIL &&
	       field->role != ROLE_ARGUMENT && field->role != ROLE_PGSIZE &&
	       field->role != ROLE_BUFFER_SIZE && strcmp(field->name, "argsz") != 0;
}

void world_end(struct world *world)
{
	static const char *const numbers[] = {"1", "0x80", "4K", "0x80000000", "max"};
	struct dice *dice = &world->dice;
	struct script *script = &world->script;
	const struct verb *verb;
	const struct field *field;
	unsigned n = 0;

	if (!script->failed && dice_chance(dice, 8)) {
		const char *line = script->text + script->open;
		char key[40];

		verb = find_verb(line);
		while (verb && verb->fields[n].name)
			n++;
		field = n ? &verb->fields[dice_below(dice, n)] : NULL;
		if (field && any_number(field) &&
			(size_t)snprintf(key, sizeof(key), " %s=", field->name) < sizeof(key) &&
			!strstr(line, key))
			script_add(script, "%s%s", key, DICE_OF(dice, numbers));
	}
	script_end(script);
}

void world_choose(struct world *world, const struct world_choice *choices)
{
	unsigned sum = 0, left;

	for (const struct world_choice *choice = choices; choice->weight; choice++)
		sum += choice->weight;
	left = dice_below(&world->dice, sum);
	while (left >= choices->weight) {
		left -= choices->weight;
		choices++;
	}
	choices->write(world);
}
