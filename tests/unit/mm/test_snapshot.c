/* SPDX-License-Identifier: MIT */
#include "mm/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mm/node.h"
#include "mm/occupants.h"
#include "mm/zone.h"
#include "support/test.h"

#define BUDDY                                                                  \
	"Node 0, zone      DMA      0      0      0      0      0      0     " \
	" "                                                                    \
	"0      0      1      1      3 \n"                                     \
	"Node 0, zone   Normal 119299      5      1      1      4      2     " \
	" "                                                                    \
	"3      1      1      0      0 \n"
#define TYPES                                                                  \
	"Page block order: 9\nPages per block:  512\n\n"                       \
	"Free pages count per migrate type at order       0      1 \n"         \
	"Node    0, zone      DMA, type    Unmovable      0      0      0    " \
	"  0      0      0      0      0      1      0      0 \n"              \
	"Node    0, zone      DMA, type      Movable      0      0      0    " \
	"  0      0      0      0      0      0      1      3 \n"              \
	"Node    0, zone      DMA, type  Reclaimable      0      0      0    " \
	"  0      0      0      0      0      0      0      0 \n"              \
	"Node    0, zone   Normal, type    Unmovable      0      0      1    " \
	"  0      1      1      1      0      1      0      0 \n"              \
	"Node    0, zone   Normal, type      Movable >100000      4      0   " \
	"   0      1      1      1      0      0      0      0 \n"             \
	"Node    0, zone   Normal, type  Reclaimable      1      1      0    " \
	"  1      2      0      1      1      0      0      0 \n"              \
	"\nNumber of blocks type     Unmovable      Movable  Reclaimable \n"   \
	"Node 0, zone      DMA            1            7            0 \n"      \
	"Node 0, zone   Normal            5          505            2 \n"

static int parse(struct snapshot **snap, const char *buddyinfo,
		 const char *pagetypeinfo, const char *meminfo,
		 struct snapshot_error *err)
{
	const struct snapshot_texts texts = {
		.buddyinfo = buddyinfo,
		.pagetypeinfo = pagetypeinfo,
		.meminfo = meminfo,
	};

	memset(err, 0, sizeof(*err));
	return snapshot_parse(snap, &texts, NULL, err);
}

/* The error must name the file, the line and say something. */
static void refused(const char *buddyinfo, const char *pagetypeinfo,
		    const char *meminfo, const char *file, unsigned int line)
{
	struct snapshot *snap = NULL;
	struct snapshot_error err;

	CU_ASSERT_EQUAL(parse(&snap, buddyinfo, pagetypeinfo, meminfo, &err),
			SNAPSHOT_E_INVALID);
	CU_ASSERT_PTR_NULL(snap);
	CU_ASSERT_STRING_EQUAL(err.file, file);
	CU_ASSERT_EQUAL(err.line, line);
	CU_ASSERT(strlen(err.text) > 5);
}

static void more_than_100000_is_the_rest_of_buddyinfo(void)
{
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct snapshot_error err;

	T_REQUIRE(parse(&snap, BUDDY, TYPES, NULL, &err) == 0);
	CU_ASSERT_EQUAL(snap->n_zones, 2);
	CU_ASSERT_EQUAL(snap->zone[1].free[1][0], 119299 - 1);
	CU_ASSERT_EQUAL(snap->zone[1].free[2][4], 2);
	CU_ASSERT_EQUAL(snap->zone[1].span_pages, 512 * 512);
	CU_ASSERT_EQUAL(snap->zone[0].span_pages, 8 * 512);
}

static void buddyinfo_alone_needs_a_size(void)
{
	const struct snapshot_texts texts = {.buddyinfo = BUDDY};
	const struct snapshot_options options = {.size_bytes = GIB(1)};
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct snapshot_error err;

	refused(BUDDY, NULL, NULL, "buddyinfo", 0);
	T_REQUIRE(snapshot_parse(&snap, &texts, &options, &err) == 0);
	CU_ASSERT_EQUAL(snap->zone[0].span_pages + snap->zone[1].span_pages,
			GIB(1) / 4096);
}

