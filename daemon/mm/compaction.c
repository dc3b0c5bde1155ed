/* SPDX-License-Identifier: MIT */
#include "mm/compaction.h"
#include "mm/occupants.h"

#include "mm/buddy.h"
#include "mm/kthread.h"
#include "mm/pcp.h"
#include "mm/watermark.h"

#define EXTFRAG_THRESHOLD 500 /* vm.extfrag_threshold */
#define STEP_PAGES        4u  /* moved before others get their turn */

/* compact_gap(): free pages that a run for @order needs to work with. */
static uint32_t compact_gap(int order)
{
	return 2u << order;
}

enum compact_result compaction_suitable_pages(const struct zone *zone,
					      int order,
					      unsigned int alloc_flags,
					      unsigned int highest_zone,
					      uint32_t free_pages)
{
	uint32_t mark;

	if (order == COMPACT_WHOLE)
		return COMPACT_CONTINUE;
	mark = zone_wmark(zone, alloc_flags & ALLOC_WMARK_MASK);
	if (watermark_ok(zone, (unsigned int)order, mark, highest_zone,
			 zone->free_pages))
		return COMPACT_SUCCESS;
	mark = zone_wmark(zone,
			  order > (int)COSTLY_ORDER ? WMARK_LOW : WMARK_MIN) +
	       compact_gap(order);
	if (!watermark_ok(zone, 0, mark, highest_zone, free_pages))
		return COMPACT_SKIPPED;
	return COMPACT_CONTINUE;
}

enum compact_result compaction_suitable(const struct zone *zone, int order,
					unsigned int alloc_flags,
					unsigned int highest_zone)
{
	enum compact_result r =
		compaction_suitable_pages(zone, order, alloc_flags,
					  highest_zone, zone->free_pages);
	int index;

	if (r != COMPACT_CONTINUE || order <= (int)COSTLY_ORDER)
		return r;
	/* towards 0 memory is what lacks: compaction would not help */
	index = watermark_fragmentation_index(zone, (unsigned int)order);
	if (index >= 0 && index <= EXTFRAG_THRESHOLD)
		return COMPACT_SKIPPED;
	return r;
}

void compaction_defer(struct zone *zone, int order)
{
	zone->compact_considered = 0;
	zone->compact_defer_shift =
		MIN(zone->compact_defer_shift + 1, COMPACT_MAX_DEFER);
	if (order < (int)zone->compact_order_failed)
		zone->compact_order_failed = (uint32_t)order;
}

bool compaction_deferred(struct zone *zone, int order)
{
	uint32_t limit = 1u << zone->compact_defer_shift;

	if (order < (int)zone->compact_order_failed)
		return false;
	zone->compact_considered = MIN(zone->compact_considered + 1, limit);
	return zone->compact_considered < limit;
}

void compaction_defer_reset(struct zone *zone, int order, bool allocated)
{
	if (allocated) {
		zone->compact_considered = 0;
		zone->compact_defer_shift = 0;
	}
	if (order >= (int)zone->compact_order_failed)
		zone->compact_order_failed = (uint32_t)(order + 1);
}

/* compaction_restarting(): after the longest deferral */
static bool restarting(const struct zone *zone, int order)
{
	return order >= (int)zone->compact_order_failed &&
	       zone->compact_defer_shift == COMPACT_MAX_DEFER &&
	       zone->compact_considered >= 1u << COMPACT_MAX_DEFER;
}

void compaction_reset_positions(struct zone *zone)
{
	zone->compact_cached_migrate_pfn[0] = zone->start_pfn;
	zone->compact_cached_migrate_pfn[1] = zone->start_pfn;
	zone->compact_cached_free_pfn = zone_span_end(zone) - PAGEBLOCK_PAGES;
}

/*
 * __reset_isolation_pfn(): forget that the pageblock was to be skipped if a
 * sample of its frames shows something to move, or somewhere to move to.
 */
static bool reset_block(struct zone *zone, uint32_t pfn, bool source,
			bool target)
{
	struct node *node = zone->node;
	uint8_t *block;
	uint16_t s;

	if (pfn >= zone->end_pfn)
		return false;
	block = &node->blocks[pfn >> PAGEBLOCK_ORDER];
	s = node->state[block_start(pfn)];
	if (frame_type(s) == FRAME_BLOCK && frame_order(s) >= PAGEBLOCK_ORDER)
		return false;
	if (source && target && !(*block & BLOCK_SKIP))
		return true;
	if (!source && target && block_mt(node, pfn) != MT_MOVABLE)
		return false;
	for (uint32_t i = block_start(pfn); i < block_end(pfn);
	     i += 1u << COSTLY_ORDER) {
		s = node->state[i];
		if ((source && occupant_is_movable(s)) ||
		    (target && frame_type(s) == FRAME_BUDDY)) {
			*block &= (uint8_t)~BLOCK_SKIP;
			return true;
		}
	}
	return false;
}

