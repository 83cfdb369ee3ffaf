/* SPDX-License-Identifier: MIT */
/*
 * dmamap vduse-blk under a driver that gives it memory of its own, as a VMM does
 * through /dev/vhost-vdpa-N, and lays its ring out by hand: requests that make no
 * sense, memory that is replaced under the daemon, and how far it has got.
 */
#include "tests/check.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/vduse.h"
#include "abi/virtio.h"
#include "cli/vduse_blk/device.h"
#include "cli/vduse_blk/guard.h"
#include "dmamap/soft.h"
#include "dmamap/vdpa.h"

#define MIB	 (1ull << 20)
#define MEMORY	 65536ull
#define RING	 (1ull << 40) /* IOVAs of the two ranges */
#define DATA	 (RING + MIB)
#define FEATURES (1ull << VIRTIO_F_ACCESS_PLATFORM | 1ull << VIRTIO_F_VERSION_1)
#define SIZE	 8

struct ring {
	struct vring_desc desc[SIZE];
	uint16_t avail[2 + SIZE + 1]; /* flags, index, ring, event */
	_Alignas(4) uint16_t used[2]; /* flags, index */
	struct vring_used_elem used_ring[SIZE];
	uint16_t avail_event;
};

struct data {
	struct virtio_blk_outhdr header;
	uint8_t bytes[512];
	uint8_t status;
};

struct world {
	char path[64];
	struct dmamap_system *system;
	struct image image;
	struct device *device;
	struct dmamap_vdpa *vdpa;
	struct dmamap_vhost *vhost;
	int call;
	int ring_file, data_file;
	struct ring *ring;
	struct data *data;
	uint16_t used;
};

static void say(void *who, const char *sentence)
{
	(void)who;
	printf("said: %s\n", sentence);
}

static void *memory(int *file)
{
	void *at;

	*file = memfd_create("guest", MFD_CLOEXEC);
	assert_int_equal(ftruncate(*file, MEMORY), 0);
	at = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
	assert_true(at != MAP_FAILED);
	return at;
}

static void show(struct world *world, uint64_t first, int file)
{
	const struct dmamap_vhost_map map = {.first = first,
		.last = first + MEMORY - 1,
		.fd = file,
		.prot = DMAMAP_READ | DMAMAP_WRITE};

	assert_int_equal(dmamap_vhost_map(world->vhost, 0, &map), 0);
}

static void start_driver(struct world *world)
{
	const struct dmamap_vhost_queue queue = {
		.size = SIZE,
		.descriptors = RING,
		.driver = RING + offsetof(struct ring, avail),
		.device = RING + offsetof(struct ring, used),
		.call = world->call,
	};
	struct dmamap_vhost_info info;

	assert_int_equal(dmamap_vdpa_attach(world->system, "disk", NULL, &world->vdpa), 0);
	assert_int_equal(dmamap_vhost_open(world->vdpa, &world->vhost), 0);
	assert_int_equal(dmamap_vhost_set_status(world->vhost, 3), 0);
	assert_int_equal(dmamap_vhost_set_features(world->vhost, FEATURES), 0);
	assert_int_equal(dmamap_vhost_set_status(world->vhost, 11), 0);
	show(world, RING, world->ring_file);
	show(world, DATA, world->data_file);
	assert_int_equal(dmamap_vhost_set_queue(world->vhost, 0, &queue), 0);
	assert_int_equal(dmamap_vhost_enable(world->vhost, 0, true), 0);
	assert_int_equal(dmamap_vhost_set_status(world->vhost, 15), 0);
	dmamap_vhost_info(world->vhost, &info);
	assert_int_equal(info.status, 15);
}

static int start(void **state)
{
	static struct world world;
	const struct device_settings settings = {
		.name = "disk",
		.n_queues = 1,
		.queue_size = 64,
		.patience_ms = 2000,
		.say = say,
	};
	struct complaint complaint = {{0}};
	int fd;

	strcpy(world.path, "/tmp/dmamap-vduse-vhost-XXXXXX");
	fd = mkstemp(world.path);
	assert_int_equal(ftruncate(fd, MIB), 0);
	close(fd);
	assert_int_equal(dmamap_system_soft(NULL, &world.system, NULL), 0);
	guard_install();
	if (image_open(&world.image, world.path, MIB, false, 0, 2000, &complaint) ||
		device_open(&world.device, world.system, &settings, &world.image, &complaint) ||
		device_run(world.device, &complaint))
		fail_msg("%s", complaint.text);
	world.ring = memory(&world.ring_file);
	world.data = memory(&world.data_file);
	world.call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	world.used = 0;
	start_driver(&world);
	*state = &world;
	return 0;
}

