/* SPDX-License-Identifier: MIT */
/*
 * The verbs that are no ioctl of VFIO or IOMMUFD: what a case says about
 * itself, memory, opening, processes, what devices do. And finding verbs.
 */
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES	 (THING_DEVICE | THING_DEVICE_FILE)
#define IOMMUFDS (THING_IOMMUFD | THING_CONTAINER)
#define FILES                                                                                      \
	(DEVICES | IOMMUFDS | THING_GROUP | THING_FILE | THING_EVENTFD | THING_MEMORY |            \
		THING_IOAS | THING_HWPT)

#define NEW(kind_of)                                                                               \
	{                                                                                          \
		.name = "new", .kind = FIELD_NEW, .role = ROLE_NEW,                                \
		.use = USE_WORD | USE_REQUIRED, .things = kind_of                                  \
	}
#define THING(key, of, ...)                                                                        \
	{                                                                                          \
		.name = key, .kind = FIELD_THING, .use = USE_WORD | USE_REQUIRED, .things = of,    \
		__VA_ARGS__                                                                        \
	}
#define ON(of) THING("on", of, .role = ROLE_TARGET)
#define KEY(key, ...)                                                                              \
	{                                                                                          \
		.name = key, .use = USE_IN, __VA_ARGS__                                            \
	}
#define NEEDED(key, ...)                                                                           \
	{                                                                                          \
		.name = key, .use = USE_IN | USE_REQUIRED, __VA_ARGS__                             \
	}
#define WORD(key, ...)                                                                             \
	{                                                                                          \
		.name = key, .use = USE_WORD | USE_REQUIRED, __VA_ARGS__                           \
	}
#define ADDRESS WORD("address", .show = SHOW_HEX)

static const struct field no_fields[] = {{0}};
static const struct field number[] = {WORD("version", .show = SHOW_COUNT), {0}};
static const struct field rest[] = {
	{.name = "text", .kind = FIELD_REST, .use = USE_WORD | USE_REQUIRED}, {0}};
static const struct field needs[] = {
	{.name = "conditions", .kind = FIELD_CONDITIONS, .use = USE_WORD | USE_REQUIRED | USE_MANY},
	{0}};
static const struct field loop[] = {
	WORD("times", .show = SHOW_COUNT),
	{.name = "counter", .kind = FIELD_SAVE, .use = USE_WORD},
	{0},
};

/* -------------------------------------------------- processes and limits */

static const struct field process[] = {NEW(THING_PROCESS), {0}};
static const struct field exit_[] = {THING("process", THING_PROCESS), {0}};
static const struct field limit[] = {
	KEY("memlock"), KEY("files", .show = SHOW_COUNT), FIELDS_NO_STRUCTURE};

static const struct field_name off_on[] = {{"off", 0}, {"on", 1}, {0}};

#define CAPABILITY(key, number_of)                                                                 \
	KEY(key, .kind = FIELD_CHOICE, .names = off_on, .initial = number_of)

/* The numbers are those of <linux/capability.h>. */
static const struct field capability[] = {
	CAPABILITY("ipc_lock", 14),
	CAPABILITY("sys_rawio", 17),
	CAPABILITY("sys_admin", 21),
	CAPABILITY("sys_resource", 24),
	FIELDS_NO_STRUCTURE,
};
static const struct field charged[] = {
	KEY("locked"), KEY("pinned"), KEY("user"), FIELDS_NO_STRUCTURE};

/* ------------------------------------------------------------------ memory */

static const struct field_name memory_kinds[] = {{"anonymous", 0}, {"thp", 1}, {"hugetlb_2mb", 2},
	{"hugetlb_1gb", 3}, {"memfd", 4}, {"memfd_hugetlb_2mb", 5}, {"memfd_hugetlb_1gb", 6},
	{"file", 7}, {0}};

/* PROT_NONE, PROT_READ, PROT_WRITE */
static const struct field_name prots[] = {
	{"none", 0}, {"r", 1}, {"w", 2}, {"rw", 3}, {"rx", 5}, {"rwx", 7}, {0}};
static const struct field_name map_flags[] = {{"shared", 1}, {"private", 2}, {0}};

#define PROT  KEY("prot", .kind = FIELD_CHOICE, .names = prots, .initial = 3)
#define PLACE KEY("align"), KEY("phase")

