/* SPDX-License-Identifier: MIT */
/*
 * Config space as vfio-pci shows it (drivers/vfio/pci/vfio_pci_config.c). The
 * hardware's own is made up from the machine's description; what is shown and
 * what may be written follows from the capabilities that are found there. BARs
 * can be sized and not moved, MSI is enabled by ioctl and not by its register,
 * power states and function resets are caught and acted on.
 *
 * What no capability owns is passed through, as are vendor capabilities: here
 * it is memory that keeps what is written, as QEMU's functions have it.
 */
#include <errno.h>
#include <string.h>

#include "soft/pci.h"

enum {
	COMMAND = 0x04,
	STATUS = 0x06,
	CLASS = 0x09,
	CACHE_LINE = 0x0c,
	LATENCY = 0x0d,
	BIST = 0x0f,
	BAR0 = 0x10,
	ROM = 0x30,
	CAPABILITIES = 0x34,
	INTERRUPT_LINE = 0x3c,
	INTERRUPT_PIN = 0x3d,
	HEADER_END = 0x40,
	CONVENTIONAL_END = 0x100,
};

#define COMMAND_IO     0x0001
#define COMMAND_MEMORY 0x0002
#define COMMAND_NOINTX 0x0400
#define STATUS_CAPS    0x0010

/* Owners of bytes: the header, capabilities by id, and what nobody owns. */
enum { HEADER = 0, PM = 0x01, MSI = 0x05, EXPRESS = 0x10, MSIX = 0x11, AF = 0x13, GAP = 0xff };

/* Where the capabilities that a function can have are put, and their lengths. */
enum { RESET_AT = 0x40, MSI_AT = 0x50, MSIX_AT = 0x60, PM_AT = 0x70, EXPRESS_AT = 0x80 };
enum { AF_SIZE = 6, MSI_SIZE = 14, MSIX_SIZE = 12, PM_SIZE = 8 };
enum { EXPRESS_SIZE = 0x3c, EXPRESS_ROOT_SIZE = 0x2c };

enum { PM_PMC = 2, PM_CONTROL = 4, MSI_FLAGS = 2, EXPRESS_CAPABLE = 4, EXPRESS_CONTROL = 8 };
enum { EXPRESS_CONTROL2 = 0x28, AF_CAPABLE = 3, AF_CONTROL = 4 };

#define PM_VERSION	  3
#define PM_PME		  0x8100
#define PM_STATE	  0x0003
#define PM_NO_RESET	  0x0008
#define MSI_ENABLE	  0x0001
#define MSI_VECTORS	  0x0070
#define MSI_64		  0x0080
#define MSIX_ENABLE	  0x8000
#define EXPRESS_ENDPOINT  0x02 /* version 2 */
#define EXPRESS_ROOT	  0x92 /* part of the root complex */
#define EXPRESS_CAN_RESET 0x10000000
#define EXPRESS_ERRORS	  0x00008000
#define EXPRESS_RESET	  0x8000
#define AF_CAN_RESET	  0x03
#define AF_RESET	  0x01

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value & 0xffff);
	put16(at + 2, value >> 16);
}

static unsigned get16(const uint8_t *at)
{
	return at[0] | (unsigned)at[1] << 8;
}

static uint32_t get32(const uint8_t *at)
{
	return get16(at) | (uint32_t)get16(at + 2) << 16;
}

unsigned soft_bar_flags(const struct dmamap_machine_device *is, unsigned bar)
{
	unsigned flags = is->bar_flags[bar];

	if (flags & DMAMAP_BAR_IO)
		return DMAMAP_BAR_IO;
	/* One that is 64-bit because it has to be is prefetchable, as large ones are. */
	if (is->bar_size[bar] && (is->bar_size[bar] > 2ULL << 30 ||
					 is->bar_address[bar] + is->bar_size[bar] - 1 > UINT32_MAX))
		flags |= DMAMAP_BAR_64 | (flags & DMAMAP_BAR_64 ? 0 : DMAMAP_BAR_PREFETCH);
	return flags;
}

/* The low bits of a BAR's register. */
static uint32_t bar_type(const struct dmamap_machine_device *is, unsigned bar)
{
	unsigned flags = soft_bar_flags(is, bar);

	if (flags & DMAMAP_BAR_IO)
		return 1;
	return (flags & DMAMAP_BAR_64 ? 4 : 0) | (flags & DMAMAP_BAR_PREFETCH ? 8 : 0);
}

