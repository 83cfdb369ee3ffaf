/* SPDX-License-Identifier: MIT */
/*
 * What a daemon may map of its device, and umem, with the rules of
 * drivers/vdpa/vdpa_user/vduse_dev.c in Linux 7.3.4. No daemon runs here: the
 * test makes the driver's maps itself, and needs no messages for them.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "dmamap/vdpa.h"
#include "soft/vduse.h"
#include "tests/soft/vduse_daemon.h"

#define SIZE MIB

struct setup {
	struct rig rig;
	struct daemon daemon; /* for its device; no thread of it runs */
	struct dmamap_vdpa *vdpa;
	struct dmamap_bounce *bounce;
	int fd;
};

static void make(struct setup *setup, uint64_t api_version, const struct dmamap_machine *machine)
{
	rig_start(&setup->rig, machine);
	daemon_init(&setup->daemon, &setup->rig, "d");
	setup->daemon.api_version = api_version;
	daemon_create(&setup->daemon);
	setup->fd = rig_open(&setup->rig, "/dev/vduse/d");
	for (uint32_t i = 0; i < setup->daemon.n_queues; i++) {
		struct vduse_vq_config queue = {.index = i, .max_size = 8};

		assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_SETUP, &queue), 0);
	}
	setup->vdpa = NULL;
}

static void attach(struct setup *setup)
{
	const struct dmamap_vdpa_config config = {.bounce_size = SIZE};

	assert_int_equal(dmamap_vdpa_attach(setup->rig.soft, "d", &config, &setup->vdpa), 0);
	setup->bounce = dmamap_vdpa_bounce(setup->vdpa, 0);
}

static int start(void **state)
{
	static struct setup setup;

	make(&setup, 0, NULL);
	attach(&setup);
	*state = &setup;
	return 0;
}

static int start_detached(void **state)
{
	static struct setup setup;

	make(&setup, 0, NULL);
	*state = &setup;
	return 0;
}

static int start_newest(void **state)
{
	static struct setup setup;

	make(&setup, 1, NULL);
	attach(&setup);
	*state = &setup;
	return 0;
}

/* With the process's own limit on locked memory. */
static int start_limited(void **state)
{
	static struct setup setup;
	struct dmamap_machine machine;

	dmamap_machine_default(&machine);
	make(&setup, 0, &machine);
	attach(&setup);
	*state = &setup;
	return 0;
}

static int stop(void **state)
{
	struct setup *setup = *state;

	rig_close(&setup->rig, &setup->fd);
	if (setup->vdpa)
		assert_int_equal(dmamap_vdpa_detach(setup->vdpa), 0);
	daemon_finish(&setup->daemon);
	rig_stop(&setup->rig);
	return 0;
}

static int device(struct setup *setup, unsigned long request, void *argument)
{
	return rig_ioctl(&setup->rig, setup->fd, request, argument);
}

static uint64_t map(struct setup *setup, void *buffer, uint64_t size, unsigned prot)
{
	uint64_t iova = 0;

	assert_int_equal(dmamap_bounce_map(setup->bounce, buffer, size, prot, 0, &iova, NULL), 0);
	return iova;
}

static void unmap(struct setup *setup, uint64_t iova, uint64_t size)
{
	assert_int_equal(dmamap_bounce_unmap(setup->bounce, iova, size, 0, NULL), 0);
}

/* The range's bytes, mapped through the system. */
static uint8_t *look(struct setup *setup, uint64_t start, uint64_t last)
{
	const struct dmamap_system_ops *ops = setup->rig.system->ops;
	struct vduse_iotlb_entry entry = {.start = start, .last = last};
	int fd = device(setup, VDUSE_IOTLB_GET_FD, &entry);
	void *mapped;

	assert_true(fd >= 0);
	assert_int_equal(entry.start, start);
	assert_int_equal(entry.last, last);
	assert_int_equal(ops->mmap(setup->rig.system, NULL, last - start + 1,
				 PROT_READ | PROT_WRITE, MAP_SHARED, fd, entry.offset, &mapped),
		0);
	assert_int_equal(ops->close(setup->rig.system, fd), 0);
	return mapped;
}

