/* SPDX-License-Identifier: MIT */
/*
 * The virtio-blk driver against a daemon, end to end: steps and errors as in
 * drivers/virtio/ and drivers/block/virtio_blk.c of Linux 7.3.4, data compared,
 * and what happens when the bounce buffer is full, the daemon dies, is silent or
 * lies. Cases are those of the field reports.
 */
#include "soft/virtio_blk.h"
#include "tests/soft/virtio_disk.h"

/* ------------------------------------------------------------------- requests */

static void each_operation(void **state)
{
	struct setup *setup = prepare();
	uint8_t data[4096], back[4096], zeros[4096] = {0};
	char id[20];

	(void)state;
	attach(setup, NULL);
	probe(setup, 0);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	assert_int_equal(request(setup, DMAMAP_BLK_WRITE, 8, data, sizeof(data)), 0);
	assert_memory_equal(setup->daemon.disk + 8 * 512, data, sizeof(data));
	assert_int_equal(request(setup, DMAMAP_BLK_READ, 8, back, sizeof(back)), 0);
	assert_memory_equal(back, data, sizeof(data));
	assert_int_equal(request(setup, DMAMAP_BLK_FLUSH, 0, NULL, 0), 0);
	assert_int_equal(atomic_load(&setup->daemon.flushes), 1);
	assert_int_equal(request(setup, DMAMAP_BLK_DISCARD, 8, NULL, 1024), 0);
	assert_memory_equal(setup->daemon.disk + 8 * 512, zeros, 1024);
	assert_memory_equal(setup->daemon.disk + 10 * 512, data + 1024, 1024);
	assert_int_equal(request(setup, DMAMAP_BLK_WRITE_ZEROES, 10, NULL, 1024), 0);
	assert_int_equal(request(setup, DMAMAP_BLK_UNMAP, 12, NULL, 2048), 0);
	assert_memory_equal(setup->daemon.disk + 8 * 512, zeros, sizeof(zeros));
	assert_int_equal(request(setup, DMAMAP_BLK_GET_ID, 0, id, sizeof(id)), 0);
	assert_string_equal(id, "test disk");
	/* The disk ends there. */
	assert_int_equal(request(setup, DMAMAP_BLK_READ, 8191, back, 1024), -EIO);
	finish(setup);
}

/* In pieces, and as ranges of one request. */
static void requests_of_many_pieces(void **state)
{
	struct setup *setup = prepare();
	static uint8_t data[16 * 1024], back[sizeof(data)];
	struct virtio_blk_discard_write_zeroes ranges[2] = {{2, 1, 0}, {30, 2, 0}};
	struct dmamap_blk_request one = {
		.op = DMAMAP_BLK_WRITE, .data = data, .size = sizeof(data), .segment = 1024};

	(void)state;
	attach(setup, NULL);
	probe(setup, 0);
	memset(data, 0x5a, sizeof(data));
	assert_int_equal(dmamap_blk_do(setup->blk, 1, &one), 0);
	one.op = DMAMAP_BLK_READ;
	one.data = back;
	one.segment = 1536;
	assert_int_equal(dmamap_blk_do(setup->blk, 1, &one), 0);
	assert_memory_equal(back, data, sizeof(data));
	one = (struct dmamap_blk_request){
		.op = DMAMAP_BLK_DISCARD, .data = ranges, .size = sizeof(ranges)};
	assert_int_equal(dmamap_blk_do(setup->blk, 0, &one), 0);
	assert_int_equal(setup->daemon.disk[2 * 512], 0);
	assert_int_equal(setup->daemon.disk[3 * 512], 0x5a);
	assert_int_equal(setup->daemon.disk[31 * 512], 0);
	finish(setup);
}

