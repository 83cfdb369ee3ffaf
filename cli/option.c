/* SPDX-License-Identifier: MIT */
/* Values of options; see option.h. */
#include "option.h"

#include <errno.h>
#include <string.h>

#include "units.h"

const char *option_name(const struct option *options, int opt)
{
	for (; options->name; options++)
		if (options->val == opt)
			return options->name;
	return "";
}

int option_number(const struct option *options, int opt, uint64_t least, uint64_t most,
	uint64_t *number, struct complaint *complaint)
{
	int error = units_parse_number(optarg, number);

	if (error == -EINVAL)
		return complain(complaint, "--%s %s: that is no number; give one such as %llu",
			option_name(options, opt), optarg,
			least > 1 ? (unsigned long long)least : 1);
	if (error || *number < least || *number > most)
		return complain(complaint, "--%s %s: out of range; give %llu to %llu",
			option_name(options, opt), optarg, (unsigned long long)least,
			(unsigned long long)most);
	return 0;
}

int option_count(const struct option *options, int opt, unsigned least, unsigned most,
	unsigned *count, struct complaint *complaint)
{
	uint64_t number;

	if (option_number(options, opt, least, most, &number, complaint))
		return -1;
	*count = (unsigned)number;
	return 0;
}

int option_choice(const struct option *options, int opt, const char *const *choices, unsigned n,
	unsigned *choice, struct complaint *complaint)
{
	char list[64] = "";

	for (*choice = 0; *choice < n; (*choice)++) {
		if (!strcmp(optarg, choices[*choice]))
			return 0;
		if (*choice)
			strcat(list, *choice + 1 < n ? ", " : " or ");
		strcat(list, choices[*choice]);
	}
	return complain(complaint, "--%s %s: no such choice; give %s", option_name(options, opt),
		optarg, list);
}

int option_unknown(char **argv, int opt, const char *command, struct complaint *complaint)
{
	char letter[3] = {'-', (char)optopt, '\0'};
	/* getopt names a short option in optopt; a long one is the argument it just passed. */
	const char *name = optopt && optopt < 256 ? letter : argv[optind - 1];

	return complain(complaint,
		opt == ':' ? "%s needs a value; see dmamap %s --help"
			   : "%s: there is no such option; see dmamap %s --help",
		name, command);
}
