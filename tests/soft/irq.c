/* SPDX-License-Identifier: MIT */
/*
 * Interrupts: VFIO_DEVICE_GET_IRQ_INFO and VFIO_DEVICE_SET_IRQS with real
 * eventfds. Sources: drivers/vfio/pci/vfio_pci_intrs.c, vfio_pci_core.c, and
 * vfio_set_irqs_validate_and_prepare() in drivers/vfio/vfio_main.c.
 */
#include "tests/soft/function.h"

enum { INTX, MSI, MSIX, ERROR, REQUEST };

#define NONE	VFIO_IRQ_SET_DATA_NONE
#define BOOL	VFIO_IRQ_SET_DATA_BOOL
#define EVENTFD VFIO_IRQ_SET_DATA_EVENTFD
#define MASK	VFIO_IRQ_SET_ACTION_MASK
#define UNMASK	VFIO_IRQ_SET_ACTION_UNMASK
#define TRIGGER VFIO_IRQ_SET_ACTION_TRIGGER

/* struct vfio_irq_set with its data. */
struct set {
	struct {
		uint32_t argsz, flags, index, start, count;
	} header;
	union {
		int32_t fds[16];
		uint8_t bools[16];
	};
};

/* The structure's size is what the data takes. */
static int set_irqs(struct rig *rig, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
	const void *data)
{
	size_t size = flags & EVENTFD ? 4 * count : flags & BOOL ? count : 0;
	struct set set = {
		.header = {(uint32_t)(sizeof(set.header) + size), flags, index, start, count},
	};

	if (data)
		memcpy(set.fds, data, size);
	return device_call(rig, VFIO_DEVICE_SET_IRQS, &set);
}

static int set_fd(struct rig *rig, uint32_t index, uint32_t vector, int fd)
{
	return set_irqs(rig, EVENTFD | TRIGGER, index, vector, 1, &fd);
}

static int raise(struct rig *rig, uint32_t index, uint32_t vector)
{
	return set_irqs(rig, NONE | TRIGGER, index, vector, 1, NULL);
}

static int off(struct rig *rig, uint32_t index)
{
	return set_irqs(rig, NONE | TRIGGER, index, 0, 0, NULL);
}

static int event(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return fd;
}

/* vfio_pci_ioctl_get_irq_info(): counts, and what can be done with each. */
static void info(void **state)
{
	/* MSI-X can have vectors added one by one, and so has no NORESIZE. */
	static const struct {
		uint32_t count, flags;
	} all[] = {{1, 7}, {4, 9}, {8, 1}, {1, 9}, {1, 9}},
	  none[] = {{0, 7}, {0, 9}, {0, 9}, {1, 9}, {1, 9}};
	struct dmamap_machine_device function;
	struct vfio_irq_info info;
	struct rig rig;

	(void)state;
	for (unsigned with = 0; with < 2; with++) {
		function = function_default();
		if (!with) {
			function.intx = false;
			function.msi = function.msix = 0;
		}
		function_start(&rig, &function);
		for (uint32_t i = 0; i < 5; i++) {
			info = (struct vfio_irq_info){.argsz = 16, .index = i};
			assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_IRQ_INFO, &info), 0);
			assert_int_equal(info.count, (with ? all : none)[i].count);
			assert_int_equal(info.flags, (with ? all : none)[i].flags);
			assert_int_equal(info.argsz, 16);
		}
		info = (struct vfio_irq_info){.argsz = 15, .index = 5};
		assert_gives(
			&rig, device_call(&rig, VFIO_DEVICE_GET_IRQ_INFO, &info), EINVAL, "argsz");
		info.argsz = 16;
		assert_gives(
			&rig, device_call(&rig, VFIO_DEVICE_GET_IRQ_INFO, &info), EINVAL, "irq");
		assert_gives(&rig, device_call(&rig, VFIO_DEVICE_GET_IRQ_INFO, nowhere()), EFAULT,
			"pointer");
		rig_stop(&rig);
	}
}

