/* SPDX-License-Identifier: MIT */
/*
 * Bounce benchmark: what a streaming map and its unmap cost beyond the bytes
 * that they copy, on one thread and on two at a time.
 *
 * Rounds of three kinds follow one another on each thread: maps and unmaps,
 * the same copies alone, and the clearing alone that a mapping ends with. They
 * are short, and timed by the thread's own processor time, since machines are
 * shared. Figures are medians over rounds of the slowest thread, the fastest
 * round in brackets. A slow allocation in the rounds is an error.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dmamap/bounce.h"

#define ROUNDS_MOST  64u
#define THREADS_MOST 2u
#define DEPTH_MOST   1024u
#define UNIT	     4096ull

enum kind { PAIR, COPY, CLEAR, KINDS };

struct row {
	unsigned threads;
	unsigned prot;
	uint64_t size;
	unsigned depth; /* mappings held at a time */
};

struct worker {
	pthread_t thread;
	unsigned number;
	const struct row *row;
	struct dmamap_bounce *bounce;
	char *buffer;	 /* one of the row's size for each mapping */
	char *pretended; /* the bounce units that copies alone go to */
	uint64_t iova[DEPTH_MOST];
	double sample[KINDS][ROUNDS_MOST];
};

static unsigned rounds = 15, pairs = 20000;
static pthread_barrier_t barrier;

