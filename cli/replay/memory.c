/* SPDX-License-Identifier: MIT */
/*
 * Memory of the case's processes. It is the same on both sides, made once by
 * the first, except for what the system itself maps (BARs) and for what another
 * process than the case's own has on Linux.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/memfd.h>

#include "abi/vfio.h"
#include "run.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

/* In the order of the verb's names. */
static const struct kind {
	unsigned page_shift; /* 0: base pages */
	bool file;
	int advice; /* of madvise; -1: none */
} kinds[] = {
	{0, false, MADV_NOHUGEPAGE}, {0, false, MADV_HUGEPAGE}, {21, false, -1}, {30, false, -1},
	{0, true, -1}, {21, true, -1}, {30, true, -1}, {0, true, -1}, /* on a file system */
};

#define KINDS	  (sizeof(kinds) / sizeof(kinds[0]))
#define KIND_FILE 7

/* Whether another process of the case does it. */
static bool is_elsewhere(
	struct replay *replay, const struct side *side, const struct case_statement *statement)
{
	const struct process *process = process_of(replay, statement);

	return !side->soft && process && process->system;
}

/* Whether the first side has done it for the second as well. */
static bool is_done(
	struct replay *replay, const struct side *side, const struct case_statement *statement)
{
	return side != &replay->sides[0] && !is_elsewhere(replay, &replay->sides[0], statement);
}

/* Room for @length bytes at an address that is congruent to @phase modulo @align. */
static int reserve(struct dmamap_system *system, uint64_t length, uint64_t align, uint64_t phase,
	uint64_t page, uint64_t *va)
{
	uint64_t whole, start, last;
	void *room;
	int error;

	if (__builtin_add_overflow(length, align, &whole) ||
		__builtin_add_overflow(whole, phase, &whole))
		return -ENOMEM;
	error = system->ops->mmap(system, NULL, whole, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &room);
	if (error)
		return error;
	start = (((uintptr_t)room + align - 1) & -align) + phase;
	last = (start + length + page - 1) & -page;
	*va = start;
	if (start > (uintptr_t)room)
		system->ops->munmap(system, room, start - (uintptr_t)room);
	if ((uintptr_t)room + whole > last)
		system->ops->munmap(system, (void *)last, (uintptr_t)room + whole - last);
	return 0;
}

static int make_file(const struct kind *kind, unsigned number, uint64_t size)
{
	int fd;

	if (number == KIND_FILE) {
		const char *folder = getenv("TMPDIR");

		fd = open(folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	} else {
		fd = memfd_create("case",
			MFD_CLOEXEC |
				(kind->page_shift ? MFD_HUGETLB | kind->page_shift << 26 : 0));
	}
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size)) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/* The process's own mappings, as a system does them: on Linux and soft alike. */
static int own_mmap(struct dmamap_system *system, void *address, size_t length, int prot, int flags,
	int fd, uint64_t offset, void **out)
{
	(void)system;
	*out = mmap(address, length, prot, flags, fd, (off_t)offset);
	return *out == MAP_FAILED ? -errno : 0;
}

static int own_munmap(struct dmamap_system *system, void *address, size_t length)
{
	(void)system;
	return munmap(address, length) ? -errno : 0;
}

static const struct dmamap_system_ops own_ops = {.mmap = own_mmap, .munmap = own_munmap};
static struct dmamap_system own = {&own_ops};

/* Huge pages that are not there are no fault of anybody's: the case cannot run here. */
static void lack(struct replay *replay, struct outcome *outcome, unsigned shift)
{
	snprintf(replay->progress->reason, sizeof(replay->progress->reason),
		"no free huge pages of %s (%s); echo N > "
		"/sys/kernel/mm/hugepages/hugepages-%ukB/nr_hugepages",
		shift == 21 ? "2 MiB" : "1 GiB", strerror((int)-outcome->result),
		1u << (shift - 10));
	replay->progress->verdict = CASE_SKIPPED;
}

static uint64_t alignment(
	const struct side *side, const struct case_statement *statement, uint64_t otherwise)
{
	uint64_t align = eval_given(statement, "align") ? eval_key(side, statement, "align") : 0;

	return align && !(align & (align - 1)) ? align : otherwise;
}

