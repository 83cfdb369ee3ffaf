/* SPDX-License-Identifier: MIT */
/*
 * dmamap vduse-blk as a whole: its device, queues and threads on the soft
 * system, and the soft system's driver that reads and writes the disk.
 */
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi/virtio.h"
#include "cli/vduse_blk/device.h"
#include "cli/vduse_blk/guard.h"
#include "dmamap/soft.h"
#include "dmamap/vdpa.h"

#define MIB (1ull << 20)

/*
 * With umem, driver and device see the bounce memory at one address and the
 * rings at two, so that ThreadSanitizer sees the data but not what orders it.
 */
#if defined(__SANITIZE_THREAD__)
#define UMEM false
#else
#define UMEM true
#endif

/* An image, a disk made of it, and a driver on it. */
struct world {
	char folder[64];
	char path[96];
	char log[96];
	struct dmamap_system *system;
	struct image image;
	struct device *device;
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
	struct device_settings settings;
	struct dmamap_vdpa_config attach;
	struct dmamap_blk_config driver;
	uint64_t bytes;
	bool read_only;
	enum image_direct direct;
	unsigned said;
};

static void say(void *who, const char *sentence)
{
	struct world *world = who;

	printf("said: %s\n", sentence);
	world->said++;
}

static void world_start(struct world *world)
{
	strcpy(world->folder, "/tmp/dmamap-vduse-blk-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->path, sizeof(world->path), "%s/image", world->folder);
	snprintf(world->log, sizeof(world->log), "%s/log", world->folder);
	world->settings = (struct device_settings){
		.name = "disk",
		.log = world->log,
		.n_queues = 2,
		.queue_size = 64,
		.umem = UMEM,
		.poll_ns = 20000,
		.patience_ms = 2000,
		.say = say,
		.who = world,
	};
	world->bytes = 16 * MIB;
	assert_int_equal(dmamap_system_soft(NULL, &world->system, NULL), 0);
	guard_install();
}

static void serve(struct world *world)
{
	struct complaint complaint = {{0}};

	if (image_open(&world->image, world->path, world->read_only ? 0 : world->bytes,
		    world->read_only, world->direct, 2000, &complaint))
		fail_msg("%s", complaint.text);
	if (device_open(
		    &world->device, world->system, &world->settings, &world->image, &complaint) ||
		device_run(world->device, &complaint))
		fail_msg("%s", complaint.text);
}

static void probe(struct world *world)
{
	assert_int_equal(
		dmamap_vdpa_attach(world->system, "disk", &world->attach, &world->vdpa), 0);
	assert_int_equal(dmamap_blk_probe(world->vdpa, &world->driver, &world->blk), 0);
}

static void removed(struct world *world)
{
	dmamap_blk_remove(world->blk);
	world->blk = NULL;
	assert_int_equal(dmamap_vdpa_detach(world->vdpa), 0);
	world->vdpa = NULL;
}

static void served(struct world *world)
{
	assert_int_equal(device_close(world->device), 0);
	world->device = NULL;
	image_close(&world->image);
}

static void world_end(struct world *world)
{
	unlink(world->path);
	unlink(world->log);
	assert_int_equal(rmdir(world->folder), 0);
	dmamap_system_destroy(world->system);
}

static uint64_t sum(const struct world *world, size_t offset)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < device_queues(world->device); i++)
		total += atomic_load(
			(const _Atomic uint64_t *)(const void *)((const char *)device_counters(
									 world->device, i) +
								 offset));
	return total;
}

#define SUM(world, field) sum(world, offsetof(struct queue_counters, field))

/* ---------------------------------------------------------------------------- cases */

static void load(struct world *world, const struct dmamap_blk_load *load)
{
	struct dmamap_blk_result result;

	assert_int_equal(dmamap_blk_load(world->blk, load, &result), 0);
	assert_int_equal(result.failed, 0);
	assert_int_equal(result.mismatches, 0);
	assert_true(result.requests > 0);
}

