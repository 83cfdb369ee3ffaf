/* SPDX-License-Identifier: MIT */
/*
 * Virtual IOMMUs, their devices, queues and events, and invalidation: what
 * Linux answers for hardware that has none of it, which is decided before a
 * driver is asked (drivers/iommu/iommufd/viommu.c, eventq.c, hw_pagetable.c). No
 * virtual IOMMU can be made, so that none is ever found.
 */
#include <errno.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* Larger than anything a caller may ask for at once. */
#define MOST_ENTRIES (1U << 19)

/* The object is put again at once: only that it is there counts. */
static int check_object(struct soft_command *command, uint32_t id, enum soft_object_type type)
{
	struct soft_object *object;
	int error = soft_object_get(command->iommufd, id, type, &object);

	if (!error)
		soft_object_put(command->iommufd, object);
	return error;
}

static int check_flags(uint32_t flags, uint32_t type, const char *name)
{
	if (flags)
		return SOFT_REFUSE(flags, EOPNOTSUPP, name, flags, 0);
	if (!type)
		return SOFT_REFUSE(value, EOPNOTSUPP, "a type", type);
	return 0;
}

int soft_viommu_alloc(struct soft_command *command)
{
	const struct iommu_viommu_alloc *user = command->data;
	int error = check_flags(user->flags, user->type, "IOMMU_VIOMMU_ALLOC");

	if (!error)
		error = check_object(command, user->dev_id, SOFT_OBJECT_DEVICE);
	return error ? error : SOFT_REFUSE(not_provided, EOPNOTSUPP, "a virtual IOMMU", user->type);
}

int soft_vdevice_alloc(struct soft_command *command)
{
	const struct iommu_vdevice_alloc *user = command->data;

	return check_object(command, user->viommu_id, SOFT_OBJECT_VIOMMU);
}

int soft_veventq_alloc(struct soft_command *command)
{
	const struct iommu_veventq_alloc *user = command->data;
	int error;

	if (user->__reserved)
		return SOFT_REFUSE(
			reserved_field, EOPNOTSUPP, "iommu_veventq_alloc", user->__reserved);
	error = check_flags(user->flags, user->type, "IOMMU_VEVENTQ_ALLOC");
	if (error)
		return error;
	if (!user->veventq_depth || user->veventq_depth > MOST_ENTRIES)
		return SOFT_REFUSE(value, EINVAL, "a queue's depth", user->veventq_depth);
	return check_object(command, user->viommu_id, SOFT_OBJECT_VIOMMU);
}

int soft_hw_queue_alloc(struct soft_command *command)
{
	const struct iommu_hw_queue_alloc *user = command->data;
	uint64_t last;
	int error = check_flags(user->flags, user->type, "IOMMU_HW_QUEUE_ALLOC");

	if (error)
		return error;
	if (!user->length)
		return SOFT_REFUSE(length_zero, EINVAL, "IOMMU_HW_QUEUE_ALLOC", 0);
	if (__builtin_add_overflow(user->nesting_parent_iova, user->length - 1, &last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "nesting_parent_iova",
			user->nesting_parent_iova, user->length);
	return check_object(command, user->viommu_id, SOFT_OBJECT_VIOMMU);
}

static int check_invalidate(struct soft_command *command, const struct iommu_hwpt_invalidate *user)
{
	uint64_t page = soft_page_size(command->iommufd->file.system);
	int error;

	if (user->__reserved)
		return SOFT_REFUSE(
			reserved_field, EOPNOTSUPP, "iommu_hwpt_invalidate", user->__reserved);
	if (user->entry_num) {
		if (!user->data_uptr)
			return SOFT_REFUSE(pointer, EINVAL, "entries", 0, user->entry_num);
		if (!user->entry_len || user->entry_len > page)
			return SOFT_REFUSE(value, EINVAL, "entry_len", user->entry_len);
		if (user->entry_num > MOST_ENTRIES)
			return SOFT_REFUSE(value, EINVAL, "entry_num", user->entry_num);
	}
	error = check_object(command, user->hwpt_id, SOFT_OBJECT_ANY);
	return error ? error : SOFT_REFUSE(hwpt_nested, EINVAL, NULL, user->hwpt_id);
}

int soft_hwpt_invalidate(struct soft_command *command)
{
	struct iommu_hwpt_invalidate *user = command->data;
	int error = check_invalidate(command, user);

	/* How many were done is written in any case. */
	user->entry_num = 0;
	if (soft_command_respond(command, sizeof(*user), "iommu_hwpt_invalidate"))
		return -EFAULT;
	return error;
}

int soft_noiommu_get_pa(struct soft_command *command)
{
	const struct iommu_ioas_noiommu_get_pa *user = command->data;

	return SOFT_REFUSE(not_provided, EOPNOTSUPP, "a device without an IOMMU", user->iova);
}
