/* SPDX-License-Identifier: MIT */
/* The plan: which rows a bench has, on which systems, and which are skipped. */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hugepages.h"
#include "memory.h"
#include "cli/units.h"

int plan_variants(struct plan *plan, const struct options *options, struct complaint *complaint)
{
	const char *missed;
	size_t all = variants_list(plan->variants);

	plan->n_variants =
		variants_pick(plan->variants, all, options->globs, options->n_globs, &missed);
	if (missed)
		return complain(complaint,
			"-t %s: no variant has such a name; dmamap bench --list prints all %zu",
			missed, all);
	return 0;
}

void plan_skip(struct result *result, const char *hint, const char *reason, ...)
{
	va_list arguments;

	result->status = STATUS_SKIPPED;
	va_start(arguments, reason);
	vsnprintf(result->reason, sizeof(result->reason), reason, arguments);
	va_end(arguments);
	snprintf(result->hint, sizeof(result->hint), "%s", hint ? hint : "");
}

static bool is_soft(const struct result *result)
{
	return !strcmp(result->system->name, "soft");
}

void plan_unbacked(struct result *result, const struct options *options, const char *reason,
	const char *command)
{
	char hint[sizeof(result->hint)];

	if (options->sparse && is_soft(result)) {
		result->declared = true;
		return;
	}
	if (!is_soft(result))
		snprintf(hint, sizeof(hint), "%s", command ? command : "--size with less");
	else if (command)
		snprintf(hint, sizeof(hint), "%s; or --sparse", command);
	else
		snprintf(hint, sizeof(hint), "--sparse");
	plan_skip(result, hint, "%s", reason);
}

/* ---------------------------------------------------------------- systems */

/* The BAR that was asked for, or the largest. */
static void probe_bar(struct plan_system *system, struct dmamap_client *client, int bar)
{
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		uint64_t size;

		if ((bar >= 0 && (unsigned)bar != i) || dmamap_client_bar_size(client, i, &size))
			continue;
		if (size > system->bar_size) {
			system->bar = i;
			system->bar_size = size;
		}
	}
}

unsigned plan_probe(struct plan_system *system, struct dmamap_system *handle, const char *bdf,
	int bar, const struct variant *variants, size_t n)
{
	bool needed[DMAMAP_MODES] = {false};
	unsigned opened = 0;

	for (size_t i = 0; i < n; i++)
		needed[variants[i].mode - dmamap_modes] = true;
	for (size_t mode = 0; mode < DMAMAP_MODES; mode++) {
		struct dmamap_reason why = {0};
		struct dmamap_client *client;
		int error;

		if (!needed[mode])
			continue;
		error = dmamap_client_open(handle, &dmamap_modes[mode], bdf, &client, &why);
		if (error) {
			why.error = -error;
			dmamap_reason_format(&why, system->why[mode], sizeof(system->why[mode]));
			continue;
		}
		system->opens[mode] = true;
		opened++;
		if (!system->bar_size)
			probe_bar(system, client, bar);
		dmamap_client_close(client);
	}
	return opened;
}

static const char *first_why(const struct plan_system *system)
{
	for (size_t mode = 0; mode < DMAMAP_MODES; mode++)
		if (system->why[mode][0])
			return system->why[mode];
	return "no mode can be opened";
}

static bool any_bar(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_variants; i++)
		if (plan->variants[i].memory->source == MEMORY_BAR)
			return true;
	return false;
}

/* What bench's soft system is about: this process's pages, and what --machine says. */
static int soft_machine(
	const struct options *options, struct dmamap_machine *machine, struct complaint *complaint)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct dmamap_reason why = {0};
	struct dmamap_machine base;
	char text[640], size[UNITS_TEXT];
	int error;

	/* No page is pinned, so a limit on pinning would only be in the way. */
	snprintf(text, sizeof(text), "page=%s,memlock=unlimited", units_short(size, page));
	error = dmamap_machine_parse(NULL, text, &base, &why);
	if (!error) {
		error = dmamap_machine_load(
			&base, options->machine ? options->machine : "", machine, &why);
		dmamap_machine_free(&base);
	}
	if (error) {
		why.error = -error;
		dmamap_reason_format(&why, text, sizeof(text));
		return complain(complaint, "--machine%s%s: %s",
			options->machine && options->machine[0] == '@' ? " " : "",
			options->machine && options->machine[0] == '@' ? options->machine : "",
			text);
	}
	if (page == (uint64_t)1 << machine->page_shift)
		return 0;
	dmamap_machine_free(machine);
	return complain(complaint,
		"--machine: bench maps this process's memory, in its pages of %s; leave page out",
		units_short(size, page));
}

