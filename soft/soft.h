/* SPDX-License-Identifier: MIT */
/*
 * The kernel objects of the soft system and who may touch what.
 *
 * Every object has one lock, named beside the fields that it guards. A thread
 * that needs several takes them in this order, and leaves some out:
 *
 *	group -> device -> container
 *	                -> iommufd.attach -> ioas -> iommufd.objects
 *	                -> the device's listeners (soft/pci.h)
 *	system.spaces -> the engine's space -> vmas -> files
 *	                                    -> proc
 *	                                    -> dmabufs
 *	                                    -> pins
 *	                                    -> kept_files
 *	                                    -> a file's memory -> vmas
 *
 * Of several IOASes' locks the lowest id's comes first.
 *
 * A container's or an IOAS's lock is held over calls of the engine; the
 * system's list of spaces only over the engine's counters. The locks at the
 * end are held for a few instructions or one system call, and nothing is taken
 * below them.
 *
 * Objects live by reference: a file is released when the last of its
 * descriptor, the objects that use it and its memory mappings is gone, as in
 * the kernel. Machines' groups and devices live as long as the system.
 */
#ifndef DMAMAP_SOFT_SOFT_H
#define DMAMAP_SOFT_SOFT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "dmamap/soft.h"
#include "soft/account.h"
#include "soft/pins.h"
#include "soft/reason.h"

struct soft_system;
struct soft_group;
struct soft_device;
struct soft_container;
struct soft_iommufd;
struct soft_hwpt;
struct soft_binding;

/* ------------------------------------------------------- user's pointers */

/* Copy from and to a caller's address; -EFAULT with a reason instead of a crash. */
int soft_copy_in(void *to, const void *user, size_t size, const char *what);
/* The safe way, whatever the address: for what may be more than the caller has there. */
int soft_copy_in_far(void *to, const void *user, size_t size, const char *what);
int soft_copy_out(void *user, const void *from, size_t size, const char *what);
/* A NUL-terminated string of less than @size bytes. */
int soft_copy_string(char *to, const char *user, size_t size, const char *what);
/* The rule for structures that grow: @given bytes are there, we know @known. */
int soft_copy_struct(void *to, size_t known, const void *user, size_t given, const char *what);

/* ------------------------------------------------------------------ files */

struct soft_file;

struct soft_file_ops {
	const char *name;
	int (*ioctl)(struct soft_file *file, unsigned request, void *argument);
	ssize_t (*access)(
		struct soft_file *file, void *buffer, size_t size, uint64_t offset, bool write);
	int (*mmap)(struct soft_file *file, void *address, size_t length, int prot, int flags,
		uint64_t offset, void **out);
	void (*release)(struct soft_file *file);
};

struct soft_file {
	const struct soft_file_ops *ops;
	struct soft_system *system;
	atomic_uint refs;
	_Atomic uint64_t position; /* of read(2) */
	_Atomic int mode;	   /* O_RDONLY, O_WRONLY, O_RDWR: how it was opened */
};

void soft_file_init(
	struct soft_file *file, const struct soft_file_ops *ops, struct soft_system *system);
/* Gives the file a descriptor, which owns the caller's reference; the number or -errno. */
int soft_file_install(struct soft_file *file, const char *name);
/* The same with a descriptor that there is; it is closed when that fails. */
int soft_file_install_as(struct soft_file *file, int fd, const char *name);
/* The file behind a descriptor, with a reference; NULL: not one of this system. */
struct soft_file *soft_file_find(struct soft_system *system, int fd);
void soft_file_get(struct soft_file *file);
/* For who has no reference; false: the last one is gone. */
bool soft_file_try_get(struct soft_file *file);
void soft_file_put(struct soft_file *file);
int soft_file_close(struct soft_system *system, int fd);
/* -EBADF or -EBADFD, for a descriptor that soft_file_find() did not know. */
int soft_file_unknown(int fd, const char *wanted);
void soft_files_close_all(struct soft_system *system);

struct soft_files {
	pthread_mutex_t lock;
	struct soft_file **by_fd; /* lock */
	size_t n;		  /* lock */
};

/* ----------------------------------------------------------------- spaces */

/* An engine space that the system's counters know of. */
struct soft_space {
	struct dmamap_space *space;
	struct soft_system *system;
	struct soft_space *next, *previous; /* system->spaces_lock */
};

