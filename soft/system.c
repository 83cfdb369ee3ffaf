/* SPDX-License-Identifier: MIT */
/*
 * The soft system as a whole: what is created and destroyed with it, which file
 * a path opens, and the way from a descriptor to its file's answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft/soft.h"
#include "soft/vduse.h"

uint64_t soft_page_size(const struct soft_system *system)
{
	return 1ULL << system->machine.page_shift;
}

unsigned soft_pmd_shift(const struct soft_system *system)
{
	/* One table page of 8-byte entries, each for a page. */
	return 2 * system->machine.page_shift - 3;
}

/* A call starts without a reason, so that a failure never shows an older one's. */
static struct soft_system *enter(struct dmamap_system *base)
{
	soft_why()->kind = NULL;
	soft_why()->error = 0;
	return (struct soft_system *)base;
}

/* A decimal number that is all of @text. */
static bool number_of(const char *text, unsigned *number)
{
	int length = 0;

	return text[0] >= '0' && text[0] <= '9' && sscanf(text, "%9u%n", number, &length) == 1 &&
	       !text[length];
}

static int open_path(struct soft_system *system, const char *path, int flags)
{
	unsigned number;

	if (!strcmp(path, "/dev/vfio/vfio"))
		return soft_container_open(system);
	if (!strcmp(path, "/dev/iommu"))
		return soft_iommufd_open(system);
	if (!strncmp(path, "/dev/vduse/", 11))
		return soft_vduse_open(system, path + 11, flags);
	if (!strncmp(path, "/sys/class/vduse/", 17))
		return soft_vduse_sysfs_open(system, path + 17);
	if (!strncmp(path, "/dev/vfio/devices/vfio", 22) && number_of(path + 22, &number)) {
		for (size_t i = 0; i < system->n_devices; i++)
			if (system->devices[i].is.cdev == number)
				return soft_device_open_cdev(&system->devices[i]);
	} else if (!strncmp(path, "/dev/vfio/", 10) && number_of(path + 10, &number)) {
		for (size_t i = 0; i < system->n_groups; i++)
			if (system->groups[i].number == number)
				return soft_group_open(&system->groups[i]);
	}
	return soft_sysfs_open(system, path);
}

static int soft_open(struct dmamap_system *base, const char *path, int flags)
{
	struct soft_system *system = enter(base);
	int fd = open_path(system, path, flags);
	struct soft_file *file = fd < 0 ? NULL : soft_file_find(system, fd);

	if (file)
		atomic_store(&file->mode, flags & O_ACCMODE);
	soft_file_put(file);
	return fd;
}

static int soft_close(struct dmamap_system *base, int fd)
{
	return soft_file_close(enter(base), fd);
}

static struct soft_file *find(struct soft_system *system, int fd, int *error)
{
	struct soft_file *file = soft_file_find(system, fd);

	if (!file)
		*error = SOFT_REFUSE(bad_fd, EBADF, NULL, (uint64_t)(unsigned)fd);
	return file;
}

static int soft_ioctl(struct dmamap_system *base, int fd, unsigned long request, void *argument)
{
	struct soft_system *system = enter(base);
	struct soft_file *file;
	int result;

	file = find(system, fd, &result);
	if (!file)
		return result;
	if (file->ops->ioctl)
		result = file->ops->ioctl(file, (unsigned)request, argument);
	else
		result = SOFT_REFUSE(request, ENOTTY, file->ops->name, request);
	soft_file_put(file);
	/* What was refused on the way does not matter to one that succeeds. */
	if (result >= 0)
		soft_why()->kind = NULL;
	return result;
}

/* The first address that no program has. */
#ifdef __x86_64__
#define USER_END (1ULL << 47)
#else
#define USER_END (1ULL << 48)
#endif

static bool may_read(const struct soft_file *file)
{
	return (atomic_load(&file->mode) + 1) & 1;
}

