/* SPDX-License-Identifier: MIT */
/*
 * dmamap vduse-blk: serves an image as a virtio disk over VDUSE, until a signal
 * asks for its end. This file is the program around the disk: signals, the
 * vDPA bus, the service manager, and the terminal.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attach.h"
#include "cli/command.h"
#include "cli/complaint.h"
#include "cli/units.h"
#include "device.h"
#include "guard.h"
#include "notify.h"
#include "options.h"
#include "status.h"
#include "stop.h"

#define PATIENCE_MS 3000u

/* Waits for the driver, which waits for us: so it has a thread. */
struct attaching {
	const char *name;
	bool found; /* the device was there before */
	pthread_t thread;
	bool started;
	bool done;
	int error;
	int event;
};

struct program {
	struct blk_options options;
	struct complaint complaint;
	struct image image;
	struct dmamap_system *system;
	struct device *device;
	struct attaching attaching;
	int signals;
	bool terminal;
};

static void say(void *who, const char *sentence)
{
	const struct program *program = who;

	if (program->terminal)
		status_clear(stdout);
	fprintf(stderr, "dmamap vduse-blk: %s\n", sentence);
}

/* Bounce memory of this process is pinned, and counts against the limit, root's too. */
static void raise_memlock(void)
{
	struct rlimit limit, all = {RLIM_INFINITY, RLIM_INFINITY};

	if (!setrlimit(RLIMIT_MEMLOCK, &all) || getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

static int catch_signals(struct program *program)
{
	program->signals = stop_catch();
	if (program->signals < 0)
		return complain(&program->complaint, "no descriptor is left (%s)",
			strerror(-program->signals));
	return 0;
}

/* ------------------------------------------------------------------------ the bus */

static void *attach_thread(void *argument)
{
	struct attaching *attaching = argument;
	uint64_t one = 1;

	attaching->error = vdpa_attach(attaching->name);
	/* Of a process before this one, which was killed. */
	if (attaching->error == -EEXIST && attaching->found)
		attaching->error = 0;
	while (write(attaching->event, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	return NULL;
}

static int attach(struct program *program)
{
	struct attaching *attaching = &program->attaching;
	int error;

	attaching->name = program->options.name;
	attaching->found = device_taken_over(program->device) >= 0;
	attaching->event = eventfd(0, EFD_CLOEXEC);
	error = attaching->event < 0
			? errno
			: pthread_create(&attaching->thread, NULL, attach_thread, attaching);
	if (error)
		return complain(&program->complaint, "no thread can be made (%s)", strerror(error));
	attaching->started = true;
	return 0;
}

static int explain_attach(struct program *program, int error)
{
	const char *what = strerror(-error);

	switch (error) {
	case -EOPNOTSUPP:
		what = "the kernel has no vDPA: modprobe vdpa";
		break;
	case -EEXIST:
		what = "a device of that name is on the vDPA bus; take another --name, or leave "
		       "--attach out where it was put there by hand";
		break;
	case -EPERM:
		what = "that needs CAP_NET_ADMIN: run it as root, or without --attach and have "
		       "vdpa dev add run by who may";
		break;
	}
	return complain(&program->complaint, "--attach: %s", what);
}

static void show_disk(const struct program *program)
{
	char disk[64], size[UNITS_TEXT];

	if (!program->terminal)
		return;
	printf("%s: %s, %s%s%s", program->options.name, units_size(size, program->image.bytes),
		program->image.direct ? "direct" : "cached",
		program->image.read_only ? ", read-only" : "",
		device_queues(program->device) > 1 ? "" : ", 1 queue");
	if (device_queues(program->device) > 1)
		printf(", %u queues", device_queues(program->device));
	if (device_taken_over(program->device) >= 0)
		printf(", taken over with %ld requests in flight",
			device_taken_over(program->device));
	if (program->options.attach && !vdpa_disk(program->options.name, disk, sizeof(disk)))
		printf(", /dev/%s", disk);
	else if (!program->options.attach)
		printf("; to attach it: vdpa dev add name %s mgmtdev vduse", program->options.name);
	putchar('\n');
	fflush(stdout);
}

/* What the attaching came to. Return: 0; -1 with a complaint. */
static int attached(struct program *program)
{
	struct attaching *attaching = &program->attaching;

	pthread_join(attaching->thread, NULL);
	attaching->done = true;
	if (attaching->error)
		return explain_attach(program, attaching->error);
	show_disk(program);
	notify("READY=1");
	return 0;
}

static void detach(struct program *program)
{
	struct attaching *attaching = &program->attaching;
	char sentence[256];
	int error;

	if (!attaching->started)
		return;
	if (!attaching->done)
		pthread_join(attaching->thread, NULL);
	close(attaching->event);
	if (attaching->error)
		return;
	error = vdpa_detach(program->options.name);
	if (error && error != -ENODEV) {
		snprintf(sentence, sizeof(sentence), "cannot be detached (%s); run vdpa dev del %s",
			strerror(-error), program->options.name);
		say(program, sentence);
	}
}

/* --------------------------------------------------------------------- the program */

static int check_vduse(struct program *program)
{
	struct dmamap_reason why = {0};
	char text[512];
	int error = dmamap_vduse_check(program->system, program->options.name, &why);

	if (!error)
		return 0;
	why.error = -error;
	dmamap_reason_format(&why, text, sizeof(text));
	return complain(&program->complaint, "%s", text);
}

static int set_up(struct program *program)
{
	const struct blk_options *options = &program->options;
	const struct device_settings settings = {
		.name = options->name,
		.log = options->log,
		.serial = options->serial,
		.n_queues = options->queues,
		.queue_size = options->queue_size,
		.packed = options->packed,
		.umem = !options->no_umem,
		.poll_ns = (uint64_t)options->poll_us * 1000,
		.delay_ns = (uint64_t)options->delay_us * 1000,
		.patience_ms = PATIENCE_MS,
		.say = say,
		.who = program,
	};

	/* What nobody reads, or is too long for a limit on files, is an error of that call,
	 * and no reason to let a driver wait. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (dmamap_system_linux(&program->system))
		return complain(&program->complaint, "not enough memory");
	/* Before an image is made that nobody could serve. */
	if (check_vduse(program))
		return -1;
	if (image_open(&program->image, options->file, options->size, options->read_only,
		    options->direct, PATIENCE_MS, &program->complaint))
		return -1;
	raise_memlock();
	guard_install();
	if (catch_signals(program) ||
		device_open(&program->device, program->system, &settings, &program->image,
			&program->complaint) ||
		device_run(program->device, &program->complaint))
		return -1;
	if (options->attach)
		return attach(program);
	show_disk(program);
	notify("READY=1");
	return 0;
}

/* Until a signal: returns the exit status, or -1 with a complaint. */
static int serve(struct program *program)
{
	struct pollfd files[3] = {
		{.fd = program->signals, .events = POLLIN},
		{.fd = device_ended(program->device), .events = POLLIN},
		{.fd = program->options.attach ? program->attaching.event : -1, .events = POLLIN},
	};
	struct status old, now;

	status_read(&old, program->device);
	for (;;) {
		if (poll(files, 3, program->terminal ? 1000 : -1) < 0 && errno != EINTR)
			return complain(&program->complaint, "poll failed (%s)", strerror(errno));
		if (files[0].revents)
			return EXIT_DONE;
		if (files[1].revents) {
			say(program, "the kernel gave the device up: it waited in vain for an "
				     "answer; remove it with vdpa dev del and start again");
			return EXIT_FOUND;
		}
		if (files[2].revents) {
			files[2].fd = -1;
			if (attached(program))
				return -1;
		}
		if (program->terminal) {
			status_read(&now, program->device);
			if (now.time - old.time > 500000000u) {
				status_line(stdout, &old, &now);
				old = now;
			}
		}
	}
}

static void end(struct program *program)
{
	struct status sum = {0};
	char sentence[256];

	stop_release(program->signals);
	if (program->device) {
		notify("STOPPING=1");
		detach(program);
		status_read(&sum, program->device);
		if (device_close(program->device) == -EBUSY) {
			snprintf(sentence, sizeof(sentence),
				"%s is attached and stays: start again to go on, or run vdpa dev "
				"del %s",
				program->options.name, program->options.name);
			say(program, sentence);
		}
		if (program->terminal) {
			status_clear(stdout);
			status_sum(stdout, &sum);
		}
	}
	dmamap_system_destroy(program->system);
	if (program->signals >= 0)
		close(program->signals);
	image_close(&program->image);
}

int vduse_blk_command(int argc, char **argv)
{
	struct program *program = calloc(1, sizeof(*program));
	int status = -1;

	if (!program)
		return EXIT_USAGE;
	program->signals = program->image.fd = -1;
	program->terminal = isatty(STDOUT_FILENO);
	if (blk_options_parse(&program->options, argc, argv, &program->complaint))
		goto complain;
	if (program->options.help) {
		blk_options_help(stdout);
		status = EXIT_DONE;
		goto free_program;
	}
	if (!set_up(program))
		status = serve(program);
	end(program);
complain:
	if (status < 0) {
		fprintf(stderr, "dmamap vduse-blk: %s\n", program->complaint.text);
		status = EXIT_USAGE;
	}
free_program:
	free(program);
	return status;
}
