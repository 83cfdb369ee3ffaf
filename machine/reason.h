/* SPDX-License-Identifier: MIT */
/* Why a machine was refused: one line a rule. The first two numbers of all but the last are
 * the line and the column. */
#ifndef DMAMAP_MACHINE_REASON_H
#define DMAMAP_MACHINE_REASON_H

#include "dmamap/common.h"

/* What a machine's text can say, as a reader is told who wrote another key. */
#define MACHINE_KEYS_TEXT                                                                          \
	"a machine has machine, page, as-kernel, pfnmap-stride, memlock, entry-limit, "            \
	"huge-pages, unsafe-interrupts, isolated-msi and no-device; an IOMMU iommu, aperture, "    \
	"leaves, coherent, dirty, reserve and no-reserve; a device device, iommu, group, cdev, "   \
	"vendor, device-id, class, bar0 to bar5, rom, express, intx, msi, msix, msix-bar, "        \
	"msix-offset and reset"

#define MACHINE_REASONS(K)                                                                         \
	K(machine_key, "line {0d}, column {1d}: there is no key {t}; " MACHINE_KEYS_TEXT)          \
	K(machine_bare, "line {0d}, column {1d}: {t} needs a value, as in {t}=VALUE")              \
	K(machine_value, "line {0d}, column {1d}: {t} takes no value")                             \
	K(machine_no_device, "line {0d}, column {1d}: {t} belongs to a device, and none is "       \
			     "started; put it after device=0000:00:03.0 or the like")              \
	K(machine_twice, "line {0d}, column {1d}: {t} is given twice")                             \
	K(machine_first, "line {0d}, column {1d}: {t} must come first: it sets all else")          \
	K(machine_long, "line {0d}, column {1d}: an item of {2d} bytes; none needs more than "     \
			"{3d}")                                                                    \
	K(machine_many, "line {0d}, column {1d}: more than {2d} of {t}")                           \
	K(machine_at, "line {0d}, column {1d}: a machine whose {t} is {2x} cannot be")             \
	K(machine_file, "cannot read {t}")                                                         \
	K(machine_no_iommu, "no IOMMU is on ({t} has none that is known); turn it on in the "      \
			    "firmware and boot with intel_iommu=on or the like")                   \
	K(machine_no_memory, "no memory for {t}")                                                  \
	K(machine, "a machine whose {t} is {0x} cannot be")

#define MACHINE_DECLARE_REASON(id, sentence)                                                       \
	extern const struct dmamap_reason_kind machine_reason_##id;
MACHINE_REASONS(MACHINE_DECLARE_REASON)
#undef MACHINE_DECLARE_REASON

#endif
