/* SPDX-License-Identifier: MIT */
/* Files: opening and closing them, whole set-ups, reading and writing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "abi/iommufd.h"
#include "abi/vfio.h"
#include "run.h"

int64_t outcome_set(struct side *side, struct outcome *outcome, int64_t result)
{
	outcome->result = result;
	if (result < 0 && side->soft)
		outcome->has_reason = !side->system->ops->reason(side->system, &outcome->reason);
	return result;
}

void state_open(struct replay *replay, struct side *side, unsigned thing, int device, int fd)
{
	enum thing_kind kind = replay->file->things[thing].kind;
	int32_t machine_thing = -1;

	side->states[thing] = (struct state){.fd = fd, .iommufd = -1, .map_fd = -1};
	if (device >= 0 && device < DEVICES_MAX)
		machine_thing = kind == THING_GROUP ? replay->group_things[device]
						    : replay->device_things[device];
	if (machine_thing >= 0 && fd >= 0)
		side->states[machine_thing] = side->states[thing];
}

/* The device's own name has the file, where a case uses that name. */
static void device_opened(
	struct replay *replay, struct side *side, unsigned device, int fd, int map_fd)
{
	int32_t thing = replay->device_things[device];

	if (thing >= 0)
		side->states[thing] = (struct state){.fd = fd, .iommufd = -1, .map_fd = map_fd};
}

static int step(struct side *side, struct outcome *outcome, const char *name, int64_t result)
{
	outcome->step = name;
	return (int)outcome_set(side, outcome, result);
}

/* Whether an earlier device of the statement is of the same group. */
static bool group_is_set(struct replay *replay, const struct case_statement *statement, unsigned i)
{
	unsigned device = replay->file->things[statement->arguments[i].index].device;

	for (unsigned j = 2; j < i; j++) {
		unsigned other = replay->file->things[statement->arguments[j].index].device;

		if (other < replay->n_devices &&
			!strcmp(replay->devices[other].group, replay->devices[device].group))
			return true;
	}
	return false;
}

/* Devices that the machine does not have are a skip, not a failure. */
static bool has_device(struct replay *replay, unsigned device)
{
	if (device < replay->n_devices)
		return true;
	snprintf(replay->progress->reason, sizeof(replay->progress->reason),
		"there is no d%u: the machine has %u device%s", device, replay->n_devices,
		replay->n_devices == 1 ? "" : "s");
	replay->progress->verdict = CASE_SKIPPED;
	return false;
}

static int open_groups(struct replay *replay, const struct case_statement *statement,
	struct dmamap_system *system, struct side *side, struct outcome *outcome, int container)
{
	for (unsigned i = 2; i < statement->n_inputs; i++) {
		unsigned device = replay->file->things[statement->arguments[i].index].device;
		int *fd_argument = scratch_take(replay, sizeof(int));
		int fd;

		if (!has_device(replay, device))
			return -ENODEV;
		if (group_is_set(replay, statement, i))
			continue;
		fd = step(side, outcome, "open of the group",
			system->ops->open(system, replay->devices[device].group, O_RDWR));
		if (fd < 0)
			return fd;
		if (replay->group_things[device] >= 0)
			side->states[replay->group_things[device]] =
				(struct state){.fd = fd, .iommufd = -1, .map_fd = container};
		*fd_argument = container;
		if (step(side, outcome, "VFIO_GROUP_SET_CONTAINER",
			    system->ops->ioctl(system, fd, VFIO_GROUP_SET_CONTAINER, fd_argument)) <
			0)
			return -1;
		side->group_fds[device] = fd;
	}
	return 0;
}

static int group_fd(struct replay *replay, struct side *side, unsigned device)
{
	for (unsigned i = 0; i < replay->n_devices; i++)
		if (side->group_fds[i] >= 0 &&
			!strcmp(replay->devices[i].group, replay->devices[device].group))
			return side->group_fds[i];
	return -1;
}

void action_container(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	uint64_t mode = eval_key(side, statement, "mode");
	unsigned thing = statement->arguments[0].index;
	int fd;

	outcome->result = -ESRCH;
	if (!system)
		return;
	for (unsigned i = 0; i < DEVICES_MAX; i++)
		side->group_fds[i] = -1;
	fd = step(side, outcome, mode & 2 ? "open of /dev/iommu" : "open of /dev/vfio/vfio",
		system->ops->open(system, mode & 2 ? "/dev/iommu" : "/dev/vfio/vfio", O_RDWR));
	state_open(replay, side, thing, -1, fd < 0 ? -1 : fd);
	if (fd < 0 || open_groups(replay, statement, system, side, outcome, fd))
		return;
	if (step(side, outcome, "VFIO_SET_IOMMU",
		    system->ops->ioctl(system, fd, VFIO_SET_IOMMU,
			    (void *)(uintptr_t)(mode & 1 ? VFIO_TYPE1v2_IOMMU
							 : VFIO_TYPE1_IOMMU))) < 0)
		return;
	for (unsigned i = 2; i < statement->n_inputs; i++) {
		unsigned device = replay->file->things[statement->arguments[i].index].device;

		fd = step(side, outcome, "VFIO_GROUP_GET_DEVICE_FD",
			system->ops->ioctl(system, group_fd(replay, side, device),
				VFIO_GROUP_GET_DEVICE_FD, replay->devices[device].bdf));
		if (fd < 0)
			return;
		device_opened(replay, side, device, fd, side->states[thing].fd);
	}
	outcome->result = 0;
	outcome->step = NULL;
}

