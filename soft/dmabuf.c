/* SPDX-License-Identifier: MIT */
/*
 * A dma-buf: ranges of a device's BAR as a file of their own, which IOMMUFD can
 * map where it cannot pin the BAR (drivers/vfio/pci/vfio_pci_dmabuf.c, and the
 * dma-buf part of drivers/iommu/iommufd/pages.c).
 *
 * It is revoked while the device's memory decoding is off, and for ever when
 * the device is closed. Whatever was mapped of it at that moment stays an area,
 * but no device reaches anything there any more, not even when the dma-buf
 * comes back: only what is mapped later works.
 *
 * A device knows its dma-bufs, a dma-buf the memories that were made of it:
 * system->dmabufs_lock guards these lists and every revoked state. Taking
 * mappings away needs an IOAS's lock, which comes before; so the memories are
 * marked first, and the IOASes looked through after. A mapping that is being
 * made sees the mark or is found.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "abi/vfio.h"
#include "soft/soft.h"

/* What files of real dma-bufs are on. */
#define DMA_BUF_FILES 0x444d4142

struct dmabuf_memory {
	struct soft_memory soft;
	struct soft_pins pins;
	struct soft_dmabuf *dmabuf; /* with a reference to its file */
	struct soft_iommufd *iommufd;
	uint64_t start;			    /* in the dma-buf */
	bool revoked;			    /* dmabufs_lock */
	struct dmabuf_memory *next, **link; /* dmabufs_lock */
};

struct soft_dmabuf {
	struct soft_file file;
	struct soft_device *device;	  /* dmabufs_lock; NULL: closed */
	struct soft_dmabuf *next, **link; /* dmabufs_lock */
	struct dmabuf_memory *memories;	  /* dmabufs_lock */
	bool revoked;			  /* dmabufs_lock */
	uint64_t size;
	size_t n_ranges;
	char *host; /* of the only range */
};

static void lock(struct soft_system *system)
{
	pthread_mutex_lock(&system->dmabufs_lock);
}

static void unlock(struct soft_system *system)
{
	pthread_mutex_unlock(&system->dmabufs_lock);
}

/* ---------------------------------------------------------------- its file */

static void dmabuf_release(struct soft_file *file)
{
	struct soft_dmabuf *dmabuf = (struct soft_dmabuf *)file;

	lock(file->system);
	if (dmabuf->device) {
		*dmabuf->link = dmabuf->next;
		if (dmabuf->next)
			dmabuf->next->link = dmabuf->link;
	}
	unlock(file->system);
	free(dmabuf);
}

static int dmabuf_mmap(struct soft_file *file, void *address, size_t length, int prot, int flags,
	uint64_t offset, void **out)
{
	(void)address, (void)length, (void)prot, (void)flags, (void)out;
	return SOFT_REFUSE(no_io, EINVAL, file->ops->name, offset);
}

static const struct soft_file_ops dmabuf_ops = {
	.name = "dma-buf",
	.mmap = dmabuf_mmap,
	.release = dmabuf_release,
};

/* What vfio_pci_dmabuf.c checks of the ranges, all of them and then each in the BAR. */
static int check_ranges(const struct soft_bar *bar, uint64_t page,
	const struct vfio_region_dma_range *ranges, size_t n, uint64_t *size)
{
	uint64_t start, end;

	*size = 0;
	for (size_t i = 0; i < n; i++) {
		if (!ranges[i].length)
			return SOFT_REFUSE(length_zero, EINVAL, "a range of a dma-buf", 0);
		if ((ranges[i].offset | ranges[i].length) & (page - 1))
			return SOFT_REFUSE(misaligned, EINVAL, "a range's offset or length",
				ranges[i].offset | ranges[i].length, page);
		/* The topmost bit is a flag for the kernel. */
		if (__builtin_add_overflow(*size, ranges[i].length, size))
			return SOFT_REFUSE(wrap, EINVAL, "ranges of a dma-buf", *size, 0);
	}
	if (*size >> 63)
		return SOFT_REFUSE(too_large, EINVAL, "a dma-buf", *size);
	for (size_t i = 0; i < n; i++) {
		if (__builtin_add_overflow(bar->address, ranges[i].offset, &start) ||
			__builtin_add_overflow(start, ranges[i].length, &end))
			return SOFT_REFUSE(
				wrap, EOVERFLOW, "offset", ranges[i].offset, ranges[i].length);
		if (end > bar->address + bar->size)
			return SOFT_REFUSE(bar_end, EINVAL, NULL, ranges[i].offset,
				ranges[i].length, bar->size);
	}
	return 0;
}

