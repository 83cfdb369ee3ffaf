/* SPDX-License-Identifier: MIT */
/* A machine's text: what is read, what is written, and what is refused with which sentence. */
#include <errno.h>
#include <unistd.h>

#include "machine/machine.h"
#include "tests/check.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* In one line; static. */
static const char *printed(const struct dmamap_machine *machine)
{
	static char text[2][65536];
	static unsigned turn;
	char *to = text[turn++ % 2];

	assert_true(dmamap_machine_print(machine, ',', to, sizeof(text[0])) < sizeof(text[0]));
	return to;
}

static const char *sentence(const struct dmamap_reason *why)
{
	static char text[1024];

	dmamap_reason_format(why, text, sizeof(text));
	return text;
}

static struct dmamap_machine parsed(const char *text)
{
	struct dmamap_machine machine;
	struct dmamap_reason why = {0};

	if (dmamap_machine_parse(NULL, text, &machine, &why))
		fail_msg("%s: %s", text, sentence(&why));
	return machine;
}

#define WHOLE                                                                                      \
	"page=4K,as-kernel=7.3,pfnmap-stride=leaf,memlock=process,entry-limit=65535,"              \
	"huge-pages=on,unsafe-interrupts=on,isolated-msi=off,"
#define INTEL                                                                                      \
	"iommu=intel,aperture=48,leaves=4K/2M/1G,coherent=on,dirty=off,no-reserve,"                \
	"reserve=0xfee00000-0xfeefffff:MSI window of intel-iommu,"
#define DEVICE                                                                                     \
	"device=0000:00:03.0,iommu=0,group=7,cdev=0,vendor=0x1b36,device-id=0x0005,"               \
	"class=0x00ff00,bar0=16M@0xc0000000,bar1=0,bar2=32G@0x380000000000,bar3=0,bar4=0,"         \
	"bar5=0,rom=0,express=off,intx=off,msi=0,msix=0,msix-bar=0,msix-offset=0x0,reset=on"

static void defaults(void **state)
{
	struct dmamap_machine machine = parsed(""), by_default;

	(void)state;
	assert_string_equal(printed(&machine), WHOLE INTEL DEVICE);
	dmamap_machine_default(&by_default);
	assert_string_equal(printed(&machine), printed(&by_default));
	dmamap_machine_free(&machine);
	dmamap_machine_free(&machine);
	/* Nothing but separators and comments is the same. */
	machine = parsed(" ,\n# iommu=amd\n\t,, #\r\n");
	assert_string_equal(printed(&machine), WHOLE INTEL DEVICE);
	dmamap_machine_free(&machine);
}

