/* SPDX-License-Identifier: MIT */
/*
 * VDUSE's objects: devices that a daemon makes on /dev/vduse/control and serves
 * through /dev/vduse/NAME, and the driver that one is attached to
 * (drivers/vdpa/vdpa_user/vduse_dev.c in Linux 7.3; functions are named in
 * comments where their rules are).
 *
 *	vduse.c			the control file: devices come and go
 *	vduse_device.c		the device's file: its requests
 *	vduse_messages.c	what driver and daemon say to each other
 *	vduse_memory.c		address spaces: what the daemon may map
 *	vduse_driver.c		the other side: what a vDPA bus driver calls, which
 *				virtio_blk.c and vhost.c are
 *	vduse_sysfs.c		/sys/class/vduse/NAME
 *
 * Locks, in the order in which they are taken:
 *
 *	vduse.lock	which devices there are, who has one open or attached;
 *			held by the control file's requests, as the kernel does
 *	memory_lock	a device's address spaces and umem
 *	state_lock	read: interrupts are being given; write: reset, suspend
 *	queue.lock, queue.irq_lock, message_lock, config_lock: nothing below
 *			but a system call, and the driver's callback under irq_lock
 */
#ifndef DMAMAP_SOFT_VDUSE_H
#define DMAMAP_SOFT_VDUSE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "abi/vduse.h"
#include "abi/virtio.h"
#include "dmamap/bounce.h"
#include "soft/soft.h"

#define VDUSE_BOUNCE_LEAST (1ull << 20)
#define VDUSE_BOUNCE_MOST  (1ull << 30)
#define VDUSE_TIMEOUT	   30 /* seconds */

/* On the stack of whoever waits for its answer. */
struct soft_vduse_message {
	TAILQ_ENTRY(soft_vduse_message) entry; /* message_lock, as all of it once it is sent */
	struct vduse_dev_request request;
	struct vduse_dev_response response;
	uint64_t offered; /* it is in the socket, in this order; 0: it is not */
	bool completed;
};
TAILQ_HEAD(soft_vduse_messages, soft_vduse_message);

/* Told when the daemon interrupts. */
struct soft_vduse_callback {
	void (*call)(void *who);
	void *who;
};

struct soft_vduse_queue {
	pthread_mutex_t lock;
	int kickfd;   /* lock; -1: none */
	bool kicked;  /* lock: before there was one */
	uint16_t max; /* lock: VQ_SETUP; 0: not set up */
	_Atomic uint32_t group;
	struct vduse_vq_info is; /* lock: where the driver put it; ready is not used */
	atomic_bool ready;
	pthread_mutex_t irq_lock;
	struct soft_vduse_callback callback; /* irq_lock */
	int trigger;	    /* irq_lock: an eventfd instead, of vhost-vdpa's; or -1 */
	cpu_set_t affinity; /* irq_lock: irq_cb_affinity */
};

/* A range of the driver's own memory, as vhost-vdpa maps it. */
struct soft_vduse_map {
	uint64_t first, last;
	uint64_t offset;
	uint8_t perm;
	int fd;
};

/* memory_lock guards all of it; a driver's maps use the domain, which stays while attached. */
struct soft_vduse_space {
	struct dmamap_bounce *bounce;
	struct soft_vduse_map *maps; /* ranges beside those of the domain; they stay over a reset */
	size_t n_maps;
	bool umem;	     /* registered */
	uint64_t umem_pages; /* charged */
	struct soft_process *umem_process;
};

/* The daemon's open file: one end of a pair of sockets; the other is ours. */
struct soft_vduse_file {
	struct soft_file file;
	struct soft_vduse_device *device; /* with a reference */
	int fd;				  /* the daemon's end, its number */
};

struct soft_vduse_driver;

