/* SPDX-License-Identifier: MIT */
/*
 * The IOMMUFD ABI as this project uses it: /dev/iommu's commands, flags and
 * structures with the kernel's own names, the layout checked where it is
 * written. tests/abi compares every entry with the kernel's header. Never
 * include <linux/iommufd.h> beside it.
 *
 * Every structure starts with its own size; a shorter one is filled with
 * zeros, a longer one is accepted when what is too much is zero. Objects are
 * numbers, one name space for each open /dev/iommu.
 */
#ifndef DMAMAP_ABI_IOMMUFD_H
#define DMAMAP_ABI_IOMMUFD_H

#include <stdint.h>
#include <sys/ioctl.h>

#include "abi/layout.h"

#define IOMMUFD_TYPE (';')

enum {
	IOMMUFD_CMD_BASE = 0x80,
	IOMMUFD_CMD_DESTROY = 0x80,
	IOMMUFD_CMD_IOAS_ALLOC = 0x81,
	IOMMUFD_CMD_IOAS_ALLOW_IOVAS = 0x82,
	IOMMUFD_CMD_IOAS_COPY = 0x83,
	IOMMUFD_CMD_IOAS_IOVA_RANGES = 0x84,
	IOMMUFD_CMD_IOAS_MAP = 0x85,
	IOMMUFD_CMD_IOAS_UNMAP = 0x86,
	IOMMUFD_CMD_OPTION = 0x87,
	IOMMUFD_CMD_VFIO_IOAS = 0x88,
	IOMMUFD_CMD_HWPT_ALLOC = 0x89,
	IOMMUFD_CMD_GET_HW_INFO = 0x8a,
	IOMMUFD_CMD_HWPT_SET_DIRTY_TRACKING = 0x8b,
	IOMMUFD_CMD_HWPT_GET_DIRTY_BITMAP = 0x8c,
	IOMMUFD_CMD_HWPT_INVALIDATE = 0x8d,
	IOMMUFD_CMD_FAULT_QUEUE_ALLOC = 0x8e,
	IOMMUFD_CMD_IOAS_MAP_FILE = 0x8f,
	IOMMUFD_CMD_VIOMMU_ALLOC = 0x90,
	IOMMUFD_CMD_VDEVICE_ALLOC = 0x91,
	IOMMUFD_CMD_IOAS_CHANGE_PROCESS = 0x92,
	IOMMUFD_CMD_VEVENTQ_ALLOC = 0x93,
	IOMMUFD_CMD_HW_QUEUE_ALLOC = 0x94,
	IOMMUFD_CMD_IOAS_NOIOMMU_GET_PA = 0x95,
};

#define IOMMU_DESTROY		      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_DESTROY)
#define IOMMU_IOAS_ALLOC	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_ALLOC)
#define IOMMU_IOAS_ALLOW_IOVAS	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_ALLOW_IOVAS)
#define IOMMU_IOAS_COPY		      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_COPY)
#define IOMMU_IOAS_IOVA_RANGES	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_IOVA_RANGES)
#define IOMMU_IOAS_MAP		      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_MAP)
#define IOMMU_IOAS_UNMAP	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_UNMAP)
#define IOMMU_OPTION		      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_OPTION)
#define IOMMU_VFIO_IOAS		      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_VFIO_IOAS)
#define IOMMU_HWPT_ALLOC	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_HWPT_ALLOC)
#define IOMMU_GET_HW_INFO	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_GET_HW_INFO)
#define IOMMU_HWPT_SET_DIRTY_TRACKING _IO(IOMMUFD_TYPE, IOMMUFD_CMD_HWPT_SET_DIRTY_TRACKING)
#define IOMMU_HWPT_GET_DIRTY_BITMAP   _IO(IOMMUFD_TYPE, IOMMUFD_CMD_HWPT_GET_DIRTY_BITMAP)
#define IOMMU_HWPT_INVALIDATE	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_HWPT_INVALIDATE)
#define IOMMU_FAULT_QUEUE_ALLOC	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_FAULT_QUEUE_ALLOC)
#define IOMMU_IOAS_MAP_FILE	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_MAP_FILE)
#define IOMMU_VIOMMU_ALLOC	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_VIOMMU_ALLOC)
#define IOMMU_VDEVICE_ALLOC	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_VDEVICE_ALLOC)
#define IOMMU_IOAS_CHANGE_PROCESS     _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_CHANGE_PROCESS)
#define IOMMU_VEVENTQ_ALLOC	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_VEVENTQ_ALLOC)
#define IOMMU_HW_QUEUE_ALLOC	      _IO(IOMMUFD_TYPE, IOMMUFD_CMD_HW_QUEUE_ALLOC)
#define IOMMU_IOAS_NOIOMMU_GET_PA     _IO(IOMMUFD_TYPE, IOMMUFD_CMD_IOAS_NOIOMMU_GET_PA)

