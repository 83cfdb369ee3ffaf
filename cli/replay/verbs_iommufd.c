/* SPDX-License-Identifier: MIT */
/* The verbs that are IOMMUFD's ioctls. */
#include "abi/iommufd.h"
#include "verbs.h"

#define IOMMUFDS (THING_IOMMUFD | THING_CONTAINER)

#define ON(of)                                                                                     \
	{                                                                                          \
		.name = "on", .kind = FIELD_THING, .use = USE_WORD | USE_REQUIRED,                 \
		.role = ROLE_TARGET, .things = of                                                  \
	}
#define NEW(kind_of)                                                                               \
	{                                                                                          \
		.name = "new", .kind = FIELD_NEW, .role = ROLE_NEW,                                \
		.use = USE_WORD | USE_REQUIRED, .things = kind_of                                  \
	}
#define FLAGS(structure, table, ...)                                                               \
	{                                                                                          \
		.name = "flags", .kind = FIELD_FLAGS, .use = USE_IN | USE_OUT, .role = ROLE_FLAGS, \
		AT(structure, flags), .names = table, __VA_ARGS__                                  \
	}
#define NUMBER_(key, structure, member, uses, ...)                                                 \
	{                                                                                          \
		.name = key, .use = uses, AT(structure, member), __VA_ARGS__                       \
	}
#define NUMBER(key, structure, member, ...)                                                        \
	NUMBER_(key, structure, member, USE_IN | USE_OUT, __VA_ARGS__)
/* What the kernel does not write to, or what differs from system to system. */
#define INPUT(key, structure, member, ...) NUMBER_(key, structure, member, USE_IN, __VA_ARGS__)
#define KEPT(key, structure, member, ...)                                                          \
	NUMBER_(key, structure, member, USE_IN | USE_OUT | USE_KEPT, __VA_ARGS__)
#define RESERVED(structure)                                                                        \
	{                                                                                          \
		.name = "reserved", .use = USE_IN | USE_OUT, .show = SHOW_HEX,                     \
		AT(structure, __reserved)                                                          \
	}
/* An object's number; one's own is that of the thing that the call is about. */
#define OBJECT(key, structure, member)                                                             \
	{                                                                                          \
		.name = key, .use = USE_IN | USE_OUT, .as = AS_OBJECT, .show = SHOW_COUNT,         \
		AT(structure, member)                                                              \
	}
#define OWN_OBJECT(key, structure, member)                                                         \
	{                                                                                          \
		.name = key, .use = USE_IN | USE_OUT, .as = AS_OBJECT, .show = SHOW_COUNT,         \
		.role = ROLE_OWN_OBJECT, AT(structure, member)                                     \
	}
#define IOVA(structure, member)                                                                    \
	{                                                                                          \
		.name = "iova", .use = USE_IN | USE_OUT, .show = SHOW_HEX, .role = ROLE_IOVA,      \
		AT(structure, member)                                                              \
	}

static const struct field_name no_flags[] = {{0}};

static const struct field destroy[] = {
	ON(THING_IOAS | THING_HWPT | IOMMUFDS),
	OWN_OBJECT("id", struct iommu_destroy, id),
	FIELDS_STRUCTURE,
};

static const struct field ioas_alloc[] = {
	NEW(THING_IOAS),
	ON(IOMMUFDS),
	FLAGS(struct iommu_ioas_alloc, no_flags),
	OBJECT("id", struct iommu_ioas_alloc, out_ioas_id),
	FIELDS_STRUCTURE,
};

static const struct field iova_ranges[] = {
	ON(THING_IOAS),
	OWN_OBJECT("ioas", struct iommu_ioas_iova_ranges, ioas_id),
	INPUT("room", struct iommu_ioas_iova_ranges, num_iovas, .show = SHOW_COUNT, .initial = 64,
		.role = ROLE_ARRAY_COUNT),
	{.name = "count",
		.use = USE_OUT,
		.show = SHOW_COUNT,
		AT(struct iommu_ioas_iova_ranges, num_iovas)},
	INPUT("at", struct iommu_ioas_iova_ranges, allowed_iovas, .show = SHOW_HEX,
		.role = ROLE_ARRAY),
	{.name = "ranges",
		.kind = FIELD_LIST,
		.use = USE_OUT,
		.show = SHOW_HEX,
		.role = ROLE_ARRAY_LIST},
	NUMBER("alignment", struct iommu_ioas_iova_ranges, out_iova_alignment),
	RESERVED(struct iommu_ioas_iova_ranges),
	FIELDS_STRUCTURE,
};

