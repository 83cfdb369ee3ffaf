/* SPDX-License-Identifier: MIT */
/*
 * What the device may map: coherent memory, the IOTLB, the file and umem, one
 * rule a test. "7.3" is Linux 7.3.4, drivers/vdpa/vdpa_user/.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/engine/bounce.h"

/* --------------------------------------------------------------- coherent */

static int ring(unsigned page_shift, uint64_t bounce_size, unsigned quirks)
{
	struct dmamap_bounce *bounce = make(&(struct dmamap_bounce_config){
		.page_shift = page_shift, .bounce_size = bounce_size, .quirks = quirks});
	uint64_t iova;
	void *address;
	int rc;

	why.kind = NULL;
	/* A split ring of 256 entries. */
	rc = dmamap_bounce_coherent_alloc(bounce, 10246, &iova, &address, &why);
	if (!rc) {
		assert_true(iova >= bounce_size && iova + 10246 <= 1152 * MIB);
		assert_int_equal(dmamap_bounce_coherent_free(bounce, iova, 10246, &why), 0);
	}
	dmamap_bounce_destroy(bounce);
	return rc;
}

/*
 * 7.3, vduse_domain_create(): the coherent range starts at a count of 4 KiB
 * units, taken as pages. With 64 KiB pages 64 MiB leave 128 MiB, 72 MiB nothing.
 */
static void coherent_start_of_linux(void **state)
{
	static const struct {
		unsigned page_shift;
		uint64_t bounce_size;
		int rc;
	} rows[] = {{16, 64 * MIB, 0}, {16, 72 * MIB, -E2BIG}, {16, 1024 * MIB, -E2BIG},
		{14, 256 * MIB, 0}, {14, 288 * MIB, -E2BIG}, {12, 1024 * MIB, 0}};
	struct dmamap_bounce_info info;
	struct dmamap_bounce *bounce;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(ring(rows[i].page_shift, rows[i].bounce_size, 0), 0);
		assert_int_equal(
			ring(rows[i].page_shift, rows[i].bounce_size, DMAMAP_BOUNCE_QUIRKS_7_3),
			rows[i].rc);
	}
	assert_int_equal(ring(16, 72 * MIB, DMAMAP_BOUNCE_QUIRKS_7_3), -E2BIG);
	assert_says("there is no coherent range: it would start at 0x48000000, page 18432 of 64 "
		    "KiB, and IOVAs end at 0x47ffffff (Linux 7.3 counts the bounce buffer's 4 KiB "
		    "units as pages)");
	bounce = make(&(struct dmamap_bounce_config){
		.page_shift = 16, .quirks = DMAMAP_BOUNCE_QUIRK_COHERENT_START});
	dmamap_bounce_info(bounce, &info);
	assert_int_equal(info.coherent.first, 1024 * MIB);
	assert_int_equal(info.coherent.last, 1152 * MIB - 1);
	dmamap_bounce_destroy(bounce);
}

static void coherent_memory_is_shared(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	unsigned char *device = device_of(bounce), *ours, *other;
	struct dmamap_iotlb_entry entry;
	uint64_t iova, next;

	(void)state;
	assert_int_equal(
		dmamap_bounce_coherent_alloc(bounce, 10246, &iova, (void **)&ours, &why), 0);
	assert_int_equal(iova, 1152 * MIB - 64 * KIB); /* from the top */
	assert_int_equal(
		dmamap_bounce_coherent_alloc(bounce, 64 * KIB + 1, &next, (void **)&other, &why),
		0);
	assert_int_equal(next, 1152 * MIB - 4 * 64 * KIB); /* two pages, aligned to two */
	assert_true(all(ours, 0, 64 * KIB));
	ours[10] = 'd';
	device[iova + 11] = 'v';
	assert_int_equal(device[iova + 10], 'd');
	assert_int_equal(ours[11], 'v');
	/* The entry ends with the bytes asked for (7.3). */
	assert_true(dmamap_bounce_iotlb_find(bounce, iova + 10245, UINT64_MAX, &entry));
	assert_int_equal(entry.first, iova);
	assert_int_equal(entry.last, iova + 10245);
	assert_int_equal(entry.offset, iova);
	assert_int_equal(entry.prot, DMAMAP_READ | DMAMAP_WRITE);
	assert_false(entry.umem);
	assert_false(dmamap_bounce_iotlb_find(bounce, iova + 10246, UINT64_MAX, &entry));
	assert_refused(dmamap_bounce_coherent_free(bounce, iova, 10245, &why), &why, EINVAL,
		&dmamap_reason_coherent_not_there);
	assert_refused(dmamap_bounce_coherent_free(bounce, iova + 1, 10245, &why), &why, EINVAL,
		&dmamap_reason_coherent_not_there);
	assert_refused(dmamap_bounce_coherent_free(bounce, 0, MIB, &why), &why, EINVAL,
		&dmamap_reason_coherent_not_there);
	assert_int_equal(dmamap_bounce_coherent_free(bounce, iova, 10246, &why), 0);
	assert_refused(dmamap_bounce_coherent_free(bounce, iova, 10246, &why), &why, EINVAL,
		&dmamap_reason_coherent_not_there);
	assert_true(all(device + iova, 0, 64 * KIB));
	assert_refused(dmamap_bounce_coherent_alloc(bounce, 0, &iova, (void **)&ours, &why), &why,
		EINVAL, &dmamap_reason_bounce_request);
	assert_refused(
		dmamap_bounce_coherent_alloc(bounce, 1025 * MIB, &iova, (void **)&ours, &why), &why,
		E2BIG, &dmamap_reason_coherent_too_large);
	device_gone(device);
	dmamap_bounce_destroy(bounce);
}

