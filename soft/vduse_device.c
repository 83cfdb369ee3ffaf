/* SPDX-License-Identifier: MIT */
/*
 * /dev/vduse/NAME: what a daemon asks of its device (vduse_dev_ioctl() in
 * vduse_dev.c). One daemon at a time has it open; of a device that broke, every
 * request is refused, known or not.
 */
#include "soft/vduse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/pci.h"

static int check_queue(const struct soft_vduse_device *device, uint32_t index)
{
	if (index >= device->n_queues)
		return SOFT_REFUSE(vduse_queue, EINVAL, NULL, index, device->n_queues);
	return 0;
}

static int get_features(struct soft_vduse_device *device, void *argument)
{
	/* What the driver has written, accepted or not. */
	uint64_t features = atomic_load(&device->driver_features);

	return soft_copy_out(argument, &features, sizeof(features), "features");
}

/* Page by page: where the caller's bytes end, zeros take the place of the rest, as in Linux. */
static int copy_config(char *to, const char *user, uint32_t size, uint64_t page)
{
	int error = 0;

	while (size && !error) {
		uint32_t part = (uint32_t)(page - ((uintptr_t)user & (page - 1)));

		part = part < size ? part : size;
		error = soft_copy_in(to, user, part, "a configuration");
		if (error)
			memset(to, 0, size);
		to += part;
		user += part;
		size -= part;
	}
	return error;
}

static int set_config(struct soft_vduse_device *device, void *argument)
{
	struct vduse_config_data data;
	int error = soft_copy_in(&data, argument, sizeof(data), "vduse_config_data");

	if (error)
		return error;
	if (data.offset > device->config_size || !data.length ||
		data.length > device->config_size - data.offset)
		return SOFT_REFUSE(vduse_config_data, EINVAL, NULL, data.offset, data.length,
			device->config_size);
	pthread_mutex_lock(&device->config_lock);
	error = copy_config((char *)device->config + data.offset, (char *)argument + sizeof(data),
		data.length, (uint64_t)sysconf(_SC_PAGESIZE));
	pthread_mutex_unlock(&device->config_lock);
	return error;
}

/* vduse_dev_queue_irq_work(): 0: the driver hears of it. state_lock held, to read. */
static int check_interrupt(const struct soft_vduse_device *device)
{
	uint8_t status = atomic_load(&device->status);

	if (device->suspended || !(status & VIRTIO_CONFIG_S_DRIVER_OK))
		return SOFT_REFUSE(vduse_idle, EINVAL, "an interrupt", status, device->suspended);
	return 0;
}

static int inject_config(struct soft_vduse_device *device, void *argument)
{
	int error;

	(void)argument;
	pthread_rwlock_rdlock(&device->state_lock);
	error = check_interrupt(device);
	if (!error && device->config_callback.call)
		device->config_callback.call(device->config_callback.who);
	pthread_rwlock_unlock(&device->state_lock);
	return error;
}

static int inject_queue(struct soft_vduse_device *device, void *argument)
{
	struct soft_vduse_queue *queue;
	uint32_t index;
	int error = soft_copy_in(&index, argument, sizeof(index), "a queue's number");

	if (!error)
		error = check_queue(device, index);
	if (error)
		return error;
	queue = &device->queues[index];
	pthread_rwlock_rdlock(&device->state_lock);
	pthread_mutex_lock(&queue->irq_lock);
	/* An eventfd is not asked for the status first (vduse_vq_signal_irqfd()). */
	if (queue->trigger >= 0 && !device->suspended && atomic_load(&queue->ready)) {
		soft_eventfd_signal(queue->trigger);
	} else {
		error = check_interrupt(device);
		if (!error && queue->callback.call && atomic_load(&queue->ready))
			queue->callback.call(queue->callback.who);
	}
	pthread_mutex_unlock(&queue->irq_lock);
	pthread_rwlock_unlock(&device->state_lock);
	return error;
}

static bool all_zero(const uint16_t *words, size_t n)
{
	while (n && !words[n - 1])
		n--;
	return !n;
}

