/* SPDX-License-Identifier: MIT */
/*
 * An ioctl by its row: the fields that a case gives are put where the row says,
 * arrays and bitmaps that belong to it are made, and after the call all of it is
 * kept for the outputs.
 */
#include <errno.h>
#include <string.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "run.h"

/* One ioctl while it is made. */
struct call {
	struct replay *replay;
	const struct case_statement *statement;
	const struct verb *verb;
	struct side *side;
	struct outcome *outcome;
	uint8_t *structure;
	size_t size;  /* of what is known of the structure, data behind it included */
	size_t argsz; /* what the caller says; at most the room */
};

static const struct case_argument *given_role(
	const struct call *call, enum field_role role, int *field)
{
	*field = verb_role(call->verb, role);
	return *field < 0 ? NULL : case_argument(call->statement, (unsigned)*field, false);
}

static uint64_t role_value(const struct call *call, enum field_role role, uint64_t otherwise)
{
	int field;
	const struct case_argument *argument = given_role(call, role, &field);

	return argument ? eval_number(call->side, call->statement, argument) : otherwise;
}

static void store(const struct call *call, const struct field *field, uint64_t value)
{
	/* Both processors are little-endian. */
	memcpy(call->structure + field->offset, &value, field->size);
}

static uint64_t load(const struct call *call, int field)
{
	uint64_t value = 0;

	if (field >= 0 && call->verb->fields[field].size)
		memcpy(&value, call->structure + call->verb->fields[field].offset,
			call->verb->fields[field].size);
	return value;
}

static uint64_t load_flags(const struct call *call)
{
	return load(call, verb_role(call->verb, ROLE_FLAGS));
}

static uint64_t load_named(const struct call *call, const char *name)
{
	return load(call, verb_field(call->verb, name, strlen(name), USE_IN | USE_OUT | USE_WORD));
}

static bool is_given(const struct call *call, int field)
{
	return case_argument(call->statement, (unsigned)field, false) != NULL;
}

/* Whether a field of the structure takes part, and up to which byte it reaches. */
static bool takes_part(const struct call *call, int i)
{
	const struct field *field = &call->verb->fields[i];

	return field->size && field->role != ROLE_ARGSZ &&
	       (is_given(call, i) || field->initial || field->role == ROLE_OWN_OBJECT) &&
	       field->role != ROLE_BITMAP;
}

/* The structure as far as the case gives fields: its size without a word on it. */
static size_t natural_size(const struct call *call)
{
	size_t size = call->verb->size;

	for (int i = 0; call->verb->fields[i].name; i++) {
		const struct field *field = &call->verb->fields[i];
		size_t end = (size_t)field->offset + field->size;

		if ((takes_part(call, i) || is_given(call, i)) && field->size && end > size)
			size = end;
	}
	return size;
}

static struct state *target_of(const struct call *call)
{
	int field;

	return &call->side->states[given_role(call, ROLE_TARGET, &field)->index];
}

static void put_fields(struct call *call)
{
	const struct state *target = target_of(call);

	for (int i = 0; call->verb->fields[i].name; i++) {
		const struct field *field = &call->verb->fields[i];
		uint64_t value;

		if (!takes_part(call, i))
			continue;
		if (field->role == ROLE_OWN_OBJECT && !is_given(call, i))
			value = target->id;
		else
			value = eval_field(call->side, call->statement, i);
		if (field->role == ROLE_FLAGS && !is_given(call, i)) {
			int iova = verb_role(call->verb, ROLE_IOVA);

			/* A fixed IOVA has a flag of its own. */
			if (iova >= 0 && is_given(call, iova))
				value |= IOMMU_IOAS_MAP_FIXED_IOVA;
		}
		/* The number of a feature shares its place with the flags. */
		if (field->role == ROLE_FEATURE || field->role == ROLE_FLAGS)
			value |= load_flags(call);
		store(call, field, value);
	}
}

/* -------------------------------------------------- what belongs to a structure */

