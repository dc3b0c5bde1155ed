/* SPDX-License-Identifier: MIT */
/*
 * 64 clients at once against 4: requests a second, and the spread of latency.
 * Each client is a process that allocates 64 KiB and closes it, again and
 * again.
 *
 *   bench_clients [LOOP]
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "support/daemon.h"

#define LEN_BYTES    65536u
#define MAX_CLIENTS  64u
#define SAMPLES_EACH 20000u
#define WINDOW_NS    1500000000u
#define TURNS        3u

static const char config[] = "[daemon]\n"
			     "latency = native\n"
			     "[node]\n"
			     "size = 1G\n"
			     "[backing]\n"
			     "mode = plain\n"
			     "[quota]\n"
			     "connections = 200\n";

/* Shared with the clients. */
struct board {
	_Atomic unsigned int n_ready;
	_Atomic uint64_t start_ns; /* 0: not yet */
	struct {
		uint64_t n;
		uint32_t ns[SAMPLES_EACH];
	} client[MAX_CLIENTS];
};

static struct board *board;

static _Noreturn void be_client(const char *path, unsigned int me)
{
	struct dmaheap *dh;
	uint64_t now_ns, last_ns, end_ns;
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = dmaheap_connect(&dh, path);
	board->n_ready++;
	while (board->start_ns == 0)
		usleep(1000);
	end_ns = board->start_ns + WINDOW_NS;
	for (now_ns = bench_now_ns(); r >= 0 && now_ns < end_ns;) {
		last_ns = now_ns;
		r = dmaheap_alloc(dh, NULL, LEN_BYTES, O_RDWR | O_CLOEXEC, 0);
		if (r >= 0)
			close(r);
		now_ns = bench_now_ns();
		if (board->client[me].n < SAMPLES_EACH)
			board->client[me].ns[board->client[me].n] =
				(uint32_t)(now_ns - last_ns);
		board->client[me].n++;
	}
	if (r < 0)
		fprintf(stderr, "client %u: %s\n", me, strerror(-r));
	_exit(r < 0);
}

static uint64_t run(const char *path, unsigned int n_clients,
		    struct samples *latency)
{
	uint64_t n = 0;

	memset(board, 0, sizeof(*board));
	for (unsigned int i = 0; i < n_clients; i++) {
		pid_t pid = fork();

		if (pid < 0)
			bench_fail("fork");
		if (pid == 0)
			be_client(path, i);
	}
	while (board->n_ready < n_clients)
		usleep(1000);
	board->start_ns = bench_now_ns();
	for (unsigned int i = 0; i < n_clients; i++) {
		int status;

		if (wait(&status) < 0 || status != 0)
			exit(EXIT_FAILURE);
	}
	for (unsigned int i = 0; i < n_clients; i++) {
		n += board->client[i].n;
		for (uint64_t k = 0; k < board->client[i].n && k < SAMPLES_EACH;
		     k++)
			samples_add(latency, board->client[i].ns[k]);
	}
	return n;
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.config = config,
					 .loop = argc > 1 ? argv[1] : NULL};
	struct samples few, many;
	uint64_t n_few = 0, n_many = 0;
	struct daemon daemon;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		bench_fail("mmap");
	samples_init(&few, (size_t)TURNS * 4 * SAMPLES_EACH);
	samples_init(&many, (size_t)TURNS * MAX_CLIENTS * SAMPLES_EACH);
	if (!daemon_start(&daemon, &options)) {
		fprintf(stderr, "dmaheapd did not start\n");
		daemon_stop(&daemon);
		return EXIT_FAILURE;
	}
	for (unsigned int i = 0; i < TURNS; i++) {
		n_few += run(daemon.socket, 4, &few);
		n_many += run(daemon.socket, MAX_CLIENTS, &many);
	}
	bench_ratio("64 clients to 4, requests",
		    (double)n_many * 1e6 / ((double)TURNS * WINDOW_NS),
		    (double)n_few * 1e6 / ((double)TURNS * WINDOW_NS), "k/s",
		    false, 1.0);
	bench_ratio("64 clients, p99 to p50",
		    (double)samples_quantile(&many, 990) / 1000.0,
		    (double)samples_quantile(&many, 500) / 1000.0, "us", true,
		    10.0);
	samples_fini(&few);
	samples_fini(&many);
	return daemon_stop(&daemon) ? EXIT_SUCCESS : EXIT_FAILURE;
}
