/* SPDX-License-Identifier: MIT */
/*
 * /dev/iommu: objects by id, and the one way into every native command: by
 * number, with a size that may be smaller or larger than the one we know
 * (drivers/iommu/iommufd/main.c). The commands are in ioas.c, those of VFIO in
 * vfio_compat.c.
 *
 * An object's users are counted: one for having an id, one for each object or
 * call that uses it. It can be destroyed while only its id counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* ---------------------------------------------------------------- objects */

int soft_object_add(
	struct soft_iommufd *iommufd, struct soft_object *object, enum soft_object_type type)
{
	struct soft_object **objects;
	size_t i, n;
	int error = 0;

	object->type = type;
	object->users = 1;
	pthread_mutex_lock(&iommufd->objects_lock);
	for (i = 0; i < iommufd->n_objects && iommufd->objects[i]; i++)
		;
	if (i == iommufd->n_objects) {
		n = i ? 2 * i : 8;
		objects = realloc(iommufd->objects, n * sizeof(*objects));
		if (!objects) {
			error = SOFT_REFUSE(no_memory, ENOMEM, "an object", 0);
			goto out;
		}
		memset(objects + i, 0, (n - i) * sizeof(*objects));
		iommufd->objects = objects;
		iommufd->n_objects = n;
	}
	iommufd->objects[i] = object;
	object->id = (uint32_t)i + 1;
out:
	pthread_mutex_unlock(&iommufd->objects_lock);
	return error;
}

/* objects_lock held. */
static struct soft_object *by_id(struct soft_iommufd *iommufd, uint32_t id)
{
	return id && id <= iommufd->n_objects ? iommufd->objects[id - 1] : NULL;
}

int soft_object_get(struct soft_iommufd *iommufd, uint32_t id, enum soft_object_type type,
	struct soft_object **object)
{
	static const char *const names[] = {"any", "an IOAS", "a device", "a page table"};
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

/* objects_lock held; nobody but the id uses it. */
static void forget(struct soft_iommufd *iommufd, struct soft_object *object)
{
	iommufd->objects[object->id - 1] = NULL;
	if (object->type == SOFT_OBJECT_IOAS && iommufd->vfio_ioas == (struct soft_ioas *)object)
		iommufd->vfio_ioas = NULL;
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

static int destroy(struct soft_command *command)
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
	/* Devices have their driver as a user, page tables their devices: only an IOAS gets here.
	 */
	if (!error)
		soft_ioas_destroy((struct soft_ioas *)object);
	return error;
}

/* ---------------------------------------------------------------- options */

static bool has_capability(unsigned capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[capability / 32].effective & 1u << capability % 32;
}

/* Whose limit pinned memory would count against: the user's (0), or the process's, as VFIO's (1).
 */
static int rlimit_mode(struct soft_iommufd *iommufd, struct iommu_option *user)
{
	bool objects = false;
	int error = 0;

	if (user->object_id)
		return SOFT_REFUSE(reserved_field, EOPNOTSUPP, "RLIMIT_MODE", user->object_id);
	if (user->op != IOMMU_OPTION_OP_GET && user->op != IOMMU_OPTION_OP_SET)
		return SOFT_REFUSE(value, EOPNOTSUPP, "an option's op", user->op);
	if (user->op == IOMMU_OPTION_OP_SET && !has_capability(CAP_SYS_RESOURCE))
		return SOFT_REFUSE(capability, EPERM, "CAP_SYS_RESOURCE", 0);
	pthread_mutex_lock(&iommufd->objects_lock);
	for (size_t i = 0; i < iommufd->n_objects; i++)
		objects |= iommufd->objects[i] != NULL;
	if (user->op == IOMMU_OPTION_OP_GET)
		user->val64 = iommufd->rlimit_mode;
	else if (objects)
		error = SOFT_REFUSE(objects_exist, EBUSY, NULL, 0);
	else if (user->val64 > 1)
		error = SOFT_REFUSE(value, EINVAL, "RLIMIT_MODE", user->val64);
	else
		iommufd->rlimit_mode = user->val64;
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

/* --------------------------------------------------------------- dispatch */

#define COMMAND(command, type, last, function)                                                     \
	{                                                                                          \
		command, sizeof(struct type),                                                      \
			offsetof(struct type, last) + sizeof(((struct type *)0)->last), function,  \
			#command                                                                   \
	}

static const struct command {
	unsigned request;
	uint32_t size, minimum;
	int (*execute)(struct soft_command *command);
	const char *name;
} commands[] = {
	COMMAND(IOMMU_DESTROY, iommu_destroy, id, destroy),
	COMMAND(IOMMU_IOAS_ALLOC, iommu_ioas_alloc, out_ioas_id, soft_ioas_alloc),
	COMMAND(IOMMU_IOAS_ALLOW_IOVAS, iommu_ioas_allow_iovas, allowed_iovas,
		soft_ioas_allow_iovas),
	COMMAND(IOMMU_IOAS_COPY, iommu_ioas_copy, src_iova, soft_ioas_copy),
	COMMAND(IOMMU_IOAS_IOVA_RANGES, iommu_ioas_iova_ranges, out_iova_alignment,
		soft_ioas_iova_ranges),
	COMMAND(IOMMU_IOAS_MAP, iommu_ioas_map, iova, soft_ioas_map),
	COMMAND(IOMMU_IOAS_MAP_FILE, iommu_ioas_map_file, iova, soft_ioas_map_file),
	COMMAND(IOMMU_IOAS_UNMAP, iommu_ioas_unmap, length, soft_ioas_unmap),
	COMMAND(IOMMU_OPTION, iommu_option, val64, soft_iommufd_option),
	COMMAND(IOMMU_VFIO_IOAS, iommu_vfio_ioas, __reserved, soft_iommufd_vfio_ioas),
};

/* Numbers from the first native command to the last one of Linux 7.3. */
#define FIRST_NATIVE _IOC_NR(IOMMU_DESTROY)
#define LAST_NATIVE  _IOC_NR(IOMMU_IOAS_NOIOMMU_GET_PA)

int soft_command_respond(struct soft_command *command, size_t size, const char *what)
{
	if (size > command->user_size)
		size = command->user_size;
	return soft_copy_out(command->user, command->data, size, what);
}

static int native(struct soft_iommufd *iommufd, unsigned request, void *argument)
{
	union {
		uint64_t align;
		char bytes[64];
	} data;
	struct soft_command command = {iommufd, argument, 0, &data};
	int error = soft_copy_in(
		&command.user_size, argument, sizeof(command.user_size), "a command's size");

	if (error)
		return error;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *one = &commands[i];

		_Static_assert(sizeof(struct iommu_ioas_copy) <= sizeof(data), "room for all");
		if (one->request != request)
			continue;
		if (command.user_size < one->minimum)
			return SOFT_REFUSE(
				argsz, EINVAL, one->name, command.user_size, one->minimum);
		error = soft_copy_struct(&data, one->size, argument, command.user_size, one->name);
		return error ? error : one->execute(&command);
	}
	return SOFT_REFUSE(not_provided, ENOTTY, "that IOMMUFD command", request);
}

static int iommufd_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	struct soft_iommufd *iommufd = (struct soft_iommufd *)file;
	unsigned number = _IOC_NR(request);