static void meminfo_says_who_occupies(void)
{
	static const char mem[] = "MemTotal: 1040000 kB\nMemFree: 500000 kB\n"
				  "MemAvailable: 700000 kB\nBuffers: 4000 kB\n"
				  "Cached: 100000 kB\nShmem: 20000 kB\n"
				  "Mlocked: 8000 kB\nAnonPages: 60000 kB\n"
				  "Dirty: 400 kB\nSReclaimable: 4000 kB\n";
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct snapshot_error err;

	T_REQUIRE(parse(&snap, BUDDY, TYPES, mem, &err) == 0);
	CU_ASSERT_EQUAL(snap->dirty_pages, 100);
	CU_ASSERT_EQUAL(snap->file_pages, (104000 - 20000) / 4 - 100);
	CU_ASSERT_EQUAL(snap->anon_pages, (60000 - 8000 + 20000) / 4);
	CU_ASSERT_EQUAL(snap->mlocked_pages, 2000);
	CU_ASSERT_EQUAL(snap->slab_pages, 1000);
	CU_ASSERT_EQUAL(snap->total_pages, 260000);
}

static void vmstat_says_whether_compaction_ever_ran(void)
{
	struct snapshot_texts texts = {.buddyinfo = BUDDY,
				       .pagetypeinfo = TYPES};
	_cleanup_(snapshot_freep) struct snapshot *fresh = NULL;
	_cleanup_(snapshot_freep) struct snapshot *aged = NULL;
	struct snapshot *none = NULL;
	struct snapshot_error err;

	texts.vmstat = "pgalloc 5\ncompact_stall 0\n";
	T_REQUIRE(snapshot_parse(&fresh, &texts, NULL, &err) == 0);
	CU_ASSERT_FALSE(fresh->has_compacted);
	texts.vmstat = "pgalloc 5\ncompact_stall 7\n";
	T_REQUIRE(snapshot_parse(&aged, &texts, NULL, &err) == 0);
	CU_ASSERT(aged->has_compacted);
	texts.vmstat = "pgalloc\n";
	CU_ASSERT_EQUAL(snapshot_parse(&none, &texts, NULL, &err),
			SNAPSHOT_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.file, "vmstat");
	CU_ASSERT_EQUAL(err.line, 1);
}

static void nonsense_is_refused_with_file_line_and_reason(void)
{
	refused("", NULL, NULL, "buddyinfo", 0);
	refused("Node 0, zone DMA 1 2 3\n", NULL, NULL, "buddyinfo", 1);
	refused("Node 0, zone DMA 1 2 3 4 5 6 7 8 9 10 11 12\n", NULL, NULL,
		"buddyinfo", 1);
	refused("Node 0, zone DMA -1 2 3 4 5 6 7 8 9 10 11\n", NULL, NULL,
		"buddyinfo", 1);
	refused("Node 0, zone DMA 1000000000000 0 0 0 0 0 0 0 0 0 0\n", NULL,
		NULL, "buddyinfo", 1);
	refused(BUDDY "Node 0, zone      DMA 0 0 0 0 0 0 0 0 0 0 0\n", NULL,
		NULL, "buddyinfo", 3);
	refused(BUDDY "Node 1, zone   Normal 0 0 0 0 0 0 0 0 0 0 0\n", NULL,
		NULL, "buddyinfo", 3);
	refused("Node 0, zone Movable 0 0 0 0 0 0 0 0 0 0 0\n", NULL, NULL,
		"buddyinfo", 1);
	refused("\x7f"
		"ELF\x02\x01",
		NULL, NULL, "buddyinfo", 1);
	refused("hello\n", NULL, NULL, "buddyinfo", 1);
	refused(BUDDY, "Node 0, zone Hi, type Movable 0 0 0 0 0 0 0 0 0 0 0\n",
		NULL, "pagetypeinfo", 1);
	refused(BUDDY, "Node 0, zone DMA, type Odd 0 0 0 0 0 0 0 0 0 0 0\n",
		NULL, "pagetypeinfo", 1);
	refused(BUDDY, "Node 0, zone DMA, tyte Movable 0 0 0 0 0 0 0 0 0 0 0\n",
		NULL, "pagetypeinfo", 1);
	refused(BUDDY, "Page block order: 10\n", NULL, "pagetypeinfo", 1);
	refused(BUDDY, TYPES, "MemTotal 12 kB\n", "meminfo", 1);
	refused(BUDDY, TYPES, "MemTotal: x kB\n", "meminfo", 1);
}