/* Up to Linux 6.12 a function that is not PCI Express has no error notice. */
static void older_kernel(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct vfio_irq_info info = {.argsz = 16, .index = ERROR};
	struct dmamap_machine machine;
	int fd = event();
	struct rig rig;

	(void)state;
	dmamap_machine_default(&machine);
	machine.as_kernel = DMAMAP_KERNEL(6, 12);
	function_start_on(&rig, &machine, &function);
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_GET_IRQ_INFO, &info), EINVAL, "irq");
	assert_gives(&rig, set_fd(&rig, ERROR, 0, fd), EINVAL, "irq_range");
	assert_int_equal(set_fd(&rig, REQUEST, 0, fd), 0);
	rig_stop(&rig);

	function.express = true;
	function_start_on(&rig, &machine, &function);
	assert_int_equal(device_call(&rig, VFIO_DEVICE_GET_IRQ_INFO, &info), 0);
	assert_int_equal(info.count, 1);
	assert_int_equal(set_fd(&rig, ERROR, 0, fd), 0);
	rig_stop(&rig);
	close(fd);
}

/* vfio_set_irqs_validate_and_prepare(), and then the table of actions. */
static void refusals(void **state)
{
	static const struct {
		uint32_t argsz, flags, index, start, count;
		int error;
		const char *reason;
	} rows[] = {
		{19, NONE | TRIGGER, INTX, 0, 1, EINVAL, "argsz"},
		{20, NONE | TRIGGER, 5, 0, 1, EINVAL, "irq"},
		{20, NONE | TRIGGER, MSIX, 1, UINT32_MAX - 1, EINVAL, "irq_range"},
		{20, NONE | TRIGGER, MSIX, 0, UINT32_MAX, EINVAL, "irq_range"},
		{20, 0x40 | NONE | TRIGGER, MSIX, 8, 1, EINVAL, "flags"},
		{20, NONE | TRIGGER, MSIX, 8, 0, EINVAL, "irq_range"},
		{20, NONE | TRIGGER, MSIX, 7, 2, EINVAL, "irq_range"},
		{20, NONE | TRIGGER, MSI, 0, 5, EINVAL, "irq_range"},
		{20, NONE | TRIGGER, ERROR, 1, 0, EINVAL, "irq_range"},
		{20, NONE | TRIGGER, REQUEST, 0, 2, EINVAL, "irq_range"},
		{20, TRIGGER, MSIX, 0, 1, EINVAL, "irq_data"},
		{20, NONE | BOOL | TRIGGER, MSIX, 0, 1, EINVAL, "irq_data"},
		{20, BOOL | TRIGGER, MSIX, 0, 1, EINVAL, "irq_data_size"},
		{23, EVENTFD | TRIGGER, MSIX, 0, 1, EINVAL, "irq_data_size"},
		/* Which action is looked at last. */
		{20, NONE, INTX, 0, 1, ENOTTY, "irq_action"},
		{20, NONE | MASK | UNMASK, INTX, 0, 1, ENOTTY, "irq_action"},
		{20, NONE | MASK, MSI, 0, 1, ENOTTY, "irq_action"},
		{20, NONE | UNMASK, MSIX, 0, 1, ENOTTY, "irq_action"},
		{20, NONE | MASK, ERROR, 0, 1, ENOTTY, "irq_action"},
		{20, NONE | UNMASK, REQUEST, 0, 1, ENOTTY, "irq_action"},
		/* Nothing is enabled. */
		{20, NONE | MASK, INTX, 0, 1, EINVAL, "irq_off"},
		{20, NONE | UNMASK, INTX, 0, 1, EINVAL, "irq_off"},
		{20, NONE | TRIGGER, INTX, 0, 1, EINVAL, "irq_off"},
		{20, NONE | TRIGGER, INTX, 0, 0, EINVAL, "irq_one"},
		{20, NONE | TRIGGER, MSI, 0, 1, EINVAL, "irq_off"},
		{20, NONE | TRIGGER, MSIX, 0, 0, EINVAL, "irq_off"},
		{20, NONE | TRIGGER, ERROR, 0, 1, EINVAL, "irq_eventfd_none"},
		{20, NONE | TRIGGER, ERROR, 0, 0, EINVAL, "irq_eventfd_none"},
		{20, BOOL | TRIGGER, REQUEST, 0, 0, EINVAL, "irq_one"},
		{20, EVENTFD | TRIGGER, REQUEST, 0, 0, EINVAL, "irq_one"},
		/* Enabling with no vectors at all. */
		{20, EVENTFD | TRIGGER, MSI, 0, 0, ERANGE, "irq_vectors_none"},
		{20, EVENTFD | TRIGGER, MSIX, 0, 0, ERANGE, "irq_vectors_none"},
	};
	struct dmamap_machine_device function = function_default();
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct set set = {.header = {rows[i].argsz, rows[i].flags, rows[i].index,
					  rows[i].start, rows[i].count}};

		assert_gives(&rig, device_call(&rig, VFIO_DEVICE_SET_IRQS, &set), rows[i].error,
			rows[i].reason);
	}
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_SET_IRQS, NULL), EFAULT, "pointer");
	rig_stop(&rig);
}