/* Bitmaps: on when the flags ask for one, or when the case gives one of its fields. */
static int put_bitmap(struct call *call)
{
	int field = verb_role(call->verb, ROLE_BITMAP), pgsize_field, size_field, unused;
	uint64_t pgsize, size, length, bits;
	const struct field *bitmap;
	void *memory;

	if (field < 0)
		return 0;
	bitmap = &call->verb->fields[field];
	pgsize_field = verb_role(call->verb, ROLE_PGSIZE);
	size_field = verb_role(call->verb, ROLE_BITMAP_SIZE);
	if (bitmap->initial && !(load_flags(call) & bitmap->initial) && !is_given(call, field) &&
		!is_given(call, pgsize_field) && !is_given(call, size_field))
		return 0;
	length = role_value(call, ROLE_LENGTH, 0);
	pgsize = role_value(call, ROLE_PGSIZE, call->replay->page_size);
	bits = pgsize ? length / pgsize + (length % pgsize != 0) : 0;
	size = role_value(call, ROLE_BITMAP_SIZE, (bits / 64 + (bits % 64 != 0)) * 8);
	store(call, &call->verb->fields[pgsize_field], pgsize);
	if (call->verb->fields[size_field].size)
		store(call, &call->verb->fields[size_field], size);
	if (call->size < (size_t)bitmap->offset + bitmap->size)
		call->size = (size_t)bitmap->offset + bitmap->size;
	if (given_role(call, ROLE_BITMAP, &unused)) {
		store(call, bitmap, role_value(call, ROLE_BITMAP, 0));
		return 0;
	}
	/* Sizes that no kernel takes need no memory behind them. */
	if (size > (uint64_t)256 << 20)
		size = 64;
	memory = scratch_take(call->replay, size + 8);
	if (!memory)
		return -ENOMEM;
	store(call, bitmap, (uintptr_t)memory);
	call->outcome->bitmap = memory;
	call->outcome->bitmap_bits = bits < size * 8 ? bits : size * 8;
	return 0;
}

/* An array of pairs beside the structure, with its address and its count in it. */
static int put_array(struct call *call)
{
	int field = verb_role(call->verb, ROLE_ARRAY), count_field, list_field;
	const struct case_argument *list, *count;
	struct dmamap_range *array;
	uint64_t room, n;

	if (field < 0)
		return 0;
	list = given_role(call, ROLE_ARRAY_LIST, &list_field);
	count = given_role(call, ROLE_ARRAY_COUNT, &count_field);
	n = list ? list->n : 0;
	if (count)
		n = eval_number(call->side, call->statement, count);
	else if (!(call->verb->fields[list_field].use & USE_IN))
		n = call->verb->fields[count_field].initial;
	store(call, &call->verb->fields[count_field], n);
	if (is_given(call, field)) {
		store(call, &call->verb->fields[field], role_value(call, ROLE_ARRAY, 0));
		return 0;
	}
	room = n > 65536 ? 65536 : n;
	if (list && list->n > room)
		room = list->n;
	array = scratch_take(call->replay, (room + 1) * sizeof(*array));
	if (!array)
		return -ENOMEM;
	for (uint32_t i = 0; list && i < list->n; i++)
		array[i] = eval_item(call->side, call->statement, list, i);
	store(call, &call->verb->fields[field], (uintptr_t)array);
	call->outcome->array = array;
	call->outcome->array_n = room;
	return 0;
}

/* A buffer that the kernel fills: get_hw_info's data. */
static int put_buffer(struct call *call)
{
	int field = verb_role(call->verb, ROLE_BUFFER);
	uint64_t size = role_value(call, ROLE_BUFFER_SIZE, 0);
	void *memory;

	if (field < 0 || is_given(call, field) || !size)
		return 0;
	if (size > 1 << 20)
		size = 1 << 20;
	memory = scratch_take(call->replay, size);
	if (!memory)
		return -ENOMEM;
	store(call, &call->verb->fields[field], (uintptr_t)memory);
	call->outcome->buffer = memory;
	call->outcome->buffer_size = size;
	return 0;
}

/* The argument that has what follows the structure, and how many bytes that is. */
static const struct case_argument *data_argument(const struct call *call, int *field, size_t *size)
{
	static const enum field_role roles[] = {
		ROLE_DATA_LIST, ROLE_DATA_BOOLS, ROLE_DATA_RANGES, ROLE_DATA};
	const struct case_argument *argument = NULL;

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]) && !argument; i++)
		argument = given_role(call, roles[i], field);
	if (!argument)
		return NULL;
	switch (call->verb->fields[*field].role) {
	case ROLE_DATA_RANGES:
		*size = argument->n * sizeof(struct vfio_region_dma_range);
		break;
	case ROLE_DATA:
		*size = argument->n;
		break;
	default:
		*size = argument->n * sizeof(int32_t);
		break;
	}
	return argument;
}

