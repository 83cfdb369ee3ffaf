/* SPDX-License-Identifier: MIT */
/* What the files of VDUSE's user side share. */
#ifndef DMAMAP_CLIENT_VDUSE_H
#define DMAMAP_CLIENT_VDUSE_H

#include <pthread.h>
#include <stdatomic.h>

#include "abi/vduse.h"
#include "dmamap/vduse_client.h"

/* Part of an IOTLB file, or umem, as mapped here. */
struct vduse_mapping {
	struct dmamap_dma_region region;
	void *address; /* what was mapped, from a page on; NULL: umem, not to be unmapped */
	size_t length;
};

/*
 * @dma: first, so that it can be found from it
 * @lock: guards all that follows it
 * @mappings: sorted, apart from each other
 * @retired: replaced while someone may still have looked at them
 * @umem: NULL while there is none
 * @generation: written under the lock, read without
 */
struct dmamap_vduse {
	struct dmamap_dma dma;
	struct dmamap_system *system;
	int control;
	int device;
	bool found;
	bool umem_wanted;
	uint32_t n_queues;
	char name[VDUSE_NAME_MAX];

	pthread_mutex_t lock;
	struct vduse_mapping *mappings;
	size_t n_mappings;
	size_t mappings_room;
	struct vduse_mapping *retired;
	size_t n_retired;
	void *umem;
	size_t umem_size;
	atomic_uint generation;
};

int vduse_find(struct dmamap_dma *dma, uint64_t iova, struct dmamap_dma_region *region);
void vduse_unmap_all(struct dmamap_vduse *vduse);

static inline int vduse_ioctl(struct dmamap_vduse *vduse, unsigned long request, void *argument)
{
	return vduse->system->ops->ioctl(vduse->system, vduse->device, request, argument);
}

#endif