/* memdup_user(): the data is fetched before anything is done with it. */
static void data_out_of_reach(void **state)
{
	struct dmamap_machine_device function = function_default();
	char *page = rig_memory(2 * PAGE, true);
	struct vfio_irq_set *header = (void *)(page + PAGE - sizeof(*header));
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	assert_int_equal(munmap(page + PAGE, PAGE), 0);
	*header = (struct vfio_irq_set){24, EVENTFD | MASK, MSIX, 0, 1};
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_SET_IRQS, header), EFAULT, "pointer");
	rig_stop(&rig);
}

/* vfio_pci_set_intx_*(). */
static void intx(void **state)
{
	struct dmamap_machine_device function = function_default();
	int one = event(), two = event(), bad = 9999, none = -1;
	uint8_t yes = 1, no = 0;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	assert_gives(&rig, set_fd(&rig, INTX, 0, bad), EBADF, "bad_fd");
	assert_gives(&rig, set_fd(&rig, INTX, 0, rig.device), EINVAL, "eventfd");
	assert_int_equal(set_fd(&rig, INTX, 0, one), 0);
	assert_int_equal(raise(&rig, INTX, 0), 0);
	assert_int_equal(signals(one), 1);
	assert_int_equal(set_irqs(&rig, BOOL | TRIGGER, INTX, 0, 1, &no), 0);
	assert_int_equal(signals(one), 0);
	assert_int_equal(set_irqs(&rig, BOOL | TRIGGER, INTX, 0, 1, &yes), 0);
	assert_int_equal(signals(one), 1);
	/* Another eventfd in its place, or none. */
	assert_int_equal(set_fd(&rig, INTX, 0, two), 0);
	assert_int_equal(raise(&rig, INTX, 0), 0);
	assert_int_equal(signals(one), 0);
	assert_int_equal(signals(two), 1);
	assert_int_equal(set_fd(&rig, INTX, 0, none), 0);
	assert_int_equal(raise(&rig, INTX, 0), 0);
	assert_int_equal(signals(two), 0);
	/* One that is bad leaves the old one where it was. */
	assert_int_equal(set_fd(&rig, INTX, 0, one), 0);
	assert_gives(&rig, set_fd(&rig, INTX, 0, bad), EBADF, "bad_fd");
	assert_int_equal(raise(&rig, INTX, 0), 0);
	assert_int_equal(signals(one), 1);
	/* Masked or not: the loopback goes past it. */
	assert_int_equal(set_irqs(&rig, NONE | MASK, INTX, 0, 1, NULL), 0);
	assert_int_equal(set_irqs(&rig, BOOL | MASK, INTX, 0, 1, &yes), 0);
	assert_int_equal(raise(&rig, INTX, 0), 0);
	assert_int_equal(signals(one), 1);
	assert_int_equal(set_irqs(&rig, NONE | UNMASK, INTX, 0, 1, NULL), 0);
	assert_gives(&rig, set_irqs(&rig, NONE | UNMASK, INTX, 0, 0, NULL), EINVAL, "irq_one");
	assert_gives(
		&rig, set_irqs(&rig, EVENTFD | MASK, INTX, 0, 1, &one), ENOTTY, "irq_mask_eventfd");
	/* Disabled by the command register, it signals nothing. */
	set_number(&rig, CONFIG + 4, 0x0402, 2);
	assert_int_equal(raise(&rig, INTX, 0), 0);
	assert_int_equal(signals(one), 0);
	set_number(&rig, CONFIG + 4, 0x0002, 2);
	assert_int_equal(raise(&rig, INTX, 0), 0);
	assert_int_equal(signals(one), 1);
	/* One type at a time. */
	assert_gives(&rig, set_fd(&rig, MSI, 0, one), EINVAL, "irq_other");
	assert_gives(&rig, off(&rig, MSIX), EINVAL, "irq_other");
	assert_int_equal(off(&rig, INTX), 0);
	assert_gives(&rig, raise(&rig, INTX, 0), EINVAL, "irq_off");
	/* It can be enabled with nobody to tell. */
	assert_int_equal(set_fd(&rig, INTX, 0, none), 0);
	assert_int_equal(raise(&rig, INTX, 0), 0);
	rig_stop(&rig);
	close(one);
	close(two);
}