/* ---------------------------------------------------------------------- IOTLB */

/* vduse_dev_iotlb_entry() */
static void ranges_that_are_not_there(void **state)
{
	struct setup *setup = *state;
	struct vduse_iotlb_entry entry = {.start = 1, .last = 0};
	struct vduse_iova_info info = {.start = 0, .last = 0};

	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_GET_FD, &entry), EINVAL, "vduse_range");
	entry.last = 1;
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_FD, &entry), EINVAL, "vduse_detached");
	attach(setup);
	/* The bounce buffer is no range before something was mapped. */
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_FD, &entry), EINVAL, "unmap_nothing");
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_INFO, &info), EINVAL, "unmap_nothing");
}

static void the_bounce_buffer_is_a_range_from_the_first_map_on(void **state)
{
	struct setup *setup = *state;
	struct vduse_iotlb_entry entry = {.start = 5, .last = UINT64_MAX, .perm = 0};
	struct vduse_iova_info info = {.start = 4096, .last = 4096};
	uint8_t data[100], *seen;
	uint64_t iova;
	int fd;

	memset(data, 0x77, sizeof(data));
	iova = map(setup, data, sizeof(data), READ | WRITE);
	fd = device(setup, VDUSE_IOTLB_GET_FD, &entry);
	assert_true(fd >= 0);
	assert_int_equal(entry.start, 0);
	assert_int_equal(entry.last, SIZE - 1);
	assert_int_equal(entry.offset, 0);
	assert_int_equal(entry.perm, VDUSE_ACCESS_RW);
	/* As Linux's it would survive exec, and can do nothing but be mapped. */
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	/* To another process it is a plain file, and no file of the system's. */
	if (setup->rig.system != setup->rig.soft)
		goto close;
	assert_gives(&setup->rig, rig_ioctl(&setup->rig, fd, VDUSE_IOTLB_GET_FD, &entry), ENOTTY,
		"request");
	assert_gives(&setup->rig, (int)setup->rig.system->ops->read(setup->rig.system, fd, data, 1),
		EINVAL, "no_io");
close:
	rig_close(&setup->rig, &fd);
	assert_int_equal(device(setup, VDUSE_IOTLB_GET_INFO, &info), 0);
	assert_int_equal(info.start, 0);
	assert_int_equal(info.last, SIZE - 1);
	assert_int_equal(info.capability, VDUSE_IOVA_CAP_UMEM);

	seen = look(setup, 0, SIZE - 1);
	assert_memory_equal(seen + iova, data, sizeof(data));
	memset(seen + iova, 0x11, sizeof(data));
	unmap(setup, iova, sizeof(data));
	assert_int_equal(data[99], 0x11);
	munmap(seen, SIZE);
}

static void coherent_memory_is_ranges_of_its_own(void **state)
{
	struct setup *setup = *state;
	struct vduse_iova_info info = {.last = UINT64_MAX};
	uint8_t *seen;
	uint64_t iova;
	void *ours;

	assert_int_equal(dmamap_bounce_coherent_alloc(setup->bounce, 10246, &iova, &ours, NULL), 0);
	assert_int_equal(device(setup, VDUSE_IOTLB_GET_INFO, &info), 0);
	assert_int_equal(info.start, iova);
	assert_int_equal(info.last, iova + 10246 - 1);
	assert_int_equal(info.capability, 0);
	strcpy(ours, "here");
	seen = look(setup, iova, iova + 10246 - 1);
	assert_string_equal((char *)seen, "here");
	munmap(seen, 10246);
	assert_int_equal(dmamap_bounce_coherent_free(setup->bounce, iova, 10246, NULL), 0);
}

