/* SPDX-License-Identifier: MIT */
/* What the machine is and has: kernel, processor, page sizes, memory, limits. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct host - As it was at the start.
 * @memory: bytes in all
 * @available: bytes that can be allocated without swapping, at most what the
 *	control group allows
 * @thp_size: bytes of a transparent huge page; 0: the kernel has none
 * @thp, @thp_shmem: the chosen setting: "always", "madvise", "never" ...
 * @memlock: bytes that this process may lock; UINT64_MAX: no limit
 */
struct host {
	char name[65];
	char kernel[136];
	char machine[65];
	char cpu[128];
	unsigned cpus;
	uint64_t page_size;
	uint64_t memory;
	uint64_t available;
	uint64_t thp_size;
	char thp[24];
	char thp_shmem[24];
	uint64_t memlock;
};

void host_read(struct host *host);

/** host_usable() - Bytes of @host->available that a bench may fill: one part in eight stays free.
 */
uint64_t host_usable(const struct host *host);

#endif
