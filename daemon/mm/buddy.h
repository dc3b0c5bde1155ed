/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Buddy: free lists per order and migrate type of one zone; splitting, joining
 * and stealing between types. Counterparts in mm/page_alloc.c are named at each
 * function.
 *
 * Units:     pfn, order; migrate types of zone.h.
 * Ownership: a block taken belongs to the caller, who sets its frame's state.
 * Threads:   as the node.
 */

#include "mm/zone.h"

/* compaction_capture() of compaction.h, which needs this header. */
bool compaction_capture(struct task *task, struct zone *zone, uint32_t pfn,
			unsigned int order, unsigned int mt);

/* add_to_free_list(), add_to_free_list_tail(): @pfn becomes a free block. */
static inline void buddy_add(struct zone *zone, uint32_t pfn,
			     unsigned int order, unsigned int mt, bool tail)
{
	struct node *node = zone->node;
	uint32_t head = zone_head(zone, mt, order);

	node->state[pfn] = frame_make(FRAME_BUDDY, order, mt);
	if (tail)
		link_add_tail(node->links, head, pfn);
	else
		link_add_head(node->links, head, pfn);
	zone->free_blocks[mt][order]++;
	zone->free_mask[mt] |= 1u << order;
	zone->free_pages += 1u << order;
}

/* del_page_from_free_list(): the head, of a list that the caller knows, becomes
 * FRAME_BODY. */
static inline void buddy_unlink(struct zone *zone, uint32_t pfn,
				unsigned int order, unsigned int mt)
{
	struct node *node = zone->node;

	link_remove(node->links, pfn);
	node->state[pfn] = FRAME_BODY;
	if (--zone->free_blocks[mt][order] == 0)
		zone->free_mask[mt] &= ~(1u << order);
	zone->free_pages -= 1u << order;
}

static inline void buddy_del(struct zone *zone, uint32_t pfn)
{
	uint16_t s = zone->node->state[pfn];

	buddy_unlink(zone, pfn, frame_order(s), frame_mt(s));
}

/* Return: true if the buddy of @pfn is one whole free block of @order. */
static inline bool buddy_is_free(const struct zone *zone, uint32_t pfn,
				 unsigned int order)
{
	uint32_t buddy = pfn ^ (1u << order);
	uint16_t s = zone->node->state[buddy];

	/* zones are multiples of the largest block: the buddy is in it */
	return frame_type(s) == FRAME_BUDDY && frame_order(s) == order;
}

/* The block one order up could join next. */
static inline bool buddy_merge_likely(const struct zone *zone, uint32_t pfn,
				      unsigned int order)
{
	if (order >= NODE_MAX_ORDER - 1)
		return false;
	return buddy_is_free(zone, pfn & ~(1u << order), order + 1);
}

/* buddy_free() of a block that may join others, or that somebody waits for. */
void buddy_join(struct task *task, struct zone *zone, uint32_t pfn,
		unsigned int order, unsigned int mt);

/**
 * buddy_free() - give a block back and join it with its buddies
 *
 * __free_one_page(): LIFO, but to the tail when the next larger buddy is free
 * already, so that the pair may join soon. A block that a direct compaction of
 * @task waits for goes to it instead (compaction_capture()).
 */
static inline void buddy_free(struct task *task, struct zone *zone,
			      uint32_t pfn, unsigned int order, unsigned int mt)
{
	task_charge(task, zone->node->costs.freelist_op_ps);
	if (order < NODE_MAX_ORDER &&
	    (task->capture_cc || buddy_is_free(zone, pfn, order)))
		buddy_join(task, zone, pfn, order, mt);
	else
		buddy_add(zone, pfn, order, mt,
			  buddy_merge_likely(zone, pfn, order));
}

/* expand(): give the upper halves back until @low is reached. */
void buddy_expand(struct task *task, struct zone *zone, uint32_t pfn,
		  unsigned int low, unsigned int high, unsigned int mt);

/* __rmqueue_smallest() */
static inline uint32_t buddy_alloc_smallest(struct task *task,
					    struct zone *zone,
					    unsigned int order, unsigned int mt)
{
	uint32_t fit = zone->free_mask[mt] >> order << order;
	unsigned int found;
	uint32_t pfn;

	if (!fit)
		return NO_PFN;
	found = (unsigned int)__builtin_ctz(fit);
	pfn = zone->node->links[zone_head(zone, mt, found)].next;
	buddy_unlink(zone, pfn, found, mt);
	task_charge(task, zone->node->costs.freelist_op_ps);
	if (found > order)
		buddy_expand(task, zone, pfn, order, found, mt);
	return pfn;
}

/* __rmqueue_fallback() and once more, as long as that finds something. */
uint32_t buddy_alloc_fallback(struct task *task, struct zone *zone,
			      unsigned int order, unsigned int mt,
			      unsigned int alloc_flags);

/**
 * buddy_alloc() - __rmqueue(): the smallest block that fits, else steal
 *
 * Return: the first frame, its state FRAME_BODY, or NO_PFN.
 */
static inline uint32_t buddy_alloc(struct task *task, struct zone *zone,
				   unsigned int order, unsigned int mt,
				   unsigned int alloc_flags)
{
	uint32_t pfn = buddy_alloc_smallest(task, zone, order, mt);

	if (unlikely(pfn == NO_PFN))
		pfn = buddy_alloc_fallback(task, zone, order, mt, alloc_flags);
	return pfn;
}

/* find_suitable_fallback(). Return: a type, or -1. */
int buddy_find_fallback(const struct zone *zone, unsigned int order,
			unsigned int mt, bool only_stealable, bool *ret_steal);

/**
 * buddy_isolate() - __isolate_free_page(): take a free block off its list
 *
 * Refused when that would leave less than the min watermark. A block of half a
 * pageblock and more makes its pageblocks movable.
 * Return: the pages taken, or 0.
 */
uint32_t buddy_isolate(struct zone *zone, uint32_t pfn);

/* move_freelist_tail(), move_freelist_head(): turn a free list so that @pfn is
 * its last block, its first block. */
void buddy_move_tail(struct zone *zone, uint32_t pfn);
void buddy_move_head(struct zone *zone, uint32_t pfn);
