/* SPDX-License-Identifier: MIT */
/*
 * BARs and the ROM by read and write, mmap, and eventfds that write to BARs
 * (drivers/vfio/pci/vfio_pci_rdwr.c, vfio_pci_core_mmap()).
 */
#include <fcntl.h>

#include "tests/soft/function.h"

/* vfio_pci_bar_rw(): cut at the end; decoding of memory is needed, of ports not. */
static void access_rules(void **state)
{
	struct dmamap_machine_device function = function_default();
	uint32_t ones = 0xffffffff;
	struct rig rig;
	char bytes[16];

	(void)state;
	function_start(&rig, &function);
	assert_int_equal(put(&rig, REGION(2) + 4 * MIB - 4, "abcdefgh", 8), 4);
	assert_int_equal(get(&rig, REGION(2) + 4 * MIB - 4, bytes, 8), 4);
	assert_memory_equal(bytes, "abcd", 4);
	assert_gives(&rig, get(&rig, REGION(2) + 4 * MIB, bytes, 1), EINVAL, "region_end");
	assert_gives(&rig, get(&rig, REGION(3), bytes, 1), EINVAL, "region_end");
	assert_int_equal(get(&rig, REGION(3), bytes, 0), 0);
	assert_gives(&rig, get(&rig, REGION(6), bytes, 1), EINVAL, "region_end");
	assert_gives(&rig, put(&rig, REGION(6), bytes, 1), EINVAL, "region_read_only");
	assert_gives(&rig, get(&rig, REGION(8), bytes, 1), EINVAL, "region");
	assert_gives(&rig, get(&rig, REGION(9), bytes, 1), EINVAL, "region");
	assert_gives(&rig, get(&rig, REGION(0), nowhere(), 1), EFAULT, "pointer");
	assert_gives(&rig, put(&rig, REGION(0), nowhere(), 1), EFAULT, "pointer");
	assert_int_equal(put(&rig, REGION(1), "ports", 5), 5);
	/* Memory off, and then ports. */
	set_number(&rig, CONFIG + 4, 1, 2);
	assert_gives(&rig, get(&rig, REGION(0), bytes, 1), EIO, "bar_off");
	assert_gives(&rig, put(&rig, REGION(0), bytes, 1), EIO, "bar_off");
	/* A read finds that out first, a write fetches first. */
	assert_gives(&rig, get(&rig, REGION(0), nowhere(), 1), EIO, "bar_off");
	assert_gives(&rig, put(&rig, REGION(0), nowhere(), 1), EFAULT, "pointer");
	assert_int_equal(get(&rig, REGION(1), bytes, 5), 5);
	assert_memory_equal(bytes, "ports", 5);
	set_number(&rig, CONFIG + 4, 0, 2);
	assert_int_equal(put(&rig, REGION(1), "nobody", 6), 6);
	assert_int_equal(number(&rig, REGION(1), 4), ones);
	set_number(&rig, CONFIG + 4, 3, 2);
	assert_int_equal(get(&rig, REGION(1), bytes, 5), 5);
	assert_memory_equal(bytes, "ports", 5);
	rig_stop(&rig);
}

/* vfio_pci_core_do_io_rw(): the MSI-X table is left out, and needs no decoding. */
static void msix_table(void **state)
{
	struct dmamap_machine_device function = function_default();
	uint8_t bytes[0x100];
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	memset(bytes, 0x5a, sizeof(bytes));
	assert_int_equal(put(&rig, REGION(0) + 0x7fc0, bytes, 0x100), 0x100);
	assert_int_equal(get(&rig, REGION(0) + 0x7fc0, bytes, 0x100), 0x100);
	for (unsigned i = 0; i < 0x100; i++)
		assert_int_equal(bytes[i], i < 0x40 || i >= 0xc0 ? 0x5a : 0xff);
	set_number(&rig, CONFIG + 4, 0, 2);
	assert_int_equal(number(&rig, REGION(0) + 0x8000, 4), 0xffffffff);
	assert_int_equal(put(&rig, REGION(0) + 0x8000, nowhere(), 4), 4);
	assert_gives(&rig, get(&rig, REGION(0) + 0x807f, bytes, 2), EIO, "bar_off");
	rig_stop(&rig);
}

