/* SPDX-License-Identifier: MIT */
/*
 * JSON: the whole report as data, every run included. The schema is in
 * docs/bench-vduse-json.md; its version grows when a field changes its meaning
 * or goes, not when one is added.
 */
#include "cli/bench/json_head.h"
#include "cli/fields.h"
#include "print.h"

#define SCHEMA	"dmamap-bench-vduse"
#define VERSION 1

static struct json_object *words_array(char *const words[])
{
	struct json_object *array = words ? json_object_new_array() : NULL;

	for (; array && *words; words++)
		json_object_array_add(array, json_object_new_string(*words));
	return array;
}

static struct json_object *options_object(const struct vduse_options *options)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "op", options->reads ? "read" : "write");
	add_number(object, "size", options->size);
	add_number(object, "bounce_size", options->bounce);
	add_number(object, "delay_ns", options->delay_ns);
	add_field(object, "queues",
		options->n_commands ? NULL : json_object_new_uint64(options->queues));
	add_text(object, "file", options->file);
	add_text(object, "name", options->name);
	add_number(object, "runs", options->runs);
	add_field(object, "seconds",
		options->requests ? NULL : json_object_new_uint64(options->seconds));
	add_field(object, "requests",
		options->requests ? json_object_new_uint64(options->requests) : NULL);
	add_bool(object, "verify", options->verify);
	return object;
}

static struct json_object *disk_object(const struct vduse_disk *disk)
{
	struct json_object *object = json_object_new_object();

	add_field(object, "command", words_array(disk->command));
	add_number(object, "image_bytes", disk->bytes);
	add_number(object, "queues", disk->queues);
	add_number(object, "queue_size", disk->queue_size);
	return object;
}

static struct json_object *run_object(const struct vduse_run *run)
{
	struct json_object *object = json_object_new_object();
	struct json_object *latency = json_object_new_object();
	struct json_object *counts = json_object_new_object();
	const struct dmamap_blk_result *result = &run->result;

	add_number(object, "requests", result->requests);
	add_number(object, "bytes", result->bytes);
	add_number(object, "ns", result->nanoseconds);
	add_real(object, "iops", (double)run->ops_milli / 1000);
	add_number(latency, "p50_ns", result->latency.p50);
	add_number(latency, "p90_ns", result->latency.p90);
	add_number(latency, "p99_ns", result->latency.p99);
	add_number(latency, "p999_ns", result->latency.p999);
	add_number(latency, "max_ns", result->latency.most);
	add_field(object, "latency", latency);
	add_number(object, "failed", result->failed);
	add_number(object, "verified", result->verified);
	add_number(object, "mismatches", result->mismatches);
	add_field(object, "cpu_ns", run->cpu_requests ? json_object_new_uint64(run->cpu_ns) : NULL);
	add_field(object, "cpu_requests",
		run->cpu_requests ? json_object_new_uint64(run->cpu_requests) : NULL);
	add_number(counts, "units_most", run->most_units);
	add_number(counts, "fast", run->bounce.fast);
	add_number(counts, "slow", run->bounce.slow);
	add_number(counts, "flushes", run->bounce.flushes);
	add_number(counts, "full", run->bounce.full);
	add_number(counts, "pages", run->bounce.pages);
	add_number(counts, "to_device", run->bounce.to_device);
	add_number(counts, "from_device", run->bounce.from_device);
	add_number(counts, "completed", run->driver.completed);
	add_number(counts, "requeued", run->driver.requeued);
	add_number(counts, "ring_full", run->driver.ring_full);
	add_number(counts, "kicks", run->driver.kicks);
	add_number(counts, "interrupts", run->driver.interrupts);
	add_field(object, "counters", counts);
	return object;
}