static bool may_write(const struct soft_file *file)
{
	return (atomic_load(&file->mode) + 1) & 2;
}

/* What Linux looks at before the file does (vfs_read() and vfs_write() in fs/read_write.c). */
static int check_access(const struct soft_file *file, const void *buffer, size_t size, bool write)
{
	uint64_t first = (uintptr_t)buffer, end;

	if (!(write ? may_write(file) : may_read(file)))
		return SOFT_REFUSE(file_mode, EBADF, write ? "written" : "read",
			(unsigned)atomic_load(&file->mode));
	if (!file->ops->access && (file->ops->ioctl || write))
		return SOFT_REFUSE(no_io, EINVAL, file->ops->name, 0);
	if (__builtin_add_overflow(first, size, &end) || end > USER_END)
		return SOFT_REFUSE(pointer, EFAULT, "what a program can address", first, size);
	return 0;
}

/* Files without an access of their own are read where their content is. */
static ssize_t access_at(struct soft_system *system, int fd, void *buffer, size_t size,
	const uint64_t *offset, bool write)
{
	struct soft_file *file;
	ssize_t done;
	int error;

	file = find(system, fd, &error);
	if (!file)
		return error;
	error = check_access(file, buffer, size, write);
	if (error) {
		done = error;
	} else if (file->ops->access) {
		done = file->ops->access(
			file, buffer, size, offset ? *offset : atomic_load(&file->position), write);
		if (done > 0 && !offset)
			atomic_fetch_add(&file->position, (uint64_t)done);
	} else {
		done = offset ? pread(fd, buffer, size, (off_t)*offset) : read(fd, buffer, size);
		if (done < 0)
			done = SOFT_REFUSE(
				pointer, errno, "a file's content", (uintptr_t)buffer, size);
	}
	soft_file_put(file);
	return done;
}

static ssize_t soft_read(struct dmamap_system *base, int fd, void *buffer, size_t size)
{
	return access_at(enter(base), fd, buffer, size, NULL, false);
}

static ssize_t soft_write(struct dmamap_system *base, int fd, const void *buffer, size_t size)
{
	return access_at(enter(base), fd, (void *)(uintptr_t)buffer, size, NULL, true);
}

static ssize_t soft_pread(
	struct dmamap_system *base, int fd, void *buffer, size_t size, uint64_t offset)
{
	return access_at(enter(base), fd, buffer, size, &offset, false);
}

static ssize_t soft_pwrite(
	struct dmamap_system *base, int fd, const void *buffer, size_t size, uint64_t offset)
{
	return access_at(enter(base), fd, (void *)(uintptr_t)buffer, size, &offset, true);
}

/* And before it maps (do_mmap() in mm/mmap.c). */
static int check_mmap(
	const struct soft_file *file, size_t length, int prot, int *flags, uint64_t offset)
{
	uint64_t page = soft_page_size(file->system);
	int type = *flags & MAP_TYPE;
	bool shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;

	if (offset & (page - 1))
		return SOFT_REFUSE(misaligned, EINVAL, "offset", offset, page);
	if (!length)
		return SOFT_REFUSE(length_zero, EINVAL, "mmap", 0);
	if (length > USER_END)
		return SOFT_REFUSE(too_large, ENOMEM, "the length", length);
	if (shared && prot & PROT_WRITE && !may_write(file))
		return SOFT_REFUSE(file_mode, EACCES, "mapped for writing",
			(unsigned)atomic_load(&file->mode));
	if (!may_read(file))
		return SOFT_REFUSE(file_mode, EACCES, "mapped", (unsigned)atomic_load(&file->mode));
	if (!file->ops->mmap)
		return SOFT_REFUSE(no_io, ENODEV, file->ops->name, offset);
	/* A file that cannot be written is never mapped as one that is shared. */
	if (shared && !may_write(file))
		*flags = (*flags & ~MAP_TYPE) | MAP_PRIVATE;
	return 0;
}

