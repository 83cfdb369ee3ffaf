/* SPDX-License-Identifier: MIT */
/*
 * User pointers: a bad one gives -EFAULT, as in the kernel, and never a crash.
 *
 * Asking the kernel to copy (process_vm_readv on ourselves) is safe for every
 * address and costs about a microsecond, more than a map. An argument on the
 * calling thread's own stack, between here and its top, is certainly there:
 * it is copied directly, and that is where programs have theirs. All other
 * addresses take the safe way.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "soft/soft.h"

static _Thread_local uintptr_t stack_top;

static uintptr_t find_stack_top(void)
{
	pthread_attr_t attributes;
	void *base;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attributes))
		return 1;
	if (pthread_attr_getstack(&attributes, &base, &size))
		stack_top = 1;
	else
		stack_top = (uintptr_t)base + size;
	pthread_attr_destroy(&attributes);
	return stack_top;
}

static bool on_own_stack(const void *pointer, size_t size)
{
	uintptr_t first = (uintptr_t)pointer, top = stack_top ? stack_top : find_stack_top();

	return first >= (uintptr_t)__builtin_frame_address(0) && first < top && size <= top - first;
}

static int refuse(const void *user, size_t size, const char *what)
{
	return SOFT_REFUSE(pointer, EFAULT, what, (uintptr_t)user, size);
}

/* Not every kernel has process_vm_*, and it may be forbidden. */
static bool forbidden(ssize_t copied)
{
	return copied < 0 && (errno == ENOSYS || errno == EPERM);
}

/*
 * As safe, but slower: the kernel copies into a pipe and out of it, a page at a
 * time. The pipe stays, since a process may be short of descriptors when it is
 * needed; the child of a fork makes its own.
 */
static struct {
	pthread_mutex_t lock;
	pid_t pid;   /* lock */
	int ends[2]; /* lock */
} copier = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool copy_page(void *to, const void *from, size_t size)
{
	char rest[4096];
	ssize_t written = write(copier.ends[1], from, size), got;

	if (written <= 0)
		return false;
	got = read(copier.ends[0], to, (size_t)written);
	/* What found no place must not be there for the next one. */
	if (got < written && read(copier.ends[0], rest, sizeof(rest)) < 0)
		return false;
	return got == (ssize_t)size;
}

static ssize_t copy_by_pipe(void *to, const void *from, size_t size)
{
	size_t copied = 0;

	pthread_mutex_lock(&copier.lock);
	if (copier.pid != getpid())
		copier.pid = pipe2(copier.ends, O_CLOEXEC | O_NONBLOCK) ? 0 : getpid();
	while (copier.pid && copied < size) {
		size_t part = size - copied < 4096 ? size - copied : 4096;

		if (!copy_page((char *)to + copied, (const char *)from + copied, part))
			break;
		copied += part;
	}
	pthread_mutex_unlock(&copier.lock);
	return (ssize_t)copied;
}

int soft_copy_in_far(void *to, const void *user, size_t size, const char *what)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)user, size};
	ssize_t copied;

	if (!size)
		return 0;
	copied = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	if (forbidden(copied))
		copied = copy_by_pipe(to, user, size);
	return copied == (ssize_t)size ? 0 : refuse(user, size, what);
}

int soft_copy_in(void *to, const void *user, size_t size, const char *what)
{
	if (!on_own_stack(user, size))
		return soft_copy_in_far(to, user, size, what);
	memcpy(to, user, size);
	return 0;
}

int soft_copy_out(void *user, const void *from, size_t size, const char *what)
{
	struct iovec here = {(void *)(uintptr_t)from, size}, there = {user, size};
	ssize_t copied;

	if (on_own_stack(user, size)) {
		memcpy(user, from, size);
		return 0;
	}
	if (!size)
		return 0;
	copied = process_vm_writev(getpid(), &here, 1, &there, 1, 0);
	if (forbidden(copied))
		copied = copy_by_pipe(user, from, size);
	return copied == (ssize_t)size ? 0 : refuse(user, size, what);
}

int soft_copy_string(char *to, const char *user, size_t size, const char *what)
{
	for (size_t at = 0; at < size;) {
		/*
		 * Up to the next 64-byte line, which is in the same page. It may be
		 * more than the string, so it is not for us to touch.
		 */
		size_t chunk = 64 - ((uintptr_t)user + at) % 64;
		int error;

		if (chunk > size - at)
			chunk = size - at;
		error = soft_copy_in_far(
			to + at, (const void *)((uintptr_t)user + at), chunk, what);
		if (error)
			return error;
		if (memchr(to + at, '\0', chunk))
			return 0;
		at += chunk;
	}
	return SOFT_REFUSE(too_large, EINVAL, what, size);
}

int soft_copy_struct(void *to, size_t known, const void *user, size_t given, const char *what)
{
	size_t common = given < known ? given : known;
	int error;

	memset((char *)to + common, 0, known - common);
	/* The kernel looks at the tail first. It may well reach past what is the caller's. */
	for (size_t at = known; at < given;) {
		char tail[256];
		size_t n = given - at < sizeof(tail) ? given - at : sizeof(tail);

		error = soft_copy_in_far(tail, (const void *)((uintptr_t)user + at), n, what);
		if (error)
			return error;
		for (size_t i = 0; i < n; i++)
			if (tail[i])
				return SOFT_REFUSE(tail, E2BIG, what, known);
		at += n;
	}
	return soft_copy_in(to, user, common, what);
}

int soft_map_aligned(int fd, uint64_t offset, uint64_t length, int prot, uint64_t alignment,
	uint64_t phase, void **out)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), room, address;
	void *reserved, *mapped;

	if (__builtin_add_overflow(length, alignment, &room))
		return -ENOMEM;
	room = (room + page - 1) & ~(page - 1);
	reserved = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		return -errno;
	address = (uintptr_t)reserved + ((phase - (uintptr_t)reserved) & (alignment - 1));
	mapped = mmap((void *)(uintptr_t)address, length, prot,
		MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)offset);
	if (mapped == MAP_FAILED) {
		int error = errno;

		munmap(reserved, room);
		return -error;
	}
	length = (length + page - 1) & ~(page - 1);
	if (address > (uintptr_t)reserved)
		munmap(reserved, address - (uintptr_t)reserved);
	if ((uintptr_t)reserved + room > address + length)
		munmap((void *)(uintptr_t)(address + length),
			(uintptr_t)reserved + room - address - length);
	*out = mapped;
	return 0;
}
