/* SPDX-License-Identifier: MIT */
#include "mm/kvalloc.h"

#include <errno.h>
#include <string.h>

#include "mm/node.h"
#include "support/fail_malloc.h"
#include "support/test.h"

static struct node *node;
static struct kvalloc kv;

static void open_node(enum kvalloc_mode mode)
{
	struct node_error err;

	T_REQUIRE(node_new(&node, &(struct node_params){.size_bytes = MIB(64)},
			   &err) == 0);
	kvalloc_init(&kv, node, mode);
}

static void close_node(void)
{
	struct node_page_counts counts;

	CU_ASSERT_TRUE(kvalloc_check(&kv));
	kvalloc_fini(&kv);
	node_page_counts(node, &counts);
	CU_ASSERT_EQUAL(counts.allocated_pages, 0);
	node = node_free(node);
}

static int charge(uint64_t bytes, struct kv_block *block)
{
	struct node_request req = {.start_ns = node_now_ns(node)};

	return kvalloc(&kv, &req, bytes, block);
}

static void small_objects_share_the_pages_of_their_class(void)
{
	struct kv_block blocks[600];

	open_node(KVALLOC_CONTIGUOUS_FIRST);
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		T_REQUIRE(charge(8, &blocks[i]) == 0);
		CU_ASSERT_TRUE(kvalloc_check(&kv));
	}
	CU_ASSERT_EQUAL(kv.n_pages, 2); /* 512 objects of 8 bytes each */
	for (size_t i = 0; i < 88; i++)
		kvalloc_release(&kv, NULL, &blocks[i]);
	CU_ASSERT_EQUAL(kv.n_pages, 1);
	for (size_t i = 88; i < ARRAY_SIZE(blocks); i++)
		kvalloc_release(&kv, NULL, &blocks[i]);
	CU_ASSERT_EQUAL(kv.n_pages, 0);
	close_node();
}

static void half_a_page_is_the_largest_small_object(void)
{
	struct kv_block a, b, c;

	open_node(KVALLOC_CONTIGUOUS_FIRST);
	T_REQUIRE(charge(2048, &a) == 0 && charge(1025, &b) == 0);
	CU_ASSERT_EQUAL(kv.n_pages, 1);
	T_REQUIRE(charge(2049, &c) == 0);
	CU_ASSERT_EQUAL(kv.n_pages, 2);
	CU_ASSERT_EQUAL(c.n_pages, 1);
	kvalloc_release(&kv, NULL, &a);
	kvalloc_release(&kv, NULL, &b);
	kvalloc_release(&kv, NULL, &c);
	/* Releasing nothing is harmless. */
	kvalloc_release(&kv, NULL, &c);
	close_node();
}

static void large_ones_are_contiguous_where_that_is_cheap(void)
{
	struct kv_block block;

	open_node(KVALLOC_CONTIGUOUS_FIRST);
	T_REQUIRE(charge(20480, &block) == 0);
	CU_ASSERT_EQUAL(block.order, 3);
	CU_ASSERT_EQUAL(kv.n_pages, 8);
	CU_ASSERT_EQUAL(kv.n_contiguous, 1);
	CU_ASSERT_EQUAL(kv.n_fallback, 0);
	kvalloc_release(&kv, NULL, &block);
	close_node();
}

static void single_pages_serve_where_no_block_is_free(void)
{
	struct kv_block block;

	open_node(KVALLOC_CONTIGUOUS_FIRST);
	node_pressure_fragment(node, 1);
	T_REQUIRE(charge(20480, &block) == 0);
	CU_ASSERT_EQUAL(kv.n_fallback, 1);
	CU_ASSERT_EQUAL(block.n_pages, 5);
	CU_ASSERT_EQUAL(kv.n_pages, 5);
	kvalloc_release(&kv, NULL, &block);
	CU_ASSERT_EQUAL(kv.n_pages, 0);
	/* Also above the largest order there is. */
	T_REQUIRE(charge(MIB(5), &block) == 0);
	CU_ASSERT_EQUAL(kv.n_fallback, 2);
	kvalloc_release(&kv, NULL, &block);
	close_node();
}

static void contiguous_only_fails_without_a_block(void)
{
	struct kv_block block;

	open_node(KVALLOC_CONTIGUOUS_ONLY);
	memset(&block, 0x5a, sizeof(block));
	CU_ASSERT_EQUAL(charge(MIB(5), &block), KVALLOC_E_NO_MEMORY);
	CU_ASSERT_EQUAL(kv.n_failed, 1);
	CU_ASSERT_EQUAL(kv.n_fallback, 0);
	CU_ASSERT_EQUAL(block.n_pages, 0x5a5a5a5a);
	T_REQUIRE(charge(MIB(4), &block) == 0);
	CU_ASSERT_EQUAL(block.order, 10);
	kvalloc_release(&kv, NULL, &block);
	close_node();
}

static void a_full_node_refuses_and_keeps_nothing(void)
{
	struct kv_block block;

	open_node(KVALLOC_CONTIGUOUS_FIRST);
	CU_ASSERT_EQUAL(charge(MIB(70), &block), KVALLOC_E_NO_MEMORY);
	CU_ASSERT_EQUAL(charge(UINT64_MAX, &block), KVALLOC_E_NO_MEMORY);
	CU_ASSERT_EQUAL(kv.n_failed, 2);
	CU_ASSERT_EQUAL(kv.n_pages, 0);
	close_node();
}

static void charge_and_release(void)
{
	struct kv_block small = {0}, large = {0};
	int r = charge(64, &small);
	int e = charge(20480, &large);

	CU_ASSERT_TRUE(r == 0 || r == -ENOMEM);
	CU_ASSERT_TRUE(e == 0 || e == -ENOMEM);
	CU_ASSERT_EQUAL(r || e, fail_malloc_hit());
	kvalloc_release(&kv, NULL, &small);
	kvalloc_release(&kv, NULL, &large);
	CU_ASSERT_EQUAL(kv.n_pages, 0);
}

static void want_of_memory_keeps_nothing(void)
{
	open_node(KVALLOC_CONTIGUOUS_FIRST);
	node_pressure_fragment(node, 0);
	FAIL_MALLOC_EACH(charge_and_release());
	close_node();
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"small objects share the pages of their class",
		 small_objects_share_the_pages_of_their_class},
		{"half a page is the largest small object",
		 half_a_page_is_the_largest_small_object},
		{"large ones are contiguous where that is cheap",
		 large_ones_are_contiguous_where_that_is_cheap},
		{"single pages serve where no block is free",
		 single_pages_serve_where_no_block_is_free},
		{"contiguous only fails without a block",
		 contiguous_only_fails_without_a_block},
		{"a full node refuses and keeps nothing",
		 a_full_node_refuses_and_keeps_nothing},
		{"want of memory keeps nothing", want_of_memory_keeps_nothing},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "kvalloc", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