static struct json_object *row_object(
	const struct vduse_report *report, const struct vduse_row *row)
{
	struct json_object *object = json_object_new_object();
	struct json_object *runs = json_object_new_array();

	add_number(object, "disk", (uint64_t)(row->disk - report->disks));
	add_number(object, "page_size", 1ull << row->page_shift);
	add_text(object, "granule", vduse_row_granule(row));
	add_number(object, "unit_size", 1ull << row->unit_shift);
	add_number(object, "jobs", row->shape.jobs);
	add_number(object, "depth", row->shape.depth);
	add_field(object, "units", row->units ? json_object_new_uint64(row->units) : NULL);
	add_field(object, "units_per_request",
		row->units ? json_object_new_uint64(row->request_units) : NULL);
	add_field(object, "units_needed",
		row->units ? json_object_new_uint64(vduse_row_needed(row)) : NULL);
	add_field(object, "middle", row->n ? json_object_new_uint64((row->n - 1) / 2) : NULL);
	for (unsigned i = 0; i < row->n; i++)
		json_object_array_add(runs, run_object(&row->runs[i]));
	add_field(object, "runs", runs);
	return object;
}

/* 0: there is none. */
static void add_ratio(struct json_object *object, const char *key, double ratio)
{
	if (ratio > 0)
		add_real(object, key, ratio);
	else
		add_field(object, key, NULL);
}

static struct json_object *pair_object(const struct vduse_report *report,
	const struct vduse_row *first, const struct vduse_row *second)
{
	static const char *const changes[] = {
		[STATS_SAME] = "same",
		[STATS_FASTER] = "faster",
		[STATS_SLOWER] = "slower",
		[STATS_UNKNOWN] = NULL,
	};
	struct json_object *object = json_object_new_object();
	const struct vduse_published *there = vduse_published(report, first);
	char sentence[VDUSE_SENTENCE];

	add_number(object, "page_size", 1ull << first->page_shift);
	add_number(object, "jobs", first->shape.jobs);
	add_number(object, "depth", first->shape.depth);
	add_real(object, "gain_percent", vduse_gain(first, second));
	add_text(object, "change", changes[vduse_change(first, second)]);
	add_ratio(object, "iops_ratio", vduse_ratio(first, second));
	add_ratio(object, "cpu_ratio", vduse_cpu_ratio(first, second));
	add_text(object, "cpu_change", changes[vduse_cpu_change(first, second)]);
	add_field(object, "linux", NULL);
	if (there) {
		struct json_object *linux_object = json_object_new_object();

		add_number(linux_object, "native_iops", there->native);
		add_number(linux_object, "fixed_iops", there->fixed);
		add_real(linux_object, "native_mib_per_s", there->mib_native);
		add_real(linux_object, "fixed_mib_per_s", there->mib_fixed);
		add_real(linux_object, "gain_percent", there->gain);
		add_field(object, "linux", linux_object);
	}
	vduse_explain(first, second, sentence);
	add_text(object, "explanation", sentence);
	return object;
}

static struct json_object *report_object(const struct vduse_report *report)
{
	const struct json_head head = {
		.schema = SCHEMA,
		.version = VERSION,
		.started = report->started,
		.seconds = report->seconds,
		.signal = report->signal,
		.host = &report->host,
	};
	struct json_object *object = json_begin(&head);
	struct json_object *rows = json_object_new_array();
	struct json_object *pairs = json_object_new_array();
	struct json_object *disks = json_object_new_array();

	add_text(object, "note", vduse_note(report));
	add_field(object, "options", options_object(report->options));
	for (unsigned i = 0; i < report->n_disks; i++)
		json_object_array_add(disks, disk_object(&report->disks[i]));
	add_field(object, "disks", disks);
	add_bool(object, "direct", report->direct);
	for (unsigned i = 0; i < report->n_rows; i++)
		json_object_array_add(rows, row_object(report, &report->rows[i]));
	add_field(object, "rows", rows);
	for (unsigned i = 0; i + 1 < report->n_rows; i += 2)
		if (report->rows[i].n && report->rows[i + 1].n)
			json_object_array_add(
				pairs, pair_object(report, &report->rows[i], &report->rows[i + 1]));
	add_field(object, "pairs", pairs);
	return object;
}

int vduse_print_json(FILE *out, const struct vduse_report *report)
{
	return fields_print(out, report_object(report));
}
