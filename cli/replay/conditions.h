/* SPDX-License-Identifier: MIT */
/* The conditions of "needs" and "when": how they are written. */
#ifndef REPLAY_CONDITIONS_H
#define REPLAY_CONDITIONS_H

#include "case.h"

enum condition {
	CONDITION_SYSTEM,
	CONDITION_KERNEL,
	CONDITION_IOMMUFD,
	CONDITION_VFIO,
	CONDITION_DEVICES,
	CONDITION_GROUPS,
	CONDITION_DMA,
	CONDITION_DIRTY,
	CONDITION_ROOT,
	CONDITION_IPC_LOCK,
	CONDITION_SYS_RESOURCE,
	CONDITION_PROCESSES,
	CONDITION_HUGETLB_2MB,
	CONDITION_HUGETLB_1GB,
	CONDITION_PAGE,
	CONDITION_X86_64,
	CONDITION_AARCH64,
	CONDITIONS
};

/** How the value after the comparison is written; none: the name stands alone. */
enum condition_value { CONDITION_ALONE, CONDITION_WORD, CONDITION_VERSION, CONDITION_NUMBER };

struct condition_row {
	const char *name;
	enum condition_value value;
	const char *example;
};

extern const struct condition_row condition_rows[CONDITIONS];
/** CONDITION_SYSTEM's words, by value. */
extern const char *const condition_systems[2];

/** condition_print() - As it is written in a case; as snprintf. */
size_t condition_print(const struct case_condition *condition, char *buffer, size_t size);

#endif