/* vduse_dev_ioctl(), VDUSE_IOTLB_GET_INFO: the copy's errno is left for what is bad. */
static void information_that_is_asked_for_badly(void **state)
{
	struct setup *setup = *state;
	struct vduse_iova_info info = {.reserved = {[4] = 1}};

	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_INFO, &info), EFAULT, "reserved_field");
	info = (struct vduse_iova_info){.asid = 1};
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_INFO, &info), EFAULT, "vduse_space");
}

static void the_newer_entry(void **state)
{
	struct setup *setup = *state;
	struct vduse_iotlb_entry_v2 entry = {.asid = 1, .last = 1};
	uint8_t data[1];
	uint64_t iova = map(setup, data, 1, READ);
	int fd;

	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_FD2, &entry), EINVAL, "vduse_space");
	entry.asid = 0;
	entry.reserved[10] = 1;
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_FD2, &entry), EINVAL, "reserved_field");
	entry.reserved[10] = 0;
	fd = device(setup, VDUSE_IOTLB_GET_FD2, &entry);
	assert_true(fd >= 0);
	assert_int_equal(entry.last, SIZE - 1);
	rig_close(&setup->rig, &fd);
	unmap(setup, iova, 1);
}

static void descriptors_may_run_out(void **state)
{
	struct setup *setup = *state;
	struct vduse_iotlb_entry entry = {.last = 1};
	struct rlimit before, none;
	uint8_t data[1];
	uint64_t iova = map(setup, data, 1, READ);

	if (setup->rig.system != setup->rig.soft) {
		unmap(setup, iova, 1);
		printf("a server would have the same limit: run it without DMAMAP_RIG\n");
		skip();
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_GET_FD, &entry), EMFILE, "no_descriptor");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	/* The range was told before the descriptor was wanted (receive_fd()). */
	assert_int_equal(entry.last, SIZE - 1);
	unmap(setup, iova, 1);
}

/* ------------------------------------------------------------------------ umem */

static void *memory_of(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

/* vduse_dev_reg_umem(), in the order of its checks. */
static void umem_that_cannot_be(void **state)
{
	struct setup *setup = *state;
	uint8_t *memory = memory_of(SIZE), data[1];
	struct vduse_iova_umem umem = {.uaddr = (uintptr_t)memory, .size = SIZE};
	uint64_t iova;

	umem.reserved[4] = 1;
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), EINVAL, "reserved_field");
	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_DEREG_UMEM, &umem), EINVAL,
		"reserved_field");
	umem.reserved[4] = 0;
	umem.asid = 1;
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), EINVAL, "vduse_space");
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_DEREG_UMEM, &umem), EINVAL, "vduse_space");
	umem.asid = 0;
	/* Only after the driver's first I/O. */
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), EINVAL, "umem_no_map");
	iova = map(setup, data, 1, READ);
	umem.size = SIZE - 4096;
	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), EINVAL, "vduse_umem");
	umem.size = SIZE;
	umem.iova = 4096;
	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), EINVAL, "vduse_umem");
	umem.iova = 0;
	umem.uaddr++;
	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), EINVAL, "vduse_umem");
	umem.uaddr--;
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_DEREG_UMEM, &umem), ENOENT, "umem_none");
	/* pin_user_pages(): nothing, or less than all. */
	munmap(memory + SIZE / 2, 4096);
	assert_int_equal(device(setup, VDUSE_IOTLB_REG_UMEM, &umem), -ENOMEM);
	assert_int_equal(mprotect(memory, 4096, PROT_READ), 0);
	assert_int_equal(device(setup, VDUSE_IOTLB_REG_UMEM, &umem), -EFAULT);
	unmap(setup, iova, 1);
	munmap(memory, SIZE);
}

