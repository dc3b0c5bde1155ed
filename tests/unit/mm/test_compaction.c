/* SPDX-License-Identifier: MIT */
#include "mm/compaction.h"

#include "mm/buddy.h"
#include "mm/kthread.h"
#include "mm/occupants.h"
#include "mm/pcp.h"
#include "support.h"

static struct node *node;
static struct zone *zone;
static struct task task;
static const struct alloc_context order_4 = {
	.order = 4,
	.gfp = GFP_MID_ORDER,
	.mt = MT_UNMOVABLE,
};

static void deny_unevictable(struct node_params *p)
{
	p->compact_unevictable_denied = true;
}

static void proactive(struct node_params *p)
{
	p->compaction_proactiveness = 20;
}

/* One page in @n free, everything else of @kind: no block above order 0. */
static void make_fragmented(enum node_occupant kind, unsigned int n,
			    void (*change)(struct node_params *))
{
	node = test_node(MIB(64), "", change);
	zone = &node->zones[0];
	task = (struct task){.captured_pfn = NO_PFN};
	(void)node_occupy_fill(node, NODE_OCCUPANT_ANON, 0);
	(void)node_release_every(node, NODE_OCCUPANT_ANON, n);
	pcp_drain_all(&task, node);
	(void)node_convert(node, NODE_OCCUPANT_ANON, kind);
	zone->wmark_boost = 0;
	zone->boosted = false;
	CU_ASSERT_EQUAL(zone->free_mask[MT_MOVABLE], 1u);
}

static void teardown(void)
{
	test_node_check(node);
	node = node_free(node);
}

static enum compact_result compact(enum compact_priority prio)
{
	uint32_t pfn = NO_PFN;
	enum compact_result r =
		compaction_try(&task, node, &order_4, WMARK_MIN, prio, &pfn);

	CU_ASSERT_EQUAL(pfn, NO_PFN);
	return r;
}

static void sync_compaction_finishes_the_pageblock_it_began(void)
{
	make_fragmented(NODE_OCCUPANT_ANON, 2, NULL);
	CU_ASSERT_EQUAL(compact(COMPACT_PRIO_SYNC_LIGHT), COMPACT_SUCCESS);
	CU_ASSERT_EQUAL(node_vmstat(node, "pgmigrate_success"), 256);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][PAGEBLOCK_ORDER], 1);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_migrate_scanned"), 512);
	teardown();
}

static void it_costs_what_it_moved_and_scanned(void)
{
	const struct cost_profile *costs;

	make_fragmented(NODE_OCCUPANT_ANON, 2, NULL);
	costs = &node->costs;
	(void)compact(COMPACT_PRIO_SYNC_LIGHT);
	CU_ASSERT(task.spent_ps >=
		  256 * costs->migrate_page_ps + 512 * costs->compact_scan_ps);
	CU_ASSERT(task.spent_ps < 300 * costs->migrate_page_ps +
					  10000 * costs->compact_scan_ps);
	teardown();
}

static void async_compaction_looks_only_at_pageblocks_of_its_type(void)
{
	uint32_t pfn = NO_PFN;

	make_fragmented(NODE_OCCUPANT_ANON, 2, NULL);
	CU_ASSERT_EQUAL(compact(COMPACT_PRIO_ASYNC), COMPACT_COMPLETE);
	CU_ASSERT_EQUAL(node_vmstat(node, "pgmigrate_success"), 0);
	/* with an unmovable pageblock it has something to do */
	block_set_mt(node, 0, MT_UNMOVABLE);
	CU_ASSERT_EQUAL(compaction_try(&task, node, &order_4, WMARK_MIN,
				       COMPACT_PRIO_ASYNC, &pfn),
			COMPACT_SUCCESS);
	CU_ASSERT(node_vmstat(node, "pgmigrate_success") > 0);
	/* there the block that becomes free is the request's at once */
	CU_ASSERT(pfn < PAGEBLOCK_PAGES);
	node = node_free(node);
}

static void failed_async_compaction_is_not_deferred(void)
{
	make_fragmented(NODE_OCCUPANT_KERNEL, 2, NULL);
	CU_ASSERT_EQUAL(compact(COMPACT_PRIO_ASYNC), COMPACT_COMPLETE);
	CU_ASSERT_EQUAL(zone->compact_defer_shift, 0);
	teardown();
}

static void failed_sync_compaction_is_deferred_longer_each_time(void)
{
	unsigned int tried = 0;

	make_fragmented(NODE_OCCUPANT_KERNEL, 2, NULL);
	for (int i = 0; i < 127; i++)
		tried += compact(COMPACT_PRIO_SYNC_LIGHT) != COMPACT_DEFERRED;
	/* after 1, 2, 4 .. 64 requests */
	CU_ASSERT_EQUAL(tried, 7);
	CU_ASSERT_EQUAL(zone->compact_defer_shift, COMPACT_MAX_DEFER);
	/* a smaller order is not affected once this order was what failed */
	zone->compact_order_failed = 4;
	CU_ASSERT_FALSE(compaction_deferred(zone, 3));
	CU_ASSERT(compaction_deferred(zone, 4));
	compaction_defer_reset(zone, 4, true);
	CU_ASSERT_FALSE(compaction_deferred(zone, 4));
	teardown();
}

