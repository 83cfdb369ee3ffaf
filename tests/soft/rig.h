/* SPDX-License-Identifier: MIT */
/*
 * What the soft system's tests share: opening a device by each way, the mapping
 * calls as functions, and checks of an errno together with its reason's name.
 * The kernel file named in a test's comment is where its rule comes from.
 */
#ifndef DMAMAP_TESTS_SOFT_RIG_H
#define DMAMAP_TESTS_SOFT_RIG_H

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "dmamap/soft.h"
#include "tests/check.h"

#define KIB	  (1ULL << 10)
#define MIB	  (1ULL << 20)
#define GIB	  (1ULL << 30)
#define PAGE	  4096ULL
#define READ	  DMAMAP_READ
#define WRITE	  DMAMAP_WRITE
#define RW	  (DMAMAP_READ | DMAMAP_WRITE)
#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* One system and one device open in it; what is not open is -1. */
struct rig {
	struct dmamap_system *system;
	struct dmamap_system *soft; /* the same, unless it is served: what drivers attach to */
	int container;		    /* or the IOMMUFD */
	int group;
	int device;
	uint32_t ioas;
};

/* A system alone; with DMAMAP_RIG=served in the environment, calls come to it by way of a server.
 * NULL: the default machine, without a limit on locked memory, so that a test
 * needs no privilege. Fails the test when it cannot be. */
void rig_start(struct rig *rig, const struct dmamap_machine *machine);
/* A machine of four groups: 7 is behind the first IOMMU, 8
 * behind the second, 9 the third; those without one, and 10, behind the first. */
void rig_start_iommus(struct rig *rig, const struct dmamap_machine_iommu *iommus, unsigned n,
	unsigned as_kernel, enum dmamap_memlock memlock);
/* Closes all that is open. */
void rig_stop(struct rig *rig);
/* Through a group: @file "/dev/vfio/vfio" or "/dev/iommu", @type for SET_IOMMU. */
void rig_group(struct rig *rig, const char *file, unsigned long type);
/* Through a cdev, with an IOAS that it is attached to when @attach. */
void rig_cdev(struct rig *rig, bool attach);

int rig_open(struct rig *rig, const char *path);
void rig_close(struct rig *rig, int *fd);
int rig_ioctl(struct rig *rig, int fd, unsigned long request, void *argument);
/* The name of the last refusal's reason; "" when there is none. */
const char *rig_reason(struct rig *rig);
/* The reason as a sentence. */
const char *rig_sentence(struct rig *rig);

/* VFIO's calls on rig->container. */
int rig_map(struct rig *rig, uint64_t iova, const void *va, uint64_t size, unsigned prot);
int rig_unmap(struct rig *rig, uint64_t iova, uint64_t *size, uint32_t flags);
/* IOMMUFD's own, on rig->ioas; rig_ioas_map at a fixed IOVA. */
int rig_ioas_map(struct rig *rig, uint64_t iova, const void *va, uint64_t length, unsigned prot);
int rig_ioas_unmap(struct rig *rig, uint64_t iova, uint64_t *length);
/* Where @flags say; *@iova is what comes back. */
int rig_ioas_map_as(struct rig *rig, uint64_t va, uint64_t length, uint64_t *iova, uint32_t flags);
/* From rig->ioas to another, or the same one, at a fixed IOVA, read and write. */
int rig_ioas_copy(struct rig *rig, uint32_t to, uint64_t src, uint64_t length, uint64_t dst);
int rig_huge_pages(struct rig *rig, bool on);
uint32_t rig_ioas_alloc(struct rig *rig);
int rig_bind(struct rig *rig, int device, int iommufd, uint32_t *id);
int rig_attach(struct rig *rig, int device, uint32_t *pt_id);

/* A BAR's mapping: @shift bytes past an address that is aligned to 1 GiB or the size. */
void *rig_bar(struct rig *rig, unsigned bar, uint64_t size, uint64_t shift);
struct dmamap_counters rig_counters(struct rig *rig);
/* Private memory of @length bytes in 4 KiB pages, aligned to 2 MiB; populated or not. */
void *rig_memory(uint64_t length, bool populate);
/* How many descriptors this process has open. */
unsigned rig_descriptors(void);

/* That a call gives this -errno, and the rule that refused it is this one. */
#define assert_gives(rig, call, error, kind)                                                       \
	do {                                                                                       \
		assert_int_equal(call, -(error));                                                  \
		assert_string_equal(rig_reason(rig), kind);                                        \
	} while (0)

#endif
