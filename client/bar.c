/* SPDX-License-Identifier: MIT */
/*
 * BARs in this process. A kernel maps a BAR in large pages only where the
 * virtual address is congruent to the BAR's own, and finds it in as large
 * steps when it is mapped for DMA; a BAR's address is a multiple of its size,
 * so aligning the virtual address to the size is enough. 1 GiB is the largest
 * page that helps.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/vfio.h"
#include "client/internal.h"

#define BARS	     (VFIO_PCI_BAR5_REGION_INDEX + 1)
#define MOST_ALIGNED (UINT64_C(1) << 30)

static int region_info(struct dmamap_client *client, unsigned index, struct vfio_region_info *info)
{
	*info = (struct vfio_region_info){.argsz = sizeof(*info), .index = index};
	return client_ioctl(client, client->device, VFIO_DEVICE_GET_REGION_INFO, info);
}

int dmamap_client_bar_size(struct dmamap_client *client, unsigned index, uint64_t *size)
{
	struct vfio_region_info info;
	int error;

	if (index >= BARS)
		return -EINVAL;
	error = region_info(client, index, &info);
	if (error < 0)
		return error;
	*size = info.flags & VFIO_REGION_INFO_FLAG_MMAP ? info.size : 0;
	return 0;
}

/*
 * Address space for @length bytes, @offset past a multiple of @alignment; NULL
 * where there is no room. It is held by an inaccessible mapping until the BAR
 * takes its place; what alignment needs beside it is given back at once.
 */
static char *reserve(uint64_t length, uint64_t alignment, uint64_t offset)
{
	uint64_t total, head;
	char *all, *start;

	if (__builtin_add_overflow(length, alignment, &total) ||
		__builtin_add_overflow(total, offset, &total) || total > PTRDIFF_MAX)
		return NULL;
	all = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	head = (-(uintptr_t)all & (alignment - 1)) + offset;
	start = all + head;
	if (head)
		munmap(all, head);
	munmap(start + length, total - head - length);
	return start;
}

int dmamap_client_bar_mmap(struct dmamap_client *client, unsigned index, uint64_t offset,
	struct dmamap_bar *bar, struct dmamap_reason *why)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct vfio_region_info info;
	uint64_t length, alignment;
	int prot = 0, error = -ENOMEM;
	void *start, *va;

	if (index >= BARS || region_info(client, index, &info) < 0 || !info.size ||
		!(info.flags & VFIO_REGION_INFO_FLAG_MMAP))
		return DMAMAP_REFUSE(why, &client_reason_bar, ENODEV, client->bdf, index);
	if (offset % page)
		return DMAMAP_REFUSE(
			why, &client_reason_bar_offset, EINVAL, NULL, index, offset, page);
	if (info.flags & VFIO_REGION_INFO_FLAG_READ)
		prot |= PROT_READ;
	if (info.flags & VFIO_REGION_INFO_FLAG_WRITE)
		prot |= PROT_WRITE;
	length = (info.size + page - 1) & -page;
	for (alignment = page; alignment < length && alignment < MOST_ALIGNED; alignment *= 2)
		;
	start = reserve(length, alignment, offset);
	if (start) {
		error = client->system->ops->mmap(client->system, start, length, prot,
			MAP_SHARED | MAP_FIXED, client->device, info.offset, &va);
		if (error)
			munmap(start, length);
	}
	if (error) {
		const uint64_t numbers[] = {index, info.size, (uint64_t)-error};

		return client_explain(
			client->system, client_rules_bar, error, client->bdf, numbers, 3, why);
	}
	*bar = (struct dmamap_bar){.va = va, .length = length, .index = index};
	return 0;
}

int dmamap_client_bar_munmap(struct dmamap_client *client, struct dmamap_bar *bar)
{
	int error = client->system->ops->munmap(client->system, bar->va, bar->length);

	if (!error)
		*bar = (struct dmamap_bar){.index = bar->index};
	return error;
}
