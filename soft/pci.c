/* SPDX-License-Identifier: MIT */
/*
 * What vfio-pci shows of a function: its regions, 256 bytes of config space,
 * and its interrupts. The function is a conventional one that can be reset by
 * itself (Advanced Features), without MSI: BAR memory and nothing else.
 *
 * Config space is virtual where vfio-pci makes it so: BARs can be sized but not
 * moved, and bus mastering is off when a device is opened.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/vfio.h"
#include "soft/soft.h"

#define END_OF(type, field) (offsetof(struct type, field) + sizeof(((struct type *)0)->field))

/* A region is named by the bits from 40 on of the file's offset. */
#define REGION_SHIFT 40
#define REGION_MASK  ((1ULL << REGION_SHIFT) - 1)

enum { CONFIG_COMMAND = 0x04, CONFIG_STATUS = 0x06, CONFIG_CLASS = 0x09, CONFIG_BAR0 = 0x10 };
enum { CONFIG_CAPABILITIES = 0x34, CONFIG_AF = 0x40 };

#define COMMAND_MEMORY 0x0002
#define BAR_64BIT      0x4
#define BAR_PREFETCH   0x8

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, (uint16_t)value);
	put16(at + 2, (uint16_t)(value >> 16));
}

static uint32_t get32(const uint8_t *at)
{
	return at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool is_64bit(const struct soft_bar *bar)
{
	return bar->size && (bar->size > 2ULL << 30 || bar->address + bar->size - 1 > UINT32_MAX);
}

void soft_pci_reset_config(struct soft_device *device)
{
	/* Advanced Features: 6 bytes long, function reset and its pending bit. */
	static const uint8_t advanced[6] = {0x13, 0, 6, 0x03, 0, 0};
	uint8_t *config = device->config;

	memset(config, 0, SOFT_CONFIG_SIZE);
	put16(config, device->is.vendor);
	put16(config + 2, device->is.device);
	put16(config + CONFIG_COMMAND, COMMAND_MEMORY);
	put16(config + CONFIG_STATUS, 0x0010);
	config[CONFIG_CLASS] = (uint8_t)device->is.class_code;
	put16(config + CONFIG_CLASS + 1, (uint16_t)(device->is.class_code >> 8));
	config[CONFIG_CAPABILITIES] = CONFIG_AF;
	memcpy(config + CONFIG_AF, advanced, sizeof(advanced));
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		const struct soft_bar *bar = &device->bars[i];
		uint8_t *at = config + CONFIG_BAR0 + 4 * i;

		if (!bar->size)
			continue;
		put32(at, (uint32_t)bar->address | (is_64bit(bar) ? BAR_64BIT | BAR_PREFETCH : 0));
		if (is_64bit(bar))
			put32(at + 4, (uint32_t)(bar->address >> 32));
	}
}

void soft_pci_enable(struct soft_device *device)
{
	soft_pci_reset_config(device);
	atomic_store(&device->memory_on, true);
}

uint64_t soft_pci_bar_mappable(const struct soft_device *device, unsigned bar)
{
	uint64_t page = soft_page_size(device->system), size = device->bars[bar].size;

	/* Smaller than a page: only where nothing else can share it. */
	if (!size || (size < page && device->bars[bar].address & (page - 1)))
		return 0;
	return (size + page - 1) & ~(page - 1);
}

/* Which bits of a byte of config space a write changes. */
static uint8_t writable_bits(const struct soft_device *device, unsigned at)
{
	static const struct {
		uint8_t at, bits;
	} table[] = {
		{CONFIG_COMMAND, 0x47},	    /* I/O, memory, bus master, parity */
		{CONFIG_COMMAND + 1, 0x05}, /* SERR, INTx disable */
		{0x0c, 0xff},		    /* cache line size */
		{0x0d, 0xff},		    /* latency timer */
		{0x3c, 0xff},		    /* interrupt line */
	};
	unsigned bar = (at - CONFIG_BAR0) / 4, byte = at % 4;
	uint64_t size;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].at == at)
			return table[i].bits;
	if (at < CONFIG_BAR0 || bar >= DMAMAP_MACHINE_BARS)
		return 0;
	size = device->bars[bar].size;
	if (!size && bar && is_64bit(&device->bars[bar - 1])) {
		size = device->bars[bar - 1].size;
		byte += 4;
	}
	/* Address bits below the size are not there: that is how a BAR is sized. */
	return size ? (uint8_t)(~(size - 1) >> (8 * byte)) : 0;
}

