/* SPDX-License-Identifier: MIT */
/* The calls that soft's tests are written in; see rig.h. */
#include "tests/soft/rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>

/* A system for other processes; here that is this one. */
static struct {
	struct dmamap_soft_server *server; /* NULL: it is not served */
	char folder[32];
	/* Of the last call that was refused, whoever made it. */
	pthread_mutex_t lock;
	char reason[64];    /* lock */
	char sentence[400]; /* lock */
} served = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hear(void *who, const struct dmamap_soft_refusal *refusal)
{
	(void)who;
	pthread_mutex_lock(&served.lock);
	served.reason[0] = served.sentence[0] = '\0';
	if (refusal->reason) {
		snprintf(served.reason, sizeof(served.reason), "%s", refusal->reason->kind->name);
		dmamap_reason_format(refusal->reason, served.sentence, sizeof(served.sentence));
	}
	pthread_mutex_unlock(&served.lock);
}

static void forget_reason(void)
{
	pthread_mutex_lock(&served.lock);
	served.reason[0] = served.sentence[0] = '\0';
	pthread_mutex_unlock(&served.lock);
}

/* A copy of @from, for this thread. */
static const char *copy_reason(const char *from)
{
	static _Thread_local char text[400];

	pthread_mutex_lock(&served.lock);
	snprintf(text, sizeof(text), "%s", from);
	pthread_mutex_unlock(&served.lock);
	return text;
}

static void serve(struct rig *rig)
{
	char path[48];

	strcpy(served.folder, "/tmp/dmamap-rig-XXXXXX");
	assert_non_null(mkdtemp(served.folder));
	snprintf(path, sizeof(path), "%s/socket", served.folder);
	assert_int_equal(dmamap_soft_serve(rig->soft, path, hear, NULL, &served.server), 0);
	assert_int_equal(dmamap_system_remote(path, &rig->system), 0);
}

static void serve_end(struct rig *rig)
{
	dmamap_system_destroy(rig->system);
	dmamap_soft_serve_end(served.server);
	served.server = NULL;
	assert_int_equal(rmdir(served.folder), 0);
}

void rig_start(struct rig *rig, const struct dmamap_machine *machine)
{
	struct dmamap_machine without_limit;
	struct dmamap_reason why = {0};

	if (!machine) {
		dmamap_machine_default(&without_limit);
		without_limit.memlock = DMAMAP_MEMLOCK_UNLIMITED;
		machine = &without_limit;
	}
	*rig = (struct rig){.container = -1, .group = -1, .device = -1};
	assert_int_equal(dmamap_system_soft(machine, &rig->soft, &why), 0);
	rig->system = rig->soft;
	if (getenv("DMAMAP_RIG"))
		serve(rig);
}

void rig_start_iommus(struct rig *rig, const struct dmamap_machine_iommu *iommus, unsigned n,
	unsigned as_kernel, enum dmamap_memlock memlock)
{
	struct dmamap_machine_device devices[4];
	struct dmamap_machine machine;

	dmamap_machine_default(&machine);
	machine.memlock = memlock;
	machine.as_kernel = as_kernel;
	machine.iommus = iommus;
	machine.n_iommus = n;
	for (unsigned i = 0; i < LENGTH(devices); i++) {
		devices[i] = machine.devices[0];
		snprintf(devices[i].bdf, sizeof(devices[i].bdf), "0000:00:%02x.0", 3 + i);
		devices[i].iommu = i < n ? i : 0;
		devices[i].group = 7 + i;
		devices[i].cdev = i;
	}
	machine.devices = devices;
	machine.n_devices = LENGTH(devices);
	rig_start(rig, &machine);
}

void rig_stop(struct rig *rig)
{
	rig_close(rig, &rig->device);
	rig_close(rig, &rig->group);
	rig_close(rig, &rig->container);
	if (served.server)
		serve_end(rig);
	dmamap_system_destroy(rig->soft);
	rig->system = rig->soft = NULL;
}

