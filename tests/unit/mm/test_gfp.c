/* SPDX-License-Identifier: MIT */
#include "mm/gfp.h"

#include <errno.h>
#include <string.h>

#include "mm/cost.h"
#include "support/test.h"

static void expect(const char *text, uint32_t flags)
{
	uint32_t got = 0xdeadu;

	CU_ASSERT_EQUAL(gfp_parse(text, &got), 0);
	CU_ASSERT_EQUAL(got, flags);
}

static void refuse(const char *text)
{
	uint32_t got = 0xdeadu;

	CU_ASSERT_EQUAL(gfp_parse(text, &got), -EINVAL);
	CU_ASSERT_EQUAL(got, 0xdeadu);
}

static void names_become_flags(void)
{
	expect("HIGH_ORDER", GFP_HIGH_ORDER);
	expect("MID_ORDER", GFP_MID_ORDER);
	expect("LOW_ORDER|RETRY_MAYFAIL", GFP_LOW_ORDER | GFP_RETRY_MAYFAIL);
	expect("DIRECT_RECLAIM|ZERO", GFP_DIRECT_RECLAIM | GFP_ZERO);
	expect("0", 0);
}

static void what_is_no_flag_is_refused(void)
{
	refuse("");
	refuse("|");
	refuse("HIGH_ORDER|");
	refuse("HIGH");
	refuse("HIGH_ORDERS");
	refuse("high_order");
	refuse("ZERO ");
	refuse("MOVABLE|RECLAIMABLE");
}

static void the_high_order_set_wakes_nobody(void)
{
	CU_ASSERT_EQUAL(GFP_HIGH_ORDER &
				(GFP_DIRECT_RECLAIM | GFP_KSWAPD_RECLAIM),
			0);
	CU_ASSERT(GFP_MID_ORDER & GFP_DIRECT_RECLAIM);
	CU_ASSERT_EQUAL(GFP_LOW_ORDER & GFP_COMP, 0);
}

static void every_set_of_flags_survives_text(void)
{
	for (uint32_t flags = 0; flags <= GFP_ALL_FLAGS; flags++) {
		struct strbuf sb = STRBUF_INIT;
		uint32_t got = 0;

		if ((flags & GFP_MOVABLE) && (flags & GFP_RECLAIMABLE))
			continue;
		gfp_format(&sb, flags);
		CU_ASSERT_EQUAL(gfp_parse(strbuf_string(&sb), &got), 0);
		CU_ASSERT_EQUAL(got, flags);
		strbuf_fini(&sb);
	}
}

static void costs_are_set_by_name(void)
{
	struct cost_profile c = cost_profile_default();

	CU_ASSERT_EQUAL(cost_profile_set(&c, "zero_page", "90"), 0);
	CU_ASSERT_EQUAL(c.zero_page_ps, 90000);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", "0.75"), 0);
	CU_ASSERT_EQUAL(c.split_ps, 750);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", "1.005"), 0);
	CU_ASSERT_EQUAL(c.split_ps, 1005);
}

static void bad_costs_are_refused_and_change_nothing(void)
{
	struct cost_profile c = cost_profile_default(), before = c;

	CU_ASSERT_EQUAL(cost_profile_set(&c, "zeropage", "1"), -ENOENT);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", ""), -EINVAL);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", "-1"), -EINVAL);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", "1."), -EINVAL);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", "1.2345"), -EINVAL);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", "1e3"), -EINVAL);
	CU_ASSERT_EQUAL(cost_profile_set(&c, "split", "60000000001"), -ERANGE);
	CU_ASSERT_EQUAL(memcmp(&c, &before, sizeof(c)), 0);
}

static void a_profile_is_scaled_as_a_whole(void)
{
	struct cost_profile c = cost_profile_default(), half = c;

	cost_profile_scale(&half, 1, 2);
	for (unsigned int i = 0; i < COST_COUNT; i++) {
		CU_ASSERT_EQUAL(cost_value_ps(&half, i),
				cost_value_ps(&c, i) / 2);
		CU_ASSERT(strlen(cost_name(i)) > 0);
		CU_ASSERT(strlen(cost_meaning(i)) > 0);
	}
}

int main(int argc, char **argv)
{
	CU_TestInfo flags[] = {
		{"names become flags", names_become_flags},
		{"what is no flag is refused", what_is_no_flag_is_refused},
		{"the HIGH_ORDER set wakes nobody",
		 the_high_order_set_wakes_nobody},
		{"every set of flags survives text",
		 every_set_of_flags_survives_text},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo costs[] = {
		{"costs are set by name", costs_are_set_by_name},
		{"bad costs are refused and change nothing",
		 bad_costs_are_refused_and_change_nothing},
		{"a profile is scaled as a whole",
		 a_profile_is_scaled_as_a_whole},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "gfp", .pTests = flags},
		{.pName = "cost", .pTests = costs},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
