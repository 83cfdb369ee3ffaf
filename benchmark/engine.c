/* SPDX-License-Identifier: MIT */
/*
 * Engine benchmark: what map, unmap and translate cost, beside what the
 * machine itself allows (one memset of the same memory), on one pinned core.
 *
 * Each figure is the median of several rounds, with the fastest beside it:
 * machines are shared, and a round that was interrupted says nothing. All of
 * them run through the public interface, area included.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "dmamap/engine.h"

#define ROUNDS_MOST 64
#define PAGE	    4096ull

static unsigned rounds = 7;
static char *host; /* address space to point at, never touched */
static uint64_t host_size = (uint64_t)1 << 40;

struct figure {
	double sample[ROUNDS_MOST];
	unsigned n;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void add(struct figure *figure, double nanoseconds)
{
	figure->sample[figure->n++] = nanoseconds;
}

static double median(struct figure *figure)
{
	qsort(figure->sample, figure->n, sizeof(double), ascending);
	return figure->sample[figure->n / 2];
}

static void print(struct figure *figure)
{
	double middle = median(figure);

	printf(middle < 100 ? " %8.2f (%6.2f)" : " %8.0f (%6.0f)", middle, figure->sample[0]);
	figure->n = 0;
}

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "engine-benchmark: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static struct dmamap_memory *make_memory(uint64_t length)
{
	struct dmamap_memory *memory;

	/* One look-up for all of it, and no page behind it: only addresses count. */
	check(dmamap_memory_file(host, 0, length, 3, 62, &memory), "memory");
	return memory;
}

static struct dmamap_space *make_space(uint64_t leaf_sizes, struct dmamap_table **table)
{
	struct dmamap_table_config config = {.leaf_sizes = leaf_sizes};
	struct dmamap_space *space;

