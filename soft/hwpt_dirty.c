/* SPDX-License-Identifier: MIT */
/*
 * Dirty tracking of an HWPT (drivers/iommu/iommufd/io_pagetable.c,
 * iova_bitmap.c): which leaves devices wrote to, as bits in the caller's memory.
 *
 * Bit i stands for iova + i * page_size. Bits are OR-ed in, a whole leaf's at a
 * time: those behind the range too, as far as the kernel has pinned the
 * bitmap's pages, which is to the end of the last one and sometimes one more.
 * A leaf that begins before the range is cleaned and not reported. Areas are
 * looked at up to the first gap. None of this shows in the result, and neither
 * does memory that cannot be written.
 *
 * The hardware keeps its bits when tracking stops, and the engine forgets them:
 * so they are kept here until they are read, or unmapped, or tracking starts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* ------------------------------------------------------------------ bitmap */

struct bitmap {
	uint64_t iova, page;
	unsigned shift;	   /* of what one bit stands for */
	uint64_t bytes;	   /* that the range takes */
	uint64_t address;  /* of the caller's */
	uint8_t *chunk;	   /* one page of it: bits to be set */
	uint64_t chunk_at; /* its address; 0: none */
	uint64_t from, to; /* bytes of it that are used */
};

/* What is gathered for one page goes to the caller's. False: it cannot be written. */
static bool flush(struct bitmap *bitmap)
{
	uint64_t n = bitmap->to - bitmap->from;
	uint8_t *bits = bitmap->chunk + bitmap->from, *old;
	void *user = (void *)(uintptr_t)(bitmap->chunk_at + bitmap->from);
	bool written = true;

	if (!bitmap->chunk_at || !n)
		return true;
	old = bitmap->chunk + bitmap->page;
	written = !soft_copy_in(old, user, n, "a bitmap");
	if (written) {
		for (uint64_t i = 0; i < n; i++)
			bits[i] |= old[i];
		written = !soft_copy_out(user, bits, n, "a bitmap");
	}
	memset(bitmap->chunk + bitmap->from, 0, n);
	bitmap->from = bitmap->to = 0;
	return written;
}

/* Whether a page of the caller's takes bits; @address is the first one's, and tried. */
static bool open_page(struct bitmap *bitmap, uint64_t page, uint64_t address)
{
	char byte;

	if (bitmap->chunk_at == page)
		return true;
	flush(bitmap);
	bitmap->chunk_at = 0;
	if (soft_copy_in(&byte, (void *)(uintptr_t)address, 1, "a bitmap") ||
		soft_copy_out((void *)(uintptr_t)address, &byte, 1, "a bitmap"))
		return false;
	bitmap->chunk_at = page;
	return true;
}

/* Bits @first to @last of the page that is open. */
static void set_bits(struct bitmap *bitmap, uint64_t first, uint64_t last)
{
	uint64_t from = first / 8, to = last / 8;

	for (uint64_t byte = from; byte <= to; byte++) {
		unsigned low = byte == from ? first % 8 : 0, high = byte == to ? last % 8 : 7;

		bitmap->chunk[byte] |= (uint8_t)((2u << high) - (1u << low));
	}
	if (bitmap->from == bitmap->to) {
		bitmap->from = from;
		bitmap->to = to + 1;
	} else {
		bitmap->from = from < bitmap->from ? from : bitmap->from;
		bitmap->to = to + 1 > bitmap->to ? to + 1 : bitmap->to;
	}
}

/* Where the bytes end that the kernel pins when it needs the one at @byte. */
static uint64_t pinned_end(const struct bitmap *bitmap, uint64_t byte)
{
	uint64_t page = bitmap->page, address = bitmap->address + byte;
	uint64_t pages = (bitmap->bytes - byte + page - 1) / page + !!(address & (page - 1));

	if (pages > page / sizeof(void *))
		pages = page / sizeof(void *);
	return (address & ~(page - 1)) + pages * page;
}

