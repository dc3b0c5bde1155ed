/* SPDX-License-Identifier: MIT */
#include "mm/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mm/buddy.h"
#include "mm/freelist.h"
#include "mm/kthread.h"
#include "mm/layout.h"
#include "mm/occupants.h"
#include "mm/pcp.h"
#include "mm/slowpath.h"
#include "mm/watermark.h"
#include "mm/zone.h"

#define WATERMARK_BOOST_FACTOR 15000u /* mm/page_alloc.c */
#define PAGE_SIZE_DEFAULT      4096u

static int check_params(struct node_params *p, struct node_error *err)
{
	static const struct cost_profile no_costs;

	if (p->page_size_bytes == 0)
		p->page_size_bytes = PAGE_SIZE_DEFAULT;
	if (p->page_size_bytes != 4096 && p->page_size_bytes != 16384 &&
	    p->page_size_bytes != 65536)
		return layout_error(err, "page_size: %u; allowed: 4K, 16K, 64K",
				    p->page_size_bytes);
	if (p->n_cpus == 0)
		p->n_cpus = 1;
	if (p->n_cpus > NODE_CPUS_MAX)
		return layout_error(err, "n_cpus: %u; allowed: 1 to %u",
				    p->n_cpus, NODE_CPUS_MAX);
	if (p->compaction_proactiveness > 100)
		return layout_error(err,
				    "compaction_proactiveness: %u; allowed: 0 "
				    "to 100",
				    p->compaction_proactiveness);
	if (p->watermark_boost_factor == 0)
		p->watermark_boost_factor = WATERMARK_BOOST_FACTOR;
	if ((unsigned int)p->swap > NODE_SWAP_DISK)
		return layout_error(err, "swap: allowed: none, zram, disk");
	if (!memchr(p->occupants, '\0', sizeof(p->occupants)))
		return layout_error(err, "occupants: too long");
	if (memcmp(&p->costs, &no_costs, sizeof(no_costs)) == 0)
		p->costs = cost_profile_default();
	return 0;
}

/* The occupants of a node that was made from a size. */
static int occupy_new(struct node *node, struct node_error *err)
{
	struct layout_occupants o;
	struct node_page_counts counts;
	int r;

	r = layout_parse_occupants(node->params.occupants, node->n_frames,
				   node->params.page_size_bytes, &o, err);
	if (r)
		return r;
	if (o.rest >= 0)
		return layout_error(err,
				    "occupants: %s has no amount; allowed: "
				    "only with a snapshot",
				    node_occupant_name(
					    (enum node_occupant)o.rest));
	for (unsigned int i = 0; i < NODE_OCCUPANTS; i++)
		(void)node_occupy(node, (enum node_occupant)i, o.pages[i]);
	/* a system that has just started: no reclaim or boost is pending */
	for (unsigned int i = 0; i < node->n_zones; i++) {
		node->zones[i].wmark_boost = 0;
		node->zones[i].boosted = false;
	}
	node_page_counts(node, &counts);
	return 0;
}

static void setup_watermarks(struct node *node)
{
	uint64_t bytes = node->params.min_free_bytes;
	uint64_t managed = 0;

	for (unsigned int i = 0; i < node->n_zones; i++)
		managed += node->zones[i].managed_pages;
	if (bytes == 0)
		bytes = watermark_min_free_bytes(managed *
						 node->params.page_size_bytes);
	watermark_setup(node, bytes);
	for (unsigned int i = 0; i < node->n_zones; i++)
		pcp_setup(&node->zones[i]);
	node->swap_pages =
		node->params.swap_bytes
			? node->params.swap_bytes / node->params.page_size_bytes
			: managed;
}

int node_new(struct node **ret, const struct node_params *params,
	     struct node_error *err)
{
	_cleanup_(node_freep) struct node *node = NULL;
	int r;

	node = calloc(1, sizeof(*node));
	if (!node)
		return err_raise(-ENOMEM);
	node->params = *params;
	r = check_params(&node->params, err);
	if (r)
		return r;
	node->costs = node->params.costs;
	node->n_cpus = node->params.n_cpus;
	node->kswapd = calloc(1, sizeof(*node->kswapd));
	node->kcompactd = calloc(1, sizeof(*node->kcompactd));
	node->direct_cc = calloc(1, sizeof(*node->direct_cc));
	if (!node->kswapd || !node->kcompactd || !node->direct_cc)
		return err_raise(-ENOMEM);
	if (node->params.snapshot)
		r = layout_from_snapshot(node, err);
	else
		r = layout_from_size(node, err);
	if (r)
		return r;
	setup_watermarks(node);
	kthread_init(node);
	r = node->params.snapshot ? layout_fill_from_snapshot(node, err)
				  : occupy_new(node, err);
	if (r)
		return r;
	node->params.snapshot = NULL;
	*ret = TAKE_PTR(node);
	return 0;
}

