/* SPDX-License-Identifier: MIT */
/* The bounce domain: how it is made, and what it counts. See bounce_domain.h. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/bounce_domain.h"
#include "engine/pool.h"

#define PAGE_SHIFTS    (1u << 12 | 1u << 14 | 1u << 16)
#define IOVA_LIMIT_END (1ull << 36)
#define CACHES_MOST    4096u
#define MAGAZINE_MOST  65536u
#define KERNEL_UNIT    12 /* what Linux counts the coherent range's start in */

static int check(const struct dmamap_bounce_config *config, struct dmamap_reason *why)
{
	const struct {
		const char *what;
		uint64_t value;
		bool good;
	} rules[] = {
		{"page_shift", config->page_shift,
			config->page_shift < 32 && PAGE_SHIFTS >> config->page_shift & 1},
		{"unit_shift", config->unit_shift,
			config->unit_shift == KERNEL_UNIT ||
				config->unit_shift == config->page_shift},
		{"iova_limit", config->iova_limit, config->iova_limit < IOVA_LIMIT_END},
		{"bounce_size", config->bounce_size, config->bounce_size < config->iova_limit},
		{"caches", config->caches,
			config->caches <= CACHES_MOST && !(config->caches & (config->caches - 1))},
		{"magazine", config->magazine, config->magazine <= MAGAZINE_MOST},
		{"quirks", config->quirks, !(config->quirks & ~DMAMAP_BOUNCE_QUIRKS_7_3)},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (!rules[i].good)
			return DMAMAP_REFUSE(why, &dmamap_reason_bounce_config, EINVAL,
				rules[i].what, rules[i].value);
	return 0;
}

/* The IOVA allocators. Unit 0 is never handed out: IOVA 0 means nothing to drivers. */
static int start_iovas(struct dmamap_bounce *bounce, const struct dmamap_bounce_config *config)
{
	uint64_t units = bounce->bounce_size >> bounce->unit_shift;
	uint64_t first = bounce->bounce_size >> bounce->page_shift;
	uint64_t last = ((config->iova_limit + 1) >> bounce->page_shift) - 1;

	if (config->quirks & DMAMAP_BOUNCE_QUIRK_COHERENT_START)
		first = bounce->bounce_size >> KERNEL_UNIT;
	if (iova_cache_start(&bounce->stream, 1, units - 1, config->caches, config->magazine))
		return -ENOMEM;
	bounce->largest = iova_units_largest(&bounce->stream.units);
	if (iova_cache_start(&bounce->coherent, first, last, config->caches, config->magazine)) {
		iova_cache_stop(&bounce->stream);
		return -ENOMEM;
	}
	return 0;
}

static int create(const struct dmamap_bounce_config *config, struct dmamap_bounce **out)
{
	struct dmamap_bounce *bounce = engine_calloc(1, sizeof(*bounce));
	uint64_t page = (uint64_t)1 << config->page_shift;
	int rc = -ENOMEM;

	if (!bounce)
		return -ENOMEM;
	bounce->host_page = (uint64_t)sysconf(_SC_PAGESIZE);
	bounce->page_shift = config->page_shift;
	bounce->unit_shift = config->unit_shift;
	bounce->bounce_size = (config->bounce_size + page - 1) & ~(page - 1);
	bounce->scrub = !config->keep_stale;
	bounce->quirks = config->quirks;
	page = page > bounce->host_page ? page : bounce->host_page;
	bounce->file_size = (config->iova_limit + page) & ~(page - 1);
	bounce->unit =
		engine_calloc(bounce->bounce_size >> bounce->unit_shift, sizeof(struct unit));
	bounce->page = engine_calloc(bounce->bounce_size >> bounce->page_shift, 1);
	bounce->iotlb = engine_calloc(DMAMAP_BOUNCE_IOTLB_MOST, sizeof(struct dmamap_range));
	if (!bounce->unit || !bounce->page || !bounce->iotlb)
		goto free_arrays;
	rc = start_iovas(bounce, config);
	if (rc)
		goto free_arrays;
	rc = file_open(bounce);
	if (rc)
		goto stop_iovas;
	bounce->base = bounce->file;
	pthread_mutex_init(&bounce->gate_lock, NULL);
	pthread_mutex_init(&bounce->iotlb_lock, NULL);
	*out = bounce;
	return 0;
stop_iovas:
	iova_cache_stop(&bounce->coherent);
	iova_cache_stop(&bounce->stream);
free_arrays:
	free(bounce->iotlb);
	free(bounce->page);
	free(bounce->unit);
	free(bounce);
	return rc;
}

int dmamap_bounce_create(const struct dmamap_bounce_config *given, struct dmamap_bounce **bounce,
	struct dmamap_reason *why)
{
	struct dmamap_bounce_config config = given ? *given : (struct dmamap_bounce_config){0};
	int rc;

	config.page_shift = config.page_shift ? config.page_shift : 12;
	config.unit_shift = config.unit_shift ? config.unit_shift : KERNEL_UNIT;
	config.bounce_size = config.bounce_size ? config.bounce_size : DMAMAP_BOUNCE_SIZE;
	config.iova_limit = config.iova_limit ? config.iova_limit : DMAMAP_BOUNCE_IOVA_LIMIT;
	config.caches = config.caches ? config.caches : IOVA_SLOTS;
	config.magazine = config.magazine ? config.magazine : IOVA_MAGAZINE;
	rc = check(&config, why);
	if (rc)
		return rc;
	rc = create(&config, bounce);
	return rc ? DMAMAP_REFUSE(why, &dmamap_reason_no_memory, -rc, "a bounce domain",
			    config.bounce_size)
		  : 0;
}

void dmamap_bounce_destroy(struct dmamap_bounce *bounce)
{
	if (!bounce)
		return;
	file_close(bounce);
	iova_cache_stop(&bounce->coherent);
	iova_cache_stop(&bounce->stream);
	pthread_mutex_destroy(&bounce->iotlb_lock);
	pthread_mutex_destroy(&bounce->gate_lock);
	free(bounce->iotlb);
	free(bounce->page);
	free(bounce->unit);
	free(bounce);
}

void dmamap_bounce_info(const struct dmamap_bounce *bounce, struct dmamap_bounce_info *info)
{
	const struct iova_units *coherent = &bounce->coherent.units;
	uint64_t page = (uint64_t)1 << bounce->page_shift;

	*info = (struct dmamap_bounce_info){
		.page_size = page,
		.unit_size = (uint64_t)1 << bounce->unit_shift,
		.bounce_size = bounce->bounce_size,
		.units = (bounce->bounce_size >> bounce->unit_shift) - 1,
		.largest = bounce->largest << bounce->unit_shift,
		.coherent = {coherent->first * page, (coherent->last + 1) * page - 1},
	};
}

int dmamap_bounce_file(const struct dmamap_bounce *bounce)
{
	return bounce->fd;
}

static uint64_t live_pages(const struct dmamap_bounce *bounce)
{
	uint64_t units = bounce->bounce_size >> bounce->unit_shift, pages = 0;
	uint64_t shared = (uint64_t)1 << (bounce->page_shift - bounce->unit_shift);

	for (uint64_t first = 0; first < units; first += shared) {
		bool live = false;

		for (uint64_t i = first; i < first + shared && !live; i++)
			live = unit_state(bounce, i) != 0;
		pages += live;
	}
	return pages;
}

void dmamap_bounce_counters(struct dmamap_bounce *bounce, struct dmamap_bounce_counters *counters)
{
	struct iova_counts counts;

	iova_cache_counts(&bounce->stream, &counts);
	*counters = (struct dmamap_bounce_counters){
		.fast = counts.fast,
		.slow = counts.slow,
		.flushes = __atomic_load_n(&bounce->stream.flushes, __ATOMIC_RELAXED),
		.full = __atomic_load_n(&bounce->full, __ATOMIC_RELAXED),
		.too_large = __atomic_load_n(&bounce->too_large, __ATOMIC_RELAXED),
		.no_memory = __atomic_load_n(&bounce->no_memory, __ATOMIC_RELAXED),
		.to_device = counts.copied[0],
		.from_device = counts.copied[1],
		.live_units = counts.live,
		.live_pages = live_pages(bounce),
		.pages = __atomic_load_n(&bounce->pages, __ATOMIC_RELAXED),
	};
}