/* ------------------------------------------------------------ the hardware */

/* A capability after those that are there already; the place of its first byte. */
static uint8_t *add(
	struct soft_config *config, uint8_t **link, unsigned id, unsigned at, unsigned size)
{
	**link = (uint8_t)at;
	*link = &config->hardware[at + 1];
	config->hardware[at] = (uint8_t)id;
	memset(&config->wired[at], 0, size);
	put16(&config->hardware[STATUS], STATUS_CAPS);
	return &config->hardware[at];
}

static bool on_root_bus(const struct dmamap_machine_device *is)
{
	return !strncmp(is->bdf + strlen("0000:"), "00:", 3);
}

static void add_capabilities(struct soft_device *device)
{
	const struct dmamap_machine_device *is = &device->is;
	const struct soft_msix *msix = &device->pci->msix;
	struct soft_config *config = &device->pci->config;
	uint8_t *link = &config->hardware[CAPABILITIES], *at;
	unsigned log2 = 0;

	if (is->reset && !is->express) {
		at = add(config, &link, AF, RESET_AT, AF_SIZE);
		at[2] = AF_SIZE;
		at[AF_CAPABLE] = AF_CAN_RESET;
	}
	if (is->msi) {
		while (1u << log2 < is->msi)
			log2++;
		at = add(config, &link, MSI, MSI_AT, MSI_SIZE);
		put16(at + MSI_FLAGS, MSI_64 | log2 << 1);
	}
	if (msix->vectors) {
		at = add(config, &link, MSIX, MSIX_AT, MSIX_SIZE);
		put16(at + 2, msix->vectors - 1);
		put32(at + 4, (uint32_t)msix->first | msix->bar);
		put32(at + 8, (uint32_t)((msix->end + 7) & ~7ULL) | msix->bar);
		config->msix = MSIX_AT;
	}
	if (is->express) {
		at = add(config, &link, PM, PM_AT, PM_SIZE);
		put16(at + PM_PMC, PM_VERSION);
		put16(at + PM_CONTROL, PM_NO_RESET);
		at = add(config, &link, EXPRESS, EXPRESS_AT,
			on_root_bus(is) ? EXPRESS_ROOT_SIZE : EXPRESS_SIZE);
		/* Version 2; an endpoint, or one that is part of the root complex. */
		put16(at + 2, on_root_bus(is) ? EXPRESS_ROOT : EXPRESS_ENDPOINT);
		put32(at + EXPRESS_CAPABLE, EXPRESS_ERRORS | (is->reset ? EXPRESS_CAN_RESET : 0));
		put16(&config->wired[EXPRESS_AT + EXPRESS_CONTROL], 0x7fff);
	}
}

static void build(struct soft_device *device)
{
	const struct dmamap_machine_device *is = &device->is;
	struct soft_config *config = &device->pci->config;
	unsigned command = 0;

	memset(config, 0, sizeof(*config));
	config->size = is->express ? SOFT_CONFIG_LARGEST : CONVENTIONAL_END;
	memset(config->wired + HEADER_END, 0xff, config->size - HEADER_END);
	put16(config->wired + COMMAND, 0x0507);
	config->wired[CACHE_LINE] = 0xff;
	put16(config->hardware, is->vendor);
	put16(config->hardware + 2, is->device);
	config->hardware[CLASS] = (uint8_t)is->class_code;
	put16(config->hardware + CLASS + 1, is->class_code >> 8);
	config->hardware[INTERRUPT_PIN] = is->intx;
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		uint8_t *at = config->hardware + BAR0 + 4 * i;
		uint64_t address = device->bars[i].address;

		if (!device->bars[i].size)
			continue;
		put32(at, (uint32_t)address | bar_type(is, i));
		if (soft_bar_flags(is, i) & DMAMAP_BAR_64)
			put32(at + 4, (uint32_t)(address >> 32));
		command |= is->bar_flags[i] & DMAMAP_BAR_IO ? COMMAND_IO : COMMAND_MEMORY;
	}
	if (is->rom_size)
		put32(config->hardware + ROM, SOFT_ROM_ADDRESS);
	/* Enabling a function turns on what its BARs need, and bus mastering off. */
	put16(config->hardware + COMMAND, command);
	add_capabilities(device);
}

