/* SPDX-License-Identifier: MIT */
/*
 * The VDUSE ABI as this project uses it: the requests of /dev/vduse/control
 * and of a device's own file, and the messages that are read from and written
 * to the latter, with the kernel's own names, the layout checked where it is
 * written. tests/abi compares every entry with the kernel's header. Never
 * include <linux/vduse.h> beside it.
 *
 * A device is made on the control file, by its daemon; its rings and buffers
 * are found by IOVA in files that IOTLB_GET_FD hands out. Structures do not
 * grow: what came later has a version of the API (SET_API_VERSION) or a
 * feature (SET_FEATURES), which hold for one open control file and for the
 * devices that are made on it.
 */
#ifndef DMAMAP_ABI_VDUSE_H
#define DMAMAP_ABI_VDUSE_H

#include <stdint.h>
#include <sys/ioctl.h>

#include "abi/layout.h"

#define VDUSE_BASE 0x81

#define VDUSE_API_VERSION   0
#define VDUSE_API_VERSION_1 1 /* groups of queues, and address spaces */

/* Features of VDUSE itself, as bit numbers. */
#define VDUSE_F_QUEUE_READY 0 /* the daemon is asked when a queue becomes ready */
#define VDUSE_F_SUSPEND	    1 /* and to suspend */

#define VDUSE_NAME_MAX 256

/* ------------------------------------------------------ the control file */

struct vduse_dev_config {
	char name[VDUSE_NAME_MAX];
	uint32_t vendor_id;
	uint32_t device_id;
	uint64_t features; /* what the driver is offered */
	uint32_t vq_num;
	uint32_t vq_align;
	uint32_t ngroups; /* 0 in version 0 */
	uint32_t nas;	  /* 0 in version 0 */
	uint32_t reserved[11];
	uint32_t config_size;
	uint8_t config[];
};
ABI_SIZE(vduse_dev_config, 336);
ABI_AT(vduse_dev_config, vendor_id, 256);
ABI_AT(vduse_dev_config, device_id, 260);
ABI_AT(vduse_dev_config, features, 264);
ABI_AT(vduse_dev_config, vq_num, 272);
ABI_AT(vduse_dev_config, vq_align, 276);
ABI_AT(vduse_dev_config, ngroups, 280);
ABI_AT(vduse_dev_config, nas, 284);
ABI_AT(vduse_dev_config, reserved, 288);
ABI_AT(vduse_dev_config, config_size, 332);
ABI_AT(vduse_dev_config, config, 336);

#define VDUSE_GET_API_VERSION _IOR(VDUSE_BASE, 0x00, uint64_t)
#define VDUSE_SET_API_VERSION _IOW(VDUSE_BASE, 0x01, uint64_t)
#define VDUSE_CREATE_DEV      _IOW(VDUSE_BASE, 0x02, struct vduse_dev_config)
#define VDUSE_DESTROY_DEV     _IOW(VDUSE_BASE, 0x03, char[VDUSE_NAME_MAX])
#define VDUSE_GET_FEATURES    _IOR(VDUSE_BASE, 0x04, uint64_t)
#define VDUSE_SET_FEATURES    _IOW(VDUSE_BASE, 0x05, uint64_t)

/* ----------------------------------------------------- the device's file */

#define VDUSE_ACCESS_RO 0x1
#define VDUSE_ACCESS_WO 0x2
#define VDUSE_ACCESS_RW 0x3

/* start and last say where to look; the first range that has a byte there comes back. */
struct vduse_iotlb_entry {
	uint64_t offset; /* of start, in the file */
	uint64_t start;
	uint64_t last;
	uint8_t perm;
};
ABI_SIZE(vduse_iotlb_entry, 32);
ABI_AT(vduse_iotlb_entry, start, 8);
ABI_AT(vduse_iotlb_entry, last, 16);
ABI_AT(vduse_iotlb_entry, perm, 24);

struct vduse_iotlb_entry_v2 {
	uint64_t offset;
	uint64_t start;
	uint64_t last;
	uint8_t perm;
	uint8_t padding[7];
	uint32_t asid;
	uint32_t reserved[11];
};
ABI_SIZE(vduse_iotlb_entry_v2, 80);
ABI_AT(vduse_iotlb_entry_v2, start, 8);
ABI_AT(vduse_iotlb_entry_v2, last, 16);
ABI_AT(vduse_iotlb_entry_v2, perm, 24);
ABI_AT(vduse_iotlb_entry_v2, asid, 32);
ABI_AT(vduse_iotlb_entry_v2, reserved, 36);

