/* SPDX-License-Identifier: MIT */
/*
 * Real daemons on the soft /dev/vduse: qemu-storage-daemon as its package has
 * it, and this repository's own vduse-blk, each a process under the preload
 * library that takes it for the kernel. The soft system's disk driver reads and
 * writes through them, and looks at every byte; a daemon that is killed in the
 * middle of it comes back, and nothing is lost.
 *
 * DMAMAP is the program, DMAMAP_PRELOAD the library.
 */
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/virtio.h"
#include "cli/peer.h"

#define DISK	 (32ull << 20)
#define QUEUES	 2
#define PATIENCE 30000
#define NAME	 "peer0"

struct daemon_kind {
	const char *program; /* NULL: $DMAMAP */
	const char *arguments[12];
	bool umem;
};

/* %F is the image, %T the folder of the test. */
static const struct daemon_kind kinds[] = {
	{"qemu-storage-daemon",
		{"--blockdev", "driver=file,node-name=f,filename=%F,aio=threads", "--export",
			"type=vduse-blk,id=e,name=" NAME ",node-name=f,writable=on,num-queues=2"},
		false},
	{"qemu-storage-daemon",
		{"--blockdev", "driver=file,node-name=f,filename=%F,aio=io_uring", "--export",
			"type=vduse-blk,id=e,name=" NAME ",node-name=f,writable=on,num-queues=2"},
		false},
	{NULL, {"vduse-blk", "--name", NAME, "--file", "%F", "--queues", "2", "--log", "%T/log"},
		true},
};

struct world {
	const struct daemon_kind *kind;
	struct peer peer;
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
	char folder[64];
	char image[96];
	char texts[12][160];
	char *argv[14];
	char refused[1024]; /* the first ones, a line each */
};

/* By the server's thread; read when it is quiet. */
static void hear(void *who, const struct dmamap_soft_refusal *refusal)
{
	struct world *world = who;
	const char *name = refusal->request ? peer_request_name(refusal->request) : refusal->path;

	size_t length = strlen(world->refused);

	snprintf(world->refused + length, sizeof(world->refused) - length, "%s %s: %d\n",
		refusal->call, name ? name : "", refusal->error);
}

