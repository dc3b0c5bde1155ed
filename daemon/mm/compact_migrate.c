/* SPDX-License-Identifier: MIT */
#include "mm/compaction.h"

#include "mm/buddy.h"
#include "mm/occupants.h"
#include "mm/pcp.h"

/*
 * The migrate scanner: from the bottom of the zone upwards, pageblock by
 * pageblock, collecting pages that can move.
 */

static bool block_skipped(const struct compact_control *cc, uint32_t pfn)
{
	return !cc->ignore_skip_hint &&
	       (cc->zone->node->blocks[pfn >> PAGEBLOCK_ORDER] & BLOCK_SKIP);
}

static void block_skip(struct compact_control *cc, uint32_t pfn)
{
	cc->zone->node->blocks[pfn >> PAGEBLOCK_ORDER] |= BLOCK_SKIP;
}

/* update_cached_migrate(). It is called with a pageblock's end, and goes on to
 * the end of the next one: as in the kernel. */
static void update_cached(struct compact_control *cc, uint32_t pfn)
{
	struct zone *zone = cc->zone;

	pfn = block_end(pfn);
	zone->compact_cached_migrate_pfn[0] =
		MAX(zone->compact_cached_migrate_pfn[0], pfn);
	if (!cc->async)
		zone->compact_cached_migrate_pfn[1] =
			MAX(zone->compact_cached_migrate_pfn[1], pfn);
}

/*
 * suitable_migration_source(): async direct compaction works in pageblocks of
 * the request's own type only.
 */
static bool source_suitable(const struct compact_control *cc, uint32_t pfn)
{
	const struct node *node = cc->zone->node;
	uint16_t s = node->state[block_start(pfn)];

	if (frame_type(s) == FRAME_BLOCK && frame_order(s) >= PAGEBLOCK_ORDER)
		return false;
	if (!cc->async || !cc->direct)
		return true;
	return block_mt(node, pfn) == cc->mt;
}

/* Remembers from where to scan on when the fast search ends. */
static void update_fast_start(struct compact_control *cc, uint32_t pfn)
{
	if (cc->fast_start_pfn == UINT32_MAX)
		return;
	if (!cc->fast_start_pfn || pfn < cc->fast_start_pfn)
		cc->fast_start_pfn = pfn;
}

static uint32_t reinit_migrate_pfn(struct compact_control *cc)
{
	if (cc->fast_start_pfn && cc->fast_start_pfn != UINT32_MAX) {
		cc->migrate_pfn = cc->fast_start_pfn;
		cc->fast_start_pfn = UINT32_MAX;
	}
	return cc->migrate_pfn;
}

/* A free movable block below @high whose pageblock is not to be skipped. */
static uint32_t search_list(struct compact_control *cc, unsigned int order,
			    uint32_t high, uint32_t limit, uint32_t *n_scanned)
{
	struct zone *zone = cc->zone;
	struct frame_link *links = zone->node->links;
	uint32_t head = zone_head(zone, MT_MOVABLE, order);

	for (uint32_t i = links[head].next; i != head; i = links[i].next) {
		if ((*n_scanned)++ >= limit) {
			buddy_move_tail(zone, i);
			break;
		}
		if (i >= high || block_skipped(cc, i))
			continue;
		buddy_move_tail(zone, i);
		return i;
	}
	return NO_PFN;
}

/*
 * fast_find_migrateblock(): kcompactd and movable requests first try pageblocks
 * that are partly free already. As in 6.1, the pageblock found is marked to be
 * skipped before it is scanned, and the scanner then does skip it.
 */
