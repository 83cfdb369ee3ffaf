/* SPDX-License-Identifier: MIT */
/*
 * Devices of an IOMMUFD and the page tables that they use
 * (drivers/iommu/iommufd/device.c). Binding makes a DEVICE object. Attaching to
 * an HWPT takes that one; attaching to an IOAS takes the first of its automatic
 * HWPTs that suits the device, or makes one.
 *
 * The devices of a group have the same HWPT: the first one brings it, others
 * join, and a replacement moves all of them. iommufd->attach guards who is
 * attached to what.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/soft.h"

/* Whether a write of the device's cannot be another's interrupt. */
static int check_interrupts(const struct soft_device *device)
{
	const struct dmamap_machine *machine = &device->system->machine;

	if (!machine->isolated_msi && !machine->allow_unsafe_interrupts)
		return SOFT_REFUSE(unsafe_interrupts, EPERM, device->is.bdf, 0);
	return 0;
}

int soft_binding_create(
	struct soft_iommufd *iommufd, struct soft_device *device, struct soft_binding **binding)
{
	struct soft_binding *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a device", 0);
	made->iommufd = iommufd;
	made->device = device;
	error = soft_object_reserve(iommufd, &made->object, SOFT_OBJECT_DEVICE);
	if (error)
		goto free_made;
	error = check_interrupts(device);
	if (!error)
		error = soft_group_claim(device->group, iommufd);
	if (error)
		goto abandon;
	/* The driver is a user: IOMMU_DESTROY of a device is always -EBUSY. */
	soft_object_use(iommufd, &made->object);
	soft_object_complete(iommufd, &made->object);
	soft_file_get(&iommufd->file);
	*binding = made;
	return 0;
abandon:
	soft_object_abandon(iommufd, &made->object);
free_made:
	free(made);
	return error;
}

static int reserve_for(struct soft_ioas *ioas, const struct soft_binding *binding)
{
	int error;

	pthread_mutex_lock(&ioas->lock);
	error = soft_ioas_reserve(
		ioas, binding, soft_device_iommu(binding->device), soft_space_reserve_windows);
	pthread_mutex_unlock(&ioas->lock);
	return error;
}

static void unreserve_for(struct soft_ioas *ioas, const struct soft_binding *binding)
{
	pthread_mutex_lock(&ioas->lock);
	soft_ioas_unreserve(ioas, binding);
	pthread_mutex_unlock(&ioas->lock);
}

/* Whether the device's IOMMU can use the table: its driver's say. */
static int check_serves(const struct soft_hwpt *hwpt, const struct soft_binding *binding)
{
	const struct dmamap_machine_iommu *iommu = soft_device_iommu(binding->device);

	if (binding->device->group->pasids && !hwpt->pasids)
		return SOFT_REFUSE(hwpt_pasid, EINVAL, NULL, hwpt->object.id);
	if (!soft_iommu_serves(hwpt->iommu, iommu))
		return SOFT_REFUSE(hwpt_iommu, EINVAL, binding->device->is.bdf, hwpt->object.id,
			hwpt->iommu->aperture_bits, iommu->aperture_bits);
	if (hwpt->dirty && !iommu->dirty)
		return SOFT_REFUSE(hwpt_tracks, EINVAL, binding->device->is.bdf, hwpt->object.id);
	return 0;
}

/* The devices of a group reach the same memory. */
static int check_group(const struct soft_binding *binding, const struct soft_hwpt *hwpt)
{
	const struct soft_group *group = binding->device->group;

	if (group->hwpt && group->hwpt != hwpt)
		return SOFT_REFUSE(
			group_elsewhere, EINVAL, NULL, group->number, group->hwpt->object.id);
	return 0;
}

static void take(struct soft_binding *binding, struct soft_hwpt *hwpt)
{
	struct soft_group *group = binding->device->group;

	soft_object_use(binding->iommufd, &hwpt->object);
	binding->hwpt = hwpt;
	group->hwpt = hwpt;
	group->attached++;
}

