/* SPDX-License-Identifier: MIT */
/*
 * The kernel's two ioctls that say what backs a process's memory:
 * PROCMAP_QUERY on /proc/self/maps (Linux 6.11) and PAGEMAP_SCAN on
 * /proc/self/pagemap (Linux 6.7). Own definitions, since system headers are
 * often older; a kernel without them answers ENOTTY.
 */
#ifndef DMAMAP_ABI_PROCMAP_H
#define DMAMAP_ABI_PROCMAP_H

#include <stdint.h>
#include <sys/ioctl.h>

#include "abi/layout.h"

/* Prefixed, since <linux/fs.h> of a newer system has the kernel's own names. */
struct abi_page_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};
ABI_SIZE(abi_page_region, 24);

#define ABI_PAGE_IS_PRESENT (1u << 3)
#define ABI_PAGE_IS_PFNZERO (1u << 5)
#define ABI_PAGE_IS_HUGE    (1u << 6)

struct abi_pm_scan_arg {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};
ABI_SIZE(abi_pm_scan_arg, 96);
ABI_AT(abi_pm_scan_arg, vec, 40);
ABI_AT(abi_pm_scan_arg, return_mask, 88);

#define ABI_PAGEMAP_SCAN _IOWR('f', 16, struct abi_pm_scan_arg)

#define ABI_PROCMAP_VMA_READABLE	 0x01
#define ABI_PROCMAP_VMA_WRITABLE	 0x02
#define ABI_PROCMAP_VMA_SHARED		 0x08
#define ABI_PROCMAP_COVERING_OR_NEXT_VMA 0x10

struct abi_procmap_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};
ABI_SIZE(abi_procmap_query, 104);
ABI_AT(abi_procmap_query, vma_page_size, 48);
ABI_AT(abi_procmap_query, dev_major, 72);
ABI_AT(abi_procmap_query, build_id_addr, 96);

#define ABI_PROCMAP_QUERY _IOWR('f', 17, struct abi_procmap_query)

#endif
