/* SPDX-License-Identifier: MIT */
/*
 * The parts of dmamap vduse-blk that need no device: the image, the file of the
 * logs, the signals, and what a service manager hears.
 */
#include "tests/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/vduse_blk/image.h"
#include "cli/vduse_blk/inflight.h"
#include "cli/vduse_blk/notify.h"
#include "cli/vduse_blk/stop.h"
#include "dmamap/virtqueue.h"

#define MIB (1ull << 20)

/* An image and a log, in a folder of their own. */
struct world {
	char folder[64];
	char path[96];
	char log[96];
	struct image image;
};

static void world_start(struct world *world)
{
	strcpy(world->folder, "/tmp/dmamap-vduse-parts-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->path, sizeof(world->path), "%s/image", world->folder);
	snprintf(world->log, sizeof(world->log), "%s/log", world->folder);
}

static void world_end(const struct world *world)
{
	unlink(world->path);
	unlink(world->log);
	assert_int_equal(rmdir(world->folder), 0);
}

static void images_that_cannot_be(void **state)
{
	struct world world;
	struct complaint complaint;
	struct image image;
	struct stat status;
	char other[128];
	int fd;

	(void)state;
	world_start(&world);
	assert_int_equal(image_open(&image, world.path, 0, false, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "there is no such file; --size SIZE makes it"));
	/* No room for it, and then it is not left behind. */
	assert_int_equal(
		image_open(&image, world.path, 1ull << 60, false, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "no room for 1 EiB here"));
	assert_int_equal(access(world.path, F_OK), -1);
	assert_int_equal(image_open(&image, world.folder, 0, true, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "neither a file nor a block device"));
	/* Nobody waits for the other end of a FIFO. */
	assert_int_equal(mkfifo(world.path, 0600), 0);
	for (unsigned read_only = 0; read_only < 2; read_only++) {
		assert_int_equal(
			image_open(&image, world.path, 0, read_only, DIRECT_AUTO, 0, &complaint),
			-1);
		assert_non_null(strstr(complaint.text, "neither a file nor a block device"));
	}
	unlink(world.path);
	snprintf(other, sizeof(other), "%s/no/image", world.folder);
	assert_int_equal(image_open(&image, other, MIB, false, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "cannot be made (its folder is not there)"));
	fd = open(world.path, O_CREAT | O_RDWR, 0600);
	assert_int_equal(image_open(&image, world.path, 0, false, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "is empty; --size SIZE gives it one"));
	/* One that somebody else has made, or a killed process did not finish, is filled. */
	assert_int_equal(image_open(&image, world.path, MIB, false, DIRECT_AUTO, 0, &complaint), 0);
	assert_int_equal(image.bytes, MIB);
	assert_int_equal(fstat(fd, &status), 0);
	assert_true(status.st_blocks >= (blkcnt_t)(MIB / 512));
	image_close(&image);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(
		image_open(&image, world.path, 1ull << 60, false, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "no room for 1 EiB here"));
	assert_int_equal(access(world.path, F_OK), 0);
	assert_int_equal(ftruncate(fd, 1000), 0);
	assert_int_equal(image_open(&image, world.path, 0, false, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "its 1000 bytes are no number"));
	assert_int_equal(ftruncate(fd, MIB), 0);
	assert_int_equal(
		image_open(&image, world.path, 2 * MIB, false, DIRECT_AUTO, 0, &complaint), -1);
	assert_non_null(strstr(complaint.text, "has 1 MiB, not the 2 MiB of --size"));
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(image_open(&image, world.path, 0, false, DIRECT_AUTO, 30, &complaint), -1);
	assert_non_null(strstr(complaint.text, "another process uses this image"));
	assert_int_equal(flock(fd, LOCK_SH), 0);
	/* Several may read it. */
	assert_int_equal(image_open(&image, world.path, 0, true, DIRECT_AUTO, 30, &complaint), 0);
	image_close(&image);
	assert_int_equal(close(fd), 0);
	/* A file system that takes O_DIRECT and does nothing with it is told apart. */
	snprintf(other, sizeof(other), "/dev/shm/dmamap-%d", (int)getpid());
	if (!image_open(&image, other, MIB, false, DIRECT_AUTO, 30, &complaint)) {
		assert_false(image.direct && image.reads_wait);
		image_close(&image);
		unlink(other);
	}
	world_end(&world);
}

static void write_file(const char *path, const void *bytes, size_t n, off_t at)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, bytes, n, at), n);
	close(fd);
}

