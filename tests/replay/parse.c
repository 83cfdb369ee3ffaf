/* SPDX-License-Identifier: MIT */
/*
 * The parser of cases (docs/case-format.md): what is good is read as it was
 * meant and prints as the same; what is bad is refused where it is bad.
 */
#include <dirent.h>
#include <ftw.h>

#include "cases.h"
#include "cli/replay/case.h"
#include "cli/replay/verbs.h"
#include "tests/check.h"

static void prints(const char *text, const char *wanted)
{
	char said[sizeof(struct complaint)], *printed = cases_print(text, strlen(text), said);

	if (!printed)
		fail_msg("%s: %s", text, said);
	assert_string_equal(printed, wanted);
	free(printed);
}

static void refuses(const char *text, const char *wanted)
{
	char said[sizeof(struct complaint)], *printed = cases_print(text, strlen(text), said);

	if (printed)
		fail_msg("it was taken: %s", text);
	if (!strstr(said, wanted))
		fail_msg("it said: %s, not: %s", said, wanted);
}

#define C0 "container c0 type1v2 d0\n"
#define I0 "iommufd f0\nioas i0 f0 d0\n"

/* Numbers in every way that they can be written. */
static void numbers(void **state)
{
	static const struct {
		const char *written, *is;
	} cases[] = {
		{"0", "0"},
		{"7", "7"},
		{"4096", "4K"},
		{"0x1000", "4K"},
		{"2M", "2M"},
		{"1G", "1G"},
		{"3T", "3T"},
		{"2^48", "256T"},
		{"2^48-4K", "274877906940K"},
		{"max", "max"},
		{"0xffffffffffffffff", "max"},
		{"-1", "max"},
		{"2*3*4K+1", "24577"},
		{"1K-1", "1023"},
		{"0-4K", "18014398509481980K"},
		{"2^0", "1"},
		{"15E", "15E"},
		{"null", "0"},
	};
	char text[200], wanted[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), C0 "unmap c0 size=%s", cases[i].written);
		snprintf(wanted, sizeof(wanted), C0 "unmap c0 size=%s\n", cases[i].is);
		prints(text, wanted);
	}
}

static void number_errors(void **state)
{
	(void)state;
	refuses(C0 "unmap c0 size=0x", "test:2:17: a number is wanted here");
	refuses(C0 "unmap c0 size=18446744073709551616", "test:2:15: the number has more than 64");
	refuses(C0 "unmap c0 size=16E", "more than 64 bits");
	refuses(C0 "unmap c0 size=2^64", "more than 64 bits; write max");
	refuses(C0 "unmap c0 size=4Q", "test:2:16: 4 ends before this character");
	refuses(C0 "unmap c0 size=", "test:2:15: a number is wanted here");
	refuses(C0 "unmap c0 size=4K+", "test:2:18: a number is wanted here");
	refuses(C0 "unmap c0 size=$i", "test:2:15: nothing is kept as $i");
	refuses(C0 "unmap c0 size=ram", "test:2:15: nothing before this line makes ram");
	refuses(C0 "unmap c0 size=c0", "c0 is a container, but size= takes memory");
}

