/* SPDX-License-Identifier: MIT */
/*
 * The disk as a whole: VDUSE's device, its queues, and the thread that answers
 * the kernel's messages. All it needs from outside is a system, so that it is
 * the same on Linux and on the soft system of the tests.
 */
#ifndef VDUSE_BLK_DEVICE_H
#define VDUSE_BLK_DEVICE_H

#include "dmamap/vduse_client.h"
#include "inflight.h"
#include "queue.h"

/**
 * struct device_settings - What the user chose.
 * @log: path, or NULL
 * @serial: what GET_ID says; NULL: the name
 * @packed: offer packed rings
 * @patience_ms: how long to wait for a process that is letting go
 */
struct device_settings {
	const char *name;
	const char *log;
	const char *serial;
	unsigned n_queues;
	uint32_t queue_size;
	bool packed;
	bool umem;
	uint64_t poll_ns;
	uint64_t delay_ns;
	unsigned patience_ms;
	void (*say)(void *who, const char *sentence);
	void *who;
};

struct device;

/**
 * device_open() - Make the device and its queues, or take them over; nothing
 * runs yet.
 *
 * Return: 0; -1 with a complaint.
 */
int device_open(struct device **device, struct dmamap_system *system,
	const struct device_settings *settings, const struct image *image,
	struct complaint *complaint);
/** device_run() - Answer messages and serve from now on; goes on with what was
 * in flight. Return: 0; -1 with a complaint. */
int device_run(struct device *device, struct complaint *complaint);
/**
 * device_close() - Finish what is in flight and let go.
 *
 * Return: 0: the device is gone; -EBUSY: it is attached and stays, and the next
 * process of that name goes on with it.
 */
int device_close(struct device *device);

/** device_ended() - An eventfd that becomes readable when the kernel has given
 * the device up; device_broken() then says so. */
int device_ended(const struct device *device);
bool device_broken(const struct device *device);

/** device_umem() - Whether the kernel bounces through memory of this process. */
bool device_umem(const struct device *device);
unsigned device_queues(const struct device *device);
const struct queue_counters *device_counters(const struct device *device, unsigned index);
/** device_taken_over() - How many requests of the process before are done again; -1:
 * there was none. */
long device_taken_over(const struct device *device);

#endif
