/* SPDX-License-Identifier: MIT */
/*
 * A PCI function as vfio-pci shows it: what is made of its description, what
 * happens when it is opened and closed, what it tells of itself, and the way to
 * each call's own file (drivers/vfio/pci/vfio_pci_core.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/pci.h"

/* The first BAR from the one that is wanted on with room for a table of 16 bytes a vector. */
static void place_msix(const struct dmamap_machine_device *is, struct soft_msix *msix)
{
	uint64_t end = is->msix_offset + 16ULL * is->msix;

	for (unsigned i = is->msix_bar; is->msix && i < DMAMAP_MACHINE_BARS; i++) {
		if (is->bar_size[i] < end || is->bar_flags[i] & DMAMAP_BAR_IO)
			continue;
		*msix = (struct soft_msix){is->msix, i, is->msix_offset, end};
		return;
	}
}

int soft_pci_init(struct soft_device *device)
{
	struct soft_pci *pci = calloc(1, sizeof(*pci));

	if (!pci)
		return -ENOMEM;
	device->pci = pci;
	pci->wakeup = -1;
	soft_listeners_init(&pci->listeners);
	place_msix(&device->is, &pci->msix);
	soft_config_open(device);
	return soft_irqs_init(device);
}

void soft_pci_fini(struct soft_device *device)
{
	if (!device->pci)
		return;
	pthread_mutex_destroy(&device->pci->listeners.lock);
	soft_irqs_fini(device);
	free(device->pci);
}

void soft_pci_memory_changed(struct soft_device *device)
{
	bool on = soft_config_memory_on(device);

	atomic_store(&device->pci->decoding, on);
	atomic_store(&device->memory_on, on && !device->pci->low_power);
	if (on)
		soft_dmabuf_move(device, false);
}

bool soft_pci_decodes(const struct soft_device *device)
{
	return atomic_load(&device->pci->decoding);
}

void soft_pci_open(struct soft_device *device)
{
	soft_config_open(device);
}

void soft_pci_close(struct soft_device *device)
{
	soft_dmabuf_cleanup(device);
	soft_power_exit(device);
	soft_irqs_close(device);
	soft_ioeventfds_close(device);
	soft_listeners_stop(&device->pci->listeners);
}

static int get_info(const struct soft_device *device, void *argument)
{
	size_t size = SOFT_END_OF(vfio_device_info, num_irqs);
	struct vfio_device_info info = {0};
	int error = soft_copy_in(&info, argument, size, "vfio_device_info");

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_device_info", info.argsz, size);
	size = info.argsz < sizeof(info) ? info.argsz : sizeof(info);
	info.flags = VFIO_DEVICE_FLAGS_PCI | (device->is.reset ? VFIO_DEVICE_FLAGS_RESET : 0);
	info.num_regions = VFIO_PCI_NUM_REGIONS;
	info.num_irqs = VFIO_PCI_NUM_IRQS;
	return soft_copy_out(argument, &info, size, "vfio_device_info");
}

static void describe_region(const struct soft_device *device, struct vfio_region_info *info)
{
	const uint32_t both = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;

	info->offset = (uint64_t)info->index << SOFT_REGION_SHIFT;
	if (info->index == VFIO_PCI_CONFIG_REGION_INDEX) {
		info->size = device->pci->config.size;
		info->flags = both;
	} else if (info->index == VFIO_PCI_ROM_REGION_INDEX) {
		info->size = device->is.rom_size;
		info->flags = info->size ? VFIO_REGION_INFO_FLAG_READ : 0;
	} else {
		info->size = device->bars[info->index].size;
		info->flags = info->size ? both : 0;
		if (soft_pci_bar_mappable(device, info->index))
			info->flags |= VFIO_REGION_INFO_FLAG_MMAP;
	}
}

/* Its only capability: the MSI-X table in this BAR may be mapped with the rest. */
static int add_msix_mappable(struct vfio_region_info *info, void *argument)
{
	const struct vfio_info_cap_header header = {
		.id = VFIO_REGION_INFO_CAP_MSIX_MAPPABLE,
		.version = 1,
	};

	info->flags |= VFIO_REGION_INFO_FLAG_CAPS;
	if (info->argsz < sizeof(*info) + sizeof(header)) {
		info->argsz = sizeof(*info) + sizeof(header);
		info->cap_offset = 0;
		return 0;
	}
	info->cap_offset = sizeof(*info);
	return soft_copy_out(
		(char *)argument + sizeof(*info), &header, sizeof(header), "a capability");
}

static int get_region_info(const struct soft_device *device, void *argument)
{
	const struct soft_msix *msix = &device->pci->msix;
	struct vfio_region_info info;
	int error = soft_copy_in(&info, argument, sizeof(info), "vfio_region_info");

	if (error)
		return error;
	if (info.argsz < sizeof(info))
		return SOFT_REFUSE(argsz, EINVAL, "vfio_region_info", info.argsz, sizeof(info));
	if (info.index > VFIO_PCI_CONFIG_REGION_INDEX)
		return SOFT_REFUSE(region, EINVAL, NULL, info.index);
	describe_region(device, &info);
	if (info.flags & VFIO_REGION_INFO_FLAG_MMAP && msix->vectors && msix->bar == info.index)
		error = add_msix_mappable(&info, argument);
	return error ? error : soft_copy_out(argument, &info, sizeof(info), "vfio_region_info");
}

int soft_pci_ioctl(struct soft_device *device, unsigned request, void *argument)
{
	switch (request) {
	case VFIO_DEVICE_GET_INFO:
		return get_info(device, argument);
	case VFIO_DEVICE_GET_REGION_INFO:
		return get_region_info(device, argument);
	case VFIO_DEVICE_GET_IRQ_INFO:
		return soft_irq_info(device, argument);
	case VFIO_DEVICE_SET_IRQS:
		return soft_irq_set(device, argument);
	case VFIO_DEVICE_RESET:
		return soft_reset_ioctl(device);
	case VFIO_DEVICE_GET_PCI_HOT_RESET_INFO:
		return soft_hot_reset_info(device, argument);
	case VFIO_DEVICE_PCI_HOT_RESET:
		return soft_hot_reset(device, argument);
	case VFIO_DEVICE_IOEVENTFD:
		return soft_ioeventfd(device, argument);
	case VFIO_DEVICE_FEATURE:
		return soft_feature(device, argument);
	default:
		return SOFT_REFUSE(request, ENOTTY, "a device", request);
	}
}

ssize_t soft_pci_access(
	struct soft_device *device, void *buffer, size_t size, uint64_t offset, bool write)
{
	uint64_t index = offset >> SOFT_REGION_SHIFT, at = offset & SOFT_REGION_MASK;

	if (!size)
		return 0;
	if (index >= VFIO_PCI_NUM_REGIONS)
		return SOFT_REFUSE(region, EINVAL, NULL, index);
	soft_power_resume(device);
	if (index == VFIO_PCI_CONFIG_REGION_INDEX)
		return soft_config_access(device, buffer, size, at, write);
	if (index == VFIO_PCI_VGA_REGION_INDEX)
		return SOFT_REFUSE(region, EINVAL, NULL, index);
	if (index == VFIO_PCI_ROM_REGION_INDEX && write)
		return SOFT_REFUSE(region_read_only, EINVAL, NULL, index);
	return soft_bar_access(device, (unsigned)index, buffer, size, at, write);
}