/* -------------------------------------------------- what a user sees of it */

#define ALL 0xffffffff

/* Bits that are shown from our copy, and bits that a user may write; the others are neither. */
static const struct permission {
	uint8_t owner, at, count;
	uint32_t virtual, user;
} permissions[] = {
	{HEADER, 0, 4, ALL, 0},
	{HEADER, COMMAND, 2, COMMAND_NOINTX, ALL},
	{HEADER, STATUS, 2, STATUS_CAPS, 0},
	{HEADER, CACHE_LINE, 1, 0, ALL},
	{HEADER, LATENCY, 1, 0, ALL},
	{HEADER, BIST, 1, 0, ALL},
	{HEADER, BAR0, 4, ALL, ALL},
	{HEADER, BAR0 + 4, 4, ALL, ALL},
	{HEADER, BAR0 + 8, 4, ALL, ALL},
	{HEADER, BAR0 + 12, 4, ALL, ALL},
	{HEADER, BAR0 + 16, 4, ALL, ALL},
	{HEADER, BAR0 + 20, 4, ALL, ALL},
	{HEADER, ROM, 4, ALL, ALL},
	{HEADER, CAPABILITIES, 1, ALL, 0},
	{HEADER, INTERRUPT_LINE, 1, ALL, ALL},
	{HEADER, INTERRUPT_PIN, 1, ALL, 0},
	/* The chain is ours in each of them. */
	{PM, 1, 1, ALL, 0},
	{PM, PM_PMC, 2, 0xf800, 0},
	{PM, PM_CONTROL, 4, PM_PME, ALL & ~(PM_PME | PM_STATE)},
	{MSI, 1, 1, ALL, 0},
	{MSI, MSI_FLAGS, 1, ALL, ALL},
	{MSI, 4, 4, ALL, ALL},
	{MSI, 8, 4, ALL, ALL},
	{MSI, 12, 2, ALL, ALL},
	{MSIX, 1, 1, ALL, 0},
	/* Reset, payload and read size are virtual; phantom functions and ARI are not the user's.
	 */
	{EXPRESS, 1, 1, ALL, 0},
	{EXPRESS, EXPRESS_CONTROL, 2, 0xf0e0, 0xfdff},
	{EXPRESS, EXPRESS_CONTROL2, 2, 0, 0xffdf},
	{AF, 1, 1, ALL, 0},
	{AF, AF_CONTROL, 1, 1, 1},
};

static unsigned capability_size(const struct soft_config *config, unsigned at)
{
	switch (config->hardware[at]) {
	case PM:
		return PM_SIZE;
	case MSI:
		return MSI_SIZE;
	case MSIX:
		return MSIX_SIZE;
	case AF:
		return AF_SIZE;
	default:
		return config->hardware[at + 2] == EXPRESS_ROOT ? EXPRESS_ROOT_SIZE : EXPRESS_SIZE;
	}
}

static void own(struct soft_config *config, unsigned owner, unsigned at, unsigned size)
{
	memset(config->owner + at, (int)owner, size);
	memset(config->user + at, 0, size);
	for (size_t i = 0; i < sizeof(permissions) / sizeof(permissions[0]); i++) {
		const struct permission *one = &permissions[i];

		for (unsigned j = 0; j < one->count && one->owner == owner; j++) {
			config->virtual[at + one->at + j] = (uint8_t)(one->virtual >> (8 * j));
			config->user[at + one->at + j] = (uint8_t)(one->user >> (8 * j));
		}
	}
}

void soft_config_open(struct soft_device *device)
{
	struct soft_config *config = &device->pci->config;

	build(device);
	memcpy(config->shown, config->hardware, config->size);
	memset(config->owner, GAP, config->size);
	memset(config->user, 0xff, config->size);
	own(config, HEADER, 0, HEADER_END);
	for (unsigned at = config->hardware[CAPABILITIES]; at; at = config->hardware[at + 1])
		own(config, config->hardware[at], at, capability_size(config, at));
	soft_pci_memory_changed(device);
}

int soft_config_copy(struct soft_device *device, void *to, size_t size)
{
	const struct soft_config *config = &device->pci->config;

	pthread_mutex_lock(&device->lock);
	if (size > config->size)
		size = config->size;
	memcpy(to, config->hardware, size);
	pthread_mutex_unlock(&device->lock);
	return (int)size;
}

