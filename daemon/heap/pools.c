/* SPDX-License-Identifier: MIT */
#include "heap/heap_private.h"

/*
 * Blocks enter a pool from freed buffers, parked buffers that are broken up,
 * and the background refill; they leave to new buffers or back to the node.
 */

/* kernels refill in the background no more often than this after a failure */
#define REFILL_BACK_OFF_NS (10 * NSEC_PER_MSEC)
/* of one step, so that the caller's loop stays responsive */
#define REFILL_BLOCKS_MAX 32u

uint64_t heap_pool_limit_blocks(const struct heap *heap, unsigned int order)
{
	uint64_t limit = heap->policy.pool_limit_bytes[order];

	if (!policy_has_order(&heap->policy, order))
		return 0;
	if (limit == POLICY_NO_LIMIT)
		return UINT32_MAX;
	return MIN(limit / ((uint64_t)heap->set->page_size_bytes << order),
		   (uint64_t)UINT32_MAX);
}

uint64_t heap_pool_pages(const struct heap *heap)
{
	uint64_t pages = 0;

	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		pages += page_pool_total(&heap->pools[order]) << order;
	return pages;
}

bool heap_pool_take(struct heap *heap, unsigned int order, uint64_t *ret_pfn)
{
	struct page_pool *pool = &heap->pools[order];

	if (pool->n_blocks == 0 && pool->n_parked)
		parked_break_up(parked_with_order(heap, order),
				PARKED_TO_POOLS);
	if (!page_pool_pop(pool, ret_pfn)) {
		pool->misses++;
		return false;
	}
	pool->hits++;
	return true;
}

void heap_pool_put(struct heap *heap, uint64_t pfn, unsigned int order)
{
	struct page_pool *pool = &heap->pools[order];

	if (page_pool_total(pool) < heap_pool_limit_blocks(heap, order) &&
	    page_pool_push(pool, pfn))
		return;
	node_free_block(heap->set->node, NULL, pfn, order);
}

static bool give_single_block(struct heap *heap, unsigned int order)
{
	uint64_t pfn;

	if (!page_pool_pop(&heap->pools[order], &pfn))
		return false;
	node_free_block(heap->set->node, NULL, pfn, order);
	return true;
}

uint64_t heap_pools_give_back(struct heap *heap, uint64_t n_pages)
{
	uint64_t given = 0;

	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		while (given < n_pages && give_single_block(heap, order))
			given += UINT64_C(1) << order;
	}
	while (given < n_pages && !list_is_empty(&heap->parked)) {
		struct buffer *oldest = list_entry(list_first(&heap->parked),
						   struct buffer, park_link);

		given += oldest->len_bytes / heap->set->page_size_bytes;
		parked_break_up(oldest, PARKED_TO_NODE);
	}
	return given;
}

void heap_pools_trim(struct heap *heap)
{
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		struct page_pool *pool = &heap->pools[order];
		uint64_t limit = heap_pool_limit_blocks(heap, order);

		while (page_pool_total(pool) > limit) {
			if (!give_single_block(heap, order))
				parked_break_up(parked_with_order(heap, order),
						PARKED_TO_NODE);
		}
	}
}

uint64_t heap_shrink(struct heap *heap, uint64_t to_bytes)
{
	uint32_t page_size = heap->set->page_size_bytes;
	uint64_t pages = heap_pool_pages(heap);
	uint64_t to_pages = to_bytes / page_size;

	if (pages <= to_pages)
		return 0;
	return heap_pools_give_back(heap, pages - to_pages) * page_size;
}

/* Return: false if the node has no block to spare. */
static bool refill_one(struct heap *heap, unsigned int order)
{
	struct node_request req = {.start_ns = node_now_ns(heap->set->node)};
	uint64_t pfn;

	if (!heap_set_above_high(heap->set, UINT64_C(1) << order))
		return false;
	/* Never reclaims, whatever the policy's flags: nobody waits for it. */
	if (node_alloc(heap->set->node, &req, order, GFP_HIGH_ORDER, &pfn))
		return false;
	if (!page_pool_push(&heap->pools[order], pfn)) {
		node_free_block(heap->set->node, &req, pfn, order);
		return false;
	}
	return true;
}

static bool refill_wanted(const struct heap *heap, unsigned int order)
{
	uint64_t block_bytes = (uint64_t)heap->set->page_size_bytes << order;
	uint64_t mark = heap->policy.pool_mark_bytes[order] / block_bytes;
	uint64_t limit = heap_pool_limit_blocks(heap, order);

	return page_pool_total(&heap->pools[order]) < MIN(mark, limit);
}

uint64_t heap_refill(struct heap *heap, uint64_t now_ns)
{
	unsigned int n = 0;

	if (!heap->policy.pool_refill)
		return UINT64_MAX;
	if (now_ns < heap->refill_not_before_ns)
		return heap->refill_not_before_ns;
	node_advance(heap->set->node, now_ns);
	for (unsigned int order = POLICY_ORDER_COUNT - 1; order > 0; order--) {
		while (refill_wanted(heap, order)) {
			if (n++ == REFILL_BLOCKS_MAX)
				return now_ns;
			if (!refill_one(heap, order)) {
				heap->refill_not_before_ns =
					now_ns + REFILL_BACK_OFF_NS;
				return heap->refill_not_before_ns;
			}
		}
	}
	return UINT64_MAX;
}
