/* SPDX-License-Identifier: MIT */
/*
 * VFIO_DEVICE_FEATURE. A plain function has low power and dma-bufs; it migrates
 * nothing, logs no DMA, and has no virtual functions to give a token for
 * (vfio_ioctl_device_feature() in drivers/vfio/vfio_main.c, then
 * drivers/vfio/pci/vfio_pci_core.c and vfio_pci_dmabuf.c).
 *
 * In low power the BARs cannot be mapped by a fault, and their dma-bufs are
 * revoked. A user's next call wakes the function; that ends low power when an
 * eventfd was given to tell of it, and else it lasts until the user ends it.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/pci.h"

/* What copying the ranges of a dma-buf can allocate at once: Linux's KMALLOC_MAX_SIZE. */
#define RANGES_SIZE_MAX(page_size) ((page_size) << 10)

struct feature {
	uint16_t number;
	uint32_t operations; /* GET, SET: the others are refused */
	size_t size;	     /* of its data, at least */
	const char *name;
	int (*act)(struct soft_device *device, void *data);
};

static int enter_low_power(struct soft_device *device, int wakeup)
{
	struct soft_pci *pci = device->pci;

	soft_dmabuf_move(device, true);
	if (pci->low_power)
		return SOFT_REFUSE(low_power, EINVAL, device->is.bdf, 0);
	pci->low_power = true;
	pci->wakeup = wakeup;
	atomic_store(&device->memory_on, false);
	return 0;
}

static int low_power_entry(struct soft_device *device, void *data)
{
	int error;

	(void)data;
	pthread_mutex_lock(&device->lock);
	error = enter_low_power(device, -1);
	pthread_mutex_unlock(&device->lock);
	return error;
}

static int low_power_entry_with_wakeup(struct soft_device *device, void *data)
{
	struct vfio_device_low_power_entry_with_wakeup entry;
	int wakeup, error = soft_copy_in(&entry, data, sizeof(entry), "a wake-up eventfd");

	if (error)
		return error;
	if (entry.wakeup_eventfd < 0)
		return SOFT_REFUSE(value, EINVAL, "an eventfd", (uint32_t)entry.wakeup_eventfd);
	wakeup = soft_eventfd_get(entry.wakeup_eventfd, "the wake-up");
	if (wakeup < 0)
		return wakeup;
	pthread_mutex_lock(&device->lock);
	error = enter_low_power(device, wakeup);
	pthread_mutex_unlock(&device->lock);
	if (error)
		soft_eventfd_put(&wakeup);
	return error;
}

/* Device lock held. */
static void leave_low_power(struct soft_device *device)
{
	soft_eventfd_put(&device->pci->wakeup);
	device->pci->low_power = false;
}

void soft_power_exit(struct soft_device *device)
{
	leave_low_power(device);
	soft_pci_memory_changed(device);
}

static int low_power_exit(struct soft_device *device, void *data)
{
	(void)data;
	pthread_mutex_lock(&device->lock);
	soft_power_exit(device);
	pthread_mutex_unlock(&device->lock);
	return 0;
}

void soft_power_resume(struct soft_device *device)
{
	struct soft_pci *pci = device->pci;

	pthread_mutex_lock(&device->lock);
	if (pci->low_power && pci->wakeup >= 0) {
		soft_eventfd_signal(pci->wakeup);
		leave_low_power(device);
		/* The dma-bufs stay revoked until memory is next turned on, or low power left. */
		atomic_store(&device->memory_on, soft_config_memory_on(device));
	}
	pthread_mutex_unlock(&device->lock);
}

/* ---------------------------------------------------------------- dma-bufs */

static int copy_ranges(const struct soft_device *device, void *data, size_t n,
	struct vfio_region_dma_range **ranges)
{
	const size_t size = n * sizeof(**ranges);
	int error;

	if (size > RANGES_SIZE_MAX(soft_page_size(device->system)))
		return SOFT_REFUSE(dmabuf_many, ENOMEM, NULL, n,
			RANGES_SIZE_MAX(soft_page_size(device->system)) / sizeof(**ranges));
	*ranges = malloc(size);
	if (!*ranges)
		return SOFT_REFUSE(no_memory, ENOMEM, "the ranges of a dma-buf", 0);
	error = soft_copy_in(*ranges, (char *)data + sizeof(struct vfio_device_feature_dma_buf),
		size, "the ranges of a dma-buf");
	if (error)
		free(*ranges);
	return error;
}

