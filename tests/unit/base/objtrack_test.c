/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/objtrack.h"
#include "base/rng.h"
#include "support/fail_malloc.h"
#include "support/test.h"

enum { BUFFER, CONNECTION, N_KINDS };

static const char *const kinds[] = {"buffer", "connection"};

/* The last report, and how many there were. */
static char text[2048];
static struct objtrack_report last;
static unsigned int n_reports;

static void on_report(void *ctx, const struct objtrack_report *report)
{
	(void)ctx;
	n_reports++;
	last = *report;
	(void)snprintf(text, sizeof(text), "%s", report->text);
}

static struct objtrack *make(unsigned int slots, unsigned int n_workers)
{
	struct objtrack_params params = {
		.enabled = true,
		.slots_in_batches = slots,
		.n_workers = n_workers,
		.kinds = kinds,
		.n_kinds = N_KINDS,
		.report = on_report,
	};
	struct objtrack *track = NULL;

	n_reports = 0;
	text[0] = '\0';
	T_REQUIRE(objtrack_new(&track, &params) == 0);
	return track;
}

static void a_whole_life_is_no_misuse(void)
{
	struct objtrack *t = make(4, 1);

	CU_ASSERT_EQUAL(objtrack_state_of(t, BUFFER, 7), OBJTRACK_NONE);
	CU_ASSERT_TRUE(objtrack_init(t, 0, BUFFER, 7));
	CU_ASSERT_EQUAL(objtrack_state_of(t, BUFFER, 7), OBJTRACK_INITIALISED);
	CU_ASSERT_TRUE(objtrack_init(t, 0, CONNECTION, 7)); /* another kind */
	CU_ASSERT_TRUE(objtrack_activate(t, 0, BUFFER, 7));
	CU_ASSERT_EQUAL(objtrack_state_of(t, BUFFER, 7), OBJTRACK_ACTIVE);
	CU_ASSERT_TRUE(objtrack_use(t, 0, BUFFER, 7));
	CU_ASSERT_TRUE(objtrack_deactivate(t, 0, BUFFER, 7));
	CU_ASSERT_TRUE(objtrack_activate(t, 0, BUFFER, 7));
	CU_ASSERT_TRUE(objtrack_destroy(t, 0, BUFFER, 7));
	CU_ASSERT_EQUAL(objtrack_state_of(t, BUFFER, 7), OBJTRACK_DESTROYED);
	CU_ASSERT_TRUE(objtrack_forget(t, 0, BUFFER, 7));
	CU_ASSERT_EQUAL(objtrack_state_of(t, BUFFER, 7), OBJTRACK_NONE);
	CU_ASSERT_TRUE(objtrack_init(t, 0, BUFFER, 7)); /* a new life */
	CU_ASSERT_TRUE(objtrack_forget(t, 0, BUFFER, 7));
	CU_ASSERT_TRUE(objtrack_forget(t, 0, CONNECTION, 7));
	CU_ASSERT_TRUE(objtrack_check(t));
	objtrack_free(t);
	CU_ASSERT_EQUAL(n_reports, 0);
}

static void a_double_free_is_told_with_both_histories(void)
{
	struct objtrack *t = make(4, 2);

	(void)objtrack_init(t, 0, BUFFER, 0x10);
	(void)objtrack_activate(t, 0, BUFFER, 0x10);
	(void)objtrack_destroy(t, 0, BUFFER, 0x10);
	(void)objtrack_forget(t, 0, BUFFER, 0x10);
	CU_ASSERT_FALSE(objtrack_forget(t, 1, BUFFER, 0x10));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_DOUBLE_FREE);
	CU_ASSERT_STRING_EQUAL(last.kind, "buffer");
	CU_ASSERT_EQUAL(last.key, 0x10);
	CU_ASSERT_PTR_EQUAL(strstr(text, "double free: buffer 0x10: init in "),
			    text);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text,
		       "free in a_double_free_is_told_with_both_histories() at "
		       "objtrack_test.c:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " by worker 0; now free in "));
	CU_ASSERT_PTR_EQUAL(strstr(text, " by worker 1"),
			    text + strlen(text) - strlen(" by worker 1"));
	objtrack_free(t);
	CU_ASSERT_EQUAL(n_reports, 1);
}