static void pageblocks_without_success_are_skipped_until_flushed(void)
{
	uint64_t scanned;

	make_fragmented(NODE_OCCUPANT_KERNEL, 2, NULL);
	(void)compact(COMPACT_PRIO_SYNC_LIGHT);
	scanned = node_vmstat(node, "compact_migrate_scanned");
	CU_ASSERT(scanned > 10000);
	zone->compact_defer_shift = 0;
	(void)compact(COMPACT_PRIO_SYNC_LIGHT);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_migrate_scanned"), scanned);
	/* scanners met for a request: kswapd flushes when it goes to sleep */
	CU_ASSERT(zone->compact_blockskip_flush);
	compaction_reset_skip(zone);
	CU_ASSERT_FALSE(zone->compact_blockskip_flush);
	teardown();
}

static void mlocked_pages_move_unless_that_is_denied(void)
{
	make_fragmented(NODE_OCCUPANT_MLOCKED, 2, NULL);
	CU_ASSERT_EQUAL(compact(COMPACT_PRIO_SYNC_LIGHT), COMPACT_SUCCESS);
	teardown();
	make_fragmented(NODE_OCCUPANT_MLOCKED, 2, deny_unevictable);
	CU_ASSERT_NOT_EQUAL(compact(COMPACT_PRIO_SYNC_LIGHT), COMPACT_SUCCESS);
	CU_ASSERT_EQUAL(node_vmstat(node, "pgmigrate_success"), 0);
	teardown();
}

static void one_unmovable_page_in_each_pageblock_leaves_smaller_blocks(void)
{
	make_fragmented(NODE_OCCUPANT_ANON, 2, NULL);
	for (uint32_t i = 1; i < node->n_frames; i += PAGEBLOCK_PAGES)
		occupant_change(node,
				frame_is_occupant(node->state[i]) ? i : i + 1,
				NODE_OCCUPANT_KERNEL);
	CU_ASSERT_EQUAL(compact(COMPACT_PRIO_SYNC_LIGHT), COMPACT_SUCCESS);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][PAGEBLOCK_ORDER], 0);
	CU_ASSERT(zone->free_mask[MT_MOVABLE] >> 4);
	teardown();
}

static void it_needs_free_pages_to_work_with(void)
{
	make_fragmented(NODE_OCCUPANT_ANON, 64, NULL);
	/* 256 pages free: below the low mark and twice the block */
	CU_ASSERT_EQUAL(compaction_suitable(zone, 4, WMARK_MIN, 0),
			COMPACT_SKIPPED);
	CU_ASSERT_EQUAL(compact(COMPACT_PRIO_SYNC_LIGHT), COMPACT_SKIPPED);
	teardown();
}

static void a_block_that_is_free_needs_no_compaction(void)
{
	node = test_node(MIB(64), "", NULL);
	zone = &node->zones[0];
	task = (struct task){.captured_pfn = NO_PFN};
	CU_ASSERT_EQUAL(compact(COMPACT_PRIO_SYNC_LIGHT), COMPACT_SUCCESS);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_migrate_scanned"), 0);
	teardown();
}

static void a_freed_block_of_the_order_is_captured_unless_movable(void)
{
	struct compact_control cc = {.order = 4};
	struct task t = {.captured_pfn = NO_PFN, .capture_cc = &cc};

	node = test_node(MIB(64), "", NULL);
	cc.zone = zone = &node->zones[0];
	CU_ASSERT_FALSE(compaction_capture(&t, zone, 16, 4, MT_MOVABLE));
	CU_ASSERT_FALSE(compaction_capture(&t, zone, 16, 3, MT_UNMOVABLE));
	CU_ASSERT(compaction_capture(&t, zone, 16, 4, MT_UNMOVABLE));
	CU_ASSERT_EQUAL(t.captured_pfn, 16);
	CU_ASSERT_FALSE(compaction_capture(&t, zone, 32, 4, MT_UNMOVABLE));
	node = node_free(node);
}

static void the_worst_case_zone_is_compacted_to_its_limit(void)
{
	struct compact_control *cc;

	make_fragmented(NODE_OCCUPANT_ANON, 2, NULL);
	cc = node->direct_cc;
	*cc = (struct compact_control){
		.zone = zone,
		.task = &task,
		.order = COMPACT_WHOLE,
		.whole_zone = true,
		.ignore_skip_hint = true,
		.free_head = node->compact_heads,
	};
	T_REQUIRE(compact_begin(cc) == COMPACT_CONTINUE);
	while (compact_step(cc) == COMPACT_CONTINUE)
		;
	compact_end(cc);
	pcp_drain_all(&task, node);
	/* all pages are in the upper half now, within a few pageblocks */
	CU_ASSERT(zone->free_pages == MIB(32) / 4096);
	CU_ASSERT(compaction_score_zone(zone) < 15);
	teardown();
}

