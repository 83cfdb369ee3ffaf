/* SPDX-License-Identifier: MIT */
/*
 * Memory of a file, for IOMMU_IOAS_MAP_FILE: the file's pages are found without
 * any mapping of the caller's (drivers/iommu/iommufd/pages.c, memfd_pin_folios).
 * Mapping only remembers the file. What kind it is, and whether it is as long,
 * is looked at whenever a page table is filled: a file may grow in between.
 *
 * Pages that some page table has are taken from there, whatever became of the
 * file.
 *
 * To fill we map the file ourselves, all of the memory or, where the file is
 * shorter, the part that is asked for; congruent to its page size so that its
 * pages can be leaves. We make its pages present, and the engine's file memory
 * finds them. The kernel pins without regard to how the descriptor was opened and to
 * seals; so do we as far as mmap lets us. Where a file is sealed against
 * writing, what a device writes goes to a copy that only devices see.
 *
 * A file is kept open by one descriptor of ours, whatever is mapped of it.
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

/* Our descriptors stay out of the way of the program's. */
#define LOWEST_DESCRIPTOR 512

/* One for each file, whatever is mapped of it. */
struct soft_kept_file {
	struct soft_kept_file *next; /* kept_files.lock */
	unsigned users;		     /* kept_files.lock */
	dev_t st_dev;
	ino_t st_ino;
	int fd;
	bool of_pages; /* a memfd, or on hugetlbfs */
	uint64_t page; /* of the file's own size */
};

/* A part of a memory, mapped. */
struct window {
	struct window *next;
	uint64_t first, last; /* in the memory */
	struct dmamap_memory *pages;
	void *mapping;
	uint64_t mapped; /* bytes at @mapping */
	char *host;	 /* the byte at @first */
	bool writable;
	bool declared;
};

struct file_memory {
	struct soft_memory soft;
	struct soft_pins pins;
	struct soft_system *system;
	struct soft_kept_file *file;
	uint64_t start;
	pthread_mutex_t lock;	/* two spaces may share it */
	struct window *windows; /* lock; none goes before the memory does */
};

/* --------------------------------------------------------------- the file */

/* Lock held. */
static int open_file(int fd, const struct stat *is, struct soft_kept_file **out)
{
	struct soft_kept_file *made = calloc(1, sizeof(*made));
	struct statfs filesystem;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "an open file", 0);
	made->fd = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR);
	if (made->fd < 0)
		made->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (made->fd < 0 || fstatfs(made->fd, &filesystem)) {
		int error = errno;

		if (made->fd >= 0)
			close(made->fd);
		free(made);
		return SOFT_REFUSE(no_descriptor, error, "a file to map", 0);
	}
	made->st_dev = is->st_dev;
	made->st_ino = is->st_ino;
	made->of_pages = S_ISREG(is->st_mode) &&
			 (filesystem.f_type == SHMEM_FILES || filesystem.f_type == HUGETLBFS_FILES);
	made->page = filesystem.f_type == HUGETLBFS_FILES ? (uint64_t)filesystem.f_bsize
							  : (uint64_t)sysconf(_SC_PAGESIZE);
	*out = made;
	return 0;
}

static int keep_file(struct soft_system *system, int fd, struct soft_kept_file **out)
{
	struct soft_kept_files *files = &system->kept_files;
	struct soft_kept_file *file;
	struct stat is;
	int error = 0;

	if (fstat(fd, &is) || fcntl(fd, F_GETFL) & O_PATH)
		return SOFT_REFUSE(bad_fd, EBADF, NULL, (uint64_t)(unsigned)fd);
	pthread_mutex_lock(&files->lock);
	for (file = files->first; file; file = file->next)
		if (file->st_ino == is.st_ino && file->st_dev == is.st_dev)
			break;
	if (!file) {
		error = open_file(fd, &is, &file);
		if (!error) {
			file->next = files->first;
			files->first = file;
		}
	}
	if (!error) {
		file->users++;
		*out = file;
	}
	pthread_mutex_unlock(&files->lock);
	return error;
}

static void put_file(struct soft_system *system, struct soft_kept_file *file)
{
	struct soft_kept_files *files = &system->kept_files;
	struct soft_kept_file **link;

	pthread_mutex_lock(&files->lock);
	if (--file->users) {
		file = NULL;
	} else {
		for (link = &files->first; *link != file; link = &(*link)->next)
			;
		*link = file->next;
	}
	pthread_mutex_unlock(&files->lock);
	if (file)
		close(file->fd);
	free(file);
}

