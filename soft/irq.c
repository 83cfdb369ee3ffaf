/* SPDX-License-Identifier: MIT */
/*
 * A function's interrupts: INTx, MSI and MSI-X, one of them at a time, and the
 * error and request notices beside them. VFIO_DEVICE_SET_IRQS gives each vector
 * an eventfd, takes it away, or signals it as the function would
 * (drivers/vfio/pci/vfio_pci_intrs.c, vfio_set_irqs_validate_and_prepare()).
 *
 * Nothing raises an interrupt here but a user's own loopback, so masking INTx
 * has its rules and changes nothing that can be seen.
 */
#include <errno.h>
#include <stdlib.h>

#include "soft/pci.h"

/* A checked request. */
struct request {
	struct soft_device *device;
	struct soft_irqs *irqs;
	unsigned index, start, count;
	uint32_t data, action; /* one VFIO_IRQ_SET_DATA_*; some of VFIO_IRQ_SET_ACTION_* */
	union {
		const void *any;
		const uint8_t *bools;
		const int32_t *fds;
	} with;
};

static const char *const names[VFIO_PCI_NUM_IRQS + 1] = {
	[VFIO_PCI_INTX_IRQ_INDEX] = "INTx",
	[VFIO_PCI_MSI_IRQ_INDEX] = "MSI",
	[VFIO_PCI_MSIX_IRQ_INDEX] = "MSI-X",
	[VFIO_PCI_ERR_IRQ_INDEX] = "the error notice",
	[VFIO_PCI_REQ_IRQ_INDEX] = "the request notice",
	[VFIO_PCI_NUM_IRQS] = "no interrupt",
};

static unsigned count_of(const struct soft_device *device, uint32_t index)
{
	switch (index) {
	case VFIO_PCI_INTX_IRQ_INDEX:
		return device->is.intx;
	case VFIO_PCI_MSI_IRQ_INDEX:
		return device->is.msi;
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return device->pci->msix.vectors;
	case VFIO_PCI_ERR_IRQ_INDEX:
		/* Older kernels had it for PCI Express alone. */
		return device->is.express ||
		       device->system->machine.as_kernel >= DMAMAP_KERNEL(7, 3);
	case VFIO_PCI_REQ_IRQ_INDEX:
		return 1;
	default:
		return 0;
	}
}

int soft_irqs_init(struct soft_device *device)
{
	struct soft_irqs *irqs = &device->pci->irqs;
	unsigned msix = device->pci->msix.vectors;

	irqs->type = VFIO_PCI_NUM_IRQS;
	irqs->error = irqs->request = -1;
	irqs->n = device->is.msi > msix ? device->is.msi : msix;
	/* INTx has one. */
	irqs->n = irqs->n ? irqs->n : 1;
	irqs->triggers = malloc(irqs->n * sizeof(*irqs->triggers));
	if (!irqs->triggers)
		return -ENOMEM;
	for (unsigned i = 0; i < irqs->n; i++)
		irqs->triggers[i] = -1;
	return 0;
}

void soft_irqs_fini(struct soft_device *device)
{
	free(device->pci->irqs.triggers);
}

int soft_irq_info(struct soft_device *device, void *argument)
{
	const size_t size = SOFT_END_OF(vfio_irq_info, count);
	struct vfio_irq_info info;
	int error = soft_copy_in(&info, argument, size, "vfio_irq_info");

	if (error)
		return error;
	if (info.argsz < size)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_irq_info", info.argsz, size);
	if (info.index >= VFIO_PCI_NUM_IRQS)
		return SOFT_REFUSE(irq, EINVAL, NULL, info.index);
	info.flags = VFIO_IRQ_INFO_EVENTFD;
	info.count = count_of(device, info.index);
	if (info.index == VFIO_PCI_ERR_IRQ_INDEX && !info.count)
		return SOFT_REFUSE(irq, EINVAL, NULL, info.index);
	if (info.index == VFIO_PCI_INTX_IRQ_INDEX)
		info.flags |= VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED;
	/* MSI-X can have vectors added while others are in use. */
	else if (info.index != VFIO_PCI_MSIX_IRQ_INDEX || !info.count)
		info.flags |= VFIO_IRQ_INFO_NORESIZE;
	return soft_copy_out(argument, &info, size, "vfio_irq_info");
}

