/* SPDX-License-Identifier: MIT */
/*
 * What is where in this process, as far as the kernel would know and we cannot
 * see: the BARs that were mapped through the system, and the memory that was
 * declared. A sorted array of ranges that never overlap: a range that is new
 * replaces what it covers, as mmap with MAP_FIXED does.
 *
 * One lock guards the array and is held over the mmap and munmap calls, so that
 * the array says what is mapped. References to device files are dropped after
 * it is released, since that may close a device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/soft.h"

/* What mmap and munmap make of a length. */
static uint64_t whole_pages(uint64_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (length + page - 1) & ~(page - 1);
}

int soft_vmas_init(struct soft_vmas *vmas)
{
	memset(vmas, 0, sizeof(*vmas));
	return -pthread_mutex_init(&vmas->lock, NULL);
}

void soft_vmas_fini(struct soft_vmas *vmas)
{
	struct soft_vma *entries;
	size_t n;

	pthread_mutex_lock(&vmas->lock);
	entries = vmas->entries;
	n = vmas->n;
	vmas->entries = NULL;
	vmas->n = vmas->room = 0;
	pthread_mutex_unlock(&vmas->lock);
	for (size_t i = 0; i < n; i++)
		soft_file_put(entries[i].file);
	free(entries);
	pthread_mutex_destroy(&vmas->lock);
}

