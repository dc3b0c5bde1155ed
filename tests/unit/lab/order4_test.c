/* SPDX-License-Identifier: MIT */
#include "lab/fixture.h"

/*
 * The shipped scenario order4-reclaim beside the tables of the discussion
 * (tests/data/order4-reclaim.tsv, read here), with two seeds.
 */

struct source_set {
	const char *condition;
	const char *policy;
	uint32_t set;
	uint64_t min_us;
	uint64_t max_us;
	uint64_t sum8;
};

static struct source_set source[] = {
	{"enough-order4", "8,4,0", 1, 0, 0, 0},
	{"enough-order4", "8,0,0", 1, 0, 0, 0},
	{"low-memory", "8,4,0", 2, 0, 0, 0},
	{"low-memory", "8,0,0", 1, 0, 0, 0},
	{"low-memory", "8,0,0", 2, 0, 0, 0},
};

/* One is enough for what sanitizers look for: they make the runs slow. */
#ifdef LAB_SANITIZED
static const uint64_t seeds[] = {1};
#else
static const uint64_t seeds[] = {1, 1234567};
#endif
static struct lab_results runs[ARRAY_SIZE(seeds)];

static void read_line(const char *line)
{
	char condition[32], policy[16];
	unsigned int set, n, us, o8;

	if (sscanf(line, "%31s %15s %u %u %u %u", condition, policy, &set, &n,
		   &us, &o8) != 6)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(source); i++) {
		struct source_set *s = &source[i];

		if (strcmp(s->condition, condition) ||
		    strcmp(s->policy, policy) || s->set != set)
			continue;
		s->min_us = s->min_us ? MIN(s->min_us, (uint64_t)us) : us;
		s->max_us = MAX(s->max_us, (uint64_t)us);
		s->sum8 += o8;
	}
}

/* Before every test; the runs are made once. */
static void prepare(void)
{
	char line[256];
	FILE *f;

	if (runs[0].n_tables)
		return;
	f = fopen(TEST_DATA_DIR "/order4-reclaim.tsv", "re");
	T_REQUIRE(f);
	while (fgets(line, sizeof(line), f)) {
		if (line[0] != '#')
			read_line(line);
	}
	fclose(f);
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		play_text(&runs[i], scenario_text("order4-reclaim"), seeds[i]);
}

static int teardown(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		lab_results_fini(&runs[i]);
	return 0;
}

static void tables_differ_in_memory_and_policy_only(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		CU_ASSERT_EQUAL(runs[i].n_tables, 5);
		for (size_t t = 0; t < runs[i].n_tables; t++) {
			const struct lab_table *table = &runs[i].tables[t];

			CU_ASSERT_STRING_EQUAL(table->profile, "arm64-phone");
			CU_ASSERT_EQUAL(table->seed, seeds[i]);
			CU_ASSERT_EQUAL(table->node_bytes,
					runs[i].tables[0].node_bytes);
			for (size_t r = 0; r < table->n_rows; r++)
				CU_ASSERT_EQUAL(table->rows[r].len_bytes,
						MIB(10));
		}
	}
}

static void the_stalling_set_is_within_a_fifth(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		struct lab_summary sum =
			summary_of(&runs[i], "low-memory", "8,4,0", 1);
		const struct lab_table *table =
			find_table(&runs[i], "low-memory", "8,4,0");

		CU_ASSERT_TRUE(sum.median_ns >= 59680 * NSEC_PER_USEC);
		CU_ASSERT_TRUE(sum.median_ns <= 89520 * NSEC_PER_USEC);
		CU_ASSERT_TRUE(table->rows[0].latency_ns * 10 <= sum.median_ns);
		CU_ASSERT_EQUAL(table->rows[0].stall_ns, 0);
		/* spread from the state of memory alone */
		CU_ASSERT_TRUE(sum.max_ns >= sum.median_ns * 11 / 10);
	}
}

static void fast_sets_lie_within_the_sources_own_range(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		for (size_t s = 0; s < ARRAY_SIZE(source); s++) {
			struct lab_summary sum =
				summary_of(&runs[i], source[s].condition,
					   source[s].policy, source[s].set);

			CU_ASSERT_TRUE(source[s].max_us > 0);
			CU_ASSERT_EQUAL(sum.n, 16);
			CU_ASSERT_EQUAL(sum.n_failed, 0);
			CU_ASSERT_TRUE(sum.median_ns >=
				       source[s].min_us * 1000);
			CU_ASSERT_TRUE(sum.median_ns <=
				       source[s].max_us * 1000);
		}
	}
}

