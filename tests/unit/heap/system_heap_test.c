/* SPDX-License-Identifier: MIT */
#include "base/rng.h"
#include "heap/fixture.h"

static void expect_blocks(const struct buffer *buffer, uint32_t n8, uint32_t n4,
			  uint32_t n0)
{
	T_REQUIRE(buffer);
	CU_ASSERT_EQUAL(buffer->composition[8], n8);
	CU_ASSERT_EQUAL(buffer->composition[4], n4);
	CU_ASSERT_EQUAL(buffer->composition[0], n0);
	CU_ASSERT_EQUAL(buffer_n_blocks(buffer), n8 + n4 + n0);
}

static void a_fresh_node_gives_the_largest_blocks_that_fit(void)
{
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, GIB(1), "840-high");
	expect_blocks(take(&f, 1, MIB(10)), 10, 0, 0);
	expect_blocks(take(&f, 1, MIB(1) + KIB(4)), 1, 0, 1);
	expect_blocks(take(&f, 1, KIB(60)), 0, 0, 15);
	expect_blocks(take(&f, 1, KIB(64)), 0, 1, 0);
	b = take(&f, 1, 1);
	expect_blocks(b, 0, 0, 1);
	CU_ASSERT_EQUAL(b->len_bytes, 4096);
	CU_ASSERT_EQUAL(b->source, BUFFER_SOURCE_NODE);
	CU_ASSERT_EQUAL(b->state, BUFFER_LIVE);
	fixture_close(&f);
}

static void a_policy_never_gives_an_order_it_does_not_have(void)
{
	static const char *const orders[] = {"8 0 0", "8 0"};
	struct fixture f;
	struct rng rng;

	rng_seed(&rng, 3);
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		fixture_open(&f, MIB(128), "840-mid");
		fixture_set(&f, "orders", orders[i]);
		for (int n = 0; n < 300; n++) {
			struct buffer *b =
				take(&f, 1, 1 + rng_below(&rng, MIB(3)));

			if (!b)
				break;
			CU_ASSERT_EQUAL(b->composition[8] * 256 +
						b->composition[0],
					b->len_bytes / 4096);
			if (rng_below(&rng, 2))
				CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL),
						0);
		}
		fixture_close(&f);
	}
}

static void why_an_order_was_left_is_reported(void)
{
	struct heap_request req = {.len_bytes = KIB(60)};
	struct buffer *b;
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	T_REQUIRE(heap_alloc(f.heap, &req, &b) == 0);
	CU_ASSERT_EQUAL(req.fallback[8], HEAP_FALLBACK_TOO_LARGE);
	CU_ASSERT_EQUAL(req.fallback[4], HEAP_FALLBACK_TOO_LARGE);
	CU_ASSERT_EQUAL(req.fallback[0], NODE_FALLBACK_NONE);
	req.len_bytes = MIB(2);
	T_REQUIRE(heap_alloc(f.heap, &req, &b) == 0);
	CU_ASSERT_EQUAL(req.fallback[8], NODE_FALLBACK_NONE);
	CU_ASSERT_EQUAL(req.fallback[4], NODE_FALLBACK_NONE);
	CU_ASSERT_TRUE(req.spent_ns > 0);
	CU_ASSERT_EQUAL(req.stall_ns, 0);
	/* No free block above order 3 is left. */
	node_pressure_fragment(f.node, 3);
	T_REQUIRE(heap_alloc(f.heap, &req, &b) == 0);
	CU_ASSERT_EQUAL(req.fallback[8], NODE_FALLBACK_NO_BLOCK);
	CU_ASSERT_EQUAL(req.fallback[4], NODE_FALLBACK_NO_BLOCK);
	CU_ASSERT_EQUAL(b->composition[0], 512);
	fixture_close(&f);
}