static const struct field allow_iovas[] = {
	ON(THING_IOAS),
	OWN_OBJECT("ioas", struct iommu_ioas_allow_iovas, ioas_id),
	{.name = "ranges",
		.kind = FIELD_LIST,
		.use = USE_IN,
		.show = SHOW_HEX,
		.role = ROLE_ARRAY_LIST},
	INPUT("count", struct iommu_ioas_allow_iovas, num_iovas, .show = SHOW_COUNT,
		.role = ROLE_ARRAY_COUNT),
	INPUT("at", struct iommu_ioas_allow_iovas, allowed_iovas, .show = SHOW_HEX,
		.role = ROLE_ARRAY),
	RESERVED(struct iommu_ioas_allow_iovas),
	FIELDS_STRUCTURE,
};

static const struct field_name map_flags[] = {{"fixed", IOMMU_IOAS_MAP_FIXED_IOVA},
	{"write", IOMMU_IOAS_MAP_WRITEABLE}, {"read", IOMMU_IOAS_MAP_READABLE}, {0}};

#define READ_WRITE (IOMMU_IOAS_MAP_WRITEABLE | IOMMU_IOAS_MAP_READABLE)

static const struct field map[] = {
	ON(THING_IOAS),
	OWN_OBJECT("ioas", struct iommu_ioas_map, ioas_id),
	IOVA(struct iommu_ioas_map, iova),
	KEPT("va", struct iommu_ioas_map, user_va, .show = SHOW_HEX),
	NUMBER("size", struct iommu_ioas_map, length),
	FLAGS(struct iommu_ioas_map, map_flags, .initial = READ_WRITE),
	RESERVED(struct iommu_ioas_map),
	FIELDS_STRUCTURE,
};

static const struct field map_file[] = {
	ON(THING_IOAS),
	OWN_OBJECT("ioas", struct iommu_ioas_map_file, ioas_id),
	IOVA(struct iommu_ioas_map_file, iova),
	INPUT("file", struct iommu_ioas_map_file, fd, .as = AS_FILE, .show = SHOW_COUNT),
	NUMBER("start", struct iommu_ioas_map_file, start),
	NUMBER("size", struct iommu_ioas_map_file, length),
	FLAGS(struct iommu_ioas_map_file, map_flags, .initial = READ_WRITE),
	FIELDS_STRUCTURE,
};

static const struct field copy[] = {
	ON(THING_IOAS),
	OWN_OBJECT("ioas", struct iommu_ioas_copy, dst_ioas_id),
	OBJECT("from", struct iommu_ioas_copy, src_ioas_id),
	IOVA(struct iommu_ioas_copy, dst_iova),
	NUMBER("from_iova", struct iommu_ioas_copy, src_iova, .show = SHOW_HEX),
	NUMBER("size", struct iommu_ioas_copy, length),
	FLAGS(struct iommu_ioas_copy, map_flags, .initial = READ_WRITE),
	FIELDS_STRUCTURE,
};

static const struct field unmap[] = {
	ON(THING_IOAS),
	OWN_OBJECT("ioas", struct iommu_ioas_unmap, ioas_id),
	NUMBER("iova", struct iommu_ioas_unmap, iova, .show = SHOW_HEX),
	NUMBER("size", struct iommu_ioas_unmap, length),
	FIELDS_STRUCTURE,
};

static const struct field_name options[] = {
	{"rlimit_mode", IOMMU_OPTION_RLIMIT_MODE}, {"huge_pages", IOMMU_OPTION_HUGE_PAGES}, {0}};
static const struct field_name option_ops[] = {
	{"set", IOMMU_OPTION_OP_SET}, {"get", IOMMU_OPTION_OP_GET}, {0}};

static const struct field option[] = {
	ON(IOMMUFDS | THING_IOAS),
	NUMBER("option", struct iommu_option, option_id, .kind = FIELD_CHOICE, .names = options),
	NUMBER("op", struct iommu_option, op, .kind = FIELD_CHOICE, .names = option_ops),
	OWN_OBJECT("object", struct iommu_option, object_id),
	NUMBER("value", struct iommu_option, val64, .show = SHOW_COUNT),
	RESERVED(struct iommu_option),
	FIELDS_STRUCTURE,
};

static const struct field_name vfio_ops[] = {{"get", IOMMU_VFIO_IOAS_GET},
	{"set", IOMMU_VFIO_IOAS_SET}, {"clear", IOMMU_VFIO_IOAS_CLEAR}, {0}};

