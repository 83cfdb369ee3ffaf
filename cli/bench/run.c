/* SPDX-License-Identifier: MIT */
/*
 * The runs: every row of a plan is measured, again and again in a shuffled
 * order.
 *
 * A run opens a client of its own, so that each one finds the page table cold,
 * and times four phases apart. Rows are in three classes by the pool that
 * their memory comes from: a pool is reserved while its class runs, and the
 * machine's memory never has to hold two of them. The order within a class is
 * drawn anew for each round.
 *
 * On Linux each row runs once more after the rounds of its class, with probes
 * that count the kernel's work. They would slow what they count, so that no
 * time is kept of this run, and they are gone before anything else is timed.
 */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hugepages.h"
#include "interrupt.h"
#include "kernel.h"
#include "memory.h"
#include "cli/units.h"

/* Without --runs all of it ends in a minute: seconds by when no further round starts. */
static const struct class
{
	unsigned huge_shift;
	double deadline;
} classes[] = {{30, 24}, {21, 32}, {0, 48}};

#define CLASSES (sizeof(classes) / sizeof(classes[0]))

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* splitmix64: small, and the same everywhere. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void shuffle(struct result **rows, size_t n, uint64_t *state)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = draw(state) % i;
		struct result *row = rows[i - 1];

		rows[i - 1] = rows[j];
		rows[j] = row;
	}
}

/* ---------------------------------------------------------------- one run */

/* struct run - One run of one row, while it lasts. */
struct run {
	struct result *row;
	struct dmamap_system *system;
	const struct kernel_counters *probes;
	struct dmamap_client *client;
	struct memory memory;
	struct sample sample;
	struct dmamap_reason why;
	void *va;
	int fd;
};

static int phase_mmap(struct run *run, unsigned bar)
{
	const struct variant *variant = run->row->variant;
	uint64_t offset = variant->memory->offset;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start;
	int error;

	/*
	 * A 4 KiB offset cannot be had with larger pages: there, one page is the
	 * least, be it the system's or, on soft, this process's.
	 */
	if (offset && offset < run->row->system->page_size)
		offset = run->row->system->page_size;
	if (offset && offset < page)
		offset = page;
	start = now_ns();
	if (variant->memory->source == MEMORY_BAR)
		error = dmamap_client_bar_mmap(
			run->client, bar, offset, &run->memory.bar, &run->why);
	else
		error = memory_mmap(&run->memory, variant->prefault == PREFAULT_POPULATE);
	run->sample.ns[PHASE_MMAP] = now_ns() - start;
	run->va = variant->memory->source == MEMORY_BAR ? run->memory.bar.va : run->memory.va;
	run->sample.va = (uint64_t)(uintptr_t)run->va;
	return error;
}

static int phase_map(struct run *run)
{
	const struct result *row = run->row;
	unsigned prot = DMAMAP_READ | DMAMAP_WRITE;
	uint64_t start = now_ns();
	int error;

	if (row->variant->mode->maps_files)
		error = dmamap_client_map_file(run->client, run->memory.fd, 0, row->size,
			run->sample.iova, prot, &run->why);
	else
		error = dmamap_client_map(
			run->client, run->va, row->size, run->sample.iova, prot, &run->why);
	run->sample.ns[PHASE_MAP] = now_ns() - start;
	return error;
}

static int phase_unmap(struct run *run)
{
	uint64_t start = now_ns();
	int error;

	error = dmamap_client_unmap(run->client, run->sample.iova, run->row->size, NULL, &run->why);
	run->sample.ns[PHASE_UNMAP] = now_ns() - start;
	return error;
}

static int phase_munmap(struct run *run)
{
	uint64_t start = now_ns();
	int error;

	if (run->row->variant->memory->source == MEMORY_BAR)
		error = dmamap_client_bar_munmap(run->client, &run->memory.bar);
	else
		error = memory_munmap(&run->memory);
	run->sample.ns[PHASE_MUNMAP] = now_ns() - start;
	run->va = NULL;
	return error;
}

