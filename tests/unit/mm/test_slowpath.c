/* SPDX-License-Identifier: MIT */
#include "mm/slowpath.h"

#include <string.h>

#include "mm/kthread.h"
#include "mm/occupants.h"
#include "mm/pcp.h"
#include "support.h"

static struct node *node;
static struct node_request req;

static void make(const char *occupants)
{
	node = test_node(MIB(64), occupants, NULL);
	memset(&req, 0, sizeof(req));
}

/* Half of memory free, in single pages among anonymous ones. */
static void make_fragmented(void)
{
	struct task task = {.captured_pfn = NO_PFN};

	make("");
	(void)node_occupy_fill(node, NODE_OCCUPANT_ANON, 0);
	(void)node_release_every(node, NODE_OCCUPANT_ANON, 2);
	pcp_drain_all(&task, node);
	node->zones[0].wmark_boost = 0;
	node->zones[0].boosted = false;
}

static void teardown(void)
{
	test_node_check(node);
	node = node_free(node);
}

static void high_order_fails_at_once_and_wakes_nobody(void)
{
	make_fragmented();
	CU_ASSERT_EQUAL(test_alloc(node, &req, 4, GFP_HIGH_ORDER), UINT64_MAX);
	CU_ASSERT_EQUAL(req.stall_ns, 0);
	CU_ASSERT_EQUAL(req.last_fallback, NODE_FALLBACK_NO_BLOCK);
	CU_ASSERT_EQUAL(node->kswapd->state, KSWAPD_SLEEP);
	node_advance(node, NSEC_PER_SEC);
	CU_ASSERT_EQUAL(node_vmstat(node, "pageoutrun"), 0);
	CU_ASSERT_EQUAL(node_vmstat(node, "allocstall_normal"), 0);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_stall"), 0);
	teardown();
}

static void mid_order_compacts_and_gets_it(void)
{
	make_fragmented();
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &req, 4, GFP_MID_ORDER),
			    UINT64_MAX);
	CU_ASSERT(req.stall_ns > 0);
	CU_ASSERT(req.stall_ns <= req.spent_ns);
	CU_ASSERT_EQUAL(req.n_allocstall, 1);
	CU_ASSERT_EQUAL(req.n_compact_stall, 2); /* async, then sync */
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_fail"), 1);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_success"), 1);
	/* the rest of the pageblock needs no work */
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &req, 4, GFP_MID_ORDER),
			    UINT64_MAX);
	CU_ASSERT_EQUAL(node_vmstat(node, "compact_stall"), 2);
	teardown();
}

static void a_costly_order_fails_without_a_kill(void)
{
	make("anon:99%");
	CU_ASSERT_EQUAL(test_alloc(node, &req, 4, GFP_MID_ORDER), UINT64_MAX);
	CU_ASSERT_EQUAL(req.last_fallback, NODE_FALLBACK_RECLAIM);
	CU_ASSERT_EQUAL(node_vmstat(node, "oom_kill"), 0);
	teardown();
}

static void order_0_kills_rather_than_fails(void)
{
	make("anon:99%");
	for (int i = 0; i < 500; i++)
		CU_ASSERT_NOT_EQUAL(test_alloc(node, &req, 0, GFP_LOW_ORDER),
				    UINT64_MAX);
	CU_ASSERT_EQUAL(node_vmstat(node, "oom_kill"), 1);
	CU_ASSERT(req.stall_ns >= node->costs.oom_kill_ps / 1000);
	teardown();
}

static void order_3_kills_as_well(void)
{
	make("anon:99%");
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &req, 3, GFP_LOW_ORDER),
			    UINT64_MAX);
	CU_ASSERT_EQUAL(node_vmstat(node, "oom_kill"), 1);
	teardown();
}

static void with_nobody_left_to_kill_even_order_0_fails(void)
{
	unsigned int n = 0;

	make("kernel:98%");
	while (test_alloc(node, &req, 0, GFP_LOW_ORDER) != UINT64_MAX)
		n++;
	CU_ASSERT(n > 0);
	CU_ASSERT_EQUAL(node_vmstat(node, "oom_kill"), 0);
	teardown();
}

static void noretry_and_retry_mayfail_do_not_kill(void)
{
	make("anon:99%");
	while (test_alloc(node, &req, 0, GFP_LOW_ORDER | GFP_NORETRY) !=
	       UINT64_MAX)
		;
	CU_ASSERT_EQUAL(test_alloc(node, &req, 0,
				   GFP_LOW_ORDER | GFP_RETRY_MAYFAIL),
			UINT64_MAX);
	CU_ASSERT_EQUAL(node_vmstat(node, "oom_kill"), 0);
	teardown();
}

static void nofail_goes_below_the_marks(void)
{
	unsigned int n = 0, more = 0;

	make("kernel:98%");
	while (test_alloc(node, &req, 0, GFP_LOW_ORDER) != UINT64_MAX)
		n++;
	CU_ASSERT(node->zones[0].free_pages > 0);
	while (test_alloc(node, &req, 0, GFP_LOW_ORDER | GFP_NOFAIL) !=
	       UINT64_MAX)
		more++;
	CU_ASSERT(more > 0);
	CU_ASSERT_EQUAL(node->zones[0].free_pages, 0);
	teardown();
}

