/* SPDX-License-Identifier: MIT */
/*
 * HWPTs: making, attaching and ending them, on several IOMMUs; what an IOMMU
 * tells of itself; PASIDs; and what is refused because there is none of it.
 * Sources: hw_pagetable.c, device.c, viommu.c and eventq.c in
 * drivers/iommu/iommufd, and the IOMMU drivers' domain_alloc_paging_flags().
 */
#include "tests/soft/rig.h"

static char *memory;

/* A machine whose two functions are in two groups, behind two IOMMUs. */
static struct dmamap_machine machine;
static struct dmamap_machine_device functions[2];
static struct dmamap_machine_iommu iommus[2];

struct two {
	struct rig rig;
	int second;	 /* the second function; the first is rig.device */
	uint32_t dev[2]; /* their ids */
};

static int set_up(void **state)
{
	dmamap_machine_default(&machine);
	iommus[0] = iommus[1] = machine.iommus[0];
	functions[0] = functions[1] = machine.devices[0];
	machine.iommus = iommus;
	machine.n_iommus = 2;
	machine.devices = functions;
	machine.n_devices = 2;
	strcpy(functions[1].bdf, "0000:00:04.0");
	functions[1].group = 8;
	functions[1].cdev = 1;
	functions[1].iommu = 1;
	memory = rig_memory(4 * MIB, true);
	(void)state;
	return 0;
}

static void open_both(struct two *two)
{
	rig_start(&two->rig, &machine);
	two->rig.container = rig_open(&two->rig, "/dev/iommu");
	two->rig.device = rig_open(&two->rig, "/dev/vfio/devices/vfio0");
	two->second = rig_open(&two->rig, "/dev/vfio/devices/vfio1");
	assert_int_equal(rig_bind(&two->rig, two->rig.device, two->rig.container, &two->dev[0]), 0);
	assert_int_equal(rig_bind(&two->rig, two->second, two->rig.container, &two->dev[1]), 0);
	two->rig.ioas = rig_ioas_alloc(&two->rig);
}

static void close_both(struct two *two)
{
	rig_close(&two->rig, &two->second);
	rig_stop(&two->rig);
}

static int alloc(struct rig *rig, uint32_t dev, uint32_t pt, uint32_t flags, uint32_t *hwpt)
{
	struct iommu_hwpt_alloc user = {
		.size = sizeof(user), .flags = flags, .dev_id = dev, .pt_id = pt};
	int error = rig_ioctl(rig, rig->container, IOMMU_HWPT_ALLOC, &user);

	*hwpt = user.out_hwpt_id;
	return error;
}

static int destroy(struct rig *rig, uint32_t id)
{
	return rig_ioctl(rig, rig->container, IOMMU_DESTROY,
		&(struct iommu_destroy){.size = sizeof(struct iommu_destroy), .id = id});
}

static int attach(struct rig *rig, int device, uint32_t pt)
{
	return rig_attach(rig, device, &pt);
}

static int detach(struct rig *rig, int device)
{
	return rig_ioctl(rig, device, VFIO_DEVICE_DETACH_IOMMUFD_PT,
		&(struct vfio_device_detach_iommufd_pt){
			.argsz = sizeof(struct vfio_device_detach_iommufd_pt)});
}

static bool reaches(struct rig *rig, int device, uint64_t iova)
{
	struct dmamap_access *access;
	char byte;
	int error;

	assert_int_equal(dmamap_soft_access(rig->system, device, &access), 0);
	error = dmamap_read(access, iova, &byte, 1, NULL);
	dmamap_access_destroy(access);
	return !error;
}

