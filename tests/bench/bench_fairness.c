/* SPDX-License-Identifier: MIT */
/*
 * Two uids: one floods the daemon over 8 connections, the other works over one.
 * What does the second get of what it had alone? Median of 5 turns.
 */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
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

#define QUIET_UID 54331u
#define FLOOD_UID 54332u
#define N_FLOOD   8
#define TURNS     5
#define WINDOW_NS 2000000000u
#define TARGET    (1.0 / 3)

struct board {
	uint64_t n_quiet; /* round trips of the window */
	volatile bool stop;
};

static struct board *board;

static void become(uid_t uid)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		bench_fail("setresuid");
}

static struct dmaheap *connect_to(const char *socket)
{
	struct dmaheap *dh;

	if (dmaheap_connect(&dh, socket))
		bench_fail("connect");
	return dh;
}

static void round_trip(struct dmaheap *dh)
{
	int fd = dmaheap_alloc(dh, NULL, 65536, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		bench_fail("alloc");
	close(fd);
}

static void flood(const char *socket)
{
	struct dmaheap *dh;

	become(FLOOD_UID);
	dh = connect_to(socket);
	while (!board->stop)
		round_trip(dh);
	_exit(0);
}

static void work_quietly(const char *socket)
{
	struct dmaheap *dh;
	uint64_t end, n = 0;

	become(QUIET_UID);
	dh = connect_to(socket);
	for (end = bench_now_ns() + WINDOW_NS; bench_now_ns() < end; n++)
		round_trip(dh);
	board->n_quiet = n;
	_exit(0);
}

static void wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		bench_fail("a client");
}

/* Return: the quiet one's round trips per second. */
static double run(const char *socket, unsigned int n_flood)
{
	pid_t floods[N_FLOOD], quiet;

	board->stop = false;
	for (unsigned int i = 0; i < n_flood; i++) {
		floods[i] = fork();
		if (floods[i] == 0)
			flood(socket);
	}
	quiet = fork();
	if (quiet == 0)
		work_quietly(socket);
	wait_for(quiet);
	board->stop = true;
	for (unsigned int i = 0; i < n_flood; i++)
		wait_for(floods[i]);
	return (double)board->n_quiet * 1e9 / WINDOW_NS;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	struct daemon_options options =
		{.config = "[daemon]\nsocket_mode = 0666\n",
		 .loop = argc > 1 ? argv[1] : NULL};
	double ratios[TURNS], alone = 0, contended = 0;
	struct daemon daemon = {0};

	if (geteuid() != 0) {
		printf("skipped: needs root to become two users\n");
		return 77;
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED || !daemon_start(&daemon, &options))
		bench_fail("dmaheapd");
	for (int i = 0; i < TURNS; i++) {
		double a = run(daemon.socket, 0);
		double c = run(daemon.socket, N_FLOOD);

		ratios[i] = c / a;
		alone += a / TURNS;
		contended += c / TURNS;
	}
	qsort(ratios, TURNS, sizeof(ratios[0]), compare);
	printf("alone %.0f/s, beside a flood %.0f/s (means)\n", alone,
	       contended);
	bench_ratio("beside 8 flooding connections, median", ratios[TURNS / 2],
		    1.0, "x", false, TARGET);
	return daemon_stop(&daemon) ? EXIT_SUCCESS : EXIT_FAILURE;
}
