/* SPDX-License-Identifier: MIT */
/*
 * dmamap vduse-blk as it is run: its command line, signals, pipes and exit status,
 * in a process of its own that has the soft system for Linux, and a thread that is
 * the driver.
 */
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "dmamap/soft.h"
#include "dmamap/vdpa.h"

#define BLOCK  4096u
#define BLOCKS 64u
#define SECTOR 512u

/* What the driver of the child knows of its disk. */
struct shared {
	_Atomic uint32_t begun[BLOCKS]; /* the version that is being written */
	_Atomic uint32_t done[BLOCKS];	/* the last that was */
	atomic_bool attached;
};

/*
 * @manager: what a service manager hears
 * @lines: what the child says
 */
struct world {
	char folder[64];
	char image[96];
	char log[96];
	char lines[4096];
	struct shared *shared;
	int manager;
	pid_t child;
	int out;
};

enum driver { DRIVER_NONE, DRIVER_WRITES, DRIVER_LIES };

/* What the process may not do. */
enum denied { DENIED_NOTHING, DENIED_IO_URING, DENIED_LARGE_FILES };

/* ----------------------------------------------------------------- in the child */

static struct dmamap_system *soft;
static enum driver driver;
static struct shared *known;

/* In place of the libraries'. */
int dmamap_system_linux(struct dmamap_system **out)
{
	*out = soft;
	return 0;
}

/* The driver goes on with it until the process ends. */
void dmamap_system_destroy(struct dmamap_system *system)
{
	(void)system;
}

static void fill(unsigned char *data, uint32_t block, uint32_t version)
{
	for (uint32_t i = 0; i < BLOCK / sizeof(version); i++) {
		uint32_t word = version ? version * 2654435761u ^ block << 20 ^ i : 0;

		memcpy(data + i * sizeof(word), &word, sizeof(word));
	}
}

static void write_for_ever(struct dmamap_blk *blk)
{
	static unsigned char data[BLOCK];

	for (uint32_t i = 0;; i++) {
		uint32_t block = i * 7 % BLOCKS, version = i + 1;
		struct dmamap_blk_request request = {.op = DMAMAP_BLK_WRITE,
			.sector = (uint64_t)block * BLOCK / SECTOR,
			.size = BLOCK,
			.data = data};

		fill(data, block, version);
		atomic_store(&known->begun[block], version);
		if (dmamap_blk_do(blk, 0, &request))
			_exit(40);
		atomic_store(&known->done[block], version);
	}
}

/* A request that the daemon complains of. */
static void lie(struct dmamap_blk *blk)
{
	static unsigned char data[BLOCK];
	struct dmamap_blk_request request = {
		.op = DMAMAP_BLK_WRITE, .sector = 1ull << 40, .size = BLOCK, .data = data};

	for (unsigned i = 0; i < 20; i++)
		if (dmamap_blk_do(blk, 0, &request) != -EIO)
			_exit(41);
}

