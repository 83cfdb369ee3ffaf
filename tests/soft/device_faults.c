/* SPDX-License-Identifier: MIT */
/*
 * A device without memory: its life from the system's creation to its end again
 * and again, with the n-th allocation failing, until none fails. A call that
 * fails leaves nothing behind, and succeeds when it is made again.
 */
#include "tests/soft/faults.h"
#include "tests/soft/function.h"

/* struct vfio_irq_set with two eventfds. */
struct set {
	uint32_t argsz, flags, index, start, count;
	int32_t fds[2];
};

static int set_irqs(struct rig *rig, uint32_t action, uint32_t index, uint32_t n, const int *fds)
{
	struct set set = {28, VFIO_IRQ_SET_DATA_EVENTFD | action, index, 0, n, {fds[0], fds[1]}};

	return device_call(rig, VFIO_DEVICE_SET_IRQS, &set);
}

static int ioeventfd(struct rig *rig, int fd)
{
	struct vfio_device_ioeventfd user = {
		.argsz = 28, .flags = 4, .offset = REGION(2), .data = 1, .fd = fd};

	return device_call(rig, VFIO_DEVICE_IOEVENTFD, &user);
}

static int dmabuf(struct rig *rig)
{
	struct {
		uint32_t argsz, flags, region_index, open_flags, more, nr_ranges;
		struct vfio_region_dma_range range;
	} user = {sizeof(user), VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_DMA_BUF, 2, 0, 0, 1,
		{0, PAGE}};

	return device_call(rig, VFIO_DEVICE_FEATURE, &user);
}

static int hot_reset(struct rig *rig, unsigned long request)
{
	struct {
		uint32_t argsz, flags, count;
		struct vfio_pci_dependent_device devices[4];
	} user = {.argsz = sizeof(user)};

	return device_call(rig, request, &user);
}

static void live(const int *fds)
{
	struct dmamap_machine_device function = function_default();
	struct rig rig = {.group = -1};
	struct dmamap_machine machine;
	uint32_t id;
	int buf;

	dmamap_machine_default(&machine);
	strcpy(function.bdf, "0000:01:00.0");
	machine.devices = &function;
	machine.n_devices = 1;
	FAULTS_MUST(dmamap_system_soft(&machine, &rig.soft, NULL));
	rig.system = rig.soft;
	rig.container = FAULTS_MUST(rig_open(&rig, "/dev/iommu"));
	rig.device = FAULTS_MUST(rig_open(&rig, "/dev/vfio/devices/vfio0"));
	FAULTS_MUST(rig_bind(&rig, rig.device, rig.container, &id));
	/* INTx with an eventfd that unmasks it, which starts a thread. */
	FAULTS_MUST(set_irqs(&rig, VFIO_IRQ_SET_ACTION_TRIGGER, 0, 1, fds));
	/* The thread and what it needs stay when only the rest of the call fails. */
	if (set_irqs(&rig, VFIO_IRQ_SET_ACTION_UNMASK, 0, 1, fds))
		assert_int_equal(set_irqs(&rig, VFIO_IRQ_SET_ACTION_UNMASK, 0, 1, fds), 0);
	FAULTS_MUST(set_irqs(&rig, VFIO_IRQ_SET_ACTION_TRIGGER, 0, 1, fds));
	FAULTS_MUST(ioeventfd(&rig, fds[1]));
	FAULTS_MUST(hot_reset(&rig, VFIO_DEVICE_GET_PCI_HOT_RESET_INFO));
	FAULTS_MUST(hot_reset(&rig, VFIO_DEVICE_PCI_HOT_RESET));
	buf = FAULTS_MUST(dmabuf(&rig));
	rig_close(&rig, &buf);
	rig_close(&rig, &rig.device);
	rig_close(&rig, &rig.container);
	/* Through its group, with MSI-X. */
	rig.container = FAULTS_MUST(rig_open(&rig, "/dev/vfio/vfio"));
	rig.group = FAULTS_MUST(rig_open(&rig, "/dev/vfio/7"));
	FAULTS_MUST(rig_ioctl(&rig, rig.group, VFIO_GROUP_SET_CONTAINER, &rig.container));
	FAULTS_MUST(rig_ioctl(&rig, rig.container, VFIO_SET_IOMMU, (void *)VFIO_TYPE1v2_IOMMU));
	rig.device = FAULTS_MUST(
		rig_ioctl(&rig, rig.group, VFIO_GROUP_GET_DEVICE_FD, (void *)"0000:01:00.0"));
	FAULTS_MUST(set_irqs(&rig, VFIO_IRQ_SET_ACTION_TRIGGER, 2, 2, fds));
	rig_stop(&rig);
}

static void every_allocation(void **state)
{
	int fds[2] = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eventfd(0, EFD_CLOEXEC)};
	unsigned before = rig_descriptors(), n = 0;

	(void)state;
	do {
		failed = false;
		fail_nth = ++n;
		live(fds);
		fail_nth = 0;
		assert_int_equal(rig_descriptors(), before);
	} while (failed);
	printf("%u allocations\n", n - 1);
	assert_true(n > 20);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