static void a_long_line_is_refused(void)
{
	char text[700];

	memset(text, ' ', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	refused(text, NULL, NULL, "buddyinfo", 1);
}

static void the_rest_may_not_be_negative(void)
{
	refused("Node 0, zone DMA 5 0 0 0 0 0 0 0 0 0 0\n",
		"Node 0, zone DMA, type Unmovable 7 0 0 0 0 0 0 0 0 0 0\n"
		"Node 0, zone DMA, type Movable >100000 0 0 0 0 0 0 0 0 0 0\n"
		"Number of blocks type Unmovable Movable\n"
		"Node 0, zone DMA 1 7\n",
		NULL, "pagetypeinfo", 0);
	refused("Node 0, zone DMA 5 0 0 0 0 0 0 0 0 0 0\n",
		"Node 0, zone DMA, type Unmovable >100000 0 0 0 0 0 0 0 0 0 0\n"
		"Node 0, zone DMA, type Movable >100000 0 0 0 0 0 0 0 0 0 0\n",
		NULL, "pagetypeinfo", 0);
}

static struct node *build(const char *buddyinfo, const char *pagetypeinfo,
			  const char *meminfo)
{
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct node_params params = {.seed = 3, .n_cpus = 2};
	struct snapshot_error snap_err;
	struct node *node = NULL;
	struct node_error err;
	const char *what = NULL;

	T_REQUIRE(parse(&snap, buddyinfo, pagetypeinfo, meminfo, &snap_err) ==
		  0);
	params.snapshot = snap;
	if (node_new(&node, &params, &err)) {
		fprintf(stderr, "%s\n", err.text);
		T_REQUIRE(false);
	}
	if (!node_check(node, &what)) {
		fprintf(stderr, "%s\n", what);
		CU_FAIL("node_check");
	}
	return node;
}

static void a_node_prints_its_snapshot_back(void)
{
	_cleanup_(node_freep) struct node *node = build(BUDDY, TYPES, NULL);
	_cleanup_(node_freep) struct node *again = NULL;
	struct strbuf buddy = STRBUF_INIT, types = STRBUF_INIT;
	struct strbuf once_more = STRBUF_INIT;

	node_render_buddyinfo(node, &buddy);
	node_render_pagetypeinfo(node, &types);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&buddy), BUDDY);
	/* and what it printed is a snapshot of the same node */
	again = build(strbuf_string(&buddy), strbuf_string(&types), NULL);
	node_render_pagetypeinfo(again, &once_more);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&types),
			       strbuf_string(&once_more));
	CU_ASSERT_PTR_NOT_NULL(strstr(strbuf_string(&types), ">100000"));
	strbuf_fini(&buddy);
	strbuf_fini(&types);
	strbuf_fini(&once_more);
}

static void zoneinfo_and_meminfo_are_read_back(void)
{
	_cleanup_(node_freep) struct node *node = build(BUDDY, TYPES, NULL);
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct strbuf text[3] = {STRBUF_INIT, STRBUF_INIT, STRBUF_INIT};
	struct snapshot_texts texts;
	struct node_zone_stats stats;
	struct snapshot_error err;

	node_render_buddyinfo(node, &text[0]);
	node_render_zoneinfo(node, &text[1]);
	node_render_meminfo(node, &text[2]);
	texts = (struct snapshot_texts){
		.buddyinfo = strbuf_string(&text[0]),
		.zoneinfo = strbuf_string(&text[1]),
		.meminfo = strbuf_string(&text[2]),
	};
	T_REQUIRE(snapshot_parse(&snap, &texts, NULL, &err) == 0);
	for (unsigned int i = 0; i < 2; i++) {
		node_zone_stats(node, i, &stats);
		CU_ASSERT_EQUAL(snap->zone[i].managed_pages, stats.size_pages);
	}
	for (int i = 0; i < 3; i++)
		strbuf_fini(&text[i]);
}

/* A PC's zones: 16 MiB, 1008 MiB and 1 GiB, nothing between 1 and 4 GiB. */
#define PC_BUDDY                                                               \
	"Node 0, zone DMA 0 0 0 0 0 0 0 0 0 0 3\n"                             \
	"Node 0, zone DMA32 9000 0 0 1 0 0 0 0 0 1 0\n"                        \
	"Node 0, zone Normal 9000 0 0 0 1 0 0 0 0 0 1\n"
#define PC_TYPES                                                               \
	"Number of blocks type Unmovable Movable Reclaimable\n"                \
	"Node 0, zone DMA 1 7 0\n"                                             \
	"Node 0, zone DMA32 4 498 2\n"                                         \
	"Node 0, zone Normal 6 505 1\n"
#define PC_MEMINFO "MemTotal: 1900000 kB\nAnonPages: 1700000 kB\n"

