/* SPDX-License-Identifier: MIT */
/*
 * Every way to a descriptor that the preload library sees, and some that it does
 * not: a program that is started under it by this one opens, duplicates and
 * closes the soft system's files, and each of them is what it should be.
 */
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/vduse.h"
#include "abi/virtio.h"
#include "cli/peer.h"

#define CONTROL "/dev/vduse/control"
#define DEVICE	"/dev/vduse/calls"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

/* ------------------------------------------------------------- under the library */

/* What only the control file answers. */
static bool is_control(int fd)
{
	uint64_t features = 0;

	return !ioctl(fd, VDUSE_GET_FEATURES, &features) && features;
}

static int failures;

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "not so: %s (%s)\n", what, strerror(errno));
	failures++;
}
#define CHECK(condition) check(condition, #condition)

static void check_opens(void)
{
	int fds[] = {
		open(CONTROL, O_RDWR),
		open64(CONTROL, O_RDWR | O_CLOEXEC),
		openat(AT_FDCWD, CONTROL, O_RDWR),
		openat64(AT_FDCWD, CONTROL, O_RDWR),
		__open_2(CONTROL, O_RDWR),
		__open64_2(CONTROL, O_RDWR),
		__openat_2(AT_FDCWD, CONTROL, O_RDWR),
		__openat64_2(AT_FDCWD, CONTROL, O_RDWR),
	};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		CHECK(is_control(fds[i]));
		CHECK(fcntl(fds[i], F_GETFD) == (i == 1 ? FD_CLOEXEC : 0));
		CHECK(!close(fds[i]));
		CHECK(ioctl(fds[i], VDUSE_GET_FEATURES, NULL) == -1 && errno == EBADF);
	}
	CHECK(open("/dev/vduse/nobody", O_RDWR) == -1 && errno == ENOENT);
}

static void check_duplicates(void)
{
	int fd = open(CONTROL, O_RDWR), copy, other = open("/dev/null", O_RDWR);

	copy = dup(fd);
	CHECK(is_control(copy) && !close(copy));
	CHECK(dup2(fd, 100) == 100 && is_control(100));
	CHECK(dup2(other, 100) == 100 && !is_control(100));
	CHECK(dup3(fd, 100, O_CLOEXEC) == 100 && is_control(100) && !close(100));
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 200);
	CHECK(copy >= 200 && is_control(copy) && !close(copy));
	CHECK(is_control(fd));
	/* Closed where it is not seen, and the number is another file's. */
	CHECK(!close_range((unsigned)fd, (unsigned)fd, 0));
	CHECK(dup2(other, fd) == fd && write(fd, "x", 1) == 1 && !is_control(fd));
	close(fd);
	close(other);
}

static int ended(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child ? status : -1;
}

static void check_children(void)
{
	int fd = open(CONTROL, O_RDWR), other;
	pid_t child = fork();

	if (!child)
		_exit(!is_control(fd));
	CHECK(!ended(child));
	/* It has the parent's memory, but not its descriptors. */
	child = vfork();
	if (!child) {
		close(fd);
		_exit(0);
	}
	CHECK(!ended(child));
	CHECK(is_control(fd));
	/* By exec it comes as an open descriptor, and is opened anew. */
	child = fork();
	if (!child) {
		execl("/proc/self/exe", "calls", "--again", (char *)NULL);
		_exit(127);
	}
	CHECK(!ended(child));
	other = open(CONTROL, O_RDWR);
	CHECK(is_control(other) && is_control(fd));
	close(other);
	close(fd);
}

static void check_reads(void)
{
	union {
		struct vduse_dev_config is;
		char bytes[sizeof(struct vduse_dev_config) + 64];
	} config = {.is = {.name = "calls",
			    .device_id = VIRTIO_ID_BLOCK,
			    .features = 1ull << VIRTIO_F_ACCESS_PLATFORM,
			    .vq_num = 1,
			    .vq_align = 4096,
			    .config_size = 64}};
	int control = open(CONTROL, O_RDWR), fd, file;
	struct vduse_dev_request request;
	struct vduse_dev_response response = {.request_id = 1};
	struct vduse_vq_eventfd kick = {.fd = 9999};
	char name[VDUSE_NAME_MAX] = "calls", text[32] = "";
	uint64_t features;

	CHECK(!ioctl(control, VDUSE_CREATE_DEV, &config));
	fd = open(DEVICE, O_RDWR | O_NONBLOCK);
	CHECK(fd >= 0 && open(DEVICE, O_RDWR) == -1 && errno == EBUSY);
	CHECK(read(fd, &request, 8) == -1 && errno == EINVAL);
	CHECK(read(fd, &request, sizeof(request)) == -1 && errno == EAGAIN);
	CHECK(write(fd, &response, sizeof(response)) == -1 && errno == ENOENT);
	/* An answer, and not that the file is none of the system's. */
	CHECK(ioctl(fd, VDUSE_VQ_SETUP_KICKFD, &kick) == -1 && errno == EBADF);
	CHECK(!ioctl(fd, VDUSE_DEV_GET_FEATURES, &features));
	CHECK(!poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0));
	CHECK(ioctl(control, VDUSE_DESTROY_DEV, name) == -1 && errno == EBUSY);
	file = open("/sys/class/vduse/calls/bounce_size", O_RDWR);
	CHECK(pwrite(file, "1048576", 7, 0) == 7);
	CHECK(pread(file, text, sizeof(text), 0) == 8 && !strcmp(text, "1048576\n"));
	CHECK(!close(file));
	file = open("/sys/class/vduse/calls/bounce_size", O_RDONLY);
	CHECK(write(file, "1048576", 7) == -1 && errno == EBADF);
	CHECK(read(file, text, sizeof(text)) == 8);
	CHECK(!close(file) && !close(fd));
	for (unsigned tries = 0; ioctl(control, VDUSE_DESTROY_DEV, name) && tries < 5000; tries++)
		usleep(1000);
	CHECK(open(DEVICE, O_RDWR) == -1 && errno == ENOENT);
	close(control);
}

static int inside(void)
{
	check_opens();
	check_duplicates();
	check_children();
	check_reads();
	return failures != 0;
}

/* ---------------------------------------------------------------------- outside */

static void a_program_that_knows_nothing_of_it(void **state)
{
	char *const argv[] = {(char *)"/proc/self/exe", (char *)"--inside", NULL};
	struct complaint complaint = {{0}};
	struct dmamap_system *system;
	struct peer peer = {0};

	(void)state;
	assert_int_equal(dmamap_system_soft(NULL, &system, NULL), 0);
	if (peer_serve(&peer, system, &complaint) || peer_start(&peer, argv, &complaint))
		fail_msg("%s", complaint.text);
	for (unsigned waited = 0; peer_alive(&peer) && waited < 60000; waited++)
		usleep(1000);
	assert_true(peer_stop(&peer, SIGKILL, 1000));
	peer_serve_end(&peer);
	dmamap_system_destroy(system);
	assert_int_equal(peer.status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_program_that_knows_nothing_of_it)};

	if (argc == 2 && !strcmp(argv[1], "--inside"))
		return inside();
	if (argc == 2 && !strcmp(argv[1], "--again"))
		return !is_control(open(CONTROL, O_RDWR));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
