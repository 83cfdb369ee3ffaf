/* SPDX-License-Identifier: MIT */
/* Programs under the preload library: how they start, and how they end. */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/vduse.h"

#define LIBRARY "libdmamap-preload.so"
#define STEP_MS 2

/* Beside this program where it was built, or where it was installed. */
static int find_library(char *path, size_t size, struct complaint *complaint)
{
	const char *given = getenv("DMAMAP_PRELOAD");
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int folder = 0;

	if (given) {
		snprintf(path, size, "%s", given);
		return access(path, R_OK) ? complain(complaint,
						    "DMAMAP_PRELOAD=%s cannot be read (%s); "
						    "name the %s to use",
						    given, strerror(errno), LIBRARY)
					  : 0;
	}
	for (int i = 0; i < n; i++)
		if (self[i] == '/')
			folder = i;
	snprintf(path, size, "%.*s/preload/%s", folder, self, LIBRARY);
	if (!access(path, R_OK))
		return 0;
	/* The tree may have been moved as a whole, unless its library folder is outside of it. */
	if (PRELOAD_FOLDER[0] == '/')
		snprintf(path, size, "%s/%s", PRELOAD_FOLDER, LIBRARY);
	else
		snprintf(path, size, "%.*s/../%s/%s", folder, self, PRELOAD_FOLDER, LIBRARY);
	if (!access(path, R_OK))
		return 0;
	return complain(complaint,
		"there is no %s; install all of dmamap, or set DMAMAP_PRELOAD "
		"to where it is",
		path);
}

int peer_serve(struct peer *peer, struct dmamap_system *system, struct complaint *complaint)
{
	const char *parent = getenv("TMPDIR");
	int error;

	/* A socket's path is short. */
	snprintf(peer->folder, sizeof(peer->folder), "%s/dmamap-XXXXXX",
		parent && parent[0] && strlen(parent) < 60 ? parent : "/tmp");
	if (!mkdtemp(peer->folder)) {
		complain(complaint,
			"%s cannot be made (%s); set TMPDIR to a folder where you may write",
			peer->folder, strerror(errno));
		peer->folder[0] = '\0';
		return -1;
	}
	snprintf(peer->socket, sizeof(peer->socket), "%s/kernel", peer->folder);
	peer->system = system;
	error = dmamap_soft_serve(system, peer->socket, peer->refused, peer->who, &peer->server);
	if (error)
		return complain(
			complaint, "%s cannot be served (%s)", peer->socket, strerror(-error));
	return 0;
}

void peer_serve_end(struct peer *peer)
{
	dmamap_soft_serve_end(peer->server);
	peer->server = NULL;
	if (peer->folder[0])
		rmdir(peer->folder);
	peer->folder[0] = '\0';
}

void peer_drop(const struct peer *peer)
{
	if (peer->pid)
		kill(-peer->pid, SIGKILL);
	if (!peer->folder[0])
		return;
	unlink(peer->socket);
	rmdir(peer->folder);
}

/* ---------------------------------------------------------------- program */

