/* SPDX-License-Identifier: MIT */
#include "lab/experiment_objtrack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/objtrack.h"
#include "base/parse.h"
#include "conf/files.h"
#include "lab/data.h"
#include "lab/trace.h"

/* tests/data/debugobjects-percpu.tsv */
#define SOURCE_ALLOCS_4 380000.0
#define SOURCE_ALLOCS_8 295000.0
#define SOURCE_FREES_4  330000.0
#define SOURCE_FREES_8  245000.0

/* Of 64 KiB, one block: the request 2, the live object 4, the buffer 5 (parked
 * and taken again), the block 2. Larger buffers only add blocks. */
#define CALLS_PER_REQUEST 13u

#define TRACE_MAX_BYTES  MIB(64)
#define BUFFERS_MAX      (1u << 20)
#define BLOCKS_MAX       (1u << 20) /* of one buffer */
#define TRIM_INTERVAL_NS (100 * NSEC_PER_MSEC)

enum { KIND_BUFFER, KIND_BLOCK, N_KINDS };
static const char *const kinds[] = {"buffer", "block"};

/* Which buffers live, and with how many objects: by their id. */
struct parser {
	struct objtrack_trace trace;
	uint32_t *objects; /* BUFFERS_MAX of them */
	bool *lives;
};

static int add_event(struct parser *p, uint64_t time_ns, uint64_t id, bool goes)
{
	struct objtrack_trace *t = &p->trace;

	if (t->n_events == 0 || is_power_of_2(t->n_events)) {
		size_t n = t->n_events ? 2 * t->n_events : 1;
		struct objtrack_event *events =
			realloc(t->events, n * sizeof(*events));

		if (!events)
			return -ENOMEM;
		t->events = events;
	}
	t->events[t->n_events++] = (struct objtrack_event){
		.time_ns = time_ns,
		.buffer = (uint32_t)id,
		.n_objects = p->objects[id],
		.goes = goes,
	};
	p->lives[id] = !goes;
	if (!goes) {
		t->n_buffers++;
		t->n_objects += p->objects[id];
	}
	return 0;
}

/* "8:10,4:3" Return: the number of blocks, 0 if it is not of that form. */
static uint32_t count_blocks(const char *text)
{
	char word[32];
	uint64_t n, sum = 0;

	while (parse_word(&text, word, sizeof(word)) > 0) {
		char *colon = strchr(word, ':');

		if (!colon || parse_u64(colon + 1, &n) || n > BLOCKS_MAX)
			return 0;
		sum += n;
	}
	return sum <= BLOCKS_MAX ? (uint32_t)sum : 0;
}

static int on_alloc(struct parser *p, const struct trace_event *e, uint64_t id,
		    struct conf_error *err)
{
	const struct conf_entry *blocks;
	uint32_t n;
	int r = trace_need(e, "blocks", &blocks, err);

	if (r)
		return r;
	n = count_blocks(blocks->value);
	if (n == 0)
		return trace_error(e, err,
				   "blocks: \"%.32s\" is no composition as "
				   "8:10,4:3 of at most %u blocks",
				   blocks->value, BLOCKS_MAX);
	if (p->lives[id])
		return trace_error(e, err, "id: %" PRIu64 " lives already", id);
	p->objects[id] = n + 1; /* and the buffer itself */
	return add_event(p, e->time_ns, id, false);
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

/* Return: true if the event is of a buffer that an allocation gave. */
static bool concerns_a_buffer(const struct trace_event *e)
{
	static const char *const names[] = {"alloc", "take", "finish", NULL};

	return is_one_of(e->name, names) && trace_find(e, "id");
}

static int on_event(struct parser *p, const struct trace_event *e,
		    struct conf_error *err)
{
	uint64_t id;
	int r;