/* -------------------------------------------------------------- enabling */

static void disable(struct soft_device *device)
{
	struct soft_irqs *irqs = &device->pci->irqs;

	soft_listener_remove(&device->pci->listeners, irqs->unmask);
	irqs->unmask = NULL;
	for (unsigned i = 0; i < irqs->n; i++)
		soft_eventfd_put(&irqs->triggers[i]);
	if (irqs->type == VFIO_PCI_MSIX_IRQ_INDEX)
		soft_config_msix_enable(device, false);
	irqs->type = VFIO_PCI_NUM_IRQS;
	irqs->allocated = 0;
}

void soft_irqs_close(struct soft_device *device)
{
	disable(device);
	soft_eventfd_put(&device->pci->irqs.error);
	soft_eventfd_put(&device->pci->irqs.request);
}

static int other_enabled(const struct request *request)
{
	return SOFT_REFUSE(
		irq_other, EINVAL, names[request->irqs->type], request->irqs->type, request->index);
}

static int not_enabled(const struct request *request)
{
	return SOFT_REFUSE(irq_off, EINVAL, names[request->index], request->index);
}

/* Several MSI vectors need an interrupt controller that keeps them apart. */
static bool several_msi(const struct soft_device *device)
{
	return device->system->machine.isolated_msi ||
	       soft_device_iommu(device)->model == DMAMAP_IOMMU_SMMUV3;
}

/* 0; or how many vectors could be had instead; or -errno. */
static int msi_enable(const struct request *request)
{
	struct soft_irqs *irqs = request->irqs;
	unsigned vectors = request->start + request->count, log2 = 0;
	bool msi = request->index == VFIO_PCI_MSI_IRQ_INDEX;
	bool asleep = request->device->pci->config.power != SOFT_POWER_D0;

	/* Which of the two comes first is different for each. */
	if (asleep && (msi || vectors))
		return SOFT_REFUSE(asleep, EINVAL, request->device->is.bdf, SOFT_POWER_D3);
	if (!vectors)
		return SOFT_REFUSE(irq_vectors_none, ERANGE, names[request->index], 0);
	if (msi && vectors > 1 && !several_msi(request->device))
		return 1;
	irqs->type = request->index;
	irqs->allocated = vectors;
	if (!msi) {
		soft_config_msix_enable(request->device, true);
		return 0;
	}
	while (1u << log2 < vectors)
		log2++;
	irqs->msi_most = log2;
	return 0;
}

/* What the vector had goes first, even when what it is to get is refused. */
static int set_vector(const struct request *request, unsigned vector, int fd)
{
	struct soft_irqs *irqs = request->irqs;
	bool had = irqs->triggers[vector] >= 0;
	int own;

	soft_eventfd_put(&irqs->triggers[vector]);
	if (fd < 0)
		return 0;
	if (!had && request->index == VFIO_PCI_MSI_IRQ_INDEX && vector >= irqs->allocated)
		return SOFT_REFUSE(irq_vector, EINVAL, NULL, vector, irqs->allocated);
	own = soft_eventfd_get(fd, names[request->index]);
	if (own < 0)
		return own;
	irqs->triggers[vector] = own;
	return 0;
}

/* One that fails takes away those before it in the request. */
static int set_vectors(const struct request *request)
{
	unsigned done = 0;
	int error = 0;

	while (done < request->count && !error) {
		error = set_vector(request, request->start + done, request->with.fds[done]);
		done++;
	}
	while (error && done)
		soft_eventfd_put(&request->irqs->triggers[request->start + --done]);
	return error;
}

/* --------------------------------------------------------------- actions */

static int intx_alone(const struct request *request)
{
	if (request->count != 1)
		return SOFT_REFUSE(
			irq_one, EINVAL, names[request->index], request->start, request->count);
	return 0;
}

static void unmasked(void *who)
{
	(void)who;
}

static int intx_mask(const struct request *request)
{
	int error;

	if (request->irqs->type != VFIO_PCI_INTX_IRQ_INDEX)
		return not_enabled(request);
	error = intx_alone(request);
	if (error)
		return error;
	if (request->data == VFIO_IRQ_SET_DATA_EVENTFD)
		return SOFT_REFUSE(irq_mask_eventfd, ENOTTY, NULL, request->action);
	return 0;
}

