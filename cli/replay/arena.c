/* SPDX-License-Identifier: MIT */
/* Memory that goes all at once, and names with numbers. */
#include "arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Large enough that a million statements take some hundred of them. */
#define CHUNK (1 << 20)

struct arena_chunk {
	struct arena_chunk *next;
	uint64_t bytes[];
};

void *arena_take(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk;
	size_t room;
	char *taken;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (!arena->at || (size_t)(arena->end - arena->at) < size) {
		room = size > CHUNK / 4 ? size : CHUNK;
		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		/* One that is as large as what it is for leaves the old one in use. */
		if (room == size)
			return chunk->bytes;
		arena->at = (char *)chunk->bytes;
		arena->end = arena->at + room;
	}
	taken = arena->at;
	arena->at += size;
	return taken;
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_take(arena, length + 1);

	if (copy) {
		memcpy(copy, text, length);
		copy[length] = '\0';
	}
	return copy;
}

void arena_free(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *next = arena->chunks->next;

		free(arena->chunks);
		arena->chunks = next;
	}
	arena->at = arena->end = NULL;
}

static size_t hash(const char *name, size_t length)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)name[i]) * 0x100000001b3ull;
	return h ^ h >> 32;
}

/* The slot that has the name, or the free one where it would go. */
static struct names_slot *slot_of(const struct names *names, const char *name, size_t length)
{
	size_t i = hash(name, length) & (names->room - 1);

	while (names->slots[i].name &&
		(names->slots[i].length != length || memcmp(names->slots[i].name, name, length)))
		i = (i + 1) & (names->room - 1);
	return &names->slots[i];
}

int64_t names_find(const struct names *names, const char *name, size_t length)
{
	const struct names_slot *slot;

	if (!names->room)
		return -1;
	slot = slot_of(names, name, length);
	return slot->name ? (int64_t)slot->value : -1;
}

static int grow(struct names *names)
{
	struct names larger = {.room = names->room ? 2 * names->room : 64, .n = names->n};

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < names->room; i++)
		if (names->slots[i].name)
			*slot_of(&larger, names->slots[i].name, names->slots[i].length) =
				names->slots[i];
	free(names->slots);
	*names = larger;
	return 0;
}

int names_set(struct names *names, const char *name, size_t length, uint32_t value)
{
	struct names_slot *slot;

	if (2 * (names->n + 1) > names->room && grow(names))
		return -ENOMEM;
	slot = slot_of(names, name, length);
	if (!slot->name) {
		names->n++;
		slot->name = name;
		slot->length = (uint32_t)length;
	}
	slot->value = value;
	return 0;
}

void names_free(struct names *names)
{
	free(names->slots);
	*names = (struct names){0};
}
