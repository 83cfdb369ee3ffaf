/* SPDX-License-Identifier: MIT */
/*
 * Running a case: its state, and what the parts of the runner give each other.
 *
 * A case runs on one side or on two. The first side is the system that was
 * asked for; on Linux the second is the soft system beside it, which gets the
 * same calls right after. Names and variables have a value on each side, since
 * descriptors and the addresses of BARs differ. Each call leaves an outcome on
 * each side: run.c holds the first one against what the case expects, and the
 * two against each other.
 *
 * All of it is in the process that was forked for the case; when it ends,
 * whatever is open and mapped goes with it.
 */
#ifndef REPLAY_RUN_H
#define REPLAY_RUN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "dmamap/machine.h"
#include "dmamap/soft.h"
#include "dmamap/system.h"
#include "print.h"

#define OUTPUTS	      48
#define DEVICES_MAX   100 /* d0 to d99 */
#define PROCESSES_MAX 16

/** struct replay_options - What the command line asked for. */
struct replay_options {
	bool linux_system;
	bool quiet;
	enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_TAP } format;
	const char *machine; /**< SPEC or @FILE; NULL: the default */
	uint64_t random;     /**< so many random calls instead of files */
	uint64_t seed;
	bool has_seed;
	const char *save; /**< what the files begin with that mismatches are written to */
	char **files;
	int n_files;
};

/** struct progress - What the process of a case tells the one that waits for it. */
struct progress {
	uint32_t line; /**< being run */
	uint64_t calls;
	uint64_t failures;
	uint64_t disagreements;
	enum { CASE_RUNNING, CASE_PASSED, CASE_FAILED, CASE_SKIPPED, CASE_BAD } verdict;
	char title[200];
	char reason[768]; /**< why it was skipped, or is no case */
};

/** struct output - What a call gave in one field. */
struct output {
	enum { OUTPUT_NONE, OUTPUT_NUMBER, OUTPUT_LIST, OUTPUT_BYTES } kind;
	uint64_t number;
	size_t n;
	const struct dmamap_range *ranges;
	const uint8_t *bytes;
};

/**
 * struct outcome - What came of a statement on one side.
 * @result: as the system gave it, -errno included
 * @fault: of a device's access: it faulted
 * @step: which step of a whole set-up gave the result, or NULL
 * @said: what is wrong, in words, where it is no wrong result; empty: nothing
 * @uncounted: the side cannot say: nothing is compared
 * @structure, @structure_size: of an ioctl, as it was after the call
 * @outputs, @have: by field; for those whose bit is set
 */
struct outcome {
	int64_t result;
	bool fault;
	bool uncounted;
	const char *step;
	bool has_reason;
	struct dmamap_reason reason;
	uint8_t *structure;
	size_t structure_size;
	uint8_t *before; /* the structure as it was passed, where somebody wants to know */
	const uint64_t *bitmap;
	size_t bitmap_bits;
	const struct dmamap_range *array;
	size_t array_n;
	const uint8_t *buffer;
	size_t buffer_size;
	uint64_t have;
	struct output outputs[OUTPUTS];
	char said[200];
};

/** struct state - A name's value on one side. */
struct state {
	int fd;		 /**< -1: none */
	uint32_t id;	 /**< object id */
	int iommufd;	 /**< of an IOAS or HWPT: where its id is known */
	int map_fd;	 /**< of a device or group: where its IOVAs are mapped; -1: nowhere */
	uint32_t ioas;	 /**< of a device or HWPT: in which IOAS; 0: a container's */
	uint64_t va;	 /**< of memory */
	uint64_t length; /**< of memory */
	bool bar;	 /**< memory that the system mapped */
};

/** struct process - One of the case's processes. 0 is the case's own. */
struct process {
	unsigned thing;
	pid_t pid;		      /**< Linux: its own; 0: this process stands for it */
	struct dmamap_system *system; /**< Linux: calls made there */
	rlim_t memlock, files;	      /**< soft limits */
	uint64_t capabilities;	      /**< effective */
	bool gone;
	uint64_t locked, pinned; /**< Linux: when the case began */
};

