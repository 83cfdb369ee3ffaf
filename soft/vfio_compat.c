/* SPDX-License-Identifier: MIT */
/*
 * The VFIO container's calls on an IOMMUFD: they work on one IOAS, which the
 * first group to come makes, or IOMMU_VFIO_IOAS sets
 * (drivers/iommu/iommufd/vfio_compat.c). The answers are those of VFIO where
 * IOMMUFD can give them; unmap and get-info differ in known ways.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "soft/soft.h"

#define END_OF(type, field) (offsetof(struct type, field) + sizeof(((struct type *)0)->field))

int soft_iommufd_compat(struct soft_iommufd *iommufd, struct soft_ioas **ioas)
{
	pthread_mutex_lock(&iommufd->objects_lock);
	*ioas = iommufd->vfio_ioas;
	if (*ioas)
		(*ioas)->object.users++;
	pthread_mutex_unlock(&iommufd->objects_lock);
	return *ioas ? 0 : SOFT_REFUSE(no_compat_ioas, ENODEV, NULL, 0);
}

int soft_iommufd_compat_create(struct soft_iommufd *iommufd)
{
	struct soft_ioas *ioas;
	bool taken;
	int error;

	error = soft_ioas_create(iommufd, &ioas);
	if (error)
		return error;
	pthread_mutex_lock(&iommufd->objects_lock);
	taken = iommufd->vfio_ioas;
	if (!taken)
		iommufd->vfio_ioas = ioas;
	pthread_mutex_unlock(&iommufd->objects_lock);
	if (taken) {
		soft_object_abandon(iommufd, &ioas->object);
		soft_ioas_destroy(ioas);
	} else {
		soft_object_complete(iommufd, &ioas->object);
	}
	return 0;
}

int soft_iommufd_vfio_ioas(struct soft_command *command)
{
	struct soft_iommufd *iommufd = command->iommufd;
	struct iommu_vfio_ioas *user = command->data;
	struct soft_ioas *ioas = NULL;
	int error = 0;

	if (user->__reserved)
		return SOFT_REFUSE(reserved_field, EOPNOTSUPP, "iommu_vfio_ioas", user->__reserved);
	switch (user->op) {
	case IOMMU_VFIO_IOAS_GET:
		error = soft_iommufd_compat(iommufd, &ioas);
		if (error)
			return error;
		user->ioas_id = ioas->object.id;
		soft_object_put(iommufd, &ioas->object);
		return soft_command_respond(command, sizeof(*user), "iommu_vfio_ioas");
	case IOMMU_VFIO_IOAS_SET:
		error = soft_ioas_get(iommufd, user->ioas_id, &ioas);
		if (error)
			return error;
		break;
	case IOMMU_VFIO_IOAS_CLEAR:
		break;
	default:
		return SOFT_REFUSE(value, EOPNOTSUPP, "an op", user->op);
	}
	pthread_mutex_lock(&iommufd->objects_lock);
	iommufd->vfio_ioas = ioas;
	if (ioas)
		ioas->object.users--;
	pthread_mutex_unlock(&iommufd->objects_lock);
	return 0;
}

static int map_dma(struct soft_iommufd *iommufd, void *argument)
{
	const uint32_t known = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	const size_t minimum = END_OF(vfio_iommu_type1_dma_map, size);
	struct vfio_iommu_type1_dma_map user;
	struct soft_ioas *ioas;
	unsigned prot = 0;
	int error = soft_copy_in(&user, argument, minimum, "vfio_iommu_type1_dma_map");

	if (error)
		return error;
	if (user.argsz < minimum)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_iommu_type1_dma_map", user.argsz, minimum);
	if (user.flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_IOMMU_MAP_DMA", user.flags, known);
	if (user.flags & VFIO_DMA_MAP_FLAG_READ)
		prot |= DMAMAP_READ;
	if (user.flags & VFIO_DMA_MAP_FLAG_WRITE)
		prot |= DMAMAP_WRITE;
	error = soft_iommufd_compat(iommufd, &ioas);
	if (error)
		return error;
	/* Neither is fine here, unlike in type1: mapped, and no device may touch it. */
	error = soft_ioas_map_user(ioas, user.vaddr, user.size, &user.iova, prot, false);
	soft_object_put(iommufd, &ioas->object);
	return error;
}

