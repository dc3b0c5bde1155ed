/* SPDX-License-Identifier: MIT */
#include "mm/reclaim.h"

#include "mm/kthread.h"
#include "mm/occupants.h"
#include "mm/pcp.h"
#include "support.h"

static struct node *node;
static struct task task;
static const struct alloc_context order_0 = {.gfp = GFP_LOW_ORDER};

static void make(const char *occupants, void (*change)(struct node_params *))
{
	node = test_node(MIB(64), occupants, change);
	task = (struct task){.captured_pfn = NO_PFN};
}

static void teardown(void)
{
	test_node_check(node);
	node = node_free(node);
}

static void swap_zram(struct node_params *p)
{
	p->swap = NODE_SWAP_ZRAM;
}

static void swap_disk(struct node_params *p)
{
	p->swap = NODE_SWAP_DISK;
}

static void clean_pages_go_in_batches_oldest_first(void)
{
	uint64_t before, got;

	make("file:50%", NULL);
	before = test_occupants(node, NODE_OCCUPANT_FILE);
	got = reclaim_direct(&task, node, &order_0);
	CU_ASSERT(got >= RECLAIM_BATCH);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_FILE), before - got);
	CU_ASSERT_EQUAL(node_vmstat(node, "pgsteal_direct"), got);
	CU_ASSERT_EQUAL(node_vmstat(node, "allocstall_normal"), 1);
	/* the oldest are those that were first on the list */
	CU_ASSERT_FALSE(frame_is_occupant(node->state[0]));
	CU_ASSERT(frame_is_occupant(node->state[(MIB(64) / 4096) / 2 - 1]));
	teardown();
}

static void dirty_pages_are_written_before_they_go(void)
{
	uint64_t dirty;

	make("dirty:50%", NULL);
	dirty = test_occupants(node, NODE_OCCUPANT_DIRTY);
	(void)reclaim_direct(&task, node, &order_0);
	CU_ASSERT(node_vmstat(node, "nr_vmscan_write") >= RECLAIM_BATCH);
	CU_ASSERT(test_occupants(node, NODE_OCCUPANT_DIRTY) < dirty);
	CU_ASSERT(task.spent_ps >= node->costs.reclaim_disk_ps * RECLAIM_BATCH);
	teardown();
}

static void without_swap_anonymous_pages_stay(void)
{
	uint64_t anon;

	make("anon:50%", NULL);
	anon = test_occupants(node, NODE_OCCUPANT_ANON);
	CU_ASSERT_EQUAL(reclaim_direct(&task, node, &order_0), 0);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_ANON), anon);
	teardown();
}

static void zram_packs_three_pages_into_one(void)
{
	uint64_t anon, kernel, got;

	make("anon:50%", swap_zram);
	anon = test_occupants(node, NODE_OCCUPANT_ANON);
	got = reclaim_direct(&task, node, &order_0);
	kernel = test_occupants(node, NODE_OCCUPANT_KERNEL);
	CU_ASSERT(got >= RECLAIM_BATCH);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_ANON),
			anon - got - kernel);
	CU_ASSERT(kernel >= got / 2 - 1 && kernel <= got / 2 + 1);
	teardown();
}

static void a_swap_device_frees_them_all_at_its_price(void)
{
	make("anon:50%", swap_disk);
	CU_ASSERT(reclaim_direct(&task, node, &order_0) >= RECLAIM_BATCH);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_KERNEL), 0);
	CU_ASSERT(task.spent_ps >= node->costs.reclaim_disk_ps * RECLAIM_BATCH);
	teardown();
}

static void a_full_swap_device_takes_no_more(void)
{
	make("anon:50%", swap_disk);
	node->swap_pages = 10;
	CU_ASSERT_EQUAL(reclaim_direct(&task, node, &order_0), 10);
	CU_ASSERT_EQUAL(reclaim_direct(&task, node, &order_0), 0);
	teardown();
}

static void mlocked_and_kernel_pages_never_go(void)
{
	make("mlocked:40% kernel:40%", swap_zram);
	CU_ASSERT_EQUAL(reclaim_direct(&task, node, &order_0), 0);
	CU_ASSERT_EQUAL(node_vmstat(node, "pgscan_direct"), 0);
	teardown();
}

static void active_pages_become_inactive_first(void)
{
	make("active:50%", NULL);
	for (int i = 0; i < 20; i++)
		(void)reclaim_direct(&task, node, &order_0);
	CU_ASSERT(node_vmstat(node, "pgdeactivate") > 0);
	CU_ASSERT(node_vmstat(node, "pgsteal_file") > 0);
	teardown();
}

static void slab_is_shrunk_with_the_lists(void)
{
	uint64_t slab;

	make("file:1% slab:50%", NULL);
	slab = test_occupants(node, NODE_OCCUPANT_SLAB);
	(void)reclaim_direct(&task, node, &order_0);
	CU_ASSERT(node_vmstat(node, "slabs_scanned") > 0);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_SLAB),
			slab - node_vmstat(node, "slabs_scanned"));
	teardown();
}