static void rom(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct rig rig;
	char byte;

	(void)state;
	function.rom_size = 2 * KIB;
	function_start(&rig, &function);
	/* It is enabled for the read, whatever the command register says. */
	set_number(&rig, CONFIG + 4, 0, 2);
	assert_int_equal(number(&rig, REGION(6) + 2044, 4), 0);
	assert_int_equal(get(&rig, REGION(6) + 2047, &byte, 1), 1);
	assert_gives(&rig, get(&rig, REGION(6) + 2048, &byte, 1), EINVAL, "region_end");
	assert_gives(&rig, put(&rig, REGION(6), &byte, 1), EINVAL, "region_read_only");
	rig_stop(&rig);
}

/* vfio_pci_core_mmap(). */
static void mmap_rules(void **state)
{
	static const struct {
		size_t length;
		int flags;
		uint64_t offset;
		const char *reason;
	} rows[] = {
		{0, MAP_SHARED, 0, "length_zero"},
		{PAGE, MAP_SHARED, 1, "misaligned"},
		{PAGE, MAP_SHARED, REGION(9), "region"},
		{PAGE, MAP_PRIVATE, 0, "mmap_shared"},
		{PAGE, MAP_SHARED, REGION(6), "region_mmap"},
		{PAGE, MAP_SHARED, CONFIG, "region_mmap"},
		{PAGE, MAP_SHARED, REGION(1), "region_mmap"},
		{PAGE, MAP_SHARED, REGION(3), "region_mmap"},
		{64 * KIB + 1, MAP_SHARED, 0, "region_end"},
		{64 * KIB, MAP_SHARED, PAGE, "region_end"},
		{1, MAP_SHARED, 64 * KIB, "region_end"},
	};
	struct dmamap_machine_device function = function_default();
	struct rig rig;
	char *mapped;
	void *out;

	(void)state;
	function.rom_size = 64 * KIB;
	function_start(&rig, &function);
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_gives(&rig,
			rig.system->ops->mmap(rig.system, NULL, rows[i].length, PROT_READ,
				rows[i].flags, rig.device, rows[i].offset, &out),
			EINVAL, rows[i].reason);
	/* The table is mapped with the rest, and is memory there. */
	assert_int_equal(rig.system->ops->mmap(rig.system, NULL, 64 * KIB, PROT_READ | PROT_WRITE,
				 MAP_SHARED, rig.device, 0, &out),
		0);
	mapped = out;
	mapped[0x8000] = 1;
	mapped[0x9000] = 2;
	assert_int_equal(number(&rig, REGION(0) + 0x8000, 1), 0xff);
	assert_int_equal(number(&rig, REGION(0) + 0x9000, 1), 2);
	assert_int_equal(rig.system->ops->munmap(rig.system, mapped, 64 * KIB), 0);
	rig_stop(&rig);
}

