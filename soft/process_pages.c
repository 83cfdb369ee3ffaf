/* SPDX-License-Identifier: MIT */
/*
 * What backs this process's memory, asked of the kernel that we run on: which
 * mapping is at an address (PROCMAP_QUERY), which of its pages are present and
 * which are huge (PAGEMAP_SCAN). What is absent is populated with one call for
 * the whole absent run; what is present is left alone, since populating it
 * again would cost thirty times the scan.
 *
 * Kernels without the two calls (before 6.11) get the plain way: populate the
 * whole range and read /proc/self/smaps.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/procmap.h"
#include "soft/soft.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Regions asked for by one scan: enough to merge neighbours, few enough to waste none. */
#define SCAN_REGIONS 16

struct vma {
	uint64_t last;
	bool readable, writable, shared;
	unsigned major, minor; /* of the file's device */
	uint64_t inode;	       /* 0: no file */
	uint64_t page_size;
	bool all_huge; /* the plain way only: huge pages throughout */
};

enum presence { ABSENT, SMALL, HUGE_BLOCKS };

void soft_proc_init(struct soft_proc *proc)
{
	pthread_mutex_init(&proc->lock, NULL);
	proc->pid = 0;
	proc->maps = proc->pagemap = -1;
	proc->device_known = false;
	atomic_init(&proc->plain, false);
}

static void close_both(struct soft_proc *proc)
{
	if (proc->maps >= 0)
		close(proc->maps);
	if (proc->pagemap >= 0)
		close(proc->pagemap);
	proc->maps = proc->pagemap = -1;
}

void soft_proc_fini(struct soft_proc *proc)
{
	close_both(proc);
	pthread_mutex_destroy(&proc->lock);
}

/* False: this process has no such files, or the plain way is wanted. */
static bool proc_files(struct soft_proc *proc, int *maps, int *pagemap)
{
	pid_t pid = getpid();

	if (atomic_load_explicit(&proc->plain, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&proc->lock);
	if (proc->pid != pid) {
		close_both(proc);
		proc->maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
		proc->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
		proc->pid = pid;
	}
	*maps = proc->maps;
	*pagemap = proc->pagemap;
	pthread_mutex_unlock(&proc->lock);
	return *maps >= 0 && *pagemap >= 0;
}

static unsigned log2_of(uint64_t size)
{
	return 63 - (unsigned)__builtin_clzll(size);
}

static uint64_t host_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Those whose pages are only ever in memory. */
static bool is_in_memory(const char *file_system)
{
	static const char *const names[] = {"tmpfs", "hugetlbfs", "ramfs", "devtmpfs", "rootfs"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(file_system, names[i]))
			return true;
	return false;
}

/* What kind of file system a device has; one that is mounted nowhere is the kernel's own. */
static bool writes_back(unsigned major, unsigned minor)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	bool found = false, in_memory = true;
	char *line = NULL;
	size_t room = 0;

	while (file && !found && getline(&line, &room, file) > 0) {
		const char *type = strstr(line, " - ");
		unsigned its_major, its_minor;
		char name[32];

		if (sscanf(line, "%*u %*u %u:%u", &its_major, &its_minor) != 2 || !type ||
			its_major != major || its_minor != minor)
			continue;
		found = true;
		in_memory = sscanf(type, " - %31s", name) == 1 && is_in_memory(name);
	}
	free(line);
	if (file)
		fclose(file);
	return !in_memory;
}

/* The same, remembered: few devices have files that are mapped. */
static bool device_writes_back(struct soft_proc *proc, unsigned major, unsigned minor)
{
	uint64_t device = (uint64_t)major << 32 | minor;
	bool known, answer;

	pthread_mutex_lock(&proc->lock);
	known = proc->device_known && proc->device == device;
	answer = proc->device_writes_back;
	pthread_mutex_unlock(&proc->lock);
	if (known)
		return answer;
	answer = writes_back(major, minor);
	pthread_mutex_lock(&proc->lock);
	proc->device = device;
	proc->device_known = true;
	proc->device_writes_back = answer;
	pthread_mutex_unlock(&proc->lock);
	return answer;
}

