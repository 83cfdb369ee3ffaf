/* SPDX-License-Identifier: MIT */
/* A machine as text: every key of the table with its value, so that nothing is left to defaults. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "machine/machine.h"

struct out {
	char *buffer;
	size_t size, length;
	char separator;
	const char *indent; /* of an item, in a file */
};

static void put(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct out *out, const char *format, ...)
{
	size_t left = out->length < out->size ? out->size - out->length : 0;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(left ? out->buffer + out->length : NULL, left, format, arguments);
	va_end(arguments);
	out->length += (size_t)(n < 0 ? 0 : n);
}

static void item(struct out *out, const char *name)
{
	if (out->separator == ',')
		put(out, "%s%s", out->length ? "," : "", name);
	else
		put(out, "%s%s%s", out->length ? "\n" : "", out->indent, name);
}

static void put_leaves(struct out *out, uint64_t sizes)
{
	char first[24], last[24];
	const char *between = "=";

	for (unsigned shift = 0; shift < 64; shift++) {
		unsigned end = shift;

		if (!(sizes >> shift & 1))
			continue;
		while (end < 63 && sizes >> (end + 1) & 1)
			end++;
		machine_write_size(1ULL << shift, first);
		machine_write_size(1ULL << end, last);
		/* A run of two is two sizes. */
		if (end > shift + 1) {
			put(out, "%s%s-%s", between, first, last);
			shift = end;
		} else {
			put(out, "%s%s", between, first);
		}
		between = "/";
	}
}

/* What would end an item cannot be part of it, nor a blank at its end. */
static void put_label(struct out *out, const char *label)
{
	for (const char *p = label && *label ? label : "reserved"; *p; p++) {
		bool ends = strchr(",#", *p) || (unsigned char)*p < ' ' || *p == 0x7f ||
			    (*p == ' ' && !p[1]);

		put(out, "%c", ends ? '.' : *p);
	}
}

static void put_windows(struct out *out, const struct dmamap_machine_iommu *iommu)
{
	for (size_t i = 0; i < iommu->n_windows; i++) {
		const struct dmamap_machine_window *window = &iommu->windows[i];

		item(out, "reserve");
		put(out, "=0x%" PRIx64 "-0x%" PRIx64 ":", window->first, window->last);
		put_label(out, window->label);
	}
}

static void put_bar(
	struct out *out, const struct machine_key *key, const struct dmamap_machine_device *device)
{
	uint64_t size = device->bar_size[key->min];
	char text[24];

	machine_write_size(size, text);
	item(out, key->name);
	put(out, "=%s", text);
	if (!size)
		return;
	put(out, "@0x%" PRIx64, device->bar_address[key->min]);
	for (const struct machine_choice *flag = machine_bar_flags; flag->name; flag++)
		if (machine_bar_extra(device, (unsigned)key->min) & flag->value)
			put(out, ":%s", flag->name);
}

static const char *choice_name(const struct machine_key *key, uint64_t value)
{
	for (const struct machine_choice *choice = key->choices; choice->name; choice++)
		if (choice->value == value)
			return choice->name;
	return "unknown";
}

/* A value as a field has it. */
static void put_field(struct out *out, const struct machine_key *key, uint64_t value)
{
	char size[24];

	item(out, key->name);
	switch (key->form) {
	case FORM_SIZE:
		machine_write_size(value, size);
		put(out, "=%s", size);
		break;
	case FORM_NUMBER:
		put(out, "=%" PRIu64, value);
		break;
	case FORM_HEX:
		put(out, "=0x%0*" PRIx64, (int)key->min, value);
		break;
	case FORM_ON:
	case FORM_OFF:
		put(out, "=%s", (value != 0) == (key->form == FORM_ON) ? "on" : "off");
		break;
	case FORM_KERNEL:
		put(out, "=%" PRIu64 ".%" PRIu64, value >> 8, value & 0xff);
		break;
	case FORM_LEAVES:
		put_leaves(out, value);
		break;
	default:
		put(out, "=%s", choice_name(key, value));
	}
}

static void put_scope(struct out *out, enum machine_scope scope, const void *object)
{
	for (size_t i = 0; i < MACHINE_KEYS; i++) {
		const struct machine_key *key = &machine_keys[i];

		if (key->scope != scope)
			continue;
		switch (key->form) {
		case FORM_PRESET:
		case FORM_NO_DEVICE:
		case FORM_MODEL:
		case FORM_BDF:
			/* What they start is started already. */
			break;
		case FORM_NO_RESERVE:
			item(out, key->name);
			break;
		case FORM_RESERVE:
			put_windows(out, object);
			break;
		case FORM_BAR:
			put_bar(out, key, object);
			break;
		default:
			put_field(out, key, machine_field(key, object));
		}
	}
}

size_t dmamap_machine_print(
	const struct dmamap_machine *machine, char separator, char *buffer, size_t size)
{
	struct out out = {.buffer = buffer, .size = size, .separator = separator, .indent = ""};

	if (size)
		buffer[0] = '\0';
	put_scope(&out, MACHINE_WHOLE, machine);
	for (size_t i = 0; i < machine->n_iommus; i++) {
		out.indent = "";
		item(&out, "iommu");
		put(&out, "=%s", dmamap_machine_model_name(machine->iommus[i].model));
		out.indent = "\t";
		put_scope(&out, MACHINE_IOMMU, &machine->iommus[i]);
	}
	out.indent = "";
	if (!machine->n_devices)
		item(&out, "no-device");
	for (size_t i = 0; i < machine->n_devices; i++) {
		out.indent = "";
		item(&out, "device");
		put(&out, "=%.15s", machine->devices[i].bdf);
		out.indent = "\t";
		put_scope(&out, MACHINE_DEVICE, &machine->devices[i]);
	}
	if (separator != ',')
		put(&out, "\n");
	return out.length;
}
