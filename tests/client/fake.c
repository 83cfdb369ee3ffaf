/* SPDX-License-Identifier: MIT */
/* The fake system; see fake.h. Its descriptors are numbers that no process has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "fake.h"

#define FIRST_FD 100000

/* Counts a call; an error where it is the one to fail. */
static int next_call(struct dmamap_system *system)
{
	struct fake *fake = (struct fake *)system;

	return ++fake->calls == fake->nth ? -EIO : 0;
}

static int new_fd(struct fake *fake)
{
	fake->open_now++;
	return FIRST_FD + fake->opened++;
}

static int fake_open(struct dmamap_system *system, const char *path, int flags)
{
	struct fake *fake = (struct fake *)system;
	int error = next_call(system);

	(void)flags;
	if (error)
		return error;
	if (fake->path && !strcmp(path, fake->path))
		return fake->error;
	return new_fd(fake);
}

static int fake_close(struct dmamap_system *system, int fd)
{
	struct fake *fake = (struct fake *)system;

	if (fd < FIRST_FD || fd >= FIRST_FD + fake->opened)
		return -EBADF;
	fake->open_now--;
	return 0;
}

static const struct dmamap_range allowed[] = {
	{0, 0xfedfffff},
	{0xfef00000, FAKE_APERTURE},
};

/* DMA_AVAIL, then IOVA_RANGE: the client has to walk. */
static int get_info(struct fake *fake, struct vfio_iommu_type1_info *info)
{
	struct {
		struct vfio_iommu_type1_info info;
		struct vfio_iommu_type1_info_dma_avail avail;
		uint32_t pad;
		struct vfio_info_cap_header header;
		uint32_t nr_iovas;
		uint32_t reserved;
		struct dmamap_range ranges[2];
	} answer = {
		.info = {sizeof(answer), VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS, 4096,
			sizeof(answer.info), 0},
		.avail = {{VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, 1, 40}, 65535},
		.header = {VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, 1, 0},
		.nr_iovas = 2,
		.ranges = {allowed[0], allowed[1]},
	};

	_Static_assert(offsetof(__typeof__(answer), header) == 40, "place of the second header");
	if (fake->chain == FAKE_NO_RANGES)
		answer.avail.header.next = 0;
	if (fake->chain == FAKE_LOOP)
		answer.avail.header.next = sizeof(answer.info);
	if (fake->chain == FAKE_TOO_MANY)
		answer.nr_iovas = 0x10000000;
	if (fake->chain == FAKE_PAST_END)
		answer.avail.header.next = sizeof(answer) - 4;
	if (fake->chain == FAKE_CUT) {
		answer.avail.header.next = sizeof(answer) - sizeof(answer.header);
		memcpy((char *)&answer + answer.avail.header.next, &answer.header,
			sizeof(answer.header));
	}
	if (info->argsz < sizeof(answer)) {
		answer.info.cap_offset = 0;
		memcpy(info, &answer.info, sizeof(answer.info));
	} else {
		memcpy(info, &answer, sizeof(answer));
	}
	return 0;
}

static int iova_ranges(struct iommu_ioas_iova_ranges *query)
{
	uint32_t room = query->num_iovas;

	query->num_iovas = 2;
	if (room)
		memcpy((void *)(uintptr_t)query->allowed_iovas, allowed,
			(room < 2 ? room : 2) * sizeof(allowed[0]));
	return room < 2 ? -EMSGSIZE : 0;
}

static int region_info(struct vfio_region_info *info)
{
	if (info->index == 0)
		info->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE |
			      VFIO_REGION_INFO_FLAG_MMAP;
	if (info->index == 1)
		info->flags = VFIO_REGION_INFO_FLAG_READ;
	info->size = info->index < 2 ? UINT64_C(4) << 20 : 0;
	info->offset = (uint64_t)info->index << 40;
	return 0;
}

