/* SPDX-License-Identifier: MIT */
/*
 * Devices of an IOMMUFD and the page tables that they use. Binding makes a
 * DEVICE object; attaching to an IOAS makes (or shares) its HWPT object, which
 * is an engine page table; the last to detach takes it away again
 * (drivers/iommu/iommufd/device.c, hw_pagetable.c).
 *
 * iommufd->attach guards who is attached to what. A machine has one kind of
 * IOMMU, so one page table serves every device of an IOAS.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/soft.h"

int soft_binding_create(
	struct soft_iommufd *iommufd, struct soft_device *device, struct soft_binding **binding)
{
	struct soft_binding *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a device", 0);
	made->iommufd = iommufd;
	made->device = device;
	error = soft_group_claim(device->group, iommufd);
	if (error)
		goto free_made;
	error = soft_object_add(iommufd, &made->object, SOFT_OBJECT_DEVICE);
	if (error)
		goto unclaim;
	/* The driver is a user: IOMMU_DESTROY of a device is always -EBUSY. */
	soft_object_use(iommufd, &made->object);
	soft_file_get(&iommufd->file);
	*binding = made;
	return 0;
unclaim:
	soft_group_unclaim(device->group);
free_made:
	free(made);
	return error;
}

/* The table goes, the IOAS stays. Nobody uses the hwpt; iommufd->attach is held. */
static void destroy_hwpt(struct soft_hwpt *hwpt)
{
	struct soft_ioas *ioas = hwpt->ioas;

	pthread_mutex_lock(&ioas->lock);
	dmamap_table_destroy(hwpt->table);
	ioas->hwpt = NULL;
	soft_ioas_unreserve(ioas, hwpt);
	pthread_mutex_unlock(&ioas->lock);
	soft_object_put(ioas->iommufd, &ioas->object);
	free(hwpt);
}

/* A device stops using it; the last one takes it away. */
static void put_hwpt(struct soft_iommufd *iommufd, struct soft_hwpt *hwpt)
{
	soft_object_put(iommufd, &hwpt->object);
	if (!soft_object_remove(iommufd, &hwpt->object))
		destroy_hwpt(hwpt);
}

static int check_odd_memory(struct soft_ioas *ioas)
{
	uint64_t page = soft_page_size(ioas->space.system), first = 0;
	struct dmamap_area area;

	if (!ioas->odd_memory)
		return 0;
	while (dmamap_area_find(ioas->space.space, first, UINT64_MAX, &area)) {
		const struct soft_memory *memory = (const struct soft_memory *)area.memory;
		uint64_t phase = (memory->phase + area.offset) & (page - 1);

		if (phase)
			return SOFT_REFUSE(
				offset_misaligned, EADDRINUSE, NULL, area.first, area.last, phase);
		if (area.last == UINT64_MAX)
			break;
		first = area.last + 1;
	}
	return 0;
}

/* A page table for an IOAS without one, with one user: the caller. */
static int create_hwpt(struct soft_ioas *ioas, struct soft_hwpt **hwpt)
{
	struct soft_iommufd *iommufd = ioas->iommufd;
	struct soft_hwpt *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a page table", 0);
	made->ioas = ioas;
	error = soft_object_add(iommufd, &made->object, SOFT_OBJECT_HWPT);
	if (error)
		goto free_made;
	soft_object_use(iommufd, &made->object);
	pthread_mutex_lock(&ioas->lock);
	error = check_odd_memory(ioas);
	if (!error)
		error = soft_ioas_reserve(ioas, made, soft_space_reserve_aperture);
	if (error)
		goto unlock;
	error = soft_space_table(&ioas->space, ioas->small_pages_only, &made->table);
	if (error)
		goto unreserve;
	ioas->hwpt = made;
	pthread_mutex_unlock(&ioas->lock);
	soft_object_use(iommufd, &ioas->object);
	*hwpt = made;
	return 0;
unreserve:
	soft_ioas_unreserve(ioas, made);
unlock:
	pthread_mutex_unlock(&ioas->lock);
	soft_object_put(iommufd, &made->object);
	/* Somebody may be looking at the id in vain just now, but not for long. */
	while (soft_object_remove(iommufd, &made->object))
		;
free_made:
	free(made);
	return error;
}

static int reserve_for(struct soft_ioas *ioas, const struct soft_binding *binding)
{
	int error;

	pthread_mutex_lock(&ioas->lock);
	error = soft_ioas_reserve(ioas, binding, soft_space_reserve_windows);
	pthread_mutex_unlock(&ioas->lock);
	return error;
}

static void unreserve_for(struct soft_ioas *ioas, const struct soft_binding *binding)
{
	pthread_mutex_lock(&ioas->lock);
	soft_ioas_unreserve(ioas, binding);
	pthread_mutex_unlock(&ioas->lock);
}

