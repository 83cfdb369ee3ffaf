/* SPDX-License-Identifier: MIT */
/* The table as abi/ has it. */
#include "abi/iommufd.h"
#include "abi/vduse.h"
#include "abi/vfio.h"
#include "abi/virtio.h"
#include "entries.h"

#define KNOWS(major, minor) 1

const struct entry own_entries[] = {
#include "table.h"
};
const size_t own_n = sizeof(own_entries) / sizeof(own_entries[0]);
