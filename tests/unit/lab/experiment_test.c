/* SPDX-License-Identifier: MIT */
/*
 * The experiments: their counts, and that each closing sentence follows from
 * the figures above it. What is measured is given here, not measured.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/files.h"
#include "experiment_support.h"
#include "lab/experiment.h"
#include "lab/experiment_kvcalloc.h"
#include "lab/experiment_objtrack.h"
#include "lab/experiment_order4.h"
#include "lab/experiment_stringbuf.h"
#include "lab/experiment_threadcache.h"
#include "lab/live_daemon.h"
#include "support/test.h"

/* A file of tests/data, its lines one after the other. */
static char *data_of(const char *name)
{
	char path[512];
	char *bytes = NULL;

	(void)snprintf(path, sizeof(path), "%s/%s", TEST_DATA_DIR, name);
	T_REQUIRE(conf_read_file(path, 1 << 20, &bytes, NULL) == 0);
	return bytes;
}

static void a_string_growing_exactly_moves_each_time(void)
{
	const struct stringbuf_params params = {.n_strings = 2,
						.n_appends = 1000,
						.n_rounds = 1};
	struct stringbuf_result r;
	const struct stringbuf_cell *exact, *geometric, *classes;

	T_REQUIRE(stringbuf_measure(&params, &r) == 0);
	exact = &r.cell[STRINGBUF_PLAIN][1][STRINGBUF_APPEND];
	CU_ASSERT_EQUAL(exact->reallocations, 1000);
	CU_ASSERT_EQUAL(exact->bytes_copied, 500499); /* 2 + 3 + ... + 1000 */
	classes = &r.cell[STRINGBUF_CLASSES][1][STRINGBUF_APPEND];
	CU_ASSERT_EQUAL(classes->reallocations, 1000);
	CU_ASSERT(classes->bytes_copied < 2000);
	for (unsigned int m = 0; m < STRINGBUF_MEMORIES; m++) {
		geometric = &r.cell[m][0][STRINGBUF_APPEND];
		CU_ASSERT(geometric->reallocations < 20);
		CU_ASSERT_EQUAL(r.cell[m][1][STRINGBUF_NO_COPY].bytes_copied,
				0);
		CU_ASSERT_EQUAL(r.cell[m][1][STRINGBUF_REALLOC].reallocations,
				1000);
	}
}

static void stringbuf_concludes_from_its_table(void)
{
	const struct stringbuf_params params = {.n_strings = 1,
						.n_appends = 10,
						.n_rounds = 1};
	struct stringbuf_result r;

	T_REQUIRE(stringbuf_measure(&params, &r) == 0);
	r.cell[STRINGBUF_CLASSES][1][STRINGBUF_APPEND].ns_per_append = 100;
	r.cell[STRINGBUF_PLAIN][1][STRINGBUF_APPEND].ns_per_append = 50;
	r.cell[STRINGBUF_PLAIN][1][STRINGBUF_REALLOC].ns_per_append = 30;
	r.cell[STRINGBUF_PLAIN][1][STRINGBUF_NO_COPY].ns_per_append = 20;
	r.cell[STRINGBUF_CLASSES][1][STRINGBUF_REALLOC].ns_per_append = 40;
	RENDER(stringbuf_report, &r);
	SAYS("100 ns with size classes and 50 ns without");
	SAYS("copying every time wins");
	SAYS("as it does here");
	SHOWS("profile this host, dmaheap " DMAHEAP_VERSION);
	SHOWS("1491 ns");

	r.cell[STRINGBUF_PLAIN][1][STRINGBUF_APPEND].ns_per_append = 150;
	r.cell[STRINGBUF_CLASSES][1][STRINGBUF_REALLOC].ns_per_append = 5;
	RENDER(stringbuf_report, &r);
	SAYS("copying every time loses");
	SAYS("which it does not here");

	r.cell[STRINGBUF_PLAIN][1][STRINGBUF_APPEND].ns_per_append = 104;
	RENDER(stringbuf_report, &r);
	SAYS("copying every time neither wins nor loses");
}

