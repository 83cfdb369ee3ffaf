/* SPDX-License-Identifier: MIT */
/*
 * A program that knows nothing of dmamap, run so that VDUSE is this process's
 * soft system to it: the system is served at a socket, and the program starts
 * with the preload library in front of its C library. It may be killed and
 * started again; what it made is the system's, and stays.
 */
#ifndef CLI_PEER_H
#define CLI_PEER_H

#include <sys/types.h>

#include "cli/complaint.h"
#include "dmamap/soft.h"
#include "dmamap/vdpa.h"

/**
 * struct peer - To be zeroed, and @refused, @who and @output set or left, before peer_serve().
 * @output: descriptor that what it prints goes to; 0: standard error
 * @pid: of the program; 0: none runs
 * @status: of the last one that was waited for, as of waitpid(2)
 */
struct peer {
	struct dmamap_system *system;
	struct dmamap_soft_server *server;
	char folder[96];
	char socket[108];
	int output;
	pid_t pid;
	int status;
	void (*refused)(void *who, const struct dmamap_soft_refusal *refusal);
	void *who;
};

/** peer_serve() - Serve @system, a soft one. Return: 0; -1 with a complaint. */
int peer_serve(struct peer *peer, struct dmamap_system *system, struct complaint *complaint);
/** peer_serve_end() - No program runs any more. */
void peer_serve_end(struct peer *peer);
/** peer_drop() - Kill it and remove the socket, nothing else: for a signal's
 * handler before the process ends. */
void peer_drop(const struct peer *peer);

/**
 * peer_start() - Run it, found as a shell would, in a process group of its own:
 * a terminal's Ctrl-C is this process's alone. It has nothing to read, and gets
 * SIGTERM when the calling thread ends.
 *
 * Return: 0; -1 with a complaint: it cannot be run.
 */
int peer_start(struct peer *peer, char *const argv[], struct complaint *complaint);
/** peer_alive() - Whether it runs; else @status says how it ended. */
bool peer_alive(struct peer *peer);
/** peer_cpu_time() - Of its own process, user and system, all threads, ended ones too.
 * Return: whether it is known. */
bool peer_cpu_time(const struct peer *peer, uint64_t *nanoseconds);
/** peer_stop() - Send its process group the signal, up to four times, and wait; after
 * @patience_ms, at least 8, kill it.
 * Return: whether it ended by itself, or by the signal given. */
bool peer_stop(struct peer *peer, int signal, unsigned patience_ms);

/**
 * peer_attach() - Wait until it has made a device and set it up, and attach that.
 * @name: of the device; NULL: the first one that there is
 * @stopped: asked every few milliseconds: true gives up; NULL: nobody does
 *
 * Return: 0; -1 with a complaint: it ended, or made none in @patience_ms, or
 * one that cannot be attached.
 */
int peer_attach(struct peer *peer, const char *name, const struct dmamap_vdpa_config *config,
	unsigned patience_ms, bool (*stopped)(void), struct dmamap_vdpa **vdpa,
	struct complaint *complaint);

/** peer_request_name() - "VDUSE_CREATE_DEV" and so on; NULL: no request of VDUSE's. */
const char *peer_request_name(unsigned request);

#endif
