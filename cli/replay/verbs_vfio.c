/* SPDX-License-Identifier: MIT */
/* The verbs that are VFIO's ioctls: containers, groups and devices. */
#include "abi/vfio.h"
#include "verbs.h"

#define CONTAINERS (THING_CONTAINER | THING_IOMMUFD)
#define DEVICES	   (THING_DEVICE | THING_DEVICE_FILE)

/* The word that says on which file the call is made. */
#define ON(of)                                                                                     \
	{                                                                                          \
		.name = "on", .kind = FIELD_THING, .use = USE_WORD | USE_REQUIRED,                 \
		.role = ROLE_TARGET, .things = of                                                  \
	}
#define FLAGS(structure, table, ...)                                                               \
	{                                                                                          \
		.name = "flags", .kind = FIELD_FLAGS, .use = USE_IN | USE_OUT, .role = ROLE_FLAGS, \
		AT(structure, flags), .names = table, __VA_ARGS__                                  \
	}
/* Outputs of a chain of capabilities that every structure may have. */
#define CAPS                                                                                       \
	{.name = "caps", .kind = FIELD_LIST, .use = USE_OUT, .role = ROLE_CAPS},                   \
		{.name = "cap_offsets",                                                            \
			.kind = FIELD_LIST,                                                        \
			.use = USE_OUT,                                                            \
			.role = ROLE_CAP_OFFSETS},                                                 \
	{                                                                                          \
		.name = "versions", .kind = FIELD_LIST, .use = USE_OUT, .role = ROLE_CAP_VERSIONS  \
	}

/* ------------------------------------------------------------- containers */

static const struct field_name extensions[] = {
	{"type1", VFIO_TYPE1_IOMMU},
	{"spapr", VFIO_SPAPR_TCE_IOMMU},
	{"type1v2", VFIO_TYPE1v2_IOMMU},
	{"dma_cc", VFIO_DMA_CC_IOMMU},
	{"eeh", VFIO_EEH},
	{"nesting", 6},
	{"spapr_v2", VFIO_SPAPR_TCE_v2_IOMMU},
	{"noiommu", VFIO_NOIOMMU_IOMMU},
	{"unmap_all", VFIO_UNMAP_ALL},
	{"update_vaddr", VFIO_UPDATE_VADDR},
	{0},
};

static const struct field api_version[] = {ON(CONTAINERS), FIELDS_NO_STRUCTURE};

static const struct field check_extension[] = {
	ON(CONTAINERS),
	{.name = "extension",
		.kind = FIELD_CHOICE,
		.use = USE_WORD | USE_REQUIRED,
		.role = ROLE_VALUE,
		.names = extensions},
	FIELDS_NO_STRUCTURE,
};

static const struct field set_iommu[] = {
	ON(CONTAINERS),
	{.name = "type",
		.kind = FIELD_CHOICE,
		.use = USE_WORD | USE_REQUIRED,
		.role = ROLE_VALUE,
		.names = extensions},
	FIELDS_NO_STRUCTURE,
};

static const struct field_name info_flags[] = {
	{"pgsizes", VFIO_IOMMU_INFO_PGSIZES}, {"caps", VFIO_IOMMU_INFO_CAPS}, {0}};

/* Room for all capabilities, unless the case says otherwise. */
#define INFO_ROOM 4096

static const struct field get_info[] = {
	ON(CONTAINERS),
	FLAGS(struct vfio_iommu_type1_info, info_flags),
	{.name = "pgsizes",
		.use = USE_IN | USE_OUT,
		.show = SHOW_HEX,
		AT(struct vfio_iommu_type1_info, iova_pgsizes)},
	{.name = "cap_offset",
		.use = USE_IN | USE_OUT,
		.show = SHOW_COUNT,
		.role = ROLE_CAP_OFFSET,
		AT(struct vfio_iommu_type1_info, cap_offset)},
	{.name = "pad",
		.use = USE_IN | USE_OUT,
		.show = SHOW_HEX,
		AT(struct vfio_iommu_type1_info, pad)},
	CAPS,
	{.name = "ranges",
		.kind = FIELD_LIST,
		.use = USE_OUT,
		.show = SHOW_HEX,
		.role = ROLE_CAP_RANGES},
	{.name = "avail", .use = USE_OUT, .show = SHOW_COUNT, .role = ROLE_CAP_AVAIL},
	{.name = "migration_flags",
		.use = USE_OUT,
		.show = SHOW_HEX,
		.role = ROLE_CAP_MIGRATION_FLAGS},
	{.name = "migration_pgsizes",
		.use = USE_OUT,
		.show = SHOW_HEX,
		.role = ROLE_CAP_MIGRATION_PGSIZES},
	{.name = "migration_max", .use = USE_OUT, .role = ROLE_CAP_MIGRATION_MAX},
	FIELDS_STRUCTURE,
};