static void the_thread_cache_counts_as_the_source_does(void)
{
	struct threadcache_result r = {
		.params = {.seed = 1, .n_peak = 403, .n_quiet = 194}};
	uint64_t slabs = 0, objects = 0;

	T_REQUIRE(threadcache_count(&r) == 0);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_OWN].per_slab, 13);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_OWN].peak_slabs, 31);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_OWN].quiet_active, 194);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_OWN].quiet_total, 403);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_OWN].quiet_bytes, 126976);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_OWN].best_slabs, 15);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_ALIGNED].per_slab, 12);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_ALIGNED].peak_slabs, 34);
	CU_ASSERT_EQUAL(r.cache[THREADCACHE_CLASS].per_slab, 16);
	CU_ASSERT_EQUAL(r.many[0].stride_bytes, 512);
	CU_ASSERT_EQUAL(r.many[1].peak_slabs, 385);
	for (unsigned int i = 1; i < THREADCACHE_OCCUPANCY; i++) {
		slabs += r.cache[THREADCACHE_OWN].occupancy[i];
		objects += i * r.cache[THREADCACHE_OWN].occupancy[i];
	}
	CU_ASSERT_EQUAL(slabs, r.cache[THREADCACHE_OWN].shrunk_slabs);
	CU_ASSERT_EQUAL(objects, 194);
}

static void the_thread_cache_concludes_from_its_tables(void)
{
	struct threadcache_result r = {
		.params = {.seed = 1, .n_peak = 403, .n_quiet = 194},
		.pair_ns = {30, 40, 20, 10},
		.neighbour_ns = {{1, 30}, {1, 6}},
		.alone_ns = {1, 6},
		.daemon = {{1000, 10}, {1000, 10}},
	};

	T_REQUIRE(threadcache_count(&r) == 0);
	RENDER(threadcache_report, &r);
	SAYS("126976 bytes, more than the 112640");
	SAYS("indeed the fastest");
	SAYS("an atomic one 5.0 times: bouncing lines are real");
	SAYS("1.00 times the CPU time");
	SAYS("no difference to speak of");
	SHOWS("seed 1, profile none, dmaheap " DMAHEAP_VERSION);

	/* Another trace, other times: other sentences. */
	r.params.n_peak = 220;
	r.pair_ns[THREADCACHE_SLAB] = 50;
	r.neighbour_ns[0][1] = 6;
	r.daemon[0].cpu_us = 20;
	T_REQUIRE(threadcache_count(&r) == 0);
	RENDER(threadcache_report, &r);
	SAYS("69632 bytes, not more than the 112640");
	SAYS("not the fastest");
	SAYS("it does not show here");
	SAYS("2.00 times the CPU time with slab caches that it costs with "
	     "malloc: a loss");

	r.pair_ns[THREADCACHE_SLAB] = 31;
	r.neighbour_ns[0][0] = 0; /* one CPU, and no daemon */
	r.daemon[0].per_s = -1;
	(void)snprintf(r.daemon_why_not, sizeof(r.daemon_why_not), "no file");
	RENDER(threadcache_report, &r);
	SAYS("level with the fastest");
	SAYS_NOT("Alignment");
	SAYS_NOT("A request");
	SHOWS("Not measured: no file");
}

static struct kvcalloc_result small_kvcalloc(void)
{
	return (struct kvcalloc_result){
		.params = {.seed = 1,
			   .node_bytes = MIB(64),
			   .n_ops = 40,
			   .n_live = 8,
			   .costs = cost_profile_default(),
			   .profile = "built-in"}};
}

