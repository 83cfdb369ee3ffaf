/* SPDX-License-Identifier: MIT */
/*
 * The processes of a case. On Linux each but the first is a child that makes
 * the calls (worker.c). The soft system has one process for all of them: it is
 * told whom to charge, and this process takes on that one's limits and
 * capabilities while it makes the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "run.h"

static int get_capabilities(uint64_t *effective)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	*effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	return 0;
}

static int set_capabilities(uint64_t effective)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective = (uint32_t)effective;
	data[1].effective = (uint32_t)(effective >> 32);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* The soft limit; the hard one grows with it where the user may do that. */
static int set_limit(int resource, rlim_t limit)
{
	struct rlimit both;

	if (getrlimit(resource, &both))
		return -errno;
	both.rlim_cur = limit;
	if (both.rlim_max < limit)
		both.rlim_max = limit;
	return setrlimit(resource, &both) ? -errno : 0;
}

/* This process takes on what another one of the case has. */
static int take_on(struct replay *replay, const struct process *process)
{
	struct process *now = &replay->applied;
	int error = 0;

	/* Rights first where they come back: raising a limit may need them. */
	if (now->capabilities != process->capabilities &&
		process->capabilities & ~now->capabilities)
		error = set_capabilities(now->capabilities | process->capabilities);
	if (!error && now->memlock != process->memlock)
		error = set_limit(RLIMIT_MEMLOCK, process->memlock);
	if (!error && now->files != process->files)
		error = set_limit(RLIMIT_NOFILE, process->files);
	if (!error && now->capabilities != process->capabilities)
		error = set_capabilities(process->capabilities);
	if (!error) {
		now->memlock = process->memlock;
		now->files = process->files;
		now->capabilities = process->capabilities;
	}
	return error;
}

struct process *process_of(struct replay *replay, const struct case_statement *statement)
{
	for (unsigned i = 0; i < replay->n_processes; i++)
		if (replay->processes[i].thing == statement->process)
			return &replay->processes[i];
	return NULL;
}

struct dmamap_system *process_system(
	struct replay *replay, struct side *side, const struct case_statement *statement)
{
	struct process *process = process_of(replay, statement);
	unsigned number;

	if (!process || process->gone)
		return NULL;
	if (!side->soft && process->system)
		return process->system;
	if (take_on(replay, side->soft ? process : &replay->processes[0]))
		return NULL;
	number = (unsigned)(process - replay->processes);
	if (side->soft && side->process != number) {
		if (dmamap_soft_process(side->system, number))
			return NULL;
		side->process = number;
	}
	return side->system;
}

/* VmLck and VmPin of a process, in bytes. */
static void read_status(pid_t pid, uint64_t *locked, uint64_t *pinned)
{
	char path[64], text[4096];
	const char *line;
	ssize_t n;
	int fd;

	*locked = *pinned = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "\nVmLck:");
	if (line)
		*locked = strtoull(line + 7, NULL, 10) << 10;
	line = strstr(text, "\nVmPin:");
	if (line)
		*pinned = strtoull(line + 7, NULL, 10) << 10;
}

void process_charge(const struct process *process, uint64_t *locked, uint64_t *pinned)
{
	read_status(process->pid ? process->pid : getpid(), locked, pinned);
	*locked -= process->locked;
	*pinned -= process->pinned;
}

int process_init(struct replay *replay)
{
	struct process *self = &replay->processes[0];
	struct rlimit limit;

	replay->n_processes = 1;
	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return -errno;
	self->memlock = limit.rlim_cur;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	self->files = limit.rlim_cur;
	read_status(getpid(), &self->locked, &self->pinned);
	if (get_capabilities(&self->capabilities))
		return -errno;
	replay->applied = replay->initial = *self;
	return 0;
}

void process_restore(struct replay *replay)
{
	if (replay->n_processes)
		take_on(replay, &replay->initial);
}

int process_start(struct replay *replay, unsigned thing)
{
	struct process *process = &replay->processes[replay->n_processes];
	struct process self = replay->processes[0];
	int error;

	for (unsigned i = 0; i < replay->n_processes; i++)
		if (replay->processes[i].thing == thing)
			return -EEXIST;
	if (replay->n_processes == PROCESSES_MAX)
		return -EAGAIN;
	error = take_on(replay, &self);
	if (error)
		return error;
	*process = (struct process){.thing = thing,
		.memlock = self.memlock,
		.files = self.files,
		.capabilities = self.capabilities};
	if (!replay->sides[0].soft) {
		error = worker_start(process, &process->system);
		if (error)
			return error;
		read_status(process->pid, &process->locked, &process->pinned);
		replay->workers = true;
	}
	replay->n_processes++;
	return 0;
}

void process_end(struct replay *replay, unsigned thing)
{
	for (unsigned i = 1; i < replay->n_processes; i++) {
		struct process *process = &replay->processes[i];

		if (process->thing != thing || process->gone)
			continue;
		if (process->system)
			worker_end(process);
		process->system = NULL;
		process->gone = true;
	}
}

void process_end_all(struct replay *replay)
{
	for (unsigned i = 1; i < replay->n_processes; i++)
		process_end(replay, replay->processes[i].thing);
}

void action_process(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	if (side == &replay->sides[0])
		outcome->result = process_start(replay, statement->arguments[0].index);
}