int soft_dmabuf_create(struct soft_device *device, unsigned bar,
	const struct vfio_region_dma_range *ranges, size_t n, unsigned open_flags)
{
	struct soft_system *system = device->system;
	struct soft_dmabuf *made;
	uint64_t size;
	int error, fd;

	error = check_ranges(&device->bars[bar], soft_page_size(system), ranges, n, &size);
	if (error)
		return error;
	made = calloc(1, sizeof(*made));
	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a dma-buf", size);
	soft_file_init(&made->file, &dmabuf_ops, system);
	made->size = size;
	made->n_ranges = n;
	made->host = (char *)device->bars[bar].host + ranges[0].offset;
	lock(system);
	made->device = device;
	made->revoked = !soft_pci_decodes(device);
	made->link = &device->dmabufs;
	made->next = device->dmabufs;
	if (made->next)
		made->next->link = &made->next;
	device->dmabufs = made;
	unlock(system);
	fd = soft_file_install(&made->file, "dmamap:dmabuf");
	if (fd < 0)
		soft_file_put(&made->file);
	else if (!(open_flags & O_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	return fd;
}

/* ------------------------------------------------------------ its memories */

static int dmabuf_lookup(struct dmamap_memory *base, struct dmamap_lookup *lookup)
{
	struct dmabuf_memory *memory = (struct dmabuf_memory *)base;

	lookup->host = (uintptr_t)memory->dmabuf->host + memory->start + lookup->offset;
	lookup->length = base->length - lookup->offset;
	/* A BAR is one piece. */
	lookup->contiguous = 63;
	return 0;
}

static void memory_release(struct dmamap_memory *base)
{
	struct dmabuf_memory *memory = (struct dmabuf_memory *)base;
	struct soft_system *system = memory->dmabuf->file.system;

	lock(system);
	*memory->link = memory->next;
	if (memory->next)
		memory->next->link = memory->link;
	unlock(system);
	soft_file_put(&memory->dmabuf->file);
	soft_pins_fini(&memory->pins);
	free(memory);
}

static const struct dmamap_memory_ops memory_ops = {
	.lookup = dmabuf_lookup,
	.release = memory_release,
};

/* The dma-buf as IOMMUFD attaches to it: one range, and not revoked. */
static int attach(struct dmabuf_memory *memory, struct soft_dmabuf *dmabuf)
{
	struct soft_system *system = dmabuf->file.system;
	int error = 0;

	lock(system);
	if (dmabuf->revoked) {
		error = SOFT_REFUSE(dmabuf_revoked, ENODEV, NULL, 0);
	} else if (dmabuf->n_ranges != 1) {
		error = SOFT_REFUSE(dmabuf_ranges, EOPNOTSUPP, NULL, dmabuf->n_ranges);
	} else {
		memory->link = &dmabuf->memories;
		memory->next = dmabuf->memories;
		if (memory->next)
			memory->next->link = &memory->next;
		dmabuf->memories = memory;
	}
	unlock(system);
	return error;
}

static int check_size(uint64_t size, uint64_t start, uint64_t length, uint64_t page)
{
	if (size <= start + length - 1)
		return SOFT_REFUSE(file_end, EINVAL, NULL, start, start + length - 1, size);
	if (length / page >= UINT32_MAX)
		return SOFT_REFUSE(too_large, EINVAL, "a piece of a dma-buf", length);
	return 0;
}

static int make_memory(struct soft_iommufd *iommufd, struct soft_dmabuf *dmabuf, uint64_t start,
	uint64_t length, unsigned prot, struct dmamap_memory **out)
{
	struct soft_system *system = dmabuf->file.system;
	uint64_t page = soft_page_size(system);
	struct dmabuf_memory *made;
	int error = check_size(dmabuf->size, start, length, page);

	if (error)
		return error;
	made = calloc(1, sizeof(*made));
	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a mapping", length);
	dmamap_memory_init(&made->soft.base, &memory_ops, length,
		prot & DMAMAP_WRITE ? DMAMAP_READ | DMAMAP_WRITE : DMAMAP_READ);
	made->soft.kind = SOFT_MEMORY_DMABUF;
	made->soft.phase = (unsigned)(start & (page - 1));
	/* Its place in the dma-buf, down to a page, and then into it again: as the kernel has it.
	 */
	made->soft.origin = start;
	made->soft.pins = &made->pins;
	soft_pins_init(&made->pins, system, true);
	made->iommufd = iommufd;
	made->dmabuf = dmabuf;
	made->start = start;
	error = attach(made, dmabuf);
	if (error) {
		free(made);
		return error;
	}
	soft_file_get(&dmabuf->file);
	*out = &made->soft.base;
	return 0;
}

/* A dma-buf of some other driver of the real kernel. */
static int refuse_foreign(int fd, uint64_t start, uint64_t length, uint64_t page)
{
	struct statfs filesystem;
	off_t size;
	int error;

	if (fstatfs(fd, &filesystem) || filesystem.f_type != DMA_BUF_FILES)
		return 0;
	size = lseek(fd, 0, SEEK_END);
	error = check_size(size < 0 ? 0 : (uint64_t)size, start, length, page);
	return error ? error : SOFT_REFUSE(dmabuf_foreign, EOPNOTSUPP, NULL, (unsigned)fd);
}

int soft_memory_dmabuf(struct soft_iommufd *iommufd, int fd, uint64_t start, uint64_t length,
	unsigned prot, struct dmamap_memory **memory)
{
	struct soft_system *system = iommufd->file.system;
	struct soft_file *file = soft_file_find(system, fd);
	int error = 0;

	*memory = NULL;
	if (!file)
		return refuse_foreign(fd, start, length, soft_page_size(system));
	if (file->ops == &dmabuf_ops)
		error = make_memory(
			iommufd, (struct soft_dmabuf *)file, start, length, prot, memory);
	soft_file_put(file);
	return error;
}

bool soft_memory_revoked(const struct soft_memory *memory)
{
	const struct dmabuf_memory *is = (const struct dmabuf_memory *)memory;
	struct soft_system *system;
	bool revoked;

	if (memory->kind != SOFT_MEMORY_DMABUF)
		return false;
	system = is->dmabuf->file.system;
	lock(system);
	revoked = is->revoked;
	unlock(system);
	return revoked;
}

/* ---------------------------------------------------------------- revoking */

/* Marks the memories of a dma-buf; an IOMMUFD that has some comes back, with a reference. */
static struct soft_iommufd *mark(struct soft_dmabuf *dmabuf)
{
	for (struct dmabuf_memory *memory = dmabuf->memories; memory; memory = memory->next) {
		if (memory->revoked)
			continue;
		memory->revoked = true;
		/* One that is being closed has no device left that could reach anything. */
		if (soft_file_try_get(&memory->iommufd->file))
			return memory->iommufd;
	}
	return NULL;
}

/* A device's next dma-buf that has something to revoke, or only to mark. */
static struct soft_iommufd *revoke_next(struct soft_device *device)
{
	struct soft_iommufd *found = NULL;

	lock(device->system);
	for (struct soft_dmabuf *one = device->dmabufs; one && !found; one = one->next) {
		one->revoked = true;
		found = mark(one);
	}
	unlock(device->system);
	return found;
}

void soft_dmabuf_move(struct soft_device *device, bool revoked)
{
	struct soft_iommufd *iommufd;

	while (revoked && (iommufd = revoke_next(device))) {
		soft_iommufd_revoke(iommufd);
		soft_file_put(&iommufd->file);
	}
	if (revoked)
		return;
	lock(device->system);
	for (struct soft_dmabuf *one = device->dmabufs; one; one = one->next)
		one->revoked = false;
	unlock(device->system);
}

void soft_dmabuf_cleanup(struct soft_device *device)
{
	soft_dmabuf_move(device, true);
	lock(device->system);
	while (device->dmabufs) {
		struct soft_dmabuf *one = device->dmabufs;

		device->dmabufs = one->next;
		if (one->next)
			one->next->link = &device->dmabufs;
		one->device = NULL;
	}
	unlock(device->system);
}
