/* SPDX-License-Identifier: MIT */
/*
 * Round trip of alloc and close of 64 KiB, one client, parked hits, against the
 * floor (see floor.h): both in one run, in turns, client and server on one CPU,
 * the daemon's workers on another if there is one.
 *
 *   bench_roundtrip [LOOP [ROUNDS]]     LOOP: auto, uring or epoll
 *
 * Exit status: 0 whatever the ratio; the lines say whether the target is met.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "floor.h"
#include "support/daemon.h"

#define LEN_BYTES 65536u
#define TURN      500u /* rounds before the other side's turn */
#define WARM_UP   2000u
#define GAP_NS    20000u /* between rounds: a client does something too */

static const char config[] = "[daemon]\n"
			     "latency = native\n"
			     "[node]\n"
			     "size = 1G\n"
			     "[backing]\n"
			     "mode = plain\n";

static void spin(uint64_t ns)
{
	uint64_t until_ns = bench_now_ns() + ns;

	while (bench_now_ns() < until_ns)
		;
}

static void run_floor(const struct floor_server *f, unsigned int n,
		      uint64_t gap_ns, struct samples *s)
{
	for (unsigned int i = 0; i < n; i++) {
		uint64_t start_ns = bench_now_ns();

		close(floor_alloc(f->sock));
		samples_add(s, bench_now_ns() - start_ns);
		if (gap_ns)
			spin(gap_ns);
	}
}

static void run_daemon(struct dmaheap *dh, unsigned int n, uint64_t gap_ns,
		       struct samples *s, unsigned int *n_parked)
{
	struct dmaheap_alloc_report report;
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES];

	for (unsigned int i = 0; i < n; i++) {
		uint64_t start_ns = bench_now_ns();
		int fd, r;

		r = dmaheap_alloc_ex(dh, NULL, LEN_BYTES, O_RDWR | O_CLOEXEC, 0,
				     1, &fd, &report, why, sizeof(why));
		if (r < 0) {
			fprintf(stderr, "alloc: %s: %s\n", strerror(-r), why);
			exit(EXIT_FAILURE);
		}
		close(fd);
		samples_add(s, bench_now_ns() - start_ns);
		*n_parked += report.source == DMAHEAP_SOURCE_PARKED;
		if (gap_ns)
			spin(gap_ns);
	}
}

static void compare(const struct floor_server *f, struct dmaheap *dh,
		    unsigned int n_rounds, uint64_t gap_ns, const char *name)
{
	struct samples by_hand, served, unused;
	unsigned int n_parked = 0;
	char what[64];

	samples_init(&by_hand, n_rounds);
	samples_init(&served, n_rounds);
	samples_init(&unused, 1);
	run_floor(f, WARM_UP, gap_ns, &unused);
	run_daemon(dh, WARM_UP, gap_ns, &unused, &n_parked);
	n_parked = 0;
	for (unsigned int i = 0; i < n_rounds; i += TURN) {
		run_floor(f, TURN, gap_ns, &by_hand);
		run_daemon(dh, TURN, gap_ns, &served, &n_parked);
	}
	(void)snprintf(what, sizeof(what), "%s p50", name);
	bench_ratio(what, (double)samples_quantile(&served, 500) / 1000.0,
		    (double)samples_quantile(&by_hand, 500) / 1000.0, "us",
		    true, 1.25);
	(void)snprintf(what, sizeof(what), "%s p99", name);
	bench_ratio(what, (double)samples_quantile(&served, 990) / 1000.0,
		    (double)samples_quantile(&by_hand, 990) / 1000.0, "us",
		    true, 1.6);
	printf("  parked hits %.1f %%\n", 100.0 * n_parked / n_rounds);
	samples_fini(&by_hand);
	samples_fini(&served);
	samples_fini(&unused);
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.config = config};
	unsigned int n_rounds = 20000;
	struct floor_server f;
	struct daemon daemon;
	struct dmaheap *dh;
	int r;

	if (argc > 1 && strcmp(argv[1], "auto") != 0)
		options.loop = argv[1];
	if (argc > 2)
		n_rounds = (unsigned int)strtoul(argv[2], NULL, 10);
	n_rounds = (n_rounds + TURN - 1) / TURN * TURN;
	if (!daemon_start(&daemon, &options)) {
		char *log = daemon_log_text(&daemon);

		fprintf(stderr, "dmaheapd did not start: %s\n", log);
		free(log);
		daemon_stop(&daemon);
		return EXIT_FAILURE;
	}
	bench_pin_process(daemon.pid, 0, bench_n_cpus() > 1 ? 1 : 0);
	floor_start(&f, LEN_BYTES, 0);
	if (!bench_pin(0, 0))
		bench_fail("pinning");
	r = dmaheap_connect(&dh, daemon.socket);
	if (r < 0) {
		fprintf(stderr, "connect: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	printf("alloc + close of 64 KiB; dmaheapd (%s) against the floor\n",
	       options.loop ? options.loop : "auto");
	compare(&f, dh, n_rounds, 0, "back to back");
	compare(&f, dh, n_rounds, GAP_NS, "20 us apart");
	dmaheap_close(dh);
	floor_stop(&f);
	return daemon_stop(&daemon) ? EXIT_SUCCESS : EXIT_FAILURE;
}
