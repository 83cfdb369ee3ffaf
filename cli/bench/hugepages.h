/* SPDX-License-Identifier: MIT */
/*
 * Huge pages of hugetlb, reserved for a run and given back after it. Pages
 * that were in the pool before stay in it, whatever else changes meanwhile:
 * what is given back is the number that was taken.
 */
#ifndef BENCH_HUGEPAGES_H
#define BENCH_HUGEPAGES_H

#include <stdint.h>

/** hugepages_free() - Pages of 2^shift bytes that nobody has claimed. -ENOENT: no such size. */
int hugepages_free(unsigned shift, uint64_t *pages);

/**
 * hugepages_reserve() - See to it that @pages are free, adding what is missing.
 *
 * Return: 0; -ENOENT the kernel has no such size; -EBADF, -EACCES, -EPERM, -EROFS
 * not allowed to add; -EBUSY another bench has the pool; -ENOMEM the kernel did not find as many:
 * none is kept.
 */
int hugepages_reserve(unsigned shift, uint64_t pages);

/**
 * hugepages_restore() - Give back all that was taken. May be called at any
 * time, in a signal handler too; pages still in use go when they are freed.
 */
void hugepages_restore(void);

/** hugepages_total() - What the pool must hold in all for @pages to be free; for messages. */
uint64_t hugepages_total(unsigned shift, uint64_t pages);

/** hugepages_path() - The pool's file that root writes a number to, for messages. */
#define HUGEPAGES_PATH 80
char *hugepages_path(unsigned shift, char path[HUGEPAGES_PATH]);

#endif
