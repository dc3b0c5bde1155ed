/* SPDX-License-Identifier: MIT */
#include "conf/scenario.h"

#include <errno.h>
#include <string.h>

#include "support/test.h"

#define TABLE "[table low]\npolicy = 8,4,0\n"
#define ALLOC "[step alloc]\nsize = 10M\n"

static int parse(const char *text, struct scenario **ret,
		 struct conf_error *err)
{
	return scenario_parse(ret, "s.conf", text, strlen(text), err);
}

static void a_whole_scenario_is_read(void)
{
	static const char text[] =
		"[scenario]\ntitle = try\nseed = 9\n[node]\nsize = 1G\n"
		"[step occupy]\nkind = anon\nleave = 40M\n" TABLE
		"[step repeat]\ncount = 3\n"
		"[step alloc]\nsize = 8M 3M\ncount = 4\nevery = 33ms\n"
		"[step free]\nkeep = 2\nwhich = random\n[step end]\n"
		"[table low]\npolicy = 800\n"
		"[step alloc]\nsize = 4K..32M\n[step sleep]\ntime = 1s\n";
	_cleanup_(scenario_freep) struct scenario *s = NULL;
	struct conf_error err = {{0}};

	CU_ASSERT_EQUAL(parse(text, &s, &err), 0);
	CU_ASSERT_STRING_EQUAL(err.text, "");
	T_REQUIRE(s);
	CU_ASSERT_STRING_EQUAL(s->title, "try");
	CU_ASSERT_EQUAL(s->seed, 9);
	CU_ASSERT_EQUAL(s->n_tables, 2);
	CU_ASSERT_EQUAL(s->n_common_steps, 1);
	CU_ASSERT_EQUAL(s->n_steps, 7);
	CU_ASSERT_TRUE(s->steps[0].has_leave);
	CU_ASSERT_STRING_EQUAL(s->steps[0].kind->value, "anon");
	CU_ASSERT_STRING_EQUAL(s->tables[1].condition, "low");
	CU_ASSERT_STRING_EQUAL(s->tables[1].policy->value, "800");
	CU_ASSERT_EQUAL(s->tables[0].first_step, 1);
	CU_ASSERT_EQUAL(s->tables[0].n_steps, 4);
	CU_ASSERT_EQUAL(s->steps[1].match, 4);
	CU_ASSERT_EQUAL(s->steps[4].match, 1);
	CU_ASSERT_EQUAL(s->steps[2].n_sizes, 2);
	CU_ASSERT_EQUAL(s->steps[2].size_bytes[1], MIB(3));
	CU_ASSERT_EQUAL(s->steps[2].time_ns, 33 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(s->steps[2].set, 1);
	CU_ASSERT_EQUAL(s->steps[3].which, SCENARIO_RANDOM);
	CU_ASSERT_EQUAL(s->steps[3].keep, 2);
	CU_ASSERT_TRUE(s->steps[5].sizes_are_range);
	CU_ASSERT_EQUAL(s->steps[5].set, 1);
}

static void nonsense_is_refused_with_line_and_reason(void)
{
	static const struct {
		const char *text, *where, *why;
	} bad[] = {
		{"", "s.conf: ", "no [table"},
		{"[scenario]\nseed = -1\n" TABLE ALLOC, "s.conf:2: seed", ""},
		{"[scenario]\nspeed = 1\n" TABLE ALLOC, "s.conf:2: speed",
		 "no such key"},
		{"[what]\n" TABLE ALLOC, "s.conf:1: [what]", "no such section"},
		{"[node x]\n" TABLE ALLOC, "s.conf:1: [node x]",
		 "no such section"},
		{"[node]\n[node]\n" TABLE ALLOC, "s.conf:2: [node]", "twice"},
		{"[table]\n" ALLOC, "s.conf:1: [table]", "condition"},
		{TABLE, "s.conf:1: [table low]", "no [step alloc]"},
		{TABLE "[step jump]\n", "s.conf:3: [step jump]",
		 "allowed are alloc"},
		{TABLE "[step alloc]\n", "s.conf:3: [step alloc]",
		 "needs the key size"},
		{TABLE "[step alloc]\nsize = 0\n", "s.conf:4: size", "1 to 1T"},
		{TABLE "[step alloc]\nsize = -4K\n", "s.conf:4: size",
		 "1 to 1T"},
		{TABLE "[step alloc]\nsize = 2T\n", "s.conf:4: size",
		 "1 to 1T"},
		{TABLE "[step alloc]\nsize = 8M..4M\n", "s.conf:4: size",
		 "larger"},
		{TABLE "[step alloc]\nsize = 1 2 3 4 5 6 7 8 9\n",
		 "s.conf:4: size", "1 to 8"},
		{TABLE "[step alloc]\nsize = 1..2..3\n", "s.conf:4: size", ""},
		{TABLE "[step alloc]\nsize = 4K\ncount = 1000000000000\n",
		 "s.conf:5: count", ""},
		{TABLE ALLOC "every = soon\n", "s.conf:5: every", "10ms"},
		{TABLE ALLOC "every = 100000s\n", "s.conf:5: every", "a day"},
		{TABLE ALLOC "n = 4\n", "s.conf:5: n", "allowed are size"},
		{TABLE ALLOC "[step end]\n", "s.conf:5: [step end]",
		 "no repeat"},
		{TABLE ALLOC "[step repeat]\ncount = 2\n",
		 "s.conf:5: [step repeat]", "no [step end]"},
		{TABLE "[step repeat]\ncount = 1000000\n[step alloc]\n"
		       "size = 4K\ncount = 1000000\n[step end]\n",
		 "s.conf:5: [step alloc]", "come to more"},
		{TABLE "[step occupy]\nkind = anon\n",
		 "s.conf:3:", "either size or leave"},
		{TABLE "[step pressure]\nkind = fill\n",
		 "s.conf:3:", "needs leave"},
		{TABLE "[step pressure]\nkind = fragment\n",
		 "s.conf:3:", "max_order"},
		{TABLE "[step pressure]\nkind = hard\n", "s.conf:4: kind",
		 "low-memory"},
		{TABLE "[step release-every]\nkind = anon\nn = 0\n",
		 "s.conf:5: n", ""},
		{"\x7f"
		 "ELF\x01\x02",
		 "s.conf:1:", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct scenario *s = NULL;
		struct conf_error err = {{0}};

		CU_ASSERT_EQUAL(parse(bad[i].text, &s, &err), CONF_E_INVALID);
		CU_ASSERT_PTR_NULL(s);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].where));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].why));
	}
}

