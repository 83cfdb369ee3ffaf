/* SPDX-License-Identifier: MIT */
/* The driver's side of a virtqueue, for tests of the device's side. */
#include "ring_driver.h"

#include <errno.h>
#include <string.h>

#include "dmamap/common.h"

/* Where the areas lie in the rings' memory. */
#define DRIVER_AREA 0x4000u
#define DEVICE_AREA 0x8000u

#define WRAP	  0x8000u
#define AVAIL_BIT (1u << VRING_PACKED_DESC_F_AVAIL)
#define USED_BIT  (1u << VRING_PACKED_DESC_F_USED)

static int find(struct dmamap_dma *dma, uint64_t iova, struct dmamap_dma_region *region)
{
	struct ring_driver *driver = (struct ring_driver *)dma;
	static const struct {
		uint64_t first, bytes;
		unsigned prot;
	} regions[] = {
		{RING_IOVA, RING_BYTES, DMAMAP_READ | DMAMAP_WRITE},
		{DATA_IOVA, DATA_BYTES, DMAMAP_READ | DMAMAP_WRITE},
		{CONST_IOVA, CONST_BYTES, DMAMAP_READ},
	};

	for (unsigned i = 0; i < 3; i++) {
		if (iova < regions[i].first || iova - regions[i].first >= regions[i].bytes)
			continue;
		region->first = regions[i].first;
		region->last = regions[i].first + regions[i].bytes - 1;
		region->va = ring_driver_at(driver, regions[i].first);
		region->prot = regions[i].prot;
		return 0;
	}
	return -EFAULT;
}

void *ring_driver_at(const struct ring_driver *driver, uint64_t iova)
{
	return driver->memory + (iova - RING_IOVA);
}

struct vring_desc *ring_driver_desc(const struct ring_driver *driver)
{
	return (struct vring_desc *)(void *)driver->memory;
}

struct vring_avail *ring_driver_avail(const struct ring_driver *driver)
{
	return (struct vring_avail *)(void *)(driver->memory + DRIVER_AREA);
}

struct vring_used *ring_driver_used(const struct ring_driver *driver)
{
	return (struct vring_used *)(void *)(driver->memory + DEVICE_AREA);
}

struct vring_packed_desc *ring_driver_packed(const struct ring_driver *driver)
{
	return (struct vring_packed_desc *)(void *)driver->memory;
}

static struct vring_packed_desc_event *event(const struct ring_driver *driver, unsigned area)
{
	return (struct vring_packed_desc_event *)(void *)(driver->memory + area);
}

static uint16_t after(const struct ring_driver *driver, uint16_t place, uint32_t count)
{
	uint32_t index = (place & 0x7fffu) + count;

	if (index < driver->size)
		return (uint16_t)(index | (place & WRAP));
	return (uint16_t)((index - driver->size) | (~place & WRAP));
}

void ring_driver_start(struct ring_driver *driver, unsigned char *memory, uint32_t size,
	bool packed, bool event_index)
{
	*driver = (struct ring_driver){
		.dma.find = find,
		.memory = memory,
		.size = size,
		.packed = packed,
		.event_index = event_index,
		.n_free_ids = size,
		.n_free = size,
	};
	memset(memory, 0, RING_BYTES);
	for (uint32_t i = 0; i < size; i++) {
		driver->free_ids[i] = (uint16_t)i;
		driver->free_descs[i] = (uint16_t)i;
	}
	if (packed)
		driver->available = driver->used = driver->told = WRAP;
}

void ring_driver_config(struct ring_driver *driver, struct dmamap_virtqueue_config *config)
{
	*config = (struct dmamap_virtqueue_config){
		.dma = &driver->dma,
		.size = driver->size,
		.packed = driver->packed,
		.indirect = true,
		.event_index = driver->event_index,
		.descriptors = RING_IOVA,
		.driver = RING_IOVA + DRIVER_AREA,
		.device = RING_IOVA + DEVICE_AREA,
		.available = driver->packed ? WRAP : 0,
		.used = driver->packed ? WRAP : 0,
	};
}

