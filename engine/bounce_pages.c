/* SPDX-License-Identifier: MIT */
/*
 * Bounce pages: the domain's file, and the memory in it.
 *
 * The file is sparse, and a byte's offset is its IOVA. A bounce page gets its
 * memory, all zero, when it is first mapped: the kernel is told to populate it,
 * since a touch that finds no memory would be a signal instead of an error.
 * Whoever does so first publishes the page (compare and swap) and counts it;
 * populating it twice does nothing, so that nobody waits.
 *
 * The file is sealed against a change of its size: a device that cut it off
 * would kill the driver with the next copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/bounce_domain.h"
#include "engine/pool.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

int file_open(struct dmamap_bounce *bounce)
{
	int rc;

	if (fail_now())
		return -ENOMEM;
	bounce->fd = memfd_create("dmamap:bounce", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (bounce->fd < 0)
		return -errno;
	if (ftruncate(bounce->fd, (off_t)bounce->file_size) ||
		fcntl(bounce->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto failed;
	bounce->file = mmap(NULL, bounce->file_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, bounce->fd, 0);
	if (bounce->file == MAP_FAILED)
		goto failed;
	return 0;
failed:
	rc = -errno;
	close(bounce->fd);
	return rc;
}

void file_close(struct dmamap_bounce *bounce)
{
	munmap(bounce->file, bounce->file_size);
	close(bounce->fd);
}

int file_fill(struct dmamap_bounce *bounce, uint64_t offset, uint64_t size)
{
	uint64_t first = offset & ~(bounce->host_page - 1);
	uint64_t end = (offset + size + bounce->host_page - 1) & ~(bounce->host_page - 1);

	if (fail_now())
		return -ENOMEM;
	while (madvise(bounce->file + first, end - first, MADV_POPULATE_WRITE))
		if (errno != EINTR && errno != EAGAIN)
			return -ENOMEM;
	return 0;
}

int file_drop(struct dmamap_bounce *bounce, uint64_t offset, uint64_t size)
{
	while (fallocate(
		bounce->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size))
		if (errno != EINTR)
			return -errno;
	return 0;
}

static bool there(const struct dmamap_bounce *bounce, uint64_t page)
{
	return __atomic_load_n(&bounce->page[page], __ATOMIC_ACQUIRE);
}

static void publish(struct dmamap_bounce *bounce, uint64_t page)
{
	unsigned char absent = 0;

	if (__atomic_compare_exchange_n(
		    &bounce->page[page], &absent, 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		__atomic_add_fetch(&bounce->pages, 1, __ATOMIC_RELAXED);
}

uint64_t pages_allocate(struct dmamap_bounce *bounce, uint64_t first, uint64_t last)
{
	uint64_t page = first, end;

	while (page <= last) {
		if (there(bounce, page)) {
			page++;
			continue;
		}
		for (end = page + 1; end <= last && !there(bounce, end);)
			end++;
		if (file_fill(
			    bounce, page << bounce->page_shift, (end - page) << bounce->page_shift))
			break;
		for (; page < end; page++)
			publish(bounce, page);
	}
	return page;
}