static void a_stale_handle_is_caught(void)
{
	struct objtrack *t = make(4, 1);

	(void)objtrack_init(t, 0, BUFFER, 1);
	(void)objtrack_activate(t, 0, BUFFER, 1);
	(void)objtrack_deactivate(t, 0, BUFFER, 1);
	(void)objtrack_forget(t, 0, BUFFER, 1);
	CU_ASSERT_FALSE(objtrack_use(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_USE_AFTER_FREE);
	CU_ASSERT_EQUAL(last.state, OBJTRACK_NONE);
	objtrack_free(t);
}

static void use_after_destroy_is_caught(void)
{
	struct objtrack *t = make(4, 1);

	(void)objtrack_init(t, 0, CONNECTION, 1);
	(void)objtrack_activate(t, 0, CONNECTION, 1);
	(void)objtrack_destroy(t, 0, CONNECTION, 1);
	CU_ASSERT_FALSE(objtrack_use(t, 0, CONNECTION, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_USE_AFTER_DESTROY);
	CU_ASSERT_EQUAL(last.state, OBJTRACK_DESTROYED);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "use after destroy: connection"));
	(void)objtrack_destroy(t, 0, CONNECTION, 1); /* as the caller sees it */
	CU_ASSERT_FALSE(objtrack_destroy(t, 0, CONNECTION, 1));
	CU_ASSERT_FALSE(objtrack_init(t, 0, CONNECTION, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_USE_AFTER_DESTROY);
	CU_ASSERT_TRUE(objtrack_forget(t, 0, CONNECTION, 1));
	objtrack_free(t);
}

static void leaks_are_told_at_shutdown(void)
{
	struct objtrack *t = make(4, 1);

	(void)objtrack_init(t, 0, BUFFER, 5);
	(void)objtrack_init(t, 0, BUFFER, 6);
	(void)objtrack_forget(t, 0, BUFFER, 6);
	objtrack_free(t);
	CU_ASSERT_EQUAL(n_reports, 1);
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_LEAK);
	CU_ASSERT_EQUAL(last.key, 5);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "leak: buffer 0x5: init in leaks_"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "; now shutdown"));
}