struct vduse_config_data {
	uint32_t offset;
	uint32_t length;
	uint8_t buffer[];
};
ABI_SIZE(vduse_config_data, 8);
ABI_AT(vduse_config_data, length, 4);
ABI_AT(vduse_config_data, buffer, 8);

struct vduse_vq_config {
	uint32_t index;
	uint16_t max_size;
	uint16_t reserved1;
	uint32_t group; /* 0 in version 0 */
	uint16_t reserved2[10];
};
ABI_SIZE(vduse_vq_config, 32);
ABI_AT(vduse_vq_config, max_size, 4);
ABI_AT(vduse_vq_config, reserved1, 6);
ABI_AT(vduse_vq_config, group, 8);
ABI_AT(vduse_vq_config, reserved2, 12);

struct vduse_vq_state_split {
	uint16_t avail_index;
};
ABI_SIZE(vduse_vq_state_split, 2);

struct vduse_vq_state_packed {
	uint16_t last_avail_counter;
	uint16_t last_avail_idx;
	uint16_t last_used_counter;
	uint16_t last_used_idx;
};
ABI_SIZE(vduse_vq_state_packed, 8);
ABI_AT(vduse_vq_state_packed, last_avail_idx, 2);
ABI_AT(vduse_vq_state_packed, last_used_counter, 4);
ABI_AT(vduse_vq_state_packed, last_used_idx, 6);

struct vduse_vq_group_asid {
	uint32_t group;
	uint32_t asid;
};
ABI_SIZE(vduse_vq_group_asid, 8);
ABI_AT(vduse_vq_group_asid, asid, 4);

struct vduse_vq_info {
	uint32_t index;
	uint32_t num;
	uint64_t desc_addr;
	uint64_t driver_addr;
	uint64_t device_addr;
	union {
		struct vduse_vq_state_split split;
		struct vduse_vq_state_packed packed;
	};
	uint8_t ready;
};
ABI_SIZE(vduse_vq_info, 48);
ABI_AT(vduse_vq_info, num, 4);
ABI_AT(vduse_vq_info, desc_addr, 8);
ABI_AT(vduse_vq_info, driver_addr, 16);
ABI_AT(vduse_vq_info, device_addr, 24);
ABI_AT(vduse_vq_info, split, 32);
ABI_AT(vduse_vq_info, packed, 32);
ABI_AT(vduse_vq_info, ready, 40);

#define VDUSE_EVENTFD_DEASSIGN (-1)

struct vduse_vq_eventfd {
	uint32_t index;
	int fd;
};
ABI_SIZE(vduse_vq_eventfd, 8);
ABI_AT(vduse_vq_eventfd, fd, 4);

struct vduse_iova_umem {
	uint64_t uaddr;
	uint64_t iova;
	uint64_t size;
	uint32_t asid;
	uint32_t reserved[5];
};
ABI_SIZE(vduse_iova_umem, 48);
ABI_AT(vduse_iova_umem, iova, 8);
ABI_AT(vduse_iova_umem, size, 16);
ABI_AT(vduse_iova_umem, asid, 24);
ABI_AT(vduse_iova_umem, reserved, 28);

#define VDUSE_IOVA_CAP_UMEM (1 << 0) /* umem can take this range's place */

struct vduse_iova_info {
	uint64_t start;
	uint64_t last;
	uint64_t capability;
	uint32_t asid;
	uint32_t reserved[5];
};
ABI_SIZE(vduse_iova_info, 48);
ABI_AT(vduse_iova_info, last, 8);
ABI_AT(vduse_iova_info, capability, 16);
ABI_AT(vduse_iova_info, asid, 24);
ABI_AT(vduse_iova_info, reserved, 28);

