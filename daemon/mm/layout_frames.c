/* SPDX-License-Identifier: MIT */
#include "mm/layout_frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/rng.h"
#include "mm/buddy.h"
#include "mm/occupants.h"

/*
 * What a snapshot does not say is where things lie. Assumed here: pageblocks
 * of unmovable type at the bottom of the zone, then reclaimable, then movable,
 * as a zone is used from its bottom; whole free pageblocks at the top; smaller
 * free blocks evenly spread over the pageblocks of their type; reserved and
 * unmovable pages together, not spread, or no pageblock could be compacted.
 */

struct frames {
	struct node *node;
	struct zone *zone;
	const struct snapshot_zone *snap;
	struct rng rng;
	uint32_t offset;  /* where in each stretch small blocks lie */
	uint8_t *claimed; /* per frame of the node: part of a free block */
	uint8_t *whole;   /* per pageblock of the zone: BLOCK_* */
	uint32_t n_blocks;
};

enum { BLOCK_PARTLY, BLOCK_FREE, BLOCK_ASIDE };

static uint32_t block_pfn(const struct frames *f, uint32_t block)
{
	return f->zone->start_pfn + (block << PAGEBLOCK_ORDER);
}

/* Types from the bottom up, by their counts; the last type takes the rest. */
static void place_types(struct frames *f)
{
	const uint64_t *n = f->snap->pageblocks;

	for (uint32_t i = 0; i < f->n_blocks; i++) {
		unsigned int mt = MT_MOVABLE;

		if (i < n[MT_UNMOVABLE])
			mt = MT_UNMOVABLE;
		else if (i < n[MT_UNMOVABLE] + n[MT_RECLAIMABLE])
			mt = MT_RECLAIMABLE;
		block_set_mt(f->node, block_pfn(f, i), mt);
	}
}

static void claim(struct frames *f, uint32_t pfn, unsigned int order,
		  unsigned int mt)
{
	for (uint32_t i = pfn; i < pfn + (1u << order); i++)
		f->claimed[i] = 1;
	buddy_add(f->zone, pfn, order, mt, false);
}

/* Where a whole free block may go, the better places first. */
enum place { PLACE_OWN_TYPE, PLACE_ANY_TYPE, PLACE_ASIDE, PLACES };

static bool whole_fits(const struct frames *f, uint32_t b, uint32_t n,
		       unsigned int mt, enum place place)
{
	for (uint32_t i = b; i < b + n; i++) {
		if (f->whole[i] == BLOCK_FREE ||
		    (f->whole[i] == BLOCK_ASIDE && place != PLACE_ASIDE))
			return false;
		if (place == PLACE_OWN_TYPE &&
		    block_mt(f->node, block_pfn(f, i)) != mt)
			return false;
	}
	return true;
}

/* A free block of a pageblock and more, as high as possible. Two of order 9
 * may not be buddies: they would be one of order 10. */
static bool place_whole(struct frames *f, unsigned int order, unsigned int mt)
{
	uint32_t n = 1u << (order - PAGEBLOCK_ORDER);

	for (enum place place = 0; place < PLACES; place++) {
		for (uint32_t b = f->n_blocks; b >= n; b -= n) {
			uint32_t first = b - n;

			if (!whole_fits(f, first, n, mt, place))
				continue;
			if (order == PAGEBLOCK_ORDER &&
			    f->whole[first ^ 1] == BLOCK_FREE)
				continue;
			for (uint32_t i = first; i < b; i++) {
				f->whole[i] = BLOCK_FREE;
				block_set_mt(f->node, block_pfn(f, i), mt);
			}
			claim(f, block_pfn(f, first), order, mt);
			return true;
		}
	}
	return false;
}

/*
 * Sets movable pageblocks aside for reserved frames, before anything else.
 * Early memory is taken from the top of all memory downwards (memblock), the
 * kernel's own image lies low: the highest zone's at its top, the others' at
 * the bottom.
 */
static void set_aside(struct frames *f, uint64_t n_reserved)
{
	bool top = f->zone->index == f->node->n_zones - 1;
	uint64_t n = n_reserved >> PAGEBLOCK_ORDER;

	for (uint32_t i = 0; i < f->n_blocks && n > 0; i++) {
		uint32_t b = top ? f->n_blocks - 1 - i : i;

		if (f->whole[b] != BLOCK_PARTLY ||
		    block_mt(f->node, block_pfn(f, b)) != MT_MOVABLE)
			continue;
		f->whole[b] = BLOCK_ASIDE;
		n--;
	}
}

static bool is_free_head(const struct frames *f, uint32_t pfn,
			 unsigned int order)
{
	uint16_t s = f->node->state[pfn];

	return frame_type(s) == FRAME_BUDDY && frame_order(s) == order;
}

/*
 * May a free block of @order lie at @pfn? Larger ones are placed already, so
 * the first frame stands for all of it; its buddy may not be free as a whole.
 */
