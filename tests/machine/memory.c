/* SPDX-License-Identifier: MIT */
/*
 * Without memory: reading and copying again and again, with the n-th allocation
 * failing, until none fails. A call that fails gives ENOMEM with a reason,
 * leaves the machine alone and keeps nothing.
 */
#include <errno.h>

#include "machine/machine.h"
#include "tests/check.h"
#include "tests/faults.h"

static const struct dmamap_machine *from;

static int load(struct dmamap_machine *machine, struct dmamap_reason *why)
{
	return dmamap_machine_load(from,
		"iommu=amd,reserve=0-1,iommu=virtio,device=00:04.0:nvme,"
		"device=00:05.0,iommu=0",
		machine, why);
}

static int load_file(struct dmamap_machine *machine, struct dmamap_reason *why)
{
	return dmamap_machine_load(from, "@/dev/null", machine, why);
}

static int copy(struct dmamap_machine *machine, struct dmamap_reason *why)
{
	return dmamap_machine_copy(machine, from, why);
}

static void each_allocation(void **state)
{
	static int (*const calls[])(struct dmamap_machine *, struct dmamap_reason *) = {
		load, load_file, copy};
	struct dmamap_machine base, machine;
	struct dmamap_reason why = {0};

	(void)state;
	assert_int_equal(dmamap_machine_parse(NULL, "machine=q35-amd", &base, &why), 0);
	from = &base;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		unsigned n = 0;

		do {
			int error;

			machine.page_shift = 99;
			failed = false;
			fail_nth = ++n;
			error = calls[i](&machine, &why);
			fail_nth = 0;
			if (failed) {
				assert_int_equal(error, -ENOMEM);
				assert_ptr_equal(why.kind, &machine_reason_machine_no_memory);
				assert_int_equal(machine.page_shift, 99);
			} else {
				assert_int_equal(error, 0);
				dmamap_machine_free(&machine);
			}
		} while (failed);
		assert_true(n > 8);
	}
	dmamap_machine_free(&base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