/* iommufd_hwpt_alloc(), top to bottom: what is refused before a driver is asked. */
static void alloc_refusals(void **state)
{
	struct two two;
	struct rig *rig = &two.rig;
	uint32_t hwpt, id;

	(void)state;
	open_both(&two);
	{
		const struct {
			struct iommu_hwpt_alloc user;
			int error;
			const char *reason;
		} rows[] = {
			{{.size = 23}, EINVAL, "argsz"},
			{{.__reserved = 1, .data_len = 1}, EOPNOTSUPP, "reserved_field"},
			{{.data_len = 1}, EINVAL, "hwpt_data_type"},
			{{.data_type = 1}, EINVAL, "hwpt_data_type"},
			{{.dev_id = 77, .pt_id = 78}, ENOENT, "object_unknown"},
			{{.dev_id = rig->ioas, .pt_id = 78}, ENOENT, "object_unknown"},
			{{.dev_id = two.dev[0], .pt_id = 78}, EINVAL, "object_unknown"},
			{{.dev_id = two.dev[0], .pt_id = two.dev[1]}, EINVAL, "object_type"},
			{{.dev_id = two.dev[0], .pt_id = rig->ioas, .flags = 16}, EOPNOTSUPP,
				"flags"},
			{{.dev_id = two.dev[0],
				 .pt_id = rig->ioas,
				 .flags = IOMMU_HWPT_ALLOC_DIRTY_TRACKING},
				EOPNOTSUPP, "hwpt_dirty"},
			{{.dev_id = two.dev[0],
				 .pt_id = rig->ioas,
				 .flags = IOMMU_HWPT_ALLOC_NEST_PARENT},
				EOPNOTSUPP, "flags"},
			{{.dev_id = two.dev[0], .pt_id = rig->ioas, .data_type = 1, .data_len = 8},
				EOPNOTSUPP, "hwpt_data"},
			{{.dev_id = two.dev[0],
				 .pt_id = rig->ioas,
				 .flags = IOMMU_HWPT_FAULT_ID_VALID,
				 .fault_id = two.dev[0]},
				ENOENT, "object_unknown"},
		};

		for (size_t i = 0; i < LENGTH(rows); i++) {
			struct iommu_hwpt_alloc user = rows[i].user;

			if (!user.size)
				user.size = sizeof(user);
			assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_HWPT_ALLOC, &user),
				rows[i].error, rows[i].reason);
		}
	}
	/* None of them has taken an id, or anything else. */
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &hwpt), 0);
	assert_int_equal(hwpt, 4);
	assert_int_equal(destroy(rig, hwpt), 0);
	assert_int_equal(destroy(rig, rig->ioas), 0);
	id = rig_ioas_alloc(rig);
	assert_int_equal(id, 3);
	close_both(&two);
}

/* Which flags a driver takes: intel, amd, arm-smmu-v3 and virtio-iommu in turn. */
static void flags_by_driver(void **state)
{
	enum { DIRTY = IOMMU_HWPT_ALLOC_DIRTY_TRACKING, PASID = IOMMU_HWPT_ALLOC_PASID };
	static const struct {
		enum dmamap_iommu_model model;
		uint32_t flags;
		int error;
	} rows[] = {
		{DMAMAP_IOMMU_INTEL, DIRTY, 0},
		{DMAMAP_IOMMU_INTEL, PASID | DIRTY, 0},
		{DMAMAP_IOMMU_INTEL, IOMMU_HWPT_ALLOC_NEST_PARENT, -EOPNOTSUPP},
		{DMAMAP_IOMMU_AMD, DIRTY, 0},
		{DMAMAP_IOMMU_AMD, PASID, -EOPNOTSUPP},
		{DMAMAP_IOMMU_AMD, IOMMU_HWPT_ALLOC_NEST_PARENT, -EOPNOTSUPP},
		{DMAMAP_IOMMU_SMMUV3, PASID, 0},
		{DMAMAP_IOMMU_SMMUV3, DIRTY | PASID, 0},
		{DMAMAP_IOMMU_SMMUV3, IOMMU_HWPT_ALLOC_NEST_PARENT, -EOPNOTSUPP},
		{DMAMAP_IOMMU_VIRTIO, 0, 0},
		{DMAMAP_IOMMU_VIRTIO, DIRTY, -EOPNOTSUPP},
		{DMAMAP_IOMMU_VIRTIO, PASID, -EOPNOTSUPP},
		/* No fault queue has the id 0; virtio-iommu does not get that far. */
		{DMAMAP_IOMMU_INTEL, IOMMU_HWPT_FAULT_ID_VALID, -ENOENT},
		{DMAMAP_IOMMU_AMD, IOMMU_HWPT_FAULT_ID_VALID, -ENOENT},
		{DMAMAP_IOMMU_VIRTIO, IOMMU_HWPT_FAULT_ID_VALID, -EOPNOTSUPP},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct two two;
		uint32_t hwpt;

		set_up(state);
		iommus[0].model = rows[i].model;
		iommus[0].dirty = true;
		open_both(&two);
		assert_int_equal(alloc(&two.rig, two.dev[0], two.rig.ioas, rows[i].flags, &hwpt),
			rows[i].error);
		close_both(&two);
	}
}

