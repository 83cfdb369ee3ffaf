/* SPDX-License-Identifier: MIT */
/* What stands in a statement: sums, flags, lists, bytes, names. */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "parse.h"

#define TERMS_MAX 32
#define ITEMS_MAX 65536
#define BYTES_MAX (1 << 20)

static bool at_char(const struct case_parser *parser, char c)
{
	return parser->at < parser->end && *parser->at == c;
}

/* "..", which stands between the ends of a range. */
static bool at_dots(const struct case_parser *parser)
{
	return parser->end - parser->at >= 2 && parser->at[0] == '.' && parser->at[1] == '.';
}

/* ----------------------------------------------------------------- numbers */

static int digits(struct case_parser *parser, unsigned base, uint64_t *number)
{
	const char *start = parser->at;

	*number = 0;
	for (; parser->at < parser->end; parser->at++) {
		unsigned char c = (unsigned char)*parser->at;
		unsigned digit = 99;

		if (isdigit(c))
			digit = c - '0';
		else if (isxdigit(c))
			digit = (c | 32) - 'a' + 10;
		if (digit >= base)
			break;
		if (__builtin_mul_overflow(*number, (uint64_t)base, number) ||
			__builtin_add_overflow(*number, (uint64_t)digit, number))
			return parse_fail(parser, start,
				"the number has more than 64 bits; write max for the largest");
	}
	if (parser->at == start)
		return parse_fail(parser, start,
			"a number is wanted here; write one such as 4096, 0x1000, 4K or 2^12");
	return 0;
}

static int power(struct case_parser *parser, const char *start, uint64_t *number)
{
	uint64_t base = *number, exponent;

	parser->at++;
	if (digits(parser, 10, &exponent))
		return -1;
	*number = 1;
	for (uint64_t i = 0; i < exponent && base > 1; i++)
		if (__builtin_mul_overflow(*number, base, number))
			return parse_fail(parser, start,
				"the power has more than 64 bits; write max for 2^64-1");
	if (base <= 1 && exponent)
		*number = base;
	return 0;
}

/* Digits with what may follow them. */
static int parse_number(struct case_parser *parser, uint64_t *number)
{
	static const char suffixes[] = "KMGTPE";
	const char *start = parser->at, *suffix;
	bool hex = parser->end - start > 1 && start[0] == '0' && (start[1] | 32) == 'x';
	unsigned shift;

	if (hex)
		parser->at += 2;
	if (digits(parser, hex ? 16 : 10, number))
		return -1;
	if (at_char(parser, '^'))
		return power(parser, start, number);
	if (hex || parser->at == parser->end)
		return 0;
	suffix = *parser->at ? strchr(suffixes, toupper((unsigned char)*parser->at)) : NULL;
	if (!suffix)
		return 0;
	shift = 10 * (unsigned)(suffix - suffixes + 1);
	parser->at++;
	if (*number >> (64 - shift))
		return parse_fail(parser, start,
			"the number has more than 64 bits; write max for the largest");
	*number <<= shift;
	return 0;
}

/* -------------------------------------------------------------------- sums */

static int variable_term(struct case_parser *parser, struct case_term *term)
{
	const char *start = parser->at++, *name = parser->at;
	const char *end = parse_name_end(parser, name);
	int64_t index = names_find(&parser->variables, name, (size_t)(end - name));

	if (end == name)
		return parse_fail(parser, start,
			"a name must follow the $; write $i or $a.iova, where a call has save=a");
	if (index < 0)
		return parse_fail(parser, start,
			"nothing is kept as $%.*s before here; write save=NAME on a call that has "
			"such an "
			"output",
			(int)(end - name), name);
	parser->at = end;
	term->kind = TERM_VARIABLE;
	term->value = (uint64_t)index;
	return 0;
}

/* Which things a number can be made of. */
static unsigned usable(const struct field *field)
{
	if (field->things)
		return field->things;
	if (field->as == AS_FILE)
		return ~(unsigned)THING_PROCESS;
	if (field->as == AS_OBJECT)
		return THING_IOAS | THING_HWPT | THING_DEVICE | THING_DEVICE_FILE;
	return THING_MEMORY;
}

