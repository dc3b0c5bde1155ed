/* SPDX-License-Identifier: MIT */
#include "mm/node.h"

#include "mm/occupants.h"
#include "mm/zone.h"

/*
 * The invariants, in the order in which they are verified:
 * - every list is a closed circle and holds only frames of its kind;
 * - walking a zone from head to head meets each frame once: heads do not
 *   overlap, and nothing but FRAME_BODY lies within a block;
 * - two free buddies of one order do not exist;
 * - each list has as many frames as are counted for it, each frame of a listed
 *   kind is on a list, and counts add up to the zone.
 */

struct check {
	const struct node *node;
	const char *what;
};

static bool fail(struct check *c, const char *what)
{
	c->what = what;
	return false;
}

/* Return: the length, or UINT64_MAX if it is no closed circle. */
static uint64_t list_length(const struct node *node, uint32_t head)
{
	uint64_t n = 0;

	for (uint32_t i = node->links[head].next; i != head;
	     i = node->links[i].next) {
		if (i >= node->n_frames || n > node->n_frames ||
		    node->links[node->links[i].next].prev != i)
			return UINT64_MAX;
		n++;
	}
	return n;
}

static bool list_holds(const struct node *node, uint32_t head,
		       unsigned int type, unsigned int order, unsigned int mt)
{
	for (uint32_t i = node->links[head].next; i != head;
	     i = node->links[i].next)
		if (node->state[i] != frame_make(type, order, mt))
			return false;
	return true;
}

static bool check_free_lists(struct check *c, const struct zone *zone)
{
	uint64_t pages = 0;

	for (unsigned int mt = 0; mt < MT_COUNT; mt++) {
		for (unsigned int o = 0; o < NODE_ORDERS; o++) {
			uint32_t head = zone_head(zone, mt, o);
			uint64_t n = list_length(c->node, head);

			if (n != zone->free_blocks[mt][o])
				return fail(c, "free list: length");
			if (!list_holds(c->node, head, FRAME_BUDDY, o, mt))
				return fail(c, "free list: a foreign frame");
			if (!!(zone->free_mask[mt] & 1u << o) != (n > 0))
				return fail(c, "free list: mask");
			pages += n << o;
		}
	}
	if (pages != zone->free_pages)
		return fail(c, "free pages of a zone");
	return true;
}

static bool check_pcp(struct check *c, const struct zone *zone)
{
	for (unsigned int cpu = 0; cpu < c->node->n_cpus; cpu++) {
		const struct pcp *pcp = &zone->pcp[cpu];
		uint64_t pages = 0;

		for (unsigned int l = 0; l < PCP_LISTS; l++) {
			unsigned int order = l / MT_COUNT;
			uint64_t n = list_length(c->node, pcp->heads + l);

			if (order > COSTLY_ORDER)
				order = PAGEBLOCK_ORDER;
			if (n > c->node->n_frames)
				return fail(c, "per-CPU list: not closed");
			if (!list_holds(c->node, pcp->heads + l, FRAME_PCP,
					order, l % MT_COUNT))
				return fail(c, "per-CPU list: a foreign frame");
			pages += n << order;
		}
		if (pages != pcp->count)
			return fail(c, "per-CPU list: count");
	}
	return true;
}

/* What the walk over a zone's frames counted. */
struct census {
	uint64_t pages[16]; /* by enum frame_type */
	uint64_t off_list[NODE_OCCUPANTS];
};

static bool check_frames(struct check *c, const struct zone *zone,
			 struct census *census)
{
	const struct node *node = c->node;

