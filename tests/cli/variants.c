/* SPDX-License-Identifier: MIT */
/* The variants: their names, which globs pick, and which cannot be. */
#include <errno.h>

#include "cli/bench/variants.h"
#include "tests/check.h"

static struct variant variants[VARIANTS_MAX];

static const struct variant *find(const char *name)
{
	size_t n = variants_list(variants);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(variants[i].name, name))
			return &variants[i];
	return NULL;
}

/* Six modes; seven kinds of memory with two prefaults each; three BARs with none. */
static void all_combinations_are_listed_once(void **state)
{
	size_t n = variants_list(variants);

	(void)state;
	assert_int_equal(n, 6 * (7 * 2 + 3));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(variants[i].name, variants[j].name);
}

static void names_are_mode_memory_prefault(void **state)
{
	(void)state;
	assert_non_null(find("vfio_type1_iommu_anonymous_demand"));
	assert_non_null(find("vfio_type1v2_iommu_memfd_hugetlb_1gb_populate"));
	assert_non_null(find("iommufd_compat_type1v2_anonymous_thp_populate"));
	assert_non_null(find("iommufd_file_memfd_hugetlb_2mb_demand"));
	assert_non_null(find("vfio_type1v2_iommu_bar"));
	assert_non_null(find("iommufd_bar_misaligned_4kb"));
	assert_null(find("vfio_type1v2_iommu_bar_populate"));
}

static void globs_pick_and_report_misses(void **state)
{
	const char *const bars[] = {"vfio_type1v2_iommu_bar*"};
	const char *const two[] = {"*_bar", "iommufd_memfd_demand"};
	const char *const wrong[] = {"*_bar", "floppy*"};
	const char *missed;

	(void)state;
	assert_int_equal(variants_pick(variants, variants_list(variants), bars, 1, &missed), 3);
	assert_null(missed);
	assert_int_equal(variants_pick(variants, variants_list(variants), two, 2, &missed), 7);
	assert_null(missed);
	variants_pick(variants, variants_list(variants), wrong, 2, &missed);
	assert_string_equal(missed, "floppy*");
	assert_int_equal(variants_pick(variants, variants_list(variants), NULL, 0, &missed), 102);
}

/* IOMMU_IOAS_MAP_FILE takes memfds only; in no other mode is a combination impossible. */
static void only_map_file_is_choosy(void **state)
{
	size_t n = variants_list(variants);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		bool file = !strcmp(variants[i].mode->name, "iommufd_file");
		bool memfd = !strncmp(variants[i].memory->name, "memfd", 5);

		assert_int_equal(!!variant_impossible(&variants[i]), file && !memfd);
	}
}

/* vfio_dma_mapping_mmio_test: type1 maps BARs, IOMMUFD's modes refuse them with EFAULT. */
static void bars_are_refused_by_iommufd(void **state)
{
	(void)state;
	assert_null(variant_refusal(find("vfio_type1_iommu_bar"), EFAULT));
	assert_non_null(variant_refusal(find("iommufd_bar"), EFAULT));
	assert_non_null(variant_refusal(find("iommufd_compat_type1_bar_misaligned_2mb"), EFAULT));
	assert_null(variant_refusal(find("iommufd_bar"), ENOMEM));
	assert_null(variant_refusal(find("iommufd_anonymous_demand"), EFAULT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_combinations_are_listed_once),
		cmocka_unit_test(names_are_mode_memory_prefault),
		cmocka_unit_test(globs_pick_and_report_misses),
		cmocka_unit_test(only_map_file_is_choosy),
		cmocka_unit_test(bars_are_refused_by_iommufd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
