/* SPDX-License-Identifier: MIT */
/*
 * Config space: what is shown and what a write changes
 * (drivers/vfio/pci/vfio_pci_config.c).
 */
#include "tests/soft/function.h"

enum { COMMAND = CONFIG + 4, BAR0 = CONFIG + 0x10, ROM = CONFIG + 0x30 };

/* vfio_config_init(): ids, class, decoding on as the BARs need it and bus mastering off. */
static void header(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct rig rig;
	uint32_t id;

	(void)state;
	function_start(&rig, &function);
	assert_int_equal(number(&rig, CONFIG, 4), 0x10411af4);
	assert_int_equal(number(&rig, CONFIG + 9, 1) | number(&rig, CONFIG + 10, 2) << 8, 0x020000);
	assert_int_equal(number(&rig, COMMAND, 2), 0x0003);
	assert_int_equal(number(&rig, COMMAND + 2, 2), 0x0010);
	assert_int_equal(number(&rig, CONFIG + 0x3d, 1), 1);
	/* init_pci_cap_basic_perm(): ids, status, list and pin are not the user's. */
	set_number(&rig, CONFIG, 0xffffffff, 4);
	set_number(&rig, COMMAND + 2, 0xffff, 2);
	set_number(&rig, CONFIG + 0x34, 0xff, 1);
	set_number(&rig, CONFIG + 0x3d, 0, 1);
	assert_int_equal(number(&rig, CONFIG, 4), 0x10411af4);
	assert_int_equal(number(&rig, COMMAND + 2, 2), 0x0010);
	assert_int_equal(number(&rig, CONFIG + 0x34, 1), 0x40);
	assert_int_equal(number(&rig, CONFIG + 0x3d, 1), 1);
	/* The interrupt line is, and some of the command register. */
	set_number(&rig, CONFIG + 0x3c, 0x5a, 1);
	assert_int_equal(number(&rig, CONFIG + 0x3c, 1), 0x5a);
	set_number(&rig, COMMAND, 0xffff, 2);
	assert_int_equal(number(&rig, COMMAND, 2), 0x0507);
	set_number(&rig, COMMAND + 1, 0, 1);
	assert_int_equal(number(&rig, COMMAND, 2), 0x0007);
	/* Opened again it starts anew. */
	rig_close(&rig, &rig.device);
	rig.device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_int_equal(rig_bind(&rig, rig.device, rig.container, &id), 0);
	assert_int_equal(number(&rig, COMMAND, 2), 0x0003);
	assert_int_equal(number(&rig, CONFIG + 0x3c, 1), 0);
	rig_stop(&rig);
}

/* vfio_bar_fixup(): BARs can be sized, and moved in what is shown alone. */
static void bars(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct rig rig;

	(void)state;
	function.bar_size[4] = 16 * KIB;
	function.bar_address[4] = 0xd0000000;
	function.bar_flags[4] = DMAMAP_BAR_64;
	function.rom_size = 64 * KIB;
	function_start(&rig, &function);
	assert_int_equal(number(&rig, BAR0, 4), 0xc0000000);
	assert_int_equal(number(&rig, BAR0 + 4, 4), 0xc001);
	/* 64-bit by its place above 4 GiB: prefetchable too. */
	assert_int_equal(number(&rig, BAR0 + 8, 8), 0x38000000000c);
	/* 64-bit by its description. */
	assert_int_equal(number(&rig, BAR0 + 16, 8), 0xd0000004);
	for (unsigned i = 0; i < 6; i++)
		set_number(&rig, BAR0 + 4 * i, 0xffffffff, 4);
	set_number(&rig, ROM, 0xffffffff, 4);
	assert_int_equal(number(&rig, BAR0, 4), 0xffff0000);
	assert_int_equal(number(&rig, BAR0 + 4, 4), 0xffffffc1);
	assert_int_equal(number(&rig, BAR0 + 8, 8), 0xffffffffffc0000c);
	assert_int_equal(number(&rig, BAR0 + 16, 8), 0xffffffffffffc004);
	assert_int_equal(number(&rig, ROM, 4), 0xffff0001);
	set_number(&rig, BAR0, 0xdead1234, 4);
	assert_int_equal(number(&rig, BAR0, 4), 0xdead0000);
	/* By bytes, too. */
	set_number(&rig, BAR0 + 3, 0x12, 1);
	assert_int_equal(number(&rig, BAR0 + 3, 1), 0x12);
	assert_int_equal(number(&rig, BAR0, 4), 0x12ad0000);
	/* It is still where it was. */
	set_number(&rig, REGION(0), 0x55, 1);
	assert_int_equal(number(&rig, REGION(0), 1), 0x55);
	rig_stop(&rig);

	/* A BAR that is not there reads as 0. */
	function = function_default();
	function_start(&rig, &function);
	set_number(&rig, BAR0 + 20, 0xffffffff, 4);
	set_number(&rig, ROM, 0xffffffff, 4);
	assert_int_equal(number(&rig, BAR0 + 20, 4), 0);
	assert_int_equal(number(&rig, ROM, 4), 0);
	rig_stop(&rig);
}