static const struct field vfio_ioas[] = {
	ON(IOMMUFDS),
	NUMBER("op", struct iommu_vfio_ioas, op, .kind = FIELD_CHOICE, .names = vfio_ops),
	OBJECT("ioas", struct iommu_vfio_ioas, ioas_id),
	RESERVED(struct iommu_vfio_ioas),
	FIELDS_STRUCTURE,
};

static const struct field_name hwpt_flags[] = {{"nest_parent", IOMMU_HWPT_ALLOC_NEST_PARENT},
	{"dirty_tracking", IOMMU_HWPT_ALLOC_DIRTY_TRACKING},
	{"fault_id", IOMMU_HWPT_FAULT_ID_VALID}, {"pasid", IOMMU_HWPT_ALLOC_PASID}, {0}};

static const struct field_name data_types[] = {{"none", IOMMU_HWPT_DATA_NONE},
	{"vtd_s1", IOMMU_HWPT_DATA_VTD_S1}, {"arm_smmuv3", IOMMU_HWPT_DATA_ARM_SMMUV3},
	{"amd_guest", IOMMU_HWPT_DATA_AMD_GUEST}, {0}};

static const struct field hwpt_alloc[] = {
	NEW(THING_HWPT),
	ON(IOMMUFDS),
	OBJECT("device", struct iommu_hwpt_alloc, dev_id),
	OBJECT("pt", struct iommu_hwpt_alloc, pt_id),
	FLAGS(struct iommu_hwpt_alloc, hwpt_flags),
	OBJECT("id", struct iommu_hwpt_alloc, out_hwpt_id),
	RESERVED(struct iommu_hwpt_alloc),
	NUMBER("data_type", struct iommu_hwpt_alloc, data_type, .kind = FIELD_CHOICE,
		.names = data_types),
	NUMBER("data_len", struct iommu_hwpt_alloc, data_len),
	INPUT("data", struct iommu_hwpt_alloc, data_uptr, .show = SHOW_HEX),
	OBJECT("fault", struct iommu_hwpt_alloc, fault_id),
	NUMBER("reserved2", struct iommu_hwpt_alloc, __reserved2, .show = SHOW_HEX),
	FIELDS_STRUCTURE,
};

static const struct field_name hw_flags[] = {{"input_type", IOMMU_HW_INFO_FLAG_INPUT_TYPE}, {0}};
static const struct field_name hw_types[] = {{"none", IOMMU_HW_INFO_TYPE_NONE},
	{"intel_vtd", IOMMU_HW_INFO_TYPE_INTEL_VTD}, {"arm_smmuv3", IOMMU_HW_INFO_TYPE_ARM_SMMUV3},
	{"tegra241_cmdqv", IOMMU_HW_INFO_TYPE_TEGRA241_CMDQV}, {"amd", IOMMU_HW_INFO_TYPE_AMD},
	{0}};
static const struct field_name hw_capabilities[] = {{"dirty_tracking", IOMMU_HW_CAP_DIRTY_TRACKING},
	{"pasid_exec", IOMMU_HW_CAP_PCI_PASID_EXEC}, {"pasid_priv", IOMMU_HW_CAP_PCI_PASID_PRIV},
	{"ats_not_supported", IOMMU_HW_CAP_PCI_ATS_NOT_SUPPORTED}, {0}};

static const struct field get_hw_info[] = {
	ON(IOMMUFDS),
	OBJECT("device", struct iommu_hw_info, dev_id),
	FLAGS(struct iommu_hw_info, hw_flags),
	NUMBER("data_len", struct iommu_hw_info, data_len, .role = ROLE_BUFFER_SIZE),
	INPUT("data", struct iommu_hw_info, data_uptr, .show = SHOW_HEX, .role = ROLE_BUFFER),
	NUMBER("data_type", struct iommu_hw_info, in_data_type, .kind = FIELD_CHOICE,
		.names = hw_types),
	NUMBER("max_pasid_log2", struct iommu_hw_info, out_max_pasid_log2, .show = SHOW_COUNT),
	NUMBER("capabilities", struct iommu_hw_info, out_capabilities, .kind = FIELD_FLAGS,
		.names = hw_capabilities),
	{.name = "reserved",
		.use = USE_IN | USE_OUT,
		.show = SHOW_HEX,
		.offset = offsetof(struct iommu_hw_info, __reserved),
		.size = 1},
	{.name = "bytes",
		.kind = FIELD_BYTES,
		.use = USE_OUT | USE_KEPT,
		.role = ROLE_BUFFER_BYTES},
	FIELDS_STRUCTURE,
};

static const struct field_name dirty_flags[] = {{"enable", IOMMU_HWPT_DIRTY_TRACKING_ENABLE}, {0}};

