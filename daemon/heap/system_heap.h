/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * System heap: fills buffers with the largest blocks that its policy and the
 * node allow. Counterpart: system_heap_allocate() and
 * alloc_largest_available() of drivers/dma-buf/heaps/system_heap.c, with page
 * pools and deferred free in front of the node.
 *
 * A heap_set is all heaps of one node: they share the node, the buffer ids,
 * the metadata charges and the shrinker; each has its own policy and pools.
 *
 * Units:     *_bytes; *_ns is time of the model; order is log2 of pages.
 * Ownership: the set owns its heaps and buffers and borrows the node.
 *            heap_set_free() gives every block back to the node.
 * Threads:   not locked; the node's thread.
 */

#include "base/base.h"
#include "heap/buffer.h"
#include "heap/page_pool.h"
#include "heap/policy.h"

#define HEAP_NAME_BYTES    32u
#define HEAP_ALIASES_BYTES 128u
/* heap_request::fallback: NODE_FALLBACK_* of mm/node.h, and: */
#define HEAP_FALLBACK_TOO_LARGE 1u /* the rest of the buffer is smaller */

#define HEAP_FLAG_UNCACHED 0x1u /* shown to clients; same memory */

struct node;
struct heap;
struct heap_set;
struct objtrack;
struct strbuf;
struct slab_registry;

enum {
	HEAP_E_OK_,
	HEAP_E_NO_MEMORY,   /* the node cannot give that much */
	HEAP_E_TOO_LARGE,   /* more than the whole node */
	HEAP_E_NOT_PARKED,  /* see heap_finish() */
	HEAP_E_EXISTS,      /* a heap of that name or alias */
	HEAP_E_BAD_NAME,    /* empty, too long, or a character not allowed */
	HEAP_E_COMPOSITION, /* the blocks do not add up to the length */
};

struct heap_set_ops {
	/*
	 * A parked buffer's blocks are wanted: the owner must drop the memory
	 * of @buffer (buffer->owner) and forget it; it is gone on return.
	 * Called from within any function here that allocates, frees, shrinks
	 * or sets a policy; must not call back into the heap. NULL: nothing is
	 * to be told.
	 */
	void (*unpark)(void *ctx, struct buffer *buffer);
};

struct heap_params {
	const char *name;    /* [A-Za-z0-9._,-], at most 31 */
	const char *aliases; /* separated by spaces; NULL: none */
	const struct policy *policy;
	uint32_t flags; /* HEAP_FLAG_* */
};

struct heap_request {
	uint32_t uid;
	unsigned int cpu;   /* of the modelled machine */
	uint64_t len_bytes; /* > 0; rounded up to whole pages */
	/*
	 * When it came, on the node's clock. Received: when the node began with
	 * it, which is later if the node was still at an earlier request.
	 */
	uint64_t start_ns;
	/* received on success and on HEAP_E_NO_MEMORY: */
	uint64_t spent_ns; /* the modelled device's whole latency */
	uint64_t stall_ns; /* of it in reclaim and compaction */
	uint8_t fallback[POLICY_ORDER_COUNT]; /* as HEAP_FALLBACK_* */
};

struct heap_pool_stats {
	uint64_t blocks; /* single and parked */
	uint64_t bytes;
	uint64_t hits;
	uint64_t misses;
	uint64_t limit_bytes;
};

struct heap_stats {
	uint64_t buffers; /* live and released */
	uint64_t bytes;   /* of them */
	uint64_t parked_buffers;
	uint64_t parked_bytes;
	uint64_t pool_bytes; /* of all pools, parked buffers included */
	uint64_t allocs;
	uint64_t failures;
	uint64_t failures_though_free; /* enough pages were free */
	uint64_t largest_free_at_high_water_bytes;
	uint64_t blocks_taken[POLICY_ORDER_COUNT];
	struct heap_pool_stats pool[POLICY_ORDER_COUNT];
};

enum heap_finish {
	HEAP_FINISH_PARK, /* the memory is zeroed and kept with its blocks */
	HEAP_FINISH_POOL, /* zeroed: blocks into the pools */
	HEAP_FINISH_NODE, /* blocks to the node at once */
};

/**
 * heap_set_new() - heaps on @node
 * @ret: receives the set on success; untouched on failure
 * @ops: may be NULL; must outlive the set
 *
 * Registers the pools as the node's shrinker.
 * Return: 0 or -ENOMEM.
 */
int heap_set_new(struct heap_set **ret, struct node *node,
		 const struct heap_set_ops *ops, void *ctx) _must_check_;

/* Return: NULL, always. @set may be NULL. Nothing is told to ops. */
struct heap_set *heap_set_free(struct heap_set *set);
DEFINE_CLEANUP(struct heap_set *, heap_set_free);

/* Lists the caches of buffers and their runs, once, for slabinfo. */
void heap_set_enlist(struct heap_set *set, struct slab_registry *registry);

/*
 * Appends lines "name value" on what buffers cost the node besides their
 * blocks: pages of metadata, and what became of requests for block tables of a
 * page and more (mm/kvalloc.h), with the stall of each kind.
 */
void heap_set_render_vmstat(const struct heap_set *set, struct strbuf *out);

/**
 * heap_set_track() - tell an object tracker of every buffer and block
 * @track: must outlive the set; NULL: none
 *
 * As worker 0, with the two kinds given. Before the first buffer (asserted).
 */