static void the_other_misuses_have_their_names(void)
{
	struct objtrack *t = make(4, 1);

	CU_ASSERT_FALSE(objtrack_use(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_UNKNOWN_OBJECT);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "never seen before"));
	CU_ASSERT_FALSE(objtrack_forget(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_UNKNOWN_OBJECT);
	(void)objtrack_init(t, 0, BUFFER, 1);
	CU_ASSERT_FALSE(objtrack_init(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_DOUBLE_INIT);
	CU_ASSERT_FALSE(objtrack_use(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_WRONG_STATE);
	/* After a misuse the caller's view holds: it is active now. */
	CU_ASSERT_FALSE(objtrack_activate(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_WRONG_STATE);
	CU_ASSERT_FALSE(objtrack_forget(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(last.misuse, OBJTRACK_FREE_OF_ACTIVE);
	CU_ASSERT_TRUE(objtrack_check(t));
	objtrack_free(t);
	CU_ASSERT_EQUAL(n_reports, 6);
}

static void a_long_history_keeps_its_end(void)
{
	struct objtrack *t = make(4, 1);

	(void)objtrack_init(t, 0, BUFFER, 1);
	for (int i = 0; i < 300; i++) {
		(void)objtrack_activate(t, 0, BUFFER, 1);
		(void)objtrack_deactivate(t, 0, BUFFER, 1);
	}
	(void)objtrack_destroy(t, 0, BUFFER, 1);
	CU_ASSERT_FALSE(objtrack_use(t, 0, BUFFER, 1));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " earlier steps, activate in "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, ", destroy in "));
	CU_ASSERT_PTR_NOT_NULL(strstr(strstr(text, ", destroy in "), "; now"));
	objtrack_free(t);
}

static void off_it_does_nothing(void)
{
	struct objtrack_params params = {.n_workers = 1};
	struct objtrack_stats stats;
	struct objtrack *t = (void *)&params;

	T_REQUIRE(objtrack_new(&t, &params) == 0);
	CU_ASSERT_PTR_NULL(t);
	CU_ASSERT_FALSE(objtrack_is_enabled(t));
	CU_ASSERT_TRUE(objtrack_forget(t, 0, BUFFER, 1));
	CU_ASSERT_EQUAL(objtrack_trim(t), 0);
	CU_ASSERT_EQUAL(objtrack_state_of(t, BUFFER, 1), OBJTRACK_NONE);
	objtrack_get_stats(t, &stats);
	CU_ASSERT_EQUAL(stats.transitions, 0);
	CU_ASSERT_TRUE(objtrack_check(t));
	CU_ASSERT_PTR_NULL(objtrack_free(t));
}

static void bad_parameters_are_refused(void)
{
	static const struct objtrack_params bad[] = {
		{.n_workers = 0},
		{.n_workers = OBJTRACK_WORKERS_MAX + 1},
		{.n_workers = 1, .n_kinds = OBJTRACK_KINDS_MAX + 1},
		{.n_workers = 1, .slots_in_batches = OBJTRACK_SLOTS_MAX + 1},
	};
	struct objtrack *t = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CU_ASSERT_EQUAL(objtrack_new(&t, &bad[i]), -EINVAL);
}

static void fill(struct objtrack *t, uint64_t from, uint64_t to)
{
	for (uint64_t key = from; key < to; key++)
		CU_ASSERT_TRUE(objtrack_init(t, 0, BUFFER, key));
}

static void clear(struct objtrack *t, uint64_t from, uint64_t to)
{
	for (uint64_t key = from; key < to; key++)
		CU_ASSERT_TRUE(objtrack_forget(t, 0, BUFFER, key));
}

static struct objtrack_stats stats_of(struct objtrack *t)
{
	struct objtrack_stats stats;

	objtrack_get_stats(t, &stats);
	return stats;
}

static void the_pool_is_refilled_below_a_quarter(void)
{
	struct objtrack *t = make(4, 1);

	/* 64 batches are there; at the 50th taken, 15 would be left. */
	fill(t, 0, 49 * 16);
	CU_ASSERT_EQUAL(stats_of(t).backing_allocs, 0);
	CU_ASSERT_EQUAL(stats_of(t).pool_records, 15 * 16);
	fill(t, 49 * 16, 49 * 16 + 1);
	CU_ASSERT_EQUAL(stats_of(t).backing_allocs, 16);
	fill(t, 49 * 16 + 1, 2000);
	CU_ASSERT_EQUAL(stats_of(t).tracked, 2000);
	CU_ASSERT_TRUE(objtrack_check(t));

	/* Freed: 4 batches stay with the worker, 64 in the pool, the rest
	 * waits, and only trim gives it back. */
	clear(t, 0, 2000);
	CU_ASSERT_EQUAL(stats_of(t).worker_records, 4 * 16);
	CU_ASSERT_EQUAL(stats_of(t).pool_records, 64 * 16);
	CU_ASSERT_EQUAL(stats_of(t).backing_frees, 0);
	CU_ASSERT(stats_of(t).surplus_records > 0);
	CU_ASSERT_EQUAL(objtrack_trim(t), stats_of(t).backing_frees);
	CU_ASSERT_EQUAL(stats_of(t).surplus_records, 0);
	CU_ASSERT_TRUE(objtrack_check(t));
	CU_ASSERT_EQUAL(objtrack_trim(t), 0);
	objtrack_free(t);
}

static void surplus_is_used_before_new_memory(void)
{
	struct objtrack *t = make(0, 1);
	uint64_t before;

	fill(t, 0, 3000);
	clear(t, 0, 3000);
	before = stats_of(t).backing_allocs;
	CU_ASSERT(stats_of(t).surplus_records > 1000);
	fill(t, 0, 3000);
	CU_ASSERT_EQUAL(stats_of(t).backing_allocs, before);
	clear(t, 0, 3000);
	objtrack_free(t);
}

static void slots_cost_what_they_say(void)
{
	struct objtrack *four = make(4, 1), *eight = make(8, 1);

	CU_ASSERT_EQUAL(stats_of(eight).worker_bytes_max -
				stats_of(four).worker_bytes_max,
			2560);
	fill(eight, 0, 500);
	clear(eight, 0, 500);
	CU_ASSERT_EQUAL(stats_of(eight).worker_records, 8 * 16);
	objtrack_free(four);
	objtrack_free(eight);
}

static void random_steps_keep_every_invariant(void)
{
	static const unsigned int slots[] = {0, 1, 4, 8, 16};

	for (size_t s = 0; s < ARRAY_SIZE(slots); s++) {
		struct objtrack *t = make(slots[s], 3);
		bool known[2000] = {false};
		struct rng rng;

		rng_seed(&rng, s);
		for (int step = 0; step < 20000; step++) {
			uint64_t key = rng_below(&rng, 2000);
			unsigned int worker = (unsigned int)rng_below(&rng, 3);

			CU_ASSERT_TRUE(known[key] ? objtrack_forget(t, worker,
								    BUFFER, key)
						  : objtrack_init(t, worker,
								  BUFFER, key));
			known[key] = !known[key];
			if (rng_below(&rng, 200) == 0)
				(void)objtrack_trim(t);
			if (step % 100 == 0)
				CU_ASSERT_TRUE(objtrack_check(t));
		}
		CU_ASSERT_EQUAL(stats_of(t).transitions, 20000);
		CU_ASSERT_EQUAL(n_reports, 0);
		for (uint64_t key = 0; key < 2000; key++)
			if (known[key])
				CU_ASSERT_TRUE(
					objtrack_forget(t, 0, BUFFER, key));
		objtrack_free(t);
	}
}

static void without_records_it_turns_itself_off(void)
{
	for (unsigned int slots = 0; slots <= 4; slots += 4) {
		struct objtrack *t = make(slots, 1);
		uint64_t key = 0;

		fail_malloc_at(1); /* each later one succeeds: so all fail */
		while (objtrack_init(t, 0, BUFFER, key++) && key < 100000)
			fail_malloc_at(1);
		fail_malloc_at(0);
		CU_ASSERT_EQUAL(last.misuse, OBJTRACK_OUT_OF_MEMORY);
		CU_ASSERT_EQUAL(n_reports, 1);
		CU_ASSERT_FALSE(objtrack_is_enabled(t));
		CU_ASSERT(key > 64 * 16); /* what was there was used first */
		CU_ASSERT_TRUE(objtrack_check(t));
		objtrack_free(t); /* and no leak is claimed */
		CU_ASSERT_EQUAL(n_reports, 1);
	}
}

static void each_allocation_may_fail(void)
{
	struct objtrack_params params = {.enabled = true,
					 .n_workers = 2,
					 .slots_in_batches = 4,
					 .kinds = kinds,
					 .n_kinds = N_KINDS};
	struct objtrack *t = NULL;

	FAIL_MALLOC_EACH({
		int r = objtrack_new(&t, &params);

		CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
		t = objtrack_free(t);
	});
}

struct worker {
	struct objtrack *track;
	unsigned int number;
	pthread_t thread;
};

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t key = i % 300 + 1000 * w->number;

		if (i / 300 % 2 == 0)
			(void)objtrack_init(w->track, w->number, BUFFER, key);
		else
			(void)objtrack_forget(w->track, w->number, BUFFER, key);
	}
	return NULL;
}

static void workers_track_at_once(void)
{
	struct objtrack *t = make(4, 3);
	struct worker workers[3];

	for (unsigned int i = 0; i < 3; i++) {
		workers[i] = (struct worker){.track = t, .number = i};
		T_REQUIRE(pthread_create(&workers[i].thread, NULL, worker_main,
					 &workers[i]) == 0);
	}
	for (int i = 0; i < 50; i++)
		(void)stats_of(t);
	for (int i = 0; i < 3; i++)
		pthread_join(workers[i].thread, NULL);
	CU_ASSERT_EQUAL(n_reports, 0);
	CU_ASSERT_EQUAL(stats_of(t).transitions, 30000);
	CU_ASSERT_TRUE(objtrack_check(t));
	objtrack_free(t); /* 10000 % 600 = 400: 200 live each, as leaks */
	CU_ASSERT_EQUAL(n_reports, 3 * 200);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a whole life is no misuse", a_whole_life_is_no_misuse},
		{"a double free is told with both histories",
		 a_double_free_is_told_with_both_histories},
		{"a stale handle is caught", a_stale_handle_is_caught},
		{"use after destroy is caught", use_after_destroy_is_caught},
		{"leaks are told at shutdown", leaks_are_told_at_shutdown},
		{"the other misuses have their names",
		 the_other_misuses_have_their_names},
		{"a long history keeps its end", a_long_history_keeps_its_end},
		{"off or missing it does nothing",
		 off_it_does_nothing},
		{"bad parameters are refused", bad_parameters_are_refused},
		{"the pool is refilled below a quarter",
		 the_pool_is_refilled_below_a_quarter},
		{"surplus is used before new memory",
		 surplus_is_used_before_new_memory},
		{"slots cost what they say", slots_cost_what_they_say},
		{"random steps keep every invariant",
		 random_steps_keep_every_invariant},
		{"without records it turns itself off",
		 without_records_it_turns_itself_off},
		{"each allocation may fail", each_allocation_may_fail},
		{"workers track at once", workers_track_at_once},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "base_objtrack", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
