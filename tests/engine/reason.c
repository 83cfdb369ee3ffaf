/* SPDX-License-Identifier: MIT */
/* A reason is one sentence with the numbers that decided. */
#include <errno.h>

#include "dmamap/engine.h"
#include "tests/check.h"

static const struct dmamap_reason_kind kind = {
	.name = "sample",
	.text = "{0x} and {1d}, {2s} or {3s}, {t}; {9x} {0q} { are no places",
};

static void sentence(void **state)
{
	struct dmamap_reason why = {0};
	char text[128];
	const char *wanted =
		"0xfee00000 and 42, 2 MiB or 4097 bytes, MSI; {9x} {0q} { are no places";

	(void)state;
	assert_int_equal(
		DMAMAP_REFUSE(&why, &kind, EINVAL, "MSI", 0xfee00000, 42, 2 << 20, 4097), -EINVAL);
	assert_ptr_equal(why.kind, &kind);
	assert_int_equal(why.error, EINVAL);
	assert_int_equal(dmamap_reason_format(&why, text, sizeof(text)), strlen(wanted));
	assert_string_equal(text, wanted);
}

static void cut_to_fit(void **state)
{
	struct dmamap_reason why;
	char text[8];

	(void)state;
	DMAMAP_REFUSE(&why, &kind, EINVAL, "MSI", 0xfee00000);
	assert_true(dmamap_reason_format(&why, text, sizeof(text)) > sizeof(text));
	assert_string_equal(text, "0xfee00");
	dmamap_reason_format(&why, text, 1);
	assert_string_equal(text, "");
}

static void without_a_kind_the_errno(void **state)
{
	struct dmamap_reason why = {.error = EEXIST};
	char text[64];

	(void)state;
	dmamap_reason_format(&why, text, sizeof(text));
	assert_string_equal(text, "File exists");
}

static void long_labels_end(void **state)
{
	struct dmamap_reason why;
	char label[300];

	(void)state;
	memset(label, 'x', sizeof(label) - 1);
	label[sizeof(label) - 1] = '\0';
	DMAMAP_REFUSE(&why, &kind, EINVAL, label, 0);
	assert_int_equal(strlen(why.label), sizeof(why.label) - 1);
	assert_int_equal(DMAMAP_REFUSE(NULL, &kind, ENOENT, label, 0), -ENOENT);
}

static void version(void **state)
{
	(void)state;
	assert_string_equal(dmamap_version(), DMAMAP_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentence),
		cmocka_unit_test(cut_to_fit),
		cmocka_unit_test(without_a_kind_the_errno),
		cmocka_unit_test(long_labels_end),
		cmocka_unit_test(version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
