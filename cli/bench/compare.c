/* SPDX-License-Identifier: MIT */
/*
 * This run against an earlier one. Results are paired by system, name, stride
 * and whether they were declared, and only where they mapped the same size.
 * Each phase is compared by all of its samples (stats_compare()).
 */
#include "compare.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* struct base - The file as parsed, and what of it was checked: it holds an array of results. */
struct base {
	const char *path;
	struct json_object *root;
	struct json_object *results;
};

static const char *text_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
		!json_object_is_type(value, json_type_string))
		return "";
	return json_object_get_string(value);
}

static bool is_object(struct json_object *object, const char *key, enum json_type type,
	struct json_object **value)
{
	return json_object_object_get_ex(object, key, value) && json_object_is_type(*value, type);
}

static int check(struct base *base, struct complaint *complaint)
{
	struct json_object *schema;
	struct json_object *version;

	if (!json_object_is_type(base->root, json_type_object) ||
		!is_object(base->root, "schema", json_type_object, &schema) ||
		strcmp(text_of(schema, "name"), JSON_SCHEMA) ||
		!is_object(schema, "version", json_type_int, &version) ||
		!is_object(base->root, "results", json_type_array, &base->results))
		return complain(complaint,
			"--compare %s: not written by dmamap bench --json; give a file that is",
			base->path);
	if (json_object_get_int(version) != JSON_VERSION)
		return complain(complaint,
			"--compare %s: schema version %d, and this dmamap reads %d; write it again",
			base->path, json_object_get_int(version), JSON_VERSION);
	for (size_t i = 0; i < json_object_array_length(base->results); i++)
		if (!json_object_is_type(
			    json_object_array_get_idx(base->results, i), json_type_object))
			return complain(complaint,
				"--compare %s: result %zu is no object; write the file again",
				base->path, i);
	return 0;
}

/* Read all of a stream; NULL with errno. */
static char *read_all(FILE *file, size_t *length)
{
	char *text = NULL;
	size_t room = 0;

	*length = 0;
	for (;;) {
		if (*length + 1 >= room) {
			char *larger = realloc(text, room = room ? 2 * room : 65536);

			if (!larger)
				break;
			text = larger;
		}
		*length += fread(text + *length, 1, room - *length - 1, file);
		if (ferror(file))
			break;
		if (feof(file)) {
			text[*length] = '\0';
			return text;
		}
	}
	free(text);
	return NULL;
}

int base_read(const char *path, struct base **out, struct complaint *complaint)
{
	struct base *base = calloc(1, sizeof(*base));
	enum json_tokener_error error = json_tokener_success;
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t length;

	if (!base) {
		complain(complaint, "out of memory");
		goto fail;
	}
	base->path = path;
	if (file)
		text = read_all(file, &length);
	if (!text) {
		complain(complaint,
			"--compare %s: cannot be read (%s); give a file that dmamap bench --json "
			"wrote",
			path, strerror(errno));
		goto fail;
	}
	base->root = json_tokener_parse_verbose(text, &error);
	if (!base->root || error != json_tokener_success) {
		complain(complaint,
			"--compare %s: no valid JSON (%s); give a file that dmamap bench --json "
			"wrote",
			path, json_tokener_error_desc(error));
		goto fail;
	}
	if (check(base, complaint))
		goto fail;
	free(text);
	fclose(file);
	*out = base;
	return 0;
fail:
	free(text);
	if (file)
		fclose(file);
	base_free(base);
	return -1;
}

void base_free(struct base *base)
{
	if (!base)
		return;
	json_object_put(base->root);
	free(base);
}

/* The base's result for the same thing, or NULL. */
static struct json_object *find(const struct base *base, const struct result *result)
{
	const char *stride = result->stride >= 0 ? stride_names[result->stride] : "";

	for (size_t i = 0; i < json_object_array_length(base->results); i++) {
		struct json_object *object = json_object_array_get_idx(base->results, i);
		struct json_object *declared = NULL;

		json_object_object_get_ex(object, "declared", &declared);
		if (!strcmp(text_of(object, "system"), result->system->name) &&
			!strcmp(text_of(object, "name"), result->variant->name) &&
			!strcmp(text_of(object, "pfnmap_stride"), stride) &&
			(bool)json_object_get_boolean(declared) == result->declared)
			return object;
	}
	return NULL;
}

static struct stats base_stats(struct json_object *object, enum phase phase)
{
	struct json_object *phases;
	struct json_object *one;
	struct json_object *samples;
	struct stats stats = {0};
	uint64_t *ns;
	size_t n;

	if (!is_object(object, "phases", json_type_object, &phases) ||
		!is_object(phases, phase_names[phase], json_type_object, &one) ||
		!is_object(one, "samples_ns", json_type_array, &samples))
		return stats;
	n = json_object_array_length(samples);
	ns = calloc(n + 1, sizeof(*ns));
	if (!ns)
		return stats;
	for (size_t i = 0; i < n; i++)
		ns[i] = json_object_get_uint64(json_object_array_get_idx(samples, i));
	stats = stats_of(ns, n);
	free(ns);
	return stats;
}

