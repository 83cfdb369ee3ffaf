/* SPDX-License-Identifier: MIT */
/*
 * A disk that is killed, over and over, while a driver writes and reads: every
 * request is answered once, and what is on the image in the end is what was
 * written last. The disk is a child process; the kernel between the two is a
 * small one of this test's, in memory that both share.
 */
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/vduse.h"
#include "abi/virtio.h"
#include "cli/vduse_blk/device.h"
#include "cli/vduse_blk/guard.h"
#include "tests/client/ring_driver.h"

#define BLOCK	   4096u
#define BLOCKS	   24u
#define DEPTH	   12u
#define QUEUE_SIZE 64u
#define KILLS	   12u
/* One request's memory: header, status, table, and its data. */
#define SLOT_BYTES   0x2000ull
#define STATUS_AT    64u
#define TABLE_AT     128u
#define DATA_AT	     0xe00u
#define REQUEST_IOVA DATA_IOVA
_Static_assert(DEPTH *SLOT_BYTES <= DATA_BYTES, "there is room for all requests");

/* What the two processes know of the device. */
struct shared {
	bool created;
	uint64_t features;
	struct vduse_vq_info info;
};

/* The kernel. @messages: driver's end, disk's end; @kicks: for descriptors, likewise */
struct kernel {
	struct dmamap_system system;
	struct shared *shared;
	int memory;
	int messages[2];
	int kicks[2];
	int interrupt;
};

/* ----------------------------------------------------------- as the disk has it */

static int kernel_open(struct dmamap_system *system, const char *path, int flags)
{
	struct kernel *kernel = (struct kernel *)system;

	if (!strcmp(path, "/dev/vduse/control"))
		return open("/dev/null", flags | O_CLOEXEC);
	return dup(kernel->messages[1]);
}

static int kernel_close(struct dmamap_system *system, int fd)
{
	(void)system;
	return close(fd);
}

static ssize_t kernel_read(struct dmamap_system *system, int fd, void *buffer, size_t size)
{
	ssize_t n = read(fd, buffer, size);

	(void)system;
	return n < 0 ? -errno : n;
}

static ssize_t kernel_write(struct dmamap_system *system, int fd, const void *buffer, size_t size)
{
	ssize_t n = write(fd, buffer, size);

	(void)system;
	return n < 0 ? -errno : n;
}

static int kernel_mmap(struct dmamap_system *system, void *address, size_t length, int prot,
	int flags, int fd, uint64_t offset, void **out)
{
	(void)system;
	*out = mmap(address, length, prot, flags, fd, (off_t)offset);
	return *out == MAP_FAILED ? -errno : 0;
}

static int kernel_munmap(struct dmamap_system *system, void *address, size_t length)
{
	(void)system;
	return munmap(address, length);
}

static int send_kick(struct kernel *kernel, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(kernel->kicks[1], &message, 0) < 0 ? -errno : 0;
}

static int get_fd(struct kernel *kernel, struct vduse_iotlb_entry *entry)
{
	if (entry->start < RING_IOVA || entry->start >= CONST_IOVA)
		return -EINVAL;
	entry->start = RING_IOVA;
	entry->last = CONST_IOVA - 1;
	entry->offset = 0;
	entry->perm = VDUSE_ACCESS_RW;
	return dup(kernel->memory);
}