static bool may_place(const struct frames *f, uint32_t pfn, unsigned int order)
{
	return !f->claimed[pfn] && !is_free_head(f, pfn ^ (1u << order), order);
}

/*
 * Puts up to @n blocks into one pageblock, every so many frames apart; what
 * does not fit so goes into any gap. In a machine that was started lately they
 * lie at the same place of each stretch everywhere, as a program leaves memory
 * that it filled in order, and single pages at an odd frame: when compaction
 * flushes its skip marks it looks at every eighth frame only (reset_block() of
 * compaction.c), and what is strewn regularly is rarely among those. In one
 * that ran for long each pageblock has a place of its own. Return: how many it
 * took.
 */
static uint64_t fill_block(struct frames *f, uint32_t block, uint64_t n,
			   unsigned int order, unsigned int mt)
{
	uint32_t base = block_pfn(f, block), placed = 0;
	uint32_t pairs = PAGEBLOCK_PAGES >> (order + 1);
	uint32_t offset = f->offset, apart;

	if (n == 0)
		return 0;
	if (f->node->params.snapshot->has_compacted)
		offset = (uint32_t)rng_below(&f->rng, PAGEBLOCK_PAGES);
	apart = (uint32_t)(pairs / MIN(n, pairs)) << (order + 1);
	for (uint32_t i = offset % apart & ~((1u << order) - 1);
	     i < PAGEBLOCK_PAGES && placed < n; i += apart) {
		if (!may_place(f, base + i, order))
			continue;
		claim(f, base + i, order, mt);
		placed++;
	}
	for (uint32_t i = 0; i < PAGEBLOCK_PAGES && placed < n;
	     i += 1u << order) {
		if (!may_place(f, base + i, order))
			continue;
		claim(f, base + i, order, mt);
		placed++;
	}
	return placed;
}

static bool wanted_block(const struct frames *f, uint32_t block,
			 unsigned int mt)
{
	return f->whole[block] == BLOCK_PARTLY &&
	       block_mt(f->node, block_pfn(f, block)) == mt;
}

/* Small free blocks of one order and type. Return: how many found no room. */
static uint64_t place_small(struct frames *f, unsigned int order,
			    unsigned int mt)
{
	uint64_t n = f->snap->free[mt][order], placed = 0, left;
	uint64_t n_wanted = 0, seen = 0;

	for (uint32_t b = 0; b < f->n_blocks; b++)
		n_wanted += wanted_block(f, b, mt);
	for (uint32_t b = 0; b < f->n_blocks && n_wanted > 0; b++) {
		if (!wanted_block(f, b, mt))
			continue;
		seen++;
		placed += fill_block(f, b,
				     n * seen / n_wanted -
					     n * (seen - 1) / n_wanted,
				     order, mt);
	}
	/* what did not fit evenly goes where there is room: its own type's
	 * pageblocks, then those set aside, then any */
	left = n - placed;
	for (uint32_t b = 0; b < f->n_blocks && left > 0; b++)
		if (wanted_block(f, b, mt))
			left -= fill_block(f, b, left, order, mt);
	for (uint32_t b = f->n_blocks; b-- > 0 && left > 0;)
		if (f->whole[b] != BLOCK_FREE)
			left -= fill_block(f, b, left, order, mt);
	return left;
}

static int place_free(struct frames *f, struct node_error *err)
{
	uint64_t reserved =
		f->zone->end_pfn - f->zone->start_pfn - f->zone->managed_pages;
	unsigned int o = NODE_MAX_ORDER;

	set_aside(f, reserved);
	for (; o >= PAGEBLOCK_ORDER; o--)
		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			for (uint64_t i = 0; i < f->snap->free[mt][o]; i++)
				if (!place_whole(f, o, mt))
					goto no_room;
	for (;; o--) {
		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			if (place_small(f, o, mt))
				goto no_room;
		if (o == 0)
			return 0;
	}
no_room:
	return layout_error(err,
			    "zone %s: its free blocks of order %u do not fit "
			    "into %u pageblocks beside the others",
			    f->zone->name, o, f->n_blocks);
}

/* Frames that are neither free nor taken: FRAME_BODY outside of a block. */
static bool is_used(const struct frames *f, uint32_t pfn)
{
	return !f->claimed[pfn] &&
	       frame_type(f->node->state[pfn]) == FRAME_BODY;
}

/* Turns up to @n used frames of pageblocks that @want into @kind, or, with
 * kind NODE_OCCUPANTS, into reserved ones. Return: how many are left. */
static uint64_t take_used(struct frames *f, uint64_t n, unsigned int kind,
			  bool (*want)(const struct frames *, uint32_t))
{
	for (uint32_t b = 0; b < f->n_blocks && n > 0; b++) {
		if (f->whole[b] == BLOCK_FREE || !want(f, b))
			continue;
		for (uint32_t i = block_pfn(f, b);
		     i < block_pfn(f, b) + PAGEBLOCK_PAGES && n > 0; i++) {
			if (!is_used(f, i))
				continue;
			if (kind < NODE_OCCUPANTS) {
				occupant_add(f->node, i, kind, 0);
			} else {
				f->node->state[i] =
					frame_make(FRAME_RESERVED, 0, 0);
				f->node->reserved_pages++;
			}
			n--;
		}
	}
	return n;
}