static const struct field_name map_flags[] = {{"read", VFIO_DMA_MAP_FLAG_READ},
	{"write", VFIO_DMA_MAP_FLAG_WRITE}, {"vaddr", VFIO_DMA_MAP_FLAG_VADDR}, {0}};

static const struct field map[] = {
	ON(CONTAINERS),
	{.name = "iova",
		.use = USE_IN | USE_OUT,
		.show = SHOW_HEX,
		AT(struct vfio_iommu_type1_dma_map, iova)},
	{.name = "va",
		.use = USE_IN | USE_OUT | USE_KEPT,
		.show = SHOW_HEX,
		AT(struct vfio_iommu_type1_dma_map, vaddr)},
	{.name = "size", .use = USE_IN | USE_OUT, AT(struct vfio_iommu_type1_dma_map, size)},
	FLAGS(struct vfio_iommu_type1_dma_map, map_flags,
		.initial = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE),
	FIELDS_STRUCTURE,
};

static const struct field_name unmap_flags[] = {
	{"get_dirty_bitmap", VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP},
	{"all", VFIO_DMA_UNMAP_FLAG_ALL}, {"vaddr", VFIO_DMA_UNMAP_FLAG_VADDR}, {0}};

/* UNMAP_DMA and DIRTY_PAGES as one piece with what follows their structures. */
struct unmap_with_bitmap {
	uint8_t unmap[sizeof(struct vfio_iommu_type1_dma_unmap)];
	struct vfio_bitmap bitmap;
};

struct dirty_get {
	uint8_t dirty[sizeof(struct vfio_iommu_type1_dirty_bitmap)];
	struct vfio_iommu_type1_dirty_bitmap_get get;
};

/* @mask: with these flags the call has a bitmap; else only where a case gives it. */
#define BITMAP(structure, member, mask)                                                            \
	{.name = "pgsize", .use = USE_IN, .role = ROLE_PGSIZE, AT(structure, member.pgsize)},      \
		{.name = "bitmap_size",                                                            \
			.use = USE_IN,                                                             \
			.role = ROLE_BITMAP_SIZE,                                                  \
			AT(structure, member.size)},                                               \
		{.name = "bitmap",                                                                 \
			.use = USE_IN,                                                             \
			.show = SHOW_HEX,                                                          \
			.role = ROLE_BITMAP,                                                       \
			.initial = mask,                                                           \
			AT(structure, member.data)},                                               \
	{                                                                                          \
		.name = "dirty", .kind = FIELD_LIST, .use = USE_OUT, .show = SHOW_COUNT,           \
		.role = ROLE_DIRTY                                                                 \
	}

static const struct field unmap[] = {
	ON(CONTAINERS),
	{.name = "iova",
		.use = USE_IN | USE_OUT,
		.show = SHOW_HEX,
		AT(struct vfio_iommu_type1_dma_unmap, iova)},
	{.name = "size",
		.use = USE_IN | USE_OUT,
		.role = ROLE_LENGTH,
		AT(struct vfio_iommu_type1_dma_unmap, size)},
	FLAGS(struct vfio_iommu_type1_dma_unmap, unmap_flags),
	BITMAP(struct unmap_with_bitmap, bitmap, VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP),
	FIELDS_STRUCTURE,
};

static const struct field_name dirty_flags[] = {{"start", VFIO_IOMMU_DIRTY_PAGES_FLAG_START},
	{"stop", VFIO_IOMMU_DIRTY_PAGES_FLAG_STOP}, {"get", VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP},
	{0}};

