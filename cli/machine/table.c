/* SPDX-License-Identifier: MIT */
/* A machine for people: what it is as a whole, then its IOMMUs, then its functions. */
#include <inttypes.h>
#include <string.h>

#include "cli/units.h"
#include "show.h"

static const char *yes(bool on)
{
	return on ? "yes" : "no";
}

static void show_whole(FILE *out, const struct shown *shown)
{
	const struct dmamap_machine *machine = &shown->machine;
	char page[UNITS_TEXT], limit[UNITS_TEXT];

	fprintf(out, "%s, as Linux %u.%u, pages of %s\n",
		strcmp(shown->system, "soft") ? "this machine" : "the soft system",
		machine->as_kernel >> 8, machine->as_kernel & 0xff,
		units_size(page, 1ULL << machine->page_shift));
	fprintf(out, "  locked memory       %s\n",
		machine->memlock == DMAMAP_MEMLOCK_PROCESS
			? "as RLIMIT_MEMLOCK and CAP_IPC_LOCK of the process allow"
			: "no limit");
	fprintf(out, "  type1               up to %s mappings, %s\n",
		units_count(limit, machine->dma_entry_limit),
		machine->disable_hugepages ? "pinned page by page" : "pinned in runs of pages");
	fprintf(out, "  look-ups of a BAR   %s\n",
		machine->pfnmap_stride == DMAMAP_PFNMAP_LEAF ? "by the leaf that maps it"
							     : "page by page");
	fprintf(out, "  interrupts          %s, %s\n",
		machine->isolated_msi ? "isolated" : "not isolated",
		machine->isolated_msi || machine->allow_unsafe_interrupts
			? "devices are allowed"
			: "so that devices are refused");
}

/* Leaf sizes as the text form has them: 4K/2M/1G, 4K-2P. */
static void show_leaves(uint64_t sizes, char *text, size_t size)
{
	char a[UNITS_TEXT], b[UNITS_TEXT];
	size_t n = 0;

	text[0] = '\0';
	for (unsigned first = 0; first < 64 && n < size; first++) {
		unsigned last = first;

		if (!(sizes >> first & 1))
			continue;
		while (last < 63 && sizes >> (last + 1) & 1)
			last++;
		if (last < first + 2)
			last = first;
		n += (size_t)snprintf(text + n, size - n, "%s%s%s%s", n ? "/" : "",
			units_short(a, 1ULL << first), last > first ? "-" : "",
			last > first ? units_short(b, 1ULL << last) : "");
		first = last;
	}
}

static void show_iommus(FILE *out, const struct dmamap_machine *machine)
{
	fprintf(out, "\n%-6s %-7s %-8s %-18s %-8s %-6s %s\n", "IOMMU", "model", "aperture",
		"leaves", "coherent", "dirty", "reserved");
	for (size_t i = 0; i < machine->n_iommus; i++) {
		const struct dmamap_machine_iommu *iommu = &machine->iommus[i];
		char leaves[512];

		show_leaves(iommu->leaf_sizes, leaves, sizeof(leaves));
		fprintf(out, "%-6zu %-7s %2u bits  %-18s %-8s %-6s", i,
			dmamap_machine_model_name(iommu->model), iommu->aperture_bits, leaves,
			yes(iommu->coherent), yes(iommu->dirty));
		for (size_t w = 0; w < iommu->n_windows; w++) {
			const struct dmamap_machine_window *window = &iommu->windows[w];

			if (w)
				fprintf(out, "%58s", "");
			fprintf(out, " 0x%" PRIx64 "-0x%" PRIx64 " (%s)\n", window->first,
				window->last, window->label);
		}
		if (!iommu->n_windows)
			fputs(" nothing\n", out);
	}
}

static void show_interrupts(const struct dmamap_machine_device *device, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	if (device->intx)
		n += (size_t)snprintf(text, size, "INTx");
	if (device->msi)
		n += (size_t)snprintf(text + n, size - n, "%sMSI %u", n ? ", " : "", device->msi);
	if (device->msix)
		n += (size_t)snprintf(
			text + n, size - n, "%sMSI-X %u", n ? ", " : "", device->msix);
	if (!n)
		snprintf(text, size, "none");
}

static void show_bars(FILE *out, const struct dmamap_machine_device *device)
{
	char size[UNITS_TEXT];

	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++)
		if (device->bar_size[i])
			fprintf(out, "%14sBAR %u  %s at 0x%" PRIx64 "%s\n", "", i,
				units_size(size, device->bar_size[i]), device->bar_address[i],
				device->bar_flags[i] & DMAMAP_BAR_IO ? " (ports)" : "");
	if (device->rom_size)
		fprintf(out, "%14sROM    %s\n", "", units_size(size, device->rom_size));
}

static void show_devices(FILE *out, const struct dmamap_machine *machine)
{
	if (!machine->n_devices) {
		fputs("\nno device on vfio-pci (dmamap help device)\n", out);
		return;
	}
	for (size_t i = 0; i < machine->n_devices; i++) {
		const struct dmamap_machine_device *device = &machine->devices[i];
		char interrupts[96];

		show_interrupts(device, interrupts, sizeof(interrupts));
		fprintf(out,
			"\n%s  %04x:%04x class %06x, behind IOMMU %u, /dev/vfio/%u, "
			"/dev/vfio/devices/vfio%u\n",
			device->bdf, device->vendor, device->device, device->class_code,
			device->iommu, device->group, device->cdev);
		fprintf(out, "              interrupts: %s; %s; %s\n", interrupts,
			device->reset ? "can be reset" : "cannot be reset",
			device->express ? "PCI Express" : "plain PCI");
		show_bars(out, device);
	}
}

void show_table(FILE *out, const struct shown *shown)
{
	show_whole(out, shown);
	show_iommus(out, &shown->machine);
	show_devices(out, &shown->machine);
	if (shown->assumed)
		fputs("\nassumed, since sysfs does not tell:\n", out);
	for (unsigned bit = 0; dmamap_machine_assumption(bit); bit++)
		if (shown->assumed >> bit & 1)
			fprintf(out, "  %s\n", dmamap_machine_assumption(bit));
}
