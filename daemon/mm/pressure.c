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

/*
 * When memory is low for long, the cache and the slab that are left are in use:
 * dropping them brings nothing. Other kinds stand for them until the release.
 */
static const struct {
	enum node_occupant kind;
	enum node_occupant held_as;
	uint16_t flag;
} held[] = {
	{NODE_OCCUPANT_FILE, NODE_OCCUPANT_ANON, FRAME_WAS_FILE},
	{NODE_OCCUPANT_ACTIVE, NODE_OCCUPANT_ANON, FRAME_WAS_ACTIVE},
	{NODE_OCCUPANT_SLAB, NODE_OCCUPANT_KERNEL, FRAME_WAS_SLAB},
};

static void hold_page(struct node *node, uint32_t pfn)
{
	uint16_t s = node->state[pfn];

	for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
		if (frame_occupant(s) != held[i].kind)
			continue;
		occupant_change(node, pfn, held[i].held_as);
		node->state[pfn] |= held[i].flag;
		return;
	}
}

static void let_page_go(struct node *node, uint32_t pfn)
{
	uint16_t s = node->state[pfn];

	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		if (s & held[i].flag)
			occupant_change(node, pfn, held[i].kind);
}

static void each_occupant(struct node *node,
			  void (*change)(struct node *, uint32_t))
{
	for (uint32_t i = 0; i < node->n_frames; i++)
		if (occupant_is_listed(node->state[i]))
			change(node, i);
}

/* A prime above every number of frames' factors: its multiples go through all
 * frames in an order that looks drawn by lot. */
#define SCATTER UINT64_C(2654435761)

void node_pressure_low_memory(struct node *node)
{
	struct task task = free_task(node);
	uint64_t seen = 0;

	each_occupant(node, hold_page);
	node_pressure_fill(node, 0);
	/* as after a long time: neither the free pages nor the order of the
	 * free lists follow the addresses */
	for (uint64_t k = 0; k < node->n_frames; k++) {
		uint32_t i = (uint32_t)(k * SCATTER % node->n_frames);
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

	each_occupant(node, let_page_go);
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
