/* SPDX-License-Identifier: MIT */
/*
 * The soft system of another process, for its VDUSE files: each call travels
 * there and back (soft/wire.h; soft/serve.c answers). What an argument is, is
 * known here and by the file that answers, and the way between them knows of
 * none of it: a table says which requests have data behind their structure,
 * and which have a descriptor or an address in it.
 *
 * An argument is sent as far as this process can read it, and refused there as
 * if the other process had that much of it: errors and their order stay the
 * system's own.
 *
 * The lock is held over a call and its result. The connection is a descriptor
 * like any other, which a program may close without knowing it ("close all
 * from 3 on"): it is looked at before it is used, and made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/vduse.h"
#include "soft/soft.h"
#include "soft/wire.h"

/* Above what programs count on to be theirs, where the limit lets us. */
#define HIGH_FD 512

struct remote {
	struct dmamap_system base;
	struct sockaddr_un address;
	pthread_mutex_t lock;
	int link;     /* lock; -1: none yet */
	pid_t pid;    /* lock: whose it is; the child of a fork makes its own */
	dev_t st_dev; /* lock: of the link, */
	ino_t st_ino; /* which the number may not be any more */
	char *data;   /* lock: a message's, of WIRE_DATA bytes */
};

/* A call on its way; its data is in the system's buffer. */
struct exchange {
	struct wire_call call;
	size_t sent;
	int fds[WIRE_FDS];
	unsigned n_fds;
	struct wire_result result;
	size_t got;
	int got_fd; /* -1: none */
};

/* ------------------------------------------------------------- connection */

/* Whether the number still is what we made. */
static bool linked(const struct remote *remote)
{
	struct stat is;

	return remote->link >= 0 && !fstat(remote->link, &is) && is.st_dev == remote->st_dev &&
	       is.st_ino == remote->st_ino;
}

static void hang_up(struct remote *remote)
{
	if (linked(remote))
		close(remote->link);
	remote->link = -1;
}

static int dial(struct remote *remote)
{
	struct stat is;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), high, error = 0;

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (connect(fd, (struct sockaddr *)&remote->address, sizeof(remote->address)) ||
		fstat(fd, &is)) {
		error = -errno;
		close(fd);
		return error;
	}
	remote->link = fd;
	remote->pid = getpid();
	remote->st_dev = is.st_dev;
	remote->st_ino = is.st_ino;
	return 0;
}

static int connected(struct remote *remote)
{
	if (remote->pid == getpid() && linked(remote))
		return 0;
	hang_up(remote);
	return dial(remote);
}

static int send_call(struct remote *remote, const struct exchange *exchange)
{
	struct wire_message message = {.head = (void *)(uintptr_t)&exchange->call,
		.head_size = sizeof(exchange->call),
		.data = remote->data,
		.data_size = exchange->sent,
		.n_fds = exchange->n_fds};

	memcpy(message.fds, exchange->fds, sizeof(message.fds));
	return wire_send(remote->link, &message, 0);
}

static int receive_result(struct remote *remote, struct exchange *exchange)
{
	struct wire_message message = {.head = &exchange->result,
		.head_size = sizeof(exchange->result),
		.data = remote->data,
		.data_size = WIRE_DATA};
	int error = wire_receive(remote->link, &message, 0);

	exchange->got = message.data_size;
	if (message.n_fds)
		exchange->got_fd = message.fds[0];
	return error;
}

/* Lock held. What the way itself refuses is -ENODEV: that system is gone. */
static int64_t exchange_on(struct remote *remote, struct exchange *exchange)
{
	int error;

	exchange->call.version = WIRE_VERSION;
	exchange->got_fd = -1;
	/* Where an argument could not be read, the other process says so. */
	soft_why()->kind = NULL;
	for (unsigned i = 0; i < exchange->n_fds; i++)
		if (fcntl(exchange->fds[i], F_GETFD) < 0)
			return SOFT_REFUSE(bad_fd, EBADF, NULL, (unsigned)exchange->fds[i]);
	error = connected(remote);
	if (!error)
		error = send_call(remote, exchange);
	if (!error)
		error = receive_result(remote, exchange);
	if (error) {
		if (exchange->got_fd >= 0)
			close(exchange->got_fd);
		hang_up(remote);
		return SOFT_REFUSE(no_server, ENODEV, remote->address.sun_path, (unsigned)-error);
	}
	if (exchange->result.flags & WIRE_UNKNOWN)
		return SOFT_REFUSE(bad_fd, EBADF, NULL, (unsigned)exchange->fds[0]);
	/* It sent one, and this process had no room for it. */
	if (exchange->result.flags & WIRE_HAS_FD && exchange->got_fd < 0)
		return SOFT_REFUSE(no_descriptor, EMFILE, remote->address.sun_path, 0);
	return exchange->result.result;
}

