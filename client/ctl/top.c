/* SPDX-License-Identifier: MIT */
#include <curses.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/names.h"
#include "ctl/sample.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

static double interval_s = 1;
static uint64_t rounds;

static const struct option options[] = {
	{.name = "--interval",
	 .kind = OPTION_DECIMAL,
	 .argument = "SECONDS",
	 .value = &interval_s,
	 .help = "time between two samples (1)"},
	{.name = "--rounds",
	 .kind = OPTION_NUMBER,
	 .argument = "N",
	 .value = &rounds,
	 .help = "end after so many samples (never)"},
	{0},
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print_zones(const struct dmaheap_stats_node *node)
{
	struct units_text a, b;

	for (uint32_t i = 0; i < node->n_zones; i++) {
		const struct dmaheap_stats_zone *z = &node->zone[i];

		printw("zone %-8s %8s of %s free; blocks of order 10 to 0:",
		       z->name, units_size(z->free_bytes, &a),
		       units_size(z->size_bytes, &b));
		for (int o = DMAHEAP_ORDER_COUNT - 1; o >= 0; o--)
			printw(" %ju", (uintmax_t)z->free_blocks[o]);
		addch('\n');
	}
}

static void print_heaps(const struct dmaheap_stats *before,
			const struct dmaheap_stats *now, double seconds)
{
	struct units_text bytes, pool, p50, p99, stall;

	attron(A_REVERSE);
	printw("%-20s %-12s %8s %8s %8s %9s %7s %6s %9s %9s %9s\n", "HEAP",
	       "POLICY", "BUFFERS", "BYTES", "POOLS", "ALLOCS/S", "FAIL/S",
	       "HIT%", "P50", "P99", "STALL P99");
	attroff(A_REVERSE);
	for (uint32_t i = 0; i < now->n_heaps; i++) {
		struct sample_heap s = sample_of_heap(&before->heap[i],
						      &now->heap[i], seconds);

		printw("%-20s %-12s %8ju %8s %8s %9.1f %7.1f %6.1f %9s %9s "
		       "%9s\n",
		       s.name, s.policy, (uintmax_t)s.buffers,
		       units_size(s.bytes, &bytes),
		       units_size(s.pool_bytes, &pool), s.allocs_per_s,
		       s.failures_per_s, s.hit_percent,
		       units_time(s.measured_p50_ns, &p50),
		       units_time(s.measured_p99_ns, &p99),
		       units_time(s.stall_p99_ns, &stall));
	}
}

/* The newest events first, as many as the screen still has lines for. */
static void print_events(const struct dmaheap_stats *now)
{
	uint64_t next = now->events.next;

	printw("\nlast allocations\n");
	for (uint64_t back = 1; back <= next && back <= DMAHEAP_STATS_EVENTS &&
				getcury(stdscr) < LINES - 1;
	     back++) {
		const struct dmaheap_stats_event *e =
			&now->events
				 .event[(next - back) % DMAHEAP_STATS_EVENTS];
		struct names_composition composition;
		struct units_text size, measured, stall;

		if (e->n != next - back + 1)
			break;
		printw("%10ju %8s %-24s %-7s measured %9s, modelled stall "
		       "%9s%s\n",
		       (uintmax_t)e->id, units_size(e->size_bytes, &size),
		       names_composition(e->blocks, &composition),
		       names_source(e->source),
		       units_time(e->measured_total_ns, &measured),
		       units_time(e->modelled_stall_ns, &stall),
		       e->status ? ", failed" : "");
	}
}

static void draw(const struct dmaheap_stats *before,
		 const struct dmaheap_stats *now, double seconds)
{
	const struct dmaheap_stats_daemon *d = &now->daemon;
	const struct dmaheap_stats_backing *b = &now->backing;
	struct units_text resident, parked, budget;

	erase();
	printw("dmaheapd %s, pid %d, %s loop, clock %s: %u connections, %.1f "
	       "requests/s (q quits)\n",
	       d->version, d->pid, d->loop, d->clock, d->n_connections,
	       (double)(d->requests - before->daemon.requests) / seconds);
	printw("backing %s: %s resident, %s parked, budget %s\n", b->mode,
	       units_size(b->resident_bytes, &resident),
	       units_size(b->parked_bytes, &parked),
	       units_size(b->budget_bytes, &budget));
	print_zones(&now->node);
	addch('\n');
	print_heaps(before, now, seconds);
	print_events(now);
	refresh();
}

/* A request would wait for the next daemon, and the keys with it. */
static bool is_away(const struct ctl *ctl, const struct dmaheap_stats *last)
{
	struct dmaheap *probe;

	if (kill(last->daemon.pid, 0) == 0 || errno != ESRCH)
		return false;
	if (dmaheap_connect(&probe, ctl->socket_path))
		return true;
	dmaheap_close(probe);
	return false;
}

static void draw_away(void)
{
	move(0, 0);
	clrtoeol();
	printw("the daemon is gone; waiting for the next one (q quits)");
	refresh();
}

/* Waits for the next sample. Return: whether the user wants to quit. */
static bool wait_on_screen(void)
{
	int key;

	timeout((int)(interval_s * 1000));
	do {
		key = getch();
	} while (key != ERR && key != 'q' && key != 'Q' && key != KEY_RESIZE);
	return key == 'q' || key == 'Q';
}

static void wait_without_screen(void)
{
	double whole = floor(interval_s);
	struct timespec ts = {.tv_sec = (time_t)whole,
			      .tv_nsec = (long)((interval_s - whole) * 1e9)};

	nanosleep(&ts, NULL);
}

/* Return: false at the end. @before and @now are of one daemon. */
static bool show(const struct ctl *ctl, const struct dmaheap_stats *before,
		 const struct dmaheap_stats *now, double seconds)
{
	json_t *line;

	if (!ctl->json) {
		draw(before, now, seconds);
		return true;
	}
	line = sample_json(before, now, seconds);
	if (line)
		json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	json_decref(line);
	putchar('\n');
	return fflush(stdout) == 0;
}

/* Return: 0 or a negated errno; messages wait until the screen is restored. */
static int loop(struct ctl *ctl)
{
	struct dmaheap_stats *before, *now;
	double before_s = now_s();
	int r = ctl_copy_stats(ctl, &before);

	if (r)
		return r;
	if (!ctl->json)
		draw(before, before, interval_s);
	for (uint64_t n = 0; rounds == 0 || n < rounds; n++) {
		double s;

		if (ctl->json)
			wait_without_screen();
		else if (wait_on_screen())
			break;
		if (!ctl->json && is_away(ctl, before)) {
			draw_away();
			continue;
		}
		r = ctl_copy_stats(ctl, &now);
		if (r)
			break;
		s = now_s();
		/* Counters of another daemon begin again. */
		if (before->daemon.start_realtime_ns ==
			    now->daemon.start_realtime_ns &&
		    !show(ctl, before, now, s - before_s))
			break;
		free(before);
		before = now;
		before_s = s;
	}
	free(before);
	return r;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	int r;

	(void)argc;
	(void)argv;
	if (interval_s < 0.05 || interval_s > 3600)
		return ctl_misuse(ctl,
				  "--interval: %g is not within 0.05 to "
				  "3600 s",
				  interval_s);
	r = ctl_connect(ctl);
	if (r)
		return r;
	if (ctl->json) {
		r = loop(ctl);
		return r ? ctl_fail("top: %s", strerror(-r)) : CTL_OK;
	}
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return ctl_fail("top: needs a terminal; --json does not");
	if (!initscr())
		return ctl_fail("top: this terminal cannot do it");
	cbreak();
	noecho();
	curs_set(0);
	r = loop(ctl);
	endwin();
	return r ? ctl_fail("top: %s", strerror(-r)) : CTL_OK;
}

const struct verb verb_top = {
	.name = "top",
	.arguments = "",
	.summary = "watch the daemon (q quits)",
	.details = "With --json one line per sample.",
	.options = options,
	.run = run,
};
