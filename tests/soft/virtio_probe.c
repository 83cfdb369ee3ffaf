/* SPDX-License-Identifier: MIT */
/*
 * How the virtio-blk driver takes a device: the steps that its daemon sees, and
 * what it is refused for, as in drivers/virtio/, drivers/vdpa/vdpa.c and
 * drivers/block/virtio_blk.c of Linux 7.3.4.
 */
#include "tests/soft/virtio_disk.h"

static void the_steps_of_a_probe(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_blk_info info;
	struct dmamap_blk *again;

	(void)state;
	attach(setup, NULL);
	probe(setup, 0);
	/* Reset, ACKNOWLEDGE, DRIVER, FEATURES_OK, DRIVER_OK */
	assert_int_equal(atomic_load(&setup->daemon.statuses), 0x01030b0f);
	assert_int_equal(atomic_load(&setup->daemon.messages), 5);
	dmamap_blk_info(setup->blk, &info);
	assert_true(info.features == DISK);
	assert_int_equal(info.sectors, 8192);
	assert_int_equal(info.queues, 2);
	assert_int_equal(info.queue_size, 64);
	assert_int_equal(info.segments, 16);
	assert_int_equal(info.block_size, 512);
	assert_false(info.read_only);
	assert_gives(
		&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &again), EBUSY, "vduse_bound");
	assert_gives(&setup->rig, dmamap_vdpa_detach(setup->vdpa), EBUSY, "vduse_bound");
	finish(setup);
	assert_int_equal(atomic_load(&setup->daemon.statuses), 0x0b0f0001);
}

/* virtio_features_ok(), virtio_dev_probe(): FAILED is the last that the daemon hears. */
static void features_that_are_refused(void **state)
{
	struct setup *setup = prepare();

	(void)state;
	attach(setup, NULL);
	atomic_store(&setup->daemon.refuses_features, true);
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), ENODEV,
		"vduse_feature_refused");
	assert_int_equal(atomic_load(&setup->daemon.statuses), 0x01030b83);
	atomic_store(&setup->daemon.refuses_features, false);
	probe(setup, 0);
	finish(setup);
}

/* A field of the disk's configuration. */
#define SET_FIELD(setup, field, value)                                                             \
	set_field(setup, offsetof(struct virtio_blk_config, field),                                \
		sizeof(((struct virtio_blk_config *)0)->field), value)

static void set_field(struct setup *setup, uint32_t offset, uint32_t size, uint64_t value)
{
	union {
		struct vduse_config_data is;
		uint8_t bytes[sizeof(struct vduse_config_data) + sizeof(value)];
	} data = {.is = {.offset = offset, .length = size}};

	memcpy(data.bytes + sizeof(data.is), &value, sizeof(value));
	assert_int_equal(rig_ioctl(&setup->rig, setup->daemon.fd, VDUSE_DEV_SET_CONFIG, &data), 0);
}

/* vdpa_dev_probe(): the daemon hears nothing of a device without queues. */
static void a_device_without_queues(void **state)
{
	struct setup *setup = prepare();
	struct vduse_vq_config none = {.index = 0};

	(void)state;
	attach(setup, NULL);
	for (none.index = 0; none.index < 2; none.index++)
		assert_int_equal(
			rig_ioctl(&setup->rig, setup->daemon.fd, VDUSE_VQ_SETUP, &none), 0);
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), EINVAL,
		"vduse_queue_unset");
	assert_int_equal(atomic_load(&setup->daemon.messages), 0);
	finish(setup);
}

/* virtio_vdpa_setup_vq(), virtio_vdpa_del_vqs(): what was made ready is not, in the same order, and
 * the one that could not be made is told of first. */
static void queues_that_cannot_be_made(void **state)
{
	struct setup *setup = prepare();

	(void)state;
	setup->daemon.api_version = 1;
	setup->daemon.vduse_features = BIT(VDUSE_F_QUEUE_READY);
	attach(setup, NULL);
	SET_FIELD(setup, num_queues, 0);
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), EINVAL,
		"vduse_value");
	assert_true(!atomic_load(&setup->daemon.readies));
	SET_FIELD(setup, num_queues, 3);
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), ENOENT,
		"vduse_queue");
	assert_true(atomic_load(&setup->daemon.readies) == 0x01030002);
	assert_int_equal(atomic_load(&setup->daemon.statuses), 0x01030b8b);
	SET_FIELD(setup, num_queues, 2);
	assert_int_equal(rig_ioctl(&setup->rig, setup->daemon.fd, VDUSE_VQ_SETUP,
				 &(struct vduse_vq_config){.index = 1, .max_size = 100}),
		0);
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), ENOMEM,
		"misaligned");
	assert_true(atomic_load(&setup->daemon.readies) == 0x01030002010200);
	assert_int_equal(rig_ioctl(&setup->rig, setup->daemon.fd, VDUSE_VQ_SETUP,
				 &(struct vduse_vq_config){.index = 1, .max_size = 64}),
		0);
	probe(setup, 0);
	dmamap_blk_remove(setup->blk);
	setup->blk = NULL;
	assert_true((uint32_t)atomic_load(&setup->daemon.readies) == 0x01030002);
	finish(setup);
}