static int name_term(struct case_parser *parser, const struct field *field, struct case_term *term)
{
	const char *name = parser->at, *end = parse_name_end(parser, name);
	char is[PARSE_KINDS], wanted[PARSE_KINDS];
	size_t length = (size_t)(end - name);
	enum thing_kind kind;
	int64_t index;

	term->kind = TERM_NUMBER;
	parser->at = end;
	if (length == 3 && !memcmp(name, "max", 3)) {
		term->value = UINT64_MAX;
		return 0;
	}
	if (length == 4 && !memcmp(name, "page", 4)) {
		term->value = parser->page_size;
		return 0;
	}
	if (length == 4 && !memcmp(name, "null", 4)) {
		term->value = 0;
		return 0;
	}
	parser->at = name;
	index = parse_thing(parser, name, length);
	if (index < 0)
		return -1;
	kind = parser->file->things[index].kind;
	if (!(kind & usable(field)))
		return parse_fail(parser, name,
			"%.*s is %s, but %s= takes %s; name one, or give a number", (int)length,
			name, parse_kind_name(kind, is), field->name,
			parse_kind_name(usable(field), wanted));
	parser->at = end;
	term->kind = TERM_THING;
	term->value = (uint64_t)index;
	return 0;
}

static int parse_term(struct case_parser *parser, const struct field *field, struct case_term *term)
{
	if (at_char(parser, '$'))
		return variable_term(parser, term);
	if (parse_name_end(parser, parser->at) != parser->at)
		return name_term(parser, field, term);
	term->kind = TERM_NUMBER;
	return parse_number(parser, &term->value);
}

static bool is_operator(const struct case_parser *parser)
{
	return at_char(parser, '+') || at_char(parser, '-') || at_char(parser, '*');
}

static uint64_t fold(const struct case_term *terms, unsigned n)
{
	uint64_t sum = 0, product = 0;

	for (unsigned i = 0; i < n; i++) {
		if (terms[i].sign == '*') {
			product *= terms[i].value;
			continue;
		}
		sum += product;
		product = terms[i].sign == '-' ? -terms[i].value : terms[i].value;
	}
	return sum + product;
}

static int parse_sum(
	struct case_parser *parser, const struct field *field, struct case_argument *argument)
{
	struct case_term terms[TERMS_MAX], *kept;
	bool constant = true;
	unsigned n = 0;

	terms[0].sign = '+';
	if (is_operator(parser) && !at_char(parser, '*'))
		terms[0].sign = *parser->at++;
	for (;;) {
		terms[n].value = 0;
		if (parse_term(parser, field, &terms[n]))
			return -1;
		constant &= terms[n++].kind == TERM_NUMBER;
		if (!is_operator(parser))
			break;
		if (n == TERMS_MAX)
			return parse_fail(parser, parser->at,
				"a sum has at most %d terms; write it shorter", TERMS_MAX);
		terms[n].sign = *parser->at++;
	}
	if (constant) {
		argument->kind = VALUE_NUMBER;
		argument->n = 0;
		argument->number = fold(terms, n);
		return 0;
	}
	kept = arena_take(&parser->arena, n * sizeof(*kept));
	if (!kept)
		return parse_no_memory(parser);
	memset(kept, 0, n * sizeof(*kept));
	for (unsigned i = 0; i < n; i++) {
		kept[i].sign = terms[i].sign;
		kept[i].kind = terms[i].kind;
		kept[i].value = terms[i].value;
	}
	argument->kind = VALUE_TERMS;
	argument->n = n;
	argument->terms = kept;
	return 0;
}

int parse_constant(struct case_parser *parser, uint64_t *number)
{
	static const struct field plain = {.name = "number"};
	struct case_argument argument;
	const char *start = parser->at;

	if (parse_sum(parser, &plain, &argument))
		return -1;
	if (argument.kind != VALUE_NUMBER)
		return parse_fail(
			parser, start, "only a number can stand here; give one such as 4K");
	*number = argument.number;
	return 0;
}

/* --------------------------------------------------------- flags and choices */

static void list_choices(const struct field *field, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (const struct field_name *name = field->names; name && name->name; name++)
		if (n < size)
			n += (size_t)snprintf(
				text + n, size - n, "%s%s", n ? ", " : "", name->name);
}

static bool find_name(const struct field *field, const char *name, size_t length, uint64_t *value)
{
	for (const struct field_name *row = field->names; row && row->name; row++) {
		if (strlen(row->name) == length && !memcmp(row->name, name, length)) {
			*value = row->value;
			return true;
		}
	}
	return false;
}