static int check_access(struct soft_system *system, const struct vma *vma, uint64_t va, bool write,
	struct dmamap_reason *why)
{
	/* A kernel pins for writing without asking whether one may read. */
	if (!(write ? vma->writable : vma->readable))
		return DMAMAP_REFUSE(why, &soft_reason_memory_access, EFAULT,
			write ? "written" : "read", va, vma->last);
	/* The file system would not learn of a device's writes (mm/gup.c, check_vma_flags()). */
	if (write && vma->shared && vma->inode &&
		device_writes_back(&system->proc, vma->major, vma->minor))
		return DMAMAP_REFUSE(
			why, &soft_reason_memory_file, EFAULT, NULL, va, vma->last, vma->inode);
	return 0;
}

static int populate(uint64_t first, uint64_t last, bool write, struct dmamap_reason *why)
{
	uint64_t page = host_page(), start = first & ~(page - 1);
	uint64_t length = (last - start + page) & ~(page - 1);
	char text[64];
	int error;

	do {
		error = madvise((void *)(uintptr_t)start, length,
				write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ)
				? errno
				: 0;
	} while (error == EAGAIN || error == EINTR);
	if (!error)
		return 0;
	return DMAMAP_REFUSE(why, &soft_reason_memory_fault, error == ENOMEM ? ENOMEM : EFAULT,
		strerror_r(error, text, sizeof(text)), first, last);
}

/* -ENOTTY: this kernel cannot say. */
static int query_vma(
	int maps, uint64_t va, uint64_t last, struct vma *vma, struct dmamap_reason *why)
{
	struct abi_procmap_query query = {.size = sizeof(query), .query_addr = va};

	if (ioctl(maps, ABI_PROCMAP_QUERY, &query)) {
		if (errno == ENOENT)
			return DMAMAP_REFUSE(why, &soft_reason_hole, EFAULT, NULL, va, va, last);
		return -ENOTTY;
	}
	vma->last = query.vma_end - 1;
	vma->readable = query.vma_flags & ABI_PROCMAP_VMA_READABLE;
	vma->writable = query.vma_flags & ABI_PROCMAP_VMA_WRITABLE;
	vma->shared = query.vma_flags & ABI_PROCMAP_VMA_SHARED;
	vma->major = query.dev_major;
	vma->minor = query.dev_minor;
	vma->inode = query.inode;
	vma->page_size = query.vma_page_size;
	return 0;
}

static enum presence presence_of(uint64_t categories, bool write)
{
	if (!(categories & ABI_PAGE_IS_PRESENT))
		return ABSENT;
	/* The shared page of zeroes is not what a device may write to. */
	if (write && categories & ABI_PAGE_IS_PFNZERO)
		return ABSENT;
	return categories & ABI_PAGE_IS_HUGE ? HUGE_BLOCKS : SMALL;
}

