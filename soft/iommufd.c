/* SPDX-License-Identifier: MIT */
/*
 * /dev/iommu: the one way into every native command, by number, with a size
 * that may be smaller or larger than the one we know
 * (drivers/iommu/iommufd/main.c). The table below says where each command is;
 * those of VFIO are in vfio_compat.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* --------------------------------------------------------------- dispatch */

/* Numbers from the first native command to the last one of Linux 7.3, and of 6.12. */
#define FIRST_NATIVE	 _IOC_NR(IOMMU_DESTROY)
#define LAST_NATIVE	 _IOC_NR(IOMMU_IOAS_NOIOMMU_GET_PA)
#define LAST_NATIVE_6_12 _IOC_NR(IOMMU_FAULT_QUEUE_ALLOC)

#define COMMAND(command, type, last, function)                                                     \
	[_IOC_NR(command) - FIRST_NATIVE] = {command, sizeof(struct type),                         \
		offsetof(struct type, last) + sizeof(((struct type *)0)->last), function,          \
		#command}

static const struct command {
	unsigned request;
	uint32_t size, minimum;
	int (*execute)(struct soft_command *command);
	const char *name;
} commands[] = {
	COMMAND(IOMMU_DESTROY, iommu_destroy, id, soft_iommufd_destroy),
	COMMAND(IOMMU_FAULT_QUEUE_ALLOC, iommu_fault_alloc, out_fault_fd, soft_fault_alloc),
	COMMAND(IOMMU_GET_HW_INFO, iommu_hw_info, __reserved, soft_hw_info),
	COMMAND(IOMMU_HW_QUEUE_ALLOC, iommu_hw_queue_alloc, length, soft_hw_queue_alloc),
	COMMAND(IOMMU_HWPT_ALLOC, iommu_hwpt_alloc, __reserved, soft_hwpt_alloc),
	COMMAND(IOMMU_HWPT_GET_DIRTY_BITMAP, iommu_hwpt_get_dirty_bitmap, data,
		soft_hwpt_get_dirty),
	COMMAND(IOMMU_HWPT_INVALIDATE, iommu_hwpt_invalidate, __reserved, soft_hwpt_invalidate),
	COMMAND(IOMMU_HWPT_SET_DIRTY_TRACKING, iommu_hwpt_set_dirty_tracking, __reserved,
		soft_hwpt_set_dirty),
	COMMAND(IOMMU_IOAS_ALLOC, iommu_ioas_alloc, out_ioas_id, soft_ioas_alloc),
	COMMAND(IOMMU_IOAS_ALLOW_IOVAS, iommu_ioas_allow_iovas, allowed_iovas,
		soft_ioas_allow_iovas),
	COMMAND(IOMMU_IOAS_CHANGE_PROCESS, iommu_ioas_change_process, __reserved,
		soft_ioas_change_process),
	COMMAND(IOMMU_IOAS_COPY, iommu_ioas_copy, src_iova, soft_ioas_copy),
	COMMAND(IOMMU_IOAS_IOVA_RANGES, iommu_ioas_iova_ranges, out_iova_alignment,
		soft_ioas_iova_ranges),
	COMMAND(IOMMU_IOAS_MAP, iommu_ioas_map, iova, soft_ioas_map),
	COMMAND(IOMMU_IOAS_MAP_FILE, iommu_ioas_map_file, iova, soft_ioas_map_file),
	COMMAND(IOMMU_IOAS_NOIOMMU_GET_PA, iommu_ioas_noiommu_get_pa, out_phys,
		soft_noiommu_get_pa),
	COMMAND(IOMMU_IOAS_UNMAP, iommu_ioas_unmap, length, soft_ioas_unmap),
	COMMAND(IOMMU_OPTION, iommu_option, val64, soft_iommufd_option),
	COMMAND(IOMMU_VDEVICE_ALLOC, iommu_vdevice_alloc, virt_id, soft_vdevice_alloc),
	COMMAND(IOMMU_VEVENTQ_ALLOC, iommu_veventq_alloc, out_veventq_fd, soft_veventq_alloc),
	COMMAND(IOMMU_VFIO_IOAS, iommu_vfio_ioas, __reserved, soft_iommufd_vfio_ioas),
	COMMAND(IOMMU_VIOMMU_ALLOC, iommu_viommu_alloc, out_viommu_id, soft_viommu_alloc),
};

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
	const struct command *one = &commands[_IOC_NR(request) - FIRST_NATIVE];
	struct soft_command command = {iommufd, argument, 0, &data};
	int error = soft_copy_in(
		&command.user_size, argument, sizeof(command.user_size), "a command's size");

	_Static_assert(sizeof(struct iommu_hwpt_get_dirty_bitmap) <= sizeof(data), "room for all");
	if (error)
		return error;
	if (one->request != request)
		return SOFT_REFUSE(request, ENOTTY, "an IOMMUFD", request);
	if (command.user_size < one->minimum)
		return SOFT_REFUSE(argsz, EINVAL, one->name, command.user_size, one->minimum);
	error = soft_copy_struct(&data, one->size, argument, command.user_size, one->name);
	return error ? error : one->execute(&command);
}

static int iommufd_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	struct soft_iommufd *iommufd = (struct soft_iommufd *)file;
	bool old = file->system->machine.as_kernel < DMAMAP_KERNEL(6, 13);
	unsigned number = _IOC_NR(request), last = old ? LAST_NATIVE_6_12 : LAST_NATIVE;

	if (number < FIRST_NATIVE || number > last)
		return soft_iommufd_vfio_ioctl(iommufd, request, argument);
	return native(iommufd, request, argument);
}

/* ------------------------------------------------------------ the file itself */

static void iommufd_release(struct soft_file *file)
{
	struct soft_iommufd *iommufd = (struct soft_iommufd *)file;

	/* Devices hold the file, so that none is left. */
	soft_objects_destroy(iommufd);
	pthread_mutex_destroy(&iommufd->objects_lock);
	pthread_mutex_destroy(&iommufd->attach);
	free(iommufd);
}

static int iommufd_mmap(struct soft_file *file, void *address, size_t length, int prot, int flags,
	uint64_t offset, void **out)
{
	(void)address, (void)length, (void)out;
	/* What could be mapped are queues of virtual IOMMUs; there are none. The driver's rule for
	 * the length never holds: mmap(2) has made whole pages of it. */
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
