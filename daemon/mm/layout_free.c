/* SPDX-License-Identifier: MIT */
#include "mm/layout_free.h"

#include <string.h>

#include "mm/buddy.h"
#include "mm/compaction.h"
#include "mm/pcp.h"

/*
 * What a snapshot does not say is where things lie. Assumed here: pageblocks
 * of unmovable type at the bottom of the zone, then reclaimable, then movable,
 * as a zone is used from its bottom; whole free pageblocks at the top; smaller
 * free blocks evenly spread over the pageblocks of their type; reserved and
 * unmovable pages together, not spread, or no pageblock could be compacted.
 */

/* Types from the bottom up, by their counts; the last type takes the rest. */
void layout_place_types(struct frames *f)
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

/* A free block of a pageblock and more, as high as possible, or as low if
 * compaction made it. Two of order 9 may not be buddies: they would be one of
 * order 10. */
static bool place_whole(struct frames *f, unsigned int order, unsigned int mt)
{
	uint32_t n = 1u << (order - PAGEBLOCK_ORDER);

	for (enum place place = 0; place < PLACES; place++) {
		for (uint32_t k = 0; k + n <= f->n_blocks; k += n) {
			uint32_t first = f->n_made ? k : f->n_blocks - n - k;

			if (!whole_fits(f, first, n, mt, place))
				continue;
			if (order == PAGEBLOCK_ORDER &&
			    f->whole[first ^ 1] == BLOCK_FREE)
				continue;
			for (uint32_t i = first; i < first + n; i++) {
				f->whole[i] = BLOCK_FREE;
				block_set_mt(f->node, block_pfn(f, i), mt);
			}
			claim(f, block_pfn(f, first), order, mt);
			return true;
		}
	}
	return false;
}

/* Sets up to @n movable pageblocks aside, from the top or from the bottom. */
static uint64_t set_blocks_aside(struct frames *f, uint64_t n, bool top)
{
	for (uint32_t i = 0; i < f->n_blocks && n > 0; i++) {
		uint32_t b = top ? f->n_blocks - 1 - i : i;

		if (f->whole[b] != BLOCK_PARTLY ||
		    block_mt(f->node, block_pfn(f, b)) != MT_MOVABLE)
			continue;
		f->whole[b] = BLOCK_ASIDE;
		n--;
	}
	return n;
}

/*
 * Sets pageblocks aside for reserved frames, before anything else. Early memory
 * is taken from the top of all memory downwards (memblock), or for devices that
 * cannot reach all of it from the top of DMA32; the kernel's own image lies
 * low.
 */
