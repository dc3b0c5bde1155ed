/* SPDX-License-Identifier: MIT */
#include "mm/buddy.h"
#include "mm/occupants.h"
#include "mm/pcp.h"

/*
 * Presets are built from occupants alone: what then happens is the model's own
 * doing. Their pages carry FRAME_PRESSURE.
 */

/* Of the pages that low memory fills, one in this many is free again: enough to
 * compact with, far too few for a block to be whole. */
#define LOW_MEMORY_RELEASE_ONE_IN 8u

static struct task free_task(const struct node *node)
{
	return (struct task){.base_ns = node->now_ns, .captured_pfn = NO_PFN};
}

void node_pressure_fill(struct node *node, uint64_t leave_bytes)
{
	uint64_t leave = leave_bytes / node->params.page_size_bytes;
	struct node_page_counts counts;

	node_page_counts(node, &counts);
	if (counts.free_pages > leave)
		(void)occupants_occupy(node, NODE_OCCUPANT_ANON,
				       counts.free_pages - leave,
				       FRAME_PRESSURE);
}

void node_pressure_low_memory(struct node *node)
{
	struct task task = free_task(node);
	uint64_t seen = 0;

	node_pressure_fill(node, 0);
	for (uint32_t i = 0; i < node->n_frames; i++) {
		uint16_t s = node->state[i];

		if (!occupant_is_listed(s) || !(s & FRAME_PRESSURE))
			continue;
		if (seen++ % LOW_MEMORY_RELEASE_ONE_IN == 0)
			occupant_free(&task, node, i);
	}
	pcp_drain_all(&task, node);
}

/* One unmovable page at the head of each chunk, the rest of it free again. */
static void fragment_block(struct task *task, struct zone *zone, uint32_t pfn,
			   unsigned int order, unsigned int max_order)
{
	struct node *node = zone->node;
	uint32_t chunk = 2u << max_order;

	for (uint32_t i = pfn; i < pfn + (1u << order); i += chunk) {
		occupant_add(node, i, NODE_OCCUPANT_KERNEL, FRAME_PRESSURE);
		for (unsigned int o = 0; o <= max_order; o++)
			buddy_free(task, zone, i + (1u << o), o,
				   block_mt(node, i));
	}
}

void node_pressure_fragment(struct node *node, unsigned int max_order)
{
	struct task task = free_task(node);

	pcp_drain_all(&task, node);
	for (unsigned int i = 0; i < node->n_zones; i++) {
		struct zone *zone = &node->zones[i];

		for (unsigned int o = NODE_MAX_ORDER; o > max_order; o--) {
			for (unsigned int mt = 0; mt < MT_COUNT; mt++) {
				uint32_t head = zone_head(zone, mt, o);

				while (zone->free_blocks[mt][o] > 0) {
					uint32_t pfn = node->links[head].next;

					buddy_del(zone, pfn);
					fragment_block(&task, zone, pfn, o,
						       max_order);
				}
			}
		}
	}
}

void node_pressure_release(struct node *node)
{
	struct task task = free_task(node);

	for (uint32_t i = 0; i < node->n_frames; i++)
		if (occupant_is_listed(node->state[i]) &&
		    (node->state[i] & FRAME_PRESSURE))
			occupant_free(&task, node, i);
	pcp_drain_all(&task, node);
}

void node_pressure_render(const struct node *node, struct strbuf *sb)
{
	uint64_t pages[NODE_OCCUPANTS] = {0};
	bool any = false;

	for (uint32_t i = 0; i < node->n_frames; i++)
		if (frame_is_occupant(node->state[i]) &&
		    (node->state[i] & FRAME_PRESSURE))
			pages[frame_occupant(node->state[i])]++;
	for (unsigned int k = 0; k < NODE_OCCUPANTS; k++) {
		if (pages[k] == 0)
			continue;
		strbuf_append(sb, "%s%s: %llu pages", any ? ", " : "",
			      node_occupant_name((enum node_occupant)k),
			      (unsigned long long)pages[k]);
		any = true;
	}
	strbuf_append_string(sb, any ? " under pressure\n" : "no pressure\n");
}
