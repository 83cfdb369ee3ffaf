/* SPDX-License-Identifier: MIT */
/*
 * Messages between driver and daemon, with the rules of
 * drivers/vdpa/vdpa_user/vduse_dev.c in Linux 7.3.4: the driver is a thread here,
 * and the test is the daemon.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "dmamap/vdpa.h"
#include "soft/vduse.h"
#include "tests/soft/vduse_daemon.h"

/* A driver's call in a thread of its own. */
struct call {
	pthread_t thread;
	struct soft_vduse_driver *driver;
	unsigned type;
	uint32_t a, b;
	struct vduse_vq_state state;
	int result;
};

struct setup {
	struct rig rig;
	struct daemon daemon; /* for its device; no thread of it runs */
	struct dmamap_vdpa *vdpa;
	struct soft_vduse_driver *driver;
	int fd;
};

static void make(struct setup *setup, uint64_t api_version, uint64_t vduse_features,
	const struct dmamap_vdpa_config *config)
{
	rig_start(&setup->rig, NULL);
	daemon_init(&setup->daemon, &setup->rig, "d");
	setup->daemon.api_version = api_version;
	setup->daemon.vduse_features = vduse_features;
	daemon_create(&setup->daemon);
	setup->fd = rig_open(&setup->rig, "/dev/vduse/d");
	for (uint32_t i = 0; i < setup->daemon.n_queues; i++) {
		struct vduse_vq_config queue = {.index = i, .max_size = 8};

		assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_SETUP, &queue), 0);
	}
	assert_int_equal(dmamap_vdpa_attach(setup->rig.soft, "d", config, &setup->vdpa), 0);
	setup->driver = soft_vduse_driver_from(setup->vdpa);
}

static int start(void **state)
{
	static struct setup setup;

	make(&setup, 0, 0, NULL);
	*state = &setup;
	return 0;
}

/* Version 1, both features, and a short time to answer. */
static int start_newest(void **state)
{
	static struct setup setup;
	const struct dmamap_vdpa_config config = {.timeout_ms = 200};

	make(&setup, 1, 3, &config);
	*state = &setup;
	return 0;
}

static int stop(void **state)
{
	struct setup *setup = *state;

	rig_close(&setup->rig, &setup->fd);
	assert_int_equal(dmamap_vdpa_detach(setup->vdpa), 0);
	daemon_finish(&setup->daemon);
	rig_stop(&setup->rig);
	return 0;
}

/* ------------------------------------------------------------------- driver */

static void *run(void *argument)
{
	struct call *call = argument;

	switch (call->type) {
	case VDUSE_GET_VQ_STATE:
		call->result = soft_vduse_get_queue_state(call->driver, call->a, &call->state);
		break;
	case VDUSE_SET_STATUS:
		if (call->a)
			soft_vduse_set_status(call->driver, (uint8_t)call->a);
		else
			call->result = soft_vduse_reset(call->driver);
		break;
	case VDUSE_UPDATE_IOTLB:
		call->result = soft_vduse_set_map(call->driver, call->a, NULL, 0);
		break;
	case VDUSE_SET_VQ_GROUP_ASID:
		call->result = soft_vduse_set_group_space(call->driver, call->a, call->b);
		break;
	case VDUSE_SET_VQ_READY:
		soft_vduse_set_queue_ready(call->driver, call->a, call->b);
		break;
	default:
		call->result = soft_vduse_suspend(call->driver);
	}
	return NULL;
}

static void begin(struct setup *setup, struct call *call, unsigned type, uint32_t a, uint32_t b)
{
	*call = (struct call){.driver = setup->driver, .type = type, .a = a, .b = b};
	assert_int_equal(pthread_create(&call->thread, NULL, run, call), 0);
}

static int result(struct call *call)
{
	pthread_join(call->thread, NULL);
	return call->result;
}

/* ------------------------------------------------------------------- daemon */

static ssize_t get(struct setup *setup, void *to, size_t size)
{
	return setup->rig.system->ops->read(setup->rig.system, setup->fd, to, size);
}

static ssize_t put(struct setup *setup, const void *from, size_t size)
{
	return setup->rig.system->ops->write(setup->rig.system, setup->fd, from, size);
}

static struct vduse_dev_request next(struct setup *setup)
{
	struct vduse_dev_request request;

