/* SPDX-License-Identifier: MIT */
/*
 * What is done with a VDUSE device on the other side: it is attached
 * (vdpa_dev_add() in vduse_dev.c), and a bus driver calls its operations
 * (vduse_vdpa_*()). What the daemon has a say in is asked of it.
 *
 * A status that the daemon refuses is not stored: the driver reads the old one.
 * A reset happens here whatever the daemon answers.
 */
#include "soft/vduse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dmamap/vdpa.h"
#include "soft/pci.h"

struct dmamap_vdpa {
	struct soft_vduse_driver driver;
};

struct soft_vduse_driver *soft_vduse_driver_from(struct dmamap_vdpa *vdpa)
{
	return &vdpa->driver;
}

/* ----------------------------------------------------------------- attach */

/* vduse_dev_is_ready() */
static int check_queues(struct soft_vduse_device *device)
{
	unsigned max;

	for (uint32_t i = 0; i < device->n_queues; i++) {
		pthread_mutex_lock(&device->queues[i].lock);
		max = device->queues[i].max;
		pthread_mutex_unlock(&device->queues[i].lock);
		if (!max)
			return SOFT_REFUSE(vduse_queue_unset, EINVAL, device->name, i);
	}
	return 0;
}

static void bounce_config(const struct soft_vduse_device *device,
	const struct dmamap_vdpa_config *config, struct dmamap_bounce_config *bounce)
{
	bool newest = config->as_kernel >= DMAMAP_KERNEL(6, 19);

	*bounce = (struct dmamap_bounce_config){
		.page_shift = config->page_shift ? config->page_shift
						 : device->system->machine.page_shift,
		.unit_shift = config->unit_shift,
		.caches = config->caches,
		.magazine = config->magazine,
		.keep_stale = config->as_kernel != 0,
		.quirks = newest ? DMAMAP_BOUNCE_QUIRKS_7_3 : 0,
	};
	if (!bounce->unit_shift && config->as_kernel && !newest)
		bounce->unit_shift = bounce->page_shift;
}

/* bounce_size_store(). memory_lock held. */
static int set_bounce_size(struct soft_vduse_device *device, uint64_t size, unsigned page_shift)
{
	if (size < VDUSE_BOUNCE_LEAST || size > VDUSE_BOUNCE_MOST)
		return SOFT_REFUSE(vduse_value, EINVAL, "bounce_size", size, VDUSE_BOUNCE_LEAST,
			VDUSE_BOUNCE_MOST);
	size &= ~((1ull << page_shift) - 1);
	if (device->spaces[0].bounce && size != device->bounce_size)
		return SOFT_REFUSE(vduse_attached, EPERM, device->name, device->key);
	device->bounce_size = size;
	return 0;
}

static int prepare(struct soft_vduse_device *device, const struct dmamap_vdpa_config *config)
{
	struct dmamap_bounce_config bounce;
	int error = 0;

	bounce_config(device, config, &bounce);
	pthread_mutex_lock(&device->memory_lock);
	if (config->bounce_size)
		error = set_bounce_size(device, config->bounce_size, bounce.page_shift);
	if (!error)
		error = soft_vduse_spaces_create(device, &bounce);
	pthread_mutex_unlock(&device->memory_lock);
	if (!error && config->timeout_ms)
		atomic_store(&device->timeout_ms,
			config->timeout_ms == UINT32_MAX ? 0 : config->timeout_ms);
	return error;
}

int dmamap_vdpa_attach(struct dmamap_system *base, const char *name,
	const struct dmamap_vdpa_config *given, struct dmamap_vdpa **out)
{
	static const struct dmamap_vdpa_config usual;
	struct soft_system *system = soft_system_from(base);
	const struct dmamap_vdpa_config *config = given ? given : &usual;
	struct soft_vduse_device *device;
	struct dmamap_vdpa *vdpa;
	int error;

	if (!system)
		return -EINVAL;
	vdpa = calloc(1, sizeof(*vdpa));
	if (!vdpa)
		return SOFT_REFUSE(no_memory, ENOMEM, name, 0);
	pthread_mutex_lock(&system->vduse.lock);
	device = soft_vduse_find(&system->vduse, name);
	if (!device)
		error = SOFT_REFUSE(vduse_none, EINVAL, name, system->vduse.last_key);
	else
		error = check_queues(device);
	if (!error && device->driver)
		error = SOFT_REFUSE(vduse_attached, EEXIST, name, device->key);
	if (!error)
		error = prepare(device, config);
	if (!error) {
		device->driver = &vdpa->driver;
		vdpa->driver.device = device;
		vdpa->driver.as_kernel = config->as_kernel;
		atomic_fetch_add(&device->refs, 1);
		*out = vdpa;
	}
	pthread_mutex_unlock(&system->vduse.lock);
	if (error)
		free(vdpa);
	return error;
}