/* Users: an HWPT of its IOAS, devices of their HWPT. Explicit ones stay until destroyed. */
static void life(void **state)
{
	struct two two;
	struct rig *rig = &two.rig;
	uint32_t first, second, pt;

	(void)state;
	open_both(&two);
	assert_int_equal(rig_ioas_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &first), 0);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &second), 0);
	assert_int_equal(first, 4);
	assert_int_equal(second, 5);
	/* Each is filled with what is mapped, and with what comes. */
	assert_int_equal(rig_ioas_map(rig, MIB, memory, MIB, RW), 0);
	assert_int_equal(rig_counters(rig).leaves[12], 4 * 256);
	assert_gives(rig, destroy(rig, rig->ioas), EBUSY, "object_busy");
	pt = second;
	assert_int_equal(rig_attach(rig, rig->device, &pt), 0);
	assert_int_equal(pt, second);
	assert_true(reaches(rig, rig->device, MIB));
	assert_gives(rig, destroy(rig, second), EBUSY, "object_busy");
	/* The IOAS itself never stands for an explicit one: a new one is made. */
	pt = rig->ioas;
	assert_int_equal(rig_attach(rig, two.second, &pt), 0);
	assert_int_equal(pt, 6);
	assert_gives(rig, destroy(rig, 6), EBUSY, "object_busy");
	/* A replacement by the IOAS finds that one. */
	pt = rig->ioas;
	assert_int_equal(rig_attach(rig, rig->device, &pt), 0);
	assert_int_equal(pt, 6);
	assert_int_equal(destroy(rig, second), 0);
	/* It goes with the last of its devices. */
	assert_int_equal(detach(rig, two.second), 0);
	assert_true(reaches(rig, rig->device, 0));
	assert_int_equal(attach(rig, rig->device, first), 0);
	assert_gives(rig, destroy(rig, 6), ENOENT, "object_unknown");
	assert_int_equal(detach(rig, rig->device), 0);
	assert_int_equal(detach(rig, rig->device), 0);
	assert_int_equal(destroy(rig, first), 0);
	assert_int_equal(destroy(rig, rig->ioas), 0);
	close_both(&two);
}

/* pfn_reader_fill_span(): what one page table has is not pinned again for the next. */
static void from_another(void **state)
{
	struct iommu_ioas_map_file file = {.size = sizeof(file),
		.flags = IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE,
		.length = MIB,
		.iova = GIB};
	struct two two;
	struct rig *rig = &two.rig;
	uint32_t first, second;

	(void)state;
	open_both(&two);
	file.ioas_id = rig->ioas;
	file.fd = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file.fd, MIB), 0);
	assert_int_equal(rig_ioas_map(rig, 0, memory, MIB, RW), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &file), 0);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &first), 0);
	mprotect(memory, MIB, PROT_NONE);
	assert_int_equal(ftruncate(file.fd, 0), 0);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &second), 0);
	assert_int_equal(destroy(rig, first), 0);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &first), 0);
	/* Pages that none has are pinned, and cannot be. */
	assert_int_equal(rig_ioas_unmap(rig, GIB, &(uint64_t){MIB}), 0);
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP_FILE, &file), EINVAL,
		"file_end");
	assert_int_equal(destroy(rig, first), 0);
	assert_int_equal(destroy(rig, second), 0);
	assert_gives(rig, alloc(rig, two.dev[0], rig->ioas, 0, &first), EFAULT, "memory_access");
	mprotect(memory, MIB, PROT_READ | PROT_WRITE);
	close_both(&two);
	close(file.fd);
}

static uint64_t last_usable(struct rig *rig)
{
	struct iommu_iova_range ranges[8];
	struct iommu_ioas_iova_ranges user = {
		.size = sizeof(user),
		.ioas_id = rig->ioas,
		.num_iovas = LENGTH(ranges),
		.allowed_iovas = (uintptr_t)ranges,
	};

	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_IOVA_RANGES, &user), 0);
	return ranges[user.num_iovas - 1].last;
}

