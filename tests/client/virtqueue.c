/* SPDX-License-Identifier: MIT */
/* The device's side of a virtqueue: what it takes, what it refuses, whom it tells. */
#include "tests/check.h"

#include <errno.h>

#include "client/virtqueue.h"
#include "ring_driver.h"

static unsigned char memory[RING_BYTES + DATA_BYTES + CONST_BYTES] __attribute__((aligned(4096)));
static unsigned char logs[1 << 20] __attribute__((aligned(64)));

struct pair {
	struct ring_driver driver;
	struct dmamap_virtqueue *queue;
	struct iovec parts[16];
	struct dmamap_chain chain;
	struct dmamap_reason why;
};

static void start(struct pair *pair, bool packed, bool event_index, uint32_t size)
{
	struct dmamap_virtqueue_config config;

	memset(pair, 0, sizeof(*pair));
	ring_driver_start(&pair->driver, memory, size, packed, event_index);
	ring_driver_config(&pair->driver, &config);
	assert_int_equal(dmamap_virtqueue_create(&config, &pair->queue, &pair->why), 0);
	pair->chain.parts = pair->parts;
	pair->chain.max = 16;
}

static void stop(struct pair *pair)
{
	dmamap_virtqueue_destroy(pair->queue);
}

/* Takes and walks; what walking gave. */
static int take(struct pair *pair)
{
	assert_int_equal(dmamap_virtqueue_take(pair->queue, &pair->chain.slot, &pair->why), 1);
	return dmamap_virtqueue_walk(pair->queue, &pair->chain, &pair->why);
}

static void give_back(struct pair *pair, uint32_t written)
{
	dmamap_virtqueue_give(pair->queue, pair->chain.slot, written);
	dmamap_virtqueue_publish(pair->queue);
}

static const struct ring_part usual[] = {
	{DATA_IOVA, 16, false},
	{DATA_IOVA + 0x1000, 512, true},
	{DATA_IOVA + 0x2000, 1, true},
};

/* ------------------------------------------------------------------- what is taken */

static void a_chain_is_its_parts(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		uint64_t table = kind & 1 ? DATA_IOVA + 0x8000 : 0;
		struct pair pair;
		uint32_t written, slot;
		int id;

		start(&pair, kind & 2, true, 8);
		id = ring_driver_add(&pair.driver, usual, 3, table);
		assert_int_equal(take(&pair), 0);
		assert_int_equal(pair.chain.n_read, 1);
		assert_int_equal(pair.chain.n_write, 2);
		assert_int_equal(pair.chain.read_bytes, 16);
		assert_int_equal(pair.chain.write_bytes, 513);
		assert_ptr_equal(
			pair.parts[1].iov_base, ring_driver_at(&pair.driver, usual[1].iova));
		assert_ptr_equal(pair.chain.last, ring_driver_at(&pair.driver, usual[2].iova));
		assert_int_equal(dmamap_virtqueue_take(pair.queue, &slot, &pair.why), 0);
		assert_int_equal(ring_driver_get(&pair.driver, &written), -1);
		dmamap_virtqueue_give(pair.queue, pair.chain.slot, 513);
		/* Given back, and not yet shown. */
		assert_int_equal(ring_driver_get(&pair.driver, &written), -1);
		assert_int_equal(dmamap_virtqueue_in_flight(pair.queue), 1);
		dmamap_virtqueue_publish(pair.queue);
		assert_int_equal(dmamap_virtqueue_in_flight(pair.queue), 0);
		assert_int_equal(ring_driver_get(&pair.driver, &written), id);
		assert_int_equal(written, 513);
		stop(&pair);
	}
}