/* __reset_isolation_suitable(): from both ends towards the middle. */
void compaction_reset_skip(struct zone *zone)
{
	uint32_t migrate = zone->start_pfn, free = zone_span_end(zone) - 1;
	uint32_t reset_migrate = free, reset_free = migrate;
	bool source_set = false, free_set = false;

	if (!zone->compact_blockskip_flush)
		return;
	zone->compact_blockskip_flush = false;
	for (; migrate < free;
	     migrate += PAGEBLOCK_PAGES, free -= PAGEBLOCK_PAGES) {
		if (reset_block(zone, migrate, true, source_set) &&
		    migrate < reset_migrate) {
			source_set = true;
			reset_migrate = migrate;
			zone->compact_init_migrate_pfn = migrate;
			zone->compact_cached_migrate_pfn[0] = migrate;
			zone->compact_cached_migrate_pfn[1] = migrate;
		}
		if (reset_block(zone, free, free_set, true) &&
		    free > reset_free) {
			free_set = true;
			reset_free = free;
			zone->compact_init_free_pfn = free;
			zone->compact_cached_free_pfn = free;
		}
	}
	if (reset_migrate >= reset_free) {
		zone->compact_cached_migrate_pfn[0] = migrate;
		zone->compact_cached_migrate_pfn[1] = migrate;
		zone->compact_cached_free_pfn = free;
	}
}

bool compact_scanners_met(const struct compact_control *cc)
{
	return cc->free_pfn >> PAGEBLOCK_ORDER <= cc->migrate_pfn >>
	       PAGEBLOCK_ORDER;
}

unsigned int compact_scan_limit(const struct compact_control *cc)
{
	/* half as deep after each search that found nothing */
	return (COMPACT_CLUSTER_MAX >> MIN(cc->fast_search_fail, 31u)) + 1;
}

/* __compact_finished() */
static enum compact_result finished(struct compact_control *cc)
{
	struct zone *zone = cc->zone;
	bool steal;

	if (compact_scanners_met(cc)) {
		compaction_reset_positions(zone);
		/* kswapd clears the skip bits, for requests only */
		if (cc->direct)
			zone->compact_blockskip_flush = true;
		return cc->whole_zone ? COMPACT_COMPLETE
				      : COMPACT_PARTIAL_SKIPPED;
	}
	if (cc->proactive) {
		if (kswapd_is_running(zone->node))
			return COMPACT_PARTIAL_SKIPPED;
		return compaction_score_zone(zone) >
				       compaction_score_wmark(zone->node, true)
			       ? COMPACT_CONTINUE
			       : COMPACT_SUCCESS;
	}
	/* a pageblock once begun is finished */
	if (cc->migrate_pfn % PAGEBLOCK_PAGES != 0)
		return COMPACT_CONTINUE;
	for (unsigned int o = (unsigned int)cc->order; o < NODE_ORDERS; o++) {
		if (zone->free_mask[cc->mt] & 1u << o)
			return COMPACT_SUCCESS;
		if (buddy_find_fallback(zone, o, cc->mt, true, &steal) >= 0)
			return COMPACT_SUCCESS;
	}
	return COMPACT_CONTINUE;
}

enum compact_result compact_begin(struct compact_control *cc)
{
	struct zone *zone = cc->zone;
	enum compact_result r;
	unsigned int sync = cc->async ? 0 : 1;

	cc->migrate_scanned = 0;
	cc->free_scanned = 0;
	cc->n_migrate = 0;
	cc->migrating = false;
	cc->n_free = 0;
	link_init(zone->node->links, cc->free_head);
	r = compaction_suitable(zone, cc->order, cc->alloc_flags,
				cc->highest_zone);
	if (r != COMPACT_CONTINUE)
		return r;
	task_charge(cc->task, zone->node->costs.compact_entry_ps);
	if (cc->order != COMPACT_WHOLE && restarting(zone, cc->order))
		compaction_reset_skip(zone);

