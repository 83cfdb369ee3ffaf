/* SPDX-License-Identifier: MIT */
/*
 * A process that serves a queue is killed after each of its instructions in turn:
 * whatever its log and the ring hold then, the next process goes on. Every request
 * is given back once, as itself; one whose giving back had returned is not done
 * again; and those that are come in the order in which the driver made them.
 */
#include "tests/check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring_driver.h"

#define SIZE	 8u
#define REQUESTS 64u
#define PARTS	 4u
#define STEP	 0x400u /* from one request's data to the next's */
#define LOG_MOST 8192u

/*
 * What lives on when the device's process is killed, and what is known of it.
 * @number_of: which request an id of the driver's stands for
 * @given: requests that were given back, for certain
 * @driver_at_work: it is not killed with the device
 */
struct world {
	unsigned char memory[RING_BYTES + DATA_BYTES + CONST_BYTES];
	unsigned char log[LOG_MOST];
	struct ring_driver driver;
	uint32_t number_of[RING_MOST];
	uint32_t next;
	volatile bool given[REQUESTS];
	volatile bool driver_at_work;
};

/* A device's process: its queue, and the requests that it has in hand. */
struct device {
	struct world *world;
	struct dmamap_virtqueue *queue;
	uint32_t slots[SIZE];
	uint32_t numbers[SIZE];
	uint32_t n;
};

static int serve(struct device *device, struct world *world, bool resume)
{
	struct dmamap_virtqueue_config config;
	struct dmamap_reason why = {0};
	int error;

	*device = (struct device){.world = world};
	ring_driver_config(&world->driver, &config);
	config.log = world->log;
	config.resume = resume;
	error = dmamap_virtqueue_create(&config, &device->queue, &why);
	if (error) {
		char text[256];

		dmamap_reason_format(&why, text, sizeof(text));
		printf("%s\n", text);
	}
	return error;
}

/* The driver's: requests of one to three descriptors, which cross the end of the ring. */
static void add(struct world *world)
{
	uint32_t number = world->next, n = 1 + number % 3;
	struct ring_part parts[3];
	int id;

	world->driver_at_work = true;
	for (uint32_t i = 0; i < n; i++)
		parts[i] = (struct ring_part){DATA_IOVA + number * STEP + i * 8, 8, true};
	id = ring_driver_add(&world->driver, parts, n, 0);
	if (id >= 0) {
		world->number_of[id] = number;
		world->next++;
	}
	world->driver_at_work = false;
}

/* The driver's: what is used is what was asked. How many. */
static unsigned get(struct world *world)
{
	unsigned n = 0;
	uint32_t written;
	int id;

	world->driver_at_work = true;
	while ((id = ring_driver_get(&world->driver, &written)) >= 0) {
		if (written != world->number_of[id] + 1)
			id = -2;
		if (id < 0)
			break;
		n++;
	}
	if (id == -2)
		abort();
	world->driver_at_work = false;
	return n;
}

static bool take(struct device *device)
{
	struct iovec parts[PARTS];
	struct dmamap_chain chain = {.max = PARTS, .parts = parts};

	if (dmamap_virtqueue_take(device->queue, &chain.slot, NULL) != 1)
		return false;
	if (dmamap_virtqueue_walk(device->queue, &chain, NULL))
		abort();
	device->slots[device->n] = chain.slot;
	device->numbers[device->n++] =
		(uint32_t)((unsigned char *)parts[0].iov_base -
			   (unsigned char *)ring_driver_at(&device->world->driver, DATA_IOVA)) /
		STEP;
	return true;
}

static void give(struct device *device, uint32_t i)
{
	uint32_t number = device->numbers[i];

	dmamap_virtqueue_give(device->queue, device->slots[i], number + 1);
	device->world->given[number] = true;
	device->n--;
	for (; i < device->n; i++) {
		device->slots[i] = device->slots[i + 1];
		device->numbers[i] = device->numbers[i + 1];
	}
}

/* What is killed: out of order, in batches, with a driver that adds meanwhile. */
static void work(struct device *device)
{
	take(device);
	take(device);
	take(device);
	give(device, 1);
	dmamap_virtqueue_publish(device->queue);
	get(device->world);
	add(device->world);
	take(device);
	give(device, 2);
	give(device, 0);
	dmamap_virtqueue_publish(device->queue);
	get(device->world);
	add(device->world);
	add(device->world);
	take(device);
	give(device, 0);
	give(device, 0);
	dmamap_virtqueue_publish(device->queue);
}

/* --------------------------------------------------------------- the next process */