/* An eventfd's count, without reading it. */
static uint64_t counted(int fd)
{
	char line[64], path[64];
	uint64_t count = UINT64_MAX;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "r");
	assert_non_null(info);
	while (fgets(line, sizeof(line), info))
		if (!strncmp(line, "eventfd-count:", 14))
			count = strtoull(line + 14, NULL, 16);
	fclose(info);
	return count;
}

/* Waits for a listener to use up the signal. */
static bool used_up(int fd)
{
	for (unsigned i = 0; i < 2000 && counted(fd); i++)
		usleep(1000);
	return !counted(fd);
}

/* vfio_virqfd_enable(): an eventfd that unmasks is used up. */
static void intx_unmasked_by_eventfd(void **state)
{
	struct dmamap_machine_device function = function_default();
	int trigger = event(), unmask = event(), other = event(), bad = 9999, none = -1;
	uint64_t once = 1;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	assert_gives(
		&rig, set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &unmask), EINVAL, "irq_off");
	assert_int_equal(set_fd(&rig, INTX, 0, trigger), 0);
	assert_gives(&rig, set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &bad), EBADF, "bad_fd");
	assert_int_equal(write(unmask, &once, 8), 8);
	assert_int_equal(set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &unmask), 0);
	/* One from before is heard and stays, until the next one. */
	usleep(20000);
	assert_int_equal(counted(unmask), 1);
	assert_int_equal(write(unmask, &once, 8), 8);
	assert_true(used_up(unmask));
	assert_int_equal(write(unmask, &once, 8), 8);
	assert_true(used_up(unmask));
	assert_gives(&rig, set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &other), EBUSY,
		"irq_unmask_set");
	assert_gives(&rig, set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &bad), EBADF, "bad_fd");
	assert_int_equal(set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &none), 0);
	assert_int_equal(set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &other), 0);
	/* Nobody listens to the first one any more. */
	assert_int_equal(write(other, &once, 8), 8);
	assert_true(used_up(other));
	assert_int_equal(write(unmask, &once, 8), 8);
	assert_int_equal(signals(unmask), 1);
	rig_stop(&rig);
	close(trigger);
	close(unmask);
	close(other);
}

