/* SPDX-License-Identifier: MIT */
/*
 * The probes on the kernel, against directories made for the test: what is
 * missing is named, and nothing else is harmed. As a source of "kprobes" the
 * test has the kernel's clock events: they count this thread as well, and any
 * kernel has them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/bench/kernel.h"
#include "tests/check.h"

#define FUNCTIONS (KERNEL_EVENTS - 2)

static char root[] = "/tmp/dmamap-kernel-XXXXXX";
static char tracefs[64];
static char absent[64];
static char type[64];

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_places(void **state)
{
	static const char *const directories[] = {
		"", "/events", "/events/iommu", "/events/iommu/map"};
	char path[128];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	snprintf(tracefs, sizeof(tracefs), "%s/tracing", root);
	snprintf(absent, sizeof(absent), "%s/absent", root);
	snprintf(type, sizeof(type), "%s/type", root);
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", tracefs, directories[i]);
		if (mkdir(path, 0700))
			return -1;
	}
	snprintf(path, sizeof(path), "%s/events/iommu/map/id", tracefs);
	/* No kernel gives this number to an event. */
	write_file(path, "2147483647\n");
	snprintf(path, sizeof(path), "%d\n", PERF_TYPE_SOFTWARE);
	write_file(type, path);
	return 0;
}

static int remove_places(void **state)
{
	static const char *const paths[] = {"/type", "/tracing/events/iommu/map/id",
		"/tracing/events/iommu/map", "/tracing/events/iommu", "/tracing/events", "/tracing",
		""};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", root, paths[i]);
		if (remove(path))
			return -1;
	}
	return 0;
}

static void without_any_source_all_reasons_are_given(void **state)
{
	struct kernel_places places = {.tracefs = {absent, absent}, .kprobe_type = absent};
	struct kernel_counters counters;
	uint64_t counts[KERNEL_EVENTS];

	(void)state;
	assert_int_equal(kernel_open(&counters, &places), 0);
	for (unsigned i = 0; i < KERNEL_EVENTS; i++)
		assert_string_equal(counters.why[i], strchr(kernel_event_names[i], ':')
							     ? "tracefs is not mounted"
							     : "this kernel has no kprobes");
	memset(counts, 0xff, sizeof(counts));
	kernel_read(&counters, counts);
	for (unsigned i = 0; i < KERNEL_EVENTS; i++)
		assert_int_equal(counts[i], 0);
	kernel_close(&counters);
}

/* The second place is as good as the first; what is not in it is left out alone. */
static void events_are_looked_up_in_each_place(void **state)
{
	struct kernel_places places = {.tracefs = {absent, tracefs}, .kprobe_type = absent};
	struct kernel_counters counters;

	(void)state;
	assert_int_equal(kernel_open(&counters, &places), 0);
	assert_true(counters.why[KERNEL_MAP_EVENT][0]);
	assert_null(strstr(counters.why[KERNEL_MAP_EVENT], "mounted"));
	assert_string_equal(counters.why[KERNEL_UNMAP_EVENT], "this kernel has no such event");
	assert_string_equal(counters.why[KERNEL_PIN_REMOTE], "this kernel has no kprobes");
	kernel_close(&counters);
}

static bool may_count(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Some work that the compiler cannot leave out. */
static void spend_time(void)
{
	for (volatile unsigned i = 0; i < 1000000;)
		i = i + 1;
}

static void counts_grow_and_belong_to_their_event(void **state)
{
	struct kernel_places places = {.tracefs = {tracefs, absent}, .kprobe_type = type};
	struct kernel_counters counters;
	uint64_t before[KERNEL_EVENTS];
	uint64_t after[KERNEL_EVENTS];
	unsigned counted;

	(void)state;
	counted = kernel_open(&counters, &places);
	assert_int_equal(counted, may_count() ? FUNCTIONS : 0);
	kernel_read(&counters, before);
	spend_time();
	kernel_read(&counters, after);
	for (unsigned i = 0; i < KERNEL_EVENTS; i++) {
		bool counts = !counters.why[i][0];

		assert_int_equal(counts, counted && !strchr(kernel_event_names[i], ':'));
		if (counts)
			assert_true(after[i] > before[i]);
		else
			assert_int_equal(after[i], 0);
	}
	kernel_close(&counters);
}

static void closed_probes_leave_no_descriptor(void **state)
{
	struct kernel_places places = {.tracefs = {tracefs, absent}, .kprobe_type = type};
	struct kernel_counters counters;
	int before = dup(0);
	int after;

	(void)state;
	close(before);
	kernel_open(&counters, &places);
	kernel_close(&counters);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_any_source_all_reasons_are_given),
		cmocka_unit_test(events_are_looked_up_in_each_place),
		cmocka_unit_test(counts_grow_and_belong_to_their_event),
		cmocka_unit_test(closed_probes_leave_no_descriptor),
	};

	return cmocka_run_group_tests(tests, make_places, remove_places);
}
