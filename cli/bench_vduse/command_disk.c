/* SPDX-License-Identifier: MIT */
/*
 * A command's disk: each run serves its system at a socket and starts its
 * command beside it, under the preload library. What it prints is kept, for
 * when something goes wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bench/interrupt.h"
#include "cli/peer.h"
#include "disk.h"

#define DEVICE_MS     30000 /* to make a device */
#define END_MS	      10000
#define FAILED_END_MS 2000 /* where something went wrong: it may hang */
#define LINES	      10   /* of what it printed */

/* @which: whose command runs, or ran last. @lock guards @refusal, which the server's thread
 * writes. */
struct command_disk {
	struct bench_disk disk;
	const struct vduse_disk *which;
	struct peer peer;
	void (*refused)(const struct vduse_disk *by, const char *sentence);
	pthread_mutex_t lock;
	char refusal[DISK_TEXT];
};

/* For the signal's handler. */
static struct peer *_Atomic current;

static const char *program(const struct bench_disk *disk)
{
	return ((const struct command_disk *)disk)->which->command[0];
}

static bool stopped(void)
{
	return interrupt_signal();
}

/* By the server's thread. */
static void hear(void *who, const struct dmamap_soft_refusal *refusal)
{
	struct command_disk *command = who;
	const char *request = peer_request_name(refusal->request);
	const char *name = strerrorname_np(refusal->error);
	char reason[DISK_TEXT / 2] = "", sentence[DISK_TEXT];

	if (refusal->reason)
		dmamap_reason_format(refusal->reason, reason, sizeof(reason));
	if (refusal->path)
		snprintf(sentence, sizeof(sentence), "%s %.100s: ", refusal->call, refusal->path);
	else if (refusal->request && !request)
		snprintf(sentence, sizeof(sentence), "ioctl %#x: ", refusal->request);
	else
		snprintf(sentence, sizeof(sentence), "%s: ", request ? request : refusal->call);
	snprintf(sentence + strlen(sentence), sizeof(sentence) - strlen(sentence), "%s%s%s",
		name ? name : strerror(refusal->error), reason[0] ? ": " : "", reason);
	if (command->refused)
		command->refused(command->which, sentence);
	pthread_mutex_lock(&command->lock);
	strcpy(command->refusal, sentence);
	pthread_mutex_unlock(&command->lock);
}

static int start(struct bench_disk *disk, const struct vduse_disk *which,
	struct dmamap_system *system, const struct dmamap_vdpa_config *config,
	struct dmamap_vdpa **vdpa, struct complaint *complaint)
{
	struct command_disk *command = (struct command_disk *)disk;
	const char *name = disk->report->options->name;
	struct peer *peer = &command->peer;

	command->which = which;
	command->refusal[0] = '\0';
	*peer = (struct peer){.refused = hear, .who = command};
	peer->output = memfd_create("dmamap-command", MFD_CLOEXEC);
	if (peer->output < 0)
		return complain(complaint, "no descriptor is left (%s)", strerror(errno));
	current = peer;
	if (peer_serve(peer, system, complaint) || peer_start(peer, which->command, complaint))
		return -1;
	return peer_attach(peer, name, config, DEVICE_MS, stopped, vdpa, complaint);
}

/* The last lines that it printed; what no terminal should get is left out. */
static void keep_output(int fd, char text[VDUSE_PRINTED])
{
	struct stat is;
	off_t from;
	ssize_t n;
	size_t length = 0;
	unsigned lines = 0;
	char *begin;

	text[0] = '\0';
	if (fstat(fd, &is))
		return;
	from = is.st_size > VDUSE_PRINTED - 1 ? is.st_size - (VDUSE_PRINTED - 1) : 0;
	n = pread(fd, text, VDUSE_PRINTED - 1, from);
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)text[i] >= ' ' || text[i] == '\n' || text[i] == '\t')
			text[length++] = text[i];
	while (length && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	for (begin = text + length; begin > text; begin--)
		if (begin[-1] == '\n' && ++lines == LINES)
			break;
	memmove(text, begin, strlen(begin) + 1);
}

static int stop(struct bench_disk *disk, bool failed, struct complaint *complaint)
{
	struct command_disk *command = (struct command_disk *)disk;
	struct peer *peer = &command->peer;
	bool ended = peer_stop(peer, SIGTERM, failed ? FAILED_END_MS : END_MS);

	peer_serve_end(peer);
	current = NULL;
	if (failed || !ended) {
		keep_output(peer->output, disk->report->printed);
		disk->report->printer = program(disk);
	}
	if (peer->output >= 0)
		close(peer->output);
	if (ended)
		return 0;
	return complain(complaint,
		"%s was still there %d s after SIGTERM, and was killed; it must end by that",
		program(disk), END_MS / 1000);
}

static bool alive(struct bench_disk *disk, char how[DISK_TEXT])
{
	struct peer *peer = &((struct command_disk *)disk)->peer;

	if (peer_alive(peer))
		return true;
	if (WIFSIGNALED(peer->status))
		snprintf(how, DISK_TEXT, "%s was ended by signal %d (%s)", program(disk),
			WTERMSIG(peer->status), strsignal(WTERMSIG(peer->status)));
	else
		snprintf(how, DISK_TEXT, "%s ended with status %d", program(disk),
			WEXITSTATUS(peer->status));
	return false;
}

static bool cpu_time(struct bench_disk *disk, uint64_t *nanoseconds)
{
	return peer_cpu_time(&((struct command_disk *)disk)->peer, nanoseconds);
}

static void said(struct bench_disk *disk, char text[DISK_TEXT])
{
	struct command_disk *command = (struct command_disk *)disk;
	char refusal[DISK_TEXT];

	pthread_mutex_lock(&command->lock);
	strcpy(refusal, command->refusal);
	pthread_mutex_unlock(&command->lock);
	snprintf(text, DISK_TEXT, "%s%.450s",
		refusal[0] ? "the last of its calls that was refused: " : "", refusal);
}

static void free_command(struct bench_disk *disk)
{
	pthread_mutex_destroy(&((struct command_disk *)disk)->lock);
	free(disk);
}

int command_disk_make(struct bench_disk **disk, struct vduse_report *report,
	void (*refused)(const struct vduse_disk *by, const char *sentence),
	struct complaint *complaint)
{
	static const struct bench_disk_kind kind = {
		start, stop, alive, cpu_time, said, free_command};
	struct command_disk *command = calloc(1, sizeof(*command));

	if (!command)
		return complain(complaint, "out of memory");
	command->disk = (struct bench_disk){&kind, report};
	command->refused = refused;
	pthread_mutex_init(&command->lock, NULL);
	*disk = &command->disk;
	return 0;
}

void command_disk_drop(void)
{
	struct peer *peer = current;

	if (peer)
		peer_drop(peer);
}