/* vfio_pci_set_msi_trigger(), vfio_msi_set_block(): MSI-X. */
static void msix(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fds[3] = {event(), event(), event()}, some[3] = {fds[0], -1, fds[2]};
	uint8_t bools[3] = {1, 1, 0};
	struct rig rig;
	unsigned at;

	(void)state;
	function_start(&rig, &function);
	at = capability(&rig, 0x11);
	assert_int_equal(number(&rig, CONFIG + at + 2, 2), 7);
	/* A vector past the first ones; the hardware's enable bit follows. */
	assert_int_equal(set_irqs(&rig, EVENTFD | TRIGGER, MSIX, 2, 3, some), 0);
	assert_int_equal(number(&rig, CONFIG + at + 2, 2), 0x8007);
	assert_int_equal(set_irqs(&rig, NONE | TRIGGER, MSIX, 0, 8, NULL), 0);
	assert_int_equal(signals(fds[0]), 1);
	assert_int_equal(signals(fds[1]), 0);
	assert_int_equal(signals(fds[2]), 1);
	assert_int_equal(set_irqs(&rig, BOOL | TRIGGER, MSIX, 2, 3, bools), 0);
	assert_int_equal(signals(fds[0]), 1);
	assert_int_equal(signals(fds[2]), 0);
	/* One that was not there is added while others are in use. */
	assert_int_equal(set_fd(&rig, MSIX, 7, fds[1]), 0);
	assert_int_equal(raise(&rig, MSIX, 7), 0);
	assert_int_equal(signals(fds[1]), 1);
	assert_gives(&rig, set_fd(&rig, MSI, 0, fds[0]), EINVAL, "irq_other");
	assert_gives(&rig, set_fd(&rig, INTX, 0, fds[0]), EINVAL, "irq_other");
	/* A bad one takes away those before it in the call, and what its vector had. */
	some[0] = fds[0];
	some[1] = fds[1];
	some[2] = 9999;
	assert_gives(&rig, set_irqs(&rig, EVENTFD | TRIGGER, MSIX, 2, 3, some), EBADF, "bad_fd");
	assert_int_equal(set_irqs(&rig, NONE | TRIGGER, MSIX, 2, 3, NULL), 0);
	assert_int_equal(signals(fds[0]) + signals(fds[2]), 0);
	/* Those that it does not name stay. */
	assert_int_equal(raise(&rig, MSIX, 7), 0);
	assert_int_equal(signals(fds[1]), 1);
	/* A call with no vector is fine now. */
	assert_int_equal(set_irqs(&rig, EVENTFD | TRIGGER, MSIX, 1, 0, NULL), 0);
	assert_int_equal(off(&rig, MSIX), 0);
	assert_int_equal(number(&rig, CONFIG + at + 2, 2), 7);
	/* Enabling that fails leaves nothing enabled. */
	assert_gives(&rig, set_irqs(&rig, EVENTFD | TRIGGER, MSIX, 2, 3, some), EBADF, "bad_fd");
	assert_gives(&rig, off(&rig, MSIX), EINVAL, "irq_off");
	/* Vectors can be had before they are used. */
	assert_int_equal(set_irqs(&rig, EVENTFD | TRIGGER, MSIX, 2, 0, NULL), 0);
	assert_int_equal(off(&rig, MSIX), 0);
	rig_stop(&rig);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
}

/* MSI cannot grow, and without interrupt remapping has one vector. */
static void msi(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fds[4] = {event(), event(), event(), event()};
	struct dmamap_machine machine;
	struct rig rig;
	unsigned at;

	(void)state;
	dmamap_machine_default(&machine);
	machine.isolated_msi = true;
	function_start_on(&rig, &machine, &function);
	assert_int_equal(set_irqs(&rig, EVENTFD | TRIGGER, MSI, 0, 2, fds), 0);
	assert_int_equal(raise(&rig, MSI, 1), 0);
	assert_int_equal(signals(fds[1]), 1);
	assert_gives(&rig, set_fd(&rig, MSI, 2, fds[2]), EINVAL, "irq_vector");
	/* The block with it loses what it had; a vector outside it does not. */
	assert_gives(&rig, set_irqs(&rig, EVENTFD | TRIGGER, MSI, 1, 3, fds), EINVAL, "irq_vector");
	assert_int_equal(set_irqs(&rig, NONE | TRIGGER, MSI, 0, 2, NULL), 0);
	assert_int_equal(signals(fds[0]), 1);
	assert_int_equal(signals(fds[1]), 0);
	/* The register may say as many as were asked for, and that it is on. */
	at = capability(&rig, 0x05);
	set_number(&rig, CONFIG + at + 2, 0x21, 2);
	assert_int_equal(number(&rig, CONFIG + at + 2, 1), 0x11);
	assert_int_equal(off(&rig, MSI), 0);
	set_number(&rig, CONFIG + at + 2, 0x11, 2);
	assert_int_equal(number(&rig, CONFIG + at + 2, 1), 0x10);
	rig_stop(&rig);

	machine.isolated_msi = false;
	function_start_on(&rig, &machine, &function);
	/* The number that could be had comes back; nothing is enabled. */
	assert_int_equal(set_irqs(&rig, EVENTFD | TRIGGER, MSI, 0, 2, fds), 1);
	assert_gives(&rig, off(&rig, MSI), EINVAL, "irq_off");
	assert_int_equal(set_fd(&rig, MSI, 0, fds[0]), 0);
	rig_stop(&rig);
	for (unsigned i = 0; i < 4; i++)
		close(fds[i]);
}

