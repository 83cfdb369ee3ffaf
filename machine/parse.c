/* SPDX-License-Identifier: MIT */
/*
 * A machine from text. Items are read one after the other into a copy of the
 * base: a key is looked up in the table (machine/keys.c) and sets a field of
 * the machine, of the IOMMU started last, or of the device started last. What
 * depends on several items is settled at the end: leaf sizes by page size,
 * strides by kernel, numbers and addresses that were not given.
 *
 * Every refusal has the place of the item, or of its value.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

/* Longer than any item that has a meaning. */
#define ITEM 512

struct spot {
	unsigned line, column;
};

/* What the reader remembers of an IOMMU or a device until the end. */
struct noted {
	struct spot spot;
	bool from_text, leaves, group, cdev;
};

struct reader {
	const char *at, *line_start;
	unsigned line;
	struct spot item, value;
	struct dmamap_machine machine;
	struct dmamap_reason *why;
	unsigned page_before;
	uint64_t seen[MACHINE_SCOPES]; /* by key; of the one started last */
	bool any, iommu_any, devices_any, stride, kernel;
	struct noted iommus[MACHINE_IOMMUS], devices[MACHINE_DEVICES];
};

/* Control characters of the input stay out of the sentence. */
static void printable(char *to, size_t size, const char *from)
{
	size_t n = 0;

	for (; *from && n + 1 < size; from++)
		to[n++] = (unsigned char)*from < ' ' || *from == 0x7f ? '?' : *from;
	to[n] = '\0';
}

static int refuse(struct reader *reader, const struct dmamap_reason_kind *kind, struct spot spot,
	const char *label)
{
	char text[64];

	printable(text, sizeof(text), label);
	return DMAMAP_REFUSE(reader->why, kind, EINVAL, text, spot.line, spot.column);
}

static int refuse_value(struct reader *reader, const struct machine_key *key, const char *value)
{
	char text[96];

	snprintf(text, sizeof(text), "%s=%.60s", key->name, value);
	return refuse(reader, &key->wrong, reader->value, text);
}

static int refuse_many(struct reader *reader, unsigned most, const char *what)
{
	return DMAMAP_REFUSE(reader->why, &machine_reason_machine_many, EINVAL, what,
		reader->item.line, reader->item.column, most);
}

/* ------------------------------------------------------------------ values */

static int read_leaves(struct reader *reader, const struct machine_key *key,
	struct dmamap_machine_iommu *iommu, const char *value)
{
	char copy[ITEM], *rest = copy, *one;
	uint64_t sizes = 0;

	snprintf(copy, sizeof(copy), "%s", value);
	while ((one = strsep(&rest, "/"))) {
		char *dash = strchr(one, '-');
		uint64_t first, last;

		if (dash)
			*dash++ = '\0';
		if (!machine_read_number(one, true, &first) || first < 4096 || first & (first - 1))
			return refuse_value(reader, key, value);
		last = first;
		if (dash && (!machine_read_number(dash, true, &last) || last < first ||
				    last & (last - 1)))
			return refuse_value(reader, key, value);
		sizes |= ~(first - 1) & (last | (last - 1));
	}
	iommu->leaf_sizes = sizes;
	reader->iommus[reader->machine.n_iommus - 1].leaves = true;
	return 0;
}

static int read_window(struct reader *reader, const struct machine_key *key,
	struct dmamap_machine_iommu *iommu, const char *value)
{
	char copy[ITEM], *label, *second;
	uint64_t first, last;
	bool size;

	snprintf(copy, sizeof(copy), "%s", value);
	label = strchr(copy, ':');
	if (label)
		*label++ = '\0';
	second = strpbrk(copy, "-+");
	if (!second)
		return refuse_value(reader, key, value);
	size = *second == '+';
	*second++ = '\0';
	if (!machine_read_number(copy, true, &first) || !machine_read_number(second, true, &last))
		return refuse_value(reader, key, value);
	if (size && !last)
		return refuse_value(reader, key, value);
	if (size)
		last += first - 1;
	if (last < first)
		return refuse_value(reader, key, value);
	return machine_add_window(iommu, first, last, label && *label ? label : NULL, reader->why);
}

static int read_bar(struct reader *reader, const struct machine_key *key,
	struct dmamap_machine_device *device, const char *value)
{
	const struct machine_choice *flag;
	uint64_t size, address = 0;
	char copy[ITEM], *at, *rest, *one;
	unsigned flags = 0;

