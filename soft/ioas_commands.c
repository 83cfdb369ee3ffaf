/* SPDX-License-Identifier: MIT */
/*
 * The native commands of an IOAS: their arguments, and which are refused before
 * the IOAS itself is asked (drivers/iommu/iommufd/ioas.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/iommufd.h"
#include "soft/soft.h"

static const uint32_t map_flags =
	IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_WRITEABLE | IOMMU_IOAS_MAP_READABLE;

int soft_ioas_alloc(struct soft_command *command)
{
	struct iommu_ioas_alloc *user = command->data;
	struct soft_ioas *ioas;
	int error;

	if (user->flags)
		return SOFT_REFUSE(flags, EOPNOTSUPP, "IOMMU_IOAS_ALLOC", user->flags, 0);
	error = soft_ioas_create(command->iommufd, &ioas);
	if (error)
		return error;
	user->out_ioas_id = ioas->object.id;
	error = soft_command_respond(command, sizeof(*user), "iommu_ioas_alloc");
	if (error) {
		soft_object_abandon(command->iommufd, &ioas->object);
		soft_ioas_destroy(ioas);
	} else {
		soft_object_complete(command->iommufd, &ioas->object);
	}
	return error;
}

int soft_ioas_iova_ranges(struct soft_command *command)
{
	struct iommu_ioas_iova_ranges *user = command->data;
	uint64_t to = user->allowed_iovas;
	uint32_t room = user->num_iovas;
	struct dmamap_range *ranges;
	struct soft_ioas *ioas;
	size_t n = 0;
	int error;

	if (user->__reserved)
		return SOFT_REFUSE(
			reserved_field, EOPNOTSUPP, "iommu_ioas_iova_ranges", user->__reserved);
	error = soft_ioas_get(command->iommufd, user->ioas_id, &ioas);
	if (error)
		return error;
	pthread_mutex_lock(&ioas->lock);
	user->out_iova_alignment = soft_ioas_alignment(ioas);
	error = soft_space_ranges(&ioas->space, &ranges, &n);
	pthread_mutex_unlock(&ioas->lock);
	soft_object_put(command->iommufd, &ioas->object);
	if (error)
		return error;
	for (size_t i = 0; i < n && i < room && !error; i++) {
		struct iommu_iova_range one = {ranges[i].first, ranges[i].last};

		error = soft_copy_out((void *)(uintptr_t)(to + i * sizeof(one)), &one, sizeof(one),
			"allowed_iovas");
	}
	free(ranges);
	if (error)
		return error;
	user->num_iovas = (uint32_t)n;
	error = soft_command_respond(command, sizeof(*user), "iommu_ioas_iova_ranges");
	if (!error && n > room)
		error = SOFT_REFUSE(ranges_room, EMSGSIZE, NULL, n, room);
	return error;
}

/* The first of the sorted ranges that ends at or after @at. */
static size_t lower(const struct dmamap_range *ranges, size_t n, uint64_t at)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].last < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* One after the other, as the kernel reads and checks them; they come out sorted. */
static int load_ranges(uint64_t from, uint32_t n, struct dmamap_range **out)
{
	struct dmamap_range *ranges = NULL, *grown;
	size_t room = 0, at;
	int error = 0;

	for (uint32_t i = 0; i < n && !error; i++) {
		struct iommu_iova_range one;

		if (i == room) {
			room = room ? 2 * room : 16;
			grown = realloc(ranges, room * sizeof(*ranges));
			if (!grown) {
				error = SOFT_REFUSE(no_memory, ENOMEM, "ranges", n);
				break;
			}
			ranges = grown;
		}
		error = soft_copy_in(&one, (void *)(uintptr_t)(from + i * sizeof(one)), sizeof(one),
			"allowed_iovas");
		if (error)
			break;
		if (one.start >= one.last) {
			error = SOFT_REFUSE(range_order, EINVAL, NULL, one.start, one.last);
			break;
		}
		at = lower(ranges, i, one.start);
		if (at < i && ranges[at].first <= one.last) {
			error = SOFT_REFUSE(range_overlap, EINVAL, NULL, one.start, one.last,
				ranges[at].first, ranges[at].last);
			break;
		}
		memmove(&ranges[at + 1], &ranges[at], (i - at) * sizeof(*ranges));
		ranges[at] = (struct dmamap_range){one.start, one.last};
	}
	if (error) {
		free(ranges);
		ranges = NULL;
	}
	*out = ranges;
	return error;
}

