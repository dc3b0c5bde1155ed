/* SPDX-License-Identifier: MIT */
#include "mm/occupants.h"

#include <string.h>

#include "support.h"

static struct node *node;

static void setup(void)
{
	node = test_node(MIB(64), "", NULL);
}

static void teardown(void)
{
	test_node_check(node);
	node = node_free(node);
}

static unsigned int largest_free_order(void)
{
	struct node_zone_stats z;
	unsigned int largest = 0;

	node_zone_stats(node, 0, &z);
	for (unsigned int o = 0; o < NODE_ORDERS; o++)
		if (z.free_blocks[o])
			largest = o;
	return largest;
}

static void kinds_have_names(void)
{
	enum node_occupant kind;

	for (unsigned int i = 0; i < NODE_OCCUPANTS; i++) {
		const char *name = node_occupant_name((enum node_occupant)i);

		T_REQUIRE(name != NULL);
		CU_ASSERT_EQUAL(node_occupant_parse(name, &kind), 0);
		CU_ASSERT_EQUAL(kind, i);
	}
	CU_ASSERT_PTR_NULL(node_occupant_name(NODE_OCCUPANTS));
	CU_ASSERT_NOT_EQUAL(node_occupant_parse("cake", &kind), 0);
}

static void fill_leaves_what_it_is_told(void)
{
	uint64_t taken = node_occupy_fill(node, NODE_OCCUPANT_ANON, MIB(3));

	CU_ASSERT_EQUAL(taken, MIB(61) / 4096);
	CU_ASSERT_EQUAL(test_free_pages(node), MIB(3) / 4096);
	CU_ASSERT_EQUAL(node_occupy_fill(node, NODE_OCCUPANT_ANON, MIB(4)), 0);
	CU_ASSERT_EQUAL(node_occupy(node, NODE_OCCUPANT_FILE, 100000),
			MIB(3) / 4096);
	CU_ASSERT_EQUAL(test_free_pages(node), 0);
}

static void release_every_frees_one_in_n(void)
{
	(void)node_occupy(node, NODE_OCCUPANT_ANON, 1600);
	(void)node_occupy(node, NODE_OCCUPANT_FILE, 100);
	CU_ASSERT_EQUAL(node_release_every(node, NODE_OCCUPANT_ANON, 16), 100);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_ANON), 1500);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_FILE), 100);
	CU_ASSERT_EQUAL(node_release_every(node, NODE_OCCUPANT_ANON, 1), 1500);
}

static void vacate_takes_the_oldest_of_its_kind(void)
{
	(void)node_occupy(node, NODE_OCCUPANT_DIRTY, 50);
	(void)node_occupy(node, NODE_OCCUPANT_FILE, 50);
	CU_ASSERT_EQUAL(node_vacate(node, NODE_OCCUPANT_FILE, 20), 20);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_DIRTY), 50);
	CU_ASSERT_EQUAL(node_vacate(node, NODE_OCCUPANT_FILE, 100), 30);
	CU_ASSERT_EQUAL(node_vacate(node, NODE_OCCUPANT_KERNEL, 1), 0);
}

static void conversion_changes_kind_in_place(void)
{
	(void)node_occupy(node, NODE_OCCUPANT_ANON, 70);
	CU_ASSERT_EQUAL(node_convert(node, NODE_OCCUPANT_ANON,
				     NODE_OCCUPANT_MLOCKED),
			70);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_ANON), 0);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_MLOCKED), 70);
}

static void each_kind_goes_to_pageblocks_of_its_type(void)
{
	(void)node_occupy(node, NODE_OCCUPANT_KERNEL, 1);
	(void)node_occupy(node, NODE_OCCUPANT_SLAB, 1);
	(void)node_occupy(node, NODE_OCCUPANT_FILE, 1);
	for (uint32_t i = 0; i < node->n_frames; i++) {
		if (!frame_is_occupant(node->state[i]))
			continue;
		CU_ASSERT_EQUAL(block_mt(node, i),
				frame_occupant(node->state[i]) ==
						NODE_OCCUPANT_KERNEL
					? MT_UNMOVABLE
				: frame_occupant(node->state[i]) ==
						NODE_OCCUPANT_SLAB
					? MT_RECLAIMABLE
					: MT_MOVABLE);
	}
}

static void fragment_leaves_no_block_above_the_order(void)
{
	for (unsigned int max = NODE_MAX_ORDER; max-- > 0;) {
		node_pressure_fragment(node, max);
		CU_ASSERT_EQUAL(largest_free_order(), max);
		test_node_check(node);
	}
	node_pressure_release(node);
	CU_ASSERT_EQUAL(largest_free_order(), NODE_MAX_ORDER);
	CU_ASSERT_EQUAL(test_free_pages(node), node->n_frames);
}

