/* SPDX-License-Identifier: MIT */
/*
 * Who is charged, how much may be charged, and the counters (soft/account.h
 * says what they mean). The limit is tested and the charge added in one step,
 * so that two threads cannot both take the last page.
 */
#include "soft/account.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soft/soft.h"

int soft_accounts_init(struct soft_accounts *accounts)
{
	int error = pthread_key_create(&accounts->current, NULL);

	if (error)
		return -error;
	pthread_mutex_init(&accounts->lock, NULL);
	return 0;
}

void soft_accounts_fini(struct soft_accounts *accounts)
{
	struct soft_process *process = accounts->first.next;

	while (process) {
		struct soft_process *next = process->next;

		free(process);
		process = next;
	}
	pthread_mutex_destroy(&accounts->lock);
	pthread_key_delete(accounts->current);
}

struct soft_process *soft_process_current(struct soft_system *system)
{
	struct soft_process *process = pthread_getspecific(system->accounts.current);

	return process ? process : &system->accounts.first;
}

/* NULL: it never made a call. Lock held. */
static struct soft_process *find(struct soft_accounts *accounts, unsigned number)
{
	struct soft_process *process = &accounts->first;

	while (process && (process->number != number || atomic_load(&process->gone)))
		process = process->next;
	return process;
}

int dmamap_soft_process(struct dmamap_system *base, unsigned number)
{
	struct soft_system *system = soft_system_from(base);
	struct soft_accounts *accounts;
	struct soft_process *process;

	if (!system)
		return -EINVAL;
	accounts = &system->accounts;
	pthread_mutex_lock(&accounts->lock);
	process = find(accounts, number);
	if (!process) {
		process = calloc(1, sizeof(*process));
		if (process) {
			process->number = number;
			process->next = accounts->first.next;
			accounts->first.next = process;
		}
	}
	pthread_mutex_unlock(&accounts->lock);
	return process ? -pthread_setspecific(accounts->current, process) : -ENOMEM;
}

int dmamap_soft_exit(struct dmamap_system *base, unsigned number)
{
	struct soft_system *system = soft_system_from(base);
	struct soft_process *process;
	int error = 0;

	if (!system)
		return -EINVAL;
	pthread_mutex_lock(&system->accounts.lock);
	process = find(&system->accounts, number);
	if (!process || process == &system->accounts.first ||
		process == soft_process_current(system))
		error = -ESRCH;
	else
		atomic_store(&process->gone, true);
	pthread_mutex_unlock(&system->accounts.lock);
	return error;
}

int dmamap_soft_charged(
	struct dmamap_system *base, unsigned number, struct dmamap_soft_charge *charge)
{
	struct soft_system *system = soft_system_from(base);
	struct soft_process *process;
	unsigned shift;

	if (!system)
		return -EINVAL;
	shift = system->machine.page_shift;
	pthread_mutex_lock(&system->accounts.lock);
	process = find(&system->accounts, number);
	pthread_mutex_unlock(&system->accounts.lock);
	*charge = (struct dmamap_soft_charge){
		.locked = process ? atomic_load(&process->locked) << shift : 0,
		.pinned = process ? atomic_load(&process->pinned) << shift : 0,
		.user = atomic_load(&system->accounts.user) << shift,
	};
	return 0;
}

bool soft_capable(unsigned capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	/* Without an answer there is no privilege either. */
	if (syscall(SYS_capget, &header, data))
		return false;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

bool soft_may_lock(const struct soft_system *system)
{
	return system->machine.memlock == DMAMAP_MEMLOCK_PROCESS && soft_capable(CAP_IPC_LOCK);
}

uint64_t soft_lock_limit(const struct soft_system *system)
{
	struct rlimit limit;

	if (system->machine.memlock == DMAMAP_MEMLOCK_UNLIMITED ||
		getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return (uint64_t)limit.rlim_cur >> system->machine.page_shift;
}

int soft_charge(const struct soft_system *system, _Atomic uint64_t *counter, uint64_t pages,
	uint64_t limit, struct dmamap_reason *why)
{
	uint64_t charged = atomic_load_explicit(counter, memory_order_relaxed);
	unsigned shift = system->machine.page_shift;

	do {
		if (charged > limit || pages > limit - charged)
			return DMAMAP_REFUSE(why, &soft_reason_memlock, ENOMEM,
				counter == &system->accounts.user ? "the user" : "the process",
				pages << shift, charged << shift, limit << shift);
	} while (!atomic_compare_exchange_weak_explicit(
		counter, &charged, charged + pages, memory_order_relaxed, memory_order_relaxed));
	return 0;
}

void soft_uncharge(_Atomic uint64_t *counter, uint64_t pages)
{
	atomic_fetch_sub_explicit(counter, pages, memory_order_relaxed);
}