static int setup_queue(struct soft_vduse_device *device, void *argument)
{
	struct vduse_vq_config config;
	struct soft_vduse_queue *queue;
	bool versioned = device->api_version >= VDUSE_API_VERSION_1;
	uint8_t status = atomic_load(&device->status);
	int error = soft_copy_in(&config, argument, sizeof(config), "vduse_vq_config");

	if (!error)
		error = check_queue(device, config.index);
	if (error)
		return error;
	if (config.group >= (versioned ? device->n_groups : 1))
		return SOFT_REFUSE(vduse_group, EINVAL, NULL, config.group, device->n_groups);
	if (versioned && status & VIRTIO_CONFIG_S_DRIVER_OK)
		return SOFT_REFUSE(vduse_running, EINVAL, "a queue cannot be set up", status);
	if (config.reserved1 ||
		!all_zero(config.reserved2, sizeof(config.reserved2) / sizeof(uint16_t)))
		return SOFT_REFUSE(reserved_field, EINVAL, "vduse_vq_config", config.reserved1);
	queue = &device->queues[config.index];
	pthread_mutex_lock(&queue->lock);
	queue->max = config.max_size;
	atomic_store(&queue->group, config.group);
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

static int get_queue(struct soft_vduse_device *device, void *argument)
{
	struct vduse_vq_info info;
	struct soft_vduse_queue *queue;
	int error = soft_copy_in(&info, argument, sizeof(info), "vduse_vq_info");

	if (!error)
		error = check_queue(device, info.index);
	if (error)
		return error;
	queue = &device->queues[info.index];
	pthread_mutex_lock(&queue->lock);
	info.num = queue->is.num;
	info.desc_addr = queue->is.desc_addr;
	info.driver_addr = queue->is.driver_addr;
	info.device_addr = queue->is.device_addr;
	/* Of a split ring the rest of the union stays as it was given. */
	if (atomic_load(&device->driver_features) & 1ull << VIRTIO_F_RING_PACKED)
		info.packed = queue->is.packed;
	else
		info.split = queue->is.split;
	info.ready = atomic_load(&queue->ready);
	pthread_mutex_unlock(&queue->lock);
	return soft_copy_out(argument, &info, sizeof(info), "vduse_vq_info");
}

/* vduse_kickfd_setup() */
static int setup_kick(struct soft_vduse_device *device, void *argument)
{
	struct vduse_vq_eventfd set;
	struct soft_vduse_queue *queue;
	int fd = -1, error = soft_copy_in(&set, argument, sizeof(set), "vduse_vq_eventfd");

	if (!error)
		error = check_queue(device, set.index);
	if (error)
		return error;
	if (set.fd >= 0) {
		fd = soft_eventfd_get(set.fd, "a queue's kick");
		if (fd < 0)
			return fd;
	} else if (set.fd != VDUSE_EVENTFD_DEASSIGN) {
		return 0;
	}
	queue = &device->queues[set.index];
	pthread_mutex_lock(&queue->lock);
	soft_eventfd_put(&queue->kickfd);
	queue->kickfd = fd;
	/* A kick that nobody could hear is not lost. */
	if (fd >= 0 && queue->kicked && atomic_load(&queue->ready)) {
		soft_eventfd_signal(fd);
		queue->kicked = false;
	}
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

static const struct {
	unsigned request;
	bool versioned; /* there is none before version 1 */
	int (*answer)(struct soft_vduse_device *device, void *argument);
} requests[] = {
	{VDUSE_IOTLB_GET_FD, false, soft_vduse_iotlb_fd},
	{VDUSE_IOTLB_GET_FD2, true, soft_vduse_iotlb_fd2},
	{VDUSE_DEV_GET_FEATURES, false, get_features},
	{VDUSE_DEV_SET_CONFIG, false, set_config},
	{VDUSE_DEV_INJECT_CONFIG_IRQ, false, inject_config},
	{VDUSE_VQ_SETUP, false, setup_queue},
	{VDUSE_VQ_GET_INFO, false, get_queue},
	{VDUSE_VQ_SETUP_KICKFD, false, setup_kick},
	{VDUSE_VQ_INJECT_IRQ, false, inject_queue},
	{VDUSE_IOTLB_REG_UMEM, false, soft_vduse_umem_register},
	{VDUSE_IOTLB_DEREG_UMEM, false, soft_vduse_umem_deregister},
	{VDUSE_IOTLB_GET_INFO, false, soft_vduse_iotlb_info},
};

static int device_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	struct soft_vduse_device *device = ((struct soft_vduse_file *)file)->device;

	if (atomic_load(&device->broken))
		return SOFT_REFUSE(
			vduse_broken, EPERM, device->name, atomic_load(&device->timeout_ms));
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].request != request)
			continue;
		if (requests[i].versioned && device->api_version < VDUSE_API_VERSION_1)
			break;
		return requests[i].answer(device, argument);
	}
	return SOFT_REFUSE(request, ENOTTY, "/dev/vduse/NAME", request);
}

