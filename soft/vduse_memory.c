/* SPDX-License-Identifier: MIT */
/*
 * A device's address spaces: bounce domains, which ranges of them the daemon
 * may map (vduse_dev_iotlb_entry()), and the memory that it gives to be the
 * bounce buffer (vduse_dev_reg_umem()).
 *
 * A range comes back with a descriptor: the domain's file, or the file that
 * vhost-vdpa's user mapped there. Linux makes domains when the device is
 * attached and keeps them until it is destroyed, or attached again.
 */
#include "soft/vduse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---------------------------------------------------------------- domains */

static void unmap_all(struct soft_vduse_space *space)
{
	for (size_t i = 0; i < space->n_maps; i++)
		close(space->maps[i].fd);
	free(space->maps);
	space->maps = NULL;
	space->n_maps = 0;
}

void soft_vduse_spaces_destroy(struct soft_vduse_device *device)
{
	for (uint32_t i = 0; i < device->n_spaces; i++) {
		unmap_all(&device->spaces[i]);
		dmamap_bounce_destroy(device->spaces[i].bounce);
		device->spaces[i].bounce = NULL;
	}
}

int soft_vduse_spaces_create(
	struct soft_vduse_device *device, const struct dmamap_bounce_config *given)
{
	struct dmamap_bounce_config config = *given;
	int error = 0;

	soft_vduse_spaces_destroy(device);
	config.bounce_size = device->bounce_size / device->n_spaces;
	for (uint32_t i = 0; i < device->n_spaces && !error; i++)
		error = dmamap_bounce_create(&config, &device->spaces[i].bounce, soft_why());
	if (error)
		soft_vduse_spaces_destroy(device);
	/* Linux needs no descriptors for them. */
	if (error == -EMFILE || error == -ENFILE) {
		error = -ENOMEM;
		soft_why()->error = ENOMEM;
	}
	return error;
}

/* ------------------------------------------------------------------ IOTLB */

/* A descriptor for the daemon to map: its own number is the file. */
struct range_file {
	struct soft_file file;
	int fd;
};

static int range_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	(void)argument;
	return SOFT_REFUSE(request, ENOTTY, file->ops->name, request);
}

static int range_mmap(struct soft_file *file, void *address, size_t length, int prot, int flags,
	uint64_t offset, void **out)
{
	void *va =
		mmap(address, length, prot, flags, ((struct range_file *)file)->fd, (off_t)offset);

	if (va == MAP_FAILED)
		return SOFT_REFUSE(file_map, errno, strerrordesc_np(errno), offset);
	*out = va;
	return 0;
}

static void range_release(struct soft_file *file)
{
	free(file);
}

static const struct soft_file_ops range_ops = {
	.name = "[vduse-domain]",
	.ioctl = range_ioctl,
	.mmap = range_mmap,
	.release = range_release,
};

/* Its number, or -errno; takes @fd over. */
static int install_range(struct soft_vduse_device *device, int fd)
{
	struct range_file *range = calloc(1, sizeof(*range));
	int installed;

	if (!range) {
		close(fd);
		return SOFT_REFUSE(no_memory, ENOMEM, range_ops.name, 0);
	}
	soft_file_init(&range->file, &range_ops, device->system);
	atomic_store(&range->file.mode, fcntl(fd, F_GETFL) & O_ACCMODE);
	range->fd = fd;
	installed = soft_file_install_as(&range->file, fd, range_ops.name);
	if (installed < 0)
		free(range);
	return installed;
}

/* The lowest range of either kind. */
static bool find_entry(const struct soft_vduse_space *space, uint64_t start, uint64_t last,
	struct dmamap_iotlb_entry *entry, int *fd)
{
	bool found = dmamap_bounce_iotlb_find(space->bounce, start, last, entry);

	*fd = dmamap_bounce_file(space->bounce);
	for (size_t i = 0; i < space->n_maps; i++) {
		const struct soft_vduse_map *map = &space->maps[i];

		if (map->last < start || map->first > last || (found && map->first > entry->first))
			continue;
		*entry = (struct dmamap_iotlb_entry){
			map->first, map->last, map->offset, map->perm, false};
		*fd = map->fd;
		return true;
	}
	return found;
}

