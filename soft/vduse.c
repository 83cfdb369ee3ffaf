/* SPDX-License-Identifier: MIT */
/*
 * /dev/vduse/control: devices come and go here (vduse_ioctl() in vduse_dev.c).
 *
 * The API's version and VDUSE's own features are those of the open file, and
 * what is made on it keeps them. A file that never asked for a version has 0;
 * one that asked first, without setting one, has the newest from then on.
 *
 * All requests are under one lock, as in the kernel.
 */
#include "soft/vduse.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FEATURES   (1ull << VDUSE_F_QUEUE_READY | 1ull << VDUSE_F_SUSPEND)
#define NOT_ASKED  UINT64_MAX
#define MOST_PARTS 0xffffu /* queues, groups, spaces */

struct control {
	struct soft_file file;
	uint64_t api_version;	 /* vduse.lock */
	uint64_t vduse_features; /* vduse.lock */
};

/* ------------------------------------------------------------- the system */

void soft_vduse_init(struct soft_vduse *vduse)
{
	memset(vduse, 0, sizeof(*vduse));
	pthread_mutex_init(&vduse->lock, NULL);
	vduse->epoll = vduse->stop = -1;
}

void soft_vduse_fini(struct soft_system *system)
{
	struct soft_vduse *vduse = &system->vduse;
	struct soft_vduse_device *device;

	soft_vduse_listen_stop(vduse);
	while ((device = vduse->devices)) {
		vduse->devices = device->next;
		pthread_mutex_lock(&vduse->lock);
		soft_vduse_disconnect(device);
		pthread_mutex_unlock(&vduse->lock);
		soft_vduse_put(device);
	}
	pthread_mutex_destroy(&vduse->lock);
}

struct soft_vduse_device *soft_vduse_find(struct soft_vduse *vduse, const char *name)
{
	struct soft_vduse_device *device = vduse->devices;

	while (device && strcmp(device->name, name))
		device = device->next;
	return device;
}

/* ---------------------------------------------------------------- devices */

static void free_device(struct soft_vduse_device *device)
{
	for (uint32_t i = 0; device->queues && i < device->n_queues; i++) {
		struct soft_vduse_queue *queue = &device->queues[i];

		if (queue->kickfd >= 0)
			close(queue->kickfd);
		if (queue->trigger >= 0)
			close(queue->trigger);
		pthread_mutex_destroy(&queue->irq_lock);
		pthread_mutex_destroy(&queue->lock);
	}
	if (device->spaces)
		soft_vduse_spaces_destroy(device);
	pthread_rwlock_destroy(&device->state_lock);
	pthread_cond_destroy(&device->answered);
	pthread_mutex_destroy(&device->message_lock);
	pthread_mutex_destroy(&device->memory_lock);
	pthread_mutex_destroy(&device->config_lock);
	free(device->queues);
	free(device->group_space);
	free(device->spaces);
	free(device->config);
	free(device);
}

void soft_vduse_put(struct soft_vduse_device *device)
{
	if (atomic_fetch_sub_explicit(&device->refs, 1, memory_order_acq_rel) == 1)
		free_device(device);
}

static void init_locks(struct soft_vduse_device *device)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&device->config_lock, NULL);
	pthread_mutex_init(&device->memory_lock, NULL);
	pthread_mutex_init(&device->message_lock, NULL);
	pthread_rwlock_init(&device->state_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&device->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Takes @space, the configuration, over unless it fails. */
static int make_device(struct control *control, const struct vduse_dev_config *config, void *space)
{
	struct soft_vduse *vduse = &control->file.system->vduse;
	struct soft_vduse_device *device = calloc(1, sizeof(*device));
	bool versioned = control->api_version >= VDUSE_API_VERSION_1;

	if (!device)
		return SOFT_REFUSE(no_memory, ENOMEM, config->name, 0);
	*device = (struct soft_vduse_device){
		.system = control->file.system,
		.key = ++vduse->last_key,
		.api_version = control->api_version,
		.vduse_features = control->vduse_features,
		.features = config->features,
		.device_id = config->device_id,
		.vendor_id = config->vendor_id,
		.vq_align = config->vq_align,
		.n_queues = config->vq_num,
		.n_groups = versioned ? config->ngroups : 1,
		.n_spaces = versioned ? config->nas : 1,
		.config_size = config->config_size,
		.bounce_size = DMAMAP_BOUNCE_SIZE,
		.timeout_ms = VDUSE_TIMEOUT * 1000,
		.link = -1,
	};
	init_locks(device);
	atomic_init(&device->refs, 1);
	TAILQ_INIT(&device->to_read);
	TAILQ_INIT(&device->to_answer);
	strcpy(device->name, config->name);
	strcpy(device->node, config->name);
	for (char *slash = device->node; (slash = strchr(slash, '/'));)
		*slash = '!';
	device->spaces = calloc(device->n_spaces, sizeof(*device->spaces));
	device->group_space = calloc(device->n_groups, sizeof(*device->group_space));
	device->queues = calloc((size_t)device->n_queues + 1, sizeof(*device->queues));
	if (!device->spaces || !device->group_space || !device->queues) {
		device->n_queues = 0;
		free_device(device);
		return SOFT_REFUSE(no_memory, ENOMEM, config->name, config->vq_num);
	}
	for (uint32_t i = 0; i < device->n_queues; i++) {
		struct soft_vduse_queue *queue = &device->queues[i];

		queue->kickfd = queue->trigger = -1;
		soft_vduse_cpus_all(&queue->affinity);
		pthread_mutex_init(&queue->lock, NULL);
		pthread_mutex_init(&queue->irq_lock, NULL);
	}
	device->config = space;
	device->next = vduse->devices;
	vduse->devices = device;
	return 0;
}

/* Two devices cannot have one node; "/" becomes "!" there. */
static int check_name(struct control *control, const char *name)
{
	struct soft_vduse_device *device = control->file.system->vduse.devices;
	char node[VDUSE_NAME_MAX];

	strcpy(node, name);
	for (char *slash = node; (slash = strchr(slash, '/'));)
		*slash = '!';
	if (!strcmp(node, "control"))
		return SOFT_REFUSE(vduse_exists, EEXIST, name, 0);
	for (; device; device = device->next)
		if (!strcmp(device->node, node))
			return SOFT_REFUSE(vduse_exists, EEXIST, name, device->key);
	return 0;
}

/* --------------------------------------- what a device may be made of */

static bool all_zero(const uint32_t *words, size_t n)
{
	while (n && !words[n - 1])
		n--;
	return !n;
}

static int check_between(const char *what, uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least || value > most)
		return SOFT_REFUSE(vduse_value, EINVAL, what, value, least, most);
	return 0;
}