static int export_dmabuf(struct soft_device *device, void *data)
{
	struct vfio_device_feature_dma_buf user;
	struct vfio_region_dma_range *ranges;
	int result = soft_copy_in(&user, data, sizeof(user), "vfio_device_feature_dma_buf");

	if (result)
		return result;
	if (!user.nr_ranges)
		return SOFT_REFUSE(length_zero, EINVAL, "the list of ranges", 0);
	if (user.flags)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_DEVICE_FEATURE_DMA_BUF", user.flags, 0);
	if (user.region_index >= DMAMAP_MACHINE_BARS || !device->bars[user.region_index].size)
		return SOFT_REFUSE(dmabuf_region, ENODEV, NULL, user.region_index);
	result = copy_ranges(device, data, user.nr_ranges, &ranges);
	if (result)
		return result;
	if (device->is.bar_flags[user.region_index] & DMAMAP_BAR_IO) {
		result = SOFT_REFUSE(dmabuf_io, EINVAL, NULL, user.region_index);
	} else {
		pthread_mutex_lock(&device->lock);
		result = soft_dmabuf_create(
			device, user.region_index, ranges, user.nr_ranges, user.open_flags);
		pthread_mutex_unlock(&device->lock);
	}
	free(ranges);
	return result;
}

/* ---------------------------------------------------------------- dispatch */

static const struct feature features[] = {
	{VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY, VFIO_DEVICE_FEATURE_SET, 0, "LOW_POWER_ENTRY",
		low_power_entry},
	{VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY_WITH_WAKEUP, VFIO_DEVICE_FEATURE_SET,
		sizeof(struct vfio_device_low_power_entry_with_wakeup),
		"LOW_POWER_ENTRY_WITH_WAKEUP", low_power_entry_with_wakeup},
	{VFIO_DEVICE_FEATURE_LOW_POWER_EXIT, VFIO_DEVICE_FEATURE_SET, 0, "LOW_POWER_EXIT",
		low_power_exit},
	{VFIO_DEVICE_FEATURE_DMA_BUF, VFIO_DEVICE_FEATURE_GET,
		sizeof(struct vfio_device_feature_dma_buf), "DMA_BUF", export_dmabuf},
};

static int use(struct soft_device *device, const struct feature *feature,
	const struct vfio_device_feature *user, void *data)
{
	const uint32_t both = VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_SET;
	size_t given = user->argsz - sizeof(*user);

	if (user->flags & both & ~feature->operations)
		return SOFT_REFUSE(feature_operation, EINVAL, feature->name, user->flags & both,
			feature->operations);
	if (user->flags & VFIO_DEVICE_FEATURE_PROBE)
		return 0;
	if (!(user->flags & both))
		return SOFT_REFUSE(feature_operation, EINVAL, feature->name, user->flags & both,
			feature->operations);
	if (given < feature->size)
		return SOFT_REFUSE(
			argsz, EINVAL, feature->name, user->argsz, sizeof(*user) + feature->size);
	return feature->act(device, data);
}

int soft_feature(struct soft_device *device, void *argument)
{
	const uint32_t known = VFIO_DEVICE_FEATURE_MASK | VFIO_DEVICE_FEATURE_SET |
			       VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_PROBE;
	const uint32_t both = VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_SET;
	const bool old = device->system->machine.as_kernel < DMAMAP_KERNEL(7, 3);
	struct vfio_device_feature user;
	uint32_t number;
	int error = soft_copy_in(&user, argument, sizeof(user), "vfio_device_feature");

	if (error)
		return error;
	if (user.argsz < sizeof(user))
		return SOFT_REFUSE(argsz, EINVAL, "vfio_device_feature", user.argsz, sizeof(user));
	if (user.flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_DEVICE_FEATURE", user.flags, known);
	if ((user.flags & both) == both && !(user.flags & VFIO_DEVICE_FEATURE_PROBE))
		return SOFT_REFUSE(flags_together, EINVAL, "GET and SET", user.flags);
	number = user.flags & VFIO_DEVICE_FEATURE_MASK;
	/* Asked of a function that cannot migrate, this one alone is not unknown. */
	if (number == VFIO_DEVICE_FEATURE_MIG_PRECOPY_INFOv2 && !old)
		return SOFT_REFUSE(feature_migration, EINVAL, device->is.bdf, number);
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (features[i].number == number && !(old && number == VFIO_DEVICE_FEATURE_DMA_BUF))
			return use(device, &features[i], &user, (char *)argument + sizeof(user));
	return SOFT_REFUSE(feature, ENOTTY, device->is.bdf, number);
}