static void report(void *argument, uint64_t first, uint64_t last)
{
	struct bitmap *bitmap = argument;
	uint64_t bit, end, limit = 0;

	if (first < bitmap->iova)
		return;
	bit = (first - bitmap->iova) >> bitmap->shift;
	end = (last - bitmap->iova) >> bitmap->shift;
	while (bit <= end) {
		uint64_t address = bitmap->address + bit / 8;
		uint64_t page = address & ~(bitmap->page - 1), in_page, here;

		if (address >= limit) {
			if (bit / 8 >= bitmap->bytes)
				return;
			limit = pinned_end(bitmap, bit / 8);
		}
		if (!open_page(bitmap, page, address))
			return;
		in_page = (address - page) * 8 + bit % 8;
		here = bitmap->page * 8 - in_page;
		if (here > end - bit + 1)
			here = end - bit + 1;
		set_bits(bitmap, in_page, in_page + here - 1);
		bit += here;
	}
}

/* ---------------------------------------------------------- what was dirty */

struct collection {
	struct dmamap_range *ranges;
	size_t n, room;
};

/* Without memory one is lost. */
static void collect(void *argument, uint64_t first, uint64_t last)
{
	struct collection *all = argument;

	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 64;
		struct dmamap_range *more = realloc(all->ranges, room * sizeof(*more));

		if (!more)
			return;
		all->ranges = more;
		all->room = room;
	}
	all->ranges[all->n++] = (struct dmamap_range){first, last};
}

void soft_hwpt_forget_dirty(struct soft_hwpt *hwpt, uint64_t first, uint64_t last)
{
	size_t kept = 0;

	for (size_t i = 0; i < hwpt->n_was_dirty; i++) {
		struct dmamap_range one = hwpt->was_dirty[i];

		if (one.last < first || one.first > last)
			hwpt->was_dirty[kept++] = one;
	}
	hwpt->n_was_dirty = kept;
}

/* ioas lock held. */
static void stop(struct soft_hwpt *hwpt)
{
	struct collection all = {0};

	if (!hwpt->tracking)
		return;
	dmamap_table_dirty_read(hwpt->table, 0, UINT64_MAX, DMAMAP_DIRTY_KEEP, collect, &all);
	dmamap_table_dirty_stop(hwpt->table);
	free(hwpt->was_dirty);
	hwpt->was_dirty = all.ranges;
	hwpt->n_was_dirty = all.n;
	hwpt->tracking = false;
}

int soft_hwpt_set_dirty(struct soft_command *command)
{
	const struct iommu_hwpt_set_dirty_tracking *user = command->data;
	const uint32_t known = IOMMU_HWPT_DIRTY_TRACKING_ENABLE;
	struct soft_object *object;
	struct soft_hwpt *hwpt;
	int error = 0;

	if (user->flags & ~known)
		return SOFT_REFUSE(
			flags, EOPNOTSUPP, "IOMMU_HWPT_SET_DIRTY_TRACKING", user->flags, known);
	error = soft_object_get(command->iommufd, user->hwpt_id, SOFT_OBJECT_HWPT, &object);
	if (error)
		return error;
	hwpt = (struct soft_hwpt *)object;
	if (!hwpt->dirty) {
		error = SOFT_REFUSE(hwpt_untracked, EOPNOTSUPP, NULL, user->hwpt_id);
		goto put;
	}
	pthread_mutex_lock(&hwpt->ioas->lock);
	if (user->flags & IOMMU_HWPT_DIRTY_TRACKING_ENABLE) {
		dmamap_table_dirty_start(hwpt->table);
		hwpt->n_was_dirty = 0;
		hwpt->tracking = true;
	} else {
		stop(hwpt);
	}
	pthread_mutex_unlock(&hwpt->ioas->lock);
put:
	soft_object_put(command->iommufd, object);
	return error;
}

/* -------------------------------------------------------------------- read */