static const struct field dirty[] = {
	ON(CONTAINERS),
	FLAGS(struct vfio_iommu_type1_dirty_bitmap, dirty_flags),
	{.name = "iova", .use = USE_IN | USE_OUT, .show = SHOW_HEX, AT(struct dirty_get, get.iova)},
	{.name = "size",
		.use = USE_IN | USE_OUT,
		.role = ROLE_LENGTH,
		AT(struct dirty_get, get.size)},
	BITMAP(struct dirty_get, get.bitmap, VFIO_IOMMU_DIRTY_PAGES_FLAG_GET_BITMAP),
	FIELDS_STRUCTURE,
};

/* ----------------------------------------------------------------- groups */

static const struct field_name group_flags[] = {{"viable", VFIO_GROUP_FLAGS_VIABLE},
	{"container_set", VFIO_GROUP_FLAGS_CONTAINER_SET}, {0}};

static const struct field group_status[] = {
	ON(THING_GROUP),
	FLAGS(struct vfio_group_status, group_flags),
	FIELDS_STRUCTURE,
};

/* Not the structure's own size: the argument is a pointer to an int. */
static const struct field set_container[] = {
	ON(THING_GROUP),
	{.name = "container",
		.use = USE_WORD | USE_REQUIRED,
		.as = AS_FILE,
		.show = SHOW_COUNT,
		.offset = 0,
		.size = 4},
	{.name = "argument", .use = USE_IN, .role = ROLE_ARGUMENT, .show = SHOW_HEX},
	FIELDS_NO_STRUCTURE,
};

static const struct field unset_container[] = {ON(THING_GROUP), FIELDS_NO_STRUCTURE};

static const struct field device_fd[] = {
	{.name = "new",
		.kind = FIELD_NEW,
		.role = ROLE_NEW,
		.use = USE_WORD | USE_REQUIRED,
		.things = THING_DEVICE_FILE},
	ON(THING_GROUP),
	{.name = "device",
		.kind = FIELD_THING,
		.use = USE_WORD | USE_REQUIRED,
		.role = ROLE_PCI_NAME,
		.things = THING_DEVICE},
	{.name = "name", .kind = FIELD_TEXT, .use = USE_IN},
	{.name = "argument", .use = USE_IN, .role = ROLE_ARGUMENT, .show = SHOW_HEX},
	FIELDS_NO_STRUCTURE,
};

/* ---------------------------------------------------------------- devices */

static const struct field_name device_flags[] = {{"reset", 1}, {"pci", 2}, {"platform", 4},
	{"amba", 8}, {"ccw", 16}, {"ap", 32}, {"fsl_mc", 64}, {"caps", 128}, {0}};

static const struct field device_info[] = {
	ON(DEVICES),
	FLAGS(struct vfio_device_info, device_flags),
	{.name = "regions",
		.use = USE_IN | USE_OUT,
		.show = SHOW_COUNT,
		AT(struct vfio_device_info, num_regions)},
	{.name = "irqs",
		.use = USE_IN | USE_OUT,
		.show = SHOW_COUNT,
		AT(struct vfio_device_info, num_irqs)},
	{.name = "cap_offset",
		.use = USE_IN | USE_OUT,
		.show = SHOW_COUNT,
		.role = ROLE_CAP_OFFSET,
		AT(struct vfio_device_info, cap_offset)},
	{.name = "pad",
		.use = USE_IN | USE_OUT,
		.show = SHOW_HEX,
		AT(struct vfio_device_info, pad)},
	CAPS,
	FIELDS_STRUCTURE,
};

static const struct field_name region_flags[] = {
	{"read", 1}, {"write", 2}, {"mmap", 4}, {"caps", 8}, {0}};

static const struct field region_info[] = {
	ON(DEVICES),
	{.name = "index",
		.use = USE_WORD | USE_OUT | USE_REQUIRED,
		.show = SHOW_COUNT,
		AT(struct vfio_region_info, index)},
	FLAGS(struct vfio_region_info, region_flags),
	{.name = "cap_offset",
		.use = USE_IN | USE_OUT,
		.show = SHOW_COUNT,
		.role = ROLE_CAP_OFFSET,
		AT(struct vfio_region_info, cap_offset)},
	{.name = "size", .use = USE_IN | USE_OUT, AT(struct vfio_region_info, size)},
	{.name = "offset",
		.use = USE_IN | USE_OUT,
		.show = SHOW_HEX,
		AT(struct vfio_region_info, offset)},
	CAPS,
	FIELDS_STRUCTURE,
};

