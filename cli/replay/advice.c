/* SPDX-License-Identifier: MIT */
/* What to do about a refusal, where that is clear from its reason. */
#include <stddef.h>
#include <string.h>

#include "cli/units.h"
#include "run.h"

/* By the kind's name; the text has the reason's own numbers. */
static const struct {
	const char *kind;
	const char *text;
} table[] = {
	{"overlap", "unmap that area first, or choose another IOVA"},
	{"aperture", "map below that end, or use an IOMMU with a wider aperture"},
	{"unusable", "map inside one of them"},
	{"area_limit", "unmap something, make fewer and larger mappings, or load vfio_iommu_type1 "
		       "with a larger dma_entry_limit"},
	{"memlock", "raise the limit (ulimit -l), or give the process CAP_IPC_LOCK"},
	{"cut", "unmap {2x}-{3x} as a whole"},
	{"gap", "give a range that is mapped without a gap"},
	{"no_iova", "unmap something, or allow more IOVAs"},
	{"misaligned", "give a multiple of {1s}"},
	{"wrap", "end the range at the last byte at most"},
	{"argsz", "give at least {1d}"},
	{"reserved_field", "set it to 0"},
	{"unmap_all", "set both to 0"},
	{"vaddr_inexact", "give the whole of it"},
	{"hole", "map memory at that address first"},
	{"memory_access", "map it read only, or make the memory writable"},
	{"bar_pinned", "map a BAR in a type1 container, or its dma-buf with map_file"},
	{"bar_off", "turn memory decoding on in the device's command register"},
	{"file_kind", "use a memfd"},
	{"dmabuf_revoked", "turn the device's memory on, and get a new dma-buf"},
	{"dmabuf_ranges", "get a dma-buf of each range"},
	{"iommu_unset", "call VFIO_SET_IOMMU first"},
	{"container_empty", "give the container a group first"},
	{"iommu_set", "use one IOMMU type for a container's life"},
	{"group_open", "close the group's other descriptor, and unmap BARs that keep it open"},
	{"group_cdev", "use the group or the cdev, not both"},
	{"group_used", "close the group's devices first"},
	{"group_owned", "close what uses the group's other devices"},
	{"group_aperture", "unmap {1x}-{2x} first, or use another container"},
	{"group_window", "unmap {1x}-{2x} first, or use another container"},
	{"group_msi",
		"if you trust the device, load vfio_iommu_type1 with allow_unsafe_interrupts=1"},
	{"unsafe_interrupts",
		"if you trust the device, load iommufd with allow_unsafe_interrupts=1"},
	{"group_elsewhere", "attach all devices of a group to the same page table"},
	{"device_unbound", "bind the device to an IOMMUFD first"},
	{"object_busy", "destroy or detach what uses it first"},
	{"objects_exist", "set it right after /dev/iommu is opened"},
	{"no_compat_ioas", "attach a group with set_container, or set one with vfio_ioas"},
	{"hwpt_untracked", "allocate the page table with DIRTY_TRACKING"},
	{"tracking_off", "switch it on first"},
	{"dirty_v1", "use type1v2"},
	{"not_file", "map it with IOMMU_IOAS_MAP_FILE, or unmap it first"},
	{"range_reserved", "leave the reserved ranges out: IOVA_RANGES lists the others"},
	{"ranges_room", "give room for {0d}"},
	{"irq_off", "enable it first"},
	{"mmap_shared", "use MAP_SHARED"},
};

/* The parts on either side of a reserved range, from the engine's four numbers. */
static bool around(const struct dmamap_reason *reason, char *text, size_t size)
{
	uint64_t first = reason->number[0], reserved = reason->number[2];
	uint64_t last = reason->number[3];
	char length[UNITS_TEXT];
	size_t n = 0;

	text[0] = '\0';
	if (first < reserved)
		n = (size_t)snprintf(text, size, "map 0x%llx size %s alone",
			(unsigned long long)first, units_exact(length, reserved - first));
	if (last != UINT64_MAX && n < size)
		snprintf(text + n, size - n, "%sstart at 0x%llx", n ? ", or " : "",
			(unsigned long long)last + 1);
	return text[0] != '\0';
}

bool advice(const struct dmamap_reason *reason, char *text, size_t size)
{
	struct dmamap_reason_kind kind = {0};
	struct dmamap_reason said = *reason;

	if (!reason->kind)
		return false;
	if (!strcmp(reason->kind->name, "reserved"))
		return around(reason, text, size);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].kind, reason->kind->name) != 0)
			continue;
		kind.name = table[i].kind;
		kind.text = table[i].text;
		said.kind = &kind;
		dmamap_reason_format(&said, text, size);
		return true;
	}
	return false;
}