/* vduse_dev_iotlb_entry(); *@fd, when it is wanted, is a duplicate. */
static int find_range(struct soft_vduse_device *device, struct vduse_iotlb_entry_v2 *range, int *fd,
	uint64_t *capability)
{
	struct soft_vduse_space *space;
	struct dmamap_iotlb_entry entry;
	int error = 0, file;

	if (range->start > range->last)
		return SOFT_REFUSE(vduse_range, EINVAL, NULL, range->start, range->last);
	if (range->asid >= device->n_spaces)
		return SOFT_REFUSE(vduse_space, EINVAL, NULL, range->asid, device->n_spaces);
	space = &device->spaces[range->asid];
	pthread_mutex_lock(&device->memory_lock);
	if (!space->bounce) {
		error = SOFT_REFUSE(vduse_detached, EINVAL, device->name, range->asid);
		goto unlock;
	}
	if (!find_entry(space, range->start, range->last, &entry, &file)) {
		error = SOFT_REFUSE(unmap_nothing, EINVAL, NULL, range->start, range->last);
		goto unlock;
	}
	if (fd) {
		/* Linux's is not closed by exec either. Where there is none, the range is told. */
		*fd = fcntl(file, F_DUPFD, 0);
		if (*fd < 0)
			*fd = -errno;
		range->offset = entry.offset;
	}
	range->start = entry.first;
	range->last = entry.last;
	range->perm = (uint8_t)entry.prot;
	if (capability)
		*capability = entry.umem ? VDUSE_IOVA_CAP_UMEM : 0;
unlock:
	pthread_mutex_unlock(&device->memory_lock);
	return error;
}

/* The older structure is how the newer one begins. */
static int get_fd(struct soft_vduse_device *device, void *argument, size_t size)
{
	struct vduse_iotlb_entry_v2 range = {0};
	int fd, error = soft_copy_in(&range, argument, size, "vduse_iotlb_entry");

	if (error)
		return error;
	for (size_t i = 0; i < sizeof(range.reserved) / sizeof(range.reserved[0]); i++)
		if (range.reserved[i])
			return SOFT_REFUSE(
				reserved_field, EINVAL, "vduse_iotlb_entry_v2", range.reserved[i]);
	error = find_range(device, &range, &fd, NULL);
	if (error)
		return error;
	error = soft_copy_out(argument, &range, size, "vduse_iotlb_entry");
	if (error) {
		if (fd >= 0)
			close(fd);
		return error;
	}
	if (fd < 0)
		return SOFT_REFUSE(no_descriptor, -fd, range_ops.name, 0);
	return install_range(device, fd);
}

int soft_vduse_iotlb_fd(struct soft_vduse_device *device, void *argument)
{
	return get_fd(device, argument, sizeof(struct vduse_iotlb_entry));
}

int soft_vduse_iotlb_fd2(struct soft_vduse_device *device, void *argument)
{
	return get_fd(device, argument, sizeof(struct vduse_iotlb_entry_v2));
}

int soft_vduse_iotlb_info(struct soft_vduse_device *device, void *argument)
{
	struct vduse_iova_info info;
	struct vduse_iotlb_entry_v2 range = {0};
	int error = soft_copy_in(&info, argument, sizeof(info), "vduse_iova_info");

	if (error)
		return error;
	/* EFAULT is left from the copy in Linux. */
	for (size_t i = 0; i < sizeof(info.reserved) / sizeof(info.reserved[0]); i++)
		if (info.reserved[i])
			return SOFT_REFUSE(
				reserved_field, EFAULT, "vduse_iova_info", info.reserved[i]);
	if (info.asid >= device->n_spaces)
		return SOFT_REFUSE(vduse_space, EFAULT, NULL, info.asid, device->n_spaces);
	range.start = info.start;
	range.last = info.last;
	range.asid = info.asid;
	error = find_range(device, &range, NULL, &info.capability);
	if (error)
		return error;
	info.start = range.start;
	info.last = range.last;
	return soft_copy_out(argument, &info, sizeof(info), "vduse_iova_info");
}

