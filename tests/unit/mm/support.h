/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the tests of the model share: nodes made in one line, and requests.
 *
 * Ownership: test_node() returns a node that the caller frees.
 * Threads:   the main thread only.
 */

#include <stdio.h>

#include "mm/node.h"
#include "support/test.h"

/* A node of @size_bytes; @change may set other parameters first. */
static inline struct node *test_node(uint64_t size_bytes, const char *occupants,
				     void (*change)(struct node_params *))
{
	struct node_params params = {.size_bytes = size_bytes, .seed = 1};
	struct node_error err;
	struct node *node = NULL;

	(void)snprintf(params.occupants, sizeof(params.occupants), "%s",
		       occupants);
	if (change)
		change(&params);
	if (node_new(&node, &params, &err)) {
		fprintf(stderr, "node_new: %s\n", err.text);
		T_REQUIRE(node != NULL);
	}
	return node;
}

static inline void test_node_check(const struct node *node)
{
	const char *what = NULL;

	if (!node_check(node, &what)) {
		fprintf(stderr, "node_check: %s\n", what);
		CU_FAIL("an invariant of the node");
	}
}

/* Return: the block's frame, or UINT64_MAX. */
static inline uint64_t test_alloc(struct node *node, struct node_request *req,
				  unsigned int order, uint32_t gfp)
{
	uint64_t pfn = UINT64_MAX;

	if (node_alloc(node, req, order, gfp, &pfn))
		return UINT64_MAX;
	return pfn;
}

static inline uint64_t test_free_pages(const struct node *node)
{
	struct node_page_counts counts;

	node_page_counts(node, &counts);
	return counts.free_pages;
}

static inline uint64_t test_occupants(const struct node *node,
				      enum node_occupant kind)
{
	struct node_page_counts counts;

	node_page_counts(node, &counts);
	return counts.occupant_pages[kind];
}
