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
unsigned int freelist_migrate_type(uint32_t gfp);

/* alloc_flags_nofragment(): for requests that start in a zone Normal. */
unsigned int freelist_fast_flags(const struct node *node, uint32_t gfp);

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
