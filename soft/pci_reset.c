/* SPDX-License-Identifier: MIT */
/*
 * Resets: of one function, where it has a way to do that, and of all that share
 * its bus (drivers/vfio/pci/vfio_pci_core.c). A bus is reset by its bridge: bus 0
 * has none, and so no such reset; every other bus is taken to be below one. Who
 * resets a bus must own all functions on it, by their groups' files or through
 * one IOMMUFD.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/pci.h"

struct address {
	unsigned segment, bus, device, function;
};

static struct address address_of(const struct soft_device *device)
{
	struct address at = {0};

	sscanf(device->is.bdf, "%4x:%2x:%2x.%1x", &at.segment, &at.bus, &at.device, &at.function);
	return at;
}

static bool same_bus(const struct soft_device *one, const struct soft_device *other)
{
	struct address a = address_of(one), b = address_of(other);

	return a.segment == b.segment && a.bus == b.bus;
}

void soft_pci_reset(struct soft_device *device)
{
	soft_dmabuf_move(device, true);
	soft_config_wake(device);
	soft_pci_memory_changed(device);
}

int soft_reset_ioctl(struct soft_device *device)
{
	if (!device->is.reset)
		return SOFT_REFUSE(reset_none, EINVAL, device->is.bdf, 0);
	pthread_mutex_lock(&device->lock);
	soft_pci_reset(device);
	pthread_mutex_unlock(&device->lock);
	return 0;
}

static int check_bus(const struct soft_device *device)
{
	return address_of(device).bus ? 0 : SOFT_REFUSE(reset_root, ENODEV, device->is.bdf, 0);
}

/* The @index-th function on the device's bus; NULL past the last. */
static struct soft_device *on_bus(const struct soft_device *device, size_t index)
{
	struct soft_system *system = device->system;

	for (size_t i = 0; i < system->n_devices; i++)
		if (same_bus(device, &system->devices[i]) && !index--)
			return &system->devices[i];
	return NULL;
}

static uint32_t bus_count(const struct soft_device *device)
{
	uint32_t n = 0;

	while (on_bus(device, n))
		n++;
	return n;
}

/* The IOMMUFD that a device is bound to; for comparison only. *id: its id there. */
static const void *iommufd_of(struct soft_device *device, uint32_t *id)
{
	const void *iommufd = NULL;

	*id = 0;
	pthread_mutex_lock(&device->lock);
	if (device->binding) {
		iommufd = device->binding->iommufd;
		*id = device->binding->object.id;
	}
	pthread_mutex_unlock(&device->lock);
	return iommufd;
}

/* A device's id in an IOMMUFD; OWNED: only its group is in there; else NOT_OWNED. */
static uint32_t owned_id(struct soft_device *device, const void *iommufd)
{
	struct soft_system *system = device->system;
	uint32_t id, other;

	if (iommufd_of(device, &id) == iommufd)
		return id;
	for (size_t i = 0; i < system->n_devices; i++)
		if (system->devices[i].group == device->group &&
			iommufd_of(&system->devices[i], &other) == iommufd)
			return VFIO_PCI_DEVID_OWNED;
	return (uint32_t)VFIO_PCI_DEVID_NOT_OWNED;
}

static bool by_cdev(struct soft_device *device)
{
	bool cdev;

	pthread_mutex_lock(&device->lock);
	cdev = device->cdev_open;
	pthread_mutex_unlock(&device->lock);
	return cdev;
}

static void describe(struct soft_device *device, struct vfio_pci_hot_reset_info *info,
	struct vfio_pci_dependent_device *list)
{
	const void *iommufd = NULL;
	struct soft_device *one;
	uint32_t id;

	info->flags = 0;
	if (by_cdev(device)) {
		iommufd = iommufd_of(device, &id);
		info->flags = VFIO_PCI_HOT_RESET_FLAG_DEV_ID | VFIO_PCI_HOT_RESET_FLAG_DEV_ID_OWNED;
	}
	for (uint32_t i = 0; (one = on_bus(device, i)); i++) {
		struct address at = address_of(one);

		list[i] = (struct vfio_pci_dependent_device){
			.segment = (uint16_t)at.segment,
			.bus = (uint8_t)at.bus,
			.devfn = (uint8_t)(at.device << 3 | at.function),
		};
		if (!iommufd) {
			list[i].group_id = one->group->number;
			continue;
		}
		list[i].devid = owned_id(one, iommufd);
		if (list[i].devid == (uint32_t)VFIO_PCI_DEVID_NOT_OWNED)
			info->flags &= ~(uint32_t)VFIO_PCI_HOT_RESET_FLAG_DEV_ID_OWNED;
	}
}