	assert_int_equal(get(setup, &request, sizeof(request)), sizeof(request));
	return request;
}

static void answer(struct setup *setup, uint32_t id, uint32_t result_code)
{
	struct vduse_dev_response response = {.request_id = id, .result = result_code};

	assert_int_equal(put(setup, &response, sizeof(response)), sizeof(response));
}

/* The driver's call, its message, and an answer. */
static struct vduse_dev_request exchange(struct setup *setup, unsigned type, uint32_t a, uint32_t b,
	uint32_t result_code, int *outcome)
{
	struct vduse_dev_request request;
	struct call call;

	begin(setup, &call, type, a, b);
	request = next(setup);
	assert_int_equal(request.type, type);
	answer(setup, request.request_id, result_code);
	*outcome = result(&call);
	return request;
}

static void block(struct setup *setup, bool on)
{
	int flags = fcntl(setup->fd, F_GETFL);

	assert_int_equal(
		fcntl(setup->fd, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK), 0);
}

static short events(struct setup *setup, int timeout)
{
	struct pollfd fd = {.fd = setup->fd, .events = POLLIN | POLLRDHUP};

	return poll(&fd, 1, timeout) > 0 ? fd.revents : 0;
}

/* ------------------------------------------------------------- read and write */

/* vduse_dev_read_iter() */
static void reading(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request = {0};
	struct call call;

	assert_gives(&setup->rig, (int)get(setup, &request, sizeof(request) - 1), EINVAL, "argsz");
	block(setup, false);
	assert_gives(&setup->rig, (int)get(setup, &request, sizeof(request)), EAGAIN,
		"vduse_message_none");
	assert_int_equal(events(setup, 0), 0);
	begin(setup, &call, VDUSE_SET_STATUS, 1, 0);
	assert_int_equal(events(setup, 5000), POLLIN);
	/* What cannot be written is there again. */
	assert_gives(&setup->rig, (int)get(setup, (void *)16, sizeof(request)), EFAULT, "pointer");
	assert_int_equal(events(setup, 0), POLLIN);
	assert_int_equal(get(setup, &request, 4096), sizeof(request));
	assert_int_equal(request.type, VDUSE_SET_STATUS);
	assert_int_equal(request.s.status, 1);
	assert_int_equal(events(setup, 0), 0);
	assert_gives(&setup->rig, (int)get(setup, &request, sizeof(request)), EAGAIN,
		"vduse_message_none");
	answer(setup, request.request_id, VDUSE_REQ_RESULT_OK);
	result(&call);
	block(setup, true);
}

static void ignore(int signal)
{
	(void)signal;
}

static void *read_one(void *argument)
{
	struct setup *setup = argument;
	struct vduse_dev_request request;
	ssize_t n = get(setup, &request, sizeof(request));

	return (void *)(n == (ssize_t)sizeof(request) ? request.s.status : n);
}

/* wait_event_interruptible_exclusive(): a signal ends the wait, unless its handler has SA_RESTART.
 */
static void a_signal_to_who_waits_to_read(void **state)
{
	struct setup *setup = *state;
	struct sigaction action = {.sa_handler = ignore}, before;
	struct call call;
	pthread_t reader;
	void *came;

	for (unsigned restart = 0; restart < 2; restart++) {
		action.sa_flags = restart ? SA_RESTART : 0;
		assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
		assert_int_equal(pthread_create(&reader, NULL, read_one, setup), 0);
		/* Until it is asleep. */
		usleep(100000);
		assert_int_equal(pthread_kill(reader, SIGUSR1), 0);
		if (restart) {
			usleep(100000);
			begin(setup, &call, VDUSE_SET_STATUS, 3, 0);
		}
		pthread_join(reader, &came);
		if (restart) {
			assert_int_equal((intptr_t)came, 3);
			answer(setup, 0, VDUSE_REQ_RESULT_OK);
			result(&call);
		} else {
			assert_int_equal((intptr_t)came, -EINTR);
		}
		assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	}
}

