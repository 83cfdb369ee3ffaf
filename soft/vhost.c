/* SPDX-License-Identifier: MIT */
/*
 * A driver that gives the daemon memory of its own, with the rules of
 * /dev/vhost-vdpa-N (drivers/vhost/vdpa.c in Linux 7.3; functions are named where
 * their rules are). The daemon is told that its view changed with each map, or
 * once for a batch, and gets the whole of it anew.
 *
 * When the driver goes, what it had mapped stays the daemon's: Linux does not
 * tell VDUSE, and keeps the files open until the next driver maps something.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dmamap/vdpa.h"
#include "soft/pci.h"
#include "soft/vduse.h"

#define WRAP_BIT 0x8000u

struct space {
	bool known; /* something was mapped, or a batch begun */
	struct soft_vduse_map *maps;
	size_t n;
};

struct dmamap_vhost {
	struct soft_vduse_driver *driver;
	pthread_mutex_t lock; /* all that follows; held while the daemon is asked, as Linux does */
	struct space *spaces;
	bool in_batch;
	uint32_t batch; /* the space of it */
	bool suspended;
	uint16_t most; /* descriptors that a queue may have */
	int config_call;
};

static bool running(const struct dmamap_vhost *vhost)
{
	return soft_vduse_get_status(vhost->driver) & VIRTIO_CONFIG_S_DRIVER_OK;
}

/* _compat_vdpa_reset() */
static int reset(struct dmamap_vhost *vhost)
{
	int error;

	vhost->suspended = false;
	vhost->most = 0;
	error = soft_vduse_reset(vhost->driver);
	for (uint32_t i = 0; !error && i < vhost->driver->device->n_queues; i++) {
		uint16_t size = soft_vduse_queue_size(vhost->driver, i);

		vhost->most = size > vhost->most ? size : vhost->most;
	}
	return error;
}

static void free_vhost(struct dmamap_vhost *vhost)
{
	for (uint32_t i = 0; vhost->spaces && i < vhost->driver->device->n_spaces; i++) {
		for (size_t map = 0; map < vhost->spaces[i].n; map++)
			close(vhost->spaces[i].maps[map].fd);
		free(vhost->spaces[i].maps);
	}
	soft_eventfd_put(&vhost->config_call);
	pthread_mutex_destroy(&vhost->lock);
	free(vhost->spaces);
	free(vhost);
}

/* vhost_vdpa_open() */
int dmamap_vhost_open(struct dmamap_vdpa *vdpa, struct dmamap_vhost **out)
{
	struct soft_vduse_driver *driver = soft_vduse_driver_from(vdpa);
	struct soft_vduse_device *device = driver->device;
	struct dmamap_vhost *vhost;
	int error;

	if (atomic_exchange(&driver->bound, true))
		return SOFT_REFUSE(vduse_bound, EBUSY, device->name, device->key);
	vhost = calloc(1, sizeof(*vhost));
	if (!vhost) {
		error = SOFT_REFUSE(no_memory, ENOMEM, "a driver", 0);
		goto unbind;
	}
	vhost->driver = driver;
	vhost->config_call = -1;
	pthread_mutex_init(&vhost->lock, NULL);
	vhost->spaces = calloc(device->n_spaces, sizeof(*vhost->spaces));
	error = vhost->spaces ? reset(vhost) : SOFT_REFUSE(no_memory, ENOMEM, "spaces", 0);
	if (error) {
		free_vhost(vhost);
		goto unbind;
	}
	*out = vhost;
	return 0;
unbind:
	atomic_store(&driver->bound, false);
	return error;
}

/* vhost_vdpa_release() */
void dmamap_vhost_close(struct dmamap_vhost *vhost)
{
	struct soft_vduse_driver *driver;

	if (!vhost)
		return;
	driver = vhost->driver;
	reset(vhost);
	free_vhost(vhost);
	atomic_store(&driver->bound, false);
}

/* ----------------------------------------------------------------- device */

