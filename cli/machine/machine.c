/* SPDX-License-Identifier: MIT */
/*
 * dmamap machine: shows what a soft system is about, or what the machine at
 * hand is, and writes it in the form in which --machine takes it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complaint.h"
#include "cli/option.h"
#include "dmamap/machine.h"
#include "dmamap/system.h"
#include "show.h"

enum { OPT_MACHINE = 256, OPT_SYSTEM, OPT_PRINT, OPT_JSON };

static const struct option long_options[] = {
	{"machine", required_argument, NULL, OPT_MACHINE},
	{"system", required_argument, NULL, OPT_SYSTEM},
	{"print", optional_argument, NULL, OPT_PRINT},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

enum form { AS_TABLE, AS_LINE, AS_FILE, AS_JSON };

struct options {
	const char *machine;
	bool linux_system, help;
	enum form form;
};

static void help(void)
{
	fputs("dmamap machine: what a soft system is about, or this machine\n"
	      "\n"
	      "usage: dmamap machine [OPTION...]\n"
	      "\n"
	      "      --machine SPEC  key=value,... or @FILE with one a line, such as\n"
	      "                      iommu=amd,device=0000:00:04.0:nvme (docs/machine-format.md)\n"
	      "      --system WHICH  soft: the default machine (default); linux: this one, as its\n"
	      "                      sysfs shows it. --machine changes either\n"
	      "      --print[=FORM]  the text that --machine takes, every default spelled out:\n"
	      "                      file (default) or line\n"
	      "      --json          as data; fields: docs/machine-format.md\n"
	      "\n"
	      "Exit status: 0 done; 2 bad input, or no IOMMU is on.\n",
		stdout);
}

static int parse_options(
	struct options *options, int argc, char **argv, struct complaint *complaint)
{
	int opt;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (opt) {
		case 'h':
			options->help = true;
			return 0;
		case OPT_MACHINE:
			options->machine = optarg;
			break;
		case OPT_SYSTEM:
			options->linux_system = !strcmp(optarg, "linux");
			if (!options->linux_system && strcmp(optarg, "soft"))
				return complain(complaint,
					"--system %s: no such choice; give soft or linux", optarg);
			break;
		case OPT_PRINT:
			if (optarg && strcmp(optarg, "file") && strcmp(optarg, "line"))
				return complain(complaint,
					"--print=%s: no such choice; give file or line", optarg);
			options->form = optarg && optarg[0] == 'l' ? AS_LINE : AS_FILE;
			break;
		case OPT_JSON:
			options->form = AS_JSON;
			break;
		default:
			return option_unknown(argv, opt, "machine", complaint);
		}
	}
	if (optind < argc)
		return complain(complaint,
			"%s: an option was expected; a machine is --machine '%s'", argv[optind],
			argv[optind]);
	return 0;
}

static int complain_reason(struct complaint *complaint, const char *what, const char *spec,
	int error, struct dmamap_reason *why)
{
	bool file = spec && spec[0] == '@';
	char text[640];

	why->error = -error;
	dmamap_reason_format(why, text, sizeof(text));
	return complain(complaint, "%s%s%s: %s", what, file ? " " : "", file ? spec : "", text);
}

/* The machine that was asked for; owned on success. */
static int find_machine(
	const struct options *options, struct shown *shown, struct complaint *complaint)
{
	struct dmamap_machine machine, base;
	struct dmamap_system *system = NULL;
	struct dmamap_reason why = {0};
	int error;

	dmamap_machine_default(&base);
	if (options->linux_system) {
		error = dmamap_system_linux(&system);
		if (error)
			return complain(complaint, "out of memory");
		error = dmamap_machine_detect(system, &base, &shown->assumed, &why);
		dmamap_system_destroy(system);
		if (error)
			return complain_reason(complaint, "--system linux", NULL, error, &why);
	}
	error = dmamap_machine_load(
		&base, options->machine ? options->machine : "", &machine, &why);
	if (options->linux_system)
		dmamap_machine_free(&base);
	if (error)
		return complain_reason(complaint, "--machine", options->machine, error, &why);
	shown->machine = machine;
	return 0;
}

static int print_text(const struct dmamap_machine *machine, char separator)
{
	size_t size = dmamap_machine_print(machine, separator, NULL, 0) + 1;
	char *text = malloc(size);

	if (!text)
		return -1;
	dmamap_machine_print(machine, separator, text, size);
	printf("%s%s", text, separator == ',' ? "\n" : "");
	free(text);
	return 0;
}

static int show(const struct options *options, const struct shown *shown)
{
	switch (options->form) {
	case AS_LINE:
		return print_text(&shown->machine, ',');
	case AS_FILE:
		return print_text(&shown->machine, '\n');
	case AS_JSON:
		return show_json(stdout, shown);
	default:
		show_table(stdout, shown);
		return 0;
	}
}

int machine_command(int argc, char **argv)
{
	struct options options = {0};
	struct shown shown = {0};
	struct complaint complaint;
	int error = parse_options(&options, argc, argv, &complaint);

	if (!error && options.help) {
		help();
		return EXIT_DONE;
	}
	shown.system = options.linux_system ? "linux" : "soft";
	if (!error)
		error = find_machine(&options, &shown, &complaint);
	if (!error) {
		error = show(&options, &shown);
		if (error)
			complain(&complaint, "out of memory");
		dmamap_machine_free(&shown.machine);
	}
	if (!error)
		return EXIT_DONE;
	fprintf(stderr, "dmamap machine: %s\n", complaint.text);
	return EXIT_USAGE;
}
