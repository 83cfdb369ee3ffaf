/* SPDX-License-Identifier: MIT */
/* The modes: which file is the container and which calls it is asked in. */
#include <string.h>

#include "abi/vfio.h"
#include "client/internal.h"

const struct dmamap_mode dmamap_modes[DMAMAP_MODES] = {
	{"vfio_type1_iommu", VFIO_TYPE1_IOMMU, "/dev/vfio/vfio", false},
	{"vfio_type1v2_iommu", VFIO_TYPE1v2_IOMMU, "/dev/vfio/vfio", false},
	{"iommufd_compat_type1", VFIO_TYPE1_IOMMU, "/dev/iommu", false},
	{"iommufd_compat_type1v2", VFIO_TYPE1v2_IOMMU, "/dev/iommu", false},
	{"iommufd", 0, "/dev/iommu", false},
	{"iommufd_file", 0, "/dev/iommu", true},
};

const struct dmamap_mode *dmamap_mode_find(const char *name)
{
	for (unsigned i = 0; i < DMAMAP_MODES; i++)
		if (!strcmp(dmamap_modes[i].name, name))
			return &dmamap_modes[i];
	return NULL;
}
