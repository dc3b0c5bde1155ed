/* SPDX-License-Identifier: MIT */
#include "mm/layout_frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "mm/layout_free.h"
#include "mm/occupants.h"

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

/* Reserved frames, then pages that cannot move, each in pageblocks of its own:
 * that is what those are for. */
static void place_unmovable(struct frames *f, struct layout_occupants *left)
{
	uint64_t *slab = &left->pages[NODE_OCCUPANT_SLAB];
	uint64_t *kernel = &left->pages[NODE_OCCUPANT_KERNEL];
	uint64_t reserved =
		f->zone->end_pfn - f->zone->start_pfn - f->zone->managed_pages;

	reserved = take_used(f, reserved, NODE_OCCUPANTS, want_aside);
	reserved = take_used(f, reserved, NODE_OCCUPANTS, want_any);
	assert(reserved == 0);
	*slab = take_used(f, *slab, NODE_OCCUPANT_SLAB, want_reclaimable);
	*kernel = take_used(f, *kernel, NODE_OCCUPANT_KERNEL, want_unmovable);
}

/* What those had no room for: beside them. */
static void place_overflow(struct frames *f, struct layout_occupants *left)
{
	uint64_t *slab = &left->pages[NODE_OCCUPANT_SLAB];
	uint64_t *kernel = &left->pages[NODE_OCCUPANT_KERNEL];

	*kernel = take_used(f, *kernel, NODE_OCCUPANT_KERNEL, want_reclaimable);
	*slab = take_used(f, *slab, NODE_OCCUPANT_SLAB, want_any);
	*kernel = take_used(f, *kernel, NODE_OCCUPANT_KERNEL, want_any);
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
	unsigned int rest =
		left.rest >= 0 ? (unsigned int)left.rest : NODE_OCCUPANT_KERNEL;
	uint8_t *whole = calloc(node->n_frames >> PAGEBLOCK_ORDER, 1);
	int r = 0;

	rng_seed(&f.rng, node->params.seed);
	f.claimed = calloc(node->n_frames, 1);
	if (!f.claimed || !whole)
		r = err_raise(-ENOMEM);
	/* what cannot move is where the kernel takes from first: on top */
	for (unsigned int i = node->n_zones; i-- > 0 && r == 0;) {
		select_zone(&f, i, whole);
		layout_place_types(&f);
		r = layout_place_free(&f, &left.pages[rest], err);
		if (r == 0)
			place_unmovable(&f, &left);
	}
	for (unsigned int i = node->n_zones; i-- > 0 && r == 0;) {
		select_zone(&f, i, whole);
		place_overflow(&f, &left);
	}
	assert(r || left.pages[NODE_OCCUPANT_SLAB] == 0);
	assert(r || left.pages[NODE_OCCUPANT_KERNEL] == 0);
	for (unsigned int i = 0; i < node->n_zones && r == 0; i++) {
		select_zone(&f, i, whole);
		place_movable(&f, &left);
	}
	free(f.claimed);
	free(whole);
	return r;
}
