/* SPDX-License-Identifier: MIT */
/* The Linux system passes calls on: results, -errno, a stable order of names. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dmamap/system.h"

static struct dmamap_system *linux_system;
static char directory[] = "/tmp/dmamap-test-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return dmamap_system_linux(&linux_system) || !mkdtemp(directory);
}

static int teardown(void **state)
{
	char path[64];

	(void)state;
	for (const char *p = "bca"; *p; p++) {
		snprintf(path, sizeof(path), "%s/%c", directory, *p);
		unlink(path);
	}
	rmdir(directory);
	dmamap_system_destroy(linux_system);
	return 0;
}

static void files(void **state)
{
	const struct dmamap_system_ops *ops = linux_system->ops;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char path[64], buffer[8] = "";
	void *va;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/a", directory);
	assert_int_equal(ops->open(linux_system, path, O_RDWR), -ENOENT);
	fd = creat(path, 0600);
	assert_int_equal(ftruncate(fd, (off_t)page * 2), 0);
	close(fd);
	fd = ops->open(linux_system, path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(ops->pwrite(linux_system, fd, "hello", 5, page), 5);
	assert_int_equal(ops->pread(linux_system, fd, buffer, 5, page), 5);
	assert_string_equal(buffer, "hello");
	assert_int_equal(ops->read(linux_system, fd, buffer, 5), 5);
	assert_int_equal(buffer[0], 0);
	assert_int_equal(ops->pread(linux_system, fd, buffer, 5, UINT64_MAX), -EINVAL);
	assert_int_equal(
		ops->mmap(linux_system, NULL, page, PROT_READ, MAP_SHARED, fd, page, &va), 0);
	assert_memory_equal(va, "hello", 5);
	assert_int_equal(ops->munmap(linux_system, va, page), 0);
	assert_int_equal(
		ops->mmap(linux_system, NULL, page, PROT_READ, MAP_SHARED, fd, 1, &va), -EINVAL);
	assert_int_equal(ops->ioctl(linux_system, fd, _IO(';', 100), NULL), -ENOTTY);
	assert_int_equal(ops->close(linux_system, fd), 0);
	assert_int_equal(ops->close(linux_system, -1), -EBADF);
	assert_int_equal(ops->read(linux_system, -1, buffer, 1), -EBADF);
	assert_int_equal(ops->pwrite(linux_system, -1, buffer, 1, 0), -EBADF);
	assert_int_equal(ops->munmap(linux_system, (void *)1, page), -EINVAL);
}

static void links_are_cut_to_size(void **state)
{
	const struct dmamap_system_ops *ops = linux_system->ops;
	char path[64], target[8];

	(void)state;
	snprintf(path, sizeof(path), "%s/b", directory);
	assert_int_equal(symlink("../vfio-pci", path), 0);
	assert_int_equal(ops->readlink(linux_system, path, target, sizeof(target)), 7);
	assert_string_equal(target, "../vfio");
	assert_int_equal(ops->readlink(linux_system, directory, target, sizeof(target)), -EINVAL);
	assert_int_equal(ops->readlink(linux_system, path, target, 0), -EINVAL);
}

static void names_are_sorted(void **state)
{
	const struct dmamap_system_ops *ops = linux_system->ops;
	char path[64], name[2];

	(void)state;
	for (const char *p = "cba"; *p; p++) {
		snprintf(path, sizeof(path), "%s/%c", directory, *p);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	/* b may be the link of another test; it sorts the same. */
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%c", 'a' + (char)i);
		assert_int_equal(ops->list(linux_system, directory, i, name, sizeof(name)), 1);
		assert_string_equal(name, path);
	}
	assert_int_equal(ops->list(linux_system, directory, 3, name, sizeof(name)), -ENOENT);
	assert_int_equal(ops->list(linux_system, directory, 0, name, 1), -ENAMETOOLONG);
	assert_int_equal(ops->list(linux_system, "/nowhere", 0, name, sizeof(name)), -ENOENT);
}

static void nobody_counts_or_knows(void **state)
{
	struct dmamap_counters counters;
	struct dmamap_reason reason;

	(void)state;
	assert_int_equal(linux_system->ops->counters(linux_system, &counters), -EOPNOTSUPP);
	assert_int_equal(linux_system->ops->reason(linux_system, &reason), -ENOENT);
	assert_string_equal(linux_system->ops->name, "linux");
	assert_null(linux_system->ops->note);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(links_are_cut_to_size),
		cmocka_unit_test(names_are_sorted),
		cmocka_unit_test(nobody_counts_or_knows),
	};

	return cmocka_run_group_tests_name("system linux", tests, setup, teardown);
}