void action_exit(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	unsigned thing = statement->arguments[0].index;

	(void)outcome;
	for (unsigned i = 1; side->soft && i < replay->n_processes; i++) {
		if (replay->processes[i].thing != thing || replay->processes[i].gone)
			continue;
		dmamap_soft_process(side->system, 0);
		side->process = 0;
		dmamap_soft_exit(side->system, i);
	}
	/* It is one process to both systems, and gone when both know. */
	if (side == &replay->sides[replay->n_sides - 1])
		process_end(replay, thing);
}

/* ------------------------------------------------------------------ limits */

static int64_t worker_limit(struct replay *replay, struct process *process, int resource, rlim_t to)
{
	struct rlimit *limit = scratch_take(replay, sizeof(*limit));
	uint64_t arguments[6] = {0, (uint64_t)resource, 0, (uintptr_t)limit};
	long result;

	if (!limit)
		return -ENOMEM;
	result = worker_call(process->system, SYS_prlimit64, arguments);
	if (result)
		return result;
	limit->rlim_cur = to;
	if (limit->rlim_max < to)
		limit->rlim_max = to;
	arguments[2] = (uintptr_t)limit;
	arguments[3] = 0;
	return worker_call(process->system, SYS_prlimit64, arguments);
}

void action_limit(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct process *process = process_of(replay, statement);
	static const struct {
		const char *key;
		int resource;
	} limits[] = {{"memlock", RLIMIT_MEMLOCK}, {"files", RLIMIT_NOFILE}};

	if (side != &replay->sides[0])
		return;
	if (!process || process->gone) {
		outcome->result = -ESRCH;
		return;
	}
	for (unsigned i = 0; i < 2 && !outcome->result; i++) {
		struct process wanted = *process;
		rlim_t limit;

		if (!eval_given(statement, limits[i].key))
			continue;
		limit = eval_key(side, statement, limits[i].key);
		if (i)
			wanted.files = limit;
		else
			wanted.memlock = limit;
		if (process->system)
			outcome->result = worker_limit(replay, process, limits[i].resource, limit);
		/* Also where a worker has it: the soft system beside it looks at this process. */
		if (!outcome->result && (!process->system || replay->n_sides > 1))
			outcome->result = take_on(replay, &wanted);
		if (!outcome->result)
			*process = wanted;
	}
}

static int64_t worker_capabilities(
	struct replay *replay, struct process *process, uint64_t effective)
{
	struct __user_cap_header_struct *header = scratch_take(replay, sizeof(*header));
	struct __user_cap_data_struct *data = scratch_take(replay, 2 * sizeof(*data));
	uint64_t arguments[6] = {(uintptr_t)header, (uintptr_t)data};
	long result;

	if (!header || !data)
		return -ENOMEM;
	header->version = _LINUX_CAPABILITY_VERSION_3;
	result = worker_call(process->system, SYS_capget, arguments);
	if (result)
		return result;
	data[0].effective = (uint32_t)effective;
	data[1].effective = (uint32_t)(effective >> 32);
	return worker_call(process->system, SYS_capset, arguments);
}

void action_capability(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	struct process *process = process_of(replay, statement), wanted;

	if (side != &replay->sides[0])
		return;
	if (!process || process->gone) {
		outcome->result = -ESRCH;
		return;
	}
	wanted = *process;
	for (int i = 0; statement->verb->fields[i].name; i++) {
		uint64_t bit = 1ULL << statement->verb->fields[i].initial;

		if (statement->verb->fields[i].kind != FIELD_CHOICE ||
			!case_argument(statement, (unsigned)i, false))
			continue;
		if (eval_field(side, statement, i))
			wanted.capabilities |= bit;
		else
			wanted.capabilities &= ~bit;
	}
	if (process->system)
		outcome->result = worker_capabilities(replay, process, wanted.capabilities);
	if (!outcome->result && (!process->system || replay->n_sides > 1))
		outcome->result = take_on(replay, &wanted);
	if (!outcome->result)
		*process = wanted;
}

/* ----------------------------------------------------------------- charges */

void action_charged(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	static const char *const keys[] = {"locked", "pinned", "user"};
	struct process *process = process_of(replay, statement);
	uint64_t has[3] = {0};
	char got[32], wanted[32];

	if (!process || process->gone) {
		outcome->result = -ESRCH;
		return;
	}
	if (side->soft) {
		struct dmamap_soft_charge charge;

		outcome->result = dmamap_soft_charged(
			side->system, (unsigned)(process - replay->processes), &charge);
		if (outcome->result)
			return;
		has[0] = charge.locked;
		has[1] = charge.pinned;
		has[2] = charge.user;
	} else {
		process_charge(process, &has[0], &has[1]);
	}
	for (unsigned i = 0; i < (side->soft ? 3 : 2); i++) {
		struct line a = {got, sizeof(got), 0}, b = {wanted, sizeof(wanted), 0};

		if (!eval_given(statement, keys[i]) || eval_key(side, statement, keys[i]) == has[i])
			continue;
		line_number(&a, SHOW_SIZE, has[i]);
		line_number(&b, SHOW_SIZE, eval_key(side, statement, keys[i]));
		snprintf(outcome->said, sizeof(outcome->said), "%s is %s, %s was expected", keys[i],
			got, wanted);
	}
}
