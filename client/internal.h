/* SPDX-License-Identifier: MIT */
/*
 * What the client's files share. An interface is one of the kernel's two ways
 * to map memory: VFIO containers with type1's calls (which IOMMUFD answers
 * too), and IOMMUFD's own. The mode picks it; everything above is the same.
 *
 * Threads: a client is one thread's at a time, so nothing here has a lock.
 */
#ifndef DMAMAP_CLIENT_INTERNAL_H
#define DMAMAP_CLIENT_INTERNAL_H

#include "dmamap/client.h"

struct client_interface;

/*
 * @group: /dev/vfio/GROUP; -1 for native IOMMUFD
 * @ioas: native IOMMUFD's address space, an object of @container
 * @iovas: which IOVAs were handed out; what the system does not allow is
 *	reserved in it. No table, no memory: bookkeeping only
 */
struct dmamap_client {
	struct dmamap_system *system;
	const struct dmamap_mode *mode;
	const struct client_interface *interface;
	char bdf[16];
	int container;
	int group;
	int device;
	uint32_t ioas;
	struct dmamap_space *iovas;
};

/*
 * @attach: open the device and attach it to the open container; on failure
 *	descriptors that it opened are in the client, for client_close()
 * @map, @map_file, @unmap: exactly one ioctl, no reason, so that their time is the
 *	system's. map_file is NULL where there is none
 * @map_rules: what an errno of map or map_file means
 * @ranges: as dmamap_client_ranges()
 */
struct client_interface {
	int (*attach)(struct dmamap_client *client, struct dmamap_reason *why);
	int (*map)(struct dmamap_client *client, void *va, uint64_t length, uint64_t iova,
		unsigned prot);
	int (*map_file)(struct dmamap_client *client, int fd, uint64_t start, uint64_t length,
		uint64_t iova, unsigned prot);
	int (*unmap)(
		struct dmamap_client *client, uint64_t iova, uint64_t length, uint64_t *unmapped);
	const struct client_rule *map_rules;
	ssize_t (*ranges)(struct dmamap_client *client, struct dmamap_range *ranges, size_t n);
};

extern const struct client_interface client_type1;
extern const struct client_interface client_iommufd;

/* --------------------------------------------------------------- reasons */

/* What an errno means at one place; a table ends with error 0, which takes all others. */
struct client_rule {
	int error;
	const struct dmamap_reason_kind *kind;
};

extern const struct dmamap_reason_kind client_reason_address;
extern const struct dmamap_reason_kind client_reason_device;
extern const struct dmamap_reason_kind client_reason_other_driver;
extern const struct dmamap_reason_kind client_reason_no_driver;
extern const struct dmamap_reason_kind client_reason_no_group;
extern const struct dmamap_reason_kind client_reason_not_viable;
extern const struct dmamap_reason_kind client_reason_no_cdev;
extern const struct dmamap_reason_kind client_reason_files;
extern const struct dmamap_reason_kind client_reason_no_files;
extern const struct dmamap_reason_kind client_reason_bar;
extern const struct dmamap_reason_kind client_reason_bar_offset;
extern const struct dmamap_reason_kind client_reason_iova_size;
extern const struct dmamap_reason_kind client_reason_unaligned;
extern const struct dmamap_reason_kind client_reason_outside;

extern const struct client_rule client_rules_container[];
extern const struct client_rule client_rules_iommu[];
extern const struct client_rule client_rules_group[];
extern const struct client_rule client_rules_cdev[];
extern const struct client_rule client_rules_set_iommu[];
extern const struct client_rule client_rules_bind[];
extern const struct client_rule client_rules_step[];
extern const struct client_rule client_rules_map_type1[];
extern const struct client_rule client_rules_map_iommufd[];
extern const struct client_rule client_rules_unmap[];
extern const struct client_rule client_rules_bar[];

/*
 * Say why a call to the system failed: its own reason if it knows one, or else
 * what @rules make of the errno. @error is negative and returned.
 */
int client_explain(struct dmamap_system *system, const struct client_rule *rules, int error,
	const char *label, const uint64_t *numbers, size_t n, struct dmamap_reason *why);

/* True, and *@why, where the system has a reason for this errno (negative). */
bool client_system_knows(struct dmamap_system *system, int error, struct dmamap_reason *why);
/* The same as client_explain(), with the errno as the only number. */
int client_failed(struct dmamap_client *client, const struct client_rule *rules, int error,
	const char *label, struct dmamap_reason *why);

static inline int client_ioctl(
	struct dmamap_client *client, int fd, unsigned long request, void *argument)
{
	return client->system->ops->ioctl(client->system, fd, request, argument);
}

/* -------------------------------------------------------------- discovery */

/* Writes @bdf with domain, in lower case; -EINVAL where it is no address. */
int client_find_address(const char *bdf, char out[16], struct dmamap_reason *why);
/* Checks that the device is there and bound to a VFIO driver. */
int client_find_device(struct dmamap_system *system, const char *bdf, struct dmamap_reason *why);
/* /dev/vfio/GROUP of the device. */
int client_find_group(struct dmamap_system *system, const char *bdf, char *path, size_t size,
	struct dmamap_reason *why);
/* /dev/vfio/devices/vfioN of the device. */
int client_find_cdev(struct dmamap_system *system, const char *bdf, char *path, size_t size,
	struct dmamap_reason *why);

#endif