/* One name or number; names of numbers ("8") win over the numbers. */
static int parse_choice(
	struct case_parser *parser, const struct field *field, struct case_argument *argument)
{
	const char *start = parser->at, *end = start;
	char choices[256];

	while (end < parser->end && (isalnum((unsigned char)*end) || *end == '_'))
		end++;
	argument->kind = VALUE_NUMBER;
	argument->n = 0;
	if (find_name(field, start, (size_t)(end - start), &argument->number)) {
		parser->at = end;
		return 0;
	}
	if (parse_name_end(parser, start) == start)
		return parse_sum(parser, field, argument);
	list_choices(field, choices, sizeof(choices));
	return parse_fail(parser, start, "%s has no %.*s; write %s%sa number", field->name,
		(int)(end - start), start, choices, choices[0] ? ", or " : "");
}

static int parse_flags(
	struct case_parser *parser, const struct field *field, struct case_argument *argument)
{
	struct case_argument one;
	const char *start = parser->at;
	uint64_t all = 0;
	unsigned n = 0;

	do {
		if (n++)
			parser->at++;
		one.field = argument->field;
		if (parse_choice(parser, field, &one))
			return -1;
		if (one.kind == VALUE_NUMBER)
			all |= one.number;
		else if (n > 1 || at_char(parser, ','))
			return parse_fail(
				parser, start, "a name or $ stands for all flags; write it alone");
	} while (at_char(parser, ','));
	*argument = one;
	if (one.kind == VALUE_NUMBER)
		argument->number = all;
	return 0;
}

/* ------------------------------------------------------------------- lists */

static int parse_item(struct case_parser *parser, const struct field *field, struct case_item *item)
{
	memset(item, 0, sizeof(*item));
	if (parse_sum(parser, field, &item->first))
		return -1;
	if (!at_dots(parser))
		return 0;
	parser->at += 2;
	item->range = true;
	return parse_sum(parser, field, &item->last);
}

static int parse_list(
	struct case_parser *parser, const struct field *field, struct case_argument *argument)
{
	const char *end = parse_word_end(parser, parser->at);
	struct case_item *items;
	size_t room = 1, n = 0;

	argument->kind = VALUE_ITEMS;
	if (end - parser->at == 4 && !memcmp(parser->at, "none", 4)) {
		parser->at = end;
		argument->n = 0;
		argument->items = NULL;
		return 0;
	}
	for (const char *c = parser->at; c < end; c++)
		room += *c == ',';
	if (room > ITEMS_MAX)
		return parse_fail(parser, parser->at,
			"a list has at most %d parts; write ranges as 0..7", ITEMS_MAX);
	items = arena_take(&parser->arena, room * sizeof(*items));
	if (!items)
		return parse_no_memory(parser);
	do {
		if (n)
			parser->at++;
		if (parse_item(parser, field, &items[n++]))
			return -1;
	} while (at_char(parser, ',') && n < room);
	argument->n = (uint32_t)n;
	argument->items = items;
	return 0;
}

/* ------------------------------------------------------------------- bytes */

static int hex_digit(char c)
{
	unsigned char u = (unsigned char)c;

	return isdigit(u) ? c - '0' : isxdigit(u) ? (c | 32) - 'a' + 10 : -1;
}

/* "00*16" or "1f00a0": to @bytes, or only counted where that is NULL. */
static int parse_bytes_part(struct case_parser *parser, uint8_t *bytes, uint64_t *n)
{
	const char *start = parser->at;
	uint64_t times, had = *n;
	uint8_t byte = 0;

	while (parser->end - parser->at >= 2 && hex_digit(parser->at[0]) >= 0 &&
		hex_digit(parser->at[1]) >= 0) {
		byte = (uint8_t)(hex_digit(parser->at[0]) << 4 | hex_digit(parser->at[1]));
		if (bytes)
			bytes[*n] = byte;
		++*n;
		parser->at += 2;
	}
	if (*n == had)
		return parse_fail(parser, start,
			"bytes are wanted here; write two hexadecimal digits for each, as 1f00a0");
	if (at_char(parser, '*')) {
		parser->at++;
		if (parse_number(parser, &times))
			return -1;
		if (*n - had != 1 || !times)
			return parse_fail(
				parser, start, "one byte is repeated, at least once; write 00*16");
		if (times > BYTES_MAX)
			times = BYTES_MAX + 1;
		if (bytes)
			memset(bytes + had, byte, times);
		*n = had + times;
	}
	return *n > BYTES_MAX ? parse_fail(parser, start, "that is more than 1M bytes; write fewer")
			      : 0;
}