struct iommu_destroy {
	uint32_t size;
	uint32_t id;
};
ABI_SIZE(iommu_destroy, 8);
ABI_AT(iommu_destroy, size, 0);
ABI_AT(iommu_destroy, id, 4);

/* ----------------------------------------------------------------- IOAS */

struct iommu_ioas_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t out_ioas_id;
};
ABI_SIZE(iommu_ioas_alloc, 12);
ABI_AT(iommu_ioas_alloc, size, 0);
ABI_AT(iommu_ioas_alloc, flags, 4);
ABI_AT(iommu_ioas_alloc, out_ioas_id, 8);

struct iommu_iova_range {
	uint64_t start;
	uint64_t last;
};
ABI_SIZE(iommu_iova_range, 16);
ABI_AT(iommu_iova_range, start, 0);
ABI_AT(iommu_iova_range, last, 8);

/* num_iovas: in, room at allowed_iovas (a pointer); out, how many there are. */
struct iommu_ioas_iova_ranges {
	uint32_t size;
	uint32_t ioas_id;
	uint32_t num_iovas;
	uint32_t __reserved;
	uint64_t allowed_iovas;
	uint64_t out_iova_alignment;
};
ABI_SIZE(iommu_ioas_iova_ranges, 32);
ABI_AT(iommu_ioas_iova_ranges, size, 0);
ABI_AT(iommu_ioas_iova_ranges, ioas_id, 4);
ABI_AT(iommu_ioas_iova_ranges, num_iovas, 8);
ABI_AT(iommu_ioas_iova_ranges, __reserved, 12);
ABI_AT(iommu_ioas_iova_ranges, allowed_iovas, 16);
ABI_AT(iommu_ioas_iova_ranges, out_iova_alignment, 24);

struct iommu_ioas_allow_iovas {
	uint32_t size;
	uint32_t ioas_id;
	uint32_t num_iovas;
	uint32_t __reserved;
	uint64_t allowed_iovas;
};
ABI_SIZE(iommu_ioas_allow_iovas, 24);
ABI_AT(iommu_ioas_allow_iovas, size, 0);
ABI_AT(iommu_ioas_allow_iovas, ioas_id, 4);
ABI_AT(iommu_ioas_allow_iovas, num_iovas, 8);
ABI_AT(iommu_ioas_allow_iovas, __reserved, 12);
ABI_AT(iommu_ioas_allow_iovas, allowed_iovas, 16);

/* For IOAS_MAP, IOAS_MAP_FILE and IOAS_COPY alike. */
#define IOMMU_IOAS_MAP_FIXED_IOVA (1 << 0)
#define IOMMU_IOAS_MAP_WRITEABLE  (1 << 1)
#define IOMMU_IOAS_MAP_READABLE	  (1 << 2)

struct iommu_ioas_map {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas_id;
	uint32_t __reserved;
	uint64_t user_va;
	uint64_t length;
	uint64_t iova;
};
ABI_SIZE(iommu_ioas_map, 40);
ABI_AT(iommu_ioas_map, size, 0);
ABI_AT(iommu_ioas_map, flags, 4);
ABI_AT(iommu_ioas_map, ioas_id, 8);
ABI_AT(iommu_ioas_map, __reserved, 12);
ABI_AT(iommu_ioas_map, user_va, 16);
ABI_AT(iommu_ioas_map, length, 24);
ABI_AT(iommu_ioas_map, iova, 32);

