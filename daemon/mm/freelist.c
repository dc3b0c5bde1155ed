/* SPDX-License-Identifier: MIT */
#include "mm/freelist.h"

#include "mm/buddy.h"
#include "mm/kthread.h"
#include "mm/pcp.h"
#include "mm/watermark.h"

/* rmqueue() */
static uint32_t take(struct task *task, struct zone *zone,
		     const struct alloc_context *ac, unsigned int alloc_flags)
{
	uint32_t pfn = NO_PFN;

	if (pcp_allows(ac->order))
		pfn = pcp_alloc(task, zone, ac->order, ac->mt, alloc_flags);
	if (pfn == NO_PFN) {
		task_charge(task, zone->node->costs.zone_lock_ps);
		pfn = buddy_alloc(task, zone, ac->order, ac->mt, alloc_flags);
	}
	/* a pageblock was stolen from: reclaim and compact in the background */
	if (zone->boosted && (alloc_flags & ALLOC_KSWAPD)) {
		zone->boosted = false;
		kswapd_wake(task, zone->node, 0, 0, zone->index);
	}
	return pfn;
}

static uint32_t walk(struct task *task, struct node *node,
		     const struct alloc_context *ac, unsigned int alloc_flags)
{
	for (unsigned int i = ac->highest_zone + 1; i-- > 0;) {
		struct zone *zone = &node->zones[i];
		uint32_t mark =
			zone_wmark(zone, alloc_flags & ALLOC_WMARK_MASK);
		uint32_t pfn;

		if (!(alloc_flags & ALLOC_NO_WATERMARKS) &&
		    !watermark_ok(zone, ac->order, mark, ac->highest_zone,
				  zone->free_pages))
			continue;
		pfn = take(task, zone, ac, alloc_flags);
		if (pfn != NO_PFN)
			return pfn;
	}
	return NO_PFN;
}

uint32_t freelist_alloc(struct task *task, struct node *node,
			const struct alloc_context *ac,
			unsigned int alloc_flags)
{
	uint32_t pfn = walk(task, node, ac, alloc_flags);

	if (pfn == NO_PFN && (alloc_flags & ALLOC_NOFRAGMENT))
		pfn = walk(task, node, ac, alloc_flags & ~ALLOC_NOFRAGMENT);
	return pfn;
}

enum node_fallback freelist_reason(const struct node *node,
				   const struct alloc_context *ac)
{
	for (unsigned int i = 0; i <= ac->highest_zone; i++)
		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			if (node->zones[i].free_mask[mt] >> ac->order)
				return NODE_FALLBACK_WATERMARK;
	return NODE_FALLBACK_NO_BLOCK;
}