struct soft_vduse_device {
	struct soft_vduse_device *next; /* vduse.lock */
	atomic_uint refs;
	struct soft_system *system;
	uint64_t key;
	char name[VDUSE_NAME_MAX];
	char node[VDUSE_NAME_MAX]; /* in /dev/vduse */
	uint64_t api_version;
	uint64_t vduse_features;
	uint64_t features; /* offered */
	uint32_t device_id, vendor_id;
	uint32_t vq_align;
	uint32_t n_queues, n_groups, n_spaces;
	bool connected;			  /* vduse.lock: somebody has it open */
	struct soft_vduse_driver *driver; /* vduse.lock: attached */
	atomic_bool gone;		  /* destroyed */
	struct soft_vduse_queue *queues;
	_Atomic uint32_t *group_space; /* by group: which space it is in */

	pthread_mutex_t config_lock;
	void *config; /* config_lock */
	uint32_t config_size;

	pthread_mutex_t memory_lock;
	struct soft_vduse_space *spaces;
	uint64_t bounce_size; /* memory_lock: of all spaces together */

	pthread_mutex_t message_lock;
	pthread_cond_t answered;	      /* a message was completed */
	struct soft_vduse_messages to_read;   /* message_lock */
	struct soft_vduse_messages to_answer; /* message_lock */
	uint32_t message_id;		      /* message_lock */
	uint64_t last_offered;		      /* message_lock */
	unsigned message_cost;		      /* message_lock: of one in the socket, in bytes */
	int link;			      /* message_lock: our end; -1: nobody has it open */
	_Atomic uint64_t timeout_ms;	      /* 0: none */
	atomic_bool broken;

	pthread_rwlock_t state_lock;
	struct soft_vduse_callback config_callback; /* state_lock, to write; reset takes it away */
	bool suspended;				    /* state_lock */
	_Atomic uint8_t status;
	_Atomic uint64_t driver_features;
	atomic_uint generation;
};

void soft_vduse_init(struct soft_vduse *vduse);
/* All files are closed. */
void soft_vduse_fini(struct soft_system *system);
/* A file below /dev/vduse; -ENOENT. */
int soft_vduse_open(struct soft_system *system, const char *name, int flags);
/* Lock held. */
struct soft_vduse_device *soft_vduse_find(struct soft_vduse *vduse, const char *name);
void soft_vduse_put(struct soft_vduse_device *device);

/* /sys/class/vduse/NAME/ATTRIBUTE, from NAME on; -ENOENT. */
int soft_vduse_sysfs_open(struct soft_system *system, const char *rest);
/* How many processors masks are of; all of them. */
unsigned soft_vduse_cpus(void);
void soft_vduse_cpus_all(cpu_set_t *mask);
/* The @index-th name in /sys/class/vduse, "" past the end; false: another folder. */
bool soft_vduse_list(
	struct soft_system *system, const char *path, unsigned index, char name[VDUSE_NAME_MAX]);

/* soft/vduse_device.c. Its descriptor is to be installed without the lock. vduse.lock held. */
int soft_vduse_device_open(
	struct soft_vduse_device *device, int flags, struct soft_vduse_file **opened);
/* What hangs up when nobody has the daemon's end of an open device; -ENOTSUP: another file. */
int soft_vduse_watch(struct dmamap_system *system, int fd);
/* Whether the device that is open there broke. */
bool soft_vduse_fd_broken(struct dmamap_system *system, int fd);
/* Back to how it was made, but for umem and the queues' sizes. */
void soft_vduse_device_reset(struct soft_vduse_device *device);

/* soft/vduse_messages.c. A new daemon; its end, or -errno. vduse.lock held. */
int soft_vduse_connect(struct soft_vduse_device *device);
/* It is gone: what it has not answered is for the next one. vduse.lock held. */
void soft_vduse_disconnect(struct soft_vduse_device *device);
/* If nobody has the daemon's end any more, it is gone. vduse.lock held. */
void soft_vduse_notice(struct soft_vduse_device *device);
/* Ask, and wait for the answer: 0, or -EIO. */
int soft_vduse_ask(struct soft_vduse_device *device, struct soft_vduse_message *message);
void soft_vduse_break(struct soft_vduse_device *device);
ssize_t soft_vduse_read(struct soft_vduse_file *file, void *buffer, size_t size);
ssize_t soft_vduse_write(struct soft_vduse_file *file, const void *buffer, size_t size);
void soft_vduse_listen_stop(struct soft_vduse *vduse);

