/* SPDX-License-Identifier: MIT */
/*
 * IOMMUFD's own interface: the device's cdev is bound to the IOMMUFD and
 * attached to an IOAS, and mappings are the IOAS's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "client/internal.h"

static int iommufd_attach(struct dmamap_client *client, struct dmamap_reason *why)
{
	struct dmamap_system *system = client->system;
	struct vfio_device_bind_iommufd bind = {
		.argsz = offsetof(struct vfio_device_bind_iommufd, token_uuid_ptr),
		.iommufd = client->container,
	};
	struct iommu_ioas_alloc alloc = {.size = sizeof(alloc)};
	struct vfio_device_attach_iommufd_pt attach = {
		.argsz = offsetof(struct vfio_device_attach_iommufd_pt, pasid),
	};
	char path[128];
	int result = client_find_cdev(system, client->bdf, path, sizeof(path), why);

	if (result)
		return result;
	client->device = system->ops->open(system, path, O_RDWR);
	if (client->device < 0)
		return client_failed(client, client_rules_cdev, client->device, path, why);
	result = client_ioctl(client, client->device, VFIO_DEVICE_BIND_IOMMUFD, &bind);
	if (result < 0)
		return client_failed(
			client, client_rules_bind, result, "VFIO_DEVICE_BIND_IOMMUFD", why);
	result = client_ioctl(client, client->container, IOMMU_IOAS_ALLOC, &alloc);
	if (result < 0)
		return client_failed(client, client_rules_step, result, "IOMMU_IOAS_ALLOC", why);
	client->ioas = alloc.out_ioas_id;
	attach.pt_id = client->ioas;
	result = client_ioctl(client, client->device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach);
	if (result < 0)
		return client_failed(
			client, client_rules_bind, result, "VFIO_DEVICE_ATTACH_IOMMUFD_PT", why);
	return 0;
}

static uint32_t map_flags(unsigned prot)
{
	return IOMMU_IOAS_MAP_FIXED_IOVA | (prot & DMAMAP_READ ? IOMMU_IOAS_MAP_READABLE : 0) |
	       (prot & DMAMAP_WRITE ? IOMMU_IOAS_MAP_WRITEABLE : 0);
}

static int iommufd_map(
	struct dmamap_client *client, void *va, uint64_t length, uint64_t iova, unsigned prot)
{
	struct iommu_ioas_map map = {
		.size = sizeof(map),
		.flags = map_flags(prot),
		.ioas_id = client->ioas,
		.user_va = (uintptr_t)va,
		.length = length,
		.iova = iova,
	};

	return client_ioctl(client, client->container, IOMMU_IOAS_MAP, &map);
}

static int iommufd_map_file(struct dmamap_client *client, int fd, uint64_t start, uint64_t length,
	uint64_t iova, unsigned prot)
{
	struct iommu_ioas_map_file map = {
		.size = sizeof(map),
		.flags = map_flags(prot),
		.ioas_id = client->ioas,
		.fd = fd,
		.start = start,
		.length = length,
		.iova = iova,
	};

	return client_ioctl(client, client->container, IOMMU_IOAS_MAP_FILE, &map);
}

static int iommufd_unmap(
	struct dmamap_client *client, uint64_t iova, uint64_t length, uint64_t *unmapped)
{
	struct iommu_ioas_unmap unmap = {
		.size = sizeof(unmap),
		.ioas_id = client->ioas,
		.iova = iova,
		.length = iova || length ? length : UINT64_MAX,
	};
	int result = client_ioctl(client, client->container, IOMMU_IOAS_UNMAP, &unmap);

	if (!result && unmapped)
		*unmapped = unmap.length;
	return result;
}

static ssize_t iommufd_ranges(struct dmamap_client *client, struct dmamap_range *ranges, size_t n)
{
	struct iommu_ioas_iova_ranges query = {
		.size = sizeof(query),
		.ioas_id = client->ioas,
		.num_iovas = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX,
		.allowed_iovas = (uintptr_t)ranges,
	};
	int result;

	/* The kernel's range and ours have the same layout: it may write them in place. */
	_Static_assert(sizeof(struct iommu_iova_range) == sizeof(struct dmamap_range) &&
			       offsetof(struct iommu_iova_range, last) ==
				       offsetof(struct dmamap_range, last),
		"ranges differ in layout");
	result = client_ioctl(client, client->container, IOMMU_IOAS_IOVA_RANGES, &query);
	if (result < 0 && result != -EMSGSIZE)
		return result;
	return (ssize_t)query.num_iovas;
}

const struct client_interface client_iommufd = {
	.attach = iommufd_attach,
	.map = iommufd_map,
	.map_file = iommufd_map_file,
	.unmap = iommufd_unmap,
	.map_rules = client_rules_map_iommufd,
	.ranges = iommufd_ranges,
};