static int unmap_range(struct soft_ioas *ioas, uint64_t iova, uint64_t size, uint64_t *unmapped)
{
	uint64_t last;

	*unmapped = 0;
	if (!size)
		return SOFT_REFUSE(length_zero, EINVAL, "VFIO_IOMMU_UNMAP_DMA", 0);
	if (__builtin_add_overflow(iova, size - 1, &last))
		return SOFT_REFUSE(wrap, EOVERFLOW, "iova", iova, size);
	return soft_ioas_unmap_range(ioas, iova, last, unmapped);
}

static int unmap_dma(struct soft_iommufd *iommufd, void *argument)
{
	const size_t minimum = END_OF(vfio_iommu_type1_dma_unmap, size);
	const uint32_t known = VFIO_DMA_UNMAP_FLAG_ALL;
	struct vfio_iommu_type1_dma_unmap user;
	struct soft_ioas *ioas;
	int error = soft_copy_in(&user, argument, minimum, "vfio_iommu_type1_dma_unmap");

	if (error)
		return error;
	if (user.argsz < minimum)
		return SOFT_REFUSE(
			argsz, EINVAL, "vfio_iommu_type1_dma_unmap", user.argsz, minimum);
	if (user.flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_IOMMU_UNMAP_DMA", user.flags, known);
	error = soft_iommufd_compat(iommufd, &ioas);
	if (error)
		return error;
	if (user.flags & VFIO_DMA_UNMAP_FLAG_ALL && (user.iova || user.size)) {
		error = SOFT_REFUSE(unmap_all, EINVAL, NULL, user.iova, user.size);
		goto put;
	}
	if (user.flags & VFIO_DMA_UNMAP_FLAG_ALL) {
		error = soft_ioas_unmap_range(ioas, 0, UINT64_MAX, &user.size);
	} else {
		/* TYPE1 may unmap any part of a mapping: it is cut at both ends of the range. */
		error = soft_ioas_cut(ioas, user.iova, user.size);
		if (error)
			goto put;
		error = unmap_range(ioas, user.iova, user.size, &user.size);
	}
	/* From here the size is written back for a failure too: what went before it. */
	if (soft_copy_out(argument, &user, minimum, "vfio_iommu_type1_dma_unmap"))
		error = -EFAULT;
put:
	soft_object_put(iommufd, &ioas->object);
	return error;
}

static int set_iommu(struct soft_iommufd *iommufd, unsigned long type)
{
	struct soft_ioas *ioas;
	int error = 0;

	if (type != VFIO_TYPE1_IOMMU && type != VFIO_TYPE1v2_IOMMU)
		return SOFT_REFUSE(iommu_type, EINVAL, NULL, type);
	error = soft_iommufd_compat(iommufd, &ioas);
	if (error)
		return error;
	/* v1 may unmap anywhere, so it gets no large pages. */
	if (type == VFIO_TYPE1_IOMMU)
		error = soft_ioas_huge_pages(ioas, false);
	soft_object_put(iommufd, &ioas->object);
	return error;
}

/* Whether a table of this IOMMU can keep devices from bypassing caches. */
static bool enforces_coherency(const struct dmamap_machine_iommu *iommu)
{
	switch (iommu->model) {
	case DMAMAP_IOMMU_AMD:
		return true;
	case DMAMAP_IOMMU_VIRTIO:
		return false;
	case DMAMAP_IOMMU_INTEL:
	case DMAMAP_IOMMU_SMMUV3:
		break;
	}
	return iommu->coherent;
}

static int all_coherent(struct soft_iommufd *iommufd)
{
	struct soft_ioas *ioas;
	int all = soft_iommufd_compat(iommufd, &ioas);

	if (all)
		return all;
	pthread_mutex_lock(&ioas->lock);
	all = 1;
	for (const struct soft_hwpt *hwpt = ioas->hwpts; hwpt; hwpt = hwpt->next)
		all &= enforces_coherency(hwpt->iommu);
	pthread_mutex_unlock(&ioas->lock);
	soft_object_put(iommufd, &ioas->object);
	return all;
}

static int check_extension(struct soft_iommufd *iommufd, unsigned long extension)
{
	switch (extension) {
	case VFIO_TYPE1_IOMMU:
	case VFIO_TYPE1v2_IOMMU:
	case VFIO_UNMAP_ALL:
		return 1;
	case VFIO_DMA_CC_IOMMU:
		return all_coherent(iommufd);
	default:
		return 0;
	}
}

/* Each capability is written as far as the caller has room, and its place is counted anyway. */
static int write_ranges(char *to, size_t room, const struct dmamap_range *ranges, size_t n)
{
	struct vfio_iommu_type1_info_cap_iova_range cap = {
		.header = {VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, 1, 0},
		.nr_iovas = (uint32_t)n,
	};
	int error = 0;

	for (size_t i = 0; i < n && !error; i++) {
		struct vfio_iova_range one = {ranges[i].first, ranges[i].last};
		size_t at = sizeof(cap) + i * sizeof(one);

		if (room >= at + sizeof(one))
			error = soft_copy_out(to + at, &one, sizeof(one), "capabilities");
	}
	if (!error && room >= sizeof(cap) + n * sizeof(struct vfio_iova_range))
		error = soft_copy_out(to, &cap, sizeof(cap), "capabilities");
	return error;
}

static int write_caps(struct soft_ioas *ioas, char *argument, uint32_t argsz, size_t *total)
{
	struct vfio_iommu_type1_info_dma_avail avail = {
		.header = {VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, 1, 0},
		.avail = UINT32_MAX,
	};
	const size_t first = sizeof(struct vfio_iommu_type1_info), second = first + 16;
	struct dmamap_range *ranges;
	size_t n;
	int error = soft_space_ranges(&ioas->space, &ranges, &n);

	if (error)
		return error;
	if (argsz >= second)
		avail.header.next = (uint32_t)second;
	if (argsz >= first + sizeof(avail))
		error = soft_copy_out(argument + first, &avail, sizeof(avail), "capabilities");
	if (!error)
		error = write_ranges(
			argument + second, argsz > second ? argsz - second : 0, ranges, n);
	*total = second + sizeof(struct vfio_iommu_type1_info_cap_iova_range) +
		 n * sizeof(struct vfio_iova_range);
	free(ranges);
	return error;
}

static uint64_t page_sizes(struct soft_ioas *ioas)
{
	uint64_t page = soft_page_size(ioas->space.system), sizes = UINT64_MAX, align;

	pthread_mutex_lock(&ioas->lock);
	/* Without a page table nothing limits them. */
	for (const struct soft_hwpt *hwpt = ioas->hwpts; hwpt; hwpt = hwpt->next)
		sizes &= hwpt->iommu->leaf_sizes;
	align = soft_ioas_alignment(ioas);
	pthread_mutex_unlock(&ioas->lock);
	if (sizes & (page - 1))
		sizes = (sizes & ~(page - 1)) | page;
	return sizes > align ? sizes : align;
}

static int get_info(struct soft_iommufd *iommufd, void *argument)
{
	size_t size = END_OF(vfio_iommu_type1_info, iova_pgsizes), total;
	struct vfio_iommu_type1_info info = {0};
	struct soft_ioas *ioas;
	int error = soft_copy_in(&info, argument, size, "vfio_iommu_type1_info");

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_iommu_type1_info", info.argsz, size);
	size = info.argsz < sizeof(info) ? info.argsz : sizeof(info);
	error = soft_iommufd_compat(iommufd, &ioas);
	if (error)
		return error;
	info.flags = VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS;
	info.iova_pgsizes = page_sizes(ioas);
	error = write_caps(ioas, argument, info.argsz, &total);
	if (!error) {
		if (info.argsz >= total)
			info.cap_offset = sizeof(info);
		info.argsz = (uint32_t)total;
		error = soft_copy_out(argument, &info, size, "vfio_iommu_type1_info");
	}
	soft_object_put(iommufd, &ioas->object);
	return error;
}

int soft_iommufd_vfio_ioctl(struct soft_iommufd *iommufd, unsigned request, void *argument)
{
	switch (request) {
	case VFIO_GET_API_VERSION:
		return VFIO_API_VERSION;
	case VFIO_SET_IOMMU:
		return set_iommu(iommufd, (uintptr_t)argument);
	case VFIO_CHECK_EXTENSION:
		return check_extension(iommufd, (uintptr_t)argument);
	case VFIO_IOMMU_GET_INFO:
		return get_info(iommufd, argument);
	case VFIO_IOMMU_MAP_DMA:
		return map_dma(iommufd, argument);
	case VFIO_IOMMU_UNMAP_DMA:
		return unmap_dma(iommufd, argument);
	default:
		return SOFT_REFUSE(request, ENOTTY, "an IOMMUFD", request);
	}
}