bool soft_config_memory_on(const struct soft_device *device)
{
	const struct soft_config *config = &device->pci->config;

	return config->power < SOFT_POWER_D3 && config->shown[COMMAND] & COMMAND_MEMORY;
}

bool soft_config_io_on(const struct soft_device *device)
{
	return get16(device->pci->config.hardware + COMMAND) & COMMAND_IO;
}

bool soft_config_intx_off(const struct soft_device *device)
{
	return get16(device->pci->config.shown + COMMAND) & COMMAND_NOINTX;
}

void soft_config_wake(struct soft_device *device)
{
	struct soft_config *config = &device->pci->config;

	config->power = SOFT_POWER_D0;
	for (unsigned at = config->hardware[CAPABILITIES]; at; at = config->hardware[at + 1])
		if (config->hardware[at] == PM)
			config->hardware[at + PM_CONTROL] &= (uint8_t)~PM_STATE;
}

void soft_config_msix_enable(struct soft_device *device, bool on)
{
	struct soft_config *config = &device->pci->config;
	uint8_t *flags = config->hardware + config->msix + 2;

	put16(flags, (get16(flags) & ~MSIX_ENABLE) | (on ? MSIX_ENABLE : 0));
}

/* ------------------------------------------------------------------ access */

/* What is shown of the BARs has the address bits that their sizes leave. */
static void cut_bars(struct soft_device *device)
{
	struct soft_config *config = &device->pci->config;
	const struct dmamap_machine_device *is = &device->is;

	if (!config->bars_written)
		return;
	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		uint8_t *at = config->shown + BAR0 + 4 * i;
		uint64_t mask = ~(is->bar_size[i] - 1);

		if (!is->bar_size[i]) {
			put32(at, 0);
			continue;
		}
		put32(at, (get32(at) & (uint32_t)mask) | bar_type(is, i));
		if (soft_bar_flags(is, i) & DMAMAP_BAR_64) {
			put32(at + 4, get32(at + 4) & (uint32_t)(mask >> 32));
			i++;
		}
	}
	put32(config->shown + ROM,
		is->rom_size ? get32(config->shown + ROM) & (~(is->rom_size - 1) | 1) : 0);
	config->bars_written = false;
}

static bool is_bar(unsigned at)
{
	return (at >= BAR0 && at < BAR0 + 4 * DMAMAP_MACHINE_BARS) || (at >= ROM && at < ROM + 4);
}

static void command_written(struct soft_device *device, unsigned value)
{
	struct soft_config *config = &device->pci->config;
	unsigned enables = COMMAND_MEMORY | COMMAND_IO;
	uint8_t *shown = config->shown + COMMAND;

	/* Off first: what is mapped goes even where nothing changes. */
	if (!(value & COMMAND_MEMORY))
		soft_dmabuf_move(device, true);
	put16(shown, (get16(shown) & ~enables) | (value & enables));
	soft_pci_memory_changed(device);
}

static void power_written(struct soft_device *device, unsigned at, unsigned value)
{
	struct soft_config *config = &device->pci->config;
	uint8_t *control = config->hardware + at;
	unsigned state = value & PM_STATE;

	/* The states between are not provided: they change nothing. */
	if (state == SOFT_POWER_D3)
		soft_dmabuf_move(device, true);
	if (state == SOFT_POWER_D3 || state == SOFT_POWER_D0) {
		config->power = (enum soft_power)state;
		put16(control, (get16(control) & ~PM_STATE) | state);
	}
	soft_pci_memory_changed(device);
}

static void msi_written(struct soft_device *device, unsigned start)
{
	struct soft_config *config = &device->pci->config;
	const struct soft_irqs *irqs = &device->pci->irqs;
	uint8_t *shown = config->shown + start + MSI_FLAGS;
	unsigned flags = get16(shown);

	/* It is enabled by ioctl, and not with more vectors than were asked for there. */
	if (irqs->type != VFIO_PCI_MSI_IRQ_INDEX)
		flags &= ~MSI_ENABLE;
	if ((flags & MSI_VECTORS) >> 4 > irqs->msi_most)
		flags = (flags & ~MSI_VECTORS) | irqs->msi_most << 4;
	put16(shown, flags);
}

