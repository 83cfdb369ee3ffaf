/* SPDX-License-Identifier: MIT */
/* The keys of a machine's text: one table, by which it is read and written. */
#include <stddef.h>
#include <string.h>

#include "machine/machine.h"

#define GIVE(what)                                                                                 \
	{                                                                                          \
		"machine_value", "line {0d}, column {1d}: {t} cannot be; give " what               \
	}
#define FIELD(type, field)                                                                         \
	.offset = offsetof(struct type, field), .size = sizeof(((struct type *)0)->field)
#define OF_MACHINE(name, form, field) name, MACHINE_WHOLE, form, FIELD(dmamap_machine, field)
#define OF_IOMMU(name, form, field)   name, MACHINE_IOMMU, form, FIELD(dmamap_machine_iommu, field)
#define OF_DEVICE(name, form, field)  name, MACHINE_DEVICE, form, FIELD(dmamap_machine_device, field)
#define ON_OFF			      GIVE("on or off")
#define BAR(name, index)                                                                           \
	{                                                                                          \
		name, MACHINE_DEVICE, FORM_BAR,                                                    \
			.min = index,                                                              \
			.wrong = GIVE("a power of two from 16 on, and an address that is a "       \
				      "multiple of it, as in 32G or 16M@0xc0000000; then any of "  \
				      ":io, :64 and :prefetch; 0: none")                           \
	}

static const struct machine_choice pages[] = {{"4K", 12}, {"16K", 14}, {"64K", 16}, {NULL, 0}};
static const struct machine_choice strides[] = {
	{"leaf", DMAMAP_PFNMAP_LEAF}, {"page", DMAMAP_PFNMAP_PAGE}, {NULL, 0}};
static const struct machine_choice memlocks[] = {
	{"process", DMAMAP_MEMLOCK_PROCESS}, {"unlimited", DMAMAP_MEMLOCK_UNLIMITED}, {NULL, 0}};
static const struct machine_choice models[] = {
	{"intel", DMAMAP_IOMMU_INTEL},
	{"amd", DMAMAP_IOMMU_AMD},
	{"smmuv3", DMAMAP_IOMMU_SMMUV3},
	{"virtio", DMAMAP_IOMMU_VIRTIO},
	{NULL, 0},
};

const struct machine_choice machine_bar_flags[] = {
	{"io", DMAMAP_BAR_IO}, {"64", DMAMAP_BAR_64}, {"prefetch", DMAMAP_BAR_PREFETCH}, {NULL, 0}};

