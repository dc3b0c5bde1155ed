/* SPDX-License-Identifier: MIT */

/*
 * What the model itself costs: one allocation and one free of a block, in this
 * thread's CPU time, the best of many short runs. "pristine" splits a block of
 * order 10 and joins it again each time; "warm" finds a block whose buddy is
 * taken.
 */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mm/node.h"

#define N_PAIRS     20000u
#define N_REPEATS   300u
#define HELD        256u
#define WARM_NS     20u
#define PRISTINE_NS 80u

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static struct node *make(void)
{
	struct node_params params = {.size_bytes = GIB(1), .seed = 1};
	struct node_error err;
	struct node *node;

	if (node_new(&node, &params, &err)) {
		fprintf(stderr, "mm_speed: %s\n", err.text);
		exit(EXIT_FAILURE);
	}
	return node;
}

static uint64_t take(struct node *node, struct node_request *req,
		     unsigned int order)
{
	uint64_t pfn;

	if (node_alloc(node, req, order, GFP_HIGH_ORDER, &pfn)) {
		fprintf(stderr, "mm_speed: no block\n");
		exit(EXIT_FAILURE);
	}
	return pfn;
}

/* Picoseconds of one pair; the best of some repeats. */
static uint64_t measure(struct node *node, unsigned int order)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int r = 0; r < N_REPEATS; r++) {
		struct node_request req = {.start_ns = node_now_ns(node)};
		uint64_t start = now_ns(), spent;

		for (unsigned int i = 0; i < N_PAIRS; i++) {
			uint64_t pfn = take(node, &req, order);

			node_free_block(node, NULL, pfn, order);
		}
		spent = now_ns() - start;
		best = MIN(best, spent * 1000 / N_PAIRS);
	}
	return best;
}

static void report(const char *what, unsigned int order, uint64_t ps,
		   uint64_t limit_ns)
{
	printf("%-8s order %u: %llu.%llu ns a pair, limit %llu: %s\n", what,
	       order, (unsigned long long)ps / 1000,
	       (unsigned long long)ps % 1000 / 100,
	       (unsigned long long)limit_ns,
	       ps <= limit_ns * 1000 ? "within" : "MISSED");
}

int main(void)
{
	static const unsigned int orders[] = {0, 4, 8};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	(void)sched_setaffinity(0, sizeof(cpus), &cpus);
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		struct node *node = make();
		struct node_request req = {0};
		uint64_t held[HELD];

		report("pristine", orders[i], measure(node, orders[i]),
		       PRISTINE_NS);
		/* every second of some neighbours given back: no joining */
		for (unsigned int k = 0; k < HELD; k++)
			held[k] = take(node, &req, orders[i]);
		for (unsigned int k = 0; k < HELD; k += 2)
			node_free_block(node, NULL, held[k], orders[i]);
		report("warm", orders[i], measure(node, orders[i]), WARM_NS);
		if (i == 0)
			printf("metadata: %llu.%03llu bytes a frame, limit "
			       "12\n",
			       (unsigned long long)node_metadata_millibytes(
				       node) /
				       1000,
			       (unsigned long long)node_metadata_millibytes(
				       node) %
				       1000);
		node = node_free(node);
	}
	return EXIT_SUCCESS;
}
