/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include <string.h>

#include "support/fail_malloc.h"
#include "support/test.h"

#define N 300u

static unsigned char *group[N];

static size_t bytes_of(unsigned int order)
{
	return (size_t)PAGES_BYTES << order;
}

static void groups_are_aligned_and_do_not_overlap(void)
{
	for (unsigned int i = 0; i < N; i++) {
		unsigned int order = i % (PAGES_ORDER_MAX + 1);

		group[i] = pages_alloc(order);
		T_REQUIRE(group[i] != NULL);
		CU_ASSERT_EQUAL((uintptr_t)group[i] % bytes_of(order), 0);
		memset(group[i], (int)i, bytes_of(order));
	}
	for (unsigned int i = 0; i < N; i++) {
		unsigned int order = i % (PAGES_ORDER_MAX + 1);
		size_t n = bytes_of(order);

		CU_ASSERT_EQUAL(group[i][0], (unsigned char)i);
		CU_ASSERT_EQUAL(group[i][n - 1], (unsigned char)i);
	}
	/* Every other one first: chunks with room are found again. */
	for (unsigned int i = 0; i < N; i += 2)
		pages_free(group[i], i % (PAGES_ORDER_MAX + 1));
	for (unsigned int i = 0; i < N; i += 2) {
		group[i] = pages_alloc(i % (PAGES_ORDER_MAX + 1));
		CU_ASSERT_PTR_NOT_NULL(group[i]);
	}
	for (unsigned int i = 0; i < N; i++)
		pages_free(group[i], i % (PAGES_ORDER_MAX + 1));
	pages_free(NULL, 0);
}

/* A page of bookkeeping for every 63, not for each. */
static void pages_of_a_chunk_are_neighbours(void)
{
	unsigned int n_near = 0;

	for (unsigned int i = 0; i < N; i++)
		group[i] = pages_alloc(0);
	for (unsigned int i = 1; i < N; i++)
		n_near += group[i] - group[i - 1] == PAGES_BYTES;
	CU_ASSERT_TRUE(n_near >= N - N / 63 - 2);
	for (unsigned int i = 0; i < N; i++)
		pages_free(group[i], 0);
}

static void without_memory_there_are_none(void)
{
	unsigned int n = 0;

	/* What is left of the kept chunk, then no other. */
	fail_malloc_at(1);
	while (n < N && (group[n] = pages_alloc(0)) != NULL)
		n++;
	fail_malloc_at(0);
	CU_ASSERT_TRUE(n < 64);
	while (n > 0)
		pages_free(group[--n], 0);
	group[0] = pages_alloc(0);
	CU_ASSERT_PTR_NOT_NULL(group[0]);
	pages_free(group[0], 0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"groups are aligned and do not overlap",
		 groups_are_aligned_and_do_not_overlap},
		{"pages of a chunk are neighbours",
		 pages_of_a_chunk_are_neighbours},
		{"without memory there are none",
		 without_memory_there_are_none},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "pages", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
