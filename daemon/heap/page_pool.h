/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Page pool: blocks of one order that a heap keeps for the next buffer, first
 * in first out, zeroed before they enter. Counterpart: the dmabuf_page_pool
 * of the kernels that have one.
 *
 * Blocks of parked buffers belong to the pool as well; the pool only counts
 * those (n_parked), the buffers hold them.
 *
 * Units:     pfn is a page frame number; n_* count blocks.
 * Ownership: the pool's owner gives blocks in and takes them all out before
 *            page_pool_fini(), which asserts it.
 * Threads:   not locked.
 */

#include "base/base.h"

struct page_pool {
	uint32_t *pfns; /* ring of capacity slots */
	uint32_t capacity;
	uint32_t first;
	uint32_t n_blocks; /* single blocks: in the ring */
	uint32_t n_parked; /* blocks of parked buffers */
	uint64_t hits;
	uint64_t misses;
};

void page_pool_init(struct page_pool *pool);
void page_pool_fini(struct page_pool *pool);

/* Return: false when there was no memory to remember the block. */
bool page_pool_push(struct page_pool *pool, uint64_t pfn) _must_check_;

/* Return: false when the pool has no single block; @ret_pfn untouched. */
bool page_pool_pop(struct page_pool *pool, uint64_t *ret_pfn) _must_check_;

/* Single and parked blocks together. */
static inline uint64_t page_pool_total(const struct page_pool *pool)
{
	return (uint64_t)pool->n_blocks + pool->n_parked;
}