static int soft_mmap(struct dmamap_system *base, void *address, size_t length, int prot, int flags,
	int fd, uint64_t offset, void **out)
{
	struct soft_system *system = enter(base);
	struct soft_file *file;
	int error;

	file = find(system, fd, &error);
	if (!file)
		return error;
	error = check_mmap(file, length, prot, &flags, offset);
	if (!error)
		error = file->ops->mmap(file, address, length, prot, flags, offset, out);
	soft_file_put(file);
	return error;
}

static int soft_munmap(struct dmamap_system *base, void *address, size_t length)
{
	return soft_vma_munmap(&enter(base)->vmas, address, length);
}

static ssize_t soft_readlink(
	struct dmamap_system *base, const char *path, char *buffer, size_t size)
{
	return soft_sysfs_readlink(enter(base), path, buffer, size);
}

static ssize_t soft_list(
	struct dmamap_system *base, const char *path, unsigned index, char *name, size_t size)
{
	return soft_sysfs_list(enter(base), path, index, name, size);
}

static int soft_count(struct dmamap_system *base, struct dmamap_counters *counters)
{
	return soft_counters((struct soft_system *)base, counters);
}

static int soft_reason(struct dmamap_system *base, struct dmamap_reason *reason)
{
	(void)base;
	if (!soft_why()->kind)
		return -ENOENT;
	*reason = *soft_why();
	return 0;
}

static void destroy(struct soft_system *system)
{
	soft_files_close_all(system);
	soft_vduse_fini(system);
	/* Mappings keep devices open: those go now. The memory itself stays the program's. */
	soft_vmas_fini(&system->vmas);
	for (size_t i = 0; i < system->n_devices; i++)
		soft_device_fini(&system->devices[i]);
	for (size_t i = 0; i < system->n_groups; i++)
		pthread_mutex_destroy(&system->groups[i].lock);
	soft_proc_fini(&system->proc);
	soft_accounts_fini(&system->accounts);
	pthread_mutex_destroy(&system->kept_files.lock);
	pthread_mutex_destroy(&system->pins_lock);
	pthread_mutex_destroy(&system->dmabufs_lock);
	pthread_mutex_destroy(&system->spaces_lock);
	pthread_mutex_destroy(&system->files.lock);
	dmamap_machine_free(&system->machine);
	free(system->devices);
	free(system->groups);
	free(system);
}

static void soft_destroy(struct dmamap_system *base)
{
	destroy((struct soft_system *)base);
}

static const struct dmamap_system_ops soft_ops = {
	.name = "soft",
	.note = "the engine's own work, no IOMMU is programmed and no page is pinned",
	.open = soft_open,
	.close = soft_close,
	.ioctl = soft_ioctl,
	.read = soft_read,
	.write = soft_write,
	.pread = soft_pread,
	.pwrite = soft_pwrite,
	.mmap = soft_mmap,
	.munmap = soft_munmap,
	.readlink = soft_readlink,
	.list = soft_list,
	.counters = soft_count,
	.reason = soft_reason,
	.destroy = soft_destroy,
};

struct soft_system *soft_system_from(struct dmamap_system *system)
{
	return system && system->ops == &soft_ops ? (struct soft_system *)system : NULL;
}

static struct soft_group *group_of(struct soft_system *system, unsigned number)
{
	struct soft_group *group;

	for (size_t i = 0; i < system->n_groups; i++)
		if (system->groups[i].number == number)
			return &system->groups[i];
	group = &system->groups[system->n_groups++];
	group->system = system;
	group->number = number;
	pthread_mutex_init(&group->lock, NULL);
	return group;
}

int dmamap_system_soft(const struct dmamap_machine *machine, struct dmamap_system **system,
	struct dmamap_reason *why)
{
	struct dmamap_machine by_default;
	struct soft_system *made;
	int error;