static int kernel_ioctl(struct dmamap_system *system, int fd, unsigned long request, void *argument)
{
	struct kernel *kernel = (struct kernel *)system;
	struct vduse_vq_eventfd *kick = argument;
	uint64_t one = 1;

	(void)fd;
	switch (request) {
	case VDUSE_SET_API_VERSION:
	case VDUSE_VQ_SETUP:
	case VDUSE_DEV_SET_CONFIG:
		return 0;
	case VDUSE_DESTROY_DEV:
		return -EBUSY;
	case VDUSE_CREATE_DEV:
		if (kernel->shared->created)
			return -EEXIST;
		kernel->shared->created = true;
		return 0;
	case VDUSE_DEV_GET_FEATURES:
		*(uint64_t *)argument = kernel->shared->features;
		return 0;
	case VDUSE_VQ_GET_INFO:
		*(struct vduse_vq_info *)argument = kernel->shared->info;
		return 0;
	case VDUSE_VQ_SETUP_KICKFD:
		return kick->fd < 0 ? 0 : send_kick(kernel, kick->fd);
	case VDUSE_VQ_INJECT_IRQ:
		return write(kernel->interrupt, &one, sizeof(one)) < 0 ? -errno : 0;
	case VDUSE_IOTLB_GET_FD:
		return get_fd(kernel, argument);
	default:
		return -EINVAL;
	}
}

static int no_reason(struct dmamap_system *system, struct dmamap_reason *reason)
{
	(void)system;
	(void)reason;
	return -ENOENT;
}

static const struct dmamap_system_ops kernel_ops = {
	.name = "small",
	.open = kernel_open,
	.close = kernel_close,
	.ioctl = kernel_ioctl,
	.read = kernel_read,
	.write = kernel_write,
	.mmap = kernel_mmap,
	.munmap = kernel_munmap,
	.reason = no_reason,
};

/* -------------------------------------------------------------------- the disk */

struct variant {
	const char *name;
	bool packed;
	bool direct_tables; /* no indirect ones */
	enum image_direct direct;
	unsigned delay_us;
	unsigned odd; /* bytes that data lies off its alignment */
};

static void say(void *who, const char *sentence)
{
	(void)who;
	fprintf(stderr, "said: %s\n", sentence);
}

