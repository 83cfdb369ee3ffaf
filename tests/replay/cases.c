/* SPDX-License-Identifier: MIT */
/* A case read, printed and read again. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay/case.h"

char *cases_print(const char *text, size_t length, char *said)
{
	struct case_file *file = case_create("test");
	struct complaint complaint = {""};
	char *printed = NULL;
	size_t size = 0;
	FILE *out;

	if (!file || case_append(file, text, length, &complaint) || case_finish(file, &complaint))
		goto out;
	out = open_memstream(&printed, &size);
	for (size_t i = 0; i < file->n_statements; i++) {
		size_t n = case_print(file, &file->statements[i], NULL, 0) + 1;
		char *line = malloc(n);

		case_print(file, &file->statements[i], line, n);
		fprintf(out, "%s\n", line);
		free(line);
	}
	fclose(out);
out:
	strcpy(said, complaint.text);
	case_destroy(file);
	return printed;
}

bool cases_round_trip(const char *text, size_t length, bool *good)
{
	char said[sizeof(struct complaint)], *first = cases_print(text, length, said);
	char *second = NULL;
	bool same = true;

	*good = first != NULL;
	if (first) {
		second = cases_print(first, strlen(first), said);
		same = second && !strcmp(first, second);
		if (!same)
			fprintf(stderr, "--- printed:\n%s--- again:\n%s%s\n", first,
				second ? second : "", said);
	} else {
		/* A complaint is one line that says where. */
		same = !strncmp(said, "test:", 5) && !strchr(said, '\n') && strlen(said) > 10;
		if (!same)
			fprintf(stderr, "--- complaint: %s\n", said);
	}
	free(first);
	free(second);
	return same;
}
