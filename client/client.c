/* SPDX-License-Identifier: MIT */
/*
 * A client's life, and its mappings. Opening finds the device, opens the
 * mode's container, lets the interface attach the one to the other, and then
 * asks which IOVAs are allowed. Mapping is one ioctl; only when it fails is
 * there time to find out why.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/internal.h"

/* Reserve all that the system does not allow. */
static int reserve_disallowed(struct dmamap_client *client, struct dmamap_reason *why)
{
	struct dmamap_range *ranges = NULL;
	ssize_t room = dmamap_client_ranges(client, NULL, 0), n = room;
	uint64_t next = 0;
	int error = 0;

	if (n > 0) {
		ranges = calloc((size_t)room, sizeof(*ranges));
		if (!ranges)
			return -ENOMEM;
		n = dmamap_client_ranges(client, ranges, (size_t)room);
	}
	if (n < 0 || n > room) {
		error = client_failed(client, client_rules_step, n < 0 ? (int)n : -EAGAIN,
			"the question for allowed IOVA ranges", why);
		goto free_ranges;
	}
	for (ssize_t i = 0; i < n && !error; i++) {
		if (ranges[i].first > next)
			error = dmamap_space_reserve(client->iovas, next, ranges[i].first - 1,
				client, "not allowed by the system", why);
		if (ranges[i].last == UINT64_MAX)
			goto free_ranges;
		next = ranges[i].last + 1;
	}
	if (!error)
		error = dmamap_space_reserve(
			client->iovas, next, UINT64_MAX, client, "not allowed by the system", why);
free_ranges:
	free(ranges);
	return error;
}

int dmamap_client_open(struct dmamap_system *system, const struct dmamap_mode *mode,
	const char *bdf, struct dmamap_client **out, struct dmamap_reason *why)
{
	struct dmamap_client *client = calloc(1, sizeof(*client));
	const struct client_rule *rules =
		strcmp(mode->container, "/dev/iommu") ? client_rules_container : client_rules_iommu;
	int error;

	if (!client)
		return -ENOMEM;
	client->system = system;
	client->mode = mode;
	client->interface = mode->type1 ? &client_type1 : &client_iommufd;
	client->container = client->group = client->device = -1;
	error = client_find_address(bdf, client->bdf, why);
	if (!error)
		error = client_find_device(system, client->bdf, why);
	if (error)
		goto close;
	client->container = system->ops->open(system, mode->container, O_RDWR);
	if (client->container < 0) {
		error = client_failed(client, rules, client->container, mode->container, why);
		goto close;
	}
	error = client->interface->attach(client, why);
	if (error)
		goto close;
	error = dmamap_space_create(NULL, &client->iovas);
	if (!error)
		error = reserve_disallowed(client, why);
	if (error)
		goto close;
	*out = client;
	return 0;
close:
	dmamap_client_close(client);
	return error;
}

void dmamap_client_close(struct dmamap_client *client)
{
	/* The container last: closing it unmaps what is left, and no device uses it then. */
	if (!client)
		return;
	dmamap_space_destroy(client->iovas);
	if (client->device >= 0)
		client->system->ops->close(client->system, client->device);
	if (client->group >= 0)
		client->system->ops->close(client->system, client->group);
	if (client->container >= 0)
		client->system->ops->close(client->system, client->container);
	free(client);
}

const struct dmamap_mode *dmamap_client_mode(const struct dmamap_client *client)
{
	return client->mode;
}

struct dmamap_system *dmamap_client_system(const struct dmamap_client *client)
{
	return client->system;
}

int dmamap_client_device_fd(const struct dmamap_client *client)
{
	return client->device;
}

/*
 * Whether an allowed range holds first to last; if not, the range nearest to it: the
 * one that has @first, or else the next one up, or else the last.
 */
static bool allowed(
	struct dmamap_client *client, uint64_t first, uint64_t last, struct dmamap_range *nearest)
{
	struct dmamap_range ranges[64];
	size_t n = dmamap_space_usable(client->iovas, ranges, 64);

	for (size_t i = 0; i < n && i < 64; i++) {
		*nearest = ranges[i];
		if (first <= ranges[i].last)
			break;
	}
	return n == 0 || (first <= last && nearest->first <= first && last <= nearest->last);
}

static int refused(struct dmamap_client *client, const struct client_rule *rules, int error,
	uint64_t iova, uint64_t length, uint64_t source, struct dmamap_reason *why)
{
	struct rlimit memlock = {0};
	struct dmamap_range nearest = {0};
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!why || client_system_knows(client->system, error, why))
		return error;
	getrlimit(RLIMIT_MEMLOCK, &memlock);
	const uint64_t numbers[] = {
		iova, iova + length - 1, source, length, memlock.rlim_cur, page};

	if (error == -EINVAL && (iova | length | source) % page)
		return dmamap_refuse(why, &client_reason_unaligned, EINVAL, NULL, numbers, 6);
	if (error == -EINVAL && length && !allowed(client, iova, iova + length - 1, &nearest))
		return DMAMAP_REFUSE(why, &client_reason_outside, EINVAL, NULL, iova,
			iova + length - 1, source, length, memlock.rlim_cur, page, nearest.first,
			nearest.last);
	return client_explain(client->system, rules, error, NULL, numbers, 6, why);
}

int dmamap_client_map(struct dmamap_client *client, void *va, uint64_t length, uint64_t iova,
	unsigned prot, struct dmamap_reason *why)
{
	int error;

	if (client->mode->maps_files)
		return DMAMAP_REFUSE(why, &client_reason_files, EOPNOTSUPP, client->mode->name, 0);
	error = client->interface->map(client, va, length, iova, prot);
	if (error < 0)
		return refused(client, client->interface->map_rules, error, iova, length,
			(uintptr_t)va, why);
	return 0;
}

int dmamap_client_map_file(struct dmamap_client *client, int fd, uint64_t start, uint64_t length,
	uint64_t iova, unsigned prot, struct dmamap_reason *why)
{
	int error;

	if (!client->mode->maps_files)
		return DMAMAP_REFUSE(
			why, &client_reason_no_files, EOPNOTSUPP, client->mode->name, 0);
	error = client->interface->map_file(client, fd, start, length, iova, prot);
	if (error < 0)
		return refused(
			client, client->interface->map_rules, error, iova, length, start, why);
	return 0;
}

int dmamap_client_unmap(struct dmamap_client *client, uint64_t iova, uint64_t length,
	uint64_t *unmapped, struct dmamap_reason *why)
{
	int error = client->interface->unmap(client, iova, length, unmapped);

	if (error < 0)
		return refused(client, client_rules_unmap, error, iova, length, 0, why);
	return 0;
}

ssize_t dmamap_client_ranges(struct dmamap_client *client, struct dmamap_range *ranges, size_t n)
{
	return client->interface->ranges(client, ranges, n);
}