static uint32_t fast_find_block(struct compact_control *cc)
{
	struct zone *zone = cc->zone;
	uint32_t limit = compact_scan_limit(cc), n_scanned = 0;
	uint32_t pfn = cc->migrate_pfn, high, found = NO_PFN;
	uint32_t distance;

	if (cc->ignore_skip_hint || pfn % PAGEBLOCK_PAGES != 0 ||
	    cc->order <= (int)COSTLY_ORDER ||
	    (cc->direct && cc->mt != MT_MOVABLE))
		return pfn;
	distance = (cc->free_pfn - cc->migrate_pfn) >> 1;
	if (cc->migrate_pfn != zone->start_pfn)
		distance >>= 2;
	high = block_start(cc->migrate_pfn + distance);
	for (int o = cc->order - 1;
	     o >= (int)COSTLY_ORDER && found == NO_PFN && n_scanned < limit;
	     o--) {
		if (zone->free_mask[MT_MOVABLE] & 1u << o)
			found = search_list(cc, (unsigned int)o, high, limit,
					    &n_scanned);
	}
	cc->migrate_scanned += n_scanned;
	task_charge(cc->task, zone->node->costs.compact_scan_ps * n_scanned);
	if (found == NO_PFN) {
		cc->fast_search_fail++;
		return reinit_migrate_pfn(cc);
	}
	update_fast_start(cc, found);
	cc->fast_search_fail = 0;
	block_skip(cc, found);
	return block_start(found);
}

/* May the page be migrated at all, and in this mode? */
static bool can_isolate(const struct compact_control *cc, uint16_t s)
{
	if (!occupant_is_movable(s) || (s & FRAME_OFF_LIST))
		return false;
	return frame_occupant(s) != NODE_OCCUPANT_MLOCKED ||
	       !cc->zone->node->params.compact_unevictable_denied;
}

/* State of one call of scan_block(). */
struct block_scan {
	uint32_t pfn;
	uint32_t end;
	uint32_t next_skip; /* async: end of the order-aligned block */
	uint32_t n_scanned;
	uint32_t n_isolated;
	bool checked;  /* the skip bit, at the pageblock's first frame */
	bool set_skip; /* it was set by isolating that very frame */
	bool abort;
};

/* A page that cannot move: for async, its order-aligned block is lost. */
static void isolate_fail(struct compact_control *cc, struct block_scan *scan)
{
	if (!cc->direct || !cc->async)
		return;
	if (scan->n_isolated) {
		compact_put_back(cc);
		scan->n_isolated = 0;
	}
	if (scan->pfn < scan->next_skip) {
		scan->pfn = scan->next_skip - 1;
		scan->next_skip += 1u << cc->order;
	}
}

/* Takes the page off its list. Return: false when the scan is to stop. */
static bool isolate_page(struct compact_control *cc, struct block_scan *scan)
{
	struct node *node = cc->zone->node;

	if (!scan->set_skip) {
		/* a page at the pageblock's start marks it for others */
		scan->set_skip = true;
		if (scan->pfn % PAGEBLOCK_PAGES == 0 && !cc->ignore_skip_hint)
			block_skip(cc, scan->pfn);
	}
	occupant_isolate(node, scan->pfn);
	cc->migrate[cc->n_migrate++] = scan->pfn;
	scan->n_isolated++;
	if (cc->n_migrate >= COMPACT_CLUSTER_MAX && !cc->rescan) {
		scan->pfn++;
		return false;
	}
	return true;
}

/* Looks at one frame. Return: false when the scan is to stop. */
static bool scan_frame(struct compact_control *cc, struct block_scan *scan)
{
	uint16_t s = cc->zone->node->state[scan->pfn];

	scan->n_scanned++;
	if (!scan->checked && scan->pfn % PAGEBLOCK_PAGES == 0) {
		if (block_skipped(cc, scan->pfn)) {
			scan->pfn = scan->end;
			scan->abort = true;
			return false;
		}
		scan->checked = true;
	}
	if (frame_type(s) == FRAME_BUDDY) {
		scan->pfn += (1u << frame_order(s)) - 1;
		return true;
	}
	if (can_isolate(cc, s))
		return isolate_page(cc, scan);
	if (frame_type(s) == FRAME_BLOCK)
		scan->pfn += (1u << frame_order(s)) - 1;
	isolate_fail(cc, scan);
	return true;
}

