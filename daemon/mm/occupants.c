/* SPDX-License-Identifier: MIT */
#include "mm/occupants.h"

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "mm/freelist.h"
#include "mm/pcp.h"

/* What an OOM kill frees: a process is an eighth of all there is, or 16 MiB. */
#define OOM_SHARE     8u
#define OOM_MIN_BYTES MIB(16)

static const char *const names[NODE_OCCUPANTS] = {
	[NODE_OCCUPANT_FILE] = "file",       [NODE_OCCUPANT_ACTIVE] = "active",
	[NODE_OCCUPANT_DIRTY] = "dirty",     [NODE_OCCUPANT_ANON] = "anon",
	[NODE_OCCUPANT_SLAB] = "slab",       [NODE_OCCUPANT_KERNEL] = "kernel",
	[NODE_OCCUPANT_MLOCKED] = "mlocked",
};

const char *node_occupant_name(enum node_occupant kind)
{
	return kind < NODE_OCCUPANTS ? names[kind] : NULL;
}

int node_occupant_parse(const char *name, enum node_occupant *ret)
{
	for (unsigned int i = 0; i < NODE_OCCUPANTS; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum node_occupant)i;
			return 0;
		}
	}
	return -EINVAL;
}

uint32_t occupant_gfp(unsigned int kind)
{
	switch (kind) {
	case NODE_OCCUPANT_SLAB:
		return GFP_RECLAIMABLE;
	case NODE_OCCUPANT_KERNEL:
		return 0;
	default:
		return GFP_MOVABLE;
	}
}

void occupant_add(struct node *node, uint32_t pfn, unsigned int kind,
		  uint16_t flags)
{
	node->state[pfn] =
		(uint16_t)(frame_make(FRAME_OCCUPANT + kind, 0, 0) | flags);
	link_add_head(node->links, occupant_list(node, kind), pfn);
	node_zone_of(node, pfn)->occupants[kind]++;
}

void occupant_remove(struct node *node, uint32_t pfn)
{
	unsigned int kind = frame_occupant(node->state[pfn]);

	link_remove(node->links, pfn);
	node_zone_of(node, pfn)->occupants[kind]--;
	node->state[pfn] = FRAME_BODY;
}

void occupant_free(struct task *task, struct node *node, uint32_t pfn)
{
	occupant_remove(node, pfn);
	pcp_free(task, node_zone_of(node, pfn), pfn, 0);
}

void occupant_isolate(struct node *node, uint32_t pfn)
{
	link_remove(node->links, pfn);
	node->state[pfn] |= FRAME_OFF_LIST;
}

void occupant_put_back(struct node *node, uint32_t pfn)
{
	unsigned int kind = frame_occupant(node->state[pfn]);

	node->state[pfn] &= (uint16_t)~FRAME_OFF_LIST;

	link_add_head(node->links, occupant_list(node, kind), pfn);
}

void occupant_move(struct node *node, uint32_t from, uint32_t to)
{
	/* both are in one zone: its counts stay */
	node->state[to] = node->state[from];
	node->state[from] = FRAME_BODY;
	occupant_put_back(node, to);
}

void occupant_change(struct node *node, uint32_t pfn, unsigned int kind)
{
	uint16_t flags = node->state[pfn] & FRAME_PRESSURE;

	occupant_remove(node, pfn);
	occupant_add(node, pfn, kind, flags);
}

uint64_t occupant_pages(const struct node *node, unsigned int kind)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < node->n_zones; i++)
		n += node->zones[i].occupants[kind];
	return n;
}

/* Frees up to @n of the oldest pages of a kind. Return: how many. */
static uint64_t free_oldest(struct task *task, struct node *node,
			    unsigned int kind, uint64_t n)
{
	uint32_t head = occupant_list(node, kind);
	uint32_t i = node->links[head].prev;
	uint64_t freed = 0;

	while (i != head && freed < n) {
		uint32_t before = node->links[i].prev;

		/* the list of page cache holds two kinds */
		if (frame_occupant(node->state[i]) == kind) {
			occupant_free(task, node, i);
			freed++;
		}
		i = before;
	}
	return freed;
}