static void requests_that_cannot_be(void **state)
{
	struct setup *setup = prepare();
	static uint8_t data[64 * 1024];
	struct dmamap_blk_request one = {.op = DMAMAP_BLK_WRITE, .data = data, .size = 512};

	(void)state;
	attach(setup, &(struct dmamap_vdpa_config){.bounce_size = MIB});
	probe(setup, 0);
	assert_gives(&setup->rig, dmamap_blk_do(setup->blk, 2, &one), EINVAL, "vduse_queue");
	one.size = 100;
	assert_gives(&setup->rig, dmamap_blk_do(setup->blk, 0, &one), EINVAL, "misaligned");
	one.size = 0;
	assert_gives(&setup->rig, dmamap_blk_do(setup->blk, 0, &one), EINVAL, "misaligned");
	one.op = 99;
	assert_gives(&setup->rig, dmamap_blk_do(setup->blk, 0, &one), EINVAL, "value");
	one.op = DMAMAP_BLK_WRITE;
	one.size = 17 * 512;
	one.segment = 512;
	assert_gives(&setup->rig, dmamap_blk_do(setup->blk, 0, &one), E2BIG, "vduse_value");
	/* More than the bounce buffer ever has room for. */
	one.size = MIB;
	one.segment = 0;
	assert_gives(&setup->rig, dmamap_blk_do(setup->blk, 0, &one), E2BIG, "vduse_value");
	finish(setup);
}

/* ----------------------------------------------------------------------- load */

static void run(struct setup *setup, const struct dmamap_blk_load *load)
{
	struct dmamap_blk_result result;
	struct dmamap_blk_counters counters;

	assert_int_equal(dmamap_blk_load(setup->blk, load, &result), 0);
	assert_int_equal(result.requests, load->requests * load->jobs);
	assert_int_equal(result.bytes, result.requests * load->size);
	assert_int_equal(result.failed, 0);
	assert_int_equal(result.mismatches, 0);
	assert_true(result.verified > 0);
	assert_true(result.latency.p50 && result.latency.p50 <= result.latency.p999);
	dmamap_blk_counters(setup->blk, &counters);
	assert_int_equal(counters.submitted, counters.completed);
	assert_int_equal(counters.failed, 0);
	assert_true(counters.interrupts > 0 && counters.kicks > 0);
}

static const struct dmamap_blk_load mixed = {
	.jobs = 4,
	.depth = 8,
	.size = 4096,
	.reads = 40,
	.requests = 500,
	.verify = true,
	.seed = 1,
};

static void load_over_all_kinds_of_ring(void **state)
{
	static const uint64_t without[] = {0, BIT(VIRTIO_RING_F_INDIRECT_DESC),
		BIT(VIRTIO_RING_F_EVENT_IDX),
		BIT(VIRTIO_RING_F_INDIRECT_DESC) | BIT(VIRTIO_RING_F_EVENT_IDX)};

	(void)state;
	for (size_t i = 0; i < 2 * LENGTH(without); i++) {
		struct setup *setup = prepare();
		struct dmamap_blk_info info;

		setup->daemon.native = i & 1;
		if (i & 4)
			setup->daemon.features |= BIT(VIRTIO_F_RING_PACKED);
		attach(setup, NULL);
		probe(setup, without[i & 3]);
		dmamap_blk_info(setup->blk, &info);
		assert_true(info.features == (setup->daemon.features & ~without[i & 3]));
		run(setup, &mixed);
		finish(setup);
	}
}

static void load_in_pieces_and_in_order(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_blk_load load = mixed;

	(void)state;
	attach(setup, NULL);
	probe(setup, 0);
	load.jobs = 2;
	load.size = 16384;
	load.segment = 2048;
	load.sequential = true;
	load.requests = 300;
	run(setup, &load);
	/* For a time instead. */
	load.requests = 0;
	load.milliseconds = 50;
	{
		struct dmamap_blk_result result;

		assert_int_equal(dmamap_blk_load(setup->blk, &load, &result), 0);
		assert_true(result.requests > 0);
		assert_true(result.nanoseconds >= 40000000);
		assert_int_equal(result.mismatches, 0);
		load.first = 4 * MIB - 16384;
		assert_gives(&setup->rig, dmamap_blk_load(setup->blk, &load, &result), EINVAL,
			"vduse_value");
	}
	finish(setup);
}