static int declare(struct replay *replay, struct state *state, uint64_t page, int fd)
{
	int error = 0;

	for (unsigned i = 0; i < replay->n_sides && !error; i++)
		if (replay->sides[i].soft)
			error = dmamap_soft_declare(replay->sides[i].system, (void *)state->va,
				state->length, fd, (unsigned)__builtin_ctzll(page));
	return error;
}

/* The memory that an address is said to be in, or NULL. */
static struct state *memory_of(
	struct side *side, const struct case_statement *statement, const char *key)
{
	const struct case_argument *argument = eval_given(statement, key);

	for (uint32_t i = 0; argument && argument->kind == VALUE_TERMS && i < argument->n; i++)
		if (argument->terms[i].kind == TERM_THING)
			return &side->states[argument->terms[i].value];
	return NULL;
}

/*
 * What changes memory must be about a memory of the case's own, and end within
 * it: all other memory of the process is not the case's.
 */
bool memory_is_own(struct replay *replay, struct side *side, const struct case_statement *statement,
	const char *key, uint64_t size, struct outcome *outcome)
{
	const struct state *state = memory_of(side, statement, key);
	uint64_t offset, whole;

	if (!state || !state->length) {
		snprintf(outcome->said, sizeof(outcome->said),
			"only memory of the case's own can be changed; give it by its name");
		return false;
	}
	whole = (state->length + replay->page_size - 1) & -replay->page_size;
	offset = eval_key(side, statement, key) - state->va;
	if (offset < state->length && size <= whole - offset)
		return true;
	snprintf(outcome->said, sizeof(outcome->said),
		"offset 0x%" PRIx64 " and 0x%" PRIx64 " bytes reach past the memory's 0x%" PRIx64,
		offset, size, state->length);
	return false;
}

static bool in_bar(struct side *side, const struct case_statement *statement, const char *key)
{
	const struct state *state = memory_of(side, statement, key);

	return state && state->bar;
}

void action_memory(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	unsigned number = (unsigned)eval_key(side, statement, "kind");
	const struct kind *kind = &kinds[number % KINDS];
	struct state *state = &side->states[statement->arguments[0].index];
	uint64_t size = eval_key(side, statement, "size"), page, align, phase, declared, va;
	bool shared = kind->file || eval_given(statement, "shared");
	struct dmamap_system *system = &own;
	int fd = -1, flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE);
	void *at;

	if (is_done(replay, side, statement)) {
		*state = replay->sides[0].states[statement->arguments[0].index];
		return;
	}
	if (is_elsewhere(replay, side, statement))
		system = process_system(replay, side, statement);
	declared = eval_key(side, statement, "declared");
	page = kind->page_shift ? 1ULL << kind->page_shift : replay->page_size;
	if (declared > page && !(declared & (declared - 1)))
		page = declared;
	align = alignment(side, statement, size >= 2 * MIB && page < 2 * MIB ? 2 * MIB : page);
	phase = eval_key(side, statement, "phase");
	if (kind->file) {
		uint64_t whole = (size + page - 1) & -page;

		fd = make_file(kind, number, kind->page_shift ? whole : size);
		outcome->result = fd < 0 ? fd : 0;
	}
	if (!outcome->result)
		outcome->result =
			reserve(system, size, align < page ? page : align, phase, page, &va);
	if (!outcome->result) {
		flags |= fd < 0 ? MAP_ANONYMOUS : 0;
		flags |= declared ? MAP_NORESERVE : 0;
		flags |= kind->page_shift && fd < 0 ? MAP_HUGETLB | (int)(kind->page_shift << 26)
						    : 0;
		outcome->result = system->ops->mmap(system, (void *)va, size,
			(int)eval_key(side, statement, "prot"), flags, fd, 0, &at);
	}
	if (outcome->result) {
		if (kind->page_shift)
			lack(replay, outcome, kind->page_shift);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (kind->advice >= 0 && system == &own)
		madvise(at, size, kind->advice);
	*state = (struct state){.fd = fd, .iommufd = -1, .map_fd = -1, .va = va, .length = size};
	if (declared)
		outcome->result = declare(replay, state, declared, fd);
}