/* As vhost-vdpa has it: all that was mapped goes (vduse_vdpa_set_map()). */
static int replace_maps(struct soft_vduse_device *device, struct soft_vduse_space *space,
	const struct soft_vduse_map *maps, size_t n)
{
	struct soft_vduse_map *own = calloc(n + 1, sizeof(*own));
	size_t made = 0;
	int error = 0;

	if (!own)
		return SOFT_REFUSE(no_memory, ENOMEM, "the driver's maps", n);
	if (n > DMAMAP_BOUNCE_IOTLB_MOST) {
		error = SOFT_REFUSE(vduse_value, ENOSPC, "the number of ranges", n, 0,
			DMAMAP_BOUNCE_IOTLB_MOST);
		n = 0;
	}
	for (; made < n && !error; made++) {
		own[made] = maps[made];
		own[made].fd = fcntl(maps[made].fd, F_DUPFD_CLOEXEC, 0);
		if (own[made].fd < 0) {
			error = SOFT_REFUSE(no_descriptor, errno, "a map's file", made);
			break;
		}
	}
	pthread_mutex_lock(&device->memory_lock);
	unmap_all(space);
	space->maps = own;
	space->n_maps = made;
	if (error)
		unmap_all(space);
	pthread_mutex_unlock(&device->memory_lock);
	return error;
}

int soft_vduse_set_map(struct soft_vduse_driver *driver, uint32_t asid,
	const struct soft_vduse_map *maps, size_t n)
{
	struct soft_vduse_device *device = driver->device;
	struct soft_vduse_message message = {.request.type = VDUSE_UPDATE_IOTLB};
	int error;

	if (asid >= device->n_spaces)
		return SOFT_REFUSE(vduse_space, EINVAL, NULL, asid, device->n_spaces);
	error = replace_maps(device, &device->spaces[asid], maps, n);
	if (error)
		return error;
	message.request.iova_v2.start = 0;
	message.request.iova_v2.last = UINT64_MAX;
	if (device->api_version >= VDUSE_API_VERSION_1)
		message.request.iova_v2.asid = asid;
	error = soft_vduse_ask(device, &message);
	if (error) {
		pthread_mutex_lock(&device->memory_lock);
		unmap_all(&device->spaces[asid]);
		pthread_mutex_unlock(&device->memory_lock);
	}
	return error;
}

/* ------------------------------------------------------------------- umem */

/* vduse_dev_reg_umem()'s pin_user_pages(): what is there before the first hole counts. */
static int pin(struct soft_vduse_device *device, uint64_t address, uint64_t size)
{
	uint64_t last = address + size - 1, va = address;
	struct soft_extent extent;
	int error = 0;

	if (last < address)
		return SOFT_REFUSE(pointer, EFAULT, "umem", address, size);
	do {
		error = soft_pages_populate(device->system, va, last, true, &extent, soft_why());
		if (error)
			break;
		va = extent.last + 1;
	} while (extent.last < last);
	if (error && va != address) {
		error = -ENOMEM;
		soft_why()->error = ENOMEM;
	}
	return error;
}