/* A ring that is full: the queue stops until a request completes. */
static void load_beyond_the_ring(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_blk_counters counters;
	struct dmamap_blk_load load = mixed;

	(void)state;
	setup->daemon.queue_size = 8;
	setup->daemon.n_queues = 1;
	attach(setup, NULL);
	probe(setup, 0);
	load.depth = 16;
	run(setup, &load);
	dmamap_blk_counters(setup->blk, &counters);
	assert_true(counters.ring_full > 0);
	assert_int_equal(counters.requeued, 0);
	finish(setup);
}

/* vring_alloc_queue_packed(): any size; a chain goes around the end of the ring. */
static void load_on_a_packed_ring_of_an_odd_size(void **state)
{
	static const uint64_t without[] = {0, BIT(VIRTIO_RING_F_INDIRECT_DESC)};

	(void)state;
	for (size_t i = 0; i < LENGTH(without); i++) {
		struct setup *setup = prepare();
		struct dmamap_blk_load load = mixed;

		setup->daemon.features |= BIT(VIRTIO_F_RING_PACKED);
		setup->daemon.queue_size = 13;
		setup->daemon.n_queues = 1;
		attach(setup, NULL);
		probe(setup, without[i]);
		load.segment = 2048;
		run(setup, &load);
		finish(setup);
	}
}

/* virtblk_fail_to_queue(): user space sees latency, and no error. */
static void load_beyond_the_bounce_buffer(void **state)
{
	static const struct dmamap_vdpa_config configs[] = {
		{.bounce_size = MIB},
		{.bounce_size = MIB, .page_shift = 16, .unit_shift = 16},
		{.bounce_size = MIB, .page_shift = 16},
	};

	(void)state;
	for (size_t i = 0; i < 2 * LENGTH(configs); i++) {
		struct setup *setup = prepare();
		struct dmamap_blk_counters counters;
		struct dmamap_bounce_counters bounce;
		struct dmamap_blk_load load = mixed;
		bool packed = i >= LENGTH(configs);

		setup->daemon.queue_size = 256;
		if (packed)
			setup->daemon.features |= BIT(VIRTIO_F_RING_PACKED);
		attach(setup, &configs[i % LENGTH(configs)]);
		probe(setup, 0);
		load.depth = 32;
		run(setup, &load);
		dmamap_blk_counters(setup->blk, &counters);
		dmamap_bounce_counters(dmamap_vdpa_bounce(setup->vdpa, 0), &bounce);
		/* 128 in flight: 512 units, of 255 or 15. */
		assert_true(counters.requeued > 0);
		assert_int_equal(counters.ring_full, 0);
		/* With a table, and without. */
		if (packed)
			assert_true(bounce.full >= counters.requeued * 2);
		else
			assert_int_equal(bounce.full, counters.requeued);
		assert_true(bounce.flushes > 0);
		finish(setup);
	}
}

/* --------------------------------------------------------------- bad daemons */

static void *load_in_a_thread(void *argument)
{
	struct setup *setup = argument;

	run(setup, &mixed);
	return NULL;
}

/* Requests that it had are done by the next one. */
static void a_daemon_that_is_killed_under_load(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		struct setup *setup = prepare();
		pthread_t thread;

		setup->daemon.native = way & 1;
		if (way & 2)
			setup->daemon.features |= BIT(VIRTIO_F_RING_PACKED);
		atomic_store(&setup->daemon.delay_us, 100);
		attach(setup, NULL);
		probe(setup, 0);
		assert_int_equal(pthread_create(&thread, NULL, load_in_a_thread, setup), 0);
		for (unsigned i = 0; i < 5; i++) {
			usleep(10000);
			daemon_kill(&setup->daemon);
			usleep(2000);
			daemon_start(&setup->daemon);
		}
		pthread_join(thread, NULL);
		assert_int_equal(atomic_load(&setup->daemon.malformed), 0);
		finish(setup);
	}
}

