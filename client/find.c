/* SPDX-License-Identifier: MIT */
/*
 * From a PCI address to the files of its device: sysfs says whether it is
 * there, which driver has it, which group it is in and which cdev it has.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/internal.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

int client_find_address(const char *bdf, char out[16], struct dmamap_reason *why)
{
	unsigned domain = 0, bus, device, function;
	int end = -1;

	if (sscanf(bdf, "%6x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4) {
		domain = 0;
		if (sscanf(bdf, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3)
			end = -1;
	}
	/* sscanf would take signs and blanks as well. */
	if (end < 0 || bdf[end] || strspn(bdf, "0123456789abcdefABCDEF:.") != strlen(bdf) ||
		device > 31 || function > 7)
		return DMAMAP_REFUSE(why, &client_reason_address, EINVAL, bdf, 0);
	snprintf(out, 16, "%04x:%02x:%02x.%x", domain & 0xffffffu, bus & 0xffu, device & 0x1fu,
		function & 7u);
	return 0;
}

/* The last part of where a device's link points: its driver's or group's name. */
static int link_name(
	struct dmamap_system *system, const char *bdf, const char *link, char *name, size_t size)
{
	char path[128], target[256];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", bdf, link);
	n = system->ops->readlink(system, path, target, sizeof(target));
	if (n < 0)
		return (int)n;
	slash = strrchr(target, '/');
	n = snprintf(name, size, "%s", slash ? slash + 1 : target);
	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* vfio-pci and its variants for single devices, such as mlx5_vfio_pci. */
static bool is_vfio(const char *driver)
{
	return strstr(driver, "vfio-pci") || strstr(driver, "vfio_pci");
}

static bool bound(struct dmamap_system *system, const char *bdf)
{
	char driver[64];

	return !link_name(system, bdf, "driver", driver, sizeof(driver)) && is_vfio(driver);
}

int dmamap_client_device(struct dmamap_system *system, char bdf[16])
{
	char name[64];

	for (unsigned i = 0; system->ops->list(system, PCI_DEVICES, i, name, sizeof(name)) > 0;
		i++) {
		if (strlen(name) < 16 && bound(system, name)) {
			strcpy(bdf, name);
			return 0;
		}
	}
	return -ENODEV;
}

/* "0000:00:09.0 (there are 0000:00:00.0, 0000:00:03.0 and 4 more)" */
static void describe_missing(
	struct dmamap_system *system, const char *bdf, char *label, size_t size)
{
	char name[64];
	size_t n = (size_t)snprintf(label, size, "%s (", bdf);
	unsigned i;

	for (i = 0; system->ops->list(system, PCI_DEVICES, i, name, sizeof(name)) > 0; i++)
		if (i < 3 && n < size)
			n += (size_t)snprintf(
				label + n, size - n, "%s%s", i ? ", " : "there are ", name);
	if (n >= size)
		return;
	if (i > 3)
		snprintf(label + n, size - n, " and %u more)", i - 3);
	else
		snprintf(label + n, size - n, "%s", i ? ")" : "the machine shows none)");
}

int client_find_device(struct dmamap_system *system, const char *bdf, struct dmamap_reason *why)
{
	char driver[64], name[64], label[96];
	bool found = false;

	for (unsigned i = 0;
		!found && system->ops->list(system, PCI_DEVICES, i, name, sizeof(name)) > 0; i++)
		found = !strcmp(name, bdf);
	if (!found) {
		describe_missing(system, bdf, label, sizeof(label));
		return DMAMAP_REFUSE(why, &client_reason_device, ENODEV, label, 0);
	}
	if (link_name(system, bdf, "driver", driver, sizeof(driver)))
		return DMAMAP_REFUSE(why, &client_reason_no_driver, ENODEV, bdf, 0);
	if (!is_vfio(driver)) {
		snprintf(label, sizeof(label), "%s is bound to %s", bdf, driver);
		return DMAMAP_REFUSE(why, &client_reason_other_driver, ENODEV, label, 0);
	}
	return 0;
}

int client_find_group(struct dmamap_system *system, const char *bdf, char *path, size_t size,
	struct dmamap_reason *why)
{
	char group[32];
	int error = link_name(system, bdf, "iommu_group", group, sizeof(group));

	if (error)
		return DMAMAP_REFUSE(why, &client_reason_no_group, -error, bdf, 0);
	snprintf(path, size, "/dev/vfio/%s", group);
	return 0;
}

int client_find_cdev(struct dmamap_system *system, const char *bdf, char *path, size_t size,
	struct dmamap_reason *why)
{
	char directory[128], name[64];

	snprintf(directory, sizeof(directory), PCI_DEVICES "/%s/vfio-dev", bdf);
	for (unsigned i = 0; system->ops->list(system, directory, i, name, sizeof(name)) > 0; i++) {
		if (!strncmp(name, "vfio", 4)) {
			snprintf(path, size, "/dev/vfio/devices/%s", name);
			return 0;
		}
	}
	return DMAMAP_REFUSE(why, &client_reason_no_cdev, ENOENT, bdf, 0);
}
