/* SPDX-License-Identifier: MIT */
#include "heap/fixture.h"
#include "heap/heap_private.h"

static struct buffer *park(struct fixture *f, uint32_t uid, uint64_t len)
{
	struct buffer *b = take(f, uid, len);

	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(f, b, HEAP_FINISH_PARK), 0);
	CU_ASSERT_EQUAL(b->state, BUFFER_PARKED);
	return b;
}

static void a_parked_buffer_is_taken_whole_and_counts_as_hits(void)
{
	struct heap_stats stats;
	struct buffer *b;
	struct fixture f;
	uint64_t id;

	fixture_open(&f, MIB(128), "840-high");
	b = park(&f, 7, MIB(10));
	id = b->id;
	strcpy(b->name, "old");
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 10);
	heap_get_stats(f.heap, &stats);
	CU_ASSERT_EQUAL(stats.buffers, 0);
	CU_ASSERT_EQUAL(stats.parked_bytes, MIB(10));
	CU_ASSERT_PTR_EQUAL(heap_find_parked(f.heap, 7, MIB(10) - 5), b);
	heap_take_parked(f.heap, b);
	CU_ASSERT_EQUAL(b->state, BUFFER_LIVE);
	CU_ASSERT_EQUAL(b->source, BUFFER_SOURCE_PARKED);
	CU_ASSERT_EQUAL(b->id, id);
	CU_ASSERT_STRING_EQUAL(b->name, "");
	CU_ASSERT_EQUAL(pool_hits(&f), 10);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 0);
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7, MIB(10)));
	CU_ASSERT_EQUAL(f.n_unparked, 0);
	fixture_close(&f);
}

static void only_the_same_uid_and_size_find_it(void)
{
	struct fixture f;

	fixture_open(&f, MIB(128), "840-high");
	(void)park(&f, 7, MIB(10));
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 8, MIB(10)));
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7, MIB(10) + 1));
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7, MIB(10) - KIB(4)));
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7, 0));
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7, UINT64_MAX));
	fixture_close(&f);
}

/* Buffers of several uids and sizes share a bucket of the hash; among so many
 * there are some that share that of the one that is parked. */
static void others_in_its_bucket_do_not_find_it(void)
{
	struct fixture f;

	fixture_open(&f, MIB(128), "840-high");
	(void)park(&f, 7, MIB(10));
	for (uint32_t i = 1; i < 16 * HEAP_PARKED_BUCKETS; i++) {
		CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7 + i, MIB(10)));
		CU_ASSERT_PTR_NULL(
			heap_find_parked(f.heap, 7, MIB(10) - i * KIB(4)));
	}
	fixture_close(&f);
}

static void a_better_composition_elsewhere_wins(void)
{
	struct buffer *b;
	struct fixture f;

	fixture_open(&f, MIB(128), "840-high");
	fixture_set(&f, "orders", "4 0");
	b = park(&f, 7, MIB(10));
	CU_ASSERT_EQUAL(b->composition[4], 160);
	CU_ASSERT_PTR_EQUAL(heap_find_parked(f.heap, 7, MIB(10)), b);
	/* Now the free lists would give order 8. */
	fixture_set(&f, "orders", "8 4 0");
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7, MIB(10)));
	/* Until there is no order 8 free. */
	node_pressure_fragment(f.node, 4);
	CU_ASSERT_PTR_EQUAL(heap_find_parked(f.heap, 7, MIB(10)), b);
	fixture_close(&f);
}

static void an_order_that_stands_twice_counts_once(void)
{
	struct buffer *a, *b;
	struct fixture f;

	fixture_open(&f, MIB(128), "840-high");
	fixture_set(&f, "orders", "8 8 0");
	a = take(&f, 7, MIB(1));
	T_REQUIRE(a);
	node_pressure_fragment(f.node, 3);
	CU_ASSERT_EQUAL(give(&f, a, HEAP_FINISH_NODE), 0);
	b = park(&f, 7, MIB(2));
	CU_ASSERT_EQUAL(b->composition[8], 1);
	/* The one block of order 8 that there is cannot be had twice. */
	CU_ASSERT_PTR_EQUAL(heap_find_parked(f.heap, 7, MIB(2)), b);
	fixture_close(&f);
}

