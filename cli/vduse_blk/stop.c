/* SPDX-License-Identifier: MIT */
/* The signals that end the daemon; see stop.h. */
#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int wanted[] = {SIGINT, SIGTERM, SIGHUP};

#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

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

void stop_release(int fd)
{
	struct pollfd waiting = {.fd = fd, .events = POLLIN};
	struct signalfd_siginfo first;
	sigset_t set;

	if (fd >= 0 && poll(&waiting, 1, 0) > 0)
		while (read(fd, &first, sizeof(first)) < 0 && errno == EINTR)
			;
	sigemptyset(&set);
	for (size_t i = 0; i < WANTED; i++)
		sigaddset(&set, wanted[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