static const struct field memory[] = {
	NEW(THING_MEMORY),
	WORD("size"),
	KEY("kind", .kind = FIELD_CHOICE, .names = memory_kinds),
	PROT,
	PLACE,
	KEY("declared"),
	KEY("shared", .kind = FIELD_SWITCH),
	FIELDS_NO_STRUCTURE,
};
static const struct field bar[] = {
	NEW(THING_MEMORY),
	THING("device", DEVICES),
	WORD("index", .show = SHOW_COUNT),
	KEY("offset", .show = SHOW_HEX),
	KEY("size"),
	PROT,
	PLACE,
	FIELDS_NO_STRUCTURE,
};
static const struct field mmap_[] = {
	NEW(THING_MEMORY),
	ON(FILES),
	KEY("offset", .show = SHOW_HEX),
	NEEDED("size"),
	PROT,
	KEY("flags", .kind = FIELD_FLAGS, .names = map_flags, .initial = 1),
	KEY("at", .show = SHOW_HEX),
	FIELDS_NO_STRUCTURE,
};
static const struct field munmap_[] = {ADDRESS, KEY("size"), FIELDS_NO_STRUCTURE};
static const struct field protect[] = {ADDRESS, NEEDED("size"), PROT, FIELDS_NO_STRUCTURE};
static const struct field bytes_of[] = {
	ADDRESS, NEEDED("size"), NEEDED("value", .show = SHOW_HEX), FIELDS_NO_STRUCTURE};

/* ----------------------------------------------------------------- opening */

static const struct field_name container_modes[] = {
	{"type1", 0}, {"type1v2", 1}, {"compat_type1", 2}, {"compat_type1v2", 3}, {0}};

#define MANY_DEVICES                                                                               \
	{                                                                                          \
		.name = "devices", .kind = FIELD_THING, .use = USE_WORD | USE_MANY,                \
		.things = THING_DEVICE                                                             \
	}

static const struct field container[] = {
	NEW(THING_CONTAINER),
	WORD("mode", .kind = FIELD_CHOICE, .names = container_modes),
	MANY_DEVICES,
	FIELDS_NO_STRUCTURE,
};
static const struct field ioas[] = {
	NEW(THING_IOAS), ON(IOMMUFDS), MANY_DEVICES, FIELDS_NO_STRUCTURE};
static const struct field iommufd[] = {NEW(THING_IOMMUFD), FIELDS_NO_STRUCTURE};
static const struct field open_container[] = {NEW(THING_CONTAINER), FIELDS_NO_STRUCTURE};
static const struct field open_group[] = {
	NEW(THING_GROUP), THING("device", THING_DEVICE), FIELDS_NO_STRUCTURE};
static const struct field open_cdev[] = {
	NEW(THING_DEVICE_FILE), THING("device", THING_DEVICE), FIELDS_NO_STRUCTURE};
static const struct field open_file[] = {
	NEW(THING_FILE), NEEDED("path", .kind = FIELD_TEXT), FIELDS_NO_STRUCTURE};
static const struct field close_[] = {THING("file", FILES), FIELDS_NO_STRUCTURE};
static const struct field eventfd_[] = {NEW(THING_EVENTFD), FIELDS_NO_STRUCTURE};
static const struct field signalled[] = {THING("eventfd", THING_EVENTFD), FIELDS_NO_STRUCTURE};

static const struct field read_[] = {
	ON(FILES),
	KEY("offset", .show = SHOW_HEX),
	KEY("region", .show = SHOW_COUNT),
	KEY("size"),
	{.name = "bytes", .kind = FIELD_BYTES, .use = USE_OUT | USE_KEPT},
	{.name = "value", .use = USE_OUT | USE_KEPT, .show = SHOW_HEX},
	FIELDS_NO_STRUCTURE,
};
static const struct field write_[] = {
	ON(FILES),
	KEY("offset", .show = SHOW_HEX),
	KEY("region", .show = SHOW_COUNT),
	KEY("size"),
	KEY("value", .show = SHOW_HEX),
	KEY("bytes", .kind = FIELD_BYTES),
	FIELDS_NO_STRUCTURE,
};
static const struct field raw[] = {
	ON(FILES),
	NEEDED("request", .show = SHOW_HEX),
	KEY("size"),
	{.name = "bytes", .kind = FIELD_BYTES, .use = USE_IN | USE_OUT},
	KEY("argument", .show = SHOW_HEX),
	FIELDS_NO_STRUCTURE,
};

/* --------------------------------------------------------------------- DMA */