static const struct {
	const char *name;
	enum image_direct direct;
	bool no_umem;
	uint64_t refuse;
	unsigned delay_us;
	uint32_t segment;
	bool packed;
} variants[] = {
	{"as it comes", DIRECT_AUTO, false, 0, 0, 0, false},
	{"cached", DIRECT_OFF, false, 0, 0, 0, false},
	{"the kernel's bounce memory", DIRECT_AUTO, true, 0, 0, 0, false},
	{"no indirect tables", DIRECT_AUTO, false, 1ull << VIRTIO_RING_F_INDIRECT_DESC, 0, 0,
		false},
	{"no event index", DIRECT_AUTO, false, 1ull << VIRTIO_RING_F_EVENT_IDX, 0, 0, false},
	{"later by 100 us", DIRECT_AUTO, false, 0, 100, 0, false},
	{"in pieces", DIRECT_AUTO, false, 0, 0, 1024, false},
	{"packed rings", DIRECT_AUTO, false, 0, 0, 0, true},
	{"packed rings in pieces", DIRECT_AUTO, true, 0, 0, 1024, true},
	{"packed rings, no indirect tables", DIRECT_AUTO, false,
		1ull << VIRTIO_RING_F_INDIRECT_DESC, 0, 1024, true},
	{"packed rings, no event index", DIRECT_AUTO, false, 1ull << VIRTIO_RING_F_EVENT_IDX, 0, 0,
		true},
};

/* What is written is what is read, whatever the sizes and whoever shares the disk. */
static void data_comes_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct world world = {.direct = variants[i].direct};

		printf("%s\n", variants[i].name);
		world_start(&world);
		world.settings.umem = UMEM && !variants[i].no_umem;
		world.settings.delay_ns = variants[i].delay_us * 1000ull;
		world.settings.packed = variants[i].packed;
		world.driver.refuse = variants[i].refuse;
		serve(&world);
		probe(&world);
		load(&world, &(struct dmamap_blk_load){.jobs = 4,
				     .depth = 8,
				     .size = 512,
				     .reads = 50,
				     .requests = 500,
				     .verify = true,
				     .seed = 1});
		load(&world, &(struct dmamap_blk_load){.jobs = 2,
				     .depth = 8,
				     .size = 4096,
				     .segment = variants[i].segment,
				     .reads = 50,
				     .requests = 500,
				     .verify = true,
				     .seed = 2});
		load(&world, &(struct dmamap_blk_load){.jobs = 2,
				     .depth = 4,
				     .size = 65536,
				     .reads = 30,
				     .requests = 60,
				     .verify = true,
				     .seed = 3});
		assert_int_equal(SUM(&world, refused), 0);
		assert_int_equal(SUM(&world, failed), 0);
		removed(&world);
		served(&world);
		world_end(&world);
	}
}

static int ask(struct world *world, struct dmamap_blk_request request)
{
	return dmamap_blk_do(world->blk, 0, &request);
}

static void every_request_does_what_it_is_for(void **state)
{
	struct world world = {.direct = DIRECT_OFF};
	static unsigned char data[65536], back[65536], zero[65536];
	char id[21] = {0};

	(void)state;
	world_start(&world);
	world.settings.serial = "a serial number";
	serve(&world);
	probe(&world);
	memset(data, 0xa5, sizeof(data));
	assert_int_equal(ask(&world, (struct dmamap_blk_request){.op = DMAMAP_BLK_WRITE,
					     .size = sizeof(data),
					     .data = data}),
		0);
	assert_int_equal(ask(&world, (struct dmamap_blk_request){.op = DMAMAP_BLK_FLUSH}), 0);
	assert_int_equal(pread(world.image.fd, back, sizeof(back), 0), sizeof(back));
	assert_memory_equal(data, back, sizeof(data));
	assert_int_equal(ask(&world,
				 (struct dmamap_blk_request){
					 .op = DMAMAP_BLK_GET_ID, .size = 20, .data = id}),
		0);
	assert_string_equal(id, "a serial number");
	/* Three ranges of zeroes in one request, the second of no length. */
	{
		struct virtio_blk_discard_write_zeroes ranges[3] = {
			{8, 8, 0}, {9, 0, 0}, {32, 1, VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP}};

		assert_int_equal(
			ask(&world, (struct dmamap_blk_request){.op = DMAMAP_BLK_WRITE_ZEROES,
					    .size = sizeof(ranges),
					    .data = ranges}),
			0);
	}
	assert_int_equal(ask(&world, (struct dmamap_blk_request){.op = DMAMAP_BLK_READ,
					     .size = sizeof(back),
					     .data = back}),
		0);
	memset(data + 8 * 512, 0, 8 * 512);
	memset(data + 32 * 512, 0, 512);
	assert_memory_equal(data, back, sizeof(data));
	/* A discard may leave what it likes; here a hole. */
	assert_int_equal(
		ask(&world, (struct dmamap_blk_request){.op = DMAMAP_BLK_DISCARD, .sectors = 128}),
		0);
	assert_int_equal(pread(world.image.fd, back, sizeof(back), 0), sizeof(back));
	assert_memory_equal(zero, back, sizeof(back));
	assert_int_equal(SUM(&world, refused), 0);
	removed(&world);
	served(&world);
	world_end(&world);
}

