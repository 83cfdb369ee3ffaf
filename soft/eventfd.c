/* SPDX-License-Identifier: MIT */
/*
 * A program's eventfds as devices use them: held by a descriptor of our own,
 * signalled, and listened to (drivers/vfio/virqfd.c). The kernel hears of a
 * signal inside the write that makes it; here a thread waits for it, so what it
 * sets off comes a moment later. The thread is there while somebody listens.
 *
 * Many may listen to one eventfd, and one descriptor serves them all. A signal
 * from before the first of them came sets off what it is for, but is used up
 * only with the next one.
 *
 * heard() is called under the lock of the listeners, and so never for one that
 * was removed. It must not take other locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/pci.h"

/* An eventfd that somebody listens to. */
struct soft_source {
	struct soft_source *next;
	struct soft_listener *listeners;
	uint64_t key;
	int id; /* the kernel's for it; -1: it tells none */
	int fd;
	uint64_t old; /* what it counted when it was first listened to, until it is used up */
};

struct soft_listener {
	struct soft_listener *next;
	struct soft_source *source;
	void (*heard)(void *who);
	void *who;
};

/* The key that ends the thread. */
#define STOP 0

int soft_eventfd_get(int fd, const char *what)
{
	char path[32], target[32];
	ssize_t n;
	int own;

	if (fcntl(fd, F_GETFD) < 0)
		return SOFT_REFUSE(bad_fd, EBADF, NULL, (unsigned)fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	if (strcmp(target, "anon_inode:[eventfd]"))
		return SOFT_REFUSE(eventfd, EINVAL, what, (unsigned)fd);
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? SOFT_REFUSE(no_descriptor, errno, what, 0) : own;
}

static bool ready(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & events;
}

void soft_eventfd_signal(int fd)
{
	const uint64_t one = 1;

	/* One that is full stays full: nobody waits for room here. */
	if (fd >= 0 && ready(fd, POLLOUT) && write(fd, &one, sizeof(one)) < 0)
		return;
}

void soft_eventfd_put(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void soft_listeners_init(struct soft_listeners *listeners)
{
	memset(listeners, 0, sizeof(*listeners));
	listeners->epoll = listeners->stop = -1;
	pthread_mutex_init(&listeners->lock, NULL);
}

/* What the kernel tells of an eventfd; an older one tells less. */
static void inform(int fd, int *id, uint64_t *count)
{
	char path[40], line[64];
	FILE *info;

	*id = -1;
	*count = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info)) {
		sscanf(line, "eventfd-count: %" SCNx64, count);
		sscanf(line, "eventfd-id: %d", id);
	}
	if (info)
		fclose(info);
}

static void hear(struct soft_listeners *listeners, uint64_t key)
{
	struct soft_source *source;
	uint64_t count;
	int id;

	pthread_mutex_lock(&listeners->lock);
	for (source = listeners->sources; source && source->key != key; source = source->next)
		;
	if (!source)
		goto unlock;
	if (source->old) {
		inform(source->fd, &id, &count);
		/* That is what we know of. */
		if (count == source->old)
			goto unlock;
		source->old = 0;
	}
	if (ready(source->fd, POLLIN) && read(source->fd, &count, sizeof(count)) < 0)
		goto unlock;
	for (struct soft_listener *one = source->listeners; one; one = one->next)
		one->heard(one->who);
unlock:
	pthread_mutex_unlock(&listeners->lock);
}

static void *listen_to_all(void *argument)
{
	struct soft_listeners *listeners = argument;
	struct epoll_event event;

	for (;;) {
		int n = epoll_wait(listeners->epoll, &event, 1, -1);

		if (n == 1 && event.data.u64 == STOP)
			return NULL;
		if (n == 1)
			hear(listeners, event.data.u64);
	}
}