static void count_done(struct dmamap_blk_request *one)
{
	atomic_fetch_add((atomic_uint *)one->owner, 1);
}

static void submit_writes(
	struct setup *setup, struct dmamap_blk_request *requests, unsigned n, atomic_uint *done)
{
	static uint8_t data[512];

	for (unsigned i = 0; i < n; i++) {
		requests[i] = (struct dmamap_blk_request){.op = DMAMAP_BLK_WRITE,
			.data = data,
			.size = sizeof(data),
			.done = count_done,
			.owner = done};
		assert_int_equal(dmamap_blk_submit(setup->blk, 0, &requests[i]), 0);
	}
}

static void what_is_in_flight_when_the_driver_goes(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_blk_request requests[100];
	atomic_uint done = 0;

	(void)state;
	attach(setup, NULL);
	probe(setup, 0);
	atomic_store(&setup->daemon.holds, true);
	submit_writes(setup, requests, LENGTH(requests), &done);
	assert_int_equal(atomic_load(&done), 0);
	finish(setup);
	assert_int_equal(atomic_load(&done), 100);
	for (unsigned i = 0; i < LENGTH(requests); i++)
		assert_int_equal(requests[i].result, -EIO);
}

/* virtio_break_device(): nobody is kept waiting for a daemon that hangs. */
static void a_disk_that_is_taken_to_be_gone(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_blk_request requests[100];
	atomic_uint done = 0;

	(void)state;
	attach(setup, NULL);
	probe(setup, 0);
	atomic_store(&setup->daemon.holds, true);
	/* More than the ring holds: some wait for their turn. */
	submit_writes(setup, requests, LENGTH(requests) / 2, &done);
	dmamap_blk_break(setup->blk);
	submit_writes(setup, requests + LENGTH(requests) / 2, LENGTH(requests) / 2, &done);
	for (unsigned i = 0; i < 5000 && atomic_load(&done) < LENGTH(requests); i++)
		usleep(1000);
	assert_int_equal(atomic_load(&done), LENGTH(requests));
	for (unsigned i = 0; i < LENGTH(requests); i++)
		assert_int_equal(requests[i].result, -EIO);
	finish(setup);
}

/* virtqueue_get_buf(): an id that is no head. Linux leaves the requests hanging. */
static void a_daemon_that_lies(void **state)
{
	(void)state;
	for (unsigned packed = 0; packed < 2; packed++) {
		struct setup *setup = prepare();
		struct dmamap_blk_counters counters;
		uint8_t data[512] = {0};

		if (packed)
			setup->daemon.features |= BIT(VIRTIO_F_RING_PACKED);
		attach(setup, NULL);
		probe(setup, 0);
		assert_int_equal(request(setup, DMAMAP_BLK_WRITE, 0, data, sizeof(data)), 0);
		atomic_store(&setup->daemon.lies, true);
		assert_int_equal(request(setup, DMAMAP_BLK_WRITE, 0, data, sizeof(data)), -EIO);
		atomic_store(&setup->daemon.lies, false);
		assert_int_equal(request(setup, DMAMAP_BLK_WRITE, 0, data, sizeof(data)), -EIO);
		dmamap_blk_counters(setup->blk, &counters);
		assert_int_equal(counters.bad, 1);
		assert_int_equal(counters.failed, 2);
		assert_int_equal(counters.submitted, counters.completed);
		finish(setup);
	}
}

