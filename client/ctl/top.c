/* SPDX-License-Identifier: MIT */
#include <curses.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
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

/* One line, cut at the screen's right edge: a wrapped one pushes others out. */
static void _printf_(1, 2) line(const char *format, ...)
{
	int row = getcury(stdscr);
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	addnstr(text, COLS);
	move(row + 1, 0);
}

static void heading(const char *text)
{
	attron(A_REVERSE);
	line("%s", text);
	attroff(A_REVERSE);
}

static void print_zone(const struct dmaheap_stats_zone *z)
{
	struct units_text free, size;
	char room[128], blocks[320];
	size_t n = 0;

	(void)snprintf(room, sizeof(room), "zone %-8s %8s of %s free", z->name,
		       units_size(z->free_bytes, &free),
		       units_size(z->size_bytes, &size));
	for (int o = DMAHEAP_ORDER_COUNT - 1; o >= 0; o--)
		n += (size_t)snprintf(blocks + n, sizeof(blocks) - n, " %ju",
				      (uintmax_t)z->free_blocks[o]);
	if (strlen(room) + strlen("; blocks of order 10 to 0:") + n <=
	    (size_t)COLS) {
		line("%s; blocks of order 10 to 0:%s", room, blocks);
	} else {
		line("%s; blocks of order 10 to 0:", room);
		line("   %s", blocks);
	}
}

#define CELL_BYTES 40u

/* From left to right. Where the screen is too narrow for all, those of the
 * highest rank are left out first. */
static const struct column {
	const char *name;
	int width; /* < 0: to the left */
	int rank;
} columns[] = {
	{"HEAP", -16, 0}, {"POLICY", -10, 0},  {"BUFFERS", 7, 2},
	{"BYTES", 7, 1},  {"POOLS", 7, 3},     {"ALLOCS/S", 8, 0},
	{"FAIL/S", 7, 0}, {"HIT%", 6, 0},      {"P50", 8, 0},
	{"P99", 8, 0},    {"STALL P99", 9, 0},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Return: the highest rank that still fits, or 0. */
static int rank_that_fits(void)
{
	int rank, width;

	for (rank = 3; rank > 0; rank--) {
		width = -1; /* no gap before the first */
		for (size_t c = 0; c < N_COLUMNS; c++)
			if (columns[c].rank <= rank)
				width += abs(columns[c].width) + 1;
		if (width <= COLS)
			break;
	}
	return rank;
}

static void format_row(char (*cells)[CELL_BYTES], char *text, size_t text_bytes)
{
	int rank = rank_that_fits();
	size_t n = 0;

	text[0] = '\0';
	for (size_t c = 0; c < N_COLUMNS && n < text_bytes; c++) {
		if (columns[c].rank > rank)
			continue;
		n += (size_t)snprintf(text + n, text_bytes - n, "%s%*.*s",
				      n ? " " : "", columns[c].width,
				      abs(columns[c].width), cells[c]);
	}
}

static void print_headings(void)
{
	char cells[N_COLUMNS][CELL_BYTES], text[256];

	for (size_t c = 0; c < N_COLUMNS; c++)
		(void)snprintf(cells[c], CELL_BYTES, "%s", columns[c].name);
	format_row(cells, text, sizeof(text));
	heading(text);
}

static void print_heap(const struct sample_heap *s)
{
	char cells[N_COLUMNS][CELL_BYTES], text[256];
	struct units_text unit;
	size_t c = 0;

#define CELL(...) (void)snprintf(cells[c++], CELL_BYTES, __VA_ARGS__)
	CELL("%s", s->name);
	CELL("%s", s->policy);
	CELL("%ju", (uintmax_t)s->buffers);
	CELL("%s", units_size(s->bytes, &unit));
	CELL("%s", units_size(s->pool_bytes, &unit));
	CELL("%.1f", s->allocs_per_s);
	CELL("%.1f", s->failures_per_s);
	CELL("%.1f", s->hit_percent);
	CELL("%s", units_time(s->measured_p50_ns, &unit));
	CELL("%s", units_time(s->measured_p99_ns, &unit));
	CELL("%s", units_time(s->stall_p99_ns, &unit));
#undef CELL
	format_row(cells, text, sizeof(text));
	line("%s", text);
}

static void print_heaps(const struct dmaheap_stats *before,
			const struct dmaheap_stats *now, double seconds)
{
	print_headings();
	for (uint32_t i = 0; i < now->n_heaps; i++) {
		struct sample_heap s = sample_of_heap(&before->heap[i],
						      &now->heap[i], seconds);

		print_heap(&s);
	}
}

/* The newest events first, as many as the screen still has lines for. */
static void print_events(const struct dmaheap_stats *now)
{
	uint64_t next = now->events.next;

	line("%s", "");
	line("last allocations");
	heading("        ID    SIZE COMPOSITION          SOURCE  MEASURED  "
		"MODELLED STALL");
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
		line("%10ju %7s %-20s %-7s %8s  %14s%s", (uintmax_t)e->id,
		     units_size(e->size_bytes, &size),
		     names_composition(e->blocks, &composition),
		     names_source(e->source),
		     units_time(e->measured_total_ns, &measured),
		     units_time(e->modelled_stall_ns, &stall),
		     e->status ? " failed" : "");
	}
}

static void draw(const struct dmaheap_stats *before,
		 const struct dmaheap_stats *now, double seconds)
{
	const struct dmaheap_stats_daemon *d = &now->daemon;
	const struct dmaheap_stats_backing *b = &now->backing;
	struct units_text resident, parked, budget;

	erase();
	line("q quits; dmaheapd %s, pid %d, %s loop, clock %s", d->version,
	     d->pid, d->loop, d->clock);
	line("%u connections, %.1f requests/s", d->n_connections,
	     (double)(d->requests - before->daemon.requests) / seconds);
	line("backing %s: %s resident, %s parked, budget %s", b->mode,
	     units_size(b->resident_bytes, &resident),
	     units_size(b->parked_bytes, &parked),
	     units_size(b->budget_bytes, &budget));
	for (uint32_t i = 0; i < now->node.n_zones; i++)
		print_zone(&now->node.zone[i]);
	line("%s", "");
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
	line("the daemon is gone; waiting for the next one (q quits)");
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
