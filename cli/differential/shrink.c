/* SPDX-License-Identifier: MIT */
/* Delta debugging over lines (Zeller's ddmin, from the end on), then over the words of each. */
#include "cli/differential/shrink.h"

#include <stdio.h>
#include <string.h>

#define WORDS 24

/* Plain values, the plainest first: a value is only replaced by one that stands before it. */
static const char *const plain[] = {
	"0", "4K", "1M", "64K", "8K", "2M", "4G", "0xfee00000", "2^48-4K", "2^48", "-4K", "max"};

#define PLAIN (sizeof(plain) / sizeof(plain[0]))

/* The trial becomes the script where it still shows it. */
static bool take(struct shrink *shrink)
{
	struct script smaller = shrink->trial;

	if (smaller.failed || !shrink->budget)
		return false;
	shrink->budget--;
	if (!shrink->shows(shrink->context, &smaller))
		return false;
	shrink->trial = shrink->script;
	shrink->script = smaller;
	return true;
}

static bool without_lines(struct shrink *shrink, size_t first, size_t n)
{
	script_clear(&shrink->trial);
	for (size_t i = 0; i < shrink->script.n; i++) {
		if (i >= first && i - first < n)
			continue;
		script_add(&shrink->trial, "%s", script_line(&shrink->script, i));
		script_end(&shrink->trial);
	}
	return take(shrink);
}

static bool fewer_lines(struct shrink *shrink)
{
	bool any = false, again = true;
	size_t piece = shrink->script.n / 2;

	while (piece && shrink->budget && again) {
		again = piece > 1;
		for (size_t end = shrink->script.n; end;) {
			size_t n = piece < end ? piece : end;

			end -= n;
			if (without_lines(shrink, end, n)) {
				any = true;
				/* One by one until none can go: a line may have held another. */
				again = true;
			}
		}
		piece = piece > 1 ? piece / 2 : 1;
	}
	return any;
}

/* A line cut into its words, and one of them replaced (NULL: left out) in the trial. */
struct words {
	char text[1024];
	char *at[WORDS];
	unsigned n;
};

static bool split(struct words *words, const char *line)
{
	char *save = NULL;

	if (strlen(line) >= sizeof(words->text))
		return false;
	strcpy(words->text, line);
	words->n = 0;
	for (char *word = strtok_r(words->text, " ", &save); word;
		word = strtok_r(NULL, " ", &save)) {
		if (words->n == WORDS)
			return false;
		words->at[words->n++] = word;
	}
	return words->n;
}

static bool with_word(struct shrink *shrink, size_t line, const struct words *words, unsigned which,
	const char *word)
{
	script_clear(&shrink->trial);
	for (size_t i = 0; i < shrink->script.n; i++) {
		if (i != line) {
			script_add(&shrink->trial, "%s", script_line(&shrink->script, i));
			script_end(&shrink->trial);
			continue;
		}
		for (unsigned k = 0; k < words->n; k++)
			if (k != which)
				script_add(&shrink->trial, k ? " %s" : "%s", words->at[k]);
			else if (word)
				script_add(&shrink->trial, " %s", word);
		script_end(&shrink->trial);
	}
	return take(shrink);
}

static bool plainer_value(struct shrink *shrink, size_t line, struct words *words, unsigned which)
{
	char word[256], *value = strchr(words->at[which], '='), *cut;
	int key;

	if (!value || strlen(words->at[which]) + 16 > sizeof(word))
		return false;
	key = (int)(++value - words->at[which]);
	for (size_t i = 0; i < PLAIN && strcmp(value, plain[i]); i++) {
		/* A bitmap's page size of 0 is undefined: see containers.c. */
		if (!i && !strncmp(words->at[which], "pgsize=", 7))
			continue;
		snprintf(word, sizeof(word), "%.*s%s", key, words->at[which], plain[i]);
		if (with_word(shrink, line, words, which, word))
			return true;
	}
	/* The last summand, or the last of a list. */
	strcpy(word, words->at[which]);
	cut = strrchr(word + key + 1, ',');
	if (!cut)
		cut = strrchr(word + key + 1, '+');
	if (!cut)
		return false;
	*cut = '\0';
	return with_word(shrink, line, words, which, word);
}

static bool plainer_line(struct shrink *shrink, size_t line)
{
	struct words words;
	bool any = false;

	for (unsigned which = 1;; which++) {
		/* The script's memory is another after each success. */
		if (!shrink->budget || !split(&words, script_line(&shrink->script, line)) ||
			which >= words.n)
			return any;
		if (with_word(shrink, line, &words, which, NULL)) {
			any = true;
			which--;
		} else if (plainer_value(shrink, line, &words, which)) {
			any = true;
			which--;
		}
	}
}

void shrink(struct shrink *shrink)
{
	bool again;

	do {
		again = fewer_lines(shrink);
		for (size_t line = 0; line < shrink->script.n; line++)
			again |= plainer_line(shrink, line);
	} while (again && shrink->budget);
	script_free(&shrink->trial);
}
