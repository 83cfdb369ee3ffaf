/* SPDX-License-Identifier: MIT */
/* Runs a case: statement by statement, on each side, and judges what came of it. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

#define LOOPS_MAX     16
#define SHOWN_MAX     10 /* of one statement's failures */
#define SEEN	      0x80
#define OUTCOME_START offsetof(struct outcome, outputs)

static action_fn *const actions[ACTIONS] = {
	[ACTION_PROCESS] = action_process,
	[ACTION_EXIT] = action_exit,
	[ACTION_LIMIT] = action_limit,
	[ACTION_CAPABILITY] = action_capability,
	[ACTION_CHARGED] = action_charged,
	[ACTION_MEMORY] = action_memory,
	[ACTION_BAR] = action_bar,
	[ACTION_MMAP] = action_mmap,
	[ACTION_MUNMAP] = action_munmap,
	[ACTION_PROTECT] = action_protect,
	[ACTION_FILL] = action_fill,
	[ACTION_CHECK] = action_check,
	[ACTION_CONTAINER] = action_container,
	[ACTION_IOAS] = action_ioas,
	[ACTION_OPEN] = action_open,
	[ACTION_CLOSE] = action_close,
	[ACTION_EVENTFD] = action_eventfd,
	[ACTION_SIGNALLED] = action_signalled,
	[ACTION_READ] = action_read,
	[ACTION_WRITE] = action_write,
	[ACTION_DMA_WRITE] = action_dma_write,
	[ACTION_DMA_READ] = action_dma_read,
	[ACTION_SEGMENTS] = action_segments,
	[ACTION_COUNTERS] = action_counters,
	[ACTION_RAW] = action_raw,
	[ACTION_IOCTL] = action_ioctl,
};

/* What the rest of a case cannot do without: it ends where these fail unexpectedly. */
static bool is_setup(const struct case_statement *statement)
{
	switch (statement->verb->action) {
	case ACTION_PROCESS:
	case ACTION_LIMIT:
	case ACTION_CAPABILITY:
	case ACTION_MEMORY:
	case ACTION_BAR:
	case ACTION_MMAP:
	case ACTION_CONTAINER:
	case ACTION_IOAS:
	case ACTION_OPEN:
	case ACTION_EVENTFD:
		return statement->result_kind == RESULT_NONE;
	default:
		return false;
	}
}

/* ------------------------------------------------------------------- judging */

struct judgement {
	struct finding findings[FAILURES_MAX];
	unsigned n;
};