/* vduse_dev_write_iter() */
static void writing(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_response response = {0};
	struct call call;

	assert_gives(&setup->rig, (int)put(setup, &response, sizeof(response) - 1), EINVAL,
		"vduse_answer_size");
	/* A copy that stops is a short one. */
	assert_gives(&setup->rig, (int)put(setup, (void *)16, sizeof(response)), EINVAL, "pointer");
	assert_gives(&setup->rig, (int)put(setup, &response, sizeof(response)), ENOENT,
		"vduse_answer_unknown");
	response.reserved[3] = 1;
	assert_gives(&setup->rig, (int)put(setup, &response, sizeof(response)), EINVAL,
		"reserved_field");
	response.reserved[3] = 0;
	begin(setup, &call, VDUSE_SET_STATUS, 1, 0);
	assert_int_equal(events(setup, 5000), POLLIN);
	/* What was not read cannot be answered, whoever guesses its number. */
	assert_gives(&setup->rig, (int)put(setup, &response, sizeof(response)), ENOENT,
		"vduse_answer_unknown");
	assert_int_equal(next(setup).request_id, 0);
	assert_int_equal(put(setup, &response, sizeof(response)), sizeof(response));
	result(&call);
	/* Once. */
	assert_gives(&setup->rig, (int)put(setup, &response, sizeof(response)), ENOENT,
		"vduse_answer_unknown");
}

static void a_program_s_own_read_and_write_do(void **state)
{
	struct setup *setup = *state;
	struct epoll_event event = {.events = EPOLLIN};
	struct vduse_dev_response response = {0};
	struct vduse_dev_request request;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct call call;

	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, setup->fd, &event), 0);
	for (uint32_t i = 1; i < 4; i++) {
		begin(setup, &call, VDUSE_SET_STATUS, i, 0);
		assert_int_equal(epoll_wait(epoll, &event, 1, 5000), 1);
		assert_int_equal(read(setup->fd, &request, sizeof(request)), sizeof(request));
		assert_int_equal(request.s.status, i);
		response.request_id = request.request_id;
		response.result = i == 3;
		assert_int_equal(write(setup->fd, &response, sizeof(response)), sizeof(response));
		result(&call);
	}
	/* The third was refused. */
	assert_int_equal(soft_vduse_get_status(setup->driver), 2);
	close(epoll);
}

/* -------------------------------------------------------------------- messages */

/* vduse_vdpa_set_status(): a refused status is not stored. */
static void status(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request;
	int outcome;

	request = exchange(setup, VDUSE_SET_STATUS, 3, 0, VDUSE_REQ_RESULT_OK, &outcome);
	assert_int_equal(request.s.status, 3);
	assert_int_equal(soft_vduse_get_status(setup->driver), 3);
	exchange(setup, VDUSE_SET_STATUS, 11, 0, VDUSE_REQ_RESULT_FAILED, &outcome);
	assert_int_equal(soft_vduse_get_status(setup->driver), 3);
	/* vduse_vdpa_reset(): whatever the daemon says. */
	exchange(setup, VDUSE_SET_STATUS, 0, 0, VDUSE_REQ_RESULT_FAILED, &outcome);
	assert_int_equal(outcome, -EIO);
	assert_int_equal(soft_vduse_get_status(setup->driver), 0);
}

/* vduse_dev_get_vq_state_split() and _packed() */
static void queue_state(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_response response = {0};
	struct vduse_dev_request request;
	struct call call;

	begin(setup, &call, VDUSE_GET_VQ_STATE, 1, 0);
	request = next(setup);
	assert_int_equal(request.type, VDUSE_GET_VQ_STATE);
	assert_int_equal(request.vq_state.index, 1);
	response.request_id = request.request_id;
	response.vq_state.split.avail_index = 0x1234;
	assert_int_equal(put(setup, &response, sizeof(response)), sizeof(response));
	assert_int_equal(result(&call), 0);
	assert_int_equal(call.state.split.avail_index, 0x1234);

	soft_vduse_set_features(setup->driver, BIT(VIRTIO_F_RING_PACKED));
	begin(setup, &call, VDUSE_GET_VQ_STATE, 0, 0);
	response.request_id = next(setup).request_id;
	memset(&response.vq_state, 0xff, sizeof(response.vq_state));
	assert_int_equal(put(setup, &response, sizeof(response)), sizeof(response));
	assert_int_equal(result(&call), 0);
	assert_int_equal(call.state.packed.last_avail_counter, 1);
	assert_int_equal(call.state.packed.last_avail_idx, 0x7fff);
	assert_int_equal(call.state.packed.last_used_counter, 1);
	assert_int_equal(call.state.packed.last_used_idx, 0x7fff);

	/* Case 35: what the daemon cannot tell is an error, not silence. */
	begin(setup, &call, VDUSE_GET_VQ_STATE, 0, 0);
	answer(setup, next(setup).request_id, VDUSE_REQ_RESULT_FAILED);
	assert_int_equal(result(&call), -EIO);
}

