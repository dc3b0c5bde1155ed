/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "heap/fixture.h"
#include "support/fail_malloc.h"

static void bytes_and_composition_are_those_of_the_old_daemon(void)
{
	const uint32_t composition[POLICY_ORDER_COUNT] =
		{[8] = 2, [4] = 3, [0] = 5};
	struct buffer *b = NULL;
	struct fixture f;

	fixture_open(&f, MIB(64), "0-only");
	CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, 40, MIB(2) + KIB(192) + KIB(20),
				   composition, &b),
			0);
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(composition_compare(b->composition, composition), 0);
	CU_ASSERT_EQUAL(b->id, 40);
	CU_ASSERT_EQUAL(b->uid, 7);
	CU_ASSERT_EQUAL(b->source, BUFFER_SOURCE_ADOPTED);
	CU_ASSERT_TRUE(heap_set_check(f.set));
	fixture_close(&f);
}

static void old_ids_are_kept_where_they_are_free(void)
{
	const uint32_t one[POLICY_ORDER_COUNT] = {[0] = 1};
	static const uint64_t ids[] = {40, 20, 40, 0, 30, UINT64_MAX};
	static const uint64_t want[] = {40, 20, 41, 42, 30, 43};
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct buffer *b = NULL;

		CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, ids[i], KIB(4), one, &b),
				0);
		T_REQUIRE(b);
		CU_ASSERT_EQUAL(b->id, want[i]);
	}
	CU_ASSERT_EQUAL(take(&f, 7, 1)->id, 44);
	CU_ASSERT_EQUAL(heap_set_next_buffer(f.set, 20)->id, 30);
	fixture_close(&f);
}

static void an_order_that_is_not_free_is_made_of_smaller_ones(void)
{
	const uint32_t composition[POLICY_ORDER_COUNT] = {[8] = 2};
	struct buffer *b = NULL;
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	node_pressure_fragment(f.node, 2);
	CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, 1, MIB(2), composition, &b), 0);
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(b->composition[8], 0);
	CU_ASSERT_EQUAL(composition_bytes(b->composition, 4096), MIB(2));
	fixture_close(&f);
}

static void blocks_that_do_not_add_up_are_refused(void)
{
	const uint32_t one[POLICY_ORDER_COUNT] = {[0] = 1};
	uint32_t all[POLICY_ORDER_COUNT];
	struct buffer *b = NULL;
	struct fixture f;

	memset(all, 0xff, sizeof(all));
	fixture_open(&f, MIB(64), "840-high");
	CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, 1, KIB(8), one, &b),
			HEAP_E_COMPOSITION);
	CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, 1, 0, one, &b),
			HEAP_E_COMPOSITION);
	CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, 1, UINT64_MAX, all, &b),
			HEAP_E_COMPOSITION);
	CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, 1, composition_bytes(all, 4096),
				   all, &b),
			HEAP_E_NO_MEMORY);
	CU_ASSERT_PTR_NULL(b);
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	fixture_close(&f);
}

static void a_full_node_adopts_nothing_and_loses_nothing(void)
{
	const uint32_t composition[POLICY_ORDER_COUNT] = {[8] = 60};
	struct buffer *b = NULL;
	struct fixture f;

	fixture_open_params(&f,
			    &(struct node_params){.size_bytes = MIB(64),
						  .occupants = "kernel:50%"},
			    "840-high");
	CU_ASSERT_EQUAL(heap_adopt(f.heap, 7, 1, MIB(60), composition, &b),
			HEAP_E_NO_MEMORY);
	CU_ASSERT_PTR_NULL(b);
	CU_ASSERT_EQUAL(heap_set_pages(f.set), 0);
	fixture_close(&f);
}

static void alloc_and_adopt_and_free(struct fixture *f)
{
	const uint32_t composition[POLICY_ORDER_COUNT] =
		{[8] = 1, [4] = 1, [0] = 2000};
	struct heap_request req = {.len_bytes = MIB(3) + KIB(68)};
	struct buffer *a = NULL, *b = NULL;
	int r = heap_alloc(f->heap, &req, &a);
	int e = heap_adopt(f->heap, 7, 0, composition_bytes(composition, 4096),
			   composition, &b);

	CU_ASSERT_EQUAL(r, a ? 0 : -ENOMEM);
	CU_ASSERT_EQUAL(e, b ? 0 : -ENOMEM);
	CU_ASSERT_TRUE((a && b) || fail_malloc_hit());
	if (a)
		CU_ASSERT_EQUAL(give(f, a, HEAP_FINISH_POOL), 0);
	if (b)
		CU_ASSERT_EQUAL(give(f, b, HEAP_FINISH_POOL), 0);
	CU_ASSERT_TRUE(heap_set_check(f->set));
	(void)heap_shrink(f->heap, 0);
}

static void want_of_memory_leaves_the_books_right(void)
{
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	FAIL_MALLOC_EACH(alloc_and_adopt_and_free(&f));
	fixture_close(&f);
}

static void make_set_and_heap(struct node *node)
{
	struct policy policy = policy_default();
	struct heap_params params = {.name = "a", .policy = &policy};
	struct heap_set *set = NULL;
	struct heap *heap = NULL;
	int r = heap_set_new(&set, node, NULL, NULL);

	if (!r)
		r = heap_new(&heap, set, &params);
	CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
	set = heap_set_free(set);
}

static void making_heaps_without_memory_leaves_nothing(void)
{
	struct node_params params = {.size_bytes = MIB(64)};
	struct node_error err;
	struct node *node;

	T_REQUIRE(node_new(&node, &params, &err) == 0);
	FAIL_MALLOC_EACH(make_set_and_heap(node));
	node = node_free(node);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"bytes and composition are those of the old daemon",
		 bytes_and_composition_are_those_of_the_old_daemon},
		{"old ids are kept where they are free",
		 old_ids_are_kept_where_they_are_free},
		{"an order that is not free is made of smaller ones",
		 an_order_that_is_not_free_is_made_of_smaller_ones},
		{"blocks that do not add up are refused",
		 blocks_that_do_not_add_up_are_refused},
		{"a full node adopts nothing and loses nothing",
		 a_full_node_adopts_nothing_and_loses_nothing},
		{"want of memory leaves the books right",
		 want_of_memory_leaves_the_books_right},
		{"making heaps without memory leaves nothing",
		 making_heaps_without_memory_leaves_nothing},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "adopt", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