/* Pages are zero when they are allocated, whatever was there, or is written to them when free. */
static void coherent_memory_starts_zero(void **state)
{
	(void)state;
	for (unsigned keep_stale = 0; keep_stale < 2; keep_stale++) {
		struct dmamap_bounce *bounce = make_small(keep_stale);
		unsigned char *device = device_of(bounce), *ours;
		uint64_t iova, again;

		assert_int_equal(
			dmamap_bounce_coherent_alloc(bounce, 100, &iova, (void **)&ours, &why), 0);
		memset(ours, 's', 100);
		assert_int_equal(dmamap_bounce_coherent_free(bounce, iova, 100, &why), 0);
		assert_true(all(device + iova, keep_stale ? 's' : 0, 100));
		device[iova + 7] = 'v';
		assert_int_equal(
			dmamap_bounce_coherent_alloc(bounce, 100, &again, (void **)&ours, &why), 0);
		assert_int_equal(again, iova);
		assert_true(all(ours, 0, 64 * KIB));
		device_gone(device);
		dmamap_bounce_destroy(bounce);
	}
}

/* A range that is used up, and an IOTLB of 2048 entries (7.3, max_iotlb_entries). */
static void coherent_memory_runs_out(void **state)
{
	struct dmamap_bounce *bounce = make(&(struct dmamap_bounce_config){
		.bounce_size = 64 * KIB, .iova_limit = 96 * KIB - 1});
	static uint64_t iova[DMAMAP_BOUNCE_IOTLB_MOST];
	uint64_t none;
	void *address;
	unsigned n = 0;

	(void)state;
	while (!dmamap_bounce_coherent_alloc(bounce, 1, &iova[n], &address, &why))
		n++;
	assert_int_equal(n, 8);
	assert_ptr_equal(why.kind, &dmamap_reason_coherent_full);
	assert_int_equal(why.error, ENOSPC);
	dmamap_bounce_destroy(bounce);

	bounce = make_small(false);
	for (n = 0; !dmamap_bounce_coherent_alloc(bounce, 1, &none, &address, &why); n++)
		iova[n] = none;
	assert_int_equal(n, DMAMAP_BOUNCE_IOTLB_MOST);
	assert_ptr_equal(why.kind, &dmamap_reason_iotlb_full);
	assert_int_equal(why.error, ENOMEM);
	/* The bounce buffer finds no place either, and takes no units. */
	assert_refused(dmamap_bounce_map(bounce, address, 1, 3, 0, &none, &why), &why, ENOMEM,
		&dmamap_reason_iotlb_full);
	assert_int_equal(count(bounce).live_units, 0);
	assert_int_equal(count(bounce).to_device, 0);
	assert_int_equal(dmamap_bounce_coherent_free(bounce, iova[1000], 1, &why), 0);
	map(bounce, &none, 1, 3);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(dmamap_bounce_coherent_free(bounce, iova[i], 1, &why),
			i == 1000 ? -EINVAL : 0);
	dmamap_bounce_destroy(bounce);
}

/* ------------------------------------------------------------------ IOTLB */

