/* SPDX-License-Identifier: MIT */
/*
 * Messages: the driver asks, and waits until the daemon has answered
 * (vduse_dev_msg_sync(), vduse_dev_read_iter() and vduse_dev_write_iter()).
 *
 * The daemon's file is one end of a pair of sockets that keep messages apart,
 * so that poll(2), epoll and io_uring work on it, and read(2) and write(2) of a
 * program that knows nothing of us carry requests and responses. What is to be
 * read is put into the socket at once ("offered"); a thread of the system takes
 * native responses out of our end, and hears when the daemon's was closed, by
 * whomever. Calls through the system see the kernel's rules exactly: the lists
 * below say what is there to read and to answer, and the socket is emptied
 * beside them.
 *
 * What a native poll(2) tells differs: the end can always be written, and of a
 * broken device reads as at its end (POLLIN, POLLRDHUP) where Linux has POLLERR.
 *
 * All here is under message_lock, but for the wait of who reads.
 */
#include "soft/vduse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The key that ends the thread: no device has it. */
#define STOP 0

static struct soft_vduse_message *find_message(struct soft_vduse_messages *list, uint32_t id)
{
	struct soft_vduse_message *message;

	TAILQ_FOREACH(message, list, entry)
	if (message->request.request_id == id)
		return message;
	return NULL;
}

/* What is not read yet, with the kernel's own part of it; each message counts alike. */
static unsigned bytes_in_socket(const struct soft_vduse_device *device)
{
	int unread;

	return ioctl(device->link, SIOCOUTQ, &unread) ? 0 : (unsigned)unread;
}

