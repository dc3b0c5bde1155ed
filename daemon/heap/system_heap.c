/* SPDX-License-Identifier: MIT */
#include "heap/system_heap.h"

#include <errno.h>

#include "base/err.h"
#include "heap/heap_private.h"

/*
 * Filling a buffer is a walk: @remaining pages, and the order of the last block
 * above which none is tried again. Reclaim within the walk may call back into
 * the pools through the shrinker: nothing of them is kept across node_alloc().
 */
struct walk {
	struct heap *heap;
	struct heap_request *req;
	struct node_request node_req;
	uint64_t remaining_pages;
	unsigned int max_order;
	uint64_t n_from_pool;
	bool from_node;
};

const char *heap_name(const struct heap *heap)
{
	return heap->name;
}

const char *heap_aliases(const struct heap *heap)
{
	return heap->aliases;
}

uint32_t heap_flags(const struct heap *heap)
{
	return heap->flags;
}

const struct policy *heap_policy(const struct heap *heap)
{
	return &heap->policy;
}

void heap_set_policy(struct heap *heap, const struct policy *policy)
{
	heap->policy = *policy;
	heap->refill_not_before_ns = 0;
	heap_pools_trim(heap);
}

static void walk_note(struct walk *walk, unsigned int order, uint8_t reason)
{
	uint8_t *noted = &walk->req->fallback[order];

	if (*noted == NODE_FALLBACK_NONE)
		*noted = reason;
}

/* One block of @order. Return: false when neither pool nor node has one. */
static bool walk_try(struct walk *walk, unsigned int order, uint64_t *ret_pfn)
{
	struct heap *heap = walk->heap;

	if (heap_pool_take(heap, order, ret_pfn)) {
		walk->n_from_pool++;
		return true;
	}
	if (node_alloc(heap->set->node, &walk->node_req, order,
		       heap->policy.gfp[order], ret_pfn)) {
		walk_note(walk, order, (uint8_t)walk->node_req.last_fallback);
		return false;
	}
	walk->from_node = true;
	return true;
}

/* The largest block that is to be had now. */
static bool walk_next(struct walk *walk, uint64_t *ret_pfn,
		      unsigned int *ret_order)
{
	const struct policy *policy = &walk->heap->policy;

	for (uint32_t i = 0; i < policy->n_steps; i++) {
		unsigned int order = policy->order[i];

		if (order > walk->max_order)
			continue;
		if (UINT64_C(1) << order > walk->remaining_pages) {
			walk_note(walk, order, HEAP_FALLBACK_TOO_LARGE);
			continue;
		}
		if (walk_try(walk, order, ret_pfn)) {
			*ret_order = order;
			return true;
		}
	}
	return false;
}

/* Return: 0, HEAP_E_NO_MEMORY or -ENOMEM; @buffer holds what was got. */
static int walk_fill(struct walk *walk, struct buffer *buffer)
{
	struct heap_set *set = walk->heap->set;
	unsigned int order;
	uint64_t pfn;
	int r;

	while (walk->remaining_pages) {
		if (!walk_next(walk, &pfn, &order))
			return HEAP_E_NO_MEMORY;
		r = buffer_append(buffer, pfn, order);
		if (r) {
			node_free_block(set->node, NULL, pfn, order);
			return err_trace(r);
		}
		walk->remaining_pages -= UINT64_C(1) << order;
		walk->max_order = order;
	}
	r = kvalloc(&set->kv, &walk->node_req,
		    buffer_n_blocks(buffer) * BUFFER_TABLE_ENTRY_BYTES,
		    &buffer->table);
	if (r == KVALLOC_E_NO_MEMORY)
		return HEAP_E_NO_MEMORY;
	return r ? err_fold(r) : 0;
}

static uint64_t largest_free_bytes(const struct heap_set *set)
{
	unsigned int largest = 0;
	bool any = false;
	struct node_zone_stats zone;

	for (unsigned int i = 0; i < node_n_zones(set->node); i++) {
		node_zone_stats(set->node, i, &zone);
		for (unsigned int o = largest; o < POLICY_ORDER_COUNT; o++) {
			if (zone.free_blocks[o]) {
				largest = o;
				any = true;
			}
		}
	}
	return any ? (uint64_t)set->page_size_bytes << largest : 0;
}