static const struct field_name irq_flags[] = {
	{"eventfd", 1}, {"maskable", 2}, {"automasked", 4}, {"noresize", 8}, {0}};

static const struct field irq_info[] = {
	ON(DEVICES),
	{.name = "index",
		.use = USE_WORD | USE_OUT | USE_REQUIRED,
		.show = SHOW_COUNT,
		AT(struct vfio_irq_info, index)},
	FLAGS(struct vfio_irq_info, irq_flags),
	{.name = "count",
		.use = USE_IN | USE_OUT,
		.show = SHOW_COUNT,
		AT(struct vfio_irq_info, count)},
	FIELDS_STRUCTURE,
};

static const struct field_name irq_set_flags[] = {{"none", VFIO_IRQ_SET_DATA_NONE},
	{"bool", VFIO_IRQ_SET_DATA_BOOL}, {"eventfd", VFIO_IRQ_SET_DATA_EVENTFD},
	{"mask", VFIO_IRQ_SET_ACTION_MASK}, {"unmask", VFIO_IRQ_SET_ACTION_UNMASK},
	{"trigger", VFIO_IRQ_SET_ACTION_TRIGGER}, {0}};

static const struct field set_irqs[] = {
	ON(DEVICES),
	{.name = "index", .use = USE_IN, .show = SHOW_COUNT, AT(struct vfio_irq_set, index)},
	{.name = "start", .use = USE_IN, .show = SHOW_COUNT, AT(struct vfio_irq_set, start)},
	{.name = "count", .use = USE_IN, .show = SHOW_COUNT, AT(struct vfio_irq_set, count)},
	FLAGS(struct vfio_irq_set, irq_set_flags),
	{.name = "data",
		.kind = FIELD_LIST,
		.use = USE_IN,
		.as = AS_FILE,
		.show = SHOW_COUNT,
		.role = ROLE_DATA_BOOLS},
	FIELDS_STRUCTURE,
};

static const struct field reset[] = {ON(DEVICES), FIELDS_NO_STRUCTURE};

static const struct field_name hot_flags[] = {{"dev_id", VFIO_PCI_HOT_RESET_FLAG_DEV_ID},
	{"dev_id_owned", VFIO_PCI_HOT_RESET_FLAG_DEV_ID_OWNED}, {0}};

static const struct field hot_reset_info[] = {
	ON(DEVICES),
	FLAGS(struct vfio_pci_hot_reset_info, hot_flags),
	{.name = "count",
		.use = USE_IN | USE_OUT,
		.show = SHOW_COUNT,
		AT(struct vfio_pci_hot_reset_info, count)},
	{.name = "groups",
		.kind = FIELD_LIST,
		.use = USE_OUT,
		.show = SHOW_COUNT,
		.role = ROLE_HOT_GROUPS},
	{.name = "devices",
		.kind = FIELD_LIST,
		.use = USE_OUT,
		.show = SHOW_HEX,
		.role = ROLE_HOT_DEVICES},
	FIELDS_STRUCTURE,
};

static const struct field hot_reset[] = {
	ON(DEVICES),
	FLAGS(struct vfio_pci_hot_reset, hot_flags),
	{.name = "count",
		.use = USE_IN,
		.show = SHOW_COUNT,
		.role = ROLE_ARRAY_COUNT,
		AT(struct vfio_pci_hot_reset, count)},
	{.name = "groups",
		.kind = FIELD_LIST,
		.use = USE_IN,
		.as = AS_FILE,
		.show = SHOW_COUNT,
		.role = ROLE_DATA_LIST},
	FIELDS_STRUCTURE,
};

static const struct field_name features[] = {
	{"vf_token", VFIO_DEVICE_FEATURE_PCI_VF_TOKEN},
	{"migration", VFIO_DEVICE_FEATURE_MIGRATION},
	{"mig_device_state", VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE},
	{"low_power_entry", VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY},
	{"low_power_entry_wakeup", VFIO_DEVICE_FEATURE_LOW_POWER_ENTRY_WITH_WAKEUP},
	{"low_power_exit", VFIO_DEVICE_FEATURE_LOW_POWER_EXIT},
	{"dma_logging_start", VFIO_DEVICE_FEATURE_DMA_LOGGING_START},
	{"dma_logging_stop", VFIO_DEVICE_FEATURE_DMA_LOGGING_STOP},
	{"dma_logging_report", VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT},
	{"mig_data_size", VFIO_DEVICE_FEATURE_MIG_DATA_SIZE},
	{"bus_master", VFIO_DEVICE_FEATURE_BUS_MASTER},
	{"dma_buf", VFIO_DEVICE_FEATURE_DMA_BUF},
	{0},
};

