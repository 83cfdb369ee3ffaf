/* SPDX-License-Identifier: MIT */
/* A message on its way, either way: a head, data behind it, and descriptors beside it. */
#include "soft/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(WIRE_FDS * sizeof(int))];
};

int wire_send(int link, const struct wire_message *wire, int flags)
{
	struct iovec parts[2] = {{wire->head, wire->head_size}, {wire->data, wire->data_size}};
	union control control = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	size_t bytes = wire->n_fds * sizeof(int);
	ssize_t n;

	if (bytes) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(bytes);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.head), wire->fds, bytes);
	}
	do
		n = sendmsg(link, &message, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int wire_receive(int link, struct wire_message *wire, int flags)
{
	struct iovec parts[2] = {{wire->head, wire->head_size}, {wire->data, wire->data_size}};
	union control control;
	struct msghdr message = {.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *head;
	ssize_t n;

	wire->n_fds = 0;
	do
		n = recvmsg(link, &message, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
		wire->n_fds = (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(wire->fds, CMSG_DATA(head), wire->n_fds * sizeof(int));
	}
	if ((size_t)n < wire->head_size || message.msg_flags & MSG_TRUNC)
		return -EPROTO;
	wire->data_size = (size_t)n - wire->head_size;
	return 0;
}
