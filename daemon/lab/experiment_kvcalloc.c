/* SPDX-License-Identifier: MIT */
#include "lab/experiment_kvcalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/experiment_model.h"
#include "lab/median.h"
#include "mm/kvalloc.h"
#include "mm/node.h"

/* The page array of the source: one block of order 3. */
#define ARRAY_BYTES KIB(32)
#define OP_EVERY_NS NSEC_PER_MSEC

static const uint32_t payload_bytes[KVCALLOC_PAYLOADS] = {4096, 8192, 16384,
							  32768, 65536};

/* tests/data/binder-kvcalloc.tsv: time per operation, kv and contiguous. */
static const struct {
	uint32_t kv_ns, k_ns;
} source[KVCALLOC_PAYLOADS] = {
	{30926, 39070},   {42667, 49476},   {67586, 76866},
	{116496, 134022}, {265482, 281004},
};

static const char *const state_names[] = {
	[KVCALLOC_PLENTY] = "plenty: nine tenths of the node are free",
	[KVCALLOC_LOW] = "low: one page in eight is free, the rest can move",
	[KVCALLOC_STARVED] = "starved: an unmovable page in every eight",
};

/* What a buffer holds while it lives. */
struct live {
	struct kv_block array;
	uint64_t pfns[65536 / 4096];
	unsigned int n_pages;
};

/* The same load, on a fresh node each time. */
struct load {
	struct node *node;
	struct kvalloc kv;
	struct live *lives;
	uint64_t *op_ns;
	uint64_t now_ns;
};

static void prepare_node(struct node *node, enum kvcalloc_state state)
{
	uint64_t total_pages;
	struct node_page_counts counts;

	node_page_counts(node, &counts);
	total_pages = counts.total_pages;
	if (state == KVCALLOC_LOW) {
		node_pressure_low_memory(node);
	} else if (state == KVCALLOC_STARVED) {
		/* What stays between the unmovable pages is at most order 2;
		 * page cache and processes fill most of it, in turn. */
		node_pressure_fragment(node, 2);
		for (unsigned int i = 0; i < 8; i++) {
			(void)node_occupy(node, NODE_OCCUPANT_FILE,
					  total_pages / 24);
			(void)node_occupy(node, NODE_OCCUPANT_ANON,
					  total_pages / 24);
		}
	}
}

static int new_node(const struct kvcalloc_params *p, enum kvcalloc_state state,
		    struct node **ret, struct strbuf *why)
{
	struct node_params params = {
		.size_bytes = p->node_bytes,
		.occupants = "kernel:10%",
		.swap = NODE_SWAP_NONE,
		.costs = p->costs,
		.seed = p->seed,
	};
	struct node_error err;
	int r = node_new(ret, &params, &err);

	if (r == NODE_E_INVALID) {
		strbuf_append(why, "%s", err.text);
		return -EINVAL;
	}
	if (r == 0)
		prepare_node(*ret, state);
	return r;
}

static void end_live(struct load *load, struct node_request *req,
		     struct live *live)
{
	for (unsigned int i = 0; i < live->n_pages; i++)
		node_free_block(load->node, req, live->pfns[i], 0);
	live->n_pages = 0;
	kvalloc_release(&load->kv, req, &live->array);
}

/* Return: 0, KVALLOC_E_NO_MEMORY (nothing is held), or -ENOMEM. */
static int begin_live(struct load *load, struct node_request *req,
		      struct live *live, unsigned int n_pages)
{
	int r = kvalloc(&load->kv, req, ARRAY_BYTES, &live->array);

	while (r == 0 && live->n_pages < n_pages) {
		if (node_alloc(load->node, req, 0, GFP_LOW_ORDER,
			       &live->pfns[live->n_pages]))
			r = KVALLOC_E_NO_MEMORY;
		else
			live->n_pages++;
	}
	if (r)
		end_live(load, req, live);
	return r;
}

/* One operation: a buffer goes, the next one comes. */
static int operate(struct load *load, struct live *live, unsigned int n_pages,
		   struct kvcalloc_cell *cell, uint64_t *ret_ns)
{
	struct node_request req = {.start_ns = load->now_ns};
	int r;

	end_live(load, &req, live);
	r = begin_live(load, &req, live, n_pages);
	if (r < 0)
		return r;
	cell->n_done += r == 0;
	cell->n_failed += r != 0;
	cell->stall_ns += req.stall_ns;
	*ret_ns = req.spent_ns;
	load->now_ns += MAX(OP_EVERY_NS, req.spent_ns);
	node_advance(load->node, load->now_ns);
	return 0;
}