static const struct field_name feature_flags[] = {{"get", VFIO_DEVICE_FEATURE_GET},
	{"set", VFIO_DEVICE_FEATURE_SET}, {"probe", VFIO_DEVICE_FEATURE_PROBE}, {0}};

static const struct field feature[] = {
	ON(DEVICES),
	{.name = "feature",
		.kind = FIELD_CHOICE,
		.use = USE_WORD | USE_REQUIRED,
		.role = ROLE_FEATURE,
		.names = features,
		AT(struct vfio_device_feature, flags)},
	FLAGS(struct vfio_device_feature, feature_flags),
	{.name = "bytes", .kind = FIELD_BYTES, .use = USE_IN | USE_OUT, .role = ROLE_DATA},
	FIELDS_STRUCTURE,
};

struct dma_buf_get {
	uint8_t feature[sizeof(struct vfio_device_feature)];
	struct vfio_device_feature_dma_buf buf;
};

static const struct field dma_buf[] = {
	{.name = "new",
		.kind = FIELD_NEW,
		.role = ROLE_NEW,
		.use = USE_WORD | USE_REQUIRED,
		.things = THING_FILE},
	ON(DEVICES),
	FLAGS(struct vfio_device_feature, feature_flags, .initial = VFIO_DEVICE_FEATURE_GET),
	/* In no case's hand: the feature's number. */
	{.name = "",
		.role = ROLE_FEATURE,
		.initial = VFIO_DEVICE_FEATURE_DMA_BUF,
		AT(struct vfio_device_feature, flags)},
	{.name = "index",
		.use = USE_IN,
		.show = SHOW_COUNT,
		AT(struct dma_buf_get, buf.region_index)},
	{.name = "open_flags",
		.use = USE_IN,
		.show = SHOW_HEX,
		.initial = 02000002, /* O_RDWR | O_CLOEXEC */
		AT(struct dma_buf_get, buf.open_flags)},
	{.name = "buf_flags", .use = USE_IN, .show = SHOW_HEX, AT(struct dma_buf_get, buf.flags)},
	{.name = "count",
		.use = USE_IN,
		.show = SHOW_COUNT,
		.role = ROLE_ARRAY_COUNT,
		AT(struct dma_buf_get, buf.nr_ranges)},
	{.name = "ranges",
		.kind = FIELD_LIST,
		.use = USE_IN,
		.show = SHOW_HEX,
		.role = ROLE_DATA_RANGES},
	FIELDS_STRUCTURE,
};

static const struct field_name width_flags[] = {{"1", 1}, {"2", 2}, {"4", 4}, {"8", 8}, {0}};

static const struct field ioeventfd[] = {
	ON(DEVICES),
	FLAGS(struct vfio_device_ioeventfd, width_flags),
	{.name = "offset",
		.use = USE_IN,
		.show = SHOW_HEX,
		AT(struct vfio_device_ioeventfd, offset)},
	{.name = "value", .use = USE_IN, .show = SHOW_HEX, AT(struct vfio_device_ioeventfd, data)},
	{.name = "fd",
		.use = USE_IN,
		.as = AS_FILE,
		.show = SHOW_COUNT,
		AT(struct vfio_device_ioeventfd, fd)},
	{.name = "reserved",
		.use = USE_IN,
		.show = SHOW_HEX,
		AT(struct vfio_device_ioeventfd, reserved)},
	FIELDS_STRUCTURE,
};

static const struct field_name bind_flags[] = {{"token", VFIO_DEVICE_BIND_FLAG_TOKEN}, {0}};

static const struct field bind_[] = {
	ON(DEVICES),
	{.name = "iommufd",
		.use = USE_WORD | USE_REQUIRED,
		.as = AS_FILE,
		.show = SHOW_COUNT,
		AT(struct vfio_device_bind_iommufd, iommufd)},
	FLAGS(struct vfio_device_bind_iommufd, bind_flags),
	{.name = "id",
		.use = USE_IN | USE_OUT,
		.as = AS_OBJECT,
		.show = SHOW_COUNT,
		AT(struct vfio_device_bind_iommufd, out_devid)},
	{.name = "token",
		.use = USE_IN,
		.show = SHOW_HEX,
		AT(struct vfio_device_bind_iommufd, token_uuid_ptr)},
	FIELDS_STRUCTURE,
};