/* memory_lock held. */
static int register_umem(struct soft_vduse_device *device, const struct vduse_iova_umem *umem)
{
	struct soft_vduse_space *space = &device->spaces[umem->asid];
	struct soft_process *process = soft_process_current(device->system);
	uint64_t pages = umem->size >> device->system->machine.page_shift;
	struct dmamap_iotlb_entry entry;
	struct dmamap_bounce_info info;
	int error;

	if (!space->bounce)
		return SOFT_REFUSE(vduse_detached, EINVAL, device->name, umem->asid);
	dmamap_bounce_info(space->bounce, &info);
	if (!dmamap_bounce_iotlb_find(space->bounce, 0, 0, &entry))
		return DMAMAP_REFUSE(
			soft_why(), &dmamap_reason_umem_no_map, EINVAL, NULL, umem->uaddr);
	if (umem->size != info.bounce_size || umem->iova || umem->uaddr & (info.page_size - 1))
		return SOFT_REFUSE(vduse_umem, EINVAL, NULL, 0, info.bounce_size - 1, umem->iova,
			umem->size, umem->uaddr);
	if (space->umem)
		return DMAMAP_REFUSE(
			soft_why(), &dmamap_reason_umem_there, EEXIST, NULL, umem->uaddr);
	error = soft_charge(device->system, &process->pinned, pages,
		soft_lock_limit(device->system), soft_why());
	if (error)
		return error;
	error = pin(device, umem->uaddr, umem->size);
	if (!error)
		error = dmamap_bounce_umem_add(
			space->bounce, (void *)(uintptr_t)umem->uaddr, umem->size, soft_why());
	if (error) {
		soft_uncharge(&process->pinned, pages);
		return error;
	}
	space->umem = true;
	space->umem_pages = pages;
	space->umem_process = process;
	return 0;
}

/* memory_lock held. vduse_dev_dereg_umem(). */
static int deregister_umem(
	struct soft_vduse_device *device, uint32_t asid, uint64_t iova, uint64_t size)
{
	struct soft_vduse_space *space = &device->spaces[asid];
	struct dmamap_bounce_info info;

	if (!space->umem)
		return DMAMAP_REFUSE(soft_why(), &dmamap_reason_umem_none, ENOENT, NULL, 0);
	if (!space->bounce)
		return SOFT_REFUSE(vduse_detached, EINVAL, device->name, asid);
	dmamap_bounce_info(space->bounce, &info);
	if (iova || size != info.bounce_size)
		return SOFT_REFUSE(
			vduse_umem, EINVAL, NULL, 0, info.bounce_size - 1, iova, size, 0);
	/* A domain that was made since knows of none. */
	dmamap_bounce_umem_remove(space->bounce, NULL);
	soft_uncharge(&space->umem_process->pinned, space->umem_pages);
	space->umem = false;
	return 0;
}

static int read_umem(struct soft_vduse_device *device, void *argument, struct vduse_iova_umem *umem)
{
	int error = soft_copy_in(umem, argument, sizeof(*umem), "vduse_iova_umem");

	if (error)
		return error;
	for (size_t i = 0; i < sizeof(umem->reserved) / sizeof(umem->reserved[0]); i++)
		if (umem->reserved[i])
			return SOFT_REFUSE(
				reserved_field, EINVAL, "vduse_iova_umem", umem->reserved[i]);
	if (umem->asid >= device->n_spaces)
		return SOFT_REFUSE(vduse_space, EINVAL, NULL, umem->asid, device->n_spaces);
	return 0;
}

int soft_vduse_umem_register(struct soft_vduse_device *device, void *argument)
{
	struct vduse_iova_umem umem;
	int error = read_umem(device, argument, &umem);

	if (error)
		return error;
	pthread_mutex_lock(&device->memory_lock);
	error = register_umem(device, &umem);
	pthread_mutex_unlock(&device->memory_lock);
	return error;
}

int soft_vduse_umem_deregister(struct soft_vduse_device *device, void *argument)
{
	struct vduse_iova_umem umem;
	int error = read_umem(device, argument, &umem);

	if (error)
		return error;
	pthread_mutex_lock(&device->memory_lock);
	error = deregister_umem(device, umem.asid, umem.iova, umem.size);
	pthread_mutex_unlock(&device->memory_lock);
	return error;
}

void soft_vduse_umem_drop(struct soft_vduse_device *device)
{
	struct dmamap_bounce_info info;

	pthread_mutex_lock(&device->memory_lock);
	for (uint32_t i = 0; i < device->n_spaces; i++) {
		if (!device->spaces[i].bounce)
			continue;
		dmamap_bounce_info(device->spaces[i].bounce, &info);
		if (device->spaces[i].umem)
			deregister_umem(device, i, 0, info.bounce_size);
	}
	pthread_mutex_unlock(&device->memory_lock);
}
