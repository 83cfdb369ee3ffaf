/* SPDX-License-Identifier: MIT */
/*
 * The VFIO ABI as this project uses it: numbers, flags and structures with the
 * kernel's own names, so that code reads like any other VFIO program, and with
 * a layout that is checked where it is written. tests/abi compares every entry
 * with the kernel's header. Never include <linux/vfio.h> beside it.
 *
 * Structures grow at their end. "argsz" is what the caller has room for; a
 * capability chain starts at cap_offset and each header gives the next one's
 * offset, counted from the start of the structure, 0 at the end.
 */
#ifndef DMAMAP_ABI_VFIO_H
#define DMAMAP_ABI_VFIO_H

#include <stdint.h>
#include <sys/ioctl.h>

#include "abi/layout.h"

#define VFIO_API_VERSION 0

#define VFIO_TYPE (';')
#define VFIO_BASE 100

/* VFIO_CHECK_EXTENSION's question; the IOMMU types are VFIO_SET_IOMMU's argument too. */
#define VFIO_TYPE1_IOMMU	1
#define VFIO_SPAPR_TCE_IOMMU	2
#define VFIO_TYPE1v2_IOMMU	3
#define VFIO_DMA_CC_IOMMU	4
#define VFIO_EEH		5
#define VFIO_SPAPR_TCE_v2_IOMMU 7
#define VFIO_NOIOMMU_IOMMU	8
#define VFIO_UNMAP_ALL		9
#define VFIO_UPDATE_VADDR	10

struct vfio_info_cap_header {
	uint16_t id;
	uint16_t version;
	uint32_t next;
};
ABI_SIZE(vfio_info_cap_header, 8);
ABI_AT(vfio_info_cap_header, id, 0);
ABI_AT(vfio_info_cap_header, version, 2);
ABI_AT(vfio_info_cap_header, next, 4);

/* ------------------------------------------- container: /dev/vfio/vfio */

#define VFIO_GET_API_VERSION _IO(VFIO_TYPE, VFIO_BASE + 0)
#define VFIO_CHECK_EXTENSION _IO(VFIO_TYPE, VFIO_BASE + 1)
#define VFIO_SET_IOMMU	     _IO(VFIO_TYPE, VFIO_BASE + 2)

/* ----------------------------------------------- group: /dev/vfio/GROUP */

#define VFIO_GROUP_GET_STATUS _IO(VFIO_TYPE, VFIO_BASE + 3)
/* Argument: pointer to the container's descriptor, an int. */
#define VFIO_GROUP_SET_CONTAINER   _IO(VFIO_TYPE, VFIO_BASE + 4)
#define VFIO_GROUP_UNSET_CONTAINER _IO(VFIO_TYPE, VFIO_BASE + 5)
/* Argument: the device's name; returns its descriptor. */
#define VFIO_GROUP_GET_DEVICE_FD _IO(VFIO_TYPE, VFIO_BASE + 6)

#define VFIO_GROUP_FLAGS_VIABLE	       (1 << 0)
#define VFIO_GROUP_FLAGS_CONTAINER_SET (1 << 1)

struct vfio_group_status {
	uint32_t argsz;
	uint32_t flags;
};
ABI_SIZE(vfio_group_status, 8);
ABI_AT(vfio_group_status, argsz, 0);
ABI_AT(vfio_group_status, flags, 4);

/* --------------------------------------------------------------- device */

#define VFIO_DEVICE_GET_INFO		   _IO(VFIO_TYPE, VFIO_BASE + 7)
#define VFIO_DEVICE_GET_REGION_INFO	   _IO(VFIO_TYPE, VFIO_BASE + 8)
#define VFIO_DEVICE_GET_IRQ_INFO	   _IO(VFIO_TYPE, VFIO_BASE + 9)
#define VFIO_DEVICE_SET_IRQS		   _IO(VFIO_TYPE, VFIO_BASE + 10)
#define VFIO_DEVICE_RESET		   _IO(VFIO_TYPE, VFIO_BASE + 11)
#define VFIO_DEVICE_GET_PCI_HOT_RESET_INFO _IO(VFIO_TYPE, VFIO_BASE + 12)
#define VFIO_DEVICE_PCI_HOT_RESET	   _IO(VFIO_TYPE, VFIO_BASE + 13)
#define VFIO_DEVICE_QUERY_GFX_PLANE	   _IO(VFIO_TYPE, VFIO_BASE + 14)
#define VFIO_DEVICE_GET_GFX_DMABUF	   _IO(VFIO_TYPE, VFIO_BASE + 15)
#define VFIO_DEVICE_IOEVENTFD		   _IO(VFIO_TYPE, VFIO_BASE + 16)
#define VFIO_DEVICE_FEATURE		   _IO(VFIO_TYPE, VFIO_BASE + 17)
#define VFIO_DEVICE_BIND_IOMMUFD	   _IO(VFIO_TYPE, VFIO_BASE + 18)
#define VFIO_DEVICE_ATTACH_IOMMUFD_PT	   _IO(VFIO_TYPE, VFIO_BASE + 19)
#define VFIO_DEVICE_DETACH_IOMMUFD_PT	   _IO(VFIO_TYPE, VFIO_BASE + 20)

