/* SPDX-License-Identifier: MIT */
/* vDPA's generic netlink family: two commands, each answered with an errno. */
#include "attach.h"

#include <dirent.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* From linux/vdpa.h of Linux 7.3: older ones name the same numbers. */
#define VDPA_FAMILY	      "vdpa"
#define VDPA_VERSION	      1
#define VDPA_DEV_NEW	      3
#define VDPA_DEV_DEL	      4
#define VDPA_MGMTDEV_DEV_NAME 2
#define VDPA_DEV_NAME	      4
#define MANAGER		      "vduse"
#define BUFFER		      8192

struct channel {
	struct mnl_socket *socket;
	unsigned port;
	uint32_t sequence;
	char buffer[BUFFER];
};

static int open_channel(struct channel *channel)
{
	channel->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!channel->socket)
		return -errno;
	if (mnl_socket_bind(channel->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		int error = -errno;

		mnl_socket_close(channel->socket);
		return error;
	}
	channel->port = mnl_socket_get_portid(channel->socket);
	channel->sequence = (uint32_t)time(NULL);
	return 0;
}

static struct nlmsghdr *message(
	struct channel *channel, uint16_t family, uint8_t command, uint8_t version)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(channel->buffer);
	struct genlmsghdr *generic;

	header->nlmsg_type = family;
	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	header->nlmsg_seq = ++channel->sequence;
	generic = mnl_nlmsg_put_extra_header(header, sizeof(*generic));
	generic->cmd = command;
	generic->version = version;
	return header;
}

static int family_attribute(const struct nlattr *attribute, void *family)
{
	if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID &&
		mnl_attr_validate(attribute, MNL_TYPE_U16) >= 0)
		*(uint16_t *)family = mnl_attr_get_u16(attribute);
	return MNL_CB_OK;
}

static int read_family(const struct nlmsghdr *header, void *family)
{
	return mnl_attr_parse(header, sizeof(struct genlmsghdr), family_attribute, family);
}

/* Sends what is in the buffer, and reads until the kernel has said how it went. */
static int talk(struct channel *channel, struct nlmsghdr *header, mnl_cb_t read, void *data)
{
	int more = MNL_CB_OK;

	if (mnl_socket_sendto(channel->socket, header, header->nlmsg_len) < 0)
		return -errno;
	while (more > MNL_CB_STOP) {
		ssize_t n = mnl_socket_recvfrom(channel->socket, channel->buffer, BUFFER);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		more = mnl_cb_run(
			channel->buffer, (size_t)n, channel->sequence, channel->port, read, data);
	}
	return more < 0 ? -errno : 0;
}

static int command(uint8_t what, const char *name, bool manager)
{
	struct channel channel;
	struct nlmsghdr *header;
	uint16_t family = 0;
	int error = open_channel(&channel);

	if (error)
		return error;
	header = message(&channel, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	mnl_attr_put_strz(header, CTRL_ATTR_FAMILY_NAME, VDPA_FAMILY);
	error = talk(&channel, header, read_family, &family);
	if (error == -ENOENT || (!error && !family))
		error = -EOPNOTSUPP;
	if (error)
		goto close;
	header = message(&channel, family, what, VDPA_VERSION);
	mnl_attr_put_strz(header, VDPA_DEV_NAME, name);
	if (manager)
		mnl_attr_put_strz(header, VDPA_MGMTDEV_DEV_NAME, MANAGER);
	error = talk(&channel, header, NULL, NULL);
close:
	mnl_socket_close(channel.socket);
	return error;
}

int vdpa_attach(const char *name)
{
	return command(VDPA_DEV_NEW, name, true);
}

int vdpa_detach(const char *name)
{
	return command(VDPA_DEV_DEL, name, false);
}

/* The only entry of @path whose name starts with @prefix; -ENOENT. */
static int find_entry(const char *path, const char *prefix, char *name, size_t size)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int error = -ENOENT;

	if (!folder)
		return -ENOENT;
	while (error && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		if (strlen(entry->d_name) < size) {
			strcpy(name, entry->d_name);
			error = 0;
		}
	}
	closedir(folder);
	return error;
}

int vdpa_disk(const char *name, char *disk, size_t size)
{
	char path[512], virtio[64];
	int error;

	snprintf(path, sizeof(path), "/sys/bus/vdpa/devices/%s", name);
	error = find_entry(path, "virtio", virtio, sizeof(virtio));
	if (error)
		return error;
	snprintf(path, sizeof(path), "/sys/bus/vdpa/devices/%s/%s/block", name, virtio);
	return find_entry(path, "", disk, size);
}
