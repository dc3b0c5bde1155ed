/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/slab.h"
#include "base/slab_class.h"
#include "lab/experiment_threadcache.h"
#include "lab/median.h"

#define OBJECT_BYTES    304u
#define BATCH           400u /* objects alive at once in a timed loop */
#define N_SOURCE_ROUNDS 20u
#define N_WRITES        60000u
#define N_ROUNDS        9
#define N_TRIES         400 /* on a machine that does other things, too */

/* Where the timed loops get their objects. */
struct source {
	enum threadcache_source kind;
	struct slab_classes *classes;
	struct slab_cache *cache;
	unsigned int front;
};

static void *source_alloc(struct source *s)
{
	switch (s->kind) {
	case THREADCACHE_GLIBC:
		return malloc(OBJECT_BYTES);
	case THREADCACHE_SIZE_CLASS:
		return slab_classes_resize(s->classes, NULL, 0, OBJECT_BYTES);
	default:
		return slab_alloc(s->cache, s->front);
	}
}

static void source_free(struct source *s, void *object)
{
	if (s->kind == THREADCACHE_GLIBC)
		free(object);
	else if (s->kind == THREADCACHE_SIZE_CLASS)
		(void)slab_classes_resize(s->classes, object, OBJECT_BYTES, 0);
	else
		slab_free(s->cache, s->front, object);
}

/* Return: false when memory ran out. */
static bool run_batch(struct source *s, void **objects)
{
	unsigned int n = 0;

	for (; n < BATCH; n++) {
		objects[n] = source_alloc(s);
		if (!objects[n])
			break;
		*(volatile char *)objects[n] = 1;
	}
	for (unsigned int i = 0; i < n; i++)
		source_free(s, objects[i]);
	return n == BATCH;
}

/* Return: ns of CPU time per alloc and free; < 0 without memory. */
static double time_source(struct source *s, unsigned int n_loops)
{
	uint64_t start = clock_thread_cpu_ns();
	void *objects[BATCH];

	for (unsigned int i = 0; i < n_loops; i++)
		if (!run_batch(s, objects))
			return -1;
	return (double)(clock_thread_cpu_ns() - start) /
	       ((double)n_loops * BATCH);
}

/* In turn, so that what else the machine does strikes all; of each its best
 * round. */
static int time_sources(struct threadcache_result *result)
{
	_cleanup_(slab_cache_freep) struct slab_cache *cache = NULL;
	_cleanup_(slab_classes_freep) struct slab_classes *classes = NULL;
	const struct slab_params params = {.size_bytes = OBJECT_BYTES,
					   .n_fronts = 1,
					   .n_keep_free = UINT32_MAX,
					   .debug = SLAB_DEBUG_OFF};
	int r = slab_cache_new(&cache, "timed", &params);

	if (r == 0)
		r = slab_classes_new(&classes, &params);
	if (r)
		return r;
	for (unsigned int i = 0; i < THREADCACHE_SOURCES * N_SOURCE_ROUNDS;
	     i++) {
		enum threadcache_source kind = i % THREADCACHE_SOURCES;
		struct source s = {
			.kind = kind,
			.classes = classes,
			.cache = cache,
			.front = kind == THREADCACHE_SLAB_FRONT ? 0
								: SLAB_NO_FRONT,
		};
		double ns = time_source(&s, result->params.n_loops /
						    N_SOURCE_ROUNDS);

		if (ns < 0)
			return -ENOMEM;
		if (i < THREADCACHE_SOURCES || ns < result->pair_ns[kind])
			result->pair_ns[kind] = ns;
	}
	return 0;
}

