/* SPDX-License-Identifier: MIT */
/*
 * HWPTs: the page tables of an IOAS, each for one kind of IOMMU
 * (drivers/iommu/iommufd/hw_pagetable.c). One comes from IOMMU_HWPT_ALLOC and
 * stays until it is destroyed, or from attaching a device to the IOAS and goes
 * with the last device. Either is an engine table that is filled with all that
 * the IOAS has mapped.
 *
 * Which flags an IOMMU takes, and whether a table made for one may serve
 * another, is what its driver says (drivers/iommu/intel, amd, arm and
 * virtio-iommu.c). No IOMMU here can nest.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* What a driver's domain_alloc_paging_flags() takes, but for dirty tracking, which hardware has
 * or not. */
static uint32_t driver_flags(const struct dmamap_machine_iommu *iommu)
{
	switch (iommu->model) {
	case DMAMAP_IOMMU_INTEL:
	case DMAMAP_IOMMU_SMMUV3:
		return IOMMU_HWPT_ALLOC_DIRTY_TRACKING | IOMMU_HWPT_ALLOC_PASID |
		       IOMMU_HWPT_FAULT_ID_VALID;
	case DMAMAP_IOMMU_AMD:
		return IOMMU_HWPT_ALLOC_DIRTY_TRACKING | IOMMU_HWPT_FAULT_ID_VALID;
	case DMAMAP_IOMMU_VIRTIO:
		break;
	}
	/* It has only the older call, which takes none. */
	return 0;
}

/* Whether devices of one IOMMU can use a table that was made for another's. */
bool soft_iommu_serves(
	const struct dmamap_machine_iommu *made_for, const struct dmamap_machine_iommu *other)
{
	if (made_for == other)
		return true;
	if (made_for->model != other->model)
		return false;
	switch (made_for->model) {
	case DMAMAP_IOMMU_INTEL:
		/* What the other unit's registers could have made. */
		return made_for->aperture_bits <= other->aperture_bits &&
		       !(made_for->leaf_sizes & ~other->leaf_sizes) &&
		       (other->coherent || !made_for->coherent);
	case DMAMAP_IOMMU_AMD:
		return true;
	case DMAMAP_IOMMU_SMMUV3:
	case DMAMAP_IOMMU_VIRTIO:
		break;
	}
	/* It is tied to the one unit. */
	return false;
}

/* Flags that iommufd_hwpt_paging_alloc() refuses before an id is taken, and then the driver's. */
static int check_flags(const struct soft_device *device, uint32_t flags, uint32_t data_len)
{
	const struct dmamap_machine_iommu *iommu = soft_device_iommu(device);
	bool old = device->system->machine.as_kernel < DMAMAP_KERNEL(6, 15);
	uint32_t known = IOMMU_HWPT_ALLOC_NEST_PARENT | IOMMU_HWPT_ALLOC_DIRTY_TRACKING |
			 IOMMU_HWPT_FAULT_ID_VALID | (old ? 0 : IOMMU_HWPT_ALLOC_PASID);
	uint32_t takes = driver_flags(iommu);

	if (flags & ~known)
		return SOFT_REFUSE(flags, EOPNOTSUPP, "IOMMU_HWPT_ALLOC", flags, known);
	if (flags & IOMMU_HWPT_ALLOC_DIRTY_TRACKING && !iommu->dirty)
		return SOFT_REFUSE(hwpt_dirty, EOPNOTSUPP, device->is.bdf, flags);
	if (flags & ~takes)
		return SOFT_REFUSE(flags, EOPNOTSUPP, "the device's IOMMU", flags, takes);
	if (data_len)
		return SOFT_REFUSE(hwpt_data, EOPNOTSUPP, NULL, data_len);
	return 0;
}

int soft_hwpt_create(struct soft_ioas *ioas, const struct dmamap_machine_iommu *iommu,
	uint32_t flags, struct soft_hwpt **hwpt)
{
	struct soft_iommufd *iommufd = ioas->iommufd;
	struct soft_hwpt *made = calloc(1, sizeof(*made)), **link;
	int error;

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "a page table", 0);
	made->ioas = ioas;
	made->iommu = iommu;
	made->dirty = flags & IOMMU_HWPT_ALLOC_DIRTY_TRACKING;
	made->pasids = flags & IOMMU_HWPT_ALLOC_PASID;
	error = soft_object_reserve(iommufd, &made->object, SOFT_OBJECT_HWPT);
	if (error)
		goto free_made;
	pthread_mutex_lock(&ioas->lock);
	error = soft_ioas_check_alignment(ioas, soft_space_granule(&ioas->space, iommu));
	if (!error)
		error = soft_ioas_reserve(ioas, made, iommu, soft_space_reserve_aperture);
	if (error)
		goto unlock;
	error = soft_space_table(&ioas->space, iommu, ioas->small_pages_only, &made->table);
	if (error)
		goto unreserve;
	for (link = &ioas->hwpts; *link; link = &(*link)->next)
		;
	*link = made;
	pthread_mutex_unlock(&ioas->lock);
	soft_object_use(iommufd, &ioas->object);
	*hwpt = made;
	return 0;
unreserve:
	soft_ioas_unreserve(ioas, made);
unlock:
	pthread_mutex_unlock(&ioas->lock);
	soft_object_abandon(iommufd, &made->object);
free_made:
	free(made);
	return error;
}

