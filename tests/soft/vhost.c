/* SPDX-License-Identifier: MIT */
/*
 * A driver that gives the daemon its own memory, with the rules of
 * drivers/vhost/vdpa.c in Linux 7.3.4. The ring is laid out by hand.
 */
#include <poll.h>
#include <sys/eventfd.h>

#include "tests/soft/virtio_disk.h"

#define MEMORY (64 * KIB)
#define BASE   (1ull << 40) /* its IOVA: no bounce buffer is there */
#define SIZE   8

/* What is in the driver's memory; all at fixed places. */
struct guest {
	struct vring_desc desc[SIZE];
	uint16_t avail[2 + SIZE + 1]; /* flags, index, ring, event */
	uint8_t room[4096];
	_Alignas(4) uint16_t used[2]; /* flags, index */
	struct vring_used_elem used_ring[SIZE];
	uint16_t avail_event;
	struct virtio_blk_outhdr header;
	uint8_t data[512];
	uint8_t status;
};

struct vhost_setup {
	struct setup *disk;
	struct dmamap_vhost *vhost;
	int file, call;
	struct guest *guest;
	struct dmamap_vhost_map map;
};

static struct vhost_setup the_vhost;

static struct vhost_setup *begin(uint64_t vduse_features)
{
	struct vhost_setup *setup = &the_vhost;

	setup->disk = prepare();
	setup->disk->daemon.api_version = 1;
	setup->disk->daemon.vduse_features = vduse_features;
	attach(setup->disk, NULL);
	assert_int_equal(dmamap_vhost_open(setup->disk->vdpa, &setup->vhost), 0);
	setup->file = memfd_create("guest", MFD_CLOEXEC);
	assert_int_equal(ftruncate(setup->file, MEMORY), 0);
	setup->guest = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, setup->file, 0);
	assert_true(setup->guest != MAP_FAILED);
	setup->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	setup->map = (struct dmamap_vhost_map){
		.first = BASE, .last = BASE + MEMORY - 1, .fd = setup->file, .prot = RW};
	return setup;
}

static void end(struct vhost_setup *setup)
{
	dmamap_vhost_close(setup->vhost);
	munmap(setup->guest, MEMORY);
	close(setup->file);
	close(setup->call);
	finish(setup->disk);
}

static uint64_t iova_of(const struct vhost_setup *setup, const void *address)
{
	return BASE + (uint64_t)((const char *)address - (const char *)setup->guest);
}

static struct dmamap_vhost_queue queue_of(const struct vhost_setup *setup)
{
	return (struct dmamap_vhost_queue){
		.size = SIZE,
		.descriptors = iova_of(setup, setup->guest->desc),
		.driver = iova_of(setup, setup->guest->avail),
		.device = iova_of(setup, setup->guest->used),
		.call = setup->call,
	};
}

/* Up to a queue that the daemon serves. */
static void start_queue(struct vhost_setup *setup)
{
	const struct dmamap_vhost_queue queue = queue_of(setup);

	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 3), 0);
	assert_int_equal(dmamap_vhost_set_features(setup->vhost, PLAIN), 0);
	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 11), 0);
	assert_int_equal(dmamap_vhost_map(setup->vhost, 0, &setup->map), 0);
	assert_int_equal(dmamap_vhost_set_queue(setup->vhost, 0, &queue), 0);
	assert_int_equal(dmamap_vhost_enable(setup->vhost, 0, true), 0);
	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 15), 0);
}