/* What a text sets, as a part of what is written of it. */
static const struct {
	const char *text, *part;
} sets[] = {
	{"page=16K", "page=16K,"},
	{"page=16K", "leaves=16K/32M,"},
	{"iommu=smmuv3,page=64K", "leaves=64K/512M,"},
	{"iommu=smmuv3", "leaves=4K/2M/1G,coherent=off,"},
	{"page=64K,leaves=4K/64K/512M", "leaves=4K/64K/512M,"},
	{"as-kernel=6.12", "as-kernel=6.12,pfnmap-stride=page,"},
	{"as-kernel=6.15", "pfnmap-stride=leaf,"},
	{"pfnmap-stride=page", "as-kernel=7.3,pfnmap-stride=page,"},
	{"pfnmap-stride=leaf,as-kernel=6.12", "pfnmap-stride=leaf,"},
	{"memlock=unlimited", "memlock=unlimited,"},
	{"entry-limit=3", "entry-limit=3,"},
	{"huge-pages=off", "huge-pages=off,"},
	{"unsafe-interrupts=off,isolated-msi=on", "unsafe-interrupts=off,isolated-msi=on,"},
	{"aperture=39", "iommu=intel,aperture=39,"},
	{"dirty=on,coherent=off", "coherent=off,dirty=on,"},
	{"leaves=4K/2MiB", "leaves=4K/2M,"},
	{"leaves=4K-16K", "leaves=4K-16K,"},
	{"leaves=4K-8K/1G-8E", "leaves=4K/8K/1G-8E,"},
	{"iommu=amd", "aperture=64,leaves=4K-256G/1T-2P,coherent=on,dirty=off,no-reserve,"
		      "reserve=0xfee00000-0xfeefffff:MSI window of amd-iommu,"
		      "reserve=0xfd00000000-0xffffffffff:HyperTransport range,device="},
	{"iommu=virtio", "aperture=64,leaves=4K-8E,coherent=off,"},
	{"iommu=smmuv3", "reserve=0x8000000-0x80fffff:software MSI window,"},
	{"no-reserve", "no-reserve,device="},
	{"no-reserve,reserve=0x1000-0x1fff", "no-reserve,reserve=0x1000-0x1fff:reserved,device="},
	{"reserve=0x8000000+1M:a: b", "intel-iommu,reserve=0x8000000-0x80fffff:a: b,device="},
	{"reserve=0-0xffffffffffffffff", "reserve=0x0-0xffffffffffffffff:reserved,"},
	{"reserve=0xfffffffffffff000+4K", "reserve=0xfffffffffffff000-0xffffffffffffffff:"},
	/* A number is a device's IOMMU; each device is behind the one started last. */
	{"iommu=intel,iommu=amd,device=00:04.0", "device=0000:00:04.0,iommu=1,group=7,cdev=0,"},
	{"iommu=intel,device=00:04.0,iommu=amd,device=00:05.0",
		"device=0000:00:05.0,iommu=1,group=8,cdev=1,"},
	{"device=00:04.0,iommu=1,iommu=amd,iommu=intel", "device=0000:00:04.0,iommu=1,"},
	{"aperture=39,iommu=amd,device=00:04.0", "iommu=intel,aperture=39,"},
	{"aperture=39,iommu=amd,device=00:04.0", "device=0000:00:04.0,iommu=1,"},
	{"device=00:04.0,group=8,device=00:05.0,cdev=0,device=00:06.0",
		"device=0000:00:06.0,iommu=0,group=9,cdev=2,"},
	/* Numbers that are given are kept from those that are not. */
	{"device=00:03.0\ndevice=00:04.0,cdev=0\n", "device=0000:00:03.0,iommu=0,group=7,cdev=1,"},
	{"no-device", "no-device"},
	{"device=0000:00:04.0:edu", "vendor=0x1234,device-id=0x11e8,class=0x00ff00,"
				    "bar0=1M@0xc0000000,bar1=0,bar2=0,bar3=0,bar4=0,bar5=0,"
				    "rom=0,express=off,intx=on,msi=1,msix=0,msix-bar=0,"
				    "msix-offset=0x0,reset=off"},
	{"device=00:04.0:nvme", "bar0=16K@0xc0000000:64,"},
	{"device=00:04.0:e1000e",
		"bar0=128K@0xc0000000,bar1=128K@0xc0020000,bar2=32@0xc000:io,"
		"bar3=16K@0xc0040000,bar4=0,bar5=0,rom=256K,express=on,intx=on,msi=1,msix=5,"
		"msix-bar=3,msix-offset=0x0,reset=on"},
	{"device=00:04.0:pci-testdev,bar2=1G", "bar2=1G@0x380000000000,"},
	/* A BAR of less than a page has one to itself, and room is left for those with addresses.
	 */
	{"device=00:04.0,bar0=256,bar1=256,bar3=1M@0xc0100000,bar4=1M",
		"bar0=256@0xc0000000,bar1=256@0xc0010000,bar2=0,bar3=1M@0xc0100000,"
		"bar4=1M@0xc0200000,"},
	{"device=00:04.0,bar0=1M:64:prefetch,bar2=64G:prefetch,bar4=64G:64,rom=2K",
		"bar0=1M@0xc0000000:64:prefetch,bar1=0,bar2=64G@0x380000000000,bar3=0,"
		"bar4=64G@0x381000000000:64,bar5=0,rom=2K,"},
	{"device=00:04.0,bar0=4:io,bar1=4:io,bar2=64K@0x10000:io",
		"bar0=4@0xc000:io,bar1=4@0xc004:io,"
		"bar2=64K@0x10000:io,"},
	{"device=00:04.0,vendor=0x10de,device-id=7,class=0x030000,intx=on,msi=32,msix=2048,"
	 "msix-bar=2,msix-offset=4096",
		"vendor=0x10de,device-id=0x0007,class=0x030000,bar0=0,bar1=0,bar2=0,bar3=0,"
		"bar4=0,bar5=0,rom=0,express=off,intx=on,msi=32,msix=2048,msix-bar=2,"
		"msix-offset=0x1000,reset=on"},
	{"machine=q35-amd", "device=0000:00:08.0,iommu=0,group=5,cdev=4,"},
	{"machine=q35-intel39", "iommu=intel,aperture=39,leaves=4K/2M/1G,coherent=off,"},
	{"machine=q35-intel48,aperture=57", "aperture=57,"},
	{"machine=q35-virtio,device=0a:00.0", "device=0000:0a:00.0,iommu=0,group=7,cdev=5,"},
	{"machine=virt-smmuv3,page=16K", "leaves=16K/32M,"},
};

