/* SPDX-License-Identifier: MIT */
/*
 * Layout checks at compile time: an ABI structure's size and its fields' offsets are
 * written beside it as numbers, so that a wrong field cannot be built.
 */
#ifndef DMAMAP_ABI_LAYOUT_H
#define DMAMAP_ABI_LAYOUT_H

#include <stddef.h>

#define ABI_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), "size of " #type)
#define ABI_AT(type, field, offset)                                                                \
	_Static_assert(offsetof(struct type, field) == (offset), "offset of " #type "." #field)

#endif