struct node *node_free(struct node *node)
{
	if (!node)
		return NULL;
	for (unsigned int i = 0; i < node->n_zones; i++)
		free(node->zones[i].pcp);
	free(node->state);
	free(node->links);
	free(node->blocks);
	free(node->kswapd);
	free(node->kcompactd);
	free(node->direct_cc);
	free(node);
	return NULL;
}

const struct node_params *node_params(const struct node *node)
{
	return &node->params;
}

uint64_t node_now_ns(const struct node *node)
{
	return node->now_ns;
}

void node_advance(struct node *node, uint64_t now_ns)
{
	if (now_ns <= node->now_ns)
		return;
	node_run_threads(node, now_ns);
	node->now_ns = now_ns;
}

/* The task of one call: it goes on where the request's last call ended. */
static inline void begin_call(struct task *task, struct node *node,
			      struct node_request *req)
{
	if (!req->begun) {
		req->begun = true;
		/* a request that waited in a queue begins now */
		req->start_ns = MAX(req->start_ns, node->now_ns);
	}
	node->now_ns = MAX(node->now_ns, req->start_ns + req->spent_ns);
	node_run_threads(node, node->now_ns);
	*task = (struct task){
		.cpu = req->cpu < node->n_cpus ? req->cpu
					       : req->cpu % node->n_cpus,
		.req = req,
		.base_ns = req->start_ns,
		.spent_ps = req->spent_ps,
		.captured_pfn = NO_PFN,
	};
}

static void end_call(struct node *node, struct node_request *req,
		     const struct task *task)
{
	req->spent_ps = task->spent_ps;
	req->spent_ns = req->spent_ps / 1000;
	node->now_ns = MAX(node->now_ns, req->start_ns + req->spent_ns);
}

/* prep_new_page() */
static void prepare(struct node *node, struct task *task,
		    const struct alloc_context *ac, uint32_t pfn)
{
	uint64_t per_page = node->costs.prep_page_ps;

	if (ac->gfp & GFP_ZERO)
		per_page += node->costs.zero_page_ps;
	task_charge(task, per_page << ac->order);
	node->state[pfn] = frame_make(FRAME_BLOCK, ac->order, 0);
	node->allocated_pages += 1u << ac->order;
	count_event(node, VMSTAT_pgalloc, UINT64_C(1) << ac->order);
}

int node_alloc(struct node *node, struct node_request *req, unsigned int order,
	       uint32_t gfp, uint64_t *ret_pfn)
{
	struct task task;
	const struct alloc_context ac = {
		.order = order,
		.gfp = gfp,
		.mt = freelist_migrate_type(gfp),
		.highest_zone = node->n_zones - 1,
	};
	uint32_t pfn;

	assert(order <= NODE_MAX_ORDER);
	begin_call(&task, node, req);
	task_charge(&task, node->costs.alloc_entry_ps);
	pfn = freelist_alloc(&task, node, &ac, freelist_fast_flags(node, gfp));
	if (pfn == NO_PFN)
		pfn = slowpath_alloc(&task, node, &ac, req);
	if (pfn == NO_PFN) {
		req->last_fallback = gfp & GFP_DIRECT_RECLAIM
					     ? NODE_FALLBACK_RECLAIM
					     : freelist_reason(node, &ac);
		count_event(node, VMSTAT_model_alloc_fail, 1);
		end_call(node, req, &task);
		return NODE_E_NO_BLOCK;
	}
	prepare(node, &task, &ac, pfn);
	end_call(node, req, &task);
	*ret_pfn = pfn;
	return 0;
}

/* __free_pages() */
static void free_block(struct node *node, struct task *task, uint32_t pfn,
		       unsigned int order)
{
	struct zone *zone = node_zone_of(node, pfn);

	assert(pfn < node->n_frames);
	assert(node->state[pfn] == frame_make(FRAME_BLOCK, order, 0));
	node->allocated_pages -= 1u << order;
	count_event(node, VMSTAT_pgfree, UINT64_C(1) << order);
	task_charge(task, node->costs.free_entry_ps);
	node->state[pfn] = FRAME_BODY;
	if (pcp_allows(order)) {
		pcp_free(task, zone, pfn, order);
		return;
	}
	task_charge(task, node->costs.zone_lock_ps);
	buddy_free(task, zone, pfn, order, block_mt(node, pfn));
}

void node_free_block(struct node *node, struct node_request *req, uint64_t pfn,
		     unsigned int order)
{
	struct task task;

	if (req)
		begin_call(&task, node, req);
	else
		task = (struct task){.base_ns = node->now_ns,
				     .captured_pfn = NO_PFN};
	free_block(node, &task, (uint32_t)pfn, order);
	if (req)
		end_call(node, req, &task);
}

