/* SPDX-License-Identifier: MIT */
#include "mm/buddy.h"

#include "base/rng.h"
#include "mm/occupants.h"
#include "mm/pcp.h"
#include "support.h"

static struct node *node;
static struct zone *zone;
static struct task task;

static void setup(void)
{
	node = test_node(MIB(64), "", NULL);
	zone = &node->zones[0];
	task = (struct task){.captured_pfn = NO_PFN};
}

static void teardown(void)
{
	node = node_free(node);
}

/* Makes the block something that node_check() knows. */
static uint32_t take(unsigned int order, unsigned int mt)
{
	uint32_t pfn = buddy_alloc(&task, zone, order, mt, 0);

	if (pfn != NO_PFN) {
		node->state[pfn] = frame_make(FRAME_BLOCK, order, 0);
		node->allocated_pages += 1u << order;
	}
	return pfn;
}

static void give(uint32_t pfn, unsigned int order, unsigned int mt)
{
	node->state[pfn] = FRAME_BODY;
	node->allocated_pages -= 1u << order;
	buddy_free(&task, zone, pfn, order, mt);
}

static void the_smallest_block_that_fits_is_split(void)
{
	uint32_t pfn = take(3, MT_MOVABLE);

	CU_ASSERT_EQUAL(pfn, 0);
	for (unsigned int o = 3; o < NODE_MAX_ORDER; o++)
		CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][o], 1);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][NODE_MAX_ORDER], 15);
	CU_ASSERT_EQUAL(take(3, MT_MOVABLE), 8);
	test_node_check(node);
	give(0, 3, MT_MOVABLE);
	give(8, 3, MT_MOVABLE);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][NODE_MAX_ORDER], 16);
	test_node_check(node);
}

static void exhaustion_gives_nothing_and_all_comes_back(void)
{
	uint32_t n = 0;

	while (take(0, MT_MOVABLE) != NO_PFN)
		n++;
	CU_ASSERT_EQUAL(n, MIB(64) / 4096);
	CU_ASSERT_EQUAL(zone->free_pages, 0);
	CU_ASSERT_EQUAL(take(0, MT_UNMOVABLE), NO_PFN);
	CU_ASSERT_EQUAL(take(10, MT_MOVABLE), NO_PFN);
	test_node_check(node);
	for (uint32_t i = n; i-- > 0;)
		give(i, 0, MT_MOVABLE);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][NODE_MAX_ORDER], 16);
	test_node_check(node);
}

static void a_freed_block_goes_to_the_head_of_its_list(void)
{
	uint32_t pfn[8];

	/* whose buddies, and neighbouring pairs, stay taken */
	for (int i = 0; i < 8; i++)
		pfn[i] = take(0, MT_MOVABLE);
	give(pfn[0], 0, MT_MOVABLE);
	give(pfn[4], 0, MT_MOVABLE);
	CU_ASSERT_EQUAL(take(0, MT_MOVABLE), pfn[4]);
	give(pfn[2], 0, MT_MOVABLE);
	CU_ASSERT_EQUAL(take(0, MT_MOVABLE), pfn[2]);
}

static void a_likely_merge_goes_to_the_tail(void)
{
	uint32_t pfn[8];

	for (int i = 0; i < 8; i++)
		pfn[i] = take(0, MT_MOVABLE);
	/* the pair 2,3 free: were 0 and 1 free too, they would all join */
	give(pfn[2], 0, MT_MOVABLE);
	give(pfn[3], 0, MT_MOVABLE);
	give(pfn[6], 0, MT_MOVABLE);
	give(pfn[0], 0, MT_MOVABLE);
	CU_ASSERT_EQUAL(take(0, MT_MOVABLE), pfn[6]);
	CU_ASSERT_EQUAL(take(0, MT_MOVABLE), pfn[0]);
}

static void a_whole_pageblock_changes_type_when_taken(void)
{
	uint32_t pfn = take(4, MT_UNMOVABLE);

	CU_ASSERT_EQUAL(block_mt(node, pfn), MT_UNMOVABLE);
	/* order 10: both of its pageblocks */
	CU_ASSERT_EQUAL(block_mt(node, pfn + PAGEBLOCK_PAGES), MT_UNMOVABLE);
	CU_ASSERT_EQUAL(zone->wmark_boost, 0);
	CU_ASSERT_EQUAL(take(4, MT_UNMOVABLE), pfn + 16);
}

