/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/clock.h"
#include "base/objtrack.h"
#include "base/slab.h"
#include "lab/experiment_objtrack.h"
#include "lab/median.h"

#define ROUNDS    15
#define PAIRS     201
#define N_OBJECTS 256u
#define N_LOOPS   100u

static const char *const kinds[] = {"object"};

/* Return: ns per transition of whole lives: init, activate, ..., forget. */
static double time_lives(struct objtrack *track)
{
	uint64_t start = clock_thread_cpu_ns();

	for (unsigned int loop = 0; loop < N_LOOPS; loop++) {
		for (uint64_t key = 0; key < N_OBJECTS; key++) {
			(void)objtrack_init(track, 0, 0, key);
			(void)objtrack_activate(track, 0, 0, key);
		}
		for (uint64_t key = 0; key < N_OBJECTS; key++) {
			(void)objtrack_destroy(track, 0, 0, key);
			(void)objtrack_forget(track, 0, 0, key);
		}
	}
	return (double)(clock_thread_cpu_ns() - start) /
	       (4.0 * N_LOOPS * N_OBJECTS);
}

/* Neither is better placed in the cache than the other. */
#define TIMED __attribute__((noinline, aligned(64)))

/* One function for both, so that they differ in nothing but the calls. */
static inline __attribute__((always_inline)) bool
run_objects(struct slab_cache *cache, struct objtrack *track, bool calls)
{
	void *objects[N_OBJECTS];
	bool ok = true;

	for (unsigned int i = 0; i < N_OBJECTS; i++) {
		objects[i] = slab_alloc(cache, 0);
		if (!objects[i]) {
			ok = false;
			continue;
		}
		*(volatile char *)objects[i] = 1;
		if (calls) {
			(void)objtrack_init(track, 0, 0, (uintptr_t)objects[i]);
			(void)objtrack_activate(track, 0, 0,
						(uintptr_t)objects[i]);
		}
	}
	for (unsigned int i = 0; i < N_OBJECTS; i++) {
		if (calls) {
			(void)objtrack_destroy(track, 0, 0,
					       (uintptr_t)objects[i]);
			(void)objtrack_forget(track, 0, 0,
					      (uintptr_t)objects[i]);
		}
		slab_free(cache, 0, objects[i]);
	}
	return ok;
}

TIMED static bool run_with(struct slab_cache *cache, struct objtrack *off)
{
	return run_objects(cache, off, true);
}

TIMED static bool run_without(struct slab_cache *cache)
{
	return run_objects(cache, NULL, false);
}

/* Return: ns per object of a loop with (@off) or without calls. */
static double time_objects(struct slab_cache *cache, struct objtrack *off,
			   bool with)
{
	uint64_t start = clock_thread_cpu_ns();

	for (unsigned int loop = 0; loop < N_LOOPS; loop++)
		if (!(with ? run_with(cache, off) : run_without(cache)))
			return -1;
	return (double)(clock_thread_cpu_ns() - start) / (N_LOOPS * N_OBJECTS);
}

/*
 * Both sides of a pair follow each other at once, in turns the one or the other
 * first; the median of many pairs: whatever else the machine does strikes some
 * pairs, and either side of them alike.
 */
static int time_off(struct objtrack_result *result, struct objtrack *off)
{
	_cleanup_(slab_cache_freep) struct slab_cache *cache = NULL;
	const struct slab_params params = {.size_bytes = 304,
					   .n_fronts = 1,
					   .n_keep_free = UINT32_MAX,
					   .debug = SLAB_DEBUG_OFF};
	double without[PAIRS], ratio[PAIRS];
	int r = slab_cache_new(&cache, "timed", &params);

	if (r)
		return r;
	for (int i = 0; i < PAIRS; i++) {
		double ns[2];

		ns[i % 2] = time_objects(cache, off, i % 2);
		ns[!(i % 2)] = time_objects(cache, off, !(i % 2));
		if (ns[0] < 0 || ns[1] < 0)
			return -ENOMEM;
		without[i] = ns[0];
		ratio[i] = ns[1] / ns[0];
	}
	result->off_percent = 100 * (median_double(ratio, PAIRS) - 1);
	result->off_ns = MAX(result->off_percent, 0.0) / 100 *
			 median_double(without, PAIRS) / 4;
	return 0;
}

int objtrack_time(struct objtrack_result *result)
{
	struct objtrack_params params = {
		.enabled = true,
		.slots_in_batches = OBJTRACK_SLOTS_DEFAULT,
		.n_workers = 1,
		.kinds = kinds,
		.n_kinds = 1,
	};
	struct objtrack *on = NULL, *off = NULL;
	int r = objtrack_new(&on, &params);

	params.enabled = false;
	if (r == 0)
		r = objtrack_new(&off, &params);
	if (r == 0)
		r = time_off(result, off);
	if (r == 0) {
		result->on_ns = time_lives(on);
		for (int i = 1; i < ROUNDS; i++)
			result->on_ns = MIN(result->on_ns, time_lives(on));
	}
	objtrack_free(on);
	objtrack_free(off);
	return r;
}