	snprintf(copy, sizeof(copy), "%s", value);
	rest = strchr(copy, ':');
	if (rest)
		*rest++ = '\0';
	while ((one = strsep(&rest, ":"))) {
		for (flag = machine_bar_flags; flag->name && strcmp(flag->name, one); flag++)
			;
		if (!flag->name)
			return refuse_value(reader, key, value);
		flags |= (unsigned)flag->value;
	}
	at = strchr(copy, '@');
	if (at)
		*at++ = '\0';
	if (!machine_read_number(copy, true, &size) || size & (size - 1) ||
		(size && size < (flags & DMAMAP_BAR_IO ? 4 : 16)))
		return refuse_value(reader, key, value);
	if (at && (!machine_read_number(at, true, &address) || !address || !size ||
			  address & (size - 1)))
		return refuse_value(reader, key, value);
	device->bar_size[key->min] = size;
	device->bar_address[key->min] = address;
	device->bar_flags[key->min] = (uint8_t)(size ? flags : 0);
	return 0;
}

static int read_kernel(struct reader *reader, const struct machine_key *key, const char *value)
{
	unsigned major, minor;
	int length = 0;

	if (!isdigit((unsigned char)value[0]) ||
		sscanf(value, "%3u.%3u%n", &major, &minor, &length) != 2 || value[length] ||
		!isdigit((unsigned char)strchr(value, '.')[1]) || major > 255 || minor > 255)
		return refuse_value(reader, key, value);
	reader->machine.as_kernel = DMAMAP_KERNEL(major, minor);
	reader->kernel = true;
	return 0;
}

static int read_choice(
	struct reader *reader, const struct machine_key *key, const char *value, uint64_t *choice)
{
	for (const struct machine_choice *c = key->choices; c->name; c++) {
		if (!strcmp(c->name, value)) {
			*choice = c->value;
			return 0;
		}
	}
	return refuse_value(reader, key, value);
}

/* A value that a field takes as it is. */
static int read_field(
	struct reader *reader, const struct machine_key *key, void *object, const char *value)
{
	uint64_t number, least = key->form == FORM_NUMBER ? key->min : 0;
	bool on = !strcmp(value, "on");

	switch (key->form) {
	case FORM_ON:
	case FORM_OFF:
		if (!on && strcmp(value, "off"))
			return refuse_value(reader, key, value);
		number = on == (key->form == FORM_ON);
		break;
	case FORM_CHOICE:
		if (read_choice(reader, key, value, &number))
			return -EINVAL;
		break;
	case FORM_SIZE:
		if (!machine_read_number(value, true, &number) || number & (number - 1) ||
			(number && number < key->min) || number > key->max)
			return refuse_value(reader, key, value);
		break;
	default:
		if (!machine_read_number(value, false, &number) || number < least ||
			number > key->max)
			return refuse_value(reader, key, value);
	}
	machine_set_field(key, object, number);
	return 0;
}

/* --------------------------------------------------- IOMMUs and devices */

static int start_iommu(struct reader *reader, const struct machine_key *key, const char *value)
{
	struct dmamap_machine *machine = &reader->machine;
	uint64_t model = 0;
	int error = read_choice(reader, key, value, &model);

	if (error)
		return error;
	if (!reader->iommu_any)
		machine_drop_iommus(machine);
	reader->iommu_any = true;
	if (machine->n_iommus == MACHINE_IOMMUS)
		return refuse_many(reader, MACHINE_IOMMUS, "IOMMUs");
	error = machine_add_iommu(machine, (enum dmamap_iommu_model)model, reader->why);
	if (error)
		return error;
	reader->seen[MACHINE_IOMMU] = 0;
	reader->iommus[machine->n_iommus - 1] =
		(struct noted){.spot = reader->item, .from_text = true};
	return 0;
}

