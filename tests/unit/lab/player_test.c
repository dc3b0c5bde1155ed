/* SPDX-License-Identifier: MIT */
#include "lab/fixture.h"
#include "lab/output.h"

static const struct lab_overrides none;

static int play(const char *text, struct lab_results *results,
		const struct lab_overrides *overrides, struct conf_error *err)
{
	struct scenario *scenario = NULL;
	int r;

	*results = (struct lab_results){0};
	*err = (struct conf_error){{0}};
	r = scenario_parse(&scenario, "s.conf", text, strlen(text), err);
	if (!r)
		r = lab_play(results, scenario, "s", "s.conf", overrides, err);
	scenario = scenario_free(scenario);
	return r;
}

static void steps_are_done_in_order_and_time_passes(void)
{
	static const char text[] =
		"[node]\nsize = 64M\n[table t]\npolicy = 840-high\n"
		"pool.limit = 0\n"
		"[step alloc]\nsize = 1M 64K\ncount = 3\nevery = 10ms\n"
		"[step sleep]\ntime = 1s\n"
		"[step repeat]\ncount = 2\n"
		"[step alloc]\nsize = 4K\n"
		"[step free]\nkeep = 1\n[step end]\n";
	struct lab_results results;
	const struct lab_table *t;
	struct conf_error err;

	CU_ASSERT_EQUAL(play(text, &results, &none, &err), 0);
	T_REQUIRE(results.n_tables == 1);
	t = &results.tables[0];
	T_REQUIRE(t->n_rows == 5);
	CU_ASSERT_EQUAL(t->rows[0].len_bytes, MIB(1));
	CU_ASSERT_EQUAL(t->rows[1].len_bytes, KIB(64));
	CU_ASSERT_EQUAL(t->rows[2].len_bytes, MIB(1));
	CU_ASSERT_EQUAL(t->rows[1].start_ns, 10 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(t->rows[3].start_ns, NSEC_PER_SEC + 30 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(t->rows[3].set, 2);
	CU_ASSERT_EQUAL(t->rows[4].n, 2);
	CU_ASSERT_EQUAL(lab_table_n_sets(t), 2);
	CU_ASSERT_EQUAL(t->heap.buffers, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(t->buddyinfo_before, "Node 0, zone"));
	lab_results_fini(&results);
}

static void what_fails_is_a_row_too(void)
{
	static const char text[] =
		"[node]\nsize = 32M\noccupants = kernel:50%\n"
		"[table t]\npolicy = 840-high\n"
		"[step alloc]\nsize = 1M 24M\ncount = 2\n";
	_cleanup_(strbuf_finip) struct strbuf tsv = STRBUF_INIT;
	struct lab_results results;
	struct lab_summary sum;
	struct conf_error err;

	CU_ASSERT_EQUAL(play(text, &results, &none, &err), 0);
	T_REQUIRE(results.n_tables == 1);
	T_REQUIRE(lab_summarise(&results.tables[0], 0, &sum) == 0);
	CU_ASSERT_EQUAL(sum.n, 2);
	CU_ASSERT_EQUAL(sum.n_failed, 1);
	CU_ASSERT_EQUAL(sum.bytes, MIB(1));
	output_tsv(&results, &tsv);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(strbuf_string(&tsv), "# failed: t 840-high set 1 n 2"));
	lab_results_fini(&results);
}

static void random_sizes_stay_in_their_range_and_follow_the_seed(void)
{
	static const char text[] =
		"[node]\nsize = 256M\n[table t]\npolicy = 840-high\n"
		"[step repeat]\ncount = 200\n"
		"[step alloc]\nsize = 5K..3M\n"
		"[step free]\nwhich = random\nkeep = 5\n[step end]\n";
	const struct lab_overrides seed_2 = {.has_seed = true, .seed = 2};
	struct lab_results a, b, c;
	struct conf_error err;
	size_t differ = 0;

	CU_ASSERT_EQUAL(play(text, &a, &none, &err), 0);
	CU_ASSERT_EQUAL(play(text, &b, &none, &err), 0);
	CU_ASSERT_EQUAL(play(text, &c, &seed_2, &err), 0);
	T_REQUIRE(a.tables[0].n_rows == 200 && c.tables[0].n_rows == 200);
	for (size_t i = 0; i < 200; i++) {
		const struct lab_row *row = &a.tables[0].rows[i];

		CU_ASSERT_TRUE(row->len_bytes >= KIB(8) &&
			       row->len_bytes <= MIB(3));
		CU_ASSERT_EQUAL(memcmp(row, &b.tables[0].rows[i], sizeof(*row)),
				0);
		differ += row->len_bytes != c.tables[0].rows[i].len_bytes;
	}
	CU_ASSERT_TRUE(differ > 100);
	lab_results_fini(&a);
	lab_results_fini(&b);
	lab_results_fini(&c);
}

static void policies_and_the_node_can_be_replaced(void)
{
	static const char text[] =
		"[node]\nsize = 64M\n[table t]\npolicy = 840-high 800\n"
		"[step alloc]\nsize = 10M\ncount = 6\n";
	const char *const policies[] = {"0-only"};
	const struct lab_overrides overrides = {
		.policies = policies,
		.n_policies = 1,
		.node_dir = "phone-fragmented",
	};
	struct lab_results results;
	struct conf_error err;

	CU_ASSERT_EQUAL(play(text, &results, &none, &err), 0);
	CU_ASSERT_EQUAL(results.n_tables, 2);
	CU_ASSERT_STRING_EQUAL(results.tables[1].policy, "800");
	lab_results_fini(&results);
	CU_ASSERT_EQUAL(play(text, &results, &overrides, &err), 0);
	T_REQUIRE(results.n_tables == 1);
	CU_ASSERT_EQUAL(results.tables[0].rows[0].composition[0], 2560);
	CU_ASSERT_TRUE(results.tables[0].node_bytes > GIB(7));
	lab_results_fini(&results);
}

static void the_fragmented_phone_falls_to_order_0(void)
{
	static const char text[] =
		"[node]\nsnapshot = phone-fragmented\n[table t]\n"
		"policy = 840-high\n[step alloc]\nsize = 10M\ncount = 16\n";
	struct lab_results results;
	const struct lab_row *rows;
	struct conf_error err;

	CU_ASSERT_EQUAL(play(text, &results, &none, &err), 0);
	T_REQUIRE(results.n_tables == 1);
	rows = results.tables[0].rows;
	CU_ASSERT_TRUE(rows[0].composition[8] > 0);
	CU_ASSERT_EQUAL(rows[15].composition[8], 0);
	CU_ASSERT_EQUAL(rows[15].composition[0], 2560);
	lab_results_fini(&results);
}

static void every_shipped_scenario_can_be_read(void *ctx, const char *name)
{
	struct scenario *scenario = NULL;
	struct conf_error err = {{0}};
	char *text = scenario_text(name);

	++*(unsigned int *)ctx;
	CU_ASSERT_EQUAL(scenario_parse(&scenario, name, text, strlen(text),
				       &err),
			0);
	CU_ASSERT_STRING_EQUAL(err.text, "");
	scenario = scenario_free(scenario);
	free(text);
}

static void shipped_scenarios_are_there(void)
{
	unsigned int n = 0;

	(void)lab_list("scenarios", ".conf", every_shipped_scenario_can_be_read,
		       &n);
	CU_ASSERT_TRUE(n >= 19);
}

static void nonsense_is_refused_by_file_line_and_reason(void)
{
#define ALLOC "[table t]\n[step alloc]\nsize = 4K\n"
	static const struct {
		const char *text, *where, *why;
	} bad[] = {
		{ALLOC, "s.conf: [node]", "size or snapshot"},
		{"[node]\nsize = 1K\n" ALLOC, "s.conf:2: size", ""},
		{"[node]\nsize = -5\n" ALLOC, "s.conf:2: size", ""},
		{"[node]\nspeed = 5\n" ALLOC, "s.conf:2: speed", "no such key"},
		{"[node]\nsize = 1G\noccupants = cats:5%\n" ALLOC,
		 "s.conf: [node]", "cats"},
		{"[node]\nsize = 1G\nprofile = pentium\n" ALLOC, "pentium",
		 "no such cost profile"},
		{"[node]\nsnapshot = moon\n" ALLOC, "s.conf:2: snapshot",
		 "neither a shipped"},
		{"[node]\nsize = 1G\n[table t]\npolicy = 850\n[step alloc]\n"
		 "size = 4K\n",
		 "s.conf:3: [table t]", "850"},
		{"[node]\nsize = 1G\n[table t]\ngfp.4 = X\n[step alloc]\n"
		 "size = 4K\n",
		 "s.conf:4: gfp.4", "\"X\""},
		{"[node]\nsize = 1G\n[table t]\nshape = X\n[step alloc]\n"
		 "size = 4K\n",
		 "s.conf:4: shape", "no such key"},
		{"[node]\nsize = 1G\n[step vacate]\nkind = dust\nsize = "
		 "4K\n" ALLOC,
		 "s.conf:4: kind", "mlocked"},
		{"[node]\nsize = 1G\n[step convert]\nfrom = anon\nto = "
		 "dust\n" ALLOC,
		 "s.conf:5: to", "mlocked"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct lab_results results;
		struct conf_error err;

		CU_ASSERT_EQUAL(play(bad[i].text, &results, &none, &err),
				CONF_E_INVALID);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].where));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].why));
		lab_results_fini(&results);
	}
}

