/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Occupants: pages of the rest of the system, one list per kind, newest first.
 * Counterpart: the LRU lists of struct lruvec, and what is not on them.
 *
 * Units:     frames, all of order 0.
 * Ownership: an occupant's frame belongs to its list.
 * Threads:   as the node.
 */

#include "mm/zone.h"

/* Clean and dirty page cache share a list, as in the kernel. */
static inline uint32_t occupant_list(const struct node *node, unsigned int kind)
{
	return node->lru_heads +
	       (kind == NODE_OCCUPANT_DIRTY ? NODE_OCCUPANT_FILE : kind);
}

/* An occupant that is on its list. */
static inline bool occupant_is_listed(uint16_t state)
{
	return frame_is_occupant(state) && !(state & FRAME_OFF_LIST);
}

/* What is or was on an LRU list: compaction may move it. */
static inline bool occupant_is_movable(uint16_t state)
{
	return frame_is_occupant(state) &&
	       frame_occupant(state) != NODE_OCCUPANT_SLAB &&
	       frame_occupant(state) != NODE_OCCUPANT_KERNEL;
}

/* The gfp flag that says which pageblocks a kind is allocated from. */
uint32_t occupant_gfp(unsigned int kind);

/* @pfn, taken from the free lists, becomes @kind's newest page. */
void occupant_add(struct node *node, uint32_t pfn, unsigned int kind,
		  uint16_t flags);
/* Takes it off; the frame becomes FRAME_BODY and the caller's. */
void occupant_remove(struct node *node, uint32_t pfn);
/* Takes it off and frees it through the per-CPU lists. */
void occupant_free(struct task *task, struct node *node, uint32_t pfn);
/* isolate_lru_page(): off its list, to be put back or moved. */
void occupant_isolate(struct node *node, uint32_t pfn);
/* An isolated page goes back to the head of its list. */
void occupant_put_back(struct node *node, uint32_t pfn);
/* Migration: isolated @from's page is at @to now; @from is FRAME_BODY. */
void occupant_move(struct node *node, uint32_t from, uint32_t to);
/* Another kind, at the head of that kind's list. */
void occupant_change(struct node *node, uint32_t pfn, unsigned int kind);

/* All zones' pages of a kind. */
uint64_t occupant_pages(const struct node *node, unsigned int kind);

/* node_occupy() with flags for the frames. */
uint64_t occupants_occupy(struct node *node, unsigned int kind,
			  uint64_t n_pages, uint16_t flags);

/* out_of_memory(): kills the process with most memory, which is the oldest
 * share of the anonymous pages. Return: pages freed. */
uint64_t occupant_oom_kill(struct task *task, struct node *node);