/* The bounce range is there from the first map on, until reset (7.3). */
static void bounce_buffer_in_the_iotlb(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	struct dmamap_iotlb_entry entry;
	static char buffer[16];
	uint64_t iova, coherent;
	void *address;

	(void)state;
	assert_int_equal(dmamap_bounce_coherent_alloc(bounce, 5, &coherent, &address, &why), 0);
	assert_true(dmamap_bounce_iotlb_find(bounce, 0, UINT64_MAX, &entry));
	assert_int_equal(entry.first, coherent);
	iova = map(bounce, buffer, sizeof(buffer), DMAMAP_READ);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(dmamap_bounce_iotlb_find(bounce, MIB - 1, UINT64_MAX, &entry));
		assert_int_equal(entry.first, 0);
		assert_int_equal(entry.last, MIB - 1);
		assert_int_equal(entry.offset, 0);
		assert_true(entry.umem);
		assert_true(dmamap_bounce_iotlb_find(bounce, MIB, UINT64_MAX, &entry));
		assert_int_equal(entry.first, coherent);
		assert_false(dmamap_bounce_iotlb_find(bounce, MIB, coherent - 1, &entry));
		assert_false(dmamap_bounce_iotlb_find(bounce, 1, 0, &entry));
		dmamap_bounce_reset(bounce);
		assert_false(dmamap_bounce_iotlb_find(bounce, 0, coherent - 1, &entry));
		dmamap_bounce_reset(bounce);
		unmap(bounce, iova, sizeof(buffer));
		iova = map(bounce, buffer, sizeof(buffer), DMAMAP_READ);
	}
	dmamap_bounce_destroy(bounce);
}

/* A device cannot cut the file off: the driver's next copy would be a signal. */
static void the_file_keeps_its_size(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	int file = dup(dmamap_bounce_file(bounce));

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(file, (off_t)(2048 * MIB)), -1);
	assert_int_equal(lseek(file, 0, SEEK_END), 1152 * MIB);
	assert_true(fcntl(dmamap_bounce_file(bounce), F_GETFD) & FD_CLOEXEC);
	close(file);
	dmamap_bounce_destroy(bounce);
}

