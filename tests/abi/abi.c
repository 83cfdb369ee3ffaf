/* SPDX-License-Identifier: MIT */
/* abi/ has the kernel's sizes, offsets and numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "entries.h"

static const struct entry *find(const char *name)
{
	for (size_t i = 0; i < own_n; i++)
		if (!strcmp(own_entries[i].name, name))
			return &own_entries[i];
	return NULL;
}

static void entries_equal_the_kernels(void **state)
{
	size_t different = 0;

	(void)state;
	for (size_t i = 0; i < kernel_n; i++) {
		const struct entry *kernel = &kernel_entries[i], *own = find(kernel->name);

		assert_non_null(own);
		if (own->value != kernel->value) {
			print_error("%s: %llu in abi/, %llu in the kernel's header\n", own->name,
				own->value, kernel->value);
			different++;
		}
	}
	assert_int_equal(different, 0);
}

static void no_entry_is_listed_twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < own_n; i++)
		assert_ptr_equal(find(own_entries[i].name), &own_entries[i]);
}

static void every_entry_was_compared(void **state)
{
	(void)state;
	if (kernel_n < own_n) {
		print_message("compared %zu of %zu entries, the headers are Linux %u.%u's; for all "
			      "of them: scripts/kernel-headers, then meson setup --reconfigure\n",
			kernel_n, own_n, kernel_version >> 16, kernel_version >> 8 & 0xff);
		skip();
	}
	assert_int_equal(kernel_n, own_n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_equal_the_kernels),
		cmocka_unit_test(no_entry_is_listed_twice),
		cmocka_unit_test(every_entry_was_compared),
	};

	return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}
