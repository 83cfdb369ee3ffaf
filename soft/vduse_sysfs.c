/* SPDX-License-Identifier: MIT */
/*
 * /sys/class/vduse/NAME/bounce_size and msg_timeout (bounce_size_store() and
 * msg_timeout_store() in vduse_dev.c): what an administrator sets before a
 * device is attached. A read tells how it is then, a write is one number.
 */
#include "soft/vduse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum attribute { BOUNCE_SIZE, MSG_TIMEOUT };

static const char *const attributes[] = {
	[BOUNCE_SIZE] = "bounce_size",
	[MSG_TIMEOUT] = "msg_timeout",
};

struct attribute_file {
	struct soft_file file;
	struct soft_vduse_device *device; /* with a reference */
	enum attribute attribute;
};

static ssize_t show(struct attribute_file *opened, void *buffer, size_t size, uint64_t offset)
{
	struct soft_vduse_device *device = opened->device;
	uint64_t value;
	char text[24];
	size_t length;
	int error;

	if (opened->attribute == BOUNCE_SIZE) {
		pthread_mutex_lock(&device->memory_lock);
		value = device->bounce_size;
		pthread_mutex_unlock(&device->memory_lock);
	} else {
		value = atomic_load(&device->timeout_ms) / 1000;
	}
	length = (size_t)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
	if (offset >= length)
		return 0;
	if (size > length - offset)
		size = length - offset;
	error = soft_copy_out(buffer, text + offset, size, "a file's text");
	return error ? error : (ssize_t)size;
}

/* kstrtouint(): a decimal number and no more, but for one newline. */
static int number_of(const char *text, uint32_t *number)
{
	unsigned long long value;
	size_t digits;

	text += *text == '+';
	digits = strspn(text, "0123456789");
	if (!digits || (text[digits] == '\n' ? text[digits + 1] : text[digits]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno || value > UINT32_MAX)
		return -ERANGE;
	*number = (uint32_t)value;
	return 0;
}

static int store(struct attribute_file *opened, const char *text, size_t size)
{
	struct soft_vduse_device *device = opened->device;
	uint64_t page = soft_page_size(device->system);
	uint32_t number;
	int error = number_of(text, &number);

	if (opened->attribute == MSG_TIMEOUT) {
		if (error)
			return SOFT_REFUSE(vduse_number, -error, attributes[MSG_TIMEOUT], size);
		atomic_store(&device->timeout_ms, number * 1000ull);
		return 0;
	}
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

static ssize_t attribute_access(
	struct soft_file *file, void *buffer, size_t size, uint64_t offset, bool write)
{
	struct attribute_file *opened = (struct attribute_file *)file;
	char text[32] = "";
	int error;

	if (!write)
		return show(opened, buffer, size, offset);
	/* Longer text is no number, whatever follows. */
	error = soft_copy_in(
		text, buffer, size < sizeof(text) ? size : sizeof(text) - 1, "a number");
	if (!error)
		error = store(opened, text, size);
	return error ? error : (ssize_t)size;
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
static int open_attribute(struct soft_vduse_device *device, enum attribute attribute)
{
	struct attribute_file *opened = calloc(1, sizeof(*opened));
	int fd;

	if (!opened) {
		soft_vduse_put(device);
		return SOFT_REFUSE(no_memory, ENOMEM, attributes[attribute], 0);
	}
	soft_file_init(&opened->file, &attribute_ops, device->system);
	opened->attribute = attribute;
	opened->device = device;
	fd = soft_file_install(&opened->file, "dmamap:sysfs");
	if (fd < 0)
		attribute_release(&opened->file);
	return fd;
}

int soft_vduse_sysfs_open(struct soft_system *system, const char *rest)
{
	const char *slash = strchr(rest, '/');
	struct soft_vduse_device *device =
		slash ? find_node(&system->vduse, rest, (size_t)(slash - rest)) : NULL;

	for (unsigned i = 0; device && i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (!strcmp(slash + 1, attributes[i]))
			return open_attribute(device, i);
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
