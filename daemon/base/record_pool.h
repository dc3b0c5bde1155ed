/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Pool of equal records in two levels, as lib/debugobjects.c has it since Linux
 * 6.13: a global pool of full batches, and in front of it a few batches per
 * worker, moved a batch at a time. The global pool is refilled from a slab
 * cache when it falls below a quarter; what finds it full is surplus and waits
 * for record_pool_trim(), away from the hot path.
 *
 * Units:     slots are batches of RECORD_POOL_BATCH records per worker.
 * Ownership: the pool owns every record; those in callers' hands must be back
 *            before record_pool_free() (asserted).
 * Threads:   each worker number is used by one thread at a time; get() and
 * put() of different workers may run at once, statistics at any time.
 */

#include "base/base.h"
#include "base/slab.h"

#define RECORD_POOL_BATCH 16u
#define RECORD_POOL_FULL  64u /* batches in the global pool */
#define RECORD_POOL_LOW   (RECORD_POOL_FULL / 4)

/* A record begins with its link while it is in the pool. */
struct record {
	struct record *next;
};

struct record_pool;

/**
 * record_pool_new() - a pool whose global part is full
 * @cache:      borrowed; its objects are the records
 * @n_slots:    batches per worker; 0: no level in front
 *
 * Return: 0 or -ENOMEM.
 */
int record_pool_new(struct record_pool **ret, struct slab_cache *cache,
		    unsigned int n_workers, unsigned int n_slots) _must_check_;

/* Return: NULL, always. May be NULL or half built. */
struct record_pool *record_pool_free(struct record_pool *pool);
DEFINE_CLEANUP(struct record_pool *, record_pool_free);

/* Return: a record, its content undefined; NULL when there is no memory. */
struct record *record_pool_get(struct record_pool *pool, unsigned int worker)
	_must_check_;

void record_pool_put(struct record_pool *pool, unsigned int worker,
		     struct record *record);

/* Tops the global pool up from the surplus and frees the rest of it. Return:
 * the number of records freed. */
size_t record_pool_trim(struct record_pool *pool);

struct record_pool_stats {
	uint64_t in_use;         /* in callers' hands */
	uint64_t backing_allocs; /* records, by get(): in the hot path */
	uint64_t backing_frees;
	uint64_t global_gets, global_puts; /* batches moved */
	uint64_t global_records, worker_records, surplus_records;
};

void record_pool_get_stats(const struct record_pool *pool,
			   struct record_pool_stats *ret);

/* Verifies every invariant; no other thread may be inside. */
bool record_pool_check(const struct record_pool *pool);