static void put_data(struct call *call, const struct case_argument *argument, int field, size_t at)
{
	const struct field *of = &call->verb->fields[field];
	uint8_t *to = call->structure + at;
	bool bools = of->role == ROLE_DATA_BOOLS && load_flags(call) & VFIO_IRQ_SET_DATA_BOOL;
	int count = verb_role(call->verb, ROLE_ARRAY_COUNT);

	if (of->role == ROLE_DATA) {
		memcpy(to, argument->bytes, argument->n);
		return;
	}
	for (uint32_t i = 0; i < argument->n; i++) {
		struct dmamap_range item = eval_item(call->side, call->statement, argument, i);
		struct vfio_region_dma_range part = {item.first, item.last - item.first + 1};
		int32_t number = (int32_t)item.first;

		if (of->role == ROLE_DATA_RANGES)
			memcpy(to + i * sizeof(part), &part, sizeof(part));
		else if (bools)
			to[i] = (uint8_t)number;
		else
			memcpy(to + i * sizeof(number), &number, sizeof(number));
	}
	if (count >= 0 && !is_given(call, count))
		store(call, &call->verb->fields[count], argument->n);
}

/* --------------------------------------------------------------------- the call */

/* A structure of the caller's size, with all that belongs to it. */
static int build(struct call *call)
{
	int argsz_field = verb_role(call->verb, ROLE_ARGSZ), data_field = -1, error;
	size_t natural = natural_size(call), data_size = 0, room;
	const struct case_argument *data = data_argument(call, &data_field, &data_size);
	uint64_t argsz;
	uint8_t tail = (uint8_t)role_value(call, ROLE_TAIL, 0);

	argsz = argsz_field >= 0 && is_given(call, argsz_field)
			? eval_field(call->side, call->statement, argsz_field)
			: 0;
	room = argsz;
	if (room < natural + data_size)
		room = natural + data_size;
	if (room < 256)
		room = 256;
	/* Sizes of gigabytes are only said: the memory ends before. */
	if (room >= SCRATCH_LAST && natural + data_size < SCRATCH_LAST) {
		room = SCRATCH_LAST;
		call->structure = scratch_last(call->replay);
	} else {
		call->structure = scratch_argument(call->replay, room);
	}
	if (!call->structure)
		return -ENOMEM;
	call->size = natural;
	put_fields(call);
	error = put_bitmap(call);
	if (!error)
		error = put_array(call);
	if (!error)
		error = put_buffer(call);
	if (error)
		return error;
	if (data) {
		put_data(call, data, data_field, call->size);
		call->size += data_size;
		/* Bools are one byte each. */
		if (call->verb->fields[data_field].role == ROLE_DATA_BOOLS &&
			load_flags(call) & VFIO_IRQ_SET_DATA_BOOL)
			call->size -= data_size - data->n;
	}
	call->argsz = call->size;
	if (argsz_field >= 0) {
		if (is_given(call, argsz_field))
			call->argsz = argsz;
		store(call, &call->verb->fields[argsz_field], call->argsz);
	}
	if (tail && call->argsz > call->size)
		memset(call->structure + call->size, tail,
			(call->argsz < room ? call->argsz : room) - call->size);
	call->outcome->structure = call->structure;
	call->outcome->structure_size = room;
	return 0;
}

/* What the ioctl's argument is: the structure, or what the case puts in its place. */
static int build_argument(struct call *call, void **argument)
{
	int value = verb_role(call->verb, ROLE_VALUE), name = verb_role(call->verb, ROLE_PCI_NAME);
	int field, error = 0;
	const struct case_argument *instead = given_role(call, ROLE_ARGUMENT, &field);

	*argument = NULL;
	if (value >= 0) {
		*argument = (void *)(uintptr_t)eval_field(call->side, call->statement, value);
	} else if (name >= 0) {
		const struct case_argument *text = eval_given(call->statement, "name");
		unsigned thing = case_argument(call->statement, (unsigned)name, false)->index;
		const char *bdf =
			call->replay->devices[call->replay->file->things[thing].device].bdf;
		char *copy = scratch_take(
			call->replay, text ? (size_t)text->n + 1 : sizeof(struct pci_device));

		if (!copy)
			return -ENOMEM;
		strcpy(copy, text ? text->text : bdf);
		*argument = copy;
	} else if (call->verb->size) {
		error = build(call);
		*argument = call->structure;
	}
	if (instead)
		*argument = (void *)(uintptr_t)eval_number(call->side, call->statement, instead);
	return error;
}

