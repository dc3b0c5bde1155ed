/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Frames: the per-page bookkeeping, 10 bytes each. Counterpart: struct page.
 *
 * A frame is either the head of something (a free block, an allocated block, an
 * occupant's page) or FRAME_BODY. Only heads are ever looked at, so taking or
 * joining blocks touches one frame, not 2^order.
 *
 * Lists are circular and go by index: frame numbers below n_frames, list heads
 * above. A frame is on one list at most.
 *
 * Units:     indices of frames.
 * Ownership: the arrays belong to the node.
 * Threads:   as the node.
 */

#include "base/base.h"

enum frame_type {
	FRAME_BODY,         /* inside of the block whose head is below */
	FRAME_BUDDY,        /* free, on a free list; counterpart: PageBuddy() */
	FRAME_PCP,          /* free, on a per-CPU list */
	FRAME_ISOLATED,     /* free, taken by compaction as a target */
	FRAME_BLOCK,        /* allocated by node_alloc() */
	FRAME_RESERVED,     /* never managed */
	FRAME_OCCUPANT = 8, /* + enum node_occupant, always of order 0 */
};

/* A frame's state: type, order, migrate type of its list, one flag. */
#define FRAME_TYPE_MASK   0x000fu
#define FRAME_ORDER_SHIFT 4u
#define FRAME_ORDER_MASK  0x00f0u
#define FRAME_MT_SHIFT    8u
#define FRAME_MT_MASK     0x0300u
#define FRAME_PRESSURE    0x0400u /* an occupant that a preset put there */
#define FRAME_OFF_LIST    0x0800u /* an occupant that compaction is moving */
/* Cache and slab that a preset made unreclaimable for as long as it lasts. */
#define FRAME_WAS_FILE   0x1000u
#define FRAME_WAS_ACTIVE 0x2000u
#define FRAME_WAS_SLAB   0x4000u

struct frame_link {
	uint32_t next;
	uint32_t prev;
};

static inline uint16_t frame_make(unsigned int type, unsigned int order,
				  unsigned int mt)
{
	return (uint16_t)(type | order << FRAME_ORDER_SHIFT |
			  mt << FRAME_MT_SHIFT);
}

static inline unsigned int frame_type(uint16_t state)
{
	return state & FRAME_TYPE_MASK;
}

static inline unsigned int frame_order(uint16_t state)
{
	return (state & FRAME_ORDER_MASK) >> FRAME_ORDER_SHIFT;
}

static inline unsigned int frame_mt(uint16_t state)
{
	return (state & FRAME_MT_MASK) >> FRAME_MT_SHIFT;
}

static inline bool frame_is_occupant(uint16_t state)
{
	return state & FRAME_OCCUPANT;
}

/* Meaningful for occupants only. Return: enum node_occupant. */
static inline unsigned int frame_occupant(uint16_t state)
{
	return frame_type(state) - FRAME_OCCUPANT;
}

static inline void link_init(struct frame_link *links, uint32_t head)
{
	links[head] = (struct frame_link){head, head};
}

static inline bool link_is_empty(const struct frame_link *links, uint32_t head)
{
	return links[head].next == head;
}

static inline void link_insert(struct frame_link *links, uint32_t i,
			       uint32_t prev, uint32_t next)
{
	links[i].next = next;
	links[i].prev = prev;
	links[prev].next = i;
	links[next].prev = i;
}

static inline void link_add_head(struct frame_link *links, uint32_t head,
				 uint32_t i)
{
	link_insert(links, i, head, links[head].next);
}

static inline void link_add_tail(struct frame_link *links, uint32_t head,
				 uint32_t i)
{
	link_insert(links, i, links[head].prev, head);
}

/* Read one by one: a pair read as one word would wait for the two writes of
 * which it was made a moment ago. */
static inline void link_remove(struct frame_link *links, uint32_t i)
{
	uint32_t prev = links[i].prev;
	uint32_t next = links[i].next;

	links[prev].next = next;
	links[next].prev = prev;
}