static void write_sector(struct vhost_setup *setup, uint64_t sector, uint8_t byte)
{
	struct guest *guest = setup->guest;
	struct pollfd called = {.fd = setup->call, .events = POLLIN};
	uint16_t available, used;
	uint64_t count;

	guest->header = (struct virtio_blk_outhdr){.type = VIRTIO_BLK_T_OUT, .sector = sector};
	memset(guest->data, byte, sizeof(guest->data));
	guest->status = 0xff;
	guest->desc[0] = (struct vring_desc){
		iova_of(setup, &guest->header), sizeof(guest->header), VRING_DESC_F_NEXT, 1};
	guest->desc[1] = (struct vring_desc){
		iova_of(setup, guest->data), sizeof(guest->data), VRING_DESC_F_NEXT, 2};
	guest->desc[2] =
		(struct vring_desc){iova_of(setup, &guest->status), 1, VRING_DESC_F_WRITE, 0};
	guest->avail[2 + guest->avail[1] % SIZE] = 0;
	__atomic_store_n(&guest->avail[1], guest->avail[1] + 1, __ATOMIC_RELEASE);
	assert_int_equal(dmamap_vhost_kick(setup->vhost, 0), 0);
	assert_int_equal(poll(&called, 1, 5000), 1);
	assert_int_equal(read(setup->call, &count, sizeof(count)), sizeof(count));
	assert_int_equal(guest->status, VIRTIO_BLK_S_OK);
	assert_int_equal(dmamap_vhost_get_queue(setup->vhost, 0, &available, &used), 0);
	assert_int_equal(available, guest->avail[1]);
	assert_int_equal(setup->disk->daemon.disk[sector * 512 + 511], byte);
}

/* ---------------------------------------------------------------------- tests */

/* The daemon finds ring and data in memory that is not the bounce buffer. */
static void a_disk_by_hand(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct dmamap_vhost_info info;
	uint16_t available = 0, used = 0;
	uint64_t capacity = 0;

	(void)state;
	dmamap_vhost_info(setup->vhost, &info);
	assert_int_equal(info.device_id, VIRTIO_ID_BLOCK);
	assert_true(info.features == DISK);
	assert_int_equal(info.queues, 2);
	assert_int_equal(info.queue_size, 64);
	assert_int_equal(info.status, 0);
	assert_int_equal(dmamap_vhost_get_config(setup->vhost, 0, &capacity, 8), 0);
	assert_int_equal(capacity, setup->disk->daemon.sectors);
	assert_gives(&setup->disk->rig,
		dmamap_vhost_get_config(setup->vhost, info.config_size - 7, &capacity, 8), EINVAL,
		"vduse_config_data");
	start_queue(setup);
	write_sector(setup, 3, 0x5a);
	write_sector(setup, 4, 0xa5);
	assert_int_equal(dmamap_vhost_get_queue(setup->vhost, 0, &available, &used), 0);
	assert_int_equal(available, 2);
	end(setup);
	assert_int_equal(atomic_load(&setup->disk->daemon.statuses) & 0xff, 0);
}

/* One driver at a time, whichever it is. */
static void a_device_has_one_driver(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct dmamap_vhost *again;

	(void)state;
	assert_gives(&setup->disk->rig, dmamap_vhost_open(setup->disk->vdpa, &again), EBUSY,
		"vduse_bound");
	assert_gives(&setup->disk->rig,
		dmamap_blk_probe(setup->disk->vdpa, NULL, &setup->disk->blk), EBUSY, "vduse_bound");
	start_queue(setup);
	dmamap_vhost_close(setup->vhost);
	/* What it mapped is still there, and in nobody's way. */
	probe(setup->disk, 0);
	assert_int_equal(request(setup->disk, DMAMAP_BLK_FLUSH, 0, NULL, 0), 0);
	setup->vhost = NULL;
	end(setup);
}

/* vhost_vdpa_set_status(), vhost_vdpa_set_features() */
static void the_status_only_grows(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct dmamap_vhost_info info;

	(void)state;
	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 3), 0);
	assert_gives(&setup->disk->rig, dmamap_vhost_set_status(setup->vhost, 1), EINVAL,
		"vhost_status");
	atomic_store(&setup->disk->daemon.refuses_features, true);
	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 11), 0);
	dmamap_vhost_info(setup->vhost, &info);
	assert_int_equal(info.status, 3);
	atomic_store(&setup->disk->daemon.refuses_features, false);
	assert_int_equal(dmamap_vhost_set_features(setup->vhost, 1), 0);
	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 11), 0);
	assert_gives(&setup->disk->rig, dmamap_vhost_set_features(setup->vhost, PLAIN), EBUSY,
		"vduse_running");
	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 0), 0);
	assert_int_equal(dmamap_vhost_set_features(setup->vhost, PLAIN), 0);
	end(setup);
}

