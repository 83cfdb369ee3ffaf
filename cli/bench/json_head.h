/* SPDX-License-Identifier: MIT */
/* What the JSON documents of all benches begin with. */
#ifndef BENCH_JSON_HEAD_H
#define BENCH_JSON_HEAD_H

#include <json-c/json.h>
#include <time.h>

#include "host.h"

/**
 * struct json_head - @schema, @version: of the document; @signal: that ended it
 * early, or 0
 */
struct json_head {
	const char *schema;
	unsigned version;
	time_t started;
	double seconds;
	int signal;
	const struct host *host;
};

/** json_begin() - A new object with these fields. */
struct json_object *json_begin(const struct json_head *head);

#endif