/* iommufd_device_auto_get_domain(): one HWPT for each kind of IOMMU, and the lowest aperture. */
static void two_kinds(void **state)
{
	struct two two;
	struct rig *rig = &two.rig;
	uint32_t pt[2];
	uint64_t all = UINT64_MAX;

	(void)state;
	iommus[1].aperture_bits = 39;
	open_both(&two);
	pt[0] = pt[1] = rig->ioas;
	assert_int_equal(rig_attach(rig, rig->device, &pt[0]), 0);
	assert_int_equal(last_usable(rig), (1ULL << 48) - 1);
	assert_int_equal(rig_ioas_map(rig, 1ULL << 39, memory, PAGE, RW), 0);
	/* 48 bits are too many for the second, and what is mapped there is in its way. */
	assert_gives(rig, attach(rig, two.second, pt[0]), EINVAL, "hwpt_iommu");
	assert_gives(rig, attach(rig, two.second, rig->ioas), EADDRINUSE, "in_use");
	assert_int_equal(rig_ioas_unmap(rig, 0, &all), 0);
	assert_int_equal(rig_attach(rig, two.second, &pt[1]), 0);
	assert_int_not_equal(pt[0], pt[1]);
	assert_int_equal(last_usable(rig), (1ULL << 39) - 1);
	assert_gives(rig, rig_ioas_map(rig, 1ULL << 39, memory, PAGE, RW), EINVAL, "reserved");
	assert_string_equal(rig_sentence(rig),
		"iova 0x8000000000-0x8000000fff overlaps reserved 0x8000000000-0xffffffffffffffff "
		"(outside the aperture)");
	assert_int_equal(rig_ioas_map(rig, 0, memory, PAGE, RW), 0);
	assert_true(reaches(rig, rig->device, 0));
	assert_true(reaches(rig, two.second, 0));
	/* The 39-bit one serves the 48-bit IOMMU: the first moves there, and its own goes. */
	assert_int_equal(attach(rig, rig->device, pt[1]), 0);
	assert_gives(rig, destroy(rig, pt[0]), ENOENT, "object_unknown");
	close_both(&two);
}

/* What a driver's attach refuses, and with which model no unit takes another's table. */
static void serving(void **state)
{
	static const struct {
		enum dmamap_iommu_model first, second;
		unsigned bits[2];
		bool dirty, same;
	} rows[] = {
		{DMAMAP_IOMMU_INTEL, DMAMAP_IOMMU_INTEL, {48, 48}, false, true},
		{DMAMAP_IOMMU_INTEL, DMAMAP_IOMMU_INTEL, {39, 48}, false, true},
		{DMAMAP_IOMMU_INTEL, DMAMAP_IOMMU_INTEL, {48, 39}, false, false},
		{DMAMAP_IOMMU_INTEL, DMAMAP_IOMMU_AMD, {48, 48}, false, false},
		{DMAMAP_IOMMU_AMD, DMAMAP_IOMMU_AMD, {48, 48}, false, true},
		{DMAMAP_IOMMU_SMMUV3, DMAMAP_IOMMU_SMMUV3, {48, 48}, false, false},
		{DMAMAP_IOMMU_VIRTIO, DMAMAP_IOMMU_VIRTIO, {48, 48}, false, false},
		/* Tracked by the first, which the second cannot. */
		{DMAMAP_IOMMU_INTEL, DMAMAP_IOMMU_INTEL, {48, 48}, true, false},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct two two;
		uint32_t hwpt;

		set_up(state);
		iommus[0].model = rows[i].first;
		iommus[1].model = rows[i].second;
		iommus[0].aperture_bits = rows[i].bits[0];
		iommus[1].aperture_bits = rows[i].bits[1];
		iommus[0].dirty = true;
		open_both(&two);
		assert_int_equal(
			alloc(&two.rig, two.dev[0], two.rig.ioas,
				rows[i].dirty ? IOMMU_HWPT_ALLOC_DIRTY_TRACKING : 0, &hwpt),
			0);
		assert_int_equal(attach(&two.rig, two.rig.device, hwpt), 0);
		assert_int_equal(attach(&two.rig, two.second, hwpt), rows[i].same ? 0 : -EINVAL);
		close_both(&two);
	}
}