/* vfio_pci_config_rw_single(): out of range before anything is done; never a short count. */
static void ranges(void **state)
{
	struct dmamap_machine_device function = function_default();
	uint8_t bytes[4097] = {0}, line = 0x77;
	struct rig rig;

	(void)state;
	for (unsigned express = 0; express < 2; express++) {
		size_t size = express ? 4096 : 256;

		function.express = express;
		function_start(&rig, &function);
		assert_int_equal(get(&rig, CONFIG, bytes, size), size);
		assert_gives(&rig, get(&rig, CONFIG, bytes, size + 1), EFAULT, "region_end");
		assert_gives(&rig, get(&rig, CONFIG + size, bytes, 1), EFAULT, "region_end");
		assert_gives(&rig, get(&rig, CONFIG + size - 1, bytes, 2), EFAULT, "region_end");
		/* Nothing is not looked at, wherever it is. */
		assert_int_equal(get(&rig, CONFIG + size, bytes, 0), 0);
		memset(bytes, 0xff, sizeof(bytes));
		assert_gives(&rig, put(&rig, CONFIG + 0x3c, bytes, size), EFAULT, "region_end");
		assert_int_equal(number(&rig, CONFIG + 0x3c, 1), 0);
		assert_gives(&rig, get(&rig, CONFIG, nowhere(), 4), EFAULT, "pointer");
		assert_gives(&rig, put(&rig, CONFIG + 0x3c, nowhere(), 1), EFAULT, "pointer");
		/* What nobody may write to is not fetched. */
		assert_int_equal(put(&rig, CONFIG + capability(&rig, 0x11), nowhere(), 4), 4);
		assert_int_equal(put(&rig, CONFIG + 0x3c, &line, 1), 1);
		assert_int_equal(number(&rig, CONFIG + 0x3c, 1), 0x77);
		rig_stop(&rig);
	}
}

/* read() goes on where the last one ended. */
static void position(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct rig rig;
	uint32_t word;

	(void)state;
	function_start(&rig, &function);
	set_number(&rig, REGION(0), 0x0000000200000001, 8);
	assert_int_equal(rig.system->ops->read(rig.system, rig.device, &word, 4), 4);
	assert_int_equal(word, 1);
	assert_int_equal(rig.system->ops->read(rig.system, rig.device, &word, 4), 4);
	assert_int_equal(word, 2);
	rig_stop(&rig);
}

/* vfio_cap_init(): the capabilities that the description asks for. */
static void capabilities(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct rig rig;
	unsigned at;

	(void)state;
	function_start(&rig, &function);
	assert_int_not_equal(capability(&rig, 0x13), 0);
	at = capability(&rig, 0x05);
	assert_int_equal(number(&rig, CONFIG + at + 2, 2), 0x0084);
	at = capability(&rig, 0x11);
	assert_int_equal(number(&rig, CONFIG + at + 2, 2), 7);
	assert_int_equal(number(&rig, CONFIG + at + 4, 4), 0x8000);
	assert_int_equal(number(&rig, CONFIG + at + 8, 4), 0x8080);
	assert_int_equal(capability(&rig, 0x10), 0);
	/* MSI-X can be read only. */
	set_number(&rig, CONFIG + at + 2, 0xffff, 2);
	assert_int_equal(number(&rig, CONFIG + at + 2, 2), 7);
	/* MSI has an address and data that stay what they are made; it is not enabled by hand. */
	at = capability(&rig, 0x05);
	set_number(&rig, CONFIG + at + 4, 0xfee00000, 4);
	set_number(&rig, CONFIG + at + 12, 0x1234, 2);
	assert_int_equal(number(&rig, CONFIG + at + 4, 4), 0xfee00000);
	assert_int_equal(number(&rig, CONFIG + at + 12, 2), 0x1234);
	set_number(&rig, CONFIG + at + 2, 0x00f5, 2);
	assert_int_equal(number(&rig, CONFIG + at + 2, 1), 0x84);
	/* Of the control's low byte every other bit is what was written last. */
	set_number(&rig, CONFIG + at + 2, 0x0071, 2);
	assert_int_equal(number(&rig, CONFIG + at + 2, 1), 0);
	/* What no capability owns keeps what is written. */
	set_number(&rig, CONFIG + 0xf0, 0x12345678, 4);
	assert_int_equal(number(&rig, CONFIG + 0xf0, 4), 0x12345678);
	rig_stop(&rig);

	function.express = true;
	function_start(&rig, &function);
	assert_int_equal(capability(&rig, 0x13), 0);
	at = capability(&rig, 0x10);
	/* Part of the root complex; it can be reset. */
	assert_int_equal(number(&rig, CONFIG + at + 2, 2), 0x92);
	assert_int_equal(number(&rig, CONFIG + at + 4, 4), 0x10008000);
	assert_int_not_equal(capability(&rig, 0x01), 0);
	rig_stop(&rig);

	function = (struct dmamap_machine_device){
		.bdf = "0000:00:03.0", .bar_size = {[0] = PAGE}, .bar_address = {[0] = 0xc0000000}};
	function_start(&rig, &function);
	assert_int_equal(number(&rig, COMMAND, 4), 0x00000002);
	assert_int_equal(number(&rig, CONFIG + 0x34, 1), 0);
	rig_stop(&rig);
}

