/* SPDX-License-Identifier: MIT */
/*
 * QEMU's teaching device as a driver sees it: it copies up to 4 KiB between the
 * bus and a buffer of its own. The buffer can only be filled and read by DMA, so
 * a page of this process is mapped for it meanwhile, at an IOVA that is free, and
 * unmapped again: what the case mapped stays as it is.
 *
 * Registers of BAR 0 (QEMU's docs/specs/edu.rst): 0x80 source, 0x88
 * destination, 0x90 count, 0x98 command: bit 0 starts and is set while it
 * works, bit 1 is set for buffer to bus. The buffer is at 0x40000; some
 * versions take its last byte for one too many, and end the machine for it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "run.h"

#define EDU_VENDOR 0x1234
#define EDU_DEVICE 0x11e8
#define BUFFER	   0x40000
#define BUFFER_MAX 4032
#define START	   1
#define TO_BUS	   2

/* PCI's command register. */
#define COMMAND	   4
#define BUS_MASTER 4
#define MEMORY	   2 /* decoding of the BARs */

struct edu {
	struct dmamap_system *system;
	const struct state *device;
	volatile uint8_t *registers;
	uint64_t config;  /* where config space is in the device's file */
	uint16_t command; /* as it was */
	uint8_t *page;
	uint64_t page_iova, page_size;
};

bool edu_is(const struct pci_device *device)
{
	return device->vendor == EDU_VENDOR && device->device == EDU_DEVICE;
}

static int region(struct edu *edu, unsigned index, uint64_t *offset)
{
	struct vfio_region_info info = {.argsz = sizeof(info), .index = index};
	int error = edu->system->ops->ioctl(
		edu->system, edu->device->fd, VFIO_DEVICE_GET_REGION_INFO, &info);

	*offset = info.offset;
	return error;
}

static void set64(struct edu *edu, unsigned at, uint64_t value)
{
	*(volatile uint64_t *)(edu->registers + at) = value;
}

