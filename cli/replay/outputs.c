/* SPDX-License-Identifier: MIT */
/*
 * What a call gave: numbers of its structure, the bits of a bitmap, arrays, and
 * what a chain of capabilities holds. All of it is the other side's word, so
 * nothing in it is trusted to be in its place.
 */
#include <string.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "run.h"

#define CAPS_MAX 64

/* A capability of the chain: where, and its header. */
struct capability {
	size_t at;
	struct vfio_info_cap_header header;
};

static uint64_t number_at(const struct outcome *outcome, size_t at, size_t size)
{
	uint64_t number = 0;

	if (outcome->structure && at + size <= outcome->structure_size)
		memcpy(&number, outcome->structure + at, size);
	return number;
}

/* The chain, in its order; it ends at the first link that leads out of the structure. */
static size_t find_capabilities(const struct outcome *outcome, const struct verb *verb,
	struct capability capabilities[CAPS_MAX])
{
	int field = verb_role(verb, ROLE_CAP_OFFSET);
	size_t n = 0, at;

	if (field < 0 || !outcome->structure)
		return 0;
	at = number_at(outcome, verb->fields[field].offset, verb->fields[field].size);
	while (at && at + sizeof(capabilities[0].header) <= outcome->structure_size &&
		n < CAPS_MAX) {
		capabilities[n].at = at;
		memcpy(&capabilities[n].header, outcome->structure + at,
			sizeof(capabilities[n].header));
		at = capabilities[n++].header.next;
	}
	return n;
}

static const struct capability *find_capability(
	const struct capability *capabilities, size_t n, unsigned id)
{
	for (size_t i = 0; i < n; i++)
		if (capabilities[i].header.id == id)
			return &capabilities[i];
	return NULL;
}

static void list_of(struct output *output, const struct dmamap_range *ranges, size_t n)
{
	output->kind = OUTPUT_LIST;
	output->ranges = ranges;
	output->n = n;
}

static void number_of(struct output *output, uint64_t number)
{
	output->kind = OUTPUT_NUMBER;
	output->number = number;
}

/* One number of each capability, as a list. */
static void capability_list(struct replay *replay, const struct capability *capabilities, size_t n,
	enum field_role role, struct output *output)
{
	struct dmamap_range *list = scratch_take(replay, (n + 1) * sizeof(*list));

	if (!list)
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t value = capabilities[i].at;

		if (role == ROLE_CAPS)
			value = capabilities[i].header.id;
		else if (role == ROLE_CAP_VERSIONS)
			value = capabilities[i].header.version;
		list[i] = (struct dmamap_range){value, value};
	}
	list_of(output, list, n);
}

static void iova_ranges(struct replay *replay, const struct outcome *outcome,
	const struct capability *capability, struct output *output)
{
	size_t first = capability->at + sizeof(struct vfio_iommu_type1_info_cap_iova_range);
	size_t n = number_at(outcome, capability->at + 8, 4), room = 0;
	struct dmamap_range *list;

	if (first < outcome->structure_size)
		room = (outcome->structure_size - first) / sizeof(struct vfio_iova_range);
	if (n > room)
		n = room;
	list = scratch_take(replay, (n + 1) * sizeof(*list));
	if (!list)
		return;
	for (size_t i = 0; i < n; i++) {
		list[i].first = number_at(outcome, first + 16 * i, 8);
		list[i].last = number_at(outcome, first + 16 * i + 8, 8);
	}
	list_of(output, list, n);
}

