/* SPDX-License-Identifier: MIT */
/*
 * The soft system's reasons: what refuses a call, one kind for each rule of
 * the uAPI. The reason of a thread's last failed call is kept for it.
 */
#ifndef DMAMAP_SOFT_REASON_H
#define DMAMAP_SOFT_REASON_H

#include "dmamap/engine.h"

#define SOFT_REASONS(K)                                                                            \
	K(pointer, "address {0x} cannot be used: {1d} bytes are wanted there ({t})")               \
	K(argsz, "the size given is {0d}, and {t} has at least {1d} bytes")                        \
	K(flags, "flags {0x} are not all known: {t} takes {1x}")                                   \
	K(flags_together, "flags {0x} do not go together ({t})")                                   \
	K(tail, "a byte past the first {0d} of {t} is not zero: this kernel knows no more")        \
	K(reserved_field, "a reserved field of {t} is {0x}")                                       \
	K(no_io, "a file of kind {t} cannot be read, written or mapped that way")                  \
	K(request, "{t} has no request {0x}")                                                      \
	K(not_provided, "{t} is not provided by the soft system")                                  \
	K(bad_fd, "{0d} is no open descriptor of this system")                                     \
	K(wrong_fd, "descriptor {0d} is no {t}")                                                   \
	K(no_file, "there is no {t}")                                                              \
	K(no_descriptor, "no descriptor for {t}")                                                  \
	K(no_memory, "no memory for {t}")                                                          \
	K(group_open, "group {0d} is open already")                                                \
	K(group_cdev, "a device of group {0d} is open through its cdev")                           \
	K(group_set, "group {0d} has a container already")                                         \
	K(group_unset, "group {0d} has no container")                                              \
	K(group_used, "a device of group {0d} is open")                                            \
	K(group_owned, "group {0d} belongs to another user")                                       \
	K(device_name, "group {0d} has no device {t}")                                             \
	K(device_token, "{t} is no virtual function: it takes nothing after its name")             \
	K(device_unbound, "the device is not bound to an IOMMUFD")                                 \
	K(device_bound, "the device is open already")                                              \
	K(device_by_group, "a device that came from a group cannot be bound")                      \
	K(container_empty, "the container has no group")                                           \
	K(iommu_unset, "VFIO_SET_IOMMU has not been called on the container")                      \
	K(iommu_set, "the container has an IOMMU already")                                         \
	K(iommu_type, "no IOMMU driver takes type {0d}")                                           \
	K(length_zero, "the length is 0 ({t})")                                                    \
	K(wrap, "{t} {0x} and length {1x} reach past the last byte of 64 bits")                    \
	K(too_large, "{t} is {0x}, which is past what can be asked for")                           \
	K(misaligned, "{t} {0x} is no multiple of {1s}")                                           \
	K(unmap_all, "with the flag ALL, iova ({0x}) and size ({1x}) must be 0")                   \
	K(unmap_nothing, "nothing is mapped in {0x}-{1x}")                                         \
	K(vaddr_nothing, "nothing is mapped at iova {0x} whose address could be changed")          \
	K(vaddr_valid, "the mapping {0x}-{1x} has a valid address: unmap with VADDR first")        \
	K(tracking_off, "dirty tracking is off")                                                   \
	K(dirty_v1, "type1 (v1) has no dirty tracking")                                            \
	K(bitmap_size, "a bitmap of {0d} bytes for {1d} pages")                                    \
	K(object_unknown, "no object has the id {0d} ({t} is wanted)")                             \
	K(object_type, "object {0d} is neither an IOAS nor a page table")                          \
	K(object_busy, "object {0d} is in use by {1d} others")                                     \
	K(objects_exist, "the descriptor has objects already")                                     \
	K(no_compat_ioas, "the IOMMUFD has no IOAS for VFIO: attach a group or set one")           \
	K(value, "{t} cannot be {0d}")                                                             \
	K(capability, "{t} is missing")                                                            \
	K(ranges_room, "there are {0d} ranges, and room for {1d}")                                 \
	K(range_order, "the range {0x}-{1x} does not end after its start")                         \
	K(range_overlap, "the ranges {0x}-{1x} and {2x}-{3x} overlap")                             \
	K(range_reserved, "the range {0x}-{1x} is not wholly free of reserved IOVAs")              \
	K(range_allowed, "{0x}-{1x} ({t}) is inside the allowed range {2x}-{3x}")                  \
	K(offset_misaligned, "the memory of {0x}-{1x} starts {2d} bytes into a page")              \
	K(large_pages, "pages of more than the smallest size may be mapped already")               \
	K(group_elsewhere, "the device's group {0d} is attached to another page table")            \
	K(hole, "no memory is at address {0x}, within {1x}-{2x}")                                  \
	K(memory_access, "memory at {0x}-{1x} cannot be {t}")                                      \
	K(memory_fault, "memory at {0x}-{1x} cannot be made present: {t}")                         \
	K(bar_pinned, "{0x} is a device's BAR: IOMMUFD maps only memory that can be pinned")       \
	K(bar_off, "memory decoding of {t} is off, and {0x} is in its BAR {1d}")                   \
	K(file_kind, "the file is neither a memfd nor on hugetlbfs")                               \
	K(file_end, "bytes {0x}-{1x} are asked of a file of {2x} bytes")                           \
	K(file_map, "the file cannot be mapped into this process: {t}")                            \
	K(region, "the device has no region {0d}")                                                 \
	K(region_mmap, "region {0d} cannot be mapped with mmap")                                   \
	K(region_end, "offset {0x} and {1x} bytes reach past region {2d} ({3x} bytes)")            \
	K(mmap_shared, "a region can only be mapped shared")                                       \
	K(irq, "the device has no interrupt {0d}")                                                 \
	K(machine, "a machine whose {t} is {0x} cannot be")

#define SOFT_DECLARE_REASON(id, sentence) extern const struct dmamap_reason_kind soft_reason_##id;
SOFT_REASONS(SOFT_DECLARE_REASON)
#undef SOFT_DECLARE_REASON

/* Where this thread's last refusal is kept. */
struct dmamap_reason *soft_why(void);

/* Records why, returns -error. At least one number follows. */
#define SOFT_REFUSE(kind, error, label, ...)                                                       \
	DMAMAP_REFUSE(soft_why(), &soft_reason_##kind, error, label, __VA_ARGS__)

#endif
