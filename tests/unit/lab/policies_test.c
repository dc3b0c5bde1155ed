/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "conf/ini.h"
#include "heap/policy.h"
#include "lab/data.h"
#include "lab/policies.h"
#include "support/test.h"

/* The files in configs/policies say the same as what is built in. */

static void check_file(void *ctx, const char *name)
{
	struct lab_policies own = {.n = 0};
	struct policy built_in, from_file;
	struct conf_error err;
	char path[LAB_PATH_BYTES];

	++*(unsigned int *)ctx;
	T_REQUIRE(policy_shipped(&built_in, name));
	T_REQUIRE(lab_find(path, "policies", name, ".conf", NULL));
	T_REQUIRE(lab_policies_read_file(&own, path, &err) == 0);
	T_REQUIRE(lab_policies_find_own(&own, name, &from_file));
	CU_ASSERT_EQUAL(from_file.n_steps, built_in.n_steps);
	CU_ASSERT_EQUAL(memcmp(from_file.order, built_in.order,
			       from_file.n_steps),
			0);
	for (uint32_t i = 0; i < built_in.n_steps; i++) {
		unsigned int order = built_in.order[i];

		CU_ASSERT_EQUAL(from_file.gfp[order], built_in.gfp[order]);
		CU_ASSERT_EQUAL(from_file.pool_limit_bytes[order],
				built_in.pool_limit_bytes[order]);
		CU_ASSERT_EQUAL(from_file.pool_mark_bytes[order],
				built_in.pool_mark_bytes[order]);
	}
}

static int read_text(struct lab_policies *ret, const char *text,
		     struct conf_error *err)
{
	struct conf_ini *ini = NULL;
	int r;

	*ret = (struct lab_policies){.n = 0};
	T_REQUIRE(conf_ini_parse(&ini, "p.conf", text, strlen(text),
				 CONF_REPEAT_SECTIONS, err) == 0);
	r = lab_policies_read(ret, ini, err);
	ini = conf_ini_free(ini);
	return r;
}

static void a_policy_of_ones_own_may_build_on_another(void)
{
	static const char text[] =
		"[policy mine]\npool.8.limit = 1M\ngfp.4 = MID_ORDER\n"
		"pool.limit = 2M\npolicy = 800\norders = 8 4 0\n"
		"[policy 800]\npolicy = mine\ngfp.4 = HIGH_ORDER\n";
	struct lab_policies own;
	struct policy p, shipped;
	struct conf_error err;

	T_REQUIRE(policy_shipped(&shipped, "840-mid"));
	T_REQUIRE(read_text(&own, text, &err) == 0);
	T_REQUIRE(own.n == 2 && lab_policies_find(&own, "mine", &p));
	CU_ASSERT_STRING_EQUAL(p.name, "mine");
	CU_ASSERT_EQUAL(p.n_steps, 3);
	CU_ASSERT_EQUAL(p.gfp[4], shipped.gfp[4]);
	/* Whatever the order of the keys is, one of an order wins. */
	CU_ASSERT_EQUAL(p.pool_limit_bytes[8], MIB(1));
	CU_ASSERT_EQUAL(p.pool_limit_bytes[4], MIB(2));
	/* One's own wins over a shipped one, and has what it built on. */
	T_REQUIRE(lab_policies_find(&own, "800", &p));
	CU_ASSERT_EQUAL(p.order[1], 4);
	CU_ASSERT_EQUAL(p.gfp[4], shipped.gfp[8]);
	T_REQUIRE(lab_policies_find(&own, "840-mid", &p));
	CU_ASSERT_FALSE(lab_policies_find_own(&own, "840-mid", &p));
	CU_ASSERT_FALSE(lab_policies_find(&own, "850", &p));
}

static void a_bad_policy_is_refused_with_its_line(void)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"[policy a]\norders = 4 8\n", "p.conf:2: orders: "},
		{"[policy a]\nsize = 4\n", "p.conf:2: size: no such key"},
		{"[policy a]\npolicy = b\n[policy b]\n",
		 "p.conf:2: policy: \"b\": no such policy"},
		{"[policy]\norders = 0\n", "a policy needs a name"},
		{"[policy a*]\norders = 0\n", "a policy needs a name"},
		{"[policy a.conf]\norders = 0\n", "must not end in .conf"},
		{"[policy a]\n[policy a]\n",
		 "p.conf:2: [policy a]: a policy of that name is there "
		 "already"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct lab_policies own;
		struct conf_error err = {{0}};

		CU_ASSERT_EQUAL(read_text(&own, bad[i].text, &err),
				CONF_E_INVALID);
		if (!strstr(err.text, bad[i].message))
			printf("%s\n", err.text);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
	}
}

static void there_is_room_for_a_number_of_policies(void)
{
	char text[LAB_POLICIES_MAX * 16 + 32] = "";
	struct lab_policies own;
	struct conf_error err;

	for (unsigned int i = 0; i < LAB_POLICIES_MAX; i++)
		(void)sprintf(text + strlen(text), "[policy p%u]\n", i);
	CU_ASSERT_EQUAL(read_text(&own, text, &err), 0);
	CU_ASSERT_EQUAL(own.n, LAB_POLICIES_MAX);
	strcat(text, "[policy more]\n");
	CU_ASSERT_EQUAL(read_text(&own, text, &err), CONF_E_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 16 policies"));
}

static void every_shipped_policy_has_a_true_file(void)
{
	unsigned int n = 0, n_built_in = 0;

	while (policy_shipped_name(n_built_in))
		n_built_in++;
	(void)lab_list("policies", ".conf", check_file, &n);
	CU_ASSERT_EQUAL(n, n_built_in);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"every shipped policy has a true file",
		 every_shipped_policy_has_a_true_file},
		{"a policy of one's own may build on another",
		 a_policy_of_ones_own_may_build_on_another},
		{"a bad policy is refused with its line",
		 a_bad_policy_is_refused_with_its_line},
		{"there is room for a number of policies",
		 there_is_room_for_a_number_of_policies},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "policies", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
