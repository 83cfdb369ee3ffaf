/* SPDX-License-Identifier: MIT */
/* What a statement's values are worth on one side. */
#include <string.h>

#include "run.h"

static uint64_t thing_value(const struct side *side, const struct field *field, uint64_t thing)
{
	const struct state *state = &side->states[thing];

	if (field->as == AS_FILE)
		return (uint64_t)(int64_t)state->fd;
	return field->as == AS_OBJECT ? state->id : state->va;
}

static uint64_t term_value(
	const struct side *side, const struct field *field, const struct case_term *term)
{
	if (term->kind == TERM_THING)
		return thing_value(side, field, term->value);
	return term->kind == TERM_VARIABLE ? side->variables[term->value] : term->value;
}

uint64_t eval_number(const struct side *side, const struct case_statement *statement,
	const struct case_argument *argument)
{
	const struct field *field = &statement->verb->fields[argument->field];
	uint64_t sum = 0, product = 0;

	if (argument->kind != VALUE_TERMS)
		return argument->number;
	for (uint32_t i = 0; i < argument->n; i++) {
		const struct case_term *term = &argument->terms[i];
		uint64_t value = term_value(side, field, term);

		if (term->sign == '*') {
			product *= value;
			continue;
		}
		sum += product;
		product = term->sign == '-' ? -value : value;
	}
	return sum + product;
}

uint64_t eval_field(const struct side *side, const struct case_statement *statement, int field)
{
	const struct case_argument *argument = case_argument(statement, (unsigned)field, false);

	return argument ? eval_number(side, statement, argument)
			: statement->verb->fields[field].initial;
}

const struct case_argument *eval_given(const struct case_statement *statement, const char *key)
{
	int field = verb_field(statement->verb, key, strlen(key), USE_IN | USE_WORD);

	return field < 0 ? NULL : case_argument(statement, (unsigned)field, false);
}

uint64_t eval_key(const struct side *side, const struct case_statement *statement, const char *key)
{
	int field = verb_field(statement->verb, key, strlen(key), USE_IN | USE_WORD);

	return field < 0 ? 0 : eval_field(side, statement, field);
}

struct dmamap_range eval_item(const struct side *side, const struct case_statement *statement,
	const struct case_argument *list, size_t i)
{
	struct case_item item = list->items[i];
	struct dmamap_range range;

	/* Items are parsed without the field that they belong to. */
	item.first.field = item.last.field = list->field;
	range.first = eval_number(side, statement, &item.first);
	range.last = item.range ? eval_number(side, statement, &item.last) : range.first;
	return range;
}

struct state *eval_thing(struct side *side, const struct case_statement *statement, const char *key)
{
	return &side->states[eval_given(statement, key)->index];
}

/* 64 bytes keep all types aligned. */
static size_t rounded(size_t size)
{
	return (size + 63) & ~(size_t)63;
}

void *scratch_take(struct replay *replay, size_t size)
{
	uint8_t *taken = replay->scratch + replay->scratch_used;

	if (size > SCRATCH - replay->scratch_used)
		return NULL;
	replay->scratch_used += rounded(size);
	if (replay->scratch_used > SCRATCH)
		replay->scratch_used = SCRATCH;
	memset(taken, 0, size);
	return taken;
}

void *scratch_argument(struct replay *replay, size_t size)
{
	uint8_t *taken;

	if (!replay->stack || replay->workers || rounded(size) > SCRATCH_STACK - replay->stack_used)
		return scratch_take(replay, size);
	taken = replay->stack + replay->stack_used;
	replay->stack_used += rounded(size);
	memset(taken, 0, size);
	return taken;
}

void *scratch_last(struct replay *replay)
{
	uint8_t *taken = replay->scratch + SCRATCH - SCRATCH_LAST;

	if (replay->scratch_used > SCRATCH - SCRATCH_LAST)
		return NULL;
	replay->scratch_used = SCRATCH;
	memset(taken, 0, SCRATCH_LAST);
	return taken;
}

void scratch_reset(struct replay *replay)
{
	replay->scratch_used = 0;
	replay->stack_used = 0;
}
