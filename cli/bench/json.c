/* SPDX-License-Identifier: MIT */
/*
 * JSON: the whole report as data, every sample included. The schema is in
 * docs/bench-json.md; its version grows when a field changes its meaning or
 * goes, not when one is added.
 */
#include "json.h"

#include "json_head.h"
#include "cli/fields.h"
#include "print.h"
#include "work.h"

/* Which counts probes gave, and why not the others. */
static struct json_object *probes_object(const struct system_info *system)
{
	struct json_object *object = json_object_new_object();
	struct json_object *counted = json_object_new_array();
	struct json_object *left_out = json_object_new_object();

	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		const char *name = kernel_event_names[i];

		if (system->uncounted[i][0])
			add_text(left_out, name, system->uncounted[i]);
		else
			json_object_array_add(counted, json_object_new_string(name));
	}
	add_field(object, "counted", counted);
	add_field(object, "left_out", left_out);
	return object;
}

static struct json_object *system_object(const struct system_info *system)
{
	struct json_object *object = json_object_new_object();
	struct json_object *leaves = json_object_new_array();

	add_text(object, "name", system->name);
	add_text(object, "note", print_note(system));
	add_text(object, "device", system->device[0] ? system->device : NULL);
	add_text(object, "absent", system->absent[0] ? system->absent : NULL);
	add_number(object, "page_size", system->page_size);
	for (unsigned shift = 0; shift < 64; shift++)
		if (system->leaf_sizes >> shift & 1)
			json_object_array_add(leaves, json_object_new_uint64((uint64_t)1 << shift));
	add_field(object, "leaf_sizes", leaves);
	add_field(object, "probes", system->probed ? probes_object(system) : NULL);
	return object;
}

static struct json_object *phase_object(const struct result *result, enum phase phase)
{
	struct json_object *object = json_object_new_object();
	struct json_object *samples = json_object_new_array();
	struct stats stats = result_stats(result, phase);

	for (size_t i = 0; i < result->n; i++)
		json_object_array_add(
			samples, json_object_new_uint64(result->samples[i].ns[phase]));
	add_field(object, "samples_ns", samples);
	add_number(object, "median_ns", stats.median);
	add_number(object, "min_ns", stats.min);
	add_number(object, "p90_ns", stats.p90);
	add_number(object, "max_ns", stats.max);
	add_real(object, "noise", stats_noise(&stats));
	add_real(object, "ns_per_page", result_page_ns(result, stats.median));
	add_real(object, "gib_per_s", result_gib_s(result, stats.median));
	return object;
}

/* {"4096": 16, "1073741824": 32}: only sizes of which there are any. */
static struct json_object *leaves_object(const uint64_t leaves[64])
{
	struct json_object *object = json_object_new_object();

	for (unsigned shift = 0; shift < 64; shift++) {
		char key[24];

		snprintf(key, sizeof(key), "%" PRIu64, (uint64_t)1 << shift);
		if (leaves[shift])
			add_number(object, key, leaves[shift]);
	}
	return object;
}

static struct json_object *work_object(const struct work *work)
{
	struct json_object *object = json_object_new_object();

	add_number(object, "lookups", work->lookups);
	add_field(object, "leaves", leaves_object(work->leaves));
	add_field(object, "leaves_cleared", leaves_object(work->cleared));
	add_number(object, "tables", work->tables);
	add_number(object, "table_bytes", work->table_bytes);
	return object;
}

static struct json_object *events_object(
	const struct result *result, const uint64_t counts[KERNEL_EVENTS])
{
	struct json_object *object = json_object_new_object();

	for (unsigned i = 0; i < KERNEL_EVENTS; i++)
		if (work_known(result, i))
			add_number(object, kernel_event_names[i], counts[i]);
	return object;
}

static struct json_object *kernel_object(const struct result *result)
{
	struct json_object *object = json_object_new_object();
	uint64_t steps;