int dmamap_vdpa_detach(struct dmamap_vdpa *vdpa)
{
	struct soft_vduse_device *device = vdpa->driver.device;
	struct soft_system *system = device->system;

	if (atomic_load(&vdpa->driver.bound))
		return SOFT_REFUSE(vduse_bound, EBUSY, device->name, device->key);
	pthread_mutex_lock(&system->vduse.lock);
	device->driver = NULL;
	pthread_mutex_unlock(&system->vduse.lock);
	soft_vduse_put(device);
	free(vdpa);
	return 0;
}

bool dmamap_vdpa_broken(const struct dmamap_vdpa *vdpa)
{
	return atomic_load(&vdpa->driver.device->broken);
}

struct dmamap_bounce *dmamap_vdpa_bounce(struct dmamap_vdpa *vdpa, unsigned space)
{
	struct soft_vduse_device *device = vdpa->driver.device;

	return space < device->n_spaces ? device->spaces[space].bounce : NULL;
}

/* ----------------------------------------------------------------- device */

uint8_t soft_vduse_get_status(struct soft_vduse_driver *driver)
{
	return atomic_load(&driver->device->status);
}

static int ask_status(struct soft_vduse_device *device, uint8_t status)
{
	struct soft_vduse_message message = {.request.type = VDUSE_SET_STATUS};

	message.request.s.status = status;
	return soft_vduse_ask(device, &message);
}

void soft_vduse_set_status(struct soft_vduse_driver *driver, uint8_t status)
{
	if (!ask_status(driver->device, status))
		atomic_store(&driver->device->status, status);
}

int soft_vduse_reset(struct soft_vduse_driver *driver)
{
	int error = ask_status(driver->device, 0);

	soft_vduse_device_reset(driver->device);
	return error;
}

int soft_vduse_suspend(struct soft_vduse_driver *driver)
{
	struct soft_vduse_device *device = driver->device;
	struct soft_vduse_message message = {.request.type = VDUSE_SUSPEND};
	int error;

	if (!(device->vduse_features & 1ull << VDUSE_F_SUSPEND))
		return SOFT_REFUSE(not_provided, EOPNOTSUPP, "suspend, which was not set,", 0);
	error = soft_vduse_ask(device, &message);
	if (!error) {
		/* Whoever kicks or interrupts now has finished when this is through. */
		pthread_rwlock_wrlock(&device->state_lock);
		device->suspended = true;
		pthread_rwlock_unlock(&device->state_lock);
	}
	return error;
}

void soft_vduse_set_features(struct soft_vduse_driver *driver, uint64_t features)
{
	atomic_store(&driver->device->driver_features, features);
}

/* vduse_vdpa_get_config(): zeros past its end. */
void soft_vduse_get_config(
	struct soft_vduse_driver *driver, uint32_t offset, void *to, uint32_t size)
{
	struct soft_vduse_device *device = driver->device;

	memset(to, 0, size);
	if (offset > device->config_size)
		return;
	if (size > device->config_size - offset)
		size = device->config_size - offset;
	pthread_mutex_lock(&device->config_lock);
	memcpy(to, (char *)device->config + offset, size);
	pthread_mutex_unlock(&device->config_lock);
}

void soft_vduse_set_config_callback(
	struct soft_vduse_driver *driver, const struct soft_vduse_callback *callback)
{
	pthread_rwlock_wrlock(&driver->device->state_lock);
	driver->device->config_callback = *callback;
	pthread_rwlock_unlock(&driver->device->state_lock);
}

int soft_vduse_set_group_space(struct soft_vduse_driver *driver, unsigned group, uint32_t space)
{
	struct soft_vduse_device *device = driver->device;
	struct soft_vduse_message message = {.request.type = VDUSE_SET_VQ_GROUP_ASID};
	int error;

	if (device->api_version < VDUSE_API_VERSION_1 || space >= device->n_spaces)
		return SOFT_REFUSE(vduse_space, EINVAL, NULL, space, device->n_spaces);
	message.request.vq_group_asid.group = group;
	message.request.vq_group_asid.asid = space;
	error = soft_vduse_ask(device, &message);
	if (!error)
		atomic_store(&device->group_space[group], space);
	return error;
}

/* ----------------------------------------------------------------- queues */

uint16_t soft_vduse_queue_size(struct soft_vduse_driver *driver, unsigned index)
{
	struct soft_vduse_queue *queue = &driver->device->queues[index];
	uint16_t size;

	pthread_mutex_lock(&queue->lock);
	size = queue->is.num ? (uint16_t)queue->is.num : queue->max;
	pthread_mutex_unlock(&queue->lock);
	return size;
}