/* vhost_vdpa_process_iotlb_msg() */
static void maps_and_their_messages(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct daemon *daemon = &setup->disk->daemon;
	struct dmamap_vhost_map map = setup->map;
	unsigned before = atomic_load(&daemon->messages);

	(void)state;
	assert_gives(&setup->disk->rig, dmamap_vhost_unmap(setup->vhost, 0, 0, UINT64_MAX), EINVAL,
		"vduse_space");
	assert_gives(
		&setup->disk->rig, dmamap_vhost_map(setup->vhost, 1, &map), EINVAL, "vduse_space");
	map.last = map.first - 1;
	assert_gives(
		&setup->disk->rig, dmamap_vhost_map(setup->vhost, 0, &map), EINVAL, "vduse_range");
	map.last = map.first + 8191;
	map.prot = 0;
	assert_gives(&setup->disk->rig, dmamap_vhost_map(setup->vhost, 0, &map), EINVAL, "value");
	map.prot = RW;
	map.fd = -1;
	assert_gives(
		&setup->disk->rig, dmamap_vhost_map(setup->vhost, 0, &map), EBADF, "no_descriptor");
	map.fd = setup->file;
	assert_int_equal(atomic_load(&daemon->messages), before);
	assert_int_equal(dmamap_vhost_map(setup->vhost, 0, &map), 0);
	assert_int_equal(atomic_load(&daemon->messages), before + 1);
	map.first += 8191;
	map.last = map.first;
	assert_gives(&setup->disk->rig, dmamap_vhost_map(setup->vhost, 0, &map), EEXIST,
		"vhost_overlap");
	/* A batch is one message, also when it is of nothing. */
	assert_int_equal(dmamap_vhost_batch(setup->vhost, 0, true), 0);
	for (unsigned i = 1; i < 5; i++) {
		map.first = map.last = BASE + i * 16384;
		assert_int_equal(dmamap_vhost_map(setup->vhost, 0, &map), 0);
	}
	assert_int_equal(dmamap_vhost_unmap(setup->vhost, 0, BASE + 16384, BASE + 32768), 0);
	assert_int_equal(atomic_load(&daemon->messages), before + 1);
	assert_int_equal(dmamap_vhost_batch(setup->vhost, 0, false), 0);
	assert_int_equal(atomic_load(&daemon->messages), before + 2);
	/* No batch, no message. */
	assert_int_equal(dmamap_vhost_batch(setup->vhost, 0, false), 0);
	assert_int_equal(atomic_load(&daemon->messages), before + 2);
	assert_int_equal(dmamap_vhost_unmap(setup->vhost, 0, 0, UINT64_MAX), 0);
	assert_int_equal(atomic_load(&daemon->messages), before + 3);
	end(setup);
}

/* vduse_domain_set_map(): the IOTLB's limit. */
static void as_many_ranges_as_the_iotlb_has(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct dmamap_vhost_map map = setup->map;

	(void)state;
	assert_int_equal(dmamap_vhost_batch(setup->vhost, 0, true), 0);
	for (unsigned i = 0; i < 2048; i++) {
		map.first = map.last = BASE - i * 2;
		assert_int_equal(dmamap_vhost_map(setup->vhost, 0, &map), 0);
	}
	map.first = map.last = BASE + 2;
	assert_gives(
		&setup->disk->rig, dmamap_vhost_map(setup->vhost, 0, &map), ENOSPC, "vduse_value");
	assert_int_equal(dmamap_vhost_unmap(setup->vhost, 0, BASE, BASE), 0);
	assert_int_equal(dmamap_vhost_map(setup->vhost, 0, &map), 0);
	end(setup);
}