struct iommu_ioas_map_file {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas_id;
	int32_t fd;
	uint64_t start;
	uint64_t length;
	uint64_t iova;
};
ABI_SIZE(iommu_ioas_map_file, 40);
ABI_AT(iommu_ioas_map_file, size, 0);
ABI_AT(iommu_ioas_map_file, flags, 4);
ABI_AT(iommu_ioas_map_file, ioas_id, 8);
ABI_AT(iommu_ioas_map_file, fd, 12);
ABI_AT(iommu_ioas_map_file, start, 16);
ABI_AT(iommu_ioas_map_file, length, 24);
ABI_AT(iommu_ioas_map_file, iova, 32);

struct iommu_ioas_copy {
	uint32_t size;
	uint32_t flags;
	uint32_t dst_ioas_id;
	uint32_t src_ioas_id;
	uint64_t length;
	uint64_t dst_iova;
	uint64_t src_iova;
};
ABI_SIZE(iommu_ioas_copy, 40);
ABI_AT(iommu_ioas_copy, size, 0);
ABI_AT(iommu_ioas_copy, flags, 4);
ABI_AT(iommu_ioas_copy, dst_ioas_id, 8);
ABI_AT(iommu_ioas_copy, src_ioas_id, 12);
ABI_AT(iommu_ioas_copy, length, 16);
ABI_AT(iommu_ioas_copy, dst_iova, 24);
ABI_AT(iommu_ioas_copy, src_iova, 32);

/* length: in, what to unmap; out, what was unmapped. */
struct iommu_ioas_unmap {
	uint32_t size;
	uint32_t ioas_id;
	uint64_t iova;
	uint64_t length;
};
ABI_SIZE(iommu_ioas_unmap, 24);
ABI_AT(iommu_ioas_unmap, size, 0);
ABI_AT(iommu_ioas_unmap, ioas_id, 4);
ABI_AT(iommu_ioas_unmap, iova, 8);
ABI_AT(iommu_ioas_unmap, length, 16);

struct iommu_ioas_change_process {
	uint32_t size;
	uint32_t __reserved;
};
ABI_SIZE(iommu_ioas_change_process, 8);
ABI_AT(iommu_ioas_change_process, size, 0);
ABI_AT(iommu_ioas_change_process, __reserved, 4);

struct iommu_ioas_noiommu_get_pa {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas_id;
	uint32_t __reserved;
	uint64_t iova;
	uint64_t length;
	uint64_t out_phys;
};
ABI_SIZE(iommu_ioas_noiommu_get_pa, 40);
ABI_AT(iommu_ioas_noiommu_get_pa, size, 0);
ABI_AT(iommu_ioas_noiommu_get_pa, flags, 4);
ABI_AT(iommu_ioas_noiommu_get_pa, ioas_id, 8);
ABI_AT(iommu_ioas_noiommu_get_pa, __reserved, 12);
ABI_AT(iommu_ioas_noiommu_get_pa, iova, 16);
ABI_AT(iommu_ioas_noiommu_get_pa, length, 24);
ABI_AT(iommu_ioas_noiommu_get_pa, out_phys, 32);

/* -------------------------------------------------- options, VFIO compat */

#define IOMMU_OPTION_RLIMIT_MODE 0
#define IOMMU_OPTION_HUGE_PAGES	 1

#define IOMMU_OPTION_OP_SET 0
#define IOMMU_OPTION_OP_GET 1

struct iommu_option {
	uint32_t size;
	uint32_t option_id;
	uint16_t op;
	uint16_t __reserved;
	uint32_t object_id;
	uint64_t val64;
};
ABI_SIZE(iommu_option, 24);
ABI_AT(iommu_option, size, 0);
ABI_AT(iommu_option, option_id, 4);
ABI_AT(iommu_option, op, 8);
ABI_AT(iommu_option, __reserved, 10);
ABI_AT(iommu_option, object_id, 12);
ABI_AT(iommu_option, val64, 16);

#define IOMMU_VFIO_IOAS_GET   0
#define IOMMU_VFIO_IOAS_SET   1
#define IOMMU_VFIO_IOAS_CLEAR 2

