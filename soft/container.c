/* SPDX-License-Identifier: MIT */
/*
 * /dev/vfio/vfio: a container holds groups, and by SET_IOMMU becomes a type1
 * address space that all of them join, as do those that come later. Without a
 * group it may do nothing; when the last group leaves, the address space goes
 * (drivers/vfio/container.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/vfio.h"
#include "soft/soft.h"

static int check_extension(struct soft_container *container, unsigned long extension)
{
	int answer;

	pthread_mutex_lock(&container->lock);
	answer = soft_type1_extension(container->file.system, container->type1, extension);
	pthread_mutex_unlock(&container->lock);
	return answer;
}

/* All groups join, the newest first, or none does. */
static int create_type1(struct soft_container *container, unsigned long type)
{
	struct soft_type1 *type1;
	size_t left = container->n_groups;
	int error = soft_type1_create(container->file.system, type, &type1);

	if (error)
		return error;
	while (left) {
		error = soft_type1_attach(type1, container->groups[left - 1]);
		if (error)
			goto detach;
		left--;
	}
	container->type1 = type1;
	return 0;
detach:
	for (; left < container->n_groups; left++)
		soft_type1_detach(type1, container->groups[left]);
	soft_type1_destroy(type1);
	return error;
}

static int set_iommu(struct soft_container *container, unsigned long type)
{
	int error;

	pthread_mutex_lock(&container->lock);
	if (!container->n_groups)
		error = SOFT_REFUSE(container_empty, EINVAL, NULL, 0);
	else if (container->type1)
		error = SOFT_REFUSE(iommu_set, EINVAL, NULL, 0);
	else if (!soft_type1_extension(container->file.system, NULL, type))
		error = SOFT_REFUSE(iommu_type, ENODEV, NULL, type);
	else if (type == VFIO_UNMAP_ALL)
		/* An extension that type1 has, and so the driver is asked, but no type. */
		error = SOFT_REFUSE(iommu_type, EINVAL, NULL, type);
	else
		error = create_type1(container, type);
	pthread_mutex_unlock(&container->lock);
	return error;
}

static int container_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	struct soft_container *container = (struct soft_container *)file;
	int result;

	switch (request) {
	case VFIO_GET_API_VERSION:
		return VFIO_API_VERSION;
	case VFIO_CHECK_EXTENSION:
		return check_extension(container, (uintptr_t)argument);
	case VFIO_SET_IOMMU:
		return set_iommu(container, (uintptr_t)argument);
	default:
		break;
	}
	pthread_mutex_lock(&container->lock);
	if (container->type1)
		result = soft_type1_ioctl(container->type1, request, argument);
	else
		result = SOFT_REFUSE(iommu_unset, EINVAL, NULL, 0);
	pthread_mutex_unlock(&container->lock);
	return result;
}

static void container_release(struct soft_file *file)
{
	struct soft_container *container = (struct soft_container *)file;

	/* Its groups hold references: there are none any more, and no type1. */
	pthread_mutex_destroy(&container->lock);
	free(container->groups);
	free(container);
}

static const struct soft_file_ops container_ops = {
	.name = "container",
	.ioctl = container_ioctl,
	.release = container_release,
};

int soft_container_open(struct soft_system *system)
{
	struct soft_container *container = calloc(1, sizeof(*container));
	int fd;

	if (!container)
		return SOFT_REFUSE(no_memory, ENOMEM, "a container", 0);
	soft_file_init(&container->file, &container_ops, system);
	pthread_mutex_init(&container->lock, NULL);
	fd = soft_file_install(&container->file, "dmamap:/dev/vfio/vfio");
	if (fd < 0)
		soft_file_put(&container->file);
	return fd;
}

struct soft_container *soft_container_from(struct soft_file *file)
{
	return file->ops == &container_ops ? (struct soft_container *)file : NULL;
}

int soft_container_attach(struct soft_container *container, struct soft_group *group)
{
	struct soft_group **groups;
	int error;

	pthread_mutex_lock(&container->lock);
	error = soft_group_claim(group, group);
	if (error)
		goto out;
	groups = realloc(container->groups, (container->n_groups + 1) * sizeof(*groups));
	if (!groups) {
		error = SOFT_REFUSE(no_memory, ENOMEM, "a group", 0);
		goto unclaim;
	}
	container->groups = groups;
	error = container->type1 ? soft_type1_attach(container->type1, group) : 0;
	if (error)
		goto unclaim;
	groups[container->n_groups++] = group;
	soft_file_get(&container->file);
	goto out;
unclaim:
	soft_group_unclaim(group);
out:
	pthread_mutex_unlock(&container->lock);
	return error;
}

void soft_container_detach(struct soft_container *container, struct soft_group *group)
{
	size_t i = 0;

	pthread_mutex_lock(&container->lock);
	if (container->type1)
		soft_type1_detach(container->type1, group);
	while (container->groups[i] != group)
		i++;
	/* In order: SET_IOMMU goes through them from the newest on. */
	memmove(&container->groups[i], &container->groups[i + 1],
		(--container->n_groups - i) * sizeof(struct soft_group *));
	soft_group_unclaim(group);
	if (!container->n_groups && container->type1) {
		soft_type1_destroy(container->type1);
		container->type1 = NULL;
	}
	pthread_mutex_unlock(&container->lock);
	soft_file_put(&container->file);
}

bool soft_container_ready(struct soft_container *container)
{
	bool ready;

	pthread_mutex_lock(&container->lock);
	ready = container->type1;
	pthread_mutex_unlock(&container->lock);
	return ready;
}

int soft_container_access(struct soft_container *container, const struct soft_group *group,
	struct dmamap_access **access)
{
	int error = -ENODEV;

	pthread_mutex_lock(&container->lock);
	if (container->type1)
		error = soft_type1_access(container->type1, group, access);
	pthread_mutex_unlock(&container->lock);
	return error;
}
