/* SPDX-License-Identifier: MIT */
/*
 * A small request while large ones are made: p99 of allocating and closing
 * 4 KiB, alone and while another client has 64 buffers of 32 MiB populated.
 *
 *   bench_bulk [LOOP]
 *
 * Client and loop share CPU 0. The workers run on the other CPU, then on the
 * same one, which is the hard case.
 *
 * Exit status: 0 whatever the ratio; the lines say whether the target is met.
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

#define SMALL_BYTES 4096u
#define LARGE_BYTES (32u << 20)
#define N_LARGE     64u
#define WARM_UP     2000u
#define SAMPLES     200000u
#define IDLE_ROUNDS 20000u
#define BUSY_NS     4000000000u

/* plain is the most work per byte. */
static const char config[] = "[daemon]\nlatency = native\n"
			     "[node]\nsize = 6G\n"
			     "[backing]\nmode = plain\n"
			     "[heap system]\npool.8.limit = 0\n"
			     "[quota]\nbytes = 100%\n";

struct board {
	atomic_bool populating;
	atomic_uint n_done;
};

static struct board *board;

/* Has 64 large buffers made, gives them back, again and again. */
static _Noreturn void be_bulk_client(const char *socket)
{
	struct dmaheap *dh;
	int fds[N_LARGE];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dmaheap_connect(&dh, socket) < 0)
		bench_fail("connect");
	for (;;) {
		int r;

		board->populating = true;
		r = dmaheap_alloc_many(dh, NULL, LARGE_BYTES,
				       O_RDWR | O_CLOEXEC, 0, N_LARGE, fds);
		board->populating = false;
		if (r < 0) {
			fprintf(stderr, "bulk: %s\n", strerror(-r));
			_exit(1);
		}
		board->n_done++;
		for (unsigned int i = 0; i < N_LARGE; i++)
			close(fds[i]);
		usleep(200000); /* dropped meanwhile */
	}
}

static uint64_t once(struct dmaheap *dh)
{
	uint64_t start_ns = bench_now_ns();
	int fd = dmaheap_alloc(dh, NULL, SMALL_BYTES, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0) {
		fprintf(stderr, "alloc: %s\n", strerror(-fd));
		exit(EXIT_FAILURE);
	}
	close(fd);
	return bench_now_ns() - start_ns;
}

static void measure(const char *name, const struct daemon *daemon)
{
	struct samples idle, busy;
	uint64_t end_ns, ns;
	struct dmaheap *dh;
	char what[64];
	pid_t pid;

	if (dmaheap_connect(&dh, daemon->socket) < 0)
		bench_fail("connect");
	samples_init(&idle, SAMPLES);
	samples_init(&busy, SAMPLES);
	for (unsigned int i = 0; i < WARM_UP; i++)
		(void)once(dh);
	for (unsigned int i = 0; i < IDLE_ROUNDS; i++)
		samples_add(&idle, once(dh));
	board->n_done = 0;
	pid = fork();
	if (pid == 0)
		be_bulk_client(daemon->socket);
	end_ns = bench_now_ns() + BUSY_NS;
	while (bench_now_ns() < end_ns) {
		bool before = board->populating;

		ns = once(dh);
		if (before && board->populating)
			samples_add(&busy, ns);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (busy.n < 100)
		bench_fail("too few requests while populating");
	snprintf(what, sizeof(what), "%s p99 populating / idle", name);
	bench_ratio(what, (double)samples_quantile(&busy, 990) / 1000.0,
		    (double)samples_quantile(&idle, 990) / 1000.0, "us", true,
		    5);
	printf("  p50 %.1f us, idle %.1f us; %zu requests, %u times %u "
	       "buffers\n",
	       (double)samples_quantile(&busy, 500) / 1000.0,
	       (double)samples_quantile(&idle, 500) / 1000.0, busy.n,
	       board->n_done, N_LARGE);
	samples_fini(&idle);
	samples_fini(&busy);
	dmaheap_close(dh);
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.config = config};
	struct daemon daemon;

	if (argc > 1)
		options.loop = argv[1];
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		bench_fail("mmap");
	for (unsigned int others = bench_n_cpus() > 1 ? 2 : 1; others-- > 0;) {
		if (!daemon_start(&daemon, &options))
			bench_fail("the daemon did not start");
		bench_pin_process(daemon.pid, 0, others);
		(void)bench_pin(0, 0);
		measure(others ? "workers on another CPU"
			       : "workers on the same CPU",
			&daemon);
		daemon_stop(&daemon);
	}
	return EXIT_SUCCESS;
}