/* What is to be read goes into the socket, as far as there is room. */
static void offer(struct soft_vduse_device *device)
{
	struct soft_vduse_message *message;

	if (device->link < 0)
		return;
	TAILQ_FOREACH(message, &device->to_read, entry)
	{
		bool empty;

		if (message->offered)
			continue;
		empty = !device->message_cost && !bytes_in_socket(device);
		if (send(device->link, &message->request, sizeof(message->request),
			    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return;
		message->offered = ++device->last_offered;
		/* Or 0, if it was read already: then the next one says. */
		if (empty)
			device->message_cost = bytes_in_socket(device);
	}
}

static void was_read(struct soft_vduse_device *device, struct soft_vduse_message *message)
{
	TAILQ_REMOVE(&device->to_read, message, entry);
	TAILQ_INSERT_TAIL(&device->to_answer, message, entry);
}

static struct soft_vduse_message *first_offered(struct soft_vduse_device *device, unsigned *n)
{
	struct soft_vduse_message *message, *first = NULL;

	*n = 0;
	TAILQ_FOREACH(message, &device->to_read, entry)
	{
		*n += message->offered != 0;
		if (message->offered && (!first || message->offered < first->offered))
			first = message;
	}
	return first;
}

/* What the socket does not have any more, a program has read natively. */
static void note_native_reads(struct soft_vduse_device *device)
{
	struct soft_vduse_message *message;
	unsigned bytes, unread, offered;

	if (device->link < 0)
		return;
	bytes = bytes_in_socket(device);
	unread = device->message_cost ? bytes / device->message_cost : bytes ? UINT_MAX : 0;
	while ((message = first_offered(device, &offered)) && offered > unread)
		was_read(device, message);
}

static void complete(struct soft_vduse_device *device, struct soft_vduse_messages *list,
	struct soft_vduse_message *message)
{
	TAILQ_REMOVE(list, message, entry);
	message->completed = true;
	pthread_cond_broadcast(&device->answered);
}

/* vduse_dev_broken() */
static void break_device(struct soft_vduse_device *device)
{
	struct soft_vduse_message *message;

	if (atomic_load(&device->broken))
		return;
	TAILQ_CONCAT(&device->to_read, &device->to_answer, entry);
	while ((message = TAILQ_FIRST(&device->to_read))) {
		message->response.result = VDUSE_REQ_RESULT_FAILED;
		complete(device, &device->to_read, message);
	}
	atomic_store(&device->broken, true);
	if (device->link >= 0)
		shutdown(device->link, SHUT_WR);
}

void soft_vduse_break(struct soft_vduse_device *device)
{
	pthread_mutex_lock(&device->message_lock);
	break_device(device);
	pthread_mutex_unlock(&device->message_lock);
}

/* false: the time is over. */
static bool wait_for_answer(struct soft_vduse_device *device, struct soft_vduse_message *message)
{
	uint64_t timeout = atomic_load(&device->timeout_ms);
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(timeout / 1000);
	until.tv_nsec += (long)(timeout % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!message->completed) {
		if (!timeout)
			pthread_cond_wait(&device->answered, &device->message_lock);
		else if (pthread_cond_timedwait(&device->answered, &device->message_lock, &until) ==
			 ETIMEDOUT)
			break;
	}
	return message->completed;
}

int soft_vduse_ask(struct soft_vduse_device *device, struct soft_vduse_message *message)
{
	bool broken;
	int error = 0;

	pthread_mutex_lock(&device->message_lock);
	broken = atomic_load(&device->broken);
	if (!broken) {
		message->request.request_id = device->message_id++;
		TAILQ_INSERT_TAIL(&device->to_read, message, entry);
		offer(device);
		if (!wait_for_answer(device, message))
			break_device(device);
	}
	/* What was answered counts, though the device broke before we woke. */
	if (broken || message->response.result != VDUSE_REQ_RESULT_OK) {
		if (atomic_load(&device->broken))
			error = SOFT_REFUSE(
				vduse_broken, EIO, device->name, atomic_load(&device->timeout_ms));
		else
			error = SOFT_REFUSE(
				vduse_refused, EIO, device->name, message->request.type);
	}
	pthread_mutex_unlock(&device->message_lock);
	return error;
}

/* --------------------------------------------------------- through the system */

static bool take_message(struct soft_vduse_file *file, struct vduse_dev_request *request)
{
	struct soft_vduse_device *device = file->device;
	struct soft_vduse_message *message;

	for (;;) {
		/* Offered ones come in the socket's order, which a failed read may have changed. */
		message = TAILQ_FIRST(&device->to_read);
		if (!message)
			return false;
		if (message->offered) {
			if (recv(file->fd, request, sizeof(*request), MSG_DONTWAIT) !=
				sizeof(*request)) {
				/* A native read was before us. */
				was_read(device, message);
				continue;
			}
			message = find_message(&device->to_read, request->request_id);
			/* Its sender went away. */
			if (!message)
				continue;
		}
		*request = message->request;
		was_read(device, message);
		return true;
	}
}

static void put_back(struct soft_vduse_device *device, uint32_t id)
{
	struct soft_vduse_message *message;

	pthread_mutex_lock(&device->message_lock);
	message = find_message(&device->to_answer, id);
	if (message) {
		TAILQ_REMOVE(&device->to_answer, message, entry);
		TAILQ_INSERT_HEAD(&device->to_read, message, entry);
		message->offered = 0;
		offer(device);
	}
	pthread_mutex_unlock(&device->message_lock);
}

/*
 * Until there is something to read; of a broken device, for ever. Either call
 * goes on after a signal whose handler says so (SA_RESTART), as a read does;
 * poll(2) would not.
 */
static int wait_to_read(struct soft_vduse_file *file)
{
	const uint32_t never = 0;
	char byte;
	long waited;

	if (atomic_load(&file->device->broken))
		waited = syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, never, NULL, NULL, 0);
	else
		waited = recv(file->fd, &byte, sizeof(byte), MSG_PEEK);
	if (waited < 0 && errno != EAGAIN)
		return SOFT_REFUSE(
			vduse_message_none, errno, file->device->name, file->device->key);
	return 0;
}

ssize_t soft_vduse_read(struct soft_vduse_file *file, void *buffer, size_t size)
{
	struct soft_vduse_device *device = file->device;
	struct vduse_dev_request request;
	bool taken;
	int error;

	if (size < sizeof(request))
		return SOFT_REFUSE(argsz, EINVAL, "a request", size, sizeof(request));
	for (;;) {
		pthread_mutex_lock(&device->message_lock);
		taken = take_message(file, &request);
		pthread_mutex_unlock(&device->message_lock);
		if (taken)
			break;
		if (fcntl(file->fd, F_GETFL) & O_NONBLOCK)
			return SOFT_REFUSE(vduse_message_none, EAGAIN, device->name, device->key);
		error = wait_to_read(file);
		if (error)
			return error;
	}
	error = soft_copy_out(buffer, &request, sizeof(request), "a request");
	if (error)
		put_back(device, request.request_id);
	return error ? error : (ssize_t)sizeof(request);
}

/* An answer, of whichever way. */
static int answer(struct soft_vduse_device *device, const struct vduse_dev_response *response)
{
	struct soft_vduse_message *message;
	int error = 0;

	for (size_t i = 0; i < sizeof(response->reserved) / sizeof(response->reserved[0]); i++)
		if (response->reserved[i])
			return SOFT_REFUSE(reserved_field, EINVAL, "vduse_dev_response",
				response->reserved[i]);
	pthread_mutex_lock(&device->message_lock);
	note_native_reads(device);
	message = find_message(&device->to_answer, response->request_id);
	if (message) {
		message->response = *response;
		complete(device, &device->to_answer, message);
	} else {
		error = SOFT_REFUSE(vduse_answer_unknown, ENOENT, NULL, response->request_id);
	}
	pthread_mutex_unlock(&device->message_lock);
	return error;
}

ssize_t soft_vduse_write(struct soft_vduse_file *file, const void *buffer, size_t size)
{
	struct vduse_dev_response response;
	int error;

	if (size < sizeof(response))
		return SOFT_REFUSE(vduse_answer_size, EINVAL, NULL, size, sizeof(response));
	/* What cannot be read is too short. */
	if (soft_copy_in(&response, buffer, sizeof(response), "a response"))
		return SOFT_REFUSE(
			pointer, EINVAL, "a response", (uintptr_t)buffer, sizeof(response));
	error = answer(file->device, &response);
	return error ? error : (ssize_t)sizeof(response);
}

/* ------------------------------------------------------------ native answers */

static bool hung_up(struct soft_vduse_device *device)
{
	struct pollfd end = {.fd = device->link};

	return poll(&end, 1, 0) == 1 && end.revents & POLLHUP;
}

void soft_vduse_notice(struct soft_vduse_device *device)
{
	if (device->link >= 0 && hung_up(device))
		soft_vduse_disconnect(device);
}

static void take_native_answers(struct soft_vduse_device *device)
{
	struct vduse_dev_response response;
	ssize_t n = 1;

	/* Some at a time: the lock is for others too. */
	for (unsigned i = 0; i < 64 && n > 0; i++) {
		n = recv(device->link, &response, sizeof(response), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(response))
			answer(device, &response);
	}
}

/* vduse.lock held. */
static void hear(struct soft_vduse_device *device)
{
	if (device->link < 0)
		return;
	take_native_answers(device);
	soft_vduse_notice(device);
}

static void *listen_to_all(void *argument)
{
	struct soft_system *system = argument;
	struct soft_vduse *vduse = &system->vduse;
	struct soft_vduse_device *device;
	struct epoll_event event;

	for (;;) {
		if (epoll_wait(vduse->epoll, &event, 1, -1) != 1)
			continue;
		if (event.data.u64 == STOP)
			return NULL;
		pthread_mutex_lock(&vduse->lock);
		device = vduse->devices;
		while (device && device->key != event.data.u64)
			device = device->next;
		if (device)
			hear(device);
		pthread_mutex_unlock(&vduse->lock);
	}
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* vduse.lock held. */
static int listen_to(struct soft_vduse *vduse, struct soft_vduse_device *device, int end)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = device->key};

	if (epoll_ctl(vduse->epoll, EPOLL_CTL_ADD, end, &event))
		return SOFT_REFUSE(no_memory, errno, device->name, 0);
	return 0;
}

