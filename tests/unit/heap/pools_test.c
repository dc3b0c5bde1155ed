/* SPDX-License-Identifier: MIT */
#include "heap/fixture.h"
#include "heap/shrinker.h"

static void a_second_buffer_of_the_size_is_hits_alone(void)
{
	struct heap_stats stats;
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, GIB(1), "840-high");
	b = take(&f, 1, MIB(10) + KIB(64) + KIB(8));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL), 0);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 10);
	CU_ASSERT_EQUAL(pool_blocks(&f, 4), 1);
	CU_ASSERT_EQUAL(pool_blocks(&f, 0), 2);
	CU_ASSERT_EQUAL(pool_hits(&f), 0);
	b = take(&f, 2, MIB(10) + KIB(64) + KIB(8));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(b->source, BUFFER_SOURCE_POOL);
	CU_ASSERT_EQUAL(pool_hits(&f), 13);
	heap_get_stats(f.heap, &stats);
	CU_ASSERT_EQUAL(stats.pool[8].misses, 10);
	CU_ASSERT_EQUAL(stats.pool_bytes, 0);
	fixture_close(&f);
}

static void pool_and_node_together_are_mixed(void)
{
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(128), "840-high");
	b = take(&f, 1, MIB(4));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL), 0);
	b = take(&f, 1, MIB(6));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(b->source, BUFFER_SOURCE_MIXED);
	CU_ASSERT_EQUAL(pool_hits(&f), 4);
	fixture_close(&f);
}

static void without_a_limit_of_bytes_nothing_stays(void)
{
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(128), "840-high");
	fixture_set(&f, "pool.limit", "0");
	for (int i = 0; i < 3; i++) {
		b = take(&f, 1, MIB(10) + KIB(8));
		T_REQUIRE(b);
		CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL), 0);
		CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	}
	b = take(&f, 1, MIB(10));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_PARK), HEAP_E_NOT_PARKED);
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	CU_ASSERT_EQUAL(pool_hits(&f), 0);
	fixture_close(&f);
}

static void a_pool_keeps_no_more_than_its_limit(void)
{
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(128), "840-high");
	fixture_set(&f, "pool.8.limit", "3M");
	b = take(&f, 1, MIB(10));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL), 0);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 3);
	/* A lower limit holds at once. */
	fixture_set(&f, "pool.8.limit", "1M");
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 1);
	fixture_set(&f, "pool.8.limit", "none");
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 1);
	/* An order that the policy no longer has is given back. */
	fixture_set(&f, "orders", "4 0");
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 0);
	fixture_close(&f);
}

static void released_blocks_stay_the_buffers_until_it_is_finished(void)
{
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(128), "840-high");
	b = take(&f, 1, MIB(2));
	T_REQUIRE(b);
	heap_release(f.heap, b);
	CU_ASSERT_EQUAL(b->state, BUFFER_RELEASED);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 0);
	CU_ASSERT_TRUE(heap_set_check(f.set));
	CU_ASSERT_EQUAL(heap_finish(f.heap, b, HEAP_FINISH_NODE), 0);
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	fixture_close(&f);
}

static void shrinking_gives_blocks_back_to_the_node(void)
{
	struct node_page_counts before, after;
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(128), "840-high");
	b = take(&f, 1, MIB(10));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL), 0);
	node_page_counts(f.node, &before);
	CU_ASSERT_EQUAL(heap_shrink(f.heap, MIB(4)), MIB(6));
	node_page_counts(f.node, &after);
	CU_ASSERT_EQUAL(after.free_pages - before.free_pages, 6 * 256);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 4);
	CU_ASSERT_EQUAL(heap_shrink(f.heap, MIB(4)), 0);
	CU_ASSERT_EQUAL(heap_shrink(f.heap, 0), MIB(4));
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	fixture_close(&f);
}

static void the_shrinker_counts_what_it_can_give(void)
{
	struct fixture f;
	struct buffer *a, *b;

	fixture_open(&f, MIB(128), "840-high");
	a = take(&f, 1, MIB(2) + KIB(4));
	b = take(&f, 1, MIB(2));
	T_REQUIRE(a && b);
	CU_ASSERT_EQUAL(shrinker_count(f.set), 0);
	CU_ASSERT_EQUAL(give(&f, a, HEAP_FINISH_POOL), 0);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_PARK), 0);
	CU_ASSERT_EQUAL(shrinker_count(f.set), 512 + 1 + 512);
	/* Whole blocks: one page asked for is a block of order 8 given. */
	CU_ASSERT_EQUAL(shrinker_scan(f.set, 1), 256);
	CU_ASSERT_EQUAL(shrinker_scan(f.set, 257), 257);
	CU_ASSERT_EQUAL(f.n_unparked, 0);
	CU_ASSERT_EQUAL(shrinker_scan(f.set, 1), 512);
	CU_ASSERT_EQUAL(f.n_unparked, 1);
	CU_ASSERT_EQUAL(shrinker_scan(f.set, 1), 0);
	CU_ASSERT_EQUAL(shrinker_count(f.set), 0);
	fixture_close(&f);
}

