/* SPDX-License-Identifier: MIT */
/*
 * table.h as arrays of names and values, one made from abi/ and one from the
 * kernel's headers. The two define the same names and cannot be included in
 * one file, so each has an object of its own.
 */
#ifndef TESTS_ABI_ENTRIES_H
#define TESTS_ABI_ENTRIES_H

#include <stddef.h>

struct entry {
	const char *name;
	unsigned long long value;
};

extern const struct entry own_entries[];
extern const size_t own_n;
extern const struct entry kernel_entries[];
extern const size_t kernel_n;
/* LINUX_VERSION_CODE of the kernel's headers. */
extern const unsigned kernel_version;

#define SIZE(type)	   {"sizeof " #type, sizeof(struct type)},
#define FIELD(type, field) {#type "." #field, offsetof(struct type, field)},
/* Widened from unsigned: a negative number is the same on both sides. */
#define CONSTANT(name) {#name, (unsigned)(name)},

#endif
