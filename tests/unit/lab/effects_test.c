/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "lab/fixture.h"
#include "mm/cost.h"

/*
 * The model has to follow what a scenario says. Two tables of the shipped
 * order-4 scenario are run as they are, then with half of every cost, with a
 * fifth less and more free memory, and with buffers of half the size; direction
 * and size of each effect are asserted. A model that knew the scenario would
 * give the same figures again.
 */

#define MEMORY_MARK "# Order 4 is plentiful"
#define SEED        1

static struct lab_results base;

/* The text from @from up to before @to is left out; frees @text. */
static char *without(char *text, const char *from, const char *to)
{
	char *begin = strstr(text, from), *end;

	T_REQUIRE(begin);
	end = to ? strstr(begin + 1, to) : begin + strlen(begin);
	T_REQUIRE(end);
	memmove(begin, end, strlen(end) + 1);
	return text;
}

/* enough-order4 8,4,0 and the first set of low-memory 8,4,0. */
static char *two_tables(void)
{
	char *text = scenario_text("order4-reclaim"), *last = NULL;

	text = without(text, "[table enough-order4]\npolicy = 8,0,0",
		       "[table low-memory]\npolicy = 8,4,0");
	text = without(text, "[table low-memory]\npolicy = 8,0,0", NULL);
	for (char *at = text; (at = strstr(at, "[step alloc]")); at++)
		last = at;
	T_REQUIRE(last);
	*last = '\0';
	return text;
}

static void prepare(void)
{
	if (!base.n_tables)
		play_text(&base, two_tables(), SEED);
}

static int teardown(void)
{
	lab_results_fini(&base);
	return 0;
}

static void expect_ratio(uint64_t value, uint64_t of, unsigned int min_percent,
			 unsigned int max_percent)
{
	if (value * 100 < of * min_percent || value * 100 > of * max_percent)
		printf("\n    %llu is %.0f %% of %llu, not %u to %u ",
		       (unsigned long long)value,
		       100.0 * (double)value / (double)of,
		       (unsigned long long)of, min_percent, max_percent);
	CU_ASSERT_TRUE(value * 100 >= of * min_percent);
	CU_ASSERT_TRUE(value * 100 <= of * max_percent);
}

static struct lab_summary enough(const struct lab_results *results)
{
	return summary_of(results, "enough-order4", "8,4,0", 1);
}

static struct lab_summary low(const struct lab_results *results)
{
	return summary_of(results, "low-memory", "8,4,0", 1);
}

static void write_half_profile(char path[])
{
	struct cost_profile costs;
	struct conf_error err;
	FILE *f;
	int fd;

	T_REQUIRE(lab_profile(&costs, "arm64-phone", NULL, &err) == 0);
	cost_profile_scale(&costs, 1, 2);
	fd = mkstemp(path);
	T_REQUIRE(fd >= 0);
	f = fdopen(fd, "w");
	T_REQUIRE(f);
	fprintf(f, "[cost]\n");
	for (unsigned int i = 0; i < COST_COUNT; i++) {
		uint64_t ps = cost_value_ps(&costs, i);

		fprintf(f, "%s = %llu.%03llu\n", cost_name(i),
			(unsigned long long)(ps / 1000),
			(unsigned long long)(ps % 1000));
	}
	T_REQUIRE(fclose(f) == 0);
}

static void half_the_costs_take_half_the_time(void)
{
	struct lab_results results = {0};
	char path[] = "/tmp/dmaheap-half-XXXXXX";
	char line[64];

	write_half_profile(path);
	(void)snprintf(line, sizeof(line), "profile = %s", path);
	play_text(&results,
		  replaced(two_tables(), "profile = arm64-phone", line), SEED);
	(void)unlink(path);
	expect_ratio(enough(&results).median_ns, enough(&base).median_ns, 49,
		     51);
	/* kswapd gets less done beside it, so not exactly half */
	expect_ratio(low(&results).sum_ns, low(&base).sum_ns, 40, 70);
	CU_ASSERT_EQUAL(enough(&results).blocks[4], enough(&base).blocks[4]);
	lab_results_fini(&results);
}

/* The two tables after one step more; @percent is what is free then. */
static void expect_after_step(const char *step, unsigned int percent,
			      unsigned int min_stall_percent,
			      unsigned int max_stall_percent)
{
	struct lab_results results = {0};
	char text[128];

	(void)snprintf(text, sizeof(text), "%s\n" MEMORY_MARK, step);
	play_text(&results, replaced(two_tables(), MEMORY_MARK, text), SEED);
	expect_ratio(results.tables[1].free_before_bytes,
		     base.tables[1].free_before_bytes, percent - 2,
		     percent + 2);
	expect_ratio(low(&results).stall_ns, low(&base).stall_ns,
		     min_stall_percent, max_stall_percent);
	/* where order 4 is plentiful nothing changes */
	expect_ratio(enough(&results).sum_ns, enough(&base).sum_ns, 99, 101);
	lab_results_fini(&results);
}

static void with_less_free_memory_stalls_grow(void)
{
	expect_after_step("[step occupy]\nkind = kernel\nsize = 80M\n", 80, 110,
			  250);
}

static void with_more_free_memory_stalls_shrink(void)
{
	expect_after_step("[step vacate]\nkind = anon\nsize = 80M\n", 120, 30,
			  90);
}

static void half_the_size_takes_half_the_time_and_blocks(void)
{
	struct lab_results results = {0};

	play_text(&results, replaced(two_tables(), "size = 10M", "size = 5M"),
		  SEED);
	CU_ASSERT_EQUAL(enough(&results).blocks[4] * 2,
			enough(&base).blocks[4]);
	CU_ASSERT_EQUAL(low(&results).blocks[4] * 2, low(&base).blocks[4]);
	expect_ratio(enough(&results).median_ns, enough(&base).median_ns, 48,
		     53);
	/* less than half: the first blocks are the easiest to make */
	expect_ratio(low(&results).stall_ns, low(&base).stall_ns, 15, 60);
	lab_results_fini(&results);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"half the costs take half the time",
		 half_the_costs_take_half_the_time},
		{"with less free memory stalls grow",
		 with_less_free_memory_stalls_grow},
		{"with more free memory stalls shrink",
		 with_more_free_memory_stalls_shrink},
		{"half the size takes half the time and blocks",
		 half_the_size_takes_half_the_time_and_blocks},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "effects",
		 .pCleanupFunc = teardown,
		 .pSetUpFunc = prepare,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
