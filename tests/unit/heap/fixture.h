/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the heap's tests share: a node with one set of heaps, and short forms
 * of the calls that nearly every test makes.
 *
 * Ownership: fixture_open() and fixture_close() around each test.
 * Threads:   main thread.
 */

#include <string.h>

#include "heap/system_heap.h"
#include "mm/node.h"
#include "support/test.h"

struct fixture {
	struct node *node;
	struct heap_set *set;
	struct heap *heap; /* "system", alias "linux,cma" */
	unsigned int n_unparked;
	uint64_t last_unparked; /* id */
};

static inline void fixture_unpark(void *ctx, struct buffer *buffer)
{
	struct fixture *f = ctx;

	f->n_unparked++;
	f->last_unparked = buffer->id;
}

static const struct heap_set_ops fixture_ops = {.unpark = fixture_unpark};

static inline void fixture_open_params(struct fixture *f,
				       const struct node_params *params,
				       const char *policy_name)
{
	struct policy policy;
	struct node_error err;

	*f = (struct fixture){0};
	T_REQUIRE(policy_shipped(&policy, policy_name));
	T_REQUIRE(node_new(&f->node, params, &err) == 0);
	T_REQUIRE(heap_set_new(&f->set, f->node, &fixture_ops, f) == 0);
	T_REQUIRE(heap_new(&f->heap, f->set,
			   &(struct heap_params){.name = "system",
						 .aliases = "linux,cma",
						 .policy = &policy}) == 0);
}

static inline void fixture_open(struct fixture *f, uint64_t node_bytes,
				const char *policy_name)
{
	fixture_open_params(f, &(struct node_params){.size_bytes = node_bytes},
			    policy_name);
}

/* Everything must have come back to the node. */
static inline void fixture_close(struct fixture *f)
{
	struct node_page_counts counts;

	CU_ASSERT_TRUE(heap_set_check(f->set));
	f->set = heap_set_free(f->set);
	node_page_counts(f->node, &counts);
	CU_ASSERT_EQUAL(counts.allocated_pages, 0);
	CU_ASSERT_TRUE(node_check(f->node, NULL));
	f->node = node_free(f->node);
}

static inline void fixture_set(struct fixture *f, const char *key,
			       const char *value)
{
	struct policy policy = *heap_policy(f->heap);

	T_REQUIRE(policy_set(&policy, key, value, NULL) == 0);
	heap_set_policy(f->heap, &policy);
}

/* Return: the buffer, or NULL when the node has not enough. */
static inline struct buffer *take(struct fixture *f, uint32_t uid,
				  uint64_t len_bytes)
{
	struct heap_request req = {.uid = uid,
				   .len_bytes = len_bytes,
				   .start_ns = node_now_ns(f->node)};
	struct buffer *buffer = NULL;
	int r = heap_alloc(f->heap, &req, &buffer);

	CU_ASSERT_EQUAL(r, buffer ? 0 : HEAP_E_NO_MEMORY);
	return buffer;
}

static inline int give(struct fixture *f, struct buffer *buffer,
		       enum heap_finish how)
{
	heap_release(f->heap, buffer);
	return heap_finish(f->heap, buffer, how);
}

static inline uint64_t pool_blocks(struct fixture *f, unsigned int order)
{
	struct heap_stats stats;

	heap_get_stats(f->heap, &stats);
	return stats.pool[order].blocks;
}

static inline uint64_t pool_hits(struct fixture *f)
{
	struct heap_stats stats;
	uint64_t hits = 0;

	heap_get_stats(f->heap, &stats);
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		hits += stats.pool[order].hits;
	return hits;
}