/* soft/vduse_memory.c. */
int soft_vduse_spaces_create(
	struct soft_vduse_device *device, const struct dmamap_bounce_config *config);
void soft_vduse_spaces_destroy(struct soft_vduse_device *device);
int soft_vduse_iotlb_fd(struct soft_vduse_device *device, void *argument);
int soft_vduse_iotlb_fd2(struct soft_vduse_device *device, void *argument);
int soft_vduse_iotlb_info(struct soft_vduse_device *device, void *argument);
int soft_vduse_umem_register(struct soft_vduse_device *device, void *argument);
int soft_vduse_umem_deregister(struct soft_vduse_device *device, void *argument);
/* All that is registered goes with the daemon. */
void soft_vduse_umem_drop(struct soft_vduse_device *device);

/*
 * soft/vduse_driver.c: what a bus driver (virtio-vdpa, vhost-vdpa) calls, each as
 * the operation of that name in struct vdpa_config_ops. @queue and @group are
 * ones that the device has.
 */
struct soft_vduse_driver {
	struct soft_vduse_device *device; /* with a reference */
	unsigned as_kernel;		  /* DMAMAP_KERNEL(); 0: what is right */
	atomic_bool bound;		  /* a virtio driver has it */
};

struct dmamap_vdpa;
struct soft_vduse_driver *soft_vduse_driver_from(struct dmamap_vdpa *vdpa);

uint8_t soft_vduse_get_status(struct soft_vduse_driver *driver);
void soft_vduse_set_status(struct soft_vduse_driver *driver, uint8_t status);
int soft_vduse_reset(struct soft_vduse_driver *driver);
int soft_vduse_suspend(struct soft_vduse_driver *driver);
void soft_vduse_set_features(struct soft_vduse_driver *driver, uint64_t features);
void soft_vduse_get_config(
	struct soft_vduse_driver *driver, uint32_t offset, void *to, uint32_t size);
void soft_vduse_set_config_callback(
	struct soft_vduse_driver *driver, const struct soft_vduse_callback *callback);
uint16_t soft_vduse_queue_size(struct soft_vduse_driver *driver, unsigned queue);
void soft_vduse_set_queue(struct soft_vduse_driver *driver, unsigned queue, uint32_t num,
	uint64_t desc, uint64_t avail, uint64_t used);
/* irq_cb_affinity, as the driver spreads its queues. */
void soft_vduse_set_queue_affinity(
	struct soft_vduse_driver *driver, unsigned queue, const cpu_set_t *mask);
/* @trigger: an eventfd that is signalled in the callback's place, or -1. */
void soft_vduse_set_queue_callback(struct soft_vduse_driver *driver, unsigned queue,
	const struct soft_vduse_callback *callback, int trigger);
/* The @split or @packed of the state, as the negotiated features say. */
void soft_vduse_set_queue_state(
	struct soft_vduse_driver *driver, unsigned queue, const struct vduse_vq_state *state);
int soft_vduse_get_queue_state(
	struct soft_vduse_driver *driver, unsigned queue, struct vduse_vq_state *state);
void soft_vduse_set_queue_ready(struct soft_vduse_driver *driver, unsigned queue, bool ready);
bool soft_vduse_get_queue_ready(struct soft_vduse_driver *driver, unsigned queue);
void soft_vduse_kick(struct soft_vduse_driver *driver, unsigned queue);
int soft_vduse_set_group_space(struct soft_vduse_driver *driver, unsigned group, uint32_t space);
/* All that the space maps, @n sorted ranges that do not overlap; their files are duplicated. */
int soft_vduse_set_map(struct soft_vduse_driver *driver, uint32_t space,
	const struct soft_vduse_map *maps, size_t n);
/* Where a queue's memory is mapped. */
struct dmamap_bounce *soft_vduse_queue_bounce(struct soft_vduse_driver *driver, unsigned queue);

#endif
