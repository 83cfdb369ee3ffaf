/* SPDX-License-Identifier: MIT */
/*
 * /sys/class/vduse/NAME: bounce_size and msg_timeout, what an administrator sets
 * before a device is attached, and vqN/irq_cb_affinity, on which processors the
 * driver hears of queue N's interrupts (bounce_size_store(), msg_timeout_store()
 * and irq_cb_affinity_store() in vduse_dev.c; how numbers and masks are written is
 * in lib/kstrtox.c and lib/bitmap-str.c).
 *
 * A read tells how it is then. A write is one value, wherever in the file it is,
 * of at most a page; of nothing it is 0, and nothing happens. What was opened
 * and whose device is gone gives ENODEV (fs/kernfs/file.c).
 *
 * A mask is kept and told, and nobody is moved: interrupts are heard by the
 * thread of the daemon that gives them.
 */
#include "soft/vduse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum attribute { BOUNCE_SIZE, MSG_TIMEOUT, IRQ_CB_AFFINITY };

static const char *const attributes[] = {
	[BOUNCE_SIZE] = "bounce_size",
	[MSG_TIMEOUT] = "msg_timeout",
	[IRQ_CB_AFFINITY] = "irq_cb_affinity",
};

struct attribute_file {
	struct soft_file file;
	struct soft_vduse_device *device; /* with a reference */
	enum attribute attribute;
	unsigned queue; /* of IRQ_CB_AFFINITY */
};

/* -------------------------------------------------------------------- numbers */

/* kstrtouint(): a decimal number and no more, but for one newline. */
static int number_of(const char *text, uint32_t *number)
{
	unsigned long long value;
	char *end;

	text += *text == '+';
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	if (*end == '\n' ? end[1] : *end)
		return -EINVAL;
	if (value > UINT32_MAX)
		return -ERANGE;
	*number = (uint32_t)value;
	return 0;
}

/* ---------------------------------------------------------------------- masks */

unsigned soft_vduse_cpus(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	return cpus < 1 ? 1 : cpus > CPU_SETSIZE ? CPU_SETSIZE : (unsigned)cpus;
}

void soft_vduse_cpus_all(cpu_set_t *mask)
{
	CPU_ZERO(mask);
	for (unsigned i = 0; i < soft_vduse_cpus(); i++)
		CPU_SET(i, mask);
}

static bool separates(char c)
{
	return c == ',' || c == ' ' || (c >= '\t' && c <= '\r');
}

static int digit_of(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) % 16 : -1;
}

/* One group of up to 8 digits, from its end; @*end is left before it. */
static int group_of(const char *start, const char **end, uint32_t *bits)
{
	*bits = 0;
	for (unsigned i = 0; i < 8; i++) {
		int digit = digit_of(*(*end)--);

		if (digit < 0)
			return -EINVAL;
		*bits |= (uint32_t)digit << 4 * i;
		if (*end < start || separates(**end))
			return 0;
	}
	/* A ninth that is none is passed over in Linux. */
	return digit_of(*(*end)--) < 0 ? 0 : -EOVERFLOW;
}

/* bitmap_parse(): groups of 32 bits in hexadecimal, the highest first, to the end of the line. */
static int mask_of(const char *text, cpu_set_t *mask)
{
	const char *end = strchrnul(text, '\n') - 1;
	unsigned cpus = soft_vduse_cpus(), groups = (cpus + 31) / 32;
	uint32_t bits;

	CPU_ZERO(mask);
	for (unsigned group = 0;; group++) {
		int error;

		while (end >= text && separates(*end))
			end--;
		if (end < text)
			return 0;
		if (group == groups)
			return -EOVERFLOW;
		error = group_of(text, &end, &bits);
		if (error)
			return error;
		for (unsigned i = 0; i < 32; i++) {
			if (!(bits >> i & 1))
				continue;
			if (group * 32 + i >= cpus)
				return -EOVERFLOW;
			CPU_SET(group * 32 + i, mask);
		}
	}
}

/* bitmap_string() */
static size_t mask_text(const cpu_set_t *mask, char *text, size_t size)
{
	unsigned cpus = soft_vduse_cpus(), in_group = (cpus - 1) % 32 + 1;
	size_t length = 0;

	for (unsigned first = (cpus - 1) / 32 * 32;; first -= 32, in_group = 32) {
		uint32_t bits = 0;

		for (unsigned i = 0; i < in_group; i++)
			bits |= (uint32_t)CPU_ISSET(first + i, mask) << i;
		length += (size_t)snprintf(text + length, size - length, "%0*x%c",
			(int)(in_group + 3) / 4, bits, first ? ',' : '\n');
		if (!first)
			return length;
	}
}

