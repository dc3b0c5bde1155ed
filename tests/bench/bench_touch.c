/* SPDX-License-Identifier: MIT */
/*
 * First use of 10 MiB: allocate (a parked buffer), map and touch every page,
 * against memfd_create, ftruncate, map and touch by hand.
 *
 *   bench_touch [MODE...]     collapse plain folio; default: what may be here
 *
 * In turns, six in a row by hand and six served, as when a stream sets up its
 * buffers; the six served come as soon as those before are parked again. The
 * first of each row is left out of that figure. The first after a pause finds
 * every cache cold, on the daemon's side too, and has a line of its own; so has
 * the least that it could cost, a buffer of 2 MiB folios from a server made by
 * hand (see floor.h).
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
#include "floor.h"
#include "support/daemon.h"

#define LEN_BYTES  (10u << 20)
#define PAGE_BYTES 4096u
#define ROUNDS     40u
#define ROW        6u /* as many stay parked: [heap] pool.8.limit */
#define PAUSE_US   60000u
#define USER       65534u

struct in_use {
	void *map;
	int fd;
};

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

static uint64_t by_hand(struct in_use *ret)
{
	uint64_t start_ns = bench_now_ns();

	ret->fd = memfd_create("bench", MFD_CLOEXEC);
	if (ret->fd < 0 || ftruncate(ret->fd, LEN_BYTES) < 0)
		bench_fail("memfd");
	ret->map = mmap(NULL, LEN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			ret->fd, 0);
	if (ret->map == MAP_FAILED)
		bench_fail("mmap");
	touch(ret->map);
	return bench_now_ns() - start_ns;
}

static uint64_t from_floor(const struct floor_server *f, struct in_use *ret)
{
	uint64_t start_ns = bench_now_ns();

	ret->fd = floor_alloc(f->sock);
	ret->map = floor_map(ret->fd, LEN_BYTES, 0);
	touch(ret->map);
	return bench_now_ns() - start_ns;
}

static uint64_t served(struct dmaheap *dh, struct dmaheap_alloc_report *report,
		       struct in_use *ret)
{
	uint64_t start_ns = bench_now_ns();
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES];

	if (dmaheap_alloc_ex(dh, NULL, LEN_BYTES, O_RDWR | O_CLOEXEC, 0, 1,
			     &ret->fd, report, why, sizeof(why)) < 0) {
		fprintf(stderr, "alloc: %s\n", why);
		exit(EXIT_FAILURE);
	}
	ret->map = dmaheap_map(ret->fd, LEN_BYTES, PROT_READ | PROT_WRITE);
	if (ret->map == MAP_FAILED)
		bench_fail("dmaheap_map");
	touch(ret->map);
	return bench_now_ns() - start_ns;
}

static void give_back(struct in_use *u)
{
	munmap(u->map, LEN_BYTES);
	close(u->fd);
}

/* Of the first after a pause, and of those that followed. */
struct side {
	struct samples first;
	struct samples next;
};

static void side_init(struct side *s)
{
	samples_init(&s->first, ROUNDS);
	samples_init(&s->next, ROUNDS * ROW);
}

static void side_fini(struct side *s)
{
	samples_fini(&s->first);
	samples_fini(&s->next);
}

static void side_add(struct side *s, unsigned int i, uint64_t ns)
{
	samples_add(i == 0 ? &s->first : &s->next, ns);
}

struct sides {
	struct side hand, floor, heap;
	unsigned int n_missed;
};

static void row_by_hand(struct sides *s)
{
	struct in_use used;

	usleep(PAUSE_US);
	for (unsigned int i = 0; i < ROW; i++) {
		side_add(&s->hand, i, by_hand(&used));
		give_back(&used);
	}
}

