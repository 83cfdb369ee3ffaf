/* SPDX-License-Identifier: MIT */
/* Fields of a JSON object; see fields.h. */
#include "fields.h"

#include <errno.h>
#include <inttypes.h>

void add_field(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

void add_text(struct json_object *object, const char *key, const char *text)
{
	add_field(object, key, text ? json_object_new_string(text) : NULL);
}

void add_number(struct json_object *object, const char *key, uint64_t number)
{
	add_field(object, key, json_object_new_uint64(number));
}

void add_real(struct json_object *object, const char *key, double real)
{
	char text[40];

	snprintf(text, sizeof(text), "%.6g", real);
	add_field(object, key, json_object_new_double_s(real, text));
}

void add_bool(struct json_object *object, const char *key, bool value)
{
	add_field(object, key, json_object_new_boolean(value));
}

struct json_object *new_address(uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	return json_object_new_string(text);
}

int fields_print(FILE *out, struct json_object *root)
{
	const char *text = root ? json_object_to_json_string_ext(
					  root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
							JSON_C_TO_STRING_NOSLASHESCAPE)
				: NULL;

	if (text)
		fprintf(out, "%s\n", text);
	json_object_put(root);
	return text ? 0 : -ENOMEM;
}