static void values(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(sets); i++) {
		struct dmamap_machine machine = parsed(sets[i].text);

		if (!strstr(printed(&machine), sets[i].part))
			fail_msg("%s: no %s in %s", sets[i].text, sets[i].part, printed(&machine));
		dmamap_machine_free(&machine);
	}
}

/* What is written is read as the same, in either form and on any base. */
static void round_trip(void **state)
{
	static char file[65536], line[65536];

	(void)state;
	for (size_t i = 0; i < LENGTH(sets); i++) {
		struct dmamap_machine machine, again, base;
		struct dmamap_reason why = {0};

		machine = parsed(sets[i].text);
		dmamap_machine_print(&machine, '\n', file, sizeof(file));
		dmamap_machine_print(&machine, ',', line, sizeof(line));
		again = parsed(file);
		assert_string_equal(printed(&machine), printed(&again));
		dmamap_machine_free(&again);
		base = parsed("machine=q35-amd,page=64K,as-kernel=6.12,memlock=unlimited");
		assert_int_equal(dmamap_machine_parse(&base, line, &again, &why), 0);
		assert_string_equal(printed(&machine), printed(&again));
		dmamap_machine_free(&base);
		dmamap_machine_free(&again);
		assert_int_equal(dmamap_machine_copy(&again, &machine, &why), 0);
		dmamap_machine_free(&machine);
		assert_string_equal(line, printed(&again));
		dmamap_machine_free(&again);
	}
}

/* What the base has stays where it is not named. */
static void base(void **state)
{
	struct dmamap_machine first = parsed("iommu=amd,memlock=unlimited,as-kernel=6.12"), second;
	struct dmamap_reason why = {0};

	(void)state;
	assert_int_equal(dmamap_machine_parse(&first, "entry-limit=5", &second, &why), 0);
	assert_non_null(strstr(printed(&second), "as-kernel=6.12,pfnmap-stride=page,"
						 "memlock=unlimited,entry-limit=5,"));
	assert_non_null(strstr(printed(&second), "iommu=amd,aperture=64,leaves=4K-256G/1T-2P,"));
	dmamap_machine_free(&second);
	/* A base of two IOMMUs, and a text that leaves one. */
	dmamap_machine_free(&first);
	first = parsed("iommu=intel,iommu=amd,device=00:04.0");
	assert_int_equal(dmamap_machine_parse(&first, "iommu=virtio", &second, &why), 0);
	assert_non_null(strstr(printed(&second), "device=0000:00:04.0,iommu=0,"));
	dmamap_machine_free(&second);
	dmamap_machine_free(&first);
	/* A base that cannot be. */
	dmamap_machine_default(&first);
	first.page_shift = 13;
	assert_refused(dmamap_machine_parse(&first, "", &second, &why), &why, EINVAL,
		&machine_reason_machine);
}

