/* SPDX-License-Identifier: MIT */
/* The small values of base: list, rng, histogram, clock, err. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <dmaheap/stats.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/histogram.h"
#include "base/list.h"
#include "base/rng.h"
#include "support/test.h"

static void a_list_keeps_order_and_lets_go(void)
{
	struct list_node head, a, b, c;
	struct list_node *want[] = {&a, &b, &c};
	size_t i = 0;

	list_init(&head);
	CU_ASSERT_PTR_NULL(list_first(&head));
	list_add_tail(&head, &b);
	list_add_tail(&head, &c);
	list_add_head(&head, &a);
	list_for_each(pos, &head) CU_ASSERT_PTR_EQUAL(pos, want[i++]);
	CU_ASSERT_EQUAL(i, 3);
	list_remove(&b);
	list_remove(&b); /* once more is harmless */
	CU_ASSERT_PTR_EQUAL(a.next, &c);
	list_for_each_safe(pos, &head) list_remove(pos);
	CU_ASSERT_TRUE(list_is_empty(&head));
}

static void random_numbers_are_the_same_everywhere(void)
{
	/* From the published definitions of splitmix64 and xoshiro256**,
	 * computed independently of this code. */
	static const uint64_t want[] = {UINT64_C(0x99ec5f36cb75f2b4),
					UINT64_C(0xbf6e1f784956452a),
					UINT64_C(0x1a5f849d4933e6e0),
					UINT64_C(0x6aa594f1262d2d2c)};
	struct rng rng;

	rng_seed(&rng, 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		CU_ASSERT_EQUAL(rng_next(&rng), want[i]);
}

static void random_numbers_below_a_bound_are_uniform(void)
{
	unsigned int seen[10] = {0};
	struct rng rng;

	rng_seed(&rng, 1);
	for (int i = 0; i < 100000; i++)
		seen[rng_below(&rng, 10)]++;
	for (size_t i = 0; i < 10; i++)
		CU_ASSERT(seen[i] > 9500 && seen[i] < 10500);
	CU_ASSERT_EQUAL(rng_below(&rng, 1), 0);
	/* A bound over half of the range refuses half of the numbers. */
	for (int i = 0; i < 1000; i++)
		CU_ASSERT(rng_below(&rng, (UINT64_C(1) << 63) + 1) <=
			  UINT64_C(1) << 63);
}

static void histogram_buckets_are_those_of_the_stats_segment(void)
{
	CU_ASSERT_EQUAL(HISTOGRAM_BUCKETS, DMAHEAP_HISTOGRAM_BUCKETS);
	CU_ASSERT_EQUAL(sizeof(struct histogram),
			sizeof(struct dmaheap_histogram));
	CU_ASSERT_EQUAL(offsetof(struct histogram, bucket),
			offsetof(struct dmaheap_histogram, bucket));
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		CU_ASSERT_EQUAL(histogram_lower(i), dmaheap_histogram_lower(i));
		CU_ASSERT_EQUAL(histogram_bucket(histogram_lower(i)), i);
		if (i)
			CU_ASSERT_EQUAL(histogram_bucket(histogram_lower(i) -
							 1),
					i - 1);
	}
	CU_ASSERT_EQUAL(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void quantiles_are_within_a_sixteenth(void)
{
	static struct histogram h, other;
	static const unsigned int permille[] = {0, 1, 500, 900, 990, 999, 1000};

	CU_ASSERT_EQUAL(histogram_quantile(&h, 500), 0);
	for (uint64_t v = 1; v <= 100000; v++)
		histogram_add(v % 2 ? &h : &other, v);
	histogram_merge(&h, &other);
	CU_ASSERT_EQUAL(h.count, 100000);
	CU_ASSERT_EQUAL(h.sum, UINT64_C(100000) * 100001 / 2);
	CU_ASSERT_EQUAL(h.max, 100000);
	for (size_t i = 0; i < ARRAY_SIZE(permille); i++) {
		uint64_t exact = MAX(100u * permille[i], 1u);
		uint64_t got = histogram_quantile(&h, permille[i]);

		CU_ASSERT(got >= exact && got <= exact + exact / 16);
	}
	CU_ASSERT_EQUAL(histogram_quantile(&h, 1000), 100000);
}

static void quantiles_of_huge_values_are_the_maximum(void)
{
	static struct histogram h;

	histogram_add(&h, UINT64_C(1) << 50);
	CU_ASSERT_EQUAL(histogram_quantile(&h, 500), UINT64_C(1) << 50);
}

static void clocks_go_forward(void)
{
	uint64_t before = clock_now_ns(), cpu = clock_thread_cpu_ns();

	while (clock_now_ns() - before < NSEC_PER_MSEC)
		;
	CU_ASSERT(clock_thread_cpu_ns() > cpu);
	CU_ASSERT(clock_realtime_ns() > UINT64_C(1700000000) * NSEC_PER_SEC);
}

static void unhandled_outcomes_become_errors(void)
{
	CU_ASSERT_EQUAL(err_raise(-ENOMEM), -ENOMEM);
	CU_ASSERT_EQUAL(err_trace(3), 3);
	CU_ASSERT_EQUAL(err_fold(0), 0);
	CU_ASSERT_EQUAL(err_fold(-EIO), -EIO);
	CU_ASSERT_EQUAL(err_fold(2), -ENOTRECOVERABLE);
}

static void the_trace_names_function_and_reason(void)
{
	char text[512];
	int pipe_fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	T_REQUIRE(saved >= 0 && pipe(pipe_fds) == 0);
	T_REQUIRE(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
	err_set_trace(true);
	(void)err_raise(-EBUSY);
	(void)err_fold(1);
	err_set_trace(false);
	(void)err_raise(-EBUSY);
	T_REQUIRE(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	close(pipe_fds[1]);
	n = read(pipe_fds[0], text, sizeof(text) - 1);
	close(pipe_fds[0]);
	T_REQUIRE(n > 0);
	text[n] = '\0';
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "raised: the_trace_names"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Device or resource busy\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "outcome\n"));
	CU_ASSERT_PTR_NULL(strstr(strstr(text, "raised") + 1, "raised"));
}

static void closing_an_fd_keeps_errno(void)
{
	int fd = dup(STDOUT_FILENO);

	errno = ENOENT;
	CU_ASSERT_EQUAL(fd_close(fd), -1);
	CU_ASSERT_EQUAL(fd_close(fd), -1); /* EBADF, kept to itself */
	CU_ASSERT_EQUAL(fd_close(-1), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
}

static void ownership_is_taken_once(void)
{
	int x = 5, *p = &x, fd = 7;

	CU_ASSERT_PTR_EQUAL(TAKE_PTR(p), &x);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT_EQUAL(TAKE_FD(fd), 7);
	CU_ASSERT_EQUAL(fd, -1);
	CU_ASSERT_EQUAL(align_up(4097, 4096), 8192);
	CU_ASSERT_EQUAL(align_down(4097, 4096), 4096);
	CU_ASSERT_FALSE(is_power_of_2(0));
	CU_ASSERT_TRUE(is_power_of_2(UINT64_C(1) << 63));
	CU_ASSERT_FALSE(is_power_of_2(6));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a list keeps order and lets go",
		 a_list_keeps_order_and_lets_go},
		{"random numbers are the same everywhere",
		 random_numbers_are_the_same_everywhere},
		{"random numbers below a bound are uniform",
		 random_numbers_below_a_bound_are_uniform},
		{"histogram buckets are those of the stats segment",
		 histogram_buckets_are_those_of_the_stats_segment},
		{"quantiles are within a sixteenth",
		 quantiles_are_within_a_sixteenth},
		{"quantiles of huge values are the maximum",
		 quantiles_of_huge_values_are_the_maximum},
		{"clocks go forward", clocks_go_forward},
		{"unhandled outcomes become errors",
		 unhandled_outcomes_become_errors},
		{"the trace names function and reason",
		 the_trace_names_function_and_reason},
		{"closing an fd keeps errno", closing_an_fd_keeps_errno},
		{"ownership is taken once", ownership_is_taken_once},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "base_plain", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
