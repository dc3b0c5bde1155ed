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

#include "mm/zone.h"

/* What one allocation wants: struct alloc_context. */
struct alloc_context {
	unsigned int order;
	uint32_t gfp;
	unsigned int mt;
	unsigned int highest_zone;
};

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
	if (node->zones[node->n_zones - 1].is_normal)
		flags |= ALLOC_NOFRAGMENT;
	return flags;
}

/**
 * freelist_alloc() - highest zone first, each down to its mark
 * @alloc_flags: a mark and ALLOC_* of zone.h; with ALLOC_NOFRAGMENT all zones
 *               are tried without mixing types first, then with
 *
 * Return: the first frame, or NO_PFN.
 */
uint32_t freelist_alloc(struct task *task, struct node *node,
			const struct alloc_context *ac,
			unsigned int alloc_flags);

/* Why freelist_alloc() just failed: the mark, or no block at all. */
enum node_fallback freelist_reason(const struct node *node,
				   const struct alloc_context *ac);