static void get_capability(struct replay *replay, const struct case_statement *statement,
	const struct outcome *outcome, enum field_role role, struct output *output)
{
	static const struct {
		uint8_t role, id, at, size;
	} numbers[] = {
		{ROLE_CAP_AVAIL, VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, 8, 4},
		{ROLE_CAP_MIGRATION_FLAGS, VFIO_IOMMU_TYPE1_INFO_CAP_MIGRATION, 8, 4},
		{ROLE_CAP_MIGRATION_PGSIZES, VFIO_IOMMU_TYPE1_INFO_CAP_MIGRATION, 16, 8},
		{ROLE_CAP_MIGRATION_MAX, VFIO_IOMMU_TYPE1_INFO_CAP_MIGRATION, 24, 8},
	};
	struct capability capabilities[CAPS_MAX];
	size_t n = find_capabilities(outcome, statement->verb, capabilities);
	const struct capability *found;

	if (role == ROLE_CAPS || role == ROLE_CAP_OFFSETS || role == ROLE_CAP_VERSIONS) {
		capability_list(replay, capabilities, n, role, output);
		return;
	}
	if (role == ROLE_CAP_RANGES) {
		found = find_capability(capabilities, n, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE);
		if (found)
			iova_ranges(replay, outcome, found, output);
		return;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].role != role)
			continue;
		found = find_capability(capabilities, n, numbers[i].id);
		if (found)
			number_of(output,
				number_at(outcome, found->at + numbers[i].at, numbers[i].size));
	}
}

/* The bits that are set, as runs. */
static void get_dirty(struct replay *replay, const struct outcome *outcome, struct output *output)
{
	size_t n = 0, runs = 0;
	struct dmamap_range *list;
	bool before = false;

	if (!outcome->bitmap)
		return;
	for (size_t bit = 0; bit < outcome->bitmap_bits; bit++) {
		bool set = outcome->bitmap[bit / 64] >> bit % 64 & 1;

		runs += set && !before;
		before = set;
	}
	list = scratch_take(replay, (runs + 1) * sizeof(*list));
	if (!list)
		return;
	for (size_t bit = 0; bit < outcome->bitmap_bits; bit++) {
		if (!(outcome->bitmap[bit / 64] >> bit % 64 & 1))
			continue;
		if (n && list[n - 1].last + 1 == bit)
			list[n - 1].last = bit;
		else
			list[n++] = (struct dmamap_range){bit, bit};
	}
	list_of(output, list, n);
}

/* Of a hot reset: each function's group or device id, or its address. */
static void get_dependents(struct replay *replay, const struct outcome *outcome,
	enum field_role role, struct output *output)
{
	size_t first = sizeof(struct vfio_pci_hot_reset_info);
	size_t n = number_at(outcome, 8, 4);
	struct dmamap_range *list;

	if (n > (outcome->structure_size - first) / 8)
		n = (outcome->structure_size - first) / 8;
	list = scratch_take(replay, (n + 1) * sizeof(*list));
	if (!list)
		return;
	for (size_t i = 0; i < n; i++) {
		list[i].first =
			number_at(outcome, first + 8 * i + (role == ROLE_HOT_GROUPS ? 0 : 4), 4);
		list[i].last = list[i].first;
	}
	list_of(output, list, n);
}

/* Ranges that the kernel wrote into the call's own array. */
static void get_array(const struct case_statement *statement, const struct outcome *outcome,
	struct output *output)
{
	int count = verb_role(statement->verb, ROLE_ARRAY_COUNT);
	const struct field *field = &statement->verb->fields[count];
	uint64_t n = number_at(outcome, field->offset, field->size);

	if (outcome->array)
		list_of(output, outcome->array, n < outcome->array_n ? n : outcome->array_n);
}

static void get_data(const struct case_statement *statement, const struct outcome *outcome,
	struct output *output)
{
	size_t argsz = number_at(outcome, 0, 4), size = statement->verb->size;

	if (!outcome->structure || argsz < size)
		return;
	output->kind = OUTPUT_BYTES;
	output->bytes = outcome->structure + size;
	output->n = (argsz < outcome->structure_size ? argsz : outcome->structure_size) - size;
}

void output_get(struct replay *replay, const struct case_statement *statement,
	struct outcome *outcome, unsigned index, struct output *output)
{
	const struct field *field = &statement->verb->fields[index];