/* A part that crosses from one region to the next is two. */
static void a_part_may_cross_regions(void **state)
{
	const struct ring_part parts[] = {
		{DATA_IOVA, 16, false}, {CONST_IOVA - 8, 16, false}, {DATA_IOVA + 64, 1, true}};
	struct pair pair;

	(void)state;
	start(&pair, false, false, 8);
	ring_driver_add(&pair.driver, parts, 3, 0);
	assert_int_equal(take(&pair), 0);
	assert_int_equal(pair.chain.n_read, 3);
	assert_int_equal(pair.parts[1].iov_len, 8);
	assert_int_equal(pair.parts[2].iov_len, 8);
	stop(&pair);
}

/* Many laps, in any order, every request given back as itself and once. */
static void any_order_for_many_laps(void **state)
{
	struct random random = random_start("any_order_for_many_laps");

	(void)state;
	for (unsigned kind = 0; kind < 6; kind++) {
		struct pair pair;
		uint32_t slots[RING_MOST], ids[RING_MOST], n = 0;
		bool out[RING_MOST] = {false};

		start(&pair, kind % 2, kind / 2 % 2, kind % 2 && kind > 3 ? 7 : 16);
		for (unsigned i = 0; i < 20000; i++) {
			uint32_t written, parts = 1 + (uint32_t)random_below(&random, 3);
			int id;

			switch (random_below(&random, 3)) {
			case 0:
				id = ring_driver_add(&pair.driver, usual + 3 - parts, parts,
					random_below(&random, 2) ? DATA_IOVA + 0x8000 : 0);
				if (id < 0)
					break;
				assert_false(out[id]);
				out[id] = true;
				assert_int_equal(take(&pair), 0);
				ids[n] = (uint32_t)id;
				slots[n++] = pair.chain.slot;
				break;
			case 1:
				if (!n)
					break;
				id = (int)random_below(&random, n);
				dmamap_virtqueue_give(pair.queue, slots[id], ids[id] + 1);
				slots[id] = slots[--n];
				ids[id] = ids[n];
				break;
			case 2:
				dmamap_virtqueue_publish(pair.queue);
				while ((id = ring_driver_get(&pair.driver, &written)) >= 0) {
					assert_true(out[id]);
					assert_int_equal(written, id + 1);
					out[id] = false;
				}
				assert_int_equal(id, -1);
				break;
			}
		}
		stop(&pair);
	}
}

/* ----------------------------------------------------------------- what is refused */

struct lie {
	const char *name;
	int error;
	bool last_known;
	uint32_t n;
	struct ring_part parts[3];
};

static const struct lie lies[] = {
	{"not mapped", -EFAULT, true, 2,
		{{DATA_IOVA + 0x10000000, 16, false}, {DATA_IOVA, 1, true}}},
	{"past the end", -EFAULT, true, 2,
		{{CONST_IOVA + CONST_BYTES - 8, 16, false}, {DATA_IOVA, 1, true}}},
	{"read only, to be written", -EFAULT, false, 2,
		{{DATA_IOVA, 16, false}, {CONST_IOVA, 1, true}}},
	{"past 2^64", -EFAULT, true, 2, {{UINT64_MAX - 7, 16, false}, {DATA_IOVA, 1, true}}},
	{"empty", -EPROTO, true, 2, {{DATA_IOVA, 0, false}, {DATA_IOVA, 1, true}}},
	{"written before read", -EPROTO, true, 3,
		{{DATA_IOVA, 16, true}, {DATA_IOVA, 16, false}, {DATA_IOVA, 1, true}}},
};

static void a_lie_is_refused_and_given_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		for (unsigned kind = 0; kind < 4; kind++) {
			struct pair pair;
			uint32_t written;
			int id;

			start(&pair, kind & 2, true, 8);
			id = ring_driver_add(&pair.driver, lies[i].parts, lies[i].n,
				kind & 1 ? DATA_IOVA + 0x8000 : 0);
			if (take(&pair) != lies[i].error)
				fail_msg("%s, kind %u", lies[i].name, kind);
			assert_non_null(pair.why.kind);
			if (!pair.chain.last != !lies[i].last_known)
				fail_msg("%s, kind %u: last", lies[i].name, kind);
			give_back(&pair, 0);
			assert_int_equal(ring_driver_get(&pair.driver, &written), id);
			/* The queue goes on. */
			ring_driver_add(&pair.driver, usual, 3, 0);
			assert_int_equal(take(&pair), 0);
			stop(&pair);
		}
	}
}