	if (number < FIRST_NATIVE || number > LAST_NATIVE)
		return soft_iommufd_vfio_ioctl(iommufd, request, argument);
	return native(iommufd, request, argument);
}

/* ------------------------------------------------------------ the file itself */

static void iommufd_release(struct soft_file *file)
{
	struct soft_iommufd *iommufd = (struct soft_iommufd *)file;

	/* Devices hold the file: only IOASes are left, and none is in use. */
	for (size_t i = 0; i < iommufd->n_objects; i++)
		if (iommufd->objects[i])
			soft_ioas_destroy((struct soft_ioas *)iommufd->objects[i]);
	free(iommufd->objects);
	pthread_mutex_destroy(&iommufd->objects_lock);
	pthread_mutex_destroy(&iommufd->attach);
	free(iommufd);
}

static int iommufd_mmap(struct soft_file *file, void *address, size_t length, int prot, int flags,
	uint64_t offset, void **out)
{
	uint64_t page = soft_page_size(file->system);

	(void)address, (void)out;
	/* What could be mapped are queues of virtual IOMMUs; there are none. */
	if (length & (page - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "length", length, page);
	if ((flags & MAP_TYPE) != MAP_SHARED && (flags & MAP_TYPE) != MAP_SHARED_VALIDATE)
		return SOFT_REFUSE(mmap_shared, EINVAL, NULL, 0);
	if (prot & PROT_EXEC)
		return SOFT_REFUSE(no_io, EPERM, file->ops->name, 0);
	return SOFT_REFUSE(no_io, ENXIO, file->ops->name, offset);
}

static const struct soft_file_ops iommufd_ops = {
	.name = "iommufd",
	.ioctl = iommufd_ioctl,
	.mmap = iommufd_mmap,
	.release = iommufd_release,
};

int soft_iommufd_open(struct soft_system *system)
{
	struct soft_iommufd *iommufd = calloc(1, sizeof(*iommufd));
	int fd;

	if (!iommufd)
		return SOFT_REFUSE(no_memory, ENOMEM, "an IOMMUFD", 0);
	soft_file_init(&iommufd->file, &iommufd_ops, system);
	pthread_mutex_init(&iommufd->objects_lock, NULL);
	pthread_mutex_init(&iommufd->attach, NULL);
	fd = soft_file_install(&iommufd->file, "dmamap:/dev/iommu");
	if (fd < 0)
		soft_file_put(&iommufd->file);
	return fd;
}

struct soft_iommufd *soft_iommufd_from(struct soft_file *file)
{
	return file->ops == &iommufd_ops ? (struct soft_iommufd *)file : NULL;
}
