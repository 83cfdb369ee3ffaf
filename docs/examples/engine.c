/* SPDX-License-Identifier: MIT */
/* The engine alone: 1 MiB of memory at an IOVA, and a device that reads it. */
#include <dmamap/engine.h>
#include <stdio.h>
#include <string.h>

static char ram[1 << 20], seen[1 << 20];

int main(void)
{
	static const struct dmamap_table_config shape = {.iova_bits = 48};
	struct dmamap_map map = {.first = 0x40000000, .last = 0x400fffff, .prot = DMAMAP_READ};
	struct dmamap_space *space;
	struct dmamap_table *table;
	struct dmamap_access *access;
	struct dmamap_reason why = {0};
	char text[200];

	memset(ram, 'x', sizeof(ram));
	if (dmamap_space_create(NULL, &space) || dmamap_table_create(space, &shape, &table, &why) ||
		dmamap_access_create(table, &access) ||
		dmamap_memory_user(ram, sizeof(ram), map.prot, 0, &map.memory, &why) ||
		dmamap_map(space, &map, &why) ||
		dmamap_read(access, map.first, seen, sizeof(seen), &why))
		return 1;
	printf("dmamap %s: %s\n", dmamap_version(),
		memcmp(ram, seen, sizeof(ram)) ? "different" : "the same");
	if (dmamap_read(access, map.last, seen, 2, &why) < 0) {
		dmamap_reason_format(&why, text, sizeof(text));
		printf("%s\n", text);
	}
	dmamap_access_destroy(access);
	dmamap_memory_put(map.memory);
	dmamap_space_destroy(space);
	return 0;
}
