/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "random_node.h"
#include "support.h"

/* What the life of seed 11 comes to; changes whenever the model does. */
#define EXPECTED_HASH UINT64_C(0xe9b256160ab6e430)

static struct node *node;

static void teardown(void)
{
	test_node_check(node);
	node = node_free(node);
}

static void a_fresh_node_gives_the_largest_blocks(void)
{
	struct node_request req = {0};
	uint64_t pfn[40];

	node = test_node(MIB(64), "", NULL);
	for (int i = 0; i < 40; i++) {
		pfn[i] = test_alloc(node, &req, 8, GFP_HIGH_ORDER);
		CU_ASSERT_NOT_EQUAL(pfn[i], UINT64_MAX);
	}
	test_node_check(node);
	for (int i = 0; i < 40; i++)
		node_free_block(node, NULL, pfn[i], 8);
	CU_ASSERT_EQUAL(test_free_pages(node), MIB(64) / 4096);
	teardown();
}

/* Short here; mm_node_million (label stress) does a million. */
static void random_steps_keep_every_invariant(void)
{
	const char *steps = getenv("MM_RANDOM_STEPS");
	uint64_t n = steps ? strtoull(steps, NULL, 10) : 12000;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct random_result r = random_node_run(seed, n);

		if (r.failed_step != UINT64_MAX) {
			fprintf(stderr, "seed %llu, step %llu: %s\n",
				(unsigned long long)seed,
				(unsigned long long)r.failed_step, r.what);
			CU_FAIL("an invariant of the node");
		}
		/* and everything was exercised */
		CU_ASSERT(r.n_allocs > n / 8);
		CU_ASSERT(r.n_stalls > 0);
		CU_ASSERT(r.n_migrated > 0);
		CU_ASSERT(r.n_reclaimed > 0);
	}
}

static void equal_seeds_give_equal_lives(void)
{
	struct random_result a = random_node_run(11, 3000);
	struct random_result b = random_node_run(11, 3000);
	struct random_result c = random_node_run(12, 3000);

	CU_ASSERT_EQUAL(a.hash, b.hash);
	CU_ASSERT_NOT_EQUAL(a.hash, c.hash);
	/* on every compiler and build type */
	CU_ASSERT_EQUAL(a.hash, EXPECTED_HASH);
	if (a.hash != EXPECTED_HASH)
		fprintf(stderr, "the hash is 0x%016llx\n",
			(unsigned long long)a.hash);
}

static void metadata_is_within_twelve_bytes_a_frame(void)
{
	node = test_node(GIB(1), "", NULL);
	CU_ASSERT(node_metadata_millibytes(node) <= 12000);
	teardown();
}

/* ---- direction and size of effects: nothing knows a scenario ---- */

struct outcome {
	uint64_t spent_ns;
	uint64_t stall_ns;
	unsigned int blocks[2]; /* of order 4, of order 0 */
};

static uint32_t cost_num = 1, cost_den = 1;

static void scaled_costs(struct node_params *p)
{
	p->costs = cost_profile_default();
	cost_profile_scale(&p->costs, cost_num, cost_den);
}

/* One buffer of @pages in a zone where one page in @n is free. */
static struct outcome one_buffer(unsigned int pages, unsigned int n,
				 uint32_t gfp)
{
	struct node_request req = {0};
	struct outcome o = {0};

	node = test_node(MIB(256), "", scaled_costs);
	(void)node_occupy_fill(node, NODE_OCCUPANT_ANON, 0);
	(void)node_release_every(node, NODE_OCCUPANT_ANON, n);
	while (pages >= 16 && test_alloc(node, &req, 4, gfp) != UINT64_MAX) {
		o.blocks[0]++;
		pages -= 16;
	}
	while (pages > 0 &&
	       test_alloc(node, &req, 0, GFP_LOW_ORDER) != UINT64_MAX) {
		o.blocks[1]++;
		pages--;
	}
	CU_ASSERT_EQUAL(pages, 0);
	o.spent_ns = req.spent_ns;
	o.stall_ns = req.stall_ns;
	teardown();
	return o;
}

static void half_the_costs_make_half_the_time(void)
{
	struct outcome whole = one_buffer(2560, 4, GFP_MID_ORDER), half;

	cost_den = 2;
	half = one_buffer(2560, 4, GFP_MID_ORDER);
	cost_den = 1;
	CU_ASSERT(whole.stall_ns > whole.spent_ns / 2);
	CU_ASSERT(half.spent_ns > whole.spent_ns * 45 / 100);
	CU_ASSERT(half.spent_ns < whole.spent_ns * 55 / 100);
}

static void less_free_memory_makes_longer_stalls(void)
{
	/* a pageblock then has more pages to be moved out of it */
	struct outcome third = one_buffer(2560, 3, GFP_MID_ORDER);
	struct outcome quarter = one_buffer(2560, 4, GFP_MID_ORDER);
	struct outcome sixth = one_buffer(2560, 6, GFP_MID_ORDER);

	CU_ASSERT(third.stall_ns < quarter.stall_ns);
	CU_ASSERT(quarter.stall_ns < sixth.stall_ns);
	/* 5/6 against 2/3 of the pages, and not more than that by much */
	CU_ASSERT(sixth.stall_ns > third.stall_ns * 11 / 10);
	CU_ASSERT(sixth.stall_ns < third.stall_ns * 16 / 10);
}

static void twice_the_buffer_takes_twice_the_time(void)
{
	struct outcome one = one_buffer(2560, 2, GFP_MID_ORDER);
	struct outcome two = one_buffer(5120, 2, GFP_MID_ORDER);

	CU_ASSERT_EQUAL(two.blocks[0], 2 * one.blocks[0]);
	CU_ASSERT(two.stall_ns > one.stall_ns * 17 / 10);
	CU_ASSERT(two.stall_ns < one.stall_ns * 23 / 10);
}

static void without_reclaim_the_buffer_is_fast_and_of_single_pages(void)
{
	struct outcome mid = one_buffer(2560, 4, GFP_MID_ORDER);
	struct outcome high = one_buffer(2560, 4, GFP_HIGH_ORDER);

	CU_ASSERT_EQUAL(mid.blocks[0], 160);
	CU_ASSERT_EQUAL(high.blocks[1], 2560);
	CU_ASSERT_EQUAL(high.stall_ns, 0);
	CU_ASSERT(mid.spent_ns > 5 * high.spent_ns);
}

int main(int argc, char **argv)
{
	CU_TestInfo whole[] = {
		{"a fresh node gives the largest blocks",
		 a_fresh_node_gives_the_largest_blocks},
		{"random steps keep every invariant",
		 random_steps_keep_every_invariant},
		{"equal seeds give equal lives", equal_seeds_give_equal_lives},
		{"metadata is within twelve bytes a frame",
		 metadata_is_within_twelve_bytes_a_frame},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo effects[] = {
		{"half the costs make half the time",
		 half_the_costs_make_half_the_time},
		{"less free memory makes longer stalls",
		 less_free_memory_makes_longer_stalls},
		{"twice the buffer takes twice the time",
		 twice_the_buffer_takes_twice_the_time},
		{"without reclaim the buffer is fast and of single pages",
		 without_reclaim_the_buffer_is_fast_and_of_single_pages},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "node", .pTests = whole},
		{.pName = "effects", .pTests = effects},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