/* Which IOAS the VFIO container's calls on this descriptor work on. */
struct iommu_vfio_ioas {
	uint32_t size;
	uint32_t ioas_id;
	uint16_t op;
	uint16_t __reserved;
};
ABI_SIZE(iommu_vfio_ioas, 12);
ABI_AT(iommu_vfio_ioas, size, 0);
ABI_AT(iommu_vfio_ioas, ioas_id, 4);
ABI_AT(iommu_vfio_ioas, op, 8);
ABI_AT(iommu_vfio_ioas, __reserved, 10);

/* ------------------------------------------------- hardware page tables */

#define IOMMU_HWPT_ALLOC_NEST_PARENT	(1 << 0)
#define IOMMU_HWPT_ALLOC_DIRTY_TRACKING (1 << 1)
#define IOMMU_HWPT_FAULT_ID_VALID	(1 << 2)
#define IOMMU_HWPT_ALLOC_PASID		(1 << 3)

#define IOMMU_HWPT_DATA_NONE	   0
#define IOMMU_HWPT_DATA_VTD_S1	   1
#define IOMMU_HWPT_DATA_ARM_SMMUV3 2
#define IOMMU_HWPT_DATA_AMD_GUEST  3

struct iommu_hwpt_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t dev_id;
	uint32_t pt_id;
	uint32_t out_hwpt_id;
	uint32_t __reserved;
	uint32_t data_type;
	uint32_t data_len;
	uint64_t data_uptr;
	uint32_t fault_id;
	uint32_t __reserved2;
};
ABI_SIZE(iommu_hwpt_alloc, 48);
ABI_AT(iommu_hwpt_alloc, size, 0);
ABI_AT(iommu_hwpt_alloc, flags, 4);
ABI_AT(iommu_hwpt_alloc, dev_id, 8);
ABI_AT(iommu_hwpt_alloc, pt_id, 12);
ABI_AT(iommu_hwpt_alloc, out_hwpt_id, 16);
ABI_AT(iommu_hwpt_alloc, __reserved, 20);
ABI_AT(iommu_hwpt_alloc, data_type, 24);
ABI_AT(iommu_hwpt_alloc, data_len, 28);
ABI_AT(iommu_hwpt_alloc, data_uptr, 32);
ABI_AT(iommu_hwpt_alloc, fault_id, 40);
ABI_AT(iommu_hwpt_alloc, __reserved2, 44);

#define IOMMU_HW_INFO_TYPE_NONE		  0
#define IOMMU_HW_INFO_TYPE_DEFAULT	  0
#define IOMMU_HW_INFO_TYPE_INTEL_VTD	  1
#define IOMMU_HW_INFO_TYPE_ARM_SMMUV3	  2
#define IOMMU_HW_INFO_TYPE_TEGRA241_CMDQV 3
#define IOMMU_HW_INFO_TYPE_AMD		  4

#define IOMMU_HW_INFO_FLAG_INPUT_TYPE (1 << 0)

#define IOMMU_HW_CAP_DIRTY_TRACKING	   (1 << 0)
#define IOMMU_HW_CAP_PCI_PASID_EXEC	   (1 << 1)
#define IOMMU_HW_CAP_PCI_PASID_PRIV	   (1 << 2)
#define IOMMU_HW_CAP_PCI_ATS_NOT_SUPPORTED (1 << 3)

struct iommu_hw_info {
	uint32_t size;
	uint32_t flags;
	uint32_t dev_id;
	uint32_t data_len;
	uint64_t data_uptr;
	union {
		uint32_t in_data_type;
		uint32_t out_data_type;
	};
	uint8_t out_max_pasid_log2;
	uint8_t __reserved[3];
	uint64_t out_capabilities;
};
ABI_SIZE(iommu_hw_info, 40);
ABI_AT(iommu_hw_info, size, 0);
ABI_AT(iommu_hw_info, flags, 4);
ABI_AT(iommu_hw_info, dev_id, 8);
ABI_AT(iommu_hw_info, data_len, 12);
ABI_AT(iommu_hw_info, data_uptr, 16);
ABI_AT(iommu_hw_info, in_data_type, 24);
ABI_AT(iommu_hw_info, out_data_type, 24);
ABI_AT(iommu_hw_info, out_max_pasid_log2, 28);
ABI_AT(iommu_hw_info, __reserved, 29);
ABI_AT(iommu_hw_info, out_capabilities, 32);