static void umem_takes_the_buffer_s_place(void **state)
{
	struct setup *setup = *state;
	uint8_t *memory = memory_of(SIZE), data[4096];
	struct vduse_iova_umem umem = {.uaddr = (uintptr_t)memory, .size = SIZE};
	struct dmamap_soft_charge charge;
	uint64_t iova, later;

	memset(data, 0x21, sizeof(data));
	iova = map(setup, data, sizeof(data), READ | WRITE);
	assert_int_equal(device(setup, VDUSE_IOTLB_REG_UMEM, &umem), 0);
	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), EEXIST, "umem_there");
	assert_int_equal(dmamap_soft_charged(setup->rig.soft, 0, &charge), 0);
	assert_int_equal(charge.pinned, SIZE);
	/* What was mapped moved there, and what is mapped now is there. */
	assert_int_equal(memory[iova + 4095], 0x21);
	later = map(setup, data, 100, READ);
	assert_int_equal(memory[later + 99], 0x21);
	memset(memory + iova, 0x42, sizeof(data));
	umem.size = 4096;
	assert_gives(
		&setup->rig, device(setup, VDUSE_IOTLB_DEREG_UMEM, &umem), EINVAL, "vduse_umem");
	umem.size = SIZE;
	assert_int_equal(device(setup, VDUSE_IOTLB_DEREG_UMEM, &umem), 0);
	unmap(setup, iova, sizeof(data));
	assert_int_equal(data[4095], 0x42);
	unmap(setup, later, 100);
	assert_int_equal(dmamap_soft_charged(setup->rig.soft, 0, &charge), 0);
	assert_int_equal(charge.pinned, 0);
	munmap(memory, SIZE);
}

/* vduse_dev_release() */
static void umem_goes_with_its_daemon(void **state)
{
	struct setup *setup = *state;
	uint8_t *memory = memory_of(SIZE), data[1] = {9};
	struct vduse_iova_umem umem = {.uaddr = (uintptr_t)memory, .size = SIZE};
	struct dmamap_soft_charge charge;
	uint64_t iova = map(setup, data, 1, READ);
	uint8_t *seen;

	assert_int_equal(device(setup, VDUSE_IOTLB_REG_UMEM, &umem), 0);
	rig_close(&setup->rig, &setup->fd);
	munmap(memory, SIZE);
	/* A server hears of it a moment later. */
	for (unsigned tries = 0; setup->rig.system != setup->rig.soft && tries < 5000; tries++) {
		assert_int_equal(dmamap_soft_charged(setup->rig.soft, 0, &charge), 0);
		if (!charge.pinned)
			break;
		usleep(1000);
	}
	assert_int_equal(dmamap_soft_charged(setup->rig.soft, 0, &charge), 0);
	assert_int_equal(charge.pinned, 0);
	setup->fd = rig_open(&setup->rig, "/dev/vduse/d");
	seen = look(setup, 0, SIZE - 1);
	assert_int_equal(seen[iova], 9);
	munmap(seen, SIZE);
	unmap(setup, iova, 1);
}