int soft_space_init(struct soft_space *space, struct soft_system *system, uint64_t area_limit);
void soft_space_fini(struct soft_space *space);
/* A page table of the machine's shape, filled with what is mapped. */
int soft_space_table(struct soft_space *space, const struct dmamap_machine_iommu *iommu,
	bool small_pages_only, struct dmamap_table **table);
/* The page sizes of such a table, and the smallest: the machine's page, or a part of it. */
uint64_t soft_space_granule(
	const struct soft_space *space, const struct dmamap_machine_iommu *iommu);
uint64_t soft_space_leaf_sizes(const struct soft_space *space,
	const struct dmamap_machine_iommu *iommu, bool small_pages_only);
/* Reserve what a device cannot reach: its windows; what is outside the aperture. */
int soft_space_reserve_windows(
	struct soft_space *space, const struct dmamap_machine_iommu *iommu, const void *owner);
int soft_space_reserve_aperture(
	struct soft_space *space, const struct dmamap_machine_iommu *iommu, const void *owner);
/* All usable ranges, to be freed; *n of them. */
int soft_space_ranges(struct soft_space *space, struct dmamap_range **ranges, size_t *n);
int soft_counters(struct soft_system *system, struct dmamap_counters *counters);

/* ----------------------------------------------------------------- memory */

enum soft_memory_kind { SOFT_MEMORY_PROCESS, SOFT_MEMORY_FILE, SOFT_MEMORY_DMABUF };

/* Every memory that the soft system maps is one of these. */
struct soft_memory {
	struct dmamap_memory base;
	enum soft_memory_kind kind;
	unsigned phase;	 /* bytes into its first page */
	uint64_t origin; /* address, or place in the file: IOVA allocation keeps its alignment */
	struct soft_pins *pins; /* what IOMMUFD pins of it; NULL: type1's */
};

/* This process's memory as IOMMUFD pins it: no BARs. */
int soft_memory_process(struct soft_system *system, uint64_t va, uint64_t length, unsigned prot,
	struct dmamap_memory **memory);
int soft_memory_file(struct soft_system *system, int fd, uint64_t start, uint64_t length,
	unsigned prot, struct dmamap_memory **memory);
/* 0 with *memory NULL: the descriptor is no dma-buf. */
int soft_memory_dmabuf(struct soft_iommufd *iommufd, int fd, uint64_t start, uint64_t length,
	unsigned prot, struct dmamap_memory **memory);
/* Whether a dma-buf's mappings have been taken away: it maps nothing any more. */
bool soft_memory_revoked(const struct soft_memory *memory);

struct soft_kept_file;

/* Files that memory is mapped of, each kept open once (soft/file_memory.c). */
struct soft_kept_files {
	pthread_mutex_t lock;
	struct soft_kept_file *first; /* lock */
};

/* What one range of process memory is: present, and in pages of one kind. */
struct soft_extent {
	uint64_t last;
	unsigned contiguous;
};

/* Make the process's pages from @va on present and say how far they are alike, at most to @last. */
int soft_pages_populate(struct soft_system *system, uint64_t va, uint64_t last, bool write,
	struct soft_extent *extent, struct dmamap_reason *why);

/* Descriptors for the kernel's view of this process; the child of a fork opens its own. */
struct soft_proc {
	pthread_mutex_t lock;
	pid_t pid;	   /* lock */
	int maps, pagemap; /* lock; -1: not open */
	atomic_bool plain; /* do without the two ioctls, as on kernels that lack them */
	/* lock: the device that was asked about last, and whether its files are written back */
	uint64_t device;
	bool device_known, device_writes_back;
};

void soft_proc_init(struct soft_proc *proc);
void soft_proc_fini(struct soft_proc *proc);

/* mmap at an address that is congruent to @phase modulo @alignment, a power of two. */
int soft_map_aligned(int fd, uint64_t offset, uint64_t length, int prot, uint64_t alignment,
	uint64_t phase, void **out);

/*
 * A file that has the memory at @address, and where in it, for another process;
 * -1: there is none. *@starts: at least the first byte can be written.
 */
int soft_share_memory(uint64_t address, uint64_t size, uint64_t *offset, bool *starts);

/* ------------------------------------- what this process mapped and declared */

