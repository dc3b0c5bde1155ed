/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Per-CPU page lists in front of the buddy, for orders 0..3 and the huge
 * page's: refilled and drained in batches. Counterparts in mm/page_alloc.c.
 *
 * Units:     pages; orders.
 * Ownership: a page on a list is free; its pageblock's type when freed says on
 *            which.
 * Threads:   as the node: CPUs are only an argument.
 */

#include "mm/zone.h"

/* zone_batchsize(), zone_highsize(), or what the parameters say. */
void pcp_setup(struct zone *zone);

/* pcp_allowed_order() */
static inline bool pcp_allows(unsigned int order)
{
	return order <= COSTLY_ORDER || order == PAGEBLOCK_ORDER;
}

/**
 * pcp_alloc() - rmqueue_pcplist()
 *
 * Return: the first frame, its state FRAME_BODY, or NO_PFN when the buddy could
 * not refill the list.
 */
uint32_t pcp_alloc(struct task *task, struct zone *zone, unsigned int order,
		   unsigned int mt, unsigned int alloc_flags);

/* free_unref_page() */
void pcp_free(struct task *task, struct zone *zone, uint32_t pfn,
	      unsigned int order);

/* drain_pages_zone() of one CPU; drain_all_pages() of all zones and CPUs. */
void pcp_drain(struct task *task, struct zone *zone, unsigned int cpu);
void pcp_drain_zone(struct task *task, struct zone *zone);
void pcp_drain_all(struct task *task, struct node *node);
