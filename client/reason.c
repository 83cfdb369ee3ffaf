/* SPDX-License-Identifier: MIT */
/*
 * The client's reasons: what is missing and what to do. Where the system knows
 * why (the soft system does), its reason wins; a kernel gives an errno and no
 * more, and the tables here say what that errno means at that call.
 */
#include <errno.h>

#include "client/internal.h"

#define KIND(id, sentence)                                                                         \
	const struct dmamap_reason_kind client_reason_##id = {.name = #id, .text = sentence}
#define LOCAL(id, sentence)                                                                        \
	static const struct dmamap_reason_kind id = {.name = #id, .text = sentence}

/* Finding the device. */
KIND(address, "{t} is no PCI address: write it like 0000:00:03.0");
KIND(device, "there is no PCI device {t}");
KIND(other_driver, "{t}, not to vfio-pci: as root, with its address as D: modprobe vfio-pci; "
		   "echo vfio-pci > /sys/bus/pci/devices/$D/driver_override; "
		   "echo $D > /sys/bus/pci/devices/$D/driver/unbind; "
		   "echo $D > /sys/bus/pci/drivers_probe");
KIND(no_driver, "{t} is bound to no driver and needs vfio-pci: as root, modprobe vfio-pci; "
		"echo vfio-pci > /sys/bus/pci/devices/{t}/driver_override; "
		"echo {t} > /sys/bus/pci/drivers_probe");
KIND(no_group, "{t} has no IOMMU group: no IOMMU translates for it; enable it in the firmware "
	       "(VT-d, AMD-Vi, SMMU), and boot an Intel machine with intel_iommu=on");
KIND(no_cdev,
	"{t} has no VFIO character device: the kernel needs CONFIG_VFIO_DEVICE_CDEV (Linux 6.6)");

/* Opening files. */
LOCAL(no_container, "there is no {t}: modprobe vfio, or a kernel with CONFIG_VFIO_CONTAINER");
LOCAL(no_iommu, "there is no {t}: modprobe iommufd, or a kernel with CONFIG_IOMMUFD (Linux 6.2)");
LOCAL(no_group_file, "there is no {t}: the kernel needs CONFIG_VFIO_GROUP");
LOCAL(no_cdev_file, "there is no {t}, though the device is listed: is devtmpfs or udev at work");
LOCAL(permission, "no permission to open {t}: run as root, or as the owner that ls -l {t} shows");
LOCAL(busy, "{t} is in use: another program has it, or has its device open the other way "
	    "(through its group or its own file, never both)");
LOCAL(open_failed, "{t} cannot be opened, errno {0d}");

/* Attaching. */
KIND(not_viable, "group {t} is not viable: every device in /sys/kernel/iommu_groups/{t}/devices "
		 "must be bound to vfio-pci or to no driver");
LOCAL(no_type1, "the container has no {t}: modprobe vfio_iommu_type1");
LOCAL(unsafe_interrupts,
	"{t}: the machine cannot keep the device's interrupts apart; to accept that, set "
	"allow_unsafe_interrupts=1 of module vfio_iommu_type1 or iommufd");
LOCAL(device_busy, "{t}: the device, or one in its group, is in use by another program");
LOCAL(step, "{t} failed, errno {0d}");

/* Mapping. The numbers: iova first, last, address or place in the file, length, locked-memory
 * limit, page size. */
KIND(files, "mode {t} maps files: give a file and an offset, not an address");
KIND(no_files, "mode {t} maps addresses, not files: the mode for files is iommufd_file");
KIND(unaligned, "iova {0x}, address {2x} and length {3x} must all be multiples of {5s}");
KIND(outside, "iova {0x}-{1x} is not within the allowed ranges, the nearest is {6x}-{7x}");
LOCAL(map_memlock, "mapping {3s} at iova {0x} exceeds a memory limit: the limit on locked memory "
		   "is {4d} bytes; raise it with ulimit -l, or LimitMEMLOCK= of a systemd unit, or "
		   "run as root");
LOCAL(map_fault, "the memory at {2x}, {3s}, cannot be pinned: part of it is not mapped, is not "
		 "writable, or its file is truncated");
LOCAL(map_fault_iommufd,
	"the memory at {2x}, {3s}, cannot be pinned: part of it is not mapped, "
	"is not writable, or is a device's, which IOMMUFD does not map by address");
LOCAL(map_exists, "iova {0x}-{1x} overlaps what is mapped: unmap that first");
LOCAL(map_entries, "iova {0x}-{1x} is one mapping too many: raise dma_entry_limit of module "
		   "vfio_iommu_type1 (65535), or map larger pieces");
LOCAL(map_wrap, "iova {0x} or address {2x} with length {3x} goes past the end of 64 bits");
LOCAL(map_file_fd, "the descriptor is no open file");
LOCAL(map_invalid, "the system takes no mapping of {3x} bytes at iova {0x}: check protection, "
		   "alignment and range");
LOCAL(map_unsupported, "this kind of memory cannot be mapped for DMA ({3s} at {2x})");
LOCAL(map_no_command, "the kernel does not know this call: IOMMU_IOAS_MAP_FILE needs Linux 6.13");

/* Unmapping. */
LOCAL(unmap_cut, "iova {0x}-{1x} cuts a mapping or is no multiple of {5s}: unmap what was mapped, "
		 "whole");
LOCAL(unmap_nothing, "iova {0x}-{1x} holds no whole mapping");
LOCAL(unmap_busy, "iova {0x}-{1x} is in use by the kernel");

KIND(iova_size, "an IOVA range needs a length above 0 ({0x}) and an alignment that is a power of "
		"two ({1x})");
KIND(bar, "{t} has no BAR {0d} that can be mapped");
KIND(bar_offset, "BAR {0d} cannot be mapped {1x} bytes off its alignment, which is no multiple of "
		 "the page size, {2s}");
LOCAL(bar_mmap, "BAR {0d} of {t}, {1s}, cannot be mapped, errno {2d}");
LOCAL(bar_no_room, "no room in the address space for BAR {0d} of {t}, {1s}: ulimit -v");

const struct client_rule client_rules_container[] = {
	{ENOENT, &no_container},
	{ENODEV, &no_container},
	{ENXIO, &no_container},
	{EACCES, &permission},
	{EPERM, &permission},
	{0, &open_failed},
};

const struct client_rule client_rules_iommu[] = {
	{ENOENT, &no_iommu},
	{ENODEV, &no_iommu},
	{ENXIO, &no_iommu},
	{EACCES, &permission},
	{EPERM, &permission},
	{0, &open_failed},
};

const struct client_rule client_rules_group[] = {
	{ENOENT, &no_group_file},
	{EACCES, &permission},
	{EPERM, &permission},
	{EBUSY, &busy},
	{0, &open_failed},
};

const struct client_rule client_rules_cdev[] = {
	{ENOENT, &no_cdev_file},
	{EACCES, &permission},
	{EPERM, &permission},
	{EBUSY, &busy},
	{0, &open_failed},
};

const struct client_rule client_rules_set_iommu[] = {
	{ENODEV, &no_type1},
	{EPERM, &unsafe_interrupts},
	{EBUSY, &device_busy},
	{0, &step},
};

const struct client_rule client_rules_bind[] = {
	{EPERM, &unsafe_interrupts},
	{EBUSY, &device_busy},
	{0, &step},
};

const struct client_rule client_rules_step[] = {
	{0, &step},
};

const struct client_rule client_rules_map_type1[] = {
	{ENOMEM, &map_memlock},
	{EFAULT, &map_fault},
	{EEXIST, &map_exists},
	{ENOSPC, &map_entries},
	{EOVERFLOW, &map_wrap},
	{EOPNOTSUPP, &map_unsupported},
	{0, &map_invalid},
};

const struct client_rule client_rules_map_iommufd[] = {
	{ENOMEM, &map_memlock},
	{EFAULT, &map_fault_iommufd},
	{EEXIST, &map_exists},
	{EOVERFLOW, &map_wrap},
	{EBADF, &map_file_fd},
	{ENOTTY, &map_no_command},
	{EOPNOTSUPP, &map_unsupported},
	{0, &map_invalid},
};

const struct client_rule client_rules_unmap[] = {
	{ENOENT, &unmap_nothing},
	{EOVERFLOW, &map_wrap},
	{EBUSY, &unmap_busy},
	{0, &unmap_cut},
};

const struct client_rule client_rules_bar[] = {
	{ENOMEM, &bar_no_room},
	{0, &bar_mmap},
};

bool client_system_knows(struct dmamap_system *system, int error, struct dmamap_reason *why)
{
	struct dmamap_reason known = {0};

	/* A reason with another errno is an older call's. */
	if (system->ops->reason(system, &known) || known.error != -error)
		return false;
	*why = known;
	return true;
}

int client_explain(struct dmamap_system *system, const struct client_rule *rules, int error,
	const char *label, const uint64_t *numbers, size_t n, struct dmamap_reason *why)
{
	if (!why || client_system_knows(system, error, why))
		return error;
	while (rules->error && rules->error != -error)
		rules++;
	return dmamap_refuse(why, rules->kind, -error, label, numbers, n);
}

int client_failed(struct dmamap_client *client, const struct client_rule *rules, int error,
	const char *label, struct dmamap_reason *why)
{
	const uint64_t number = (uint64_t)-error;

	return client_explain(client->system, rules, error, label, &number, 1, why);
}