struct soft_vma {
	uint64_t first, last;
	struct soft_device *device; /* a BAR; NULL: declared memory */
	unsigned bar;
	uint64_t offset; /* in the BAR, at @first */
	unsigned prot;	 /* PROT_* */
	unsigned page_shift;
	struct soft_file *file;	 /* the open device, kept open by its mapping */
	uint64_t st_dev, st_ino; /* the declared file; 0: none */
};

/* Sorted by address; ranges never overlap. */
struct soft_vmas {
	pthread_mutex_t lock;
	struct soft_vma *entries; /* lock */
	size_t n, room;		  /* lock */
};

int soft_vmas_init(struct soft_vmas *vmas);
void soft_vmas_fini(struct soft_vmas *vmas);
/* The mapping at @va; false: none, and *next is where the next one starts (or UINT64_MAX). */
bool soft_vma_find(struct soft_vmas *vmas, uint64_t va, struct soft_vma *vma, uint64_t *next);
/* The page size that a file was declared with; 0: it was not. */
unsigned soft_vma_declared_file(struct soft_vmas *vmas, uint64_t st_dev, uint64_t st_ino);
int soft_vma_declare(struct soft_vmas *vmas, const struct soft_vma *vma);
void soft_vma_undeclare(struct soft_vmas *vmas, uint64_t va);
/* mmap of a BAR's file and its entry, together; the entry takes a reference of vma->file. */
int soft_vma_mmap(struct soft_vmas *vmas, struct soft_vma *vma, void *address, size_t length,
	int prot, int flags, int fd, void **out);
int soft_vma_munmap(struct soft_vmas *vmas, void *address, size_t length);

/* --------------------------------------------------- groups and containers */

struct soft_group {
	struct soft_system *system;
	unsigned number;
	pthread_mutex_t lock;
	struct soft_file *opened;	  /* lock; no reference: its release clears it */
	struct soft_container *container; /* lock; with a reference */
	struct soft_iommufd *iommufd;	  /* lock; with a reference */
	unsigned container_users;	  /* lock: 1 while set, and one for each open device */
	unsigned cdev_open;		  /* lock: devices bound through their cdev */
	/* Guarded by the owning IOMMUFD's attach lock: */
	struct soft_hwpt *hwpt;	   /* what the group's devices are attached to */
	unsigned attached;	   /* how many of them */
	struct soft_pasid *pasids; /* what is attached for PASIDs */
	/* Guarded by the lock: */
	const void *dma_owner; /* a container's group, or an IOMMUFD */
	unsigned dma_owners;
};

int soft_group_open(struct soft_group *group);
struct soft_group *soft_group_from(struct soft_file *file);
/* A user takes the group's DMA: -EPERM when another has it. Group lock held. */
int soft_group_claim(struct soft_group *group, const void *owner);
void soft_group_unclaim(struct soft_group *group);

struct soft_type1;

struct soft_container {
	struct soft_file file;
	pthread_mutex_t lock;
	struct soft_group **groups; /* lock */
	size_t n_groups;	    /* lock */
	struct soft_type1 *type1;   /* lock */
};

int soft_container_open(struct soft_system *system);
struct soft_container *soft_container_from(struct soft_file *file);
int soft_container_attach(struct soft_container *container, struct soft_group *group);
/* Drops the group's reference too. */
void soft_container_detach(struct soft_container *container, struct soft_group *group);
bool soft_container_ready(struct soft_container *container);
/* As a device of the group, which the container has, reaches memory. */
int soft_container_access(struct soft_container *container, const struct soft_group *group,
	struct dmamap_access **access);

/* Type1 is used under its container's lock. */
int soft_type1_create(struct soft_system *system, unsigned long type, struct soft_type1 **type1);
void soft_type1_destroy(struct soft_type1 *type1);
/* @type1 is NULL before SET_IOMMU. */
int soft_type1_extension(
	const struct soft_system *system, const struct soft_type1 *type1, unsigned long extension);
int soft_type1_ioctl(struct soft_type1 *type1, unsigned request, void *argument);
int soft_type1_attach(struct soft_type1 *type1, struct soft_group *group);
/* The last one takes all mappings with it. */
void soft_type1_detach(struct soft_type1 *type1, struct soft_group *group);
int soft_type1_access(
	struct soft_type1 *type1, const struct soft_group *group, struct dmamap_access **access);