/* ------------------------------------------------------------------------ split */

static uint16_t part_flags(const struct ring_part *part, bool more)
{
	return (uint16_t)((part->writable ? VRING_DESC_F_WRITE : 0) |
			  (more ? VRING_DESC_F_NEXT : 0));
}

static int add_split(
	struct ring_driver *driver, const struct ring_part *parts, uint32_t n, uint64_t indirect)
{
	struct vring_avail *avail = ring_driver_avail(driver);
	uint32_t count = indirect ? 1 : n;
	uint16_t index[RING_MOST], head;

	if (!n || driver->n_free < count)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		index[i] = driver->free_descs[--driver->n_free];
	head = index[0];
	if (indirect) {
		struct vring_desc *table = ring_driver_at(driver, indirect);

		for (uint32_t i = 0; i < n; i++)
			table[i] = (struct vring_desc){parts[i].iova, parts[i].length,
				part_flags(&parts[i], i + 1 < n), (uint16_t)(i + 1)};
		ring_driver_desc(driver)[head] = (struct vring_desc){
			indirect, n * (uint32_t)sizeof(*table), VRING_DESC_F_INDIRECT, 0};
	} else {
		for (uint32_t i = 0; i < n; i++)
			ring_driver_desc(driver)[index[i]] =
				(struct vring_desc){parts[i].iova, parts[i].length,
					part_flags(&parts[i], i + 1 < n), index[(i + 1) % n]};
	}
	driver->counts[head] = count;
	memcpy(driver->parts_of[head], index, count * sizeof(index[0]));
	avail->ring[driver->available % driver->size] = head;
	driver->available++;
	__atomic_store_n(&avail->idx, driver->available, __ATOMIC_RELEASE);
	return head;
}

static int get_split(struct ring_driver *driver, uint32_t *written)
{
	struct vring_used *used = ring_driver_used(driver);
	struct vring_used_elem elem;

	if (__atomic_load_n(&used->idx, __ATOMIC_ACQUIRE) == driver->used)
		return -1;
	elem = used->ring[driver->used % driver->size];
	driver->used++;
	if (elem.id >= driver->size || !driver->counts[elem.id])
		return -2;
	for (uint32_t i = 0; i < driver->counts[elem.id]; i++)
		driver->free_descs[driver->n_free++] = driver->parts_of[elem.id][i];
	driver->counts[elem.id] = 0;
	*written = elem.len;
	return (int)elem.id;
}

/* ----------------------------------------------------------------------- packed */

static uint16_t lap(uint16_t place)
{
	return place & WRAP ? AVAIL_BIT : USED_BIT;
}

static int add_packed(
	struct ring_driver *driver, const struct ring_part *parts, uint32_t n, uint64_t indirect)
{
	struct vring_packed_desc *ring = ring_driver_packed(driver);
	uint32_t count = indirect ? 1 : n;
	uint16_t place = driver->available, first_flags = 0, id;

	if (driver->n_free < count || !driver->n_free_ids)
		return -1;
	id = driver->free_ids[--driver->n_free_ids];
	if (indirect) {
		struct vring_packed_desc *table = ring_driver_at(driver, indirect);

		for (uint32_t i = 0; i < n; i++)
			table[i] = (struct vring_packed_desc){
				parts[i].iova, parts[i].length, 0, part_flags(&parts[i], false)};
	}
	for (uint32_t i = 0; i < count; i++) {
		struct vring_packed_desc *desc = &ring[place & 0x7fff];
		uint16_t flags =
			indirect ? VRING_DESC_F_INDIRECT : part_flags(&parts[i], i + 1 < count);

		desc->addr = indirect ? indirect : parts[i].iova;
		desc->len = indirect ? n * (uint32_t)sizeof(*desc) : parts[i].length;
		desc->id = id;
		flags |= lap(place);
		if (i)
			__atomic_store_n(&desc->flags, flags, __ATOMIC_RELAXED);
		else
			first_flags = flags;
		place = after(driver, place, 1);
	}
	__atomic_store_n(&ring[driver->available & 0x7fff].flags, first_flags, __ATOMIC_RELEASE);
	driver->available = place;
	driver->n_free -= count;
	driver->counts[id] = count;
	return id;
}