static int start(struct soft_listeners *listeners)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = STOP};
	sigset_t all, before;
	int error;

	listeners->epoll = epoll_create1(EPOLL_CLOEXEC);
	listeners->stop = eventfd(0, EFD_CLOEXEC);
	if (listeners->epoll < 0 || listeners->stop < 0 ||
		epoll_ctl(listeners->epoll, EPOLL_CTL_ADD, listeners->stop, &event)) {
		error = errno;
		goto close;
	}
	/* Signals are the program's, not ours. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&listeners->thread, NULL, listen_to_all, listeners);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		goto close;
	listeners->process = getpid();
	listeners->running = true;
	return 0;
close:
	soft_eventfd_put(&listeners->epoll);
	soft_eventfd_put(&listeners->stop);
	return SOFT_REFUSE(no_memory, error, "a listening thread", 0);
}

static struct soft_source *find(struct soft_listeners *listeners, int id)
{
	struct soft_source *source;

	for (source = listeners->sources; source; source = source->next)
		if (id >= 0 && source->id == id)
			break;
	return source;
}

/* Takes @fd over, unless it fails. Lock held. */
static int add_source(struct soft_listeners *listeners, int fd, int id, uint64_t count,
	struct soft_source **source)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct soft_source *made = malloc(sizeof(*made));

	if (!made)
		return SOFT_REFUSE(no_memory, ENOMEM, "an eventfd", 0);
	*made = (struct soft_source){
		.next = listeners->sources,
		.key = event.data.u64 = ++listeners->last_key,
		.id = id,
		.fd = fd,
		.old = count,
	};
	if (epoll_ctl(listeners->epoll, EPOLL_CTL_ADD, fd, &event)) {
		int error = errno;

		free(made);
		return SOFT_REFUSE(no_memory, error, "an eventfd", 0);
	}
	listeners->sources = *source = made;
	return 0;
}

int soft_listener_add(struct soft_listeners *listeners, int fd, void (*heard)(void *who), void *who,
	struct soft_listener **listener)
{
	int own = soft_eventfd_get(fd, "what is listened to"), error = 0, id;
	struct soft_listener *made;
	struct soft_source *source;
	uint64_t count;

	if (own < 0)
		return own;
	made = malloc(sizeof(*made));
	if (!made)
		error = SOFT_REFUSE(no_memory, ENOMEM, "an eventfd", 0);
	else if (!listeners->running)
		error = start(listeners);
	if (error)
		goto fail;
	pthread_mutex_lock(&listeners->lock);
	inform(own, &id, &count);
	source = find(listeners, id);
	if (source)
		close(own);
	else
		error = add_source(listeners, own, id, count, &source);
	if (!error) {
		*made = (struct soft_listener){source->listeners, source, heard, who};
		source->listeners = *listener = made;
		if (count)
			heard(who);
	}
	pthread_mutex_unlock(&listeners->lock);
	if (!error)
		return 0;
fail:
	free(made);
	close(own);
	return error;
}

void soft_listener_remove(struct soft_listeners *listeners, struct soft_listener *listener)
{
	struct soft_listener **link;
	struct soft_source *source, **source_link;

	if (!listener)
		return;
	pthread_mutex_lock(&listeners->lock);
	source = listener->source;
	for (link = &source->listeners; *link != listener; link = &(*link)->next)
		;
	*link = listener->next;
	if (!source->listeners) {
		for (source_link = &listeners->sources; *source_link != source;
			source_link = &(*source_link)->next)
			;
		*source_link = source->next;
		epoll_ctl(listeners->epoll, EPOLL_CTL_DEL, source->fd, NULL);
		close(source->fd);
		free(source);
	}
	pthread_mutex_unlock(&listeners->lock);
	free(listener);
}

void soft_listeners_stop(struct soft_listeners *listeners)
{
	if (!listeners->running)
		return;
	/* A fork has no thread to end, and shares what would end the other one's. */
	if (listeners->process == getpid()) {
		soft_eventfd_signal(listeners->stop);
		pthread_join(listeners->thread, NULL);
	}
	listeners->running = false;
	soft_eventfd_put(&listeners->epoll);
	soft_eventfd_put(&listeners->stop);
}
