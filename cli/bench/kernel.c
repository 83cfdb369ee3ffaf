/* SPDX-License-Identifier: MIT */
/*
 * Counting on the kernel by perf events in counting mode: a kprobe for each
 * function, a tracepoint for each event. That needs no buffer and no reader,
 * so that millions of hits cost little; it counts this thread alone; and the
 * probes are gone with their descriptors, also when the process is killed.
 *
 * tracefs is only asked for the numbers of the events. Where it is not
 * mounted, root mounts it detached: it is in no directory, and gone when its
 * descriptor is closed.
 *
 * Whatever is missing, a permission or a function that this kernel lacks,
 * leaves its count out with a reason and harms nothing else.
 */
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const kernel_event_names[KERNEL_EVENTS] = {
	[KERNEL_MAP_EVENT] = "iommu:map",
	[KERNEL_UNMAP_EVENT] = "iommu:unmap",
	[KERNEL_PIN_REMOTE] = "pin_user_pages_remote",
	[KERNEL_PIN_FAST] = "pin_user_pages_fast",
	[KERNEL_PIN_FOLIOS] = "memfd_pin_folios",
	[KERNEL_PFNMAP] = "follow_pfnmap_start",
	[KERNEL_IOMMU_MAP] = "iommu_map",
	[KERNEL_LOOKUP] = "iommu_iova_to_phys",
};

const struct kernel_places kernel_places = {
	.tracefs = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"},
	.mount = true,
	.kprobe_type = "/sys/bus/event_source/devices/kprobe/type",
};

/* Who is refused; root is, in a container or a kernel that is locked down. */
static const char *no_right(void)
{
	return geteuid() ? "this user may not count on the kernel; run as root"
			 : "root may not count here: CAP_PERFMON and CAP_SYS_ADMIN "
			   "are needed, and no lockdown";
}

/* The number in a file below a directory: its value, or -errno. */
static int read_number(int directory, const char *path)
{
	char text[24];
	ssize_t n;
	int error;
	int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	error = -errno;
	close(fd);
	if (n < 0)
		return error;
	text[n] = '\0';
	return atoi(text);
}

/* By number: the C library may be older than these calls. */
static int mount_detached(void)
{
	int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int mount = -1;

	if (context < 0)
		return -1;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	close(context);
	return mount;
}

/* A directory with the events of the IOMMU core: a descriptor, or -1 and a reason. */
static int open_tracefs(const struct kernel_places *places, char why[KERNEL_WHY])
{
	bool found = false;
	int root = -1;
	int events;

	for (size_t i = 0; i < sizeof(places->tracefs) / sizeof(places->tracefs[0]); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s/events", places->tracefs[i]);
		events = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (events < 0 && errno != EACCES)
			continue;
		found = true;
		if (events < 0)
			break;
		return events;
	}
	errno = 0;
	if (!found && places->mount)
		root = mount_detached();
	if (root < 0) {
		snprintf(why, KERNEL_WHY, "%s",
			found || errno == EPERM ? no_right() : "tracefs is not mounted");
		return -1;
	}
	events = openat(root, "events", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (events < 0)
		snprintf(why, KERNEL_WHY, "tracefs has no events");
	close(root);
	return events;
}

/* Of the calling thread, on any processor. */
static int open_event(struct perf_event_attr *attr)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_tracepoint(int events, const char *name, char why[KERNEL_WHY])
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT};
	char path[64];
	int number;

	snprintf(path, sizeof(path), "%s/id", name);
	*strchr(path, ':') = '/';
	number = read_number(events, path);
	if (number <= 0) {
		snprintf(why, KERNEL_WHY, "%s",
			number == -EACCES ? no_right() : "this kernel has no such event");
		return -1;
	}
	attr.config = (unsigned)number;
	return open_event(&attr);
}

static int open_kprobe(int type, const char *name)
{
	struct perf_event_attr attr = {.type = (unsigned)type};

	attr.kprobe_func = (uintptr_t)name;
	return open_event(&attr);
}

static void explain(int error, bool function, char why[KERNEL_WHY])
{
	if (error == -EACCES || error == -EPERM)
		snprintf(why, KERNEL_WHY, "%s", no_right());
	else if (error == -ENOENT && function)
		snprintf(why, KERNEL_WHY, "this kernel has no such function");
	else
		snprintf(why, KERNEL_WHY, "the kernel refused the probe: %s", strerror(-error));
}

unsigned kernel_open(struct kernel_counters *counters, const struct kernel_places *places)
{
	char no_tracefs[KERNEL_WHY] = "";
	int events = open_tracefs(places, no_tracefs);
	int type = read_number(AT_FDCWD, places->kprobe_type);
	unsigned counted = 0;

	memset(counters, 0, sizeof(*counters));
	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		const char *name = kernel_event_names[i];
		bool function = !strchr(name, ':');
		char *why = counters->why[i];
		int fd = -1;

		if (!function && events < 0)
			snprintf(why, KERNEL_WHY, "%s", no_tracefs);
		else if (function && type < 0)
			snprintf(why, KERNEL_WHY, "this kernel has no kprobes");
		else if (function)
			fd = open_kprobe(type, name);
		else
			fd = open_tracepoint(events, name, why);
		counters->fds[i] = fd;
		if (fd < 0 && !why[0])
			explain(fd, function, why);
		counted += fd >= 0;
	}
	if (events >= 0)
		close(events);
	return counted;
}

void kernel_read(const struct kernel_counters *counters, uint64_t counts[KERNEL_EVENTS])
{
	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		counts[i] = 0;
		if (counters->fds[i] >= 0 &&
			read(counters->fds[i], &counts[i], sizeof(counts[i])) != sizeof(counts[i]))
			counts[i] = 0;
	}
}

void kernel_close(struct kernel_counters *counters)
{
	for (unsigned i = 0; i < KERNEL_EVENTS; i++)
		if (counters->fds[i] >= 0)
			close(counters->fds[i]);
}