static int fake_ioctl(struct dmamap_system *system, int fd, unsigned long request, void *argument)
{
	struct fake *fake = (struct fake *)system;
	int error = next_call(system);

	if (fd < FIRST_FD)
		return -EBADF;
	fake->ioctls++;
	fake->request_seen = request;
	if (error)
		return error;
	if (request == fake->request)
		return fake->error;
	switch (request) {
	case VFIO_GROUP_GET_STATUS:
		((struct vfio_group_status *)argument)->flags =
			fake->not_viable ? 0 : VFIO_GROUP_FLAGS_VIABLE;
		return 0;
	case VFIO_GROUP_GET_DEVICE_FD:
		return strcmp(argument, FAKE_BDF) ? -ENODEV : new_fd(fake);
	case VFIO_IOMMU_GET_INFO:
		return get_info(fake, argument);
	case IOMMU_IOAS_ALLOC:
		((struct iommu_ioas_alloc *)argument)->out_ioas_id = 3;
		return 0;
	case IOMMU_IOAS_IOVA_RANGES:
		return iova_ranges(argument);
	case VFIO_DEVICE_GET_REGION_INFO:
		return region_info(argument);
	case VFIO_IOMMU_MAP_DMA:
		memcpy(fake->argument, argument, sizeof(struct vfio_iommu_type1_dma_map));
		return 0;
	case VFIO_IOMMU_UNMAP_DMA:
		memcpy(fake->argument, argument, sizeof(struct vfio_iommu_type1_dma_unmap));
		return 0;
	case IOMMU_IOAS_MAP:
	case IOMMU_IOAS_MAP_FILE:
		memcpy(fake->argument, argument, sizeof(struct iommu_ioas_map));
		return 0;
	case IOMMU_IOAS_UNMAP:
		memcpy(fake->argument, argument, sizeof(struct iommu_ioas_unmap));
		return 0;
	default:
		return 0;
	}
}

static int fake_mmap(struct dmamap_system *system, void *address, size_t length, int prot,
	int flags, int fd, uint64_t offset, void **out)
{
	struct fake *fake = (struct fake *)system;

	(void)fd;
	(void)offset;
	fake->held = address;
	if (fake->mmap_fails)
		return -EINVAL;
	*out = mmap(address, length, prot, flags | MAP_ANONYMOUS, -1, 0);
	return *out == MAP_FAILED ? -errno : 0;
}

static int fake_munmap(struct dmamap_system *system, void *address, size_t length)
{
	(void)system;
	return munmap(address, length) ? -errno : 0;
}

static ssize_t fake_readlink(
	struct dmamap_system *system, const char *path, char *buffer, size_t size)
{
	struct fake *fake = (struct fake *)system;
	int error = next_call(system);

	if (error)
		return error;
	if (!strcmp(path, "/sys/bus/pci/devices/" FAKE_BDF "/driver") && fake->driver)
		return snprintf(buffer, size, "../../../bus/pci/drivers/%s", fake->driver);
	if (!strcmp(path, "/sys/bus/pci/devices/" FAKE_BDF "/iommu_group") && fake->group)
		return snprintf(buffer, size, "../../../kernel/iommu_groups/%s", fake->group);
	return -ENOENT;
}

static ssize_t fake_list(
	struct dmamap_system *system, const char *path, unsigned index, char *name, size_t size)
{
	static const char *const devices[] = {
		"0000:00:00.0", FAKE_BDF, "0000:00:04.0", "0000:00:05.0", "0000:00:06.0"};
	struct fake *fake = (struct fake *)system;
	int error = next_call(system);

	if (error)
		return error;
	if (!strcmp(path, "/sys/bus/pci/devices") && index < 5)
		return snprintf(name, size, "%s", devices[index]);
	if (!strcmp(path, "/sys/bus/pci/devices/" FAKE_BDF "/vfio-dev") && fake->cdev && !index)
		return snprintf(name, size, "%s", fake->cdev);
	return -ENOENT;
}

static int fake_reason(struct dmamap_system *system, struct dmamap_reason *reason)
{
	struct fake *fake = (struct fake *)system;

	if (!fake->reason.kind)
		return -ENOENT;
	*reason = fake->reason;
	return 0;
}

static const struct dmamap_system_ops ops = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.ioctl = fake_ioctl,
	.mmap = fake_mmap,
	.munmap = fake_munmap,
	.readlink = fake_readlink,
	.list = fake_list,
	.reason = fake_reason,
};

void fake_init(struct fake *fake)
{
	*fake = (struct fake){
		.system.ops = &ops,
		.driver = "vfio-pci",
		.group = "7",
		.cdev = "vfio0",
	};
}
