/* SPDX-License-Identifier: MIT */
/*
 * The verbs of a case: what each takes, and, for those that are an ioctl, how
 * that lies in the call's structure. Parser, printer and runner are written
 * over these tables; a new call is a new row.
 */
#ifndef REPLAY_VERBS_H
#define REPLAY_VERBS_H

#include <stddef.h>
#include <stdint.h>

#include "case.h"

/** How a field's value is written. */
enum field_kind {
	FIELD_NUMBER, /**< a sum; names stand for what @as says */
	FIELD_FLAGS,  /**< names and numbers, all of them together */
	FIELD_CHOICE, /**< one name, or a number */
	FIELD_LIST,   /**< numbers and ranges */
	FIELD_THING,  /**< the name of a thing of @things */
	FIELD_NEW,    /**< the name that a thing of @things gets */
	FIELD_BYTES,
	FIELD_TEXT,   /**< one word as it is */
	FIELD_REST,   /**< all that follows on the line */
	FIELD_SAVE,   /**< a variable's name */
	FIELD_SWITCH, /**< the field's name alone */
	FIELD_CONDITIONS,
};

/** Where a field may stand; OR them together. */
enum field_use {
	USE_WORD = 1,	  /**< among the words, without its name */
	USE_IN = 2,	  /**< a key */
	USE_OUT = 4,	  /**< after the result */
	USE_REQUIRED = 8, /**< must be given */
	USE_MANY = 16,	  /**< a word that may come any number of times */
	USE_KEPT = 32,	  /**< an output that differs from system to system: not compared */
};

/** What a thing's name is worth in a number. */
enum field_as { AS_ADDRESS, AS_FILE, AS_OBJECT };

/** How a number is printed. */
enum field_show { SHOW_SIZE, SHOW_HEX, SHOW_COUNT };

/** What a field means beside being a number in a structure. */
enum field_role {
	ROLE_NONE,
	ROLE_NEW,      /**< the name that a thing gets */
	ROLE_ARGSZ,    /**< the structure's own size */
	ROLE_FLAGS,    /**< of the structure */
	ROLE_TARGET,   /**< the thing whose file the call is made on */
	ROLE_ARGUMENT, /**< the ioctl's argument itself */
	ROLE_VALUE,    /**< the argument of an ioctl without a structure */
	ROLE_TAIL,
	ROLE_SAVE,
	ROLE_REASON,
	ROLE_OWN_OBJECT, /**< not given: the id of the thing that the call is about */
	ROLE_IOVA,	 /**< of IOAS calls: given, it makes the map fixed */
	ROLE_LENGTH,	 /**< what a bitmap is about */
	ROLE_PGSIZE,
	ROLE_BITMAP,
	ROLE_BITMAP_SIZE,
	ROLE_DIRTY, /**< output: the bitmap's bits */
	ROLE_ARRAY, /**< address of an array that the call makes from LIST */
	ROLE_ARRAY_COUNT,
	ROLE_ARRAY_LIST,  /**< input or output: pairs of numbers */
	ROLE_DATA_LIST,	  /**< 32-bit numbers that follow the structure */
	ROLE_DATA_BOOLS,  /**< set_irqs: bytes with DATA_BOOL, descriptors otherwise */
	ROLE_DATA_RANGES, /**< pairs that follow the structure, as start and length */
	ROLE_DATA,	  /**< bytes that follow the structure */
	ROLE_BUFFER,	  /**< address of memory that the call makes: get_hw_info's data */
	ROLE_BUFFER_SIZE,
	ROLE_BUFFER_BYTES, /**< output: what is there */
	ROLE_FEATURE,	   /**< or-ed into flags */
	ROLE_PCI_NAME,	   /**< device_fd: text, or the device's address */
	ROLE_CAP_OFFSET,
	ROLE_CAPS, /**< outputs of the chain of capabilities, from here ... */
	ROLE_CAP_OFFSETS,
	ROLE_CAP_VERSIONS,
	ROLE_CAP_RANGES,
	ROLE_CAP_AVAIL,
	ROLE_CAP_MIGRATION_FLAGS,
	ROLE_CAP_MIGRATION_PGSIZES,
	ROLE_CAP_MIGRATION_MAX, /**< ... to here */
	ROLE_HOT_GROUPS,
	ROLE_HOT_DEVICES,
	ROLES
};

/** struct field_name - A name of a flag or a choice; the table ends with NULL. */
struct field_name {
	const char *name;
	uint64_t value;
};

/**
 * struct field - One word, key or output of a verb.
 * @offset, @size: where in the structure; @size 0: not in it
 * @things: which kinds of thing the name may be of; 0: any that @as makes sense of
 * @initial: its value where it is not given
 */