static void kcompactd_makes_a_pageblock_after_a_boost(void)
{
	struct node_request req = {0};

	make_fragmented(NODE_OCCUPANT_ANON, 2, NULL);
	/* an unmovable page steals, boosts and wakes kswapd, which goes to
	 * sleep at once and wakes kcompactd */
	T_REQUIRE(test_alloc(node, &req, 0, GFP_LOW_ORDER) != UINT64_MAX);
	CU_ASSERT(zone->wmark_boost > 0);
	node_advance(node, node_now_ns(node) + 50 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(zone->wmark_boost, 0);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_daemon_wake"), 1);
	CU_ASSERT(node_vmstat(node, "model_daemon_migrated") >= 200);
	CU_ASSERT(
		(zone->free_mask[MT_MOVABLE] | zone->free_mask[MT_UNMOVABLE]) >>
		PAGEBLOCK_ORDER);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_stall"), 0);
	teardown();
}

static void proactive_compaction_lowers_the_score_and_rests(void)
{
	make_fragmented(NODE_OCCUPANT_ANON, 2, proactive);
	CU_ASSERT(compaction_score_node(node) > 90);
	node_advance(node, 400 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(node_vmstat(node, "pgmigrate_success"), 0);
	node_advance(node, 2 * NSEC_PER_SEC);
	CU_ASSERT(compaction_score_node(node) <= 80);
	CU_ASSERT(node_vmstat(node, "pgmigrate_success") > 0);
	teardown();
}

static void proactive_compaction_without_progress_backs_off(void)
{
	uint64_t scanned;

	make_fragmented(NODE_OCCUPANT_KERNEL, 2, proactive);
	node_advance(node, NSEC_PER_SEC);
	scanned = node_vmstat(node, "compact_migrate_scanned");
	CU_ASSERT(scanned > 0);
	node_advance(node, 30 * NSEC_PER_SEC);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_migrate_scanned"), scanned);
	node_advance(node, 40 * NSEC_PER_SEC);
	CU_ASSERT(node_vmstat(node, "compact_migrate_scanned") > scanned);
	teardown();
}

static void interrupted_compaction_keeps_every_invariant(void)
{
	struct node_request req = {0};

	make_fragmented(NODE_OCCUPANT_ANON, 2, NULL);
	T_REQUIRE(test_alloc(node, &req, 0, GFP_LOW_ORDER) != UINT64_MAX);
	for (int i = 0; i < 400; i++) {
		node_advance(node, node_now_ns(node) + 5000);
		test_node_check(node);
	}
	CU_ASSERT(node_vmstat(node, "pgmigrate_success") > 0);
	/* occupants may come and go in between */
	(void)node_release_every(node, NODE_OCCUPANT_ANON, 3);
	test_node_check(node);
	teardown();
}

int main(int argc, char **argv)
{
	CU_TestInfo direct[] = {
		{"sync compaction finishes the pageblock it began",
		 sync_compaction_finishes_the_pageblock_it_began},
		{"it costs what it moved and scanned",
		 it_costs_what_it_moved_and_scanned},
		{"async compaction looks only at pageblocks of its type",
		 async_compaction_looks_only_at_pageblocks_of_its_type},
		{"failed async compaction is not deferred",
		 failed_async_compaction_is_not_deferred},
		{"failed sync compaction is deferred longer each time",
		 failed_sync_compaction_is_deferred_longer_each_time},
		{"pageblocks without success are skipped until flushed",
		 pageblocks_without_success_are_skipped_until_flushed},
		{"mlocked pages move unless that is denied",
		 mlocked_pages_move_unless_that_is_denied},
		{"one unmovable page in each pageblock leaves smaller blocks",
		 one_unmovable_page_in_each_pageblock_leaves_smaller_blocks},
		{"it needs free pages to work with",
		 it_needs_free_pages_to_work_with},
		{"a block that is free needs no compaction",
		 a_block_that_is_free_needs_no_compaction},
		{"a freed block of the order is captured unless movable",
		 a_freed_block_of_the_order_is_captured_unless_movable},
		{"the worst-case zone is compacted to its limit",
		 the_worst_case_zone_is_compacted_to_its_limit},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo daemons[] = {
		{"kcompactd makes a pageblock after a boost",
		 kcompactd_makes_a_pageblock_after_a_boost},
		{"proactive compaction lowers the score and rests",
		 proactive_compaction_lowers_the_score_and_rests},
		{"proactive compaction without progress backs off",
		 proactive_compaction_without_progress_backs_off},
		{"interrupted compaction keeps every invariant",
		 interrupted_compaction_keeps_every_invariant},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "direct", .pTests = direct},
		{.pName = "kcompactd", .pTests = daemons},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