static void split_chains_that_do_not_end(void **state)
{
	struct vring_desc *desc;
	struct pair pair;

	(void)state;
	/* Its next is outside the table. */
	start(&pair, false, false, 8);
	desc = ring_driver_desc(&pair.driver);
	desc[ring_driver_add(&pair.driver, usual, 3, 0)].next = 8;
	assert_int_equal(take(&pair), -EPROTO);
	assert_null(pair.chain.last);
	give_back(&pair, 0);
	stop(&pair);
	/* It comes back to itself. */
	start(&pair, false, false, 8);
	desc = ring_driver_desc(&pair.driver);
	desc[0] = (struct vring_desc){DATA_IOVA, 16, VRING_DESC_F_NEXT, 1};
	desc[1] = (struct vring_desc){DATA_IOVA, 16, VRING_DESC_F_NEXT, 0};
	ring_driver_avail(&pair.driver)->ring[0] = 0;
	ring_driver_avail(&pair.driver)->idx = 1;
	assert_int_equal(take(&pair), -EPROTO);
	assert_null(pair.chain.last);
	stop(&pair);
}

static void indirect_tables_that_cannot_be(void **state)
{
	static const struct {
		uint32_t length;
		uint16_t flags;
		uint64_t iova;
		uint16_t inner_flags;
		int error;
	} bad[] = {
		{0, 0, DATA_IOVA, 0, -EPROTO},
		{24, 0, DATA_IOVA, 0, -EPROTO},
		{16, 0, DATA_IOVA + 0x10000000, 0, -EFAULT},
		{UINT32_MAX & ~15u, 0, DATA_IOVA, 0, -EFAULT},
		{16, VRING_DESC_F_NEXT, DATA_IOVA, 0, -EPROTO},
		{16, 0, DATA_IOVA, VRING_DESC_F_INDIRECT, -EPROTO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (unsigned packed = 0; packed < 2; packed++) {
			struct pair pair;
			uint16_t flags = VRING_DESC_F_INDIRECT | bad[i].flags;

			start(&pair, packed, false, 8);
			ring_driver_add(&pair.driver, usual, 1, DATA_IOVA);
			if (packed) {
				struct vring_packed_desc *desc = ring_driver_packed(&pair.driver);
				struct vring_packed_desc *inner =
					ring_driver_at(&pair.driver, DATA_IOVA);

				inner->flags = bad[i].inner_flags;
				desc->addr = bad[i].iova;
				desc->len = bad[i].length;
				desc->flags = (uint16_t)(1u << VRING_PACKED_DESC_F_AVAIL | flags);
				if (bad[i].flags)
					desc[1].flags = 1u << VRING_PACKED_DESC_F_AVAIL;
			} else {
				struct vring_desc *inner = ring_driver_at(&pair.driver, DATA_IOVA);
				struct vring_desc *desc = &ring_driver_desc(&pair.driver)[7];

				inner->flags = bad[i].inner_flags;
				*desc = (struct vring_desc){bad[i].iova, bad[i].length, flags, 0};
			}
			if (take(&pair) != bad[i].error)
				fail_msg("table %zu, packed %u", i, packed);
			give_back(&pair, 0);
			stop(&pair);
		}
	}
}

static void more_parts_than_there_is_room_for(void **state)
{
	struct ring_part many[32];
	struct pair pair;

	(void)state;
	for (unsigned i = 0; i < 32; i++)
		many[i] = (struct ring_part){DATA_IOVA + 64 * i, 64, true};
	for (unsigned packed = 0; packed < 2; packed++) {
		start(&pair, packed, false, 32);
		ring_driver_add(&pair.driver, many, 17, 0);
		assert_int_equal(take(&pair), -E2BIG);
		assert_null(pair.chain.last);
		ring_driver_add(&pair.driver, many, 32, DATA_IOVA + 0x8000);
		assert_int_equal(take(&pair), -E2BIG);
		stop(&pair);
	}
}

/* A ring that makes no sense stops for good; what was taken can still be given back. */
static void a_ring_without_sense_stops(void **state)
{
	struct pair pair;
	uint32_t slot;

	(void)state;
	/* An index that jumps further than the ring is long. */
	start(&pair, false, false, 8);
	ring_driver_avail(&pair.driver)->idx = 9;
	assert_int_equal(dmamap_virtqueue_take(pair.queue, &slot, &pair.why), -EPROTO);
	ring_driver_avail(&pair.driver)->idx = 1;
	assert_int_equal(dmamap_virtqueue_take(pair.queue, &slot, &pair.why), -EPROTO);
	assert_false(dmamap_virtqueue_waiting(pair.queue));
	stop(&pair);
	/* A head that is no descriptor. */
	start(&pair, false, false, 8);
	ring_driver_avail(&pair.driver)->ring[0] = 8;
	ring_driver_avail(&pair.driver)->idx = 1;
	assert_int_equal(dmamap_virtqueue_take(pair.queue, &slot, &pair.why), -EPROTO);
	stop(&pair);
	/* A head that is in flight. */
	start(&pair, false, false, 8);
	slot = (uint32_t)ring_driver_add(&pair.driver, usual, 3, 0);
	assert_int_equal(take(&pair), 0);
	ring_driver_avail(&pair.driver)->ring[1] = (uint16_t)slot;
	ring_driver_avail(&pair.driver)->idx = 2;
	assert_int_equal(dmamap_virtqueue_take(pair.queue, &slot, &pair.why), -EPROTO);
	give_back(&pair, 0);
	assert_int_equal(dmamap_virtqueue_in_flight(pair.queue), 0);
	stop(&pair);
	/* A packed chain that goes around the whole ring. */
	start(&pair, true, false, 8);
	for (unsigned i = 0; i < 8; i++)
		ring_driver_packed(&pair.driver)[i] = (struct vring_packed_desc){
			DATA_IOVA, 8, 0, 1u << VRING_PACKED_DESC_F_AVAIL | VRING_DESC_F_NEXT};
	assert_int_equal(dmamap_virtqueue_take(pair.queue, &slot, &pair.why), -EPROTO);
	stop(&pair);
}

static void queues_that_cannot_be(void **state)
{
	struct ring_driver driver;
	struct dmamap_virtqueue_config config;
	struct dmamap_virtqueue *queue;
	struct dmamap_reason why = {0};

	(void)state;
	ring_driver_start(&driver, memory, 8, false, false);
	for (unsigned i = 0; i < 7; i++) {
		int wanted = i < 4 ? -EINVAL : -EFAULT;

		ring_driver_config(&driver, &config);
		switch (i) {
		case 0:
			config.size = 0;
			break;
		case 1:
			config.size = 12;
			break;
		case 2:
			config.size = 65536;
			break;
		case 3:
			config.descriptors += 8;
			break;
		case 4:
			config.descriptors = 0x10;
			break;
		case 5:
			/* The device must be able to write it. */
			config.device = CONST_IOVA;
			break;
		case 6:
			config.driver = RING_IOVA + RING_BYTES - 8;
			break;
		}
		why.kind = NULL;
		assert_int_equal(dmamap_virtqueue_create(&config, &queue, &why), wanted);
		assert_non_null(why.kind);
	}
}

/* --------------------------------------------------------------------- who is told */

static void the_driver_is_told_when_it_asked(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		struct pair pair;
		uint32_t written;

		start(&pair, kind & 2, kind & 1, 8);
		for (unsigned i = 0; i < 40; i++) {
			bool wanted = i % 3 != 0;

			ring_driver_add(&pair.driver, usual, 3, DATA_IOVA + 0x8000);
			assert_int_equal(take(&pair), 0);
			ring_driver_want_interrupt(&pair.driver, wanted);
			dmamap_virtqueue_give(pair.queue, pair.chain.slot, 0);
			assert_int_equal(dmamap_virtqueue_publish(pair.queue), wanted);
			/* Nothing new, nothing told. */
			assert_false(dmamap_virtqueue_publish(pair.queue));
			assert_true(ring_driver_get(&pair.driver, &written) >= 0);
		}
		stop(&pair);
	}
}