	memset(output, 0, sizeof(*output));
	if (outcome->have >> index & 1) {
		*output = outcome->outputs[index];
		return;
	}
	if (!outcome->structure)
		return;
	if (field->size) {
		number_of(output, number_at(outcome, field->offset, field->size));
		return;
	}
	switch (field->role) {
	case ROLE_DIRTY:
		get_dirty(replay, outcome, output);
		break;
	case ROLE_ARRAY_LIST:
		get_array(statement, outcome, output);
		break;
	case ROLE_BUFFER_BYTES:
		output->kind = outcome->buffer ? OUTPUT_BYTES : OUTPUT_NONE;
		output->bytes = outcome->buffer;
		output->n = outcome->buffer_size;
		break;
	case ROLE_DATA:
		get_data(statement, outcome, output);
		break;
	case ROLE_HOT_GROUPS:
	case ROLE_HOT_DEVICES:
		get_dependents(replay, outcome, field->role, output);
		break;
	default:
		if (field->role >= ROLE_CAPS && field->role <= ROLE_CAP_MIGRATION_MAX)
			get_capability(replay, statement, outcome, field->role, output);
		break;
	}
}

/* Neighbours become one range: "0,1,2" and "0..2" are the same bits. */
static size_t join(struct dmamap_range *ranges, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && ranges[kept - 1].last != UINT64_MAX &&
			ranges[kept - 1].last + 1 == ranges[i].first)
			ranges[kept - 1].last = ranges[i].last;
		else
			ranges[kept++] = ranges[i];
	}
	return kept;
}

void output_expected(struct replay *replay, const struct side *side,
	const struct case_statement *statement, const struct case_argument *argument,
	struct output *output)
{
	struct dmamap_range *list;

	memset(output, 0, sizeof(*output));
	switch (argument->kind) {
	case VALUE_ITEMS:
		list = scratch_take(replay, (argument->n + 1) * sizeof(*list));
		if (!list)
			return;
		for (uint32_t i = 0; i < argument->n; i++)
			list[i] = eval_item(side, statement, argument, i);
		list_of(output, list, argument->n);
		if (statement->verb->fields[argument->field].role == ROLE_DIRTY)
			output->n = join(list, output->n);
		break;
	case VALUE_BYTES:
		output->kind = OUTPUT_BYTES;
		output->bytes = argument->bytes;
		output->n = argument->n;
		break;
	case VALUE_NUMBER:
	case VALUE_TERMS:
		number_of(output, eval_number(side, statement, argument));
		break;
	default:
		break;
	}
}

bool output_equal(const struct output *one, const struct output *other)
{
	if (one->kind != other->kind || one->n != other->n)
		return false;
	if (one->kind == OUTPUT_NUMBER)
		return one->number == other->number;
	if (one->kind == OUTPUT_BYTES)
		return !one->n || !memcmp(one->bytes, other->bytes, one->n);
	return one->kind == OUTPUT_NONE || !one->n ||
	       !memcmp(one->ranges, other->ranges, one->n * sizeof(*one->ranges));
}

void output_print(struct line *line, const struct field *field, const struct output *output)
{
	switch (output->kind) {
	case OUTPUT_NUMBER:
		if (field->names)
			line_named(line, field, output->number);
		else
			line_number(line, field->show, output->number);
		break;
	case OUTPUT_LIST:
		if (!output->n)
			line_text(line, "none");
		for (size_t i = 0; i < output->n; i++) {
			if (i)
				line_char(line, ',');
			line_number(line, field->show, output->ranges[i].first);
			if (output->ranges[i].first == output->ranges[i].last)
				continue;
			line_text(line, "..");
			line_number(line, field->show, output->ranges[i].last);
		}
		break;
	case OUTPUT_BYTES:
		line_bytes(line, output->bytes, output->n);
		break;
	default:
		line_text(line, "nothing");
		break;
	}
}