/* iommufd_hwpt_nested_alloc() and the rest of what needs nesting. */
static void nothing_nested(void **state)
{
	struct iommu_hwpt_alloc nested = {.size = sizeof(nested)};
	struct iommu_viommu_alloc viommu = {.size = sizeof(viommu)};
	struct iommu_vdevice_alloc vdevice = {.size = sizeof(vdevice)};
	struct iommu_veventq_alloc events = {.size = sizeof(events)};
	struct iommu_hw_queue_alloc queue = {.size = sizeof(queue)};
	struct iommu_hwpt_invalidate invalidate = {.size = sizeof(invalidate)};
	struct iommu_ioas_noiommu_get_pa address = {.size = sizeof(address)};
	struct two two;
	struct rig *rig = &two.rig;
	uint32_t hwpt;
	int fd;

	(void)state;
	open_both(&two);
	fd = rig->container;
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &hwpt), 0);
	nested.dev_id = two.dev[0];
	nested.pt_id = hwpt;
	nested.flags = IOMMU_HWPT_ALLOC_NEST_PARENT;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HWPT_ALLOC, &nested), EOPNOTSUPP, "flags");
	nested.flags = 0;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_HWPT_ALLOC, &nested), EOPNOTSUPP, "not_provided");
	nested.data_type = IOMMU_HWPT_DATA_VTD_S1;
	nested.data_len = 16;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HWPT_ALLOC, &nested), EINVAL, "hwpt_parent");

	viommu.type = 1;
	viommu.dev_id = 77;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_VIOMMU_ALLOC, &viommu), ENOENT, "object_unknown");
	viommu.dev_id = two.dev[0];
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_VIOMMU_ALLOC, &viommu), EOPNOTSUPP, "not_provided");
	viommu.type = 0;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VIOMMU_ALLOC, &viommu), EOPNOTSUPP, "value");
	viommu.flags = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VIOMMU_ALLOC, &viommu), EOPNOTSUPP, "flags");

	vdevice.viommu_id = hwpt;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_VDEVICE_ALLOC, &vdevice), ENOENT, "object_unknown");

	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VEVENTQ_ALLOC, &events), EOPNOTSUPP, "value");
	events.type = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VEVENTQ_ALLOC, &events), EINVAL, "value");
	events.veventq_depth = (1 << 19) + 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_VEVENTQ_ALLOC, &events), EINVAL, "value");
	events.veventq_depth = 1 << 19;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_VEVENTQ_ALLOC, &events), ENOENT, "object_unknown");

	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HW_QUEUE_ALLOC, &queue), EOPNOTSUPP, "value");
	queue.type = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HW_QUEUE_ALLOC, &queue), EINVAL, "length_zero");
	queue.length = 2;
	queue.nesting_parent_iova = UINT64_MAX;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HW_QUEUE_ALLOC, &queue), EOVERFLOW, "wrap");
	queue.nesting_parent_iova = 0;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_HW_QUEUE_ALLOC, &queue), ENOENT, "object_unknown");

	/* entry_num comes back as 0 whatever was wrong. */
	invalidate.entry_num = 3;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_HWPT_INVALIDATE, &invalidate), EINVAL, "pointer");
	assert_int_equal(invalidate.entry_num, 0);
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HWPT_INVALIDATE, &invalidate), ENOENT,
		"object_unknown");
	invalidate.hwpt_id = hwpt;
	invalidate.data_uptr = (uintptr_t)memory;
	invalidate.entry_num = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HWPT_INVALIDATE, &invalidate), EINVAL, "value");
	invalidate.entry_num = 1;
	invalidate.entry_len = PAGE + 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HWPT_INVALIDATE, &invalidate), EINVAL, "value");
	invalidate.entry_num = (1 << 19) + 1;
	invalidate.entry_len = PAGE;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HWPT_INVALIDATE, &invalidate), EINVAL, "value");
	invalidate.entry_num = 1 << 19;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_HWPT_INVALIDATE, &invalidate), EINVAL, "hwpt_nested");
	invalidate.__reserved = 1;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_HWPT_INVALIDATE, &invalidate), EOPNOTSUPP,
		"reserved_field");

	/* A kernel without VFIO_NOIOMMU looks at nothing. */
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_IOAS_NOIOMMU_GET_PA, &address), EOPNOTSUPP,
		"not_provided");
	close_both(&two);
}