static const struct {
	const char *text, *sentence;
} wrong[] = {
	{"page=5K", "line 1, column 6: page=5K cannot be; give 4K, 16K or 64K"},
	{"page=4K,\n  page=16K", "line 2, column 3: page is given twice"},
	{"aperture=48,aperture=39", "line 1, column 13: aperture is given twice"},
	{"pages=4K", "line 1, column 1: there is no key pages; " MACHINE_KEYS_TEXT},
	{"=4K", "line 1, column 1: there is no key ; " MACHINE_KEYS_TEXT},
	{"a\x01"
	 "b=4K",
		"line 1, column 1: there is no key a?b; " MACHINE_KEYS_TEXT},
	{"page", "line 1, column 1: page needs a value, as in page=VALUE"},
	{"iommu", "line 1, column 1: iommu needs a value, as in iommu=VALUE"},
	{"no-reserve=1", "line 1, column 1: no-reserve takes no value"},
	{"aperture=12", "line 1, column 10: aperture=12 cannot be; give its width in bits, 13 to "
			"64, such as 48"},
	{"aperture = 65", "line 1, column 12: aperture=65 cannot be; give its width in bits, 13 to "
			  "64, such as 48"},
	{"aperture=-1", "line 1, column 10: aperture=-1 cannot be; give its width in bits, 13 to "
			"64, such as 48"},
	{"entry-limit=4294967296", "line 1, column 13: entry-limit=4294967296 cannot be; give a "
				   "number up to 4294967295, such as 65535"},
	{"as-kernel=7", "line 1, column 11: as-kernel=7 cannot be; give 7.3, 6.12 or another"},
	{"as-kernel=7.-3", "line 1, column 11: as-kernel=7.-3 cannot be; give 7.3, 6.12 or "
			   "another"},
	{"as-kernel=7.300", "line 1, column 11: as-kernel=7.300 cannot be; give 7.3, 6.12 or "
			    "another"},
	{"dirty=yes", "line 1, column 7: dirty=yes cannot be; give on or off"},
	{"iommu=riscv", "line 1, column 7: iommu=riscv cannot be; give intel, amd, smmuv3 or "
			"virtio; for a device, the number of one"},
	{"leaves=4K/3M", "line 1, column 8: leaves=4K/3M cannot be; give powers of two from 4K on, "
			 "as in 4K/2M/1G or, for all between, 4K-2P"},
	{"leaves=2M-4K", "line 1, column 8: leaves=2M-4K cannot be; give powers of two from 4K on, "
			 "as in 4K/2M/1G or, for all between, 4K-2P"},
	{"reserve=0x2000-0x1fff", "line 1, column 9: reserve=0x2000-0x1fff cannot be; give a range "
				  "and its name, as in 0xfee00000-0xfeefffff:MSI or "
				  "0xfee00000+1M:MSI"},
	{"reserve=0+0", "line 1, column 9: reserve=0+0 cannot be; give a range and its name, as in "
			"0xfee00000-0xfeefffff:MSI or 0xfee00000+1M:MSI"},
	{"group=7",
		"line 1, column 1: group belongs to a device, and none is started; put it after "
		"device=0000:00:03.0 or the like"},
	{"iommu=1",
		"line 1, column 1: iommu belongs to a device, and none is started; put it after "
		"device=0000:00:03.0 or the like"},
	{"no-device,bar0=16M", "line 1, column 11: bar0 belongs to a device, and none is started; "
			       "put it after device=0000:00:03.0 or the like"},
	{"device=03.0", "line 1, column 8: device=03.0 cannot be; give a PCI address, as in "
			"0000:00:03.0, and none or one of :pci-testdev, :edu, :e1000e and :nvme"},
	{"device=00:03.0:floppy", "line 1, column 8: device=00:03.0:floppy cannot be; give a PCI "
				  "address, as in 0000:00:03.0, and none or one of :pci-testdev, "
				  ":edu, :e1000e and :nvme"},
	{"device=00:03.8", "line 1, column 8: device=00:03.8 cannot be; give a PCI address, as in "
			   "0000:00:03.0, and none or one of :pci-testdev, :edu, :e1000e and "
			   ":nvme"},
	{"device=00:03.0,bar0=3M", "line 1, column 21: bar0=3M cannot be; give a power of two from "
				   "16 on, and an address that is a multiple of it, as in 32G or "
				   "16M@0xc0000000; then any of :io, :64 and :prefetch; 0: none"},
	{"device=00:03.0,rom=1K",
		"line 1, column 20: rom=1K cannot be; give a power of two from 2K to 16M; 0: none"},
	{"device=00:03.0,bar0=1M:wide",
		"line 1, column 21: bar0=1M:wide cannot be; give a power of two from 16 on, and an "
		"address that is a multiple of it, as in 32G or 16M@0xc0000000; then any of :io, "
		":64 and :prefetch; 0: none"},
	{"device=00:03.0,msix-offset=4",
		"line 1, column 1: a machine whose offset of the MSI-X table is 0x4 cannot be"},
	{"device=00:03.0,bar0=1M:64,bar1=1M",
		"line 1, column 1: a machine whose BAR after a 64-bit one is 0x1 cannot be"},
	{"entry-limit=1,machine=q35-amd",
		"line 1, column 15: machine= must come first: it sets all "
		"else"},
	{"machine=pdp11",
		"line 1, column 9: machine=pdp11 cannot be; give q35-intel48, q35-intel39, "
		"q35-amd, q35-virtio or virt-smmuv3"},
	/* What only the whole can tell stands at the IOMMU or device that is wrong. */
	{"iommu=intel,leaves=2M", "line 1, column 1: a machine whose bitmap of page sizes is "
				  "0x200000 cannot be"},
	{"device=00:03.0,cdev=1\ndevice=00:04.0,cdev=1", "line 2, column 1: a machine whose "
							 "repeated cdev number is 0x1 cannot be"},
	{"device=00:03.0\n\n #\n\tdevice=0000:00:03.0",
		"line 4, column 2: a machine whose repeated "
		"PCI address is 0x1 cannot be"},
	{"device=00:03.0,iommu=1", "line 1, column 1: a machine whose device's IOMMU is 0x1 cannot "
				   "be"},
	{"device=00:03.0,msi=3", "line 1, column 1: a machine whose number of MSI vectors is 0x3 "
				 "cannot be"},
	{"device=00:03.0,bar0=32G,bar1=16M", "line 1, column 1: a machine whose BAR after a 64-bit "
					     "one is 0x1 cannot be"},
	{"iommu=intel,iommu=intel,device=00:03.0,group=1,device=00:04.0,group=1,iommu=0",
		"line 1, column 48: a machine whose group behind two IOMMUs is 0x1 cannot be"},
	{"leaves=8K", "a machine whose bitmap of page sizes is 0x2000 cannot be"},
};

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(wrong); i++) {
		struct dmamap_machine machine = {.page_shift = 99};
		struct dmamap_reason why = {0};
		int error = dmamap_machine_parse(NULL, wrong[i].text, &machine, &why);

		assert_int_equal(error, -EINVAL);
		assert_string_equal(sentence(&why), wrong[i].sentence);
		assert_int_equal(machine.page_shift, 99);
	}
}