/* ---------------------------------------------------------------- devices */

struct soft_pci;

struct soft_bar {
	int fd;
	void *host; /* the whole BAR, mapped once in this process */
	uint64_t size;
	uint64_t address;
};

struct soft_device {
	struct dmamap_machine_device is;
	struct soft_system *system;
	struct soft_group *group;
	struct soft_bar bars[DMAMAP_MACHINE_BARS];
	pthread_mutex_t lock;
	unsigned open_count;	      /* lock */
	struct soft_file *group_file; /* lock: held while open through a container */
	struct soft_binding *binding; /* lock: while open through an IOMMUFD */
	bool cdev_open;		      /* lock: that is through its cdev */
	bool attached;		      /* lock */
	struct soft_pci *pci;	      /* lock; soft/pci.h */
	atomic_bool memory_on;	      /* its BARs can be reached by who maps them */
	struct soft_dmabuf *dmabufs;  /* system->dmabufs_lock */
};

struct soft_device_file {
	struct soft_file file;
	struct soft_device *device;
	bool by_group;
	struct soft_iommufd *iommufd; /* device->lock; with a reference */
	atomic_bool granted;
};

int soft_device_init(struct soft_device *device, struct soft_system *system,
	const struct dmamap_machine_device *is, struct soft_group *group);
void soft_device_fini(struct soft_device *device);
const struct dmamap_machine_iommu *soft_device_iommu(const struct soft_device *device);
int soft_device_open_cdev(struct soft_device *device);
int soft_device_open_group(struct soft_device *device);
struct soft_device_file *soft_device_file_from(struct soft_file *file);

/* Whether @name is the device's: 1, 0, or -EINVAL for what follows its address there. */
int soft_device_match(const struct soft_device *device, const char *name);

/* soft/pci.c: regions, config space, interrupts. First open and last close hold the lock. */
int soft_pci_init(struct soft_device *device);
void soft_pci_fini(struct soft_device *device);
void soft_pci_open(struct soft_device *device);
void soft_pci_close(struct soft_device *device);
/* Decoding of memory is on, in low power too. */
bool soft_pci_decodes(const struct soft_device *device);
int soft_pci_ioctl(struct soft_device *device, unsigned request, void *argument);
ssize_t soft_pci_access(
	struct soft_device *device, void *buffer, size_t size, uint64_t offset, bool write);
int soft_pci_mmap(struct soft_device *device, struct soft_file *file, void *address, size_t length,
	int prot, int flags, uint64_t offset, void **out);
/* Whether a BAR can be mapped, and how many bytes. */
uint64_t soft_pci_bar_mappable(const struct soft_device *device, unsigned bar);

/* --------------------------------------------------------------- dma-bufs */

struct soft_dmabuf;
struct vfio_region_dma_range;

/*
 * A dma-buf of @n ranges of a BAR, at least one, in a descriptor of its own: the
 * number, or -EINVAL and -EOVERFLOW for ranges that cannot be. It starts revoked
 * while memory decoding is off. The device's lock is held for these three.
 */
int soft_dmabuf_create(struct soft_device *device, unsigned bar,
	const struct vfio_region_dma_range *ranges, size_t n, unsigned open_flags);
/* Memory decoding went off (revoked: IOMMUFD mappings end here) or came back on. */
void soft_dmabuf_move(struct soft_device *device, bool revoked);
/* The device's last user closes it: its dma-bufs stay revoked for ever. */
void soft_dmabuf_cleanup(struct soft_device *device);

/* ---------------------------------------------------------------- iommufd */

enum soft_object_type {
	SOFT_OBJECT_ANY,
	SOFT_OBJECT_IOAS,
	SOFT_OBJECT_DEVICE,
	SOFT_OBJECT_HWPT,
	SOFT_OBJECT_FAULT,
	SOFT_OBJECT_VIOMMU, /* there never is one */
};

struct soft_object {
	enum soft_object_type type;
	uint32_t id;
	unsigned users; /* iommufd->objects_lock: 1 for its id, and one for each user */
	bool complete;	/* iommufd->objects_lock: its id finds it */
};