static void without_order_3_only_contiguous_kills(void)
{
	_cleanup_(strbuf_finip) struct strbuf why = STRBUF_INIT;
	struct kvcalloc_result r = small_kvcalloc();

	T_REQUIRE(kvcalloc_run(&r, &why) == 0);
	for (unsigned int i = 0; i < KVCALLOC_PAYLOADS; i++) {
		const struct kvcalloc_cell *c = r.cell[KVCALLOC_STARVED][i];
		const struct kvcalloc_cell *p = r.cell[KVCALLOC_PLENTY][i];

		CU_ASSERT(c[KVCALLOC_CONTIGUOUS].n_oom_kills > 0);
		CU_ASSERT_EQUAL(c[KVCALLOC_KV].n_oom_kills, 0);
		CU_ASSERT_EQUAL(c[KVCALLOC_KV].n_failed, 0);
		CU_ASSERT_EQUAL(c[KVCALLOC_KV].n_contiguous, 0);
		CU_ASSERT_EQUAL(c[KVCALLOC_KV].n_fallback, 40);
		CU_ASSERT_EQUAL(p[KVCALLOC_KV].per_op_ns,
				p[KVCALLOC_CONTIGUOUS].per_op_ns);
		CU_ASSERT_EQUAL(p[KVCALLOC_KV].n_contiguous, 40);
	}
	RENDER(kvcalloc_report, &r);
	SAYS("(at 5 of 5 payloads), kv 0 (at 0)");
	SAYS("ratio is 1.00 to 1.00: kv gains nothing");

	r.cell[KVCALLOC_STARVED][0][KVCALLOC_KV].n_oom_kills = 3;
	r.cell[KVCALLOC_PLENTY][0][KVCALLOC_CONTIGUOUS].per_op_ns *= 2;
	RENDER(kvcalloc_report, &r);
	SAYS("kv 3 (at 1)");
	SAYS("1.00 to 2.00");
}

static void the_sources_ratios_are_those_of_its_data(void)
{
	char *data = data_of("binder-kvcalloc.tsv"), *line = data;
	struct kvcalloc_result r = small_kvcalloc();
	unsigned int n = 0;

	RENDER(kvcalloc_report, &r);
	for (; line; line = strchr(line, '\n')) {
		double payload, kv, kv_cpu, n_kv, score, k;
		char ratio[16];

		line += *line == '\n';
		if (sscanf(line, "%lf %lf %lf %lf %lf %lf", &payload, &kv,
			   &kv_cpu, &n_kv, &score, &k) != 6)
			continue;
		(void)snprintf(ratio, sizeof(ratio), "  %.2f\n", k / kv);
		SHOWS(ratio);
		n++;
	}
	CU_ASSERT_EQUAL(n, 5);
	free(data);
}

static struct objtrack_trace parse_trace(const char *lines, int want)
{
	struct objtrack_trace trace = {0};
	struct conf_error err = {""};
	char bytes[2048];

	(void)snprintf(bytes, sizeof(bytes),
		       "dmaheap-trace 1\nnode size=64M\n%s", lines);
	CU_ASSERT_EQUAL(objtrack_trace_parse(&trace, "t.trace", bytes, &err),
			want);
	(void)snprintf(text, sizeof(text), "%s", err.text);
	return trace;
}

static const char a_life[] =
	"1 alloc id=1 heap=system uid=0 size=1 status=0 blocks=8:2,0:3\n"
	"2 alloc id=2 heap=system uid=0 size=1 status=0 blocks=4:4\n"
	"3 alloc heap=system uid=0 size=1 status=12\n"
	"4 release id=1\n"
	"5 finish id=1 how=park\n"
	"6 finish id=9 how=pool\n"
	"7 take id=1 heap=system uid=0\n";

static void a_trace_gives_buffers_and_blocks(void)
{
	struct objtrack_trace t = parse_trace(a_life, 0);

	/* 1 comes with 5 blocks, 2 with 4, 1 goes, comes again; both go */
	CU_ASSERT_EQUAL(t.n_buffers, 3);
	CU_ASSERT_EQUAL(t.n_objects, 6 + 5 + 6);
	CU_ASSERT_EQUAL(t.n_events, 6);
	CU_ASSERT_TRUE(t.events[2].goes && t.events[2].buffer == 1);
	CU_ASSERT_TRUE(t.events[4].goes && t.events[5].goes);
	objtrack_trace_fini(&t);
}

static void a_trace_with_nonsense_is_refused_by_line(void)
{
	(void)parse_trace("", CONF_E_INVALID);
	SHOWS("t.trace: no allocation in it");
	(void)parse_trace("1 alloc id=1 heap=h uid=0 size=1 status=0 "
			  "blocks=8;2\n",
			  CONF_E_INVALID);
	SHOWS("t.trace:3: ");
	SHOWS("is no composition");
	(void)parse_trace("1 alloc id=99999999 heap=h uid=0 size=1 status=0 "
			  "blocks=8:2\n",
			  CONF_E_INVALID);
	SHOWS("t.trace:3: ");
	(void)parse_trace("1 alloc id=1 heap=h uid=0 size=1 status=0 "
			  "blocks=8:2\n"
			  "2 alloc id=1 heap=h uid=0 size=1 status=0 "
			  "blocks=8:2\n",
			  CONF_E_INVALID);
	SHOWS("lives already");
}

