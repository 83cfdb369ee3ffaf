/* SPDX-License-Identifier: MIT */
/*
 * A VDUSE device and its driver without memory: their life again and again, with
 * the n-th allocation of this thread failing, until none fails. A call that
 * fails leaves nothing behind, and succeeds when it is made again.
 */
#include "dmamap/vdpa.h"
#include "soft/vduse.h"
#include "tests/soft/faults.h"
#include "tests/soft/vduse_daemon.h"

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
	int control = FAULTS_MUST(rig_open(rig, "/dev/vduse/control")), fd, range, attribute;

	FAULTS_MUST(rig_ioctl(rig, control, VDUSE_CREATE_DEV, &config));
	fd = FAULTS_MUST(rig_open(rig, "/dev/vduse/f"));
	attribute = FAULTS_MUST(rig_open(rig, "/sys/class/vduse/f/bounce_size"));
	rig_close(rig, &attribute);
	FAULTS_MUST(rig_ioctl(rig, fd, VDUSE_VQ_SETUP, &queue));
	FAULTS_MUST(dmamap_vdpa_attach(rig->soft, "f", NULL, &vdpa));
	FAULTS_MUST(dmamap_bounce_map(dmamap_vdpa_bounce(vdpa, 0), data, 1, READ, 0, &iova, NULL));
	range = FAULTS_MUST(rig_ioctl(rig, fd, VDUSE_IOTLB_GET_FD, &entry));
	rig_close(rig, &range);
	FAULTS_MUST(dmamap_bounce_unmap(dmamap_vdpa_bounce(vdpa, 0), iova, 1, 0, NULL));
	rig_close(rig, &fd);
	FAULTS_MUST(dmamap_vdpa_detach(vdpa));
	FAULTS_MUST(rig_ioctl(rig, control, VDUSE_DESTROY_DEV, name));
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
	FAULTS_MUST(dmamap_vdpa_attach(rig->soft, "d", NULL, &vdpa));
	/* The daemon has an eventfd for each queue, and takes them back in its own time. */
	if (dmamap_blk_probe(vdpa, NULL, &blk)) {
		assert_true(failed);
		assert_int_equal(dmamap_blk_probe(vdpa, NULL, &blk), 0);
	}
	FAULTS_MUST(dmamap_blk_do(blk, 0, &one));
	FAULTS_MUST(dmamap_blk_load(blk, &load, &came));
	assert_int_equal(came.failed + came.mismatches, 0);
	dmamap_blk_remove(blk);
	FAULTS_MUST(dmamap_vdpa_detach(vdpa));
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
