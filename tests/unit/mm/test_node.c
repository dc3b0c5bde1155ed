/* SPDX-License-Identifier: MIT */
#include "mm/node.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "support/test.h"

static struct node *node;

static void make(uint64_t size_bytes, const char *occupants)
{
	struct node_params params = {.size_bytes = size_bytes, .seed = 1};
	struct node_error err;

	(void)snprintf(params.occupants, sizeof(params.occupants), "%s",
		       occupants);
	T_REQUIRE(node_new(&node, &params, &err) == 0);
}

static void check(void)
{
	const char *what = NULL;

	if (!node_check(node, &what)) {
		fprintf(stderr, "node_check: %s\n", what);
		CU_FAIL("node_check");
	}
}

static void teardown(void)
{
	node = node_free(node);
}

static void a_fresh_node_gives_the_largest_blocks(void)
{
	struct node_request req = {0};
	uint64_t pfn[40];

	make(MIB(64), "");
	for (int i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(node_alloc(node, &req, 8, GFP_HIGH_ORDER,
					   &pfn[i]),
				0);
	check();
	for (int i = 0; i < 40; i++)
		node_free_block(node, NULL, pfn[i], 8);
	check();
	teardown();
}

static void random_steps_keep_every_invariant(void)
{
	enum { MAX_LIVE = 4000 };
	static struct {
		uint64_t pfn;
		unsigned int order;
	} live[MAX_LIVE];
	struct node_request req = {0};
	unsigned int n_live = 0;
	struct rng rng;
	const char *what;

	rng_seed(&rng, 7);
	make(MIB(64), "file:30% anon:30% slab:5% kernel:5% dirty:2%");
	for (int step = 0; step < 8000; step++) {
		unsigned int order = (unsigned int)rng_below(&rng, 11);
		uint32_t gfp =
			rng_below(&rng, 2) ? GFP_HIGH_ORDER : GFP_MID_ORDER;

		if (rng_below(&rng, 8) == 0) {
			memset(&req, 0, sizeof(req));
			req.start_ns =
				node_now_ns(node) + rng_below(&rng, 5000000);
		}
		if (rng_below(&rng, 2) && n_live < MAX_LIVE) {
			if (node_alloc(node, &req, order, gfp,
				       &live[n_live].pfn) == 0)
				live[n_live++].order = order;
		} else if (n_live > 0) {
			unsigned int i = (unsigned int)rng_below(&rng, n_live);

			node_free_block(node, NULL, live[i].pfn, live[i].order);
			live[i] = live[--n_live];
		}
		if (!node_check(node, &what)) {
			fprintf(stderr, "step %d: %s\n", step, what);
			CU_FAIL_FATAL("invariant");
		}
	}
	while (n_live > 0) {
		n_live--;
		node_free_block(node, NULL, live[n_live].pfn,
				live[n_live].order);
	}
	check();
	teardown();
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a fresh node gives the largest blocks",
		 a_fresh_node_gives_the_largest_blocks},
		{"random steps keep every invariant",
		 random_steps_keep_every_invariant},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "node", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
