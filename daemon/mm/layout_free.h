/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The free frames of a zone that is built from a snapshot: pageblock types,
 * free blocks, per-CPU lists; and pageblocks set aside for reserved frames.
 *
 * Units:     frames; pageblocks of a zone count from 0.
 * Ownership: works on the node's arrays and the caller's.
 * Threads:   as the node.
 */

#include "base/rng.h"
#include "mm/layout.h"

enum layout_block { BLOCK_PARTLY, BLOCK_FREE, BLOCK_ASIDE };

struct frames {
	struct node *node;
	struct zone *zone;
	const struct snapshot_zone *snap;
	struct rng rng;
	uint8_t *claimed; /* per frame of the node: free, no place for others */
	uint8_t *whole;   /* per pageblock of the zone: enum layout_block */
	uint32_t n_blocks;
	uint32_t n_made; /* pageblocks that proactive compaction freed */
};

static inline uint32_t block_pfn(const struct frames *f, uint32_t block)
{
	return f->zone->start_pfn + (block << PAGEBLOCK_ORDER);
}

/* Pageblocks' types, by the snapshot's counts. */
void layout_place_types(struct frames *f);

/**
 * layout_place_free() - everything in the zone that is free
 * @rest:       pages of unknown use, less what turns out to be on per-CPU lists
 *
 * Return: 0, NODE_E_INVALID (free blocks that the zone cannot hold).
 */
int layout_place_free(struct frames *f, uint64_t *rest, struct node_error *err)
	_must_check_;
