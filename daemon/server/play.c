/* SPDX-License-Identifier: MIT */
#include "server/play.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "conf/scenario.h"
#include "mm/node.h"
#include "server/live.h"
#include "server/load.h"
#include "server/outcome.h"
#include "server/server.h"
#include "server/stats.h"
#include "server/trace.h"

/* Steps without a pause between them, before the loop serves others again. */
#define STEPS_PER_ROUND 64u

struct play {
	struct server *server;
	struct scenario *scenario;
	struct loop_timer timer;
	void (*over)(void *ctx);
	void *ctx;
	struct rng rng;
	size_t at;       /* index of the step in hand */
	size_t end;      /* of the last table's steps */
	uint64_t n_done; /* repetitions of an alloc that were done */
	uint64_t n_sizes_used;
	struct {
		size_t step;
		uint64_t n_left;
	} repeat[SCENARIO_DEPTH_MAX];
	unsigned int depth;
	struct buffer **buffers; /* oldest first */
	size_t n_buffers;
	size_t capacity;
};

static void give_back(struct play *p, size_t i)
{
	struct buffer *b = p->buffers[i];

	for (size_t j = i + 1; j < p->n_buffers; j++)
		p->buffers[j - 1] = p->buffers[j];
	p->n_buffers--;
	live_return_blocks(p->server, b, HEAP_FINISH_POOL);
}

struct play *play_free(struct play *play)
{
	if (!play)
		return NULL;
	loop_timer_clear(play->server->loop, &play->timer);
	while (play->n_buffers)
		give_back(play, play->n_buffers - 1);
	free(play->buffers);
	scenario_free(play->scenario);
	free(play);
	return NULL;
}

static bool keep(struct play *p, struct buffer *b)
{
	if (p->n_buffers == p->capacity) {
		size_t capacity = p->capacity ? 2 * p->capacity : 64;
		struct buffer **more =
			realloc(p->buffers, capacity * sizeof(*more));

		if (!more)
			return false;
		p->buffers = more;
		p->capacity = capacity;
	}
	p->buffers[p->n_buffers++] = b;
	return true;
}

/* A failed allocation is what a scenario may well be for: it goes on. */
static void alloc_one(struct play *p, const struct scenario_step *step)
{
	struct server *s = p->server;
	struct heap *heap = heap_set_get(s->heaps, 0);
	struct heap_request req = {
		.uid = s->uid,
		.len_bytes = scenario_size(step, p->n_sizes_used++, &p->rng),
		.start_ns = server_request_time(s),
	};
	struct buffer *b = NULL;
	int r = heap_alloc(heap, &req, &b);

	trace_alloc(s->trace, heap, req.uid, &req, b,
		    r ? outcome_errno(OUTCOME_OF_HEAP, r) : 0);
	if (!r && !keep(p, b))
		live_return_blocks(s, b, HEAP_FINISH_NODE);
}

static void free_some(struct play *p, const struct scenario_step *s)
{
	for (uint64_t n = 0; n < s->count && p->n_buffers > s->keep; n++) {
		size_t i = 0;

		if (s->which == SCENARIO_NEWEST)
			i = p->n_buffers - 1;
		else if (s->which == SCENARIO_RANDOM)
			i = rng_below(&p->rng, p->n_buffers);
		give_back(p, i);
	}
}

static void press(struct play *p, const struct scenario_step *s)
{
	struct node *node = p->server->node;

	switch (s->pressure) {
	case SCENARIO_PRESSURE_LOW_MEMORY:
		node_pressure_low_memory(node);
		break;
	case SCENARIO_PRESSURE_FILL:
		node_pressure_fill(node, s->bytes);
		break;
	case SCENARIO_PRESSURE_FRAGMENT:
		node_pressure_fragment(node, (unsigned int)s->max_order);
		break;
	case SCENARIO_PRESSURE_RELEASE:
		node_pressure_release(node);
		break;
	}
}

/* play_new() has checked the name. */
static enum node_occupant kind_of(const struct conf_entry *entry)
{
	enum node_occupant kind = NODE_OCCUPANT_FILE;
	int r = node_occupant_parse(entry->value, &kind);

	assert(!r);
	(void)r;
	return kind;
}

static void occupy(struct play *p, const struct scenario_step *s)
{
	struct node *node = p->server->node;
	uint64_t page = node_params(node)->page_size_bytes;

	if (s->verb == SCENARIO_VACATE)
		node_vacate(node, kind_of(s->kind), s->bytes / page);
	else if (s->has_leave)
		node_occupy_fill(node, kind_of(s->kind), s->bytes);
	else
		node_occupy(node, kind_of(s->kind), s->bytes / page);
}