/* Each kind of value prints as it is read. */
static void values(void **state)
{
	static const char *const texts[] = {
		C0 "map c0 iova=0xfedff000 va=0 size=8K => EINVAL reason=reserved\n",
		C0 "map c0 flags=read,write,0x80 => EINVAL\n",
		C0 "unmap c0 flags=all => 0 size=2M dirty=none\n",
		C0 "dirty c0 flags=get iova=0 size=1M => 0 dirty=0..3,7,0..255\n",
		"memory ram 4K kind=memfd prot=r shared\nfill ram+0x10 size=1K value=0x5a\n",
		I0 "map i0 va=0 size=4K save=a\nunmap i0 iova=$a.iova+0x1000 size=$a.size => ?\n",
		I0 "allow_iovas i0 ranges=0x1000..0x1fff,0x100000..max\n",
		I0 "hwpt_alloc h0 f0 device=d0 pt=i0 flags=dirty_tracking,0x100 => EOPNOTSUPP\n",
		"eventfd e0\nset_irqs d0 index=1 count=2 flags=eventfd,trigger data=e0,max\n",
		"feature d0 bus_master flags=set bytes=01,00*8,0203 => 0 bytes=none\n",
		"ioctl d0 request=0x3b71 bytes=00112233 => ENOTTY\n",
		"dma_write d0 iova=0 size=16 value=0x5a => fault\n",
		"needs kernel>=6.15 kernel<7.0 system=soft devices>=2 page=4K iommufd root\n",
		"when kernel<=6.12,system=linux reset d0\n",
		"process p1\nas p1 limit memlock=4M\nexit p1\n",
		"loop 3 i\nloop 4 j\nreset d0\nend\nend\n",
		"format 1\ntitle A title # with a sign\nsource here\nmachine aperture=39\n",
		"title # this is one\nsource => this too\nmachine key=value,other\n",
		"open g0 group d0\nopen x file path=/dev/null => EACCES\nclose d0.group\n",
		"counters reset\ncounters maps=3 leaves_1g=32\n",
		"read d0 region=7 size=4 => 4 bytes=86801112 value=?\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		prints(texts[i], texts[i]);
}

/* What is read leniently prints in one way. */
static void layout(void **state)
{
	(void)state;
	prints("", "");
	prints("# nothing\n\n   \t\n", "");
	prints("  reset   d0  # why\r\n", "reset d0\n");
	prints("reset d0", "reset d0\n");
	prints("reset \\\n  d0 \\\n => \\\n ok", "reset d0 => ok\n");
	prints("title   a \\\n b  ", "title a   b\n");
	prints("needs root,iommufd", "needs root iommufd\n");
	prints("loop 2\nend", "loop 2 i\nend\n");
	prints(C0 "map c0 flags=3", C0 "map c0 flags=read,write\n");
	prints("reset d0 => 0x0", "reset d0 => 0\n");
	prints("reset d0 => EWOULDBLOCK", "reset d0 => EAGAIN\n");
}

static void errors(void **state)
{
	(void)state;
	refuses("floppy", "test:1:1: there is no statement floppy");
	refuses("reset d0\n\n  floppy x", "test:3:3: there is no statement");
	refuses("reset", "test:1:6: reset needs its on here");
	refuses("reset d0 d1", "test:1:10: reset has no key d1; there are save");
	refuses("reset d0 => ", "a result follows =>");
	refuses("reset d0 => EFOO", "test:1:13: there is no errno EFOO");
	refuses("reset d0 => maybe", "this is no result");
	refuses("reset d0 => 5", "reset returns 0 or an errno");
	refuses("reset d0 => fault", "only dma_read and dma_write can fault");
	refuses("reset d0 => 0 size=4", "reset has no output size; there are reason");
	refuses("reset c0", "test:1:7: nothing before this line makes c0");
	refuses(C0 "reset c0", "c0 is a container; name a device or an opened device here");
	refuses(C0 "map c0 iova=0 iova=1", "test:2:15: iova is given twice");
	refuses(C0 "map c0 wrong=1", "map has no key wrong; there are iova, va");
	refuses(C0 "map c0 flags=raed", "flags has no raed; write read, write, vaddr");
	refuses(C0 "memory c0 4K", "c0 is a container already");
	refuses("memory d0 4K", "d0 has a meaning already");
	refuses("memory max 4K", "max has a meaning already");
	refuses("memory 4K", "test:1:8: memory gets a name here");
	refuses("memory ram 4K\nmap ram va=0", "name a container, an IOMMUFD or an IOAS here");
	refuses("open x", "after the name, open takes one of container");
	refuses("open x door d0", "after the name, open takes one of container");
	refuses("open x group", "open needs its device here");
	refuses("open x file", "open needs path=");
	refuses("fill", "fill needs its address here");
	refuses("memory ram 4K\nfill ram size=1", "fill needs value=");
	refuses("memory ram 4K shared=1", "shared stands alone");
	refuses("loop 3", "test:1:1: the loop has no end");
	refuses("end", "test:1:1: there is no loop for this end");
	refuses("end => 0", "end has no result");
	refuses("when", "when wants a condition");
	refuses("when root", "when wants a statement");
	refuses("when rooot reset d0", "rooot is no condition");
	refuses("when kernel reset d0", "a comparison is wanted here; write kernel>=6.15");
	refuses("when kernel>=seven reset d0", "test:1:14: nothing before this line makes seven");
	refuses("when system=windows reset d0", "the system is soft or linux");
	refuses("when root loop 3\nend", "loop stands alone");
	refuses("needs", "needs wants a condition");
	refuses("as p1 reset d0", "nothing before this line makes p1");
	refuses("as d0 reset d0", "d0 is a device; name a process here");
	refuses("format 2", "this dmamap reads format 1 only");
	refuses("reset d0\nformat 1", "format is the first statement");
	refuses("feature d0 bus_master bytes=0", "bytes are wanted here");
	refuses("feature d0 bus_master bytes=00*0", "one byte is repeated");
	refuses("feature d0 bus_master bytes=00*2M", "more than 1M bytes");
	refuses("loop 1 i.j\nend", "a name is wanted here");
	refuses("reset d0 \\ d0", "a key is wanted here");
}

/* The same name on every line: the machine's things need no statement. */
static void loops_know_their_ends(void **state)
{
	static const char text[] = "loop 2\nreset d0\nloop 3 j\nreset d1\nend\nend\nreset d2\n";
	struct case_file *file = case_create("test");
	struct complaint complaint;

	(void)state;
	assert_int_equal(case_append(file, text, strlen(text), &complaint), 0);
	assert_int_equal(case_finish(file, &complaint), 0);
	assert_int_equal(file->n_statements, 7);
	assert_int_equal(file->statements[0].body_end, 5);
	assert_int_equal(file->statements[2].body_end, 4);
	assert_int_equal(file->statements[5].body_end, 0);
	assert_int_equal(file->statements[6].line, 7);
	case_destroy(file);
}

/* A generator appends statement by statement. */
static void appended_in_pieces(void **state)
{
	struct case_file *file = case_create("made");
	struct complaint complaint;
	char text[100];

	(void)state;
	assert_int_equal(case_append(file, C0, strlen(C0), &complaint), 0);
	for (unsigned i = 0; i < 1000; i++) {
		int n = snprintf(text, sizeof(text), "map c0 iova=0x%x va=null size=4K\n", i << 12);

		assert_int_equal(case_append(file, text, (size_t)n, &complaint), 0);
	}
	assert_int_equal(file->n_statements, 1001);
	assert_int_equal(file->statements[1000].line, 1001);
	assert_int_equal(case_append(file, "map c0 x", 8, &complaint), -1);
	assert_non_null(strstr(complaint.text, "made:1002:8: "));
	assert_int_equal(file->n_statements, 1001);
	case_destroy(file);
}

/* Every statement that exists is in the format's document, with all its keys and outputs. */
static void documented(void **state)
{
	FILE *in = fopen(CASE_FORMAT, "re");
	char *text = calloc(1, 1 << 20), word[100];
	static const struct verb *const tables[] = {verbs_own, verbs_vfio, verbs_iommufd};
	unsigned missing = 0;

	(void)state;
	assert_non_null(in);
	assert_true(fread(text, 1, (1 << 20) - 1, in) > 0);
	fclose(in);
	for (unsigned t = 0; t < 3; t++) {
		for (const struct verb *verb = tables[t]; verb->name; verb++) {
			snprintf(word, sizeof(word), "`%s", verb->name);
			if (!strstr(text, word) && ++missing)
				printf("%s is not described\n", verb->name);
			for (const struct field *field = verb->fields; field->name; field++) {
				if (!(field->use & (USE_IN | USE_OUT)) || strstr(text, field->name))
					continue;
				printf("%s of %s is not described\n", field->name, verb->name);
				missing++;
			}
		}
	}
	assert_int_equal(missing, 0);
	free(text);
}

/* --------------------------------------------------- all cases, and what is made of them */

#define SEEDS_MAX 4096

static char *seeds[SEEDS_MAX];
static size_t n_seeds;

static int add_seed(const char *path, const struct stat *is, int kind, struct FTW *where)
{
	size_t length = strlen(path);
	FILE *in;

	(void)where;
	if (kind != FTW_F || length < 5 || strcmp(path + length - 5, ".case") != 0 ||
		n_seeds == SEEDS_MAX)
		return 0;
	in = fopen(path, "re");
	seeds[n_seeds] = calloc(1, (size_t)is->st_size + 1);
	assert_true(in && seeds[n_seeds]);
	assert_int_equal(fread(seeds[n_seeds], 1, (size_t)is->st_size, in), is->st_size);
	n_seeds++;
	fclose(in);
	return 0;
}

static int find_seeds(void **state)
{
	(void)state;
	nftw(CASES, add_seed, 16, FTW_PHYS);
	return n_seeds ? 0 : -1;
}

static int free_seeds(void **state)
{
	(void)state;
	while (n_seeds)
		free(seeds[--n_seeds]);
	return 0;
}

static void all_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_seeds; i++) {
		bool good;

		assert_true(cases_round_trip(seeds[i], strlen(seeds[i]), &good));
		assert_true(good);
	}
	printf("%zu cases\n", n_seeds);
}

