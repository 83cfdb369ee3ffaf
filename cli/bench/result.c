/* SPDX-License-Identifier: MIT */
/* The result model: what was measured, as data. */
#include "result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/units.h"

const char *const phase_names[PHASES] = {"mmap", "map", "unmap", "munmap"};
const char *const status_names[4] = {"run", "skipped", "refused", "failed"};
const char *const stride_names[STRIDES] = {"leaf", "page"};

bool result_times(const struct result *result, enum phase phase)
{
	return result->n && (!result->declared || phase == PHASE_MAP || phase == PHASE_UNMAP);
}

struct stats result_stats(const struct result *result, enum phase phase)
{
	struct stats stats = {0};
	uint64_t *ns;

	if (!result_times(result, phase))
		return stats;
	ns = calloc(result->n, sizeof(*ns));
	if (!ns)
		return stats;
	for (size_t i = 0; i < result->n; i++)
		ns[i] = result->samples[i].ns[phase];
	stats = stats_of(ns, result->n);
	free(ns);
	return stats;
}

char *result_name(const struct result *result, char name[RESULT_NAME])
{
	bool strides = result->stride >= 0;

	snprintf(name, RESULT_NAME, "%s%s%s", result->variant->name, strides ? "." : "",
		strides ? stride_names[result->stride] : "");
	return name;
}

uint64_t result_pages(const struct result *result)
{
	return result->size / result->system->page_size;
}

double result_page_ns(const struct result *result, uint64_t ns)
{
	uint64_t pages = result_pages(result);

	return pages ? (double)ns / (double)pages : 0;
}

double result_gib_s(const struct result *result, uint64_t ns)
{
	return ns ? (double)result->size / (double)(1 << 30) * 1e9 / (double)ns : 0;
}

/* The largest page of the processor's page table for which @off is a multiple and @block has room.
 */
static uint64_t step_of(uint64_t off, uint64_t block, uint64_t page)
{
	/* Each level of an eight-byte table has page / 8 entries. */
	uint64_t step = page;

	while (step * (page / 8) <= block && off % (step * (page / 8)) == 0)
		step *= page / 8;
	return step;
}

static bool explain_bar(const struct result *result, unsigned index, char *text, size_t size)
{
	uint64_t gib = (uint64_t)1 << 30;
	uint64_t block = result->size < gib ? result->size : gib;
	uint64_t off;
	uint64_t step;
	char a[UNITS_TEXT];
	char b[UNITS_TEXT];
	char c[UNITS_TEXT];

	/* A BAR's address is a multiple of its size: congruent to 0 modulo the block. */
	if (!result->n || !block)
		return false;
	off = result->samples[0].va % block;
	if (index == 0 && (result->stride == DMAMAP_PFNMAP_PAGE ||
				  result->system->stride == DMAMAP_PFNMAP_PAGE)) {
		snprintf(text, size,
			"stride page, as before Linux 6.15: every page is looked up alone");
		return true;
	}
	if (index > 0 || !off)
		return false;
	step = step_of(off, block, result->system->page_size);
	if (step == result->system->page_size)
		snprintf(text, size,
			"the VA is %s off the BAR's address modulo %s: every page is looked up "
			"alone",
			units_size(a, off), units_size(b, block));
	else
		snprintf(text, size,
			"the VA is %s off the BAR's address modulo %s: look-ups step by %s",
			units_size(a, off), units_size(b, block), units_size(c, step));
	return true;
}

bool result_explain(const struct result *result, unsigned index, char *text, size_t size)
{
	char a[UNITS_TEXT];
	char b[UNITS_TEXT];

	if (result->status != STATUS_RUN)
		return false;
	if (result->variant->memory->source == MEMORY_BAR)
		return explain_bar(result, index, text, size);
	if (index == 0 && result->declared) {
		snprintf(text, size,
			"declared: a sparse file stands for %s of %s pages, none of it is present",
			units_size(a, result->size), units_size(b, result->page_size));
		return true;
	}
	if (index == 0 && result->variant->memory->thp && result->huge_bytes < result->size) {
		snprintf(text, size, "only %s of %s came as huge pages",
			units_size(a, result->huge_bytes), units_size(b, result->size));
		return true;
	}
	return false;
}

const char *result_error_name(int error, char buffer[24])
{
	const char *name = strerrorname_np(error);

	if (name)
		return name;
	snprintf(buffer, 24, "errno %d", error);
	return buffer;
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->n_results; i++)
		free(report->results[i].samples);
	free(report->results);
	memset(report, 0, sizeof(*report));
}