/* iommufd_fault_alloc(), and the file that comes with it. */
static void fault_queue(void **state)
{
	struct iommu_fault_alloc fault = {.size = sizeof(fault), .flags = 1};
	struct iommu_hwpt_alloc hwpt = {.size = sizeof(hwpt)};
	struct {
		uint32_t cookie, code;
	} response = {1, 2};
	struct two two;
	struct rig *rig = &two.rig;
	const struct dmamap_system_ops *ops;
	char faults[96];
	int fd;

	(void)state;
	open_both(&two);
	ops = rig->system->ops;
	assert_gives(rig, rig_ioctl(rig, rig->container, IOMMU_FAULT_QUEUE_ALLOC, &fault),
		EOPNOTSUPP, "flags");
	fault.flags = 0;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_FAULT_QUEUE_ALLOC, &fault), 0);
	assert_int_equal(fault.out_fault_id, 4);
	fd = (int)fault.out_fault_fd;
	assert_int_equal(ops->read(rig->system, fd, faults, sizeof(faults)), 0);
	assert_gives(rig, (int)ops->read(rig->system, fd, faults, 47), ESPIPE, "fault_size");
	assert_gives(rig, (int)ops->pwrite(rig->system, fd, &response, 8, 0), EINVAL, "value");
	response.code = 1;
	assert_gives(
		rig, (int)ops->pwrite(rig->system, fd, &response, 8, 0), EINVAL, "fault_cookie");
	/* In use by its file, and by the page tables whose faults go there. */
	hwpt.dev_id = two.dev[0];
	hwpt.pt_id = rig->ioas;
	hwpt.flags = IOMMU_HWPT_FAULT_ID_VALID;
	hwpt.fault_id = fault.out_fault_id;
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_HWPT_ALLOC, &hwpt), 0);
	assert_gives(rig, destroy(rig, fault.out_fault_id), EBUSY, "object_busy");
	rig_close(rig, &fd);
	assert_gives(rig, destroy(rig, fault.out_fault_id), EBUSY, "object_busy");
	assert_int_equal(destroy(rig, hwpt.out_hwpt_id), 0);
	assert_int_equal(destroy(rig, fault.out_fault_id), 0);
	/* The file of one that is left keeps the IOMMUFD, until both are closed. */
	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_FAULT_QUEUE_ALLOC, &fault), 0);
	close_both(&two);
}

/* iommufd_get_hw_info(), and what intel_iommu_hw_info() gives for the lab's machine. */
static void hw_info(void **state)
{
	struct {
		struct iommu_hw_info_vtd vtd;
		uint64_t more[2];
	} data;
	struct iommu_hw_info user = {.size = sizeof(user), .data_len = sizeof(data)};
	struct two two;
	struct rig *rig = &two.rig;
	int fd;

	(void)state;
	iommus[0].coherent = false;
	iommus[1].model = DMAMAP_IOMMU_AMD;
	iommus[1].dirty = true;
	open_both(&two);
	fd = rig->container;
	user.data_uptr = (uintptr_t)&data;
	user.flags = 2;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), EOPNOTSUPP, "flags");
	user.flags = 0;
	user.__reserved[2] = 1;
	assert_gives(
		rig, rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), EOPNOTSUPP, "reserved_field");
	user.__reserved[2] = 0;
	user.dev_id = rig->ioas;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), ENOENT, "object_unknown");
	user.dev_id = two.dev[0];
	memset(&data, 0xff, sizeof(data));
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), 0);
	assert_int_equal(user.out_data_type, IOMMU_HW_INFO_TYPE_INTEL_VTD);
	assert_int_equal(user.data_len, 24);
	assert_int_equal(user.out_capabilities, IOMMU_HW_CAP_PCI_ATS_NOT_SUPPORTED);
	assert_int_equal(data.vtd.flags, 1);
	assert_int_equal(data.vtd.cap_reg, 0xd2008c222f0686);
	assert_int_equal(data.vtd.ecap_reg, 0xf42);
	assert_int_equal(data.more[0] | data.more[1], 0);
	/* Less room gets less; the length says what there is. */
	memset(&data, 0xff, sizeof(data));
	user.data_len = 12;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), 0);
	assert_int_equal(user.data_len, 24);
	assert_int_equal(data.vtd.cap_reg >> 32, 0xffffffff);
	user.data_len = 0;
	user.data_uptr = 0;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), 0);
	user.data_len = 8;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), EFAULT, "pointer");
	/* A type is asked for only with the flag. */
	user.data_len = 0;
	user.in_data_type = IOMMU_HW_INFO_TYPE_ARM_SMMUV3;
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), 0);
	user.flags = IOMMU_HW_INFO_FLAG_INPUT_TYPE;
	user.in_data_type = IOMMU_HW_INFO_TYPE_ARM_SMMUV3;
	assert_gives(rig, rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), EOPNOTSUPP, "value");
	/* A driver without hw_info has no type; the flags are the kernel's own. */
	user.flags = 0;
	user.dev_id = two.dev[1];
	user.data_len = sizeof(data);
	user.data_uptr = (uintptr_t)&data;
	memset(&data, 0xff, sizeof(data));
	assert_int_equal(rig_ioctl(rig, fd, IOMMU_GET_HW_INFO, &user), 0);
	assert_int_equal(user.out_data_type, IOMMU_HW_INFO_TYPE_NONE);
	assert_int_equal(user.data_len, 0);
	assert_int_equal(data.vtd.flags, 0);
	assert_int_equal(data.more[1], 0);
	assert_int_equal(user.out_capabilities,
		IOMMU_HW_CAP_DIRTY_TRACKING | IOMMU_HW_CAP_PCI_ATS_NOT_SUPPORTED);
	close_both(&two);
}

