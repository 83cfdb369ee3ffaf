/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD for programs that know nothing of dmamap: their calls on VDUSE's
 * files become calls on the system that $DMAMAP_SERVER names, the socket of a
 * process that serves one (dmamap_soft_serve()). Without it, nothing happens.
 *
 * There are no rules here. A table has a mark for each descriptor that came
 * from such a call or was duplicated from one; all others go on to the C
 * library. A mark can be stale, since a descriptor may be closed in ways that
 * are not seen from here (close_range(2), io_uring): the system does not know
 * it then, the mark goes, and so does the call, to the C library.
 *
 * Not seen: calls by syscall(2), opens by io_uring, fopen(3), static programs.
 */
#undef _FILE_OFFSET_BITS /* open() and open64() are two functions here */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "dmamap/soft.h"

#define EXPORT	 __attribute__((visibility("default")))
#define MARKS	 65536
#define REDIRECT "DMAMAP_SERVER"

/* The C library's own function. */
#define NEXT(name, type)                                                                           \
	({                                                                                         \
		static type *_Atomic found;                                                        \
		type *function = atomic_load_explicit(&found, memory_order_relaxed);               \
		if (!function) {                                                                   \
			function = (type *)dlsym(RTLD_NEXT, name);                                 \
			atomic_store_explicit(&found, function, memory_order_relaxed);             \
		}                                                                                  \
		function;                                                                          \
	})

typedef int open_function(const char *, int, ...);
typedef int openat_function(int, const char *, int, ...);
typedef int open_2_function(const char *, int);
typedef int openat_2_function(int, const char *, int);
typedef int fd_function(int);
typedef int two_fds_function(int, int);
typedef int three_function(int, int, int);
typedef int fcntl_function(int, int, ...);
typedef int ioctl_function(int, unsigned long, ...);
typedef ssize_t read_function(int, void *, size_t);
typedef ssize_t read_chk_function(int, void *, size_t, size_t);
typedef ssize_t write_function(int, const void *, size_t);
typedef ssize_t pread_function(int, void *, size_t, off64_t);
typedef ssize_t pwrite_function(int, const void *, size_t, off64_t);

static atomic_bool marks[MARKS];
/* Whose they are: the child of a vfork has its own descriptors, and its parent's memory. */
static pid_t owner;
static _Atomic(struct dmamap_system *) the_system;
/* The system's own calls are the C library's. */
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

/* The child of a fork has the parent's lock, held or not: it takes a system of its own. */
static void forked(void)
{
	atomic_store(&the_system, NULL);
	owner = getpid();
	inside = false;
}

__attribute__((constructor)) static void start(void)
{
	owner = getpid();
	if (getenv(REDIRECT))
		pthread_atfork(NULL, NULL, forked);
}

/* NULL: nothing is redirected, or there is no memory for it. */
static struct dmamap_system *get_system(void)
{
	struct dmamap_system *made, *old = atomic_load(&the_system);
	const char *path = old ? NULL : getenv(REDIRECT);

	if (old || !path || dmamap_system_remote(path, &made))
		return old;
	if (atomic_compare_exchange_strong(&the_system, &old, made))
		return made;
	dmamap_system_destroy(made);
	return old;
}

static bool marked(int fd)
{
	return !inside && fd >= 0 && fd < MARKS &&
	       atomic_load_explicit(&marks[fd], memory_order_relaxed);
}

/* One too many does no harm; one too few makes a file none of the system's. */
static void mark(int fd, bool is)
{
	if (fd >= 0 && fd < MARKS && (is || owner == getpid()))
		atomic_store_explicit(&marks[fd], is, memory_order_relaxed);
}