/* It has one buffer and does not zero it. */
static void row_of_floor(struct sides *s, const struct floor_server *f)
{
	struct in_use used;

	usleep(PAUSE_US);
	for (unsigned int i = 0; i < ROW; i++) {
		side_add(&s->floor, i, from_floor(f, &used));
		give_back(&used);
	}
}

static void row_served(struct sides *s, struct dmaheap *dh,
		       struct dmaheap_alloc_report *report, bool paused)
{
	struct in_use used[ROW];

	for (unsigned int i = 0; i < ROW; i++) {
		uint64_t ns = served(dh, report, &used[i]);

		if (report->source != DMAHEAP_SOURCE_PARKED)
			s->n_missed++;
		else if (paused == (i == 0))
			side_add(&s->heap, i, ns);
	}
	for (unsigned int i = 0; i < ROW; i++)
		give_back(&used[i]);
}

/* Until the workers have zeroed what was given back. */
static void await_parked(struct dmaheap *dh)
{
	static struct dmaheap_stats stats;

	do {
		struct dmaheap_message ask = {.opcode = DMAHEAP_OP_STATS};

		usleep(1000);
		/* It writes them anew when it is asked for them. */
		if (dmaheap_call(dh, &ask) < 0 || dmaheap_stats(dh, &stats) < 0)
			bench_fail("stats");
	} while (stats.backing.parked_bytes < (uint64_t)ROW * LEN_BYTES);
}

static double p50_us(struct samples *s)
{
	return (double)samples_quantile(s, 500) / 1000.0;
}

static void report_first(const char *what, struct side *hand, struct side *side)
{
	printf("  the first after a pause, by hand / %-6s %10.2f %10.2f us     "
	       "ratio %6.3f\n",
	       what, p50_us(&hand->first), p50_us(&side->first),
	       p50_us(&hand->first) / p50_us(&side->first));
}

static void compare(const struct mode *mode, const char *socket,
		    const struct floor_server *f)
{
	struct dmaheap_alloc_report report = {0};
	struct sides s = {0};
	struct dmaheap *dh;
	char what[64];

	if (dmaheap_connect(&dh, socket) < 0)
		bench_fail("connect");
	side_init(&s.hand);
	side_init(&s.floor);
	side_init(&s.heap);
	row_served(&s, dh, &report, false); /* makes them */
	side_fini(&s.heap);
	side_init(&s.heap);
	s.n_missed = 0;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		row_by_hand(&s);
		row_of_floor(&s, f);
		usleep(PAUSE_US);
		row_served(&s, dh, &report, true);
		await_parked(dh);
		row_served(&s, dh, &report, false);
	}
	if (s.heap.next.n == 0 || s.heap.first.n == 0)
		bench_fail("no parked buffer");
	snprintf(what, sizeof(what), "%s p50, by hand / served", mode->name);
	bench_ratio(what, p50_us(&s.hand.next), p50_us(&s.heap.next), "us",
		    false, mode->target);
	report_first("served", &s.hand, &s.heap);
	report_first("floor", &s.hand, &s.floor);
	printf("  the second to the last of %u rows of %u; %u were not parked; "
	       "backing got %u%s%s\n",
	       ROUNDS, ROW, s.n_missed, report.backing_got,
	       report.backing_reason[0] ? ": " : "", report.backing_reason);
	side_fini(&s.hand);
	side_fini(&s.floor);
	side_fini(&s.heap);
	dmaheap_close(dh);
}

static void run(const struct mode *mode)
{
	uid_t uid = mode->as_user && geteuid() == 0 ? USER : 0;
	struct daemon_options options = {.config = mode->config, .uid = uid};
	struct floor_server f;
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
	floor_start(&f, LEN_BYTES, 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)bench_pin(0, 0);
		if (uid &&
		    (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		     setresuid(uid, uid, uid) < 0))
			bench_fail("setresuid");
		compare(mode, daemon.socket, &f);
		exit(EXIT_SUCCESS);
	}
	waitpid(pid, &status, 0);
	floor_stop(&f);
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
