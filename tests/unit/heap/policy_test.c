/* SPDX-License-Identifier: MIT */
#include "heap/policy.h"

#include <string.h>

#include "base/strbuf.h"
#include "mm/gfp.h"
#include "support/test.h"

static void shipped_policies_are_those_of_the_kernels(void)
{
	struct policy p;

	T_REQUIRE(policy_shipped(&p, "840-high"));
	CU_ASSERT_EQUAL(p.n_steps, 3);
	CU_ASSERT_EQUAL(p.order[0], 8);
	CU_ASSERT_EQUAL(p.order[1], 4);
	CU_ASSERT_EQUAL(p.order[2], 0);
	CU_ASSERT_EQUAL(p.gfp[8], GFP_HIGH_ORDER);
	CU_ASSERT_EQUAL(p.gfp[4], GFP_HIGH_ORDER);
	CU_ASSERT_EQUAL(p.gfp[0], GFP_LOW_ORDER);
	T_REQUIRE(policy_shipped(&p, "840-mid"));
	CU_ASSERT_EQUAL(p.gfp[8], GFP_HIGH_ORDER);
	CU_ASSERT_EQUAL(p.gfp[4], GFP_MID_ORDER);
	T_REQUIRE(policy_shipped(&p, "800"));
	CU_ASSERT_EQUAL(p.order[1], 0);
	CU_ASSERT_EQUAL(p.order[2], 0);
	T_REQUIRE(policy_shipped(&p, "940-high"));
	CU_ASSERT_EQUAL(p.order[0], 9);
	T_REQUIRE(policy_shipped(&p, "0-only"));
	CU_ASSERT_EQUAL(p.n_steps, 1);
	CU_ASSERT_FALSE(policy_shipped(&p, "8"));
	CU_ASSERT_EQUAL(p.n_steps, 1);
}

static void the_threads_names_mean_the_kernel_of_their_time(void)
{
	struct policy a, b;

	T_REQUIRE(policy_shipped(&a, "8,4,0") && policy_shipped(&b, "840-mid"));
	CU_ASSERT_STRING_EQUAL(a.name, b.name);
	T_REQUIRE(policy_shipped(&a, "8,0,0"));
	CU_ASSERT_STRING_EQUAL(a.name, "800");
}

static void every_shipped_name_is_there(void)
{
	struct policy p;
	unsigned int n = 0;

	for (; policy_shipped_name(n); n++)
		CU_ASSERT_TRUE(policy_shipped(&p, policy_shipped_name(n)));
	CU_ASSERT_EQUAL(n, 5);
	CU_ASSERT_STRING_EQUAL(policy_default().name, "840-high");
}

static void orders_may_repeat_but_not_rise(void)
{
	static const char *const bad[] =
		{"4 8 0",   "8 4",
		 "",        "8 x 0",
		 "11 0",    "-1",
		 "8 4 0 4", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
		 "8,,4,1",  "123456789 0"};
	struct policy p = policy_default(), before;
	struct policy_error err;

	CU_ASSERT_EQUAL(policy_set(&p, "orders", "8 0 0", &err), 0);
	CU_ASSERT_EQUAL(p.n_steps, 3);
	CU_ASSERT_EQUAL(policy_set(&p, "orders", "10,9,0", &err), 0);
	CU_ASSERT_EQUAL(p.order[0], 10);
	CU_ASSERT_EQUAL(policy_set(&p, "orders", "0", NULL), 0);
	before = p;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err.text[0] = '\0';
		CU_ASSERT_EQUAL(policy_set(&p, "orders", bad[i], &err),
				POLICY_E_VALUE);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "allowed are"));
		CU_ASSERT_EQUAL(memcmp(&p, &before, sizeof(p)), 0);
	}
}

static void reasons_are_precise(void)
{
	struct policy p = policy_default();
	struct policy_error err;

	CU_ASSERT_EQUAL(policy_set(&p, "orders", "4 8 0", &err),
			POLICY_E_VALUE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the orders rise"));
	CU_ASSERT_EQUAL(policy_set(&p, "orders", "8 4", &err), POLICY_E_VALUE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the last order is not 0"));
	CU_ASSERT_EQUAL(policy_set(&p, "gfp.4", "ATOMIC", &err),
			POLICY_E_VALUE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "\"ATOMIC\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "HIGH_ORDER"));
	CU_ASSERT_EQUAL(policy_set(&p, "gfp.4", "LOW_ORDER|MOVABLE", &err),
			POLICY_E_VALUE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unmovable"));
	CU_ASSERT_EQUAL(policy_set(&p, "policy", "850", &err), POLICY_E_VALUE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "840-high"));
}

static void keys_that_are_not_there_are_refused(void)
{
	static const char *const bad[] = {"order",         "gfp",
					  "gfp.11",        "gfp.",
					  "gfp.4.x",       "gfp.-1",
					  "pool",          "pool.8",
					  "pool.8.size",   "pool.0.mark",
					  "pool.11.limit", "pool..limit",
					  "pool.refill.",  ""};
	struct policy p = policy_default(), before = p;
	struct policy_error err;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CU_ASSERT_EQUAL(policy_set(&p, bad[i], "0", &err),
				POLICY_E_KEY);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "gfp.N"));
	}
	CU_ASSERT_EQUAL(memcmp(&p, &before, sizeof(p)), 0);
}