/* Map and unmap, with the kernel's counts read on both sides of each. */
static int map_and_unmap_probed(struct run *run)
{
	struct kernel_work *work = &run->row->kernel;
	uint64_t before[KERNEL_EVENTS];
	uint64_t mapped[KERNEL_EVENTS];
	uint64_t unmapped[KERNEL_EVENTS];
	int error;

	kernel_read(run->probes, before);
	error = phase_map(run);
	if (error)
		return error;
	kernel_read(run->probes, mapped);
	error = phase_unmap(run);
	if (error)
		return error;
	kernel_read(run->probes, unmapped);
	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		work->map[i] = mapped[i] - before[i];
		work->unmap[i] = unmapped[i] - mapped[i];
	}
	run->row->probed = true;
	return 0;
}

/* Map and unmap, with the counters read on both sides of each. */
static int map_and_unmap(struct run *run)
{
	struct result *row = run->row;
	struct dmamap_counters before;
	struct dmamap_counters mapped;
	struct dmamap_counters unmapped;
	bool counted = !run->system->ops->counters(run->system, &before);
	int error;

	error = phase_map(run);
	if (error)
		return error;
	if (counted)
		counted = !run->system->ops->counters(run->system, &mapped);
	if (row->variant->memory->thp && !row->declared)
		row->huge_bytes = memory_huge_bytes(&run->memory);
	error = phase_unmap(run);
	if (error || !counted || run->system->ops->counters(run->system, &unmapped))
		return error;
	row->counted = true;
	row->work.lookups = mapped.lookups - before.lookups;
	row->work.tables = mapped.tables;
	row->work.table_bytes = mapped.table_bytes;
	for (unsigned shift = 0; shift < 64; shift++) {
		row->work.leaves[shift] = mapped.leaves[shift] - before.leaves[shift];
		row->work.cleared[shift] =
			unmapped.leaves_cleared[shift] - mapped.leaves_cleared[shift];
	}
	return 0;
}

static unsigned log2_of(uint64_t power)
{
	return (unsigned)__builtin_ctzll(power);
}

/* Everything between an open client and its close. */
static int measure(struct run *run, unsigned bar)
{
	struct result *row = run->row;
	bool file = row->variant->memory->source == MEMORY_MEMFD;
	int error;

	error = memory_prepare(
		&run->memory, row->variant->memory, row->size, row->alignment, row->declared);
	if (error)
		return error;
	error = phase_mmap(run, bar);
	if (error)
		goto release;
	if (row->declared) {
		error = dmamap_soft_declare(run->system, run->va, row->size,
			file ? run->memory.fd : -1, log2_of(row->page_size));
		if (error)
			goto release;
	}
	error = dmamap_client_iova_allocate(
		run->client, row->size, row->alignment, &run->sample.iova, &run->why);
	if (error)
		goto undeclare;
	error = run->probes ? map_and_unmap_probed(run) : map_and_unmap(run);
	dmamap_client_iova_free(run->client, run->sample.iova, row->size);
undeclare:
	if (row->declared)
		dmamap_soft_undeclare(run->system, run->va);
	if (!error)
		error = phase_munmap(run);
release:
	if (row->variant->memory->source == MEMORY_BAR && run->va)
		dmamap_client_bar_munmap(run->client, &run->memory.bar);
	memory_release(&run->memory);
	return error;
}

/* A refusal that has to be is a result of its own; any other is a failure. */
static void record_error(struct run *run, int error)
{
	struct result *row = run->row;
	const struct variant_rule *rule = variant_refusal(row->variant, -error);

	row->status = rule ? STATUS_REFUSED : STATUS_FAILED;
	row->error = -error;
	if (run->why.kind || !rule) {
		run->why.error = -error;
		dmamap_reason_format(&run->why, row->reason, sizeof(row->reason));
	} else {
		snprintf(row->reason, sizeof(row->reason), "%s", rule->reason);
	}
	if (rule)
		snprintf(row->hint, sizeof(row->hint), "%s", rule->hint);
}

