/* SPDX-License-Identifier: MIT */
/* The conditions of "needs" and "when": how they are written. */
#include "conditions.h"

#include <inttypes.h>

#include "cli/units.h"

const struct condition_row condition_rows[CONDITIONS] = {
	[CONDITION_SYSTEM] = {"system", CONDITION_WORD, "system=soft"},
	[CONDITION_KERNEL] = {"kernel", CONDITION_VERSION, "kernel>=6.15"},
	[CONDITION_IOMMUFD] = {"iommufd", CONDITION_ALONE, "iommufd"},
	[CONDITION_VFIO] = {"vfio", CONDITION_ALONE, "vfio"},
	[CONDITION_DEVICES] = {"devices", CONDITION_NUMBER, "devices>=2"},
	[CONDITION_GROUPS] = {"groups", CONDITION_NUMBER, "groups>=2"},
	[CONDITION_DMA] = {"dma", CONDITION_ALONE, "dma"},
	[CONDITION_DIRTY] = {"dirty", CONDITION_ALONE, "dirty"},
	[CONDITION_ROOT] = {"root", CONDITION_ALONE, "root"},
	[CONDITION_IPC_LOCK] = {"ipc_lock", CONDITION_ALONE, "ipc_lock"},
	[CONDITION_SYS_RESOURCE] = {"sys_resource", CONDITION_ALONE, "sys_resource"},
	[CONDITION_PROCESSES] = {"processes", CONDITION_ALONE, "processes"},
	[CONDITION_HUGETLB_2MB] = {"hugetlb_2mb", CONDITION_ALONE, "hugetlb_2mb"},
	[CONDITION_HUGETLB_1GB] = {"hugetlb_1gb", CONDITION_ALONE, "hugetlb_1gb"},
	[CONDITION_PAGE] = {"page", CONDITION_NUMBER, "page=4K"},
	[CONDITION_X86_64] = {"x86_64", CONDITION_ALONE, "x86_64"},
	[CONDITION_AARCH64] = {"aarch64", CONDITION_ALONE, "aarch64"},
};

const char *const condition_systems[2] = {"soft", "linux"};

size_t condition_print(const struct case_condition *condition, char *buffer, size_t size)
{
	const struct condition_row *row = &condition_rows[condition->what];
	const char *compare = condition->compare == 'l'	  ? "<="
			      : condition->compare == 'g' ? ">="
			      : condition->compare == '<' ? "<"
			      : condition->compare == '>' ? ">"
							  : "=";
	char number[UNITS_TEXT];
	int n;

	switch (row->value) {
	case CONDITION_WORD:
		n = snprintf(
			buffer, size, "%s=%s", row->name, condition_systems[condition->value & 1]);
		break;
	case CONDITION_VERSION:
		n = snprintf(buffer, size, "%s%s%" PRIu64 ".%" PRIu64, row->name, compare,
			condition->value >> 8, condition->value & 0xff);
		break;
	case CONDITION_NUMBER:
		n = snprintf(buffer, size, "%s%s%s", row->name, compare,
			units_exact(number, condition->value));
		break;
	default:
		n = snprintf(buffer, size, "%s", row->name);
		break;
	}
	return n < 0 ? 0 : (size_t)n;
}