/* vfs_read(), vfs_write() and do_mmap(): what the descriptor allows comes before the device. */
static void modes(void **state)
{
	static const struct {
		int mode, read, write, shared_read, shared_write, private;
	} rows[] = {
		{O_RDONLY, 4, -EBADF, -EINVAL, -EACCES, -EINVAL},
		{O_WRONLY, -EBADF, 4, -EACCES, -EACCES, -EACCES},
		{O_RDWR, 4, 4, 0, 0, -EINVAL},
	};
	struct dmamap_machine_device function = function_default();
	char *high = (char *)(uintptr_t)(UINT64_MAX - PAGE);
	uint32_t word = 0, id;
	struct rig rig;
	void *out;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct dmamap_system_ops *ops;

		function_start(&rig, &function);
		ops = rig.system->ops;
		rig_close(&rig, &rig.device);
		rig.device = ops->open(rig.system, "/dev/vfio/devices/vfio0", rows[i].mode);
		/* A bad address is worse than an unbound device. */
		assert_int_equal(get(&rig, 0, high, 4), rows[i].read < 0 ? -EBADF : -EFAULT);
		assert_int_equal(rig_bind(&rig, rig.device, rig.container, &id), 0);
		assert_int_equal(get(&rig, 0, &word, 4), rows[i].read);
		assert_int_equal(put(&rig, 0, &word, 4), rows[i].write);
		assert_int_equal(ops->mmap(rig.system, NULL, PAGE, PROT_READ, MAP_SHARED,
					 rig.device, 0, &out),
			rows[i].shared_read);
		assert_int_equal(ops->mmap(rig.system, NULL, PAGE, PROT_READ | PROT_WRITE,
					 MAP_SHARED, rig.device, 0, &out),
			rows[i].shared_write);
		assert_int_equal(ops->mmap(rig.system, NULL, PAGE, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE, rig.device, 0, &out),
			rows[i].private);
		/* What no address space has room for is not asked of the device. */
		assert_gives(&rig,
			ops->mmap(rig.system, NULL, 1ULL << 60, PROT_READ, MAP_PRIVATE, rig.device,
				0, &out),
			ENOMEM, "too_large");
		rig_stop(&rig);
	}
}

static int ioeventfd(struct rig *rig, uint32_t size, uint64_t offset, uint64_t data, int fd)
{
	struct vfio_device_ioeventfd user = {
		.argsz = 28, .flags = size, .offset = offset, .data = data, .fd = fd};

	return device_call(rig, VFIO_DEVICE_IOEVENTFD, &user);
}

/* vfio_pci_ioctl_ioeventfd(), vfio_pci_ioeventfd(). */
static void ioeventfd_refusals(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const struct {
		uint32_t size;
		uint64_t offset;
		int fd, error;
		const char *reason;
	} rows[] = {
		{16, 0, fd, EINVAL, "flags"},
		{0, 0, fd, EINVAL, "ioeventfd_size"},
		{3, 0, fd, EINVAL, "ioeventfd_size"},
		{4, 0, -2, EINVAL, "value"},
		{4, REGION(6), fd, EINVAL, "ioeventfd_region"},
		{4, CONFIG, fd, EINVAL, "ioeventfd_region"},
		{4, REGION(1) + 61, fd, EINVAL, "region_end"},
		{1, REGION(3), fd, EINVAL, "region_end"},
		{4, 0x8000, fd, EINVAL, "msix_table"},
		{2, 0x807f, fd, EINVAL, "msix_table"},
		{8, 0x7ff9, fd, EINVAL, "msix_table"},
		{4, 0, -1, ENODEV, "ioeventfd_none"},
		{4, 0, 9999, EBADF, "bad_fd"},
	};
	struct vfio_device_ioeventfd user = {.argsz = 27, .flags = 99};
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_IOEVENTFD, &user), EINVAL, "argsz");
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_IOEVENTFD, NULL), EFAULT, "pointer");
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_gives(&rig, ioeventfd(&rig, rows[i].size, rows[i].offset, 1, rows[i].fd),
			rows[i].error, rows[i].reason);
	assert_gives(&rig, ioeventfd(&rig, 4, 0, 1, rig.device), EINVAL, "eventfd");
	/* Next to the table, and by its end, is fine. */
	assert_int_equal(ioeventfd(&rig, 8, 0x7ff8, 1, fd), 0);
	assert_int_equal(ioeventfd(&rig, 1, 0x8080, 1, fd), 0);
	assert_gives(&rig, ioeventfd(&rig, 1, 0x8080, 1, fd), EEXIST, "ioeventfd_exists");
	/* Other data, or another size, is another one. */
	assert_int_equal(ioeventfd(&rig, 1, 0x8080, 2, fd), 0);
	assert_int_equal(ioeventfd(&rig, 2, 0x8080, 1, fd), 0);
	assert_int_equal(ioeventfd(&rig, 1, 0x8080, 1, -1), 0);
	assert_gives(&rig, ioeventfd(&rig, 1, 0x8080, 1, -1), ENODEV, "ioeventfd_none");
	rig_stop(&rig);
	close(fd);
}

