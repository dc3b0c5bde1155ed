/* SPDX-License-Identifier: MIT */
#include "lab/player.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "mm/node.h"

/*
 * A run is one program: steps with an instruction pointer and a stack of open
 * repeats, a clock, and the live buffers in the order of their allocation. Each
 * request begins at the time its step says, or when the one before was done,
 * whichever is later; background refill does its steps in between.
 */

#define TIME_END_NS (UINT64_C(1) << 62)

struct player {
	struct node *node;
	struct heap_set *heaps;
	struct heap *heap;
	struct lab_table *out;
	struct conf_error *err;
	struct rng rng;
	uint64_t now_ns;
	uint64_t refill_ns; /* when the background refill goes on */
	struct buffer **live;
	size_t n_live;
	size_t live_capacity;
	uint64_t left[SCENARIO_DEPTH_MAX]; /* rounds of the open repeats */
	unsigned int depth;
	uint32_t *n_in_set; /* rows so far, by set */
	bool began;         /* the first allocation has come */
};

static void player_advance(struct player *p, uint64_t to_ns)
{
	to_ns = MIN(to_ns, TIME_END_NS);
	while (p->refill_ns <= to_ns) {
		uint64_t next = heap_refill(p->heap, p->refill_ns);

		/* A step that could go on at once takes a little while. */
		p->refill_ns = MAX(next, p->refill_ns + NSEC_PER_USEC);
		if (next == UINT64_MAX)
			p->refill_ns = UINT64_MAX;
	}
	p->now_ns = MAX(p->now_ns, to_ns);
	node_advance(p->node, p->now_ns);
}

static int keep_live(struct player *p, struct buffer *buffer)
{
	size_t capacity = p->live_capacity ? p->live_capacity * 2 : 64;
	struct buffer **live;

	if (p->n_live == p->live_capacity) {
		live = reallocarray(p->live, capacity, sizeof(*live));
		if (!live)
			return err_raise(-ENOMEM);
		p->live = live;
		p->live_capacity = capacity;
	}
	p->live[p->n_live++] = buffer;
	return 0;
}

static int fill_row(struct player *p, const struct scenario_step *step,
		    const struct heap_request *req, const struct buffer *buffer)
{
	struct lab_row *row = lab_table_add(p->out);

	if (!row)
		return err_raise(-ENOMEM);
	row->set = step->set;
	row->n = ++p->n_in_set[step->set];
	row->failed = buffer == NULL;
	row->len_bytes = buffer ? buffer->len_bytes : req->len_bytes;
	row->start_ns = req->start_ns;
	row->latency_ns = req->spent_ns;
	row->stall_ns = req->stall_ns;
	if (buffer)
		memcpy(row->composition, buffer->composition,
		       sizeof(row->composition));
	return 0;
}

/* Return: the text, or NULL when there is no memory. */
static char *buddyinfo(const struct player *p)
{
	struct strbuf text = STRBUF_INIT;

	node_render_buddyinfo(p->node, &text);
	return strbuf_steal(&text);
}

static int note_beginning(struct player *p)
{
	if (p->began)
		return 0;
	p->began = true;
	lab_table_begin(p->out, p->node);
	for (unsigned int i = 0; i < node_vmstat_count(); i++)
		p->out->vmstat[i] = node_vmstat_value(p->node, i);
	p->out->buddyinfo_before = buddyinfo(p);
	return p->out->buddyinfo_before ? 0 : err_raise(-ENOMEM);
}

static int alloc_once(struct player *p, const struct scenario_step *step,
		      uint64_t size)
{
	struct heap_request req = {.len_bytes = size, .start_ns = p->now_ns};
	struct buffer *buffer = NULL;
	int r = note_beginning(p);

	if (r)
		return err_trace(r);
	r = heap_alloc(p->heap, &req, &buffer);
	if (r < 0)
		return err_trace(r);
	player_advance(p, p->now_ns + req.spent_ns);
	p->refill_ns = p->now_ns;
	r = fill_row(p, step, &req, buffer);
	if (!r && buffer)
		r = keep_live(p, buffer);
	return r;
}

static int step_alloc(struct player *p, const struct scenario_step *step)
{
	int r = 0;

	for (uint64_t i = 0; i < step->count && !r; i++) {
		uint64_t start = p->now_ns;

		r = alloc_once(p, step, scenario_size(step, i, &p->rng));
		player_advance(p, start + step->time_ns);
	}
	return r;
}

static int step_free(struct player *p, const struct scenario_step *step)
{
	uint64_t n = p->n_live > step->keep ? p->n_live - step->keep : 0;

	n = MIN(n, step->count);
	for (uint64_t i = 0; i < n; i++) {
		size_t at = step->which == SCENARIO_OLDEST ? 0 : p->n_live - 1;
		struct buffer *buffer;
		int r;

		if (step->which == SCENARIO_RANDOM)
			at = (size_t)rng_below(&p->rng, p->n_live);
		buffer = p->live[at];
		p->n_live--;
		memmove(&p->live[at], &p->live[at + 1],
			(p->n_live - at) * sizeof(*p->live));
		heap_release(p->heap, buffer);
		r = heap_finish(p->heap, buffer, HEAP_FINISH_POOL);
		if (r)
			return err_fold(r);
	}
	return 0;
}