static void disk(struct kernel *kernel, const char *folder, const struct variant *variant)
{
	struct complaint complaint = {{0}};
	char path[128], log[128];
	struct image image;
	struct device *device;
	struct device_settings settings = {
		.name = "disk",
		.log = log,
		.n_queues = 1,
		.queue_size = QUEUE_SIZE,
		.packed = variant->packed,
		.delay_ns = variant->delay_us * 1000ull,
		.patience_ms = 5000,
		.say = say,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/image", folder);
	snprintf(log, sizeof(log), "%s/log", folder);
	guard_install();
	if (image_open(&image, path, (uint64_t)BLOCK * BLOCKS, false, variant->direct, 5000,
		    &complaint) ||
		device_open(&device, &kernel->system, &settings, &image, &complaint) ||
		device_run(device, &complaint)) {
		fprintf(stderr, "%s\n", complaint.text);
		_exit(1);
	}
	for (;;)
		pause();
}

/* -------------------------------------------------------------------- the driver */

struct request_state {
	uint32_t block;
	uint32_t version;
	bool write;
	bool out;
};

struct driver {
	struct kernel kernel;
	struct ring_driver ring;
	const struct variant *variant;
	char folder[64];
	pid_t child;
	int kick;
	struct random *random;
	struct request_state requests[DEPTH];
	int slot_of[QUEUE_SIZE];
	uint32_t written[BLOCKS]; /* version that is there */
	bool block_busy[BLOCKS];
	uint32_t version;
	unsigned out;
	uint64_t done;
};

static void *at(struct driver *driver, unsigned slot, unsigned offset)
{
	return ring_driver_at(&driver->ring, REQUEST_IOVA + slot * SLOT_BYTES + offset);
}

static unsigned data_at(const struct driver *driver)
{
	return DATA_AT + driver->variant->odd;
}

static void pattern(unsigned char *data, uint32_t block, uint32_t version)
{
	for (uint32_t i = 0; i < BLOCK / 4; i++) {
		uint32_t word = version ? block << 24 ^ version * 2654435761u ^ i : 0;

		memcpy(data + i * sizeof(word), &word, sizeof(word));
	}
}

static struct vduse_dev_response ask(
	const struct driver *driver, const struct vduse_dev_request *request)
{
	struct vduse_dev_response response;

	assert_int_equal(
		write(driver->kernel.messages[0], request, sizeof(*request)), sizeof(*request));
	assert_int_equal(
		read(driver->kernel.messages[0], &response, sizeof(response)), sizeof(response));
	assert_int_equal(response.request_id, request->request_id);
	return response;
}

static void set_status(const struct driver *driver, uint8_t status)
{
	const struct vduse_dev_request request = {
		.type = VDUSE_SET_STATUS, .request_id = 7, .s.status = status};

	assert_int_equal(ask(driver, &request).result, VDUSE_REQ_RESULT_OK);
}

/* As vhost-vdpa does while a virtual machine runs: what IOVAs mean is asked for again. */
static void change_memory(const struct driver *driver)
{
	const struct vduse_dev_request request = {
		.type = VDUSE_UPDATE_IOTLB, .request_id = 8, .iova = {0, UINT64_MAX}};

	assert_int_equal(ask(driver, &request).result, VDUSE_REQ_RESULT_OK);
}

static void ask_places(const struct driver *driver)
{
	const struct vduse_dev_request request = {
		.type = VDUSE_GET_VQ_STATE, .request_id = 9, .vq_state.index = 0};
	const struct vduse_dev_request no_such = {
		.type = VDUSE_GET_VQ_STATE, .request_id = 10, .vq_state.index = 1};
	struct vduse_dev_response response = ask(driver, &request);
	uint16_t place = driver->variant->packed
				 ? (uint16_t)(response.vq_state.packed.last_avail_idx |
					      response.vq_state.packed.last_avail_counter << 15)
				 : response.vq_state.split.avail_index;

	assert_int_equal(response.result, VDUSE_REQ_RESULT_OK);
	/* All that was available was taken, for a kick is never missed. */
	if (!driver->out)
		assert_int_equal(place, driver->ring.available);
	assert_int_equal(ask(driver, &no_such).result, VDUSE_REQ_RESULT_FAILED);
}

static void receive_kick(struct driver *driver)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr header = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct pollfd file = {.fd = driver->kernel.kicks[0], .events = POLLIN};

	if (driver->kick >= 0)
		close(driver->kick);
	driver->kick = -1;
	if (poll(&file, 1, 20000) != 1)
		fail_msg("the disk did not come up");
	assert_int_equal(recvmsg(driver->kernel.kicks[0], &header, 0), 1);
	memcpy(&driver->kick, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(int));
}

static void kick(struct driver *driver)
{
	uint64_t one = 1;

	assert_int_equal(write(driver->kick, &one, sizeof(one)), sizeof(one));
}

static void spawn(struct driver *driver)
{
	fflush(stdout);
	driver->child = fork();
	assert_true(driver->child >= 0);
	if (!driver->child) {
		disk(&driver->kernel, driver->folder, driver->variant);
		_exit(1);
	}
}

static void kill_disk(struct driver *driver)
{
	int status;

	kill(driver->child, SIGKILL);
	assert_int_equal(waitpid(driver->child, &status, 0), driver->child);
	/* It was alive until then. */
	assert_true(WIFSIGNALED(status));
}

static void submit(struct driver *driver, unsigned slot)
{
	uint64_t base = REQUEST_IOVA + slot * SLOT_BYTES;
	struct request_state *request = &driver->requests[slot];
	struct virtio_blk_outhdr *header = at(driver, slot, 0);
	int id;

	do
		request->block = (uint32_t)random_below(driver->random, BLOCKS);
	while (driver->block_busy[request->block]);
	request->write = random_below(driver->random, 3) > 0;
	request->version = request->write ? ++driver->version : driver->written[request->block];
	if (request->write)
		pattern(at(driver, slot, data_at(driver)), request->block, request->version);
	else
		memset(at(driver, slot, data_at(driver)), 0xee, BLOCK);
	*header = (struct virtio_blk_outhdr){
		.type = request->write ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN,
		.sector = (uint64_t)request->block * BLOCK / SECTOR,
	};
	*(unsigned char *)at(driver, slot, STATUS_AT) = 0xff;
	id = ring_driver_add(&driver->ring,
		(const struct ring_part[]){{base, sizeof(*header), false},
			{base + data_at(driver), BLOCK, !request->write},
			{base + STATUS_AT, 1, true}},
		3, driver->variant->direct_tables ? 0 : base + TABLE_AT);
	if (id < 0)
		return;
	request->out = driver->block_busy[request->block] = true;
	driver->slot_of[id] = (int)slot;
	driver->out++;
}