struct iommu_hw_info_vtd {
	uint32_t flags;
	uint32_t __reserved;
	uint64_t cap_reg;
	uint64_t ecap_reg;
};
ABI_SIZE(iommu_hw_info_vtd, 24);
ABI_AT(iommu_hw_info_vtd, flags, 0);
ABI_AT(iommu_hw_info_vtd, __reserved, 4);
ABI_AT(iommu_hw_info_vtd, cap_reg, 8);
ABI_AT(iommu_hw_info_vtd, ecap_reg, 16);

struct iommu_hw_info_arm_smmuv3 {
	uint32_t flags;
	uint32_t __reserved;
	uint32_t idr[6];
	uint32_t iidr;
	uint32_t aidr;
};
ABI_SIZE(iommu_hw_info_arm_smmuv3, 40);
ABI_AT(iommu_hw_info_arm_smmuv3, flags, 0);
ABI_AT(iommu_hw_info_arm_smmuv3, __reserved, 4);
ABI_AT(iommu_hw_info_arm_smmuv3, idr, 8);
ABI_AT(iommu_hw_info_arm_smmuv3, iidr, 32);
ABI_AT(iommu_hw_info_arm_smmuv3, aidr, 36);

struct iommu_hw_info_amd {
	uint64_t efr;
	uint64_t efr2;
};
ABI_SIZE(iommu_hw_info_amd, 16);
ABI_AT(iommu_hw_info_amd, efr, 0);
ABI_AT(iommu_hw_info_amd, efr2, 8);

#define IOMMU_HWPT_DIRTY_TRACKING_ENABLE 1

struct iommu_hwpt_set_dirty_tracking {
	uint32_t size;
	uint32_t flags;
	uint32_t hwpt_id;
	uint32_t __reserved;
};
ABI_SIZE(iommu_hwpt_set_dirty_tracking, 16);
ABI_AT(iommu_hwpt_set_dirty_tracking, size, 0);
ABI_AT(iommu_hwpt_set_dirty_tracking, flags, 4);
ABI_AT(iommu_hwpt_set_dirty_tracking, hwpt_id, 8);
ABI_AT(iommu_hwpt_set_dirty_tracking, __reserved, 12);

#define IOMMU_HWPT_GET_DIRTY_BITMAP_NO_CLEAR 1

struct iommu_hwpt_get_dirty_bitmap {
	uint32_t size;
	uint32_t hwpt_id;
	uint32_t flags;
	uint32_t __reserved;
	uint64_t iova;
	uint64_t length;
	uint64_t page_size;
	uint64_t data;
};
ABI_SIZE(iommu_hwpt_get_dirty_bitmap, 48);
ABI_AT(iommu_hwpt_get_dirty_bitmap, size, 0);
ABI_AT(iommu_hwpt_get_dirty_bitmap, hwpt_id, 4);
ABI_AT(iommu_hwpt_get_dirty_bitmap, flags, 8);
ABI_AT(iommu_hwpt_get_dirty_bitmap, __reserved, 12);
ABI_AT(iommu_hwpt_get_dirty_bitmap, iova, 16);
ABI_AT(iommu_hwpt_get_dirty_bitmap, length, 24);
ABI_AT(iommu_hwpt_get_dirty_bitmap, page_size, 32);
ABI_AT(iommu_hwpt_get_dirty_bitmap, data, 40);

struct iommu_hwpt_invalidate {
	uint32_t size;
	uint32_t hwpt_id;
	uint64_t data_uptr;
	uint32_t data_type;
	uint32_t entry_len;
	uint32_t entry_num;
	uint32_t __reserved;
};
ABI_SIZE(iommu_hwpt_invalidate, 32);
ABI_AT(iommu_hwpt_invalidate, size, 0);
ABI_AT(iommu_hwpt_invalidate, hwpt_id, 4);
ABI_AT(iommu_hwpt_invalidate, data_uptr, 8);
ABI_AT(iommu_hwpt_invalidate, data_type, 16);
ABI_AT(iommu_hwpt_invalidate, entry_len, 20);
ABI_AT(iommu_hwpt_invalidate, entry_num, 24);
ABI_AT(iommu_hwpt_invalidate, __reserved, 28);