static void stalls_cost_thirty_times_what_any_fast_set_does(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		uint64_t stalled =
			summary_of(&runs[i], "low-memory", "8,4,0", 1)
				.median_ns;

		for (size_t s = 0; s < ARRAY_SIZE(source); s++)
			CU_ASSERT_TRUE(
				stalled >=
				30 * summary_of(&runs[i], source[s].condition,
						source[s].policy, source[s].set)
						.median_ns);
	}
}

static void without_reclaim_no_buffer_stalls(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		const struct lab_table *table =
			find_table(&runs[i], "low-memory-high", "8,4,0");

		CU_ASSERT_EQUAL(table->n_rows, 16);
		for (size_t r = 0; r < table->n_rows; r++) {
			CU_ASSERT_TRUE(table->rows[r].latency_ns >=
				       500 * NSEC_PER_USEC);
			CU_ASSERT_TRUE(table->rows[r].latency_ns <=
				       3 * NSEC_PER_MSEC);
		}
	}
}

static void expect_order_4_alone(const struct lab_table *table)
{
	for (size_t r = 0; r < table->n_rows; r++) {
		if (table->rows[r].set == 1)
			CU_ASSERT_EQUAL(table->rows[r].composition[4], 160);
	}
}

static void expect_fall_to_order_0(const struct lab_table *table)
{
	uint32_t n_in_set = 0, set = 0;

	for (size_t r = 0; r < table->n_rows; r++) {
		const struct lab_row *row = &table->rows[r];

		n_in_set = row->set == set ? n_in_set + 1 : 1;
		set = row->set;
		CU_ASSERT_EQUAL(row->composition[4], 0);
		if (n_in_set > 3)
			CU_ASSERT_EQUAL(row->composition[0], 2560);
	}
}

static void compositions_are_those_of_the_source(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		struct lab_summary second =
			summary_of(&runs[i], "low-memory", "8,4,0", 2);

		expect_order_4_alone(
			find_table(&runs[i], "enough-order4", "8,4,0"));
		expect_order_4_alone(
			find_table(&runs[i], "low-memory", "8,4,0"));
		expect_fall_to_order_0(
			find_table(&runs[i], "enough-order4", "8,0,0"));
		expect_fall_to_order_0(
			find_table(&runs[i], "low-memory", "8,0,0"));
		CU_ASSERT_EQUAL(source[1].sum8, 22);
		CU_ASSERT_EQUAL(summary_of(&runs[i], "enough-order4", "8,0,0",
					   1)
					.blocks[8],
				source[1].sum8);
		/* mostly order 4, some order 8, nothing else */
		CU_ASSERT_TRUE(second.blocks[8] > 0);
		CU_ASSERT_TRUE(second.blocks[4] > second.blocks[8] * 16);
		CU_ASSERT_EQUAL(second.blocks[0], 0);
	}
}

static void the_stall_is_compaction_by_the_kernels_names(void)
{
	const struct lab_table *stalled =
		find_table(&runs[0], "low-memory", "8,4,0");
	const struct lab_table *high =
		find_table(&runs[0], "low-memory-high", "8,4,0");
	uint64_t stalls = 0, migrated = 0, high_stalls = 0;

	for (unsigned int i = 0; i < node_vmstat_count(); i++) {
		if (!strcmp(node_vmstat_name(i), "compact_stall")) {
			stalls = stalled->vmstat[i];
			high_stalls = high->vmstat[i];
		} else if (!strcmp(node_vmstat_name(i), "pgmigrate_success")) {
			migrated = stalled->vmstat[i];
		}
	}
	CU_ASSERT_TRUE(stalls > 15);
	CU_ASSERT_TRUE(migrated > 10000);
	CU_ASSERT_EQUAL(high_stalls, 0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"tables differ in memory and policy only",
		 tables_differ_in_memory_and_policy_only},
		{"the stalling set is within a fifth",
		 the_stalling_set_is_within_a_fifth},
		{"fast sets lie within the source's own range",
		 fast_sets_lie_within_the_sources_own_range},
		{"stalls cost thirty times what any fast set does",
		 stalls_cost_thirty_times_what_any_fast_set_does},
		{"without reclaim no buffer stalls",
		 without_reclaim_no_buffer_stalls},
		{"compositions are those of the source",
		 compositions_are_those_of_the_source},
		{"the stall is compaction by the kernel's names",
		 the_stall_is_compaction_by_the_kernels_names},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "order4",
		 .pCleanupFunc = teardown,
		 .pSetUpFunc = prepare,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
