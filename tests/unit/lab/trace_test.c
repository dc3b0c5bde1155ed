/* SPDX-License-Identifier: MIT */
#include "lab/trace.h"

#include <stdio.h>
#include <string.h>

#include "lab/replay.h"
#include "mm/node.h"
#include "support/test.h"

#define HEAD                                                                   \
	"dmaheap-trace 1\n# a comment\n\n"                                     \
	"node size=256M seed=3\n"                                              \
	"0 heap name=system orders=8,4,0 gfp.4=HIGH_ORDER\n"

static const struct lab_overrides none;

static int replay(const char *text, struct lab_table *table,
		  struct replay_counts *counts,
		  const struct lab_overrides *overrides, struct conf_error *err)
{
	static char copy[16384];

	T_REQUIRE(strlen(text) < sizeof(copy));
	strcpy(copy, text);
	*table = (struct lab_table){0};
	*err = (struct conf_error){{0}};
	return replay_run(table, counts, "t.trace", copy, overrides, err);
}

static void a_trace_is_run_again(void)
{
	static const char text[] = HEAD
		"1000 alloc id=1 heap=system uid=7 size=2097152 status=0 "
		"blocks=8:2\n"
		"2000 alloc id=2 heap=system uid=7 size=4096 blocks=0:1\n"
		"3000 release id=1\n3000 finish id=1 how=park\n"
		"4000 take id=1 heap=system uid=7\n"
		"5000 release id=1\n5000 finish id=1 how=pool\n"
		"5000 alloc id=3 heap=system uid=7 size=1048576 blocks=8:1\n"
		"6000 shrink heap=system to=0\n"
		"6000 policy heap=system orders=4,0\n"
		"7000 refill heap=system\n"
		"7000 pressure kind=fragment max_order=3\n"
		"7000 pressure kind=fill leave=67108864\n"
		"7000 pressure kind=release\n"
		"8000 alloc id=4 heap=system uid=7 size=131072 blocks=4:2\n"
		"9000 alloc heap=system uid=7 size=999999999 status=12\n";
	struct replay_counts counts;
	struct lab_table table;
	struct conf_error err;

	CU_ASSERT_EQUAL(replay(text, &table, &counts, &none, &err), 0);
	CU_ASSERT_STRING_EQUAL(err.text, "");
	CU_ASSERT_EQUAL(counts.n_allocs, 5);
	CU_ASSERT_EQUAL(counts.n_compared, 5);
	CU_ASSERT_EQUAL(counts.n_same, 5);
	CU_ASSERT_EQUAL(counts.n_unknown, 0);
	CU_ASSERT_EQUAL(counts.n_taken, 1);
	CU_ASSERT_EQUAL(counts.n_missing, 0);
	CU_ASSERT_TRUE(table.free_before_bytes > 0);
	CU_ASSERT_TRUE(table.free_before_bytes <= table.node_bytes);
	CU_ASSERT_EQUAL(table.n_rows, 5);
	CU_ASSERT_EQUAL(table.rows[2].composition[8], 1);
	CU_ASSERT_EQUAL(table.rows[3].composition[4], 2);
	CU_ASSERT_TRUE(table.rows[4].failed);
	CU_ASSERT_EQUAL(table.heap.parked_buffers, 0);
	CU_ASSERT_EQUAL(table.heap.pool[8].hits, 3);
	lab_table_fini(&table);
}

static void another_policy_shows_what_would_have_been(void)
{
	static const char text[] = HEAD
		"1000 alloc id=1 heap=system uid=7 size=2097152 blocks=8:2\n"
		"2000 release id=1\n2000 finish id=1 how=node\n"
		"2000 release id=9\n";
	const char *const policies[] = {"0-only"};
	const struct lab_overrides overrides = {.policies = policies,
						.n_policies = 1};
	struct replay_counts counts;
	struct lab_table table;
	struct conf_error err;

	CU_ASSERT_EQUAL(replay(text, &table, &counts, &overrides, &err), 0);
	CU_ASSERT_EQUAL(counts.n_same, 0);
	CU_ASSERT_EQUAL(counts.n_unknown, 1);
	T_REQUIRE(table.n_rows == 1);
	CU_ASSERT_EQUAL(table.rows[0].composition[0], 512);
	CU_ASSERT_STRING_EQUAL(table.policy, "0-only");
	lab_table_fini(&table);
}

static void what_was_parked_before_the_trace_is_missing(void)
{
	static const char text[] = HEAD
		"1000 take id=3 heap=system uid=7\n"
		"2000 alloc id=5 heap=system uid=7 size=999999999 status=0\n"
		"3000 release id=5\n3000 finish id=5 how=park\n"
		"4000 take id=5 heap=system uid=7\n"
		"5000 take id=4 heap=system uid=7\n"
		"6000 alloc id=6 heap=system uid=7 size=4096\n";
	struct replay_counts counts;
	struct lab_table table;
	struct conf_error err;

	CU_ASSERT_EQUAL(replay(text, &table, &counts, &none, &err), 0);
	CU_ASSERT_EQUAL(counts.n_missing, 2);
	/* 5 is in the trace; it is the replay that did not get it. */
	CU_ASSERT_EQUAL(counts.n_unknown, 5);
	CU_ASSERT_EQUAL(counts.n_taken, 0);
	CU_ASSERT_EQUAL(counts.n_allocs, 2);
	CU_ASSERT_EQUAL(counts.n_compared, 1);
	CU_ASSERT_EQUAL(counts.n_same, 0);
	lab_table_fini(&table);
}