/* --------------------------- faults, virtual IOMMUs and their hardware */

struct iommu_fault_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t out_fault_id;
	uint32_t out_fault_fd;
};
ABI_SIZE(iommu_fault_alloc, 16);
ABI_AT(iommu_fault_alloc, size, 0);
ABI_AT(iommu_fault_alloc, flags, 4);
ABI_AT(iommu_fault_alloc, out_fault_id, 8);
ABI_AT(iommu_fault_alloc, out_fault_fd, 12);

struct iommu_viommu_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t type;
	uint32_t dev_id;
	uint32_t hwpt_id;
	uint32_t out_viommu_id;
	uint32_t data_len;
	uint32_t __reserved;
	uint64_t data_uptr;
};
ABI_SIZE(iommu_viommu_alloc, 40);
ABI_AT(iommu_viommu_alloc, size, 0);
ABI_AT(iommu_viommu_alloc, flags, 4);
ABI_AT(iommu_viommu_alloc, type, 8);
ABI_AT(iommu_viommu_alloc, dev_id, 12);
ABI_AT(iommu_viommu_alloc, hwpt_id, 16);
ABI_AT(iommu_viommu_alloc, out_viommu_id, 20);
ABI_AT(iommu_viommu_alloc, data_len, 24);
ABI_AT(iommu_viommu_alloc, __reserved, 28);
ABI_AT(iommu_viommu_alloc, data_uptr, 32);

struct iommu_vdevice_alloc {
	uint32_t size;
	uint32_t viommu_id;
	uint32_t dev_id;
	uint32_t out_vdevice_id;
	uint64_t virt_id;
};
ABI_SIZE(iommu_vdevice_alloc, 24);
ABI_AT(iommu_vdevice_alloc, size, 0);
ABI_AT(iommu_vdevice_alloc, viommu_id, 4);
ABI_AT(iommu_vdevice_alloc, dev_id, 8);
ABI_AT(iommu_vdevice_alloc, out_vdevice_id, 12);
ABI_AT(iommu_vdevice_alloc, virt_id, 16);

struct iommu_veventq_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t viommu_id;
	uint32_t type;
	uint32_t veventq_depth;
	uint32_t out_veventq_id;
	uint32_t out_veventq_fd;
	uint32_t __reserved;
};
ABI_SIZE(iommu_veventq_alloc, 32);
ABI_AT(iommu_veventq_alloc, size, 0);
ABI_AT(iommu_veventq_alloc, flags, 4);
ABI_AT(iommu_veventq_alloc, viommu_id, 8);
ABI_AT(iommu_veventq_alloc, type, 12);
ABI_AT(iommu_veventq_alloc, veventq_depth, 16);
ABI_AT(iommu_veventq_alloc, out_veventq_id, 20);
ABI_AT(iommu_veventq_alloc, out_veventq_fd, 24);
ABI_AT(iommu_veventq_alloc, __reserved, 28);

struct iommu_hw_queue_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t viommu_id;
	uint32_t type;
	uint32_t index;
	uint32_t out_hw_queue_id;
	uint64_t nesting_parent_iova;
	uint64_t length;
};
ABI_SIZE(iommu_hw_queue_alloc, 40);
ABI_AT(iommu_hw_queue_alloc, size, 0);
ABI_AT(iommu_hw_queue_alloc, flags, 4);
ABI_AT(iommu_hw_queue_alloc, viommu_id, 8);
ABI_AT(iommu_hw_queue_alloc, type, 12);
ABI_AT(iommu_hw_queue_alloc, index, 16);
ABI_AT(iommu_hw_queue_alloc, out_hw_queue_id, 20);
ABI_AT(iommu_hw_queue_alloc, nesting_parent_iova, 24);
ABI_AT(iommu_hw_queue_alloc, length, 32);

#endif