/* ------------------------------------------------------------------- open */

/* A call that is about a path. Lock held. */
static int64_t exchange_path(struct remote *remote, struct exchange *exchange, const char *path)
{
	exchange->sent = strlen(path) + 1;
	if (exchange->sent > WIRE_DATA)
		return SOFT_REFUSE(too_large, ENAMETOOLONG, "a path", exchange->sent);
	memcpy(remote->data, path, exchange->sent);
	return exchange_on(remote, exchange);
}

static int remote_open(struct dmamap_system *system, const char *path, int flags)
{
	struct remote *remote = (struct remote *)system;
	struct exchange exchange = {.call = {.kind = WIRE_OPEN, .number = (unsigned)flags}};
	int64_t result;

	pthread_mutex_lock(&remote->lock);
	result = exchange_path(remote, &exchange, path);
	pthread_mutex_unlock(&remote->lock);
	return result < 0 ? (int)result : exchange.got_fd;
}

static int remote_close(struct dmamap_system *system, int fd)
{
	(void)system;
	/* The other process hears of it when this was the last one. */
	return close(fd) ? -errno : 0;
}

/* ------------------------------------------------------------------ ioctl */

/* Requests that are more than the structure that their number tells. */
static const struct shape {
	unsigned request;
	uint16_t length_at; /* 1 + where a 32-bit length of what follows is */
	uint16_t fd_at;
	uint16_t memory_at;
	uint16_t memory_size_at; /* 1 + where the size is of what memory_at speaks of */
	uint16_t key_at;	 /* 1 + where is, in 32 bits, which memory it is */
	bool returns_fd;
} shapes[] = {
	{VDUSE_CREATE_DEV, .length_at = 1 + offsetof(struct vduse_dev_config, config_size)},
	{VDUSE_DEV_SET_CONFIG, .length_at = 1 + offsetof(struct vduse_config_data, length)},
	{VDUSE_VQ_SETUP_KICKFD, .fd_at = 1 + offsetof(struct vduse_vq_eventfd, fd)},
	{VDUSE_IOTLB_GET_FD, .returns_fd = true},
	{VDUSE_IOTLB_GET_FD2, .returns_fd = true},
	{VDUSE_IOTLB_REG_UMEM, .memory_at = 1 + offsetof(struct vduse_iova_umem, uaddr),
		.memory_size_at = 1 + offsetof(struct vduse_iova_umem, size),
		.key_at = 1 + offsetof(struct vduse_iova_umem, asid)},
	{VDUSE_IOTLB_DEREG_UMEM, .key_at = 1 + offsetof(struct vduse_iova_umem, asid)},
};

static const struct shape *shape_of(unsigned request)
{
	static const struct shape none;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (shapes[i].request == request)
			return &shapes[i];
	return &none;
}

/* As much of it as there is, page by page; how much that was. */
static size_t copy_there(char *to, const void *user, size_t from, size_t until)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	while (from < until) {
		const char *at = (const char *)((uintptr_t)user + from);
		size_t part = page - ((uintptr_t)at & (page - 1));

		if (part > until - from)
			part = until - from;
		if (soft_copy_in_far(to + from, at, part, "an argument"))
			break;
		from += part;
	}
	return from;
}

static size_t read_argument(char *data, unsigned request, const struct shape *shape, void *argument)
{
	size_t size = _IOC_DIR(request) ? _IOC_SIZE(request) : 0;
	size_t there = copy_there(data, argument, 0, size);
	uint32_t length;

	if (there < size || !shape->length_at)
		return there;
	memcpy(&length, data + shape->length_at - 1, sizeof(length));
	if (length > WIRE_DATA - size)
		length = WIRE_DATA - (uint32_t)size;
	return copy_there(data, argument, size, size + length);
}

/* The descriptor in the argument goes with the call, if it is one. */
static void add_fd(struct exchange *exchange, const char *data, const struct shape *shape)
{
	int fd;

	if (!shape->fd_at || exchange->sent < shape->fd_at - 1u + sizeof(fd))
		return;
	exchange->call.fd_at = shape->fd_at;
	memcpy(&fd, data + shape->fd_at - 1, sizeof(fd));
	if (fd < 0 || fcntl(fd, F_GETFD) < 0)
		return;
	exchange->fds[exchange->n_fds++] = fd;
	exchange->call.extra_fd = 1;
}

