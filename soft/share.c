/* SPDX-License-Identifier: MIT */
/*
 * Memory of this process as a file that another one can map as well, which is
 * how a system in another process comes to a daemon's umem. What is shared has
 * a file already. What is private and has none gets one: its content goes
 * there, and the file takes its place; nobody else sees it, so nobody can tell
 * (but a child of a fork from then on shares it).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/soft.h"

struct mapping {
	uint64_t first, end, offset, inode;
	char perms[5];
	char name[16];
};

static bool read_mapping(FILE *maps, struct mapping *mapping)
{
	char line[4400];

	if (!fgets(line, sizeof(line), maps))
		return false;
	mapping->name[0] = '\0';
	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %15s",
		       &mapping->first, &mapping->end, mapping->perms, &mapping->offset,
		       &mapping->inode, mapping->name) >= 5;
}

static bool is_private_memory(const struct mapping *mapping)
{
	return !strcmp(mapping->perms, "rw-p") && !mapping->inode &&
	       (!mapping->name[0] || !strcmp(mapping->name, "[heap]") ||
		       !strncmp(mapping->name, "[anon:", 6));
}

/* Takes some privilege: it may be a file that the process could not open. */
static int open_shared(const struct mapping *mapping, uint64_t address, uint64_t *offset)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, mapping->first,
		mapping->end);
	*offset = mapping->offset + (address - mapping->first);
	return open(path, O_RDWR | O_CLOEXEC);
}

static bool copy_to(int fd, uint64_t address, uint64_t size)
{
	while (size) {
		ssize_t n = write(fd, (const void *)(uintptr_t)address, size);

		if (n <= 0)
			return false;
		address += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return true;
}

static int replace(uint64_t address, uint64_t size, uint64_t *offset)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = address & (page - 1);
	int fd = memfd_create("dmamap:shared", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	address -= before;
	size = (size + before + page - 1) & ~(page - 1);
	*offset = before;
	if (copy_to(fd, address, size) &&
		mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
		return fd;
	close(fd);
	return -1;
}

int soft_share_memory(uint64_t address, uint64_t size, uint64_t *offset, bool *starts)
{
	uint64_t at = address, end;
	struct mapping mapping;
	bool private = false;
	FILE *maps;
	int fd = -1;

	*starts = false;
	if (!size || __builtin_add_overflow(address, size, &end))
		return -1;
	maps = fopen("/proc/self/maps", "re");
	while (maps && at < end && read_mapping(maps, &mapping)) {
		if (mapping.end <= at)
			continue;
		if (mapping.first > at)
			break;
		*starts = *starts || mapping.perms[1] == 'w';
		private = is_private_memory(&mapping);
		if (!private && mapping.perms[3] == 's' && at == address && mapping.end >= end)
			fd = open_shared(&mapping, address, offset);
		if (!private)
			break;
		at = mapping.end;
	}
	if (maps)
		fclose(maps);
	return private && at >= end ? replace(address, size, offset) : fd;
}
