/* SPDX-License-Identifier: MIT */
/*
 * What the parts of this folder share: the table of keys, by which text is both
 * read and written; presets; and the steps by which a machine is put together.
 *
 * A machine under construction owns all that it points at, from the first step
 * on; dmamap_machine_free() takes it apart whatever its state.
 */
#ifndef DMAMAP_MACHINE_MACHINE_H
#define DMAMAP_MACHINE_MACHINE_H

#include <stdbool.h>

#include "dmamap/machine.h"
#include "machine/reason.h"

/* More of either is a mistake, or somebody's fuzzer. */
#define MACHINE_IOMMUS	256
#define MACHINE_DEVICES 1024

/* What a key belongs to, and which one of them. */
enum machine_scope { MACHINE_WHOLE, MACHINE_IOMMU, MACHINE_DEVICE, MACHINE_SCOPES };

/* ------------------------------------------------------------------- keys */

/* How a value is written. The first ones are fields of a scope's structure as they are. */
enum machine_form {
	FORM_NUMBER,	 /* decimal */
	FORM_HEX,	 /* hexadecimal, at least min digits */
	FORM_SIZE,	 /* 0, or a power of two from min on */
	FORM_ON,	 /* on or off, a bool */
	FORM_OFF,	 /* the bool says the opposite */
	FORM_CHOICE,	 /* one of a table */
	FORM_PRESET,	 /* a machine by its name */
	FORM_KERNEL,	 /* 7.3 */
	FORM_NO_DEVICE,	 /* no value */
	FORM_MODEL,	 /* starts an IOMMU */
	FORM_LEAVES,	 /* 4K/2M/1G, 4K-2P */
	FORM_RESERVE,	 /* FIRST-LAST:label, FIRST+SIZE:label */
	FORM_NO_RESERVE, /* no value */
	FORM_BDF,	 /* starts a device */
	FORM_BAR,	 /* SIZE@ADDRESS:FLAG; min is which */
};

struct machine_choice {
	const char *name;
	uint64_t value;
};

/**
 * struct machine_key - One key of the text.
 * @offset, @size: the field in the scope's structure, for the forms that have one
 * @min, @max: of a number
 * @choices: of a choice, ended by a NULL name
 * @wrong: the sentence for a value that cannot be
 */
struct machine_key {
	const char *name;
	enum machine_scope scope;
	enum machine_form form;
	size_t offset, size;
	uint64_t min, max;
	const struct machine_choice *choices;
	struct dmamap_reason_kind wrong;
};

#define MACHINE_KEYS 38
/* In the order in which they are written. */
extern const struct machine_key machine_keys[MACHINE_KEYS];

/* A field's value, and setting it; numbers of 1 to 8 bytes. */
uint64_t machine_field(const struct machine_key *key, const void *object);
void machine_set_field(const struct machine_key *key, void *object, uint64_t value);

/* ------------------------------------------------------------------ units */

/* All of @text: 4096, 0x1000; with @sizes also 4K, 2MiB. */
bool machine_read_number(const char *text, bool sizes, uint64_t *number);
/* "0000:00:03.0", or "00:03.0" for the first domain. */
bool machine_read_bdf(const char *text, size_t length, char bdf[16]);
/* "4K", "3G"; the plain number where it is no multiple of 1 KiB. */
void machine_write_size(uint64_t bytes, char text[24]);

/* ------------------------------------------------------------------- BARs */

extern const struct machine_choice machine_bar_flags[];
/* A BAR that must be 64-bit: it is large, or lies above 4 GiB. */
bool machine_bar_is_wide(const struct dmamap_machine_device *device, unsigned bar);
/* DMAMAP_BAR_* without what follows from size and address: such a BAR is prefetchable. */
unsigned machine_bar_extra(const struct dmamap_machine_device *device, unsigned bar);

/* ---------------------------------------------------------------- presets */

/* An IOMMU model's usual shape for a page size; its windows are static. */
void machine_preset_iommu(
	enum dmamap_iommu_model model, unsigned page_shift, struct dmamap_machine_iommu *iommu);
/* The label that a model's preset has for a window; NULL: it has no such one. */
const char *machine_preset_label(enum dmamap_iommu_model model, uint64_t first, uint64_t last);
/* A QEMU function by its name, or what a device is without one (""); NULL: no such name. */
const struct dmamap_machine_device *machine_preset_device(const char *name);
/* A machine by its name, as text; NULL: no such name. */
const char *machine_preset_text(const char *name);
/* How a kernel's look-ups of a BAR step. */
enum dmamap_pfnmap_stride machine_kernel_stride(unsigned kernel);

/* ------------------------------------------------------- putting together */

/* Each returns 0 or -ENOMEM. The last of its kind is what was added. */
int machine_add_iommu(
	struct dmamap_machine *machine, enum dmamap_iommu_model model, struct dmamap_reason *why);
int machine_add_window(struct dmamap_machine_iommu *iommu, uint64_t first, uint64_t last,
	const char *label, struct dmamap_reason *why);
int machine_add_device(struct dmamap_machine *machine, const struct dmamap_machine_device *device,
	struct dmamap_reason *why);
void machine_drop_iommus(struct dmamap_machine *machine);
void machine_drop_windows(struct dmamap_machine_iommu *iommu);
void machine_drop_devices(struct dmamap_machine *machine);
/* An owned machine's parts, to be changed. */
struct dmamap_machine_iommu *machine_iommu(struct dmamap_machine *machine, size_t index);
struct dmamap_machine_device *machine_device(struct dmamap_machine *machine, size_t index);
/* The lowest number, from 7 for a group and 0 for a cdev, that no other device has. */
unsigned machine_free_group(const struct dmamap_machine *machine);
unsigned machine_free_cdev(const struct dmamap_machine *machine);
/* Addresses for BARs that have none: ports from 0xc000 on, memory up to 256 MiB below 4 GiB,
 * and the rest from 0x380000000000 on. */
void machine_place_bars(struct dmamap_machine *machine);

/**
 * machine_check() - Can such a machine be?
 * @scope, @index: out: which part is wrong
 *
 * Return: 0; -EINVAL.
 */
int machine_check(const struct dmamap_machine *machine, enum machine_scope *scope, size_t *index,
	struct dmamap_reason *why);

/* ----------------------------------------------------------------- detect */

/* What sysfs does not tell; the order is that of their clauses in detect.c. */
enum machine_assumption {
	ASSUMED_APERTURE,
	ASSUMED_LEAVES,
	ASSUMED_DIRTY,
	ASSUMED_COHERENT,
	ASSUMED_SCALABLE,
	ASSUMED_WINDOWS,
	ASSUMED_ISOLATED,
	ASSUMED_TYPE1,
	ASSUMED_MSI,
	ASSUMED_CDEV,
	ASSUMED_KERNEL,
	ASSUMPTIONS
};

/* All of a file, NUL-terminated, cut to fit: its length or -errno. */
ssize_t machine_read_file(struct dmamap_system *system, const char *path, char *text, size_t size);
/* The last part of a link's target; false: no such link, or it does not fit. */
bool machine_read_link(struct dmamap_system *system, const char *path, char name[64]);
/* What sysfs says about a function on vfio-pci; @iommu: the name of its IOMMU. Return: 0; -ENODEV.
 */
int machine_detect_device(struct dmamap_system *system, const char *bdf,
	struct dmamap_machine_device *device, char iommu[64], uint32_t *assumed);

#endif
