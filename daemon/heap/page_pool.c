/* SPDX-License-Identifier: MIT */
#include "heap/page_pool.h"

#include <stdlib.h>

/*
 * A ring: pfns[(first + i) % capacity], 0 <= i < n_blocks, oldest first.
 * capacity is 0 or a power of two.
 */

#define PAGE_POOL_FIRST_CAPACITY 64u

void page_pool_init(struct page_pool *pool)
{
	*pool = (struct page_pool){};
}

void page_pool_fini(struct page_pool *pool)
{
	assert(pool->n_blocks == 0 && pool->n_parked == 0);
	free(pool->pfns);
	*pool = (struct page_pool){};
}

static bool page_pool_grow(struct page_pool *pool)
{
	uint32_t capacity =
		pool->capacity ? pool->capacity * 2 : PAGE_POOL_FIRST_CAPACITY;
	uint32_t *pfns;

	pfns = calloc(capacity, sizeof(*pfns));
	if (!pfns)
		return false;
	for (uint32_t i = 0; i < pool->n_blocks; i++)
		pfns[i] = pool->pfns[(pool->first + i) & (pool->capacity - 1)];
	free(pool->pfns);
	pool->pfns = pfns;
	pool->capacity = capacity;
	pool->first = 0;
	return true;
}

bool page_pool_push(struct page_pool *pool, uint64_t pfn)
{
	assert(pfn <= UINT32_MAX);
	if (pool->n_blocks == pool->capacity && !page_pool_grow(pool))
		return false;
	pool->pfns[(pool->first + pool->n_blocks) & (pool->capacity - 1)] =
		(uint32_t)pfn;
	pool->n_blocks++;
	return true;
}

bool page_pool_pop(struct page_pool *pool, uint64_t *ret_pfn)
{
	if (pool->n_blocks == 0)
		return false;
	*ret_pfn = pool->pfns[pool->first];
	pool->first = (pool->first + 1) & (pool->capacity - 1);
	pool->n_blocks--;
	return true;
}