/* ---------------------------------------------------------------- show, store */

static size_t text_of(const struct attribute_file *opened, char *text, size_t size)
{
	struct soft_vduse_device *device = opened->device;
	uint64_t value = atomic_load(&device->timeout_ms) / 1000;
	cpu_set_t mask;

	if (opened->attribute == IRQ_CB_AFFINITY) {
		pthread_mutex_lock(&device->queues[opened->queue].irq_lock);
		mask = device->queues[opened->queue].affinity;
		pthread_mutex_unlock(&device->queues[opened->queue].irq_lock);
		return mask_text(&mask, text, size);
	}
	if (opened->attribute == BOUNCE_SIZE) {
		pthread_mutex_lock(&device->memory_lock);
		value = device->bounce_size;
		pthread_mutex_unlock(&device->memory_lock);
	}
	return (size_t)snprintf(text, size, "%llu\n", (unsigned long long)value);
}

static ssize_t show(struct attribute_file *opened, void *buffer, size_t size, uint64_t offset)
{
	char text[CPU_SETSIZE / 32 * 9 + 1];
	size_t length = text_of(opened, text, sizeof(text));
	int error;

	if (offset >= length)
		return 0;
	if (size > length - offset)
		size = length - offset;
	error = soft_copy_out(buffer, text + offset, size, "a file's text");
	return error ? error : (ssize_t)size;
}

static int store_timeout(struct soft_vduse_device *device, const char *text, size_t size)
{
	uint32_t number;
	int error = number_of(text, &number);

	if (error)
		return SOFT_REFUSE(vduse_number, -error, attributes[MSG_TIMEOUT], size);
	atomic_store(&device->timeout_ms, number * 1000ull);
	return 0;
}

static int store_size(struct soft_vduse_device *device, const char *text, size_t size)
{
	uint64_t page = soft_page_size(device->system);
	uint32_t number;
	int error = number_of(text, &number);

	pthread_mutex_lock(&device->memory_lock);
	if (device->spaces[0].bounce)
		error = SOFT_REFUSE(vduse_attached, EPERM, device->name, device->key);
	else if (error)
		error = SOFT_REFUSE(vduse_number, -error, attributes[BOUNCE_SIZE], size);
	else if (number < VDUSE_BOUNCE_LEAST || number > VDUSE_BOUNCE_MOST)
		error = SOFT_REFUSE(vduse_value, EINVAL, attributes[BOUNCE_SIZE], number,
			VDUSE_BOUNCE_LEAST, VDUSE_BOUNCE_MOST);
	else
		device->bounce_size = number & ~(page - 1);
	pthread_mutex_unlock(&device->memory_lock);
	return error;
}

static int store_affinity(struct soft_vduse_queue *queue, const char *text, size_t size)
{
	cpu_set_t mask;
	int error = mask_of(text, &mask);

	/* All processors are taken to be online. */
	if (!error && !CPU_COUNT(&mask))
		error = -EINVAL;
	if (error)
		return SOFT_REFUSE(vduse_number, -error, attributes[IRQ_CB_AFFINITY], size);
	pthread_mutex_lock(&queue->irq_lock);
	queue->affinity = mask;
	pthread_mutex_unlock(&queue->irq_lock);
	return 0;
}

static int store(struct attribute_file *opened, const char *text, size_t size)
{
	switch (opened->attribute) {
	case BOUNCE_SIZE:
		return store_size(opened->device, text, size);
	case MSG_TIMEOUT:
		return store_timeout(opened->device, text, size);
	default:
		return store_affinity(&opened->device->queues[opened->queue], text, size);
	}
}

static ssize_t write_attribute(struct attribute_file *opened, const void *buffer, size_t size)
{
	uint64_t page = soft_page_size(opened->file.system);
	char *text;
	int error;

	size = size < page ? size : page;
	text = calloc(1, size + 1);
	if (!text)
		return SOFT_REFUSE(no_memory, ENOMEM, attributes[opened->attribute], size);
	error = soft_copy_in(text, buffer, size, "a file's text");
	if (!error && atomic_load(&opened->device->gone))
		error = SOFT_REFUSE(vduse_gone, ENODEV, opened->device->name, opened->device->key);
	if (!error && size)
		error = store(opened, text, size);
	free(text);
	return error ? error : (ssize_t)size;
}

