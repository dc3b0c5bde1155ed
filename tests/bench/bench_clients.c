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
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "floor.h"
#include "support/daemon.h"

#define LEN_BYTES    65536u
#define FEW_CLIENTS  4u
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

/* Whom a client asks. */
struct side {
	const char *name;
	const char *path; /* the daemon's socket; NULL: the floor */
	uint64_t n[2];    /* requests, of few and of many clients */
	struct samples latency[2];
};

static int ask(struct dmaheap *dh, int floor_sock)
{
	if (!dh)
		return floor_alloc(floor_sock);
	return dmaheap_alloc(dh, NULL, LEN_BYTES, O_RDWR | O_CLOEXEC, 0);
}

static _Noreturn void be_client(const char *path, int floor_sock,
				unsigned int me)
{
	struct dmaheap *dh = NULL;
	uint64_t now_ns, last_ns, end_ns;
	int r = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (path)
		r = dmaheap_connect(&dh, path);
	board->n_ready++;
	while (board->start_ns == 0)
		usleep(1000);
	end_ns = board->start_ns + WINDOW_NS;
	for (now_ns = bench_now_ns(); r >= 0 && now_ns < end_ns;) {
		last_ns = now_ns;
		r = ask(dh, floor_sock);
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

static void collect(struct side *side, bool many, unsigned int n_clients)
{
	for (unsigned int i = 0; i < n_clients; i++) {
		side->n[many] += board->client[i].n;
		for (uint64_t k = 0; k < board->client[i].n && k < SAMPLES_EACH;
		     k++)
			samples_add(&side->latency[many],
				    board->client[i].ns[k]);
	}
}

static void run(struct side *side, bool many)
{
	unsigned int n_clients = many ? MAX_CLIENTS : FEW_CLIENTS;
	struct floor_crowd crowd;
	int status;

	memset(board, 0, sizeof(*board));
	if (!side->path)
		floor_crowd_start(&crowd, n_clients, LEN_BYTES);
	for (unsigned int i = 0; i < n_clients; i++) {
		pid_t pid = fork();

		if (pid < 0)
			bench_fail("fork");
		if (pid == 0)
			be_client(side->path, side->path ? -1 : crowd.sock[i],
				  i);
	}
	while (board->n_ready < n_clients)
		usleep(1000);
	board->start_ns = bench_now_ns();
	for (unsigned int i = 0; i < n_clients; i++)
		if (wait(&status) < 0 || status != 0)
			exit(EXIT_FAILURE);
	if (!side->path)
		floor_crowd_stop(&crowd);
	collect(side, many, n_clients);
}

static void report(struct side *side)
{
	char what[64];

	(void)snprintf(what, sizeof(what), "%s, 64 clients to 4, requests",
		       side->name);
	bench_ratio(what,
		    (double)side->n[1] * 1e6 / ((double)TURNS * WINDOW_NS),
		    (double)side->n[0] * 1e6 / ((double)TURNS * WINDOW_NS),
		    "k/s", false, 1.0);
	(void)snprintf(what, sizeof(what), "%s, 64 clients, p99 to p50",
		       side->name);
	bench_ratio(what,
		    (double)samples_quantile(&side->latency[1], 990) / 1000.0,
		    (double)samples_quantile(&side->latency[1], 500) / 1000.0,
		    "us", true, 10.0);
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.config = config,
					 .loop = argc > 1 ? argv[1] : NULL};
	struct daemon daemon;
	struct side sides[] = {{.name = "floor"}, {.name = "dmaheapd"}};

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		bench_fail("mmap");
	if (!daemon_start(&daemon, &options)) {
		fprintf(stderr, "dmaheapd did not start\n");
		daemon_stop(&daemon);
		return EXIT_FAILURE;
	}
	sides[1].path = daemon.socket;
	for (unsigned int i = 0; i < 4; i++)
		samples_init(&sides[i / 2].latency[i % 2],
			     (size_t)TURNS * MAX_CLIENTS * SAMPLES_EACH);
	for (unsigned int i = 0; i < TURNS * 4; i++)
		run(&sides[i % 2], i / 2 % 2);
	for (unsigned int i = 0; i < 2; i++)
		report(&sides[i]);
	for (unsigned int i = 0; i < 4; i++)
		samples_fini(&sides[i / 2].latency[i % 2]);
	return daemon_stop(&daemon) ? EXIT_SUCCESS : EXIT_FAILURE;
}
