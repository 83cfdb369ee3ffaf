/* SPDX-License-Identifier: MIT */
/* A machine as data; the fields are in docs/machine-format.md. */
#include <inttypes.h>
#include <json-c/json.h>

#include "show.h"

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static void add_number(struct json_object *object, const char *key, uint64_t number)
{
	add(object, key, json_object_new_uint64(number));
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
	add(object, key, json_object_new_string(text));
}

static void add_on(struct json_object *object, const char *key, bool on)
{
	add(object, key, json_object_new_boolean(on));
}

/* 64 bits are more than many a reader's numbers hold. */
static void add_address(struct json_object *object, const char *key, uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	add_text(object, key, text);
}

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
	add(object, "leaf_sizes", leaves);
	add_on(object, "coherent", iommu->coherent);
	add_on(object, "dirty", iommu->dirty);
	for (size_t i = 0; i < iommu->n_windows; i++) {
		struct json_object *window = json_object_new_object();

		add_address(window, "first", iommu->windows[i].first);
		add_address(window, "last", iommu->windows[i].last);
		add_text(window, "label", iommu->windows[i].label);
		json_object_array_add(windows, window);
	}
	add(object, "reserved", windows);
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
		add_address(bar, "address", device->bar_address[i]);
		add_on(bar, "io", device->bar_flags[i] & DMAMAP_BAR_IO);
		add_on(bar, "64", device->bar_flags[i] & DMAMAP_BAR_64);
		add_on(bar, "prefetch", device->bar_flags[i] & DMAMAP_BAR_PREFETCH);
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
	add(object, "bars", bars_array(device));
	add_number(object, "rom_size", device->rom_size);
	add_on(object, "express", device->express);
	add_on(object, "intx", device->intx);
	add_number(object, "msi", device->msi);
	add_number(object, "msix", device->msix);
	add_number(object, "msix_bar", device->msix_bar);
	add_number(object, "msix_offset", device->msix_offset);
	add_on(object, "reset", device->reset);
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
	const char *text;

	add_text(schema, "name", "dmamap-machine");
	add_number(schema, "version", 1);
	add(root, "schema", schema);
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
	add_on(root, "huge_pages", !machine->disable_hugepages);
	add_on(root, "unsafe_interrupts", machine->allow_unsafe_interrupts);
	add_on(root, "isolated_msi", machine->isolated_msi);
	for (size_t i = 0; i < machine->n_iommus; i++)
		json_object_array_add(iommus, iommu_object(&machine->iommus[i]));
	add(root, "iommus", iommus);
	for (size_t i = 0; i < machine->n_devices; i++)
		json_object_array_add(devices, device_object(&machine->devices[i]));
	add(root, "devices", devices);
	for (unsigned bit = 0; dmamap_machine_assumption(bit); bit++)
		if (shown->assumed >> bit & 1)
			json_object_array_add(
				assumed, json_object_new_string(dmamap_machine_assumption(bit)));
	add(root, "assumed", assumed);
	text = json_object_to_json_string_ext(root,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(out, "%s\n", text);
	json_object_put(root);
	return text ? 0 : -1;
}