static void complete(struct driver *driver, int id)
{
	int slot = driver->slot_of[id];
	struct request_state *request = &driver->requests[slot];
	static unsigned char wanted[BLOCK];

	assert_true(request->out);
	request->out = driver->block_busy[request->block] = false;
	driver->out--;
	driver->done++;
	assert_int_equal(*(unsigned char *)at(driver, (unsigned)slot, STATUS_AT), VIRTIO_BLK_S_OK);
	if (request->write) {
		driver->written[request->block] = request->version;
		return;
	}
	pattern(wanted, request->block, request->version);
	if (memcmp(wanted, at(driver, (unsigned)slot, data_at(driver)), BLOCK))
		fail_msg("block %u is not as version %u has it", request->block, request->version);
}

/* Takes what is used, and adds more if wanted. */
static void turn(struct driver *driver, bool more)
{
	struct pollfd file = {.fd = driver->kernel.interrupt, .events = POLLIN};
	uint64_t value;
	uint32_t length;
	bool must_kick = false;
	int id;

	while ((id = ring_driver_get(&driver->ring, &length)) >= 0)
		complete(driver, id);
	assert_int_equal(id, -1);
	for (unsigned slot = 0; more && slot < DEPTH; slot++) {
		if (driver->requests[slot].out || random_below(driver->random, 4) == 0)
			continue;
		submit(driver, slot);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		must_kick |= ring_driver_must_kick(&driver->ring);
	}
	if (must_kick)
		kick(driver);
	ring_driver_want_interrupt(&driver->ring, true);
	/* A short wait, for one may have come before it was asked for. */
	if (poll(&file, 1, 1) == 1)
		assert_int_equal(read(file.fd, &value, sizeof(value)), sizeof(value));
}

static void start(struct driver *driver, const struct variant *variant, struct random *random)
{
	struct kernel *kernel = &driver->kernel;
	struct dmamap_virtqueue_config config;
	size_t bytes = RING_BYTES + DATA_BYTES + CONST_BYTES;
	unsigned char *memory;

	*driver = (struct driver){.variant = variant, .random = random, .kick = -1};
	strcpy(driver->folder, "/tmp/dmamap-vduse-kill-XXXXXX");
	assert_non_null(mkdtemp(driver->folder));
	kernel->system.ops = &kernel_ops;
	kernel->shared = mmap(NULL, sizeof(*kernel->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	kernel->memory = memfd_create("driver", MFD_CLOEXEC);
	assert_int_equal(ftruncate(kernel->memory, (off_t)bytes), 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kernel->memory, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, kernel->messages), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, kernel->kicks), 0);
	kernel->interrupt = eventfd(0, 0);
	ring_driver_start(&driver->ring, memory, QUEUE_SIZE, variant->packed, true);
	ring_driver_config(&driver->ring, &config);
	kernel->shared->features = 1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_F_ACCESS_PLATFORM |
				   1ull << VIRTIO_RING_F_EVENT_IDX |
				   1ull << VIRTIO_RING_F_INDIRECT_DESC |
				   (uint64_t)variant->packed << VIRTIO_F_RING_PACKED;
	kernel->shared->info = (struct vduse_vq_info){.num = QUEUE_SIZE,
		.desc_addr = config.descriptors,
		.driver_addr = config.driver,
		.device_addr = config.device};
	if (variant->packed)
		kernel->shared->info.packed = (struct vduse_vq_state_packed){1, 0, 1, 0};
}

