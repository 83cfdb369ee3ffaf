/* SPDX-License-Identifier: MIT */
/*
 * Dirty pages of a type1v2 container. Its devices can write anywhere, and none
 * says where: every page that is mapped reads as dirty, every time. What is
 * left to do is what shows: who is refused, and which bits of the user's
 * bitmap are written (drivers/vfio/vfio_iommu_type1.c, update_user_bitmap()).
 *
 * The kernel keeps a bitmap for each mapping, moves its bits in place to where
 * they are in the user's, and then clears only as many as the mapping has
 * pages. Bits that were moved past those stay, and show in the last word of the
 * next answer. They are kept here, too: type1_dma.stale has the words from the
 * mapping's last page on, which are two at most; all before is known.
 */
#include <errno.h>

#include "abi/vfio.h"
#include "soft/type1.h"

/* The largest bitmap that the kernel takes, and the pages of a mapping: bits are numbered by int.
 */
#define BITMAP_MAX (1ULL << 28)
#define PAGES_MAX  INT32_MAX

/* Words of a bitmap that are written at once. */
#define CHUNK 256

static uint64_t words_of(uint64_t bits)
{
	return bits / 64 + (bits % 64 != 0);
}

/* The kernel's access_ok() without the address bits that only some processors have. */
static bool is_user_range(uint64_t address, uint64_t size)
{
#if defined(__x86_64__)
	const uint64_t end = (1ULL << 47) - 4096;
#else
	const uint64_t end = 1ULL << 48;
#endif
	return size <= end && address <= end - size;
}

int type1_bitmap_check(const struct vfio_bitmap *bitmap, uint64_t size)
{
	/* A page size of 0 has no meaning in the kernel either. */
	uint64_t pages = bitmap->pgsize ? size >> __builtin_ctzll(bitmap->pgsize) : 0;

	if (!is_user_range((uintptr_t)bitmap->data, bitmap->size))
		return SOFT_REFUSE(
			pointer, EINVAL, "a bitmap", (uintptr_t)bitmap->data, bitmap->size);
	if (!pages || !bitmap->size || bitmap->size > BITMAP_MAX ||
		bitmap->size < words_of(pages) * 8)
		return SOFT_REFUSE(bitmap_size, EINVAL, NULL, bitmap->size, pages, BITMAP_MAX);
	return 0;
}

int type1_bitmap_fits(const struct soft_type1 *type1, const struct dmamap_area *area)
{
	uint64_t pages = (area->last - area->first) / type1_page(type1) + 1;

	if (pages > PAGES_MAX)
		return SOFT_REFUSE(bitmap_pages, EINVAL, NULL, area->first, area->last, pages,
			(uint64_t)PAGES_MAX);
	return 0;
}

/* ------------------------------------------------------------ the bitmap */

/* One mapping's bitmap, all of whose pages are set, and how far it is moved. */
struct bits {
	uint64_t n; /* pages */
	const uint64_t *stale;
	unsigned shift;
	uint64_t words; /* that take part in moving */
};

static uint64_t word_before(const struct bits *bits, uint64_t k)
{
	uint64_t full = bits->n / 64;

	if (k < full)
		return UINT64_MAX;
	return k > full ? bits->stale[1] : bits->stale[0] | ((1ULL << bits->n % 64) - 1);
}

static uint64_t word_moved(const struct bits *bits, uint64_t k)
{
	uint64_t word = word_before(bits, k);

	if (!bits->shift || k >= bits->words)
		return word;
	word <<= bits->shift;
	return k ? word | word_before(bits, k - 1) >> (64 - bits->shift) : word;
}

static void keep_stale(struct type1_dma *dma, const struct bits *bits, uint64_t first_word)
{
	uint64_t k = bits->n / 64, from = UINT64_MAX << bits->n % 64;
	uint64_t stale[2] = {
		(word_moved(bits, k) | (k ? 0 : first_word)) & from,
		/* Where the pages end with a word, there is no second one. */
		bits->n % 64 ? word_moved(bits, k + 1) : 0,
	};

	dma->stale[0] = stale[0];
	dma->stale[1] = stale[1];
}