#define VFIO_DEVICE_FLAGS_RESET (1 << 0)
#define VFIO_DEVICE_FLAGS_PCI	(1 << 1)
#define VFIO_DEVICE_FLAGS_CAPS	(1 << 7)

#define VFIO_DEVICE_INFO_CAP_PCI_ATOMIC_COMP 5

struct vfio_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t num_regions;
	uint32_t num_irqs;
	uint32_t cap_offset;
	uint32_t pad;
};
ABI_SIZE(vfio_device_info, 24);
ABI_AT(vfio_device_info, argsz, 0);
ABI_AT(vfio_device_info, flags, 4);
ABI_AT(vfio_device_info, num_regions, 8);
ABI_AT(vfio_device_info, num_irqs, 12);
ABI_AT(vfio_device_info, cap_offset, 16);
ABI_AT(vfio_device_info, pad, 20);

#define VFIO_PCI_BAR0_REGION_INDEX   0
#define VFIO_PCI_BAR1_REGION_INDEX   1
#define VFIO_PCI_BAR2_REGION_INDEX   2
#define VFIO_PCI_BAR3_REGION_INDEX   3
#define VFIO_PCI_BAR4_REGION_INDEX   4
#define VFIO_PCI_BAR5_REGION_INDEX   5
#define VFIO_PCI_ROM_REGION_INDEX    6
#define VFIO_PCI_CONFIG_REGION_INDEX 7
#define VFIO_PCI_VGA_REGION_INDEX    8
#define VFIO_PCI_NUM_REGIONS	     9

#define VFIO_REGION_INFO_FLAG_READ  (1 << 0)
#define VFIO_REGION_INFO_FLAG_WRITE (1 << 1)
#define VFIO_REGION_INFO_FLAG_MMAP  (1 << 2)
#define VFIO_REGION_INFO_FLAG_CAPS  (1 << 3)

#define VFIO_REGION_INFO_CAP_SPARSE_MMAP   1
#define VFIO_REGION_INFO_CAP_TYPE	   2
#define VFIO_REGION_INFO_CAP_MSIX_MAPPABLE 3

/* @offset is where read, write and mmap of the device's descriptor find the region. */
struct vfio_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};
ABI_SIZE(vfio_region_info, 32);
ABI_AT(vfio_region_info, argsz, 0);
ABI_AT(vfio_region_info, flags, 4);
ABI_AT(vfio_region_info, index, 8);
ABI_AT(vfio_region_info, cap_offset, 12);
ABI_AT(vfio_region_info, size, 16);
ABI_AT(vfio_region_info, offset, 24);

struct vfio_region_sparse_mmap_area {
	uint64_t offset;
	uint64_t size;
};
ABI_SIZE(vfio_region_sparse_mmap_area, 16);
ABI_AT(vfio_region_sparse_mmap_area, offset, 0);
ABI_AT(vfio_region_sparse_mmap_area, size, 8);

struct vfio_region_info_cap_sparse_mmap {
	struct vfio_info_cap_header header;
	uint32_t nr_areas;
	uint32_t reserved;
	struct vfio_region_sparse_mmap_area areas[];
};
ABI_SIZE(vfio_region_info_cap_sparse_mmap, 16);
ABI_AT(vfio_region_info_cap_sparse_mmap, header, 0);
ABI_AT(vfio_region_info_cap_sparse_mmap, nr_areas, 8);
ABI_AT(vfio_region_info_cap_sparse_mmap, reserved, 12);
ABI_AT(vfio_region_info_cap_sparse_mmap, areas, 16);

