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

/*
 * Lists of one CPU: order by order, the types within; the huge page's last. A
 * free page's state holds the type it was freed with, not its list's type
 * alone: both are the same here, as there are no isolated pageblocks.
 */
static inline unsigned int pcp_list(unsigned int order, unsigned int mt)
{
	return MIN(order, COSTLY_ORDER + 1) * MT_COUNT + mt;
}

/* rmqueue_bulk() */
void pcp_refill(struct task *task, struct zone *zone, struct pcp *pcp,
		unsigned int order, unsigned int mt, unsigned int alloc_flags);

/* Drains as nr_pcp_free() says after a free beyond @high; 0: all. Begins with
 * list @list. */
void pcp_trim(struct task *task, struct zone *zone, struct pcp *pcp,
	      uint32_t high, unsigned int list);

/**
 * pcp_alloc() - rmqueue_pcplist()
 *
 * Return: the first frame, its state FRAME_BODY, or NO_PFN when the buddy could
 * not refill the list.
 */
static inline uint32_t pcp_alloc(struct task *task, struct zone *zone,
				 unsigned int order, unsigned int mt,
				 unsigned int alloc_flags)
{
	struct node *node = zone->node;
	struct pcp *pcp = &zone->pcp[task->cpu];
	uint32_t head = pcp->heads + pcp_list(order, mt);
	uint32_t pfn;

	pcp->free_factor >>= 1;
	if (unlikely(link_is_empty(node->links, head))) {
		pcp_refill(task, zone, pcp, order, mt, alloc_flags);
		if (link_is_empty(node->links, head))
			return NO_PFN;
	}
	pfn = node->links[head].next;
	link_remove(node->links, pfn);
	node->state[pfn] = FRAME_BODY;
	pcp->count -= 1u << order;
	task_charge(task, node->costs.pcp_op_ps);
	return pfn;
}

/* A single page that was on @cpu's list before the node began. */
void pcp_seed(struct zone *zone, unsigned int cpu, uint32_t pfn);

/* free_unref_page() */
static inline void pcp_free(struct task *task, struct zone *zone, uint32_t pfn,
			    unsigned int order)
{
	struct node *node = zone->node;
	struct pcp *pcp = &zone->pcp[task->cpu];
	unsigned int mt = block_mt(node, pfn);
	unsigned int list = pcp_list(order, mt);
	/* many frees of small blocks in a row: let them join */
	bool all = pcp->free_factor && order > 0 && order <= COSTLY_ORDER;
	uint32_t high = all ? 0 : pcp->high;

	node->state[pfn] = frame_make(FRAME_PCP, order, mt);
	link_add_head(node->links, pcp->heads + list, pfn);
	pcp->count += 1u << order;
	task_charge(task, node->costs.pcp_op_ps);
	if (zone->reclaim_active)
		high = MIN(high, pcp->batch * 4);
	if (unlikely(pcp->count >= high))
		pcp_trim(task, zone, pcp, high, list);
}

/* drain_pages_zone() of one CPU; drain_all_pages() of all zones and CPUs. */
void pcp_drain(struct task *task, struct zone *zone, unsigned int cpu);
void pcp_drain_zone(struct task *task, struct zone *zone);
void pcp_drain_all(struct task *task, struct node *node);