	if (!concerns_a_buffer(e))
		return 0;
	r = trace_need_u64(e, "id", BUFFERS_MAX - 1, &id, err);
	if (r)
		return r;
	if (!strcmp(e->name, "alloc"))
		return on_alloc(p, e, id, err);
	if (p->objects[id] == 0) /* from before the trace began */
		return 0;
	if (!strcmp(e->name, "finish"))
		return p->lives[id] ? add_event(p, e->time_ns, id, true) : 0;
	return p->lives[id] ? 0 : add_event(p, e->time_ns, id, false);
}

static int parse(struct parser *p, const char *file, char *text,
		 struct conf_error *err)
{
	struct trace_reader reader;
	struct trace_event *event = malloc(sizeof(*event));
	int r = event ? trace_open(&reader, file, text, err) : -ENOMEM;

	if (r == 0)
		r = trace_read_node(&reader, event, err);
	while (r == 0) {
		r = trace_read(&reader, event, err);
		if (r == 0)
			r = on_event(p, event, err);
	}
	free(event);
	return r == TRACE_E_END ? 0 : r;
}

/* What is left at the end goes, so that nothing is a leak. */
static int end_all(struct parser *p)
{
	struct objtrack_trace *t = &p->trace;
	uint64_t end_ns = t->events[t->n_events - 1].time_ns;
	int r = 0;

	for (uint64_t id = 0; r == 0 && id < BUFFERS_MAX; id++)
		if (p->lives[id])
			r = add_event(p, end_ns, id, true);
	return r;
}

int objtrack_trace_parse(struct objtrack_trace *ret, const char *file,
			 char *text, struct conf_error *err)
{
	struct parser p = {0};
	int r = -ENOMEM;

	p.objects = calloc(BUFFERS_MAX, sizeof(*p.objects));
	p.lives = calloc(BUFFERS_MAX, sizeof(*p.lives));
	if (p.objects && p.lives)
		r = parse(&p, file, text, err);
	if (r == 0 && p.trace.n_events)
		r = end_all(&p);
	free(p.objects);
	free(p.lives);
	if (r == 0 && p.trace.n_buffers == 0) {
		(void)snprintf(err->text, sizeof(err->text),
			       "%s: no allocation in it", file);
		r = CONF_E_INVALID;
	}
	if (r)
		objtrack_trace_fini(&p.trace);
	else
		*ret = p.trace;
	return r;
}

void objtrack_trace_fini(struct objtrack_trace *trace)
{
	free(trace->events);
	*trace = (struct objtrack_trace){0};
}

/* The objects of a buffer: itself, and its blocks. */
static void apply(struct objtrack *track, unsigned int n_workers,
		  const struct objtrack_event *e)
{
	unsigned int worker = e->buffer % n_workers;
	uint64_t key = (uint64_t)e->buffer << 20;

	for (uint32_t i = 0; i < e->n_objects; i++, key++) {
		unsigned int kind = i ? KIND_BLOCK : KIND_BUFFER;

		if (e->goes)
			(void)objtrack_forget(track, worker, kind, key);
		else
			(void)objtrack_init(track, worker, kind, key);
	}
}

/* Surplus goes back every 100 ms of the trace's time, as the daemon does. */
static void replay(const struct objtrack_trace *trace, struct objtrack *track,
		   unsigned int n_workers)
{
	uint64_t trim_at_ns = trace->events[0].time_ns + TRIM_INTERVAL_NS;

	for (size_t i = 0; i < trace->n_events; i++) {
		const struct objtrack_event *e = &trace->events[i];

		if (e->time_ns >= trim_at_ns) {
			(void)objtrack_trim(track);
			trim_at_ns = e->time_ns + TRIM_INTERVAL_NS;
		}
		apply(track, n_workers, e);
	}
}

static int replay_one(const struct objtrack_trace *trace,
		      const struct objtrack_params_of_run *run,
		      struct objtrack_point *point)
{
	const struct objtrack_params params = {
		.enabled = true,
		.slots_in_batches = point->slots,
		.n_workers = run->n_workers,
		.kinds = kinds,
		.n_kinds = N_KINDS,
	};
	struct objtrack *track = NULL;
	struct objtrack_stats stats;
	int r = objtrack_new(&track, &params);