/* All memory movable pages, of pageblock 0 the frames below @n_free free. */
static void leave_free(uint32_t n_free)
{
	uint32_t pfn;

	while ((pfn = buddy_alloc(&task, zone, 0, MT_MOVABLE, 0)) != NO_PFN)
		occupant_add(node, pfn, NODE_OCCUPANT_ANON, 0);
	for (uint32_t i = 0; i < n_free; i++) {
		/* every second frame: nothing joins */
		occupant_remove(node, 2 * i);
		buddy_free(&task, zone, 2 * i, 0, MT_MOVABLE);
	}
}

static void half_a_pageblock_is_claimed_as_a_whole(void)
{
	leave_free(PAGEBLOCK_PAGES / 2);
	CU_ASSERT_NOT_EQUAL(take(0, MT_UNMOVABLE), NO_PFN);
	CU_ASSERT_EQUAL(block_mt(node, 0), MT_UNMOVABLE);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][0], 0);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_UNMOVABLE][0],
			PAGEBLOCK_PAGES / 2 - 1);
	test_node_check(node);
}

static void less_than_half_lends_its_pages_but_keeps_its_type(void)
{
	leave_free(PAGEBLOCK_PAGES / 2 - 1);
	CU_ASSERT_NOT_EQUAL(take(0, MT_UNMOVABLE), NO_PFN);
	CU_ASSERT_EQUAL(block_mt(node, 0), MT_MOVABLE);
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][0], 0);
	test_node_check(node);
}

static void stealing_boosts_the_watermarks_up_to_a_limit(void)
{
	uint32_t limit;

	leave_free(4);
	CU_ASSERT_NOT_EQUAL(buddy_find_fallback(zone, 0, MT_UNMOVABLE, false,
						&(bool){false}),
			    -1);
	for (int i = 0; i < 50; i++) {
		uint32_t pfn =
			buddy_alloc(&task, zone, 0, MT_UNMOVABLE, ALLOC_KSWAPD);

		T_REQUIRE(pfn != NO_PFN);
		buddy_free(&task, zone, pfn, 0, MT_MOVABLE);
	}
	limit = MAX(zone->wmark[WMARK_HIGH] * 3 / 2, PAGEBLOCK_PAGES);
	CU_ASSERT_EQUAL(zone->wmark_boost, limit);
	CU_ASSERT(zone->boosted);
	CU_ASSERT_EQUAL(zone_wmark(zone, WMARK_MIN),
			zone->wmark[WMARK_MIN] + limit);
}

static void without_fragmentation_only_whole_pageblocks_are_taken(void)
{
	leave_free(100);
	CU_ASSERT_EQUAL(buddy_alloc(&task, zone, 0, MT_UNMOVABLE,
				    ALLOC_NOFRAGMENT),
			NO_PFN);
	CU_ASSERT_NOT_EQUAL(buddy_alloc(&task, zone, 0, MT_UNMOVABLE, 0),
			    NO_PFN);
}

static void the_largest_block_is_stolen_first(void)
{
	leave_free(10);
	/* and a block of order 5 elsewhere */
	for (uint32_t i = 4096; i < 4096 + 32; i++) {
		occupant_remove(node, i);
		buddy_free(&task, zone, i, 0, MT_MOVABLE);
	}
	CU_ASSERT_EQUAL(take(0, MT_UNMOVABLE) & ~31u, 4096);
}

static void a_per_cpu_list_is_refilled_and_drained_by_the_batch(void)
{
	struct pcp *pcp = &zone->pcp[0];
	uint32_t free_before = zone->free_pages;
	uint32_t pfn = pcp_alloc(&task, zone, 0, MT_MOVABLE, 0);

	CU_ASSERT_EQUAL(pfn, 0);
	CU_ASSERT_EQUAL(pcp->count, pcp->batch - 1);
	CU_ASSERT_EQUAL(zone->free_pages, free_before - pcp->batch);
	/* ascending, as they were taken from the buddy */
	CU_ASSERT_EQUAL(pcp_alloc(&task, zone, 0, MT_MOVABLE, 0), 1);
	pcp_free(&task, zone, 0, 0);
	pcp_free(&task, zone, 1, 0);
	CU_ASSERT_EQUAL(pcp->count, pcp->batch);
	pcp_drain(&task, zone, 0);
	CU_ASSERT_EQUAL(pcp->count, 0);
	CU_ASSERT_EQUAL(zone->free_pages, free_before);
	test_node_check(node);
}