/* The sentence about unknown keys names each one that there is; "bar0 to bar5" are six. */
static void all_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < MACHINE_KEYS; i++) {
		const char *name = machine_keys[i].name;
		const char *found = NULL;

		assert_non_null(name);
		for (const char *p = MACHINE_KEYS_TEXT; !found && (p = strstr(p, name)); p++)
			if (p[-1] == ' ' && strchr(", ;", p[strlen(name)]))
				found = p;
		if (!found && (strncmp(name, "bar", 3) || name[3] == '0' || name[3] == '5'))
			fail_msg("%s is not named", name);
	}
}

/* Limits: no text makes a machine of any size, or an item of any length. */
static void too_much(void **state)
{
	static char text[MACHINE_DEVICES * 32 + 1024];
	struct dmamap_machine machine;
	struct dmamap_reason why = {0};
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < MACHINE_DEVICES; i++)
		n += (size_t)sprintf(text + n, "device=%04x:%02x:%02x.0\n", i >> 8, i & 0xff, 0);
	machine = parsed(text);
	assert_int_equal(machine.n_devices, MACHINE_DEVICES);
	assert_int_equal(machine.devices[MACHINE_DEVICES - 1].group, 7 + MACHINE_DEVICES - 1);
	dmamap_machine_free(&machine);
	strcpy(text + n, "device=ffff:ff:00.0\n");
	assert_int_equal(dmamap_machine_parse(NULL, text, &machine, &why), -EINVAL);
	assert_string_equal(sentence(&why), "line 1025, column 1: more than 1024 of devices");
	memset(text, 0, sizeof(text));
	for (unsigned i = 0; i <= MACHINE_IOMMUS; i++)
		strcpy(text + 10 * i, "iommu=amd,");
	assert_int_equal(dmamap_machine_parse(NULL, text, &machine, &why), -EINVAL);
	assert_string_equal(sentence(&why), "line 1, column 2561: more than 256 of IOMMUs");
	memset(text, 'x', 600);
	text[600] = '\0';
	assert_int_equal(dmamap_machine_parse(NULL, text, &machine, &why), -EINVAL);
	assert_string_equal(sentence(&why), "line 1, column 1: an item of 600 bytes; none needs "
					    "more than 511");
}