static void what_is_reserved_lies_where_it_is_taken_at_boot(void)
{
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct snapshot_error err;
	uint64_t reserved;

	T_REQUIRE(parse(&snap, PC_BUDDY, PC_TYPES, PC_MEMINFO, &err) == 0);
	/* 64 bytes for each of 524288 frames, from the top; 64 MiB for devices
	 * from what they reach; the rest by size */
	CU_ASSERT_EQUAL(snap->zone[0].managed_pages, 3072);
	reserved = 524288 - 1024 - 475000 - 8192 - 16384;
	CU_ASSERT_EQUAL(snap->zone[1].managed_pages,
			258048 - 16384 - reserved * 258048 / 524288);
	CU_ASSERT_EQUAL(snap->zone[2].managed_pages,
			262144 - 8192 - reserved * 262144 / 524288);
}

static void dma32_ends_at_4_gib_when_memory_goes_on(void)
{
	static const char zoneinfo[] =
		"Node 0, zone DMA32\n  spanned 300000\n  present 258048\n"
		"  managed 258048\n  count: 7\n  count: 5\n";
	struct snapshot_texts texts = {.buddyinfo = PC_BUDDY,
				       .pagetypeinfo = PC_TYPES};
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct snapshot_error err;

	T_REQUIRE(snapshot_parse(&snap, &texts, NULL, &err) == 0);
	CU_ASSERT_EQUAL(snap->zone[0].hole_pages, 0);
	CU_ASSERT_EQUAL(snap->zone[1].hole_pages, 1048576 - 262144);
	CU_ASSERT_EQUAL(snap->zone[2].hole_pages, 0);
	CU_ASSERT_EQUAL(snap->zone[1].pcp_pages, SNAPSHOT_UNKNOWN);
	snap = snapshot_free(snap);
	/* zoneinfo knows */
	texts.zoneinfo = zoneinfo;
	T_REQUIRE(snapshot_parse(&snap, &texts, NULL, &err) == 0);
	CU_ASSERT_EQUAL(snap->zone[1].hole_pages,
			300000 / 512 * 512 - 258048 / 512 * 512);
	CU_ASSERT_EQUAL(snap->zone[1].pcp_pages, 12);
	CU_ASSERT_EQUAL(snap->zone[2].pcp_pages, SNAPSHOT_UNKNOWN);
}

static void per_cpu_lists_of_the_highest_zone_are_half_full(void)
{
	_cleanup_(node_freep) struct node *node =
		build(PC_BUDDY, PC_TYPES, PC_MEMINFO);
	struct strbuf zoneinfo = STRBUF_INIT;
	struct node_zone_stats stats;
	const char *high;

	node_zone_stats(node, 1, &stats);
	CU_ASSERT_EQUAL(stats.pcp_pages, 0);
	node_render_zoneinfo(node, &zoneinfo);
	high = strstr(strbuf_string(&zoneinfo), "zone   Normal");
	T_REQUIRE(high != NULL);
	high = strstr(high, "high:  ");
	T_REQUIRE(high != NULL);
	node_zone_stats(node, 2, &stats);
	CU_ASSERT_EQUAL(stats.pcp_pages, strtoull(high + 7, NULL, 10) / 2 *
						 node_params(node)->n_cpus);
	strbuf_fini(&zoneinfo);
}

/* The free blocks of one order in the lower half of a zone. */
static unsigned int low_blocks(const struct node *node, unsigned int i,
			       unsigned int order)
{
	const struct zone *zone = &node->zones[i];
	uint32_t middle =
		zone->start_pfn + (zone->end_pfn - zone->start_pfn) / 2;
	unsigned int n = 0;

	for (uint32_t pfn = zone->start_pfn; pfn < middle; pfn++)
		n += frame_type(node->state[pfn]) == FRAME_BUDDY &&
		     frame_order(node->state[pfn]) == order;
	return n;
}

static void what_proactive_compaction_made_lies_low(void)
{
	/* a fifth of what is free is in whole pageblocks: its low mark */
	static const char buddyinfo[] =
		"Node 0, zone Normal 17000 0 0 0 1 0 0 0 0 0 4\n";
	static const char types[] =
		"Number of blocks type Unmovable Movable Reclaimable\n"
		"Node 0, zone Normal 6 505 1\n";
	struct snapshot_error snap_err;
	struct node_error err;

	for (unsigned int p = 0; p <= 20; p += 20) {
		_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
		_cleanup_(node_freep) struct node *node = NULL;
		struct node_params params = {.seed = 1,
					     .compaction_proactiveness = p};

		T_REQUIRE(parse(&snap, buddyinfo, types, NULL, &snap_err) == 0);
		params.snapshot = snap;
		T_REQUIRE(node_new(&node, &params, &err) == 0);
		CU_ASSERT_EQUAL(low_blocks(node, 0, 10), p ? 4 : 0);
		CU_ASSERT_EQUAL(low_blocks(node, 0, 4), p ? 1 : 0);
		CU_ASSERT(node_check(node, NULL));
	}
}