struct vfio_region_info_cap_type {
	struct vfio_info_cap_header header;
	uint32_t type;
	uint32_t subtype;
};
ABI_SIZE(vfio_region_info_cap_type, 16);
ABI_AT(vfio_region_info_cap_type, header, 0);
ABI_AT(vfio_region_info_cap_type, type, 8);
ABI_AT(vfio_region_info_cap_type, subtype, 12);

#define VFIO_PCI_INTX_IRQ_INDEX 0
#define VFIO_PCI_MSI_IRQ_INDEX	1
#define VFIO_PCI_MSIX_IRQ_INDEX 2
#define VFIO_PCI_ERR_IRQ_INDEX	3
#define VFIO_PCI_REQ_IRQ_INDEX	4
#define VFIO_PCI_NUM_IRQS	5

#define VFIO_IRQ_INFO_EVENTFD	 (1 << 0)
#define VFIO_IRQ_INFO_MASKABLE	 (1 << 1)
#define VFIO_IRQ_INFO_AUTOMASKED (1 << 2)
#define VFIO_IRQ_INFO_NORESIZE	 (1 << 3)

struct vfio_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};
ABI_SIZE(vfio_irq_info, 16);
ABI_AT(vfio_irq_info, argsz, 0);
ABI_AT(vfio_irq_info, flags, 4);
ABI_AT(vfio_irq_info, index, 8);
ABI_AT(vfio_irq_info, count, 12);

#define VFIO_IRQ_SET_DATA_NONE	    (1 << 0)
#define VFIO_IRQ_SET_DATA_BOOL	    (1 << 1)
#define VFIO_IRQ_SET_DATA_EVENTFD   (1 << 2)
#define VFIO_IRQ_SET_ACTION_MASK    (1 << 3)
#define VFIO_IRQ_SET_ACTION_UNMASK  (1 << 4)
#define VFIO_IRQ_SET_ACTION_TRIGGER (1 << 5)
#define VFIO_IRQ_SET_DATA_TYPE_MASK                                                                \
	(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_DATA_EVENTFD)
#define VFIO_IRQ_SET_ACTION_TYPE_MASK                                                              \
	(VFIO_IRQ_SET_ACTION_MASK | VFIO_IRQ_SET_ACTION_UNMASK | VFIO_IRQ_SET_ACTION_TRIGGER)

struct vfio_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
	uint8_t data[];
};
ABI_SIZE(vfio_irq_set, 20);
ABI_AT(vfio_irq_set, argsz, 0);
ABI_AT(vfio_irq_set, flags, 4);
ABI_AT(vfio_irq_set, index, 8);
ABI_AT(vfio_irq_set, start, 12);
ABI_AT(vfio_irq_set, count, 16);
ABI_AT(vfio_irq_set, data, 20);

/* Which of group_id and devid it is depends on the flags of the answer. */
struct vfio_pci_dependent_device {
	union {
		uint32_t group_id;
		uint32_t devid;
	};
	uint16_t segment;
	uint8_t bus;
	uint8_t devfn;
};
ABI_SIZE(vfio_pci_dependent_device, 8);
ABI_AT(vfio_pci_dependent_device, group_id, 0);
ABI_AT(vfio_pci_dependent_device, devid, 0);
ABI_AT(vfio_pci_dependent_device, segment, 4);
ABI_AT(vfio_pci_dependent_device, bus, 6);
ABI_AT(vfio_pci_dependent_device, devfn, 7);

#define VFIO_PCI_DEVID_OWNED	 0
#define VFIO_PCI_DEVID_NOT_OWNED -1

#define VFIO_PCI_HOT_RESET_FLAG_DEV_ID	     (1 << 0)
#define VFIO_PCI_HOT_RESET_FLAG_DEV_ID_OWNED (1 << 1)

struct vfio_pci_hot_reset_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t count;
	struct vfio_pci_dependent_device devices[];
};
ABI_SIZE(vfio_pci_hot_reset_info, 12);
ABI_AT(vfio_pci_hot_reset_info, argsz, 0);
ABI_AT(vfio_pci_hot_reset_info, flags, 4);
ABI_AT(vfio_pci_hot_reset_info, count, 8);
ABI_AT(vfio_pci_hot_reset_info, devices, 12);

struct vfio_pci_hot_reset {
	uint32_t argsz;
	uint32_t flags;
	uint32_t count;
	int32_t group_fds[];
};
ABI_SIZE(vfio_pci_hot_reset, 12);
ABI_AT(vfio_pci_hot_reset, argsz, 0);
ABI_AT(vfio_pci_hot_reset, flags, 4);
ABI_AT(vfio_pci_hot_reset, count, 8);
ABI_AT(vfio_pci_hot_reset, group_fds, 12);

