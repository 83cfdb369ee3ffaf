/* SPDX-License-Identifier: MIT */
/*
 * Which IOVAs to use: first fit in the allowed ranges, kept in an address space
 * of the engine that has no table and no memory. It knows only what was taken
 * here, so that a range is free again when it is given back, and not before.
 */
#include <errno.h>

#include "client/internal.h"

int dmamap_client_iova_allocate(struct dmamap_client *client, uint64_t length, uint64_t alignment,
	uint64_t *iova, struct dmamap_reason *why)
{
	struct dmamap_map map = {
		.last = length - 1,
		.flags = DMAMAP_MAP_ALLOCATE,
		.alignment = alignment,
	};
	int error;

	if (!length || !alignment || alignment & (alignment - 1))
		return DMAMAP_REFUSE(
			why, &client_reason_iova_size, EINVAL, NULL, length, alignment);
	error = dmamap_map(client->iovas, &map, why);
	if (!error)
		*iova = map.first;
	return error;
}

void dmamap_client_iova_free(struct dmamap_client *client, uint64_t iova, uint64_t length)
{
	dmamap_unmap(client->iovas, iova, iova + length - 1, NULL, NULL);
}