/* ------------------------------------------------------------- its mapping */

static int map_copy(const struct window *window, int fd, uint64_t offset)
{
	void *mapped = mmap(window->mapping, window->mapped, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, (off_t)offset);

	return mapped == MAP_FAILED ? -errno : 0;
}

/* @copy: a device is to write, and the file may not let us. */
static int map_file(struct window *window, int fd, uint64_t offset, uint64_t page, bool copy)
{
	char path[64];
	int again, error;

	window->writable = true;
	error = soft_map_aligned(
		fd, offset, window->mapped, PROT_READ | PROT_WRITE, page, offset, &window->mapping);
	if (error == -EACCES) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		again = open(path, O_RDWR | O_CLOEXEC);
		if (again >= 0) {
			error = soft_map_aligned(again, offset, window->mapped,
				PROT_READ | PROT_WRITE, page, offset, &window->mapping);
			close(again);
		}
	}
	if (error != -EACCES && error != -EPERM)
		return error;
	window->writable = false;
	error = soft_map_aligned(
		fd, offset, window->mapped, PROT_READ, page, offset, &window->mapping);
	return !error && copy ? map_copy(window, fd, offset) : error;
}

static void free_window(struct window *window)
{
	if (!window)
		return;
	dmamap_memory_put(window->pages);
	if (window->mapping)
		munmap(window->mapping, window->mapped);
	free(window);
}

static int map_window(
	const struct file_memory *memory, struct window *window, struct dmamap_reason *why)
{
	const struct soft_kept_file *file = memory->file;
	uint64_t start = memory->start + window->first, page = file->page, offset;
	uint64_t length = window->last - window->first + 1;
	unsigned shift = soft_vma_declared_file(
		&memory->system->vmas, (uint64_t)file->st_dev, (uint64_t)file->st_ino);
	char text[64];
	int error;

	window->declared = shift;
	if (shift)
		page = 1ULL << shift;
	offset = start & ~(page - 1);
	window->mapped = (start + length - offset + file->page - 1) & ~(file->page - 1);
	error = map_file(window, file->fd, offset, page, memory->soft.base.prot & DMAMAP_WRITE);
	if (error)
		return DMAMAP_REFUSE(why, &soft_reason_file_map, -error,
			strerror_r(-error, text, sizeof(text)), 0);
	window->host = (char *)window->mapping + (start - offset);
	if (!shift)
		shift = 63 - (unsigned)__builtin_clzll(page);
	error = dmamap_memory_file(
		window->host, start, length, DMAMAP_READ | DMAMAP_WRITE, shift, &window->pages);
	return error ? DMAMAP_REFUSE(why, &soft_reason_no_memory, -error, "a mapping", length) : 0;
}

/* The window with all that is asked for, made if need be. @size: of the file. */
static struct window *find_window(
	struct file_memory *memory, uint64_t size, const struct dmamap_lookup *lookup, int *error)
{
	uint64_t whole = memory->soft.base.length;
	struct window *window;

	for (window = memory->windows; window; window = window->next)
		if (window->first <= lookup->offset && lookup->last <= window->last)
			return window;
	window = calloc(1, sizeof(*window));
	if (!window) {
		*error = DMAMAP_REFUSE(
			lookup->why, &soft_reason_no_memory, ENOMEM, "a mapping", whole);
		return NULL;
	}
	window->last = whole - 1;
	if (memory->start + whole > size) {
		window->first = lookup->offset;
		window->last = lookup->last;
	}
	*error = map_window(memory, window, lookup->why);
	if (*error) {
		free_window(window);
		return NULL;
	}
	window->next = memory->windows;
	memory->windows = window;
	return window;
}

/* Makes one run of absent pages present. */
static int fill_run(const struct window *window, char *from, uint64_t length,
	const struct dmamap_lookup *lookup)
{
	char text[64];

	if (!madvise(from, length, window->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	return DMAMAP_REFUSE(lookup->why, &soft_reason_memory_fault,
		errno == ENOMEM ? ENOMEM : EFAULT, strerror_r(errno, text, sizeof(text)),
		(uintptr_t)from, (uintptr_t)from + length - 1);
}

/* A fresh mapping has no page-table entries: mincore looks into the page cache instead. */
static int fill(const struct window *window, uint64_t offset, uint64_t end,
	const struct dmamap_lookup *lookup)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t host = (uintptr_t)window->host - window->first;
	uint64_t first = (host + offset) & ~(page - 1), last = host + end;
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
				error = fill_run(window, (char *)(uintptr_t)first + i * page,
					run * page, lookup);
		}
		first += n * page;
	}
	free(present);
	return error;
}