static void more_slots_cost_memory_and_save_calls(void)
{
	struct objtrack_result r = {
		.params = {.n_workers = 2, .slots = {0, 1, 2, 4, 8, 16}},
	};
	char lines[] =
		"1 alloc id=1 heap=h uid=0 size=1 status=0 blocks=0:900\n"
		"2 alloc id=2 heap=h uid=0 size=1 status=0 blocks=0:900\n"
		"200000000 finish id=1 how=pool\n"
		"400000000 finish id=2 how=pool\n";
	struct objtrack_trace t = parse_trace(lines, 0);

	T_REQUIRE(objtrack_replay(&t, &r) == 0);
	CU_ASSERT_EQUAL(r.n_objects, 1802);
	CU_ASSERT(r.point[0].backing_allocs > 0);
	CU_ASSERT_EQUAL(r.point[4].worker_bytes - r.point[3].worker_bytes,
			2560);
	for (unsigned int i = 1; i < OBJTRACK_CURVE; i++)
		CU_ASSERT(r.point[i].backing_frees <=
			  r.point[i - 1].backing_frees);
	objtrack_trace_fini(&t);
}

static void objtrack_concludes_from_its_table(void)
{
	struct objtrack_result r = {
		.params = {.n_workers = 2, .slots = {0, 1, 2, 4, 8, 16}},
		.on_ns = 20,
		.off_ns = 0.5,
		.daemon = {{1000, 10}, {1000, 11}},
	};

	for (unsigned int i = 0; i < OBJTRACK_CURVE; i++)
		r.point[i].slots = r.params.slots[i];
	r.point[3].backing_allocs = 1000;
	r.point[4].backing_allocs = 700;
	r.point[3].backing_frees = 1000;
	r.point[4].backing_frees = 500;
	RENDER(objtrack_report, &r);
	SAYS("save 30.0 % of the backing allocations in the hot path (source: "
	     "22 %) and 50.0 % of the frees (source: 26 %)");
	SAYS("as much as the source saw");
	SAYS("20 ns a transition, off 0.50 ns");
	/* 13 calls of 0.5 ns, and of 20 ns, of 10 us */
	SAYS("Off it is 0.065 % of a request of the daemon, on 2.6 %");
	r.point[4].backing_allocs = 990;
	RENDER(objtrack_report, &r);
	SAYS("save 1.0 %");
	SAYS("no gain to speak of");
}

static void the_order4_source_is_the_data(void)
{
	char *data = data_of("order4-reclaim.tsv"), *line = data;
	uint64_t n[6] = {0}, order4 = 0, max = 0;

	for (; line; line = strchr(line, '\n')) {
		unsigned int set, i, b8, b4, b0;
		unsigned long us;
		char condition[32], policy[16];
		const struct order4_set *s;

		line += *line == '\n';
		if (*line == '#' ||
		    sscanf(line, "%31s %15s %u %u %lu %u %u %u", condition,
			   policy, &set, &i, &us, &b8, &b4, &b0) != 8)
			continue;
		s = order4_source(condition, policy, set);
		T_REQUIRE(s);
		CU_ASSERT(us >= s->min_us && us <= s->max_us);
		if (i == 1)
			CU_ASSERT_EQUAL(us, s->first_us);
		n[us >= s->median_us]++;
		order4 += b4;
		max = MAX(max, us);
	}
	CU_ASSERT_EQUAL(n[0] + n[1], 96);
	CU_ASSERT_EQUAL(n[0], n[1]); /* medians halve */
	CU_ASSERT_EQUAL(order4, 2560 + 2560 + 2336);
	CU_ASSERT_EQUAL(max, order4_source("low-memory", "8,4,0", 1)->max_us);
	CU_ASSERT_PTR_NULL(order4_source("low-memory-high", "8,4,0", 1));
	free(data);
}

