/* SPDX-License-Identifier: MIT */
/*
 * The container interface: a group joins a container, the container gets a
 * type1 IOMMU, and mappings are the container's. /dev/vfio/vfio and /dev/iommu
 * both answer it; an IOMMUFD makes itself an IOAS when the group joins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "abi/vfio.h"
#include "client/internal.h"

static int type1_attach(struct dmamap_client *client, struct dmamap_reason *why)
{
	struct dmamap_system *system = client->system;
	struct vfio_group_status status = {.argsz = sizeof(status)};
	const char *type =
		client->mode->type1 == VFIO_TYPE1_IOMMU ? "VFIO_TYPE1_IOMMU" : "VFIO_TYPE1v2_IOMMU";
	char path[64];
	int result = client_find_group(system, client->bdf, path, sizeof(path), why);

	if (result)
		return result;
	client->group = system->ops->open(system, path, O_RDWR);
	if (client->group < 0)
		return client_failed(client, client_rules_group, client->group, path, why);
	result = client_ioctl(client, client->group, VFIO_GROUP_GET_STATUS, &status);
	if (result < 0)
		return client_failed(
			client, client_rules_step, result, "VFIO_GROUP_GET_STATUS", why);
	if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		return DMAMAP_REFUSE(
			why, &client_reason_not_viable, EBUSY, strrchr(path, '/') + 1, 0);
	result = client_ioctl(client, client->group, VFIO_GROUP_SET_CONTAINER, &client->container);
	if (result < 0)
		return client_failed(
			client, client_rules_bind, result, "VFIO_GROUP_SET_CONTAINER", why);
	result = client_ioctl(
		client, client->container, VFIO_SET_IOMMU, (void *)(uintptr_t)client->mode->type1);
	if (result < 0)
		return client_failed(client, client_rules_set_iommu, result, type, why);
	client->device = client_ioctl(client, client->group, VFIO_GROUP_GET_DEVICE_FD, client->bdf);
	if (client->device < 0)
		return client_failed(
			client, client_rules_bind, client->device, "VFIO_GROUP_GET_DEVICE_FD", why);
	return 0;
}

static int type1_map(
	struct dmamap_client *client, void *va, uint64_t length, uint64_t iova, unsigned prot)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = (prot & DMAMAP_READ ? VFIO_DMA_MAP_FLAG_READ : 0) |
			 (prot & DMAMAP_WRITE ? VFIO_DMA_MAP_FLAG_WRITE : 0),
		.vaddr = (uintptr_t)va,
		.iova = iova,
		.size = length,
	};

	return client_ioctl(client, client->container, VFIO_IOMMU_MAP_DMA, &map);
}

static int type1_unmap(
	struct dmamap_client *client, uint64_t iova, uint64_t length, uint64_t *unmapped)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.flags = iova || length ? 0 : VFIO_DMA_UNMAP_FLAG_ALL,
		.iova = iova,
		.size = length,
	};
	int result = client_ioctl(client, client->container, VFIO_IOMMU_UNMAP_DMA, &unmap);

	if (!result && unmapped)
		*unmapped = unmap.size;
	return result;
}

/* The whole of GET_INFO with its capabilities, in memory that the caller frees. */
static int get_info(struct dmamap_client *client, struct vfio_iommu_type1_info **out)
{
	uint32_t size = sizeof(**out);
	struct vfio_iommu_type1_info *info = NULL;

	/* argsz grows to what there is; capabilities may grow between two calls. */
	for (;;) {
		struct vfio_iommu_type1_info *larger = realloc(info, size);
		int result;

		if (!larger) {
			free(info);
			return -ENOMEM;
		}
		info = larger;
		memset(info, 0, size);
		info->argsz = size;
		result = client_ioctl(client, client->container, VFIO_IOMMU_GET_INFO, info);
		if (result < 0) {
			free(info);
			return result;
		}
		if (info->argsz <= size)
			break;
		size = info->argsz;
	}
	info->argsz = size;
	*out = info;
	return 0;
}

/* A capability by its id, wholly within the answer; NULL where there is none. */
static const void *find_capability(
	const struct vfio_iommu_type1_info *info, unsigned id, size_t least)
{
	uint32_t offset = info->flags & VFIO_IOMMU_INFO_CAPS ? info->cap_offset : 0;
	const char *start = (const char *)info;

	while (offset >= sizeof(*info) && offset % 4 == 0 &&
		offset + sizeof(struct vfio_info_cap_header) <= info->argsz) {
		const struct vfio_info_cap_header *header = (const void *)(start + offset);

		if (header->id == id)
			return offset + least <= info->argsz ? header : NULL;
		/* Only forwards: a loop in the chain would never end. */
		if (header->next <= offset)
			return NULL;
		offset = header->next;
	}
	return NULL;
}

static ssize_t type1_ranges(struct dmamap_client *client, struct dmamap_range *ranges, size_t n)
{
	const struct vfio_iommu_type1_info_cap_iova_range *capability;
	struct vfio_iommu_type1_info *info;
	ssize_t result = get_info(client, &info);

	if (result)
		return result;
	capability =
		find_capability(info, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, sizeof(*capability));
	if (!capability) {
		/* No list means no limit. */
		if (n)
			ranges[0] = (struct dmamap_range){0, UINT64_MAX};
		result = 1;
		goto free_info;
	}
	if (capability->nr_iovas >
		(info->argsz - ((const char *)capability->iova_ranges - (const char *)info)) /
			sizeof(capability->iova_ranges[0])) {
		result = -EPROTO;
		goto free_info;
	}
	for (uint32_t i = 0; i < capability->nr_iovas && i < n; i++)
		ranges[i] = (struct dmamap_range){
			capability->iova_ranges[i].start, capability->iova_ranges[i].end};
	result = capability->nr_iovas;
free_info:
	free(info);
	return result;
}

const struct client_interface client_type1 = {
	.attach = type1_attach,
	.map = type1_map,
	.unmap = type1_unmap,
	.map_rules = client_rules_map_type1,
	.ranges = type1_ranges,
};