/* What a place in a BAR is, a moment after something was set off. */
static bool becomes(struct rig *rig, uint64_t offset, uint64_t value)
{
	for (unsigned i = 0; i < 2000; i++) {
		if (number(rig, offset, 8) == value)
			return true;
		usleep(1000);
	}
	return false;
}

/* A signal writes the data, in the size that was given. */
static void ioeventfd_writes(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fds[2] = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eventfd(1, EFD_CLOEXEC)};
	uint64_t once = 1;
	unsigned before;
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	before = rig_descriptors();
	assert_int_equal(ioeventfd(&rig, 2, REGION(2) + 0x10, 0x11223344, fds[0]), 0);
	/* One that is signalled already acts at once, and stays so. */
	assert_int_equal(ioeventfd(&rig, 8, REGION(2) + 0x20, 0x1122334455667788, fds[1]), 0);
	assert_int_equal(number(&rig, REGION(2) + 0x20, 8), 0x1122334455667788);
	/* One eventfd may write to many places. */
	assert_int_equal(ioeventfd(&rig, 4, REGION(2) + 0x30, 0x99, fds[0]), 0);
	assert_int_equal(rig_descriptors(), before + 4);
	assert_int_equal(number(&rig, REGION(2) + 0x10, 8), 0);
	assert_int_equal(write(fds[0], &once, 8), 8);
	assert_true(becomes(&rig, REGION(2) + 0x10, 0x3344));
	assert_true(becomes(&rig, REGION(2) + 0x30, 0x99));
	assert_int_equal(ioeventfd(&rig, 4, REGION(2) + 0x30, 0x99, -1), 0);
	assert_int_equal(signals(fds[1]), 1);
	/* While memory is off it goes nowhere, but is used up. */
	set_number(&rig, REGION(2) + 0x10, 0, 8);
	set_number(&rig, CONFIG + 4, 0, 2);
	assert_int_equal(write(fds[0], &once, 8), 8);
	for (unsigned i = 0; i < 2000 && signals(fds[0]); i++)
		assert_int_equal(write(fds[0], &once, 8), 8);
	set_number(&rig, CONFIG + 4, 2, 2);
	assert_int_equal(ioeventfd(&rig, 2, REGION(2) + 0x10, 0x11223344, -1), 0);
	rig_close(&rig, &rig.device);
	assert_int_equal(rig_descriptors(), before - 1);
	rig_stop(&rig);
	close(fds[0]);
	close(fds[1]);
}

/* VFIO_PCI_IOEVENTFD_MAX. */
static void ioeventfd_limit(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct rig rig;

	(void)state;
	function_start(&rig, &function);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(ioeventfd(&rig, 4, REGION(2), i, fd), 0);
	assert_gives(&rig, ioeventfd(&rig, 4, REGION(2), 1000, fd), ENOSPC, "ioeventfd_full");
	/* That there is one already comes first, and taking one away makes room. */
	assert_gives(&rig, ioeventfd(&rig, 4, REGION(2), 7, fd), EEXIST, "ioeventfd_exists");
	assert_int_equal(ioeventfd(&rig, 4, REGION(2), 7, -1), 0);
	assert_int_equal(ioeventfd(&rig, 4, REGION(2), 1000, fd), 0);
	rig_stop(&rig);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(access_rules),
		cmocka_unit_test(msix_table),
		cmocka_unit_test(rom),
		cmocka_unit_test(mmap_rules),
		cmocka_unit_test(modes),
		cmocka_unit_test(ioeventfd_refusals),
		cmocka_unit_test(ioeventfd_writes),
		cmocka_unit_test(ioeventfd_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
