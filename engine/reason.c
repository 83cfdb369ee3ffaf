/* SPDX-License-Identifier: MIT */
/*
 * Reasons: an errno says what kind of refusal, a reason says which rule and
 * with which numbers. A kind is a sentence with places for the numbers; this
 * file has the engine's kinds and the one formatter that serves every layer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dmamap/bounce.h"
#include "dmamap/engine.h"

#define KIND(id, sentence)                                                                         \
	const struct dmamap_reason_kind dmamap_reason_##id = {.name = #id, .text = sentence}

KIND(backwards, "the range ends at {1x}, before its start {0x}");
KIND(misaligned, "{0x}-{1x} is not a multiple of {2s} at both ends, the smallest leaf");
KIND(no_access, "neither read nor write is asked for");
KIND(memory_range, "bytes {0x} to {1x} are asked of memory that is {2x} bytes long");
KIND(memory_read_only, "the memory allows access {0d} (1 read, 2 write), {1d} is asked for");
KIND(overlap, "iova {0x}-{1x} overlaps the area {2x}-{3x}");
KIND(area_limit, "{0d} areas are mapped, and the limit is {1d}");
KIND(reserved, "iova {0x}-{1x} overlaps reserved {2x}-{3x} ({t})");
KIND(aperture, "iova {0x}-{1x} ends past {2x}, the last that the page table translates");
KIND(cut, "the range {0x}-{1x} cuts the area {2x}-{3x}: unmap all of it, or none");
KIND(gap, "nothing is mapped at {2x}, within {0x}-{1x}");
KIND(leaf, "iova {0x} is inside a leaf of {1s}: an area of large leaves cannot be cut there");
KIND(no_iova, "no free range of {0s} aligned to {1s} is left");
KIND(in_use, "iova {0x}-{1x} is in use by {2x}-{3x} ({t})");
KIND(populate, "the memory at {0x}-{1x} cannot be used by a device: {t}");
KIND(host, "host memory {0x}-{1x} is beyond 2^56, where no processor has user memory");
KIND(not_mapped, "nothing is mapped at iova {0x}");
KIND(prot, "iova {0x} is mapped for access {1d} (1 read, 2 write), {2d} is asked for");
KIND(segments, "the range is in more than {0d} pieces");
KIND(format_invalid, "the page table's {t} cannot be {0d}");
KIND(within_access, "this thread is inside an access, which the call would wait for");
KIND(other_thread, "the access belongs to another thread: bind it first");
KIND(no_memory, "no memory for {t}");
KIND(bounce_config, "the bounce domain's {t} cannot be {0d}");
KIND(bounce_request,
	"a bounce request of {0d} bytes, access {1d} (1 read, 2 write, 3 both) and flags {2x} "
	"cannot be");
KIND(bounce_full,
	"{0d} bytes need {1d} bounce units of {2s}: {3d} of {4d} are in use, and no aligned "
	"run of {1d} is free");
KIND(bounce_too_large,
	"{0d} bytes are more than {1s}, the largest mapping that a bounce buffer of {2s} "
	"has room for (its place is aligned to its size)");
KIND(bounce_not_mapped, "no mapping of {1d} bytes begins at iova {0x}");
KIND(bounce_past_mapping, "{1d} bytes at iova {0x} are not within one mapping");
KIND(coherent_full,
	"{0d} bytes need {1d} pages of {2s}, and no aligned run of them is free in {3x}-{4x}");
KIND(coherent_too_large, "{0d} bytes are more than {1s}, the largest allocation that {2x}-{3x} has "
			 "room for");
KIND(coherent_no_range,
	"there is no coherent range: it would start at {0x}, page {1d} of {2s}, and "
	"IOVAs end at {3x}{t}");
KIND(coherent_not_there, "no coherent allocation of {1d} bytes is at iova {0x}");
KIND(iotlb_full, "the IOTLB has {0d} ranges, the most that it takes");
KIND(umem_no_map, "nothing was mapped for streaming yet: there is no bounce buffer to replace");
KIND(umem_shape, "{1s} of umem at {0x} do not fit: it takes {2s}, at a multiple of {3s}");
KIND(umem_there, "there is umem already, at {0x}");
KIND(umem_none, "there is no umem");

const char *dmamap_version(void)
{
	return DMAMAP_VERSION;
}

int dmamap_refuse(struct dmamap_reason *why, const struct dmamap_reason_kind *kind, int error,
	const char *label, const uint64_t *numbers, size_t n)
{
	if (why) {
		memset(why, 0, sizeof(*why));
		why->kind = kind;
		why->error = error;
		for (size_t i = 0; i < n && i < DMAMAP_REASON_NUMBERS; i++)
			why->number[i] = numbers[i];
		if (label)
			snprintf(why->label, sizeof(why->label), "%s", label);
	}
	return -error;
}

static int format_size(char *buffer, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned unit = 0;

	while (unit < 6 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	return snprintf(buffer, size, "%" PRIu64 " %s", bytes, units[unit]);
}

/* Writes what a place such as {2x} stands for; returns its length, -1 when it is no place. */
static int format_place(
	const struct dmamap_reason *reason, const char *place, char *buffer, size_t size)
{
	uint64_t number;

	if (place[1] == 't' && place[2] == '}')
		return snprintf(buffer, size, "%s", reason->label);
	if (place[1] < '0' || place[1] >= '0' + DMAMAP_REASON_NUMBERS || !place[2] ||
		place[3] != '}')
		return -1;
	number = reason->number[place[1] - '0'];
	switch (place[2]) {
	case 'x':
		return snprintf(buffer, size, "0x%" PRIx64, number);
	case 'd':
		return snprintf(buffer, size, "%" PRIu64, number);
	case 's':
		return format_size(buffer, size, number);
	default:
		return -1;
	}
}

size_t dmamap_reason_format(const struct dmamap_reason *reason, char *buffer, size_t size)
{
	size_t length = 0;

	if (!reason->kind) {
		char text[96];

		return (size_t)snprintf(
			buffer, size, "%s", strerror_r(reason->error, text, sizeof(text)));
	}
	for (const char *p = reason->kind->text; *p; p++) {
		char place[128];
		int n = *p == '{' ? format_place(reason, p, place, sizeof(place)) : -1;

		if (n < 0) {
			place[0] = *p;
			n = 1;
		} else {
			p = strchr(p, '}');
		}
		for (int i = 0; i < n; i++, length++)
			if (length + 1 < size)
				buffer[length] = place[i];
	}
	buffer[length < size ? length : size - 1] = '\0';
	return length;
}