#define VDUSE_IOTLB_GET_FD	    _IOWR(VDUSE_BASE, 0x10, struct vduse_iotlb_entry)
#define VDUSE_DEV_GET_FEATURES	    _IOR(VDUSE_BASE, 0x11, uint64_t)
#define VDUSE_DEV_SET_CONFIG	    _IOW(VDUSE_BASE, 0x12, struct vduse_config_data)
#define VDUSE_DEV_INJECT_CONFIG_IRQ _IO(VDUSE_BASE, 0x13)
#define VDUSE_VQ_SETUP		    _IOW(VDUSE_BASE, 0x14, struct vduse_vq_config)
#define VDUSE_VQ_GET_INFO	    _IOWR(VDUSE_BASE, 0x15, struct vduse_vq_info)
#define VDUSE_VQ_SETUP_KICKFD	    _IOW(VDUSE_BASE, 0x16, struct vduse_vq_eventfd)
#define VDUSE_VQ_INJECT_IRQ	    _IOW(VDUSE_BASE, 0x17, uint32_t)
#define VDUSE_IOTLB_REG_UMEM	    _IOW(VDUSE_BASE, 0x18, struct vduse_iova_umem)
#define VDUSE_IOTLB_DEREG_UMEM	    _IOW(VDUSE_BASE, 0x19, struct vduse_iova_umem)
#define VDUSE_IOTLB_GET_INFO	    _IOWR(VDUSE_BASE, 0x1a, struct vduse_iova_info)
#define VDUSE_IOTLB_GET_FD2	    _IOWR(VDUSE_BASE, 0x1b, struct vduse_iotlb_entry_v2)

/* -------------------------------------------------------------- messages */

enum vduse_req_type {
	VDUSE_GET_VQ_STATE,
	VDUSE_SET_STATUS,
	VDUSE_UPDATE_IOTLB,
	VDUSE_SET_VQ_GROUP_ASID, /* version 1 */
	VDUSE_SET_VQ_READY,	 /* VDUSE_F_QUEUE_READY */
	VDUSE_SUSPEND,		 /* VDUSE_F_SUSPEND */
};

struct vduse_vq_state {
	uint32_t index;
	union {
		struct vduse_vq_state_split split;
		struct vduse_vq_state_packed packed;
	};
};
ABI_SIZE(vduse_vq_state, 12);
ABI_AT(vduse_vq_state, split, 4);
ABI_AT(vduse_vq_state, packed, 4);

struct vduse_dev_status {
	uint8_t status;
};
ABI_SIZE(vduse_dev_status, 1);

struct vduse_iova_range {
	uint64_t start;
	uint64_t last;
};
ABI_SIZE(vduse_iova_range, 16);
ABI_AT(vduse_iova_range, last, 8);

struct vduse_iova_range_v2 {
	uint64_t start;
	uint64_t last;
	uint32_t asid;
	uint32_t padding;
};
ABI_SIZE(vduse_iova_range_v2, 24);
ABI_AT(vduse_iova_range_v2, last, 8);
ABI_AT(vduse_iova_range_v2, asid, 16);

struct vduse_vq_ready {
	uint32_t num;
	uint32_t ready;
};
ABI_SIZE(vduse_vq_ready, 8);
ABI_AT(vduse_vq_ready, ready, 4);

struct vduse_dev_request {
	uint32_t type;
	uint32_t request_id;
	uint32_t reserved[4];
	union {
		struct vduse_vq_state vq_state;
		struct vduse_dev_status s;
		struct vduse_iova_range iova;
		struct vduse_iova_range_v2 iova_v2;
		struct vduse_vq_group_asid vq_group_asid;
		struct vduse_vq_ready vq_ready;
		uint32_t padding[32];
	};
};
ABI_SIZE(vduse_dev_request, 152);
ABI_AT(vduse_dev_request, request_id, 4);
ABI_AT(vduse_dev_request, reserved, 8);
ABI_AT(vduse_dev_request, vq_state, 24);
ABI_AT(vduse_dev_request, padding, 24);

#define VDUSE_REQ_RESULT_OK	0x00
#define VDUSE_REQ_RESULT_FAILED 0x01

struct vduse_dev_response {
	uint32_t request_id;
	uint32_t result;
	uint32_t reserved[4];
	union {
		struct vduse_vq_state vq_state;
		uint32_t padding[32];
	};
};
ABI_SIZE(vduse_dev_response, 152);
ABI_AT(vduse_dev_response, result, 4);
ABI_AT(vduse_dev_response, reserved, 8);
ABI_AT(vduse_dev_response, vq_state, 24);
ABI_AT(vduse_dev_response, padding, 24);

#endif