	check(dmamap_space_create(NULL, &space), "space");
	check(dmamap_table_create(space, &config, table, NULL), "table");
	return space;
}

static void map(struct dmamap_space *space, struct dmamap_memory *memory, uint64_t iova,
	uint64_t length, uint64_t offset)
{
	struct dmamap_map map = {.first = iova,
		.last = iova + length - 1,
		.memory = memory,
		.offset = offset,
		.prot = 3};

	check(dmamap_map(space, &map, NULL), "map");
}

static void unmap(struct dmamap_space *space, uint64_t iova, uint64_t length)
{
	check(dmamap_unmap(space, iova, iova + length - 1, NULL, NULL), "unmap");
}

/* -------------------------------------------------------------- contiguous */

/* One area of @n leaves again and again, in a table that stays warm. */
static void contiguous(unsigned shift, unsigned n)
{
	uint64_t size = (uint64_t)1 << shift, length = n * size, iova = (uint64_t)1 << 45;
	uint64_t sizes = 1ull << 12 | 1ull << shift;
	struct dmamap_memory *memory = make_memory(length);
	struct figure mapped = {0}, unmapped = {0}, translated = {0};
	unsigned loops = 200000 / n + 500;
	struct dmamap_table *table;
	struct dmamap_space *space = make_space(sizes, &table);
	struct dmamap_access *access;
	struct dmamap_segment segment;

	/* Neighbours keep the tables in place; the clock is read per pair of calls. */
	map(space, memory, iova - (1ull << 30), PAGE, 0);
	map(space, memory, iova + length, PAGE, 0);
	for (unsigned r = 0; r < rounds; r++) {
		double start, at, map_time = 0, unmap_time = 0, clock;

		start = now();
		for (unsigned i = 0; i < 1000; i++)
			now();
		clock = (now() - start) / 1001;
		for (unsigned i = 0; i < loops; i++) {
			start = now();
			map(space, memory, iova, length, 0);
			at = now();
			unmap(space, iova, length);
			unmap_time += now() - at - clock;
			map_time += at - start - clock;
		}
		add(&mapped, map_time / loops / n);
		add(&unmapped, unmap_time / loops / n);
		map(space, memory, iova, length, 0);
		check(dmamap_access_create(table, &access), "access");
		dmamap_access_enter(access);
		start = now();
		for (unsigned i = 0; i < loops; i++)
			check(dmamap_translate(access, iova, length, 3, &segment, 1, NULL),
				"translate");
		add(&translated, (now() - start) / loops);
		dmamap_access_leave(access);
		dmamap_access_destroy(access);
		unmap(space, iova, length);
	}
	printf("  %3u x %s ", n, shift == 12 ? "4K" : shift == 21 ? "2M" : "1G");
	print(&mapped);
	print(&unmapped);
	print(&translated);
	printf("\n");
	dmamap_space_destroy(space);
	dmamap_memory_put(memory);
}

/* ------------------------------------------------------------------- large */

/* 32 GiB as one area, in a fresh table each time, beside a memset of the table's memory. */
static void large(unsigned shift)
{
	uint64_t length = (uint64_t)32 << 30;
	struct dmamap_memory *memory = make_memory(length);
	struct figure mapped = {0}, unmapped = {0}, fresh = {0}, again = {0};
	struct dmamap_counters counters;

	for (unsigned r = 0; r < rounds; r++) {
		struct dmamap_table *table;
		struct dmamap_space *space = make_space(1ull << 12 | 1ull << shift, &table);
		size_t bytes = 64 << 20, span = bytes + (2 << 20);
		char *plain, *aligned;
		double start;

		start = now();
		map(space, memory, (uint64_t)1 << 40, length, 0);
		add(&mapped, now() - start);
		dmamap_space_counters(space, &counters);
		start = now();
		unmap(space, (uint64_t)1 << 40, length);
		add(&unmapped, now() - start);
		dmamap_space_destroy(space);

		plain = mmap(
			NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (plain == MAP_FAILED)
			check(-errno, "mmap");
		aligned =
			(char *)(((uintptr_t)plain + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
		madvise(aligned, bytes, MADV_HUGEPAGE);
		start = now();
		memset(aligned, 1, bytes);
		add(&fresh, now() - start);
		start = now();
		memset(aligned, 2, bytes);
		add(&again, now() - start);
		munmap(plain, span);
	}
	printf("  32 GiB, %s leaves: ", shift == 12 ? "4K" : "1G");
	if (shift == 12) {
		double base = median(&fresh);

		printf("map %.2f ms, unmap %.2f ms; one memset of 64 MiB: %.2f ms fresh, %.2f ms "
		       "again; map is %.2fx the fresh one; %llu table pages\n",
			median(&mapped) / 1e6, median(&unmapped) / 1e6, base / 1e6,
			median(&again) / 1e6, median(&mapped) / base,
			(unsigned long long)counters.tables);
	} else {
		printf("map %.0f ns, unmap %.0f ns (a fresh table's first page faults included)\n",
			median(&mapped), median(&unmapped));
		dmamap_memory_put(memory);
		return;
	}
	dmamap_memory_put(memory);
}

/* 32 GiB at 1 GiB leaves in a table that is warm. */
static void large_warm(void)
{
	uint64_t length = (uint64_t)32 << 30, iova = (uint64_t)1 << 40;
	struct dmamap_memory *memory = make_memory(length);
	struct figure mapped = {0}, unmapped = {0};
	struct dmamap_table *table;
	struct dmamap_space *space = make_space(1ull << 12 | 1ull << 30, &table);

	for (unsigned r = 0; r < rounds; r++) {
		double start, at, map_time = 0, unmap_time = 0;

		for (unsigned i = 0; i < 2000; i++) {
			start = now();
			map(space, memory, iova, length, 0);
			at = now();
			unmap(space, iova, length);
			unmap_time += now() - at;
			map_time += at - start;
		}
		add(&mapped, map_time / 2000);
		add(&unmapped, unmap_time / 2000);
	}
	printf("  32 GiB, 1G leaves, warm: map %.0f ns, unmap %.0f ns\n", median(&mapped),
		median(&unmapped));
	dmamap_space_destroy(space);
	dmamap_memory_put(memory);
}

/* ------------------------------------------------------------------- areas */

struct many {
	unsigned n;
	uint32_t *order;
	struct dmamap_memory *memory;
	struct dmamap_space *space;
	struct dmamap_table *table;
	struct figure map, unmap, independent, dependent, same;
	double bytes;
};

static uint64_t shuffle_state = 88172645463325252ull;

static uint64_t shuffle_next(void)
{
	shuffle_state ^= shuffle_state << 13;
	shuffle_state ^= shuffle_state >> 7;
	shuffle_state ^= shuffle_state << 17;
	return shuffle_state;
}

static void shuffle(uint32_t *order, unsigned n)
{
	for (unsigned i = n - 1; i > 0; i--) {
		unsigned j = (unsigned)(shuffle_next() % (i + 1));
		uint32_t t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

static void many_translate(struct many *many)
{
	struct dmamap_segment segment;
	struct dmamap_access *access;
	unsigned loops = many->n > 100000 ? many->n : 100000;
	uintptr_t sum = 0;
	uint64_t x = 1;
	double start;

	check(dmamap_access_create(many->table, &access), "access");
	dmamap_access_enter(access);
	start = now();
	for (unsigned i = 0; i < loops; i++) {
		uint64_t iova = many->order[i % many->n] * PAGE;

		check(dmamap_translate(access, iova, 64, 1, &segment, 1, NULL), "translate");
		sum += (uintptr_t)segment.host;
	}
	add(&many->independent, (now() - start) / loops);
	start = now();
	for (unsigned i = 0; i < loops; i++) {
		uint64_t iova = (x >> 16) % many->n * PAGE;

		check(dmamap_translate(access, iova, 64, 1, &segment, 1, NULL), "translate");
		/* 0 is added; but where to look next is known only when the answer is. */
		x = x * 6364136223846793005ull + 1442695040888963407ull +
		    ((uintptr_t)segment.host - (uintptr_t)host - iova);
	}
	add(&many->dependent, (now() - start) / loops);
	start = now();
	for (unsigned i = 0; i < 1000000; i++) {
		check(dmamap_translate(access, 64 * (i & 15), 64, 1, &segment, 1, NULL),
			"translate");
		sum += (uintptr_t)segment.host;
	}
	add(&many->same, (now() - start) / 1000000);
	dmamap_access_leave(access);
	dmamap_access_destroy(access);
	if (sum == 42)
		printf("\n");
}

static void many_round(struct many *many, bool translate)
{
	struct dmamap_counters counters;
	double start;

	many->space = make_space(0, &many->table);
	start = now();
	for (unsigned i = 0; i < many->n; i++)
		map(many->space, many->memory, many->order[i] * PAGE, PAGE, many->order[i] * PAGE);
	add(&many->map, (now() - start) / many->n);
	dmamap_space_counters(many->space, &counters);
	many->bytes = (double)(counters.area_bytes + counters.table_bytes_held) / many->n;
	if (translate)
		many_translate(many);
	start = now();
	for (unsigned i = 0; i < many->n; i++)
		unmap(many->space, many->order[i] * PAGE, PAGE);
	add(&many->unmap, (now() - start) / many->n);
	dmamap_space_destroy(many->space);
}

static void many_areas(unsigned n)
{
	struct many random = {.n = n}, sequential = {.n = n};

	random.order = malloc(n * sizeof(uint32_t));
	sequential.order = malloc(n * sizeof(uint32_t));
	random.memory = sequential.memory = make_memory(n * PAGE);
	for (unsigned i = 0; i < n; i++)
		random.order[i] = sequential.order[i] = i;
	shuffle(random.order, n);
	for (unsigned r = 0; r < rounds; r++) {
		many_round(&random, true);
		many_round(&sequential, false);
	}
	printf("  %7u, random order    ", n);
	print(&random.map);
	print(&random.unmap);
	print(&random.independent);
	print(&random.dependent);
	print(&random.same);
	printf(" %7.1f\n  %7u, in order        ", random.bytes, n);
	print(&sequential.map);
	print(&sequential.unmap);
	printf("%51s %7.1f\n", "", sequential.bytes);
	dmamap_memory_put(random.memory);
	free(random.order);
	free(sequential.order);
}

/* ------------------------------------------------------------------- dirty */

static void count_leaf(void *argument, uint64_t first, uint64_t last)
{
	(void)first;
	(void)last;
	++*(uint64_t *)argument;
}

/* Translates for a write to each of @n leaves of 4K; ns a leaf. */
static double write_each(struct dmamap_access *access, unsigned n)
{
	struct dmamap_segment segment;
	double start;

	dmamap_access_enter(access);
	start = now();
	for (unsigned i = 0; i < n; i++)
		check(dmamap_translate(access, i * PAGE, 64, DMAMAP_WRITE, &segment, 1, NULL),
			"translate");
	start = (now() - start) / n;
	dmamap_access_leave(access);
	return start;
}

/* Reads what is dirty and makes it clean; ns for each of @n leaves, of which @dirty are dirty. */
static double read_dirty(struct dmamap_table *table, unsigned n, uint64_t dirty)
{
	uint64_t found = 0;
	double start = now();

	check(dmamap_table_dirty_read(table, 0, UINT64_MAX, 0, count_leaf, &found), "dirty");
	start = (now() - start) / n;
	check(found == dirty ? 0 : -EINVAL, "dirty leaves");
	return start;
}

/* Writes to 1 GiB of 4K leaves, untracked and tracked, and reading what is dirty. */
static void dirty(void)
{
	struct figure off = {0}, started = {0}, first = {0}, later = {0}, all = {0}, none = {0};
	unsigned n = 1u << 18;
	struct dmamap_memory *memory = make_memory(n * PAGE);
	struct dmamap_access *access;
	struct dmamap_table *table;
	struct dmamap_space *space = make_space(1ull << 12, &table);

	map(space, memory, 0, n * PAGE, 0);
	check(dmamap_access_create(table, &access), "access");
	for (unsigned r = 0; r < rounds; r++) {
		double start;

		add(&off, write_each(access, n));
		start = now();
		dmamap_table_dirty_start(table);
		add(&started, (now() - start) / n);
		add(&first, write_each(access, n));
		add(&later, write_each(access, n));
		add(&all, read_dirty(table, n, n));
		add(&none, read_dirty(table, n, 0));
		dmamap_table_dirty_stop(table);
	}
	printf("  untracked   first write   later write         start    read dirty    read "
	       "clean\n");
	print(&off);
	print(&first);
	print(&later);
	print(&started);
	print(&all);
	print(&none);
	printf("\n");
	dmamap_access_destroy(access);
	dmamap_space_destroy(space);
	dmamap_memory_put(memory);
}

/* ------------------------------------------------------------------- waits */

static struct dmamap_table *wait_table;
static int wait_stop;
static pthread_barrier_t wait_ready;

static void *other_thread(void *argument)
{
	struct dmamap_access *access;

	check(dmamap_access_create(wait_table, &access), "access");
	pthread_barrier_wait(&wait_ready);
	while (!__atomic_load_n(&wait_stop, __ATOMIC_RELAXED))
		sched_yield();
	dmamap_access_destroy(access);
	return argument;
}

/* An unmap that has to make sure of another thread's access. */
static void waits(void)
{
	struct dmamap_memory *memory = make_memory(PAGE);
	struct figure unmapped = {0};
	struct dmamap_space *space = make_space(0, &wait_table);
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t all;

	/* The other thread runs where it likes, as a device's would. */
	memset(&all, 0xff, sizeof(all));
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(all), &all);
	pthread_barrier_init(&wait_ready, NULL, 2);
	check(-pthread_create(&thread, &attributes, other_thread, NULL), "thread");
	pthread_barrier_wait(&wait_ready);
	for (unsigned r = 0; r < rounds; r++) {
		double time = 0, start;

		for (unsigned i = 0; i < 2000; i++) {
			map(space, memory, 0, PAGE, 0);
			start = now();
			unmap(space, 0, PAGE);
			time += now() - start;
		}
		add(&unmapped, time / 2000);
	}
	__atomic_store_n(&wait_stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	printf("  unmap while another thread has an access: %.0f ns\n", median(&unmapped));
	dmamap_space_destroy(space);
	dmamap_memory_put(memory);
}

int main(int argc, char **argv)
{
	static const unsigned shifts[] = {12, 21, 30}, counts[] = {1, 256, 512};
	unsigned most = 1000000;
	cpu_set_t one;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--rounds=", 9) && atoi(argv[i] + 9) > 0 &&
			atoi(argv[i] + 9) <= ROUNDS_MOST) {
			rounds = (unsigned)atoi(argv[i] + 9);
		} else if (!strncmp(argv[i], "--areas=", 8) && atoi(argv[i] + 8) > 0) {
			most = (unsigned)atoi(argv[i] + 8);
		} else {
			fprintf(stderr,
				"usage: engine-benchmark [--rounds=N (1 to %d)] [--areas=MOST]\n",
				ROUNDS_MOST);
			return 2;
		}
	}
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		fprintf(stderr, "engine-benchmark: not pinned to a core: %s\n", strerror(errno));
	host = mmap(NULL, host_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (host == MAP_FAILED)
		check(-errno, "mmap");
	printf("Engine benchmark: medians of %u rounds (fastest in brackets), ns, one core\n\n",
		rounds);
	printf("Contiguous leaves, one area, warm table: ns a leaf; translate: ns a call over "
	       "all\n");
	printf("                          map             unmap         translate\n");
	for (unsigned s = 0; s < 3; s++)
		for (unsigned c = 0; c < 3; c++)
			contiguous(shifts[s], counts[c]);
	printf("\nLarge areas\n");
	large_warm();
	large(30);
	large(12);
	printf("\nAreas of 4 KiB: ns a call; bytes an area, its leaf and all spare memory "
	       "included\n");
	printf("                                     map             unmap   translate random     "
	       "   dependent      same region   bytes\n");
	for (unsigned n = 1000; n <= most; n *= n == 1000 ? 100 : 10)
		many_areas(n);
	printf("\nDirty tracking, 1 GiB of 4K leaves: ns a leaf; a write is a translation for "
	       "one\n");
	dirty();
	printf("\nOther threads\n");
	waits();
	return 0;
}
