/* SPDX-License-Identifier: MIT */
/*
 * Virtio as this project uses it: device status, feature bits, split and
 * packed rings, and the block device, with the kernel's own names, the layout
 * checked where it is written. tests/abi compares every entry with the
 * kernel's headers. Never include <linux/virtio_*.h> beside it.
 *
 * Numbers are little-endian in memory, as with VIRTIO_F_VERSION_1, which every
 * device here offers; so are the machines that dmamap runs on.
 */
#ifndef DMAMAP_ABI_VIRTIO_H
#define DMAMAP_ABI_VIRTIO_H

#include <stdint.h>

#include "abi/layout.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "virtio's numbers are little-endian");

/* ------------------------------------------------------------- virtio_ids */

#define VIRTIO_ID_NET	1
#define VIRTIO_ID_BLOCK 2
#define VIRTIO_ID_FS	26

/* ---------------------------------------------------------- virtio_config */

#define VIRTIO_CONFIG_S_ACKNOWLEDGE 1
#define VIRTIO_CONFIG_S_DRIVER	    2
#define VIRTIO_CONFIG_S_DRIVER_OK   4
#define VIRTIO_CONFIG_S_FEATURES_OK 8
#define VIRTIO_CONFIG_S_NEEDS_RESET 0x40
#define VIRTIO_CONFIG_S_FAILED	    0x80

/* Feature bits, as numbers. */
#define VIRTIO_F_NOTIFY_ON_EMPTY    24
#define VIRTIO_F_ANY_LAYOUT	    27
#define VIRTIO_F_VERSION_1	    32
#define VIRTIO_F_ACCESS_PLATFORM    33
#define VIRTIO_F_RING_PACKED	    34
#define VIRTIO_F_IN_ORDER	    35
#define VIRTIO_F_ORDER_PLATFORM	    36
#define VIRTIO_F_NOTIFICATION_DATA  38
#define VIRTIO_F_RING_RESET	    40
#define VIRTIO_RING_F_INDIRECT_DESC 28
#define VIRTIO_RING_F_EVENT_IDX	    29

/* -------------------------------------------- virtio_net, as VDUSE asks of it */

#define VIRTIO_NET_F_CTRL_VQ 17

/* ------------------------------------------------------------ virtio_ring */

#define VRING_DESC_F_NEXT     1
#define VRING_DESC_F_WRITE    2
#define VRING_DESC_F_INDIRECT 4

#define VRING_USED_F_NO_NOTIFY	   1
#define VRING_AVAIL_F_NO_INTERRUPT 1

#define VRING_AVAIL_ALIGN_SIZE 2
#define VRING_USED_ALIGN_SIZE  4
#define VRING_DESC_ALIGN_SIZE  16

struct vring_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags;
	uint16_t next;
};
ABI_SIZE(vring_desc, 16);
ABI_AT(vring_desc, len, 8);
ABI_AT(vring_desc, flags, 12);
ABI_AT(vring_desc, next, 14);

/* After ring[]: uint16_t used_event, when EVENT_IDX is negotiated. */
struct vring_avail {
	uint16_t flags;
	uint16_t idx;
	uint16_t ring[];
};
ABI_SIZE(vring_avail, 4);
ABI_AT(vring_avail, idx, 2);
ABI_AT(vring_avail, ring, 4);

struct vring_used_elem {
	uint32_t id;
	uint32_t len;
};
ABI_SIZE(vring_used_elem, 8);
ABI_AT(vring_used_elem, len, 4);

/* After ring[]: uint16_t avail_event, when EVENT_IDX is negotiated. */
struct vring_used {
	uint16_t flags;
	uint16_t idx;
	struct vring_used_elem ring[];
};
ABI_SIZE(vring_used, 4);
ABI_AT(vring_used, idx, 2);
ABI_AT(vring_used, ring, 4);

/*
 * Whether who asked to hear of index @event is to be told, now that the index
 * went from @old to @now.
 */
static inline int vring_need_event(uint16_t event, uint16_t now, uint16_t old)
{
	return (uint16_t)(now - event - 1) < (uint16_t)(now - old);
}

/* Bit numbers in a packed descriptor's flags. */
#define VRING_PACKED_DESC_F_AVAIL 7
#define VRING_PACKED_DESC_F_USED  15

#define VRING_PACKED_EVENT_FLAG_ENABLE	0x0
#define VRING_PACKED_EVENT_FLAG_DISABLE 0x1
#define VRING_PACKED_EVENT_FLAG_DESC	0x2
#define VRING_PACKED_EVENT_F_WRAP_CTR	15 /* bit number in off_wrap */

struct vring_packed_desc_event {
	uint16_t off_wrap;
	uint16_t flags;
};
ABI_SIZE(vring_packed_desc_event, 4);
ABI_AT(vring_packed_desc_event, flags, 2);

struct vring_packed_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t id;
	uint16_t flags;
};
ABI_SIZE(vring_packed_desc, 16);
ABI_AT(vring_packed_desc, len, 8);
ABI_AT(vring_packed_desc, id, 12);
ABI_AT(vring_packed_desc, flags, 14);

