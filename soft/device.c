/* SPDX-License-Identifier: MIT */
/*
 * A device's file, by either way. Through its group it may be opened often and
 * works at once. Through its cdev it is opened once, and refuses everything
 * until it is bound to an IOMMUFD (drivers/vfio/device_cdev.c, vfio_main.c).
 *
 * The group's lock is taken first and held over opening, binding and closing:
 * it says who may open; the device's lock guards what is open.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/pci.h"

/* A BAR's bytes are congruent to its bus address up to this, so that leaves can be as large. */
#define BAR_ALIGNMENT (1ULL << 30)

/* Whole pages, of this process and of the machine: a BAR can be mapped by either. */
static uint64_t room_of(const struct soft_device *device, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), modelled = soft_page_size(device->system);

	if (page < modelled)
		page = modelled;
	return (size + page - 1) & ~(page - 1);
}

static int create_bar(
	const struct soft_device *device, struct soft_bar *bar, uint64_t size, uint64_t address)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), room = room_of(device, size);
	uint64_t alignment = room < BAR_ALIGNMENT ? room : BAR_ALIGNMENT;
	int error;

	bar->size = size;
	bar->address = address;
	bar->fd = memfd_create("dmamap:BAR", MFD_CLOEXEC);
	if (bar->fd < 0)
		return -errno;
	if (ftruncate(bar->fd, (off_t)room))
		return -errno;
	error = soft_map_aligned(bar->fd, 0, room, PROT_READ | PROT_WRITE, alignment,
		address & (alignment - 1) & ~(page - 1), &bar->host);
	/* A crash of the program should not write tens of GiB of BAR. */
	if (!error)
		madvise(bar->host, room, MADV_DONTDUMP);
	return error;
}

const struct dmamap_machine_iommu *soft_device_iommu(const struct soft_device *device)
{
	return &device->system->machine.iommus[device->is.iommu];
}

int soft_device_init(struct soft_device *device, struct soft_system *system,
	const struct dmamap_machine_device *is, struct soft_group *group)
{
	int error = 0;

	memset(device, 0, sizeof(*device));
	device->is = *is;
	device->system = system;
	device->group = group;
	pthread_mutex_init(&device->lock, NULL);
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++)
		device->bars[i].fd = -1;
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS && !error; i++)
		if (is->bar_size[i])
			error = create_bar(
				device, &device->bars[i], is->bar_size[i], is->bar_address[i]);
	return error ? error : soft_pci_init(device);
}

void soft_device_fini(struct soft_device *device)
{
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		struct soft_bar *bar = &device->bars[i];

		if (bar->host)
			munmap(bar->host, room_of(device, bar->size));
		if (bar->fd >= 0)
			close(bar->fd);
	}
	soft_pci_fini(device);
	pthread_mutex_destroy(&device->lock);
}

/* The first open takes the group's container, or binds to the IOMMUFD. Both locks are held. */
static int first_open(struct soft_device *device, struct soft_iommufd *iommufd)
{
	struct soft_group *group = device->group;
	int error;

	if (iommufd) {
		error = soft_binding_create(iommufd, device, &device->binding);
		if (error)
			return error;
	} else {
		if (!soft_container_ready(group->container))
			return SOFT_REFUSE(iommu_unset, EINVAL, NULL, 0);
		group->container_users++;
		soft_file_get(group->opened);
		device->group_file = group->opened;
	}
	device->open_count = 1;
	soft_pci_open(device);
	return 0;
}

/* The group's file comes back, to be put without locks. */
static struct soft_file *close_one(struct soft_device *device)
{
	struct soft_file *group_file = NULL;

	if (--device->open_count)
		return NULL;
	soft_pci_close(device);
	if (device->binding) {
		soft_binding_destroy(device->binding);
		device->binding = NULL;
		device->attached = false;
		device->cdev_open = false;
	} else {
		device->group->container_users--;
		group_file = device->group_file;
		device->group_file = NULL;
	}
	return group_file;
}

static void device_release(struct soft_file *file)
{
	struct soft_device_file *df = (struct soft_device_file *)file;
	struct soft_device *device = df->device;
	struct soft_file *group_file = NULL;

	if (atomic_load(&df->granted)) {
		pthread_mutex_lock(&device->group->lock);
		pthread_mutex_lock(&device->lock);
		group_file = close_one(device);
		pthread_mutex_unlock(&device->lock);
		if (!df->by_group)
			device->group->cdev_open--;
		pthread_mutex_unlock(&device->group->lock);
	}
	soft_file_put(group_file);
	free(df);
}