struct side {
	struct dmamap_system *system;
	bool soft;
	struct state *states; /* by thing */
	uint64_t *variables;
	struct dmamap_counters base;
	unsigned process;	    /* whom the soft system charges now */
	int group_fds[DEVICES_MAX]; /* of the container statement at hand */
};

/** struct pci_device - One of the machine's devices, as a case knows it. */
struct pci_device {
	char bdf[16];
	char group[32]; /* /dev/vfio/N */
	char cdev[64];	/* empty: none */
	uint16_t vendor, device;
};

struct report;

struct replay {
	const struct case_file *file;
	const struct replay_options *options;
	struct progress *progress;
	struct report *report;
	struct side sides[2];
	unsigned n_sides;
	struct outcome outcomes[2];
	struct dmamap_machine machine;
	struct pci_device devices[DEVICES_MAX];
	unsigned n_devices;
	int32_t device_things[DEVICES_MAX], group_things[DEVICES_MAX]; /* -1: not named */
	struct process processes[PROCESSES_MAX];
	unsigned n_processes;
	struct process applied; /* the limits and capabilities that this process has now */
	struct process initial; /* and had at first */
	/* Arguments of calls: shared with the case's processes. */
	uint8_t *scratch;
	size_t scratch_used;
	/* For structures, where no other process makes calls: the soft system takes what is on its
	 * caller's stack without asking the kernel whether it is there. NULL: none. */
	uint8_t *stack;
	size_t stack_used;
	bool workers;  /* some process makes its own calls */
	uint8_t *seen; /* by statement: printed in a loop already; failures so far */
	uint64_t page_size;
	bool show_changes; /* all outputs are printed that a call changed */
};

/** run_case() - Run a parsed case. Return: 0; -1 with a complaint where it cannot start
 * (a machine that cannot be, no device). The verdict is in @progress. */
int run_case(const struct case_file *file, const struct replay_options *options,
	struct progress *progress, FILE *out, struct complaint *complaint);

/* For who runs statements otherwise than as a case: cli/differential. */

/** run_state() - What a replay needs beside its file, machine and systems.
 * Return: 0; -errno. */
int run_state(struct replay *replay, FILE *out);
/** run_sides() - A statement on each side; outcomes[] has what came of it. */
void run_sides(struct replay *replay, const struct case_statement *statement);

/* eval.c */

/** eval_number() - An argument's number on a side. */
uint64_t eval_number(const struct side *side, const struct case_statement *statement,
	const struct case_argument *argument);
/** eval_field() - A field's number, or its initial value. */
uint64_t eval_field(const struct side *side, const struct case_statement *statement, int field);
/** eval_key() - The same, by the key's name. */
uint64_t eval_key(const struct side *side, const struct case_statement *statement, const char *key);
/** eval_given() - The argument of that key, or NULL. */
const struct case_argument *eval_given(const struct case_statement *statement, const char *key);
/** eval_item() - A list's item as a range. */
struct dmamap_range eval_item(const struct side *side, const struct case_statement *statement,
	const struct case_argument *list, size_t i);
/** eval_thing() - The state of the thing that a word names. */
struct state *eval_thing(
	struct side *side, const struct case_statement *statement, const char *key);

/* Memory for one statement, zeroed, that all of the case's processes see. NULL: none. */
void *scratch_take(struct replay *replay, size_t size);
/* The most that one statement can have: twice the largest bitmap of type1. */
#define SCRATCH ((size_t)1 << 30)

/* The same for the structure of a call. */
void *scratch_argument(struct replay *replay, size_t size);
/* The end of it, SCRATCH_LAST bytes, behind which is no memory: for sizes that nobody has. */
void *scratch_last(struct replay *replay);
#define SCRATCH_LAST ((size_t)1 << 20)
/* All of it back, for the next statement. */
void scratch_reset(struct replay *replay);
#define SCRATCH_STACK 4096