/* isolate_migratepages_block() */
static void scan_block(struct compact_control *cc, uint32_t low, uint32_t end)
{
	struct node *node = cc->zone->node;
	struct block_scan scan = {.pfn = low, .end = end};
	bool skip_on_failure = cc->direct && cc->async && cc->order >= 0;

	if (skip_on_failure)
		scan.next_skip = (uint32_t)align_up(low + 1, 1u << cc->order);
	for (; scan.pfn < end; scan.pfn++) {
		if (skip_on_failure && scan.pfn >= scan.next_skip) {
			if (scan.n_isolated)
				break;
			scan.next_skip = (uint32_t)align_up(scan.pfn + 1,
							    1u << cc->order);
		}
		if (!scan_frame(cc, &scan))
			break;
	}
	scan.pfn = MIN(scan.pfn, end);
	if (scan.pfn == end && (!scan.n_isolated || cc->rescan)) {
		if (scan.checked && !scan.set_skip && !cc->ignore_skip_hint)
			block_skip(cc, low);
		update_cached(cc, end);
	}
	cc->migrate_scanned += scan.n_scanned;
	task_charge(cc->task, node->costs.compact_scan_ps * scan.n_scanned);
	count_event(node, VMSTAT_compact_isolated, scan.n_isolated);
	cc->migrate_pfn = scan.pfn;
}

bool compact_isolate_sources(struct compact_control *cc)
{
	struct node *node = cc->zone->node;
	uint32_t low = fast_find_block(cc);
	bool fast = low != cc->migrate_pfn && !cc->fast_search_fail;
	uint32_t end = block_end(low);

	/* whole pageblocks, up to the free scanner, until one is suitable */
	for (; end <= cc->free_pfn; end += PAGEBLOCK_PAGES) {
		task_charge(cc->task, node->costs.compact_block_ps);
		if (low >= cc->zone->end_pfn) {
			/* the hole: next */
		} else if (low % PAGEBLOCK_PAGES == 0 && !fast &&
			   block_skipped(cc, low)) {
			/* next */
		} else if (!source_suitable(cc, low)) {
			update_cached(cc, end);
		} else {
			scan_block(cc, low, end);
			break;
		}
		fast = false;
		cc->migrate_pfn = low = end;
	}
	return cc->n_migrate > 0;
}

void compact_put_back(struct compact_control *cc)
{
	for (uint32_t i = cc->n_migrate; i-- > 0;)
		occupant_put_back(cc->zone->node, cc->migrate[i]);
	cc->n_migrate = 0;
}

bool compact_migrate(struct compact_control *cc, uint32_t n)
{
	struct node *node = cc->zone->node;
	uint32_t done = 0;
	bool ok = true;

	/* list_add() when isolated: the last one found is moved first */
	for (; done < n && cc->n_migrate > 0; done++) {
		uint32_t from = cc->migrate[cc->n_migrate - 1], to;

		if (cc->n_free == 0)
			compact_isolate_targets(cc);
		if (cc->n_free == 0) {
			ok = false;
			break;
		}
		to = node->links[cc->free_head].next;
		link_remove(node->links, to);
		cc->n_free--;
		node->isolated_pages--;
		cc->n_migrate--;
		occupant_move(node, from, to);
		pcp_free(cc->task, cc->zone, from, 0);
	}
	task_charge(cc->task, node->costs.migrate_page_ps * done);
	count_event(node, VMSTAT_pgmigrate_success, done);
	/* proactive runs are not counted as the daemon's: as in 6.1 */
	if (!cc->direct && !cc->proactive)
		count_event(node, VMSTAT_model_daemon_migrated, done);
	if (ok)
		return true;
	count_event(node, VMSTAT_pgmigrate_fail, cc->n_migrate);
	compact_put_back(cc);
	return false;
}
