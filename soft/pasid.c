/* SPDX-License-Identifier: MIT */
/*
 * Attaching an HWPT for one PASID of a device (drivers/vfio/iommufd.c,
 * drivers/iommu/iommufd/device.c). None of our devices has PASIDs, and Linux
 * refuses that no sooner than it asks the IOMMU, which is not asked about a
 * device that has none. So it is all bookkeeping: it works with an HWPT that
 * was allocated for PASIDs, and holds it, and no DMA goes through it.
 *
 * PASID 0 is the device itself: to VFIO another attachment, to IOMMUFD the one
 * without a PASID. A group's devices have the same HWPT for a PASID, too.
 * iommufd->attach guards everything here.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/soft.h"

struct soft_pasid {
	struct soft_pasid *next; /* of the group's */
	struct soft_binding *binding;
	struct soft_hwpt *hwpt;
	uint32_t number;
};

/* The group's attachments for a PASID, of one device or (NULL) any. */
static struct soft_pasid *find(
	const struct soft_group *group, const struct soft_binding *binding, uint32_t number)
{
	struct soft_pasid *pasid;

	for (pasid = group->pasids; pasid; pasid = pasid->next)
		if (pasid->number == number && (!binding || pasid->binding == binding))
			return pasid;
	return NULL;
}

static int check_hwpt(const struct soft_group *group, const struct soft_hwpt *hwpt)
{
	if (!hwpt->pasids)
		return SOFT_REFUSE(hwpt_pasid, EINVAL, NULL, hwpt->object.id);
	if (group->hwpt && !group->hwpt->pasids)
		return SOFT_REFUSE(hwpt_pasid, EINVAL, NULL, group->hwpt->object.id);
	return 0;
}

static int attach(struct soft_binding *binding, uint32_t number, struct soft_hwpt *hwpt)
{
	struct soft_group *group = binding->device->group;
	struct soft_pasid *other = find(group, NULL, number), *made;
	int error = 0;

	if (other && other->hwpt != hwpt)
		return SOFT_REFUSE(
			group_elsewhere, EINVAL, NULL, group->number, other->hwpt->object.id);
	if (!other)
		error = check_hwpt(group, hwpt);
	if (error)
		return error;
	made = malloc(sizeof(*made));
	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a PASID", number);
	*made = (struct soft_pasid){group->pasids, binding, hwpt, number};
	group->pasids = made;
	soft_object_use(binding->iommufd, &hwpt->object);
	return 0;
}

static int replace(struct soft_pasid *is, struct soft_hwpt *hwpt)
{
	struct soft_group *group = is->binding->device->group;
	struct soft_iommufd *iommufd = is->binding->iommufd;
	struct soft_hwpt *old = is->hwpt;
	int error;

	if (hwpt == old)
		return 0;
	error = check_hwpt(group, hwpt);
	if (error)
		return error;
	for (struct soft_pasid *pasid = group->pasids; pasid; pasid = pasid->next) {
		if (pasid->number != is->number)
			continue;
		pasid->hwpt = hwpt;
		soft_object_use(iommufd, &hwpt->object);
		soft_object_put(iommufd, &old->object);
	}
	return 0;
}

/* To an HWPT; an IOAS has none that suits, and makes none. */
static int attach_object(struct soft_binding *binding, uint32_t number, struct soft_object *object)
{
	struct soft_pasid *is = find(binding->device->group, binding, number);

	if (object->type == SOFT_OBJECT_IOAS)
		return SOFT_REFUSE(hwpt_pasid, EINVAL, NULL, object->id);
	if (object->type != SOFT_OBJECT_HWPT)
		return SOFT_REFUSE(object_type, EINVAL, NULL, object->id);
	return is ? replace(is, (struct soft_hwpt *)object)
		  : attach(binding, number, (struct soft_hwpt *)object);
}

int soft_pasid_attach(struct soft_binding *binding, uint32_t number, uint32_t *pt_id)
{
	struct soft_iommufd *iommufd = binding->iommufd;
	struct soft_object *object;
	int error;

	if (!number)
		return soft_binding_attach_zero(binding, pt_id);
	/* VFIO's numbers for PASIDs have 31 bits. */
	if (number > INT32_MAX)
		return SOFT_REFUSE(value, ENOSPC, "a PASID", number);
	pthread_mutex_lock(&iommufd->attach);
	error = soft_object_get(iommufd, *pt_id, SOFT_OBJECT_ANY, &object);
	if (!error) {
		error = attach_object(binding, number, object);
		soft_object_put(iommufd, object);
	}
	pthread_mutex_unlock(&iommufd->attach);
	return error;
}

/* One attachment of a device, or (UINT32_MAX) each. */
static void detach(struct soft_binding *binding, uint32_t number)
{
	struct soft_pasid **link = &binding->device->group->pasids, *pasid;

	pthread_mutex_lock(&binding->iommufd->attach);
	while ((pasid = *link)) {
		if (pasid->binding != binding ||
			(number != UINT32_MAX && pasid->number != number)) {
			link = &pasid->next;
			continue;
		}
		*link = pasid->next;
		soft_object_put(binding->iommufd, &pasid->hwpt->object);
		free(pasid);
	}
	pthread_mutex_unlock(&binding->iommufd->attach);
}

void soft_pasid_detach(struct soft_binding *binding, uint32_t number)
{
	if (number)
		detach(binding, number);
	else
		soft_binding_detach_zero(binding);
}

void soft_pasids_detach(struct soft_binding *binding)
{
	detach(binding, UINT32_MAX);
}
