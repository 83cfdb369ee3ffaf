/* SPDX-License-Identifier: MIT */
/*
 * What the tests of PCI functions share: a system with one function of the
 * test's own making, open through its cdev, and access to its regions.
 */
#ifndef DMAMAP_TESTS_SOFT_FUNCTION_H
#define DMAMAP_TESTS_SOFT_FUNCTION_H

#include <sys/eventfd.h>

#include "tests/soft/rig.h"

#define REGION(index) ((uint64_t)(index) << 40)
#define CONFIG	      REGION(VFIO_PCI_CONFIG_REGION_INDEX)

/* All kinds of interrupts, two BARs of memory and one of ports, on the root bus. */
static inline struct dmamap_machine_device function_default(void)
{
	return (struct dmamap_machine_device){
		.bdf = "0000:00:03.0",
		.group = 7,
		.vendor = 0x1af4,
		.device = 0x1041,
		.class_code = 0x020000,
		.bar_size = {[0] = 64 * KIB, [1] = 64, [2] = 4 * MIB},
		.bar_address = {[0] = 0xc0000000, [1] = 0xc000, [2] = 0x380000000000},
		.bar_flags = {[1] = DMAMAP_BAR_IO},
		.intx = true,
		.msi = 4,
		.msix = 8,
		.msix_bar = 0,
		.msix_offset = 0x8000,
		.reset = true,
	};
}

/* The machine is for the test to change more of; NULL: the default one. */
static inline void function_start_on(struct rig *rig, const struct dmamap_machine *machine,
	const struct dmamap_machine_device *function)
{
	struct dmamap_machine made;

	if (machine)
		made = *machine;
	else
		dmamap_machine_default(&made);
	made.devices = function;
	made.n_devices = 1;
	rig_start(rig, &made);
	rig_cdev(rig, false);
}

static inline void function_start(struct rig *rig, const struct dmamap_machine_device *function)
{
	function_start_on(rig, NULL, function);
}

static inline ssize_t get(struct rig *rig, uint64_t offset, void *to, size_t size)
{
	return rig->system->ops->pread(rig->system, rig->device, to, size, offset);
}

static inline ssize_t put(struct rig *rig, uint64_t offset, const void *from, size_t size)
{
	return rig->system->ops->pwrite(rig->system, rig->device, from, size, offset);
}

/* The little-endian number of @size bytes there. */
static inline uint64_t number(struct rig *rig, uint64_t offset, size_t size)
{
	uint64_t value = 0;

	assert_int_equal(get(rig, offset, &value, size), size);
	return value;
}

static inline void set_number(struct rig *rig, uint64_t offset, uint64_t value, size_t size)
{
	assert_int_equal(put(rig, offset, &value, size), size);
}

/* Where a capability is in config space; 0: nowhere. */
static inline unsigned capability(struct rig *rig, unsigned id)
{
	unsigned at = 0x34;

	while ((at = (unsigned)number(rig, CONFIG + at + (at == 0x34 ? 0 : 1), 1)))
		if (number(rig, CONFIG + at, 1) == id)
			return at;
	return 0;
}

/* How often an eventfd was signalled since it was last asked. */
static inline uint64_t signals(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static inline int device_call(struct rig *rig, unsigned long request, void *argument)
{
	return rig_ioctl(rig, rig->device, request, argument);
}

/* An address at which nothing is. */
static inline void *nowhere(void)
{
	void *at = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

#endif