void heap_count_alloc(const struct buffer *buffer)
{
	struct heap *heap = buffer->heap;
	struct heap_stats *stats = &heap->stats;

	stats->allocs++;
	stats->buffers++;
	stats->bytes += buffer->len_bytes;
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		stats->blocks_taken[order] += buffer->composition[order];
	if (stats->bytes > heap->high_water_bytes) {
		heap->high_water_bytes = stats->bytes;
		stats->largest_free_at_high_water_bytes =
			largest_free_bytes(heap->set);
	}
}

static void count_failure(struct heap *heap, uint64_t n_pages)
{
	struct node_page_counts counts;

	heap->stats.failures++;
	node_page_counts(heap->set->node, &counts);
	if (counts.free_pages >= n_pages)
		heap->stats.failures_though_free++;
}

static uint8_t walk_source(const struct walk *walk)
{
	if (walk->n_from_pool && walk->from_node)
		return BUFFER_SOURCE_MIXED;
	return walk->n_from_pool ? BUFFER_SOURCE_POOL : BUFFER_SOURCE_NODE;
}

/* What the request took; a block from a pool costs as one from a per-CPU list,
 * which is a list under a lock as well. */
static void walk_end(const struct walk *walk)
{
	const struct cost_profile *costs =
		&node_params(walk->heap->set->node)->costs;

	walk->req->spent_ns = walk->node_req.spent_ns +
			      walk->n_from_pool * costs->pcp_op_ps / 1000;
	walk->req->stall_ns = walk->node_req.stall_ns;
	walk->req->start_ns = walk->node_req.start_ns;
}

static void walk_begin(struct walk *walk, struct heap *heap,
		       struct heap_request *req, uint64_t n_pages)
{
	node_advance(heap->set->node, req->start_ns);
	*walk = (struct walk){
		.heap = heap,
		.req = req,
		.node_req = {.start_ns = node_now_ns(heap->set->node),
			     .cpu = req->cpu},
		.remaining_pages = n_pages,
		.max_order = POLICY_ORDER_COUNT - 1,
	};
	req->spent_ns = 0;
	req->stall_ns = 0;
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		req->fallback[order] = NODE_FALLBACK_NONE;
}

int heap_alloc(struct heap *heap, struct heap_request *req, struct buffer **ret)
{
	struct heap_set *set = heap->set;
	uint64_t n_pages;
	struct buffer *buffer;
	struct walk walk;
	int r;

	assert(req->len_bytes > 0);
	n_pages = (req->len_bytes - 1) / set->page_size_bytes + 1;
	if (n_pages > set->n_node_pages)
		return HEAP_E_TOO_LARGE;
	walk_begin(&walk, heap, req, n_pages);
	r = buffer_new(&buffer, heap, &walk.node_req, req->uid,
		       n_pages * set->page_size_bytes);
	if (r == 0) {
		r = walk_fill(&walk, buffer);
		if (r) {
			buffer_give_to_node(buffer, &walk.node_req);
			buffer_destroy(buffer);
		}
	}
	walk_end(&walk);
	if (r) {
		count_failure(heap, n_pages);
		return r;
	}
	buffer->source = walk_source(&walk);
	buffer_register(buffer, 0);
	heap_count_alloc(buffer);
	*ret = buffer;
	return 0;
}

void heap_get_stats(const struct heap *heap, struct heap_stats *ret)
{
	*ret = heap->stats;
	ret->pool_bytes = 0;
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		const struct page_pool *pool = &heap->pools[order];
		uint64_t blocks = page_pool_total(pool);
		uint64_t bytes = (blocks << order) * heap->set->page_size_bytes;

		ret->pool[order] = (struct heap_pool_stats){
			.blocks = blocks,
			.bytes = bytes,
			.hits = pool->hits,
			.misses = pool->misses,
			.limit_bytes = heap->policy.pool_limit_bytes[order],
		};
		ret->pool_bytes += bytes;
	}
}