static int open_soft(struct plan *plan, struct plan_system *system, const struct options *options,
	struct system_info *info, struct complaint *complaint)
{
	unsigned strides = options->strides;
	struct dmamap_machine machine;
	int error = soft_machine(options, &machine, complaint);

	if (error)
		return error;
	/* Only BARs have strides: one system serves all else. */
	if (!any_bar(plan))
		strides &= -strides;
	for (unsigned stride = 0; stride < STRIDES && !error; stride++) {
		struct dmamap_reason why = {0};
		char text[256];

		if (!(strides >> stride & 1))
			continue;
		machine.pfnmap_stride = stride;
		error = dmamap_system_soft(&machine, &system->handles[stride], &why);
		if (error) {
			why.error = -error;
			dmamap_reason_format(&why, text, sizeof(text));
			complain(complaint,
				"the soft system cannot start: %s; --system linux does without it",
				text);
		}
	}
	info->page_size = (uint64_t)1 << machine.page_shift;
	info->leaf_sizes = machine.iommus[0].leaf_sizes;
	dmamap_machine_free(&machine);
	if (error)
		return -1;
	info->name = "soft";
	info->note = system->handles[system->handles[0] ? 0 : 1]->ops->note;
	info->stride = -1;
	return 0;
}

int plan_memlock(const struct variant *variants, size_t n, const struct options *options,
	const struct host *host, struct complaint *complaint)
{
	uint64_t most = 0;
	char a[UNITS_TEXT];
	char b[UNITS_TEXT];

	for (size_t i = 0; i < n; i++) {
		uint64_t size = options->size ? options->size : variants[i].memory->size;

		if (variants[i].memory->source != MEMORY_BAR && !variant_impossible(&variants[i]) &&
			size > most)
			most = size;
	}
	if (most <= host->memlock)
		return 0;
	return complain(complaint,
		"the limit on locked memory is %s, and mapping %s on linux needs as much: "
		"ulimit -l unlimited, or run as root",
		units_size(a, host->memlock), units_size(b, most));
}

int plan_kernel_stride(const char *kernel)
{
	unsigned major = 0;
	unsigned minor = 0;

	if (sscanf(kernel, "%*s %u.%u", &major, &minor) != 2)
		return -1;
	return major > 6 || (major == 6 && minor >= 15) ? DMAMAP_PFNMAP_LEAF : DMAMAP_PFNMAP_PAGE;
}

/* Linux: 0 and info->absent where it was only looked for; -1 where it was asked for. */
static int open_linux(struct plan *plan, struct plan_system *system, const struct options *options,
	const struct host *host, struct system_info *info, struct complaint *complaint)
{
	bool asked = options->systems != SYSTEMS_FOUND || options->device;
	struct dmamap_system *handle;

	if (dmamap_system_linux(&system->handles[0]))
		return complain(complaint, "out of memory");
	handle = system->handles[0];
	info->name = "linux";
	info->note = handle->ops->note;
	info->page_size = host->page_size;
	info->stride = plan_kernel_stride(host->kernel);
	if (options->device)
		snprintf(info->device, sizeof(info->device), "%s", options->device);
	else if (dmamap_client_device(handle, info->device))
		complain(complaint, "no device is bound to vfio-pci; dmamap help device says how "
				    "to bind one");
	if (!info->device[0]) {
		/* Said below. */
	} else if (!plan_probe(system, handle, options->device ? options->device : info->device,
			   options->bar, plan->variants, plan->n_variants)) {
		if (options->device)
			complain(complaint, "--device %s: %s", options->device, first_why(system));
		else
			complain(complaint, "%s: %s", info->device, first_why(system));
	} else if (!plan_memlock(plan->variants, plan->n_variants, options, host, complaint)) {
		return 0;
	}
	if (asked)
		return -1;
	snprintf(info->absent, sizeof(info->absent), "%.255s", complaint->text);
	return 0;
}

