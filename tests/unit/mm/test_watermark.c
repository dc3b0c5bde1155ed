/* SPDX-License-Identifier: MIT */
#include "mm/watermark.h"

#include <string.h>

#include "support.h"

static void min_free_is_computed_as_the_kernel_does(void)
{
	/* figures of machines: 1 GiB 4096 kB, 4 GiB 8192 kB, 8 GiB 11585 kB */
	CU_ASSERT_EQUAL(watermark_min_free_bytes(GIB(1)), KIB(4096));
	CU_ASSERT_EQUAL(watermark_min_free_bytes(GIB(4)), KIB(8192));
	CU_ASSERT_EQUAL(watermark_min_free_bytes(GIB(8)), KIB(11585));
	CU_ASSERT_EQUAL(watermark_min_free_bytes(KIB(4)), KIB(128));
	CU_ASSERT_EQUAL(watermark_min_free_bytes(GIB(64) * 1024), KIB(262144));
}

static void marks_follow_from_size_and_min_free(void)
{
	_cleanup_(node_freep) struct node *node = test_node(GIB(1), "", NULL);
	struct node_zone_stats z;

	node_zone_stats(node, 0, &z);
	CU_ASSERT_EQUAL(z.wmark_min_pages, 1024);
	/* the larger of a quarter of min and a thousandth of the zone */
	CU_ASSERT_EQUAL(z.wmark_low_pages, 1024 + 262);
	CU_ASSERT_EQUAL(z.wmark_high_pages, 1024 + 2 * 262);
}

static void set_min_free(struct node_params *p)
{
	p->min_free_bytes = MIB(8);
}

static void min_free_can_be_set(void)
{
	_cleanup_(node_freep) struct node *node =
		test_node(GIB(1), "", set_min_free);
	struct node_zone_stats z;

	node_zone_stats(node, 0, &z);
	CU_ASSERT_EQUAL(z.wmark_min_pages, 2048);
	CU_ASSERT_EQUAL(z.wmark_low_pages, 2048 + 512);
}

static void the_last_page_of_a_block_must_be_above_the_mark(void)
{
	struct zone zone = {.free_mask = {[MT_MOVABLE] = 1u << 4}};

	CU_ASSERT(watermark_ok(&zone, 0, 100, 0, 101));
	CU_ASSERT_FALSE(watermark_ok(&zone, 0, 100, 0, 100));
	CU_ASSERT(watermark_ok(&zone, 4, 100, 0, 116));
	CU_ASSERT_FALSE(watermark_ok(&zone, 4, 100, 0, 115));
	CU_ASSERT_FALSE(watermark_ok(&zone, 8, 0, 0, 5));
}

static void a_block_of_the_order_or_above_must_be_there(void)
{
	struct zone zone = {.free_mask = {[MT_RECLAIMABLE] = 1u << 5}};

	CU_ASSERT(watermark_ok(&zone, 3, 0, 0, 1000));
	CU_ASSERT(watermark_ok(&zone, 5, 0, 0, 1000));
	CU_ASSERT_FALSE(watermark_ok(&zone, 6, 0, 0, 1000));
}

static void the_reserve_is_for_requests_that_could_go_higher(void)
{
	struct zone zone = {.lowmem_reserve = {0, 0, 937}};

	CU_ASSERT(watermark_ok(&zone, 0, 100, 1, 500));
	CU_ASSERT_FALSE(watermark_ok(&zone, 0, 100, 2, 500));
	CU_ASSERT(watermark_ok(&zone, 0, 100, 2, 1038));
}