static ssize_t config_access(
	struct soft_device *device, void *buffer, size_t size, uint64_t at, bool write)
{
	uint8_t bytes[SOFT_CONFIG_SIZE];
	int error = 0;

	if (at >= SOFT_CONFIG_SIZE || size > SOFT_CONFIG_SIZE - at)
		return SOFT_REFUSE(region_end, EFAULT, NULL, at, size, VFIO_PCI_CONFIG_REGION_INDEX,
			SOFT_CONFIG_SIZE);
	if (write)
		error = soft_copy_in(bytes, buffer, size, "config space");
	if (error)
		return error;
	pthread_mutex_lock(&device->lock);
	for (size_t i = 0; i < size && write; i++) {
		uint8_t bits = writable_bits(device, (unsigned)(at + i));
		uint8_t *byte = &device->config[at + i];

		*byte = (uint8_t)((*byte & ~bits) | (bytes[i] & bits));
	}
	if (write)
		atomic_store(&device->memory_on,
			get32(device->config + CONFIG_COMMAND) & COMMAND_MEMORY);
	else
		memcpy(bytes, device->config + at, size);
	pthread_mutex_unlock(&device->lock);
	if (!write)
		error = soft_copy_out(buffer, bytes, size, "config space");
	return error ? error : (ssize_t)size;
}

static ssize_t bar_access(struct soft_device *device, unsigned index, void *buffer, size_t size,
	uint64_t at, bool write)
{
	struct soft_bar *bar = &device->bars[index];
	char *host;
	int error;

	if (!bar->size || at >= bar->size)
		return SOFT_REFUSE(region_end, EINVAL, NULL, at, size, index, bar->size);
	if (size > bar->size - at)
		size = bar->size - at;
	if (!atomic_load(&device->memory_on))
		return SOFT_REFUSE(bar_off, EIO, device->is.bdf, bar->address + at, index);
	host = (char *)bar->host + at;
	if (write)
		error = soft_copy_in(host, buffer, size, "a BAR");
	else
		error = soft_copy_out(buffer, host, size, "a BAR");
	return error ? error : (ssize_t)size;
}

ssize_t soft_pci_access(
	struct soft_device *device, void *buffer, size_t size, uint64_t offset, bool write)
{
	uint64_t index = offset >> REGION_SHIFT, at = offset & REGION_MASK;

	if (index < DMAMAP_MACHINE_BARS)
		return bar_access(device, (unsigned)index, buffer, size, at, write);
	if (index == VFIO_PCI_CONFIG_REGION_INDEX)
		return config_access(device, buffer, size, at, write);
	/* No ROM and no VGA. */
	return SOFT_REFUSE(region, EINVAL, NULL, index);
}