/* process.c */

/** process_system() - The system on which a statement's calls are made; limits and
 * who is charged are set for it. NULL: the process is gone. */
struct dmamap_system *process_system(
	struct replay *replay, struct side *side, const struct case_statement *statement);
int process_start(struct replay *replay, unsigned thing);
void process_end(struct replay *replay, unsigned thing);
void process_end_all(struct replay *replay);
int process_init(struct replay *replay);
/* The limits that the process had before the case. */
void process_restore(struct replay *replay);
/* Linux: what the process has locked and pinned since the case began. */
void process_charge(const struct process *process, uint64_t *locked, uint64_t *pinned);
/* The statement's process. */
struct process *process_of(struct replay *replay, const struct case_statement *statement);
/* worker.c: a process of the case's own on Linux. */
int worker_start(struct process *process, struct dmamap_system **system);
void worker_end(struct process *process);
/* Syscalls there that are no operation of a system. Return: -errno or the result. */
long worker_call(struct dmamap_system *system, long number, const uint64_t arguments[6]);
/* The functions of the verbs: the outcome on one side. */
typedef void action_fn(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome);

action_fn action_limit, action_capability, action_charged, action_process, action_exit;
action_fn action_memory, action_bar, action_mmap, action_munmap, action_protect, action_fill,
	action_check;
action_fn action_container, action_ioas, action_open, action_close, action_eventfd,
	action_signalled;
action_fn action_read, action_write, action_dma_write, action_dma_read, action_segments,
	action_counters, action_raw, action_ioctl;

/* open.c */

/** state_open() - A thing has this descriptor now; so has the device that it is of. */
void state_open(struct replay *replay, struct side *side, unsigned thing, int device, int fd);
/** outcome_set() - The result of a system call, with the reason for it; returns it. */
int64_t outcome_set(struct side *side, struct outcome *outcome, int64_t result);

/* memory.c */

/* Whether @size bytes from the address of that key on are of one memory of the case; else
 * the outcome says what is wrong. */
bool memory_is_own(struct replay *replay, struct side *side, const struct case_statement *statement,
	const char *key, uint64_t size, struct outcome *outcome);
/* Bytes of a process; a hole is -EFAULT. */
int memory_fill(pid_t pid, bool bar, uint64_t va, uint64_t size, uint8_t value);
/* @said: which byte differs; stays empty where none does. */
int memory_check(
	pid_t pid, bool bar, uint64_t va, uint64_t size, uint8_t value, char *said, size_t room);

/* outputs.c */
void output_get(struct replay *replay, const struct case_statement *statement,
	struct outcome *outcome, unsigned field, struct output *output);
bool output_equal(const struct output *one, const struct output *other);
void output_print(struct line *line, const struct field *field, const struct output *output);
/* What an output must be, as one. */
void output_expected(struct replay *replay, const struct side *side,
	const struct case_statement *statement, const struct case_argument *argument,
	struct output *output);

/* edu.c: a real device that does DMA on command. -EOPNOTSUPP, -EBUSY: not here and now. */
bool edu_is(const struct pci_device *device);
int edu_write(struct replay *replay, struct side *side, const struct state *device, uint64_t iova,
	uint8_t value, uint64_t size);
/* @same: every byte that the device read was @value. */
int edu_read(struct replay *replay, struct side *side, const struct state *device, uint64_t iova,
	uint8_t value, uint64_t size, bool *same);

/* facts.c */

/** facts_hold() - Whether a condition holds; else @why says why not. */
bool facts_hold(const struct replay *replay, const struct case_condition *condition, char *why,
	size_t size);
/** facts_devices() - Find the machine's devices. */
int facts_devices(struct replay *replay);

/* advice.c */

/** advice() - What to do about a refusal, or NULL. */
bool advice(const struct dmamap_reason *reason, char *text, size_t size);

#endif