static int intx_unmask(const struct request *request)
{
	struct soft_listeners *listeners = &request->device->pci->listeners;
	struct soft_listener *made = NULL;
	int fd, error;

	if (request->irqs->type != VFIO_PCI_INTX_IRQ_INDEX)
		return not_enabled(request);
	error = intx_alone(request);
	if (error || request->data != VFIO_IRQ_SET_DATA_EVENTFD)
		return error;
	fd = request->with.fds[0];
	if (fd < 0) {
		soft_listener_remove(listeners, request->irqs->unmask);
		request->irqs->unmask = NULL;
		return 0;
	}
	/* That it is no eventfd comes before that there is one already. */
	if (request->irqs->unmask) {
		error = soft_eventfd_get(fd, names[request->index]);
		if (error < 0)
			return error;
		soft_eventfd_put(&error);
		return SOFT_REFUSE(irq_unmask_set, EBUSY, names[request->index], (unsigned)fd);
	}
	error = soft_listener_add(listeners, fd, unmasked, NULL, &made);
	if (!error)
		request->irqs->unmask = made;
	return error;
}

/* The loopback: what the function's interrupt would signal. */
static bool is_raised(const struct request *request, unsigned i)
{
	return request->data == VFIO_IRQ_SET_DATA_NONE || request->with.bools[i];
}

static int intx_trigger(const struct request *request)
{
	struct soft_irqs *irqs = request->irqs;
	bool on = irqs->type == VFIO_PCI_INTX_IRQ_INDEX;
	int fd, error, own = -1;

	if (on && !request->count && request->data == VFIO_IRQ_SET_DATA_NONE) {
		disable(request->device);
		return 0;
	}
	if (!on && irqs->type != VFIO_PCI_NUM_IRQS)
		return other_enabled(request);
	error = intx_alone(request);
	if (error)
		return error;
	if (request->data == VFIO_IRQ_SET_DATA_EVENTFD) {
		fd = request->with.fds[0];
		if (fd >= 0) {
			own = soft_eventfd_get(fd, names[request->index]);
			if (own < 0)
				return own;
		}
		/* It can be enabled with no eventfd, to be given one later. */
		soft_eventfd_put(&irqs->triggers[0]);
		irqs->triggers[0] = own;
		irqs->type = VFIO_PCI_INTX_IRQ_INDEX;
		return 0;
	}
	if (!on)
		return not_enabled(request);
	if (is_raised(request, 0) && !soft_config_intx_off(request->device))
		soft_eventfd_signal(irqs->triggers[0]);
	return 0;
}

static int msi_trigger(const struct request *request)
{
	struct soft_irqs *irqs = request->irqs;
	bool on = irqs->type == request->index;
	int result;

	if (on && !request->count && request->data == VFIO_IRQ_SET_DATA_NONE) {
		disable(request->device);
		return 0;
	}
	if (!on && irqs->type != VFIO_PCI_NUM_IRQS)
		return other_enabled(request);
	if (request->data == VFIO_IRQ_SET_DATA_EVENTFD) {
		result = on ? 0 : msi_enable(request);
		if (result)
			return result;
		result = set_vectors(request);
		if (result && !on)
			disable(request->device);
		return result;
	}
	if (!on)
		return not_enabled(request);
	for (unsigned i = 0; i < request->count; i++)
		if (is_raised(request, i))
			soft_eventfd_signal(irqs->triggers[request->start + i]);
	return 0;
}

static int notice_trigger(const struct request *request)
{
	struct soft_irqs *irqs = request->irqs;
	int *trigger = request->index == VFIO_PCI_ERR_IRQ_INDEX ? &irqs->error : &irqs->request;
	int fd, own = -1;

	if (request->data == VFIO_IRQ_SET_DATA_NONE) {
		if (*trigger < 0)
			return SOFT_REFUSE(irq_eventfd_none, EINVAL, names[request->index], 0);
		if (request->count)
			soft_eventfd_signal(*trigger);
		else
			soft_eventfd_put(trigger);
		return 0;
	}
	if (!request->count)
		return SOFT_REFUSE(
			irq_one, EINVAL, names[request->index], request->start, request->count);
	if (request->data == VFIO_IRQ_SET_DATA_BOOL) {
		if (request->with.bools[0])
			soft_eventfd_signal(*trigger);
		return 0;
	}
	fd = request->with.fds[0];
	if (fd < -1)
		return SOFT_REFUSE(value, EINVAL, "an eventfd", (uint32_t)fd);
	if (fd >= 0) {
		own = soft_eventfd_get(fd, names[request->index]);
		if (own < 0)
			return own;
	}
	soft_eventfd_put(trigger);
	*trigger = own;
	return 0;
}