	for (uint32_t i = zone->start_pfn; i < zone->end_pfn;) {
		uint16_t s = node->state[i];
		unsigned int order = frame_order(s);
		uint32_t end = i + (1u << order);

		if (frame_type(s) == FRAME_BODY)
			return fail(c, "a frame that belongs to nothing");
		if (i % (1u << order) != 0 || end > zone->end_pfn)
			return fail(c, "a block out of place");
		for (uint32_t b = i + 1; b < end; b++)
			if (node->state[b] != FRAME_BODY)
				return fail(c, "blocks overlap");
		if (frame_type(s) == FRAME_BUDDY && order < NODE_MAX_ORDER) {
			uint16_t other = node->state[i ^ (1u << order)];

			if (frame_type(other) == FRAME_BUDDY &&
			    frame_order(other) == order)
				return fail(c, "two free buddies");
		}
		census->pages[frame_type(s)] += 1u << order;
		if (frame_is_occupant(s) && (s & FRAME_OFF_LIST))
			census->off_list[frame_occupant(s)]++;
		i = end;
	}
	return true;
}

static bool check_zone(struct check *c, const struct zone *zone,
		       struct census *all)
{
	struct census own = {0};
	uint64_t pcp = 0;

	if (!check_free_lists(c, zone) || !check_pcp(c, zone) ||
	    !check_frames(c, zone, &own))
		return false;
	for (unsigned int cpu = 0; cpu < c->node->n_cpus; cpu++)
		pcp += zone->pcp[cpu].count;
	if (own.pages[FRAME_BUDDY] != zone->free_pages ||
	    own.pages[FRAME_PCP] != pcp)
		return fail(c, "free frames that are on no list");
	for (unsigned int k = 0; k < NODE_OCCUPANTS; k++)
		if (own.pages[FRAME_OCCUPANT + k] != zone->occupants[k])
			return fail(c, "occupants of a zone");
	if (own.pages[FRAME_RESERVED] !=
	    zone->end_pfn - zone->start_pfn - zone->managed_pages)
		return fail(c, "reserved frames of a zone");
	for (unsigned int t = 0; t < ARRAY_SIZE(own.pages); t++)
		all->pages[t] += own.pages[t];
	for (unsigned int k = 0; k < NODE_OCCUPANTS; k++)
		all->off_list[k] += own.off_list[k];
	return true;
}

static bool check_occupant_lists(struct check *c, const struct census *all)
{
	const struct node *node = c->node;

	for (unsigned int k = 0; k < NODE_OCCUPANTS; k++) {
		uint64_t n = list_length(node, node->lru_heads + k);
		uint64_t expected = occupant_pages(node, k) - all->off_list[k];

		if (k == NODE_OCCUPANT_FILE)
			expected += occupant_pages(node, NODE_OCCUPANT_DIRTY) -
				    all->off_list[NODE_OCCUPANT_DIRTY];
		if (k == NODE_OCCUPANT_DIRTY)
			expected = 0;
		if (n != expected)
			return fail(c, "occupant list: length");
		for (uint32_t i = node->links[node->lru_heads + k].next;
		     i != node->lru_heads + k; i = node->links[i].next)
			if (!occupant_is_listed(node->state[i]) ||
			    occupant_list(node,
					  frame_occupant(node->state[i])) !=
				    node->lru_heads + k)
				return fail(c,
					    "occupant list: a foreign frame");
	}
	return true;
}

bool node_check(const struct node *node, const char **ret_what)
{
	struct check c = {.node = node};
	struct census all = {0};
	bool ok = true;

	for (unsigned int i = 0; i < node->n_zones && ok; i++)
		ok = check_zone(&c, &node->zones[i], &all);
	ok = ok && check_occupant_lists(&c, &all);
	if (ok && all.pages[FRAME_BLOCK] != node->allocated_pages)
		ok = fail(&c, "allocated pages");
	if (ok && all.pages[FRAME_ISOLATED] != node->isolated_pages)
		ok = fail(&c, "isolated pages");
	if (ok && all.pages[FRAME_RESERVED] != node->reserved_pages)
		ok = fail(&c, "reserved pages");
	if (!ok && ret_what)
		*ret_what = c.what;
	return ok;
}
