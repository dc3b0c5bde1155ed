/* SPDX-License-Identifier: MIT */
#include "base/record_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/*
 * A chain of records is linked through record.next. Full batches stand in
 * batches[]; loose holds fewer than a batch (what single records leave over
 * when there is no level in front, or when memory ran out in mid-batch).
 */

struct chain {
	struct record *first;
	size_t n;
};

struct worker_slots {
	struct record *first;
	_Atomic size_t n; /* written by its worker, read by statistics */
} __attribute__((aligned(SLAB_CACHE_LINE_BYTES)));

struct record_pool {
	struct slab_cache *cache;
	unsigned int n_workers;
	size_t worker_max; /* records per worker */
	struct worker_slots *workers;

	pthread_mutex_t *lock; /* everything below */
	struct record *batches[RECORD_POOL_FULL];
	unsigned int n_batches;
	struct chain loose;
	struct chain surplus;
	uint64_t n_allocated; /* from the cache and not given back */
	uint64_t backing_allocs, backing_frees;
	uint64_t global_gets, global_puts;
};

static void push(struct chain *chain, struct record *record)
{
	record->next = chain->first;
	chain->first = record;
	chain->n++;
}

static struct record *pop(struct chain *chain)
{
	struct record *record = chain->first;

	if (record) {
		chain->first = record->next;
		chain->n--;
	}
	return record;
}

static void lock(const struct record_pool *pool)
{
	int r = pthread_mutex_lock(pool->lock);

	assert(r == 0);
	(void)r;
}

static void unlock(const struct record_pool *pool)
{
	int r = pthread_mutex_unlock(pool->lock);

	assert(r == 0);
	(void)r;
}

/* One record more in the global pool, where there is room. */
static void add_to_global(struct record_pool *pool, struct record *record)
{
	if (pool->n_batches == RECORD_POOL_FULL) {
		push(&pool->surplus, record);
		return;
	}
	push(&pool->loose, record);
	if (pool->loose.n == RECORD_POOL_BATCH) {
		pool->batches[pool->n_batches++] = pool->loose.first;
		pool->loose = (struct chain){0};
	}
}

static void fill_from_surplus(struct record_pool *pool, unsigned int n_batches)
{
	while (pool->n_batches < n_batches && pool->surplus.n)
		add_to_global(pool, pop(&pool->surplus));
}

/* Return: false when memory ran out on the way. */
static bool fill_from_cache(struct record_pool *pool, unsigned int n_batches,
			    uint64_t *counter)
{
	while (pool->n_batches < n_batches) {
		struct record *record = slab_alloc(pool->cache, SLAB_NO_FRONT);

		if (!record)
			return false;
		pool->n_allocated++;
		++*counter;
		add_to_global(pool, record);
	}
	return true;
}

static void refill(struct record_pool *pool)
{
	if (pool->n_batches >= RECORD_POOL_LOW)
		return;
	fill_from_surplus(pool, RECORD_POOL_LOW);
	/* Without memory what is there still serves. */
	(void)fill_from_cache(pool, RECORD_POOL_LOW, &pool->backing_allocs);
}

/* Return: up to a batch of records; an empty chain when there is none. */
static struct chain take_batch(struct record_pool *pool)
{
	struct chain batch = {0};

	if (pool->n_batches) {
		batch.first = pool->batches[--pool->n_batches];
		batch.n = RECORD_POOL_BATCH;
		pool->global_gets++;
	} else {
		batch = pool->loose;
		pool->loose = (struct chain){0};
	}
	return batch;
}

static struct record *get_single(struct record_pool *pool)
{
	struct record *record;

	lock(pool);
	refill(pool);
	if (!pool->loose.n)
		pool->loose = take_batch(pool);
	record = pop(&pool->loose);
	unlock(pool);
	return record;
}

static size_t slots_count(const struct worker_slots *slots)
{
	return atomic_load_explicit(&slots->n, memory_order_relaxed);
}

static void slots_set_count(struct worker_slots *slots, size_t n)
{
	atomic_store_explicit(&slots->n, n, memory_order_relaxed);
}

struct record *record_pool_get(struct record_pool *pool, unsigned int worker)
{
	struct worker_slots *slots;
	struct record *record;

	assert(worker < pool->n_workers);

	if (pool->worker_max == 0)
		return get_single(pool);
	slots = &pool->workers[worker];
	if (!slots->first) {
		struct chain batch;

		lock(pool);
		refill(pool);
		batch = take_batch(pool);
		unlock(pool);
		slots->first = batch.first;
		slots_set_count(slots, batch.n);
	}
	record = slots->first;
	if (record) {
		slots->first = record->next;
		slots_set_count(slots, slots_count(slots) - 1);
	}
	return record;
}

/* The worker's slots are full: a batch goes to the global pool. */
static void give_batch(struct record_pool *pool, struct worker_slots *slots)
{
	lock(pool);
	for (unsigned int i = 0; i < RECORD_POOL_BATCH; i++) {
		struct record *record = slots->first;

		slots->first = record->next;
		add_to_global(pool, record);
	}
	pool->global_puts++;
	unlock(pool);
	slots_set_count(slots, slots_count(slots) - RECORD_POOL_BATCH);
}