static void order4_concludes_from_its_table(void)
{
	struct order4_result r = {
		.seed = 1,
		.profile = "p",
		.n_sets = 4,
		.set =
			{
				{"low-memory", "8,4,0", 1, 16, 0, 1, 60000, 1,
				 90000, 900, 0, 2560, 0},
				{"low-memory", "8,4,0", 2, 16, 0, 1, 700, 1,
				 900, 0, 14, 2336, 0},
				{"low-memory", "8,0,0", 1, 16, 0, 1, 2000, 1,
				 3000, 0, 2, 0, 40448},
				{"low-memory-high", "8,4,0", 1, 16, 0, 1, 1500,
				 600, 2500, 0, 0, 300, 0},
			},
	};

	RENDER(order4_report, &r);
	SAYS("median of 60.0 ms a buffer, 30 times");
	SAYS("is fast again");
	SAYS("takes 1.50 ms (0.60 to 2.50");
	SAYS("no stall is left");
	SHOWS("74624 (584-100701)");
	SHOWS("foreseen, never run");
	r.set[1].median_us = 50000;
	r.set[3].stall_us = 5;
	RENDER(order4_report, &r);
	SAYS("is slow as well");
	SAYS("some stall is left");
	r.n_sets = 3;
	RENDER(order4_report, &r);
	SAYS("lacks a table");
}

static void a_daemon_that_is_not_there_is_said(void)
{
	struct live_daemon_speed speed[2];
	const char *const configs[] = {"", ""};
	char why[200] = "";

	live_daemon_compare("/none/such/dmaheapd", configs, speed, why,
			    sizeof(why));
	CU_ASSERT(speed[0].per_s < 0 && speed[1].per_s < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "/none/such/dmaheapd: "));
}

static int run_main(const char *a, const char *b)
{
	char *argv[] = {(char *)(uintptr_t) "experiment", (char *)(uintptr_t)a,
			(char *)(uintptr_t)b, NULL};
	int saved = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
	int argc = a ? b ? 3 : 2 : 1, r;

	T_REQUIRE(freopen("/dev/null", "w", stdout) &&
		  freopen("/dev/null", "w", stderr));
	r = experiment_main(argc, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	dup2(saved_err, STDERR_FILENO);
	close(saved);
	close(saved_err);
	return r;
}

static void the_verb_has_exit_statuses(void)
{
	CU_ASSERT_EQUAL(run_main(NULL, NULL), 2);
	CU_ASSERT_EQUAL(run_main("--nonsense", "list"), 2);
	CU_ASSERT_EQUAL(run_main("no-such", NULL), 2);
	CU_ASSERT_EQUAL(run_main("list", NULL), 0);
	CU_ASSERT_EQUAL(run_main("--json", "binder-kvcalloc"), 0);
	CU_ASSERT_EQUAL(run_main("--trace=/none", "debugobjects-percpu"), 1);
	CU_ASSERT_PTR_NULL(experiment_get(6));
	CU_ASSERT_STRING_EQUAL(experiment_get(0)->name, "order4-reclaim");
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a string growing exactly moves each time",
		 a_string_growing_exactly_moves_each_time},
		{"stringbuf concludes from its table",
		 stringbuf_concludes_from_its_table},
		{"the thread cache counts as the source does",
		 the_thread_cache_counts_as_the_source_does},
		{"the thread cache concludes from its tables",
		 the_thread_cache_concludes_from_its_tables},
		{"without order 3 only contiguous kills",
		 without_order_3_only_contiguous_kills},
		{"the source's ratios are those of its data",
		 the_sources_ratios_are_those_of_its_data},
		{"a trace gives buffers and blocks",
		 a_trace_gives_buffers_and_blocks},
		{"a trace with nonsense is refused by line",
		 a_trace_with_nonsense_is_refused_by_line},
		{"more slots cost memory and save calls",
		 more_slots_cost_memory_and_save_calls},
		{"objtrack concludes from its table",
		 objtrack_concludes_from_its_table},
		{"the order4 source is the data",
		 the_order4_source_is_the_data},
		{"order4 concludes from its table",
		 order4_concludes_from_its_table},
		{"a daemon that is not there is said",
		 a_daemon_that_is_not_there_is_said},
		{"the verb has exit statuses", the_verb_has_exit_statuses},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "lab_experiment", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