/* Memory in the argument goes as a file that both have mapped. */
static int add_memory(struct exchange *exchange, const char *data, const struct shape *shape)
{
	uint64_t address, size;
	bool starts;
	int fd;

	if (!shape->key_at || exchange->sent < _IOC_SIZE(shape->request))
		return -1;
	memcpy(&exchange->call.memory_key, data + shape->key_at - 1, sizeof(uint32_t));
	exchange->call.forgets_memory = !shape->memory_at;
	if (!shape->memory_at)
		return -1;
	exchange->call.memory_at = shape->memory_at;
	memcpy(&address, data + shape->memory_at - 1, sizeof(address));
	memcpy(&size, data + shape->memory_size_at - 1, sizeof(size));
	fd = soft_share_memory(address, size, &exchange->call.memory_offset, &starts);
	exchange->call.memory_starts = starts;
	if (fd < 0)
		return -1;
	exchange->call.memory_size = size;
	exchange->call.extra_fd = 1;
	exchange->fds[exchange->n_fds++] = fd;
	return fd;
}

static int remote_ioctl(struct dmamap_system *system, int fd, unsigned long number, void *argument)
{
	struct remote *remote = (struct remote *)system;
	unsigned request = (unsigned)number;
	const struct shape *shape = shape_of(request);
	struct exchange exchange = {.call = {.kind = WIRE_IOCTL, .number = request}};
	int64_t result;
	int memory;

	pthread_mutex_lock(&remote->lock);
	exchange.sent = read_argument(remote->data, request, shape, argument);
	exchange.fds[exchange.n_fds++] = fd;
	exchange.call.returns_fd = shape->returns_fd;
	add_fd(&exchange, remote->data, shape);
	memory = add_memory(&exchange, remote->data, shape);
	result = exchange_on(remote, &exchange);
	if (result >= 0 && shape->returns_fd)
		result = exchange.got_fd;
	if (exchange.result.flags & WIRE_CHANGED &&
		soft_copy_out(argument, remote->data, exchange.got, "an argument")) {
		if (exchange.got_fd >= 0)
			close(exchange.got_fd);
		result = -EFAULT;
	}
	pthread_mutex_unlock(&remote->lock);
	if (memory >= 0)
		close(memory);
	/* Linux's is not closed by exec. */
	if (result >= 0 && shape->returns_fd)
		fcntl((int)result, F_SETFD, 0);
	return (int)result;
}

/* --------------------------------------------------------- read and write */

static ssize_t nothing_to_read(int fd, int error)
{
	return SOFT_REFUSE(vduse_message_none, error, "of this descriptor", (unsigned)fd);
}

static ssize_t wait_for_ever(int fd)
{
	if (fcntl(fd, F_GETFL) & O_NONBLOCK)
		return nothing_to_read(fd, EAGAIN);
	poll(NULL, 0, -1);
	return nothing_to_read(fd, errno);
}

/* A message stays where it is unless all of it found its place. */
static ssize_t take_message(struct remote *remote, int fd, void *buffer, size_t size)
{
	ssize_t n;
	char none;

	pthread_mutex_lock(&remote->lock);
	n = recv(fd, buffer, size, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 && recv(fd, &none, sizeof(none), MSG_TRUNC | MSG_DONTWAIT) != n)
		n = -1;
	pthread_mutex_unlock(&remote->lock);
	return n;
}

/* The other process has let go of this file, which carries messages itself. */
static ssize_t read_descriptor(struct remote *remote, int fd, void *buffer, size_t size)
{
	ssize_t n;
	char none;

	for (;;) {
		n = take_message(remote, fd, buffer, size);
		if (n > 0)
			return n;
		/* A socket is at its end where a device broke. */
		if (!n)
			return wait_for_ever(fd);
		if (errno == EFAULT)
			return SOFT_REFUSE(pointer, EFAULT, "a request", (uintptr_t)buffer, size);
		if (errno != EAGAIN)
			return nothing_to_read(fd, errno);
		/* Waits, unless the descriptor is one that does not. */
		if (recv(fd, &none, sizeof(none), MSG_PEEK) < 0)
			return nothing_to_read(fd, errno);
	}
}

static ssize_t access_at(struct dmamap_system *system, enum wire_kind kind, int fd, void *buffer,
	size_t size, uint64_t offset)
{
	struct remote *remote = (struct remote *)system;
	struct exchange exchange = {
		.call = {.kind = kind, .size = size, .offset = offset}, .fds = {fd}, .n_fds = 1};
	int64_t result;

	pthread_mutex_lock(&remote->lock);
	if (kind == WIRE_WRITE)
		exchange.sent =
			copy_there(remote->data, buffer, 0, size < WIRE_DATA ? size : WIRE_DATA);
	result = exchange_on(remote, &exchange);
	if (kind == WIRE_READ && result > 0 &&
		soft_copy_out(buffer, remote->data, exchange.got, "a file's content"))
		result = -EFAULT;
	pthread_mutex_unlock(&remote->lock);
	if (result >= 0 && exchange.result.flags & WIRE_BY_DESCRIPTOR)
		return read_descriptor(remote, fd, buffer, size);
	if (result >= 0 && exchange.result.flags & WIRE_NOTHING_EVER)
		return wait_for_ever(fd);
	return (ssize_t)result;
}