static void the_best_of_several_is_found_first(void)
{
	struct buffer *a, *b, *c;
	struct fixture f;

	fixture_open(&f, MIB(128), "840-high");
	fixture_set(&f, "orders", "8 4 0");
	a = take(&f, 7, MIB(2));
	T_REQUIRE(a);
	fixture_set(&f, "orders", "4 0");
	b = take(&f, 7, MIB(2));
	T_REQUIRE(b);
	fixture_set(&f, "orders", "8 4 0");
	c = take(&f, 7, MIB(2));
	T_REQUIRE(c);
	CU_ASSERT_EQUAL(give(&f, a, HEAP_FINISH_PARK), 0);
	CU_ASSERT_EQUAL(give(&f, c, HEAP_FINISH_PARK), 0);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_PARK), 0);
	CU_ASSERT_PTR_EQUAL(heap_find_parked(f.heap, 7, MIB(2)), c);
	heap_take_parked(f.heap, c);
	CU_ASSERT_PTR_EQUAL(heap_find_parked(f.heap, 7, MIB(2)), a);
	fixture_close(&f);
}

static void blocks_wanted_singly_break_it_up(void)
{
	struct buffer *parked, *b;
	struct fixture f;
	uint64_t id;

	fixture_open(&f, MIB(128), "840-high");
	parked = park(&f, 7, MIB(4));
	id = parked->id;
	b = take(&f, 8, MIB(1));
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(f.n_unparked, 1);
	CU_ASSERT_EQUAL(f.last_unparked, id);
	CU_ASSERT_EQUAL(b->source, BUFFER_SOURCE_POOL);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 3);
	CU_ASSERT_PTR_NULL(heap_find_parked(f.heap, 7, MIB(4)));
	fixture_close(&f);
}

static void single_blocks_go_before_parked_ones(void)
{
	struct buffer *b;
	struct fixture f;

	fixture_open(&f, MIB(128), "840-high");
	b = take(&f, 7, MIB(1));
	T_REQUIRE(b);
	(void)park(&f, 7, MIB(4));
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL), 0);
	CU_ASSERT_PTR_NOT_NULL(take(&f, 8, MIB(1)));
	CU_ASSERT_EQUAL(f.n_unparked, 0);
	fixture_close(&f);
}

static void parking_makes_room_and_never_exceeds_the_limit(void)
{
	struct buffer *first, *second, *large;
	struct fixture f;
	uint64_t id;

	fixture_open(&f, MIB(128), "840-high");
	fixture_set(&f, "pool.8.limit", "10M");
	first = take(&f, 7, MIB(6));
	second = take(&f, 7, MIB(6));
	large = take(&f, 7, MIB(11));
	T_REQUIRE(first && second && large);
	id = first->id;
	CU_ASSERT_EQUAL(give(&f, first, HEAP_FINISH_PARK), 0);
	CU_ASSERT_EQUAL(give(&f, second, HEAP_FINISH_PARK), 0);
	CU_ASSERT_EQUAL(f.n_unparked, 1);
	CU_ASSERT_EQUAL(f.last_unparked, id);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 6);
	/* Too large to park at all: pooled as far as there is room. */
	CU_ASSERT_EQUAL(give(&f, large, HEAP_FINISH_PARK), HEAP_E_NOT_PARKED);
	CU_ASSERT_EQUAL(pool_blocks(&f, 8), 10);
	CU_ASSERT_EQUAL(f.n_unparked, 1);
	fixture_close(&f);
}

static void shrinking_and_policies_drop_parked_buffers(void)
{
	struct fixture f;

	fixture_open(&f, MIB(128), "840-high");
	(void)park(&f, 7, MIB(4));
	CU_ASSERT_EQUAL(heap_shrink(f.heap, MIB(3)), MIB(4));
	CU_ASSERT_EQUAL(f.n_unparked, 1);
	(void)park(&f, 7, MIB(4));
	fixture_set(&f, "orders", "4 0");
	CU_ASSERT_EQUAL(f.n_unparked, 2);
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	fixture_set(&f, "orders", "8 4 0");
	(void)park(&f, 7, MIB(4));
	fixture_set(&f, "pool.limit", "0");
	CU_ASSERT_EQUAL(f.n_unparked, 3);
	fixture_close(&f);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a parked buffer is taken whole and counts as hits",
		 a_parked_buffer_is_taken_whole_and_counts_as_hits},
		{"only the same uid and size find it",
		 only_the_same_uid_and_size_find_it},
		{"others in its bucket do not find it",
		 others_in_its_bucket_do_not_find_it},
		{"a better composition elsewhere wins",
		 a_better_composition_elsewhere_wins},
		{"an order that stands twice counts once",
		 an_order_that_stands_twice_counts_once},
		{"the best of several is found first",
		 the_best_of_several_is_found_first},
		{"blocks wanted singly break it up",
		 blocks_wanted_singly_break_it_up},
		{"single blocks go before parked ones",
		 single_blocks_go_before_parked_ones},
		{"parking makes room and never exceeds the limit",
		 parking_makes_room_and_never_exceeds_the_limit},
		{"shrinking and policies drop parked buffers",
		 shrinking_and_policies_drop_parked_buffers},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "parked", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
