/* SPDX-License-Identifier: MIT */
#include "base/rng.h"
#include "ipc/timer_heap.h"
#include "support/test.h"

#define N 500

static struct loop_timer timers[N];
static struct timer_heap heap;

static void setup(void)
{
	heap = (struct timer_heap){0};
	for (size_t i = 0; i < N; i++)
		timers[i] = (struct loop_timer){0};
}

static void empty_has_no_first(void)
{
	CU_ASSERT_PTR_NULL(timer_heap_first(&heap));
	CU_ASSERT_TRUE(timer_heap_check(&heap));
}

static void first_is_the_earliest(void)
{
	struct rng rng;
	uint64_t last = 0;

	rng_seed(&rng, 1);
	for (size_t i = 0; i < N; i++) {
		timers[i].at_ns = rng_below(&rng, 50);
		timer_heap_insert(&heap, &timers[i]);
	}
	CU_ASSERT_TRUE(timer_heap_check(&heap));
	for (size_t i = 0; i < N; i++) {
		struct loop_timer *t = timer_heap_first(&heap);

		T_REQUIRE(t != NULL);
		CU_ASSERT(t->at_ns >= last);
		last = t->at_ns;
		timer_heap_remove(&heap, t);
	}
	CU_ASSERT_PTR_NULL(timer_heap_first(&heap));
}

/* Against the plain way: look at them all. */
static uint64_t earliest(const bool in_heap[N])
{
	uint64_t min = UINT64_MAX;

	for (size_t i = 0; i < N; i++)
		if (in_heap[i] && timers[i].at_ns < min)
			min = timers[i].at_ns;
	return min;
}

static void random_insertions_and_removals_keep_the_order(void)
{
	bool in_heap[N] = {false};
	struct rng rng;
	bool good = true;

	rng_seed(&rng, 2);
	for (int step = 0; step < 20000 && good; step++) {
		size_t i = rng_below(&rng, N);
		const struct loop_timer *first;

		if (in_heap[i]) {
			timer_heap_remove(&heap, &timers[i]);
		} else {
			timers[i].at_ns = rng_below(&rng, 1000);
			timer_heap_insert(&heap, &timers[i]);
		}
		in_heap[i] = !in_heap[i];
		if (step % 16)
			continue;
		first = timer_heap_first(&heap);
		good = timer_heap_check(&heap) &&
		       (first ? first->at_ns : UINT64_MAX) == earliest(in_heap);
	}
	CU_ASSERT_TRUE(good);
}

static void check_sees_a_wrong_order(void)
{
	for (size_t i = 0; i < 10; i++) {
		timers[i].at_ns = i;
		timer_heap_insert(&heap, &timers[i]);
	}
	CU_ASSERT_TRUE(timer_heap_check(&heap));
	timers[0].at_ns = 100;
	CU_ASSERT_FALSE(timer_heap_check(&heap));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"empty has no first", empty_has_no_first},
		{"first is the earliest", first_is_the_earliest},
		{"random insertions and removals keep the order",
		 random_insertions_and_removals_keep_the_order},
		{"check sees a wrong order", check_sees_a_wrong_order},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "timer_heap", .pSetUpFunc = setup, .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
