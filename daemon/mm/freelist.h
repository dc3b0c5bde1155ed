/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The walk over the zones: the fast path of an allocation.
 * Counterpart: get_page_from_freelist().
 *
 * Units:     orders, frames.
 * Ownership: a block returned is the caller's, its head FRAME_BODY.
 * Threads:   as the node.
 */

#include "mm/buddy.h"
#include "mm/kthread.h"
#include "mm/pcp.h"
#include "mm/watermark.h"
#include "mm/zone.h"

/* gfp_migratetype() */
static inline unsigned int freelist_migrate_type(uint32_t gfp)
{
	if (gfp & GFP_MOVABLE)
		return MT_MOVABLE;
	return gfp & GFP_RECLAIMABLE ? MT_RECLAIMABLE : MT_UNMOVABLE;
}

/* alloc_flags_nofragment(): for requests that start in a zone Normal. */
static inline unsigned int freelist_fast_flags(const struct node *node,
					       uint32_t gfp)
{
	unsigned int flags = WMARK_LOW;

	if (gfp & GFP_KSWAPD_RECLAIM)
		flags |= ALLOC_KSWAPD;
	if (node->top_zone->is_normal)
		flags |= ALLOC_NOFRAGMENT;
	return flags;
}

/* rmqueue() */
static inline uint32_t freelist_take(struct task *task, struct zone *zone,
				     const struct alloc_context *ac,
				     unsigned int alloc_flags)
{
	uint32_t pfn = NO_PFN;

	if (pcp_allows(ac->order))
		pfn = pcp_alloc(task, zone, ac->order, ac->mt, alloc_flags);
	if (pfn == NO_PFN) {
		task_charge(task, zone->node->costs.zone_lock_ps);
		pfn = buddy_alloc(task, zone, ac->order, ac->mt, alloc_flags);
	}
	/* a pageblock was stolen from: reclaim and compact in the background */
	if (unlikely(zone->boosted) && (alloc_flags & ALLOC_KSWAPD)) {
		zone->boosted = false;
		kswapd_wake(task, zone->node, 0, 0, zone->index);
	}
	return pfn;
}

/* One zone, down to the mark of @alloc_flags. */
static inline uint32_t freelist_try_zone(struct task *task, struct zone *zone,
					 const struct alloc_context *ac,
					 unsigned int alloc_flags)
{
	uint32_t mark = zone_wmark(zone, alloc_flags & ALLOC_WMARK_MASK);

	if (!(alloc_flags & ALLOC_NO_WATERMARKS) &&
	    !watermark_ok(zone, ac->order, mark, ac->highest_zone,
			  zone->free_pages))
		return NO_PFN;
	return freelist_take(task, zone, ac, alloc_flags);
}

/* freelist_alloc() of the @n lowest zones. */
uint32_t freelist_walk(struct task *task, struct node *node, unsigned int n,
		       const struct alloc_context *ac,
		       unsigned int alloc_flags);

/**
 * freelist_alloc() - highest zone first, each down to its mark
 * @alloc_flags: a mark and ALLOC_* of zone.h; with ALLOC_NOFRAGMENT all zones
 *               are tried without mixing types first, then with
 *
 * Nearly always the first zone has it: that much is inline.
 *
 * Return: the first frame, or NO_PFN.
 */
static inline uint32_t freelist_alloc(struct task *task, struct node *node,
				      const struct alloc_context *ac,
				      unsigned int alloc_flags)
{
	uint32_t pfn = freelist_try_zone(task, node->top_zone, ac, alloc_flags);

	if (unlikely(pfn == NO_PFN))
		pfn = freelist_walk(task, node, node->n_zones - 1, ac,
				    alloc_flags);
	return pfn;
}

/* Why freelist_alloc() just failed: the mark, or no block at all. */
enum node_fallback freelist_reason(const struct node *node,
				   const struct alloc_context *ac);
