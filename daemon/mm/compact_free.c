/* SPDX-License-Identifier: MIT */
#include "mm/compaction.h"

#include "mm/buddy.h"

/*
 * The free scanner: from the top of the zone downwards, collecting free frames
 * as targets; but first a short search of the free lists.
 */

static bool block_skipped(const struct compact_control *cc, uint32_t pfn)
{
	return !cc->ignore_skip_hint &&
	       (cc->zone->node->blocks[pfn >> PAGEBLOCK_ORDER] & BLOCK_SKIP);
}

/* Splits an isolated block into frames on the target list. */
static void add_targets(struct compact_control *cc, uint32_t pfn,
			uint32_t pages)
{
	struct node *node = cc->zone->node;

	for (uint32_t i = pfn; i < pfn + pages; i++) {
		node->state[i] = frame_make(FRAME_ISOLATED, 0, 0);
		link_add_tail(node->links, cc->free_head, i);
	}
	cc->n_free += pages;
	node->isolated_pages += pages;
	count_event(node, VMSTAT_compact_isolated, pages);
}

/*
 * isolate_freepages_block(): takes what is free in [*pfn, end), every @stride
 * frames, until there are enough. Return: pages taken; *pfn is how far it got.
 */
static uint32_t scan_block(struct compact_control *cc, uint32_t *pfn,
			   uint32_t end, uint32_t stride)
{
	struct node *node = cc->zone->node;
	uint32_t i = *pfn, n_scanned = 0, taken = 0;

	for (; i < end; i += stride) {
		uint16_t s = node->state[i];
		uint32_t pages;

		n_scanned++;
		if (frame_type(s) == FRAME_BLOCK)
			i += (1u << frame_order(s)) - 1;
		if (frame_type(s) != FRAME_BUDDY)
			continue;
		pages = buddy_isolate(cc->zone, i);
		if (!pages)
			break;
		taken += pages;
		add_targets(cc, i, pages);
		if (cc->n_migrate <= cc->n_free) {
			i += pages;
			break;
		}
		i += pages - 1;
	}
	*pfn = MIN(i, end);
	cc->free_scanned += n_scanned;
	task_charge(cc->task, node->costs.compact_scan_ps * n_scanned);
	return taken;
}

/* suitable_migration_target() */
static bool target_suitable(const struct compact_control *cc, uint32_t pfn)
{
	const struct node *node = cc->zone->node;
	uint16_t s = node->state[pfn];

	if (frame_type(s) == FRAME_BUDDY && frame_order(s) >= PAGEBLOCK_ORDER)
		return false;
	return cc->ignore_block_suitable || block_mt(node, pfn) == MT_MOVABLE;
}

/* fast_isolate_around(): the rest of the pageblock where a block was found. */
static void isolate_around(struct compact_control *cc, uint32_t pfn)
{
	uint32_t start = block_start(pfn), end = block_end(pfn);

	if (cc->n_free >= cc->n_migrate)
		return;
	if (cc->direct && cc->async)
		return;
	(void)scan_block(cc, &start, end, 1);
	if (start == end)
		cc->zone->node->blocks[pfn >> PAGEBLOCK_ORDER] |= BLOCK_SKIP;
}

/* next_search_order(): downwards and around. Return: -1 when all were seen. */
static int next_order(struct compact_control *cc, int order)
{
	order--;
	if (order < 0)
		order = cc->order - 1;
	if (order == cc->search_order) {
		cc->search_order--;
		if (cc->search_order < 0)
			cc->search_order = cc->order - 1;
		return -1;
	}
	return order;
}

/* What fast_isolate() carries from order to order. */
struct fast_search {
	uint32_t low_pfn; /* preferred: the top quarter of what is left */
	uint32_t min_pfn; /* accepted: the top half */
	uint32_t highest; /* pageblock of the highest block seen */
	uint32_t limit;
	uint32_t n_scanned;
};

/* Searches one free list from its tail. Return: a block, or NO_PFN. */
static uint32_t search_list(struct compact_control *cc, struct fast_search *f,
			    unsigned int order)
{
	struct zone *zone = cc->zone;
	const struct frame_link *links = zone->node->links;
	uint32_t head = zone_head(zone, MT_MOVABLE, order);
	uint32_t found = NO_PFN, high = 0, n = 0, i, last = NO_PFN;

	for (i = links[head].prev; i != head; i = links[i].prev) {
		n++;
		last = i;
		f->highest = MAX(f->highest, block_start(i));
		if (i >= f->low_pfn) {
			cc->fast_search_fail = 0;
			cc->search_order = (int)order;
			found = i;
			break;
		}
		if (i >= f->min_pfn && i > high) {
			high = i;
			f->limit >>= 1;
		}
		if (n >= f->limit)
			break;
	}
	f->n_scanned += n;
	if (found == NO_PFN && high)
		found = last = high;
	if (last != NO_PFN)
		buddy_move_head(zone, last);
	/* less for the next order, so that the sum stays bounded */
	if (n >= f->limit)
		f->limit = MAX(1u, f->limit >> 1);
	return found;
}