static void check(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "bounce-benchmark: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static char *at(char *base, uint64_t size, unsigned i)
{
	return base + i * ((size + UNIT - 1) & ~(UNIT - 1));
}

/* The oldest of the mappings is replaced, again and again. */
static void map_and_unmap(struct worker *worker, unsigned n)
{
	const struct row *row = worker->row;

	for (unsigned i = 0, slot = 0; i < n; i++, slot = slot + 1 == row->depth ? 0 : slot + 1) {
		check(dmamap_bounce_unmap(worker->bounce, worker->iova[slot], row->size, 0, NULL),
			"unmap");
		check(dmamap_bounce_map(worker->bounce, at(worker->buffer, row->size, slot),
			      row->size, row->prot, 0, &worker->iova[slot], NULL),
			"map");
	}
}

/* The compiler may not leave it out. */
static void *(*volatile copy_bytes)(void *, const void *, size_t) = memcpy;
static void *(*volatile set_bytes)(void *, int, size_t) = memset;

static void copy_alone(struct worker *worker, unsigned n)
{
	const struct row *row = worker->row;

	for (unsigned i = 0, slot = 0; i < n; i++, slot = slot + 1 == row->depth ? 0 : slot + 1) {
		char *buffer = at(worker->buffer, row->size, slot);
		char *unit = at(worker->pretended, row->size, slot);

		if (row->prot & DMAMAP_READ)
			copy_bytes(unit, buffer, row->size);
		if (row->prot & DMAMAP_WRITE)
			copy_bytes(buffer, unit, row->size);
	}
}

static void clear_alone(struct worker *worker, unsigned n)
{
	const struct row *row = worker->row;

	for (unsigned i = 0, slot = 0; i < n; i++, slot = slot + 1 == row->depth ? 0 : slot + 1)
		set_bytes(at(worker->pretended, row->size, slot), 0, row->size);
}

static void (*const run[KINDS])(struct worker *, unsigned) = {
	[PAIR] = map_and_unmap, [COPY] = copy_alone, [CLEAR] = clear_alone};

static void *work(void *argument)
{
	struct worker *worker = argument;
	const struct row *row = worker->row;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(worker->number, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	for (unsigned slot = 0; slot < row->depth; slot++)
		check(dmamap_bounce_map(worker->bounce, at(worker->buffer, row->size, slot),
			      row->size, row->prot, 0, &worker->iova[slot], NULL),
			"map");
	for (unsigned kind = 0; kind < KINDS; kind++)
		run[kind](worker, pairs / 4);
	pthread_barrier_wait(&barrier); /* warm */
	pthread_barrier_wait(&barrier); /* counters are read */
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned kind = 0; kind < KINDS; kind++) {
			double start;

			pthread_barrier_wait(&barrier);
			start = now();
			run[kind](worker, pairs);
			worker->sample[kind][round] = (now() - start) / pairs;
		}
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); /* counters are read */
	for (unsigned slot = 0; slot < row->depth; slot++)
		check(dmamap_bounce_unmap(worker->bounce, worker->iova[slot], row->size, 0, NULL),
			"unmap");
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The slowest thread's median; *fastest: of its rounds. */
static double median(struct worker *workers, unsigned threads, enum kind kind, double *fastest)
{
	double slowest = 0;

	for (unsigned i = 0; i < threads; i++) {
		double *sample = workers[i].sample[kind];

		qsort(sample, rounds, sizeof(double), ascending);
		if (sample[rounds / 2] > slowest) {
			slowest = sample[rounds / 2];
			*fastest = sample[0];
		}
	}
	return slowest;
}

/* Runs one row in a domain of its own; returns the slow allocations in its rounds. */
static uint64_t run_row(const struct row *row, bool keep_stale)
{
	struct dmamap_bounce_config config = {.keep_stale = keep_stale};
	struct dmamap_bounce_counters before, after;
	static struct worker workers[THREADS_MOST];
	struct dmamap_bounce *bounce;
	uint64_t bytes = row->depth * ((row->size + UNIT - 1) & ~(UNIT - 1));
	double ns[KINDS], fastest[KINDS];

	check(dmamap_bounce_create(&config, &bounce, NULL), "domain");
	pthread_barrier_init(&barrier, NULL, row->threads + 1);
	for (unsigned i = 0; i < row->threads; i++) {
		workers[i] = (struct worker){.number = i, .row = row, .bounce = bounce};
		workers[i].buffer = aligned_alloc(UNIT, bytes);
		workers[i].pretended = aligned_alloc(UNIT, bytes);
		if (!workers[i].buffer || !workers[i].pretended)
			check(-ENOMEM, "buffers");
		memset(workers[i].buffer, 1, bytes);
		memset(workers[i].pretended, 2, bytes);
		check(-pthread_create(&workers[i].thread, NULL, work, &workers[i]), "thread");
	}
	pthread_barrier_wait(&barrier);
	dmamap_bounce_counters(bounce, &before);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < rounds * KINDS; i++)
		pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	dmamap_bounce_counters(bounce, &after);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < row->threads; i++) {
		pthread_join(workers[i].thread, NULL);
		free(workers[i].buffer);
		free(workers[i].pretended);
	}
	pthread_barrier_destroy(&barrier);
	dmamap_bounce_destroy(bounce);
	for (unsigned kind = 0; kind < KINDS; kind++)
		ns[kind] = median(workers, row->threads, kind, &fastest[kind]);
	printf("%7u  %-6s %6llu %5u  %-5s %9.1f (%6.1f) %8.1f %8.1f %8.1f   %llu\n", row->threads,
		row->prot == DMAMAP_READ    ? "to"
		: row->prot == DMAMAP_WRITE ? "from"
					    : "both",
		(unsigned long long)row->size, row->depth, keep_stale ? "kept" : "clear", ns[PAIR],
		fastest[PAIR], ns[COPY], keep_stale ? 0 : ns[CLEAR], ns[PAIR] - ns[COPY],
		(unsigned long long)(after.slow - before.slow));
	return after.slow - before.slow;
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{1, DMAMAP_READ, 512, 1},
		{2, DMAMAP_READ, 512, 1},
		{2, DMAMAP_WRITE, 512, 1},
		{1, DMAMAP_READ, 512, 64},
		{2, DMAMAP_READ, 512, 64},
		{2, DMAMAP_WRITE, 512, 64},
		{2, DMAMAP_READ, 4096, 64},
		{2, DMAMAP_READ, 65536, 16},
	};
	uint64_t slow = 0;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--rounds=", 9) && atoi(argv[i] + 9) > 0 &&
			(unsigned)atoi(argv[i] + 9) <= ROUNDS_MOST) {
			rounds = (unsigned)atoi(argv[i] + 9);
		} else if (!strncmp(argv[i], "--pairs=", 8) && atoi(argv[i] + 8) > 3) {
			pairs = (unsigned)atoi(argv[i] + 8);
		} else {
			fprintf(stderr,
				"usage: bounce-benchmark [--rounds=N (1 to %u)] [--pairs=N (from "
				"4)]\n",
				ROUNDS_MOST);
			return 2;
		}
	}
	printf("Bounce benchmark: ns a pair of map and unmap, medians of %u rounds of %u pairs "
	       "(fastest), processor time\n64 MiB of 4 KiB units. beyond: the pair without its "
	       "copy; clearing is part of it\n\n",
		rounds, pairs);
	printf("threads  copy    bytes depth  ended      pair             copy    clear   beyond   "
	       "slow allocations\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned keep = 0; keep < 2; keep++)
			slow += run_row(&rows[i], keep);
	if (slow)
		fprintf(stderr, "bounce-benchmark: %llu slow allocations in a steady state\n",
			(unsigned long long)slow);
	return slow ? 1 : 0;
}