static int parse_bytes(struct case_parser *parser, struct case_argument *argument)
{
	const char *start = parser->at;
	uint8_t *bytes = NULL;
	uint64_t n;

	argument->kind = VALUE_BYTES;
	argument->bytes = NULL;
	argument->n = 0;
	if (parse_word_end(parser, start) - start == 4 && !memcmp(start, "none", 4)) {
		parser->at += 4;
		return 0;
	}
	for (int pass = 0; pass < 2; pass++) {
		parser->at = start;
		n = 0;
		do {
			if (n)
				parser->at++;
			if (parse_bytes_part(parser, bytes, &n))
				return -1;
		} while (at_char(parser, ','));
		if (pass == 0) {
			bytes = arena_take(&parser->arena, n);
			if (!bytes)
				return parse_no_memory(parser);
		}
	}
	argument->n = (uint32_t)n;
	argument->bytes = bytes;
	return 0;
}

/* -------------------------------------------------------------- all of them */

static int parse_text(struct case_parser *parser, struct case_argument *argument)
{
	const char *end = parse_word_end(parser, parser->at);

	if (end == parser->at)
		return parse_fail(
			parser, parser->at, "a word is missing here; write it after the =");
	for (const char *c = parser->at; c < end; c++)
		if (iscntrl((unsigned char)*c))
			return parse_fail(parser, c, "this byte is no text; leave it out");
	argument->kind = VALUE_TEXT;
	argument->n = (uint32_t)(end - parser->at);
	argument->text = arena_text(&parser->arena, parser->at, argument->n);
	parser->at = end;
	return argument->text ? 0 : parse_no_memory(parser);
}

static int parse_existing(
	struct case_parser *parser, const struct field *field, struct case_argument *argument)
{
	const char *name = parser->at, *end = parse_name_end(parser, name);
	char is[PARSE_KINDS], wanted[PARSE_KINDS];
	enum thing_kind kind;
	int64_t index;

	if (end == name)
		return parse_fail(parser, name, "the name of %s is wanted here",
			parse_kind_name(field->things, wanted));
	index = parse_thing(parser, name, (size_t)(end - name));
	if (index < 0)
		return -1;
	kind = parser->file->things[index].kind;
	/* All that the verb's forms take, where it has several. */
	if (!(kind & field->things))
		return parse_fail(parser, name, "%.*s is %s; name %s here", (int)(end - name), name,
			parse_kind_name(kind, is),
			parse_kind_name(
				field->role == ROLE_TARGET ? parser->targets : field->things,
				wanted));
	parser->at = end;
	argument->kind = VALUE_THING;
	argument->n = 0;
	argument->index = (uint32_t)index;
	return 0;
}

int parse_value(
	struct case_parser *parser, const struct field *field, struct case_argument *argument)
{
	const char *start = parser->at;
	int error;

	if (at_char(parser, '?') && field->use & USE_OUT) {
		parser->at++;
		argument->kind = VALUE_ANY;
		argument->n = 0;
		argument->number = 0;
		error = 0;
	} else if (field->kind == FIELD_FLAGS) {
		error = parse_flags(parser, field, argument);
	} else if (field->kind == FIELD_CHOICE) {
		error = parse_choice(parser, field, argument);
	} else if (field->kind == FIELD_LIST) {
		error = parse_list(parser, field, argument);
	} else if (field->kind == FIELD_BYTES) {
		error = parse_bytes(parser, argument);
	} else if (field->kind == FIELD_TEXT) {
		error = parse_text(parser, argument);
	} else if (field->kind == FIELD_THING) {
		error = parse_existing(parser, field, argument);
	} else {
		error = parse_sum(parser, field, argument);
	}
	if (error)
		return -1;
	if (!parse_at_end(parser))
		return parse_fail(parser, parser->at,
			"%.*s ends before this character; write a blank, or mend it",
			(int)(parser->at - start > 40 ? 40 : parser->at - start), start);
	return 0;
}