static ssize_t attribute_access(
	struct soft_file *file, void *buffer, size_t size, uint64_t offset, bool write)
{
	struct attribute_file *opened = (struct attribute_file *)file;

	if (write)
		return write_attribute(opened, buffer, size);
	if (atomic_load(&opened->device->gone))
		return SOFT_REFUSE(vduse_gone, ENODEV, opened->device->name, opened->device->key);
	return show(opened, buffer, size, offset);
}

static int attribute_ioctl(struct soft_file *file, unsigned request, void *argument)
{
	(void)argument;
	return SOFT_REFUSE(request, ENOTTY, file->ops->name, request);
}

static void attribute_release(struct soft_file *file)
{
	soft_vduse_put(((struct attribute_file *)file)->device);
	free(file);
}

static const struct soft_file_ops attribute_ops = {
	.name = "sysfs",
	.ioctl = attribute_ioctl,
	.access = attribute_access,
	.release = attribute_release,
};

/* With a reference; NULL: there is none. */
static struct soft_vduse_device *find_node(
	struct soft_vduse *vduse, const char *node, size_t length)
{
	struct soft_vduse_device *device;

	pthread_mutex_lock(&vduse->lock);
	device = vduse->devices;
	while (device &&
		(strlen(device->node) != length || strncmp(device->node, node, length) != 0))
		device = device->next;
	if (device)
		atomic_fetch_add(&device->refs, 1);
	pthread_mutex_unlock(&vduse->lock);
	return device;
}

/* Takes the reference over. */
static int open_attribute(
	struct soft_vduse_device *device, enum attribute attribute, unsigned queue)
{
	struct attribute_file *opened = calloc(1, sizeof(*opened));
	int fd;

	if (!opened) {
		soft_vduse_put(device);
		return SOFT_REFUSE(no_memory, ENOMEM, attributes[attribute], 0);
	}
	soft_file_init(&opened->file, &attribute_ops, device->system);
	opened->attribute = attribute;
	opened->queue = queue;
	opened->device = device;
	fd = soft_file_install(&opened->file, "dmamap:sysfs");
	if (fd < 0)
		attribute_release(&opened->file);
	return fd;
}

/* Which file of a device @name is: "bounce_size", "vq0/irq_cb_affinity"; false: none. */
static bool find_attribute(const struct soft_vduse_device *device, const char *name,
	enum attribute *attribute, unsigned *queue)
{
	char folder[16];

	for (*attribute = 0; *attribute < IRQ_CB_AFFINITY; ++*attribute)
		if (!strcmp(name, attributes[*attribute]))
			return true;
	if (sscanf(name, "vq%5u", queue) != 1 || *queue >= device->n_queues)
		return false;
	/* As it is written, and no other way. */
	snprintf(folder, sizeof(folder), "vq%u/", *queue);
	return !strncmp(name, folder, strlen(folder)) &&
	       !strcmp(name + strlen(folder), attributes[IRQ_CB_AFFINITY]);
}

int soft_vduse_sysfs_open(struct soft_system *system, const char *rest)
{
	const char *slash = strchr(rest, '/');
	struct soft_vduse_device *device =
		slash ? find_node(&system->vduse, rest, (size_t)(slash - rest)) : NULL;
	enum attribute attribute;
	unsigned queue = 0;

	if (device && find_attribute(device, slash + 1, &attribute, &queue))
		return open_attribute(device, attribute, queue);
	if (device)
		soft_vduse_put(device);
	return SOFT_REFUSE(no_file, ENOENT, rest, 0);
}

bool soft_vduse_list(
	struct soft_system *system, const char *path, unsigned index, char name[VDUSE_NAME_MAX])
{
	struct soft_vduse_device *device;

	name[0] = '\0';
	if (strcmp(path, "/sys/class/vduse") != 0)
		return false;
	if (!index) {
		strcpy(name, "control");
		return true;
	}
	pthread_mutex_lock(&system->vduse.lock);
	device = system->vduse.devices;
	while (device && --index)
		device = device->next;
	if (device)
		strcpy(name, device->node);
	pthread_mutex_unlock(&system->vduse.lock);
	return true;
}