static const struct field_name pasid_flags[] = {{"pasid", VFIO_DEVICE_ATTACH_PASID}, {0}};

static const struct field attach[] = {
	ON(DEVICES),
	{.name = "pt",
		.use = USE_WORD | USE_OUT | USE_REQUIRED,
		.as = AS_OBJECT,
		.show = SHOW_COUNT,
		AT(struct vfio_device_attach_iommufd_pt, pt_id)},
	FLAGS(struct vfio_device_attach_iommufd_pt, pasid_flags),
	{.name = "pasid",
		.use = USE_IN,
		.show = SHOW_COUNT,
		AT(struct vfio_device_attach_iommufd_pt, pasid)},
	FIELDS_STRUCTURE,
};

static const struct field detach[] = {
	ON(DEVICES),
	FLAGS(struct vfio_device_detach_iommufd_pt, pasid_flags),
	{.name = "pasid",
		.use = USE_IN,
		.show = SHOW_COUNT,
		AT(struct vfio_device_detach_iommufd_pt, pasid)},
	FIELDS_STRUCTURE,
};

#define CALL(verb, ioctl, smallest, table, ...)                                                    \
	{                                                                                          \
		.name = verb, .action = ACTION_IOCTL, .request = ioctl, .size = smallest,          \
		.fields = table, .summary = #ioctl, __VA_ARGS__                                    \
	}

struct verb verbs_vfio[] = {
	CALL("api_version", VFIO_GET_API_VERSION, 0, api_version, .flags = VERB_RETURNS),
	CALL("check_extension", VFIO_CHECK_EXTENSION, 0, check_extension, .flags = VERB_RETURNS),
	CALL("set_iommu", VFIO_SET_IOMMU, 0, set_iommu),
	CALL("get_info", VFIO_IOMMU_GET_INFO, INFO_ROOM, get_info),
	CALL("map", VFIO_IOMMU_MAP_DMA, 32, map),
	CALL("unmap", VFIO_IOMMU_UNMAP_DMA, 24, unmap),
	CALL("dirty", VFIO_IOMMU_DIRTY_PAGES, 8, dirty),
	CALL("group_status", VFIO_GROUP_GET_STATUS, 8, group_status),
	CALL("set_container", VFIO_GROUP_SET_CONTAINER, 4, set_container),
	CALL("unset_container", VFIO_GROUP_UNSET_CONTAINER, 0, unset_container),
	CALL("device_fd", VFIO_GROUP_GET_DEVICE_FD, 0, device_fd, .flags = VERB_OPENS),
	CALL("bind", VFIO_DEVICE_BIND_IOMMUFD, 16, bind_, .flags = VERB_MAKES_ID),
	CALL("attach", VFIO_DEVICE_ATTACH_IOMMUFD_PT, 12, attach),
	CALL("detach", VFIO_DEVICE_DETACH_IOMMUFD_PT, 8, detach),
	CALL("device_info", VFIO_DEVICE_GET_INFO, 24, device_info),
	CALL("region_info", VFIO_DEVICE_GET_REGION_INFO, 32, region_info),
	CALL("irq_info", VFIO_DEVICE_GET_IRQ_INFO, 16, irq_info),
	CALL("set_irqs", VFIO_DEVICE_SET_IRQS, 20, set_irqs, .flags = VERB_RETURNS),
	CALL("reset", VFIO_DEVICE_RESET, 0, reset),
	CALL("hot_reset_info", VFIO_DEVICE_GET_PCI_HOT_RESET_INFO, INFO_ROOM, hot_reset_info),
	CALL("hot_reset", VFIO_DEVICE_PCI_HOT_RESET, 12, hot_reset),
	CALL("feature", VFIO_DEVICE_FEATURE, 8, feature, .flags = VERB_RETURNS | VERB_HANDLE),
	CALL("dma_buf", VFIO_DEVICE_FEATURE, 24, dma_buf, .flags = VERB_OPENS),
	CALL("ioeventfd", VFIO_DEVICE_IOEVENTFD, 32, ioeventfd),
	{0},
};