static int run_load(const struct kvcalloc_params *p, struct load *load,
		    unsigned int n_pages, struct kvcalloc_cell *cell)
{
	uint64_t kills = node_vmstat(load->node, "oom_kill"), sum = 0;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < p->n_ops; i++) {
		r = operate(load, &load->lives[i % p->n_live], n_pages, cell,
			    &load->op_ns[i]);
		sum += load->op_ns[i];
	}
	if (r)
		return r;
	cell->per_op_ns = sum / p->n_ops;
	cell->median_ns = median_u64(load->op_ns, p->n_ops);
	cell->n_contiguous = load->kv.n_contiguous;
	cell->n_fallback = load->kv.n_fallback;
	cell->n_oom_kills = node_vmstat(load->node, "oom_kill") - kills;
	return 0;
}

static int run_cell(const struct kvcalloc_params *p, enum kvcalloc_state state,
		    enum kvcalloc_mode mode, unsigned int n_pages,
		    struct kvcalloc_cell *cell, struct strbuf *why)
{
	struct load load = {0};
	int r = new_node(p, state, &load.node, why);

	if (r)
		return r;
	kvalloc_init(&load.kv, load.node,
		     mode == KVCALLOC_KV ? KVALLOC_CONTIGUOUS_FIRST
					 : KVALLOC_CONTIGUOUS_ONLY);
	load.lives = calloc(p->n_live, sizeof(*load.lives));
	load.op_ns = calloc(p->n_ops, sizeof(*load.op_ns));
	r = load.lives && load.op_ns ? run_load(p, &load, n_pages, cell)
				     : -ENOMEM;
	for (unsigned int i = 0; load.lives && i < p->n_live; i++)
		end_live(&load, NULL, &load.lives[i]);
	kvalloc_fini(&load.kv);
	free(load.lives);
	free(load.op_ns);
	node_free(load.node);
	return r;
}

int kvcalloc_run(struct kvcalloc_result *result, struct strbuf *why)
{
	int r = 0;

	memset(result->cell, 0, sizeof(result->cell));
	for (unsigned int s = 0; r == 0 && s < KVCALLOC_STATES; s++)
		for (unsigned int i = 0; r == 0 && i < KVCALLOC_PAYLOADS; i++)
			for (unsigned int m = 0; r == 0 && m < KVCALLOC_MODES;
			     m++)
				r = run_cell(&result->params, s, m,
					     payload_bytes[i] / 4096,
					     &result->cell[s][i][m], why);
	return r;
}

static double ratio(const struct kvcalloc_cell *cells)
{
	return cells[KVCALLOC_KV].per_op_ns
		       ? (double)cells[KVCALLOC_CONTIGUOUS].per_op_ns /
				 (double)cells[KVCALLOC_KV].per_op_ns
		       : 0;
}

/*
 * The source timed whole transactions. The ratio if the allocation's difference
 * came on top of the source's faster one.
 */
static double ratio_in_source(const struct kvcalloc_result *r,
			      unsigned int state, unsigned int payload)
{
	const struct kvcalloc_cell *c = r->cell[state][payload];
	double kv_ns = source[payload].kv_ns;

	return (kv_ns + (double)c[KVCALLOC_CONTIGUOUS].per_op_ns -
		(double)c[KVCALLOC_KV].per_op_ns) /
	       kv_ns;
}

static void report_state(const struct kvcalloc_result *r, unsigned int state,
			 struct report *report)
{
	const struct report_context context = {
		.policy = "none (order 3, and pages of LOW_ORDER)",
		.seed = r->params.seed,
		.profile = r->params.profile,
		.kind = "modelled",
	};
	char title[160];