/* Where to go on when no list had a block in the top half. */
static uint32_t search_failed(struct compact_control *cc,
			      const struct fast_search *f, bool scan_start)
{
	cc->fast_search_fail++;
	if (!scan_start)
		return NO_PFN;
	if (f->highest >= f->min_pfn) {
		cc->free_pfn = f->highest;
		return f->highest;
	}
	if (!cc->direct)
		return NO_PFN;
	/* a request is pessimistic: it goes on from the middle */
	if (f->min_pfn >= cc->zone->end_pfn)
		return NO_PFN;
	cc->free_pfn = f->min_pfn;
	return f->min_pfn;
}

/* fast_isolate_freepages() */
static void fast_isolate(struct compact_control *cc)
{
	struct zone *zone = cc->zone;
	bool scan_start = cc->free_pfn >= zone->compact_init_free_pfn;
	uint32_t distance = cc->free_pfn - cc->migrate_pfn;
	struct fast_search f = {
		.low_pfn = block_start(cc->free_pfn - (distance >> 2)),
		.min_pfn = block_start(cc->free_pfn - (distance >> 1)),
		.limit = scan_start ? PAGEBLOCK_PAGES / 2
				    : MAX(1u, compact_scan_limit(cc) >> 1),
	};
	uint32_t found = NO_PFN;

	/* the scanners may have met since the pages were isolated */
	if (cc->order <= 0 || cc->free_pfn <= cc->migrate_pfn)
		return;
	cc->search_order = MIN(cc->order - 1, cc->search_order);
	for (int o = cc->search_order; found == NO_PFN && o >= 0;
	     o = next_order(cc, o)) {
		uint32_t pages;

		if (!(zone->free_mask[MT_MOVABLE] & 1u << o))
			continue;
		found = search_list(cc, &f, (unsigned int)o);
		if (found == NO_PFN)
			continue;
		pages = buddy_isolate(zone, found);
		if (pages) {
			add_targets(cc, found, pages);
			f.n_scanned += pages - 1;
		} else {
			found = NO_PFN;
			break;
		}
		if (cc->n_free >= cc->n_migrate)
			break;
	}
	if (found == NO_PFN)
		found = search_failed(cc, &f, scan_start);
	if (f.highest && f.highest >= zone->compact_cached_free_pfn)
		zone->compact_cached_free_pfn =
			MAX(f.highest, zone->start_pfn + PAGEBLOCK_PAGES) -
			PAGEBLOCK_PAGES;
	cc->free_scanned += f.n_scanned;
	task_charge(cc->task, zone->node->costs.compact_scan_ps * f.n_scanned);
	if (found != NO_PFN)
		isolate_around(cc, found);
}

/* update_pageblock_skip() */
static void update_skip(struct compact_control *cc, uint32_t block)
{
	struct zone *zone = cc->zone;

	zone->node->blocks[block >> PAGEBLOCK_ORDER] |= BLOCK_SKIP;
	zone->compact_cached_free_pfn =
		MIN(zone->compact_cached_free_pfn, block);
}

void compact_isolate_targets(struct compact_control *cc)
{
	uint32_t low = block_end(cc->migrate_pfn);
	uint32_t stride = cc->async ? COMPACT_CLUSTER_MAX : 1;
	uint32_t block, pos;

	fast_isolate(cc);
	if (cc->n_free)
		return;
	pos = cc->free_pfn;
	block = block_start(pos);
	for (; block >= low; block -= PAGEBLOCK_PAGES, pos = block) {
		uint32_t end = block + PAGEBLOCK_PAGES, taken;

		task_charge(cc->task, cc->zone->node->costs.compact_block_ps);
		if (block >= cc->zone->end_pfn || !target_suitable(cc, block) ||
		    block_skipped(cc, block))
			continue;
		taken = scan_block(cc, &pos, end, stride);
		if (pos == end)
			update_skip(cc, block);
		if (cc->n_free >= cc->n_migrate) {
			/* next time from the pageblock below */
			if (pos >= end)
				pos = block - PAGEBLOCK_PAGES;
			break;
		}
		if (pos < end)
			break;
		stride = taken ? 1 : MIN(COMPACT_CLUSTER_MAX, stride << 1);
	}
	cc->free_pfn = pos;
}