	cc->fast_start_pfn = 0;
	if (cc->whole_zone) {
		cc->migrate_pfn = zone->start_pfn;
		cc->free_pfn = zone_span_end(zone) - PAGEBLOCK_PAGES;
	} else {
		cc->migrate_pfn = zone->compact_cached_migrate_pfn[sync];
		cc->free_pfn = zone->compact_cached_free_pfn;
		if (cc->free_pfn < zone->start_pfn ||
		    cc->free_pfn >= zone_span_end(zone)) {
			cc->free_pfn = zone_span_end(zone) - PAGEBLOCK_PAGES;
			zone->compact_cached_free_pfn = cc->free_pfn;
		}
		if (cc->migrate_pfn < zone->start_pfn ||
		    cc->migrate_pfn >= zone_span_end(zone)) {
			cc->migrate_pfn = zone->start_pfn;
			zone->compact_cached_migrate_pfn[0] = cc->migrate_pfn;
			zone->compact_cached_migrate_pfn[1] = cc->migrate_pfn;
		}
		if (cc->migrate_pfn <= zone->compact_init_migrate_pfn)
			cc->whole_zone = true;
	}
	cc->last_migrated_pfn = NO_PFN;
	cc->update_cached =
		cc->async && zone->compact_cached_migrate_pfn[0] ==
				     zone->compact_cached_migrate_pfn[1];
	return finished(cc);
}

/* Joins what was freed once the scanner left the order-aligned block. */
static void drain_behind(struct compact_control *cc)
{
	uint32_t current;

	if (cc->order <= 0 || cc->last_migrated_pfn == NO_PFN)
		return;
	current = cc->migrate_pfn & ~((1u << cc->order) - 1);
	if (cc->last_migrated_pfn < current) {
		pcp_drain(cc->task, cc->zone, cc->task->cpu);
		cc->last_migrated_pfn = NO_PFN;
	}
}

/* The end of a turn: what was migrated may be the block that is wanted. */
static enum compact_result end_turn(struct compact_control *cc)
{
	drain_behind(cc);
	if (cc->task->capture_cc == cc && cc->task->captured_pfn != NO_PFN)
		return COMPACT_SUCCESS;
	return finished(cc);
}

static enum compact_result step_migrate(struct compact_control *cc)
{
	bool ok = compact_migrate(cc, STEP_PAGES);

	if (cc->n_migrate > 0)
		return COMPACT_CONTINUE;
	cc->migrating = false;
	if (!ok) {
		if (!compact_scanners_met(cc))
			return COMPACT_CONTENDED;
		if (cc->direct && cc->async) {
			/* the order-aligned block is lost: skip its rest */
			cc->migrate_pfn = (uint32_t)align_up(cc->migrate_pfn,
							     1u << cc->order);
			cc->last_migrated_pfn = NO_PFN;
		}
	}
	return end_turn(cc);
}

enum compact_result compact_step(struct compact_control *cc)
{
	struct zone *zone = cc->zone;
	uint32_t start = cc->migrate_pfn;

	if (cc->migrating)
		return step_migrate(cc);
	cc->rescan = cc->last_migrated_pfn != NO_PFN &&
		     block_start(cc->last_migrated_pfn) == block_start(start);
	if (!compact_isolate_sources(cc)) {
		if (cc->update_cached)
			zone->compact_cached_migrate_pfn[1] =
				zone->compact_cached_migrate_pfn[0];
		return end_turn(cc);
	}
	cc->update_cached = false;
	cc->last_migrated_pfn = start;
	cc->migrating = true;
	return COMPACT_CONTINUE;
}

/* release_freepages() and the counting at the end of compact_zone() */
void compact_end(struct compact_control *cc)
{
	struct zone *zone = cc->zone;
	struct node *node = zone->node;
	uint32_t highest = 0;

	compact_put_back(cc);
	while (cc->n_free > 0) {
		uint32_t pfn = node->links[cc->free_head].next;

		link_remove(node->links, pfn);
		node->isolated_pages--;
		cc->n_free--;
		highest = MAX(highest, block_start(pfn));
		pcp_free(cc->task, zone, pfn, 0);
	}
	/* only back: compact_finished() may have reset it to the end */
	if (highest > zone->compact_cached_free_pfn)
		zone->compact_cached_free_pfn = highest;
	count_event(node, VMSTAT_compact_migrate_scanned, cc->migrate_scanned);
	count_event(node, VMSTAT_compact_free_scanned, cc->free_scanned);
}