	if (r)
		return r;
	replay(trace, track, run->n_workers);
	(void)objtrack_trim(track);
	objtrack_get_stats(track, &stats);
	if (!objtrack_is_enabled(track))
		r = -ENOMEM;
	point->backing_allocs = stats.backing_allocs;
	point->backing_frees = stats.backing_frees;
	point->worker_bytes = stats.worker_bytes_max;
	objtrack_free(track);
	return r;
}

int objtrack_replay(const struct objtrack_trace *trace,
		    struct objtrack_result *result)
{
	int r = 0;

	result->n_buffers = trace->n_buffers;
	result->n_objects = trace->n_objects;
	for (unsigned int i = 0; r == 0 && i < OBJTRACK_CURVE; i++) {
		result->point[i] = (struct objtrack_point){
			.slots = result->params.slots[i]};
		r = replay_one(trace, &result->params, &result->point[i]);
	}
	return r;
}

static const struct objtrack_point *
point_of(const struct objtrack_result *result, unsigned int slots)
{
	for (unsigned int i = 0; i < OBJTRACK_CURVE; i++)
		if (result->point[i].slots == slots)
			return &result->point[i];
	assert(!"the curve has 4 and 8");
	return NULL;
}

static double fall_percent(double from, double to)
{
	return from > 0 ? 100 * (from - to) / from : 0;
}

static void report_curve(const struct objtrack_result *r, struct report *report)
{
	const struct report_context context = {
		.policy = "as recorded",
		.seed = r->params.seed,
		.profile = "none",
		.kind = "counted in base/objtrack",
	};
	const struct objtrack_point *four = point_of(r, 4);
	char title[160];

	(void)snprintf(title, sizeof(title),
		       "One recorded trace: %" PRIu64 " buffers, %" PRIu64
		       " objects with their blocks, %u workers",
		       r->n_buffers, r->n_objects, r->params.n_workers);
	report_table(report, title, &context,
		     "slots in batches|backing allocations in the hot path|"
		     "fewer than with 4|backing frees|fewer than with 4|"
		     "bytes per worker|source");
	for (unsigned int i = 0; i < OBJTRACK_CURVE; i++) {
		const struct objtrack_point *p = &r->point[i];

		report_row(report,
			   "%u|%" PRIu64 "|%.1f %%|%" PRIu64 "|%.1f %%|%" PRIu64
			   "|%s",
			   p->slots, p->backing_allocs,
			   fall_percent((double)four->backing_allocs,
					(double)p->backing_allocs),
			   p->backing_frees,
			   fall_percent((double)four->backing_frees,
					(double)p->backing_frees),
			   p->worker_bytes,
			   p->slots == 4 ? "380000 allocations, 330000 frees"
			   : p->slots == 8
				   ? "295000 (22 % fewer), 245000 (26 %)"
				   : "");
	}
}

/* Percent of a request's CPU time. */
static double off_share(const struct objtrack_result *r)
{
	return CALLS_PER_REQUEST * r->off_ns / r->daemon[0].cpu_us / 10;
}

static double on_share(const struct objtrack_result *r)
{
	return CALLS_PER_REQUEST * r->on_ns / r->daemon[0].cpu_us / 10;
}

static void report_cost(const struct objtrack_result *r, struct report *report)
{
	const struct report_context context = {
		.policy = "none",
		.seed = r->params.seed,
		.profile = "this host",
		.kind = "measured, interleaved",
	};

	report_table(report, "What tracking costs", &context,
		     "tracker|ns|per|source");
	report_row(report, "on|%.1f|transition, its record included|no figure",
		   r->on_ns);
	report_row(report, "off|%.2f|call", r->off_ns);
	report_row(report,
		   "off|%.1f %%|alloc and free of a slab object, four calls "
		   "in it|",
		   r->off_percent);
	if (r->daemon[0].per_s < 0) {
		report_note(report, "In the daemon: not measured, %s",
			    r->daemon_why_not);
		return;
	}
	report_row(report,
		   "off|%.3f %%|a request of the daemon that makes a buffer, "
		   "%u calls in it|",
		   off_share(r), CALLS_PER_REQUEST);
	report_row(report, "off|%.0f|daemon's CPU time of a request|",
		   r->daemon[0].cpu_us * 1e3);
	report_row(report, "on|%.0f|daemon's CPU time of a request|",
		   r->daemon[1].cpu_us * 1e3);
}

static void conclude_cost(const struct objtrack_result *r,
			  struct report *report)
{
	report_conclude(report,
			"On, tracking costs %.0f ns a transition, off %.2f ns "
			"a call.",
			r->on_ns, r->off_ns);
	if (r->daemon[0].per_s > 0)
		report_conclude(report,
				"Off it is %.3f %% of a request of the daemon, "
				"on %.1f %%.",
				off_share(r), on_share(r));
}

void objtrack_report(const struct objtrack_result *r, struct report *report)
{
	const struct objtrack_point *four = point_of(r, 4);
	const struct objtrack_point *eight = point_of(r, 8);
	double allocs = fall_percent((double)four->backing_allocs,
				     (double)eight->backing_allocs);
	double frees = fall_percent((double)four->backing_frees,
				    (double)eight->backing_frees);

	report_curve(r, report);
	report_cost(r, report);
	report_conclude(
		report,
		"Eight batches per worker instead of four save %.1f %% of the "
		"backing allocations in the hot path (source: %.0f %%) and "
		"%.1f %% of the frees (source: %.0f %%) for %" PRIu64
		" bytes more per worker: %s.",
		allocs, fall_percent(SOURCE_ALLOCS_4, SOURCE_ALLOCS_8), frees,
		fall_percent(SOURCE_FREES_4, SOURCE_FREES_8),
		eight->worker_bytes - four->worker_bytes,
		allocs >= 20  ? "at least about as much as the source saw"
		: allocs >= 5 ? "less than the source saw, but a gain"
			      : "no gain to speak of on this trace");
	conclude_cost(r, report);
}

static int load(const struct experiment_options *options,
		struct objtrack_trace *ret, struct strbuf *why)
{
	char found[LAB_PATH_BYTES];
	const char *path = options->trace;
	struct conf_error err;
	char *text = NULL;
	int r;

