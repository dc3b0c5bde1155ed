/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "conf/ini.h"
#include "heap/policy.h"
#include "lab/data.h"
#include "support/test.h"

/* The files in configs/policies say the same as what is built in. */

static void check_file(void *ctx, const char *name)
{
	struct policy built_in, from_file = policy_default();
	const struct conf_section *section;
	struct conf_ini *ini = NULL;
	struct conf_error err;
	char path[LAB_PATH_BYTES];

	++*(unsigned int *)ctx;
	T_REQUIRE(policy_shipped(&built_in, name));
	T_REQUIRE(lab_find(path, "policies", name, ".conf", NULL));
	T_REQUIRE(conf_ini_read(&ini, path, 0, &err) == 0);
	section = conf_ini_find(ini, "policy", name);
	T_REQUIRE(section);
	for (size_t i = 0; i < section->n_entries; i++)
		CU_ASSERT_EQUAL(policy_set(&from_file, section->entries[i].key,
					   section->entries[i].value, NULL),
				0);
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
	ini = conf_ini_free(ini);
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
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "policies", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
