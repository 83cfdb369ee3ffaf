/* SPDX-License-Identifier: MIT */
/*
 * What every dmamap header shares: export marks, protections, IOVA ranges and
 * reasons. A reason says why a call was refused: the errno says what kind of
 * refusal it was, the reason has the numbers that decided it.
 */
#ifndef DMAMAP_COMMON_H
#define DMAMAP_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DMAMAP_VERSION "0.1.0"

#if defined(__GNUC__)
#define DMAMAP_API __attribute__((visibility("default")))
#else
#define DMAMAP_API
#endif

/**
 * dmamap_version() - The version of the library that is loaded, as
 * "MAJOR.MINOR.PATCH"; compare with DMAMAP_VERSION, which the program was
 * built with. The string is static.
 */
DMAMAP_API const char *dmamap_version(void);

/** What a device may do with mapped memory; OR them together. */
#define DMAMAP_READ  1u /**< the device may read */
#define DMAMAP_WRITE 2u /**< the device may write */

/**
 * struct dmamap_range - IOVAs from @first to @last, both included. The last
 * page of the 64-bit space is an ordinary range: first = 2^64 - 4096,
 * last = UINT64_MAX.
 */
struct dmamap_range {
	uint64_t first;
	uint64_t last;
};

/**
 * struct dmamap_reason_kind - One way in which a call can be refused.
 * @name: short name for programs and JSON, such as "iova_overlap"
 * @text: the sentence, with places for the reason's numbers: {0x} to {7x} in
 *	hexadecimal, {0d} in decimal, {0s} as a size (4 KiB), {t} the label
 *
 * Kinds are static data; each layer defines its own, and compares by address.
 */
struct dmamap_reason_kind {
	const char *name;
	const char *text;
};

#define DMAMAP_REASON_NUMBERS 8

/**
 * struct dmamap_reason - Why one call was refused.
 * @kind: which rule refused it; NULL: no reason is recorded
 * @error: the errno, positive
 * @number: the numbers that decided, in the order that @kind's text uses them
 * @label: a name that the sentence needs (a device, a file, a region), cut to
 *	fit; always ends in NUL
 *
 * A caller passes the address of one, or NULL when it does not want to know.
 * A call that succeeds leaves it alone.
 */
struct dmamap_reason {
	const struct dmamap_reason_kind *kind;
	int error;
	uint64_t number[DMAMAP_REASON_NUMBERS];
	char label[96];
};

/**
 * dmamap_reason_format() - Write the reason as one sentence, without a full
 * stop or newline.
 * @reason: the reason; one without a kind gives the errno's own text
 * @buffer: where to, NUL-terminated, cut to @size
 * @size: bytes at @buffer, at least 1
 *
 * Return: the length of the whole sentence, as snprintf does.
 */
DMAMAP_API size_t dmamap_reason_format(
	const struct dmamap_reason *reason, char *buffer, size_t size);

/**
 * dmamap_refuse() - Record a reason and return its errno, for layers that add
 * rules of their own.
 * @why: where to, or NULL
 * @kind: the rule
 * @error: errno, positive
 * @label: copied into the reason; NULL for none
 * @numbers: array for reason->number
 * @n: how many, at most DMAMAP_REASON_NUMBERS
 *
 * Return: -@error, always.
 */
DMAMAP_API int dmamap_refuse(struct dmamap_reason *why, const struct dmamap_reason_kind *kind,
	int error, const char *label, const uint64_t *numbers, size_t n);

/** DMAMAP_REFUSE() - dmamap_refuse() with the numbers written out (at least one). */
#define DMAMAP_REFUSE(why, kind, error, label, ...)                                                \
	dmamap_refuse(why, kind, error, label, (const uint64_t[]){__VA_ARGS__},                    \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#ifdef __cplusplus
}
#endif

#endif