static void compaction_works_around_a_hole(void)
{
	_cleanup_(node_freep) struct node *node =
		build(PC_BUDDY, PC_TYPES, PC_MEMINFO);
	struct node_request req = {.start_ns = NSEC_PER_SEC};
	uint64_t pfn[512];
	unsigned int n = 0;

	while (n < ARRAY_SIZE(pfn) &&
	       node_alloc(node, &req, 4, GFP_MID_ORDER, &pfn[n]) == 0)
		n++;
	CU_ASSERT(node_vmstat(node, "compact_stall") > 0);
	CU_ASSERT(node_vmstat(node, "compact_migrate_scanned") > 0);
	CU_ASSERT(node_check(node, NULL));
	while (n > 0)
		node_free_block(node, &req, pfn[--n], 4);
	CU_ASSERT(node_check(node, NULL));
}

static void unmovable_pageblocks_of_each_zone_hold_unmovable_pages(void)
{
	_cleanup_(node_freep) struct node *node =
		build(PC_BUDDY, PC_TYPES, PC_MEMINFO);

	for (unsigned int i = 1; i < 3; i++) {
		const struct zone *zone = &node->zones[i];

		for (uint32_t pfn = zone->start_pfn;
		     block_mt(node, pfn) == MT_UNMOVABLE; pfn++)
			CU_ASSERT(!occupant_is_movable(node->state[pfn]));
	}
}

static void blocks_that_no_memory_can_hold_are_refused(void)
{
	static const char types[] =
		"Node 0, zone Normal, type Movable 0 0 0 0 0 0 0 0 0 9 0\n"
		"Number of blocks type Unmovable Movable Reclaimable\n"
		"Node 0, zone Normal 0 10 0\n";
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct node_params params = {.seed = 1};
	struct snapshot_error snap_err;
	struct node *node = NULL;
	struct node_error err;

	/* nine blocks of order 9 of which no two may be buddies */
	T_REQUIRE(parse(&snap, "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 9 0\n",
			types, NULL, &snap_err) == 0);
	params.snapshot = snap;
	CU_ASSERT_EQUAL(node_new(&node, &params, &err), NODE_E_INVALID);
	CU_ASSERT_PTR_NULL(node);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "order 9"));
	/* and more free than there is */
	CU_ASSERT_EQUAL(parse(&snap,
			      "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 99\n",
			      NULL, "MemTotal: 40960 kB\n", &snap_err),
			SNAPSHOT_E_INVALID);
}

int main(int argc, char **argv)
{
	CU_TestInfo parsing[] = {
		{"more than 100000 is the rest of buddyinfo",
		 more_than_100000_is_the_rest_of_buddyinfo},
		{"buddyinfo alone needs a size", buddyinfo_alone_needs_a_size},
		{"meminfo says who occupies", meminfo_says_who_occupies},
		{"vmstat says whether compaction ever ran",
		 vmstat_says_whether_compaction_ever_ran},
		{"nonsense is refused with file, line and reason",
		 nonsense_is_refused_with_file_line_and_reason},
		{"a long line is refused", a_long_line_is_refused},
		{"the rest may not be negative", the_rest_may_not_be_negative},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo nodes[] = {
		{"what is reserved lies where it is taken at boot",
		 what_is_reserved_lies_where_it_is_taken_at_boot},
		{"DMA32 ends at 4 GiB when memory goes on",
		 dma32_ends_at_4_gib_when_memory_goes_on},
		{"per-CPU lists of the highest zone are half full",
		 per_cpu_lists_of_the_highest_zone_are_half_full},
		{"what proactive compaction made lies low",
		 what_proactive_compaction_made_lies_low},
		{"compaction works around a hole",
		 compaction_works_around_a_hole},
		{"unmovable pageblocks of each zone hold unmovable pages",
		 unmovable_pageblocks_of_each_zone_hold_unmovable_pages},
		{"a node prints its snapshot back",
		 a_node_prints_its_snapshot_back},
		{"zoneinfo and meminfo are read back",
		 zoneinfo_and_meminfo_are_read_back},
		{"blocks that no memory can hold are refused",
		 blocks_that_no_memory_can_hold_are_refused},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "parsing", .pTests = parsing},
		{.pName = "nodes", .pTests = nodes},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
