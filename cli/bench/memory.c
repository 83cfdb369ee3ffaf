/* SPDX-License-Identifier: MIT */
/* Memory of each kind, made and unmade in steps that are timed apart. */
#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

uint64_t memory_alignment(uint64_t size, uint64_t page_size)
{
	uint64_t alignment = page_size;

	while (alignment * 2 <= size && alignment < (uint64_t)1 << 30)
		alignment *= 2;
	return alignment;
}

/* Address space of the given alignment, which nothing else can take until it is mapped over. */
static int reserve(struct memory *memory, uint64_t alignment)
{
	uint64_t length = memory->size + alignment;
	uint64_t start;
	uint64_t aligned;
	void *va;

	va = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (va == MAP_FAILED)
		return -errno;
	start = (uint64_t)(uintptr_t)va;
	aligned = (start + alignment - 1) & -alignment;
	if (aligned > start)
		munmap(va, aligned - start);
	munmap((void *)(uintptr_t)(aligned + memory->size), alignment - (aligned - start));
	memory->va = (void *)(uintptr_t)aligned;
	return 0;
}

int memory_prepare(struct memory *memory, const struct memory_kind *kind, uint64_t size,
	uint64_t alignment, bool declared)
{
	int error;

	*memory = (struct memory){.kind = kind, .size = size, .fd = -1, .declared = declared};
	if (kind->source == MEMORY_BAR)
		return 0;
	if (kind->source == MEMORY_MEMFD || declared) {
		unsigned flags = MFD_CLOEXEC;

		if (kind->huge_shift && !declared)
			flags |= MFD_HUGETLB | kind->huge_shift << MAP_HUGE_SHIFT;
		memory->fd = memfd_create("dmamap-bench", flags);
		if (memory->fd < 0)
			return -errno;
		if (ftruncate(memory->fd, (off_t)size)) {
			error = -errno;
			goto fail;
		}
	}
	error = reserve(memory, alignment);
	if (error)
		goto fail;
	return 0;
fail:
	memory_release(memory);
	return error;
}

static int map_over(const struct memory *memory)
{
	const struct memory_kind *kind = memory->kind;
	int flags = MAP_FIXED;

	flags |= memory->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	if (memory->declared)
		flags |= MAP_NORESERVE;
	if (kind->huge_shift && memory->fd < 0)
		flags |= MAP_HUGETLB | (int)(kind->huge_shift << MAP_HUGE_SHIFT);
	if (mmap(memory->va, memory->size, PROT_READ | PROT_WRITE, flags, memory->fd, 0) ==
		MAP_FAILED)
		return -errno;
	if (kind->huge_shift || memory->declared)
		return 0;
	/* -EINVAL: a kernel without transparent huge pages, which thus has none to keep away. */
	if (madvise(memory->va, memory->size, kind->thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) &&
		(kind->thp || errno != EINVAL))
		return -errno;
	return 0;
}

int memory_mmap(struct memory *memory, bool populate)
{
	int error = map_over(memory);

	if (error || !populate || memory->declared)
		return error;
	return madvise(memory->va, memory->size, MADV_POPULATE_WRITE) ? -errno : 0;
}

int memory_munmap(struct memory *memory)
{
	int error = 0;

	if (memory->va && munmap(memory->va, memory->size))
		error = -errno;
	memory->va = NULL;
	if (memory->fd >= 0)
		close(memory->fd);
	memory->fd = -1;
	return error;
}

void memory_release(struct memory *memory)
{
	if (memory->kind)
		memory_munmap(memory);
	memory->kind = NULL;
}

uint64_t memory_huge_bytes(const struct memory *memory)
{
	uint64_t from = (uint64_t)(uintptr_t)memory->va;
	uint64_t bytes = UINT64_MAX;
	FILE *file = fopen("/proc/self/smaps", "re");
	char line[512];
	bool inside = false;

	if (!file)
		return bytes;
	while (fgets(line, sizeof(line), file)) {
		uint64_t first;
		uint64_t end;
		uint64_t kib;

		/* The mapping may have been joined with a neighbour, or split. */
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &first, &end) == 2)
			inside = first < from + memory->size && from < end;
		else if (inside && sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1)
			bytes = (bytes == UINT64_MAX ? 0 : bytes) + kib * 1024;
	}
	fclose(file);
	return bytes != UINT64_MAX && bytes > memory->size ? memory->size : bytes;
}