static void reclaim_of_the_node_empties_pools(void)
{
	struct heap_request req = {.len_bytes = MIB(40)};
	struct policy policy = policy_default();
	struct heap *other;
	struct fixture f;
	struct buffer *b;

	fixture_open_params(&f,
			    &(struct node_params){.size_bytes = MIB(64),
						  .occupants = "kernel:12%"},
			    "840-high");
	T_REQUIRE(heap_new(&other, f.set,
			   &(struct heap_params){.name = "other",
						 .policy = &policy}) == 0);
	b = take(&f, 1, MIB(24));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_PARK), 0);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 24);
	/* 56 MiB are there, 24 of them in the first heap's pool. */
	T_REQUIRE(heap_alloc(other, &req, &b) == 0);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 0);
	CU_ASSERT_EQUAL(f.n_unparked, 1);
	fixture_close(&f);
}

static void under_pressure_freed_blocks_skip_the_pool(void)
{
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(64), "840-high");
	b = take(&f, 1, MIB(8));
	T_REQUIRE(b);
	node_pressure_fill(f.node, KIB(256));
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_PARK), HEAP_E_NOT_PARKED);
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	fixture_close(&f);
}

static void refill_fills_to_the_mark(void)
{
	uint64_t next = 0;
	struct fixture f;

	fixture_open(&f, MIB(256), "840-high");
	CU_ASSERT_EQUAL(heap_refill(f.heap, 1), UINT64_MAX);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 0);
	fixture_set(&f, "pool.refill", "on");
	fixture_set(&f, "pool.8.mark", "5M");
	fixture_set(&f, "pool.4.mark", "5M");
	fixture_set(&f, "pool.4.limit", "2M");
	for (int i = 0; i < 100 && next != UINT64_MAX; i++)
		next = heap_refill(f.heap, 1);
	CU_ASSERT_EQUAL(next, UINT64_MAX);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 5);
	CU_ASSERT_EQUAL(pool_blocks(&f, 4), 32); /* the limit is below */
	CU_ASSERT_EQUAL(pool_blocks(&f, 0), 0);
	CU_ASSERT_PTR_NOT_NULL(take(&f, 1, MIB(5)));
	CU_ASSERT_EQUAL(pool_hits(&f), 5);
	fixture_close(&f);
}

static void refill_stops_at_the_high_watermark_and_backs_off(void)
{
	struct node_zone_stats zone;
	struct fixture f;
	uint64_t next = 0;

	fixture_open(&f, MIB(64), "840-high");
	fixture_set(&f, "pool.refill", "on");
	fixture_set(&f, "pool.limit", "none");
	fixture_set(&f, "pool.4.mark", "1G");
	fixture_set(&f, "pool.8.mark", "0");
	for (int i = 0; i < 1000 && next <= 1; i++)
		next = heap_refill(f.heap, 1);
	CU_ASSERT_EQUAL(next, 1 + 10 * NSEC_PER_MSEC);
	node_zone_stats(f.node, 0, &zone);
	CU_ASSERT_TRUE(zone.free_pages > zone.wmark_high_pages);
	CU_ASSERT_TRUE(zone.free_pages <= zone.wmark_high_pages + 16 + 64);
	/* It does not even look before the time is over. */
	CU_ASSERT_EQUAL(heap_refill(f.heap, 5 * NSEC_PER_MSEC), next);
	CU_ASSERT_TRUE(heap_shrink(f.heap, MIB(1)) > 0);
	CU_ASSERT_EQUAL(pool_blocks(&f, 4), 16);
	CU_ASSERT_EQUAL(heap_refill(f.heap, next), next);
	CU_ASSERT_TRUE(pool_blocks(&f, 4) > 16);
	fixture_close(&f);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a second buffer of the size is hits alone",
		 a_second_buffer_of_the_size_is_hits_alone},
		{"pool and node together are mixed",
		 pool_and_node_together_are_mixed},
		{"without a limit of bytes nothing stays",
		 without_a_limit_of_bytes_nothing_stays},
		{"a pool keeps no more than its limit",
		 a_pool_keeps_no_more_than_its_limit},
		{"released blocks stay the buffer's until it is finished",
		 released_blocks_stay_the_buffers_until_it_is_finished},
		{"shrinking gives blocks back to the node",
		 shrinking_gives_blocks_back_to_the_node},
		{"the shrinker counts what it can give",
		 the_shrinker_counts_what_it_can_give},
		{"reclaim of the node empties pools",
		 reclaim_of_the_node_empties_pools},
		{"under pressure freed blocks skip the pool",
		 under_pressure_freed_blocks_skip_the_pool},
		{"refill fills to the mark", refill_fills_to_the_mark},
		{"refill stops at the high watermark and backs off",
		 refill_stops_at_the_high_watermark_and_backs_off},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "pools", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
