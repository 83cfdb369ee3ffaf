/* SPDX-License-Identifier: MIT */
/*
 * The user's side of VDUSE: a virtio device that this process is, for a driver
 * in the kernel or behind vhost-vdpa, written once over struct dmamap_system.
 * It makes the device, answers its messages, sets its queues up and turns the
 * driver's IOVAs into addresses; what the device does is its user's business,
 * with struct dmamap_virtqueue.
 *
 * The device outlives the process. One that finds its device there takes it
 * over (dmamap_vduse_found()), and goes on from the logs of its queues.
 *
 * Threads: dmamap_vduse_interrupt() and the struct dmamap_dma from any thread;
 * the rest from one at a time. Errors: 0 or -errno, and a reason where a call
 * takes one.
 */
#ifndef DMAMAP_VDUSE_CLIENT_H
#define DMAMAP_VDUSE_CLIENT_H

#include "system.h"
#include "virtqueue.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct dmamap_vduse_config - A device.
 * @name: as in /dev/vduse/NAME
 * @device_id, @vendor_id, @features: virtio's
 * @n_queues, @queue_size: how many, and at most how large
 * @space, @space_size: its configuration space
 * @umem: let the kernel bounce through memory of this process, if it can
 * @patience_ms: how long to wait for a process that is just letting go of it
 */
struct dmamap_vduse_config {
	const char *name;
	uint32_t device_id;
	uint32_t vendor_id;
	uint64_t features;
	uint32_t n_queues;
	uint16_t queue_size;
	const void *space;
	uint32_t space_size;
	bool umem;
	unsigned patience_ms;
};

struct dmamap_vduse;

/** dmamap_vduse_check() - Whether devices can be made at all, and @name can be
 * one's: 0, or as dmamap_vduse_create() has it. */
DMAMAP_API int dmamap_vduse_check(
	struct dmamap_system *system, const char *name, struct dmamap_reason *why);

/**
 * dmamap_vduse_create() - Make the device, or take over the one of that name.
 *
 * Return: 0; -ENOENT there is no /dev/vduse/control; -EACCES; -EBUSY another
 * process has the name; -EINVAL the kernel does not take it; -ENOMEM, or as the
 * system gave it.
 */
DMAMAP_API int dmamap_vduse_create(struct dmamap_system *system,
	const struct dmamap_vduse_config *config, struct dmamap_vduse **vduse,
	struct dmamap_reason *why);
/** dmamap_vduse_close() - Let go of it; it stays, for the next process. NULL is fine. */
DMAMAP_API void dmamap_vduse_close(struct dmamap_vduse *vduse);
/**
 * dmamap_vduse_destroy() - Let go of it, and remove it.
 *
 * Return: 0; -EBUSY it is attached to a driver, and so it stays.
 */
DMAMAP_API int dmamap_vduse_destroy(struct dmamap_vduse *vduse);

/** dmamap_vduse_found() - Whether the device was there before. */
DMAMAP_API bool dmamap_vduse_found(const struct dmamap_vduse *vduse);
/** dmamap_vduse_fd() - Readable when there is a message; stays the client's. */
DMAMAP_API int dmamap_vduse_fd(const struct dmamap_vduse *vduse);
/** dmamap_vduse_features() - What the driver took of the features, so far. */
DMAMAP_API int dmamap_vduse_features(struct dmamap_vduse *vduse, uint64_t *features);

/* ---------------------------------------------------------------- messages */

/** enum dmamap_vduse_type - What the kernel wants. */
enum dmamap_vduse_type {
	DMAMAP_VDUSE_QUEUE_STATE, /**< where has @queue got to: set @available, @used */
	DMAMAP_VDUSE_STATUS,	  /**< the device's status is to be @status */
	DMAMAP_VDUSE_IOTLB,	  /**< IOVAs @first to @last mean something else now */
	DMAMAP_VDUSE_UNKNOWN,	  /**< nothing that was negotiated: only a refusal fits */
};

/**
 * struct dmamap_vduse_message - One message.
 * @available, @used: places as in struct dmamap_virtqueue_config
 */
struct dmamap_vduse_message {
	enum dmamap_vduse_type type;
	uint32_t id;
	uint32_t queue;
	uint8_t status;
	uint64_t first;
	uint64_t last;
	uint16_t available;
	uint16_t used;
};

/**
 * dmamap_vduse_decode() - Make a message of bytes that were read.
 * @n_queues: a message about another queue is DMAMAP_VDUSE_UNKNOWN
 *
 * Return: 0; -EBADMSG too short to be one.
 */
DMAMAP_API int dmamap_vduse_decode(
	const void *bytes, size_t size, uint32_t n_queues, struct dmamap_vduse_message *message);

/** dmamap_vduse_receive() - Read a message, and wait for it.
 *
 * Return: 0; -EAGAIN there was none after all; -errno. */
DMAMAP_API int dmamap_vduse_receive(
	struct dmamap_vduse *vduse, struct dmamap_vduse_message *message);
/** dmamap_vduse_reply() - Answer a message: done, or refused.
 *
 * Return: 0; -ENOENT the kernel has stopped waiting; -errno. */
DMAMAP_API int dmamap_vduse_reply(
	struct dmamap_vduse *vduse, const struct dmamap_vduse_message *message, bool done);

/* ------------------------------------------------------------------ queues */

/**
 * dmamap_vduse_queue() - What the driver has made of a queue.
 * @config: out: size, areas, places, kind, and the client as @dma; the log is
 *	left alone
 *
 * Return: 1; 0 the driver has not made it ready; -errno.
 */
DMAMAP_API int dmamap_vduse_queue(
	struct dmamap_vduse *vduse, uint32_t index, struct dmamap_virtqueue_config *config);
/** dmamap_vduse_kick() - Which eventfd tells of the driver's kicks; -1: none. */
DMAMAP_API int dmamap_vduse_kick(struct dmamap_vduse *vduse, uint32_t index, int eventfd);
/** dmamap_vduse_interrupt() - Interrupt the driver.
 *
 * Return: 0; -EINVAL the driver is not, or not yet, at work. */
DMAMAP_API int dmamap_vduse_interrupt(struct dmamap_vduse *vduse, uint32_t index);

/* ------------------------------------------------------------------ memory */

/** dmamap_vduse_forget() - What is known of these IOVAs holds no more. No
 * queue may be in use: each must dmamap_virtqueue_remap(), or be created anew. */
DMAMAP_API void dmamap_vduse_forget(struct dmamap_vduse *vduse, uint64_t first, uint64_t last);

/**
 * dmamap_vduse_umem() - This process's memory that the kernel bounces through,
 * once it does.
 * @generation: changes whenever there is another one; 0: none
 */
DMAMAP_API void dmamap_vduse_umem(
	struct dmamap_vduse *vduse, struct iovec *memory, unsigned *generation);
/** dmamap_vduse_umem_generation() - That alone, from any thread, at no cost. */
DMAMAP_API unsigned dmamap_vduse_umem_generation(struct dmamap_vduse *vduse);

#ifdef __cplusplus
}
#endif

#endif