int rig_open(struct rig *rig, const char *path)
{
	forget_reason();
	return rig->system->ops->open(rig->system, path, O_RDWR);
}

void rig_close(struct rig *rig, int *fd)
{
	if (*fd >= 0)
		assert_int_equal(rig->system->ops->close(rig->system, *fd), 0);
	*fd = -1;
}

int rig_ioctl(struct rig *rig, int fd, unsigned long request, void *argument)
{
	forget_reason();
	return rig->system->ops->ioctl(rig->system, fd, request, argument);
}

const char *rig_reason(struct rig *rig)
{
	struct dmamap_reason reason = {0};

	if (rig->system->ops->reason(rig->system, &reason))
		return copy_reason(served.reason);
	return reason.kind->name;
}

const char *rig_sentence(struct rig *rig)
{
	static _Thread_local char text[400];
	struct dmamap_reason reason = {0};

	if (rig->system->ops->reason(rig->system, &reason) && served.server)
		return copy_reason(served.sentence);
	dmamap_reason_format(&reason, text, sizeof(text));
	return text;
}

void rig_group(struct rig *rig, const char *file, unsigned long type)
{
	rig->container = rig_open(rig, file);
	assert_true(rig->container >= 0);
	rig->group = rig_open(rig, "/dev/vfio/7");
	assert_true(rig->group >= 0);
	assert_int_equal(rig_ioctl(rig, rig->group, VFIO_GROUP_SET_CONTAINER, &rig->container), 0);
	assert_int_equal(rig_ioctl(rig, rig->container, VFIO_SET_IOMMU, (void *)type), 0);
	rig->device = rig_ioctl(rig, rig->group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:00:03.0");
	assert_true(rig->device >= 0);
}

void rig_cdev(struct rig *rig, bool attach)
{
	uint32_t id, pt;

	rig->container = rig_open(rig, "/dev/iommu");
	assert_true(rig->container >= 0);
	rig->device = rig_open(rig, "/dev/vfio/devices/vfio0");
	assert_true(rig->device >= 0);
	assert_int_equal(rig_bind(rig, rig->device, rig->container, &id), 0);
	rig->ioas = pt = rig_ioas_alloc(rig);
	if (attach)
		assert_int_equal(rig_attach(rig, rig->device, &pt), 0);
}

int rig_map(struct rig *rig, uint64_t iova, const void *va, uint64_t size, unsigned prot)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = prot,
		.vaddr = (uintptr_t)va,
		.iova = iova,
		.size = size,
	};

	return rig_ioctl(rig, rig->container, VFIO_IOMMU_MAP_DMA, &map);
}

int rig_unmap(struct rig *rig, uint64_t iova, uint64_t *size, uint32_t flags)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = offsetof(struct vfio_iommu_type1_dma_unmap, size) + 8,
		.flags = flags,
		.iova = iova,
		.size = *size,
	};
	int error = rig_ioctl(rig, rig->container, VFIO_IOMMU_UNMAP_DMA, &unmap);

	*size = unmap.size;
	return error;
}

int rig_ioas_map(struct rig *rig, uint64_t iova, const void *va, uint64_t length, unsigned prot)
{
	struct iommu_ioas_map map = {
		.size = sizeof(map),
		.flags = IOMMU_IOAS_MAP_FIXED_IOVA | (prot & READ ? IOMMU_IOAS_MAP_READABLE : 0) |
			 (prot & WRITE ? IOMMU_IOAS_MAP_WRITEABLE : 0),
		.ioas_id = rig->ioas,
		.user_va = (uintptr_t)va,
		.length = length,
		.iova = iova,
	};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP, &map);
}

int rig_ioas_unmap(struct rig *rig, uint64_t iova, uint64_t *length)
{
	struct iommu_ioas_unmap unmap = {
		.size = sizeof(unmap), .ioas_id = rig->ioas, .iova = iova, .length = *length};
	int error = rig_ioctl(rig, rig->container, IOMMU_IOAS_UNMAP, &unmap);

	*length = unmap.length;
	return error;
}

