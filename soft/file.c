/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: each open file of the soft system has a real descriptor of this
 * process, so that its number is taken and means one thing: an empty memfd,
 * where nothing else is of use. A table leads from the number to the file.
 *
 * A reference may only be taken from the table under its lock, or by someone
 * who has one already; so the last one to go needs no lock to release.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/soft.h"

void soft_file_init(
	struct soft_file *file, const struct soft_file_ops *ops, struct soft_system *system)
{
	file->ops = ops;
	file->system = system;
	atomic_init(&file->refs, 1);
	atomic_init(&file->position, 0);
	atomic_init(&file->mode, O_RDWR);
}

void soft_file_get(struct soft_file *file)
{
	atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
}

bool soft_file_try_get(struct soft_file *file)
{
	unsigned refs = atomic_load_explicit(&file->refs, memory_order_relaxed);

	while (refs && !atomic_compare_exchange_weak_explicit(&file->refs, &refs, refs + 1,
			       memory_order_relaxed, memory_order_relaxed))
		;
	return refs;
}

void soft_file_put(struct soft_file *file)
{
	if (file && atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) == 1)
		file->ops->release(file);
}

static int grow(struct soft_files *files, size_t fd)
{
	size_t n = files->n ? files->n : 64;
	struct soft_file **by_fd;

	while (n <= fd)
		n *= 2;
	by_fd = realloc(files->by_fd, n * sizeof(*by_fd));
	if (!by_fd)
		return -ENOMEM;
	memset(by_fd + files->n, 0, (n - files->n) * sizeof(*by_fd));
	files->by_fd = by_fd;
	files->n = n;
	return 0;
}

int soft_file_install(struct soft_file *file, const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0)
		return SOFT_REFUSE(no_descriptor, errno, name, 0);
	return soft_file_install_as(file, fd, name);
}

int soft_file_install_as(struct soft_file *file, int fd, const char *name)
{
	struct soft_files *files = &file->system->files;
	struct soft_file *stale = NULL;
	int error = 0;

	pthread_mutex_lock(&files->lock);
	if ((size_t)fd >= files->n)
		error = grow(files, (size_t)fd);
	if (!error) {
		/* The number was closed behind our back: its file is closed now. */
		stale = files->by_fd[fd];
		files->by_fd[fd] = file;
	}
	pthread_mutex_unlock(&files->lock);
	if (error) {
		close(fd);
		return SOFT_REFUSE(no_memory, ENOMEM, name, 0);
	}
	soft_file_put(stale);
	return fd;
}

struct soft_file *soft_file_find(struct soft_system *system, int fd)
{
	struct soft_files *files = &system->files;
	struct soft_file *file = NULL;

	pthread_mutex_lock(&files->lock);
	if (fd >= 0 && (size_t)fd < files->n) {
		file = files->by_fd[fd];
		if (file)
			soft_file_get(file);
	}
	pthread_mutex_unlock(&files->lock);
	return file;
}

int soft_file_unknown(int fd, const char *wanted)
{
	if (fcntl(fd, F_GETFD) < 0)
		return SOFT_REFUSE(bad_fd, EBADF, NULL, (uint64_t)(unsigned)fd);
	return SOFT_REFUSE(wrong_fd, EBADFD, wanted, (uint64_t)(unsigned)fd);
}

int soft_file_close(struct soft_system *system, int fd)
{
	struct soft_files *files = &system->files;
	struct soft_file *file = NULL;

	pthread_mutex_lock(&files->lock);
	if (fd >= 0 && (size_t)fd < files->n) {
		file = files->by_fd[fd];
		files->by_fd[fd] = NULL;
	}
	pthread_mutex_unlock(&files->lock);
	if (!file)
		return SOFT_REFUSE(bad_fd, EBADF, NULL, (uint64_t)(unsigned)fd);
	/* The number is free for others only after it left the table. */
	close(fd);
	soft_file_put(file);
	return 0;
}

void soft_files_close_all(struct soft_system *system)
{
	for (size_t fd = 0; fd < system->files.n; fd++)
		if (system->files.by_fd[fd])
			soft_file_close(system, (int)fd);
	free(system->files.by_fd);
	system->files.by_fd = NULL;
	system->files.n = 0;
}