static int stop(void **state)
{
	struct world *world = *state;

	dmamap_vhost_close(world->vhost);
	assert_int_equal(dmamap_vdpa_detach(world->vdpa), 0);
	assert_int_equal(device_close(world->device), 0);
	image_close(&world->image);
	dmamap_system_destroy(world->system);
	munmap(world->ring, MEMORY);
	munmap(world->data, MEMORY);
	close(world->ring_file);
	close(world->data_file);
	close(world->call);
	unlink(world->path);
	return 0;
}

/* The chain that begins with descriptor 0 is done: the bytes that were written to it. */
static uint32_t done(struct world *world)
{
	struct ring *ring = world->ring;
	struct pollfd called = {.fd = world->call, .events = POLLIN};
	uint64_t count;

	ring->avail[2 + ring->avail[1] % SIZE] = 0;
	__atomic_store_n(&ring->avail[1], (uint16_t)(ring->avail[1] + 1), __ATOMIC_RELEASE);
	assert_int_equal(dmamap_vhost_kick(world->vhost, 0), 0);
	while (__atomic_load_n(&ring->used[1], __ATOMIC_ACQUIRE) == world->used) {
		assert_int_equal(poll(&called, 1, 5000), 1);
		assert_int_equal(read(world->call, &count, sizeof(count)), sizeof(count));
	}
	world->used++;
	assert_int_equal(ring->used[1], world->used);
	assert_int_equal(ring->used_ring[(world->used - 1) % SIZE].id, 0);
	return ring->used_ring[(world->used - 1) % SIZE].len;
}

/* The three pieces of a write of one sector. */
static void lay_out(struct world *world, uint32_t type, uint8_t byte)
{
	const struct vring_desc desc[] = {
		{DATA + offsetof(struct data, header), sizeof(world->data->header),
			VRING_DESC_F_NEXT, 1},
		{DATA + offsetof(struct data, bytes), sizeof(world->data->bytes), VRING_DESC_F_NEXT,
			2},
		{DATA + offsetof(struct data, status), 1, VRING_DESC_F_WRITE, 0},
	};

	memcpy(world->ring->desc, desc, sizeof(desc));
	world->data->header = (struct virtio_blk_outhdr){.type = type};
	memset(world->data->bytes, byte, sizeof(world->data->bytes));
	world->data->status = 0xff;
}

static void write_is_done(struct world *world, uint8_t byte)
{
	uint8_t on_disk[512];
	FILE *file;

	lay_out(world, VIRTIO_BLK_T_OUT, byte);
	assert_int_equal(done(world), 1);
	assert_int_equal(world->data->status, VIRTIO_BLK_S_OK);
	file = fopen(world->path, "re");
	assert_int_equal(fread(on_disk, 1, sizeof(on_disk), file), sizeof(on_disk));
	fclose(file);
	assert_int_equal(on_disk[0], byte);
	assert_int_equal(on_disk[511], byte);
}

/* Case 35 (libvduse): a request that makes no sense comes back, with an error where there is a
 * place for one, and the next is served. */