/* A file has the same under every name of it. */
static void share_state(struct call *call, const struct state *state)
{
	struct state now = *state;

	for (size_t i = 0; i < call->replay->file->n_things; i++)
		if (now.fd >= 0 && call->side->states[i].fd == now.fd)
			call->side->states[i] = now;
}

/* The IOAS behind the page table that a call names: an HWPT's is known, another number is one. */
static uint32_t ioas_of(const struct call *call)
{
	const struct case_argument *pt = eval_given(call->statement, "pt");
	uint32_t ioas;

	if (!pt)
		return 0;
	ioas = (uint32_t)eval_number(call->side, call->statement, pt);
	for (uint32_t i = 0; pt->kind == VALUE_TERMS && i < pt->n; i++)
		if (pt->terms[i].kind == TERM_THING && call->side->states[pt->terms[i].value].ioas)
			ioas = call->side->states[pt->terms[i].value].ioas;
	return ioas;
}

/* Where a device's IOVAs are mapped, for those that do DMA on command. */
static void heed_attachment(struct call *call, struct state *on, struct state *new)
{
	switch (call->verb->request) {
	case VFIO_GROUP_SET_CONTAINER:
		on->map_fd = (int)load_named(call, "container");
		share_state(call, on);
		break;
	case VFIO_GROUP_GET_DEVICE_FD:
		new->map_fd = on->map_fd;
		share_state(call, new);
		break;
	case VFIO_DEVICE_BIND_IOMMUFD:
		on->map_fd = (int)load_named(call, "iommufd");
		share_state(call, on);
		break;
	case VFIO_DEVICE_ATTACH_IOMMUFD_PT:
		on->ioas = ioas_of(call);
		share_state(call, on);
		break;
	case IOMMU_HWPT_ALLOC:
		new->ioas = ioas_of(call);
		break;
	default:
		break;
	}
}

/* What a successful call makes of the names in it. */
static void heed(struct call *call, int64_t result)
{
	int field, made = -1;
	const struct case_argument *new = given_role(call, ROLE_NEW, &field);
	struct state *on = target_of(call);

	if (new)
		made = (int)new->index;
	if (call->verb->flags & VERB_OPENS) {
		const struct case_argument *device = given_role(call, ROLE_PCI_NAME, &field);

		state_open(call->replay, call->side, (unsigned)made,
			device ? (int)call->replay->file->things[device->index].device : -1,
			(int)result);
	}
	if (call->verb->flags & VERB_MAKES_ID && made >= 0)
		call->side->states[made] = (struct state){.id = (uint32_t)load_named(call, "id"),
			.iommufd = on->iommufd >= 0 ? on->iommufd : on->fd,
			.fd = on->fd,
			.map_fd = -1};
	else if (call->verb->flags & VERB_MAKES_ID)
		on->id = (uint32_t)load_named(call, "id");
	heed_attachment(call, on, made >= 0 ? &call->side->states[made] : on);
}

void action_ioctl(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct call call = {.replay = replay,
		.statement = statement,
		.verb = statement->verb,
		.side = side,
		.outcome = outcome};
	struct dmamap_system *system = process_system(replay, side, statement);
	void *argument;
	int64_t result;

	if (!system) {
		outcome->result = -ESRCH;
		return;
	}
	if (build_argument(&call, &argument)) {
		outcome->result = -ENOMEM;
		snprintf(outcome->said, sizeof(outcome->said),
			"the call's arguments need more memory than replay has for them");
		return;
	}
	if (outcome->structure && replay->show_changes) {
		outcome->before = scratch_take(replay, outcome->structure_size);
		if (outcome->before)
			memcpy(outcome->before, outcome->structure, outcome->structure_size);
	}
	result = outcome_set(side, outcome,
		system->ops->ioctl(
			system, target_of(&call)->fd, statement->verb->request, argument));
	if (result < 0) {
		/* What could not be made is no file, whatever it was before. */
		if (statement->verb->flags & VERB_OPENS)
			state_open(replay, side, eval_given(statement, "new")->index, -1, -1);
		return;
	}
	heed(&call, result);
}