static void a_full_per_cpu_list_gives_back_more_each_time(void)
{
	struct pcp *pcp = &zone->pcp[0];
	uint32_t high = pcp->high, n = high * 4, freed, peak = 0;

	for (uint32_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(take(0, MT_MOVABLE), i);
	freed = zone->free_pages;
	for (uint32_t i = 0; i < n; i++) {
		node->state[i] = FRAME_BODY;
		node->allocated_pages--;
		pcp_free(&task, zone, i, 0);
		peak = MAX(peak, pcp->count);
	}
	CU_ASSERT(peak <= high);
	CU_ASSERT(pcp->free_factor > 0);
	CU_ASSERT_EQUAL(zone->free_pages - freed + pcp->count, n);
	test_node_check(node);
}

static void orders_without_a_per_cpu_list_have_none(void)
{
	for (unsigned int o = 0; o <= NODE_MAX_ORDER; o++)
		CU_ASSERT_EQUAL(pcp_allows(o), o <= 3 || o == 9);
}

static void random_frees_in_any_order_restore_the_zone(void)
{
	enum { N = 600 };
	static struct {
		uint32_t pfn;
		unsigned int order;
	} live[N];
	struct rng rng;
	unsigned int n = 0;

	rng_seed(&rng, 5);
	for (int i = 0; i < N; i++) {
		unsigned int order = (unsigned int)rng_below(&rng, 7);
		uint32_t pfn = take(order, MT_MOVABLE);

		if (pfn == NO_PFN)
			break;
		live[n].pfn = pfn;
		live[n++].order = order;
	}
	test_node_check(node);
	while (n > 0) {
		unsigned int i = (unsigned int)rng_below(&rng, n);

		give(live[i].pfn, live[i].order, MT_MOVABLE);
		live[i] = live[--n];
	}
	CU_ASSERT_EQUAL(zone->free_blocks[MT_MOVABLE][NODE_MAX_ORDER], 16);
	test_node_check(node);
}

int main(int argc, char **argv)
{
	CU_TestInfo buddy[] = {
		{"the smallest block that fits is split",
		 the_smallest_block_that_fits_is_split},
		{"exhaustion gives nothing and all comes back",
		 exhaustion_gives_nothing_and_all_comes_back},
		{"a freed block goes to the head of its list",
		 a_freed_block_goes_to_the_head_of_its_list},
		{"a likely merge goes to the tail",
		 a_likely_merge_goes_to_the_tail},
		{"random frees in any order restore the zone",
		 random_frees_in_any_order_restore_the_zone},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo stealing[] = {
		{"a whole pageblock changes type when taken",
		 a_whole_pageblock_changes_type_when_taken},
		{"half a pageblock is claimed as a whole",
		 half_a_pageblock_is_claimed_as_a_whole},
		{"less than half lends its pages but keeps its type",
		 less_than_half_lends_its_pages_but_keeps_its_type},
		{"stealing boosts the watermarks up to a limit",
		 stealing_boosts_the_watermarks_up_to_a_limit},
		{"without fragmentation only whole pageblocks are taken",
		 without_fragmentation_only_whole_pageblocks_are_taken},
		{"the largest block is stolen first",
		 the_largest_block_is_stolen_first},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo pcp[] = {
		{"a per-CPU list is refilled and drained by the batch",
		 a_per_cpu_list_is_refilled_and_drained_by_the_batch},
		{"a full per-CPU list gives back more each time",
		 a_full_per_cpu_list_gives_back_more_each_time},
		{"orders without a per-CPU list have none",
		 orders_without_a_per_cpu_list_have_none},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "buddy",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = buddy},
		{.pName = "stealing",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = stealing},
		{.pName = "per-CPU lists",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = pcp},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