/* It has @world to itself, and does all that is left. */
static void go_on(struct world *world)
{
	struct device device;
	unsigned left = 0;
	uint32_t last = 0;

	world->driver.memory = world->memory;
	for (uint32_t id = 0; id < SIZE; id++)
		left += world->driver.counts[id] > 0;
	assert_int_equal(serve(&device, world, true), 0);
	while (device.n < SIZE && take(&device)) {
		uint32_t number = device.numbers[device.n - 1];

		assert_false(world->given[number]);
		assert_true(device.n == 1 || number > last);
		last = number;
	}
	while (device.n)
		give(&device, device.n - 1);
	dmamap_virtqueue_publish(device.queue);
	assert_int_equal(get(world), left);
	/* And the ring is as good as new. */
	for (unsigned i = 0; i < 2 * SIZE; i++) {
		add(world);
		assert_true(take(&device));
		give(&device, 0);
		dmamap_virtqueue_publish(device.queue);
		assert_int_equal(get(world), 1);
	}
	dmamap_virtqueue_destroy(device.queue);
}

/* ------------------------------------------------------------------------ killing */

static bool step(pid_t child, bool first)
{
	int status;

	if (!first && ptrace(PTRACE_SINGLESTEP, child, NULL, NULL))
		fail_msg("the child cannot be stepped");
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return false;
	}
	assert_true(WIFSTOPPED(status));
	return true;
}

/* Runs @child to its end, and goes on from where it is after each instruction. */
static unsigned kill_everywhere(struct world *world, void (*child)(struct world *))
{
	static struct world copy, before;
	unsigned points = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		child(world);
		_exit(0);
	}
	for (bool first = true; step(pid, first); first = false) {
		/* Only where something that lives on has changed. */
		if (world->driver_at_work || !memcmp(&before, world, sizeof(before)))
			continue;
		before = copy = *world;
		go_on(&copy);
		points++;
	}
	return points;
}

static struct device inherited;

static void goes_on_working(struct world *world)
{
	(void)world;
	work(&inherited);
}

static void resumes_and_works(struct world *world)
{
	struct device device;

	if (serve(&device, world, true))
		_exit(1);
	while (take(&device))
		;
	while (device.n)
		give(&device, 0);
	dmamap_virtqueue_publish(device.queue);
}

static bool can_trace(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 77 : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static struct world *start(bool packed, unsigned laps)
{
	struct world *world = mmap(
		NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(world != MAP_FAILED);
	assert_true(dmamap_virtqueue_log_size(SIZE, packed) <= LOG_MOST);
	ring_driver_start(&world->driver, world->memory, SIZE, packed, true);
	assert_int_equal(serve(&inherited, world, false), 0);
	/* To another place of the ring for each test; what is called is bound by now. */
	for (unsigned i = 0; i < laps; i++) {
		add(world);
		assert_true(take(&inherited));
		give(&inherited, 0);
		dmamap_virtqueue_publish(inherited.queue);
		assert_int_equal(get(world), 1);
	}
	for (unsigned i = 0; i < 3; i++)
		add(world);
	return world;
}

static void end(struct world *world)
{
	dmamap_virtqueue_destroy(inherited.queue);
	munmap(world, sizeof(*world));
}

static void killed_anywhere(void **state)
{
	(void)state;
	if (!can_trace()) {
		printf("ptrace(2) is forbidden here: allow it, as with --cap-add SYS_PTRACE\n");
		skip();
	}
	for (unsigned kind = 0; kind < 8; kind++) {
		struct world *world = start(kind & 1, 1 + kind);

		printf("%s, %u before: %u places\n", kind & 1 ? "packed" : "split", 1 + kind,
			kill_everywhere(world, goes_on_working));
		end(world);
	}
}

/* And once more, while it goes on from such a place. */
static void killed_while_resuming(void **state)
{
	(void)state;
	if (!can_trace()) {
		printf("ptrace(2) is forbidden here: allow it, as with --cap-add SYS_PTRACE\n");
		skip();
	}
	for (unsigned kind = 0; kind < 8; kind++) {
		static unsigned char late[LOG_MOST];
		struct world *world = start(kind & 1, 1 + kind);

		take(&inherited);
		take(&inherited);
		take(&inherited);
		give(&inherited, 1);
		give(&inherited, 0);
		memcpy(late, world->log, sizeof(late));
		/* Of half of them, the ring shows more than the log knows. */
		if (kind & 2) {
			dmamap_virtqueue_publish(inherited.queue);
			memcpy(world->log, late, sizeof(late));
		}
		printf("%s, %s: %u places\n", kind & 1 ? "packed" : "split",
			kind & 2 ? "shown" : "not shown",
			kill_everywhere(world, resumes_and_works));
		end(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_anywhere),
		cmocka_unit_test(killed_while_resuming),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
