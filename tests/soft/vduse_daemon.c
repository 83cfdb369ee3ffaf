/* SPDX-License-Identifier: MIT */
/* The daemon of the VDUSE tests; see vduse_daemon.h. */
#include "tests/soft/vduse_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

static int ask(struct daemon *daemon, unsigned long request, void *argument)
{
	return rig_ioctl(daemon->rig, daemon->fd, request, argument);
}

/* ------------------------------------------------------------------ memory */

static void forget_maps(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->n_maps; i++)
		munmap(daemon->maps[i].mapped, daemon->maps[i].length);
	daemon->n_maps = 0;
}

/* Where @size bytes at an IOVA are; NULL: nowhere, or not in one range. */
static void *at(struct daemon *daemon, uint64_t iova, uint64_t size)
{
	const struct dmamap_system_ops *ops = daemon->rig->system->ops;
	struct vduse_iotlb_entry entry = {.start = iova, .last = iova + size - 1};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	void *mapped = NULL;
	int fd;

	for (unsigned i = 0; i < daemon->n_maps; i++)
		if (iova >= daemon->maps[i].first && iova + size - 1 <= daemon->maps[i].last)
			return daemon->maps[i].at + (iova - daemon->maps[i].first);
	fd = ask(daemon, VDUSE_IOTLB_GET_FD, &entry);
	if (fd < 0)
		return NULL;
	if (iova < entry.start || iova + size - 1 > entry.last || daemon->n_maps == DAEMON_MAPS) {
		ops->close(daemon->rig->system, fd);
		return NULL;
	}
	daemon->maps[daemon->n_maps].first = entry.start;
	daemon->maps[daemon->n_maps].last = entry.last;
	daemon->maps[daemon->n_maps].length =
		(size_t)(entry.last - entry.start + page) & ~(page - 1);
	if (!ops->mmap(daemon->rig->system, NULL, daemon->maps[daemon->n_maps].length,
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, entry.offset, &mapped)) {
		daemon->maps[daemon->n_maps].mapped = mapped;
		daemon->maps[daemon->n_maps].at = mapped;
		daemon->n_maps++;
	}
	ops->close(daemon->rig->system, fd);
	return mapped ? (char *)mapped + (iova - entry.start) : NULL;
}

/* --------------------------------------------------------------------- disk */

struct buffer {
	struct vring_desc pieces[64];
	unsigned n;
};

/* A chain of the ring, or an indirect table; false: it cannot be. */
static bool gather(
	struct daemon *daemon, struct daemon_queue *queue, uint16_t head, struct buffer *buffer)
{
	const struct vring_desc *table = queue->desc;
	unsigned n = queue->num, next = head;

	if (head >= n)
		return false;
	if (table[head].flags & VRING_DESC_F_INDIRECT) {
		n = table[head].len / sizeof(*table);
		table = at(daemon, table[head].addr, table[head].len);
		next = 0;
	}
	for (buffer->n = 0; table && next < n && buffer->n < LENGTH(buffer->pieces);
		next = buffer->pieces[buffer->n - 1].next) {
		buffer->pieces[buffer->n++] = table[next];
		if (!(buffer->pieces[buffer->n - 1].flags & VRING_DESC_F_NEXT))
			return true;
	}
	return false;
}

static bool is_packed(const struct daemon *daemon)
{
	return daemon->negotiated & BIT(VIRTIO_F_RING_PACKED);
}

/* Whose flags show that the driver has put it there. */
static bool is_available(const struct daemon_queue *queue)
{
	uint16_t flags = __atomic_load_n(&queue->packed[queue->last_avail].flags, __ATOMIC_ACQUIRE);

	return (flags >> VRING_PACKED_DESC_F_AVAIL & 1) == queue->wrap &&
	       (flags >> VRING_PACKED_DESC_F_USED & 1) != queue->wrap;
}

static bool has_more(struct daemon *daemon, const struct daemon_queue *queue)
{
	if (atomic_load(&daemon->holds))
		return false;
	if (is_packed(daemon))
		return is_available(queue);
	return __atomic_load_n(&queue->avail->idx, __ATOMIC_ACQUIRE) != queue->last_avail;
}

static void add_packed(struct buffer *buffer, const struct vring_packed_desc *desc)
{
	if (buffer->n < LENGTH(buffer->pieces))
		buffer->pieces[buffer->n++] = (struct vring_desc){
			desc->addr, desc->len, desc->flags & VRING_DESC_F_WRITE, 0};
}

