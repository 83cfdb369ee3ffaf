/* SPDX-License-Identifier: MIT */
/*
 * The soft system for other processes (soft/serve.c, soft/remote.c): a file is
 * known however a process came by it and goes with the last one who has it; an
 * argument is as much as there is of it; who speaks nonsense is hung up on, and
 * nobody else hears of it. That each request gets its own answer is what the
 * VDUSE tests say, which run once more by way of a server.
 */
#include <fcntl.h>
#include <signal.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "abi/vduse.h"
#include "abi/virtio.h"
#include "dmamap/vdpa.h"
#include "soft/wire.h"
#include "tests/soft/rig.h"

#define NAME "served"

struct setup {
	struct rig rig; /* the system itself */
	struct dmamap_soft_server *server;
	struct dmamap_system *remote;
	char folder[32];
	char path[48];
};

static int start(void **state)
{
	static struct setup setup;

	rig_start(&setup.rig, NULL);
	strcpy(setup.folder, "/tmp/dmamap-serve-XXXXXX");
	assert_non_null(mkdtemp(setup.folder));
	snprintf(setup.path, sizeof(setup.path), "%s/socket", setup.folder);
	assert_int_equal(
		dmamap_soft_serve(setup.rig.system, setup.path, NULL, NULL, &setup.server), 0);
	assert_int_equal(dmamap_system_remote(setup.path, &setup.remote), 0);
	*state = &setup;
	return 0;
}

static int stop(void **state)
{
	struct setup *setup = *state;

	dmamap_system_destroy(setup->remote);
	dmamap_soft_serve_end(setup->server);
	rig_stop(&setup->rig);
	/* The socket went with the server. */
	assert_int_equal(rmdir(setup->folder), 0);
	return 0;
}

static int open_file(struct setup *setup, const char *path)
{
	return setup->remote->ops->open(setup->remote, path, O_RDWR);
}

static int call(struct setup *setup, int fd, unsigned long request, void *argument)
{
	return setup->remote->ops->ioctl(setup->remote, fd, request, argument);
}

static void close_file(struct setup *setup, int fd)
{
	assert_int_equal(setup->remote->ops->close(setup->remote, fd), 0);
}

static int create(struct setup *setup, int control)
{
	union {
		struct vduse_dev_config is;
		char bytes[sizeof(struct vduse_dev_config) + 64];
	} all = {.is = {.name = NAME,
			 .device_id = VIRTIO_ID_BLOCK,
			 .features = 1ull << VIRTIO_F_ACCESS_PLATFORM,
			 .vq_num = 1,
			 .vq_align = 4096,
			 .config_size = 64}};

	return call(setup, control, VDUSE_CREATE_DEV, &all);
}

static int destroy(struct setup *setup, int control)
{
	char name[VDUSE_NAME_MAX] = NAME;

	return call(setup, control, VDUSE_DESTROY_DEV, name);
}

/* The server hears a moment later that a file's last descriptor is gone. */
static int destroy_soon(struct setup *setup, int control)
{
	int error;

	for (unsigned tries = 0; tries < 5000; tries++) {
		error = destroy(setup, control);
		if (error != -EBUSY)
			break;
		usleep(1000);
	}
	return error;
}

/* A page that is there, and behind it one that is not. */
static char *edge(int prot)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + page, page, prot), 0);
	return at + page;
}

static void drop_edge(char *at)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	munmap(at - page, 2 * page);
}

/* ------------------------------------------------------------------- files */

