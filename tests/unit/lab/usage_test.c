/* SPDX-License-Identifier: MIT */
/*
 * The experiment order-usage: what an IOMMU needs, what folios a mapping had,
 * and that the closing sentence follows from the figures above it.
 */
#include <stdio.h>
#include <string.h>

#include "experiment_support.h"
#include "lab/experiment_order_usage.h"
#include "support/test.h"

static void an_iommu_needs_few_entries_for_large_blocks(void)
{
	static const struct buffer_run adjacent[] = {
		{.pfn = 512, .n_blocks = 2, .order = 9}, /* 4 MiB at 2 MiB */
		{.pfn = 1536, .n_blocks = 1, .order = 4},
	};
	static const struct buffer_run apart[] = {
		{.pfn = 16, .n_blocks = 1, .order = 4},
		{.pfn = 35, .n_blocks = 3, .order = 0},
	};
	struct iommu_params p = iommu_default(KIB(4), KIB(64), MIB(2));
	struct iommu_usage u = iommu_use(&p, adjacent, 2, 4096);

	CU_ASSERT_EQUAL(u.sg_entries, 3);
	CU_ASSERT_EQUAL(u.stretches, 1);
	CU_ASSERT_EQUAL(u.entries, 3); /* 2 + 2 MiB, 64 KiB */
	u = iommu_use(&p, apart, 2, 4096);
	CU_ASSERT_EQUAL(u.sg_entries, 4);
	CU_ASSERT_EQUAL(u.stretches, 2);
	CU_ASSERT_EQUAL(u.entries, 4);
	CU_ASSERT_EQUAL(u.map_ns, 2 * p.map_call_ns + 4 * p.entry_write_ns);
	p = iommu_default(KIB(4), 0, 0);
	u = iommu_use(&p, adjacent, 2, 4096);
	CU_ASSERT_EQUAL(u.entries, 1024 + 16);
}

static void smaller_blocks_are_paid_for_in_use(void)
{
	_cleanup_(strbuf_finip) struct strbuf why = STRBUF_INIT;
	struct usage_result r = {.params = {.seed = 1,
					    .buffer_bytes = MIB(10),
					    .frame_bytes = MIB(3),
					    .n_frames = 6,
					    .n_held = 3,
					    .measure_every = 1,
					    .costs = cost_profile_default(),
					    .profile = "built-in"}};

	T_REQUIRE(usage_run(&r, NULL, &why) == 0);
	CU_ASSERT_EQUAL(r.cell[0][USAGE_PLENTY].composition[8], 10);
	CU_ASSERT_EQUAL(r.cell[2][USAGE_PLENTY].composition[9], 5);
	CU_ASSERT_EQUAL(r.cell[3][USAGE_PLENTY].composition[0], 2560);
	CU_ASSERT_EQUAL(r.cell[1][USAGE_LOW].composition[4], 0);
	CU_ASSERT(r.cell[3][USAGE_LOW].iommu[1].entries >
		  r.cell[0][USAGE_PLENTY].iommu[1].entries);
	CU_ASSERT_FALSE(r.cell[0][USAGE_PLENTY].measured);
	CU_ASSERT_EQUAL(r.recording[0].n_measured, 0);
	CU_ASSERT_EQUAL(r.recording[3].blocks[0], 6 * 768);
	RENDER(usage_report, &r);
	SHOWS("8,4,0");
	SHOWS("profile built-in");
	SAYS_NOT("Measured");

	r.recording[0].alloc_ns = 100000000;
	r.recording[1].alloc_ns = 10000000;
	r.recording[0].iommu_ns = 1000000;
	r.recording[1].iommu_ns = 3000000;
	RENDER(usage_report, &r);
	SAYS("saves 90.0 ms in allocation and pays back 2.0 ms");
	SAYS("win even when");
	r.recording[1].iommu_ns = 201000000;
	r.recording[0].n_measured = r.recording[1].n_measured = 1;
	r.recording[0].touch_ns = 5000000;
	RENDER(usage_report, &r);
	SAYS("pays back 200.0 ms");
	SAYS("lose once");
	SAYS("5.0 ms with 8,4,0 and 0.0 ms");
	SAYS("Of the 2 frames measured 0 had the folios");
	SAYS("or cannot be seen into");
	r.recording[0].sight = r.recording[1].sight = USAGE_SEEN_ALL;
	RENDER(usage_report, &r);
	SAYS("the others had not: these times compare the backing");
	r.recording[0].n_as_asked = r.recording[1].n_as_asked = 1;
	RENDER(usage_report, &r);
	SAYS("Each of the 2 frames measured had the folios");
}

static void folios_are_compared_with_what_was_asked(void)
{
	const uint32_t small[POLICY_ORDER_COUNT] = {[8] = 1, [4] = 2};
	const uint32_t huge[POLICY_ORDER_COUNT] = {[USAGE_HUGE_ORDER] = 5};
	struct usage_folios f = {.sight = USAGE_UNSEEN};

	CU_ASSERT_EQUAL(usage_compare(small, &f), USAGE_UNKNOWN);
	f.sight = USAGE_SEEN_HUGE; /* and there is none */
	CU_ASSERT_EQUAL(usage_compare(small, &f), USAGE_UNKNOWN);
	CU_ASSERT_EQUAL(usage_compare(huge, &f), USAGE_OTHER);
	f.of_order[USAGE_HUGE_ORDER] = 5;
	CU_ASSERT_EQUAL(usage_compare(huge, &f), USAGE_AS_ASKED);
	CU_ASSERT_EQUAL(usage_compare(small, &f), USAGE_OTHER);
	f = (struct usage_folios){.sight = USAGE_SEEN_ALL,
				  .of_order = {[8] = 1, [4] = 2}};
	CU_ASSERT_EQUAL(usage_compare(small, &f), USAGE_AS_ASKED);
	f.of_order[0] = 16;
	f.of_order[4] = 1;
	CU_ASSERT_EQUAL(usage_compare(small, &f), USAGE_OTHER);
}

static void what_the_backing_could_not_give_is_said(void)
{
	struct usage_result r = {.params = {.seed = 1, .profile = "built-in"}};
	struct usage_cell *c = &r.cell[0][USAGE_LOW];

	c->measured = true;
	c->composition[4] = 160;
	c->times.folios =
		(struct usage_folios){.sight = USAGE_SEEN_ALL,
				      .of_order = {[4] = 100, [0] = 960}};
	(void)snprintf(c->times.reason, sizeof(c->times.reason), "too few");
	RENDER(usage_report, &r);
	SHOWS("100 x 4, 960 x 0");
	SHOWS("60 x 4: too few");
	c->times.folios.sight = USAGE_UNSEEN;
	RENDER(usage_report, &r);
	SHOWS("cannot be seen");
	SHOWS("too few");
	c->times.folios = (struct usage_folios){.sight = USAGE_SEEN_ALL,
						.of_order = {[4] = 160}};
	RENDER(usage_report, &r);
	CU_ASSERT_PTR_NULL(strstr(text, "too few"));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"an IOMMU needs few entries for large blocks",
		 an_iommu_needs_few_entries_for_large_blocks},
		{"smaller blocks are paid for in use",
		 smaller_blocks_are_paid_for_in_use},
		{"folios are compared with what was asked",
		 folios_are_compared_with_what_was_asked},
		{"what the backing could not give is said",
		 what_the_backing_could_not_give_is_said},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "lab_usage", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