static int open_systems(struct plan *plan, const struct options *options, struct report *report,
	struct complaint *complaint)
{
	struct system_info *info;
	struct plan_system *system;

	if (options->systems != SYSTEMS_LINUX) {
		const char *bdf = options->systems == SYSTEMS_SOFT ? options->device : NULL;

		info = &report->systems[report->n_systems];
		system = &plan->systems[report->n_systems++];
		if (open_soft(plan, system, options, info, complaint))
			return -1;
		if (bdf)
			snprintf(info->device, sizeof(info->device), "%s", bdf);
		else if (dmamap_client_device(
				 system->handles[system->handles[0] ? 0 : 1], info->device))
			return complain(complaint, "the soft system has no device");
		if (!plan_probe(system, system->handles[system->handles[0] ? 0 : 1],
			    bdf ? bdf : info->device, options->bar, plan->variants,
			    plan->n_variants))
			return complain(complaint, "%s%s: %s", bdf ? "--device " : "soft, device ",
				bdf ? bdf : info->device, first_why(system));
	}
	if (options->systems != SYSTEMS_SOFT) {
		info = &report->systems[report->n_systems];
		system = &plan->systems[report->n_systems++];
		if (open_linux(plan, system, options, &report->host, info, complaint))
			return -1;
	}
	return 0;
}

/* ------------------------------------------------------------------- rows */

/* Pages of the kind of memory, as a system with base pages of @page_size has them. */
static uint64_t kind_page(const struct memory_kind *kind, const struct host *host)
{
	if (kind->source == MEMORY_BAR)
		return 0;
	if (kind->huge_shift)
		return (uint64_t)1 << kind->huge_shift;
	return kind->thp && host->thp_size ? host->thp_size : host->page_size;
}

/* What can be had of a kind of memory without taking what others need. */
static uint64_t kind_capacity(const struct memory_kind *kind, const struct host *host)
{
	uint64_t pages;

	if (!kind->huge_shift || hugepages_free(kind->huge_shift, &pages))
		return host_usable(host);
	return host_usable(host) + (pages << kind->huge_shift);
}