/* A device without an HWPT gets this one. */
static int attach(struct soft_binding *binding, struct soft_hwpt *hwpt)
{
	int error = check_group(binding, hwpt);

	if (!error)
		error = reserve_for(hwpt->ioas, binding);
	if (error)
		return error;
	if (!binding->device->group->hwpt)
		error = check_serves(hwpt, binding);
	if (error)
		unreserve_for(hwpt->ioas, binding);
	else
		take(binding, hwpt);
	return error;
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

static void unreserve_group(
	struct soft_iommufd *iommufd, struct soft_group *group, struct soft_ioas *ioas)
{
	struct soft_binding *one;

	for (size_t at = 0; (one = next_attached(iommufd, group, &at));)
		unreserve_for(ioas, one);
}

/* All devices of the group move from the HWPT that they have. */
static int replace(struct soft_binding *binding, struct soft_hwpt *hwpt)
{
	struct soft_group *group = binding->device->group;
	struct soft_iommufd *iommufd = binding->iommufd;
	struct soft_hwpt *old = binding->hwpt;
	bool elsewhere = old->ioas != hwpt->ioas;
	struct soft_binding *one;
	int error = 0;

	if (hwpt == old)
		return 0;
	if (elsewhere)
		for (size_t at = 0; !error && (one = next_attached(iommufd, group, &at));)
			error = reserve_for(hwpt->ioas, one);
	if (!error)
		error = check_serves(hwpt, binding);
	if (error) {
		if (elsewhere)
			unreserve_group(iommufd, group, hwpt->ioas);
		return error;
	}
	if (elsewhere)
		unreserve_group(iommufd, group, old->ioas);
	for (size_t at = 0; (one = next_attached(iommufd, group, &at));) {
		one->hwpt = hwpt;
		soft_object_use(iommufd, &hwpt->object);
	}
	group->hwpt = hwpt;
	for (unsigned i = 1; i < group->attached; i++)
		soft_object_put(iommufd, &old->object);
	soft_hwpt_put(old);
	return 0;
}

/* A new automatic HWPT. A first attach comes before it is filled, a replacement after. */
static int attach_new(struct soft_binding *binding, struct soft_ioas *ioas)
{
	const struct dmamap_machine_iommu *iommu = soft_device_iommu(binding->device);
	struct soft_iommufd *iommufd = binding->iommufd;
	struct soft_hwpt *hwpt;
	bool first = !binding->hwpt;
	int error = 0;

	if (first) {
		error = check_group(binding, NULL);
		if (!error)
			error = reserve_for(ioas, binding);
		if (error)
			return error;
	}
	error = first && binding->device->group->pasids ? SOFT_REFUSE(hwpt_pasid, EINVAL, NULL, 0)
							: soft_hwpt_create(ioas, iommu, 0, &hwpt);
	if (error) {
		if (first)
			unreserve_for(ioas, binding);
		return error;
	}
	if (first)
		take(binding, hwpt);
	else
		error = replace(binding, hwpt);
	if (error) {
		soft_object_abandon(iommufd, &hwpt->object);
		soft_hwpt_free(hwpt);
		return error;
	}
	hwpt->automatic = true;
	soft_object_complete(iommufd, &hwpt->object);
	return 0;
}

static int attach_hwpt(struct soft_binding *binding, struct soft_hwpt *hwpt)
{
	return binding->hwpt ? replace(binding, hwpt) : attach(binding, hwpt);
}

/* -EINVAL of one HWPT only says that another one is wanted. */
static int attach_ioas(struct soft_binding *binding, struct soft_ioas *ioas)
{
	for (struct soft_hwpt *hwpt = ioas->hwpts; hwpt; hwpt = hwpt->next) {
		int error = hwpt->automatic ? attach_hwpt(binding, hwpt) : -EINVAL;

		if (error != -EINVAL)
			return error;
	}
	return attach_new(binding, ioas);
}

/* VFIO attaches the device by one of two ways, and may replace only by the same. */
static int attach_by(struct soft_binding *binding, bool zero, uint32_t *pt_id)
{
	struct soft_iommufd *iommufd = binding->iommufd;
	struct soft_object *object;
	int error;

	pthread_mutex_lock(&iommufd->attach);
	error = soft_object_get(iommufd, *pt_id, SOFT_OBJECT_ANY, &object);
	if (error)
		goto out;
	if (binding->hwpt && binding->by_pasid_zero != zero &&
		(object->type == SOFT_OBJECT_IOAS || object->type == SOFT_OBJECT_HWPT))
		error = SOFT_REFUSE(
			attached, EBUSY, binding->device->is.bdf, binding->hwpt->object.id);
	else if (object->type == SOFT_OBJECT_IOAS)
		error = attach_ioas(binding, (struct soft_ioas *)object);
	else if (object->type == SOFT_OBJECT_HWPT)
		error = attach_hwpt(binding, (struct soft_hwpt *)object);
	else
		error = SOFT_REFUSE(object_type, EINVAL, NULL, *pt_id);
	if (!error) {
		*pt_id = binding->hwpt->object.id;
		binding->by_pasid_zero = zero;
	}
	soft_object_put(iommufd, object);
out:
	pthread_mutex_unlock(&iommufd->attach);
	return error;
}

int soft_binding_attach(struct soft_binding *binding, uint32_t *pt_id)
{
	return attach_by(binding, false, pt_id);
}

int soft_binding_attach_zero(struct soft_binding *binding, uint32_t *pt_id)
{
	return attach_by(binding, true, pt_id);
}

void soft_binding_detach(struct soft_binding *binding)
{
	struct soft_group *group = binding->device->group;
	struct soft_hwpt *hwpt;

	pthread_mutex_lock(&binding->iommufd->attach);
	hwpt = binding->hwpt;
	if (hwpt) {
		binding->hwpt = NULL;
		binding->by_pasid_zero = false;
		if (!--group->attached)
			group->hwpt = NULL;
		unreserve_for(hwpt->ioas, binding);
		soft_hwpt_put(hwpt);
	}
	pthread_mutex_unlock(&binding->iommufd->attach);
}

void soft_binding_detach_zero(struct soft_binding *binding)
{
	if (binding->by_pasid_zero)
		soft_binding_detach(binding);
}

void soft_binding_destroy(struct soft_binding *binding)
{
	struct soft_iommufd *iommufd = binding->iommufd;

	soft_binding_detach(binding);
	soft_pasids_detach(binding);
	soft_group_unclaim(binding->device->group);
	soft_object_put(iommufd, &binding->object);
	soft_object_remove_wait(iommufd, &binding->object);
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