static void a_system_that_nobody_serves_is_gone(void **state)
{
	struct setup *setup = *state;
	struct dmamap_system *nobody;

	assert_int_equal(dmamap_system_remote("/nonexistent/socket", &nobody), 0);
	assert_int_equal(nobody->ops->open(nobody, "/dev/vduse/control", O_RDWR), -ENODEV);
	dmamap_system_destroy(nobody);
	assert_int_equal(dmamap_system_remote("", &nobody), -EINVAL);
	assert_int_equal(dmamap_soft_serve(setup->remote, "x", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(
		dmamap_soft_serve(setup->rig.system, setup->path, NULL, NULL, NULL), -EADDRINUSE);
}

static void only_vduse_is_served(void **state)
{
	struct setup *setup = *state;
	char name[VDUSE_NAME_MAX];

	assert_int_equal(open_file(setup, "/dev/vfio/vfio"), -ENODEV);
	assert_int_equal(open_file(setup, "/dev/iommu"), -ENODEV);
	assert_int_equal(open_file(setup, "/etc/passwd"), -ENODEV);
	assert_int_equal(open_file(setup, "/dev/vduse/nobody"), -ENOENT);
	assert_true(setup->remote->ops->list(
			    setup->remote, "/sys/class/vduse", 0, name, sizeof(name)) > 0);
	assert_string_equal(name, "control");
	assert_int_equal(
		setup->remote->ops->list(setup->remote, "/sys/class/vduse", 1, name, sizeof(name)),
		-ENOENT);
	assert_int_equal(
		setup->remote->ops->list(setup->remote, "/dev/vfio", 0, name, sizeof(name)),
		-ENODEV);
}

static void a_file_lives_until_the_last_descriptor_is_closed(void **state)
{
	struct setup *setup = *state;
	int control = open_file(setup, "/dev/vduse/control"), device, copy;
	uint64_t features;

	assert_int_equal(create(setup, control), 0);
	device = open_file(setup, "/dev/vduse/" NAME);
	assert_true(device >= 0);
	assert_int_equal(open_file(setup, "/dev/vduse/" NAME), -EBUSY);
	copy = dup(device);
	close_file(setup, device);
	assert_int_equal(call(setup, copy, VDUSE_DEV_GET_FEATURES, &features), 0);
	assert_int_equal(destroy(setup, control), -EBUSY);
	close(copy);
	assert_int_equal(destroy_soon(setup, control), 0);
	close_file(setup, control);
}

/* The lock and the connection are not what the child goes on with. */
static void a_child_has_its_parents_files(void **state)
{
	struct setup *setup = *state;
	int control = open_file(setup, "/dev/vduse/control"), device, status;
	pid_t child;

	assert_int_equal(create(setup, control), 0);
	device = open_file(setup, "/dev/vduse/" NAME);
	child = fork();
	if (!child) {
		uint64_t features;

		_exit(call(setup, device, VDUSE_DEV_GET_FEATURES, &features) != 0 ||
			destroy(setup, control) != -EBUSY);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close_file(setup, device);
	assert_int_equal(destroy_soon(setup, control), 0);
	close_file(setup, control);
}

static void a_process_that_dies_lets_go_of_its_files(void **state)
{
	struct setup *setup = *state;
	int control = open_file(setup, "/dev/vduse/control"), ready[2];
	char byte;
	pid_t child;

	assert_int_equal(create(setup, control), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		if (open_file(setup, "/dev/vduse/" NAME) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(destroy(setup, control), -EBUSY);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(destroy_soon(setup, control), 0);
	close(ready[0]);
	close(ready[1]);
	close_file(setup, control);
}

static void descriptors_of_others_are_none_of_the_systems(void **state)
{
	struct setup *setup = *state;
	int other = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t features;

	assert_int_equal(call(setup, other, VDUSE_DEV_GET_FEATURES, &features), -EBADF);
	assert_int_equal(call(setup, -1, VDUSE_DEV_GET_FEATURES, &features), -EBADF);
	assert_int_equal(setup->remote->ops->write(setup->remote, other, "x", 1), -EBADF);
	close(other);
}

/* Whoever closes all descriptors closes the connection too. */
static void a_closed_connection_is_made_anew(void **state)
{
	struct setup *setup = *state;
	int control = open_file(setup, "/dev/vduse/control"), other;
	uint64_t version;

	for (int fd = 512; fd < 1024; fd++)
		close(fd);
	/* Its number is another file's now. */
	other = fcntl(control, F_DUPFD_CLOEXEC, 512);
	assert_int_equal(call(setup, control, VDUSE_GET_API_VERSION, &version), 0);
	assert_int_equal(call(setup, other, VDUSE_GET_API_VERSION, &version), 0);
	close(other);
	close_file(setup, control);
}

/* --------------------------------------------------------------- arguments */

static void an_argument_is_as_much_as_there_is(void **state)
{
	struct setup *setup = *state;
	int control = open_file(setup, "/dev/vduse/control");
	char *end = edge(PROT_NONE);
	struct vduse_dev_config *config = (void *)(end - sizeof(*config));
	uint64_t version = 0;

	assert_int_equal(call(setup, control, VDUSE_SET_API_VERSION, &version), 0);
	assert_int_equal(call(setup, control, VDUSE_SET_API_VERSION, NULL), -EFAULT);
	assert_int_equal(call(setup, control, VDUSE_SET_API_VERSION, end - 4), -EFAULT);
	assert_int_equal(call(setup, control, VDUSE_GET_FEATURES, end), -EFAULT);
	assert_int_equal(call(setup, control, 0x1234, NULL), -EINVAL);
	/* The structure is there, its configuration is not; what is wrong in it comes first. */
	memset(config, 0, sizeof(*config));
	strcpy(config->name, NAME);
	config->device_id = VIRTIO_ID_BLOCK;
	config->features = 1ull << VIRTIO_F_ACCESS_PLATFORM;
	config->vq_align = 4096;
	config->config_size = 64;
	assert_int_equal(call(setup, control, VDUSE_CREATE_DEV, config), -EFAULT);
	config->vq_align = 3;
	assert_int_equal(call(setup, control, VDUSE_CREATE_DEV, config), -EINVAL);
	drop_edge(end);
	close_file(setup, control);
}

static void an_answer_needs_memory_that_can_be_written(void **state)
{
	struct setup *setup = *state;
	int control = open_file(setup, "/dev/vduse/control");
	char *read_only = edge(PROT_READ);

	assert_int_equal(call(setup, control, VDUSE_GET_FEATURES, read_only), -EFAULT);
	drop_edge(read_only);
	close_file(setup, control);
}

static void a_kick_descriptor_is_the_callers(void **state)
{
	struct setup *setup = *state;
	int control = open_file(setup, "/dev/vduse/control"), device;
	struct vduse_vq_eventfd kick = {.fd = 999999};

	assert_int_equal(create(setup, control), 0);
	device = open_file(setup, "/dev/vduse/" NAME);
	assert_int_equal(call(setup, device, VDUSE_VQ_SETUP_KICKFD, &kick), -EBADF);
	kick.fd = control;
	assert_int_equal(call(setup, device, VDUSE_VQ_SETUP_KICKFD, &kick), -EINVAL);
	kick.fd = VDUSE_EVENTFD_DEASSIGN;
	assert_int_equal(call(setup, device, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	kick.fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(call(setup, device, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	close(kick.fd);
	close_file(setup, device);
	assert_int_equal(destroy_soon(setup, control), 0);
	close_file(setup, control);
}

static void sysfs_is_read_and_written(void **state)
{
	struct setup *setup = *state;
	const struct dmamap_system_ops *ops = setup->remote->ops;
	int control = open_file(setup, "/dev/vduse/control"), file;
	char text[32] = "";

	assert_int_equal(create(setup, control), 0);
	file = open_file(setup, "/sys/class/vduse/" NAME "/bounce_size");
	assert_true(file >= 0);
	assert_int_equal(ops->pwrite(setup->remote, file, "2097152\n", 8, 0), 8);
	assert_int_equal(ops->pwrite(setup->remote, file, "nonsense", 8, 0), -EINVAL);
	assert_int_equal(ops->pread(setup->remote, file, text, sizeof(text), 0), 8);
	assert_string_equal(text, "2097152\n");
	close_file(setup, file);
	assert_int_equal(destroy_soon(setup, control), 0);
	close_file(setup, control);
}

static void a_device_is_read_by_its_descriptor(void **state)
{
	struct setup *setup = *state;
	const struct dmamap_system_ops *ops = setup->remote->ops;
	int control = open_file(setup, "/dev/vduse/control"), device;
	struct vduse_dev_request request;
	struct vduse_dev_response response = {.request_id = 5};

	assert_int_equal(create(setup, control), 0);
	device = ops->open(setup->remote, "/dev/vduse/" NAME, O_RDWR | O_NONBLOCK);
	assert_true(device >= 0);
	assert_int_equal(ops->read(setup->remote, device, &request, 8), -EINVAL);
	assert_int_equal(ops->read(setup->remote, device, &request, sizeof(request)), -EAGAIN);
	assert_int_equal(ops->write(setup->remote, device, &response, 8), -EINVAL);
	assert_int_equal(ops->write(setup->remote, device, &response, sizeof(response)), -ENOENT);
	close_file(setup, device);
	assert_int_equal(destroy_soon(setup, control), 0);
	close_file(setup, control);
}

/* ---------------------------------------------------------------- nonsense */

static int dial(const struct setup *setup)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, setup->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void who_speaks_nonsense_is_hung_up_on(void **state)
{
	struct setup *setup = *state;
	struct random random = random_start("nonsense");
	int control = open_file(setup, "/dev/vduse/control");
	uint64_t version;

	for (unsigned i = 0; i < 300; i++) {
		char message[sizeof(struct wire_call) + 600];
		struct wire_call *call_of = (void *)message;
		size_t size = random_below(&random, sizeof(message)) + 1;
		int link = dial(setup);
		char answer[1024];

		for (size_t at = 0; at < sizeof(message); at++)
			message[at] = (char)random_next(&random);
		if (i % 4) {
			/* Almost a call. */
			call_of->version = WIRE_VERSION;
			call_of->kind = (uint32_t)random_below(&random, 6);
			call_of->size = random_below(&random, 2000);
			size = size < sizeof(*call_of) ? sizeof(*call_of) : size;
		}
		assert_int_equal(send(link, message, size, MSG_NOSIGNAL), size);
		/* An answer, or the end. */
		assert_true(recv(link, answer, sizeof(answer), 0) >= 0);
		close(link);
	}
	assert_int_equal(call(setup, control, VDUSE_GET_API_VERSION, &version), 0);
	close_file(setup, control);
}

static void come_and_go(struct setup *setup)
{
	int control = open_file(setup, "/dev/vduse/control");

	assert_int_equal(create(setup, control), 0);
	close_file(setup, open_file(setup, "/dev/vduse/" NAME));
	assert_int_equal(destroy_soon(setup, control), 0);
	close_file(setup, control);
}

static void nothing_is_left_open(void **state)
{
	struct setup *setup = *state;
	unsigned before;

	/* What stays: the connection, and what the system listens with. */
	come_and_go(setup);
	usleep(50000);
	before = rig_descriptors();
	for (unsigned i = 0; i < 50; i++)
		come_and_go(setup);
	for (unsigned tries = 0; tries < 5000 && rig_descriptors() > before; tries++)
		usleep(1000);
	assert_int_equal(rig_descriptors(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_system_that_nobody_serves_is_gone),
		TEST(only_vduse_is_served),
		TEST(a_file_lives_until_the_last_descriptor_is_closed),
		TEST(a_child_has_its_parents_files),
		TEST(a_process_that_dies_lets_go_of_its_files),
		TEST(descriptors_of_others_are_none_of_the_systems),
		TEST(a_closed_connection_is_made_anew),
		TEST(an_argument_is_as_much_as_there_is),
		TEST(an_answer_needs_memory_that_can_be_written),
		TEST(a_kick_descriptor_is_the_callers),
		TEST(sysfs_is_read_and_written),
		TEST(a_device_is_read_by_its_descriptor),
		TEST(who_speaks_nonsense_is_hung_up_on),
		TEST(nothing_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