static void check_memory(struct result *row, const struct options *options, const struct host *host)
{
	const struct memory_kind *kind = row->variant->memory;
	uint64_t capacity = kind_capacity(kind, host);
	char page[UNITS_TEXT];
	char size[UNITS_TEXT];
	char reason[160];
	uint64_t pages;

	units_size(page, row->page_size);
	if (row->size % row->page_size) {
		char hint[64];
		char least[UNITS_TEXT];

		snprintf(hint, sizeof(hint), "--size %s", units_short(least, row->page_size));
		plan_skip(row, hint, "%s is no multiple of its %s page",
			units_size(size, row->size), page);
		return;
	}
	if (row->size > capacity) {
		char has[UNITS_TEXT];

		snprintf(reason, sizeof(reason), "needs %s, and %s can be used",
			units_size(size, row->size), units_size(has, capacity));
		plan_unbacked(row, options, reason, NULL);
		return;
	}
	if (kind->huge_shift && hugepages_free(kind->huge_shift, &pages)) {
		snprintf(reason, sizeof(reason), "this kernel has no huge pages of %s", page);
		plan_unbacked(row, options, reason, NULL);
		return;
	}
	if (kind->thp && (!host->thp_size || !strcmp(host->thp, "never")))
		plan_unbacked(row, options, "transparent huge pages are off",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
}

static void plan_row(struct result *row, const struct plan_system *system,
	const struct options *options, const struct host *host)
{
	const struct variant *variant = row->variant;
	const struct variant_rule *impossible = variant_impossible(variant);
	size_t mode = (size_t)(variant->mode - dmamap_modes);
	bool bar = variant->memory->source == MEMORY_BAR;

	row->status = STATUS_RUN;
	row->huge_bytes = UINT64_MAX;
	row->size = bar ? system->bar_size : options->size ? options->size : variant->memory->size;
	row->page_size = kind_page(variant->memory, host);
	if (impossible) {
		plan_skip(row, impossible->hint, "%s", impossible->reason);
		return;
	}
	if (!system->opens[mode]) {
		plan_skip(row, NULL, "%s", system->why[mode]);
		return;
	}
	if (bar && !system->bar_size) {
		plan_skip(row, "--bar or --device with another", "the device has no BAR %s",
			options->bar >= 0 ? "of that number that can be mapped"
					  : "that can be mapped");
		return;
	}
	if (!bar)
		check_memory(row, options, host);
	row->alignment = memory_alignment(row->size, host->page_size);
	if (row->declared && row->alignment < row->page_size)
		row->alignment = row->page_size;
}

/* Does each stride make a row of its own? Only where look-ups are counted and the BAR is mapped. */
static bool has_strides(const struct system_info *system, const struct variant *variant)
{
	return !strcmp(system->name, "soft") && variant->memory->source == MEMORY_BAR &&
	       !variant_impossible(variant) && !variant_refused(variant);
}

static int make_rows(struct plan *plan, const struct options *options, struct report *report,
	struct complaint *complaint)
{
	report->results = calloc(2 * VARIANTS_MAX * STRIDES, sizeof(*report->results));
	if (!report->results)
		return complain(complaint, "out of memory");
	for (size_t s = 0; s < report->n_systems; s++) {
		if (report->systems[s].absent[0])
			continue;
		for (size_t v = 0; v < plan->n_variants; v++) {
			const struct variant *variant = &plan->variants[v];
			bool strides = has_strides(&report->systems[s], variant);

			for (int stride = 0; stride < STRIDES; stride++) {
				struct result *row = &report->results[report->n_results];

				if (strides ? !(options->strides >> stride & 1) : stride > 0)
					continue;
				row->system = &report->systems[s];
				row->variant = variant;
				row->stride = strides ? stride : -1;
				plan_row(row, &plan->systems[s], options, &report->host);
				report->n_results++;
			}
		}
	}
	return 0;
}

/*
 * A size that fits nothing of what was picked is bad input; so is one that
 * would not fit in memory, even where some of the rows could run.
 */
static int check_size(
	const struct options *options, const struct report *report, struct complaint *complaint)
{
	size_t odd = 0;
	char text[UNITS_TEXT];
	char more[UNITS_TEXT];
	const struct result *row = NULL;

	for (size_t i = 0; options->size && i < report->n_results; i++) {
		const struct result *r = &report->results[i];
		uint64_t capacity = kind_capacity(r->variant->memory, &report->host);

		if (r->variant->memory->source == MEMORY_BAR || variant_impossible(r->variant))
			continue;
		if (r->size > capacity && !r->declared && r->status == STATUS_SKIPPED)
			return complain(complaint,
				"--size %s does not fit: %s of memory can be used; give less, or "
				"--sparse%s",
				units_short(more, options->size), units_size(text, capacity),
				options->sparse ? " with --system soft" : "");
		if (options->size % r->page_size) {
			odd++;
			row = r;
		}
	}
	if (row && odd == report->n_results)
		return complain(complaint,
			"--size %s: not a multiple of the page of %s; give a multiple of %s",
			units_short(more, options->size), row->variant->memory->name,
			units_short(text, row->page_size));
	return 0;
}

int plan_make(struct plan *plan, const struct options *options, struct report *report,
	struct complaint *complaint)
{
	if (open_systems(plan, options, report, complaint) ||
		make_rows(plan, options, report, complaint))
		return -1;
	return check_size(options, report, complaint);
}

struct dmamap_system *plan_handle(
	const struct plan *plan, const struct report *report, const struct result *result)
{
	const struct plan_system *system = &plan->systems[result->system - report->systems];

	if (result->stride >= 0)
		return system->handles[result->stride];
	return system->handles[0] ? system->handles[0] : system->handles[1];
}

void plan_free(struct plan *plan)
{
	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < STRIDES; i++)
			dmamap_system_destroy(plan->systems[s].handles[i]);
}