int soft_ioas_allow_iovas(struct soft_command *command)
{
	const struct iommu_ioas_allow_iovas *user = command->data;
	struct dmamap_range *ranges;
	struct soft_ioas *ioas;
	int error;

	if (user->__reserved)
		return SOFT_REFUSE(
			reserved_field, EOPNOTSUPP, "iommu_ioas_allow_iovas", user->__reserved);
	error = soft_ioas_get(command->iommufd, user->ioas_id, &ioas);
	if (error)
		return error;
	error = load_ranges(user->allowed_iovas, user->num_iovas, &ranges);
	if (!error)
		error = soft_ioas_allow(ioas, ranges, user->num_iovas);
	soft_object_put(command->iommufd, &ioas->object);
	return error;
}

static unsigned prot_of(uint32_t flags)
{
	return (flags & IOMMU_IOAS_MAP_READABLE ? DMAMAP_READ : 0) |
	       (flags & IOMMU_IOAS_MAP_WRITEABLE ? DMAMAP_WRITE : 0);
}

/* What MAP, MAP_FILE and COPY have in common. */
static int check_map(
	uint32_t flags, uint32_t reserved, uint64_t iova, uint64_t length, const char *name)
{
	if (flags & ~map_flags)
		return SOFT_REFUSE(flags, EOPNOTSUPP, name, flags, map_flags);
	if (reserved)
		return SOFT_REFUSE(reserved_field, EOPNOTSUPP, name, reserved);
	if (iova == UINT64_MAX)
		return SOFT_REFUSE(too_large, EOVERFLOW, "iova", iova);
	if (length == UINT64_MAX)
		return SOFT_REFUSE(too_large, EOVERFLOW, "length", length);
	if (!prot_of(flags))
		return DMAMAP_REFUSE(soft_why(), &dmamap_reason_no_access, EINVAL, NULL, 0);
	return 0;
}

int soft_ioas_map_user(struct soft_ioas *ioas, uint64_t va, uint64_t length, uint64_t *iova,
	unsigned prot, bool allocate)
{
	struct soft_system *system = ioas->space.system;
	struct dmamap_memory *memory;
	uint64_t end;
	int error;

	if (__builtin_add_overflow(va, length, &end))
		return SOFT_REFUSE(wrap, EOVERFLOW, "user_va", va, length);
	if (!length)
		return SOFT_REFUSE(length_zero, EINVAL, "a mapping", 0);
	if (length > UINT64_MAX - soft_page_size(system))
		return SOFT_REFUSE(too_large, EINVAL, "length", length);
	error = soft_memory_process(system, va, length, prot, &memory);
	if (error)
		return error;
	error = soft_ioas_map_memory(ioas, memory, length, iova, prot, allocate);
	dmamap_memory_put(memory);
	return error;
}

int soft_ioas_map(struct soft_command *command)
{
	struct iommu_ioas_map *user = command->data;
	struct soft_ioas *ioas;
	uint64_t iova = user->iova;
	int error = check_map(
		user->flags, user->__reserved, user->iova, user->length, "IOMMU_IOAS_MAP");

	if (!error)
		error = soft_ioas_get(command->iommufd, user->ioas_id, &ioas);
	if (error)
		return error;
	error = soft_ioas_map_user(ioas, user->user_va, user->length, &iova, prot_of(user->flags),
		!(user->flags & IOMMU_IOAS_MAP_FIXED_IOVA));
	soft_object_put(command->iommufd, &ioas->object);
	if (error)
		return error;
	user->iova = iova;
	return soft_command_respond(command, sizeof(*user), "iommu_ioas_map");
}

