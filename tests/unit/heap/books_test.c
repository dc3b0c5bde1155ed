/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/rng.h"
#include "heap/fixture.h"

/*
 * Random use of three heaps on one node, all invariants checked after every
 * step, and no block in two places.
 */

#define N_HEAPS 3u
#define N_LIVE  48u
#define N_STEPS 3000u

struct books {
	struct fixture f;
	struct rng rng;
	struct heap *heaps[N_HEAPS];
	struct buffer *live[N_LIVE];
	uint64_t n_allocs, n_failed, n_taken;
};

static struct heap *any_heap(struct books *b)
{
	return b->heaps[rng_below(&b->rng, N_HEAPS)];
}

static uint64_t any_size(struct books *b)
{
	uint64_t shift = rng_below(&b->rng, 13);

	return 1 + rng_below(&b->rng, KIB(4) << shift);
}

static void do_alloc(struct books *b, size_t slot)
{
	struct heap *heap = any_heap(b);
	struct heap_request req = {
		.uid = (uint32_t)rng_below(&b->rng, 2),
		/* few sizes, so that parked buffers are found */
		.len_bytes = rng_below(&b->rng, 2) ? MIB(1) : any_size(b),
		.start_ns = node_now_ns(b->f.node) + rng_below(&b->rng, 50000),
	};
	struct buffer *parked = heap_find_parked(heap, req.uid, req.len_bytes);

	b->n_allocs++;
	if (parked && rng_below(&b->rng, 4)) {
		heap_take_parked(heap, parked);
		b->live[slot] = parked;
		b->n_taken++;
		return;
	}
	if (heap_alloc(heap, &req, &b->live[slot])) {
		b->live[slot] = NULL;
		b->n_failed++;
	}
}

static void do_free(struct books *b, size_t slot)
{
	struct buffer *buffer = b->live[slot];
	struct heap *heap = buffer->heap;
	enum heap_finish how = (enum heap_finish)rng_below(&b->rng, 3);
	int r;

	if (buffer->state == BUFFER_LIVE) {
		heap_release(heap, buffer);
		if (rng_below(&b->rng, 4) == 0)
			return; /* finished by a later step */
	}
	b->live[slot] = NULL;
	r = heap_finish(heap, buffer, how);
	CU_ASSERT_TRUE(r == 0 ||
		       (r == HEAP_E_NOT_PARKED && how == HEAP_FINISH_PARK));
}

static void do_other(struct books *b)
{
	static const char *const keys[][2] =
		{{"orders", "8 4 0"},    {"orders", "8 0 0"},
		 {"orders", "9 4 0"},    {"orders", "0"},
		 {"gfp.4", "MID_ORDER"}, {"gfp.4", "HIGH_ORDER"},
		 {"pool.limit", "2M"},   {"pool.limit", "none"},
		 {"pool.limit", "0"},    {"pool.refill", "on"},
		 {"pool.refill", "off"}};
	struct heap *heap = any_heap(b);
	struct policy policy = *heap_policy(heap);
	size_t i = (size_t)rng_below(&b->rng, ARRAY_SIZE(keys) + 2);

	if (i < ARRAY_SIZE(keys)) {
		T_REQUIRE(!policy_set(&policy, keys[i][0], keys[i][1], NULL));
		heap_set_policy(heap, &policy);
	} else if (i == ARRAY_SIZE(keys)) {
		(void)heap_shrink(heap, rng_below(&b->rng, MIB(4)));
	} else {
		(void)heap_refill(heap, node_now_ns(b->f.node) +
						rng_below(&b->rng, 20000000));
	}
}

static bool mark_run(unsigned char *seen, const struct buffer_run *run)
{
	uint64_t n = (uint64_t)run->n_blocks << run->order;

	for (uint64_t i = run->pfn; i < run->pfn + n; i++) {
		if (seen[i])
			return false;
		seen[i] = 1;
	}
	return true;
}

static bool no_block_is_in_two_buffers(struct books *b)
{
	unsigned char *seen = calloc(1, MIB(64) / 4096 * 2);
	struct buffer *buffer = NULL;
	uint64_t id = 0;
	bool ok = seen != NULL;

	while (ok && (buffer = heap_set_next_buffer(b->f.set, id))) {
		id = buffer->id;
		for (uint32_t i = 0; i < buffer->n_runs && ok; i++)
			ok = mark_run(seen, &buffer->runs[i]);
	}
	free(seen);
	return ok;
}

static void books_open(struct books *b, uint64_t seed)
{
	static const char *const names[N_HEAPS - 1] = {"b", "c"};
	struct policy policy;

	*b = (struct books){0};
	fixture_open_params(&b->f,
			    &(struct node_params){
				    .size_bytes = MIB(64),
				    .occupants = "kernel:10% file:25% anon:15%",
				    .swap = NODE_SWAP_ZRAM,
				    .seed = seed},
			    "840-mid");
	rng_seed(&b->rng, seed);
	b->heaps[0] = b->f.heap;
	T_REQUIRE(policy_shipped(&policy, "800"));
	for (size_t i = 1; i < N_HEAPS; i++)
		T_REQUIRE(heap_new(&b->heaps[i], b->f.set,
				   &(struct heap_params){.name = names[i - 1],
							 .policy = &policy}) ==
			  0);
}

static void the_books_balance_after_every_random_step(void)
{
	struct books b;

	books_open(&b, 5);
	for (unsigned int i = 0; i < N_STEPS; i++) {
		size_t slot = (size_t)rng_below(&b.rng, N_LIVE);

		if (rng_below(&b.rng, 20) == 0)
			do_other(&b);
		else if (b.live[slot])
			do_free(&b, slot);
		else
			do_alloc(&b, slot);
		T_REQUIRE(heap_set_check(b.f.set));
		if (i % 50 == 0)
			T_REQUIRE(no_block_is_in_two_buffers(&b));
	}
	CU_ASSERT_TRUE(b.n_allocs > 500);
	CU_ASSERT_TRUE(b.n_failed > 0);
	CU_ASSERT_TRUE(b.n_taken > 5);
	fixture_close(&b.f);
}

static uint64_t fingerprint(uint64_t seed)
{
	uint64_t hash = 1469598103934665603u;
	struct books b;

	books_open(&b, seed);
	for (unsigned int i = 0; i < 400; i++) {
		size_t slot = (size_t)rng_below(&b.rng, N_LIVE);

		if (b.live[slot])
			do_free(&b, slot);
		else
			do_alloc(&b, slot);
		if (b.live[slot])
			hash = (hash ^ b.live[slot]->runs[0].pfn) *
			       1099511628211u;
	}
	fixture_close(&b.f);
	return hash;
}

static void equal_seeds_give_equal_blocks(void)
{
	CU_ASSERT_EQUAL(fingerprint(9), fingerprint(9));
	CU_ASSERT_NOT_EQUAL(fingerprint(9), fingerprint(10));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"the books balance after every random step",
		 the_books_balance_after_every_random_step},
		{"equal seeds give equal blocks",
		 equal_seeds_give_equal_blocks},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "books", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
