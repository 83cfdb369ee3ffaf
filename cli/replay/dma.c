/* SPDX-License-Identifier: MIT */
/*
 * What a device does: on the soft system through the engine's accesses, on
 * Linux by a device that does DMA on command (edu.c). A write is believed only
 * when its bytes are in memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

/* At most this many bytes at a time are in a buffer here. */
#define PIECE	     ((uint64_t)64 << 10)
#define SEGMENTS_MAX 65536

/* The device behind the statement's file, on a Linux side; NULL: it does no DMA on command. */
static const struct pci_device *edu_of(struct replay *replay, const struct side *side, int fd)
{
	for (unsigned i = 0; i < replay->n_devices; i++)
		if (replay->device_things[i] >= 0 &&
			side->states[replay->device_things[i]].fd == fd &&
			edu_is(&replay->devices[i]))
			return &replay->devices[i];
	return NULL;
}

/* All of a transfer on the soft system. */
static int soft_transfer(struct side *side, int fd, struct outcome *outcome, uint64_t iova,
	uint64_t size, uint8_t value, bool write)
{
	struct dmamap_access *access;
	uint8_t *bytes;
	int error = dmamap_soft_access(side->system, fd, &access);

	if (error)
		return error;
	bytes = malloc(PIECE);
	if (!bytes)
		error = -ENOMEM;
	else
		memset(bytes, value, PIECE);
	for (uint64_t done = 0; done < size && !error; done += PIECE) {
		uint64_t n = size - done < PIECE ? size - done : PIECE;

		if (write)
			error = dmamap_write(access, iova + done, bytes, n, &outcome->reason);
		else
			error = dmamap_read(access, iova + done, bytes, n, &outcome->reason);
		for (uint64_t i = 0; i < n && !write && !error && !outcome->said[0]; i++)
			if (bytes[i] != value)
				snprintf(outcome->said, sizeof(outcome->said),
					"the device read 0x%02x at +0x%llx, 0x%02x was expected",
					bytes[i], (unsigned long long)(done + i), value);
	}
	outcome->has_reason = error && outcome->reason.kind;
	free(bytes);
	dmamap_access_destroy(access);
	return error;
}

/* What came of it: every error but a descriptor that is none is a fault of the device's. */
static void settle(struct outcome *outcome, int error)
{
	outcome->fault = error == -EFAULT || error == -EPERM || error == -ENODEV;
	outcome->result = outcome->fault ? 0 : error;
}

static void no_dma(struct outcome *outcome, const char *why)
{
	outcome->uncounted = true;
	snprintf(outcome->said, sizeof(outcome->said), "%s", why);
}

/* Whether the device could not even try. */
static bool is_no_dma(struct outcome *outcome, int error)
{
	if (error == -ETIMEDOUT) {
		no_dma(outcome, "the device does not end what it began");
		outcome->result = error;
	}
	if (error == -EOPNOTSUPP || error == -EBUSY)
		no_dma(outcome, "this device does no DMA on command here");
	return outcome->uncounted;
}

static void linux_write(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	uint64_t iova = eval_key(side, statement, "iova"), size = eval_key(side, statement, "size");
	uint64_t at = eval_key(side, statement, "at");
	bool has_at = eval_given(statement, "at");
	uint8_t value = (uint8_t)eval_key(side, statement, "value");
	char differs[100] = "";
	int error;

	error = edu_write(replay, side, eval_thing(side, statement, "on"), iova, value, size);
	if (is_no_dma(outcome, error))
		return;
	if (!error && has_at)
		error = memory_check(getpid(), false, at, size, value, differs, sizeof(differs));
	outcome->result = error;
	outcome->fault = !error && differs[0];
	if (!error && !has_at) {
		if (statement->result_kind == RESULT_FAULT)
			no_dma(outcome, "without at= nobody can tell whether the write landed");
	}
}

void action_dma_write(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	uint64_t iova = eval_key(side, statement, "iova"), size = eval_key(side, statement, "size");
	uint64_t at = eval_key(side, statement, "at");
	uint8_t value = (uint8_t)eval_key(side, statement, "value");
	int fd = eval_thing(side, statement, "on")->fd;
	bool has_at = eval_given(statement, "at");

	if (!side->soft && !edu_of(replay, side, fd)) {
		no_dma(outcome, "no device here does DMA on command (QEMU's edu does)");
		return;
	}
	/* Other bytes first, so that those that are found later are the device's. */
	if (has_at && !memory_is_own(replay, side, statement, "at", size, outcome))
		return;
	if (has_at) {
		outcome->result = memory_fill(getpid(), false, at, size, (uint8_t)~value);
		if (outcome->result)
			return;
	}
	if (!side->soft) {
		linux_write(replay, statement, side, outcome);
		return;
	}
	settle(outcome, soft_transfer(side, fd, outcome, iova, size, value, true));
	if (!has_at || outcome->result)
		return;
	outcome->result = memory_check(getpid(), false, at, size,
		outcome->fault ? (uint8_t)~value : value, outcome->said, sizeof(outcome->said));
}