/* Another process maps the file, answers a read and goes. */
static void a_device_in_another_process(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	unsigned char request[16], answer[4 * KIB];
	uint64_t out, in;
	pid_t child;
	int status;

	(void)state;
	memset(request, 'q', sizeof(request));
	out = map(bounce, request, sizeof(request), DMAMAP_READ);
	in = map(bounce, answer, sizeof(answer), DMAMAP_WRITE);
	child = fork();
	if (!child) {
		unsigned char *device = mmap(NULL, DMAMAP_BOUNCE_IOVA_LIMIT + 1,
			PROT_READ | PROT_WRITE, MAP_SHARED, dmamap_bounce_file(bounce), 0);

		if (device == MAP_FAILED || !all(device + out, 'q', sizeof(request)) ||
			!all(device + out + sizeof(request), 0, 4 * KIB - sizeof(request)))
			_exit(1);
		memset(device + in, 'a', sizeof(answer));
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	unmap(bounce, in, sizeof(answer));
	unmap(bounce, out, sizeof(request));
	assert_true(all(answer, 'a', sizeof(answer)));
	dmamap_bounce_destroy(bounce);
}

/* ------------------------------------------------------------------- umem */

/* vduse_dev_reg_umem() of 7.3: its order of checks, and what it takes. */
static void umem_is_checked(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	unsigned char *umem = make_umem();
	long page = sysconf(_SC_PAGESIZE);
	unsigned char *hole =
		mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *aligned = (void *)(((uintptr_t)hole + 65535) & ~65535ul);
	static char buffer[16];

	(void)state;
	assert_refused(dmamap_bounce_umem_add(bounce, umem, MIB, &why), &why, EINVAL,
		&dmamap_reason_umem_no_map);
	assert_refused(
		dmamap_bounce_umem_remove(bounce, &why), &why, ENOENT, &dmamap_reason_umem_none);
	map(bounce, buffer, sizeof(buffer), DMAMAP_READ);
	assert_refused(dmamap_bounce_umem_add(bounce, umem, MIB - 1, &why), &why, EINVAL,
		&dmamap_reason_umem_shape);
	assert_refused(dmamap_bounce_umem_add(bounce, umem + 4096, MIB, &why), &why, EINVAL,
		&dmamap_reason_umem_shape);
	assert_refused(dmamap_bounce_umem_add(bounce, (void *)(UINTPTR_MAX - 65535), MIB, &why),
		&why, EINVAL, &dmamap_reason_umem_shape);
	munmap(aligned + MIB / 2, (size_t)page);
	assert_refused(dmamap_bounce_umem_add(bounce, aligned, MIB, &why), &why, EFAULT,
		&dmamap_reason_populate);
	assert_int_equal(dmamap_bounce_umem_add(bounce, umem, MIB, &why), 0);
	assert_refused(dmamap_bounce_umem_add(bounce, umem, MIB, &why), &why, EEXIST,
		&dmamap_reason_umem_there);
	assert_refused(dmamap_bounce_umem_add(bounce, umem, 1, &why), &why, EINVAL,
		&dmamap_reason_umem_shape);
	/* It survives a reset, after which there is nothing to replace until the next map. */
	dmamap_bounce_reset(bounce);
	assert_refused(dmamap_bounce_umem_add(bounce, umem, MIB, &why), &why, EINVAL,
		&dmamap_reason_umem_no_map);
	assert_int_equal(dmamap_bounce_umem_remove(bounce, &why), 0);
	assert_refused(
		dmamap_bounce_umem_remove(bounce, &why), &why, ENOENT, &dmamap_reason_umem_none);
	munmap(hole, 2 * MIB);
	free(umem);
	dmamap_bounce_destroy(bounce);
}

/* Bytes follow their mapping there and back; @keep_stale: copies stay behind. */
static void move(bool keep_stale)
{
	struct dmamap_bounce *bounce = make_small(keep_stale);
	unsigned char *device = device_of(bounce), *umem = make_umem();
	unsigned char there[100], back[100], late[100];
	uint64_t iova[3], page;

	memset(there, 't', sizeof(there));
	memset(back, 'b', sizeof(back));
	memset(late, 'l', sizeof(late));
	iova[0] = map(bounce, there, sizeof(there), DMAMAP_READ | DMAMAP_WRITE);
	iova[1] = map(bounce, back, sizeof(back), DMAMAP_READ);
	page = iova[0] & ~(64 * KIB - 1);
	device[page] = 'w'; /* in the same page, in no mapping */
	assert_int_equal(dmamap_bounce_umem_add(bounce, umem, MIB, &why), 0);
	/* A page with a mapping is copied whole, others are left alone (7.3). */
	assert_true(all(umem + iova[0], 't', 100) && all(umem + iova[1], 'b', 100));
	assert_int_equal(umem[page], 'w');
	assert_int_equal(umem[page + 1], 0);
	assert_true(all(umem, 'u', page));
	/* Nothing of it stays where a device may still look. */
	assert_true(all(device + iova[0], keep_stale ? 't' : 0, 100));
	assert_true(all(device + page, keep_stale ? 'w' : 0, 1));
	/* From now on all goes through umem. */
	iova[2] = map(bounce, late, sizeof(late), DMAMAP_READ);
	assert_true(all(umem + iova[2], 'l', 100) && all(device + iova[2], 0, 100));
	memset(umem + iova[0], 'v', 100);
	assert_int_equal(dmamap_bounce_sync_for_cpu(bounce, iova[0], 50, &why), 0);
	assert_true(all(there, 'v', 50) && all(there + 50, 't', 50));
	unmap(bounce, iova[1], 100);
	assert_true(all(umem + iova[1], keep_stale ? 'b' : 0, 100));
	assert_int_equal(dmamap_bounce_umem_remove(bounce, &why), 0);
	assert_true(all(device + iova[0], 'v', 100) && all(device + iova[2], 'l', 100));
	assert_true(all(umem + iova[0], keep_stale ? 'v' : 0, 100));
	assert_true(all(umem + iova[2], keep_stale ? 'l' : 0, 100));
	assert_true(all(umem, 'u', page));
	unmap(bounce, iova[0], 100);
	assert_true(all(there, 'v', 100));
	unmap(bounce, iova[2], 100);
	device[page] = 0;
	assert_true(keep_stale || all(device, 0, MIB));
	free(umem);
	device_gone(device);
	dmamap_bounce_destroy(bounce);
}

static void umem_and_back(void **state)
{
	(void)state;
	move(false);
	move(true);
}

static void coherent_without_memory(void **state)
{
	struct dmamap_bounce *bounce = make_small(false);
	uint64_t iova;
	void *address;

	(void)state;
	engine_fail_nth = 1;
	assert_refused(dmamap_bounce_coherent_alloc(bounce, 1, &iova, &address, &why), &why, ENOMEM,
		&dmamap_reason_no_memory);
	assert_false(
		dmamap_bounce_iotlb_find(bounce, 0, UINT64_MAX, &(struct dmamap_iotlb_entry){0}));
	assert_int_equal(dmamap_bounce_coherent_alloc(bounce, 1, &iova, &address, &why), 0);
	assert_int_equal(iova, 1152 * MIB - 64 * KIB);
	dmamap_bounce_destroy(bounce);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coherent_start_of_linux),
		cmocka_unit_test(coherent_memory_is_shared),
		cmocka_unit_test(coherent_memory_starts_zero),
		cmocka_unit_test(coherent_memory_runs_out),
		cmocka_unit_test(bounce_buffer_in_the_iotlb),
		cmocka_unit_test(the_file_keeps_its_size),
		cmocka_unit_test(a_device_in_another_process),
		cmocka_unit_test(umem_is_checked),
		cmocka_unit_test(umem_and_back),
		cmocka_unit_test(coherent_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
