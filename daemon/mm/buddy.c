/* SPDX-License-Identifier: MIT */
#include "mm/buddy.h"

#include "mm/compaction.h"
#include "mm/occupants.h"
#include "mm/watermark.h"

/*
 * A free block of order n starts at a multiple of 2^n, its head's state says
 * FRAME_BUDDY, its order and the type of the list that it is on; that type may
 * differ from its pageblock's. Two free buddies of the same order never exist:
 * they were joined.
 */

/* Which types to take from when a type's own lists are empty, in order. */
static const uint8_t fallbacks[MT_COUNT][MT_COUNT - 1] = {
	[MT_UNMOVABLE] = {MT_RECLAIMABLE, MT_MOVABLE},
	[MT_MOVABLE] = {MT_RECLAIMABLE, MT_UNMOVABLE},
	[MT_RECLAIMABLE] = {MT_UNMOVABLE, MT_MOVABLE},
};

/*
 * Both turn the whole circle instead of moving one block: the list head is cut
 * out and put back beside @pfn.
 */
static void turn_list(struct zone *zone, uint32_t pfn, bool first)
{
	struct frame_link *links = zone->node->links;
	uint16_t s = zone->node->state[pfn];
	uint32_t head = zone_head(zone, frame_mt(s), frame_order(s));

	link_remove(links, head);
	if (first)
		link_insert(links, head, links[pfn].prev, pfn);
	else
		link_insert(links, head, pfn, links[pfn].next);
}

void buddy_move_tail(struct zone *zone, uint32_t pfn)
{
	turn_list(zone, pfn, false);
}

void buddy_move_head(struct zone *zone, uint32_t pfn)
{
	turn_list(zone, pfn, true);
}

void buddy_join(struct task *task, struct zone *zone, uint32_t pfn,
		unsigned int order, unsigned int mt)
{
	for (; order < NODE_MAX_ORDER; order++) {
		if (task->capture_cc &&
		    compaction_capture(task, zone, pfn, order, mt))
			return;
		if (!buddy_is_free(zone, pfn, order))
			break;
		buddy_del(zone, pfn ^ (1u << order));
		pfn &= ~(1u << order);
		task_charge(task, zone->node->costs.merge_ps);
	}
	buddy_add(zone, pfn, order, mt, buddy_merge_likely(zone, pfn, order));
}

void buddy_expand(struct task *task, struct zone *zone, uint32_t pfn,
		  unsigned int low, unsigned int high, unsigned int mt)
{
	task_charge(task, zone->node->costs.split_ps * (high - low));
	while (high > low) {
		high--;
		buddy_add(zone, pfn + (1u << high), high, mt, false);
	}
}

/* can_steal_fallback(): may the whole pageblock be claimed? */
static bool can_steal(unsigned int order, unsigned int mt)
{
	return order >= PAGEBLOCK_ORDER / 2 || mt != MT_MOVABLE;
}

int buddy_find_fallback(const struct zone *zone, unsigned int order,
			unsigned int mt, bool only_stealable, bool *ret_steal)
{
	*ret_steal = false;
	for (unsigned int i = 0; i < MT_COUNT - 1; i++) {
		unsigned int from = fallbacks[mt][i];

		if (!(zone->free_mask[from] & 1u << order))
			continue;
		*ret_steal = can_steal(order, mt);
		if (!only_stealable || *ret_steal)
			return (int)from;
	}
	return -1;
}

/* boost_watermark(). Return: true if there was something to boost. */
static bool boost_watermark(struct zone *zone)
{
	uint32_t factor = zone->node->params.watermark_boost_factor;
	uint32_t max;

	if (factor == NODE_NO_BOOST)
		return false;
	max = (uint32_t)MIN((uint64_t)zone->wmark[WMARK_HIGH] * factor / 10000,
			    (uint64_t)zone->managed_pages);
	/* a small zone would be boosted out of all its memory */
	if (PAGEBLOCK_PAGES * 4 > zone->managed_pages || max == 0)
		return false;
	max = MAX(PAGEBLOCK_PAGES, max);
	zone->wmark_boost = MIN(zone->wmark_boost + PAGEBLOCK_PAGES, max);
	count_event(zone->node, VMSTAT_model_watermark_boost, 1);
	return true;
}

/*
 * move_freepages_block(): put the pageblock's free blocks on @mt's lists.
 * Return: their pages; *ret_movable gets the pages that could be migrated.
 */