static void all_of_a_buffer_or_nothing(void)
{
	struct node_page_counts before, after;
	struct heap_stats stats;
	struct fixture f;

	fixture_open_params(&f,
			    &(struct node_params){.size_bytes = MIB(64),
						  .occupants = "kernel:50%"},
			    "840-high");
	CU_ASSERT_PTR_NOT_NULL(take(&f, 1, MIB(4)));
	node_page_counts(f.node, &before);
	CU_ASSERT_PTR_NULL(take(&f, 1, MIB(40)));
	node_page_counts(f.node, &after);
	CU_ASSERT_EQUAL(before.free_pages, after.free_pages);
	CU_ASSERT_EQUAL(before.allocated_pages, after.allocated_pages);
	heap_get_stats(f.heap, &stats);
	CU_ASSERT_EQUAL(stats.failures, 1);
	CU_ASSERT_EQUAL(stats.failures_though_free, 0);
	CU_ASSERT_EQUAL(stats.allocs, 1);
	fixture_close(&f);
}

static void more_than_the_node_is_refused_at_once(void)
{
	static const uint64_t sizes[] = {MIB(65), UINT64_C(1) << 63,
					 UINT64_MAX};
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct heap_request req = {.len_bytes = sizes[i]};
		struct buffer *b = NULL;

		CU_ASSERT_EQUAL(heap_alloc(f.heap, &req, &b), HEAP_E_TOO_LARGE);
		CU_ASSERT_PTR_NULL(b);
	}
	fixture_close(&f);
}

static void ids_rise_and_buffers_are_listed_by_them(void)
{
	struct buffer *a, *b, *c;
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	a = take(&f, 1, 1);
	b = take(&f, 1, 1);
	c = take(&f, 1, 1);
	T_REQUIRE(a && b && c);
	CU_ASSERT_TRUE(a->id > 0 && a->id < b->id && b->id < c->id);
	CU_ASSERT_PTR_EQUAL(heap_set_next_buffer(f.set, 0), a);
	CU_ASSERT_PTR_EQUAL(heap_set_next_buffer(f.set, a->id), b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	CU_ASSERT_PTR_EQUAL(heap_set_next_buffer(f.set, a->id), c);
	CU_ASSERT_PTR_NULL(heap_set_next_buffer(f.set, c->id));
	fixture_close(&f);
}

static int add_heap(struct fixture *f, const char *name, const char *aliases)
{
	struct policy policy = policy_default();
	struct heap *heap;

	return heap_new(&heap, f->set,
			&(struct heap_params){.name = name,
					      .aliases = aliases,
					      .policy = &policy});
}

static void heaps_are_found_by_name_and_alias(void)
{
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	CU_ASSERT_EQUAL(add_heap(&f, "system-uncached", "reserved  dsp"), 0);
	CU_ASSERT_PTR_EQUAL(heap_set_find(f.set, "linux,cma"), f.heap);
	CU_ASSERT_PTR_EQUAL(heap_set_find(f.set, "system"), f.heap);
	CU_ASSERT_STRING_EQUAL(heap_name(heap_set_find(f.set, "dsp")),
			       "system-uncached");
	CU_ASSERT_STRING_EQUAL(heap_aliases(heap_set_find(f.set, "dsp")),
			       "reserved dsp");
	CU_ASSERT_PTR_NULL(heap_set_find(f.set, "reserved dsp"));
	CU_ASSERT_PTR_NULL(heap_set_find(f.set, "linux"));
	CU_ASSERT_PTR_NULL(heap_set_find(f.set, ""));
	CU_ASSERT_PTR_EQUAL(heap_set_get(f.set, 0), f.heap);
	CU_ASSERT_PTR_NULL(heap_set_get(f.set, 2));
	fixture_close(&f);
}

static void names_that_cannot_be_files_or_exist_are_refused(void)
{
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	CU_ASSERT_EQUAL(add_heap(&f, "system", NULL), HEAP_E_EXISTS);
	CU_ASSERT_EQUAL(add_heap(&f, "linux,cma", NULL), HEAP_E_EXISTS);
	CU_ASSERT_EQUAL(add_heap(&f, "x", "system"), HEAP_E_EXISTS);
	CU_ASSERT_EQUAL(add_heap(&f, "x", "y y"), HEAP_E_EXISTS);
	CU_ASSERT_EQUAL(add_heap(&f, "x", "x"), HEAP_E_EXISTS);
	CU_ASSERT_EQUAL(add_heap(&f, "", NULL), HEAP_E_BAD_NAME);
	CU_ASSERT_EQUAL(add_heap(&f, "..", NULL), HEAP_E_BAD_NAME);
	CU_ASSERT_EQUAL(add_heap(&f, "a/b", NULL), HEAP_E_BAD_NAME);
	CU_ASSERT_EQUAL(add_heap(&f, "x", "a/b"), HEAP_E_BAD_NAME);
	CU_ASSERT_EQUAL(add_heap(&f, "x234567890123456789012345678901234",
				 NULL),
			HEAP_E_BAD_NAME);
	CU_ASSERT_PTR_NULL(heap_set_get(f.set, 1));
	fixture_close(&f);
}

static void two_heaps_of_a_node_have_their_own_policies(void)
{
	struct heap_request req = {.len_bytes = MIB(1) - KIB(64)};
	struct policy policy;
	struct heap *other;
	struct buffer *b;
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	T_REQUIRE(policy_shipped(&policy, "0-only"));
	T_REQUIRE(heap_new(&other, f.set,
			   &(struct heap_params){.name = "small",
						 .policy = &policy}) == 0);
	expect_blocks(take(&f, 1, req.len_bytes), 0, 15, 0);
	T_REQUIRE(heap_alloc(other, &req, &b) == 0);
	expect_blocks(b, 0, 0, 240);
	CU_ASSERT_PTR_EQUAL(b->heap, other);
	fixture_close(&f);
}

static void the_high_water_mark_remembers_the_largest_free_block(void)
{
	struct heap_stats stats;
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(64), "840-high");
	b = take(&f, 1, MIB(8));
	T_REQUIRE(b);
	heap_get_stats(f.heap, &stats);
	CU_ASSERT_EQUAL(stats.largest_free_at_high_water_bytes, MIB(4));
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	node_pressure_fragment(f.node, 2);
	CU_ASSERT_PTR_NOT_NULL(take(&f, 1, MIB(4)));
	heap_get_stats(f.heap, &stats);
	CU_ASSERT_EQUAL(stats.largest_free_at_high_water_bytes, MIB(4));
	CU_ASSERT_PTR_NOT_NULL(take(&f, 1, MIB(6)));
	heap_get_stats(f.heap, &stats);
	CU_ASSERT_EQUAL(stats.largest_free_at_high_water_bytes, KIB(16));
	fixture_close(&f);
}