int soft_ioas_map_file(struct soft_command *command)
{
	struct iommu_ioas_map_file *user = command->data;
	struct dmamap_memory *memory = NULL;
	struct soft_ioas *ioas;
	uint64_t iova = user->iova, last;
	unsigned prot = prot_of(user->flags);
	int error = check_map(user->flags, 0, user->iova, user->length, "IOMMU_IOAS_MAP_FILE");

	if (!error)
		error = soft_ioas_get(command->iommufd, user->ioas_id, &ioas);
	if (error)
		return error;
	if (!user->length)
		error = SOFT_REFUSE(length_zero, EINVAL, "a mapping", 0);
	else if (__builtin_add_overflow(user->start, user->length - 1, &last))
		error = SOFT_REFUSE(wrap, EOVERFLOW, "start", user->start, user->length);
	else
		error = soft_memory_dmabuf(
			command->iommufd, user->fd, user->start, user->length, prot, &memory);
	if (!error && !memory)
		error = soft_memory_file(command->iommufd->file.system, user->fd, user->start,
			user->length, prot, &memory);
	if (error)
		goto out;
	error = soft_ioas_map_memory(ioas, memory, user->length, &iova, prot,
		!(user->flags & IOMMU_IOAS_MAP_FIXED_IOVA));
	dmamap_memory_put(memory);
	if (error)
		goto out;
	user->iova = iova;
	error = soft_command_respond(command, sizeof(*user), "iommu_ioas_map_file");
out:
	soft_object_put(command->iommufd, &ioas->object);
	return error;
}

int soft_ioas_copy(struct soft_command *command)
{
	struct iommu_ioas_copy *user = command->data;
	struct soft_ioas *from, *to;
	uint64_t iova = user->dst_iova, last = 0;
	int error = check_map(user->flags, 0, user->dst_iova, user->length, "IOMMU_IOAS_COPY");

	if (user->src_iova == UINT64_MAX && error != -EOPNOTSUPP)
		error = SOFT_REFUSE(too_large, EOVERFLOW, "src_iova", user->src_iova);
	if (!error)
		error = soft_ioas_get(command->iommufd, user->src_ioas_id, &from);
	if (error)
		return error;
	if (!user->length)
		error = SOFT_REFUSE(length_zero, EINVAL, "a copy", 0);
	else if (__builtin_add_overflow(user->src_iova, user->length - 1, &last))
		error = SOFT_REFUSE(wrap, EOVERFLOW, "src_iova", user->src_iova, user->length);
	else
		error = soft_ioas_check_source(from, user->src_iova, last);
	if (!error)
		error = soft_ioas_get(command->iommufd, user->dst_ioas_id, &to);
	if (error)
		goto put_from;
	error = soft_ioas_copy_range(from, user->src_iova, last, to, &iova, prot_of(user->flags),
		!(user->flags & IOMMU_IOAS_MAP_FIXED_IOVA));
	soft_object_put(command->iommufd, &to->object);
	if (error)
		goto put_from;
	user->dst_iova = iova;
	error = soft_command_respond(command, sizeof(*user), "iommu_ioas_copy");
put_from:
	soft_object_put(command->iommufd, &from->object);
	return error;
}

int soft_ioas_unmap(struct soft_command *command)
{
	struct iommu_ioas_unmap *user = command->data;
	bool all = !user->iova && user->length == UINT64_MAX;
	uint64_t last = UINT64_MAX, unmapped = 0;
	struct soft_ioas *ioas;
	int error = soft_ioas_get(command->iommufd, user->ioas_id, &ioas);

	if (error)
		return error;
	if (!all && (user->iova == UINT64_MAX || user->length == UINT64_MAX))
		error = SOFT_REFUSE(too_large, EOVERFLOW, "iova or length",
			user->iova == UINT64_MAX ? user->iova : user->length);
	else if (!all && !user->length)
		error = SOFT_REFUSE(length_zero, EINVAL, "IOMMU_IOAS_UNMAP", 0);
	else if (!all && __builtin_add_overflow(user->iova, user->length - 1, &last))
		error = SOFT_REFUSE(wrap, EOVERFLOW, "iova", user->iova, user->length);
	else
		error = soft_ioas_unmap_range(ioas, user->iova, last, &unmapped);
	if (!error && !all && !unmapped)
		error = SOFT_REFUSE(unmap_nothing, ENOENT, NULL, user->iova, last);
	soft_object_put(command->iommufd, &ioas->object);
	if (error)
		return error;
	user->length = unmapped;
	return soft_command_respond(command, sizeof(*user), "iommu_ioas_unmap");
}