/* Open, bind and attach one device. */
static int ioas_device(struct replay *replay, struct dmamap_system *system, struct side *side,
	struct outcome *outcome, unsigned device, const struct state *ioas)
{
	struct vfio_device_bind_iommufd *bind = scratch_take(replay, sizeof(*bind));
	struct vfio_device_attach_iommufd_pt *attach = scratch_take(replay, sizeof(*attach));
	struct state *state;

	if (!has_device(replay, device))
		return -ENODEV;
	state = &side->states[replay->device_things[device]];
	if (state->fd < 0 || !state->id) {
		int fd = step(side, outcome, "open of the device's cdev",
			system->ops->open(system,
				replay->devices[device].cdev[0] ? replay->devices[device].cdev
								: "/dev/vfio/devices/none",
				O_RDWR));

		if (fd < 0)
			return fd;
		device_opened(replay, side, device, fd, ioas->iommufd);
		bind->argsz = 16;
		bind->iommufd = ioas->iommufd;
		if (step(side, outcome, "VFIO_DEVICE_BIND_IOMMUFD",
			    system->ops->ioctl(system, fd, VFIO_DEVICE_BIND_IOMMUFD, bind)) < 0)
			return -1;
		state->id = bind->out_devid;
	}
	attach->argsz = 12;
	attach->pt_id = ioas->id;
	state->ioas = ioas->id;
	return step(side, outcome, "VFIO_DEVICE_ATTACH_IOMMUFD_PT",
		system->ops->ioctl(system, state->fd, VFIO_DEVICE_ATTACH_IOMMUFD_PT, attach));
}

void action_ioas(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	struct iommu_ioas_alloc *alloc = scratch_take(replay, sizeof(*alloc));
	struct state *state = &side->states[statement->arguments[0].index];
	int iommufd = eval_thing(side, statement, "on")->fd;

	outcome->result = -ESRCH;
	if (!system || !alloc)
		return;
	*state = (struct state){.fd = iommufd, .iommufd = iommufd, .map_fd = -1};
	alloc->size = sizeof(*alloc);
	if (step(side, outcome, "IOMMU_IOAS_ALLOC",
		    system->ops->ioctl(system, iommufd, IOMMU_IOAS_ALLOC, alloc)) < 0)
		return;
	state->id = alloc->out_ioas_id;
	for (unsigned i = 2; i < statement->n_inputs; i++)
		if (ioas_device(replay, system, side, outcome,
			    replay->file->things[statement->arguments[i].index].device, state) < 0)
			return;
	outcome->result = 0;
	outcome->step = NULL;
}

void action_open(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	const char *literal = statement->verb->literal ? statement->verb->literal : "iommufd";
	const struct case_argument *of = eval_given(statement, "device");
	const struct case_argument *given = eval_given(statement, "path");
	const char *path = given ? given->text : "/dev/iommu";
	int device = of ? (int)replay->file->things[of->index].device : -1;
	int fd;

	outcome->result = -ESRCH;
	if (!system || (of && !has_device(replay, (unsigned)device)))
		return;
	if (!strcmp(literal, "container"))
		path = "/dev/vfio/vfio";
	else if (!strcmp(literal, "group"))
		path = replay->devices[device].group;
	else if (!strcmp(literal, "cdev"))
		path = replay->devices[device].cdev;
	fd = (int)outcome_set(side, outcome, system->ops->open(system, path, O_RDWR));
	state_open(replay, side, statement->arguments[0].index, device, fd < 0 ? -1 : fd);
	if (fd >= 0)
		outcome->result = 0;
}

void action_close(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct state *state = eval_thing(side, statement, "file");
	const struct case_thing *thing =
		&replay->file->things[eval_given(statement, "file")->index];
	int fd = state->fd;

	/* What no system knows is closed once; the second side has the same number. */
	if (thing->kind & (THING_EVENTFD | THING_MEMORY)) {
		if (side == &replay->sides[0])
			outcome->result = close(fd) ? -errno : 0;
	} else {
		outcome_set(side, outcome, side->system->ops->close(side->system, fd));
	}
	if (fd < 0)
		return;
	for (size_t i = 0; i < replay->file->n_things; i++) {
		if (side->states[i].fd != fd)
			continue;
		side->states[i].fd = -1;
		side->states[i].id = 0;
	}
}