static void *drive(void *argument)
{
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
	sigset_t all;

	(void)argument;
	/* It stands for a kernel, which takes none of the process's signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (dmamap_vdpa_attach(soft, "disk", NULL, &vdpa))
		usleep(1000);
	if (dmamap_blk_probe(vdpa, NULL, &blk))
		_exit(42);
	if (driver == DRIVER_LIES)
		lie(blk);
	atomic_store(&known->attached, true);
	if (driver == DRIVER_WRITES)
		write_for_ever(blk);
	return NULL;
}

static void forbid_io_uring(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(43);
}

/* ---------------------------------------------------------------- of the parent */

static void start(struct world *world)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	*world = (struct world){.out = -1};
	strcpy(world->folder, "/tmp/dmamap-vduse-program-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->image, sizeof(world->image), "%s/image", world->folder);
	snprintf(world->log, sizeof(world->log), "%s/log", world->folder);
	world->shared = mmap(NULL, sizeof(*world->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(world->shared != MAP_FAILED);
	world->manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", world->folder);
	assert_int_equal(
		bind(world->manager, (const struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

/* @out_gone: nobody reads what it says */
static void run(struct world *world, const char *extra, enum driver which, enum denied denied,
	bool out_gone)
{
	char *argv[] = {(char *)"vduse-blk", (char *)"--name", (char *)"disk", (char *)"--file",
		world->image, (char *)"--log", world->log, (char *)"--size", (char *)"256K",
		(char *)"--queues", (char *)"2", (char *)extra, NULL};
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fflush(stdout);
	world->child = fork();
	assert_true(world->child >= 0);
	if (!world->child) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		driver = which;
		known = world->shared;
		if (dmamap_system_soft(NULL, &soft, NULL))
			_exit(44);
		if (denied == DENIED_IO_URING)
			forbid_io_uring();
		if (denied == DENIED_LARGE_FILES &&
			setrlimit(RLIMIT_FSIZE, &(struct rlimit){BLOCK, BLOCK}))
			_exit(46);
		if (which != DRIVER_NONE && pthread_create(&thread, NULL, drive, NULL))
			_exit(45);
		_exit(vduse_blk_command(extra ? 12 : 11, argv));
	}
	close(ends[1]);
	world->out = ends[0];
	if (out_gone) {
		close(world->out);
		world->out = -1;
	}
}

static void heard(struct world *world, const char *state)
{
	struct pollfd file = {.fd = world->manager, .events = POLLIN};
	char text[64] = {0};

	assert_int_equal(poll(&file, 1, 20000), 1);
	assert_true(recv(world->manager, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, state);
}

/* Its exit status; what it said is in @lines. */
static int ended(struct world *world)
{
	int status;
	ssize_t n;
	size_t at = 0;

	while (world->out >= 0 &&
		(n = read(world->out, world->lines + at, sizeof(world->lines) - 1 - at)) > 0)
		at += (size_t)n;
	world->lines[at] = '\0';
	if (world->out >= 0)
		close(world->out);
	world->out = -1;
	assert_int_equal(waitpid(world->child, &status, 0), world->child);
	if (!WIFEXITED(status))
		fail_msg("it was killed by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void expect_line(const struct world *world, const char *wanted)
{
	const char *end = strchr(world->lines, '\n');

	if (!strstr(world->lines, wanted))
		fail_msg("\"%s\" does not say \"%s\"", world->lines, wanted);
	/* One sentence. */
	assert_true(end && !end[1]);
}

/* What the driver was told is done is on the image, or what it wrote over it since. */
static void check_image(const struct world *world)
{
	static unsigned char is[BLOCK], wanted[BLOCK];
	int fd = open(world->image, O_RDONLY | O_CLOEXEC);

	for (uint32_t block = 0; block < BLOCKS; block++) {
		assert_int_equal(pread(fd, is, BLOCK, (off_t)block * BLOCK), BLOCK);
		fill(wanted, block, world->shared->done[block]);
		if (memcmp(is, wanted, BLOCK)) {
			fill(wanted, block, world->shared->begun[block]);
			assert_memory_equal(is, wanted, BLOCK);
		}
	}
	close(fd);
}

static void end(struct world *world)
{
	char path[128];

	unlink(world->image);
	unlink(world->log);
	snprintf(path, sizeof(path), "%s/notify", world->folder);
	unlink(path);
	assert_int_equal(rmdir(world->folder), 0);
	munmap(world->shared, sizeof(*world->shared));
	close(world->manager);
}

/* -------------------------------------------------------------------------- cases */

static void a_signal_ends_it_in_order(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct random random = random_start("a_signal_ends_it_in_order");

	(void)state;
	for (unsigned i = 0; i < 24; i++) {
		struct world world;

		start(&world);
		run(&world, NULL, DRIVER_WRITES, DENIED_NOTHING, false);
		heard(&world, "READY=1");
		while (!world.shared->attached)
			usleep(100);
		usleep((useconds_t)random_below(&random, 3000));
		kill(world.child, signals[i % 3]);
		/* As a terminal does that goes away, or timeout(1). */
		if (i & 1)
			kill(world.child, signals[i % 3]);
		assert_int_equal(ended(&world), 0);
		heard(&world, "STOPPING=1");
		expect_line(&world, "disk is attached and stays: start again to go on, or run "
				    "vdpa dev del disk");
		check_image(&world);
		/* For the next process. */
		assert_int_equal(access(world.log, F_OK), 0);
		end(&world);
	}
}

/* At any moment of starting: it ends, and what is there is whole or empty. */
static void a_signal_while_it_starts(void **state)
{
	struct random random = random_start("a_signal_while_it_starts");

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct world world;
		struct timespec pause = {.tv_nsec = (long)random_below(&random, 4000000)};
		int status, fd;
		char text[64];

		start(&world);
		run(&world, NULL, DRIVER_NONE, DENIED_NOTHING, false);
		nanosleep(&pause, NULL);
		kill(world.child, SIGTERM);
		assert_int_equal(waitpid(world.child, &status, 0), world.child);
		assert_true(
			WIFSIGNALED(status) ? WTERMSIG(status) == SIGTERM : !WEXITSTATUS(status));
		close(world.out);
		fd = open(world.image, O_RDONLY);
		if (fd >= 0) {
			off_t size = lseek(fd, 0, SEEK_END);

			assert_true(size == 0 || size == BLOCK * BLOCKS);
			close(fd);
		}
		/* The same command works; what the first one told is read. */
		while (recv(world.manager, text, sizeof(text), MSG_DONTWAIT) > 0)
			;
		run(&world, NULL, DRIVER_NONE, DENIED_NOTHING, false);
		heard(&world, "READY=1");
		kill(world.child, SIGTERM);
		assert_int_equal(ended(&world), 0);
		assert_string_equal(world.lines, "");
		/* Nothing is in flight, and nobody will ask. */
		assert_int_equal(access(world.log, F_OK), -1);
		end(&world);
	}
}

/* That nobody reads its complaints does not stop it, whatever the driver makes it say. */
static void a_pipe_that_is_closed(void **state)
{
	struct world world;

	(void)state;
	start(&world);
	run(&world, NULL, DRIVER_LIES, DENIED_NOTHING, true);
	heard(&world, "READY=1");
	while (!world.shared->attached)
		usleep(100);
	kill(world.child, SIGTERM);
	assert_int_equal(ended(&world), 0);
	heard(&world, "STOPPING=1");
	end(&world);
}

static void no_io_uring(void **state)
{
	struct world world;

	(void)state;
	start(&world);
	run(&world, NULL, DRIVER_NONE, DENIED_IO_URING, false);
	assert_int_equal(ended(&world), 2);
	expect_line(&world, "io_uring cannot be used here (Operation not permitted): see "
			    "/proc/sys/kernel/io_uring_disabled");
	assert_int_equal(access(world.log, F_OK), -1);
	end(&world);
}

/* A limit on files is a sentence as well, not a signal. */
static void an_image_that_may_not_be(void **state)
{
	struct world world;

	(void)state;
	start(&world);
	run(&world, NULL, DRIVER_NONE, DENIED_LARGE_FILES, false);
	assert_int_equal(ended(&world), 2);
	expect_line(&world, "image: no room for 256 KiB here (File too large)");
	assert_int_equal(access(world.image, F_OK), -1);
	end(&world);
}

/* The real bus does not know a device of the soft system: what was made is undone. */
static void attaching_that_fails(void **state)
{
	struct world world;

	(void)state;
	start(&world);
	run(&world, "--attach", DRIVER_NONE, DENIED_NOTHING, false);
	assert_int_equal(ended(&world), 2);
	heard(&world, "STOPPING=1");
	expect_line(&world, "--attach: ");
	assert_int_equal(access(world.log, F_OK), -1);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_ends_it_in_order),
		cmocka_unit_test(a_signal_while_it_starts),
		cmocka_unit_test(a_pipe_that_is_closed),
		cmocka_unit_test(no_io_uring),
		cmocka_unit_test(an_image_that_may_not_be),
		cmocka_unit_test(attaching_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