const struct machine_key machine_keys[MACHINE_KEYS] = {
	{"machine", MACHINE_WHOLE, FORM_PRESET,
		.wrong = GIVE("q35-intel48, q35-intel39, q35-amd, "
			      "q35-virtio or virt-smmuv3")},
	{OF_MACHINE("page", FORM_CHOICE, page_shift), .choices = pages,
		.wrong = GIVE("4K, 16K or 64K")},
	{OF_MACHINE("as-kernel", FORM_KERNEL, as_kernel), .wrong = GIVE("7.3, 6.12 or another")},
	{OF_MACHINE("pfnmap-stride", FORM_CHOICE, pfnmap_stride), .choices = strides,
		.wrong = GIVE("leaf or page")},
	{OF_MACHINE("memlock", FORM_CHOICE, memlock), .choices = memlocks,
		.wrong = GIVE("process or unlimited")},
	{OF_MACHINE("entry-limit", FORM_NUMBER, dma_entry_limit), .max = UINT32_MAX,
		.wrong = GIVE("a number up to 4294967295, such as 65535")},
	{OF_MACHINE("huge-pages", FORM_OFF, disable_hugepages), .wrong = ON_OFF},
	{OF_MACHINE("unsafe-interrupts", FORM_ON, allow_unsafe_interrupts), .wrong = ON_OFF},
	{OF_MACHINE("isolated-msi", FORM_ON, isolated_msi), .wrong = ON_OFF},
	{"no-device", MACHINE_WHOLE, FORM_NO_DEVICE, .wrong = {NULL, NULL}},
	{OF_DEVICE("iommu", FORM_NUMBER, iommu), .max = MACHINE_IOMMUS - 1,
		.wrong = GIVE("the number of an IOMMU, from 0 in their order")},
	{OF_IOMMU("iommu", FORM_MODEL, model), .choices = models,
		.wrong = GIVE("intel, amd, smmuv3 or virtio; for a device, "
			      "the number of one")},
	{OF_IOMMU("aperture", FORM_NUMBER, aperture_bits), .min = 13, .max = 64,
		.wrong = GIVE("its width in bits, 13 to 64, such as 48")},
	{OF_IOMMU("leaves", FORM_LEAVES, leaf_sizes),
		.wrong = GIVE("powers of two from 4K on, as in 4K/2M/1G "
			      "or, for all between, "
			      "4K-2P")},
	{OF_IOMMU("coherent", FORM_ON, coherent), .wrong = ON_OFF},
	{OF_IOMMU("dirty", FORM_ON, dirty), .wrong = ON_OFF},
	{"no-reserve", MACHINE_IOMMU, FORM_NO_RESERVE, .wrong = {NULL, NULL}},
	{"reserve", MACHINE_IOMMU, FORM_RESERVE,
		.wrong = GIVE("a range and its name, as in "
			      "0xfee00000-0xfeefffff:MSI or "
			      "0xfee00000+1M:MSI")},
	{"device", MACHINE_DEVICE, FORM_BDF,
		.wrong = GIVE("a PCI address, as in 0000:00:03.0, and none "
			      "or one of :pci-testdev, "
			      ":edu, :e1000e and :nvme")},
	{OF_DEVICE("group", FORM_NUMBER, group), .max = 999999999,
		.wrong = GIVE("a number up to 999999999")},
	{OF_DEVICE("cdev", FORM_NUMBER, cdev), .max = 999999999,
		.wrong = GIVE("a number up to 999999999")},
	{OF_DEVICE("vendor", FORM_HEX, vendor), .min = 4, .max = UINT16_MAX,
		.wrong = GIVE("16 bits, such as 0x1b36")},
	{OF_DEVICE("device-id", FORM_HEX, device), .min = 4, .max = UINT16_MAX,
		.wrong = GIVE("16 bits, such as 0x0005")},
	{OF_DEVICE("class", FORM_HEX, class_code), .min = 6, .max = 0xffffff,
		.wrong = GIVE("24 bits, such as 0x00ff00")},
	BAR("bar0", 0),
	BAR("bar1", 1),
	BAR("bar2", 2),
	BAR("bar3", 3),
	BAR("bar4", 4),
	BAR("bar5", 5),
	{OF_DEVICE("rom", FORM_SIZE, rom_size), .min = 2048, .max = 16 << 20,
		.wrong = GIVE("a power of two from 2K to 16M; 0: none")},
	{OF_DEVICE("express", FORM_ON, express), .wrong = ON_OFF},
	{OF_DEVICE("intx", FORM_ON, intx), .wrong = ON_OFF},
	{OF_DEVICE("msi", FORM_NUMBER, msi), .max = 32,
		.wrong = GIVE("0 for none, or 1, 2, 4, 8, 16 or 32")},
	{OF_DEVICE("msix", FORM_NUMBER, msix), .max = 2048,
		.wrong = GIVE("a number up to 2048; 0: none")},
	{OF_DEVICE("msix-bar", FORM_NUMBER, msix_bar), .max = DMAMAP_MACHINE_BARS - 1,
		.wrong = GIVE("0 to 5")},
	{OF_DEVICE("msix-offset", FORM_HEX, msix_offset), .min = 1, .max = UINT32_MAX,
		.wrong = GIVE("a multiple of 8 within 32 bits, such as 0x2000")},
	{OF_DEVICE("reset", FORM_ON, reset), .wrong = ON_OFF},
};

/* Fields are unsigned numbers, enums and bools. */
uint64_t machine_field(const struct machine_key *key, const void *object)
{
	const char *at = (const char *)object + key->offset;
	uint64_t wide;
	uint32_t half;
	uint16_t quarter;

	switch (key->size) {
	case 8:
		memcpy(&wide, at, 8);
		return wide;
	case 4:
		memcpy(&half, at, 4);
		return half;
	case 2:
		memcpy(&quarter, at, 2);
		return quarter;
	default:
		return (uint8_t)*at;
	}
}

void machine_set_field(const struct machine_key *key, void *object, uint64_t value)
{
	char *at = (char *)object + key->offset;
	uint32_t half = (uint32_t)value;
	uint16_t quarter = (uint16_t)value;

	switch (key->size) {
	case 8:
		memcpy(at, &value, 8);
		break;
	case 4:
		memcpy(at, &half, 4);
		break;
	case 2:
		memcpy(at, &quarter, 2);
		break;
	default:
		*at = (char)value;
	}
}

const char *dmamap_machine_model_name(enum dmamap_iommu_model model)
{
	return model <= DMAMAP_IOMMU_VIRTIO ? models[model].name : "unknown";
}
