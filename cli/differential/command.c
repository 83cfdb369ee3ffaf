/* SPDX-License-Identifier: MIT */
/*
 * The two systems of dmamap replay --random: Linux and a soft system that is
 * built as the machine at hand; or two soft systems that are alike, which shows
 * that the soft system answers the same again.
 */
#include "cli/differential/command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/differential/differential.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* Two huge pages at once: one for memory, one for a file. */
static bool has_huge_pages(void)
{
	void *two = mmap(NULL, 2 * HUGE_PAGE, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);

	if (two == MAP_FAILED)
		return false;
	munmap(two, 2 * HUGE_PAGE);
	return true;
}

static bool has_iommufd(struct dmamap_system *system)
{
	int fd = system->ops->open(system, "/dev/iommu", O_RDWR);

	if (fd >= 0)
		system->ops->close(system, fd);
	return fd >= 0;
}

static struct world_host find_host(
	struct dmamap_system *reference, const struct dmamap_machine *machine, bool linux_system)
{
	struct world_host host = {.machine = machine,
		.iommufd = has_iommufd(reference),
		.huge_pages = has_huge_pages()};

	for (size_t i = 0; i < machine->n_devices && !host.dma; i++) {
		const struct pci_device device = {
			.vendor = machine->devices[i].vendor, .device = machine->devices[i].device};

		host.dma = !linux_system || edu_is(&device);
		host.dma_device = (unsigned)i;
	}
	return host;
}

static int refuse(const char *what, int error, const struct dmamap_reason *why)
{
	char text[512];

	if (why->kind)
		dmamap_reason_format(why, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s", strerror(-error));
	fprintf(stderr, "dmamap replay: %s: %s\n", what, text);
	return EXIT_USAGE;
}

/* The machine that Linux shows, or the default; then what was given on top of it. */
static int find_machine(const struct replay_options *options, struct dmamap_system *reference,
	struct dmamap_machine *machine, struct dmamap_reason *why)
{
	struct dmamap_machine detected;
	int error;

	if (!reference)
		return dmamap_machine_load(
			NULL, options->machine ? options->machine : "", machine, why);
	error = dmamap_machine_detect(reference, &detected, NULL, why);
	if (error || !options->machine) {
		*machine = detected;
		return error;
	}
	error = dmamap_machine_load(&detected, options->machine, machine, why);
	dmamap_machine_free(&detected);
	return error;
}

static int run(const struct replay_options *options, struct dmamap_system *reference,
	struct dmamap_system *soft, const struct dmamap_machine *machine)
{
	struct differential differential = {
		.pair = {.reference = reference, .soft = soft, .machine = machine},
		.host = find_host(reference, machine, options->linux_system),
		.seed = options->seed,
		.calls = options->random,
		.save = options->save,
		.out = stdout,
		.progress = isatty(STDERR_FILENO) ? stderr : NULL,
	};
	int error;

	if (!options->has_seed && getrandom(&differential.seed, 4, 0) != 4)
		differential.seed = (uint64_t)getpid();
	/* First of all, so that it is known whatever becomes of the machine. */
	printf("seed %" PRIu64 "\n", differential.seed);
	fflush(stdout);
	error = differential_run(&differential);
	if (error) {
		fprintf(stderr, "dmamap replay: random calls: %s\n", strerror(-error));
		return EXIT_USAGE;
	}
	printf("%" PRIu64 " calls in %.1f s, %.0f a second, seed %" PRIu64 ": ", differential.made,
		differential.seconds,
		differential.seconds > 0 ? (double)differential.made / differential.seconds : 0,
		differential.seed);
	if (!differential.mismatches)
		puts("no mismatch");
	else
		printf("%" PRIu64 " mismatches of %u kinds\n", differential.mismatches,
			differential.kinds);
	return differential.mismatches ? EXIT_FOUND : EXIT_DONE;
}

int differential_command(const struct replay_options *options)
{
	struct dmamap_system *reference = NULL, *soft = NULL;
	struct dmamap_machine machine = {0};
	struct dmamap_reason why = {0};
	int error = 0, status;

	if (options->linux_system)
		error = dmamap_system_linux(&reference);
	if (!error)
		error = find_machine(options, reference, &machine, &why);
	if (!error && !machine.n_devices)
		error = -ENODEV;
	if (!error && !reference)
		error = dmamap_system_soft(&machine, &reference, &why);
	if (!error)
		error = dmamap_system_soft(&machine, &soft, &why);
	status = error ? refuse(options->linux_system ? "--system linux" : "--system soft", error,
				 &why)
		       : run(options, reference, soft, &machine);
	dmamap_system_destroy(soft);
	dmamap_system_destroy(reference);
	dmamap_machine_free(&machine);
	return status;
}