static int run_once(const struct plan *plan, struct report *report, struct result *row)
{
	const struct plan_system *system = &plan->systems[row->system - report->systems];
	struct run run = {.row = row, .system = plan_handle(plan, report, row)};
	struct sample *samples;
	int error;

	error = dmamap_client_open(
		run.system, row->variant->mode, row->system->device, &run.client, &run.why);
	if (error) {
		record_error(&run, error);
		return 0;
	}
	error = measure(&run, system->bar);
	dmamap_client_close(run.client);
	if (error) {
		record_error(&run, error);
		return 0;
	}
	samples = realloc(row->samples, (row->n + 1) * sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	row->samples = samples;
	row->samples[row->n++] = run.sample;
	return 0;
}

/* One more run, to be counted and not timed. What goes wrong is no failure: it ran before. */
static void run_probed(const struct plan *plan, struct report *report, struct result *row,
	const struct kernel_counters *probes)
{
	const struct plan_system *system = &plan->systems[row->system - report->systems];
	struct run run = {.row = row, .system = plan_handle(plan, report, row), .probes = probes};
	int error;

	error = dmamap_client_open(
		run.system, row->variant->mode, row->system->device, &run.client, &run.why);
	if (!error) {
		error = measure(&run, system->bar);
		dmamap_client_close(run.client);
	}
	if (error && !row->probed)
		snprintf(row->unprobed, sizeof(row->unprobed), "the counting run failed: %s",
			strerror(-error));
}

/* --------------------------------------------------------------- all runs */

/* struct bench - The state of all runs. */
struct bench {
	const struct plan *plan;
	const struct options *options;
	struct report *report;
	run_progress progress;
	struct result **rows;
	uint64_t seed;
	uint64_t start;
	size_t done;
	size_t total;
};

static double seconds_since(uint64_t start)
{
	return (double)(now_ns() - start) / 1e9;
}

static unsigned class_of(const struct result *row)
{
	return row->declared ? 0 : row->variant->memory->huge_shift;
}

/* The rows of a class that are still to be measured, in the report's order. */
static size_t collect(struct bench *bench, unsigned huge_shift)
{
	struct report *report = bench->report;
	size_t n = 0;

	for (size_t i = 0; i < report->n_results; i++)
		if (report->results[i].status == STATUS_RUN &&
			class_of(&report->results[i]) == huge_shift)
			bench->rows[n++] = &report->results[i];
	return n;
}

/* Fill a class's pool, or give its rows up (or to declared memory). */
static size_t reserve_pool(struct bench *bench, unsigned huge_shift, size_t n)
{
	uint64_t most = 0;
	uint64_t pages;
	char size[UNITS_TEXT];
	char path[HUGEPAGES_PATH];
	char reason[128];
	char command[160];
	int error;

	for (size_t i = 0; i < n; i++)
		if (bench->rows[i]->size > most)
			most = bench->rows[i]->size;
	pages = most >> huge_shift;
	if (!n)
		return 0;
	error = hugepages_reserve(huge_shift, pages);
	if (!error)
		return n;
	units_size(size, (uint64_t)1 << huge_shift);
	if (error == -EBUSY) {
		snprintf(
			reason, sizeof(reason), "another dmamap bench has the %s huge pages", size);
		snprintf(command, sizeof(command), "wait for its end");
	} else {
		snprintf(reason, sizeof(reason), "no %s huge pages", size);
		snprintf(command, sizeof(command), "echo %llu > %s",
			(unsigned long long)hugepages_total(huge_shift, pages),
			hugepages_path(huge_shift, path));
	}
	for (size_t i = 0; i < n; i++) {
		plan_unbacked(bench->rows[i], bench->options, reason, command);
		bench->rows[i]->alignment =
			memory_alignment(bench->rows[i]->size, bench->rows[i]->page_size);
	}
	return 0;
}

static int run_round(struct bench *bench, size_t n)
{
	shuffle(bench->rows, n, &bench->seed);
	for (size_t i = 0; i < n; i++) {
		struct result *row = bench->rows[i];
		int error;

		if (interrupt_signal())
			return 0;
		bench->done++;
		if (row->status != STATUS_RUN)
			continue;
		if (bench->progress)
			bench->progress(row, bench->done, bench->total);
		error = run_once(bench->plan, bench->report, row);
		if (error)
			return error;
	}
	return 0;
}

static bool is_probed(const struct bench *bench, const struct result *row)
{
	return bench->options->count && row->status == STATUS_RUN &&
	       !strcmp(row->system->name, "linux");
}

/* The system that rows of Linux belong to, writable. */
static struct system_info *linux_of(struct bench *bench)
{
	for (size_t i = 0; i < bench->report->n_systems; i++)
		if (!strcmp(bench->report->systems[i].name, "linux"))
			return &bench->report->systems[i];
	return NULL;
}

/* The counting run of a class's rows that are on Linux. */
static void count_class(struct bench *bench, size_t n)
{
	struct system_info *system = linux_of(bench);
	struct kernel_counters probes;
	size_t rows = 0;

	for (size_t i = 0; i < n; i++)
		rows += is_probed(bench, bench->rows[i]);
	if (!rows || interrupt_signal())
		return;
	system->probed = true;
	if (kernel_open(&probes, &kernel_places)) {
		for (size_t i = 0; i < n && !interrupt_signal(); i++) {
			struct result *row = bench->rows[i];

			if (!is_probed(bench, row))
				continue;
			bench->done++;
			if (bench->progress)
				bench->progress(row, bench->done, bench->total);
			run_probed(bench->plan, bench->report, row, &probes);
		}
	}
	memcpy(system->uncounted, probes.why, sizeof(system->uncounted));
	kernel_close(&probes);
}

static int run_class(struct bench *bench, const struct class *class)
{
	size_t n = collect(bench, class->huge_shift);
	int error = 0;

	if (class->huge_shift)
		n = reserve_pool(bench, class->huge_shift, n);
	for (unsigned round = 0; n && round < bench->options->runs && !error; round++) {
		uint64_t start = now_ns();
		double last;

		error = run_round(bench, n);
		last = seconds_since(start);
		if (interrupt_signal())
			break;
		if (!bench->options->runs_given &&
			seconds_since(bench->start) + last > class->deadline)
			break;
	}
	if (!error)
		count_class(bench, n);
	hugepages_restore();
	return error;
}

/* What a signal kept from its first run. */
static void mark_interrupted(struct report *report)
{
	report->signal = interrupt_signal();
	for (size_t i = 0; i < report->n_results; i++) {
		struct result *row = &report->results[i];

		if (row->status == STATUS_RUN && !row->n)
			plan_skip(row, NULL, "interrupted before its first run");
	}
}

int run_plan(const struct plan *plan, const struct options *options, struct report *report,
	run_progress progress)
{
	struct bench bench = {
		.plan = plan,
		.options = options,
		.report = report,
		.progress = progress,
		.seed = options->seed,
		.start = now_ns(),
	};
	int error = 0;

	bench.rows = calloc(report->n_results + 1, sizeof(*bench.rows));
	if (!bench.rows)
		return -ENOMEM;
	for (size_t i = 0; i < report->n_results; i++)
		if (report->results[i].status == STATUS_RUN)
			bench.total += options->runs + is_probed(&bench, &report->results[i]);
	for (size_t i = 0; i < CLASSES && !error && !interrupt_signal(); i++)
		error = run_class(&bench, &classes[i]);
	mark_interrupted(report);
	report->seconds = seconds_since(bench.start);
	free(bench.rows);
	return error;
}
