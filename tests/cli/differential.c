/* SPDX-License-Identifier: MIT */
/*
 * Random calls: a seed brings the same ones back, all of them are statements of
 * a case, and what differs becomes a case of a few lines. A second soft system
 * stands where the kernel would.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/differential/differential.h"
#include "cli/differential/generate.h"
#include "cli/differential/shrink.h"
#include "cli/replay/case.h"
#include "tests/check.h"

static struct dmamap_machine machine;
static struct world_host host = {.machine = &machine, .iommufd = true, .huge_pages = true};

static int set_up(void **state)
{
	(void)state;
	dmamap_machine_default(&machine);
	return 0;
}

static void a_seed_brings_the_same_calls_back(void **state)
{
	struct world *one = calloc(1, sizeof(*one)), *other = calloc(1, sizeof(*other));
	bool differ = false;

	(void)state;
	assert_true(one && other);
	for (uint64_t i = 0; i < 50; i++) {
		generate(one, &host, 7, i, UINT64_MAX);
		generate(other, &host, 7, i, UINT64_MAX);
		assert_false(one->script.failed);
		assert_int_equal(one->script.length, other->script.length);
		assert_memory_equal(one->script.text, other->script.text, one->script.length);
		generate(other, &host, 8, i, UINT64_MAX);
		differ |= one->script.length != other->script.length;
	}
	assert_true(differ);
	script_free(&one->script);
	script_free(&other->script);
	free(one);
	free(other);
}

static void all_lines_are_statements(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct complaint complaint;

	(void)state;
	assert_non_null(world);
	for (uint64_t i = 0; i < 300; i++) {
		struct case_file *file = case_create("random");

		assert_non_null(file);
		generate(world, &host, 3, i, UINT64_MAX);
		for (size_t k = 0; k < world->script.n; k++) {
			const char *line = script_line(&world->script, k);

			if (case_append(file, line, strlen(line), &complaint))
				fail_msg("%s: %s", line, complaint.text);
		}
		case_destroy(file);
	}
	script_free(&world->script);
	free(world);
}

/* Both lines must be there, in this order, the second with an IOVA of at least 1 MiB. */
static bool needs_two_lines(void *context, const struct script *script)
{
	size_t i = 0;
	const char *iova;

	(*(unsigned *)context)++;
	while (i < script->n && strncmp(script_line(script, i), "memory ram", 10) != 0)
		i++;
	for (i++; i < script->n; i++) {
		if (strncmp(script_line(script, i), "map c0 va=ram", 13) != 0)
			continue;
		iova = strstr(script_line(script, i), "iova=");
		if (iova && (strtoull(iova + 5, NULL, 0) >= 1 << 20 || !strcmp(iova, "iova=1M")))
			return true;
	}
	return false;
}

static void a_script_shrinks_to_what_is_needed(void **state)
{
	unsigned asked = 0;
	struct shrink small = {.shows = needs_two_lines, .context = &asked, .budget = 500};

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		if (i == 10)
			script_add(&small.script, "memory ram 128K");
		else if (i == 30)
			script_add(&small.script,
				"map c0 va=ram+0x3000 iova=0xfee00000 size=0x3000 flags=read");
		else
			script_add(&small.script, "api_version c%u", i);
		script_end(&small.script);
	}
	shrink(&small);
	assert_int_equal(small.script.n, 2);
	assert_string_equal(script_line(&small.script, 0), "memory ram");
	assert_string_equal(script_line(&small.script, 1), "map c0 va=ram iova=1M");
	assert_true(asked < 200);
	script_free(&small.script);
}

static char *output;
static size_t output_size;

static struct differential run(const struct dmamap_machine *reference, uint64_t calls)
{
	struct differential differential = {
		.pair = {.machine = &machine},
		.host = {.machine = &machine, .iommufd = true},
		.seed = 1,
		.calls = calls,
		.out = open_memstream(&output, &output_size),
	};
	struct dmamap_reason why;

	assert_non_null(differential.out);
	assert_int_equal(dmamap_system_soft(reference, &differential.pair.reference, &why), 0);
	assert_int_equal(dmamap_system_soft(&machine, &differential.pair.soft, &why), 0);
	assert_int_equal(differential_run(&differential), 0);
	dmamap_system_destroy(differential.pair.reference);
	dmamap_system_destroy(differential.pair.soft);
	assert_int_equal(fclose(differential.out), 0);
	return differential;
}

static void a_system_agrees_with_itself(void **state)
{
	struct differential done = run(&machine, 3000);

	(void)state;
	if (done.mismatches)
		fail_msg("%s", output);
	assert_true(done.made >= 3000);
	free(output);
}

/* The lines of what was printed that are statements other than title and source. */
static unsigned calls_in(const char *text)
{
	unsigned n = 0;

	while (*text) {
		n += *text != '\n' && *text != '#' && strncmp(text, "format ", 7) != 0 &&
		     strncmp(text, "title ", 6) != 0 && strncmp(text, "source ", 7) != 0;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return n;
}

static void fewer_entries_are_found(void **state)
{
	struct dmamap_machine other = machine;
	struct differential done;

	(void)state;
	other.dma_entry_limit = 2;
	done = run(&other, 4000);
	if (!done.mismatches || !strstr(output, "=> ENOSPC"))
		fail_msg("%s", output);
	free(output);
}

static void another_aperture_is_found(void **state)
{
	struct dmamap_machine_iommu iommu = machine.iommus[0];
	struct dmamap_machine other = machine;
	struct differential done;

	(void)state;
	iommu.aperture_bits = 39;
	other.iommus = &iommu;
	done = run(&other, 1000);
	assert_true(done.kinds > 0);
	if (calls_in(output) > 8 * done.kinds)
		fail_msg("%u kinds take %u lines:\n%s", done.kinds, calls_in(output), output);
	free(output);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_brings_the_same_calls_back),
		cmocka_unit_test(all_lines_are_statements),
		cmocka_unit_test(a_script_shrinks_to_what_is_needed),
		cmocka_unit_test(a_system_agrees_with_itself),
		cmocka_unit_test(fewer_entries_are_found),
		cmocka_unit_test(another_aperture_is_found),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
