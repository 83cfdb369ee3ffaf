/* SPDX-License-Identifier: MIT */
/*
 * A VDUSE device and its driver without memory: their life again and again, with
 * the n-th allocation of this thread failing, until none fails. A call that
 * fails leaves nothing behind, and succeeds when it is made again. The program
 * is linked so that every allocation comes by here.
 */
#include "dmamap/vdpa.h"
#include "soft/vduse.h"
#include "tests/soft/vduse_daemon.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

/* Counts down to the allocation that fails; 0: none does. */
static _Thread_local unsigned fail_nth;
static _Thread_local bool failed;

static bool fails(void)
{
	if (!fail_nth || --fail_nth)
		return false;
	failed = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

/* Without memory the first time, it must work the second time: what it gives then. */
#define MUST(call)                                                                                 \
	({                                                                                         \
		unsigned descriptors = rig_descriptors();                                          \
		int result = call;                                                                 \
                                                                                                   \
		if (result < 0) {                                                                  \
			assert_int_equal(result, -ENOMEM);                                         \
			assert_true(failed);                                                       \
			assert_int_equal(rig_descriptors(), descriptors);                          \
			result = call;                                                             \
		}                                                                                  \
		assert_true(result >= 0);                                                          \
		result;                                                                            \
	})

/* What is not looked at here. */
#define SPARE(call)                                                                                \
	do {                                                                                       \
		unsigned left = fail_nth;                                                          \
                                                                                                   \
		fail_nth = 0;                                                                      \
		call;                                                                              \
		fail_nth = left;                                                                   \
	} while (0)

static void files(struct rig *rig)
{
	struct vduse_dev_config config = {
		.name = "f",
		.device_id = VIRTIO_ID_BLOCK,
		.features = PLAIN,
		.vq_num = 1,
		.vq_align = 4096,
	};
	struct vduse_vq_config queue = {.max_size = 8};
	struct vduse_iotlb_entry entry = {.last = 1};
	struct dmamap_vdpa *vdpa;
	char name[VDUSE_NAME_MAX] = "f";
	uint8_t data[1];
	uint64_t iova;
	int control = MUST(rig_open(rig, "/dev/vduse/control")), fd, range, attribute;

	MUST(rig_ioctl(rig, control, VDUSE_CREATE_DEV, &config));
	fd = MUST(rig_open(rig, "/dev/vduse/f"));
	attribute = MUST(rig_open(rig, "/sys/class/vduse/f/bounce_size"));
	rig_close(rig, &attribute);
	MUST(rig_ioctl(rig, fd, VDUSE_VQ_SETUP, &queue));
	MUST(dmamap_vdpa_attach(rig->system, "f", NULL, &vdpa));
	MUST(dmamap_bounce_map(dmamap_vdpa_bounce(vdpa, 0), data, 1, READ, 0, &iova, NULL));
	range = MUST(rig_ioctl(rig, fd, VDUSE_IOTLB_GET_FD, &entry));
	rig_close(rig, &range);
	MUST(dmamap_bounce_unmap(dmamap_vdpa_bounce(vdpa, 0), iova, 1, 0, NULL));
	rig_close(rig, &fd);
	MUST(dmamap_vdpa_detach(vdpa));
	MUST(rig_ioctl(rig, control, VDUSE_DESTROY_DEV, name));
	rig_close(rig, &control);
}

static void disk(struct rig *rig)
{
	const struct dmamap_blk_load load = {.jobs = 2, .requests = 20, .verify = true};
	static uint8_t data[4096];
	struct dmamap_blk_request one = {
		.op = DMAMAP_BLK_WRITE, .data = data, .size = sizeof(data), .segment = 512};
	struct dmamap_blk_result came;
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
	struct daemon daemon;

	SPARE(daemon_init(&daemon, rig, "d"); daemon_create(&daemon); daemon_start(&daemon));
	MUST(dmamap_vdpa_attach(rig->system, "d", NULL, &vdpa));
	/* The daemon has an eventfd for each queue, and takes them back in its own time. */
	if (dmamap_blk_probe(vdpa, NULL, &blk)) {
		assert_true(failed);
		assert_int_equal(dmamap_blk_probe(vdpa, NULL, &blk), 0);
	}
	MUST(dmamap_blk_do(blk, 0, &one));
	MUST(dmamap_blk_load(blk, &load, &came));
	assert_int_equal(came.failed + came.mismatches, 0);
	dmamap_blk_remove(blk);
	MUST(dmamap_vdpa_detach(vdpa));
	SPARE(daemon_finish(&daemon));
}

static void each_allocation_fails(void **state)
{
	struct rig rig;
	unsigned n = 1;

	(void)state;
	do {
		rig_start(&rig, NULL);
		/* Starts the thread that listens, which stays. */
		SPARE(struct daemon first; daemon_init(&first, &rig, "first");
			daemon_create(&first); daemon_start(&first); daemon_finish(&first));
		failed = false;
		fail_nth = n++;
		files(&rig);
		disk(&rig);
		fail_nth = 0;
		rig_stop(&rig);
	} while (failed);
	assert_true(n > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails)};

	return cmocka_run_group_tests_name("vduse without memory", tests, NULL, NULL);
}