/* What the kernel looks at when it pins: whole pages of the machine, within the file as it is. */
static int check_file(const struct file_memory *memory, uint64_t offset, uint64_t last,
	uint64_t size, struct dmamap_reason *why)
{
	uint64_t page = soft_page_size(memory->system);
	uint64_t first = (memory->start + offset) & ~(page - 1);
	uint64_t end = (memory->start + last) | (page - 1);

	if (!memory->file->of_pages)
		return DMAMAP_REFUSE(why, &soft_reason_file_kind, EINVAL, NULL, 0);
	if (end > INT64_MAX || end >= size)
		return DMAMAP_REFUSE(why, &soft_reason_file_end, EINVAL, NULL, first, end, size);
	return 0;
}

/* Pins what is asked for, as far as no table has it. */
static int prepare(struct file_memory *memory, struct dmamap_lookup *lookup)
{
	struct window *window = NULL;
	struct stat is;
	int error = 0;

	if (fstat(memory->file->fd, &is))
		is.st_size = 0;
	for (uint64_t at = lookup->offset, last; !error; at = last + 1) {
		last = lookup->last;
		if (!soft_memory_pinned(&memory->soft, at, &last))
			error = check_file(memory, at, last, (uint64_t)is.st_size, lookup->why);
		if (last == lookup->last)
			break;
	}
	if (error)
		return error;
	pthread_mutex_lock(&memory->lock);
	window = find_window(memory, (uint64_t)is.st_size, lookup, &error);
	pthread_mutex_unlock(&memory->lock);
	for (uint64_t at = lookup->offset, last; !error && !window->declared; at = last + 1) {
		last = lookup->last;
		if (!soft_memory_pinned(&memory->soft, at, &last))
			error = fill(window, at, last, lookup);
		if (last == lookup->last)
			break;
	}
	lookup->state[0] = (uintptr_t)window;
	return error;
}

static int file_lookup(struct dmamap_memory *base, struct dmamap_lookup *lookup)
{
	struct file_memory *memory = (struct file_memory *)base;
	uint64_t offset = lookup->offset, last = lookup->last;
	const struct window *window;
	int error;

	if (!lookup->state[0]) {
		error = prepare(memory, lookup);
		if (error)
			return error;
	}
	window = (const struct window *)(uintptr_t)lookup->state[0];
	lookup->offset -= window->first;
	lookup->last -= window->first;
	error = window->pages->ops->lookup(window->pages, lookup);
	lookup->offset = offset;
	lookup->last = last;
	return error;
}

static void file_release(struct dmamap_memory *base)
{
	struct file_memory *memory = (struct file_memory *)base;
	struct window *window;

	while ((window = memory->windows)) {
		memory->windows = window->next;
		free_window(window);
	}
	put_file(memory->system, memory->file);
	pthread_mutex_destroy(&memory->lock);
	soft_pins_fini(&memory->pins);
	free(memory);
}

static const struct dmamap_memory_ops file_ops = {
	.lookup = file_lookup,
	.release = file_release,
	.filled = soft_memory_filled,
	.cleared = soft_memory_cleared,
};

int soft_memory_file(struct soft_system *system, int fd, uint64_t start, uint64_t length,
	unsigned prot, struct dmamap_memory **memory)
{
	uint64_t page = soft_page_size(system);
	struct soft_kept_file *file = NULL;
	struct file_memory *made;
	int error = keep_file(system, fd, &file);

	if (error)
		return error;
	if (length > UINT64_MAX - page) {
		error = SOFT_REFUSE(too_large, EINVAL, "length", length);
		goto put_file;
	}
	made = calloc(1, sizeof(*made));
	if (!made) {
		error = SOFT_REFUSE(no_memory, ENOMEM, "a mapping", length);
		goto put_file;
	}
	dmamap_memory_init(&made->soft.base, &file_ops, length,
		prot & DMAMAP_WRITE ? DMAMAP_READ | DMAMAP_WRITE : DMAMAP_READ);
	made->soft.kind = SOFT_MEMORY_FILE;
	made->soft.phase = (unsigned)(start & (page - 1));
	made->soft.origin = start;
	made->soft.pins = &made->pins;
	soft_pins_init(&made->pins, system, false);
	made->system = system;
	made->file = file;
	made->start = start;
	pthread_mutex_init(&made->lock, NULL);
	*memory = &made->soft.base;
	return 0;
put_file:
	put_file(system, file);
	return error;
}