/* Before Linux 6.17 the structure had no token, and nobody looked past its end. */
static int copy_bind(struct soft_device_file *df, void *argument,
	struct vfio_device_bind_iommufd *bind, uint32_t *known)
{
	const size_t minimum = SOFT_END_OF(vfio_device_bind_iommufd, out_devid);
	const bool old = df->device->system->machine.as_kernel < DMAMAP_KERNEL(6, 17);
	uint32_t size;
	int error;

	*known = old ? 0 : VFIO_DEVICE_BIND_FLAG_TOKEN;
	if (old) {
		memset(bind, 0, sizeof(*bind));
		error = soft_copy_in(bind, argument, minimum, "vfio_device_bind_iommufd");
		size = bind->argsz;
	} else {
		error = soft_copy_in(&size, argument, sizeof(size), "vfio_device_bind_iommufd");
	}
	if (error)
		return error;
	if (size < minimum)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_device_bind_iommufd", size, minimum);
	if (old)
		return 0;
	return soft_copy_struct(bind, sizeof(*bind), argument, size, "vfio_device_bind_iommufd");
}

static int bind_arguments(
	struct soft_device_file *df, void *argument, struct vfio_device_bind_iommufd *bind)
{
	uint32_t known;
	int error = copy_bind(df, argument, bind, &known);