/* vduse_dev_update_iotlb(): a device of version 0 hears of no space. */
static void map_update(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request;
	int outcome;

	request = exchange(setup, VDUSE_UPDATE_IOTLB, 0, 0, VDUSE_REQ_RESULT_OK, &outcome);
	assert_int_equal(outcome, 0);
	assert_int_equal(request.iova.start, 0);
	assert_true(request.iova.last == UINT64_MAX);
	assert_int_equal(soft_vduse_set_map(setup->driver, 1, NULL, 0), -EINVAL);
}

/* vduse_set_group_asid() */
static void groups_are_of_version_1(void **state)
{
	struct setup *setup = *state;

	assert_int_equal(soft_vduse_set_group_space(setup->driver, 0, 0), -EINVAL);
	assert_int_equal(events(setup, 0), 0);
}

static void a_group_s_space(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request;
	int outcome;

	request = exchange(setup, VDUSE_SET_VQ_GROUP_ASID, 0, 0, VDUSE_REQ_RESULT_OK, &outcome);
	assert_int_equal(outcome, 0);
	assert_int_equal(request.vq_group_asid.group, 0);
	assert_int_equal(request.vq_group_asid.asid, 0);
	assert_int_equal(soft_vduse_set_group_space(setup->driver, 0, 1), -EINVAL);
}

/* vduse_vdpa_set_vq_ready(): refusing is the end of the device. */
static void queue_ready(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request;
	struct vduse_vq_info info = {0};
	int outcome;

	request = exchange(setup, VDUSE_SET_VQ_READY, 1, 1, VDUSE_REQ_RESULT_OK, &outcome);
	assert_int_equal(request.vq_ready.num, 1);
	assert_int_equal(request.vq_ready.ready, 1);
	assert_true(soft_vduse_get_queue_ready(setup->driver, 1));
	exchange(setup, VDUSE_SET_VQ_READY, 1, 0, VDUSE_REQ_RESULT_FAILED, &outcome);
	assert_true(soft_vduse_get_queue_ready(setup->driver, 1));
	assert_true(dmamap_vdpa_broken(setup->vdpa));
	assert_gives(&setup->rig, rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_GET_INFO, &info),
		EPERM, "vduse_broken");
}

static void interrupted(void *who)
{
	atomic_fetch_add((atomic_uint *)who, 1);
}

/* vduse_vdpa_suspend(): no kick, no interrupt, until it is reset. */
static void suspend(void **state)
{
	struct setup *setup = *state;
	atomic_uint heard = 0;
	struct soft_vduse_callback callback = {interrupted, &heard};
	struct vduse_vq_eventfd kick = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	uint32_t queue = 0;
	uint64_t count;
	int outcome;

	exchange(setup, VDUSE_SET_VQ_READY, 0, 1, VDUSE_REQ_RESULT_OK, &outcome);
	exchange(setup, VDUSE_SET_STATUS, 15, 0, VDUSE_REQ_RESULT_OK, &outcome);
	soft_vduse_set_queue_callback(setup->driver, 0, &callback, -1);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_INJECT_IRQ, &queue), 0);
	assert_int_equal(atomic_load(&heard), 1);
	soft_vduse_kick(setup->driver, 0);
	assert_int_equal(read(kick.fd, &count, sizeof(count)), sizeof(count));

	exchange(setup, VDUSE_SUSPEND, 0, 0, VDUSE_REQ_RESULT_FAILED, &outcome);
	assert_int_equal(outcome, -EIO);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_INJECT_IRQ, &queue), 0);
	exchange(setup, VDUSE_SUSPEND, 0, 0, VDUSE_REQ_RESULT_OK, &outcome);
	assert_int_equal(outcome, 0);
	assert_gives(&setup->rig, rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_INJECT_IRQ, &queue),
		EINVAL, "vduse_idle");
	assert_gives(&setup->rig,
		rig_ioctl(&setup->rig, setup->fd, VDUSE_DEV_INJECT_CONFIG_IRQ, NULL), EINVAL,
		"vduse_idle");
	soft_vduse_kick(setup->driver, 0);
	assert_int_equal(read(kick.fd, &count, sizeof(count)), -1);
	assert_int_equal(atomic_load(&heard), 2);
	exchange(setup, VDUSE_SET_STATUS, 0, 0, VDUSE_REQ_RESULT_OK, &outcome);
	close(kick.fd);
}