#define VFIO_DEVICE_IOEVENTFD_8		(1 << 0)
#define VFIO_DEVICE_IOEVENTFD_16	(1 << 1)
#define VFIO_DEVICE_IOEVENTFD_32	(1 << 2)
#define VFIO_DEVICE_IOEVENTFD_64	(1 << 3)
#define VFIO_DEVICE_IOEVENTFD_SIZE_MASK (0xf)

struct vfio_device_ioeventfd {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t data;
	int32_t fd;
	uint32_t reserved;
};
ABI_SIZE(vfio_device_ioeventfd, 32);
ABI_AT(vfio_device_ioeventfd, argsz, 0);
ABI_AT(vfio_device_ioeventfd, flags, 4);
ABI_AT(vfio_device_ioeventfd, offset, 8);
ABI_AT(vfio_device_ioeventfd, data, 16);
ABI_AT(vfio_device_ioeventfd, fd, 24);
ABI_AT(vfio_device_ioeventfd, reserved, 28);

/* The low 16 bits of flags are the feature's number, its data follows. */
#define VFIO_DEVICE_FEATURE_MASK  (0xffff)
#define VFIO_DEVICE_FEATURE_GET	  (1 << 16)
#define VFIO_DEVICE_FEATURE_SET	  (1 << 17)
#define VFIO_DEVICE_FEATURE_PROBE (1 << 18)

struct vfio_device_feature {
	uint32_t argsz;
	uint32_t flags;
	uint8_t data[];
};
ABI_SIZE(vfio_device_feature, 8);
ABI_AT(vfio_device_feature, argsz, 0);
ABI_AT(vfio_device_feature, flags, 4);
ABI_AT(vfio_device_feature, data, 8);

#define VFIO_DEVICE_FEATURE_PCI_VF_TOKEN		0
#define VFIO_DEVICE_FEATURE_MIGRATION			1
#define VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE		2
#define VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY		3
#define VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY_WITH_WAKEUP 4
#define VFIO_DEVICE_FEATURE_LOW_POWER_EXIT		5
#define VFIO_DEVICE_FEATURE_DMA_LOGGING_START		6
#define VFIO_DEVICE_FEATURE_DMA_LOGGING_STOP		7
#define VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT		8
#define VFIO_DEVICE_FEATURE_MIG_DATA_SIZE		9
#define VFIO_DEVICE_FEATURE_BUS_MASTER			10
#define VFIO_DEVICE_FEATURE_DMA_BUF			11
#define VFIO_DEVICE_FEATURE_MIG_PRECOPY_INFOv2		12

/* @wakeup_eventfd is signalled when the device is used again, which ends low power. */
struct vfio_device_low_power_entry_with_wakeup {
	int32_t wakeup_eventfd;
	uint32_t reserved;
};
ABI_SIZE(vfio_device_low_power_entry_with_wakeup, 8);
ABI_AT(vfio_device_low_power_entry_with_wakeup, wakeup_eventfd, 0);
ABI_AT(vfio_device_low_power_entry_with_wakeup, reserved, 4);

#define VFIO_DEVICE_FEATURE_CLEAR_MASTER 0
#define VFIO_DEVICE_FEATURE_SET_MASTER	 1

struct vfio_device_feature_bus_master {
	uint32_t op;
};
ABI_SIZE(vfio_device_feature_bus_master, 4);
ABI_AT(vfio_device_feature_bus_master, op, 0);

struct vfio_region_dma_range {
	uint64_t offset;
	uint64_t length;
};
ABI_SIZE(vfio_region_dma_range, 16);
ABI_AT(vfio_region_dma_range, offset, 0);
ABI_AT(vfio_region_dma_range, length, 8);

struct vfio_device_feature_dma_buf {
	uint32_t region_index;
	uint32_t open_flags;
	uint32_t flags;
	uint32_t nr_ranges;
	struct vfio_region_dma_range dma_ranges[];
};
ABI_SIZE(vfio_device_feature_dma_buf, 16);
ABI_AT(vfio_device_feature_dma_buf, region_index, 0);
ABI_AT(vfio_device_feature_dma_buf, open_flags, 4);
ABI_AT(vfio_device_feature_dma_buf, flags, 8);
ABI_AT(vfio_device_feature_dma_buf, nr_ranges, 12);
ABI_AT(vfio_device_feature_dma_buf, dma_ranges, 16);

