/* SPDX-License-Identifier: MIT */
/*
 * A soft system's VDUSE files for other processes (soft/wire.h says how they
 * ask; soft/remote.c does). A daemon that dies leaves the system as a kernel
 * would find it, and the next one takes over.
 *
 * One thread answers all calls, one after the other: none of these files makes
 * it wait. A file's descriptor is given to the other process and not kept: what
 * keeps the number here is a stand-in. So the file lives until the last process
 * that has it is gone, which is heard on the other end of it ("watch").
 *
 * An argument is placed so that it ends where memory ends: whoever reaches for
 * more than the other process has gets EFAULT, as it would there.
 *
 * Only this thread uses what is here, but for the start and the end of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "soft/vduse.h"
#include "soft/wire.h"

#define LINKS_MOST 256
#define ALIGNMENT  65536 /* the largest page of a driver: addresses keep their place in it */

/* Memory of the other process that the system uses, mapped here as well. */
struct lent {
	struct lent *next;
	uint32_t key;
	void *address;
	size_t size;
};

struct served {
	struct served *next;
	dev_t st_dev; /* of the descriptor that was given away */
	ino_t st_ino;
	int fd;	   /* the system's number for the file */
	int watch; /* hung up: nobody has it any more */
	bool handed_over;
	struct lent *lent;
};

struct dmamap_soft_server {
	struct dmamap_system *system;
	pthread_t thread;
	struct sockaddr_un address;
	int listener;
	int stop;
	int links[LINKS_MOST];
	unsigned n_links;
	struct served *files;
	unsigned n_files;
	struct pollfd *polled;
	size_t room;
	char *data; /* WIRE_DATA bytes, and what must not be touched behind them */
	char *before;
	void (*refused)(void *who, const struct dmamap_soft_refusal *refusal);
	void *who;
};

/* A call as it came, and what goes back. */
struct served_call {
	struct wire_call is;
	char *data; /* ends where memory ends */
	size_t size;
	int fds[WIRE_FDS];
	unsigned n_fds;
	const char *path;
	struct wire_result result;
	const char *answer;
	size_t answer_size;
	int answer_fd;
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ------------------------------------------------------------------ files */

static void take_back(struct lent **link)
{
	struct lent *lent = *link;

	*link = lent->next;
	munmap(lent->address, lent->size);
	free(lent);
}

static void end_file(struct dmamap_soft_server *server, struct served **link)
{
	struct served *file = *link;

	*link = file->next;
	server->n_files--;
	/* The system lets go of the memory here. */
	server->system->ops->close(server->system, file->fd);
	while (file->lent)
		take_back(&file->lent);
	close(file->watch);
	free(file);
}

static struct served *find_file(struct dmamap_soft_server *server, int fd)
{
	struct served *file = server->files;
	struct stat is;

