/* SPDX-License-Identifier: MIT */
/*
 * Load for a disk: jobs that keep requests in flight, each a thread with its own
 * part of the disk, as fio has them.
 *
 * To verify, a job knows how often it has written each of its blocks, and writes
 * only where nothing of it is in flight. What it writes follows from the seed,
 * the block's place and that number, so that old, foreign, torn or misplaced
 * bytes are all seen.
 *
 * Latencies are counted in buckets whose width is 1/64 of their value.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soft/virtio_blk.h"

#define BUCKET_BITS 6
#define BUCKETS	    ((65 - BUCKET_BITS) << BUCKET_BITS)

struct job;

struct slot {
	struct dmamap_blk_request request;
	struct job *job;
	struct slot *next; /* job->lock: done */
	uint64_t block;
	uint64_t started;
	uint32_t written; /* how often the block was, when this began */
};

struct load {
	struct dmamap_blk *blk;
	struct dmamap_blk_load is;
	uint64_t blocks; /* of a job */
	pthread_mutex_t lock;
	pthread_cond_t begin;
	bool began, abandoned; /* lock */
};

struct job {
	struct load *load;
	unsigned index;
	pthread_t thread;
	struct slot *slots;
	char *buffers;
	uint32_t *written; /* to verify: how often, by block; 0: nobody knows what is there */
	uint8_t *busy;	   /* to verify: in flight, by block */
	uint64_t random;
	uint64_t next_block;
	bool checking; /* reading what was written, in the end */
	unsigned in_flight;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct slot *done; /* lock */
	uint64_t requests, failed, mismatches, verified, first, last, most;
	uint64_t buckets[BUCKETS];
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t draw(struct job *job)
{
	return mix(job->random += 0x9e3779b97f4a7c15ull);
}

/* ----------------------------------------------------------------- latency */

static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < 1u << BUCKET_BITS)
		return (unsigned)value;
	shift = 63 - BUCKET_BITS - (unsigned)__builtin_clzll(value);
	return ((shift + 1) << BUCKET_BITS) + (unsigned)(value >> shift) - (1u << BUCKET_BITS);
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned bucket)
{
	unsigned shift = bucket >> BUCKET_BITS;
	uint64_t in = bucket & ((1u << BUCKET_BITS) - 1);

	if (!shift)
		return in;
	shift--;
	return ((in + (1u << BUCKET_BITS)) << shift) + ((1ull << shift) >> 1);
}

static uint64_t percentile(const uint64_t *buckets, uint64_t n, unsigned per_mille)
{
	uint64_t wanted = (n * per_mille + 999) / 1000, seen = 0;

	for (unsigned i = 0; i < BUCKETS; i++) {
		seen += buckets[i];
		if (seen && seen >= wanted)
			return value_of(i);
	}
	return 0;
}

/* -------------------------------------------------------------------- data */

static uint64_t sector_of(const struct job *job, uint64_t block)
{
	const struct load *load = job->load;

	return (load->is.first + (job->index * load->blocks + block) * load->is.size) / SECTOR;
}

/* The words of a block, of its @written-th time. */
static uint64_t pattern(const struct job *job, uint64_t block, uint32_t written)
{
	return mix(job->load->is.seed ^ mix(sector_of(job, block) << 24 ^ written));
}

static void fill(const struct job *job, void *data, uint64_t block, uint32_t written)
{
	uint64_t *words = data, word = pattern(job, block, written);

	for (uint32_t i = 0; i < job->load->is.size / sizeof(*words); i++)
		words[i] = word + i * 0x9e3779b97f4a7c15ull;
}

static bool same(const struct job *job, const void *data, uint64_t block, uint32_t written)
{
	const uint64_t *words = data;
	uint64_t word = pattern(job, block, written);

	for (uint32_t i = 0; i < job->load->is.size / sizeof(*words); i++)
		if (words[i] != word + i * 0x9e3779b97f4a7c15ull)
			return false;
	return true;
}

/* ---------------------------------------------------------------- requests */

/* By the queue's thread. */
static void finished(struct dmamap_blk_request *request)
{
	struct slot *slot = request->owner;
	struct job *job = slot->job;

	pthread_mutex_lock(&job->lock);
	slot->next = job->done;
	job->done = slot;
	pthread_cond_signal(&job->wake);
	pthread_mutex_unlock(&job->lock);
}

/* false: there is none any more. */
static bool next_checked(struct job *job, uint64_t *block)
{
	while (job->next_block < job->load->blocks && !job->written[job->next_block])
		job->next_block++;
	*block = job->next_block++;
	return *block < job->load->blocks;
}

