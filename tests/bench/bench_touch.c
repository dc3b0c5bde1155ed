/* SPDX-License-Identifier: MIT */
/*
 * First use of 10 MiB: allocate (a parked buffer), map and touch every page,
 * against memfd_create, ftruncate, map and touch by hand, in turns.
 *
 *   bench_touch [MODE...]     collapse plain folio; default: what may be here
 *
 * collapse and plain run as an ordinary user, folio as root with manage_thp.
 * Rounds whose buffer was not parked yet are left out and counted.
 *
 * Exit status: 0 whatever the ratio; the lines say whether the target is met.
 */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "support/daemon.h"

#define LEN_BYTES  (10u << 20)
#define PAGE_BYTES 4096u
#define ROUNDS     60u
#define PAUSE_US   20000u /* for the workers to zero it */
#define USER       65534u

static const struct mode {
	const char *name;
	const char *config;
	bool as_user;
	double target;
} modes[] = {
	{"collapse",
	 "[daemon]\nlatency = native\n[node]\nsize = 1G\n"
	 "[backing]\nmode = collapse\n",
	 true, 60},
	{"plain",
	 "[daemon]\nlatency = native\n[node]\nsize = 1G\n"
	 "[backing]\nmode = plain\n",
	 true, 7},
	{"folio",
	 "[daemon]\nlatency = native\n[node]\nsize = 1G\n"
	 "[backing]\nmode = folio\nmanage_thp = yes\n",
	 false, 40},
};

static void touch(volatile char *p)
{
	for (size_t i = 0; i < LEN_BYTES; i += PAGE_BYTES)
		p[i] = 1;
}

static uint64_t by_hand(void)
{
	uint64_t start_ns = bench_now_ns(), ns;
	int fd = memfd_create("bench", MFD_CLOEXEC);
	char *p;

	if (fd < 0 || ftruncate(fd, LEN_BYTES) < 0)
		bench_fail("memfd");
	p = mmap(NULL, LEN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		bench_fail("mmap");
	touch(p);
	ns = bench_now_ns() - start_ns;
	munmap(p, LEN_BYTES);
	close(fd);
	return ns;
}

static uint64_t served(struct dmaheap *dh, struct dmaheap_alloc_report *report)
{
	uint64_t start_ns = bench_now_ns(), ns;
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	char *p;
	int fd;

	if (dmaheap_alloc_ex(dh, NULL, LEN_BYTES, O_RDWR | O_CLOEXEC, 0, 1, &fd,
			     report, why, sizeof(why)) < 0) {
		fprintf(stderr, "alloc: %s\n", why);
		exit(EXIT_FAILURE);
	}
	p = dmaheap_map(fd, LEN_BYTES, PROT_READ | PROT_WRITE);
	if (p == MAP_FAILED)
		bench_fail("dmaheap_map");
	touch(p);
	ns = bench_now_ns() - start_ns;
	munmap(p, LEN_BYTES);
	close(fd);
	return ns;
}

static void compare(const struct mode *mode, const char *socket)
{
	struct dmaheap_alloc_report report = {0};
	struct samples hand, heap;
	struct dmaheap *dh;
	unsigned int n_missed = 0;
	char what[64];

	if (dmaheap_connect(&dh, socket) < 0)
		bench_fail("connect");
	samples_init(&hand, ROUNDS);
	samples_init(&heap, ROUNDS);
	(void)served(dh, &report);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		uint64_t ns;

		usleep(PAUSE_US);
		samples_add(&hand, by_hand());
		ns = served(dh, &report);
		if (report.source == DMAHEAP_SOURCE_PARKED)
			samples_add(&heap, ns);
		else
			n_missed++;
	}
	if (heap.n == 0)
		bench_fail("no parked buffer");
	snprintf(what, sizeof(what), "%s p50, by hand / served", mode->name);
	bench_ratio(what, (double)samples_quantile(&hand, 500) / 1000.0,
		    (double)samples_quantile(&heap, 500) / 1000.0, "us", false,
		    mode->target);
	printf("  %u rounds, %u not parked; backing got %u%s%s\n", ROUNDS,
	       n_missed, report.backing_got,
	       report.backing_reason[0] ? ": " : "", report.backing_reason);
	samples_fini(&hand);
	samples_fini(&heap);
	dmaheap_close(dh);
}

static void run(const struct mode *mode)
{
	uid_t uid = mode->as_user && geteuid() == 0 ? USER : 0;
	struct daemon_options options = {.config = mode->config, .uid = uid};
	struct daemon daemon;
	int status = -1;
	pid_t pid;

	if (!mode->as_user && geteuid() != 0) {
		printf("%s: needs root\n", mode->name);
		return;
	}
	if (!daemon_start(&daemon, &options)) {
		char *log = daemon_log_text(&daemon);

		fprintf(stderr, "%s", log);
		free(log);
		exit(EXIT_FAILURE);
	}
	bench_pin_process(daemon.pid, 0, bench_n_cpus() > 1 ? 1 : 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)bench_pin(0, 0);
		if (uid &&
		    (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		     setresuid(uid, uid, uid) < 0))
			bench_fail("setresuid");
		compare(mode, daemon.socket);
		exit(EXIT_SUCCESS);
	}
	waitpid(pid, &status, 0);
	daemon_stop(&daemon);
	if (status)
		exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		bool wanted = argc < 2;

		for (int a = 1; a < argc; a++)
			wanted |= strcmp(argv[a], modes[i].name) == 0;
		if (wanted)
			run(&modes[i]);
	}
	return EXIT_SUCCESS;
}