/* A path that was mistyped, or another disk's log, costs nobody anything. */
static void what_is_no_log_of_ours_stays(void **state)
{
	static const char precious[] = "somebody's letters", other_boot[40] = "before";
	struct world world;
	struct inflight_config config = {.name = "disk", .n_queues = 2, .size = 64};
	struct complaint complaint;
	struct inflight log;
	char text[sizeof(precious)] = {0}, long_path[PATH_MAX + 8];
	int fd;

	(void)state;
	world_start(&world);
	assert_int_equal(
		image_open(&world.image, world.path, MIB, false, DIRECT_AUTO, 0, &complaint), 0);
	config.image = &world.image;
	config.path = world.log;
	write_file(world.log, precious, sizeof(precious), 0);
	assert_int_equal(inflight_open(&log, &config, &complaint), -1);
	assert_non_null(strstr(complaint.text, "is no log of vduse-blk; name another"));
	fd = open(world.log, O_RDONLY);
	assert_int_equal(pread(fd, text, sizeof(text), 0), sizeof(text));
	assert_string_equal(text, precious);
	close(fd);
	unlink(world.log);
	/* The image itself is locked, and larger than any log's header. */
	config.path = world.path;
	assert_int_equal(inflight_open(&log, &config, &complaint), -1);
	assert_non_null(strstr(complaint.text, "another process uses this file"));
	/* Left by a process that was killed. */
	config.path = world.log;
	assert_int_equal(inflight_open(&log, &config, &complaint), 0);
	assert_false(log.kept);
	inflight_close(&log, false);
	config.name = "other";
	assert_int_equal(inflight_open(&log, &config, &complaint), -1);
	assert_non_null(strstr(complaint.text, "is the log of disk, which did not end"));
	config.name = "disk";
	config.keep = config.must = true;
	assert_int_equal(inflight_open(&log, &config, &complaint), 0);
	assert_true(log.kept);
	inflight_close(&log, false);
	/* Of another shape; of another block, with which its driver's requests would fail. */
	config.n_queues = 3;
	assert_int_equal(inflight_open(&log, &config, &complaint), -1);
	assert_non_null(strstr(complaint.text, "give the same image, --log and other options"));
	config.n_queues = 2;
	world.image.block *= 2;
	assert_int_equal(inflight_open(&log, &config, &complaint), -1);
	world.image.block /= 2;
	assert_int_equal(inflight_open(&log, &config, &complaint), 0);
	inflight_close(&log, false);
	/* Of another name, before the machine was started: nobody waits for that. */
	write_file(world.log, other_boot, sizeof(other_boot), 24);
	config.name = "other";
	config.must = false;
	assert_int_equal(inflight_open(&log, &config, &complaint), 0);
	assert_false(log.kept);
	inflight_close(&log, true);
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	config.path = long_path;
	assert_int_equal(inflight_open(&log, &config, &complaint), -1);
	assert_non_null(strstr(complaint.text, "too many; name another with --log"));
	image_close(&world.image);
	world_end(&world);
}

/* Where the disk is full that is found out at once, not when a request is taken. */
static void no_room_for_the_log(void **state)
{
	struct image image = {.block = 512};
	struct inflight_config config = {
		.name = "disk", .image = &image, .n_queues = 2, .size = 256};
	struct world world;
	struct complaint complaint;
	struct rlimit limit, small;
	struct inflight log;
	struct stat status;

	(void)state;
	world_start(&world);
	config.path = world.log;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, SIG_IGN);
	for (unsigned packed = 0; packed < 2; packed++) {
		config.packed = packed;
		small = (struct rlimit){8192, limit.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		assert_int_equal(inflight_open(&log, &config, &complaint), -1);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_non_null(strstr(complaint.text, "no room for the log"));
		assert_int_equal(access(world.log, F_OK), -1);
		/* All that is always in use has its blocks. */
		assert_int_equal(inflight_open(&log, &config, &complaint), 0);
		assert_int_equal(fstat(log.fd, &status), 0);
		assert_true((uint64_t)status.st_blocks * 512 >=
			    2 * dmamap_virtqueue_log_dense(256, packed));
		inflight_close(&log, true);
	}
	world_end(&world);
}

static void a_service_manager_is_told(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[64] = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)state;
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "dmamap-test-%d",
		(int)getpid());
	assert_int_equal(bind(fd, (const struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					     strlen(address.sun_path + 1))),
		0);
	address.sun_path[0] = '@';
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	notify("READY=1");
	assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 7);
	assert_string_equal(text, "READY=1");
	unsetenv("NOTIFY_SOCKET");
	notify("READY=1");
	assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), -1);
	close(fd);
}

/*
 * The first signal ends it in order, and is gone then; a second one ends it at once:
 * but not one that comes together with it, nor SIGHUP, which a terminal that goes
 * away sends twice.
 */
static void the_first_signal_is_taken(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		int ends[2], status;
		char alive = 0;
		pid_t child;

		assert_int_equal(pipe(ends), 0);
		child = fork();
		assert_true(child >= 0);
		if (!child) {
			int fd = stop_catch();
			struct pollfd file = {.fd = fd, .events = POLLIN};

			raise(signals[i]);
			if (fd < 0 || poll(&file, 1, 1000) != 1)
				_exit(1);
			stop_release(fd);
			raise(SIGHUP);
			raise(signals[i]);
			if (write(ends[1], "x", 1) != 1)
				_exit(2);
			usleep(320000);
			raise(signals[i]);
			_exit(signals[i] == SIGHUP ? 0 : 3);
		}
		close(ends[1]);
		assert_int_equal(read(ends[0], &alive, 1), 1);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (signals[i] == SIGHUP) {
			assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
		} else {
			assert_true(WIFSIGNALED(status));
			assert_int_equal(WTERMSIG(status), signals[i]);
		}
		close(ends[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_that_cannot_be),
		cmocka_unit_test(what_is_no_log_of_ours_stays),
		cmocka_unit_test(no_room_for_the_log),
		cmocka_unit_test(a_service_manager_is_told),
		cmocka_unit_test(the_first_signal_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
