/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/rng.h"
#include "heap/fixture.h"

/*
 * The property that parking rests on: what a request gets from a parked buffer
 * is never worse than what pools and free lists would give it at that moment.
 * Random histories, one per seed, ask at every request.
 *
 * What the pools would give is found out by doing it, in a twin of the world
 * that has had the same history: the parked buffers are broken up there and the
 * buffer is allocated without reclaim.
 */

#define N_SEEDS 200u
#define N_STEPS 150u
#define N_UIDS  2u

struct world {
	uint64_t seed;
	unsigned int n_steps; /* done */
	bool is_twin;         /* judges nothing */
	struct fixture f;
	struct rng rng;
	struct buffer *live[24];
};

/* How the requests for which a buffer was parked ended. */
static struct {
	unsigned int rejected; /* pools and free lists would give better */
	unsigned int equal;    /* taken, and as good as without it */
	unsigned int better;   /* taken, and better than without it */
} seen;

typedef uint32_t composition[POLICY_ORDER_COUNT];

static const uint64_t sizes[] = {KIB(64), KIB(100), MIB(1), MIB(2) + KIB(64),
				 MIB(5)};

/* Any element of an array, by lot. */
#define PICK(rng, array) ((array)[rng_below((rng), ARRAY_SIZE(array))])

static const struct buffer *best_parked(struct world *w, uint32_t uid,
					uint64_t len)
{
	const struct buffer *best = NULL, *b = NULL;

	for (b = heap_set_next_buffer(w->f.set, 0); b;
	     b = heap_set_buffer_after(w->f.set, b)) {
		if (b->state != BUFFER_PARKED || b->uid != uid ||
		    b->len_bytes != len)
			continue;
		if (!best ||
		    composition_compare(b->composition, best->composition) > 0)
			best = b;
	}
	return best;
}

static void world_open(struct world *w, uint64_t seed)
{
	*w = (struct world){.seed = seed};
	fixture_open_params(&w->f,
			    &(struct node_params){.size_bytes = MIB(64),
						  .occupants = "kernel:25%",
						  .seed = seed},
			    "840-high");
	/* Order 0 without reclaim as well: the dry run knows no reclaim. */
	fixture_set(&w->f, "gfp.0", "HIGH_ORDER");
	fixture_set(&w->f, "pool.refill", "on");
	rng_seed(&w->rng, seed);
}

static void world_run(struct world *w, unsigned int n_steps);

/*
 * What an allocation gives now; all zero: nothing. @taken: somebody else takes
 * the parked buffer that is found first.
 *
 * Return: false if it had to reclaim after all, for a page of metadata: the
 * shrinker may have made large blocks of what the pools had.
 */
static bool actual(const struct world *w, uint32_t uid, uint64_t len,
		   bool taken, composition ret)
{
	struct heap_request req = {.uid = uid, .len_bytes = len};
	struct buffer *b;
	struct world twin;

	world_open(&twin, w->seed);
	twin.is_twin = true;
	world_run(&twin, w->n_steps);
	if (taken)
		heap_take_parked(twin.f.heap,
				 heap_find_parked(twin.f.heap, uid, len));
	memset(ret, 0, sizeof(composition));
	if (heap_alloc(twin.f.heap, &req, &b) == 0)
		memcpy(ret, b->composition, sizeof(composition));
	fixture_close(&twin.f);
	return req.stall_ns == 0;
}

/* Return: as heap_find_parked(), whose answer is judged. */
static struct buffer *find(struct world *w, uint32_t uid, uint64_t len)
{
	struct buffer *found = heap_find_parked(w->f.heap, uid, len);
	const struct buffer *best = best_parked(w, uid, len);
	composition pools, without;

	if (w->is_twin)
		return found;
	if (!best) {
		CU_ASSERT_PTR_NULL(found);
		return found;
	}
	if (!actual(w, uid, len, false, pools))
		return found;
	if (!found) {
		CU_ASSERT_TRUE(composition_compare(best->composition, pools) <
			       0);
		seen.rejected++;
		return found;
	}
	CU_ASSERT_TRUE(composition_compare(found->composition, pools) >= 0);
	CU_ASSERT_EQUAL(composition_compare(found->composition,
					    best->composition),
			0);
	/* Its own blocks are the pools' too: it is never better than those, but
	 * it can be than what is left without it. */
	(void)actual(w, uid, len, true, without);
	if (composition_compare(found->composition, without) > 0)
		seen.better++;
	else
		seen.equal++;
	return found;
}

