/* SPDX-License-Identifier: MIT */
/*
 * Sixteen buffers of 64 KiB in one request against sixteen requests: buffers a
 * second, in turns, client and daemon on one CPU.
 *
 *   bench_batch [LOOP]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "support/daemon.h"

#define LEN_BYTES 65536u
#define BATCH     16u
#define TURNS     40u
#define ROUNDS    50u /* of sixteen buffers, in a turn */

static const char config[] = "[daemon]\n"
			     "latency = native\n"
			     "[node]\n"
			     "size = 1G\n"
			     "[backing]\n"
			     "mode = plain\n";

static void check(int r)
{
	if (r < 0) {
		fprintf(stderr, "alloc: %s\n", strerror(-r));
		exit(EXIT_FAILURE);
	}
}

static uint64_t run(struct dmaheap *dh, bool batched)
{
	uint64_t start_ns = bench_now_ns();
	int fds[BATCH];

	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (batched)
			check(dmaheap_alloc_many(dh, NULL, LEN_BYTES,
						 O_RDWR | O_CLOEXEC, 0, BATCH,
						 fds));
		for (unsigned int k = 0; k < BATCH && !batched; k++)
			check(fds[k] = dmaheap_alloc(dh, NULL, LEN_BYTES,
						     O_RDWR | O_CLOEXEC, 0));
		for (unsigned int k = 0; k < BATCH; k++)
			close(fds[k]);
	}
	return bench_now_ns() - start_ns;
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.config = config,
					 .loop = argc > 1 ? argv[1] : NULL};
	double n = (double)TURNS * ROUNDS * BATCH;
	uint64_t batched_ns = 0, single_ns = 0;
	struct daemon daemon;
	struct dmaheap *dh;

	if (!daemon_start(&daemon, &options)) {
		fprintf(stderr, "dmaheapd did not start\n");
		daemon_stop(&daemon);
		return EXIT_FAILURE;
	}
	bench_pin_process(daemon.pid, 0, bench_n_cpus() > 1 ? 1 : 0);
	if (!bench_pin(0, 0))
		bench_fail("pinning");
	check(dmaheap_connect(&dh, daemon.socket));
	(void)run(dh, true);
	(void)run(dh, false);
	for (unsigned int i = 0; i < TURNS; i++) {
		batched_ns += run(dh, true);
		single_ns += run(dh, false);
	}
	bench_ratio("16 in one request", n * 1e6 / (double)batched_ns,
		    n * 1e6 / (double)single_ns, "k/s", false, 2.2);
	dmaheap_close(dh);
	return daemon_stop(&daemon) ? EXIT_SUCCESS : EXIT_FAILURE;
}