/* Where the capability that @at is part of starts. */
static unsigned start_of(const struct soft_config *config, unsigned at)
{
	if (config->owner[at] == HEADER)
		return 0;
	while (at > HEADER_END && config->owner[at - 1] == config->owner[at])
		at--;
	return at;
}

/* What a write of @count bytes at @at sets off; @value is what was written there. */
static void act_on(struct soft_device *device, unsigned at, unsigned count, unsigned value)
{
	struct soft_config *config = &device->pci->config;
	unsigned start = start_of(config, at), offset = at - start;
	uint8_t *control;

	switch (config->owner[at]) {
	case HEADER:
		if (at == COMMAND)
			command_written(device, value);
		if (is_bar(at))
			config->bars_written = true;
		break;
	case PM:
		if (offset == PM_CONTROL)
			power_written(device, at, value);
		break;
	case MSI:
		if (offset <= MSI_FLAGS && offset + count >= MSI_FLAGS)
			msi_written(device, start);
		break;
	case EXPRESS:
		control = config->shown + start + EXPRESS_CONTROL;
		if (!(get16(control) & EXPRESS_RESET))
			break;
		put16(control, get16(control) & ~EXPRESS_RESET);
		if (get32(config->hardware + start + EXPRESS_CAPABLE) & EXPRESS_CAN_RESET)
			soft_pci_reset(device);
		break;
	case AF:
		control = config->shown + start + AF_CONTROL;
		if (!(*control & AF_RESET))
			break;
		*control &= (uint8_t)~AF_RESET;
		soft_pci_reset(device);
		break;
	}
}

static void write_bytes(
	struct soft_device *device, unsigned at, unsigned count, const uint8_t *bytes)
{
	struct soft_config *config = &device->pci->config;
	unsigned value = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned one = at + i;
		uint8_t shown = config->user[one] & config->virtual[one];
		uint8_t hardware = config->user[one] & ~config->virtual[one] & config -> wired[one];

		config->shown[one] = (uint8_t)((config->shown[one] & ~shown) | (bytes[i] & shown));
		config->hardware[one] =
			(uint8_t)((config->hardware[one] & ~hardware) | (bytes[i] & hardware));
		value |= (unsigned)bytes[i] << (8 * i);
	}
	act_on(device, at, count, value);
}

static void read_bytes(struct soft_device *device, unsigned at, unsigned count, uint8_t *bytes)
{
	struct soft_config *config = &device->pci->config;

	if (is_bar(at))
		cut_bars(device);
	for (unsigned i = 0; i < count; i++)
		bytes[i] = (uint8_t)((config->hardware[at + i] & ~config->virtual[at + i]) |
				     (config->shown[at + i] & config->virtual[at + i]));
}

/* How much is done at once: aligned, in one dword and of one capability. */
static unsigned step_of(const struct soft_config *config, unsigned at, size_t count)
{
	size_t room = 1;

	while ((at + room) % 4 && config->owner[at + room] == config->owner[at])
		room++;
	if (count > room)
		count = room;
	if (count >= 4 && !(at % 4))
		return 4;
	return count >= 2 && !(at % 2) ? 2 : 1;
}

ssize_t soft_config_access(
	struct soft_device *device, void *buffer, size_t size, uint64_t at, bool write)
{
	struct soft_config *config = &device->pci->config;
	uint8_t bytes[4];
	size_t done = 0;
	int error = 0;

	if (at >= config->size || size > config->size - at)
		return SOFT_REFUSE(region_end, EFAULT, NULL, at, size, VFIO_PCI_CONFIG_REGION_INDEX,
			config->size);
	pthread_mutex_lock(&device->lock);
	while (done < size && !error) {
		unsigned one = (unsigned)(at + done), n = step_of(config, one, size - done);
		char *user = (char *)buffer + done;

		if (!write) {
			read_bytes(device, one, n, bytes);
			error = soft_copy_out(user, bytes, n, "config space");
		} else if (config->owner[one] != MSIX) {
			/* What nobody may write to is not even looked at. */
			error = soft_copy_in(bytes, user, n, "config space");
			if (!error)
				write_bytes(device, one, n, bytes);
		}
		done += n;
	}
	pthread_mutex_unlock(&device->lock);
	return error ? error : (ssize_t)done;
}