/* The next chain of a packed ring: how many descriptors it has there, and its id. */
static unsigned gather_packed(
	struct daemon *daemon, struct daemon_queue *queue, struct buffer *buffer, uint16_t *id)
{
	const struct vring_packed_desc *desc, *table;
	unsigned n = 0, place = queue->last_avail;

	buffer->n = 0;
	do {
		desc = &queue->packed[place];
		*id = desc->id;
		place = (place + 1) % queue->num;
		n++;
		if (!(desc->flags & VRING_DESC_F_INDIRECT)) {
			add_packed(buffer, desc);
			continue;
		}
		table = at(daemon, desc->addr, desc->len);
		for (unsigned i = 0; table && i < desc->len / sizeof(*table); i++)
			add_packed(buffer, &table[i]);
	} while (desc->flags & VRING_DESC_F_NEXT && n < queue->num);
	return n;
}

static uint8_t zero_ranges(struct daemon *daemon, const uint8_t *data, uint32_t size)
{
	struct virtio_blk_discard_write_zeroes range;

	for (uint32_t done = 0; done + sizeof(range) <= size; done += (uint32_t)sizeof(range)) {
		memcpy(&range, data + done, sizeof(range));
		if (range.sector > daemon->sectors ||
			range.num_sectors > daemon->sectors - range.sector)
			return VIRTIO_BLK_S_IOERR;
		memset(daemon->disk + range.sector * 512, 0, range.num_sectors * 512ull);
	}
	return VIRTIO_BLK_S_OK;
}

/* One piece of a request's data. */
static uint8_t move(
	struct daemon *daemon, uint32_t type, uint64_t offset, uint8_t *data, uint32_t size)
{
	if (type == VIRTIO_BLK_T_GET_ID) {
		strncpy((char *)data, "test disk", size);
		return VIRTIO_BLK_S_OK;
	}
	if (type == VIRTIO_BLK_T_DISCARD || type == VIRTIO_BLK_T_WRITE_ZEROES)
		return zero_ranges(daemon, data, size);
	if (type != VIRTIO_BLK_T_IN && type != VIRTIO_BLK_T_OUT)
		return VIRTIO_BLK_S_UNSUPP;
	if (offset > daemon->sectors * 512 || size > daemon->sectors * 512 - offset)
		return VIRTIO_BLK_S_IOERR;
	if (type == VIRTIO_BLK_T_IN)
		memcpy(data, daemon->disk + offset, size);
	else
		memcpy(daemon->disk + offset, data, size);
	return VIRTIO_BLK_S_OK;
}

/* The bytes that were written. A request that makes no sense is completed, with an error. */
static uint32_t serve(struct daemon *daemon, struct buffer *buffer)
{
	const struct vring_desc *last = &buffer->pieces[buffer->n - 1];
	uint8_t *status = last->flags & VRING_DESC_F_WRITE ? at(daemon, last->addr, 1) : NULL;
	uint8_t result = VIRTIO_BLK_S_OK;
	struct virtio_blk_outhdr header;
	uint64_t offset;
	uint32_t wrote = 1;
	void *first;

	first = buffer->n < 2 || buffer->pieces[0].len < sizeof(header)
			? NULL
			: at(daemon, buffer->pieces[0].addr, sizeof(header));
	if (!status || !first) {
		atomic_fetch_add(&daemon->malformed, 1);
		if (status)
			*status = VIRTIO_BLK_S_IOERR;
		return status ? 1 : 0;
	}
	memcpy(&header, first, sizeof(header));
	offset = header.sector * 512;
	if (header.type == VIRTIO_BLK_T_FLUSH)
		atomic_fetch_add(&daemon->flushes, 1);
	for (unsigned i = 1; i + 1 < buffer->n && result == VIRTIO_BLK_S_OK; i++) {
		const struct vring_desc *piece = &buffer->pieces[i];
		uint8_t *data = at(daemon, piece->addr, piece->len);

		result = data ? move(daemon, header.type, offset, data, piece->len)
			      : VIRTIO_BLK_S_IOERR;
		offset += piece->len;
		wrote += piece->flags & VRING_DESC_F_WRITE ? piece->len : 0;
	}
	*status = result;
	return wrote;
}

/* -------------------------------------------------------------------- rings */

static void interrupt(struct daemon *daemon, unsigned index, bool wanted)
{
	uint32_t which = index;

	if (wanted)
		ask(daemon, VDUSE_VQ_INJECT_IRQ, &which);
}

