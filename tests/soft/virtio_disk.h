/* SPDX-License-Identifier: MIT */
/* A disk of the VDUSE tests with its driver: what tests of virtio-blk share. */
#ifndef DMAMAP_TESTS_SOFT_VIRTIO_DISK_H
#define DMAMAP_TESTS_SOFT_VIRTIO_DISK_H

#include "dmamap/vdpa.h"
#include "tests/soft/vduse_daemon.h"

struct setup {
	struct rig rig;
	struct daemon daemon;
	struct dmamap_vdpa *vdpa;
	struct dmamap_blk *blk;
};

/* Up to a device that is attached; the daemon may be changed before. */
static inline struct setup *prepare(void)
{
	static struct setup the_setup, *setup = &the_setup;

	setup->vdpa = NULL;
	setup->blk = NULL;
	rig_start(&setup->rig, NULL);
	daemon_init(&setup->daemon, &setup->rig, "d");
	return setup;
}

static inline void attach(struct setup *setup, const struct dmamap_vdpa_config *config)
{
	daemon_create(&setup->daemon);
	daemon_start(&setup->daemon);
	assert_int_equal(dmamap_vdpa_attach(setup->rig.soft, "d", config, &setup->vdpa), 0);
}

static inline void probe(struct setup *setup, uint64_t refuse)
{
	const struct dmamap_blk_config config = {.refuse = refuse};

	assert_int_equal(dmamap_blk_probe(setup->vdpa, &config, &setup->blk), 0);
}

/* Nothing may be left mapped. */
static inline void finish(struct setup *setup)
{
	struct dmamap_bounce_counters counters;

	dmamap_blk_remove(setup->blk);
	dmamap_bounce_counters(dmamap_vdpa_bounce(setup->vdpa, 0), &counters);
	assert_int_equal(counters.live_units, 0);
	assert_int_equal(dmamap_vdpa_detach(setup->vdpa), 0);
	daemon_finish(&setup->daemon);
	rig_stop(&setup->rig);
}

static inline int request(
	struct setup *setup, enum dmamap_blk_op op, uint64_t sector, void *data, uint32_t size)
{
	struct dmamap_blk_request one = {
		.op = op, .sector = sector, .sectors = size / 512, .data = data, .size = size};

	if (op == DMAMAP_BLK_DISCARD || op == DMAMAP_BLK_WRITE_ZEROES || op == DMAMAP_BLK_UNMAP)
		one.data = NULL;
	return dmamap_blk_do(setup->blk, 0, &one);
}

#endif