/* virtblk_read_limits(), blk_validate_limits() of block/blk-settings.c */
static void limits_that_cannot_be(void **state)
{
#define LIMIT(feature, field) feature, offsetof(struct virtio_blk_config, field)
	static const struct {
		unsigned feature;
		uint32_t offset;
		uint32_t value;
		bool good;
	} rows[] = {
		{LIMIT(VIRTIO_BLK_F_BLK_SIZE, blk_size), 0, true},
		{LIMIT(VIRTIO_BLK_F_BLK_SIZE, blk_size), 256, false},
		{LIMIT(VIRTIO_BLK_F_BLK_SIZE, blk_size), 1000, false},
		{LIMIT(VIRTIO_BLK_F_BLK_SIZE, blk_size), 65536, true},
		{LIMIT(VIRTIO_BLK_F_BLK_SIZE, blk_size), 131072, false},
		{LIMIT(VIRTIO_BLK_F_SIZE_MAX, size_max), 0, true},
		{LIMIT(VIRTIO_BLK_F_SIZE_MAX, size_max), 4095, false},
		{LIMIT(VIRTIO_BLK_F_SIZE_MAX, size_max), 4096, true},
		/* Of the three that it needs only one is there. */
		{LIMIT(VIRTIO_BLK_F_SECURE_ERASE, max_secure_erase_seg), 1, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct setup *setup = prepare();
		struct dmamap_blk_info info;

		setup->daemon.features |= BIT(rows[i].feature);
		attach(setup, NULL);
		set_field(setup, rows[i].offset, 4, rows[i].value);
		if (rows[i].good) {
			probe(setup, 0);
			dmamap_blk_info(setup->blk, &info);
			if (rows[i].feature == VIRTIO_BLK_F_BLK_SIZE)
				assert_int_equal(
					info.block_size, rows[i].value ? rows[i].value : 512);
			else
				assert_int_equal(
					info.segment_size, rows[i].value ? rows[i].value : 65536);
		} else {
			assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk),
				EINVAL, "vduse_value");
			/* Its queues were there before. */
			assert_int_equal(atomic_load(&setup->daemon.statuses), 0x01030b8b);
		}
		finish(setup);
	}
}

/* vring_transport_features() */
static void features_that_the_driver_takes(void **state)
{
	struct setup *setup = prepare();
	const uint64_t taken = DISK | BIT(VIRTIO_F_RING_PACKED) | BIT(VIRTIO_F_ORDER_PLATFORM) |
			       BIT(VIRTIO_F_NOTIFICATION_DATA);
	uint64_t told = 0;

	(void)state;
	setup->daemon.features =
		taken | BIT(VIRTIO_F_RING_RESET) | BIT(VIRTIO_F_NOTIFY_ON_EMPTY) | BIT(50);
	attach(setup, NULL);
	probe(setup, 0);
	assert_int_equal(
		rig_ioctl(&setup->rig, setup->daemon.fd, VDUSE_DEV_GET_FEATURES, &told), 0);
	assert_true(told == taken);
	assert_int_equal(request(setup, DMAMAP_BLK_FLUSH, 0, NULL, 0), 0);
	finish(setup);
}

/* vring_alloc_queue_split(): a power of two, and no larger than there is memory for. */
static void rings_that_cannot_be(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_bounce *bounce;
	struct dmamap_blk_info info;
	uint64_t iova, spare;
	void *address;

	(void)state;
	setup->daemon.queue_size = 100;
	setup->daemon.n_queues = 1;
	attach(setup, NULL);
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), ENOMEM,
		"misaligned");
	daemon_kill(&setup->daemon);
	setup->daemon.queue_size = 256;
	daemon_start(&setup->daemon);

	bounce = dmamap_vdpa_bounce(setup->vdpa, 0);
	assert_int_equal(dmamap_bounce_coherent_alloc(bounce, 8192, &spare, &address, NULL), 0);
	for (uint64_t size = 32 * MIB; size >= 4096; size /= 2)
		while (!dmamap_bounce_coherent_alloc(bounce, size, &iova, &address, NULL))
			;
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), ENOMEM,
		"coherent_full");
	assert_int_equal(dmamap_bounce_coherent_free(bounce, spare, 8192, NULL), 0);
	probe(setup, 0);
	dmamap_blk_info(setup->blk, &info);
	assert_int_equal(info.queue_size, 128);
	assert_int_equal(request(setup, DMAMAP_BLK_FLUSH, 0, NULL, 0), 0);
	finish(setup);
}

static void a_daemon_that_is_silent(void **state)
{
	struct setup *setup = prepare();
	const struct dmamap_vdpa_config config = {.timeout_ms = 100};

	(void)state;
	atomic_store(&setup->daemon.silent, true);
	attach(setup, &config);
	assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk), ENODEV,
		"vduse_broken");
	assert_true(dmamap_vdpa_broken(setup->vdpa));
	finish(setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_steps_of_a_probe),
		cmocka_unit_test(features_that_are_refused),
		cmocka_unit_test(a_device_without_queues),
		cmocka_unit_test(queues_that_cannot_be_made),
		cmocka_unit_test(limits_that_cannot_be),
		cmocka_unit_test(features_that_the_driver_takes),
		cmocka_unit_test(rings_that_cannot_be),
		cmocka_unit_test(a_daemon_that_is_silent),
	};

	return cmocka_run_group_tests_name("virtio probe", tests, NULL, NULL);
}