/* The attach lock is held. */
void soft_hwpt_free(struct soft_hwpt *hwpt)
{
	struct soft_ioas *ioas = hwpt->ioas;
	struct soft_hwpt **link;

	pthread_mutex_lock(&ioas->lock);
	for (link = &ioas->hwpts; *link != hwpt; link = &(*link)->next)
		;
	*link = hwpt->next;
	dmamap_table_destroy(hwpt->table);
	soft_ioas_unreserve(ioas, hwpt);
	pthread_mutex_unlock(&ioas->lock);
	soft_object_put(ioas->iommufd, &ioas->object);
	if (hwpt->fault)
		soft_object_put(ioas->iommufd, &hwpt->fault->object);
	free(hwpt->was_dirty);
	free(hwpt);
}

void soft_hwpt_destroy(struct soft_hwpt *hwpt)
{
	pthread_mutex_t *attach = &hwpt->ioas->iommufd->attach;

	pthread_mutex_lock(attach);
	soft_hwpt_free(hwpt);
	pthread_mutex_unlock(attach);
}

void soft_hwpt_put(struct soft_hwpt *hwpt)
{
	struct soft_iommufd *iommufd = hwpt->ioas->iommufd;

	soft_object_put(iommufd, &hwpt->object);
	/* One that somebody has a hold of just now stays, as in the kernel. */
	if (hwpt->automatic && !soft_object_remove(iommufd, &hwpt->object))
		soft_hwpt_free(hwpt);
}

/* ------------------------------------------------------------------- command */

/* On an IOAS: the attach lock is held. */
static int alloc_paging(const struct iommu_hwpt_alloc *user, struct soft_binding *binding,
	struct soft_ioas *ioas, struct soft_hwpt **hwpt)
{
	const struct dmamap_machine_iommu *iommu = soft_device_iommu(binding->device);
	struct soft_object *fault;
	int error = check_flags(binding->device, user->flags, user->data_len);

	if (error)
		return error;
	error = soft_hwpt_create(ioas, iommu, user->flags, hwpt);
	if (error || !(user->flags & IOMMU_HWPT_FAULT_ID_VALID))
		return error;
	error = soft_object_get(binding->iommufd, user->fault_id, SOFT_OBJECT_FAULT, &fault);
	if (!error) {
		(*hwpt)->fault = (struct soft_fault *)fault;
		return 0;
	}
	soft_object_abandon(binding->iommufd, &(*hwpt)->object);
	soft_hwpt_free(*hwpt);
	return error;
}

/* On a page table: one nested in it, and none here may be a parent. */
static int alloc_nested(const struct iommu_hwpt_alloc *user, const struct soft_binding *binding)
{
	const uint32_t known = IOMMU_HWPT_FAULT_ID_VALID | IOMMU_HWPT_ALLOC_PASID;

	if (user->flags & ~known)
		return SOFT_REFUSE(flags, EOPNOTSUPP, "a nested HWPT", user->flags, known);
	if (!user->data_len || soft_device_iommu(binding->device)->model != DMAMAP_IOMMU_INTEL)
		return SOFT_REFUSE(
			not_provided, EOPNOTSUPP, "nesting in a page table", user->pt_id);
	return SOFT_REFUSE(hwpt_parent, EINVAL, NULL, user->pt_id);
}

static int alloc(
	struct soft_command *command, struct soft_binding *binding, struct soft_object *object)
{
	struct iommu_hwpt_alloc *user = command->data;
	struct soft_iommufd *iommufd = command->iommufd;
	struct soft_hwpt *hwpt;
	int error;

	if (object->type == SOFT_OBJECT_HWPT)
		return alloc_nested(user, binding);
	if (object->type != SOFT_OBJECT_IOAS)
		return SOFT_REFUSE(object_type, EINVAL, NULL, user->pt_id);
	pthread_mutex_lock(&iommufd->attach);
	error = alloc_paging(user, binding, (struct soft_ioas *)object, &hwpt);
	if (error)
		goto unlock;
	user->out_hwpt_id = hwpt->object.id;
	error = soft_command_respond(command, sizeof(*user), "iommu_hwpt_alloc");
	if (error) {
		soft_object_abandon(iommufd, &hwpt->object);
		soft_hwpt_free(hwpt);
	} else {
		soft_object_complete(iommufd, &hwpt->object);
	}
unlock:
	pthread_mutex_unlock(&iommufd->attach);
	return error;
}

int soft_hwpt_alloc(struct soft_command *command)
{
	const struct iommu_hwpt_alloc *user = command->data;
	struct soft_iommufd *iommufd = command->iommufd;
	struct soft_object *device, *object;
	int error;

	if (user->__reserved)
		return SOFT_REFUSE(
			reserved_field, EOPNOTSUPP, "iommu_hwpt_alloc", user->__reserved);
	if (!user->data_len != (user->data_type == IOMMU_HWPT_DATA_NONE))
		return SOFT_REFUSE(hwpt_data_type, EINVAL, NULL, user->data_type, user->data_len);
	error = soft_object_get(iommufd, user->dev_id, SOFT_OBJECT_DEVICE, &device);
	if (error)
		return error;
	error = soft_object_get(iommufd, user->pt_id, SOFT_OBJECT_ANY, &object);
	if (error) {
		error = SOFT_REFUSE(object_unknown, EINVAL, "an IOAS or page table", user->pt_id);
	} else {
		error = alloc(command, (struct soft_binding *)device, object);
		soft_object_put(iommufd, object);
	}
	soft_object_put(iommufd, device);
	return error;
}
