/* SPDX-License-Identifier: MIT */
/*
 * A process of a case on Linux: a child that makes system calls for the case.
 * Each request carries the call's number and arguments, and the descriptor
 * that it is about, since the child's own table ends with the fork. Memory for
 * arguments is shared, so that addresses mean the same on both ends. What the
 * child opens is handed back the same way.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/vfio.h"
#include "run.h"

struct request {
	long number;
	uint64_t arguments[6];
	int fd_at;  /* which argument is the descriptor that comes along; -1: none */
	bool opens; /* the result is a descriptor */
};

struct worker {
	struct dmamap_system base;
	int socket;
};

/* One message with at most one descriptor. */
static int send_with(int socket, const void *data, size_t size, int fd)
{
	struct iovec part = {(void *)(uintptr_t)data, size};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -EPIPE;
}

static int receive_with(int socket, void *data, size_t size, int *fd)
{
	struct iovec part = {data, size};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header;

	*fd = -1;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != (ssize_t)size)
		return -EPIPE;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return 0;
}

static void serve(int socket)
{
	struct request request;
	int fd;

	while (!receive_with(socket, &request, sizeof(request), &fd)) {
		uint64_t *a = request.arguments;
		long result;

		if (request.fd_at >= 0 && fd >= 0)
			a[request.fd_at] = (uint64_t)fd;
		result = syscall(request.number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (result == -1)
			result = -errno;
		if (fd >= 0)
			close(fd);
		fd = request.opens && result >= 0 ? (int)result : -1;
		if (send_with(socket, &result, sizeof(result), fd))
			break;
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}

static long ask(struct dmamap_system *system, struct request *request, int fd)
{
	struct worker *worker = (struct worker *)system;
	long result;
	int got;

	if (request->fd_at >= 0)
		request->arguments[request->fd_at] = (uint64_t)(int64_t)fd;
	/* A descriptor that is none cannot be sent; the child's call says so itself. */
	if (send_with(worker->socket, request, sizeof(*request),
		    request->fd_at >= 0 && fcntl(fd, F_GETFD) >= 0 ? fd : -1) ||
		receive_with(worker->socket, &result, sizeof(result), &got))
		return -ESRCH;
	return got >= 0 ? got : result;
}

long worker_call(struct dmamap_system *system, long number, const uint64_t arguments[6])
{
	struct request request = {.number = number, .fd_at = -1};

	memcpy(request.arguments, arguments, sizeof(request.arguments));
	return ask(system, &request, -1);
}

static int worker_open(struct dmamap_system *system, const char *path, int flags)
{
	struct request request = {.number = SYS_openat,
		.arguments = {(uint64_t)AT_FDCWD, (uintptr_t)path, (uint64_t)(flags | O_CLOEXEC)},
		.fd_at = -1,
		.opens = true};

	return (int)ask(system, &request, -1);
}

/* The only copy that lasts is the case's own. */
static int worker_close(struct dmamap_system *system, int fd)
{
	(void)system;
	return close(fd) ? -errno : 0;
}

static int worker_ioctl(struct dmamap_system *system, int fd, unsigned long number, void *argument)
{
	struct request request = {.number = SYS_ioctl,
		.arguments = {0, number, (uintptr_t)argument},
		.fd_at = 0,
		.opens = number == VFIO_GROUP_GET_DEVICE_FD};

	return (int)ask(system, &request, fd);
}

static ssize_t transfer(struct dmamap_system *system, long number, int fd, const void *buffer,
	size_t size, uint64_t at)
{
	struct request request = {
		.number = number, .arguments = {0, (uintptr_t)buffer, size, at}, .fd_at = 0};

	return ask(system, &request, fd);
}

static ssize_t worker_read(struct dmamap_system *system, int fd, void *buffer, size_t size)
{
	return transfer(system, SYS_read, fd, buffer, size, 0);
}

static ssize_t worker_pread(
	struct dmamap_system *system, int fd, void *buffer, size_t size, uint64_t offset)
{
	return transfer(system, SYS_pread64, fd, buffer, size, offset);
}

static ssize_t worker_pwrite(
	struct dmamap_system *system, int fd, const void *buffer, size_t size, uint64_t offset)
{
	return transfer(system, SYS_pwrite64, fd, buffer, size, offset);
}

static int worker_mmap(struct dmamap_system *system, void *address, size_t length, int prot,
	int flags, int fd, uint64_t offset, void **out)
{
	struct request request = {.number = SYS_mmap,
		.arguments = {(uintptr_t)address, length, (uint64_t)prot, (uint64_t)flags, 0,
			offset},
		.fd_at = 4};
	long result = ask(system, &request, fd);

	if (result < 0 && result > -4096)
		return (int)result;
	*out = (void *)result;
	return 0;
}

static int worker_munmap(struct dmamap_system *system, void *address, size_t length)
{
	const uint64_t arguments[6] = {(uintptr_t)address, length};

	return (int)worker_call(system, SYS_munmap, arguments);
}

/* What a case asks of a process; sysfs is the same for all, and is read by the first. */
static const struct dmamap_system_ops worker_ops = {
	.name = "linux",
	.open = worker_open,
	.close = worker_close,
	.ioctl = worker_ioctl,
	.read = worker_read,
	.pread = worker_pread,
	.pwrite = worker_pwrite,
	.mmap = worker_mmap,
	.munmap = worker_munmap,
};

int worker_start(struct process *process, struct dmamap_system **system)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int sockets[2], error;

	if (!worker)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
		error = -errno;
		free(worker);
		return error;
	}
	process->pid = fork();
	if (process->pid < 0) {
		error = -errno;
		close(sockets[0]);
		close(sockets[1]);
		free(worker);
		return error;
	}
	if (!process->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sockets[0]);
		serve(sockets[1]);
	}
	close(sockets[1]);
	worker->base.ops = &worker_ops;
	worker->socket = sockets[0];
	*system = &worker->base;
	return 0;
}

void worker_end(struct process *process)
{
	struct worker *worker = (struct worker *)process->system;

	close(worker->socket);
	free(worker);
	waitpid(process->pid, NULL, 0);
}
