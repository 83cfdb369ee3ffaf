/* SPDX-License-Identifier: MIT */
/* The table as the kernel's headers have it, as far as they are new enough. */
#include <linux/version.h>
#include <linux/vduse.h>
#include <linux/vfio.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <sys/ioctl.h>

#if __has_include(<linux/iommufd.h>)
#include <linux/iommufd.h>
#endif

#include "entries.h"

#define KNOWS(major, minor) (LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0))

const struct entry kernel_entries[] = {
#include "table.h"
	{NULL, 0},
};
const size_t kernel_n = sizeof(kernel_entries) / sizeof(kernel_entries[0]) - 1;
const unsigned kernel_version = LINUX_VERSION_CODE;