/* vhost_vdpa_vring_ioctl() */
static void queues_that_cannot_be(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct dmamap_vhost_queue queue = queue_of(setup);
	uint16_t place;

	(void)state;
	assert_gives(&setup->disk->rig, dmamap_vhost_set_queue(setup->vhost, 2, &queue), ENOBUFS,
		"vduse_queue");
	assert_gives(&setup->disk->rig, dmamap_vhost_get_queue(setup->vhost, 2, &place, &place),
		ENOBUFS, "vduse_queue");
	assert_gives(&setup->disk->rig, dmamap_vhost_enable(setup->vhost, 2, true), ENOBUFS,
		"vduse_queue");
	assert_gives(&setup->disk->rig, dmamap_vhost_kick(setup->vhost, 2), ENOBUFS, "vduse_queue");
	assert_gives(&setup->disk->rig, dmamap_vhost_set_group_space(setup->vhost, 2, 0), ENOBUFS,
		"vduse_queue");
	assert_gives(&setup->disk->rig, dmamap_vhost_set_group_space(setup->vhost, 1, 0), EINVAL,
		"vduse_group");
	assert_gives(&setup->disk->rig, dmamap_vhost_set_group_space(setup->vhost, 0, 1), EINVAL,
		"vduse_space");
	for (unsigned i = 0; i < 3; i++) {
		queue.size = (const uint32_t[]){0, 12, 128}[i];
		assert_gives(&setup->disk->rig, dmamap_vhost_set_queue(setup->vhost, 0, &queue),
			EINVAL, "vhost_size");
	}
	queue.size = SIZE;
	queue.call = setup->file;
	assert_gives(&setup->disk->rig, dmamap_vhost_set_queue(setup->vhost, 0, &queue), EINVAL,
		"eventfd");
	start_queue(setup);
	queue = queue_of(setup);
	assert_gives(&setup->disk->rig, dmamap_vhost_set_queue(setup->vhost, 0, &queue), EINVAL,
		"vduse_running");
	assert_gives(&setup->disk->rig, dmamap_vhost_set_group_space(setup->vhost, 0, 0), EBUSY,
		"vduse_running");
	end(setup);
}

/* The state that the daemon is told, and the one that it tells, of packed rings. */
static void places_of_a_packed_ring(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct dmamap_vhost_queue queue = queue_of(setup);
	struct vduse_vq_info info = {.index = 1};

	(void)state;
	assert_int_equal(
		dmamap_vhost_set_features(setup->vhost, PLAIN | BIT(VIRTIO_F_RING_PACKED)), 0);
	queue.available = 0x8005;
	queue.used = 0x0003;
	assert_int_equal(dmamap_vhost_set_queue(setup->vhost, 1, &queue), 0);
	assert_int_equal(
		rig_ioctl(&setup->disk->rig, setup->disk->daemon.fd, VDUSE_VQ_GET_INFO, &info), 0);
	assert_int_equal(info.num, SIZE);
	assert_true(info.desc_addr == queue.descriptors && info.driver_addr == queue.driver &&
		    info.device_addr == queue.device);
	assert_int_equal(info.packed.last_avail_counter, 1);
	assert_int_equal(info.packed.last_avail_idx, 5);
	assert_int_equal(info.packed.last_used_counter, 0);
	assert_int_equal(info.packed.last_used_idx, 3);
	end(setup);
}