uint64_t occupant_oom_kill(struct task *task, struct node *node)
{
	uint64_t least = OOM_MIN_BYTES / node->params.page_size_bytes;
	unsigned int kind = NODE_OCCUPANT_ANON;
	uint64_t n = occupant_pages(node, kind), freed;

	if (n == 0) {
		kind = NODE_OCCUPANT_MLOCKED;
		n = occupant_pages(node, kind);
	}
	freed = free_oldest(task, node, kind, MAX(n / OOM_SHARE, least));
	if (freed > 0) {
		count_event(node, VMSTAT_oom_kill, 1);
		task_charge(task, node->costs.oom_kill_ps);
	}
	return freed;
}

/* ---- the part of the facade that changes occupants ---- */

static struct task free_task(struct node *node)
{
	return (struct task){.base_ns = node->now_ns, .captured_pfn = NO_PFN};
}

uint64_t occupants_occupy(struct node *node, unsigned int kind,
			  uint64_t n_pages, uint16_t flags)
{
	struct task task = free_task(node);
	struct alloc_context ac = {
		.gfp = occupant_gfp(kind),
		.mt = freelist_migrate_type(occupant_gfp(kind)),
		.highest_zone = node->n_zones - 1,
	};
	unsigned int alloc_flags = freelist_fast_flags(node, ac.gfp);
	uint64_t taken = 0;

	for (; taken < n_pages; taken++) {
		/* zone by zone down to low, then whatever is left */
		uint32_t pfn = freelist_alloc(&task, node, &ac, alloc_flags);

		if (pfn == NO_PFN)
			pfn = freelist_alloc(&task, node, &ac,
					     ALLOC_NO_WATERMARKS);
		if (pfn == NO_PFN)
			break;
		occupant_add(node, pfn, kind, flags);
	}
	return taken;
}

uint64_t node_occupy(struct node *node, enum node_occupant kind,
		     uint64_t n_pages)
{
	return occupants_occupy(node, kind, n_pages, 0);
}

uint64_t node_occupy_fill(struct node *node, enum node_occupant kind,
			  uint64_t leave_bytes)
{
	struct node_page_counts counts;
	uint64_t leave = leave_bytes / node->params.page_size_bytes;

	node_page_counts(node, &counts);
	if (counts.free_pages <= leave)
		return 0;
	return node_occupy(node, kind, counts.free_pages - leave);
}

uint64_t node_vacate(struct node *node, enum node_occupant kind,
		     uint64_t n_pages)
{
	struct task task = free_task(node);

	return free_oldest(&task, node, kind, n_pages);
}

uint64_t node_release_every(struct node *node, enum node_occupant kind,
			    unsigned int n)
{
	struct task task = free_task(node);
	uint64_t freed = 0, seen = 0;

	assert(n >= 1);
	for (uint32_t i = 0; i < node->n_frames; i++) {
		uint16_t s = node->state[i];

		if (!occupant_is_listed(s) || frame_occupant(s) != kind)
			continue;
		if (seen++ % n != 0)
			continue;
		occupant_free(&task, node, i);
		freed++;
	}
	return freed;
}

uint64_t node_convert(struct node *node, enum node_occupant from,
		      enum node_occupant to)
{
	return node_convert_some(node, from, to, 1);
}

uint64_t node_convert_some(struct node *node, enum node_occupant from,
			   enum node_occupant to, unsigned int n)
{
	uint64_t changed = 0;
	struct rng rng;

	assert(n >= 1);
	rng_seed(&rng, node->params.seed);

	for (uint32_t i = 0; i < node->n_frames; i++) {
		uint16_t s = node->state[i];

		if (!occupant_is_listed(s) || frame_occupant(s) != from)
			continue;
		if (rng_below(&rng, n) != 0)
			continue;
		occupant_change(node, i, to);
		changed++;
	}
	return changed;
}
