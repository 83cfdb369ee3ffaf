/* SPDX-License-Identifier: MIT */
/*
 * umem: the bounce buffer moves into memory of the device's, and back, between
 * two copies of whoever maps.
 *
 * The unit of a move is a page: if any unit of it is mapped, all of it is
 * copied (Linux 7.3, iova_domain.c: the whole page, both ways). Where bytes are
 * copied from is cleared: the device may go on looking there. A page of the
 * file is cleared whole; of umem only units that are mapped, since the rest is
 * the device's.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/bounce_domain.h"
#include "engine/rcu.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void gate_wait(struct dmamap_bounce *bounce)
{
	pthread_mutex_lock(&bounce->gate_lock);
	pthread_mutex_unlock(&bounce->gate_lock);
}

/* No copy is under way when it returns. Under gate_lock. */
static void gate_close(struct dmamap_bounce *bounce)
{
	__atomic_store_n(&bounce->gate_closed, true, __ATOMIC_SEQ_CST);
	read_sections_wait();
}

static void gate_open(struct dmamap_bounce *bounce)
{
	__atomic_store_n(&bounce->gate_closed, false, __ATOMIC_RELEASE);
}

/* Whether a unit of the page is mapped. Where one is, the file has memory for the page. */
static bool page_live(const struct dmamap_bounce *bounce, uint64_t page)
{
	unsigned shift = bounce->page_shift - bounce->unit_shift;

	for (uint64_t i = page << shift; i < (page + 1) << shift; i++)
		if (unit_state(bounce, i))
			return true;
	return false;
}

static void move_in(struct dmamap_bounce *bounce, char *umem)
{
	uint64_t size = (uint64_t)1 << bounce->page_shift;

	for (uint64_t page = 0; page < bounce->bounce_size >> bounce->page_shift; page++) {
		if (!page_live(bounce, page))
			continue;
		memcpy(umem + page * size, bounce->file + page * size, size);
		if (bounce->scrub)
			memset(bounce->file + page * size, 0, size);
	}
}

static void move_out(struct dmamap_bounce *bounce, char *umem)
{
	uint64_t size = (uint64_t)1 << bounce->page_shift, unit = (uint64_t)1 << bounce->unit_shift;

	for (uint64_t page = 0; page < bounce->bounce_size >> bounce->page_shift; page++) {
		if (!page_live(bounce, page))
			continue;
		memcpy(bounce->file + page * size, umem + page * size, size);
		for (uint64_t at = page * size; at < (page + 1) * size && bounce->scrub; at += unit)
			if (unit_state(bounce, at >> bounce->unit_shift))
				memset(umem + at, 0, unit);
	}
}

/* Under gate_lock. */
static int check_umem(
	struct dmamap_bounce *bounce, void *address, uint64_t size, struct dmamap_reason *why)
{
	uint64_t page = (uint64_t)1 << bounce->page_shift, first = (uintptr_t)address;

	if (!__atomic_load_n(&bounce->announced, __ATOMIC_ACQUIRE))
		return DMAMAP_REFUSE(why, &dmamap_reason_umem_no_map, EINVAL, NULL, first);
	if (size != bounce->bounce_size || first & (page - 1) || first + size < first)
		return DMAMAP_REFUSE(why, &dmamap_reason_umem_shape, EINVAL, NULL, first, size,
			bounce->bounce_size, page);
	if (bounce->umem)
		return DMAMAP_REFUSE(
			why, &dmamap_reason_umem_there, EEXIST, NULL, (uintptr_t)bounce->umem);
	page = bounce->host_page;
	while (madvise((void *)(uintptr_t)(first & ~(page - 1)),
		((first + size + page - 1) & ~(page - 1)) - (first & ~(page - 1)),
		MADV_POPULATE_WRITE))
		if (errno != EINTR && errno != EAGAIN)
			return DMAMAP_REFUSE(why, &dmamap_reason_populate, EFAULT,
				"it has a hole, cannot be written, or there is no memory", first,
				first + size - 1);
	return 0;
}

int dmamap_bounce_umem_add(
	struct dmamap_bounce *bounce, void *address, uint64_t size, struct dmamap_reason *why)
{
	int rc;

	if (urcu_bp_read_ongoing())
		return DMAMAP_REFUSE(why, &dmamap_reason_within_access, EDEADLK, NULL, 0);
	pthread_mutex_lock(&bounce->gate_lock);
	rc = check_umem(bounce, address, size, why);
	if (!rc) {
		gate_close(bounce);
		move_in(bounce, address);
		bounce->umem = address;
		bounce->base = address;
		gate_open(bounce);
	}
	pthread_mutex_unlock(&bounce->gate_lock);
	return rc;
}

int dmamap_bounce_umem_remove(struct dmamap_bounce *bounce, struct dmamap_reason *why)
{
	int rc = 0;

	if (urcu_bp_read_ongoing())
		return DMAMAP_REFUSE(why, &dmamap_reason_within_access, EDEADLK, NULL, 0);
	pthread_mutex_lock(&bounce->gate_lock);
	if (bounce->umem) {
		gate_close(bounce);
		move_out(bounce, bounce->umem);
		bounce->umem = NULL;
		bounce->base = bounce->file;
		gate_open(bounce);
	} else {
		rc = DMAMAP_REFUSE(why, &dmamap_reason_umem_none, ENOENT, NULL, 0);
	}
	pthread_mutex_unlock(&bounce->gate_lock);
	return rc;
}