static void find(struct judgement *judgement, bool disagree, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void find(struct judgement *judgement, bool disagree, const char *format, ...)
{
	struct finding *finding;
	va_list arguments;

	if (judgement->n == FAILURES_MAX)
		return;
	finding = &judgement->findings[judgement->n++];
	finding->disagree = disagree;
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}

static const char *result_name(int64_t result, char text[32])
{
	const char *name = result < 0 ? strerrorname_np((int)-result) : NULL;

	if (name)
		return name;
	snprintf(text, 32, "%" PRId64, result);
	return text;
}

/* The result against what the case wants of it. */
static void judge_result(struct judgement *judgement, const struct case_statement *statement,
	const struct outcome *outcome)
{
	bool returns = statement->verb->flags & VERB_RETURNS;
	char number[32], wanted[32];
	const char *got = outcome->fault ? "fault" : result_name(outcome->result, number);
	const char *of = outcome->step ? " of " : "", *step = outcome->step ? outcome->step : "";

	switch (statement->result_kind) {
	case RESULT_ANY:
		return;
	case RESULT_FAULT:
		if (!outcome->fault)
			find(judgement, false, "%s%s%s, a fault was expected", got, of, step);
		return;
	case RESULT_ERROR:
		if (outcome->fault || outcome->result != -statement->result)
			find(judgement, false, "%s%s%s, %s was expected", got, of, step,
				result_name(-statement->result, wanted));
		return;
	case RESULT_NUMBER:
		if (outcome->fault || outcome->result < 0 ||
			(returns && outcome->result != statement->result))
			find(judgement, false, "%s%s%s, %" PRId64 " was expected", got, of, step,
				statement->result);
		return;
	default:
		if (outcome->fault || outcome->result < 0)
			find(judgement, false, "%s%s%s, success was expected", got, of, step);
		return;
	}
}

static void judge_outputs(struct replay *replay, struct judgement *judgement,
	const struct case_statement *statement, struct side *side, struct outcome *outcome)
{
	for (unsigned i = 0; i < statement->n_outputs; i++) {
		const struct case_argument *argument =
			&statement->arguments[statement->n_inputs + i];
		const struct field *field = &statement->verb->fields[argument->field];
		struct output got, wanted;
		char got_text[120] = "", wanted_text[120] = "";
		struct line a = {got_text, sizeof(got_text), 0};
		struct line b = {wanted_text, sizeof(wanted_text), 0};

		if (field->role == ROLE_REASON || argument->kind == VALUE_ANY)
			continue;
		output_get(replay, statement, outcome, argument->field, &got);
		output_expected(replay, side, statement, argument, &wanted);
		/* A field of 32 bits that is expected as max is 2^32-1. */
		if (field->size && field->size < 8)
			wanted.number &= (1ULL << 8 * field->size) - 1;
		if (output_equal(&got, &wanted))
			continue;
		output_print(&a, field, &got);
		output_print(&b, field, &wanted);
		find(judgement, false, "%s is %s, %s was expected", field->name, got_text,
			wanted_text);
	}
}

/* The rule that the soft system names, be it the first side or the one beside. */
static void judge_reason(struct judgement *judgement, const struct case_statement *statement,
	const struct outcome *outcome)
{
	int field = verb_role(statement->verb, ROLE_REASON);
	const struct case_argument *argument =
		field < 0 ? NULL : case_argument(statement, (unsigned)field, true);
	const char *got = outcome->has_reason ? outcome->reason.kind->name : "none";

	if (argument && argument->kind == VALUE_TEXT && strcmp(argument->text, got) != 0)
		find(judgement, false, "the reason is %s, %s was expected", got, argument->text);
}

static bool takes_any(const struct case_statement *statement, unsigned field)
{
	const struct case_argument *argument = case_argument(statement, field, true);

	return argument && argument->kind == VALUE_ANY;
}

/* The kernel's answer against that of the soft system beside it. */
static void compare_sides(
	struct replay *replay, struct judgement *judgement, const struct case_statement *statement)
{
	struct outcome *kernel = &replay->outcomes[0], *soft = &replay->outcomes[1];
	bool handle = statement->verb->flags & (VERB_OPENS | VERB_HANDLE);
	char a[32], b[32];

	if (kernel->uncounted || soft->uncounted || statement->result_kind == RESULT_ANY)
		return;
	if (kernel->fault != soft->fault ||
		(kernel->result != soft->result &&
			!(handle && kernel->result >= 0 && soft->result >= 0))) {
		find(judgement, true, "linux says %s, soft says %s",
			kernel->fault ? "fault" : result_name(kernel->result, a),
			soft->fault ? "fault" : result_name(soft->result, b));
		return;
	}
	for (unsigned i = 0; statement->verb->fields[i].name; i++) {
		const struct field *field = &statement->verb->fields[i];
		struct output one, other;
		char one_text[120] = "", other_text[120] = "";
		struct line c = {one_text, sizeof(one_text), 0};
		struct line d = {other_text, sizeof(other_text), 0};

		if (!(field->use & USE_OUT) || field->use & USE_KEPT ||
			field->role == ROLE_REASON || takes_any(statement, i))
			continue;
		output_get(replay, statement, kernel, i, &one);
		output_get(replay, statement, soft, i, &other);
		if (output_equal(&one, &other))
			continue;
		output_print(&c, field, &one);
		output_print(&d, field, &other);
		find(judgement, true, "%s: linux says %s, soft says %s", field->name, one_text,
			other_text);
	}
}

/* ------------------------------------------------------------------- statements */

/* What save= keeps: the result, and each output that is a number. */
static void keep(struct replay *replay, const struct case_statement *statement, struct side *side,
	struct outcome *outcome)
{
	int field = verb_role(statement->verb, ROLE_SAVE);
	const struct case_argument *save =
		field < 0 ? NULL : case_argument(statement, (unsigned)field, false);
	uint32_t index;

	if (!save)
		return;
	index = save->index;
	side->variables[index++] = (uint64_t)outcome->result;
	for (unsigned i = 0; statement->verb->fields[i].name; i++) {
		const struct field *kept = &statement->verb->fields[i];
		struct output output;

		if (!case_keeps(kept))
			continue;
		output_get(replay, statement, outcome, i, &output);
		side->variables[index++] = output.kind == OUTPUT_NUMBER ? output.number : 0;
	}
}

void run_sides(struct replay *replay, const struct case_statement *statement)
{
	action_fn *action = actions[statement->verb->action];

	scratch_reset(replay);
	for (unsigned i = 0; i < replay->n_sides; i++) {
		struct outcome *outcome = &replay->outcomes[i];

		memset(outcome, 0, OUTCOME_START);
		outcome->said[0] = '\0';
		action(replay, statement, &replay->sides[i], outcome);
		keep(replay, statement, &replay->sides[i], outcome);
	}
}

static bool judge(struct replay *replay, const struct case_statement *statement, size_t index)
{
	struct judgement judgement = {.n = 0};
	bool beside = replay->n_sides > 1;
	unsigned judged = replay->outcomes[0].uncounted && beside;
	struct outcome *outcome = &replay->outcomes[judged];
	uint8_t *seen = &replay->seen[index];
	uint64_t disagreements = 0;

	/* Where this side cannot count, the one beside it is judged, if it can. */
	if (!outcome->uncounted) {
		judge_result(&judgement, statement, outcome);
		judge_outputs(replay, &judgement, statement, &replay->sides[judged], outcome);
	}
	for (unsigned i = 0; i < replay->n_sides; i++)
		if (!replay->outcomes[i].uncounted && replay->outcomes[i].said[0])
			find(&judgement, false, "%s%s", beside && i ? "soft: " : "",
				replay->outcomes[i].said);
	if (replay->sides[0].soft || beside)
		judge_reason(
			&judgement, statement, &replay->outcomes[replay->sides[0].soft ? 0 : 1]);
	if (beside)
		compare_sides(replay, &judgement, statement);
	/* The soft system's reason explains the kernel's errno. */
	if (beside && replay->outcomes[1].has_reason && !replay->outcomes[0].has_reason) {
		replay->outcomes[0].reason = replay->outcomes[1].reason;
		replay->outcomes[0].has_reason = true;
	}
	for (unsigned i = 0; i < judgement.n; i++)
		disagreements += judgement.findings[i].disagree;
	replay->progress->disagreements += disagreements;
	replay->progress->failures += judgement.n != 0;
	if (judgement.n ? (*seen & ~SEEN) < SHOWN_MAX : !(*seen & SEEN))
		report_call(replay->report, statement,
			&replay->outcomes[replay->outcomes[0].uncounted && beside],
			judgement.findings, judgement.n);
	if (judgement.n && (*seen & ~SEEN) < SHOWN_MAX)
		++*seen;
	*seen |= SEEN;
	return !judgement.n;
}

static bool conditions_hold(struct replay *replay, const struct case_statement *statement)
{
	char why[200];

	for (unsigned i = 0; i < statement->n_conditions; i++)
		if (!facts_hold(replay, &statement->conditions[i], why, sizeof(why)))
			return false;
	return true;
}

/* Runs the call of a statement. Return: whether the case can go on. */
static bool run_call(struct replay *replay, size_t index)
{
	const struct case_statement *statement = &replay->file->statements[index];
	struct progress *progress = replay->progress;
	bool good;

	replay->show_changes = replay->options->format == FORMAT_JSON ||
			       (replay->options->format == FORMAT_TEXT && !replay->options->quiet);
	replay->show_changes &= !(replay->seen[index] & SEEN);
	progress->line = statement->line;
	progress->calls++;
	run_sides(replay, statement);
	if (progress->verdict == CASE_SKIPPED)
		return false;
	good = judge(replay, statement, index);
	return good || !is_setup(statement);
}

static void run_statements(struct replay *replay)
{
	struct loop {
		size_t start;
		uint64_t i, times;
	} loops[LOOPS_MAX];
	const struct case_file *file = replay->file;
	_Alignas(64) uint8_t stack[SCRATCH_STACK];
	unsigned depth = 0;

	replay->stack = stack;
	for (size_t at = 0; at < file->n_statements; at++) {
		const struct case_statement *statement = &file->statements[at];

		if (statement->verb->action == ACTION_LOOP) {
			uint64_t times =
				eval_number(&replay->sides[0], statement, &statement->arguments[0]);

			if (!times) {
				at = statement->body_end;
				continue;
			}
			loops[depth++] = (struct loop){at, 0, times};
			for (unsigned i = 0; i < replay->n_sides; i++)
				replay->sides[i].variables[statement->arguments[1].index] = 0;
		} else if (statement->verb->action == ACTION_END) {
			struct loop *loop = &loops[depth - 1];
			const struct case_statement *start = &file->statements[loop->start];

			if (++loop->i == loop->times) {
				depth--;
				continue;
			}
			for (unsigned i = 0; i < replay->n_sides; i++)
				replay->sides[i].variables[start->arguments[1].index] = loop->i;
			at = loop->start;
		} else if (actions[statement->verb->action] &&
			   (!statement->n_conditions || conditions_hold(replay, statement)) &&
			   !run_call(replay, at)) {
			break;
		}
	}
	replay->stack = NULL;
	if (replay->progress->verdict == CASE_RUNNING)
		replay->progress->verdict = replay->progress->failures ? CASE_FAILED : CASE_PASSED;
}

/* ------------------------------------------------------------------------ set-up */

static int reason_complaint(
	struct complaint *complaint, const char *what, const struct dmamap_reason *why)
{
	char text[512];

	dmamap_reason_format(why, text, sizeof(text));
	return complain(complaint, "%s: %s", what, text);
}

/* The kernel must be there at all; which of its files a case needs shows in the case. */
static int check_kernel(struct dmamap_system *system, struct complaint *complaint)
{
	static const char *const paths[] = {"/dev/vfio/vfio", "/dev/iommu"};
	int errors[2];

	for (unsigned i = 0; i < 2; i++) {
		int fd = system->ops->open(system, paths[i], O_RDWR);

		errors[i] = fd < 0 ? fd : 0;
		if (fd >= 0)
			system->ops->close(system, fd);
	}
	if (!errors[0] || !errors[1])
		return 0;
	for (unsigned i = 0; i < 2; i++)
		if (errors[i] == -EACCES || errors[i] == -EPERM)
			return complain(complaint,
				"--system linux: %s cannot be opened (%s); run as root, or give "
				"the user the file",
				paths[i], strerror(-errors[i]));
	return complain(complaint,
		"--system linux: there is neither /dev/vfio/vfio nor /dev/iommu; modprobe "
		"vfio-pci, and dmamap help device says how to give it a device");
}

/* The machine that the case wants, on top of the one that is there or was asked for. */
static int make_machine(
	struct replay *replay, const struct dmamap_machine *base, struct complaint *complaint)
{
	const char *spec = replay->file->machine ? replay->file->machine : "";
	struct dmamap_reason why = {0};
	char what[300];

	if (!dmamap_machine_parse(base, spec, &replay->machine, &why))
		return 0;
	snprintf(what, sizeof(what), "%s: machine %s", replay->file->path, spec);
	return reason_complaint(complaint, what, &why);
}

/* Whether the machine at hand is what the case wants; else what the first difference is. */
static int machine_fits(struct replay *replay, const struct dmamap_machine *is)
{
	size_t n = dmamap_machine_print(is, '\n', NULL, 0) + 1;
	size_t m = dmamap_machine_print(&replay->machine, '\n', NULL, 0) + 1;
	char *have = malloc(n), *want = malloc(m), *a = have, *b = want;
	int differs = 0;

	if (!have || !want)
		goto out;
	dmamap_machine_print(is, '\n', have, n);
	dmamap_machine_print(&replay->machine, '\n', want, m);
	while (*a && *a == *b) {
		a++;
		b++;
	}
	differs = *a != *b;
	while (a > have && a[-1] != '\n') {
		a--;
		b--;
	}
	a += strspn(a, " \t");
	b += strspn(b, " \t");
	if (differs) {
		snprintf(replay->progress->reason, sizeof(replay->progress->reason),
			"the machine has %.*s, the case is about %.*s", (int)strcspn(a, "\n"), a,
			(int)strcspn(b, "\n"), b);
		replay->progress->verdict = CASE_SKIPPED;
	}
out:
	free(have);
	free(want);
	return differs;
}

static int make_linux(struct replay *replay, struct complaint *complaint)
{
	struct dmamap_machine detected;
	struct dmamap_reason why = {0};
	int error = dmamap_system_linux(&replay->sides[0].system);

	replay->n_sides = 1;
	if (error)
		return complain(complaint, "--system linux: %s", strerror(-error));
	if (check_kernel(replay->sides[0].system, complaint))
		return -1;
	error = dmamap_machine_detect(replay->sides[0].system, &detected, NULL, &why);
	if (error)
		return reason_complaint(complaint, "--system linux", &why);
	if (replay->options->machine) {
		struct dmamap_machine given;

		error = dmamap_machine_load(&detected, replay->options->machine, &given, &why);
		dmamap_machine_free(&detected);
		if (error)
			return reason_complaint(complaint, "--machine", &why);
		detected = given;
	}
	error = make_machine(replay, &detected, complaint);
	if (!error && !machine_fits(replay, &detected)) {
		error = dmamap_system_soft(&replay->machine, &replay->sides[1].system, &why);
		if (error)
			error = reason_complaint(complaint, "the soft system beside linux", &why);
		replay->sides[1].soft = true;
		replay->n_sides += !error;
	}
	dmamap_machine_free(&detected);
	return error;
}

static int make_soft(struct replay *replay, struct complaint *complaint)
{
	struct dmamap_machine base;
	struct dmamap_reason why = {0};
	int error;

	error = dmamap_machine_load(
		NULL, replay->options->machine ? replay->options->machine : "", &base, &why);
	if (error)
		return reason_complaint(complaint, "--machine", &why);
	error = make_machine(replay, &base, complaint);
	dmamap_machine_free(&base);
	if (error)
		return error;
	if (dmamap_system_soft(&replay->machine, &replay->sides[0].system, &why))
		return reason_complaint(complaint, replay->file->path, &why);
	replay->sides[0].soft = true;
	replay->n_sides = 1;
	return 0;
}

/* All conditions of all needs; the first that does not hold is why the case is skipped. */
static void check_needs(struct replay *replay)
{
	struct progress *progress = replay->progress;

	for (size_t i = 0; i < replay->file->n_statements; i++) {
		const struct case_statement *statement = &replay->file->statements[i];

		for (unsigned j = 0;
			statement->verb->action == ACTION_NEEDS && j < statement->n_conditions &&
			progress->verdict == CASE_RUNNING;
			j++)
			if (!facts_hold(replay, &statement->conditions[j], progress->reason,
				    sizeof(progress->reason)))
				progress->verdict = CASE_SKIPPED;
	}
	if (progress->verdict == CASE_RUNNING)
		progress->reason[0] = '\0';
}

int run_state(struct replay *replay, FILE *out)
{
	const struct case_file *file = replay->file;

	replay->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	replay->seen = calloc(file->n_statements + 1, 1);
	replay->scratch = mmap(NULL, SCRATCH + replay->page_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	replay->report = report_create(replay, out);
	if (!replay->seen || replay->scratch == MAP_FAILED || !replay->report ||
		mprotect(replay->scratch + SCRATCH, replay->page_size, PROT_NONE))
		return -ENOMEM;
	for (unsigned i = 0; i < replay->n_sides; i++) {
		struct side *side = &replay->sides[i];

		side->states = calloc(file->n_things, sizeof(*side->states));
		side->variables = calloc(file->n_variables + 1, sizeof(*side->variables));
		if (!side->states || !side->variables)
			return -ENOMEM;
		for (size_t j = 0; j < file->n_things; j++)
			side->states[j].fd = side->states[j].iommufd = side->states[j].map_fd = -1;
		side->system->ops->counters(side->system, &side->base);
	}
	return process_init(replay);
}

static void destroy(struct replay *replay)
{
	process_end_all(replay);
	process_restore(replay);
	for (unsigned i = 0; i < replay->n_sides; i++) {
		dmamap_system_destroy(replay->sides[i].system);
		free(replay->sides[i].states);
		free(replay->sides[i].variables);
	}
	dmamap_machine_free(&replay->machine);
	report_destroy(replay->report);
	if (replay->scratch && replay->scratch != MAP_FAILED)
		munmap(replay->scratch, SCRATCH + replay->page_size);
	free(replay->seen);
	free(replay);
}

int run_case(const struct case_file *file, const struct replay_options *options,
	struct progress *progress, FILE *out, struct complaint *complaint)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	int error;

	if (!replay)
		return complain(complaint, "%s: no memory", file->path);
	replay->file = file;
	replay->options = options;
	replay->progress = progress;
	snprintf(progress->title, sizeof(progress->title), "%s", file->title ? file->title : "");
	error = options->linux_system ? make_linux(replay, complaint)
				      : make_soft(replay, complaint);
	if (error)
		goto out;
	error = run_state(replay, out);
	if (error) {
		complain(complaint, "%s: %s", file->path, strerror(-error));
		goto out;
	}
	if (facts_devices(replay) && options->linux_system) {
		error = complain(complaint,
			"--system linux: no device is bound to vfio-pci; dmamap help device says "
			"how");
		goto out;
	}
	if (progress->verdict == CASE_RUNNING)
		check_needs(replay);
	if (progress->verdict == CASE_RUNNING)
		run_statements(replay);
	report_end(replay->report);
out:
	destroy(replay);
	return error ? -1 : 0;
}