/* A request that cannot be carried out is answered, and the next one is served. */
static void what_cannot_be_is_answered(void **state)
{
	struct world world = {.direct = DIRECT_OFF};
	struct virtio_blk_discard_write_zeroes ranges[REQUEST_RANGES + 1] = {{0}};
	static unsigned char data[4096];
	uint64_t end = 16 * MIB / 512;
	const struct {
		struct dmamap_blk_request request;
		int result;
	} bad[] = {
		{{.op = DMAMAP_BLK_READ, .sector = end, .size = 512, .data = data}, -EIO},
		{{.op = DMAMAP_BLK_WRITE, .sector = end - 1, .size = 1024, .data = data}, -EIO},
		{{.op = DMAMAP_BLK_WRITE, .sector = UINT64_MAX, .size = 512, .data = data}, -EIO},
		{{.op = DMAMAP_BLK_READ, .sector = 1ull << 55, .size = 512, .data = data}, -EIO},
		{{.op = DMAMAP_BLK_DISCARD, .sector = end - 1, .sectors = 2}, -EIO},
		{{.op = DMAMAP_BLK_WRITE_ZEROES, .sectors = UINT32_MAX}, -EIO},
		{{.op = DMAMAP_BLK_DISCARD, .size = 24, .data = ranges}, -EIO},
		{{.op = DMAMAP_BLK_DISCARD, .size = sizeof(ranges), .data = ranges}, -EIO},
	};

	(void)state;
	world_start(&world);
	serve(&world);
	probe(&world);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ask(&world, bad[i].request) != bad[i].result)
			fail_msg("request %zu", i);
	/* The flag is not a discard's, and no other one is known. */
	ranges[0] = (struct virtio_blk_discard_write_zeroes){0, 8, 1};
	assert_int_equal(ask(&world,
				 (struct dmamap_blk_request){
					 .op = DMAMAP_BLK_DISCARD, .size = 16, .data = ranges}),
		-EOPNOTSUPP);
	ranges[0].flags = 2;
	assert_int_equal(ask(&world, (struct dmamap_blk_request){.op = DMAMAP_BLK_WRITE_ZEROES,
					     .size = 16,
					     .data = ranges}),
		-EOPNOTSUPP);
	assert_int_equal(ask(&world,
				 (struct dmamap_blk_request){
					 .op = DMAMAP_BLK_READ, .size = 512, .data = data}),
		0);
	assert_int_equal(SUM(&world, refused), sizeof(bad) / sizeof(bad[0]) + 2);
	removed(&world);
	served(&world);
	world_end(&world);
}

/* Who does not take the feature to flush is promised that what is written lasts. */
static void a_driver_that_cannot_flush(void **state)
{
	static unsigned char data[4096];
	const struct {
		struct dmamap_blk_request request;
		unsigned synced;
	} steps[] = {
		{{.op = DMAMAP_BLK_WRITE, .size = sizeof(data), .data = data}, 1},
		{{.op = DMAMAP_BLK_READ, .size = sizeof(data), .data = data}, 0},
		{{.op = DMAMAP_BLK_WRITE_ZEROES, .sectors = 8}, 1},
		{{.op = DMAMAP_BLK_DISCARD, .sectors = 8}, 1},
	};

	(void)state;
	for (unsigned refuses = 0; refuses < 2; refuses++) {
		for (unsigned direct = DIRECT_AUTO; direct <= DIRECT_OFF; direct += DIRECT_OFF) {
			struct world world = {.direct = (enum image_direct)direct};
			uint64_t synced = 0;

			world_start(&world);
			world.driver.refuse = (uint64_t)refuses << VIRTIO_BLK_F_FLUSH;
			serve(&world);
			probe(&world);
			for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
				assert_int_equal(ask(&world, steps[i].request), 0);
				synced += refuses * steps[i].synced;
				assert_int_equal(SUM(&world, synced), synced);
			}
			removed(&world);
			served(&world);
			world_end(&world);
		}
	}
}