static void files(void **state)
{
	char path[] = "/tmp/dmamap-machine-XXXXXX", spec[64];
	struct dmamap_machine machine;
	struct dmamap_reason why = {0};
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	snprintf(spec, sizeof(spec), "@%s", path);
	assert_int_equal(write(fd, "iommu=amd\n\taperture=50", 22), 22);
	assert_int_equal(dmamap_machine_load(NULL, spec, &machine, &why), 0);
	assert_int_equal(machine.iommus[0].aperture_bits, 50);
	dmamap_machine_free(&machine);
	assert_int_equal(pwrite(fd, "\0", 1, 9), 1);
	assert_int_equal(dmamap_machine_load(NULL, spec, &machine, &why), -EINVAL);
	assert_non_null(strstr(sentence(&why), ": this is no text of a machine"));
	close(fd);
	unlink(path);
	assert_int_equal(dmamap_machine_load(NULL, spec, &machine, &why), -ENOENT);
	assert_non_null(strstr(sentence(&why), ": No such file or directory"));
	assert_int_equal(dmamap_machine_load(NULL, "@/", &machine, &why), -EISDIR);
	assert_int_equal(dmamap_machine_load(NULL, "page=16K", &machine, &why), 0);
	dmamap_machine_free(&machine);
}

/* Room that is too small is filled as far as it goes, and the whole length is told. */
static void cut(void **state)
{
	char small[8];
	struct dmamap_machine machine;

	(void)state;
	dmamap_machine_default(&machine);
	assert_int_equal(dmamap_machine_print(&machine, ',', small, sizeof(small)),
		strlen(WHOLE INTEL DEVICE));
	assert_string_equal(small, "page=4K");
	assert_int_equal(dmamap_machine_print(&machine, ',', NULL, 0), strlen(WHOLE INTEL DEVICE));
}

/* A label that could not be read back is written as near as can be. */
static void odd_labels(void **state)
{
	const struct dmamap_machine_window windows[] = {
		{0x1000, 0x1fff, "a,b#c\n "}, {0x2000, 0x2fff, ""}, {0x3000, 0x3fff, NULL}};
	struct dmamap_machine machine, again;
	struct dmamap_machine_iommu iommu;

	(void)state;
	dmamap_machine_default(&machine);
	iommu = machine.iommus[0];
	iommu.windows = windows;
	iommu.n_windows = LENGTH(windows);
	machine.iommus = &iommu;
	again = parsed(printed(&machine));
	assert_string_equal(again.iommus[0].windows[0].label, "a.b.c..");
	assert_string_equal(again.iommus[0].windows[1].label, "reserved");
	assert_string_equal(again.iommus[0].windows[2].label, "reserved");
	dmamap_machine_free(&again);
}

/* Random changes to texts that are right: never a crash, and what is read is written the same. */
static void mutations(void **state)
{
	static const char pieces[][24] = {"iommu=", "device=", "=", ",", "\n", "#", "0x", "-", ":",
		"@", "/", "K", "amd", "bar5=", "18446744073709551615", "leaves=", "no-device"};
	struct random random = random_start("mutations");
	unsigned right = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		const char *from = sets[random_below(&random, LENGTH(sets))].text;
		struct dmamap_machine machine, again;
		struct dmamap_reason why = {0};
		char text[1024];
		size_t length;

		snprintf(text, 512, "%s,%s", from, sets[random_below(&random, LENGTH(sets))].text);
		for (unsigned n = (unsigned)random_below(&random, 4); n; n--) {
			const char *piece = pieces[random_below(&random, LENGTH(pieces))];
			size_t size = strlen(piece), at;

			length = strlen(text);
			at = random_below(&random, length + 1);
			switch (random_below(&random, 3)) {
			case 0:
				text[at] = (char)(at < length ? random_next(&random) : 0);
				break;
			case 1:
				memmove(text + at, text + at + (at < length),
					length - at + 1 - (at < length));
				break;
			default:
				if (length + size + 1 > sizeof(text))
					break;
				memmove(text + at + size, text + at, length - at + 1);
				memcpy(text + at, piece, size);
			}
		}
		if (dmamap_machine_parse(NULL, text, &machine, &why)) {
			assert_non_null(why.kind);
			assert_true(strlen(sentence(&why)) > 20);
			continue;
		}
		right++;
		again = parsed(printed(&machine));
		assert_string_equal(printed(&machine), printed(&again));
		dmamap_machine_free(&again);
		dmamap_machine_free(&machine);
	}
	printf("%u of 20000 could be\n", right);
	assert_true(right > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(values),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(base),
		cmocka_unit_test(refusals),
		cmocka_unit_test(all_keys),
		cmocka_unit_test(too_much),
		cmocka_unit_test(files),
		cmocka_unit_test(cut),
		cmocka_unit_test(odd_labels),
		cmocka_unit_test(mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