	if (error)
		return error;
	if (bind->iommufd < 0)
		return SOFT_REFUSE(value, EINVAL, "an IOMMUFD", (uint32_t)bind->iommufd);
	if (bind->flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_DEVICE_BIND_IOMMUFD", bind->flags, known);
	if (df->by_group)
		return SOFT_REFUSE(device_by_group, EINVAL, NULL, 0);
	return 0;
}

/* A token is read, and then refused: none of our functions is virtual. */
static int check_token(struct soft_device *device, const struct vfio_device_bind_iommufd *bind)
{
	uint8_t uuid[16];
	int error;

	if (!(bind->flags & VFIO_DEVICE_BIND_FLAG_TOKEN))
		return 0;
	error = soft_copy_in(
		uuid, (void *)(uintptr_t)bind->token_uuid_ptr, sizeof(uuid), "a token");
	return error ? error : SOFT_REFUSE(device_token, EINVAL, device->is.bdf, 0);
}

static int bind_locked(struct soft_device_file *df, void *argument,
	const struct vfio_device_bind_iommufd *bind, struct soft_iommufd **iommufd)
{
	struct soft_device *device = df->device;
	struct soft_file *file;
	int error;

	if (atomic_load(&df->granted))
		return SOFT_REFUSE(device_bound, EINVAL, NULL, 0);
	error = check_token(device, bind);
	if (error)
		return error;
	file = soft_file_find(device->system, bind->iommufd);
	if (!file)
		return soft_file_unknown(bind->iommufd, "IOMMUFD");
	*iommufd = soft_iommufd_from(file);
	if (!*iommufd) {
		soft_file_put(file);
		return SOFT_REFUSE(wrong_fd, EBADFD, "IOMMUFD", (unsigned)bind->iommufd);
	}
	if (device->open_count)
		return SOFT_REFUSE(device_bound, EINVAL, NULL, 0);
	error = first_open(device, *iommufd);
	if (error)
		return error;
	error = soft_copy_out(
		(char *)argument + offsetof(struct vfio_device_bind_iommufd, out_devid),
		&device->binding->object.id, sizeof(uint32_t), "out_devid");
	if (error) {
		close_one(device);
	} else {
		device->cdev_open = true;
		atomic_store(&df->granted, true);
	}
	return error;
}

static int bind_iommufd(struct soft_device_file *df, void *argument)
{
	struct soft_group *group = df->device->group;
	struct soft_iommufd *iommufd = NULL;
	struct vfio_device_bind_iommufd bind;
	int error = bind_arguments(df, argument, &bind);

	if (error)
		return error;
	pthread_mutex_lock(&group->lock);
	if (group->opened) {
		error = SOFT_REFUSE(group_open, EBUSY, NULL, group->number);
	} else {
		pthread_mutex_lock(&df->device->lock);
		error = bind_locked(df, argument, &bind, &iommufd);
		pthread_mutex_unlock(&df->device->lock);
		if (!error)
			group->cdev_open++;
	}
	pthread_mutex_unlock(&group->lock);
	/* The binding holds a reference of its own. */
	if (iommufd)
		soft_file_put(&iommufd->file);
	return error;
}

/* What attach and detach have in common: flags, and a PASID where one is named. */
static int pasid_arguments(const struct soft_device *device, void *argument, uint32_t argsz,
	uint32_t flags, size_t minimum, uint32_t *pasid, const char *what)
{
	/* The two flags are one bit; Linux had neither before 6.15. */
	const uint32_t known = device->system->machine.as_kernel < DMAMAP_KERNEL(6, 15)
				       ? 0
				       : VFIO_DEVICE_ATTACH_PASID;

	_Static_assert(VFIO_DEVICE_ATTACH_PASID == VFIO_DEVICE_DETACH_PASID, "one bit");
	if (argsz < minimum)
		return SOFT_REFUSE(argsz, EINVAL, what, argsz, minimum);
	if (flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, what, flags, known);
	if (!flags)
		return 0;
	if (argsz < minimum + sizeof(*pasid))
		return SOFT_REFUSE(argsz, EINVAL, what, argsz, minimum + sizeof(*pasid));
	return soft_copy_in(pasid, (char *)argument + minimum, sizeof(*pasid), what);
}

static void detach_none(struct soft_device *device)
{
	if (device->attached)
		soft_binding_detach(device->binding);
	device->attached = false;
}

static int attach_pt(struct soft_device *device, void *argument)
{
	const size_t minimum = SOFT_END_OF(vfio_device_attach_iommufd_pt, pt_id);
	struct vfio_device_attach_iommufd_pt attach;
	int error = soft_copy_in(&attach, argument, minimum, "vfio_device_attach_iommufd_pt");

	if (!error)
		error = pasid_arguments(device, argument, attach.argsz, attach.flags, minimum,
			&attach.pasid, "VFIO_DEVICE_ATTACH_IOMMUFD_PT");
	if (error)
		return error;
	pthread_mutex_lock(&device->lock);
	if (attach.flags) {
		error = soft_pasid_attach(device->binding, attach.pasid, &attach.pt_id);
	} else {
		error = soft_binding_attach(device->binding, &attach.pt_id);
		device->attached = device->attached || !error;
	}
	if (!error) {
		error = soft_copy_out(
			(char *)argument + offsetof(struct vfio_device_attach_iommufd_pt, pt_id),
			&attach.pt_id, sizeof(attach.pt_id), "pt_id");
		/* By the way without a PASID in either case, as the kernel does it. */
		if (error)
			detach_none(device);
	}
	pthread_mutex_unlock(&device->lock);
	return error;
}

static int detach_pt(struct soft_device *device, void *argument)
{
	const size_t minimum = SOFT_END_OF(vfio_device_detach_iommufd_pt, flags);
	struct vfio_device_detach_iommufd_pt detach;
	int error = soft_copy_in(&detach, argument, minimum, "vfio_device_detach_iommufd_pt");

	if (!error)
		error = pasid_arguments(device, argument, detach.argsz, detach.flags, minimum,
			&detach.pasid, "VFIO_DEVICE_DETACH_IOMMUFD_PT");
	if (error)
		return error;
	pthread_mutex_lock(&device->lock);
	if (detach.flags)
		soft_pasid_detach(device->binding, detach.pasid);
	else
		detach_none(device);
	pthread_mutex_unlock(&device->lock);
	return 0;
}

static int unbound(void)
{
	return SOFT_REFUSE(device_unbound, EINVAL, NULL, 0);
}

static int device_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	struct soft_device_file *df = (struct soft_device_file *)file;

	if (request == VFIO_DEVICE_BIND_IOMMUFD)
		return bind_iommufd(df, argument);
	if (!atomic_load(&df->granted))
		return unbound();
	soft_power_resume(df->device);
	if (!df->by_group && request == VFIO_DEVICE_ATTACH_IOMMUFD_PT)
		return attach_pt(df->device, argument);
	if (!df->by_group && request == VFIO_DEVICE_DETACH_IOMMUFD_PT)
		return detach_pt(df->device, argument);
	return soft_pci_ioctl(df->device, request, argument);
}

static ssize_t device_access(
	struct soft_file *file, void *buffer, size_t size, uint64_t offset, bool write)
{
	struct soft_device_file *df = (struct soft_device_file *)file;

