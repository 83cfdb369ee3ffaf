/* SPDX-License-Identifier: MIT */
/*
 * An IOMMUFD's objects by id (drivers/iommu/iommufd/main.c). An id is the
 * lowest that is free, from 1; it is taken when an object begins to be made,
 * and found only when it is complete, so that what fails half-way was never
 * seen and leaves no gap.
 *
 * An object's users are counted: one for having an id, one for each object or
 * call that uses it. It can be destroyed while only its id counts.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* objects_lock held. */
static int grow(struct soft_iommufd *iommufd)
{
	size_t n = iommufd->n_objects ? 2 * iommufd->n_objects : 8;
	struct soft_object **objects = realloc(iommufd->objects, n * sizeof(*objects));

	if (!objects)
		return SOFT_REFUSE(no_memory, ENOMEM, "an object", 0);
	memset(objects + iommufd->n_objects, 0, (n - iommufd->n_objects) * sizeof(*objects));
	iommufd->objects = objects;
	iommufd->n_objects = n;
	return 0;
}

int soft_object_reserve(
	struct soft_iommufd *iommufd, struct soft_object *object, enum soft_object_type type)
{
	size_t i;
	int error = 0;

	object->type = type;
	object->users = 1;
	object->complete = false;
	pthread_mutex_lock(&iommufd->objects_lock);
	for (i = iommufd->lowest_free; i < iommufd->n_objects && iommufd->objects[i]; i++)
		;
	if (i == iommufd->n_objects)
		error = grow(iommufd);
	if (!error) {
		iommufd->objects[i] = object;
		iommufd->lowest_free = i + 1;
		iommufd->n_used++;
		object->id = (uint32_t)i + 1;
	}
	pthread_mutex_unlock(&iommufd->objects_lock);
	return error;
}

void soft_object_complete(struct soft_iommufd *iommufd, struct soft_object *object)
{
	pthread_mutex_lock(&iommufd->objects_lock);
	object->complete = true;
	pthread_mutex_unlock(&iommufd->objects_lock);
}

/* objects_lock held; nobody but the id uses it. */
static void forget(struct soft_iommufd *iommufd, struct soft_object *object)
{
	size_t i = object->id - 1;

	iommufd->objects[i] = NULL;
	iommufd->n_used--;
	if (i < iommufd->lowest_free)
		iommufd->lowest_free = i;
	if (object->type == SOFT_OBJECT_IOAS && iommufd->vfio_ioas == (struct soft_ioas *)object)
		iommufd->vfio_ioas = NULL;
}

void soft_object_abandon(struct soft_iommufd *iommufd, struct soft_object *object)
{
	pthread_mutex_lock(&iommufd->objects_lock);
	forget(iommufd, object);
	pthread_mutex_unlock(&iommufd->objects_lock);
}

/* objects_lock held. */
static struct soft_object *by_id(struct soft_iommufd *iommufd, uint32_t id)
{
	struct soft_object *object =
		id && id <= iommufd->n_objects ? iommufd->objects[id - 1] : NULL;

	return object && object->complete ? object : NULL;
}

int soft_object_get(struct soft_iommufd *iommufd, uint32_t id, enum soft_object_type type,
	struct soft_object **object)
{
	static const char *const names[] = {
		[SOFT_OBJECT_ANY] = "any",
		[SOFT_OBJECT_IOAS] = "an IOAS",
		[SOFT_OBJECT_DEVICE] = "a device",
		[SOFT_OBJECT_HWPT] = "a page table",
		[SOFT_OBJECT_FAULT] = "a fault queue",
		[SOFT_OBJECT_VIOMMU] = "a virtual IOMMU",
	};
	struct soft_object *found;

	pthread_mutex_lock(&iommufd->objects_lock);
	found = by_id(iommufd, id);
	if (found && type != SOFT_OBJECT_ANY && found->type != type)
		found = NULL;
	if (found)
		found->users++;
	pthread_mutex_unlock(&iommufd->objects_lock);
	*object = found;
	return found ? 0 : SOFT_REFUSE(object_unknown, ENOENT, names[type], id);
}

void soft_object_use(struct soft_iommufd *iommufd, struct soft_object *object)
{
	pthread_mutex_lock(&iommufd->objects_lock);
	object->users++;
	pthread_mutex_unlock(&iommufd->objects_lock);
}

void soft_object_put(struct soft_iommufd *iommufd, struct soft_object *object)
{
	pthread_mutex_lock(&iommufd->objects_lock);
	object->users--;
	pthread_mutex_unlock(&iommufd->objects_lock);
}

int soft_object_remove(struct soft_iommufd *iommufd, struct soft_object *object)
{
	int error = 0;

	pthread_mutex_lock(&iommufd->objects_lock);
	if (object->users > 1)
		error = -EBUSY;
	else
		forget(iommufd, object);
	pthread_mutex_unlock(&iommufd->objects_lock);
	return error;
}

void soft_object_remove_wait(struct soft_iommufd *iommufd, struct soft_object *object)
{
	/* Who still uses it is a call that does not need it for long. */
	while (soft_object_remove(iommufd, object))
		sched_yield();
}

struct soft_object *soft_object_next(
	struct soft_iommufd *iommufd, enum soft_object_type type, uint32_t after)
{
	struct soft_object *found = NULL;

	pthread_mutex_lock(&iommufd->objects_lock);
	for (size_t i = after; i < iommufd->n_objects && !found; i++) {
		struct soft_object *object = by_id(iommufd, (uint32_t)i + 1);

		if (object && object->type == type)
			found = object;
	}
	if (found)
		found->users++;
	pthread_mutex_unlock(&iommufd->objects_lock);
	return found;
}

/* It has no id any more. Devices have their driver as a user: they never come here. */
static void destroy(struct soft_object *object)
{
	if (object->type == SOFT_OBJECT_IOAS)
		soft_ioas_destroy((struct soft_ioas *)object);
	else if (object->type == SOFT_OBJECT_HWPT)
		soft_hwpt_destroy((struct soft_hwpt *)object);
	else if (object->type == SOFT_OBJECT_FAULT)
		soft_fault_destroy((struct soft_fault *)object);
}

int soft_iommufd_destroy(struct soft_command *command)
{
	const struct iommu_destroy *user = command->data;
	struct soft_iommufd *iommufd = command->iommufd;
	struct soft_object *object;
	int error = 0;

	pthread_mutex_lock(&iommufd->objects_lock);
	object = by_id(iommufd, user->id);
	if (!object)
		error = SOFT_REFUSE(object_unknown, ENOENT, "any", user->id);
	else if (object->users != 1)
		error = SOFT_REFUSE(object_busy, EBUSY, NULL, user->id, object->users - 1);
	else
		forget(iommufd, object);
	pthread_mutex_unlock(&iommufd->objects_lock);
	if (!error)
		destroy(object);
	return error;
}

void soft_objects_destroy(struct soft_iommufd *iommufd)
{
	/* Those that nobody uses, until none is left: what they used comes after them. */
	for (bool any = true; any;) {
		any = false;
		for (size_t i = 0; i < iommufd->n_objects; i++) {
			struct soft_object *object = iommufd->objects[i];

			if (!object || soft_object_remove(iommufd, object))
				continue;
			destroy(object);
			any = true;
		}
	}
	free(iommufd->objects);
}
