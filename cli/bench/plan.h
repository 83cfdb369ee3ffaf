/* SPDX-License-Identifier: MIT */
/*
 * The plan: which rows a bench has, on which systems, and which of them are
 * skipped before anything is measured. All bad input that only the machine can
 * tell (no such device, no permission, too large) is found here.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "cli/complaint.h"
#include "options.h"
#include "result.h"

/**
 * struct plan_system - A system that is measured.
 * @handles: by stride; Linux has only the first, soft those that are needed
 * @bar: the BAR that BAR variants map
 * @bar_size: 0: there is none
 * @opens: the mode with this index can be opened
 * @why: why it cannot
 */
struct plan_system {
	struct dmamap_system *handles[STRIDES];
	unsigned bar;
	uint64_t bar_size;
	bool opens[DMAMAP_MODES];
	char why[DMAMAP_MODES][400];
};

/** struct plan - @systems go with the report's, by index. */
struct plan {
	struct variant variants[VARIANTS_MAX];
	size_t n_variants;
	struct plan_system systems[2];
};

/** plan_variants() - The variants that the options pick. Return: 0; -1 with a complaint. */
int plan_variants(struct plan *plan, const struct options *options, struct complaint *complaint);

/**
 * plan_make() - After plan_variants(): open the systems and fill the report
 * with systems and rows. A row that can be measured has STATUS_RUN.
 *
 * Return: 0; -1 with a complaint. plan_free() is due either way.
 */
int plan_make(struct plan *plan, const struct options *options, struct report *report,
	struct complaint *complaint);

/** plan_handle() - The system to run a row on. */
struct dmamap_system *plan_handle(
	const struct plan *plan, const struct report *report, const struct result *result);

void plan_free(struct plan *plan);

/**
 * plan_probe() - Which of the modes that variants need can be opened on a
 * system, and which BAR is there.
 *
 * Return: how many of the needed modes can be opened.
 */
unsigned plan_probe(struct plan_system *system, struct dmamap_system *handle, const char *bdf,
	int bar, const struct variant *variants, size_t n);

/**
 * plan_memlock() - May this process lock as much memory as the variants map?
 * A kernel pins what it maps; a BAR is not counted.
 *
 * Return: 0; -1 with a complaint.
 */
int plan_memlock(const struct variant *variants, size_t n, const struct options *options,
	const struct host *host, struct complaint *complaint);

/**
 * plan_kernel_stride() - How a kernel's look-ups of a BAR step, by its name
 * and release ("Linux 6.15.2"): enum dmamap_pfnmap_stride; -1: no such name.
 */
int plan_kernel_stride(const char *kernel);

/** plan_skip() - Mark a row as skipped. @hint may be NULL. */
void plan_skip(struct result *result, const char *hint, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * plan_unbacked() - The machine cannot back a row's memory: declare it where
 * the options and the system allow that, otherwise skip it.
 * @reason, @command: what is missing, what would add it (or NULL)
 */
void plan_unbacked(struct result *result, const struct options *options, const char *reason,
	const char *command);

#endif