int soft_hot_reset_info(struct soft_device *device, void *argument)
{
	const size_t size = SOFT_END_OF(vfio_pci_hot_reset_info, count);
	struct vfio_pci_dependent_device *list;
	struct vfio_pci_hot_reset_info info;
	uint32_t count, room;
	int error = soft_copy_in(&info, argument, size, "vfio_pci_hot_reset_info"), result = 0;

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_pci_hot_reset_info", info.argsz, size);
	info.flags = 0;
	error = check_bus(device);
	if (error)
		return error;
	count = bus_count(device);
	room = (uint32_t)((info.argsz - size) / sizeof(*list));
	list = calloc(count, sizeof(*list));
	if (!list)
		return SOFT_REFUSE(no_memory, ENOMEM, "the functions of a bus", 0);
	info.count = count;
	if (count > room) {
		result = SOFT_REFUSE(reset_room, ENOSPC, device->is.bdf, count, room);
	} else {
		describe(device, &info, list);
		error = soft_copy_out((char *)argument + size, list, count * sizeof(*list),
			"the functions of a bus");
	}
	if (!error)
		error = soft_copy_out(argument, &info, size, "vfio_pci_hot_reset_info");
	free(list);
	return error ? error : result;
}

/* The groups that a user shows by their files. */
static int groups_of(
	struct soft_device *device, void *argument, uint32_t count, struct soft_group **groups)
{
	const size_t size = SOFT_END_OF(vfio_pci_hot_reset, count);
	int32_t *fds = malloc(count * sizeof(*fds));
	int error;

	if (!fds)
		return SOFT_REFUSE(no_memory, ENOMEM, "groups", 0);
	error = soft_copy_in(fds, (char *)argument + size, count * sizeof(*fds), "groups");
	for (uint32_t i = 0; i < count && !error; i++) {
		struct soft_file *file = soft_file_find(device->system, fds[i]);

		groups[i] = file ? soft_group_from(file) : NULL;
		if (file && !groups[i])
			error = SOFT_REFUSE(wrong_fd, EINVAL, "group", (unsigned)fds[i]);
		else if (!file && soft_file_unknown(fds[i], "group") == -EBADF)
			error = -EBADF;
		else if (!file)
			error = SOFT_REFUSE(wrong_fd, EINVAL, "group", (unsigned)fds[i]);
		/* A group lives as long as the system. */
		soft_file_put(file);
	}
	free(fds);
	return error;
}

/* Whether the user has every function on the bus; who of them is missing. */
static int check_owner(
	struct soft_device *device, struct soft_group **groups, uint32_t count, const void *iommufd)
{
	struct soft_device *one;

	for (size_t i = 0; (one = on_bus(device, i)); i++) {
		bool owned =
			iommufd && owned_id(one, iommufd) != (uint32_t)VFIO_PCI_DEVID_NOT_OWNED;

		for (uint32_t j = 0; j < count && !owned; j++)
			owned = groups[j] == one->group;
		if (!owned)
			return SOFT_REFUSE(reset_owner, EINVAL, one->is.bdf, one->group->number);
	}
	return 0;
}

static int reset_bus(struct soft_device *device, void *argument, uint32_t count)
{
	struct soft_group **groups = calloc(count + 1, sizeof(struct soft_group *));
	const void *iommufd = NULL;
	struct soft_device *one;
	uint32_t id;
	int error = 0;

	if (!groups)
		return SOFT_REFUSE(no_memory, ENOMEM, "groups", 0);
	if (count)
		error = groups_of(device, argument, count, groups);
	else
		iommufd = iommufd_of(device, &id);
	if (!error)
		error = check_owner(device, groups, count, iommufd);
	for (size_t i = 0; !error && (one = on_bus(device, i)); i++) {
		pthread_mutex_lock(&one->lock);
		if (one->open_count)
			soft_pci_reset(one);
		pthread_mutex_unlock(&one->lock);
	}
	free(groups);
	return error;
}

int soft_hot_reset(struct soft_device *device, void *argument)
{
	const size_t size = SOFT_END_OF(vfio_pci_hot_reset, count);
	struct vfio_pci_hot_reset user;
	int error = soft_copy_in(&user, argument, size, "vfio_pci_hot_reset");

	if (error)
		return error;
	if (user.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_pci_hot_reset", user.argsz, size);
	if (user.flags)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_DEVICE_PCI_HOT_RESET", user.flags, 0);
	/* Groups for a device that came from one, and none for one that came by its cdev. */
	if (by_cdev(device) != !user.count)
		return SOFT_REFUSE(reset_groups, EINVAL, NULL, user.count);
	error = check_bus(device);
	if (error)
		return error;
	if (user.count > bus_count(device))
		return SOFT_REFUSE(reset_many, EINVAL, NULL, user.count, bus_count(device));
	return reset_bus(device, argument, user.count);
}