static uint32_t move_free_pages(struct zone *zone, uint32_t pfn,
				unsigned int mt, uint32_t *ret_movable)
{
	struct node *node = zone->node;
	uint32_t end = block_end(pfn), moved = 0;

	*ret_movable = 0;
	for (uint32_t i = block_start(pfn); i < end;) {
		uint16_t s = node->state[i];
		unsigned int order = frame_order(s);

		if (frame_type(s) == FRAME_BUDDY) {
			buddy_del(zone, i);
			buddy_add(zone, i, order, mt, false);
			moved += 1u << order;
			i += 1u << order;
		} else {
			if (occupant_is_movable(s))
				++*ret_movable;
			i++;
		}
	}
	return moved;
}

/* steal_suitable_fallback() */
static void steal(struct task *task, struct zone *zone, uint32_t pfn,
		  unsigned int alloc_flags, unsigned int mt, bool whole_block)
{
	struct node *node = zone->node;
	unsigned int order = frame_order(node->state[pfn]);
	unsigned int old_mt = block_mt(node, pfn);
	uint32_t moved, movable, alike;

	if (order >= PAGEBLOCK_ORDER) {
		for (uint32_t i = pfn; i < pfn + (1u << order);
		     i += PAGEBLOCK_PAGES)
			block_set_mt(node, i, mt);
		goto single_block;
	}
	/* mixing types in a pageblock: reclaim, then compact, to avoid more */
	if (boost_watermark(zone) && (alloc_flags & ALLOC_KSWAPD))
		zone->boosted = true;
	if (!whole_block)
		goto single_block;

	task_charge(task, node->costs.steal_pageblock_ps);
	count_event(node, VMSTAT_model_pageblock_steal, 1);
	moved = move_free_pages(zone, pfn, mt, &movable);
	if (mt == MT_MOVABLE)
		alike = movable;
	else
		/* of a movable pageblock's used pages, those that cannot move
		 * are like ours; of the others nothing is known */
		alike = old_mt == MT_MOVABLE
				? PAGEBLOCK_PAGES - (moved + movable)
				: 0;
	if (moved + alike >= PAGEBLOCK_PAGES / 2) {
		block_set_mt(node, pfn, mt);
		count_event(node, VMSTAT_model_pageblock_claim, 1);
	}
	return;

single_block:
	buddy_del(zone, pfn);
	buddy_add(zone, pfn, order, mt, false);
}

/* __rmqueue_fallback(). Return: true if @mt's lists have a block now. */
static bool steal_one(struct task *task, struct zone *zone, unsigned int order,
		      unsigned int mt, unsigned int alloc_flags)
{
	unsigned int min_order = order;
	bool whole = false;
	int from = -1;
	unsigned int o;

	if (order < PAGEBLOCK_ORDER && (alloc_flags & ALLOC_NOFRAGMENT))
		min_order = PAGEBLOCK_ORDER;
	/* the largest block: it leaves the most of one pageblock to us */
	for (o = NODE_MAX_ORDER + 1; o-- > min_order;) {
		from = buddy_find_fallback(zone, o, mt, false, &whole);
		if (from >= 0)
			break;
	}
	if (from < 0)
		return false;
	/* a movable request that cannot claim does best with a small block */
	if (!whole && mt == MT_MOVABLE && o > order) {
		for (o = order; o <= NODE_MAX_ORDER; o++) {
			from = buddy_find_fallback(zone, o, mt, false, &whole);
			if (from >= 0)
				break;
		}
	}
	assert(from >= 0);
	steal(task, zone,
	      zone->node->links[zone_head(zone, (unsigned int)from, o)].next,
	      alloc_flags, mt, whole);
	return true;
}

uint32_t buddy_alloc_fallback(struct task *task, struct zone *zone,
			      unsigned int order, unsigned int mt,
			      unsigned int alloc_flags)
{
	while (steal_one(task, zone, order, mt, alloc_flags)) {
		uint32_t pfn = buddy_alloc_smallest(task, zone, order, mt);

		if (pfn != NO_PFN)
			return pfn;
	}
	return NO_PFN;
}

uint32_t buddy_isolate(struct zone *zone, uint32_t pfn)
{
	struct node *node = zone->node;
	unsigned int order = frame_order(node->state[pfn]);
	uint32_t pages = 1u << order;

	if (!watermark_ok(zone, 0, zone->wmark[WMARK_MIN] + pages, 0,
			  zone->free_pages))
		return 0;
	buddy_del(zone, pfn);
	if (order >= PAGEBLOCK_ORDER - 1)
		for (uint32_t i = pfn; i < pfn + pages; i += PAGEBLOCK_PAGES)
			block_set_mt(node, i, MT_MOVABLE);
	return pages;
}