static void nobody_is_asked_to_suspend_who_did_not_say_so(void **state)
{
	struct setup *setup = *state;

	assert_int_equal(soft_vduse_suspend(setup->driver), -EOPNOTSUPP);
}

/* -------------------------------------------------------- kicks and interrupts */

/* vduse_kickfd_setup(): a kick that came too early is heard later. */
static void an_early_kick_is_not_lost(void **state)
{
	struct setup *setup = *state;
	struct vduse_vq_eventfd kick = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	uint64_t count;

	/* Of a queue that is not ready it is. */
	soft_vduse_kick(setup->driver, 0);
	soft_vduse_set_queue_ready(setup->driver, 0, true);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	assert_int_equal(read(kick.fd, &count, sizeof(count)), -1);
	kick.fd = VDUSE_EVENTFD_DEASSIGN + 0 * kick.fd;
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	soft_vduse_kick(setup->driver, 0);
	kick.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_SETUP_KICKFD, &kick), 0);
	assert_int_equal(read(kick.fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
	close(kick.fd);
}

/* vduse_vq_signal_irqfd(): an eventfd hears of it whatever the status is. */
static void an_interrupt_s_eventfd(void **state)
{
	struct setup *setup = *state;
	struct soft_vduse_callback none = {0};
	int trigger = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint32_t queue = 0;
	uint64_t count;

	soft_vduse_set_queue_callback(setup->driver, 0, &none, trigger);
	assert_gives(&setup->rig, rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_INJECT_IRQ, &queue),
		EINVAL, "vduse_idle");
	soft_vduse_set_queue_ready(setup->driver, 0, true);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_INJECT_IRQ, &queue), 0);
	assert_int_equal(read(trigger, &count, sizeof(count)), sizeof(count));
	close(trigger);
}

/* vduse_dev_reset() */
static void a_reset_forgets_what_the_driver_set(void **state)
{
	struct setup *setup = *state;
	struct vduse_vq_info info = {0};
	unsigned generation = atomic_load(&setup->driver->device->generation);
	uint64_t features = 1;
	int outcome;

	soft_vduse_set_features(setup->driver, DISK);
	soft_vduse_set_queue(setup->driver, 0, 8, 4096, 8192, 12288);
	soft_vduse_set_queue_state(
		setup->driver, 0, &(struct vduse_vq_state){.split.avail_index = 77});
	soft_vduse_set_queue_ready(setup->driver, 0, true);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_GET_INFO, &info), 0);
	assert_int_equal(info.num, 8);
	assert_int_equal(info.desc_addr, 4096);
	assert_int_equal(info.driver_addr, 8192);
	assert_int_equal(info.device_addr, 12288);
	assert_int_equal(info.split.avail_index, 77);
	assert_int_equal(info.ready, 1);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_DEV_GET_FEATURES, &features), 0);
	assert_true(features == DISK);

	exchange(setup, VDUSE_SET_STATUS, 0, 0, VDUSE_REQ_RESULT_OK, &outcome);
	assert_int_equal(outcome, 0);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_VQ_GET_INFO, &info), 0);
	assert_true(!info.num && !info.desc_addr && !info.driver_addr && !info.device_addr);
	assert_true(!info.split.avail_index && !info.ready);
	assert_int_equal(rig_ioctl(&setup->rig, setup->fd, VDUSE_DEV_GET_FEATURES, &features), 0);
	assert_int_equal(features, 0);
	assert_int_equal(atomic_load(&setup->driver->device->generation), generation + 1);
	/* How large it may be stays. */
	assert_int_equal(soft_vduse_queue_size(setup->driver, 0), 8);
}

/* --------------------------------------------------------- a daemon that is gone */