static int attach_first(struct soft_binding *binding, struct soft_ioas *ioas)
{
	struct soft_group *group = binding->device->group;
	struct soft_hwpt *hwpt = ioas->hwpt;
	int error;

	/* The devices of a group reach the same memory. */
	if (group->hwpt && group->hwpt != hwpt)
		return SOFT_REFUSE(group_elsewhere, EINVAL, NULL, group->number);
	error = reserve_for(ioas, binding);
	if (error)
		return error;
	if (hwpt)
		soft_object_use(binding->iommufd, &hwpt->object);
	else
		error = create_hwpt(ioas, &hwpt);
	if (error) {
		unreserve_for(ioas, binding);
		return error;
	}
	binding->hwpt = hwpt;
	group->hwpt = hwpt;
	group->attached++;
	return 0;
}

/* The bindings of a group that are attached, one by one: *at starts at 0. */
static struct soft_binding *next_attached(
	struct soft_iommufd *iommufd, struct soft_group *group, size_t *at)
{
	struct soft_binding *found = NULL;

	pthread_mutex_lock(&iommufd->objects_lock);
	for (; *at < iommufd->n_objects && !found; ++*at) {
		struct soft_object *object = iommufd->objects[*at];
		struct soft_binding *binding = (struct soft_binding *)object;

		if (object && object->type == SOFT_OBJECT_DEVICE && binding->hwpt &&
			binding->device->group == group)
			found = binding;
	}
	pthread_mutex_unlock(&iommufd->objects_lock);
	return found;
}

/* All devices of the group move at once. */
static int replace(struct soft_binding *binding, struct soft_ioas *ioas)
{
	struct soft_group *group = binding->device->group;
	struct soft_iommufd *iommufd = binding->iommufd;
	struct soft_hwpt *old = binding->hwpt, *hwpt = ioas->hwpt;
	struct soft_binding *one;
	int error = 0;

	if (hwpt == old)
		return 0;
	if (hwpt)
		soft_object_use(iommufd, &hwpt->object);
	else
		error = create_hwpt(ioas, &hwpt);
	if (error)
		return error;
	for (size_t at = 0; !error && (one = next_attached(iommufd, group, &at));)
		error = reserve_for(ioas, one);
	if (error) {
		for (size_t at = 0; (one = next_attached(iommufd, group, &at));)
			unreserve_for(ioas, one);
		put_hwpt(iommufd, hwpt);
		return error;
	}
	for (size_t at = 0; (one = next_attached(iommufd, group, &at));) {
		unreserve_for(old->ioas, one);
		one->hwpt = hwpt;
		soft_object_use(iommufd, &hwpt->object);
	}
	group->hwpt = hwpt;
	/* Each device leaves the old one, and our own use of the new one ends. */
	for (unsigned i = 0; i + 1 < group->attached; i++)
		soft_object_put(iommufd, &old->object);
	put_hwpt(iommufd, old);
	soft_object_put(iommufd, &hwpt->object);
	return 0;
}

int soft_binding_attach(struct soft_binding *binding, uint32_t *pt_id)
{
	struct soft_iommufd *iommufd = binding->iommufd;
	struct soft_object *object;
	struct soft_ioas *ioas = NULL;
	int error;

	pthread_mutex_lock(&iommufd->attach);
	error = soft_object_get(iommufd, *pt_id, SOFT_OBJECT_ANY, &object);
	if (error)
		goto out;
	if (object->type == SOFT_OBJECT_IOAS)
		ioas = (struct soft_ioas *)object;
	else if (object->type == SOFT_OBJECT_HWPT)
		ioas = ((struct soft_hwpt *)object)->ioas;
	if (!ioas)
		error = SOFT_REFUSE(object_type, EINVAL, NULL, *pt_id);
	else if (binding->hwpt)
		error = replace(binding, ioas);
	else
		error = attach_first(binding, ioas);
	if (!error)
		*pt_id = binding->hwpt->object.id;
	soft_object_put(iommufd, object);
out:
	pthread_mutex_unlock(&iommufd->attach);
	return error;
}

void soft_binding_detach(struct soft_binding *binding)
{
	struct soft_group *group = binding->device->group;
	struct soft_iommufd *iommufd = binding->iommufd;
	struct soft_hwpt *hwpt;

	pthread_mutex_lock(&iommufd->attach);
	hwpt = binding->hwpt;
	if (hwpt) {
		binding->hwpt = NULL;
		if (!--group->attached)
			group->hwpt = NULL;
		unreserve_for(hwpt->ioas, binding);
		put_hwpt(iommufd, hwpt);
	}
	pthread_mutex_unlock(&iommufd->attach);
}

void soft_binding_destroy(struct soft_binding *binding)
{
	struct soft_iommufd *iommufd = binding->iommufd;

	soft_binding_detach(binding);
	soft_group_unclaim(binding->device->group);
	soft_object_put(iommufd, &binding->object);
	while (soft_object_remove(iommufd, &binding->object))
		;
	free(binding);
	soft_file_put(&iommufd->file);
}

int soft_binding_access(struct soft_binding *binding, struct dmamap_access **access)
{
	int error = -ENODEV;

	pthread_mutex_lock(&binding->iommufd->attach);
	if (binding->hwpt)
		error = dmamap_access_create(binding->hwpt->table, access);
	pthread_mutex_unlock(&binding->iommufd->attach);
	return error;
}