static void refill_works_between_the_allocations(void)
{
	static const char text[] =
		"[node]\nsize = 256M\n[table t]\npolicy = 840-high\n"
		"pool.refill = on\n"
		"[step alloc]\nsize = 4K\n[step sleep]\ntime = 1s\n"
		"[step alloc]\nsize = 8M\n";
	struct lab_results results;
	struct conf_error err;

	CU_ASSERT_EQUAL(play(text, &results, &none, &err), 0);
	T_REQUIRE(results.n_tables == 1);
	CU_ASSERT_EQUAL(results.tables[0].heap.pool[8].hits, 8);
	lab_results_fini(&results);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"steps are done in order and time passes",
		 steps_are_done_in_order_and_time_passes},
		{"what fails is a row too", what_fails_is_a_row_too},
		{"random sizes stay in their range and follow the seed",
		 random_sizes_stay_in_their_range_and_follow_the_seed},
		{"policies and the node can be replaced",
		 policies_and_the_node_can_be_replaced},
		{"the fragmented phone falls to order 0",
		 the_fragmented_phone_falls_to_order_0},
		{"shipped scenarios are there", shipped_scenarios_are_there},
		{"nonsense is refused by file, line and reason",
		 nonsense_is_refused_by_file_line_and_reason},
		{"refill works between the allocations",
		 refill_works_between_the_allocations},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "player", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
