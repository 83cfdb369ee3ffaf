/* SPDX-License-Identifier: MIT */
/*
 * /dev/vfio/N: an IOMMU group, opened by one at a time, put into a container or
 * an IOMMUFD, and the way to its devices (drivers/vfio/group.c). While a device
 * of it is bound through a cdev the group cannot be opened, and the other way
 * round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/vfio.h"
#include "soft/soft.h"

struct group_file {
	struct soft_file file;
	struct soft_group *group;
};

int soft_group_claim(struct soft_group *group, const void *owner)
{
	/* A group takes its DMA alone; an IOMMUFD once for each of its devices. */
	if (group->dma_owners && (group->dma_owner != owner || owner == group))
		return SOFT_REFUSE(group_owned, EPERM, NULL, group->number);
	group->dma_owner = owner;
	group->dma_owners++;
	return 0;
}

void soft_group_unclaim(struct soft_group *group)
{
	if (!--group->dma_owners)
		group->dma_owner = NULL;
}

static int get_status(struct soft_group *group, void *argument)
{
	struct vfio_group_status status;
	int error = soft_copy_in(&status, argument, sizeof(status), "vfio_group_status");

	if (error)
		return error;
	if (status.argsz < sizeof(status))
		return SOFT_REFUSE(
			argsz, EINVAL, "vfio_group_status", status.argsz, sizeof(status));
	status.flags = 0;
	pthread_mutex_lock(&group->lock);
	if (group->container || group->iommufd)
		status.flags = VFIO_GROUP_FLAGS_CONTAINER_SET | VFIO_GROUP_FLAGS_VIABLE;
	else if (!group->dma_owners)
		status.flags = VFIO_GROUP_FLAGS_VIABLE;
	pthread_mutex_unlock(&group->lock);
	return soft_copy_out(argument, &status, sizeof(status), "vfio_group_status");
}

static int set_container(struct soft_group *group, void *argument)
{
	struct soft_container *container;
	struct soft_iommufd *iommufd;
	struct soft_file *file;
	int fd, error = soft_copy_in(&fd, argument, sizeof(fd), "a descriptor");

	if (error)
		return error;
	file = soft_file_find(group->system, fd);
	pthread_mutex_lock(&group->lock);
	if (!file) {
		error = soft_file_unknown(fd, "container or IOMMUFD");
		/* An open file of another kind is only looked at after the group's state. */
		if (error == -EBADFD && (group->container || group->iommufd))
			error = SOFT_REFUSE(group_set, EINVAL, NULL, group->number);
		goto out;
	}
	if (group->container || group->iommufd) {
		error = SOFT_REFUSE(group_set, EINVAL, NULL, group->number);
		goto out;
	}
	container = soft_container_from(file);
	iommufd = soft_iommufd_from(file);
	if (container) {
		error = soft_container_attach(container, group);
		if (!error) {
			group->container = container;
			group->container_users = 1;
		}
	} else if (iommufd) {
		error = soft_iommufd_compat_create(iommufd);
		if (!error) {
			soft_file_get(&iommufd->file);
			group->iommufd = iommufd;
		}
	} else {
		error = SOFT_REFUSE(wrong_fd, EBADFD, "container or IOMMUFD", (unsigned)fd);
	}
out:
	pthread_mutex_unlock(&group->lock);
	soft_file_put(file);
	return error;
}

static int unset_container(struct soft_group *group)
{
	struct soft_iommufd *iommufd = NULL;
	int error = 0;

	pthread_mutex_lock(&group->lock);
	if (group->container) {
		if (group->container_users != 1) {
			error = SOFT_REFUSE(group_used, EBUSY, NULL, group->number);
		} else {
			soft_container_detach(group->container, group);
			group->container = NULL;
			group->container_users = 0;
		}
	} else if (group->iommufd) {
		iommufd = group->iommufd;
		group->iommufd = NULL;
	} else {
		error = SOFT_REFUSE(group_unset, EINVAL, NULL, group->number);
	}
	pthread_mutex_unlock(&group->lock);
	if (iommufd)
		soft_file_put(&iommufd->file);
	return error;
}

static int find_device(struct soft_group *group, const char *name, struct soft_device **device)
{
	struct soft_system *system = group->system;

	for (size_t i = 0; i < system->n_devices; i++) {
		struct soft_device *one = &system->devices[i];
		int match = one->group == group ? soft_device_match(one, name) : 0;

		if (match < 0)
			return match;
		if (!match)
			continue;
		*device = one;
		return 0;
	}
	return SOFT_REFUSE(device_name, ENODEV, name, group->number);
}

static int get_device_fd(struct soft_group *group, void *argument)
{
	/* A page is what the kernel reads of a name. */
	size_t size = soft_page_size(group->system);
	struct soft_device *device = NULL;
	char *name = malloc(size);
	int error;

	if (!name)
		return SOFT_REFUSE(no_memory, ENOMEM, "a device's name", size);
	error = soft_copy_string(name, argument, size, "a device's name");
	if (!error)
		error = find_device(group, name, &device);
	free(name);
	return error ? error : soft_device_open_group(device);
}

static int group_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	struct soft_group *group = ((struct group_file *)file)->group;

	switch (request) {
	case VFIO_GROUP_GET_STATUS:
		return get_status(group, argument);
	case VFIO_GROUP_SET_CONTAINER:
		return set_container(group, argument);
	case VFIO_GROUP_UNSET_CONTAINER:
		return unset_container(group);
	case VFIO_GROUP_GET_DEVICE_FD:
		return get_device_fd(group, argument);
	default:
		return SOFT_REFUSE(request, ENOTTY, "a group", request);
	}
}

static void group_release(struct soft_file *file)
{
	struct soft_group *group = ((struct group_file *)file)->group;
	struct soft_iommufd *iommufd;

	pthread_mutex_lock(&group->lock);
	/* Devices open through the container hold this file: there are none. */
	if (group->container)
		soft_container_detach(group->container, group);
	group->container = NULL;
	group->container_users = 0;
	iommufd = group->iommufd;
	group->iommufd = NULL;
	group->opened = NULL;
	pthread_mutex_unlock(&group->lock);
	if (iommufd)
		soft_file_put(&iommufd->file);
	free(file);
}

static const struct soft_file_ops group_ops = {
	.name = "group",
	.ioctl = group_ioctl,
	.release = group_release,
};

int soft_group_open(struct soft_group *group)
{
	struct group_file *file = calloc(1, sizeof(*file));
	int error = 0, fd;

	if (!file)
		return SOFT_REFUSE(no_memory, ENOMEM, "a group", 0);
	soft_file_init(&file->file, &group_ops, group->system);
	file->group = group;
	pthread_mutex_lock(&group->lock);
	if (group->cdev_open)
		error = SOFT_REFUSE(group_cdev, EBUSY, NULL, group->number);
	else if (group->opened)
		error = SOFT_REFUSE(group_open, EBUSY, NULL, group->number);
	else
		group->opened = &file->file;
	pthread_mutex_unlock(&group->lock);
	if (error) {
		free(file);
		return error;
	}
	fd = soft_file_install(&file->file, "dmamap:/dev/vfio/group");
	if (fd < 0)
		soft_file_put(&file->file);
	return fd;
}

struct soft_group *soft_group_from(struct soft_file *file)
{
	return file->ops == &group_ops ? ((struct group_file *)file)->group : NULL;
}