/* vduse_dev_release(): read ones before those that were not, each in its order. */
static void what_is_not_answered_is_for_the_next_daemon(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request;
	struct call calls[3];
	uint32_t ids[3];

	for (unsigned i = 0; i < 3; i++) {
		begin(setup, &calls[i], VDUSE_GET_VQ_STATE, 0, 0);
		request = next(setup);
		ids[i] = request.request_id;
		assert_int_equal(ids[i], i);
		if (i == 1)
			answer(setup, ids[i], VDUSE_REQ_RESULT_OK);
	}
	assert_int_equal(result(&calls[1]), 0);
	/* And one that nobody reads. */
	begin(setup, &calls[1], VDUSE_GET_VQ_STATE, 1, 0);
	assert_int_equal(events(setup, 5000), POLLIN);
	rig_close(&setup->rig, &setup->fd);
	setup->fd = rig_open(&setup->rig, "/dev/vduse/d");
	assert_true(setup->fd >= 0);
	assert_int_equal(next(setup).request_id, ids[0]);
	assert_int_equal(next(setup).request_id, ids[2]);
	request = next(setup);
	assert_int_equal(request.request_id, 3);
	for (uint32_t id = 0; id < 4; id++)
		if (id != 1)
			answer(setup, id, VDUSE_REQ_RESULT_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(result(&calls[i]), 0);
}

/* As when the process dies: the descriptor is closed without a word. */
static void a_descriptor_that_is_closed_natively(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request;
	struct call call;
	int fd = -1;

	begin(setup, &call, VDUSE_SET_STATUS, 1, 0);
	assert_int_equal(events(setup, 5000), POLLIN);
	assert_int_equal(read(setup->fd, &request, sizeof(request)), sizeof(request));
	close(setup->fd);
	fd = rig_open(&setup->rig, "/dev/vduse/d");
	assert_true(fd >= 0);
	setup->fd = fd;
	request = next(setup);
	assert_int_equal(request.s.status, 1);
	answer(setup, request.request_id, VDUSE_REQ_RESULT_OK);
	result(&call);
	assert_int_equal(soft_vduse_get_status(setup->driver), 1);
}

/* The descriptor is another process's, which is killed with a message in its hands. */
static void a_daemon_in_a_process_of_its_own(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_request request;
	struct call call;
	char byte;
	int told[2];
	pid_t child;

	assert_int_equal(pipe(told), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (read(setup->fd, &request, sizeof(request)) == (ssize_t)sizeof(request) &&
			write(told[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	rig_close(&setup->rig, &setup->fd);
	assert_gives(&setup->rig, rig_open(&setup->rig, "/dev/vduse/d"), EBUSY, "vduse_open");
	begin(setup, &call, VDUSE_SET_STATUS, 1, 0);
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	setup->fd = rig_open(&setup->rig, "/dev/vduse/d");
	assert_true(setup->fd >= 0);
	request = next(setup);
	assert_int_equal(request.s.status, 1);
	answer(setup, request.request_id, VDUSE_REQ_RESULT_OK);
	result(&call);
	assert_int_equal(soft_vduse_get_status(setup->driver), 1);
	close(told[0]);
	close(told[1]);
}

/* vduse_dev_msg_sync() and vduse_dev_broken() */
static void a_message_that_is_not_answered_breaks_the_device(void **state)
{
	struct setup *setup = *state;
	struct vduse_dev_response response = {0};
	struct vduse_dev_request request;
	struct call first, second;
	uint64_t features;

	begin(setup, &first, VDUSE_GET_VQ_STATE, 0, 0);
	request = next(setup);
	begin(setup, &second, VDUSE_GET_VQ_STATE, 1, 0);
	assert_int_equal(events(setup, 5000) & POLLIN, POLLIN);
	/* All that wait fail with the first. */
	assert_int_equal(result(&first), -EIO);
	assert_int_equal(result(&second), -EIO);
	assert_true(dmamap_vdpa_broken(setup->vdpa));
	assert_int_equal(soft_vduse_reset(setup->driver), -EIO);
	/* The daemon hears of it, and has nothing left to do. */
	assert_int_equal(events(setup, 5000) & POLLRDHUP, POLLRDHUP);
	block(setup, false);
	assert_gives(&setup->rig, (int)get(setup, &request, sizeof(request)), EAGAIN,
		"vduse_message_none");
	assert_gives(&setup->rig, (int)put(setup, &response, sizeof(response)), ENOENT,
		"vduse_answer_unknown");
	assert_gives(&setup->rig,
		rig_ioctl(&setup->rig, setup->fd, VDUSE_DEV_GET_FEATURES, &features), EPERM,
		"vduse_broken");
	assert_gives(&setup->rig, rig_ioctl(&setup->rig, setup->fd, 12345, &features), EPERM,
		"vduse_broken");
	/* For good: the next daemon has it no better. */
	rig_close(&setup->rig, &setup->fd);
	setup->fd = rig_open(&setup->rig, "/dev/vduse/d");
	assert_gives(&setup->rig,
		rig_ioctl(&setup->rig, setup->fd, VDUSE_DEV_GET_FEATURES, &features), EPERM,
		"vduse_broken");
	assert_int_equal(events(setup, 5000) & POLLRDHUP, POLLRDHUP);
}

/* ------------------------------------------------------------ many at a time */

static void *ask_often(void *argument)
{
	struct call *call = argument;

	for (unsigned i = 0; i < 200 && !call->result; i++) {
		struct vduse_vq_state answer_of = {0};

		call->result = soft_vduse_get_queue_state(call->driver, call->a, &answer_of);
		if (answer_of.split.avail_index != call->a + 1)
			call->result = -1;
	}
	return NULL;
}

static void *answer_often(void *argument)
{
	struct setup *setup = argument;

	for (;;) {
		struct vduse_dev_request request;
		struct vduse_dev_response response = {0};

		if (get(setup, &request, sizeof(request)) != (ssize_t)sizeof(request))
			return (void *)1;
		if (request.type == VDUSE_SET_STATUS)
			return NULL;
		response.request_id = request.request_id;
		response.vq_state.split.avail_index = (uint16_t)(request.vq_state.index + 1);
		if (put(setup, &response, sizeof(response)) != (ssize_t)sizeof(response))
			return (void *)1;
	}
}

static void drivers_and_daemons_on_many_threads(void **state)
{
	struct setup *setup = *state;
	struct call calls[4], end[2];
	pthread_t daemons[2];
	void *failed;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&daemons[i], NULL, answer_often, setup), 0);
	for (unsigned i = 0; i < 4; i++) {
		calls[i] = (struct call){.driver = setup->driver, .a = i % 2};
		assert_int_equal(pthread_create(&calls[i].thread, NULL, ask_often, &calls[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(result(&calls[i]), 0);
	/* Each ends with one of these, which the test answers. */
	for (unsigned i = 0; i < 2; i++)
		begin(setup, &end[i], VDUSE_SET_STATUS, 1, 0);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(daemons[i], &failed);
		assert_null(failed);
	}
	answer(setup, 800, VDUSE_REQ_RESULT_OK);
	answer(setup, 801, VDUSE_REQ_RESULT_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(result(&end[i]), 0);
}

int main(void)
{
#define TEST(test)	  cmocka_unit_test_setup_teardown(test, start, stop)
#define TEST_NEWEST(test) cmocka_unit_test_setup_teardown(test, start_newest, stop)
	const struct CMUnitTest tests[] = {
		TEST(reading),
		TEST(a_signal_to_who_waits_to_read),
		TEST(writing),
		TEST(a_program_s_own_read_and_write_do),
		TEST(status),
		TEST(queue_state),
		TEST(map_update),
		TEST(groups_are_of_version_1),
		TEST_NEWEST(a_group_s_space),
		TEST_NEWEST(queue_ready),
		TEST_NEWEST(suspend),
		TEST(nobody_is_asked_to_suspend_who_did_not_say_so),
		TEST(an_early_kick_is_not_lost),
		TEST(an_interrupt_s_eventfd),
		TEST(a_reset_forgets_what_the_driver_set),
		TEST(what_is_not_answered_is_for_the_next_daemon),
		TEST(a_descriptor_that_is_closed_natively),
		TEST(a_daemon_in_a_process_of_its_own),
		TEST_NEWEST(a_message_that_is_not_answered_breaks_the_device),
		TEST(drivers_and_daemons_on_many_threads),
	};

	return cmocka_run_group_tests_name("vduse messages", tests, NULL, NULL);
}
