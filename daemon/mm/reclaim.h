/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reclaim: takes pages from occupants, oldest first, in batches of 32 at a
 * falling priority. Counterpart: mm/vmscan.c; functions name theirs.
 *
 * Units:     pages; priority 12 (gentle) to 0.
 * Ownership: a scan_control belongs to its caller.
 * Threads:   as the node.
 */

#include "mm/zone.h"

#define RECLAIM_BATCH        32u /* SWAP_CLUSTER_MAX */
#define RECLAIM_DEF_PRIORITY 12
#define RECLAIM_MAX_RETRIES  16u /* MAX_RECLAIM_RETRIES */

struct scan_control {
	struct task *task;
	struct node *node;
	unsigned int order;
	unsigned int highest_zone;
	int priority;
	bool may_swap;
	bool kswapd;
	bool compaction_ready; /* enough is free: compact instead */
	uint64_t nr_to_reclaim;
	uint64_t nr_reclaimed;
	uint64_t nr_scanned;

	/* one pass over the lists: what is left of it (nr[] of
	 * get_scan_count()) */
	uint64_t left_anon;
	uint64_t left_active;
	uint64_t left_inactive;
	uint64_t pass_reclaimed; /* nr_reclaimed when it began */
	bool proportional;       /* scan_adjusted: do not stop at the target */
};

/* get_scan_count(): sets up a pass of shrink_node() at sc->priority. */
void reclaim_begin_pass(struct scan_control *sc);
/* One round of shrink_lruvec(): a batch from each list.
 * Return: true while the pass goes on. */
bool reclaim_batch(struct scan_control *sc);
/* shrink_slab(), and should_continue_reclaim().
 * Return: true if the same pass should be done once more. */
bool reclaim_end_pass(struct scan_control *sc);

/**
 * reclaim_direct() - try_to_free_pages() for one request
 *
 * Return: pages reclaimed; 1 when compaction could run already.
 */
uint64_t reclaim_direct(struct task *task, struct node *node,
			const struct alloc_context *ac);

/* zone_reclaimable_pages() */
uint64_t reclaim_zone_pages(const struct zone *zone);