static uint64_t pool_pages, pool_asked;

static uint64_t pool_count(void *ctx)
{
	(void)ctx;
	return pool_pages;
}

static uint64_t pool_scan(void *ctx, uint64_t n_pages)
{
	(void)ctx;
	pool_asked += n_pages;
	return n_pages;
}

static void the_page_pools_are_asked_for_their_share(void)
{
	static const struct node_shrinker_ops ops = {pool_count, pool_scan};

	make("anon:50%", NULL);
	pool_pages = 1 << 12;
	pool_asked = 0;
	node_set_shrinker(node, &ops, NULL);
	(void)reclaim_direct(&task, node, &order_0);
	CU_ASSERT(pool_asked >= RECLAIM_BATCH);
	CU_ASSERT_EQUAL(node_vmstat(node, "model_shrinker_pages"), pool_asked);
	node_set_shrinker(node, NULL, NULL);
	teardown();
}

static void reclaim_for_a_large_block_stops_where_compaction_can_go_on(void)
{
	const struct alloc_context order_4 = {.order = 4, .gfp = GFP_MID_ORDER};
	uint64_t file;

	/* plenty free, all of it single pages */
	make("file:10%", NULL);
	(void)node_occupy_fill(node, NODE_OCCUPANT_ANON, 0);
	(void)node_release_every(node, NODE_OCCUPANT_ANON, 2);
	pcp_drain_all(&task, node);
	file = test_occupants(node, NODE_OCCUPANT_FILE);
	CU_ASSERT_EQUAL(reclaim_direct(&task, node, &order_4), 1);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_FILE), file);
	teardown();
}

/* Takes order-0 pages with LOW_ORDER until kswapd was woken. */
static void kswapd_keeps_the_zone_above_its_high_mark(void)
{
	struct node_request req = {0};
	struct node_zone_stats z;

	make("file:80%", NULL);
	for (int i = 0; i < 14000; i++) {
		T_REQUIRE(test_alloc(node, &req, 0, GFP_LOW_ORDER) !=
			  UINT64_MAX);
		req.spent_ps += 20000000; /* the writer of the page is slow */
		req.spent_ns = req.spent_ps / 1000;
	}
	CU_ASSERT(node_vmstat(node, "pageoutrun") > 0);
	CU_ASSERT(node_vmstat(node, "pgsteal_kswapd") > 5000);
	node_advance(node, node_now_ns(node) + NSEC_PER_SEC);
	node_zone_stats(node, 0, &z);
	CU_ASSERT(z.free_pages > z.wmark_high_pages);
	CU_ASSERT_FALSE(kswapd_is_running(node));
	teardown();
}

static void kswapd_gives_up_after_sixteen_failures(void)
{
	make("kernel:99%", NULL);
	for (int i = 0; i < 40; i++) {
		task.base_ns = node_now_ns(node);
		kswapd_wake(&task, node, 0, GFP_LOW_ORDER, 0);
		node_advance(node, node_now_ns(node) + NSEC_PER_SEC);
	}
	CU_ASSERT_EQUAL(node_vmstat(node, "pageoutrun"), RECLAIM_MAX_RETRIES);
	/* until somebody makes progress */
	(void)node_occupy(node, NODE_OCCUPANT_FILE, 60);
	(void)reclaim_direct(&task, node, &order_0);
	CU_ASSERT_EQUAL(node->kswapd->failures, 0);
	teardown();
}

int main(int argc, char **argv)
{
	CU_TestInfo kinds[] = {
		{"clean pages go in batches, oldest first",
		 clean_pages_go_in_batches_oldest_first},
		{"dirty pages are written before they go",
		 dirty_pages_are_written_before_they_go},
		{"without swap anonymous pages stay",
		 without_swap_anonymous_pages_stay},
		{"zram packs three pages into one",
		 zram_packs_three_pages_into_one},
		{"a swap device frees them all at its price",
		 a_swap_device_frees_them_all_at_its_price},
		{"a full swap device takes no more",
		 a_full_swap_device_takes_no_more},
		{"mlocked and kernel pages never go",
		 mlocked_and_kernel_pages_never_go},
		{"active pages become inactive first",
		 active_pages_become_inactive_first},
		{"slab is shrunk with the lists",
		 slab_is_shrunk_with_the_lists},
		{"the page pools are asked for their share",
		 the_page_pools_are_asked_for_their_share},
		{"reclaim for a large block stops where compaction can go on",
		 reclaim_for_a_large_block_stops_where_compaction_can_go_on},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo kswapd[] = {
		{"kswapd keeps the zone above its high mark",
		 kswapd_keeps_the_zone_above_its_high_mark},
		{"kswapd gives up after sixteen failures",
		 kswapd_gives_up_after_sixteen_failures},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "reclaim", .pTests = kinds},
		{.pName = "kswapd", .pTests = kswapd},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