/* Whoever may lock as much as he likes is limited here all the same. */
static void umem_counts_as_pinned_memory(void **state)
{
	struct setup *setup = *state;
	uint8_t *memory = memory_of(SIZE), data[1];
	struct vduse_iova_umem umem = {.uaddr = (uintptr_t)memory, .size = SIZE};
	uint64_t iova = map(setup, data, 1, READ);
	struct rlimit before, little;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	little = before;
	little.rlim_cur = SIZE - 4096;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	assert_gives(&setup->rig, device(setup, VDUSE_IOTLB_REG_UMEM, &umem), ENOMEM, "memlock");
	little.rlim_cur = SIZE;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	assert_int_equal(device(setup, VDUSE_IOTLB_REG_UMEM, &umem), 0);
	assert_int_equal(device(setup, VDUSE_IOTLB_DEREG_UMEM, &umem), 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	unmap(setup, iova, 1);
	munmap(memory, SIZE);
}

/* ------------------------------------------------------------- spaces and maps */

struct spaces {
	struct soft_vduse_driver *driver;
	int result;
};

static void *move_group(void *argument)
{
	struct spaces *spaces = argument;

	spaces->result = soft_vduse_set_group_space(spaces->driver, 1, 1);
	return NULL;
}

/* vdpa_dev_add(): each space has its part; vduse_set_group_asid() */
static void spaces_have_domains_of_their_own(void **state)
{
	static struct setup setup;
	struct vduse_dev_config config = {
		.name = "s",
		.device_id = VIRTIO_ID_BLOCK,
		.features = PLAIN,
		.vq_num = 2,
		.vq_align = 4096,
		.ngroups = 2,
		.nas = 2,
	};
	const struct dmamap_vdpa_config attached = {.bounce_size = 2 * MIB};
	struct vduse_iotlb_entry_v2 entry = {.last = 1, .asid = 1};
	struct vduse_dev_response response = {0};
	struct vduse_dev_request request;
	struct dmamap_bounce_info info;
	uint64_t version = 1, iova;
	struct spaces spaces;
	struct dmamap_vdpa *vdpa;
	pthread_t thread;
	uint8_t data[1];
	int control, fd;

	(void)state;
	rig_start(&setup.rig, NULL);
	control = rig_open(&setup.rig, "/dev/vduse/control");
	assert_int_equal(rig_ioctl(&setup.rig, control, VDUSE_SET_API_VERSION, &version), 0);
	assert_int_equal(rig_ioctl(&setup.rig, control, VDUSE_CREATE_DEV, &config), 0);
	setup.fd = rig_open(&setup.rig, "/dev/vduse/s");
	for (uint32_t i = 0; i < 2; i++) {
		struct vduse_vq_config queue = {.index = i, .max_size = 8, .group = i};

		assert_int_equal(device(&setup, VDUSE_VQ_SETUP, &queue), 0);
	}
	assert_int_equal(dmamap_vdpa_attach(setup.rig.soft, "s", &attached, &vdpa), 0);
	dmamap_bounce_info(dmamap_vdpa_bounce(vdpa, 1), &info);
	assert_int_equal(info.bounce_size, MIB);
	spaces.driver = soft_vduse_driver_from(vdpa);
	assert_ptr_equal(soft_vduse_queue_bounce(spaces.driver, 1), dmamap_vdpa_bounce(vdpa, 0));
	assert_int_equal(pthread_create(&thread, NULL, move_group, &spaces), 0);
	assert_int_equal(
		setup.rig.system->ops->read(setup.rig.system, setup.fd, &request, sizeof(request)),
		sizeof(request));
	assert_int_equal(request.type, VDUSE_SET_VQ_GROUP_ASID);
	assert_int_equal(request.vq_group_asid.group, 1);
	assert_int_equal(request.vq_group_asid.asid, 1);
	response.request_id = request.request_id;
	assert_int_equal(setup.rig.system->ops->write(
				 setup.rig.system, setup.fd, &response, sizeof(response)),
		sizeof(response));
	pthread_join(thread, NULL);
	assert_int_equal(spaces.result, 0);
	setup.bounce = soft_vduse_queue_bounce(spaces.driver, 1);
	assert_ptr_equal(setup.bounce, dmamap_vdpa_bounce(vdpa, 1));
	assert_ptr_equal(soft_vduse_queue_bounce(spaces.driver, 0), dmamap_vdpa_bounce(vdpa, 0));

	iova = map(&setup, data, 1, READ);
	fd = device(&setup, VDUSE_IOTLB_GET_FD2, &entry);
	assert_true(fd >= 0);
	rig_close(&setup.rig, &fd);
	entry = (struct vduse_iotlb_entry_v2){.last = 1};
	assert_gives(
		&setup.rig, device(&setup, VDUSE_IOTLB_GET_FD2, &entry), EINVAL, "unmap_nothing");
	unmap(&setup, iova, 1);
	rig_close(&setup.rig, &setup.fd);
	assert_int_equal(dmamap_vdpa_detach(vdpa), 0);
	rig_close(&setup.rig, &control);
	rig_stop(&setup.rig);
}

struct maps {
	struct soft_vduse_driver *driver;
	struct soft_vduse_map map[2];
	int result;
};

static void *set_map(void *argument)
{
	struct maps *maps = argument;

	maps->result = soft_vduse_set_map(maps->driver, 0, maps->map, 2);
	return NULL;
}

/* vduse_vdpa_set_map(): the daemon looks before it answers; a refusal takes all away. */
static void memory_of_vhost_s_user(void **state)
{
	struct setup *setup = *state;
	int file = memfd_create("guest", MFD_CLOEXEC);

	assert_int_equal(ftruncate(file, 8 * 4096), 0);
	assert_int_equal(pwrite(file, "guest", 6, 5 * 4096), 6);
	for (uint32_t refused = 0; refused < 2; refused++) {
		struct vduse_dev_response response = {.result = refused};
		struct vduse_iotlb_entry entry = {.start = 0, .last = UINT64_MAX};
		struct maps maps = {.driver = soft_vduse_driver_from(setup->vdpa)};
		struct vduse_dev_request request;
		struct vduse_iova_info info = {.start = 0, .last = 8191};
		pthread_t thread;
		uint8_t *seen;
		int fd;

		maps.map[0] = (struct soft_vduse_map){0, 8191, 4096, VDUSE_ACCESS_RO, file};
		maps.map[1] = (struct soft_vduse_map){65536, 69631, 20480, VDUSE_ACCESS_RW, file};
		assert_int_equal(pthread_create(&thread, NULL, set_map, &maps), 0);
		assert_int_equal(setup->rig.system->ops->read(
					 setup->rig.system, setup->fd, &request, sizeof(request)),
			sizeof(request));
		assert_int_equal(request.type, VDUSE_UPDATE_IOTLB);
		fd = device(setup, VDUSE_IOTLB_GET_FD, &entry);
		assert_true(fd >= 0);
		assert_int_equal(entry.last, 8191);
		assert_int_equal(entry.offset, 4096);
		assert_int_equal(entry.perm, VDUSE_ACCESS_RO);
		rig_close(&setup->rig, &fd);
		assert_int_equal(device(setup, VDUSE_IOTLB_GET_INFO, &info), 0);
		assert_int_equal(info.capability, 0);
		seen = look(setup, 65536, 69631);
		assert_string_equal((char *)seen, "guest");
		munmap(seen, 4096);
		response.request_id = request.request_id;
		assert_int_equal(setup->rig.system->ops->write(
					 setup->rig.system, setup->fd, &response, sizeof(response)),
			sizeof(response));
		pthread_join(thread, NULL);
		assert_int_equal(maps.result, refused ? -EIO : 0);
		fd = device(setup, VDUSE_IOTLB_GET_FD, &entry);
		if (refused)
			assert_int_equal(fd, -EINVAL);
		else
			rig_close(&setup->rig, &fd);
	}
	close(file);
}

int main(void)
{
#define TEST(test, start) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(ranges_that_are_not_there, start_detached),
		TEST(the_bounce_buffer_is_a_range_from_the_first_map_on, start),
		TEST(coherent_memory_is_ranges_of_its_own, start),
		TEST(information_that_is_asked_for_badly, start),
		TEST(the_newer_entry, start_newest),
		TEST(descriptors_may_run_out, start),
		TEST(umem_that_cannot_be, start),
		TEST(umem_takes_the_buffer_s_place, start),
		TEST(umem_goes_with_its_daemon, start),
		TEST(umem_counts_as_pinned_memory, start_limited),
		cmocka_unit_test(spaces_have_domains_of_their_own),
		TEST(memory_of_vhost_s_user, start),
	};

	return cmocka_run_group_tests_name("vduse memory", tests, NULL, NULL);
}