/* ------------------------------------------------------------- virtio_blk */

/* Feature bits, as numbers. */
#define VIRTIO_BLK_F_SIZE_MAX	  1
#define VIRTIO_BLK_F_SEG_MAX	  2
#define VIRTIO_BLK_F_GEOMETRY	  4
#define VIRTIO_BLK_F_RO		  5
#define VIRTIO_BLK_F_BLK_SIZE	  6
#define VIRTIO_BLK_F_FLUSH	  9
#define VIRTIO_BLK_F_TOPOLOGY	  10
#define VIRTIO_BLK_F_CONFIG_WCE	  11
#define VIRTIO_BLK_F_MQ		  12
#define VIRTIO_BLK_F_DISCARD	  13
#define VIRTIO_BLK_F_WRITE_ZEROES 14
#define VIRTIO_BLK_F_SECURE_ERASE 16
#define VIRTIO_BLK_F_ZONED	  17

#define VIRTIO_BLK_ID_BYTES 20

struct virtio_blk_config {
	uint64_t capacity; /* in sectors of 512 bytes */
	uint32_t size_max;
	uint32_t seg_max;
	struct virtio_blk_geometry {
		uint16_t cylinders;
		uint8_t heads;
		uint8_t sectors;
	} geometry;
	uint32_t blk_size;
	uint8_t physical_block_exp;
	uint8_t alignment_offset;
	uint16_t min_io_size;
	uint32_t opt_io_size;
	uint8_t wce;
	uint8_t unused;
	uint16_t num_queues;
	uint32_t max_discard_sectors;
	uint32_t max_discard_seg;
	uint32_t discard_sector_alignment;
	uint32_t max_write_zeroes_sectors;
	uint32_t max_write_zeroes_seg;
	uint8_t write_zeroes_may_unmap;
	uint8_t unused1[3];
	uint32_t max_secure_erase_sectors;
	uint32_t max_secure_erase_seg;
	uint32_t secure_erase_sector_alignment;
	struct virtio_blk_zoned_characteristics {
		uint32_t zone_sectors;
		uint32_t max_open_zones;
		uint32_t max_active_zones;
		uint32_t max_append_sectors;
		uint32_t write_granularity;
		uint8_t model;
		uint8_t unused2[3];
	} zoned;
} __attribute__((packed));
ABI_SIZE(virtio_blk_config, 96);
ABI_AT(virtio_blk_config, size_max, 8);
ABI_AT(virtio_blk_config, seg_max, 12);
ABI_AT(virtio_blk_config, geometry, 16);
ABI_AT(virtio_blk_config, blk_size, 20);
ABI_AT(virtio_blk_config, physical_block_exp, 24);
ABI_AT(virtio_blk_config, alignment_offset, 25);
ABI_AT(virtio_blk_config, min_io_size, 26);
ABI_AT(virtio_blk_config, opt_io_size, 28);
ABI_AT(virtio_blk_config, wce, 32);
ABI_AT(virtio_blk_config, num_queues, 34);
ABI_AT(virtio_blk_config, max_discard_sectors, 36);
ABI_AT(virtio_blk_config, max_discard_seg, 40);
ABI_AT(virtio_blk_config, discard_sector_alignment, 44);
ABI_AT(virtio_blk_config, max_write_zeroes_sectors, 48);
ABI_AT(virtio_blk_config, max_write_zeroes_seg, 52);
ABI_AT(virtio_blk_config, write_zeroes_may_unmap, 56);
ABI_AT(virtio_blk_config, max_secure_erase_sectors, 60);
ABI_AT(virtio_blk_config, zoned, 72);

#define VIRTIO_BLK_T_IN		  0
#define VIRTIO_BLK_T_OUT	  1
#define VIRTIO_BLK_T_FLUSH	  4
#define VIRTIO_BLK_T_GET_ID	  8
#define VIRTIO_BLK_T_DISCARD	  11
#define VIRTIO_BLK_T_WRITE_ZEROES 13

/* First of a request, readable by the device. The last byte, writable, is its status. */
struct virtio_blk_outhdr {
	uint32_t type;
	uint32_t ioprio;
	uint64_t sector;
};
ABI_SIZE(virtio_blk_outhdr, 16);
ABI_AT(virtio_blk_outhdr, ioprio, 4);
ABI_AT(virtio_blk_outhdr, sector, 8);

#define VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP 0x00000001

struct virtio_blk_discard_write_zeroes {
	uint64_t sector;
	uint32_t num_sectors;
	uint32_t flags;
};
ABI_SIZE(virtio_blk_discard_write_zeroes, 16);
ABI_AT(virtio_blk_discard_write_zeroes, num_sectors, 8);
ABI_AT(virtio_blk_discard_write_zeroes, flags, 12);

#define VIRTIO_BLK_S_OK	    0
#define VIRTIO_BLK_S_IOERR  1
#define VIRTIO_BLK_S_UNSUPP 2

#endif