/* With an event index, one interrupt for a batch that passes it, wherever in it that is. */
static void one_interrupt_a_batch(void **state)
{
	(void)state;
	for (unsigned packed = 0; packed < 2; packed++) {
		struct pair pair;

		start(&pair, packed, true, 8);
		for (unsigned lap = 0; lap < 20; lap++) {
			uint32_t slots[3], written;

			for (unsigned i = 0; i < 3; i++) {
				ring_driver_add(&pair.driver, usual, 3, DATA_IOVA + 0x8000);
				assert_int_equal(take(&pair), 0);
				slots[i] = pair.chain.slot;
			}
			ring_driver_want_interrupt(&pair.driver, true);
			for (unsigned i = 0; i < 3; i++)
				dmamap_virtqueue_give(pair.queue, slots[i], 0);
			assert_true(dmamap_virtqueue_publish(pair.queue));
			for (unsigned i = 0; i < 3; i++)
				assert_true(ring_driver_get(&pair.driver, &written) >= 0);
		}
		stop(&pair);
	}
}

static void kicks_are_asked_for_and_not(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		struct pair pair;

		start(&pair, kind & 2, kind & 1, 8);
		assert_false(dmamap_virtqueue_listen(pair.queue));
		ring_driver_add(&pair.driver, usual, 3, DATA_IOVA + 0x8000);
		assert_true(ring_driver_must_kick(&pair.driver));
		/* One that came before the asking is seen. */
		assert_true(dmamap_virtqueue_listen(pair.queue));
		dmamap_virtqueue_mute(pair.queue);
		assert_int_equal(take(&pair), 0);
		ring_driver_add(&pair.driver, usual, 3, DATA_IOVA + 0x8000);
		assert_false(ring_driver_must_kick(&pair.driver));
		stop(&pair);
	}
}

