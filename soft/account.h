/* SPDX-License-Identifier: MIT */
/*
 * Locked memory as Linux counts it, in pages of the machine: for a process
 * (mm->locked_vm, mm->pinned_vm) and for the user whom all processes of a
 * system belong to (user->locked_vm). Only what the system charged is in it;
 * what the process locked otherwise (mlock) is not.
 *
 * Limit and capabilities are this process's and the calling thread's own, read
 * when they are asked for. Counters are atomic: two containers, or a container
 * and an IOAS, charge one process at the same time without a common lock.
 */
#ifndef DMAMAP_SOFT_ACCOUNT_H
#define DMAMAP_SOFT_ACCOUNT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dmamap/common.h"

struct soft_system;

/* Lives as long as the system. */
struct soft_process {
	struct soft_process *next; /* accounts->lock */
	unsigned number;
	atomic_bool gone; /* another one may have its number */
	_Atomic uint64_t locked;
	_Atomic uint64_t pinned;
};

struct soft_accounts {
	pthread_key_t current; /* the thread's process; NULL: the first */
	pthread_mutex_t lock;
	struct soft_process first; /* process 0 */
	_Atomic uint64_t user;
};

int soft_accounts_init(struct soft_accounts *accounts);
void soft_accounts_fini(struct soft_accounts *accounts);

/* The process that the calling thread's calls are made by. */
struct soft_process *soft_process_current(struct soft_system *system);

/* Whether the calling thread has a capability (CAP_*) in its effective set. */
bool soft_capable(unsigned capability);
/* CAP_IPC_LOCK; not asked for, and false, where the machine has no limit at all. */
bool soft_may_lock(const struct soft_system *system);
/* RLIMIT_MEMLOCK in pages; UINT64_MAX: none, by the machine or the process. */
uint64_t soft_lock_limit(const struct soft_system *system);

/* Add @pages to a counter (locked of a process, or user) where it stays within
 * @limit, which is UINT64_MAX for who may exceed it; -ENOMEM with the numbers. */
int soft_charge(const struct soft_system *system, _Atomic uint64_t *counter, uint64_t pages,
	uint64_t limit, struct dmamap_reason *why);
void soft_uncharge(_Atomic uint64_t *counter, uint64_t pages);

#endif