static void the_fragmentation_index_tells_lack_from_fragmentation(void)
{
	struct zone zone = {0};

	/* nothing is free: for lack of memory */
	CU_ASSERT_EQUAL(watermark_fragmentation_index(&zone, 4), 0);
	/* much is free, all of it in single pages: by fragmentation */
	zone.free_blocks[MT_MOVABLE][0] = 100000;
	CU_ASSERT(watermark_fragmentation_index(&zone, 4) > 900);
	CU_ASSERT_EQUAL(watermark_fragmentation_index(&zone, 0), -1000);
	CU_ASSERT_EQUAL(watermark_unusable_index(&zone, 4), 1000);
	/* a block that fits: it would not fail */
	zone.free_blocks[MT_MOVABLE][5] = 1;
	CU_ASSERT_EQUAL(watermark_fragmentation_index(&zone, 4), -1000);
	CU_ASSERT_EQUAL(watermark_unusable_index(&zone, 4), 999);
	/* few pages: towards lack */
	zone.free_blocks[MT_MOVABLE][0] = 4;
	zone.free_blocks[MT_MOVABLE][5] = 0;
	CU_ASSERT(watermark_fragmentation_index(&zone, 8) <= 750);
}

static void page_16k(struct node_params *p)
{
	p->page_size_bytes = 16384;
}

static void page_64k(struct node_params *p)
{
	p->page_size_bytes = 65536;
}

static void other_page_sizes_work_alike(void)
{
	_cleanup_(node_freep) struct node *a =
		test_node(GIB(1), "file:10%", page_16k);
	_cleanup_(node_freep) struct node *b =
		test_node(GIB(1), "file:10%", page_64k);
	struct node_request req = {0};

	CU_ASSERT_NOT_EQUAL(test_alloc(a, &req, 8, GFP_HIGH_ORDER), UINT64_MAX);
	CU_ASSERT_EQUAL(test_free_pages(a), 65536 - 6553 - 256);
	CU_ASSERT_NOT_EQUAL(test_alloc(b, &req, 4, GFP_MID_ORDER), UINT64_MAX);
	test_node_check(a);
	test_node_check(b);
}

static void refused(struct node_params params, const char *word)
{
	struct node *node = NULL;
	struct node_error err = {""};

	CU_ASSERT_EQUAL(node_new(&node, &params, &err), NODE_E_INVALID);
	CU_ASSERT_PTR_NULL(node);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, word));
}

static void bad_parameters_are_named(void)
{
	refused((struct node_params){.size_bytes = MIB(15)}, "size");
	refused((struct node_params){.size_bytes = 0}, "size");
	refused((struct node_params){.size_bytes = UINT64_MAX}, "size");
	refused((struct node_params){.size_bytes = GIB(1),
				     .page_size_bytes = 8192},
		"page_size");
	refused((struct node_params){.size_bytes = GIB(1), .n_cpus = 65},
		"n_cpus");
	refused((struct node_params){.size_bytes = GIB(1),
				     .compaction_proactiveness = 101},
		"compaction_proactiveness");
	refused((struct node_params){.size_bytes = GIB(1),
				     .occupants = "cake:20%"},
		"cake");
	refused((struct node_params){.size_bytes = GIB(1),
				     .occupants = "file:200%"},
		"file:200%");
	refused((struct node_params){.size_bytes = GIB(1),
				     .occupants = "file:60% anon:60%"},
		"room");
	refused((struct node_params){.size_bytes = GIB(1), .occupants = "anon"},
		"anon");
	refused((struct node_params){.size_bytes = GIB(1),
				     .occupants = "file:"},
		"file");
}

int main(int argc, char **argv)
{
	CU_TestInfo marks[] = {
		{"min_free is computed as the kernel does",
		 min_free_is_computed_as_the_kernel_does},
		{"marks follow from size and min_free",
		 marks_follow_from_size_and_min_free},
		{"min_free can be set", min_free_can_be_set},
		{"the last page of a block must be above the mark",
		 the_last_page_of_a_block_must_be_above_the_mark},
		{"a block of the order or above must be there",
		 a_block_of_the_order_or_above_must_be_there},
		{"the reserve is for requests that could go higher",
		 the_reserve_is_for_requests_that_could_go_higher},
		{"the fragmentation index tells lack from fragmentation",
		 the_fragmentation_index_tells_lack_from_fragmentation},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo params[] = {
		{"other page sizes work alike", other_page_sizes_work_alike},
		{"bad parameters are named", bad_parameters_are_named},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "watermarks", .pTests = marks},
		{.pName = "parameters", .pTests = params},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