/* As the C library returns it. */
static ssize_t answer(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* An EBADF of the other process's is an answer; with a reason of its own the call came to nobody.
 */
static bool is_nobodys(struct dmamap_system *system)
{
	struct dmamap_reason reason;

	return !system->ops->reason(system, &reason);
}

/* false: it is not one of the system's files (any more). */
#define ON_SYSTEM(fd, result, call)                                                                \
	({                                                                                         \
		struct dmamap_system *system = marked(fd) ? get_system() : NULL;                   \
		if (system) {                                                                      \
			inside = true;                                                             \
			(result) = system->ops->call;                                              \
			inside = false;                                                            \
			if ((result) == -EBADF && is_nobodys(system)) {                            \
				mark(fd, false);                                                   \
				system = NULL;                                                     \
			}                                                                          \
		}                                                                                  \
		system != NULL;                                                                    \
	})

/* ------------------------------------------------------------------- open */

static bool is_redirected(const char *path)
{
	return !inside && path &&
	       (!strncmp(path, "/dev/vduse/", 11) || !strncmp(path, "/sys/class/vduse/", 17)) &&
	       get_system();
}

static int open_redirected(const char *path, int flags)
{
	struct dmamap_system *system = get_system();
	int fd;

	inside = true;
	fd = system->ops->open(system, path, flags);
	if (fd >= MARKS) {
		close(fd);
		fd = -EMFILE;
	}
	if (fd >= 0 && !(flags & O_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	inside = false;
	mark(fd, true);
	return (int)answer(fd);
}

/* Only some calls have a mode; reading one that is not there does no harm on these machines. */
#define MODE_OF(last)                                                                              \
	({                                                                                         \
		va_list rest;                                                                      \
		mode_t given;                                                                      \
		va_start(rest, last);                                                              \
		given = va_arg(rest, mode_t);                                                      \
		va_end(rest);                                                                      \
		given;                                                                             \
	})

EXPORT int open(const char *path, int flags, ...)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("open", open_function)(path, flags, MODE_OF(flags));
}

EXPORT int open64(const char *path, int flags, ...)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("open64", open_function)(path, flags, MODE_OF(flags));
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("openat", openat_function)(folder, path, flags, MODE_OF(flags));
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("openat64", openat_function)(folder, path, flags, MODE_OF(flags));
}

/* What the C library's headers make of calls without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("__open_2", open_2_function)(path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("__open64_2", open_2_function)(path, flags);
}

EXPORT int __openat_2(int folder, const char *path, int flags)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("__openat_2", openat_2_function)(folder, path, flags);
}

EXPORT int __openat64_2(int folder, const char *path, int flags)
{
	if (is_redirected(path))
		return open_redirected(path, flags);
	return NEXT("__openat64_2", openat_2_function)(folder, path, flags);
}

/* ------------------------------------------------------------ descriptors */

EXPORT int close(int fd)
{
	bool was = marked(fd);

	/* First: the number may be another file's before the call is back. */
	if (was)
		mark(fd, false);
	return NEXT("close", fd_function)(fd);
}

static int duplicated(int from, int to)
{
	if (to >= 0 && (marked(from) || marked(to)))
		mark(to, marked(from));
	return to;
}

EXPORT int dup(int fd)
{
	return duplicated(fd, NEXT("dup", fd_function)(fd));
}

EXPORT int dup2(int fd, int to)
{
	return duplicated(fd, NEXT("dup2", two_fds_function)(fd, to));
}

EXPORT int dup3(int fd, int to, int flags)
{
	return duplicated(fd, NEXT("dup3", three_function)(fd, to, flags));
}

static int control(fcntl_function *function, int fd, int command, void *argument)
{
	int result = function(fd, command, argument);

	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		duplicated(fd, result);
	return result;
}

#define ARGUMENT_OF(last)                                                                          \
	({                                                                                         \
		va_list rest;                                                                      \
		void *given;                                                                       \
		va_start(rest, last);                                                              \
		given = va_arg(rest, void *);                                                      \
		va_end(rest);                                                                      \
		given;                                                                             \
	})

EXPORT int fcntl(int fd, int command, ...)
{
	return control(NEXT("fcntl", fcntl_function), fd, command, ARGUMENT_OF(command));
}

int fcntl64(int fd, int command, ...);

EXPORT int fcntl64(int fd, int command, ...)
{
	return control(NEXT("fcntl64", fcntl_function), fd, command, ARGUMENT_OF(command));
}

/* ------------------------------------------------------------------ calls */

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	void *argument = ARGUMENT_OF(request);
	int result;

	if (ON_SYSTEM(fd, result, ioctl(system, fd, request, argument)))
		return (int)answer(result);
	return NEXT("ioctl", ioctl_function)(fd, request, argument);
}

EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
	ssize_t result;

	if (ON_SYSTEM(fd, result, read(system, fd, buffer, size)))
		return answer(result);
	return NEXT("read", read_function)(fd, buffer, size);
}

EXPORT ssize_t write(int fd, const void *buffer, size_t size)
{
	ssize_t result;

	if (ON_SYSTEM(fd, result, write(system, fd, buffer, size)))
		return answer(result);
	return NEXT("write", write_function)(fd, buffer, size);
}

EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
	ssize_t result;

	if (ON_SYSTEM(fd, result, pread(system, fd, buffer, size, (uint64_t)offset)))
		return answer(result);
	return NEXT("pread64", pread_function)(fd, buffer, size, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset)
{
	ssize_t result;

	if (ON_SYSTEM(fd, result, pwrite(system, fd, buffer, size, (uint64_t)offset)))
		return answer(result);
	return NEXT("pwrite64", pwrite_function)(fd, buffer, size, offset);
}

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	return pread64(fd, buffer, size, offset);
}

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
	return pwrite64(fd, buffer, size, offset);
}

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
	ssize_t result;

	if (size <= room && ON_SYSTEM(fd, result, read(system, fd, buffer, size)))
		return answer(result);
	return NEXT("__read_chk", read_chk_function)(fd, buffer, size, room);
}