static void step_pressure(struct player *p, const struct scenario_step *step)
{
	switch (step->pressure) {
	case SCENARIO_PRESSURE_LOW_MEMORY:
		node_pressure_low_memory(p->node);
		break;
	case SCENARIO_PRESSURE_FILL:
		node_pressure_fill(p->node, step->bytes);
		break;
	case SCENARIO_PRESSURE_FRAGMENT:
		node_pressure_fragment(p->node, (unsigned int)step->max_order);
		break;
	case SCENARIO_PRESSURE_RELEASE:
		node_pressure_release(p->node);
		break;
	}
}

static int occupant(struct player *p, const struct conf_entry *entry,
		    enum node_occupant *ret)
{
	if (node_occupant_parse(entry->value, ret) == 0)
		return 0;
	return conf_entry_error(entry, p->err,
				"\"%s\" is no occupant; allowed are file, "
				"active, dirty, anon, slab, kernel, mlocked",
				entry->value);
}

static int step_occupants(struct player *p, const struct scenario_step *step)
{
	uint64_t pages = step->bytes / node_params(p->node)->page_size_bytes;
	enum node_occupant kind, to;
	int r;

	r = occupant(p, step->kind, &kind);
	if (r)
		return r;
	switch (step->verb) {
	case SCENARIO_OCCUPY:
		if (step->has_leave)
			(void)node_occupy_fill(p->node, kind, step->bytes);
		else
			(void)node_occupy(p->node, kind, pages);
		return 0;
	case SCENARIO_VACATE:
		(void)node_vacate(p->node, kind, pages);
		return 0;
	case SCENARIO_RELEASE_EVERY:
		(void)node_release_every(p->node, kind, (unsigned int)step->n);
		return 0;
	default:
		r = occupant(p, step->to, &to);
		if (!r)
			(void)node_convert_some(p->node, kind, to,
						(unsigned int)step->n);
		return r;
	}
}

/* Return: the step after @at, or a repeat's first one again. */
static size_t step_jump(struct player *p, const struct scenario_step *step,
			size_t at)
{
	if (step->verb == SCENARIO_REPEAT) {
		p->left[p->depth++] = step->count - 1;
	} else if (step->verb == SCENARIO_END) {
		if (p->left[p->depth - 1]) {
			p->left[p->depth - 1]--;
			return step->match + 1;
		}
		p->depth--;
	}
	return at + 1;
}

static int step_do(struct player *p, const struct scenario_step *step)
{
	switch (step->verb) {
	case SCENARIO_ALLOC:
		return step_alloc(p, step);
	case SCENARIO_FREE:
		return step_free(p, step);
	case SCENARIO_SLEEP:
		player_advance(p, p->now_ns + step->time_ns);
		return 0;
	case SCENARIO_PRESSURE:
		step_pressure(p, step);
		return 0;
	case SCENARIO_REPEAT:
	case SCENARIO_END:
	case SCENARIO_VERBS:
		return 0;
	default:
		return step_occupants(p, step);
	}
}

static int play_steps(struct player *p, const struct scenario_step *steps,
		      size_t first, size_t n)
{
	int r = 0;

	for (size_t at = first; at < first + n && !r;) {
		r = step_do(p, &steps[at]);
		at = step_jump(p, &steps[at], at);
	}
	return r;
}

/* Return: what the node was made from, or "". */
static const char *snapshot_of(const struct scenario *scenario,
			       const struct scenario_table *table,
			       const struct lab_overrides *overrides)
{
	const struct conf_entry *entry =
		conf_section_find(table->section, "snapshot");

	if (overrides->node_dir)
		return overrides->node_dir;
	if (!entry && scenario->node)
		entry = conf_section_find(scenario->node, "snapshot");
	return entry ? entry->value : "";
}

static void fill_head(struct player *p, const struct scenario *scenario,
		      const struct scenario_table *table,
		      const char *policy_name, const struct policy *policy,
		      const struct lab_overrides *overrides)
{
	struct lab_table *out = p->out;
	struct node_page_counts counts;

	node_page_counts(p->node, &counts);
	(void)snprintf(out->condition, sizeof(out->condition), "%s",
		       table->condition);
	(void)snprintf(out->policy, sizeof(out->policy), "%s", policy_name);
	(void)snprintf(out->policy_name, sizeof(out->policy_name), "%s",
		       policy->name);
	out->steps = *policy;
	out->number = (uint32_t)(table - scenario->tables) + 1;
	(void)snprintf(out->snapshot, sizeof(out->snapshot), "%s",
		       snapshot_of(scenario, table, overrides));
	out->seed = overrides->has_seed ? overrides->seed : scenario->seed;
	out->node_bytes =
		counts.total_pages * node_params(p->node)->page_size_bytes;
	rng_seed(&p->rng, out->seed);
}

