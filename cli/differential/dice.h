/* SPDX-License-Identifier: MIT */
/*
 * Random numbers that a printed seed brings back: xoshiro256** by Blackman and
 * Vigna, its state filled from the seed by splitmix64.
 */
#ifndef DIFFERENTIAL_DICE_H
#define DIFFERENTIAL_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dice {
	uint64_t state[4];
};

static inline uint64_t dice_splitmix(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/** dice_start() - One of 2^64 streams of each seed. */
static inline void dice_start(struct dice *dice, uint64_t seed, uint64_t stream)
{
	uint64_t mixed = dice_splitmix(&seed) ^ stream;

	for (unsigned i = 0; i < 4; i++)
		dice->state[i] = dice_splitmix(&mixed);
}

static inline uint64_t dice_next(struct dice *dice)
{
	uint64_t *s = dice->state;
	uint64_t x = s[1] * 5, result = (x << 7 | x >> 57) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return result;
}

/** dice_below() - 0 to @n - 1; @n is small, so that the bias does not matter. */
static inline unsigned dice_below(struct dice *dice, unsigned n)
{
	return (unsigned)((dice_next(dice) >> 32) * n >> 32);
}

/** dice_chance() - True @n times in a thousand. */
static inline bool dice_chance(struct dice *dice, unsigned n)
{
	return dice_below(dice, 1000) < n;
}

/** DICE_OF() - An element of an array. */
#define DICE_OF(dice, array) ((array)[dice_below((dice), sizeof(array) / sizeof((array)[0]))])

#endif