void heap_set_track(struct heap_set *set, struct objtrack *track,
		    unsigned int buffer_kind, unsigned int block_kind);

/* Return: the heap with that name or alias, or NULL. */
struct heap *heap_set_find(struct heap_set *set, const char *name);

/* Return: heap @i in the order of their making, or NULL after the last. */
struct heap *heap_set_get(struct heap_set *set, unsigned int i);

/* Return: the buffer with the smallest id above @after_id, or NULL. */
struct buffer *heap_set_next_buffer(struct heap_set *set, uint64_t after_id);

/* The same from one that is at hand, in constant time. */
struct buffer *heap_set_buffer_after(const struct heap_set *set,
				     const struct buffer *buffer);

/* Pages that pools, buffers and metadata of all heaps hold. */
uint64_t heap_set_pages(const struct heap_set *set);

/**
 * heap_set_check() - verify every invariant (tests and debug builds)
 *
 * Among them that the pages of free lists, per-CPU lists, pools, buffers,
 * occupants and metadata add up to the node. O(buffers + pages).
 * Return: true if all hold.
 */
bool heap_set_check(const struct heap_set *set);

/**
 * heap_new() - add a heap to @set
 * @ret: receives it on success, borrowed from the set; untouched on failure
 *
 * Return: 0, HEAP_E_EXISTS, HEAP_E_BAD_NAME, or -ENOMEM.
 */
int heap_new(struct heap **ret, struct heap_set *set,
	     const struct heap_params *params) _must_check_;

const char *heap_name(const struct heap *heap);
const char *heap_aliases(const struct heap *heap);
uint32_t heap_flags(const struct heap *heap);
const struct policy *heap_policy(const struct heap *heap);

/*
 * Takes over @policy at once: pools above their new limit and pools of orders
 * that it does not have give their blocks back to the node.
 */
void heap_set_policy(struct heap *heap, const struct policy *policy);

/**
 * heap_alloc() - allocate one buffer, all of it or nothing
 * @req: see there
 * @ret: receives the buffer, LIVE, on success; untouched on failure
 *
 * Walks the policy's orders; an order is skipped when it is larger than what
 * remains or than the order of the last block taken. Each block comes from the
 * pool of its order, else from the node with that order's flags.
 *
 * Return: 0, HEAP_E_NO_MEMORY, HEAP_E_TOO_LARGE, or -ENOMEM.
 */
int heap_alloc(struct heap *heap, struct heap_request *req, struct buffer **ret)
	_must_check_;

/**
 * heap_find_parked() - the parked buffer that a request should take whole
 *
 * Of the same uid and size, the best composition, the one parked last among
 * equals. NULL as well if the policy, walked
 * over pools (those of parked buffers too) and free lists, would give a better
 * composition.
 */
struct buffer *heap_find_parked(struct heap *heap, uint32_t uid,
				uint64_t len_bytes);

/*
 * PARKED -> LIVE, with its old id (which names its memory) and no name; a pool
 * hit of each of its blocks.
 */
void heap_take_parked(struct heap *heap, struct buffer *buffer);

/* LIVE -> RELEASED: the blocks stay its own until heap_finish(). */
void heap_release(struct heap *heap, struct buffer *buffer);

/**
 * heap_finish() - end a RELEASED buffer
 *
 * PARK and POOL fall back to NODE while the node is short of memory (below its
 * low watermark) and for orders that the policy does not have. Parking makes
 * room by giving older blocks of the pools back to the node; a buffer larger
 * than a pool's limit is not parked, its blocks are pooled as far as they fit.
 *
 * Return: 0; HEAP_E_NOT_PARKED when PARK was asked and the caller must drop
 * the buffer's memory instead. Except after a successful PARK the buffer is
 * gone.
 */
int heap_finish(struct heap *heap, struct buffer *buffer, enum heap_finish how)
	_must_check_;

/**
 * heap_adopt() - a buffer of an earlier daemon
 * @id:          its old id; it gets a new one where that is taken or 0
 * @composition: blocks by order that it had
 *
 * Takes blocks of these orders from the node without reclaim; an order that is
 * not free is made up of smaller ones.
 * Return: 0, HEAP_E_COMPOSITION, HEAP_E_NO_MEMORY, or -ENOMEM.
 */
int heap_adopt(struct heap *heap, uint32_t uid, uint64_t id, uint64_t len_bytes,
	       const uint32_t composition[POLICY_ORDER_COUNT],
	       struct buffer **ret) _must_check_;

/**
 * heap_shrink() - give pool blocks back until the pools hold @to_bytes
 *
 * Return: bytes given back.
 */
uint64_t heap_shrink(struct heap *heap, uint64_t to_bytes);

/**
 * heap_refill() - fill pools of orders > 0 up to their marks
 * @now_ns: the model's time
 *
 * A bounded step of a background task: it takes no block that would bring the
 * node below its high watermark, never reclaims, and backs off for 10 ms when
 * it cannot go on.
 *
 * Return: when to call again, in the model's time; UINT64_MAX: no need before
 * the next allocation.
 */
uint64_t heap_refill(struct heap *heap, uint64_t now_ns);

void heap_get_stats(const struct heap *heap, struct heap_stats *ret);