#define DMA NEEDED("iova", .show = SHOW_HEX), NEEDED("size")

static const struct field dma_write[] = {ON(DEVICES), DMA, NEEDED("value", .show = SHOW_HEX),
	KEY("at", .show = SHOW_HEX), FIELDS_NO_STRUCTURE};
static const struct field dma_read[] = {
	ON(DEVICES), DMA, NEEDED("value", .show = SHOW_HEX), FIELDS_NO_STRUCTURE};
static const struct field segments[] = {ON(DEVICES), DMA, PROT, FIELDS_NO_STRUCTURE};

#define COUNTER(key) KEY(key, .show = SHOW_COUNT)

static const struct field counters[] = {
	KEY("reset", .kind = FIELD_SWITCH),
	COUNTER("maps"),
	COUNTER("unmaps"),
	COUNTER("lookups"),
	COUNTER("leaves"),
	COUNTER("leaves_4k"),
	COUNTER("leaves_2m"),
	COUNTER("leaves_1g"),
	COUNTER("areas"),
	COUNTER("tables"),
	FIELDS_NO_STRUCTURE,
};

#define VERB(called, does, table, what, ...)                                                       \
	{                                                                                          \
		.name = called, .action = does, .fields = table, .summary = what, __VA_ARGS__      \
	}
#define CONTROL .flags = VERB_CONTROL

struct verb verbs_own[] = {
	VERB("format", ACTION_FORMAT, number, "the version of the format", CONTROL),
	VERB("title", ACTION_TITLE, rest, "what the case is", CONTROL),
	VERB("source", ACTION_SOURCE, rest, "where it comes from", CONTROL),
	VERB("machine", ACTION_MACHINE, rest, "the machine that it is about", CONTROL),
	VERB("needs", ACTION_NEEDS, needs, "else the case is skipped", CONTROL),
	VERB("loop", ACTION_LOOP, loop, "repeat up to end", CONTROL),
	VERB("end", ACTION_END, no_fields, "of a loop", CONTROL),
	VERB("process", ACTION_PROCESS, process, "fork", CONTROL),
	VERB("exit", ACTION_EXIT, exit_, "end a process", CONTROL),
	VERB("limit", ACTION_LIMIT, limit, "setrlimit"),
	VERB("capability", ACTION_CAPABILITY, capability, "capset"),
	VERB("charged", ACTION_CHARGED, charged, "what is locked must be so much"),
	VERB("memory", ACTION_MEMORY, memory, "map memory into the process"),
	VERB("bar", ACTION_BAR, bar, "map a BAR into the process"),
	VERB("mmap", ACTION_MMAP, mmap_, "mmap of an open file"),
	VERB("munmap", ACTION_MUNMAP, munmap_, "munmap"),
	VERB("protect", ACTION_PROTECT, protect, "mprotect"),
	VERB("fill", ACTION_FILL, bytes_of, "write a byte to memory"),
	VERB("check", ACTION_CHECK, bytes_of, "memory must hold that byte"),
	VERB("container", ACTION_CONTAINER, container, "all steps to a container"),
	VERB("ioas", ACTION_IOAS, ioas, "all steps to an IOAS"),
	VERB("iommufd", ACTION_OPEN, iommufd, "open /dev/iommu"),
	VERB("open", ACTION_OPEN, open_container, "open /dev/vfio/vfio", .literal = "container"),
	VERB("open", ACTION_OPEN, open_container, "open /dev/iommu as a container",
		.literal = "compat"),
	VERB("open", ACTION_OPEN, iommufd, "open /dev/iommu", .literal = "iommufd"),
	VERB("open", ACTION_OPEN, open_group, "open a device's group", .literal = "group"),
	VERB("open", ACTION_OPEN, open_cdev, "open a device's cdev", .literal = "cdev"),
	VERB("open", ACTION_OPEN, open_file, "open a file", .literal = "file"),
	VERB("close", ACTION_CLOSE, close_, "close"),
	VERB("eventfd", ACTION_EVENTFD, eventfd_, "make an eventfd"),
	VERB("signalled", ACTION_SIGNALLED, signalled, "how often an eventfd was signalled",
		.flags = VERB_RETURNS),
	VERB("read", ACTION_READ, read_, "pread", .flags = VERB_RETURNS),
	VERB("write", ACTION_WRITE, write_, "pwrite", .flags = VERB_RETURNS),
	VERB("dma_write", ACTION_DMA_WRITE, dma_write, "the device writes"),
	VERB("dma_read", ACTION_DMA_READ, dma_read, "the device reads"),
	VERB("segments", ACTION_SEGMENTS, segments, "pieces of host memory behind a range",
		.flags = VERB_RETURNS),
	VERB("counters", ACTION_COUNTERS, counters, "the work done since reset"),
	VERB("ioctl", ACTION_RAW, raw, "any ioctl", .flags = VERB_RETURNS | VERB_HANDLE),
	{0},
};

