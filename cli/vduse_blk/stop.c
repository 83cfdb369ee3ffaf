/* SPDX-License-Identifier: MIT */
/* The signals that end the daemon; see stop.h. */
#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* A terminal that goes away says so twice, itself and through the shell: SIGHUP is not
 * let through again. */
static const int wanted[] = {SIGHUP, SIGINT, SIGTERM};
#define AGAIN 1

#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

/* Some send one signal twice, as timeout(1) does: to the process, and to its group. */
#define ONE_NS 300000000

static struct timespec released;

int stop_catch(void)
{
	struct sigaction old;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < WANTED; i++)
		/* What the parent had ignored (nohup) stays ignored. */
		if (!sigaction(wanted[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaddset(&set, wanted[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void again(int number)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((now.tv_sec - released.tv_sec) * 1000000000 + now.tv_nsec - released.tv_nsec < ONE_NS)
		return;
	signal(number, SIG_DFL);
	raise(number);
}

void stop_release(int fd)
{
	struct sigaction action = {.sa_handler = again, .sa_flags = SA_RESTART}, old;
	struct pollfd waiting = {.fd = fd, .events = POLLIN};
	struct signalfd_siginfo first;
	sigset_t set;

	if (fd >= 0 && poll(&waiting, 1, 0) > 0)
		while (read(fd, &first, sizeof(first)) < 0 && errno == EINTR)
			;
	clock_gettime(CLOCK_MONOTONIC, &released);
	sigemptyset(&action.sa_mask);
	sigemptyset(&set);
	for (size_t i = AGAIN; i < WANTED; i++) {
		if (!sigaction(wanted[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(wanted[i], &action, NULL);
		sigaddset(&set, wanted[i]);
	}
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
