/* SPDX-License-Identifier: MIT */
/*
 * IOVAs to addresses: the kernel is asked once for each range, gives a file,
 * and just that range of it is mapped. The bounce range is special: the kernel
 * can be made to bounce through memory of this process, which is then looked at
 * in place of the file, and cannot fault.
 *
 * That switch is made when the range is first asked for, under the lock and
 * before anyone was told an address in it, so that nobody holds an address of
 * what it replaces. A registration of an earlier life of the driver is dropped
 * first: it may belong to bounce memory that is gone (Linux 7.3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/vduse.h"

/* ---------------------------------------------------------------------- umem */

static int register_umem(struct dmamap_vduse *vduse)
{
	struct vduse_iova_umem umem = {
		.uaddr = (uint64_t)(uintptr_t)vduse->umem, .size = vduse->umem_size};

	vduse_ioctl(vduse, VDUSE_IOTLB_DEREG_UMEM, &umem);
	return vduse_ioctl(vduse, VDUSE_IOTLB_REG_UMEM, &umem);
}

static void free_umem(struct dmamap_vduse *vduse)
{
	if (!vduse->umem)
		return;
	munmap(vduse->umem, vduse->umem_size);
	vduse->umem = NULL;
}

/* Whether the bounce range, @size bytes from 0, is this process's memory now. */
static bool take_umem(struct dmamap_vduse *vduse, size_t size)
{
	void *memory;

	if (vduse->umem && vduse->umem_size == size && !register_umem(vduse))
		return true;
	free_umem(vduse);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	madvise(memory, size, MADV_HUGEPAGE);
	/* A child that shared the pages would turn writes into copies. */
	madvise(memory, size, MADV_DONTFORK);
	vduse->umem = memory;
	vduse->umem_size = size;
	if (register_umem(vduse)) {
		free_umem(vduse);
		return false;
	}
	atomic_fetch_add(&vduse->generation, 1);
	return true;
}

void dmamap_vduse_umem(struct dmamap_vduse *vduse, struct iovec *memory, unsigned *generation)
{
	pthread_mutex_lock(&vduse->lock);
	*memory = (struct iovec){vduse->umem, vduse->umem ? vduse->umem_size : 0};
	*generation = vduse->umem ? atomic_load(&vduse->generation) : 0;
	pthread_mutex_unlock(&vduse->lock);
}

unsigned dmamap_vduse_umem_generation(struct dmamap_vduse *vduse)
{
	return atomic_load_explicit(&vduse->generation, memory_order_relaxed);
}

/* ------------------------------------------------------------------ mappings */

static void unmap(struct dmamap_vduse *vduse, struct vduse_mapping *mapping)
{
	if (mapping->address)
		vduse->system->ops->munmap(vduse->system, mapping->address, mapping->length);
}

