/* SPDX-License-Identifier: MIT */
/*
 * Huge pages of hugetlb, reserved for a run and given back after it.
 *
 * A pool is one size's nr_hugepages in sysfs. Signals are held off while a
 * pool changes, so that a handler that calls hugepages_restore() always finds
 * the true number of pages taken. One thread changes pools.
 */
#include "hugepages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Sizes that bench uses: 2 MiB and 1 GiB. */
static struct pool {
	unsigned shift;
	int fd; /* of nr_hugepages, with a lock that keeps benches apart; -1: not in use */
	volatile uint64_t taken;
} pools[] = {{.shift = 21, .fd = -1}, {.shift = 30, .fd = -1}};

#define POOLS (sizeof(pools) / sizeof(pools[0]))

static void pool_path(unsigned shift, const char *file, char *path, size_t size)
{
	snprintf(path, size, "/sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/%s",
		((uint64_t)1 << shift) / 1024, file);
}

char *hugepages_path(unsigned shift, char path[HUGEPAGES_PATH])
{
	pool_path(shift, "nr_hugepages", path, HUGEPAGES_PATH);
	return path;
}

/* The two below use nothing that a signal handler may not. */
static int read_number(int fd, uint64_t *number)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	if (n < 0)
		return -errno;
	*number = 0;
	for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		*number = *number * 10 + (uint64_t)(text[i] - '0');
	return 0;
}

static int write_number(int fd, uint64_t number)
{
	char text[32];
	char *p = text + sizeof(text);

	do
		*--p = (char)('0' + number % 10);
	while (number /= 10);
	return pwrite(fd, p, (size_t)(text + sizeof(text) - p), 0) < 0 ? -errno : 0;
}

static int read_file(unsigned shift, const char *file, uint64_t *number)
{
	char path[HUGEPAGES_PATH];
	int fd;
	int error;

	pool_path(shift, file, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = read_number(fd, number);
	close(fd);
	return error;
}

int hugepages_free(unsigned shift, uint64_t *pages)
{
	uint64_t claimed = 0;
	int error = read_file(shift, "free_hugepages", pages);

	if (!error)
		error = read_file(shift, "resv_hugepages", &claimed);
	if (!error)
		*pages -= claimed < *pages ? claimed : *pages;
	return error;
}

uint64_t hugepages_total(unsigned shift, uint64_t pages)
{
	uint64_t total = 0;
	uint64_t unclaimed = 0;

	if (read_file(shift, "nr_hugepages", &total) || hugepages_free(shift, &unclaimed))
		return pages;
	return unclaimed < pages ? total + (pages - unclaimed) : total;
}

/* Give back what this process added to one pool, and its lock. */
static void give_back(struct pool *pool)
{
	uint64_t now = 0;

	if (pool->fd < 0)
		return;
	if (pool->taken && !read_number(pool->fd, &now))
		write_number(pool->fd, now > pool->taken ? now - pool->taken : 0);
	pool->taken = 0;
	close(pool->fd);
	pool->fd = -1;
}

/* Add pages to an open pool; what was added is known, whatever comes of it. */
static int add(struct pool *pool, uint64_t pages)
{
	uint64_t before = 0;
	uint64_t after = 0;
	int error = read_number(pool->fd, &before);

	if (!error)
		error = write_number(pool->fd, before + pages);
	if (!error)
		error = read_number(pool->fd, &after);
	if (error)
		return error;
	pool->taken = after > before ? after - before : 0;
	return pool->taken < pages ? -ENOMEM : 0;
}

static int take(struct pool *pool, uint64_t pages)
{
	char path[HUGEPAGES_PATH];
	uint64_t unclaimed = 0;
	int error;

	give_back(pool);
	hugepages_path(pool->shift, path);
	pool->fd = open(path, O_RDWR | O_CLOEXEC);
	if (pool->fd < 0)
		pool->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (pool->fd < 0)
		return -errno;
	/*
	 * Pages that are free may be another bench's, about to be used: one bench
	 * at a time. A kernel without file locks (ENOSYS) leaves that to the user.
	 */
	if (flock(pool->fd, LOCK_EX | LOCK_NB) && errno != ENOSYS)
		error = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else
		error = hugepages_free(pool->shift, &unclaimed);
	if (!error && unclaimed < pages)
		error = add(pool, pages - unclaimed);
	if (error)
		give_back(pool);
	return error;
}

int hugepages_reserve(unsigned shift, uint64_t pages)
{
	sigset_t all;
	sigset_t old;
	int error = -ENOENT;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	for (size_t i = 0; i < POOLS; i++)
		if (pools[i].shift == shift)
			error = take(&pools[i], pages);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return error;
}

void hugepages_restore(void)
{
	sigset_t all;
	sigset_t old;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	for (size_t i = 0; i < POOLS; i++)
		give_back(&pools[i]);
	sigprocmask(SIG_SETMASK, &old, NULL);
}