static int get_packed(struct ring_driver *driver, uint32_t *written)
{
	struct vring_packed_desc *desc = &ring_driver_packed(driver)[driver->used & 0x7fff];
	uint16_t flags = __atomic_load_n(&desc->flags, __ATOMIC_ACQUIRE);
	bool wrap = driver->used & WRAP;
	uint16_t id;

	if (!!(flags & AVAIL_BIT) != wrap || !!(flags & USED_BIT) != wrap)
		return -1;
	id = desc->id;
	if (id >= driver->size || !driver->counts[id])
		return -2;
	*written = desc->len;
	driver->used = after(driver, driver->used, driver->counts[id]);
	driver->n_free += driver->counts[id];
	driver->counts[id] = 0;
	driver->free_ids[driver->n_free_ids++] = id;
	return id;
}

/* ------------------------------------------------------------------------- both */

int ring_driver_add(
	struct ring_driver *driver, const struct ring_part *parts, uint32_t n, uint64_t indirect)
{
	return driver->packed ? add_packed(driver, parts, n, indirect)
			      : add_split(driver, parts, n, indirect);
}

int ring_driver_get(struct ring_driver *driver, uint32_t *written)
{
	return driver->packed ? get_packed(driver, written) : get_split(driver, written);
}

void ring_driver_want_interrupt(struct ring_driver *driver, bool wanted)
{
	struct vring_packed_desc_event *packed = event(driver, DRIVER_AREA);
	struct vring_avail *avail = ring_driver_avail(driver);

	if (driver->packed && !wanted) {
		packed->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	} else if (driver->packed) {
		packed->off_wrap = driver->used;
		packed->flags = driver->event_index ? VRING_PACKED_EVENT_FLAG_DESC
						    : VRING_PACKED_EVENT_FLAG_ENABLE;
	} else if (driver->event_index) {
		/* The index furthest from being passed stands for none. */
		avail->ring[driver->size] = wanted ? driver->used : (uint16_t)(driver->used - 1);
	} else {
		avail->flags = wanted ? 0 : VRING_AVAIL_F_NO_INTERRUPT;
	}
}

/* How many entries on from @from @to is, over two laps. */
static uint32_t distance(const struct ring_driver *driver, uint16_t from, uint16_t to)
{
	uint32_t a = (from & 0x7fffu) + (from & WRAP ? 0 : driver->size);
	uint32_t b = (to & 0x7fffu) + (to & WRAP ? 0 : driver->size);

	return (b + 2 * driver->size - a) % (2 * driver->size);
}

bool ring_driver_must_kick(struct ring_driver *driver)
{
	const struct vring_packed_desc_event *packed = event(driver, DEVICE_AREA);
	const struct vring_used *used = ring_driver_used(driver);
	uint16_t wanted, told = driver->told;

	driver->told = driver->available;
	if (driver->packed && packed->flags != VRING_PACKED_EVENT_FLAG_DESC)
		return packed->flags == VRING_PACKED_EVENT_FLAG_ENABLE;
	if (driver->packed)
		return distance(driver, told, packed->off_wrap) <
		       distance(driver, told, driver->available);
	if (!driver->event_index)
		return !(used->flags & VRING_USED_F_NO_NOTIFY);
	memcpy(&wanted, &used->ring[driver->size], sizeof(wanted));
	return vring_need_event(wanted, driver->available, told);
}