	if (fstat(fd, &is))
		return NULL;
	while (file && (file->st_dev != is.st_dev || file->st_ino != is.st_ino))
		file = file->next;
	return file;
}

/* A descriptor to give away for it, and the watch of it. */
static int split_file(struct dmamap_soft_server *server, struct served *file, int *given)
{
	int ends[2], watch = soft_vduse_watch(server->system, file->fd);

	if (watch >= 0) {
		file->watch = watch;
		file->handed_over = true;
		*given = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		return *given < 0 ? -errno : 0;
	}
	if (watch != -ENOTSUP)
		return watch;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	file->watch = ends[0];
	*given = ends[1];
	return 0;
}

/* From here on the number is all that is left of it here. */
static int put_stand_in(int fd)
{
	int other = open("/dev/null", O_RDWR | O_CLOEXEC), error = 0;

	if (other < 0 || dup3(other, fd, O_CLOEXEC) < 0)
		error = -errno;
	if (other >= 0)
		close(other);
	return error;
}

static int serve_file(struct dmamap_soft_server *server, int fd, int *given)
{
	struct served *file = calloc(1, sizeof(*file));
	struct stat is;
	int error;

	*given = -1;
	if (!file)
		return -ENOMEM;
	file->fd = fd;
	file->watch = -1;
	error = split_file(server, file, given);
	if (!error && fstat(*given, &is))
		error = -errno;
	if (!error)
		error = put_stand_in(fd);
	if (error) {
		if (*given >= 0)
			close(*given);
		if (file->watch >= 0)
			close(file->watch);
		free(file);
		return error;
	}
	file->st_dev = is.st_dev;
	file->st_ino = is.st_ino;
	file->next = server->files;
	server->files = file;
	server->n_files++;
	return 0;
}

/* Its answers need no memory of who asks. */
static bool is_served(const char *path)
{
	return !strncmp(path, "/dev/vduse/", 11) || !strncmp(path, "/sys/class/vduse/", 17);
}

static int64_t answer_open(struct dmamap_soft_server *server, struct served_call *call)
{
	int fd, error;

	call->path = call->data;
	if (!call->size || call->data[call->size - 1])
		return -EINVAL;
	if (!is_served(call->path))
		return SOFT_REFUSE(not_served, ENODEV, call->path, 0);
	fd = server->system->ops->open(server->system, call->path, (int)call->is.number);
	if (fd < 0)
		return fd;
	error = serve_file(server, fd, &call->answer_fd);
	if (error) {
		server->system->ops->close(server->system, fd);
		return SOFT_REFUSE(no_descriptor, -error, call->path, 0);
	}
	return 0;
}

/* ------------------------------------------------------------------ ioctl */

static void put_fd(struct served_call *call)
{
	/* One that the other process does not have is none here either. */
	int fd = INT_MAX, theirs;
	size_t at = call->is.fd_at - 1u;

	if (!call->is.fd_at || call->size < at + sizeof(fd))
		return;
	memcpy(&theirs, call->data + at, sizeof(theirs));
	if (theirs < 0)
		return;
	if (call->is.extra_fd && call->n_fds > 1)
		fd = call->fds[1];
	memcpy(call->data + at, &fd, sizeof(fd));
}

/* Maps it at an address that ends alike. */
static struct lent *map_lent(const struct served_call *call, uint64_t theirs)
{
	struct lent *lent = calloc(1, sizeof(*lent));
	uint64_t inside = call->is.memory_offset & (page_size() - 1);

