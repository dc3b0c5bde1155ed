/* SPDX-License-Identifier: MIT */
#include "lab/experiment_threadcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/slab.h"
#include "base/slab_class.h"

#define OBJECT_BYTES 304u /* the structure of the source */
#define MANY_OBJECTS 5000u
#define MANY_BYTES   300u

static struct slab_params params_of(enum threadcache_kind kind, size_t bytes)
{
	struct slab_params params = {
		.size_bytes = bytes,
		.debug = SLAB_DEBUG_OFF,
		/* What is empty stays until a shrink, as in the source. */
		.n_keep_free = UINT32_MAX,
	};

	if (kind == THREADCACHE_CLASS) {
		params.size_bytes = slab_class_bytes(bytes);
		params.order = 1; /* 16 objects a slab, as the source has */
	} else if (kind == THREADCACHE_ALIGNED) {
		params.align_bytes = SLAB_CACHE_LINE_BYTES;
	}
	return params;
}

static void shuffle(void **objects, size_t n, uint64_t seed)
{
	struct rng rng;

	rng_seed(&rng, seed);
	for (size_t i = n; i > 1; i--) {
		size_t k = rng_below(&rng, i);
		void *swap = objects[i - 1];

		objects[i - 1] = objects[k];
		objects[k] = swap;
	}
}

static void note_peak(struct slab_cache *cache, struct threadcache_cache *ret)
{
	struct slab_stats stats;

	slab_cache_stats(cache, &stats);
	ret->stride_bytes = stats.object_bytes;
	ret->per_slab = stats.objects_per_slab;
	ret->slab_bytes = (size_t)stats.pages_per_slab * SLAB_PAGE_BYTES;
	ret->peak_slabs = stats.total_slabs;
}

static void note_quiet(struct slab_cache *cache, struct threadcache_cache *ret)
{
	struct slab_stats stats;

	slab_cache_stats(cache, &stats);
	ret->quiet_active = stats.active_objects;
	ret->quiet_total = stats.total_objects;
	ret->quiet_bytes = stats.total_bytes;
	ret->best_slabs = (stats.active_objects + stats.objects_per_slab - 1) /
			  stats.objects_per_slab;
	(void)slab_shrink(cache);
	slab_cache_stats(cache, &stats);
	ret->shrunk_slabs = stats.total_slabs;
	assert(stats.objects_per_slab < THREADCACHE_OCCUPANCY);
	slab_occupancy(cache, ret->occupancy, THREADCACHE_OCCUPANCY);
}

/*
 * The trace: @n_peak objects come, and of these all but @n_quiet go again, in
 * an order that the seed decides.
 */
static int run_trace(enum threadcache_kind kind, size_t bytes,
		     unsigned int n_peak, unsigned int n_quiet, uint64_t seed,
		     struct threadcache_cache *ret)
{
	_cleanup_(slab_cache_freep) struct slab_cache *cache = NULL;
	const struct slab_params params = params_of(kind, bytes);
	void **objects = calloc(n_peak, sizeof(*objects));
	int r = objects ? slab_cache_new(&cache, "trace", &params) : -ENOMEM;

	for (unsigned int i = 0; r == 0 && i < n_peak; i++) {
		objects[i] = slab_alloc(cache, SLAB_NO_FRONT);
		if (!objects[i])
			r = -ENOMEM;
	}
	if (r == 0) {
		ret->asked_bytes = bytes;
		note_peak(cache, ret);
		shuffle(objects, n_peak, seed);
		for (unsigned int i = n_quiet; i < n_peak; i++) {
			slab_free(cache, SLAB_NO_FRONT, objects[i]);
			objects[i] = NULL;
		}
		note_quiet(cache, ret);
	}
	for (unsigned int i = 0; objects && i < n_peak; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	free(objects);
	return r;
}

int threadcache_count(struct threadcache_result *result)
{
	const struct threadcache_params *p = &result->params;
	int r = 0;

	for (unsigned int kind = 0; r == 0 && kind < THREADCACHE_KINDS; kind++)
		r = run_trace(kind, OBJECT_BYTES, p->n_peak, p->n_quiet,
			      p->seed, &result->cache[kind]);
	for (unsigned int kind = 0; r == 0 && kind < 2; kind++)
		r = run_trace(kind, MANY_BYTES, MANY_OBJECTS, MANY_OBJECTS,
			      p->seed, &result->many[kind]);
	return r;
}

static int run(const struct experiment_options *options, struct report *report,
	       struct strbuf *why)
{
	static const char *const configs[] = {
		"[daemon]\nobjects = slab\ndebug_objects = off\n"
		"[node]\nsize = 256M\n",
		"[daemon]\nobjects = malloc\ndebug_objects = off\n"
		"[node]\nsize = 256M\n",
	};
	struct threadcache_result result = {
		.params = {.seed = options->seed,
			   .n_peak = 403,
			   .n_quiet = 194,
			   .n_loops = 2000},
	};
	int r = threadcache_count(&result);

	if (r == 0)
		r = threadcache_time(&result);
	if (r) {
		strbuf_append(why, "no memory");
		return r;
	}
	live_daemon_compare(options->daemon, configs, result.daemon,
			    result.daemon_why_not,
			    sizeof(result.daemon_why_not));
	threadcache_report(&result, report);
	return 0;
}

const struct experiment experiment_threadcache = {
	.name = "binder-thread-cache",
	.title = "an object cache for a structure of 304 bytes (2019)",
	.run = run,
};