/* vduse.lock held. */
static int listen_start(struct soft_system *system)
{
	struct soft_vduse *vduse = &system->vduse;
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = STOP};
	sigset_t all, before;
	int error = 0;

	/* A fork has the descriptors, and no thread. */
	if (vduse->epoll >= 0 && vduse->process == getpid())
		return 0;
	close_end(&vduse->epoll);
	close_end(&vduse->stop);
	vduse->epoll = epoll_create1(EPOLL_CLOEXEC);
	vduse->stop = eventfd(0, EFD_CLOEXEC);
	if (vduse->epoll < 0 || vduse->stop < 0 ||
		epoll_ctl(vduse->epoll, EPOLL_CTL_ADD, vduse->stop, &event))
		error = errno;
	for (struct soft_vduse_device *one = vduse->devices; one && !error; one = one->next)
		if (one->link >= 0)
			error = -listen_to(vduse, one, one->link);
	if (!error) {
		/* Signals are the program's, not ours. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&vduse->thread, NULL, listen_to_all, system);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (error) {
		close_end(&vduse->epoll);
		close_end(&vduse->stop);
		return SOFT_REFUSE(no_memory, error, "a listening thread", 0);
	}
	vduse->process = getpid();
	return 0;
}

void soft_vduse_listen_stop(struct soft_vduse *vduse)
{
	const uint64_t one = 1;

	if (vduse->epoll < 0)
		return;
	/* A fork has no thread to end, and shares what would end the other one's. */
	if (vduse->process == getpid() && write(vduse->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(vduse->thread, NULL);
	close_end(&vduse->epoll);
	close_end(&vduse->stop);
}

/* ------------------------------------------------------- daemons come and go */

int soft_vduse_connect(struct soft_vduse_device *device)
{
	int ends[2], error = listen_start(device->system);

	if (error)
		return error;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return SOFT_REFUSE(no_descriptor, errno, device->name, 0);
	error = listen_to(&device->system->vduse, device, ends[1]);
	if (error) {
		close(ends[0]);
		close(ends[1]);
		return error;
	}
	pthread_mutex_lock(&device->message_lock);
	device->link = ends[1];
	offer(device);
	if (atomic_load(&device->broken))
		shutdown(device->link, SHUT_WR);
	pthread_mutex_unlock(&device->message_lock);
	device->connected = true;
	return ends[0];
}

/* vduse_dev_release() */
void soft_vduse_disconnect(struct soft_vduse_device *device)
{
	struct soft_vduse_message *message;

	if (!device->connected)
		return;
	take_native_answers(device);
	soft_vduse_umem_drop(device);
	pthread_mutex_lock(&device->message_lock);
	TAILQ_CONCAT(&device->to_answer, &device->to_read, entry);
	TAILQ_CONCAT(&device->to_read, &device->to_answer, entry);
	TAILQ_FOREACH(message, &device->to_read, entry)
	message->offered = 0;
	/* A fork may have it too, and would keep it there. */
	if (device->system->vduse.epoll >= 0)
		epoll_ctl(device->system->vduse.epoll, EPOLL_CTL_DEL, device->link, NULL);
	close_end(&device->link);
	pthread_mutex_unlock(&device->message_lock);
	device->connected = false;
}
