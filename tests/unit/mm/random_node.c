/* SPDX-License-Identifier: MIT */
#include "random_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "mm/node.h"

enum { MAX_LIVE = 1500 };

struct life {
	struct node *node;
	struct node_request req;
	struct rng rng;
	unsigned int n_live;
	struct {
		uint64_t pfn;
		unsigned int order;
	} live[MAX_LIVE];
	struct random_result result;
};

static uint64_t draw(struct life *l, uint64_t n)
{
	return rng_below(&l->rng, n);
}

static void mix(struct life *l, uint64_t value)
{
	l->result.hash = (l->result.hash ^ value) * UINT64_C(0x100000001b3);
}

static uint32_t draw_gfp(struct life *l)
{
	static const uint32_t flags[] = {
		GFP_HIGH_ORDER,
		GFP_MID_ORDER,
		GFP_LOW_ORDER,
		GFP_LOW_ORDER | GFP_RETRY_MAYFAIL,
		GFP_MID_ORDER | GFP_NORETRY,
		GFP_LOW_ORDER | GFP_NOFAIL,
		GFP_LOW_ORDER | GFP_MOVABLE,
		GFP_LOW_ORDER | GFP_RECLAIMABLE,
	};

	return flags[draw(l, ARRAY_SIZE(flags))];
}

static void allocate(struct life *l)
{
	unsigned int order = (unsigned int)draw(l, 3)
				     ? (unsigned int)draw(l, 5)
				     : (unsigned int)draw(l, 11);
	uint64_t pfn = UINT64_MAX;

	if (l->n_live == MAX_LIVE)
		return;
	if (draw(l, 4) == 0) {
		memset(&l->req, 0, sizeof(l->req));
		l->req.cpu = (unsigned int)draw(l, 3);
		l->req.start_ns = node_now_ns(l->node) + draw(l, 3000000);
	}
	if (node_alloc(l->node, &l->req, order, draw_gfp(l), &pfn) == 0) {
		l->live[l->n_live].pfn = pfn;
		l->live[l->n_live++].order = order;
		l->result.n_allocs++;
	}
	mix(l, pfn);
	mix(l, l->req.spent_ns);
}

static void release(struct life *l)
{
	unsigned int i;

	if (l->n_live == 0)
		return;
	i = (unsigned int)draw(l, l->n_live);
	node_free_block(l->node, draw(l, 2) ? &l->req : NULL, l->live[i].pfn,
			l->live[i].order);
	l->live[i] = l->live[--l->n_live];
}

static void change_occupants(struct life *l)
{
	enum node_occupant kind = (enum node_occupant)draw(l, NODE_OCCUPANTS);
	enum node_occupant to = (enum node_occupant)draw(l, NODE_OCCUPANTS);

	switch (draw(l, 5)) {
	case 0:
		mix(l, node_occupy(l->node, kind, draw(l, 300)));
		break;
	case 1:
		mix(l, node_vacate(l->node, kind, draw(l, 300)));
		break;
	case 2:
		mix(l, node_release_every(l->node, kind,
					  2 + (unsigned int)draw(l, 15)));
		break;
	case 3:
		mix(l, node_convert(l->node, kind, to));
		break;
	default:
		mix(l, node_occupy_fill(l->node, kind, draw(l, MIB(4))));
		break;
	}
}

static void press(struct life *l)
{
	switch (draw(l, 6)) {
	case 0:
		node_pressure_low_memory(l->node);
		break;
	case 1:
		node_pressure_fragment(l->node, (unsigned int)draw(l, 11));
		break;
	case 2:
		node_pressure_fill(l->node, draw(l, MIB(8)));
		break;
	default:
		node_pressure_release(l->node);
		break;
	}
}

static void step(struct life *l)
{
	uint64_t what = draw(l, 1000);

	if (what < 500)
		allocate(l);
	else if (what < 960)
		release(l);
	else if (what < 980)
		node_advance(l->node, node_now_ns(l->node) + draw(l, 20000000));
	else if (what < 997)
		change_occupants(l);
	else
		press(l);
}

struct random_result random_node_run(uint64_t seed, uint64_t n_steps)
{
	static struct life life;
	struct life *l = &life;
	struct node_params params = {
		.size_bytes = MIB(16),
		.occupants = "file:20% active:5% dirty:2% anon:30% slab:4% "
			     "kernel:6% mlocked:2%",
		.swap = seed % 3 == 0   ? NODE_SWAP_ZRAM
			: seed % 3 == 1 ? NODE_SWAP_NONE
					: NODE_SWAP_DISK,
		.compaction_proactiveness = 20,
		.n_cpus = 3,
		.seed = seed,
	};
	struct node_error err;

	memset(l, 0, sizeof(*l));
	l->result.hash = UINT64_C(0xcbf29ce484222325);
	l->result.failed_step = UINT64_MAX;
	rng_seed(&l->rng, seed);
	if (node_new(&l->node, &params, &err))
		abort();
	for (uint64_t i = 0; i < n_steps; i++) {
		step(l);
		if (!node_check(l->node, &l->result.what)) {
			l->result.failed_step = i;
			break;
		}
	}
	for (unsigned int i = 0; i < node_vmstat_count(); i++)
		mix(l, node_vmstat_value(l->node, i));
	l->result.n_stalls = node_vmstat(l->node, "allocstall_normal");
	l->result.n_kills = node_vmstat(l->node, "oom_kill");
	l->result.n_migrated = node_vmstat(l->node, "pgmigrate_success");
	l->result.n_reclaimed = node_vmstat(l->node, "pgsteal_direct") +
				node_vmstat(l->node, "pgsteal_kswapd");
	l->node = node_free(l->node);
	return l->result;
}
