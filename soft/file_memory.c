/* SPDX-License-Identifier: MIT */
/*
 * Memory of a file, for IOMMU_IOAS_MAP_FILE: the file's pages are found without
 * any mapping of the caller's. We map the file ourselves, congruent to its page
 * size so that its pages can be leaves, and the engine's file memory finds
 * them; they are made present when a page table first asks, as
 * memfd_pin_folios does. What the kernel only checks when it pins (the kind of
 * file, its size) is only refused here then, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "soft/soft.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define SHMEM_FILES	0x01021994
#define HUGETLBFS_FILES 0x958458f6

/* Pages whose presence is asked at once. */
#define WINDOW_PAGES 65536

struct file_memory {
	struct soft_memory soft;
	struct dmamap_memory *pages; /* NULL: it cannot be pinned */
	void *mapping;
	uint64_t mapped; /* bytes at @mapping */
	char *host;	 /* the byte at @start */
	uint64_t start;
	uint64_t size; /* of the file; 0: not a file of pages */
	bool of_pages;
	bool writable;
	bool declared;
};

/* Makes one run of absent pages present. */
static int fill_run(
	struct file_memory *memory, char *from, uint64_t length, struct dmamap_lookup *lookup)
{
	char text[64];

	if (!madvise(from, length, memory->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	if (errno == EFAULT)
		return DMAMAP_REFUSE(lookup->why, &soft_reason_file_end, EINVAL, NULL,
			memory->start + lookup->offset, memory->start + lookup->last, memory->size);
	return DMAMAP_REFUSE(lookup->why, &soft_reason_memory_fault,
		errno == ENOMEM ? ENOMEM : EFAULT, strerror_r(errno, text, sizeof(text)),
		(uintptr_t)from, (uintptr_t)from + length - 1);
}

/* A fresh mapping has no page-table entries: mincore looks into the page cache instead. */
static int fill(struct file_memory *memory, struct dmamap_lookup *lookup)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = ((uintptr_t)memory->host + lookup->offset) & ~(page - 1);
	uint64_t last = (uintptr_t)memory->host + lookup->last;
	unsigned char *present = malloc(WINDOW_PAGES);
	int error = 0;

	if (!present)
		return DMAMAP_REFUSE(lookup->why, &soft_reason_no_memory, ENOMEM, "a window", 0);
	while (!error && first <= last) {
		uint64_t n = (last - first) / page + 1;

		if (n > WINDOW_PAGES)
			n = WINDOW_PAGES;
		if (mincore((void *)(uintptr_t)first, n * page, present))
			memset(present, 0, n);
		for (uint64_t i = 0, run; i < n && !error; i += run) {
			for (run = 1; i + run < n && (present[i + run] & 1) == (present[i] & 1);)
				run++;
			if (!(present[i] & 1))
				error = fill_run(memory, (char *)(uintptr_t)first + i * page,
					run * page, lookup);
		}
		first += n * page;
	}
	free(present);
	return error;
}

static int file_lookup(struct dmamap_memory *base, struct dmamap_lookup *lookup)
{
	struct file_memory *memory = (struct file_memory *)base;
	int error;

	if (!memory->of_pages)
		return DMAMAP_REFUSE(lookup->why, &soft_reason_file_kind, EINVAL, NULL, 0);
	if (!memory->pages)
		return DMAMAP_REFUSE(lookup->why, &soft_reason_file_end, EINVAL, NULL,
			memory->start + lookup->offset, memory->start + lookup->last, memory->size);
	if (!lookup->state[3] && !memory->declared) {
		error = fill(memory, lookup);
		if (error)
			return error;
		lookup->state[3] = 1;
	}
	return memory->pages->ops->lookup(memory->pages, lookup);
}

static void file_release(struct dmamap_memory *base)
{
	struct file_memory *memory = (struct file_memory *)base;

	dmamap_memory_put(memory->pages);
	if (memory->mapping)
		munmap(memory->mapping, memory->mapped);
	free(memory);
}

static const struct dmamap_memory_ops file_ops = {
	.lookup = file_lookup,
	.release = file_release,
};

/* The kernel pins without regard to how the descriptor was opened: so do we, where we can. */
static int map(struct file_memory *memory, int fd, uint64_t offset, uint64_t page, unsigned prot)
{
	char path[64], text[64];
	int error, again;

	memory->writable = true;
	error = soft_map_aligned(
		fd, offset, memory->mapped, PROT_READ | PROT_WRITE, page, offset, &memory->mapping);
	if (error == -EACCES) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		again = open(path, O_RDWR | O_CLOEXEC);
		if (again >= 0) {
			error = soft_map_aligned(again, offset, memory->mapped,
				PROT_READ | PROT_WRITE, page, offset, &memory->mapping);
			close(again);
		}
	}
	if ((error == -EACCES || error == -EPERM) && !(prot & DMAMAP_WRITE)) {
		memory->writable = false;
		error = soft_map_aligned(
			fd, offset, memory->mapped, PROT_READ, page, offset, &memory->mapping);
	}
	if (!error)
		return 0;
	memory->mapping = NULL;
	return SOFT_REFUSE(file_map, -error, strerror_r(-error, text, sizeof(text)), 0);
}

int soft_memory_file(struct soft_system *system, int fd, uint64_t start, uint64_t length,
	unsigned prot, struct dmamap_memory **memory)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), unit = page, offset;
	struct file_memory *made;
	struct statfs filesystem;
	unsigned shift;
	struct stat file;
	int error;

	if (fstat(fd, &file) || fstatfs(fd, &filesystem))
		return SOFT_REFUSE(bad_fd, EBADF, NULL, (uint64_t)(unsigned)fd);
	made = calloc(1, sizeof(*made));
	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a mapping", length);
	dmamap_memory_init(&made->soft.base, &file_ops, length,
		prot & DMAMAP_WRITE ? DMAMAP_READ | DMAMAP_WRITE : DMAMAP_READ);
	made->soft.phase = (unsigned)(start & (soft_page_size(system) - 1));
	made->soft.origin = start;
	made->start = start;
	*memory = &made->soft.base;
	made->of_pages = S_ISREG(file.st_mode) &&
			 (filesystem.f_type == SHMEM_FILES || filesystem.f_type == HUGETLBFS_FILES);
	made->size = made->of_pages ? (uint64_t)file.st_size : 0;
	if (start + length - 1 >= made->size)
		return 0;
	if (filesystem.f_type == HUGETLBFS_FILES)
		unit = page = (uint64_t)filesystem.f_bsize;
	shift = soft_vma_declared_file(&system->vmas, file.st_dev, file.st_ino);
	if (shift) {
		made->declared = true;
		page = 1ULL << shift;
	}
	offset = start & ~(page - 1);
	made->mapped = (start + length - offset + unit - 1) & ~(unit - 1);
	error = map(made, fd, offset, page, prot);
	if (error)
		goto fail;
	made->host = (char *)made->mapping + (start - offset);
	if (!shift)
		shift = 63 - (unsigned)__builtin_clzll(page);
	error = dmamap_memory_file(
		made->host, start, length, DMAMAP_READ | DMAMAP_WRITE, shift, &made->pages);
	if (!error)
		return 0;
	SOFT_REFUSE(no_memory, -error, "a mapping", length);
fail:
	dmamap_memory_put(&made->soft.base);
	return error;
}
