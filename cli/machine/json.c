/* SPDX-License-Identifier: MIT */
/* A machine as data; the fields are in docs/machine-format.md. */
#include "cli/fields.h"
#include "show.h"

static struct json_object *iommu_object(const struct dmamap_machine_iommu *iommu)
{
	struct json_object *object = json_object_new_object();
	struct json_object *leaves = json_object_new_array();
	struct json_object *windows = json_object_new_array();

	add_text(object, "model", dmamap_machine_model_name(iommu->model));
	add_number(object, "aperture_bits", iommu->aperture_bits);
	for (unsigned shift = 0; shift < 64; shift++)
		if (iommu->leaf_sizes >> shift & 1)
			json_object_array_add(leaves, json_object_new_uint64(1ULL << shift));
	add_field(object, "leaf_sizes", leaves);
	add_bool(object, "coherent", iommu->coherent);
	add_bool(object, "dirty", iommu->dirty);
	for (size_t i = 0; i < iommu->n_windows; i++) {
		struct json_object *window = json_object_new_object();

		add_field(window, "first", new_address(iommu->windows[i].first));
		add_field(window, "last", new_address(iommu->windows[i].last));
		add_text(window, "label", iommu->windows[i].label);
		json_object_array_add(windows, window);
	}
	add_field(object, "reserved", windows);
	return object;
}

static struct json_object *bars_array(const struct dmamap_machine_device *device)
{
	struct json_object *bars = json_object_new_array();

	for (unsigned i = 0; i < DMAMAP_MACHINE_BARS; i++) {
		struct json_object *bar;

		if (!device->bar_size[i])
			continue;
		bar = json_object_new_object();
		add_number(bar, "index", i);
		add_number(bar, "size", device->bar_size[i]);
		add_field(bar, "address", new_address(device->bar_address[i]));
		add_bool(bar, "io", device->bar_flags[i] & DMAMAP_BAR_IO);
		add_bool(bar, "64", device->bar_flags[i] & DMAMAP_BAR_64);
		add_bool(bar, "prefetch", device->bar_flags[i] & DMAMAP_BAR_PREFETCH);
		json_object_array_add(bars, bar);
	}
	return bars;
}

static struct json_object *device_object(const struct dmamap_machine_device *device)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "bdf", device->bdf);
	add_number(object, "iommu", device->iommu);
	add_number(object, "group", device->group);
	add_number(object, "cdev", device->cdev);
	add_number(object, "vendor", device->vendor);
	add_number(object, "device", device->device);
	add_number(object, "class", device->class_code);
	add_field(object, "bars", bars_array(device));
	add_number(object, "rom_size", device->rom_size);
	add_bool(object, "express", device->express);
	add_bool(object, "intx", device->intx);
	add_number(object, "msi", device->msi);
	add_number(object, "msix", device->msix);
	add_number(object, "msix_bar", device->msix_bar);
	add_number(object, "msix_offset", device->msix_offset);
	add_bool(object, "reset", device->reset);
	return object;
}

int show_json(FILE *out, const struct shown *shown)
{
	const struct dmamap_machine *machine = &shown->machine;
	struct json_object *root = json_object_new_object();
	struct json_object *schema = json_object_new_object();
	struct json_object *iommus = json_object_new_array();
	struct json_object *devices = json_object_new_array();
	struct json_object *assumed = json_object_new_array();
	char kernel[16];

	add_text(schema, "name", "dmamap-machine");
	add_number(schema, "version", 1);
	add_field(root, "schema", schema);
	add_text(root, "system", shown->system);
	add_number(root, "page_size", 1ULL << machine->page_shift);
	snprintf(kernel, sizeof(kernel), "%u.%u", machine->as_kernel >> 8,
		machine->as_kernel & 0xff);
	add_text(root, "as_kernel", kernel);
	add_text(root, "pfnmap_stride",
		machine->pfnmap_stride == DMAMAP_PFNMAP_LEAF ? "leaf" : "page");
	add_text(root, "memlock",
		machine->memlock == DMAMAP_MEMLOCK_PROCESS ? "process" : "unlimited");
	add_number(root, "entry_limit", machine->dma_entry_limit);
	add_bool(root, "huge_pages", !machine->disable_hugepages);
	add_bool(root, "unsafe_interrupts", machine->allow_unsafe_interrupts);
	add_bool(root, "isolated_msi", machine->isolated_msi);
	for (size_t i = 0; i < machine->n_iommus; i++)
		json_object_array_add(iommus, iommu_object(&machine->iommus[i]));
	add_field(root, "iommus", iommus);
	for (size_t i = 0; i < machine->n_devices; i++)
		json_object_array_add(devices, device_object(&machine->devices[i]));
	add_field(root, "devices", devices);
	for (unsigned bit = 0; dmamap_machine_assumption(bit); bit++)
		if (shown->assumed >> bit & 1)
			json_object_array_add(
				assumed, json_object_new_string(dmamap_machine_assumption(bit)));
	add_field(root, "assumed", assumed);
	return fields_print(out, root);
}