void action_bar(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	struct vfio_region_info *info = scratch_take(replay, sizeof(*info));
	struct state *device = eval_thing(side, statement, "device");
	struct state *state = &side->states[statement->arguments[0].index];
	uint64_t size, offset = eval_key(side, statement, "offset"), align, va;
	void *at;
	int prot = (int)eval_key(side, statement, "prot");

	outcome->result = -ESRCH;
	if (!system || !info)
		return;
	info->argsz = sizeof(*info);
	info->index = (uint32_t)eval_key(side, statement, "index");
	outcome->step = "VFIO_DEVICE_GET_REGION_INFO";
	if (outcome_set(side, outcome,
		    system->ops->ioctl(system, device->fd, VFIO_DEVICE_GET_REGION_INFO, info)) < 0)
		return;
	outcome->step = NULL;
	size = eval_given(statement, "size") ? eval_key(side, statement, "size")
					     : info->size - offset;
	/* A BAR is aligned to its size: so far the address can be congruent to the BAR's own. */
	align = info->size && info->size < GIB ? info->size : GIB;
	align = alignment(side, statement, align < replay->page_size ? replay->page_size : align);
	outcome->result = reserve(side->soft ? &own : system, size, align,
		(offset & (align - 1)) + eval_key(side, statement, "phase"), replay->page_size,
		&va);
	if (outcome->result)
		return;
	outcome_set(side, outcome,
		system->ops->mmap(system, (void *)va, size, prot, MAP_SHARED | MAP_FIXED,
			device->fd, info->offset + offset, &at));
	if (!outcome->result)
		*state = (struct state){.fd = -1,
			.iommufd = -1,
			.map_fd = -1,
			.va = va,
			.length = size,
			.bar = true};
}

void action_mmap(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct dmamap_system *system = process_system(replay, side, statement);
	struct state *file = eval_thing(side, statement, "on");
	struct state *state = &side->states[statement->arguments[0].index];
	uint64_t size = eval_key(side, statement, "size"), flags;
	bool fixed = eval_given(statement, "at");
	void *at = (void *)eval_key(side, statement, "at");

	outcome->result = -ESRCH;
	if (!system)
		return;
	/* A file of the case's own is none of the soft system's. */
	if (side->soft &&
		replay->file->things[eval_given(statement, "on")->index].kind == THING_MEMORY)
		system = &own;
	if (fixed && !memory_is_own(replay, side, statement, "at", size, outcome))
		return;
	flags = eval_key(side, statement, "flags");
	outcome_set(side, outcome,
		system->ops->mmap(system, at, size, (int)eval_key(side, statement, "prot"),
			(flags & 1 ? MAP_SHARED : 0) | (flags & 2 ? MAP_PRIVATE : 0) |
				(fixed ? MAP_FIXED : 0),
			file->fd, eval_key(side, statement, "offset"), &at));
	if (!outcome->result)
		*state = (struct state){.fd = -1,
			.iommufd = -1,
			.map_fd = -1,
			.va = (uintptr_t)at,
			.length = size,
			.bar = true};
}

void action_munmap(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	struct state *state = memory_of(side, statement, "address");
	bool whole = !eval_given(statement, "size");
	bool bar = state && state->bar;
	uint64_t size = whole ? (state ? state->length : 0) : eval_key(side, statement, "size");
	struct dmamap_system *system = &own;

	if (bar || is_elsewhere(replay, side, statement))
		system = process_system(replay, side, statement);
	if (!system) {
		outcome->result = -ESRCH;
		return;
	}
	if (!memory_is_own(replay, side, statement, "address", size, outcome))
		return;
	if (bar || !is_done(replay, side, statement))
		outcome_set(side, outcome,
			system->ops->munmap(
				system, (void *)eval_key(side, statement, "address"), size));
	/* Other memory may come to be there, which is not the case's. */
	if (whole && !outcome->result)
		state->length = 0;
}