void dmamap_vhost_info(struct dmamap_vhost *vhost, struct dmamap_vhost_info *info)
{
	const struct soft_vduse_device *device = vhost->driver->device;

	pthread_mutex_lock(&vhost->lock);
	*info = (struct dmamap_vhost_info){
		.device_id = device->device_id,
		.features = device->features,
		.config_size = device->config_size,
		.queues = device->n_queues,
		.groups = device->n_groups,
		.spaces = device->n_spaces,
		.queue_size = vhost->most,
		.status = soft_vduse_get_status(vhost->driver),
	};
	pthread_mutex_unlock(&vhost->lock);
}

/* vhost_vdpa_set_status() */
int dmamap_vhost_set_status(struct dmamap_vhost *vhost, uint8_t status)
{
	uint8_t before;
	int error = 0;

	pthread_mutex_lock(&vhost->lock);
	before = soft_vduse_get_status(vhost->driver);
	if (status && before & ~status)
		error = SOFT_REFUSE(vhost_status, EINVAL, NULL, status, before);
	else if (status)
		soft_vduse_set_status(vhost->driver, status);
	else
		error = reset(vhost);
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* vhost_vdpa_set_features() */
int dmamap_vhost_set_features(struct dmamap_vhost *vhost, uint64_t features)
{
	uint8_t status;
	int error = 0;

	pthread_mutex_lock(&vhost->lock);
	status = soft_vduse_get_status(vhost->driver);
	if (status & VIRTIO_CONFIG_S_FEATURES_OK)
		error = SOFT_REFUSE(vduse_running, EBUSY, "features cannot be set", status);
	else
		soft_vduse_set_features(vhost->driver, features);
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* vhost_vdpa_config_validate(), whose errno the caller does not see */
int dmamap_vhost_get_config(struct dmamap_vhost *vhost, uint32_t offset, void *to, uint32_t size)
{
	uint32_t all = vhost->driver->device->config_size;

	if (!size || offset > all || size > all - offset)
		return SOFT_REFUSE(vduse_config_data, EINVAL, NULL, offset, size, all);
	soft_vduse_get_config(vhost->driver, offset, to, size);
	return 0;
}

static void config_changed(void *who)
{
	struct dmamap_vhost *vhost = who;

	if (vhost->config_call >= 0)
		soft_eventfd_signal(vhost->config_call);
}

/* vhost_vdpa_set_config_call() */
int dmamap_vhost_set_config_call(struct dmamap_vhost *vhost, int call)
{
	struct soft_vduse_callback none = {0}, callback = {config_changed, vhost};
	int fd = call < 0 ? -1 : soft_eventfd_get(call, "a configuration's interrupt");

	if (call >= 0 && fd < 0)
		return fd;
	pthread_mutex_lock(&vhost->lock);
	/* Nobody is in the callback from here on. */
	soft_vduse_set_config_callback(vhost->driver, &none);
	soft_eventfd_put(&vhost->config_call);
	vhost->config_call = fd;
	soft_vduse_set_config_callback(vhost->driver, &callback);
	pthread_mutex_unlock(&vhost->lock);
	return 0;
}

/* vhost_vdpa_suspend() */
int dmamap_vhost_suspend(struct dmamap_vhost *vhost)
{
	int error = 0;

	pthread_mutex_lock(&vhost->lock);
	if (running(vhost))
		error = soft_vduse_suspend(vhost->driver);
	vhost->suspended = vhost->suspended || (running(vhost) && !error);
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* VHOST_VDPA_SET_GROUP_ASID, for which a group's number is that of a queue first. */
int dmamap_vhost_set_group_space(struct dmamap_vhost *vhost, unsigned group, uint32_t space)
{
	const struct soft_vduse_device *device = vhost->driver->device;
	int error;

	pthread_mutex_lock(&vhost->lock);
	if (group >= device->n_queues)
		error = SOFT_REFUSE(vduse_queue, ENOBUFS, NULL, group, device->n_queues);
	else if (group >= device->n_groups)
		error = SOFT_REFUSE(vduse_group, EINVAL, NULL, group, device->n_groups);
	else if (space >= device->n_spaces)
		error = SOFT_REFUSE(vduse_space, EINVAL, NULL, space, device->n_spaces);
	else if (running(vhost))
		error = SOFT_REFUSE(vduse_running, EBUSY, "a group cannot move",
			soft_vduse_get_status(vhost->driver));
	else
		error = soft_vduse_set_group_space(vhost->driver, group, space);
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* ------------------------------------------------------------------ memory */

/* The space of a message; as it is made there, or has to be there. Lock held. */
static int find_space(struct dmamap_vhost *vhost, uint32_t space, bool make, struct space **found)
{
	uint32_t all = vhost->driver->device->n_spaces;

	if (space >= all || (!make && !vhost->spaces[space].known))
		return SOFT_REFUSE(vduse_space, EINVAL, NULL, space, all);
	vhost->spaces[space].known = true;
	if (vhost->in_batch && vhost->batch != space)
		return SOFT_REFUSE(vhost_batch, EINVAL, NULL, space, vhost->batch);
	*found = &vhost->spaces[space];
	return 0;
}

/* Lock held. */
static int tell(struct dmamap_vhost *vhost, const struct space *space)
{
	return soft_vduse_set_map(
		vhost->driver, (uint32_t)(space - vhost->spaces), space->maps, space->n);
}

static void remove_map(struct space *space, size_t place)
{
	close(space->maps[place].fd);
	space->n--;
	memmove(&space->maps[place], &space->maps[place + 1],
		(space->n - place) * sizeof(*space->maps));
}

/* vhost_vdpa_process_iotlb_update(), vhost_vdpa_map(). Lock held. */
static int add_map(
	struct dmamap_vhost *vhost, struct space *space, const struct dmamap_vhost_map *map)
{
	struct soft_vduse_map *maps;
	size_t place = 0;
	int fd, error = 0;

	if (map->first > map->last)
		return SOFT_REFUSE(vduse_range, EINVAL, NULL, map->first, map->last);
	while (place < space->n && space->maps[place].last < map->first)
		place++;
	if (place < space->n && space->maps[place].first <= map->last)
		return SOFT_REFUSE(vhost_overlap, EEXIST, NULL, map->first, map->last,
			space->maps[place].first, space->maps[place].last);
	if (space->n == DMAMAP_BOUNCE_IOTLB_MOST)
		return SOFT_REFUSE(vduse_value, ENOSPC, "the number of ranges", space->n + 1, 0,
			DMAMAP_BOUNCE_IOTLB_MOST);
	maps = reallocarray(space->maps, space->n + 1, sizeof(*maps));
	if (!maps)
		return SOFT_REFUSE(no_memory, ENOMEM, "a map", space->n);
	space->maps = maps;
	fd = fcntl(map->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return SOFT_REFUSE(no_descriptor, errno, "a map's file", map->first);
	memmove(&maps[place + 1], &maps[place], (space->n - place) * sizeof(*maps));
	maps[place] =
		(struct soft_vduse_map){map->first, map->last, map->offset, (uint8_t)map->prot, fd};
	space->n++;
	if (!vhost->in_batch)
		error = tell(vhost, space);
	if (error)
		remove_map(space, place);
	return error;
}

int dmamap_vhost_map(
	struct dmamap_vhost *vhost, uint32_t number, const struct dmamap_vhost_map *map)
{
	struct space *space = NULL;
	int error;

	if (!map->prot || map->prot & ~(DMAMAP_READ | DMAMAP_WRITE))
		return SOFT_REFUSE(value, EINVAL, "prot", map->prot);
	pthread_mutex_lock(&vhost->lock);
	error = find_space(vhost, number, true, &space);
	if (!error)
		error = add_map(vhost, space, map);
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* vhost_vdpa_unmap(): what the daemon says of it is not heard. */
int dmamap_vhost_unmap(struct dmamap_vhost *vhost, uint32_t number, uint64_t first, uint64_t last)
{
	struct space *space = NULL;
	int error;

	pthread_mutex_lock(&vhost->lock);
	error = find_space(vhost, number, false, &space);
	for (size_t i = 0; !error && i < space->n;)
		if (space->maps[i].first <= last && space->maps[i].last >= first)
			remove_map(space, i);
		else
			i++;
	if (!error && !vhost->in_batch)
		tell(vhost, space);
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* vhost_vdpa_process_iotlb_msg(), VHOST_IOTLB_BATCH_BEGIN and _END */
int dmamap_vhost_batch(struct dmamap_vhost *vhost, uint32_t number, bool begin)
{
	struct space *space = NULL;
	int error;

	pthread_mutex_lock(&vhost->lock);
	error = find_space(vhost, number, begin, &space);
	if (!error && begin)
		vhost->batch = number;
	else if (!error && vhost->in_batch)
		tell(vhost, space);
	if (!error)
		vhost->in_batch = begin;
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* ------------------------------------------------------------------ queues */

static int check_queue(const struct dmamap_vhost *vhost, unsigned queue)
{
	uint32_t all = vhost->driver->device->n_queues;

	return queue < all ? 0 : SOFT_REFUSE(vduse_queue, ENOBUFS, NULL, queue, all);
}

static bool is_packed(const struct dmamap_vhost *vhost)
{
	return atomic_load(&vhost->driver->device->driver_features) & 1ull << VIRTIO_F_RING_PACKED;
}

static void set_state(struct dmamap_vhost *vhost, unsigned index, uint16_t available, uint16_t used)
{
	struct vduse_vq_state state = {0};

	if (is_packed(vhost))
		state.packed = (struct vduse_vq_state_packed){
			.last_avail_counter = available >> 15,
			.last_avail_idx = available & ~WRAP_BIT,
			.last_used_counter = used >> 15,
			.last_used_idx = used & ~WRAP_BIT,
		};
	else
		state.split.avail_index = available;
	soft_vduse_set_queue_state(vhost->driver, index, &state);
}

/* VHOST_SET_VRING_NUM, _ADDR, _BASE and _CALL */
int dmamap_vhost_set_queue(
	struct dmamap_vhost *vhost, unsigned index, const struct dmamap_vhost_queue *queue)
{
	struct soft_vduse_callback none = {0};
	int call = -1, error = check_queue(vhost, index);

	if (error)
		return error;
	if (queue->call >= 0) {
		call = soft_eventfd_get(queue->call, "a queue's interrupt");
		if (call < 0)
			return call;
	}
	pthread_mutex_lock(&vhost->lock);
	if (!queue->size || queue->size > vhost->most || queue->size & (queue->size - 1))
		error = SOFT_REFUSE(vhost_size, EINVAL, NULL, queue->size, vhost->most);
	else if (running(vhost) && !vhost->suspended)
		error = SOFT_REFUSE(vduse_running, EINVAL, "a queue cannot be moved",
			soft_vduse_get_status(vhost->driver));
	if (!error) {
		soft_vduse_set_queue(vhost->driver, index, queue->size, queue->descriptors,
			queue->driver, queue->device);
		set_state(vhost, index, queue->available, queue->used);
		soft_vduse_set_queue_callback(vhost->driver, index, &none, call);
	}
	pthread_mutex_unlock(&vhost->lock);
	soft_eventfd_put(&call);
	return error;
}

/* VHOST_GET_VRING_BASE */
int dmamap_vhost_get_queue(
	struct dmamap_vhost *vhost, unsigned index, uint16_t *available, uint16_t *used)
{
	struct vduse_vq_state state;
	int error = check_queue(vhost, index);

	if (error)
		return error;
	pthread_mutex_lock(&vhost->lock);
	error = soft_vduse_get_queue_state(vhost->driver, index, &state);
	if (!error && is_packed(vhost)) {
		*available = (uint16_t)(state.packed.last_avail_counter << 15 |
					state.packed.last_avail_idx);
		*used = (uint16_t)(state.packed.last_used_counter << 15 |
				   state.packed.last_used_idx);
	} else if (!error) {
		*available = *used = state.split.avail_index;
	}
	pthread_mutex_unlock(&vhost->lock);
	return error;
}

/* VHOST_VDPA_SET_VRING_ENABLE */
int dmamap_vhost_enable(struct dmamap_vhost *vhost, unsigned index, bool on)
{
	int error = check_queue(vhost, index);

	if (error)
		return error;
	pthread_mutex_lock(&vhost->lock);
	soft_vduse_set_queue_ready(vhost->driver, index, on);
	pthread_mutex_unlock(&vhost->lock);
	return 0;
}

/* handle_vq_kick() */
int dmamap_vhost_kick(struct dmamap_vhost *vhost, unsigned index)
{
	int error = check_queue(vhost, index);

	if (!error)
		soft_vduse_kick(vhost->driver, index);
	return error;
}
