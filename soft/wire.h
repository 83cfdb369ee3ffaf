/* SPDX-License-Identifier: MIT */
/*
 * What a program that uses another process's soft system says to it
 * (soft/remote.c asks, soft/serve.c answers), over a Unix socket that keeps
 * messages apart: a call, its data, its descriptors; then a result with the
 * same. One call is under way on a connection at a time.
 *
 * Both ends are of one build, on one machine: the layout may change with any
 * release.
 *
 * A file is named by a descriptor that travels with the call, so that it is
 * known however the program came by it: dup(2), fork(2), exec(2).
 */
#ifndef DMAMAP_SOFT_WIRE_H
#define DMAMAP_SOFT_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* The longest argument is a new device's: its configuration has at most a page. */
#define WIRE_DATA    (128u << 10)
#define WIRE_FDS     2
#define WIRE_VERSION 0x646d0001u

enum wire_kind {
	WIRE_OPEN, /* data: the path, NUL included */
	WIRE_IOCTL,
	WIRE_READ, /* also pread, with an offset */
	WIRE_WRITE,
	WIRE_LIST, /* data: the path */
};

/* The file's own position, in the place of an offset. */
#define WIRE_NO_OFFSET UINT64_MAX

struct wire_call {
	uint32_t version;
	uint32_t kind;
	uint64_t number; /* open: flags; ioctl: request; list: index */
	uint64_t size;	 /* of the buffer that is read or written */
	uint64_t offset;
	/* ioctl: 1 + where in the data a descriptor stands, which comes along; 0: nowhere. */
	uint16_t fd_at;
	/* ioctl: 1 + where an address stands, whose memory comes along as a file. */
	uint16_t memory_at;
	uint16_t returns_fd;	 /* ioctl: the result is one */
	uint16_t extra_fd;	 /* what fd_at or memory_at speaks of did come along */
	uint16_t forgets_memory; /* ioctl: when it succeeds, the memory of that key is not used */
	uint16_t memory_starts;	 /* ioctl: no memory comes along, since it ends too early */
	uint32_t memory_key;
	uint64_t memory_offset; /* in its file */
	uint64_t memory_size;
};

enum wire_flags {
	WIRE_UNKNOWN = 1,	/* the descriptor is none of the system's */
	WIRE_HAS_FD = 2,	/* one comes with the result */
	WIRE_CHANGED = 4,	/* the data is the argument as it is now */
	WIRE_BY_DESCRIPTOR = 8, /* the same call on the descriptor itself gives the answer */
	WIRE_NOTHING_EVER = 16, /* there is nothing to read, and never will be */
};

struct wire_result {
	int64_t result;
	uint32_t flags;
	uint32_t unused;
};

/**
 * struct wire_message - One of either.
 * @head, @head_size: a call or a result
 * @data, @data_size: what comes behind it: bytes, or room for them
 * @fds, @n_fds: who receives owns them
 */
struct wire_message {
	void *head;
	size_t head_size;
	void *data;
	size_t data_size;
	int fds[WIRE_FDS];
	unsigned n_fds;
};

/* Both: @flags of send(2) and recv(2); 0, or -errno. */
int wire_send(int link, const struct wire_message *message, int flags);
/* -EPROTO: it was cut, or has no whole head; descriptors may have come all the same. */
int wire_receive(int link, struct wire_message *message, int flags);

#endif