struct soft_ioas {
	struct soft_object object;
	struct soft_iommufd *iommufd;
	struct soft_space space;
	pthread_mutex_t lock; /* what is mapped, allowed and reserved; one call after the other */
	struct dmamap_range *allowed; /* lock: what ALLOW_IOVAS set */
	size_t n_allowed;	      /* lock */
	bool small_pages_only;	      /* lock: IOMMU_OPTION_HUGE_PAGES is 0 */
	bool nothing_allowed;	      /* lock: no IOVA may be allocated */
	struct soft_hwpt *hwpts; /* iommufd->attach and lock, either to read: the oldest first */
};

/* A queue of page faults, which stays empty. */
struct soft_fault {
	struct soft_object object;
};

struct soft_hwpt {
	struct soft_object object;
	struct soft_ioas *ioas;
	struct soft_hwpt *next; /* of the IOAS's */
	const struct dmamap_machine_iommu *iommu;
	struct dmamap_table *table;
	struct soft_fault *fault;	/* as one of its users; or NULL */
	bool dirty;			/* allocated for dirty tracking */
	bool pasids;			/* allocated for PASIDs */
	bool automatic;			/* iommufd->attach: it goes with its last device */
	bool tracking;			/* ioas->lock */
	struct dmamap_range *was_dirty; /* ioas->lock: leaves, when tracking stopped */
	size_t n_was_dirty;		/* ioas->lock */
};

struct soft_binding {
	struct soft_object object;
	struct soft_iommufd *iommufd; /* with a reference */
	struct soft_device *device;
	struct soft_hwpt *hwpt; /* iommufd->attach */
	bool by_pasid_zero;	/* iommufd->attach: that is how it was attached */
};

struct soft_iommufd {
	struct soft_file file;
	pthread_mutex_t objects_lock;
	struct soft_object **objects; /* objects_lock; by id - 1 */
	size_t n_objects, n_used;     /* objects_lock: places, and objects */
	size_t lowest_free;	      /* objects_lock: no place below it is free */
	struct soft_ioas *vfio_ioas;  /* objects_lock */
	bool charge_process;	/* objects_lock: RLIMIT_MODE; set while there are no objects */
	pthread_mutex_t attach; /* who is attached to what */
};

int soft_iommufd_open(struct soft_system *system);
struct soft_iommufd *soft_iommufd_from(struct soft_file *file);
/* Take an id for an object that is being made; it has one user, the id. */
int soft_object_reserve(
	struct soft_iommufd *iommufd, struct soft_object *object, enum soft_object_type type);
/* It is made: its id finds it from now on. */
void soft_object_complete(struct soft_iommufd *iommufd, struct soft_object *object);
/* It is not made after all: its id is free. */
void soft_object_abandon(struct soft_iommufd *iommufd, struct soft_object *object);
/* Find and use; -ENOENT. */
int soft_object_get(struct soft_iommufd *iommufd, uint32_t id, enum soft_object_type type,
	struct soft_object **object);
void soft_object_put(struct soft_iommufd *iommufd, struct soft_object *object);
void soft_object_use(struct soft_iommufd *iommufd, struct soft_object *object);
/* Take its id away: 0 when the caller now owns it, -EBUSY while somebody uses it. */
int soft_object_remove(struct soft_iommufd *iommufd, struct soft_object *object);
/* For who has seen to it that only calls may still use it. */
void soft_object_remove_wait(struct soft_iommufd *iommufd, struct soft_object *object);
/* The next object of a type after this id, in use; NULL: there is none. */
struct soft_object *soft_object_next(
	struct soft_iommufd *iommufd, enum soft_object_type type, uint32_t after);
/* All that are left, when the file is closed. */
void soft_objects_destroy(struct soft_iommufd *iommufd);

/* A native IOMMUFD command: the structure that was copied in, and where it came from. */
struct soft_command {
	struct soft_iommufd *iommufd;
	void *user;
	uint32_t user_size;
	void *data;
};
/* Copy the first @size bytes back, as far as the caller's structure goes. */
int soft_command_respond(struct soft_command *command, size_t size, const char *what);

/* soft/ioas.c: its id is reserved. */
int soft_ioas_create(struct soft_iommufd *iommufd, struct soft_ioas **ioas);
void soft_ioas_destroy(struct soft_ioas *ioas);
int soft_ioas_get(struct soft_iommufd *iommufd, uint32_t id, struct soft_ioas **ioas);
/* What IOVAs and lengths are multiples of; and whether all that is mapped is of @alignment, or
 * -EADDRINUSE. ioas lock held for these two. */