void action_eventfd(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	outcome->result = fd < 0 ? -errno : 0;
	/* Each side signals its own. */
	state_open(replay, side, statement->arguments[0].index, -1, fd);
}

void action_signalled(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	uint64_t count = 0;
	ssize_t n = read(eval_thing(side, statement, "eventfd")->fd, &count, sizeof(count));

	(void)replay;
	if (n < 0 && errno != EAGAIN)
		outcome->result = -errno;
	else
		outcome->result = (int64_t)count;
}

/* ----------------------------------------------------------- read and write */

/* Where in the file: the offset, after that of the region. -errno: there is none. */
static int64_t file_offset(struct replay *replay, const struct case_statement *statement,
	struct dmamap_system *system, struct side *side, struct outcome *outcome, uint64_t *offset)
{
	struct vfio_region_info *info;

	*offset = eval_key(side, statement, "offset");
	if (!eval_given(statement, "region"))
		return 0;
	info = scratch_take(replay, sizeof(*info));
	if (!info)
		return -ENOMEM;
	info->argsz = sizeof(*info);
	info->index = (uint32_t)eval_key(side, statement, "region");
	outcome->step = "VFIO_DEVICE_GET_REGION_INFO";
	if (outcome_set(side, outcome,
		    system->ops->ioctl(system, eval_thing(side, statement, "on")->fd,
			    VFIO_DEVICE_GET_REGION_INFO, info)) < 0)
		return outcome->result;
	outcome->step = NULL;
	*offset += info->offset;
	return 0;
}

static void keep_output(struct outcome *outcome, const struct verb *verb, const char *name,
	const struct output *output)
{
	int field = verb_field(verb, name, strlen(name), USE_OUT);

	outcome->outputs[field] = *output;
	outcome->have |= 1ULL << field;
}

void action_read(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	uint64_t size = eval_given(statement, "size") ? eval_key(side, statement, "size") : 4,
		 offset;
	uint8_t *buffer = scratch_take(replay, size < 1 << 20 ? size + 8 : 1 << 20);
	uint64_t value = 0;

	outcome->result = -ESRCH;
	if (!system || !buffer ||
		file_offset(replay, statement, system, side, outcome, &offset) < 0)
		return;
	if (size > 1 << 20)
		size = 1 << 20;
	outcome_set(side, outcome,
		system->ops->pread(
			system, eval_thing(side, statement, "on")->fd, buffer, size, offset));
	if (outcome->result < 0)
		return;
	memcpy(&value, buffer,
		(size_t)outcome->result < sizeof(value) ? (size_t)outcome->result : sizeof(value));
	keep_output(outcome, statement->verb, "value",
		&(struct output){.kind = OUTPUT_NUMBER, .number = value});
	keep_output(outcome, statement->verb, "bytes",
		&(struct output){
			.kind = OUTPUT_BYTES, .bytes = buffer, .n = (size_t)outcome->result});
}

void action_write(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	const struct case_argument *bytes = eval_given(statement, "bytes");
	uint64_t size, offset, value = eval_key(side, statement, "value");
	uint8_t *buffer;

	size = bytes ? bytes->n : 4;
	if (eval_given(statement, "size"))
		size = eval_key(side, statement, "size");
	if (size > 1 << 20)
		size = 1 << 20;
	buffer = scratch_take(replay, size + 8);
	outcome->result = -ESRCH;
	if (!system || !buffer ||
		file_offset(replay, statement, system, side, outcome, &offset) < 0)
		return;
	if (bytes)
		memcpy(buffer, bytes->bytes, bytes->n < size ? bytes->n : size);
	else
		memcpy(buffer, &value, sizeof(value));
	outcome_set(side, outcome,
		system->ops->pwrite(
			system, eval_thing(side, statement, "on")->fd, buffer, size, offset));
}

void action_raw(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	const struct case_argument *bytes = eval_given(statement, "bytes");
	uint64_t size = bytes ? bytes->n : 0;
	void *argument = (void *)eval_key(side, statement, "argument");
	uint8_t *buffer = NULL;

	if (eval_key(side, statement, "size") > size)
		size = eval_key(side, statement, "size");
	if (size > 1 << 20)
		size = 1 << 20;
	if (size) {
		buffer = scratch_take(replay, size);
		if (buffer && bytes)
			memcpy(buffer, bytes->bytes, bytes->n);
		if (!eval_given(statement, "argument"))
			argument = buffer;
	}
	outcome->result = -ESRCH;
	if (!system || (size && !buffer))
		return;
	outcome_set(side, outcome,
		system->ops->ioctl(system, eval_thing(side, statement, "on")->fd,
			eval_key(side, statement, "request"), argument));
	if (size)
		keep_output(outcome, statement->verb, "bytes",
			&(struct output){.kind = OUTPUT_BYTES, .bytes = buffer, .n = size});
}