static void request(struct world *w)
{
	uint32_t uid = (uint32_t)rng_below(&w->rng, N_UIDS);
	uint64_t len = PICK(&w->rng, sizes);
	size_t i = rng_below(&w->rng, ARRAY_SIZE(w->live));
	struct buffer *found;

	if (w->live[i])
		return;
	found = find(w, uid, len);
	if (found)
		heap_take_parked(w->f.heap, found);
	w->live[i] = found ? found : take(&w->f, uid, len);
}

static void release(struct world *w)
{
	static const enum heap_finish hows[] = {
		HEAP_FINISH_PARK, HEAP_FINISH_PARK, HEAP_FINISH_PARK,
		HEAP_FINISH_POOL, HEAP_FINISH_NODE,
	};
	size_t i = rng_below(&w->rng, ARRAY_SIZE(w->live));

	if (!w->live[i])
		return;
	(void)give(&w->f, w->live[i], PICK(&w->rng, hows));
	w->live[i] = NULL;
}

static void change_policy(struct world *w)
{
	static const char *const orders[] = {"8 4 0", "8 4 0", "8 0",
					     "0",     "4 0",   "4 0",
					     "9 4 0", "8 8 0", "10 8 6 4 2 0"};

	fixture_set(&w->f, "orders", PICK(&w->rng, orders));
}

static void change_limits(struct world *w)
{
	static const char *const keys[] = {"pool.limit", "pool.8.limit",
					   "pool.4.limit", "pool.0.limit"};
	static const char *const limits[] = {"none", "none", "64M", "4M", "0"};

	fixture_set(&w->f, PICK(&w->rng, keys), PICK(&w->rng, limits));
}

/* Little is left in large blocks, or in blocks at all. */
static void occupy(struct world *w)
{
	static const unsigned int orders[] = {0, 3, 3, 4, 7};
	static const enum node_occupant kinds[] = {NODE_OCCUPANT_KERNEL,
						   NODE_OCCUPANT_MLOCKED};

	if (rng_below(&w->rng, 4))
		node_pressure_fragment(w->f.node, PICK(&w->rng, orders));
	else
		(void)node_occupy(w->f.node, PICK(&w->rng, kinds),
				  rng_below(&w->rng, 1500));
}

static void vacate(struct world *w)
{
	if (rng_below(&w->rng, 2)) {
		node_pressure_release(w->f.node);
		return;
	}
	(void)node_vacate(w->f.node, NODE_OCCUPANT_MLOCKED, 1000);
	(void)node_release_every(w->f.node, NODE_OCCUPANT_KERNEL,
				 1 + (unsigned int)rng_below(&w->rng, 8));
}

static void shrink_or_refill(struct world *w)
{
	if (rng_below(&w->rng, 2))
		(void)heap_shrink(w->f.heap, rng_below(&w->rng, MIB(16)));
	else
		(void)heap_refill(w->f.heap, node_now_ns(w->f.node));
}

static void step(struct world *w)
{
	uint64_t lot = rng_below(&w->rng, 100);

	if (lot < 45)
		request(w);
	else if (lot < 80)
		release(w);
	else if (lot < 85)
		change_policy(w);
	else if (lot < 88)
		change_limits(w);
	else if (lot < 95)
		occupy(w);
	else if (lot < 97)
		vacate(w);
	else
		shrink_or_refill(w);
}

static void world_run(struct world *w, unsigned int n_steps)
{
	for (; w->n_steps < n_steps; w->n_steps++)
		step(w);
}

static void reuse_is_never_worse_than_pools_and_free_lists(void)
{
	struct world w;

	for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
		world_open(&w, seed);
		world_run(&w, N_STEPS);
		fixture_close(&w.f);
	}
	printf(" (%u rejected, %u equal, %u better) ", seen.rejected,
	       seen.equal, seen.better);
	/* The histories went where the property is at stake. */
	CU_ASSERT_TRUE(seen.rejected > 50);
	CU_ASSERT_TRUE(seen.equal > 50);
	CU_ASSERT_TRUE(seen.better > 10);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"reuse is never worse than pools and free lists",
		 reuse_is_never_worse_than_pools_and_free_lists},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "reuse", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