/* ----------------------------------------------------------------- finding */

static struct verb *const tables[] = {verbs_own, verbs_vfio, verbs_iommufd};

#define TABLES	  (sizeof(tables) / sizeof(tables[0]))
#define VERBS_MAX 128

static const struct verb *sorted[VERBS_MAX];
static size_t n_sorted;
/* By the verb's number and the role: which field has it, -1: none. */
static int8_t roles[VERBS_MAX][ROLES];

static int by_name(const void *a, const void *b)
{
	const struct verb *one = *(const struct verb *const *)a;
	const struct verb *other = *(const struct verb *const *)b;
	int order = strcmp(one->name, other->name);

	/* Forms keep the order of the tables. */
	return order ? order : one->number - other->number;
}

static void find_roles(const struct verb *verb)
{
	memset(roles[verb->number], -1, sizeof(roles[0]));
	for (int i = 0; verb->fields[i].name; i++)
		if (roles[verb->number][verb->fields[i].role] < 0)
			roles[verb->number][verb->fields[i].role] = (int8_t)i;
}

/* Once, before the first verb is found: all that follows has one from here. */
static void sort(void)
{
	size_t n = 0;

	if (n_sorted)
		return;
	for (size_t t = 0; t < TABLES; t++)
		for (struct verb *verb = tables[t]; verb->name && n < VERBS_MAX; verb++) {
			verb->number = (uint8_t)n;
			find_roles(verb);
			sorted[n++] = verb;
		}
	qsort(sorted, n, sizeof(sorted[0]), by_name);
	n_sorted = n;
}

static int compare(const char *name, size_t length, const char *with)
{
	size_t n = strlen(with);
	int order = memcmp(name, with, length < n ? length : n);

	return order ? order : (length > n) - (length < n);
}

size_t verb_find(const char *name, size_t length, const struct verb *const **forms)
{
	size_t low = 0, high, n = 0;

	sort();
	high = n_sorted;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(name, length, sorted[middle]->name) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < n_sorted && !compare(name, length, sorted[low + n]->name))
		n++;
	*forms = &sorted[low];
	return n;
}

int verb_field(const struct verb *verb, const char *name, size_t length, unsigned use)
{
	for (int i = 0; verb->fields[i].name; i++)
		if (verb->fields[i].use & use && !compare(name, length, verb->fields[i].name))
			return i;
	return -1;
}

int verb_role(const struct verb *verb, enum field_role role)
{
	return roles[verb->number][role];
}

static void list_names(FILE *out, const struct field *field)
{
	if (!field->names || !field->names->name)
		return;
	fputc('=', out);
	for (const struct field_name *name = field->names; name->name; name++)
		fprintf(out, "%s%s", name == field->names ? "" : "|", name->name);
}

void verb_list(FILE *out)
{
	sort();
	for (size_t i = 0; i < n_sorted; i++) {
		const struct verb *verb = sorted[i];
		bool outputs = false;

		fputs(verb->name, out);
		for (const struct field *field = verb->fields; field->name; field++) {
			if (!(field->use & USE_WORD))
				continue;
			fprintf(out, " %s%s", field->name, field->use & USE_MANY ? "..." : "");
			list_names(out, field);
			if (field == verb->fields && verb->literal)
				fprintf(out, " '%s'", verb->literal);
		}
		fprintf(out, "    (%s)\n    keys:", verb->summary);
		for (const struct field *field = verb->fields; field->name; field++) {
			if (!(field->use & USE_IN))
				continue;
			fprintf(out, " %s", field->name);
			list_names(out, field);
		}
		for (const struct field *field = verb->fields; field->name; field++) {
			if (!(field->use & USE_OUT))
				continue;
			fprintf(out, "%s %s", outputs ? "" : "\n    outputs:", field->name);
			if (!(field->use & USE_IN))
				list_names(out, field);
			outputs = true;
		}
		fputc('\n', out);
	}
}