static void set_aside(struct frames *f, uint64_t n_reserved)
{
	uint64_t n = n_reserved >> PAGEBLOCK_ORDER, top = 0;

	if (f->zone->index == f->node->n_zones - 1)
		top = n;
	else if (strcmp(f->zone->name, "DMA32") == 0)
		top = MIN(n, SNAPSHOT_SWIOTLB_BYTES /
					     f->node->params.page_size_bytes >>
				     PAGEBLOCK_ORDER);
	(void)set_blocks_aside(f, top, true);
	(void)set_blocks_aside(f, n - top, false);
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

/* The power of two not above @n, as an exponent. @n is not 0. */
static unsigned int log2_down(uint64_t n)
{
	return 63u - (unsigned int)__builtin_clzll(n);
}

/* Puts up to @n blocks into one pageblock, @apart frames from each other, the
 * first at @offset. Return: how many found room. */
static uint64_t fill_spaced(struct frames *f, uint32_t block, uint64_t n,
			    unsigned int order, unsigned int mt,
			    uint32_t offset, uint32_t apart)
{
	uint64_t placed = 0;

	for (uint32_t i = offset; i < PAGEBLOCK_PAGES && placed < n;
	     i += apart) {
		if (!may_place(f, block_pfn(f, block) + i, order))
			continue;
		claim(f, block_pfn(f, block) + i, order, mt);
		placed++;
	}
	return placed;
}

/* Into any gap. */
static uint64_t fill_gaps(struct frames *f, uint32_t block, uint64_t n,
			  unsigned int order, unsigned int mt)
{
	return fill_spaced(f, block, n, order, mt, 0, 1u << order);
}

/* What is left of a block that was taken piece by piece from its low end:
 * upper halves, at its upper end. */
static uint64_t fill_top(struct frames *f, uint32_t block, uint64_t n,
			 unsigned int order, unsigned int mt)
{
	uint64_t placed = 0;

	for (uint32_t i = PAGEBLOCK_PAGES; i > 0 && placed < n;
	     i -= 2u << order)
		placed += fill_spaced(f, block, 1, order, mt, i - (1u << order),
				      PAGEBLOCK_PAGES);
	return placed;
}

/*
 * Even places in one pageblock. In a machine that was started lately single
 * pages lie at the same place of each stretch of 2^n frames throughout a zone,
 * as a program leaves memory that it filled in order. Compaction samples frames
 * at powers of two (isolate_freepages()'s stride, reset_block() of
 * compaction.c): at which place they lie decides what it sees. That is chance,
 * so the zones differ: an even frame here, an odd one there, none a multiple of
 * four. In a machine that ran for long each pageblock has a place of its own.
 */
static uint64_t fill_evenly(struct frames *f, uint32_t block, uint64_t n,
			    unsigned int order, unsigned int mt)
{
	uint32_t pairs = PAGEBLOCK_PAGES >> (order + 1), apart;
	uint64_t placed;

	if (n == 0)
		return 0;
	if (f->node->params.snapshot->has_compacted) {
		apart = (uint32_t)(pairs / MIN(n, pairs)) << (order + 1);
		placed = fill_spaced(f, block, n, order, mt,
				     (uint32_t)rng_below(&f->rng, apart) >>
					     order << order,
				     apart);
		return placed + fill_gaps(f, block, n - placed, order, mt);
	}
	if (order > 0)
		return fill_top(f, block, n, order, mt);
	apart = 2u << log2_down(pairs / MIN(n, pairs));
	return fill_spaced(f, block, n, 0, mt,
			   (2 + !(f->zone->index & 1)) % apart, apart);
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
	if (mt == MT_MOVABLE && f->n_made && order > 0)
		n_wanted = MIN(n_wanted, f->n_made);
	for (uint32_t b = 0; b < f->n_blocks && seen < n_wanted; b++) {
		if (!wanted_block(f, b, mt))
			continue;
		seen++;
		placed += fill_evenly(f, b,
				      n * seen / n_wanted -
					      n * (seen - 1) / n_wanted,
				      order, mt);
	}
	/* what did not fit evenly goes where there is room: its own type's
	 * pageblocks, then those set aside, then any */
	left = n - placed;
	for (uint32_t b = 0; b < f->n_blocks && left > 0; b++)
		if (wanted_block(f, b, mt))
			left -= fill_gaps(f, b, left, order, mt);
	for (uint32_t b = f->n_blocks; b-- > 0 && left > 0;)
		if (f->whole[b] != BLOCK_FREE)
			left -= fill_gaps(f, b, left, order, mt);
	return left;
}

/* Of all types. Return: whether they found room. */
static bool place_all_small(struct frames *f, unsigned int order)
{
	for (unsigned int mt = 0; mt < MT_COUNT; mt++)
		if (place_small(f, order, mt))
			return false;
	return true;
}

/*
 * Has proactive compaction been at work in the zone? Its passes stop at the low
 * mark, and go beyond it by what sits on the per-CPU lists: a score there is
 * hardly chance. Then the free pageblocks are where it made them, at the
 * bottom, and smaller blocks around them are what it was at.
 */
static void find_compacted(struct frames *f)
{
	const uint64_t(*n)[NODE_ORDERS] = f->snap->free;
	uint64_t mark = compaction_score_wmark(f->node, true);
	uint64_t free = 0, whole = 0, below;

	f->n_made = 0;
	if (f->node->params.compaction_proactiveness == 0)
		return;
	for (unsigned int mt = 0; mt < MT_COUNT; mt++)
		for (unsigned int o = 0; o < NODE_ORDERS; o++) {
			free += n[mt][o] << o;
			if (o >= PAGEBLOCK_ORDER)
				whole += n[mt][o] << o;
		}
	below = free * (99 - mark) / 100; /* so many are not enough yet */
	if (whole <= below ||
	    whole > below + PAGEBLOCK_PAGES + f->zone->pcp[0].high)
		return;
	f->n_made = (uint32_t)(whole >> PAGEBLOCK_ORDER);
}

/* zoneinfo's count, shared out; else between empty and full half full, in the
 * zone that programs get their pages from. */
static uint32_t expected_pcp(const struct frames *f)
{
	const struct node *node = f->node;

	if (f->snap->pcp_pages != SNAPSHOT_UNKNOWN)
		return (uint32_t)(f->snap->pcp_pages / node->n_cpus);
	if (f->zone->index != node->n_zones - 1)
		return 0;
	return f->zone->pcp[0].high / 2;
}

/*
 * Per-CPU lists hold pages that programs gave back, in the runs in which a list
 * was refilled for them; buddyinfo does not count them.
 * Return: how many pages, at most @max.
 */
static uint64_t place_pcp(struct frames *f, uint64_t max)
{
	uint32_t expected = expected_pcp(f), b = 0;
	uint64_t placed = 0;

	for (unsigned int cpu = 0; cpu < f->node->n_cpus; cpu++) {
		const struct pcp *pcp = &f->zone->pcp[cpu];
		uint32_t want = MIN(expected, pcp->high);
		uint32_t batch = MIN(pcp->batch, PAGEBLOCK_PAGES);

		for (; b < f->n_blocks && pcp->count < want; b++) {
			uint32_t run = MIN(batch, want - pcp->count);
			uint32_t pfn = block_pfn(f, b);

			if (!wanted_block(f, b, MT_MOVABLE))
				continue;
			if (placed + run > max)
				return placed;
			pfn += (uint32_t)rng_below(&f->rng,
						   PAGEBLOCK_PAGES + 1 - run);
			if (memchr(f->claimed + pfn, 1, run))
				continue;
			memset(f->claimed + pfn, 1, run);
			for (uint32_t i = pfn; i < pfn + run; i++)
				pcp_seed(f->zone, cpu, i);
			placed += run;
		}
	}
	return placed;
}

int layout_place_free(struct frames *f, uint64_t *rest, struct node_error *err)
{
	uint64_t reserved =
		f->zone->end_pfn - f->zone->start_pfn - f->zone->managed_pages;
	unsigned int o = NODE_MAX_ORDER;

	set_aside(f, reserved);
	find_compacted(f);
	for (; o >= PAGEBLOCK_ORDER; o--)
		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			for (uint64_t i = 0; i < f->snap->free[mt][o]; i++)
				if (!place_whole(f, o, mt))
					goto no_room;
	for (; o > 0; o--)
		if (!place_all_small(f, o))
			goto no_room;
	*rest -= place_pcp(f, *rest / 2);
	if (place_all_small(f, 0))
		return 0;
no_room:
	return layout_error(err,
			    "zone %s: its free blocks of order %u do not fit "
			    "into %u pageblocks beside the others",
			    f->zone->name, o, f->n_blocks);
}
