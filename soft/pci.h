/* SPDX-License-Identifier: MIT */
/*
 * What the files of a PCI function share: its config space (pci_config.c), its
 * BARs (pci_bar.c), interrupts (irq.c), features (feature.c), and resets
 * (pci_reset.c). Each function has its own copy, made with the system, and all
 * of it is guarded by the device's lock, but for the eventfds that are listened
 * to, which have one of their own below it.
 */
#ifndef DMAMAP_SOFT_PCI_H
#define DMAMAP_SOFT_PCI_H

#include "abi/vfio.h"
#include "soft/soft.h"

#define SOFT_END_OF(type, field) (offsetof(struct type, field) + sizeof(((struct type *)0)->field))

/* A region is named by the bits from 40 on of the file's offset. */
#define SOFT_REGION_SHIFT 40
#define SOFT_REGION_MASK  ((1ULL << SOFT_REGION_SHIFT) - 1)

/* ---------------------------------------------------------- config space */

#define SOFT_CONFIG_LARGEST 4096

/* Where every ROM BAR is. */
#define SOFT_ROM_ADDRESS 0xfeb00000u

enum soft_power { SOFT_POWER_D0, SOFT_POWER_D3 = 3 };

/*
 * Config space is there twice: what the hardware has, and what is shown. A read
 * takes each bit from either; a write changes each bit in either, or in none.
 */
struct soft_config {
	unsigned size;
	uint8_t hardware[SOFT_CONFIG_LARGEST];
	uint8_t wired[SOFT_CONFIG_LARGEST]; /* bits that the hardware lets change */
	uint8_t shown[SOFT_CONFIG_LARGEST];
	uint8_t virtual[SOFT_CONFIG_LARGEST]; /* bits that are read from and written to shown */
	uint8_t user[SOFT_CONFIG_LARGEST];    /* bits that a user may write */
	uint8_t owner[SOFT_CONFIG_LARGEST];   /* the capability that a byte is part of */
	unsigned msix;			      /* where that capability is; 0: there is none */
	bool bars_written;		      /* shown BARs are to be cut to what a BAR can hold */
	enum soft_power power;
};

/* Where the MSI-X table is; vectors 0: there is none. */
struct soft_msix {
	unsigned vectors;
	unsigned bar;
	uint64_t first, end;
};

/* As it is when a device is opened. */
void soft_config_open(struct soft_device *device);
ssize_t soft_config_access(
	struct soft_device *device, void *buffer, size_t size, uint64_t at, bool write);
/* What the hardware has, as sysfs shows it: its size. */
int soft_config_copy(struct soft_device *device, void *to, size_t size);
/* The memory enable bit is set and the function is awake. */
bool soft_config_memory_on(const struct soft_device *device);
bool soft_config_io_on(const struct soft_device *device);
/* INTx is disabled by the command register. */
bool soft_config_intx_off(const struct soft_device *device);
/* Into power state D0. */
void soft_config_wake(struct soft_device *device);
void soft_config_msix_enable(struct soft_device *device, bool on);
/* DMAMAP_BAR_*, with what follows from a BAR's size and address. */
unsigned soft_bar_flags(const struct dmamap_machine_device *is, unsigned bar);
/* Decoding of memory may have changed: tell those who map BARs. */
void soft_pci_memory_changed(struct soft_device *device);
/* The function is reset, and its config space restored. */
void soft_pci_reset(struct soft_device *device);

/* --------------------------------------------- eventfds that are listened to */

struct soft_listener;
struct soft_source;

/* One thread a function, while there is something to listen to. */
struct soft_listeners {
	pthread_mutex_t lock; /* leaf: held over heard() */
	pthread_t thread;
	pid_t process;		     /* that has the thread */
	bool running;		     /* by the device's lock */
	int epoll, stop;	     /* by the device's lock; -1: not open */
	struct soft_source *sources; /* lock */
	uint64_t last_key;	     /* lock */
};

void soft_listeners_init(struct soft_listeners *listeners);
/* Call @heard each time that @fd, an eventfd of the caller's, is signalled. */
int soft_listener_add(struct soft_listeners *listeners, int fd, void (*heard)(void *who), void *who,
	struct soft_listener **listener);
/* heard() runs no more when this returns. NULL is fine. */
void soft_listener_remove(struct soft_listeners *listeners, struct soft_listener *listener);
/* Nobody listens any more; the thread ends. */
void soft_listeners_stop(struct soft_listeners *listeners);

/* A descriptor of our own for the eventfd behind @fd; -EBADF, -EINVAL. */
int soft_eventfd_get(int fd, const char *what);
void soft_eventfd_signal(int fd);
void soft_eventfd_put(int *fd);

/* -------------------------------------------------------------- interrupts */

struct soft_irqs {
	unsigned type;	    /* VFIO_PCI_*_IRQ_INDEX; VFIO_PCI_NUM_IRQS: none is enabled */
	int *triggers;	    /* eventfds by vector, -1: none; as many as the function has */
	unsigned n;	    /* of triggers */
	unsigned allocated; /* MSI vectors; MSI-X takes more when they are asked for */
	unsigned msi_most;  /* log2 of the vectors that MSI was last enabled with */
	int error, request;
	struct soft_listener *unmask;
};

int soft_irqs_init(struct soft_device *device);
void soft_irqs_fini(struct soft_device *device);
void soft_irqs_close(struct soft_device *device);
int soft_irq_info(struct soft_device *device, void *argument);
int soft_irq_set(struct soft_device *device, void *argument);

/* -------------------------------------------------------- BARs and the rest */

struct soft_ioeventfd;

struct soft_pci {
	struct soft_config config;
	struct soft_msix msix;
	struct soft_irqs irqs;
	struct soft_listeners listeners;
	atomic_bool decoding; /* soft_config_memory_on(), for who holds no lock */
	struct soft_ioeventfd *ioeventfds;
	unsigned n_ioeventfds;
	bool low_power; /* VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY */
	int wakeup;	/* its eventfd; -1: none */
};

ssize_t soft_bar_access(struct soft_device *device, unsigned region, void *buffer, size_t size,
	uint64_t at, bool write);
int soft_ioeventfd(struct soft_device *device, void *argument);
void soft_ioeventfds_close(struct soft_device *device);

int soft_feature(struct soft_device *device, void *argument);
/* A user is back: low power ends if somebody wants to know. */
void soft_power_resume(struct soft_device *device);
void soft_power_exit(struct soft_device *device);

int soft_reset_ioctl(struct soft_device *device);
int soft_hot_reset_info(struct soft_device *device, void *argument);
int soft_hot_reset(struct soft_device *device, void *argument);

#endif