static int start_device(struct reader *reader, const struct machine_key *key, const char *value)
{
	struct dmamap_machine *machine = &reader->machine;
	const char *colon = strrchr(value, ':');
	/* The last part of an address has a dot, the name of a function has none. */
	bool named = colon && !strchr(colon, '.');
	size_t length = named ? (size_t)(colon - value) : strlen(value);
	const struct dmamap_machine_device *preset = machine_preset_device(named ? colon + 1 : "");
	struct dmamap_machine_device device;
	int error;

	if (!preset || (named && !colon[1]))
		return refuse_value(reader, key, value);
	device = *preset;
	if (!machine_read_bdf(value, length, device.bdf))
		return refuse_value(reader, key, value);
	if (!reader->devices_any)
		machine_drop_devices(machine);
	reader->devices_any = true;
	if (machine->n_devices == MACHINE_DEVICES)
		return refuse_many(reader, MACHINE_DEVICES, "devices");
	/* Behind the IOMMU started last; numbers that no device has, until they are known. */
	device.iommu = machine->n_iommus ? (unsigned)machine->n_iommus - 1 : 0;
	device.group = device.cdev = UINT32_MAX;
	error = machine_add_device(machine, &device, reader->why);
	if (error)
		return error;
	reader->seen[MACHINE_DEVICE] = 0;
	reader->devices[machine->n_devices - 1] =
		(struct noted){.spot = reader->item, .from_text = true};
	return 0;
}

static int read_items(struct reader *reader, const char *text);

static int read_preset(struct reader *reader, const struct machine_key *key, const char *value)
{
	const char *text = machine_preset_text(value);
	const char *at = reader->at, *line_start = reader->line_start;
	struct spot item = reader->item;
	unsigned line = reader->line;
	int error;

	if (!text)
		return refuse_value(reader, key, value);
	if (reader->any)
		return refuse(reader, &machine_reason_machine_first, item, "machine=");
	error = read_items(reader, text);
	reader->at = at;
	reader->line_start = line_start;
	reader->line = line;
	/* Its items may be given again, and stand where it stands. */
	memset(reader->seen, 0, sizeof(reader->seen));
	for (size_t i = 0; i < reader->machine.n_iommus; i++)
		reader->iommus[i].spot = item;
	for (size_t i = 0; i < reader->machine.n_devices; i++)
		reader->devices[i].spot = item;
	return error;
}

/* ------------------------------------------------------------------- items */

static int set_iommu(struct reader *reader, const struct machine_key *key, const char *value)
{
	struct dmamap_machine_iommu *iommu;

	if (key->form == FORM_MODEL)
		return start_iommu(reader, key, value);
	/* Without one started, it is the last of the base's. */
	reader->iommu_any = true;
	iommu = machine_iommu(&reader->machine, reader->machine.n_iommus - 1);
	switch (key->form) {
	case FORM_LEAVES:
		return read_leaves(reader, key, iommu, value);
	case FORM_RESERVE:
		return read_window(reader, key, iommu, value);
	case FORM_NO_RESERVE:
		machine_drop_windows(iommu);
		return 0;
	default:
		return read_field(reader, key, iommu, value);
	}
}

static int set_device(struct reader *reader, const struct machine_key *key, const char *value)
{
	struct dmamap_machine_device *device;
	struct noted *noted;

	if (key->form == FORM_BDF)
		return start_device(reader, key, value);
	if (!reader->devices_any || !reader->machine.n_devices)
		return refuse(reader, &machine_reason_machine_no_device, reader->item, key->name);
	device = machine_device(&reader->machine, reader->machine.n_devices - 1);
	noted = &reader->devices[reader->machine.n_devices - 1];
	noted->group |= key->offset == offsetof(struct dmamap_machine_device, group);
	noted->cdev |= key->offset == offsetof(struct dmamap_machine_device, cdev);
	if (key->form == FORM_BAR)
		return read_bar(reader, key, device, value);
	return read_field(reader, key, device, value);
}

static int set_whole(struct reader *reader, const struct machine_key *key, const char *value)
{
	switch (key->form) {
	case FORM_PRESET:
		return read_preset(reader, key, value);
	case FORM_NO_DEVICE:
		machine_drop_devices(&reader->machine);
		reader->devices_any = true;
		return 0;
	case FORM_KERNEL:
		return read_kernel(reader, key, value);
	default:
		reader->stride |= key->offset == offsetof(struct dmamap_machine, pfnmap_stride);
		return read_field(reader, key, &reader->machine, value);
	}
}