static void remove_files(const struct driver *driver)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/image", driver->folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/log", driver->folder);
	unlink(path);
	rmdir(driver->folder);
}

static void check_image(const struct driver *driver)
{
	unsigned char is[BLOCK], wanted[BLOCK];
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/image", driver->folder);
	fd = open(path, O_RDONLY);
	for (uint32_t block = 0; block < BLOCKS; block++) {
		assert_int_equal(pread(fd, is, BLOCK, (off_t)block * BLOCK), BLOCK);
		pattern(wanted, block, driver->written[block]);
		if (memcmp(is, wanted, BLOCK))
			fail_msg("block %u is not as version %u has it", block,
				driver->written[block]);
	}
	close(fd);
	remove_files(driver);
}

static void end(struct driver *driver)
{
	struct kernel *kernel = &driver->kernel;

	munmap(driver->ring.memory, RING_BYTES + DATA_BYTES + CONST_BYTES);
	munmap(kernel->shared, sizeof(*kernel->shared));
	close(kernel->memory);
	close(kernel->interrupt);
	for (unsigned i = 0; i < 2; i++) {
		close(kernel->messages[i]);
		close(kernel->kicks[i]);
	}
	close(driver->kick);
}

static const struct variant variants[] = {
	{"split", false, false, DIRECT_AUTO, 0, 0},
	{"split, slow", false, false, DIRECT_AUTO, 300, 0},
	{"split, no tables, cached", false, true, DIRECT_OFF, 0, 0},
	{"split, not aligned", false, false, DIRECT_AUTO, 0, 8},
	{"packed", true, false, DIRECT_AUTO, 0, 0},
	{"packed, slow", true, false, DIRECT_AUTO, 300, 0},
	{"packed, no tables, cached", true, true, DIRECT_OFF, 100, 4},
};

static void killed_and_resumed(void **state)
{
	struct random random = random_start("killed_and_resumed");

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		static struct driver driver;

		start(&driver, &variants[i], &random);
		spawn(&driver);
		set_status(&driver, 0xb);
		driver.kernel.shared->info.ready = 1;
		set_status(&driver, 0xf);
		receive_kick(&driver);
		for (unsigned kills = 0; kills < KILLS; kills++) {
			uint64_t before = driver.done, least = random_below(&random, 200);

			while (driver.done < before + least)
				turn(&driver, true);
			kill_disk(&driver);
			spawn(&driver);
			receive_kick(&driver);
			change_memory(&driver);
			/* As a driver that was never told of the death. */
			turn(&driver, true);
			kick(&driver);
		}
		while (driver.out)
			turn(&driver, false);
		ask_places(&driver);
		set_status(&driver, 0);
		kill_disk(&driver);
		check_image(&driver);
		printf("%s: %llu requests\n", variants[i].name, (unsigned long long)driver.done);
		end(&driver);
	}
}