/* ----------------------------------- device cdev: /dev/vfio/devices/vfioN */

#define VFIO_DEVICE_BIND_FLAG_TOKEN (1 << 0)

struct vfio_device_bind_iommufd {
	uint32_t argsz;
	uint32_t flags;
	int32_t iommufd;
	uint32_t out_devid;
	uint64_t token_uuid_ptr;
};
ABI_SIZE(vfio_device_bind_iommufd, 24);
ABI_AT(vfio_device_bind_iommufd, argsz, 0);
ABI_AT(vfio_device_bind_iommufd, flags, 4);
ABI_AT(vfio_device_bind_iommufd, iommufd, 8);
ABI_AT(vfio_device_bind_iommufd, out_devid, 12);
ABI_AT(vfio_device_bind_iommufd, token_uuid_ptr, 16);

#define VFIO_DEVICE_ATTACH_PASID (1 << 0)

/* pt_id: in, an IOAS or HWPT; out, the HWPT that was attached. */
struct vfio_device_attach_iommufd_pt {
	uint32_t argsz;
	uint32_t flags;
	uint32_t pt_id;
	uint32_t pasid;
};
ABI_SIZE(vfio_device_attach_iommufd_pt, 16);
ABI_AT(vfio_device_attach_iommufd_pt, argsz, 0);
ABI_AT(vfio_device_attach_iommufd_pt, flags, 4);
ABI_AT(vfio_device_attach_iommufd_pt, pt_id, 8);
ABI_AT(vfio_device_attach_iommufd_pt, pasid, 12);

#define VFIO_DEVICE_DETACH_PASID (1 << 0)

struct vfio_device_detach_iommufd_pt {
	uint32_t argsz;
	uint32_t flags;
	uint32_t pasid;
};
ABI_SIZE(vfio_device_detach_iommufd_pt, 12);
ABI_AT(vfio_device_detach_iommufd_pt, argsz, 0);
ABI_AT(vfio_device_detach_iommufd_pt, flags, 4);
ABI_AT(vfio_device_detach_iommufd_pt, pasid, 8);

/* ---------------------------------------------------------------- type1 */

#define VFIO_IOMMU_GET_INFO    _IO(VFIO_TYPE, VFIO_BASE + 12)
#define VFIO_IOMMU_MAP_DMA     _IO(VFIO_TYPE, VFIO_BASE + 13)
#define VFIO_IOMMU_UNMAP_DMA   _IO(VFIO_TYPE, VFIO_BASE + 14)
#define VFIO_IOMMU_ENABLE      _IO(VFIO_TYPE, VFIO_BASE + 15)
#define VFIO_IOMMU_DISABLE     _IO(VFIO_TYPE, VFIO_BASE + 16)
#define VFIO_IOMMU_DIRTY_PAGES _IO(VFIO_TYPE, VFIO_BASE + 17)

#define VFIO_IOMMU_INFO_PGSIZES (1 << 0)
#define VFIO_IOMMU_INFO_CAPS	(1 << 1)

struct vfio_iommu_type1_info {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova_pgsizes;
	uint32_t cap_offset;
	uint32_t pad;
};
ABI_SIZE(vfio_iommu_type1_info, 24);
ABI_AT(vfio_iommu_type1_info, argsz, 0);
ABI_AT(vfio_iommu_type1_info, flags, 4);
ABI_AT(vfio_iommu_type1_info, iova_pgsizes, 8);
ABI_AT(vfio_iommu_type1_info, cap_offset, 16);
ABI_AT(vfio_iommu_type1_info, pad, 20);

#define VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE 1
#define VFIO_IOMMU_TYPE1_INFO_CAP_MIGRATION  2
#define VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL	     3

/* Both included, for all that it says end. */
struct vfio_iova_range {
	uint64_t start;
	uint64_t end;
};
ABI_SIZE(vfio_iova_range, 16);
ABI_AT(vfio_iova_range, start, 0);
ABI_AT(vfio_iova_range, end, 8);

struct vfio_iommu_type1_info_cap_iova_range {
	struct vfio_info_cap_header header;
	uint32_t nr_iovas;
	uint32_t reserved;
	struct vfio_iova_range iova_ranges[];
};
ABI_SIZE(vfio_iommu_type1_info_cap_iova_range, 16);
ABI_AT(vfio_iommu_type1_info_cap_iova_range, header, 0);
ABI_AT(vfio_iommu_type1_info_cap_iova_range, nr_iovas, 8);
ABI_AT(vfio_iommu_type1_info_cap_iova_range, reserved, 12);
ABI_AT(vfio_iommu_type1_info_cap_iova_range, iova_ranges, 16);