bool compaction_capture(struct task *task, struct zone *zone, uint32_t pfn,
			unsigned int order, unsigned int mt)
{
	const struct compact_control *cc = task->capture_cc;

	if (task->captured_pfn != NO_PFN || cc->zone != zone ||
	    (int)order != cc->order)
		return false;
	/* a small request must not put itself into a movable pageblock */
	if (order < PAGEBLOCK_ORDER && mt == MT_MOVABLE)
		return false;
	task->captured_pfn = pfn;
	zone->node->state[pfn] = FRAME_BODY;
	return true;
}

/* compact_zone_order() */
static enum compact_result compact_direct(struct task *task, struct zone *zone,
					  const struct alloc_context *ac,
					  unsigned int alloc_flags,
					  enum compact_priority prio,
					  uint32_t *ret_pfn)
{
	struct node *node = zone->node;
	struct compact_control *cc = node->direct_cc;
	bool full = prio == COMPACT_PRIO_SYNC_FULL;
	enum compact_result r;

	*cc = (struct compact_control){
		.zone = zone,
		.task = task,
		.order = (int)ac->order,
		.search_order = (int)ac->order,
		.mt = ac->mt,
		.alloc_flags = alloc_flags,
		.highest_zone = ac->highest_zone,
		.async = prio == COMPACT_PRIO_ASYNC,
		.direct = true,
		.whole_zone = full,
		.ignore_skip_hint = full,
		.ignore_block_suitable = full,
		.free_head = node->compact_heads,
	};
	task->captured_pfn = NO_PFN;
	task->capture_cc = cc;
	r = compact_begin(cc);
	while (r == COMPACT_CONTINUE) {
		r = compact_step(cc);
		node_run_threads(node, task_now_ns(task));
	}
	compact_end(cc);
	task->capture_cc = NULL;
	*ret_pfn = task->captured_pfn;
	return *ret_pfn != NO_PFN ? COMPACT_SUCCESS : r;
}

enum compact_result compaction_try(struct task *task, struct node *node,
				   const struct alloc_context *ac,
				   unsigned int alloc_flags,
				   enum compact_priority prio,
				   uint32_t *ret_pfn)
{
	enum compact_result result = COMPACT_SKIPPED;
	int order = (int)ac->order;

	*ret_pfn = NO_PFN;
	for (unsigned int i = ac->highest_zone + 1; i-- > 0;) {
		struct zone *zone = &node->zones[i];
		enum compact_result r;

		if (prio > COMPACT_PRIO_SYNC_FULL &&
		    compaction_deferred(zone, order)) {
			if (result < COMPACT_DEFERRED)
				result = COMPACT_DEFERRED;
			continue;
		}
		r = compact_direct(task, zone, ac, alloc_flags, prio, ret_pfn);
		result = MAX(result, r);
		if (r == COMPACT_SUCCESS) {
			compaction_defer_reset(zone, order, false);
			break;
		}
		if (prio != COMPACT_PRIO_ASYNC &&
		    (r == COMPACT_COMPLETE || r == COMPACT_PARTIAL_SKIPPED))
			compaction_defer(zone, order);
	}
	return result;
}

/* extfrag_for_order() at the pageblock's order */
unsigned int compaction_score_zone(const struct zone *zone)
{
	uint64_t free = 0, suitable = 0;

	for (unsigned int o = 0; o < NODE_ORDERS; o++) {
		for (unsigned int mt = 0; mt < MT_COUNT; mt++) {
			uint64_t pages = (uint64_t)zone->free_blocks[mt][o]
					 << o;

			free += pages;
			if (o >= PAGEBLOCK_ORDER)
				suitable += pages;
		}
	}
	return free ? (unsigned int)((free - suitable) * 100 / free) : 0;
}

unsigned int compaction_score_node(const struct node *node)
{
	unsigned int score = 0;

	/* weighted by size: what happens in a small zone hardly counts */
	for (unsigned int i = 0; i < node->n_zones; i++) {
		const struct zone *zone = &node->zones[i];
		uint64_t present = zone->end_pfn - zone->start_pfn;

		score += (unsigned int)(present * compaction_score_zone(zone) /
					(node->n_frames + UINT64_C(1)));
	}
	return score;
}

unsigned int compaction_score_wmark(const struct node *node, bool low)
{
	unsigned int mark =
		MAX(100 - node->params.compaction_proactiveness, 5u);

	return low ? mark : MIN(mark + 10, 100u);
}