void soft_vduse_set_queue(struct soft_vduse_driver *driver, unsigned index, uint32_t num,
	uint64_t desc, uint64_t avail, uint64_t used)
{
	struct soft_vduse_queue *queue = &driver->device->queues[index];

	pthread_mutex_lock(&queue->lock);
	queue->is.num = num;
	queue->is.desc_addr = desc;
	queue->is.driver_addr = avail;
	queue->is.device_addr = used;
	pthread_mutex_unlock(&queue->lock);
}

void soft_vduse_set_queue_callback(struct soft_vduse_driver *driver, unsigned index,
	const struct soft_vduse_callback *callback, int trigger)
{
	struct soft_vduse_queue *queue = &driver->device->queues[index];

	pthread_mutex_lock(&queue->irq_lock);
	queue->callback = *callback;
	soft_eventfd_put(&queue->trigger);
	if (trigger >= 0)
		queue->trigger = fcntl(trigger, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&queue->irq_lock);
}

void soft_vduse_set_queue_affinity(
	struct soft_vduse_driver *driver, unsigned index, const cpu_set_t *mask)
{
	struct soft_vduse_queue *queue = &driver->device->queues[index];

	pthread_mutex_lock(&queue->irq_lock);
	queue->affinity = *mask;
	pthread_mutex_unlock(&queue->irq_lock);
}

static bool packed(const struct soft_vduse_device *device)
{
	return atomic_load(&device->driver_features) & 1ull << VIRTIO_F_RING_PACKED;
}

void soft_vduse_set_queue_state(
	struct soft_vduse_driver *driver, unsigned index, const struct vduse_vq_state *state)
{
	struct soft_vduse_queue *queue = &driver->device->queues[index];

	pthread_mutex_lock(&queue->lock);
	if (packed(driver->device))
		queue->is.packed = state->packed;
	else
		queue->is.split = state->split;
	pthread_mutex_unlock(&queue->lock);
}

int soft_vduse_get_queue_state(
	struct soft_vduse_driver *driver, unsigned index, struct vduse_vq_state *state)
{
	struct soft_vduse_message message = {.request.type = VDUSE_GET_VQ_STATE};
	const struct vduse_vq_state_packed *answer = &message.response.vq_state.packed;
	int error;

	message.request.vq_state.index = index;
	error = soft_vduse_ask(driver->device, &message);
	if (error)
		return error;
	if (packed(driver->device))
		state->packed = (struct vduse_vq_state_packed){
			.last_avail_counter = answer->last_avail_counter & 1,
			.last_avail_idx = answer->last_avail_idx & 0x7fff,
			.last_used_counter = answer->last_used_counter & 1,
			.last_used_idx = answer->last_used_idx & 0x7fff,
		};
	else
		state->split = message.response.vq_state.split;
	return 0;
}

void soft_vduse_set_queue_ready(struct soft_vduse_driver *driver, unsigned index, bool ready)
{
	struct soft_vduse_device *device = driver->device;
	struct soft_vduse_queue *queue = &device->queues[index];
	struct soft_vduse_message message = {.request.type = VDUSE_SET_VQ_READY};

	if (device->vduse_features & 1ull << VDUSE_F_QUEUE_READY) {
		message.request.vq_ready.num = index;
		message.request.vq_ready.ready = ready;
		if (soft_vduse_ask(device, &message)) {
			/* The driver cannot be told: it has no way to hear of it. */
			soft_vduse_break(device);
			return;
		}
	}
	pthread_mutex_lock(&queue->lock);
	atomic_store(&queue->ready, ready);
	pthread_mutex_unlock(&queue->lock);
}

bool soft_vduse_get_queue_ready(struct soft_vduse_driver *driver, unsigned index)
{
	return atomic_load(&driver->device->queues[index].ready);
}

/* vduse_vq_kick() */
void soft_vduse_kick(struct soft_vduse_driver *driver, unsigned index)
{
	struct soft_vduse_device *device = driver->device;
	struct soft_vduse_queue *queue = &device->queues[index];

	pthread_rwlock_rdlock(&device->state_lock);
	pthread_mutex_lock(&queue->lock);
	if (!device->suspended && atomic_load(&queue->ready)) {
		if (queue->kickfd >= 0)
			soft_eventfd_signal(queue->kickfd);
		else
			queue->kicked = true;
	}
	pthread_mutex_unlock(&queue->lock);
	pthread_rwlock_unlock(&device->state_lock);
}

struct dmamap_bounce *soft_vduse_queue_bounce(struct soft_vduse_driver *driver, unsigned index)
{
	struct soft_vduse_device *device = driver->device;
	uint32_t group = atomic_load(&device->queues[index].group);

	return device->spaces[atomic_load(&device->group_space[group])].bounce;
}