/* virtqueue_add_packed(): a bounce buffer that is full is EIO there, and the request's end. */
static void a_full_bounce_buffer_under_a_packed_ring(void **state)
{
	(void)state;
	for (unsigned as_kernel = 0; as_kernel < 2; as_kernel++) {
		struct setup *setup = prepare();
		struct dmamap_blk_counters counters;
		struct dmamap_bounce_counters bounce;
		struct dmamap_blk_request requests[5];
		atomic_uint done = 0;

		setup->daemon.features |= BIT(VIRTIO_F_RING_PACKED);
		attach(setup, &(struct dmamap_vdpa_config){.page_shift = 16,
				      .unit_shift = 16,
				      .bounce_size = MIB,
				      .as_kernel = as_kernel ? DMAMAP_KERNEL(7, 3) : 0});
		probe(setup, 0);
		atomic_store(&setup->daemon.holds, true);
		submit_writes(setup, requests, LENGTH(requests), &done);
		/* 15 units: three requests have four, and the fourth goes without a table. */
		dmamap_bounce_counters(dmamap_vdpa_bounce(setup->vdpa, 0), &bounce);
		assert_int_equal(bounce.live_units, 15);
		for (unsigned i = 0; i < 5000 && as_kernel && !atomic_load(&done); i++)
			usleep(1000);
		assert_int_equal(atomic_load(&done), as_kernel);
		dmamap_blk_counters(setup->blk, &counters);
		assert_true(as_kernel ? counters.requeued == 0 : counters.requeued > 0);
		if (as_kernel)
			assert_int_equal(requests[4].result, -EIO);
		finish(setup);
		assert_int_equal(atomic_load(&done), 5);
	}
}

/* ---------------------------------------------------------------------- cases */

/* Case 33 (kernel commit 3fc3068e7247): what 64 MiB hold of 4 KiB on 64 KiB pages. */
static void case_33(void **state)
{
	static const struct {
		unsigned as_kernel, unit_shift;
		unsigned fit;
	} rows[] = {{DMAMAP_KERNEL(6, 12), 0, 1023}, {0, 16, 1023}, {DMAMAP_KERNEL(7, 3), 0, 16383},
		{0, 0, 16383}};
	static uint8_t buffer[4096];

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct setup *setup = prepare();
		struct dmamap_bounce *bounce;
		uint64_t *iovas = calloc(rows[i].fit, sizeof(*iovas)), none;
		unsigned n = 0;

		attach(setup, &(struct dmamap_vdpa_config){.page_shift = 16,
				      .as_kernel = rows[i].as_kernel,
				      .unit_shift = rows[i].unit_shift});
		bounce = dmamap_vdpa_bounce(setup->vdpa, 0);
		while (n < rows[i].fit && !dmamap_bounce_map(bounce, buffer, sizeof(buffer),
						  DMAMAP_READ, 0, &iovas[n], NULL))
			n++;
		assert_int_equal(n, rows[i].fit);
		assert_int_equal(dmamap_bounce_map(bounce, buffer, sizeof(buffer), DMAMAP_READ, 0,
					 &none, NULL),
			-ENOSPC);
		while (n--)
			assert_int_equal(
				dmamap_bounce_unmap(bounce, iovas[n], sizeof(buffer), 0, NULL), 0);
		free(iovas);
		finish(setup);
	}
}

/* The same of whole requests, each with 4 maps: header, data, status, table. */
static void requests_that_are_held_open(void **state)
{
	struct setup *setup = prepare();
	struct dmamap_bounce_counters bounce;
	struct dmamap_blk_counters counters;
	static struct dmamap_blk_request requests[300];
	static uint8_t data[512];
	atomic_uint done = 0;

	(void)state;
	setup->daemon.queue_size = 256;
	attach(setup, &(struct dmamap_vdpa_config){.page_shift = 16, .unit_shift = 16});
	probe(setup, 0);
	atomic_store(&setup->daemon.holds, true);
	for (unsigned i = 0; i < LENGTH(requests); i++) {
		requests[i] = (struct dmamap_blk_request){.op = DMAMAP_BLK_WRITE,
			.data = data,
			.size = 512,
			.done = count_done,
			.owner = &done};
		assert_int_equal(dmamap_blk_submit(setup->blk, i % 2, &requests[i]), 0);
	}
	/* 1,023 units; what is left of the fourth map is taken back. */
	dmamap_bounce_counters(dmamap_vdpa_bounce(setup->vdpa, 0), &bounce);
	assert_int_equal(bounce.live_units, 255 * 4);
	dmamap_blk_counters(setup->blk, &counters);
	assert_true(counters.requeued >= 1);
	finish(setup);
	assert_int_equal(atomic_load(&done), 300);
}