static int fill_tail(struct player *p)
{
	for (unsigned int i = 0; i < node_vmstat_count(); i++)
		p->out->vmstat[i] =
			node_vmstat_value(p->node, i) - p->out->vmstat[i];
	heap_get_stats(p->heap, &p->out->heap);
	p->out->buddyinfo_after = buddyinfo(p);
	return p->out->buddyinfo_after ? 0 : err_raise(-ENOMEM);
}

static int player_open(struct player *p, const struct policy *policy)
{
	int r = heap_set_new(&p->heaps, p->node, NULL, NULL);

	if (!r)
		r = heap_new(&p->heap, p->heaps,
			     &(struct heap_params){.name = "system",
						   .policy = policy});
	if (r)
		return err_fold(r);
	p->n_in_set = calloc(SCENARIO_STEPS_MAX + 1, sizeof(*p->n_in_set));
	if (!p->n_in_set)
		return err_raise(-ENOMEM);
	return lab_table_alloc_vmstat(p->out);
}

static void player_close(struct player *p)
{
	p->heaps = heap_set_free(p->heaps);
	p->node = node_free(p->node);
	free(p->live);
	free(p->n_in_set);
}

int lab_play_table(struct lab_table *ret, const struct scenario *scenario,
		   const struct scenario_table *table, const char *policy_name,
		   const char *file, const struct lab_overrides *overrides,
		   struct conf_error *err)
{
	struct player p = {.out = ret, .err = err, .refill_ns = UINT64_MAX};
	struct policy policy;
	int r;

	r = lab_policy(&policy, policy_name, scenario, table, overrides, err);
	if (!r)
		r = lab_node_new(&p.node, scenario, table, file, overrides,
				 ret->profile, err);
	if (r)
		return r;
	r = player_open(&p, &policy);
	if (!r) {
		fill_head(&p, scenario, table, policy_name, &policy, overrides);
		r = play_steps(&p, scenario->steps, 0,
			       scenario->n_common_steps);
	}
	if (!r)
		r = play_steps(&p, scenario->steps, table->first_step,
			       table->n_steps);
	if (!r)
		r = fill_tail(&p);
	player_close(&p);
	return r;
}

static int play_named(struct lab_results *results,
		      const struct scenario *scenario,
		      const struct scenario_table *table, const char *name,
		      const char *policy_name, const char *file,
		      const struct lab_overrides *overrides,
		      struct conf_error *err)
{
	struct lab_table *out = lab_results_add(results);

	if (!out)
		return err_raise(-ENOMEM);
	(void)snprintf(out->scenario, sizeof(out->scenario), "%s", name);
	return lab_play_table(out, scenario, table, policy_name, file,
			      overrides, err);
}

/* The table's own policies are words between blanks: commas belong to names. */
static int play_own_policies(struct lab_results *results,
			     const struct scenario *scenario,
			     const struct scenario_table *table,
			     const char *name, const char *file,
			     const struct lab_overrides *overrides,
			     struct conf_error *err)
{
	const char *list = table->policy ? table->policy->value : "840-high";
	int r = 0;

	list += strspn(list, " \t");
	while (*list && !r) {
		size_t len = strcspn(list, " \t");
		char word[LAB_NAME_BYTES];

		(void)snprintf(word, sizeof(word), "%.*s", (int)len, list);
		r = play_named(results, scenario, table, name, word, file,
			       overrides, err);
		list += len + strspn(list + len, " \t");
	}
	return r;
}

static int play_every_policy(struct lab_results *results,
			     const struct scenario *scenario,
			     const struct scenario_table *table,
			     const char *name, const char *file,
			     const struct lab_overrides *overrides,
			     struct conf_error *err)
{
	struct lab_policies own = {.n = 0};
	struct policy shadowed;
	const char *shipped;
	int r = lab_policies_read(&own, scenario->ini, err);

	for (unsigned int n = 0; !r && (shipped = policy_shipped_name(n)); n++)
		r = play_named(results, scenario, table, name, shipped, file,
			       overrides, err);
	for (size_t n = 0; n < own.n && !r; n++) {
		if (!policy_shipped(&shadowed, own.list[n].name))
			r = play_named(results, scenario, table, name,
				       own.list[n].name, file, overrides, err);
	}
	return r;
}

int lab_play(struct lab_results *results, const struct scenario *scenario,
	     const char *name, const char *file,
	     const struct lab_overrides *overrides, struct conf_error *err)
{
	int r = 0;

	for (size_t i = 0; i < scenario->n_tables && !r; i++) {
		const struct scenario_table *table = &scenario->tables[i];

		if (overrides->every_policy)
			r = play_every_policy(results, scenario, table, name,
					      file, overrides, err);
		else if (overrides->n_policies == 0)
			r = play_own_policies(results, scenario, table, name,
					      file, overrides, err);
		for (size_t n = 0; n < overrides->n_policies && !r; n++)
			r = play_named(results, scenario, table, name,
				       overrides->policies[n], file, overrides,
				       err);
	}
	return r;
}