static uint64_t next_block(struct job *job)
{
	uint64_t blocks = job->load->blocks;
	uint64_t block = job->load->is.sequential ? job->next_block++ % blocks : draw(job) % blocks;

	while (job->busy && job->busy[block])
		block = (block + 1) % blocks;
	return block;
}

/* false: nothing is left to do. */
static bool start(struct job *job, struct slot *slot)
{
	const struct dmamap_blk_load *is = &job->load->is;
	struct dmamap_blk_request *request = &slot->request;
	bool reads = job->checking;

	if (job->checking) {
		if (!next_checked(job, &slot->block))
			return false;
	} else {
		slot->block = next_block(job);
		reads = is->reads && draw(job) % 100 < is->reads;
	}
	slot->written = job->written ? job->written[slot->block] : 0;
	request->op = reads ? DMAMAP_BLK_READ : DMAMAP_BLK_WRITE;
	request->sector = sector_of(job, slot->block);
	request->size = is->size;
	request->segment = is->segment;
	request->done = finished;
	request->owner = slot;
	if (job->busy)
		job->busy[slot->block] = 1;
	if (job->written && !reads) {
		/* Until it is done nobody knows what is there. */
		job->written[slot->block] = 0;
		fill(job, request->data, slot->block, slot->written + 1);
	}
	slot->started = now();
	if (dmamap_blk_submit(job->load->blk, job->index % job->load->blk->n_queues, request)) {
		job->failed++;
		return false;
	}
	job->in_flight++;
	return true;
}

static void account(struct job *job, struct slot *slot)
{
	const struct dmamap_blk_request *request = &slot->request;
	bool wrote = request->op == DMAMAP_BLK_WRITE;

	job->in_flight--;
	job->failed += request->result != 0;
	if (!job->checking) {
		uint64_t end = now(), took = end - slot->started;

		job->requests++;
		job->last = end;
		job->buckets[bucket_of(took)]++;
		if (took > job->most)
			job->most = took;
	}
	if (!job->written)
		return;
	job->busy[slot->block] = 0;
	if (request->result)
		return;
	if (wrote) {
		job->written[slot->block] = slot->written + 1;
	} else if (slot->written) {
		job->verified++;
		job->mismatches += !same(job, request->data, slot->block, slot->written);
	}
}

/* All that have finished; one at least. */
static struct slot *wait_for_slots(struct job *job)
{
	struct slot *done;

	pthread_mutex_lock(&job->lock);
	while (!job->done)
		pthread_cond_wait(&job->wake, &job->lock);
	done = job->done;
	job->done = NULL;
	pthread_mutex_unlock(&job->lock);
	return done;
}

static bool is_over(const struct job *job, uint64_t started, uint64_t began)
{
	const struct dmamap_blk_load *is = &job->load->is;

	if (is->stop && is->stop())
		return true;
	if (job->checking)
		return false;
	return (is->requests && started >= is->requests) ||
	       (is->milliseconds && now() - began >= is->milliseconds * 1000000ull);
}

static void run(struct job *job)
{
	uint64_t began = now(), started = 0;
	bool more = true;

	for (unsigned i = 0; i < job->load->is.depth && more; i++) {
		more = !is_over(job, started, began) && start(job, &job->slots[i]);
		started += more;
	}
	while (job->in_flight) {
		struct slot *slot = wait_for_slots(job), *next;

		for (; slot; slot = next) {
			next = slot->next;
			account(job, slot);
			more = more && !is_over(job, started, began) && start(job, slot);
			started += more;
		}
	}
}

static void *work(void *argument)
{
	struct job *job = argument;
	struct load *load = job->load;
	bool abandoned;

	pthread_mutex_lock(&load->lock);
	while (!load->began)
		pthread_cond_wait(&load->begin, &load->lock);
	abandoned = load->abandoned;
	pthread_mutex_unlock(&load->lock);
	if (abandoned)
		return NULL;
	job->first = now();
	run(job);
	if (job->written) {
		job->checking = true;
		job->next_block = 0;
		run(job);
	}
	return NULL;
}

/* -------------------------------------------------------------------- jobs */

static void free_job(struct job *job)
{
	if (!job)
		return;
	pthread_cond_destroy(&job->wake);
	pthread_mutex_destroy(&job->lock);
	free(job->slots);
	free(job->buffers);
	free(job->written);
	free(job->busy);
	free(job);
}