/* What the image refuses, the driver hears of, and the disk goes on. */
static void an_image_that_fails(void **state)
{
	static unsigned char data[4096];
	const struct dmamap_blk_request
		read = {.op = DMAMAP_BLK_READ, .sector = 4096, .size = 4096, .data = data},
		write = {.op = DMAMAP_BLK_WRITE, .sector = 4096, .size = 4096, .data = data},
		zero = {.op = DMAMAP_BLK_WRITE_ZEROES, .sector = 4096, .sectors = 8};
	struct rlimit limit, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, SIG_IGN);
	for (unsigned direct = DIRECT_AUTO; direct <= DIRECT_OFF; direct += DIRECT_OFF) {
		struct world world = {.direct = (enum image_direct)direct};

		world_start(&world);
		serve(&world);
		probe(&world);
		/* It was cut. */
		assert_int_equal(ftruncate(world.image.fd, MIB), 0);
		assert_int_equal(ask(&world, read), -EIO);
		assert_int_equal(SUM(&world, failed), 1);
		/* There is no room for more. */
		small = (struct rlimit){MIB, limit.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		assert_int_equal(ask(&world, write), -EIO);
		assert_int_equal(SUM(&world, failed), 2);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(ask(&world, write), 0);
		assert_int_equal(ask(&world, zero), 0);
		assert_int_equal(ask(&world, read), 0);
		assert_int_equal(SUM(&world, failed), 2);
		removed(&world);
		served(&world);
		world_end(&world);
	}
}

static void a_disk_that_is_read_only(void **state)
{
	struct world world = {.direct = DIRECT_OFF};
	struct dmamap_blk_info info;
	unsigned char data[512];
	int fd;

	(void)state;
	world_start(&world);
	world.read_only = true;
	fd = open(world.path, O_CREAT | O_WRONLY, 0400);
	assert_int_equal(ftruncate(fd, MIB), 0);
	close(fd);
	serve(&world);
	probe(&world);
	dmamap_blk_info(world.blk, &info);
	assert_true(info.read_only);
	assert_int_equal(info.sectors, MIB / 512);
	assert_int_equal(ask(&world,
				 (struct dmamap_blk_request){
					 .op = DMAMAP_BLK_READ, .size = 512, .data = data}),
		0);
	assert_int_equal(ask(&world,
				 (struct dmamap_blk_request){
					 .op = DMAMAP_BLK_WRITE, .size = 512, .data = data}),
		-EIO);
	removed(&world);
	served(&world);
	world_end(&world);
}

/* The driver comes and goes, and so does the disk: each finds the other as it left it. */
static void drivers_and_disks_come_and_go(void **state)
{
	struct world world = {.direct = DIRECT_AUTO};
	const struct dmamap_blk_load some = {.jobs = 2,
		.depth = 4,
		.size = 4096,
		.reads = 50,
		.requests = 200,
		.verify = true,
		.seed = 4};

	(void)state;
	world_start(&world);
	serve(&world);
	for (unsigned i = 0; i < 3; i++) {
		probe(&world);
		load(&world, &some);
		removed(&world);
	}
	/* While a driver is there, the device stays, and another disk takes it over. */
	probe(&world);
	for (unsigned i = 0; i < 3; i++) {
		load(&world, &some);
		assert_int_equal(device_close(world.device), -EBUSY);
		image_close(&world.image);
		serve(&world);
		assert_int_equal(device_taken_over(world.device), 0);
	}
	load(&world, &some);
	removed(&world);
	served(&world);
	world_end(&world);
}

