/* SPDX-License-Identifier: MIT */
/*
 * BARs and the ROM: reading and writing them through the device's descriptor,
 * mapping them, and eventfds whose signal writes to them
 * (drivers/vfio/pci/vfio_pci_rdwr.c, vfio_pci_core_mmap()).
 *
 * The MSI-X table can be mapped, but is not there for read and write: reads
 * give ones, writes go nowhere. Memory answers EIO while its decoding is off;
 * ports then read as ones. A ROM is all zeros: who made it is not described.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "soft/pci.h"

/* Linux's VFIO_PCI_IOEVENTFD_MAX. */
#define IOEVENTFDS_MAX 1000

struct soft_ioeventfd {
	struct soft_ioeventfd *next;
	struct soft_listener *listener;
	struct soft_device *device;
	unsigned bar;
	uint64_t at, data;
	unsigned size;
};

static bool is_io(const struct soft_device *device, unsigned bar)
{
	return device->is.bar_flags[bar] & DMAMAP_BAR_IO;
}

/* ---------------------------------------------------------- read and write */

/* The bytes from @at on that a table in the BAR does not touch, or that it has (*table). */
static size_t run(const struct soft_msix *msix, unsigned bar, uint64_t at, size_t size, bool *table)
{
	uint64_t room = size;

	*table = false;
	if (!msix->vectors || msix->bar != bar || at >= msix->end)
		return size;
	*table = at >= msix->first;
	room = *table ? msix->end - at : msix->first - at;
	return room < size ? (size_t)room : size;
}

static int fill(char *user, size_t size, uint8_t byte)
{
	uint8_t bytes[256];
	int error = 0;

	memset(bytes, byte, sizeof(bytes));
	for (size_t done = 0, n; done < size && !error; done += n) {
		n = size - done < sizeof(bytes) ? size - done : sizeof(bytes);
		error = soft_copy_out(user + done, bytes, n, "a BAR");
	}
	return error;
}

static bool decodes(struct soft_device *device, unsigned bar)
{
	bool on;

	pthread_mutex_lock(&device->lock);
	if (is_io(device, bar))
		on = soft_config_io_on(device);
	else
		on = soft_config_memory_on(device);
	pthread_mutex_unlock(&device->lock);
	return on;
}

/* As the bus does it: in units of 8, 4, 2 and 1 bytes, aligned, each of them at once. */
static size_t unit_of(uint64_t at, size_t size)
{
	size_t unit = 8;

	while (size < unit || at % unit)
		unit /= 2;
	return unit;
}

/* Bytes as a number, whatever their type was. */
typedef uint16_t __attribute__((may_alias)) unit16;
typedef uint32_t __attribute__((may_alias)) unit32;
typedef uint64_t __attribute__((may_alias)) unit64;

#define MOVE(type, to, from)                                                                       \
	__atomic_store_n((type *)(void *)(to),                                                     \
		__atomic_load_n((type *)(void *)(from), __ATOMIC_RELAXED), __ATOMIC_RELAXED)

/* One of the two is in the BAR, and the other as aligned as that. */
static void move(uint8_t *to, uint8_t *from, uint64_t at, size_t size)
{
	for (size_t done = 0, unit; done < size; done += unit) {
		unit = unit_of(at + done, size - done);
		if (unit == 8)
			MOVE(unit64, to + done, from + done);
		else if (unit == 4)
			MOVE(unit32, to + done, from + done);
		else if (unit == 2)
			MOVE(unit16, to + done, from + done);
		else
			MOVE(uint8_t, to + done, from + done);
	}
}

/* A piece at a time, so that what comes before a bad address is done. */
static int move_run(const struct soft_bar *bar, char *user, size_t size, uint64_t at, bool write)
{
	_Alignas(8) uint8_t words[256];
	int error = 0;

	for (size_t done = 0, n; done < size && !error; done += n) {
		/* Of the same alignment as the BAR's bytes. */
		uint8_t *bytes = words + (at + done) % 8;
		size_t room = sizeof(words) - (at + done) % 8;
		uint8_t *host = (uint8_t *)bar->host + at + done;

		n = size - done < room ? size - done : room;
		if (write) {
			error = soft_copy_in(bytes, user + done, n, "a BAR");
			if (!error)
				move(host, bytes, at + done, n);
		} else {
			move(bytes, host, at + done, n);
			error = soft_copy_out(user + done, bytes, n, "a BAR");
		}
	}
	return error;
}

static int bar_run(
	struct soft_device *device, unsigned bar, char *user, size_t size, uint64_t at, bool write)
{
	uint8_t first;
	int error = 0;