	add_field(object, "lookups",
		work_lookups(result, &steps) ? json_object_new_uint64(steps) : NULL);
	add_field(object, "map", events_object(result, result->kernel.map));
	add_field(object, "unmap", events_object(result, result->kernel.unmap));
	return object;
}

static struct json_object *explanation_array(const struct result *result)
{
	struct json_object *array = json_object_new_array();
	char text[256];

	for (unsigned i = 0; result_explain(result, i, text, sizeof(text)); i++)
		json_object_array_add(array, json_object_new_string(text));
	return array;
}

static void add_measured(struct json_object *object, const struct result *result)
{
	struct json_object *phases = json_object_new_object();
	struct json_object *vas = json_object_new_array();
	struct json_object *iovas = json_object_new_array();

	for (size_t i = 0; i < result->n; i++) {
		json_object_array_add(vas, new_address(result->samples[i].va));
		json_object_array_add(iovas, new_address(result->samples[i].iova));
	}
	for (unsigned phase = 0; phase < PHASES; phase++)
		add_field(phases, phase_names[phase],
			result_times(result, phase) ? phase_object(result, phase) : NULL);
	add_field(object, "va", vas);
	add_field(object, "iova", iovas);
	add_field(object, "phases", phases);
	add_field(object, "counters", result->counted ? work_object(&result->work) : NULL);
	add_field(object, "kernel_counters", result->probed ? kernel_object(result) : NULL);
	add_text(object, "not_counted", result->unprobed[0] ? result->unprobed : NULL);
	add_field(object, "thp_bytes",
		result->huge_bytes == UINT64_MAX ? NULL
						 : json_object_new_uint64(result->huge_bytes));
	add_field(object, "explanation", explanation_array(result));
}

static struct json_object *result_object(const struct result *result)
{
	struct json_object *object = json_object_new_object();
	const struct variant *variant = result->variant;
	char error[24];

	add_text(object, "system", result->system->name);
	add_text(object, "note", print_note(result->system));
	add_text(object, "name", variant->name);
	add_text(object, "mode", variant->mode->name);
	add_text(object, "memory", variant->memory->name);
	add_text(object, "prefault", prefault_name(variant->prefault));
	add_text(
		object, "pfnmap_stride", result->stride >= 0 ? stride_names[result->stride] : NULL);
	add_field(object, "declared", json_object_new_boolean(result->declared));
	add_text(object, "status", status_names[result->status]);
	add_text(object, "error", result->error ? result_error_name(result->error, error) : NULL);
	add_text(object, "reason", result->reason[0] ? result->reason : NULL);
	add_text(object, "hint", result->hint[0] ? result->hint : NULL);
	add_number(object, "size", result->size);
	add_field(object, "page_size",
		result->page_size ? json_object_new_uint64(result->page_size) : NULL);
	add_number(object, "alignment", result->alignment);
	if (result->n)
		add_measured(object, result);
	return object;
}

static struct json_object *report_object(const struct report *report)
{
	const struct json_head head = {
		.schema = JSON_SCHEMA,
		.version = JSON_VERSION,
		.started = report->started,
		.seconds = report->seconds,
		.signal = report->signal,
		.host = &report->host,
	};
	struct json_object *object = json_begin(&head);
	struct json_object *options = json_object_new_object();
	struct json_object *systems = json_object_new_array();
	struct json_object *results = json_object_new_array();

	add_number(options, "seed", report->seed);
	add_number(options, "runs", report->runs);
	add_field(options, "size", report->size ? json_object_new_uint64(report->size) : NULL);
	add_field(options, "sparse", json_object_new_boolean(report->sparse));
	add_field(object, "options", options);
	for (size_t i = 0; i < report->n_systems; i++)
		json_object_array_add(systems, system_object(&report->systems[i]));
	add_field(object, "systems", systems);
	for (size_t i = 0; i < report->n_results; i++)
		json_object_array_add(results, result_object(&report->results[i]));
	add_field(object, "results", results);
	return object;
}

int print_json(FILE *out, const struct report *report)
{
	return fields_print(out, report_object(report));
}
