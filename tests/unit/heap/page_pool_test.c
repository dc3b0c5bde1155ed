/* SPDX-License-Identifier: MIT */
#include "heap/page_pool.h"

#include "support/test.h"

static void blocks_leave_in_the_order_they_came(void)
{
	struct page_pool pool;
	uint64_t pfn = 0;

	page_pool_init(&pool);
	/* Around the ring's end several times, growing on the way. */
	for (uint64_t in = 0, out = 0; out < 3000;) {
		for (int i = 0; i < 7 && in < 3000; i++)
			CU_ASSERT_TRUE(page_pool_push(&pool, in++));
		for (int i = 0; i < (in < 3000 ? 5 : 7); i++) {
			if (!page_pool_pop(&pool, &pfn))
				break;
			CU_ASSERT_EQUAL(pfn, out++);
		}
	}
	CU_ASSERT_EQUAL(pool.n_blocks, 0);
	page_pool_fini(&pool);
}

static void an_empty_pool_gives_nothing(void)
{
	struct page_pool pool;
	uint64_t pfn = 42;

	page_pool_init(&pool);
	CU_ASSERT_FALSE(page_pool_pop(&pool, &pfn));
	CU_ASSERT_EQUAL(pfn, 42);
	page_pool_fini(&pool);
}

static void parked_blocks_count_in_the_total(void)
{
	struct page_pool pool;
	uint64_t pfn;

	page_pool_init(&pool);
	CU_ASSERT_TRUE(page_pool_push(&pool, UINT32_MAX));
	pool.n_parked = 3;
	CU_ASSERT_EQUAL(page_pool_total(&pool), 4);
	CU_ASSERT_TRUE(page_pool_pop(&pool, &pfn));
	CU_ASSERT_EQUAL(pfn, UINT32_MAX);
	pool.n_parked = 0;
	page_pool_fini(&pool);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"blocks leave in the order they came",
		 blocks_leave_in_the_order_they_came},
		{"an empty pool gives nothing", an_empty_pool_gives_nothing},
		{"parked blocks count in the total",
		 parked_blocks_count_in_the_total},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "page_pool", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