static int check_range(struct soft_ioas *ioas, const struct iommu_hwpt_get_dirty_bitmap *user)
{
	uint64_t align, last;

	if (!user->length)
		return SOFT_REFUSE(length_zero, EINVAL, "IOMMU_HWPT_GET_DIRTY_BITMAP", 0);
	if (__builtin_add_overflow(user->iova, user->length - 1, &last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "iova", user->iova, user->length);
	pthread_mutex_lock(&ioas->lock);
	align = soft_ioas_alignment(ioas);
	pthread_mutex_unlock(&ioas->lock);
	if ((user->iova | (last + 1)) & (align - 1))
		return SOFT_REFUSE(
			misaligned, EINVAL, "iova or length", user->iova | (last + 1), align);
	if (!user->page_size)
		return SOFT_REFUSE(value, EINVAL, "page_size", 0);
	if ((user->iova | (last + 1)) & (user->page_size - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "iova or length", user->iova | (last + 1),
			user->page_size);
	return 0;
}

/* What tracking left behind when it stopped. */
static void read_left(
	struct soft_hwpt *hwpt, uint64_t first, uint64_t last, bool keep, struct bitmap *bitmap)
{
	for (size_t i = 0; i < hwpt->n_was_dirty; i++) {
		const struct dmamap_range *one = &hwpt->was_dirty[i];

		if (one->first <= last && first <= one->last)
			report(bitmap, one->first, one->last);
	}
	if (!keep)
		soft_hwpt_forget_dirty(hwpt, first, last);
}

/* ioas lock held. */
static void read_areas(
	struct soft_hwpt *hwpt, uint64_t first, uint64_t last, bool keep, struct bitmap *bitmap)
{
	struct dmamap_space *space = hwpt->ioas->space.space;
	struct dmamap_area area;

	while (dmamap_area_find(space, first, last, &area) && area.first <= first) {
		uint64_t end = area.last < last ? area.last : last;

		if (hwpt->tracking)
			dmamap_table_dirty_read(hwpt->table, first, end,
				keep ? DMAMAP_DIRTY_KEEP : 0, report, bitmap);
		else
			read_left(hwpt, first, end, keep, bitmap);
		if (end == last)
			break;
		first = end + 1;
	}
	flush(bitmap);
}

static int read_dirty(struct soft_hwpt *hwpt, const struct iommu_hwpt_get_dirty_bitmap *user)
{
	unsigned shift = (unsigned)__builtin_ctzll(user->page_size);
	struct bitmap bitmap = {
		.iova = user->iova,
		.page = soft_page_size(hwpt->ioas->space.system),
		.shift = shift,
		.bytes = (((user->length - 1) >> shift) / 8) + 1,
		.address = user->data,
	};

	/* One half gathers bits, the other is for what the caller has. */
	bitmap.chunk = calloc(2, bitmap.page);
	if (!bitmap.chunk)
		return SOFT_REFUSE(no_memory, ENOMEM, "a bitmap", bitmap.bytes);
	pthread_mutex_lock(&hwpt->ioas->lock);
	read_areas(hwpt, user->iova, user->iova + (user->length - 1),
		user->flags & IOMMU_HWPT_GET_DIRTY_BITMAP_NO_CLEAR, &bitmap);
	pthread_mutex_unlock(&hwpt->ioas->lock);
	free(bitmap.chunk);
	return 0;
}

int soft_hwpt_get_dirty(struct soft_command *command)
{
	const struct iommu_hwpt_get_dirty_bitmap *user = command->data;
	const uint32_t known = IOMMU_HWPT_GET_DIRTY_BITMAP_NO_CLEAR;
	struct soft_object *object;
	struct soft_hwpt *hwpt;
	int error;

	if (user->flags & ~known)
		return SOFT_REFUSE(
			flags, EOPNOTSUPP, "IOMMU_HWPT_GET_DIRTY_BITMAP", user->flags, known);
	if (user->__reserved)
		return SOFT_REFUSE(reserved_field, EOPNOTSUPP, "iommu_hwpt_get_dirty_bitmap",
			user->__reserved);
	error = soft_object_get(command->iommufd, user->hwpt_id, SOFT_OBJECT_HWPT, &object);
	if (error)
		return error;
	hwpt = (struct soft_hwpt *)object;
	error = check_range(hwpt->ioas, user);
	if (!error && !hwpt->dirty)
		error = SOFT_REFUSE(hwpt_untracked, EOPNOTSUPP, NULL, user->hwpt_id);
	if (!error)
		error = read_dirty(hwpt, user);
	soft_object_put(command->iommufd, object);
	return error;
}