/* ------------------------------------------------------------------------ the log */

/* Four taken; the second and third given back; of those, the second published. */
static void leave_in_the_middle(
	struct pair *pair, bool packed, int ids[4], struct dmamap_virtqueue_config *config)
{
	uint32_t slots[4], written;

	memset(pair, 0, sizeof(*pair));
	memset(logs, 0, sizeof(logs));
	ring_driver_start(&pair->driver, memory, 8, packed, true);
	ring_driver_config(&pair->driver, config);
	config->log = logs;
	assert_int_equal(dmamap_virtqueue_create(config, &pair->queue, &pair->why), 0);
	pair->chain.parts = pair->parts;
	pair->chain.max = 16;
	for (unsigned i = 0; i < 4; i++) {
		const struct ring_part part = {DATA_IOVA + 0x1000 * i, 100 + i, true};

		ids[i] = ring_driver_add(&pair->driver, &part, 1, 0);
		assert_int_equal(take(pair), 0);
		slots[i] = pair->chain.slot;
	}
	dmamap_virtqueue_give(pair->queue, slots[1], 1);
	dmamap_virtqueue_publish(pair->queue);
	assert_int_equal(ring_driver_get(&pair->driver, &written), ids[1]);
	dmamap_virtqueue_give(pair->queue, slots[2], 2);
	config->resume = true;
}