static ssize_t remote_read(struct dmamap_system *system, int fd, void *buffer, size_t size)
{
	return access_at(system, WIRE_READ, fd, buffer, size, WIRE_NO_OFFSET);
}

static ssize_t remote_write(struct dmamap_system *system, int fd, const void *buffer, size_t size)
{
	return access_at(system, WIRE_WRITE, fd, (void *)(uintptr_t)buffer, size, WIRE_NO_OFFSET);
}

static ssize_t remote_pread(
	struct dmamap_system *system, int fd, void *buffer, size_t size, uint64_t offset)
{
	return access_at(system, WIRE_READ, fd, buffer, size, offset);
}

static ssize_t remote_pwrite(
	struct dmamap_system *system, int fd, const void *buffer, size_t size, uint64_t offset)
{
	return access_at(system, WIRE_WRITE, fd, (void *)(uintptr_t)buffer, size, offset);
}

/* ------------------------------------------------------------------- rest */

/* What is mapped of these files is mapped by their descriptors, which are real files. */
static int remote_mmap(struct dmamap_system *system, void *address, size_t length, int prot,
	int flags, int fd, uint64_t offset, void **out)
{
	void *va = mmap(address, length, prot, flags, fd, (off_t)offset);

	(void)system;
	if (va == MAP_FAILED)
		return -errno;
	*out = va;
	return 0;
}

static int remote_munmap(struct dmamap_system *system, void *address, size_t length)
{
	(void)system;
	return munmap(address, length) ? -errno : 0;
}

static ssize_t remote_readlink(
	struct dmamap_system *system, const char *path, char *buffer, size_t size)
{
	(void)system;
	(void)buffer;
	return SOFT_REFUSE(no_file, ENOENT, path, size);
}

static ssize_t remote_list(
	struct dmamap_system *system, const char *path, unsigned index, char *name, size_t size)
{
	struct remote *remote = (struct remote *)system;
	struct exchange exchange = {.call = {.kind = WIRE_LIST, .number = index, .size = size}};
	int64_t result;

	pthread_mutex_lock(&remote->lock);
	result = exchange_path(remote, &exchange, path);
	if (result >= 0)
		memcpy(name, remote->data, exchange.got < size ? exchange.got : size);
	pthread_mutex_unlock(&remote->lock);
	return (ssize_t)result;
}

static int remote_counters(struct dmamap_system *system, struct dmamap_counters *counters)
{
	(void)system;
	(void)counters;
	return -EOPNOTSUPP;
}

/* Most reasons are the other process's, which hears of each refusal; these are our own. */
static int remote_reason(struct dmamap_system *system, struct dmamap_reason *reason)
{
	(void)system;
	if (!soft_why()->kind)
		return -ENOENT;
	*reason = *soft_why();
	return 0;
}

static void remote_destroy(struct dmamap_system *system)
{
	struct remote *remote = (struct remote *)system;

	hang_up(remote);
	pthread_mutex_destroy(&remote->lock);
	free(remote->data);
	free(remote);
}

static const struct dmamap_system_ops remote_ops = {
	.name = "soft",
	.note = "each call goes to another process",
	.open = remote_open,
	.close = remote_close,
	.ioctl = remote_ioctl,
	.read = remote_read,
	.write = remote_write,
	.pread = remote_pread,
	.pwrite = remote_pwrite,
	.mmap = remote_mmap,
	.munmap = remote_munmap,
	.readlink = remote_readlink,
	.list = remote_list,
	.counters = remote_counters,
	.reason = remote_reason,
	.destroy = remote_destroy,
};

int dmamap_system_remote(const char *path, struct dmamap_system **system)
{
	struct remote *remote;
	size_t length = strlen(path);

	if (!length || length >= sizeof(remote->address.sun_path))
		return -EINVAL;
	remote = calloc(1, sizeof(*remote));
	if (remote)
		remote->data = malloc(WIRE_DATA);
	if (!remote || !remote->data) {
		free(remote);
		return -ENOMEM;
	}
	remote->base.ops = &remote_ops;
	remote->address.sun_family = AF_UNIX;
	memcpy(remote->address.sun_path, path, length + 1);
	remote->link = -1;
	pthread_mutex_init(&remote->lock, NULL);
	*system = &remote->base;
	return 0;
}