static void pools_have_limits_and_marks(void)
{
	struct policy p = policy_default();
	struct policy_error err;

	CU_ASSERT_EQUAL(policy_set(&p, "pool.8.limit", "3M", &err), 0);
	CU_ASSERT_EQUAL(p.pool_limit_bytes[8], MIB(3));
	CU_ASSERT_EQUAL(policy_set(&p, "pool.4.limit", "none", &err), 0);
	CU_ASSERT_EQUAL(p.pool_limit_bytes[4], POLICY_NO_LIMIT);
	CU_ASSERT_EQUAL(policy_set(&p, "pool.4.mark", "1M", &err), 0);
	CU_ASSERT_EQUAL(p.pool_mark_bytes[4], MIB(1));
	CU_ASSERT_EQUAL(policy_set(&p, "pool.limit", "0", &err), 0);
	CU_ASSERT_EQUAL(p.pool_limit_bytes[0] + p.pool_limit_bytes[8] +
				p.pool_limit_bytes[4],
			0);
	CU_ASSERT_EQUAL(policy_set(&p, "pool.refill", "on", &err), 0);
	CU_ASSERT_TRUE(p.pool_refill);
	CU_ASSERT_EQUAL(policy_set(&p, "pool.refill", "maybe", &err),
			POLICY_E_VALUE);
	CU_ASSERT_EQUAL(policy_set(&p, "pool.8.limit", "-1", &err),
			POLICY_E_VALUE);
	CU_ASSERT_STRING_EQUAL(p.name, "840-high");
}

static void a_changed_policy_shows_it_in_its_name(void)
{
	struct policy p = policy_default();

	CU_ASSERT_EQUAL(policy_set(&p, "gfp.4", "MID_ORDER", NULL), 0);
	CU_ASSERT_STRING_EQUAL(p.name, "840-high*");
	CU_ASSERT_EQUAL(policy_set(&p, "orders", "8 0", NULL), 0);
	CU_ASSERT_STRING_EQUAL(p.name, "840-high*");
	CU_ASSERT_EQUAL(policy_set(&p, "policy", "800", NULL), 0);
	CU_ASSERT_STRING_EQUAL(p.name, "800");
}

static void apply_lines(struct policy *p, char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');

		T_REQUIRE(value);
		*value++ = '\0';
		CU_ASSERT_EQUAL(policy_set(p, line, value, NULL), 0);
	}
}

static void what_is_rendered_can_be_set_again(void)
{
	struct policy p = policy_default(), q = policy_default();
	_cleanup_(strbuf_finip) struct strbuf first = STRBUF_INIT;
	_cleanup_(strbuf_finip) struct strbuf second = STRBUF_INIT;
	char text[1024];

	T_REQUIRE(!policy_set(&p, "orders", "9 4 4 0", NULL));
	T_REQUIRE(!policy_set(&p, "gfp.4", "LOW_ORDER|RETRY_MAYFAIL", NULL));
	T_REQUIRE(!policy_set(&p, "pool.9.limit", "none", NULL));
	T_REQUIRE(!policy_set(&p, "pool.0.limit", "12345", NULL));
	T_REQUIRE(!policy_set(&p, "pool.refill", "on", NULL));
	policy_render(&p, &first);
	T_REQUIRE(first.len < sizeof(text));
	memcpy(text, first.s, first.len + 1);
	apply_lines(&q, text);
	policy_render(&q, &second);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&first), strbuf_string(&second));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"shipped policies are those of the kernels",
		 shipped_policies_are_those_of_the_kernels},
		{"the thread's names mean the kernel of their time",
		 the_threads_names_mean_the_kernel_of_their_time},
		{"every shipped name is there", every_shipped_name_is_there},
		{"orders may repeat but not rise",
		 orders_may_repeat_but_not_rise},
		{"reasons are precise", reasons_are_precise},
		{"keys that are not there are refused",
		 keys_that_are_not_there_are_refused},
		{"pools have limits and marks", pools_have_limits_and_marks},
		{"a changed policy shows it in its name",
		 a_changed_policy_shows_it_in_its_name},
		{"what is rendered can be set again",
		 what_is_rendered_can_be_set_again},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "policy", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