static void reclaim_comes_before_a_kill(void)
{
	make("file:60% anon:39%");
	for (int i = 0; i < 3000; i++)
		T_REQUIRE(test_alloc(node, &req, 0, GFP_LOW_ORDER) !=
			  UINT64_MAX);
	CU_ASSERT_EQUAL(node_vmstat(node, "oom_kill"), 0);
	CU_ASSERT(node_vmstat(node, "pgsteal_direct") +
			  node_vmstat(node, "pgsteal_kswapd") >=
		  2000);
	teardown();
}

/* Page cache and unmovable pages mixed, next to nothing free: reclaim makes
 * room, but a block only by luck. */
static uint32_t stalls_of(uint32_t gfp)
{
	make("");
	(void)node_occupy_fill(node, NODE_OCCUPANT_FILE, 0);
	(void)node_convert_some(node, NODE_OCCUPANT_FILE, NODE_OCCUPANT_KERNEL,
				2);
	(void)test_alloc(node, &req, 8, gfp);
	CU_ASSERT(node_vmstat(node, "pgsteal_direct") +
			  node_vmstat(node, "pgsteal_kswapd") >
		  512);
	CU_ASSERT_EQUAL(node_vmstat(node, "oom_kill"), 0);
	teardown();
	return req.n_allocstall;
}

static void reclaim_goes_on_until_compaction_has_room(void)
{
	CU_ASSERT_EQUAL(stalls_of(GFP_MID_ORDER), 1);
	CU_ASSERT_EQUAL(req.last_fallback, NODE_FALLBACK_RECLAIM);
	/* RETRY_MAYFAIL: again, but never a kill for a costly order */
	CU_ASSERT(stalls_of(GFP_MID_ORDER | GFP_RETRY_MAYFAIL) >= 1);
	CU_ASSERT_EQUAL(req.last_fallback, NODE_FALLBACK_RECLAIM);
}

static void below_the_mark_the_reason_is_the_mark(void)
{
	make("");
	(void)node_occupy_fill(node, NODE_OCCUPANT_KERNEL, MIB(1));
	CU_ASSERT_EQUAL(test_alloc(node, &req, 6, GFP_HIGH_ORDER), UINT64_MAX);
	CU_ASSERT_EQUAL(req.last_fallback, NODE_FALLBACK_WATERMARK);
	teardown();
}

static void a_request_is_charged_and_time_goes_on(void)
{
	make("");
	req.start_ns = 5 * NSEC_PER_MSEC;
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &req, 8, GFP_HIGH_ORDER),
			    UINT64_MAX);
	/* 256 pages cleared, and the entry */
	CU_ASSERT(req.spent_ns >= 256 * node->costs.zero_page_ps / 1000);
	CU_ASSERT_EQUAL(node_now_ns(node), req.start_ns + req.spent_ns);
	teardown();
}

static void a_request_that_comes_late_begins_where_time_is(void)
{
	make("");
	node_advance(node, NSEC_PER_SEC);
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &req, 0, GFP_LOW_ORDER),
			    UINT64_MAX);
	CU_ASSERT_EQUAL(req.start_ns, NSEC_PER_SEC);
	node_advance(node, 10);
	CU_ASSERT(node_now_ns(node) >= NSEC_PER_SEC);
	teardown();
}

static void a_dry_run_agrees_with_the_real_one(void)
{
	uint64_t expected, got = 0;

	make("anon:30% kernel:20%");
	expected = node_count_available(node, 8, GFP_HIGH_ORDER, 1000);
	while (test_alloc(node, &req, 8, GFP_HIGH_ORDER) != UINT64_MAX)
		got++;
	CU_ASSERT(expected >= got && expected <= got + 1);
	CU_ASSERT_EQUAL(node_count_available(node, 8, GFP_HIGH_ORDER, 3),
			MIN(3u, expected - got));
	teardown();
}

int main(int argc, char **argv)
{
	CU_TestInfo flags[] = {
		{"HIGH_ORDER fails at once and wakes nobody",
		 high_order_fails_at_once_and_wakes_nobody},
		{"MID_ORDER compacts and gets it",
		 mid_order_compacts_and_gets_it},
		{"a costly order fails without a kill",
		 a_costly_order_fails_without_a_kill},
		{"order 0 kills rather than fails",
		 order_0_kills_rather_than_fails},
		{"order 3 kills as well", order_3_kills_as_well},
		{"with nobody left to kill even order 0 fails",
		 with_nobody_left_to_kill_even_order_0_fails},
		{"NORETRY and RETRY_MAYFAIL do not kill",
		 noretry_and_retry_mayfail_do_not_kill},
		{"NOFAIL goes below the marks", nofail_goes_below_the_marks},
		{"reclaim comes before a kill", reclaim_comes_before_a_kill},
		{"reclaim goes on until compaction has room",
		 reclaim_goes_on_until_compaction_has_room},
		{"below the mark the reason is the mark",
		 below_the_mark_the_reason_is_the_mark},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo time[] = {
		{"a request is charged and time goes on",
		 a_request_is_charged_and_time_goes_on},
		{"a request that comes late begins where time is",
		 a_request_that_comes_late_begins_where_time_is},
		{"a dry run agrees with the real one",
		 a_dry_run_agrees_with_the_real_one},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "flags", .pTests = flags},
		{.pName = "time", .pTests = time},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