void action_protect(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	const uint64_t arguments[6] = {eval_key(side, statement, "address"),
		eval_key(side, statement, "size"), eval_key(side, statement, "prot")};

	if (!memory_is_own(replay, side, statement, "address", arguments[1], outcome))
		return;
	if (is_elsewhere(replay, side, statement)) {
		struct dmamap_system *system = process_system(replay, side, statement);

		outcome->result = worker_call(system, SYS_mprotect, arguments);
	} else if (in_bar(side, statement, "address") || !is_done(replay, side, statement)) {
		if (mprotect((void *)arguments[0], arguments[1], (int)arguments[2]))
			outcome->result = -errno;
	}
}

/* ------------------------------------------------------------------- bytes */

#define PIECE ((size_t)4096) /* a pipe has room for so many bytes without waiting */

/*
 * The kernel copies, so that a hole is an error and no crash: through a pipe,
 * as process_vm_readv() is not in every kernel, and /proc/self/mem writes to
 * what cannot be written.
 */
static int move_own(void *to, const void *from, size_t size)
{
	static int ends[2] = {-1, -1};
	uint8_t rest[PIECE];
	ssize_t written, got;
	int error = 0;

	if (ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	written = write(ends[1], from, size);
	if (written < 0)
		return -errno;
	got = read(ends[0], to, (size_t)written);
	if (got < 0)
		error = -errno;
	if (got < written && read(ends[0], rest, sizeof(rest)) < 0 && !error)
		error = -errno;
	return error ? error : (size_t)got == size ? 0 : -EFAULT;
}

static int move_other(pid_t pid, uint64_t va, void *bytes, size_t size, bool write)
{
	char path[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write ? pwrite(fd, bytes, size, (off_t)va) : pread(fd, bytes, size, (off_t)va);
	close(fd);
	return (size_t)n == size ? 0 : -EFAULT;
}

/* BARs are copied here: the kernel does not copy from them. */
static int move(pid_t pid, bool bar, uint64_t va, void *bytes, size_t size, bool write)
{
	void *from = write ? bytes : (void *)va, *to = write ? (void *)va : bytes;

	if (pid != getpid())
		return move_other(pid, va, bytes, size, write);
	if (!bar)
		return move_own(to, from, size);
	memcpy(to, from, size);
	return 0;
}

int memory_fill(pid_t pid, bool bar, uint64_t va, uint64_t size, uint8_t value)
{
	uint8_t bytes[PIECE];
	int error = 0;

	memset(bytes, value, sizeof(bytes));
	for (uint64_t done = 0; done < size && !error; done += PIECE)
		error = move(pid, bar, va + done, bytes,
			size - done < PIECE ? (size_t)(size - done) : PIECE, true);
	return error;
}

int memory_check(
	pid_t pid, bool bar, uint64_t va, uint64_t size, uint8_t value, char *said, size_t room)
{
	uint8_t bytes[PIECE];
	int error = 0;

	for (uint64_t done = 0; done < size && !error && !said[0]; done += PIECE) {
		size_t n = size - done < PIECE ? (size_t)(size - done) : PIECE;

		error = move(pid, bar, va + done, bytes, n, false);
		for (size_t i = 0; i < n && !error && !said[0]; i++)
			if (bytes[i] != value)
				snprintf(said, room,
					"the byte at +0x%llx is 0x%02x, 0x%02x was expected",
					(unsigned long long)(done + i), bytes[i], value);
	}
	return error;
}

static pid_t whose(
	struct replay *replay, const struct side *side, const struct case_statement *statement)
{
	return is_elsewhere(replay, side, statement) ? process_of(replay, statement)->pid
						     : getpid();
}

void action_fill(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	bool bar = in_bar(side, statement, "address");

	if (!memory_is_own(
		    replay, side, statement, "address", eval_key(side, statement, "size"), outcome))
		return;
	if (bar || !is_done(replay, side, statement))
		outcome->result = memory_fill(whose(replay, side, statement), bar,
			eval_key(side, statement, "address"), eval_key(side, statement, "size"),
			(uint8_t)eval_key(side, statement, "value"));
}

void action_check(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	bool bar = in_bar(side, statement, "address");

	if (bar || !is_done(replay, side, statement))
		outcome->result = memory_check(whose(replay, side, statement), bar,
			eval_key(side, statement, "address"), eval_key(side, statement, "size"),
			(uint8_t)eval_key(side, statement, "value"), outcome->said,
			sizeof(outcome->said));
}
