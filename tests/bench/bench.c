/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void bench_fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

void samples_init(struct samples *s, size_t capacity)
{
	s->ns = calloc(capacity, sizeof(*s->ns));
	if (!s->ns)
		bench_fail("calloc");
	s->n = 0;
	s->capacity = capacity;
}

void samples_fini(struct samples *s)
{
	free(s->ns);
	*s = (struct samples){0};
}

void samples_add(struct samples *s, uint64_t ns)
{
	if (s->n < s->capacity)
		s->ns[s->n++] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t samples_quantile(struct samples *s, unsigned int permille)
{
	size_t i = (s->n * permille + 999) / 1000;

	if (s->n == 0)
		return 0;
	qsort(s->ns, s->n, sizeof(*s->ns), compare);
	return s->ns[i == 0 ? 0 : i - 1];
}

uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool bench_pin(pid_t tid, unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof(set), &set) == 0;
}

void bench_pin_process(pid_t pid, unsigned int cpu, unsigned int others)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		bench_fail(path);
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid > 0)
			(void)bench_pin(tid, tid == pid ? cpu : others);
	}
	closedir(dir);
}

unsigned int bench_n_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned int)CPU_COUNT(&set);
}

bool bench_ratio(const char *what, double a, double b, const char *unit,
		 bool at_most, double target)
{
	double ratio = a / b;
	bool met = at_most ? ratio <= target : ratio >= target;

	printf("%-34s %10.2f %10.2f %-6s ratio %6.3f  target %s %.2f  %s\n",
	       what, a, b, unit, ratio, at_most ? "<=" : ">=", target,
	       met ? "met" : "MISSED");
	return met;
}