/* In the child: nothing but what may be done between fork and exec. */
__attribute__((noreturn)) static void become(
	const struct peer *peer, char *const argv[], char *const environment[], int out)
{
	sigset_t none;
	int error;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	if (peer->output)
		dup2(peer->output, STDERR_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execvpe(argv[0], argv, environment);
	error = errno;
	_exit(write(out, &error, sizeof(error)) == sizeof(error) ? 127 : 126);
}

static bool is_variable(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(entry, name, length) && entry[length] == '=';
}

/* This process's with the two variables; to be freed, with its first two strings. */
static char **make_environment(const struct peer *peer, const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	size_t n = 0, kept = 2;
	char **made;

	while (environ[n])
		n++;
	made = calloc(n + 3, sizeof(*made));
	if (!made || asprintf(&made[0], "LD_PRELOAD=%s%s%s", library, others ? ":" : "",
			     others ? others : "") < 0) {
		free(made);
		return NULL;
	}
	if (asprintf(&made[1], "DMAMAP_SERVER=%s", peer->socket) < 0) {
		free(made[0]);
		free(made);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if (!is_variable(environ[i], "LD_PRELOAD") &&
			!is_variable(environ[i], "DMAMAP_SERVER"))
			made[kept++] = environ[i];
	return made;
}

/* Whether it is that program now; errno of exec, or of what came before it. */
static int run(struct peer *peer, char *const argv[], char *const environment[])
{
	int ends[2], error = 0;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	peer->pid = fork();
	if (!peer->pid)
		become(peer, argv, environment, ends[1]);
	if (peer->pid < 0) {
		error = errno;
		peer->pid = 0;
	}
	close(ends[1]);
	while (peer->pid && read(ends[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(ends[0]);
	if (error && peer->pid) {
		waitpid(peer->pid, &peer->status, 0);
		peer->pid = 0;
	}
	return error;
}

int peer_start(struct peer *peer, char *const argv[], struct complaint *complaint)
{
	char library[640];
	char **environment;
	int error;

	if (find_library(library, sizeof(library), complaint))
		return -1;
	environment = make_environment(peer, library);
	if (!environment)
		return complain(complaint, "out of memory");
	error = run(peer, argv, environment);
	free(environment[0]);
	free(environment[1]);
	free(environment);
	if (error)
		return complain(complaint,
			"%s cannot be run (%s); name a program, by its path or "
			"as a shell would find it",
			argv[0], strerror(error));
	return 0;
}

bool peer_alive(struct peer *peer)
{
	if (peer->pid && waitpid(peer->pid, &peer->status, WNOHANG) == peer->pid)
		peer->pid = 0;
	return peer->pid;
}

/* The process's own clock: ticks of utime and stime are coarse, and threads that have ended are
 * not in /proc/PID/task any more. */
bool peer_cpu_time(const struct peer *peer, uint64_t *nanoseconds)
{
	struct timespec time;
	clockid_t clock;

	if (!peer->pid || clock_getcpuclockid(peer->pid, &clock) || clock_gettime(clock, &time))
		return false;
	*nanoseconds = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
	return true;
}

static void sleep_ms(unsigned ms)
{
	struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&time, NULL);
}

bool peer_stop(struct peer *peer, int signal, unsigned patience_ms)
{
	if (!peer_alive(peer))
		return true;
	/*
	 * Now and then once more: qemu-storage-daemon's handler sets a flag, and if that happens
	 * between its look at the flag and its poll, it sleeps on.
	 */
	for (unsigned waited = 0; peer_alive(peer) && waited < patience_ms; waited += STEP_MS) {
		if (waited % (patience_ms / 4) < STEP_MS)
			kill(-peer->pid, signal);
		sleep_ms(STEP_MS);
	}
	if (!peer_alive(peer))
		return true;
	kill(-peer->pid, SIGKILL);
	waitpid(peer->pid, &peer->status, 0);
	peer->pid = 0;
	return false;
}

/* ----------------------------------------------------------------- device */

static int complain_ended(const struct peer *peer, struct complaint *complaint)
{
	if (WIFSIGNALED(peer->status))
		return complain(complaint,
			"the program was ended by signal %d (%s) before it had "
			"set a device up",
			WTERMSIG(peer->status), strsignal(WTERMSIG(peer->status)));
	return complain(complaint,
		"the program ended with status %d before it had set a device up; it must stay in "
		"the foreground",
		WEXITSTATUS(peer->status));
}

/* What the last attempt said, if there was one. */
static int complain_late(struct peer *peer, const char *name, unsigned patience_ms, int error,
	struct complaint *complaint)
{
	if (!error)
		return complain(complaint,
			"the program made no VDUSE device in %u s; is it told to export one?",
			patience_ms / 1000);
	return complain_call(complaint, peer->system, error, "device %s cannot be attached", name);
}

/* -ENOENT: there is none yet. */
static int attach(struct peer *peer, const char *name, const struct dmamap_vdpa_config *config,
	struct dmamap_vdpa **vdpa, char found[VDUSE_NAME_MAX])
{
	if (name)
		snprintf(found, VDUSE_NAME_MAX, "%s", name);
	else if (peer->system->ops->list(
			 peer->system, "/sys/class/vduse", 1, found, VDUSE_NAME_MAX) < 0)
		return -ENOENT;
	return dmamap_vdpa_attach(peer->system, found, config, vdpa);
}

int peer_attach(struct peer *peer, const char *name, const struct dmamap_vdpa_config *config,
	unsigned patience_ms, bool (*stopped)(void), struct dmamap_vdpa **vdpa,
	struct complaint *complaint)
{
	char found[VDUSE_NAME_MAX];
	int error = -ENOENT;

	for (unsigned waited = 0; waited < patience_ms; waited += STEP_MS) {
		error = attach(peer, name, config, vdpa, found);
		/* -EINVAL: it is not there, or not set up yet; else waiting helps nothing. */
		if (!error)
			return 0;
		if (error != -ENOENT && error != -EINVAL)
			break;
		if (!peer_alive(peer))
			return complain_ended(peer, complaint);
		if (stopped && stopped())
			return complain(complaint, "interrupted");
		sleep_ms(STEP_MS);
	}
	return complain_late(peer, found, patience_ms, error == -ENOENT ? 0 : error, complaint);
}

const char *peer_request_name(unsigned request)
{
	static const struct {
		unsigned request;
		const char *name;
	} names[] = {
#define NAME(id) {id, #id}
		NAME(VDUSE_GET_API_VERSION),
		NAME(VDUSE_SET_API_VERSION),
		NAME(VDUSE_CREATE_DEV),
		NAME(VDUSE_DESTROY_DEV),
		NAME(VDUSE_GET_FEATURES),
		NAME(VDUSE_SET_FEATURES),
		NAME(VDUSE_IOTLB_GET_FD),
		NAME(VDUSE_DEV_GET_FEATURES),
		NAME(VDUSE_DEV_SET_CONFIG),
		NAME(VDUSE_DEV_INJECT_CONFIG_IRQ),
		NAME(VDUSE_VQ_SETUP),
		NAME(VDUSE_VQ_GET_INFO),
		NAME(VDUSE_VQ_SETUP_KICKFD),
		NAME(VDUSE_VQ_INJECT_IRQ),
		NAME(VDUSE_IOTLB_REG_UMEM),
		NAME(VDUSE_IOTLB_DEREG_UMEM),
		NAME(VDUSE_IOTLB_GET_INFO),
		NAME(VDUSE_IOTLB_GET_FD2),
#undef NAME
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].request == request)
			return names[i].name;
	return NULL;
}