/* Case 34 (latent in Linux 7.3): 64 KiB pages, a bounce buffer of 72 MiB, a ring. */
static void case_34(void **state)
{
	(void)state;
	for (unsigned as_kernel = 0; as_kernel < 2; as_kernel++) {
		struct setup *setup = prepare();

		attach(setup, &(struct dmamap_vdpa_config){.page_shift = 16,
				      .bounce_size = 72 * MIB,
				      .as_kernel = as_kernel ? DMAMAP_KERNEL(7, 3) : 0});
		if (as_kernel) {
			assert_gives(&setup->rig, dmamap_blk_probe(setup->vdpa, NULL, &setup->blk),
				ENOMEM, "coherent_no_range");
			assert_non_null(strstr(rig_sentence(&setup->rig), "Linux 7.3"));
		} else {
			probe(setup, 0);
			assert_int_equal(request(setup, DMAMAP_BLK_FLUSH, 0, NULL, 0), 0);
		}
		finish(setup);
	}
}

/* Case 35 (libvduse): a message about a queue that is not there is answered with an error, and a
 * request that makes no sense comes back. */
static void case_35(void **state)
{
	struct setup *setup = prepare();
	static struct virtio_blk_outhdr header;
	static uint8_t status = 0xff;
	struct soft_ring_piece pieces[] = {{&header, 8, false}, {&status, 1, true}};
	union soft_ring_desc table[2];
	struct vduse_vq_state queue_state;
	struct soft_ring ring;
	void *token = NULL;

	(void)state;
	attach(setup, NULL);
	assert_int_equal(
		soft_vduse_get_queue_state(soft_vduse_driver_from(setup->vdpa), 7, &queue_state),
		-EIO);
	soft_vduse_set_features(soft_vduse_driver_from(setup->vdpa), DISK);
	assert_int_equal(soft_ring_create(&ring, soft_vduse_driver_from(setup->vdpa), 0, DISK), 0);
	soft_vduse_set_status(soft_vduse_driver_from(setup->vdpa), 15);
	assert_int_equal(soft_ring_add(&ring, pieces, 2, table, &status), 0);
	assert_true(soft_ring_kick_wanted(&ring));
	soft_vduse_kick(soft_vduse_driver_from(setup->vdpa), 0);
	for (unsigned i = 0; i < 5000 && !token; i++) {
		token = soft_ring_get(&ring);
		usleep(1000);
	}
	assert_ptr_equal(token, &status);
	assert_int_equal(status, VIRTIO_BLK_S_IOERR);
	assert_int_equal(atomic_load(&setup->daemon.malformed), 1);
	assert_int_equal(soft_vduse_reset(soft_vduse_driver_from(setup->vdpa)), 0);
	soft_ring_destroy(&ring);
	finish(setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation),
		cmocka_unit_test(requests_of_many_pieces),
		cmocka_unit_test(requests_that_cannot_be),
		cmocka_unit_test(load_over_all_kinds_of_ring),
		cmocka_unit_test(load_in_pieces_and_in_order),
		cmocka_unit_test(load_beyond_the_ring),
		cmocka_unit_test(load_on_a_packed_ring_of_an_odd_size),
		cmocka_unit_test(load_beyond_the_bounce_buffer),
		cmocka_unit_test(a_daemon_that_is_killed_under_load),
		cmocka_unit_test(what_is_in_flight_when_the_driver_goes),
		cmocka_unit_test(a_disk_that_is_taken_to_be_gone),
		cmocka_unit_test(a_daemon_that_lies),
		cmocka_unit_test(a_full_bounce_buffer_under_a_packed_ring),
		cmocka_unit_test(case_33),
		cmocka_unit_test(requests_that_are_held_open),
		cmocka_unit_test(case_34),
		cmocka_unit_test(case_35),
	};

	return cmocka_run_group_tests_name("virtio-blk", tests, NULL, NULL);
}