	if (!lent)
		return NULL;
	lent->key = call->is.memory_key;
	lent->size = (call->is.memory_size + inside + page_size() - 1) & ~(page_size() - 1);
	if (lent->size < call->is.memory_size ||
		soft_map_aligned(call->fds[1], call->is.memory_offset - inside, lent->size,
			PROT_READ | PROT_WRITE, ALIGNMENT, theirs - inside, &lent->address)) {
		free(lent);
		return NULL;
	}
	return lent;
}

static uint64_t align_up(uint64_t address)
{
	return (address + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static struct lent *put_memory(struct dmamap_soft_server *server, struct served_call *call)
{
	size_t at = call->is.memory_at - 1u;
	struct lent *lent = NULL;
	uint64_t theirs, ours;

	if (!call->is.memory_at || call->size < at + sizeof(theirs))
		return NULL;
	memcpy(&theirs, call->data + at, sizeof(theirs));
	if (call->is.extra_fd && call->n_fds > 1)
		lent = map_lent(call, theirs);
	if (lent)
		ours = (uintptr_t)lent->address + (call->is.memory_offset & (page_size() - 1));
	else /* as there: none at all, or some, in the data, which ends much too early */
		ours = align_up(
			       (uintptr_t)server->data + (call->is.memory_starts ? 0 : WIRE_DATA)) +
		       theirs % ALIGNMENT;
	memcpy(call->data + at, &ours, sizeof(ours));
	return lent;
}

static void keep_or_take_back(
	struct served *file, const struct served_call *call, struct lent *lent, int64_t result)
{
	struct lent **link = &file->lent;

	if (lent) {
		lent->next = file->lent;
		file->lent = lent;
		if (result < 0)
			take_back(link);
	}
	while (call->is.forgets_memory && !result && *link)
		if ((*link)->key == call->is.memory_key)
			take_back(link);
		else
			link = &(*link)->next;
}

/* The result is a descriptor of the system's: it goes to the other process. */
static int64_t give_result(struct dmamap_soft_server *server, struct served_call *call, int fd)
{
	call->answer_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	server->system->ops->close(server->system, fd);
	return call->answer_fd < 0 ? SOFT_REFUSE(no_descriptor, errno, "a result", 0) : 0;
}

static int64_t answer_ioctl(
	struct dmamap_soft_server *server, struct served *file, struct served_call *call)
{
	struct lent *lent;
	int64_t result;

	put_fd(call);
	lent = put_memory(server, call);
	memcpy(server->before, call->data, call->size);
	result = server->system->ops->ioctl(
		server->system, file->fd, (unsigned long)call->is.number, call->data);
	if (memcmp(server->before, call->data, call->size) != 0) {
		call->result.flags |= WIRE_CHANGED;
		call->answer = call->data;
		call->answer_size = call->size;
	}
	keep_or_take_back(file, call, lent, result);
	if (result >= 0 && call->is.returns_fd)
		result = give_result(server, call, (int)result);
	return result;
}

/* --------------------------------------------------------- read and write */

static int64_t answer_read(
	struct dmamap_soft_server *server, struct served *file, struct served_call *call)
{
	const struct dmamap_system_ops *ops = server->system->ops;
	size_t size = call->is.size < WIRE_DATA ? call->is.size : WIRE_DATA;
	int64_t n;

	/* Messages are in the descriptor; one that is too short for them gets its error here. */
	if (file->handed_over && size >= sizeof(struct vduse_dev_request) &&
		call->is.offset == WIRE_NO_OFFSET) {
		call->result.flags |= soft_vduse_fd_broken(server->system, file->fd)
					      ? WIRE_NOTHING_EVER
					      : WIRE_BY_DESCRIPTOR;
		return 0;
	}
	n = call->is.offset == WIRE_NO_OFFSET
		    ? ops->read(server->system, file->fd, server->data, size)
		    : ops->pread(server->system, file->fd, server->data, size, call->is.offset);
	if (n > 0) {
		call->answer = server->data;
		call->answer_size = (size_t)n;
	}
	return n;
}

static int64_t answer_write(
	struct dmamap_soft_server *server, struct served *file, struct served_call *call)
{
	const struct dmamap_system_ops *ops = server->system->ops;

	return call->is.offset == WIRE_NO_OFFSET
		       ? ops->write(server->system, file->fd, call->data, call->is.size)
		       : ops->pwrite(server->system, file->fd, call->data, call->is.size,
				 call->is.offset);
}

static int64_t answer_list(struct dmamap_soft_server *server, struct served_call *call)
{
	static const char folder[] = "/sys/class/vduse";
	size_t size = call->is.size < WIRE_DATA ? call->is.size : WIRE_DATA;
	char name[VDUSE_NAME_MAX];
	int64_t n;

	if (call->size != sizeof(folder) || memcmp(call->data, folder, sizeof(folder)) != 0)
		return SOFT_REFUSE(not_served, ENODEV, "a folder", 0);
	n = server->system->ops->list(server->system, folder, (unsigned)call->is.number, name,
		size < sizeof(name) ? size : sizeof(name));
	if (n < 0)
		return n;
	strcpy(server->data, name);
	call->answer = server->data;
	call->answer_size = strlen(name) + 1;
	return n;
}

/* ------------------------------------------------------------------ calls */

static void tell_refusal(struct dmamap_soft_server *server, const struct served_call *call)
{
	struct dmamap_reason reason;
	struct dmamap_soft_refusal refusal = {
		.call = call->is.kind == WIRE_OPEN    ? "open"
			: call->is.kind == WIRE_IOCTL ? "ioctl"
			: call->is.kind == WIRE_READ  ? "read"
			: call->is.kind == WIRE_WRITE ? "write"
						      : "readdir",
		.path = call->path,
		.request = call->is.kind == WIRE_IOCTL ? (unsigned)call->is.number : 0,
		.error = (int)-call->result.result,
	};

	if (!server->refused || call->result.result >= 0 || call->is.kind == WIRE_LIST)
		return;
	if (!server->system->ops->reason(server->system, &reason))
		refusal.reason = &reason;
	server->refused(server->who, &refusal);
}

static void answer_call(struct dmamap_soft_server *server, struct served_call *call)
{
	struct served *file = NULL;

	soft_why()->kind = NULL;
	if (call->is.kind == WIRE_OPEN) {
		call->result.result = answer_open(server, call);
	} else if (call->is.kind == WIRE_LIST) {
		call->result.result = answer_list(server, call);
	} else {
		file = call->n_fds ? find_file(server, call->fds[0]) : NULL;
		if (!file) {
			call->result.flags = WIRE_UNKNOWN;
			return;
		}
		if (call->is.kind == WIRE_IOCTL)
			call->result.result = answer_ioctl(server, file, call);
		else if (call->is.kind == WIRE_READ)
			call->result.result = answer_read(server, file, call);
		else
			call->result.result = answer_write(server, file, call);
	}
	tell_refusal(server, call);
}

/* false: the other end is gone, or speaks otherwise. */
static bool receive(struct dmamap_soft_server *server, int link, struct served_call *call)
{
	struct wire_message message = {.head = &call->is,
		.head_size = sizeof(call->is),
		.data = server->data,
		.data_size = WIRE_DATA};
	int error = wire_receive(link, &message, MSG_DONTWAIT);

	call->n_fds = message.n_fds;
	memcpy(call->fds, message.fds, sizeof(call->fds));
	if (error || call->is.version != WIRE_VERSION || call->is.kind > WIRE_LIST)
		return error == -EAGAIN;
	/* Against the end of memory. */
	call->size = message.data_size;
	call->data = server->data + WIRE_DATA - call->size;
	memmove(call->data, server->data, call->size);
	return true;
}

static bool send_result(int link, struct served_call *call)
{
	struct wire_message message = {.head = &call->result,
		.head_size = sizeof(call->result),
		.data = (void *)(uintptr_t)call->answer,
		.data_size = call->answer_size,
		.fds = {call->answer_fd},
		.n_fds = call->answer_fd >= 0};

	return !wire_send(link, &message, MSG_DONTWAIT);
}

static bool handle(struct dmamap_soft_server *server, int link)
{
	struct served_call call = {.answer_fd = -1};
	bool good = receive(server, link, &call);

	if (good && call.data) {
		answer_call(server, &call);
		if (call.answer_fd >= 0)
			call.result.flags |= WIRE_HAS_FD;
		good = send_result(link, &call);
	}
	if (call.answer_fd >= 0)
		close(call.answer_fd);
	for (unsigned i = 0; i < call.n_fds; i++)
		close(call.fds[i]);
	return good;
}

/* ------------------------------------------------------------------- loop */

static void answer_new(struct dmamap_soft_server *server)
{
	int link = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);

	if (link < 0)
		return;
	if (server->n_links == LINKS_MOST)
		close(link);
	else
		server->links[server->n_links++] = link;
}

static bool make_room(struct dmamap_soft_server *server)
{
	size_t wanted = 2 + LINKS_MOST + server->n_files;
	struct pollfd *polled;

	if (wanted <= server->room)
		return true;
	polled = realloc(server->polled, 2 * wanted * sizeof(*polled));
	if (!polled)
		return false;
	server->polled = polled;
	server->room = 2 * wanted;
	return true;
}

/* What is to be looked at: the end, who comes, who asks, who goes. */
static size_t list_polled(struct dmamap_soft_server *server)
{
	struct pollfd *polled = server->polled;
	size_t n = 0;

	polled[n++] = (struct pollfd){server->stop, POLLIN, 0};
	polled[n++] = (struct pollfd){server->listener, POLLIN, 0};
	for (unsigned i = 0; i < server->n_links; i++)
		polled[n++] = (struct pollfd){server->links[i], POLLIN, 0};
	for (struct served *file = server->files; file; file = file->next)
		polled[n++] = (struct pollfd){file->watch, 0, 0};
	return n;
}

static void *serve(void *argument)
{
	struct dmamap_soft_server *server = argument;

	for (;;) {
		const struct pollfd *at;
		struct served **link;
		unsigned n = server->n_links;

		/* Without memory for it, those who go are not noticed until there is. */
		if (!make_room(server) && !server->room)
			return NULL;
		if (poll(server->polled, (nfds_t)list_polled(server), -1) < 0)
			continue;
		if (server->polled[0].revents)
			return NULL;
		/* Those who go first: their places are what newcomers ask for. */
		at = server->polled + 2 + n;
		for (link = &server->files; *link; at++)
			if (at->revents & POLLHUP)
				end_file(server, link);
			else
				link = &(*link)->next;
		for (unsigned i = n; i-- > 0;)
			if (server->polled[2 + i].revents && !handle(server, server->links[i])) {
				close(server->links[i]);
				server->links[i] = server->links[--server->n_links];
			}
		if (server->polled[1].revents)
			answer_new(server);
	}
}

/* ---------------------------------------------------------- start and end */

static int make_listener(struct dmamap_soft_server *server, const char *path)
{
	size_t length = strlen(path);

	if (!length || length >= sizeof(server->address.sun_path))
		return -EINVAL;
	server->address.sun_family = AF_UNIX;
	memcpy(server->address.sun_path, path, length + 1);
	server->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listener < 0)
		return -errno;
	if (bind(server->listener, (struct sockaddr *)&server->address, sizeof(server->address))) {
		server->address.sun_path[0] = '\0';
		return -errno;
	}
	return listen(server->listener, 64) ? -errno : 0;
}

/* The bytes of a message, and behind them none for as far as an address may be put there. */
static int make_data(struct dmamap_soft_server *server)
{
	void *data = mmap(NULL, WIRE_DATA + VDUSE_BOUNCE_MOST + 3 * ALIGNMENT, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	server->before = malloc(WIRE_DATA);
	if (data == MAP_FAILED)
		return -ENOMEM;
	server->data = data;
	if (!server->before || mprotect(data, WIRE_DATA, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	return 0;
}

static void free_server(struct dmamap_soft_server *server)
{
	while (server->files)
		end_file(server, &server->files);
	while (server->n_links)
		close(server->links[--server->n_links]);
	if (server->listener >= 0)
		close(server->listener);
	if (server->address.sun_path[0])
		unlink(server->address.sun_path);
	if (server->stop >= 0)
		close(server->stop);
	if (server->data)
		munmap(server->data, WIRE_DATA + VDUSE_BOUNCE_MOST + 3 * ALIGNMENT);
	free(server->before);
	free(server->polled);
	free(server);
}

static int start_thread(struct dmamap_soft_server *server)
{
	sigset_t all, before;
	int error;

	/* Signals are the program's, not ours. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&server->thread, NULL, serve, server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

int dmamap_soft_serve(struct dmamap_system *system, const char *path,
	void (*refused)(void *who, const struct dmamap_soft_refusal *refusal), void *who,
	struct dmamap_soft_server **out)
{
	struct dmamap_soft_server *server;
	int error;

	if (!soft_system_from(system))
		return -EINVAL;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	*server = (struct dmamap_soft_server){
		.system = system, .listener = -1, .stop = -1, .refused = refused, .who = who};
	error = make_data(server);
	if (!error)
		error = make_listener(server, path);
	server->stop = eventfd(0, EFD_CLOEXEC);
	if (!error && server->stop < 0)
		error = -errno;
	if (!error && !make_room(server))
		error = -ENOMEM;
	if (!error)
		error = start_thread(server);
	if (error) {
		free_server(server);
		return error;
	}
	*out = server;
	return 0;
}

void dmamap_soft_serve_end(struct dmamap_soft_server *server)
{
	const uint64_t one = 1;

	if (!server)
		return;
	if (write(server->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(server->thread, NULL);
	free_server(server);
}