static void case_35(void **state)
{
	/* What is wrong with a write, in one of its descriptors. */
	static const struct {
		const char *what;
		unsigned at;
		struct vring_desc desc;
		uint8_t status; /* 0xff: nobody can say */
	} rows[] = {
		{"half a header", 0, {DATA, 8, VRING_DESC_F_NEXT, 2}, VIRTIO_BLK_S_IOERR},
		{"no data", 0, {DATA, 16, VRING_DESC_F_NEXT, 2}, VIRTIO_BLK_S_IOERR},
		{"no status", 2, {DATA + 16 + 512, 1, 0, 0}, 0xff},
		{"a header alone", 0, {DATA, 16, 0, 0}, 0xff},
		{"data nowhere", 1, {DATA - 4096, 512, VRING_DESC_F_NEXT, 2}, VIRTIO_BLK_S_IOERR},
		{"data past the end", 1, {DATA + MEMORY - 100, 512, VRING_DESC_F_NEXT, 2},
			VIRTIO_BLK_S_IOERR},
		{"a header nowhere", 0, {8, 16, VRING_DESC_F_NEXT, 1}, VIRTIO_BLK_S_IOERR},
		{"a loop", 1, {DATA + 16, 512, VRING_DESC_F_NEXT, 0}, 0xff},
		{"an index past the ring", 1, {DATA + 16, 512, VRING_DESC_F_NEXT, 99}, 0xff},
		{"a table that was not negotiated", 1, {DATA + 16, 512, VRING_DESC_F_INDIRECT, 0},
			0xff},
	};
	struct world *world = *state;
	uint8_t byte = 1;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		lay_out(world, VIRTIO_BLK_T_OUT, 0xee);
		world->ring->desc[rows[i].at] = rows[i].desc;
		done(world);
		if (world->data->status != rows[i].status)
			fail_msg("%s: status %u", rows[i].what, world->data->status);
		write_is_done(world, byte++);
	}
	lay_out(world, 77, 0);
	done(world);
	assert_int_equal(world->data->status, VIRTIO_BLK_S_UNSUPP);
	assert_int_equal(atomic_load(&device_counters(world->device, 0)->refused), 11);
}

/* Case 35: a message about a queue that is not there. No driver that goes through the kernel sends
 * one. */
static void case_35_a_queue_that_is_not_there(void **state)
{
	struct vduse_dev_request request = {.type = VDUSE_GET_VQ_STATE, .vq_state.index = 1};
	struct dmamap_vduse_message message;

	(void)state;
	assert_int_equal(dmamap_vduse_decode(&request, sizeof(request), 2, &message), 0);
	assert_int_equal(message.type, DMAMAP_VDUSE_QUEUE_STATE);
	assert_int_equal(dmamap_vduse_decode(&request, sizeof(request), 1, &message), 0);
	assert_int_equal(message.type, DMAMAP_VDUSE_UNKNOWN);
}

/* UPDATE_IOTLB under a running queue: what was mapped is not used any more. */
static void memory_that_is_replaced(void **state)
{
	struct world *world = *state;
	struct data *before = world->data;
	int old = world->data_file;

	write_is_done(world, 0x11);
	world->data = memory(&world->data_file);
	assert_int_equal(dmamap_vhost_batch(world->vhost, 0, true), 0);
	assert_int_equal(dmamap_vhost_unmap(world->vhost, 0, DATA, DATA), 0);
	show(world, DATA, world->data_file);
	assert_int_equal(dmamap_vhost_batch(world->vhost, 0, false), 0);
	memset(before, 0x66, sizeof(*before));
	write_is_done(world, 0x22);
	assert_int_equal(before->status, 0x66);
	munmap(before, MEMORY);
	close(old);
	/* And without any. */
	assert_int_equal(dmamap_vhost_unmap(world->vhost, 0, DATA, DATA), 0);
	lay_out(world, VIRTIO_BLK_T_OUT, 0x33);
	done(world);
	assert_int_equal(world->data->status, 0xff);
	show(world, DATA, world->data_file);
	write_is_done(world, 0x44);
}

static void how_far_it_has_got(void **state)
{
	struct world *world = *state;
	uint16_t available = 9, used = 9;

	assert_int_equal(dmamap_vhost_get_queue(world->vhost, 0, &available, &used), 0);
	assert_int_equal(available, 0);
	write_is_done(world, 1);
	write_is_done(world, 2);
	assert_int_equal(dmamap_vhost_get_queue(world->vhost, 0, &available, &used), 0);
	assert_int_equal(available, 2);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(case_35),
		cmocka_unit_test(case_35_a_queue_that_is_not_there),
		TEST(memory_that_is_replaced),
		TEST(how_far_it_has_got),
	};

	return cmocka_run_group_tests_name("vduse-blk and vhost", tests, NULL, NULL);
}