/* Bytes that mean something to the parser, more often than others. */
static char random_byte(struct random *random)
{
	static const char telling[] = "=,.*^+-$#\\\"\n\t 0123456789xKMGTPE?><:_d{}[]";

	return random_below(random, 4) ? telling[random_below(random, sizeof(telling) - 1)]
				       : (char)random_next(random);
}

/* One change of a text of @n bytes; there is room for twice as many. */
static size_t mutate(struct random *random, char *text, size_t n)
{
	size_t at = random_below(random, n + 1), to = random_below(random, n + 1), length;

	switch (random_below(random, 5)) {
	case 0: /* another byte */
		if (at < n)
			text[at] = random_byte(random);
		return n;
	case 1: /* one more */
		memmove(text + at + 1, text + at, n - at);
		text[at] = random_byte(random);
		return n + 1;
	case 2: /* some less */
		length = random_below(random, 20);
		if (length > n - at)
			length = n - at;
		memmove(text + at, text + at + length, n - at - length);
		return n - length;
	case 3: /* a piece of it again elsewhere */
		length = random_below(random, 30);
		if (length > n - at)
			length = n - at;
		if (length > n - to)
			length = n - to;
		memmove(text + to, text + at, length);
		return n;
	default: /* the end is missing */
		return random_below(random, 8) ? n : at;
	}
}

static void mutations(void **state)
{
	struct random random = random_start("mutated cases");
	char *text = malloc(1 << 20);
	unsigned good = 0, bad = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned round = 0; round < 20000; round++) {
		const char *seed = seeds[random_below(&random, n_seeds)];
		size_t n = strlen(seed) > 8000 ? 8000 : strlen(seed);
		bool is_good;

		memcpy(text, seed, n);
		for (uint64_t i = 1 + random_below(&random, 8); i && n; i--)
			n = mutate(&random, text, n);
		assert_true(cases_round_trip(text, n, &is_good));
		good += is_good;
		bad += !is_good;
	}
	/* Both must come up, or the changes are too large or too small to find anything. */
	assert_true(good > 100 && bad > 100);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(number_errors),
		cmocka_unit_test(values),
		cmocka_unit_test(layout),
		cmocka_unit_test(errors),
		cmocka_unit_test(loops_know_their_ends),
		cmocka_unit_test(appended_in_pieces),
		cmocka_unit_test(documented),
		cmocka_unit_test(all_cases),
		cmocka_unit_test(mutations),
	};

	return cmocka_run_group_tests(tests, find_seeds, free_seeds);
}
