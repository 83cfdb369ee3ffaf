/* SPDX-License-Identifier: MIT */
/*
 * Memory that is only ever taken, and goes all at once; and a table of names
 * in it, each with a number.
 */
#ifndef REPLAY_ARENA_H
#define REPLAY_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
	struct arena_chunk *chunks; /**< newest first */
	char *at, *end;		    /**< what is free of the newest */
};

/** arena_take() - @size bytes, aligned to 8, not zeroed. Return: NULL: no memory. */
void *arena_take(struct arena *arena, size_t size);
/** arena_text() - A copy with a NUL behind it. Return: NULL: no memory. */
char *arena_text(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena);

/** struct names - Open addressing; @n of @room slots are in use. */
struct names {
	struct names_slot {
		const char *name;
		uint32_t length;
		uint32_t value;
	} * slots;
	size_t n, room;
};

/** names_find() - The number of that name, or -1. */
int64_t names_find(const struct names *names, const char *name, size_t length);
/** names_set() - Give a name a number, in place of its old one. @name is kept.
 * Return: 0; -ENOMEM. */
int names_set(struct names *names, const char *name, size_t length, uint32_t value);
void names_free(struct names *names);

#endif