/* features_is_valid() */
static int check_features(const struct vduse_dev_config *config)
{
	static const struct {
		uint32_t device_id; /* 0: any */
		unsigned bit;
		bool wanted;
		const char *name;
	} rules[] = {
		{0, VIRTIO_F_ACCESS_PLATFORM, true, "ACCESS_PLATFORM"},
		{VIRTIO_ID_BLOCK, VIRTIO_BLK_F_CONFIG_WCE, false, "BLK_CONFIG_WCE"},
		{VIRTIO_ID_NET, VIRTIO_NET_F_CTRL_VQ, false, "NET_CTRL_VQ"},
		{VIRTIO_ID_NET, VIRTIO_F_VERSION_1, true, "VERSION_1"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		bool has = config->features >> rules[i].bit & 1;

		if (rules[i].device_id && rules[i].device_id != config->device_id)
			continue;
		if (rules[i].wanted && !has)
			return SOFT_REFUSE(vduse_feature_wanted, EINVAL, rules[i].name,
				config->features, rules[i].bit);
		if (!rules[i].wanted && has)
			return SOFT_REFUSE(vduse_feature_refused, EINVAL, rules[i].name,
				config->features, rules[i].bit);
	}
	return 0;
}

/* vduse_validate_config() */
static int check_config(const struct control *control, const struct vduse_dev_config *config)
{
	uint64_t page = soft_page_size(control->file.system);
	bool versioned = control->api_version >= VDUSE_API_VERSION_1;
	uint32_t least = versioned ? 1 : 0, most = versioned ? MOST_PARTS : 0;
	uint32_t id = config->device_id;
	int error;

	if (!all_zero(config->reserved, sizeof(config->reserved) / sizeof(config->reserved[0])))
		return SOFT_REFUSE(reserved_field, EINVAL, "vduse_dev_config", config->reserved[0]);
	error = check_between("ngroups", config->ngroups, least, most);
	if (!error)
		error = check_between("nas", config->nas, least, most);
	if (error)
		return error;
	if (config->vq_align < VRING_USED_ALIGN_SIZE || config->vq_align > page ||
		config->vq_align & (config->vq_align - 1))
		return SOFT_REFUSE(
			vduse_align, EINVAL, NULL, config->vq_align, VRING_USED_ALIGN_SIZE, page);
	error = check_between("config_size", config->config_size, 0, page);
	if (!error)
		error = check_between("vq_num", config->vq_num, 0, MOST_PARTS);
	if (error)
		return error;
	if (!config->name[0])
		return SOFT_REFUSE(vduse_unnamed, EINVAL, NULL, (unsigned char)config->name[0]);
	if (id != VIRTIO_ID_NET && id != VIRTIO_ID_BLOCK && id != VIRTIO_ID_FS)
		return SOFT_REFUSE(vduse_id, EINVAL, NULL, id);
	return check_features(config);
}

/* --------------------------------------------------------------- requests */

static int get_version(struct control *control, void *argument)
{
	/* Also when the answer cannot be written. */
	if (control->api_version == NOT_ASKED)
		control->api_version = VDUSE_API_VERSION_1;
	return soft_copy_out(
		argument, &control->api_version, sizeof(control->api_version), "a version");
}

static int set_version(struct control *control, void *argument)
{
	uint64_t version;
	int error = soft_copy_in(&version, argument, sizeof(version), "a version");

	if (error)
		return error;
	if (version > VDUSE_API_VERSION_1)
		return SOFT_REFUSE(vduse_version, EINVAL, NULL, version, VDUSE_API_VERSION_1);
	control->api_version = version;
	return 0;
}

static int create_device(struct control *control, void *argument)
{
	struct vduse_dev_config config;
	void *space;
	int error = soft_copy_in(&config, argument, sizeof(config), "vduse_dev_config");

	if (error)
		return error;
	if (control->api_version == NOT_ASKED)
		control->api_version = VDUSE_API_VERSION;
	error = check_config(control, &config);
	if (error)
		return error;
	space = calloc(1, config.config_size + 1u);
	if (!space)
		return SOFT_REFUSE(no_memory, ENOMEM, "a configuration", config.config_size);
	error = soft_copy_in(
		space, (char *)argument + sizeof(config), config.config_size, "a configuration");
	config.name[VDUSE_NAME_MAX - 1] = '\0';
	if (!error && config.device_id == VIRTIO_ID_NET && !soft_capable(CAP_NET_ADMIN))
		error = SOFT_REFUSE(capability, EPERM, "CAP_NET_ADMIN", CAP_NET_ADMIN);
	if (!error)
		error = check_name(control, config.name);
	if (!error)
		error = make_device(control, &config, space);
	if (error)
		free(space);
	return error;
}

/* vduse_destroy_dev() */
static int destroy_device(struct control *control, void *argument)
{
	struct soft_vduse *vduse = &control->file.system->vduse;
	struct soft_vduse_device *device, **link = &vduse->devices;
	char name[VDUSE_NAME_MAX];
	int error = soft_copy_in(name, argument, sizeof(name), "a device's name");

	if (error)
		return error;
	name[VDUSE_NAME_MAX - 1] = '\0';
	device = soft_vduse_find(vduse, name);
	if (!device)
		return SOFT_REFUSE(vduse_none, EINVAL, name, vduse->last_key);
	soft_vduse_notice(device);
	if (device->driver || device->connected)
		return SOFT_REFUSE(
			vduse_used, EBUSY, name, device->connected, device->driver != NULL);
	while (*link != device)
		link = &(*link)->next;
	*link = device->next;
	atomic_store(&device->gone, true);
	soft_vduse_put(device);
	return 0;
}

static int get_features(struct control *control, void *argument)
{
	uint64_t features = FEATURES;

	(void)control;
	return soft_copy_out(argument, &features, sizeof(features), "features");
}

static int set_features(struct control *control, void *argument)
{
	uint64_t features;
	int error = soft_copy_in(&features, argument, sizeof(features), "features");

	if (error)
		return error;
	if (features & ~FEATURES)
		return SOFT_REFUSE(vduse_features, EINVAL, NULL, features, FEATURES);
	control->vduse_features = features;
	return 0;
}

static const struct {
	unsigned request;
	int (*answer)(struct control *control, void *argument);
} requests[] = {
	{VDUSE_GET_API_VERSION, get_version},
	{VDUSE_SET_API_VERSION, set_version},
	{VDUSE_CREATE_DEV, create_device},
	{VDUSE_DESTROY_DEV, destroy_device},
	{VDUSE_GET_FEATURES, get_features},
	{VDUSE_SET_FEATURES, set_features},
};

static int control_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	struct control *control = (struct control *)file;
	int result;

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].request != request)
			continue;
		pthread_mutex_lock(&file->system->vduse.lock);
		result = requests[i].answer(control, argument);
		pthread_mutex_unlock(&file->system->vduse.lock);
		return result;
	}
	return SOFT_REFUSE(request, EINVAL, "/dev/vduse/control", request);
}