static bool found(const char *program)
{
	const char *path = getenv("PATH");
	char each[512];

	while (path && *path) {
		size_t n = strcspn(path, ":");

		snprintf(each, sizeof(each), "%.*s/%s", (int)n, path, program);
		if (!access(each, X_OK))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static void fill_arguments(struct world *world)
{
	const struct daemon_kind *kind = world->kind;
	unsigned n = 0;

	world->argv[n++] = (char *)(uintptr_t)(kind->program ? kind->program : getenv("DMAMAP"));
	for (unsigned i = 0; kind->arguments[i]; i++) {
		const char *at = strchr(kind->arguments[i], '%');
		char *text = world->texts[i];

		if (at)
			snprintf(text, sizeof(world->texts[i]), "%.*s%s%s",
				(int)(at - kind->arguments[i]), kind->arguments[i],
				at[1] == 'F' ? world->image : world->folder, at + 2);
		else
			snprintf(text, sizeof(world->texts[i]), "%s", kind->arguments[i]);
		world->argv[n++] = text;
	}
	world->argv[n] = NULL;
}

static void start(struct world *world)
{
	struct complaint complaint = {{0}};

	if (peer_start(&world->peer, world->argv, &complaint))
		fail_msg("%s", complaint.text);
}

/* A disk, made and found. */
static void set_up(struct world *world, const struct daemon_kind *kind)
{
	struct complaint complaint = {{0}};
	struct dmamap_machine machine;
	struct dmamap_system *system;
	int fd;

	*world = (struct world){.kind = kind};
	strcpy(world->folder, "/tmp/dmamap-peers-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	/* Where qemu-storage-daemon has its log of what is in flight. */
	setenv("TMPDIR", world->folder, 1);
	snprintf(world->image, sizeof(world->image), "%s/image", world->folder);
	fd = open(world->image, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && !ftruncate(fd, DISK));
	close(fd);
	fill_arguments(world);
	world->peer.refused = hear;
	world->peer.who = world;
	dmamap_machine_default(&machine);
	/* umem is more than most may lock. */
	machine.memlock = DMAMAP_MEMLOCK_UNLIMITED;
	assert_int_equal(dmamap_system_soft(&machine, &system, NULL), 0);
	if (peer_serve(&world->peer, system, &complaint))
		fail_msg("%s", complaint.text);
	start(world);
	if (peer_attach(&world->peer, NULL, NULL, PATIENCE, NULL, &world->vdpa, &complaint))
		fail_msg("%s", complaint.text);
	assert_int_equal(dmamap_blk_probe(world->vdpa, NULL, &world->blk), 0);
}

static void tear_down(struct world *world)
{
	struct dmamap_system *kernel = world->peer.system;
	char command[128];

	dmamap_blk_remove(world->blk);
	assert_int_equal(dmamap_vdpa_detach(world->vdpa), 0);
	assert_true(peer_stop(&world->peer, SIGTERM, PATIENCE));
	assert_true(WIFEXITED(world->peer.status) && !WEXITSTATUS(world->peer.status));
	/* It took its device away. */
	assert_int_equal(dmamap_vdpa_attach(kernel, NAME, NULL, &world->vdpa), -EINVAL);
	peer_serve_end(&world->peer);
	dmamap_system_destroy(kernel);
	snprintf(command, sizeof(command), "rm -rf %s", world->folder);
	assert_int_equal(system(command), 0);
}

/* Each kind is a test of its own; what is not installed is skipped. */
static const struct daemon_kind *kind_of(void **state)
{
	const struct daemon_kind *kind = *state;

	if (kind->program && !found(kind->program)) {
		printf("there is no %s: make test as root installs it\n", kind->program);
		skip();
	}
	return kind;
}

/* ------------------------------------------------------------------- tests */

static void load(struct world *world, uint32_t size, uint32_t segment, unsigned reads)
{
	const struct dmamap_blk_load wanted = {.jobs = 4,
		.depth = 8,
		.size = size,
		.segment = segment,
		.reads = reads,
		.requests = 500,
		.verify = true};
	struct dmamap_blk_result result;

	assert_int_equal(dmamap_blk_load(world->blk, &wanted, &result), 0);
	assert_int_equal(result.requests, 2000);
	assert_int_equal(result.failed, 0);
	assert_int_equal(result.mismatches, 0);
	assert_true(result.verified > 0);
}

static int request(
	struct world *world, enum dmamap_blk_op op, uint64_t sector, void *data, uint32_t bytes)
{
	struct dmamap_blk_request request = {.op = op, .sector = sector};

	if (op == DMAMAP_BLK_DISCARD || op == DMAMAP_BLK_WRITE_ZEROES) {
		request.sectors = bytes / 512;
	} else {
		request.data = data;
		request.size = bytes;
	}
	return dmamap_blk_do(world->blk, (unsigned)(sector % QUEUES), &request);
}

/* What is on the disk is what is in the file. */
static void check_image(struct world *world)
{
	static const char word[] = "what the driver wrote";
	char sector[512] = {0}, image[512] = {0};
	int fd = open(world->image, O_RDONLY | O_CLOEXEC);

	strcpy(sector, word);
	assert_int_equal(request(world, DMAMAP_BLK_WRITE, 77, sector, 512), 0);
	assert_int_equal(request(world, DMAMAP_BLK_FLUSH, 0, NULL, 0), 0);
	assert_int_equal(pread(fd, image, 512, 77 * 512), 512);
	assert_string_equal(image, word);
	assert_int_equal(request(world, DMAMAP_BLK_WRITE_ZEROES, 77, NULL, 512), 0);
	assert_int_equal(request(world, DMAMAP_BLK_READ, 77, sector, 512), 0);
	assert_memory_equal(sector, (char[512]){0}, 512);
	assert_int_equal(request(world, DMAMAP_BLK_DISCARD, 1024, NULL, 1 << 20), 0);
	close(fd);
}

/* A second registration is refused where there is one; this one could not be taken either. */
static void check_umem(struct world *world)
{
	struct dmamap_bounce *bounce = dmamap_vdpa_bounce(world->vdpa, 0);
	struct dmamap_bounce_info info;
	struct dmamap_reason why = {0};
	void *hole;

	dmamap_bounce_info(bounce, &info);
	hole = mmap(NULL, info.bounce_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(hole, MAP_FAILED);
	assert_int_equal(dmamap_bounce_umem_add(bounce, hole, info.bounce_size, &why),
		world->kind->umem ? -EEXIST : -EFAULT);
	munmap(hole, info.bounce_size);
}

static void test_serves(void **state)
{
	struct world world;
	struct dmamap_blk_info info;
	char id[21] = "";

	set_up(&world, kind_of(state));
	dmamap_blk_info(world.blk, &info);
	assert_int_equal(info.sectors, DISK / 512);
	assert_int_equal(info.queues, QUEUES);
	assert_true(info.features & 1ull << VIRTIO_RING_F_INDIRECT_DESC);
	assert_true(info.features & 1ull << VIRTIO_RING_F_EVENT_IDX);
	assert_int_equal(request(&world, DMAMAP_BLK_GET_ID, 0, id, 20), 0);
	load(&world, 512, 0, 40);
	load(&world, 4096, 0, 40);
	load(&world, 65536, 4096, 40);
	check_image(&world);
	check_umem(&world);
	tear_down(&world);
}

struct load_thread {
	struct world *world;
	struct dmamap_blk_result result;
	int error;
};

static void *run_load(void *argument)
{
	struct load_thread *run = argument;
	const struct dmamap_blk_load wanted = {.jobs = 4,
		.depth = 16,
		.size = 512,
		.reads = 30,
		.requests = 4000,
		.bytes = 4 << 20,
		.verify = true};

	run->error = dmamap_blk_load(run->world->blk, &wanted, &run->result);
	return NULL;
}

static uint64_t completed(struct world *world)
{
	struct dmamap_blk_counters counters;

	dmamap_blk_counters(world->blk, &counters);
	return counters.completed;
}

static void wait_for_progress(struct world *world, uint64_t requests)
{
	uint64_t goal = completed(world) + requests;

	for (unsigned waited = 0; completed(world) < goal; waited++) {
		assert_true(waited < PATIENCE);
		usleep(1000);
	}
}

static void test_killed(void **state)
{
	struct world world;
	struct load_thread run = {.world = &world};
	pthread_t thread;

	set_up(&world, kind_of(state));
	assert_int_equal(pthread_create(&thread, NULL, run_load, &run), 0);
	for (unsigned kills = 0; kills < 4; kills++) {
		wait_for_progress(&world, 1500);
		peer_stop(&world.peer, SIGKILL, PATIENCE);
		assert_true(WIFSIGNALED(world.peer.status));
		start(&world);
	}
	pthread_join(thread, NULL);
	assert_int_equal(run.error, 0);
	assert_int_equal(run.result.requests, 16000);
	assert_int_equal(run.result.failed, 0);
	assert_int_equal(run.result.mismatches, 0);
	assert_true(run.result.verified > 0);
	assert_false(dmamap_vdpa_broken(world.vdpa));
	tear_down(&world);
}

/* A second daemon of that name finds the device taken. */
static void test_one_opener(void **state)
{
	struct world world;
	struct peer second = {0};
	struct complaint complaint = {{0}};

	set_up(&world, kind_of(state));
	second = world.peer;
	second.pid = 0;
	assert_int_equal(peer_start(&second, world.argv, &complaint), 0);
	for (unsigned waited = 0; peer_alive(&second) && waited < PATIENCE; waited++)
		usleep(1000);
	assert_int_equal(second.pid, 0);
	assert_true(WIFEXITED(second.status) && WEXITSTATUS(second.status) != 0);
	/* vduse-blk sees to its image first. */
	if (world.kind->program)
		assert_non_null(strstr(world.refused, "open /dev/vduse/" NAME ": 16\n"));
	load(&world, 512, 0, 50);
	tear_down(&world);
}

#define TESTS_OF(kind, n)                                                                          \
	{#kind "_serves", test_serves, NULL, NULL, (void *)(uintptr_t)&kinds[n]},                  \
		{#kind "_killed", test_killed, NULL, NULL, (void *)(uintptr_t)&kinds[n]},          \
	{                                                                                          \
#kind "_has_one_opener", test_one_opener, NULL, NULL, (void *)(uintptr_t)&kinds[n] \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TESTS_OF(qemu_threads, 0), TESTS_OF(qemu_io_uring, 1), TESTS_OF(vduse_blk, 2)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