/* What can be done with which; any other action, or several at once, is ENOTTY. */
static const struct {
	unsigned index;
	uint32_t action;
	int (*act)(const struct request *request);
} actions[] = {
	{VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_MASK, intx_mask},
	{VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_UNMASK, intx_unmask},
	{VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER, intx_trigger},
	{VFIO_PCI_MSI_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER, msi_trigger},
	{VFIO_PCI_MSIX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER, msi_trigger},
	{VFIO_PCI_ERR_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER, notice_trigger},
	{VFIO_PCI_REQ_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER, notice_trigger},
};

/* --------------------------------------------------------------- checking */

static int check(const struct soft_device *device, const struct vfio_irq_set *user, size_t *size)
{
	const uint32_t known = VFIO_IRQ_SET_DATA_TYPE_MASK | VFIO_IRQ_SET_ACTION_TYPE_MASK;
	const size_t header = SOFT_END_OF(vfio_irq_set, count);
	unsigned most = count_of(device, user->index), each;

	if (user->argsz < header)
		return SOFT_REFUSE(argsz, EINVAL, "vfio_irq_set", user->argsz, header);
	if (user->index >= VFIO_PCI_NUM_IRQS)
		return SOFT_REFUSE(irq, EINVAL, NULL, user->index);
	if (user->count >= UINT32_MAX - user->start)
		return SOFT_REFUSE(
			irq_range, EINVAL, names[user->index], user->start, user->count, most);
	if (user->flags & ~known)
		return SOFT_REFUSE(flags, EINVAL, "VFIO_DEVICE_SET_IRQS", user->flags, known);
	if (user->start >= most || user->start + user->count > most)
		return SOFT_REFUSE(
			irq_range, EINVAL, names[user->index], user->start, user->count, most);
	switch (user->flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_NONE:
		each = 0;
		break;
	case VFIO_IRQ_SET_DATA_BOOL:
		each = sizeof(uint8_t);
		break;
	case VFIO_IRQ_SET_DATA_EVENTFD:
		each = sizeof(int32_t);
		break;
	default:
		return SOFT_REFUSE(irq_data, EINVAL, NULL, user->flags);
	}
	*size = (size_t)user->count * each;
	if (user->argsz - header < *size)
		return SOFT_REFUSE(
			irq_data_size, EINVAL, NULL, user->argsz - header, user->count, *size);
	return 0;
}

static int act(struct soft_device *device, const struct vfio_irq_set *user, const void *data)
{
	struct request request = {
		.device = device,
		.irqs = &device->pci->irqs,
		.index = user->index,
		.start = user->start,
		.count = user->count,
		.data = user->flags & VFIO_IRQ_SET_DATA_TYPE_MASK,
		.action = user->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK,
		.with.any = data,
	};
	int result;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (actions[i].index != request.index || actions[i].action != request.action)
			continue;
		pthread_mutex_lock(&device->lock);
		result = actions[i].act(&request);
		pthread_mutex_unlock(&device->lock);
		return result;
	}
	return SOFT_REFUSE(irq_action, ENOTTY, names[request.index], request.action);
}

int soft_irq_set(struct soft_device *device, void *argument)
{
	const size_t header = SOFT_END_OF(vfio_irq_set, count);
	struct vfio_irq_set user;
	void *data = NULL;
	size_t size = 0;
	int error = soft_copy_in(&user, argument, header, "vfio_irq_set");

	if (!error)
		error = check(device, &user, &size);
	if (error)
		return error;
	if (size) {
		data = malloc(size);
		if (!data)
			return SOFT_REFUSE(no_memory, ENOMEM, "an interrupt's data", 0);
		error = soft_copy_in(data, (char *)argument + header, size, "an interrupt's data");
	}
	if (!error)
		error = act(device, &user, data);
	free(data);
	return error;
}