/* Without the log nobody knows what was in flight. */
static void no_log_no_taking_over(void **state)
{
	struct world world = {.direct = DIRECT_AUTO};
	struct complaint complaint;
	char other[128];

	(void)state;
	world_start(&world);
	serve(&world);
	probe(&world);
	assert_int_equal(device_close(world.device), -EBUSY);
	snprintf(other, sizeof(other), "%s/other", world.folder);
	world.settings.log = other;
	assert_int_equal(
		device_open(&world.device, world.system, &world.settings, &world.image, &complaint),
		-1);
	printf("%s\n", complaint.text);
	assert_non_null(strstr(complaint.text, "is not the log"));
	unlink(other);
	world.settings.log = world.log;
	image_close(&world.image);
	serve(&world);
	removed(&world);
	served(&world);
	world_end(&world);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Looking for work stops where none comes: after a load, and with a driver that waits. */
static void an_idle_disk_takes_no_time(void **state)
{
	struct world world = {.direct = DIRECT_AUTO};
	uint64_t sleeps, before;

	(void)state;
	world_start(&world);
	world.settings.poll_ns = 1000000;
	serve(&world);
	probe(&world);
	load(&world, &(struct dmamap_blk_load){.jobs = 2,
			     .depth = 8,
			     .size = 512,
			     .requests = 2000,
			     .verify = true,
			     .seed = 5});
	usleep(20000);
	sleeps = SUM(&world, sleeps);
	before = cpu_ns();
	usleep(400000);
	assert_int_equal(SUM(&world, sleeps), sleeps);
	assert_true(cpu_ns() - before < 20000000);
	removed(&world);
	served(&world);
	world_end(&world);
}

/* A device that was left behind, and has no driver, is no reason to show an old size. */
static void a_device_left_behind_is_made_anew(void **state)
{
	struct world world = {.direct = DIRECT_AUTO};
	struct dmamap_blk_info info;

	(void)state;
	world_start(&world);
	for (unsigned attached = 0; attached < 2; attached++) {
		struct dmamap_vduse *vduse;
		struct virtio_blk_config space = {.capacity = 1};
		const struct dmamap_vduse_config config = {
			.name = "disk",
			.device_id = VIRTIO_ID_BLOCK,
			.features = 1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_F_ACCESS_PLATFORM,
			.n_queues = 2,
			.queue_size = 64,
			.space = &space,
			.space_size = offsetof(struct virtio_blk_config, max_secure_erase_sectors),
		};

		assert_int_equal(dmamap_vduse_create(world.system, &config, &vduse, NULL), 0);
		if (attached)
			assert_int_equal(
				dmamap_vdpa_attach(world.system, "disk", NULL, &world.vdpa), 0);
		dmamap_vduse_close(vduse);
		serve(&world);
		if (!attached)
			probe(&world);
		else
			assert_int_equal(
				dmamap_blk_probe(world.vdpa, &world.driver, &world.blk), 0);
		dmamap_blk_info(world.blk, &info);
		assert_int_equal(info.sectors, 16 * MIB / 512);
		removed(&world);
		served(&world);
	}
	world_end(&world);
}

static void two_disks_of_one_name(void **state)
{
	struct world world = {.direct = DIRECT_AUTO};
	struct complaint complaint;
	struct device *second;

	(void)state;
	world_start(&world);
	serve(&world);
	world.settings.patience_ms = 50;
	assert_int_equal(
		device_open(&second, world.system, &world.settings, &world.image, &complaint), -1);
	printf("%s\n", complaint.text);
	/* The first one is none the worse. */
	probe(&world);
	load(&world, &(struct dmamap_blk_load){.size = 4096, .requests = 10, .verify = true});
	removed(&world);
	served(&world);
	world_end(&world);
}

/* Memory of this process that the kernel bounces through, small enough for any limit. */
static void umem_is_taken(void **state)
{
	(void)state;
	if (!UMEM) {
		printf("ThreadSanitizer does not see the order that rings give to umem\n");
		skip();
	}
	for (unsigned i = 0; i < 3; i++) {
		struct world world = {.direct = i == 1 ? DIRECT_OFF : DIRECT_AUTO};

		world_start(&world);
		world.settings.umem = i < 2;
		world.attach.bounce_size = 2 * MIB;
		serve(&world);
		/* Again for each life of the driver. */
		for (unsigned life = 0; life < 3; life++) {
			probe(&world);
			load(&world, &(struct dmamap_blk_load){.jobs = 4,
					     .depth = 16,
					     .size = 4096,
					     .reads = 50,
					     .requests = 300,
					     .verify = true,
					     .seed = life});
			assert_int_equal(device_umem(world.device), i < 2);
			removed(&world);
			world.attach.bounce_size = 0;
		}
		served(&world);
		world_end(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_comes_back),
		cmocka_unit_test(every_request_does_what_it_is_for),
		cmocka_unit_test(what_cannot_be_is_answered),
		cmocka_unit_test(a_driver_that_cannot_flush),
		cmocka_unit_test(an_image_that_fails),
		cmocka_unit_test(a_disk_that_is_read_only),
		cmocka_unit_test(drivers_and_disks_come_and_go),
		cmocka_unit_test(no_log_no_taking_over),
		cmocka_unit_test(an_idle_disk_takes_no_time),
		cmocka_unit_test(a_device_left_behind_is_made_anew),
		cmocka_unit_test(two_disks_of_one_name),
		cmocka_unit_test(umem_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
