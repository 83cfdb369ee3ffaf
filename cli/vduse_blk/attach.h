/* SPDX-License-Identifier: MIT */
/*
 * Attaching the device to the vDPA bus, and detaching it: what vdpa dev add and
 * vdpa dev del do, by generic netlink. Both wait for the driver, which waits
 * for the device's answers, so they must not be called by who gives those.
 */
#ifndef VDUSE_BLK_ATTACH_H
#define VDUSE_BLK_ATTACH_H

#include <stddef.h>

/** vdpa_attach() - Return: 0; -EOPNOTSUPP the kernel has no vDPA; -errno. */
int vdpa_attach(const char *name);
/** vdpa_detach() - Return: 0; -ENODEV it is not attached; -errno. */
int vdpa_detach(const char *name);
/** vdpa_disk() - Write the name of the block device that came of it, such as
 * "vda". Return: 0; -ENOENT there is none (yet). */
int vdpa_disk(const char *name, char *disk, size_t size);

#endif
