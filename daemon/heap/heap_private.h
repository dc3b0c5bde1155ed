/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the files of this layer share and nobody else includes: the insides of
 * a heap and of a set, and the steps that move blocks between buffers, pools
 * and the node.
 *
 * Units:     *_bytes, *_pages, *_ns of the model.
 * Ownership: as in system_heap.h.
 * Threads:   not locked; the node's thread.
 */

#include "base/base.h"
#include "base/list.h"
#include "base/objtrack.h"
#include "base/slab_class.h"
#include "heap/system_heap.h"
#include "mm/kvalloc.h"
#include "mm/node.h"

#define HEAP_PARKED_BUCKETS 64u /* of parked buffers by uid and size */

struct heap_set {
	struct node *node;
	const struct heap_set_ops *ops;
	void *ctx;
	struct kvalloc kv;
	uint32_t page_size_bytes;
	uint64_t n_node_pages;
	uint64_t next_id;
	/* struct buffer; its pages are the node's, see metadata.c */
	struct slab_cache *buffer_slab;
	struct slab_classes *run_slabs; /* buffer::runs */
	/* who pays for pages of buffer_slab now; NULL: nobody */
	struct node_request *metadata_req;
	uint64_t n_metadata_pages;
	bool metadata_refused;  /* the node had no page for it */
	struct objtrack *track; /* may be NULL */
	unsigned int track_buffer, track_block; /* kinds */
	struct list_node heaps;                 /* heap::set_link */
	struct list_node buffers; /* buffer::set_link, by rising id */
};

struct heap {
	struct heap_set *set;
	struct list_node set_link; /* heap_set::heaps */
	char name[HEAP_NAME_BYTES];
	char aliases[HEAP_ALIASES_BYTES];
	uint32_t flags;
	struct policy policy;
	struct page_pool pools[POLICY_ORDER_COUNT];
	struct list_node parked; /* buffer::park_link, oldest first */
	struct list_node parked_by_size[HEAP_PARKED_BUCKETS];
	uint64_t refill_not_before_ns;
	uint64_t high_water_bytes;
	struct heap_stats stats; /* all but the pools, which count themselves */
};

/* heap_set.c */
/* Return: true while the zones together are above their low watermarks. */
bool heap_set_above_low(const struct heap_set *set);
/* The same of the high watermarks, after @n_pages more were taken. */
bool heap_set_above_high(const struct heap_set *set, uint64_t n_pages);

/* system_heap.c */
/* Enters a new or reused buffer in the heap's figures. */
void heap_count_alloc(const struct buffer *buffer);

/* metadata.c */
/* The caches that buffers come from. Return: 0 or -ENOMEM. */
int metadata_init(struct heap_set *set) _must_check_;
void metadata_fini(struct heap_set *set);
/* Return: true if the node's pages are as many as the caches hold. */
bool metadata_check(const struct heap_set *set);

/* buffer.c */
/*
 * @req: pays for a page of metadata if one is needed
 * Return: 0, HEAP_E_NO_MEMORY (the node has no page for it), or -ENOMEM.
 */
int buffer_new(struct buffer **ret, struct heap *heap, struct node_request *req,
	       uint32_t uid, uint64_t len_bytes) _must_check_;
/* Puts @buffer on its set's list by its id; 0: the next free one. */
void buffer_register(struct buffer *buffer, uint64_t id);
/* Frees the struct, whose blocks and charge are gone already. */
void buffer_destroy(struct buffer *buffer);
/* Gives every block and the charge back to the node. */
void buffer_give_to_node(struct buffer *buffer, struct node_request *req);
/* The same, but blocks go into the heap's pools as far as they fit. */
void buffer_give_to_pools(struct buffer *buffer);

/* pools.c */
/* Return: how many blocks the pool of @order may hold. */
uint64_t heap_pool_limit_blocks(const struct heap *heap, unsigned int order);
uint64_t heap_pool_pages(const struct heap *heap);
/* A block of @order, breaking up a parked buffer if there is no single one. */
bool heap_pool_take(struct heap *heap, unsigned int order, uint64_t *ret_pfn)
	_must_check_;
/* Into the pool if it has room, else to the node. */
void heap_pool_put(struct heap *heap, uint64_t pfn, unsigned int order);
/* Gives single blocks, then parked buffers back. Return: pages given back. */
uint64_t heap_pools_give_back(struct heap *heap, uint64_t n_pages);
/* Gives back what the policy no longer allows. */
void heap_pools_trim(struct heap *heap);

/* parked.c */
enum parked_to { PARKED_TO_POOLS, PARKED_TO_NODE };
/* Ends a parked buffer: tells its owner and hands on its blocks. */
void parked_break_up(struct buffer *buffer, enum parked_to to);
/* Return: the oldest parked buffer with blocks of @order, or NULL. */
struct buffer *parked_with_order(const struct heap *heap, unsigned int order);
/* Return: false if its blocks are more than a pool may hold. */
bool parked_add(struct buffer *buffer) _must_check_;
/* Blocks that the policy would get for @n_pages without reclaim. */
void heap_dry_run(const struct heap *heap, uint64_t n_pages,
		  uint32_t composition[POLICY_ORDER_COUNT]);