void record_pool_put(struct record_pool *pool, unsigned int worker,
		     struct record *record)
{
	struct worker_slots *slots;

	assert(worker < pool->n_workers);

	if (pool->worker_max == 0) {
		lock(pool);
		add_to_global(pool, record);
		unlock(pool);
		return;
	}
	slots = &pool->workers[worker];
	if (slots_count(slots) == pool->worker_max)
		give_batch(pool, slots);
	record->next = slots->first;
	slots->first = record;
	slots_set_count(slots, slots_count(slots) + 1);
}

static void give_back(struct record_pool *pool, struct record *record)
{
	slab_free(pool->cache, SLAB_NO_FRONT, record);
	pool->n_allocated--;
}

size_t record_pool_trim(struct record_pool *pool)
{
	size_t n;

	lock(pool);
	fill_from_surplus(pool, RECORD_POOL_FULL);
	n = pool->surplus.n;
	while (pool->surplus.n)
		give_back(pool, pop(&pool->surplus));
	pool->backing_frees += n;
	unlock(pool);
	return n;
}

int record_pool_new(struct record_pool **ret, struct slab_cache *cache,
		    unsigned int n_workers, unsigned int n_slots)
{
	_cleanup_(record_pool_freep) struct record_pool *pool = NULL;
	uint64_t not_counted = 0;

	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->cache = cache;
	pool->worker_max = (size_t)n_slots * RECORD_POOL_BATCH;
	pool->workers = aligned_alloc(SLAB_CACHE_LINE_BYTES,
				      n_workers * sizeof(*pool->workers));
	pool->lock = malloc(sizeof(*pool->lock));
	if (!pool->workers || !pool->lock)
		return -ENOMEM;
	for (unsigned int i = 0; i < n_workers; i++)
		pool->workers[i] = (struct worker_slots){0};
	pool->n_workers = n_workers;
	/* With default attributes this cannot fail on Linux. */
	(void)pthread_mutex_init(pool->lock, NULL);
	if (!fill_from_cache(pool, RECORD_POOL_FULL, &not_counted))
		return -ENOMEM;
	*ret = TAKE_PTR(pool);
	return 0;
}

static void give_back_chain(struct record_pool *pool, struct record *record)
{
	while (record) {
		struct record *next = record->next;

		give_back(pool, record);
		record = next;
	}
}

struct record_pool *record_pool_free(struct record_pool *pool)
{
	if (!pool)
		return NULL;
	for (unsigned int i = 0; i < pool->n_workers; i++)
		give_back_chain(pool, pool->workers[i].first);
	for (unsigned int i = 0; i < pool->n_batches; i++)
		give_back_chain(pool, pool->batches[i]);
	give_back_chain(pool, pool->loose.first);
	give_back_chain(pool, pool->surplus.first);
	assert(pool->n_allocated == 0); /* every record is back */
	free(pool->lock);
	free(pool->workers);
	free(pool);
	return NULL;
}

void record_pool_get_stats(const struct record_pool *pool,
			   struct record_pool_stats *ret)
{
	struct record_pool_stats s = {0};

	lock(pool);
	for (unsigned int i = 0; i < pool->n_workers; i++)
		s.worker_records += slots_count(&pool->workers[i]);
	s.global_records = pool->n_batches * RECORD_POOL_BATCH + pool->loose.n;
	s.surplus_records = pool->surplus.n;
	s.in_use = pool->n_allocated - s.global_records - s.surplus_records;
	/* Workers move meanwhile: theirs may be a moment older or newer. */
	s.in_use -= MIN(s.worker_records, s.in_use);
	s.backing_allocs = pool->backing_allocs;
	s.backing_frees = pool->backing_frees;
	s.global_gets = pool->global_gets;
	s.global_puts = pool->global_puts;
	unlock(pool);
	*ret = s;
}

static bool chain_has(const struct record *record, size_t n)
{
	while (record && n) {
		record = record->next;
		n--;
	}
	return !record && n == 0;
}

bool record_pool_check(const struct record_pool *pool)
{
	struct slab_stats slab;
	size_t n = pool->loose.n + pool->surplus.n;

	if (!chain_has(pool->loose.first, pool->loose.n) ||
	    !chain_has(pool->surplus.first, pool->surplus.n) ||
	    pool->loose.n >= RECORD_POOL_BATCH ||
	    pool->n_batches > RECORD_POOL_FULL)
		return false;
	for (unsigned int i = 0; i < pool->n_batches; i++) {
		if (!chain_has(pool->batches[i], RECORD_POOL_BATCH))
			return false;
		n += RECORD_POOL_BATCH;
	}
	for (unsigned int i = 0; i < pool->n_workers; i++) {
		const struct worker_slots *slots = &pool->workers[i];

		if (!chain_has(slots->first, slots_count(slots)) ||
		    slots_count(slots) > pool->worker_max)
			return false;
		n += slots_count(slots);
	}
	slab_cache_stats(pool->cache, &slab);
	return n <= pool->n_allocated &&
	       slab.active_objects == pool->n_allocated;
}