uint64_t soft_ioas_alignment(struct soft_ioas *ioas);
int soft_ioas_check_alignment(struct soft_ioas *ioas, uint64_t alignment);
/* Where IOVAs are allocated, to be freed; and tell the engine. ioas lock held. */
int soft_ioas_searched(struct soft_ioas *ioas, struct dmamap_range **ranges, size_t *n);
int soft_ioas_refresh(struct soft_ioas *ioas);
/* Takes @ranges over: sorted, allocated. */
int soft_ioas_allow(struct soft_ioas *ioas, struct dmamap_range *ranges, size_t n);
int soft_ioas_huge_pages(struct soft_ioas *ioas, bool on);
/* Reserve for an owner, and take back; the list of allowed ranges is heeded. ioas lock held. */
int soft_ioas_reserve(struct soft_ioas *ioas, const void *owner,
	const struct dmamap_machine_iommu *iommu,
	int (*reserve)(struct soft_space *space, const struct dmamap_machine_iommu *iommu,
		const void *owner));
void soft_ioas_unreserve(struct soft_ioas *ioas, const void *owner);

/* soft/ioas_map.c. */
int soft_ioas_map_memory(struct soft_ioas *ioas, struct dmamap_memory *memory, uint64_t length,
	uint64_t *iova, unsigned prot, bool allocate);
int soft_ioas_unmap_range(
	struct soft_ioas *ioas, uint64_t first, uint64_t last, uint64_t *unmapped);
/* Whether a range is mapped without a gap: 0 or -ENOENT. */
int soft_ioas_check_source(struct soft_ioas *ioas, uint64_t first, uint64_t last);
int soft_ioas_copy_range(struct soft_ioas *from, uint64_t first, uint64_t last,
	struct soft_ioas *to, uint64_t *iova, unsigned prot, bool allocate);
/* Without large pages: make areas end where the range does, at both its ends. */
int soft_ioas_cut(struct soft_ioas *ioas, uint64_t iova, uint64_t size);
/* Take away what is mapped of dma-bufs that are revoked. */
void soft_iommufd_revoke(struct soft_iommufd *iommufd);

/* soft/ioas_commands.c. */
int soft_ioas_map_user(struct soft_ioas *ioas, uint64_t va, uint64_t length, uint64_t *iova,
	unsigned prot, bool allocate);
int soft_ioas_alloc(struct soft_command *command);
int soft_ioas_iova_ranges(struct soft_command *command);
int soft_ioas_allow_iovas(struct soft_command *command);
int soft_ioas_map(struct soft_command *command);
int soft_ioas_map_file(struct soft_command *command);
int soft_ioas_copy(struct soft_command *command);
int soft_ioas_unmap(struct soft_command *command);

int soft_iommufd_destroy(struct soft_command *command);
int soft_iommufd_option(struct soft_command *command);
int soft_ioas_change_process(struct soft_command *command);

/* soft/vfio_compat.c. */
int soft_iommufd_vfio_ioas(struct soft_command *command);
int soft_iommufd_vfio_ioctl(struct soft_iommufd *iommufd, unsigned request, void *argument);
/* The IOAS of the VFIO calls, in use; -ENODEV. */
int soft_iommufd_compat(struct soft_iommufd *iommufd, struct soft_ioas **ioas);
int soft_iommufd_compat_create(struct soft_iommufd *iommufd);

/* soft/hwpt.c: a table for an IOAS, its id reserved. The attach lock is held for all but destroy.
 */
int soft_hwpt_create(struct soft_ioas *ioas, const struct dmamap_machine_iommu *iommu,
	uint32_t flags, struct soft_hwpt **hwpt);
void soft_hwpt_free(struct soft_hwpt *hwpt);
/* A device stops using it: an automatic one goes with the last. */
void soft_hwpt_put(struct soft_hwpt *hwpt);
void soft_hwpt_destroy(struct soft_hwpt *hwpt);
/* Whether devices of one IOMMU can use a table that was made for another's. */
bool soft_iommu_serves(
	const struct dmamap_machine_iommu *made_for, const struct dmamap_machine_iommu *other);
int soft_hwpt_alloc(struct soft_command *command);