static void what_the_record_could_not_get_is_given_back(void)
{
	static const char text[] = HEAD
		"1000 alloc heap=system uid=7 size=209715200 status=12\n"
		"2000 alloc id=2 heap=system uid=7 size=209715200 status=0\n";
	struct replay_counts counts;
	struct lab_table table;
	struct conf_error err;

	CU_ASSERT_EQUAL(replay(text, &table, &counts, &none, &err), 0);
	CU_ASSERT_EQUAL(counts.n_same, 1);
	CU_ASSERT_FALSE(table.rows[0].failed);
	CU_ASSERT_FALSE(table.rows[1].failed);
	lab_table_fini(&table);
}

static void nonsense_is_refused_with_line_and_reason(void)
{
	static const struct {
		const char *text, *where, *why;
	} bad[] = {
		{"", "t.trace:1: ", "not a trace"},
		{"dmaheap-trace 2\n", "t.trace:1: ", "not a trace"},
		{"\x7f"
		 "ELF",
		 "t.trace:1: ", "not a trace"},
		{"dmaheap-trace 1\n", "t.trace:", "ends before"},
		{"dmaheap-trace 1\n0 heap name=a\n", "t.trace:2: ", "\"node\""},
		{"dmaheap-trace 1\nnode size=-1\n", "t.trace:2: size", ""},
		{"dmaheap-trace 1\nnode size=1G size=2G\n", "t.trace:2: node",
		 "twice"},
		{"dmaheap-trace 1\nnode speed=1\n", "t.trace:2: speed",
		 "no such key"},
		{"dmaheap-trace 1\nnode\n", "t.trace", "size or snapshot"},
		{HEAD "x heap name=b\n", "t.trace:6: ", "not a time"},
		{HEAD "9223372036854775807 heap name=b\n",
		 "t.trace:6: ", "not a time"},
		{HEAD "5 heap name=b\n4 heap name=c\n",
		 "t.trace:7: ", "the time falls"},
		{HEAD "5\n", "t.trace:6: ", "no event"},
		{HEAD "5 explode\n", "t.trace:6: explode", "no such event"},
		{HEAD "5 heap\n", "t.trace:6: heap", "needs the key name"},
		{HEAD "5 heap name=system\n", "t.trace:6: name", "twice"},
		{HEAD "5 heap name=x orders=4,8,0\n", "t.trace:6: orders",
		 "rise"},
		{HEAD "5 alloc heap=system uid=1\n", "t.trace:6: alloc",
		 "needs the key size"},
		{HEAD "5 alloc heap=other uid=1 size=1\n", "t.trace:6: heap",
		 "no such heap"},
		{HEAD "5 alloc heap=system uid=1 size=0\n", "t.trace:6: alloc",
		 "size is 0"},
		{HEAD "5 alloc heap=system uid=x size=1\n", "t.trace:6: uid",
		 ""},
		{HEAD "5 alloc heap=system uid=1 size=1 x=1\n",
		 "t.trace:6: alloc", "no such key: x"},
		{HEAD "5 alloc heap=system uid=1 size\n", "t.trace:6: alloc",
		 "not KEY=VALUE"},
		{HEAD "5 alloc id=1 heap=system uid=1 size=1\n"
		      "5 alloc id=1 heap=system uid=1 size=1\n",
		 "t.trace:7: id", "still there"},
		{HEAD "5 finish id=1 how=burn\n", "t.trace:6: how", "park"},
		{HEAD "5 release\n", "t.trace:6: release", "needs the key id"},
		{HEAD "5 pressure kind=fill\n", "t.trace:6: pressure",
		 "needs the key leave"},
		{HEAD "5 pressure kind=fragment max_order=11\n",
		 "t.trace:6: max_order", ""},
		{HEAD "5 shrink heap=system\n", "t.trace:6: shrink",
		 "needs the key to"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct replay_counts counts;
		struct lab_table table;
		struct conf_error err;

		CU_ASSERT_EQUAL(replay(bad[i].text, &table, &counts, &none,
				       &err),
				CONF_E_INVALID);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].where));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].why));
		lab_table_fini(&table);
	}
}

static void many_ids_come_and_go(void)
{
	static char text[512 * 1024], line[128];
	struct replay_counts counts;
	struct lab_table table = {0};
	struct conf_error err = {{0}};
	size_t len = strlen(HEAD);

	memcpy(text, HEAD, len);
	for (int i = 1; i <= 3000; i++) {
		int n = snprintf(line, sizeof(line),
				 "%d alloc id=%d heap=system uid=1 "
				 "size=4096\n",
				 i, i);

		memcpy(text + len, line, (size_t)n);
		len += (size_t)n;
		if (i <= 100)
			continue;
		n = snprintf(line, sizeof(line),
			     "%d release id=%d\n%d finish id=%d how=pool\n", i,
			     i - 100, i, i - 100);
		memcpy(text + len, line, (size_t)n);
		len += (size_t)n;
		T_REQUIRE(len + sizeof(line) < sizeof(text));
	}
	text[len] = '\0';
	CU_ASSERT_EQUAL(replay_run(&table, &counts, "t.trace", text, &none,
				   &err),
			0);
	CU_ASSERT_EQUAL(counts.n_allocs, 3000);
	CU_ASSERT_EQUAL(counts.n_unknown, 0);
	CU_ASSERT_EQUAL(table.heap.buffers, 100);
	lab_table_fini(&table);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a trace is run again", a_trace_is_run_again},
		{"another policy shows what would have been",
		 another_policy_shows_what_would_have_been},
		{"what was parked before the trace is missing",
		 what_was_parked_before_the_trace_is_missing},
		{"what the record could not get is given back",
		 what_the_record_could_not_get_is_given_back},
		{"nonsense is refused with line and reason",
		 nonsense_is_refused_with_line_and_reason},
		{"many ids come and go", many_ids_come_and_go},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "trace", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
