/* SPDX-License-Identifier: MIT */
/* What the machine is and has: kernel, processor, page sizes, memory, limits. */
#include "host.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a small file, without its newline. */
static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool found;

	if (!file)
		return false;
	found = fgets(line, (int)size, file);
	fclose(file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

/* The text after "KEY:" in a file of such lines. */
static bool read_field(const char *path, const char *key, char *value, size_t size)
{
	char line[512];
	FILE *file = fopen(path, "re");
	size_t n = strlen(key);
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, key, n) ||
			strspn(line + n, " \t") + n != (size_t)(colon - line))
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(value, size, "%s", colon);
		found = true;
	}
	fclose(file);
	return found;
}

static uint64_t read_number(const char *path)
{
	char line[64];

	return read_line(path, line, sizeof(line)) ? strtoull(line, NULL, 10) : 0;
}

static uint64_t meminfo(const char *key)
{
	char value[64];

	return read_field("/proc/meminfo", key, value, sizeof(value))
		       ? strtoull(value, NULL, 10) * 1024
		       : 0;
}

/* "always [madvise] never": what stands in the brackets. */
static void read_choice(const char *path, char *choice, size_t size)
{
	char line[128];
	char *open = NULL;

	choice[0] = '\0';
	if (read_line(path, line, sizeof(line)))
		open = strchr(line, '[');
	if (open)
		snprintf(choice, size, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
}

/* What the process's control groups (version 2) still allow, from its own up to the root. */
static uint64_t cgroup_left(void)
{
	uint64_t left = UINT64_MAX;
	char field[256];
	char *group = field + 1;

	/* "0::/PATH": the field is ":/PATH". */
	if (!read_field("/proc/self/cgroup", "0", field, sizeof(field)) || field[0] != ':')
		return left;
	for (;;) {
		char path[320];
		char line[64];
		char *slash;

		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
		if (read_line(path, line, sizeof(line)) && strcmp(line, "max")) {
			uint64_t limit = strtoull(line, NULL, 10);
			uint64_t used;

			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
			used = read_number(path);
			if ((limit > used ? limit - used : 0) < left)
				left = limit > used ? limit - used : 0;
		}
		slash = strrchr(group, '/');
		if (!slash)
			return left;
		*slash = '\0';
	}
}

static void read_cpu(struct host *host)
{
	char implementer[32];
	char part[32];

	if (read_field("/proc/cpuinfo", "model name", host->cpu, sizeof(host->cpu)))
		return;
	if (read_field("/proc/cpuinfo", "CPU implementer", implementer, sizeof(implementer)) &&
		read_field("/proc/cpuinfo", "CPU part", part, sizeof(part)))
		snprintf(host->cpu, sizeof(host->cpu), "implementer %s part %s", implementer, part);
	else
		snprintf(host->cpu, sizeof(host->cpu), "%s", host->machine);
}

static uint64_t read_memlock(void)
{
	struct rlimit limit;
	char capabilities[32];

	if (read_field("/proc/self/status", "CapEff", capabilities, sizeof(capabilities)) &&
		strtoull(capabilities, NULL, 16) >> CAP_IPC_LOCK & 1)
		return UINT64_MAX;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

void host_read(struct host *host)
{
	struct utsname name;
	uint64_t left = cgroup_left();

	memset(host, 0, sizeof(*host));
	if (!uname(&name)) {
		snprintf(host->name, sizeof(host->name), "%s", name.nodename);
		snprintf(host->kernel, sizeof(host->kernel), "%s %s", name.sysname, name.release);
		snprintf(host->machine, sizeof(host->machine), "%s", name.machine);
	}
	read_cpu(host);
	host->cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	host->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	host->memory = meminfo("MemTotal");
	host->available = meminfo("MemAvailable");
	if (left < host->available)
		host->available = left;
	host->thp_size = read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
	read_choice("/sys/kernel/mm/transparent_hugepage/enabled", host->thp, sizeof(host->thp));
	read_choice("/sys/kernel/mm/transparent_hugepage/shmem_enabled", host->thp_shmem,
		sizeof(host->thp_shmem));
	host->memlock = read_memlock();
}

uint64_t host_usable(const struct host *host)
{
	return host->available - host->available / 8;
}