static bool want_aside(const struct frames *f, uint32_t b)
{
	return f->whole[b] == BLOCK_ASIDE;
}

static bool want_unmovable(const struct frames *f, uint32_t b)
{
	return block_mt(f->node, block_pfn(f, b)) == MT_UNMOVABLE;
}

static bool want_reclaimable(const struct frames *f, uint32_t b)
{
	return block_mt(f->node, block_pfn(f, b)) == MT_RECLAIMABLE;
}

static bool want_any(const struct frames *f, uint32_t b)
{
	(void)f;
	(void)b;
	return true;
}

/* Pages that cannot move, up to what this zone has to give. */
static void place_unmovable(struct frames *f, struct layout_occupants *left,
			    uint64_t n_used)
{
	uint64_t reserved =
		f->zone->end_pfn - f->zone->start_pfn - f->zone->managed_pages;
	uint64_t slab = MIN(left->pages[NODE_OCCUPANT_SLAB], n_used);
	uint64_t kernel = MIN(left->pages[NODE_OCCUPANT_KERNEL], n_used - slab);

	left->pages[NODE_OCCUPANT_SLAB] -= slab;
	left->pages[NODE_OCCUPANT_KERNEL] -= kernel;
	reserved = take_used(f, reserved, NODE_OCCUPANTS, want_aside);
	slab = take_used(f, slab, NODE_OCCUPANT_SLAB, want_reclaimable);
	kernel = take_used(f, kernel, NODE_OCCUPANT_KERNEL, want_unmovable);
	reserved = take_used(f, reserved, NODE_OCCUPANTS, want_any);
	slab = take_used(f, slab, NODE_OCCUPANT_SLAB, want_any);
	kernel = take_used(f, kernel, NODE_OCCUPANT_KERNEL, want_any);
	assert(reserved == 0 && slab == 0 && kernel == 0);
}

/* A kind by lot, in proportion to what is left of each. */
static unsigned int draw_kind(struct frames *f,
			      const struct layout_occupants *left)
{
	uint64_t sum = 0, lot;
	unsigned int kind = 0;

	for (unsigned int i = 0; i < NODE_OCCUPANTS; i++)
		sum += left->pages[i];
	assert(sum > 0);
	lot = rng_below(&f->rng, sum);
	while (lot >= left->pages[kind])
		lot -= left->pages[kind++];
	return kind;
}

/* Short: in fragmented memory pages were got one by one, and neighbours are not
 * of one age. */
#define KIND_RUN_PAGES 4u

/* The rest moves: mixed in runs, the lowest frames the oldest. */
static void place_movable(struct frames *f, struct layout_occupants *left)
{
	unsigned int kind = 0;
	uint32_t run = 0;

	for (uint32_t i = f->zone->start_pfn; i < f->zone->end_pfn; i++) {
		if (!is_used(f, i))
			continue;
		if (run == 0 || left->pages[kind] == 0) {
			kind = draw_kind(f, left);
			run = KIND_RUN_PAGES;
		}
		occupant_add(f->node, i, kind, 0);
		left->pages[kind]--;
		run--;
	}
}

static void select_zone(struct frames *f, unsigned int i, uint8_t *whole)
{
	f->zone = &f->node->zones[i];
	f->snap = &f->node->params.snapshot->zone[i];
	f->whole = whole + (f->zone->start_pfn >> PAGEBLOCK_ORDER);
	f->n_blocks =
		(f->zone->end_pfn - f->zone->start_pfn) >> PAGEBLOCK_ORDER;
}

int layout_frames(struct node *node, const struct layout_occupants *occupants,
		  struct node_error *err)
{
	struct layout_occupants left = *occupants;
	struct frames f = {.node = node};
	uint8_t *whole = calloc(node->n_frames >> PAGEBLOCK_ORDER, 1);
	int r = 0;

	rng_seed(&f.rng, node->params.seed);
	f.offset = (uint32_t)rng_below(&f.rng, PAGEBLOCK_PAGES) | 1;
	f.claimed = calloc(node->n_frames, 1);
	if (!f.claimed || !whole)
		r = err_raise(-ENOMEM);
	/* what cannot move is where the kernel takes from first: on top */
	for (unsigned int i = node->n_zones; i-- > 0 && r == 0;) {
		select_zone(&f, i, whole);
		place_types(&f);
		r = place_free(&f, err);
		if (r == 0)
			place_unmovable(&f, &left,
					f.zone->managed_pages -
						f.zone->free_pages);
	}
	for (unsigned int i = 0; i < node->n_zones && r == 0; i++) {
		select_zone(&f, i, whole);
		place_movable(&f, &left);
	}
	free(f.claimed);
	free(whole);
	return r;
}