/* vfio_pm_config_write(), __vfio_pci_memory_enabled(): asleep, its memory is not there. */
static void power(void **state)
{
	struct dmamap_machine_device function = function_default();
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct {
		uint32_t argsz, flags, index, start, count;
		int32_t fd;
	} set = {24, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 2, 0, 1, fd};
	struct rig rig;
	unsigned at;
	char byte;

	(void)state;
	function.express = true;
	function_start(&rig, &function);
	at = capability(&rig, 0x01);
	set_number(&rig, CONFIG + at + 4, 3, 2);
	assert_int_equal(number(&rig, CONFIG + at + 4, 2) & 3, 3);
	assert_gives(&rig, get(&rig, REGION(0), &byte, 1), EIO, "bar_off");
	assert_gives(&rig, device_call(&rig, VFIO_DEVICE_SET_IRQS, &set), EINVAL, "asleep");
	/* The states between are not there. */
	set_number(&rig, CONFIG + at + 4, 1, 2);
	assert_int_equal(number(&rig, CONFIG + at + 4, 2) & 3, 3);
	set_number(&rig, CONFIG + at + 4, 0, 2);
	assert_int_equal(get(&rig, REGION(0), &byte, 1), 1);
	/* A reset wakes it. */
	set_number(&rig, CONFIG + at + 4, 3, 2);
	assert_int_equal(device_call(&rig, VFIO_DEVICE_RESET, NULL), 0);
	assert_int_equal(number(&rig, CONFIG + at + 4, 2) & 3, 0);
	assert_int_equal(get(&rig, REGION(0), &byte, 1), 1);
	rig_stop(&rig);
	close(fd);
}

/* vfio_exp_config_write(), vfio_af_config_write(): the reset bit acts, and reads as 0. */
static void resets(void **state)
{
	struct dmamap_machine_device function = function_default();
	struct rig rig;
	unsigned at;

	(void)state;
	function_start(&rig, &function);
	at = capability(&rig, 0x13);
	set_number(&rig, COMMAND, 0x0407, 2);
	set_number(&rig, CONFIG + at + 4, 1, 1);
	assert_int_equal(number(&rig, CONFIG + at + 4, 1), 0);
	/* Linux restores config space after it. */
	assert_int_equal(number(&rig, COMMAND, 2), 0x0407);
	rig_stop(&rig);

	function.express = true;
	function_start(&rig, &function);
	at = capability(&rig, 0x10);
	set_number(&rig, CONFIG + capability(&rig, 0x01) + 4, 3, 2);
	set_number(&rig, CONFIG + at + 8, 0xffff, 2);
	/* All but the reset and phantom functions. */
	assert_int_equal(number(&rig, CONFIG + at + 8, 2), 0x7dff);
	assert_int_equal(number(&rig, CONFIG + capability(&rig, 0x01) + 4, 2) & 3, 0);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header),
		cmocka_unit_test(bars),
		cmocka_unit_test(ranges),
		cmocka_unit_test(position),
		cmocka_unit_test(capabilities),
		cmocka_unit_test(power),
		cmocka_unit_test(resets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