static int pasid(struct rig *rig, int device, uint32_t number, uint32_t pt)
{
	struct vfio_device_attach_iommufd_pt user = {
		.argsz = sizeof(user),
		.flags = VFIO_DEVICE_ATTACH_PASID,
		.pt_id = pt,
		.pasid = number,
	};

	return rig_ioctl(rig, device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &user);
}

static int no_pasid(struct rig *rig, int device, uint32_t number)
{
	struct vfio_device_detach_iommufd_pt user = {
		.argsz = sizeof(user), .flags = VFIO_DEVICE_DETACH_PASID, .pasid = number};

	return rig_ioctl(rig, device, VFIO_DEVICE_DETACH_IOMMUFD_PT, &user);
}

/* vfio_iommufd_physical_pasid_attach_ioas(), iommufd_hwpt_pasid_compat(): 7.3 asks no hardware. */
static void pasids(void **state)
{
	struct two two;
	struct rig *rig = &two.rig;
	uint32_t plain, suits, other;

	(void)state;
	open_both(&two);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, 0, &plain), 0);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, IOMMU_HWPT_ALLOC_PASID, &suits), 0);
	assert_int_equal(alloc(rig, two.dev[0], rig->ioas, IOMMU_HWPT_ALLOC_PASID, &other), 0);
	assert_gives(rig, pasid(rig, rig->device, 5, 77), ENOENT, "object_unknown");
	assert_gives(rig, pasid(rig, rig->device, 5, rig->ioas), EINVAL, "hwpt_pasid");
	assert_gives(rig, pasid(rig, rig->device, 5, plain), EINVAL, "hwpt_pasid");
	assert_gives(rig, pasid(rig, rig->device, 1U << 31, suits), ENOSPC, "value");
	assert_int_equal(pasid(rig, rig->device, 5, suits), 0);
	assert_gives(rig, destroy(rig, suits), EBUSY, "object_busy");
	/* While there are PASIDs, the device itself needs such a table as well. */
	assert_gives(rig, attach(rig, rig->device, plain), EINVAL, "hwpt_pasid");
	assert_gives(rig, attach(rig, rig->device, rig->ioas), EINVAL, "hwpt_pasid");
	assert_int_equal(attach(rig, rig->device, other), 0);
	/* A second time is a replacement. */
	assert_int_equal(pasid(rig, rig->device, 5, other), 0);
	assert_int_equal(destroy(rig, suits), 0);
	assert_int_equal(no_pasid(rig, rig->device, 6), 0);
	assert_int_equal(no_pasid(rig, rig->device, 5), 0);
	assert_int_equal(detach(rig, rig->device), 0);
	assert_int_equal(attach(rig, rig->device, plain), 0);
	assert_gives(rig, pasid(rig, rig->device, 5, other), EINVAL, "hwpt_pasid");
	/* PASID 0 is the device: VFIO counts it apart, IOMMUFD does not. */
	assert_gives(rig, pasid(rig, rig->device, 0, plain), EBUSY, "attached");
	assert_int_equal(detach(rig, rig->device), 0);
	assert_int_equal(pasid(rig, rig->device, 0, plain), 0);
	assert_gives(rig, attach(rig, rig->device, plain), EBUSY, "attached");
	assert_int_equal(pasid(rig, rig->device, 0, other), 0);
	assert_int_equal(no_pasid(rig, rig->device, 0), 0);
	assert_int_equal(destroy(rig, other), 0);
	assert_int_equal(destroy(rig, plain), 0);
	close_both(&two);
}

