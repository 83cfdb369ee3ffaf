/* SPDX-License-Identifier: MIT */
/* What the bounce domain's tests share: short calls that must succeed, and a device's view. */
#ifndef DMAMAP_TESTS_ENGINE_BOUNCE_H
#define DMAMAP_TESTS_ENGINE_BOUNCE_H

#include <sys/mman.h>

#include "dmamap/bounce.h"
#include "dmamap/engine.h"
#include "engine/pool.h"
#include "tests/check.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

/* Of the last call that was refused. */
static struct dmamap_reason why;

static inline struct dmamap_bounce *make(const struct dmamap_bounce_config *config)
{
	struct dmamap_bounce *bounce;

	assert_int_equal(dmamap_bounce_create(config, &bounce, &why), 0);
	return bounce;
}

static inline struct dmamap_bounce *make_small(bool keep_stale)
{
	return make(&(struct dmamap_bounce_config){
		.page_shift = 16, .bounce_size = MIB, .keep_stale = keep_stale});
}

static inline unsigned char *device_of(const struct dmamap_bounce *bounce)
{
	void *device = mmap(NULL, DMAMAP_BOUNCE_IOVA_LIMIT + 1, PROT_READ | PROT_WRITE, MAP_SHARED,
		dmamap_bounce_file(bounce), 0);

	assert_ptr_not_equal(device, MAP_FAILED);
	return device;
}

static inline void device_gone(unsigned char *device)
{
	munmap(device, DMAMAP_BOUNCE_IOVA_LIMIT + 1);
}

static inline uint64_t map(struct dmamap_bounce *bounce, void *buffer, uint64_t size, unsigned prot)
{
	uint64_t iova = 0;

	assert_int_equal(dmamap_bounce_map(bounce, buffer, size, prot, 0, &iova, &why), 0);
	return iova;
}

static inline void unmap(struct dmamap_bounce *bounce, uint64_t iova, uint64_t size)
{
	assert_int_equal(dmamap_bounce_unmap(bounce, iova, size, 0, &why), 0);
}

static inline struct dmamap_bounce_counters count(struct dmamap_bounce *bounce)
{
	struct dmamap_bounce_counters counters;

	dmamap_bounce_counters(bounce, &counters);
	return counters;
}

static inline bool all(const unsigned char *bytes, unsigned char value, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static inline void assert_says(const char *sentence)
{
	char text[256];

	dmamap_reason_format(&why, text, sizeof(text));
	assert_string_equal(text, sentence);
}

/* Enough for make_small(). */
static inline unsigned char *make_umem(void)
{
	unsigned char *umem = aligned_alloc(64 * KIB, MIB);

	assert_non_null(umem);
	memset(umem, 'u', MIB);
	return umem;
}

#endif