int type1_bitmap_write(struct soft_type1 *type1, const struct vfio_bitmap *bitmap, uint64_t base,
	const struct dmamap_area *area)
{
	struct type1_dma *dma = type1_dma_of(area);
	uint64_t page = type1_page(type1), bit = (area->first - base) / page, first_word = 0;
	uint64_t stale[2] = {dma->stale[0], dma->stale[1]}, chunk[CHUNK];
	struct bits bits = {
		.n = (area->last - area->first) / page + 1,
		.stale = stale,
		.shift = bit % 64,
	};
	uint64_t user = (uintptr_t)bitmap->data + bit / 64 * 8;
	int error = 0;

	bits.words = words_of(bits.n + bits.shift);
	if (bits.shift) {
		/* The word is shared with the mapping before: what is there stays. */
		keep_stale(dma, &bits, 0);
		error = soft_copy_in(
			&first_word, (void *)(uintptr_t)user, sizeof(first_word), "a dirty bitmap");
		if (error)
			return error;
		keep_stale(dma, &bits, first_word);
	}
	for (uint64_t at = 0; at < bits.words && !error; at += CHUNK) {
		uint64_t n = bits.words - at < CHUNK ? bits.words - at : CHUNK;

		for (uint64_t k = 0; k < n; k++)
			chunk[k] = word_moved(&bits, at + k);
		if (!at)
			chunk[0] |= first_word;
		error = soft_copy_out((void *)(uintptr_t)(user + at * 8), chunk, n * sizeof(*chunk),
			"a dirty bitmap");
	}
	return error;
}

/* ------------------------------------------------------------- the ioctl */

static int start(struct soft_type1 *type1)
{
	struct dmamap_area area;
	uint64_t from = 0;
	int error;

	if (type1->tracking)
		return 0;
	while (dmamap_area_find(type1->space.space, from, UINT64_MAX, &area)) {
		error = type1_bitmap_fits(type1, &area);
		if (error)
			return error;
		type1_dma_of(&area)->stale[0] = type1_dma_of(&area)->stale[1] = 0;
		if (area.last == UINT64_MAX)
			break;
		from = area.last + 1;
	}
	type1->tracking = true;
	return 0;
}

static int get(struct soft_type1 *type1, void *argument, uint32_t argsz)
{
	const size_t at = END_OF(vfio_iommu_type1_dirty_bitmap, flags);
	struct vfio_iommu_type1_dirty_bitmap_get range;
	uint64_t page = type1_page(type1), last, from;
	struct dmamap_area area;
	int error;

	if (argsz - at < sizeof(range))
		return SOFT_REFUSE(argsz, EINVAL, "vfio_iommu_type1_dirty_bitmap_get", argsz,
			at + sizeof(range));
	error = soft_copy_in(
		&range, (char *)argument + at, sizeof(range), "vfio_iommu_type1_dirty_bitmap_get");
	if (error)
		return error;
	if (!range.size)
		return SOFT_REFUSE(length_zero, EINVAL, "a dirty bitmap", 0);
	if (__builtin_add_overflow(range.iova, range.size - 1, &last) ||
		(last == UINT64_MAX && type1_ends_wrap(type1)))
		return SOFT_REFUSE(wrap, type1_overflow(type1), "iova", range.iova, range.size);
	error = type1_bitmap_check(&range.bitmap, range.size);
	if (error)
		return error;
	if (range.bitmap.pgsize != page)
		return SOFT_REFUSE(bitmap_page, EINVAL, NULL, range.bitmap.pgsize, page);
	if (range.iova & (page - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "iova", range.iova, page);
	if (range.size & (page - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "size", range.size, page);
	if (!type1->tracking)
		return SOFT_REFUSE(tracking_off, EINVAL, NULL, 0);
	error = type1_check_cut(type1, range.iova, last);
	for (from = range.iova; !error && dmamap_area_find(type1->space.space, from, last, &area);
		from = area.last + 1) {
		error = type1_bitmap_write(type1, &range.bitmap, range.iova, &area);
		if (area.last == last)
			break;
	}
	return error;
}

int type1_dirty_pages(struct soft_type1 *type1, void *argument)
{
	const uint32_t known = VFIO_IOMMU_DIRTY_PAGES_FLAG_START |
			       VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP |
			       VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP;
	const size_t minimum = END_OF(vfio_iommu_type1_dirty_bitmap, flags);
	struct vfio_iommu_type1_dirty_bitmap user;
	int error;

	if (!type1->v2)
		return SOFT_REFUSE(dirty_v1, EACCES, NULL, 0);
	error = soft_copy_in(&user, argument, minimum, "vfio_iommu_type1_dirty_bitmap");
	if (error)
		return error;
	if (user.argsz < minimum)
		return SOFT_REFUSE(
			argsz, EINVAL, "vfio_iommu_type1_dirty_bitmap", user.argsz, minimum);
	if (user.flags & ~known || __builtin_popcount(user.flags) != 1)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_IOMMU_DIRTY_PAGES", user.flags, known);
	if (user.flags & VFIO_IOMMU_DIRTY_PAGES_FLAG_START)
		return start(type1);
	if (user.flags & VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP)
		return get(type1, argument, user.argsz);
	type1->tracking = false;
	return 0;
}