/* Prints one ratio with its mark; true where it is too slow. */
static bool print_phase(FILE *out, const struct stats *base, const struct stats *now,
	double threshold, const struct style *style)
{
	static const char marks[] = {[STATS_SAME] = ' ',
		[STATS_FASTER] = '-',
		[STATS_SLOWER] = '+',
		[STATS_UNKNOWN] = '?'};
	enum stats_change change;
	enum ink ink = INK_PLAIN;
	bool slow;
	double ratio;

	if (!base->n || !now->n) {
		fprintf(out, " %11s", "-  ");
		return false;
	}
	/* The clock's resolution: less than a nanosecond cannot be told from one. */
	ratio = (double)(now->median ? now->median : 1) / (double)(base->median ? base->median : 1);
	change = stats_compare(base, now);
	slow = change == STATS_SLOWER && ratio > 1 + threshold / 100;
	if (slow)
		ink = INK_BAD;
	else if (change == STATS_FASTER)
		ink = INK_GOOD;
	fprintf(out, " %s%9.3f %c%s", ink_on(style, ink), ratio, slow ? '!' : marks[change],
		ink_off(style, ink));
	return slow;
}

static void print_head(FILE *out, const struct base *base, const struct report *report,
	double threshold, const struct style *style)
{
	struct json_object *host;

	fprintf(out, "\n%scompared with %s%s", ink_on(style, INK_HEAD), base->path,
		ink_off(style, INK_HEAD));
	if (is_object(base->root, "host", json_type_object, &host)) {
		bool other = strcmp(text_of(host, "kernel"), report->host.kernel) ||
			     strcmp(text_of(host, "cpu"), report->host.cpu);

		fprintf(out, " (%s, %s%s%s)", text_of(base->root, "started"),
			text_of(host, "kernel"), other ? ", another kernel or processor: " : "",
			other ? text_of(host, "cpu") : "");
	}
	fprintf(out,
		"\nratios of medians, now to then: + slower, - faster, both beyond the noise; "
		"! slower by more than %g %%;\n? fewer than %d runs. Beyond the noise: the bands "
		"from min to p90 do not meet.\n",
		threshold, STATS_ENOUGH);
	for (size_t i = 0; i < report->n_systems; i++)
		if (!report->systems[i].absent[0])
			fprintf(out, "%s: times are %s\n", report->systems[i].name,
				print_note(&report->systems[i]));
	fprintf(out, "%s%-58s", ink_on(style, INK_HEAD), "");
	for (unsigned phase = 0; phase < PHASES; phase++)
		fprintf(out, " %9s  ", phase_names[phase]);
	fprintf(out, "%s\n", ink_off(style, INK_HEAD));
}

/* Results of the base that this run should have had and has not measured. */
static size_t count_missing(const struct base *base, const struct report *report)
{
	size_t missing = 0;

	for (size_t i = 0; i < report->n_results; i++) {
		struct json_object *object = find(base, &report->results[i]);

		missing += object && !strcmp(text_of(object, "status"), "run") &&
			   report->results[i].status != STATUS_RUN;
	}
	return missing;
}

size_t compare_print(FILE *out, const struct base *base, const struct report *report,
	double threshold, const struct style *style)
{
	size_t slow = 0;
	size_t paired = 0;
	size_t missing = count_missing(base, report);

	print_head(out, base, report, threshold, style);
	for (size_t i = 0; i < report->n_results; i++) {
		const struct result *result = &report->results[i];
		struct json_object *object = find(base, result);
		struct json_object *size;
		char name[RESULT_NAME];
		char line[160];

		if (result->status != STATUS_RUN || !object ||
			strcmp(text_of(object, "status"), "run"))
			continue;
		snprintf(line, sizeof(line), "%s %s%s", result->system->name,
			result_name(result, name), result->declared ? " declared" : "");
		if (!json_object_object_get_ex(object, "size", &size) ||
			json_object_get_uint64(size) != result->size) {
			fprintf(out, "%-58s not compared: another size was mapped then\n", line);
			continue;
		}
		paired++;
		fprintf(out, "%-58s", line);
		for (unsigned phase = 0; phase < PHASES; phase++) {
			struct stats then = base_stats(object, phase);
			struct stats now = result_stats(result, phase);

			slow += print_phase(out, &then, &now, threshold, style);
		}
		fputc('\n', out);
	}
	fprintf(out, "%zu compared, %s%zu phase%s slower by more than %g %% and beyond the noise%s",
		paired, ink_on(style, slow ? INK_BAD : INK_PLAIN), slow, slow == 1 ? "" : "s",
		threshold, ink_off(style, slow ? INK_BAD : INK_PLAIN));
	if (missing)
		fprintf(out, ", %zu measured then and not now", missing);
	fputc('\n', out);
	return slow;
}