static ssize_t device_access(
	struct soft_file *file, void *buffer, size_t size, uint64_t offset, bool write)
{
	struct soft_vduse_file *opened = (struct soft_vduse_file *)file;

	(void)offset;
	return write ? soft_vduse_write(opened, buffer, size)
		     : soft_vduse_read(opened, buffer, size);
}

static void device_release(struct soft_file *file)
{
	struct soft_vduse_file *opened = (struct soft_vduse_file *)file;
	struct soft_vduse *vduse = &file->system->vduse;
	struct soft_vduse_device *device = opened->device;

	pthread_mutex_lock(&vduse->lock);
	/* Where its descriptor was duplicated or passed on, it goes with the last one. */
	soft_vduse_notice(device);
	pthread_mutex_unlock(&vduse->lock);
	soft_vduse_put(device);
	free(opened);
}

static const struct soft_file_ops device_ops = {
	.name = "/dev/vduse/NAME",
	.ioctl = device_ioctl,
	.access = device_access,
	.release = device_release,
};

int soft_vduse_device_open(
	struct soft_vduse_device *device, int flags, struct soft_vduse_file **out)
{
	struct soft_vduse_file *opened;
	int fd;

	soft_vduse_notice(device);
	if (device->connected)
		return SOFT_REFUSE(vduse_open, EBUSY, device->name, device->key);
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return SOFT_REFUSE(no_memory, ENOMEM, device->name, 0);
	soft_file_init(&opened->file, &device_ops, device->system);
	fd = soft_vduse_connect(device);
	if (fd < 0) {
		free(opened);
		return fd;
	}
	if (flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	opened->device = device;
	opened->fd = fd;
	atomic_fetch_add(&device->refs, 1);
	*out = opened;
	return 0;
}

bool soft_vduse_fd_broken(struct dmamap_system *base, int fd)
{
	struct soft_file *file = soft_file_find(soft_system_from(base), fd);
	bool broken = file && file->ops == &device_ops &&
		      atomic_load(&((struct soft_vduse_file *)file)->device->broken);

	soft_file_put(file);
	return broken;
}

int soft_vduse_watch(struct dmamap_system *base, int fd)
{
	struct soft_file *file = soft_file_find(soft_system_from(base), fd);
	struct soft_vduse_device *device;
	int watch = -ENOTSUP;

	if (file && file->ops == &device_ops) {
		device = ((struct soft_vduse_file *)file)->device;
		pthread_mutex_lock(&device->message_lock);
		watch = device->link < 0 ? -ENODEV : fcntl(device->link, F_DUPFD_CLOEXEC, 0);
		if (watch == -1)
			watch = -errno;
		pthread_mutex_unlock(&device->message_lock);
	}
	soft_file_put(file);
	return watch;
}

/* vduse_dev_reset() */
void soft_vduse_device_reset(struct soft_vduse_device *device)
{
	pthread_mutex_lock(&device->memory_lock);
	for (uint32_t i = 0; i < device->n_spaces; i++)
		if (device->spaces[i].bounce)
			dmamap_bounce_reset(device->spaces[i].bounce);
	pthread_mutex_unlock(&device->memory_lock);
	/* No interrupt is being given from here on. */
	pthread_rwlock_wrlock(&device->state_lock);
	device->suspended = false;
	atomic_store(&device->status, 0);
	atomic_store(&device->driver_features, 0);
	atomic_fetch_add(&device->generation, 1);
	device->config_callback = (struct soft_vduse_callback){0};
	for (uint32_t i = 0; i < device->n_queues; i++) {
		struct soft_vduse_queue *queue = &device->queues[i];

		atomic_store(&queue->ready, false);
		pthread_mutex_lock(&queue->lock);
		memset(&queue->is, 0, sizeof(queue->is));
		queue->kicked = false;
		soft_eventfd_put(&queue->kickfd);
		pthread_mutex_unlock(&queue->lock);
		pthread_mutex_lock(&queue->irq_lock);
		queue->callback = (struct soft_vduse_callback){0};
		soft_eventfd_put(&queue->trigger);
		pthread_mutex_unlock(&queue->irq_lock);
	}
	pthread_rwlock_unlock(&device->state_lock);
}