struct field {
	const char *name;
	uint8_t kind;
	uint8_t use;
	uint8_t as;
	uint8_t show;
	uint8_t role;
	uint8_t offset;
	uint8_t size;
	uint16_t things;
	uint32_t initial;
	const struct field_name *names;
};

/** What a verb does: which function of the runner has it. */
enum verb_action {
	ACTION_FORMAT,
	ACTION_TITLE,
	ACTION_SOURCE,
	ACTION_MACHINE,
	ACTION_NEEDS,
	ACTION_LOOP,
	ACTION_END,
	ACTION_PROCESS,
	ACTION_EXIT,
	ACTION_LIMIT,
	ACTION_CAPABILITY,
	ACTION_CHARGED,
	ACTION_MEMORY,
	ACTION_BAR,
	ACTION_MMAP,
	ACTION_MUNMAP,
	ACTION_PROTECT,
	ACTION_FILL,
	ACTION_CHECK,
	ACTION_CONTAINER,
	ACTION_IOAS,
	ACTION_OPEN,
	ACTION_CLOSE,
	ACTION_EVENTFD,
	ACTION_SIGNALLED,
	ACTION_READ,
	ACTION_WRITE,
	ACTION_DMA_WRITE,
	ACTION_DMA_READ,
	ACTION_SEGMENTS,
	ACTION_COUNTERS,
	ACTION_RAW,   /**< ioctl */
	ACTION_IOCTL, /**< all that have a row with a request */
	ACTIONS
};

/** Of a verb's results. */
enum verb_flags {
	VERB_RETURNS = 1,  /**< a number that can be checked */
	VERB_OPENS = 2,	   /**< a descriptor: it becomes the new thing's */
	VERB_MAKES_ID = 4, /**< the output "id" becomes the new thing's object id */
	VERB_HANDLE = 16,  /**< the number may be a descriptor, which no two systems share */
	VERB_CONTROL = 8,  /**< no call: takes no result, "when" or "as" */
};

/**
 * struct verb - One verb, or one form of it.
 * @literal: the word that must stand second ("open NAME group"), or NULL
 * @summary: what it does, one clause
 * @request: of an ioctl
 * @size: the smallest structure
 * @number: set when verbs are found first
 * @fields: its words first, in their order; ends with a field without name
 *
 * A verb can have several forms: the one is taken whose literal is there, or
 * whose target is a thing of the right kind.
 */
struct verb {
	const char *name;
	const char *literal;
	const char *summary;
	uint8_t action;
	uint8_t flags;
	uint8_t number;
	uint16_t size;
	uint32_t request;
	const struct field *fields;
};

/* Constant but for the numbers. */
extern struct verb verbs_vfio[], verbs_iommufd[], verbs_own[];

/** verb_find() - All forms of that name. Return: how many, 0: there is none. */
size_t verb_find(const char *name, size_t length, const struct verb *const **forms);
/** verb_field() - The field of that name and use (any of the bits), or -1. */
int verb_field(const struct verb *verb, const char *name, size_t length, unsigned use);
/** verb_role() - The first field with that role, or -1. */
int verb_role(const struct verb *verb, enum field_role role);
/** verb_list() - All verbs with their keys and outputs, for people. */
void verb_list(FILE *out);

/** case_keeps() - Whether save= keeps that output: all that is one number. */
bool case_keeps(const struct field *field);

/* Of the tables. */
#define AT(structure, member)                                                                      \
	.offset = offsetof(structure, member), .size = sizeof(((structure *)0)->member)

#define FIELDS_CALL                                                                                \
	{.name = "save", .kind = FIELD_SAVE, .use = USE_IN, .role = ROLE_SAVE},                    \
	{                                                                                          \
		.name = "reason", .kind = FIELD_TEXT, .use = USE_OUT, .role = ROLE_REASON          \
	}
#define FIELDS_NO_STRUCTURE                                                                        \
	FIELDS_CALL,                                                                               \
	{                                                                                          \
	}
/* Every structure of the two ABIs starts with its own size, 32 bits. */
#define FIELDS_STRUCTURE                                                                           \
	{.name = "argsz",                                                                          \
		.use = USE_IN | USE_OUT,                                                           \
		.role = ROLE_ARGSZ,                                                                \
		.size = 4,                                                                         \
		.show = SHOW_COUNT},                                                               \
		{.name = "tail", .use = USE_IN, .role = ROLE_TAIL, .show = SHOW_COUNT},            \
		{.name = "argument", .use = USE_IN, .role = ROLE_ARGUMENT, .show = SHOW_HEX},      \
		FIELDS_NO_STRUCTURE

#endif