/* One of two threads that write, each its own word. */
struct writer {
	pthread_t thread;
	int cpu;
	volatile uint64_t *word;
	_Atomic unsigned int *n_ready;
	unsigned int n_threads;
	bool atomically;
	uint64_t start_ns, ns, cpu_ns;
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* Not allowed to: then the scheduler places it, which is no error. */
	(void)!pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *write_words(void *arg)
{
	struct writer *w = arg;
	uint64_t cpu_ns;

	pin(w->cpu);
	atomic_fetch_add(w->n_ready, 1);
	while (atomic_load(w->n_ready) < w->n_threads)
		; /* not asleep when the other one comes */
	w->start_ns = clock_now_ns();
	cpu_ns = clock_thread_cpu_ns();
	if (w->atomically)
		for (unsigned int i = 0; i < N_WRITES; i++)
			(void)__atomic_fetch_add(w->word, 1, __ATOMIC_RELAXED);
	else
		for (unsigned int i = 0; i < N_WRITES; i++)
			++*w->word;
	w->cpu_ns = clock_thread_cpu_ns() - cpu_ns;
	w->ns = clock_now_ns() - w->start_ns;
	return NULL;
}

/* Return: true if both ran all the time, and at the same time. */
static bool ran_together(const struct writer *w, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint64_t late = w[i].start_ns > w[0].start_ns
					? w[i].start_ns - w[0].start_ns
					: w[0].start_ns - w[i].start_ns;

		if (w[i].cpu_ns < w[i].ns / 10 * 9 || late > w[i].ns / 5)
			return false;
	}
	return true;
}

/* Return: ns per write of the slower one, < 0 when they did not run together.
 */
static double time_writers_once(struct writer *w, unsigned int n)
{
	_Atomic unsigned int n_ready = 0;
	unsigned int n_started = 0;
	uint64_t ns = 0;

	for (; n_started < n; n_started++) {
		w[n_started].n_ready = &n_ready;
		w[n_started].n_threads = n;
		if (pthread_create(&w[n_started].thread, NULL, write_words,
				   &w[n_started]))
			break;
	}
	if (n_started < n)
		atomic_fetch_add(&n_ready, n); /* nobody waits for more */
	for (unsigned int i = 0; i < n_started; i++) {
		pthread_join(w[i].thread, NULL);
		ns = MAX(ns, w[i].ns);
	}
	if (n_started < n || !ran_together(w, n))
		return -1;
	return (double)ns / N_WRITES;
}

/* The median of the rounds that count. Return: ns, < 0 when none did. */
static double time_writers(struct writer *w, unsigned int n)
{
	double ns[N_ROUNDS];
	unsigned int n_good = 0;

	for (int i = 0; i < N_TRIES && n_good < N_ROUNDS; i++) {
		ns[n_good] = time_writers_once(w, n);
		n_good += ns[n_good] >= 0;
	}
	if (n_good == 0)
		return -1;
	return median_double(ns, n_good);
}

/* Two CPUs that this process may use. Return: how many it found. */
static unsigned int find_cpus(int cpus[2])
{
	cpu_set_t set;
	unsigned int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	return n;
}

/*
 * Two neighbouring objects of one cache: one thread writes the last word of
 * the first, the other the first word of the second.
 */
static int time_neighbours(struct threadcache_result *result, bool aligned,
			   const int cpus[2])
{
	_cleanup_(slab_cache_freep) struct slab_cache *cache = NULL;
	const struct slab_params params =
		{.size_bytes = OBJECT_BYTES,
		 .align_bytes = aligned ? SLAB_CACHE_LINE_BYTES : 0,
		 .debug = SLAB_DEBUG_OFF};
	struct writer w[2] = {{.cpu = cpus[0]}, {.cpu = cpus[1]}};
	char *a, *b;
	int r = slab_cache_new(&cache, "neighbours", &params);

	if (r)
		return r;
	a = slab_zalloc(cache, SLAB_NO_FRONT);
	b = a ? slab_zalloc(cache, SLAB_NO_FRONT) : NULL;
	if (b) {
		w[0].word = (volatile uint64_t *)(void *)(a + OBJECT_BYTES - 8);
		w[1].word = (volatile uint64_t *)(void *)b;
		for (unsigned int i = 0; i < 2; i++) {
			w[0].atomically = w[1].atomically = i;
			result->neighbour_ns[aligned][i] = time_writers(w, 2);
			result->alone_ns[i] = time_writers(w, 1);
		}
	}
	slab_free(cache, SLAB_NO_FRONT, b);
	slab_free(cache, SLAB_NO_FRONT, a);
	return b ? 0 : -ENOMEM;
}

int threadcache_time(struct threadcache_result *result)
{
	int cpus[2];
	int r = time_sources(result);

	if (r)
		return r;
	memset(result->neighbour_ns, 0, sizeof(result->neighbour_ns));
	if (find_cpus(cpus) < 2)
		return 0;
	r = time_neighbours(result, false, cpus);
	if (r == 0)
		r = time_neighbours(result, true, cpus);
	return r;
}
