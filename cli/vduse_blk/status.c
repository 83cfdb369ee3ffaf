/* SPDX-License-Identifier: MIT */
/* What the disk has done: a line that renews itself, and the sum at the end. */
#include "status.h"

#include "cli/units.h"

void status_read(struct status *status, const struct device *device)
{
	*status = (struct status){.time = queue_now(), .umem = device_umem(device)};
	for (unsigned i = 0; i < device_queues(device); i++) {
		const struct queue_counters *c = device_counters(device, i);

		for (unsigned verb = 0; verb < VERBS; verb++) {
			status->requests[verb] += atomic_load(&c->requests[verb]);
			status->bytes[verb] += atomic_load(&c->bytes[verb]);
		}
		status->refused += atomic_load(&c->refused);
		status->failed += atomic_load(&c->failed);
		status->batches += atomic_load(&c->batches);
		status->interrupts += atomic_load(&c->interrupts);
		status->sleeps += atomic_load(&c->sleeps);
		status->bounced += atomic_load(&c->bounced);
		status->in_flight += atomic_load(&c->in_flight);
	}
}

static uint64_t all(const struct status *status)
{
	uint64_t sum = 0;

	for (unsigned verb = 0; verb < VERBS; verb++)
		sum += status->requests[verb];
	return sum;
}

static void print_rate(FILE *out, const char *what, const struct status *old,
	const struct status *now, enum verb verb, double seconds)
{
	char rate[UNITS_TEXT], bytes[UNITS_TEXT];

	fprintf(out, "  %s %s/s %s/s", what,
		units_rate(rate, (double)(now->requests[verb] - old->requests[verb]) / seconds),
		units_size(
			bytes, (uint64_t)((double)(now->bytes[verb] - old->bytes[verb]) / seconds) &
				       ~(uint64_t)1023));
}

void status_line(FILE *out, const struct status *old, const struct status *now)
{
	double seconds = (double)(now->time - old->time) / 1e9;
	uint64_t batches = now->batches - old->batches;
	char text[UNITS_TEXT];

	if (seconds <= 0)
		return;
	status_clear(out);
	print_rate(out, "read", old, now, VERB_READ, seconds);
	print_rate(out, "write", old, now, VERB_WRITE, seconds);
	fprintf(out, "  in flight %s", units_count(text, now->in_flight));
	fprintf(out, "  a batch %s",
		units_rate(text, batches ? (double)(all(now) - all(old)) / (double)batches : 0));
	fprintf(out, "  interrupts %s/s",
		units_rate(text, (double)(now->interrupts - old->interrupts) / seconds));
	if (now->refused)
		fprintf(out, "  malformed %s", units_count(text, now->refused));
	if (now->failed)
		fprintf(out, "  failed %s", units_count(text, now->failed));
	fflush(out);
}

void status_clear(FILE *out)
{
	fputs("\r\033[K", out);
	fflush(out);
}

static const char *const verb_names[VERBS] = {
	[VERB_READ] = "reads",
	[VERB_WRITE] = "writes",
	[VERB_FLUSH] = "flushes",
	[VERB_DISCARD] = "discards",
	[VERB_ZEROES] = "zeroings",
	[VERB_ID] = "ids",
};

void status_sum(FILE *out, const struct status *status)
{
	char text[UNITS_TEXT], bytes[UNITS_TEXT];

	for (unsigned verb = 0; verb < VERBS; verb++) {
		if (!status->requests[verb])
			continue;
		fprintf(out, "%-11s %s", verb_names[verb],
			units_count(text, status->requests[verb]));
		if (verb == VERB_READ || verb == VERB_WRITE)
			fprintf(out, ", %s", units_size(bytes, status->bytes[verb]));
		fputc('\n', out);
	}
	if (status->batches)
		fprintf(out, "a batch     %s requests\n",
			units_rate(text, (double)all(status) / (double)status->batches));
	if (all(status))
		fprintf(out, "memory      %s\n",
			status->umem ? "the kernel bounced through this process's"
				     : "the kernel's, as the limit on locked memory or --no-umem "
				       "has it");
	if (status->bounced)
		fprintf(out, "bounced     %s, whose memory was not aligned\n",
			units_count(text, status->bounced));
	if (status->refused)
		fprintf(out, "malformed   %s\n", units_count(text, status->refused));
	if (status->failed)
		fprintf(out, "failed      %s\n", units_count(text, status->failed));
}