static const struct machine_key *find_key(const char *name, const char *value)
{
	bool number = value && isdigit((unsigned char)value[0]);

	for (size_t i = 0; i < MACHINE_KEYS; i++) {
		const struct machine_key *key = &machine_keys[i];

		if (strcmp(key->name, name))
			continue;
		/* The one key of two scopes: iommu=0 is a device's, iommu=intel starts one. */
		if (!strcmp(name, "iommu") && number != (key->scope == MACHINE_DEVICE))
			continue;
		return key;
	}
	return NULL;
}

/* @text is one item, its own. */
static int read_item(struct reader *reader, char *text)
{
	char *value = strchr(text, '=');
	const struct machine_key *key;
	bool bare, again;
	uint64_t bit;

	reader->value = reader->item;
	if (value) {
		char *end = value;

		*value++ = '\0';
		while (end > text && isblank((unsigned char)end[-1]))
			*--end = '\0';
		while (isblank((unsigned char)*value))
			value++;
		reader->value.column += (unsigned)(value - text);
	}
	key = find_key(text, value);
	if (!key)
		return refuse(reader, &machine_reason_machine_key, reader->item, text);
	bare = key->form == FORM_NO_DEVICE || key->form == FORM_NO_RESERVE;
	if (bare && value)
		return refuse(reader, &machine_reason_machine_value, reader->item, text);
	if (!bare && !value)
		return refuse(reader, &machine_reason_machine_bare, reader->item, text);
	again = key->form == FORM_MODEL || key->form == FORM_BDF || key->form == FORM_RESERVE;
	bit = 1ULL << (key - machine_keys);
	if (reader->seen[key->scope] & bit && !again)
		return refuse(reader, &machine_reason_machine_twice, reader->item, text);
	if (!again)
		reader->seen[key->scope] |= bit;
	switch (key->scope) {
	case MACHINE_IOMMU:
		return set_iommu(reader, key, value);
	case MACHINE_DEVICE:
		return set_device(reader, key, value);
	default:
		return set_whole(reader, key, value);
	}
}

/* To the next item: over blanks, separators, empty lines and comments. False: none is left. */
static bool next_item(struct reader *reader)
{
	for (;; reader->at++) {
		if (*reader->at == '#')
			reader->at += strcspn(reader->at, "\n");
		if (*reader->at == '\n') {
			reader->line++;
			reader->line_start = reader->at + 1;
		} else if (!strchr(" \t\r,", *reader->at)) {
			return true;
		} else if (!*reader->at) {
			return false;
		}
	}
}

static int read_items(struct reader *reader, const char *text)
{
	char copy[ITEM];

	reader->at = reader->line_start = text;
	reader->line = 1;
	while (next_item(reader)) {
		size_t length = strcspn(reader->at, ",\n#");
		size_t kept = length;
		int error;

		reader->item.line = reader->line;
		reader->item.column = (unsigned)(reader->at - reader->line_start) + 1;
		while (kept && strchr(" \t\r", reader->at[kept - 1]))
			kept--;
		if (kept >= ITEM)
			return DMAMAP_REFUSE(reader->why, &machine_reason_machine_long, EINVAL,
				NULL, reader->item.line, reader->item.column, kept, ITEM - 1);
		memcpy(copy, reader->at, kept);
		copy[kept] = '\0';
		reader->at += length;
		error = read_item(reader, copy);
		if (error)
			return error;
		reader->any = true;
	}
	return 0;
}

/* ------------------------------------------------------------------ the end */

static void settle(struct reader *reader)
{
	struct dmamap_machine *machine = &reader->machine;

	for (size_t i = 0; i < machine->n_iommus; i++) {
		struct dmamap_machine_iommu *iommu = machine_iommu(machine, i), preset;

		if (reader->iommus[i].leaves || (!reader->iommus[i].from_text &&
							machine->page_shift == reader->page_before))
			continue;
		machine_preset_iommu(iommu->model, machine->page_shift, &preset);
		iommu->leaf_sizes = preset.leaf_sizes;
	}
	if (reader->kernel && !reader->stride)
		machine->pfnmap_stride = machine_kernel_stride(machine->as_kernel);
	for (size_t i = 0; i < machine->n_devices; i++) {
		struct dmamap_machine_device *device = machine_device(machine, i);
		const struct noted *noted = &reader->devices[i];

		if (noted->from_text && !noted->group)
			device->group = machine_free_group(machine);
		if (noted->from_text && !noted->cdev)
			device->cdev = machine_free_cdev(machine);
		/* Other IOMMUs took the place of the base's. */
		if (!noted->from_text && device->iommu >= machine->n_iommus)
			device->iommu = 0;
	}
	machine_place_bars(machine);
	/* One way to say each machine: what follows from the rest is not said. */
	for (size_t i = 0; i < machine->n_devices; i++) {
		struct dmamap_machine_device *device = machine_device(machine, i);

		for (unsigned bar = 0; bar < DMAMAP_MACHINE_BARS; bar++)
			device->bar_flags[bar] = (uint8_t)machine_bar_extra(device, bar);
	}
}

