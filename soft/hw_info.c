/* SPDX-License-Identifier: MIT */
/*
 * IOMMU_GET_HW_INFO: what a device's IOMMU tells of itself
 * (drivers/iommu/iommufd/device.c). VT-d has its capability registers, put
 * together here from what the machine says its IOMMU can do. The other drivers
 * tell nothing in a kernel without their experimental IOMMUFD parts.
 */
#include <errno.h>
#include <string.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

/* VT-d's capability register: what QEMU's IOMMU has in any case, and where the rest goes. */
#define VTD_CAP_BASE	    0xd2008c22000086ULL
#define VTD_CAP_SAGAW_SHIFT 8
#define VTD_CAP_MGAW_SHIFT  16
#define VTD_CAP_LARGE_SHIFT 34
#define VTD_CAP_LARGE	    (15ULL << VTD_CAP_LARGE_SHIFT)

#define VTD_ECAP_BASE	  0xf42ULL
#define VTD_ECAP_SNOOP	  (1ULL << 7)
#define VTD_ECAP_SCALABLE (1ULL << 43)
#define VTD_ECAP_DIRTY	  (1ULL << 45)
#define VTD_ECAP_SECOND	  (1ULL << 46)

#define VTD_ERRATA_772415_SPR17 1

static uint64_t vtd_cap(const struct dmamap_machine_iommu *iommu)
{
	static const unsigned widths[] = {39, 48, 57};
	uint64_t cap = VTD_CAP_BASE & ~VTD_CAP_LARGE;

	/* Every page table of at most the width, and one that has it. */
	for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!i || iommu->aperture_bits > widths[i - 1])
			cap |= 2ULL << i << VTD_CAP_SAGAW_SHIFT;
	cap |= (uint64_t)((iommu->aperture_bits - 1) & 63) << VTD_CAP_MGAW_SHIFT;
	if (iommu->leaf_sizes & 1ULL << 21)
		cap |= 1ULL << VTD_CAP_LARGE_SHIFT;
	if (iommu->leaf_sizes & 1ULL << 30)
		cap |= 2ULL << VTD_CAP_LARGE_SHIFT;
	return cap;
}

static uint64_t vtd_ecap(const struct dmamap_machine_iommu *iommu)
{
	uint64_t ecap = VTD_ECAP_BASE;

	if (iommu->coherent)
		ecap |= VTD_ECAP_SNOOP;
	/* Only scalable mode's second stage tracks. */
	if (iommu->dirty)
		ecap |= VTD_ECAP_SCALABLE | VTD_ECAP_DIRTY | VTD_ECAP_SECOND;
	return ecap;
}

/* The driver's own structure, its size and its type. */
static int driver_info(const struct dmamap_machine_iommu *iommu, struct iommu_hw_info_vtd *vtd,
	uint32_t *size, uint32_t *type)
{
	if (iommu->model != DMAMAP_IOMMU_INTEL) {
		*size = 0;
		*type = IOMMU_HW_INFO_TYPE_NONE;
		return 0;
	}
	if (*type != IOMMU_HW_INFO_TYPE_DEFAULT && *type != IOMMU_HW_INFO_TYPE_INTEL_VTD)
		return SOFT_REFUSE(value, EOPNOTSUPP, "a data type of VT-d", *type);
	*vtd = (struct iommu_hw_info_vtd){
		.flags = VTD_ERRATA_772415_SPR17,
		.cap_reg = vtd_cap(iommu),
		.ecap_reg = vtd_ecap(iommu),
	};
	*size = sizeof(*vtd);
	*type = IOMMU_HW_INFO_TYPE_INTEL_VTD;
	return 0;
}

/* What the caller has room for beyond the structure becomes zeros. */
static int clear_rest(uint64_t address, uint32_t size)
{
	static const char zeros[4096];
	int error = 0;

	while (size && !error) {
		uint32_t n = size < sizeof(zeros) ? size : (uint32_t)sizeof(zeros);

		error = soft_copy_out((void *)(uintptr_t)address, zeros, n, "data_uptr");
		address += n;
		size -= n;
	}
	return error;
}

/* Before PASIDs: neither is a type asked for, nor ATS told of. */
static bool is_old(const struct soft_command *command)
{
	return command->iommufd->file.system->machine.as_kernel < DMAMAP_KERNEL(6, 15);
}

static int get_info(struct soft_command *command, const struct soft_binding *binding)
{
	const struct dmamap_machine_iommu *iommu = soft_device_iommu(binding->device);
	struct iommu_hw_info *user = command->data;
	uint32_t size, type = user->in_data_type, common;
	struct iommu_hw_info_vtd vtd;
	int error = driver_info(iommu, &vtd, &size, &type);

	if (error)
		return error;
	user->out_data_type = type;
	common = user->data_len < size ? user->data_len : size;
	if (common)
		error = soft_copy_out(
			(void *)(uintptr_t)user->data_uptr, &vtd, common, "data_uptr");
	if (!error)
		error = clear_rest(user->data_uptr + common, user->data_len - common);
	if (error)
		return error;
	user->data_len = size;
	/* No device of ours has ATS or PASIDs. */
	user->out_capabilities = (iommu->dirty ? IOMMU_HW_CAP_DIRTY_TRACKING : 0) |
				 (is_old(command) ? 0 : IOMMU_HW_CAP_PCI_ATS_NOT_SUPPORTED);
	user->out_max_pasid_log2 = 0;
	return soft_command_respond(command, sizeof(*user), "iommu_hw_info");
}

int soft_hw_info(struct soft_command *command)
{
	struct iommu_hw_info *user = command->data;
	uint32_t known = is_old(command) ? 0 : IOMMU_HW_INFO_FLAG_INPUT_TYPE;
	struct soft_object *object;
	int error;

	if (user->flags & ~known)
		return SOFT_REFUSE(flags, EOPNOTSUPP, "IOMMU_GET_HW_INFO", user->flags, known);
	for (unsigned i = 0; i < sizeof(user->__reserved); i++)
		if (user->__reserved[i])
			return SOFT_REFUSE(
				reserved_field, EOPNOTSUPP, "iommu_hw_info", user->__reserved[i]);
	if (!(user->flags & IOMMU_HW_INFO_FLAG_INPUT_TYPE))
		user->in_data_type = IOMMU_HW_INFO_TYPE_DEFAULT;
	error = soft_object_get(command->iommufd, user->dev_id, SOFT_OBJECT_DEVICE, &object);
	if (error)
		return error;
	error = get_info(command, (struct soft_binding *)object);
	soft_object_put(command->iommufd, object);
	return error;
}
