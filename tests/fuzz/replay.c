/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzzer's target over its kept corpus, without libFuzzer: every input
 * in the folders named is one case. The target ends the process where it finds
 * something.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *folder, const char *name)
{
	static uint8_t bytes[1 << 20];
	char path[4096];
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return -1;
	}
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	/* The name is the last thing printed if it ends here. */
	fprintf(stderr, "%s\n", name);
	return LLVMFuzzerTestOneInput(bytes, n);
}

int main(int argc, char **argv)
{
	unsigned count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		struct dirent *entry;

		if (!folder) {
			fprintf(stderr, "%s: cannot be read\n", argv[i]);
			return EXIT_FAILURE;
		}
		while ((entry = readdir(folder))) {
			if (entry->d_name[0] == '.')
				continue;
			if (replay(argv[i], entry->d_name))
				return EXIT_FAILURE;
			count++;
		}
		closedir(folder);
	}
	if (!count)
		fprintf(stderr, "there was no input\n");
	return count ? EXIT_SUCCESS : EXIT_FAILURE;
}
