/* SPDX-License-Identifier: MIT */
/* Which schema, by which dmamap, when, and on what machine. */
#include "json_head.h"

#include "cli/fields.h"
#include "dmamap/common.h"

static struct json_object *host_object(const struct host *host)
{
	struct json_object *object = json_object_new_object();
	struct json_object *thp = json_object_new_object();

	add_text(object, "name", host->name);
	add_text(object, "kernel", host->kernel);
	add_text(object, "machine", host->machine);
	add_text(object, "cpu", host->cpu);
	add_number(object, "cpus", host->cpus);
	add_number(object, "page_size", host->page_size);
	add_number(object, "memory", host->memory);
	add_number(object, "memory_available", host->available);
	add_number(thp, "size", host->thp_size);
	add_text(thp, "enabled", host->thp);
	add_text(thp, "shmem_enabled", host->thp_shmem);
	add_field(object, "transparent_huge_pages", thp);
	return object;
}

struct json_object *json_begin(const struct json_head *head)
{
	struct json_object *object = json_object_new_object();
	struct json_object *schema = json_object_new_object();
	char date[32];
	struct tm tm;

	add_text(schema, "name", head->schema);
	add_number(schema, "version", head->version);
	add_field(object, "schema", schema);
	add_text(object, "dmamap", dmamap_version());
	gmtime_r(&head->started, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	add_text(object, "started", date);
	add_real(object, "seconds", head->seconds);
	add_bool(object, "interrupted", head->signal);
	add_field(object, "host", host_object(head->host));
	return object;
}
