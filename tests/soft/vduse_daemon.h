/* SPDX-License-Identifier: MIT */
/*
 * A small VDUSE daemon for tests: a disk in memory, one thread, requests served
 * in order. It can be told to misbehave.
 */
#ifndef DMAMAP_TESTS_SOFT_VDUSE_DAEMON_H
#define DMAMAP_TESTS_SOFT_VDUSE_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>

#include "abi/vduse.h"
#include "abi/virtio.h"
#include "tests/soft/rig.h"

#define BIT(n) (1ull << (n))
/* Of any device, and what Linux's disks offer on top. */
#define PLAIN (BIT(VIRTIO_F_ACCESS_PLATFORM) | BIT(VIRTIO_F_VERSION_1))
#define DISK                                                                                       \
	(PLAIN | BIT(VIRTIO_RING_F_INDIRECT_DESC) | BIT(VIRTIO_RING_F_EVENT_IDX) |                 \
		BIT(VIRTIO_BLK_F_SEG_MAX) | BIT(VIRTIO_BLK_F_MQ) | BIT(VIRTIO_BLK_F_FLUSH) |       \
		BIT(VIRTIO_BLK_F_DISCARD) | BIT(VIRTIO_BLK_F_WRITE_ZEROES))

#define DAEMON_QUEUES 4
#define DAEMON_MAPS   16

struct daemon_queue {
	int kick;
	bool live;
	uint16_t num, last_avail; /* of a packed ring: the place */
	union {
		struct vring_desc *desc;
		struct vring_packed_desc *packed;
	};
	union {
		struct vring_avail *avail;
		struct vring_packed_desc_event *driver;
	};
	union {
		struct vring_used *used;
		struct vring_packed_desc_event *device;
	};
	bool wrap; /* of a packed ring */
};

/* What is set before daemon_start(), by daemon_init(); the rest is its own. */
struct daemon {
	struct rig *rig;
	const char *name;
	uint64_t features;
	unsigned n_queues;
	uint16_t queue_size;
	uint64_t sectors;
	uint64_t api_version;
	uint64_t vduse_features;
	bool native; /* read(2) and write(2) of the descriptor itself */
	/* How it misbehaves, at any time: */
	atomic_bool holds;  /* takes no requests out of the rings */
	atomic_bool silent; /* reads messages, and does not answer */
	atomic_bool refuses_features;
	atomic_bool refuses_maps;
	atomic_bool lies;	   /* names a buffer that it was not given */
	_Atomic uint64_t delay_us; /* of each request */
	/* What it saw. */
	atomic_uint messages, requests, flushes, malformed;
	_Atomic uint32_t statuses; /* the last four, a byte each */
	_Atomic uint64_t readies; /* the last eight SET_VQ_READY: twice the queue, and 1 if ready */

	int control, fd, stop;
	pthread_t thread;
	bool running;
	uint8_t *disk;
	uint64_t negotiated;
	struct daemon_queue queues[DAEMON_QUEUES];
	struct {
		uint64_t first, last;
		uint8_t *at;
		void *mapped;
		size_t length;
	} maps[DAEMON_MAPS];
	unsigned n_maps;
};

/* A disk of 2 queues of 64, 4 MiB, that is not made yet. */
void daemon_init(struct daemon *daemon, struct rig *rig, const char *name);
/* Its device on the control file. */
void daemon_create(struct daemon *daemon);
/* Open it and serve; again after daemon_kill(). */
void daemon_start(struct daemon *daemon);
/* The thread ends and its descriptors are closed; the device is left as it is. */
void daemon_kill(struct daemon *daemon);
/* Killed, its device destroyed, and freed. */
void daemon_finish(struct daemon *daemon);

#endif