static void append_times(char *text, const char *piece, int n)
{
	for (int i = 0; i < n; i++)
		strcat(text, piece);
}

static void sizes_of_a_scenario_are_bounded(void)
{
	static char text[64 * 1024];
	struct scenario *s = NULL;
	struct conf_error err;

	strcpy(text, TABLE);
	append_times(text, "[step alloc]\nsize = 1\n", 1001);
	CU_ASSERT_EQUAL(parse(text, &s, &err), CONF_E_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 1000 steps"));
	text[0] = '\0';
	append_times(text, TABLE ALLOC, 65);
	CU_ASSERT_EQUAL(parse(text, &s, &err), CONF_E_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 64 tables"));
	strcpy(text, TABLE);
	append_times(text, "[step repeat]\ncount = 1\n", 5);
	CU_ASSERT_EQUAL(parse(text, &s, &err), CONF_E_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 4 repeats"));
}

static void times_have_units(void)
{
	uint64_t ns = 7;

	CU_ASSERT_EQUAL(scenario_parse_time("250us", &ns), 0);
	CU_ASSERT_EQUAL(ns, 250000);
	CU_ASSERT_EQUAL(scenario_parse_time("0s", &ns), 0);
	CU_ASSERT_EQUAL(ns, 0);
	CU_ASSERT_EQUAL(scenario_parse_time("10", &ns), -EINVAL);
	CU_ASSERT_EQUAL(scenario_parse_time("s", &ns), -EINVAL);
	CU_ASSERT_EQUAL(scenario_parse_time("1m", &ns), -EINVAL);
	CU_ASSERT_EQUAL(scenario_parse_time("18446744073709551615s", &ns),
			-ERANGE);
	CU_ASSERT_EQUAL(scenario_parse_time("111111111111111111111111111s",
					    &ns),
			-ERANGE);
	CU_ASSERT_EQUAL(ns, 0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a whole scenario is read", a_whole_scenario_is_read},
		{"nonsense is refused with line and reason",
		 nonsense_is_refused_with_line_and_reason},
		{"sizes of a scenario are bounded",
		 sizes_of_a_scenario_are_bounded},
		{"times have units", times_have_units},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "scenario", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