	if (!machine) {
		dmamap_machine_default(&by_default);
		machine = &by_default;
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return DMAMAP_REFUSE(why, &soft_reason_no_memory, ENOMEM, "a system", 0);
	error = dmamap_machine_copy(&made->machine, machine, why);
	if (error)
		goto free_made;
	error = soft_accounts_init(&made->accounts);
	if (error) {
		DMAMAP_REFUSE(why, &soft_reason_no_memory, -error, "a system's accounts", 0);
		dmamap_machine_free(&made->machine);
		goto free_made;
	}
	made->base.ops = &soft_ops;
	pthread_mutex_init(&made->files.lock, NULL);
	pthread_mutex_init(&made->spaces_lock, NULL);
	pthread_mutex_init(&made->dmabufs_lock, NULL);
	pthread_mutex_init(&made->pins_lock, NULL);
	pthread_mutex_init(&made->kept_files.lock, NULL);
	soft_vmas_init(&made->vmas);
	soft_proc_init(&made->proc);
	soft_vduse_init(&made->vduse);
	made->groups = calloc(machine->n_devices + 1, sizeof(*made->groups));
	made->devices = calloc(machine->n_devices + 1, sizeof(*made->devices));
	if (!made->groups || !made->devices) {
		error = DMAMAP_REFUSE(why, &soft_reason_no_memory, ENOMEM, "a system", 0);
		goto fail;
	}
	for (size_t i = 0; i < machine->n_devices; i++) {
		const struct dmamap_machine_device *is = &made->machine.devices[i];

		made->n_devices++;
		error = soft_device_init(&made->devices[i], made, is, group_of(made, is->group));
		if (error) {
			DMAMAP_REFUSE(why, &soft_reason_no_memory, -error, "a BAR", i);
			goto fail;
		}
	}
	*system = &made->base;
	return 0;
fail:
	destroy(made);
	return error;
free_made:
	free(made);
	return error;
}

int dmamap_soft_declare(
	struct dmamap_system *base, void *address, uint64_t length, int fd, unsigned page_shift)
{
	struct soft_system *system = soft_system_from(base);
	struct soft_vma vma = {
		.first = (uintptr_t)address,
		.last = (uintptr_t)address + length - 1,
		.page_shift = page_shift,
	};
	struct stat file;

	if (!system || page_shift > 47 || page_shift < system->machine.page_shift || !length)
		return -EINVAL;
	if ((vma.first | length) & ((1ULL << page_shift) - 1) || vma.last < vma.first)
		return -EINVAL;
	if (fd >= 0) {
		if (fstat(fd, &file))
			return -EINVAL;
		vma.st_dev = file.st_dev;
		vma.st_ino = file.st_ino;
	}
	return soft_vma_declare(&system->vmas, &vma);
}

void dmamap_soft_undeclare(struct dmamap_system *base, void *address)
{
	struct soft_system *system = soft_system_from(base);

	if (system)
		soft_vma_undeclare(&system->vmas, (uintptr_t)address);
}

int dmamap_soft_access(struct dmamap_system *base, int device_fd, struct dmamap_access **access)
{
	struct soft_system *system = soft_system_from(base);
	struct soft_file *file = system ? soft_file_find(system, device_fd) : NULL;
	struct soft_device_file *df = file ? soft_device_file_from(file) : NULL;
	struct soft_device *device;
	int error = -EBADF;

	if (df) {
		device = df->device;
		pthread_mutex_lock(&device->group->lock);
		pthread_mutex_lock(&device->lock);
		if (!atomic_load(&df->granted))
			error = -ENODEV;
		else if (device->binding)
			error = soft_binding_access(device->binding, access);
		else
			error = soft_container_access(
				device->group->container, device->group, access);
		pthread_mutex_unlock(&device->lock);
		pthread_mutex_unlock(&device->group->lock);
	}
	soft_file_put(file);
	return error;
}