uint64_t node_count_available(const struct node *node, unsigned int order,
			      uint32_t gfp, uint64_t upto)
{
	unsigned int top = node->n_zones - 1;
	uint64_t n = 0;

	assert(order <= NODE_MAX_ORDER);
	(void)gfp; /* the slow path's free lists go down to min for all */
	for (unsigned int i = 0; i <= top && n < upto; i++) {
		const struct zone *zone = &node->zones[i];
		uint64_t keep = (uint64_t)zone_wmark(zone, WMARK_MIN) +
				zone->lowmem_reserve[top];
		uint64_t blocks = 0, above;

		for (unsigned int o = order; o < NODE_ORDERS; o++)
			for (unsigned int mt = 0; mt < MT_COUNT; mt++)
				blocks += (uint64_t)zone->free_blocks[mt][o]
					  << (o - order);
		above = zone->free_pages > keep ? zone->free_pages - keep : 0;
		n += MIN(blocks, above >> order);
	}
	return MIN(n, upto);
}

void node_set_shrinker(struct node *node, const struct node_shrinker_ops *ops,
		       void *ctx)
{
	node->shrinker_ops = ops;
	node->shrinker_ctx = ctx;
}

unsigned int node_n_zones(const struct node *node)
{
	return node->n_zones;
}

void node_zone_stats(const struct node *node, unsigned int i,
		     struct node_zone_stats *ret)
{
	const struct zone *zone = &node->zones[i];

	assert(i < node->n_zones);
	*ret = (struct node_zone_stats){
		.size_pages = zone->managed_pages,
		.free_pages = zone->free_pages,
		.wmark_min_pages = zone->wmark[WMARK_MIN],
		.wmark_low_pages = zone->wmark[WMARK_LOW],
		.wmark_high_pages = zone->wmark[WMARK_HIGH],
		.wmark_boost_pages = zone->wmark_boost,
	};
	memcpy(ret->name, zone->name, sizeof(ret->name));
	for (unsigned int cpu = 0; cpu < node->n_cpus; cpu++)
		ret->pcp_pages += zone->pcp[cpu].count;
	for (unsigned int o = 0; o < NODE_ORDERS; o++) {
		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			ret->free_blocks[o] += zone->free_blocks[mt][o];
		ret->fragmentation_index[o] =
			watermark_fragmentation_index(zone, o);
		ret->unusable_free_index[o] = watermark_unusable_index(zone, o);
	}
}

void node_level(const struct node *node, struct node_level *ret)
{
	*ret = (struct node_level){0};
	for (unsigned int i = 0; i < node->n_zones; i++) {
		ret->free_pages += node->zones[i].free_pages;
		ret->wmark_low_pages += node->zones[i].wmark[WMARK_LOW];
		ret->wmark_high_pages += node->zones[i].wmark[WMARK_HIGH];
	}
}

void node_page_counts(const struct node *node, struct node_page_counts *ret)
{
	*ret = (struct node_page_counts){
		.total_pages = node->n_frames,
		.allocated_pages = node->allocated_pages,
		.reserved_pages = node->reserved_pages,
		.free_pages = node->isolated_pages,
	};
	for (unsigned int i = 0; i < node->n_zones; i++) {
		const struct zone *zone = &node->zones[i];

		ret->free_pages += zone->free_pages;
		for (unsigned int cpu = 0; cpu < node->n_cpus; cpu++)
			ret->free_pages += zone->pcp[cpu].count;
	}
	for (unsigned int i = 0; i < NODE_OCCUPANTS; i++)
		ret->occupant_pages[i] = occupant_pages(node, i);
}

uint64_t node_metadata_millibytes(const struct node *node)
{
	uint64_t bytes =
		node->n_frames * (sizeof(*node->state) + sizeof(*node->links)) +
		(node->n_frames >> PAGEBLOCK_ORDER) * sizeof(*node->blocks);

	return bytes * 1000 / node->n_frames;
}

static const char *const vmstat_names[] = {
#define VMSTAT_NAME(name) #name,
	VMSTAT_LIST(VMSTAT_NAME)
#undef VMSTAT_NAME
};

unsigned int node_vmstat_count(void)
{
	return VMSTAT_COUNT;
}

const char *node_vmstat_name(unsigned int i)
{
	assert(i < VMSTAT_COUNT);
	return vmstat_names[i];
}

uint64_t node_vmstat_value(const struct node *node, unsigned int i)
{
	assert(i < VMSTAT_COUNT);
	return node->vmstat[i];
}

uint64_t node_vmstat(const struct node *node, const char *name)
{
	for (unsigned int i = 0; i < VMSTAT_COUNT; i++)
		if (strcmp(vmstat_names[i], name) == 0)
			return node->vmstat[i];
	return 0;
}