/* vhost_vdpa_suspend(): then a queue may be moved, and goes on after a reset. */
static void suspending(void **state)
{
	struct vhost_setup *setup = begin(BIT(VDUSE_F_SUSPEND));
	struct dmamap_vhost_queue queue = queue_of(setup);
	unsigned before;
	uint16_t available, used;
	uint32_t which = 0;

	(void)state;
	before = atomic_load(&setup->disk->daemon.messages);
	assert_int_equal(dmamap_vhost_suspend(setup->vhost), 0);
	assert_int_equal(atomic_load(&setup->disk->daemon.messages), before);
	start_queue(setup);
	write_sector(setup, 1, 1);
	assert_int_equal(dmamap_vhost_suspend(setup->vhost), 0);
	assert_gives(&setup->disk->rig,
		rig_ioctl(&setup->disk->rig, setup->disk->daemon.fd, VDUSE_VQ_INJECT_IRQ, &which),
		EINVAL, "vduse_idle");
	assert_int_equal(dmamap_vhost_get_queue(setup->vhost, 0, &available, &used), 0);
	assert_int_equal(available, 1);
	assert_int_equal(dmamap_vhost_set_queue(setup->vhost, 0, &queue), 0);
	assert_int_equal(dmamap_vhost_set_status(setup->vhost, 0), 0);
	/* As another machine would go on that it was moved to. */
	queue.available = available;
	assert_int_equal(dmamap_vhost_unmap(setup->vhost, 0, 0, UINT64_MAX), 0);
	start_queue(setup);
	write_sector(setup, 2, 2);
	end(setup);
}

static void nobody_suspends_who_did_not_say_so(void **state)
{
	struct vhost_setup *setup = begin(0);

	(void)state;
	assert_int_equal(dmamap_vhost_suspend(setup->vhost), 0);
	start_queue(setup);
	assert_gives(
		&setup->disk->rig, dmamap_vhost_suspend(setup->vhost), EOPNOTSUPP, "not_provided");
	end(setup);
}

/* vhost_vdpa_set_config_call() */
static void the_configuration_s_interrupt(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct daemon *daemon = &setup->disk->daemon;
	uint64_t count;

	(void)state;
	assert_gives(&setup->disk->rig, dmamap_vhost_set_config_call(setup->vhost, setup->file),
		EINVAL, "eventfd");
	start_queue(setup);
	assert_int_equal(dmamap_vhost_set_config_call(setup->vhost, setup->call), 0);
	assert_int_equal(
		rig_ioctl(&setup->disk->rig, daemon->fd, VDUSE_DEV_INJECT_CONFIG_IRQ, NULL), 0);
	assert_int_equal(read(setup->call, &count, sizeof(count)), sizeof(count));
	assert_int_equal(dmamap_vhost_set_config_call(setup->vhost, -1), 0);
	assert_int_equal(
		rig_ioctl(&setup->disk->rig, daemon->fd, VDUSE_DEV_INJECT_CONFIG_IRQ, NULL), 0);
	assert_int_equal(read(setup->call, &count, sizeof(count)), -1);
	end(setup);
}

/* vduse_vdpa_set_map(): a daemon that refuses, or is gone, sees nothing of it. */
static void a_daemon_that_refuses_a_map(void **state)
{
	struct vhost_setup *setup = begin(0);
	struct vduse_iotlb_entry entry = {.start = BASE, .last = BASE};

	(void)state;
	atomic_store(&setup->disk->daemon.refuses_maps, true);
	assert_gives(&setup->disk->rig, dmamap_vhost_map(setup->vhost, 0, &setup->map), EIO,
		"vduse_refused");
	assert_gives(&setup->disk->rig,
		rig_ioctl(&setup->disk->rig, setup->disk->daemon.fd, VDUSE_IOTLB_GET_FD, &entry),
		EINVAL, "unmap_nothing");
	atomic_store(&setup->disk->daemon.refuses_maps, false);
	/* It overlaps nothing: it was not mapped. */
	start_queue(setup);
	write_sector(setup, 0, 7);
	end(setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_disk_by_hand),
		cmocka_unit_test(a_device_has_one_driver),
		cmocka_unit_test(the_status_only_grows),
		cmocka_unit_test(maps_and_their_messages),
		cmocka_unit_test(as_many_ranges_as_the_iotlb_has),
		cmocka_unit_test(queues_that_cannot_be),
		cmocka_unit_test(places_of_a_packed_ring),
		cmocka_unit_test(suspending),
		cmocka_unit_test(nobody_suspends_who_did_not_say_so),
		cmocka_unit_test(the_configuration_s_interrupt),
		cmocka_unit_test(a_daemon_that_refuses_a_map),
	};

	return cmocka_run_group_tests_name("vhost", tests, NULL, NULL);
}
