/* SPDX-License-Identifier: MIT */
/*
 * A VDUSE device's life: made, or taken over from a process that is gone, and
 * left or removed. Its queues are set up before a driver can be attached; what
 * the driver makes of them is asked for when it is at work.
 */
#include "client/vduse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/virtio.h"
#include "client/internal.h"

#define CONTROL	 "/dev/vduse/control"
#define RETRY_MS 20u

#define KIND(id, sentence)                                                                         \
	static const struct dmamap_reason_kind id = {.name = "vduse_" #id, .text = sentence}

KIND(no_control, "there is no {t}: modprobe vduse, or a kernel with CONFIG_VDPA_USER");
KIND(no_permission, "no permission to open {t}: run as root, or as the owner that ls -l {t} shows");
KIND(control_failed, "{t} cannot be opened, errno {0d}");
KIND(old_version, "the kernel does not speak version 0 of VDUSE, errno {0d}");
KIND(bad_name, "{t} cannot be a device's name: take 1 to 255 characters without a slash");
KIND(not_taken, "the kernel does not take device {t}: errno {0d}");
KIND(no_device, "device {t} was made, yet has no file in /dev/vduse: is devtmpfs or udev at work");
KIND(busy, "device {t} is in use by another process: take another name, or end that one");
KIND(device_failed, "/dev/vduse/{t} cannot be opened, errno {0d}");
KIND(other, "device {t} was there before, and has no queue {0d}: remove it first");
KIND(other_space, "device {t} was there before, and is of another kind: remove it first");

static const struct client_rule rules_control[] = {
	{ENOENT, &no_control},
	{ENODEV, &no_control},
	{ENXIO, &no_control},
	{EACCES, &no_permission},
	{EPERM, &no_permission},
	{0, &control_failed},
};
static const struct client_rule rules_version[] = {{0, &old_version}};
static const struct client_rule rules_create[] = {{0, &not_taken}};
static const struct client_rule rules_device[] = {
	{ENOENT, &no_device},
	{EBUSY, &busy},
	{0, &device_failed},
};
static const struct client_rule rules_queue[] = {{0, &other}};
static const struct client_rule rules_space[] = {{0, &other_space}};

static int explain(struct dmamap_vduse *vduse, const struct client_rule *rules, int error,
	const char *label, struct dmamap_reason *why)
{
	return client_explain(
		vduse->system, rules, error, label, (const uint64_t[]){(uint64_t)-error}, 1, why);
}

static bool name_fits(const char *name)
{
	return name[0] && strlen(name) < VDUSE_NAME_MAX && !strchr(name, '/') &&
	       strcmp(name, ".") && strcmp(name, "..") && strcmp(name, "control");
}

static int open_control(struct dmamap_vduse *vduse, struct dmamap_reason *why)
{
	struct dmamap_system *system = vduse->system;
	uint64_t version = VDUSE_API_VERSION;
	int error;

	vduse->control = system->ops->open(system, CONTROL, O_RDWR);
	if (vduse->control < 0)
		return explain(vduse, rules_control, vduse->control, CONTROL, why);
	error = system->ops->ioctl(system, vduse->control, VDUSE_SET_API_VERSION, &version);
	return error ? explain(vduse, rules_version, error, NULL, why) : 0;
}

static int create_device(struct dmamap_vduse *vduse, const struct dmamap_vduse_config *config,
	struct dmamap_reason *why)
{
	struct vduse_dev_config *device = calloc(1, sizeof(*device) + config->space_size);
	int error;

	if (!device)
		return -ENOMEM;
	strcpy(device->name, vduse->name);
	device->vendor_id = config->vendor_id;
	device->device_id = config->device_id;
	device->features = config->features;
	device->vq_num = config->n_queues;
	device->vq_align = (uint32_t)sysconf(_SC_PAGESIZE);
	device->config_size = config->space_size;
	memcpy(device->config, config->space, config->space_size);
	error = vduse->system->ops->ioctl(vduse->system, vduse->control, VDUSE_CREATE_DEV, device);
	if (error == -EEXIST) {
		/* One that nobody uses is made anew, for it may be of another shape. */
		vduse->found = vduse->system->ops->ioctl(vduse->system, vduse->control,
				       VDUSE_DESTROY_DEV, vduse->name) != 0;
		error = vduse->found ? 0
				     : vduse->system->ops->ioctl(vduse->system, vduse->control,
					       VDUSE_CREATE_DEV, device);
	}
	free(device);
	return error ? explain(vduse, rules_create, error, vduse->name, why) : 0;
}

/* What a killed process had under way keeps the device open until that is done. */
static int open_device(struct dmamap_vduse *vduse, unsigned patience_ms, struct dmamap_reason *why)
{
	struct timespec pause = {.tv_nsec = RETRY_MS * 1000000l};
	char path[sizeof("/dev/vduse/") + VDUSE_NAME_MAX] = "/dev/vduse/";

	strcat(path, vduse->name);
	for (unsigned waited = 0;; waited += RETRY_MS) {
		vduse->device = vduse->system->ops->open(vduse->system, path, O_RDWR);
		/* The file of a new device may take a moment to appear. */
		if (vduse->device >= 0)
			return 0;
		if ((vduse->device != -EBUSY && vduse->device != -ENOENT) || waited >= patience_ms)
			return explain(vduse, rules_device, vduse->device, vduse->name, why);
		nanosleep(&pause, NULL);
	}
}

/* A driver that comes anew is to see this process's configuration. */
static int renew_space(struct dmamap_vduse *vduse, const struct dmamap_vduse_config *config,
	struct dmamap_reason *why)
{
	struct vduse_config_data *data;
	int error;

	if (!vduse->found || !config->space_size)
		return 0;
	data = malloc(sizeof(*data) + config->space_size);
	if (!data)
		return -ENOMEM;
	data->offset = 0;
	data->length = config->space_size;
	memcpy(data->buffer, config->space, config->space_size);
	error = vduse_ioctl(vduse, VDUSE_DEV_SET_CONFIG, data);
	free(data);
	return error ? explain(vduse, rules_space, error, vduse->name, why) : 0;
}

static int set_up_queues(struct dmamap_vduse *vduse, const struct dmamap_vduse_config *config,
	struct dmamap_reason *why)
{
	for (uint32_t i = 0; i < config->n_queues; i++) {
		struct vduse_vq_config queue = {.index = i, .max_size = config->queue_size};
		int error = vduse_ioctl(vduse, VDUSE_VQ_SETUP, &queue);

		if (error)
			return client_explain(vduse->system, rules_queue, error, vduse->name,
				(const uint64_t[]){i}, 1, why);
	}
	return 0;
}

int dmamap_vduse_check(struct dmamap_system *system, const char *name, struct dmamap_reason *why)
{
	struct dmamap_vduse vduse = {.system = system};
	int error;

	if (!name_fits(name))
		return DMAMAP_REFUSE(why, &bad_name, EINVAL, name, 0);
	error = open_control(&vduse, why);
	if (vduse.control >= 0)
		system->ops->close(system, vduse.control);
	return error;
}

int dmamap_vduse_create(struct dmamap_system *system, const struct dmamap_vduse_config *config,
	struct dmamap_vduse **out, struct dmamap_reason *why)
{
	struct dmamap_vduse *vduse;
	int error;

	if (!name_fits(config->name))
		return DMAMAP_REFUSE(why, &bad_name, EINVAL, config->name, 0);
	vduse = calloc(1, sizeof(*vduse));
	if (!vduse)
		return -ENOMEM;
	pthread_mutex_init(&vduse->lock, NULL);
	vduse->dma.find = vduse_find;
	vduse->system = system;
	vduse->control = vduse->device = -1;
	vduse->umem_wanted = config->umem;
	vduse->n_queues = config->n_queues;
	strcpy(vduse->name, config->name);
	error = open_control(vduse, why);
	if (!error)
		error = create_device(vduse, config, why);
	if (error)
		goto close;
	error = open_device(vduse, config->patience_ms, why);
	if (error)
		goto remove;
	error = renew_space(vduse, config, why);
	if (!error)
		error = set_up_queues(vduse, config, why);
	if (error)
		goto remove;
	*out = vduse;
	return 0;

remove:
	if (!vduse->found) {
		dmamap_vduse_destroy(vduse);
		return error;
	}
close:
	dmamap_vduse_close(vduse);
	return error;
}

static void close_device(struct dmamap_vduse *vduse)
{
	if (vduse->device >= 0)
		vduse->system->ops->close(vduse->system, vduse->device);
	vduse->device = -1;
	vduse_unmap_all(vduse);
}

void dmamap_vduse_close(struct dmamap_vduse *vduse)
{
	if (!vduse)
		return;
	close_device(vduse);
	if (vduse->control >= 0)
		vduse->system->ops->close(vduse->system, vduse->control);
	pthread_mutex_destroy(&vduse->lock);
	free(vduse->mappings);
	free(vduse->retired);
	free(vduse);
}

int dmamap_vduse_destroy(struct dmamap_vduse *vduse)
{
	int error;

	close_device(vduse);
	error = vduse->system->ops->ioctl(
		vduse->system, vduse->control, VDUSE_DESTROY_DEV, vduse->name);
	dmamap_vduse_close(vduse);
	return error;
}

bool dmamap_vduse_found(const struct dmamap_vduse *vduse)
{
	return vduse->found;
}

int dmamap_vduse_fd(const struct dmamap_vduse *vduse)
{
	return vduse->device;
}

int dmamap_vduse_features(struct dmamap_vduse *vduse, uint64_t *features)
{
	return vduse_ioctl(vduse, VDUSE_DEV_GET_FEATURES, features);
}

/* -------------------------------------------------------------------- queues */

static bool has(uint64_t features, unsigned bit)
{
	return features >> bit & 1;
}

static uint16_t packed_place(uint16_t index, uint16_t counter)
{
	return (uint16_t)((index & 0x7fff) | (counter ? 0x8000 : 0));
}

int dmamap_vduse_queue(
	struct dmamap_vduse *vduse, uint32_t index, struct dmamap_virtqueue_config *config)
{
	struct vduse_vq_info info = {.index = index};
	uint64_t features;
	int error = dmamap_vduse_features(vduse, &features);

	if (!error)
		error = vduse_ioctl(vduse, VDUSE_VQ_GET_INFO, &info);
	if (error)
		return error;
	if (!info.ready)
		return 0;
	config->dma = &vduse->dma;
	config->size = info.num;
	config->packed = has(features, VIRTIO_F_RING_PACKED);
	config->indirect = has(features, VIRTIO_RING_F_INDIRECT_DESC);
	config->event_index = has(features, VIRTIO_RING_F_EVENT_IDX);
	config->descriptors = info.desc_addr;
	config->driver = info.driver_addr;
	config->device = info.device_addr;
	config->used = 0;
	if (config->packed) {
		config->available =
			packed_place(info.packed.last_avail_idx, info.packed.last_avail_counter);
		config->used =
			packed_place(info.packed.last_used_idx, info.packed.last_used_counter);
	} else {
		config->available = info.split.avail_index;
	}
	return 1;
}

int dmamap_vduse_kick(struct dmamap_vduse *vduse, uint32_t index, int eventfd)
{
	struct vduse_vq_eventfd kick = {.index = index, .fd = eventfd};

	return vduse_ioctl(vduse, VDUSE_VQ_SETUP_KICKFD, &kick);
}

int dmamap_vduse_interrupt(struct dmamap_vduse *vduse, uint32_t index)
{
	return vduse_ioctl(vduse, VDUSE_VQ_INJECT_IRQ, &index);
}
