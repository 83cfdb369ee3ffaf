/* SPDX-License-Identifier: MIT */
/* dmamap: finds the subcommand and hands over. What exists is in one table. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "dmamap/common.h"

static const struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"bench", "time DMA mapping: every mode, memory and prefault", bench_command},
	{"replay", "run cases of calls, and say why each refused one was", replay_command},
	{"machine", "show what a soft system is about, or this machine", machine_command},
	{"vduse-blk", "serve a file as a virtio disk, over VDUSE", vduse_blk_command},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char help_device[] =
	"To measure the kernel, a PCI device must be bound to vfio-pci. Take one that the machine\n"
	"can do without: while it is bound, its usual driver has let go of it.\n"
	"\n"
	"    modprobe vfio-pci\n"
	"    echo vfio-pci > /sys/bus/pci/devices/BDF/driver_override\n"
	"    echo BDF > /sys/bus/pci/devices/BDF/driver/unbind    (where it has a driver)\n"
	"    echo BDF > /sys/bus/pci/drivers_probe\n"
	"\n"
	"BDF is its address as lspci -D prints it, such as 0000:00:03.0. An IOMMU must be on: "
	"where\n"
	"/sys/bus/pci/devices/BDF/iommu_group is missing, turn it on in the firmware and boot "
	"with\n"
	"intel_iommu=on or the like. The iommufd modes need /dev/iommu (modprobe iommufd). "
	"Without\n"
	"root, the user needs the files below /dev/vfio and a locked-memory limit (ulimit -l) of "
	"at\n"
	"least the size that is mapped.\n"
	"\n"
	"To undo it:\n"
	"    echo > /sys/bus/pci/devices/BDF/driver_override\n"
	"    echo BDF > /sys/bus/pci/drivers/vfio-pci/unbind\n"
	"    echo BDF > /sys/bus/pci/drivers_probe\n";

static const struct topic {
	const char *name;
	const char *summary;
	const char *text;
} topics[] = {
	{"device", "how to give dmamap a device of the kernel's", help_device},
};

#define TOPICS (sizeof(topics) / sizeof(topics[0]))

static void print_help(FILE *out)
{
	fputs("dmamap: the kernel side of DMA mapping in user space\n\n"
	      "usage: dmamap COMMAND [OPTION...]\n\n",
		out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-16s %s\n", commands[i].name, commands[i].summary);
	fputs("  help [TOPIC]     this text, a command's options, or:\n", out);
	for (size_t i = 0; i < TOPICS; i++)
		fprintf(out, "    %-14s %s\n", topics[i].name, topics[i].summary);
	fputs("  --version        the version\n", out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static int help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_help(stdout);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < TOPICS; i++) {
		if (!strcmp(argv[1], topics[i].name)) {
			fputs(topics[i].text, stdout);
			return EXIT_DONE;
		}
	}
	command = find_command(argv[1]);
	if (command) {
		char option[] = "--help";

		return command->run(2, (char *[]){argv[1], option, NULL});
	}
	fprintf(stderr, "dmamap help: there is no topic %s; dmamap help lists them\n", argv[1]);
	return EXIT_USAGE;
}

/* A full disk shows here at the latest: what was promised was not written. */
static int finish(int status)
{
	bool failed;

	errno = 0;
	failed = fflush(stdout) || ferror(stdout);
	/* After another complaint, one sentence is enough. */
	if (!failed || status == EXIT_USAGE)
		return status;
	fprintf(stderr, "dmamap: standard output cannot be written (%s); send it elsewhere\n",
		strerror(errno ? errno : EIO));
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help"))
		return finish(help(argc - 1, argv + 1));
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return finish(help(1, argv + 1));
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
		printf("dmamap %s\n", dmamap_version());
		return finish(EXIT_DONE);
	}
	command = find_command(argv[1]);
	if (!command) {
		fprintf(stderr, "dmamap: there is no command %s; dmamap help lists them\n",
			argv[1]);
		return EXIT_USAGE;
	}
	return finish(command->run(argc - 1, argv + 1));
}
