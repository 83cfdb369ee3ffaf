/* SPDX-License-Identifier: MIT */
/*
 * IOVA units: a bitmap searched from the top. See iova_units.h.
 *
 * A run of up to 32 units is aligned, so it lies within one word: folding the
 * word's free bits onto themselves leaves a bit at each start of a free run.
 * Longer runs begin at a word, and are tried place by place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/iova_units.h"
#include "engine/pool.h"

#define WORD_BITS 64u

/* Where aligned runs of each order may begin in a word. */
static const uint64_t starts[IOVA_ORDERS] = {UINT64_MAX, 0x5555555555555555, 0x1111111111111111,
	0x0101010101010101, 0x0001000100010001, 0x0000000100000001};

/* The bits of word @index that units @first to @last are. */
static uint64_t bits_of(uint64_t index, uint64_t first, uint64_t last)
{
	uint64_t low = index * WORD_BITS, bits = UINT64_MAX;

	if (first > low)
		bits &= UINT64_MAX << (first - low);
	if (last < low + WORD_BITS - 1)
		bits &= UINT64_MAX >> (low + WORD_BITS - 1 - last);
	return bits;
}

int iova_units_start(struct iova_units *units, uint64_t first, uint64_t last)
{
	uint64_t words = last < first ? 0 : last / WORD_BITS + 1;

	*units = (struct iova_units){.first = first, .last = last};
	if (words) {
		units->word = engine_calloc(words, sizeof(uint64_t));
		if (!units->word)
			return -ENOMEM;
		memset(units->word, 0xff, first / WORD_BITS * sizeof(uint64_t));
		units->word[first / WORD_BITS] |= ~bits_of(first / WORD_BITS, first, UINT64_MAX);
		units->word[words - 1] |= ~bits_of(words - 1, 0, last);
	}
	for (unsigned order = 0; order < IOVA_ORDERS; order++)
		units->hint[order] = (int64_t)words - 1;
	pthread_mutex_init(&units->lock, NULL);
	return 0;
}

void iova_units_stop(struct iova_units *units)
{
	pthread_mutex_destroy(&units->lock);
	free(units->word);
}

static bool take_small(struct iova_units *units, unsigned order, uint64_t n, uint64_t *first)
{
	int64_t index, low = (int64_t)(units->first / WORD_BITS);

	for (index = units->hint[order]; index >= low; index--) {
		uint64_t free_bits = ~units->word[index];

		for (unsigned i = 0; i < order; i++)
			free_bits &= free_bits >> (1u << i);
		free_bits &= starts[order];
		if (free_bits) {
			unsigned bit = 63 - (unsigned)__builtin_clzll(free_bits);

			units->word[index] |= (UINT64_MAX >> (WORD_BITS - n)) << bit;
			units->hint[order] = index;
			*first = (uint64_t)index * WORD_BITS + bit;
			return true;
		}
	}
	units->hint[order] = -1;
	return false;
}

static bool run_free(const struct iova_units *units, uint64_t first, uint64_t last)
{
	for (uint64_t i = first / WORD_BITS; i <= last / WORD_BITS; i++)
		if (units->word[i] & bits_of(i, first, last))
			return false;
	return true;
}

static bool take_large(struct iova_units *units, unsigned order, uint64_t n, uint64_t *first)
{
	uint64_t align = (uint64_t)1 << order, at;

	if (!units->word || n > units->last + 1)
		return false;
	for (at = (units->last + 1 - n) & ~(align - 1); at >= units->first; at -= align) {
		if (run_free(units, at, at + n - 1)) {
			for (uint64_t i = at / WORD_BITS; i <= (at + n - 1) / WORD_BITS; i++)
				units->word[i] |= bits_of(i, at, at + n - 1);
			*first = at;
			return true;
		}
		if (at < align)
			break;
	}
	return false;
}

bool iova_units_take(struct iova_units *units, uint64_t n, uint64_t *first)
{
	unsigned order = iova_order(n);
	bool found;

	if (order > 62)
		return false;
	pthread_mutex_lock(&units->lock);
	if (order < IOVA_ORDERS)
		found = take_small(units, order, n, first);
	else
		found = take_large(units, order, n, first);
	pthread_mutex_unlock(&units->lock);
	return found;
}

void iova_units_give(struct iova_units *units, uint64_t first, uint64_t n)
{
	uint64_t last = first + n - 1;

	pthread_mutex_lock(&units->lock);
	for (uint64_t i = first / WORD_BITS; i <= last / WORD_BITS; i++)
		units->word[i] &= ~bits_of(i, first, last);
	for (unsigned order = 0; order < IOVA_ORDERS; order++)
		if (units->hint[order] < (int64_t)(last / WORD_BITS))
			units->hint[order] = (int64_t)(last / WORD_BITS);
	pthread_mutex_unlock(&units->lock);
}

uint64_t iova_units_largest(const struct iova_units *units)
{
	uint64_t largest = 0;

	if (units->last < units->first)
		return 0;
	for (uint64_t align = 1; align <= units->last; align *= 2) {
		uint64_t at = (units->first + align - 1) & ~(align - 1);
		uint64_t room = at <= units->last ? units->last + 1 - at : 0;

		if (room > align)
			room = align;
		/* Short runs are taken in powers of two only. */
		while (room && iova_rounded(room) > room)
			room--;
		if (room > largest)
			largest = room;
	}
	return largest;
}