/* Requests that name memory which is not there, and then a ring that is not. */
static void memory_that_vanishes(void **state)
{
	static const struct variant variant = {"vanishing", false, false, DIRECT_OFF, 0, 0};
	const uint64_t gone = DATA_IOVA + DATA_BYTES - 0x1000;
	struct random random = random_start("memory_that_vanishes");
	static struct driver driver;
	const struct ring_part parts[] = {{gone, 16, false}, {gone + 64, 1, true}};
	const struct ring_part status_gone[] = {
		{DATA_IOVA, 16, false}, {DATA_IOVA + 0x1000, 512, true}, {gone, 1, true}};
	int status, id, taken = -1;
	uint32_t length;

	(void)state;
	start(&driver, &variant, &random);
	spawn(&driver);
	set_status(&driver, 0xb);
	driver.kernel.shared->info.ready = 1;
	set_status(&driver, 0xf);
	receive_kick(&driver);
	assert_int_equal(
		ftruncate(driver.kernel.memory, (off_t)(RING_BYTES + DATA_BYTES - 0x1000)), 0);
	for (unsigned i = 0; i < 2; i++) {
		memset(ring_driver_at(&driver.ring, DATA_IOVA), 0, 16);
		id = i ? ring_driver_add(&driver.ring, status_gone, 3, DATA_IOVA + TABLE_AT)
		       : ring_driver_add(&driver.ring, parts, 2, DATA_IOVA + TABLE_AT);
		kick(&driver);
		for (unsigned tries = 0; tries < 5000 && taken != id; tries++) {
			usleep(1000);
			taken = ring_driver_get(&driver.ring, &length);
		}
		assert_int_equal(taken, id);
		assert_int_equal(length, 0);
		taken = -1;
	}
	/* The queue is as good as before. */
	for (unsigned i = 0; i < 20; i++)
		turn(&driver, true);
	while (driver.out)
		turn(&driver, false);
	assert_true(driver.done > 0);
	/* Without its ring it stops, and the disk answers all the same. */
	assert_int_equal(ftruncate(driver.kernel.memory, 0), 0);
	kick(&driver);
	usleep(20000);
	assert_int_equal(
		ftruncate(driver.kernel.memory, (off_t)(RING_BYTES + DATA_BYTES + CONST_BYTES)), 0);
	set_status(&driver, 0);
	assert_int_equal(waitpid(driver.child, &status, WNOHANG), 0);
	kill_disk(&driver);
	check_image(&driver);
	end(&driver);
}

/* A ring that is gone before the queue is made: the driver hears of it, the disk lives. */
static void a_ring_that_was_never_there(void **state)
{
	static const struct variant variant = {"never there", false, false, DIRECT_OFF, 0, 0};
	struct random random = random_start("a_ring_that_was_never_there");
	const struct vduse_dev_request ok = {
		.type = VDUSE_SET_STATUS, .request_id = 3, .s.status = 0xf};
	static struct driver driver;
	int status;

	(void)state;
	start(&driver, &variant, &random);
	spawn(&driver);
	set_status(&driver, 0xb);
	driver.kernel.shared->info.ready = 1;
	assert_int_equal(ftruncate(driver.kernel.memory, 0), 0);
	assert_int_equal(ask(&driver, &ok).result, VDUSE_REQ_RESULT_FAILED);
	assert_int_equal(waitpid(driver.child, &status, WNOHANG), 0);
	assert_int_equal(
		ftruncate(driver.kernel.memory, (off_t)(RING_BYTES + DATA_BYTES + CONST_BYTES)), 0);
	set_status(&driver, 0xf);
	receive_kick(&driver);
	for (unsigned i = 0; i < 5; i++)
		turn(&driver, true);
	while (driver.out)
		turn(&driver, false);
	assert_true(driver.done > 0);
	kill_disk(&driver);
	check_image(&driver);
	end(&driver);
}

/*
 * Killed while the driver leaves, when the log is cleared and the kernel does not
 * know it yet: what is still in the ring was done long ago, and is not done again.
 */