	if (decodes(device, bar))
		return move_run(&device->bars[bar], user, size, at, write);
	/* What is written is fetched before it is found that there is nowhere to put it. */
	if (write)
		error = soft_copy_in(&first, user, 1, "a BAR");
	if (error)
		return error;
	if (!is_io(device, bar))
		return SOFT_REFUSE(
			bar_off, EIO, device->is.bdf, device->bars[bar].address + at, bar);
	return write ? 0 : fill(user, size, 0xff);
}

ssize_t soft_bar_access(struct soft_device *device, unsigned region, void *buffer, size_t size,
	uint64_t at, bool write)
{
	bool rom = region == VFIO_PCI_ROM_REGION_INDEX, table;
	uint64_t end = rom ? device->is.rom_size : device->bars[region].size;
	size_t n;
	int error = 0;

	if (at >= end)
		return SOFT_REFUSE(region_end, EINVAL, NULL, at, size, region, end);
	if (size > end - at)
		size = (size_t)(end - at);
	if (rom) {
		error = fill(buffer, size, 0);
		return error ? error : (ssize_t)size;
	}
	for (size_t done = 0; done < size && !error; done += n) {
		char *user = (char *)buffer + done;

		n = run(&device->pci->msix, region, at + done, size - done, &table);
		if (!table)
			error = bar_run(device, region, user, n, at + done, write);
		else if (!write)
			error = fill(user, n, 0xff);
	}
	return error ? error : (ssize_t)size;
}

/* -------------------------------------------------------------------- mmap */

/* Another function's BAR is in the page. */
static bool page_is_shared(const struct soft_device *device, unsigned bar, uint64_t page)
{
	const struct dmamap_machine *machine = &device->system->machine;
	uint64_t first = device->bars[bar].address & ~(page - 1), last = first + page - 1;

	for (size_t i = 0; i < machine->n_devices; i++) {
		const struct dmamap_machine_device *other = &machine->devices[i];

		for (unsigned j = 0; j < DMAMAP_MACHINE_BARS; j++) {
			uint64_t start = other->bar_address[j];

			if (!other->bar_size[j] || other->bar_flags[j] & DMAMAP_BAR_IO)
				continue;
			if (j == bar && !strcmp(other->bdf, device->is.bdf))
				continue;
			if (start <= last && start + other->bar_size[j] - 1 >= first)
				return true;
		}
	}
	return false;
}

uint64_t soft_pci_bar_mappable(const struct soft_device *device, unsigned bar)
{
	uint64_t page = soft_page_size(device->system), size = device->bars[bar].size;

	if (!size || is_io(device, bar))
		return 0;
	/* Smaller than a page: only where nothing else can share it. */
	if (size < page &&
		(device->bars[bar].address & (page - 1) || page_is_shared(device, bar, page)))
		return 0;
	return (size + page - 1) & ~(page - 1);
}

int soft_pci_mmap(struct soft_device *device, struct soft_file *file, void *address, size_t length,
	int prot, int flags, uint64_t offset, void **out)
{
	uint64_t index = offset >> SOFT_REGION_SHIFT, at = offset & SOFT_REGION_MASK, room;
	struct soft_vma vma = {
		.device = device,
		.bar = (unsigned)index,
		.offset = at,
		.prot = (unsigned)prot,
		.file = file,
	};

	if (index >= VFIO_PCI_NUM_REGIONS)
		return SOFT_REFUSE(region, EINVAL, NULL, index);
	if ((flags & MAP_TYPE) != MAP_SHARED && (flags & MAP_TYPE) != MAP_SHARED_VALIDATE)
		return SOFT_REFUSE(mmap_shared, EINVAL, NULL, 0);
	room = index < DMAMAP_MACHINE_BARS ? soft_pci_bar_mappable(device, (unsigned)index) : 0;
	if (!room)
		return SOFT_REFUSE(region_mmap, EINVAL, NULL, index);
	if (at > room || length > room - at)
		return SOFT_REFUSE(region_end, EINVAL, NULL, at, length, index, room);
	return soft_vma_mmap(&device->system->vmas, &vma, address, length, prot, flags,
		device->bars[index].fd, out);
}

/* ------------------------------------------ writes that an eventfd sets off */

/* By the listener's thread: what it needs of the device changes at once or not at all. */
static void heard(void *who)
{
	struct soft_ioeventfd *one = who;
	uint8_t *host = (uint8_t *)one->device->bars[one->bar].host + one->at;
	_Alignas(8) uint8_t words[16];
	uint8_t *bytes = words + one->at % 8;

	if (!is_io(one->device, one->bar) && !soft_pci_decodes(one->device))
		return;
	memcpy(bytes, &one->data, one->size);
	move(host, bytes, one->at, one->size);
}