/* How the pages at @va are, and up to where the next ones are the same. */
static int scan(int pagemap, uint64_t va, uint64_t last, bool write, enum presence *presence,
	uint64_t *same_last)
{
	uint64_t page = host_page();
	struct abi_page_region regions[SCAN_REGIONS];
	struct abi_pm_scan_arg argument = {
		.size = sizeof(argument),
		.start = va & ~(page - 1),
		.end = (last & ~(page - 1)) + page,
		.vec = (uintptr_t)regions,
		.vec_len = SCAN_REGIONS,
		.return_mask = ABI_PAGE_IS_PRESENT | ABI_PAGE_IS_PFNZERO | ABI_PAGE_IS_HUGE,
	};
	uint64_t at = argument.start;
	int n;

	do {
		n = ioctl(pagemap, ABI_PAGEMAP_SCAN, &argument);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -ENOTTY;
	*presence = ABSENT;
	for (int i = 0; i < n; i++) {
		enum presence here = presence_of(regions[i].categories, write);

		if (regions[i].start > at) {
			/* Not reported: nothing there. */
			if (i && *presence != ABSENT)
				break;
			*presence = ABSENT;
			at = regions[i].start;
			i--;
			continue;
		}
		if (at == argument.start)
			*presence = here;
		else if (here != *presence)
			break;
		at = regions[i].end;
	}
	if (!n || (at == argument.start))
		at = argument.end;
	*same_last = at - 1 < last ? at - 1 : last;
	return 0;
}

/* The header line and the fields of /proc/self/smaps that matter. */
static int read_smaps(uint64_t va, uint64_t last, struct vma *vma, struct dmamap_reason *why)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long size = 0, huge = 0, kib, inode;
	unsigned major, minor;
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	if (!file)
		return DMAMAP_REFUSE(why, &soft_reason_no_file, EFAULT, "/proc/self/smaps", 0);
	while (getline(&line, &room, file) > 0) {
		unsigned long start, end;
		char prot[5];

		if (sscanf(line, "%lx-%lx %4s %*x %x:%x %lu", &start, &end, prot, &major, &minor,
			    &inode) == 6) {
			if (found)
				break;
			if (va < start || va >= end)
				continue;
			found = true;
			vma->last = end - 1;
			vma->readable = prot[0] == 'r';
			vma->writable = prot[1] == 'w';
			vma->shared = prot[3] == 's';
			vma->major = major;
			vma->minor = minor;
			vma->inode = inode;
			vma->page_size = host_page();
		} else if (!found) {
			continue;
		} else if (sscanf(line, "Size: %lu", &kib) == 1) {
			size = kib;
		} else if (sscanf(line, "KernelPageSize: %lu", &kib) == 1) {
			vma->page_size = kib * 1024ULL;
		} else if (sscanf(line, "AnonHugePages: %lu", &kib) == 1 ||
			   sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1 ||
			   sscanf(line, "FilePmdMapped: %lu", &kib) == 1) {
			huge += kib;
		}
	}
	free(line);
	fclose(file);
	if (!found)
		return DMAMAP_REFUSE(why, &soft_reason_hole, EFAULT, NULL, va, va, last);
	vma->all_huge = size && huge == size;
	return 0;
}

static unsigned contiguous_of(struct soft_system *system, const struct vma *vma, bool huge)
{
	unsigned shift = system->machine.page_shift;

	if (vma->page_size > host_page())
		return log2_of(vma->page_size);
	/* Where the process's own pages are larger than the machine's, they are one piece each. */
	if (shift < log2_of(host_page()))
		shift = log2_of(host_page());
	return huge ? 2 * log2_of(host_page()) - 3 : shift;
}

static int populate_plain(struct soft_system *system, uint64_t va, uint64_t last, bool write,
	struct soft_extent *extent, struct dmamap_reason *why)
{
	struct vma vma = {0};
	int error = read_smaps(va, last, &vma, why);

	if (error)
		return error;
	error = check_access(system, &vma, va, write, why);
	if (error)
		return error;
	if (last > vma.last)
		last = vma.last;
	error = populate(va, last, write, why);
	if (error)
		return error;
	error = read_smaps(va, last, &vma, why);
	if (error)
		return error;
	extent->last = last < vma.last ? last : vma.last;
	extent->contiguous = contiguous_of(system, &vma, vma.all_huge);
	return 0;
}

static int populate_scanned(struct soft_system *system, int maps, int pagemap, uint64_t va,
	uint64_t last, bool write, struct soft_extent *extent, struct dmamap_reason *why)
{
	enum presence presence;
	struct vma vma = {0};
	int error = query_vma(maps, va, last, &vma, why);

	if (error)
		return error;
	error = check_access(system, &vma, va, write, why);
	if (error)
		return error;
	if (last > vma.last)
		last = vma.last;
	error = scan(pagemap, va, last, write, &presence, &extent->last);
	if (!error && presence == ABSENT) {
		error = populate(va, extent->last, write, why);
		if (error)
			return error;
		error = scan(pagemap, va, last, write, &presence, &extent->last);
	}
	if (error)
		return error;
	/* What was swapped out again meanwhile is still there, in small pages. */
	extent->contiguous = contiguous_of(system, &vma, presence == HUGE_BLOCKS);
	return 0;
}

int soft_pages_populate(struct soft_system *system, uint64_t va, uint64_t last, bool write,
	struct soft_extent *extent, struct dmamap_reason *why)
{
	int maps, pagemap, error;

	if (proc_files(&system->proc, &maps, &pagemap)) {
		error = populate_scanned(system, maps, pagemap, va, last, write, extent, why);
		if (error != -ENOTTY)
			return error;
		atomic_store_explicit(&system->proc.plain, true, memory_order_relaxed);
	}
	return populate_plain(system, va, last, write, extent, why);
}