void action_dma_read(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	uint64_t iova = eval_key(side, statement, "iova"), size = eval_key(side, statement, "size");
	uint8_t value = (uint8_t)eval_key(side, statement, "value");
	int fd = eval_thing(side, statement, "on")->fd, error;
	bool same = false;

	if (side->soft) {
		settle(outcome, soft_transfer(side, fd, outcome, iova, size, value, false));
		return;
	}
	if (!edu_of(replay, side, fd)) {
		no_dma(outcome, "no device here does DMA on command (QEMU's edu does)");
		return;
	}
	error = edu_read(replay, side, eval_thing(side, statement, "on"), iova, value, size, &same);
	if (is_no_dma(outcome, error))
		return;
	/* A read that faults gives zeroes on the bus. */
	if (!error && same && !value) {
		no_dma(outcome, "zeroes are what a read that faults gives, too");
		return;
	}
	outcome->result = error;
	outcome->fault = !error && !same;
}

void action_segments(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	struct dmamap_segment *segments;
	struct dmamap_access *access;
	int error;

	(void)replay;
	if (!side->soft) {
		no_dma(outcome, "only the soft system shows what is behind an IOVA");
		return;
	}
	outcome->result =
		dmamap_soft_access(side->system, eval_thing(side, statement, "on")->fd, &access);
	if (outcome->result)
		return;
	segments = calloc(SEGMENTS_MAX, sizeof(*segments));
	if (segments) {
		dmamap_access_enter(access);
		error = dmamap_translate(access, eval_key(side, statement, "iova"),
			eval_key(side, statement, "size"),
			(unsigned)eval_key(side, statement, "prot") & 3, segments, SEGMENTS_MAX,
			&outcome->reason);
		dmamap_access_leave(access);
	} else {
		error = -ENOMEM;
	}
	outcome->result = error;
	outcome->has_reason = error < 0 && outcome->reason.kind;
	free(segments);
	dmamap_access_destroy(access);
}

/* ---------------------------------------------------------------- counters */

static uint64_t all_leaves(const struct dmamap_counters *counters)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < 64; i++)
		all += counters->leaves[i];
	return all;
}

void action_counters(struct replay *replay, const struct case_statement *statement,
	struct side *side, struct outcome *outcome)
{
	struct dmamap_counters now;
	const struct dmamap_counters *base = &side->base;
	struct line said = {outcome->said, sizeof(outcome->said), 0};

	(void)replay;
	outcome->result = side->system->ops->counters(side->system, &now);
	if (outcome->result == -EOPNOTSUPP) {
		outcome->result = 0;
		outcome->uncounted = true;
		return;
	}
	if (eval_given(statement, "reset"))
		side->base = now;
	for (unsigned i = 0; i < statement->n_inputs; i++) {
		const struct case_argument *argument = &statement->arguments[i];
		const struct field *field = &statement->verb->fields[argument->field];
		const struct {
			const char *key;
			uint64_t value;
		} values[] = {
			{"maps", now.maps - base->maps},
			{"unmaps", now.unmaps - base->unmaps},
			{"lookups", now.lookups - base->lookups},
			{"leaves", all_leaves(&now) - all_leaves(base)},
			{"leaves_4k", now.leaves[12] - base->leaves[12]},
			{"leaves_2m", now.leaves[21] - base->leaves[21]},
			{"leaves_1g", now.leaves[30] - base->leaves[30]},
			{"areas", now.areas},
			{"tables", now.tables},
		};

		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			if (strcmp(field->name, values[j].key) != 0 ||
				eval_number(side, statement, argument) == values[j].value)
				continue;
			if (said.n)
				line_text(&said, "; ");
			line_text(&said, field->name);
			line_text(&said, " is ");
			line_number(&said, SHOW_COUNT, values[j].value);
			line_text(&said, ", ");
			line_number(&said, SHOW_COUNT, eval_number(side, statement, argument));
			line_text(&said, " was expected");
		}
	}
}