/* vfio_pci_set_ctx_trigger_single(). */
static void notices(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fd = event(), bad = 9999, none = -1, worse = -2;
	uint8_t yes = 1;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	for (uint32_t index = ERROR; index <= REQUEST; index++) {
		/* A bool may be given while no eventfd is there. */
		assert_int_equal(set_irqs(&rig, BOOL | TRIGGER, index, 0, 1, &yes), 0);
		assert_gives(&rig, set_fd(&rig, index, 0, bad), EBADF, "bad_fd");
		assert_gives(&rig, set_fd(&rig, index, 0, worse), EINVAL, "value");
		assert_gives(&rig, set_fd(&rig, index, 0, rig.container), EINVAL, "eventfd");
		assert_int_equal(set_fd(&rig, index, 0, none), 0);
		assert_int_equal(set_fd(&rig, index, 0, fd), 0);
		assert_int_equal(raise(&rig, index, 0), 0);
		assert_int_equal(set_irqs(&rig, BOOL | TRIGGER, index, 0, 1, &yes), 0);
		assert_int_equal(signals(fd), 2);
		assert_int_equal(off(&rig, index), 0);
		assert_gives(&rig, off(&rig, index), EINVAL, "irq_eventfd_none");
	}
	/* They live beside INTx and MSI. */
	assert_int_equal(set_fd(&rig, MSIX, 0, fd), 0);
	assert_int_equal(set_fd(&rig, ERROR, 0, fd), 0);
	rig_stop(&rig);
	close(fd);
}

/* Everything is given back when the device is closed, and it starts anew. */
static void closed(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fds[3] = {event(), event(), event()};
	unsigned before, after;
	uint32_t id;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	before = rig_descriptors();
	assert_int_equal(set_fd(&rig, INTX, 0, fds[0]), 0);
	assert_int_equal(set_irqs(&rig, EVENTFD | UNMASK, INTX, 0, 1, &fds[1]), 0);
	assert_int_equal(set_fd(&rig, ERROR, 0, fds[1]), 0);
	assert_int_equal(set_fd(&rig, REQUEST, 0, fds[2]), 0);
	assert_true(rig_descriptors() > before);
	rig_close(&rig, &rig.device);
	after = rig_descriptors();
	assert_int_equal(after, before - 1);
	rig.device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_int_equal(rig_bind(&rig, rig.device, rig.container, &id), 0);
	assert_gives(&rig, raise(&rig, INTX, 0), EINVAL, "irq_off");
	assert_gives(&rig, raise(&rig, ERROR, 0), EINVAL, "irq_eventfd_none");
	/* An eventfd of the program's that it closed itself still has a place to go. */
	assert_int_equal(set_irqs(&rig, EVENTFD | TRIGGER, MSIX, 0, 3, fds), 0);
	close(fds[1]);
	assert_int_equal(set_irqs(&rig, NONE | TRIGGER, MSIX, 0, 3, NULL), 0);
	assert_int_equal(signals(fds[0]), 1);
	rig_stop(&rig);
	close(fds[0]);
	close(fds[2]);
}

/* A signal that finds the eventfd full is lost, and nobody waits. */
static void full_eventfd(void **state)
{
	struct dmamap_machine_device function = function_default();
	uint64_t most = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_CLOEXEC);
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	assert_int_equal(set_fd(&rig, MSIX, 0, fd), 0);
	assert_int_equal(write(fd, &most, 8), 8);
	assert_int_equal(raise(&rig, MSIX, 0), 0);
	assert_true(signals(fd) >= most);
	rig_stop(&rig);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info),
		cmocka_unit_test(older_kernel),
		cmocka_unit_test(refusals),
		cmocka_unit_test(data_out_of_reach),
		cmocka_unit_test(intx),
		cmocka_unit_test(intx_unmasked_by_eventfd),
		cmocka_unit_test(msix),
		cmocka_unit_test(msi),
		cmocka_unit_test(notices),
		cmocka_unit_test(closed),
		cmocka_unit_test(full_eventfd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