/* soft/hwpt_dirty.c. */
int soft_hwpt_set_dirty(struct soft_command *command);
int soft_hwpt_get_dirty(struct soft_command *command);
/* What is unmapped is not dirty. ioas lock held. */
void soft_hwpt_forget_dirty(struct soft_hwpt *hwpt, uint64_t first, uint64_t last);

int soft_hw_info(struct soft_command *command);

/* soft/viommu.c: what there is none of. */
int soft_hwpt_invalidate(struct soft_command *command);
int soft_viommu_alloc(struct soft_command *command);
int soft_vdevice_alloc(struct soft_command *command);
int soft_veventq_alloc(struct soft_command *command);
int soft_hw_queue_alloc(struct soft_command *command);
int soft_noiommu_get_pa(struct soft_command *command);

int soft_fault_alloc(struct soft_command *command);
void soft_fault_destroy(struct soft_fault *fault);

/* soft/attach.c. */
int soft_binding_create(
	struct soft_iommufd *iommufd, struct soft_device *device, struct soft_binding **binding);
void soft_binding_destroy(struct soft_binding *binding);
int soft_binding_attach(struct soft_binding *binding, uint32_t *pt_id);
void soft_binding_detach(struct soft_binding *binding);
/* The same as soft/pasid.c asks for it. */
int soft_binding_attach_zero(struct soft_binding *binding, uint32_t *pt_id);
void soft_binding_detach_zero(struct soft_binding *binding);
int soft_binding_access(struct soft_binding *binding, struct dmamap_access **access);

/* soft/pasid.c: VFIO_DEVICE_ATTACH_IOMMUFD_PT and DETACH with the flag PASID, after their
 * arguments' checks. */
int soft_pasid_attach(struct soft_binding *binding, uint32_t pasid, uint32_t *pt_id);
void soft_pasid_detach(struct soft_binding *binding, uint32_t pasid);
void soft_pasids_detach(struct soft_binding *binding);

/* ------------------------------------------------------------------ VDUSE */

struct soft_vduse_device;

/* The VDUSE devices of a system; soft/vduse.h has the rest. */
struct soft_vduse {
	pthread_mutex_t lock;		   /* its own order: soft/vduse.h */
	struct soft_vduse_device *devices; /* lock */
	uint64_t last_key;		   /* lock */
	int epoll, stop;		   /* lock; -1: no thread listens */
	pthread_t thread;
	pid_t process;
};

/* ----------------------------------------------------------------- system */

struct soft_system {
	struct dmamap_system base;
	struct dmamap_machine machine; /* its IOMMUs, windows and devices are copies, owned */
	struct soft_files files;
	struct soft_vmas vmas;
	struct soft_proc proc;
	struct soft_accounts accounts;
	pthread_mutex_t pins_lock; /* what IOMMUFD pins: soft/pins.h */
	struct soft_kept_files kept_files;
	struct soft_group *groups;
	size_t n_groups;
	struct soft_device *devices;
	size_t n_devices;
	pthread_mutex_t spaces_lock;
	struct soft_space *spaces;    /* spaces_lock */
	struct dmamap_counters gone;  /* spaces_lock: what destroyed spaces had done */
	pthread_mutex_t dmabufs_lock; /* the devices' dma-bufs and who has mapped them */
	struct soft_vduse vduse;
};

/* NULL: @system is of another kind. */
struct soft_system *soft_system_from(struct dmamap_system *system);

uint64_t soft_page_size(const struct soft_system *system);
/* log2 of what a page-table level above the last maps. */
unsigned soft_pmd_shift(const struct soft_system *system);

/* soft/machine_sysfs.c: a file's text and its length, or -1; links; a directory. */
int soft_machine_text(struct soft_system *system, const char *path, char *to, size_t size);
bool soft_machine_link(struct soft_system *system, const char *path, char *to, size_t size);
void soft_machine_iommu_link(const struct soft_device *device, char *to, size_t size);
bool soft_machine_list(struct soft_system *system, const char *path, unsigned index, char name[64]);

/* soft/sysfs.c */
int soft_sysfs_open(struct soft_system *system, const char *path);
ssize_t soft_sysfs_readlink(
	struct soft_system *system, const char *path, char *buffer, size_t size);
ssize_t soft_sysfs_list(
	struct soft_system *system, const char *path, unsigned index, char *name, size_t size);

#endif
