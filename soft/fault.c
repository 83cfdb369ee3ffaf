/* SPDX-License-Identifier: MIT */
/*
 * A queue of page faults, IOMMU_FAULT_QUEUE_ALLOC: an object and a file to read
 * faults from (drivers/iommu/iommufd/eventq.c). No device here can ask for a
 * page, so the queue is always empty, and no response fits a fault.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* Bytes of one fault as it is read, and of one response as it is written. */
#define FAULT_SIZE    48
#define RESPONSE_SIZE 8

struct fault_file {
	struct soft_file file;
	struct soft_iommufd *iommufd; /* with a reference */
	struct soft_fault *fault;     /* as one of its users */
};

static ssize_t fault_access(
	struct soft_file *file, void *buffer, size_t size, uint64_t offset, bool write)
{
	size_t unit = write ? RESPONSE_SIZE : FAULT_SIZE;
	struct {
		uint32_t cookie, code;
	} response;
	int error;

	(void)file;
	if (offset || size % unit)
		return SOFT_REFUSE(fault_size, ESPIPE, NULL, offset, size, unit);
	if (!write || !size)
		return 0;
	error = soft_copy_in(&response, buffer, sizeof(response), "a response");
	if (error)
		return error;
	if (response.code > 1)
		return SOFT_REFUSE(value, EINVAL, "a response's code", response.code);
	return SOFT_REFUSE(fault_cookie, EINVAL, NULL, response.cookie);
}

static void fault_release(struct soft_file *file)
{
	struct fault_file *is = (struct fault_file *)file;

	soft_object_put(is->iommufd, &is->fault->object);
	soft_file_put(&is->iommufd->file);
	free(is);
}

static const struct soft_file_ops fault_ops = {
	.name = "fault queue",
	.access = fault_access,
	.release = fault_release,
};

void soft_fault_destroy(struct soft_fault *fault)
{
	free(fault);
}

int soft_fault_alloc(struct soft_command *command)
{
	struct iommu_fault_alloc *user = command->data;
	struct soft_iommufd *iommufd = command->iommufd;
	struct soft_fault *fault;
	struct fault_file *file;
	int error, fd;

	if (user->flags)
		return SOFT_REFUSE(flags, EOPNOTSUPP, "IOMMU_FAULT_QUEUE_ALLOC", user->flags, 0);
	fault = calloc(1, sizeof(*fault));
	file = calloc(1, sizeof(*file));
	if (!fault || !file) {
		free(file);
		free(fault);
		return SOFT_REFUSE(no_memory, ENOMEM, "a fault queue", 0);
	}
	error = soft_object_reserve(iommufd, &fault->object, SOFT_OBJECT_FAULT);
	if (error) {
		free(file);
		free(fault);
		return error;
	}
	soft_file_init(&file->file, &fault_ops, iommufd->file.system);
	file->iommufd = iommufd;
	file->fault = fault;
	soft_file_get(&iommufd->file);
	soft_object_use(iommufd, &fault->object);
	fd = soft_file_install(&file->file, "dmamap:[iommufd-pgfault]");
	if (fd < 0) {
		soft_file_put(&file->file);
		error = fd;
		goto abandon;
	}
	user->out_fault_id = fault->object.id;
	user->out_fault_fd = (uint32_t)fd;
	error = soft_command_respond(command, sizeof(*user), "iommu_fault_alloc");
	if (error) {
		soft_file_close(iommufd->file.system, fd);
		goto abandon;
	}
	soft_object_complete(iommufd, &fault->object);
	return 0;
abandon:
	soft_object_abandon(iommufd, &fault->object);
	free(fault);
	return error;
}
