/* SPDX-License-Identifier: MIT */
/*
 * Coherent memory, and the IOTLB: what the device may map.
 *
 * A coherent allocation is pages of the file that are not bounced. The IOTLB
 * is an array of ranges in order of their IOVAs: it has some dozens (rings), and
 * at most DMAMAP_BOUNCE_IOTLB_MOST. Ranges are in it only while their memory is
 * there, and zero before the device's first look.
 */
#include <errno.h>
#include <string.h>

#include "engine/bounce_domain.h"

/* ------------------------------------------------------------------ IOTLB */

/* The first range that ends at @iova or later. Under iotlb_lock. */
static unsigned place_of(const struct dmamap_bounce *bounce, uint64_t iova)
{
	unsigned low = 0, high = bounce->iotlb_n;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (bounce->iotlb[middle].last < iova)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Under iotlb_lock. */
static int insert(
	struct dmamap_bounce *bounce, uint64_t first, uint64_t last, struct dmamap_reason *why)
{
	unsigned place = place_of(bounce, first);
	struct dmamap_range *at = &bounce->iotlb[place];

	if (bounce->iotlb_n == DMAMAP_BOUNCE_IOTLB_MOST)
		return DMAMAP_REFUSE(why, &dmamap_reason_iotlb_full, ENOMEM, NULL, bounce->iotlb_n);
	memmove(at + 1, at, (bounce->iotlb_n - place) * sizeof(*at));
	*at = (struct dmamap_range){first, last};
	bounce->iotlb_n++;
	return 0;
}

/* Under iotlb_lock. */
static void remove_at(struct dmamap_bounce *bounce, unsigned place)
{
	struct dmamap_range *at = &bounce->iotlb[place];

	bounce->iotlb_n--;
	memmove(at, at + 1, (bounce->iotlb_n - place) * sizeof(*at));
}

int iotlb_announce(struct dmamap_bounce *bounce, struct dmamap_reason *why)
{
	int rc = 0;

	pthread_mutex_lock(&bounce->iotlb_lock);
	if (!bounce->announced) {
		rc = insert(bounce, 0, bounce->bounce_size - 1, why);
		if (!rc)
			__atomic_store_n(&bounce->announced, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&bounce->iotlb_lock);
	return rc;
}

void dmamap_bounce_reset(struct dmamap_bounce *bounce)
{
	pthread_mutex_lock(&bounce->iotlb_lock);
	/* It is the lowest range. */
	if (bounce->announced)
		remove_at(bounce, 0);
	__atomic_store_n(&bounce->announced, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&bounce->iotlb_lock);
}

bool dmamap_bounce_iotlb_find(struct dmamap_bounce *bounce, uint64_t first, uint64_t last,
	struct dmamap_iotlb_entry *entry)
{
	unsigned place;
	bool found;

	pthread_mutex_lock(&bounce->iotlb_lock);
	place = place_of(bounce, first);
	found = first <= last && place < bounce->iotlb_n && bounce->iotlb[place].first <= last;
	if (found) {
		const struct dmamap_range *range = &bounce->iotlb[place];

		*entry = (struct dmamap_iotlb_entry){
			.first = range->first,
			.last = range->last,
			.offset = range->first,
			.prot = DMAMAP_READ | DMAMAP_WRITE,
			.umem = range->first == 0,
		};
	}
	pthread_mutex_unlock(&bounce->iotlb_lock);
	return found;
}

/* --------------------------------------------------------------- coherent */

static int refuse_range(struct dmamap_bounce *bounce, uint64_t size, struct dmamap_reason *why)
{
	const struct iova_units *units = &bounce->coherent.units;
	uint64_t page = (uint64_t)1 << bounce->page_shift;
	bool quirk = bounce->quirks & DMAMAP_BOUNCE_QUIRK_COHERENT_START;

	if (units->last < units->first)
		return DMAMAP_REFUSE(why, &dmamap_reason_coherent_no_range, E2BIG,
			quirk ? " (Linux 7.3 counts the bounce buffer's 4 KiB units as pages)" : "",
			units->first * page, units->first, page, (units->last + 1) * page - 1);
	return DMAMAP_REFUSE(why, &dmamap_reason_coherent_too_large, E2BIG, NULL, size,
		iova_units_largest(units) * page, units->first * page,
		(units->last + 1) * page - 1);
}

int dmamap_bounce_coherent_alloc(struct dmamap_bounce *bounce, uint64_t size, uint64_t *iova,
	void **address, struct dmamap_reason *why)
{
	const struct iova_units *units = &bounce->coherent.units;
	uint64_t page = (uint64_t)1 << bounce->page_shift;
	uint64_t n = ((size - 1) >> bounce->page_shift) + 1, first, at;
	int rc;

	if (!size)
		return DMAMAP_REFUSE(why, &dmamap_reason_bounce_request, EINVAL, NULL, size, 3, 0);
	if (n > iova_units_largest(units))
		return refuse_range(bounce, size, why);
	if (!iova_cache_get(&bounce->coherent, n, 0, &first))
		return DMAMAP_REFUSE(why, &dmamap_reason_coherent_full, ENOSPC, NULL, size, n, page,
			units->first * page, (units->last + 1) * page - 1);
	at = first << bounce->page_shift;
	/* Whoever had these pages, or wrote where it may not, leaves nothing here. */
	rc = file_drop(bounce, at, n << bounce->page_shift);
	if (!rc)
		rc = file_fill(bounce, at, n << bounce->page_shift);
	if (rc) {
		DMAMAP_REFUSE(why, &dmamap_reason_no_memory, -rc, "coherent pages", size);
		goto put_iova;
	}
	pthread_mutex_lock(&bounce->iotlb_lock);
	rc = insert(bounce, at, at + size - 1, why);
	pthread_mutex_unlock(&bounce->iotlb_lock);
	if (rc)
		goto drop_pages;
	*iova = at;
	*address = bounce->file + at;
	return 0;
drop_pages:
	file_drop(bounce, at, n << bounce->page_shift);
put_iova:
	iova_cache_put(&bounce->coherent, first, n, 0);
	return rc;
}

int dmamap_bounce_coherent_free(
	struct dmamap_bounce *bounce, uint64_t iova, uint64_t size, struct dmamap_reason *why)
{
	uint64_t n = ((size - 1) >> bounce->page_shift) + 1;
	unsigned place;
	bool found;

	pthread_mutex_lock(&bounce->iotlb_lock);
	place = place_of(bounce, iova);
	found = iova >= bounce->bounce_size && place < bounce->iotlb_n &&
		bounce->iotlb[place].first == iova && bounce->iotlb[place].last == iova + size - 1;
	if (found)
		remove_at(bounce, place);
	pthread_mutex_unlock(&bounce->iotlb_lock);
	if (!found)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_coherent_not_there, EINVAL, NULL, iova, size);
	if (bounce->scrub)
		file_drop(bounce, iova, n << bounce->page_shift);
	iova_cache_put(&bounce->coherent, iova >> bounce->page_shift, n, 0);
	return 0;
}
