/* SPDX-License-Identifier: MIT */
/*
 * IOMMU_OPTION, and IOMMU_IOAS_CHANGE_PROCESS: who is charged for pinned memory
 * and whether large pages may be used (drivers/iommu/iommufd/main.c, ioas.c).
 */
#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdlib.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* Whose limit pinned memory counts against: the user's (0), or the process's, as VFIO's (1). */
static int rlimit_mode(struct soft_iommufd *iommufd, struct iommu_option *user)
{
	int error = 0;

	if (user->object_id)
		return SOFT_REFUSE(reserved_field, EOPNOTSUPP, "RLIMIT_MODE", user->object_id);
	if (user->op != IOMMU_OPTION_OP_GET && user->op != IOMMU_OPTION_OP_SET)
		return SOFT_REFUSE(value, EOPNOTSUPP, "an option's op", user->op);
	if (user->op == IOMMU_OPTION_OP_SET && !soft_capable(CAP_SYS_RESOURCE))
		return SOFT_REFUSE(capability, EPERM, "CAP_SYS_RESOURCE", 0);
	pthread_mutex_lock(&iommufd->objects_lock);
	if (user->op == IOMMU_OPTION_OP_GET)
		user->val64 = iommufd->charge_process;
	else if (iommufd->n_used)
		error = SOFT_REFUSE(objects_exist, EBUSY, NULL, iommufd->n_used);
	else if (user->val64 > 1)
		error = SOFT_REFUSE(value, EINVAL, "RLIMIT_MODE", user->val64);
	else
		iommufd->charge_process = user->val64;
	pthread_mutex_unlock(&iommufd->objects_lock);
	return error;
}

static int huge_pages(struct soft_iommufd *iommufd, struct iommu_option *user)
{
	struct soft_ioas *ioas;
	int error = soft_ioas_get(iommufd, user->object_id, &ioas);

	if (error)
		return error;
	if (user->op == IOMMU_OPTION_OP_GET) {
		pthread_mutex_lock(&ioas->lock);
		user->val64 = !ioas->small_pages_only;
		pthread_mutex_unlock(&ioas->lock);
	} else if (user->op != IOMMU_OPTION_OP_SET) {
		error = SOFT_REFUSE(value, EOPNOTSUPP, "an option's op", user->op);
	} else if (user->val64 > 1) {
		error = SOFT_REFUSE(value, EINVAL, "HUGE_PAGES", user->val64);
	} else {
		error = soft_ioas_huge_pages(ioas, user->val64);
	}
	soft_object_put(iommufd, &ioas->object);
	return error;
}

int soft_iommufd_option(struct soft_command *command)
{
	struct iommu_option *user = command->data;
	int error;

	if (user->__reserved)
		return SOFT_REFUSE(reserved_field, EOPNOTSUPP, "iommu_option", user->__reserved);
	switch (user->option_id) {
	case IOMMU_OPTION_RLIMIT_MODE:
		error = rlimit_mode(command->iommufd, user);
		break;
	case IOMMU_OPTION_HUGE_PAGES:
		error = huge_pages(command->iommufd, user);
		break;
	default:
		return SOFT_REFUSE(value, EOPNOTSUPP, "an option", user->option_id);
	}
	if (error)
		return error;
	return soft_copy_out((char *)command->user + offsetof(struct iommu_option, val64),
		&user->val64, sizeof(user->val64), "val64");
}

/* Everything that is mapped, and all IOASes locked meanwhile. */
struct everything {
	struct soft_ioas **ioases;
	size_t n_ioases;
	struct soft_pins **pins;
	size_t n_pins, room;
};

static int add_ioas(struct everything *all, struct soft_ioas *ioas)
{
	struct soft_ioas **more =
		realloc(all->ioases, (all->n_ioases + 1) * sizeof(struct soft_ioas *));

	if (!more)
		return SOFT_REFUSE(no_memory, ENOMEM, "a list of IOASes", all->n_ioases);
	all->ioases = more;
	all->ioases[all->n_ioases++] = ioas;
	pthread_mutex_lock(&ioas->lock);
	return 0;
}

static int add_pins(struct everything *all, struct soft_pins *pins)
{
	if (all->n_pins == all->room) {
		size_t room = all->room ? 2 * all->room : 64;
		struct soft_pins **more = realloc(all->pins, room * sizeof(struct soft_pins *));

		if (!more)
			return SOFT_REFUSE(no_memory, ENOMEM, "a list of mappings", all->n_pins);
		all->pins = more;
		all->room = room;
	}
	all->pins[all->n_pins++] = pins;
	return 0;
}

/* Only files can follow: addresses mean nothing in another process. */
static int add_areas(struct everything *all, struct soft_ioas *ioas)
{
	struct dmamap_area area;
	uint64_t first = 0;
	int error = 0;

	while (!error && dmamap_area_find(ioas->space.space, first, UINT64_MAX, &area)) {
		struct soft_memory *memory = (struct soft_memory *)area.memory;

		if (memory->kind != SOFT_MEMORY_FILE)
			error = SOFT_REFUSE(
				not_file, EINVAL, NULL, area.first, area.last, ioas->object.id);
		else
			error = add_pins(all, memory->pins);
		if (area.last == UINT64_MAX)
			break;
		first = area.last + 1;
	}
	return error;
}

int soft_ioas_change_process(struct soft_command *command)
{
	const struct iommu_ioas_change_process *user = command->data;
	struct soft_iommufd *iommufd = command->iommufd;
	struct soft_object *object = NULL;
	struct everything all = {0};
	int error = 0;

	if (user->__reserved)
		return SOFT_REFUSE(
			reserved_field, EOPNOTSUPP, "iommu_ioas_change_process", user->__reserved);
	/* So that the list is complete: no two calls go through all IOASes at once. */
	pthread_mutex_lock(&iommufd->attach);
	while (!error &&
		(object = soft_object_next(iommufd, SOFT_OBJECT_IOAS, object ? object->id : 0))) {
		error = add_ioas(&all, (struct soft_ioas *)object);
		if (error)
			soft_object_put(iommufd, object);
	}
	for (size_t i = 0; i < all.n_ioases && !error; i++)
		error = add_areas(&all, all.ioases[i]);
	if (!error)
		error = soft_pins_move(iommufd->file.system, all.pins, all.n_pins);
	while (all.n_ioases) {
		struct soft_ioas *ioas = all.ioases[--all.n_ioases];

		pthread_mutex_unlock(&ioas->lock);
		soft_object_put(iommufd, &ioas->object);
	}
	pthread_mutex_unlock(&iommufd->attach);
	free(all.ioases);
	free(all.pins);
	return error;
}