static void resume(struct pair *pair, const struct dmamap_virtqueue_config *config)
{
	stop(pair);
	assert_true(dmamap_virtqueue_log_live(logs));
	assert_int_equal(dmamap_virtqueue_create(config, &pair->queue, &pair->why), 0);
}

/* What was taken comes again, in order; what was given back is only told of. */
static void a_log_goes_on(void **state)
{
	(void)state;
	for (unsigned packed = 0; packed < 2; packed++) {
		struct dmamap_virtqueue_config config;
		struct pair pair;
		uint32_t written, slot;
		int ids[4], fifth;

		leave_in_the_middle(&pair, packed, ids, &config);
		fifth = ring_driver_add(&pair.driver, usual, 1, 0);
		resume(&pair, &config);
		assert_int_equal(dmamap_virtqueue_in_flight(pair.queue), 3);
		dmamap_virtqueue_publish(pair.queue);
		assert_int_equal(ring_driver_get(&pair.driver, &written), ids[2]);
		assert_int_equal(written, 2);
		assert_int_equal(ring_driver_get(&pair.driver, &written), -1);
		assert_true(dmamap_virtqueue_waiting(pair.queue));
		for (unsigned i = 0; i < 4; i += 3) {
			assert_int_equal(take(&pair), 0);
			assert_int_equal(pair.chain.write_bytes, 100 + i);
			give_back(&pair, i);
			assert_int_equal(ring_driver_get(&pair.driver, &written), ids[i]);
		}
		/* And what came meanwhile, once. */
		assert_int_equal(take(&pair), 0);
		give_back(&pair, 0);
		assert_int_equal(ring_driver_get(&pair.driver, &written), fifth);
		assert_int_equal(dmamap_virtqueue_take(pair.queue, &slot, &pair.why), 0);
		stop(&pair);
	}
}

/* Killed after the ring was shown something, before the log knew: it is not told again. */
static void a_log_that_is_late(void **state)
{
	static unsigned char before[sizeof(logs)];

	(void)state;
	for (unsigned packed = 0; packed < 2; packed++) {
		struct dmamap_virtqueue_config config;
		struct pair pair;
		uint32_t written;
		int ids[4];

		leave_in_the_middle(&pair, packed, ids, &config);
		memcpy(before, logs, sizeof(logs));
		dmamap_virtqueue_publish(pair.queue);
		memcpy(logs, before, sizeof(logs));
		resume(&pair, &config);
		assert_int_equal(dmamap_virtqueue_in_flight(pair.queue), 2);
		dmamap_virtqueue_publish(pair.queue);
		assert_int_equal(ring_driver_get(&pair.driver, &written), ids[2]);
		assert_int_equal(ring_driver_get(&pair.driver, &written), -1);
		stop(&pair);
		/* Even when the driver has used the place again. */
		leave_in_the_middle(&pair, packed, ids, &config);
		memcpy(before, logs, sizeof(logs));
		dmamap_virtqueue_publish(pair.queue);
		assert_int_equal(ring_driver_get(&pair.driver, &written), ids[2]);
		for (unsigned i = 0; i < 6; i++)
			assert_true(ring_driver_add(&pair.driver, usual, 1, 0) >= 0);
		memcpy(logs, before, sizeof(logs));
		resume(&pair, &config);
		assert_int_equal(dmamap_virtqueue_in_flight(pair.queue), 2);
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(take(&pair), 0);
			give_back(&pair, 0);
			assert_true(ring_driver_get(&pair.driver, &written) >= 0);
		}
		stop(&pair);
	}
}