int rig_ioas_map_as(struct rig *rig, uint64_t va, uint64_t length, uint64_t *iova, uint32_t flags)
{
	struct iommu_ioas_map user = {
		.size = sizeof(user),
		.flags = flags,
		.ioas_id = rig->ioas,
		.user_va = va,
		.length = length,
		.iova = *iova,
	};
	int error = rig_ioctl(rig, rig->container, IOMMU_IOAS_MAP, &user);

	*iova = user.iova;
	return error;
}

int rig_ioas_copy(struct rig *rig, uint32_t to, uint64_t src, uint64_t length, uint64_t dst)
{
	struct iommu_ioas_copy user = {
		.size = sizeof(user),
		.flags = IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE |
			 IOMMU_IOAS_MAP_WRITEABLE,
		.dst_ioas_id = to,
		.src_ioas_id = rig->ioas,
		.length = length,
		.dst_iova = dst,
		.src_iova = src,
	};

	return rig_ioctl(rig, rig->container, IOMMU_IOAS_COPY, &user);
}

int rig_huge_pages(struct rig *rig, bool on)
{
	struct iommu_option option = {
		.size = sizeof(option),
		.option_id = IOMMU_OPTION_HUGE_PAGES,
		.op = IOMMU_OPTION_OP_SET,
		.object_id = rig->ioas,
		.val64 = on,
	};

	return rig_ioctl(rig, rig->container, IOMMU_OPTION, &option);
}

uint32_t rig_ioas_alloc(struct rig *rig)
{
	struct iommu_ioas_alloc alloc = {.size = sizeof(alloc)};

	assert_int_equal(rig_ioctl(rig, rig->container, IOMMU_IOAS_ALLOC, &alloc), 0);
	return alloc.out_ioas_id;
}

int rig_bind(struct rig *rig, int device, int iommufd, uint32_t *id)
{
	struct vfio_device_bind_iommufd bind = {.argsz = 16, .iommufd = iommufd};
	int error = rig_ioctl(rig, device, VFIO_DEVICE_BIND_IOMMUFD, &bind);

	*id = bind.out_devid;
	return error;
}

int rig_attach(struct rig *rig, int device, uint32_t *pt_id)
{
	struct vfio_device_attach_iommufd_pt attach = {.argsz = 12, .pt_id = *pt_id};
	int error = rig_ioctl(rig, device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach);

	*pt_id = attach.pt_id;
	return error;
}

void *rig_bar(struct rig *rig, unsigned bar, uint64_t size, uint64_t shift)
{
	uint64_t alignment = size < GIB ? size : GIB, room = size + 2 * alignment;
	char *reserved =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t at = ((uintptr_t)reserved + alignment - 1) & ~(alignment - 1);
	void *mapped = NULL;

	assert_ptr_not_equal(reserved, MAP_FAILED);
	assert_int_equal(rig->system->ops->mmap(rig->system, (void *)(uintptr_t)(at + shift), size,
				 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, rig->device,
				 (uint64_t)bar << 40, &mapped),
		0);
	return mapped;
}

struct dmamap_counters rig_counters(struct rig *rig)
{
	struct dmamap_counters counters;

	assert_int_equal(rig->system->ops->counters(rig->system, &counters), 0);
	return counters;
}

void *rig_memory(uint64_t length, bool populate)
{
	char *all = mmap(
		NULL, length + 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)(((uintptr_t)all + PAGE + 2 * MIB - 1) & ~(2 * MIB - 1));

	assert_ptr_not_equal(all, MAP_FAILED);
	madvise(all, length + 4 * MIB, MADV_NOHUGEPAGE);
	if (populate)
		memset(at, 0x5a, length);
	return at;
}

unsigned rig_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(directory);
	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}