static void the_block_table_is_charged_to_the_node(void)
{
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(64), "0-only");
	b = take(&f, 1, MIB(10));
	T_REQUIRE(b);
	/* 2560 pointers: an order-3 block */
	CU_ASSERT_EQUAL(b->table.size_bytes, 20480);
	/* the table of 8 pages, and one that holds struct buffer */
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 2560 + 8 + 1);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	fixture_close(&f);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a fresh node gives the largest blocks that fit",
		 a_fresh_node_gives_the_largest_blocks_that_fit},
		{"a policy never gives an order it does not have",
		 a_policy_never_gives_an_order_it_does_not_have},
		{"why an order was left is reported",
		 why_an_order_was_left_is_reported},
		{"all of a buffer or nothing", all_of_a_buffer_or_nothing},
		{"more than the node is refused at once",
		 more_than_the_node_is_refused_at_once},
		{"ids rise and buffers are listed by them",
		 ids_rise_and_buffers_are_listed_by_them},
		{"heaps are found by name and alias",
		 heaps_are_found_by_name_and_alias},
		{"names that cannot be files or exist are refused",
		 names_that_cannot_be_files_or_exist_are_refused},
		{"two heaps of a node have their own policies",
		 two_heaps_of_a_node_have_their_own_policies},
		{"the high-water mark remembers the largest free block",
		 the_high_water_mark_remembers_the_largest_free_block},
		{"the block table is charged to the node",
		 the_block_table_is_charged_to_the_node},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "system_heap", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