static int copy(struct edu *edu, uint64_t from, uint64_t to, uint64_t size, unsigned direction)
{
	const struct timespec pause = {0, 2000000};

	set64(edu, 0x80, from);
	set64(edu, 0x88, to);
	set64(edu, 0x90, size);
	set64(edu, 0x98, START | direction);
	/* It takes a tenth of a second, and a busy machine may stretch that. Now and then QEMU's
	 * device never ends, nor starts again: then it is of no use any more. */
	for (int i = 0; i < 5000; i++) {
		if (!(*(volatile uint64_t *)(edu->registers + 0x98) & START))
			return 0;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

static int map_page_type1(struct edu *edu)
{
	struct vfio_iommu_type1_dma_map map = {.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)edu->page,
		.size = edu->page_size};
	int error = -EBUSY;

	/* Odd places below 256 MiB, which edu's own address mask lets through. */
	for (uint64_t i = 0; i < 64 && error; i++) {
		map.iova = 0x0badf000 - i * 0x310000;
		map.iova &= -edu->page_size;
		error = edu->system->ops->ioctl(
			edu->system, edu->device->map_fd, VFIO_IOMMU_MAP_DMA, &map);
		if (error != -EEXIST && error != -EINVAL)
			break;
	}
	edu->page_iova = map.iova;
	return error ? -EBUSY : 0;
}

static int map_page_ioas(struct edu *edu)
{
	struct iommu_ioas_map map = {.size = sizeof(map),
		.flags = IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE |
			 IOMMU_IOAS_MAP_FIXED_IOVA,
		.ioas_id = edu->device->ioas,
		.user_va = (uintptr_t)edu->page,
		.length = edu->page_size};
	int error = -EBUSY;

	for (uint64_t i = 0; i < 64 && error; i++) {
		map.iova = (0x0badf000 - i * 0x310000) & -edu->page_size;
		error = edu->system->ops->ioctl(
			edu->system, edu->device->map_fd, IOMMU_IOAS_MAP, &map);
		if (error != -EEXIST && error != -EINVAL)
			break;
	}
	edu->page_iova = map.iova;
	return error ? -EBUSY : 0;
}

static void unmap_page(struct edu *edu)
{
	struct vfio_iommu_type1_dma_unmap type1 = {
		.argsz = sizeof(type1), .iova = edu->page_iova, .size = edu->page_size};
	struct iommu_ioas_unmap ioas = {.size = sizeof(ioas),
		.ioas_id = edu->device->ioas,
		.iova = edu->page_iova,
		.length = edu->page_size};

	if (edu->device->ioas)
		edu->system->ops->ioctl(edu->system, edu->device->map_fd, IOMMU_IOAS_UNMAP, &ioas);
	else
		edu->system->ops->ioctl(
			edu->system, edu->device->map_fd, VFIO_IOMMU_UNMAP_DMA, &type1);
}

/* Let the device be master, with a page that it can reach. */
static int begin(
	struct edu *edu, struct replay *replay, struct side *side, const struct state *device)
{
	uint64_t registers;
	uint16_t command;
	void *at, *page;
	int error;

	*edu = (struct edu){
		.system = side->system, .device = device, .page_size = replay->page_size};
	if (device->map_fd < 0)
		return -EOPNOTSUPP;
	if (region(edu, VFIO_PCI_BAR0_REGION_INDEX, &registers) < 0 ||
		region(edu, VFIO_PCI_CONFIG_REGION_INDEX, &edu->config) < 0)
		return -EOPNOTSUPP;
	page = mmap(NULL, edu->page_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (page == MAP_FAILED)
		return -ENOMEM;
	edu->page = page;
	error = edu->system->ops->mmap(edu->system, NULL, replay->page_size, PROT_READ | PROT_WRITE,
		MAP_SHARED, device->fd, registers, &at);
	if (error)
		goto no_registers;
	edu->registers = at;
	edu->system->ops->pread(
		edu->system, device->fd, &edu->command, sizeof(command), edu->config + COMMAND);
	/* Without decoding, its registers are out of reach: touching them is a bus error. */
	if (!(edu->command & MEMORY)) {
		error = -EOPNOTSUPP;
		goto no_memory;
	}
	command = edu->command | BUS_MASTER;
	edu->system->ops->pwrite(
		edu->system, device->fd, &command, sizeof(command), edu->config + COMMAND);
	error = device->ioas ? map_page_ioas(edu) : map_page_type1(edu);
	if (!error)
		return 0;
	edu->system->ops->pwrite(
		edu->system, device->fd, &edu->command, sizeof(command), edu->config + COMMAND);
no_memory:
	edu->system->ops->munmap(edu->system, at, replay->page_size);
no_registers:
	munmap(page, edu->page_size);
	return error;
}

static void end(struct edu *edu)
{
	unmap_page(edu);
	edu->system->ops->pwrite(edu->system, edu->device->fd, &edu->command, sizeof(edu->command),
		edu->config + COMMAND);
	edu->system->ops->munmap(edu->system, (void *)(uintptr_t)edu->registers, edu->page_size);
	munmap(edu->page, edu->page_size);
}

int edu_write(struct replay *replay, struct side *side, const struct state *device, uint64_t iova,
	uint8_t value, uint64_t size)
{
	struct edu edu;
	int error = begin(&edu, replay, side, device);

	if (error)
		return error;
	memset(edu.page, value, BUFFER_MAX);
	error = copy(&edu, edu.page_iova, BUFFER, BUFFER_MAX, 0);
	for (uint64_t done = 0; done < size && !error; done += BUFFER_MAX)
		error = copy(&edu, BUFFER, iova + done,
			size - done < BUFFER_MAX ? size - done : BUFFER_MAX, TO_BUS);
	end(&edu);
	return error;
}

int edu_read(struct replay *replay, struct side *side, const struct state *device, uint64_t iova,
	uint8_t value, uint64_t size, bool *same)
{
	struct edu edu;
	int error = begin(&edu, replay, side, device);

	if (error)
		return error;
	*same = true;
	for (uint64_t done = 0; done < size && !error && *same; done += BUFFER_MAX) {
		uint64_t n = size - done < BUFFER_MAX ? size - done : BUFFER_MAX;

		/* Other bytes first: a read that faults leaves them there. */
		memset(edu.page, (uint8_t)~value, BUFFER_MAX);
		error = copy(&edu, edu.page_iova, BUFFER, BUFFER_MAX, 0);
		if (!error)
			error = copy(&edu, iova + done, BUFFER, n, 0);
		if (!error)
			error = copy(&edu, BUFFER, edu.page_iova, BUFFER_MAX, TO_BUS);
		for (uint64_t i = 0; i < n; i++)
			*same &= edu.page[i] == value;
	}
	end(&edu);
	return error;
}