static struct job *make_job(struct load *load, unsigned index)
{
	const struct dmamap_blk_load *is = &load->is;
	uint64_t page = soft_page_size(load->blk->driver->device->system);
	uint64_t room = (is->size + page - 1) & ~(page - 1);
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->load = load;
	job->index = index;
	job->random = mix(is->seed + index);
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->wake, NULL);
	job->slots = calloc(is->depth, sizeof(*job->slots));
	job->buffers = aligned_alloc(page, room * is->depth);
	if (is->verify) {
		job->written = calloc(load->blocks, sizeof(*job->written));
		job->busy = calloc(load->blocks, 1);
	}
	if (!job->slots || !job->buffers || (is->verify && (!job->written || !job->busy))) {
		free_job(job);
		return NULL;
	}
	for (unsigned i = 0; i < is->depth; i++) {
		job->slots[i].job = job;
		job->slots[i].request.data = job->buffers + i * room;
		fill(job, job->slots[i].request.data, i, 0);
	}
	return job;
}

static int check(struct load *load)
{
	struct dmamap_blk_load *is = &load->is;
	struct dmamap_blk_info info;
	uint64_t all;

	dmamap_blk_info(load->blk, &info);
	all = info.sectors * SECTOR;
	is->jobs = is->jobs ? is->jobs : 1;
	is->depth = is->depth ? is->depth : 1;
	is->size = is->size ? is->size : info.block_size;
	if (is->size % info.block_size || is->first % info.block_size || is->first > all)
		return SOFT_REFUSE(misaligned, EINVAL, "size or first", is->size, info.block_size);
	is->bytes = is->bytes ? is->bytes : all - is->first;
	load->blocks = is->bytes / is->size / is->jobs;
	if (is->bytes > all - is->first || load->blocks < is->depth)
		return SOFT_REFUSE(vduse_value, EINVAL, "a job's number of blocks", load->blocks,
			is->depth, all / is->size);
	if (!is->requests && !is->milliseconds)
		return SOFT_REFUSE(value, EINVAL, "requests, beside milliseconds,", 0);
	return 0;
}

static void sum(struct load *load, struct job **jobs, struct dmamap_blk_result *result)
{
	uint64_t buckets[BUCKETS] = {0}, first = UINT64_MAX, last = 0;

	memset(result, 0, sizeof(*result));
	for (unsigned i = 0; i < load->is.jobs; i++) {
		const struct job *job = jobs[i];

		result->requests += job->requests;
		result->failed += job->failed;
		result->mismatches += job->mismatches;
		result->verified += job->verified;
		first = job->first < first ? job->first : first;
		last = job->last > last ? job->last : last;
		if (job->most > result->latency.most)
			result->latency.most = job->most;
		for (unsigned b = 0; b < BUCKETS; b++)
			buckets[b] += job->buckets[b];
	}
	result->bytes = result->requests * load->is.size;
	result->nanoseconds = last > first ? last - first : 0;
	result->latency.p50 = percentile(buckets, result->requests, 500);
	result->latency.p90 = percentile(buckets, result->requests, 900);
	result->latency.p99 = percentile(buckets, result->requests, 990);
	result->latency.p999 = percentile(buckets, result->requests, 999);
}

int dmamap_blk_load(
	struct dmamap_blk *blk, const struct dmamap_blk_load *is, struct dmamap_blk_result *result)
{
	struct load load = {
		.blk = blk,
		.is = *is,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.begin = PTHREAD_COND_INITIALIZER,
	};
	struct job **jobs;
	unsigned made = 0;
	int error = check(&load);

	if (error)
		return error;
	jobs = calloc(load.is.jobs, sizeof(struct job *));
	if (!jobs)
		return SOFT_REFUSE(no_memory, ENOMEM, "jobs", load.is.jobs);
	for (; made < load.is.jobs && !error; made++) {
		jobs[made] = make_job(&load, made);
		if (!jobs[made])
			error = SOFT_REFUSE(no_memory, ENOMEM, "a job", made);
		else if (pthread_create(&jobs[made]->thread, NULL, work, jobs[made]))
			error = SOFT_REFUSE(no_memory, EAGAIN, "a job's thread", made);
		if (error) {
			free_job(jobs[made]);
			break;
		}
	}
	pthread_mutex_lock(&load.lock);
	load.began = true;
	load.abandoned = error != 0;
	pthread_cond_broadcast(&load.begin);
	pthread_mutex_unlock(&load.lock);
	for (unsigned i = 0; i < made; i++)
		pthread_join(jobs[i]->thread, NULL);
	if (!error)
		sum(&load, jobs, result);
	for (unsigned i = 0; i < made; i++)
		free_job(jobs[i]);
	free(jobs);
	return error;
}