/* iopt_disable_large_pages(), iopt_enable_large_pages(): only what is mapped later changes. */
static void huge_pages(void **state)
{
	struct two two;
	struct rig *rig = &two.rig;
	struct dmamap_access *access;
	uint64_t all = UINT64_MAX;
	char byte;

	(void)state;
	open_both(&two);
	assert_int_equal(dmamap_soft_declare(rig->system, memory, 2 * MIB, -1, 21), 0);
	assert_int_equal(attach(rig, rig->device, rig->ioas), 0);
	/* Accesses see nothing of it. */
	assert_int_equal(dmamap_soft_access(rig->system, rig->device, &access), 0);
	assert_int_equal(rig_huge_pages(rig, false), 0);
	assert_int_equal(rig_ioas_map(rig, 0, memory, 2 * MIB, RW), 0);
	assert_int_equal(rig_counters(rig).leaves[12], 512);
	assert_int_equal(rig_huge_pages(rig, true), 0);
	assert_int_equal(rig_ioas_map(rig, 2 * MIB, memory, 2 * MIB, RW), 0);
	assert_int_equal(rig_counters(rig).leaves[12], 512);
	assert_int_equal(rig_counters(rig).leaves[21], 1);
	assert_gives(rig, rig_huge_pages(rig, false), EINVAL, "large_pages");
	memory[7] = 'h';
	assert_int_equal(dmamap_read(access, 7, &byte, 1, NULL), 0);
	assert_int_equal(byte, 'h');
	assert_int_equal(dmamap_read(access, 2 * MIB + 7, &byte, 1, NULL), 0);
	assert_int_equal(byte, 'h');
	dmamap_access_destroy(access);
	assert_int_equal(rig_ioas_unmap(rig, 0, &all), 0);
	assert_int_equal(rig_huge_pages(rig, false), 0);
	close_both(&two);
}

/* iommufd_device_bind(): interrupts that are not kept apart, and the parameter that allows it. */
static void unsafe_interrupts(void **state)
{
	struct rig rig;
	uint32_t id;
	int device;

	(void)state;
	machine.isolated_msi = false;
	machine.allow_unsafe_interrupts = false;
	rig_start(&rig, &machine);
	rig.container = rig_open(&rig, "/dev/iommu");
	device = rig_open(&rig, "/dev/vfio/devices/vfio0");
	assert_gives(&rig, rig_bind(&rig, device, rig.container, &id), EPERM, "unsafe_interrupts");
	rig_close(&rig, &device);
	rig_stop(&rig);
	machine.allow_unsafe_interrupts = true;
	rig_start(&rig, &machine);
	rig_cdev(&rig, true);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(alloc_refusals, set_up),
		cmocka_unit_test_setup(flags_by_driver, set_up),
		cmocka_unit_test_setup(life, set_up),
		cmocka_unit_test_setup(from_another, set_up),
		cmocka_unit_test_setup(two_kinds, set_up),
		cmocka_unit_test_setup(serving, set_up),
		cmocka_unit_test_setup(nothing_nested, set_up),
		cmocka_unit_test_setup(fault_queue, set_up),
		cmocka_unit_test_setup(hw_info, set_up),
		cmocka_unit_test_setup(pasids, set_up),
		cmocka_unit_test_setup(huge_pages, set_up),
		cmocka_unit_test_setup(unsafe_interrupts, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