int soft_pci_mmap(struct soft_device *device, struct soft_file *file, void *address, size_t length,
	int prot, int flags, uint64_t offset, void **out)
{
	uint64_t index = offset >> REGION_SHIFT, at = offset & REGION_MASK, room;
	struct soft_vma vma = {
		.device = device,
		.bar = (unsigned)index,
		.offset = at,
		.prot = (unsigned)prot,
		.file = file,
	};

	if (!length)
		return SOFT_REFUSE(length_zero, EINVAL, "mmap", 0);
	if (offset & (soft_page_size(device->system) - 1))
		return SOFT_REFUSE(
			misaligned, EINVAL, "offset", offset, soft_page_size(device->system));
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

static int get_info(void *argument)
{
	size_t size = END_OF(vfio_device_info, num_irqs);
	struct vfio_device_info info = {0};
	int error = soft_copy_in(&info, argument, size, "vfio_device_info");

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_device_info", info.argsz, size);
	size = info.argsz < sizeof(info) ? info.argsz : sizeof(info);
	info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	info.num_regions = VFIO_PCI_NUM_REGIONS;
	info.num_irqs = VFIO_PCI_NUM_IRQS;
	return soft_copy_out(argument, &info, size, "vfio_device_info");
}

static int get_region_info(struct soft_device *device, void *argument)
{
	struct vfio_region_info info;
	int error = soft_copy_in(&info, argument, sizeof(info), "vfio_region_info");

	if (error)
		return error;
	if (info.argsz < sizeof(info))
		return SOFT_REFUSE(argsz, EINVAL, "vfio_region_info", info.argsz, sizeof(info));
	if (info.index > VFIO_PCI_CONFIG_REGION_INDEX)
		return SOFT_REFUSE(region, EINVAL, NULL, info.index);
	info.offset = (uint64_t)info.index << REGION_SHIFT;
	info.size = 0;
	info.flags = 0;
	if (info.index == VFIO_PCI_CONFIG_REGION_INDEX)
		info.size = SOFT_CONFIG_SIZE;
	else if (info.index < DMAMAP_MACHINE_BARS)
		info.size = device->bars[info.index].size;
	if (info.size)
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (info.index < DMAMAP_MACHINE_BARS && soft_pci_bar_mappable(device, info.index))
		info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
	return soft_copy_out(argument, &info, sizeof(info), "vfio_region_info");
}

static int get_irq_info(void *argument)
{
	/* INTx (no pin), MSI, MSI-X, error, request: how many, and what else may be done. */
	static const struct {
		uint32_t count, flags;
	} irqs[VFIO_PCI_NUM_IRQS] = {
		[VFIO_PCI_INTX_IRQ_INDEX] = {0, VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED},
		[VFIO_PCI_MSI_IRQ_INDEX] = {0, VFIO_IRQ_INFO_NORESIZE},
		[VFIO_PCI_MSIX_IRQ_INDEX] = {0, VFIO_IRQ_INFO_NORESIZE},
		[VFIO_PCI_ERR_IRQ_INDEX] = {1, VFIO_IRQ_INFO_NORESIZE},
		[VFIO_PCI_REQ_IRQ_INDEX] = {1, VFIO_IRQ_INFO_NORESIZE},
	};
	const size_t size = END_OF(vfio_irq_info, count);
	struct vfio_irq_info info;
	int error = soft_copy_in(&info, argument, size, "vfio_irq_info");

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_irq_info", info.argsz, size);
	if (info.index >= VFIO_PCI_NUM_IRQS)
		return SOFT_REFUSE(irq, EINVAL, NULL, info.index);
	info.flags = VFIO_IRQ_INFO_EVENTFD | irqs[info.index].flags;
	info.count = irqs[info.index].count;
	return soft_copy_out(argument, &info, size, "vfio_irq_info");
}

static int feature(void *argument)
{
	const uint32_t known = VFIO_DEVICE_FEATURE_MASK | VFIO_DEVICE_FEATURE_SET |
			       VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_PROBE;
	const size_t size = END_OF(vfio_device_feature, flags);
	struct vfio_device_feature user;
	bool both;
	int error = soft_copy_in(&user, argument, size, "vfio_device_feature");

	if (error)
		return error;
	if (user.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_device_feature", user.argsz, size);
	if (user.flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_DEVICE_FEATURE", user.flags, known);
	both = user.flags & VFIO_DEVICE_FEATURE_SET && user.flags & VFIO_DEVICE_FEATURE_GET;
	if (both && !(user.flags & VFIO_DEVICE_FEATURE_PROBE))
		return SOFT_REFUSE(flags_together, EINVAL, "GET and SET", user.flags);
	return SOFT_REFUSE(
		not_provided, ENOTTY, "that device feature", user.flags & VFIO_DEVICE_FEATURE_MASK);
}

int soft_pci_ioctl(struct soft_device *device, unsigned request, void *argument)
{
	switch (request) {
	case VFIO_DEVICE_GET_INFO:
		return get_info(argument);
	case VFIO_DEVICE_GET_REGION_INFO:
		return get_region_info(device, argument);
	case VFIO_DEVICE_GET_IRQ_INFO:
		return get_irq_info(argument);
	case VFIO_DEVICE_RESET:
		/* Linux saves config space before the reset and restores it after. */
		return 0;
	case VFIO_DEVICE_FEATURE:
		return feature(argument);
	case VFIO_DEVICE_SET_IRQS:
		return SOFT_REFUSE(not_provided, ENOTTY, "VFIO_DEVICE_SET_IRQS", 0);
	case VFIO_DEVICE_GET_PCI_HOT_RESET_INFO:
	case VFIO_DEVICE_PCI_HOT_RESET:
		return SOFT_REFUSE(not_provided, ENOTTY, "hot reset", 0);
	case VFIO_DEVICE_IOEVENTFD:
		return SOFT_REFUSE(not_provided, ENOTTY, "VFIO_DEVICE_IOEVENTFD", 0);
	default:
		return SOFT_REFUSE(request, ENOTTY, "a device", request);
	}
}