static int arguments(void *argument, struct vfio_device_ioeventfd *user)
{
	const size_t size = SOFT_END_OF(vfio_device_ioeventfd, fd);
	int error = soft_copy_in(user, argument, size, "vfio_device_ioeventfd");

	if (error)
		return error;
	if (user->argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_device_ioeventfd", user->argsz, size);
	if (user->flags & ~(uint32_t)VFIO_DEVICE_IOEVENTFD_SIZE_MASK)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_DEVICE_IOEVENTFD", user->flags,
			VFIO_DEVICE_IOEVENTFD_SIZE_MASK);
	if (!user->flags || user->flags & (user->flags - 1))
		return SOFT_REFUSE(ioeventfd_size, EINVAL, NULL, user->flags);
	if (user->fd < -1)
		return SOFT_REFUSE(value, EINVAL, "an eventfd", (uint32_t)user->fd);
	return 0;
}

static int place(const struct soft_device *device, const struct vfio_device_ioeventfd *user)
{
	uint64_t index = user->offset >> SOFT_REGION_SHIFT, at = user->offset & SOFT_REGION_MASK;
	const struct soft_msix *msix = &device->pci->msix;

	if (index >= DMAMAP_MACHINE_BARS)
		return SOFT_REFUSE(ioeventfd_region, EINVAL, NULL, index);
	if (at + user->flags > device->bars[index].size)
		return SOFT_REFUSE(
			region_end, EINVAL, NULL, at, user->flags, index, device->bars[index].size);
	if (msix->vectors && msix->bar == index && at + user->flags > msix->first && at < msix->end)
		return SOFT_REFUSE(msix_table, EINVAL, NULL, at, at + user->flags - 1, msix->first,
			msix->end - 1, index);
	return 0;
}

static struct soft_ioeventfd **find(struct soft_pci *pci, const struct vfio_device_ioeventfd *user)
{
	struct soft_ioeventfd **link;

	for (link = &pci->ioeventfds; *link; link = &(*link)->next)
		if ((*link)->bar == user->offset >> SOFT_REGION_SHIFT &&
			(*link)->at == (user->offset & SOFT_REGION_MASK) &&
			(*link)->data == user->data && (*link)->size == user->flags)
			break;
	return link;
}

static void drop(struct soft_pci *pci, struct soft_ioeventfd **link)
{
	struct soft_ioeventfd *one = *link;

	*link = one->next;
	pci->n_ioeventfds--;
	soft_listener_remove(&pci->listeners, one->listener);
	free(one);
}

static int change(struct soft_device *device, const struct vfio_device_ioeventfd *user)
{
	struct soft_pci *pci = device->pci;
	struct soft_ioeventfd **link = find(pci, user), *made;
	int error;

	if (*link) {
		if (user->fd >= 0)
			return SOFT_REFUSE(
				ioeventfd_exists, EEXIST, NULL, user->data, user->offset);
		drop(pci, link);
		return 0;
	}
	if (user->fd < 0)
		return SOFT_REFUSE(ioeventfd_none, ENODEV, NULL, user->data, user->offset);
	if (pci->n_ioeventfds >= IOEVENTFDS_MAX)
		return SOFT_REFUSE(ioeventfd_full, ENOSPC, NULL, pci->n_ioeventfds);
	made = calloc(1, sizeof(*made));
	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "an eventfd", 0);
	made->device = device;
	made->bar = (unsigned)(user->offset >> SOFT_REGION_SHIFT);
	made->at = user->offset & SOFT_REGION_MASK;
	made->data = user->data;
	made->size = user->flags;
	error = soft_listener_add(&pci->listeners, user->fd, heard, made, &made->listener);
	if (error) {
		free(made);
		return error;
	}
	made->next = pci->ioeventfds;
	pci->ioeventfds = made;
	pci->n_ioeventfds++;
	return 0;
}

int soft_ioeventfd(struct soft_device *device, void *argument)
{
	struct vfio_device_ioeventfd user;
	int error = arguments(argument, &user);

	if (!error)
		error = place(device, &user);
	if (error)
		return error;
	pthread_mutex_lock(&device->lock);
	error = change(device, &user);
	pthread_mutex_unlock(&device->lock);
	return error;
}

void soft_ioeventfds_close(struct soft_device *device)
{
	while (device->pci->ioeventfds)
		drop(device->pci, &device->pci->ioeventfds);
}
