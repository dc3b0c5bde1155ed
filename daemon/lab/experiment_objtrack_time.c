/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/clock.h"
#include "base/objtrack.h"
#include "base/slab.h"
#include "lab/experiment_objtrack.h"

#define ROUNDS    15
#define N_OBJECTS 256u
#define N_LOOPS   400u

static const char *const kinds[] = {"object"};

/* Times are CPU time, and of the rounds the best one counts: what else the
 * machine does only ever adds. */
static double best(const double *values)
{
	double least = values[0];

	for (int i = 1; i < ROUNDS; i++)
		least = MIN(least, values[i]);
	return least;
}

/* Return: ns per transition of whole lives: init, activate, ..., forget. */
static double time_lives(struct objtrack *track)
{
	uint64_t start = clock_thread_cpu_ns();

	for (unsigned int loop = 0; loop < N_LOOPS / 4; loop++) {
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
	       (4.0 * (N_LOOPS / 4) * N_OBJECTS);
}

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

static __attribute__((noinline)) bool run_with(struct slab_cache *cache,
					       struct objtrack *off)
{
	return run_objects(cache, off, true);
}

static __attribute__((noinline)) bool run_without(struct slab_cache *cache)
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

static int time_off(struct objtrack_result *result, struct objtrack *off)
{
	_cleanup_(slab_cache_freep) struct slab_cache *cache = NULL;
	const struct slab_params params = {.size_bytes = 304,
					   .n_fronts = 1,
					   .n_keep_free = UINT32_MAX,
					   .debug = SLAB_DEBUG_OFF};
	double with[ROUNDS], without[ROUNDS], difference;
	int r = slab_cache_new(&cache, "timed", &params);

	if (r)
		return r;
	for (int i = 0; i < ROUNDS; i++) {
		without[i] = time_objects(cache, off, false);
		with[i] = time_objects(cache, off, true);
		if (with[i] < 0 || without[i] < 0)
			return -ENOMEM;
	}
	difference = best(with) - best(without);
	result->off_ns = MAX(difference, 0.0) / 4;
	result->off_percent = 100 * difference / best(without);
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
	double ns[ROUNDS];
	int r = objtrack_new(&on, &params);

	params.enabled = false;
	if (r == 0)
		r = objtrack_new(&off, &params);
	for (int i = 0; r == 0 && i < ROUNDS; i++)
		ns[i] = time_lives(on);
	if (r == 0) {
		result->on_ns = best(ns);
		r = time_off(result, off);
	}
	objtrack_free(on);
	objtrack_free(off);
	return r;
}
