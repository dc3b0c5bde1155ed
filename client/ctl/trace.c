/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/names.h"
#include "ctl/table.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

static bool follow;

static const struct option options[] = {
	{.name = "--follow",
	 .kind = OPTION_SWITCH,
	 .value = &follow,
	 .help = "print events as they happen, in the trace format"},
	{0},
};

static volatile sig_atomic_t enough;

static void on_signal(int number)
{
	(void)number;
	enough = 1;
}

/* The signals end read() with EINTR, so that the last line is still written. */
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return ctl_fail("trace: cannot write: %s",
					strerror(errno));
		bytes += written;
		n -= (size_t)written;
	}
	return CTL_OK;
}

static int copy_until_signal(int from, int to)
{
	char buffer[65536];

	while (!enough) {
		ssize_t n = read(from, buffer, sizeof(buffer));

		if (n == 0)
			return ctl_fail("trace: the daemon ended it");
		if (n < 0 && errno != EINTR)
			return ctl_fail("trace: %s", strerror(errno));
		if (n > 0 && write_all(to, buffer, (size_t)n))
			return CTL_FAILED;
	}
	return CTL_OK;
}

static int copy_trace(struct ctl *ctl, int to)
{
	struct dmaheap_trace_req req = {0};
	int from = -1, r;
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_TRACE,
				      .payload = &req,
				      .payload_bytes = sizeof(req),
				      .reply_fds = &from,
				      .reply_fds_capacity = 1};

	catch_signals();
	if (ctl_call(ctl, "trace", &msg))
		return CTL_FAILED;
	if (msg.n_reply_fds != 1)
		return ctl_fail("trace: the daemon's answer makes no sense");
	r = copy_until_signal(from, to);
	close(from);
	return r;
}

static int record(struct ctl *ctl, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r;

	if (fd < 0)
		return ctl_fail("trace: %s: %s", path, strerror(errno));
	r = copy_trace(ctl, fd);
	if (close(fd) < 0 && r == CTL_OK)
		r = ctl_fail("trace: %s: %s", path, strerror(errno));
	return r;
}

static const char *heap_name(const struct dmaheap_stats *stats, uint32_t heap)
{
	return heap < stats->n_heaps ? stats->heap[heap].name : "?";
}

static json_t *event_json(const struct dmaheap_stats *stats,
			  const struct dmaheap_stats_event *e)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:s, s:s, s:o, "
			 "s:{s:o, s:o}}",
			 "n", json_u64(e->n - 1), "id", json_u64(e->id), "heap",
			 json_text(heap_name(stats, e->heap)), "size",
			 json_u64(e->size_bytes), "realtime_ns",
			 json_u64(e->realtime_ns), "status", e->status,
			 "composition", json_composition(e->blocks), "source",
			 names_source(e->source), "backing",
			 names_backing(e->backing), "measured_total_ns",
			 json_u64(e->measured_total_ns), "modelled_ns", "node",
			 json_u64(e->modelled_node_ns), "stall",
			 json_u64(e->modelled_stall_ns));
}

static const char *clock_text(uint64_t realtime_ns, struct units_text *text)
{
	time_t s = (time_t)(realtime_ns / 1000000000u);
	struct tm tm;
	size_t n;

	localtime_r(&s, &tm);
	n = strftime(text->s, sizeof(text->s), "%H:%M:%S", &tm);
	snprintf(text->s + n, sizeof(text->s) - n, ".%03u",
		 (unsigned int)(realtime_ns / 1000000u % 1000u));
	return text->s;
}

static void add_row(struct table *t, const struct dmaheap_stats *stats,
		    const struct dmaheap_stats_event *e)
{
	struct names_composition composition;
	struct units_text text;

	table_cell(t, "%s", clock_text(e->realtime_ns, &text));
	table_cell(t, "%ju", (uintmax_t)e->id);
	table_cell(t, "%s", heap_name(stats, e->heap));
	table_cell(t, "%s", units_size(e->size_bytes, &text));
	table_cell(t, "%s", names_composition(e->blocks, &composition));
	table_cell(t, "%s", names_source(e->source));
	table_cell(t, "%s", units_time(e->measured_total_ns, &text));
	table_cell(t, "%s", units_time(e->modelled_node_ns, &text));
	table_cell(t, "%s", units_time(e->modelled_stall_ns, &text));
	table_cell(t, "%s", e->status ? strerror(-e->status) : "ok");
	if (e->status)
		table_mark_row(t);
}

/* The ring's events, oldest first. */
static int show_recent(struct ctl *ctl)
{
	static const char *const headings[] =
		{"TIME",         ">ID",    "HEAP",      ">SIZE",
		 "COMPOSITION",  "SOURCE", ">MEASURED", ">MODELLED",
		 ">OF IT STALL", "RESULT", NULL};
	struct table *t = table_new(headings);
	json_t *array = json_array();
	struct dmaheap_stats *stats;
	uint64_t next, first;
	int r = ctl_stats(ctl, &stats);

	if (r)
		goto out;
	next = stats->events.next;
	first = next > DMAHEAP_STATS_EVENTS ? next - DMAHEAP_STATS_EVENTS : 0;
	for (uint64_t n = first; n < next; n++) {
		const struct dmaheap_stats_event *e =
			&stats->events.event[n % DMAHEAP_STATS_EVENTS];

		if (e->n != n + 1)
			continue;
		add_row(t, stats, e);
		json_array_append_new(array, event_json(stats, e));
	}
	if (ctl->json)
		r = json_show(json_incref(array));
	else
		table_print(t, ctl);
	free(stats);
out:
	json_decref(array);
	table_free(t);
	return r;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	if (follow && ctl->json)
		return ctl_misuse(ctl, "--follow and --json exclude each "
				       "other: it prints the trace format");
	if (argc == 0)
		return follow ? copy_trace(ctl, STDOUT_FILENO)
			      : show_recent(ctl);
	if (strcmp(argv[0], "record") != 0)
		return ctl_misuse(ctl, "trace: \"%s\" is not record", argv[0]);
	if (argc != 2 || follow)
		return ctl_misuse(ctl, "trace record takes one FILE");
	return record(ctl, argv[1]);
}

const struct verb verb_trace = {
	.name = "trace",
	.arguments = "[record FILE]",
	.summary = "show the last allocations, or follow or record them",
	.details = "\"record\" writes the trace format, which dmaheap-lab "
		   "replays, until interrupted.\nFollowing and recording are "
		   "for administrators.",
	.options = options,
	.n_arguments_max = 2,
	.run = run,
};