/* The first mapping that does not end before @iova. */
static size_t position(const struct dmamap_vduse *vduse, uint64_t iova)
{
	size_t low = 0, high = vduse->n_mappings;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (vduse->mappings[middle].region.last < iova)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Room for one more, here and among the retired. */
static int grow(struct dmamap_vduse *vduse)
{
	size_t room = vduse->mappings_room ? vduse->mappings_room * 2 : 16;
	struct vduse_mapping *mappings;

	if (vduse->n_mappings + vduse->n_retired + 1 < vduse->mappings_room)
		return 0;
	mappings = realloc(vduse->mappings, room * sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	vduse->mappings = mappings;
	mappings = realloc(vduse->retired, room * sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	vduse->retired = mappings;
	vduse->mappings_room = room;
	return 0;
}

/* Those that overlap a new one are out of date; whoever looked at them may do so for now. */
static void insert(struct dmamap_vduse *vduse, const struct vduse_mapping *mapping)
{
	size_t at = position(vduse, mapping->region.first), end = at;

	while (end < vduse->n_mappings && vduse->mappings[end].region.first <= mapping->region.last)
		vduse->retired[vduse->n_retired++] = vduse->mappings[end++];
	memmove(&vduse->mappings[at + 1], &vduse->mappings[end],
		(vduse->n_mappings - end) * sizeof(*mapping));
	vduse->n_mappings = vduse->n_mappings - (end - at) + 1;
	vduse->mappings[at] = *mapping;
}

static int map_file(struct dmamap_vduse *vduse, int fd, const struct vduse_iotlb_entry *entry,
	struct vduse_mapping *mapping)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), below = entry->offset & (page - 1);
	uint64_t bytes = entry->last - entry->start + 1;
	int prot = 0, error;
	void *address;

	/* A range of all 2^64, or one that no address space holds. */
	if (!bytes || bytes > SIZE_MAX / 4)
		return -EFAULT;
	if (entry->perm & VDUSE_ACCESS_RO) {
		prot |= PROT_READ;
		mapping->region.prot |= DMAMAP_READ;
	}
	if (entry->perm & VDUSE_ACCESS_WO) {
		prot |= PROT_WRITE;
		mapping->region.prot |= DMAMAP_WRITE;
	}
	mapping->length = (size_t)((bytes + below + page - 1) & ~(page - 1));
	error = vduse->system->ops->mmap(vduse->system, NULL, mapping->length, prot, MAP_SHARED, fd,
		entry->offset - below, &address);
	if (error)
		return error;
	mapping->address = address;
	mapping->region.va = (unsigned char *)address + below;
	return 0;
}

/* Ask the kernel for the range that holds @iova, and map it. */
static int ask(struct dmamap_vduse *vduse, uint64_t iova, struct vduse_mapping *mapping)
{
	struct vduse_iotlb_entry entry = {.start = iova, .last = iova};
	struct vduse_iova_info info = {.start = iova, .last = iova};
	int fd, error = 0;

	fd = vduse_ioctl(vduse, VDUSE_IOTLB_GET_FD, &entry);
	if (fd < 0)
		return -EFAULT;
	*mapping = (struct vduse_mapping){.region = {.first = entry.start, .last = entry.last}};
	if (iova < entry.start || iova > entry.last)
		error = -EFAULT;
	else if (vduse->umem_wanted && !vduse_ioctl(vduse, VDUSE_IOTLB_GET_INFO, &info) &&
		 info.capability & VDUSE_IOVA_CAP_UMEM && !info.start && info.last == entry.last &&
		 take_umem(vduse, (size_t)info.last + 1)) {
		mapping->region.va = vduse->umem;
		mapping->region.prot = DMAMAP_READ | DMAMAP_WRITE;
	} else
		error = map_file(vduse, fd, &entry, mapping);
	vduse->system->ops->close(vduse->system, fd);
	return error ? -EFAULT : 0;
}

int vduse_find(struct dmamap_dma *dma, uint64_t iova, struct dmamap_dma_region *region)
{
	struct dmamap_vduse *vduse = (struct dmamap_vduse *)dma;
	struct vduse_mapping mapping;
	int error = 0;
	size_t at;

	pthread_mutex_lock(&vduse->lock);
	at = position(vduse, iova);
	if (at < vduse->n_mappings && vduse->mappings[at].region.first <= iova) {
		*region = vduse->mappings[at].region;
		goto unlock;
	}
	error = grow(vduse);
	if (error)
		goto unlock;
	error = ask(vduse, iova, &mapping);
	if (error)
		goto unlock;
	insert(vduse, &mapping);
	*region = mapping.region;
unlock:
	pthread_mutex_unlock(&vduse->lock);
	return error;
}

void dmamap_vduse_forget(struct dmamap_vduse *vduse, uint64_t first, uint64_t last)
{
	size_t at, end;

	pthread_mutex_lock(&vduse->lock);
	at = end = position(vduse, first);
	while (end < vduse->n_mappings && vduse->mappings[end].region.first <= last)
		unmap(vduse, &vduse->mappings[end++]);
	if (end > at)
		memmove(&vduse->mappings[at], &vduse->mappings[end],
			(vduse->n_mappings - end) * sizeof(*vduse->mappings));
	vduse->n_mappings -= end - at;
	while (vduse->n_retired)
		unmap(vduse, &vduse->retired[--vduse->n_retired]);
	pthread_mutex_unlock(&vduse->lock);
}

/* After the device was closed, which let go of umem. */
void vduse_unmap_all(struct dmamap_vduse *vduse)
{
	dmamap_vduse_forget(vduse, 0, UINT64_MAX);
	free_umem(vduse);
}