struct vfio_iommu_type1_info_cap_migration {
	struct vfio_info_cap_header header;
	uint32_t flags;
	uint64_t pgsize_bitmap;
	uint64_t max_dirty_bitmap_size;
};
ABI_SIZE(vfio_iommu_type1_info_cap_migration, 32);
ABI_AT(vfio_iommu_type1_info_cap_migration, header, 0);
ABI_AT(vfio_iommu_type1_info_cap_migration, flags, 8);
ABI_AT(vfio_iommu_type1_info_cap_migration, pgsize_bitmap, 16);
ABI_AT(vfio_iommu_type1_info_cap_migration, max_dirty_bitmap_size, 24);

struct vfio_iommu_type1_info_dma_avail {
	struct vfio_info_cap_header header;
	uint32_t avail;
};
ABI_SIZE(vfio_iommu_type1_info_dma_avail, 12);
ABI_AT(vfio_iommu_type1_info_dma_avail, header, 0);
ABI_AT(vfio_iommu_type1_info_dma_avail, avail, 8);

#define VFIO_DMA_MAP_FLAG_READ	(1 << 0)
#define VFIO_DMA_MAP_FLAG_WRITE (1 << 1)
#define VFIO_DMA_MAP_FLAG_VADDR (1 << 2)

struct vfio_iommu_type1_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t vaddr;
	uint64_t iova;
	uint64_t size;
};
ABI_SIZE(vfio_iommu_type1_dma_map, 32);
ABI_AT(vfio_iommu_type1_dma_map, argsz, 0);
ABI_AT(vfio_iommu_type1_dma_map, flags, 4);
ABI_AT(vfio_iommu_type1_dma_map, vaddr, 8);
ABI_AT(vfio_iommu_type1_dma_map, iova, 16);
ABI_AT(vfio_iommu_type1_dma_map, size, 24);

struct vfio_bitmap {
	uint64_t pgsize;
	uint64_t size;
	uint64_t *data;
};
ABI_SIZE(vfio_bitmap, 24);
ABI_AT(vfio_bitmap, pgsize, 0);
ABI_AT(vfio_bitmap, size, 8);
ABI_AT(vfio_bitmap, data, 16);

#define VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP (1 << 0)
#define VFIO_DMA_UNMAP_FLAG_ALL		     (1 << 1)
#define VFIO_DMA_UNMAP_FLAG_VADDR	     (1 << 2)

/* size: in, what to unmap; out, what was unmapped. data: a vfio_bitmap. */
struct vfio_iommu_type1_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova;
	uint64_t size;
	uint8_t data[];
};
ABI_SIZE(vfio_iommu_type1_dma_unmap, 24);
ABI_AT(vfio_iommu_type1_dma_unmap, argsz, 0);
ABI_AT(vfio_iommu_type1_dma_unmap, flags, 4);
ABI_AT(vfio_iommu_type1_dma_unmap, iova, 8);
ABI_AT(vfio_iommu_type1_dma_unmap, size, 16);
ABI_AT(vfio_iommu_type1_dma_unmap, data, 24);

#define VFIO_IOMMU_DIRTY_PAGES_FLAG_START      (1 << 0)
#define VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP       (1 << 1)
#define VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP (1 << 2)

struct vfio_iommu_type1_dirty_bitmap {
	uint32_t argsz;
	uint32_t flags;
	uint8_t data[];
};
ABI_SIZE(vfio_iommu_type1_dirty_bitmap, 8);
ABI_AT(vfio_iommu_type1_dirty_bitmap, argsz, 0);
ABI_AT(vfio_iommu_type1_dirty_bitmap, flags, 4);
ABI_AT(vfio_iommu_type1_dirty_bitmap, data, 8);

struct vfio_iommu_type1_dirty_bitmap_get {
	uint64_t iova;
	uint64_t size;
	struct vfio_bitmap bitmap;
};
ABI_SIZE(vfio_iommu_type1_dirty_bitmap_get, 40);
ABI_AT(vfio_iommu_type1_dirty_bitmap_get, iova, 0);
ABI_AT(vfio_iommu_type1_dirty_bitmap_get, size, 8);
ABI_AT(vfio_iommu_type1_dirty_bitmap_get, bitmap, 16);

#endif