	(void)snprintf(title, sizeof(title),
		       "%s; %u operations, %u buffers alive, node of %" PRIu64
		       " MiB",
		       state_names[state], r->params.n_ops, r->params.n_live,
		       r->params.node_bytes >> 20);
	report_table(report, title, &context,
		     "payload|array|failed|OOM kills|contiguous|single pages|"
		     "stall ms|mean us|median us|time ratio|in the source's "
		     "operation|source ratio");
	for (unsigned int i = 0; i < KVCALLOC_PAYLOADS; i++) {
		for (unsigned int m = 0; m < KVCALLOC_MODES; m++) {
			const struct kvcalloc_cell *c = &r->cell[state][i][m];
			char ratios[64] = "||";

			if (m == KVCALLOC_CONTIGUOUS)
				(void)snprintf(ratios, sizeof(ratios),
					       "%.2f|%.2f|%.2f",
					       ratio(r->cell[state][i]),
					       ratio_in_source(r, state, i),
					       (double)source[i].k_ns /
						       source[i].kv_ns);
			report_row(report,
				   "%u|%s|%" PRIu64 "|%" PRIu64 "|%" PRIu64
				   "|%" PRIu64 "|%.1f|%.1f|%.1f|%s",
				   payload_bytes[i],
				   m == KVCALLOC_KV ? "kv" : "contiguous only",
				   c->n_failed, c->n_oom_kills, c->n_contiguous,
				   c->n_fallback, (double)c->stall_ns / 1e6,
				   (double)c->per_op_ns / 1e3,
				   (double)c->median_ns / 1e3, ratios);
		}
	}
}

/* Smallest and largest ratio over the payloads of a state. */
static void ratio_range(const struct kvcalloc_result *r, unsigned int state,
			double *ret_min, double *ret_max)
{
	*ret_min = *ret_max = ratio(r->cell[state][0]);
	for (unsigned int i = 1; i < KVCALLOC_PAYLOADS; i++) {
		*ret_min = MIN(*ret_min, ratio(r->cell[state][i]));
		*ret_max = MAX(*ret_max, ratio(r->cell[state][i]));
	}
}

/* Return: how many payloads have an OOM kill, and the kills in all. */
static unsigned int payloads_with_kills(const struct kvcalloc_result *r,
					unsigned int mode, uint64_t *ret_kills)
{
	unsigned int n = 0;

	*ret_kills = 0;
	for (unsigned int i = 0; i < KVCALLOC_PAYLOADS; i++) {
		uint64_t kills = r->cell[KVCALLOC_STARVED][i][mode].n_oom_kills;

		*ret_kills += kills;
		n += kills > 0;
	}
	return n;
}

static void conclude(const struct kvcalloc_result *r, struct report *report)
{
	uint64_t k_kills, kv_kills;
	unsigned int n_k =
		payloads_with_kills(r, KVCALLOC_CONTIGUOUS, &k_kills);
	unsigned int n_kv = payloads_with_kills(r, KVCALLOC_KV, &kv_kills);
	double min, max;

	report_conclude(report,
			"Where order 3 has run out, contiguous-only kills "
			"%" PRIu64 " processes (at %u of %u payloads), kv "
			"%" PRIu64 " (at %u).",
			k_kills, n_k, KVCALLOC_PAYLOADS, kv_kills, n_kv);
	ratio_range(r, KVCALLOC_LOW, &min, &max);
	report_conclude(report,
			"In low memory that can be compacted an operation "
			"takes %.2f to %.2f times as long contiguous-only; on "
			"top of the source's whole transactions that would be "
			"%.2f at 4 KiB down to %.2f at 64 KiB (source: 1.26 "
			"down to 1.06).",
			min, max, ratio_in_source(r, KVCALLOC_LOW, 0),
			ratio_in_source(r, KVCALLOC_LOW,
					KVCALLOC_PAYLOADS - 1));
	ratio_range(r, KVCALLOC_PLENTY, &min, &max);
	report_conclude(report,
			"With plenty free the ratio is %.2f to %.2f: kv %s "
			"there.",
			min, max,
			max < 1.02 && min > 0.98 ? "gains nothing"
			: min > 1                ? "gains as well"
						 : "costs something");
}

void kvcalloc_report(const struct kvcalloc_result *result,
		     struct report *report)
{
	for (unsigned int s = 0; s < KVCALLOC_STATES; s++)
		report_state(result, s, report);
	report_note(report,
		    "The source's two tables carry the same label and nobody "
		    "said which is which; its ratio is that of the second to "
		    "the first. Its \"throughput\" multiplies by the number of "
		    "iterations and is left out.");
	conclude(result, report);
}

static int run(const struct experiment_options *options, struct report *report,
	       struct strbuf *why)
{
	struct kvcalloc_result result = {
		.params = {.seed = options->seed,
			   .node_bytes = MIB(512),
			   .n_ops = 400,
			   .n_live = 64},
	};
	int r;

	result.params.profile = experiment_profile(&result.params.costs);
	r = kvcalloc_run(&result, why);
	if (r == 0)
		kvcalloc_report(&result, report);
	return r;
}

const struct experiment experiment_kvcalloc = {
	.name = "binder-kvcalloc",
	.title = "contiguous first, non-contiguous if need be (2024)",
	.run = run,
};
