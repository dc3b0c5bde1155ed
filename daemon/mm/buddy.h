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

/* del_page_from_free_list(): the head becomes FRAME_BODY. */
static inline void buddy_del(struct zone *zone, uint32_t pfn)
{
	struct node *node = zone->node;
	unsigned int order = frame_order(node->state[pfn]);
	unsigned int mt = frame_mt(node->state[pfn]);

	link_remove(node->links, pfn);
	node->state[pfn] = FRAME_BODY;
	if (--zone->free_blocks[mt][order] == 0)
		zone->free_mask[mt] &= ~(1u << order);
	zone->free_pages -= 1u << order;
}

/**
 * buddy_free() - give a block back and join it with its buddies
 *
 * __free_one_page(): LIFO, but to the tail when the next larger buddy is free
 * already, so that the pair may join soon. A block that a direct compaction of
 * @task waits for goes to it instead (compaction_capture()).
 */
void buddy_free(struct task *task, struct zone *zone, uint32_t pfn,
		unsigned int order, unsigned int mt);

/**
 * buddy_alloc() - __rmqueue(): the smallest block that fits, else steal
 *
 * Return: the first frame, its state FRAME_BODY, or NO_PFN.
 */
uint32_t buddy_alloc(struct task *task, struct zone *zone, unsigned int order,
		     unsigned int mt, unsigned int alloc_flags);

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
