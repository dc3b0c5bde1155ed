/* SPDX-License-Identifier: MIT */
/*
 * 15 000 live buffers at once, held by processes that are then killed: how long
 * until all are released, and what each costs the daemon meanwhile.
 *
 *   bench_held [LOOP [BUFFERS]]
 *
 * Exit status: 0 if all were held and released, whatever the figures.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "support/daemon.h"

#define N_HOLDERS 10u
#define FD_LIMIT  20000u
#define BATCH     60u
#define WAIT_NS   30000000000u

static const char config[] = "[daemon]\nlatency = native\n"
			     "[node]\nsize = 1G\n"
			     "[backing]\nmode = plain\nrecycle = never\n"
			     "[quota]\nbuffers = 20000\nbytes = 100%\n";

static struct dmaheap_stats stats;

static uint64_t n_live(struct dmaheap *dh)
{
	uint64_t n = 0;

	if (dmaheap_stats(dh, &stats) < 0)
		bench_fail("stats");
	for (uint32_t i = 0; i < stats.n_heaps; i++)
		n += stats.heap[i].buffers;
	return n;
}

/* Private memory of a process, without the buffers, which it does not map. */
static uint64_t own_bytes(pid_t pid)
{
	unsigned long kb = 0, sum = 0;
	char line[128];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Private_Dirty: %lu", &kb) == 1)
			sum += kb;
	if (f)
		fclose(f);
	return (uint64_t)sum * 1024;
}

static _Noreturn void hold(const char *socket, unsigned int n)
{
	static int fds[FD_LIMIT];
	struct dmaheap *dh;
	unsigned int k = 0;
	int r = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dmaheap_connect(&dh, socket) < 0)
		_exit(1);
	while (k < n && r >= 0) {
		unsigned int m = n - k < BATCH ? n - k : BATCH;

		r = dmaheap_alloc_many(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0, m,
				       fds + k);
		k += r < 0 ? 0 : m;
	}
	if (r < 0)
		fprintf(stderr, "holder: %u held, then %s\n", k, strerror(-r));
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.config = config, .nofile = FD_LIMIT};
	unsigned int n_buffers = argc > 2 ? (unsigned int)atoi(argv[2]) : 15000;
	uint64_t before, start_ns, held_ns, gone_ns, each;
	pid_t pids[N_HOLDERS];
	struct daemon daemon;
	struct dmaheap *dh;

	if (argc > 1)
		options.loop = argv[1];
	if (!daemon_start(&daemon, &options))
		bench_fail("the daemon did not start");
	if (dmaheap_connect(&dh, daemon.socket) < 0)
		bench_fail("connect");
	before = own_bytes(daemon.pid);
	start_ns = bench_now_ns();
	for (unsigned int i = 0; i < N_HOLDERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			hold(daemon.socket, n_buffers / N_HOLDERS);
	}
	while (n_live(dh) < n_buffers) {
		if (bench_now_ns() - start_ns > WAIT_NS)
			bench_fail("not all buffers came");
		usleep(1000);
	}
	held_ns = bench_now_ns() - start_ns;
	each = (own_bytes(daemon.pid) - before) / n_buffers;
	start_ns = bench_now_ns();
	for (unsigned int i = 0; i < N_HOLDERS; i++)
		kill(pids[i], SIGKILL);
	for (unsigned int i = 0; i < N_HOLDERS; i++)
		waitpid(pids[i], NULL, 0);
	gone_ns = bench_now_ns();
	while (n_live(dh) > 0) {
		if (bench_now_ns() - start_ns > WAIT_NS)
			bench_fail("not all buffers were released");
		usleep(1000);
	}
	printf("%u buffers held after %.0f ms by %u processes\n", n_buffers,
	       (double)held_ns / 1e6, N_HOLDERS);
	bench_ratio("released after the holders' death, s",
		    (double)(bench_now_ns() - gone_ns) / 1e9, 1, "s", true, 2);
	bench_ratio("daemon's own memory, bytes per buffer", (double)each, 1,
		    "B", true, 600);
	printf("  late releases %llu\n",
	       (unsigned long long)stats.backing.late_releases);
	dmaheap_close(dh);
	return daemon_stop(&daemon) ? EXIT_SUCCESS : EXIT_FAILURE;
}
