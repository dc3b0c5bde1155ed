/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Buffer: what one allocation got from a heap: page blocks of the node, and
 * where they stand in its life.
 *
 *   heap_alloc() -> LIVE -- heap_release() -> RELEASED -- heap_finish() -> gone
 *                    ^                                        |
 *                    +---- heap_take_parked() ---- PARKED <---+
 *
 * Blocks are kept as runs of neighbouring blocks of one order, in the order in
 * which they were got; since the order never rises within a buffer, that is
 * from large to small. The memory of the table is charged to the node as the
 * kernel would pay for it (see mm/kvalloc.h).
 *
 * Units:     *_bytes, *_ns of the model; order is log2 of pages.
 * Ownership: the heap's. heap_alloc() and heap_adopt() lend the buffer to the
 *            caller until heap_finish() or the unpark callback ends it.
 * Threads:   not locked; one thread uses a node and its heaps.
 */

#include "base/base.h"
#include "base/list.h"

#include "heap/policy.h"
#include "mm/kvalloc.h"

#define BUFFER_NAME_BYTES 32u

/* What the kernel keeps per block: one pointer of a page array. */
#define BUFFER_TABLE_ENTRY_BYTES 8u

struct heap;

enum buffer_state {
	BUFFER_LIVE,
	BUFFER_RELEASED, /* last reference gone, not yet pooled */
	BUFFER_PARKED,   /* whole in the pool, for the same uid and size */
};

/* Where the blocks came from: the values of enum dmaheap_source. */
enum buffer_source {
	BUFFER_SOURCE_NODE,
	BUFFER_SOURCE_POOL,
	BUFFER_SOURCE_PARKED,
	BUFFER_SOURCE_MIXED,
	BUFFER_SOURCE_ADOPTED,
};

/* @n_blocks neighbouring blocks of one order; the first starts at @pfn. */
struct buffer_run {
	uint32_t pfn;
	uint32_t n_blocks : 28;
	uint32_t order : 4;
};

struct buffer {
	uint64_t id;        /* unique over all heaps of a set */
	uint64_t len_bytes; /* whole pages */
	struct heap *heap;
	void *owner; /* the caller's own; NULL at first */
	uint32_t uid;
	uint8_t state;  /* enum buffer_state */
	uint8_t source; /* enum buffer_source */
	uint32_t n_runs;
	struct buffer_run *runs;
	struct kv_block table; /* charge of the block table */
	uint32_t composition[POLICY_ORDER_COUNT]; /* blocks by order */
	char name[BUFFER_NAME_BYTES];             /* set by the caller */
	struct list_node set_link;    /* heap_set::buffers, by rising id */
	struct list_node park_link;   /* heap::parked, oldest first */
	struct list_node bucket_link; /* heap::parked_by_size, best first */
};

/* Return: number of blocks of all orders. */
uint64_t buffer_n_blocks(const struct buffer *buffer);

/* Return: bytes that the composition adds up to; UINT64_MAX if it wraps. */
uint64_t composition_bytes(const uint32_t composition[POLICY_ORDER_COUNT],
			   uint32_t page_size_bytes);

/*
 * Compares by the number of blocks, the largest order first: more is better.
 * Return: < 0 if @a is worse than @b, 0 if equal, > 0 if better.
 */
int composition_compare(const uint32_t a[POLICY_ORDER_COUNT],
			const uint32_t b[POLICY_ORDER_COUNT]);

/*
 * Append a block, merging it with the last run where it continues it.
 * Return: 0 or -ENOMEM.
 */
int buffer_append(struct buffer *buffer, uint64_t pfn, unsigned int order)
	_must_check_;