static void control_release(struct soft_file *file)
{
	free(file);
}

static const struct soft_file_ops control_ops = {
	.name = "/dev/vduse/control",
	.ioctl = control_ioctl,
	.release = control_release,
};

static int open_control(struct soft_system *system)
{
	struct control *control = calloc(1, sizeof(*control));
	int fd;

	if (!control)
		return SOFT_REFUSE(no_memory, ENOMEM, "/dev/vduse/control", 0);
	soft_file_init(&control->file, &control_ops, system);
	control->api_version = NOT_ASKED;
	fd = soft_file_install(&control->file, "dmamap:vduse-control");
	if (fd < 0)
		free(control);
	return fd;
}

int soft_vduse_open(struct soft_system *system, const char *name, int flags)
{
	struct soft_vduse *vduse = &system->vduse;
	struct soft_vduse_device *device;
	struct soft_vduse_file *opened;
	int error;

	if (!strcmp(name, "control"))
		return open_control(system);
	pthread_mutex_lock(&vduse->lock);
	device = vduse->devices;
	while (device && strcmp(device->node, name))
		device = device->next;
	if (device)
		error = soft_vduse_device_open(device, flags, &opened);
	else
		error = SOFT_REFUSE(vduse_none, ENOENT, name, vduse->last_key);
	pthread_mutex_unlock(&vduse->lock);
	if (error)
		return error;
	/* What had its number before may be released by that, which takes the lock. */
	error = soft_file_install_as(&opened->file, opened->fd, name);
	if (error < 0)
		soft_file_put(&opened->file);
	return error;
}
