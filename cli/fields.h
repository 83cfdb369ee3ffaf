/* SPDX-License-Identifier: MIT */
/*
 * Fields of a JSON object. A value that could not be made, for want of memory,
 * shows as null or as a missing field.
 */
#ifndef CLI_FIELDS_H
#define CLI_FIELDS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** add_field() - Any value; the object owns it. */
void add_field(struct json_object *object, const char *key, struct json_object *value);
/** add_text() - NULL: null. */
void add_text(struct json_object *object, const char *key, const char *text);
void add_number(struct json_object *object, const char *key, uint64_t number);
/** add_real() - Six digits. */
void add_real(struct json_object *object, const char *key, double real);
void add_bool(struct json_object *object, const char *key, bool value);
/** new_address() - As hexadecimal text: 64 bits are more than many a reader's numbers hold. */
struct json_object *new_address(uint64_t address);
/** fields_print() - Writes @root, which it frees. Return: 0 or -ENOMEM. */
int fields_print(FILE *out, struct json_object *root);

#endif