	if (!atomic_load(&df->granted))
		return unbound();
	return soft_pci_access(df->device, buffer, size, offset, write);
}

static int device_mmap(struct soft_file *file, void *address, size_t length, int prot, int flags,
	uint64_t offset, void **out)
{
	struct soft_device_file *df = (struct soft_device_file *)file;

	if (!atomic_load(&df->granted))
		return unbound();
	return soft_pci_mmap(df->device, file, address, length, prot, flags, offset, out);
}

static const struct soft_file_ops device_ops = {
	.name = "device",
	.ioctl = device_ioctl,
	.access = device_access,
	.mmap = device_mmap,
	.release = device_release,
};

static struct soft_device_file *device_file(struct soft_device *device, bool by_group)
{
	struct soft_device_file *df = calloc(1, sizeof(*df));

	if (!df)
		return NULL;
	soft_file_init(&df->file, &device_ops, device->system);
	df->device = device;
	df->by_group = by_group;
	return df;
}

int soft_device_open_cdev(struct soft_device *device)
{
	struct soft_device_file *df = device_file(device, false);
	int fd;

	if (!df)
		return SOFT_REFUSE(no_memory, ENOMEM, "a device", 0);
	fd = soft_file_install(&df->file, "dmamap:/dev/vfio/devices");
	if (fd < 0)
		soft_file_put(&df->file);
	return fd;
}

static int open_by_group(struct soft_device *device)
{
	struct soft_group *group = device->group;
	struct soft_ioas *ioas;
	uint32_t ioas_id;
	int error;

	if (!group->container && !group->iommufd)
		return SOFT_REFUSE(group_unset, EINVAL, NULL, group->number);
	if (device->open_count) {
		device->open_count++;
		return 0;
	}
	error = first_open(device, group->iommufd);
	if (error || !group->iommufd)
		return error;
	/* With an IOMMUFD the device goes to the IOAS of the VFIO calls at once. */
	error = soft_iommufd_compat(group->iommufd, &ioas);
	if (!error) {
		ioas_id = ioas->object.id;
		soft_object_put(group->iommufd, &ioas->object);
		error = soft_binding_attach(device->binding, &ioas_id);
	}
	if (error)
		close_one(device);
	else
		device->attached = true;
	return error;
}

int soft_device_open_group(struct soft_device *device)
{
	struct soft_device_file *df = device_file(device, true);
	int error, fd;

	if (!df)
		return SOFT_REFUSE(no_memory, ENOMEM, "a device", 0);
	pthread_mutex_lock(&device->group->lock);
	pthread_mutex_lock(&device->lock);
	error = open_by_group(device);
	if (!error)
		atomic_store(&df->granted, true);
	pthread_mutex_unlock(&device->lock);
	pthread_mutex_unlock(&device->group->lock);
	if (error) {
		soft_file_put(&df->file);
		return error;
	}
	fd = soft_file_install(&df->file, "dmamap:[vfio-device]");
	if (fd < 0)
		soft_file_put(&df->file);
	return fd;
}

struct soft_device_file *soft_device_file_from(struct soft_file *file)
{
	return file->ops == &device_ops ? (struct soft_device_file *)file : NULL;
}

#define UUID_LENGTH 36

static bool is_uuid(const char *text)
{
	for (unsigned i = 0; i < UUID_LENGTH; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? text[i] != '-'
							    : !isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* vfio-pci's names: the address, and after it spaces and a token of a virtual function. */
int soft_device_match(const struct soft_device *device, const char *name)
{
	static const char token[] = "vf_token=";
	const char *bdf = device->is.bdf, *at = name + strlen(bdf);
	bool given = false;

	if (strncmp(name, bdf, strlen(bdf)) || (*at && *at != ' '))
		return 0;
	for (; *at; at++) {
		if (*at == ' ')
			continue;
		if (given || strncmp(at, token, strlen(token)))
			return SOFT_REFUSE(device_option, EINVAL, bdf, (uint64_t)(at - name));
		at += strlen(token);
		if (strlen(at) < UUID_LENGTH || !is_uuid(at))
			return SOFT_REFUSE(device_uuid, EINVAL, bdf, (uint64_t)(at - name));
		given = true;
		at += UUID_LENGTH - 1;
	}
	return given ? SOFT_REFUSE(device_token, EINVAL, bdf, 0) : 1;
}
