/* SPDX-License-Identifier: MIT */
#include "mm/pcp.h"

#include "mm/buddy.h"

#define PCP_BATCH_MAX_BYTES MIB(1)

/* The inverse of pcp_list(). */
static unsigned int order_of(unsigned int list)
{
	unsigned int row = list / MT_COUNT;

	return row > COSTLY_ORDER ? PAGEBLOCK_ORDER : row;
}

/* zone_batchsize(): a thousandth of the zone, at most 1 MiB, then a quarter,
 * and one less than a power of two. */
static uint32_t default_batch(const struct zone *zone)
{
	uint32_t limit = (uint32_t)(PCP_BATCH_MAX_BYTES /
				    zone->node->params.page_size_bytes);
	uint32_t batch = MAX(MIN(zone->managed_pages >> 10, limit) / 4, 1u);
	uint32_t rounded = 1;

	while (rounded * 2 <= batch + batch / 2)
		rounded *= 2;
	return MAX(rounded - 1, 1u);
}

void pcp_setup(struct zone *zone)
{
	const struct node_params *params = &zone->node->params;

	for (unsigned int cpu = 0; cpu < zone->node->n_cpus; cpu++) {
		struct pcp *pcp = &zone->pcp[cpu];

		pcp->batch = params->pcp_batch ? params->pcp_batch
					       : default_batch(zone);
		/* zone_highsize(): up to the low mark may sit on the lists */
		pcp->high = params->pcp_high ? params->pcp_high
					     : MAX(zone->wmark[WMARK_LOW] /
							   zone->node->n_cpus,
						   pcp->batch * 4);
	}
}

void pcp_refill(struct task *task, struct zone *zone, struct pcp *pcp,
		unsigned int order, unsigned int mt, unsigned int alloc_flags)
{
	struct node *node = zone->node;
	uint32_t head = pcp->heads + pcp_list(order, mt);
	uint32_t n = pcp->batch > 1 ? MAX(pcp->batch >> order, 2u) : 1;

	task_charge(task, node->costs.zone_lock_ps);
	while (n-- > 0) {
		uint32_t pfn = buddy_alloc(task, zone, order, mt, alloc_flags);

		if (pfn == NO_PFN)
			return;
		node->state[pfn] = frame_make(FRAME_PCP, order, mt);
		/* in the order taken, so that they come out ascending */
		link_add_tail(node->links, head, pfn);
		pcp->count += 1u << order;
	}
}

void pcp_seed(struct zone *zone, unsigned int cpu, uint32_t pfn)
{
	struct node *node = zone->node;
	unsigned int mt = block_mt(node, pfn);

	node->state[pfn] = frame_make(FRAME_PCP, 0, mt);
	link_add_head(node->links, zone->pcp[cpu].heads + pcp_list(0, mt), pfn);
	zone->pcp[cpu].count++;
}

/*
 * free_pcppages_bulk(): @n pages back to the buddy, list by list in turn from
 * list @first on, oldest first.
 */
static void drain_bulk(struct task *task, struct zone *zone, struct pcp *pcp,
		       uint32_t n, unsigned int first)
{
	struct node *node = zone->node;
	unsigned int list = first;

	task_charge(task, node->costs.zone_lock_ps);
	for (n = MIN(n, pcp->count); n > 0; list = (list + 1) % PCP_LISTS) {
		uint32_t head = pcp->heads + list;
		uint32_t pages = 1u << order_of(list);

		while (n > 0 && !link_is_empty(node->links, head)) {
			uint32_t pfn = node->links[head].prev;
			unsigned int mt = frame_mt(node->state[pfn]);

			link_remove(node->links, pfn);
			node->state[pfn] = FRAME_BODY;
			pcp->count -= pages;
			n -= MIN(n, pages);
			buddy_free(task, zone, pfn, order_of(list), mt);
		}
	}
}

/* nr_pcp_free(): a batch, doubled each time nothing was allocated between. */
static uint32_t drain_amount(struct pcp *pcp, uint32_t high)
{
	uint32_t n, max;

	if (high < pcp->batch)
		return 1;
	max = high - pcp->batch;
	n = pcp->batch << pcp->free_factor;
	if (n < max)
		pcp->free_factor++;
	return MIN(MAX(n, pcp->batch), MAX(max, pcp->batch));
}

void pcp_trim(struct task *task, struct zone *zone, struct pcp *pcp,
	      uint32_t high, unsigned int list)
{
	uint32_t n = high ? drain_amount(pcp, high) : pcp->count;

	drain_bulk(task, zone, pcp, n, list);
}

void pcp_drain(struct task *task, struct zone *zone, unsigned int cpu)
{
	struct pcp *pcp = &zone->pcp[cpu];

	if (pcp->count)
		drain_bulk(task, zone, pcp, pcp->count, 0);
}

void pcp_drain_zone(struct task *task, struct zone *zone)
{
	for (unsigned int cpu = 0; cpu < zone->node->n_cpus; cpu++) {
		if (!zone->pcp[cpu].count)
			continue;
		task_charge(task, zone->node->costs.drain_cpu_ps);
		pcp_drain(task, zone, cpu);
	}
}

void pcp_drain_all(struct task *task, struct node *node)
{
	for (unsigned int i = 0; i < node->n_zones; i++)
		pcp_drain_zone(task, &node->zones[i]);
}