/* The check of the whole, with the place of the part that is wrong. */
static int check(struct reader *reader)
{
	struct dmamap_reason wrong = {0};
	enum machine_scope scope;
	size_t index;
	const struct noted *noted;

	if (!machine_check(&reader->machine, &scope, &index, &wrong))
		return 0;
	noted = scope == MACHINE_IOMMU	  ? &reader->iommus[index]
		: scope == MACHINE_DEVICE ? &reader->devices[index]
					  : NULL;
	if (!noted || !noted->spot.line)
		return DMAMAP_REFUSE(
			reader->why, &machine_reason_machine, EINVAL, wrong.label, wrong.number[0]);
	return DMAMAP_REFUSE(reader->why, &machine_reason_machine_at, EINVAL, wrong.label,
		noted->spot.line, noted->spot.column, wrong.number[0]);
}

int dmamap_machine_parse(const struct dmamap_machine *base, const char *text,
	struct dmamap_machine *machine, struct dmamap_reason *why)
{
	struct dmamap_machine by_default;
	struct reader *reader = calloc(1, sizeof(*reader));
	int error;

	if (!reader)
		return DMAMAP_REFUSE(
			why, &machine_reason_machine_no_memory, ENOMEM, "a machine's text", 0);
	if (!base) {
		dmamap_machine_default(&by_default);
		base = &by_default;
	}
	reader->why = why;
	reader->page_before = base->page_shift;
	error = base->n_iommus > MACHINE_IOMMUS || base->n_devices > MACHINE_DEVICES ? -EINVAL : 0;
	if (error)
		DMAMAP_REFUSE(why, &machine_reason_machine, EINVAL, "number of devices or IOMMUs",
			base->n_devices);
	else
		error = dmamap_machine_copy(&reader->machine, base, why);
	if (!error)
		error = read_items(reader, text);
	if (!error) {
		settle(reader);
		error = check(reader);
	}
	if (error)
		dmamap_machine_free(&reader->machine);
	else
		*machine = reader->machine;
	free(reader);
	return error;
}

/* ------------------------------------------------------------------- files */

/* More than any machine needs. */
#define FILE_LIMIT (1u << 20)

static int refuse_file(struct dmamap_reason *why, int error, const char *path, const char *what)
{
	char text[96];

	snprintf(text, sizeof(text), "%.50s: %s", path, what);
	return DMAMAP_REFUSE(why, &machine_reason_machine_file, error, text, 0, 0);
}

int dmamap_machine_load(const struct dmamap_machine *base, const char *spec,
	struct dmamap_machine *machine, struct dmamap_reason *why)
{
	const char *path = spec + 1;
	char *text, message[64];
	FILE *file;
	size_t length;
	int error = 0;

	if (spec[0] != '@')
		return dmamap_machine_parse(base, spec, machine, why);
	file = fopen(path, "re");
	if (!file) {
		error = errno;
		return refuse_file(why, error, path, strerror_r(error, message, sizeof(message)));
	}
	text = malloc(FILE_LIMIT + 1);
	if (!text) {
		error = DMAMAP_REFUSE(why, &machine_reason_machine_no_memory, ENOMEM, path, 0);
		goto close;
	}
	errno = 0;
	length = fread(text, 1, FILE_LIMIT + 1, file);
	text[length < FILE_LIMIT ? length : FILE_LIMIT] = '\0';
	if (ferror(file)) {
		error = errno ? errno : EIO;
		error = refuse_file(why, error, path, strerror_r(error, message, sizeof(message)));
	} else if (length > FILE_LIMIT || strlen(text) < length) {
		error = refuse_file(why, EINVAL, path, "this is no text of a machine");
	} else {
		error = dmamap_machine_parse(base, text, machine, why);
	}
	free(text);
close:
	fclose(file);
	return error;
}