static void low_memory_stalls_mid_order_but_not_high_order(void)
{
	struct node_request high = {0}, mid = {0};
	struct node_zone_stats z;

	node_pressure_low_memory(node);
	node_zone_stats(node, 0, &z);
	CU_ASSERT(z.free_pages > z.wmark_high_pages);
	CU_ASSERT_EQUAL(test_alloc(node, &high, 4, GFP_HIGH_ORDER), UINT64_MAX);
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &high, 0, GFP_LOW_ORDER),
			    UINT64_MAX);
	CU_ASSERT_EQUAL(high.stall_ns, 0);
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &mid, 4, GFP_MID_ORDER),
			    UINT64_MAX);
	CU_ASSERT(mid.stall_ns > 100 * NSEC_PER_USEC);
}

static void low_memory_holds_the_cache_and_gives_it_back(void)
{
	struct node_request req = {0};

	(void)node_occupy(node, NODE_OCCUPANT_FILE, 5000);
	(void)node_occupy(node, NODE_OCCUPANT_ACTIVE, 1000);
	node_pressure_low_memory(node);
	/* with cache to drop the order would come from reclaim, cheaply */
	CU_ASSERT_NOT_EQUAL(test_alloc(node, &req, 4, GFP_MID_ORDER),
			    UINT64_MAX);
	CU_ASSERT_EQUAL(node_vmstat(node, "pgsteal_file"), 0);
	CU_ASSERT(node_vmstat(node, "pgmigrate_success") > 200);
	test_node_check(node);
	node_pressure_release(node);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_FILE), 5000);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_ACTIVE), 1000);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_ANON), 0);
}

static void release_gives_back_what_presets_took_and_no_more(void)
{
	struct strbuf sb = STRBUF_INIT;

	(void)node_occupy(node, NODE_OCCUPANT_ANON, 500);
	node_pressure_render(node, &sb);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), "no pressure\n");
	node_pressure_fill(node, MIB(2));
	CU_ASSERT_EQUAL(test_free_pages(node), MIB(2) / 4096);
	strbuf_reset(&sb);
	node_pressure_render(node, &sb);
	CU_ASSERT_PTR_NOT_NULL(strstr(strbuf_string(&sb), "anon: "));
	node_pressure_release(node);
	CU_ASSERT_EQUAL(test_occupants(node, NODE_OCCUPANT_ANON), 500);
	strbuf_fini(&sb);
}

static void the_parts_add_up_to_the_node_at_every_step(void)
{
	struct node_request req = {0};
	struct node_page_counts c;

	for (int i = 0; i < 300; i++) {
		uint64_t sum;

		if (i % 3 == 0)
			(void)test_alloc(node, &req, (unsigned int)i % 9,
					 GFP_MID_ORDER);
		else
			(void)node_occupy(node,
					  (enum node_occupant)(i %
							       NODE_OCCUPANTS),
					  50);
		node_page_counts(node, &c);
		sum = c.free_pages + c.allocated_pages + c.reserved_pages;
		for (unsigned int k = 0; k < NODE_OCCUPANTS; k++)
			sum += c.occupant_pages[k];
		CU_ASSERT_EQUAL(sum, c.total_pages);
	}
}

int main(int argc, char **argv)
{
	CU_TestInfo occupants[] = {
		{"kinds have names", kinds_have_names},
		{"fill leaves what it is told", fill_leaves_what_it_is_told},
		{"release-every frees one in n", release_every_frees_one_in_n},
		{"vacate takes the oldest of its kind",
		 vacate_takes_the_oldest_of_its_kind},
		{"conversion changes kind in place",
		 conversion_changes_kind_in_place},
		{"each kind goes to pageblocks of its type",
		 each_kind_goes_to_pageblocks_of_its_type},
		{"the parts add up to the node at every step",
		 the_parts_add_up_to_the_node_at_every_step},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo pressure[] = {
		{"fragment leaves no block above the order",
		 fragment_leaves_no_block_above_the_order},
		{"low memory stalls MID_ORDER but not HIGH_ORDER",
		 low_memory_stalls_mid_order_but_not_high_order},
		{"low memory holds the cache and gives it back",
		 low_memory_holds_the_cache_and_gives_it_back},
		{"release gives back what presets took and no more",
		 release_gives_back_what_presets_took_and_no_more},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "occupants",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = occupants},
		{.pName = "pressure",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = pressure},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
