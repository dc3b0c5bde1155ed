/* SPDX-License-Identifier: MIT */
/*
 * What dmaheap-run costs: single calls, sha1sum over many files, an allocation;
 * each beside the same program run bare, in turns, on one CPU.
 *
 *   bench_run [--quick]     --quick: without the gigabyte of files
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "support/daemon.h"

#define TURNS      7u
#define CALLS_MAX  32u
#define NAME_BYTES 32u

static const char config[] = "[daemon]\n"
			     "latency = native\n"
			     "[node]\n"
			     "size = 1G\n";

static struct daemon daemon_of_bench;

/* The smallest median of each call, over the turns. */
struct table {
	size_t n;
	char name[CALLS_MAX][NAME_BYTES];
	unsigned long long ns[CALLS_MAX];
};

static void note(struct table *t, const char *name, unsigned long long ns)
{
	size_t i = 0;

	while (i < t->n && strcmp(t->name[i], name))
		i++;
	if (i == t->n) {
		if (t->n == CALLS_MAX)
			bench_fail("too many calls");
		(void)snprintf(t->name[t->n], NAME_BYTES, "%s", name);
		t->ns[t->n++] = ns;
	} else if (ns < t->ns[i]) {
		t->ns[i] = ns;
	}
}

static void run_calls(struct table *t, const char *command)
{
	FILE *pipe = popen(command, "re");
	unsigned long long ns;
	char name[NAME_BYTES];

	if (!pipe)
		bench_fail("popen");
	while (fscanf(pipe, "%31s %llu", name, &ns) == 2)
		note(t, name, ns);
	if (pclose(pipe))
		bench_fail(command);
}

static unsigned long long value_of(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->name[i], name) == 0)
			return t->ns[i];
	bench_fail(name);
}

static void command_of(char *to, size_t capacity, const char *options,
		       const char *program)
{
	(void)snprintf(to, capacity, "%s --socket %s %s -- %s", RUN_PROGRAM,
		       daemon_of_bench.socket, options, program);
}

static bool single_calls(const char *options)
{
	struct table bare = {0}, under = {0};
	char command[512];
	bool good = true;

	command_of(command, sizeof(command), options, RUN_COST " calls");
	for (unsigned int i = 0; i < TURNS; i++) {
		run_calls(&bare, RUN_COST " calls");
		run_calls(&under, command);
	}
	printf("\n%-16s %10s %10s %12s   %s\n", "call", "bare ns", "run ns",
	       "more ns", options);
	for (size_t i = 0; i < bare.n; i++)
		printf("%-16s %10llu %10llu %12lld\n", bare.name[i], bare.ns[i],
		       under.ns[i], (long long)(under.ns[i] - bare.ns[i]));
	if (!options[0]) {
		unsigned long long more = value_of(&under, "open+close") -
					  value_of(&bare, "open+close");

		good = more <= 12000;
		printf("%s: an open costs %.1f us more (at most 12)\n",
		       good ? "met" : "MISSED", (double)more / 1000);
	}
	return good;
}

static bool allocation(void)
{
	struct table under = {0};
	struct samples s;
	struct dmaheap *dh;
	char command[512];

	if (dmaheap_connect(&dh, daemon_of_bench.socket))
		bench_fail("connect");
	command_of(command, sizeof(command), "", RUN_COST " alloc");
	samples_init(&s, TURNS * 1000);
	for (unsigned int i = 0; i < TURNS; i++) {
		for (unsigned int k = 0; k < 1000; k++) {
			uint64_t from = bench_now_ns();
			int fd = dmaheap_alloc(dh, NULL, 65536,
					       O_RDWR | O_CLOEXEC, 0);

			if (fd < 0)
				bench_fail("dmaheap_alloc");
			close(fd);
			samples_add(&s, bench_now_ns() - from);
		}
		run_calls(&under, command);
	}
	dmaheap_close(dh);
	puts("");
	return bench_ratio("alloc+close 64K: run / library",
			   (double)value_of(&under, "alloc") / 1000,
			   (double)samples_quantile(&s, 500) / 1000, "us", true,
			   6);
}

static void make_files(const char *dir, unsigned int n, size_t n_bytes)
{
	char *bytes = malloc(n_bytes), path[256];

	if (!bytes)
		bench_fail("memory");
	memset(bytes, 'x', n_bytes);
	for (unsigned int i = 0; i < n; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/%u", dir, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, bytes, n_bytes) != (ssize_t)n_bytes)
			bench_fail(path);
		close(fd);
	}
	free(bytes);
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static double seconds_of(const char *command)
{
	uint64_t from = bench_now_ns();

	if (system(command))
		bench_fail(command);
	return (double)(bench_now_ns() - from) / 1e9;
}

/* sha1sum over files that are in the page cache. */
static bool checksums(const char *what, unsigned int n, size_t n_bytes,
		      double target)
{
	char dir[] = "/tmp/dmaheap-bench-XXXXXX";
	char bare[512], program[256], under[512];
	double best_bare = 1e9, best_under = 1e9;

	if (!mkdtemp(dir))
		bench_fail("mkdtemp");
	make_files(dir, n, n_bytes);
	(void)snprintf(bare, sizeof(bare),
		       "cd %s && exec sha1sum $(seq 0 %u) >/dev/null", dir,
		       n - 1);
	(void)snprintf(program, sizeof(program),
		       "sha1sum $(seq 0 %u) >/dev/null", n - 1);
	(void)snprintf(under, sizeof(under), "cd %s && exec %s --socket %s %s",
		       dir, RUN_PROGRAM, daemon_of_bench.socket, program);
	for (unsigned int i = 0; i < TURNS; i++) {
		double a = seconds_of(bare), b = seconds_of(under);

		best_bare = a < best_bare ? a : best_bare;
		best_under = b < best_under ? b : best_under;
	}
	(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return bench_ratio(what, best_under, best_bare, "s", true, target);
}

int main(int argc, char **argv)
{
	bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0, good;

	if (!daemon_start(&daemon_of_bench,
			  &(struct daemon_options){.config = config})) {
		fprintf(stderr, "dmaheapd did not start\n");
		daemon_stop(&daemon_of_bench);
		return EXIT_FAILURE;
	}
	bench_pin_process(daemon_of_bench.pid, 0, bench_n_cpus() > 1 ? 1 : 0);
	if (!bench_pin(0, 0))
		bench_fail("pinning");
	good = single_calls("");
	(void)single_calls("--strict");
	good &= allocation();
	good &= checksums("sha1sum, 8000 x 14 KiB", 8000, 14 << 10, 1.40);
	if (!quick)
		good &= checksums("sha1sum, 1024 x 1 MiB", 1024, 1 << 20, 1.05);
	daemon_stop(&daemon_of_bench);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