static const struct field set_dirty[] = {
	ON(THING_HWPT | IOMMUFDS),
	OWN_OBJECT("hwpt", struct iommu_hwpt_set_dirty_tracking, hwpt_id),
	FLAGS(struct iommu_hwpt_set_dirty_tracking, dirty_flags),
	RESERVED(struct iommu_hwpt_set_dirty_tracking),
	FIELDS_STRUCTURE,
};

static const struct field_name get_flags[] = {
	{"no_clear", IOMMU_HWPT_GET_DIRTY_BITMAP_NO_CLEAR}, {0}};

static const struct field get_dirty[] = {
	ON(THING_HWPT | IOMMUFDS),
	OWN_OBJECT("hwpt", struct iommu_hwpt_get_dirty_bitmap, hwpt_id),
	NUMBER("iova", struct iommu_hwpt_get_dirty_bitmap, iova, .show = SHOW_HEX),
	NUMBER("size", struct iommu_hwpt_get_dirty_bitmap, length, .role = ROLE_LENGTH),
	FLAGS(struct iommu_hwpt_get_dirty_bitmap, get_flags),
	INPUT("pgsize", struct iommu_hwpt_get_dirty_bitmap, page_size, .role = ROLE_PGSIZE),
	INPUT("bitmap", struct iommu_hwpt_get_dirty_bitmap, data, .show = SHOW_HEX,
		.role = ROLE_BITMAP),
	{.name = "bitmap_size", .use = USE_IN, .role = ROLE_BITMAP_SIZE},
	{.name = "dirty",
		.kind = FIELD_LIST,
		.use = USE_OUT,
		.show = SHOW_COUNT,
		.role = ROLE_DIRTY},
	RESERVED(struct iommu_hwpt_get_dirty_bitmap),
	FIELDS_STRUCTURE,
};

static const struct field change_process[] = {
	ON(IOMMUFDS),
	RESERVED(struct iommu_ioas_change_process),
	FIELDS_STRUCTURE,
};

static const struct field get_pa[] = {
	ON(THING_IOAS),
	OWN_OBJECT("ioas", struct iommu_ioas_noiommu_get_pa, ioas_id),
	FLAGS(struct iommu_ioas_noiommu_get_pa, no_flags),
	NUMBER("iova", struct iommu_ioas_noiommu_get_pa, iova, .show = SHOW_HEX),
	NUMBER("size", struct iommu_ioas_noiommu_get_pa, length),
	KEPT("phys", struct iommu_ioas_noiommu_get_pa, out_phys, .show = SHOW_HEX),
	RESERVED(struct iommu_ioas_noiommu_get_pa),
	FIELDS_STRUCTURE,
};

#define CALL(verb, ioctl, smallest, table, ...)                                                    \
	{                                                                                          \
		.name = verb, .action = ACTION_IOCTL, .request = ioctl, .size = smallest,          \
		.fields = table, .summary = #ioctl, __VA_ARGS__                                    \
	}

struct verb verbs_iommufd[] = {
	CALL("ioas_alloc", IOMMU_IOAS_ALLOC, 12, ioas_alloc, .flags = VERB_MAKES_ID),
	CALL("destroy", IOMMU_DESTROY, 8, destroy),
	CALL("iova_ranges", IOMMU_IOAS_IOVA_RANGES, 32, iova_ranges),
	CALL("allow_iovas", IOMMU_IOAS_ALLOW_IOVAS, 24, allow_iovas),
	CALL("map", IOMMU_IOAS_MAP, 40, map),
	CALL("map_file", IOMMU_IOAS_MAP_FILE, 40, map_file),
	CALL("copy", IOMMU_IOAS_COPY, 40, copy),
	CALL("unmap", IOMMU_IOAS_UNMAP, 24, unmap),
	CALL("option", IOMMU_OPTION, 24, option),
	CALL("vfio_ioas", IOMMU_VFIO_IOAS, 12, vfio_ioas),
	CALL("hwpt_alloc", IOMMU_HWPT_ALLOC, 24, hwpt_alloc, .flags = VERB_MAKES_ID),
	CALL("get_hw_info", IOMMU_GET_HW_INFO, 32, get_hw_info),
	CALL("set_dirty", IOMMU_HWPT_SET_DIRTY_TRACKING, 16, set_dirty),
	CALL("get_dirty", IOMMU_HWPT_GET_DIRTY_BITMAP, 48, get_dirty),
	CALL("change_process", IOMMU_IOAS_CHANGE_PROCESS, 8, change_process),
	CALL("get_pa", IOMMU_IOAS_NOIOMMU_GET_PA, 40, get_pa),
	{0},
};