static void repeat(struct play *p, const struct scenario_step *s)
{
	p->repeat[p->depth].step = p->at;
	p->repeat[p->depth++].n_left = s->count;
}

/* Back to the first step after the repeat, or on. */
static void end_repeat(struct play *p)
{
	if (--p->repeat[p->depth - 1].n_left)
		p->at = p->repeat[p->depth - 1].step;
	else
		p->depth--;
}

/* Does the step in hand, or one repetition of it. Return: the pause after. */
static uint64_t do_step(struct play *p)
{
	const struct scenario_step *s = &p->scenario->steps[p->at];
	struct node *node = p->server->node;
	uint64_t pause_ns = 0;

	switch (s->verb) {
	case SCENARIO_ALLOC:
		alloc_one(p, s);
		if (++p->n_done < s->count)
			return s->time_ns;
		p->n_done = 0;
		break;
	case SCENARIO_FREE:
		free_some(p, s);
		break;
	case SCENARIO_SLEEP:
		pause_ns = s->time_ns;
		break;
	case SCENARIO_PRESSURE:
		press(p, s);
		break;
	case SCENARIO_OCCUPY:
	case SCENARIO_VACATE:
		occupy(p, s);
		break;
	case SCENARIO_RELEASE_EVERY:
		node_release_every(node, kind_of(s->kind), (unsigned int)s->n);
		break;
	case SCENARIO_CONVERT:
		node_convert_some(node, kind_of(s->kind), kind_of(s->to),
				  (unsigned int)s->n);
		break;
	case SCENARIO_REPEAT:
		repeat(p, s);
		break;
	case SCENARIO_END:
		end_repeat(p);
		break;
	case SCENARIO_VERBS:
		assert(false && "not a step");
	}
	p->at++;
	/* The common steps are followed by those of the first table. */
	if (p->at == p->scenario->n_common_steps)
		p->at = p->scenario->tables[0].first_step;
	return pause_ns;
}

static void on_timer(void *ctx)
{
	struct play *p = ctx;
	uint64_t pause_ns = 0;

	server_advance(p->server);
	for (unsigned int n = 0;
	     n < STEPS_PER_ROUND && p->at < p->end && !pause_ns; n++)
		pause_ns = do_step(p);
	stats_touch(p->server);
	if (p->at < p->end)
		loop_timer_set(p->server->loop, &p->timer,
			       clock_now_ns() + pause_ns);
	else
		p->over(p->ctx);
}

static int check_kind(const struct conf_entry *entry, struct conf_error *err)
{
	enum node_occupant kind;

	if (!entry || node_occupant_parse(entry->value, &kind) == 0)
		return 0;
	(void)conf_entry_error(entry, err, "\"%s\" is no kind of occupant",
			       entry->value);
	return SERVER_E_CONFIG;
}

static int read_scenario(struct play *p, int fd, struct conf_error *err)
{
	char *text = NULL;
	size_t len = 0;
	int r = load_read_fd(fd, "scenario", &text, &len, err);

	if (r)
		return r;
	r = scenario_parse(&p->scenario, "scenario", text, len, err);
	free(text);
	if (r)
		return r > 0 ? SERVER_E_CONFIG : err_trace(r);
	for (size_t i = 0; !r && i < p->scenario->n_steps; i++) {
		r = check_kind(p->scenario->steps[i].kind, err);
		if (!r)
			r = check_kind(p->scenario->steps[i].to, err);
	}
	return r;
}

int play_new(struct play **ret, struct server *server, int fd,
	     void (*over)(void *ctx), void *ctx, struct conf_error *err)
{
	struct play *p = calloc(1, sizeof(*p));
	const struct scenario_table *table;
	int r;

	if (!p)
		return err_raise(-ENOMEM);
	p->server = server;
	p->over = over;
	p->ctx = ctx;
	loop_timer_init(&p->timer, on_timer, p);
	r = read_scenario(p, fd, err);
	if (r) {
		play_free(p);
		return r;
	}
	rng_seed(&p->rng, p->scenario->seed);
	table = &p->scenario->tables[0];
	p->at = p->scenario->n_common_steps ? 0 : table->first_step;
	p->end = table->first_step + table->n_steps;
	loop_timer_set(server->loop, &p->timer, 0);
	*ret = p;
	return 0;
}