	if (!path && lab_find(found, "traces", "stress", ".trace", NULL))
		path = found;
	if (!path) {
		strbuf_append(why, "the shipped trace \"stress\" is not there; "
				   "--trace FILE names another");
		return -ENOENT;
	}
	r = conf_read_file(path, TRACE_MAX_BYTES, &text, NULL);
	if (r) {
		conf_file_error(path, r, TRACE_MAX_BYTES, &err);
		strbuf_append(why, "%s", err.text);
		return r;
	}
	r = objtrack_trace_parse(ret, path, text, &err);
	free(text);
	if (r == CONF_E_INVALID) {
		strbuf_append(why, "%s", err.text);
		return -EINVAL;
	}
	return r;
}

static int run(const struct experiment_options *options, struct report *report,
	       struct strbuf *why)
{
	static const char *const configs[] = {
		"[daemon]\ndebug_objects = off\n[node]\nsize = 256M\n",
		"[daemon]\ndebug_objects = on\n[node]\nsize = 256M\n",
	};
	struct objtrack_result result = {
		.params = {.seed = options->seed,
			   .n_workers = 8,
			   .slots = {0, 1, 2, 4, 8, 16}},
	};
	struct objtrack_trace trace = {0};
	int r = load(options, &trace, why);

	if (r == 0)
		r = objtrack_replay(&trace, &result);
	objtrack_trace_fini(&trace);
	if (r == 0)
		r = objtrack_time(&result);
	if (r == 0)
		live_daemon_compare(options->daemon, configs, result.daemon,
				    result.daemon_why_not,
				    sizeof(result.daemon_why_not));
	if (r == 0)
		objtrack_report(&result, report);
	return r;
}

const struct experiment experiment_objtrack = {
	.name = "debugobjects-percpu",
	.title = "double the per-CPU slots of an object tracker (2024)",
	.run = run,
};