static void leave_and_kill(struct random *random)
{
	static const struct variant variant = {"leaving", false, false, DIRECT_OFF, 0, 0};
	const struct vduse_dev_request leave = {
		.type = VDUSE_SET_STATUS, .request_id = 11, .s.status = 0};
	struct vduse_dev_response response;
	static struct driver driver;
	char path[128];
	const uint64_t nothing = 0;
	int fd;

	start(&driver, &variant, random);
	spawn(&driver);
	set_status(&driver, 0xb);
	driver.kernel.shared->info.ready = 1;
	set_status(&driver, 0xf);
	receive_kick(&driver);
	for (unsigned i = 0; i < 3; i++)
		turn(&driver, true);
	while (driver.out)
		turn(&driver, false);
	kill_disk(&driver);
	/* The first word of the queue's log, as dmamap_virtqueue_log_clear() leaves it. */
	snprintf(path, sizeof(path), "%s/log", driver.folder);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &nothing, sizeof(nothing), 4096), sizeof(nothing));
	close(fd);
	/* And the memory of its requests is used for something else by now. */
	for (unsigned slot = 0; slot < DEPTH; slot++)
		memset(at(&driver, slot, data_at(&driver)), 0xee, BLOCK);
	assert_int_equal(write(driver.kernel.messages[0], &leave, sizeof(leave)), sizeof(leave));
	spawn(&driver);
	assert_int_equal(
		read(driver.kernel.messages[0], &response, sizeof(response)), sizeof(response));
	assert_int_equal(response.result, VDUSE_REQ_RESULT_OK);
	driver.kernel.shared->info.ready = 0;
	set_status(&driver, 0xb);
	kill_disk(&driver);
	check_image(&driver);
	end(&driver);
}

static void killed_while_the_driver_leaves(void **state)
{
	struct random random = random_start("killed_while_the_driver_leaves");

	(void)state;
	/* Whether queues would run before the message is read is chance. */
	for (unsigned i = 0; i < 12; i++)
		leave_and_kill(&random);
}

/* Good requests, then bytes changed at random in rings, tables, headers. */
static void lie(struct driver *driver)
{
	unsigned char *memory = driver->ring.memory;
	unsigned n = 1 + (unsigned)random_below(driver->random, 6);

	memset(driver->block_busy, 0, sizeof(driver->block_busy));
	for (unsigned slot = 0; slot < DEPTH; slot++) {
		driver->requests[slot].out = false;
		submit(driver, slot);
	}
	while (n--) {
		static const uint32_t areas[] = {0, 0x4000, RING_BYTES, RING_BYTES + TABLE_AT};
		uint32_t area = areas[random_below(driver->random, 4)];

		memory[area + random_below(driver->random, 80)] =
			(unsigned char)random_next(driver->random);
	}
	kick(driver);
	usleep((useconds_t)random_below(driver->random, 500));
}

/* Whatever a driver writes, the disk lives, answers, and serves the next driver. */
static void a_driver_that_lies(void **state)
{
	static const struct variant lying[] = {
		{"lying, split", false, false, DIRECT_OFF, 0, 0},
		{"lying, split, direct", false, true, DIRECT_AUTO, 0, 8},
		{"lying, packed", true, false, DIRECT_OFF, 0, 0},
		{"lying, packed, direct", true, true, DIRECT_AUTO, 0, 0},
	};
	struct random random = random_start("a_driver_that_lies");

	(void)state;
	for (size_t i = 0; i < sizeof(lying) / sizeof(lying[0]); i++) {
		static struct driver driver;
		int status;

		start(&driver, &lying[i], &random);
		spawn(&driver);
		for (unsigned life = 0; life < 150; life++) {
			set_status(&driver, 0xb);
			driver.kernel.shared->info.ready = 1;
			set_status(&driver, 0xf);
			receive_kick(&driver);
			for (unsigned n = 1 + (unsigned)random_below(&random, 3); n--;)
				lie(&driver);
			set_status(&driver, 0);
			driver.kernel.shared->info.ready = 0;
			ring_driver_start(&driver.ring, driver.ring.memory, QUEUE_SIZE,
				lying[i].packed, true);
		}
		assert_int_equal(waitpid(driver.child, &status, WNOHANG), 0);
		kill_disk(&driver);
		remove_files(&driver);
		end(&driver);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_and_resumed),
		cmocka_unit_test(memory_that_vanishes),
		cmocka_unit_test(a_ring_that_was_never_there),
		cmocka_unit_test(killed_while_the_driver_leaves),
		cmocka_unit_test(a_driver_that_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