/* The first entry that ends at or after @va. Lock held. */
static size_t lower(const struct soft_vmas *vmas, uint64_t va)
{
	size_t low = 0, high = vmas->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (vmas->entries[middle].last < va)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool soft_vma_find(struct soft_vmas *vmas, uint64_t va, struct soft_vma *vma, uint64_t *next)
{
	bool found = false;
	size_t i;

	pthread_mutex_lock(&vmas->lock);
	i = lower(vmas, va);
	*next = UINT64_MAX;
	if (i < vmas->n) {
		if (vmas->entries[i].first <= va) {
			*vma = vmas->entries[i];
			found = true;
		} else {
			*next = vmas->entries[i].first;
		}
	}
	pthread_mutex_unlock(&vmas->lock);
	return found;
}

unsigned soft_vma_declared_file(struct soft_vmas *vmas, uint64_t st_dev, uint64_t st_ino)
{
	unsigned shift = 0;

	pthread_mutex_lock(&vmas->lock);
	for (size_t i = 0; i < vmas->n && !shift; i++)
		if (!vmas->entries[i].device && vmas->entries[i].st_ino == st_ino &&
			vmas->entries[i].st_dev == st_dev && st_ino)
			shift = vmas->entries[i].page_shift;
	pthread_mutex_unlock(&vmas->lock);
	return shift;
}

/* Room for the two entries that one change adds at most. Lock held. */
static int reserve(struct soft_vmas *vmas)
{
	size_t room = vmas->room ? vmas->room * 2 : 16;
	struct soft_vma *entries;

	if (vmas->n + 2 <= vmas->room)
		return 0;
	entries = realloc(vmas->entries, room * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	vmas->entries = entries;
	vmas->room = room;
	return 0;
}

static void insert_at(struct soft_vmas *vmas, size_t i, const struct soft_vma *vma)
{
	memmove(&vmas->entries[i + 1], &vmas->entries[i], (vmas->n - i) * sizeof(*vma));
	vmas->entries[i] = *vma;
	vmas->n++;
}

static void remove_at(struct soft_vmas *vmas, size_t i)
{
	vmas->n--;
	memmove(&vmas->entries[i], &vmas->entries[i + 1], (vmas->n - i) * sizeof(vmas->entries[0]));
}

/*
 * Cut a range out. Room was reserved, the lock is held. Entries that are gone
 * go to @gone, an array with room for all; their number comes back.
 */
static size_t cut(struct soft_vmas *vmas, uint64_t first, uint64_t last, struct soft_vma *gone)
{
	size_t n = 0, i = lower(vmas, first);

	while (i < vmas->n && vmas->entries[i].first <= last) {
		struct soft_vma *vma = &vmas->entries[i];
		struct soft_vma right = *vma;

		if (vma->first < first && vma->last > last) {
			/* A hole in the middle: two are left, each keeps the file open. */
			right.offset += last + 1 - right.first;
			right.first = last + 1;
			if (right.file)
				soft_file_get(right.file);
			vma->last = first - 1;
			insert_at(vmas, i + 1, &right);
			return n;
		}
		if (vma->first < first) {
			vma->last = first - 1;
			i++;
		} else if (vma->last > last) {
			vma->offset += last + 1 - vma->first;
			vma->first = last + 1;
			return n;
		} else {
			gone[n++] = *vma;
			remove_at(vmas, i);
		}
	}
	return n;
}

static void drop(struct soft_vma *gone, size_t n)
{
	for (size_t i = 0; i < n; i++)
		soft_file_put(gone[i].file);
	free(gone);
}

/* Everything that a change needs, before anything is changed. Lock held. */
static int prepare(struct soft_vmas *vmas, struct soft_vma **gone)
{
	*gone = malloc((vmas->n + 1) * sizeof(**gone));
	if (*gone && !reserve(vmas))
		return 0;
	free(*gone);
	*gone = NULL;
	return SOFT_REFUSE(no_memory, ENOMEM, "a memory mapping", 0);
}

int soft_vma_declare(struct soft_vmas *vmas, const struct soft_vma *vma)
{
	struct soft_vma *gone;
	size_t n = 0;
	int error;

	pthread_mutex_lock(&vmas->lock);
	error = prepare(vmas, &gone);
	if (!error) {
		n = cut(vmas, vma->first, vma->last, gone);
		/* The cut may have used one place of the two. */
		insert_at(vmas, lower(vmas, vma->first), vma);
	}
	pthread_mutex_unlock(&vmas->lock);
	drop(gone, n);
	return error;
}

void soft_vma_undeclare(struct soft_vmas *vmas, uint64_t va)
{
	size_t i;

	pthread_mutex_lock(&vmas->lock);
	i = lower(vmas, va);
	if (i < vmas->n && vmas->entries[i].first == va && !vmas->entries[i].device)
		remove_at(vmas, i);
	pthread_mutex_unlock(&vmas->lock);
}

int soft_vma_mmap(struct soft_vmas *vmas, struct soft_vma *vma, void *address, size_t length,
	int prot, int flags, int fd, void **out)
{
	struct soft_vma *gone;
	size_t n = 0;
	void *mapped;
	int error;

	pthread_mutex_lock(&vmas->lock);
	error = prepare(vmas, &gone);
	if (error)
		goto out;
	mapped = mmap(address, length, prot, flags | MAP_NORESERVE, fd, (off_t)vma->offset);
	if (mapped == MAP_FAILED) {
		error = SOFT_REFUSE(no_memory, errno, "a BAR's mapping", length);
		goto out;
	}
	vma->first = (uintptr_t)mapped;
	vma->last = vma->first + whole_pages(length) - 1;
	n = cut(vmas, vma->first, vma->last, gone);
	soft_file_get(vma->file);
	insert_at(vmas, lower(vmas, vma->first), vma);
	*out = mapped;
out:
	pthread_mutex_unlock(&vmas->lock);
	drop(gone, n);
	return error;
}

int soft_vma_munmap(struct soft_vmas *vmas, void *address, size_t length)
{
	struct soft_vma *gone;
	size_t n = 0;
	int error;

	pthread_mutex_lock(&vmas->lock);
	error = prepare(vmas, &gone);
	if (!error && munmap(address, length))
		error = SOFT_REFUSE(misaligned, errno, "an address or length to unmap",
			(uintptr_t)address, length);
	if (!error && length)
		n = cut(vmas, (uintptr_t)address, (uintptr_t)address + whole_pages(length) - 1,
			gone);
	pthread_mutex_unlock(&vmas->lock);
	drop(gone, n);
	return error;
}