static void put_used(struct daemon *daemon, unsigned index, uint16_t head, uint32_t length)
{
	struct daemon_queue *queue = &daemon->queues[index];
	uint16_t before = queue->used->idx, now = (uint16_t)(before + 1);
	struct vring_used_elem *used = &queue->used->ring[before % queue->num];
	const uint16_t *event = &queue->avail->ring[queue->num];

	used->id = atomic_load(&daemon->lies) ? queue->num + 5u : head;
	used->len = length;
	__atomic_store_n(&queue->used->idx, now, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (daemon->negotiated & BIT(VIRTIO_RING_F_EVENT_IDX))
		interrupt(daemon, index,
			vring_need_event(__atomic_load_n(event, __ATOMIC_ACQUIRE), now, before));
	else
		interrupt(daemon, index,
			!(__atomic_load_n(&queue->avail->flags, __ATOMIC_ACQUIRE) &
				VRING_AVAIL_F_NO_INTERRUPT));
}

/* @n descriptors from the place on. */
static void put_used_packed(
	struct daemon *daemon, unsigned index, uint16_t id, unsigned n, uint32_t length)
{
	struct daemon_queue *queue = &daemon->queues[index];
	struct vring_packed_desc *used = &queue->packed[queue->last_avail];
	uint16_t before = queue->last_avail, flags, event;

	used->id = atomic_load(&daemon->lies) ? (uint16_t)(queue->num + 5) : id;
	used->len = length;
	flags = queue->wrap ? 1u << VRING_PACKED_DESC_F_AVAIL | 1u << VRING_PACKED_DESC_F_USED : 0;
	__atomic_store_n(&used->flags, flags, __ATOMIC_RELEASE);
	queue->last_avail = (uint16_t)(queue->last_avail + n);
	if (queue->last_avail >= queue->num) {
		queue->last_avail = (uint16_t)(queue->last_avail - queue->num);
		queue->wrap = !queue->wrap;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	flags = __atomic_load_n(&queue->driver->flags, __ATOMIC_ACQUIRE);
	event = __atomic_load_n(&queue->driver->off_wrap, __ATOMIC_RELAXED);
	if (flags != VRING_PACKED_EVENT_FLAG_DESC) {
		interrupt(daemon, index, flags != VRING_PACKED_EVENT_FLAG_DISABLE);
		return;
	}
	/* The event's place, on the scale of this round. */
	n = event & 0x7fff;
	if (event >> 15 != queue->wrap)
		n -= queue->num;
	if (before > queue->last_avail)
		before = (uint16_t)(before - queue->num);
	interrupt(daemon, index, vring_need_event((uint16_t)n, queue->last_avail, before));
}

static void serve_next(struct daemon *daemon, unsigned index)
{
	struct daemon_queue *queue = &daemon->queues[index];
	struct buffer buffer;
	uint32_t length = 0;
	uint16_t head;
	unsigned n = 0;
	bool good;

	atomic_fetch_add(&daemon->requests, 1);
	if (atomic_load(&daemon->delay_us))
		usleep((useconds_t)atomic_load(&daemon->delay_us));
	if (is_packed(daemon)) {
		n = gather_packed(daemon, queue, &buffer, &head);
		good = buffer.n;
	} else {
		head = queue->avail->ring[queue->last_avail++ % queue->num];
		good = gather(daemon, queue, head, &buffer);
	}
	if (good)
		length = serve(daemon, &buffer);
	else
		atomic_fetch_add(&daemon->malformed, 1);
	if (is_packed(daemon))
		put_used_packed(daemon, index, head, n, length);
	else
		put_used(daemon, index, head, length);
}

static void serve_queue(struct daemon *daemon, unsigned index)
{
	struct daemon_queue *queue = &daemon->queues[index];

	do {
		while (has_more(daemon, queue))
			serve_next(daemon, index);
		if (!is_packed(daemon)) {
			__atomic_store_n((uint16_t *)(void *)&queue->used->ring[queue->num],
				queue->last_avail, __ATOMIC_RELEASE);
		} else if (daemon->negotiated & BIT(VIRTIO_RING_F_EVENT_IDX)) {
			__atomic_store_n(&queue->device->off_wrap,
				(uint16_t)(queue->last_avail | queue->wrap << 15),
				__ATOMIC_RELEASE);
			__atomic_store_n(&queue->device->flags, VRING_PACKED_EVENT_FLAG_DESC,
				__ATOMIC_RELEASE);
		}
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	} while (has_more(daemon, queue));
}

/* Where the driver put a queue; what the one before us did not finish is done @again. */
static void take_queue(struct daemon *daemon, unsigned index, bool again)
{
	struct daemon_queue *queue = &daemon->queues[index];
	struct vduse_vq_info info = {.index = index};
	struct vduse_vq_eventfd kick = {.index = index};

	assert_int_equal(ask(daemon, VDUSE_DEV_GET_FEATURES, &daemon->negotiated), 0);
	assert_int_equal(ask(daemon, VDUSE_VQ_GET_INFO, &info), 0);
	if (!info.ready)
		return;
	queue->num = (uint16_t)info.num;
	queue->desc = at(daemon, info.desc_addr, info.num * sizeof(struct vring_desc));
	queue->avail = at(daemon, info.driver_addr, is_packed(daemon) ? 4 : 6 + 2ull * info.num);
	queue->used = at(daemon, info.device_addr, is_packed(daemon) ? 4 : 6 + 8ull * info.num);
	assert_true(queue->desc && queue->avail && queue->used);
	if (!is_packed(daemon)) {
		queue->last_avail = queue->used->idx;
	} else if (!again) {
		queue->last_avail = info.packed.last_avail_idx;
		queue->wrap = info.packed.last_avail_counter;
	}
	queue->live = true;
	if (queue->kick < 0)
		queue->kick = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	kick.fd = queue->kick;
	assert_int_equal(ask(daemon, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
}

static void drop_queues(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->n_queues; i++) {
		if (daemon->queues[i].kick >= 0)
			close(daemon->queues[i].kick);
		daemon->queues[i].kick = -1;
		daemon->queues[i].live = false;
	}
	forget_maps(daemon);
}

/* ----------------------------------------------------------------- messages */

static void set_status(struct daemon *daemon, uint8_t status, struct vduse_dev_response *response)
{
	atomic_store(&daemon->statuses, atomic_load(&daemon->statuses) << 8 | status);
	if (atomic_load(&daemon->refuses_features) && status & VIRTIO_CONFIG_S_FEATURES_OK)
		response->result = VDUSE_REQ_RESULT_FAILED;
	else if (status & VIRTIO_CONFIG_S_DRIVER_OK)
		for (unsigned i = 0; i < daemon->n_queues; i++)
			take_queue(daemon, i, false);
	else if (!status)
		drop_queues(daemon);
}

static void answer(struct daemon *daemon)
{
	const struct dmamap_system_ops *ops = daemon->rig->system->ops;
	struct vduse_dev_request request;
	struct vduse_dev_response response = {0};
	ssize_t n = daemon->native
			    ? read(daemon->fd, &request, sizeof(request))
			    : ops->read(daemon->rig->system, daemon->fd, &request, sizeof(request));

	if (n != (ssize_t)sizeof(request))
		return;
	atomic_fetch_add(&daemon->messages, 1);
	if (atomic_load(&daemon->silent))
		return;
	response.request_id = request.request_id;
	switch (request.type) {
	case VDUSE_GET_VQ_STATE:
		response.vq_state.index = request.vq_state.index;
		if (request.vq_state.index < daemon->n_queues)
			response.vq_state.split.avail_index =
				daemon->queues[request.vq_state.index].last_avail;
		else
			response.result = VDUSE_REQ_RESULT_FAILED;
		break;
	case VDUSE_SET_STATUS:
		set_status(daemon, request.s.status, &response);
		break;
	case VDUSE_UPDATE_IOTLB:
		forget_maps(daemon);
		if (atomic_load(&daemon->refuses_maps))
			response.result = VDUSE_REQ_RESULT_FAILED;
		break;
	case VDUSE_SET_VQ_READY:
		atomic_store(&daemon->readies,
			atomic_load(&daemon->readies) << 8 |
				(request.vq_ready.num << 1 | request.vq_ready.ready));
		break;
	default:
		break;
	}
	n = daemon->native
		    ? write(daemon->fd, &response, sizeof(response))
		    : ops->write(daemon->rig->system, daemon->fd, &response, sizeof(response));
	(void)n;
}

/* ------------------------------------------------------------------- thread */

static void *run(void *argument)
{
	struct daemon *daemon = argument;
	struct pollfd fds[2 + DAEMON_QUEUES];
	uint64_t count;

	for (;;) {
		fds[0] = (struct pollfd){.fd = daemon->stop, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = daemon->fd, .events = POLLIN | POLLRDHUP};
		for (unsigned i = 0; i < daemon->n_queues; i++)
			fds[2 + i] =
				(struct pollfd){.fd = daemon->queues[i].kick, .events = POLLIN};
		if (poll(fds, 2 + daemon->n_queues, -1) < 0)
			continue;
		if (fds[0].revents)
			return NULL;
		/* Requests first: a queue may be gone after a message. */
		for (unsigned i = 0; i < daemon->n_queues; i++)
			if (fds[2 + i].revents & POLLIN && daemon->queues[i].live &&
				read(daemon->queues[i].kick, &count, sizeof(count)) > 0)
				serve_queue(daemon, i);
		/* Of a broken device there is nothing to read. */
		if (fds[1].revents & POLLRDHUP)
			return NULL;
		if (fds[1].revents & POLLIN)
			answer(daemon);
	}
}

void daemon_init(struct daemon *daemon, struct rig *rig, const char *name)
{
	*daemon = (struct daemon){
		.rig = rig,
		.name = name,
		.features = DISK,
		.n_queues = 2,
		.queue_size = 64,
		.sectors = 4 * MIB / 512,
		.control = -1,
		.fd = -1,
	};
	for (unsigned i = 0; i < DAEMON_QUEUES; i++)
		daemon->queues[i].kick = -1;
}

void daemon_create(struct daemon *daemon)
{
	const struct virtio_blk_config blk = {
		.capacity = daemon->sectors,
		.seg_max = 16,
		.num_queues = (uint16_t)daemon->n_queues,
		.max_discard_sectors = 1 << 16,
		.max_discard_seg = 4,
		.max_write_zeroes_sectors = 1 << 16,
		.max_write_zeroes_seg = 4,
	};
	union {
		struct vduse_dev_config is;
		uint8_t bytes[sizeof(struct vduse_dev_config) + sizeof(blk)];
	} config = {
		.is.device_id = VIRTIO_ID_BLOCK,
		.is.features = daemon->features,
		.is.vq_num = daemon->n_queues,
		.is.vq_align = 4096,
		.is.ngroups = daemon->api_version ? 1 : 0,
		.is.nas = daemon->api_version ? 1 : 0,
		.is.config_size = sizeof(blk),
	};

	memcpy(config.bytes + sizeof(config.is), &blk, sizeof(blk));
	daemon->disk = calloc(daemon->sectors, 512);
	assert_non_null(daemon->disk);
	daemon->control = rig_open(daemon->rig, "/dev/vduse/control");
	assert_true(daemon->control >= 0);
	strcpy(config.is.name, daemon->name);
	assert_int_equal(rig_ioctl(daemon->rig, daemon->control, VDUSE_SET_API_VERSION,
				 &daemon->api_version),
		0);
	assert_int_equal(rig_ioctl(daemon->rig, daemon->control, VDUSE_SET_FEATURES,
				 &daemon->vduse_features),
		0);
	assert_int_equal(rig_ioctl(daemon->rig, daemon->control, VDUSE_CREATE_DEV, &config), 0);
}

void daemon_start(struct daemon *daemon)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/vduse/%s", daemon->name);
	daemon->fd = rig_open(daemon->rig, path);
	assert_true(daemon->fd >= 0);
	daemon->stop = eventfd(0, EFD_CLOEXEC);
	for (uint32_t i = 0; i < daemon->n_queues; i++) {
		struct vduse_vq_config config = {.index = i, .max_size = daemon->queue_size};
		struct vduse_vq_info info = {.index = i};

		assert_int_equal(ask(daemon, VDUSE_VQ_GET_INFO, &info), 0);
		if (info.ready)
			take_queue(daemon, i, true);
		else
			assert_int_equal(ask(daemon, VDUSE_VQ_SETUP, &config), 0);
	}
	assert_int_equal(pthread_create(&daemon->thread, NULL, run, daemon), 0);
	daemon->running = true;
}

void daemon_kill(struct daemon *daemon)
{
	uint64_t one = 1;

	if (!daemon->running)
		return;
	assert_int_equal(write(daemon->stop, &one, sizeof(one)), sizeof(one));
	pthread_join(daemon->thread, NULL);
	daemon->running = false;
	close(daemon->stop);
	drop_queues(daemon);
	if (daemon->native) {
		/* Behind the system's back, as a process that dies would. */
		close(daemon->fd);
		daemon->fd = -1;
	} else {
		rig_close(daemon->rig, &daemon->fd);
	}
}

void daemon_finish(struct daemon *daemon)
{
	char name[VDUSE_NAME_MAX] = "";

	daemon_kill(daemon);
	strcpy(name, daemon->name);
	assert_int_equal(rig_ioctl(daemon->rig, daemon->control, VDUSE_DESTROY_DEV, name), 0);
	rig_close(daemon->rig, &daemon->control);
	free(daemon->disk);
}
