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
	K(file_mode, "the file was opened with access mode {0d}, and cannot be {t}")               \
	K(no_io, "a file of kind {t} cannot be read, written or mapped that way")                  \
	K(request, "{t} has no request {0x}")                                                      \
	K(not_provided, "{t} is not provided by the soft system")                                  \
	K(bad_fd, "{0d} is no open descriptor of this system")                                     \
	K(wrong_fd, "descriptor {0d} is no {t}")                                                   \
	K(no_file, "there is no {t}")                                                              \
	K(no_descriptor, "no descriptor for {t}")                                                  \
	K(no_memory, "no memory for {t}")                                                          \
	K(memlock, "{0s} cannot be locked: {t} may lock {2s} (RLIMIT_MEMLOCK, no CAP_IPC_LOCK) "   \
		   "and is charged {1s}; each container and IOAS counts for itself")               \
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
	K(group_vaddr, "group {0d} cannot join: {1d} mappings have an invalid address; map them "  \
		       "again with VADDR first")                                                   \
	K(group_nesting, "group {0d} cannot join: its IOMMU cannot nest")                          \
	K(group_aperture, "group {0d} cannot join: the mapping {1x}-{2x} ends past {3x}, the "     \
			  "last of its IOMMU's {4d}-bit aperture")                                 \
	K(group_disjoint, "group {0d} cannot join: its IOMMU's {2d}-bit aperture ends at {1x}, "   \
			  "before the first usable IOVA, {3x}")                                    \
	K(group_window, "group {0d} cannot join: the mapping {1x}-{2x} overlaps {3x}-{4x}, which " \
			"is reserved for it ({t})")                                                \
	K(group_nothing, "group {0d} cannot join: no usable IOVA would be left")                   \
	K(group_msi, "the interrupts of group {0d} are not isolated, and "                         \
		     "allow_unsafe_interrupts is off")                                             \
	K(aperture, "iova {0x}-{1x} ends past {2x}, the last of the {3d}-bit aperture")            \
	K(unusable, "iova {0x}-{1x} lies in none of the {2d} usable ranges that GET_INFO lists")   \
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
	K(vaddr_invalid, "the mapping {0x}-{1x} has an invalid address already: all keep theirs")  \
	K(vaddr_inexact, "iova {0x}-{1x} is not a whole mapping: {2x}-{3x} is")                    \
	K(tracking_off, "dirty tracking is off")                                                   \
	K(dirty_v1, "type1 (v1) has no dirty tracking")                                            \
	K(bitmap_size, "a bitmap of {0d} bytes cannot be for {1d} pages: one bit each, in whole "  \
		       "words of 8 bytes, up to {2s}")                                             \
	K(bitmap_page, "a bitmap of pages of {0s} was asked for, and there is only {1s}")          \
	K(bitmap_pages, "the mapping {0x}-{1x} has {2d} pages, and a bitmap at most {3d}")         \
	K(object_unknown, "no object has the id {0d} ({t} is wanted)")                             \
	K(object_type, "object {0d} is neither an IOAS nor a page table")                          \
	K(object_busy, "object {0d} is in use by {1d} others")                                     \
	K(attached, "{t} is attached to page table {0d} already, in another way")                  \
	K(unsafe_interrupts,                                                                       \
		"interrupts of {t} are not isolated, and allow_unsafe_interrupts is off")          \
	K(hwpt_dirty, "flags {0x} ask for dirty tracking, which the IOMMU of {t} has not")         \
	K(hwpt_tracks, "page table {0d} tracks dirty pages, which the IOMMU of {t} cannot")        \
	K(hwpt_untracked, "page table {0d} was not allocated with DIRTY_TRACKING")                 \
	K(hwpt_data, "the IOMMU's driver takes no data for a page table ({0d} bytes)")             \
	K(hwpt_data_type, "data of type {0d} and of {1d} bytes do not go together")                \
	K(hwpt_parent, "page table {0d} was not allocated with NEST_PARENT")                       \
	K(hwpt_nested, "object {0d} is no nested page table: there is nothing to invalidate")      \
	K(hwpt_pasid, "page table {0d} was not allocated for PASIDs")                              \
	K(hwpt_iommu,                                                                              \
		"page table {0d} ({1d} bits) was made for another IOMMU than {t}'s ({2d} bits)")   \
	K(not_file, "{0x}-{1x} of IOAS {2d} is not mapped from a file: it cannot change hands")    \
	K(fault_size, "offset {0d} and size {1d} are not 0 and a multiple of {2d}")                \
	K(fault_cookie, "no fault waits for a response with the cookie {0d}")                      \
	K(objects_exist, "the descriptor has {0d} objects already")                                \
	K(no_compat_ioas, "the IOMMUFD has no IOAS for VFIO: attach a group or set one")           \
	K(value, "{t} cannot be {0d}")                                                             \
	K(capability, "{t} is missing")                                                            \
	K(ranges_room, "there are {0d} ranges, and room for {1d}")                                 \
	K(range_order, "the range {0x}-{1x} does not end after its start")                         \
	K(range_overlap, "the ranges {0x}-{1x} and {2x}-{3x} overlap")                             \
	K(range_reserved, "the range {0x}-{1x} is not wholly free of reserved IOVAs")              \
	K(range_allowed, "{0x}-{1x} ({t}) is inside the allowed range {2x}-{3x}")                  \
	K(offset_misaligned, "the memory of {0x}-{1x} starts {2d} bytes into a page")              \
	K(area_misaligned, "{0x}-{1x} is mapped, and does not begin or end at a multiple of {2s}") \
	K(large_pages, "{0x}-{1x} is mapped already, perhaps in large pages")                      \
	K(group_elsewhere, "the device's group {0d} is attached to another page table, {1d}")      \
	K(hole, "no memory is at address {0x}, within {1x}-{2x}")                                  \
	K(memory_access, "memory at {0x}-{1x} cannot be {t}")                                      \
	K(memory_file, "memory at {0x}-{1x} is shared with file {2d} of a file system that "       \
		       "writes it back: no device may write to it")                                \
	K(memory_fault, "memory at {0x}-{1x} cannot be made present: {t}")                         \
	K(process_gone, "process {0d} is gone, and with it the memory at {1x}-{2x}")               \
	K(process_uncharged, "process {0d} is gone, and cannot be charged for {1s}")               \
	K(bar_pinned, "{0x} is a device's BAR: IOMMUFD maps only memory that can be pinned")       \
	K(bar_off, "memory of {t} cannot be reached now (its decoding is off, or it is in low "    \
		   "power): {0x} is in its BAR {1d}")                                              \
	K(file_kind, "the file is neither a memfd nor on hugetlbfs")                               \
	K(file_end, "bytes {0x}-{1x} are asked of a file of {2x} bytes")                           \
	K(dmabuf_revoked, "the dma-buf is revoked: its device's memory is off, or it was closed")  \
	K(dmabuf_ranges, "the dma-buf has {0d} ranges, and IOMMUFD maps only one")                 \
	K(dmabuf_foreign, "descriptor {0d} is a dma-buf, and of no device of VFIO's")              \
	K(dmabuf_cut, "a dma-buf is mapped at {1x}-{2x} and cannot be cut at {0x}")                \
	K(bar_end, "offset {0x} and {1x} bytes reach past the end of a BAR of {2x} bytes")         \
	K(file_map, "the file cannot be mapped into this process: {t}")                            \
	K(region, "the device has no region {0d}")                                                 \
	K(region_mmap, "region {0d} cannot be mapped with mmap")                                   \
	K(region_end, "offset {0x} and {1x} bytes reach past region {2d} ({3x} bytes)")            \
	K(mmap_shared, "a region can only be mapped shared")                                       \
	K(device_option, "{t} has no option at character {0d} of what follows its "                \
			 "address: only vf_token= and a UUID, once")                               \
	K(device_uuid, "what follows vf_token= for {t} at character {0d} is no UUID")              \
	K(eventfd, "descriptor {0d} is no eventfd ({t})")                                          \
	K(irq_range, "start {0d} and count {1d} reach past what the device has of "                \
		     "{t}: {2d}")                                                                  \
	K(irq_data, "the flags {0x} must name one kind of data: NONE, BOOL or EVENTFD")            \
	K(irq_data_size, "{0d} bytes of data are given, and {1d} interrupts take {2d}")            \
	K(irq_action, "{t} cannot do the action of flags {0x}")                                    \
	K(irq_other, "{t} is enabled (index {0d}): disable it before index {1d} is used")          \
	K(irq_off, "{t} (index {0d}) is not enabled")                                              \
	K(irq_one, "{t} is one interrupt: start {0d} and count {1d} must be 0 and 1")              \
	K(irq_vectors_none, "{t} cannot be enabled with {0d} vectors")                             \
	K(irq_vector, "vector {0d} cannot be added: MSI was enabled with {1d} vectors")            \
	K(irq_mask_eventfd, "an eventfd cannot mask INTx (action {0x})")                           \
	K(irq_unmask_set, "an eventfd unmasks {t} already: take it away before {0d} is set")       \
	K(irq_eventfd_none, "no eventfd is set for {t} ({0d})")                                    \
	K(asleep, "{t} is in power state D{0d}")                                                   \
	K(low_power, "{t} is in low power already ({0d})")                                         \
	K(region_read_only, "region {0d} cannot be written")                                       \
	K(ioeventfd_size, "the size flags {0x} must name one size")                                \
	K(ioeventfd_region, "an eventfd can write to BARs only, and {0d} is another region")       \
	K(msix_table, "bytes {0x}-{1x} overlap the MSI-X table at {2x}-{3x} of region {4d}")       \
	K(ioeventfd_exists, "an eventfd writes {0x} to offset {1x} already")                       \
	K(ioeventfd_none, "no eventfd writes {0x} to offset {1x}")                                 \
	K(ioeventfd_full, "the device has {0d} such eventfds, and takes no more")                  \
	K(reset_none, "{t} has no way to be reset alone ({0d})")                                   \
	K(reset_root, "{t} is on bus {0d}, which no bridge can reset")                             \
	K(reset_room, "{0d} functions are on the bus of {t}, and room is for {1d}")                \
	K(reset_groups, "{0d} groups are given: a device that came from a group "                  \
			"needs some, one from a cdev none")                                        \
	K(reset_many, "{0d} groups are given for {1d} functions")                                  \
	K(reset_owner, "{t} in group {0d} is on the bus too, and is not owned")                    \
	K(feature, "{t} has no feature {0d}")                                                      \
	K(feature_operation, "the feature {t} has the operations {1x}, and the flags ask "         \
			     "for {0x}")                                                           \
	K(feature_migration, "{t} cannot migrate, which feature {0d} is about")                    \
	K(dmabuf_region, "region {0d} is no BAR that is there")                                    \
	K(dmabuf_io, "BAR {0d} is ports, not memory")                                              \
	K(dmabuf_many, "{0d} ranges are more than the {1d} that can be copied at once")            \
	K(vduse_version, "there is no version {0d} of VDUSE's API: {1d} is the newest")            \
	K(vduse_features, "VDUSE features {0x} are not all known: {1x} are")                       \
	K(vduse_value, "{t} is {0d}, and must be {1d} to {2d}")                                    \
	K(vduse_align, "vq_align {0d} is no power of 2 from {1d} to {2d}")                         \
	K(vduse_unnamed, "the device has no name, which starts with byte {0d}")                    \
	K(vduse_id, "no VDUSE device is of virtio's type {0d}: 1 (net), 2 (block), 26 (fs) are")   \
	K(vduse_feature_wanted, "features {0x} lack bit {1d} ({t})")                               \
	K(vduse_feature_refused, "features {0x} have bit {1d} ({t}), which VDUSE does not serve")  \
	K(vduse_exists, "the name {t} is taken (device {0d})")                                     \
	K(vduse_none, "no VDUSE device has the name {t} (there are {0d})")                         \
	K(vduse_used, "device {t} is in use: open ({0d}), attached ({1d})")                        \
	K(vduse_open, "device {t} is open already (device {0d})")                                  \
	K(vduse_broken, "device {t} is broken for good: a message was not answered within "        \
			"{0d} ms, or a queue's refused")                                           \
	K(vduse_closed, "the daemon's end of device {t} was closed (device {0d})")                 \
	K(vduse_queue, "queue {0d} is asked for, and the device has {1d}")                         \
	K(vduse_group, "group {0d} is asked for, and the device has {1d}")                         \
	K(vduse_space, "address space {0d} is asked for, and the device has {1d}")                 \
	K(vduse_running, "{t} while the driver is at work: status {0x}")                           \
	K(vduse_idle, "{t} needs a driver at work: status {0x} lacks DRIVER_OK (4), or it is "     \
		      "suspended ({1d})")                                                          \
	K(vduse_detached, "device {t} was not attached: space {0d} has no memory")                 \
	K(vduse_config_data, "offset {0d} and length {1d} are not within the configuration's "     \
			     "{2d} bytes")                                                         \
	K(vduse_range, "a range ends at {1x}, before its start {0x}")                              \
	K(vduse_umem, "umem must be all of {0x}-{1x}, from a page on: iova {2x}, size {3s} and "   \
		      "address {4x} are given")                                                    \
	K(vduse_message_none, "no message is there to be read from device {t} (device {0d})")      \
	K(vduse_answer_size, "{0d} bytes are written, and a response has {1d}")                    \
	K(vduse_answer_unknown, "no message with id {0d} waits for a response")                    \
	K(vduse_refused, "the daemon of {t} refused a message of type {0d}")                       \
	K(vduse_queue_unset, "queue {0d} of {t} was not set up with VQ_SETUP")                     \
	K(vduse_attached, "device {t} is attached already (device {0d})")                          \
	K(vduse_gone, "device {t} was destroyed (device {0d})")                                    \
	K(vduse_bound, "a driver has device {t} (device {0d})")                                    \
	K(vhost_status, "status {0x} lacks bits of {1x}, which a reset alone takes away")          \
	K(vhost_batch, "address space {0d} is asked for in a batch of space {1d}")                 \
	K(vhost_overlap, "{0x}-{1x} overlaps {2x}-{3x}, which is mapped")                          \
	K(vhost_size, "a queue of {0d} descriptors: it must be a power of 2, at most {1d}")        \
	K(vduse_number, "{t} is no number that can be set ({0d} bytes)")                           \
	K(no_server, "the process that answers at {t} is gone, or never was (errno {0d})")         \
	K(not_served, "{t} is not what another process is served with: only VDUSE's files are")    \
	K(irq, "the device has no interrupt {0d}")

#define SOFT_DECLARE_REASON(id, sentence) extern const struct dmamap_reason_kind soft_reason_##id;
SOFT_REASONS(SOFT_DECLARE_REASON)
#undef SOFT_DECLARE_REASON

/* Where this thread's last refusal is kept. */
struct dmamap_reason *soft_why(void);

/* Records why, returns -error. At least one number follows. */
#define SOFT_REFUSE(kind, error, label, ...)                                                       \
	DMAMAP_REFUSE(soft_why(), &soft_reason_##kind, error, label, __VA_ARGS__)

#endif