static void a_log_that_does_not_fit(void **state)
{
	(void)state;
	for (unsigned packed = 0; packed < 2; packed++) {
		struct dmamap_virtqueue_config config;
		struct dmamap_virtqueue *queue;
		struct pair pair;
		int ids[4];

		leave_in_the_middle(&pair, packed, ids, &config);
		stop(&pair);
		config.packed = !packed;
		assert_int_equal(dmamap_virtqueue_create(&config, &queue, &pair.why), -EPROTO);
		config.packed = packed;
		config.size = 4;
		assert_int_equal(dmamap_virtqueue_create(&config, &queue, &pair.why), -EPROTO);
		config.size = 8;
		if (!packed) {
			/* The ring says that more was used than was ever given back. */
			ring_driver_used(&pair.driver)->idx += 3;
			assert_int_equal(
				dmamap_virtqueue_create(&config, &queue, &pair.why), -EPROTO);
		}
		dmamap_virtqueue_log_clear(logs);
		assert_false(dmamap_virtqueue_log_live(logs));
		assert_int_equal(dmamap_virtqueue_create(&config, &queue, &pair.why), -EPROTO);
	}
}

/* Two that are said to hold the whole packed ring each would lead to a place behind it. */
static void a_log_of_more_than_the_ring(void **state)
{
	struct dmamap_virtqueue_config config;
	struct dmamap_virtqueue *queue;
	struct pair pair;
	struct log_entry *entries = (struct log_entry *)(void *)(logs + sizeof(struct log_header));
	int ids[4];

	(void)state;
	leave_in_the_middle(&pair, true, ids, &config);
	dmamap_virtqueue_give(pair.queue, pair.chain.slot, 0);
	/* The driver has seen both, and the log has not. */
	ring_driver_packed(&pair.driver)[1].flags |= 1u << VRING_PACKED_DESC_F_USED;
	stop(&pair);
	for (unsigned slot = 0; slot < 8; slot++)
		if (log_state(&entries[slot]) == LOG_GIVEN)
			entries[slot].count = 8;
	assert_int_equal(dmamap_virtqueue_create(&config, &queue, &pair.why), -EPROTO);
	assert_null(queue);
	assert_string_equal(pair.why.label, "more in flight than there are entries");
}

/* Whatever is in the log, resuming stays within it. */
static void a_log_of_noise(void **state)
{
	struct random random = random_start("a_log_of_noise");

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		struct dmamap_virtqueue_config config;
		struct dmamap_virtqueue *queue;
		struct pair pair;
		int ids[4];

		leave_in_the_middle(&pair, i % 2, ids, &config);
		stop(&pair);
		for (unsigned n = (unsigned)random_below(&random, 4) + 1; n--;)
			logs[8 + random_below(&random, dmamap_virtqueue_log_size(8, i % 2) - 8)] =
				(unsigned char)random_next(&random);
		if (dmamap_virtqueue_create(&config, &queue, &pair.why))
			continue;
		dmamap_virtqueue_publish(queue);
		pair.queue = queue;
		while (dmamap_virtqueue_take(queue, &pair.chain.slot, &pair.why) == 1) {
			dmamap_virtqueue_walk(queue, &pair.chain, &pair.why);
			give_back(&pair, 0);
		}
		stop(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_is_its_parts),
		cmocka_unit_test(a_part_may_cross_regions),
		cmocka_unit_test(any_order_for_many_laps),
		cmocka_unit_test(a_lie_is_refused_and_given_back),
		cmocka_unit_test(split_chains_that_do_not_end),
		cmocka_unit_test(indirect_tables_that_cannot_be),
		cmocka_unit_test(more_parts_than_there_is_room_for),
		cmocka_unit_test(a_ring_without_sense_stops),
		cmocka_unit_test(queues_that_cannot_be),
		cmocka_unit_test(the_driver_is_told_when_it_asked),
		cmocka_unit_test(one_interrupt_a_batch),
		cmocka_unit_test(kicks_are_asked_for_and_not),
		cmocka_unit_test(a_log_goes_on),
		cmocka_unit_test(a_log_that_is_late),
		cmocka_unit_test(a_log_that_does_not_fit),
		cmocka_unit_test(a_log_of_more_than_the_ring),
		cmocka_unit_test(a_log_of_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
